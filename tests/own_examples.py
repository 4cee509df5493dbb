"""The examples with the user's own data: their scripts as modules, their specs, and copies of both to run."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

from .conftest import ROOT

FOLDER = ROOT / "examples"
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/example.py"))


def module(name: str) -> ModuleType:
    """The script of an example, not run."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / name / "example.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def copied(name: str, folder: Path) -> Path:
    """A copy of an example with its data made."""
    shutil.copytree(
        FOLDER / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.csv", "*.npz", "*.mat")
    )
    if (FOLDER / name / "example.py").exists():
        module(name).write(folder / name)
    return folder / name
