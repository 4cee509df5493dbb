"""What workers call instead of computing, to end them; they import nothing else of the tests."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from pathlib import Path

from fedrepro.runs.workers import local

computing = local.attempt
"""The function that workers call; in these tests it ends them."""


def dying(how: str, runs: list, store: Path, scratch: Path) -> list[tuple[str, str]]:
    """Compute runs, and die at the first trial of one of the curves."""
    outcomes = []
    for run in runs:
        if run.setting.params.get("m") == 2 and run.trial == 1:
            die(how)
        outcomes += computing([run], store, scratch)
    return outcomes


def die(how: str) -> None:
    if how == "SIGSEGV":
        ctypes.string_at(0)
    if how == "exit":
        os._exit(3)
    os.kill(os.getpid(), getattr(signal, how))
    time.sleep(60)
