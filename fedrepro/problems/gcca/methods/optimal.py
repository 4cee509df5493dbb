r"""The exact optimum of MAX-VAR GCCA as a method without rounds: the line "optimal" of the paper's figures.

G = the K principal eigenvectors of :math:`P = \sum_i X_i X_i^+`, :math:`Q_i = X_i^+ G`. It uses all views at once: a
reference, not a federated method. It sends nothing.

Source: Shrestha and Fu, Sec. II-A; docs/derivations/maxvar-optimum.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fedrepro.ledger import Ledger
from fedrepro.multiview.federated import State
from fedrepro.problems.gcca.problem import GCCA, multiplying
from fedrepro.protocols import Cost, Method
from fedrepro.registry import add_method
from fedrepro.seeds import Rng


@dataclass(frozen=True)
class Optimal(Method):
    """The exact MAX-VAR solution; no parameters.

    >>> import numpy as np
    >>> from fedrepro import GCCA, Optimal, run
    >>> rng = np.random.default_rng(0)
    >>> common = rng.standard_normal((40, 2))
    >>> views = [common @ rng.standard_normal((2, 5)) + 0.1 * rng.standard_normal((40, 5)) for _ in range(3)]
    >>> problem = GCCA(views, K=2)
    >>> history = run(Optimal(), problem, rounds=1, metrics=["cost", "ratio"])
    >>> round(float(history["ratio"][-1]), 6)
    1.0
    """

    one_shot: ClassVar[bool] = True
    silent: ClassVar[bool] = True

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """A product with each view: the optimum is computed with the data."""
        libraries = ("numba",) if "density" in facts else ()
        return Cost(
            facts["I"] * multiplying(facts), holds=16.0 * facts["J"] * facts["I"] * facts["K"], libraries=libraries
        )

    def rounds(
        self, problem: GCCA, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[State]:
        """Yield the optimum, without draws or an initial point."""
        best = problem.optimum
        M = problem.representations(best.Q)
        yield State(theta=best.Q, M=M, G=best.G, near=M, far=M, G_near=best.G, G_far=best.G)


add_method(
    "optimal",
    Optimal,
    "the exact optimum of MAX-VAR GCCA, from all views at once",
    label="Optimal",
    papers=("gcca",),
    look=("black", "_"),
)
