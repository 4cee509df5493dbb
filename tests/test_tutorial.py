"""The commands in the pages work as printed: the tutorial's shell, the Python of the page on own methods."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT

DOCS = ROOT / "docs"


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a page that are marked as this language, in order."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_tutorial_ends_with_a_figure_of_ones_own(tmp_path: Path, data_home: Path) -> None:
    shutil.copytree(ROOT / "experiments", tmp_path / "experiments")
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, words in (("fedrepro", "-m fedrepro"), ("python", "")):
        script = commands / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    scripts = blocks("tutorial.md", "sh")
    assert len(scripts) >= 8
    place = os.pathsep.join([str(commands), os.environ["PATH"]])
    environment = {**os.environ, "PATH": place, "PYTHONPATH": str(ROOT), "FEDREPRO_DATA": str(data_home)}
    script = "set -eu\n" + "\n".join(scripts)
    result = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert (tmp_path / "plots/mine/digits.png").stat().st_size > 10_000
    assert (tmp_path / "plots/smoke/fedc/fig1.png").stat().st_size > 10_000
    assert (tmp_path / "plots/mine/first.png").stat().st_size > 10_000
    assert (tmp_path / "results/mine/first.csv").exists()
    assert "'fedmsg' is not an algorithm, did you mean 'fedmgs'?" in result.stderr
    assert "exit code 2" in result.stdout
    assert re.search(r"^(holds|fails|undecided) +first\.cheaper", result.stdout, re.MULTILINE)


def test_the_method_on_the_page_is_k_means(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import numpy as np
    from sklearn.cluster import KMeans

    page = tmp_path / "page.py"
    page.write_text("".join(blocks("own-method.md", "python")), encoding="utf-8")
    names: dict[str, Any] = runpy.run_path(str(page), run_name="__main__")
    (own, *first), (other, *second) = (line.split() for line in capsys.readouterr().out.splitlines())
    assert (own, other) == ("FedLloyd", "FedMGS")
    assert int(first[2]) == 20 * 5 * (20 * 3 + 3)
    assert int(second[2]) == 20 * 5 * (20 * 3 + 9)
    X, method, run = names["X"], names["FedLloyd"], names["run"]
    W0 = X[:, :3]
    result = run(method(), names["problem"], rounds=10, init=(W0, np.zeros((3, X.shape[1]))), metrics=["accuracy"])
    wanted = KMeans(3, init=W0.T, n_init=1, max_iter=10).fit(X.T)
    np.testing.assert_allclose(result.state.W.T, wanted.cluster_centers_, rtol=1e-12)
    assert result["accuracy"][-1] == 1.0
