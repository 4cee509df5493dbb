"""The command ``plot``."""

from __future__ import annotations

from pathlib import Path

import click

from fedrepro.cli.options import (
    Length,
    complete_panel,
    complete_spec,
    plots_option,
    results_option,
    set_option,
    tier_option,
)
from fedrepro.errors import UserError
from fedrepro.spec.find import find_some

COLUMN = (3.4, "3.4in")
"""The width of a column of text in papers of two columns."""


@click.command()
@click.argument("specs", nargs=-1, metavar="[SPEC...]", shell_complete=complete_spec)
@tier_option
@set_option
@click.option(
    "--format",
    "formats",
    type=click.Choice(["png", "pdf", "svg"]),
    multiple=True,
    default=("png", "pdf"),
    show_default=True,
    help="Picture format; may be given several times.",
)
@click.option("--panel", metavar="PANEL", shell_complete=complete_panel, help="One panel only, for a column of text.")
@click.option(
    "--width", type=Length(), metavar="LENGTH", help="Of that panel: 3.4in, 8.6cm, 86mm, 245pt [default: 3.4in]."
)
@results_option
@plots_option
@click.option("--jobs", "-j", type=click.IntRange(min=1), help="Figures drawn at a time (default: all cores).")
def plot(
    specs: tuple[str, ...],
    tier: str,
    sets: tuple[str, ...],
    formats: tuple[str, ...],
    panel: str | None,
    width: tuple[float, str] | None,
    results_dir: Path,
    plots_dir: Path,
    jobs: int | None,
) -> None:
    """Draw figures from their results; computes nothing. Without SPEC: every figure that has results at the tier.

    With --panel: one panel of one figure, as wide as a column of text, without title and tags, in letters of 8 points.
    What must be known of it is written beside it, as its caption.

    \b
    Examples:
      fedrepro plot
      fedrepro plot experiments/fedc/fig5.yaml --format pdf
      fedrepro plot --tier paper
      fedrepro plot fedc/fig5 --tier paper --panel c --width 3.4in
    """
    from fedrepro.plotting.batch import Where, draw_all
    from fedrepro.progress import echo
    from fedrepro.runs.runner import default_jobs

    if width is not None and panel is None:
        raise UserError("--width is that of one panel: say which with --panel")
    if panel is not None and len(specs) != 1:
        raise UserError("--panel is for one figure: name one SPEC")
    where = Where(tier, formats, results_dir, plots_dir, sets, panel or "", width or COLUMN)
    drawn = False
    for path in draw_all(find_some(specs), where, bool(specs), jobs or default_jobs()):
        drawn = True
        echo(str(path))
    if not drawn:
        raise UserError(
            f"no figure has results at the {tier} tier in {results_dir}; `fedrepro run SPEC --tier {tier}` makes them"
        )
