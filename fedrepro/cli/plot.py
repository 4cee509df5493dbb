"""The command ``plot``."""

from __future__ import annotations

from pathlib import Path

import click

from fedrepro.cli.options import (
    Length,
    Whole,
    complete_claim,
    complete_panel,
    complete_spec,
    largest_tier_option,
    plots_option,
    results_option,
    set_option,
)
from fedrepro.errors import UserError
from fedrepro.spec.find import Selected, panel_of_claim

COLUMN = (3.4, "3.4in")
"""Width of a column of text in two-column papers."""


@click.command()
@click.argument("specs", nargs=-1, metavar="[FIGURE|PAPER|CLAIM...]", shell_complete=complete_spec)
@largest_tier_option("results")
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
    "--claim",
    "claims",
    multiple=True,
    metavar="CLAIM",
    shell_complete=complete_claim,
    help="Draw only the panel that this claim is about; the same as naming CLAIM.",
)
@click.option(
    "--width", type=Length(), metavar="LENGTH", help="Width of that panel: 3.4in, 8.6cm, 86mm, 245pt [default: 3.4in]."
)
@results_option
@plots_option
@click.option("--jobs", "-j", type=Whole(min=1), help="Number of figures drawn at a time (default: all cores).")
def plot(
    specs: tuple[str, ...],
    tier: str,
    sets: tuple[str, ...],
    formats: tuple[str, ...],
    panel: str | None,
    claims: tuple[str, ...],
    width: tuple[float, str] | None,
    results_dir: Path,
    plots_dir: Path,
    jobs: int | None,
) -> None:
    """Draw figures from their results, without computing. Without a name: every figure with results.

    FIGURE is `paper/figure` or the path of a spec, PAPER a paper's key, CLAIM the id of a claim, of which the panel is
    drawn. Results that today's code did not compute are marked STALE.

    With --panel or CLAIM: draw one panel of one figure with the width of a column of text, in 8 point letters, without
    title and tags. Its caption, which states what a reader needs to know, is written to a file next to it.

    \b
    Examples:
      fedrepro plot
      fedrepro plot fedmf
      fedrepro plot experiments/fedc/fig5.yaml --format pdf
      fedrepro plot --tier paper
      fedrepro plot fedc/fig5 --tier paper --panel c --width 3.4in
      fedrepro plot --claim gcca.3d.optimal
    """
    from fedrepro.plotting.batch import DrawOptions, draw_all
    from fedrepro.progress import echo
    from fedrepro.results import everything, missing
    from fedrepro.runs.runner import default_jobs

    names = (*specs, *claims)
    selected = everything.selected(names, results_dir)
    if width is not None and panel is None and not any(item.claims for item in selected):
        raise UserError("--width needs --panel: it is the width of one panel")
    if panel is not None and (len(selected) != 1 or not names):
        raise UserError("--panel is for one figure: name one SPEC")
    wanted = [(item.path, name) for item in selected for name in _panels(item, panel)]
    options = DrawOptions(tier, formats, results_dir, plots_dir, sets, width or COLUMN)
    must = bool(names) and len(names) == len(selected)
    for item in selected if must else ():
        missing.require(item.path, tier, results_dir, sets)
    drawn = False
    for path in draw_all(wanted, options, must, jobs or default_jobs()):
        drawn = True
        echo(str(path))
    if not drawn:
        raise UserError(missing.in_words("SPEC", tier, results_dir))


def _panels(selected: Selected, panel: str | None) -> list[str]:
    """Return the panels to draw by themselves; '' is the whole figure."""
    if panel is not None or not selected.claims:
        return [panel or ""]
    names = (panel_of_claim(selected.path, claim) or "" for claim in sorted(selected.claims))
    return list(dict.fromkeys(names))
