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
"""Width of a column of text in two-column papers."""


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
    help="Picture format; can be given several times.",
)
@click.option(
    "--panel", metavar="PANEL", shell_complete=complete_panel, help="Draw only one panel, for a column of text."
)
@click.option(
    "--width", type=Length(), metavar="LENGTH", help="Width of that panel: 3.4in, 8.6cm, 86mm, 245pt [default: 3.4in]."
)
@results_option
@plots_option
@click.option(
    "--jobs", "-j", type=click.IntRange(min=1), help="Number of figures drawn at a time (default: all cores)."
)
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
    """Draw figures from their results, without computing. Without SPEC: every figure with results at the tier.

    With --panel: draw one panel of one figure with the width of a column of text, in 8 point letters, without title and
    tags. Its caption, which states what a reader needs to know, is written to a file next to it.

    \b
    Examples:
      fedrepro plot
      fedrepro plot experiments/fedc/fig5.yaml --format pdf
      fedrepro plot --tier paper
      fedrepro plot fedc/fig5 --tier paper --panel c --width 3.4in
    """
    from fedrepro.plotting.batch import DrawOptions, draw_all
    from fedrepro.progress import echo
    from fedrepro.runs.runner import default_jobs

    if width is not None and panel is None:
        raise UserError("--width needs --panel: it is the width of one panel")
    if panel is not None and len(specs) != 1:
        raise UserError("--panel is for one figure: name one SPEC")
    options = DrawOptions(tier, formats, results_dir, plots_dir, sets, panel or "", width or COLUMN)
    drawn = False
    for path in draw_all(find_some(specs), options, bool(specs), jobs or default_jobs()):
        drawn = True
        echo(str(path))
    if not drawn:
        raise UserError(
            f"no figure has results at the {tier} tier in {results_dir}; `fedrepro run SPEC --tier {tier}` makes them"
        )
