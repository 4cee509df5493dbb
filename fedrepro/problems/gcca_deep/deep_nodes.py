r"""Deep nodes of federated GCCA, and the code shared by CuteMaxVar-Deep and AltMaxVar-Deep.

.. math::  \min_{\theta_1, \dots, \theta_I,\ G}\ \sum_{i=1}^I \tfrac12 \|\mathcal{Q}(X_i; \theta_i) - G\|_F^2
           \quad\text{subject to}\quad G^\top G = I_K,\ 1^\top G = 0

Q(X_i; theta_i) is the output of a network divided by s: (J, K). A node trains its own network on its own view.

Source: Shrestha and Fu, eq. (4), (5), (7), (11), Sec. III-C.3 and V-B; discrepancy gcca.11, discrepancy gcca.12,
discrepancy gcca.29.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fedrepro.errors import ParameterError, UserError
from fedrepro.ledger import Ledger
from fedrepro.multiview import federated
from fedrepro.nets import backend, mlp
from fedrepro.nets.mlp import Mlp, Model
from fedrepro.nets.weights import given, trained
from fedrepro.parameters import Number, OneOf, Whole, whole
from fedrepro.problems.gcca_deep.problem import DeepGCCA, NetStart
from fedrepro.protocols import Cost, Method, Work
from fedrepro.seeds import Rng, streams


@dataclass(frozen=True)
class DeepParameters(Method):
    """The parameters of both deep methods.

    The defaults of hidden, T, b, optimizer and lr are those of the 2-D example (Sec. V-B.2), those of inner_unit and
    center are its program's, and ``target_scale: rows`` is ours (discrepancy gcca.29). The paper mentions batch norm
    for the network of Sec. V-B.4 only.

    hidden : widths of the hidden layers, first to last, at least 1 each.
    T : epochs or steps per node and round. inner_unit : the unit of T: ``epoch`` or ``step``. The paper says 10
        iterations; its program for the example runs 10 epochs, the one for EHR 10 steps (discrepancy gcca.12).
    b : rows per minibatch, 1 .. J; None for all. A step draws rows without replacement; an epoch uses all rows, and the
        first rows fill up its last batch.
    shuffle : whether every epoch uses a new random order of the rows, instead of the data's order as in the released
        program.
    lr : step size of the optimizer. optimizer : ``adam``, whose state persists over rounds, or ``sgd`` without
        momentum.
    loss : ``squared``, 1/(2b) ||Net(X_F) - s G_F||_F^2, the paper's up to a factor; ``norm``, 1/(2b) ||.||_F, a node's
        part of the released program's, which takes the root of the sum over all nodes. That multiplies the gradients
        of a node by a factor that changes with all nodes, which a node cannot know, and which Adam cancels as far as it
        is constant.
    target_scale : ``rows`` for s = sqrt(J), so that the targets of a network have entries of size 1 instead of
        1/sqrt(J); ``none`` for s = 1. Nothing else in the method depends on s.
    batch_norm : whether the network has batch norm. bias : whether its layers have biases. double : whether it computes
        in float64, as in the released program.
    rho : 1 / alpha_G, the weight of the proximal term; 0 for none (discrepancy gcca.3).
    center : ``estimate``, both ends subtract the column means of Mhat_i (the released program); ``sum``, the centring
        matrix of (15); ``none``.
    """

    hidden: Sequence[int] = (128, 64)
    T: Annotated[int, Whole()] = 10
    inner_unit: Annotated[str, OneOf("epoch", "step")] = "epoch"
    b: Annotated[int | None, Whole()] = 1000
    shuffle: bool = False
    lr: Annotated[float, Number(above=0.0)] = 1e-3
    optimizer: Annotated[str, OneOf("adam", "sgd")] = "adam"
    loss: Annotated[str, OneOf("squared", "norm")] = "squared"
    target_scale: Annotated[str, OneOf("rows", "none")] = "rows"
    batch_norm: bool = True
    bias: bool = True
    double: bool = True
    rho: Annotated[float, Number(least=0.0)] = 0.0
    center: Annotated[str, federated.CENTERINGS] = "estimate"

    def __post_init__(self) -> None:
        """Raise ParameterError where a value cannot work."""
        super().__post_init__()
        if isinstance(self.hidden, str) or not isinstance(self.hidden, Sequence):
            raise ParameterError(
                "hidden", f"must be a list of widths (in a curve, a list of it: [[128, 64]]), not {self.hidden!r}"
            )
        for width in self.hidden:
            whole("hidden", width)
        object.__setattr__(self, "hidden", tuple(int(width) for width in self.hidden))

    def check(self, *, J: int | None = None, **_: Any) -> None:
        """Raise ParameterError where the parameters cannot work for J rows."""
        if J is not None:
            federated.batch_within(self.b, J)

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """Both passes of every step, one forward pass of all rows, and the messages; two programs to compile."""
        J, N, K, views = facts["J"], facts["N"], facts["K"], facts["I"]
        net = Mlp(N, tuple(params["hidden"]), K)
        batch = J if params["b"] is None else params["b"]
        steps = params["T"] * (math.ceil(J / batch) if params["inner_unit"] == "epoch" else 1)
        width = 2.0 if params["double"] else 1.0
        passes = Work(network=width * (6.0 * batch * net.macs + 40.0 * batch * sum(net.hidden) + 30.0 * net.macs))
        forward = Work(network=width * J * (2.0 * net.macs + 10.0 * sum(net.hidden)), calls=300.0)
        memory = 1.1e8 + 8.0 * views * (J * (10.0 * K + 2.0 * N) + 6.0 * net.macs)
        memory += 16.0 * batch * (N + 4.0 * sum(net.hidden))
        round_ = views * (steps * passes + forward) + federated.exchanging(params, facts)
        libraries = ("jax", "numba") if federated.compresses(params) else ("jax",)
        return Cost(Work(calls=1e4), round_, memory, libraries, Work(programs=2.0))


class DeepNode:
    """A node with a view X (J, N) and a network: T epochs or steps on its loss per round, eq. (11)."""

    def __init__(self, X: np.ndarray, model: Model, rng: Rng, method: DeepParameters) -> None:
        self.method = method
        self.J = len(X)
        self.s = math.sqrt(self.J) if method.target_scale == "rows" else 1.0
        self._rng = rng
        self._model = model
        self._dtype = np.float64 if method.double else np.float32
        self._train = _trainer(method.loss, method.optimizer)
        with mlp.computing(method.double):
            self._X = backend.load().numpy.asarray(np.asarray(X, self._dtype))
            self._optimizer = _optimizer(method.optimizer).init({k: v for k, v in model.items() if trained(k)})

    def represent(self) -> np.ndarray:
        """M = Net(X) / s for all rows, with running statistics."""
        return mlp.predict(self._model, self._X) / self.s

    def parameters(self) -> Model:
        """The network's arrays with statistics; later updates do not change them."""
        return self._model

    def update(self, G: np.ndarray) -> None:
        """Train on the target s G."""
        with mlp.computing(self.method.double):
            target = np.asarray(self.s * G, self._dtype)
            after, self._optimizer = self._train(
                self._model, self._optimizer, self._X, target, self._batches(), self._dtype(self.method.lr)
            )
            self._model = {name: np.asarray(values) for name, values in after.items()}

    def _batches(self) -> np.ndarray:
        """(steps, b) rows of each step of a round."""
        T, J, b = self.method.T, self.J, self.method.b
        b = J if b is None else b
        if self.method.inner_unit == "step" and b < J:
            return np.stack([self._rng.permutation(J)[:b] for _ in range(T)]).astype(np.int32)
        size = math.ceil(J / b)
        orders = (self._rng.permutation(J) if self.method.shuffle else np.arange(J) for _ in range(T))
        return np.concatenate([np.resize(order, (size, b)) for order in orders]).astype(np.int32)


def objective(loss: str, model: Mapping[str, Any], x: Any, target: Any) -> tuple[Any, dict[str, Any]]:
    """A minibatch's loss, batch norm in training, and new running statistics; traced by JAX."""
    out, statistics = mlp.forward(model, x, True)
    total = ((out - target) ** 2).sum()
    if loss == "norm":
        jnp = backend.load().numpy
        total = jnp.sqrt(jnp.maximum(total, jnp.finfo(total.dtype).tiny))
    return total / (2 * len(x)), statistics


@functools.cache
def _optimizer(name: str) -> Any:
    """The direction of a step; Adam with its usual decays 0.9 and 0.999 and eps 1e-8."""
    backend.load()
    import optax

    return optax.scale_by_adam() if name == "adam" else optax.identity()


@functools.cache
def _trainer(loss: str, optimizer: str) -> Any:
    """All steps of a round as one compiled loop, which nodes with views of the same shape share."""
    jax = backend.load()
    direction = _optimizer(optimizer)

    def train(model: Any, state: Any, X: Any, target: Any, batches: Any, lr: Any) -> Any:
        def step(now: Any, rows: Any) -> Any:
            weights, statistics, state = now

            def of(weights: Any) -> Any:
                return objective(loss, {**weights, **statistics}, X[rows], target[rows])

            g, statistics = jax.grad(of, has_aux=True)(weights)
            d, state = direction.update(g, state)
            return ({k: weights[k] - lr * d[k] for k in weights}, statistics, state), None

        start = (
            {k: v for k, v in model.items() if trained(k)},
            {k: v for k, v in model.items() if not trained(k)},
            state,
        )
        (weights, statistics, state), _ = jax.lax.scan(step, start, batches)
        return {**weights, **statistics}, state

    return jax.jit(train)


def rounds(
    method: DeepParameters,
    sending: federated.Sending,
    problem: DeepGCCA,
    rng: Rng,
    ledger: Ledger | None,
    init: Any,
) -> Iterator[federated.State]:
    """Run a deep method on a problem; see ``federated_rounds``. Raises UserError if JAX is not installed."""
    backend.load()
    federated.batch_within(method.b, problem.J)
    ledger = Ledger() if ledger is None else ledger
    drawn = streams(rng)
    models = starting_models(method, problem, drawn.other, init)

    def node(X: np.ndarray, model: Model, stream: Rng) -> DeepNode:
        return DeepNode(X, model, stream, method)

    nodes = ledger.clock.each(node, problem.views, models, drawn.minibatch.spawn(problem.I))
    return federated.federated_rounds(
        nodes, sending, rng=drawn.compressor, ledger=ledger, rho=method.rho, center=method.center
    )


def starting_models(method: DeepParameters, problem: DeepGCCA, rng: Rng, init: Any) -> list[Model]:
    """theta_i^(0): random (``NetStart``), or explicit, one mapping from names to arrays per view."""
    dtype = np.float64 if method.double else np.float32
    nets = [Mlp(N, tuple(method.hidden), problem.K, method.batch_norm, method.bias) for N in problem.N]
    if init is None or isinstance(init, NetStart):
        start = NetStart(int(rng.integers(2**62))) if init is None else init
        return [mlp.initial(net, functools.partial(start.uniform, i), dtype) for i, net in enumerate(nets)]
    if not isinstance(init, Sequence) or len(init) != problem.I:
        raise UserError(f"init: must be a NetStart or a list of {problem.I} models, one per view")
    return [given(net, model, dtype) for net, model in zip(nets, init, strict=True)]
