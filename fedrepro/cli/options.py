"""Options and arguments that several commands share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from fedrepro.errors import UserError
from fedrepro.spec.find import specs
from fedrepro.spec.tiers import TIERS


def complete_spec(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The specs whose path begins so, for the shell."""
    return [str(p) for p in specs() if str(p).startswith(incomplete)]


spec_arguments = click.argument("specs", nargs=-1, required=True, metavar="SPEC...", shell_complete=complete_spec)
tier_option = click.option(
    "--tier", type=click.Choice(TIERS), default="quick", show_default=True, help="How much to compute."
)
set_option = click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="Override a key of the spec, e.g. --set rounds=50."
)
stand_in_option = click.option(
    "--stand-in/--no-stand-in", default=False, help="Use labelled surrogate data where a dataset is absent."
)
results_option = click.option(
    "--results",
    "results_dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    help="Where results lie.",
)
plots_option = click.option(
    "--plots",
    "plots_dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("plots"),
    show_default=True,
    help="Where pictures go.",
)


class Memory(click.ParamType):
    """An amount of memory as people write it: 8G, 512M, 1.5GB, 2 GiB."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Bytes."""
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kMGT])(i?)B?\s*", str(value), re.IGNORECASE)
        size = 0.0
        if found:
            base = 1024.0 if found[3] else 1000.0
            size = float(found[1]) * base ** ("kmgt".index(found[2].lower()) + 1)
        if not size > 0.0:
            raise UserError(f"--memory {value}: must be an amount of memory such as 8G, 512M or 1.5GB")
        return size


memory_option = click.option(
    "--memory", type=Memory(), metavar="SIZE", help="Take as few workers as fit into this much memory (8G, 512M)."
)
