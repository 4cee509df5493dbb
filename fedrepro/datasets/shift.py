r"""Multi-task linear regression with a bias for each client (perfedsi, Appendix B (7)).

:math:`y_m = \langle \theta_*, x_m \rangle + b_m + \zeta_m` with x standard normal, :math:`\theta_* \sim N(0, I/d)`
and :math:`\zeta_m \sim N(0, noise^2)`. Side information z_m ~ N(0, I/k) tells the bias, b = <w, z>, up to a scale that
makes the biases' standard deviation 1 (the problem ``shift`` multiplies it). The paper has theory only; sizes are ours
(docs/derivations/shift-regression.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedrepro.parameters import flag, number, whole
from fedrepro.registry import Dataset, add_dataset


@dataclass
class Biased:
    """x (M, n, d), noise (M, n), theta (d,), b (M,) of standard deviation 1, z (M, k)."""

    x: np.ndarray
    noise: np.ndarray
    theta: np.ndarray
    b: np.ndarray
    z: np.ndarray
    facts: dict[str, Any] = field(default_factory=dict)


def check(*, d: int = 20, k: int = 5, M: int = 100, n: int = 10, noise: float = 0.5, informative: bool = True) -> None:
    """Raise ParameterError where a parameter cannot work."""
    for name, value, least in (("d", d, 1), ("k", k, 1), ("M", M, 2), ("n", n, 1)):
        whole(name, value, least)
    number("noise", noise, least=0.0)
    flag("informative", informative)


def load(
    *,
    d: int = 20,
    k: int = 5,
    M: int = 100,
    n: int = 10,
    noise: float = 0.5,
    informative: bool = True,
    rng: np.random.Generator,
) -> Biased:
    """M clients with n samples each; ``informative`` False draws z afresh, so that it tells nothing (a control)."""
    check(d=d, k=k, M=M, n=n, noise=noise, informative=informative)
    theta, x = rng.standard_normal(d) / np.sqrt(d), rng.standard_normal((M, n, d))
    zeta = noise * rng.standard_normal((M, n))
    z, w = rng.standard_normal((M, k)) / np.sqrt(k), rng.standard_normal(k)
    b = z @ w
    if not informative:
        z = rng.standard_normal((M, k)) / np.sqrt(k)
    return Biased(x, zeta, theta, b / b.std(), z)


def shape(
    *, d: int = 20, k: int = 5, M: int = 100, n: int = 10, noise: float = 0.5, informative: bool = True
) -> dict[str, int | None]:
    """The sizes asked for: N samples in d dimensions over M clients."""
    return {"M": M, "N": n * d}


add_dataset(
    Dataset(
        name="shift",
        kind="shift",
        summary="Linear regression with a bias for each client that its side information tells",
        load=load,
        shape=shape,
        check=check,
    )
)
