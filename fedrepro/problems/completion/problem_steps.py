r"""Matrix completion that also measures the steps of a round: the four sequences of fedmc Theorem 4.7 (a).

The problem is that of ``fedrepro.problems.completion``. Theorem 4.7 (a) promises that four sequences have finite sums:
the squared lengths of all inner steps on U and on W, :math:`\|V^k - V^{k-1}\|^2`, and :math:`\sum_i \|W_i^k - V^k\|^2`.
The last one is measured at the state itself. The other three are those of the next round with all clients, which is
computed at a copy of the state; if all clients take part in every round, it is the round that follows.

Source: fedmc (12) to (16), Theorem 4.7 (a).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from fedrepro.parameters import Range, Whole
from fedrepro.problems.completion import problem as completion
from fedrepro.problems.completion import stationarity
from fedrepro.problems.completion.problem import Completion
from fedrepro.problems.completion.state import State
from fedrepro.protocols import Cost, Metric, Work, by_name
from fedrepro.registry import add_problem

STEPS = by_name(
    Metric("apart", "Σ ‖W_i − V‖²", "lower", "squared distances between the clients' copies and V, summed"),
    Metric("moves_u", "Σ ‖U steps‖²", "lower", "squared lengths of the U steps of the next round with all clients"),
    Metric("moves_w", "Σ ‖W steps‖²", "lower", "squared lengths of the W steps of the next round with all clients"),
    Metric("moves_v", "‖V step‖²", "lower", "squared change of V in the next round with all clients"),
)
ARTIFACTS = completion.ARTIFACTS
METRICS = {**completion.METRICS, **STEPS}
PARAMETERS = {**completion.PARAMETERS, "inner": 10}


class StepCompletion(Completion):
    """The completion problem in memory, with the measures of steps. They need FedMC-ADMM, with the W steps (15).

    The parameters are those of ``Completion``, and

    inner : steps N of a client on U and on W in a round, those of the method.

    Example:
    >>> import numpy as np
    >>> from fedrepro import FedMCADMM, Ratings, run
    >>> from fedrepro.problems.completion.problem_steps import StepCompletion
    >>> user, item = np.divmod(np.arange(96), 8)
    >>> data = Ratings(user, item, 1.0 + (user + item) % 5, users=12, items=8)
    >>> problem = StepCompletion(data, np.arange(12) % 3, r=2, init=0.5, inner=5)
    >>> history = run(FedMCADMM(m=3, N=5), problem, rounds=50, metrics=["apart"])
    >>> bool(history["apart"][-1] < history["apart"][1])
    True
    """

    name = "completion-steps"
    metrics = METRICS
    parameters = PARAMETERS
    ranges: ClassVar[Mapping[str, Range]] = {**Completion.ranges, "inner": Whole()}
    probes: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # the methods are measured on completion

    def __init__(self, data: Any, client: Any = None, *, inner: int = 10, **more: Any) -> None:
        StepCompletion.check({"inner": inner}, {})
        super().__init__(data, client, **more)
        self.inner = inner

    @classmethod
    def stored(cls, folder: Any, parameters: Mapping[str, Any], threads: int | None = None) -> StepCompletion:
        """The problem in a folder written by ``prepare``."""
        StepCompletion.check(parameters, {})
        own = {name: value for name, value in parameters.items() if name != "inner"}
        problem = super().stored(folder, own, threads)
        assert isinstance(problem, StepCompletion)
        problem.inner = parameters.get("inner", PARAMETERS["inner"])
        return problem

    @staticmethod
    def measuring(names: Sequence[str], facts: Mapping[str, Any]) -> Cost:
        """The cost of the other metrics, and of one round of all clients if its steps are measured."""
        cost = Completion.measuring([name for name in names if name not in STEPS], facts)
        if not set(names) & set(STEPS):
            return cost
        r, P, ratings = facts["r"], facts["P"], facts["train"] * facts["ratings"]
        steps = Work(singles=2.0 * PARAMETERS["inner"] * ratings * r + 8.0 * P * facts["items"] * r, calls=400.0 * P)
        return Cost(cost.start, cost.round + steps, cost.holds, cost.libraries)

    def measure(self, state: State, names: Sequence[str]) -> dict[str, float]:
        """The value of each named metric at a state.

        NaN if the state is not finite, or has no local copies, as with other methods.
        """
        found = super().measure(state, [name for name in names if name not in STEPS])
        if set(names) & set(STEPS):
            with np.errstate(over="ignore", invalid="ignore"):
                found |= self._steps(state)
        return {name: found[name] for name in names}

    def _steps(self, state: State) -> dict[str, float]:
        W, Y, beta = state.W, state.Y, state.beta
        if W is None or Y is None or beta is None:
            return dict.fromkeys(STEPS, float("nan"))
        moved, total = np.zeros(2), np.zeros_like(state.V)
        for i in range(self.p):
            U, own = state.U[self.client(i)].copy(), W[i].copy()
            moved += self._client_steps(i, U, own, beta * state.V - Y[i], beta)
            total += own + (Y[i] + beta * (own - state.V)) / beta  # (13)
        V = self._server(total, beta)
        lengths = (float(np.sum((W - state.V) ** 2)), *map(float, moved), float(np.sum((V - state.V) ** 2)))
        return dict(zip(STEPS, lengths, strict=True))

    def _client_steps(self, i: int, U: np.ndarray, W: np.ndarray, pull: np.ndarray, beta: float) -> np.ndarray:
        """Take the steps (14) and (15) of client i in place; return the sums of their squared lengths."""
        from fedrepro.problems.completion.kernels import gram, steps

        moved = np.zeros(2)
        for _ in range(self.inner):
            stepped = stationarity.stepped(self, i, U, W)
            moved[0] += np.sum((stepped - U) ** 2)
            U[:] = stepped
        ell = max(float(np.linalg.norm(gram(U))), stationarity.LEAST) / self.p  # (12)
        of_W = {"alpha": ell, "scale": 1.0 / (ell + beta), "delta": 1.0 / self.p, "Q": pull}
        for _ in range(self.inner):
            before = W.copy()
            steps(W, U, *self.by_item(i), N=1, **of_W)  # (67)
            moved[1] += np.sum((W - before) ** 2)
        return moved

    def _server(self, total: np.ndarray, beta: float) -> np.ndarray:
        """fedmc (16), given the sum of W_i + Y_i/beta."""
        if self.reg == "l2":
            return beta * total / (self.p * beta + self.gam)  # (68)
        mean, tau = total / self.p, self.gam / (self.p * beta)
        return np.sign(mean) * np.maximum(np.abs(mean) - tau, 0.0)  # (73), (72)


add_problem(
    StepCompletion,
    "Matrix completion that also measures the steps of a round (fedmc Theorem 4.7)",
    data_kind="ratings",
    artifacts=ARTIFACTS,
)
