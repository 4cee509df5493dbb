"""``why``, the plain sentence about a verdict, and the specification curve on a claim's page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import Result

from fedrepro.claims import classes, kept_answers, robustness, sentences
from fedrepro.claims.evidence import FAILS, HOLDS, NOISE
from fedrepro.claims.intervals import Interval
from fedrepro.cli import why
from fedrepro.report import specification_curve
from fedrepro.spec import discrepancies
from fedrepro.spec.read import load
from fedrepro.spec.readings import Reading
from tests.test_words import figure, known  # noqa: F401

from .conftest import ROOT


def said(known: Callable[..., Any], check: str, *values: Any) -> str:  # noqa: F811
    claim, figure, results, *_ = known(check, [np.tile(v, (3, 1)) for v in values])  # noqa: F811
    return sentences.sentence(claim, figure, results)


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        ("lower(fedcavg(Q2=1), than=fedcavg(Q2=5))",
         "FedCAvg Q2=1 ends at 1 and FedCAvg Q2=5 ends at 2; the check requires the first to be less than the second"),
        ("faster(fedcavg(Q2=1), than=fedcavg(Q2=5), to=3)",
         "FedCAvg Q2=1 needs 1 rounds and FedCAvg Q2=5 needs 1.415 rounds; the check requires the first to be less "
         "than the second"),
        ("considerably(faster(fedcavg(Q2=1), than=fedcavg(Q2=5), to=3))",
         "FedCAvg Q2=1 needs 1 rounds and FedCAvg Q2=5 needs 1.415 rounds; the check requires the second to be more "
         "than 1.25 times the first; it is 1.42 times"),
        ("considerably(faster(fedcavg(Q2=5), than=fedcavg(Q2=1), to=3))",
         "FedCAvg Q2=5 needs 1.415 rounds and FedCAvg Q2=1 needs 1 rounds; the check requires the second to be more "
         "than 1.25 times the first; it is 0.707 times"),
        ("faster(fedcavg(Q2=1), than=fedcavg(Q2=5), to=1.5)",
         "FedCAvg Q2=1 needs 1.631 rounds and FedCAvg Q2=5 never gets there; the check requires the first to be less "
         "than the second"),
        ("considerably(faster(fedcavg(Q2=5), than=fedcavg(Q2=1), to=1.5))",
         "FedCAvg Q2=5 never gets there and FedCAvg Q2=1 needs 1.631 rounds; the check requires the second to be more "
         "than 1.25 times the first"),
        ("y(fedcavg(Q2=1), at=1) < 1.5 * y(fedcavg(Q2=5), at=2)",
         "FedCAvg Q2=1 is at 3 at round 1 and FedCAvg Q2=5 is at 2 at round 2; the check requires the first to be less "
         "than 1.5 times the second; it is 1.5 times"),
        ("y(fedcavg(Q2=1), at=1) < 5", "FedCAvg Q2=1 is at 3 at round 1; the check requires less than 5"),
        ("y(fedcavg(Q2=1), at=[0, 2]) < 5", "FedCAvg Q2=1 is at 9 at round 0; the check requires less than 5"),
        ("y(fedcavg(Q2=1), at=[1, 2]) < y(fedcavg(Q2=5), at=[1, 2]) + 1",
         "FedCAvg Q2=1 is at 3 at round 1 and FedCAvg Q2=5 is at 4 at round 1; the check requires the first minus the "
         "second to be less than 1; it is -1"),
        ("y(fedcavg(Q2=1), at=2) - 1 >= y(fedcavg(Q2=5), at=2) + 1",
         "FedCAvg Q2=1 is at 1 at round 2 and FedCAvg Q2=5 is at 2 at round 2; the check requires the first minus the "
         "second to be at least 2; it is -1"),
        ("y(fedcavg(Q2=1), at=2) + 1 < y(fedcavg(Q2=5), at=2)",
         "FedCAvg Q2=1 is at 1 at round 2 and FedCAvg Q2=5 is at 2 at round 2; the check requires the second minus the "
         "first to be more than 1; it is 1"),
        ("y(fedcavg(Q2=1), since=1) > 2", "FedCAvg Q2=1 is at 1 at round 2; the check requires more than 2"),
        ("2 > y(fedcavg(Q2=1), at=2)", "FedCAvg Q2=1 is at 1 at round 2; the check requires less than 2"),
        ("y(fedcavg(Q2=1), at=1) / y(fedcavg(Q2=1), at=0) < y(fedcavg(Q2=5), at=2) / (y(fedcavg(Q2=5), at=0) - 1)",
         "FedCAvg Q2=1 is at 3 at round 1, FedCAvg Q2=1 is at 9 at round 0, FedCAvg Q2=5 is at 2 at round 2 and "
         "FedCAvg Q2=5 is at 9 at round 0; the check requires 3 / 9 = 0.3333 to be less than 2 / (9 - 1) = 0.25"),
        ("abs(y(fedcavg(Q2=1), at=1) - y(fedcavg(Q2=5), at=2)) < 0.5",
         "FedCAvg Q2=1 is at 3 at round 1 and FedCAvg Q2=5 is at 2 at round 2; the check requires |3 - 2| = 1 to be "
         "less than 0.5"),
        ("y(fedcavg(Q2=1), at=1) < y(fedcavg(Q2=5), at=1) + 0.1 * (y(fedcavg(Q2=5), at=0) - y(fedcavg(Q2=5), at=2))",
         "FedCAvg Q2=1 is at 3 at round 1 and FedCAvg Q2=5 is at 4 at round 1; the check requires the first minus the "
         "second to be less than 0.7; it is -1"),
        ("mean(y(fedcavg(Q2=1), since=1)) < 2 * parameter(fedcavg(Q2=5), name='Q1')",
         "FedCAvg Q2=1 has 1.4 (the mean over rounds) and FedCAvg Q2=5 has Q1 = 2; the check requires 1.4 to be less "
         "than 2 * 2 = 4"),
        ("y(fedcavg(Q2=1), when=reach(fedcavg(Q2=5), level=3)) < parameter(fedcavg(Q2=5), name='Q2')",
         "FedCAvg Q2=1 is at 1.902 at round 1.415; the check requires 1.902 to be less than 5"),
        ("slope(fedcavg(Q2=1), since=1, until=2) < -1",
         "FedCAvg Q2=1 has the exponent -1.585 from round 1 to 2; the check requires less than -1"),
        ("lowest(fedcavg(Q2=1)) + highest(fedcavg(Q2=1)) + rise(fedcavg(Q2=1)) + y(fedcavg(Q2=5), at=0) "
         "+ y(fedcavg(Q2=5), at=1) + y(fedcavg(Q2=5), at=2) < 3",
         "FedCAvg Q2=1 has 1 at its lowest; the check computes 23 from these and other numbers and requires less "
         "than 3"),
    ],
)  # fmt: skip
def test_a_sentence_has_the_numbers_of_both_sides(known: Callable[..., Any], check: str, sentence: str) -> None:  # noqa: F811
    assert said(known, check, [9.0, 3, 1], [9.0, 4, 2]) == sentence


def test_a_check_of_single_trials_has_the_numbers_of_the_trial_that_decides(known: Callable[..., Any]) -> None:  # noqa: F811
    ends = [1.0, 5.0, 2.0]
    values = [[[9.0, end] for end in ends], [[9.0, 3.0]] * 3]
    for how, words in (
        ("each", "in trial 2 (the worst) FedCAvg Q2=1 ends at 5"),
        ("median", "in trial 3 (in the middle) FedCAvg Q2=1 ends at 2"),
    ):
        claim, figure_, results, *_ = known(f"{how}(y(at='end', Q2=1) < 4)", values)
        said_now = sentences.sentence(claim, figure_, results)
        assert said_now == f"{words}; the check requires less than 4"


def test_a_value_beside_a_printed_number_is_named(known: Callable[..., Any]) -> None:  # noqa: F811
    claim, figure_, results, *_ = known("abs(y(at='end', Q2=1) - 3.5) < 1", [[[9.0, 1.0]] * 3, [[9.0, 3.0]] * 3])
    assert sentences.sentence(claim, figure_, results) == (
        "FedCAvg Q2=1 has 1, which differs from 3.5 by 2.5; the check requires less than 1"
    )


def test_a_relative_difference_is_one_of_the_value_itself(known: Callable[..., Any]) -> None:  # noqa: F811
    claim, figure_, results, *_ = known("abs(y(at='end', Q2=1) / 4 - 1) < 0.5", [[[9.0, 1.0]] * 3, [[9.0, 3.0]] * 3])
    assert sentences.sentence(claim, figure_, results) == (
        "FedCAvg Q2=1 has 1, which differs from 4 by 75 % (0.75); the check requires less than 0.5"
    )


def test_the_round_is_the_one_with_the_margin_that_decides(known: Callable[..., Any]) -> None:  # noqa: F811
    values = [[[9.0, 3.0 + noise, 1.0] for noise in (-1e-3, 0.0, 1e-3)], [[9.0, 3.5, 1.0]] * 3]
    wide = [[[9.0, 3.0, 2.0 + spread] for spread in (-3.0, 0.0, 3.0)], [[9.0, 2.9, 1.5]] * 3]
    check = "y(since=1, Q2=1) < y(since=1, Q2=5)"
    claim, figure_, results, *_ = known(check, wide)  # a certain 0.1 at round 1, an uncertain 0.5 at round 2
    assert sentences.sentence(claim, figure_, results).startswith("FedCAvg Q2=1 is at 3 at round 1 ")
    claim, figure_, results, *_ = known(check, values)
    assert "at round 2" in sentences.sentence(claim, figure_, results)


def test_the_curve_that_decides_is_named(known: Callable[..., Any]) -> None:  # noqa: F811
    text = said(known, "lower(fedcavg, than=fedcgds(m=2))", [9.0, 3, 1], [9.0, 4, 2], [9.0, 4, 3])
    assert text.startswith("FedCAvg Q2=5 ends at 2 and FedCGds m=2 Q1=3 ends at 3;")


def answers(*outcomes: str) -> classes.Robustness:
    middle = {HOLDS: 2.0, FAILS: -2.0, NOISE: 0.1}
    return classes.classify([
        classes.Answer(Reading({"level": (k + 1) / 100}, ()), o, Interval(middle[o], middle[o] - 1, middle[o] + 1), "")
        for k, o in enumerate(outcomes)
    ])  # fmt: skip


def test_where_no_value_alone_turns_an_answer_the_nearest_reading_is_named() -> None:
    middle = {HOLDS: 2.0, FAILS: -2.0, NOISE: 0.1}

    def answer(level: float, end: str, outcome: str) -> classes.Answer:
        value = middle[outcome]
        return classes.Answer(
            Reading({"level": level, "end": end}, ()), outcome, Interval(value, value - 1, value + 1), ""
        )

    last, tenth = "last round", "mean of the last tenth"
    others = [answer(0.005, last, HOLDS), answer(0.01, last, NOISE), answer(0.005, tenth, HOLDS)]
    robustness = classes.classify([*others, answer(0.01, tenth, FAILS)])
    assert robustness.words == (
        "turns round with the level and the end (of 4 readings 2 hold, 1 fail, 1 undecided): undecided at level = 1 %; "
        "fails with level = 1 % and end = mean of the last tenth"
    )


def test_where_the_leading_answer_is_within_noise_both_nearest_answers_are_named() -> None:
    def answer(level: float, end: str, outcome: str) -> classes.Answer:
        return classes.Answer(Reading({"level": level, "end": end}, ()), outcome, Interval(0.0, -1.0, 1.0), "")

    last, tenth = "last round", "mean of the last tenth"
    given = [answer(0.005, last, NOISE), answer(0.01, last, NOISE), answer(0.02, last, NOISE)]
    given += [answer(0.005, tenth, NOISE), answer(0.01, tenth, HOLDS), answer(0.02, tenth, FAILS)]
    assert classes.classify(given).words == (
        "turns round with the level and the end (of 6 readings 1 hold, 1 fail, 4 undecided): holds with level = 1 % "
        "and end = mean of the last tenth; fails with level = 2 % and end = mean of the last tenth"
    )


def test_three_dimensions_that_turn_an_answer_together_are_a_list() -> None:
    def answer(level: float, end: str, start: int, outcome: str) -> classes.Answer:
        values = {"level": level, "end": end, "strength": start}
        return classes.Answer(Reading(values, ()), outcome, Interval(0.0, -1.0, 1.0), "")

    given = [answer(0.005, "last round", 1, HOLDS), answer(0.01, "last round", 1, HOLDS)]
    words = classes.classify([*given, answer(0.01, "mean of the last tenth", 2, FAILS)]).words
    assert words.startswith("turns round with the level, the end and the strength (of 3 readings ")


def test_the_dimension_that_turns_the_answer_is_named_before_one_that_only_makes_it_uncertain() -> None:
    def answer(level: float, end: str, outcome: str) -> classes.Answer:
        return classes.Answer(Reading({"level": level, "end": end}, ()), outcome, Interval(0.0, -1.0, 1.0), "")

    last, tenth = "last round", "mean of the last tenth"
    given = [
        answer(0.005, last, HOLDS), answer(0.01, last, NOISE), answer(0.02, last, NOISE), answer(0.005, tenth, FAILS),
        answer(0.01, tenth, NOISE), answer(0.02, tenth, NOISE),
    ]  # fmt: skip
    robustness = classes.classify(given)
    assert list(robustness.influence) == ["level", "end"]
    assert robustness.words.startswith("turns round with the end (of 6 readings ")


def test_a_specification_curve_has_a_point_and_a_mark_for_every_reading() -> None:
    text = specification_curve.svg(answers(HOLDS, FAILS, NOISE, FAILS))
    root = ElementTree.fromstring(text)
    points = [e for e in root.iter("circle") if e.get("class") != "leading"]
    assert [e.get("class") for e in points] == ["fails", "fails", "undecided", "holds"]
    heights = [float(e.get("cy", "")) for e in points]
    assert heights == sorted(heights, reverse=True)
    assert len([e for e in root.iter("rect") if e.get("class") != "band"]) == 4
    names = [e.text for e in root.iter("text")]
    assert names[3:] == ["level = 1 %", "= 2 %", "= 3 %", "= 4 %"]


def test_one_reading_has_no_curve() -> None:
    assert specification_curve.svg(answers(HOLDS)) == ""


def test_answers_are_kept_beside_the_results_until_something_changes(
    known: Callable[..., Any],  # noqa: F811
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import dataclasses

    claim, own, results, *_ = known("lower(fedcavg(Q2=1), than=fedcavg(Q2=5))", [[9.0, 1], [9.0, 2]])
    own = dataclasses.replace(own, claims=(claim,))
    first = robustness.kept(tmp_path / "small", own, lambda: results, "hash")
    kept = list(tmp_path.glob("*.gz"))
    assert [path.name for path in kept] == ["small.answers.json.gz"]
    before = kept[0].read_bytes()
    monkeypatch.setattr(robustness, "of_figure", lambda *_: pytest.fail("judged again"))
    again = robustness.kept(tmp_path / "small", own, lambda: results, "hash")
    assert {name: r.words for name, r in again.items()} == {name: r.words for name, r in first.items()}
    assert kept[0].read_bytes() == before
    monkeypatch.setattr(robustness, "of_figure", lambda *_: {})
    changed = dataclasses.replace(own, claims=(dataclasses.replace(claim, words="higher(fedcavg, than=fedcgds)"),))
    assert robustness.kept(tmp_path / "small", changed, lambda: results, "hash") == {}
    assert robustness.kept(tmp_path / "small", own, lambda: results, "another table") == {}
    kept[0].write_bytes(b"damaged")
    assert robustness.kept(tmp_path / "small", own, lambda: results, "hash") == {}


def test_answers_on_the_first_trials_alone_do_not_replace_those_on_all(
    fedrepro: Callable[..., Result], small: Any, tmp_path: Any
) -> None:
    text = small.read_text()
    check = next(line for line in text.splitlines() if line.strip().startswith("check:"))
    small.write_text(text.replace(check, "    check: lower(fedcavg(Q2=1), than=fedcavg(Q2=5))"))
    assert fedrepro("run", small, "-j", 1).exit_code == 0
    fedrepro("verdict", small)
    (file,) = tmp_path.rglob("small.answers.json.gz")
    before = file.read_bytes()
    assert fedrepro("verdict", small, "--set", "trials=1").exit_code == 0
    assert file.read_bytes() == before
    file.unlink()
    fedrepro("verdict", small, "--set", "trials=1")
    assert not file.exists()


def test_answers_are_kept_after_a_change_of_claims_but_not_of_stale_results(
    fedrepro: Callable[..., Result], small: Any, tmp_path: Any
) -> None:
    def kept(text: str) -> bytes:
        small.write_text(text)
        assert ("stale" in fedrepro("verdict", small).output) == ("N: 66" in text)
        (file,) = tmp_path.rglob("small.answers.json.gz")
        return bytes(file.read_bytes())

    text = small.read_text()
    fedrepro("run", small, "-j", 1)
    other = text.replace("check: y(", "check: 1.01 * y(")
    first, second = kept(text), kept(other)
    assert first != second
    assert kept(text.replace("N: 60", "N: 66")) == second, "the answers of the code and the spec that computed"
    assert kept(text) == first


def test_answers_about_a_figure_and_its_sets_are_parts_of_one_file(tmp_path: Any) -> None:
    small, of_set = tmp_path / "small", tmp_path / "small.settings" / "a.1.q1-3"
    kept = [(small, "readings"), (of_set, "readings"), (of_set, "effects")]
    for number, (base, kind) in enumerate(kept):
        kept_answers.write(base, kind, {"key": str(number)})
    assert [path.name for path in tmp_path.iterdir()] == ["small.answers.json.gz"]
    written = kept_answers.path(of_set).read_bytes()
    kept_answers.write(small, "readings", {"key": "0"})
    assert kept_answers.path(small).read_bytes() == written
    assert [kept_answers.read(*one) for one in kept] == [{"key": "0"}, {"key": "1"}, {"key": "2"}]
    assert [kept_answers.read(*one) for one in ((small, "effects"), (small.with_name("other"), "readings"))] == [{}, {}]


def test_why_prints_numbers_readings_and_the_check(fedrepro: Callable[..., Result], small: Any) -> None:
    text = small.read_text(encoding="utf-8")
    claim = (
        "\nclaims:\n  - {id: mine.1, says: It is lower, where: ours, panel: a, check: 'lower(fedcgds, than=fedcavg)'}\n"
    )
    small.write_text(re.sub(r"\nclaims:.*?(?=\n\S|\Z)", "", text, flags=re.DOTALL) + claim, encoding="utf-8")
    assert fedrepro("run", small, "--tier", "smoke", "--quiet", "-j", 1).exit_code == 0
    shown = fedrepro("verdict", small, "--tier", "smoke").output
    assert "readings of 1 claim" in shown


def test_why_names_the_discrepancies_that_a_claim_mentions() -> None:
    rows = discrepancies.load_all(ROOT / "experiments")
    claims = {claim.id: claim for claim in load(ROOT / "experiments/fedc/fig1.yaml", "paper").claims}
    (line,) = why._discrepancies(claims["fedc.1c.qhat"], None, rows)
    assert line.startswith("discrepancies: fedc.18 (values of Q, Q1, Q2 and m on the curves, ")
    assert line.endswith("; `fedrepro describe fedc.18` prints one")
    assert why._discrepancies(claims["fedc.1d.q.monotone"], None, rows) == []


def test_a_value_with_a_point_is_of_the_same_discrepancy() -> None:
    assert discrepancies.Alternative("gcca.1.nu-0.01", "printed", ()).row == "gcca.1"
    rows = discrepancies.load_all(ROOT / "experiments")
    assert all(alternative.row == row.id for row in rows for alternative in row.alternatives)


def test_without_results_why_says_how_to_get_them(fedrepro: Callable[..., Result], tmp_path: Path) -> None:
    result = fedrepro("why", "gcca.3d.optimal", "--results", tmp_path / "none")
    assert result.exit_code == 0
    assert f"\nnot tested: no results in {tmp_path / 'none'}; `fedrepro run gcca/fig3` makes them, " in result.output
    assert "\ncheck: attains(" in result.output


def test_why_asks_for_one_claim(fedrepro: Callable[..., Result]) -> None:
    result = fedrepro("why", "fedc/fig4")
    assert result.exit_code == 2
    assert "'fedc/fig4' is not the id of one claim; `fedrepro verdict fedc/fig4` prints the ids" in result.output


def test_a_claim_of_a_copy_is_explained_with_its_own_results(
    fedrepro: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "experiments/fedc/fig4.yaml").read_text(encoding="utf-8")
    Path("copy.yaml").write_text(text.replace("paper: fedc", "paper: copied", 1), encoding="utf-8")
    found = fedrepro("why", "fedc.4a", "--spec", "copy.yaml", "--results", ROOT / "results").output
    assert "\nnot tested: no results in " in found
    assert "; `fedrepro run copy.yaml` makes them, " in found
    of_paper = fedrepro("why", "fedc.4a", "--spec", "fedc/fig4", "--results", ROOT / "results").output
    assert of_paper == fedrepro("why", "fedc.4a", "--results", ROOT / "results").output != found
    unknown = fedrepro("why", "fedc.4z", "--spec", "fedc/fig4")
    assert unknown.exit_code == 2
    assert "fedc/fig4: has no claim 'fedc.4z', did you mean 'fedc.4" in unknown.output


def test_describe_explains_words_and_dimensions(fedrepro: Callable[..., Result]) -> None:
    shown = fedrepro("describe", "considerably").output
    assert "strength, in points" in shown
    assert "5 points; also 2.5 points, 10 points" in " ".join(shown.split())
    assert "leading       0.5 %" in fedrepro("describe", "level").output
    assert "word of claims faster" in fedrepro("describe", "speeds up").output
