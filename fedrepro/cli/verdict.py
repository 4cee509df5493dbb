"""The command ``verdict``."""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fedrepro import registry
from fedrepro.claims import origin, precedence
from fedrepro.claims.classes import ONE, TURNS, in_classes
from fedrepro.claims.evidence import NONE, PAPER, VERDICTS
from fedrepro.claims.origin import STUDIES
from fedrepro.claims.precedence import AFTER, LOCKED
from fedrepro.cli import colour
from fedrepro.cli.listing import aligned
from fedrepro.cli.options import Choice, complete_spec, evidence_option, json_option, results_option, set_option
from fedrepro.errors import UserError, counted
from fedrepro.progress import Progress
from fedrepro.spec import nodes
from fedrepro.spec.find import Selected, called, is_study, of_own_study, own_studies, select, stored_under
from fedrepro.spec.tiers import BEST, DEFAULT

if TYPE_CHECKING:
    from fedrepro.claims.judge import Row
    from fedrepro.report.gather_contents import Verdicts

ONLY = {verdict.replace(" ", "-"): verdict for verdict in VERDICTS}
"""The verdicts as the option ``--only`` names them."""

MOST_NAMES = 10
"""Number of figures without results that are named; more of them are counted."""

ALONE = 8
"""Number of figures that are judged in this process; more of them are worth starting others."""


@click.command()
@click.argument("specs", nargs=-1, metavar="[FIGURE|PAPER|CLAIM...]", shell_complete=complete_spec)
@evidence_option("judge")
@click.option("--only", multiple=True, type=Choice(ONLY), help="Print only the claims with this verdict.")
@click.option("--fragile", is_flag=True, help="Print only claims that get the opposite verdict under another reading.")
@click.option("--paper", "papers", multiple=True, metavar="PAPER", help="Print only the claims of this paper.")
@click.option(
    "--about", multiple=True, metavar="METHOD|DATASET", help="Print only the claims that compare curves of it."
)
@set_option
@json_option
@results_option
def verdict(
    specs: tuple[str, ...],
    tier: str,
    only: tuple[str, ...],
    fragile: bool,
    papers: tuple[str, ...],
    about: tuple[str, ...],
    sets: tuple[str, ...],
    as_json: bool,
    results_dir: Path,
) -> None:
    """Print for each claim whether it holds in the available results.

    FIGURE is `paper/figure` or the path of a spec, PAPER a paper's key, CLAIM the id of a claim. Without a name and
    without --only, one line per paper is printed. Results that today's code did not compute are named as stale.

    At the paper tier, on the paper's data and with all trials, a claim is reproduced, not reproduced or within noise.
    With weaker evidence (fewer trials, a variant of the data, a smaller tier, a stand-in) it holds, fails or is
    undecided. A last line says how the verdict depends on the reading of the claim's words
    (`fedrepro describe WORD` has the readings of a word), and whether the claim was locked before its results
    (`fedrepro lock`).

    \b
    Examples:
      fedrepro verdict
      fedrepro verdict gcca --only not-reproduced
      fedrepro verdict gcca.3d.optimal
      fedrepro verdict --about fedmgs --about tdt2
      fedrepro verdict --fragile
      fedrepro verdict fedc/fig5 --tier paper
      fedrepro verdict gcca/fig4 --json
    """
    from fedrepro.report import gather_contents
    from fedrepro.results import everything

    selected = everything.selected(specs or papers, results_dir)
    if specs and papers:
        selected = _of_papers(selected, papers)
    if about:
        selected = _about(selected, about)
    judged = _judged(selected, tier, results_dir, sets)
    named = bool(specs or papers or about)
    asked = (*specs, *papers)
    _require_results(judged, tier, sets, results_dir, asked, one=len(specs) == len(selected))
    rows = [row for figure in judged for row in figure.rows if not only or row.verdict in map(ONLY.get, only)]
    rows = [row for row in rows if not fragile or (row.robustness is not None and row.robustness.kind == TURNS)]
    named = named or fragile
    if as_json:
        stale = {(figure.name, name): why for figure in judged for name, why in figure.stale.items()}
        click.echo(json.dumps([_facts(row, stale.get((row.figure, row.tier), ())) for row in rows], indent=1))
        return
    if not (named or only):
        _print_summary(judged)
    numbers = {(figure.name, claim): text for figure in judged for claim, text in figure.numbers.items()}
    for row in rows if named or only else ():
        whose = " (ours)" if not row.figure.startswith(f"{STUDIES}/") and origin.is_ours(row) and not _own(row) else ""
        click.echo(f"{colour.word(row.verdict, 19)} {row.claim.id:<22} {row.claim.says}{whose}\n{'':<19} {row.reason}")
        if found := numbers.get((row.figure, row.claim.id)):
            click.echo(f"{'':<19} numbers: {found}")
        if row.robustness is not None and row.robustness.kind != ONE:
            click.echo(f"{'':<19} {row.robustness.words}")
        if row.precedence is not None and row.precedence.kind in (LOCKED, AFTER):
            click.echo(f"{'':<19} {row.precedence.words}")
    theirs, ours = origin.apart(rows)
    both = theirs and ours and not any(map(_own, rows))
    for whose, own in (("papers' claims: ", theirs), ("our claims: ", ours)) if both else (("", rows),):
        click.echo(whose + _counted(own))
    if by_class := in_classes(row.robustness for row in rows):
        click.echo(by_class)
    if by_precedence := precedence.counted(row.precedence for row in rows):
        click.echo(by_precedence)
    if recomputed := gather_contents.recomputed([figure.path for figure in judged], tier, results_dir):
        click.echo(f"{recomputed} (receipts are not signed; `fedrepro receipts` lists them)")
    _print_stale(judged)
    if not about:
        _print_missing(judged, tier, results_dir)
    if not (named or only):
        if studies := _own_studies(results_dir):
            click.echo(f"your own studies: fedrepro verdict {studies}")
        some = any(figure.has_results and figure.name.startswith("gcca/") for figure in judged)
        click.echo("\n".join(["", *(line for line in NEXT if some or "gcca" not in line)]))


NEXT = (
    "fedrepro verdict gcca                   the claims of a paper; of a figure: fedrepro verdict gcca/fig4",
    "fedrepro verdict --only not-reproduced  all claims with a verdict",
    "fedrepro verdict --about fedmgs         all claims about a method, or about a dataset",
    "fedrepro verdict gcca.3d.optimal        one claim",
    "fedrepro report                         all of it as pages",
)
"""What to ask after the summary. Lines that name a paper are left out if it has no results."""


def _of_papers(selected: Sequence[Selected], papers: Sequence[str]) -> list[Selected]:
    """Return the selected claims of these papers or studies. Raises UserError if there are none."""
    own = {item.path.resolve(): item.claims for item in select(papers)}
    found = []
    for item in selected:
        claims = own.get(item.path.resolve())
        if claims is None and stored_under(nodes.read(item.path))[0] in papers:  # a copy of a spec in another folder
            claims = frozenset()
        if claims is not None and (not claims or not item.claims or claims & item.claims):
            found.append(Selected(item.path, claims & item.claims or claims | item.claims))
    if not found:
        raise UserError(f"no selected claim is of {' or '.join(papers)}")
    return found


def _about(selected: Sequence[Selected], names: Sequence[str]) -> list[Selected]:
    """Return the selected claims about all of these methods and datasets. Raises UserError if there are none."""
    from fedrepro.spec.claims_about import only_about

    found = only_about(selected, names)
    if not found:
        raise UserError(f"no selected claim is about {' and '.join(names)}")
    return found


def _own(row: Row) -> bool:
    """Return whether a claim is of a user's own study, where all claims are theirs."""
    return is_study(row.figure.partition("/")[0])


def _counted(rows: Sequence[Row]) -> str:
    """Return how many claims have each verdict and level of evidence."""
    from fedrepro.claims import distinct

    counts = Counter((row.verdict, "" if of_own_study(row.figure, row.tier) else row.level) for row in rows)
    by_verdict = [f"{n} {colour.word(name)}" + _level(level) for (name, level), n in counts.items()]
    return "; ".join([*by_verdict, distinct.in_words(rows)])


def _judged(selected: Sequence[Selected], tier: str, results_dir: Path, sets: tuple[str, ...]) -> list[Verdicts]:
    """Return the verdicts on the selected claims of every figure. Many figures are judged in several processes."""
    from fedrepro.report import gather_contents

    judge = functools.partial(gather_contents.verdicts, tier=tier, root=results_dir, sets=sets)
    if len(selected) <= ALONE:
        return [judge(item) for item in selected]
    from fedrepro import processes
    from fedrepro.runs.runner import default_jobs

    judged = []
    with Progress("figures", len(selected)) as progress:
        for verdicts in processes.parallel_map(judge, selected, default_jobs()):
            progress.step(verdicts.name)
            judged.append(verdicts)
    return judged


def _require_results(
    judged: Sequence[Verdicts], tier: str, sets: Sequence[str], results_dir: Path, asked: Sequence[str], one: bool
) -> None:
    """Raise UserError if there is nothing to judge. asked : the names given. one : whether each named one figure."""
    from fedrepro.results import missing
    from fedrepro.results.read import has_results

    more = "".join(f" --set '{option}'" for option in sets)
    for figure in judged if one else ():
        name = called(figure.path)
        if not figure.claims:
            raise UserError(
                f"{name}: has no claims to judge; `fedrepro show {name}` prints its numbers, and "
                "`fedrepro describe claims` explains how to add a claim"
            )
        if not figure.has_results:
            if tier == BEST and has_results(figure.path, "smoke", results_dir, sets):
                raise UserError(
                    f"{name}: its only results are of the smoke tier; `fedrepro verdict {name} --tier smoke{more}` "
                    f"judges them, and `fedrepro run {name}{more}` makes better ones"
                )
            raise UserError(f"{name}: {missing.in_words(name, tier, results_dir, sets)}")
    if not any(figure.rows for figure in judged):
        names = " ".join(asked) or "PAPER"
        own = "" if asked or not (studies := _own_studies(results_dir)) else f"; your own: `fedrepro verdict {studies}`"
        raise UserError(missing.in_words(names, tier, results_dir, sets, what="results with claims") + own)


OURS = "ours"
"""The line of the summary with our claims."""


def _print_summary(judged: Sequence[Verdicts]) -> None:
    """Print a table with a line per paper, and one for our claims: the number of claims with each verdict."""
    rows: dict[str, list[Row]] = {paper: [] for paper in registry.PAPERS if paper != STUDIES}
    stale: Counter[str] = Counter()
    rows[OURS] = []
    for figure in judged:
        paper = OURS if figure.name.startswith(f"{STUDIES}/") else _paper(figure)
        theirs, ours = origin.apart(figure.rows)
        own = [row for row in ours if _own(row)]
        rows.setdefault(paper, []).extend([*theirs, *own])
        rows[OURS] += [row for row in ours if not _own(row)]
        stale[paper] += bool(figure.stale)
    rows = {paper: own for paper, own in rows.items() if own}
    shown = [verdict for verdict in VERDICTS if any(row.verdict == verdict for own in rows.values() for row in own)]
    lines = [("", "claims", *shown, "stale figures")]
    rows["all"] = [row for own in rows.values() for row in own]
    for paper, own in rows.items():
        counts = Counter(row.verdict for row in own)
        figures = sum(stale.values()) if paper == "all" else stale[paper]
        lines.append((paper, str(len(own)), *(str(counts[verdict] or "") for verdict in shown), str(figures or "")))
    head, *body = aligned(lines)
    for line in (colour.words(head), *body):
        click.echo(line)
    if OURS in rows:
        click.echo(f"{OURS}: claims that this project adds (`fedrepro verdict beyond`: those of its own figures)\n")


def _print_stale(judged: Sequence[Verdicts]) -> None:
    """Name the results that today's code did not compute."""
    colour.print_stale({(figure.name, tier): reasons for figure in judged for tier, reasons in figure.stale.items()})


def _own_studies(results_dir: Path) -> str:
    """Return the names of the user's own studies with results."""
    from fedrepro.results.read import has_results

    own = own_studies().items()
    return " ".join(study for study, paths in own if any(has_results(path, DEFAULT, results_dir) for path in paths))


def _print_missing(judged: Sequence[Verdicts], tier: str, results_dir: Path) -> None:
    """Name the papers without results and what to do, and other figures without results, which are not counted."""
    from fedrepro.results import missing

    some = {_paper(figure) for figure in judged if figure.has_results}
    papers = list(dict.fromkeys(paper for figure in judged if (paper := _paper(figure)) not in some))
    if papers:
        what = f"results of {', '.join(papers)}"
        click.echo(missing.in_words(papers[0] if len(papers) == 1 else "PAPER", tier, results_dir, what=what))
    lacking = [figure for figure in judged if not figure.has_results and _paper(figure) in some]
    names = ", ".join(f"{figure.name} ({counted(figure.claims, 'claim')})" for figure in lacking)
    if len(lacking) > MOST_NAMES:
        names = f"{len(lacking)} figures with {counted(sum(figure.claims for figure in lacking), 'claim')}"
    if lacking:
        click.echo(f"no results, and not counted: {names}")


def _paper(figure: Verdicts) -> str:
    """Return the paper, or the study, of a figure."""
    return figure.name.partition("/")[0]


def _level(level: str) -> str:
    return "" if level in ("", PAPER, NONE) else f" ({level})"


def _finite(number: float) -> float | None:
    """Return the number, None if it is infinite or nan: JSON has neither."""
    return number if math.isfinite(number) else None


def _readings(row: Row) -> dict[str, Any] | None:
    """Return the class of a verdict over readings, and the answer of each; None if readings were not judged."""
    found = row.robustness
    if found is None:
        return None
    return {
        **{"class": found.kind, "in_words": found.words, "judged": len(found.answers), "total": found.total},
        **{"unanswered": found.unanswered, "counts": found.counts, "influence": found.influence},
        "answers": [{**answer.reading.values, "outcome": answer.outcome} for answer in found.answers],
    }


def _precedence(row: Row) -> dict[str, str] | None:
    """Return whether the claim was written before its results, None without results."""
    state = row.precedence
    return None if state is None else {"class": state.kind, "in_words": state.words}


def _facts(row: Row, stale: Sequence[str]) -> dict[str, Any]:
    claim = row.claim
    return {
        **{"figure": row.figure, "tier": row.tier, "id": claim.id, "says": claim.says, "where": claim.where},
        **{"panel": claim.panel, "check": claim.check, "reading": claim.reading, "note": claim.note},
        **{"verdict": row.verdict, "level": row.level, "evidence": row.evidence, "why": row.why, "trials": row.trials},
        "margins": [
            {"value": _finite(m.value), "low": _finite(m.low), "high": _finite(m.high), "unit": unit}
            for m, unit in zip(row.margins, row.units, strict=True)
        ],
        "trials_to_decide": row.trials_to_decide,
        "stale": list(stale),
        "words": claim.words,
        "readings": _readings(row),
        "precedence": _precedence(row),
        **({"theorem": claim.theorem, "promise": row.promise, "bound": row.bound} if claim.theorem else {}),
    }
