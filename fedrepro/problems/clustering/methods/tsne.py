r"""t-SNE: the samples as points of the plane, with which fedmf, Fig. 7 shows the clusters of each method.

Problem: find y_j in the plane whose similarities :math:`q_{ij} \propto (1 + \|y_i - y_j\|^2)^{-1}` minimize the
Kullback-Leibler divergence from the similarities p_ij of the samples (Gaussian, each with the width at which it has
``perplexity`` neighbours). scikit-learn's implementation: Barnes-Hut with 1000 steps.

It computes no clusters and sends nothing. Its only state is the initial point with an ``embedding``, which is an
artifact; the metrics measured on it are those of the initial point. Samples are used in the caller's order and the seed
is a parameter, so the picture is the same for every partition and trial.

The samples are first reduced to ``components`` principal components, as its authors and scikit-learn advise (a sparse X
by truncated SVD without centring). The released program of fedmf passes all M features to t-SNE: ``components: null``.

Source: van der Maaten and Hinton, "Visualizing Data using t-SNE", JMLR 9, 2008; fedmf, Fig. 7.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from fedrepro.errors import ParameterError
from fedrepro.ledger import Ledger
from fedrepro.numerics.embedding import embed
from fedrepro.parameters import Number, OneOf, Whole
from fedrepro.problems.clustering.lloyd import holding
from fedrepro.problems.clustering.problem import Clustering
from fedrepro.problems.clustering.state import State
from fedrepro.protocols import Cost, Method, Work
from fedrepro.registry import add_method
from fedrepro.seeds import Rng


@dataclass
class Embedded(State):
    """A state with a picture of the samples.

    embedding : (N, 2), the place of each sample in the caller's order; NaN for those not shown.
    """

    embedding: np.ndarray = dataclasses.field(default_factory=lambda: np.empty((0, 2)))


@dataclass(frozen=True)
class TSNE(Method):
    """Parameters of t-SNE.

    points : samples shown, drawn with ``seed`` if there are more; None for all. perplexity : effective number of
    neighbours, greater than 0, less than the number of samples shown. components : principal components kept before
    t-SNE, at least 2 (all if neither M nor the number of samples shown is larger); None for the samples as they are.
    start : initial places: ``pca`` or ``random``; a sparse X that is not reduced starts at random. seed : seed of all
    random numbers.

    >>> import numpy as np
    >>> from fedrepro import Clustering, TSNE, run
    >>> labels = np.arange(60) % 3
    >>> X = np.eye(5, 3)[:, labels] + 0.1 * np.random.default_rng(0).random((5, 60))
    >>> problem = Clustering(X, np.arange(60) % 4, K=3, labels=labels)
    >>> history = run(TSNE(perplexity=5.0), problem, rounds=1)
    >>> problem.artifacts(history.state, ["embedding"])["embedding"].shape  # x and y of each sample
    (60, 2)
    """

    one_shot: ClassVar[bool] = True  # it has no rounds: predictions of its time count one
    silent: ClassVar[bool] = True

    points: Annotated[int | None, Whole(4)] = None
    perplexity: Annotated[float, Number(above=0.0)] = 30.0
    components: Annotated[int | None, Whole(2)] = 50
    start: Annotated[str, OneOf("pca", "random")] = "pca"
    seed: Annotated[int, Whole(0)] = 0

    def __post_init__(self) -> None:
        """Raise ParameterError where a value cannot work."""
        super().__post_init__()
        self.check(N=self.points)

    def check(self, *, N: int | None = None, **_: Any) -> None:
        """Raise ParameterError where the method cannot run on N samples."""
        shown = N if self.points is None or N is None else min(N, self.points)
        if shown is not None and self.perplexity >= shown:
            raise ParameterError(
                "perplexity", f"must be less than the number of samples shown, {shown}, not {self.perplexity:g}"
            )

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """1000 steps, each through a tree of the points of depth log N (Barnes-Hut)."""
        shown = facts["N"] if params["points"] is None else min(params["points"], facts["N"])
        tree = Work(singles=1000.0 * shown * math.log2(shown + 1.0) * 400.0)
        return Cost(tree, holds=holding(facts, 2.0) + 3000.0 * shown, libraries=("sklearn",))

    def rounds(
        self, problem: Clustering, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[Embedded]:
        """Yield one state, at round 0: the initial point, with ``embedding``."""
        if clients is not None:
            raise ParameterError("clients", "no client takes part: there is no draw to replay")
        self.check(N=problem.N)
        state = problem.start(init, rng)
        shown, places = self._shown(problem.N), np.full((problem.N, 2), np.nan)
        places[shown] = embed(
            problem.X[np.argsort(problem.order)[shown]],
            perplexity=self.perplexity,
            components=self.components,
            start=self.start,
            seed=self.seed,
        )
        yield Embedded(**vars(state), embedding=places)

    def _shown(self, N: int) -> np.ndarray:
        if self.points is None or self.points >= N:
            return np.arange(N)
        return np.sort(np.random.default_rng(self.seed).choice(N, self.points, replace=False))


add_method(
    "tsne",
    TSNE,
    "The samples as points of the plane, for pictures of the clusters",
    label="t-SNE",
    papers=("fedmf",),
    look=("grey", "*"),
)
