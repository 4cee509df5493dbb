"""The command ``verdict``."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fedrepro.claims.evidence import NONE, PAPER
from fedrepro.cli.options import complete_spec, evidence_option, json_option, results_option, set_option
from fedrepro.errors import UserError
from fedrepro.spec.find import find_some

if TYPE_CHECKING:
    from fedrepro.claims.judge import Row


@click.command()
@click.argument("specs", nargs=-1, metavar="[SPEC...]", shell_complete=complete_spec)
@evidence_option("judge")
@set_option
@json_option
@results_option
def verdict(specs: tuple[str, ...], tier: str, sets: tuple[str, ...], as_json: bool, results_dir: Path) -> None:
    """Print for each claim whether it holds in the available results.

    At the paper tier, on the paper's data and with all trials, a claim is reproduced, not reproduced or within noise.
    With weaker evidence (fewer trials, a variant of the data, a smaller tier, a stand-in) it holds, fails or is
    undecided.

    \b
    Examples:
      fedrepro verdict
      fedrepro verdict fedc/fig5 --tier paper
      fedrepro verdict gcca/fig4 --json
    """
    from fedrepro.claims import distinct
    from fedrepro.report import gather

    paths = find_some(specs)
    by_figure = {path: gather.verdicts(path, tier, results_dir, sets) for path in paths}
    rows = [row for judged in by_figure.values() for row in judged]
    lacking = [path for path in paths if not by_figure[path] and not gather.has_results(path, tier, results_dir, sets)]
    where = "" if tier == gather.BEST else f" at the {tier} tier"
    more = ("" if tier == gather.BEST else f" --tier {tier}") + "".join(f" --set '{option}'" for option in sets)
    if specs and lacking:
        raise UserError(
            f"{lacking[0]}: no results{where} in {results_dir}; `fedrepro run {lacking[0]}{more}` makes them"
        )
    if not rows:
        raise UserError(f"no results with claims{where} in {results_dir}; `fedrepro run SPEC{more}` makes them")
    if as_json:
        click.echo(json.dumps([_facts(row) for row in rows], indent=1))
        return
    for row in rows:
        click.echo(f"{row.verdict:<16} {row.claim.id:<22} {row.claim.says}\n{'':<16} {row.reason}")
    counts = Counter((r.verdict, r.level) for r in rows)
    by_verdict = [f"{n} {name}" + _level(level) for (name, level), n in counts.items()]
    click.echo("; ".join([*by_verdict, distinct.in_words(rows)]))
    if recomputed := gather.recomputed(paths, tier, results_dir):
        click.echo(f"{recomputed} (receipts are not signed; `fedrepro receipts` lists them)")


def _level(level: str) -> str:
    return "" if level in (PAPER, NONE) else f" ({level})"


def _finite(number: float) -> float | None:
    """Return the number, None if it is infinite or nan: JSON has neither."""
    return number if math.isfinite(number) else None


def _facts(row: Row) -> dict[str, Any]:
    claim = row.claim
    return {
        **{"figure": row.figure, "tier": row.tier, "id": claim.id, "says": claim.says, "where": claim.where},
        **{"panel": claim.panel, "check": claim.check, "reading": claim.reading, "note": claim.note},
        **{"verdict": row.verdict, "level": row.level, "evidence": row.evidence, "why": row.why, "trials": row.trials},
        "margins": [
            {"value": _finite(m.value), "low": _finite(m.low), "high": _finite(m.high), "unit": unit}
            for m, unit in zip(row.margins, row.units, strict=True)
        ],
        "trials_to_decide": row.trials_to_decide,
        **({"theorem": claim.theorem, "promise": row.promise} if claim.theorem else {}),
    }
