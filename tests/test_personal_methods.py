"""The personalised methods: limits in which they are each other, what they send, what they leave alone."""

from __future__ import annotations

import copy
import dataclasses
import importlib.util
import itertools
from typing import Any

import numpy as np
import pytest

from fedrepro import registry
from fedrepro.errors import ParameterError, UserError
from fedrepro.nets import backend, stacked_models
from fedrepro.nets.convnet import Net, layer, logits
from fedrepro.nets.training import train
from fedrepro.nets.weights import trained
from fedrepro.problems.personal.methods.averaging import PersonalAveraging
from fedrepro.problems.personal.methods.ditto import Ditto
from fedrepro.problems.personal.methods.perfedsi import PerFedSIConcat, PerFedSIMask
from fedrepro.problems.personal.problem import Personal, State
from fedrepro.runs.compute import drive
from fedrepro.seeds import streams

from .personal_case import problem

if importlib.util.find_spec("jax") is None:
    pytest.skip('needs JAX: pip install "fedrepro[deep]"', allow_module_level=True)
jax = backend.load()

LOCAL: dict[str, Any] = {"fraction": 1 / 3, "batch": 5, "lr": 0.1}
FEDAVG = PersonalAveraging(**LOCAL)
SCORES = ("accuracy", "loss")


@pytest.fixture(scope="module")
def clients() -> Personal:
    return problem()


def final(method: Any, case: Personal, rounds: int = 3, *, drawn: Any = None, init: Any = None) -> State:
    """The last state after some rounds; ``drawn`` are the clients of each."""
    return drive.run(method, case, rounds, metrics=(), clients=drawn, init=init).state


def numbers(net: Net, keep: Any = lambda name: True) -> tuple[int, int]:
    """Trained numbers and running statistics in the arrays that ``keep`` accepts."""
    sizes = {name: int(np.prod(shape)) for name, shape in net.shapes.items() if keep(name)}
    return sum(v for k, v in sizes.items() if trained(k)), sum(v for k, v in sizes.items() if not trained(k))


# -- limits ------------------------------------------------------------------------------------------------------------


def test_sharing_nothing_by_name_is_local(clients: Personal) -> None:
    layers = " ".join(dict.fromkeys(layer(name) for name in clients.plain.shapes))
    named, local = (final(PersonalAveraging(**LOCAL, personal=p), clients) for p in (layers, "all"))
    assert not named.shared
    for name, values in named.own.items():
        assert values.tobytes() == local.own[name].tobytes()


def test_local_clients_train_alone(clients: Personal) -> None:
    """With the same draws a client's model does not depend on who else is there; clients never drawn do not move."""
    drawn = [[0, 1], [1, 2], [0, 5]]
    state = final(PersonalAveraging(**LOCAL, personal="all"), clients, drawn=drawn)
    start = final(PersonalAveraging(**LOCAL, personal="all"), clients, rounds=0)
    for m in range(6):
        moved = any((state.own[name][m] != start.own[name][m]).any() for name in state.own)
        assert moved == (m in (0, 1, 2, 5))


def test_a_round_of_fedavg_is_the_mean_of_local_models(clients: Personal) -> None:
    drawn = [[1, 4]]
    shared = final(FEDAVG, clients, rounds=1, drawn=drawn).shared
    own = final(PersonalAveraging(**LOCAL, personal="all"), clients, rounds=1, drawn=drawn).own
    for name, values in shared.items():
        np.testing.assert_allclose(values, own[name][[1, 4]].mean(0), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("weighting", ["uniform", "samples"])
def test_weights_of_drawn_clients_sum_to_one_in_the_proportions_asked_for(clients: Personal, weighting: str) -> None:
    case = copy.copy(clients)
    case.sizes = np.array([3, 1, 7, 2, 5, 4])
    for drawn in itertools.chain.from_iterable(itertools.combinations(range(6), m) for m in range(1, 7)):
        weights = PersonalAveraging(weighting=weighting).weights(case, np.array(drawn))
        amounts = [case.sizes[m] if weighting == "samples" else 1 for m in drawn]
        np.testing.assert_allclose(weights, np.array(amounts) / sum(amounts), rtol=1e-15)


def test_where_no_client_moves_the_shared_weights_stay(clients: Personal) -> None:
    """As with any other method whose server averages (``test_contracts``); 2 of 6 clients train in one round."""
    for weighting in ("uniform", "samples"):
        method = PersonalAveraging(**LOCAL | {"lr": 1e-30}, weighting=weighting)
        start, state = (final(method, clients, rounds, init=clients.initial(1)) for rounds in (0, 2))
        for name in filter(trained, state.shared):
            np.testing.assert_allclose(state.shared[name], start.shared[name], rtol=1e-6, atol=1e-25)


def test_weights_by_samples_are_used(clients: Personal) -> None:
    uneven = problem()
    uneven.train_rows = [rows[: 8 - 2 * (m % 2)] for m, rows in enumerate(clients.train_rows)]
    uneven.sizes = np.array([len(rows) for rows in uneven.train_rows])
    drawn = [[1, 4]]
    own = final(PersonalAveraging(**LOCAL, personal="all"), uneven, rounds=1, drawn=drawn).own
    weighted = final(PersonalAveraging(**LOCAL, weighting="samples"), uneven, rounds=1, drawn=drawn).shared
    for name, values in weighted.items():
        expected = (6 * own[name][1].astype(float) + 8 * own[name][4]) / 14
        np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kept", ["head", "block1 block2"])
def test_personal_layers_stay_and_the_rest_is_averaged(clients: Personal, kept: str) -> None:
    method = PersonalAveraging(**LOCAL, personal=kept)
    state = final(method, clients, rounds=1, drawn=[[1, 4]])
    local = final(PersonalAveraging(**LOCAL, personal="all"), clients, rounds=1, drawn=[[1, 4]]).own
    assert {layer(name) for name in state.own} == set(kept.split())
    for name in clients.plain.shapes:
        if name in state.own:
            np.testing.assert_array_equal(state.own[name], local[name])
        else:
            np.testing.assert_allclose(state.shared[name], local[name][[1, 4]].mean(0), rtol=1e-6, atol=1e-7)


def test_alternating_trains_the_head_then_the_body(clients: Personal) -> None:
    drawn = [[1, 4]]
    both = final(PersonalAveraging(**LOCAL, personal="head", alternate=True), clients, rounds=1, drawn=drawn)
    start = final(PersonalAveraging(**LOCAL, personal="head"), clients, rounds=0)
    together = final(PersonalAveraging(**LOCAL, personal="head"), clients, rounds=1, drawn=drawn)
    assert (both.own["head.kernel"][1] != together.own["head.kernel"][1]).any()
    assert (both.own["head.kernel"][0] == start.own["head.kernel"][0]).all()
    head = {name for name in clients.plain.shapes if layer(name) == "head"}
    body, case = frozenset(set(clients.plain.shapes) - head), np.array(drawn[0])
    batches = clients.orders(case, streams(drive.randomness("personal", 1)).minibatch, FEDAVG.sgd)
    models, z = start.models(case), clients.z[case]
    for fixed in (body, frozenset(head)):
        models = train(clients.plain, clients.data, models, z, batches, FEDAVG.sgd, frozen=fixed)
    for name, values in models.items():
        if name in head:
            np.testing.assert_allclose(both.own[name][case], values, rtol=1e-6, atol=1e-7)
        else:
            np.testing.assert_allclose(both.shared[name], values.mean(0), rtol=1e-6, atol=1e-7)


def test_ditto_without_pull_is_local_and_its_server_is_fedavg(clients: Personal) -> None:
    ditto = final(Ditto(**LOCAL, mu=0.0), clients)
    local = final(PersonalAveraging(**LOCAL, personal="all"), clients)
    fedavg = final(FEDAVG, clients)
    assert ditto.anchor is not None
    for name, values in ditto.own.items():
        np.testing.assert_array_equal(values, local.own[name])
        np.testing.assert_array_equal(ditto.anchor[name], fedavg.shared[name])


def test_a_strong_pull_keeps_ditto_at_the_global_model(clients: Personal) -> None:
    distances = []
    for mu in (0.0, 20.0, 200.0):  # lr mu = 1 at the end: without momentum a step lands on the global model
        ditto = Ditto(fraction=1 / 3, batch=5, lr=0.005, momentum=0.0, mu=mu)
        states = drive.run(ditto, clients, 8, metrics=(), keep=True).states
        assert states is not None
        received, state = states[-2].anchor, states[-1]
        moved = [m for m in range(6) if (state.own["head.bias"][m] != states[-2].own["head.bias"][m]).any()]
        assert len(moved) == 2
        gaps = [state.own[k][moved] - received[k] for k in received if trained(k)]
        distances.append(np.sqrt(sum(float(np.square(gap).sum()) for gap in gaps)))
    assert distances[0] > distances[1] > distances[2]
    assert distances[2] < 0.25 * distances[0]


def test_ditto_is_pulled_to_the_model_it_received(clients: Personal) -> None:
    """Not to the one that the server makes of the same round."""
    method, drawn = Ditto(**LOCAL, mu=5.0), [[1, 4], [3, 4]]
    states = drive.run(method, clients, 2, metrics=(), clients=drawn, keep=True).states
    minibatch = streams(drive.randomness("personal", 1)).minibatch
    assert states is not None
    for (before, after), case in zip(itertools.pairwise(states), np.array(drawn), strict=True):
        batches = clients.orders(case, minibatch, method.sgd)
        sgd = dataclasses.replace(method.sgd, mu=5.0)
        models, z = before.models(case), clients.z[case]
        expected = train(clients.plain, clients.data, models, z, batches, sgd, anchor=before.anchor)
        for name, values in expected.items():
            np.testing.assert_allclose(after.own[name][case], values, rtol=1e-5, atol=1e-6)


def test_a_mask_of_ones_is_fedavg(clients: Personal) -> None:
    ones, fedavg = final(PerFedSIMask(**LOCAL, mask="ones"), clients), final(FEDAVG, clients)
    for name, values in fedavg.shared.items():
        np.testing.assert_allclose(ones.shared[name], values, rtol=1e-4, atol=1e-6)


def test_side_weights_of_zero_are_fedavg(clients: Personal) -> None:
    """Remark 2.2: with all of W_2 zero nothing comes through the side path, forwards or backwards."""
    plain = final(FEDAVG, clients, rounds=0).shared
    net = PerFedSIConcat(**LOCAL).net(clients)
    init = {name: plain.get(name, np.zeros(shape)) for name, shape in net.shapes.items()}
    concat, fedavg = final(PerFedSIConcat(**LOCAL), clients, init=init), final(FEDAVG, clients)
    for name, values in fedavg.shared.items():
        np.testing.assert_allclose(concat.shared[name], values, rtol=1e-4, atol=1e-6)
    for name in set(net.shapes) - set(plain) - {"side.block.var"}:
        assert not concat.shared[name].any(), name


def test_side_information_is_used(clients: Personal) -> None:
    other = problem()
    other.z = other.z[::-1].copy()
    states = [final(PerFedSIConcat(**LOCAL), own_clients, rounds=1) for own_clients in (clients, other)]
    assert (states[0].shared["head.kernel"] != states[1].shared["head.kernel"]).any()
    drawn = [[2, 4]]  # the first and the second of a round, the third and the fifth of all
    state = final(PerFedSIConcat(**LOCAL), clients, rounds=1, drawn=drawn)
    lost = clients.scores(state)[1]
    for m in range(6):
        other.z = clients.z.copy()
        other.z[m] += 1.0
        moved = final(PerFedSIConcat(**LOCAL), other, rounds=1, drawn=drawn)
        assert (moved.shared["head.kernel"] != state.shared["head.kernel"]).any() == (m in drawn[0])
        moved = dataclasses.replace(state, z=other.z)
        np.testing.assert_array_equal(clients.scores(moved)[1] != lost, np.arange(6) == m)
    bare = problem()
    bare.z = np.zeros((6, 0))
    with pytest.raises(ParameterError, match=r"^side: must not be none for PerFedSI"):
        final(PerFedSIConcat(**LOCAL), bare)


def test_readings_of_the_mask_have_their_shapes(clients: Personal) -> None:
    nets = {
        "K1": PerFedSIMask().net(clients),
        "K2": PerFedSIMask(mask="learned").net(clients),
        "K3": PerFedSIMask(mask="random").net(clients),
        "K4": PerFedSIMask(widen=True).net(clients),
    }
    assert nets["K1"].shapes == clients.plain.shapes
    for name in ("K2", "K3"):
        assert nets[name].shapes == {**clients.plain.shapes, "mask.kernel": (4, 8)}
    assert nets["K4"].widths == (8, 8, 32, 8)
    start = clients.start(nets["K2"], clients.initial(0), np.random.default_rng())
    assert (start["mask.kernel"] == 1).all()
    assert clients.start(nets["K3"], clients.initial(0), np.random.default_rng())["mask.kernel"].std() > 0.1


# -- messages ----------------------------------------------------------------------------------------------------------

SENT: list[tuple[Any, Any]] = [
    (FEDAVG, lambda name: True),
    (PersonalAveraging(**LOCAL, personal="head"), lambda name: layer(name) != "head"),
    (PersonalAveraging(**LOCAL, personal="block1 block2"), lambda name: layer(name) not in ("block1", "block2")),
    (PersonalAveraging(**LOCAL, personal="all"), lambda name: False),
    (Ditto(**LOCAL), lambda name: True),
    (PerFedSIConcat(**LOCAL), lambda name: True),
    (PerFedSIMask(**LOCAL, mask="learned"), lambda name: True),
]


@pytest.mark.parametrize(("method", "keep"), SENT, ids=[type(m).__name__ + str(i) for i, (m, _) in enumerate(SENT)])
def test_messages_hold_the_shared_layers_and_nothing_else(
    clients: Personal, method: Any, keep: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kinds and sizes: side information (4 numbers per client) has no room in them."""
    monkeypatch.setattr("fedrepro.problems.personal.local_training.train", lambda net, data, models, *_, **__: models)
    monkeypatch.setattr("fedrepro.problems.personal.methods.ditto.train", lambda net, data, models, *_, **__: models)
    monkeypatch.setattr(Personal, "data", None)
    net = method.net(clients) if hasattr(method, "net") else clients.plain
    history = drive.run(method, clients, 3, metrics=())
    expected: dict[str, int] = {}
    for kind, size in zip(("shared weights", "shared batch norm statistics"), numbers(net, keep), strict=True):
        if size:
            expected |= {f"downlink:{kind}": 3 * 2 * size, f"uplink:{kind}": 3 * 2 * size}
    assert history.ledger.by_kind == expected
    assert history.ledger.setup_scalars == 0


def test_the_mask_s_weights_are_all_that_perfedsi_sends_beyond_fedavg(clients: Personal) -> None:
    plain, _ = numbers(clients.plain)
    assert numbers(PerFedSIMask(mask="learned").net(clients))[0] == plain + 4 * 8
    assert numbers(PerFedSIMask().net(clients))[0] == plain
    linear, block, head = (4 + 1) * 2 * 2 * 8, 9 * 8 * 8 + 2 * 8, 8 * 8
    assert numbers(PerFedSIConcat().net(clients))[0] == plain + linear + block + head


# -- the layout of an accelerator --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [PersonalAveraging(personal="head"), Ditto()], ids=["SR-PH", "Ditto"])
def test_clients_in_parallel_give_the_same_numbers(method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In double precision, with models in the memory of the device, in two stacks of two clients."""
    method = dataclasses.replace(method, **{**LOCAL, "fraction": 2 / 3})
    names = ("train_accuracy", "accuracy_tuned", "loss")
    case = problem(precision="double")
    expected = drive.run(method, case, 3, metrics=names)
    monkeypatch.setattr(backend, "clients_in_parallel", lambda: True)
    monkeypatch.setattr(stacked_models, "STACK_BYTES", 3 * 8 * sum(numbers(expected.state.net)))
    found = drive.run(method, case, 3, metrics=names)
    assert found.state.length == 2
    for name in names:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, err_msg=name)
    for one, other in ((found.state.shared, expected.state.shared), (found.state.own, expected.state.own)):
        assert one.keys() == other.keys()
        for name, values in one.items():
            assert isinstance(values, jax.Array)
            assert values.dtype == np.float64
            np.testing.assert_allclose(values, other[name], rtol=1e-7, atol=1e-10, err_msg=name)


# -- metrics, repetition, errors ---------------------------------------------------------------------------------------


def test_a_run_is_repeated_exactly_and_methods_draw_the_same(clients: Personal) -> None:
    runs = [drive.run(FEDAVG, clients, 2, trial=3, metrics=SCORES) for _ in range(2)]
    assert runs[0]["loss"].tobytes() == runs[1]["loss"].tobytes()
    assert runs[0]["loss"].tobytes() != drive.run(FEDAVG, clients, 2, trial=4, metrics=SCORES)["loss"].tobytes()
    moved = []
    for method in (PersonalAveraging(**LOCAL, personal="all"), Ditto(**LOCAL)):
        before, after = (final(method, clients, rounds=r).own["head.bias"] for r in (0, 1))
        moved.append(np.flatnonzero((before != after).any(axis=1)).tolist())
    assert moved[0] == moved[1]
    assert len(moved[0]) == 2


def test_fedavg_learns(clients: Personal) -> None:
    history = drive.run(FEDAVG, clients, 60, metrics=("accuracy", "train_accuracy", "loss"), record_every=60)
    assert history["accuracy"][0] < 0.3
    assert history["accuracy"][-1] > 0.6
    assert history["train_accuracy"][-1] == 1.0
    assert history["loss"][-1] < 0.7 * history["loss"][0]


def test_measuring_changes_nothing(clients: Personal) -> None:
    watched = drive.run(FEDAVG, clients, 5, metrics=("accuracy", "train_accuracy", "accuracy_tuned", "loss"))
    for name, values in final(FEDAVG, clients, rounds=5).shared.items():
        np.testing.assert_array_equal(values, watched.state.shared[name])


def test_accuracy_is_the_mean_over_clients_of_their_models(clients: Personal) -> None:
    state = final(PersonalAveraging(**LOCAL, personal="head"), clients)
    per_client = clients.artifacts(state, ("client_accuracy",))["client_accuracy"]
    assert clients.measure(state, ("accuracy",))["accuracy"] == per_client.mean()
    for m in (0, 5):  # each client's own model, by itself
        alone = dataclasses.replace(
            state,
            own={k: np.repeat(v[m : m + 1], 6, axis=0) for k, v in state.own.items()},
            z=np.repeat(state.z[m : m + 1], 6, axis=0),
        )
        assert clients.scores(alone)[0][m] == per_client[m]
    right, lost = np.transpose([of_images(clients, state, m, clients.test_rows[m]) for m in range(6)])
    np.testing.assert_allclose(per_client, right)
    assert clients.measure(state, ("loss",))["loss"] == pytest.approx(lost.mean(), rel=1e-5)
    on_train, its_loss = np.transpose([of_images(clients, state, m, clients.train_rows[m]) for m in range(6)])
    assert clients.measure(state, ("train_accuracy",))["train_accuracy"] == pytest.approx(on_train.mean())
    assert on_train.mean() != per_client.mean()
    assert its_loss.mean() != pytest.approx(lost.mean(), rel=1e-4)


def of_images(case: Personal, state: State, m: int, rows: np.ndarray) -> tuple[float, float]:
    """Accuracy and mean cross-entropy of client m's model on some images, read off its scores."""
    model = {name: values[0] for name, values in state.models(np.array([m])).items()}
    scores = np.asarray(logits(state.net, model, case.pixels[rows] / np.float32(255), state.z[m], False)[0], float)
    labels = case.labels[rows]
    entropy = np.log(np.exp(scores).sum(1)) - scores[np.arange(len(rows)), labels]
    return float(np.mean(scores.argmax(1) == labels)), float(entropy.mean())


def test_a_model_that_blows_up_counts_as_diverged(clients: Personal) -> None:
    history = drive.run(dataclasses.replace(FEDAVG, lr=1e30), clients, 2, metrics=SCORES)
    assert np.isnan(history["accuracy"][-1])
    reason = Personal.diverged({"accuracy": history["accuracy"]})
    assert reason is not None
    assert reason.startswith("accuracy is not finite at record ")
    assert Personal.diverged({"accuracy": history["accuracy"][:1]}) is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PersonalAveraging(lr=0.0), "lr: must be a number greater than 0, not 0.0"),
        (lambda: PersonalAveraging(fraction=1.5), "fraction: must be a number greater than 0 and at most 1, not 1.5"),
        (lambda: PersonalAveraging(weighting="n"), "weighting: must be one of uniform, samples, not 'n'"),
        (
            lambda: PersonalAveraging(personal="tail"),
            "personal: 'tail' is not a layer of this network (layers: block1, block2, block3, block4, head)",
        ),
        (lambda: PersonalAveraging(personal=""), "personal: must be 'none', 'all' or names of layers, not ''"),
        (lambda: Ditto(mu=-1.0), "mu: must be a number of at least 0, not -1.0"),
        (lambda: PerFedSIConcat(side_norm="off"), "side_norm: must be one of running, own, none, not 'off'"),
        (lambda: PerFedSIMask(mask="K1"), "mask: must be one of block, learned, random, ones, not 'K1'"),
    ],
)
def test_parameters_that_cannot_work_say_why(call: Any, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("drawn", "message"),
    [
        ([[0, 1, 2]], r"^clients: must be integers of shape \(rounds, m = 2\), not int64 \(1, 3\)$"),
        ([[0, 6]], r"^clients: ids must lie between 0 and 5$"),
        ([[3, 3]], r"^clients: the methods draw without replacement, but a round names a client twice$"),
    ],
)
def test_given_clients_must_fit(clients: Personal, drawn: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        final(FEDAVG, clients, rounds=1, drawn=drawn)


def test_every_name_of_the_paper_is_there() -> None:
    names = {"perfedsi", "perfedsi-mask", "personal-fedavg", "sr-ph", "pr-sh", "local", "ditto"}
    assert names == {name for name, entry in registry.methods().items() if entry.problem == "personal"}
    assert registry.methods()["pr-sh"].make().personal == "block1 block2"


def test_room_for_rows_changes_nothing_but_rounding(clients: Personal) -> None:
    tight = problem()
    tight.most_train = int(tight.sizes.max())
    tight.most_test = max(len(rows) for rows in tight.test_rows)
    assert clients.most_train == clients.most_test == 1024 > tight.most_train
    roomy, close = (drive.run(FEDAVG, case, 2, metrics=SCORES) for case in (clients, tight))
    assert roomy["loss"] == pytest.approx(close["loss"], rel=1e-5)  # single precision; a row too many would be 1/4
    for name, values in roomy.state.shared.items():
        assert np.allclose(values, close.state.shared[name], rtol=1e-4, atol=1e-5)
