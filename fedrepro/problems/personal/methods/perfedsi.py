r"""PerFedSI: FedAvg on a network with client side information as an additional input.

Problem: :math:`\min_\theta \sum_m (n_m / N) L_m(f_\theta(\cdot, z_m))`, all of
:math:`\theta` shared (perfedsi (1), (2)).

* ``perfedsi``, Model 1, concatenation (3): :math:`f = H_3([G_1(x), W_2(z)])`;
* ``perfedsi-mask``, Model 2, elementwise product (4): :math:`f = H_3(G_1(x) \odot W_2(z))`.

Model 1 ignores z if W_2 is zero, and Model 2 if W_2 is one (Remark 2.2). :math:`z_m` is never sent: a message contains
FedAvg's model, the weights of W_2 if it has any, and, in Model 1, H's part for W_2 (``side.head``). A round is that of
FedAvg (``fedrepro.problems.personal.local_training``).

Source: perfedsi sections 2 and 4, Appendix D; docs/derivations/personal-networks.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fedrepro.errors import ParameterError
from fedrepro.ledger import Ledger
from fedrepro.nets.convnet import MASKED, MASKS, SIDE_NORMS, Net
from fedrepro.parameters import OneOf
from fedrepro.problems.personal.local_training import LocalTraining, average, begin, run
from fedrepro.problems.personal.problem import Personal, State
from fedrepro.protocols import Cost
from fedrepro.registry import add_method
from fedrepro.seeds import Rng, streams

NO_SIDE = (
    "must not be none for PerFedSI: set the problem's side to group or shift, or take the problem personal-side for "
    "images with side information of their own"
)


@dataclass(frozen=True)
class _PerFedSI(LocalTraining):
    def net(self, problem: Personal) -> Net:
        """The network that takes z."""
        raise NotImplementedError

    def check(self, **facts: Any) -> None:
        """Raise ParameterError if the parameters cannot work; ``facts`` may contain the problem's ``side``."""
        super().check(**facts)
        if facts.get("side") == "none":
            raise ParameterError("side", NO_SIDE)

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """The cost of LocalTraining, with a larger program for the path of the side information."""
        base = LocalTraining.cost(params, facts)
        return dataclasses.replace(base, first=1.3 * base.first, round=1.1 * base.round)

    def rounds(
        self, problem: Personal, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[State]:
        """Yield the state at the initial point and after every round; one object, updated in place.

        init : a ``Start`` or named arrays. clients : (rounds, m) ids, instead of draws; the run ends after them.
        Raises ParameterError where the problem has no side information.
        """
        if problem.z.shape[1] == 0:
            raise ParameterError("side", NO_SIDE)
        draws = streams(rng)
        state = begin(problem, self, self.net(problem), frozenset(), init, draws.other)

        def visit(drawn: np.ndarray, batches: tuple[np.ndarray, np.ndarray]) -> None:
            average(problem, state, drawn, batches, self.weights(problem, drawn))

        yield from run(problem, self, state, state.shared, visit, draws, ledger, clients)


@dataclass(frozen=True)
class PerFedSIConcat(_PerFedSI):
    """Parameters of Model 1, beside those of ``LocalTraining`` (lr, fraction, momentum, batch, epochs, weighting).

    side_norm : statistics of the batch norm in the side path when the network is used: ``running`` (the paper's
    network taken literally), the client's ``own``, or ``none`` (no batch norm there). In training, all samples of a
    batch have the same z, so that it normalises over positions alone (discrepancy perfedsi.11).

    >>> import numpy as np
    >>> from fedrepro import Images, Personal, PerFedSIConcat, run
    >>> rng = np.random.default_rng(0)
    >>> images = Images(rng.integers(0, 256, (24, 16, 16, 1), dtype=np.uint8), np.arange(24) % 2)
    >>> client = np.column_stack([np.arange(24) // 8, np.arange(24) % 4 == 3])  # client, test?
    >>> problem = Personal(images, client, widths=(2, 2, 2, 2), shift="affine", side="shift")
    >>> history = run(PerFedSIConcat(fraction=1.0, batch=2), problem, rounds=1)
    >>> bool(0 <= history["accuracy"][-1] <= 1)  # mean over the clients
    True
    """

    side_norm: Annotated[str, OneOf(*SIDE_NORMS)] = "running"

    def net(self, problem: Personal) -> Net:
        """The problem's network and a side path."""
        return dataclasses.replace(problem.plain, side="concat", side_dim=problem.z.shape[1], side_norm=self.side_norm)


@dataclass(frozen=True)
class PerFedSIMask(_PerFedSI):
    """Parameters of Model 2, beside those of ``LocalTraining`` (lr, fraction, momentum, batch, epochs, weighting).

    mask : what multiplies the channels that leave block 3 (discrepancy perfedsi.10): ``block`` (K1: each entry of z
    switches its own share of them), ``learned`` (K2: z W_2 from ones), ``random`` (K3: z W_2 from random numbers),
    ``ones`` (no mask, a control). widen : multiply the number of channels of block 3 by the number of entries of z (K4
    with ``block``: a client then uses as many channels as FedAvg does).

    >>> import numpy as np
    >>> from fedrepro import Images, Personal, PerFedSIMask, run
    >>> rng = np.random.default_rng(0)
    >>> images = Images(rng.integers(0, 256, (24, 16, 16, 1), dtype=np.uint8), np.arange(24) % 2)
    >>> client = np.column_stack([np.arange(24) // 8, np.arange(24) % 4 == 3])  # client, test?
    >>> problem = Personal(images, client, widths=(2, 2, 4, 2), shift="affine", side="shift")
    >>> history = run(PerFedSIMask(mask="block", fraction=1.0, batch=2), problem, rounds=1)
    >>> bool(0 <= history["accuracy"][-1] <= 1)  # mean over the clients
    True
    """

    mask: Annotated[str, OneOf(*MASKS)] = "block"
    widen: bool = False

    def net(self, problem: Personal) -> Net:
        """The problem's network with a mask."""
        entries, widths = problem.z.shape[1], list(problem.plain.widths)
        widths[MASKED - 1] *= entries if self.widen else 1
        return dataclasses.replace(problem.plain, side="mask", side_dim=entries, mask=self.mask, widths=tuple(widths))


add_method(
    "perfedsi",
    PerFedSIConcat,
    "FedAvg with side information concatenated to the last layer's input (Model 1)",
    label="PerFedSI",
    papers=("perfedsi",),
    suffix="concat",
    look=("vermillion", "D"),
)
add_method(
    "perfedsi-mask",
    PerFedSIMask,
    "FedAvg with side information masking the channels of block 3 (Model 2)",
    label="PerFedSI",
    papers=("perfedsi",),
    suffix="mask",
)
