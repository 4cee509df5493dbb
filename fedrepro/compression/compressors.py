"""Compressors of matrices, error feedback, and links that send a changing matrix as compressed changes.

Any method can use them. A compressor turns a matrix D into a message. ``message.values`` is the matrix that the
receiver uses, the same floats at both ends, and ``message.bits`` is the size of the message: q bits per quantized
entry, ``FULL_BITS`` = 32 per other number, and ceil(log2 size) per position of a kept entry. The content of a
compressed message fits into these bits: steps and kept entries are numbers of single precision, and ``unpack`` of the
packed message restores ``values`` to the last bit. Only an uncompressed matrix is computed in double precision and
counted with 32 bits per entry, as the papers count. ``pack(single=True)`` writes exactly ``bits`` bits, padded to a
whole byte.

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
"""The largest factor by which ``single_above`` enlarges a number of at least 2^-126 (smaller ones are subnormal)."""


class Message(Protocol):
    """One matrix as it is sent."""

    @property
    def values(self) -> np.ndarray:
        """The matrix that the receiver uses, or adds to its estimate."""

    @property
    def bits(self) -> int:
        """The size of the message."""

    def pack(self, single: bool = False) -> bytes:
        """The message as bytes; ``single`` : an uncompressed matrix in single precision, which has the counted size."""


class Compressor(Protocol):
    """Turns matrices into messages."""

    @property
    def exact(self) -> bool:
        """Whether the compression is lossless."""

    def compress(self, D: np.ndarray, rng: Rng) -> Message:
        """The message for D."""

    def unpack(self, packed: bytes, shape: tuple[int, ...], single: bool = False) -> Message:
        """Read a packed message for a matrix of known shape."""


@dataclass(frozen=True)
class Levels:
    """A quantized matrix: ``values = step * levels``.

    levels : signed integers from -S to S. step : a number of single precision; if it is not finite, no value is.
    """

    levels: np.ndarray
    step: float
    q: int
    values: np.ndarray = field(repr=False)

    @property
    def bits(self) -> int:
        """q bits per entry, and the step."""
        return self.q * self.levels.size + FULL_BITS

    def pack(self, single: bool = False) -> bytes:
        """The step (4 bytes), then level + S of every entry in q bits, lowest bit first."""
        S = 2 ** (self.q - 1) - 1
        codes = self.levels.astype(np.int64).ravel() + S
        digits = (codes[:, None] >> np.arange(self.q)) & 1
        return np.array(self.step, SINGLE).tobytes() + np.packbits(digits.astype(np.uint8)).tobytes()


@dataclass(frozen=True)
class MaxNorm:
    """Stochastic quantizer by the largest entry, C_q (Sec. III-C.2, eq. (18)-(20); QSGD with the max norm).

    q : bits per entry; one bit is the sign, so there are S = 2^(q-1) - 1 levels above zero (q = 2: S = 1).
    u : the divisor u of eq. (20), at least 1; 1 leaves C unbiased (the paper's choice). ``"bound"`` uses for each
        matrix the value of Fact 1, 1 + size max^2 / (4 S^2 ||D||_F^2), for which C is a delta-compressor; the second
        term has the factor (1 + 2^-23)^2, because s is rounded.

    The entry d becomes sign(d) l s, where s is max|D| / (S u) rounded up to single precision, and l is |d| / (s u)
    rounded up or down at random without bias: the mean of l s is |d| / u for the step that is sent. Because s is never
    rounded down, no entry is above level S.

    Zero maps to zero. A step below 2^-149, the smallest number of single precision, is replaced by it: C stays unbiased
    with an error of at most 2^-149 per entry. A matrix whose step exceeds the largest number, 3.4e38, or that has an
    entry that is not finite, maps to a matrix that is not finite: its run has diverged.
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
        """Quantize D (any shape, float64), with one uniform draw per entry from ``rng``."""
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
    """The smallest positive number of single precision that is at least x, for x >= 0; infinity if there is none."""
    if not x <= LARGEST:
        return math.inf
    near = np.float32(x)
    return max(LEAST, float(near) if float(near) >= x else float(np.nextafter(near, np.float32(math.inf))))


@dataclass(frozen=True)
class Kept:
    """A sparsified matrix: ``numbers`` in single precision at the flat positions ``where`` (ascending), else zero."""

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
        """A position of ceil(log2 size) bits and a number per kept entry."""
        return self.where.size * (_position_bits(self.shape) + FULL_BITS)

    def pack(self, single: bool = False) -> bytes:
        """The numbers (4 bytes each), then the positions, lowest bit first."""
        digits = (self.where[:, None] >> np.arange(_position_bits(self.shape))) & 1
        return self.numbers.astype(SINGLE).tobytes() + np.packbits(digits.astype(np.uint8)).tobytes()


@dataclass(frozen=True)
class TopK:
    """Keep the share ``kept`` of the entries (at least one) with the largest magnitude, the first of equal ones.

    They are sent in single precision: rounded to the nearest number, infinite above 3.4e38, and 0 for magnitudes up to
    2^-150. A delta-compressor with delta = kept entries / entries, except for this rounding (2^-48 of the sum of the
    squares of the kept entries, down to magnitudes of 2^-126, where single precision loses digits).
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
        size[np.isnan(size)] = math.inf  # counts as the largest, so it is sent
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
        """``FULL_BITS`` per entry."""
        return FULL_BITS * self.values.size

    def pack(self, single: bool = False) -> bytes:
        """Every entry in 8 bytes (4 with ``single``)."""
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
    """Compresses updates and adds the error of each message to the next update.

    ``send(update, rng)`` compresses update + memory and stores the difference in ``memory``. Use it for a method that
    sends updates, such as gradients. A method that sends a state uses ``Link``, where the second term of eq. (12) is
    the same feedback: both send the same messages for the same sequence of states.
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
    """One direction of a connection that sends a changing matrix as compressed changes (Sec. III-B).

    Each end keeps an estimate of the matrix: ``near`` at the sender, ``far`` at the receiver. They are equal after
    every message, because both ends add the same values to the same start, which was sent in full.

    error_feedback : send C(value - estimate), eq. (12), (13), (17). Otherwise send C(value - previous value), only the
        first term of eq. (12), so that quantization errors add up.

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
        """Update the receiver's estimate with a message."""
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
