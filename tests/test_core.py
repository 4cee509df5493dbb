"""Seeds, ledger, store: the small parts that everything uses."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fedrepro.files import atomically, require_writable
from fedrepro.ledger import Ledger
from fedrepro.problems.clustering.methods.fedmgs import FedMGS
from fedrepro.problems.clustering.problem import Clustering
from fedrepro.runs.compute import drive, execute
from fedrepro.runs.compute.drive import wanted
from fedrepro.runs.compute.record import Record
from fedrepro.runs.storage.store import Store
from fedrepro.seeds import Streams, generator, streams


def test_streams_depend_on_what_is_drawn_and_on_nothing_else() -> None:
    first = generator("data", dataset="x", trial=1).random(3)
    assert np.array_equal(first, generator("data", trial=1, dataset="x").random(3))
    for axis, facts in (("run", {"dataset": "x", "trial": 1}), ("data", {"dataset": "x", "trial": 2})):
        assert not np.array_equal(first, generator(axis, **facts).random(3))


def test_client_draws_are_shared_whatever_else_is_drawn() -> None:
    first, second = (streams(generator("run", trial=1)) for _ in range(2))
    first.compressor.random(1000)
    assert np.array_equal(first.clients.permutation(50), second.clients.permutation(50))
    assert not np.array_equal(first.clients.random(4), first.other.random(4))


def test_the_streams_differ_and_depend_on_no_draw_of_the_run_s_own_generator() -> None:
    quiet, busy = generator("run", trial=1), generator("run", trial=1)
    of_quiet, of_busy = streams(quiet), streams(busy)
    busy.random(100)
    pairs = [[getattr(of, field.name).random() for of in (of_quiet, of_busy)] for field in dataclasses.fields(Streams)]
    assert all(first == second for first, second in pairs)
    assert len({first for first, _ in pairs}) == 4


def test_every_trial_draws_for_itself() -> None:
    """From one initial point, so that trials differ only in the run's own draws; from Python or on the command line."""
    problem = Clustering(np.random.default_rng(0).random((5, 24)), np.arange(24) % 6, K=2)
    setting = SimpleNamespace(algorithm="fedmgs", params={"m": 2}, problem="clustering", rounds=3, artifacts=(),
                              metrics=("objective",), record_every=1, record_dense=20)  # fmt: skip
    start = problem.initial(1)
    problem.initial = lambda trial: start  # type: ignore[method-assign]
    for run in (
        lambda trial: drive.run(FedMGS(m=2), problem, 3, trial=trial)["objective"],
        lambda trial: execute.measured(setting, trial, problem).metrics["objective"],
    ):
        first, again, *others = (run(trial).tolist() for trial in (1, 1, 2, 3, 4))
        assert first == again
        assert len({tuple(rows[1:]) for rows in (first, *others)}) > 2


def test_the_ledger_counts_messages_and_keeps_setup_apart() -> None:
    ledger = Ledger()
    ledger.up(100, kind="G", setup=True, clients=3)
    ledger.up(10, kind="W", clients=4)
    ledger.up(10, kind="q", bits=33)
    ledger.down(5, kind="W", clients=2)
    assert ledger.totals() == {
        "uplink_scalars": 50, "uplink_bits": 40 * 32 + 33, "downlink_scalars": 10, "downlink_bits": 320,
    }  # fmt: skip
    assert ledger.setup_scalars == 300
    assert ledger.by_kind == {"uplink:W": 40, "uplink:q": 10, "downlink:W": 10}
    with pytest.raises(ValueError, match="negative"):
        ledger.up(-1, kind="W")


def test_recorded_rounds_are_dense_first_and_always_include_the_last() -> None:
    assert [r for r in range(24) if wanted(r, 23, 10, 4)] == [0, 1, 2, 3, 4, 10, 20, 23]


@dataclasses.dataclass
class Scripted:
    """A method that ends by itself after ``ends`` rounds, and a problem: round r takes 2^r seconds, measuring 1000."""

    ends: int
    lost: int | None = None  # the round whose value is not finite
    one_shot: bool = False
    now: float = 0.0
    name: str = "scripted"
    default_metrics: tuple[str, ...] = ("f",)

    def clock(self) -> float:
        return self.now

    def rounds(self, problem: object, rng: object, *, ledger: Ledger, **_: object) -> Iterator[int]:
        for r in range(self.ends + 1):
            self.now += 2.0**r
            ledger.up(10, kind="W", setup=r == 0)
            yield r

    def measure(self, state: int, names: Sequence[str]) -> dict[str, float]:
        self.now += 1000.0
        return {"f": math.nan if state == self.lost else 100.0 - state, "g": float(state)}

    @staticmethod
    def diverged(values: Mapping[str, np.ndarray]) -> str | None:
        return None if np.isfinite(values["f"]).all() else "gone"


@pytest.mark.parametrize(("ends", "lost"), [(99, None), (7, None), (6, None), (12, None), (0, None), (99, 4), (99, 5)])
@pytest.mark.parametrize("warm", [False, True])
def test_what_is_recorded_is_the_method_s_own_work_up_to_the_end_wherever_that_is(
    ends: int, lost: int | None, warm: bool
) -> None:
    for rounds, every, dense in ((12, 1, 0), (12, 3, 2), (12, 5, 0), (12, 100, 0), (13, 6, 1), (0, 1, 0)):
        both = Scripted(ends, lost)
        history = drive.drive(both, both, rounds, rng=np.random.default_rng(0), init=None, metrics=("f", "g"),
                              record_every=every, record_dense=dense, warm=warm, clock=both.clock)  # fmt: skip
        last = min(ends, rounds)
        wished = [r for r in range(last + 1) if r <= dense or r % every == 0 or r == last]
        if lost in wished:
            wished = wished[: wished.index(lost) + 1]
        assert history.rounds.tolist() == wished
        assert history["g"].tolist() == wished
        assert history["uplink_scalars"].tolist() == [10 * r for r in wished]
        assert history["uplink_bits"].tolist() == [320 * r for r in wished]
        assert history.serial.tolist() == history.seconds.tolist() == [2.0 ** (r + 1) - 1 for r in wished]
        assert history.ledger.setup_scalars == 10
        assert (history.diverged, history.state) == ("gone" if lost in wished else None, wished[-1])


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    store = Store(tmp_path)
    record = Record({"status": "ok"}, np.arange(3), np.zeros((3, 4), dtype=np.int64), {"f": np.array([1.5, np.nan, 2])},
                    np.array([0.0, 0.1, 0.2]), {"labels": np.array([1, 2])})  # fmt: skip
    store.fail("abc", {"why": "no"})
    assert store.failure("abc") == {"why": "no"}
    store.write("abc", record)
    back = store.read("abc")
    assert back is not None
    assert store.has("abc")
    assert store.failure("abc") is None
    assert np.array_equal(back.metrics["f"], record.metrics["f"], equal_nan=True)
    assert np.array_equal(back.artifacts["labels"], [1, 2])
    store.forget("abc")
    assert store.read("abc") is None


def test_nothing_half_written_gets_its_name(tmp_path: Path) -> None:
    def fail(stream: object) -> None:
        stream.write(b"half")  # type: ignore[attr-defined]
        raise OSError("disk full")

    target = tmp_path / "x.csv"
    target.write_bytes(b"old")
    with pytest.raises(OSError, match="disk full"):
        atomically(target, fail)
    assert target.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["x.csv"]


def test_a_link_stays_a_link_and_its_file_is_replaced(tmp_path: Path) -> None:
    link, file = tmp_path / "link", tmp_path / "folder" / "file"
    link.symlink_to("folder/file")
    for content in (b"first", b"second"):
        require_writable(link)
        atomically(link, content)
    assert link.is_symlink()
    assert file.read_bytes() == b"second"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder", "link"]


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    require_writable(pipe)
    atomically(pipe, b"receipt")
    assert (pipe.is_fifo(), os.read(reader, 100)) == (True, b"receipt")
    os.close(reader)
