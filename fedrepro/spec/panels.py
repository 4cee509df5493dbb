"""The kinds of panels, the options and published numbers of each, and whether a panel could be drawn.

The fields of a kind's class are its options. Each states its default, the values it takes and what it means; messages,
``describe`` and drawing all read them here. An option set to null has its default. The checks need no results: what
they find, they find before anything runs.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

from fedrepro import registry
from fedrepro.errors import ParameterError, nearest
from fedrepro.parameters import Whole
from fedrepro.spec import axes, layout
from fedrepro.spec.model import Curve, Figure, Panel

# -- the values an option takes ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Values:
    """The values an option takes: in words, as a test of what a spec says, and as drawing reads it."""

    words: str
    fits: Callable[[Any], bool]
    read: Callable[[Any], Any] = lambda value: value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _is_names(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value))


TEXT = Values("a text", lambda v: isinstance(v, str))
NAME = Values("a name", lambda v: isinstance(v, str))
NAMES = Values("a name or a list of names", _is_names, lambda v: (v,) if isinstance(v, str) else tuple(v))
NUMBER = Values("a number", _is_number, float)
POSITIVE = Values("a number above 0", lambda v: _is_number(v) and v > 0, float)
COUNT = Values(str(Whole(1)), Whole(1).allows)
DIGITS = Values(str(Whole(0)), Whole(0).allows)
SHARE = Values("a share of the x axis between 0 and 1", lambda v: _is_number(v) and 0 < v < 1, float)
TRUTH = Values("true or false", lambda v: isinstance(v, bool))
AVERAGE = Values("mean, mean-sd or median", lambda v: v in ("mean", "mean-sd", "median"))
MARKS = Values("a list of mappings", lambda v: isinstance(v, (list, tuple)), tuple)
SELECTION = Values("a mapping of names to values", lambda v: isinstance(v, Mapping))


def option(default: Any, values: Values, doc: str) -> Any:
    """The field of an option."""
    return field(default=default, metadata={"values": values, "doc": doc})


@dataclass(frozen=True)
class Published:
    """The keys of a published number (or reference line), each with what it means: texts, and numbers."""

    texts: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key, texts first."""
        return (*self.texts, *self.numbers)


@dataclass(frozen=True)
class Options:
    """What the kinds have in common: how the options of a panel are read. A subclass' docstring describes its kind."""

    published: ClassVar[Published] = Published()
    marks: ClassVar[Published] = Published()  # what an item of the option ``lines`` holds

    @classmethod
    def of(cls, panel: Panel) -> Self:
        """The options of a panel of this kind; raises ParameterError for an unknown one or a value it cannot have."""
        for error in _wrong_options(cls, panel):
            raise error
        given = {f.name: (f.metadata["values"], panel.options.get(f.name)) for f in dataclasses.fields(cls)}
        return cls(**{name: values.read(value) for name, (values, value) in given.items() if value is not None})


# -- the kinds ---------------------------------------------------------------------------------------------------------

_VARIABLES = "what bits are divided by on the axis bits_per_variable: how many variables there are"
_PARAMETER = "the value of the curves that x: parameter stands for"
_FINAL = "a final value is the mean over so many last records of a trial"
_AVERAGE = (
    "what stands for the trials: their mean, or their median (with smallest and largest as the band); mean-sd: the mean"
    " with one standard deviation as the band, also of two or three trials"
)
_LABEL = "what the legend says of it"
_ACROSS = {"label": _LABEL, "algorithm": "the method whose colour it takes"}
_POINT = {"x": "where it stands along x (alone: a vertical line)", "y": "its value (alone: a horizontal line)"}


@dataclass(frozen=True)
class CurvesOptions(Options):
    """Curves over rounds, communication or time; or final values over a swept parameter, a line per method."""

    published: ClassVar[Published] = Published(_ACROSS, _POINT)
    marks: ClassVar[Published] = Published(_ACROSS, _POINT)

    variables: float | None = option(None, POSITIVE, _VARIABLES)
    average: str = option("mean", AVERAGE, _AVERAGE)
    lines: tuple[Mapping[str, Any], ...] = option((), MARKS, "reference lines that are no published numbers")
    xlabel: str = option("", TEXT, "the label of the x axis, where the axis' own does not serve")
    ylabel: str = option("", TEXT, "the label of the y axis, where the metric's own does not serve")
    parameter: str = option("", NAME, _PARAMETER)
    final: int = option(1, COUNT, _FINAL)
    zoom: float | None = option(
        None, SHARE, "the y axis shows what the curves do beyond this share of the x axis, not their first steep fall"
    )
    starts_at: int = option(
        0, DIGITS, "the number of the initial point on the axis of rounds; as number 1 a log axis shows it"
    )


@dataclass(frozen=True)
class BarsOptions(Options):
    """Bars of final values, grouped by one value of the curves, one bar per method or setting in each group."""

    published: ClassVar[Published] = Published(
        {"label": "the bar it stands on, or what the legend says of a line", "x": "the group of that bar"},
        {"y": "its value (alone: a horizontal line)"},
    )
    marks: ClassVar[Published] = Published({"label": _LABEL}, {"y": "its height"})

    parameter: str = option("", NAME, _PARAMETER)
    final: int = option(1, COUNT, _FINAL)
    average: str = option("mean", AVERAGE, _AVERAGE)
    lines: tuple[Mapping[str, Any], ...] = option((), MARKS, "reference lines that are no published numbers")
    xlabel: str = option("", TEXT, "the label of the x axis, where the parameter's name does not serve")
    ylabel: str = option("", TEXT, "the label of the y axis, where the metric's own does not serve")


@dataclass(frozen=True)
class TableOptions(Options):
    """A table of ours, mean and spread over trials, beside the published number and the difference."""

    published: ClassVar[Published] = Published(
        {"row": "the row of its cell: its text, or the plain values of its keys", "column": "the same for its column"},
        {"value": "the number"},
    )

    rows: tuple[str, ...] = option((), NAMES, "what tells the rows apart: keys of the curves, or metric")
    columns: tuple[str, ...] = option((), NAMES, "what tells the columns apart: keys of the curves, or metric")
    metrics: tuple[str, ...] = option((), NAMES, "the metrics that the key metric stands for; without them y alone")
    scale: float = option(1.0, NUMBER, "our numbers are multiplied by it: 100 for percent")
    digits: int | None = option(None, DIGITS, "decimals; without it whole numbers in full, others to four digits")
    final: int = option(1, COUNT, "a cell is the mean over so many last records of a trial")
    reach: float | None = option(None, NUMBER, "a cell is where on the axis a trial is first as good as this instead")
    axis: str = option("round", NAME, "the axis on which reach counts: an axis of x, or a recorded metric")
    from_start: bool = option(False, TRUTH, "reach leaves out what the axis counts before the first round")
    measure: str = option("", TEXT, "what a cell is called where it does not hold the metric")
    saving_from: Mapping[str, Any] | None = option(
        None, SELECTION, "the values of one curve: a cell is the share saved against it, trial by trial"
    )
    variables: float | None = option(None, POSITIVE, _VARIABLES)
    ratio_from: Mapping[str, Any] | None = option(
        None,
        SELECTION,
        "the values of one curve in full precision: a cell is the compression ratio against it, at reach times the "
        "optimum, of curves averaged over trials",
    )
    optimum_of: Mapping[str, Any] | None = option(
        None, SELECTION, "the values of the curve whose optimum counts there; without it that of ratio_from"
    )


@dataclass(frozen=True)
class ScatterOptions(Options):
    """Points in the plane, one small picture per curve, the same group in one colour and shape in all of them."""

    columns: int = option(3, COUNT, "pictures side by side")
    trial: int | None = option(None, COUNT, "the trial that is shown; without it the first one a curve has")
    score: str = option("", NAME, "a metric whose final value in that trial is written above")
    xy: str = option("", NAME, "the array with the coordinates of the points")
    xy_from: str = option("", TEXT, "the label of the curve whose coordinates serve for all of them")
    group: str = option("", NAME, "the array with the group of each point; without it the coordinates' third column")
    truth: str = option("", NAME, "the array whose groups the curve of xy_from shows itself")
    align: str = option("", TEXT, "groups take the colours of those they share most points with: an array, or a curve")


KINDS: dict[str, type[Options]] = {
    "curves": CurvesOptions,
    "scatter": ScatterOptions,
    "table": TableOptions,
    "bars": BarsOptions,
}
"""The class of each kind of panel."""


class Explained(NamedTuple):
    """One option for a reader."""

    name: str
    default: Any
    values: str
    doc: str


def describe(kind: str) -> list[Explained]:
    """The options of a kind of panel, in the order in which messages list them."""
    fields = dataclasses.fields(KINDS[kind])
    return [Explained(f.name, f.default, f.metadata["values"].words, f.metadata["doc"]) for f in fields]


# -- what drawing asks of a panel --------------------------------------------------------------------------------------


def swept(panel: Panel) -> str:
    """The name of the swept parameter of curves or bars: the option ``parameter`` where x is that, else x itself."""
    if panel.x != "parameter":
        return panel.x
    name = getattr(KINDS[panel.kind].of(panel), "parameter", "")
    if not name:
        raise ParameterError("parameter", f"panel '{panel.id}' has x: parameter; name it in options.parameter")
    return str(name)


def variables(panel: Panel) -> float:
    """The number by which bits are divided on the axis ``bits_per_variable``."""
    value = getattr(KINDS[panel.kind].of(panel), "variables", None)
    if value is None:
        raise ParameterError("variables", f"panel '{panel.id}' counts bits_per_variable: give options.variables > 0")
    return float(value)


def table(panel: Panel) -> layout.Table:
    """The rows and columns of a table panel."""
    options = TableOptions.of(panel)
    return layout.Table(panel, options.rows, options.columns, options.metrics or (panel.y,), options.measure)


def embedding(panel: Panel, curve: Curve) -> Curve:
    """The curve at whose coordinates a scatter panel shows ``curve``."""
    wanted = ScatterOptions.of(panel).xy_from
    labels = {c.label: c for c in panel.curves}
    if not wanted:
        return curve
    if wanted not in labels:
        raise ParameterError("xy_from", f"panel '{panel.id}' has no curve '{wanted}'{nearest(wanted, labels)}")
    return labels[wanted]


# -- checks ------------------------------------------------------------------------------------------------------------


def check_figure(figure: Figure) -> None:
    """Raise ParameterError for the first panel that could not be drawn whatever its results."""
    for panel in figure.panels:
        check_panel(panel)


def check_panel(panel: Panel) -> None:
    """Raise the first of ``problems``."""
    for error in problems(panel):
        raise error


def problems(panel: Panel) -> Iterator[ParameterError]:
    """Every reason why the panel could not be drawn whatever its results; ``name`` is the option, or ``published``."""
    kind = KINDS[panel.kind]
    found = [*_wrong_options(kind, panel), *_wrong_marks(kind, panel)]
    yield from found
    for check in [] if found else _CHECKS[panel.kind]:
        try:
            check(panel)
        except ParameterError as error:
            yield error


def _wrong_options(kind: type[Options], panel: Panel) -> Iterator[ParameterError]:
    known: dict[str, Values] = {f.name: f.metadata["values"] for f in dataclasses.fields(kind)}
    for name, value in panel.options.items():
        if name not in known:
            yield ParameterError(
                "options",
                f"{_where(panel)} has no option '{name}'{nearest(name, known)} (options: {', '.join(known)})",
            )
        elif value is not None and not known[name].fits(value):
            yield ParameterError(name, f"panel '{panel.id}': {name} is {known[name].words}, not {value!r}")


def _wrong_marks(kind: type[Options], panel: Panel) -> Iterator[ParameterError]:
    lines = panel.options.get("lines")
    lines = lines if isinstance(lines, (list, tuple)) else ()
    for name, items, keys in (("published", panel.published, kind.published), ("lines", lines, kind.marks)):
        for item in items:
            wrong = _wrong_mark(item, keys)
            if wrong:
                yield ParameterError(name, f"{_where(panel)}{wrong}")


def _where(panel: Panel) -> str:
    return f"panel '{panel.id}' ({panel.kind})"


def _wrong_mark(item: Any, keys: Published) -> str:
    """What is wrong with a published number or a reference line; nothing where it can be drawn."""
    if not isinstance(item, Mapping) or not set(item) <= set(keys.keys):
        return f" takes mappings of {', '.join(keys.keys) or 'nothing'}, not {item!r}"
    for name in keys.numbers:
        value = item.get(name, 0)
        values = value if isinstance(value, (list, tuple)) else [value]
        if not all(_is_number(v) for v in values):
            return f": {name} must be a number, not {value!r}"
    method = item.get("algorithm")
    if method is not None and method not in registry.methods():
        return f": '{method}' is not an algorithm{nearest(method, registry.methods())}"
    return ""


def _check_axis(panel: Panel) -> None:
    """Curves run along the axis of x, or have a value of that name."""
    axis = axes.of(panel)
    if axis.divided:
        variables(panel)
    if not axis.along:
        layout.lines(panel.curves, swept(panel))


def _check_positions(panel: Panel) -> None:
    """A line has one number, a point x and y, several points as many of one as of the other."""
    for name, items in (("published", panel.published), ("lines", CurvesOptions.of(panel).lines)):
        for item in items:
            sizes = [_size(item[key]) for key in ("x", "y") if key in item]
            if not sizes:
                raise ParameterError(name, f"{_where(panel)}: {dict(item)!r} needs x or y, or both")
            if len(set(sizes)) > 1 or (len(sizes) == 1 and sizes[0] is not None):
                raise ParameterError(name, f"{_where(panel)}: {dict(item)!r} needs as many values of x as of y")


def _check_bars(panel: Panel) -> None:
    """Every curve has a value to be grouped by, and published numbers with an x name a bar."""
    swept_by = swept(panel)
    bars, groups = list(layout.lines(panel.curves, swept_by)), layout.groups(panel.curves, swept_by)
    for item in panel.published:
        for key, valid in (("label", bars), ("x", groups)) if "x" in item else ():
            text = str(item.get(key, ""))
            if text not in valid:
                known = ", ".join(f"'{v}'" for v in valid)
                raise ParameterError(
                    "published", f"no bar has {key} '{text}'{nearest(text, valid)} (there are {known})"
                )


def _check_heights(panel: Panel) -> None:
    for name, items in (("published", panel.published), ("lines", BarsOptions.of(panel).lines)):
        for item in items:
            if "y" not in item or _size(item["y"]) is not None:
                raise ParameterError(name, f"{_where(panel)}: {dict(item)!r} needs one number y")


def _size(value: Any) -> int | None:
    """How many numbers a list holds; None for a single number."""
    return len(value) if isinstance(value, (list, tuple)) else None


def _check_reference(panel: Panel) -> None:
    """The curves that cells are compared with are there, and what a compression ratio reads is recorded."""
    options = TableOptions.of(panel)
    for name in ("saving_from", "ratio_from", "optimum_of"):
        wanted = getattr(options, name)
        if wanted is not None:
            layout.reference(panel, wanted, name)
    if options.ratio_from is not None:
        if options.reach is None:
            raise ParameterError("ratio_from", f"table '{panel.id}' needs reach: how many times the optimum")
        for metric in ("cost", "optimum"):
            _check_metric(panel, "ratio_from", metric)


def _check_cells(panel: Panel) -> None:
    table(panel).published()


def _check_cell_metrics(panel: Panel) -> None:
    for metric in TableOptions.of(panel).metrics:
        _check_metric(panel, "metrics", metric)


def _check_reach(panel: Panel) -> None:
    """The axis of ``reach`` is one that curves run along."""
    name = TableOptions.of(panel).axis
    axis = axes.AXES.get(name)
    if axis is None:
        _check_metric(panel, "axis", name)
    elif not axis.along:
        raise ParameterError("axis", f"table '{panel.id}': '{name}' is no axis that curves run along")
    elif axis.divided:
        variables(panel)


def _check_embedding(panel: Panel) -> None:
    for curve in panel.curves:
        embedding(panel, curve)


def _check_score(panel: Panel) -> None:
    score = ScatterOptions.of(panel).score
    if score:
        _check_metric(panel, "score", score)


def _check_arrays(panel: Panel) -> None:
    """The arrays a scatter panel names are among those its runs keep."""
    options = ScatterOptions.of(panel)
    arrays = list(dict.fromkeys(a for c in panel.curves for a in c.setting.artifacts))
    if options.align and options.align not in (*(c.label for c in panel.curves), *arrays):
        raise no_grouping(panel, options.align, arrays)
    for name in ("xy", "group", "truth"):
        array = getattr(options, name)
        if array and array not in arrays:
            raise ParameterError(
                name,
                f"panel '{panel.id}': no run keeps the array '{array}'{nearest(array, arrays)} "
                f"(artifacts: {', '.join(arrays) or 'none'})",
            )
    if arrays and not options.xy:
        raise no_coordinates(panel)


def no_grouping(panel: Panel, wanted: str, arrays: Iterable[str]) -> ParameterError:
    """The error of a scatter panel whose option ``align`` names neither a curve nor one of the ``arrays``."""
    valid = [*(c.label for c in panel.curves), *arrays]
    return ParameterError("align", f"panel '{panel.id}' has no curve or array '{wanted}'{nearest(wanted, valid)}")


def no_coordinates(panel: Panel) -> ParameterError:
    """The error of a scatter panel of arrays that does not say which one holds the coordinates."""
    return ParameterError("xy", f"panel '{panel.id}' needs options.xy: the array with the coordinates of its points")


def _check_metric(panel: Panel, name: str, metric: str) -> None:
    recorded = list(dict.fromkeys(m for c in panel.curves for m in c.setting.metrics))
    if metric not in recorded:
        raise ParameterError(
            name,
            f"panel '{panel.id}': the metric '{metric}' is not recorded{nearest(metric, recorded)} "
            f"(recorded: {', '.join(recorded)})",
        )


_CHECKS: dict[str, tuple[Callable[[Panel], None], ...]] = {
    "curves": (_check_axis, _check_positions),
    "bars": (_check_bars, _check_heights),
    "table": (_check_reference, _check_cells, _check_cell_metrics, _check_reach),
    "scatter": (_check_embedding, _check_score, _check_arrays),
}
"""What is checked of each kind of panel, once each option has a value it can have."""
