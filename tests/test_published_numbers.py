"""``settings values``: numbers of published tables beside ours with other values of open settings."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import Result

from fedrepro.alternatives import published_numbers
from fedrepro.alternatives.published_numbers import Other, PublishedNumber
from fedrepro.cli import settings
from fedrepro.spec.read import load

from .conftest import SMALL, once
from .test_settings import ROWS

Call = Callable[..., Result]
TABLE = """\
  t:
    kind: table
    title: "ends"
    options: {rows: [algorithm], columns: Q2, scale: 100, digits: 1}
    curves: [{algorithm: fedcavg, Q1: 2, Q2: [1, 5]}]
    published: [{row: FedCAvg, column: 1, value: 30.0}]
claims:
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "experiments" / "beyond"
    folder.mkdir(parents=True)
    (folder / "small.yaml").write_text(SMALL.replace("claims:\n", TABLE, 1))
    (folder / "discrepancies.yaml").write_text(ROWS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def computed(project: Path, fedrepro: Call, kept: Path) -> Path:
    def compute() -> Result:
        assert fedrepro("run", "beyond/small", "--quiet", "--jobs", 1).exit_code == 0
        return fedrepro("settings", "run", "--tier", "quick", "--quiet", "--jobs", 1)

    once(kept, project / "results", compute)
    return project


def values(fedrepro: Call, *words: str) -> str:
    result = fedrepro("settings", "values", "--tier", "quick", *words)
    assert result.exit_code == 0, result.output
    return result.output


def ends(computed: Path, file: str) -> float:
    rows = pd.read_csv(computed / "results" / "quick" / "beyond" / file)
    chosen = rows[(rows["metric"] == "objective") & (rows["Q2"] == 1) & (rows["algorithm"] == "fedcavg")]
    return 100 * float(chosen[chosen["round"] == chosen["round"].max()]["value"].mean())


def test_published_numbers_are_printed_beside_ours_with_every_set(computed: Path, fedrepro: Call) -> None:
    numbers = json.loads(values(fedrepro, "--json"))
    (number,) = numbers
    assert (number["figure"], number["row"], number["column"], number["paper"]) == (
        "beyond/small",
        "FedCAvg",
        "Q2=1",
        30.0,
    )
    assert number["ours"] == pytest.approx(ends(computed, "small.csv"), rel=1e-12)
    others = {other["name"]: other for other in number["others"]}
    assert set(others) >= {"beyond.1.q1-3", "beyond.1.q1-4", "beyond.2.outliers", "beyond.released"}
    assert others["beyond.1.q1-3"]["trials"] == 2
    assert others["beyond.1.q1-3"]["same"] == pytest.approx(number["ours"], rel=1e-8)
    kept = ends(computed, "small.settings/beyond.1.q1-3.csv.xz")
    assert others["beyond.1.q1-3"]["value"] == pytest.approx(kept, rel=1e-8)
    assert others["beyond.1.q1-3"]["value"] != pytest.approx(number["ours"], rel=1e-6)

    lines = values(fedrepro, "--only", "beyond.1.q1-3").splitlines()
    ours, other = f"{number['ours']:.1f}", f"{others['beyond.1.q1-3']['value']:.1f}"
    far = [abs(value - 30.0) for value in (number["ours"], others["beyond.1.q1-3"]["value"])]
    assert lines == [
        "beyond/small, ends",
        f"  FedCAvg Q2=1: paper 30.0, ours {ours} (2 trials)",
        f"  {other:>10} with beyond.1.q1-3",
        "  mean distance from the paper, with our values -> with the others:",
        f"  {far[0]:.3g} -> {far[1]:.3g} with beyond.1.q1-3 (1 number)",
    ]


def test_the_page_of_a_paper_has_them(computed: Path, fedrepro: Call) -> None:
    assert fedrepro("report", "--tier", "quick", "--no-pictures", "--out", "out").exit_code == 0
    (page,) = Path("out/report/settings").iterdir()
    text = page.read_text()
    assert "Beside the printed numbers: beyond/small, ends" in text
    row = text[text.index('<tr><th scope="row">FedCAvg Q2=1</th><td data-label="paper">30.0</td>') :]
    assert row.split("</tr>")[0].count("<td ") == 2 + text.count('<th scope="col"><span class="id">')


def test_without_results_of_other_settings_there_is_nothing_to_print(project: Path, fedrepro: Call, kept: Path) -> None:
    once(kept, project / "results", lambda: fedrepro("run", "beyond/small", "--quiet", "--jobs", 1))
    shutil.rmtree(project / "results" / "quick" / "beyond" / "small.settings", ignore_errors=True)
    result = fedrepro("settings", "values", "--tier", "quick")
    assert result.exit_code == 2
    assert result.stderr == (
        f"error: no published table has results of other settings at the quick tier in {project / 'results'}\n"
    )


def number(project: Path, paper: float, *others: Other) -> PublishedNumber:
    panel = next(panel for panel in load(Path("experiments/beyond/small.yaml"), "quick").panels if panel.id == "t")
    return PublishedNumber(panel, "FedCAvg", "1", paper, 31.0, 10, others)


def test_distances_are_over_the_same_trials_and_leave_out_numbers_that_do_not_exist(project: Path) -> None:
    nan = float("nan")
    one = number(project, 30.0, Other("a", 32.0, 3, "", 33.0), Other("b", nan, 10, "never gets there", 31.0))
    two = number(project, 40.0, Other("a", 40.5, 3, "", 35.0))
    (distance,) = published_numbers.distances([one, two])
    assert (distance.name, distance.numbers) == ("a", 2)
    assert (distance.ours, distance.others) == (np.mean([3.0, 5.0]), np.mean([2.0, 0.5]))
    assert settings._over(one, one.others[0]) == "3 trials, ours 33.0"
    assert settings._over(one, one.others[1]) == "never gets there"
    assert one.text(nan) == "none"


def test_sets_with_the_same_number_share_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    settings._print_alike([("1.0", "a", ""), ("2.0", "b", "3 trials"), ("1.0", "c", "")])
    assert capsys.readouterr().out == "         1.0 with a, c\n         2.0 with b (3 trials)\n"
