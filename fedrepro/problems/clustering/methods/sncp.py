r"""SNCP: successive non-convex penalties, a loop around a factorization method that makes H a cluster assignment.

Problem: X = W H is a clustering if every column of H has at most one nonzero entry. The penalty of
``fedrepro.problems.clustering``, :math:`\frac{\rho}{2} \sum_j ((1^T h_j)^2 - \|h_j\|^2)`, is zero exactly for such H.
SNCP raises rho from a tiny value while the method continues from its current point (Wang, Chang, Cui and Pang,
Algorithm 1; fedmf section V-F; fedc section V-D):

    rho <- rho0
    after every round s = 1, 2, ... of the method, with F_s the objective at the rho in force in that round:
        eps = |F_s - F_{s-1}| / F_{s-1}                        jumps in the round after rho was raised
        if eps < stop or s = limit: end
        if eps < tol or s is a multiple of period: rho <- min(factor rho, cap)

Rounds are counted over all penalties, so a diminishing Q2 = floor(Qhat/s) + 1 is not reset when rho is raised. rho0 and
cap are relative to ||X||_F^2 / N (docs/derivations/sncp.md). ``tol`` and ``stop`` of the federated methods are from the
papers (discrepancy fedc.3). Period, cap and limit, and all settings of the centralized ``sncp``, are from the authors'
program, because the papers do not state them (discrepancy fedmf.7, discrepancy fedmf.33).

The centralized benchmark ``sncp`` is this loop around PALM with one H step and one W step per iteration; it sends
nothing.

Source: Wang, Chang, Cui and Pang, "Clustering by Orthogonal NMF Model and Non-Convex Penalty Optimization",
Algorithm 1; fedmf section V-F; fedc section V-D; docs/derivations/sncp.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from fedrepro.errors import ParameterError
from fedrepro.ledger import Ledger
from fedrepro.parameters import Number, Whole
from fedrepro.problems.clustering.methods.fedmavg import FedMAvg
from fedrepro.problems.clustering.methods.fedmgs import FedMGS
from fedrepro.problems.clustering.problem import Clustering
from fedrepro.problems.clustering.state import State
from fedrepro.protocols import Cost, Method
from fedrepro.registry import add_method
from fedrepro.seeds import Rng


@dataclass(frozen=True)
class SNCP:
    """The loop as a base class before a method's class; a subclass has the parameters of both.

    tol : rho is raised after a round with eps < tol. factor : factor by which rho is raised.
    rho0 : first rho, relative to ||X||^2/N. cap : largest rho, relative to ||X||^2/N, at least rho0.
    period : rho is also raised after every ``period``-th round; None for never.
    limit : largest number of rounds; None for no limit. stop : the run ends after a round with eps < stop.
    """

    tol: Annotated[float, Number(least=0.0)] = 1e-5
    factor: Annotated[float, Number(above=1.0)] = 1.5
    rho0: Annotated[float, Number(above=0.0)] = 1e-8
    cap: Annotated[float, Number(above=0.0)] = 100.0
    period: Annotated[int | None, Whole()] = 200
    limit: Annotated[int | None, Whole()] = 2000
    stop: Annotated[float, Number(least=0.0)] = 1e-8

    def __post_init__(self) -> None:
        """Raise ParameterError where a value cannot work."""
        super().__post_init__()  # type: ignore[misc]  # the method's own parameters
        if self.cap < self.rho0:
            raise ParameterError("cap", f"must be at least rho0 = {self.rho0:g}, not {self.cap:g}")

    def rounds(
        self, problem: Clustering, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[State]:
        """Yield the method's states, each with the rho of its round.

        init : (W0, H0), (M, K) and (K, N). clients : ids instead of draws, as in the method.
        """
        states = super().rounds(problem, rng, ledger=ledger, init=init, clients=clients)  # type: ignore[misc]
        before = 0.0
        for s, state in enumerate(states):
            if s == 0:
                state.rho = self.rho0
            F = problem.objective(state)
            yield state
            if s > 0:
                change = abs(F - before)  # eps F_{s-1}
                if change < self.stop * before or s == self.limit:
                    return
                if change < self.tol * before or (self.period is not None and s % self.period == 0):
                    state.rho = min(self.factor * state.rho, self.cap)
            before = F


@dataclass(frozen=True)
class PALM(Method):
    """Proximal alternating linearized minimization on all data in one place.

    One H and one W step per iteration (fedmf (15), (16) with one client; Algorithm 2 of the SNCP paper), steps
    gamma/2 times the Lipschitz constants. gamma : safety factor of both steps.
    """

    silent: ClassVar[bool] = True

    gamma: Annotated[float, Number(least=1.0)] = 1.02

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """The cost of FedMGS with all clients and one step on each factor."""
        return FedMGS.cost({"m": None, "Q1": 1, "Q2": 1}, facts)

    def rounds(
        self, problem: Clustering, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[State]:
        """Yield the state at the initial point and after every iteration; nothing is sent, no client is drawn."""
        if clients is not None:
            raise ParameterError("clients", "the method is centralized: there is no draw to replay")
        method = FedMGS(Q1=1, Q2=1, gamma1=self.gamma, gamma2=self.gamma)
        return method.rounds(problem, rng, ledger=Ledger(), init=init)


@dataclass(frozen=True)
class FedMAvgSNCP(SNCP, FedMAvg):
    """FedMAvg under SNCP: the parameters of both.

    >>> import numpy as np
    >>> from fedrepro import Clustering, FedMAvgSNCP, run
    >>> labels = np.arange(60) % 3
    >>> X = np.eye(5, 3)[:, labels] + 0.1 * np.random.default_rng(0).random((5, 60))
    >>> problem = Clustering(X, np.arange(60) % 4, K=3, labels=labels)
    >>> history = run(FedMAvgSNCP(m=4, Q1=5, Q2=1), problem, rounds=300, metrics=["accuracy", "rho"])
    >>> round(float(history["accuracy"][-1]), 2), bool(history["rho"][-1] > history["rho"][0])
    (1.0, True)
    """

    raises: ClassVar[bool] = True


@dataclass(frozen=True)
class FedMGSSNCP(SNCP, FedMGS):
    """FedMGS under SNCP: the parameters of both.

    >>> import numpy as np
    >>> from fedrepro import Clustering, FedMGSSNCP, run
    >>> labels = np.arange(60) % 3
    >>> X = np.eye(5, 3)[:, labels] + 0.1 * np.random.default_rng(0).random((5, 60))
    >>> problem = Clustering(X, np.arange(60) % 4, K=3, labels=labels)
    >>> history = run(FedMGSSNCP(m=2, Q1=5, Q2=10), problem, rounds=200, metrics=["accuracy", "rho"])
    >>> round(float(history["accuracy"][-1]), 2), bool(history["rho"][-1] > history["rho"][0])
    (1.0, True)
    """

    raises: ClassVar[bool] = True


@dataclass(frozen=True)
class CentralizedSNCP(SNCP, PALM):
    """PALM under SNCP: the parameters of both.

    >>> import numpy as np
    >>> from fedrepro import Clustering, CentralizedSNCP, run
    >>> labels = np.arange(60) % 3
    >>> X = np.eye(5, 3)[:, labels] + 0.1 * np.random.default_rng(0).random((5, 60))
    >>> problem = Clustering(X, np.arange(60) % 4, K=3, labels=labels)
    >>> history = run(CentralizedSNCP(), problem, rounds=200, metrics=["accuracy", "rho"])
    >>> round(float(history["accuracy"][-1]), 2), bool(history["rho"][-1] > history["rho"][0])
    (1.0, True)
    """

    raises: ClassVar[bool] = True


add_method(
    "fedmavg-sncp",
    FedMAvgSNCP,
    "FedMAvg with rho raised by SNCP, for clustering",
    label="FedMAvg",
    papers=("fedmf",),
    preset={"tol": 1e-5, "period": 200, "cap": 100.0, "limit": 2000},
    suffix="SNCP",
)
add_method(
    "fedmgs-sncp",
    FedMGSSNCP,
    "FedMGS with rho raised by SNCP, for clustering",
    label="FedMGS",
    papers=("fedmf",),
    preset={"tol": 5e-5, "period": 200, "cap": 1.0, "limit": 1000},
    suffix="SNCP",
)
add_method(
    "fedcavg-sncp",
    FedMAvgSNCP,
    "FedCAvg with rho raised by SNCP, at fedc's tolerance for synthetic data",
    label="FedCAvg",
    papers=("fedc",),
    preset={"tol": 2e-5, "period": 200, "cap": 100.0, "limit": 2000, "m": None},
    suffix="SNCP",
)
add_method(
    "fedcgds-sncp",
    FedMGSSNCP,
    "FedCGds with rho raised by SNCP, at fedc's tolerance for synthetic data",
    label="FedCGds",
    papers=("fedc",),
    preset={"tol": 2e-5, "period": 200, "cap": 1.0, "limit": 1000, "Q1": 100},
    suffix="SNCP",
)
add_method(
    "sncp",
    CentralizedSNCP,
    "SNCP on all data in one place, one H and one W step per iteration",
    label="SNCP (centralized)",
    papers=("fedmf", "fedc"),
    preset={"tol": 1e-5, "period": 500, "cap": 100.0, "limit": 2000},
    look=("black", "D"),
)
