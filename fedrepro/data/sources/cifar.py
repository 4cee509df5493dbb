"""CIFAR-10 and CIFAR-100 (Krizhevsky): pickled batches, the binary version, or images in class folders."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from fedrepro.data.formats.images import decode
from fedrepro.data.formats.npy_parts import Writer
from fedrepro.data.formats.pickles import arrays_of_bytes
from fedrepro.data.formats.trees import Entry
from fedrepro.data.source import FileSource, Findings, Remote
from fedrepro.errors import UserError, counted

TRAIN, TEST = 50_000, 10_000
FOLDERS = re.compile(r"(?i:(?:^|/)(train|test)/([^/]+)/([^/]+\.(?:jpe?g|png|bmp))$)")
LOSSY = (".jpg", ".jpeg")


@dataclass(frozen=True)
class Version:
    """The names and contents of the official files of one version.

    ``hashes`` and ``binaries``: md5 of the pickles and of the files of the binary version, which contain the same
    images.
    """

    classes: int
    label: str
    hashes: dict[str, str]
    binaries: dict[str, str]
    group: str = ""


TEN = Version(
    10,
    "labels",
    {
        "data_batch_1": "c99cafc152244af753f735de768cd75f",
        "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
        "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
        "data_batch_4": "634d18415352ddfa80567beed471001a",
        "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
        "test_batch": "40351d587109b95175f43aff81a1287e",
    },
    {
        "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
        "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
        "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
        "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
        "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
        "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
    },
)
HUNDRED = Version(
    100,
    "fine_labels",
    {"train": "16019d7e3df5f24257cddd939b257f8d", "test": "f0ef6b0ae62326f3e7ffdfab6717acfc"},
    {"train.bin": "6172c7755cfe09b2fe270c85cebc1b15", "test.bin": "4499cfba6c016c1be1438163640a0898"},
    "coarse_labels",
)


@dataclass
class _Pieces:
    """Batches by name, or single images by (train or test, class, file)."""

    batches: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=dict)
    images: dict[tuple[str, str, str], np.ndarray] = field(default_factory=dict)
    unofficial: list[str] = field(default_factory=list)


def _parser(version: Version) -> Callable[[Iterator[Entry], Writer], Findings]:
    def parse(entries: Iterator[Entry], out: Writer) -> Findings:
        pieces = _Pieces()
        for entry in entries:
            _take(version, entry, pieces)
        if pieces.batches:
            pixels, labels, group, split = _from_batches(pieces)
            differs = [f"{name} is not the published file" for name in pieces.unofficial]
        else:
            pixels, labels, group, split = _from_folders(version, pieces)
            differs = [_folders(pieces)]
        _save(version, out, pixels, labels, group, split)
        sizes = int((split == 0).sum()), int((split == 1).sum())
        if sizes != (TRAIN, TEST):
            differs.append(f"{sizes[0]:,} train and {sizes[1]:,} test images instead of 50,000 and 10,000")
        return Findings(differs, {"verified": not differs})  # every batch has its published md5

    return parse


def _folders(pieces: _Pieces) -> str:
    """How images in class folders differ from the batches."""
    if any(file.lower().endswith(LOSSY) for _, _, file in pieces.images):
        return "JPEG images in class folders: pixels differ from the published ones, the order of the batches is lost"
    return "images in class folders: the order of the batches is lost, their pixels cannot be compared"


def _take(version: Version, entry: Entry, pieces: _Pieces) -> None:
    folders = FOLDERS.search(entry.path)
    if folders:
        key = folders[1].lower(), folders[2], folders[3]
        pieces.images[key] = decode(entry.path, entry.read(), "RGB", (32, 32))
        return
    raw = entry.read()
    if entry.name in version.binaries:
        pieces.batches[entry.name.removesuffix(".bin")] = _binary(version, entry.name, raw)
    else:
        pieces.batches[entry.name] = _pickled(version, entry.name, raw)
    if hashlib.md5(raw, usedforsecurity=False).hexdigest() != {**version.hashes, **version.binaries}[entry.name]:
        pieces.unofficial.append(entry.name)


def _pickled(version: Version, name: str, raw: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    content = arrays_of_bytes(name, raw)
    data = content.get("data")
    if not isinstance(data, np.ndarray) or data.ndim != 2 or data.shape[1] != 3072 or version.label not in content:
        raise UserError(f"{name} has no 'data' (n, 3072) with '{version.label}'")
    group = content.get(version.group, []) if version.group else []
    return data, _labels(name, content[version.label]), _labels(name, group)


def _labels(name: str, values: object) -> np.ndarray:
    if not isinstance(values, list) or not all(type(v) is int and 0 <= v < 256 for v in values):
        raise UserError(f"{name}: labels must be a list of whole numbers")
    return np.array(values, dtype=np.int32)


def _binary(version: Version, name: str, content: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of label bytes (CIFAR-100: coarse, fine) and 3,072 pixel bytes."""
    heads = 2 if version.group else 1
    raw = np.frombuffer(content, dtype=np.uint8)
    if len(raw) == 0 or len(raw) % (heads + 3072):
        raise UserError(f"{name} is not made of rows of {heads + 3072:,} bytes")
    rows = raw.reshape(-1, heads + 3072)
    group = rows[:, 0].astype(np.int32) if version.group else np.empty(0, dtype=np.int32)
    return rows[:, heads:], rows[:, heads - 1].astype(np.int32), group


def _from_batches(pieces: _Pieces) -> tuple[np.ndarray, ...]:
    names = sorted(pieces.batches, key=lambda name: (name.startswith("test"), name))
    data, labels, group = (np.concatenate(column) for column in zip(*(pieces.batches[n] for n in names), strict=True))
    split = np.concatenate([np.full(len(pieces.batches[n][0]), n.startswith("test")) for n in names])
    return data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), labels, group, split


def _from_folders(version: Version, pieces: _Pieces) -> tuple[np.ndarray, ...]:
    """Take the classes in turn, so that the first n images contain about n / classes of each class."""
    classes = sorted({key[1] for key in pieces.images})
    if len(classes) != version.classes:
        raise UserError(f"{len(classes)} class folders instead of {version.classes}")
    turn: dict[tuple[str, str], int] = {}
    keys = []
    for part, name, file in sorted(pieces.images):
        position = turn[part, name] = turn.get((part, name), -1) + 1
        keys.append((part != "train", position, classes.index(name), file))
    keys.sort()
    order = [("test" if test else "train", classes[label], file) for test, _, label, file in keys]
    labels = np.array([label for _, _, label, _ in keys], dtype=np.int32)
    split = np.array([test for test, _, _, _ in keys])
    return np.stack([pieces.images[key] for key in order]), labels, np.empty(0, dtype=np.int32), split


def _save(
    version: Version, out: Writer, pixels: np.ndarray, labels: np.ndarray, group: np.ndarray, split: np.ndarray
) -> None:
    if len(labels) != len(pixels) or len(group) not in (0, len(pixels)):
        raise UserError(
            f"{counted(len(labels), 'label')} and {counted(len(pixels), 'image')}: every image needs one label"
        )
    if len(labels) == 0 or labels.max() >= version.classes:
        raise UserError(f"labels run to {labels.max(initial=-1)}, at most {version.classes - 1} is expected")
    out.save("all", "pixels", pixels)
    out.save("all", "labels", labels)
    out.save("all", "split", split.astype(np.int8))
    if len(group):
        out.save("all", "group", group)


def _source(name: str, title: str, version: Version, file: str, md5: str, size: int | None) -> FileSource:
    names = map(re.escape, (*version.hashes, *version.binaries))
    return FileSource(
        name=name,
        title=title,
        homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
        licence="no licence stated; cite Krizhevsky (2009)",
        files=(Remote(file, (f"https://www.cs.toronto.edu/~kriz/{file}",), f"md5:{md5}", size),),
        pattern=re.compile(f"(?:^|/)(?:{'|'.join(names)})$|{FOLDERS.pattern}"),
        parse=_parser(version),
        layouts=f"{file}, its folder, the binary version, or images in train/<class>/ and test/<class>/",
        limit=1_500_000_000,
    )


SOURCES = (
    _source("cifar10", "CIFAR-10", TEN, "cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a", 170_498_071),
    _source("cifar100", "CIFAR-100", HUNDRED, "cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85", None),
)
