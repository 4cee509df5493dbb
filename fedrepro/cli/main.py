"""The command group ``fedrepro``, and how it reports errors. Each command has its own module in this folder."""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import importlib
import os
import sys
from typing import Any

import click

from fedrepro import __version__, cpu
from fedrepro.errors import FULL, UserError, nearest

COMMANDS = {
    "affected": ("affected:affected", "Print which figures a change of a method or a file affects."),
    "check": ("check:check", "Compute a sample of stored runs again and compare the results."),
    "cite": ("cite:cite", "Print BibTeX entries of papers, figures and fedrepro."),
    "compare": ("report:compare", "Print which curves differ between two sets of results."),
    "completion": ("shell_completion:completion", "Print the shell completion script."),
    "data": ("data:data", "List, download, import and remove datasets."),
    "describe": ("describe:describe", "Explain a name: its parameters, metrics, source and figures."),
    "duel": ("duel:duel", "Compare two methods on a dataset."),
    "export": ("export:export", "Write pictures, numbers and LaTeX tables of figures to DIR."),
    "failures": ("failures:failures", "Print why runs failed or diverged."),
    "init": ("init:init", "Create a project in DIR."),
    "list": ("listing:list_", "List papers, figures, algorithms, datasets and other names."),
    "lock": ("lock:lock", "Lock claims before the first run."),
    "plan": ("compute:plan", "Print what `run` would compute, and how long it takes."),
    "plot": ("plot:plot", "Draw figures from their results, without computing."),
    "provenance": ("provenance:provenance", "Print what pictures were drawn from."),
    "receipts": ("receipts:receipts", "Merge receipts of `fedrepro check --receipt`."),
    "report": ("report:report", "Write the report: which claims hold and why."),
    "run": ("compute:run", "Compute figures."),
    "settings": ("settings:settings", "Run other values of the settings that a paper leaves open."),
    "show": ("report:show", "Print the end values of a figure's panels."),
    "validate": ("compute:validate", "Check specs at every tier."),
    "verdict": ("verdict:verdict", "Print for each claim whether it holds."),
    "why": ("why:why", "Print what decides the verdict on a claim."),
}
"""The module of this folder and the name of each command, and what it does. Modules are imported when called."""

OTHER_WORDS = {
    "claims": "verdict", "compute": "run", "draw": "plot", "explain": "describe", "figure": "plot", "numbers": "show",
    "results": "show", "search": "list", "sweep": "run", "table": "show", "verify": "check",
}  # fmt: skip
"""Words that users may type instead of a command, with the command."""

COMPUTING = (["check"], ["duel"], ["run"], ["settings", "run"])
"""Commands that run from a snapshot of the program (``fedrepro.snapshot``)."""


class _Group(click.Group):
    """Prints a user's error as one message, without a traceback, and exits with code 2."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        for name in ("stdout", "stderr"):  # None if the stream was closed, which libraries do not expect
            if getattr(sys, name) is None:
                setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        if not (args or kwargs):  # called by a shell, not by a program
            os.environ.setdefault("PYTHONSAFEPATH", "1")  # workers import no random.py of the current folder
            atexit.register(gc.freeze)  # Python looks through all objects once more as it ends: 0.2 s after pandas
            if _computes(sys.argv[1:]):
                return _run_from_copy()
        cpu.pin()  # before a command loads the numerical libraries
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            if error.filename is not None or error.errno not in (*FULL, errno.EIO):
                raise
            _discard_output()
            click.secho(f"error: the output cannot be written ({error.strerror})", fg="red", err=True)
            sys.exit(2)

    def invoke(self, ctx: click.Context) -> Any:
        from fedrepro.cli import colour

        ctx.color = colour.choice()
        try:
            _require_folder()
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            raise _with_key(error) from None
        except UserError as error:
            click.secho(f"error: {error}", fg="red", err=True)
            ctx.exit(2)
        except KeyboardInterrupt:
            click.echo("interrupted: finished runs are kept", err=True)
            ctx.exit(130)
        except OSError as error:  # of a user's disk, folder or file, without a message of its own
            if error.errno == errno.EPIPE or error.filename is None:
                raise
            click.secho(f"error: {_reason(error)}", fg="red", err=True)
            ctx.exit(2)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            text = f"No such option: {error.option_name}; options follow the command, as in `fedrepro verdict --json`."
            raise click.NoSuchOption(error.option_name, text, ctx=ctx) from None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args == ["help"]:
            click.echo(ctx.get_help())
            ctx.exit()
        if args and args[0] == "help":
            args = [*args[1:], "--help"]
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            valid = self.list_commands(ctx)
            near = f", did you mean '{OTHER_WORDS[args[0]]}'?" if args[0] in OTHER_WORDS else nearest(args[0], valid)
            raise UserError(f"'{args[0]}' is not a command{near} (commands: {', '.join(valid)})")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        place, summary = COMMANDS[cmd_name]
        module, _, name = place.partition(":")
        command: click.Command = getattr(importlib.import_module(f"fedrepro.cli.{module}"), name)
        command.short_help = summary
        return command

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what click writes without importing the commands, which takes three times as long."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


def _discard_output() -> None:
    """Drop what could not be written, because Python would try to write it again when it ends."""
    with contextlib.suppress(OSError):  # a stream without a file, as in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _reason(error: OSError) -> str:
    """Return what to say about a file that could not be read or written: which, or that the program itself is gone."""
    from fedrepro import snapshot

    try:
        snapshot.require()
    except UserError as lost:
        return str(lost)
    return f"{error.filename}: {error.strerror}"


ALSO_CALLED = {
    "clients": ("--set P=N", "sets the number of clients, and --set m=N how many take part in a round"),
    "participants": ("--set m=N", "sets how many clients take part in a round"),
    "bits": ("--set q=N", "sets the bits of a quantized number"),
    "seeds": ("--trials N", "sets the number of trials, each with a seed of its own"),
    "repeats": ("--trials N", "sets the number of trials"),
    "iterations": ("--rounds N", "sets the number of communication rounds"),
    "workers": ("--jobs N", "sets the number of parallel workers"),
    "cores": ("--jobs N", "sets the number of parallel workers"),
}
"""Other words for options and parameters, with what to type instead and what it does."""


def _with_key(error: click.NoSuchOption) -> click.NoSuchOption:
    """Return the error of an unknown option; for a key of a spec or a parameter, with how to override it."""
    from fedrepro import registry
    from fedrepro.spec import keys, overrides

    name = error.option_name.lstrip("-").replace("-", "_")
    takes_keys = error.ctx is not None and any("--set" in option.opts for option in error.ctx.command.params)
    of_command = {option for param in error.ctx.command.params for option in param.opts} if error.ctx else set()
    if takes_keys and name in keys.SPEC:
        hint = f"--set {name}=VALUE overrides this key of a spec"
        hint += "; --at ROUND reads the curves at a round" if name == "rounds" and "--at" in of_command else ""
    elif takes_keys and name == "seed":
        hint = overrides.SEED
    elif takes_keys and name in {key for entry in registry.methods().values() for key in entry.parameters()}:
        hint = f"--set {name}=VALUE overrides this parameter of the methods that have it"
    elif takes_keys and name in _of_data():
        hint = f"--set {name}=VALUE overrides this parameter of the data or the problem"
    elif name in ALSO_CALLED and ALSO_CALLED[name][0].split()[0] in of_command:
        hint = " ".join(ALSO_CALLED[name])
    else:
        return error
    text = f"No such option: {error.option_name}; {hint}."
    return click.NoSuchOption(error.option_name, text, ctx=error.ctx)


def _of_data() -> set[str]:
    """Return the parameters of all problems, datasets and partitions."""
    from fedrepro import registry

    made = (*registry.datasets().values(), *registry.partitions().values())
    return {key for entry in made for key in entry.parameters()}.union(
        *(p.parameters for p in registry.problems().values())
    )


def _require_folder() -> None:
    """Raise UserError if the working folder was deleted, because relative paths and child processes need it."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise UserError("the working folder was deleted; change to an existing folder (cd) and try again") from None


def _computes(words: list[str]) -> bool:
    """Return whether the words of a command line are those of a command that computes and has no snapshot yet."""
    if not any(words[: len(name)] == name for name in COMPUTING) or {"-h", "--help"} & set(words):
        return False
    from fedrepro import snapshot

    return not snapshot.is_snapshot()


def _run_from_copy() -> None:
    from fedrepro import snapshot

    try:
        snapshot.run_from_copy("fedrepro.cli.main", "main")
    except UserError as error:
        click.secho(f"error: {error}", fg="red", err=True)
        sys.exit(2)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="fedrepro")
def main() -> None:
    """Regenerate the figures of five federated-learning papers and report which of their claims hold.

    \b
    fedrepro list                              list papers, figures, algorithms and datasets
    fedrepro describe fedmgs                   explain a method: parameters, defaults, source, figures
    fedrepro run experiments/fedc/fig5.yaml    compute a figure (finished runs are reused)
    fedrepro plot experiments/fedc/fig5.yaml   draw it
    fedrepro verdict                           print the claims, and whether they hold
    """


if __name__ == "__main__":
    main()
