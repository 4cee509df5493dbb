"""The contents of a report as data: one section per figure with its claims and numbers, and the discrepancies."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fedrepro import registry
from fedrepro.claims import evidence, judge
from fedrepro.errors import counted
from fedrepro.plotting.header_footer import footer, tags
from fedrepro.plotting.series import FigureData
from fedrepro.report.effects import Measured
from fedrepro.report.published import Published
from fedrepro.results.checks import Check
from fedrepro.results.schema import Sidecar
from fedrepro.spec.discrepancies import Discrepancy
from fedrepro.spec.find import option_of_tier
from fedrepro.spec.model import Figure

LENT_WORDS = "tier, whose verdicts are shown: "
LENT = "the {tier} " + LENT_WORDS


@dataclass(frozen=True)
class Section:
    """One figure: its results at one tier (``source`` is None without results) and its verdicts.

    Every claim has the verdict with the best evidence of the requested tiers. stale : what has changed since the
    results were computed, and which results are damaged. unchecked : why changes cannot be detected. others : the
    results of other tiers that verdicts are from. recomputed : what receipts say about its runs, in words. file : the
    path of the CSV, which is compressed or not.
    """

    path: Path
    figure: Figure
    source: FigureData | None
    claims: tuple[judge.Row, ...]
    stale: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    published: tuple[Published, ...] = ()
    tiers: tuple[str, ...] = ()
    check: Check | None = None
    others: tuple[FigureData, ...] = ()
    recomputed: str = ""
    file: str = ""

    @property
    def name(self) -> str:
        """``paper/figure``."""
        return self.figure.name

    @property
    def has_results(self) -> bool:
        """Whether it has results, even if they are damaged."""
        return self.source is not None or bool(self.stale)

    @property
    def tier(self) -> str:
        """The tier of its results in words."""
        return self.figure.tier if self.source else "no results"

    @property
    def caveats(self) -> tuple[str, ...]:
        """The tags of its results: in what they differ from the published experiment, and whether they are stale."""
        return (*(tags(self.source) if self.source else ()), *(["STALE"] if self.stale else ()))

    @property
    def footer(self) -> str:
        """What its pictures are drawn from, in words."""
        return footer(self.source, ()) if self.source else ""

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that compute its results again as they are, and draw them."""
        spec = f"{self.path}{option_of_tier(self.name, self.figure.tier)}"
        sidecar = self.source.sidecar if self.source else Sidecar()
        options = " --stand-in" if sidecar.stand_ins else ""
        options += "".join(f" --set '{item}'" for item in sidecar.sets)
        return f"fedrepro run {spec}{options}", f"fedrepro plot {spec}"

    @property
    def origin(self) -> dict[str, str]:
        """The source of its numbers: headings and words, without empty ones."""
        if self.source is None:
            return {}
        sidecar = self.source.sidecar
        made = sidecar.made
        data = (
            f"{d.dataset} ({d.state}) {d.fingerprint[:16]}" + f": {d.note}" * bool(d.note) for d in sidecar.datasets
        )
        libraries = ", ".join(f"{name} {version}" for name, version in made.libraries.items())
        facts = {
            "commit": (made.commit[:12] or made.without_commit or "unknown")
            + (", with uncommitted changes" if made.dirty else ""),
            "data": "; ".join(dict.fromkeys(data)),
            "versions": f"fedrepro {made.fedrepro or '?'}, Python {made.python or '?'}, {libraries}",
            "machine": "; ".join(filter(None, (made.machine, *made.kernels.values()))),
            "seconds": f"{sidecar.seconds:,.1f} of computing, one core",
            "trials": f"{sidecar.trials_done or 0} of {sidecar.trials_wanted or 0}{_more_trials(sidecar)}",
            "results": f"sha256 {sidecar.csv_sha256[:16]}, written {made.written}",
            "last check": self.check.words if self.check is not None else "",
            "receipts": self.recomputed and f"{self.recomputed} (receipts are not signed)",
            "diverged": "; ".join(str(run) for run in sidecar.diverged),
            "failed": "; ".join(str(run) for run in sidecar.failed),
            "missing": "; ".join(sidecar.missing),
        }
        return {heading: words for heading, words in facts.items() if words}

    def count(self, verdict: str) -> int:
        """Return how many of its claims have this verdict."""
        return sum(row.verdict == verdict for row in self.claims)

    def lesser_levels(self) -> str:
        """Return the levels of evidence of its claims below the paper's, in words."""
        present = {row.level for row in self.claims}
        return ", ".join(level for level in evidence.LEVELS[1:-1] if level in present)

    def read_from(self, row: judge.Row) -> FigureData | None:
        """Return the results that a claim's verdict is from."""
        sources = (s for s in (self.source, *self.others) if s is not None and s.figure.tier == row.tier)
        return next(sources, None) if row.level != evidence.NONE else None

    def stale_since(self, row: judge.Row) -> list[str]:
        """Return what has changed since the results of a claim's verdict were computed, [] if they are not stale."""
        own = self.source is not None and self.source.figure.tier == row.tier
        lent = LENT.format(tier=row.tier)
        reasons = (why for why in self.stale if why.startswith(lent) or (own and LENT_WORDS not in why))
        return [why.removeprefix(lent) for why in reasons]

    def in_short(self) -> Section:
        """Return the section without its measurements: all that its pages need besides what ``prepare`` makes."""
        short = self.source.in_short() if self.source is not None else None
        return dataclasses.replace(self, source=short, others=tuple(source.in_short() for source in self.others))


@dataclass(frozen=True)
class Report:
    """All sections, the discrepancies, and the measured effects by the id of their discrepancy."""

    sections: tuple[Section, ...]
    discrepancies: tuple[Discrepancy, ...] = ()
    effects: Mapping[str, tuple[Measured, ...]] = dataclasses.field(default_factory=dict)

    @property
    def rows(self) -> list[judge.Row]:
        """The verdicts on the claims of all figures."""
        return [row for section in self.sections for row in section.claims]

    @property
    def without_results(self) -> list[str]:
        """The papers, and other folders of specs, of which no figure has results."""
        some = {section.figure.paper for section in self.sections if section.has_results}
        return [paper for paper in dict.fromkeys(s.figure.paper for s in self.sections) if paper not in some]

    @property
    def listed(self) -> list[Section]:
        """The figures of the papers that have results."""
        return [section for section in self.sections if section.figure.paper not in self.without_results]

    @property
    def stale(self) -> int:
        """The number of figures whose results are stale."""
        return sum(bool(section.stale) for section in self.sections)

    def count(self, verdict: str) -> int:
        """Return how many claims of all figures have this verdict."""
        return sum(row.verdict == verdict for row in self.rows)

    def at_level(self, level: str) -> list[judge.Row]:
        """Return the verdicts on this level of evidence."""
        return [row for row in self.rows if row.level == level]

    def touching(self, name: str) -> list[Discrepancy]:
        """Return the discrepancies that concern a figure."""
        return [row for row in self.discrepancies if name in row.figures]


def _more_trials(sidecar: Sidecar) -> str:
    """Return, in words, how many trials curves have of which claims ask for more; '' if there are none."""
    numbers = Counter(len(runs) for runs in sidecar.runs.values() if len(runs) > (sidecar.trials_wanted or 0))
    return "".join(f", {trials} of {counted(curves, 'curve')}" for trials, curves in sorted(numbers.items()))


def paper_title(key: str) -> str:
    """Return the title of a paper, or of another folder of experiments."""
    return registry.PAPERS.get(key, "Beyond the papers" if key == "beyond" else key)
