"""The command ``lock``."""

from __future__ import annotations

from pathlib import Path

import click

from fedrepro.cli.options import results_option, spec_arguments
from fedrepro.spec.find import load_all
from fedrepro.spec.tiers import TIERS


@click.command()
@spec_arguments
@click.option("--after-results", is_flag=True, help="Lock although results exist; the lock and verdicts say so.")
@results_option
def lock(specs: tuple[str, ...], after_results: bool, results_dir: Path) -> None:
    """Lock claims before the first run, so that verdicts can say that they were written before the results.

    The lock, FIGURE.lock.json next to the spec, records the claims (sentence, check, reading, names of curves), the
    words of the lexicon that they use, the data with their hashes, the number of trials, and a hash of the settings of
    their curves at every tier. `run` stores the digest of the lock with its results. `verdict` and the report then say
    "locked before results", or what was changed after the lock.

    A spec with results or finished runs is refused. Commit the lock before you run: the date of a published commit is
    what others can check.

    \b
    Examples:
      fedrepro lock mine/first
      git add experiments/mine && git commit -m "Claims of mine/first, locked"
      fedrepro run mine/first
      fedrepro verdict mine/first
    """
    from fedrepro.runs.lock_claims import lock_claims

    by_tier = {tier: load_all(specs, tier, ()) for tier in TIERS}
    for number in range(len(by_tier[TIERS[0]])):
        locked = lock_claims({tier: by_tier[tier][number] for tier in TIERS}, results_dir, after_results)
        count = len(locked.lock.claims)
        known = f", after results at the {' and '.join(locked.lock.existing)} tier" if locked.lock.existing else ""
        click.echo(f"{locked.lock.figure}: {count} claim{'s' if count > 1 else ''} locked{known}, in {locked.path}")
        click.echo(f"  sha256 {locked.digest}")
        for name in sorted({data.dataset for data in locked.lock.data if data.state in ("absent", "damaged")}):
            click.secho(f"  note: {name} is not here, so its content is not locked", fg="yellow")
