"""MNIST: handwritten digits, IDX files (LeCun, Cortes and Burges)."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import numpy as np

from fedrepro.data.formats.npy_parts import Writer
from fedrepro.data.formats.trees import Entry
from fedrepro.data.source import FileSource, Findings, Remote
from fedrepro.errors import UserError, counted

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
SIZES = {"train": 60_000, "test": 10_000}
PIECES = {
    "train-images-idx3-ubyte": ("train", "pixels"),
    "train-labels-idx1-ubyte": ("train", "labels"),
    "t10k-images-idx3-ubyte": ("test", "pixels"),
    "t10k-labels-idx1-ubyte": ("test", "labels"),
}
# md5 of the files as published, and of the bytes inside: a recompressed copy contains the same bytes.
HASHES = {
    "train-images-idx3-ubyte": ("f68b3c2dcbeaaa9fbdd348bbdeb94873", "6bbc9ace898e44ae57da46a324031adb"),
    "train-labels-idx1-ubyte": ("d53e105ee54ea40749a09fcbcd1e9432", "a25bea736e30d166cdddb491f175f624"),
    "t10k-images-idx3-ubyte": ("9fb629c4189551a2d022fa330f9573f3", "2646ac647ad5339dbf082846283269ea"),
    "t10k-labels-idx1-ubyte": ("ec29112dd5afa0611ce80d1b7f02629c", "27ae3e4e09519cfbb04c329615203637"),
}


NPZ = {  # the arrays inside the widespread mnist.npz
    "x_train.npy": ("train", "pixels"),
    "y_train.npy": ("train", "labels"),
    "x_test.npy": ("test", "pixels"),
    "y_test.npy": ("test", "labels"),
}
CSV = {"mnist_train.csv": "train", "mnist_test.csv": "test"}  # label, 784 pixels
FILE = re.compile(
    r"(?i)(?:^|/)(?:(?:train|t10k)-(?:images[-.]idx3|labels[-.]idx1)-ubyte|[xy]_(?:train|test)\.npy|mnist_(?:train|test)\.csv)$"
)


def _stem(path: str) -> str:
    return PurePosixPath(path).name.lower().replace(".idx", "-idx")


def _parse(entries: Iterator[Entry], out: Writer) -> Findings:
    findings = Findings()
    arrays: dict[tuple[str, str], np.ndarray] = {}
    for entry in entries:
        arrays.update(_arrays(_stem(entry.path), entry.name, entry.read()))
    for part in ("train", "test"):
        pixels, labels = arrays.get((part, "pixels")), arrays.get((part, "labels"))
        if pixels is None and labels is None:
            continue
        if pixels is None or labels is None:
            raise UserError(f"the {part} images and their labels are needed together, one of the two is missing")
        findings.differs += _check(part, pixels, labels)
        out.save(part, "pixels", pixels)
        out.save(part, "labels", labels)
    findings.facts["verified"] = not findings.differs  # every array has its published md5
    absent = [part for part in ("train", "test") if (part, "labels") not in arrays]
    findings.facts["notes"] = [f"without the {part} images" for part in absent]
    return findings


def _arrays(stem: str, name: str, raw: bytes) -> dict[tuple[str, str], np.ndarray]:
    if stem in PIECES:
        return {PIECES[stem]: idx(name, raw)}
    try:
        if stem in NPZ:
            return {NPZ[stem]: _bytes(name, np.lib.format.read_array(io.BytesIO(raw), allow_pickle=False))}
        first = raw[: raw.find(b"\n")]
        header = int(not first.replace(b",", b"").strip().isdigit())
        table = _bytes(name, np.loadtxt(io.BytesIO(raw), delimiter=",", skiprows=header, dtype=np.int64, ndmin=2))
    except ValueError as error:
        raise UserError(f"{name} cannot be read ({error})") from error
    if table.shape[1] != 785:
        raise UserError(f"{name} has {table.shape[1]} columns, a label and 784 pixels are expected")
    return {(CSV[stem], "pixels"): table[:, 1:].reshape(-1, 28, 28), (CSV[stem], "labels"): table[:, 0]}


def _bytes(name: str, array: np.ndarray) -> np.ndarray:
    if array.size and (array.dtype.kind not in "biu" or array.min() < 0 or array.max() > 255):
        raise UserError(f"{name} must contain whole numbers 0 to 255")
    return array.astype(np.uint8)


def _check(part: str, pixels: np.ndarray, labels: np.ndarray) -> list[str]:
    if pixels.ndim != 3 or pixels.shape[1:] != (28, 28):
        raise UserError(f"the {part} images have shape {pixels.shape}, (n, 28, 28) is expected")
    if labels.shape != pixels.shape[:1]:
        raise UserError(
            f"{counted(len(labels), 'label')} and {counted(len(pixels), f'{part} image')}: every image needs one label"
        )
    if len(labels) == 0 or labels.max() > 9:
        raise UserError(f"the {part} labels are not digits 0 to 9")
    if len(labels) != SIZES[part]:
        return [f"{len(labels):,} {part} images instead of {SIZES[part]:,}"]
    stems = {where: stem for stem, where in PIECES.items()}
    return [
        f"the {part} {kind} are not the published ones"
        for kind, array in (("pixels", pixels), ("labels", labels))
        if hashlib.md5(as_idx(array), usedforsecurity=False).hexdigest() != HASHES[stems[part, kind]][1]
    ]


def idx(name: str, raw: bytes) -> np.ndarray:
    """The array of unsigned bytes in an IDX file: two zero bytes, type 8, dimensions, their sizes, data."""
    if len(raw) < 4 or raw[:3] != b"\x00\x00\x08":
        raise UserError(f"{name} is not an IDX file of unsigned bytes")
    head = 4 + 4 * raw[3]
    if len(raw) < head:
        raise UserError(f"{name} has {len(raw)} bytes, fewer than the {head} of its header")
    shape = tuple(int(s) for s in np.frombuffer(raw[4:head], dtype=">u4"))
    size = int(np.prod(shape, dtype=object)) if shape else 0
    if len(raw) != head + size:
        raise UserError(f"{name} contains {len(raw) - head:,} bytes of data, but its header announces {size:,}")
    return np.frombuffer(raw, dtype=np.uint8, offset=head).reshape(shape)


def as_idx(array: np.ndarray) -> bytes:
    """Return an array of unsigned bytes as the content of an IDX file."""
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes() + array.tobytes()


SOURCES = (
    FileSource(
        name="mnist",
        title="MNIST handwritten digits",
        homepage="http://yann.lecun.com/exdb/mnist/",
        licence="CC BY-SA 3.0 as mirrors state it",
        files=tuple(
            Remote(f"{stem}.gz", tuple(f"{mirror}{stem}.gz" for mirror in MIRRORS), f"md5:{md5}")
            for stem, (md5, _) in HASHES.items()
        ),
        pattern=FILE,
        parse=_parse,
        parts_by="split",
        layouts="the IDX files, compressed or not (both pairs, or one), mnist.npz, mnist_train.csv or mnist_test.csv",
        limit=400_000_000,
        published={
            "train": "afbe4a9c40347015f13e90e4017fe71d2201ab1ee684ab2f1e76f529f26ebbe1",
            "test": "54b5be7f2ef37c1d86702aeb436c0d8add3fd0450a507518068fe182f001ba8f",
        },
        uses="images and labels",
    ),
)
