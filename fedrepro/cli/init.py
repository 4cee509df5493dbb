"""The command ``init``: a folder to work in."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import click

from fedrepro.errors import UserError
from fedrepro.files import atomically
from fedrepro.spec.find import FOLDER, bundled, specs

TEMPLATE = Path(__file__).parent / "new_project"
"""The files of a new project; ``gitignore`` has no dot here, so that git does not obey it."""

EXAMPLE = f"{FOLDER}/mine/first.yaml"


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
def init(folder: Path) -> None:
    """Create a project in DIR. It has the papers' experiments, an example spec of your own, and a Makefile.

    Commands called in DIR or below it store their results and pictures in DIR. Existing files are not changed.

    \b
    Examples:
      fedrepro init my-study
      cd my-study && fedrepro run mine/first --plot
    """
    if specs(folder / FOLDER):
        raise UserError(f"{folder}: is already a project ({folder / FOLDER} contains specs); nothing was changed")
    names = {"Makefile": "Makefile", "gitignore": ".gitignore", EXAMPLE: EXAMPLE}
    files = {name: (TEMPLATE / source).read_bytes() for source, name in names.items()}
    existing = [name for name in (*files, FOLDER) if (folder / name).exists()]
    if existing:
        raise UserError(f"{folder}: already contains {existing[0]}; nothing was changed. Name an empty or new folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copytree(bundled(), folder / FOLDER)
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            atomically(folder / name, content)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror})") from None
    papers = len({path.parent for path in specs(bundled())})
    click.echo(f"{folder}: {len(specs(bundled()))} figures of {papers} folders, and {EXAMPLE}")
    click.echo(f"next: cd {shlex.quote(str(folder))} && fedrepro run mine/first --plot")
