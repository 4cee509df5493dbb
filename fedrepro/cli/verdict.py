"""The command ``verdict``."""

from __future__ import annotations

from pathlib import Path

import click

from fedrepro.cli.options import complete_spec, results_option, tier_option
from fedrepro.errors import UserError
from fedrepro.spec.find import find_some


@click.command()
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
