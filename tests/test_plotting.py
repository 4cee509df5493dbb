"""Drawing: pictures show what the results contain, and nothing hides anything else."""

from __future__ import annotations

import ast
import dataclasses
import functools
import graphlib
import itertools
import math
import re
from pathlib import Path
from typing import Any

import fontTools.subset
import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.text import Text
from PIL import Image

from fedrepro import registry
from fedrepro.errors import ParameterError, UserError
from fedrepro.plotting import lines, naming, scatter, series, single_panel, style, tables, y_limits
from fedrepro.plotting.figure import METADATA, _grouped, prepare
from fedrepro.plotting.header_footer import caption, footer, footer_parts, sidecar_of, tags
from fedrepro.plotting.legend import _rows_of_kin, arrange
from fedrepro.plotting.panel_axes import Entry, Prepared, Room
from fedrepro.plotting.series import Average, FigureData, Trial
from fedrepro.report import end_values, pictures
from fedrepro.results.schema import Content, Sidecar, Timing
from fedrepro.spec import axes, panels
from fedrepro.spec.find import specs
from fedrepro.spec.model import Curve, Figure
from fedrepro.spec.read import load

from . import panel_cases, project_specs
from .conftest import ROOT
from .panel_cases import build, curve, draw, figure, panel, rows

HOUSE = ROOT / "fedrepro"

# Made-up figures ------------------------------------------------------------------------------------------------------


def failed(line: Curve, trial: int) -> pd.DataFrame:
    return rows(line, trial, [0], [np.nan], metric="", status="failed").assign(round=np.nan, metric=np.nan)


def grid(rounds: int = 500) -> np.ndarray:
    return np.unique(np.concatenate([np.arange(20), np.arange(20, rounds + 1, 5)]))


def decay(
    line: Curve, trials: int, rate: float, floor: float, noise: float = 0.04, cost: int = 40000
) -> list[pd.DataFrame]:
    tables_ = []
    for trial in range(1, trials + 1):
        rng = np.random.default_rng([trial, len(line.setting.series)])
        level = floor * (1 + noise * rng.standard_normal())
        s = grid()
        tables_.append(rows(line, trial, s, level + (0.95 - level) * np.exp(-rate * s**0.6), cost=cost))
    return tables_


SIZES = (10, 30, 50, 70, 100)


def fig5(**changes: object) -> tuple[Figure, pd.DataFrame]:
    """Four panels, six curves of two methods, three trials; round and communication cost side by side."""
    panels, tables_ = [], []
    for dataset, letters in (("mnist_ubls", "ab"), ("mnist_bals", "cd")):
        lines = [curve("fedcavg", "FedCAvg", dataset=dataset, Q1=10)]
        lines += [curve("fedcgds", f"FedCGds m={m}", dataset=dataset, m=m) for m in SIZES]
        for letter, x in zip(letters, ("round", "uplink_scalars"), strict=True):
            panels.append(panel(letter, *lines, title=f"{dataset}, {x}", x=x, yscale="log"))
        tables_ += decay(lines[0], 3, 0.10, 0.33, cost=4_000_000)
        for line, m in zip(lines[1:], SIZES, strict=True):
            tables_ += decay(line, 3, 0.08 + 0.002 * m, 0.30 - 0.0004 * m, cost=40400 * m)
    return figure(*panels, **changes), pd.concat(tables_)


def sweep_of_one_method() -> tuple[Figure, pd.DataFrame]:
    """Six curves of one method, and a grid of two parameters of another beside it."""
    curves = [curve("fedcavg", f"FedCAvg Q2={q}", Q2=q) for q in (1, 5, 10, 20, 50, 100)]
    two = [curve("fedcgds", f"FedCGds Q1={a} Q2={b}", Q1=a, Q2=b) for a in (10, 100) for b in (1, 20, 50, 100)]
    tables_ = [t for i, line in enumerate(curves) for t in decay(line, 3, 0.05 + 0.03 * i, 0.35 + 0.02 * i)]
    tables_ += [t for i, line in enumerate(two) for t in decay(line, 1, 0.05 + 0.03 * i, 0.35 - 0.02 * i)]
    return figure(panel("a", *curves, yscale="log", title="sweep"), panel("b", *two, title="grid")), pd.concat(tables_)


def troubled() -> tuple[Figure, pd.DataFrame, Sidecar]:
    """A transient blow-up, a diverged run, one diverged trial of three, a failed curve, a missing one, a level."""
    calm = curve("fedcavg", "FedCAvg Q2=1", Q2=1)
    burst = curve("fedcavg", "FedCAvg Q2=100", Q2=100)
    gone = curve("fedcpalm", "FedCPALM Q=200", Q=200)
    third = curve("fedcgds", "FedCGds m=10", m=10)
    broken = curve("fedcgds", "FedCGds m=1", m=1)
    absent = curve("sncp", "SNCP")
    level = curve("kmeans++", "K-means++", role="level")
    s = grid()
    tables_ = decay(calm, 3, 0.1, 0.45, noise=0.002)
    blow = 0.5 + 170 * s * np.exp(-(((s - 6) / 4.0) ** 2)) / 6 + 0.45 * np.exp(-s / 60)
    tables_ += [rows(burst, t, s, blow * (1 + 0.01 * t)) for t in (1, 2, 3)]
    up = 0.95 * np.exp(np.minimum(0.15 * s[:60], 60))
    up[55:] = np.inf
    tables_ += [rows(gone, t, s[:60], up * t, status="diverged") for t in (1, 2, 3)]
    tables_ += decay(third, 2, 0.15, 0.40, noise=0.01)
    tables_ += [rows(third, 3, s[:40], 0.9 + 0.01 * s[:40], status="diverged")]
    tables_ += [failed(broken, t) for t in (1, 2, 3)]
    tables_ += [rows(level, t, [0], [0.47 + 0.004 * t]) for t in (1, 2, 3)]
    missing = ("sncp @ mnist: the data file is absent", f"{broken.setting.series}: 0 of 3 trials")
    sidecar = Sidecar(complete=False, trials_done=0, trials_wanted=3, missing=missing)
    lines = (calm, burst, gone, third, broken, absent, level)
    return figure(panel("a", *lines, yscale="log"), tier="quick"), pd.concat(tables_), sidecar


TABLE_I = {
    ("KM", "syn"): 69.4, ("KM", "TCGA"): 50.1, ("BEL", "syn"): 38.7, ("BEL", "TCGA"): 42.0,
    ("fedmgs 10", "syn"): 88.4, ("fedmgs 10", "TCGA"): 67.7, ("fedmgs 100", "syn"): 87.7, ("fedmgs 100", "TCGA"): 72.2,
}  # fmt: skip


def table_i() -> tuple[Figure, pd.DataFrame]:
    lines = [curve("KM", "KM", dataset=d) for d in ("syn", "TCGA")] + [
        curve("BEL", "BEL", dataset=d) for d in ("syn", "TCGA")
    ]
    lines += [curve("fedmgs", f"m={m} {d}", m=m, dataset=d) for m in (10, 100) for d in ("syn", "TCGA")]
    published = tuple({"row": r, "column": c, "value": v} for (r, c), v in TABLE_I.items())
    options = {"rows": ["algorithm", "m"], "columns": "dataset", "scale": 100, "digits": 1}
    shown = panel("t", *lines, kind="table", y="accuracy", published=published, options=options)
    tables_ = []
    for i, line in enumerate(lines):
        if line.label == "m=100 TCGA":
            tables_ += [rows(line, t, [0, 1], [0.1, np.nan], "accuracy", "diverged") for t in (1, 2, 3)]
            continue
        tables_ += [rows(line, t, [0, 1], [0.1, 0.4 + 0.05 * i + 0.01 * t], "accuracy") for t in (1, 2, 3)]
    return figure(shown, figure="table1", title="Table I: clustering accuracy (%)"), pd.concat(tables_)


def scatter_figure(arrays: bool = False) -> tuple[Figure, pd.DataFrame, pd.DataFrame]:
    names = ("KM||", "BEL", "CAL", "FedMAvg", "FedMGS")
    lines = [curve(name.lower(), name) for name in names]
    rng = np.random.default_rng(0)
    K, n = 12, 900
    truth = rng.integers(0, K, n)
    xy = 6 * rng.standard_normal((K, 2))[truth] + rng.standard_normal((n, 2))
    parts, results = [], []
    for i, line in enumerate(lines):
        mixed = np.where(rng.random(n) < 0.12 * (5 - i), rng.integers(0, K, n), truth)
        clusters = (mixed + 3 * i) % K if arrays else mixed
        base = pd.DataFrame({"series": line.setting.series, "trial": 1, "index": np.arange(n)})
        if arrays:
            parts += [base.assign(array="tsne", v0=xy[:, 0], v1=xy[:, 1])]
            parts += [base.assign(array="found", v0=clusters), base.assign(array="labels", v0=truth)]
        else:
            parts += [base.assign(x=xy[:, 0], y=xy[:, 1], group=clusters)]
        results.append(rows(line, 1, [0, 1], [0.1, np.mean(mixed == truth)], "accuracy"))
    options = {"score": "accuracy"} | ({"xy": "tsne", "group": "found", "align": "labels"} if arrays else {})
    shown = panel("a", *lines, kind="scatter", y="accuracy", title="TCGA, t-SNE", options=options)
    return figure(shown, title="Clusters found", columns=1), pd.concat(results), pd.concat(parts)


def timed() -> tuple[Figure, pd.DataFrame, Sidecar]:
    """Objective against time, a sweep over N of one method; trials have different clocks."""
    lines = [curve("fedmc-admm", f"FedMC-ADMM N={n}", N=n) for n in (5, 10, 15, 20, 25, 30)]
    tables_ = [t for i, line in enumerate(lines) for t in decay(line, 3, 0.2 - 0.02 * i, 0.3)]
    rounds = tuple(grid().tolist())
    timing = {
        line.setting.series: {
            t: Timing(rounds, tuple((grid() * (0.01 + 0.004 * i) * (1 + 0.1 * t)).tolist())) for t in (1, 2, 3)
        }
        for i, line in enumerate(lines)
    }
    shown = [panel(p, *lines, x="seconds", yscale="log", title=t) for p, t in (("a", "objective"), ("b", "test RMSE"))]
    return (
        figure(*shown, title="Number of local steps N", columns=2),
        pd.concat(tables_),
        dataclasses.replace(WHOLE, timing=timing),
    )


def swept() -> tuple[Figure, pd.DataFrame]:
    """Final excess risk against sigma_b for three methods, with a theory level and published marks."""
    sigmas = (0.0, 0.5, 1.0, 2.0, 4.0)
    lines = [
        curve(a, f"{a} sigma_b={s}", sigma_b=s, n=10) for a in ("personal-fedavg", "perfedsi", "local") for s in sigmas
    ]
    level = curve("shift-theory", "theory", role="level")
    tables_ = [rows(level, t, [0], [0.5]) for t in range(1, 6)]
    for line in lines:
        s = float(line.select["sigma_b"])
        value = {"personal-fedavg": s**2 / 2 + 0.01, "perfedsi": 0.01, "local": 0.4 + s**2 / 4}[line.setting.algorithm]
        tables_ += [rows(line, t, [0, 1, 2], [9.0, value, value * (1 + 0.1 * t)]) for t in range(1, 6)]
    marks = ({"x": [1.0, 2.0], "y": [0.52, 2.07], "label": "no z"}, {"y": 0.02, "label": "bound"})
    shown = panel("a", *lines, level, x="sigma_b", published=marks, options={"final": 2})
    return figure(shown, title="Excess risk", trials=5, wanted_trials=5), pd.concat(tables_)


METHODS = ("perfedsi", "personal-fedavg", "ditto", "local")


def barred() -> tuple[Figure, pd.DataFrame]:
    lines = [curve(a, a, dataset=d) for d in ("omniglot50", "omniglot500") for a in METHODS]
    tables_ = [
        rows(line, t, [0, 1], [0.0, 0.4 + 0.05 * i + 0.01 * t], "accuracy")
        for i, line in enumerate(lines)
        for t in (1, 2, 3)
    ]
    marks = ({"x": "omniglot50", "label": called("personal-fedavg"), "y": 0.5},)
    shown = panel("a", *lines, kind="bars", x="dataset", y="accuracy", published=marks)
    return figure(shown, title="Accuracy after the last round"), pd.concat(tables_)


CAVEATS = Sidecar(
    complete=False,
    trials_done=2,
    trials_wanted=10,
    stand_ins=("tcga",),
    missing=("fedcgds m=70 @ mnist_ubls: 1 of 10 trials",),
    datasets=(
        Content("mnist", "present"),
        Content("tcga", "stand-in"),
        Content("tdt2", "variant", note="a copy with 9394 documents"),
        Content("synthetic", "none needed"),
    ),
)
WHOLE = Sidecar(trials_done=3, trials_wanted=3)


def caveated() -> tuple[Figure, pd.DataFrame, Sidecar]:
    """Stand-in and variant data, 2 of 10 trials, quick tier, and a title too long for one line."""
    title = "FedCAvg and FedCGds on MNIST, unbalanced and balanced: objective against rounds and communication cost"
    drawn, frame = fig5(tier="quick", title=title, trials=10, wanted_trials=10, paper_trials=10)
    return drawn, frame[frame["trial"] <= 2], CAVEATS


def crowded() -> tuple[Figure, pd.DataFrame, Sidecar]:
    """One narrow panel with every tag at once, long labels and a long title of its own."""
    lines = [
        curve("fedmgs", f"FedMGS with partial communication, m={m} of 100 clients, Q1=10, Q2=100", m=m) for m in (1, 5)
    ]
    lines += [curve("optimal", "optimal value v* from the eigenvalues of all views together", role="level")]
    tables_ = [t for line in lines for t in decay(line, 2, 0.1, 0.3)]
    title = "A panel whose title is much longer than the panel is wide, so that it must be broken"
    shown = panel("a", *lines, title=title, x="uplink_scalars")
    sidecar = dataclasses.replace(CAVEATS, sets=("rounds=100", "datasets.syn.N=1000"))
    return figure(shown, shown, shown, tier="smoke", columns=3), pd.concat(tables_), sidecar


def narrow() -> tuple[Figure, pd.DataFrame, Sidecar]:
    """The first panel of the crowded figure alone: five tags in less width than they need on one line."""
    shown, frame, sidecar = crowded()
    return dataclasses.replace(shown, panels=shown.panels[:1]), frame, sidecar


@functools.cache
def made(name: str):
    """figure, frame, sidecar, points of a made-up figure by name."""
    drawn, frame, *rest = MAKERS[name]()
    sidecar = next((r for r in rest if isinstance(r, Sidecar)), WHOLE)
    points = next((r for r in rest if isinstance(r, pd.DataFrame)), None)
    return drawn, frame.reset_index(drop=True), sidecar, points


@functools.cache
def picture(name: str):
    """The matplotlib figure of a made-up figure, laid out."""
    result = build(*made(name))
    with style.context():
        result.canvas.draw()
    return result


MAKERS = {
    "fig5": fig5,
    "sweep": sweep_of_one_method,
    "troubled": troubled,
    "table": table_i,
    "scatter": scatter_figure,
    "arrays": functools.partial(scatter_figure, arrays=True),
    "timed": timed,
    "swept": swept,
    "barred": barred,
    "caveated": caveated,
    "crowded": crowded,
    "narrow": narrow,
}


def axes_of(name: str) -> list:
    """The axes that show data, in reading order."""
    return [ax for ax in picture(name).axes if ax.axison]


def legends(name: str) -> list:
    return [ax.get_legend() for ax in picture(name).axes if ax.get_legend() is not None]


def called(algorithm: str) -> str:
    """What a reader sees: the registered label, or the name itself where the method is not registered."""
    entry = registry.methods().get(algorithm)
    return entry.label if entry else algorithm


def labels(name: str) -> list[list[str]]:
    return [[t.get_text() for t in legend.get_texts()] for legend in legends(name)]


def texts(name: str, gid: str) -> list[str]:
    return [t.get_text() for t in picture(name).texts if t.get_gid() == gid]


def footer_of(name: str) -> str:
    return texts(name, "footer")[0].replace("\n", " ")


def footer_text(shown) -> str:
    return next(t.get_text() for t in shown.texts if t.get_gid() == "footer").replace("\n", " ")


def line_of(ax, label: str):
    return next(line for line in ax.lines if line.get_label() == label)


# The house ------------------------------------------------------------------------------------------------------------


def imports_of(path: Path) -> set[str]:
    """The modules of drawing and of specs that a module imports, inside functions too."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("fedrepro.plotting", "fedrepro.spec")):
            modules |= {str(node.module), *(f"{node.module}.{name.name}" for name in node.names)}
    return modules


def test_drawing_and_specs_have_no_import_cycle_and_specs_know_nothing_of_drawing():
    modules = {
        f"fedrepro.{p.parent.name}.{p.stem}": p for f in ("plotting", "spec") for p in HOUSE.glob(f"{f}/[a-z]*.py")
    }
    graph = {name: imports_of(path) & set(modules) for name, path in modules.items()}
    assert graph["fedrepro.plotting.figure"] >= {f"fedrepro.plotting.{m}" for m in ("curves", "sweep", "tables")}
    tuple(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError
    up = [(a, b) for a in graph for b in graph[a] if a.startswith("fedrepro.spec") and "plotting" in b]
    assert not up


# Nothing hides anything -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKERS)
def test_nothing_is_cut_off_and_nothing_overlaps(name):
    shown = picture(name)
    renderer = shown.canvas.get_renderer()
    parts = [(f"legend {i}", legend.get_window_extent(renderer)) for i, legend in enumerate(legends(name))]
    parts += [(t.get_text(), t.get_window_extent(renderer)) for t in shown.texts]
    parts += [(f"axes {i}", ax.get_tightbbox(renderer)) for i, ax in enumerate(shown.axes) if ax.axison]
    for text, box in parts:
        assert min(box.x0, box.y0) >= -1, f"{text} is cut off"
        assert box.x1 <= shown.bbox.width + 1, f"{text} is cut off"
        assert box.y1 <= shown.bbox.height + 1, f"{text} is cut off"
    for i, (this, a) in enumerate(parts):
        for other, b in parts[i + 1 :]:
            shared = (min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0))
            assert min(shared) <= 1, f"{this} lies on {other}"


@pytest.mark.parametrize("name", MAKERS)
def test_letters_are_large_and_lines_thick_enough_to_read(name):
    shown = picture(name)
    words = [t for t in shown.findobj(Text) if t.get_text().strip() and t.get_visible()]
    assert min(t.get_fontsize() for t in words) >= 8
    lines = [
        line for ax in axes_of(name) for line in ax.lines if line.get_linestyle() != "None" and len(line.get_xdata())
    ]
    assert min((line.get_linewidth() for line in lines), default=9) >= 1.0


# Curves ---------------------------------------------------------------------------------------------------------------


def test_panels_have_letters_registered_axis_labels_and_the_scales_of_the_spec():
    axes = axes_of("fig5")
    assert [ax.get_title(loc="left")[:3] for ax in axes] == ["(a)", "(b)", "(c)", "(d)"]
    assert axes[0].get_xlabel() == "communication round"
    assert axes[1].get_xlabel() == "communication cost (real numbers sent up) / $10^{9}$"
    assert axes[1].xaxis.get_major_formatter()(1.5e9, 0) == "1.5"
    assert axes[0].get_ylabel() == registry.problems()["clustering"].metrics["objective"].label
    assert {ax.get_yscale() for ax in axes} == {"log"}
    assert {ax.get_xscale() for ax in axes} == {"linear"}


@pytest.mark.parametrize("y", ["linear", "log"])
@pytest.mark.parametrize("x", ["linear", "log"])
def test_a_panel_of_each_kind_has_the_scales_of_its_spec(x, y):
    line = curve("fedcavg", "FedCAvg")
    points = [curve("fedcgds", f"m={m}", m=m) for m in (1, 10, 100)]
    frame = pd.concat([rows(item, 1, [0, 1, 2, 3], [4.0, 3.0, 2.0, 1.0]) for item in (line, *points)])
    shown = figure(panel("a", line, xscale=x, yscale=y), panel("b", *points, x="m", xscale=x, yscale=y))
    axes = [ax for ax in build(shown, frame, WHOLE).axes if ax.axison]
    assert [(ax.get_xscale(), ax.get_yscale()) for ax in axes] == [(x, y), (x, y)]


def test_a_file_takes_one_drawing_and_a_formula_is_set_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib import _mathtext
    from matplotlib.figure import Figure as Picture
    from matplotlib.mathtext import MathTextParser

    calls: list[str] = []

    def counted(kind: type, name: str) -> None:
        plain = getattr(kind, name)

        def call(self: object, *given: object) -> object:
            calls.append(kind.__name__)
            return plain(self, *given)

        monkeypatch.setattr(kind, name, call)

    counted(Picture, "draw")
    counted(_mathtext.Parser, "parse")
    line = curve("fedmgs", "FedMGS")
    results = pd.concat(decay(line, 3, 0.05, 0.3))
    own, parse = figure(panel("a", line, yscale="log", title="$\\hat{Q}_{3}$")), MathTextParser.parse
    draw(own, results, Sidecar(), tmp_path / "x", ("png", "pdf", "svg"))
    assert calls.count("Figure") == 3
    assert calls.count("Parser") > 0
    calls.clear()
    draw(own, results, Sidecar(), tmp_path / "y", ("png", "pdf", "svg"))
    assert (calls.count("Figure"), calls.count("Parser")) == (3, 0)
    assert MathTextParser.parse is parse
    for name in ("png", "pdf", "svg"):
        assert (tmp_path / f"x.{name}").read_bytes() == (tmp_path / f"y.{name}").read_bytes()


def test_curve_is_the_mean_over_trials_and_the_band_its_smallest_and_largest_value():
    drawn, frame, _, _ = made("fig5")
    line = drawn.panels[1].curves[2]
    ours = frame[(frame["series"] == line.setting.series) & (frame["metric"] == "objective")]
    ours = ours.groupby("uplink_scalars")["value"].agg(["mean", "min", "max"])
    ax = axes_of("fig5")[1]
    shown = line_of(ax, "FedCGds, $m$ = 30")
    np.testing.assert_allclose(shown.get_xdata(), ours.index)
    np.testing.assert_allclose(shown.get_ydata(), ours["mean"])
    band = [c for c in ax.collections if isinstance(c, PolyCollection)][2]
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((ours["min"].min(), ours["max"].max()))
    assert to_hex(band.get_facecolor()[0]) == to_hex(shown.get_color())
    assert "band: min–max" in footer_of("fig5")


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_lines_and_bands_follow_from_the_rows_whatever_became_of_the_trials(scale):
    """For one to six trials, of which one ends by itself and one diverges, by loops over the rows."""
    rng, lines_, frames = np.random.default_rng(5), [], []
    for healthy in (1, 2, 3, 4, 6):
        line = curve("fedcgds", f"m={healthy}", m=healthy)
        for trial in range(1, healthy + 2):
            rounds = [0, 1, 2, 5, 9, 20][: 4 if trial == healthy else 6]
            values = np.exp(1.2 * rng.standard_normal(len(rounds)))
            state = "diverged" if trial == 1 else "ok"
            frames.append(rows(line, trial, rounds, values, status=state, cost=1000 + trial))
        lines_.append(line)
    frame, shown = pd.concat(frames), panel("a", *lines_, yscale=scale)
    (ax,) = (ax for ax in build(figure(shown), frame, WHOLE).axes if ax.axison)
    bands = [c for c in ax.collections if isinstance(c, PolyCollection)]
    assert len(bands) == 4, "one trial has no band"
    for healthy, line in zip((1, 2, 3, 4, 6), lines_, strict=True):
        mean_line = line_of(ax, f"m={healthy} (1 of {healthy + 1} diverged)")
        own = frame[(frame["series"] == line.setting.series) & (frame["status"] == "ok")]
        places = {}
        for r in (0, 1, 2, 5, 9, 20):
            values = []
            for trial in range(2, healthy + 2):
                run = own[(own["trial"] == trial) & (own["round"] <= r)]
                values.append(run.sort_values("round")["value"].iloc[-1])
            mean = sum(values) / healthy
            low, high = min(values), max(values)
            if healthy > 3:
                sd = math.sqrt(sum((v - mean) ** 2 for v in values) / (healthy - 1))
                keeps = mean - sd > (low if scale == "log" else 0)
                low, high = mean - sd if keeps else low, mean + sd
            places[r] = (mean, low, high)
        np.testing.assert_allclose(mean_line.get_xdata(), list(places))
        np.testing.assert_allclose(mean_line.get_ydata(), [mean for mean, _, _ in places.values()])
        if healthy > 1:
            vertices = bands.pop(0).get_paths()[0].vertices
            for r, (_, low, high) in places.items():
                heights = vertices[vertices[:, 0] == r, 1]
                assert (heights.min(), heights.max()) == (pytest.approx(low), pytest.approx(high))


def test_four_equal_panels_share_one_legend_and_different_ones_have_their_own():
    assert labels("fig5") == [["FedCAvg", *(f"FedCGds, $m$ = {m}" for m in SIZES)]]
    assert [entry[0] for entry in labels("sweep")] == ["FedCAvg, $Q_2$ = 1", "FedCGds, $Q_1$ = 10, $Q_2$ = 1"]


def entries_of(*names: str) -> Prepared:
    return Prepared((4.0, 3.0), tuple(Entry(n, {}) for n in names))


@pytest.mark.parametrize(
    ("rows_", "expected"),
    [
        ("aa/aa", [[], [(0, 2)]]),
        ("aa/bb", [[(0, 2)], [(0, 2)]]),
        ("ab/ab", [[(0, 1), (1, 2)], [(0, 1), (1, 2)]]),
        ("aab/bbb", [[(0, 2), (2, 3)], [(0, 3)]]),
        ("aaa/aa", [[], [(0, 3)]]),
        ("aa/a", [[], [(0, 2)]]),
        ("ab/b", [[(0, 1), (1, 2)], [(0, 1)]]),
    ],
)
def test_neighbours_with_equal_curves_share_a_legend(rows_, expected):
    grid_ = [[entries_of(letter) for letter in row] for row in rows_.split("/")]
    found = arrange(grid_, [4.0] * len(grid_[0]))
    assert [[(legend.start, legend.stop) for legend in strip] for strip in found] == expected


def test_carries_the_last_value_of_a_stopped_trial_forward_but_not_of_a_diverged_one():
    stopped = Trial(1, "ok", np.array([0.0, 10.0]), np.array([4.0, 2.0]))
    full = Trial(2, "ok", np.array([0.0, 10.0, 20.0]), np.array([6.0, 4.0, 1.0]))
    diverged = Trial(3, "diverged", np.array([0.0, 10.0]), np.array([9.0, 1e9]))
    average = series.average([stopped, full, diverged])
    assert average is not None
    np.testing.assert_array_equal(average.x, [0, 10, 20])
    np.testing.assert_array_equal(average.mean, [5, 3, 1.5])
    assert series.average([diverged]) is None


def test_band_is_one_standard_deviation_above_three_trials_and_never_leaves_a_log_axis():
    four = np.array([[1.0, 0.01], [2.0, 0.01], [3.0, 0.01], [4.0, 9.0]])
    centre, low, high, name = series.spread(four)
    sd = four.std(axis=0, ddof=1)
    assert name == "±1 sd"
    np.testing.assert_allclose(high, centre + sd)
    np.testing.assert_allclose(low, [centre[0] - sd[0], 0.01])
    assert series.spread(four[:3])[3] == "min–max"
    centre, low, high, name = series.spread(four[:3], "mean-sd")
    assert name == "±1 sd"
    np.testing.assert_allclose((high - centre)[0], np.std(four[:3, 0], ddof=1))
    assert series.spread(four[:1])[3] == ""
    centre, low, high, name = series.spread(four, "median")  # a median goes with the range, however many trials
    assert name == "min–max"
    np.testing.assert_allclose([centre, low, high], [[2.5, 0.01], [1.0, 0.01], [4.0, 9.0]])
    close = np.array([[1.0], [1.0], [1.0], [4.1]])  # 1.775 - 1.55 is above 0, and far below 1 on a log axis
    assert series.spread(close)[1][0] == pytest.approx(0.225)
    assert series.spread(close, log=True)[1][0] == 1.0


def test_two_kinds_of_band_say_whose_they_are():
    many, few = curve("fedcavg", "FedCAvg"), curve("fedcgds", "FedCGds")
    frame = pd.concat(
        [rows(many, t, [0, 1], [2.0, t]) for t in range(1, 6)] + [rows(few, t, [0, 1], [2.0, t]) for t in (1, 2)]
    )

    def said(*panels):
        return footer_text(build(figure(*panels), frame, WHOLE))

    both = said(panel("a", many, few))
    assert "a: band of FedCAvg: ±1 sd" in both
    assert "a: band of FedCGds: min–max" in both
    apart = said(panel("a", many), panel("b", few), panel("c", many))
    assert "a, c: band: ±1 sd · b: band: min–max" in apart
    assert "· band: ±1 sd" in said(panel("a", many), panel("c", many))


def test_two_kinds_of_cells_say_whose_they_are_with_the_letters_of_the_picture():
    full, cute = curve("altmaxvar", "AltMaxVar"), curve("cutemaxvar", "CuteMaxVar q=3", q=3)
    s = np.arange(11)
    cost, optimum = 10.0 * 0.5**s, np.full(11, 1.0)
    frame = pd.concat(
        rows(line, t, s, values, metric=metric)
        for line in (full, cute)
        for t in (1, 2)
        for metric, values in (("objective", cost), ("cost", cost), ("optimum", optimum))
    )
    options = {"rows": "algorithm", "columns": "dataset", "reach": 1.5}
    read_off = options | {"ratio_from": {"algorithm": "altmaxvar"}}
    panels_ = [
        panel(name, full, cute, kind="table", options=given)
        for name, given in (("common", read_off), ("fresh", read_off), ("bits", options))
    ]
    said = footer_text(build(figure(*panels_), frame, WHOLE))
    assert "a, b: cells: read off curves averaged over trials" in said
    assert "c: cells: mean ± sd over trials" in said


def test_time_axis_takes_each_trials_own_clock_from_the_sidecar():
    drawn, frame, sidecar, _ = made("timed")
    panel_ = drawn.panels[0]
    line = panel_.curves[1]
    runs = series.trials(FigureData(drawn, frame, sidecar), line, panel_, x="seconds")
    for run in runs:
        np.testing.assert_allclose(run.x, sidecar.timing[line.setting.series][run.number].seconds)
    shown = line_of(axes_of("timed")[0], "FedMC-ADMM, $N$ = 10")
    assert shown.get_xdata().max() == pytest.approx(max(run.x[-1] for run in runs))
    assert "times are those of the machine that ran it" in footer_of("timed")
    without = lines.read(panel_, FigureData(drawn, frame, Sidecar()))
    assert {trial.label for trial in without} == {f"{trial.name}: no times" for trial in without}


def test_on_an_axis_of_time_a_round_that_is_one_map_is_marked_in_the_legend():
    facts = {"dataset": "gcca-synthetic", "T": 10}
    full, batches = (curve("altmaxvar", name, b=b, **facts) for name, b in (("full", None), ("batches", 150)))
    frame = pd.concat([rows(c, 1, [0, 1], [2.0, 1.0]) for c in (full, batches)])
    clock = {c.setting.series: {1: Timing((0, 1), (0.1, 0.2), (0.1, 0.4))} for c in (full, batches)}

    def shown(x: str) -> tuple[list[str], str, float]:
        ax, *rest = build(figure(panel("a", full, batches, x=x)), frame, Sidecar(timing=clock)).axes
        (legend,) = (other.get_legend() for other in rest)
        return (
            [t.get_text() for t in legend.get_texts()],
            ax.get_xlabel().replace("\n", " "),
            max(line.get_xdata()[-1] for line in ax.lines),
        )

    assert shown("round") == (["full", "batches"], "communication round", 1)
    marked = ["full (T steps as one map)", "batches"]
    assert shown("seconds") == (marked, axes.AXES["seconds"].label, 0.2)
    assert shown("serial_seconds") == (marked, axes.AXES["serial_seconds"].label, 0.4)


def test_bits_per_variable_counts_both_ways():
    line = curve("cutemaxvar", "CuteMaxVar")
    shown = panel("a", line, x="bits_per_variable", options={"variables": 100})
    run = series.trials(FigureData(figure(shown), rows(line, 1, [0, 1], [2.0, 1.0], cost=50)), line, shown, x=shown.x)[
        0
    ]
    np.testing.assert_allclose(run.x, [0, 2 * 50 * 32 / 100])


def test_a_log_axis_shows_the_initial_point_where_rounds_are_counted_from_one():
    line = curve("cutemaxvar", "CuteMaxVar")
    frame = rows(line, 1, [0, 1, 9], [4.0, 2.0, 1.0])

    def shown(**options):
        about = panel("a", line, xscale="log", options=options)
        (found,) = lines.read(about, FigureData(figure(about), frame))
        return found.average.x.tolist(), found.average.mean.tolist()

    assert shown() == ([1, 9], [2.0, 1.0])
    assert shown(starts_at=1) == ([1, 2, 10], [4.0, 2.0, 1.0])


@pytest.mark.parametrize("last", [1, 2, 4, 9, 18, 20, 24])
def test_few_rounds_have_ticks_at_whole_numbers(last: int) -> None:
    line = curve("fedmgs", "FedMGS")
    shown = build(figure(panel("a", line)), rows(line, 1, list(range(last + 1)), [1.0] * (last + 1)), WHOLE)
    ax = next(ax for ax in shown.axes if ax.axison)
    assert all(float(tick).is_integer() for tick in ax.get_xticks())


@pytest.mark.parametrize(("x", "factor"), [("downlink_scalars", 1), ("downlink_bits", 32), ("uplink_bits", 32)])
def test_every_count_of_the_results_can_be_the_axis(x, factor):
    line = curve("fedcavg", "FedCAvg")
    shown = build(figure(panel("a", line, x=x)), rows(line, 1, [0, 1, 2], [3, 2, 1], cost=10), Sidecar())
    ax = next(ax for ax in shown.axes if ax.axison)
    assert ax.get_xlabel() == axes.AXES[x].label
    np.testing.assert_array_equal(line_of(ax, "FedCAvg").get_xdata(), np.array([0, 10, 20]) * factor)


def test_a_recorded_metric_can_be_the_axis():
    line = curve("fedcavg", "FedCAvg")
    frame = pd.concat([rows(line, 1, [0, 1], [3, 2]), rows(line, 1, [0, 1], [0.5, 0.6], metric="accuracy")])
    ax = next(ax for ax in build(figure(panel("a", line, x="accuracy")), frame, Sidecar()).axes if ax.axison)
    assert ax.get_xlabel() == registry.problems()["clustering"].metrics["accuracy"].label
    np.testing.assert_array_equal(line_of(ax, "FedCAvg").get_xdata(), [0.5, 0.6])


# Trouble --------------------------------------------------------------------------------------------------------------


def test_diverged_failed_missing_and_level_curves_are_drawn_as_what_they_are():
    ax = axes_of("troubled")[0]
    assert labels("troubled")[0] == [
        "FedCAvg, $Q_2$ = 1",
        "FedCAvg, $Q_2$ = 100",
        "FedCPALM, $Q$ = 200, diverged",
        "FedCGds, $m$ = 10 (1 of 3 diverged)",
        "FedCGds, $m$ = 1: failed",
        "SNCP: no results",
        "K-means++",
    ]
    crosses = [line for line in ax.lines if line.get_marker() == "x"]
    assert len(crosses) == 4  # three diverged runs, and one of three
    top = ax.get_ylim()[1]
    assert all(cross.get_ydata()[0] <= top for cross in crosses)
    stray = crosses[-1]
    assert (stray.get_xdata()[0], stray.get_ydata()[0]) == (115, pytest.approx(0.9 + 1.15))
    level = line_of(ax, "K-means++")
    np.testing.assert_allclose(level.get_ydata(), np.mean([0.474, 0.478, 0.482]))
    assert "missing: sncp @ mnist: the data file is absent" in footer_of("troubled")


def test_transient_does_not_flatten_the_others_and_its_clipping_is_marked():
    ax = axes_of("troubled")[0]
    bottom, top = ax.get_ylim()
    assert 0.3 < bottom < 0.4
    assert 1 < top < 5
    burst = line_of(ax, "FedCAvg, $Q_2$ = 100")
    assert burst.get_ydata().max() == pytest.approx(191, abs=0.5)
    assert "FedCAvg, $Q_2$ = 100: up to 191" in {t.get_text() for t in ax.findobj(Text)}
    arrow = next(line for line in ax.lines if line.get_marker() == "^" and line.get_linestyle() == "None")
    assert arrow.get_ydata()[0] == pytest.approx(top)
    assert arrow.get_color() == burst.get_color()
    assert "▲: leaves the frame" in footer_of("troubled")


def fake_line(y: list[float], strays: tuple[Trial, ...] = ()) -> lines.Line:
    values = np.array(y)
    line = curve("fedcavg", "c", Q2=len(y))
    mean = Average(np.arange(len(y)), values, values, values, "")
    return lines.Line(line, style.looks([line])[0], "c", "c", mean, strays, begins=y[:1])


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_limits_leave_ordinary_curves_alone(scale):
    shape = panel("a", yscale=scale)
    decays = [fake_line([1.0, 0.5, 0.1]), fake_line([1.0, 0.9, 0.8])]
    assert y_limits.frame(decays, shape) is None
    assert y_limits.frame([*decays, fake_line([1.0, 2.0, 0.5])], shape) is None
    assert y_limits.frame([fake_line([0.1, 0.5, 0.9])], shape) is None
    assert y_limits.frame([*decays, fake_line([1e4, 0.5, 0.2])], shape) is None, "it starts high and falls"
    everywhere = [fake_line([1.0, 9.0, 0.9]), fake_line([1.0, 8.0, 0.9])]
    assert y_limits.frame(everywhere, shape) is None, "all curves do it: the shape of the data"
    burst = [*decays, fake_line([1.0, 1e4, 0.5])]
    limits = y_limits.frame(burst, shape)
    assert limits is not None
    assert limits.leaving == (2,)
    assert limits.top < 5


def test_the_limits_of_the_spec_rule_and_what_leaves_them_is_named():
    burst = [fake_line([1.0, 0.5, 0.1]), fake_line([1.0, 1e4, 0.5]), fake_line([30.0, 2.0, 1.0])]
    assert y_limits.frame(burst, panel("a", yscale="log", ylim=(None, 1e5))) is None
    found = y_limits.frame(burst, panel("a", yscale="log", ylim=(None, 10)))
    assert found == y_limits.Frame(None, None, leaving=(1,)), "the third comes down from its start"


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_accuracy_never_blows_up(scale):
    learns = [fake_line([0.009, 0.3, 0.84]), fake_line([0.009, 0.01, 0.012]), fake_line([0.001, 0.2, 0.5])]
    known = [line.curve for line in learns]
    assert y_limits.frame(learns, panel("a", *known, yscale=scale)) is not None, "an objective would"
    for top in (None, 0.4):
        assert y_limits.frame(learns, panel("a", *known, y="accuracy", yscale=scale, ylim=(None, top))) is None


def test_a_run_that_ends_too_high_does_not_set_the_limits():
    shape = panel("a", yscale="log")
    limits = y_limits.frame([fake_line([1.0, 0.5, 0.4]), fake_line([1.0, 1e3, 1e6])], shape)
    assert limits is not None
    assert limits.leaving == (1,)
    assert limits.top < 50


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_a_curve_that_ends_high_makes_no_room_for_itself(scale):
    """Up to fifty times its start, where it is not far yet on a log axis: the others say what is."""
    shape, calm, lost = panel("a", yscale=scale), fake_line([1.0, 0.9, 0.8, 0.8]), fake_line([1.0, 0.9, 0.85, 20])
    for drawn in ([lost, calm], [lost, calm, fake_line([1.0, 0.9, 0.7, 0.6])]):
        limits = y_limits.frame(drawn, shape)
        assert limits is not None
        assert limits.leaving == (0,)
        assert 1 < limits.top < 1.1
        assert limits.bottom < drawn[-1].average.mean[-1]
    most = [fake_line([1.0, 0.9, 0.85, 20 + i]) for i in range(2)]
    assert y_limits.frame([calm, *most], shape) is None, "where most do it, it is the shape of the data"
    known = [line.curve for line in (lost, calm)]
    assert y_limits.frame([lost, calm], panel("a", *known, y="accuracy", yscale=scale)) is None


def test_a_curve_that_ends_above_the_top_of_the_spec_is_said_to():
    line = curve("fedcavg", "FedCAvg")
    for last, said in ((40.0, "FedCAvg: up to 50, ends at 40"), (2.0, "FedCAvg: up to 50")):
        shown = panel("a", line, ylim=(None, 10))
        shape = figure(shown)
        drawn = build(shape, rows(line, 1, [0, 1, 2, 3], [1.0, 0.5, 50.0, last]), WHOLE)
        assert said in {t.get_text() for t in drawn.findobj(Text)}


def test_the_spec_may_set_the_bottom_of_a_zoomed_frame():
    fall = [fake_line([9.0, 5.0, *(1 + 0.1 * k for k in range(18))]), fake_line([9.0, 5.0, *[1.2] * 18])]
    for ylim in ((None, None), (0.5, None)):
        limits = y_limits.frame(fall, panel("a", ylim=ylim, options={"zoom": 0.2}))
        assert limits is not None
        assert limits.near
        assert 2.7 < limits.top < 3
    line = curve("fedcavg", "FedCAvg")
    shown = panel("a", line, ylim=(0.5, None), options={"zoom": 0.2})
    ax = build(figure(shown), rows(line, 1, range(20), [9.0, 5.0, *[1.0] * 9, *[1.2] * 9]), WHOLE).axes[0]
    assert ax.get_ylim()[0] == 0.5
    assert ax.get_ylim()[1] < 1.3


def test_a_zoomed_frame_shows_every_floor_and_names_every_burst():
    """Bursts of one curve in the first rounds, of another in the middle; a third ends above its start."""
    s = np.arange(101)
    calm = 0.44 + 0.4 * np.exp(-s / 4)
    early = np.where((s > 1) & (s < 5), 20.0, 0.45 + 0.4 * np.exp(-s / 4))
    late = np.where((s > 20) & (s < 60), 1.1, 0.48 + 0.36 * np.exp(-s / 4))
    lost = np.where(s > 50, 3.0, 0.46 + 0.4 * np.exp(-s / 4))
    drawn = [fake_line(y.tolist()) for y in (calm, early, late, lost)]
    limits = y_limits.frame(drawn, panel("a", yscale="log", options={"zoom": 0.1}))
    assert limits is not None
    assert limits.leaving == (1, 2, 3)
    assert 0.42 < limits.bottom < 0.44
    assert late[-1] < limits.top < 0.55, "the highest floor, and what the calm curve does beyond the share"


def test_a_curve_whose_start_the_axis_lacks_blows_up_all_the_same():
    """On a log axis of communication the initial point has no place."""
    quick, slow = curve("fedmgs", "FedMGS m=100", m=100), curve("fedmavg", "FedMAvg m=100", m=100)
    s = np.arange(51)
    frame = pd.concat(
        [
            rows(quick, 1, s, 0.4 + 0.5 * np.exp(-s / 3)),
            rows(slow, 1, s, np.where(s == 0, 0.9, 0.6 + 5e3 * np.exp(-s / 1.0))),
        ]
    )
    shown = panel("a", quick, slow, x="uplink_scalars", xscale="log", yscale="log", options={"zoom": 0.05})
    limits = y_limits.frame(lines.read(shown, FigureData(figure(shown), frame)), shown)
    assert limits is not None
    assert limits.leaving == (1,)
    assert limits.top < 1


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.45, 0.49, ["0.45", "0.46", "0.47", "0.48", "0.49"]),
        (0.09, 2.5, ["0.1", "0.2", "0.5", "1", "2"]),
        (1e-3, 10.0, ["$\\mathdefault{10^{-3}}$", "$\\mathdefault{10^{-2}}$"]),
    ],
)
def test_a_short_log_axis_shows_plain_numbers(low, high, ticks):
    line = curve("fedcavg", "FedCAvg")
    shown = figure(panel("a", line, yscale="log", ylim=(low, high)))
    ax = build(shown, rows(line, 1, [0, 1], [high, low]), Sidecar()).axes[0]
    ax.get_figure().canvas.draw()
    labelled = [t.get_text() for t in ax.get_yticklabels() if low * 0.999 <= t.get_position()[1] <= high * 1.001]
    assert labelled[: len(ticks)] == ticks
    assert not any(t.get_text() for t in ax.get_yticklabels(minor=True))


def test_numbers_on_a_linear_axis_are_text_and_their_power_of_ten_a_formula():
    line = curve("fedcavg", "FedCAvg")
    ax = build(figure(panel("a", line)), rows(line, 1, [0, 10], [-2e-5, 3e-5]), Sidecar()).axes[0]
    ax.get_figure().canvas.draw()
    assert {"−2", "0", "3"} <= {label.get_text() for label in ax.get_yticklabels()}
    assert ax.yaxis.get_offset_text().get_text() == "$\\times\\mathdefault{10^{−5}}\\mathdefault{}$"


def test_y_limits_of_the_spec_are_kept():
    line = curve("fedcavg", "FedCAvg")
    shown = figure(panel("a", line, ylim=(0.2, 0.7), xlim=(None, 50)))
    ax = build(shown, pd.concat(decay(line, 3, 0.1, 0.3)), Sidecar()).axes[0]
    assert ax.get_ylim() == (0.2, 0.7)
    assert ax.get_xlim()[1] == 50


def test_empty_results_say_so_instead_of_failing():
    for name in ("troubled", "table", "arrays", "swept", "barred"):
        drawn, frame, sidecar, _ = made(name)
        shown = build(drawn, frame.iloc[:0], sidecar)
        assert any("no results" in t.get_text() for t in shown.findobj(Text)), name


def absent_of(shown) -> str:
    """The lines in place of panels without results."""
    (text,) = (t.get_text() for t in shown.texts if t.get_gid() == "absent")
    return text.replace("\n", " ")


def test_an_absent_dataset_takes_a_line_and_no_axes():
    here, gone = curve("fedmc-admm", "FedMC-ADMM"), curve("fedmc-admm", "FedMC-ADMM", dataset="netflix")
    shown = figure(
        panel("a", gone, title="Netflix, objective"),
        panel("b", gone, title="Netflix, RMSE"),
        panel("c", here, title="digits"),
        panel("d", curve("local", "Local"), title="Local"),
        columns=2,
    )
    about = Sidecar(complete=False, datasets=(Content("netflix", "absent"), Content("mnist", "present")))
    frame = pd.concat([*decay(here, 2, 0.1, 0.3), failed(shown.panels[3].curves[0], 1)])
    made_ = build(shown, frame, about)
    assert [ax.get_title(loc="left") for ax in made_.axes if ax.axison] == ["(c) digits"]
    said = absent_of(made_)
    absent = "no results: the data of Netflix were absent when this was computed"
    assert f"(a) Netflix, objective; (b) Netflix, RMSE: {absent}" in said
    assert "(d) Local: no results: failed" in said
    lacking = dataclasses.replace(about, missing=("1 curve: the dataset netflix is absent",))
    assert "missing" not in footer_text(build(shown, frame, lacking)), "the reason is above"
    beside = figure(panel("a", gone), panel("b", gone, here))
    assert "missing: 1 curve: the dataset netflix is absent" in footer_text(build(beside, frame, lacking))
    whole = build(dataclasses.replace(shown, panels=shown.panels[:2]), frame, about)
    assert whole.get_size_inches()[1] < 2, "no page of empty axes"
    assert absent_of(build(shown, pd.concat(decay(here, 1, 0.1, 0.3)), Sidecar())).endswith("(d) Local: no results")


def test_a_panel_with_a_level_only_is_without_results():
    level, line = curve("kmeans++", "K-means++", role="level"), curve("fedcavg", "FedCAvg")
    made_ = build(figure(panel("a", line, level, title="t")), rows(level, 1, [0], [0.5]), Sidecar())
    assert absent_of(made_) == "t: no results"
    assert not any(ax.axison for ax in made_.axes)


def test_each_published_text_has_a_mark_and_the_colour_of_the_method_it_names():
    alt, cute = curve("altmaxvar", "AltMaxVar"), curve("cutemaxvar", "CuteMaxVar")
    marks = (
        {"x": 5, "y": 0.6, "label": "AltMaxVar (read off)"},
        {"x": 5, "y": 0.5, "label": "CuteMaxVar (read off)"},
        {"x": 9, "y": 0.4, "label": "CuteMaxVar (read off)"},
        {"x": 5, "y": 0.7, "label": "published, warm"},
        {"y": 0.2, "label": "published optimum"},
        {"y": 0.3, "label": "bound"},
    )
    shown = panel("a", alt, cute, published=marks)
    ax = build(figure(shown), pd.concat([*decay(alt, 1, 0.1, 0.3), *decay(cute, 1, 0.1, 0.4)]), Sidecar()).axes[0]
    named = {line.get_label(): line for line in ax.lines if line.get_label().startswith("paper")}
    assert list(named) == [
        "paper: AltMaxVar (read off)",
        "paper: CuteMaxVar (read off)",
        "paper: warm",
        "paper: optimum",
        "paper: bound",
    ]
    stars = list(named.values())[:3]
    assert len({repr(star.get_marker()) for star in stars}) == 3
    assert [star.get_color() for star in stars] == [style.method(m)[0] for m in ("altmaxvar", "cutemaxvar")] + [
        style.FAINT
    ]
    dashes = [repr(line._unscaled_dash_pattern) for line in list(named.values())[3:]]
    assert len(set(dashes)) == 2


def test_published_numbers_and_reference_lines():
    line = curve("fedcavg", "FedCAvg")
    marks = ({"y": 0.5, "label": "limit"}, {"x": [10, 20], "y": [0.8, 0.7], "label": "points", "algorithm": "fedcgds"})
    shown = panel("a", line, published=marks, options={"lines": [{"y": 0.4, "label": "1.5 v*"}]})
    made_ = build(figure(shown), pd.concat(decay(line, 3, 0.1, 0.3)), Sidecar())
    ax = made_.axes[0]
    dotted = line_of(ax, "paper: limit")
    assert dotted.get_linestyle() not in ("-", "None"), "dotted, with white edges above our lines"
    assert set(dotted.get_ydata()) == {0.5}
    stars = line_of(ax, "paper: points")
    assert stars.get_marker() == "*"
    assert stars.get_color() == style.method("fedmgs")[0]
    np.testing.assert_array_equal(stars.get_ydata(), [0.8, 0.7])
    assert line_of(ax, "1.5 v*").get_linestyle() == "-."
    legend = next(a.get_legend() for a in made_.axes if a.get_legend())
    assert [t.get_text() for t in legend.get_texts()] == ["FedCAvg", "paper: limit", "paper: points", "1.5 v*"]


# Looks ----------------------------------------------------------------------------------------------------------------

ALGORITHMS = registry.methods()


def method_of(name: str) -> str:
    """The method of which a registered name is a variant: its label without the words for the variant."""
    label = ALGORITHMS[name].label
    return re.split(r",| \(| without |-Deep", label)[0]


LOOKS = {name: style.method(name) for name in ALGORITHMS}


def test_every_registered_method_has_a_look():
    lacking = [name for name, look in LOOKS.items() if look == style.NEUTRAL]
    assert not lacking, f"give the entries of {lacking}, or of the methods they vary, a look: a colour and a marker"


@pytest.mark.parametrize("paper", registry.PAPERS)
def test_inside_a_paper_methods_differ_in_colour_and_variants_share_a_look(paper):
    """t-SNE is no method but shows the true classes; it has a marker, but no colour, of its own."""
    looks: dict[str, set[tuple[str, str]]] = {}
    for name, entry in ALGORITHMS.items():
        if paper in entry.papers:
            looks.setdefault(method_of(name), set()).add(LOOKS[name])
    assert all(len(pairs) == 1 for pairs in looks.values()), looks
    pairs = [pair for of_method in looks.values() for pair in of_method]
    assert len(set(pairs)) == len(pairs) > 1
    colors = [color for name, of_method in looks.items() for color, _ in of_method if name != "t-SNE"]
    assert len(set(colors)) == len(colors), looks


@pytest.mark.parametrize("spec", specs(ROOT / "experiments"), ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_no_two_curves_of_a_panel_look_the_same(spec):
    for shown in project_specs.figure(spec, "smoke").panels:
        looks = style.looks(shown.curves)
        assert len({repr(look) for look in looks}) == len(looks), shown.id


def test_a_pair_stands_for_one_method_in_all_papers_under_the_names_they_give_it():
    names: dict[tuple[str, str], set[str]] = {}
    for name, pair in LOOKS.items():
        names.setdefault(pair, set()).add(method_of(name))
    renamed = {frozenset({"FedMAvg", "FedCAvg"}), frozenset({"FedMGS", "FedCGds"}), frozenset({"FedPALM", "FedCPALM"})}
    assert {frozenset(labels) for labels in names.values() if len(labels) > 1} == renamed


@pytest.mark.parametrize("name", ["fedavgm", "fedmavgm", "my-fedmgs", "FedMAvg", "fedmavg_mc", "km||", ""])
def test_a_method_without_an_entry_is_neutral_however_much_its_name_looks_like_another(name):
    assert style.method(name) == style.NEUTRAL
    assert style.NEUTRAL[0] not in {color for color, _ in LOOKS.values()}
    assert style.NEUTRAL[1] not in {marker for _, marker in LOOKS.values()}


def test_methods_without_an_entry_are_told_apart_and_a_new_entry_serves_at_once(monkeypatch):
    mine = [curve("mine", "mine"), curve("yours", "yours"), curve("fedmavg", "FedMAvg")]
    first, second, known = style.looks(mine)
    assert first.marker == second.marker == style.NEUTRAL[1]
    assert (first.color, first.dash, first.fill) != (second.color, second.dash, second.fill)
    assert (known.color, known.marker) == style.method("fedmavg")
    entry = dataclasses.replace(ALGORITHMS["fedmavg"], name="mine", label="Mine", look=("sky", "*"))
    monkeypatch.setitem(registry.methods(), "mine", entry)
    first, second, _ = style.looks(mine)
    assert (first.color, first.marker) == (style.SKY, "*")
    assert (second.color, second.marker) == style.NEUTRAL


def lightness(color: str) -> float:
    return float(style.oklab(np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]))[0])


EYES: dict[str, np.ndarray] = {
    "all": np.eye(3),
    "no red": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "no green": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    ),
    "no blue": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]]
    ),
}
"""What eyes with all cones, and without one kind, make of linear RGB (Machado, Oliveira and Fernandes 2009)."""


def seen(color: str, eyes: str) -> np.ndarray:
    """OKLab coordinates of a colour as these eyes see it."""
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = (EYES[eyes] @ linear).clip(0, 1)
    return style.oklab(np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055))


def nearest(colors: list[str]) -> float:
    """The smallest distance that any eyes see between two of the colours; 0.02 is just noticeable."""
    return min(
        float(np.linalg.norm(seen(a, eyes) - seen(b, eyes)))
        for eyes in EYES
        for i, a in enumerate(colors)
        for b in colors[:i]
    )


@pytest.mark.parametrize("color", style.COLOURS.values())
def test_shades_go_from_light_to_dark_in_even_steps_and_are_told_apart_by_all_eyes(color):
    tones = style.shades(color, 6)
    steps = np.diff([lightness(t) for t in tones])
    np.testing.assert_allclose(steps, steps[0], atol=0.01)
    assert steps[0] < -0.05
    assert style.shades(color, 1) == [color]
    assert nearest(tones) > 0.07
    base, middle = (style.oklab(np.array(to_rgb(c))) for c in (color, style.shades(color, 5)[2]))
    if np.hypot(*base[1:]) > 0.02:
        angles = [math.atan2(lab[2], lab[1]) for lab in (base, middle)]
        assert abs(angles[0] - angles[1]) < 0.15, "the middle one has the hue of the colour itself"


def test_a_constant_and_a_diminishing_number_of_steps_have_different_hues():
    constant = [curve("fedmavg", f"Q2={q}", Q2=q, Qhat=None) for q in (1, 10, 50, 100)]
    diminishing = [curve("fedmavg", f"Qhat={q}", Q2=None, Qhat=q) for q in (10, 100, 400)]
    looks = style.looks([*constant, *diminishing])
    assert {look.marker for look in looks[:4]} == {style.INSTEAD["Q2"][1]}
    assert {look.marker for look in looks[4:]} == {style.method("fedmavg")[1]}
    assert [look.color for look in looks[:4]] == style.shades(style.INSTEAD["Q2"][0], 4)
    assert [look.color for look in looks[4:]] == style.shades(style.method("fedmavg")[0], 3)
    assert nearest([style.INSTEAD["Q2"][0], style.method("fedmavg")[0]]) > 0.2
    alone = style.looks(constant)
    assert {look.marker for look in alone} == {style.method("fedmavg")[1]}, "nothing to tell them from"


def test_groups_of_points_are_told_apart_by_colour_and_with_all_eyes_by_colour_and_marker():
    pairs = [style.group(i) for i in range(30)]
    assert len({color for color, _ in pairs}) == 30
    for marker in {marker for _, marker in pairs}:
        assert nearest([color for color, own in pairs if own == marker]) > 0.07
    assert nearest([color for color, _ in pairs[:6]]) > 0.05
    assert len({style.group(i) for i in range(120)}) == 120


def test_a_sweep_differs_in_lightness_dash_and_fill_and_stays_in_its_methods_hue():
    drawn = made("sweep")[0]
    looks = style.looks(drawn.panels[0].curves)
    levels = [lightness(look.color) for look in looks]
    assert levels == sorted(levels, reverse=True)
    assert len({repr(look.dash) for look in looks}) == 6
    assert len({(repr(look.dash), look.fill) for look in looks}) == 6
    assert {look.marker for look in looks} == {style.method("fedcavg")[1]}
    ax = axes_of("sweep")[0]
    names = naming.legends(drawn.panels[0], drawn)
    assert [line_of(ax, name).get_color() for name in names] == [look.color for look in looks]


def test_a_grid_of_two_parameters_shades_one_and_fills_and_dashes_the_other():
    looks = style.looks(made("sweep")[0].panels[1].curves)
    assert [look.color for look in looks[:4]] == [look.color for look in looks[4:]]
    assert len({look.color for look in looks[:4]}) == 4
    assert ({look.fill for look in looks[:4]}, {look.fill for look in looks[4:]}) == ({"full"}, {"none"})
    assert {repr(look.dash) for look in looks[:4]} == {"'solid'"}
    assert {repr(look.dash) for look in looks[4:]} == {repr(style.DASHES[1])}


@pytest.mark.parametrize(
    "values",
    [
        [{"m": m, "Q1": q} for m, q in ((10, 100), (30, 100), (50, 10), (70, 10))],
        [{"Q1": 1, "Q2": 100}, {"Q1": 10, "Q2": 100}, {"Q1": 100, "Q2": 100}, {"Q1": 1, "Q2": 1}],
    ],
)
def test_two_values_that_are_not_crossed_are_one_sweep(values):
    looks = style.looks([curve("fedcgds", str(v), **v) for v in values])
    assert len({repr(look.dash) for look in looks}) == len({look.color for look in looks}) == len(values)


def test_a_method_with_one_curve_has_its_own_plain_colour():
    looks = style.looks(made("fig5")[0].panels[0].curves)
    assert (looks[0].color, looks[0].marker, looks[0].dash, looks[0].fill) == (style.BLUE, "o", "solid", "full")
    assert {look.marker for look in looks[1:]} == {"s"}


def test_markers_are_sparse_on_long_curves():
    ax = axes_of("fig5")[0]
    start, step = line_of(ax, "FedCAvg").get_markevery()
    assert step >= 0.1
    assert 0 <= start < step
    assert line_of(ax, "FedCGds, $m$ = 10").get_markevery() != (start, step), "staggered"


# Sweeps and bars ------------------------------------------------------------------------------------------------------


def test_swept_parameter_gives_a_line_per_method_of_mean_final_values():
    ax = axes_of("swept")[0]
    containers = {c.get_label(): c for c in ax.containers}
    methods = [called(a) for a in ("personal-fedavg", "perfedsi", "local")]
    assert list(containers) == methods
    x, y = containers[called("personal-fedavg")].lines[0].get_data()
    np.testing.assert_array_equal(x, [0, 0.5, 1, 2, 4])
    # the mean over the last two records (v and v (1 + t/10)), then over trials t = 1 .. 5
    np.testing.assert_allclose(y, (x**2 / 2 + 0.01) * (1 + 1.3) / 2)
    assert ax.get_xlabel() == r"$\sigma_b$"
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0", "0.5", "1", "2", "4"]
    assert labels("swept")[0] == [*methods, "theory", "paper: no z", "paper: bound"]
    assert "bars: ±1 sd" in footer_of("swept")


def test_all_clients_of_a_round_are_called_so_on_the_axis_of_m():
    lines = [curve("personal-fedavg", f"m={v}", m=v) for v in (5, None)]
    frame = pd.concat([rows(line, 1, [0, 1], [1, 0.5]) for line in lines])
    ax = build(figure(panel("a", *lines, x="m")), frame, Sidecar()).axes[0]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["5", "all clients"]


def test_diverged_and_missing_points_of_a_sweep_are_named():
    lines = [curve("personal-fedavg", f"lr={v}", lr=v) for v in (0.1, 1.0, 10.0)]
    frame = pd.concat([rows(lines[0], 1, [0, 1], [1, 0.5]), rows(lines[1], 1, [0, 1], [1, np.inf], status="diverged")])
    for x, options in (("lr", {}), ("parameter", {"parameter": "lr"})):
        shown = build(figure(panel("a", *lines, x=x, options=options)), frame, Sidecar())
        legend = next(ax.get_legend() for ax in shown.axes if ax.get_legend())
        assert [t.get_text() for t in legend.get_texts()] == [
            f"{called('personal-fedavg')} (1.0, diverged; 10.0, no results)"
        ]


def test_bars_stand_in_groups_with_published_numbers_on_them():
    ax = axes_of("barred")[0]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["omniglot50", "omniglot500"]
    bars_ = {c.get_label(): c for c in ax.containers if hasattr(c, "patches")}
    assert [bars_[called(m)].patches[0].get_facecolor()[:3] for m in METHODS[:2]] == [
        to_rgb(style.VERMILLION),
        to_rgb(style.BLUE),
    ]
    bar = bars_[called("personal-fedavg")].patches[0]
    assert bar.get_height() == pytest.approx(0.47)
    assert len({c.patches[0].get_hatch() for c in bars_.values()}) == 4, "readable in grey"
    star = next(line for line in ax.lines if line.get_marker() == "*")
    assert (star.get_xdata()[0], star.get_ydata()[0]) == (pytest.approx(bar.get_x() + bar.get_width() / 2), 0.5)


# Tables ---------------------------------------------------------------------------------------------------------------


def test_table_sets_published_numbers_beside_ours():
    drawn, frame, _, _ = made("table")
    cells = panel_cases.cells(drawn, drawn.panels[0], frame)
    assert tuple(cells.columns) == tables.COLUMNS
    assert list(dict.fromkeys(cells["row"])) == ["KM", "BEL", "FedMGS m=10", "FedMGS m=100"]
    first = cells.iloc[0]
    assert (first["mean"], first["sd"], first["trials"]) == (pytest.approx(42), pytest.approx(1), 3)
    assert (first["published"], first["difference"]) == (69.4, pytest.approx(42 - 69.4))
    last = cells.iloc[-1]
    assert math.isnan(last["mean"])
    assert (last["trials"], last["status"]) == (0, "3 of 3 diverged")
    shown = {t.get_text() for t in picture("table").findobj(Text)}
    assert {"42.0 ± 1.0", "paper 69.4 (−27.4)", "3 of 3 diverged", "paper 72.2"} <= shown
    assert "cells: mean ± sd over trials" in footer_of("table")


def test_stand_in_data_have_no_difference_to_what_was_published():
    """A number of other data cannot be held against it: not in the picture, in files, or in the terminal."""
    drawn, frame, _, _ = made("table")
    settings = {c.setting.series: c.setting.dataset for c in drawn.panels[0].curves}
    about = dataclasses.replace(WHOLE, stand_ins=("TCGA",))
    assert set(settings.values()) == {"syn", "TCGA"}
    cells = panel_cases.cells(drawn, drawn.panels[0], frame, about)
    standing = cells["column"].str.contains("stand-in")
    assert standing.sum() == 4
    assert cells[standing]["difference"].isna().all()
    assert cells[~standing]["difference"].notna().all()
    shown = {t.get_text() for t in build(drawn, frame, about).findobj(Text)}
    assert {"paper 69.4 (−27.4)", "paper 50.1", "paper 42.0"} <= shown
    assert not any(text.startswith("paper 50.1 ") for text in shown)
    assert "paper 50.1 |" in tables.markdown(drawn.panels[0], cells)
    printed = end_values.cells(FigureData(drawn, frame, about), drawn.panels[0])
    assert printed[1] == ["KM", "42.0 ± 1.0; paper 69.4 (−27.4)", "47.0 ± 1.0; paper 50.1"]


def test_a_difference_of_rounding_errors_is_none():
    line = curve("als", "ALS", dataset="ml1m")
    shown = panel(
        "t", line, kind="table", y="users", options={"rows": "dataset", "columns": "metric"},
        published=({"row": "ml1m", "column": "users", "value": 16},),
    )  # fmt: skip
    cells = panel_cases.cells(figure(shown), shown, rows(line, 1, [0], [16 - 2e-15], metric="users"))
    assert tables.cell_texts(shown, next(cells.itertuples()))[1] == "paper 16 (+0)"


def test_table_files_say_tier_and_caveats(tmp_path):
    drawn, frame, _, _ = made("table")
    written = draw(drawn, frame, CAVEATS, tmp_path / "table1", ("png",))
    assert [p.name for p in written] == ["table1.png", "table1.csv", "table1.md"]
    cells = pd.read_csv(tmp_path / "table1.csv")
    assert set(cells["tier"]) == {"paper"}
    assert cells["caveats"][0].startswith("STAND-IN DATA; VARIANT DATA; PARTIAL: 2 to 3 of 10 trials")
    text = (tmp_path / "table1.md").read_text()
    assert "| KM | 42.0 ± 1.0; paper 69.4 (−27.4) | 47.0 ± 1.0; paper 50.1 (−3.1) |" in text
    assert "> STAND-IN DATA; VARIANT DATA" in text
    assert "TCGA (stand-in)" in text


def test_a_level_is_reached_from_the_worse_side():
    rising = Trial(1, "ok", np.array([0.0, 10.0, 20.0]), np.array([0.1, 0.5, 0.9]))
    falling = dataclasses.replace(rising, y=rising.y[::-1])
    assert (tables.reached(rising, 0.5, "higher"), tables.reached(rising, 0.6, "higher")) == (10.0, 20.0)
    assert (tables.reached(falling, 0.5, "lower"), tables.reached(falling, 0.4, "lower")) == (10.0, 20.0)
    assert np.isnan([tables.reached(rising, 0.95, "higher"), tables.reached(falling, 0.05, "lower")]).all()
    assert np.isnan(tables.reached(dataclasses.replace(rising, status="diverged"), 0.5, "higher"))


def test_table_of_savings_compares_trial_by_trial():
    """Rounds to reach a level, and the share of bits saved against the uncompressed method."""
    slow, fast, never = (curve(a, a, q=q) for a, q in (("altmaxvar", 32), ("cutemaxvar", 3), ("cutemaxvar2", 2)))
    s = np.arange(11)
    frame = pd.concat(
        [rows(slow, t, s, 10.0 - s + t, cost=100) for t in (1, 2)]
        + [rows(fast, t, s, 10.0 - s + t, cost=10) for t in (1, 2)]
        + [rows(never, t, s, np.full(11, 10.0), cost=10) for t in (1, 2)]
    )
    options = {"rows": "algorithm", "columns": "dataset", "reach": 5.0}
    shown = panel("t", slow, fast, never, kind="table", options=options)
    cells = panel_cases.cells(figure(shown), shown, frame)
    assert cells["mean"].tolist()[:2] == [6.5, 6.5]
    assert cells["status"].tolist() == ["ok", "ok", "2 of 2 never reach it"]
    options |= {"axis": "uplink_bits", "saving_from": {"algorithm": "altmaxvar"}}
    cells = panel_cases.cells(figure(shown), shown, frame)
    assert cells["mean"].tolist()[:2] == [0.0, pytest.approx(0.9)]
    alone = panel_cases.cells(figure(shown), shown, frame[frame["algorithm"] != "altmaxvar"])
    assert alone["status"].tolist() == ["no results", *["nothing to compare with"] * 2]
    late = frame.assign(uplink_bits=frame["uplink_bits"] + 1000)  # sent before the first round
    options |= {"from_start": True, "columns": "metric", "measure": "share saved"}
    cells = panel_cases.cells(figure(shown), shown, late)
    assert cells["mean"].tolist()[:2] == [0.0, pytest.approx(0.9)]
    assert set(cells["column"]) == {"share saved"}


def test_savings_follow_from_the_rows_and_a_slower_method_saves_less_than_nothing():
    """1 - ours / theirs of each trial that both have; a method that sends twice as much saves -100 %."""
    base, frugal, lavish = (curve(a, a, q=q) for a, q in (("altmaxvar", 32), ("cutemaxvar", 3), ("cutemaxvar2", 9)))
    costs = ((100, 130, 90, 110), (30, 20, 40), (200, 300, 90, 250))
    s = np.arange(11)
    frame = pd.concat(
        rows(line, t, s, 10.0 - s + 0.3 * t, cost=cost)
        for line, each in zip((base, frugal, lavish), costs, strict=True)
        for t, cost in enumerate(each, start=1)
    )
    lost = (frame["series"] == lavish.setting.series) & (frame["trial"] == 3)
    frame.loc[lost, "status"] = "diverged"
    options = {"rows": "algorithm", "columns": "dataset", "reach": 5.0, "axis": "uplink_bits"}
    shown = panel("t", base, frugal, lavish, kind="table",
                  options=options | {"saving_from": {"algorithm": "altmaxvar"}})  # fmt: skip
    cells = list(panel_cases.cells(figure(shown), shown, frame).itertuples())
    for cell, ours, kept in zip(cells, costs, ((0, 1, 2, 3), (0, 1, 2), (0, 1, 3)), strict=True):
        savings = [1 - ours[t] / costs[0][t] for t in kept]
        mean = sum(savings) / len(savings)
        sd = math.sqrt(sum((v - mean) ** 2 for v in savings) / (len(savings) - 1))
        assert (cell.mean, cell.sd, cell.trials) == (pytest.approx(mean), pytest.approx(sd), len(kept))
    assert [cell.status for cell in cells] == ["ok", "ok", "1 of 4 diverged"]
    assert cells[2].mean < -1
    assert tables.cell_texts(shown, cells[2])[0].startswith("-1.")


def test_a_compression_ratio_says_which_trials_it_lacks_and_takes_the_optimum_of_the_others():
    full, cute = curve("altmaxvar", "AltMaxVar"), curve("cutemaxvar", "CuteMaxVar q=3", q=3)
    s, fall = np.arange(11), 10.0 * 0.5 ** np.arange(11)
    state = {1: "ok", 2: "diverged", 3: "diverged"}
    frame = pd.concat(
        [rows(full, t, s, fall, metric="cost") for t in (1, 2, 3, 4)]
        + [rows(full, t, s, np.full(11, 1.0 if t == 1 else 4.0), metric="optimum") for t in (1, 2, 3, 4)]
        + [rows(cute, t, s, 2 * fall, metric="cost", status=status) for t, status in state.items()]
        + [failed(cute, 4)]
    )
    options = {"rows": "algorithm", "columns": "dataset", "reach": 1.5, "ratio_from": {"algorithm": "altmaxvar"}}
    shown = panel("t", full, cute, kind="table", options=options)
    plain, quantized = panel_cases.cells(figure(shown), shown, frame).itertuples()
    assert (plain.trials, plain.status) == (4, "ok")
    assert (quantized.trials, quantized.status) == (1, "2 of 4 diverged, 1 of 4 failed")
    assert quantized.mean == pytest.approx(1 - 3 * 5 / (32 * 4))  # 20, 10 ... and 10, 5 ... below 1.5 times 1
    assert tables.cell_texts(shown, quantized)[0].endswith("(2 of 4 diverged, 1 of 4 failed)")


def test_table_with_metrics_as_columns_counts_in_whole_numbers():
    line = curve("als", "ALS", dataset="ml1m")
    frame = pd.concat([rows(line, 1, [0], [v], metric=m) for m, v in (("users", 6040), ("ratings", 1000209))])
    options = {"rows": "dataset", "columns": "metric", "metrics": ["users", "ratings"]}
    published = ({"row": "ml1m", "column": "ratings", "value": 1000209},)
    shown = panel("t", line, kind="table", options=options, published=published)
    cells = panel_cases.cells(figure(shown), shown, frame)
    assert tables.cell_texts(shown, next(cells.iloc[1:].itertuples())) == ("1,000,209", "paper 1,000,209 (+0)")
    assert tables.markdown(shown, cells).splitlines()[2] == "| ml1m | 6,040 | 1,000,209; paper 1,000,209 (+0) |"


# Scatter --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["scatter", "arrays"])
def test_a_group_has_one_colour_and_shape_in_all_small_pictures(name):
    axes = axes_of(name)
    assert len(axes) == 5
    assert axes[0].get_title() == "KM||\nclustering accuracy 0.448"
    for collections in zip(*(ax.collections for ax in axes), strict=True):
        assert len({to_hex(c.get_facecolor()[0]) for c in collections}) == 1
        assert len({c.get_paths()[0].vertices.tobytes() for c in collections}) == 1
    pairs = {(to_hex(c.get_facecolor()[0]), c.get_paths()[0].vertices.tobytes()) for c in axes[0].collections}
    assert len(pairs) == 12
    assert "points: trial 1" in footer_of(name)


def test_groups_are_renamed_to_those_they_share_most_points_with():
    base = pd.DataFrame({"index": range(6), "group": [0, 0, 1, 1, 2, 2]})
    points = pd.DataFrame({"index": range(6), "group": [7, 7, 5, 5, 5, 9]})
    assert scatter.align(points, base)["group"].tolist() == [0, 0, 1, 1, 1, 2]
    more = points.assign(group=[7, 8, 5, 5, 9, 9])
    assert scatter.align(more, base)["group"].tolist()[2:] == [1, 1, 2, 2]
    assert len(set(scatter.align(more, base)["group"])) == 4
    aligned = scatter.clouds(made("arrays")[0].panels[0], FigureData(*made("arrays")))
    plain = scatter.clouds(made("scatter")[0].panels[0], FigureData(*made("scatter")))
    for a, b in zip(aligned[3:], plain[3:], strict=True):
        assert a["group"].tolist() == b["group"].tolist()


# What a figure says of itself -----------------------------------------------------------------------------------------


def test_partial_stand_in_variant_and_tier_stand_on_the_face_of_the_figure():
    assert texts("caveated", "tag") == ["QUICK TIER", "PARTIAL: 2 of 10 trials", "VARIANT DATA", "STAND-IN DATA"]
    boxes = [t.get_bbox_patch() for t in picture("caveated").texts if t.get_gid() == "tag"]
    assert {to_hex(box.get_facecolor()) for box in boxes} == {style.AMBER.lower()}
    footer_text = footer_of("caveated")
    for part in (
        "quick tier · MNIST (real) · TCGA (stand-in) · TDT2 (variant) · synthetic (generated) · 2 of 10 trials",
        "band: min–max",
        "TDT2: a copy with 9394 documents",
        "missing: fedcgds m=70 @ mnist_ubls: 1 of 10 trials",
    ):
        assert part in footer_text


def test_a_complete_paper_figure_has_no_tag():
    assert texts("fig5", "tag") == []
    assert footer_of("fig5").startswith("paper tier · ")
    assert "· 3 trials ·" in footer_of("fig5")


def test_changed_settings_and_the_papers_trials_are_told():
    line = curve("fedcavg", "FedCAvg")
    shown = figure(panel("a", line), tier="smoke", wanted_trials=1, paper_trials=10, adjusted=("m = 9 became m = 3",))
    result = build(shown, rows(line, 1, [0, 1], [2, 1]), Sidecar(sets=("rounds=1",), trials_done=1, trials_wanted=1))
    said = {t.get_gid(): t.get_text().replace("\n", " ") for t in result.texts}
    assert "changed by --set rounds=1 · m = 9 became m = 3" in said["footer"]
    assert "1 trial (paper tier: 10)" in said["footer"]
    assert [t.get_text() for t in result.texts if t.get_gid() == "tag"] == ["SMOKE TIER", "CHANGED SETTINGS"]


def test_many_missing_series_are_counted_not_listed():
    line = curve("fedcavg", "FedCAvg")
    missing = tuple(f"s{i}: absent" for i in range(9))
    sidecar = Sidecar(complete=False, trials_done=3, trials_wanted=3, missing=missing)
    source = FigureData(figure(panel("a", line)), rows(line, 1, [0], [1]), sidecar)
    assert footer(source, ()).endswith("missing: s0: absent; s1: absent; s2: absent; and 6 more")


def test_curves_without_results_are_counted_and_not_their_reasons():
    line, gone = curve("fedcavg", "FedCAvg"), [curve("fedcgds", f"m={m}", m=m) for m in SIZES]
    sidecar = Sidecar(complete=False, trials_done=3, trials_wanted=3, missing=("5 curves: absent",))
    frame = rows(line, 1, [0], [1])
    assert tags(FigureData(figure(panel("a", line, *gone), panel("b", *gone)), frame, sidecar)) == [
        "PARTIAL: 5 curves without results"
    ]
    assert tags(FigureData(figure(panel("a", line, gone[0])), frame, sidecar)) == ["PARTIAL: 1 curve without results"]


def test_trials_that_the_spec_asks_for_since_are_missing():
    line = curve("fedcavg", "FedCAvg")
    frame = pd.concat([rows(line, t, [0], [1]) for t in (1, 2)])
    about = Sidecar(trials_done=2, trials_wanted=2)
    assert tags(FigureData(figure(panel("a", line)), frame, about)) == ["PARTIAL: 2 of 3 trials"]
    assert tags(FigureData(figure(panel("a", line), wanted_trials=2), frame, about)) == []


def test_a_panel_by_itself_says_how_many_trials_its_own_curves_have():
    few, more = curve("fedcavg", "FedCAvg"), curve("fedcgds", "FedCGds", dataset="ml1m")
    one, other = few.setting.series, more.setting.series
    missing = ("1 curve: 1 of 3 trials", "1 curve: absent")
    runs = {one: ("r", "", ""), other: ("s", "t", "u")}
    whole = Sidecar(complete=False, trials_done=1, trials_wanted=3, missing=missing, runs=runs)
    frame = pd.concat([rows(few, 1, [0], [1]), *(rows(more, t, [0], [1]) for t in (1, 2, 3))])
    both = figure(a := panel("a", few), b := panel("b", more))
    assert tags(FigureData(both, frame, whole)) == ["PARTIAL: 1 to 3 of 3 trials"]
    assert sidecar_of(a, whole).missing == ("1 curve: absent", "1 curve: 1 of 3 trials")
    assert tags(FigureData(figure(a), frame, sidecar_of(a, whole))) == ["PARTIAL: 1 of 3 trials"]
    alone = dataclasses.replace(whole, missing=missing[:1])
    assert sidecar_of(b, alone).missing == ()
    assert tags(FigureData(figure(b), frame, sidecar_of(b, alone))) == []
    assert footer(FigureData(figure(b), frame, sidecar_of(b, alone)), ()).endswith("3 trials")
    absent = dataclasses.replace(whole, missing=("2 curves: the dataset tcga is absent",))
    gone = panel("c", few, curve("fedcgds", "FedCGds", dataset="tcga"))
    assert sidecar_of(b, absent).missing == ()
    assert sidecar_of(gone, absent).missing == ("1 curve: the dataset tcga is absent", "1 curve: 1 of 3 trials")


def test_a_caption_says_what_curves_lack_in_sentences():
    line = curve("fedcavg", "FedCAvg")
    missing = ("1 curve: the dataset tcga is absent: `fedrepro data fetch tcga`", "12 curves: 1 of 3 trials", "s: lost")
    about = Sidecar(complete=False, trials_done=1, trials_wanted=3, missing=missing)
    source = FigureData(figure(panel("a", line)), rows(line, 1, [0], [1]), about)
    assert caption(source).endswith(
        "1 of 3 trials. One curve has no results: the data of TCGA were absent. 12 curves have 1 of 3 trials. "
        "Missing: s: lost."
    )
    assert "PARTIAL" not in caption(source)


def test_data_of_another_size_than_the_papers_are_marked():
    line = curve("fedcavg", "FedCAvg")
    about = dataclasses.replace(WHOLE, sizes={"mnist": {"M": 784, "N": 5040}})
    stated = figure(panel("a", line), sizes={"mnist": {"M": 784, "N": 10000}})
    frame = rows(line, 1, [0], [1])
    assert tags(FigureData(stated, frame, about)) == ["VARIANT DATA"]
    assert footer(FigureData(stated, frame, about), ()).endswith("on MNIST with N = 5,040 (the paper's: 10,000)")
    two = [curve("fedcavg", f"FedCAvg {k}", seed=k) for k in (1, 2)]
    for k, item in enumerate(two, start=1):
        own = dataclasses.replace(item.setting, names={"dataset": f"d{k}"}, dataset_params={"selection": f"s{k}"})
        two[k - 1] = dataclasses.replace(item, setting=own)
    both = figure(panel("a", *two), sizes={"d1": {"N": 10000}, "d2": {"N": 10000}})
    said = footer(FigureData(both, pd.concat(rows(item, 1, [0], [1]) for item in two), WHOLE), ())
    assert (
        "· on MNIST, selection = s1, whose size these results do not record · on MNIST, selection = s2, whose" in said
    )
    absent = figure(panel("a", line, curve("sncp", "SNCP", dataset="tdt2")), sizes={"tdt2": {"N": 9394}})
    assert tags(FigureData(absent, frame, WHOLE)) == [], "data without results are missing, and of no other size"
    same = dataclasses.replace(WHOLE, sizes={"mnist": {"M": 784, "N": 10000}})
    assert tags(FigureData(stated, frame, same)) == []
    assert tags(FigureData(dataclasses.replace(stated, tier="quick"), frame, about)) == ["QUICK TIER"]
    assert tags(FigureData(stated, frame, dataclasses.replace(about, stand_ins=("mnist",)))) == ["STAND-IN DATA"]


# Words ----------------------------------------------------------------------------------------------------------------


def test_names_for_readers_are_of_registered_datasets_and_partitions():
    assert set(naming.DATASETS) <= set(registry.datasets())  # a dataset without one has its registered name
    assert set(naming.PARTITIONS) == set(registry.partitions())


@pytest.mark.parametrize("spec", specs(ROOT / "experiments"), ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_no_name_of_a_spec_stands_in_a_legend_or_table(spec):
    """No ``participation=pcc`` and no ``case2m``; and what differs in the spec still differs."""
    drawn = load(spec, "paper")
    for shown in drawn.panels:
        legend = naming.legends(shown, drawn)
        aliases = {name for c in shown.curves for name in c.setting.names.values() if name}
        if shown.kind == "table":
            texts_ = [naming.text(cell, shown.curves, True) for place in panels.table(shown).cells() for cell in place]
        else:
            texts_ = legend
            assert len(set(legend)) == len({c.label for c in shown.curves}), shown.id
        for text in texts_:
            assert not re.search(r"\w=\w|True|False|pcc|pcp\b", text), text
            assert not aliases & set(re.findall(r"[\w-]+", text)) - {"users"}, text


def fedmgs(**params: object) -> Curve:
    """A curve labelled as ``spec.expand`` labels it."""
    return curve("fedmgs", " ".join(["FedMGS", *(f"{k}={v}" for k, v in params.items())]), **params)


@pytest.mark.parametrize(
    ("of", "plain", "text"),
    [
        (1000209, True, "1,000,209"), (1000209, False, "1,000,209"), (10000001, False, "10,000,001"),
        (2000, True, "2,000"), (2000, False, "2000"), (1e6, True, "1,000,000"), (1e6, False, "$10^{6}$"),
        (50000, False, "$5\\times 10^{4}$"), (1e-6, True, "1e-06"), (0.5, True, "0.5"), (-7, True, "-7"),
        (1e20, True, "1e+20"), (True, True, "yes"),
    ],
)  # fmt: skip
def test_whole_numbers_lose_no_digit(of, plain, text):
    assert naming.value(of, plain) == text


def test_a_number_per_alphabet_is_a_phrase():
    lines_ = [curve("local", f"Local per_alphabet={n}", per_alphabet=n) for n in (1, 5)]
    shown = panel("a", *lines_)
    assert [naming.legend(c, shown) for c in lines_] == [f"Local, {n} per alphabet" for n in ("1 client", "5 clients")]


def test_a_legend_says_what_varies_in_the_papers_symbols():
    lines_ = [fedmgs(m=10, Q1=100), fedmgs(m=100, Q1=10)]
    alone, other = panel("a", *lines_), panel("a", *lines_, curve("sncp", "SNCP", role="level"), title="FedMGS")
    assert naming.legend(lines_[0], alone, figure(alone)) == "FedMGS, $m$ = 10, $Q_1$ = 100"
    assert naming.legend(lines_[0], other, figure(other)) == "$m$ = 10, $Q_1$ = 100", "the title names the only method"
    assert naming.legend(other.curves[2], other, figure(other)) == "SNCP"
    both = panel("a", *lines_, curve("fedmavg", "FedMAvg"), title="FedMGS")
    assert naming.legend(lines_[0], both, figure(both)).startswith("FedMGS")
    own = curve("fedmgs", "my own, Q2 = 3")
    assert naming.legend(own, panel("a", own)) == "my own, $Q_2$ = 3"


def test_what_a_title_states_and_moves_along_is_left_out_of_the_legend():
    lines_ = [
        curve("fedmc-admm", f"FedMC-ADMM lam={lam:g} gam={10 * lam:g}", lam=lam, gam=10 * lam) for lam in (1e-6, 0.1)
    ]
    shown = panel("a", *lines_, title="FedMC-ADMM, gam = 10 lam")
    assert [naming.legend(c, shown) for c in lines_] == [r"$\lambda$ = $10^{-6}$", r"$\lambda$ = 0.1"]
    silent = panel("a", *lines_, title="FedMC-ADMM")
    assert naming.legend(lines_[1], silent) == r"$\lambda$ = 0.1, $\gamma$ = 1"


@pytest.mark.parametrize("name", ["fig3", "fig4"])
def test_one_legend_serves_all_panels_of_a_sweep(name):
    drawn = load(ROOT / f"experiments/fedmc/{name}.yaml", "paper")
    legends_ = {
        tuple(zip(naming.legends(p, drawn), map(repr, style.looks(p.curves)), strict=True)) for p in drawn.panels
    }
    assert len(legends_) == 1
    (entries,) = legends_
    assert nearest([look.color for look in style.looks(drawn.panels[0].curves)]) > 0.07
    assert len({look for _, look in entries}) == 6


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m = 10 (PCC), Q1 = 10, Qhat = 5", r"$m$ = 10 (PCC), $Q_1$ = 10, $\hat{Q}$ = 5"),
        ("rounds to 1e-6 against tau", r"rounds to $10^{-6}$ against $\tau$"),
        ("d = 5 L_W", "$d$ = 5 $L_W$"),
        ("a beta-version of sigma_b, Q10", r"a $\beta$-version of $\sigma_b$, Q10"),
        ("$Q1$ as it is, Q2 = 3", "$Q1$ as it is, Q2 = 3"),
        ("TDT2 and i.i.d. data", "TDT2 and i.i.d. data"),
    ],
)
def test_titles_have_the_papers_symbols(text, expected):
    assert naming.symbols(text) == expected
    assert naming.plain(naming.symbols("Q1 = 10, lam = 1e-6")) == "Q1 = 10, λ = 1e-6"


BAD = ("an unknown $\\foo{$", "an open $x_{$", "5 $ a round", "two $ and $\\frac{1}$")


@pytest.mark.parametrize("bad", BAD)
def test_a_malformed_formula_is_shown_as_it_is_written(bad, tmp_path):
    """In titles, labels, cells and the footer, in every format, and in the page."""
    line = curve("fedcavg", bad)
    own = panel("a", line, title=bad, published=({"y": 0.5, "label": bad},), options={"ylabel": bad, "xlabel": bad})
    cells = panel("t", line, kind="table", title=bad, options={"rows": "label", "columns": "metric"})
    gone = panel("g", curve("sncp", bad), title=bad)
    shown = figure(own, cells, gone, title=bad, source=bad, tier="quick")
    about = Sidecar(complete=False, missing=(bad,), sets=(bad,))
    frame = pd.concat(decay(line, 2, 0.1, 0.3))
    written = draw(shown, frame, about, tmp_path / "x", tuple(METADATA))
    assert all(path.stat().st_size for path in written)
    drawn = pictures.drawing(FigureData(shown, frame, about), own, "p", ("svg",)).files["svg"].decode()
    assert bad in drawn.replace("\n", "")
    every = build(shown, frame, about).findobj(Text)
    said = [t for t in every if "$" in t.get_text() and "mathdefault" not in t.get_text()]  # no number on an axis
    assert len(said) >= 8
    for text in said:
        plain = text.get_text().replace("\n", " ").replace(r"\$", "$")
        assert bad in plain
        literal = not text.get_parse_math() or r"\$" in text.get_text()
        assert literal == (not style.is_math(bad)), plain


def test_formulas_are_broken_at_no_line_end():
    assert style.wrap("a $b c d e f g h$ i", 0.1, 9) == "a\n$b c d e f g h$\ni"
    assert style.width("$Q_1$", 9) < style.width("$Q_1", 9), "set as a formula"


def overlaps(picture):
    """Texts, panels and legends of a picture that leave it, and pairs of them that overlap."""
    render = picture.canvas.get_renderer()
    boxes = {text.get_gid(): text.get_window_extent(render) for text in picture.texts if text.get_text().strip()}
    for place, ax in enumerate(picture.axes):
        legend = ax.get_legend()
        boxes[place] = legend.get_window_extent(render) if legend else ax.get_tightbbox(render)
    inside = picture.bbox.padded(2)
    gone = [name for name, box in boxes.items() if not (inside.contains(*box.min) and inside.contains(*box.max))]
    return gone + [(a, b) for a, b in itertools.combinations(boxes, 2) if boxes[a].padded(-2).overlaps(boxes[b])]


WORDS = ("A very long text that somebody wrote without thinking of the picture " * 8)[:500]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("long", [WORDS, "x" * 500], ids=["words", "one word"])
def test_very_long_texts_get_lines_and_room(long):
    lines = [curve("fedmavg", f"{q2} {long}", Q2=q2) for q2 in (1, 5)]
    own = panel("p", *lines, title=long, options={"xlabel": long, "ylabel": long})
    cells = panel("t", *lines, kind="table", title=long, options={"rows": "Q2", "columns": "metric"})
    frame = pd.concat([part for line in lines for part in decay(line, 2, 0.1, 0.3)])
    for panels_ in ([own], [own, panel("q", *lines)], [own, cells]):
        picture = build(figure(*panels_, title=long, source=long, columns=len(panels_)), frame, Sidecar())
        assert overlaps(picture) == []
        assert all(min(ax.get_window_extent().size) > 100 for ax in picture.axes if ax.axison)
    drawn, frame, points = scatter_figure()
    drawn = dataclasses.replace(drawn, panels=tuple(dataclasses.replace(each, title=long) for each in drawn.panels))
    assert overlaps(build(drawn, frame, Sidecar(), points)) == []


@pytest.mark.filterwarnings("error")
def test_a_text_that_leaves_no_room_is_named():
    line = curve("fedmavg", "FedMAvg", Q2=1)
    shown = panel("p", line, options={"ylabel": "word " * 4000})
    source = FigureData(figure(shown), pd.concat(decay(line, 2, 0.1, 0.3)), Sidecar())
    said = r"the text '(word ){12}\.\.\.' \(\d+ characters\) leaves no room for its panel; shorten it"
    with pytest.raises(UserError, match=said):
        single_panel._build(prepare(shown, source, Room(3.0, 2.2)), 3.0)


# Files ----------------------------------------------------------------------------------------------------------------


def test_two_draws_give_the_same_bytes_whatever_the_users_settings(tmp_path):
    drawn, frame, sidecar, points = made("troubled")
    draw(drawn, frame, sidecar, tmp_path / "a", tuple(METADATA), points)
    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context({"lines.linewidth": 9, "font.size": 30, "svg.hashsalt": None, "axes.grid": False}):
        draw(drawn, frame.sample(frac=1, random_state=0), sidecar, tmp_path / "b", tuple(METADATA), points)
    assert dict(matplotlib.rcParams) == before
    for name in METADATA:
        assert (tmp_path / f"a.{name}").read_bytes() == (tmp_path / f"b.{name}").read_bytes(), name
    assert Image.open(tmp_path / "a.png").width > 600


def test_fonts_in_pdf_files_have_letters_and_no_tables_that_place_them(tmp_path, monkeypatch):
    embedded = []
    plain = fontTools.subset.Subsetter.subset
    monkeypatch.setattr(
        fontTools.subset.Subsetter, "subset", lambda self, font: [plain(self, font), embedded.append(font)]
    )
    drawn, frame, sidecar, points = made("troubled")
    before = list(fontTools.subset.Options().drop_tables)
    draw(drawn, frame, sidecar, tmp_path / "a", ("pdf",), points)
    assert embedded
    for font in embedded:
        assert len(font.getGlyphOrder()) > 1
        assert not {"GDEF", "GPOS", "GSUB"} & set(font.keys())
    assert fontTools.subset.Options().drop_tables == before


def test_files_are_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    drawn, frame, sidecar, _ = made("table")
    stem = tmp_path / "plots" / "fig.5"
    assert [p.name for p in draw(drawn, frame, sidecar, stem, ("png",))] == ["fig.5.png", "fig.5.csv", "fig.5.md"]
    before = (stem.parent / "fig.5.png").read_bytes()

    def broken(self, stream, **_):
        stream.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", broken)
    with pytest.raises(OSError, match="disk full"):
        draw(drawn, frame, sidecar, stem, ("png",))
    assert (stem.parent / "fig.5.png").read_bytes() == before
    assert sorted(p.name for p in stem.parent.iterdir()) == ["fig.5.csv", "fig.5.md", "fig.5.png"]


# Errors ---------------------------------------------------------------------------------------------------------------

LINE = curve("fedcavg", "FedCAvg", Q2=1)


def test_a_figure_that_cannot_be_drawn_leaves_no_file(tmp_path):
    shown = figure(panel("a", LINE, options={"zoom": 2}))
    with pytest.raises(ParameterError, match="zoom must be a share of the x axis between 0 and 1, not 2"):
        draw(shown, rows(LINE, 1, [0, 1], [1, 0.5]), Sidecar(), tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "xy: panel 'a' needs options.xy: the array of coordinates of its points"),
        ({"xy": "tsne", "align": "label"}, "align: panel 'a' has no curve or array 'label', did you mean 'labels'?"),
    ],
)
def test_scatter_errors_name_the_array(options, message):
    drawn, frame, _, points = made("arrays")
    shown = figure(dataclasses.replace(drawn.panels[0], options=options))
    with pytest.raises(ParameterError, match=re.escape(message)):
        build(shown, frame, Sidecar(), points)


def test_zoom_shows_what_lies_beyond_the_first_share_of_the_axis():
    fast, slow = curve("fedmgs", "fast"), curve("fedmavg", "slow")
    s = np.arange(101)
    frame = pd.concat([rows(fast, 1, s, 1 + 9 * 0.5**s), rows(slow, 1, s, 2 + 8 * 0.8**s)])
    shown = panel("a", fast, slow, options={"zoom": 0.1})
    (ax,) = build(figure(shown), frame, Sidecar()).axes[:1]
    low, high = ax.get_ylim()
    assert 0.85 < low < 1
    assert 2 + 8 * 0.8**10 < high < 3.1
    (foot,) = (t.get_text() for t in build(figure(shown), frame, Sidecar()).texts if t.get_gid() == "footer")
    assert "the first rounds leave the frame" in " ".join(foot.split())


def test_one_embedding_serves_all_pictures_and_shows_the_truth_itself():
    """Coordinates from one curve; samples it leaves out (NaN) are in no picture; no score on the true classes."""
    rng = np.random.default_rng(1)
    n = 40
    xy, clusters, labels = rng.standard_normal((n, 2)), rng.integers(0, 3, n), rng.integers(0, 3, n)
    xy[::4] = np.nan
    truth, method = curve("tsne", "true classes"), curve("bel", "BEL")

    def kept(line, name, *columns):
        base = pd.DataFrame({"series": line.setting.series, "trial": 1, "array": name, "index": np.arange(n)})
        return base.assign(**{f"v{i}": c for i, c in enumerate(columns)})

    points = pd.concat(
        [
            kept(truth, "embedding", *xy.T),
            kept(truth, "labels", labels),
            kept(truth, "found", clusters * 0),
            kept(method, "found", clusters),
            kept(method, "labels", labels),
        ]
    )
    options = {"xy": "embedding", "xy_from": "true classes", "truth": "labels", "group": "found", "score": "accuracy"}
    shown = panel("a", truth, method, kind="scatter", y="accuracy", options=options)
    frame = pd.concat([rows(truth, 1, [0], [0.1], "accuracy"), rows(method, 1, [0], [0.5], "accuracy")])
    source = FigureData(figure(shown), frame, Sidecar(), points)
    for line, groups in ((truth, labels), (method, clusters)):
        cloud = scatter.cloud(shown, line, source)
        assert cloud["index"].tolist() == [i for i in range(n) if i % 4]
        assert np.array_equal(cloud["x"], xy[cloud["index"], 0])
        assert np.array_equal(cloud["group"], groups[cloud["index"]])
    texts = [ax.get_title() for ax in build(figure(shown), frame, Sidecar(), points).axes if ax.get_title()]
    assert texts == ["true classes", "BEL\nclustering accuracy 0.500"]
    _, *ends = end_values.ends(source, shown)
    assert [(row[0], row[1], row[3], row[-1]) for row in ends] == [
        ("true classes", "", "1", "no score"), ("BEL", "0.5", "1", ""),
    ]  # fmt: skip
    assert [row["mean"] for row in end_values.numbers(source, shown)] == [None, 0.5]
    unscored = dataclasses.replace(shown, options={**options, "score": ""})
    assert [row[1] for row in end_values.ends(source, unscored)[1:]] == ["", ""]
    with pytest.raises(ParameterError, match="no curve 'true clases', did you mean 'true classes'"):
        scatter.cloud(dataclasses.replace(shown, options={**options, "xy_from": "true clases"}), truth, source)


def test_a_panel_on_stand_in_data_says_so_in_its_title_and_a_table_in_its_column():
    line = curve("bel", "BEL", dataset="mnist")
    frame, about = rows(line, 1, [0], [0.5], "accuracy"), Sidecar(stand_ins=(line.setting.dataset,))
    shown = panel("a", line, y="accuracy", title="digits")
    assert any(ax.get_title(loc="left") == "digits (stand-in)" for ax in build(figure(shown), frame, about).axes)
    as_table = panel("t", line, kind="table", y="accuracy", options={"rows": "algorithm", "columns": "dataset"})
    (column,) = panel_cases.cells(figure(as_table), as_table, frame, about)["column"]
    assert column.endswith(" (stand-in)")
    other = curve("cal", "CAL", dataset="tdt2")
    as_rows = panel("t", line, other, kind="table", y="accuracy", options={"rows": "dataset", "columns": "metric"})
    frame = pd.concat([frame, rows(other, 1, [0], [0.5], "accuracy")])
    named = panel_cases.cells(figure(as_rows), as_rows, frame, about)
    if line.setting.dataset != other.setting.dataset:
        assert [row.endswith(" (stand-in)") for row in named["row"]] == [True, False]


def test_unknown_format_is_an_error(tmp_path):
    with pytest.raises(ParameterError, match="formats: 'jpg' is none of png, pdf, svg"):
        draw(figure(panel("a", LINE)), rows(LINE, 1, [0], [1]), Sidecar(), tmp_path / "x", ("png", "jpg"))


# What several panels share, and what would hide the others ------------------------------------------------------------


def _over_rounds_and_costs(**options: object) -> tuple[Figure, pd.DataFrame]:
    line, other = curve("fedcavg", "FedCAvg"), curve("fedcgds", "FedCGds")
    zoomed: dict[str, Any] = {"options": {"zoom": 0.05}, **options}
    costs = {"x": "uplink_scalars", "xscale": "log"}
    shown = figure(panel("a", line, other, **zoomed), panel("b", line, other, **costs, **zoomed), columns=2)
    rounds = np.arange(1, 401)
    frame = [rows(c, t, rounds, 0.3 + speed / rounds) for c, speed in ((line, 2.0), (other, 5.0)) for t in (1, 2, 3)]
    return shown, pd.concat(frame)


def test_panels_of_the_same_curves_have_one_range_and_a_log_axis_starts_where_curves_enter_it():
    ax, beside = build(*_over_rounds_and_costs(), Sidecar()).axes[:2]
    assert ax.get_ylim() == beside.get_ylim()
    entered = min(line.get_xdata()[np.argmax(line.get_ydata() <= ax.get_ylim()[1])] for line in beside.lines[:2])
    assert 0.5 * entered < beside.get_xlim()[0] < entered


def test_trouble_of_one_panel_is_a_note_where_panels_share_a_legend():
    line, other = curve("fedcavg", "FedCAvg"), curve("fedcavg", "FedCAvg", dataset="synthetic")
    trials = [rows(line, t, [0, 1, 2], [1.0, 0.6, 0.5]) for t in (1, 2)]
    trials += [rows(other, t, [0, 1, 2], [1.0, 0.6, 0.5], status="diverged" if t == 2 else "ok") for t in (1, 2)]
    made = build(figure(panel("a", line), panel("b", other), columns=2), pd.concat(trials), Sidecar())
    (legend,) = [a.get_legend() for a in made.axes if a.get_legend()]
    assert [text.get_text() for text in legend.get_texts()] == ["FedCAvg"]
    (foot,) = [text.get_text() for text in made.texts if text.get_gid() == "footer"]
    assert "b: FedCAvg (1 of 2 diverged)" in foot.replace("\n", " ")


def test_curves_that_leave_the_frame_repeatedly_are_thin_and_without_band():
    calm, wild = curve("fedcavg", "FedCAvg"), curve("fedcgds", "FedCGds")
    rounds = np.arange(200)
    falling = 0.4 + 0.6 * np.exp(-rounds / 10)
    spikes = falling + 40 * (rounds % 50 == 40)
    trials = [rows(c, t, rounds, y + 0.01 * t) for c, y in ((calm, falling), (wild, spikes)) for t in range(4)]
    made = build(figure(panel("a", calm, wild)), pd.concat(trials), Sidecar())
    assert line_of(made.axes[0], "FedCGds").get_linewidth() < 1 < line_of(made.axes[0], "FedCAvg").get_linewidth()
    assert len(made.axes[0].collections) == 1, "the band of the calm curve"
    assert any(
        "thin, without band: leaves the frame repeatedly" in text.get_text().replace("\n", " ") for text in made.texts
    )


def test_median_trials_draws_each_trial_instead_of_a_band():
    line = curve("fedcavg", "FedCAvg")
    trials = pd.concat(rows(line, t, [0, 1, 2], [1.0, 0.5 * t, 0.4 * t]) for t in (1, 2, 3))
    ax = build(figure(panel("a", line, options={"average": "median-trials"})), trials, Sidecar()).axes[0]
    assert not ax.collections
    assert len(ax.lines) == 4
    np.testing.assert_allclose(line_of(ax, "FedCAvg").get_ydata(), [1.0, 1.0, 0.8])


def test_the_legend_keeps_the_members_of_a_pair_in_a_row():
    pairs = [Entry(f"m = {m}, {case}", {"color": f"#{m:06d}"}) for m in (10, 30, 90) for case in ("i.i.d.", "not")]
    assert [entry.label for entry in _rows_of_kin(tuple(pairs), 2)] == [
        *(f"m = {m}, i.i.d." for m in (10, 30, 90)),
        *(f"m = {m}, not" for m in (10, 30, 90)),
    ]
    assert _rows_of_kin(tuple(pairs), 3) == tuple(pairs)


def test_missing_trials_are_counted_against_those_of_the_tier():
    line = curve("fedcavg", "FedCAvg")
    about = Sidecar(complete=False, trials_done=0, trials_wanted=1, missing=("6 curves: 0 of 1 trials",))
    source = FigureData(figure(panel("a", line)), rows(line, 1, [0, 1], [1.0, 0.5]), about)
    assert "missing: 6 curves: 0 of 3 trials" in footer_parts(source, ())


def test_a_table_beside_a_panel_is_not_stretched():
    line = curve("fedcavg", "FedCAvg")
    cells = panel("b", line, kind="table", y="accuracy", options={"rows": ["algorithm"], "columns": ["metric"]})
    frame = pd.concat([rows(line, 1, [0, 1], [1.0, 0.5]), rows(line, 1, [0, 1], [0.1, 0.9], metric="accuracy")])
    made = build(figure(panel("a", line), cells, columns=2), frame, Sidecar())
    made.draw_without_rendering()
    beside, table_ax = (ax.get_window_extent().height for ax in made.axes[:2])
    assert table_ax < 0.5 * beside


def test_titles_of_empty_panels_that_differ_in_their_letter_only_are_one():
    titles = ["(a) Netflix, as printed", "(b) Netflix, as printed", "(c) Netflix", "(8 bits) of one panel"]
    assert _grouped(titles[:3]) == ["(a), (b) Netflix, as printed", "(c) Netflix"]
    assert _grouped(["MovieLens"]) == ["MovieLens"]
    assert _grouped(titles[3:]) == titles[3:]
