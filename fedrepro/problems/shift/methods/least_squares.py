r"""Closed-form solutions of the regression toy; they have no rounds and yield one state.

Problem: perfedsi (8) (``fedrepro.problems.shift``).

* ``shift-fedavg-exact``, ``shift-perfedsi-exact``: the minimizer of (8) over all clients' samples, without and with
  side information: the limit of FedAvg with tau = 1 and all clients in every round;
* ``shift-local``: each client's own least squares solution (of least norm if it has too few samples);
* ``shift-theory``: the solution of (8) for infinitely many samples, :math:`(\theta_*, \bar b)`, of excess risk
  :math:`\frac12 Var(b)`.

Source: perfedsi Appendix B; docs/derivations/shift-regression.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from fedrepro.ledger import Ledger
from fedrepro.parameters import OneOf
from fedrepro.problems.shift.problem import Shift, State
from fedrepro.protocols import Cost, Method, Work
from fedrepro.registry import add_method
from fedrepro.seeds import Rng

SOLUTIONS = ("global", "side", "local", "theory")


@dataclass(frozen=True)
class ShiftExact(Method):
    """Solutions in closed form.

    solution : ``global``, ``side`` (global, with side information), ``local`` or ``theory``.

    >>> import numpy as np
    >>> from fedrepro import Biased, Shift, ShiftExact, run
    >>> rng = np.random.default_rng(0)
    >>> x, z = rng.standard_normal((6, 4, 3)), rng.standard_normal((6, 2))
    >>> data = Biased(x, 0.1 * rng.standard_normal((6, 4)), rng.standard_normal(3), z @ [1.0, 0.5], z)
    >>> problem = Shift(data, sigma_b=2.0)
    >>> without, beside = (run(ShiftExact(s), problem, rounds=1)["excess_risk"] for s in ("global", "side"))
    >>> bool(beside[-1] < without[-1])  # z determines the biases here
    True
    """

    solution: Annotated[str, OneOf(*SOLUTIONS)] = "global"
    one_shot: ClassVar[bool] = True  # it has no rounds: predictions of its time count one
    silent: ClassVar[bool] = True

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """The cost of one least squares problem, or of one per client."""
        calls = 40.0 * facts["M"] if params["solution"] == "local" else 100.0
        return Cost(Work(singles=20.0 * facts["M"] * facts["N"], calls=calls), holds=1e6)

    def rounds(
        self, problem: Shift, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[State]:
        """Yield the solution."""
        if self.solution == "theory":
            yield State(problem.theta, np.full(problem.M, problem.b.mean()))
        elif self.solution == "local":
            own = [np.linalg.lstsq(A, y, rcond=None)[0] for A, y in zip(problem.design(False), problem.y, strict=True)]
            yield State(np.array(own)[:, :-1], np.array(own)[:, -1])
        else:
            A = problem.design(self.solution == "side")
            yield problem.state(np.linalg.lstsq(A.reshape(-1, A.shape[2]), problem.y.ravel(), rcond=None)[0])


add_method(
    "shift-fedavg-exact",
    ShiftExact,
    "The best model for all clients' samples",
    label="FedAvg, least squares",
    papers=("perfedsi",),
    preset={"solution": "global"},
)
add_method(
    "shift-perfedsi-exact",
    ShiftExact,
    "The same, with side information as inputs",
    label="PerFedSI, least squares",
    papers=("perfedsi",),
    preset={"solution": "side"},
)
add_method(
    "shift-local",
    ShiftExact,
    "Each client's own least squares",
    label="Local",
    papers=("perfedsi",),
    preset={"solution": "local"},
)
add_method(
    "shift-theory",
    ShiftExact,
    "The best global model for infinitely many samples",
    label="½ Var(b)",
    papers=("perfedsi",),
    preset={"solution": "theory"},
    look=("black", "|"),
)
