"""Options and arguments that several commands share."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import click

from fedrepro.errors import UserError, nearest
from fedrepro.spec import nodes
from fedrepro.spec.find import claim_ids, experiments, find_spec, names_of_specs, project, specs
from fedrepro.spec.overrides import curve_items
from fedrepro.spec.tiers import DEFAULT, TIERS


def complete_spec(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the papers, figures, claims or paths of specs that start with ``incomplete``, for shell completion."""
    names = [name for name in names_of_specs() if name.startswith(incomplete)]
    claims = [name for name in claim_ids() if name.startswith(incomplete)] if "." in incomplete else []
    return names or claims or [str(path) for path in specs(experiments()) if str(path).startswith(incomplete)]


def complete_claim(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the ids of claims that start with ``incomplete``, for shell completion."""
    return [name for name in claim_ids() if name.startswith(incomplete)]


def _root_of(ctx: click.Context) -> nodes.Node | None:
    """Return the first spec named on the command line so far; None if there is none that can be read."""
    names = [*(ctx.params.get("specs") or [ctx.params.get("figure")]), *ctx.args]  # an option without its value yet
    named = next((str(name) for name in names if name), None)  # keeps click from telling arguments from the rest
    try:
        return nodes.read(find_spec(named)) if named else None
    except UserError:
        return None


def complete_panel(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the panels of the figure named before, for shell completion."""
    root = _root_of(ctx)
    return [name for name, _ in root.under("panels") if name.startswith(incomplete)] if root is not None else []


def complete_curve(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the methods of the figure named before, for shell completion."""
    root = _root_of(ctx)
    items = [item for _, item in curve_items(root)] if root is not None else []
    methods = (str(node.plain()) for item in items for node in item.several("algorithm"))
    return sorted({method for method in methods if method.startswith(incomplete)})


def complete_set(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the keys of the figure named before, for shell completion; nested keys once a dot is typed."""
    root = _root_of(ctx)
    if root is None or "=" in incomplete:
        return []
    keys = [key for key in _keys(root) if key.split(".")[0] not in ("paper", "figure", "tiers", "claims")]
    depth = incomplete.count(".")
    return [key for key in keys if key.startswith(incomplete) and key.count(".") <= depth]


def _keys(node: nodes.Node, before: str = "") -> list[str]:
    """Return every key of a mapping and those nested in it, as ``--set`` names them."""
    keys = []
    for key, child in node.items():
        keys += [f"{before}{key}", *_keys(child, f"{before}{key}.")]
    return keys


class Choice(click.Choice[str]):
    """One of several words; an error names the nearest one. also : synonyms, with the word for each."""

    def __init__(self, choices: Iterable[str], also: Mapping[str, str] | None = None) -> None:
        super().__init__(list(choices))
        self.also = also or {}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the word. Raises click.BadParameter for another one."""
        try:
            return super().convert(self.also.get(value, value), param, ctx)
        except click.BadParameter as error:
            self.fail(error.message.rstrip(".") + (nearest(value, self.choices) or "."), param, ctx)


class Whole(click.IntRange):
    """A whole number in a range; errors contain this name instead of "integer range"."""

    name = "whole number"


spec_arguments = click.argument(
    "specs", nargs=-1, required=True, metavar="FIGURE|PAPER...", shell_complete=complete_spec
)


def evidence_option(verb: str) -> Any:
    """Return the option ``--tier`` of commands that can use the strongest evidence for each claim."""
    return _best_tier_option(f"results to {verb}; best: the strongest evidence for each claim, paper tier or quick.")


def largest_tier_option(what: str) -> Any:
    """Return the option ``--tier`` of commands that use the largest tier with results."""
    return _best_tier_option(f"{what}; best: the first of paper, quick and smoke that has results.")


def _best_tier_option(of: str) -> Any:
    choice = Choice(["best", *TIERS])
    return click.option("--tier", type=choice, default="best", show_default=True, help=f"Tier of the {of}")


tier_option = click.option(
    "--tier", type=Choice(TIERS), default=DEFAULT, show_default=True, help="Size of the experiment."
)


def _with_values(_ctx: click.Context, _param: click.Parameter, sets: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of ``--set``. Raises UserError for one without a value, which would be taken for a figure."""
    for option in sets:
        nodes.setting(option)
    return sets


set_option = click.option(
    "--set",
    "sets",
    multiple=True,
    callback=_with_values,
    metavar="KEY=VALUE",
    shell_complete=complete_set,
    help="Override a key of the spec or a parameter by its name, e.g. --set rounds=50 --set P=30.",
)
trials_option = click.option("--trials", type=Whole(min=1), help="Number of trials; the same as --set trials=N.")
rounds_option = click.option("--rounds", type=Whole(min=0), help="Number of rounds; the same as --set rounds=N.")
curve_option = click.option(
    "--curve",
    "curves",
    multiple=True,
    metavar="CURVE",
    shell_complete=complete_curve,
    help="Only these curves: a method, a label of the legend, or words of a run's name (--curve 'fedcgds m=10').",
)


def with_sizes(sets: tuple[str, ...], trials: int | None, rounds: int | None) -> tuple[str, ...]:
    """Return the ``--set`` options with those that ``--trials`` and ``--rounds`` stand for."""
    sizes = {"trials": trials, "rounds": rounds}
    return (*sets, *(f"{key}={value}" for key, value in sizes.items() if value is not None))


stand_in_option = click.option(
    "--stand-in/--no-stand-in", default=False, help="Use labelled stand-in data where a dataset is absent."
)


def in_results(folder: Path) -> str:
    """Return the option that names a folder of results in a command to type; '' for the usual folder."""
    return "" if folder == project() / "results" else f" --results {shlex.quote(str(folder))}"


def _folder_option(name: str, contents: str) -> Any:
    """Return the option of a folder of the project."""
    return click.option(
        f"--{name}",
        f"{name}_dir",
        type=click.Path(path_type=Path, file_okay=False),
        default=lambda: project() / name,
        show_default=f"{name} of the project",
        help=f"Folder of the {contents}.",
    )


results_option = _folder_option("results", "results")
plots_option = _folder_option("plots", "pictures")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


class Memory(click.ParamType):
    """An amount of memory: 8G, 512M, 1.5GB, 2 GiB."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number of bytes. Raises UserError for anything else."""
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kMGT])(i?)B?\s*", str(value), re.IGNORECASE)
        size = 0.0
        if match:
            base = 1024.0 if match[3] else 1000.0
            size = float(match[1]) * base ** ("kmgt".index(match[2].lower()) + 1)
        if not size > 0.0:
            raise UserError(f"--memory {value}: must be an amount of memory such as 8G, 512M or 1.5GB")
        return size


class PartOf(click.ParamType):
    """One part of several: 3/10."""

    name = "part"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Return the number of the part and the number of parts. Raises UserError for anything else."""
        match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", str(value))
        number, of = map(int, match.groups()) if match else (0, 0)
        if not 1 <= number <= of:
            raise UserError(f"--part {value}: must be one of 1/N to N/N for N parts, for instance 3/10")
        return number, of


WIDEST = 50
"""The largest width of a picture in inches; a much larger one does not fit into memory."""


class Length(click.ParamType):
    """A length with its unit: 3.4in, 8.6cm, 86mm, 245pt (72 pt = 1 in)."""

    name = "length"
    inches: ClassVar[dict[str, float]] = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, str]:
        """Return the length in inches, and the text. Raises UserError for anything else."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?|\.\d+)(in|cm|mm|pt)", str(value))
        if match is None:
            raise UserError(f"--width {value}: must be a length with its unit, such as 3.4in, 8.6cm, 86mm or 245pt")
        inches = float(match[1]) * self.inches[match[2]]
        if inches > WIDEST:
            raise UserError(f"--width {value}: must be at most {WIDEST} in")
        return inches, str(value)


memory_option = click.option(
    "--memory", type=Memory(), metavar="SIZE", help="Use only as many workers as fit into this much memory (8G, 512M)."
)
