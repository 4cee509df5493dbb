"""What XLA compiled, shared by the processes of this machine: a network's programs are compiled once, not in each.

JAX keeps them in files itself, if it is told where before it loads. A program on file is the machine code that the
compiler made, so that a run has the same bits with it as without. The folder stands beside the arrays that processes
share, and goes like theirs when nothing was added to it for a week.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from fedrepro import cpu

FOLDER = "JAX_COMPILATION_CACHE_DIR"
LARGEST = 1 << 28
"""Bytes kept; programs that were not used for longest make room. With a limit JAX locks the folder, too."""


def shared(scratch: Path) -> dict[str, str]:
    """Variables for processes that are to share their programs; none where the user has told JAX where to keep them."""
    if os.environ.get(FOLDER):
        return {}
    folder = scratch.resolve() / f"programs-{_machine()}"
    with contextlib.suppress(OSError):  # nothing is there yet
        os.utime(folder)
    return {
        FOLDER: str(folder),
        "JAX_COMPILATION_CACHE_MAX_SIZE": str(LARGEST),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def _machine() -> str:
    """A name of this kind of CPU: another kind may not know the instructions of a program made here."""
    known = {cpu.model()}
    with contextlib.suppress(OSError):
        known |= cpu.features()
    return hashlib.sha256("\n".join(sorted(known)).encode()).hexdigest()[:8]
