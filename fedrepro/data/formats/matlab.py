"""Read MATLAB 5 files of unknown origin."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from fedrepro import arrays
from fedrepro.errors import UserError

IN_RUNS = "computes"  # a user's own file has the fingerprint of its bytes, not of its arrays

LIMIT = 2_000_000_000


def matlab(name: str, raw: bytes, variables: Iterable[str] | None = None) -> dict[str, Any]:
    """Return variables of a MATLAB 5 file, by default all. Raises UserError if they unpack to over ``LIMIT``."""
    from scipy.io import loadmat

    _refuse_bomb(name, raw)
    try:
        content = loadmat(io.BytesIO(raw), variable_names=None if variables is None else list(variables))
    except NotImplementedError as error:
        raise UserError(f"{name} is a MATLAB 7.3 (HDF5) file; save it with '-v7'") from error
    except Exception as error:  # scipy raises whatever the broken bytes lead it to
        raise UserError(f"{name} is not a readable MATLAB file ({error})") from error
    variables_by_name = {key: value for key, value in content.items() if not key.startswith("__")}
    for key, value in variables_by_name.items():
        arrays.structure(f"{name}, variable '{key}'", value)
    return variables_by_name


def _refuse_bomb(name: str, raw: bytes) -> None:
    position, left, order = 128, LIMIT, ">u4" if raw[126:128] == b"MI" else "<u4"
    while position + 8 <= len(raw):
        kind, size = (int(v) for v in np.frombuffer(raw, dtype=order, count=2, offset=position))
        if kind == 15:  # a compressed element
            unpack = zlib.decompressobj()
            piece = raw[position + 8 : position + 8 + size]
            try:
                while piece and left >= 0:
                    left -= len(unpack.decompress(piece, 1 << 24))
                    piece = unpack.unconsumed_tail
            except zlib.error as error:
                raise UserError(f"{name} is damaged ({error}); get it again") from error
            if left < 0:
                raise UserError(f"{name} unpacks to more than {LIMIT:,} bytes; it is not read")
        position += 8 + size
