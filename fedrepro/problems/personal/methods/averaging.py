r"""FedAvg and its personalised forms without side information: FedAvg, SR-PH, PR-SH, Local.

Problem: :math:`\min \sum_m (n_m / N) L_m(f_{\theta, \theta_m})`, with :math:`\theta` shared and :math:`\theta_m` kept
by client m (``fedrepro.problems.personal``, ``local_training``). The methods differ in the personal layers:

* ``personal-fedavg``: nothing (McMahan et al., 2017);
* ``sr-ph``, shared representation, personal head: the linear layer (Arivazhagan et al., 2019; Collins et al., 2021);
* ``pr-sh``, personal representation, shared head: the first two blocks (Liang et al., 2020). Appendix D prints "SR-PH"
  for this one too; the sentence about two personal convolutional layers must mean PR-SH (discrepancy perfedsi.6);
* ``local``: everything; nothing is sent.

Source: perfedsi section 4 and Appendix D; docs/derivations/personal-networks.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrepro.errors import ParameterError
from fedrepro.ledger import Ledger
from fedrepro.nets.convnet import Net
from fedrepro.problems.personal.local_training import LocalTraining, average, begin, own_names, run
from fedrepro.problems.personal.problem import Personal, State
from fedrepro.registry import add_method
from fedrepro.seeds import Rng, streams


@dataclass(frozen=True)
class PersonalAveraging(LocalTraining):
    """Parameters, beside those of ``LocalTraining`` (lr, fraction, momentum, batch, epochs, weighting).

    personal : layers each client keeps, separated by blanks (``block1`` .. ``block4``, ``head``), or ``none``, ``all``.
    alternate : whether to train the personal layers first and then the shared ones, each for all epochs (FedRep; twice
    the work), instead of both together.

    >>> import numpy as np
    >>> from fedrepro import Images, Personal, PersonalAveraging, run
    >>> rng = np.random.default_rng(0)
    >>> images = Images(rng.integers(0, 256, (24, 16, 16, 1), dtype=np.uint8), np.arange(24) % 2)
    >>> client = np.column_stack([np.arange(24) // 8, np.arange(24) % 4 == 3])  # client, test?
    >>> problem = Personal(images, client, widths=(2, 2, 2, 2))
    >>> history = run(PersonalAveraging(personal="head", fraction=1.0, batch=2), problem, rounds=1)
    >>> bool(0 <= history["accuracy"][-1] <= 1)  # mean over the clients
    True
    """

    personal: str = "none"
    alternate: bool = False

    def __post_init__(self) -> None:
        """Raise ParameterError where a value cannot work."""
        super().__post_init__()
        if not isinstance(self.personal, str) or not self.personal.split():
            raise ParameterError("personal", f"must be 'none', 'all' or names of layers, not {self.personal!r}")
        own_names(Net(64, 1, 2), self.personal)

    @property
    def silent(self) -> bool:  # type: ignore[override]  # it depends on a parameter
        """Whether all layers are personal, so that nothing is sent."""
        return self.personal == "all"

    def rounds(
        self, problem: Personal, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[State]:
        """Yield the state at the initial point and after every round; one object, updated in place.

        init : a ``Start`` or named arrays. clients : (rounds, m) ids, instead of draws; the run ends after them.
        """
        net, draws = problem.plain, streams(rng)
        own = own_names(net, self.personal)
        state = begin(problem, self, net, own, init, draws.other)
        shared = frozenset(net.shapes) - own
        passes = (shared, own) if self.alternate else (frozenset[str](),)

        def visit(drawn: np.ndarray, batches: tuple[np.ndarray, np.ndarray]) -> None:
            average(problem, state, drawn, batches, self.weights(problem, drawn), passes)

        yield from run(problem, self, state, state.shared, visit, draws, ledger, clients)


add_method(
    "personal-fedavg",
    PersonalAveraging,
    "One model for all clients, averaged over the clients drawn",
    label="FedAvg",
    papers=("perfedsi",),
    preset={"personal": "none"},
    look=("blue", "p"),
)
add_method(
    "sr-ph",
    PersonalAveraging,
    "Shared representation, personal head: each client keeps its linear layer",
    label="SR-PH",
    papers=("perfedsi",),
    preset={"personal": "head"},
    look=("orange", "h"),
)
add_method(
    "pr-sh",
    PersonalAveraging,
    "Personal representation, shared head: each client keeps its first two blocks",
    label="PR-SH",
    papers=("perfedsi",),
    preset={"personal": "block1 block2"},
    look=("purple", "X"),
)
add_method(
    "local",
    PersonalAveraging,
    "Every client trains alone",
    label="Local",
    papers=("perfedsi",),
    preset={"personal": "all"},
    look=("grey", "o"),
)
