r"""A view without any method, for comparison with the representations of deep GCCA (Figs. 10 and 12, left).

Nothing is minimized and nothing is sent. The common representation G is the view X_i itself, unscaled, and each view is
its own representation, so the same classifiers, clusterings and pictures apply.

Source: Shrestha and Fu, Sec. V-B.3 and V-B.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from fedrepro.ledger import Ledger
from fedrepro.parameters import AtMost, Whole
from fedrepro.problems.gcca_deep.problem import DeepGCCA, Raw
from fedrepro.protocols import Cost, Method, Work
from fedrepro.registry import add_method
from fedrepro.seeds import Rng


@dataclass(frozen=True)
class RawView(Method):
    """A view as its own representation. view : the number of the view, counted from 1.

    >>> import numpy as np
    >>> from fedrepro import DeepGCCA, RawView, Views, run
    >>> rng = np.random.default_rng(0)
    >>> views = [rng.standard_normal((24, 3)) for _ in range(2)]
    >>> problem = DeepGCCA.of(Views(views, np.arange(24) % 2), None, {"K": 2, "test": 8})
    >>> history = run(RawView(view=2), problem, rounds=1, metrics=["accuracy"])
    >>> bool(0 <= history["accuracy"][-1] <= 1)
    True
    """

    one_shot: ClassVar[bool] = True
    silent: ClassVar[bool] = True

    view: Annotated[int, Whole(), AtMost("I", "views")] = 1

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """Nothing is computed."""
        return Cost(Work(calls=1.0))

    def rounds(
        self, problem: DeepGCCA, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[Raw]:
        """Yield one state, at round 0."""
        self.check(I=problem.I)
        yield Raw(self.view - 1)


add_method(
    "raw-view",
    RawView,
    "one view without any method, for comparison with learned representations",
    label="raw view",
    papers=("gcca",),
    look=("grey", "X"),
)
