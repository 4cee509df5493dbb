"""The commands ``validate``, ``plan`` and ``run``."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fedrepro import cpu, registry
from fedrepro.cli.options import (
    complete_panel,
    json_option,
    memory_option,
    plots_option,
    results_option,
    set_option,
    spec_arguments,
    stand_in_option,
    tier_option,
)
from fedrepro.data.home import human
from fedrepro.data.own import label
from fedrepro.errors import UserError, nearest
from fedrepro.spec.find import load_all
from fedrepro.spec.tiers import TIERS

if TYPE_CHECKING:
    from fedrepro.protocols import Dataset
    from fedrepro.runs.identity.plan import Plan
    from fedrepro.runs.predict.machine import Machine
    from fedrepro.runs.run import Run
    from fedrepro.spec.model import Figure


@click.command()
@spec_arguments
@set_option
def validate(specs: tuple[str, ...], sets: tuple[str, ...]) -> None:
    """Check specs at every tier without running anything; all errors at once.

    \b
    Examples:
      fedrepro validate experiments/fedc/fig5.yaml
      fedrepro validate experiments/*/*.yaml
    """
    from fedrepro.spec.nodes import SpecErrors

    messages: dict[str, None] = {}
    for tier in TIERS:
        try:
            load_all(specs, tier, sets)
        except SpecErrors as error:
            messages.update(dict.fromkeys(error.messages))
    if messages:
        raise SpecErrors(list(messages))
    click.echo(f"{len(specs)} spec{'s' if len(specs) > 1 else ''} valid at the tiers {', '.join(TIERS)}")


@click.command()
@spec_arguments
@tier_option
@set_option
@stand_in_option
@click.option("--jobs", "-j", type=click.IntRange(min=1), help="Workers to predict the time for (default: all cores).")
@memory_option
@json_option
@results_option
def plan(
    specs: tuple[str, ...],
    tier: str,
    sets: tuple[str, ...],
    stand_in: bool,
    jobs: int | None,
    memory: float | None,
    as_json: bool,
    results_dir: Path,
) -> None:
    """Show runs to do, runs reused, predicted time and memory, without running.

    \b
    Examples:
      fedrepro plan experiments/fedc/fig5.yaml
      fedrepro plan experiments/fedc/*.yaml --tier paper
      fedrepro plan gcca/fig9 --tier paper --memory 8G
    """
    from fedrepro.runs import runner
    from fedrepro.runs.identity import plan as planning
    from fedrepro.runs.predict import timings as predict
    from fedrepro.runs.predict.calibrate import machine_for
    from fedrepro.runs.storage.store import Store
    from fedrepro.runs.storage.validity import kept

    figures = load_all(specs, tier, sets)
    made = planning.make(figures, stand_in)
    folders = runner.Folders(results_dir)
    store = Store(folders.store)
    there = {run for number in range(len(figures)) for run in kept(made, number, results_dir)}
    there |= {run for run in made.runs if store.has(run)}
    jobs = jobs or runner.default_jobs()
    told: list[dict[str, Any]] = []
    for figure, series, missing in zip(figures, made.by_figure, made.missing, strict=True):
        runs = [run for found in series.values() for run in found]
        todo = [run for run in runs if run.id not in there]
        told.append(
            {"figure": f"{figure.paper}/{figure.figure}", "tier": tier, "settings": len(series)}
            | {"trials": figure.trials, "reused": len(runs) - len(todo), "todo": len(todo), "missing": missing}
        )
        if as_json:
            continue
        click.echo(
            f"{figure.paper}/{figure.figure} ({tier}): {len(series)} settings x {figure.trials} trials; "
            f"{len(runs) - len(todo)} runs reused, {len(todo)} to do"
        )
        for line in _data_lines(figure):
            click.echo(f"  {line}")
        for why in dict.fromkeys(missing.values()):
            names = [name for name, reason in missing.items() if reason == why]
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            click.secho(f"  cannot run: {names[0]}{more}: {why}", fg="yellow")
    _tell_doubts(figures)
    todo = [run for run in made.runs.values() if run.id not in there]
    wanted = sum(len(found) for series in made.by_figure for found in series.values())
    machine = machine_for(todo, lambda text: click.secho(text, fg="yellow", err=True))
    timings = predict.Timings(folders.store, machine)
    jobs = _fitting(todo, jobs, memory, machine)
    known = sum(timings.measured(run) for run in todo)
    seconds, bytes_ = timings.total(todo, jobs), predict.memory(todo, jobs, machine)
    if as_json:
        whole: dict[str, Any] = {
            "runs": len(made.runs),
            "wanted": wanted,
            "todo": len(todo),
            "predicted_from_earlier_runs": known,
        }
        whole |= {"workers": jobs, "seconds": round(seconds, 1), "memory_bytes": round(bytes_)}
        click.echo(json.dumps({"figures": told, "in_all": whole}, indent=1))
        return
    click.echo(
        f"in all: {len(made.runs)} distinct runs ({wanted} wanted by the panels' settings), {len(todo)} to do, "
        f"about {_duration(seconds)} with {jobs} worker{'s' if jobs > 1 else ''}, about {human(bytes_)}"
    )
    if todo:
        _tell_kernels()
        click.echo(
            f"time: {known} of {len(todo)} runs predicted from earlier runs, the rest from declared costs "
            "or their timed first rounds"
        )


@click.command()
@spec_arguments
@tier_option
@click.option(
    "--jobs",
    "-j",
    type=click.IntRange(min=1),
    help="Parallel workers (default: all cores, or the scheduler's; 1: one, in this process if it takes seconds).",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Compute on the workers of this dask scheduler (tcp://host:8786), or on N of its own (local:N).",
)
@memory_option
@click.option("--only", metavar="PANEL", shell_complete=complete_panel, help="Compute one panel's runs only.")
@set_option
@stand_in_option
@click.option("--fresh", is_flag=True, help="Forget finished runs of these figures and compute them again.")
@click.option("--plot", "draw", is_flag=True, help="Draw every figure as soon as it is complete, as `plot` does.")
@click.option("--quiet", "-q", is_flag=True, help="No progress bar.")
@results_option
@plots_option
def run(
    specs: tuple[str, ...],
    tier: str,
    jobs: int | None,
    scheduler: str | None,
    memory: float | None,
    only: str | None,
    sets: tuple[str, ...],
    stand_in: bool,
    fresh: bool,
    draw: bool,
    quiet: bool,
    results_dir: Path,
    plots_dir: Path,
) -> None:
    """Compute figures; finished runs are reused, a killed sweep resumes where it stopped.

    \b
    Examples:
      fedrepro run experiments/fedc/fig5.yaml
      fedrepro run fedc/fig5 --tier paper --jobs 2
      fedrepro run fedc/fig1 --only b --set rounds=50
      fedrepro run experiments/*/*.yaml --stand-in --plot
      fedrepro run gcca/fig9 --tier paper --memory 8G
      fedrepro run fedc/fig5 --tier paper --scheduler tcp://host:8786
    """
    from fedrepro.plotting import batch
    from fedrepro.progress import told
    from fedrepro.runs import runner
    from fedrepro.runs.identity import plan as planning
    from fedrepro.runs.storage.validity import finished
    from fedrepro.runs.storage.write import Written
    from fedrepro.runs.workers import remote

    if memory is not None and scheduler is not None:
        raise UserError("--memory is for this machine: the workers of a scheduler have their own; give --jobs instead")
    figures = load_all(specs, tier, sets)
    keep = _only(figures, only)
    made = planning.make(figures, stand_in)
    _tell_missing(made)
    _tell_doubts(figures)
    folders = runner.Folders(results_dir)
    where = batch.Where(tier, batch.FORMATS, results_dir, plots_dir, sets)
    if not fresh and all(finished(made, n, results_dir) for n in range(len(figures))):
        names = ", ".join(f"{f.paper}/{f.figure}" for f in figures)
        click.echo(f"{names} ({tier}): finished, nothing to do (--fresh computes again)")
        if draw:
            for path in batch.draw_all([Path(f.path) for f in figures], where, jobs=jobs or runner.default_jobs()):
                told(str(path))
        return
    _tell_kernels()
    if memory is not None:
        jobs = _fitting(_wanted(made, keep, folders.root, fresh), jobs or runner.default_jobs(), memory)
    beside = batch.Beside(where, runner.default_jobs()) if draw else None

    def complete(number: int, written: Written) -> None:
        if beside is not None and not written.beside:
            beside.add(Path(figures[number].path))

    cluster_of = remote.connected(scheduler, folders.scratch, quiet) if scheduler else nullcontext()
    with beside or nullcontext(), cluster_of as cluster:
        outcome = runner.run(
            made, folders, jobs=jobs, only=keep, fresh=fresh, quiet=quiet, cluster=cluster, on_written=complete
        )
        if beside is not None and not outcome.interrupted:
            for path in beside.files():
                click.echo(str(path))
    for written in outcome.written:
        click.echo(runner.describe(written))
    click.echo(
        f"{outcome.computed} runs computed, {outcome.reused} reused, {len(outcome.failed)} failed, "
        f"{outcome.diverged} diverged, in {_duration(outcome.seconds)}"
    )
    for id_, why in list(outcome.failed.items())[:20]:
        click.secho(f"  {made.runs[id_].setting.series}, trial {made.runs[id_].trial}: {why}", fg="red", err=True)
    for id_ in list(outcome.failed)[:1]:
        name = f"{made.runs[id_].setting.series}, trial {made.runs[id_].trial}"
        click.echo(f"the traceback: fedrepro failures {shlex.quote(name)}", err=True)
    if outcome.interrupted:
        click.echo("interrupted: what is finished is kept; the same command goes on from here", err=True)
        sys.exit(130)
    if outcome.failed:
        sys.exit(1)
    if not made.runs:
        raise UserError("nothing could be computed: every setting lacks its dataset (see above)")


def _tell_missing(made: Any) -> None:
    for why in dict.fromkeys(text for missing in made.missing for text in missing.values()):
        click.secho(f"left out: {why}", fg="yellow", err=True)
    for name, note in sorted({(s.dataset, s.note) for s in made.sources.values() if s.state == "stand-in"}):
        said = f"stand-in data for {name}: marked on every figure, never counts for a claim ({note})"
        click.secho(said, fg="yellow", err=True)


def _loaders(figure: Figure) -> dict[str, Dataset]:
    """The datasets of a figure, by the names that its spec has for them; a file of the user's own by its own name."""
    found = {}
    for setting in figure.settings():
        entry, alias = registry.datasets()[setting.dataset], setting.names.get("dataset", setting.dataset)
        own = label(entry.cls.files, setting.dataset_params)
        found[f"{alias} ({own})" if own and alias != own else alias] = entry.make(**setting.dataset_params)
    return found


def _data_lines(figure: Figure) -> Iterator[str]:
    """The shapes of a figure's data, as far as they are known without computing."""
    for name, loader in _loaders(figure).items():
        sizes = [f"{key} = {value:,}" for key, value in loader.shape().items() if isinstance(value, int)]
        if sizes:
            yield f"data {name}: {', '.join(sizes)}"


def _tell_doubts(figures: Sequence[Figure]) -> None:
    doubts = (doubt for figure in figures for loader in _loaders(figure).values() for doubt in loader.doubts())
    for doubt in dict.fromkeys(doubts):
        click.secho(f"note: {doubt}", fg="yellow", err=True)


def _tell_kernels() -> None:
    for doubt in cpu.doubts():
        click.secho(f"note: {doubt}", fg="yellow", err=True)


def _wanted(made: Plan, keep: list[set[str] | None], root: Path, fresh: bool) -> list[Run]:
    """The runs that a command has to compute."""
    from fedrepro.runs.runner import Folders
    from fedrepro.runs.storage.store import Store
    from fedrepro.runs.storage.validity import kept

    store = Store(Folders(root).store)
    there = {run for number in range(len(made.figures)) for run in kept(made, number, root)}
    found = {
        run.id: run
        for series, chosen in zip(made.by_figure, keep, strict=True)
        for name, runs in series.items()
        if chosen is None or name in chosen
        for run in runs
    }
    return [run for run in found.values() if fresh or not (run.id in there or store.has(run.id))]


def _fitting(todo: list[Run], jobs: int, limit: float | None, machine: Machine | None = None) -> int:
    """How many workers fit into the memory given; says so where they are fewer than asked for."""
    from fedrepro.runs.predict import timings as predict

    if limit is None or not todo:
        return jobs
    fits = predict.fitting(todo, jobs, limit, machine)
    if fits == 0:
        need = predict.memory(todo, 1, machine)
        raise UserError(f"--memory {human(limit)}: even one worker needs about {human(need)}; give at least that much")
    if fits < jobs:
        more = predict.memory(todo, fits + 1, machine)
        click.echo(
            f"memory: {fits} worker{'s' if fits > 1 else ''} instead of {jobs} fit into {human(limit)} "
            f"({fits + 1} need about {human(more)})",
            err=True,
        )
    return fits


def _only(figures: list[Any], panel: str | None) -> list[set[str] | None]:
    """The series of one panel for each figure, or None where all are wanted."""
    if panel is None:
        return [None for _ in figures]
    known = {p.id for f in figures for p in f.panels}
    if panel not in known:
        raise UserError(
            f"--only {panel}: there is no panel '{panel}'{nearest(panel, known)} (panels: {', '.join(sorted(known))})"
        )
    return [{c.setting.series for p in f.panels if p.id == panel for c in p.curves} for f in figures]


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
