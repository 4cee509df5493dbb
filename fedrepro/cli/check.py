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
@click.option("--tier", type=click.Choice(TIERS), default="paper", show_default=True, help="Whose results to check.")
@click.option(
    "--seconds", type=click.FloatRange(min=1.0), default=60.0, show_default=True, help="About how long it may take."
)
@click.option("--seed", type=click.IntRange(min=0), help="Draw this sample (default: another one each time).")
@click.option("--quiet", "-q", is_flag=True, help="The last lines only.")
@results_option
def check(specs: tuple[str, ...], tier: str, seconds: float, seed: int | None, quiet: bool, results_dir: Path) -> None:
    """Compute a random sample of kept runs again, on this machine, and compare with the results.

    Each run of the sample starts from its beginning and goes on while its share of the time lasts. A figure comes out
    with the same bits, the same to 1e-10 (relative), or different: then the largest deviation and where it starts are
    told, and the exit code is 1. What was found is kept beside the results, added to what earlier checks of the same
    results by the same code found. Results whose code has changed since are no longer stale once every method of the
    figure came out with the same bits.

    \b
    Examples:
      fedrepro check
      fedrepro check gcca/fig5 --seconds 20
      fedrepro check --tier quick --seed 1
    """
    from fedrepro.results.checks import other_cpu
    from fedrepro.runs import check as again
    from fedrepro.runs.identity import plan as planning
    from fedrepro.runs.predict.calibrate import machine_for
    from fedrepro.runs.predict.timings import Timings
    from fedrepro.runs.runner import Folders
    from fedrepro.spec.read import load

    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    figures = [load(path, tier) for path in find_some(specs)]
    plan = planning.make(figures, stand_in=True)
    found = []
    for number in range(len(figures)):
        try:
            one = again.kept(plan, number, results_dir)
        except UserError as error:
            click.secho(f"not checked: {error}", fg="yellow")
            continue
        found += [one] if one is not None else []
    if not found:
        raise UserError(f"no results at the {tier} tier in {results_dir} that can be checked here")
    timings = Timings(Folders(results_dir).store, machine_for([run for one in found for run in one.runs]))

    today: list[Compared] = []

    def told(one: Kept, run: Run, compared: Compared) -> None:
        today.append(compared)
        if not quiet:
            upto = f"round {compared.round} of {compared.rounds}"
            click.echo(f"  {compared.outcome:<13} {one.name:<22} {compared.series}, trial {run.trial}, to {upto}")

    done = again.check(found, seconds, seed, timings, told)
    for one in found:
        if one.number in done:
            colour = {"same bits": "green", "different": "red"}.get(done[one.number].outcome, "yellow")
            click.secho(f"{one.name}: {done[one.number]}", fg=colour)
            why = other_cpu(one.sidecar.made, done[one.number].made)
            if why and done[one.number].outcome != "same bits":
                click.echo(f"  {why}")
    click.echo(f"{len(done)} of {len(found)} figures, {len(today)} runs compared; the sample is that of --seed {seed}")
    if any(checked.outcome == "different" for checked in done.values()):
        sys.exit(1)
