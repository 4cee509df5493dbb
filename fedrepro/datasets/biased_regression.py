r"""Multi-task linear regression with a bias for each client (perfedsi, Appendix B (7)).

:math:`y_m = \langle \theta_*, x_m \rangle + b_m + \zeta_m` with x standard normal, :math:`\theta_* \sim N(0, I/d)`
and :math:`\zeta_m \sim N(0, noise^2)`. Side information z_m ~ N(0, I/k) determines the bias, b = <w, z>, up to a scale
that makes the biases' standard deviation 1 (the problem ``shift`` multiplies it). The paper has theory only; sizes are
ours (docs/derivations/shift-regression.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from fedrepro.parameters import Number, Whole
from fedrepro.protocols import Cost, Dataset, Work
from fedrepro.registry import add_dataset


@dataclass
class Biased:
    """x (M, n, d), noise (M, n), theta (d,), b (M,) of standard deviation 1, z (M, k).

    >>> import numpy as np
    >>> from fedrepro import Biased
    >>> rng = np.random.default_rng(0)
    >>> x, z = rng.standard_normal((6, 4, 3)), rng.standard_normal((6, 2))
    >>> data = Biased(x, 0.1 * rng.standard_normal((6, 4)), rng.standard_normal(3), z @ [1.0, 0.5], z)
    >>> data.x.shape  # clients, samples of each, length of x
    (6, 4, 3)
    """

    x: np.ndarray
    noise: np.ndarray
    theta: np.ndarray
    b: np.ndarray
    z: np.ndarray
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class BiasedRegression(Dataset):
    """Regression data of M clients with n samples each.

    d : length of x, at least 1. k : length of z, at least 1. M : clients, at least 2. n : samples of a client, at
    least 1. noise : standard deviation of zeta, at least 0. informative : false draws z afresh, so that it carries no
    information (a control).
    """

    draws = True

    d: Annotated[int, Whole()] = 20
    k: Annotated[int, Whole()] = 5
    M: Annotated[int, Whole(2)] = 100
    n: Annotated[int, Whole()] = 10
    noise: Annotated[float, Number(least=0.0)] = 0.5
    informative: bool = True

    def shape(self) -> dict[str, int | None]:
        """Return the sizes asked for: n samples in d dimensions of each of M clients, N = n d numbers."""
        return {"M": self.M, "N": self.n * self.d}

    def making(self) -> Cost:
        """Return the cost of a normal draw for each number."""
        return Cost(Work(singles=40.0 * self.M * self.n * self.d, calls=500.0), holds=24.0 * self.M * self.n * self.d)

    def load(self, rng: np.random.Generator) -> Biased:
        """Return samples, noise, theta, biases and side information."""
        d, k, M, n = self.d, self.k, self.M, self.n
        theta, x = rng.standard_normal(d) / np.sqrt(d), rng.standard_normal((M, n, d))
        zeta = self.noise * rng.standard_normal((M, n))
        z, w = rng.standard_normal((M, k)) / np.sqrt(k), rng.standard_normal(k)
        b = z @ w
        if not self.informative:
            z = rng.standard_normal((M, k)) / np.sqrt(k)
        return Biased(x, zeta, theta, b / b.std(), z)


add_dataset(
    "shift",
    BiasedRegression,
    "Linear regression with a bias for each client that its side information determines",
    kind="shift",
)
