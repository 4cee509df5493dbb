r"""FedAvg for factor models on the problem ``imc``: local steps on single entries, factors averaged by the server.

A client with input z (its side information, or a substitute) takes tau steps on items i sampled from its own:

    e = u_i . (V^T z) - L*[i, m],    u_i <- u_i - eta e V^T z,    V <- V - eta e z u_i^T      perfedsi (11), (12)

with the old u_i and V on both right-hand sides. The gradient of a single entry lacks the factor d that would make it
unbiased, so eta here is d times the eta of an unbiased step.

Source: perfedsi (11), (12), Appendix C.1; docs/derivations/imc-step.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fedrepro.errors import UserError
from fedrepro.parameters import AtMost, Number, Whole
from fedrepro.problems.imc.problem import IMC
from fedrepro.protocols import Cost, Method, Work
from fedrepro.seeds import Rng, Streams


@dataclass(frozen=True)
class FactorAveraging(Method):
    """The parameters of both methods.

    eta : step size. tau : local steps per client and round. m : clients per round, 1 .. M; None for all.
    replacement : whether clients are drawn with replacement, as in perfedsi Assumption C.1; a client drawn twice takes
    part as two clients, each with its own steps.

    The paper states none of the first three (discrepancy perfedsi.13, docs/derivations/imc-instances.md#settings); for
    the last see discrepancy perfedsi.23.
    """

    eta: Annotated[float, Number(above=0.0)] = 1.0
    tau: Annotated[int, Whole()] = 20
    m: Annotated[int | None, Whole(), AtMost("M", "clients")] = 4
    replacement: bool = False

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """The cost of steps on single entries, whose calls take longer than their arithmetic."""
        m = facts["M"] if params["m"] is None else params["m"]
        return Cost(Work(calls=200.0), Work(singles=m * facts["N"] * 20.0, calls=18.0 * params["tau"] + 70.0), 1e6)

    def draws(self, problem: IMC, streams: Streams, clients: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The clients of each round, (m,), and the items of their steps, (m, tau); ends after the given clients."""
        m = problem.M if self.m is None else self.m
        replayed = None if clients is None else iter(_checked(clients, m, problem.M))
        while True:
            drawn = self._drawn(streams.clients, problem.M, m) if replayed is None else next(replayed, None)
            if drawn is None:
                return
            place = streams.minibatch.integers(problem.items.shape[1], size=(m, self.tau))
            yield drawn, np.take_along_axis(problem.items[drawn], place, axis=1)

    def _drawn(self, rng: Rng, M: int, m: int) -> np.ndarray:
        return rng.integers(M, size=m) if self.replacement else rng.permutation(M)[:m]


def _checked(clients: Any, m: int, M: int) -> np.ndarray:
    draws = np.asarray(clients)
    if draws.ndim != 2 or draws.shape[1] != m or draws.dtype.kind not in "iu":
        raise UserError(f"clients: must be integers of shape (rounds, m = {m}), not {draws.dtype} {draws.shape}")
    if draws.size and (draws.min() < 0 or draws.max() >= M):
        raise UserError(f"clients: ids must lie between 0 and {M - 1}")
    return draws


def local_steps(
    U: np.ndarray,
    V: np.ndarray,
    z: np.ndarray,
    items: np.ndarray,
    targets: np.ndarray,
    eta: float,
    learn_V: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """The local steps of m clients in parallel: their U, (m, d, r), and g, (m, r), where a client's V is V + z g^T.

    z : (m, q). items, targets : (m, tau), the items of the steps and their entries of L*. Every step changes V only
    along z, so g determines the change of V, and V^T z changes by |z|^2 g.
    """
    m, tau = items.shape
    Us, g = np.repeat(U[None], m, axis=0), np.zeros((m, U.shape[1]))
    w0, size = z @ V, np.einsum("mq,mq->m", z, z)[:, None]
    clients = np.arange(m)
    with np.errstate(over="ignore", invalid="ignore"):
        for s in range(tau):
            u, w = Us[clients, items[:, s]], w0 + size * g
            step = eta * (np.einsum("mr,mr->m", u, w) - targets[:, s])[:, None]
            Us[clients, items[:, s]] = u - step * w  # perfedsi (11)
            if learn_V:
                g -= step * u  # perfedsi (12)
    return Us, g
