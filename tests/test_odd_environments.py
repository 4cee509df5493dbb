"""Odd environments: closed streams, a deleted folder, full shared memory, warnings as errors, devices as files."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from fedrepro import processes
from fedrepro.errors import UserError

Call = Callable[..., Result]
ROOT = str(Path(__file__).parents[1])


def shell(command: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a shell command in which $PY is this Python with the package, and return it with its output."""
    env = {**os.environ, "PY": sys.executable, **more}
    return subprocess.run(["bash", "-c", command], cwd=cwd, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-"])
def test_closed_streams_do_not_end_a_run(small: Path, tmp_path: Path, closed: str) -> None:
    done = shell(f"$PY -m fedrepro run {small} --tier smoke -j 2 -q --results {tmp_path}/results {closed}", tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert (tmp_path / "results" / "smoke" / "beyond" / "small.csv").exists()


def test_files_named_like_modules_of_python_do_not_end_workers(small: Path, tmp_path: Path) -> None:
    for name in ("random", "subprocess", "signal", "warnings"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('imported')")
    done = shell(f"$PY -P -m fedrepro run {small} --tier smoke -j 2 -q", tmp_path, PYTHONPATH=ROOT)
    assert (done.returncode, "imported" in done.stderr) == (0, False), done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has this device")
@pytest.mark.parametrize("words", ["list", "--help"])
def test_output_that_cannot_be_written_is_one_line(tmp_path: Path, words: str) -> None:
    done = shell(f"$PY -m fedrepro {words} > /dev/full", tmp_path)
    said = "error: the output cannot be written (No space left on device)\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_a_deleted_working_folder_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = shell(f"rmdir {gone}; $PY -P -m fedrepro verdict fedc/fig5", gone, PYTHONPATH=ROOT)
    assert done.returncode == 2
    assert done.stderr == "error: the working folder was deleted; change to an existing folder (cd) and try again\n"


def test_warnings_as_errors_do_not_stop_a_command(small: Path, tmp_path: Path) -> None:
    done = shell(f"$PY -W error -m fedrepro plan {small} --tier smoke --results {tmp_path}/results", tmp_path)
    of_machine = ("the instruction level", "this machine is busy")  # notes with other kernels, and beside other work
    said = [line for line in done.stderr.splitlines() if not any(note in line for note in of_machine)]
    assert (done.returncode, said) == (0, [])


def test_full_shared_memory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from joblib.externals import loky

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(loky, "ProcessPoolExecutor", full)
    with pytest.raises(UserError, match=r"shared memory \(/dev/shm\) is full, .*; free it, or use --jobs 1"):
        processes.pool(2)


def test_a_pipe_or_a_device_is_not_a_picture(tmp_path: Path, fedrepro: Call) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    for path in (tmp_path / "pipe.png", Path("/dev/zero")):
        result = fedrepro("provenance", path)
        assert result.exit_code == 2
        assert f"{path}: is not a regular file" in result.output
