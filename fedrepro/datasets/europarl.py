"""Europarl: the same sentences in I languages, each as hashed word counts; train and test rows.

The paper (Shrestha and Fu, Sec. V-A.5) takes I = 10 of the 21 languages at random and does not name them (discrepancy
gcca.19), 160,000 sentences to train and 10,000 to
test, 2^19 = 524,288 hashed features. Default here: the ten languages of the fifteen older members beside English, in
this order, and the first 170,000 English sentences that all ten translate. Hashing is scikit-learn's
HashingVectorizer with its defaults (lower case, signed hashing, rows of unit norm).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.data.parsed import read
from fedrepro.datasets import standins
from fedrepro.datasets.checks import choice, whole
from fedrepro.datasets.types import Views
from fedrepro.errors import ParameterError
from fedrepro.registry import Dataset, add_dataset

LANGUAGES = (
    "bg", "cs", "da", "de", "el", "en", "es", "et", "fi", "fr", "hu",
    "it", "lt", "lv", "nl", "pl", "pt", "ro", "sk", "sl", "sv",
)  # fmt: skip
TEN = ("da", "de", "el", "es", "fi", "fr", "it", "nl", "pt", "sv")


def check(
    *,
    languages: Sequence[str] = TEN,
    train: int = 160_000,
    test: int = 10_000,
    features: int = 2**19,
    norm: str = "l2",
) -> None:
    """Raise ParameterError for values that cannot work."""
    if isinstance(languages, str) or len(languages) < 2 or len(set(languages)) != len(languages):
        raise ParameterError("languages", f"must be a list of two or more distinct languages, not {languages!r}")
    for language in languages:
        choice("languages", language, LANGUAGES)
    whole("train", train, 1)
    whole("test", test, 0)
    whole("features", features, 2, 2**30)
    choice("norm", norm, ("l2", "none"))


def load(
    path: Path,
    *,
    languages: Sequence[str] = TEN,
    train: int = 160_000,
    test: int = 10_000,
    features: int = 2**19,
    norm: str = "l2",
) -> Views:
    """I views (train + test, features), scipy.sparse CSR float64; the first ``train`` rows are for training.

    Row j of every view is the same sentence. Sentences stand in the order of the first language's file; repeated
    English sentences count once. Raises ParameterError where too few sentences are common to all languages.
    """
    check(languages=languages, train=train, test=test, features=features, norm=norm)
    parts = {language: read(path, language) for language in languages}
    rows = _common([np.asarray(part["key"]) for part in parts.values()])
    if len(rows[0]) < train + test:
        raise ParameterError(
            "train", f"{len(rows[0]):,} sentences are common to {', '.join(languages)}; {train + test:,} are asked for"
        )
    views = [
        hashed(_sentences(part, index[: train + test]), features, norm)
        for part, index in zip(parts.values(), rows, strict=True)
    ]
    return Views(views, None, {"train": train, "test": test, "languages": list(languages), "common": len(rows[0])})


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


def shape(
    *,
    languages: Sequence[str] = TEN,
    train: int = 160_000,
    test: int = 10_000,
    features: int = 2**19,
    norm: str = "l2",
) -> dict[str, int | None]:
    """J rows, I views of N features each."""
    return {"J": train + test, "I": len(languages), "N": features}


def stand_in(
    *,
    rng: np.random.Generator,
    languages: Sequence[str] = TEN,
    train: int = 160_000,
    test: int = 10_000,
    features: int = 2**19,
    norm: str = "l2",
) -> Views:
    """Drawn sentences of shared concepts that each language writes with its own words."""
    check(languages=languages, train=train, test=test, features=features, norm=norm)
    views = standins.translations(len(languages), train + test, features, rng, unit=norm == "l2")
    facts = {"stand_in": "drawn concepts; no real sentences", "train": train, "test": test}
    return Views(views, None, {**facts, "languages": list(languages)})


add_dataset(
    Dataset(
        name="europarl",
        kind="views",
        summary="Europarl: the same sentences in ten languages, hashed word counts",
        load=load,
        shape=shape,
        source="europarl",
        stand_in=stand_in,
        check=check,
    )
)
