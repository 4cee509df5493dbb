r"""MVLSA: the MAX-VAR solution for the rank-m truncations of the views, without rounds.

With the truncated SVD :math:`X_i \approx A_i S_i B_i^\top` (A_i: (J, m)):

.. math::  G = \text{top-K left singular vectors of } [A_1 T_1, \dots, A_I T_I], \quad
           Q_i = B_i S_i^{-1} T_i^2 A_i^\top G, \quad T_i = (S_i^2 (r I + S_i^2)^{-1})^{1/2}

With r = 0, T_i = I. If m is the rank of every view, this is the exact optimum.

Source: Rastogi, Van Durme and Arora, Multiview LSA, NAACL 2015; Shrestha and Fu, Sec. III-C.1 and V-A.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from fedrepro.errors import ParameterError
from fedrepro.ledger import Ledger
from fedrepro.multiview.aligned_views import View
from fedrepro.multiview.federated import State
from fedrepro.parameters import AtMost, Number, Whole
from fedrepro.problems.gcca.problem import GCCA, multiplying
from fedrepro.problems.gcca.truncated_views import mvlsa, truncating
from fedrepro.protocols import Cost, Method, Work
from fedrepro.registry import add_method
from fedrepro.seeds import Rng


@dataclass(frozen=True)
class MVLSA(Method):
    """MVLSA. m : rank of the truncations, K <= m <= rank. r : ridge, of which the paper says nothing.

    >>> import numpy as np
    >>> from fedrepro import GCCA, MVLSA, run
    >>> rng = np.random.default_rng(0)
    >>> common = rng.standard_normal((40, 2))
    >>> views = [common @ rng.standard_normal((2, 5)) + 0.1 * rng.standard_normal((40, 5)) for _ in range(3)]
    >>> problem = GCCA(views, K=2)
    >>> history = run(MVLSA(m=5), problem, rounds=1, metrics=["ratio"])
    >>> round(float(history["ratio"][-1]), 6)  # at full rank it is exact
    1.0
    """

    one_shot: ClassVar[bool] = True

    m: Annotated[int, Whole(), AtMost("N", "columns"), AtMost("rank", "rows or columns of a view")] = 10
    r: Annotated[float, Number(least=0.0)] = 0.0

    def check(self, *, N: int | None = None, K: int | None = None, **_: Any) -> None:
        """Raise ParameterError if m cannot work for views (J, N) and K."""
        if K is not None and self.m < K:
            raise ParameterError("m", f"must be at least K = {K}, not {self.m}")
        if N is not None and self.m > N:
            raise ParameterError("m", f"must be at most the number of columns of a view, {N}, not {self.m}")

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """The truncations, and a product with each view."""
        memory = 8.0 * facts["J"] * facts["I"] * (2.5 * params["m"] + 2.0 * facts["K"])
        libraries = ("numba",) if "density" in facts else ()
        return Cost(facts["I"] * multiplying(facts), Work(), memory, libraries, truncating(facts, params["m"]))

    def rounds(
        self, problem: GCCA, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[State]:
        """Yield one state, without draws or an initial point. Each node sends J m numbers and receives J K."""
        ledger = Ledger() if ledger is None else ledger
        G, Q = mvlsa(problem, self.m, self.r, ledger.clock)
        ledger.up(problem.J * self.m, kind="A", clients=problem.I)
        ledger.down(G.size, kind="G", clients=problem.I)
        M = ledger.clock.each(View.product, problem.views, Q)
        yield State(theta=Q, M=M, G=G, near=M, far=M, G_near=G, G_far=G)


add_method(
    "mvlsa",
    MVLSA,
    "closed-form MAX-VAR GCCA of views truncated to rank m",
    label="MVLSA",
    papers=("gcca",),
    look=("green", "P"),
)
