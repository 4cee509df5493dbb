"""The command ``plot``."""

from __future__ import annotations

from pathlib import Path

import click

from fedrepro.cli.options import complete_spec, plots_option, results_option, set_option, tier_option
from fedrepro.errors import UserError
from fedrepro.spec.find import find_some


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
@results_option
@plots_option
@click.option("--jobs", "-j", type=click.IntRange(min=1), help="Figures drawn at a time (default: all cores).")
def plot(
    specs: tuple[str, ...],
    tier: str,
    sets: tuple[str, ...],
    formats: tuple[str, ...],
    results_dir: Path,
    plots_dir: Path,
    jobs: int | None,
) -> None:
    """Draw figures from their results; computes nothing. Without SPEC: every figure that has results at the tier.

    \b
    Examples:
      fedrepro plot
      fedrepro plot experiments/fedc/fig5.yaml --format pdf
      fedrepro plot --tier paper
    """
    from fedrepro.plotting.batch import Where, draw_all
    from fedrepro.runs.runner import default_jobs

    where = Where(tier, formats, results_dir, plots_dir, sets)
    drawn = False
    for path in draw_all(find_some(specs), where, bool(specs), jobs or default_jobs()):
        drawn = True
        click.echo(str(path))
    if not drawn:
        raise UserError(
            f"no figure has results at the {tier} tier in {results_dir}; `fedrepro run SPEC --tier {tier}` makes them"
        )
