"""Compressors of matrices that are sent, error feedback, and links that send a changing matrix as quantized changes.

Any method may use them. A compressor turns a matrix D into a message; ``message.values`` is what the receiver works
with, the same floats at both ends, and ``message.bits`` its size: q bits for a quantized entry, ``FULL_BITS`` = 32 for
any other number. What a compressed message holds is what fits into the bits it counts: steps and kept entries are
numbers of single precision, and ``unpack`` of the packed message gives ``values`` back to the last bit. Only a matrix
that is sent whole counts 32 bits an entry, as the papers count, although it is computed in double precision.
``pack(single=True)`` writes exactly ``bits`` bits, filled up to a whole byte.

Source: Shrestha and Fu, Sec. III-B and III-C.2;
docs/derivations/error-feedback.md.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

import numpy as np

from fedrepro.ledger import FULL_BITS
from fedrepro.parameters import Number, Whole, check_fields
from fedrepro.seeds import Rng

BITS = Whole(2, 31)
"""Bits of a quantized entry: one is the sign, and the levels of 31 still fit 32-bit integers."""

SCALES = Number(least=1.0, words=("bound",))
"""Values of u, which scales a quantizer down."""

SHARES = Number(above=0.0, most=1.0)
"""Shares of the entries that a sparsifier keeps."""

SINGLE = np.dtype("<f4")
LEAST, LARGEST = 2.0**-149, float(np.finfo(SINGLE).max)
"""The least and the largest positive number of single precision."""

ROUNDED = 1.0 + 2.0**-23
"""By what factor ``single_above`` enlarges a number at most, from 2^-126 on (below lie the subnormal ones)."""


class Message(Protocol):
    """One matrix on its way."""

    @property
    def values(self) -> np.ndarray:
        """What the receiver adds to its estimate, or takes."""

    @property
    def bits(self) -> int:
        """The size of the message."""

    def pack(self, single: bool = False) -> bytes:
        """The message as bytes; ``single``: those of a whole matrix in single precision, the size that is counted."""


class Compressor(Protocol):
    """Turns matrices into messages."""

    @property
    def exact(self) -> bool:
        """Whether nothing is lost."""

    def compress(self, D: np.ndarray, rng: Rng) -> Message:
        """The message for D."""

    def unpack(self, packed: bytes, shape: tuple[int, ...], single: bool = False) -> Message:
        """Read a packed message for a matrix of known shape."""


@dataclass(frozen=True)
class Levels:
    """A quantized matrix: ``values = step * levels``.

    levels : signed integers, -S .. S. step : one number of single precision; where it is not finite, so are all values.
    """

    levels: np.ndarray
    step: float
    q: int
    values: np.ndarray = field(repr=False)

    @property
    def bits(self) -> int:
        """q bits an entry and the step."""
        return self.q * self.levels.size + FULL_BITS

    def pack(self, single: bool = False) -> bytes:
        """The step (4 bytes, in single precision anyway), then level + S of every entry in q bits, lowest bit first."""
        S = 2 ** (self.q - 1) - 1
        codes = self.levels.astype(np.int64).ravel() + S
        digits = (codes[:, None] >> np.arange(self.q)) & 1
        return np.array(self.step, SINGLE).tobytes() + np.packbits(digits.astype(np.uint8)).tobytes()


@dataclass(frozen=True)
class MaxNorm:
    """Stochastic quantizer by the largest entry, C_q (Sec. III-C.2, eq. (18)-(20); QSGD with the max norm).

    q : bits per entry; one bit is the sign, so there are S = 2^(q-1) - 1 levels above zero (q = 2: S = 1).
    u : the scale 1/u of eq. (20); 1 leaves C unbiased (the paper's choice). ``"bound"`` takes for each
        matrix the value of Fact 1, 1 + (size / 4 S^2) max^2 / ||D||_F^2, which makes any D a delta-compressor's.

    The entry d becomes sign(d) l s, where s is max|D| / (S u) rounded up to single precision, and l is |d| / (s u)
    rounded up or down at random so that its mean is right: the mean of l s is |d| / u for the step that is sent, and
    since s is not rounded down, no entry lies above level S, where no level would be left to round up to.

    Zero maps to zero. A step below the least number of single precision, 2^-149, is that number: the mean stays right,
    and an entry is at most so far off. A step above the largest, 3.4e38, cannot be sent, nor can an entry that is not
    finite: such a matrix maps to one that is not finite, its run has diverged.
    """

    q: Annotated[int, BITS]
    u: Annotated[float | str, SCALES] = 1.0
    exact = False

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def S(self) -> int:
        """Levels above zero."""
        return int(2 ** (self.q - 1) - 1)

    def scale(self, D: np.ndarray) -> float:
        """u for this matrix."""
        if self.u != "bound":
            return float(self.u)
        largest = float(np.abs(D).max(initial=0.0))
        if largest == 0.0 or not math.isfinite(largest):
            return 1.0
        share = float(np.square(D / largest).sum())  # ||D||_F^2 / max^2
        return 1.0 + D.size / (4.0 * self.S**2) / share * ROUNDED**2  # Fact 1, for the largest the step can become

    def compress(self, D: np.ndarray, rng: Rng) -> Levels:
        """Quantize D (any shape, float64); draws one uniform an entry from ``rng``."""
        U = rng.random(D.shape)
        levels, values = np.empty(D.shape, _level_type(self.q)), np.empty(D.shape)
        largest = float(max(D.max(), -D.min())) if D.size else 0.0
        u = self.scale(D)
        step = single_above(largest / (self.S * u)) if 0.0 < largest < math.inf else float(np.float32(largest))
        if step == 0.0 or not math.isfinite(step):
            levels[...], values[...] = 0, step
            return Levels(levels, step, self.q, values)
        _kernel()(D.ravel(), U.ravel(), step * u, self.S, step, levels.ravel(), values.ravel())
        return Levels(levels, step, self.q, values)

    def unpack(self, packed: bytes, shape: tuple[int, ...], single: bool = False) -> Levels:
        """The message that ``Levels.pack`` wrote, for a matrix of ``shape``."""
        size = math.prod(shape)
        step = float(np.frombuffer(packed[: SINGLE.itemsize], SINGLE)[0])
        body = np.frombuffer(packed, np.uint8, offset=SINGLE.itemsize)
        digits = np.unpackbits(body, count=self.q * size).reshape(size, self.q).astype(np.int64)
        levels = ((digits << np.arange(self.q)).sum(axis=1) - self.S).reshape(shape).astype(_level_type(self.q))
        return Levels(levels, step, self.q, step * levels if math.isfinite(step) else np.full(shape, step))


@functools.cache
def _kernel() -> Callable[..., None]:
    from fedrepro.compression.quantize import levels_and_values

    return levels_and_values


def single_above(x: float) -> float:
    """The least number of single precision that is at least x and not 0, for x >= 0: infinity above the largest."""
    if not x <= LARGEST:
        return math.inf
    near = np.float32(x)
    return max(LEAST, float(near) if float(near) >= x else float(np.nextafter(near, np.float32(math.inf))))


@dataclass(frozen=True)
class Kept:
    """A sparsified matrix: ``numbers`` of single precision at the flat positions ``where`` (ascending), else zero."""

    where: np.ndarray
    numbers: np.ndarray
    shape: tuple[int, ...]

    @property
    def values(self) -> np.ndarray:
        """The matrix in full."""
        D = np.zeros(math.prod(self.shape))
        D[self.where] = self.numbers
        return D.reshape(self.shape)

    @property
    def bits(self) -> int:
        """A position of ceil(log2 size) bits and a number for each entry kept."""
        return self.where.size * (_position_bits(self.shape) + FULL_BITS)

    def pack(self, single: bool = False) -> bytes:
        """The numbers (4 bytes each, in single precision anyway), then the positions, lowest bit first."""
        digits = (self.where[:, None] >> np.arange(_position_bits(self.shape))) & 1
        return self.numbers.astype(SINGLE).tobytes() + np.packbits(digits.astype(np.uint8)).tobytes()


@dataclass(frozen=True)
class TopK:
    """Keep the share ``kept`` (at least one entry) of largest entries by magnitude, the first among equals.

    They are sent in single precision: to the nearest, infinite above 3.4e38, and 0 where the magnitude is 2^-150 or
    less, as its smallest number is 2^-149. A delta-compressor with delta = entries kept / entries, up to that rounding
    (2^-48 of the squares of what is kept, down to a magnitude of 2^-126, where single precision loses digits).
    """

    kept: Annotated[float, SHARES]
    exact = False

    def __post_init__(self) -> None:
        check_fields(self)

    def entries(self, size: int) -> int:
        """How many of ``size`` entries are kept."""
        return min(size, max(1, round(self.kept * size)))

    def compress(self, D: np.ndarray, rng: Rng) -> Kept:
        """Sparsify D; draws nothing."""
        flat = np.ascontiguousarray(D, dtype=np.float64).reshape(-1)
        k, size = self.entries(flat.size), np.abs(flat)
        if k == 0 or k == flat.size:
            return Kept(np.arange(k), _single(flat[:k]), D.shape)
        size[np.isnan(size)] = math.inf  # as large as can be: it is sent
        least = np.partition(size, flat.size - k)[flat.size - k]
        above = np.flatnonzero(size > least)
        ties = np.flatnonzero(size == least)[: k - above.size]
        where = np.sort(np.concatenate([above, ties]))
        return Kept(where, _single(flat[where]), D.shape)

    def unpack(self, packed: bytes, shape: tuple[int, ...], single: bool = False) -> Kept:
        """The message that ``Kept.pack`` wrote, for a matrix of ``shape``."""
        k, width = self.entries(math.prod(shape)), _position_bits(shape)
        numbers = np.frombuffer(packed[: k * SINGLE.itemsize], SINGLE).astype(np.float64)
        body = np.frombuffer(packed, np.uint8, offset=k * SINGLE.itemsize)
        digits = np.unpackbits(body, count=k * width).reshape(k, width).astype(np.int64)
        return Kept((digits << np.arange(width)).sum(axis=1), numbers, tuple(shape))


@dataclass(frozen=True)
class Uncompressed:
    """An uncompressed matrix."""

    values: np.ndarray

    @property
    def bits(self) -> int:
        """``FULL_BITS`` an entry."""
        return FULL_BITS * self.values.size

    def pack(self, single: bool = False) -> bytes:
        """Every entry, 8 bytes (or 4 with ``single``)."""
        return self.values.astype(_number(single)).tobytes()


@dataclass(frozen=True)
class Identity:
    """No compression."""

    exact = True

    def compress(self, D: np.ndarray, rng: Rng) -> Uncompressed:
        """D itself; draws nothing."""
        return Uncompressed(D)

    def unpack(self, packed: bytes, shape: tuple[int, ...], single: bool = False) -> Uncompressed:
        """The message that ``Uncompressed.pack`` wrote, for a matrix of ``shape``."""
        return Uncompressed(np.frombuffer(packed, _number(single)).astype(np.float64).reshape(shape))


class ErrorFeedback:
    """Send updates through a compressor and add what it lost to the next update.

    ``send(update, rng)`` compresses update + memory and keeps the difference in ``memory``. For a method that sends
    updates (gradients, say); one that sends a state uses ``Link``, where the same feedback is the second term of
    eq. (12): both send the same messages for the same sequence of states.
    """

    def __init__(self, compressor: Compressor, shape: tuple[int, ...]) -> None:
        self.compressor = compressor
        self.memory = np.zeros(shape)

    def send(self, update: np.ndarray, rng: Rng) -> Message:
        """The message for ``update``."""
        corrected = update + self.memory
        message = self.compressor.compress(corrected, rng)
        self.memory = corrected - message.values
        return message


class Link:
    """One direction of one connection on which a changing matrix is sent as compressed changes (Sec. III-B).

    Each end keeps its own estimate of the matrix: ``near`` at the sender, ``far`` at the receiver. They are equal after
    every message, for both ends add the same values to the same start, which was sent in full.

    error_feedback : send C(value - estimate), eq. (12), (13), (17). Without, send C(value - previous value), the first
        term of eq. (12) alone, so that quantization errors add up.

    An exact compressor sends the matrix itself, as the uncompressed method does (eq. (8)).
    """

    def __init__(self, compressor: Compressor, start: np.ndarray, error_feedback: bool = True) -> None:
        self.compressor = compressor
        self.error_feedback = error_feedback
        self.near = self.far = start
        self._previous = start

    def send(self, value: np.ndarray, rng: Rng) -> Message:
        """The message for the matrix's new ``value``; updates the sender's estimate."""
        if self.compressor.exact:
            message = self.compressor.compress(value, rng)
            self.near = message.values
        else:
            reference = self.near if self.error_feedback else self._previous
            message = self.compressor.compress(value - reference, rng)  # eq. (12), (17)
            self.near = self.near + message.values  # eq. (13), the sender's copy
        self._previous = value
        return message

    def receive(self, message: Message) -> None:
        """Update the receiver's estimate by a message."""
        self.far = message.values if self.compressor.exact else self.far + message.values  # eq. (13)

    def adjust(self, change: Callable[[np.ndarray], np.ndarray]) -> None:
        """Apply a rule that both ends know to both estimates; nothing is sent."""
        self.near, self.far = change(self.near), change(self.far)


def _number(single: bool) -> np.dtype:
    return SINGLE if single else np.dtype("<f8")


def _single(numbers: np.ndarray) -> np.ndarray:
    """The nearest numbers of single precision, as float64."""
    with np.errstate(over="ignore"):
        return numbers.astype(SINGLE).astype(np.float64)


def _level_type(q: int) -> type[np.signedinteger[Any]]:
    return np.int8 if q <= 8 else np.int16 if q <= 16 else np.int32


def _position_bits(shape: tuple[int, ...]) -> int:
    return max(1, (math.prod(shape) - 1).bit_length())
