"""The command line. Commands only read their arguments, call the stages and print; the work is done elsewhere."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import click

from fedrepro import __version__
from fedrepro.cli import listing
from fedrepro.cli.options import (
    complete_spec,
    results_option,
    set_option,
    spec_arguments,
    stand_in_option,
    tier_option,
)
from fedrepro.errors import UserError, nearest
from fedrepro.spec.find import EXPERIMENTS, find_some, load_all
from fedrepro.spec.read import TIERS

ELSEWHERE = {
    "data": "fedrepro.cli.data",
    "report": "fedrepro.cli.report",
    "compare": "fedrepro.cli.report",
    "show": "fedrepro.cli.report",
}
"""Commands defined in other modules, imported when they are asked for."""


class _Group(click.Group):
    """Shows a user's error as one message, without a traceback, and ends with exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except UserError as error:
            click.secho(f"error: {error}", fg="red", err=True)
            ctx.exit(2)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            valid = self.list_commands(ctx)
            raise UserError(f"'{args[0]}' is not a command{nearest(args[0], valid)} (commands: {', '.join(valid)})")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in ELSEWHERE:
            module = importlib.import_module(ELSEWHERE[cmd_name])
            found: click.Command = getattr(module, cmd_name)
            return found
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *ELSEWHERE])


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="fedrepro")
def main() -> None:
    """Regenerate the figures of five federated-learning papers and say which of their claims hold.

    \b
    fedrepro list                              what there is
    fedrepro run experiments/fedc/fig5.yaml    compute a figure (finished parts are reused)
    fedrepro plot experiments/fedc/fig5.yaml   draw it
    fedrepro verdict                           the claims, and whether they held
    """


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


# -- commands --------------------------------------------------------------------------------------------------------


@main.command("list")
@click.argument(
    "what", required=False, type=click.Choice(["papers", "figures", "algorithms", "partitions", "datasets"])
)
def list_(what: str | None) -> None:
    """Show papers, figures, algorithms, partitions and datasets.

    \b
    Examples:
      fedrepro list
      fedrepro list algorithms
    """
    tables = listing.tables(EXPERIMENTS)
    for name in [what] if what else tables:
        click.secho(name, bold=True)
        for row in listing.aligned(tables[name]):
            click.echo(f"  {row}")


@main.command()
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


@main.command()
@spec_arguments
@tier_option
@set_option
@stand_in_option
@click.option("--jobs", "-j", type=click.IntRange(min=1), help="Workers to predict the time for (default: all cores).")
@results_option
def plan(
    specs: tuple[str, ...], tier: str, sets: tuple[str, ...], stand_in: bool, jobs: int | None, results_dir: Path
) -> None:
    """Show runs to do, runs reused, predicted time and memory, without running.

    \b
    Examples:
      fedrepro plan experiments/fedc/fig5.yaml
      fedrepro plan experiments/fedc/*.yaml --tier paper
    """
    from fedrepro.runs import plan as planning
    from fedrepro.runs import predict, runner
    from fedrepro.runs.store import Store

    figures = load_all(specs, tier, sets)
    made = planning.make(figures, stand_in)
    folders = runner.Folders(results_dir)
    store, timings = Store(folders.store), predict.Timings(folders.store)
    jobs = jobs or runner.default_jobs()
    for figure, series, missing in zip(figures, made.by_figure, made.missing, strict=True):
        runs = [run for found in series.values() for run in found]
        todo = [run for run in runs if not store.has(run.id)]
        click.echo(
            f"{figure.paper}/{figure.figure} ({tier}): {len(series)} settings x {figure.trials} trials; "
            f"{len(runs) - len(todo)} runs reused, {len(todo)} to do"
        )
        for name, why in missing.items():
            click.secho(f"  cannot run: {name}: {why}", fg="yellow")
    todo = made.todo(store)
    wanted = sum(len(found) for series in made.by_figure for found in series.values())
    seconds = sum(timings.seconds(run) for run in todo) / jobs
    known = sum(timings.measured(run) for run in todo)
    click.echo(
        f"in all: {len(made.runs)} distinct runs ({wanted} wanted by the panels' settings), {len(todo)} to do, "
        f"about {_duration(seconds)} with {jobs} workers, about {predict.memory(todo, jobs) / 1e9:.1f} GB"
    )
    if todo:
        click.echo(f"time: {known} of {len(todo)} runs predicted from earlier runs, the rest by arithmetic")


@main.command()
@spec_arguments
@tier_option
@click.option("--jobs", "-j", type=click.IntRange(min=1), help="Parallel workers (default: all cores).")
@click.option("--only", metavar="PANEL", help="Compute one panel's runs only.")
@set_option
@stand_in_option
@click.option("--fresh", is_flag=True, help="Forget finished runs of these figures and compute them again.")
@click.option("--quiet", "-q", is_flag=True, help="No progress bar.")
@results_option
def run(
    specs: tuple[str, ...],
    tier: str,
    jobs: int | None,
    only: str | None,
    sets: tuple[str, ...],
    stand_in: bool,
    fresh: bool,
    quiet: bool,
    results_dir: Path,
) -> None:
    """Compute figures; finished runs are reused, a killed sweep resumes where it stopped.

    \b
    Examples:
      fedrepro run experiments/fedc/fig5.yaml
      fedrepro run fedc/fig5 --tier paper --jobs 2
      fedrepro run fedc/fig1 --only b --set rounds=50
      fedrepro run experiments/*/*.yaml --stand-in
    """
    from fedrepro.runs import plan as planning
    from fedrepro.runs import runner
    from fedrepro.runs.store import Store
    from fedrepro.runs.write import finished

    figures = load_all(specs, tier, sets)
    keep = _only(figures, only)
    made = planning.make(figures, stand_in)
    _tell_missing(made)
    folders = runner.Folders(results_dir)
    store = Store(folders.store)
    if not fresh and not made.todo(store) and all(finished(made, n, results_dir) for n in range(len(figures))):
        names = ", ".join(f"{f.paper}/{f.figure}" for f in figures)
        click.echo(f"{names} ({tier}): finished, nothing to do (--fresh computes again)")
        return
    outcome = runner.run(made, folders, jobs=jobs or runner.default_jobs(), only=keep, fresh=fresh, quiet=quiet)
    for sidecar in outcome.sidecars:
        click.echo(runner.describe(sidecar))
    click.echo(
        f"{outcome.computed} runs computed, {outcome.reused} reused, {len(outcome.failed)} failed, "
        f"{outcome.diverged} diverged, in {_duration(outcome.seconds)}"
    )
    for id_, why in list(outcome.failed.items())[:20]:
        click.secho(f"  {made.runs[id_].setting.series}, trial {made.runs[id_].trial}: {why}", fg="red", err=True)
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
    for name in sorted({source.dataset for source in made.sources.values() if source.state == "stand-in"}):
        click.secho(
            f"stand-in data for {name}: marked on every figure, never counts for a claim", fg="yellow", err=True
        )


@main.command()
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


@main.command()
@click.argument("specs", nargs=-1, metavar="[SPEC...]", shell_complete=complete_spec)
@tier_option
@results_option
def verdict(specs: tuple[str, ...], tier: str, results_dir: Path) -> None:
    """Say of each claim whether it held, from the results at hand.

    \b
    Examples:
      fedrepro verdict --tier paper
      fedrepro verdict experiments/fedc/fig5.yaml
    """
    from fedrepro.claims.judge import table
    from fedrepro.results.read import with_results

    paths = find_some(specs)
    rows = [row for found in with_results(paths, tier, results_dir, bool(specs)) for row in table(*found)]
    if not rows:
        raise UserError(
            f"no results with claims at the {tier} tier in {results_dir}; `fedrepro run SPEC --tier {tier}` makes them"
        )
    for row in rows:
        click.echo(f"{row.verdict:<16} {row.id:<22} {row.says}\n{'':<16} {row.why}")
    counts = {v: sum(r.verdict == v for r in rows) for v in dict.fromkeys(r.verdict for r in rows)}
    click.echo("; ".join(f"{n} {name}" for name, n in counts.items()))


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the shell completion script.

    \b
    Example, for bash:
      eval "$(fedrepro completion bash)"
    """
    from click.shell_completion import get_completion_class

    cls = get_completion_class(shell)
    assert cls is not None
    click.echo(cls(main, {}, "fedrepro", "_FEDREPRO_COMPLETE").source())


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


if __name__ == "__main__":
    main()
