"""Labelled images of the user's own, by client, with side information.

``path`` is an archive (.npz, .mat) with ``pixels`` (n, height, width[, channels]), ``labels`` (n,) and, as far as there
are such, ``client`` (n,), ``split`` (n,; 0 train, 1 test) and ``side`` (M, q; a row for each client in their sorted
order), or a folder ``CLIENT/CLASS/image.png`` (PNG, JPEG, BMP; ``CLIENT/train/CLASS`` and ``CLIENT/test/CLASS`` where
the split is given) with, perhaps, a ``side.csv`` of a row for each client. Pixels are whole numbers 0 .. 255, or
fractions 0 .. 1. The networks of the problem ``personal`` are convolutional: images are square, of 16 pixels or more;
``size`` resizes them. Feature vectors are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.data import own
from fedrepro.datasets import reading
from fedrepro.datasets.file import variables
from fedrepro.datasets.own_types import ClientImages, numbered
from fedrepro.errors import ParameterError
from fedrepro.parameters import whole
from fedrepro.protocols import Cost, Dataset, Work
from fedrepro.registry import DatasetEntry, add_dataset

PICTURES = (".png", ".jpg", ".jpeg", ".bmp")
SIDE_FILE = "side.csv"
MOST = 100_000_000
"""Pixels of one picture, at most."""


@dataclass(frozen=True)
class ImagesFile(Dataset):
    """Labelled images in an archive or a folder.

    path : the archive, or the folder with a folder for each client. pixels, labels : names of the archive's arrays.
    client, split, side : the same; None takes those of these names, where there are any. size : height and width that
    images are resized to, 4 .. 512; None to leave them.
    """

    files = ("path", "side")

    path: str
    pixels: str = "pixels"
    labels: str = "labels"
    client: str | None = None
    split: str | None = None
    side: str | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        """Raise ParameterError where a value cannot work."""
        reading.there("path", self.path, reading.ARCHIVES, folders=True)
        reading.names(pixels=self.pixels, labels=self.labels, client=self.client, split=self.split, side=self.side)
        if self.size is not None:
            whole("size", self.size, 4, 512)

    def shape(self) -> dict[str, Any]:
        """Images, classes, size; clients P, numbers of side information and train and test images where given."""
        return {name: value for name, value in reading.size_once(self, _more).items() if name != "channels"}

    def expected(self) -> dict[str, Any]:
        """Channels, and the images to train and to test with where they are to be drawn."""
        known = reading.size_once(self, _more)
        train = round(0.8 * known["images"])
        return {"channels": known["channels"], "train": train, "test": known["images"] - train}

    def making(self) -> Cost:
        """Decoding every pixel."""
        known = reading.size_once(self, _more)
        values = known["images"] * known["size"] ** 2 * known["channels"]
        return Cost(Work(singles=20.0 * values, calls=2000.0), holds=8.0 * values)

    def load(self) -> ClientImages:
        """pixels (n, size, size, channels) uint8; labels, clients and rows of ``side`` in the sorted order of theirs.

        Raises ParameterError where the images are not images, not square, or do not match what is said of them.
        """
        names = {name: getattr(self, name) for name in ("pixels", "labels", "client", "split")}
        place = own.found(self.path)
        side = reading.place(self.side)
        found = reading.arrays(self, read, str(place), place.is_dir(), names, side, self.size)
        labels, classes = numbered(found["labels"])
        client, clients = (None, None) if "client" not in found else numbered(found["client"])
        z = found.get("side")
        if z is not None and clients is None:
            raise ParameterError("side", "is of clients, and these images name none: give client")
        if z is not None and clients is not None and len(z) != len(clients):
            raise ParameterError(
                "side", f"has {len(z):,} rows of {z.shape[1]:,} numbers; there are {len(clients):,} clients"
            )
        split = None if "split" not in found else found["split"].astype(np.int8)
        facts: dict[str, Any] = {"file": Path(self.path).name, "classes": classes}
        return ClientImages(found["pixels"], labels.astype(np.int32), None, split, facts, client, z)


def _more(data: ClientImages) -> dict[str, Any]:
    found: dict[str, Any] = {"channels": int(data.pixels.shape[3])}
    if data.client is not None:
        found["P"] = int(data.client.max()) + 1
    return found | ({} if data.side is None else {"side": int(data.side.shape[1])})


def read(path: str, folder: bool, names: dict[str, Any], side: str | None, size: int | None, out: str) -> list[str]:
    """Leave pixels, labels, client, split and side in the folder ``out``; for ``isolated.call``."""
    found = _folder(Path(path), side, size) if folder else _archive(Path(path), names, side)
    pixels = _square(path, found["pixels"])
    if size is not None and pixels.shape[1] != size:
        pixels = np.stack([_resized(one, size) for one in pixels])
    found["pixels"] = pixels
    lengths = {name: found.get(name) for name in ("pixels", "labels", "client", "split")}
    reading.lengths(path, **lengths)
    return reading.keep(found, out)


def _archive(path: Path, names: dict[str, Any], side: str | None) -> dict[str, Any]:
    held = variables("path", path, ())
    found: dict[str, Any] = {
        "pixels": reading.column("pixels", path, held, names["pixels"]),
        "labels": reading.ids("labels", reading.column("labels", path, held, names["labels"])),
    }
    for name in ("client", "split"):
        wanted = names[name] or (name if name in held else None)
        if wanted is not None:
            found[name] = reading.ids(name, reading.column(name, path, held, wanted))
    if "split" in found:
        found["split"] = reading.held_back("split", found["split"], len(found["labels"])).astype(np.int8)
    wanted = side or ("side" if "side" in held else None)
    if wanted is not None:
        found["side"] = _side(path, held[wanted]) if wanted in held else _side_file(Path(wanted), path)
    return found


def _side(path: Path, values: Any) -> np.ndarray:
    return reading.numbers("side", path, values, 2)


def _side_file(file: Path, path: Path) -> np.ndarray:
    if not file.is_file():
        raise ParameterError("side", f"{path} has no variable '{file}' and there is no such file")
    matrices = [one for one in variables("side", file, ()).values() if np.ndim(one) == 2]
    if len(matrices) != 1:
        raise ParameterError("side", f"{file} must hold one matrix, a row for each client")
    return _side(file, matrices[0])


def _folder(path: Path, side: str | None, size: int | None) -> dict[str, Any]:
    listed = list(_pictures(path))
    if not listed:
        raise ParameterError("path", f"{path} has no images CLIENT/CLASS/name.png in it (PNG, JPEG, BMP)")
    colours = {one for _, _, _, file in listed[:2000] for one in [_mode(file)]}
    mode = "L" if colours == {"L"} else "RGB"
    pixels = [_decoded(file, mode, size) for _, _, _, file in listed]
    odd = next((i for i, one in enumerate(pixels) if one.shape != pixels[0].shape), None)
    if odd is not None:
        shapes = [f"{listed[i][3].name} {pixels[i].shape[1]} x {pixels[i].shape[0]}" for i in (0, odd)]
        raise ParameterError("size", f"images differ in size ({', '.join(shapes)} pixels); say what to resize them to")
    parts = {part for _, part, _, _ in listed}
    if None in parts and len(parts) > 1:
        raise ParameterError("path", f"{path}: some clients have folders train and test and some have not")
    found: dict[str, Any] = {
        "pixels": np.stack(pixels),
        "labels": np.array([label for _, _, label, _ in listed]),
        "client": np.array([client for client, _, _, _ in listed]),
        "split": None if None in parts else np.array([part == "test" for _, part, _, _ in listed], dtype=np.int8),
    }
    file = Path(side) if side is not None else path / SIDE_FILE
    if side is not None or file.is_file():
        found["side"] = _side_file(file, path)
    return found


def _pictures(path: Path) -> Iterator[tuple[str, str | None, str, Path]]:
    """Client, part (None where none is given), class and file of every image, in order."""
    for file in sorted(path.rglob("*")):
        parts = file.relative_to(path).parts
        if file.suffix.lower() not in PICTURES or not file.is_file():
            continue
        if len(parts) == 3:
            yield parts[0], None, parts[1], file
        elif len(parts) == 4 and parts[1] in ("train", "test"):
            yield parts[0], parts[1], parts[2], file
        else:
            raise ParameterError("path", f"{file} stands neither in CLIENT/CLASS nor in CLIENT/train/CLASS of {path}")


def _mode(file: Path) -> str:
    return "L" if _opened(file).mode in ("1", "L", "I", "I;16", "LA") else "RGB"


def _opened(file: Path) -> Any:
    from PIL import Image

    try:
        image = Image.open(file, formats=("PNG", "JPEG", "BMP"))
    except Exception as error:  # Pillow raises whatever broken bytes lead it to
        raise ParameterError("path", f"{file} is not a readable image ({error})") from error
    if image.size[0] * image.size[1] > MOST:
        raise ParameterError("path", f"{file} has {image.size[0]} x {image.size[1]} pixels; it is not read")
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
    """Pixels (n, size, size, channels) uint8."""
    pixels = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
    if pixels.ndim == 2:
        n, d = pixels.shape
        raise ParameterError(
            "pixels",
            f"{path} has feature vectors, {n:,} x {d:,}: the networks here are convolutional and take images (n, "
            "height, width) or (n, height, width, channels). Reshape them if they are images; for feature vectors "
            "there are the problems clustering (dataset file) and regression (dataset regression-file)",
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
        raise ParameterError("pixels", "must be finite numbers, 0 .. 255 or fractions 0 .. 1")
    low, high = float(pixels.min()), float(pixels.max())
    fractions = pixels.dtype.kind == "f" and high <= 1.0
    if low < 0 or high > 255 or (pixels.dtype.kind == "f" and not fractions and (pixels % 1).any()):
        raise ParameterError(
            "pixels", f"must be whole numbers 0 .. 255 or fractions 0 .. 1; these lie in {low:g} .. {high:g}"
        )
    return np.rint(pixels * 255).astype(np.uint8) if fractions else pixels.astype(np.uint8)


def _resized(image: np.ndarray, size: int) -> np.ndarray:
    from PIL import Image

    picture = Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image)
    pixels = np.asarray(picture.resize((size, size), Image.Resampling.BILINEAR), dtype=np.uint8)
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


add_dataset(
    DatasetEntry(
        name="images-file",
        cls=ImagesFile,
        kind="images",
        summary="labelled images of your own by client, with side information: .npz, .mat or folders",
    )
)
