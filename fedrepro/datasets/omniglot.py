"""Omniglot: 1,623 characters of 50 alphabets, 20 drawings each; the alphabet is what clients are made of.

The paper pools the background and evaluation sets: it has all 1,623 characters (perfedsi section 4). Drawings are ink
255 on 0, shrunk from 105 x 105 by area averaging; 28 x 28 is the size the paper's network fits best, it names none.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedrepro.data.formats.images import shrunk
from fedrepro.data.parsed import read
from fedrepro.datasets import standins
from fedrepro.datasets.checks import whole
from fedrepro.datasets.types import Images
from fedrepro.registry import Dataset, add_dataset

ALPHABETS, CHARACTERS, DRAWINGS = 50, 1623, 20
SIDE, STORED = 105, 28


def check(*, size: int = 28, alphabets: int | None = None) -> None:
    """Raise ParameterError for values that cannot work."""
    whole("size", size, 4, SIDE)
    if alphabets is not None:
        whole("alphabets", alphabets, 1, ALPHABETS)


def load(path: Path, *, size: int = 28, alphabets: int | None = None) -> Images:
    """pixels (n, size, size, 1); labels: the character, 0 .. C-1; group: the alphabet. Sorted by alphabet, character.

    ``alphabets`` keeps that many alphabets, the first by name. There is no split: clients draw their own.
    """
    check(size=size, alphabets=alphabets)
    arrays = read(path, "all")
    group, labels = arrays["alphabet"], arrays["labels"]
    n = len(group) if alphabets is None else int(np.searchsorted(group, alphabets))
    pixels = arrays["small"][:n] if size == STORED else shrunk(arrays["ink"][:n], SIDE, size)
    names = [name.decode() for name in arrays["alphabet_names"][: int(group[n - 1]) + 1]]
    facts = {"alphabets": names, "characters": int(labels[n - 1]) + 1}
    return Images(np.asarray(pixels)[..., None], np.asarray(labels[:n]), np.asarray(group[:n]), None, facts)


def shape(*, size: int = 28, alphabets: int | None = None) -> dict[str, int | None]:
    """Sizes of the full data; a copy with fewer alphabets has less."""
    everything = alphabets is None
    return {
        "images": CHARACTERS * DRAWINGS if everything else None,
        "classes": CHARACTERS if everything else None,
        "groups": ALPHABETS if everything else alphabets,
        "size": size,
    }


def stand_in(*, rng: np.random.Generator, size: int = 28, alphabets: int | None = None) -> Images:
    """Drawn pen strokes in as many alphabets, 32 or 33 characters each (14 to 55 in the real data)."""
    check(size=size, alphabets=alphabets)
    per_alphabet = np.bincount(np.arange(CHARACTERS) % ALPHABETS)[: alphabets or ALPHABETS]
    return standins.characters(per_alphabet, DRAWINGS, size, rng)


add_dataset(
    Dataset(
        name="omniglot",
        kind="images",
        summary="Omniglot: 1,623 handwritten characters of 50 alphabets, 20 drawings each",
        load=load,
        shape=shape,
        source="omniglot",
        stand_in=stand_in,
        check=check,
    )
)
