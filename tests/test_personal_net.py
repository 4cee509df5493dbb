"""The network and its local training against independent computations in NumPy; skipped where JAX is not installed."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import sys
from typing import Any

import numpy as np
import pytest
from scipy.signal import correlate2d

from fedrepro.errors import ParameterError, UserError
from fedrepro.nets import backend, stacked_models
from fedrepro.nets.convnet import Net, convolve, initial, layer, logits, pool
from fedrepro.nets.stacked_models import stack_length, stacks
from fedrepro.nets.training import SGD, Data, mean_features, on_device, orders, score, train
from fedrepro.nets.weights import given, trained

if importlib.util.find_spec("jax") is None:
    pytest.skip('needs JAX: pip install "fedrepro[deep]"', allow_module_level=True)

jax = backend.load()

SMALL = Net(16, 1, 6, (8, 8, 8, 8))
CONCAT = dataclasses.replace(SMALL, side="concat", side_dim=3)
MASK = dataclasses.replace(SMALL, side="mask", side_dim=4, mask="learned")


@functools.cache
def model(net: Net, dtype: Any = np.float64) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    made = initial(net, lambda name, shape: rng.uniform(-1, 1, shape), dtype)
    for name in made:  # away from the initial ones and zeros
        if name.endswith((".scale", ".var")):
            made[name] = rng.uniform(0.5, 1.5, made[name].shape).astype(dtype)
        elif name.endswith((".shift", ".mean")):
            made[name] = rng.uniform(-0.2, 0.2, made[name].shape).astype(dtype)
    return made


def pictures(n: int, size: int = 16, channels: int = 1) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (n, size, size, channels)).astype(np.uint8)


# -- layers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("c_in", "c_out"), [(1, 3), (3, 8), (9, 4)])
def test_convolution_is_a_sum_of_correlations(c_in: int, c_out: int) -> None:
    rng = np.random.default_rng(0)
    x, kernel = rng.standard_normal((2, 7, 6, c_in)), rng.standard_normal((9 * c_in, c_out))
    with jax.enable_x64(True):
        convolved = np.asarray(convolve(jax.numpy.asarray(x), kernel))
    windows = kernel.reshape(3, 3, c_in, c_out)
    for n in range(2):
        for out in range(c_out):
            expected = sum(correlate2d(x[n, :, :, c], windows[:, :, c, out], "same") for c in range(c_in))
            np.testing.assert_allclose(convolved[n, :, :, out], expected, rtol=1e-10, atol=1e-12)


def pooled(x: np.ndarray, ceil: bool = False) -> np.ndarray:
    h, w = x.shape[1:3]
    rows = range(0, h if ceil else h - h % 2, 2)
    columns = range(0, w if ceil else w - w % 2, 2)
    return np.stack([np.stack([x[:, i : i + 2, j : j + 2].max((1, 2)) for j in columns], 1) for i in rows], 1)


@pytest.mark.parametrize(("size", "ceil", "expected"), [(4, False, 2), (5, False, 2), (5, True, 3), (4, True, 2)])
def test_pooling_rounds_as_asked(size: int, ceil: bool, expected: int) -> None:
    x = np.random.default_rng(0).standard_normal((2, size, size, 3)).astype(np.float32)
    shrunk = np.asarray(pool(x, ceil))
    assert shrunk.shape == (2, expected, expected, 3)
    np.testing.assert_array_equal(shrunk, pooled(x, ceil))


@pytest.mark.parametrize(
    ("net", "features", "entry"),
    [
        (Net(28, 1, 1623, (64, 64, 64, 256)), 256, 576),  # W1
        (Net(28, 1, 1623, (64, 64, 64, 64), ceil=True), 256, 576),  # W2
        (Net(32, 3, 10, (64, 64, 64, 64)), 256, 1024),  # W3
    ],
)
def test_the_readings_of_the_paper_s_network_have_its_sizes(net: Net, features: int, entry: int) -> None:
    """perfedsi Appendix D: 256 numbers leave the last block, z goes through a linear layer to 576."""
    assert net.features == features
    wide = dataclasses.replace(net, side="concat", side_dim=256)
    assert wide.shapes["side.linear.kernel"] == (256, entry)
    assert wide.shapes["head.kernel"] == wide.shapes["side.head.kernel"] == (256, net.classes)


def test_networks_that_do_not_fit_say_why() -> None:
    for call, message in (
        (lambda: Net(28, 1, 5, (8, 8, 8)), "widths: must give the channels of 4 blocks, not 3"),
        (lambda: Net(8, 1, 5, (8,) * 4), "widths: images of 8 pixels are too small for 4 poolings; use 16"),
        (
            lambda: Net(16, 1, 5, (8, 8, 6, 8), side="mask", side_dim=4),
            "mask: 'block' shares 6 channels out to 4 entries of z, which does not come out even; "
            "change widths or take mask: learned",
        ),
    ):
        with pytest.raises(ParameterError) as caught:
            call()
        assert str(caught.value) == message
    with pytest.raises(UserError, match=r"^init: 'head.bias' is missing for this network$"):
        given(SMALL, {k: v for k, v in model(SMALL).items() if k != "head.bias"}, np.float64)
    with pytest.raises(UserError, match=r"^init: 'head.bias' must have shape \(6,\), not \(5,\)$"):
        given(SMALL, {**model(SMALL), "head.bias": np.zeros(5)}, np.float64)


def test_initial_numbers_are_pytorch_s_and_shared_between_networks() -> None:
    def uniform(name: str, shape: tuple[int, ...]) -> np.ndarray:
        return np.random.default_rng(len(name)).uniform(-1, 1, shape)

    plain, concat = initial(SMALL, uniform, np.float64), initial(CONCAT, uniform, np.float64)
    for name, values in plain.items():
        scale = np.sqrt(2) if layer(name) == "head" else 1.0  # a linear layer on twice the inputs
        np.testing.assert_allclose(values, concat[name] * scale)
    assert np.abs(plain["block2.kernel"]).max() == pytest.approx(1 / np.sqrt(72), rel=0.05)
    assert np.abs(plain["head.kernel"]).max() == pytest.approx(1 / np.sqrt(8), rel=0.1)


# -- the network against NumPy -----------------------------------------------------------------------------------------


def block(values: Any, name: str, x: np.ndarray, train: bool, norm: bool = True) -> np.ndarray:
    kernel = values[f"{name}.kernel"].reshape(3, 3, x.shape[-1], -1)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    h, w = x.shape[1:3]
    y = np.einsum(
        "nhwijc,ijco->nhwo",
        np.stack([np.stack([padded[:, i : i + h, j : j + w] for j in range(3)], 3) for i in range(3)], 3),
        kernel,
    )
    if norm:
        mean = y.mean((0, 1, 2)) if train else values[f"{name}.mean"]
        var = y.var((0, 1, 2)) if train else values[f"{name}.var"]
        y = (y - mean) / np.sqrt(var + 1e-5)
    return pooled(np.maximum(y * values[f"{name}.scale"] + values[f"{name}.shift"], 0.0))


def forward(net: Net, values: Any, x: np.ndarray, z: np.ndarray, train: bool) -> np.ndarray:
    """PyTorch's layers one after another; the side path once for each image, as a batch of equal z."""
    for number in range(1, 5):
        x = block(values, f"block{number}", x, train)
        if net.side == "mask" and number == 3:
            mask = {"block": np.repeat(z, 2), "ones": np.ones(8)}.get(net.mask)
            x = x * (z @ values["mask.kernel"] if mask is None else mask)
    scores = x.reshape(len(x), -1) @ values["head.kernel"] + values["head.bias"]
    if net.side == "concat":
        entry = np.repeat(z[None], len(x), 0) @ values["side.linear.kernel"] + values["side.linear.bias"]
        own = train or net.side_norm == "own"
        side = block(values, "side.block", entry.reshape(len(x), 2, 2, 8), own, net.side_norm != "none")
        scores = scores + side.reshape(len(x), -1) @ values["side.head.kernel"]
    return scores


NETS = {
    "plain": SMALL,
    "concat": CONCAT,
    "concat, own": dataclasses.replace(CONCAT, side_norm="own"),
    "concat, none": dataclasses.replace(CONCAT, side_norm="none"),
    "learned mask": MASK,
    "block mask": dataclasses.replace(MASK, mask="block"),
    "ones": dataclasses.replace(MASK, mask="ones"),
}


@pytest.mark.parametrize("name", NETS)
def test_the_network_is_the_one_written_out(name: str) -> None:
    net = NETS[name]
    x, z = pictures(5) / 255, np.random.default_rng(3).random(net.side_dim)
    for mode in (False, True):
        with jax.enable_x64(True):
            scores, new = logits(net, model(net), x, z, mode)
            scores = np.asarray(scores)
        np.testing.assert_allclose(scores, forward(net, model(net), x, z, mode), rtol=1e-8, atol=1e-10)
        assert set(new) == ({k for k in net.shapes if not trained(k)} - _unused(net) if mode else set())


def _unused(net: Net) -> set[str]:
    return {"side.block.mean", "side.block.var"} if net.side_norm == "none" else set()


def test_a_fixed_mask_switches_channels_off() -> None:
    net = NETS["block mask"]
    changed = {k: v.copy() for k, v in model(net).items()}
    changed["block3.kernel"][:, 2:] += 7.0  # the channels of the other entries of z
    changed["block4.kernel"].reshape(3, 3, 8, 8)[:, :, 2:] += 7.0
    x, z = pictures(4) / 255, np.array([1.0, 0.0, 0.0, 0.0])
    with jax.enable_x64(True):
        same = [np.asarray(logits(net, m, x, z, False)[0]) for m in (model(net), changed)]
        other = [np.asarray(logits(net, m, x, z[::-1], False)[0]) for m in (model(net), changed)]
    np.testing.assert_array_equal(*same)
    assert np.abs(other[0] - other[1]).max() > 0.1


def test_running_statistics_are_pytorch_s() -> None:
    x, z = pictures(5) / 255, np.array([0.3, 0.1, 0.7])
    values = model(CONCAT)
    with jax.enable_x64(True):
        _, new = logits(CONCAT, values, x, z, True)
    y = np.stack([[correlate2d(x[n, :, :, 0], values["block1.kernel"][:, c].reshape(3, 3), "same") for c in range(8)]
                  for n in range(5)])  # fmt: skip
    np.testing.assert_allclose(new["block1.mean"], 0.9 * values["block1.mean"] + 0.1 * y.mean((0, 2, 3)), rtol=1e-8)
    expected = 0.9 * values["block1.var"] + 0.1 * y.var((0, 2, 3), ddof=1)
    np.testing.assert_allclose(new["block1.var"], expected, rtol=1e-8)
    # the side path sees one z in place of five equal ones; PyTorch would count 5 x 4 numbers
    entry = (z @ values["side.linear.kernel"] + values["side.linear.bias"]).reshape(1, 2, 2, 8)
    padded = np.pad(entry, ((0, 0), (1, 1), (1, 1), (0, 0)))
    kernel = values["side.block.kernel"].reshape(3, 3, 8, 8)
    y = sum(padded[0, i : i + 2, j : j + 2] @ kernel[i, j] for i in range(3) for j in range(3)).reshape(4, 8)
    expected = 0.9 * values["side.block.var"] + 0.1 * y.var(0) * 20 / 19
    np.testing.assert_allclose(new["side.block.var"], expected, rtol=1e-7)


def loss(net: Net, weights: Any, rest: Any, x: Any, y: Any, z: Any) -> Any:
    scores, new = logits(net, {**weights, **rest}, x, z, True)
    return (jax.nn.logsumexp(scores, -1) - scores[np.arange(len(y)), y]).mean(), new


@functools.cache
def slope(net: Net) -> Any:
    return jax.jit(jax.value_and_grad(functools.partial(loss, net), has_aux=True))


def parts(net: Net) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    values = model(net)
    return {k: v for k, v in values.items() if trained(k)}, {k: v for k, v in values.items() if not trained(k)}


@pytest.mark.parametrize("net", [CONCAT, MASK], ids=["concat", "mask"])
def test_derivatives_agree_with_finite_differences(net: Net) -> None:
    rng = np.random.default_rng(4)
    x, y, z = pictures(6) / 255, rng.integers(0, 6, 6), rng.random(net.side_dim)
    weights, rest = parts(net)
    with jax.enable_x64(True):
        _, g = slope(net)(weights, rest, x, y, z)
        for name in weights:  # along a random direction of each array by itself
            along = rng.standard_normal(weights[name].shape)
            h = 1e-6
            low, high = (
                float(slope(net)({**weights, name: weights[name] + s * h * along}, rest, x, y, z)[0][0])
                for s in (-1, 1)
            )
            exact = float(np.vdot(np.asarray(g[name]), along))
            assert exact == pytest.approx((high - low) / (2 * h), rel=2e-5, abs=2e-9), name


# -- local training ----------------------------------------------------------------------------------------------------


def sgd_by_hand(net: Net, values: Any, data: Data, batches: Any, z: Any, sgd: SGD, anchor: Any, frozen: Any) -> Any:
    """One client's local SGD, one batch after another."""
    weights = {k: v.copy() for k, v in values.items() if trained(k)}
    rest = {k: v.copy() for k, v in values.items() if not trained(k)}
    velocity = {k: np.zeros_like(v) for k, v in weights.items()}
    pixels, labels = np.asarray(data.pixels) / 255.0, np.asarray(data.labels)
    for rows in batches:
        (_, new), g = slope(net)(weights, rest, pixels[rows], labels[rows], z)
        for k in weights:
            pull = sgd.mu * (weights[k] - anchor[k]) if anchor is not None else 0.0
            velocity[k] = sgd.momentum * velocity[k] + np.asarray(g[k]) + pull
            weights[k] = weights[k] - (0.0 if k in frozen else sgd.lr) * velocity[k]
        rest.update({k: np.asarray(v) for k, v in new.items()})
    return {**weights, **rest}


@pytest.mark.parametrize("parallel", [False, True], ids=["in turn", "side by side"])
def test_local_training_is_momentum_sgd_with_a_pull(parallel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "clients_in_parallel", lambda: parallel)
    net, rng = CONCAT, np.random.default_rng(5)
    data = on_device(pictures(40), rng.integers(0, 6, 40), double=True)
    sgd = SGD(lr=0.1, momentum=0.5, batch=6, epochs=2, mu=0.3)
    rows = [np.arange(13), np.arange(20, 25)]
    batches = orders(rows, rng, sgd, 13)
    assert batches[1].tolist() == [6, 2]
    stack = {k: np.stack([v, 1.1 * v]) for k, v in model(net).items()}
    z, frozen = rng.random((2, 3)), frozenset({"head.kernel"})
    after = train(net, data, stack, z, batches, sgd, anchor=model(net), frozen=frozen)
    with jax.enable_x64(True):
        for i in range(2):
            own = {k: v[i] for k, v in stack.items()}
            steps = batches[0][i, : batches[1][i]]
            expected = sgd_by_hand(net, own, data, steps, z[i], sgd, model(net), frozen)
            for name, values in expected.items():
                np.testing.assert_allclose(after[name][i], values, rtol=1e-7, atol=1e-9, err_msg=name)
    np.testing.assert_array_equal(after["head.kernel"], stack["head.kernel"])


def test_scores_and_features_are_those_of_the_client_s_rows() -> None:
    rng = np.random.default_rng(6)
    labels = rng.integers(0, 6, 60)
    data = on_device(pictures(60), labels, double=True)
    rows = [np.arange(45), np.array([50, 3, 59])]
    z = rng.random((2, 3))
    stack = {k: np.stack([v, v[::-1]]) for k, v in model(CONCAT).items()}
    right, lost = score(CONCAT, data, stack, z, rows, 45)
    x = pictures(60) / 255
    for i in range(2):
        own = {k: v[i] for k, v in stack.items()}
        scores = forward(CONCAT, own, x[rows[i]], z[i], False)
        assert right[i] == np.mean(scores.argmax(1) == labels[rows[i]])
        entropy = np.log(np.exp(scores).sum(1)) - scores[np.arange(len(scores)), labels[rows[i]]]
        assert lost[i] == pytest.approx(entropy.mean(), rel=1e-9)
    features = mean_features(SMALL, data, model(SMALL), rows, 45)
    y = x[rows[1]]
    for number in range(1, 5):
        y = block(model(SMALL), f"block{number}", y, False)
    np.testing.assert_allclose(features[1], y.reshape(3, -1).mean(0), rtol=1e-9)


def test_a_model_that_is_not_finite_scores_nan() -> None:
    data = on_device(pictures(60), np.zeros(60, int), double=True)
    stack = {k: np.stack([v, v]) for k, v in model(CONCAT).items()}
    stack["head.bias"][1] = np.nan
    right, lost = score(CONCAT, data, stack, np.ones((2, 3)), [np.arange(45), np.arange(45)], 45)
    assert np.isfinite([right[0], lost[0]]).all()
    assert np.isnan([right[1], lost[1]]).all()


def test_batches_are_epochs_of_the_client_s_own_samples_filled_up() -> None:
    rows = [np.arange(100, 123), np.arange(5)]
    rows_of_steps, counts = orders(rows, np.random.default_rng(0), SGD(0.1, batch=10, epochs=2), 23)
    assert rows_of_steps.shape == (2, 6, 10)
    assert counts.tolist() == [6, 2]
    for epoch in range(2):
        own = rows_of_steps[0, 3 * epoch : 3 * epoch + 3].ravel()
        assert set(own[:23]) == set(rows[0])
        np.testing.assert_array_equal(own[23:], own[:7])  # the last batch: further samples of the same client
        assert set(rows_of_steps[1, epoch]) == set(range(5))


def test_stacks_have_one_length_and_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    large = Net(28, 1, 1623, (64, 64, 64, 256))
    monkeypatch.setattr(backend, "clients_in_parallel", lambda: False)
    assert stack_length(large, 100, np.float32) == 1
    monkeypatch.setattr(backend, "clients_in_parallel", lambda: True)
    assert stack_length(large, 100, np.float32) == 100
    assert stack_length(large, 400, np.float32) == 200
    assert stack_length(large, 7, np.float32) == 7
    monkeypatch.setattr(stacked_models, "STACK_BYTES", 1)
    assert stack_length(large, 100, np.float32) == 1
    cut = list(stacks(np.arange(7), 3))
    assert [stack.tolist() for stack, _ in cut] == [[0, 1, 2], [3, 4, 5], [6, 6, 6]]
    assert [count for _, count in cut] == [3, 3, 1]


def test_without_jax_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(UserError, match=r'^this part needs jax: pip install "fedrepro\[deep\]"$'):
        backend.load.__wrapped__()
