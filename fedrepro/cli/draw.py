"""The command ``plot``."""

from __future__ import annotations

from pathlib import Path

import click

from fedrepro.cli.options import complete_spec, results_option, tier_option
from fedrepro.errors import UserError
from fedrepro.spec.find import find_some


@click.command()
@click.argument("specs", nargs=-1, metavar="[SPEC...]", shell_complete=complete_spec)
@tier_option
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
@click.option(
    "--plots",
    "plots_dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("plots"),
    show_default=True,
    help="Where pictures go.",
)
def plot(specs: tuple[str, ...], tier: str, formats: tuple[str, ...], results_dir: Path, plots_dir: Path) -> None:
    """Draw figures from their results; computes nothing. Without SPEC: every figure that has results at the tier.

    \b
    Examples:
      fedrepro plot
      fedrepro plot experiments/fedc/fig5.yaml --format pdf
      fedrepro plot --tier paper
    """
    from fedrepro.plotting.batch import draw_all

    drawn = draw_all(
        find_some(specs),
        tier,
        formats,
        results_dir,
        plots_dir,
        bool(specs),
    )
    for path in drawn:
        click.echo(str(path))
    if not drawn:
        raise UserError(
            f"no figure has results at the {tier} tier in {results_dir}; `fedrepro run SPEC --tier {tier}` makes them"
        )
