"""README and pages work as printed: README's commands and files, the tutorial's shell, the Python of own methods."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from fedrepro.errors import UserError

from .conftest import ROOT

DOCS = ROOT / "docs"
README = ROOT / "README.md"


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of a page that are marked as this language, in order."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def shell(script: str, folder: Path, data_home: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in a folder, where ``fedrepro`` and ``python`` are those of this environment."""
    commands = folder / "bin"
    commands.mkdir()
    for name, words in (("fedrepro", "-m fedrepro"), ("python", "")):
        wrapper = commands / name
        wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n', encoding="utf-8")
        wrapper.chmod(0o755)
    place = os.pathsep.join([str(commands), os.environ["PATH"]])
    environment = {**os.environ, "PATH": place, "PYTHONPATH": str(ROOT), "FEDREPRO_DATA": str(data_home)}
    return subprocess.run(
        ["bash", "-c", f"set -eu\n{script}"],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


FIRM = ("in every reading", "one reading")
"""The classes of verdicts that no reading changes."""


def kept_claims() -> str:
    return (ROOT / "results" / "paper" / "REPORT.md").read_text(encoding="utf-8")


def test_the_readme_is_short_and_counts_the_claims_of_the_report() -> None:
    text = " ".join(README.read_text(encoding="utf-8").split())
    assert len(text.split()) <= 900
    said = re.search(
        r"(\d+) claims of the papers are tested: (\d+) are reproduced, (\d+) are not, (\d+) contradict .* decide "
        r"(\d+)\. .* (\d+) of the (\d+) and (\d+) of the (\d+) have the same verdict in every reading, or have only "
        r"one reading\. "
        r"Another (\d+) tested claims are our own",
        text,
    )
    assert said is not None
    papers, reproduced, refuted, contradicted, open_ones, firm, again, firmly, once_more, ours = map(int, said.groups())
    paper = re.search(r"^\| paper \| (\d+) \| (.*?) \|", kept_claims(), re.MULTILINE)
    assert paper is not None
    counts = {verdict: int(number) for number, verdict in (part.split(" ", 1) for part in paper[2].split(", "))}
    assert counts == {
        "reproduced": reproduced, "not reproduced": refuted, "within noise": open_ones,
        "text against figure": contradicted,
    }  # fmt: skip
    assert (papers, ours) == (sum(counts.values()), int(paper[1]) - papers)
    same = [re.search(rf"^\| {kind} \| (\d+) \| (\d+) \|", kept_claims(), re.MULTILINE) for kind in FIRM]
    assert (firm, firmly) == tuple(sum(int(found[place]) for found in same if found) for place in (1, 2))
    assert (again, once_more) == (reproduced, refuted)


@pytest.mark.slow
def test_the_readme_has_a_result_in_a_minute(tmp_path: Path, data_home: Path) -> None:
    shutil.copytree(ROOT / "experiments", tmp_path / "experiments")
    kept = Path("results/paper/gcca")
    shutil.copytree(ROOT / kept, tmp_path / kept)
    (script,) = blocks(README, "sh")
    assert len(script.splitlines()) == 5
    result = shell(script, tmp_path, data_home)
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"^FedMGS ends lower than FedMAvg: by 0\.0\d+ ", result.stdout, re.MULTILINE)
    assert (tmp_path / "plots/smoke/fedc/fig1.png").stat().st_size > 10_000
    assert (tmp_path / "plots/paper/gcca/fig4.a.png").stat().st_size > 10_000
    assert re.search(r"^reproduced +gcca\.4c ", result.stdout, re.MULTILINE)
    assert "numbers: AltMaxVar, randn ends at" in result.stdout


@pytest.mark.slow
def test_own_data_and_an_own_method_take_the_lines_of_the_readme(tmp_path: Path, data_home: Path) -> None:
    runpy.run_path(str(ROOT / "examples" / "samples" / "example.py"))["write"](tmp_path)
    data, method = blocks(README, "python")
    assert [len([line for line in block.splitlines() if line]) for block in (data, method)] == [6, 5]
    (tmp_path / "data.py").write_text(data, encoding="utf-8")
    (tmp_path / "eager.py").write_text(method, encoding="utf-8")
    (on_a_file,) = [block for block in blocks(README, "text") if "samples.csv" in block]
    duel = "fedrepro duel eager.py:EagerMGS fedmgs --data digits"
    assert f"`{duel}`" in README.read_text(encoding="utf-8")
    short = " --trials 2 --rounds 5"
    script = "\n".join([on_a_file.rstrip() + short, "python data.py", duel + short])
    result = shell(script, tmp_path, data_home)
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"^FedMGS [01]\.\d+\nFedMAvg [01]\.\d+$", result.stdout, re.MULTILINE)
    assert {path.name for path in tmp_path.glob("*.yaml")} == {
        "fedmgs-fedmavg-samples.yaml", "eagermgs-fedmgs-digits.yaml",
    }  # fmt: skip
    assert "EagerMGS" in result.stdout.splitlines()[-1]


@pytest.mark.slow
def test_the_tutorial_ends_with_a_figure_of_ones_own(tmp_path: Path, data_home: Path) -> None:
    shutil.copytree(ROOT / "experiments", tmp_path / "experiments")
    scripts = blocks(DOCS / "tutorial.md", "sh")
    assert len(scripts) >= 8
    result = shell("\n".join(scripts), tmp_path, data_home)
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
    page.write_text("".join(blocks(DOCS / "own-method.md", "python")), encoding="utf-8")
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


def test_the_spec_with_an_own_method_and_a_claim_works_as_printed(tmp_path: Path, data_home: Path) -> None:
    page = DOCS / "own-method.md"
    (tmp_path / "my_method.py").write_text(blocks(page, "python")[0], encoding="utf-8")
    (spec,) = blocks(page, "yaml")
    (tmp_path / "lloyd.yaml").write_text(spec, encoding="utf-8")
    (script,) = [block for block in blocks(page, "text") if "lloyd.yaml" in block]
    result = shell(script.replace("--plot", "-j 1"), tmp_path, data_home)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "mine/lloyd: complete" in result.stdout
    assert re.search(r"^(holds|fails|undecided) +lloyd\.lower", result.stdout, re.MULTILINE)
    assert "numbers: FedLloyd m=5 ends at" in result.stdout


def printed_commands(text: str) -> set[str]:
    """The calls of fedrepro in the blocks and code spans of a page, without comments and what follows them."""
    text = text.replace("\\\n", " ")
    calls = re.findall(r"^(fedrepro [^\n]*)$", text, re.MULTILINE)
    calls += [" ".join(span.split()) for span in re.findall(r"`(fedrepro [^`]+)`", text)]
    return {re.split(r"\s+#|\s+\|\|", call)[0] for call in calls}


def misused(call: str) -> str:
    """What is wrong with the command or the options of a call, or nothing."""
    from fedrepro.cli.main import main

    command, words = main, shlex.split(call)[1:]
    context = click.Context(command)
    try:
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            _, command, words = command.resolve_command(context, words)
            context = click.Context(command, parent=context)
        command.make_parser(context).parse_args(words)
    except (click.UsageError, UserError) as error:
        return f"{call}: {error}"
    return ""


def test_every_command_that_readme_and_pages_print_exists() -> None:
    pages = [README, ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
    calls = set().union(*(printed_commands(page.read_text(encoding="utf-8")) for page in pages))
    assert len(calls) > 100
    assert [wrong for call in sorted(calls) if (wrong := misused(call))] == []
    assert "'runs' is not a command, did you mean 'run'?" in misused("fedrepro runs fedc/fig5")
    assert "No such option" in misused("fedrepro run fedc/fig5 --out x")
