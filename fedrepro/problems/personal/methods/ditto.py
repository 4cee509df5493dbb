r"""Ditto: every client's own model, pulled towards the global one.

Problem (Li et al., 2020, arXiv:2012.04221): FedAvg gives the global model w; client m solves

.. math:: \min_{v_m} L_m(v_m) + \frac{\mu}{2} \|v_m - w\|^2 .

A round: the server sends w to the clients drawn; each trains w for one local epoch and sends it back (FedAvg), then
trains its own v_m for one epoch with gradient + mu (v_m - w), w as it was received. Both epochs take the same
minibatches. The clients' models are the v_m; those of clients that are never drawn stay at the initial point. The
running statistics of batch norm are not pulled. With mu = 0 the v_m are those of Local.

Source: perfedsi section 4 and Appendix D (mu = 1, lr = 0.05); discrepancy perfedsi.7.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fedrepro.ledger import Ledger
from fedrepro.nets.stacked_models import keep, stacks
from fedrepro.nets.training import train
from fedrepro.parameters import Number
from fedrepro.problems.personal.local_training import LocalTraining, average, begin, run
from fedrepro.problems.personal.problem import Personal, State
from fedrepro.registry import add_method
from fedrepro.seeds import Rng, streams


@dataclass(frozen=True)
class Ditto(LocalTraining):
    """Parameters, beside those of ``LocalTraining`` (lr, fraction, momentum, batch, epochs, weighting).

    mu : strength of the pull; the step on it is stable while lr mu < 2 (1 + momentum).

    >>> import numpy as np
    >>> from fedrepro import Images, Personal, Ditto, run
    >>> rng = np.random.default_rng(0)
    >>> images = Images(rng.integers(0, 256, (24, 16, 16, 1), dtype=np.uint8), np.arange(24) % 2)
    >>> client = np.column_stack([np.arange(24) // 8, np.arange(24) % 4 == 3])  # client, test?
    >>> problem = Personal(images, client, widths=(2, 2, 2, 2))
    >>> history = run(Ditto(mu=1.0, fraction=1.0, batch=2), problem, rounds=1)
    >>> bool(0 <= history["accuracy"][-1] <= 1)  # mean over the clients
    True
    """

    mu: Annotated[float, Number(least=0.0)] = 1.0

    def rounds(
        self, problem: Personal, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[State]:
        """Yield the state of the clients' models v, one object updated in place; its ``anchor`` is the global model w.

        init : a ``Start`` or named arrays. clients : (rounds, m) ids, instead of draws; the run ends after them.
        """
        net, draws = problem.plain, streams(rng)
        server = begin(problem, self, net, frozenset(), init, draws.other)
        state = begin(problem, self, net, frozenset(net.shapes), server.shared, draws.other)
        state.sgd, state.anchor = dataclasses.replace(self.sgd, mu=self.mu), server.shared

        def visit(drawn: np.ndarray, batches: tuple[np.ndarray, np.ndarray]) -> None:
            received, place = server.shared, 0
            average(problem, server, drawn, batches, self.weights(problem, drawn))
            for stack, count in stacks(drawn, state.length):
                part = slice(place, place + count)
                own_batches = batches[0][part], batches[1][part]
                models, z = state.models(stack), state.z[stack]
                models = train(net, problem.data, models, z, own_batches, state.sgd, anchor=received)
                for name, values in models.items():
                    keep(state.own, name, stack, values)
                place += count
            state.anchor = server.shared

        yield from run(problem, self, state, server.shared, visit, draws, ledger, clients)


add_method(
    "ditto",
    Ditto,
    "Each client's own model, pulled towards FedAvg's with strength mu",
    label="Ditto",
    papers=("perfedsi",),
    look=("green", "d"),
)
