"""Records and results, damaged at random: every command prints the same as before, or one error; never a traceback. The
seed of a mutation determines what is damaged and how: ``mutated(folder, seed)`` makes it again. ``SEEDS`` are those
that once gave a traceback or a wrong number, and some of every kind.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import io
import json
import re
import resource
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner

from fedrepro.cli.main import main
from fedrepro.runs.compute.record import Record
from fedrepro.runs.storage.store import Store

from .conftest import SMALL
from .test_damaged import share

SEEDS = (
    *range(14), 14, 16, 17, 19, 20, 26, 30, 35, 36, 42, 46, 62, 80, 83, 89, 97, 99, 103, 105, 110, 112, 113, 122, 125,
    129, 135, 145, 151, 158,
)  # fmt: skip
MANY = 2000
BLOCK = 250
AT_MOST = 5.0
"""Seconds that a command may take."""
BYTES = 2 * 10**9
"""Memory that this process may take at most."""

SPEC = "".join(line for line in SMALL.splitlines(keepends=True) if "fedcgds" not in line and "b: {" not in line)
SPEC = SPEC.replace("rounds: 5", "rounds: 2").replace("problem: {", "artifacts: [labels]\nproblem: {")
KINDS = (
    "csv", "record", "json", "csv.gz", "record", "points.csv", "json", "record", "failure", "csv", "record", "json",
    "timings", "record", "problem", "array",
)  # fmt: skip
NUMBERS = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")


class Home(NamedTuple):
    """A project with results, and what its commands print about them."""

    root: Path
    whole: Path
    said: dict[str, str]


COMMANDS: dict[str, tuple[str, ...]] = {
    "verdict": ("verdict", "small.yaml", "--results", "results"),
    "show": ("show", "small.yaml", "--results", "results"),
    "compare": ("compare", "results/quick/beyond/small.csv", "other.csv", "--all"),
    "plan": ("plan", "small.yaml", "--results", "results"),
    "run": ("run", "small.yaml", "--results", "results", "-j", "1", "--quiet"),
    "plot": ("plot", "small.yaml", "--results", "results", "--plots", "plots", "-j", "1"),
    "report": ("report", "small.yaml", "--results", "results", "--out", "plots", "--no-pictures"),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    root = tmp_path_factory.mktemp("fuzz")
    with contextlib.chdir(root):
        Path("small.yaml").write_text(SPEC)
        assert call("run").exit_code == 0
        share(Path("small.yaml"), Path("results"))
        shutil.copy("results/quick/beyond/small.csv", "other.csv")
        Store(Path("results/.runs")).fail("0" * 24, {"why": "failed: no"})
        shutil.move("results", "whole")
        shutil.copytree("whole", "results")
        yield Home(root, root / "whole", {name: call(name).output for name in ("verdict", "show", "compare")})


def call(name: str) -> Any:
    return CliRunner().invoke(main, COMMANDS[name])


# -- mutations ---------------------------------------------------------------------------------------------------------


def mutated(home: Home, seed: int) -> tuple[str, Path]:
    """Damage one file of fresh results: its kind, and which it is."""
    draw = np.random.default_rng(seed)
    shutil.rmtree("results")
    shutil.copytree(home.whole, "results")
    kind = KINDS[seed % len(KINDS)]
    path = chosen(kind, draw)
    structural = kind in ("json", "failure", "timings", "problem") and draw.random() < 0.6
    if structural:
        facts = json.loads(path.read_text())
        path.write_text(json.dumps(changed(facts, draw)))
    elif kind in ("csv", "points.csv") and draw.random() < 0.6:
        path.write_bytes(rearranged(path.read_bytes(), draw))
    elif kind == "record" and draw.random() < 0.5:
        remade(path, draw)
    elif draw.random() < 0.06:
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(bitten(path.read_bytes(), draw))
    return kind, path


def chosen(kind: str, draw: np.random.Generator) -> Path:
    results = Path("results")
    base = results / "quick" / "beyond"
    if kind == "csv.gz":
        packed = base / "small.csv.gz"
        packed.write_bytes(gzip.compress((base / "small.csv").read_bytes()))
        (base / "small.csv").unlink()
        return packed
    patterns = {
        "record": ".runs/*/*.npz", "failure": ".runs/*/*.failed.json", "timings": ".runs/timings.json",
        "problem": ".scratch/*/problem.json", "array": ".scratch/*/*.npy",
    }  # fmt: skip
    paths = sorted(results.glob(patterns[kind])) if kind in patterns else [base / f"small.{kind}"]
    return paths[draw.integers(len(paths))]


def bitten(content: bytes, draw: np.random.Generator) -> bytes:
    """Bytes flipped, zeroed, cut off, doubled or put in."""
    damaged = bytearray(content)
    at = int(draw.integers(len(damaged)))
    how = draw.integers(6)
    if how == 0:
        for place in draw.integers(len(damaged), size=draw.integers(1, 9)):
            damaged[place] ^= 1 << int(draw.integers(8))
    elif how == 1:
        end = at + int(draw.integers(1, 400))
        damaged[at:end] = bytes(len(damaged[at:end]))
    elif how == 2:
        del damaged[at:]
    elif how == 3:
        damaged[at:at] = damaged[at : at + 200]
    elif how == 4:
        damaged[at:at] = draw.bytes(int(draw.integers(1, 40)))
    else:
        damaged = bytearray(draw.bytes(int(draw.integers(0, 300))))
    return bytes(damaged)


def rearranged(content: bytes, draw: np.random.Generator) -> bytes:
    """Rows and columns of a table in another order, doubled, left out or changed."""
    rows = [line.split(",") for line in content.decode().splitlines()]
    row, column = int(draw.integers(1, len(rows))), int(draw.integers(len(rows[0])))
    how = draw.integers(6)
    if how == 0:
        rows[1:] = [rows[1 + i] for i in draw.permutation(len(rows) - 1)]
    elif how == 1:
        rows[row][column] = str(draw.choice(["", "nan", "1e999", "-1", "x", "2", "inf", "ok"]))
    elif how == 2:
        rows.insert(row, rows[row])
    elif how == 3:
        del rows[row:]
    elif how == 4:
        rows = [[*cells[:column], *cells[column + 1 :]] for cells in rows]
    else:
        rows[0][column] = "other"
    return ("\n".join(map(",".join, rows)) + "\n").encode()


def changed(facts: Any, draw: np.random.Generator) -> Any:
    """JSON with one value replaced, left out, or moved."""
    places = list(walk(facts, ()))
    path = places[draw.integers(len(places))]
    values: list[Any] = [None, 0, -3, 1e300, float("nan"), True, "", "x", [], {}, [[]], {"a": 1}, "\ud800", 10**400]
    if not path:
        return values[draw.integers(len(values))]
    at = functools.reduce(lambda container, key: container[key], path[:-1], facts)
    if isinstance(at, dict) and draw.random() < 0.3:
        del at[path[-1]]
    elif isinstance(at, list) and draw.random() < 0.4:
        at.insert(0, at.pop(path[-1]))
    else:
        at[path[-1]] = values[draw.integers(len(values))]
    return facts


def walk(facts: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    yield path
    inside = facts.items() if isinstance(facts, dict) else enumerate(facts) if isinstance(facts, list) else ()
    for key, value in inside:
        yield from walk(value, (*path, key))


def remade(path: Path, draw: np.random.Generator) -> None:
    """A record with an array left out, of another shape or type, or of other numbers; or that of another run."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    name = sorted(arrays)[draw.integers(len(arrays))]
    how = draw.integers(6)
    if how == 0:
        del arrays[name]
    elif how == 1:
        arrays[name] = arrays[name].reshape(-1)[:1]
    elif how == 2:
        arrays[name] = arrays[name].astype(str)
    elif how == 3:
        arrays[name] = np.zeros((3, 3), dtype=np.complex128)
    elif how == 4 and arrays[name].dtype.kind in "if":
        arrays[name] = arrays[name] + 1
    else:
        others = [other for other in sorted(path.parents[1].glob("*/*.npz")) if other != path]
        path.write_bytes(others[draw.integers(len(others))].read_bytes())
        return
    out = io.BytesIO()
    (np.savez if draw.random() < 0.5 else np.savez_compressed)(out, **arrays)
    path.write_bytes(out.getvalue())


# -- what must hold ----------------------------------------------------------------------------------------------------


def same(record: Record, other: Record | None) -> bool:
    """Whether two records are equal."""
    assert other is not None
    arrays = [{**r.metrics, **r.artifacts, "r": r.rounds, "c": r.counts, "s": r.seconds} for r in (record, other)]
    equal = all(np.array_equal(arrays[0][name], arrays[1][name], equal_nan=True) for name in arrays[1])
    return record.meta == other.meta and arrays[0].keys() == arrays[1].keys() and equal


def check(home: Home, seed: int) -> None:
    """Damage, then ask: one error or the same numbers; and what is computed again is what was computed."""
    kind, path = mutated(home, seed)
    turn = seed // len(KINDS)
    if kind == "record" and turn % 6:  # most of them by themselves, which is quick
        outcome = Store(Path("results/.runs")).read(path.stem) if path.is_file() else None
        assert outcome is None or same(outcome, Store(home.whole / ".runs").read(path.stem)), f"seed {seed}: {path}"
        return
    asked = {"record": ["run"], "failure": ["run"], "timings": ["plan", "run"], "problem": ["run"], "array": ["run"]}
    names = asked.get(kind) or [("verdict", "show", "compare", "plan", "run")[turn % 5]]
    names += ["plot", "report"] if kind not in asked and turn % 8 == 7 else []  # these take a second each
    if kind in ("record", "failure", "problem", "array"):  # what is there is not looked at unless results lack
        for name in ("small.json", "small.csv"):
            Path("results/quick/beyond", name).unlink()
    if kind in ("problem", "array"):
        shutil.rmtree("results/.runs")
    for name in names:
        where = f"seed {seed}: {name} after {path} was damaged"
        began = time.monotonic()
        outcome = call(name)
        assert time.monotonic() - began < AT_MOST, where
        if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
            raise AssertionError(where) from outcome.exception
        assert outcome.exit_code in (0, 2), f"{where}: {outcome.output}"
        assert "Traceback" not in outcome.output, where
        if outcome.exit_code == 2:
            assert outcome.stderr.startswith("error: "), where
        elif name in home.said:
            assert NUMBERS.findall(outcome.stdout) == NUMBERS.findall(home.said[name]), f"{where}: {outcome.output}"
        elif name == "run":
            table = Path("results/quick/beyond/small.csv")
            there = table.read_bytes() if table.exists() else gzip.decompress(Path(f"{table}.gz").read_bytes())
            assert there == Path("other.csv").read_bytes(), where


@pytest.mark.parametrize("seed", SEEDS)
def test_kept_seeds(home: Home, seed: int) -> None:
    with contextlib.chdir(home.root):
        check(home, seed)


@pytest.mark.fuzz
@pytest.mark.parametrize("start", range(0, MANY, BLOCK))
def test_two_thousand_mutations(home: Home, start: int) -> None:
    with contextlib.chdir(home.root):
        for seed in range(start, start + BLOCK):
            check(home, seed)
    assert 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < BYTES
