"""Find and read a figure's results: the CSV, compressed or not, and the sidecar next to it."""

from __future__ import annotations

import dataclasses
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
from fedrepro.results.consistency import follows_plan, plan_hash
from fedrepro.results.schema import COLUMNS, POINTS, Sidecar, changes
from fedrepro.spec import nodes
from fedrepro.spec.find import called, is_of_project, is_study, project, stored_under, within
from fedrepro.spec.model import Figure
from fedrepro.spec.read import build, load
from fedrepro.spec.tiers import BEST, DEFAULT, TIERS

if TYPE_CHECKING:
    import pandas as pd


class Damaged(UserError):
    """Results that cannot be read, or that differ from what was written."""


SET_FOLDER = "set"
"""The folder of results of changed specs, and of copies of specs that kept a figure's name."""
OTHER_VALUES = ".settings"
"""The end of the folder of a figure's results with other values of open settings, beside its own results."""


def stem(root: Path, figure: Figure) -> Path:
    """Return the path of a figure's results or plots below ``root``, without suffix; see ``place``."""
    return place(root, figure.tier, figure.paper, figure.figure, figure.sets, figure.path)


def place(root: Path, tier: str, paper: str, figure: str, sets: Iterable[str] = (), path: str | Path = "") -> Path:
    """Return ``<root>/<tier>/<paper>/<figure>``, or the same below ``<root>/set/<name>``.

    A user's own study has the default tier, which reduces nothing, in ``<root>/<study>/<figure>``.
    Results computed with ``--set`` go to ``set/<name>``, except ``trials``, which extends the existing results; so do
    results of a spec at ``path`` that has the name of a figure of the project but is another file.
    """
    other = [within(path)] if path and not is_of_project(path, paper, figure) else []
    name = _file_name(",".join([*other, *changes(sets)]))
    if name and root.parts[-2:] != (SET_FOLDER, name):
        root = root / SET_FOLDER / name
    return (root if is_study(paper) and tier == DEFAULT else root / tier) / paper / figure


def require_own(figure: Figure, root: Path) -> None:
    """Raise UserError if the results of a figure are those of another spec with its paper and figure."""
    base = stem(root, figure)
    sidecar = read_sidecar(base)
    if sidecar is None or sidecar.spec in ("", within(figure.path)):
        return
    other = project() / sidecar.spec
    if not other.is_file() or other.samefile(figure.path):
        return
    try:
        known = stored_under(nodes.read(other))
    except UserError:  # no longer a spec
        return
    if known == (figure.paper, figure.figure):
        raise UserError(
            f"{figure.path}: {with_suffix(base, '.csv')} contains the results of {other}, which has the same paper and "
            "figure; change `figure:` in one of them"
        )


def stems(root: Path) -> list[Path]:
    """Return the stems of all results with a sidecar in a folder, except those computed with ``--set``."""
    endings = [f".json{packed}" for packed in ("", *PACKED)]
    of_tiers, of_studies = (
        {path.with_name(path.name.removesuffix(end)) for end in endings for path in root.glob(f"{folders}*{end}")}
        for folders in ("*/*/", "*/")
    )
    found = of_tiers | {base for base in of_studies if results_file(base) is not None}
    return sorted(base for base in found if base.suffix not in _NO_SIDECARS)


def _file_name(text: str) -> str:
    """Return a text as the name of a folder: other characters become '_', and a long name ends in its hash."""
    name = re.sub(r"[^A-Za-z0-9_.,=+-]+", "_", text).strip("_.")
    return name if len(name) <= 80 else f"{name[:64]}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


BESIDE = ("incomplete", "stand-in")
"""Suffixes of results stored beside a figure's own, because they contain less than these."""


def with_suffix(base: Path, suffix: str) -> Path:
    """Return a file of the results at ``base``, whose name may contain dots."""
    return base.with_name(base.name + suffix)


PACKED: dict[str, Callable[[bytes], bytes]] = {".xz": lzma.decompress, ".gz": gzip.decompress}
"""Suffixes of compressed files; the repository's are ``.xz``, half the size of ``.gz``."""

_NO_SIDECARS = (".check", ".answers", ".readings", ".effects")
"""Suffixes of other files beside results that end like sidecars. Only earlier versions wrote the last two."""

STATES = ("ok", "diverged", "failed")
"""The possible outcomes of a run."""


def beside(base: Path, why: str) -> Path:
    """Return the stem of results stored beside those at ``base``."""
    return with_suffix(base, f".{why}")


def read_sidecar(base: Path) -> Sidecar | None:
    """Return the sidecar of the results at ``base``, or None if there is none. Raises Damaged if it is invalid."""
    path = _existing(base, ".json")
    if path is None:
        return None
    try:
        return Sidecar.parse(json.loads(unpacked(path)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise Damaged(
            f"{path}: cannot be read ({error}); restore it with git, or remove it and its .csv to compute them again"
        ) from None


def results_file(base: Path) -> Path | None:
    """Return a figure's CSV, or its compressed copy (``.csv.xz``, as in the repository), or None."""
    return _existing(base, ".csv")


def points_file(base: Path) -> Path | None:
    """Return the file of a figure's arrays, compressed or not, or None."""
    return _existing(base, ".points.csv")


def checks_file(base: Path) -> Path | None:
    """Return the file of the checks of a figure's results, compressed or not, or None."""
    return _existing(base, ".check.json")


def _existing(base: Path, suffix: str) -> Path | None:
    paths = (with_suffix(base, suffix + packed) for packed in ("", *PACKED))
    return next((path for path in paths if path.exists()), None)


def unpacked(path: Path) -> bytes:
    """Return the uncompressed bytes of a file. Raises OSError, EOFError, zlib.error or lzma.LZMAError."""
    body = path.read_bytes()
    return PACKED[path.suffix](body) if path.suffix in PACKED else body


def content(table: Path) -> bytes:
    """Return the uncompressed bytes of a CSV. Raises Damaged if it cannot be read."""
    try:
        return unpacked(table)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise Damaged(f"{table}: cannot be read ({error}); restore it with git, or remove it") from None


def content_hash(table: Path) -> str:
    """Return the sha256 of an uncompressed CSV."""
    return hashlib.sha256(content(table)).hexdigest()


def frame(table: Path, sha256: str = "") -> pd.DataFrame:
    """Return the tidy frame of a results CSV, compressed or not, without the columns of parameters.

    sha256 : the hash of its content in the sidecar, or '' for numbers from another source, whose rows are checked.
    Raises Damaged if the file differs from what was written, or contains no results.
    """
    body = content(table)
    _check_hash(table, body, sha256)
    rows = _parse(table, body, usecols=COLUMNS.__contains__, dtype={"partition": str})
    lacking = [name for name in COLUMNS if name not in rows.columns]
    if lacking:
        raise Damaged(
            f"{table}: not a results file of `fedrepro run`: it has no column '{lacking[0]}' "
            f"(required columns: {', '.join(COLUMNS)})"
        )
    if not sha256 and (fault := _fault(rows)):
        raise Damaged(f"{table}: not a results file of `fedrepro run`: {fault}")
    return rows


def _parse(path: Path, body: bytes, **options: Any) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.DataFrame(pd.read_csv(io.BytesIO(body), **options))
    except (ValueError, OverflowError) as error:  # pandas' parser errors are ValueErrors
        raise Damaged(f"{path}: cannot be read as a CSV file ({str(error).strip()})") from None


def _fault(rows: pd.DataFrame) -> str:
    """Return what is wrong with rows from another source; '' if nothing is."""
    import pandas as pd

    if rows.empty:
        return ""
    for name in ("trial", "round", *COUNTS, "value"):
        if pd.api.types.is_bool_dtype(rows[name]) or not pd.api.types.is_numeric_dtype(rows[name]):
            return f"its column '{name}' contains values that are not numbers"
    if rows["series"].isna().any() or rows["trial"].isna().any():
        return "a row has no series or no trial"
    if not rows["status"].isin(STATES).all():
        return f"a row's status is none of {', '.join(STATES)}"
    done = rows[rows["status"] != "failed"]
    if done[["round", "metric"]].isna().any(axis=None):
        return "a row has no round or no metric"
    if (done.groupby(["series", "trial", "metric"], sort=False)["round"].diff() <= 0).any():
        return "the rounds of a run are not in order"
    return ""


def points(base: Path, sidecar: Sidecar) -> pd.DataFrame | None:
    """Return the arrays of the results at ``base``, or None if there are none; raises as ``frame``."""
    path = points_file(base)
    if path is None:
        return None
    body = content(path)
    _check_hash(path, body, sidecar.points_sha256)
    arrays = _parse(path, body)
    if list(arrays.columns[: len(POINTS)]) != list(POINTS):
        raise Damaged(f"{path}: not a file of arrays of `fedrepro run`: its columns must be {', '.join(POINTS)}, ...")
    return arrays


def _no_results(path: Path, tier: str, root: Path, sets: Sequence[str]) -> str:
    """Return that a figure has no results at a tier, and which command computes them."""
    name, options = called(path), "".join(f" --set '{option}'" for option in sets)
    others = tier != DEFAULT or any(has_results(path, other, root, sets) for other in TIERS)
    where = f" at the {tier} tier" if others else ""
    return (
        f"{name}: no results{where} in {root}{f' with{options}' if options else ''}; "
        f"`fedrepro run {name}{f' --tier {tier}' if tier != DEFAULT else ''}{options}` makes them"
    )


def _check_hash(path: Path, body: bytes, sha256: str) -> None:
    if sha256 and hashlib.sha256(body).hexdigest() != sha256:
        raise Damaged(
            f"{path}: changed since it was written (its sidecar has another hash); restore it with git, or compute it "
            "again with `fedrepro run`"
        )


def as_written(base: Path, sidecar: Sidecar) -> bool:
    """Return whether the results at ``base`` have the hashes in their sidecar."""
    table, arrays = results_file(base), points_file(base)
    if table is None or content_hash(table) != sidecar.csv_sha256:
        return False
    return not sidecar.points_sha256 or (arrays is not None and content_hash(arrays) == sidecar.points_sha256)


def has_results(path: Path, tier: str, root: Path, sets: Sequence[str] = ()) -> bool:
    """Return whether the figure of a spec has results at a tier."""
    paper, name = stored_under(nodes.read(path))
    return results_file(place(root, tier, paper, name, sets, path)) is not None


def largest_tier(path: Path, tier: str, root: Path, sets: Sequence[str] = ()) -> str:
    """Return the tier, or for ``best`` the largest tier at which the figure of a spec has results.

    That is ``quick`` if it has none.
    """
    if tier != BEST:
        return tier
    return next((name for name in TIERS[::-1] if has_results(path, name, root, sets)), DEFAULT)


def with_results(
    paths: Iterable[Path], tier: str, root: Path, must: bool = False, sets: Sequence[str] = ()
) -> Iterator[tuple[Figure, Any, Sidecar]]:
    """Yield each figure that has results at the tier, with its tidy frame and its sidecar.

    sets : ``run --set`` options of the results. The options that results were computed with are applied again, so that
    the figure shows what was run. must : raise UserError for a spec without results.
    """
    for path in paths:
        node = nodes.read(path)
        paper, name = stored_under(node)
        base = place(root, tier, paper, name, sets, path)
        table = results_file(base)
        if table is None:
            if must:
                raise UserError(_no_results(path, tier, root, sets))
            continue
        figure = load(path, tier, sets)
        sidecar = read_sidecar(base) or Sidecar()
        rows = frame(table, sidecar.csv_sha256)
        if any(option.startswith("trials=") for option in sets):  # they extend the results, which can contain more
            rows = rows[rows["trial"] <= figure.trials].reset_index(drop=True)
            sidecar = _of_trials(sidecar, figure.trials, [setting.series for setting in figure.settings()])
        elif sidecar.sets != tuple(sets):
            figure = build(node, str(path), tier, sidecar.sets)
        yield figure, rows, sidecar


def _of_trials(sidecar: Sidecar, most: int, order: Sequence[str]) -> Sidecar:
    """Return the facts about the first trials alone. order : the series in the order of the plan.

    Runs that are not those of the whole plan are not those of a part of it either.
    """
    runs, former = ({series: ids[:most] for series, ids in of.items()} for of in (sidecar.runs, sidecar.former_runs))
    done = sidecar.trials_done if sidecar.trials_done is None else min(sidecar.trials_done, most)
    planned = follows_plan(sidecar, order)
    plan = plan_hash({series: runs.get(series, ()) for series in order}) if planned else sidecar.plan
    return dataclasses.replace(sidecar, runs=runs, former_runs=former, trials_done=done, plan=plan)
