"""Panels as a spec describes them: their kinds, options and axes, and what is refused before anything runs."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from fedrepro import registry
from fedrepro.errors import ParameterError
from fedrepro.glossary.entries import options_of
from fedrepro.plotting.figure import PREPARE
from fedrepro.spec import axes, layout, panels
from fedrepro.spec.nodes import SpecErrors
from fedrepro.spec.panels import BarsOptions, CurvesOptions, ScatterOptions, TableOptions
from fedrepro.spec.read import load

from .conftest import ROOT
from .panel_cases import curve, figure, panel

LINE = curve("fedcavg", "FedCAvg", Q2=1)
TABLE = {"rows": "algorithm", "columns": "dataset"}

# Axes -----------------------------------------------------------------------------------------------------------------


def test_each_axis_says_what_it_reads():
    reads = {name: (axis.reads.name, axis.columns, axis.claims) for name, axis in axes.AXES.items()}
    counts = ("round", "uplink_scalars", "uplink_bits", "downlink_scalars", "downlink_bits")
    assert reads == {
        **{name: ("COLUMN", (name,), True) for name in counts},
        "bits_per_variable": ("COLUMN", ("uplink_bits", "downlink_bits"), False),
        "seconds": ("TIMING", (), False),
        "serial_seconds": ("TIMING", (), False),
        "parameter": ("PARAMETER", (), False),
    }
    assert counts == axes.CLAIMED
    assert all(axis.label for axis in axes.AXES.values() if axis.along)


def test_x_is_an_axis_a_metric_or_a_parameter():
    assert axes.of(panel("a", LINE, x="downlink_bits")) is axes.AXES["downlink_bits"]
    accuracy = axes.of(panel("a", LINE, x="accuracy"))
    assert (accuracy.reads, accuracy.label) == (
        axes.Reads.METRIC,
        registry.problems()["clustering"].metrics["accuracy"].label,
    )
    assert [axes.of(panel("a", LINE, x=x)).along for x in ("accuracy", "seconds", "parameter", "Q2")] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("x", ["downlink_bits", "downlink_scalars", "uplink_bits", "seconds", "accuracy"])
def test_a_spec_may_use_every_axis(small: Path, x: str):
    small.write_text(small.read_text().replace("x: uplink_scalars", f"x: {x}"))
    assert load(small, "smoke").panels[1].x == x


def test_a_spec_with_another_axis_hears_the_nearest(small: Path):
    small.write_text(small.read_text().replace("x: uplink_scalars", "x: downlink_bit"))
    with pytest.raises(SpecErrors) as caught:
        load(small, "smoke")
    (message,) = caught.value.messages
    assert "'downlink_bit' is not an x axis, did you mean 'downlink_bits'? (valid: round, uplink_scalars," in message


def test_a_parameter_that_no_curve_varies_is_no_axis_and_is_called_so(small: Path):
    panel = "b: {x: m, curves: [{algorithm: fedcgds, m: 3}]}"
    small.write_text(small.read_text().replace("b: {like: a, x: uplink_scalars}", panel))
    with pytest.raises(SpecErrors) as caught:
        load(small, "smoke")
    (message,) = caught.value.messages
    assert ": no curve of the panel varies m, so it is not an x axis here  (in: b: {x: m," in message


# Options --------------------------------------------------------------------------------------------------------------

FULL = {
    CurvesOptions: {"parameter": "q", "final": 2, "average": "median", "lines": [{"y": 1}], "xlabel": "x",
                    "ylabel": "y", "variables": 3, "zoom": 0.1, "starts_at": 1},
    BarsOptions: {"parameter": "q", "final": 2, "average": "median", "lines": [{"y": 1}], "xlabel": "x", "ylabel": "y"},
    TableOptions: {"rows": "m", "columns": ["q", "m"], "metrics": ["a", "b"], "scale": 100, "digits": 0, "final": 2,
                   "reach": 1, "axis": "round", "from_start": True, "measure": "rounds", "saving_from": {"m": 1},
                   "variables": 2.5, "ratio_from": {"m": 1}, "optimum_of": {"q": 5}},
    ScatterOptions: {"columns": 2, "trial": 1, "score": "a", "xy": "e", "xy_from": "l", "group": "g", "truth": "t",
                     "align": "z"},
}  # fmt: skip


@pytest.mark.parametrize("kind", panels.KINDS)
def test_every_kind_is_drawn_and_explains_its_options(kind: str):
    cls = panels.KINDS[kind]
    assert kind in PREPARE
    assert cls.__doc__
    explained = options_of(kind)
    assert [e.name for e in explained] == list(FULL[cls])
    assert all(e.values and e.meaning for e in explained)
    given = cls.of(panel("a", LINE, kind=kind))
    assert [getattr(given, e.name) for e in explained] == [e.default for e in explained]
    assert cls.of(panel("a", LINE, kind=kind, options=dict.fromkeys(FULL[cls]))) == given, "null is the default"


@pytest.mark.parametrize("kind", panels.KINDS)
def test_every_option_takes_what_it_says_and_nothing_else(kind: str):
    cls = panels.KINDS[kind]
    read = cls.of(panel("a", LINE, kind=kind, options=FULL[cls]))
    for name, value in FULL[cls].items():
        shown = getattr(read, name)
        assert shown in (value, (value,)) or list(shown) == value
        with pytest.raises(ParameterError, match=f"^{name}: panel 'a': {name} must be "):
            cls.of(panel("a", LINE, kind=kind, options={name: object()}))


def test_options_are_read_with_their_types():
    table = TableOptions.of(panel("a", LINE, kind="table", options=FULL[TableOptions]))
    assert (table.rows, table.columns, table.metrics) == (("m",), ("q", "m"), ("a", "b"))
    assert (repr(table.scale), repr(table.reach), repr(table.digits)) == ("100.0", "1.0", "0")
    assert CurvesOptions.of(panel("a", LINE, options=FULL[CurvesOptions])).lines == ({"y": 1},)


WHOLE = "an integer of at least 1"
BAD = [
    ("curves", "variables", 0, "a number greater than 0"),
    ("curves", "variables", "3", "a number greater than 0"),
    ("curves", "average", "meen", "one of mean, mean-sd, median, median-trials"),
    ("curves", "lines", {"y": 1}, "a list of mappings"),
    ("curves", "xlabel", 3, "a text"),
    ("curves", "parameter", ["q"], "a name"),
    ("curves", "final", 0, WHOLE),
    ("curves", "final", True, WHOLE),
    ("curves", "zoom", 2, "a share of the x axis between 0 and 1"),
    ("curves", "zoom", 1.0, "a share of the x axis between 0 and 1"),
    ("bars", "final", 1.5, WHOLE),
    ("table", "rows", 3, "a name or a list of names"),
    ("table", "columns", ["a", 3], "a name or a list of names"),
    ("table", "scale", "100", "a number"),
    ("table", "scale", True, "a number"),
    ("table", "digits", -1, "an integer of at least 0"),
    ("table", "from_start", 1, "true or false"),
    ("table", "saving_from", "m", "a mapping of names to values"),
    ("scatter", "columns", 0, WHOLE),
    ("scatter", "truth", False, "a name"),
]


@pytest.mark.parametrize(("kind", "name", "value", "words"), BAD)
def test_a_value_an_option_cannot_have_is_named_with_those_it_can(kind: str, name: str, value: object, words: str):
    shown = panel("a", LINE, kind=kind, options={name: value})
    hint = ", did you mean 'mean'?" if value == "meen" else ""
    with pytest.raises(ParameterError) as caught:
        panels.KINDS[kind].of(shown)
    assert str(caught.value) == f"{name}: panel 'a': {name} must be {words}, not {value!r}{hint}"
    assert str(next(panels.problems(shown))) == str(caught.value)


# What is refused before anything runs ---------------------------------------------------------------------------------

KEPT = dataclasses.replace(LINE, setting=dataclasses.replace(LINE.setting, artifacts=("tsne", "labels")))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"options": {"variabels": 3}},
            "options: panel 'a' (curves) has no option 'variabels', did you mean 'variables'? "
            "(options: parameter, final, average, lines, xlabel, ylabel, variables, zoom, starts_at)",
        ),
        (
            {"x": "bits_per_variable"},
            "variables: panel 'a' counts bits_per_variable: give options.variables > 0",
        ),
        ({"x": "parameter"}, "parameter: panel 'a' has x: parameter; name it in options.parameter"),
        ({"x": "Q3"}, "Q3: curve 'FedCAvg' has no value of that name, did you mean 'Q2'?"),
        (
            {"options": {"variables": 3}, "x": "bits_per_variable", "kind": "bars"},
            "options: panel 'a' (bars) has no option 'variables' "
            "(options: parameter, final, average, lines, xlabel, ylabel)",
        ),
        (
            {"published": ({"z": 1},)},
            "published: panel 'a' (curves) takes mappings of label, algorithm, x, y, not {'z': 1}",
        ),
        ({"published": ({"y": "0.9"},)}, "published: panel 'a' (curves): y must be a number, not '0.9'"),
        ({"kind": "table"}, "rows: table 'a' needs options.rows: the select key or keys of its rows"),
        (
            {"kind": "table", "options": TABLE | {"rows": "algoritm"}},
            "rows: table 'a': no curve has 'algoritm', did you mean 'algorithm'?",
        ),
        (
            {"kind": "table", "options": TABLE, "published": ({"row": "FedCavg", "column": "mnist", "value": 1},)},
            "published: table 'a' has no row 'FedCavg', did you mean 'FedCAvg'? (it has 'FedCAvg')",
        ),
        (
            {"kind": "table", "options": TABLE, "curves": (LINE, curve("fedcavg", "other", Q2=5))},
            "rows: table 'a': curves 'FedCAvg' and 'other' have the same cell (row 'FedCAvg', column 'mnist'); "
            "name a value in rows or columns in which they differ",
        ),
        (
            {"kind": "table", "options": TABLE | {"reach": 1.0, "saving_from": {"Q2": 7}}},
            "saving_from: table 'a' has no curve with Q2=7",
        ),
        (
            {"kind": "table", "options": TABLE | {"reach": 1.5, "ratio_from": {"Q2": 7}}},
            "ratio_from: table 'a' has no curve with Q2=7",
        ),
        (
            {"kind": "table", "options": TABLE | {"ratio_from": {"Q2": 1}}},
            "ratio_from: table 'a' needs reach: a multiple of the optimum",
        ),
        (
            {"kind": "table", "options": TABLE | {"reach": 1.5, "ratio_from": {"Q2": 1}}},
            "ratio_from: panel 'a': the metric 'cost' is not recorded (recorded: objective, accuracy)",
        ),
        (
            {"kind": "bars", "x": "dataset", "published": ({"label": "FedCAvg", "x": "mnst", "y": 1},)},
            "published: no bar has x 'mnst', did you mean 'mnist'? (there are 'mnist')",
        ),
        (
            {"options": {"lines": [{"y": 1, "labl": "a"}]}},
            "lines: panel 'a' (curves) takes mappings of label, algorithm, x, y, not {'y': 1, 'labl': 'a'}",
        ),
        (
            {"published": ({"y": 1, "algorithm": "fedcavgs"},)},
            "published: panel 'a' (curves): 'fedcavgs' is not an algorithm, did you mean 'fedcavg'?",
        ),
        (
            {"published": ({"label": "best"},)},
            "published: panel 'a' (curves): {'label': 'best'} needs x or y, or both",
        ),
        (
            {"published": ({"x": [1, 2], "y": [1]},)},
            "published: panel 'a' (curves): {'x': [1, 2], 'y': [1]} needs as many values of x as of y",
        ),
        (
            {"options": {"lines": [{"y": [1, 2]}]}},
            "lines: panel 'a' (curves): {'y': [1, 2]} needs as many values of x as of y",
        ),
        (
            {"kind": "bars", "x": "dataset", "published": ({"label": "FedCAvg", "x": "mnist"},)},
            "published: panel 'a' (bars): {'label': 'FedCAvg', 'x': 'mnist'} needs one number y",
        ),
        (
            {"kind": "bars", "x": "dataset", "published": ({"x": "mnist", "y": 1},)},
            "published: no bar has label '' (there are 'FedCAvg')",
        ),
        (
            {"kind": "bars", "x": "datset"},
            "datset: curve 'FedCAvg' has no value of that name, did you mean 'dataset'?",
        ),
        (
            {"kind": "bars", "x": "dataset", "options": {"lines": [{"y": 1, "x": 2}]}},
            "lines: panel 'a' (bars) takes mappings of label, y, not {'y': 1, 'x': 2}",
        ),
        (
            {"kind": "table", "options": TABLE, "published": ({"row": "FedCAvg", "column": "mnist"},)},
            "published: table 'a': {'row': 'FedCAvg', 'column': 'mnist'} needs one value",
        ),
        (
            {"kind": "table", "options": {"rows": "algorithm"}},
            "columns: table 'a' needs options.columns: the select key or keys of its columns",
        ),
        (
            {"kind": "table", "options": TABLE | {"metrics": ["acuracy"], "columns": "metric"}},
            "metrics: panel 'a': the metric 'acuracy' is not recorded, did you mean 'accuracy'? "
            "(recorded: objective, accuracy)",
        ),
        (
            {"kind": "table", "options": TABLE | {"reach": 1, "axis": "uplink_bit"}},
            "axis: panel 'a': the metric 'uplink_bit' is not recorded (recorded: objective, accuracy)",
        ),
        (
            {"kind": "table", "options": TABLE | {"reach": 1, "axis": "parameter"}},
            "axis: table 'a': 'parameter' is not an axis that curves run along",
        ),
        (
            {"kind": "table", "options": TABLE | {"reach": 1, "axis": "bits_per_variable"}},
            "variables: panel 'a' counts bits_per_variable: give options.variables > 0",
        ),
        (
            {"kind": "scatter", "options": {"xy_from": "FedCAv"}},
            "xy_from: panel 'a' has no curve 'FedCAv', did you mean 'FedCAvg'?",
        ),
        (
            {"kind": "scatter", "options": {"score": "nmi"}},
            "score: panel 'a': the metric 'nmi' is not recorded (recorded: objective, accuracy)",
        ),
        (
            {"kind": "scatter", "options": {"xy": "tsne"}},
            "xy: panel 'a': no run keeps the array 'tsne' (artifacts: none)",
        ),
        (
            {"kind": "scatter", "options": {"xy": "tsne", "group": "label"}, "curves": (KEPT,)},
            "group: panel 'a': no run keeps the array 'label', did you mean 'labels'? (artifacts: tsne, labels)",
        ),
        (
            {"kind": "scatter", "options": {"xy": "tsne", "align": "label"}, "curves": (KEPT,)},
            "align: panel 'a' has no curve or array 'label', did you mean 'labels'?",
        ),
        (
            {"kind": "scatter", "curves": (KEPT,)},
            "xy: panel 'a' needs options.xy: the array of coordinates of its points, which `artifacts` keeps",
        ),
        (
            {"kind": "scatter"},
            "xy: panel 'a' needs options.xy: the array of coordinates of its points, which `artifacts` keeps",
        ),
        (
            {"kind": "bars", "xscale": "log"},
            "xscale: panel 'a': groups of bars have no scale; set `xscale: linear`",
        ),
        (
            {"kind": "scatter", "published": ({"y": 1},)},
            "published: panel 'a' (scatter) takes mappings of nothing, not {'y': 1}",
        ),
    ],
)
def test_errors_say_what_is_wrong_before_anything_runs(given: dict, message: str):
    given = {"curves": (LINE,), **given}
    shown = figure(panel("fine", LINE), panel("a", *given.pop("curves"), **given))
    with pytest.raises(ParameterError) as caught:
        panels.check_panel(shown.panels[1])
    assert str(caught.value) == message
    assert message in map(str, panels.problems(shown.panels[1]))


def test_all_problems_of_a_panel_are_found_at_once():
    wrong = panel("a", LINE, options={"zoom": 2, "finl": 1, "lines": [{"z": 1}]}, published=({"y": "1"},))
    assert [error.name for error in panels.problems(wrong)] == ["zoom", "options", "published", "lines"]
    table = panel("a", LINE, kind="table", options=TABLE | {"axis": "a", "saving_from": {"m": 1}, "metrics": "b"})
    assert [error.name for error in panels.problems(table)] == ["saving_from", "metrics", "axis"]
    assert list(panels.problems(panel("a", LINE))) == []


def test_a_value_that_moves_along_with_the_swept_one_starts_no_new_line():
    curves = [curve("fedmc-admm", f"lam={v}", lam=v, gam=10 * v, N=n) for n in (5, 10) for v in (1e-3, 1e-2)]
    found = layout.lines(curves, "lam")
    assert [len(members) for members in found.values()] == [2, 2]
    assert [label.split()[-1] for label in found] == ["N=5", "N=10"]


def test_reading_a_spec_loads_neither_drawing_nor_pandas():
    """A spec is validated by every command; the libraries that draw take longer to load than it does to check it."""
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from fedrepro.spec.read import load\n"
        "for name in ('fedmf/fig7', 'gcca/table1', 'beyond/imc_theory'):\n"
        "    load(Path(f'experiments/{name}.yaml'), 'smoke')\n"
        "loaded = {'pandas', 'matplotlib', 'fedrepro.plotting'} & set(sys.modules)\n"
        "sys.exit(str(loaded) if loaded else 0)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
