"""What is known of a dataset's files: official addresses, published hashes, licence, and how a copy is read."""

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
    """One official file. ``hash`` is ``md5:...`` or ``sha256:...`` as published, None where nobody published one."""

    file: str
    urls: tuple[str, ...]
    hash: str | None = None
    size: int | None = None


@dataclass
class Findings:
    """What reading a copy showed: how it differs from the official content, and facts worth keeping.

    ``counts``: what can be counted in it, with what the official content has; far off, it is another dataset.
    """

    differs: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class FileSource:
    """One dataset's files.

    ``wanted(path)``: whether a file of a copy matters (compression endings are taken off first).
    ``parse(entries, out)``: read the wanted files, in any layout people have, into arrays; raise UserError where the
    content cannot be this dataset, note in the findings where it is a variant of it.
    ``needs(params)``: the parts that a loader with these parameters reads; parts are stored and identified apart.
    ``layouts``: what to pass to ``import``, for the messages.
    ``version``: raised when ``parse`` changes what it writes; copies are then read again on first use.
    ``limit``: the most bytes a copy may unpack to.
    ``published``: by part, the fingerprint of the arrays that ``parse`` reads from the official files, where it is
    known: whether a copy is the published content is then judged by these arrays, which are all that experiments use.
    ``uses``: what the arrays are, for the messages.
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
        """Whether a published hash is known for every file."""
        return all(remote.hash for remote in self.files)


@functools.cache
def sources() -> dict[str, FileSource]:
    """All sources by name: every ``SOURCES`` tuple of the modules in ``fedrepro.data.sources``."""
    package = importlib.import_module("fedrepro.data.sources")
    found: dict[str, FileSource] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
        for source in importlib.import_module(f"fedrepro.data.sources.{module}").SOURCES:
            if source.name in found:
                raise RuntimeError(f"the source '{source.name}' is defined twice")
            found[source.name] = source
    return found
