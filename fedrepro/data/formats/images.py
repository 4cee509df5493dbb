"""Decode single images of unknown origin, and shrink drawings."""

from __future__ import annotations

import io

import numpy as np

from fedrepro.errors import UserError

IN_RUNS = "computes"  # drawings are shrunk while they are loaded, too; see fedrepro.runs.identity.code

FORMATS = ("PNG", "JPEG", "BMP")


def decode(name: str, raw: bytes, mode: str, size: tuple[int, int]) -> np.ndarray:
    """Return the pixels, uint8, of an image of exactly ``size`` (width, height), converted to Pillow's ``mode``."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(raw), formats=FORMATS) as image:
            if image.size != size:  # before anything is decoded
                raise UserError(
                    f"{name} has {image.size[0]} x {image.size[1]} pixels, {size[0]} x {size[1]} are expected"
                )
            return np.asarray(image.convert(mode), dtype=np.uint8)
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        raise UserError(f"{name} is not a readable image ({error})") from error


def shrunk(bits: np.ndarray, side: int, size: int) -> np.ndarray:
    """Return packed side x side drawings as (n, size, size) uint8, ink 255, each pixel the mean of its area."""
    edges = np.linspace(0, side, size + 1)
    cells = np.arange(side)
    cover = np.clip(np.minimum(edges[1:, None], cells + 1) - np.maximum(edges[:-1, None], cells), 0, None)
    cover = (cover / cover.sum(axis=1, keepdims=True)).astype(np.float32)
    small = np.empty((len(bits), size, size), dtype=np.uint8)
    for start in range(0, len(bits), 1024):
        part = np.unpackbits(bits[start : start + 1024], axis=1, count=side * side).reshape(-1, side, side)
        small[start : start + 1024] = np.rint(255 * (cover @ part.astype(np.float32) @ cover.T))
    return small
