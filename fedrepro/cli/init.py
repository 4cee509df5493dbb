"""The command ``init``: a folder to work in."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from fedrepro.errors import UserError
from fedrepro.files import atomically
from fedrepro.spec.find import FOLDER, bundled, specs

EXAMPLE = "mine/first.yaml"
_SPEC = """\
# A figure of your own: copy this file, change a line, `fedrepro validate mine/NAME`, run it.
paper: mine
figure: first
title: "FedCAvg and FedCGds on handmade data"
problem: {name: clustering}
trials: 3
rounds: 60

datasets:
  syn: {name: synthetic, variant: clean, M: 50, N: 600, K: 5}  # or your own: {name: file, path: my.npz, labels: y}
partitions:
  unf: {name: uniform, P: 20}
dataset: syn
partition: unf

panels:
  a:
    title: "Objective by round"
    yscale: log
    curves:
      - {algorithm: fedcavg, Q1: 10, Q2: [1, 10]}
      - {algorithm: fedcgds, m: [5, 20], Q1: 10, Q2: 10}
  b: {like: a, title: "Objective by numbers sent", x: uplink_scalars}

claims:
  - id: mine.first
    says: "Gradient sharing ends lower than model averaging"
    where: "ours"
    panel: a
    check: y(at='end', algorithm='fedcgds', m=20) < y(at='end', algorithm='fedcavg', Q2=10)

tiers:
  smoke: {rounds: 3, trials: 1}
  quick: {}
  paper: {}
"""
_MAKEFILE = """\
# Common commands of this project; `fedrepro --help` lists all.
TIER ?= quick

.PHONY: all mine report verdict
all: ## every figure of experiments/, drawn, and the report
\tfedrepro run $(filter-out %/discrepancies.yaml,$(wildcard experiments/*/*.yaml)) --tier $(TIER) --stand-in --plot
\tfedrepro report

mine: ## the figures of experiments/mine
\tfedrepro run experiments/mine/*.yaml --tier $(TIER) --plot

report: ## one page on all results
\tfedrepro report

verdict: ## which claims held
\tfedrepro verdict
"""
_IGNORED = "results/.runs/\nresults/.scratch/\nresults/.locks/\n"


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
def init(folder: Path) -> None:
    """Create a project in DIR: the papers' experiments, an example spec of your own, and a Makefile.

    Commands called in DIR or below it store their results and pictures in DIR. Existing files are not changed.

    \b
    Examples:
      fedrepro init my-study
      cd my-study && fedrepro run mine/first --plot
    """
    if specs(folder / FOLDER):
        raise UserError(f"{folder}: is already a project ({folder / FOLDER} contains specs); nothing was changed")
    files = {"Makefile": _MAKEFILE, ".gitignore": _IGNORED, f"{FOLDER}/{EXAMPLE}": _SPEC}
    existing = [name for name in (*files, FOLDER) if (folder / name).exists()]
    if existing:
        raise UserError(f"{folder}: already contains {existing[0]}; nothing was changed. Name an empty or new folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copytree(bundled(), folder / FOLDER)
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            atomically(folder / name, text.encode())
    except OSError as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror})") from None
    papers = len({path.parent for path in specs(bundled())})
    click.echo(f"{folder}: {len(specs(bundled()))} figures of {papers} folders, and {FOLDER}/{EXAMPLE}")
    click.echo(f"next: cd {folder} && fedrepro run mine/first --plot")
