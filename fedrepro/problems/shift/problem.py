r"""Multi-task regression with personal biases: the toy example of ``perfedsi``, Appendix B (Model 1).

Client m has n samples of :math:`y = \langle \theta_*, x \rangle + b_m + \zeta`. A model predicts
:math:`\langle \theta_m, x \rangle + c_m`; as x has mean zero and identity covariance its excess risk is

.. math:: \mathcal E_m = \tfrac12 \|\theta_m - \theta_*\|^2 + \tfrac12 (c_m - b_m)^2 .

One global model has at best :math:`c_m = \bar b`, hence on average :math:`\tfrac12 Var(b)` even with infinitely many
samples (perfedsi (8); the text after it omits the 1/2 of its own definition, discrepancy perfedsi.20). With
b_m = <w, z_m>, Model 1 with a linear H reaches 0. ``sigma_b`` is the standard deviation of the biases over clients, the
heterogeneity.

Source: perfedsi (8), Appendix B; docs/derivations/shift-regression.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from fedrepro.arrays import unmasked
from fedrepro.datasets.biased_regression import Biased
from fedrepro.errors import UserError
from fedrepro.parameters import Number, Range, all_of, whole
from fedrepro.protocols import Cost, Metric, Problem, Work, by_name
from fedrepro.registry import add_problem

METRICS = by_name(
    Metric("excess_risk", "excess risk", "lower", "mean over clients of the excess risk"),
    Metric("theta_risk", "excess risk of θ", "lower", "the part caused by theta"),
    Metric("bias_risk", "excess risk of the bias", "lower", "the part caused by the bias"),
    Metric("half_variance", "½ Var(b)", "lower", "the least excess risk of one global model"),
)

PARAMETERS: dict[str, Any] = {"sigma_b": 1.0}

_FILES = ("x", "noise", "theta", "b", "z")


@dataclass
class State:
    """One point: theta (d,) of all clients or (M, d) of each, and the biases c (M,) they predict with."""

    theta: np.ndarray
    c: np.ndarray

    def copy(self) -> State:
        """A copy that later rounds do not change."""
        return State(self.theta.copy(), self.c.copy())


class Shift(Problem):
    """The problem in memory, with the biases of ``data`` times ``sigma_b``.

    data : ``Biased``. sigma_b : standard deviation of the clients' biases.

    >>> import numpy as np
    >>> from fedrepro import Biased, Shift
    >>> rng = np.random.default_rng(0)
    >>> x, z = rng.standard_normal((6, 4, 3)), rng.standard_normal((6, 2))
    >>> data = Biased(x, 0.1 * rng.standard_normal((6, 4)), rng.standard_normal(3), z @ [1.0, 0.5], z)
    >>> problem = Shift(data, sigma_b=2.0)
    >>> problem.M
    6
    """

    name = "shift"
    metrics = METRICS
    default_metrics = ("excess_risk",)
    parameters = PARAMETERS
    ranges: ClassVar[Mapping[str, Range]] = {"sigma_b": Number(least=0.0)}
    probes: ClassVar[Mapping[str, Mapping[str, Any]]] = {"dense": {"dataset": {"name": "shift"}}}

    def __init__(self, data: Biased, *, sigma_b: float = 1.0) -> None:
        Shift.check({"sigma_b": sigma_b}, {})
        unmasked(x=data.x, noise=data.noise, theta=data.theta, b=data.b, z=data.z)
        self.x, self.theta, self.z = data.x, data.theta, data.z
        self.b = sigma_b * data.b
        with threadpool_limits(limits=1):  # more threads add in another order
            self.y = self.x @ self.theta + self.b[:, None] + data.noise
        (self.M, self.n, self.d), self.k = self.x.shape, self.z.shape[1]

    def initial(self, trial: int) -> str:
        """The initial point of every method is zero, because the losses are convex quadratics."""
        whole("trial", trial, 0)
        return "zero"

    def start(self, init: Any, size: int) -> np.ndarray:
        """The initial parameters: zero, or an explicit vector of this size."""
        if init is None or isinstance(init, str):
            return np.zeros(size)
        parameters = np.array(init, dtype=np.float64)
        if parameters.shape != (size,):
            raise UserError(f"init: must have shape ({size},), not {parameters.shape}")
        return parameters

    def design(self, side: bool) -> np.ndarray:
        """Inputs of the linear model, (M, n, p): x, 1, and z if ``side`` information is used (perfedsi (3))."""
        parts = [self.x, np.ones((self.M, self.n, 1))]
        if side:
            parts.append(np.repeat(self.z[:, None], self.n, axis=1))
        return np.concatenate(parts, axis=2)

    def state(self, parameters: np.ndarray) -> State:
        """The state of the global linear model with ``parameters`` (p,) for ``design``: theta, offset, weights of z."""
        weights = parameters[self.d + 1 :]
        c = parameters[self.d] + (self.z @ weights if weights.size else np.zeros(self.M))
        return State(parameters[: self.d], c)

    def measure(self, state: State, names: Sequence[str]) -> dict[str, float]:
        """The value of each named metric at a state."""
        all_of("metrics", names, tuple(METRICS))
        theta_risk = float(0.5 * np.square(np.atleast_2d(state.theta) - self.theta).sum(axis=1).mean())
        bias_risk = float(0.5 * np.square(state.c - self.b).mean())
        values = {
            "excess_risk": theta_risk + bias_risk,
            "theta_risk": theta_risk,
            "bias_risk": bias_risk,
            "half_variance": float(0.5 * self.b.var()),
        }
        return {name: values[name] for name in names}

    @staticmethod
    def stored_bytes(facts: Mapping[str, Any]) -> float:
        """All samples."""
        return 8.0 * facts["M"] * facts["N"]

    @staticmethod
    def preparing(facts: Mapping[str, Any]) -> Cost:
        """The cost of writing them."""
        return Cost(Work(calls=1000.0))

    @staticmethod
    def measuring(names: Sequence[str], facts: Mapping[str, Any]) -> Cost:
        """The cost of sums over d and M numbers."""
        return Cost(round=Work(calls=40.0))

    def artifacts(self, state: State, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Named arrays of a state: ``c``, the predicted biases, and ``b``, the true ones, (M,)."""
        all_of("artifacts", names, ("b", "c"))
        arrays = {"b": self.b, "c": state.c}
        return {name: arrays[name].copy() for name in names}

    @classmethod
    def prepare(cls, folder: Path, data: Biased, client: np.ndarray | None, parameters: Mapping[str, Any]) -> None:
        """Write ``Biased``, for ``stored``."""
        unmasked(x=data.x, noise=data.noise, theta=data.theta, b=data.b, z=data.z)
        for name in _FILES:
            np.save(folder / f"{name}.npy", getattr(data, name))

    @classmethod
    def stored(cls, folder: Path, parameters: Mapping[str, Any]) -> Shift:
        """The problem in a folder written by ``prepare``."""
        data = Biased(**{name: np.load(folder / f"{name}.npy") for name in _FILES})
        return Shift(data, **{**PARAMETERS, **parameters})

    @staticmethod
    def diverged(values: Mapping[str, np.ndarray]) -> str | None:
        """Why a run counts as diverged, or None: a value is not finite."""
        for name, column in values.items():
            bad = np.flatnonzero(~np.isfinite(column))
            if bad.size:
                return f"{name} is not finite at record {int(bad[0])}"
        return None


add_problem(
    Shift,
    "Linear regression whose clients differ in a bias that side information determines",
    data_kind="shift",
    artifacts=("b", "c"),
)
