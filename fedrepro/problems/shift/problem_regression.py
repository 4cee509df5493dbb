r"""Linear regression with side information on the user's own data: ``shift`` without its true parameters.

Client m has :math:`n_m` samples (x, y) and side information z_m. The methods of ``fedrepro.problems.shift`` minimize
(perfedsi (8), with clients of any size)

.. math:: \frac{1}{2M} \sum_m \frac{1}{n_m} \sum_j (\langle \theta, x_{mj} \rangle + c + \langle w, z_m \rangle -
    y_{mj})^2 ,

with w = 0 if they use no side information. The true theta and biases of generated data are unknown here, so the metric
is the mean over clients of the mean squared error on the samples held back.

**Clients of different size.** Samples are stored in blocks of n rows, where n is the largest number of samples of a
client. The samples of a smaller client are scaled by :math:`\sqrt{n / n_m}`, and its block is padded with zeros. Its
loss and gradient, which the methods divide by n, are then exactly those with its own n_m.

Source: perfedsi (3), (8), Appendix B.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fedrepro.arrays import unmasked
from fedrepro.datasets.own_types import Measured
from fedrepro.errors import ParameterError, UserError
from fedrepro.numerics import held_back
from fedrepro.parameters import Number, Range, all_of
from fedrepro.problems.shift.problem import Shift, State
from fedrepro.protocols import Metric, by_name
from fedrepro.registry import add_problem

METRICS = by_name(
    Metric("mse", "mean squared error, held-back samples", "lower", "mean over clients, on samples held back"),
    Metric("mse_train", "mean squared error, training samples", "lower", "mean over clients"),
    Metric("variance", "variance of y", "lower", "of the samples held back: the error of the mean of y"),
)

PARAMETERS: dict[str, Any] = {"test": 0.2}

_FILES = ("all_x", "all_y", "client", "z", "held")


class Regression(Shift):
    """The problem in memory.

    data : ``Measured``. test : share of each client's samples held back, rounded down; ignored if the data mark the
    test samples.

    Raises UserError if the data cannot work, and ParameterError if a parameter cannot.

    Example:
    >>> import numpy as np
    >>> from fedrepro import Measured, Regression
    >>> rng = np.random.default_rng(0)
    >>> client = np.repeat(np.arange(4), 5)
    >>> data = Measured(rng.random((20, 3)), rng.random(20), client, z=rng.random((4, 2)))
    >>> Regression(data, test=0.2).M
    4
    """

    name = "regression"
    metrics = METRICS
    default_metrics = ("mse_train",)
    parameters = PARAMETERS
    ranges: ClassVar[Mapping[str, Range]] = {"test": Number(least=0.0, most=0.99)}
    stored_parameters = ("test",)
    probes: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # own data are not at hand to be measured on

    def __init__(self, data: Measured, *, test: float = 0.2) -> None:
        Regression.check({"test": test}, {})
        _check(data)
        x, y = np.asarray(data.x, dtype=np.float64), np.asarray(data.y, dtype=np.float64)
        client, z = np.asarray(data.client), np.asarray(data.z, dtype=np.float64)
        held = (
            held_back.drawn(self.name, client, test, (x, y, client))
            if data.test is None
            else np.asarray(data.test, dtype=bool)
        )
        self._set_up(x, y, client, z, held)

    def _set_up(self, x: np.ndarray, y: np.ndarray, client: np.ndarray, z: np.ndarray, held: np.ndarray) -> None:
        self.all_x, self.all_y, self.client, self.z, self.held = x, y, client, z, held
        (self.M, self.k), self.d = z.shape, x.shape[1]
        counts = np.bincount(client[~held], minlength=self.M)
        if not counts.all():
            raise UserError(f"samples: client {int(np.argmin(counts))} has none to train with; leave it out")
        self.n = int(counts.max())
        order = np.flatnonzero(~held)[np.argsort(client[~held], kind="stable")]
        row = np.arange(len(order)) - np.repeat(np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        self.weight = np.zeros((self.M, self.n))
        self.weight[client[order], row] = np.sqrt(self.n / counts)[client[order]]
        self.x, self.y = np.zeros((self.M, self.n, self.d)), np.zeros((self.M, self.n))
        self.x[client[order], row], self.y[client[order], row] = x[order], y[order]
        self.x *= self.weight[:, :, None]
        self.y *= self.weight

    @property
    def theta(self) -> np.ndarray:  # type: ignore[override]
        """Raises UserError: the true parameters of the user's data are unknown."""
        raise UserError("the true theta and biases are known of generated data only; use the problem shift for them")

    b = theta

    def design(self, side: bool) -> np.ndarray:
        """Scaled inputs of the linear model, (M, n, p): x, 1, and z if ``side`` information is used."""
        ones = self.weight[:, :, None]
        return np.concatenate([self.x, ones, *([ones * self.z[:, None]] if side else [])], axis=2)

    def measure(self, state: State, names: Sequence[str]) -> dict[str, float]:
        """The value of each named metric at a state."""
        all_of("metrics", names, tuple(METRICS))
        theta = np.broadcast_to(state.theta, (self.M, self.d))
        with np.errstate(over="ignore", invalid="ignore"):
            error = np.einsum("nd,nd->n", self.all_x, theta[self.client]) + state.c[self.client] - self.all_y
            values = {}
            for name in names:
                chosen = ~self.held if name == "mse_train" else self.held
                if not chosen.any():
                    raise ParameterError("test", f"leaves no sample to measure '{name}' on; hold some back")
                if name == "variance":
                    values[name] = float(self.all_y[chosen].var())
                    continue
                counts = np.bincount(self.client[chosen], minlength=self.M)
                sums = np.bincount(self.client[chosen], error[chosen] ** 2, minlength=self.M)
                values[name] = float(np.mean(sums[counts > 0] / counts[counts > 0]))
        return values

    def artifacts(self, state: State, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Named arrays of a state: ``c``, the predicted biases, (M,)."""
        all_of("artifacts", names, ("c",))
        return {name: state.c.copy() for name in names}

    @classmethod
    def prepare(cls, folder: Path, data: Any, client: np.ndarray | None, parameters: Mapping[str, Any]) -> None:
        """Write ``Measured`` and which samples are held back, for ``stored``."""
        problem = cls(data, **parameters)
        for name in _FILES:
            np.save(folder / f"{name}.npy", getattr(problem, name))

    @classmethod
    def stored(cls, folder: Path, parameters: Mapping[str, Any]) -> Regression:
        """The problem in a folder written by ``prepare``."""
        cls.check(parameters, {})
        problem = cls.__new__(cls)
        problem._set_up(*(np.load(folder / f"{name}.npy") for name in _FILES))
        return problem


def _check(data: Measured) -> None:
    unmasked(x=data.x, y=data.y, client=data.client, z=data.z)
    x, y, client, z = (np.asarray(array) for array in (data.x, data.y, data.client, data.z))
    if x.ndim != 2 or 0 in x.shape or y.shape != x.shape[:1] or client.shape != x.shape[:1]:
        raise UserError(
            f"samples: x must have shape (n, d), y and client (n,), not shapes {x.shape}, {y.shape} and {client.shape}"
        )
    if z.ndim != 2 or 0 in z.shape:
        raise UserError(f"z: must have a row of side information for each client, (M, k), not shape {z.shape}")
    if client.dtype.kind not in "iu" or client.min() < 0 or client.max() >= len(z):
        raise UserError(f"client: ids must be integers from 0 to {len(z) - 1}, the rows of z")
    if not all(np.isfinite(array).all() for array in (x, y, z)):
        raise UserError("samples: x, y and z must be finite numbers")
    if data.test is not None and np.shape(data.test) != y.shape:
        raise UserError(f"test: must give true or false for each sample, {y.shape}, not {np.shape(data.test)}")


add_problem(
    Regression,
    "Linear regression of the user's own data, clients with side information",
    data_kind="regression",
    artifacts=("c",),
)
