"""The command ``affected``."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import click

from fedrepro import registry
from fedrepro.cli.listing import aligned
from fedrepro.cli.options import Choice, json_option, results_option
from fedrepro.errors import UserError
from fedrepro.spec.find import experiments as folder_of_specs
from fedrepro.spec.find import is_study, load_all, of_own_studies, specs
from fedrepro.spec.model import Figure
from fedrepro.spec.read import load
from fedrepro.spec.tiers import DEFAULT, TIERS


def complete_code(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the registered names that start with ``incomplete``, for shell completion."""
    tables = (registry.methods(), registry.problems(), registry.datasets(), registry.partitions())
    return sorted({name for table in tables for name in table if name.startswith(incomplete)})


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="METHOD|FILE...", shell_complete=complete_code)
@click.option("--tier", type=Choice(TIERS), default="paper", show_default=True, help="Tier of the figures.")
@json_option
@results_option
def affected(names: tuple[str, ...], tier: str, as_json: bool, results_dir: Path) -> None:
    """Print which figures a change of a method or a file affects.

    METHOD is the name of a method, problem, dataset or partition; FILE is a Python file of the package, or one that
    your specs import. A figure is affected if the change would rename some of its runs, so that their results become
    stale. Comments, docstrings, annotations and names of local variables can always be changed. Figures of your own
    specs are listed after those of the papers. These have no paper tier, so without --tier all of their results
    count.

    \b
    Examples:
      fedrepro affected fedmgs
      fedrepro affected fedrepro/problems/clustering/passes.py
      fedrepro affected two_digits mnist --json
      fedrepro affected my_method.py
    """
    from fedrepro.results.read import has_results
    from fedrepro.runs.identity import affected_figures as affecting

    own_tier = DEFAULT if tier == TIERS[-1] else tier  # which reduces nothing in a user's own study
    figures = [*_of_project(tier, own_tier), *_own_figures(own_tier)]
    targets = [affecting.target(name) for name in names]  # specs register the methods that they import
    changed = affecting.affected(figures, targets)
    kept = [has_results(Path(item.figure.path), item.figure.tier, results_dir) for item in changed]
    if as_json:
        rows = [
            {
                "figure": item.figure.name,
                "curves": item.curves,
                "of": item.total,
                "methods": item.methods,
                "results": has,
            }
            for item, has in zip(changed, kept, strict=True)
        ]
        click.echo(json.dumps(rows, indent=1))
        return
    lines = aligned(
        (
            item.figure.name,
            f"{item.curves} of {item.total} curves",
            ", ".join(item.methods),
            "" if has else "(no results)",
        )
        for item, has in zip(changed, kept, strict=True)
    )
    for line in lines:
        click.echo(line)
    own = sum(has for item, has in zip(changed, kept, strict=True) if is_study(item.figure.paper))
    theirs = f"{sum(kept) - own} with results at the {tier} tier"
    click.echo(
        f"{len(changed)} of {len(figures)} figures, {theirs}" + (f", {own} of your own with results" if own else "")
    )


def _of_project(tier: str, own_tier: str) -> list[Figure]:
    """Return the figures in ``experiments``; a user's own studies there have the tier ``own_tier``."""
    figures = load_all(specs(folder_of_specs()), tier)
    return [load(Path(figure.path), own_tier) if is_study(figure.paper) else figure for figure in figures]


def _own_figures(tier: str) -> list[Figure]:
    """Return the figures of a user's own specs outside ``experiments``, without the files that are no valid specs."""
    figures = []
    for own in of_own_studies():
        with contextlib.suppress(UserError):
            figures.append(load(own.path, tier))
    return figures
