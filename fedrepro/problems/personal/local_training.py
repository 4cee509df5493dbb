"""The rounds of all methods on the problem ``personal``: FedAvg over shared layers, local training of personal layers.

A round (perfedsi section 2, "Algorithm", and Appendix D; docs/derivations/personal-networks.md#local-training):

    the server draws m clients uniformly without replacement and sends them the shared arrays
    each drawn client   joins them with its own arrays, trains all of them for one local epoch of minibatch SGD,
                        keeps its own and sends the shared ones back
    the server          averages the arrays that it receives

Running statistics of batch norm belong to their layer and are shared or kept with it. Side information z_m is an input
of client m's network and is in no message. In one trial all methods draw the same clients and minibatches.

Source: perfedsi section 2 and Appendix D; docs/derivations/personal-networks.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fedrepro.errors import ParameterError, UserError
from fedrepro.ledger import Ledger
from fedrepro.nets.convnet import Net, layer
from fedrepro.nets.stacked_models import Model, added, copies, keep, stack_length, stacks
from fedrepro.nets.training import SGD, train
from fedrepro.nets.weights import trained
from fedrepro.parameters import Number, OneOf, Whole
from fedrepro.problems.personal.problem import Personal, State, network, train_images
from fedrepro.protocols import Cost, Method, Work
from fedrepro.seeds import Rng, Streams


@dataclass(frozen=True)
class LocalTraining(Method):
    """Parameters of all methods.

    lr : step size. fraction : share of the clients drawn per round. momentum : momentum of the local training, reset
    every round. batch : samples per minibatch. epochs : local epochs per round. weighting : weights of the average over
    the drawn clients: ``uniform`` (the paper's algorithm) or ``samples`` (the paper's objective (2), by number of train
    images).
    """

    lr: Annotated[float, Number(above=0.0)] = 0.05
    fraction: Annotated[float, Number(above=0.0, most=1.0)] = 0.2
    momentum: Annotated[float, Number(least=0.0, most=0.999)] = 0.5
    batch: Annotated[int, Whole()] = 10
    epochs: Annotated[int, Whole()] = 1
    weighting: Annotated[str, OneOf("uniform", "samples")] = "uniform"

    @property
    def sgd(self) -> SGD:
        """The local training."""
        return SGD(self.lr, self.momentum, self.batch, self.epochs)

    def drawn(self, M: int) -> int:
        """Clients of a round out of M."""
        return max(1, round(self.fraction * M))

    def weights(self, problem: Personal, clients: np.ndarray) -> np.ndarray:
        """The weights of ``clients`` in the average; they sum to 1."""
        sizes = problem.sizes[clients] if self.weighting == "samples" else np.ones(len(clients))
        return sizes / sizes.sum()

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """The cost of both passes over the drawn clients' images, and of the step after every minibatch.

        With ``mu``, Ditto trains two models. With ``alternate`` there are two passes. Personal layers are stored once
        per client.
        """
        net, P = network(facts), facts["P"]
        numbers = float(sum(math.prod(shape) for shape in net.shapes.values()))
        m, batches_per_client = (
            max(1, round(params["fraction"] * P)),
            math.ceil(train_images(facts) / P / params["batch"]),
        )
        passes = params["epochs"] * (1 + ("mu" in params) + bool(params.get("alternate")))
        batches = m * batches_per_client * passes
        training = Work(network=batches * (6.0 * net.macs * params["batch"] + 60.0 * numbers), calls=60.0 * batches)
        own = P if "mu" in params or params.get("personal", "none") != "none" else 0
        memory = 3e7 + 4.0 * numbers * (own + 3.0 * min(m, 64)) + facts["images"] * facts["size"] ** 2 * net.channels
        return Cost(Work(calls=2e4), training, memory, ("jax",), Work(programs=9.5))


def own_names(net: Net, personal: str) -> frozenset[str]:
    """The arrays of the layers named in ``personal``, separated by blanks; ``all`` or ``none`` of them.

    Raises ParameterError for a layer that the network does not have.
    """
    if personal in ("all", "none"):
        return frozenset(net.shapes if personal == "all" else ())
    layers = tuple(dict.fromkeys(layer(name) for name in net.shapes))
    for chosen in personal.split():
        if chosen not in layers:
            raise ParameterError("personal", f"'{chosen}' is not a layer of this network (layers: {', '.join(layers)})")
    return frozenset(name for name in net.shapes if layer(name) in personal.split())


def begin(problem: Personal, method: LocalTraining, net: Net, own: frozenset[str], init: Any, rng: Rng) -> State:
    """The state at the initial point: personal arrays start at the same values for all clients.

    ``rng`` is used only if init is None.
    """
    model = problem.start(net, init, rng)
    mine = {name: copies(model.pop(name), problem.M) for name in list(model) if name in own}
    length = stack_length(net, method.drawn(problem.M), problem.dtype)
    return State(net, model, mine, problem.z, method.sgd, length)


Visit = Callable[[np.ndarray, tuple[np.ndarray, np.ndarray]], None]


def run(
    problem: Personal,
    method: LocalTraining,
    state: State,
    sent: Model,
    visit: Visit,
    draws: Streams,
    ledger: Ledger | None,
    clients: Any,
) -> Iterator[State]:
    """Draw clients, count the messages with the arrays ``sent``, train them with ``visit``, and yield the state."""
    ledger = Ledger() if ledger is None else ledger
    m = method.drawn(problem.M)
    replayed = None if clients is None else _replayed(clients, m, problem.M)
    weights = sum(v.size for name, v in sent.items() if trained(name))
    statistics = sum(v.size for name, v in sent.items() if not trained(name))
    yield state
    while True:
        if replayed is not None and state.round >= len(replayed):
            return
        drawn = (
            np.sort(draws.clients.choice(problem.M, m, replace=False)) if replayed is None else replayed[state.round]
        )
        batches = problem.orders(drawn, draws.minibatch, state.sgd)
        for way in (ledger.down, ledger.up):
            for kind, size in (("shared weights", weights), ("shared batch norm statistics", statistics)):
                if size:
                    way(size, kind=kind, clients=m)
        visit(drawn, batches)
        state.round += 1
        yield state


def _replayed(clients: Any, m: int, M: int) -> np.ndarray:
    draws = np.asarray(clients)
    if draws.ndim != 2 or draws.shape[1] != m or draws.dtype.kind not in "iu":
        raise UserError(f"clients: must be integers of shape (rounds, m = {m}), not {draws.dtype} {draws.shape}")
    if draws.size and (draws.min() < 0 or draws.max() >= M):
        raise UserError(f"clients: ids must lie between 0 and {M - 1}")
    if any(len(set(row)) < m for row in draws.tolist()):
        raise UserError("clients: the methods draw without replacement, but a round names a client twice")
    return draws


def average(
    problem: Personal,
    state: State,
    clients: np.ndarray,
    batches: tuple[np.ndarray, np.ndarray],
    weights: np.ndarray,
    frozen: tuple[frozenset[str], ...] = (frozenset(),),
) -> None:
    """One round of FedAvg on the shared arrays; the clients' own arrays are trained with them and are not sent.

    ``frozen`` contains for each local pass the arrays that it does not change.
    """
    total: Model = {}
    place = 0
    for stack, count in stacks(clients, state.length):
        part = slice(place, place + count)
        models, z = state.models(stack), state.z[stack]
        for fixed in frozen:
            own_batches = batches[0][part], batches[1][part]
            models = train(state.net, problem.data, models, z, own_batches, state.sgd, frozen=fixed)
        for name, values in models.items():
            if name in state.own:
                keep(state.own, name, stack, values)
            else:  # perfedsi: theta_{t+1} = mean of theta_{t,m,tau}
                total[name] = added(total.get(name), weights[part], values)
        place += count
    state.shared = {name: v if v.dtype == problem.dtype else v.astype(problem.dtype) for name, v in total.items()}
