r"""Alternating least squares on all ratings in one place: the centralised reference for matrix completion.

Problem: :math:`\min F(U, V)` with squared l2 regularisers (``fedrepro.problems.completion``). A round solves both
subproblems exactly, row by row, so F never increases:

    u_t <- ( sum_j v_j v_j^T + lam I )^-1 sum_j M_tj v_j              over the items j that user t rated
    v_j <- ( sum_t u_t u_t^T / p + gam I )^-1 sum_t M_tj u_t / p      over the users t who rated item j

A user or item without training ratings is set to 0. F divides the data term by the number of clients p, hence the 1/p;
the clients have no other role, and nothing is sent.

Source: the classical method for the centralised problem (fedmc, section 2); reference in beyond/fedmc_sensitivity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedrepro.errors import ParameterError
from fedrepro.ledger import Ledger
from fedrepro.problems.completion.problem import Completion, bucketing
from fedrepro.problems.completion.rating_buckets import Buckets
from fedrepro.problems.completion.state import State
from fedrepro.protocols import Cost, Method, Work
from fedrepro.registry import add_method
from fedrepro.seeds import Rng, streams


@dataclass(frozen=True)
class ALS(Method):
    """Alternating least squares. It has no parameters; lam and gam of the problem must be greater than 0.

    >>> import numpy as np
    >>> from fedrepro import Completion, Ratings, ALS, run
    >>> user, item = np.divmod(np.arange(96), 8)
    >>> data = Ratings(user, item, 1.0 + (user + item) % 5, users=12, items=8)
    >>> problem = Completion(data, np.arange(12) % 3, r=2, lam=0.1, gam=0.1, init=0.5)
    >>> history = run(ALS(), problem, rounds=5)
    >>> bool((np.diff(history["objective"]) <= 1e-9).all())  # it never rises
    True
    """

    silent: ClassVar[bool] = True

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """Gram matrices of all ratings by user and by item, and a small system for each row."""
        users, items, r = facts["users"], facts["items"], facts["r"]
        solves = Work(singles=(users + items) * (0.3 * r**3 + 2.0 * r * r))
        start = Work(singles=30.0 * facts["ratings"] + 5.0 * (users + items) * r, calls=200.0)
        both = bucketing(facts, 1.0, users, 0.0) + bucketing(facts, 1.0, items, 0.0)
        return Cost(start, both + solves, 5.0 * facts["ratings"] + 40.0 * (users + items) * r, ("numba",))

    def rounds(
        self, problem: Completion, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[State]:
        """Yield the state at the initial point and after every round; one object, updated in place.

        init : (U0, V0), (users, r) and (n, r); the first half round replaces U0. Raises ParameterError for l1
        regularisers, and if lam or gam is too small for a row to be solved.
        """
        if problem.reg != "l2":
            raise ParameterError("reg", "alternating least squares needs reg: l2")
        for name in ("lam", "gam"):
            if getattr(problem, name) <= 0.0:
                raise ParameterError(name, "must be greater than 0 for exact row solves")
        state = problem.start(init, streams(rng).other)
        yield state
        while True:
            _solve(problem, problem.train, state.U, state.V, "lam", problem.lam, 1.0)
            _solve(problem, problem.columns, state.V, state.U, "gam", problem.gam, 1.0 / problem.p)
            state.work += 1.0
            yield state


def _solve(
    problem: Completion, buckets: Buckets, X: np.ndarray, P: np.ndarray, name: str, mu: float, delta: float
) -> None:
    """Replace every row of X by the solution of (delta G + mu I) x = delta b, with G and b of its bucket (r x r, r)."""
    from fedrepro.problems.completion.kernels import solve_rows

    def part(rows: slice) -> int:
        return solve_rows(X[rows], P, *buckets.part(rows), problem.levels, mu=mu, delta=delta)

    failed = sum(problem.each(part, problem.blocks(buckets)))
    if failed:
        raise ParameterError(name, f"is too small: {failed} row systems cannot be solved at {mu:g}")


add_method(
    "als",
    ALS,
    "Alternating least squares on all ratings in one place, a reference without communication",
    label="ALS (centralised)",
    papers=("fedmc",),
    look=("grey", "s"),
)
