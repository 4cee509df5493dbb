"""The command ``why``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fedrepro.claims.classes import ONE
from fedrepro.claims.evidence import NONE
from fedrepro.cli import colour
from fedrepro.cli.options import complete_spec, evidence_option, in_results, results_option
from fedrepro.errors import UserError
from fedrepro.spec.find import Selected, called, claim_of, experiments, of_own_study, select_distinct

if TYPE_CHECKING:
    from fedrepro.alternatives.deciding import Deciding
    from fedrepro.spec.discrepancies import Discrepancy
    from fedrepro.spec.model import Claim


@click.command()
@click.argument("claim", metavar="CLAIM", shell_complete=complete_spec)
@click.option(
    "--spec",
    metavar="SPEC|FIGURE",
    shell_complete=complete_spec,
    help="the spec with the claim, if a copy of yours has the same ids as a paper's",
)
@evidence_option("explain")
@results_option
def why(claim: str, spec: str | None, tier: str, results_dir: Path) -> None:
    """Print what decides the verdict on a claim: the numbers, other readings of its words, and other settings.

    CLAIM is the id of a claim as `fedrepro verdict FIGURE` prints it.

    \b
    Examples:
      fedrepro why gcca.3d.optimal
      fedrepro why fedc.4d
      fedrepro why fedc.4d --spec my_copy_of_fig4.yaml
    """
    for line in _explained(claim_of(spec, claim) if spec else _selected(claim), tier, results_dir):
        click.echo(line)


def _selected(claim: str) -> Selected:
    selected = select_distinct([claim])
    if len(selected) != 1 or list(selected[0].claims) != [claim]:
        raise UserError(f"'{claim}' is not the id of one claim; `fedrepro verdict {claim}` prints the ids")
    return selected[0]


def _explained(selected: Selected, tier: str, root: Path) -> list[str]:
    from fedrepro.claims import sentences
    from fedrepro.report import gather_contents, next_steps
    from fedrepro.results import missing
    from fedrepro.spec import discrepancies

    (name,) = selected.claims
    section = gather_contents.section(selected.path, tier, root)
    (row,) = (row for row in section.claims if row.claim.id == name)
    source = section.read_from(row)
    found = sentences.sentence(row.claim, source.figure, source.known) if source is not None else ""
    own = of_own_study(row.figure, row.tier)
    level = "" if own or row.level == NONE else f" ({row.level} evidence)"
    reason = row.why if section.source is not None else missing.in_words(called(selected.path), tier, root)
    lines = [
        f"{row.claim.id}: {row.claim.says} ({row.claim.where})",
        f"{colour.word(row.verdict)}{level}: {reason}",
    ]
    if changed := section.stale_since(row):
        lines.append(click.style(f"stale: {'; '.join(changed)}", **colour.STYLES[colour.STALE]))
    if found:
        lines.append(f"numbers: {found}")
    if row.robustness is not None:
        literal = row.claim.literal or "its check uses no word of the lexicon"
        lines.append(f"readings: {row.robustness.words if row.robustness.kind != ONE else f'one; {literal}'}")
        lines += [f"cause: {text}" for text in row.robustness.causes]
    rows = discrepancies.load_all(experiments())
    decided = _decided(selected.path, name, row.tier, root, rows)
    lines += _settings(decided)
    lines += _discrepancies(row.claim, decided, rows)
    lines.append(f"check: {row.claim.words or row.claim.check}")
    if row.claim.note:
        lines.append(f"note: {row.claim.note}")
    for step in next_steps.steps(section, row, next_steps.seconds(section, root)):
        time = f" ({next_steps.duration(step.seconds)})" if step.seconds else ""
        where = in_results(root) if step.command.startswith(("fedrepro run ", "fedrepro check ")) else ""
        lines.append(f"next: {step.words}" + (f" {step.command}{where}{time}" if step.command else ""))
    return lines


def _decided(path: Path, claim: str, tier: str, root: Path, rows: Sequence[Discrepancy]) -> Deciding | None:
    """Return what decides a verdict among other settings; None if none concerns the claim."""
    from fedrepro.alternatives import survey

    gathered = survey.computed([path], rows, tier, root, only="")
    one = next(iter(survey.decided(gathered, rows, root, readings=True, of=claim)), None)
    return one if one is not None and (one.tried or one.untried) else None


def _settings(decided: Deciding | None) -> list[str]:
    """Return what other settings do to a verdict and to its readings."""
    if decided is None:
        return []
    return [
        f"settings: {decided.words}",
        *decided.evidence,
        *(f"readings with {sets}: {counts}" for sets, counts in decided.readings),
    ]


def _discrepancies(claim: Claim, decided: Deciding | None, rows: Sequence[Discrepancy]) -> list[str]:
    """Return which discrepancies the claim names, and those whose settings turn its verdict, for certain or not."""
    from fedrepro.spec.discrepancies import mentioned

    turning = [*decided.turns, *decided.hints, *decided.uncertain, *decided.answered] if decided is not None else []
    settings = [alternative.row for tried in turning for alternative in tried.case.alternatives]
    found = mentioned([claim.says, claim.where, claim.reading, claim.note, *settings], rows)
    if not found:
        return []
    listed = ", ".join(f"{row.id} ({row.topic})" for row in found)
    return [f"discrepancies: {listed}; `fedrepro describe {found[0].id}` prints one"]
