"""The user's own labelled images, by client, with side information.

``path`` is an archive (.npz, .mat) with ``pixels`` (n, height, width[, channels]), ``labels`` (n,) and optionally
``client`` (n,), ``split`` (n,; 0 train, 1 test) and ``side`` (M, q; a row for each client in their sorted order), or a
folder ``CLIENT/CLASS/image.png`` (PNG, JPEG, BMP; with a split ``CLIENT/train/CLASS`` and ``CLIENT/test/CLASS``) with
an optional ``side.csv`` of a row for each client. Pixels are integers from 0 to 255, or fractions from 0 to 1. The
networks of the problem ``personal`` are convolutional, so images must be square with at least 16 x 16 pixels; ``size``
resizes them. Feature vectors are not supported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from fedrepro.data import own_paths
from fedrepro.data.formats.named_arrays import ARCHIVES
from fedrepro.datasets.own_files import Array, Content, OwnFiles, numbered, one_row_each, opened
from fedrepro.datasets.own_types import ClientImages
from fedrepro.datasets.sizes import size
from fedrepro.errors import ParameterError
from fedrepro.parameters import Name, Whole
from fedrepro.protocols import Cost, Work
from fedrepro.registry import add_dataset

ARRAYS = {
    "pixels": Array("any"),
    "labels": Array("ids"),
    "client": Array("ids", usual=("client",)),
    "split": Array("marks", usual=("split",)),
}
SIDE = {"side": Array("side", usual=("side",), aligned=False)}
PICTURES = (".png", ".jpg", ".jpeg", ".bmp")
SIDE_FILE = "side.csv"
MOST = 100_000_000
"""Largest number of pixels of an image."""


@dataclass(frozen=True)
class ImagesFile(OwnFiles):
    """Labelled images in an archive or a folder.

    path : the archive, or the folder with a folder for each client. pixels, labels : names of the archive's arrays.
    client, split, side : the same; None uses arrays with these names, if any. size : height and width that images are
    resized to; None not to resize them.
    """

    files = ("path", "side")

    path: Annotated[str, own_paths.OwnFile(*ARCHIVES, folders=True)]
    pixels: Annotated[str, Name()] = "pixels"
    labels: Annotated[str, Name()] = "labels"
    client: Annotated[str | None, Name()] = None
    split: Annotated[str | None, Name()] = None
    side: Annotated[str | None, Name()] = None
    size: Annotated[int | None, Whole(4, 512)] = None

    def shape(self) -> dict[str, Any]:
        """Return images, classes, size; clients P, numbers of side information, train and test images if known."""
        return {name: value for name, value in self.sizes().items() if name != "channels"}

    def expected(self) -> dict[str, Any]:
        """Return channels, and the numbers of train and test images if they are drawn."""
        known = self.sizes()
        train = round(0.8 * known["images"])
        return {"channels": known["channels"], "train": train, "test": known["images"] - train}

    def measured(self) -> dict[str, Any]:
        """Return the shape, and the channels."""
        data = self.load()
        sizes: dict[str, Any] = {**size(data), "channels": int(data.pixels.shape[3])}
        sizes |= {} if data.client is None else {"P": int(data.client.max()) + 1}
        return sizes | ({} if data.side is None else {"side": int(data.side.shape[1])})

    def making(self) -> Cost:
        """Return the cost of decoding every pixel."""
        known = self.sizes()
        values = known["images"] * known["size"] ** 2 * known["channels"]
        return Cost(Work(singles=20.0 * values, calls=2000.0), holds=8.0 * values)

    def load(self) -> ClientImages:
        """Return pixels (n, size, size, channels) uint8; labels and clients are numbered in their sorted order.

        Raises ParameterError if the images are not images, not square, or do not match labels, clients or ``side``.
        """
        arrays = self.arrays()
        labels, classes = numbered(arrays["labels"])
        client, clients = numbered(arrays["client"]) if "client" in arrays else (None, [])
        side = arrays.get("side")
        if side is not None:
            if client is None:
                raise ParameterError("side", "is of clients, but these images have none: give client")
            one_row_each("side", side, len(clients))
        split = arrays["split"].astype(np.int8) if "split" in arrays else None
        facts: dict[str, Any] = {"file": Path(self.path).name, "classes": classes}
        return ClientImages(arrays["pixels"], labels.astype(np.int32), None, split, facts, client, side)

    def read(self) -> dict[str, Any]:
        """Return pixels, labels, client, split and side."""
        if Path(self.path).is_dir():
            arrays = self._of_folder()
        else:
            arrays = opened("path", self.path).take(self, ARRAYS | SIDE)
        pixels = _square(self.path, arrays["pixels"])
        if self.size is not None and pixels.shape[1] != self.size:
            pixels = np.stack([_resized(image, self.size) for image in pixels])
        return {**arrays, "pixels": pixels}

    def _of_folder(self) -> dict[str, Any]:
        path = Path(self.path)
        listed = list(_pictures(path))
        if not listed:
            raise ParameterError("path", f"{path} contains no images CLIENT/CLASS/name.png (PNG, JPEG, BMP)")
        clients, parts, labels, files = zip(*listed, strict=True)
        if None in parts and len(set(parts)) > 1:
            raise ParameterError("path", f"{path}: some clients have folders train and test and some do not")
        arrays: dict[str, Any] = {"pixels": _all_decoded(files, self.size), "labels": labels, "client": clients}
        if None not in parts:
            arrays["split"] = [part == "test" for part in parts]
        side = self.side or str(path / SIDE_FILE)
        if self.side is not None or Path(side).is_file():
            arrays["side"] = Content(path, {}).read_side("side", side, "client")
        return arrays


def _pictures(path: Path) -> Iterator[tuple[str, str | None, str, Path]]:
    """Yield client, part (None without a split), class and file of every image, in order."""
    for file in sorted(path.rglob("*")):
        parts = file.relative_to(path).parts
        if file.suffix.lower() not in PICTURES or not file.is_file():
            continue
        if len(parts) == 3:
            yield parts[0], None, parts[1], file
        elif len(parts) == 4 and parts[1] in ("train", "test"):
            yield parts[0], parts[1], parts[2], file
        else:
            raise ParameterError("path", f"{file} is neither in CLIENT/CLASS nor in CLIENT/train/CLASS of {path}")


def _all_decoded(files: Sequence[Path], size: int | None) -> np.ndarray:
    """Return all images, grey if the first ones are, else coloured. Raises ParameterError if they differ in size."""
    mode = "L" if {_mode(file) for file in files[:2000]} == {"L"} else "RGB"
    pixels = [_decoded(file, mode, size) for file in files]
    other = next((i for i, image in enumerate(pixels) if image.shape != pixels[0].shape), None)
    if other is not None:
        shapes = [f"{files[i].name} {pixels[i].shape[1]} x {pixels[i].shape[0]}" for i in (0, other)]
        raise ParameterError(
            "size", f"images differ in size ({', '.join(shapes)} pixels); give the size to resize them to"
        )
    return np.stack(pixels)


def _mode(file: Path) -> str:
    return "L" if _opened(file).mode in ("1", "L", "I", "I;16", "LA") else "RGB"


def _opened(file: Path) -> Any:
    from PIL import Image

    try:
        image = Image.open(file, formats=("PNG", "JPEG", "BMP"))
    except Exception as error:  # Pillow raises any error on broken bytes
        raise ParameterError("path", f"{file} is not a readable image ({error})") from error
    if image.size[0] * image.size[1] > MOST:
        raise ParameterError("path", f"{file} has {image.size[0]} x {image.size[1]} pixels; at most {MOST:,} are read")
    return image


def _decoded(file: Path, mode: str, size: int | None) -> np.ndarray:
    from PIL import Image

    try:
        image = _opened(file).convert(mode)
        image = image if size is None else image.resize((size, size), Image.Resampling.BILINEAR)
        pixels = np.asarray(image, dtype=np.uint8)
    except ParameterError:
        raise
    except Exception as error:
        raise ParameterError("path", f"{file} is not a readable image ({error})") from error
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


def _square(path: Any, values: Any) -> np.ndarray:
    """Return pixels (n, size, size, channels) uint8."""
    pixels = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
    if pixels.ndim == 2:
        n, d = pixels.shape
        raise ParameterError(
            "pixels",
            f"{path} has feature vectors, {n:,} x {d:,}: the networks here are convolutional and need images (n, "
            "height, width) or (n, height, width, channels). Reshape them if they are images; for feature vectors "
            "use the problems clustering (dataset file) or regression (dataset regression-file)",
        )
    pixels = pixels[..., None] if pixels.ndim == 3 else pixels
    if pixels.ndim != 4 or 0 in pixels.shape or pixels.shape[3] not in (1, 3):
        raise ParameterError(
            "pixels", f"must have shape (n, height, width) or (n, height, width, 1 or 3), not {pixels.shape}"
        )
    if pixels.shape[1] != pixels.shape[2]:
        raise ParameterError(
            "pixels", f"must be square, not {pixels.shape[1]} x {pixels.shape[2]}: crop or pad the images"
        )
    if pixels.dtype.kind not in "biuf" or not np.isfinite(pixels).all():
        raise ParameterError("pixels", "must be finite numbers from 0 to 255, or fractions from 0 to 1")
    low, high = float(pixels.min()), float(pixels.max())
    fractions = pixels.dtype.kind == "f" and high <= 1.0
    if low < 0 or high > 255 or (pixels.dtype.kind == "f" and not fractions and (pixels % 1).any()):
        raise ParameterError(
            "pixels", f"must be integers from 0 to 255 or fractions from 0 to 1; these are from {low:g} to {high:g}"
        )
    return np.rint(pixels * 255).astype(np.uint8) if fractions else pixels.astype(np.uint8)


def _resized(image: np.ndarray, size: int) -> np.ndarray:
    from PIL import Image

    picture = Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image)
    pixels = np.asarray(picture.resize((size, size), Image.Resampling.BILINEAR), dtype=np.uint8)
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


add_dataset(
    "images-file",
    ImagesFile,
    "labelled images of your own by client, with side information: .npz, .mat or folders",
    kind="images",
)
