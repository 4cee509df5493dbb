"""Progress of work: a bar on a terminal, and lines at regular intervals in a log."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

IN_RUNS = "says"  # see fedrepro.runs.identity.code

EVERY = 30.0
"""Seconds between two lines in a log."""

BAR = "{percentage:3.0f}%|{bar:20}| [{elapsed}<LEFT] {desc}"
"""Format of the bar on a terminal with the time that is left, cut at its right edge."""


class Progress:
    """A context that prints on standard error how many of ``pieces`` are done, the time so far and the time left.

    what : name of the pieces. total : their work in all, in the unit of ``step``, for the share that is shown.
    seconds : predicted time for all pieces, used until the first one is done. left : returns the seconds that are left,
    None if it cannot know; without it, the rest takes as long as the part that is done. quiet : print nothing.
    """

    def __init__(
        self,
        what: str,
        pieces: int,
        total: float | None = None,
        *,
        seconds: float | None = None,
        left: Callable[[], float | None] = lambda: None,
        quiet: bool = False,
        every: float = EVERY,
        stream: TextIO | None = None,
    ) -> None:
        self.what, self.pieces, self.seconds, self.quiet = what, pieces, seconds, quiet
        self.known_left = left
        self.total = float(pieces) if total is None else total
        self.stream = sys.stderr if stream is None else stream
        self.terminal = _is_terminal(self.stream)
        self.every = 1.0 if self.terminal else every
        self.done, self.amount = 0, 0.0
        self._stop = threading.Event()

    def __enter__(self) -> Progress:
        self._began = time.perf_counter()
        if self.quiet:
            return self
        if self.terminal:
            from tqdm import tqdm

            self._bar = tqdm(
                total=self.total, file=self.stream, dynamic_ncols=True, bar_format=BAR.replace("LEFT", "?")
            )
            self._bar.set_description_str(f"0/{self.pieces} {self.what}")
        self._ticking = threading.Thread(target=self._tick, daemon=True)
        self._ticking.start()
        return self

    def step(self, name: str, amount: float = 1.0) -> None:
        """Count one more piece as done. amount : its part of the total work."""
        self.done += 1
        amount = min(amount, max(0.0, self.total - self.amount))
        self.amount += amount
        if self.terminal and not self.quiet:
            self._bar.set_description_str(f"{self.done}/{self.pieces} {name}", refresh=False)
            self._bar.bar_format = self._format()
            self._bar.update(amount)

    def line(self) -> str:
        """Return the current line for a log."""
        gone, share, left = time.perf_counter() - self._began, self._share(), self._left()
        rest = "" if left is None else f", about {_clock(left)} left" if left > 0 else ", longer than predicted"
        rest = rest if self.done < self.pieces else ""
        return f"{self.what}: {self.done}/{self.pieces} ({share:.0%}), {_clock(gone)} elapsed{rest}"

    def _share(self) -> float:
        """Return the share of the work that is done."""
        return self.amount / self.total if self.total > 0 else 1.0

    def _left(self) -> float | None:
        """Return the predicted seconds that are left, at most 0 if all takes longer than predicted."""
        known = self.known_left()
        if known is not None:
            return known
        gone, share = time.perf_counter() - self._began, self._share()
        if share > 0:
            return gone * (1 - share) / share
        return self.seconds - gone if self.seconds is not None else None

    def _format(self) -> str:
        """Return the format of the bar, with the time that is left."""
        left = self._left()
        return BAR.replace("LEFT", "?" if left is None else self._bar.format_interval(max(0.0, left)))

    def _tick(self) -> None:
        """Print at regular intervals, even while no piece ends."""
        while not self._stop.wait(self.every):
            if self.terminal:
                self._bar.bar_format = self._format()
                self._bar.refresh()
            else:
                print(self.line(), file=self.stream, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.quiet:
            return
        self._stop.set()
        self._ticking.join()
        if self.terminal:
            self._bar.close()


def _is_terminal(stream: TextIO) -> bool:
    """Return whether a bar can be shown; some terminals, such as those of containers, have a size of zero."""
    try:
        return min(os.get_terminal_size(stream.fileno())) > 0
    except (OSError, ValueError, AttributeError):  # no terminal, not even a file, or a closed stream
        return False


def echo(text: str) -> None:
    """Print a line on standard output, above the bar if there is one."""
    if _is_terminal(sys.stderr):
        from tqdm import tqdm

        tqdm.write(text, file=sys.stdout)
    else:
        print(text, flush=True)


def duration(seconds: float) -> str:
    """Return a predicted time in words: ``42.0 s``, ``7 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def human(size: float) -> str:
    """Return a size as text, for example ``1.6 MB``."""
    if size < 1000:
        return f"{size:.0f} B"
    for unit in ("kB", "MB"):
        size /= 1000
        if size < 1000:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} GB"


def _clock(seconds: float) -> str:
    """Return seconds as ``m:ss`` or ``h:mm:ss``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
