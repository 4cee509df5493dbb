"""Descriptions of datasets' files: official addresses, published hashes, licence, and how a copy is read."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fedrepro.data.formats.trees import Entry
from fedrepro.data.parsed import Writer


@dataclass(frozen=True)
class Remote:
    """One official file. hash : ``md5:...`` or ``sha256:...`` as published, None if none is published."""

    file: str
    urls: tuple[str, ...]
    hash: str | None = None
    size: int | None = None


@dataclass
class Findings:
    """The findings of reading a copy: how it differs from the official content, and facts to record.

    counts : counts of the copy and of the official content; if they differ a lot, it is another dataset.
    """

    differs: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class FileSource:
    """The files of one dataset.

    wanted(path) : whether a file of a copy is needed (without compression suffixes). parse(entries, out) : reads the
    wanted files, in any usual layout, into arrays; raises UserError if the content cannot be this dataset, and reports
    variants in the findings. needs(params) : the parts that a loader with these parameters reads; parts are stored and
    identified separately. layouts : what to pass to ``import``, for messages. version : increased if ``parse`` writes
    other arrays; copies are then read again on first use. limit : largest number of bytes of an unpacked copy.
    published : by part, the known fingerprints of the arrays of the official files; a copy has the published content if
    its arrays do, because experiments use nothing else. uses : name of the arrays, for messages.
    """

    name: str
    title: str
    homepage: str
    licence: str
    files: tuple[Remote, ...]
    wanted: Callable[[str], bool]
    parse: Callable[[Iterator[Entry], Writer], Findings]
    layouts: str
    limit: int
    needs: Callable[[Mapping[str, Any]], tuple[str, ...]] = lambda params: ("all",)
    version: int = 1
    published: Mapping[str, str] = field(default_factory=dict)
    uses: str = "arrays"

    @property
    def pinned(self) -> bool:
        """Whether every file has a published hash."""
        return all(remote.hash for remote in self.files)


@functools.cache
def sources() -> dict[str, FileSource]:
    """Return all sources by name: every ``SOURCES`` tuple of the modules in ``fedrepro.data.sources``."""
    package = importlib.import_module("fedrepro.data.sources")
    by_name: dict[str, FileSource] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
        for source in importlib.import_module(f"fedrepro.data.sources.{module}").SOURCES:
            if source.name in by_name:
                raise RuntimeError(f"the source '{source.name}' is defined twice")
            by_name[source.name] = source
    return by_name
