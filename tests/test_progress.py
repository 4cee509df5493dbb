"""Progress: what is printed on a terminal of 80 columns and in a log."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import re
import struct
import termios
import time
from typing import TextIO

from fedrepro.progress import Progress

SERIES = "fedcgds m=10 Q1=100 Q2=100 gamma1=0.5 gamma2=0.5 @ bals / bals rounds=2000"


def terminal(lines: int) -> tuple[int, TextIO]:
    """One of 80 columns: what reads it, and what writes it."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, 80, 0, 0))
    return ours, os.fdopen(theirs, "w", encoding="utf-8")


def everything(ours: int) -> str:
    """What was written to a terminal that is closed by now; a single read may come before all of it has arrived."""
    parts = []
    with contextlib.suppress(OSError):  # the end of what a closed terminal has
        while part := os.read(ours, 65536):
            parts.append(part)
    os.close(ours)
    return b"".join(parts).decode()


def test_a_terminal_of_80_columns_shows_a_bar_the_times_and_what_was_done() -> None:
    ours, stream = terminal(lines=24)
    with stream, Progress("runs", 59, 200.0, stream=stream) as progress:
        for _ in range(30):
            progress.step(SERIES, 200 / 59)
            time.sleep(0.01)
    shown = [line for line in everything(ours).replace("\n", "\r").split("\r") if line.strip()]
    assert max(map(len, shown)) <= 80
    match = re.fullmatch(r" 51%\|(.{20})\| \[\d\d:\d\d<\d\d:\d\d\] 30/59 fedcgds m=10 Q1=.*", shown[-1])
    assert match, shown[-1]
    assert match[1].count("█") == 10


def test_a_log_has_a_line_every_so_often_also_while_nothing_is_done() -> None:
    stream = io.StringIO()
    with Progress("runs", 4, 10.0, seconds=100.0, every=0.05, stream=stream) as progress:
        time.sleep(0.2)
        progress.step("a", 5.0)
        time.sleep(0.2)
    lines = stream.getvalue().splitlines()
    assert 4 <= len(lines) <= 9
    assert lines[0] == "runs: 0/4 (0%), 0:00 elapsed, about 1:40 left"
    assert lines[-1] == "runs: 1/4 (50%), 0:00 elapsed, about 0:00 left"
    assert "\r" not in stream.getvalue()


def test_work_that_takes_longer_than_predicted_is_not_said_to_be_nearly_done() -> None:
    with Progress("runs", 2, 10.0, seconds=0.0, stream=io.StringIO()) as progress:
        assert progress.line().endswith("elapsed, longer than predicted")
        progress.step("a", 5.0)
        progress.step("b", 5.0)
        assert progress.line().endswith("(100%), 0:00 elapsed")


def test_a_terminal_without_lines_gets_those_of_a_log() -> None:
    ours, stream = terminal(lines=0)
    with stream, Progress("runs", 4, every=0.05, stream=stream):
        time.sleep(0.1)
    assert everything(ours).startswith("runs: 0/4 (0%), 0:00 elapsed")


def test_quiet_progress_says_nothing() -> None:
    stream = io.StringIO()
    with Progress("runs", 1, stream=stream, quiet=True, every=0.01) as progress:
        time.sleep(0.05)
        progress.step("a")
    assert stream.getvalue() == ""


def test_work_of_no_size_and_more_than_was_thought_is_told_as_done() -> None:
    with Progress("figures", 0, stream=io.StringIO()) as progress:
        assert progress.line().startswith("figures: 0/0 (100%)")
    with Progress("runs", 2, 10.0, stream=io.StringIO()) as progress:
        progress.step("a", 25.0)
        assert progress.line().startswith("runs: 1/2 (100%)")
    with Progress("runs", 2, stream=io.StringIO()) as progress:
        assert progress.line() == "runs: 0/2 (0%), 0:00 elapsed"
