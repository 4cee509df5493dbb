"""The discrepancies: errors in their files, that every variant exists, and that effects agree with the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from fedrepro import registry
from fedrepro.claims import judge
from fedrepro.errors import UserError
from fedrepro.plotting.series import FigureData
from fedrepro.report import effects
from fedrepro.report.compare import read
from fedrepro.results.read import with_results
from fedrepro.spec import discrepancies
from fedrepro.spec.model import Figure
from fedrepro.spec.nodes import SpecErrors
from fedrepro.spec.read import load

from .conftest import ROOT, SMALL

Call = Callable[..., Result]
EXPERIMENTS = ROOT / "experiments"
GOOD = """\
paper: fedc
rows:
  - id: fedc.1
    kind: text
    topic: steps
    paper: "one"
    code: "two"
    taken: "two"
    variant: {algorithm: fedcavg, gamma2: 1.0}
    figures: all
"""


def test_texts_name_rows_by_their_ids() -> None:
    rows = discrepancies.load_all(EXPERIMENTS)
    texts = [
        "Fig. 2 (discrepancies fedmf.2 and fedmf.16).",
        "as theory.fedmf.3, fedc.2b and fedmf.8.absolute",
    ]
    assert [row.id for row in discrepancies.mentioned(texts, rows)] == ["fedmf.2", "fedmf.16"]


def verify(rows: Iterable[discrepancies.Discrepancy], experiments: Path, tier: str) -> list[str]:
    """Return the errors at a tier: effects without their curves, and commands with invalid ``--set`` options."""
    figures: dict[str, Figure] = {}
    messages = []
    for row in rows:
        for effect in row.effects:
            try:
                if effect.figure not in figures:
                    figures[effect.figure] = load(experiments / f"{effect.figure}.yaml", tier)
                effects.curves(effect, figures[effect.figure])
            except UserError as error:
                messages.append(f"{row.id}: {error}")
        if row.figure:
            try:
                load(experiments / f"{row.figure}.yaml", tier, row.sets)
            except UserError as error:
                messages.append(f"{row.id}: {row.command}: {error}")
    return messages


@pytest.fixture(scope="module")
def rows() -> list[discrepancies.Discrepancy]:
    return discrepancies.load_all(EXPERIMENTS)


def test_every_paper_has_the_rows_of_its_list(rows: list[discrepancies.Discrepancy]) -> None:
    counts = {paper: sum(row.paper == paper for row in rows) for paper in registry.PAPERS}
    assert all(counts[paper] >= least for paper, least in zip(registry.PAPERS, (22, 12, 22, 25, 13), strict=True))
    assert len({row.id for row in rows}) == len(rows)


def test_every_row_names_a_variant_or_says_why_there_is_none(rows: list[discrepancies.Discrepancy]) -> None:
    for row in rows:
        assert bool(row.variants) != bool(row.no_variant), row.id
        assert row.id.startswith(f"{row.paper}."), row.id


def test_every_variant_differs_from_what_is_run_by_default(rows: list[discrepancies.Discrepancy]) -> None:
    tables = {"algorithm": registry.methods, "dataset": registry.datasets, "partition": registry.partitions}
    for row in rows:
        for variant in row.variants:
            if variant.kind == "problem":
                known = dict(registry.problems()[variant.name].parameters)
            else:
                known = tables[variant.kind]()[variant.name].parameters()
            assert set(variant.values) <= {*known, discrepancies.ROUNDS}, row.id
            if variant.values and variant.kind != "algorithm" and row.kind != discrepancies.SETTING:
                assert any(known[k] != v for k, v in variant.values.items()), row.id


def test_every_effect_and_every_command_works_at_the_quick_tier(rows: list[discrepancies.Discrepancy]) -> None:
    assert verify(rows, EXPERIMENTS, "quick") == []


def errors_of(folder: Path, text: str) -> list[str]:
    path = folder / "fedc" / "discrepancies.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    spec = SMALL.replace("paper: beyond", "paper: fedc").replace("figure: small", "figure: fig1")
    (path.parent / "fig1.yaml").write_text(spec, encoding="utf-8")
    with pytest.raises(SpecErrors) as caught:
        discrepancies.load(path, folder)
    return [message.replace(f"{path}:", "") for message in caught.value.messages]


def test_every_claim_on_the_whole_file_of_movielens_says_that_table_1_counts_less() -> None:
    for name in ("fig2", "fig3", "fig4"):
        figure = load(ROOT / "experiments" / "fedmc" / f"{name}.yaml", "paper")
        reading = [
            claim
            for claim in figure.claims
            if any(curve.setting.dataset == "movielens-1m" for curve in judge.curves(claim, figure))
        ]
        assert reading
        assert [claim.id for claim in reading if "discrepancy fedmc.27" not in claim.note] == []


def test_all_errors_come_at_once_with_their_places(tmp_path: Path) -> None:
    text = GOOD.replace("topic: steps", "topc: steps").replace("fedcavg", "fedcvg").replace("all", "[fig2]")
    assert errors_of(tmp_path, text) == [
        "3:5: a row needs 'topic'  (in: - id: fedc.1)",
        "5:5: 'topc' is not a key of a row, did you mean 'topic'? (valid: id, kind, topic, paper, code, taken, "
        "default, settings, variant, no_variant, run, figures, effect, note)  (in: topc: steps)",
        "9:26: 'fedcvg' is not an algorithm, did you mean 'fedcavg'?  (in: variant: {algorithm: fedcvg, gamma2: 1.0})",
        "10:15: there is no figure 'fedc/fig2', did you mean 'fedc/fig1'? (`fedrepro list figures`)  "
        "(in: figures: [fig2])",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("paper: fedc", "paper: fedmf", "paper is 'fedmf'; the file is in the folder of the paper 'fedc'"),
        ("gamma2", "gama2", "'gama2' is not a key of the algorithm 'fedcavg', did you mean 'gamma2'?"),
        ("gamma2: 1.0", "Q1: 0", "Q1"),
        ("    variant: {algorithm: fedcavg, gamma2: 1.0}\n", "", "a row needs 'variant', or 'no_variant'"),
        ("figures: all", "figures: all\n    no_variant: x", "a row needs 'variant', or 'no_variant'"),
        ("{algorithm: fedcavg, gamma2: 1.0}", "{method: x}", "a variant names one of algorithm, problem, dataset"),
        ('taken: "two"', "taken: 2", "taken must be text, not the number 2"),
        ("figures: all", "figures: all\n    effect: {figure: fig1, panel: a, taken: {}}", "an effect needs 'other'"),
    ],
)
def test_an_error_says_what_to_do(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert any(message in error for error in errors_of(tmp_path, GOOD.replace(old, new, 1)))


def test_an_id_is_used_once(tmp_path: Path) -> None:
    body = GOOD.split("rows:\n")[1]
    assert any("the id 'fedc.1' is used twice" in e for e in errors_of(tmp_path, GOOD + body))


SETTING = GOOD.replace("kind: text", "kind: setting").replace(
    "variant: {algorithm: fedcavg, gamma2: 1.0}",
    "default: released\n    settings:\n      - {name: step, from: printed, change: {algorithm: fedcavg, gamma2: 1.0}}",
)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "kind: setting",
            "kind: seting",
            "4:11: 'seting' is not a kind of discrepancy, did you mean 'setting'? (valid: setting, text, measurement, "
            "trials, values drawn, drawing, theorem, reference, same numbers, other experiment, program)  "
            "(in: kind: seting)",
        ),
        (
            "    kind: setting\n",
            "",
            "3:5: a row needs 'kind', one of setting, text, measurement, trials, values drawn, drawing, theorem, "
            "reference, same numbers, other experiment, program  (in: - id: fedc.1)",
        ),
        (
            "kind: setting",
            "kind: text",
            "9:14: only a row with 'kind: setting' has 'default'  (in: default: released)",
        ),
        (
            "    default: released\n",
            "",
            "3:5: a setting needs 'default', the origin of the value that is run: printed, released, ours, inferred  "
            "(in: - id: fedc.1)",
        ),
        (
            "from: printed",
            "from: print",
            "11:28: 'print' is not a value of 'from', did you mean 'printed'? (valid: printed, released, ours, "
            "inferred)  (in: - {name: step, from: print, change: {algorithm: fedcavg, gamma2: 1.0}})",
        ),
        (
            "gamma2: 1.0",
            "gama2: 1.0",
            "11:66: 'gama2' is not a key of the algorithm 'fedcavg', did you mean 'gamma2'? (valid: algorithm, m, Q1, "
            "Q2, Qhat, participation, pcp_repeat, gamma1, gamma2, d_schedule, d_mode)  "
            "(in: - {name: step, from: printed, change: {algorithm: fedcavg, gama2: 1.0}})",
        ),
        (
            "fedcavg, gamma2: 1.0",
            "fedcavg",
            "11:45: a change needs a parameter with its other value  "
            "(in: - {name: step, from: printed, change: {algorithm: fedcavg}})",
        ),
        (
            "name: step, ",
            "",
            "11:9: a setting needs 'name'  (in: - {from: printed, change: {algorithm: fedcavg, gamma2: 1.0}})",
        ),
        (
            "    figures: all",
            "    run: {figure: fig1}\n    figures: all",
            "12:10: a row with 'kind: setting' has no 'run'; list its values in 'settings'  (in: run: {figure: fig1})",
        ),
        (
            "    figures: all",
            "    no_variant: x\n    figures: all",
            "3:5: a row needs 'settings', or 'no_variant' with the reason; one of the two  (in: - id: fedc.1)",
        ),
        (
            "from: printed, ",
            "from: printed, alone: 1, ",
            "11:44: alone must be true or false  (in: - {name: step, from: printed, alone: 1, change: {algorithm: "
            "fedcavg, gamma2: 1.0}})",
        ),
    ],
)
def test_an_error_in_a_setting_says_what_to_do(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert message in errors_of(tmp_path, SETTING.replace(old, new, 1))


def test_a_setting_is_listed_once(tmp_path: Path) -> None:
    line = SETTING.splitlines()[10]
    errors = errors_of(tmp_path, SETTING.replace(line, f"{line}\n{line}"))
    assert "the setting 'fedc.1.step' is listed twice" in errors[0]


def test_a_setting_has_its_origin_and_its_changes_in_words(tmp_path: Path) -> None:
    change = "[{algorithm: [fedcavg, fedmavg], gamma2: 1.0, rounds: 7}, {dataset: mnist, split: test, where: {m: 10}}]"
    folder = tmp_path / "fedc"
    folder.mkdir()
    (folder / "fig1.yaml").write_text(SMALL.replace("paper: beyond", "paper: fedc").replace("small", "fig1", 1))
    path = folder / "discrepancies.yaml"
    path.write_text(SETTING.replace("{algorithm: fedcavg, gamma2: 1.0}", change))
    ((row,),) = [discrepancies.load(path, tmp_path)]
    (other,) = row.alternatives
    assert (row.kind, row.default, other.id, other.origin) == ("setting", "released", "fedc.1.step", "printed")
    assert str(other) == ("fedcavg and fedmavg with gamma2 = 1, rounds = 7; mnist with split = test where m = 10")
    assert [str(variant) for variant in row.variants] == [
        "algorithm fedcavg with gamma2: 1, rounds: 7",
        "algorithm fedmavg with gamma2: 1, rounds: 7",
        "dataset mnist with split: test",
    ]
    assert row.command == "fedrepro settings run --only fedc.1"


def test_verify_names_the_row_whose_curves_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "beyond").mkdir()
    (tmp_path / "beyond" / "small.yaml").write_text(SMALL)
    effect = discrepancies.Effect("beyond/small", "a", {"m": 2}, {"m": 3})
    row = discrepancies.Discrepancy(
        "fedc", "fedc.1", "text", "t", "p", "c", "t", "", (), (), "x", "beyond/small", ("trials=0",), (), (effect,)
    )
    errors = verify([row], tmp_path, "quick")
    assert errors[0].startswith("fedc.1: m=3 selects no curve")
    assert errors[1].startswith("fedc.1: fedrepro run beyond/small --set 'trials=0' --results results-other: 1 error")


def test_an_effect_is_the_paired_difference_of_the_results(fedrepro: Call, small: Path, tmp_path: Path) -> None:
    fedrepro("run", small, "--quiet", "--jobs", 1)
    root = tmp_path / "results"
    source = FigureData(*next(with_results([small], "quick", root)))
    effect = discrepancies.Effect("beyond/small", "a", {"Q2": 1}, {"Q2": 5}, at=3)
    words = effects.measure(effect, source).words
    frame = read(root / "quick" / "beyond" / "small.csv")
    rows = frame[frame["round"] == 3]
    with_1, with_5 = (rows[rows["series"].str.contains(f"Q2={q} ")]["value"].to_numpy() for q in (1, 5))
    assert f"{with_1.mean():.4g} (FedCAvg Q2=1); {with_5.mean():.4g} (FedCAvg Q2=5)" in words
    assert f"difference {np.mean(with_5 - with_1):+.3g} [" in words
    assert words.endswith("over 2 trials")


def test_an_effect_can_be_the_round_a_level_is_reached(fedrepro: Call, small: Path, tmp_path: Path) -> None:
    fedrepro("run", small, "--quiet", "--jobs", 1)
    source = FigureData(*next(with_results([small], "quick", tmp_path / "results")))
    never = discrepancies.Effect("beyond/small", "a", {"Q2": 1}, {"Q2": 5}, reach=1e-9)
    words = effects.measure(never, source).words
    assert "communication round at which" in words
    assert "FedCAvg Q2=1 does not reach it in every trial" in words
    start = effects.measure(discrepancies.Effect("beyond/small", "a", {"Q2": 1}, {"Q2": 5}, reach=1e9), source).words
    assert "0 (FedCAvg Q2=1); 0 (FedCAvg Q2=5); difference +0" in start
