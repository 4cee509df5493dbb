r"""Random instances of inductive matrix completion (perfedsi, Appendix C.4; docs/derivations/imc-instances.md).

:math:`L_* = M_* Z^T` with :math:`M_* = U_* V_*^T` of rank r, entries of U_*, V_* and Z standard normal, U_* and V_*
then replaced by their orthonormal QR factors, every row of Z scaled to norm 1. Each client sees so many entries of its
column of L_*, drawn once.

**What a random instance can promise.** With J the Jacobian of the observed entries at the truth, (M per_client) x
(d + k) r, of which r^2 directions change nothing, short steps converge like :math:`\exp(-\eta \tau \lambda_{min} / n)`
a round, n the number of observed entries and :math:`\lambda_{min}` the smallest of the r (d + k - r) other eigenvalues
of J^T J; long local runs gain less. It is 0 where an item is seen by too few clients, and then no method can recover
L_*. ``well_posed`` redraws until it is at least ``least``; the paper shows one instance and does not say how it was
chosen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedrepro.errors import ParameterError
from fedrepro.parameters import flag, number, whole
from fedrepro.registry import Dataset, add_dataset

_DRAWS = 1000
"""Instances tried; about two in three of the paper's size are well-posed."""


@dataclass
class Instance:
    """One instance: U (d, r), V (k, r), Z (M, k), ``observed`` (M, per_client) items; ``facts`` holds ``lam_min``."""

    U: np.ndarray
    V: np.ndarray
    Z: np.ndarray
    observed: np.ndarray
    facts: dict[str, Any] = field(default_factory=dict)


def check(
    *,
    d: int = 16,
    M: int = 20,
    k: int = 4,
    r: int = 2,
    per_client: int = 5,
    well_posed: bool = True,
    least: float = 0.1,
) -> None:
    """Raise ParameterError where a parameter cannot work."""
    for name, value in (("d", d), ("M", M), ("k", k), ("r", r), ("per_client", per_client)):
        whole(name, value)
    flag("well_posed", well_posed)
    number("least", least, above=0.0)
    if r > min(d, k):
        raise ParameterError("r", f"must be at most d = {d} and k = {k}, not {r}")
    if per_client > d:
        raise ParameterError("per_client", f"must be at most the number of items d = {d}, not {per_client}")
    free = r * (d + k - r)
    if well_posed and M * per_client < free:
        raise ParameterError(
            "per_client",
            f"{M} clients with {per_client} entries each see {M * per_client} numbers, but M* has {free}; use more",
        )


def load(
    *,
    d: int = 16,
    M: int = 20,
    k: int = 4,
    r: int = 2,
    per_client: int = 5,
    well_posed: bool = True,
    least: float = 0.1,
    rng: np.random.Generator,
) -> Instance:
    """An instance with d items and M clients; redrawn until ``lam_min`` is at least ``least`` where ``well_posed``.

    Raises ParameterError where no instance of that kind turns up.
    """
    check(d=d, M=M, k=k, r=r, per_client=per_client, well_posed=well_posed, least=least)
    for tried in range(1, _DRAWS + 1):
        U, V = (np.linalg.qr(rng.standard_normal((n, r)))[0] for n in (d, k))
        Z = rng.standard_normal((M, k))
        Z /= np.linalg.norm(Z, axis=1, keepdims=True)
        observed = np.array([rng.choice(d, per_client, replace=False) for _ in range(M)])
        lam_min = conditioning(U, V, Z, observed)
        if not well_posed or lam_min >= least:
            return Instance(U, V, Z, observed, {"lam_min": lam_min, "drawn": tried})
    raise ParameterError("least", f"no instance reached {least:g} in {_DRAWS} draws; lower it or set well_posed: false")


def conditioning(U: np.ndarray, V: np.ndarray, Z: np.ndarray, observed: np.ndarray) -> float:
    """lam_min: smallest eigenvalue of J^T J but for the r^2 that rescaling (U, V) -> (U A, V A^-T) makes zero.

    Zero where the observed entries do not determine U V^T even near the truth.
    """
    (d, r), (M, k) = U.shape, Z.shape
    client = np.repeat(np.arange(M), observed.shape[1])
    item, row = observed.ravel(), np.arange(observed.size)
    by_U = np.zeros((observed.size, d, r))
    by_U[row, item] = (Z @ V)[client]
    by_V = Z[client][:, :, None] * U[item][:, None, :]
    J = np.concatenate([by_U.reshape(observed.size, -1), by_V.reshape(observed.size, -1)], axis=1)
    singular = np.zeros(J.shape[1])
    found = np.linalg.svd(J, compute_uv=False)
    singular[: found.size] = found
    return float(singular[r * (d + k - r) - 1] ** 2)


def shape(
    *,
    d: int = 16,
    M: int = 20,
    k: int = 4,
    r: int = 2,
    per_client: int = 5,
    well_posed: bool = True,
    least: float = 0.1,
) -> dict[str, int | None]:
    """The sizes asked for: N items by M clients."""
    return {"M": M, "N": d}


add_dataset(
    Dataset(
        name="imc",
        kind="imc",
        summary="Random low-rank matrices whose columns are linear in client side information, a few entries seen",
        load=load,
        shape=shape,
        check=check,
    )
)
