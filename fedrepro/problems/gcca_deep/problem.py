r"""Deep MAX-VAR GCCA: a network for every view, one common representation, and its measures.

.. math::  \min_{\theta_1, \dots, \theta_I,\ G}\ f = \sum_{i=1}^I \tfrac12 \|\mathcal{Q}(X_i; \theta_i) - G\|_F^2
           \quad\text{subject to}\quad G^\top G = I_K,\ 1^\top G = 0

X_i: (J, N_i), G: (J, K). The common representation of rows that were not trained on is computed like the server's: the
polar factor of the centred sum of the networks' outputs. Classifiers and clusterings use G times the root of its number
of rows, so that its entries have size 1 for any number of rows.

Source: Shrestha and Fu, eq. (4), (5), (7), Sec. V-B; discrepancy gcca.16, discrepancy gcca.17,
discrepancy gcca.33.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy

from fedrepro import seeds
from fedrepro.arrays import complete, unmasked
from fedrepro.errors import ParameterError, UserError
from fedrepro.multiview.aligned_views import check_views, read_only
from fedrepro.multiview.maxvar import server_step
from fedrepro.nets import mlp
from fedrepro.numerics.embedding import embed
from fedrepro.parameters import Number, OneOf, Range, Whole, check, one_of
from fedrepro.problems.gcca import problem as gcca
from fedrepro.protocols import Cost, Metric, Problem, Work, by_name
from fedrepro.registry import add_problem

PARTS = ("validation", "test", "cluster")


@dataclass(frozen=True)
class NetStart:
    """Uniform draws for initial networks, the same for all methods of one trial (``key``)."""

    key: int

    def uniform(self, view: int, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Numbers in [-1, 1) for one named array of the network of one view (counted from 0)."""
        return seeds.generator("init", problem="gcca-deep", key=self.key, view=view, array=name).uniform(-1, 1, shape)


@dataclass(frozen=True)
class Raw:
    """A state without networks: every view is its own representation, and ``view`` (from 0) is the common one."""

    view: int


@dataclass(frozen=True)
class Part:
    """Rows of all views: (n, N_i) each, and their labels (n,) or None."""

    views: list[np.ndarray]
    labels: np.ndarray | None


METRICS = by_name(
    Metric("cost", "cost value", "lower", "f = sum_i 1/2 ||Q(X_i; theta_i) - G||_F^2, of the true outputs"),
    Metric("accuracy", "classification accuracy", "higher", "SVM fitted to G of the training rows, on the test rows"),
    Metric("accuracy_code", "accuracy as released", "higher", "the same, as the released programs compute it"),
    Metric(
        "cluster_accuracy", "clustering accuracy", "higher", "spectral clustering of G, majority class of each cluster"
    ),
    Metric(
        "cluster_accuracy_code",
        "clustering as released",
        "higher",
        "the same on G without rescaling, as in the released program",
    ),
    gcca.METRICS["consensus"],
    gcca.METRICS["lag"],
)

PARAMETERS: dict[str, Any] = {"K": 2, "test": None, "classifier": "linear", "evaluation": "running", "gamma": 5.0}
"""K, classifier, evaluation, gamma: as for ``DeepGCCA``. test: rows held out at random, for data without test rows."""


class DeepGCCA(Problem):
    """Deep MAX-VAR GCCA on views in memory.

    views : I dense matrices (J, N_i), rows aligned, real and finite. K : dimension of the common representation,
    1 .. J - 1. labels : (J,) classes, used only by measures.
    parts : further rows by name: ``test`` for classification; ``validation``, to which the released program fits its
        classifier; ``cluster`` for clustering and pictures.
    classifier : support vector machine, ``linear`` (Fig. 11) or ``rbf`` (Fig. 12, 13).
    evaluation : batch norm statistics for rows not trained on: ``running``, or those of the ``batch`` of these rows
        (the released programs, discrepancy gcca.16).
    gamma : coefficient of the clustering's kernel exp(-gamma d^2).

    A spec has one more key. test : number of rows held out at random, fewer than there are, for data without test rows;
    None for none.

    Raises UserError or ParameterError if these conditions do not hold.

    >>> import numpy as np
    >>> from fedrepro import DeepGCCA
    >>> rng = np.random.default_rng(0)
    >>> views = [rng.standard_normal((24, 3)) for _ in range(2)]
    >>> problem = DeepGCCA(views, K=2, labels=np.arange(24) % 2)
    >>> problem.I, problem.J, problem.K
    (2, 24, 2)
    """

    name = "gcca-deep"
    metrics = METRICS
    default_metrics = ("accuracy",)
    parameters = PARAMETERS
    ranges: ClassVar[Mapping[str, Range]] = {
        "K": Whole(),
        "test": Whole(),
        "classifier": OneOf("linear", "rbf"),
        "evaluation": OneOf("running", "batch"),
        "gamma": Number(above=0.0),
    }
    stored_parameters = ("test",)

    def __init__(
        self,
        views: Sequence[Any],
        K: int,
        *,
        labels: Any = None,
        parts: Mapping[str, Part] | None = None,
        classifier: str = "linear",
        evaluation: str = "running",
        gamma: float = 5.0,
    ) -> None:
        _check_parameters({"K": K, "classifier": classifier, "evaluation": evaluation, "gamma": gamma})
        unmasked(labels=labels)
        complete(labels=labels)
        self.views = [read_only(X) for X in _dense(views)]
        self.K = int(K)
        if self.K >= self.J:
            raise ParameterError("K", f"must be less than the number of rows, {self.J}, not {self.K}")
        self.labels = None if labels is None else read_only(np.asarray(labels))
        self.parts = dict(parts or {})
        self.classifier, self.evaluation, self.gamma = classifier, evaluation, gamma

    @property
    def I(self) -> int:  # noqa: E743 (the paper's symbol)
        """Views, each at its own node."""
        return len(self.views)

    @property
    def J(self) -> int:
        """Training rows."""
        return int(self.views[0].shape[0])

    @property
    def N(self) -> list[int]:
        """Columns of each view."""
        return [int(X.shape[1]) for X in self.views]

    def part(self, name: str) -> Part:
        """The rows of one part, with labels; raises UserError if there are none."""
        if name not in self.parts:
            more = "; set the problem's test to how many rows to hold out" if name == "test" else ""
            raise UserError(f"the data has no {name} rows, which this measure needs{more}")
        return self.parts[name]

    def cost(self, M: Sequence[np.ndarray], G: np.ndarray) -> float:
        """f for the true representations, eq. (7a)."""
        return 0.5 * sum(float(np.vdot(M_i - G, M_i - G)) for M_i in M)

    def outputs(self, state: Any, views: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Each network's outputs (n, K) for further rows; for a ``Raw`` state, the rows themselves."""
        if isinstance(state, Raw):
            return [np.asarray(X) for X in views]
        batch = self.evaluation == "batch"
        return [mlp.predict(theta, X, batch) for theta, X in zip(state.theta, views, strict=True)]

    def common(self, state: Any, views: Sequence[np.ndarray] | None = None, center: bool = True) -> np.ndarray:
        """G for further rows, with orthonormal columns; without ``views``, the method's G for the training rows."""
        if isinstance(state, Raw):
            return np.asarray((self.views if views is None else views)[state.view])
        return state.G if views is None else server_step(self.outputs(state, views), None, 0.0, center)

    def features(self, state: Any, views: Sequence[np.ndarray] | None = None) -> np.ndarray:
        """``common`` with entries of size 1; a raw view is not scaled."""
        G = self.common(state, views)
        return G if isinstance(state, Raw) else G * np.sqrt(len(G))

    def accuracy(self, state: Any) -> float:
        """Accuracy on the test rows of a classifier of G, fitted to the training rows."""
        test = self.part("test")
        return self._classify(
            self.features(state), _labels(self.labels), self.features(state, test.views), _labels(test.labels)
        )

    def accuracy_code(self, state: Any) -> float:
        """The accuracy as the released programs compute it.

        For the example, the classifier is fitted to ``validation`` rows and scored on ``test`` rows of one polar factor
        of both, neither centred nor rescaled. Without validation rows (EHR): as ``accuracy``, but G is not rescaled.
        """
        test = self.part("test")
        if "validation" not in self.parts:
            G, G_test = self.common(state), self.common(state, test.views)
            return self._classify(G, _labels(self.labels), G_test, _labels(test.labels))
        fitted = self.part("validation")
        both = [np.concatenate([a, b]) for a, b in zip(fitted.views, test.views, strict=True)]
        G, n = self.common(state, both, center=False), len(fitted.views[0])
        return self._classify(G[:n], _labels(fitted.labels), G[n:], _labels(test.labels))

    def _classify(self, A: np.ndarray, a: np.ndarray, B: np.ndarray, b: np.ndarray) -> float:
        from sklearn.svm import SVC, LinearSVC

        if not (np.isfinite(A).all() and np.isfinite(B).all()):
            return float("nan")
        machine = LinearSVC(dual=False) if self.classifier == "linear" else SVC(kernel="rbf")
        return float(np.mean(machine.fit(A, a).predict(B) == b))

    def clustering(self, points: np.ndarray, labels: np.ndarray) -> float:
        """Share of points in the majority class of their spectral cluster; there are as many clusters as classes."""
        from sklearn.cluster import SpectralClustering

        if not np.isfinite(points).all():
            return float("nan")
        classes = np.unique(labels)
        clusters = SpectralClustering(len(classes), gamma=self.gamma, random_state=100).fit_predict(points)
        right = sum(max(np.sum(labels[clusters == c] == k) for k in classes) for c in np.unique(clusters))
        return float(right / len(labels))

    def artifacts(self, state: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Arrays of a final state.

        For the clustering rows: ``view1`` ... ``viewI``, each network's outputs (n, K) or the rows of a raw view;
        ``G``, the common representation with entries of size 1; ``labels``. For the training rows: ``embedding``, t-SNE
        of G with scikit-learn's defaults (J, 2), and ``groups``, their labels.
        """
        pictured = {f"view{i + 1}": i for i in range(self.I)}
        kept: dict[str, np.ndarray] = {}
        for name in names:
            one_of("artifacts", name, (*pictured, "G", "labels", "embedding", "groups"))
            if name in pictured:
                i = pictured[name]
                kept[name] = self.outputs(state, self.part("cluster").views)[i]
            elif name == "G":
                kept[name] = self.features(state, self.part("cluster").views)
            elif name == "embedding":
                kept[name] = embed(self.features(state))
            else:
                kept[name] = _labels(self.labels if name == "groups" else self.part("cluster").labels)
        return kept

    @classmethod
    def check(cls, parameters: Mapping[str, Any], facts: Mapping[str, int | None]) -> None:
        """Raise ParameterError if a parameter cannot work; ``facts`` may contain J, or None."""
        super().check(parameters, facts)
        values, J = {**PARAMETERS, **parameters}, facts.get("J")
        rows = None if J is None else J - (values["test"] or 0)
        if rows is not None and rows < 2:
            raise ParameterError("test", f"must be fewer than the {J} rows there are, not {values['test']}")
        if rows is not None and values["K"] >= rows:
            raise ParameterError("K", f"must be less than the number of rows, {rows}, not {values['K']}")

    def measure(self, state: Any, names: Sequence[str]) -> dict[str, float]:
        """The named metrics of a state (``fedrepro.multiview.federated.State``, or ``Raw``) of a ``DeepGCCA``."""
        values: dict[str, float] = {}
        if shared := [name for name in ("cost", "consensus", "lag") if name in names]:
            if isinstance(state, Raw):
                raise ParameterError("metrics", f"a raw view has no {shared[0]}: nothing was minimized")
            values |= gcca.agreement(state, shared)
            if "cost" in shared:
                values["cost"] = self.cost(state.M, state.G)
        if "accuracy" in names:
            values["accuracy"] = self.accuracy(state)
        if "accuracy_code" in names:
            values["accuracy_code"] = self.accuracy_code(state)
        if "cluster_accuracy" in names or "cluster_accuracy_code" in names:
            rows = self.part("cluster")
            for name, points in (("cluster_accuracy", self.features), ("cluster_accuracy_code", self.common)):
                if name in names:
                    values[name] = self.clustering(points(state, rows.views), _labels(rows.labels))
        return {name: values[name] for name in names}

    @staticmethod
    def stored_bytes(facts: Mapping[str, Any]) -> float:
        """The views' rows, those of all parts."""
        return 8.0 * facts["I"] * facts["N"] * (facts["J"] + sum(facts.get(part) or 0 for part in PARTS))

    @staticmethod
    def preparing(facts: Mapping[str, Any]) -> Cost:
        """The cost of copying the rows."""
        return Cost(Work(singles=5.0 * facts["I"] * facts["N"] * facts["J"], calls=500.0))

    @staticmethod
    def measuring(names: Sequence[str], facts: Mapping[str, Any]) -> Cost:
        """The cost of sums over the representations, classifiers fitted to all rows, and spectral clustering."""
        J, K, n = facts["J"], facts["K"], facts.get("cluster") or 0
        work = Work(singles=2.0 * J * K * facts["I"], calls=100.0)
        fits = sum(name in names for name in ("accuracy", "accuracy_code"))
        work += fits * Work(singles=60.0 * J * (K + 10.0), calls=1.5e5)
        clusterings = sum(name in names for name in ("cluster_accuracy", "cluster_accuracy_code"))
        work += clusterings * Work(singles=60.0 * n * n, flops=2.0 * n * n * 200.0, calls=3e4)
        return Cost(round=work, libraries=("sklearn",) if fits or clusterings else ())

    def initial(self, trial: int) -> NetStart:
        """The draws for the networks of this trial."""
        return NetStart(trial)

    @classmethod
    def prepare(cls, folder: Path, data: Any, client: np.ndarray | None, parameters: Mapping[str, Any]) -> None:
        """Split the rows and write them for ``stored``.

        The last rows are those of the data's own parts (facts: ``parts``). ``test`` further rows are drawn at random.
        The draw depends only on the data, so all methods and processes hold out the same rows.
        """
        values = {**PARAMETERS, **parameters}
        views = _dense(data.views)
        rows = split(views, data.labels, data.facts.get("parts", {}), values["test"])
        for name, chosen in rows.items():
            for i, X in enumerate(views):
                np.save(Path(folder) / f"{name}{i}.npy", X[chosen])
            if data.labels is not None:
                np.save(Path(folder) / f"{name}_labels.npy", np.asarray(data.labels)[chosen])
        about = {"parts": list(rows), "views": len(views), "labels": data.labels is not None}
        (Path(folder) / "views.json").write_text(json.dumps(about, sort_keys=True) + "\n", encoding="utf-8")

    @classmethod
    def stored(cls, folder: Path, parameters: Mapping[str, Any]) -> DeepGCCA:
        """The problem that ``prepare`` wrote, memory mapped read-only."""
        folder = Path(folder)
        facts = json.loads((folder / "views.json").read_text(encoding="utf-8"))

        def rows(name: str) -> Part:
            views = [np.load(folder / f"{name}{i}.npy", mmap_mode="r") for i in range(facts["views"])]
            return Part(views, np.load(folder / f"{name}_labels.npy") if facts["labels"] else None)

        parts = {name: rows(name) for name in facts["parts"]}
        train = parts.pop("train")
        values = {k: v for k, v in {**PARAMETERS, **parameters}.items() if k != "test"}
        return DeepGCCA(train.views, labels=train.labels, parts=parts, **values)

    @staticmethod
    def diverged(values: Mapping[str, np.ndarray]) -> str | None:
        """A run diverges if a number is not finite."""
        for name, column in values.items():
            if not np.isfinite(column).all():
                return (
                    f"the metric {name} is not finite at recorded point {int(np.flatnonzero(~np.isfinite(column))[0])}"
                )
        return None


def _dense(views: Sequence[Any]) -> list[np.ndarray]:
    checked = check_views(views)
    for i, X in enumerate(checked, start=1):
        if scipy.sparse.issparse(X):
            raise UserError(f"view {i} of {len(checked)}: is sparse; a network needs dense rows, give an array")
    return [np.ascontiguousarray(X, dtype=np.float64) for X in checked]


def _labels(labels: np.ndarray | None) -> np.ndarray:
    if labels is None:
        raise UserError("labels: this measure compares with known classes, and the data has none")
    return np.asarray(labels)


def split(
    views: Sequence[np.ndarray], labels: np.ndarray | None, parts: Mapping[str, int], test: int | None
) -> dict[str, np.ndarray]:
    """The rows of ``train`` and of each part, in ascending order; see ``prepare``."""
    total = len(views[0])
    rest, rows = total, {}
    for name in reversed(PARTS):
        if parts.get(name):
            rows[name] = np.arange(rest - parts[name], rest)
            rest -= parts[name]
    chosen = np.zeros(rest, dtype=bool)
    if test:
        if "test" in rows:
            raise ParameterError("test", f"the data has {len(rows['test'])} test rows of its own; leave it out")
        if test >= rest:
            raise ParameterError("test", f"must be fewer than the {rest} rows there are, not {test}")
        content = hashlib.sha256(b"" if labels is None else np.asarray(labels).tobytes())
        for X in views:
            content.update(np.ascontiguousarray(X).tobytes())
        drawn = seeds.generator("partition", problem="gcca-deep", test=test, content=content.hexdigest())
        chosen[drawn.choice(rest, test, replace=False)] = True
        rows["test"] = np.flatnonzero(chosen)
    return {"train": np.flatnonzero(~chosen), **rows}


def _check_parameters(parameters: Mapping[str, Any]) -> None:
    values = {**PARAMETERS, **parameters}
    for name in ("K", "classifier", "evaluation", "gamma"):
        check(name, values[name], DeepGCCA.ranges[name])
    if values["test"] is not None:
        check("test", values["test"], DeepGCCA.ranges["test"])


add_problem(
    DeepGCCA,
    "deep MAX-VAR generalized CCA: one network per view, min sum_i 1/2 ||Q(X_i; theta_i) - G||^2, G centred",
    data_kind="views",
    artifacts=("view{i}", "G", "labels", "embedding", "groups"),
)
