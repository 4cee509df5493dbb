"""Local SGD and evaluation of one network on many clients, compiled once per architecture.

Models of several clients are stacked: a mapping from names to arrays (clients, ...). Samples are row numbers in the
device's copy of the images, so a client's data is a row of integers. The same code serves both layouts: on a CPU
clients run one after another inside a compiled loop, on an accelerator in parallel.

Source: perfedsi section 2 and Appendix D; docs/derivations/personal-networks.md#local-training.
"""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrepro.nets import backend
from fedrepro.nets.convnet import Net, embed, logits
from fedrepro.nets.stacked_models import Model
from fedrepro.nets.weights import trained
from fedrepro.seeds import Rng

SCORED = 20
"""Images scored at a time."""


@dataclass(frozen=True)
class SGD:
    """Minibatch SGD: v <- momentum v + g, w <- w - lr v, v = 0 at the start.

    ``mu`` adds mu (w - anchor) to the gradient of every trained number.
    """

    lr: float
    momentum: float = 0.5
    batch: int = 10
    epochs: int = 1
    mu: float = 0.0


@dataclass(frozen=True)
class Data:
    """Images on the device: pixels (n, height, width, channels) uint8, labels (n,) int32."""

    pixels: Any
    labels: Any
    double: bool = False

    @property
    def dtype(self) -> Any:
        """The type of all arithmetic."""
        return np.float64 if self.double else np.float32

    def computing(self) -> contextlib.AbstractContextManager[None]:
        """A context in which JAX computes in this type."""
        return backend.computing(self.dtype)


def on_device(pixels: np.ndarray, labels: np.ndarray, double: bool = False) -> Data:
    """Copy images to the device."""
    jnp = backend.load().numpy
    return Data(jnp.asarray(pixels), jnp.asarray(labels, dtype=jnp.int32), double)


def orders(rows: list[np.ndarray], rng: Rng, sgd: SGD, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Minibatches of each client, (clients, batches, batch) rows in random order, and its number of batches.

    ``most`` is the largest number of samples of a client, which determines the shape. The first samples of the epoch
    fill up a client's last batch (discrepancy perfedsi.4), so that batch norm never has a batch of one.
    """
    steps = -(-most // sgd.batch)
    batches = np.zeros((len(rows), sgd.epochs * steps, sgd.batch), dtype=np.int32)
    counts = np.empty(len(rows), dtype=np.int32)
    for i, own in enumerate(rows):
        size = -(-len(own) // sgd.batch)
        for epoch in range(sgd.epochs):
            order = np.resize(rng.permutation(own), (size, sgd.batch))
            batches[i, epoch * size : (epoch + 1) * size] = order
        counts[i] = sgd.epochs * size
    return batches, counts


def train(
    net: Net,
    data: Data,
    models: Model,
    z: np.ndarray,
    batches: tuple[np.ndarray, np.ndarray],
    sgd: SGD,
    *,
    anchor: Model | None = None,
    frozen: frozenset[str] = frozenset(),
) -> Model:
    """The stacked models after SGD on their clients' ``batches``; trained arrays named in ``frozen`` do not change.

    anchor : the model to which the proximal term pulls every client; required if sgd.mu > 0.
    """
    call = _trainer(net, backend.clients_in_parallel())
    number = data.dtype
    rates = {name: number(0.0 if name in frozen else sgd.lr) for name in net.shapes if trained(name)}
    pull = {k: np.broadcast_to(number(0.0), net.shapes[k]) if anchor is None else anchor[k] for k in rates}
    with data.computing():
        after = call(
            models, pull, np.asarray(z, number), *batches, rates, number(sgd.momentum), number(sgd.mu), data.pixels,
            data.labels,
        )  # fmt: skip
        return dict(after) if backend.clients_in_parallel() else {name: np.asarray(v) for name, v in after.items()}


@functools.cache
def _trainer(net: Net, parallel: bool) -> Any:
    jax = backend.load()
    import optax

    def loss(weights: Any, statistics: Any, x: Any, y: Any, z: Any) -> Any:
        scores, new = logits(net, {**weights, **statistics}, x, z, True)
        return optax.softmax_cross_entropy_with_integer_labels(scores, y).mean(), {**statistics, **new}

    def train_client(client: Any, pull: Any, rates: Any, momentum: Any, mu: Any, pixels: Any, labels: Any) -> Any:
        model, z, order, count = client

        def step(i: Any, now: Any) -> Any:
            weights, statistics, velocity = now
            x = _images(pixels, order[i], z.dtype)
            g, statistics = jax.grad(loss, has_aux=True)(weights, statistics, x, labels[order[i]], z)
            g = {k: g[k] + mu * (weights[k] - pull[k]) for k in g}  # discrepancy perfedsi.7: grad + mu (v - w)
            velocity = {k: momentum * velocity[k] + g[k] for k in g}
            return {k: weights[k] - rates[k] * velocity[k] for k in g}, statistics, velocity

        weights = {k: v for k, v in model.items() if trained(k)}
        statistics = {k: v for k, v in model.items() if not trained(k)}
        start = weights, statistics, {k: jax.numpy.zeros_like(v) for k, v in weights.items()}
        weights, statistics, _ = jax.lax.fori_loop(0, count, step, start)
        return {**weights, **statistics}

    def train_clients(models: Any, pull: Any, z: Any, order: Any, count: Any, *rest: Any) -> Any:
        return _each(lambda client: train_client(client, pull, *rest), (models, z, order, count), parallel)

    return jax.jit(train_clients)


def score(
    net: Net, data: Data, models: Model, z: np.ndarray, rows: list[np.ndarray], most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Each stacked model's accuracy and mean cross-entropy on its client's ``rows``: (clients,) each.

    ``most`` is the largest number of rows of a client. NaN if a model's scores are not finite.
    """
    order, counts = _padded(rows, most)
    call = _scorer(net, backend.clients_in_parallel())
    with data.computing():
        right, lost = call(models, np.asarray(z, data.dtype), order, counts, data.pixels, data.labels)
        right, lost = np.asarray(right, np.float64) / counts, np.asarray(lost, np.float64) / counts
    return np.where(np.isfinite(lost), right, np.nan), np.where(np.isfinite(lost), lost, np.nan)


@functools.cache
def _scorer(net: Net, parallel: bool) -> Any:
    jax = backend.load()
    import optax

    def score_client(client: Any, pixels: Any, labels: Any) -> Any:
        model, z, order, count = client

        def step(i: Any, now: Any) -> Any:
            rows, valid = _part(order, i, count)
            y = labels[rows]
            scores, _ = logits(net, model, _images(pixels, rows, z.dtype), z, False)
            lost = optax.softmax_cross_entropy_with_integer_labels(scores, y)
            hits = (valid & (scores.argmax(-1) == y)).sum(dtype=now[0].dtype)
            return now[0] + hits, now[1] + jax.numpy.where(valid, lost, 0.0).sum()

        start = jax.numpy.zeros((), jax.numpy.int32), jax.numpy.zeros((), z.dtype)
        return jax.lax.fori_loop(0, (count + SCORED - 1) // SCORED, step, start)

    def score_clients(models: Any, z: Any, order: Any, count: Any, *rest: Any) -> Any:
        return _each(lambda client: score_client(client, *rest), (models, z, order, count), parallel)

    return jax.jit(score_clients)


def mean_features(net: Net, data: Data, model: Model, rows: list[np.ndarray], most: int) -> np.ndarray:
    """The mean output of the last block of one model over each client's ``rows``: (clients, features)."""
    order, counts = _padded(rows, most)
    call = _embedder(net, backend.clients_in_parallel())
    with data.computing():
        sums = call(model, order, counts, data.pixels)
        return np.asarray(sums, np.float64) / counts[:, None]


@functools.cache
def _embedder(net: Net, parallel: bool) -> Any:
    jax = backend.load()

    def embed_client(client: Any, model: Any, pixels: Any) -> Any:
        order, count = client
        dtype = model["head.bias"].dtype

        def step(i: Any, total: Any) -> Any:
            rows, valid = _part(order, i, count)
            features, _ = embed(net, model, _images(pixels, rows, dtype), None, False)
            return total + jax.numpy.where(valid[:, None], features, 0.0).sum(0)

        zero = jax.numpy.zeros(net.features, dtype)
        return jax.lax.fori_loop(0, (count + SCORED - 1) // SCORED, step, zero)

    def embed_clients(model: Any, order: Any, count: Any, pixels: Any) -> Any:
        return _each(lambda client: embed_client(client, model, pixels), (order, count), parallel)

    return jax.jit(embed_clients)


def _each(call: Any, clients: Any, parallel: bool) -> Any:
    """``call`` for each client: in parallel on an accelerator, one after another on a CPU."""
    jax = backend.load()
    return jax.vmap(call)(clients) if parallel else jax.lax.map(call, clients)


def _images(pixels: Any, rows: Any, dtype: Any) -> Any:
    return pixels[rows].astype(dtype) / 255


def _part(order: Any, i: Any, count: Any) -> tuple[Any, Any]:
    """The i-th SCORED rows of ``order``, and which of them are among its first ``count``."""
    jax = backend.load()
    first = i * SCORED
    rows = jax.lax.dynamic_slice_in_dim(order, first, SCORED)
    return rows, first + jax.numpy.arange(SCORED) < count


def _padded(rows: list[np.ndarray], most: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.zeros((len(rows), -(-most // SCORED) * SCORED), dtype=np.int32)
    for i, own in enumerate(rows):
        order[i, : len(own)] = own
    return order, np.array([len(own) for own in rows], dtype=np.int32)
