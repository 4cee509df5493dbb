"""The command group ``fedrepro settings``."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fedrepro.cli import colour
from fedrepro.cli.options import Choice, Whole, complete_spec, json_option, results_option
from fedrepro.errors import UserError, counted, nearest
from fedrepro.progress import duration
from fedrepro.spec import nodes
from fedrepro.spec.find import called, experiments, find_some, is_study, select, stored_under
from fedrepro.spec.tiers import TIERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fedrepro.alternatives.cases import Case
    from fedrepro.alternatives.deciding import Deciding
    from fedrepro.alternatives.kept_results import Numbers
    from fedrepro.alternatives.paired import Effect
    from fedrepro.alternatives.published_numbers import Other, PublishedNumber
    from fedrepro.alternatives.ranking import Entry
    from fedrepro.claims.intervals import Interval
    from fedrepro.spec.discrepancies import Discrepancy


def _shared(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments and options of all commands of the group."""
    options = (
        click.argument("specs", nargs=-1, metavar="[FIGURE...]", shell_complete=complete_spec),
        click.option("--tier", type=Choice(TIERS), default="paper", show_default=True, help="Size of the experiment."),
        click.option(
            "--only", default="", metavar="NAME", help="Only this set, or all of a row of discrepancies (fedmf.16)."
        ),
        results_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


hours_option = click.option(
    "--hours",
    type=click.FloatRange(min=0, min_open=True),
    help="Predicted hours of one worker to spend (default: all).",
)


trials_option = click.option(
    "--trials",
    type=Whole(min=1),
    help="Trials to run, at most the figure's (default: by the predicted time). Stored results keep theirs.",
)


@click.group()
def settings() -> None:
    """Plan, run and compare other values of the settings that a paper leaves open.

    \b
    fedrepro settings plan                       list them with their cost
    fedrepro settings run fedmf/figS2 --hours 2  compute the most useful ones
    fedrepro settings show fedmf/figS2           print what they change
    fedrepro settings claims fedmf/figS2         print what decides each verdict
    """


@settings.command(short_help="List the other values of open settings with their cost.")
@_shared
@hours_option
@trials_option
@json_option
def plan(
    specs: tuple[str, ...],
    tier: str,
    only: str,
    hours: float | None,
    trials: int | None,
    results_dir: Path,
    as_json: bool,
) -> None:
    """List the other values of open settings in the order in which `settings run` computes them, with their cost.

    Values that affect more claims per predicted hour come first, beginning with claims that do not hold in the
    figure's own results. Pairs come last.

    \b
    Examples:
      fedrepro settings plan
      fedrepro settings plan fedmf/figS2 fedmf/table1
      fedrepro settings plan --only fedmf.16 --hours 10
    """
    entries = _entries(specs, tier, only, results_dir, trials)
    if as_json:
        click.echo(json.dumps([_facts(entry) for entry in entries], indent=1))
        return
    chosen, left = _within(entries, hours)
    _print_table(chosen)
    if left:
        click.echo(f"\nleft, beyond {hours:g} h:")
        _print_table(left)
    _print_done(entries)


@settings.command(short_help="Compute other values of open settings.")
@_shared
@hours_option
@trials_option
@click.option("--jobs", "-j", type=Whole(min=1), help="Parallel workers (default: all cores).")
@click.option("--quiet", "-q", is_flag=True, help="Do not show progress.")
def run(
    specs: tuple[str, ...],
    tier: str,
    only: str,
    hours: float | None,
    trials: int | None,
    jobs: int | None,
    quiet: bool,
    results_dir: Path,
) -> None:
    """Compute other values of open settings: only the curves that change and that claims read.

    Finished runs are reused, and an interrupted command continues where it stopped. Where ten trials take more than an
    hour, three are run.

    \b
    Examples:
      fedrepro settings run fedmf/figS2 --only fedmf.16.qhat-10-tdt2
      fedrepro settings run perfedsi/fig1 --only perfedsi.2.rounds-600 --trials 1
      fedrepro settings run --hours 10 --jobs 1
    """
    from fedrepro.alternatives import execution, ranking
    from fedrepro.runs import runner

    entries = _entries(specs, tier, only, results_dir, trials)
    chosen, left = _within(entries, hours)
    failed = 0
    for number, entry in enumerate(chosen, start=1):
        assert entry.cost.figure is not None
        takes, rest = (duration(3600 * ranking.total(part)) for part in ([entry], chosen[number - 1 :]))
        click.echo(
            f"{number} of {len(chosen)}, about {rest} left with one worker: "
            f"{entry.case.figure.name} with {entry.case.name}, {_trials(entry)}, about {takes}"
        )
        outcome = execution.compute(entry.case, entry.cost.figure, results_dir, jobs=jobs, quiet=quiet)
        for written in outcome.written:
            click.echo(f"  {runner.describe(written)}")
        failed += len(outcome.failed)
        for why in list(outcome.failed.values())[:1]:
            click.secho(f"  {why}", fg="red", err=True)
            click.echo("  the set is not stored; the same command computes the failed runs again", err=True)
        if outcome.interrupted:
            click.echo("interrupted: finished runs are kept; the same command continues from here", err=True)
            sys.exit(130)
    if left:
        click.echo(f"left, beyond {hours:g} h:")
        _print_table(left)
    _print_done(_entries(specs, tier, only, results_dir, trials))
    if failed:
        sys.exit(1)


@settings.command(short_help="Print what other values of open settings change.")
@_shared
@click.option("--readings", is_flag=True, help="Judge every reading of the claims' words too (seconds per figure).")
@json_option
def show(specs: tuple[str, ...], tier: str, only: str, results_dir: Path, readings: bool, as_json: bool) -> None:
    """Print for each claim what other values of open settings change: its verdict, and its margin over the same trials.

    \b
    Examples:
      fedrepro settings show fedmf/figS2
      fedrepro settings show --only fedmf.16 --json
    """
    from fedrepro.alternatives import deciding, survey

    gathered = list(survey.computed(_paths(specs, only), _rows(), tier, results_dir, only))
    shown = [
        (case, effect)
        for own, cases in gathered
        if own is not None
        for case in cases
        for effect in survey.effects(case, own, results_dir, readings=readings)
    ]
    if as_json:
        click.echo(json.dumps([_changes(case, effect) for case, effect in shown], indent=1))
        return
    if not shown:
        raise _nothing(specs, only, tier, results_dir)
    before: Case | None = None
    for case, effect in shown:
        if case is not before:
            click.echo(f"{case.figure.name} with {case.name}: {'; '.join(map(str, case.alternatives))}")
        before = case
        then, now = (deciding.called(each.verdict, case, effect) for each in (effect.before, effect.after))
        arrow = f"{colour.word(then)} -> {colour.word(now)}"
        click.echo(f"  {effect.claim.id:<24} {arrow}, {effect.trials} trial{'s' if effect.trials != 1 else ''}")
        click.echo(f"  {'':<24} {deciding.change_in_words(effect) or 'its margins cannot be compared'}")
        if effect.readings_in_words:
            click.echo(f"  {'':<24} {effect.readings_in_words}")
    _print_stale(gathered, results_dir)


def _print_stale(gathered: Iterable[tuple[Numbers | None, Sequence[Case]]], root: Path) -> None:
    """Name the figures whose own results today's code did not compute."""
    from fedrepro.results import staleness

    own = [numbers for numbers, cases in gathered if numbers is not None and cases]
    colour.print_stale({(n.figure.name, n.figure.tier): staleness.stale(n.figure, n.sidecar, root) for n in own})


@settings.command(short_help="Print published numbers beside ours with other values.")
@_shared
@json_option
def values(specs: tuple[str, ...], tier: str, only: str, results_dir: Path, as_json: bool) -> None:
    """Print the numbers of published tables beside ours, with the figure's own values and with other ones.

    A set with fewer trials is compared over its own trials. The last lines give, for each set, the mean distance of its
    numbers from the published ones, with our values and with the others. A small distance does not show that the paper
    used a value.

    \b
    Examples:
      fedrepro settings values fedmf/table1
      fedrepro settings values gcca/table1 --only gcca.2 --json
    """
    from fedrepro.alternatives import published_numbers, survey

    gathered = list(survey.computed(_paths(specs, only), _rows(), tier, results_dir, only))
    found = [
        (own.figure.name, published_numbers.beside(own, cases, results_dir))
        for own, cases in gathered
        if own is not None
    ]
    found = [(name, numbers) for name, numbers in found if numbers]
    if as_json:
        click.echo(json.dumps([_published(name, number) for name, numbers in found for number in numbers], indent=1))
        return
    if not found:
        raise UserError(f"no published table has results of other settings at the {tier} tier in {results_dir}")
    for name, numbers in found:
        _print_published(name, numbers)
    _print_stale(gathered, results_dir)


def _print_published(figure: str, numbers: Sequence[PublishedNumber]) -> None:
    from fedrepro.alternatives import published_numbers

    distances = published_numbers.distances(numbers)
    for panel in {number.panel.id: number.panel for number in numbers}.values():
        click.echo(f"{figure}, {panel.title or panel.id}")
        for number in (number for number in numbers if number.panel.id == panel.id):
            trials = f"{number.trials} trial{'s' if number.trials != 1 else ''}"
            click.echo(
                f"  {number.name}: paper {number.text(number.paper)}, ours {number.text(number.ours)} ({trials})"
            )
            _print_alike((number.text(o.value), o.name, _over(number, o)) for o in number.others)
        click.echo("  mean distance from the paper, with our values -> with the others:")
        _print_alike(
            (f"{d.ours:.3g} -> {d.others:.3g}", d.name, f"{d.numbers} number{'s' if d.numbers != 1 else ''}")
            for d in distances
            if d.panel.id == panel.id
        )


def _print_alike(found: Iterable[tuple[str, str, str]]) -> None:
    """Print values, each with the names of the sets that have it and a note."""
    names: dict[tuple[str, str], list[str]] = {}
    for value, name, note in found:
        names.setdefault((value, note), []).append(name)
    for (value, note), alike in names.items():
        click.echo(f"  {value:>10} with {', '.join(alike)}" + (f" ({note})" if note else ""))


def _over(number: PublishedNumber, other: Other) -> str:
    """Return over how many trials another number is, if these are fewer, and what became of some of them."""
    few = f"{other.trials} trials, ours {number.text(other.same)}" if other.trials < number.trials else ""
    return "; ".join(filter(None, (few, other.note)))


def _published(figure: str, number: PublishedNumber) -> dict[str, Any]:
    return {
        "figure": figure, "panel": number.panel.id, "row": number.row, "column": number.column, "paper": number.paper,
        "ours": number.ours, "trials": number.trials,
        "others": [_without_nan(dataclasses.asdict(other)) for other in number.others],
    }  # fmt: skip


def _without_nan(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in facts.items()}


@settings.command(short_help="Print which settings decide each verdict.")
@_shared
@json_option
def claims(specs: tuple[str, ...], tier: str, only: str, results_dir: Path, as_json: bool) -> None:
    """Print for each claim which of the computed settings decide its verdict.

    \b
    Examples:
      fedrepro settings claims fedmf/figS2
      fedrepro settings claims fedc.4d
      fedrepro settings claims --json
    """
    from fedrepro.alternatives import survey

    gathered = list(survey.computed(_paths(specs, only), _rows(), tier, results_dir, only))
    decided = survey.decided(gathered, _rows(), results_dir)
    asked = {called(item.path): item.claims for item in select(specs)}  # no claims: the whole figure
    decided = [one for one in decided if one.row.claim.id in (asked.get(one.row.figure) or {one.row.claim.id})]
    if only:  # other settings of the remaining claims were not looked at
        decided = [one for one in decided if one.tried]
    if not decided:
        raise _nothing(specs, only, tier, results_dir)
    if as_json:
        click.echo(json.dumps([_decision(one) for one in decided], indent=1))
        return
    for one in decided:
        click.echo(f"{colour.word(one.row.verdict, 16)} {one.row.claim.id:<24} {one.words}")
        for line in one.evidence:
            click.echo(f"{'':<41} {line}")
    _print_stale(gathered, results_dir)


def _nothing(specs: tuple[str, ...], only: str, tier: str, root: Path) -> UserError:
    """Return the error that no set of other values has results, or that ``only`` does not concern the figures."""
    from fedrepro.alternatives import survey

    try:
        list(survey.chosen(_paths(specs, only), _rows(), tier, root, only))
    except UserError as error:
        return error
    what = f"{f' ({only})' if only else ''}{' for ' if specs else ''}{' '.join(specs)}"
    of_tier = f" --tier {tier}" if tier != "paper" else ""
    made = f"`{' '.join(['fedrepro settings run', *specs])}{f' --only {only}' if only else ''}{of_tier}` makes them"
    return UserError(f"no results of other settings{what} at the {tier} tier in {root}; {made}")


def _rows() -> list[Discrepancy]:
    from fedrepro.spec import discrepancies

    return discrepancies.load_all(experiments())


def _together(paper: str) -> list[str]:
    """Return the names of the sets with all printed and with all released values of a paper."""
    from fedrepro.alternatives.cases import TOGETHER

    return [f"{paper}.{origin}" for origin in TOGETHER]


def _paths(names: tuple[str, ...], only: str) -> list[Path]:
    """Return the specs that the names select.

    Raises UserError if no set of other values has a name that begins with ``only``, or if all figures are a user's own,
    for which no discrepancies are listed; prints a note if only some are.
    """
    sets = [name for row in _rows() for name in (row.id, *(a.id for a in row.alternatives), *_together(row.paper))]
    if only and not any(name.startswith(only.partition("+")[0]) for name in sets):
        raise UserError(f"--only {only}: there is no such setting{nearest(only, sets)} (`fedrepro settings plan`)")
    paths = find_some(names)
    listed = {row.paper for row in _rows()}
    papers = {path: stored_under(nodes.read(path))[0] for path in paths} if names else {}
    own = [path for path, paper in papers.items() if paper and is_study(paper) and paper not in listed]
    if not own:
        return paths
    figures = ", ".join(map(called, own))
    message = (
        f"{figures}: your own figures have no settings that a paper leaves open. To try other values, use `fedrepro "
        "run FIGURE --set NAME=VALUE`, or write a list of values (a sweep) in the spec"
    )
    if len(own) == len(paths):
        raise UserError(message)
    click.secho(message, fg="yellow", err=True)
    return [path for path in paths if path not in own]


def _gathered(specs: tuple[str, ...], tier: str, only: str, root: Path) -> list[tuple[Numbers | None, list[Case]]]:
    from fedrepro.alternatives import survey

    return list(survey.chosen(_paths(specs, only), _rows(), tier, root, only))


def _entries(specs: tuple[str, ...], tier: str, only: str, root: Path, trials: int | None) -> list[Entry]:
    from fedrepro.alternatives import survey

    def warn(text: str) -> None:
        click.secho(text, fg="yellow", err=True)

    return survey.entries(_gathered(specs, tier, only, root), root, warn, trials)


def _within(entries: Sequence[Entry], hours: float | None) -> tuple[list[Entry], list[Entry]]:
    from fedrepro.alternatives import ranking

    return ranking.within([entry for entry in entries if entry.to_do], hours)


def _print_table(entries: Sequence[Entry]) -> None:
    if not entries:
        return
    click.echo(f"{'hours':>7} {'trials':>9} {'claims':>6} {'open':>5}  figure with other values")
    for entry in entries:
        hours, claims = entry.cost.hours, len(entry.cost.claims)
        name = f"{entry.case.figure.name} with {entry.case.name}"
        click.echo(f"{hours:>7.2f} {_of_trials(entry):>9} {claims:>6} {entry.undecided:>5}  {name}")


def _print_done(entries: Sequence[Entry]) -> None:
    from fedrepro.alternatives import ranking

    to_do = [entry for entry in entries if entry.to_do]
    done = sum(entry.cost.done for entry in entries)
    absent = [entry for entry in entries if entry.cost.figure is None]
    hours = ranking.total(to_do)
    click.echo(
        f"{counted(len(entries), 'set')} of other values: {done} computed, {len(to_do)} to do in about {hours:.1f} h"
    )
    for why in dict.fromkeys(entry.cost.absent for entry in absent):
        count = sum(entry.cost.absent == why for entry in absent)
        click.secho(f"{count} cannot be computed: {why}", fg="yellow")


def _of_trials(entry: Entry) -> str:
    cost = entry.cost
    return str(cost.trials) if cost.trials == cost.wanted else f"{cost.trials} of {cost.wanted}"


def _trials(entry: Entry) -> str:
    return f"{_of_trials(entry)} trial{'s' if entry.cost.wanted != 1 else ''}"


def _facts(entry: Entry) -> dict[str, Any]:
    case, cost = entry.case, entry.cost
    return {
        "figure": case.figure.name,
        "set": case.name,
        "changes": [str(alternative) for alternative in case.alternatives],
        "origins": [alternative.origin for alternative in case.alternatives],
        "claims": [claim.id for claim in case.claims if claim.id in cost.claims],
        "open": entry.undecided,
        "trials": cost.trials,
        "wanted": cost.wanted,
        "hours": round(cost.hours, 4),
        "done": cost.done,
        "absent": cost.absent,
    }


def _changes(case: Case, effect: Effect) -> dict[str, Any]:
    from fedrepro.alternatives.deciding import called as verdict

    then, now = (verdict(each.verdict, case, effect) for each in (effect.before, effect.after))
    return {
        **{"figure": case.figure.name, "set": case.name, "claim": effect.claim.id, "trials": effect.trials},
        **{"before": then, "after": now, "level": effect.after.level},
        "readings": dict(effect.readings.counts) if effect.readings is not None else None,
        "shifts": [
            {
                **{"unit": shift.unit, "moves": shift.moves},
                **{name: _finite(getattr(shift, name)) for name in ("before", "after", "change")},
            }
            for shift in effect.shifts
        ],
    }


def _decision(one: Deciding) -> dict[str, Any]:
    return {
        "figure": one.row.figure,
        "claim": one.row.claim.id,
        "verdict": one.row.verdict,
        "tried": [tried.case.name for tried in one.tried],
        "turns": [tried.case.name for tried in one.turns],
        "causes": list(one.causes),
        "in_one_trial": list(one.in_one_trial),
        "uncertain": [tried.case.name for tried in one.uncertain],
        "not_printed": list(one.topics),
        "words": one.words,
    }


def _finite(interval: Interval) -> dict[str, float | None]:
    numbers = {"value": interval.value, "low": interval.low, "high": interval.high}
    return {name: number if math.isfinite(number) else None for name, number in numbers.items()}
