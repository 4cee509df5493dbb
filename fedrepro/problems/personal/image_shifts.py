"""The four affine shifts of the CIFAR clients of ``perfedsi`` (Appendix D)."""

from __future__ import annotations

import math

import numpy as np

SHIFTS = ((1, 3.0), (2, 6.0), (3, 9.0), (0, 0.0))
"""Clockwise quarter turns, then a clockwise shear in degrees: (i) to (iv) of the paper."""


def shifted(pixels: np.ndarray, turns: int, degrees: float) -> np.ndarray:
    """Square images (n, size, size, channels) uint8, turned clockwise about their centre, then sheared along x.

    Clockwise shear moves the top to the right, by tan(degrees) pixels per row, with bilinear interpolation; pixels from
    outside the image are 0. The paper names neither axis, fill nor interpolation (discrepancy perfedsi.21).
    """
    turned = np.rot90(pixels, -turns, axes=(1, 2))
    if degrees == 0.0:
        return np.ascontiguousarray(turned)
    size = pixels.shape[1]
    slope, centre = math.tan(math.radians(degrees)), (size - 1) / 2
    sheared = np.empty_like(pixels)
    for row in range(size):
        source = np.arange(size) + slope * (row - centre)
        left = np.floor(source).astype(int)
        right_part = (source - left).astype(np.float32)[:, None]
        line = turned[:, row].astype(np.float32)
        mixed = (1 - right_part) * _columns(line, left) + right_part * _columns(line, left + 1)
        sheared[:, row] = np.rint(mixed)
    return sheared


def _columns(line: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Columns of (n, size, channels), zero outside the image."""
    inside = (columns >= 0) & (columns < line.shape[1])
    return line[:, np.where(inside, columns, 0)] * inside[:, None]
