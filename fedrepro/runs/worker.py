"""``python -m fedrepro.runs.worker SCHEDULER``: a dask worker whose runs have the same bits as runs on this machine.

It is dask's own worker, with all of its options (``--help``). The instruction level is set before numpy is loaded,
which dask's own command does too early, and all code is loaded from a snapshot, so that the program that a worker
reports is the one it runs. The defaults are one thread per process, no dashboard, and no memory limit, because dask
counts memory-mapped arrays and would stop a worker that has room.
"""

from __future__ import annotations

import sys

from fedrepro import cpu, snapshot

DEFAULTS = {"nthreads": 1, "memory_limit": "0", "dashboard": False}
MEMORY = {f"distributed.worker.memory.{what}": False for what in ("target", "spill", "pause", "terminate")}


def main() -> None:
    """Become a worker until the scheduler or a signal ends it."""
    if not snapshot.is_snapshot():
        snapshot.run_from_copy("fedrepro.runs.worker", "main")
        return
    cpu.pin()
    try:
        import dask
        from distributed.cli.dask_worker import main as worker
    except ImportError:
        sys.exit('a worker needs dask.distributed: pip install "fedrepro[distributed]"')
    dask.config.set(MEMORY)
    worker.main(prog_name="python -m fedrepro.runs.worker", default_map=DEFAULTS)


if __name__ == "__main__":
    main()
