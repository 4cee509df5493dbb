"""Apply other values of open settings to a figure: to every curve that a change names, on any panel.

Labels and the values by which claims select curves stay as they are, so that every claim finds the same curves. A curve
that changes gets another name in the results, with the new values after ``|``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from fedrepro import registry
from fedrepro.errors import ParameterError, UserError
from fedrepro.spec.discrepancies import ROUNDS, Alternative, Change
from fedrepro.spec.model import Curve, Figure, Panel, Setting

OF_KIND: Mapping[str, str] = {
    "algorithm": "params",
    "problem": "problem_params",
    "dataset": "dataset_params",
    "partition": "partition_params",
}
"""The kinds of a change, with the field of a setting that contains the parameters."""


def changed(figure: Figure, alternatives: Iterable[Alternative]) -> Figure:
    """Return the figure with the other values in all curves that they apply to.

    Raises UserError if a method, problem, dataset or partition does not accept a value together with the others.
    """
    alternatives = tuple(alternatives)
    panels = (
        dataclasses.replace(panel, curves=tuple(_curve(curve, panel, alternatives) for curve in panel.curves))
        for panel in figure.panels
    )
    return dataclasses.replace(figure, panels=tuple(panels))


def _curve(curve: Curve, panel: Panel, alternatives: Iterable[Alternative]) -> Curve:
    """Return the curve with the other values; the same curve if nothing changes."""
    setting = curve.setting
    for alternative in alternatives:
        for change in alternative.changes:
            if applies(change, curve, panel):
                setting = _with(setting, change, alternative.id)
    new = _new_values(curve.setting, setting)
    if not new:
        return curve
    words = " ".join(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in new)
    explicit = dict.fromkeys([*setting.explicit, *(name for name, _ in new if name in setting.params)])
    renamed = dataclasses.replace(setting, series=f"{setting.series} | {words}", explicit=tuple(explicit))
    return dataclasses.replace(curve, setting=renamed)


def applies(change: Change, curve: Curve, panel: Panel) -> bool:
    """Return whether a change applies to a curve of a panel.

    Without ``where``, a change of methods leaves the curves of a sweep alone: the panel shows several values of the
    parameter for the same method.
    """
    if getattr(curve.setting, change.kind) not in change.names:
        return False
    if change.where:
        return all(_matches(curve, panel, key, wanted) for key, wanted in change.where.items())
    return change.kind != "algorithm" or not any(_is_swept(name, curve, panel) for name in change.values)


def _matches(curve: Curve, panel: Panel, key: str, wanted: Any) -> bool:
    """Return whether a curve has one of the wanted values, in the spec's words or as a registered name."""
    values = [curve.select.get(key), getattr(curve.setting, key, None), panel.id if key == "panel" else None]
    return any(value is not None and value in values for value in (wanted if isinstance(wanted, list) else [wanted]))


def _is_swept(name: str, curve: Curve, panel: Panel) -> bool:
    """Return whether a panel shows several values of a parameter of the curve's method."""
    same = [other.setting.params for other in panel.curves if other.setting.algorithm == curve.setting.algorithm]
    return name in curve.setting.params and any(params[name] != curve.setting.params[name] for params in same)


def _with(setting: Setting, change: Change, id_: str) -> Setting:
    """Return a setting with the values of a change, checked."""
    values = dict(change.values)
    rounds = values.pop(ROUNDS, setting.rounds)
    field = OF_KIND[change.kind]
    try:
        params = _checked(change.kind, getattr(setting, change.kind), {**getattr(setting, field), **values})
    except ParameterError as error:
        raise UserError(f"the setting {id_} cannot be applied to '{setting.series}': {error}") from None
    other: dict[str, Any] = {field: params, "rounds": rounds}
    return dataclasses.replace(setting, **other)


def _checked(kind: str, name: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters as settings contain them. Raises ParameterError."""
    if kind == "algorithm":
        method = registry.methods()[name].make(**params)
        return {field.name: getattr(method, field.name) for field in dataclasses.fields(method)}
    if kind == "problem":
        registry.problems()[name].check(params, {})
    elif kind == "dataset":
        registry.datasets()[name].make(**params)
    else:
        registry.partitions()[name].make(**{k: v for k, v in params.items() if k != "per_trial"})
    return params


def _new_values(before: Setting, after: Setting) -> list[tuple[str, Any]]:
    """Return the parameters that have another value, with it."""
    fields = [(getattr(before, field), getattr(after, field)) for field in OF_KIND.values()]
    pairs = [(name, value) for old, new in fields for name, value in new.items() if old.get(name) != value]
    return pairs + ([(ROUNDS, after.rounds)] if after.rounds != before.rounds else [])
