"""The command ``check``."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fedrepro.cli.options import Choice, Whole, complete_spec, results_option
from fedrepro.errors import UserError, counted
from fedrepro.spec import nodes
from fedrepro.spec.find import experiments, is_study, of_own_study, option_of_tier, stored_under
from fedrepro.spec.tiers import DEFAULT, TIERS

if TYPE_CHECKING:
    from fedrepro.results.checks import Compared, Finding
    from fedrepro.runs.check import Kept
    from fedrepro.runs.compute.run import Run
    from fedrepro.runs.predict.timings import Timings
    from fedrepro.spec.model import Figure

COLOURS = {"same bits": "green", "same to 1e-10": "yellow", "different": "red"}


@click.command()
@click.argument("specs", nargs=-1, metavar="[SPEC...]", shell_complete=complete_spec)
@click.option(
    "--tier",
    type=Choice(TIERS),
    help="Tier of the results to check.  [default: paper; for your own studies their only one]",
)
@click.option(
    "--seconds", type=click.FloatRange(min=1.0), default=60.0, show_default=True, help="Approximate time limit."
)
@click.option(
    "--whole", is_flag=True, help="Compute one run of every curve to its last round instead, however long it takes."
)
@click.option("--seed", type=Whole(min=0), help="Seed of the sample (default: a new one each time).")
@click.option(
    "--receipt", type=click.Path(dir_okay=False, path_type=Path), help="Also write a record of the runs compared here."
)
@click.option("--no-store", is_flag=True, help="Print the outcome only; write no file next to the results.")
@click.option("--quiet", "-q", is_flag=True, help="Print only the last lines.")
@results_option
def check(
    specs: tuple[str, ...],
    tier: str | None,
    seconds: float,
    whole: bool,
    seed: int | None,
    receipt: Path | None,
    no_store: bool,
    quiet: bool,
    results_dir: Path,
) -> None:
    """Compute a random sample of kept runs again on this machine and compare them with the results.

    Short runs are computed to their last round, the others until their share of the time is used up. For each figure,
    the command prints how far runs were computed and whether the numbers have the same bits, agree to 1e-10, or differ.
    If any differ, it prints the largest deviation and where it starts, and exits with code 1. The outcome is stored
    next to the results in FIGURE.check.json, unless you use --no-store, and added to earlier checks by the same code
    with the same kernels on the same kind of CPU.

    Results whose code has changed are stale until at least one run of every curve has produced the same bits to its
    last round. --whole computes these runs, shortest first; it can be interrupted and continues where it stopped.

    \b
    Examples:
      fedrepro check
      fedrepro check gcca/fig5 --seconds 20
      fedrepro check gcca/fig5 --whole
      fedrepro check --no-store
      fedrepro check --tier quick --seed 1
      fedrepro check --receipt receipt.json
    """
    from fedrepro.files import require_writable
    from fedrepro.runs import check as checking
    from fedrepro.runs.predict.calibrate import machine_for
    from fedrepro.runs.predict.timings import Timings
    from fedrepro.runs.runner import Folders

    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    checkable = _checkable(specs, tier, results_dir)
    timings = Timings(Folders(results_dir).store, machine_for([run for kept in checkable for run in kept.runs]))
    if receipt is not None:
        require_writable(receipt)
    comparisons: list[Compared] = []

    def print_comparison(kept: Kept, run: Run, compared: Compared) -> None:
        comparisons.append(compared)
        if not quiet:
            name, upto = kept.figure.name, f"round {compared.round} of {compared.rounds}"
            click.echo(f"  {compared.outcome:<13} {name:<22} {compared.series}, trial {run.trial}, to {upto}")

    if whole:
        findings, files, now = checking.confirm(checkable, timings, seed, print_comparison, quiet, store=not no_store)
    else:
        findings, files, now = checking.check(checkable, seconds, seed, timings, print_comparison, store=not no_store)
    for kept in checkable:
        if kept.number in findings:
            _print_finding(kept, findings[kept.number])
        for contradiction in kept.contradictions:
            click.secho(f"{kept.figure.name}: {contradiction}", fg="red")
    _print_cost(checkable, timings, seed, each=bool(specs))
    click.echo(
        f"{len(findings)} of {len(checkable)} figures, {counted(len(comparisons), 'run')} compared; "
        f"repeat this sample with --seed {seed}"
    )
    if receipt is not None:
        _write_receipt(receipt, now.values())
    differ = any(finding.outcome == "different" for finding in findings.values())
    if not no_store:
        click.echo(_stored(files, differ))
    if differ or any(kept.contradictions for kept in checkable):
        sys.exit(1)


def _usual_tier(path: Path) -> str:
    """Return the tier that is checked if none is named: the default one for an own study, else the paper tier."""
    return DEFAULT if is_study(stored_under(nodes.read(path))[0]) else TIERS[-1]


def _checkable(specs: tuple[str, ...], tier: str | None, results_dir: Path) -> list[Kept]:
    """Return the results that can be checked here; print why others cannot. Raises UserError if there are none."""
    from fedrepro.alternatives import kept_results as settings
    from fedrepro.results import everything
    from fedrepro.runs import check as checking
    from fedrepro.runs.identity import plan as planning
    from fedrepro.spec import discrepancies
    from fedrepro.spec.read import load

    figures = [load(path, tier or _usual_tier(path)) for path in everything.paths(specs, results_dir)]
    with_settings = [figure for figure in figures if settings.names(figure, results_dir)]
    rows = discrepancies.load_all(experiments()) if with_settings else []
    figures += [other for figure in with_settings for other in settings.checkable(figure, rows, results_dir)]
    plan = planning.make(figures, stand_in=True)
    checkable = []
    for number in range(len(plan.figures)):
        try:
            kept = checking.kept(plan, number, results_dir)
        except UserError as error:
            click.secho(f"not checked: {error}", fg="yellow")
            continue
        checkable += [kept] if kept is not None else []
    if not checkable:
        raise UserError(f"no results {_where(figures)} in {results_dir} that can be checked here")
    return checkable


def _where(figures: Iterable[Figure]) -> str:
    """Return at which tiers figures were looked for; own studies have only one."""
    tiers = ("of your own studies" if of_own_study(f.name, f.tier) else f"at the {f.tier} tier" for f in figures)
    return " or ".join(sorted(set(tiers)))


def _print_finding(kept: Kept, finding: Finding) -> None:
    from fedrepro.results.checks import other_cpu

    click.secho(f"{kept.figure.name}: {finding}", fg=COLOURS[finding.outcome])
    reason = other_cpu(kept.sidecar.made, finding.made)
    if reason and finding.outcome != "same bits":
        click.echo(f"  {reason}")


def _print_cost(checkable: list[Kept], timings: Timings, seed: int, each: bool) -> None:
    """Print which results other code computed, and how long it takes to confirm them, for each figure or in all."""
    from fedrepro.progress import duration
    from fedrepro.runs import check as checking

    stale = []
    for kept in checkable:
        curves, differ = set(checking.unconfirmed(kept)), checking.different(kept)
        if found := len(curves & differ):
            click.echo(
                f"{kept.figure.name}: today's code computes other numbers for {counted(found, 'curve')}; "
                f"`{_run_again(kept)}` replaces the stored ones"
            )
        if curves - differ:
            stale.append((kept, len(curves - differ)))
    costs = [checking.cost(checking.unseen(kept, seed), timings) for kept, _ in stale]
    if stale and not each:
        click.echo(
            f"{sum(number for _, number in stale)} curves of {len(stale)} figures computed by other code stay stale; "
            f"`fedrepro check FIGURE --whole` confirms them (all: {duration(sum(costs))} of one core)"
        )
        return
    for (kept, number), seconds in zip(stale, costs, strict=True):
        click.echo(
            f"{kept.figure.name}: {number} curves computed by other code stay stale; to confirm them: "
            f"fedrepro check {kept.figure.name}{_tier(kept)} --whole ({duration(seconds)} of one core)"
        )


def _run_again(kept: Kept) -> str:
    """Return the command that computes results again: those of a figure, or of a set of other values."""
    from fedrepro.results.read import OTHER_VALUES

    name, _, of_set = kept.figure.name.partition(f"{OTHER_VALUES}/")
    command = f"settings run {name} --only {of_set}" if of_set else f"run {name}"
    return f"fedrepro {command}{_tier(kept)}"


def _tier(kept: Kept) -> str:
    """Return the option that names the tier of kept results."""
    return option_of_tier(kept.figure.name, kept.figure.tier)


def _stored(files: list[Path], differ: bool) -> str:
    """Return what the check wrote next to the results, what it is for, and how to avoid it."""
    if not files:
        return "next to the results: nothing new to store"
    more = f" and {len(files) - 1} more files" if len(files) > 2 else f" and {files[1]}" if files[1:] else ""
    where = f"the findings are stored in {files[0]}{more}"
    use = "" if differ else "; stale curves of which a run had the same bits to its last round count as confirmed"
    return f"{where}; the report prints them{use}; --no-store writes nothing"


def _write_receipt(path: Path, findings: Iterable[Finding]) -> None:
    from fedrepro.results import receipts
    from fedrepro.runs import check as checking

    receipt = checking.receipt(findings)
    receipts.write(path, receipt)
    click.echo(f"{path}: {len(receipt.runs)} runs; it names no person, machine or folder")
