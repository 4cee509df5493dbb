"""Colours of verdicts: on a terminal, as NO_COLOR and FORCE_COLOR ask, and never in a pipe."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result

from fedrepro.claims.evidence import VERDICTS
from fedrepro.cli import colour

Call = Callable[..., Result]
CODE = "from fedrepro.cli import main; main.main()"


def test_every_verdict_has_a_style_of_its_own() -> None:
    assert set(colour.STYLES) == {*VERDICTS, colour.STALE}
    assert len({str(style) for style in colour.STYLES.values()}) == len(colour.STYLES)


def test_a_word_is_as_wide_as_without_its_style() -> None:
    for verdict in VERDICTS:
        assert click.unstyle(colour.word(verdict, 19)) == f"{verdict:<19}"
    assert click.unstyle(colour.word("another", 9)) == "another  "
    line = "     claims  reproduced  not reproduced  stale figures"
    assert click.unstyle(colour.words(line)) == line
    assert colour.words("not reproduced") == colour.word("not reproduced")


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, None),
        ({"NO_COLOR": ""}, None),
        ({"NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ],
)
def test_the_environment_decides(environment: dict[str, str], wanted: bool | None) -> None:
    assert colour.choice(environment) is wanted


def test_only_colours_differ(fedrepro: Call, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fedrepro("run", small, "-q", "-j", 1)
    piped = fedrepro("verdict", small).output
    assert "\x1b" not in piped
    monkeypatch.setenv("FORCE_COLOR", "1")
    forced = fedrepro("verdict", small).output
    first = piped.split("  ")[0]
    assert forced.startswith(colour.word(first))
    assert click.unstyle(forced) == piped
    assert "\x1b" not in fedrepro("verdict", small, "--json").output
    assert fedrepro("verdict", small / "no").stderr.startswith("\x1b[31merror: ")
    monkeypatch.setenv("NO_COLOR", "1")
    assert fedrepro("verdict", small).output == piped
    assert "\x1b" not in fedrepro("verdict", small / "no").stderr


def said_on_a_terminal(words: list[str], environment: dict[str, str]) -> str:
    """Return what a command prints on a terminal."""
    ours, theirs = os.openpty()
    subprocess.run([sys.executable, "-c", CODE, *words], stdout=theirs, stderr=theirs, env=environment, check=True)
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 65536):
            parts.append(part)
    except OSError:  # the end of what a closed terminal has
        pass
    os.close(ours)
    return b"".join(parts).decode().replace("\r\n", "\n")


def test_on_a_terminal_verdicts_have_colours_unless_no_color(fedrepro: Call, small: Path, tmp_path: Path) -> None:
    fedrepro("run", small, "-q", "-j", 1)
    piped = fedrepro("verdict", small).output
    words = ["verdict", str(small), "--results", str(tmp_path / "results")]
    environment = {name: value for name, value in os.environ.items() if name != "TERM"} | {"TERM": "xterm"}
    shown = said_on_a_terminal(words, environment)
    assert "\x1b[" in shown
    assert click.unstyle(shown) == piped
    assert said_on_a_terminal(words, environment | {"NO_COLOR": "1"}) == piped
