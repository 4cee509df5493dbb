"""Descriptions of datasets' files: official addresses, published hashes, licence, and how a copy is read."""

from __future__ import annotations

import functools
import importlib
import itertools
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedrepro.data.formats.npy_parts import Writer
from fedrepro.data.formats.trees import Entry, walk
from fedrepro.errors import UserError


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

    def compare(self, what: str, count: int, official: int) -> None:
        """Note how a count differs from the official one."""
        self.counts[what] = count, official
        if count != official:
            self.differs.append(f"{count:,} {what} instead of {official:,}")


@dataclass(frozen=True)
class FileSource:
    """The files of one dataset.

    pattern : is found in the paths (without compression suffixes) of the files of a copy that are needed.
    parse(entries, out) : reads these files (at least one), in any usual layout, into arrays; raises UserError if the
    content cannot be this dataset, and reports variants in the findings. parts_by : the parameter of the loader whose
    value or values are the parts that it reads, '' if there is one part; parts are stored and identified separately.
    layouts : what to pass to ``import``, for messages. version : increased if ``parse`` writes
    other arrays; copies are then read again on first use. limit : largest number of bytes of an unpacked copy.
    published : by part, the known fingerprints of the arrays of the official files; a copy has the published content if
    its arrays do, because experiments use nothing else. uses : name of the arrays, for messages.
    """

    name: str
    title: str
    homepage: str
    licence: str
    files: tuple[Remote, ...]
    pattern: re.Pattern[str]
    parse: Callable[[Iterator[Entry], Writer], Findings]
    layouts: str
    limit: int
    parts_by: str = ""
    version: int = 1
    published: Mapping[str, str] = field(default_factory=dict)
    uses: str = "arrays"

    @property
    def pinned(self) -> bool:
        """Whether every file has a published hash."""
        return all(remote.hash for remote in self.files)

    def wanted(self, path: str) -> bool:
        """Return whether a file of a copy is needed."""
        return self.pattern.search(path) is not None

    def needs(self, params: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the parts that a loader with these parameters reads."""
        if not self.parts_by:
            return ("all",)
        parts = params[self.parts_by]
        return (parts,) if isinstance(parts, str) else tuple(map(str, parts))

    def read(self, paths: Iterable[Path], out: Path, used: dict[Path, str] | None = None) -> Findings:
        """Read files, archives or folders into arrays in the new folder ``out``.

        used : collects the files that were used. Raises UserError if they contain nothing of this dataset, or something
        else.
        """
        out.mkdir()
        entries = walk(paths, self.wanted, self.limit, used)
        first = next(entries, None)
        if first is None:
            raise UserError(f"contains nothing of {self.name}")
        return self.parse(itertools.chain([first], entries), Writer(out))


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
