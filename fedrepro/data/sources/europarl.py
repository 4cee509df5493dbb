"""Europarl v7: parliament proceedings, sentences aligned pairwise with English (Koehn, statmt.org).

Read from the per-pair archives ``xx-en.tgz`` (``europarl-v7.xx-en.xx`` and ``.en``, one sentence per line). For each
language, the first translation of every distinct English sentence is kept under a 64-bit key of the English sentence,
so that any set of languages can be aligned on the English sentences they have in common.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

import numpy as np

from fedrepro.data.formats.npy_parts import Writer
from fedrepro.data.formats.trees import Entry
from fedrepro.data.source import FileSource, Findings, Remote
from fedrepro.errors import UserError

PAIRED = (
    "bg", "cs", "da", "de", "el", "es", "et", "fi", "fr", "hu",
    "it", "lt", "lv", "nl", "pl", "pt", "ro", "sk", "sl", "sv",
)  # fmt: skip
DEFAULT = ("da", "de", "el", "es", "fi", "fr", "it", "nl", "pt", "sv")
FILE = re.compile(rf"(?:^|/)europarl-v\d\.({'|'.join(PAIRED)})-en\.(\1|en)$")
FEWEST = 500_000  # sentences of a pair of the fifteen older members' languages: 1.2 to 2 million


def _parse(entries: Iterator[Entry], out: Writer) -> Findings:
    halves: dict[str, dict[str, list[bytes]]] = {}
    english: dict[int, bytes] = {}
    findings = Findings()
    for entry in entries:
        match = FILE.search(entry.path)
        assert match is not None
        pair = halves.setdefault(match[1], {})
        pair["en" if match[2] == "en" else "other"] = entry.read().split(b"\n")
        if len(pair) == 2:
            size = _pair(match[1], pair["en"], pair["other"], english, out)
            pair["en"] = pair["other"] = []
            if match[1] in DEFAULT and size < FEWEST:
                findings.differs.append(f"{match[1]}: {size:,} sentences, over a million are in the release")
    alone = sorted(language for language, pair in halves.items() if len(pair) == 1)
    if alone:
        raise UserError(f"of the pair {alone[0]}-en only one of the two files is there")
    _save(out, "en", sorted(english.items()))
    absent = [language for language in DEFAULT if language not in halves]
    findings.facts["notes"] = [f"without {', '.join(absent)}"] if absent else []
    return findings


def _pair(language: str, en: list[bytes], other: list[bytes], english: dict[int, bytes], out: Writer) -> int:
    if len(en) != len(other):
        raise UserError(
            f"the two files of {language}-en have {len(en):,} and {len(other):,} lines; they are not aligned"
        )
    kept: dict[int, bytes] = {}
    for line, translated in zip(en, other, strict=True):
        sentence, translation = line.strip(), translated.strip()
        if sentence and translation:
            key = int.from_bytes(hashlib.blake2b(sentence, digest_size=8).digest(), "little")
            if key not in kept:
                kept[key] = translation
                english.setdefault(key, sentence)
    if not kept:
        raise UserError(f"the files of {language}-en contain no sentences")
    _save(out, language, list(kept.items()))
    return len(kept)


def _save(out: Writer, language: str, sentences: list[tuple[int, bytes]]) -> None:
    out.save(language, "key", np.array([key for key, _ in sentences], dtype=np.uint64))
    lengths = np.array([len(text) for _, text in sentences], dtype=np.int64)
    out.save(language, "end", np.cumsum(lengths))
    out.save(language, "text", np.frombuffer(b"".join(text for _, text in sentences), dtype=np.uint8))


SOURCES = (
    FileSource(
        name="europarl",
        title="Europarl v7, sentences aligned with English",
        homepage="https://www.statmt.org/europarl/",
        licence="no known copyright restrictions, according to the homepage",
        files=tuple(
            Remote(f"{language}-en.tgz", (f"https://www.statmt.org/europarl/v7/{language}-en.tgz",))
            for language in DEFAULT
        ),
        pattern=FILE,
        parse=_parse,
        parts_by="languages",
        layouts="a folder of xx-en.tgz archives (or of their files europarl-v7.xx-en.xx and .en), not europarl.tgz",
        limit=60_000_000_000,
    ),
)
