"""The command ``why``."""

from __future__ import annotations

from pathlib import Path

import click

from fedrepro.claims.classes import ONE
from fedrepro.cli import colour
from fedrepro.cli.options import complete_spec, evidence_option, results_option
from fedrepro.errors import UserError
from fedrepro.spec.find import Selected, of_own_study, select_distinct


@click.command()
@click.argument("claim", metavar="CLAIM", shell_complete=complete_spec)
@evidence_option("explain")
@results_option
def why(claim: str, tier: str, results_dir: Path) -> None:
    """Print what decides the verdict on a claim: the numbers, other readings of its words, and other settings.

    CLAIM is the id of a claim as `fedrepro verdict FIGURE` prints it.

    \b
    Examples:
      fedrepro why gcca.3d.optimal
      fedrepro why fedc.4d
    """
    selected = select_distinct([claim])
    if len(selected) != 1 or list(selected[0].claims) != [claim]:
        raise UserError(f"'{claim}' is not the id of one claim; `fedrepro verdict PAPER` prints the ids")
    for line in _explained(selected[0], tier, results_dir):
        click.echo(line)


def _explained(selected: Selected, tier: str, root: Path) -> list[str]:
    from fedrepro.claims import sentences
    from fedrepro.report import gather_contents, next_steps

    (name,) = selected.claims
    section = gather_contents.section(selected.path, tier, root)
    (row,) = (row for row in section.claims if row.claim.id == name)
    source = section.read_from(row)
    found = sentences.sentence(row.claim, source.figure, source.known) if source is not None else ""
    level = "" if of_own_study(row.figure, row.tier) else f" ({row.level} evidence)"
    lines = [
        f"{row.claim.id}: {row.claim.says} ({row.claim.where})",
        f"{colour.word(row.verdict)}{level}: {row.why}",
    ]
    if found:
        lines.append(f"numbers: {found}")
    if row.robustness is not None:
        literal = row.claim.literal or "its check uses no word of the lexicon"
        lines.append(f"readings: {row.robustness.words if row.robustness.kind != ONE else f'one; {literal}'}")
        lines += [f"cause: {text}" for text in row.robustness.causes]
    lines += _settings(selected.path, name, row.tier, root)
    lines.append(f"check: {row.claim.words or row.claim.check}")
    if row.claim.note:
        lines.append(f"note: {row.claim.note}")
    for step in next_steps.steps(section, row, next_steps.seconds(section, root)):
        time = f" ({next_steps.duration(step.seconds)})" if step.seconds else ""
        lines.append(f"next: {step.words}" + (f" {step.command}{time}" if step.command else ""))
    return lines


def _settings(path: Path, claim: str, tier: str, root: Path) -> list[str]:
    """Return what other settings do to the verdict and to its readings; nothing if none concerns the claim."""
    from fedrepro.alternatives import survey
    from fedrepro.spec import discrepancies
    from fedrepro.spec.find import experiments

    rows = discrepancies.load_all(experiments())
    gathered = survey.computed([path], rows, tier, root, only="")
    one = next(iter(survey.decided(gathered, rows, root, readings=True, of=claim)), None)
    if one is None or not (one.tried or one.untried):
        return []
    counted = [(tried.case.name, tried.effect.readings_in_words) for tried in one.tried]
    return [
        f"settings: {one.words}",
        *(f"cause: {text}" for text in one.causes),
        *(f"readings with {name}: {text.removeprefix('of ')}" for name, text in counted if text),
    ]
