r"""FedMAvg and FedMGS with quantized uplinks, with and without error feedback.

Problem and rounds are those of ``fedmavg`` and ``fedmgs``; only the messages of the clients differ. For a change D, a
client sends C(D + e), where C is the max-norm quantizer with q bits per entry (``fedrepro.compression.compressors``),
and keeps e <- D + e - C(D + e) for its next message (``feedback: true``), or it sends C(D) and discards the error:

    FedMAvg   D = W_p - W, the change of W by the client's local steps
              the server: W <- clip(W + sum_p weight_p C_p), weights as in fedmf (8), (10)
    FedMGS    D = U_p and D = V_p, the changes of H_p H_p^T and X_p H_p^T (fedc, Algorithm 2), each a message
              the server adds them to its G1 and G2, which are exact at the start, and takes the symmetric part of G1

With feedback the errors of a client do not add up: after any number of rounds, the sum of its messages differs from the
sum of its changes only by the last e. For e to stay small, the error of C must be smaller than the matrix, so the
quantizer is scaled down by gcca Fact 1 (``u: bound``). Without feedback it is unbiased (u = 1).

Each matrix counts q bits per entry and 32 for the step, a number of single precision. With q null each entry counts 32
bits, nothing is lost, and the numbers are those of the unquantized method. The objective is measured at the true H, not
at the server's statistics of it.

Source: fedmf, fedc (the methods); Shrestha and Fu, Sec. III-B, III-C.2 (the quantizer and its feedback);
docs/derivations/error-feedback.md, docs/derivations/local-loop.md.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fedrepro.compression.compressors import BITS, SCALES, Compressor, ErrorFeedback, Identity, MaxNorm, Message
from fedrepro.ledger import Ledger
from fedrepro.problems.clustering import descent
from fedrepro.problems.clustering.methods.fedmavg import FedMAvg
from fedrepro.problems.clustering.methods.fedmgs import FedMGS
from fedrepro.problems.clustering.problem import Clustering
from fedrepro.problems.clustering.state import State
from fedrepro.protocols import Cost, Work
from fedrepro.registry import add_method
from fedrepro.seeds import Rng, streams


@dataclass(frozen=True)
class Quantized:
    """Quantized uplinks as a base class before a method's class; a subclass has the parameters of both.

    q : bits per entry; None for no quantization. feedback : whether a client adds the error of its last message to the
    next one. u : scale of the quantizer, or ``bound``; None for ``bound`` with feedback and 1 without.
    """

    q: Annotated[int | None, BITS] = 4
    feedback: bool = True
    u: Annotated[float | str | None, SCALES] = None

    def compressor(self) -> Compressor:
        """The quantizer C."""
        if self.q is None:
            return Identity()
        scale: float | str = "bound" if self.feedback else 1.0
        return MaxNorm(self.q, scale if self.u is None else self.u)

    def senders(self, problem: Clustering, rng: Rng) -> list[Sender]:
        """One sender per client; ``rng`` is not changed, so client draws are those of the unquantized method."""
        noise = streams(copy.deepcopy(rng)).compressor.spawn(problem.P)
        return [Sender(self.compressor(), self.feedback, own) for own in noise]


def sending(params: Mapping[str, Any], facts: Mapping[str, Any], cost: Cost) -> Cost:
    """A method's cost plus that of its clients' quantized messages of M K numbers, with their kept errors."""
    m, size = descent.at_work(facts, params["m"]), facts["M"] * facts["K"]
    messages = Work(singles=(0.0 if params["q"] is None else 12.0) * m * size, calls=60.0 * m)
    memory = cost.holds + 16.0 * facts["P"] * size
    return Cost(cost.start, cost.round + messages, memory, ("numba",) if params["q"] else ())


class Sender:
    """One client's end of its uplink: the noise that it draws, and the error of each kind of message."""

    def __init__(self, compressor: Compressor, feedback: bool, noise: Rng) -> None:
        self.compressor, self.noise = compressor, noise
        self.feedback = feedback and not compressor.exact
        self.lossy: dict[str, ErrorFeedback] = {}

    def send(self, kind: str, D: np.ndarray) -> Message:
        """The message for a change D; all messages of one kind have the same shape."""
        if not self.feedback:
            return self.compressor.compress(D, self.noise)
        if kind not in self.lossy:
            self.lossy[kind] = ErrorFeedback(self.compressor, D.shape)
        return self.lossy[kind].send(D, self.noise)


@dataclass(frozen=True)
class FedMAvgQuantized(Quantized, FedMAvg):
    """FedMAvg with quantized uplinks: the parameters of FedMAvg, q, feedback and u.

    >>> import numpy as np
    >>> from fedrepro import Clustering, FedMAvgQuantized, run
    >>> X = np.random.default_rng(0).random((5, 60))
    >>> problem = Clustering(X, np.arange(60) % 4, K=3)
    >>> history = run(FedMAvgQuantized(m=2, Q1=5, Q2=1, q=4), problem, rounds=10)
    >>> bool(history["uplink_bits"][-1] < 32 * history["uplink_scalars"][-1])
    True
    """

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """The cost of FedMAvg and of the messages."""
        return sending(params, facts, FedMAvg.cost(params, facts))

    def rounds(
        self, problem: Clustering, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[State]:
        """Yield the state at the initial point and after every round; arguments as for FedMAvg."""
        self.check(P=problem.P)
        ledger = Ledger() if ledger is None else ledger
        senders = self.senders(problem, rng)
        state = problem.start(init, rng)
        yield state
        for s, (ids, times, weights) in enumerate(self._draws(problem, rng, clients), start=1):
            everybody = self.participation == "pcc" or ids.size == problem.P
            ledger.down(problem.M * problem.K, kind="W", clients=problem.P if everybody else ids.size)
            if everybody:
                descent.update_all(problem, state, self.gamma1, self.Q1, share=False)  # fedmf (11)
            else:
                steps = {int(p): self.Q1 * (int(r) if self.pcp_repeat else 1) for p, r in zip(ids, times, strict=True)}
                descent.update_some(problem, state, self.gamma1, ids, steps)
            moved = state.W.copy()
            for p, r, weight, D in zip(ids, times, weights, self._changes(problem, state, s, ids), strict=True):
                message = senders[p].send("W_p", D)
                ledger.up(D.size, kind="W_p", bits=message.bits, clients=int(r))
                moved += weight * message.values
            np.clip(moved, problem.w_min, problem.w_max, out=state.W)  # fedmf (8), (10)
            state.XW = None
            yield state
            if not descent.finite(state):
                return

    def _changes(self, problem: Clustering, state: State, s: int, ids: np.ndarray) -> Iterator[np.ndarray]:
        """W_p - W = (2/N_p X_p H_p^T - W B_p) M_p of each client, fedmf (13) in closed form (see ``fedmavg``)."""
        scale = 2.0 / problem.sizes[ids]
        B = scale[:, None, None] * problem.grams(state, ids)
        M = descent.local_steps(B, self._step(problem, state, s, B), self.local_length(s))
        with np.errstate(over="ignore", invalid="ignore"):
            for i, p in enumerate(ids):
                part = problem.client(p)
                XH = np.asarray(problem.samples(part).T @ state.Hs[part])
                yield (scale[i] * XH - state.W @ B[i]) @ M[i]


@dataclass(frozen=True)
class FedMGSQuantized(Quantized, FedMGS):
    """FedMGS with quantized uplinks: the parameters of FedMGS, q, feedback and u.

    >>> import numpy as np
    >>> from fedrepro import Clustering, FedMGSQuantized, run
    >>> X = np.random.default_rng(0).random((5, 60))
    >>> problem = Clustering(X, np.arange(60) % 4, K=3)
    >>> history = run(FedMGSQuantized(m=2, Q1=5, Q2=10, q=4), problem, rounds=10)
    >>> bool(history["uplink_bits"][-1] < 32 * history["uplink_scalars"][-1])
    True
    """

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """The cost of FedMGS and of the messages."""
        return sending(params, facts, FedMGS.cost(params, facts))

    def rounds(
        self, problem: Clustering, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[State]:
        """Yield the state at the initial point and after every round; arguments as for FedMGS."""
        M, K, P = problem.M, problem.K, problem.P
        self.check(P=P)
        ledger = Ledger() if ledger is None else ledger
        senders = self.senders(problem, rng)
        state = problem.start(init, rng)
        problem.refresh(state)
        assert state.XH is not None
        G1, G2, state.XH = state.HH, state.XH, None  # the server's, times N/2; the state keeps the true ones
        ledger.up(M * K + K * K, kind="G1, G2", clients=P, setup=True)
        yield state
        for active in self._active(rng, P, clients):
            ids = range(P) if active is None else active
            ledger.down(M * K, kind="W", clients=len(ids))
            for p, U, V in self._changes(problem, state, ids):
                for kind, D, G in (("H H^T", U, G1), ("X H^T", V, G2)):
                    message = senders[p].send(kind, D)
                    ledger.up(D.size, kind=kind, bits=message.bits)
                    G += message.values
            state.HH = state.Hs.T @ state.Hs
            symmetric = 0.5 * (G1 + G1.T)
            d = max(0.5 * self.gamma2 * descent.lambda_max(symmetric), 0.0)  # fedmf V-A; no step on noise alone
            descent.descend_W(problem, state.W, symmetric, G2, d, self.Q2)  # fedmf (30)
            state.XW = None
            yield state
            if not descent.finite(state):
                return

    def _changes(
        self, problem: Clustering, state: State, ids: range | np.ndarray
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Take Q1 H steps of each client, fedmf (28); yield the changes U_p of H_p H_p^T and V_p of X_p H_p^T."""
        S, a = descent.h_step(problem, state.W, state.rho, self.gamma1)
        for p in ids:
            part = problem.client(p)
            X, H = problem.samples(part), state.Hs[part]
            before = H.copy()
            descent.descend_H(H, a * (state.XW[part] if state.XW is not None else X @ state.W), S, self.Q1)
            yield int(p), H.T @ H - before.T @ before, np.asarray(X.T @ (H - before))


add_method(
    "fedmavg-quantized",
    FedMAvgQuantized,
    "FedMAvg whose clients send their steps in q bits per entry",
    label="FedMAvg, quantized",
    papers=("beyond",),
)
add_method(
    "fedmgs-quantized",
    FedMGSQuantized,
    "FedMGS whose clients send their changes in q bits per entry",
    label="FedMGS, quantized",
    papers=("beyond",),
)
