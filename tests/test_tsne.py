"""t-SNE: one picture for all partitions and trials and what it keeps as artifacts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from fedrepro.errors import ParameterError
from fedrepro.numerics.embedding import embed
from fedrepro.problems.clustering.methods.fedmgs import FedMGS
from fedrepro.problems.clustering.methods.tsne import TSNE
from fedrepro.problems.clustering.problem import Clustering
from fedrepro.runs.compute.drive import run


def data(N: int = 60, M: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Three clusters far apart."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.arange(N) % 3)
    return np.abs(9 * np.eye(M)[:, labels] + 0.3 * rng.standard_normal((M, N))), labels


def picture(client: Any = None, sparse_: bool = False, seed: int = 1, **params: Any) -> dict[str, np.ndarray]:
    """The artifacts of a run of t-SNE."""
    X, labels = data()
    work = Clustering(sparse.csc_matrix(X) if sparse_ else X, client, labels=labels)
    history = run(TSNE(**{"perplexity": 8.0, **params}), work, 9, trial=seed)
    assert list(history.rounds) == [0]
    assert history.ledger.totals() == dict.fromkeys(history.ledger.totals(), 0)
    return work.artifacts(history.state, ("embedding", "labels"))


def test_samples_of_a_class_lie_together() -> None:
    kept = picture()
    Y, labels = kept["embedding"], data()[1]
    assert Y.shape == (60, 2)
    np.testing.assert_array_equal(kept["labels"], labels)
    distance = np.linalg.norm(Y[:, None] - Y[None], axis=2) + 1e9 * np.eye(60)
    np.testing.assert_array_equal(labels[distance.argmin(axis=1)], labels)


def test_the_picture_is_the_same_for_every_partition_and_trial() -> None:
    first = picture()
    for client, seed in ((np.arange(60) % 4, 1), (np.random.default_rng(1).permutation(np.arange(60) % 5), 2)):
        np.testing.assert_array_equal(picture(client, seed=seed)["embedding"], first["embedding"])
    assert not np.array_equal(picture(start="random", seed=1)["embedding"], first["embedding"])


@pytest.mark.parametrize("sparse_", [False, True])
@pytest.mark.parametrize("components", [3, None])
def test_reduced_or_not_dense_or_sparse_it_finds_the_classes(sparse_: bool, components: int | None) -> None:
    Y, labels = picture(sparse_=sparse_, components=components)["embedding"], data()[1]
    distance = np.linalg.norm(Y[:, None] - Y[None], axis=2) + 1e9 * np.eye(60)
    assert (labels[distance.argmin(axis=1)] == labels).all()


def test_only_so_many_points_are_shown() -> None:
    Y = picture(points=25, client=np.arange(60) % 7)["embedding"]
    shown = np.flatnonzero(np.isfinite(Y[:, 0]))
    assert shown.size == 25
    assert shown.max() > 30
    assert np.isnan(Y[np.setdiff1d(np.arange(60), shown)]).all()
    np.testing.assert_array_equal(picture(points=25)["embedding"], Y)
    alone = embed(data()[0].T[shown], perplexity=8.0, components=50)
    np.testing.assert_array_equal(alone, Y[shown])  # these samples in their places, and no others


def test_other_states_have_no_picture_and_this_one_is_the_initial_point() -> None:
    X, labels = data()
    work = Clustering(X, labels=labels)
    plain = next(FedMGS().rounds(work, np.random.default_rng(0), init=work.initial(1)))
    assert set(work.artifacts(plain, ("embedding", "found"))) == {"found"}
    shown = run(TSNE(perplexity=8.0), work, 0, trial=1, metrics=("objective",))
    assert shown["objective"][0] == pytest.approx(work.objective(plain), rel=1e-12)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"points": 3}, "points: must be an integer of at least 4, not 3"),
        ({"perplexity": 0}, "perplexity: must be a number greater than 0, not 0"),
        ({"points": 20}, "perplexity: must be less than the number of samples shown, 20, not 30"),
        ({"components": 1}, "components: must be an integer of at least 2, not 1"),
        ({"start": "PCA"}, "start: must be one of pca, random, not 'PCA', did you mean 'pca'?"),
        ({"seed": -1}, "seed: must be an integer of at least 0, not -1"),
    ],
)
def test_values_that_cannot_work_are_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError) as error:
        TSNE(**values)
    assert str(error.value) == message


def test_too_few_samples_and_draws_are_refused() -> None:
    X, _ = data(N=30)
    with pytest.raises(
        ParameterError, match=r"^perplexity: must be less than the number of samples shown, 30, not 30$"
    ):
        run(TSNE(), Clustering(X, K=3), 0)
    with pytest.raises(ParameterError, match=r"^clients: no client takes part: there is no draw to replay$"):
        run(TSNE(perplexity=5.0), Clustering(X, K=3), 1, clients=[[0]])
