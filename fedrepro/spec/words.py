"""The words of the lexicon in checks: what they compare, as a check without words, for one reading.

A check in words says which curves are compared and by which words::

    considerably(cheaper(fedcgds(m=10), than=fedcgds(m=100)))
    monotonically(faster(fedmgs(m=10)), over='Q1')
    has(fedmgs_sncp(m=10, dataset='syn'), 0.884)

``literal`` returns the check without words that it stands for if every dimension has one value. Dimensions are asked
for where they are used, so that a reading has a value for each dimension of its measures and for no other.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fedrepro.errors import UserError, nearest
from fedrepro.lexicon.vocabulary import POINTS, RATIO, WAY, Word, lexicon
from fedrepro.spec import claim_grammar
from fedrepro.spec.references import LARGER, SAME, SMALLER, Reference, Scope, has_same, name_of, resolve

Choose = Callable[[str], Any]
"""Returns the value of a dimension in the reading."""

MOST_CHARACTERS = 100_000
"""The most characters of a check without words that words stand for."""
BEST_OF = "best_of"
"""The name for the best of several curves: ``best_of(fedmgs)``."""
PLACES = ("end", "early", "middle")
SPEED, SAMENESS = "measure of speed", "measure of sameness"
PERFORMANCE, CONVERGENCE = "measure of performance", "measure of performance in converging"
TO_A_LEVEL, AT_THE_END = "rounds to a level", "value at the end"
ROUNDS, VALUE = "rounds", "value"
"""What a sentence can name as the measure: ``faster(A, than=B, by='rounds')``."""
COST = "uplink_scalars"


@dataclass(frozen=True)
class Group:
    """Curves on one side of a comparison. best : whether the best of them stands for all."""

    references: tuple[Reference, ...]
    best: bool = False

    def alone(self) -> list[Group]:
        """Return what is compared by itself: each curve, or the best of them together."""
        return [self] if self.best else [Group((reference,)) for reference in self.references]


@dataclass(frozen=True)
class Strength:
    """How much a comparison asks for: nothing, a visible amount, or (``negated``) no more than a negligible one."""

    visible: bool = False
    negated: bool = False


@functools.lru_cache(maxsize=4096)
def uses_words(check: str) -> bool:
    """Return whether a check uses a word of the lexicon, or a name of curves, and has to be expanded."""
    try:
        tree = claim_grammar.quietly_parsed(check)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    own = {*claim_grammar.READERS, *claim_grammar.PLAIN, *claim_grammar.ALONE}
    return any(isinstance(node, ast.Name) and node.id not in own for node in ast.walk(tree))


def words_of(check: str) -> list[str]:
    """Return the words of the lexicon that a check uses, in their order; empty for a literal check."""
    calls = [node for node in ast.walk(ast.parse(check.strip(), mode="eval")) if isinstance(node, ast.Call)]
    calls.sort(key=lambda node: (node.lineno, node.col_offset))
    return list(dict.fromkeys(name for node in calls if (name := claim_grammar.called(node)) in lexicon().words))


def literal(check: str, scope: Scope, choose: Choose) -> str:
    """Return the check without words that a check stands for in one reading. Raises UserError where it is wrong."""
    return " and ".join(comparisons(check, scope, choose))


def comparisons(check: str, scope: Scope, choose: Choose) -> list[str]:
    """Return the comparisons without words that together are a check in one reading, each once."""
    if len(check) > claim_grammar.LONGEST:
        raise UserError(f"the check has {len(check):,} characters; at most {claim_grammar.LONGEST:,} are allowed")
    try:
        tree = claim_grammar.quietly_parsed(check)
    except SyntaxError as error:
        raise UserError(f"the check is not an expression: {error.msg} at character {error.offset}") from None
    found: dict[str, None] = {}
    length = 0
    for text in _Expander(scope, choose, check.strip()).comparisons(tree.body):
        found[text] = None
        length += len(text)
        if length > MOST_CHARACTERS:
            raise UserError(
                f"'{check.strip()[:80]}' compares so many curves that it stands for more than {MOST_CHARACTERS:,} "
                "characters; name fewer of them"
            )
    return list(found)


class _Expander:
    """Replaces words and names of curves in one check, for one reading."""

    def __init__(self, scope: Scope, choose: Choose, source: str) -> None:
        self.scope, self.choose, self.source = scope, choose, source

    # -- comparisons ---------------------------------------------------------------------------------------------------

    def comparisons(self, node: ast.expr, strength: Strength = Strength(), when: Any = None) -> Iterator[str]:
        """Yield the comparisons without words that together are equivalent to a part of a check."""
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            for value in node.values:
                yield from self.comparisons(value, strength, when)
            return
        if isinstance(node, ast.Compare):
            yield self.plain(node)
            return
        name = claim_grammar.called(node)
        if name in claim_grammar.ALONE:
            assert isinstance(node, ast.Call)
            (inner,) = self._arguments(node, 1)
            yield from (f"{name}({text})" for text in self.comparisons(inner, strength, when))
            return
        word = lexicon().words.get(name)
        if word is None or not isinstance(node, ast.Call):
            known = [*lexicon().words, *claim_grammar.ALONE]
            raise UserError(
                f"'{ast.unparse(node)}' is not a comparison: use <, <=, > or >=, or a word{nearest(name, known)} "
                f"(words: {', '.join(lexicon().words)})"
            )
        yield from getattr(self, f"_{word.kind.replace(' ', '_')}")(word, node, strength, when)

    def _order(self, word: Word, node: ast.Call, strength: Strength, when: Any) -> Iterator[str]:
        for first, second in self._couples(node):
            for own, other in itertools.product(first.alone(), second.alone()):
                among = (*own.references, *other.references)
                yield from self._ordered(word, node, own, other, strength, when, among)

    def _ordered(
        self, word: Word, node: ast.Call, first: Group, second: Group, strength: Strength, when: Any,
        among: Sequence[Reference],
    ) -> Iterator[str]:  # fmt: skip
        """Yield the comparison of two groups by a word. among : all curves whose best end is the end of the way."""
        ahead, behind = (second, first) if word.reversed else (first, second)
        place = self._place(node, when)
        level = self._keyword(node, "to")
        axis = self._axis(node, word, ahead)
        open_, by = place is None, self._by(node)
        performance = word.measures == PERFORMANCE and open_ and level is None and not by and _are_curves(among)
        if performance:
            measure = self.choose(CONVERGENCE if among[0].scale == WAY else PERFORMANCE)
            word = replace(word, measures=SPEED, stage="middle stage") if measure != AT_THE_END else word
        speed = open_ and (word.measures == SPEED or by == ROUNDS)
        to_level = level is not None or by == ROUNDS or (performance and measure == TO_A_LEVEL)
        if speed and (to_level or (not performance and not by and self.choose(SPEED) == TO_A_LEVEL)):
            texts = [self._to_a_level(group, among, axis, level) for group in (ahead, behind)]
            if level is None and not strength.negated:
                texts[1] = [
                    f"at_most({text}, total({axis!r}, {r.keywords}))"
                    for text, r in zip(texts[1], behind.references, strict=True)
                ]
            yield self._compare(ahead, behind, texts, True, RATIO, among, strength, word.reversed)
            return
        if speed:
            place = self._stage(word.stage, among, axis)
        elif place in ("early", "middle"):
            place = self._stage(f"{place} stage", among, axis)
        less = ahead.references[0].lower_is_better if not word.direction else word.direction == "lower"
        texts = [[self._value(r, place, axis) for r in group.references] for group in (ahead, behind)]
        yield self._compare(ahead, behind, texts, less, ahead.references[0].scale, among, strength, word.reversed)

    def _sameness(self, word: Word, node: ast.Call, strength: Strength, when: Any) -> Iterator[str]:
        for first, second in self._couples(node):
            yield from self._not_worse(word, node, first, second, when)
            yield from self._not_worse(word, node, second, first, when)

    def _no_loss(self, word: Word, node: ast.Call, strength: Strength, when: Any) -> Iterator[str]:
        for first, second in self._couples(node):
            yield from self._not_worse(word, node, first, second, when)

    def _not_worse(self, word: Word, node: ast.Call, first: Group, second: Group, when: Any) -> Iterator[str]:
        """Yield the comparisons by which the first group is not worse than the second by more than is negligible."""
        among = (*first.references, *second.references)
        place, level = self._place(node, when), self._keyword(node, "to")
        axis = self._axis(node, word, first)
        by = self._by(node)
        measure = self.choose(SAMENESS) if place is None and level is None and not by else ""
        if measure == AT_THE_END:
            place = "end"
        if level is not None or by == ROUNDS or measure == TO_A_LEVEL:
            texts = [self._to_a_level(group, among, axis, level) for group in (first, second)]
            yield self._tolerate(first, second, texts, True, RATIO, among)
            return
        reference = first.references[0]
        if place in ("early", "middle"):
            place = self._stage(f"{place} stage", among, axis)
        stages = [place] if place is not None else [self._at_share(share, among, axis) for share in (0.5, 0.9, 0.99)]
        for stage in (*stages, *(["end"] if place is None else [])):
            texts = [[self._value(r, stage, axis) for r in group.references] for group in (first, second)]
            yield self._tolerate(first, second, texts, reference.lower_is_better, reference.scale, among)

    def _strength(self, word: Word, node: ast.Call, strength: Strength, when: Any) -> Iterator[str]:
        (inner,) = self._arguments(node, 1)
        yield from self.comparisons(inner, replace(strength, visible=True), when)

    def _negation(self, word: Word, node: ast.Call, strength: Strength, when: Any) -> Iterator[str]:
        (inner,) = self._arguments(node, 1)
        word_of = lexicon().words.get(claim_grammar.called(inner))
        if word_of is not None and word_of.kind == "strength" and isinstance(inner, ast.Call):
            (inner,), strength = self._arguments(inner, 1), replace(strength, visible=True)
            word_of = lexicon().words.get(claim_grammar.called(inner))
        if word_of is None or word_of.kind != "order":
            raise UserError(
                f"'{ast.unparse(node)}': not_() takes one word that orders curves, for instance not_(faster(...))"
            )
        yield from self.comparisons(inner, replace(strength, negated=True), when)

    def _rounds(self, word: Word, node: ast.Call, strength: Strength, when: Any) -> Iterator[str]:
        (inner,) = self._arguments(node, 1)
        every = self.choose("rounds meant") == "every round"
        for text in self.comparisons(inner, strength, f"since={self._keyword(node, 'since') or 1}"):
            yield text if every else _at_nearly_all(text)

    def _sequence(self, word: Word, node: ast.Call, strength: Strength, when: Any) -> Iterator[str]:
        """Yield the comparisons of neighbouring values of a parameter, or of the last with the first."""
        (inner,) = self._arguments(node, 1)
        over = self._keyword(node, "over")
        own = lexicon().words.get(claim_grammar.called(inner))
        if own is None or own.kind != "order" or not isinstance(inner, ast.Call) or over is None:
            raise UserError(f"'{ast.unparse(node)}': use it as in monotonically(faster(fedmgs(m=10)), over='Q1')")
        group = self._group(inner.args[0]) if inner.args else None
        if group is None or any(over not in r.curve.select for r in group.references):
            raise UserError(f"'{ast.unparse(node)}': not every curve has '{over}'")
        values = [r.curve.select[over] for r in group.references]
        if not all(isinstance(value, int | float) for value in values):
            raise UserError(f"'{ast.unparse(node)}': {over} must be a number for every curve, not {values}")
        ordered = sorted(
            group.references, key=lambda r: r.curve.select[over], reverse=bool(self._keyword(node, "falling"))
        )
        if len(set(values)) != len(values) or len(values) < 2:
            raise UserError(
                f"'{ast.unparse(node)}': it needs one curve for each of several values of {over}, not {values}"
            )
        steps = list(zip(ordered[1:], ordered[:-1], strict=True))
        if len(ordered) > 2 and self.choose("order") != "each after the one before":
            steps = [(ordered[-1], ordered[0])]
        for later, earlier in steps:
            yield from self._ordered(own, inner, Group((later,)), Group((earlier,)), strength, when, ordered)

    def _best(self, word: Word, node: ast.Call, strength: Strength, when: Any) -> Iterator[str]:
        first, second = self._pair(node, "among")
        own = [r.curve.setting.series for r in first.references]
        others = tuple(r for r in second.references if r.curve.setting.series not in own)
        better = lexicon().words["better"]
        yield from self._ordered(
            better, node, first, Group(others), strength, when, (*first.references, *others)
        )  # fmt: skip

    def _rate(self, word: Word, node: ast.Call, strength: Strength, when: Any) -> Iterator[str]:
        """Yield the comparison of the exponent of the slowest of several curves with that of the promise."""
        curves, power = self._arguments(node, 2)
        of = self._keyword(node, "of") or "value"
        share = self.choose("window of a rate")
        texts = [
            f"slope(since={max(1, round(share * r.curve.setting.rounds))}, of={of!r}, {r.keywords})"
            for r in self._group(curves).references
        ]
        allowed = float(claim_grammar.constant(power)) + self.choose("tolerance of an exponent")
        yield f"{self._joined(texts, 'max')} <= {allowed:g}"

    def _number(self, word: Word, node: ast.Call, strength: Strength, when: Any) -> Iterator[str]:
        """Yield the comparison of values or of a quantity with a printed number."""
        measured, wanted = self._arguments(node, 2)
        quantity = self._is_quantity(measured)
        if quantity:
            name = claim_grammar.called(measured)
            texts, share_sent = [self.number(measured)], name == "compression"
            scale = POINTS if name in ("compression", "saving") else RATIO
            less = True
        else:
            group = self._group(measured)
            place = self._place(node, when)
            texts = [self._value(r, "end" if place is None else place) for r in group.references]
            if group.best:
                texts = [self._joined(texts, "min" if group.references[0].lower_is_better else "max")]
            scale, share_sent, less = group.references[0].scale, False, group.references[0].lower_is_better
        value = self.number(wanted)
        if word.name == "attains":
            scale = RATIO if scale == WAY else scale
            yield f"{self._joined(texts, 'max' if less else 'min')} {self._within_negligible(value, less, scale)}"
            return
        for text in texts:
            yield self._near(text, value, self._tolerance(word, scale, share_sent, wanted))

    def _near(self, text: str, value: str, tolerance: tuple[str, float]) -> str:
        kind, size = tolerance
        if kind == RATIO:
            return f"abs({text} / ({value}) - 1) < {size:.9g}"
        bound = f"{size:.9g} * (1 - {value})" if kind == "sent" else f"{size:.9g}"
        return f"abs({text} - {value}) < {bound}"

    def _tolerance(self, word: Word, scale: str, share_sent: bool, wanted: ast.expr) -> tuple[str, float]:
        """Return how near a number has to be: the scale of the tolerance, and its size."""
        about = word.name == "about"
        name = "tolerance of 'about'" if about else "tolerance of what is sent" if share_sent else (
            "tolerance, in points" if scale == POINTS else "tolerance, as a ratio"
        )  # fmt: skip
        chosen = self.choose(name)
        if chosen == "printed digits":
            printed = ast.get_source_segment(self.source, wanted) or ast.unparse(wanted)
            decimals = len(printed.partition(".")[2]) if "e" not in printed.lower() else 0
            return POINTS, 0.5 * 10.0**-decimals
        if about:
            return ("sent" if scale == POINTS else RATIO), chosen
        if share_sent:
            return "sent", chosen
        return (POINTS, chosen / 100) if scale == POINTS else (RATIO, chosen)

    def _quantities(self, word: Word, node: ast.Call, strength: Strength, when: Any) -> Iterator[str]:
        """Yield the comparison of two quantities, or of several with each other."""
        (first,) = self._arguments(node, 1)
        for own, other in self._paired_quantities(first, self._required(node, "than")):
            yield self._quantity_comparison(word, own, other, strength)

    def _quantity_comparison(self, word: Word, first: ast.expr, second: ast.expr, strength: Strength) -> str:
        among = self._references_in(first) + self._references_in(second)
        left, right = (self._numbers(part, among) for part in (first, second))
        if word.name == "larger":
            left, right = right, left
        low, high = self._joined(left, "max"), self._joined(right, "min")
        factor = f"{self.choose('strength, as a ratio'):g} * " if strength.visible else ""
        return f"{factor}{low} < {high}"

    def _paired_quantities(self, first: ast.expr, second: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
        """Yield the pairs of quantities to compare: with ``m=same`` in the second one for each curve of the first."""
        keys = {
            k.arg
            for k in ast.walk(second)
            if isinstance(k, ast.keyword) and k.arg and has_same(ast.Call(ast.Name(""), [], [k]))
        }
        keys -= set(KEYWORDS)
        if not keys:
            yield first, second
            return
        if not isinstance(first, ast.Call) or not first.args:
            raise UserError(f"'{ast.unparse(first)}' has no curves to which 'same' can refer")
        for reference in self._group(first.args[0]).references:
            values = {key: reference.curve.select[key] for key in keys if key in reference.curve.select}
            yield _with_values(first, values), _with_values(second, values)

    def _by(self, node: ast.Call) -> str:
        """Return the measure that the sentence names itself, ``rounds`` or ``value``; '' if it leaves it open."""
        by = self._keyword(node, "by") or ""
        if by not in ("", ROUNDS, VALUE):
            raise UserError(f"'{ast.unparse(node)}': by={by!r} must be 'rounds' or 'value'")
        return str(by)

    # -- amounts -------------------------------------------------------------------------------------------------------

    def _compare(
        self, ahead: Group, behind: Group, texts: list[list[str]], less: bool, scale: str,
        among: Sequence[Reference], strength: Strength, reversed_: bool,
    ) -> str:  # fmt: skip
        """Return the comparison of two groups, of which the first is ahead with lower values, or else higher ones."""
        if strength.negated:
            return self._negated(texts, less, scale, among, "strength" if strength.visible else "negligible")
        firsts = [
            self._of(group, own, less, outer=k == 0)
            for k, (group, own) in enumerate(zip((ahead, behind), texts, strict=True))
        ]
        low, high = firsts if less else firsts[::-1]
        if not strength.visible:
            return f"{low} < {high}"
        if scale == RATIO:
            return f"{self.choose('strength, as a ratio'):g} * {_bracket(low)} < {high}"
        if scale == POINTS:
            return f"{low} + {self.choose('strength, in points') / 100:g} < {high}"
        return f"{low} + {self.choose('strength, as a share of the way'):g} * {self._way(among)} < {high}"

    def _negated(self, texts: list[list[str]], less: bool, scale: str, among: Sequence[Reference], amount: str) -> str:
        """Return that no curve of the first group is ahead of one of the second by more than an amount."""
        ahead, behind = texts if less else texts[::-1]
        return self._beyond(self._joined(ahead, "min"), self._joined(behind, "max"), scale, among, amount)

    def _beyond(
        self, upper: str, lower: str, scale: str, among: Sequence[Reference], amount: str = "negligible"
    ) -> str:
        """Return that ``upper`` is at least ``lower`` less a negligible (or visible) amount."""
        if scale == RATIO:
            return f"{self.choose(f'{amount}, as a ratio'):g} * {_bracket(upper)} > {lower}"
        if scale == POINTS:
            return f"{upper} + {self.choose(f'{amount}, in points') / 100:g} > {lower}"
        return f"{upper} + {self.choose(f'{amount}, as a share of the way'):g} * {self._way(among)} > {lower}"

    def _tolerate(
        self, first: Group, second: Group, texts: list[list[str]], less: bool, scale: str, among: Sequence[Reference]
    ) -> str:
        """Return that the first group's values are not worse than the second's by more than is negligible."""
        own = [
            self._of(group, values, less, outer=k == 0)
            for k, (group, values) in enumerate(zip((first, second), texts, strict=True))
        ]
        upper, lower = (own[1], own[0]) if less else (own[0], own[1])
        return self._beyond(upper, lower, scale, among)

    def _within_negligible(self, value: str, less: bool, scale: str) -> str:
        """Return the comparison with a number that may be missed by a negligible amount."""
        if scale == POINTS:
            size = self.choose("negligible, in points") / 100
            return f"< {value} + {size:g}" if less else f"> {value} - {size:g}"
        factor = self.choose("negligible, as a ratio")
        return f"< {factor:g} * {_bracket(value)}" if less else f"> {_bracket(value)} / {factor:g}"

    def _of(self, group: Group, texts: list[str], less: bool, outer: bool) -> str:
        """Return what stands for a group: its worst value if each has to be ahead, its best one for the best of them.

        outer : whether the group is the one that has to be ahead; of the other one the best value has to be beaten.
        """
        best = "min" if less else "max"
        worst = "max" if less else "min"
        several = group.best or not outer
        return self._joined(texts, best if several else worst)

    def _way(self, among: Sequence[Reference]) -> str:
        """Return the way from the start to the best end of curves, a positive number."""
        start, best = self._start(among), self._best_end(among)
        return f"({start} - {best})" if among[0].lower_is_better else f"({best} - {start})"

    # -- places --------------------------------------------------------------------------------------------------------

    def _place(self, node: ast.Call, when: Any) -> Any:
        """Return where values are compared: a place, a round or a list of them, or ``since=R``; None if it is open."""
        given = self._keyword(node, "when")
        if isinstance(given, str) and given not in PLACES:
            raise UserError(
                f"'{ast.unparse(node)}': when={given!r} must be a round, a list of rounds, or one of "
                f"{', '.join(PLACES)}"
            )
        return given if given is not None else when

    def _value(self, reference: Reference, place: Any, axis: str = "round") -> str:
        """Return the value of a curve at a place; at the end if it is open."""
        if place is None or place == "end":
            if reference.constant or self.choose("end") == "last round":
                return f"y(at='end', {reference.keywords})"
            return f"tail(0.1, {reference.keywords})"
        if isinstance(place, str) and place.startswith("since="):
            return f"y({place}, {reference.keywords})"
        if isinstance(place, str) and place.startswith(("when=", "cost=")):
            return f"y({place}, {reference.keywords})"
        if place in ("early", "middle"):
            return f"y({self._stage(f'{place} stage', [reference], axis)}, {reference.keywords})"
        return f"y(at={place!r}, {reference.keywords})"

    def _stage(self, dimension: str, among: Sequence[Reference], axis: str) -> str:
        return self._at_share(self.choose(dimension), among, axis)

    def _at_share(self, share: float, among: Sequence[Reference], axis: str) -> str:
        """Return the place at which the fastest of several curves has gone a share of the way.

        Of costs it is at most what every curve has sent in all.
        """
        level = self._level(1 - share, among)
        first = sorted(self._reach(level, r, axis) for r in among)
        if axis == "round":
            return f"when={self._joined(first, 'min')}"
        sent = sorted(f"total({axis!r}, {r.keywords})" for r in among)
        return f"cost={self._joined([*first, *sent], 'min')}, axis={axis!r}"

    def _to_a_level(self, group: Group, among: Sequence[Reference], axis: str, given: Any) -> list[str]:
        level = self._level(self.choose("level"), among) if given is None else self.number(given)
        return [self._reach(level, r, axis) for r in group.references]

    def _reach(self, level: str, reference: Reference, axis: str) -> str:
        along = "" if axis == "round" else f"axis={axis!r}, "
        return f"reach({level}, {along}{reference.keywords})"

    def _level(self, left: float, among: Sequence[Reference]) -> str:
        """Return the level at which a share of the way from the start to the best end is left."""
        left = round(left, 6)
        gone, start, best = round(1 - left, 6), self._start(among), self._best_end(among)
        if among[0].scale == RATIO:
            return f"log_between({start}, {best}, {gone:g})"
        return f"{gone:g} * {best} + {left:g} * {start}"

    def _start(self, among: Sequence[Reference]) -> str:
        return f"y(at=0, {min(r.keywords for r in among)})"

    def _best_end(self, among: Sequence[Reference]) -> str:
        ends = sorted(f"y(at='end', {r.keywords})" for r in among)
        return self._joined(ends, "min" if among[0].lower_is_better else "max")

    # -- numbers -------------------------------------------------------------------------------------------------------

    def plain(self, node: ast.expr) -> str:
        """Return an expression without names of curves and quantities."""
        return ast.unparse(_Plain(self).visit(ast.parse(ast.unparse(node), mode="eval").body))

    def number(self, node: Any) -> str:
        """Return one number as an expression without names. Raises UserError for anything else."""
        value = node.value if isinstance(node, ast.Constant) else node
        if isinstance(value, bool) or not isinstance(value, int | float | ast.expr):
            raise UserError(f"{value!r} is not a number: name one, or a level as in to=0.95 or to=end(A)")
        return self.plain(node) if isinstance(node, ast.expr) else f"{node!r}"

    def _numbers(self, node: ast.expr, among: Sequence[Reference]) -> list[str]:
        """Return a quantity of each of the curves that it names."""
        name = claim_grammar.called(node)
        if name not in lexicon().quantities:
            return [self.plain(node)]
        assert isinstance(node, ast.Call)
        return getattr(self, f"_quantity_{name}")(node, among or self._references_in(node))

    def quantity(self, node: ast.Call) -> str:
        """Return a quantity as one number."""
        return self._joined(self._numbers(node, self._references_in(node)), "max")

    def _quantity_end(self, node: ast.Call, among: Sequence[Reference]) -> list[str]:
        return [self._value(r, "end") for r in self._group(self._arguments(node, 1)[0]).references]

    def _quantity_value(self, node: ast.Call, among: Sequence[Reference]) -> list[str]:
        place = self._placed(node, among)
        return [self._value(r, place) for r in self._group(self._arguments(node, 1)[0]).references]

    def _quantity_rounds(self, node: ast.Call, among: Sequence[Reference]) -> list[str]:
        group = self._group(self._arguments(node, 1)[0])
        return self._to_a_level(group, among, "round", self._keyword(node, "to"))

    def _quantity_cost(self, node: ast.Call, among: Sequence[Reference]) -> list[str]:
        group = self._group(self._arguments(node, 1)[0])
        return self._to_a_level(group, among, self._keyword(node, "axis") or COST, self._keyword(node, "to"))

    def _quantity_gap(self, node: ast.Call, among: Sequence[Reference]) -> list[str]:
        place = self._placed(node, among)
        pairs = self._pairs(node, "over")
        ratio = pairs[0][0].scale == RATIO
        return [
            f"{self._value(a, place)} / {self._value(b, place)}" if ratio
            else f"({self._value(a, place)} - {self._value(b, place)})"
            for a, b in pairs
        ]  # fmt: skip

    def _quantity_distance(self, node: ast.Call, among: Sequence[Reference]) -> list[str]:
        place = self._placed(node, among)
        pairs = [(self._value(a, place), self._value(b, place), a) for a, b in self._pairs(node, "than")]
        return [f"abs(log10({a} / {b}))" if r.scale == RATIO else f"abs({a} - {b})" for a, b, r in pairs]

    def _quantity_speedup(self, node: ast.Call, among: Sequence[Reference]) -> list[str]:
        if self.choose(SPEED) == TO_A_LEVEL:
            level = self._level(self.choose("level"), among)
            return [
                f"at_most({self._reach(level, b, 'round')}, total('round', {b.keywords})) / "
                f"at_most({self._reach(level, a, 'round')}, total('round', {a.keywords}))"
                for a, b in self._pairs(node, "over")
            ]
        place = self._stage("early stage", among, "round")
        lower = among[0].lower_is_better
        pairs = [(b, a) if lower else (a, b) for a, b in self._pairs(node, "over")]
        return [f"({self._value(x, place)} - {self._value(z, place)})" for x, z in pairs]

    def _quantity_saving(self, node: ast.Call, among: Sequence[Reference]) -> list[str]:
        axis, level = self._keyword(node, "axis") or COST, self._keyword(node, "to")
        savings = []
        for a, b in self._pairs(node, "than"):
            (own,), (other,) = (self._to_a_level(Group((r,)), (a, b), axis, level) for r in (a, b))
            savings.append(f"(1 - {own} / {other})")
        return savings

    def _quantity_compression(self, node: ast.Call, among: Sequence[Reference]) -> list[str]:
        level = self.number(self._required(node, "to"))
        read = "reach" if self.choose("rounds counted") == "interpolated" else "first"
        return [
            f"(1 - parameter('q', {a.keywords}) * ({read}({level}, {a.keywords}) + 1) / "
            f"(32 * ({read}({level}, {b.keywords}) + 1)))"
            for a, b in self._pairs(node, "than")
        ]

    def _placed(self, node: ast.Call, among: Sequence[Reference]) -> Any:
        place = self._place(node, None)
        return self._stage(f"{place} stage", among, "round") if place in ("early", "middle") else place

    # -- arguments -----------------------------------------------------------------------------------------------------

    def _couples(self, node: ast.Call, keyword: str = "than") -> list[tuple[Group, Group]]:
        """Return the groups that a word compares with each other; with ``m=same`` one pair for each first curve."""
        other = node.args[1] if len(node.args) == 2 else self._required(node, keyword)
        if not has_same(other) or not node.args:
            return [self._pair(node, keyword)]
        firsts = self._group(node.args[0]).references
        return [(Group((first,)), Group(tuple(resolve(other, self.scope, (first,))[0]))) for first in firsts]

    def _pair(self, node: ast.Call, keyword: str = "than") -> tuple[Group, Group]:
        """Return the curves on both sides of a word: ``word(A, than=B)`` or ``word(A, B)``."""
        if len(node.args) not in (1, 2):
            raise UserError(f"'{ast.unparse(node)}': use it as in {claim_grammar.called(node)}(A, {keyword}=B)")
        other = node.args[1] if len(node.args) == 2 else self._required(node, keyword)
        second = self._group(other)
        return self._group(node.args[0], second.references), second

    def _group(self, node: ast.expr, other: Sequence[Reference] = ()) -> Group:
        """Return the curves that a reference, a list of references or ``best_of`` names."""
        if claim_grammar.called(node) == BEST_OF:
            assert isinstance(node, ast.Call)
            return replace(self._group(self._arguments(node, 1)[0], other), best=True)
        if isinstance(node, ast.List):
            if not node.elts:
                raise UserError("'[]' names no curve; write one or more, as in [fedmgs(m=10), fedmgs(m=100)]")
            groups = [self._group(part, other) for part in node.elts]
            return Group(tuple(r for group in groups for r in group.references))
        references, relative = resolve(node, self.scope, other)
        best = relative and len(references) > 1 and self.choose("several values") == "the best of them"
        return Group(tuple(references), best)

    def _references_in(self, node: ast.expr) -> list[Reference]:
        """Return all curves that an expression names."""
        if claim_grammar.called(node) in lexicon().quantities:
            assert isinstance(node, ast.Call)
            if not node.args:
                raise UserError(f"'{ast.unparse(node)}': {_without_curve(node)}")
            named = [k.value for k in node.keywords if k.arg in ("over", "than")]
            second = next(iter([*node.args[1:], *named]), None)
            if second is not None and has_same(second):
                return [r for a, b in self._couples(node, "over") for r in (*a.references, *b.references)]
            others = self._group(second).references if second is not None else ()
            return [*self._group(node.args[0], others).references, *others]
        return []

    def _is_quantity(self, node: ast.expr) -> bool:
        return claim_grammar.called(node) in lexicon().quantities

    def _arguments(self, node: ast.Call, count: int) -> list[ast.expr]:
        if len(node.args) != count:
            wanted = "one argument" if count == 1 else f"{count} arguments"
            raise UserError(f"'{ast.unparse(node)}': {claim_grammar.called(node)}() takes {wanted} without a name")
        return node.args

    def _keyword(self, node: ast.Call, name: str) -> Any:
        """Return an argument: a plain value as it is, an expression as a syntax tree, None if it is not given."""
        for keyword in node.keywords:
            if keyword.arg == name:
                try:
                    return claim_grammar.constant(keyword.value)
                except UserError:
                    return keyword.value
        unknown = [k.arg for k in node.keywords if k.arg not in KEYWORDS]
        if unknown:
            raise UserError(f"'{ast.unparse(node)}' has no '{unknown[0]}'{nearest(str(unknown[0]), KEYWORDS)}")
        return None

    def _required(self, node: ast.Call, name: str) -> ast.expr:
        for keyword in node.keywords:
            if keyword.arg == name:
                return keyword.value
        function = claim_grammar.called(node)
        raise UserError(f"'{ast.unparse(node)}': {function}() needs '{name}', as in {function}(A, {name}=...)")

    def _axis(self, node: ast.Call, word: Word, group: Group) -> str:
        given = self._keyword(node, "axis")
        if given is not None:
            return str(given)
        x = group.references[0].panel.x
        return "round" if word.axis == "round" else x if x.startswith(("uplink", "downlink")) else COST

    def _pairs(self, node: ast.Call, keyword: str) -> list[tuple[Reference, Reference]]:
        """Return each curve of the first side of a word or quantity with each one of the second that belongs to it."""
        couples = self._couples(node, keyword)
        return [(a, b) for first, second in couples for a in first.references for b in second.references]

    @staticmethod
    def _product(first: list[str], second: list[str]) -> tuple[list[str], list[str]]:
        pairs = [(a, b) for a in first for b in second]
        return [a for a, _ in pairs], [b for _, b in pairs]

    @staticmethod
    def _joined(texts: Sequence[str], function: str) -> str:
        unique = list(dict.fromkeys(texts))
        return unique[0] if len(unique) == 1 else f"{function}({', '.join(unique)})"


def _without_curve(node: ast.Call) -> str:
    """Return what to write instead of a quantity that is given no curve."""
    name = claim_grammar.called(node)
    selected = ", ".join(["at='end'", *(ast.unparse(keyword) for keyword in node.keywords)])
    instead = f", or write y({selected})" if name == "end" else ""
    return f"{name}() needs a curve, as in {name}(A) with a curve named under names:{instead}"


KEYWORDS = ("than", "among", "over", "to", "by", "when", "axis", "since", "falling", "of")
"""The named arguments of words and quantities."""
RESERVED = (*KEYWORDS, LARGER, SMALLER, SAME, BEST_OF)


def _with_values(node: ast.expr, values: dict[str, Any]) -> ast.expr:
    """Return a quantity whose lists and ``same`` are replaced by one value, in the references that have them."""
    copied = ast.parse(ast.unparse(node), mode="eval").body
    for part in ast.walk(copied):
        if isinstance(part, ast.keyword) and part.arg in values and isinstance(part.value, (ast.List, ast.Name)):
            part.value = ast.parse(repr(values[part.arg]), mode="eval").body
    return copied


def _at_nearly_all(text: str) -> str:
    """Return a comparison of many rounds as one that one round in twenty may violate."""
    node = ast.parse(text, mode="eval").body
    assert isinstance(node, ast.Compare)
    low, high = ast.unparse(node.left), ast.unparse(node.comparators[0])
    if isinstance(node.ops[0], (ast.Gt, ast.GtE)):
        low, high = high, low
    return f"quantile({high} - ({low}), 0.05) > 0"


def _are_curves(references: Sequence[Reference]) -> bool:
    """Return whether all references are curves over rounds, and not entries of a table or levels."""
    return all(r.panel.kind == "curves" and not r.constant for r in references)


_ONE_CALL = re.compile(r"\w+\(")


def _bracket(text: str) -> str:
    """Return an expression as a factor: in brackets unless it is one number or one call."""
    if _ONE_CALL.match(text):
        depth = 0
        for place, character in enumerate(text):
            depth += (character == "(") - (character == ")")
            if not depth and character == ")":
                return text if place == len(text) - 1 else f"({text})"
    return text if text.replace(".", "", 1).isalnum() else f"({text})"


class _Plain(ast.NodeTransformer):
    """Replaces quantities, and names of curves as the first argument of readers."""

    def __init__(self, expander: _Expander) -> None:
        self.expander = expander

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = claim_grammar.called(node)
        if name in lexicon().quantities:
            return ast.parse(self.expander.quantity(node), mode="eval").body
        if name in claim_grammar.READERS:
            return self._reader(node)
        return self.generic_visit(node)

    def _reader(self, node: ast.Call) -> ast.AST:
        known = self.expander.scope.known
        named = [argument for argument in node.args if name_of(argument) in known]
        self.generic_visit(node)
        if not named:
            return node
        references, _ = resolve(named[0], self.expander.scope)
        if len(references) != 1:
            raise UserError(
                f"'{ast.unparse(node)}': '{ast.unparse(named[0])}' names {len(references)} curves; name one"
            )
        node.args = [argument for argument in node.args if argument not in named]
        added = ast.parse(f"f({references[0].keywords})", mode="eval").body
        assert isinstance(added, ast.Call)
        node.keywords = [*node.keywords, *added.keywords]
        return node
