"""Two runs of a figure: what counts as moved, and the commands compare and show."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import Result

from fedrepro.errors import UserError
from fedrepro.report import compare
from fedrepro.results.schema import COLUMNS

Call = Callable[..., Result]
ROUNDS = np.arange(21)


def tidy(curves: dict[str, np.ndarray], metric: str = "objective") -> pd.DataFrame:
    """A results frame: for every series an array (trials, rounds) of values."""
    rows = [
        {"series": name, "trial": trial + 1, "round": r, "metric": metric, "value": value, "status": "ok"}
        for name, values in curves.items()
        for trial, row in enumerate(values)
        for r, value in zip(ROUNDS, row, strict=True)
    ]
    return pd.DataFrame(rows).reindex(columns=list(COLUMNS))


def noisy(seed: int, shift: float = 0.0, trials: int = 8) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.exp(-ROUNDS / 5) + shift + 0.01 * rng.standard_normal((trials, ROUNDS.size))


def states(a: pd.DataFrame, b: pd.DataFrame) -> list[str]:
    return [change.state for change in compare.compare(a, b)]


def test_equal_runs_are_the_same() -> None:
    frame = tidy({"x": noisy(0), "y": noisy(1)})
    assert states(frame, frame.copy()) == ["same", "same"]
    lost = noisy(0)
    lost[3, 10:] = np.nan
    assert states(tidy({"x": lost}), tidy({"x": lost})) == ["same"]


def test_a_shift_beyond_the_noise_is_found_and_noise_is_not() -> None:
    comparisons = compare.compare(tidy({"x": noisy(0), "y": noisy(1)}), tidy({"x": noisy(2), "y": noisy(3, shift=0.1)}))
    assert [c.state for c in comparisons] == ["within noise", "moved"]
    moved = comparisons[1]
    assert moved.low < 0.1 < moved.high
    assert moved.low > 0
    assert moved.trials == 8


def test_fresh_noise_alone_is_called_moved_about_once_in_twenty() -> None:
    calls = [states(tidy({"x": noisy(2 * i)}), tidy({"x": noisy(2 * i + 1)}))[0] for i in range(120)]
    assert calls.count("moved") / len(calls) < 0.12
    assert calls.count("within noise") > 100


def test_pairing_finds_what_the_spread_over_trials_hides() -> None:
    spread = np.linspace(-1, 1, 8)[:, None] + noisy(0)
    assert states(tidy({"x": spread}), tidy({"x": spread + 0.01 + 1e-4 * noisy(1)})) == ["moved"]


def test_a_change_in_the_middle_only_is_found() -> None:
    changed = noisy(0)
    changed[:, 5:12] += 0.2
    (comparison,) = compare.compare(tidy({"x": noisy(0)}), tidy({"x": changed}))
    assert comparison.state == "moved"
    assert 5 <= comparison.at < 12


def test_one_trial_differs_and_cannot_be_judged() -> None:
    (found,) = compare.compare(tidy({"x": noisy(0, trials=1)}), tidy({"x": noisy(1, trials=1)}))
    assert (found.state, found.low) == ("differs", found.high)


def test_a_side_that_ceases_to_be_finite_moved() -> None:
    broken = noisy(0)
    broken[2, 15:] = np.inf
    (comparison,) = compare.compare(tidy({"x": noisy(0)}), tidy({"x": broken}))
    assert comparison.state == "moved"
    assert compare.lines([comparison], every=False)[0][-1] == "one side is not finite from round 15 on"


def test_curves_without_a_counterpart_and_renamed_ones() -> None:
    a, b = tidy({"x": noisy(0), "old": noisy(1)}), tidy({"x": noisy(0), "new": noisy(1)})
    renamed = compare.compare(a, b)
    assert [(c.series, c.other, c.state) for c in renamed] == [("x", "x", "same"), ("old", "new", "same")]
    assert compare.lines(renamed, every=True)[1][1] == "old -> new"
    assert states(a, tidy({"x": noisy(0)})) == ["same", "only in A"]
    assert states(tidy({"x": noisy(0)}), a) == ["same", "only in B"]


def test_rounds_looked_at_end_with_the_last() -> None:
    assert compare.looked_at(1).tolist() == [0]
    assert compare.looked_at(4).tolist() == [0, 1, 2, 3]
    assert compare.looked_at(500)[-1] == 499
    assert len(compare.looked_at(500)) <= compare.ROUNDS


def test_errors_name_the_file_and_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"none\.csv: no such file; results are stored in results/TIER/PAPER/FIGURE\.csv"
    ):
        compare.read(tmp_path / "none.csv")
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match=r"not a results file of `fedrepro run`: it has no column 'series'"):
        compare.read(other)
    frame = tidy({"x": noisy(0)})
    with pytest.raises(UserError, match=r"--metric objectve: neither file has it, did you mean 'objective'\?"):
        compare.compare(frame, frame, "objectve")


def test_files_without_a_common_curve_are_refused(fedrepro: Call, tmp_path: Path) -> None:
    for name, curves in (("x", {"a": noisy(0), "b": noisy(1)}), ("y", {"c": noisy(0)})):
        tidy(curves).to_csv(tmp_path / f"{name}.csv", index=False)
    refused = fedrepro("compare", tmp_path / "x.csv", tmp_path / "y.csv")
    assert (refused.exit_code, "no curve is in both; compare results of one figure" in refused.stderr) == (2, True)


def test_a_compressed_copy_is_read_in_place_of_the_csv(tmp_path: Path) -> None:
    frame = tidy({"x": noisy(0)})
    (tmp_path / "f.csv.gz").write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    assert states(compare.read(tmp_path / "f.csv"), frame) == ["same"]


def test_the_command_compares_runs_and_can_fail(fedrepro: Call, small: Path, tmp_path: Path) -> None:
    fedrepro("run", small, "--quiet", "--jobs", 1)
    other = tmp_path / "other"
    fedrepro(
        "run", small, "--quiet", "--jobs", 1, "--set", "panels.a.curves.1.Q2=1", "--set", "trials=1", "--results", other
    )
    csv = Path("quick") / "beyond" / "small.csv"
    same = fedrepro("compare", tmp_path / "results" / csv, tmp_path / "results" / csv, "--check")
    assert (same.exit_code, same.output) == (0, "4 same\n")
    own = other / "set" / "panels.a.curves.1.Q2=1" / csv
    changed = fedrepro("compare", tmp_path / "results" / csv, own, "--check", "--all")
    assert changed.exit_code == 1
    assert "fedcgds m=2 Q1=3 Q2=4 @ syn / unf -> fedcgds m=2 Q1=3 Q2=1 @ syn / unf" in changed.output
    assert changed.output.splitlines()[0].startswith("same")
    assert changed.output.splitlines()[-1] == "2 same; 2 differs"


def test_other_rounds_and_trials_of_one_side_are_printed_and_fail_the_check(fedrepro: Call, tmp_path: Path) -> None:
    whole = tidy({"x": noisy(0)})
    part = whole[(whole["round"] <= 10) & (whole["trial"] <= 3)]
    (found,) = compare.compare(whole, part)
    assert (found.state, found.part) == ("same", "up to round 10 (of 20 and 10), in 3 trials (of 8 and 3)")
    whole.to_csv(tmp_path / "a.csv", index=False)
    part.to_csv(tmp_path / "b.csv", index=False)
    told = fedrepro("compare", tmp_path / "a.csv", tmp_path / "b.csv", "--check")
    assert told.output == f"compared {found.part}; so --check fails\n1 same\n"
    assert told.exit_code == 1
    assert fedrepro("compare", tmp_path / "a.csv", tmp_path / "b.csv").output == f"compared {found.part}\n1 same\n"


def test_show_prints_every_panel(fedrepro: Call, small: Path, tmp_path: Path) -> None:
    fedrepro("run", small, "--quiet", "--jobs", 1)
    shown = fedrepro("show", small, "--results", tmp_path / "results")
    assert shown.exit_code == 0
    row = next(line.split() for line in shown.output.splitlines() if "m=6" in line)
    assert row[-3:] == ["2", "5", f"{5 * 6 * (12 * 3 + 9):,}"]  # trials, rounds, m (M K + K^2) a round


def test_show_prints_the_table_of_panels_that_differ_in_x_once(fedrepro: Call, small: Path) -> None:
    b = "  b: {like: a, x: uplink_scalars}\n"
    others = "  c: {like: a, x: uplink_bits, title: right}\n  d: {like: a, y: objective_raw}\n"
    small.write_text(small.read_text().replace(b, b + others))
    fedrepro("run", small, "--quiet", "--jobs", 1)
    headings = [line for line in fedrepro("show", small).output.splitlines() if line.startswith("(")]
    assert headings == ["(a, b) left; (c) right", "(d) left"]
    alone = fedrepro("show", small, "--panel", "b").output
    assert "(b) left" in alone
    assert [alone.count(label) for label in ("m=6", "(a")] == [1, 0]
    rows = pd.read_csv(io.StringIO(fedrepro("show", small, "--format", "csv").output))
    assert set(rows["panel"]) == {"a", "b", "c", "d"}
    assert fedrepro("show", small, "--format", "latex").output.count("begin{table}") == 2


def test_show_reads_a_round_and_says_what_is_missing(fedrepro: Call, small: Path, tmp_path: Path) -> None:
    none = fedrepro("show", small, "--results", tmp_path / "results")
    assert none.exit_code == 2
    assert "no results in" in none.output
    fedrepro("run", small, "--quiet", "--jobs", 1)
    frame = compare.read(tmp_path / "results" / "quick" / "beyond" / "small.csv")
    rows = frame[(frame["series"].str.contains("m=6")) & (frame["round"] == 2)]
    shown = fedrepro("show", small, "--results", tmp_path / "results", "--panel", "b", "--at", 2)
    assert f"{rows['value'].mean():.6g}" in shown.output
    assert "(a)" not in shown.output
    wrong = fedrepro("show", small, "--results", tmp_path / "results", "--panel", "c")
    assert "--panel c: no such panel (panels: a, b)" in wrong.output
