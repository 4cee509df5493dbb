"""The command ``check``."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fedrepro.cli.options import complete_spec, results_option
from fedrepro.errors import UserError
from fedrepro.spec.find import find_some
from fedrepro.spec.tiers import TIERS

if TYPE_CHECKING:
    from fedrepro.results.checks import Compared
    from fedrepro.runs.check import Kept
    from fedrepro.runs.run import Run


@click.command()
@click.argument("specs", nargs=-1, metavar="[SPEC...]", shell_complete=complete_spec)
@click.option(
    "--tier", type=click.Choice(TIERS), default="paper", show_default=True, help="Tier of the results to check."
)
@click.option(
    "--seconds", type=click.FloatRange(min=1.0), default=60.0, show_default=True, help="Approximate time limit."
)
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the sample (default: a new one each time).")
@click.option("--quiet", "-q", is_flag=True, help="Print only the last lines.")
@results_option
def check(specs: tuple[str, ...], tier: str, seconds: float, seed: int | None, quiet: bool, results_dir: Path) -> None:
    """Compute a random sample of kept runs again on this machine and compare them with the results.

    Each run of the sample starts from its beginning and continues until its share of the time is spent. For each
    figure, the command prints whether the numbers have the same bits, agree to 1e-10 (relative), or differ. If any
    differ, it prints the largest deviation and where it starts, and exits with code 1. The outcome is stored next to
    the results and added to earlier checks of the same results by the same code. Results whose code has changed are no
    longer stale once every method of the figure has produced the same bits.

    \b
    Examples:
      fedrepro check
      fedrepro check gcca/fig5 --seconds 20
      fedrepro check --tier quick --seed 1
    """
    from fedrepro.results.checks import other_cpu
    from fedrepro.runs import check as checking
    from fedrepro.runs.identity import plan as planning
    from fedrepro.runs.predict.calibrate import machine_for
    from fedrepro.runs.predict.timings import Timings
    from fedrepro.runs.runner import Folders
    from fedrepro.spec.read import load

    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    figures = [load(path, tier) for path in find_some(specs)]
    plan = planning.make(figures, stand_in=True)
    checkable = []
    for number in range(len(figures)):
        try:
            kept = checking.kept(plan, number, results_dir)
        except UserError as error:
            click.secho(f"not checked: {error}", fg="yellow")
            continue
        checkable += [kept] if kept is not None else []
    if not checkable:
        raise UserError(f"no results at the {tier} tier in {results_dir} that can be checked here")
    timings = Timings(Folders(results_dir).store, machine_for([run for kept in checkable for run in kept.runs]))

    comparisons: list[Compared] = []

    def print_comparison(kept: Kept, run: Run, compared: Compared) -> None:
        comparisons.append(compared)
        if not quiet:
            upto = f"round {compared.round} of {compared.rounds}"
            click.echo(f"  {compared.outcome:<13} {kept.name:<22} {compared.series}, trial {run.trial}, to {upto}")

    checks = checking.check(checkable, seconds, seed, timings, print_comparison)
    for kept in checkable:
        if kept.number in checks:
            outcome = checks[kept.number].outcome
            colour = {"same bits": "green", "different": "red"}.get(outcome, "yellow")
            click.secho(f"{kept.name}: {checks[kept.number]}", fg=colour)
            reason = other_cpu(kept.sidecar.made, checks[kept.number].made)
            if reason and outcome != "same bits":
                click.echo(f"  {reason}")
    click.echo(
        f"{len(checks)} of {len(checkable)} figures, {len(comparisons)} runs compared; "
        f"repeat this sample with --seed {seed}"
    )
    if any(check.outcome == "different" for check in checks.values()):
        sys.exit(1)
