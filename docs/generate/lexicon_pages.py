"""The pages on the lexicon, and on its two readers and the earlier checks, made when the site is built.

``second_reader.yaml`` has the checks of a second reader, who saw the papers, their sentences as the claims say them,
and the lexicon, but no check, reading or result of this project. ``python docs/generate/lexicon_pages.py`` prints how
far both readers agree.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from reference import table

from fedrepro.claims import judge
from fedrepro.errors import UserError
from fedrepro.lexicon.vocabulary import lexicon, value_in_words
from fedrepro.results import read
from fedrepro.spec import readings, words
from fedrepro.spec.find import specs
from fedrepro.spec.model import Claim, Figure
from fedrepro.spec.read import load

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SAME, SAME_WORDS, OTHER, ONE_LITERAL, BOTH_LITERAL = KINDS = (
    "the same check", "the same words on other curves or at another place", "other words",
    "words for one reader, none for the other", "no words for either",
)  # fmt: skip


# -- the lexicon -------------------------------------------------------------------------------------------------------


def lexicon_page() -> str:
    """Return the page with every dimension, word and quantity."""
    return "\n".join(_lexicon())


def _lexicon() -> Iterator[str]:
    yield "# The lexicon: how vague words are read\n"
    yield (
        "A word of a sentence has measures, and a measure has dimensions: choices that the sentence leaves open. The "
        "first value of a dimension is the leading one. Claims are judged under every combination of values that their "
        "words use. `fedrepro describe considerably` prints a word, `fedrepro describe level` a dimension; the file is "
        "`fedrepro/lexicon/words.yaml`. [Read a verdict](verdicts.md#readings) explains how readings are used, and "
        "[Two readers](readers.md) how often two readers chose the same words.\n"
    )
    yield "## Dimensions\n"
    rows = [
        [f"*{name}*", ", ".join(value_in_words(name, v) for v in d.values), d.means, d.rule]
        for name, d in lexicon().dimensions.items()
    ]
    yield table(["dimension", "values, leading first", "meaning", "how its values were chosen"], rows)
    yield "## Words\n"
    rows = [[f"`{word.name}`", ", ".join(word.also), word.measures, word.means] for word in lexicon().words.values()]
    yield table(["word", "stands for", "measured by", "meaning"], rows)
    yield "## Quantities\n"
    yield table(["quantity", "meaning"], ([f"`{name}`", text] for name, text in lexicon().quantities.items()))


# -- two readers -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """What two readers made of one sentence. verdicts : of the first and of the second reader's check, '' unknown."""

    claim: Claim
    second: str
    kind: str
    verdicts: tuple[str, str] = ("", "")


@functools.cache
def pairs(root: Path = ROOT / "results") -> tuple[Pair, ...]:
    """Return every sentence that both readers read, with the verdicts on kept results at the paper tier."""
    second = yaml.safe_load((HERE / "second_reader.yaml").read_text(encoding="utf-8"))
    return _pairs(root, lambda claim: second.get(claim.id, ""))


@functools.cache
def changed(root: Path = ROOT / "results") -> tuple[Pair, ...]:
    """Return every sentence whose check was changed, with the verdicts of the check and of the earlier one."""
    return _pairs(root, lambda claim: claim.earlier)


def _pairs(root: Path, other: Callable[[Claim], str]) -> tuple[Pair, ...]:
    """Return the claims that have another check, with both. other : returns it, '' for none."""
    found = []
    for path in specs(ROOT / "experiments"):
        figure = load(path, "paper")
        own = [(claim, check) for claim in figure.claims if (check := other(claim))]
        known = _known(root, figure) if own else None
        found += [_pair(claim, check, figure, known) for claim, check in own]
    return tuple(found)


def _known(root: Path, figure: Figure) -> judge.Known | None:
    table_ = read.results_file(read.stem(root, figure))
    return judge.Known(read.frame(table_)) if table_ is not None else None


def _pair(claim: Claim, second: str, figure: Figure, known: judge.Known | None) -> Pair:
    if second == "literal" or not claim.words:
        return Pair(claim, second, BOTH_LITERAL if second == "literal" and not claim.words else ONE_LITERAL)
    panels = {panel.id: panel for panel in figure.panels}
    plain = dataclasses.replace(claim, check=second, words="", faster="", figure_shows="", or_read="", earlier="")
    other = readings.with_literal_check(plain, panels)
    first, again = (_decision(c, figure, known) for c in (claim, other))
    verdicts = (first.outcome, again.outcome) if first is not None and again is not None else ("", "")
    same = claim.check == other.check or (first is not None and again is not None and first.margins == again.margins)
    same_words = set(words.words_of(second)) == set(words.words_of(claim.words))
    return Pair(claim, second, SAME if same else SAME_WORDS if same_words else OTHER, verdicts)


def _decision(claim: Claim, figure: Figure, known: judge.Known | None) -> judge.Decision | None:
    if known is None:
        return None
    try:
        return judge.decide_expanded([claim.check], judge.Reader.of(claim, figure, known))
    except judge.NotTestable:
        return None


def summary() -> str:
    """Return in words how far both readers agree."""
    counts = Counter(pair.kind for pair in pairs())
    judged = [pair for pair in pairs() if all(pair.verdicts)]
    alike = sum(first == second for first, second in (pair.verdicts for pair in judged))
    return (
        f"Of {len(pairs())} sentences: {'; '.join(f'{kind} {counts[kind]}' for kind in KINDS)}. Of {len(judged)} whose "
        f"checks can both be judged on the kept results, {alike} have the same outcome."
    )


def readers_page() -> str:
    """Return the page on both readers, with every sentence that they read differently, and on changed checks."""
    return "\n".join(_readers())


def _readers() -> Iterator[str]:
    yield "# Two readers, and earlier checks\n"
    yield (
        "The checks of the claims were written by somebody who knew the results. A second reader received the papers, "
        "the sentences of the claims and the lexicon, but no checks, readings or results, and wrote each "
        "check again. The two are not fully independent: the sentences are those of the claims, the ids hint at "
        "readings, and the description of the language has three checks as examples (`fedc.4b`, `fedc.4d`, half of "
        "`fedmf.t1.syn.value`).\n"
    )
    yield summary() + "\n"
    yield (
        "Where the readers differ, the second reader's check is a reading of the claim like any other (`or_read` in "
        "its spec; the dimension *reader*), so the class of a verdict shows whether it depends on the reader. Claims "
        "without words for one of the readers have no such reading.\n"
    )
    for kind in (OTHER, SAME_WORDS, ONE_LITERAL):
        rows = [
            [f"`{p.claim.id}`", p.claim.says, f"`{_plain(p.claim)}`", f"`{p.second}`", _outcomes(p)]
            for p in pairs()
            if p.kind == kind
        ]
        if rows:
            yield f"## {kind.capitalize()}\n"
            yield table(["claim", "sentence", "first reader", "second reader", "outcomes"], rows)
    yield "## Checks that were changed after the runs\n"
    yield (
        "The first reader changed these checks with the results known; the claims' notes say how. The earlier check is "
        "a reading, too (`earlier` in the spec). Checks from before the lexicon, which had thresholds of our own, are "
        "only in the history of the specs: 318 of 349 claims (theorems left out) once had another check, and 61 of "
        "them one with another outcome on the results of 27 November 2026.\n"
    )
    rows = [[f"`{p.claim.id}`", p.claim.says, f"`{_plain(p.claim)}`", f"`{p.second}`", _outcomes(p)] for p in changed()]
    yield table(["claim", "sentence", "check", "earlier check", "outcomes"], rows)


def _plain(claim: Claim) -> str:
    return re.sub(r"\s+", " ", claim.words or "literal")


def _outcomes(pair: Pair) -> str:
    first, second = pair.verdicts
    return "" if not first else first if first == second else f"{first} / {second}"


if __name__ == "__main__":
    try:
        print(summary())
    except UserError as error:
        raise SystemExit(str(error)) from None
