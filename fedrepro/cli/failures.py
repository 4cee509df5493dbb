"""The command ``failures``."""

from __future__ import annotations

from pathlib import Path

import click

from fedrepro.cli.options import complete_spec, largest_tier_option, results_option, set_option
from fedrepro.errors import UserError


@click.command()
@click.argument("name", metavar="RUN|FIGURE|PAPER", shell_complete=complete_spec)
@largest_tier_option("results")
@set_option
@results_option
def failures(name: str, tier: str, sets: tuple[str, ...], results_dir: Path) -> None:
    """Print why runs failed or diverged: each reason once, and for failed runs the traceback.

    RUN is the name of a run as `run` prints it; without its trial, it means all trials. FIGURE or PAPER means all runs
    of its figures at a tier that has results. The next `run` tries failed runs again.

    \b
    Examples:
      fedrepro failures fedc/fig5 --tier paper
      fedrepro failures "fedcgds m=10 Q1=100 Q2=100 @ bals / bals, trial 3"
    """
    from fedrepro.results import missing
    from fedrepro.results.read import has_results, largest_tier
    from fedrepro.runs.failures import Failure, of_figure, of_run
    from fedrepro.spec.find import find_some, with_tier
    from fedrepro.spec.read import load

    try:
        paths = find_some([name])
    except UserError:
        listed = of_run(name, results_dir)
        if not listed:
            raise UserError(
                f"'{name}' is neither a figure (`fedrepro list figures` shows all) nor a run in {results_dir} that "
                "failed or diverged"
            ) from None
    else:
        figures = [load(path, largest_tier(path, tier, results_dir, sets), sets) for path in paths]
        listed = [failure for figure in figures for failure in of_figure(figure, results_dir)]
        without = [f for f in figures if not has_results(Path(f.path), f.tier, results_dir, sets)]
        if not listed and len(without) == len(figures):
            raise UserError(missing.in_words(name, tier, results_dir, sets))
        if not listed:
            names = ", ".join(with_tier(figure.name, figure.tier) for figure in figures if figure not in without)
            click.echo(f"{names}: no run failed or diverged")
            return
    by_reason: dict[tuple[str, str], list[Failure]] = {}  # many trials often fail for the same reason
    for failure in listed:
        by_reason.setdefault((failure.why, failure.traceback), []).append(failure)
    for (reason, traceback), runs in by_reason.items():
        for run in runs:
            click.secho(f"{run.series}, trial {run.trial}", bold=True)
        click.secho(f"  {reason}", fg="red")
        click.echo(f"\n{traceback}" if traceback else "")
