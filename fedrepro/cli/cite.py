"""The command ``cite``."""

from __future__ import annotations

import click

from fedrepro.cli.options import complete_spec
from fedrepro.spec import nodes
from fedrepro.spec.bibliography import PROGRAM, entries
from fedrepro.spec.find import find_some, stored_under

UNSOURCED = "its spec names no source"
"""The comment on a figure of one's own."""


@click.command()
@click.argument("names", nargs=-1, metavar="[PAPER|FIGURE...]", shell_complete=complete_spec)
def cite(names: tuple[str, ...]) -> None:
    """Print BibTeX entries: of all papers, or of those that figures come from, and of fedrepro.

    For a figure, a comment names its place in its paper.

    \b
    Examples:
      fedrepro cite
      fedrepro cite gcca
      fedrepro cite fedc/fig5 >> references.bib
    """
    known = entries()
    keys = [key for key in known if key != PROGRAM]
    comments: list[str] = []
    if names and not set(names) <= set(keys):
        roots = [nodes.read(path) for path in find_some(names)]
        names_of = ["/".join(stored_under(root)) for root in roots]
        sources = [str(root.value["source"].plain()) if "source" in root.value else UNSOURCED for root in roots]
        comments = [f"% {name}: {source}" for name, source in zip(names_of, sources, strict=True)]
        keys = [key for key in keys if key in {name.partition("/")[0] for name in names_of}]
    elif names:
        keys = [key for key in keys if key in names]
    click.echo("\n\n".join(filter(None, ["\n".join(comments), *(known[key] for key in (*keys, PROGRAM))])))
