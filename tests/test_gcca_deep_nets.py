"""The networks of deep GCCA: batch norm in training and in use, gradients, Adam; skipped where JAX is not installed."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from fedrepro.errors import UserError
from fedrepro.nets import backend, mlp
from fedrepro.nets.mlp import Mlp
from fedrepro.nets.weights import given, trained

from . import naive_gcca_deep as naive

if importlib.util.find_spec("jax") is None:
    pytest.skip('needs JAX: pip install "fedrepro[deep]"', allow_module_level=True)

NET = Mlp(3, (6, 5), 2)


def model(net=NET, seed=0, dtype=np.float64):
    """A model away from the initial ones and zeros."""
    rng = np.random.default_rng(seed)
    made = mlp.initial(net, lambda name, shape: rng.uniform(-1, 1, shape), dtype)
    for name in made:
        if name.endswith((".scale", ".var")):
            made[name] = rng.uniform(0.5, 1.5, made[name].shape).astype(dtype)
        elif name.endswith((".shift", ".mean")):
            made[name] = rng.uniform(-0.2, 0.2, made[name].shape).astype(dtype)
    return made


def rows(n=9, N=3, seed=1):
    return np.random.default_rng(seed).standard_normal((n, N)) * 2 + 1


def in_training(made, x):
    with mlp.computing(True):
        out, statistics = mlp.forward(made, backend.load().numpy.asarray(x), True)
        return np.asarray(out), {name: np.asarray(values) for name, values in statistics.items()}


def test_in_training_batch_norm_takes_the_batch_and_moves_the_running_statistics():
    made, x = model(), rows()
    out, statistics = in_training(made, x)
    expected, _, _, new = naive.forward(made, x, True)
    np.testing.assert_allclose(out, expected, rtol=1e-10)
    assert sorted(statistics) == sorted(name for name in NET.shapes if not trained(name))
    for name, values in new.items():
        np.testing.assert_allclose(statistics[name], values, rtol=1e-10)


def test_in_use_batch_norm_takes_the_running_statistics_so_that_rows_do_not_meet():
    made, x = model(), rows()
    out = mlp.predict(made, x)
    np.testing.assert_allclose(out, naive.forward(made, x, False)[0], rtol=1e-10)
    np.testing.assert_allclose(out[4:5], mlp.predict(made, x[4:5]), rtol=1e-12)
    assert np.abs(out - mlp.predict(made, x, train=True)).max() > 1e-3
    np.testing.assert_allclose(mlp.predict(made, x, train=True), naive.forward(made, x, True)[0], rtol=1e-10)


def test_running_statistics_come_to_those_of_the_data():
    made, x = model(Mlp(3, (4,), 2)), rows(400)
    for _ in range(200):
        made |= in_training(made, x)[1]
    z = x @ made["layer1.kernel"] + made["layer1.bias"]
    np.testing.assert_allclose(made["layer1.mean"], z.mean(axis=0), rtol=1e-8)
    np.testing.assert_allclose(made["layer1.var"], z.var(axis=0, ddof=1), rtol=1e-8)


@pytest.mark.parametrize("loss", ["squared", "norm"])
def test_gradients_are_finite_differences(loss):
    from fedrepro.problems.gcca_deep.deep_nodes import objective

    jax = backend.load()
    made, x = model(), rows()
    target = np.random.default_rng(2).standard_normal((9, 2))
    weights = {k: v for k, v in made.items() if trained(k)}
    statistics = {k: v for k, v in made.items() if not trained(k)}
    with mlp.computing(True):

        def of(weights):
            return objective(loss, {**weights, **statistics}, x, target)[0]

        g = {name: np.asarray(values) for name, values in jax.jit(jax.grad(of))(weights).items()}
        value = jax.jit(of)
        h = 1e-6
        for name, values in weights.items():
            difference = np.empty_like(values)
            for at in np.ndindex(values.shape):
                ends = []
                for sign in (h, -h):
                    moved = values.copy()
                    moved[at] += sign
                    ends.append(float(value({**weights, name: moved})))
                difference[at] = (ends[0] - ends[1]) / (2 * h)
            np.testing.assert_allclose(g[name], difference, rtol=1e-6, atol=1e-8, err_msg=name)
        at_weights = float(value(weights))
    by_hand = naive.gradient(made, x, target, loss)
    assert at_weights == pytest.approx(by_hand[0], rel=1e-10)
    for name in g:
        np.testing.assert_allclose(g[name], by_hand[1][name], rtol=1e-8, atol=1e-12)


def test_the_loss_without_its_square_has_a_gradient_where_it_is_zero():
    from fedrepro.problems.gcca_deep.deep_nodes import objective

    jax = backend.load()
    with mlp.computing(True):
        net = Mlp(2, (), 2, bias=False)
        x = np.eye(2)
        g = jax.grad(lambda w: objective("norm", w, x, x)[0])({"head.kernel": np.eye(2)})
    assert net.shapes == {"head.kernel": (2, 2)}
    np.testing.assert_array_equal(np.asarray(g["head.kernel"]), np.zeros((2, 2)))


def test_an_initial_network_has_the_bounds_of_its_layers():
    rng = np.random.default_rng(0)
    net = Mlp(4, (300,), 2)
    made = mlp.initial(net, lambda name, shape: rng.uniform(-1, 1, shape), np.float64)
    assert np.abs(made["layer1.kernel"]).max() <= 0.5 < 1.05 * np.abs(made["layer1.kernel"]).max()
    assert np.abs(made["layer1.bias"]).max() <= 0.5
    bound = 1 / np.sqrt(300)
    assert np.abs(made["head.kernel"]).max() <= bound < 1.05 * np.abs(made["head.kernel"]).max()
    assert (made["layer1.var"] == 1).all()
    assert (made["layer1.mean"] == 0).all()


def test_no_network_is_the_identity_and_needs_no_jax(monkeypatch):
    monkeypatch.setattr(backend, "load", lambda: pytest.fail("JAX was loaded"))
    x = rows()
    np.testing.assert_array_equal(mlp.predict({}, x), x)


def test_single_precision_is_near_double():
    x = rows()
    single = mlp.predict(model(dtype=np.float32), x)
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, mlp.predict(model(), x), rtol=1e-4, atol=1e-5)


def test_an_explicit_network_is_checked():
    made = model()
    with pytest.raises(UserError, match=r"^init: 'head.bias' is missing for this network$"):
        given(NET, {k: v for k, v in made.items() if k != "head.bias"}, np.float64)
    with pytest.raises(UserError, match=r"^init: 'layer9.kernel' is not an array of this network$"):
        given(NET, {**made, "layer9.kernel": np.ones(2)}, np.float64)
    with pytest.raises(UserError, match=r"^init: 'head.kernel' must have shape \(5, 2\), not \(2, 5\)$"):
        given(NET, {**made, "head.kernel": np.ones((2, 5))}, np.float64)


def test_multiplications_are_counted():
    assert NET.macs == 3 * 6 + 6 * 5 + 5 * 2
