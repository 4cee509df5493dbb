"""The federated loop of MAX-VAR GCCA for linear and deep nodes: links, compressed messages and the server's step.

The linear and the deep methods differ only in how a node improves its parameters for a given G, eq. (11). A ``Node``
does this step and returns its representation M_i = Q(X_i; theta_i). The server receives J x K matrices over links,
never a view.

Source: Shrestha and Fu, Algorithm 1 (CuteMaxVar) and eq. (8)-(17); docs/derivations/error-feedback.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fedrepro.compression.compressors import Compressor, Identity, Link, MaxNorm, TopK
from fedrepro.errors import ParameterError
from fedrepro.ledger import Ledger
from fedrepro.multiview.maxvar import server_step
from fedrepro.parameters import OneOf
from fedrepro.protocols import Work
from fedrepro.seeds import Rng

CENTERINGS = OneOf("none", "sum", "estimate")
DIRECTIONS = OneOf("both", "uplink")
COMPRESSORS = OneOf("quantizer", "top-k")


class Node(Protocol):
    """One view and its parameters theta_i; the server receives only the messages of its link."""

    def represent(self) -> np.ndarray:
        """M_i = Q(X_i; theta_i), a new (J, K) array."""

    def parameters(self) -> Any:
        """theta_i, in arrays that later updates leave unchanged."""

    def update(self, G: np.ndarray) -> None:
        """Improve theta_i for the target G (J, K), eq. (11)."""


@dataclass(frozen=True)
class State:
    """The state after a round.

    theta : parameters of each node (linear: Q_i, (N_i, K)). M : the true M_i = Q(X_i; theta_i), (J, K) each.
    G : the server's G, (J, K); G'G = I, except for a start that was given or is ``randn-raw``. near, far : estimates of
    M_i at the node and at the server, (J, K) each.
    G_near, G_far : the estimate of G at the server and at the nodes, (J, K).
    """

    theta: list[Any]
    M: list[np.ndarray]
    G: np.ndarray
    near: list[np.ndarray]
    far: list[np.ndarray]
    G_near: np.ndarray
    G_far: np.ndarray

    @property
    def Q(self) -> list[Any]:
        """The linear operators, as the papers call theta in the linear case."""
        return self.theta


@dataclass(frozen=True)
class Sending:
    """How matrices are sent: ``up`` and ``down`` compress a node's and the server's messages."""

    up: Compressor
    down: Compressor
    error_feedback: bool = True


def centered(M: np.ndarray) -> np.ndarray:
    """(I - 11'/J) M."""
    return np.asarray(M - M.mean(axis=0))


def federated_rounds(
    nodes: Sequence[Node],
    sending: Sending,
    *,
    rng: Rng,
    ledger: Ledger | None = None,
    G: np.ndarray | None = None,
    rho: float = 0.0,
    center: str = "none",
) -> Iterator[State]:
    """Yield the state of Algorithm 1 at the initial point and after every round, without end.

    nodes : nodes with initial parameters. G : G^(0); None for eq. (9). rng : source of the compressors' draws; each
    link has its own stream. rho : 1 / alpha_G of eq. (14). center : ``none``; ``sum``, eq. (15); ``estimate``: both
    ends subtract the column means from their estimate of M_i after each message (the authors' deep code).

    The ledger's clock counts (11), M_i and the compression in (12) as a node's work, and the rest as the server's.
    """
    ledger = Ledger() if ledger is None else ledger
    *streams, down_stream = rng.spawn(len(nodes) + 1)
    M = ledger.clock.each(lambda node: node.represent(), nodes)
    uplinks = [Link(sending.up, M_i, sending.error_feedback) for M_i in M]
    size = M[0].size
    ledger.up(size, kind="M at the start", clients=len(nodes))  # in full, Sec. III-C.1
    _center_estimates(uplinks, center)
    if G is None:
        G = server_step([link.far for link in uplinks], None, 0.0, center == "sum")
    downlink = Link(sending.down, G, sending.error_feedback)
    ledger.down(size, kind="G at the start", clients=len(nodes))
    while True:
        yield _state(nodes, M, G, uplinks, downlink)
        M = []
        with ledger.clock.nodes() as at:
            for i, (node, link, stream) in enumerate(zip(nodes, uplinks, streams, strict=True)):
                with at(i):
                    node.update(downlink.far)  # eq. (11)
                    M.append(node.represent())
                    message = link.send(M[-1], stream)  # eq. (12)
                ledger.up(size, kind="M", bits=message.bits)
                link.receive(message)  # eq. (13)
        _center_estimates(uplinks, center)
        G = server_step([link.far for link in uplinks], G, rho, center == "sum")  # eq. (14)-(16)
        message = downlink.send(G, down_stream)  # eq. (17), one message for all nodes
        ledger.down(size, kind="G", bits=message.bits, clients=len(nodes))
        downlink.receive(message)


def _center_estimates(uplinks: Sequence[Link], center: str) -> None:
    if center == "estimate":
        for link in uplinks:
            link.adjust(centered)


def _state(nodes: Sequence[Node], M: list[np.ndarray], G: np.ndarray, uplinks: Sequence[Link], downlink: Link) -> State:
    return State(
        theta=[node.parameters() for node in nodes],
        M=M,
        G=G,
        near=[link.near for link in uplinks],
        far=[link.far for link in uplinks],
        G_near=downlink.near,
        G_far=downlink.far,
    )


def sending(
    q: int | None, compressor: str, kept: float, u: float | str, directions: str, error_feedback: bool
) -> Sending:
    """The compressors that a method's parameters ask for.

    q : bits, None for no quantization. compressor : ``quantizer`` (with q and u) or ``top-k`` (with kept).
    directions : ``both``, or ``uplink`` where G is sent in full.
    """
    up: Compressor
    if compressor == "top-k":
        up = TopK(kept)
    else:
        up = Identity() if q is None else MaxNorm(q, u)
    return Sending(up, up if directions == "both" else Identity(), error_feedback)


def compresses(params: Mapping[str, Any]) -> bool:
    """Whether messages are quantized or sparsified."""
    return params.get("q") is not None or params.get("compressor") == "top-k"


def exchanging(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Work:
    """The work of a round's messages and the server's step: a J x K matrix up per view, and one down."""
    J, K, views = facts["J"], facts["K"], facts["I"]
    quantized = compresses(params)
    message = Work(singles=(10.0 if quantized else 3.0) * J * K, calls=40.0 if quantized else 15.0)
    return (views + 1.0) * message + Work(flops=4.0 * J * K * K + 60.0 * K**3, calls=60.0)


def batch_within(b: int | None, J: int) -> None:
    """Raise ParameterError if a minibatch is larger than the data."""
    if b is not None and b > J:
        raise ParameterError("b", f"must be at most the number of rows J = {J}, not {b}; null uses the full gradient")
