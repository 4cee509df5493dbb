"""The report: verdicts and validity as data, and a complete, readable page without network access."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from html import escape, unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import Result
from jinja2 import UndefinedError
from scipy import stats

from fedrepro.claims.evidence import FULL, LESS, NOT_TESTED, VERDICTS
from fedrepro.plotting import series, style
from fedrepro.report import effects, gather_contents, pictures, render
from fedrepro.report.contents import Report, Section
from fedrepro.report.published import published
from fedrepro.results.consistency import recorded
from fedrepro.results.schema import MEASURED
from fedrepro.spec import discrepancies
from fedrepro.spec.nodes import SpecErrors

from . import panel_cases
from .conftest import SMALL, once
from .pages import Page

Call = Callable[..., Result]
TABLE = """\
  t:
    kind: table
    title: "ends < & >"
    options: {rows: algorithm, columns: label, digits: 3}
    curves:
      - {algorithm: fedcavg, Q1: 2, Q2: 5, label: one}
      - {algorithm: fedcgds, m: 2, Q1: 3, Q2: 4, label: one}
    published:
      - {row: FedCAvg, column: one, value: 0.25}
claims:
"""
DISCREPANCIES = """\
paper: beyond
rows:
  - id: beyond.1
    kind: values drawn
    topic: local W steps
    paper: "one <b>step</b>"
    code: "five"
    taken: "one"
    variant: {algorithm: fedcavg, Q2: 5}
    run: {figure: beyond/small, set: ["panels.a.curves.0.Q1=1"]}
    figures: [small]
    effect:
      - {figure: beyond/small, panel: a, taken: {Q2: 1}, other: {Q2: 5}}
"""
SPEC = SMALL.replace("claims:\n", TABLE).replace(
    "  b: {like: a", '  b: {published: [{y: 0.3, label: "level"}, {x: 900, y: 0.2}], like: a'
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of two figures with a discrepancy; one of the figures has no results yet."""
    folder = tmp_path / "experiments" / "beyond"
    folder.mkdir(parents=True)
    (folder / "small.yaml").write_text(SPEC)
    (folder / "later.yaml").write_text(SMALL.replace("figure: small", "figure: later"))
    (folder / "discrepancies.yaml").write_text(DISCREPANCIES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def computed(project: Path, fedrepro: Call, kept: Path) -> Path:
    once(kept, project / "results", lambda: fedrepro("run", "experiments/beyond/small.yaml", "--quiet", "--jobs", 1))
    return project


def section(tier: str = "quick") -> Section:
    return gather_contents.section(Path("experiments/beyond/small.yaml"), tier, Path("results"))


def gathered(paths: list[Path], tier: str = gather_contents.BEST, results: Path = Path("results")) -> Report:
    """The report on these specs with all that was measured."""
    rows = discrepancies.load_all(Path("experiments"))
    sections = [gather_contents.section(path, tier, results) for path in paths]
    return gather_contents.report(
        sections, rows, [effect for part in sections for effect in gather_contents.effects_in(part, rows)]
    )


# -- what it says ------------------------------------------------------------------------------------------------------


def test_a_figure_without_results_is_not_tested_and_says_so(project: Path) -> None:
    figure_section = section(gather_contents.BEST)
    assert figure_section.source is None
    assert [(row.verdict, row.why) for row in figure_section.claims] == [
        (NOT_TESTED, "no results at the paper or the quick tier")
    ]


def test_best_takes_the_paper_tier_where_it_has_results(computed: Path, fedrepro: Call) -> None:
    assert section(gather_contents.BEST).figure.tier == "quick"
    fedrepro("run", "experiments/beyond/small.yaml", "--quiet", "--jobs", 1, "--tier", "paper")
    best = section(gather_contents.BEST)
    assert (best.figure.tier, best.tiers) == ("paper", ("paper", "quick"))
    assert best.claims[0].verdict in FULL


def edit(csv: Path, change: Callable[[str], str]) -> None:
    """Change results, as if they had been written so."""
    text, sidecar = change(csv.read_text()), csv.with_suffix(".json")
    csv.write_text(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    sidecar.write_text(json.dumps({**json.loads(sidecar.read_text()), "csv_sha256": digest}))


def without(text: str, curve: str) -> str:
    """Results without the rows of one curve."""
    return "\n".join(line for line in text.splitlines() if curve not in line) + "\n"


def test_of_every_claim_the_best_evidence_is_taken(computed: Path, fedrepro: Call) -> None:
    """If a claim cannot be read from one tier, the other tier is used."""
    fedrepro("run", "experiments/beyond/small.yaml", "--quiet", "--jobs", 1, "--tier", "paper")
    path = Path("results/paper/beyond/small.csv")
    edit(path, lambda text: without(text, "Q1=2 Q2=5"))
    best = section(gather_contents.BEST)
    assert best.figure.tier == "paper"
    (row,) = best.claims
    assert (row.tier, row.level, row.evidence) == ("quick", "quick", "at the quick tier")
    assert row.verdict in LESS
    assert section("paper").claims[0].verdict == NOT_TESTED


def of_other_code(sidecar: Path) -> None:
    """Give the runs of a sidecar other identities, as other code has."""
    facts = json.loads(sidecar.read_text())
    runs = {series: [f"0{run[1:]}" for run in ids] for series, ids in facts["runs"].items()}
    sidecar.write_text(json.dumps({**facts, "plan": "of another source", "runs": runs}))


def test_stale_results_of_another_tier_that_lend_a_verdict_are_stale(computed: Path, fedrepro: Call) -> None:
    fedrepro("run", "experiments/beyond/small.yaml", "--quiet", "--jobs", 1, "--tier", "paper")
    of_other_code(Path("results/quick/beyond/small.json"))
    assert section(gather_contents.BEST).stale == ()  # every verdict is that of the paper tier
    path = Path("results/paper/beyond/small.csv")
    edit(path, lambda text: without(text, "Q1=2 Q2=5"))
    assert section(gather_contents.BEST).stale == (
        "the quick tier, whose verdicts are shown: the code that computes it changed",
    )


def test_fresh_results_are_not_stale(computed: Path) -> None:
    assert (section().stale, section().unchecked) == ((), ())


def test_a_changed_spec_makes_results_stale_and_a_changed_title_does_not(computed: Path) -> None:
    spec = Path("experiments/beyond/small.yaml")
    spec.write_text(SPEC.replace("a small figure", "another title"))
    assert section().stale == ()
    spec.write_text(SPEC.replace("N: 60", "N: 66"))
    assert section().stale == ("the spec changed, or a default that it uses: N was 60 and is 66 (4 of 4 curves)",)
    spec.write_text(SPEC.replace("Q2: [1, 5]", "Q2: [1, 5, 7]"))
    assert section().stale == ("the spec changed, or a default that it uses: 1 of 5 curves is new",)
    spec.write_text(SPEC.replace("zip: {m: [2, 6], Q1: [3, 2]}", "m: 2, Q1: 3"))
    assert section().stale[0] == "the spec changed, or a default that it uses: 1 curve of the results is gone"


def test_results_with_options_are_compared_with_the_same_options(computed: Path, fedrepro: Call) -> None:
    fedrepro("run", "experiments/beyond/small.yaml", "--quiet", "--jobs", 1, "--set", "rounds=3")
    found = gather_contents.section(Path("experiments/beyond/small.yaml"), "quick", Path("results/set/rounds=3"))
    assert found.stale == ()
    assert found.claims[0].evidence == "at the quick tier; changed by --set rounds=3"


def test_changed_code_makes_results_stale_and_an_edited_csv_is_not_used(computed: Path, fedrepro: Call) -> None:
    base = Path("results/quick/beyond/small")
    sidecar = json.loads(base.with_suffix(".json").read_text())
    of_other_code(base.with_suffix(".json"))
    assert section().stale == ("the code that computes it changed",)
    base.with_suffix(".json").write_text(json.dumps(sidecar))
    base.with_suffix(".csv").write_text(base.with_suffix(".csv").read_text().replace("fedcgds,", "fedcgdz,"))
    said = f"{base}.csv: changed since it was written (its sidecar has another hash); restore it with"
    said += " git, or compute it again with `fedrepro run`"
    figure_section = section()
    assert (figure_section.source, figure_section.stale, figure_section.claims[0].why) == (None, (said,), said)
    assert (figure_section.claims[0].verdict, section(gather_contents.BEST).stale) == (NOT_TESTED, (said,))
    fedrepro("run", "experiments/beyond/small.yaml", "--quiet", "--jobs", 1, "--tier", "paper")
    assert section(gather_contents.BEST).claims[0].tier == "paper"
    assert said in section(gather_contents.BEST).stale


def test_data_that_changed_or_are_absent_are_named(computed: Path) -> None:
    path = Path("results/quick/beyond/small.json")
    sidecar = json.loads(path.read_text())
    sidecar["plan"] = "other"
    sidecar["datasets"][0]["fingerprint"] = "other"
    path.write_text(json.dumps(sidecar))
    assert section().stale == ("the data of synthetic changed",)
    sidecar["datasets"] = [{"dataset": "mnist", "state": "present", "fingerprint": "f", "note": ""}]
    path.write_text(json.dumps(sidecar))
    spec = Path("experiments/beyond/small.yaml")
    spec.write_text(
        spec.read_text().replace("name: synthetic, variant: clean, M: 12, N: 60, K: 3", "name: mnist, n: 60")
    )
    figure = section().figure
    sidecar["settings"] = json.loads(json.dumps([recorded(s) for s in figure.settings()], default=str))
    path.write_text(json.dumps(sidecar))
    assert section().stale == ("the code that computes it changed",)  # its runs are not those of the recorded data
    sidecar["datasets"] = [
        {"dataset": "mnist", "state": "unknown", "fingerprint": "", "note": ""},
        *sidecar["datasets"],
    ]
    path.write_text(json.dumps(sidecar))
    figure_section = section()
    assert figure_section.stale == ()
    assert figure_section.unchecked == ("computed on mnist, which is absent here, so changes cannot be detected",)


def test_a_curve_that_diverges_is_named_in_the_verdict(computed: Path) -> None:
    path = Path("results/quick/beyond/small.csv")
    lines = path.read_text().splitlines()
    lines = [line.replace(",1,ok,", ",1,diverged,") if "fedcavg Q1=2 Q2=5" in line else line for line in lines]
    edit(path, lambda _: "\n".join(lines) + "\n")
    (row,) = section().claims
    assert row.why.endswith("; 'FedCAvg Q2=5' diverges in 1 of 2 trials")


def test_missing_data_are_named_where_a_curve_has_none(computed: Path) -> None:
    path, sidecar = Path("results/quick/beyond/small.csv"), Path("results/quick/beyond/small.json")
    edit(path, lambda text: without(text, "Q1=2 Q2=5"))
    facts = json.loads(sidecar.read_text())
    sidecar.write_text(json.dumps({**facts, "missing": ["1 curve: the dataset x is absent: `fedrepro data fetch x`"]}))
    (row,) = section().claims
    assert row.verdict == NOT_TESTED
    assert row.why == (
        "'FedCAvg Q2=5' has no finished trials: 1 curve: the dataset x is absent: `fedrepro data fetch x`"
    )
    both = [f"1 curve: the dataset {name} is absent: `fedrepro data fetch {name}`" for name in ("x", "synthetic")]
    sidecar.write_text(json.dumps({**facts, "missing": both}))  # the claim reads no curve on the first one
    (row,) = section().claims
    assert row.why == f"'FedCAvg Q2=5' has no finished trials: {both[1]}"


def test_figures_stand_in_their_order(project: Path) -> None:
    folder = Path("experiments/beyond")
    for name in ("fig10", "fig3", "figS1", "table1"):
        (folder / f"{name}.yaml").write_text(SMALL.replace("figure: small", f"figure: {name}"))
    specs = [folder / f"{name}.yaml" for name in ("table1", "fig10", "figS1", "fig3")]
    report = gathered(specs)
    assert [s.figure.figure for s in report.sections] == ["fig3", "fig10", "figS1", "table1"]


def test_published_numbers_stand_beside_the_nearest_curve(computed: Path) -> None:
    level, point = section().published
    assert (level.x, level.value, level.curve) == (None, 0.3, "")  # a level is compared with levels: there is none
    assert (point.panel, point.x, point.value) == ("b", 900.0, 0.2)
    shown, frame = section().figure.panels[1], section().source.frame  # type: ignore[union-attr]
    ours = {}
    for curve in shown.curves:
        rows = frame[(frame["series"] == curve.setting.series) & (frame["metric"] == shown.y)]
        means = rows.groupby("uplink_scalars")["value"].mean()
        if means.index[-1] >= 900:
            ours[curve.label] = float(np.interp(900, means.index, means))
    assert len(ours) > 2
    nearest = min(ours, key=lambda label: abs(np.log(ours[label] / 0.2)))
    assert (point.curve, point.ours) == (nearest, pytest.approx(ours[nearest]))


@pytest.mark.parametrize(("scale", "nearest"), [("linear", "two"), ("log", "one")])
def test_of_several_curves_the_nearest_is_named_wherever_it_stands(scale: str, nearest: str) -> None:
    heights = {"one": 8.0, "two": 4.0, "three": 1.0}
    lines = [panel_cases.curve("fedcgds", label, m=m) for m, label in enumerate(heights)]
    levels = [panel_cases.curve("kmeans++", label.upper(), role="level", n=m) for m, label in enumerate(heights)]
    frame = pd.concat(
        [panel_cases.rows(item, 1, [0, 1, 2], [9.0, heights[item.label.lower()], 0.5]) for item in lines]
        + [panel_cases.rows(item, 1, [0], [heights[item.label.lower()]]) for item in levels]
    )
    said = ({"x": 1, "y": 5.9}, {"y": 5.9})  # 1.9 above the second and 2.1 below the first; 1.36 times the first
    shown = panel_cases.panel("a", *lines, *levels, published=said, yscale=scale)
    point, level = published(series.FigureData(panel_cases.figure(shown), frame))
    assert (point.curve, point.ours) == (nearest, heights[nearest])
    assert (level.curve, level.ours) == (nearest.upper(), heights[nearest])


def test_published_points_are_compared_where_the_picture_has_our_rounds() -> None:
    line = panel_cases.curve("cutemaxvar", "CuteMaxVar")
    frame = panel_cases.rows(line, 1, [0, 1, 2, 3], [8.0, 4.0, 2.0, 1.0])

    def ours(**options: object) -> list[float]:
        shown = panel_cases.panel("a", line, published=({"x": [1, 2], "y": [3, 3]},), options=options)
        return [one.ours for one in published(series.FigureData(panel_cases.figure(shown), frame))]

    assert ours() == [4.0, 2.0]
    assert ours(starts_at=1) == [8.0, 4.0]


def test_an_effect_counts_only_the_trials_that_both_curves_have(
    computed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = section().source
    (effect,) = discrepancies.load_all(Path("experiments"))[0].effects
    panel, few, many = effects.curves(effect, source.figure)
    plain = series.trials
    first, second = plain(source, many, panel, x="round", metric="objective")
    monkeypatch.setattr(
        series,
        "trials",
        lambda results, curve, *of, **how: plain(results, curve, *of, **how)[: 1 if curve == few else 2],
    )
    words = effects.measure(effect, source).words
    assert words.endswith("(1 trial)")
    assert f"{first.y[-1]:.4g} (FedCAvg" in words
    assert f"{(first.y[-1] + second.y[-1]) / 2:.4g}" not in words


def test_an_effect_whose_curves_were_left_out_says_so(computed: Path, fedrepro: Call) -> None:
    fedrepro("run", "experiments/beyond/small.yaml", "--quiet", "--jobs", 1, "--set", "panels.a.curves.0.Q1=3",
             "--set", "panels.a.curves.0.Q2=[1, 4]", "--set", "claims=[]")  # fmt: skip
    (own,) = Path("results/set").iterdir()
    report = gathered([Path("experiments/beyond/small.yaml")], "quick", own)
    (effect,) = report.effects["beyond.1"]
    assert effect.words.startswith("cannot be read from these results: Q2=5 selects no curve")


def test_an_error_in_a_file_of_discrepancies_names_its_place(project: Path) -> None:
    Path("experiments/beyond/discrepancies.yaml").write_text(DISCREPANCIES.replace("topic:", "tpic:"))
    with pytest.raises(
        SpecErrors, match=r"discrepancies\.yaml:5:5: 'tpic' is not a key of a row, did you mean 'topic'\?"
    ):
        gathered([])


# -- every number again, from the CSV by other code --------------------------------------------------------------------

MORE_CLAIMS = """\
  - {id: small.2, says: "the other way", where: "nowhere", panel: a,
     check: "y(at='end', Q2=1) < y(at='end', Q2=5)"}
  - {id: small.3, says: "not sure", where: "nowhere", panel: a, check: "y(at=3, Q2=5) < 0.33"}
  - {id: small.4, says: "too late", where: "nowhere", panel: a, check: "y(at=99, Q2=5) < 0.5"}
  - {id: small.5, says: "on the way", where: "nowhere", panel: a, check: "y(at=[2, 4], Q2=1) > 0.25"}
tiers:
"""
NUMBERED = SPEC.replace("tiers:\n", MORE_CLAIMS).replace("quick: {}", "quick: {trials: 4}")
FEW, MANY, SHARED, ALL = (
    f"{name} @ syn / unf"
    for name in ("fedcavg Q1=2 Q2=1", "fedcavg Q1=2 Q2=5", "fedcgds m=2 Q1=3 Q2=4", "fedcgds m=6 Q1=2 Q2=4")
)
LABELS = {FEW: "FedCAvg Q2=1", MANY: "FedCAvg Q2=5", SHARED: "FedCGds m=2 Q1=3", ALL: "FedCGds m=6 Q1=2"}


def numbered(text: str) -> str:
    """Results with numbers of our own: two diverged trials, one failed one, and other costs in every trial."""
    rng, rows = np.random.default_rng(0), list(csv.DictReader(io.StringIO(text)))
    kept = []
    for row in rows:
        series, trial, r = row["series"], int(row["trial"]), int(row["round"])
        level = {FEW: 0.55, MANY: 0.5, SHARED: 0.6, ALL: 0.58}[series] - 0.06 * r
        row["value"] = repr(level + 0.1 * (series == MANY) * (3 - r) + 0.02 * float(rng.random()))
        row["uplink_scalars"] = str(r * (200 + 10 * trial))
        row["uplink_bits"] = str(3 * r * (200 + 10 * trial))
        if series == MANY and trial in (2, 4):
            row["status"] = "diverged"
        if series == SHARED and trial == 3:
            if r:
                continue
            row |= {name: "" for name in row if name in MEASURED[2:]} | {"status": "failed"}
        kept.append(row)
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(kept)
    return out.getvalue()


class Numbers:
    """What a CSV has, by loops: ``values[series][trial][round]`` and the same of costs; trials that went well."""

    def __init__(self, path: Path) -> None:
        self.values: dict[str, dict[int, dict[int, float]]] = {}
        self.costs: dict[str, dict[int, dict[int, float]]] = {}
        self.well: dict[str, list[int]] = {}
        for row in csv.DictReader(path.open()):
            if row["status"] == "failed":
                continue
            trial, r = int(row["trial"]), int(row["round"])
            for table, column in ((self.values, "value"), (self.costs, "uplink_scalars")):
                table.setdefault(row["series"], {}).setdefault(trial, {})[r] = float(row[column])
            if row["status"] == "ok" and r == 0:
                self.well.setdefault(row["series"], []).append(trial)

    def at(self, series: str, r: int, trials: Sequence[int] = (1, 2, 3, 4)) -> list[float]:
        return [self.values[series][trial][r] for trial in trials]


def interval(numbers: Sequence[float]) -> tuple[float, float, float]:
    """Mean and 95 % interval: for four numbers Student's t is 3.182446."""
    mean, half = statistics.mean(numbers), {2: 12.706205, 4: 3.182446}[len(numbers)]
    half *= statistics.stdev(numbers) / math.sqrt(len(numbers))
    return mean, mean - half, mean + half


def bracketed(numbers: Sequence[float], form: str, unit: str = "") -> str:
    value, low, high = (format(number, form) for number in interval(numbers))
    return f"{value}{unit} [{low}, {high}]"


def margin(numbers: Sequence[float]) -> str:
    """A margin of the objective as a verdict's reason prints it."""
    return f"margin {bracketed(numbers, '.3g', ' objective (relative)')} over 4 trials"


def undecided(numbers: Sequence[float]) -> str:
    """What follows where the interval contains zero: its ends, and the trials whose half width is below the mean."""
    _, low, high = interval(numbers)
    mean, deviation = abs(statistics.mean(numbers)), statistics.stdev(numbers)
    needed = next(n for n in range(2, 1001) if stats.t.ppf(0.975, n - 1) * deviation / math.sqrt(n) < mean)
    return f"; excluded: below {low:.3g} and above {high:.3g}; at this margin and spread {needed} trials would decide"


def words_of(path: str) -> str:
    """The text of a page, every cell a word of its own."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", Path(path).read_text(encoding="utf-8"))).split())


def test_every_number_that_the_report_prints_follows_from_the_csv(project: Path, fedrepro: Call) -> None:
    Path("experiments/beyond/small.yaml").write_text(NUMBERED)
    assert fedrepro("run", "experiments/beyond/small.yaml", "--quiet", "--jobs", 1).exit_code == 0
    path = Path("results/quick/beyond/small.csv")
    edit(path, numbered)
    ran = fedrepro("report", "beyond/small", "--tier", "quick", "--jobs", 1, "--out", "out", "--no-pictures")
    assert ran.exit_code == 0, ran.output
    ours = Numbers(path)
    few, many = (ours.at(series, 5) for series in (FEW, MANY))
    better = [with_1 - with_5 for with_1, with_5 in zip(few, many, strict=True)]
    third = [0.33 - y for y in ours.at(MANY, 3)]
    on_the_way = min(([y - 0.25 for y in ours.at(FEW, r)] for r in (2, 4)), key=lambda margins: interval(margins)[1])
    gone = "; 'FedCAvg Q2=5' diverges in 2 of 4 trials"
    whys = {
        "small.1": ("holds", f"{margin(better)}{gone}"),
        "small.2": ("fails", f"{margin([-d for d in better])}{gone}"),
        "small.3": ("undecided", f"{margin(third)}{undecided(third)}{gone}"),
        "small.4": ("not tested", f"round 99 is after the last of the 5 rounds of this tier{gone}"),
        "small.5": ("holds", margin(on_the_way)),
    }
    assert interval(third)[1] < 0 < interval(third)[2]
    text = Path("out/REPORT.md").read_text()
    for claim, (verdict, why) in whys.items():
        (line,) = (line for line in text.splitlines() if f"| `{claim}` |" in line)
        assert line.startswith(f"| {verdict} |")
        assert line.endswith(f"{why} | {'one reading' if verdict != NOT_TESTED else ''} |")
    none = "; ".join(f"0 {verdict}" for verdict in VERDICTS[:4])
    counted = f"{none}; 2 holds; 1 fails; 1 undecided; 1 not tested"
    assert f"{counted}; 5 claims\n" in ran.output
    assert "\nThe papers' claims: none.\n" in text
    assert ": 2 holds, 1 fails, 1 undecided, 1 not tested.\n" in text
    assert "\n5 claims.\n" in text
    assert "| quick | 4 |  | 2 holds, 1 fails, 1 undecided |" in text
    assert "| beyond | small | quick |  |  |  |  | 2 | 1 | 1 | 1 |" in text

    page = words_of("out/report/claims/small.1.html")
    sides = f"{bracketed(many, '.4g')} < {bracketed(few, '.4g')} {bracketed(better, '.4g')}"
    assert f"round 5 {sides}" in page
    page = words_of("out/report/claims/small.5.html")
    for r, decides in ((2, ""), (4, "decides ")):
        margins = [y - 0.25 for y in ours.at(FEW, r)]
        assert f"round {r} {decides}{bracketed(ours.at(FEW, r), '.4g')} > 0.25 {bracketed(margins, '.4g')}" in page
    assert "Holds at 2 of 2 places." in page

    well = ours.well[MANY]
    assert well == [1, 3]
    paired = [ours.values[MANY][t][5] - ours.values[FEW][t][5] for t in well]
    mean, low, high = (f"{number:+.3g}" for number in interval(paired))
    effect = (
        f"{statistics.mean(few):.4g} (FedCAvg Q2=1); {statistics.mean(ours.at(MANY, 5, well)):.4g} (FedCAvg Q2=5) "
        f"(2 of 4 trials diverge); difference {mean} [{low}, {high}] over 2 trials"
    )
    for page in (text, words_of("out/report/discrepancies.html"), words_of("out/report/claims/small.1.html")):
        assert effect in page

    page = words_of("out/report/figures/beyond-small.html").replace("−", "-")
    drawn = {}
    for name, label in LABELS.items():
        curves = [(ours.costs[name][trial], ours.values[name][trial]) for trial in ours.well[name]]
        drawn[label] = statistics.mean(float(np.interp(900, [*x.values()], [*y.values()])) for x, y in curves)
    label = min(drawn, key=lambda curve: abs(math.log(drawn[curve] / 0.2)))
    assert f"b 900 0.2 {drawn[label]:.4g} {round(100 * (drawn[label] / 0.2 - 1)):+d} % {label}" in page

    shown = " ".join(fedrepro("show", "beyond/small", "--tier", "quick").output.split())
    for name, label in LABELS.items():
        ends = ours.at(name, 5, ours.well[name])
        sent = statistics.mean(ours.costs[name][trial][5] for trial in ours.well[name])
        note = {MANY: "2 of 4 diverged", SHARED: "1 of 4 failed"}.get(name, "")
        cost = f"{sent:,.0f} {3 * sent:,.0f}"
        row = f"{label} {statistics.mean(ends):.6g} {statistics.stdev(ends):.2g} {len(ends)} 5 {cost} {note}"
        assert shown.count(row) == 1, row  # of panels a and b, which have one table
    mean, sd = statistics.mean(ours.at(MANY, 5, well)), statistics.stdev(ours.at(MANY, 5, well))
    assert f"FedCAvg {mean:.3f} ± {sd:.3f} (2 of 4 diverged); paper 0.250 (−{0.25 - mean:.3f})" in shown


# -- the files ---------------------------------------------------------------------------------------------------------


def test_the_page_is_whole(computed: Path, fedrepro: Call) -> None:
    result = fedrepro("report", "--jobs", 1, "--out", "out", "--single", "out/report.html")
    assert result.exit_code == 0, result.output
    text = Path("out/report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    assert set(page.links) <= set(page.ids)
    wanted = {"index/paper-own", "find/claims", "figures/beyond-small", "figures/beyond-later"}
    assert wanted | {"claims/beyond-small-small.1", "discrepancies/discrepancy-beyond.1"} <= set(page.ids)
    assert page.fetched == []
    assert "@import" not in text
    assert not re.search(r"url\((?!#|\"#)", text)
    assert len(re.findall(r'<svg[^>]*><g id="drawing', text)) == 2  # claims refer to the drawings of their figures
    assert '<use href="#drawing-0"' in text
    assert len(re.findall(r'class="curve"><title>FedC', text)) == 8
    assert "fedrepro run experiments/beyond/small.yaml --tier quick" in text
    assert "one &lt;b&gt;step&lt;/b&gt;" in text
    assert "ends &lt; &amp; &gt;" in text
    assert "paper 0.250" in text
    assert "fedrepro run beyond/small --set &#39;panels.a.curves.0.Q1=1&#39; --results results-other" in text
    assert len(re.findall(r"<dt>effect</dt><dd>objective", text)) == 1


def test_what_a_claim_says_is_text_and_not_markup(computed: Path, fedrepro: Call) -> None:
    spec = Path("experiments/beyond/small.yaml")
    markup = {"says": "a <b>1</b>", "reading": "a <i>2</i>", "where": "a <u>3</u>", "note": "a <s>4</s>"}
    written = "".join(f'    {key}: "{text}"\n' for key, text in markup.items())
    old = '    says: "more local steps help"\n    where: "nowhere"\n'
    spec.write_text(spec.read_text().replace(old, written))
    fedrepro("report", "--no-pictures", "--out", "out", "--single", "out/report.html")
    text = Path("out/report.html").read_text(encoding="utf-8")
    for words in markup.values():
        assert words not in text
        assert escape(words) in text


def test_two_reports_of_the_same_results_are_the_same_file(
    computed: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for out in ("one", "two"):  # ids that differ from one drawing to the next, as some of matplotlib's do
        monkeypatch.setitem(style.RC, "svg.hashsalt", out)
        fedrepro("report", "--jobs", 1, "--out", out, "--single", f"{out}/report.html")
    same_files(Path("one"), Path("two"))


def same_files(first: Path, second: Path) -> None:
    """Whether two folders contain the same files."""
    names = [path.relative_to(first) for path in sorted(first.rglob("*")) if path.is_file()]
    assert names == [path.relative_to(second) for path in sorted(second.rglob("*")) if path.is_file()]
    assert [name for name in names if (first / name).read_bytes() != (second / name).read_bytes()] == []
    assert len(names) > 10


@pytest.mark.slow
def test_a_report_of_another_process_is_the_same_file(computed: Path, fedrepro: Call) -> None:
    words = ["report", "--jobs", "1", "--out", "out", "--single", "out/report.html"]
    assert fedrepro(*words).exit_code == 0
    Path("out").rename("here")
    environment = os.environ | {"PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"}
    subprocess.run([sys.executable, "-m", "fedrepro", *words], env=environment, check=True, capture_output=True)
    same_files(Path("here"), Path("out"))


def test_markdown_holds_the_verdicts_and_the_discrepancies(computed: Path, fedrepro: Call) -> None:
    fedrepro("report", "--no-pictures", "--out", "out", "--single", "out/report.html")
    text = Path("out/REPORT.md").read_text(encoding="utf-8")
    ours = "Our own claims, and all claims on theorems: 1 undecided, 1 not tested."
    assert text.startswith(f"# Which claims held\n\nThe papers' claims: none.\n\n{ours}\n")
    assert "| quick | 1 |  | 1 undecided | smaller data, fewer rounds and trials |" in text
    assert "| undecided | quick | `small.1` | more local steps help (nowhere) | at the quick tier: margin " in text
    assert "| not tested | none | `small.1` | more local steps help (nowhere) | no results at the paper or" in text
    assert "**beyond.1, local W steps**" in text
    assert "\n**\n" not in text, "a figure without a source"
    assert "- other reading: `algorithm fedcavg with Q2: 5`" in text


def test_markdown_has_no_markup_of_specs_and_one_line_for_a_title(computed: Path, fedrepro: Call) -> None:
    spec = Path("experiments/beyond/small.yaml")
    title = 'title: "<img src=x onerror=y>\\n# a < b | $\\\\lambda = 1$"'
    spec.write_text(re.sub("title: .*", lambda _: title, spec.read_text(), count=1))
    fedrepro("report", "--no-pictures", "--out", "out", "--single", "out/report.html")
    text = Path("out/REPORT.md").read_text(encoding="utf-8")
    assert "## beyond/small: &lt;img src=x onerror=y> # a < b | $\\lambda = 1$\n" in text
    assert not re.search("<[a-z/!]", text)


@pytest.mark.parametrize("odd", ["../../../etc/x", "n" * 5000, "a\\0b", "[a]", "{a: b}"])
@pytest.mark.parametrize("key", ["paper", "figure"])
@pytest.mark.parametrize("command", ["report", "verdict", "plot", "show"])
def test_results_are_looked_for_under_names_of_files_only(
    computed: Path, fedrepro: Call, command: str, key: str, odd: str
) -> None:
    spec = Path("experiments/beyond/odd.yaml")
    said = odd if odd[0] in "[{" else f'"{odd}"'
    spec.write_text(re.sub(f"{key}: .*", lambda _: f"{key}: {said}", SMALL, count=1))
    answer = fedrepro(command, spec)
    assert answer.exit_code == 2, answer.output
    assert "error: " in answer.stderr


def test_fail_on_makes_it_a_check(computed: Path, fedrepro: Call) -> None:
    arguments = ("report", "--no-pictures", "--out", "out", "--single", "out/report.html", "--fail-on")
    passed = fedrepro(*arguments, "not-reproduced", "--fail-on", "stale")
    assert passed.exit_code == 0
    failed = fedrepro(*arguments, "not-tested")
    assert failed.exit_code == 1
    assert "--fail-on: 1 not-tested" in failed.output
    sidecar = Path("results/quick/beyond/small.json")
    of_other_code(sidecar)
    stale = fedrepro(*arguments, "stale")
    assert (stale.exit_code, "--fail-on: 1 stale" in stale.output) == (1, True)
    assert "Stale: the code that computes it changed." in Path("out/report.html").read_text()


def test_a_template_that_is_not_given_what_it_names_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="'rows' is undefined"):
        render.render("numbers.html", caption="a", columns=())


def test_static_files_stay_between_their_tags() -> None:
    assert "</" not in render.static("report.css")
    assert "</" not in render.static("site.js")


def test_a_picture_keeps_its_words_and_shortens_its_coordinates() -> None:
    svg = """<?xml version="1.0"?>
<svg width="72pt" viewBox="0 0 72 72"><metadata>made by</metadata>
<g id="tag"><path id="p1a2" d="M 1.23456 2" style="stroke: #000000; fill: #0072B2"/></g>
<g id="curve0"><path d="M 0 0"/></g><use xlink:href="#p1a2"/>
<g clip-path="url(#p1a2)"><text style="font: 9px 'DejaVu Sans', 'x'">0.4567</text></g></svg>"""
    text = pictures.inline(svg, "f-a", "0.125", {"curve0": "a < b: 0.4567"})
    assert text.startswith(
        '<svg class="picture" role="img" aria-label="0.125" viewBox="0 0 72 72" style="max-width:96px">'
    )
    assert 'd="M 1.23 2"' in text
    assert ">0.4567</text>" in text
    assert '<g id="f-a-curve0" class="curve"><title>a &lt; b: 0.4567</title>' in text
    assert 'id="f-a-0"' in text
    assert 'xlink:href="#f-a-0"' in text
    assert 'clip-path="url(#f-a-0)"' in text
    assert '<g class="tag">' in text
    assert "stroke: var(--ink)" in text
    assert "fill: #0072B2; fill: light-dark(#0072B2, #" in text
    assert "made by" not in text


def test_every_number_on_an_axis_reaches_the_page(computed: Path) -> None:
    source = section().source
    assert source is not None
    panel = source.figure.panels[0]
    drawn = pictures.drawing(source, panel, "p", ("svg",)).files["svg"].decode()
    picture = panel_cases.build(pictures.figure_of(source.figure, panel), source.frame, source.sidecar, source.points)
    picture.canvas.draw()
    axes = picture.axes[0]
    low, high = axes.get_ylim()
    labels = [label.get_text() for label in axes.get_yticklabels() if low <= label.get_position()[1] <= high]
    assert len(labels) > 2
    assert all(f">{label}<" in drawn for label in labels)


def test_a_large_picture_becomes_a_png(computed: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "LARGEST", 10)
    fedrepro("report", "--jobs", 1, "--out", "out", "--single", "out/report.html")
    text = Path("out/report.html").read_text(encoding="utf-8")
    assert "<svg" not in text
    assert '<img class="picture" src="data:image/png;base64,' in text
    assert 'alt="a small figure: (a) left' in text


# -- in a browser ------------------------------------------------------------------------------------------------------

PROBE = """<script>window.addEventListener('load', function () {
  var wide = Array.from(document.querySelectorAll('body *')).filter(function (e) {
    return !e.closest('.scroll') && e.getBoundingClientRect().right > innerWidth + 1; });
  document.querySelector('a[data-filter="verdict=not-tested"]').click();
  var listed = document.querySelectorAll('#find li[data-verdict]');
  var shown = Array.from(listed).filter(function (e) { return e.offsetHeight > 0; });
  location.hash = 'discrepancies/discrepancy-beyond.1';
  var target = document.querySelector(':target');
  parent.document.body.setAttribute('data-probe', JSON.stringify({
    inner: innerWidth,
    scroll: document.documentElement.scrollWidth,
    wide: wide.map(function (e) { return e.tagName + '.' + e.getAttribute('class'); }),
    fetched: performance.getEntriesByType('resource').map(function (e) { return e.name; }),
    shown: shown.length,
    target: target && target.id
  }));
});</script></body>"""


def chromium() -> str:
    """A Chromium on this machine; skips the test where there is none."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
    browser = next((path for name in names if (path := shutil.which(name))), None)
    if browser is None:
        pytest.skip(f"no Chromium is installed (looked for {', '.join(names)})")
    return browser


@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 400])
def test_in_chromium(computed: Path, fedrepro: Call, width: int) -> None:
    browser = chromium()
    fedrepro("report", "--jobs", 1, "--out", "out", "--single", "out/report.html")
    text = Path("out/report.html").read_text(encoding="utf-8").replace("</body>", PROBE)
    page = computed / "frame.html"  # a frame, because browsers have a least width of windows
    page.write_text(
        f'<body><iframe width={width} height=1400 style="border:0" srcdoc="{escape(text)}"></iframe></body>'
    )
    flags = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-sync"
    flags += (
        " --disable-component-update --disable-extensions --enable-logging=stderr --window-size=1300,1500 --dump-dom"
    )
    done = subprocess.run(
        [
            browser, *flags.split(), f"--user-data-dir={computed / 'profile'}", "--host-resolver-rules=MAP * ~NOTFOUND",
            page.as_uri(),
        ],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    match = re.search(r'data-probe="([^"]+)"', done.stdout)
    assert match, done.stderr[-2000:]
    probe = json.loads(match.group(1).replace("&quot;", '"'))
    assert probe["inner"] == width
    assert probe["fetched"] == []
    assert probe["scroll"] <= width
    assert probe["wide"] == []
    assert probe["shown"] == 1  # one claim of two is not tested, and the link shows those
    assert probe["target"] == "discrepancies/discrepancy-beyond.1"
    assert "CONSOLE" not in done.stderr
