"""Datasets on disk: where they lie, whether they are sound, and how loaders are given them."""

from __future__ import annotations

from fedrepro.data.content import fingerprint, reading
from fedrepro.data.copies import CopyState, folder, remove, state
from fedrepro.data.home import home
from fedrepro.data.imports import adopt
from fedrepro.data.loading import load

IN_RUNS = "reads"  # the content of files has a fingerprint; see fedrepro.runs.identity.code

__all__ = ["CopyState", "adopt", "fingerprint", "folder", "home", "load", "reading", "remove", "state"]
