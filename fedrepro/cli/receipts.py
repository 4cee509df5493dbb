"""The command ``receipts``."""

from __future__ import annotations

from pathlib import Path

import click

from fedrepro.cli.options import results_option
from fedrepro.errors import UserError


@click.command()
@click.argument(
    "folder", required=False, metavar="[DIR]", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--keep", is_flag=True, help="Copy the receipts of DIR to the results, for the report and `verdict`.")
@results_option
def receipts(folder: Path | None, keep: bool, results_dir: Path) -> None:
    """Merge the receipts of `fedrepro check --receipt` in DIR, or those stored with the results.

    Each run counts once per CPU model, with its worst outcome. Receipts are not signed: they never raise the level of
    evidence of a claim, because anybody can write one.

    \b
    Examples:
      fedrepro receipts
      fedrepro receipts ~/received --keep
    """
    from fedrepro.results import receipts as kept

    place = folder or kept.folder(results_dir)
    given = kept.in_folder(place)
    if not given:
        raise UserError(f"no receipts in {place}; `fedrepro check --receipt FILE` writes one")
    merged = kept.Merged.of(given)
    for model in merged.models:
        records = list(merged.on(model))
        whole = sum(record.whole for record in records)
        counts = [f"{n} {outcome}" for outcome in kept.OUTCOMES if (n := sum(r.outcome == outcome for r in records))]
        click.echo(f"{model}: {len(records)} runs, {whole} to their last round; {', '.join(counts)}")
    click.echo(f"{merged.words}; receipts are not signed and never raise the level of evidence")
    if keep and folder is not None:
        for receipt in given:
            kept.write(kept.folder(results_dir) / kept.file_name(receipt), receipt)
        click.echo(f"{len(given)} kept in {kept.folder(results_dir)}")
