r"""The image classifier of ``perfedsi``: four blocks conv 3x3, batch norm, ReLU, max pool 2x2, then a linear layer.

The paper gives no kernel size: 3x3 with padding 1 is ours (discrepancy perfedsi.1). Side information z enters in
one of the paper's two parametric forms (perfedsi (3), (4); docs/derivations/personal-networks.md):

* ``concat``: :math:`f = H([G(x), W_2(z)])` with a linear H. z goes through a linear layer to the shape of block 4's
  input and through a block like block 4; H's part for it is ``side.head``, so that H [G, W_2] = head G + side.head W_2.
* ``mask``: :math:`f = H(G(x) \odot W_2(z))` with G the first three blocks and :math:`W_2(z) = z W`, one factor per
  channel.

The parameters of a network are one flat mapping from names such as ``block1.kernel`` to arrays; the part before the
last dot is the layer. Images are (n, height, width, channels). A convolution kernel is (9 c_in, c_out), with rows
ordered by row, column and channel of the 3x3 window. Layers follow the defaults of PyTorch, which the paper's
experiments used: kernels and biases uniform within 1/sqrt(fan-in), batch norm with eps 1e-5 and running statistics of
momentum 0.1. Convolutions have no bias, because batch norm would cancel it.

Source: perfedsi (3), (4), section 4 and Appendix D; docs/derivations/personal-networks.md.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrepro.errors import ParameterError
from fedrepro.nets import backend
from fedrepro.nets.product import product

BLOCKS = 4
MASKED = 3
"""The block whose output a mask multiplies (perfedsi section 4: "the third convolutional layer")."""

SIDES = ("none", "concat", "mask")
MASKS = ("block", "learned", "random", "ones")
SIDE_NORMS = ("running", "own", "none")

_EPS, _MOMENTUM = 1e-5, 0.1
_NARROW = 8
"""With fewer input channels, a convolution gathers whole 3x3 windows."""


@dataclass(frozen=True)
class Net:
    """A network's architecture.

    size, channels : pixels per side and channels of the images. classes : outputs. widths : channels of the four
    blocks. ceil : the last pooling rounds 3 pixels up to 2 instead of down to 1. side, side_dim : how z enters, numbers
    in z. mask : ``block`` (each entry of z switches its own share of the channels, not trained), ``learned`` (W starts
    at 1), ``random`` (W starts at random), ``ones`` (no mask, a control). side_norm : statistics of the batch norm in
    the side path in use, ``running``, the client's ``own``, or ``none`` (no batch norm there).

    Raises ParameterError if the sizes do not fit together.
    """

    size: int
    channels: int
    classes: int
    widths: tuple[int, ...] = (64, 64, 64, 256)
    ceil: bool = False
    side: str = "none"
    side_dim: int = 0
    mask: str = "block"
    side_norm: str = "running"

    def __post_init__(self) -> None:
        """Raise ParameterError where the sizes do not fit together."""
        if len(self.widths) != BLOCKS:
            raise ParameterError("widths", f"must give the channels of {BLOCKS} blocks, not {len(self.widths)}")
        if self.sides[-1] < 1:
            raise ParameterError("widths", f"images of {self.size} pixels are too small for {BLOCKS} poolings; use 16")
        if self.side == "mask" and self.mask == "block" and self.widths[MASKED - 1] % max(1, self.side_dim):
            raise ParameterError(
                "mask",
                f"'block' shares {self.widths[MASKED - 1]} channels out to {self.side_dim} entries of z, which does "
                "not come out even; change widths or take mask: learned",
            )

    @functools.cached_property
    def sides(self) -> tuple[int, ...]:
        """Pixels per side of the input and of each block's output."""
        sides = [self.size]
        for block in range(1, BLOCKS + 1):
            sides.append((sides[-1] + (self.ceil and block == BLOCKS)) // 2)
        return tuple(sides)

    @property
    def features(self) -> int:
        """Numbers in the output of the last block."""
        return self.widths[-1] * self.sides[-1] ** 2

    @functools.cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every named array."""
        shapes: dict[str, tuple[int, ...]] = {}
        inputs = (self.channels, *self.widths[:-1])
        for block, (c_in, c_out) in enumerate(zip(inputs, self.widths, strict=True), start=1):
            shapes |= _block_shapes(f"block{block}", c_in, c_out)
        if self.side == "concat":
            entry = self.widths[-2] * self.sides[-2] ** 2
            shapes |= {"side.linear.kernel": (self.side_dim, entry), "side.linear.bias": (entry,)}
            shapes |= _block_shapes("side.block", self.widths[-2], self.widths[-1])
            shapes["side.head.kernel"] = (self.features, self.classes)
        if self.side == "mask" and self.mask in ("learned", "random"):
            shapes["mask.kernel"] = (self.side_dim, self.widths[MASKED - 1])
        return shapes | {"head.kernel": (self.features, self.classes), "head.bias": (self.classes,)}

    @functools.cached_property
    def macs(self) -> float:
        """Multiplications of one image's forward pass without the side path, which runs once per batch."""
        inputs = (self.channels, *self.widths[:-1])
        convolutions = (9 * a * b * s * s for a, b, s in zip(inputs, self.widths, self.sides[:-1], strict=True))
        return float(sum(convolutions) + self.features * self.classes)


def _block_shapes(name: str, c_in: int, c_out: int) -> dict[str, tuple[int, ...]]:
    parts = ("scale", "shift", "mean", "var")
    return {f"{name}.kernel": (9 * c_in, c_out), **{f"{name}.{part}": (c_out,) for part in parts}}


def layer(name: str) -> str:
    """The layer a named array belongs to: ``block1``, ..., ``head``, ``side.linear``, ..."""
    return name.rpartition(".")[0]


def initial(net: Net, uniform: Callable[[str, tuple[int, ...]], np.ndarray], dtype: Any) -> dict[str, np.ndarray]:
    """An initial model; ``uniform(name, shape)`` gives numbers in [-1, 1), the same for the same name.

    So networks that differ in one layer start equal in all others, up to the scale of the fan-in.
    """
    model = {}
    for name, shape in net.shapes.items():
        if name.endswith((".scale", ".var")) or (name == "mask.kernel" and net.mask == "learned"):
            values = np.ones(shape)
        elif name.endswith((".shift", ".mean")):
            values = np.zeros(shape)
        else:
            values = uniform(name, shape) / math.sqrt(_fan_in(net, name))
        model[name] = values.astype(dtype)
    return model


def _fan_in(net: Net, name: str) -> int:
    if layer(name) in ("head", "side.head"):  # one linear layer on both parts where z is concatenated
        return net.features * (2 if net.side == "concat" else 1)
    return net.shapes[f"{layer(name)}.kernel"][0]


# JAX traces the functions below. ``model`` maps names to arrays; the functions also return new running statistics.


def logits(net: Net, model: Mapping[str, Any], x: Any, z: Any, train: bool) -> tuple[Any, dict[str, Any]]:
    """Class scores (n, classes) of images x for a client with side information z (side_dim,), and new statistics.

    ``train`` : batch norm uses the batch's statistics and updates the running ones; otherwise it uses the running ones.
    """
    features, statistics = embed(net, model, x, z, train)
    scores = product(features, model["head.kernel"]) + model["head.bias"]
    if net.side == "concat":
        side, more = _side_path(net, model, z, train, len(x))
        statistics |= more
        scores = scores + product(side, model["side.head.kernel"])  # perfedsi (3): z biases the scores
    return scores, statistics


def embed(net: Net, model: Mapping[str, Any], x: Any, z: Any, train: bool) -> tuple[Any, dict[str, Any]]:
    """The output of the last block, flattened, (n, features), and new statistics."""
    statistics: dict[str, Any] = {}
    for block in range(1, BLOCKS + 1):
        x, new = _block(model, f"block{block}", x, train, ceil=net.ceil and block == BLOCKS)
        statistics |= new
        if net.side == "mask" and block == MASKED:
            x = x * _mask(net, model, z)  # perfedsi (4), after the ReLU: what is masked stays zero
    return x.reshape(len(x), -1), statistics


def _mask(net: Net, model: Mapping[str, Any], z: Any) -> Any:
    width = net.widths[MASKED - 1]
    if net.mask == "ones":
        return np.ones(width, dtype=z.dtype)
    if net.mask == "block":
        return z @ np.kron(np.eye(net.side_dim), np.ones(width // net.side_dim)).astype(z.dtype)
    return z @ model["mask.kernel"]


def _side_path(net: Net, model: Mapping[str, Any], z: Any, train: bool, batch: int) -> tuple[Any, dict[str, Any]]:
    """The side path for z, (1, features), computed once per batch, because all its samples have the same z."""
    x = product(z[None], model["side.linear.kernel"]) + model["side.linear.bias"]
    x = x.reshape(1, net.sides[-2], net.sides[-2], net.widths[-2])
    own = train or net.side_norm == "own"
    x, new = _block(model, "side.block", x, own, ceil=net.ceil, copies=batch, norm=net.side_norm != "none")
    return x.reshape(1, -1), new if train else {}


def _block(
    model: Mapping[str, Any], name: str, x: Any, train: bool, *, ceil: bool = False, copies: int = 1, norm: bool = True
) -> tuple[Any, dict[str, Any]]:
    jax = backend.load()
    x = convolve(x, model[f"{name}.kernel"])
    scale, shift, new = model[f"{name}.scale"], model[f"{name}.shift"], {}
    if norm:
        mean, var = model[f"{name}.mean"], model[f"{name}.var"]
        if train:
            count = copies * math.prod(x.shape[:-1])
            new = {f"{name}.mean": mean, f"{name}.var": var}
            mean = x.mean((0, 1, 2))
            var = jax.numpy.maximum((x * x).mean((0, 1, 2)) - mean * mean, 0.0)
            unbiased = {"mean": mean, "var": var * (count / max(1, count - 1))}
            new = {f"{name}.{k}": (1 - _MOMENTUM) * new[f"{name}.{k}"] + _MOMENTUM * v for k, v in unbiased.items()}
        scale = scale * jax.lax.rsqrt(var + _EPS)
        shift = shift - mean * scale
    return jax.nn.relu(pool(x * scale + shift, ceil)), new


def convolve(x: Any, kernel: Any) -> Any:
    """Convolution 3x3 with zero padding 1: (n, h, w, c_in), (9 c_in, c_out) -> (n, h, w, c_out), as one matrix product.

    The three columns of a window are gathered before the product, and its three rows are summed after it. This moves a
    third of the numbers of gathering whole windows. A native convolution inside a compiled loop is far slower on a CPU.
    """
    jnp = backend.load().numpy
    n, h, w, c = x.shape
    if c < _NARROW:
        x = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        windows = jnp.concatenate([x[:, i : i + h, j : j + w] for i in range(3) for j in range(3)], -1)
        return product(windows.reshape(-1, 9 * c), kernel).reshape(n, h, w, -1)
    x = jnp.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)))
    columns = jnp.concatenate([x[:, :, j : j + w] for j in range(3)], -1)
    rows = kernel.reshape(3, 3 * c, -1).transpose(1, 0, 2).reshape(3 * c, -1)
    y = product(columns.reshape(-1, 3 * c), rows).reshape(n, h, w, 3, -1)
    y = jnp.pad(y, ((0, 0), (1, 1), (0, 0), (0, 0), (0, 0)))
    return y[:, :-2, :, 0] + y[:, 1:-1, :, 1] + y[:, 2:, :, 2]


def pool(x: Any, ceil: bool = False) -> Any:
    """Max pooling 2x2 of (n, h, w, c); an odd last row or column is dropped, or kept with ``ceil``."""
    jnp = backend.load().numpy
    if ceil and x.shape[1] % 2:
        x = jnp.pad(x, ((0, 0), (0, 1), (0, 1), (0, 0)), constant_values=-jnp.inf)
    n, h, w, c = x.shape
    x = x[:, : h // 2 * 2, : w // 2 * 2].reshape(n, h // 2, 2, w // 2, 2, c)
    return jnp.maximum(jnp.maximum(x[:, :, 0, :, 0], x[:, :, 0, :, 1]), jnp.maximum(x[:, :, 1, :, 0], x[:, :, 1, :, 1]))
