"""Checks in words: what they stand for, their readings, and what a verdict depends on."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrepro.claims import classes, judge, robustness
from fedrepro.claims.evidence import AGAINST_FIGURE, FAILS, HOLDS, NOISE
from fedrepro.claims.intervals import Interval
from fedrepro.errors import UserError
from fedrepro.lexicon.vocabulary import Lexicon, lexicon
from fedrepro.results.schema import Sidecar
from fedrepro.spec import claim_grammar, readings, words
from fedrepro.spec.model import Claim, Figure
from fedrepro.spec.read import load
from fedrepro.spec.readings import Reading
from fedrepro.spec.references import Scope, identifier, resolve
from tests.sidecars import consistent
from tests.test_claims import frame

from .conftest import ROOT

A, B = "fedcavg(Q2=1)", "fedcavg(Q2=5)"


@pytest.fixture
def figure(small: Path) -> Figure:
    return load(small, "paper")


@pytest.fixture
def lead(figure: Figure) -> Callable[..., str]:
    """Return the check that words stand for at the leading reading, or with other values of dimensions."""

    def lead(check: str, panel: str = "a", names: Any = None, **other: Any) -> str:
        chosen = {name.replace("_", " "): value for name, value in other.items()}
        claim = Claim("x", "s", "w", panel, check)
        scope = Scope(claim, {p.id: p for p in figure.panels}, names or {})
        return words.literal(check, scope, lambda name: chosen.get(name, lexicon().dimensions[name].values[0]))

    return lead


@pytest.fixture
def known(figure: Figure) -> Callable[..., Any]:
    """Return a claim with its figure and results: curves of the first panel by values of trials and rounds."""

    def known(check: str, values: list[Any], **keys: Any) -> tuple[Claim, Figure, judge.Known, Any, Sidecar]:
        series = [curve.setting.series for curve in figure.panels[0].curves]
        rows = frame({s: np.atleast_2d(np.asarray(v, dtype=float)) for s, v in zip(series, values, strict=False)})
        trials = len(np.atleast_2d(values[0]))
        claim = readings.with_literal_check(Claim("x", "s", "w", "a", check, **keys), {p.id: p for p in figure.panels})
        about = consistent(figure, rows, trials_done=trials, trials_wanted=3)
        return claim, figure, judge.Known(rows), rows, about

    return known


# -- the lexicon -------------------------------------------------------------------------------------------------------


def test_every_dimension_has_a_leading_value_a_meaning_and_a_rule() -> None:
    for dimension in lexicon().dimensions.values():
        assert len(set(dimension.values)) == len(dimension.values) >= 2, dimension.name
        assert dimension.means
        assert dimension.rule
        assert not dimension.ordered or dimension.unit, dimension.name


def test_no_family_is_one_measure_times_a_constant() -> None:
    for word in lexicon().words.values():
        if word.kind == "order" and word.measures != "value":
            assert len(lexicon().dimensions[word.measures].values) >= 2, word.name
            assert word.stage in lexicon().dimensions
    assert len(lexicon().dimensions["measure of sameness"].values) >= 2
    for scale in ("as a ratio", "as a share of the way", "in points"):
        smallest = min(lexicon().dimensions[f"strength, {scale}"].values)
        assert lexicon().dimensions[f"negligible, {scale}"].values[0] == smallest  # an equivalence margin


def test_no_word_is_also_a_function_of_checks_without_words() -> None:
    own: Lexicon = lexicon()
    assert not {*own.words, *own.quantities} & {*claim_grammar.WORDS}
    assert not set(own.words) & set(own.quantities)


def test_scales_of_metrics_exist() -> None:
    from fedrepro import registry

    metrics = {f"{p.name}.{m}" for p in registry.problems().values() for m in p.metrics}
    short = {name.partition(".")[2] for name in metrics}
    assert [name for name in lexicon().scales if name not in metrics | short] == []


# -- what words stand for ----------------------------------------------------------------------------------------------


def test_faster_reads_the_rounds_to_a_level_or_the_value_at_a_stage(lead: Callable[..., str]) -> None:
    best = "min(y(at='end', algorithm='fedcavg', Q2=1), y(at='end', algorithm='fedcavg', Q2=5))"
    level = f"0.995 * {best} + 0.005 * y(at=0, algorithm='fedcavg', Q2=1)"
    assert lead(f"faster({A}, than={B})") == (
        f"reach({level}, algorithm='fedcavg', Q2=1) < "
        f"at_most(reach({level}, algorithm='fedcavg', Q2=5), total('round', algorithm='fedcavg', Q2=5))"
    )
    stage = f"0.9 * {best} + 0.1 * y(at=0, algorithm='fedcavg', Q2=1)"
    when = f"when=min(reach({stage}, algorithm='fedcavg', Q2=1), reach({stage}, algorithm='fedcavg', Q2=5))"
    assert lead(f"faster({A}, than={B})", measure_of_speed="value at a stage") == (
        f"y({when}, algorithm='fedcavg', Q2=1) < y({when}, algorithm='fedcavg', Q2=5)"
    )


def test_the_way_of_a_metric_that_differs_by_ratios_is_logarithmic(tmp_path: Path) -> None:
    figure = load(ROOT / "experiments/gcca/fig3.yaml", "paper")
    scope = Scope(Claim("x", "s", "w", "a", ""), {p.id: p for p in figure.panels}, {})
    check = "faster(curve(label='CuteMaxVar, warm'), than=curve(label='CuteMaxVar, randn'))"
    text = words.literal(check, scope, readings.leading)
    ends = "min(y(at='end', label='CuteMaxVar, randn'), y(at='end', label='CuteMaxVar, warm'))"
    assert text.startswith(f"reach(log_between(y(at=0, label='CuteMaxVar, randn'), {ends}, 0.995), ")
    assert judge._log_between(100.0, 0.01, 0.5) == pytest.approx(1.0)
    with pytest.raises(judge.NotTestable, match="no way on a logarithmic scale"):
        judge._log_between(1.0, 0.0, 0.5)


def test_slower_is_faster_with_both_sides_exchanged(lead: Callable[..., str]) -> None:
    for measure in lexicon().dimensions["measure of speed"].values:
        first, second = (
            lead(text, measure_of_speed=measure) for text in (f"slower({A}, than={B})", f"faster({B}, than={A})")
        )
        assert first == second


def test_a_sentence_can_name_the_measure_itself(lead: Callable[..., str], known: Callable[..., Any]) -> None:
    assert lead(f"no_loss({A}, than={B}, by='rounds')").startswith("1.1 * reach(")
    assert lead(f"faster({A}, than={B}, by='value')") == lead(f"faster({A}, than={B})", **{SPEED: "value at a stage"})
    claim, figure, *_ = known(f"faster({A}, than={B}, by='rounds')", [[9, 1], [9, 2]])
    assert {name for reading in listed(claim, figure) for name in reading.values} == {"level"}
    with pytest.raises(UserError, match="by='cost' must be 'rounds' or 'value'"):
        lead(f"faster({A}, than={B}, by='cost')")


SPEED = "measure of speed"


def test_a_curve_that_never_arrives_counts_with_its_last_round_once(known: Callable[..., Any]) -> None:
    values = [np.tile([9.0, 4, 1], (3, 1)), np.tile([9.0, 5, 4], (3, 1))]
    claim, figure, results, *_ = known(f"faster({A}, than={B})", values)
    reader = judge.Reader.of(claim, figure, results)
    (margin,) = judge.decide(claim.check, reader).margins
    assert 0 < margin.value < 1
    assert len(judge.margins(next(judge.comparisons(claim_grammar.parse(claim.check).body)), reader)) == 1


def test_strength_is_a_ratio_of_rounds_and_a_share_of_the_way_of_objectives(lead: Callable[..., str]) -> None:
    assert lead(f"considerably(faster({A}, than={B}))").startswith("1.25 * reach(")
    ends = "min(y(at='end', algorithm='fedcavg', Q2=1), y(at='end', algorithm='fedcavg', Q2=5))"
    way = f"(y(at=0, algorithm='fedcavg', Q2=1) - {ends})"
    assert lead(f"much(lower({A}, than={B}))") == (
        f"y(at='end', algorithm='fedcavg', Q2=1) + 0.01 * {way} < y(at='end', algorithm='fedcavg', Q2=5)"
    )


def test_a_negated_word_excludes_a_negligible_amount(lead: Callable[..., str]) -> None:
    assert lead(f"not_(lower({A}, than={B}))").endswith("> y(at='end', algorithm='fedcavg', Q2=5)")
    assert "+ 0.005 * " in lead(f"not_(lower({A}, than={B}))")
    text = lead(f"not_(faster({A}, than={B}))")
    assert text.startswith("1.1 * reach(")
    assert "> reach(" in text


def test_not_considerably_excludes_a_visible_amount(lead: Callable[..., str]) -> None:
    assert lead(f"not_(considerably(faster({A}, than={B})))").startswith("1.25 * reach(")
    assert "+ 0.01 * " in lead(f"not_(considerably(lower({A}, than={B})))")


def test_equal_comparisons_of_a_check_count_once(lead: Callable[..., str]) -> None:
    assert " and " not in lead(f"lower({A}, than={B}) and lower({A}, than={B})")


def test_sameness_is_asked_in_both_directions_and_no_loss_in_one(lead: Callable[..., str]) -> None:
    same, loss = (lead(f"{word}({A}, {B}, when='end')") for word in ("same", "no_loss"))
    assert same.count(" > ") == 2
    assert loss.count(" > ") == 1
    assert loss in same


def test_better_is_read_at_the_end_on_the_way_or_at_a_level(lead: Callable[..., str]) -> None:
    name = "measure of performance in converging"
    stage, end, level = (lead(f"better({A}, than={B})", **{name: value}) for value in lexicon().dimensions[name].values)
    assert end == lead(f"lower({A}, than={B})")
    assert stage == lead(f"improves({A}, than={B})", measure_of_speed="value at a stage")
    assert level == lead(f"improves({A}, than={B})")
    assert lead(f"better({A}, than={B}, when=3)").count("at=3") == 2


def test_quantities_are_compared_in_pairs(lead: Callable[..., str]) -> None:
    text = lead("larger(gap(fedcgds(m=[2, 6]), over=fedcavg(Q2=1)), than=gap(fedcgds(m=same), over=fedcavg(Q2=5)))")
    pairs = text.split(" and ")
    assert len(pairs) == 2
    assert all(pair.count(f"m={m}") == 2 for pair, m in zip(pairs, (2, 6), strict=True))
    assert lead("smaller(distance(fedcavg(Q2=1), fedcgds(m=2)), than=distance(fedcavg(Q2=5), fedcgds(m=2)))") == (
        "abs(y(at='end', algorithm='fedcavg', Q2=1) - y(at='end', algorithm='fedcgds', m=2)) < "
        "abs(y(at='end', algorithm='fedcavg', Q2=5) - y(at='end', algorithm='fedcgds', m=2))"
    )


def test_several_curves_are_each_meant_or_the_best_of_them(lead: Callable[..., str]) -> None:
    other = "y(at='end', algorithm='fedcgds', m=2)"
    assert lead("lower(fedcavg, than=fedcgds(m=2))") == (
        f"y(at='end', algorithm='fedcavg', Q2=1) < {other} and y(at='end', algorithm='fedcavg', Q2=5) < {other}"
    )
    level = lead("faster(fedcavg, than=fedcgds(m=2))").split(" and ")
    assert "Q2=5" not in level[0]  # each curve has a level of its own
    assert lead("lower(best_of(fedcavg), than=fedcgds(m=2))").startswith("min(")
    assert lead("lower(fedcavg(Q2=larger), than=fedcavg(Q2=1))") == (
        "y(at='end', algorithm='fedcavg', Q2=5) < y(at='end', algorithm='fedcavg', Q2=1)"
    )


def test_same_pairs_each_curve_with_its_own(lead: Callable[..., str]) -> None:
    text = lead("better(fedcgds(m=[2, 6]), than=fedcgds(m=same), when=3)")
    assert text == " and ".join(f"y(at=3, {own}) < y(at=3, {own})" for own in KEYS)


KEYS = ("algorithm='fedcgds', m=2", "algorithm='fedcgds', m=6")


def test_monotonically_compares_neighbours_or_the_ends(lead: Callable[..., str]) -> None:
    text = lead("monotonically(lower(fedcgds), over='m')")
    first, last = "y(at='end', algorithm='fedcgds', m=2, Q1=3)", "y(at='end', algorithm='fedcgds', m=6, Q1=2)"
    assert text == f"{last} < {first}"
    falling = lead("monotonically(lower(fedcgds), over='m', falling=True)")
    assert falling == f"{first} < {last}"


def test_consistently_allows_one_round_in_twenty_in_one_reading(lead: Callable[..., str]) -> None:
    text = f"consistently(lower({A}, than={B}))"
    assert lead(text) == "y(since=1, algorithm='fedcavg', Q2=1) < y(since=1, algorithm='fedcavg', Q2=5)"
    assert lead(text, rounds_meant="nearly all (95 %)").startswith("quantile(y(since=1, algorithm='fedcavg', Q2=5) - ")


def test_printed_numbers_have_a_tolerance_or_their_own_digits(lead: Callable[..., str]) -> None:
    value = "y(at='end', algorithm='fedcavg', Q2=1)"
    assert lead(f"has({A}, 0.250)") == f"abs({value} / (0.25) - 1) < 0.03"
    printed = {"tolerance, as a ratio": "printed digits"}
    scope_text = lead(f"has({A}, 0.250)", **printed)
    assert scope_text == f"abs({value} - 0.25) < 0.0005"


def test_names_of_curves_shorten_checks_without_words(lead: Callable[..., str]) -> None:
    assert lead("y(fedcavg(Q2=1), at=2) < 3") == "y(at=2, algorithm='fedcavg', Q2=1) < 3"
    assert lead("y(few, at=2) < 3", names={"few": {"algorithm": "fedcgds", "m": 2}}) == (
        "y(at=2, algorithm='fedcgds', m=2) < 3"
    )
    assert identifier("fedmgs-sncp") == "fedmgs_sncp"
    assert identifier("kmeans++") == "kmeans"


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("rounds({A}, to='mean') < 9", "'mean' is not a number: name one, or a level as in to=0.95 or to=end(A)"),
        ("compression({A}, than={B}, to='mean') > 0.9", "'mean' is not a number: name one, or a level as in to=0.95"),
        ("faster({A}, than={B}, to=True)", "True is not a number: name one, or a level as in to=0.95"),
        ("quicker({A}, than={B})", "'quicker({A}, than={B})' is not a comparison"),
        ("faster({A})", "'faster({A})': faster() needs 'than', as in faster(A, than=...)"),
        ("faster(fedcavgs(Q2=1), than={B})", "'fedcavgs(Q2=1)' is not a curve, did you mean 'fedcavg'?"),
        ("faster(fedcavg(Q2=7), than={B})", "'fedcavg(Q2=7)' selects no curve of panel 'a'"),
        ("faster(fedcavg(1), than={B})", "'fedcavg(1)': curves are selected by name and value"),
        ("faster({A}, then={B})", "'faster({A}, then={B})': faster() needs 'than'"),
        ("not_(same({A}, {B}))", "'not_(same({A}, {B}))': not_() takes one word"),
        ("better({A}, than={B}, when='late')", "'better({A}, than={B}, when='late')': when='late' must be a round"),
        ("monotonically(faster(fedcavg), over='Q9')", "'monotonically(faster(fedcavg), over='Q9')': not every curve"),
        ("monotonically(faster(fedcavg), over='dataset')",
         "'monotonically(faster(fedcavg), over='dataset')': dataset must be a number for every curve, not ['syn', "),
        ("faster([], than={B})", "'[]' names no curve; write one or more, as in [fedmgs(m=10), fedmgs(m=100)]"),
        ("y(fedcavg, at=1) < 2", "'y(fedcavg, at=1)': 'fedcavg' names 2 curves; name one"),
    ],
)  # fmt: skip
def test_wrong_checks_say_what_to_write(lead: Callable[..., str], check: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        lead(check.format(A=A, B=B))
    assert str(error.value).startswith(message.format(A=A, B=B))


# -- readings ----------------------------------------------------------------------------------------------------------


def listed(claim: Claim, figure: Figure, trials: int = 3) -> list[Reading]:
    return readings.of(claim, {p.id: p for p in figure.panels}, trials)[0]


def test_dimensions_exist_only_where_they_are_used(known: Callable[..., Any]) -> None:
    claim, figure, *_ = known(f"considerably(faster({A}, than={B}))", [[9, 1], [9, 2]])
    own = listed(claim, figure)
    assert own[0].check == claim.check
    assert set(own[0].values) == {"measure of speed", "level", "strength, as a ratio"}
    to_level = [r for r in own if r.values["measure of speed"] == "rounds to a level"]
    at_stage = [r for r in own if r.values["measure of speed"] != "rounds to a level"]
    sizes = {name: len(dimension.values) for name, dimension in lexicon().dimensions.items()}
    assert len(to_level) == sizes["level"] * sizes["strength, as a ratio"]
    assert len(at_stage) == sizes["early stage"] * sizes["strength, as a share of the way"]
    assert all("level" not in r.values for r in at_stage)
    assert len({r.check for r in own}) == len(own)


def test_the_median_is_a_reading_from_ten_trials_on(known: Callable[..., Any]) -> None:
    claim, figure, *_ = known(f"lower({A}, than={B})", [[9, 1], [9, 2]])
    assert [r.values.get("aggregate") for r in listed(claim, figure, 9)] == [None, None]
    assert {r.values["aggregate"] for r in listed(claim, figure, 10)} == {"mean", "median"}
    each, figure, *_ = known(f"each(lower({A}, than={B}))", [[9, 1], [9, 2]])
    assert all("aggregate" not in r.values for r in listed(each, figure, 10))


def test_a_second_reader_adds_readings(known: Callable[..., Any]) -> None:
    values = [np.tile([9.0, 4, 1], (3, 1)), np.tile([9.0, 3, 2], (3, 1))]
    claim, figure, results, *_ = known(f"lower({A}, than={B})", values, or_read=f"lower({A}, than={B}, when='early')")
    own = listed(claim, figure)
    assert own[0].values == {"reader": "first reader", "end": "last round"}
    assert {r.values["early stage"] for r in own if r.values["reader"] == "second reader"} == {0.9, 0.5, 0.7}
    found = robustness.of(claim, figure, results)
    assert found is not None
    assert found.kind == classes.TURNS
    assert found.influence["reader"] > 0
    literal, *_ = known("y(at=2, Q2=1) < y(at=2, Q2=5)", values, or_read=f"higher({A}, than={B})")
    assert [r.values["reader"] for r in listed(literal, figure)][:2] == ["first reader", "second reader"]


def test_an_earlier_check_is_a_reading_of_its_own(known: Callable[..., Any]) -> None:
    values = [np.tile([9.0, 4, 1], (3, 1)), np.tile([9.0, 3, 2], (3, 1))]
    claim, figure, results, *_ = known(f"lower({A}, than={B})", values, earlier=f"lower({A}, than={B}, when='early')")
    assert {r.values["reader"] for r in listed(claim, figure)} == {"first reader", "earlier check"}
    found = robustness.of(claim, figure, results)
    assert found is not None
    assert found.kind == classes.TURNS
    both, *_ = known(claim.words, values, or_read=f"slower({A}, than={B})", earlier=claim.earlier)
    assert {r.values["reader"] for r in listed(both, figure)} == {"first reader", "second reader", "earlier check"}
    with pytest.raises(UserError, match="nothing"):
        known(f"lower({A}, than={B})", values, earlier=f"lower({A}, than=nothing)")


def test_many_readings_are_sampled_and_always_alike(known: Callable[..., Any]) -> None:
    check = f"considerably(cheaper({A}, than={B})) and has({A}, 0.5)"
    claim, figure, *_ = known(check, [[9, 1], [9, 2]])
    panels = {p.id: p for p in figure.panels}
    own, total = readings.of(claim, panels, 10)
    assert total > len(own) >= readings.MOST
    assert own == readings.of(claim, panels, 10)[0]
    alone = [r for r in own if len(readings.differences(r.values, own[0].values)) == 1]
    assert {readings.differences(r.values, own[0].values)[0] for r in alone} >= {
        "level",
        "end",
        "tolerance, as a ratio",
        "strength, as a ratio",
    }


def test_a_check_without_words_has_one_reading(known: Callable[..., Any]) -> None:
    claim, figure, frame_known, *_ = known("y(at=1, Q2=1) < y(at=1, Q2=5)", [[9, 1], [9, 2]])
    assert claim.words == ""
    found = robustness.of(claim, figure, frame_known)
    assert found is not None
    assert found.kind == classes.ONE
    assert found.words == "one reading"


# -- robustness --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "first_rounds"),
    [
        ("mean(y(since=20, Q2=1)) < mean(y(since=20, Q2=5))", ["since=20", "since=10", "since=25"]),
        ("slope(since=10, Q2=1) < -1 and slope(since=100, Q2=5) < 0", ["since=10", "since=5", "since=12"]),
        ("y(since=1, Q2=1) < y(since=1, Q2=5)", ["since=1"]),
        ("y(at='end', Q2=1) < 1", [""]),
    ],
)
def test_a_check_without_words_is_read_from_earlier_and_later_rounds_on(
    figure: Figure, check: str, first_rounds: list[str]
) -> None:
    claim = dataclasses.replace(figure.claims[0], check=check, words="", or_read="", earlier="")
    found, total = readings.of(claim, {panel.id: panel for panel in figure.panels}, 10)
    assert total == len(found) == len(first_rounds)
    assert found[0].check == check
    assert [first in reading.check for first, reading in zip(first_rounds, found, strict=True)] == [True] * total
    names = [classes.value_in_words(*item) for reading in found for item in reading.values.items()]
    assert names == list(readings.WINDOWS)[: len(names)]


def test_a_planted_claim_turns_with_the_level_and_says_where(known: Callable[..., Any]) -> None:
    # A is first to half a percent and to one; B is first to everything above: A is slow at the start, B at the end.
    rounds = np.arange(101)
    a = np.where(rounds < 40, 1.0 - rounds * 0.0232, 0.072 - (rounds - 40) * 0.0017).clip(0.0)
    b = np.where(rounds < 20, 1.0 - rounds * 0.0493, 0.014 - (rounds - 20) * 0.0000625)
    claim, figure, results, *_ = known(
        f"cheaper({A}, than={B}, axis='round')", [np.tile(a, (3, 1)), np.tile(b, (3, 1))]
    )
    found = robustness.of(claim, figure, results)
    assert found is not None
    assert (found.kind, found.leading) == (classes.TURNS, HOLDS)
    (turn,) = [t for t in found.turns if t.dimension == "level"]
    assert turn == classes.Turn("level", FAILS, (0.02, 0.05, 0.1))
    assert found.words == (
        "turns round with the level (of 9 readings 4 hold, 5 fail): fails at level = 2 %, 5 % or 10 %"
    )
    assert found.influence["level"] > 0.5


def answer(outcome: str, **values: Any) -> classes.Answer:
    return classes.Answer(Reading(values, (str(values),)), outcome, Interval(1, 0.5, 1.5), "rounds")


def test_classes_by_the_answers_of_all_readings() -> None:
    def kind(*outcomes: str) -> classes.Robustness:
        return classes.classify([answer(o, level=k, end=k % 2) for k, o in enumerate(outcomes)])

    assert kind(HOLDS, HOLDS, HOLDS).kind == classes.EVERY
    assert kind(HOLDS, NOISE, NOISE, NOISE).kind == classes.CERTAINTY
    assert kind(HOLDS, FAILS, NOISE, FAILS).kind == classes.TURNS
    assert kind(NOISE, HOLDS, FAILS, HOLDS, NOISE).kind == classes.TURNS
    found = kind(HOLDS, HOLDS, FAILS, HOLDS)
    assert found.kind == classes.ALL_BUT
    assert found.exceptions == classes.Turn("level", FAILS, (2,))
    assert found.counts == {HOLDS: 3, FAILS: 1, NOISE: 0}


def test_exceptions_never_contain_the_leading_value_or_more_than_half() -> None:
    answers = [answer(o, level=k) for k, o in enumerate([HOLDS, FAILS, FAILS])]
    assert classes.classify(answers).exceptions is None
    more = [*answers, answer(HOLDS, level=3)]
    assert classes.classify(more).exceptions is None  # half of them, with the opposite answer
    more.append(answer(HOLDS, level=4))
    assert classes.classify(more).exceptions == classes.Turn("level", FAILS, (1, 2))
    noise = [answer(o, level=k) for k, o in enumerate([HOLDS, NOISE])]
    assert classes.classify(noise).exceptions == classes.Turn("level", NOISE, (1,))


def test_influence_counts_pairs_that_differ_in_one_dimension() -> None:
    grid = [answer(FAILS if level else HOLDS, level=level, end=end) for level in (0, 1) for end in (0, 1)]
    assert classes.classify(grid).influence == {"level": 1.0, "end": 0.0}


def test_readings_that_cannot_be_answered_are_counted_apart(known: Callable[..., Any]) -> None:
    infinite = [[9.0, 4, 1], [9.0, np.inf, np.inf]]
    claim, figure, results, *_ = known(f"faster({A}, than={B})", infinite)
    found = robustness.of(claim, figure, results)
    assert found is not None
    assert found.total == len(found.answers) + found.unanswered


def test_equal_parts_of_checks_are_read_once(known: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    reach = judge._READERS["reach"]
    monkeypatch.setitem(judge._READERS, "reach", lambda *a, **k: calls.append("reach") or reach(*a, **k))
    values = [np.tile([9.0, 3, 1], (3, 1)), np.tile([9.0, 5, 1], (3, 1))]
    claim, figure, results, *_ = known(f"faster({A}, than={B})", values)
    robustness.of(claim, figure, results)
    once = len(calls)
    robustness.of(dataclasses.replace(claim, id="twin"), figure, results)
    assert len(calls) == once
    selections = 1 + 3  # all trials, and all but each one
    assert once <= 2 * len(listed(claim, figure)) * selections


# -- the text against its own figure, and stand-ins --------------------------------------------------------------------


def test_a_text_that_its_own_figure_contradicts_has_a_verdict_of_its_own(known: Callable[..., Any]) -> None:
    values = [np.tile([9.0, 4, 3], (3, 1)), np.tile([9.0, 5, 1], (3, 1))]
    shows = f"higher({A}, than={B})"
    claim, figure, results, rows, about = known(f"lower({A}, than={B})", values, figure_shows=shows)
    assert judge.judge(claim, figure, rows, about, results).verdict == AGAINST_FIGURE
    less = dataclasses.replace(figure, tier="quick")
    assert judge.judge(claim, less, rows, about, results).verdict == "fails"
    neither = dataclasses.replace(claim, figure_shows="y(at='end', Q2=1) > 100")
    assert judge.judge(neither, figure, rows, about, results).verdict == "not reproduced"


def test_references_say_which_curves_they_name(figure: Figure) -> None:
    import ast

    scope = Scope(Claim("x", "s", "w", "a", ""), {p.id: p for p in figure.panels}, {})
    found, relative = resolve(ast.parse("curve", mode="eval").body, scope)
    assert len(found) == 4
    assert not relative
    for reference in found:
        keywords = ast.parse(f"f({reference.keywords})", mode="eval").body
        assert isinstance(keywords, ast.Call)
        selected = {k.arg or "": claim_grammar.constant(k.value) for k in keywords.keywords}
        assert claim_grammar.pick(figure.panels[0].curves, selected) is reference.curve
