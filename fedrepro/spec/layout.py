"""The place of a curve in its panel: its distinguishing values, its line or bar in a sweep, its cell in a table."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fedrepro import registry
from fedrepro.errors import ParameterError, nearest
from fedrepro.spec import axes
from fedrepro.spec.model import Curve, Panel

UNUSED = ("series", "label", "algorithm")
"""Keys of ``select`` that do not distinguish lines: they differ between any two curves, or name the method."""

Place = tuple[str, str]
"""Row text and column text of a table's cell."""


def values_of(curve: Curve) -> dict[str, Any]:
    """Return every value that can select a curve: its keys in the spec, then fields and parameters of its setting."""
    setting = curve.setting
    fields = {"algorithm": setting.algorithm, "dataset": setting.dataset, "partition": setting.partition}
    places = (
        curve.select,
        setting.names,
        fields,
        setting.params,
        setting.dataset_params,
        setting.partition_params,
        setting.problem_params,
        {"label": curve.label, "rounds": setting.rounds, "problem": setting.problem},
    )
    return {name: value for place in reversed(places) for name, value in place.items()}


def value_of(curve: Curve, name: str) -> Any:
    """Return one of ``values_of``. Raises ParameterError if the curve has no such value."""
    values = values_of(curve)
    if name not in values:
        raise ParameterError(name, f"curve '{curve.label}' has no value of that name{nearest(name, values)}")
    return values[name]


def method_of(curve: Curve) -> str:
    """Return the name of a curve's method in the figure."""
    name = curve.setting.algorithm
    entry = registry.methods().get(name)
    return curve.method or (entry.label if entry else name)


def text_of(curve: Curve, name: str) -> str:
    """Return ``value_of`` as text: an algorithm by its label, a dataset or label as it is, a parameter as ``m=10``."""
    value = value_of(curve, name)
    if name == "algorithm":
        return method_of(curve)
    if name in ("dataset", "partition", "label"):
        return str(value)
    return f"{name}={value}"


# -- lines and bars over a swept parameter -----------------------------------------------------------------------------


def lines(curves: Iterable[Curve], swept: str) -> dict[str, list[Curve]]:
    """Return the swept curves, in the spec's order, by method and the values that differ at one value of ``swept``.

    A value that changes only together with ``swept`` (gamma = 10 lambda in a sweep over lambda) starts no new line.
    Raises ParameterError if a curve has no value of that name.
    """
    moving = [c for c in curves if c.role != "level"]
    rivals: dict[tuple[str, str], list[Curve]] = {}
    for curve in moving:
        method = "" if swept == "algorithm" else curve.setting.algorithm
        rivals.setdefault((method, repr(value_of(curve, swept))), []).append(curve)
    telling: dict[str, list[str]] = {}
    for (method, _), members in rivals.items():
        names = dict.fromkeys(name for c in members for name in c.select if name not in UNUSED)
        differ = [n for n in names if len({repr(c.select.get(n)) for c in members}) > 1 and n != swept]
        telling[method] = list(dict.fromkeys([*telling.get(method, []), *differ]))
    by_text: dict[str, list[Curve]] = {}
    for curve in moving:
        method = "" if swept == "algorithm" else curve.setting.algorithm
        parts = [text_of(curve, "algorithm")] if method else []
        parts += [text_of(curve, n) for n in telling[method] if curve.select.get(n) is not None]
        by_text.setdefault(" ".join(parts), []).append(curve)
    return by_text


def group(curve: Curve, swept: str) -> str:
    """Return the group of a curve's bar: its value of ``swept``, as it is written below the group."""
    return text_of(curve, swept) if swept == "algorithm" else str(value_of(curve, swept))


def groups(curves: Iterable[Curve], swept: str) -> list[str]:
    """Return every group of bars, in the order of ``lines``."""
    return list(dict.fromkeys(group(c, swept) for members in lines(curves, swept).values() for c in members))


# -- cells of a table --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """The rows and columns of a table panel.

    rows, columns : keys of curves, or ``metric`` for the names in ``metrics``. measure : name of the content of a cell,
    if it is not the metric itself.
    """

    panel: Panel
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    metrics: tuple[str, ...]
    measure: str = ""

    def cells(self) -> dict[Place, tuple[Curve, str]]:
        """Return the curve and metric of every cell, row by row; needs no results.

        Raises ParameterError if rows or columns are missing, no curve has a key, or two curves have the same cell.
        """
        cells: dict[Place, tuple[Curve, str]] = {}
        for curve in self.panel.curves:
            for metric in self.metrics:
                place = (self._text("rows", curve, metric), self._text("columns", curve, metric))
                if place in cells:
                    other = cells[place][0].label
                    raise ParameterError(
                        "rows",
                        f"{self._name}: curves '{other}' and '{curve.label}' have the same cell (row '{place[0]}', "
                        f"column '{place[1]}'); name a value in rows or columns in which they differ",
                    )
                cells[place] = (curve, metric)
        rows = list(dict.fromkeys(row for row, _ in cells))
        columns = list(dict.fromkeys(column for _, column in cells))
        return {(r, c): cells[r, c] for r in rows for c in columns if (r, c) in cells}

    def published(self) -> dict[Place, float]:
        """Return the published number of every cell that has one.

        A number names its cell by the table's texts or by the plain values of its keys. Raises ParameterError if there
        is no such cell.
        """
        cells = self.cells()
        known: dict[Place, Place] = {}
        for (row, column), (curve, metric) in cells.items():
            for r in (row, self._plain("rows", curve, metric)):
                for c in (column, self._plain("columns", curve, metric)):
                    known[r, c] = (row, column)
        result: dict[Place, float] = {}
        for item in self.panel.published:
            wanted = (str(item.get("row", "")), str(item.get("column", "")))
            if wanted not in known:
                raise self._no_cell(wanted, cells, known)
            if not isinstance(item.get("value"), (int, float)):
                raise ParameterError("published", f"{self._name}: {dict(item)!r} needs one value")
            result[known[wanted]] = float(item["value"])
        return result

    @property
    def _name(self) -> str:
        return f"table '{self.panel.id}'"

    @functools.cached_property
    def _known(self) -> set[str]:
        """The keys that rows and columns can have."""
        return {k for c in self.panel.curves for k in values_of(c)} | {"metric"}

    def _keys(self, way: str, curve: Curve) -> list[str]:
        """Return the keys of rows or columns that the curve has (K-means has no m); each must exist in some curve."""
        names = self.rows if way == "rows" else self.columns
        if not names:
            raise ParameterError(way, f"{self._name} needs options.{way}: the select key or keys of its {way}")
        for name in names:
            if name not in self._known:
                raise ParameterError(way, f"{self._name}: no curve has '{name}'{nearest(name, sorted(self._known))}")
        own = values_of(curve)
        return [n for n in names if n == "metric" or own.get(n) is not None]

    def _text(self, way: str, curve: Curve, metric: str) -> str:
        measure = self.measure or axes.metric_label(self.panel, metric)
        return " ".join(measure if n == "metric" else text_of(curve, n) for n in self._keys(way, curve))

    def _plain(self, way: str, curve: Curve, metric: str) -> str:
        return " ".join(metric if n == "metric" else str(value_of(curve, n)) for n in self._keys(way, curve))

    def _no_cell(self, wanted: Place, cells: Iterable[Place], known: Iterable[Place]) -> ParameterError:
        cells, known = list(cells), list(known)
        for i, way in enumerate(("row", "column")):
            if wanted[i] not in {place[i] for place in known}:
                valid = list(dict.fromkeys(place[i] for place in cells))
                listed = ", ".join(f"'{v}'" for v in valid)
                return ParameterError(
                    "published", f"{self._name} has no {way} '{wanted[i]}'{nearest(wanted[i], valid)} (it has {listed})"
                )
        return ParameterError("published", f"{self._name} has no cell in row '{wanted[0]}', column '{wanted[1]}'")


def reference(panel: Panel, wanted: Mapping[str, Any], option: str = "saving_from") -> Curve:
    """Return the first curve of a table that has all values ``wanted``, which an option gives."""
    for curve in panel.curves:
        if all(values_of(curve).get(name) == value for name, value in wanted.items()):
            return curve
    text = ", ".join(f"{k}={v}" for k, v in wanted.items())
    raise ParameterError(option, f"table '{panel.id}' has no curve with {text}")
