r"""Random instances of inductive matrix completion (perfedsi, Appendix C.4; docs/derivations/imc-instances.md).

:math:`L_* = M_* Z^T` with :math:`M_* = U_* V_*^T` of rank r, entries of U_*, V_* and Z standard normal, U_* and V_*
then replaced by their orthonormal QR factors, every row of Z scaled to norm 1. Each client sees ``per_client`` entries
of its column of L_*, drawn once.

**What a random instance can promise.** With J the Jacobian of the observed entries at the truth, (M per_client) x
(d + k) r, of which r^2 directions change nothing, short steps converge like :math:`\exp(-\eta \tau \lambda_{min} / n)`
per round, n the number of observed entries and :math:`\lambda_{min}` the smallest of the r (d + k - r) other
eigenvalues of J^T J; long local runs gain less. It is 0 where an item is seen by too few clients, and then no method
can recover L_*. ``well_posed`` redraws until it is at least ``least``; the paper does not say how many instances it
shows, or how they were chosen (discrepancy perfedsi.25).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from fedrepro.errors import ParameterError
from fedrepro.parameters import Number, Whole
from fedrepro.protocols import Cost, Dataset, Work
from fedrepro.registry import add_dataset

_DRAWS = 1000
"""Instances tried; a little under half of the paper's size are well-posed."""


@dataclass
class Instance:
    """One instance: U (d, r), V (k, r), Z (M, k), ``observed`` (M, per_client) items; ``facts`` contains ``lam_min``.

    >>> import numpy as np
    >>> from fedrepro import IMC, Instance
    >>> rng = np.random.default_rng(0)
    >>> U, V, Z = rng.standard_normal((6, 2)), rng.standard_normal((3, 2)), rng.standard_normal((8, 3))
    >>> observed = np.array([rng.permutation(6)[:4] for _ in range(8)])
    >>> problem = IMC(Instance(U, V, Z, observed))
    >>> problem.d, problem.M
    (6, 8)
    """

    U: np.ndarray
    V: np.ndarray
    Z: np.ndarray
    observed: np.ndarray
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RandomInstance(Dataset):
    """A random instance of d items, M clients and rank r.

    d : items. M : clients. k : length of a client's side information. r : rank,
    1 .. min(d, k). per_client : entries that a client sees, 1 .. d. well_posed : redraw until ``lam_min`` is large
    enough. least : the smallest ``lam_min`` that is large enough, above 0.
    """

    draws = True

    d: Annotated[int, Whole()] = 16
    M: Annotated[int, Whole()] = 20
    k: Annotated[int, Whole()] = 4
    r: Annotated[int, Whole()] = 2
    per_client: Annotated[int, Whole()] = 5
    well_posed: bool = True
    least: Annotated[float, Number(above=0.0)] = 0.1

    def __post_init__(self) -> None:
        """Raise ParameterError if a value is invalid."""
        super().__post_init__()
        if self.r > min(self.d, self.k):
            raise ParameterError("r", f"must be at most d = {self.d} and k = {self.k}, not {self.r}")
        if self.per_client > self.d:
            raise ParameterError(
                "per_client", f"must be at most the number of items d = {self.d}, not {self.per_client}"
            )
        seen, free = self.M * self.per_client, self.r * (self.d + self.k - self.r)
        if self.well_posed and seen < free:
            raise ParameterError(
                "per_client",
                f"{self.M} clients with {self.per_client} entries each see {seen} numbers, but M* has {free}; use more",
            )

    def shape(self) -> dict[str, int | None]:
        """Return the sizes asked for: N items by M clients."""
        return {"M": self.M, "N": self.d}

    def making(self) -> Cost:
        """Return the cost of small matrices, drawn until an instance is well-posed."""
        return Cost(Work(calls=4e4), holds=1e6)

    def load(self, rng: np.random.Generator) -> Instance:
        """Return an instance. Raises ParameterError if no draw has a ``lam_min`` that is large enough."""
        d, M, k, r = self.d, self.M, self.k, self.r
        for tried in range(1, _DRAWS + 1):
            U, V = (np.linalg.qr(rng.standard_normal((n, r)))[0] for n in (d, k))
            Z = rng.standard_normal((M, k))
            Z /= np.linalg.norm(Z, axis=1, keepdims=True)
            observed = np.array([rng.choice(d, self.per_client, replace=False) for _ in range(M)])
            lam_min = conditioning(U, V, Z, observed)
            if not self.well_posed or lam_min >= self.least:
                return Instance(U, V, Z, observed, {"lam_min": lam_min, "drawn": tried})
        raise ParameterError(
            "least", f"no instance reached {self.least:g} in {_DRAWS} draws; lower it or set well_posed: false"
        )


def conditioning(U: np.ndarray, V: np.ndarray, Z: np.ndarray, observed: np.ndarray) -> float:
    """Return lam_min, the smallest eigenvalue of J^T J except the r^2 zeros of rescaling, (U, V) -> (U A, V A^-T).

    It is zero if the observed entries do not determine U V^T even near the truth.
    """
    (d, r), (M, k) = U.shape, Z.shape
    client = np.repeat(np.arange(M), observed.shape[1])
    item, row = observed.ravel(), np.arange(observed.size)
    by_U = np.zeros((observed.size, d, r))
    by_U[row, item] = (Z @ V)[client]
    by_V = Z[client][:, :, None] * U[item][:, None, :]
    J = np.concatenate([by_U.reshape(observed.size, -1), by_V.reshape(observed.size, -1)], axis=1)
    singular = np.zeros(J.shape[1])
    values = np.linalg.svd(J, compute_uv=False)
    singular[: values.size] = values
    return float(singular[r * (d + k - r) - 1] ** 2)


add_dataset(
    "imc",
    RandomInstance,
    "Random low-rank matrices whose columns are linear in client side information, a few entries seen",
    kind="imc",
)
