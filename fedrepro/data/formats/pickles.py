"""Read pickled arrays of bytes from files of unknown origin.

A pickle can run any code. This reader builds plain containers, numbers and text, and one kind of object: a numpy array
of unsigned bytes, and even that is put together here from its state (shape, order, bytes), not by numpy's own hooks.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np

from fedrepro.errors import UserError


class _Dtype:
    """Replaces numpy.dtype; accepts only unsigned bytes."""

    def __init__(self, code: Any, *_: Any) -> None:
        if code not in ("u1", b"u1", "|u1"):
            raise pickle.UnpicklingError(f"an array of type {code!r}")

    def __setstate__(self, state: Any) -> None:
        """Ignore byte order and fields, which do not matter for unsigned bytes."""


class _Array:
    """Replaces numpy.ndarray until its state has been read."""

    def __init__(self, *_: Any) -> None:
        self.value: np.ndarray | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, raw = state
        if not isinstance(dtype, _Dtype):
            raise pickle.UnpicklingError("an array without a type")
        data = raw if isinstance(raw, bytes) else raw.encode("latin-1")
        self.value = np.frombuffer(data, dtype=np.uint8).reshape(shape, order="F" if fortran else "C")


def _encode(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"text encoded as {encoding!r}")
    return text.encode("latin-1")


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"'{module}.{name}'") from None


def arrays_of_bytes(name: str, raw: bytes) -> dict[str, Any]:
    """Return the dictionary in a pickle, with text keys and arrays as uint8. Raises UserError for anything else."""
    try:
        content = _Unpickler(io.BytesIO(raw), encoding="bytes").load()
    except Exception as error:  # a broken pickle raises whatever its bytes lead to
        raise UserError(
            f"{name} is not a pickle of plain arrays of bytes (it contains {error}); it is not loaded"
        ) from error
    if not isinstance(content, dict):
        raise UserError(f"{name} contains no dictionary of arrays")
    return {_text(key): value.value if isinstance(value, _Array) else value for key, value in content.items()}


def _text(key: Any) -> str:
    return key.decode("latin-1") if isinstance(key, bytes) else str(key)
