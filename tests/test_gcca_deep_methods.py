"""CuteMaxVar-Deep and AltMaxVar-Deep: against the paper's algorithm, limits, messages; skipped where JAX is not
installed."""

from __future__ import annotations

import importlib.util
import itertools
import subprocess
import sys

import numpy as np
import pytest

from fedrepro.compression.compressors import Link, MaxNorm
from fedrepro.errors import ParameterError, UserError
from fedrepro.ledger import Ledger
from fedrepro.multiview import federated
from fedrepro.nets import backend
from fedrepro.problems.gcca.methods.cutemaxvar import CuteMaxVar
from fedrepro.problems.gcca.problem import GCCA, Factors
from fedrepro.problems.gcca_deep import deep_nodes
from fedrepro.problems.gcca_deep.methods.altmaxvar_deep import AltMaxVarDeep
from fedrepro.problems.gcca_deep.methods.cutemaxvar_deep import CuteMaxVarDeep
from fedrepro.problems.gcca_deep.problem import DeepGCCA, NetStart
from fedrepro.seeds import streams

from . import naive_gcca_deep as naive
from . import naive_quantizer

if importlib.util.find_spec("jax") is None:
    pytest.skip('needs JAX: pip install "fedrepro[deep]"', allow_module_level=True)

TINY = {"hidden": (7, 6), "T": 2, "b": 10}


def problem(J=40, widths=(3, 3, 4), K=2, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((J, 3))
    return DeepGCCA([np.tanh(Z @ rng.standard_normal((3, N))) + 0.1 * rng.standard_normal((J, N)) for N in widths], K)


def take(method, P, rounds, seed=3, **more):
    states = method.rounds(P, np.random.default_rng(seed), init=NetStart(1), **more)
    return list(itertools.islice(states, rounds + 1))


def same_bits(a, b):
    return all(
        x.tobytes() == y.tobytes()
        for p, s in zip(a, b, strict=True)
        for x, y in zip([*p.M, *p.far, p.G, p.G_far], [*s.M, *s.far, s.G, s.G_far], strict=True)
    )


@pytest.mark.parametrize(
    "setting",
    [
        {"q": 3},
        {"q": 4, "inner_unit": "step", "loss": "norm", "target_scale": "none"},
        {"q": 3, "center": "sum", "shuffle": True},
        {"q": 3, "directions": "uplink", "inner_unit": "step"},
    ],
    ids=str,
)
def test_every_setting_is_the_box_written_down(setting, monkeypatch):
    P, drawn = problem(), []
    batches = deep_nodes.DeepNode._batches

    def noted(node):
        drawn.append(batches(node))
        return drawn[-1]

    monkeypatch.setattr(deep_nodes.DeepNode, "_batches", noted)
    steps, compress = [], MaxNorm.compress

    def measured(compressor, D, rng):
        message = compress(compressor, D, rng)
        steps.append(message.step)
        return message

    monkeypatch.setattr(MaxNorm, "compress", measured)
    monkeypatch.setattr(naive, "quantize", lambda D, q, rng: naive_quantizer.quantized(D, q, 1.0, rng, steps.pop(0)))
    method = CuteMaxVarDeep(**TINY, **setting, lr=0.01)
    states = take(method, P, 3)
    compressing = streams(np.random.default_rng(3)).compressor.spawn(P.I + 1)
    expected = naive.cutemaxvar_deep(
        P.views, states[0].theta, [drawn[i : i + P.I] for i in range(0, len(drawn), P.I)], 3, q=method.q, lr=0.01,
        loss=method.loss, scaled=method.target_scale == "rows", center=method.center,
        compress_down=method.directions == "both", streams=compressing,
    )  # fmt: skip
    for state, (M, G, G_hat) in zip(states, expected, strict=True):
        np.testing.assert_allclose(np.stack(state.M), np.stack(M), rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(state.G, G, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(state.G_far, G_hat, rtol=1e-7, atol=1e-9)


def test_a_linear_network_with_full_batches_is_linear_cutemaxvar():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((50, 4))
    views = [Z @ rng.standard_normal((4, N)) + 0.2 * rng.standard_normal((50, N)) for N in (5, 6, 4)]
    views = [(X - X.mean(axis=0)) / np.linalg.norm(X - X.mean(axis=0), 2) for X in views]  # alpha_i = 1 for all
    start = [0.1 * rng.standard_normal((X.shape[1], 2)) for X in views]
    linear = CuteMaxVar(q=3, T=5).rounds(GCCA(views, 2), np.random.default_rng(7), init=Factors(start))
    method = CuteMaxVarDeep(
        q=3, T=5, inner_unit="step", b=None, hidden=(), bias=False, optimizer="sgd", lr=50.0, target_scale="none",
        center="none",
    )  # fmt: skip
    models = [{"head.kernel": Q} for Q in start]
    deep = method.rounds(DeepGCCA(views, 2), np.random.default_rng(7), init=models)
    for a, b in itertools.islice(zip(linear, deep, strict=False), 30):
        np.testing.assert_allclose(b.G, a.G, atol=1e-10)
        np.testing.assert_allclose(b.G_far, a.G_far, atol=1e-10)
        for Q, theta in zip(a.Q, b.theta, strict=True):
            np.testing.assert_allclose(theta["head.kernel"], Q, atol=1e-9)
    assert np.abs(a.G - a.G_far).max() > 1e-6  # something was lost on the way


def test_infinite_bits_are_altmaxvar_deep_and_a_run_repeats_itself():
    P = problem()
    alt = take(AltMaxVarDeep(**TINY), P, 3)
    assert same_bits(alt, take(CuteMaxVarDeep(q=None, **TINY), P, 3))
    cute = take(CuteMaxVarDeep(q=3, **TINY), P, 3)
    assert same_bits(cute, take(CuteMaxVarDeep(q=3, **TINY), problem(), 3))
    assert not same_bits(alt, cute)
    assert not same_bits(cute, take(CuteMaxVarDeep(q=3, **TINY), P, 3, seed=4))
    assert all(np.array_equal(a, b) for a, b in zip(alt[0].M, cute[0].M, strict=True))  # common initial networks


def test_the_server_has_nothing_but_what_was_sent(monkeypatch):
    """G is computed again from the first matrices and the bytes of the messages; nodes are locked while it is made."""
    P, packed, nodes, inside = problem(), [], [], []
    send, step, made = Link.send, federated.server_step, deep_nodes.DeepNode.__init__

    def sent(link, value, rng):
        message = send(link, value, rng)
        packed.append(message.pack(single=True))
        return message

    def keep(node, *args):
        made(node, *args)
        nodes.append(node)

    def locked(estimates, *rest):
        inside.append([np.shape(E) for E in estimates])
        held = [node.__dict__.copy() for node in nodes]
        for node in nodes:
            node.__dict__.clear()  # any look at a node's data or network fails
        try:
            return step(estimates, *rest)
        finally:
            for node, own in zip(nodes, held, strict=True):
                node.__dict__.update(own)

    monkeypatch.setattr(Link, "send", sent)
    monkeypatch.setattr(deep_nodes.DeepNode, "__init__", keep)
    monkeypatch.setattr(federated, "server_step", locked)
    states = take(CuteMaxVarDeep(q=3, center="sum", **TINY), P, 4)
    assert inside == [[(P.J, P.K)] * P.I] * 5
    estimates, quantizer = [M.copy() for M in states[0].M], MaxNorm(3)
    for r, state in enumerate(states[1:]):
        for i in range(P.I):
            estimates[i] = estimates[i] + quantizer.unpack(packed[r * (P.I + 1) + i], (P.J, P.K)).values
        assert step(estimates, None, 0.0, True).tobytes() == state.G.tobytes()


def test_nodes_train_on_what_reached_them(monkeypatch):
    P, targets = problem(), []
    update = deep_nodes.DeepNode.update
    monkeypatch.setattr(deep_nodes.DeepNode, "update", lambda node, G: (targets.append(G), update(node, G))[1])
    both = take(CuteMaxVarDeep(q=3, **TINY), P, 2)
    assert all(np.array_equal(G, both[1].G_far) for G in targets[P.I :])
    assert np.abs(both[1].G - both[1].G_far).max() > 1e-4
    targets.clear()
    released = take(CuteMaxVarDeep(q=3, directions="uplink", **TINY), P, 2)
    assert all(np.array_equal(G, released[1].G) for G in targets[P.I :])


def test_what_is_sent_is_counted():
    P, q, rounds = problem(), 3, 4
    entries, messages = P.J * P.K, P.I * rounds
    for method, up, down in (
        (CuteMaxVarDeep(q=q, **TINY), q * entries + 32, q * entries + 32),
        (CuteMaxVarDeep(q=q, directions="uplink", **TINY), q * entries + 32, 32 * entries),
        (AltMaxVarDeep(**TINY), 32 * entries, 32 * entries),
    ):
        ledger = Ledger()
        take(method, P, rounds, ledger=ledger)
        assert ledger.uplink_bits == 32 * P.I * entries + messages * up
        assert ledger.downlink_bits == 32 * P.I * entries + messages * down
        assert ledger.setup_scalars == 0


@pytest.mark.parametrize("center", ["estimate", "sum"])
def test_G_is_orthonormal_and_centred(center):
    for state in take(CuteMaxVarDeep(q=3, center=center, **TINY), problem(), 3):
        np.testing.assert_allclose(state.G.T @ state.G, np.eye(2), atol=1e-12)
        np.testing.assert_allclose(state.G.sum(axis=0), 0, atol=1e-12)
        for near, far in zip(state.near, state.far, strict=True):
            assert near.tobytes() == far.tobytes()


def test_training_lowers_the_cost():
    P = problem(J=200)
    states = take(CuteMaxVarDeep(q=4, hidden=(16,), T=5, b=50), P, 15)
    costs = [P.cost(state.M, state.G) for state in states]
    assert costs[-1] < 0.7 * costs[0]


def test_the_scale_of_the_targets_leaves_the_representation_in_the_scale_of_G():
    P = problem(J=200)
    for scale in ("rows", "none"):
        last = take(AltMaxVarDeep(hidden=(16,), T=10, b=50, lr=3e-3, target_scale=scale), P, 15)[-1]
        assert 0.5 < np.linalg.norm(last.M[0]) / np.linalg.norm(last.G) < 1.2


def node(J=25, **settings):
    method = AltMaxVarDeep(hidden=(4,), **settings)
    P = problem(J=J)
    model = deep_nodes.starting_models(method, P, np.random.default_rng(0), NetStart(1))[0]
    return deep_nodes.DeepNode(P.views[0], model, np.random.default_rng(5), method)


def test_batches_of_epochs_and_of_steps():
    epochs = node(T=2, b=10)._batches()
    assert epochs.shape == (6, 10)
    np.testing.assert_array_equal(epochs[:3].ravel(), [*range(25), *range(5)])  # filled up with the first rows
    np.testing.assert_array_equal(epochs[3:], epochs[:3])
    shuffled = node(T=2, b=5, shuffle=True)._batches()
    assert sorted(shuffled[:5].ravel()) == sorted(shuffled[5:].ravel()) == list(range(25))
    assert not np.array_equal(shuffled[:5], shuffled[5:])
    steps = node(T=30, b=10, inner_unit="step")._batches()
    assert steps.shape == (30, 10)
    assert all(len(set(rows)) == 10 for rows in steps.tolist())
    assert set(steps.ravel().tolist()) == set(range(25))
    assert node(T=3, b=None, inner_unit="step")._batches().tolist() == [list(range(25))] * 3


def test_adam_goes_on_where_the_last_round_ended():
    single, double = node(b=25, T=1), node(b=25, T=2)
    G = np.random.default_rng(0).standard_normal((25, 2))
    single.update(G)
    single.update(G)
    double.update(G)
    for name, values in double.parameters().items():
        np.testing.assert_allclose(single.parameters()[name], values, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"hidden": "128-64"}, r"^hidden: must be a list of widths .*, not '128-64'$"),
        ({"hidden": (8, 0)}, r"^hidden: must be an integer of at least 1, not 0$"),
        ({"inner_unit": "epochs"}, r"^inner_unit: must be one of epoch, step, not 'epochs', did you mean 'epoch'\?$"),
        ({"loss": "l2"}, r"^loss: must be one of squared, norm, not 'l2'"),
        ({"target_scale": 2}, r"^target_scale: must be one of rows, none, not 2"),
        ({"lr": 0}, r"^lr: must be a number greater than 0, not 0$"),
        ({"T": 0}, r"^T: must be an integer of at least 1, not 0$"),
        ({"optimizer": "adm"}, r"^optimizer: must be one of adam, sgd, not 'adm', did you mean 'adam'\?$"),
        ({"double": 1}, r"^double: must be true or false, not 1$"),
        ({"q": 1}, r"^q: must be an integer from 2 "),
    ],
)
def test_a_parameter_that_cannot_work_says_so(values, message):
    with pytest.raises(ParameterError, match=message):
        CuteMaxVarDeep(**values)


def test_batches_and_initial_networks_must_fit_the_data():
    P = problem()
    with pytest.raises(ParameterError, match=r"^b: must be at most the number of rows J = 40, not 41"):
        take(AltMaxVarDeep(b=41), P, 0)
    with pytest.raises(ParameterError, match=r"^b: must be at most the number of rows J = 999, not 1000"):
        AltMaxVarDeep().check(J=999)
    with pytest.raises(UserError, match=r"^init: must be a NetStart or a list of 3 models, one per view$"):
        next(AltMaxVarDeep(**TINY).rounds(P, np.random.default_rng(0), init=[{}]))


def test_a_run_without_jax_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    backend.load.cache_clear()
    try:
        with pytest.raises(UserError, match=r'^this part needs jax: pip install "fedrepro\[deep\]"$'):
            take(AltMaxVarDeep(**TINY), problem(), 1)
    finally:
        backend.load.cache_clear()


def test_listing_and_planning_import_no_jax():
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from fedrepro import registry\n"
        "from fedrepro.runs.identity import plan\n"
        "from fedrepro.spec import read\n"
        "assert 'cutemaxvar-deep' in registry.methods()\n"
        "figures = [read.load(Path(f'experiments/gcca/fig{n}.yaml'), 'quick') for n in (10, 11, 12, 13)]\n"
        "runs = plan.make(figures, stand_in=True).runs\n"
        "assert not {'jax', 'optax'} & set(sys.modules)\n"
        "print(len(runs))\n"
    )
    from .conftest import ROOT

    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20
