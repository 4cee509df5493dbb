"""The claims as the pages list and count them: one entry per claim, grouped by paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedrepro import registry
from fedrepro.claims import classes
from fedrepro.claims.evidence import FULL, LEVELS, NOT_TESTED, PAPER, PARTIAL, STAND_IN, UNKNOWN, VARIANT, VERDICTS
from fedrepro.claims.judge import Row
from fedrepro.claims.origin import STUDIES, apart, is_ours
from fedrepro.report import summaries
from fedrepro.report.addresses import file_name
from fedrepro.report.gather_contents import Report, Section
from fedrepro.report.summaries import Sentence
from fedrepro.spec import discrepancies
from fedrepro.spec.find import is_study, of_own_study

PAPERS = "papers"
"""The group of all papers' claims."""
OWN_STUDIES, OWN_TITLE = "own", "Our own studies"
"""The group of claims that are not from a paper, and its title."""
IN_A_SENTENCE = "our own studies"

STALE = "stale"
MARKS = (STALE, PARTIAL, VARIANT, UNKNOWN, STAND_IN)
"""The flags of claims: stale results, and some levels of evidence."""

PLAIN_CLASSES = {
    classes.EVERY: "the same in every reading",
    classes.ALL_BUT: "the same in all readings but a few of one kind",
    classes.CERTAINTY: "undecided in some readings",
    classes.TURNS: "the opposite in some readings",
    classes.ONE: "only one reading",
}
"""What the classes of verdicts say about the verdict, for readers who do not know their names."""


@dataclass(frozen=True)
class Entry:
    """A claim in a list. group : the paper, ``OWN_STUDIES``, or a study of the user's. page : the path of its page."""

    row: Row
    section: Section
    group: str
    page: str

    @property
    def group_in_words(self) -> str:
        """What a sentence calls its group."""
        return IN_A_SENTENCE if self.group == OWN_STUDIES else self.group

    @property
    def total(self) -> str:
        """The group in which it is counted: all papers, ``OWN_STUDIES``, or the user's study."""
        return self.group if self.group == OWN_STUDIES or is_study(self.group) else PAPERS

    @property
    def marks(self) -> tuple[str, ...]:
        """Its flags."""
        flags = (STALE if self.section.stale_since(self.row) else "", self.row.level)
        return tuple(mark for mark in MARKS if mark in flags)


@dataclass(frozen=True)
class Group:
    """The claims of one paper, or our own.

    sentences : those of the paper's summary that the verdicts support. changed : the ids of tested claims with other
    verdicts than the rest of the summary is based on. untested : whether claims of the rest are not tested.
    """

    key: str
    name: str
    entries: tuple[Entry, ...]
    sentences: tuple[Sentence, ...] = ()
    changed: tuple[str, ...] = ()
    untested: bool = False

    @property
    def rows(self) -> list[Row]:
        """The verdicts on its claims."""
        return [entry.row for entry in self.entries]

    @property
    def has_results(self) -> bool:
        """Whether a figure with its claims has results."""
        return any(entry.section.has_results for entry in self.entries)

    @property
    def parts(self) -> list[tuple[str, str, int]]:
        """Its bar: level of evidence, verdict and number of claims of each part."""
        counts = Counter((row.level, row.verdict) for row in self.rows)
        pairs = ((level, verdict) for level in LEVELS for verdict in VERDICTS)
        return [(*pair, counts[pair]) for pair in pairs if counts[pair]]

    @property
    def marks(self) -> dict[str, int]:
        """Its number of claims with each flag."""
        counts = Counter(mark for entry in self.entries for mark in entry.marks)
        return {mark: counts[mark] for mark in MARKS if counts[mark]}


def entries(report: Report) -> tuple[Entry, ...]:
    """Return every claim as an entry; if two figures have the same id, the page's name includes the figure."""
    ids = Counter(row.claim.id for section in report.sections for row in section.claims)
    listing = []
    for section in report.sections:
        for row in section.claims:
            name = (row.claim.id,) if ids[row.claim.id] == 1 else (*section.name.split("/", 1), row.claim.id)
            paper = section.figure.paper
            group = OWN_STUDIES if is_ours(row) and not is_study(paper) else paper
            listing.append(Entry(row, section, group, f"claims/{file_name(*name)}.html"))
    return tuple(listing)


def groups(listing: Sequence[Entry], experiments: Path) -> tuple[Group, ...]:
    """Return the claims of each paper in the papers' order, then those of our own studies."""
    verdicts = {entry.row.claim.id: entry.row.verdict for entry in listing}
    keys = {entry.group for entry in listing}
    ordered = sorted(keys, key=lambda key: (key == OWN_STUDIES, discrepancies.order(key), key))
    return tuple(_group(key, listing, verdicts, experiments) for key in ordered)


def short_name(group: Group) -> str:
    """Return what a sentence calls a group: the key of a paper, or `our own studies`."""
    return IN_A_SENTENCE if group.key == OWN_STUDIES else group.key


def _group(key: str, listing: Sequence[Entry], verdicts: Mapping[str, str], experiments: Path) -> Group:
    sentences = summaries.load(experiments, STUDIES if key == OWN_STUDIES else key)
    known = [sentence for sentence in sentences if sentence.known(verdicts)]
    unlike = dict.fromkeys(name for sentence in known for name in sentence.unlike(verdicts))
    changed = tuple(name for name in unlike if verdicts[name] != NOT_TESTED)
    return Group(
        key,
        OWN_TITLE if key == OWN_STUDIES else registry.PAPERS.get(key, key),
        tuple(entry for entry in listing if entry.group == key),
        tuple(sentence for sentence in known if not sentence.unlike(verdicts)),
        changed,
        len(changed) < len(unlike),
    )


def totals(listing: Sequence[Entry]) -> list[Group]:
    """Return the claims of all papers as one group, ours as another, and those of each study of the user's."""
    names = {PAPERS: "The papers' claims", OWN_STUDIES: OWN_TITLE}
    keys = dict.fromkeys([*names, *(entry.total for entry in listing)])
    of_each = {key: tuple(entry for entry in listing if entry.total == key) for key in keys}
    return [Group(key, names.get(key, key), found) for key, found in of_each.items() if found]


def counted(rows: Sequence[Row]) -> str:
    """Return the number of claims with each verdict in words."""
    counts = Counter(row.verdict for row in rows)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])


def class_table(rows: Sequence[Row]) -> list[tuple[str, list[int]]]:
    """Return for each class of verdicts at the published sizes how many are reproduced, not reproduced, within noise.

    The first three numbers are those of the papers' claims, the last three those of ours.
    """
    counts = [
        Counter((row.robustness.kind, row.verdict) for row in some if row.level == PAPER and row.robustness is not None)
        for some in apart(rows)
    ]
    return [(kind, [count[kind, verdict] for count in counts for verdict in FULL]) for kind in classes.CLASSES]


def count_sentence(rows: Sequence[Row]) -> str:
    """Return one sentence with the counts of verdicts, without its full stop; for a user's own study without sizes."""
    full = [row for row in rows if row.level == PAPER]
    less = [row for row in rows if row.level != PAPER and row.verdict != NOT_TESTED]
    untested = len(rows) - len(full) - len(less)
    standing = sum(row.level == STAND_IN for row in rows)
    claims = f"{len(rows)} claim{'s' if len(rows) != 1 else ''}"
    if rows and all(of_own_study(row.figure, row.tier) for row in rows):
        return f"{claims}: {counted(rows)}"
    if not full:
        sentence = f"None of {claims} is tested at the published sizes yet"
    else:
        how_many = f"All {claims}" if len(full) == len(rows) else f"{len(full)} of {claims}"
        sentence = f"{how_many} are tested at the published sizes: {counted(full)}"
    rest = f"; on less evidence {counted(less)}" if less else ""
    rest += f"; {untested} not tested" if untested else ""
    return sentence + rest + (f" ({standing} on stand-ins, which say nothing about the paper)" if standing else "")
