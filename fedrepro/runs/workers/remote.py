"""Runs on many machines: groups of runs as tasks of a dask.distributed cluster (the extra ``distributed``).

The client is used itself, not joblib's backend for it: with dask 2026.8 and joblib 1.6, that one waits for ever for a
task that dask has given up because its workers died.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from tqdm import tqdm

from fedrepro.errors import UserError
from fedrepro.files import me
from fedrepro.runs.compute import execute
from fedrepro.runs.run import Run
from fedrepro.runs.storage.store import Store
from fedrepro.runs.workers import task

CONNECT = 15.0
"""Seconds in which a scheduler must answer."""

TRIES = 4
"""How often a group is begun on workers that are lost, before its runs count as failed."""

AHEAD = 2
"""Groups in flight for each worker, so that none waits for the next one."""

LOOK, WAIT = 1.0, 0.2
"""Seconds between two looks at the workers, and between two at the runs that came back."""

SILENT = logging.CRITICAL + 1
DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
"""What worker processes of this command begin with: Ctrl-C is for the command, which ends them."""


# -- connecting --------------------------------------------------------------------------------------------------------


class ClusterLost(UserError):
    """The scheduler does not answer any more."""


@contextlib.contextmanager
def connected(address: str, scratch: Path, quiet: bool = False) -> Iterator[Cluster]:
    """The cluster behind a scheduler's address, or one of N processes here for ``local:N``, ended with the block.

    scratch : where arrays are shared on this machine. quiet : say only what concerns the numbers. Raises UserError
    without the extra, and where nobody answers.
    """
    distributed = _library()
    with contextlib.ExitStack() as stack:
        if address.startswith("local:"):
            own = stack.enter_context(_own_cluster(distributed, address, scratch))
            client = stack.enter_context(distributed.Client(own, set_as_default=False))
            yield Cluster(client, address, scratch, quiet, own=True)
        else:
            try:
                client = stack.enter_context(distributed.Client(address, timeout=CONNECT, set_as_default=False))
            except (OSError, ValueError) as error:
                raise UserError(
                    f"--scheduler {address}: no scheduler answers there ({_first_line(error)}); start one with "
                    "`dask scheduler` and give the address it prints, or try local:2"
                ) from None
            yield Cluster(client, address, scratch, quiet)


def _library() -> Any:
    try:
        import distributed
    except ImportError:
        raise UserError('--scheduler needs dask.distributed: pip install "fedrepro[distributed]"') from None
    # What matters of lost workers, schedulers and Ctrl-C is told here; tornado logs a call cut off before it began.
    for name in ("distributed", "distributed.client", "tornado.application"):
        logging.getLogger(name).setLevel(SILENT)
    return distributed


@contextlib.contextmanager
def _own_cluster(distributed: Any, address: str, scratch: Path) -> Iterator[Any]:
    """A scheduler and N processes of one thread on this machine, their files under ``scratch``."""
    import dask

    count = address.removeprefix("local:")
    if not count.isdecimal() or int(count) < 1:
        raise UserError(f"--scheduler {address}: local:N starts N worker processes here, for instance local:4")
    scratch.mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(prefix=f"dask-.{me()}.", dir=scratch.resolve())
    try:
        with (
            dask.config.set({"temporary-directory": folder}),
            distributed.LocalCluster(
                n_workers=int(count),
                threads_per_worker=1,
                processes=True,
                memory_limit=0,  # mapped arrays count as memory, and are none that must be kept
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                silence_logs=SILENT,
                preload=[DEAF],
            ) as cluster,
        ):
            yield cluster
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _lacking(who: str, error: BaseException, ours: str) -> UserError:
    return UserError(f"{who} cannot load this program ({error}); install the same there\n  here:  {ours}")


def _compute() -> Callable[..., None]:
    """``task.compute``, sent as code: dask ends a worker that is sent a name it does not have."""

    def compute(*given: Any) -> None:
        import importlib

        importlib.import_module("fedrepro.runs.workers.task").compute(*given)

    return compute


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


# -- computing ---------------------------------------------------------------------------------------------------------


@dataclass
class _Group:
    """Runs that a worker computes together. left : ids that nothing is known of yet. begun, lost : how often it was."""

    number: int
    runs: list[Run]
    left: set[str]
    begun: int = 0
    lost: int = 0

    @property
    def problem(self) -> str:
        """The problem all of them are on."""
        return self.runs[0].problem_id


@dataclass
class Cluster:
    """Workers that compute groups of runs. own : processes of this command, which share its files."""

    client: Any
    address: str
    scratch: Path
    quiet: bool = False
    own: bool = False
    _known: set[str] = field(default_factory=set, init=False)
    _looked: float = field(default=0.0, init=False)

    def ready(self) -> int:
        """Wait for a worker; how many there are then."""
        told = False
        while not (found := self.threads()):
            if not told:
                self._tell(f"no worker has joined {self.address} yet; waiting for one")
            told = True
            time.sleep(WAIT)
        return len(found)

    def answers(
        self, groups: Sequence[list[Run]], contents: Mapping[str, str], store: Store, most: int | None
    ) -> Generator[tuple[str, str]]:
        """Compute the groups; what each run came to, (id, 'ok' | 'diverged' | 'failed: why'), once it is stored.

        contents : the fingerprint of each problem's data. most : groups in flight at a time (None: as the workers
        need). A group whose worker is lost is begun again without the runs that came back, up to ``TRIES`` times.
        Closing the iterator stops what is in flight. Raises UserError where a worker runs another program, or the
        scheduler is gone.
        """
        sweep = _Sweep(self, groups, contents, store, most)
        try:
            yield from sweep.run()
        finally:
            sweep.stop()

    def check(self, names: Sequence[Sequence[str]]) -> int:
        """Look at the workers once a second: new ones must be fit. How many there are."""
        if self._looked and time.monotonic() - self._looked < LOOK:
            return len(self._known)
        found = self.threads()
        self._looked = time.monotonic()
        for address in sorted(self._known - set(found)):
            self._tell(f"the worker {address} is gone; what it was computing is tried again")
        if self._known and not found:
            self._tell("no worker is left; waiting for one")
        new = sorted(set(found) - self._known)
        self._known = set(found)
        if new:
            self._admit(new, found, names)
        return len(found)

    def _admit(self, new: Sequence[str], threads: Mapping[str, int], names: Sequence[Sequence[str]]) -> None:
        with self.reached():
            said = self.client.run(task.facts, [list(pair) for pair in names], workers=list(new), on_error="return")
        ours = task.facts(names)
        doubts: Counter[str] = Counter()
        for address, theirs in said.items():
            if isinstance(theirs, OSError):
                continue  # it is gone already
            if isinstance(theirs, Exception):
                raise _lacking(f"the worker {address}", theirs, ours["program"])
            task.fit(address, threads[address], theirs["program"], ours["program"])
            doubts.update(set(theirs["doubts"]) - set(ours["doubts"]))
        for doubt, count in sorted(doubts.items()):
            tqdm.write(f"note: on {count} of {len(said)} workers: {doubt}", file=sys.stderr)

    def threads(self) -> dict[str, int]:
        """The threads of each worker, by its address. Raises UserError where the scheduler is gone."""
        with self.reached():
            return dict(self.client.nthreads())

    @contextlib.contextmanager
    def reached(self) -> Iterator[None]:
        """A block that talks to the scheduler. Raises ClusterLost where it is gone."""
        try:
            yield
        except OSError as error:
            raise ClusterLost(
                f"the scheduler {self.address} does not answer any more ({_first_line(error)}); what is finished is "
                "kept, and the same command goes on from there"
            ) from None

    def _tell(self, text: str) -> None:
        if not self.quiet:
            tqdm.write(text)


class _Sweep:
    """The groups of one call of ``answers``: waiting, in flight, or done.

    What happens is told by messages of the workers (``task.compute``); a group is done when nothing of it is left. Its
    future only tells what a worker cannot: that it is lost, or unfit.
    """

    def __init__(
        self,
        cluster: Cluster,
        groups: Sequence[list[Run]],
        contents: Mapping[str, str],
        store: Store,
        most: int | None,
    ) -> None:
        from distributed import Queue

        self.cluster, self.contents, self.store, self.most = cluster, contents, store, most
        self.names = task.parts(run for group in groups for run in group)
        self.ours = task.program(self.names)
        self.groups = [_Group(n, runs, {run.id for run in runs}) for n, runs in enumerate(groups)]
        self.waiting = deque(self.groups)
        self.flying: dict[int, Any] = {}  # number of the group -> its future
        self.lacking: set[str] = set()  # problems whose data some worker does not have
        self.sent: dict[str, Any] = {}  # problem -> its packed arrays on the cluster
        self.kept: list[str] = []  # what workers that begin a group again may leave out
        self.topic = f"fedrepro-{uuid4().hex}"
        with cluster.reached():
            self.queue = Queue(self.topic, client=cluster.client)

    def run(self) -> Iterator[tuple[str, str]]:
        """What each run came to."""
        while self.waiting or self.flying:
            yield from self._send(self.cluster.check(self.names))
            over = [number for number, future in self.flying.items() if future.done()]  # all that they sent has come
            with self.cluster.reached():
                came = self.queue.get(batch=True)
            yield from [answer for message in came for answer in self._keep(*message)]  # all stored, then told
            self._tell_kept()
            for number in over:
                if number in self.flying:
                    yield from self._lost(self.groups[number])
            if not over and not came:
                self._wait()

    def stop(self) -> None:
        """End what is in flight; what has come back by then is stored."""
        if self.cluster.client.status != "running":
            return
        with contextlib.suppress(Exception):
            self.cluster.client.cancel(list(self.flying.values()))
            for message in self.queue.get(batch=True):
                self._keep(*message)
            self.cluster.client.set_metadata([self.topic], [])
            self.queue.close()

    # -- out --

    def _send(self, workers: int) -> Iterator[tuple[str, str]]:
        room = self.most or AHEAD * max(1, workers)
        while self.waiting and len(self.flying) < room:
            group = self.waiting.popleft()
            try:
                arrays = self._arrays(group)
            except ClusterLost:
                raise
            except Exception as error:  # as where a run is computed here: a recorded state of the runs, not the end
                yield from self._failed(group, f"{type(error).__name__}: {error}", traceback.format_exc())
                continue
            scratch = self.cluster.scratch.resolve() if self.cluster.own else None
            left = [run for run in group.runs if run.id in group.left]
            job = task.Job(left, self.contents[group.problem], scratch)
            self.flying[group.number] = self.cluster.client.submit(
                _compute(), self.ours, self.names, group.number, pickle.dumps(job), self.topic, arrays,
                key=f"{self.topic}-{group.number}-{uuid4().hex}", pure=False, priority=-group.number,
            )  # fmt: skip

    def _arrays(self, group: _Group) -> Any:
        """The packed arrays of the group's problem on the cluster, once a worker has asked for them."""
        if group.problem not in self.lacking:
            return None
        if group.problem not in self.sent:
            packed = task.pack(execute.prepare(group.runs[0], self.cluster.scratch))
            with self.cluster.reached():
                self.sent[group.problem] = self.cluster.client.scatter(packed, hash=False)
        return self.sent[group.problem]

    # -- back --

    def _keep(self, number: int, word: str, run: str, content: bytes) -> list[tuple[str, str]]:
        group = self.groups[number]
        if word == "begun":
            group.begun += 1
        elif word == "lacks":
            self.lacking.add(group.problem)
            self._again(group)
        elif run in group.left:
            found = pickle.loads(content)
            if word == "ended":
                self.store.write(run, found)
            else:
                self.store.fail(run, found)
            self._off(group, run)
            return [(run, found.meta["status"] if word == "ended" else found["why"])]
        return []

    def _off(self, group: _Group, run: str) -> None:
        group.left.discard(run)
        if not group.left:
            self.flying.pop(group.number, None)
            if group.problem in self.sent and not any(g.left and g.problem == group.problem for g in self.groups):
                del self.sent[group.problem]

    def _again(self, group: _Group) -> None:
        if self.flying.pop(group.number, None) is not None:
            self.waiting.appendleft(group)

    def _lost(self, group: _Group) -> list[tuple[str, str]]:
        """What is to be done with a group whose task is over although some of its runs did not come back."""
        from distributed.scheduler import KilledWorker

        future = self.flying[group.number]
        error = future.exception() if future.status == "error" else None
        if isinstance(error, task.Unfit):
            raise error
        if isinstance(error, ImportError):
            raise _lacking("a worker", error, self.ours)
        if error is not None and not isinstance(error, KilledWorker):
            return self._failed(group, f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error)))
        self.cluster.threads()  # an answer: the scheduler is there
        group.lost += 1
        self.sent.pop(group.problem, None)  # it may have been lost too
        if group.begun >= TRIES or group.lost >= 3 * TRIES:  # others in a lost worker's queue have not begun
            times = max(group.begun, group.lost)
            return self._failed(group, f"the worker that was to compute it was lost, {times} times", "")
        self._again(group)
        return []

    def _failed(self, group: _Group, why: str, trace: str) -> list[tuple[str, str]]:
        found = []
        for run in group.runs:
            if run.id in group.left:
                found.append((run.id, f"failed: {why}"))
                note = {"why": found[-1][1], "traceback": trace, "series": run.setting.series, "trial": run.trial}
                self.store.fail(run.id, note)
                self._off(group, run.id)
        return found

    def _tell_kept(self) -> None:
        """Let the cluster know which runs of unfinished groups are back."""
        open_ = [self.groups[number] for number in self.flying]
        kept = sorted(run.id for group in open_ for run in group.runs if run.id not in group.left)
        if kept != self.kept:
            self.kept = kept
            with self.cluster.reached():
                self.cluster.client.set_metadata([self.topic], kept)

    def _wait(self) -> None:
        from distributed import CancelledError, wait

        with contextlib.suppress(TimeoutError, CancelledError), self.cluster.client.as_current():
            wait(list(self.flying.values()), timeout=WAIT, return_when="FIRST_COMPLETED")
