"""The synthetic views of the GCCA paper: their law, their densities, and that a key is a key."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fedrepro import registry, seeds
from fedrepro.data.loading import load as load_data
from fedrepro.datasets.gcca_views import DENSITIES, DenseViews, SparseViews, sparse_normal
from fedrepro.errors import ParameterError
from fedrepro.problems.gcca.problem import GCCA


def rng(trial=0):
    return seeds.generator("data", trial=trial)


def test_the_views_share_D_dimensions_and_no_more():
    data = DenseViews(J=4000, N=8, D=3, nu=0.1).load(rng())
    assert [X.shape for X in data.views] == [(4000, 8)] * 3
    eigenvalues = GCCA(data.views, 6).optimum.eigenvalues
    assert (eigenvalues[:3] > 2.9).all()  # common to all three views
    assert (eigenvalues[3:] < 1.3).all()  # noise


def test_nu_is_the_standard_deviation_of_the_noise():
    quiet, loud = (DenseViews(J=3000, N=30, D=2, nu=nu).load(rng()).views[0] for nu in (0.0, 0.5))
    assert np.linalg.matrix_rank(quiet) == 2
    np.testing.assert_allclose((loud - quiet).std(), 0.5, rtol=0.02)


def test_without_noise_the_views_agree_perfectly():
    assert GCCA(DenseViews(J=200, nu=0.0, D=10).load(rng()).views, 5).optimum.value < 1e-12


def test_trials_and_draws_are_fresh_and_repeat():
    first = DenseViews().load(rng()).views[0]
    assert (DenseViews().load(rng()).views[0] == first).all()
    for other in (DenseViews().load(rng(1)), DenseViews(draw=1).load(rng()), DenseViews(draw=2).load(rng())):
        assert np.abs(other.views[0] - first).min() > 0
        assert abs(np.corrcoef(other.views[0].ravel(), first.ravel())[0, 1]) < 0.05


def test_a_draw_is_another_data_set_of_the_registry_too():
    plain, again, other = (load_data("gcca-synthetic", p).views[0] for p in ({}, {}, {"draw": 1}))
    assert (plain == again).all()
    assert not (plain == other).any()


@pytest.mark.parametrize("densities", ["paper", "code", [0.1, 0.01, 0.005]])
def test_sparse_views_have_the_density_they_promise(densities):
    sizes = {"J": 4000, "N": 500, "D": 100}
    wanted = SparseViews(**sizes, densities=densities)
    data = wanted.load(rng())
    promised = wanted.shape()["density"]
    for X, density in zip(data.views, data.facts["density"], strict=True):
        assert sparse.issparse(X)
        assert X.format == "csr"
        assert X.nnz == round(density * 4000 * 500)
        assert density == pytest.approx(promised, rel=0.15)


def test_the_published_density():
    assert SparseViews().shape()["density"] == pytest.approx(0.0208, abs=2e-4)  # the text: 0.02
    assert SparseViews(densities="code").shape()["density"] == pytest.approx(0.0020, abs=1e-4)  # discrepancy gcca.20
    assert set(DENSITIES) == {"paper", "code"}


def test_sparse_normal_entries():
    X = sparse_normal(rng(), 300, 200, 0.25)
    assert X.nnz == 15_000
    assert X.data.mean() == pytest.approx(0, abs=0.03)
    assert X.data.std() == pytest.approx(1, abs=0.03)
    assert sparse_normal(rng(), 5, 4, 1.0).nnz == 20
    assert sparse_normal(rng(), 5, 4, 0.0).nnz == 0


def test_shapes_are_what_is_loaded():
    entry = registry.datasets()["gcca-synthetic"]
    assert entry.kind == "views"
    assert DenseViews(J=30, N=7, I=2).shape() == {"J": 30, "N": 7, "I": 2}
    assert [X.shape for X in DenseViews(J=30, N=7, I=2).load(rng()).views] == [(30, 7)] * 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: DenseViews(J=1), "J: must be an integer of at least 2, not 1"),
        (lambda: DenseViews(I=0), "I: must be an integer of at least 1, not 0"),
        (lambda: DenseViews(nu=-0.1), "nu: must be a number of at least 0, not -0.1"),
        (lambda: DenseViews(draw=-1), "draw: must be an integer from 0 to 1,000,000, not -1"),
        (lambda: DenseViews(N=2.5), "N: must be an integer of at least 1, not 2.5"),
        (
            lambda: SparseViews(densities="papers"),
            "densities: must be one of paper, code or three numbers, not 'papers', did you mean 'paper'?",
        ),
        (
            lambda: SparseViews(densities=[0.1, 0.2]),
            "densities: must be a name or the densities of Z, A and E, not [0.1, 0.2]",
        ),
        (lambda: SparseViews(densities=[0.1, 0.2, 2]), "densities: must be a number from 0 to 1, not 2"),
    ],
)
def test_bad_parameters_are_told(call, message):
    with pytest.raises(ParameterError) as caught:
        call()
    assert str(caught.value) == message
