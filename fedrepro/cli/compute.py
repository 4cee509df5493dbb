"""The commands ``validate``, ``plan`` and ``run``."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fedrepro import cpu, registry
from fedrepro.cli.options import (
    PartOf,
    Whole,
    complete_panel,
    complete_spec,
    curve_option,
    in_results,
    json_option,
    memory_option,
    plots_option,
    results_option,
    rounds_option,
    set_option,
    spec_arguments,
    stand_in_option,
    tier_option,
    trials_option,
    with_sizes,
)
from fedrepro.data.own_paths import label
from fedrepro.errors import UserError, nearest
from fedrepro.progress import duration, echo, human
from fedrepro.spec import nodes, panel_names
from fedrepro.spec.find import called, is_study, load_all, option_of_tier, with_tier
from fedrepro.spec.tiers import TIERS

if TYPE_CHECKING:
    from fedrepro.protocols import Dataset
    from fedrepro.runs.compute.run import Run
    from fedrepro.runs.identity.plan import Plan
    from fedrepro.runs.predict.machine import Machine
    from fedrepro.runs.predict.timings import Timings
    from fedrepro.spec.model import Curve, Figure


@click.command()
@spec_arguments
@set_option
def validate(specs: tuple[str, ...], sets: tuple[str, ...]) -> None:
    """Check specs at every tier. Nothing is computed; all errors are printed.

    \b
    Examples:
      fedrepro validate experiments/fedc/fig5.yaml
      fedrepro validate experiments/*/*.yaml
    """
    from fedrepro.spec.late_rounds import raise_late
    from fedrepro.spec.nodes import SpecErrors

    messages: dict[str, None] = {}
    by_tier: list[list[Figure]] = []
    for tier in TIERS:
        try:
            by_tier.append(load_all(specs, tier, sets))
        except SpecErrors as error:
            messages.update(dict.fromkeys(error.messages))
    for figures in zip(*by_tier, strict=True) if not (messages or sets) else ():  # options may leave out rounds
        try:
            raise_late(figures)
        except SpecErrors as error:
            messages.update(dict.fromkeys(error.messages))
    if messages:
        raise SpecErrors(list(messages))
    number = len(by_tier[0])
    click.echo(f"{number} spec{'s' if number > 1 else ''} valid at the tiers {', '.join(TIERS)}")


def _asked_panel(panels: Sequence[str], only: Sequence[str] | None) -> tuple[str, str] | None:
    """Return the option for one panel that was typed and the name given to it; None without one.

    Raises UserError for several ones, of which click would take the last.
    """
    asked = [*(("--panel", name) for name in panels), *(("--only", name) for name in only or ())]
    if len(asked) > 1:
        raise UserError(f"{' '.join(map(' '.join, asked))}: name one panel, or leave it out for all")
    return asked[0] if asked else None


def _panel_option(text: str) -> Callable[[Any], Any]:
    """Return the options for one panel of a figure. text : their help."""

    def both(command: Any) -> Any:
        words: dict[str, Any] = {"multiple": True, "metavar": "PANEL", "shell_complete": complete_panel}
        command = click.option("--only", help="The same as --panel.", **words)(command)
        return click.option("--panel", "panels", help=text, **words)(command)

    return both


@click.command()
@click.argument("specs", nargs=-1, metavar="[FIGURE|PAPER...]", shell_complete=complete_spec)
@tier_option
@_panel_option("Plan only the runs of one panel.")
@curve_option
@trials_option
@rounds_option
@set_option
@stand_in_option
@click.option("--fresh", is_flag=True, help="Plan as if nothing had been computed before.")
@click.option("--jobs", "-j", type=Whole(min=1), help="Workers to predict the time for (default: all cores).")
@memory_option
@json_option
@results_option
def plan(
    specs: tuple[str, ...],
    tier: str,
    panels: tuple[str, ...],
    only: tuple[str, ...] | None,
    curves: tuple[str, ...],
    trials: int | None,
    rounds: int | None,
    sets: tuple[str, ...],
    stand_in: bool,
    fresh: bool,
    jobs: int | None,
    memory: float | None,
    as_json: bool,
    results_dir: Path,
) -> None:
    """Print what `run` would compute: the runs to do, the runs that are reused, and the predicted time and memory.

    Without a name, it plans every figure.

    \b
    Examples:
      fedrepro plan --tier paper
      fedrepro plan --tier paper --fresh
      fedrepro plan experiments/fedc/fig5.yaml
      fedrepro plan experiments/fedc/*.yaml --tier paper
      fedrepro plan fedc/fig1 --panel b --tier paper
      fedrepro plan gcca/fig9 --tier paper --memory 8G
    """
    from fedrepro.runs import runner
    from fedrepro.runs.identity import plan as planning
    from fedrepro.runs.predict import timings as predict
    from fedrepro.runs.predict.calibrate import machine_for
    from fedrepro.runs.predict.remaining import busy

    panel = _asked_panel(panels, only)
    figures = load_all(specs, tier, with_sizes(sets, trials, rounds))
    planned = planning.make(figures, stand_in)
    chosen = _only(figures, panel, curves)
    todo = _todo(planned, results_dir, chosen, fresh)
    missing_ids = {run.id for run in todo}
    _print_doubts(figures)
    machine = machine_for(todo, _warn)
    timings = predict.Timings(runner.Folders(results_dir).store, machine)
    rows = [_figure_row(planned, number, chosen[number], missing_ids, timings) for number in range(len(figures))]
    if not as_json:
        for figure, row in zip(figures, rows, strict=True):
            _print_figure(figure, row, results_dir)
    jobs = _fitting(todo, jobs or runner.default_jobs(), memory, machine)
    known = sum(timings.measured(run) for run in todo)
    seconds, bytes_ = timings.total(todo, jobs), predict.memory(todo, jobs, machine)
    wanted = sum(row["reused"] + row["todo"] for row in rows)
    distinct = len(planned.chosen(chosen))
    if as_json:
        total = {"runs": distinct, "wanted": wanted, "todo": len(todo), "predicted_from_earlier_runs": known}
        total |= {"workers": jobs, "seconds": round(seconds, 1), "memory_bytes": round(bytes_)}
        click.echo(json.dumps({"figures": rows, "in_all": total}, indent=1))
        return
    click.echo(
        f"in all: {_count(distinct, 'distinct run')} ({wanted} used by the panels), {len(todo)} to do, "
        f"about {duration(seconds)} with {jobs} worker{'s' if jobs > 1 else ''}, about {human(bytes_)}"
    )
    if absent := sum(len(row["missing"]) for row in rows):
        more = "" if stand_in else "; --stand-in counts them"
        click.echo(f"not counted: {_count(absent, 'setting')} without data{more}")
    if todo:
        _print_notes([*cpu.doubts(), *busy(jobs)])
        rest = ", the rest from declared costs or their timed first rounds" if known < len(todo) else ""
        click.echo(f"time: {known} of {len(todo)} runs predicted from earlier runs{rest}")


def _figure_row(
    planned: Plan, number: int, chosen: set[str] | None, todo: set[str], timings: Timings
) -> dict[str, Any]:
    """Return what ``plan --json`` prints about a figure. chosen : its curves. todo : ids of the runs to compute."""
    figure = planned.figures[number]
    series = {name: runs for name, runs in planned.by_figure[number].items() if chosen is None or name in chosen}
    left = [run.id in todo for trials in series.values() for run in trials]
    to_do = {run.id: run for trials in series.values() for run in trials if run.id in todo}
    return {
        "figure": figure.name,
        "tier": figure.tier,
        "settings": len(series),
        "trials": figure.trials,
        "most_trials": max((figure.trials_of(name) for name in series), default=figure.trials),
        "reused": len(left) - sum(left),
        "todo": sum(left),
        "seconds": round(timings.total(list(to_do.values()), 1), 1),
        "missing": planned.missing[number],
    }


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _print_figure(figure: Figure, row: Mapping[str, Any], results_dir: Path) -> None:
    from fedrepro.results.read import read_sidecar, stem
    from fedrepro.runs.storage.validity import elsewhere

    fewest, most = row["trials"], row["most_trials"]
    trials = _count(fewest, "trial") if fewest == most else f"{fewest} to {most} trials"
    runs = f"{_count(row['settings'], 'curve')} x {trials}"
    click.echo(
        f"{with_tier(row['figure'], row['tier'])}: {runs}; "
        f"{_count(row['reused'], 'run')} reused, {row['todo']} to do"
        + (f" (about {duration(row['seconds'])} of one core)" if row["todo"] else "")
    )
    for line in _data_lines(figure):
        click.echo(f"  {line}")
    sidecar = read_sidecar(stem(results_dir, figure)) if row["todo"] else None
    if sidecar is not None and (libraries := elsewhere(figure, sidecar)):
        click.echo(f"  stored results are not reused here: {libraries}")
    missing = row["missing"]
    for why in dict.fromkeys(missing.values()):
        names = [name for name, reason in missing.items() if reason == why]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        click.secho(f"  cannot run: {names[0]}{more}: {why}", fg="yellow")


@click.command()
@spec_arguments
@tier_option
@click.option(
    "--jobs",
    "-j",
    type=Whole(min=1),
    help="Parallel workers (default: all cores, or all of the scheduler; less than two seconds of work starts none).",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Compute on the workers of this dask scheduler (tcp://host:8786), or on N of its own (local:N).",
)
@click.option(
    "--part",
    type=PartOf(),
    metavar="I/N",
    help="Compute the I-th of N parts of the runs and write no results: for job arrays (docs/many-machines.md).",
)
@memory_option
@_panel_option("Compute only the runs of one panel.")
@curve_option
@trials_option
@rounds_option
@set_option
@stand_in_option
@click.option("--fresh", is_flag=True, help="Delete finished runs of these figures and compute them again.")
@click.option("--plot", "draw", is_flag=True, help="Draw each figure with `plot` when its last run ends.")
@click.option("--quiet", "-q", is_flag=True, help="Do not show progress.")
@results_option
@plots_option
def run(
    specs: tuple[str, ...],
    tier: str,
    jobs: int | None,
    scheduler: str | None,
    part: tuple[int, int] | None,
    memory: float | None,
    panels: tuple[str, ...],
    only: tuple[str, ...] | None,
    curves: tuple[str, ...],
    trials: int | None,
    rounds: int | None,
    sets: tuple[str, ...],
    stand_in: bool,
    fresh: bool,
    draw: bool,
    quiet: bool,
    results_dir: Path,
    plots_dir: Path,
) -> None:
    """Compute figures. Finished runs are reused, and an interrupted sweep continues where it stopped.

    \b
    Examples:
      fedrepro run experiments/fedc/fig5.yaml
      fedrepro run fedc/fig5 --tier paper --jobs 2
      fedrepro run fedc/fig1 --panel b --set rounds=50
      fedrepro run fedc/fig5 --curve "fedcgds m=10" --curve fedcavg --trials 20
      fedrepro run experiments/*/*.yaml --stand-in --plot
      fedrepro run gcca/fig9 --tier paper --memory 8G
      fedrepro run fedc/fig5 --tier paper --scheduler tcp://host:8786
      fedrepro run fedc/fig5 --tier paper --part 3/10
    """
    from fedrepro.plotting import batch
    from fedrepro.results.read import require_own
    from fedrepro.runs import failures, runner
    from fedrepro.runs.identity import plan as planning
    from fedrepro.runs.parts import Part
    from fedrepro.runs.storage.validity import finished
    from fedrepro.runs.storage.write import Written
    from fedrepro.runs.workers import remote

    if memory is not None and scheduler is not None:
        raise UserError("--memory limits this machine, not the workers of a scheduler; give --jobs instead")
    if part is not None and (scheduler is not None or draw):
        other = "--scheduler: both divide the runs" if scheduler is not None else "--plot: a part writes no results"
        raise UserError(f"--part {part[0]}/{part[1]} cannot be combined with {other}")
    panel = _asked_panel(panels, only)
    sets = with_sizes(sets, trials, rounds)
    figures = load_all(specs, tier, sets)
    for figure in figures:
        _require_tier(figure)
        require_own(figure, results_dir)
    chosen = _only(figures, panel, curves)
    planned = planning.make(figures, stand_in)
    _print_missing(planned)
    _print_doubts(figures)
    _print_own_modules(planned)
    folders = runner.Folders(results_dir)
    where = batch.DrawOptions(tier, batch.FORMATS, results_dir, plots_dir, sets)
    if not fresh and all(finished(planned, n, results_dir) for n in range(len(figures))):
        names = ", ".join(f.name for f in figures)
        click.echo(f"{with_tier(names, tier)}: finished, nothing to do (use --fresh to compute again)")
        if draw:
            wanted = [(Path(figure.path), "") for figure in figures]
            for path in batch.draw_all(wanted, where, jobs=jobs or runner.default_jobs()):
                echo(str(path))
        return
    _print_notes(cpu.doubts())
    if memory is not None:
        jobs = _fitting(_todo(planned, folders.root, chosen, fresh), jobs or runner.default_jobs(), memory)
    beside = batch.BackgroundDrawing(where, len(figures), runner.default_jobs()) if draw else None

    def complete(number: int, written: Written) -> None:
        if beside is not None and not written.beside:
            beside.add(Path(figures[number].path))

    cluster_of = remote.connected(scheduler, folders.scratch, quiet) if scheduler else nullcontext()
    with beside or nullcontext(), cluster_of as cluster:
        outcome = runner.run(
            planned, folders, jobs=jobs, only=chosen, fresh=fresh, quiet=quiet, cluster=cluster,
            part=Part(*part) if part else None, on_written=complete,
        )  # fmt: skip
        if beside is not None and not outcome.interrupted:
            for path in beside.files():
                click.echo(str(path))
    for written in outcome.written:
        click.echo(runner.describe(written))
    of_part = f"part {part[0]}/{part[1]}: " if part else ""
    click.echo(
        f"{of_part}{_count(outcome.computed, 'run')} computed, {outcome.reused} reused, {len(outcome.failed)} failed, "
        f"{outcome.diverged} diverged, in {duration(outcome.seconds)}"
    )
    titles = {id_: f"{planned.runs[id_].setting.series}, trial {planned.runs[id_].trial}" for id_ in outcome.failed}
    for id_, called_runs in _shown(titles, outcome.failed, len(planned.runs)).items():
        place = failures.place(planned.runs[id_], results_dir)
        why = f"{outcome.failed[id_]}{f' ({place})' if place else ''}"
        click.secho(f"  {called_runs}: {why}", fg="red", err=True)
    stored = in_results(results_dir)
    for title in list(titles.values())[:1]:
        click.echo(f"the traceback: fedrepro failures {shlex.quote(title)}{stored}", err=True)
    if outcome.diverged:
        name = shlex.quote(called(figures[0].path)) if len(figures) == 1 else "FIGURE"
        options = "".join(f" --set {shlex.quote(option)}" for option in sets)
        of_tier = option_of_tier(figures[0].name, figures[0].tier)
        click.echo(f"which runs diverged: fedrepro failures {name}{of_tier}{options}{stored}", err=True)
    if outcome.interrupted:
        click.echo(
            f"interrupted: finished runs are kept ({outcome.computed + outcome.reused}, and {outcome.left} are left); "
            "the same command continues from here",
            err=True,
        )
        sys.exit(130)
    if outcome.failed:
        sys.exit(1)
    if not planned.runs:
        raise UserError("nothing could be computed: every setting lacks its dataset or a library (see above)")


def _warn(text: str) -> None:
    click.secho(text, fg="yellow", err=True)


def _shown(titles: Mapping[str, str], failed: Mapping[str, str], every: int) -> dict[str, str]:
    """Return the failed runs whose errors are printed, with what to call each: one if all runs have the same error.

    titles, failed : of each failed run the name, and why it failed. every : the number of all runs.
    """
    if 1 < len(failed) == every and len(set(failed.values())) == 1:
        return {next(iter(failed)): f"each of {_count(every, 'run')}"}
    return dict(list(titles.items())[:20])


def _print_missing(planned: Plan) -> None:
    for why in dict.fromkeys(text for missing in planned.missing for text in missing.values()):
        _warn(f"left out: {why}")
    for name, note in sorted({(s.dataset, s.note) for s in planned.sources.values() if s.state == "stand-in"}):
        _warn(f"stand-in data for {name}: marked on every figure, never counts for a claim ({note})")


def _loaders(figure: Figure) -> dict[str, Dataset]:
    """Return the datasets of a figure by their names in its spec, with the name of a user's own file."""
    loaders = {}
    for setting in figure.settings():
        entry, alias = registry.datasets()[setting.dataset], setting.names.get("dataset", setting.dataset)
        own = label(entry.cls.files, setting.dataset_params)
        loaders[f"{alias} ({own})" if own and alias != own else alias] = entry.make(**setting.dataset_params)
    return loaders


def _data_lines(figure: Figure) -> Iterator[str]:
    """Yield the shapes of a figure's data that are known without computing."""
    for name, loader in _loaders(figure).items():
        sizes = [f"{key} = {value:,}" for key, value in loader.shape().items() if isinstance(value, int)]
        if sizes:
            yield f"data {name}: {', '.join(sizes)}"


def _print_doubts(figures: Sequence[Figure]) -> None:
    _print_notes(text for figure in figures for text in figure.adjusted)
    _print_notes(doubt for figure in figures for loader in _loaders(figure).values() for doubt in loader.doubts())


def _print_notes(doubts: Iterable[str]) -> None:
    for doubt in dict.fromkeys(doubts):
        _warn(f"note: {doubt}")


def _print_own_modules(planned: Plan) -> None:
    from fedrepro.runs.identity import code

    settings = [run.setting for run in planned.runs.values()]
    methods = {registry.methods()[setting.algorithm].cls for setting in settings}
    problems = {registry.problems()[setting.problem].cls for setting in settings}
    _print_notes(
        f"your module {name} ({file}) is not part of a run's identity: after a change of it, finished runs are reused; "
        "put its code into the method's file"
        for name, file in code.outside(methods | problems).items()
    )


def _todo(planned: Plan, root: Path, only: Sequence[set[str] | None] = (), fresh: bool = False) -> list[Run]:
    """Return the runs that a command has to compute. only : for each figure the series to compute, None for all."""
    from fedrepro.runs.runner import Folders
    from fedrepro.runs.storage.store import Store
    from fedrepro.runs.storage.validity import kept

    store = Store(Folders(root).store)
    finished = {run for number in range(len(planned.figures)) for run in kept(planned, number, root)}
    runs = planned.chosen(only or [None] * len(planned.figures))
    return [run for run in runs.values() if fresh or not (run.id in finished or store.has(run.id))]


def _fitting(todo: list[Run], jobs: int, limit: float | None, machine: Machine | None = None) -> int:
    """Return how many workers fit into the memory; print a note if they are fewer than ``jobs``."""
    from fedrepro.runs.predict import timings as predict

    if limit is None or not todo:
        return jobs
    fits = predict.fitting(todo, jobs, limit, machine)
    if fits == 0:
        need = predict.memory(todo, 1, machine)
        raise UserError(f"--memory {human(limit)}: one worker needs about {human(need)}; give at least that much")
    if fits < jobs:
        more = predict.memory(todo, fits + 1, machine)
        click.echo(
            f"memory: {fits} worker{'s' if fits > 1 else ''} instead of {jobs} fit into {human(limit)} "
            f"({fits + 1} need about {human(more)})",
            err=True,
        )
    return fits


def _require_tier(figure: Figure) -> None:
    """Raise UserError if the paper tier is asked of a user's own spec that does not define it.

    Nothing is reduced there, so its results would be the same as without ``--tier``, in another place.
    """
    if figure.tier != "paper" or not is_study(figure.paper):
        return
    tiers = nodes.read(Path(figure.path)).get("tiers")
    if tiers is None or tiers.get("paper") is None:
        raise UserError(f"{figure.path}: defines no `paper:` under `tiers:`; without --tier it runs in full")


def _only(
    figures: Sequence[Figure], asked: tuple[str, str] | None, curves: Sequence[str] = ()
) -> list[set[str] | None]:
    """Return for each figure the series of one panel and of these curves, or None for all series.

    asked : the option that names the panel, and the name.
    """
    option, panel = asked or ("", None)
    named = [panel_names.find(figure, panel) if panel is not None else None for figure in figures]
    if panel is not None and not any(named):
        raise UserError(f"{option} {panel}: there is no panel '{panel}'{panel_names.known(figures, panel)}")
    drawn = [curve for figure in figures for shown in figure.panels for curve in shown.curves]
    for name in curves:
        if not any(_is_named(curve, name) for curve in drawn):
            methods = dict.fromkeys(curve.setting.algorithm for curve in drawn)
            names = [*methods, *(curve.setting.series for curve in drawn)]
            raise UserError(
                f"--curve '{name}': there is no such curve{nearest(name, names)} "
                f"(methods: {', '.join(methods)}; `fedrepro show FIGURE` prints labels)"
            )
    if panel is None and not curves:
        return [None for _ in figures]
    return [
        {
            curve.setting.series
            for shown in figure.panels
            if panel is None or shown is only
            for curve in shown.curves
            if not curves or any(_is_named(curve, name) for name in curves)
        }
        for figure, only in zip(figures, named, strict=True)
    ]


def _is_named(curve: Curve, name: str) -> bool:
    """Return whether a name given by a user means this curve: its label, its method, or words of its series."""
    labels = (curve.label, registry.methods()[curve.setting.algorithm].label)
    words, plain = curve.setting.series.casefold().split(), _plain(name)
    return plain in map(_plain, labels) or all(word in words for word in plain.split())


def _plain(label: str) -> str:
    """Return a label of a legend, such as ``FedCGds, m = 10``, in lower case and in the form of a series."""
    return label.casefold().replace(", ", " ").replace(" = ", "=")
