"""The command ``verdict``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from fedrepro.claims.evidence import NONE, PAPER
from fedrepro.cli.options import complete_spec, results_option, tier_option
from fedrepro.errors import UserError
from fedrepro.spec.find import find_some


@click.command()
@click.argument("specs", nargs=-1, metavar="[SPEC...]", shell_complete=complete_spec)
@tier_option
@results_option
def verdict(specs: tuple[str, ...], tier: str, results_dir: Path) -> None:
    """Say of each claim whether it held, from the results at hand.

    At the paper tier, on the paper's data and with all trials: reproduced, not reproduced or within noise. On less
    evidence (partial trials, a variant of the data, a smaller tier, a stand-in) it holds, fails or is undecided there.

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
        click.echo(f"{row.verdict:<16} {row.claim.id:<22} {row.claim.says}\n{'':<16} {row.reason}")
    counts = Counter((r.verdict, r.level) for r in rows)
    click.echo("; ".join(f"{n} {name}" + _level(level) for (name, level), n in counts.items()))


def _level(level: str) -> str:
    return "" if level in (PAPER, NONE) else f" ({level})"
