"""Programs compiled by XLA, shared by the processes of this machine, so that a network is compiled once.

JAX stores them in files if a variable names the folder before JAX loads. A stored program is the machine code that the
compiler made, so a run has the same bits with it as without. The folder is next to the arrays that processes share
and, like them, is removed if nothing was added to it for a week.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from fedrepro import cpu

FOLDER = "JAX_COMPILATION_CACHE_DIR"
LARGEST = 1 << 28
"""Bytes kept; the least recently used programs are removed first. With a limit, JAX also locks the folder."""


def shared(scratch: Path) -> dict[str, str]:
    """Return environment variables for processes that share programs; none if the user has set JAX's folder."""
    if os.environ.get(FOLDER):
        return {}
    folder = scratch.resolve() / f"programs-{_machine()}"
    with contextlib.suppress(OSError):  # the folder does not exist yet
        os.utime(folder)
    return {
        FOLDER: str(folder),
        "JAX_COMPILATION_CACHE_MAX_SIZE": str(LARGEST),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def _machine() -> str:
    """Return a name of this kind of CPU: another kind may lack instructions of a program compiled here."""
    facts = {cpu.model()}
    with contextlib.suppress(OSError):
        facts |= cpu.features()
    return hashlib.sha256("\n".join(sorted(facts)).encode()).hexdigest()[:8]
