"""Mutated data files of every format and every catalogue reader: each is read correctly, or refused with one error.

None may give a traceback, take more than 5 s or 2 GB, crash this process, or be read as other numbers than a naive
reader finds in it. A mutation is drawn from its number alone: ``case(17)`` is always the same file. ``KEPT`` contains
the numbers of mutations that once failed; quick tests include them.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import io
import resource
import signal
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
from scipy import sparse

from fedrepro.data import copies, imports, isolated
from fedrepro.data.formats import npy_parts
from fedrepro.datasets.matrix_file import MatrixFile
from fedrepro.errors import UserError
from fedrepro.problems.clustering.problem import Clustering

from . import data_copies

SECONDS, BYTES = 5.0, 2_000_000_000
FILES = 2000
BLOCK = 500
KEPT = (170, 202, 497, 973, 1800, 2717)


@dataclass(frozen=True)
class Original:
    """A sound file. dataset : the catalogue's reader, or None for a user's own file. inside : its path in the copy."""

    inside: str
    content: bytes
    dataset: str | None = None
    params: tuple[tuple[str, Any], ...] = ()
    beside: tuple[tuple[str, bytes], ...] = ()


@functools.cache
def originals() -> tuple[Original, ...]:
    """Small sound files in every format."""
    return (*_own(), *_catalogue())


def _own() -> Iterator[Original]:
    rng = np.random.default_rng(0)
    X = np.round(rng.random((5, 8)) * (rng.random((5, 8)) < 0.6), 3)
    y = np.arange(8) % 3
    words = np.array(["a", "b", "c"])[y]

    def saved(save: Callable[..., Any], *given: Any, **named: Any) -> bytes:
        stream = io.BytesIO()
        save(stream, *given, **named)
        return stream.getvalue()

    for order in "CF":
        yield Original("x.npy", saved(np.save, np.asarray(X, order=order)))
    yield Original("x.npy", saved(np.save, (100 * X).astype(">i2")))
    yield Original("x.npz", saved(np.savez, X=X, labels=words), params=(("labels", "labels"),))
    yield Original("x.npz", saved(np.savez_compressed, X=X, y=y), params=(("labels", "y"),))
    for kind in (sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix, sparse.bsr_matrix, sparse.dia_matrix):
        yield Original("x.npz", saved(sparse.save_npz, kind(X), compressed=False))
    cells = np.array([[word] for word in words], dtype=object)
    for packed in (False, True):
        own = {"fea": sparse.csc_matrix(X), "gnd": y[:, None] + 1.0, "words": cells}
        yield Original("x.mat", saved(scipy.io.savemat, own, do_compression=packed), params=(("labels", "gnd"),))
        yield Original("x.mat", saved(scipy.io.savemat, own, do_compression=packed), params=(("labels", "words"),))
        yield Original("x.mat", saved(scipy.io.savemat, {"X": X}, do_compression=packed))
    yield Original("x.mat", saved(scipy.io.savemat, {"X": X}, format="4"))
    rows = "\n".join(",".join(map(str, row)) for row in X)
    yield Original("x.csv", f"{rows}\n".encode())
    named = "\n".join(",".join([*map(str, column), word]) for column, word in zip(X.T, words, strict=True))
    headed = (("labels", "kind"), ("orientation", "rows"))
    yield Original("x.csv", f"f1,f2,f3,f4,f5,kind\n{named}\n".encode(), params=headed)
    for given in (sparse.coo_matrix(X), X, sparse.coo_matrix(np.triu(X[:, :5]) + np.triu(X[:, :5]).T)):
        yield Original("x.mtx", saved(scipy.io.mmwrite, given))
    yield Original("x.mtx", b"%%MatrixMarket matrix coordinate pattern general\n% words\n4 3 3\n1 1\n2 2\n4 3\n")
    matrix = (("x.npy", saved(np.save, X)),)
    for name, content in (("y.txt", "\n".join(words).encode()), ("y.csv", b"1\n2\n3\n1\n2\n3\n1\n2\n")):
        yield Original(name, content, params=(("labels", name),), beside=matrix)
    yield Original("y.npy", saved(np.save, y), params=(("labels", "y.npy"),), beside=matrix)
    yield Original("y.mat", saved(scipy.io.savemat, {"gnd": y}), params=(("labels", "y.mat"),), beside=matrix)


def _catalogue() -> Iterator[Original]:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        yield from _of("mnist", data_copies.mnist(root / "a", n=4, compress=False))
        yield from _of("mnist", data_copies.mnist(root / "b", n=4))
        stream = io.BytesIO()
        np.savez(stream, x_test=np.zeros((3, 28, 28), np.uint8), y_test=np.arange(3))
        yield Original("mnist.npz", stream.getvalue(), "mnist")
        table = np.column_stack([np.arange(3), np.zeros((3, 784), int)])
        yield Original("mnist_test.csv", "\n".join(",".join(map(str, row)) for row in table).encode(), "mnist")
        yield from _of("tdt2", data_copies.tdt2(root / "tdt2", documents=12, terms=6).parent)
        rows = [[*row, 978300760] for row in data_copies.ratings(n=40, users=8, items=9).tolist()]
        yield Original("ratings.dat", "\n".join("::".join(map(str, r)) for r in rows).encode(), "movielens-1m")
        head = "userId,movieId,rating,timestamp\n"
        yield Original("ratings.csv", (head + "\n".join(",".join(map(str, r)) for r in rows)).encode(), "movielens-10m")
        film = "1:\n" + "\n".join(f"{r[0]},{r[2]},2005-09-06" for r in rows[:20]) + "\n"
        yield Original("mv_0000001.txt", film.encode(), "netflix")
        yield from _of("cifar10", data_copies.cifar10(root / "cifar", per_batch=1))
        yield Original("test_batch.bin", bytes([3]) + bytes(3072), "cifar10")
        yield from _of("omniglot", data_copies.omniglot(root / "omniglot", ("Greek",), 1), 2)
        yield from _of("tcga", data_copies.tcga(root / "tcga", genes=12, samples=12))
        yield from _of("europarl", data_copies.europarl(root / "europarl", ("de",), 12))
        yield from _of("synpuf", data_copies.synpuf(root / "synpuf", claims=20, samples=(1,)))
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("ml-1m/ratings.dat", "\n".join("::".join(map(str, r)) for r in rows))
        yield Original("ml-1m.zip", stream.getvalue(), "movielens-1m")


def _of(dataset: str, folder: Path, most: int = 3) -> Iterator[Original]:
    """Files of a folder, each beside the others."""
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for name in sorted(files)[:most]:
        beside = tuple((other, content) for other, content in sorted(files.items()) if other != name)
        yield Original(name, files[name], dataset, beside=beside)


# -- mutations ---------------------------------------------------------------------------------------------------------

NUMBERS = (b"0", b"-1", b"1e999", b"nan", b"99999999999", b"2147483647", b"-9223372036854775808", b"1e-320", b"", b"x")
WORDS = tuple(
    int(value).to_bytes(size, order, signed=value < 0)
    for size, values in ((4, (0, -1, 2**31 - 1, -(2**31), 10**9)), (8, (-1, 2**63 - 1, 2**62, 10**12)))
    for value in values
    for order in ("little", "big")
)


def flipped(raw: bytearray, rng: np.random.Generator) -> bytes:
    """Some bits turned over."""
    for at in rng.integers(0, len(raw), rng.integers(1, 6)):
        raw[at] ^= 1 << rng.integers(8)
    return bytes(raw)


def cut(raw: bytearray, rng: np.random.Generator) -> bytes:
    """Only the beginning."""
    return bytes(raw[: rng.integers(0, len(raw))])


def without(raw: bytearray, rng: np.random.Generator) -> bytes:
    """A piece left out."""
    first = rng.integers(0, len(raw))
    return bytes(raw[:first] + raw[first + rng.integers(1, 64) :])


def twice(raw: bytearray, rng: np.random.Generator) -> bytes:
    """A piece repeated."""
    first = rng.integers(0, len(raw))
    piece = raw[first : first + rng.integers(1, 64)]
    return bytes(raw[:first] + piece + raw[first:])


def overwritten(raw: bytearray, rng: np.random.Generator) -> bytes:
    """Malicious sizes and offsets, mostly in headers."""
    for _ in range(rng.integers(1, 3)):
        word = WORDS[rng.integers(len(WORDS))]
        at = int(rng.integers(0, max(1, min(len(raw), 400 if rng.random() < 0.7 else len(raw)) - len(word))))
        at -= at % 4 if rng.random() < 0.7 else 0
        raw[at : at + len(word)] = word
    return bytes(raw)


def renumbered(raw: bytearray, rng: np.random.Generator) -> bytes:
    """A number in the text, or a stretch of it, replaced by a malicious one."""
    digits = [i for i, byte in enumerate(raw[:4000]) if chr(byte).isdigit()]
    if not digits:
        return overwritten(raw, rng)
    first = last = digits[rng.integers(len(digits))]
    while last < len(raw) and chr(raw[last]).isdigit():
        last += 1
    return bytes(raw[:first] + NUMBERS[rng.integers(len(NUMBERS))] + raw[last:])


def relined(raw: bytearray, rng: np.random.Generator) -> bytes:
    """Lines in another order, left out, or repeated."""
    lines = bytes(raw).split(b"\n")
    chosen = rng.integers(0, len(lines), rng.integers(1, len(lines) + 2))
    return b"\n".join(lines[i] for i in (np.sort(chosen) if rng.random() < 0.5 else chosen))


def foreign(raw: bytearray, rng: np.random.Generator) -> bytes:
    """The bytes of another file, or the end of another after this one's beginning."""
    other = originals()[rng.integers(len(originals()))].content
    return other if rng.random() < 0.5 else bytes(raw[: len(raw) // 2]) + other[len(other) // 2 :]


def packed(raw: bytearray, rng: np.random.Generator) -> bytes:
    """Compressed once more, and damaged there."""
    return flipped(bytearray(gzip.compress(bytes(raw), mtime=0)), rng)


def odd(raw: bytearray, rng: np.random.Generator) -> bytes:
    """Files that are hardly any."""
    few = (b"", b"\0", b"\n" * 50, b"\xff" * 2000, b"\x80\x02r\xff\xff\xff\x7f.", b"(" * 100_000, b"1," * 50_000)
    return few[rng.integers(len(few))]


MUTATIONS = (
    *(flipped, overwritten, renumbered),
    *(flipped, overwritten, renumbered, cut, without, twice, relined, foreign, packed, odd),
)


def case(number: int) -> tuple[Original, str, bytes]:
    """A sound file, how it was changed, and the outcome."""
    rng = np.random.default_rng([15, number])
    original = originals()[rng.integers(len(originals()))]
    change = MUTATIONS[rng.integers(len(MUTATIONS))]
    return original, change.__name__, change(bytearray(original.content), rng)


# -- naive readers -----------------------------------------------------------------------------------------------------


def naive(original: Original, content: bytes) -> np.ndarray | None:
    """The matrix in a user's file, read without any library for the format; None where only a library can."""
    if original.inside == "x.csv" and original.params:
        return _naive_csv(b"\n".join(line.rpartition(b",")[0] for line in content.split(b"\n")[1:])).T
    reader = {"x.npy": _naive_npy, "x.csv": _naive_csv, "x.mtx": _naive_mtx}.get(original.inside)
    return None if reader is None else reader(content)


def _naive_npy(content: bytes) -> np.ndarray:
    size = int.from_bytes(content[8 : 10 if content[6] == 1 else 12], "little")
    head = eval(content[10 if content[6] == 1 else 12 :][:size], {"__builtins__": {}})
    raw = content[(10 if content[6] == 1 else 12) + size :]
    count = int(np.prod(head["shape"]))
    values = np.frombuffer(raw, np.dtype(head["descr"]), count)
    return values.reshape(head["shape"], order="F" if head["fortran_order"] else "C").astype(np.float64)


def _naive_csv(content: bytes) -> np.ndarray:
    lines = [line for line in content.decode().replace("\r", "\n").split("\n") if line.strip()]
    return np.array([[float(word) for word in line.split(",")] for line in lines])


def _naive_mtx(content: bytes) -> np.ndarray:
    lines = [line.split() for line in content.decode("latin-1").split("\n")]
    _, _, form, kind, symmetry = (word.lower() for word in lines[0])
    body = [line for line in lines[1:] if line and not line[0].startswith("%")]
    rows, columns, *_ = (int(word) for word in body[0])
    X = np.zeros((rows, columns))
    if form == "array":
        X.T.flat[: rows * columns] = [float(word) for line in body[1 : rows * columns + 1] for word in line]
        return X
    for i, j, *value in body[1 : int(body[0][2]) + 1]:
        at, number = (int(i) - 1, int(j) - 1), float(value[0]) if kind != "pattern" else 1.0
        X[at] += number
        if symmetry != "general" and at[0] != at[1]:
            X[at[::-1]] += -number if symmetry == "skew-symmetric" else number
    return X


def _naive_ratings(content: bytes) -> np.ndarray:
    lines = [line for line in content.decode("latin-1").replace("\r", "\n").split("\n") if line.strip()]
    separator = "::" if "::" in lines[0] else ","
    body = lines[1:] if "userId" in lines[0] else lines
    return np.array([[float(word) for word in line.split(separator)[:3]] for line in body])


# -- trying ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def bounded(peaks: list[int]) -> Iterator[None]:
    """Interrupt what hangs, and note what the child took."""
    ask = isolated.ask

    def noted(*given: Any) -> dict[str, Any]:
        answer = ask(*given)
        peaks.append(answer.get("peak", 0))
        return answer

    def late(*_: Any) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 4 * SECONDS)
    try:
        isolated.ask = noted
        yield
    finally:
        isolated.ask = ask
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def tried(number: int, folder: Path) -> str:
    """Put a mutated file into ``folder`` and read it: "read", or the sentence that refuses it."""
    original, change, content = case(number)
    for name, raw in ((original.inside, content), *original.beside):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(raw)
    peaks: list[int] = []
    began = time.monotonic()
    try:
        with bounded(peaks):
            said = _taken(original, folder) if original.dataset else _loaded(original, folder, content)
    except UserError as error:
        said = str(error)
        assert 10 < len(said) < 2000, said
    except Exception as error:
        raise AssertionError(f"case {number} ({original.dataset} {original.inside}, {change}): {error!r}") from error
    took = time.monotonic() - began
    assert took < SECONDS, f"case {number} ({original.dataset} {original.inside}, {change}) took {took:.1f} s"
    most = max(peaks, default=0)
    assert most < BYTES, f"case {number} ({original.dataset} {original.inside}, {change}) took {most:,} bytes"
    return said


def _loaded(original: Original, folder: Path, content: bytes) -> str:
    params = {key: str(folder / value) if key == "labels" and "." in value else value for key, value in original.params}
    path = folder / (original.beside[0][0] if original.beside else original.inside)
    data = MatrixFile(str(path), **params).load()
    X = data.X
    assert X.dtype == np.float64
    assert np.isfinite(X.data if sparse.issparse(X) else X).all()
    assert data.labels is None or (data.labels.shape == (X.shape[1],) and data.labels.max() < data.K)
    wanted = naive(original, content)
    if wanted is not None:
        np.testing.assert_array_equal(X.toarray() if sparse.issparse(X) else X, wanted)
    if X.size < 10_000:
        problem = Clustering(X, K=1)
        problem.measure(problem.start(problem.initial(1), np.random.default_rng(0)), ("objective",))
    return "read"


def _taken(original: Original, folder: Path) -> str:
    assert original.dataset is not None
    whole = folder if original.beside else folder / original.inside
    now = imports.adopt(original.dataset, [whole], variant=True)
    assert now.state == "variant", "a damaged copy passes for the published one"
    if original.inside in ("ratings.dat", "ratings.csv"):
        arrays = npy_parts.read(copies.folder(original.dataset), "all")
        user, item, value = _naive_ratings(whole.read_bytes()).T
        np.testing.assert_array_equal(arrays["user_id"][arrays["user"]], user)
        np.testing.assert_array_equal(arrays["item_id"][arrays["item"]], item)
        np.testing.assert_array_equal(arrays["value"], value.astype(np.float32))
    return "read"


def warm() -> None:
    """Let the child import what its forks read with, once."""
    for module in ("pandas", "scipy.io", "scipy.sparse", "fedrepro.data.imports", "PIL.Image", "PIL.PngImagePlugin"):
        isolated.ask(f"{module}:__name__", (), 10**9)


def numbers(folder: Path, wanted: Iterator[int] | range | tuple[int, ...]) -> list[str]:
    """The outcomes of these cases."""
    said = []
    warm()
    for number in wanted:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            said.append(tried(number, Path(place)))
    return said


def test_sound_files_are_read(tmp_path: Path) -> None:
    for number, original in enumerate(originals()):
        folder = tmp_path / str(number)
        for name, raw in ((original.inside, original.content), *original.beside):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(raw)
        if original.dataset:
            assert _taken(original, folder) == "read"
        else:
            assert _loaded(original, folder, original.content) == "read"


@pytest.mark.parametrize("number", [*KEPT, *range(40)])
def test_a_damaged_file_is_read_rightly_or_refused(number: int, tmp_path: Path) -> None:
    assert tried(number, tmp_path)


@pytest.mark.fuzz
@pytest.mark.parametrize("start", range(0, FILES, BLOCK))
def test_two_thousand_damaged_files_are_read_rightly_or_refused(tmp_path: Path, start: int) -> None:
    said = numbers(tmp_path, range(start, start + BLOCK))
    assert 0.05 * BLOCK < said.count("read") < 0.5 * BLOCK
    held = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert held < BYTES
