"""The command ``export``."""

from __future__ import annotations

from pathlib import Path

import click

from fedrepro.cli.options import Whole, complete_spec, largest_tier_option, results_option
from fedrepro.errors import UserError
from fedrepro.spec.find import find_some


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.argument("specs", nargs=-1, metavar="[FIGURE|PAPER...]", shell_complete=complete_spec)
@largest_tier_option("results")
@click.option(
    "--format",
    "formats",
    type=click.Choice(["png", "pdf", "svg"]),
    multiple=True,
    default=("pdf",),
    show_default=True,
    help="Picture format; can be given several times.",
)
@click.option("--bold", is_flag=True, help="Print the best values of LaTeX tables in bold.")
@click.option("--no-published", is_flag=True, help="Leave out the paper's numbers in LaTeX tables.")
@click.option(
    "--data", is_flag=True, help="Also write every measurement, a column per parameter, and the meaning of the columns."
)
@results_option
@click.option("--jobs", "-j", type=Whole(min=1), help="Number of figures at a time (default: all cores).")
def export(
    folder: Path,
    specs: tuple[str, ...],
    tier: str,
    formats: tuple[str, ...],
    bold: bool,
    no_published: bool,
    data: bool,
    results_dir: Path,
    jobs: int | None,
) -> None:
    """Write figures with results to DIR, for a paper or another program. Nothing is computed.

    Each figure is written as DIR/PAPER/FIGURE with the endings .pdf (the picture), .csv (the end values or the cells of
    a table, as plain numbers), .tex (the same as LaTeX tables) and .caption.txt; references.bib has the entries of the
    papers. Without a name: every figure with results.

    \b
    Examples:
      fedrepro export for-my-paper fedc gcca/fig4
      fedrepro export for-my-paper --format pdf --format png --bold --no-published
      fedrepro export for-r fedc/fig5 --data
    """
    from fedrepro.report import exported_files
    from fedrepro.results import everything
    from fedrepro.runs.runner import default_jobs

    if not folder.exists() and _is_a_name(str(folder)):
        raise UserError(f"name a folder before the figures: fedrepro export DIR {folder}")
    options = exported_files.ExportOptions(tier, results_dir, formats, bold, not no_published, data)
    files = list(exported_files.figures(everything.paths(specs, results_dir), folder, options, jobs or default_jobs()))
    if not files:
        raise UserError(f"none of the figures has results in {results_dir}; `fedrepro run FIGURE` makes them")
    count = sum(path.name.endswith(".caption.txt") for path in files)
    click.echo(f"{folder}: {count} figure{'s' if count > 1 else ''} in {len(files)} files")


def _is_a_name(text: str) -> bool:
    """Return whether a text names figures."""
    try:
        return bool(find_some([text]))
    except UserError:
        return False
