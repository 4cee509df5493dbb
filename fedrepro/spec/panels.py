"""The kinds of panels, with their options and published numbers, and checks whether a panel can be drawn.

The fields of a kind's class are its options. Each has a default, its values in the annotation and a meaning in the
docstring; messages, ``describe`` and drawing use this declaration. An option set to null has its default. The checks
need no results, so errors are reported before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Self

from fedrepro import registry
from fedrepro.errors import ParameterError, nearest
from fedrepro.parameters import Number, OneOf, Range, Whole, declared
from fedrepro.spec import axes, layout
from fedrepro.spec.model import Curve, Panel

# -- values of options -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Values:
    """A range of other values than numbers: in words, as a test of a value in a spec, as a conversion for drawing."""

    words: str
    allows: Callable[[Any], bool]
    read: Callable[[Any], Any] = lambda value: value

    def __str__(self) -> str:
        return self.words


def _is_names(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value))


TEXT = Values("a text", lambda v: isinstance(v, str))
NAME = Values("a name", lambda v: isinstance(v, str))
NAMES = Values("a name or a list of names", _is_names, lambda v: (v,) if isinstance(v, str) else tuple(v))
SHARE = Values("a share of the x axis between 0 and 1", lambda v: Number(above=0).allows(v) and v < 1, float)
MARKS = Values("a list of mappings", lambda v: isinstance(v, (list, tuple)), tuple)
SELECTION = Values("a mapping of names to values", lambda v: isinstance(v, Mapping))


def _read(values: Range, value: Any) -> Any:
    """Return an allowed value as it is used for drawing."""
    if isinstance(values, Number):
        return float(value)
    return values.read(value) if isinstance(values, Values) else value


@dataclass(frozen=True)
class Published:
    """The keys of a published number or reference line with their meanings: texts and numbers."""

    texts: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> Mapping[str, str]:
        """All keys, texts first."""
        return {**self.texts, **self.numbers}


@dataclass(frozen=True)
class Options:
    """The base of the kinds, which reads the options of a panel. A subclass' docstring describes its kind."""

    published: ClassVar[Published] = Published()
    marks: ClassVar[Published] = Published()  # keys of an item of the option ``lines``

    @classmethod
    def of(cls, panel: Panel) -> Self:
        """Return the options of a panel of this kind. Raises ParameterError for an unknown option or invalid value."""
        for error in _wrong_options(cls, panel):
            raise error
        values = declared(cls)
        given = {name: value for name, value in panel.options.items() if value is not None}
        return cls(**{name: _read(values[name], value) for name, value in given.items()})


# -- the kinds ---------------------------------------------------------------------------------------------------------

_LABEL = "its label in the legend"
_ACROSS = {"label": _LABEL, "algorithm": "the method whose colour it has"}
_POINT = {"x": "its place along x (alone: a vertical line)", "y": "its value (alone: a horizontal line)"}


@dataclass(frozen=True)
class AxesOptions(Options):
    """Options of panels with one pair of axes.

    parameter : the value of the curves that x: parameter means. final : the number of last records of a trial whose
    mean is its final value. average : the summary of the trials: their mean, or their median (with smallest and largest
    as the band; median-trials: with a thin line for each trial instead); mean-sd: the mean with one standard deviation
    as the band, even for two or three trials. lines :
    reference lines that are not published numbers. xlabel : the label of the x axis, if not the axis' own or the
    parameter's name. ylabel : the label of the y axis, if not the metric's own.
    """

    parameter: Annotated[str, NAME] = ""
    final: Annotated[int, Whole()] = 1
    average: Annotated[str, OneOf("mean", "mean-sd", "median", "median-trials")] = "mean"
    lines: Annotated[tuple[Mapping[str, Any], ...], MARKS] = ()
    xlabel: Annotated[str, TEXT] = ""
    ylabel: Annotated[str, TEXT] = ""


@dataclass(frozen=True)
class CurvesOptions(AxesOptions):
    """Curves over rounds, communication or time; or final values over a swept parameter, a line per method.

    variables : the number of variables, by which bits are divided on the axis bits_per_variable. zoom : the y axis fits
    the curves after this share of the x axis, without their first steep fall. starts_at : the number of the initial
    point on the axis of rounds; a log axis shows it as number 1.
    """

    published: ClassVar[Published] = Published(_ACROSS, _POINT)
    marks: ClassVar[Published] = Published(_ACROSS, _POINT)

    variables: Annotated[float | None, Number(above=0)] = None
    zoom: Annotated[float | None, SHARE] = None
    starts_at: Annotated[int, Whole(0)] = 0


@dataclass(frozen=True)
class BarsOptions(AxesOptions):
    """Bars of final values, grouped by one value of the curves, one bar per method or setting in each group."""

    published: ClassVar[Published] = Published(
        {"label": "its bar, or the label of a line in the legend", "x": "the group of that bar"},
        {"y": "its value (alone: a horizontal line)"},
    )
    marks: ClassVar[Published] = Published({"label": _LABEL}, {"y": "its height"})


@dataclass(frozen=True)
class TableOptions(Options):
    """A table of our mean and spread over trials, with the published number and the difference.

    rows : what distinguishes the rows: keys of the curves, or metric. columns : what distinguishes the columns: keys of
    the curves, or metric. metrics : the metrics for the key metric; by default y alone. scale : the factor of our
    numbers: 100 for percent. digits : decimals; by default whole numbers in full, others to four digits. final : the
    number of last records of a trial whose mean is its cell.

    reach : a level; a cell is the value of the axis at which a trial first reaches it. axis : the axis of reach: an
    axis of x, or a recorded metric. from_start : reach does not count what the axis counts before the first round.
    measure : the name of the content of a cell, if it is not the metric. saving_from : the values of one curve: a cell
    is the share saved compared with it, for each trial. variables : the number of variables, by which bits are divided
    on the axis bits_per_variable.

    ratio_from : the values of one curve in full precision: a cell is the compression ratio to it, at reach times the
    optimum, of curves averaged over trials. optimum_of : the values of the curve whose optimum is used there; by
    default that of ratio_from.
    """

    published: ClassVar[Published] = Published(
        {"row": "the row of its cell: its text, or the plain values of its keys", "column": "the same for its column"},
        {"value": "the number"},
    )

    rows: Annotated[tuple[str, ...], NAMES] = ()
    columns: Annotated[tuple[str, ...], NAMES] = ()
    metrics: Annotated[tuple[str, ...], NAMES] = ()
    scale: Annotated[float, Number()] = 1.0
    digits: Annotated[int | None, Whole(0)] = None
    final: Annotated[int, Whole()] = 1
    reach: Annotated[float | None, Number()] = None
    axis: Annotated[str, NAME] = "round"
    from_start: bool = False
    measure: Annotated[str, TEXT] = ""
    saving_from: Annotated[Mapping[str, Any] | None, SELECTION] = None
    variables: Annotated[float | None, Number(above=0)] = None
    ratio_from: Annotated[Mapping[str, Any] | None, SELECTION] = None
    optimum_of: Annotated[Mapping[str, Any] | None, SELECTION] = None


@dataclass(frozen=True)
class ScatterOptions(Options):
    """Points in the plane, one small picture per curve; a group has the same colour and shape in all of them.

    columns : the number of pictures per row. trial : the trial that is shown; by default the first trial of each curve.
    score : a metric whose final value in that trial is written above the picture. xy : the array of coordinates of the
    points. xy_from : the label of the curve whose coordinates all pictures use. group : the array of groups of the
    points; by default the coordinates' third column. truth : the array whose groups the picture of xy_from shows.
    align : an array or curve; groups have the colours of its groups with the most common points.
    """

    columns: Annotated[int, Whole()] = 3
    trial: Annotated[int | None, Whole()] = None
    score: Annotated[str, NAME] = ""
    xy: Annotated[str, NAME] = ""
    xy_from: Annotated[str, TEXT] = ""
    group: Annotated[str, NAME] = ""
    truth: Annotated[str, NAME] = ""
    align: Annotated[str, TEXT] = ""


KINDS: dict[str, type[Options]] = {
    "curves": CurvesOptions,
    "scatter": ScatterOptions,
    "table": TableOptions,
    "bars": BarsOptions,
}
"""The class of each kind of panel."""


# -- facts that drawing needs ------------------------------------------------------------------------------------------


def swept(panel: Panel) -> str:
    """Return the swept parameter of curves or bars: the option ``parameter`` if x is ``parameter``, else x."""
    if panel.x != "parameter":
        return panel.x
    name = getattr(KINDS[panel.kind].of(panel), "parameter", "")
    if not name:
        raise ParameterError("parameter", f"panel '{panel.id}' has x: parameter; name it in options.parameter")
    return str(name)


def variables(panel: Panel) -> float:
    """Return the number by which bits are divided on the axis ``bits_per_variable``."""
    value = getattr(KINDS[panel.kind].of(panel), "variables", None)
    if value is None:
        raise ParameterError("variables", f"panel '{panel.id}' counts bits_per_variable: give options.variables > 0")
    return float(value)


def table(panel: Panel) -> layout.Table:
    """Return the rows and columns of a table panel."""
    options = TableOptions.of(panel)
    return layout.Table(panel, options.rows, options.columns, options.metrics or (panel.y,), options.measure)


def embedding(panel: Panel, curve: Curve) -> Curve:
    """Return the curve whose coordinates a scatter panel uses for ``curve``."""
    wanted = ScatterOptions.of(panel).xy_from
    labels = {c.label: c for c in panel.curves}
    if not wanted:
        return curve
    if wanted not in labels:
        raise ParameterError("xy_from", f"panel '{panel.id}' has no curve '{wanted}'{nearest(wanted, labels)}")
    return labels[wanted]


# -- checks ------------------------------------------------------------------------------------------------------------


def check_panel(panel: Panel) -> None:
    """Raise the first of ``problems``."""
    for error in problems(panel):
        raise error


def problems(panel: Panel) -> Iterator[ParameterError]:
    """Yield every reason why the panel could never be drawn; ``name`` is the option, or ``published``."""
    kind = KINDS[panel.kind]
    errors = [*_wrong_options(kind, panel), *_wrong_marks(kind, panel)]
    yield from errors
    for check in [] if errors else _CHECKS[panel.kind]:
        try:
            check(panel)
        except ParameterError as error:
            yield error


def _wrong_options(kind: type[Options], panel: Panel) -> Iterator[ParameterError]:
    known = declared(kind)
    for name, value in panel.options.items():
        if name not in known:
            listed = f"{nearest(name, known)} (options: {', '.join(known)})"
            yield ParameterError("options", f"{_where(panel)} has no option '{name}'{listed}")
        elif value is not None and not known[name].allows(value):
            close = nearest(value, getattr(known[name], "choices", ()))
            yield ParameterError(name, f"panel '{panel.id}': {name} must be {known[name]}, not {value!r}{close}")


def _marks(panel: Panel) -> Iterator[tuple[str, Any]]:
    """Yield the published numbers and the reference lines, each with the key that contains it."""
    lines = panel.options.get("lines")
    yield from (("published", item) for item in panel.published)
    yield from (("lines", item) for item in (lines if isinstance(lines, (list, tuple)) else ()))


def _wrong_marks(kind: type[Options], panel: Panel) -> Iterator[ParameterError]:
    for name, item in _marks(panel):
        wrong = _wrong_mark(item, kind.published if name == "published" else kind.marks)
        if wrong:
            yield ParameterError(name, f"{_where(panel)}{wrong}")


def _where(panel: Panel) -> str:
    return f"panel '{panel.id}' ({panel.kind})"


def _wrong_mark(item: Any, keys: Published) -> str:
    """Return what is wrong with a published number or a reference line, or ''."""
    if not isinstance(item, Mapping) or not set(item) <= set(keys.keys):
        return f" takes mappings of {', '.join(keys.keys) or 'nothing'}, not {item!r}"
    for name in keys.numbers:
        value = item.get(name, 0)
        values = value if isinstance(value, (list, tuple)) else [value]
        if not all(Number().allows(v) for v in values):
            return f": {name} must be a number, not {value!r}"
    method = item.get("algorithm")
    if method is not None and method not in registry.methods():
        return f": '{method}' is not an algorithm{nearest(method, registry.methods())}"
    return ""


def _check_axis(panel: Panel) -> None:
    """Check that curves run along the axis of x, or have a value of that name."""
    axis = axes.of(panel)
    if axis.divided:
        variables(panel)
    if not axis.along:
        layout.lines(panel.curves, swept(panel))


def _check_positions(panel: Panel) -> None:
    """A line has one number, a point x and y, several points as many of one as of the other."""
    for name, item in _marks(panel):
        sizes = [_size(item[key]) for key in ("x", "y") if key in item]
        if not sizes:
            raise ParameterError(name, f"{_where(panel)}: {dict(item)!r} needs x or y, or both")
        if len(set(sizes)) > 1 or (len(sizes) == 1 and sizes[0] is not None):
            raise ParameterError(name, f"{_where(panel)}: {dict(item)!r} needs as many values of x as of y")


def _check_bars(panel: Panel) -> None:
    """Check that every curve has a value for its group, and that published numbers with an x name a bar."""
    if panel.xscale != "linear":
        raise ParameterError("xscale", f"panel '{panel.id}': groups of bars have no scale; set `xscale: linear`")
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
    for name, item in _marks(panel):
        if "y" not in item or _size(item["y"]) is not None:
            raise ParameterError(name, f"{_where(panel)}: {dict(item)!r} needs one number y")


def _size(value: Any) -> int | None:
    """Return the number of items of a list; None for a single number."""
    return len(value) if isinstance(value, (list, tuple)) else None


def _check_reference(panel: Panel) -> None:
    """Check that reference curves exist, and that the metrics of a compression ratio are recorded."""
    options = TableOptions.of(panel)
    for name in ("saving_from", "ratio_from", "optimum_of"):
        wanted = getattr(options, name)
        if wanted is not None:
            layout.reference(panel, wanted, name)
    if options.ratio_from is not None:
        if options.reach is None:
            raise ParameterError("ratio_from", f"table '{panel.id}' needs reach: a multiple of the optimum")
        _check_metrics(panel, "ratio_from", ("cost", "optimum"))


def _check_cells(panel: Panel) -> None:
    table(panel).published()


def _check_cell_metrics(panel: Panel) -> None:
    _check_metrics(panel, "metrics", TableOptions.of(panel).metrics)


def _check_reach(panel: Panel) -> None:
    """Check that curves run along the axis of ``reach``."""
    name = TableOptions.of(panel).axis
    axis = axes.AXES.get(name)
    if axis is None:
        _check_metrics(panel, "axis", (name,))
    elif not axis.along:
        raise ParameterError("axis", f"table '{panel.id}': '{name}' is not an axis that curves run along")
    elif axis.divided:
        variables(panel)


def _check_embedding(panel: Panel) -> None:
    for curve in panel.curves:
        embedding(panel, curve)


def _check_score(panel: Panel) -> None:
    score = ScatterOptions.of(panel).score
    _check_metrics(panel, "score", (score,) if score else ())


def _check_arrays(panel: Panel) -> None:
    """Check that runs keep the arrays that a scatter panel names."""
    options = ScatterOptions.of(panel)
    arrays = list(dict.fromkeys(a for c in panel.curves for a in c.setting.artifacts))
    if options.align and options.align not in (*(c.label for c in panel.curves), *arrays):
        raise no_grouping(panel, options.align, arrays)
    for name in ("xy", "group", "truth"):
        array = getattr(options, name)
        if array and array not in arrays:
            known = f"{nearest(array, arrays)} (artifacts: {', '.join(arrays) or 'none'})"
            raise ParameterError(name, f"panel '{panel.id}': no run keeps the array '{array}'{known}")
    if not options.xy:
        raise no_coordinates(panel)


def no_grouping(panel: Panel, wanted: str, arrays: Iterable[str]) -> ParameterError:
    """Return the error of a scatter panel whose option ``align`` is neither a curve nor one of the ``arrays``."""
    valid = [*(c.label for c in panel.curves), *arrays]
    return ParameterError("align", f"panel '{panel.id}' has no curve or array '{wanted}'{nearest(wanted, valid)}")


def no_coordinates(panel: Panel) -> ParameterError:
    """Return the error of a scatter panel of arrays without an array of coordinates."""
    words = "the array of coordinates of its points, which `artifacts` keeps"
    return ParameterError("xy", f"panel '{panel.id}' needs options.xy: {words}")


def _check_metrics(panel: Panel, name: str, metrics: Iterable[str]) -> None:
    """Check that all these metrics, named by the option ``name``, are recorded."""
    recorded = list(dict.fromkeys(m for c in panel.curves for m in c.setting.metrics))
    for metric in metrics:
        if metric not in recorded:
            known = f"{nearest(metric, recorded)} (recorded: {', '.join(recorded)})"
            raise ParameterError(name, f"panel '{panel.id}': the metric '{metric}' is not recorded{known}")


_CHECKS: dict[str, tuple[Callable[[Panel], None], ...]] = {
    "curves": (_check_axis, _check_positions),
    "bars": (_check_bars, _check_heights),
    "table": (_check_reference, _check_cells, _check_cell_metrics, _check_reach),
    "scatter": (_check_embedding, _check_score, _check_arrays),
}
"""The checks of each kind of panel, after each option has a valid value."""
