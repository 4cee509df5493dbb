"""The largest amount of memory that this process has used."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path


def peak() -> float:
    """The most bytes this process has used, since ``restart_peak`` on Linux; 0 if the system does not report it."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return next(1024.0 * float(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:
        return 0.0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(most) * (1.0 if sys.platform == "darwin" else 1024.0)


def restart_peak() -> None:
    """Make the present memory the peak, on Linux; elsewhere the peak stays that of the whole process."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
