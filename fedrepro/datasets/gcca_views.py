"""Synthetic views for GCCA: X_i = Z A_i + nu E_i, a latent factor Z that all views share, mixed and with noise.

``gcca-synthetic``: Z (J, D), A_i (D, N), E_i (J, N) iid standard normal. nu = 0.1, the noise of the authors' code and
of the published curves; the paper's text has "u_i = 0.01" (for Fig. 8 "nu_i"), which is nu^2 (discrepancy gcca.1).
``gcca-sparse``: the same with sparse random normal Z, A_i, E_i. Neither is centred.

Every trial draws afresh. ``draw`` is a key and nothing else: two draws are two data sets of the same law, so that a
spec can give each curve its own (the authors' Table I does, discrepancy gcca.6).

Source: Shrestha and Fu, Sec. V-A.1 and V-A.4; docs/derivations/gcca-data.md#synthetic-views.
"""

# ruff: noqa: E741 (the paper's symbol I, the number of views, is a parameter)
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fedrepro.datasets.types import Views
from fedrepro.errors import ParameterError, nearest
from fedrepro.parameters import Number, Whole, number
from fedrepro.protocols import Cost, Dataset, Work
from fedrepro.registry import add_dataset

DENSITIES = {"paper": (0.05, 0.002, 0.001), "code": (0.01, 0.0005, 0.001)}
"""Densities of Z, A_i, E_i. ``paper``: chosen so that the views have the density of the text, rho = 0.02 (0.0208).
``code``: the authors' script, whose views have density 0.002 (discrepancy gcca.20)."""

MOST_DRAWS = 10**6


@dataclass(frozen=True)
class DenseViews(Dataset):
    """Dense views (J, N) of the same samples with D latent dimensions in common.

    J : samples, at least 2. N : columns of each view, at least 1. D : common dimensions, at least 1. I : views, at
    least 1. nu : standard deviation of the noise, at least 0. draw : a key, 0 .. 1,000,000; equal keys share the data.
    """

    draws = True

    J: Annotated[int, Whole(2)] = 500
    N: Annotated[int, Whole()] = 25
    D: Annotated[int, Whole()] = 20
    I: Annotated[int, Whole()] = 3
    nu: Annotated[float, Number(least=0.0)] = 0.1
    draw: Annotated[int, Whole(0, MOST_DRAWS)] = 0

    def shape(self) -> dict[str, int | None]:
        """Return J rows, I views of N columns each."""
        return {"J": self.J, "N": self.N, "I": self.I}

    def making(self) -> Cost:
        """Return the cost of a product and a normal draw for each entry."""
        entries = float(self.J * self.N * self.I)
        work = Work(flops=2.0 * entries * self.D, singles=30.0 * entries, calls=1000.0)
        return Cost(work, holds=24.0 * entries)

    def load(self, rng: np.random.Generator) -> Views:
        """Return I views (J, N), float64 arrays."""
        J, N, D, I, nu = self.J, self.N, self.D, self.I, self.nu
        rng = rng.spawn(self.draw + 1)[self.draw]
        Z = rng.standard_normal((J, D))
        views = [Z @ rng.standard_normal((D, N)) + nu * rng.standard_normal((J, N)) for _ in range(I)]
        return Views(views, None, {"J": J, "N": N, "D": D, "I": I, "nu": nu, "draw": self.draw})


@dataclass(frozen=True)
class SparseViews(Dataset):
    """Sparse views (J, N) of the same samples with D latent dimensions in common.

    J : samples, at least 2. N : columns of each view, at least 1. D : common dimensions, at least 1. I : views, at
    least 1. nu : standard deviation of nonzero entries of the noise, at least 0.
    densities : those of Z, A_i and E_i, 0 .. 1 each; or paper (0.05, 0.002, 0.001), or code (0.01, 0.0005, 0.001).
    draw : a key, 0 .. 1,000,000; equal keys share the data.
    """

    draws = True

    J: Annotated[int, Whole(2)] = 50_000
    N: Annotated[int, Whole()] = 2000
    D: Annotated[int, Whole()] = 200
    I: Annotated[int, Whole()] = 3
    nu: Annotated[float, Number(least=0.0)] = 0.1
    densities: str | Sequence[float] = "paper"
    draw: Annotated[int, Whole(0, MOST_DRAWS)] = 0

    def __post_init__(self) -> None:
        """Raise ParameterError if a value is invalid."""
        super().__post_init__()
        _densities(self.densities)

    def shape(self) -> dict[str, Any]:
        """Return J rows, I views of N columns each; ``density`` is the expected share of entries that are not zero."""
        of_Z, of_A, of_E = _densities(self.densities)
        return {"J": self.J, "N": self.N, "I": self.I, "density": 1.0 - (1.0 - of_Z * of_A) ** self.D * (1.0 - of_E)}

    def making(self) -> Cost:
        """Return the cost of products of sparse factors, whose entries are drawn, for each view."""
        entries = self.J * self.N * self.I * self.shape()["density"]
        return Cost(Work(singles=250.0 * entries, calls=5000.0), holds=30.0 * entries)

    def load(self, rng: np.random.Generator) -> Views:
        """Return I views (J, N), scipy.sparse CSR; ``facts`` contain their densities."""
        J, N, D, I, nu = self.J, self.N, self.D, self.I, self.nu
        rng = rng.spawn(self.draw + 1)[self.draw]
        of_Z, of_A, of_E = _densities(self.densities)
        Z = sparse_normal(rng, J, D, of_Z)
        views = []
        for _ in range(I):
            X = (Z @ sparse_normal(rng, D, N, of_A) + nu * sparse_normal(rng, J, N, of_E)).tocsr()
            X.sort_indices()
            views.append(X)
        density = [X.nnz / (J * N) for X in views]
        facts = {"J": J, "N": N, "D": D, "I": I, "nu": nu, "draw": self.draw, "density": density}
        return Views(views, None, facts)


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
    for value in densities:
        number("densities", value, least=0.0, most=1.0)
    of_Z, of_A, of_E = densities
    return of_Z, of_A, of_E


add_dataset(
    "gcca-synthetic",
    DenseViews,
    "dense synthetic views Z A_i + nu E_i of the GCCA paper (500 x 25, 3 views, 20 common dimensions)",
    kind="views",
)
add_dataset(
    "gcca-sparse",
    SparseViews,
    "large sparse synthetic views of the GCCA paper (50,000 x 2,000, 3 views, density 0.02)",
    kind="views",
)
