"""Runs on many machines: groups of runs as tasks of a dask.distributed cluster (the extra ``distributed``).

This module uses dask's client directly, not joblib's dask backend: with dask 2026.8 and joblib 1.6, that backend waits
forever for a task that dask has given up because its workers died.
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
from fedrepro.runs.compute.run import Run
from fedrepro.runs.storage.store import Store
from fedrepro.runs.workers import task

CONNECT = 15.0
"""Seconds to wait for a scheduler's answer."""

TRIES = 4
"""How often a group is started on workers that are lost before its runs count as failed."""

AHEAD = 2
"""Groups submitted per worker, so that no worker waits for its next group."""

LOOK, WAIT = 1.0, 0.2
"""Seconds between two checks of the workers, and between two checks for finished runs."""

SILENT = logging.CRITICAL + 1
DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
"""The first statement of this command's worker processes: Ctrl-C goes to the command, which ends them."""


# -- connecting --------------------------------------------------------------------------------------------------------


class ClusterLost(UserError):
    """The scheduler no longer answers."""


@contextlib.contextmanager
def connected(address: str, scratch: Path, quiet: bool = False) -> Iterator[Cluster]:
    """Connect to the cluster at a scheduler's address; ``local:N`` starts N processes here, ended with the block.

    scratch : folder where processes of this machine share arrays. quiet : print only what concerns the numbers. Raises
    UserError without the extra, or if no scheduler answers.
    """
    distributed = _library()
    with contextlib.ExitStack() as stack:
        if address.startswith("local:"):
            own = stack.enter_context(_own_cluster(distributed, address, scratch))
            client = stack.enter_context(distributed.Client(own, set_as_default=False))
            yield Cluster(client, address, scratch, quiet, own=True)
        else:
            try:
                full = distributed.comm.normalize_address(address)
                distributed.comm.get_address_host_port(full, strict=True)  # a client takes half a minute to fail
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
    # This module reports lost workers and schedulers and Ctrl-C; tornado logs a call cut off before it began.
    for name in ("distributed", "distributed.client", "tornado.application"):
        logging.getLogger(name).setLevel(SILENT)
    return distributed


@contextlib.contextmanager
def _own_cluster(distributed: Any, address: str, scratch: Path) -> Iterator[Any]:
    """Start a scheduler and N processes of one thread on this machine, with their files under ``scratch``."""
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
                memory_limit=0,  # dask counts mapped arrays as memory, although the system can drop them
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
    """Return ``task.compute`` as code to send: dask ends a worker that receives a name it does not have."""

    def compute(*arguments: Any) -> None:
        import importlib

        importlib.import_module("fedrepro.runs.workers.task").compute(*arguments)

    return compute


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


# -- computing ---------------------------------------------------------------------------------------------------------


@dataclass
class _Group:
    """Runs that a worker computes together.

    left : ids of runs without an answer so far. begun, lost : how often the group was started and lost.
    """

    number: int
    runs: list[Run]
    left: set[str]
    begun: int = 0
    lost: int = 0

    @property
    def problem(self) -> str:
        """The problem that the runs share."""
        return self.runs[0].problem_id


@dataclass
class Cluster:
    """Workers that compute groups of runs. own : they are processes of this command and share its files."""

    client: Any
    address: str
    scratch: Path
    quiet: bool = False
    own: bool = False
    _known: set[str] = field(default_factory=set, init=False)
    _looked: float = field(default=0.0, init=False)

    def ready(self) -> int:
        """Wait for a worker; return the number of workers."""
        waiting = False
        while not (workers := self.threads()):
            if not waiting:
                self._print(f"no worker has joined {self.address} yet; waiting for one")
            waiting = True
            time.sleep(WAIT)
        return len(workers)

    def answers(
        self, groups: Sequence[list[Run]], contents: Mapping[str, str], store: Store, most: int | None
    ) -> Generator[tuple[str, str]]:
        """Compute the groups; yield (id, 'ok' | 'diverged' | 'failed: why') of each run once it is stored.

        contents : the fingerprint of each problem's data. most : groups submitted at a time (None: as many as the
        workers need). A group whose worker is lost is started again without its finished runs, up to ``TRIES`` times.
        Closing the iterator cancels submitted groups. Raises UserError if a worker runs another program, or the
        scheduler no longer answers.
        """
        sweep = _Sweep(self, groups, contents, store, most)
        try:
            yield from sweep.run()
        finally:
            sweep.stop()

    def check(self, names: Sequence[Sequence[str]]) -> int:
        """Check the workers once a second: new ones must run the same program. Return the number of workers."""
        if self._looked and time.monotonic() - self._looked < LOOK:
            return len(self._known)
        workers = self.threads()
        self._looked = time.monotonic()
        for address in sorted(self._known - set(workers)):
            self._print(f"the worker {address} is lost; its runs are tried again")
        if self._known and not workers:
            self._print("no worker is left; waiting for one")
        new = sorted(set(workers) - self._known)
        self._known = set(workers)
        if new:
            self._admit(new, workers, names)
        return len(workers)

    def _admit(self, new: Sequence[str], threads: Mapping[str, int], names: Sequence[Sequence[str]]) -> None:
        with self.reached():
            answers = self.client.run(task.facts, [list(pair) for pair in names], workers=list(new), on_error="return")
        ours = task.facts(names)
        doubts: Counter[str] = Counter()
        for address, theirs in answers.items():
            if isinstance(theirs, OSError):
                continue  # it has left already
            if isinstance(theirs, Exception):
                raise _lacking(f"the worker {address}", theirs, ours["program"])
            task.fit(address, threads[address], theirs["program"], ours["program"])
            doubts.update(set(theirs["doubts"]) - set(ours["doubts"]))
        for doubt, count in sorted(doubts.items()):
            tqdm.write(f"note: on {count} of {len(answers)} workers: {doubt}", file=sys.stderr)

    def threads(self) -> dict[str, int]:
        """Return the number of threads of each worker, by address. Raises ClusterLost if no scheduler answers."""
        with self.reached():
            return dict(self.client.nthreads())

    @contextlib.contextmanager
    def reached(self) -> Iterator[None]:
        """Enclose a block that talks to the scheduler. Raises ClusterLost if it does not answer."""
        try:
            yield
        except OSError as error:
            raise ClusterLost(
                f"the scheduler {self.address} no longer answers ({_first_line(error)}); finished runs are kept, and "
                "the same command continues from there"
            ) from None

    def _print(self, text: str) -> None:
        if not self.quiet:
            tqdm.write(text)


class _Sweep:
    """The groups of one call of ``answers``: waiting, submitted or done.

    Workers report by messages (``task.compute``); a group is done when each of its runs has an answer. Its future
    only reports what a worker cannot: that the worker is lost, or runs another program.
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
        self.kept: list[str] = []  # finished runs, which workers that start a group again leave out
        self.topic = f"fedrepro-{uuid4().hex}"
        with cluster.reached():
            self.queue = Queue(self.topic, client=cluster.client)

    def run(self) -> Iterator[tuple[str, str]]:
        """Yield the outcome of each run."""
        while self.waiting or self.flying:
            yield from self._send(self.cluster.check(self.names))
            over = [number for number, future in self.flying.items() if future.done()]  # their messages have arrived
            with self.cluster.reached():
                messages = self.queue.get(batch=True)
            yield from [answer for message in messages for answer in self._keep(*message)]  # store all, then yield
            self._publish_kept()
            for number in over:
                if number in self.flying:
                    yield from self._lost(self.groups[number])
            if not over and not messages:
                self._wait()

    def stop(self) -> None:
        """Cancel submitted groups; store the runs that have come back."""
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
            except Exception as error:  # recorded as a failure of these runs, as on one machine
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
        """Return the packed arrays of the group's problem on the cluster, if a worker has asked for them."""
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
            self._resubmit(group)
        elif run in group.left:
            outcome = pickle.loads(content)
            if word == "ended":
                self.store.write(run, outcome)
            else:
                self.store.fail(run, outcome)
            self._finish(group, run)
            return [(run, outcome.meta["status"] if word == "ended" else outcome["why"])]
        return []

    def _finish(self, group: _Group, run: str) -> None:
        group.left.discard(run)
        if not group.left:
            self.flying.pop(group.number, None)
            if group.problem in self.sent and not any(g.left and g.problem == group.problem for g in self.groups):
                del self.sent[group.problem]

    def _resubmit(self, group: _Group) -> None:
        if self.flying.pop(group.number, None) is not None:
            self.waiting.appendleft(group)

    def _lost(self, group: _Group) -> list[tuple[str, str]]:
        """Resubmit a group whose task ended without all of its runs, or return them as failed."""
        from distributed.scheduler import KilledWorker

        future = self.flying[group.number]
        error = future.exception() if future.status == "error" else None
        if isinstance(error, task.Unfit):
            raise error
        if isinstance(error, ImportError):
            raise _lacking("a worker", error, self.ours)
        if error is not None and not isinstance(error, KilledWorker):
            return self._failed(group, f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error)))
        self.cluster.threads()  # raises if the scheduler is lost too
        group.lost += 1
        self.sent.pop(group.problem, None)  # the lost worker may have held it
        if group.begun >= TRIES or group.lost >= 3 * TRIES:  # some wait in a lost worker's queue and never start
            times = max(group.begun, group.lost)
            return self._failed(group, f"its worker was lost {times} times", "")
        self._resubmit(group)
        return []

    def _failed(self, group: _Group, why: str, trace: str) -> list[tuple[str, str]]:
        left = [run for run in group.runs if run.id in group.left]
        for run in left:
            note = {"why": f"failed: {why}", "traceback": trace, "series": run.setting.series, "trial": run.trial}
            self.store.fail(run.id, note)
            self._finish(group, run.id)
        return [(run.id, f"failed: {why}") for run in left]

    def _publish_kept(self) -> None:
        """Publish which runs of unfinished groups have come back."""
        submitted = [self.groups[number] for number in self.flying]
        kept = sorted(run.id for group in submitted for run in group.runs if run.id not in group.left)
        if kept != self.kept:
            self.kept = kept
            with self.cluster.reached():
                self.cluster.client.set_metadata([self.topic], kept)

    def _wait(self) -> None:
        from distributed import CancelledError, wait

        with contextlib.suppress(TimeoutError, CancelledError), self.cluster.client.as_current():
            wait(list(self.flying.values()), timeout=WAIT, return_when="FIRST_COMPLETED")
