"""Where a figure's results lie, and how they are read: the CSV, compressed or not, and the sidecar beside it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrepro.errors import UserError
from fedrepro.ledger import COUNTS
from fedrepro.results.schema import COLUMNS, Sidecar, changes
from fedrepro.spec import nodes
from fedrepro.spec.find import is_of_project, stored_under, within
from fedrepro.spec.model import Figure
from fedrepro.spec.read import build, load

if TYPE_CHECKING:
    import pandas as pd


class Damaged(UserError):
    """Results that cannot be read, or that are not those that were written."""


SET_FOLDER = "set"
"""The folder of results that are not a figure's own: of changed specs, and of copies that kept a figure's name."""


def stem(root: Path, figure: Figure) -> Path:
    """Where a figure's results or plots lie below ``root``, which add their suffixes; see ``place``."""
    return place(root, figure.tier, figure.paper, figure.figure, figure.sets, figure.path)


def place(root: Path, tier: str, paper: str, figure: str, sets: Iterable[str] = (), path: str | Path = "") -> Path:
    """``<root>/<tier>/<paper>/<figure>``, or the same below ``<root>/set/<name>``.

    There lie the results of a spec with options (but for the number of trials, which adds to what there is), under
    their names, and of a spec at ``path`` that says it is a figure of the project and is another file.
    """
    other = [within(path)] if path and not is_of_project(path, paper, figure) else []
    name = _file_name(",".join([*other, *changes(sets)]))
    if name and root.parts[-2:] != (SET_FOLDER, name):
        root = root / SET_FOLDER / name
    return root / tier / paper / figure


def _file_name(text: str) -> str:
    """A text as the name of a folder; what files cannot be called is '_', and a long one ends in its hash."""
    name = re.sub(r"[^A-Za-z0-9_.,=+-]+", "_", text).strip("_.")
    return name if len(name) <= 80 else f"{name[:64]}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


BESIDE = ("incomplete", "stand-in")
"""Why results may lie beside those of a figure, as part of their names: they hold less than what stands there."""


def with_suffix(base: Path, suffix: str) -> Path:
    """A file of the results at ``base``, which may have dots in its name."""
    return base.with_name(base.name + suffix)


PACKED: dict[str, Callable[[bytes], bytes]] = {".xz": lzma.decompress, ".gz": gzip.decompress}
"""Suffixes of compressed files; the repository's are ``.xz``, half the size of ``.gz``."""

STATES = ("ok", "diverged", "failed")
"""What may have become of a run."""


def beside(base: Path, why: str) -> Path:
    """The stem of results that lie beside those at ``base``."""
    return with_suffix(base, f".{why}")


def read_sidecar(base: Path) -> Sidecar | None:
    """The sidecar of the results at ``base``, or None where there are none. Raises Damaged where it is none."""
    path = with_suffix(base, ".json")
    try:
        return Sidecar.parse(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise Damaged(
            f"{path}: cannot be read ({error}); restore it with git, or remove it and its .csv to compute them again"
        ) from None


def results_file(base: Path) -> Path | None:
    """A figure's CSV, or its compressed copy (``.csv.xz``, as large ones are kept in the repository), or None."""
    return _there(base, ".csv")


def points_file(base: Path) -> Path | None:
    """The file with a figure's arrays, compressed or not, or None."""
    return _there(base, ".points.csv")


def _there(base: Path, suffix: str) -> Path | None:
    found = (with_suffix(base, suffix + packed) for packed in ("", *PACKED))
    return next((path for path in found if path.exists()), None)


def content(table: Path) -> bytes:
    """The bytes of a CSV, compressed or not. Raises Damaged where it cannot be read."""
    try:
        body = table.read_bytes()
        return PACKED[table.suffix](body) if table.suffix in PACKED else body
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise Damaged(f"{table}: cannot be read ({error}); restore it with git, or remove it") from None


def content_hash(table: Path) -> str:
    """sha256 of a CSV, uncompressed."""
    return hashlib.sha256(content(table)).hexdigest()


def frame(table: Path, sha256: str = "") -> pd.DataFrame:
    """The tidy frame of a results CSV, compressed or not.

    sha256 : what the sidecar says of its content; '' where it says nothing, as of numbers that come from elsewhere.
    Raises Damaged where the file is not the one that was written, or holds no results.
    """
    import pandas as pd

    body = content(table)
    _same(table, body, sha256)
    try:
        found = pd.read_csv(io.BytesIO(body), dtype={"partition": str, "parameters": str})
    except (ValueError, OverflowError) as error:  # pandas' parser errors are ValueErrors
        raise Damaged(f"{table}: cannot be read as a CSV file ({str(error).strip()})") from None
    lacking = [name for name in COLUMNS if name not in found.columns]
    if lacking:
        raise Damaged(
            f"{table}: not a results file of `fedrepro run`: it has no column '{lacking[0]}' "
            f"(columns wanted: {', '.join(COLUMNS)})"
        )
    if not sha256 and (wrong := _wrong(found)):
        raise Damaged(f"{table}: not a results file of `fedrepro run`: {wrong}")
    return found


def _wrong(found: pd.DataFrame) -> str:
    """What is wrong with rows of which nothing is known; '' where nothing is."""
    import pandas as pd

    if found.empty:
        return ""
    for name in ("trial", "round", *COUNTS, "value"):
        if pd.api.types.is_bool_dtype(found[name]) or not pd.api.types.is_numeric_dtype(found[name]):
            return f"its column '{name}' holds something else than numbers"
    if found["series"].isna().any() or found["trial"].isna().any():
        return "a row does not say whose it is"
    if not found["status"].isin(STATES).all():
        return f"a row's status is none of {', '.join(STATES)}"
    done = found[found["status"] != "failed"]
    if done[["round", "metric"]].isna().any(axis=None):
        return "a row does not say what it measures"
    if (done.groupby(["series", "trial", "metric"], sort=False)["round"].diff() <= 0).any():
        return "the rounds of a run are not in order"
    return ""


def points(base: Path, sidecar: Sidecar) -> pd.DataFrame | None:
    """The arrays beside the results at ``base``, or None where there are none; errors as of ``frame``."""
    import pandas as pd

    path = points_file(base)
    if path is None:
        return None
    body = content(path)
    _same(path, body, sidecar.points_sha256)
    try:
        found = pd.read_csv(io.BytesIO(body))
    except (ValueError, OverflowError) as error:
        raise Damaged(f"{path}: cannot be read as a CSV file ({str(error).strip()})") from None
    if list(found.columns[:4]) != ["series", "trial", "array", "index"]:
        raise Damaged(f"{path}: not a file of arrays of `fedrepro run`: its columns are others")
    return found


def _same(path: Path, body: bytes, sha256: str) -> None:
    if sha256 and hashlib.sha256(body).hexdigest() != sha256:
        raise Damaged(
            f"{path}: not the file that was written: the sidecar beside it describes another content; restore it with "
            "git, or compute it again with `fedrepro run`"
        )


def as_written(base: Path, sidecar: Sidecar) -> bool:
    """Whether the results at ``base``, which are there, are those that their sidecar describes."""
    table, arrays = results_file(base), points_file(base)
    if table is None or content_hash(table) != sidecar.csv_sha256:
        return False
    return not sidecar.points_sha256 or (arrays is not None and content_hash(arrays) == sidecar.points_sha256)


def with_results(
    paths: Iterable[Path], tier: str, root: Path, must: bool = False, sets: Sequence[str] = ()
) -> Iterator[tuple[Figure, Any, Sidecar]]:
    """Each figure that has results at the tier, with its tidy frame and its sidecar.

    sets : options of ``run --set`` whose results are meant; those a result was computed with are applied again, so that
    the figure shows what was run. With ``must``, a spec without results is a UserError.
    """
    for path in paths:
        node = nodes.read(path)
        paper, name = stored_under(node)
        base = place(root, tier, paper, name, sets, path)
        table = results_file(base)
        if table is None:
            if must:
                options = "".join(f" --set '{one}'" for one in sets)
                raise UserError(
                    f"{path}: no results at the {tier} tier in {root}{f' with{options}' if options else ''}; "
                    f"`fedrepro run {path} --tier {tier}{options}` makes them"
                )
            continue
        figure = load(path, tier, sets)
        sidecar = read_sidecar(base) or Sidecar()
        if sidecar.sets != tuple(sets):
            figure = build(node, str(path), tier, sidecar.sets)
        yield figure, frame(table, sidecar.csv_sha256), sidecar
