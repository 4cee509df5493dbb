"""Omniglot: 1,623 characters of 50 alphabets, 20 drawings each; clients are made of alphabets.

The paper pools the background and evaluation sets: it has all 1,623 characters (perfedsi section 4). Drawings are ink
255 on 0, shrunk from 105 x 105 by area averaging; 28 x 28 is the size that suits the paper's network best; the paper
names none.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from fedrepro.data.formats.images import shrunk
from fedrepro.data.formats.npy_parts import read
from fedrepro.datasets import standins
from fedrepro.datasets.types import Images
from fedrepro.parameters import Whole
from fedrepro.protocols import Cost, Dataset, Work
from fedrepro.registry import add_dataset

ALPHABETS, CHARACTERS, DRAWINGS = 50, 1623, 20
SIDE, STORED = 105, 28


@dataclass(frozen=True)
class Omniglot(Dataset):
    """Drawings of characters, sorted by alphabet and character. There is no split: clients draw their own.

    size : height and width in pixels, 4 .. 105. alphabets : number of alphabets kept, the first by name, 1 .. 50; None
        for all.
    """

    size: Annotated[int, Whole(4, SIDE)] = 28
    alphabets: Annotated[int | None, Whole(1, ALPHABETS)] = None

    def shape(self) -> dict[str, int | None]:
        """Return sizes of the full data; a copy with fewer alphabets has less."""
        everything = self.alphabets is None
        return {
            "images": CHARACTERS * DRAWINGS if everything else None,
            "classes": CHARACTERS if everything else None,
            "groups": ALPHABETS if everything else self.alphabets,
            "size": self.size,
        }

    def expected(self) -> dict[str, float]:
        """Return images and characters of an average alphabet."""
        share = (self.alphabets or ALPHABETS) / ALPHABETS
        whole_ = {"images": CHARACTERS * DRAWINGS * share, "classes": round(CHARACTERS * share)}
        return {**whole_, "channels": 1, "drawings": DRAWINGS}

    def making(self) -> Cost:
        """Return the cost of the stand-in: the distance of every pixel to every point of its strokes."""
        pixels = self.expected()["images"] * self.size**2
        return Cost(Work(singles=70.0 * pixels, calls=2000.0), holds=pixels + 2.5e7)

    def load(self, path: Path) -> Images:
        """Return pixels (n, size, size, 1); labels: the character, 0 .. C-1; group: the alphabet."""
        arrays = read(path, "all")
        group, labels = arrays["alphabet"], arrays["labels"]
        n = len(group) if self.alphabets is None else int(np.searchsorted(group, self.alphabets))
        pixels = arrays["small"][:n] if self.size == STORED else shrunk(arrays["ink"][:n], SIDE, self.size)
        names = [name.decode() for name in arrays["alphabet_names"][: int(group[n - 1]) + 1]]
        facts = {"alphabets": names, "characters": int(labels[n - 1]) + 1}
        return Images(np.asarray(pixels)[..., None], np.asarray(labels[:n]), np.asarray(group[:n]), None, facts)


def stand_in(wanted: Omniglot, rng: np.random.Generator) -> Images:
    """Drawn pen strokes in as many alphabets, 32 or 33 characters each (14 to 55 in the real data)."""
    per_alphabet = np.bincount(np.arange(CHARACTERS) % ALPHABETS)[: wanted.alphabets or ALPHABETS]
    return standins.characters(per_alphabet, DRAWINGS, wanted.size, rng)


add_dataset(
    "omniglot",
    Omniglot,
    "Omniglot: 1,623 handwritten characters of 50 alphabets, 20 drawings each",
    kind="images",
    source="omniglot",
    stand_in=stand_in,
)
