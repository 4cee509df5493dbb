"""The command ``provenance``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from fedrepro.cli import listing
from fedrepro.cli.options import json_option, results_option


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option(
    "--check", is_flag=True, help="Exit with code 1 unless the spec and results here would draw each picture."
)
@json_option
@results_option
def provenance(files: tuple[Path, ...], check: bool, as_json: bool, results_dir: Path) -> None:
    """Print what pictures were drawn from. It also prints whether their spec and results have changed since.

    Every PNG, PDF and SVG that `plot` draws contains the command, the tier, the commit that computed its results, and
    the SHA-256 of its spec and results. Each of these two is reported as the same, changed or absent. A spec in which
    only claims, notes, comments or other tiers changed still draws the same picture, and is reported as such. Results
    that today's code or spec would not give are named as stale.

    \b
    Examples:
      fedrepro provenance plots/paper/fedc/fig5.png
      fedrepro provenance paper/figures/*.pdf --check
    """
    from fedrepro.plotting.provenance import HOLDS, read, stale, states

    pictures = [
        (path, facts, states(facts, results_dir), stale(facts, results_dir)) for path in files for facts in [read(path)]
    ]
    if as_json:
        listed = [{"file": str(path), **facts, "now": now, "stale": why} for path, facts, now, why in pictures]
        click.echo(json.dumps(listed, indent=1))
    else:
        for path, facts, now, why in pictures:
            click.secho(str(path), bold=True)
            rows = [
                ("drawn by", facts["command"]),
                ("results of", facts["results_of"]),
                ("tier", facts["tier"]),
                ("commit", facts["commit"] or "not known"),
            ]
            rows += [
                (part, f"{facts.get(f'{part}_sha256', '')[:16] or 'none then'}: {state}") for part, state in now.items()
            ]
            rows += [("stale", "; ".join(why))] if why else []
            for line in listing.aligned(rows):
                click.echo(f"  {line}")
    if check and any(state not in HOLDS for _, _, now, _ in pictures for state in now.values()):
        sys.exit(1)
