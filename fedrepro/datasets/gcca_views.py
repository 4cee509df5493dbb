"""Synthetic views for GCCA: X_i = Z A_i + nu E_i, a latent factor Z that all views share, mixed and with noise.

``gcca-synthetic``: Z (J, D), A_i (D, N), E_i (J, N) iid standard normal. nu = 0.1, the noise of the authors' code and
of the published curves; the paper's text has "u_i = 0.01", which is nu^2 (discrepancy gcca.1).
``gcca-sparse``: the same with sparse random normal Z, A_i, E_i. Neither is centred.

Every trial draws afresh. ``draw`` is a key and nothing else: two draws are two data sets of the same law, so that a
spec can give each curve its own (the authors' Table I does, discrepancy gcca.6).

Source: Shrestha and Fu, Sec. V-A.1 and V-A.4; docs/derivations/gcca-data.md#synthetic-views.
"""

# ruff: noqa: E741 (the paper's symbol I, the number of views, is a parameter)
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedrepro.datasets.checks import number, whole
from fedrepro.datasets.types import Views
from fedrepro.errors import ParameterError, nearest
from fedrepro.registry import Dataset, add_dataset

DENSITIES = {"paper": (0.05, 0.002, 0.001), "code": (0.01, 0.0005, 0.001)}
"""Densities of Z, A_i, E_i. ``paper``: chosen so that the views have the density of the text, rho = 0.02 (0.0208).
``code``: the authors' script, whose views have density 0.002 (discrepancy gcca.20)."""


def check(*, J: int = 500, N: int = 25, D: int = 20, I: int = 3, nu: float = 0.1, draw: int = 0) -> None:
    """Raise ParameterError where the parameters cannot give data."""
    whole("J", J, 2)
    whole("N", N, 1)
    whole("D", D, 1)
    whole("I", I, 1)
    number("nu", nu, 0.0, float("inf"))
    whole("draw", draw, 0, 10**6)


def load(
    *,
    J: int = 500,
    N: int = 25,
    D: int = 20,
    I: int = 3,
    nu: float = 0.1,
    draw: int = 0,
    rng: np.random.Generator,
) -> Views:
    """I dense views (J, N) of the same samples, D latent dimensions in common; nu: standard deviation of the noise."""
    check(J=J, N=N, D=D, I=I, nu=nu, draw=draw)
    rng = rng.spawn(draw + 1)[draw]
    Z = rng.standard_normal((J, D))
    views = [Z @ rng.standard_normal((D, N)) + nu * rng.standard_normal((J, N)) for _ in range(I)]
    return Views(views, None, {"J": J, "N": N, "D": D, "I": I, "nu": nu, "draw": draw})


def shape(
    *, J: int = 500, N: int = 25, D: int = 20, I: int = 3, nu: float = 0.1, draw: int = 0
) -> dict[str, int | None]:
    """J rows, I views of N columns each."""
    return {"J": J, "N": N, "I": I}


def check_sparse(
    *,
    J: int = 50_000,
    N: int = 2000,
    D: int = 200,
    I: int = 3,
    nu: float = 0.1,
    densities: str | Sequence[float] = "paper",
    draw: int = 0,
) -> None:
    """Raise ParameterError where the parameters cannot give data."""
    check(J=J, N=N, D=D, I=I, nu=nu, draw=draw)
    _densities(densities)


def load_sparse(
    *,
    J: int = 50_000,
    N: int = 2000,
    D: int = 200,
    I: int = 3,
    nu: float = 0.1,
    densities: str | Sequence[float] = "paper",
    draw: int = 0,
    rng: np.random.Generator,
) -> Views:
    """I views (J, N), scipy.sparse CSR. densities : those of Z, A_i and E_i, or a name of ``DENSITIES``."""
    check_sparse(J=J, N=N, D=D, I=I, nu=nu, densities=densities, draw=draw)
    rng = rng.spawn(draw + 1)[draw]
    of_Z, of_A, of_E = _densities(densities)
    Z = sparse_normal(rng, J, D, of_Z)
    views = []
    for _ in range(I):
        X = (Z @ sparse_normal(rng, D, N, of_A) + nu * sparse_normal(rng, J, N, of_E)).tocsr()
        X.sort_indices()
        views.append(X)
    facts = {"J": J, "N": N, "D": D, "I": I, "nu": nu, "draw": draw, "density": [X.nnz / (J * N) for X in views]}
    return Views(views, None, facts)


def shape_sparse(
    *,
    J: int = 50_000,
    N: int = 2000,
    D: int = 200,
    I: int = 3,
    nu: float = 0.1,
    densities: str | Sequence[float] = "paper",
    draw: int = 0,
) -> dict[str, Any]:
    """J rows, I views of N columns each; ``density`` is the expected share of entries that are not zero."""
    of_Z, of_A, of_E = _densities(densities)
    return {"J": J, "N": N, "I": I, "density": 1.0 - (1.0 - of_Z * of_A) ** D * (1.0 - of_E)}


def sparse_normal(rng: np.random.Generator, rows: int, columns: int, density: float) -> Any:
    """A CSR matrix with round(density * rows * columns) standard normal entries at different random places."""
    from scipy import sparse

    count = round(density * rows * columns)
    places = np.sort(rng.choice(rows * columns, count, replace=False))
    values = rng.standard_normal(count)
    return sparse.csr_matrix((values, (places // columns, places % columns)), shape=(rows, columns))


def _densities(densities: Any) -> tuple[float, float, float]:
    if isinstance(densities, str):
        if densities not in DENSITIES:
            raise ParameterError(
                "densities", f"must be one of {', '.join(DENSITIES)} or three numbers, not {densities!r}"
                f"{nearest(densities, DENSITIES)}",
            )  # fmt: skip
        return DENSITIES[densities]
    if not isinstance(densities, Sequence) or len(densities) != 3:
        raise ParameterError("densities", f"must be a name or the densities of Z, A and E, not {densities!r}")
    of_Z, of_A, of_E = (number("densities", value, 0.0, 1.0) for value in densities)
    return of_Z, of_A, of_E


add_dataset(
    Dataset(
        name="gcca-synthetic",
        kind="views",
        summary="dense synthetic views Z A_i + nu E_i of the GCCA paper (500 x 25, 3 views, 20 common dimensions)",
        load=load,
        shape=shape,
        check=check,
    )
)
add_dataset(
    Dataset(
        name="gcca-sparse",
        kind="views",
        summary="large sparse synthetic views of the GCCA paper (50,000 x 2,000, 3 views, density 0.02)",
        load=load_sparse,
        shape=shape_sparse,
        check=check_sparse,
    )
)
