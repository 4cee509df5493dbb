"""Europarl: the same sentences in I languages, each as hashed word counts; train and test rows.

The paper (Shrestha and Fu, Sec. V-A.5) takes I = 10 of the 21 languages at random and does not name them (discrepancy
gcca.19), 160,000 sentences to train and 10,000 to
test, 2^19 = 524,288 hashed features. Default here: the ten languages of the fifteen older members beside English, in
this order, and the first 170,000 English sentences that all ten translate. Hashing is scikit-learn's
HashingVectorizer with its defaults (lower case, signed hashing, rows of unit norm).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from fedrepro.data.formats.npy_parts import read
from fedrepro.datasets import standins
from fedrepro.datasets.types import Views
from fedrepro.errors import ParameterError
from fedrepro.parameters import OneOf, Whole, one_of, several
from fedrepro.protocols import Cost, Dataset, Work
from fedrepro.registry import add_dataset

LANGUAGES = (
    "bg", "cs", "da", "de", "el", "en", "es", "et", "fi", "fr", "hu",
    "it", "lt", "lv", "nl", "pl", "pt", "ro", "sk", "sl", "sv",
)  # fmt: skip
WORDS = 14.0
"""Different words of a sentence, on average."""

TEN = ("da", "de", "el", "es", "fi", "fr", "it", "nl", "pt", "sv")


@dataclass(frozen=True)
class Europarl(Dataset):
    """Sentences in several languages, one view per language; row j of every view is the same sentence.

    languages : two or more codes of the 21. train : rows to train with, at least 1. test : rows after them to test
    with, at least 0. features : columns that words are hashed to, 2 .. 2^30. norm : what each row is divided by: l2,
    its Euclidean norm, or none.
    """

    languages: Sequence[str] = TEN
    train: Annotated[int, Whole()] = 160_000
    test: Annotated[int, Whole(0)] = 10_000
    features: Annotated[int, Whole(2, 2**30)] = 2**19
    norm: Annotated[str, OneOf("l2", "none")] = "l2"

    def __post_init__(self) -> None:
        """Raise ParameterError if a value is invalid."""
        super().__post_init__()
        several("languages", self.languages)
        for language in self.languages:
            one_of("languages", language, LANGUAGES)

    def shape(self) -> dict[str, int | None]:
        """Return J rows to train with, I views of N features each."""
        return {"J": self.train, "I": len(self.languages), "N": self.features, "test": self.test}

    def expected(self) -> dict[str, float]:
        """Return the density: about 14 different words per sentence."""
        return {"density": min(1.0, WORDS / self.features)}

    def making(self) -> Cost:
        """Return the cost of drawing or joining every word, and sorting them by row."""
        words = WORDS * (self.train + self.test) * len(self.languages)
        return Cost(Work(singles=120.0 * words + 2e7, calls=1000.0), holds=14.0 * words + 2.5e7, libraries=("sklearn",))

    def load(self, path: Path) -> Views:
        """Return I views (train + test, features), scipy.sparse CSR float64; the first ``train`` rows are for training.

        Sentences are in the order of the first language's file; repeated English sentences count once. Raises
        ParameterError where too few sentences are common to all languages.
        """
        parts = {language: read(path, language) for language in self.languages}
        rows = _common([np.asarray(part["key"]) for part in parts.values()])
        wanted, common = self.train + self.test, len(rows[0])
        if common < wanted:
            raise ParameterError(
                "train",
                f"{common:,} sentences are common to {', '.join(self.languages)}; {wanted:,} are asked for",
            )
        views = [
            hashed(_sentences(part, index[:wanted]), self.features, self.norm)
            for part, index in zip(parts.values(), rows, strict=True)
        ]
        facts = {"train": self.train, "test": self.test, "languages": list(self.languages), "common": common}
        return Views(views, None, facts)


def _common(keys: list[np.ndarray]) -> list[np.ndarray]:
    """For each language the rows of the sentences that all have, in the order of the first language."""
    shared = keys[0]
    for other in keys[1:]:
        shared = shared[np.isin(shared, other)]
    rows = []
    for key in keys:
        order = np.argsort(key)
        rows.append(order[np.searchsorted(key, shared, sorter=order)])
    return rows


def _sentences(part: dict[str, np.ndarray], rows: np.ndarray) -> list[str]:
    end = np.asarray(part["end"])
    start = np.concatenate([[0], end[:-1]])
    text = part["text"]
    return [text[start[row] : end[row]].tobytes().decode("utf-8", "replace") for row in rows]


def hashed(sentences: list[str], features: int, norm: str) -> Any:
    """Hashed word counts of each sentence, CSR float64."""
    from sklearn.feature_extraction.text import HashingVectorizer

    return HashingVectorizer(n_features=features, norm=None if norm == "none" else norm).transform(sentences)


def stand_in(wanted: Europarl, rng: np.random.Generator) -> Views:
    """Drawn sentences of shared concepts that each language writes with its own words."""
    languages, rows = list(wanted.languages), wanted.train + wanted.test
    views = standins.translations(len(languages), rows, wanted.features, rng, unit=wanted.norm == "l2")
    facts = {"stand_in": "drawn concepts; no real sentences", "train": wanted.train, "test": wanted.test}
    return Views(views, None, {**facts, "languages": languages})


add_dataset(
    "europarl",
    Europarl,
    "Europarl: the same sentences in ten languages, hashed word counts",
    kind="views",
    source="europarl",
    stand_in=stand_in,
)
