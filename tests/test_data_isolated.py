"""Malicious files are read in a separate process: whatever they do, the outcome is one error message."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import scipy.io
from scipy import sparse

from fedrepro.data import imports, isolated
from fedrepro.data.formats.named_arrays import named_arrays
from fedrepro.data.formats.rating_text import compact
from fedrepro.datasets.matrix_file import MatrixFile
from fedrepro.errors import DataAbsent, ParameterError, UserError

GB = 10**9


# Called in the child


def crash(number: int) -> None:
    """End as compiled code does that follows a false pointer."""
    os.kill(os.getpid(), number)


def leave() -> None:
    """End without a message."""
    os._exit(3)


def fill(size: int) -> int:
    """Take so much memory."""
    return len(bytearray(size))


def hide(size: int) -> None:
    """Run out of memory, and say something else."""
    try:
        fill(size)
    except MemoryError as error:
        raise UserError("not a readable file") from error


def complain(kind: str) -> None:
    """Raise an error for the user."""
    raise {"p": ParameterError("K", "too many"), "d": DataAbsent("tdt2", "no tdt2"), "u": UserError("no")}[kind]


def stumble() -> None:
    """Raise what a reader did not expect."""
    raise IndexError("list index out of range")


def chatter() -> list[str]:
    """Print, as libraries do."""
    print("noise")
    os.write(1, b"more noise\n")
    return [str(Path.cwd())]


def load_pandas() -> bool:
    """Load a library as a reader of tables does."""
    import pandas as pd

    return bool(pd.__version__)


def loaded_pandas() -> bool:
    """Return whether the library is there already."""
    return "pandas" in sys.modules


def doze(seconds: float, sign: str) -> None:
    """Take a while, then leave a file."""
    time.sleep(seconds)
    Path(sign).touch()


def hang(begun: str, done: str) -> None:
    """Leave a file with the ids of this process and its parent, and for a minute do nothing but then leave another."""
    Path(begun + ".part").write_text(f"{os.getpid()} {os.getppid()}")
    os.rename(begun + ".part", begun)
    doze(60.0, done)


def called(function: Any, *given: Any, memory: int = GB) -> Any:
    return isolated.call(function, *given, what="x.dat", memory=memory)


def test_a_crash_is_told_and_the_next_call_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = r"^x.dat is damaged: its reader crashes \({}\); get the file again$"
    with pytest.raises(UserError, match=message.format("SIGSEGV")):
        called(crash, int(signal.SIGSEGV))
    with pytest.raises(UserError, match=message.format("status 3")):
        called(leave)
    monkeypatch.chdir(tmp_path)
    assert called(chatter) == [str(tmp_path)]


def test_memory_has_a_limit_in_the_child_alone() -> None:
    for function in (fill, hide):
        with pytest.raises(
            UserError, match=r"^x.dat needs more than 200.0 MB of memory to read, the limit; unpack it first$"
        ):
            called(function, 4 * GB, memory=200_000_000)
    assert called(fill, 150_000_000, memory=200_000_000) == 150_000_000
    assert len(bytearray(300_000_000)) == 300_000_000


def test_what_a_call_loaded_is_there_for_the_next_and_only_libraries_count() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "from fedrepro.data.isolated import serve; serve()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        assert child.stdin is not None
        assert child.stdout is not None
        said = []
        for function in ("loaded_pandas", "load_pandas", "loaded_pandas"):
            request = {"function": f"{__name__}:{function}", "arguments": [], "memory": GB, "folder": str(Path.cwd())}
            print(json.dumps(request), file=child.stdin, flush=True)
            said.append(json.loads(child.stdout.readline())["value"])
        child.stdin.close()
    assert said == [False, True, True]
    assert isolated._needed(["os", "pandas", "tests.evil"]) == ["pandas"]
    assert isolated._needed("pandas") == isolated._needed(None) == []


def test_errors_for_users_arrive_as_they_are() -> None:
    for kind, error, said in (
        ("p", ParameterError, "K: too many"),
        ("d", DataAbsent, "no tdt2"),
        ("u", UserError, "no"),
    ):
        with pytest.raises(error, match=f"^{said}$") as caught:
            called(complain, kind)
        assert type(caught.value) is error
    with pytest.raises(UserError, match=r"^x.dat cannot be read \(IndexError: list index out of range\)$"):
        called(stumble)


def test_a_child_that_went_for_idleness_is_started_again() -> None:
    assert called(fill, 3) == 3
    child = isolated._CHILDREN[os.getpid()]
    child.kill()
    child.wait()
    assert called(fill, 4) == 4
    assert isolated._CHILDREN[os.getpid()] is not child


def test_an_interrupt_ends_the_child_and_what_it_does(tmp_path: Path) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    assert called(fill, 1) == 1
    child = isolated._CHILDREN[os.getpid()]
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            called(doze, 2.0, str(tmp_path / "done"))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert child.poll() is not None
    assert called(fill, 1) == 1
    time.sleep(2.2)
    assert not (tmp_path / "done").exists()


def test_it_ends_with_its_caller(tmp_path: Path) -> None:
    done = str(tmp_path / "done")
    begun = tmp_path / "begun"
    code = f"from tests import test_data_isolated as t; t.called(t.hang, {str(begun)!r}, {done!r})"
    caller = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[1])
    while not begun.exists() and caller.poll() is None:
        time.sleep(0.02)
    caller.kill()
    caller.wait()
    wait_until_gone(*map(int, begun.read_text().split()))
    assert not (tmp_path / "done").exists()


def wait_until_gone(*processes: int) -> None:
    """Fail if one of the processes still exists after 20 s, long before ``hang`` ends by itself."""
    deadline = time.monotonic() + 20
    while any(map(alive, processes)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(alive, processes))


def alive(process: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


# Files


def told(path: Path, **params: Any) -> str:
    """The error of a refused file."""
    with pytest.raises(ParameterError) as caught:
        MatrixFile(str(path), **params).load()
    return str(caught.value).replace(str(path), path.name)


def test_a_market_file_whose_counts_are_false(tmp_path: Path) -> None:
    head = "%%MatrixMarket matrix coordinate real general\n"
    path = tmp_path / "x.mtx"

    def said(text: str) -> str:
        path.write_text(head + text)
        return told(path)

    assert "cannot be read as .mtx" in said("3 3 2\n0 0 1.5\n2 2 1\n")
    assert "cannot be read as .mtx" in said("3 3 2\n4 1 1.5\n2 2 1\n")
    assert "cannot be read as .mtx" in said("3 3 9\n1 1 1.5\n2 2 1\n")
    assert said("3 3 2\n1 1 1.5E-\n2 2 1\n") == "path: x.mtx: '1 1 1.5E-' is not an entry of the matrix"
    assert said("3 3 2\n1 1 1.5\n2 2 1 7\n") == "path: x.mtx: '2 2 1 7' is not an entry of the matrix"
    huge = said("1000000000 3 1\n999999999 1 1.5\n")
    assert huge == "path: x.mtx declares 1,000,000,000 rows or columns, but contains 1 entry"
    path.write_text(head.replace("real", "integer") + "2 2 1\n1 1 1.5\n")
    assert told(path) == "path: x.mtx: '1 1 1.5' is not an entry of the matrix"


@pytest.mark.parametrize("orientation", ["columns", "rows"])
def test_a_wide_market_file_takes_no_memory(tmp_path: Path, orientation: str) -> None:
    (tmp_path / "x.mtx").write_text("%%MatrixMarket matrix coordinate real general\n3 2147483647 1\n1 2147483647 1.5\n")
    assert "declares 2,147,483,647 rows or columns" in told(tmp_path / "x.mtx", orientation=orientation)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix, sparse.bsr_matrix])
def test_a_sparse_archive_that_points_outside_itself(tmp_path: Path, kind: Any) -> None:
    X = kind(np.eye(6))
    for name, values in (("indptr", [0, 1, 2, 3, 4, 5, 10**6]), ("indices", [0, 1, 2, 3, 4, 10**6])):
        parts = {"indices": X.indices, "indptr": X.indptr, name: np.array(values, dtype=np.int32)}
        stream = io.BytesIO()
        sparse.save_npz(stream, X, compressed=False)
        stored = dict(np.load(io.BytesIO(stream.getvalue())))
        np.savez(tmp_path / "x.npz", **{**stored, **parts})
        assert told(tmp_path / "x.npz").startswith("path: x.npz")


def test_a_matlab_matrix_that_points_outside_itself(tmp_path: Path) -> None:
    X = sparse.csc_matrix(np.arange(1.0, 13.0).reshape(4, 3))
    X.indices = X.indices + 1000
    scipy.io.savemat(tmp_path / "x.mat", {"fea": X, "gnd": np.arange(4)})
    assert "x.mat, variable 'fea': is damaged: indices of the sparse matrix must be 0 to 3, one is 1003" in told(
        tmp_path / "x.mat"
    )
    (tmp_path / "x.mat").rename(tmp_path / "TDT2.mat")
    with pytest.raises(UserError, match=r"TDT2.mat, variable 'fea': is damaged: indices of the sparse matrix must be"):
        imports.adopt("tdt2", [tmp_path / "TDT2.mat"])


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("order", "mark"), [("big", b"MI"), ("little", b"IM")])
def test_a_matlab_file_of_either_byte_order_that_unpacks_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: Literal["big", "little"], mark: bytes
) -> None:
    monkeypatch.setattr("fedrepro.data.formats.matlab.LIMIT", 1_000_000)
    element = zlib.compress(bytes(2_000_000))
    head = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00" + mark
    sizes = (15).to_bytes(4, order) + len(element).to_bytes(4, order)
    (tmp_path / "x.mat").write_bytes(head + sizes + element)
    assert told(tmp_path / "x.mat").endswith("x.mat unpacks to more than 1,000,000 bytes; it is not read")


def test_nine_bytes_of_pickle_take_no_memory(tmp_path: Path) -> None:
    for name in ("data_batch_1", "test_batch"):
        (tmp_path / name).write_bytes(b"\x80\x02Nr\xff\xff\xff\x7f.")
    with pytest.raises(UserError, match=r"needs more than 1\.5 GB of memory to read, the limit"):
        imports.adopt("cifar10", [tmp_path])


def test_huge_ids_take_no_memory_and_come_out_the_same(tmp_path: Path) -> None:
    near = np.array([4, 2, 9, 2], dtype=np.int32)
    for ids in (near, near * 200_000_000):
        place, raw = compact(ids)
        assert place.tolist() == [1, 0, 2, 0]
        assert raw[place].tolist() == ids.tolist()
        assert (place.dtype, raw.dtype) == (np.int32, np.int32)
    (tmp_path / "ratings.dat").write_text("1::2147483647::5::0\n2147483647::1::4::0\n")
    assert imports.adopt("movielens-1m", [tmp_path / "ratings.dat"], variant=True).state == "variant"


def test_a_pipe_or_a_device_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ratings.dat")
    why = "is a pipe or a device, not a file; write its content to a file$"
    with pytest.raises(UserError, match=f"ratings.dat {why}"):
        imports.adopt("movielens-1m", [tmp_path / "ratings.dat"], variant=True)
    with pytest.raises(UserError, match=f"^/dev/zero {why}"):
        imports.adopt("movielens-1m", [Path("/dev/zero")], variant=True)
    with pytest.raises(UserError, match="contains nothing of movielens-1m"):
        imports.adopt("movielens-1m", [tmp_path], variant=True)  # a folder's pipes are passed over
    os.mkfifo(tmp_path / "x.csv")
    with pytest.raises(ParameterError, match="does not exist"):
        MatrixFile(str(tmp_path / "x.csv"))


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "ratings.dat").write_text("1::1::5::0\n")
    monkeypatch.setattr("fedrepro.data.imports.is_web_page", refuse)  # the superuser may read anything
    with pytest.raises(UserError, match=r"ratings.dat cannot be read \(Permission denied\)$"):
        imports.adopt("movielens-1m", [tmp_path / "ratings.dat"], variant=True)


def test_why_an_archive_cannot_be_read_is_kept_where_nothing_of_it_is_used(tmp_path: Path) -> None:
    path = tmp_path / "ml-1m.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ml-1m/ratings.dat", b"1::1::5::0\n")
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    with pytest.raises(UserError, match=r"^.*ml-1m.zip: the archive is truncated or damaged \(.*\); get it again$"):
        imports.adopt("movielens-1m", [path], variant=True)
    path.write_bytes(whole.replace(b"ml-1m/ratings.dat", b"../../ratings.dat"))
    with pytest.raises(UserError, match=r"ml-1m.zip: the archive contains '../../ratings.dat', a path outside of it"):
        imports.adopt("movielens-1m", [path], variant=True)


def test_a_table_whose_rows_do_not_fit_its_header(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2,3\n4,5,6\n")  # pandas would take 1 and 4 for names of rows
    assert told(path) == (
        "path: x.csv: the first row has 2 fields, but every row below has 3; write one name per column in the first row"
    )
    path.write_text("a,b,c\n1,2\n4,5\n")
    assert told(path).startswith("path: x.csv: the first row has 3 fields, but every row below has 2; ")
    path.write_text("a,y,y\n1,2,3\n4,5,6\n")
    assert told(path, labels="y") == (
        "labels: x.csv has no column or variable 'y' (it contains a, y (column 2), y (column 3)), "
        "and there is no such file"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a,b\n1,2\n\n3\n4,5\n",
            "but line 4 has 1; add the missing fields (a comma for an empty one), or remove the line",
        ),
        ("1,2\n3\n4,5\n", "the first row has 2 fields, but line 2 has 1; "),
        ("a,b\n1,2\n3,4,5\n4\n6,7\n", "but line 3 has 3 (1 more line differs); remove the extra fields, or put text"),
        ('a,b\n"x\ny",2\n3,4,5\n4,4\n', "but line 4 has 3; "),
        ('a,b\n1,2\n3,"4\n5,6\n', 'a quote (") that opens in line 3 is not closed; close or remove it'),
        ("\ufeffa,b\r\n1,2\r\n  \r\n3,\r\n", "column 'b' has NaN, infinity or no value in 1 place, first in line 4; "),
        ("a;b;c\n1,5;2;x\n3;4;y\n", "x.csv separates its columns by ';'; separate them by commas, and write 1.5, not"),
        ("a;b\n1;2\n3;4\n", "x.csv separates its columns by ';'; "),
        ("a\tb\n1\t2\n", "x.csv separates its columns by '\\t'; "),
        (
            "a,b\n1,2\n\n3,x\n",
            "column 'b' contains text ('x' in line 4); name it with labels: or client:, or remove it",
        ),
    ],
)
def test_the_line_of_a_fault_in_a_table_is_that_of_an_editor(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.csv").write_text(text, encoding="utf-8", newline="")
    assert message in told(tmp_path / "x.csv")


def test_a_column_of_numbers_and_words_in_a_long_table_contains_words(tmp_path: Path) -> None:
    rows = [f"{row},0.5,{row % 3}" for row in range(300_000)]  # pandas reads them in several parts
    (tmp_path / "x.csv").write_text("\n".join(["a,b,kind", *rows, "1,2,other"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ResourceWarning)  # of the processes of other tests
        columns = named_arrays(tmp_path / "x.csv")
    assert set(columns["kind"]) == {"0", "1", "2", "other"}
    assert columns["a"].dtype == np.int64


def test_a_row_of_numbers_with_one_that_is_none_is_no_header(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("0.5,0..3\n1,2\n3,4\n")
    assert told(path) == "path: x.csv: '0..3' in its first row is not a number, but the row is not a header either"
    path.write_text("0,0,x\n1,2,3\n3,4,5\n")
    assert told(path) == "path: x.csv: 'x' in its first row is not a number, but 0 occurs twice there"
    path.write_text("0,1,kind\n1,2,a\n3,4,b\n")
    np.testing.assert_array_equal(
        MatrixFile(str(path), labels="kind", orientation="rows").load().X, [[1.0, 3.0], [2.0, 4.0]]
    )


def test_numbers_of_a_table_are_read_to_the_last_bit(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((200, 5))
    (tmp_path / "x.csv").write_text("\n".join(",".join(map(repr, row)) for row in X.tolist()))
    np.testing.assert_array_equal(MatrixFile(str(tmp_path / "x.csv")).load().X, X)


def test_labels_that_are_none(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.eye(3))
    given = str(tmp_path / "y.mat")
    scipy.io.savemat(given, {"y": np.array([["a"], ["b"], [3.0]], dtype=object)})
    assert told(tmp_path / "x.npy", labels=given) == "labels: values of type object; numbers or words are needed"
    (tmp_path / "y.txt").write_bytes(b"a\n\xff\nb\n")
    assert "is not text in UTF-8" in told(tmp_path / "x.npy", labels=str(tmp_path / "y.txt"))
    (tmp_path / "y.npy").write_bytes(b"no array")
    assert told(tmp_path / "x.npy", labels=str(tmp_path / "y.npy")).startswith("labels: ")
    (tmp_path / "t.csv").write_text("a,kind\n1,x\n2,\n3,y\n")
    assert told(tmp_path / "t.csv", labels="kind", orientation="rows") == (
        "labels: 1 of 3 values is missing, the first in line 3; add them, or remove these samples"
    )
    cells = np.array([["a"], ["b"], ["a"]], dtype=object)
    scipy.io.savemat(given, {"y": cells})
    assert MatrixFile(str(tmp_path / "x.npy"), labels=given).load().labels.tolist() == [0, 1, 0]


def test_names_that_are_not_fit_to_print_are_cut(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **{"n\x1b" * 300: np.eye(2), "m": np.eye(2)})
    said = told(tmp_path / "x.npz")
    assert said.startswith("key: x.npz must contain one matrix (it contains n?n?n?")
    assert len(said) < 300
