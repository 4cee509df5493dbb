"""The command ``completion``."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the shell completion script.

    \b
    Example, for bash:
      eval "$(fedrepro completion bash)"
    """
    from click.shell_completion import get_completion_class

    cls = get_completion_class(shell)
    assert cls is not None
    main = click.get_current_context().find_root().command
    click.echo(cls(main, {}, "fedrepro", "_FEDREPRO_COMPLETE").source())
