"""The command ``whence``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from fedrepro.cli import listing
from fedrepro.cli.options import json_option, results_option


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="End with exit code 1 unless this spec and these results would draw them.")
@json_option
@results_option
def whence(files: tuple[Path, ...], check: bool, as_json: bool, results_dir: Path) -> None:
    """Say what pictures were drawn from, and whether that is still what is here.

    Every PNG, PDF and SVG that `plot` draws carries the command, the tier, the commit that computed its results, and
    the SHA-256 of its spec and results. The spec and results at hand are the same, changed, or not here; of a spec it
    is told where only claims, notes, comments or other tiers changed, which draw nothing.

    \b
    Examples:
      fedrepro whence plots/paper/fedc/fig5.png
      fedrepro whence paper/figures/*.pdf --check
    """
    from fedrepro.plotting import provenance

    found = [
        (path, facts, provenance.states(facts, results_dir)) for path in files for facts in [provenance.read(path)]
    ]
    if as_json:
        click.echo(json.dumps([{"file": str(path), **facts, "now": now} for path, facts, now in found], indent=1))
    else:
        for path, facts, now in found:
            click.secho(str(path), bold=True)
            rows = [
                ("drawn by", facts["command"]),
                ("results of", facts["results_of"]),
                ("tier", facts["tier"]),
                ("commit", facts["commit"] or "not known"),
                *(
                    (name, f"{facts.get(f'{name}_sha256', '')[:16] or 'none then'}: {state}")
                    for name, state in now.items()
                ),
            ]
            for line in listing.aligned(rows):
                click.echo(f"  {line}")
    if check and any(state not in provenance.HOLDS for _, _, now in found for state in now.values()):
        sys.exit(1)
