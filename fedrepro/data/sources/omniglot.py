"""Omniglot: handwritten characters of 50 alphabets, PNG 105 x 105 in folders (Lake, Salakhutdinov and Tenenbaum)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

from fedrepro.data.formats.images import decode, shrunk
from fedrepro.data.formats.npy_parts import Writer
from fedrepro.data.formats.trees import Entry
from fedrepro.data.source import FileSource, Findings, Remote
from fedrepro.errors import UserError

ALPHABETS, CHARACTERS, DRAWINGS = 50, 1623, 20
SIDE, SMALL = 105, 28
PLACE = re.compile(r"(?:^|/)([^/]+)/(character\d+)/(\d+_\d+)\.png$", re.IGNORECASE)
ADDRESS = "https://github.com/brendenlake/omniglot/raw/master/python/"


def _parse(entries: Iterator[Entry], out: Writer) -> Findings:
    drawings: dict[tuple[str, str, str], bytes] = {}
    for entry in entries:
        match = PLACE.search(entry.path)
        assert match is not None
        key = match[1], match[2].lower(), match[3]
        ink = np.packbits(decode(entry.path, entry.read(), "L", (SIDE, SIDE)) < 128).tobytes()
        if drawings.setdefault(key, ink) != ink:
            raise UserError(f"{entry.path}: this drawing occurs twice, with different pixels")
    keys = sorted(drawings)  # alphabet, character, drawing
    alphabets = sorted({key[0] for key in keys})
    characters = sorted({key[:2] for key in keys})
    place = {character: i for i, character in enumerate(characters)}
    labels = np.array([place[key[:2]] for key in keys], dtype=np.int32)
    bits = np.frombuffer(b"".join(drawings[key] for key in keys), dtype=np.uint8).reshape(len(keys), -1)
    out.save("all", "ink", bits)
    out.save("all", "small", shrunk(bits, SIDE, SMALL))
    out.save("all", "labels", labels)
    out.save("all", "alphabet", np.array([alphabets.index(key[0]) for key in keys], dtype=np.int32))
    out.save("all", "alphabet_names", np.array([a.encode() for a in alphabets]))
    return _compared(len(alphabets), len(characters), Counter(np.bincount(labels).tolist()))


def _compared(alphabets: int, characters: int, drawings: Counter) -> Findings:
    findings = Findings()
    if (alphabets, characters) != (ALPHABETS, CHARACTERS):
        findings.differs.append(f"{alphabets} alphabets with {characters:,} characters instead of 50 with 1,623")
    if set(drawings) != {DRAWINGS}:
        findings.differs.append(f"{min(drawings)} to {max(drawings)} drawings of a character instead of 20")
    return findings


SOURCES = (
    FileSource(
        name="omniglot",
        title="Omniglot",
        homepage="https://github.com/brendenlake/omniglot",
        licence="MIT",
        files=(
            Remote(
                "images_background.zip", (f"{ADDRESS}images_background.zip",), "md5:68d2efa1b9178cc56df9314c21c6e718"
            ),
            Remote(
                "images_evaluation.zip", (f"{ADDRESS}images_evaluation.zip",), "md5:6b91aef0f799c5bb55b94e3f2daec811"
            ),
        ),
        pattern=PLACE,
        parse=_parse,
        layouts="images_background.zip and images_evaluation.zip, or folders Alphabet/characterNN/NNNN_NN.png",
        limit=1_000_000_000,
        published={"all": "d82e7c0f8d3a798c4853050c61a95c2b200ebaf42fde06a6b0959df3dcad58a8"},
        uses="drawings, characters or alphabets",
    ),
)
