"""Where a figure's results lie, and how they are read: the CSV, compressed or not, and the sidecar beside it."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from fedrepro.errors import UserError
from fedrepro.results.schema import Sidecar
from fedrepro.spec import nodes
from fedrepro.spec.find import stored_under
from fedrepro.spec.model import Figure
from fedrepro.spec.read import build, load


def stem(root: Path, figure: Figure) -> Path:
    """``<root>/<tier>/<paper>/<figure>``: results and plots add their suffixes."""
    return root / figure.tier / figure.paper / figure.figure


BESIDE = ("incomplete", "stand-in")
"""Why results may lie beside those of a figure, as part of their names: they hold less than what stands there."""


def with_suffix(base: Path, suffix: str) -> Path:
    """A file of the results at ``base``, which may have dots in its name."""
    return base.with_name(base.name + suffix)


def beside(base: Path, why: str) -> Path:
    """The stem of results that lie beside those at ``base``."""
    return with_suffix(base, f".{why}")


def read_sidecar(base: Path) -> Sidecar | None:
    """The sidecar of the results at ``base``, or None where there are none. Raises UserError where it is damaged."""
    path = with_suffix(base, ".json")
    try:
        return Sidecar.parse(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path}: cannot be read ({error}); restore it with git, or remove it and its .csv to compute them again"
        ) from None


def results_file(base: Path) -> Path | None:
    """A figure's CSV, or its compressed copy (``.csv.gz``, as large ones are kept in the repository), or None."""
    found = (with_suffix(base, suffix) for suffix in (".csv", ".csv.gz"))
    return next((path for path in found if path.exists()), None)


def content(table: Path) -> bytes:
    """The bytes of a CSV, compressed or not. Raises UserError where it cannot be read."""
    try:
        body = table.read_bytes()
        return gzip.decompress(body) if table.suffix == ".gz" else body
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{table}: cannot be read ({error}); restore it with git, or remove it") from None


def content_hash(table: Path) -> str:
    """sha256 of a CSV, uncompressed."""
    return hashlib.sha256(content(table)).hexdigest()


def with_results(
    paths: Iterable[Path], tier: str, root: Path, must: bool = False
) -> Iterator[tuple[Figure, Any, Sidecar]]:
    """Each figure that has results at the tier, with its tidy frame and its sidecar.

    The ``--set`` options a result was computed with are applied again, so that the figure shows what was run. With
    ``must``, a spec without results is a UserError.
    """
    import pandas as pd

    for path in paths:
        node = nodes.read(path)
        paper, name = stored_under(node)
        table = results_file(root / tier / paper / name)
        if table is None:
            if must:
                raise UserError(
                    f"{path}: no results at the {tier} tier in {root}; `fedrepro run {path} --tier {tier}` makes them"
                )
            continue
        figure = load(path, tier)
        sidecar = read_sidecar(stem(root, figure)) or Sidecar()
        if sidecar.sets:
            figure = build(node, str(path), tier, sidecar.sets)
        frame = pd.read_csv(table, keep_default_na=True, dtype={"partition": str, "parameters": str})
        yield figure, frame, sidecar
