"""The 2-D views, how rows are held out, and what is measured on representations; nothing here trains a network."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from fedrepro import registry, seeds
from fedrepro.datasets.gcca_toy import ToyViews
from fedrepro.datasets.types import Views
from fedrepro.errors import ParameterError, UserError
from fedrepro.multiview import federated
from fedrepro.problems.gcca_deep.methods.raw_view import RawView
from fedrepro.problems.gcca_deep.problem import DeepGCCA, NetStart, Part, Raw, split
from fedrepro.spec import read

from .conftest import ROOT


def toy(trial=1, **sizes):
    return ToyViews(**sizes).load(rng=seeds.generator("data", trial=trial))


def opened(tmp_path, data, **parameters):
    DeepGCCA.prepare(tmp_path, data, None, parameters)
    return DeepGCCA.stored(tmp_path, parameters)


def state(theta, G):
    """A state in which only what is asked for matters."""
    return federated.State(theta=theta, M=[], G=G, near=[], far=[], G_near=G, G_far=G)


# ---- the 2-D views -------------------------------------------------------------------------------------------------


def test_the_views_are_the_shapes_the_docstring_says():
    data = toy(J=40_000, validation=4, test=4, cluster=4)
    first = data.labels == 0
    radius = [np.linalg.norm(X, axis=1) for X in data.views]
    assert radius[0][first].mean() == pytest.approx(1.005, abs=0.01)  # sqrt(1 + 0.1^2), nearly
    assert radius[0][~first].mean() == pytest.approx(2.0025, abs=0.01)
    x, y = data.views[1].T
    for own, c, w in ((first, 0, 2), (~first, 1, 0.5)):
        off = y[own] - (c + w * x[own] ** 2)
        assert np.abs(x[own]).max() < 3.6
        assert off.mean() == pytest.approx(-w * 0.01, abs=0.03)  # x carries noise of variance 0.01
        assert np.median(np.abs(off)) < 1.0
    assert radius[2][first].mean() == pytest.approx(2.0025, abs=0.01)
    assert data.views[2][~first].std(axis=0) == pytest.approx([1, 1], abs=0.02)
    assert data.views[2][~first].mean(axis=0) == pytest.approx([0, 0], abs=0.03)


def test_views_share_nothing_but_the_class():
    data = toy(J=40_000)
    for own in (data.labels == 0, data.labels == 1):
        angles = [np.arctan2(X[own, 1], X[own, 0]) for X in (data.views[0], data.views[2])]
        both = np.concatenate([np.column_stack([np.cos(a), np.sin(a)]) for a in angles], axis=1)
        both = np.column_stack([both, data.views[1][own, 0]])
        correlation = np.corrcoef(both.T) - np.eye(5)
        assert np.abs(correlation).max() < 0.03


def test_parts_are_balanced_in_random_order_and_fresh_in_every_trial():
    data = toy(J=100, validation=10, test=20, cluster=30)
    assert [X.shape for X in data.views] == [(160, 2)] * 3
    ends = np.cumsum([0, 100, 10, 20, 30])
    for a, b in itertools.pairwise(ends):
        part = data.labels[a:b]
        assert part.mean() == 0.5
        assert not np.array_equal(part, np.sort(part))
    assert np.array_equal(toy(J=100).views[0], toy(J=100).views[0])
    assert not np.array_equal(toy(J=100).views[0], toy(2, J=100).views[0])
    with pytest.raises(ParameterError, match=r"^J: must be an integer of at least 4, not 2$"):
        ToyViews(J=2)


# ---- rows held out -------------------------------------------------------------------------------------------------


def test_named_parts_are_the_last_rows(tmp_path):
    data = toy(J=100, validation=10, test=20, cluster=30)
    P = opened(tmp_path, data)
    assert (P.J, P.I, P.N, P.K) == (100, 3, [2, 2, 2], 2)
    assert {name: len(part.views[0]) for name, part in P.parts.items()} == {"validation": 10, "test": 20, "cluster": 30}
    np.testing.assert_array_equal(P.views[1], data.views[1][:100])
    np.testing.assert_array_equal(P.part("validation").views[2], data.views[2][100:110])
    np.testing.assert_array_equal(P.part("test").views[0], data.views[0][110:130])
    np.testing.assert_array_equal(P.part("cluster").labels, data.labels[130:])
    with pytest.raises(ValueError, match="read-only"):
        P.views[0][0, 0] = 1.0


def test_rows_are_held_out_at_random_by_the_data_alone():
    rng = np.random.default_rng(0)
    views = [rng.standard_normal((50, 3)) for _ in range(2)]
    labels = np.repeat([0, 1], 25)
    rows = split(views, labels, {}, 20)
    assert sorted([*rows["train"], *rows["test"]]) == list(range(50))
    assert len(rows["test"]) == 20
    np.testing.assert_array_equal(rows["test"], split(views, labels, {}, 20)["test"])
    assert not np.array_equal(rows["test"], split([views[1], views[0]], labels, {}, 20)["test"])
    assert not np.array_equal(rows["test"], np.arange(30, 50))
    with pytest.raises(ParameterError, match=r"^test: must be fewer than the 50 rows there are, not 50$"):
        split(views, labels, {}, 50)
    with pytest.raises(ParameterError, match=r"^test: the data has 5 test rows of its own; leave it out$"):
        split(views, labels, {"test": 5}, 10)


@pytest.mark.parametrize("order", ["per_view", "common"])
def test_claims_are_read_aligned_by_group_and_by_row(tmp_path, order):
    entry = registry.datasets()["synpuf"]
    data = entry.stand_in(entry.make(diagnoses=150, procedures=20, order=order), np.random.default_rng(0))
    P = opened(tmp_path, data, K=4, test=30, classifier="rbf")
    assert len(data.labels) == P.J + 30
    measured = P.measure(Raw(0), ("accuracy", "accuracy_code"))
    assert measured["accuracy"] == measured["accuracy_code"]
    # the same diagnosis is near itself in another sample, so aligned rows correlate more than rows of one group
    rows = [np.log1p(X) for X in P.views]
    near = np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(rows[0], rows[1], strict=True)])
    assert near > 0.8 if order == "common" else near < 0.8


# ---- measures ------------------------------------------------------------------------------------------------------


def clusters(n=60, far=6.0, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    return np.column_stack([far * labels, np.zeros(n)]) + 0.3 * rng.standard_normal((n, 2)), labels


def measured_on(points, labels, **more):
    """A problem whose one view is ``points``, for training and in every part."""
    part = Part([points], labels)
    return DeepGCCA([points], 2, labels=labels, parts={"test": part, "cluster": part}, **more)


@pytest.mark.parametrize("classifier", ["linear", "rbf"])
def test_separate_classes_are_classified_and_clustered(classifier):
    points, labels = clusters()
    P = measured_on(points, labels, classifier=classifier, gamma=0.5)
    names = ("accuracy", "accuracy_code", "cluster_accuracy")
    assert P.measure(Raw(0), names) == dict.fromkeys(names, 1.0)


def test_one_cloud_is_neither():
    points, labels = clusters(far=0.0, n=200)
    found = measured_on(points, labels).measure(Raw(0), ("accuracy", "cluster_accuracy"))
    assert found["accuracy"] < 0.7
    assert found["cluster_accuracy"] < 0.7


def test_a_cluster_is_named_after_its_majority():
    points, _ = clusters(n=40)
    labels = np.array([0, 1] * 20)
    labels[1:10:2] = 0  # five of cluster 1 are of class 0
    assert measured_on(points, labels, gamma=0.5).clustering(points, labels) == pytest.approx(35 / 40)
    mostly = np.where(np.arange(40) < 38, 0, 1)  # both clusters are mostly of class 0
    assert measured_on(points, mostly, gamma=0.5).clustering(points, mostly) == pytest.approx(38 / 40)


def test_rows_not_trained_on_get_the_polar_factor_of_the_centred_sum():
    rng = np.random.default_rng(0)
    views = [rng.standard_normal((30, 2)) + 1 for _ in range(2)]
    P = DeepGCCA(views, 2)
    G = P.common(state([{}, {}], np.eye(30)[:, :2]), views)
    U, _, Vt = np.linalg.svd(sum(X - X.mean(axis=0) for X in views), full_matrices=False)
    np.testing.assert_allclose(G, U @ Vt, atol=1e-12)
    np.testing.assert_allclose(G.sum(axis=0), 0, atol=1e-12)
    assert np.abs(P.common(state([{}, {}], G), views, center=False).sum(axis=0)).min() > 0.1
    np.testing.assert_allclose(P.features(state([{}, {}], G), views).std(axis=0), 1, rtol=1e-12)


def test_the_classifier_of_the_released_program_is_fitted_to_other_rows():
    points, labels = clusters(n=80)
    parts = {"validation": Part([points], 1 - labels), "test": Part([points], labels)}  # contradicts the training rows
    P = DeepGCCA([points], 2, labels=labels, parts=parts)
    measured = P.measure(state([{}], P.common(state([{}], points), [points])), ("accuracy", "accuracy_code"))
    assert measured["accuracy"] == 1.0
    assert measured["accuracy_code"] == 0.0


def test_cost_and_numbers_that_are_not_finite():
    views = [np.random.default_rng(0).standard_normal((20, 2))] * 2
    P = DeepGCCA(views, 2)
    G = np.eye(20)[:, :2]
    assert P.cost([G + 1, G], G) == pytest.approx(0.5 * 40)
    points, labels = clusters(n=20)
    broken = measured_on(points, labels)
    nan = state([{}], np.full((20, 2), np.nan))
    assert np.isnan(broken.measure(nan, ("accuracy",))["accuracy"])
    assert DeepGCCA.diverged({"accuracy": np.array([0.5, np.nan])}) == (
        "the metric accuracy is not finite at recorded point 1"
    )
    assert DeepGCCA.diverged({"accuracy": np.array([0.5])}) is None


def test_artifacts_of_raw_views():
    points, labels = clusters(n=40)
    P = measured_on(points, labels)
    kept = P.artifacts(Raw(0), ["view1", "G", "labels", "groups", "embedding"])
    np.testing.assert_array_equal(kept["view1"], points)
    np.testing.assert_array_equal(kept["G"], points)
    np.testing.assert_array_equal(kept["labels"], labels)
    np.testing.assert_array_equal(kept["groups"], labels)
    assert kept["embedding"].shape == (40, 2)
    with pytest.raises(ParameterError, match=r"^artifacts: must be one of view1, G, .* not 'view2'"):
        P.artifacts(Raw(0), ["view2"])


def test_a_raw_view_has_one_state_and_sends_nothing():
    from fedrepro.ledger import Ledger

    P, ledger = measured_on(*clusters()), Ledger()
    states = list(RawView(1).rounds(P, np.random.default_rng(0), ledger=ledger))
    assert states == [Raw(0)]
    assert not any(ledger.totals().values())
    with pytest.raises(ParameterError, match=r"^view: must be at most the number of views I = 1, not 2$"):
        list(RawView(2).rounds(P, np.random.default_rng(0)))
    with pytest.raises(ParameterError, match=r"^metrics: a raw view has no cost: nothing was minimized$"):
        P.measure(Raw(0), ("cost",))


def test_initial_networks_are_the_same_for_the_same_trial_view_and_array():
    start = NetStart(3)
    drawn = start.uniform(0, "head.kernel", (4, 2))
    np.testing.assert_array_equal(drawn, NetStart(3).uniform(0, "head.kernel", (4, 2)))
    for other in (NetStart(4).uniform(0, "head.kernel", (4, 2)), start.uniform(1, "head.kernel", (4, 2))):
        assert np.abs(drawn - other).max() > 0.01


# ---- what cannot work ----------------------------------------------------------------------------------------------


def test_bad_input_says_what_is_wrong(tmp_path):
    X = np.random.default_rng(0).standard_normal((10, 3))
    with pytest.raises(ParameterError, match=r"^K: must be less than the number of rows, 10, not 10$"):
        DeepGCCA([X], 10)
    with pytest.raises(UserError, match=r"^view 2 of 2: is sparse; a network needs dense rows, give an array$"):
        DeepGCCA([X, sparse.csr_matrix(X)], 2)
    with pytest.raises(UserError, match=r"row 1, column 2 \(counted from 0\) is not a finite number$"):
        DeepGCCA([np.where(np.arange(30).reshape(10, 3) == 5, np.nan, X)], 2)
    with pytest.raises(ParameterError, match=r"^classifier: must be one of linear, rbf, not 'svm'"):
        DeepGCCA([X], 2, classifier="svm")
    P = opened(tmp_path, Views([X, X]))
    with pytest.raises(
        UserError, match=r"^the data has no test rows, which this measure needs; set the problem's test"
    ):
        P.measure(Raw(0), ("accuracy",))
    unlabelled = DeepGCCA([X], 2, parts={"cluster": Part([X], None)})
    with pytest.raises(UserError, match=r"^labels: this measure compares with known classes, and the data has none$"):
        unlabelled.measure(Raw(0), ("cluster_accuracy",))
    with pytest.raises(ParameterError, match=r"^test: must be fewer than the 5 rows there are, not 4$"):
        DeepGCCA.check({"test": 4}, {"J": 5})
    with pytest.raises(ParameterError, match=r"^K: must be less than the number of rows, 4, not 6$"):
        DeepGCCA.check({"K": 6, "test": 5}, {"J": 9})


@pytest.mark.parametrize("tier", ["smoke", "quick", "paper"])
@pytest.mark.parametrize("figure", ["fig10", "fig11", "fig12", "fig13"])
def test_the_figures_are_valid_and_their_bits_are_per_variable(figure, tier):
    made = read.load(ROOT / "experiments" / "gcca" / f"{figure}.yaml", tier)
    assert made.claims
    for panel in made.panels:
        for curve in panel.curves:
            if panel.x != "bits_per_variable":
                continue
            setting = curve.setting
            if setting.dataset == "gcca-toy":
                rows = setting.dataset_params["J"]
            else:
                entry = registry.datasets()[setting.dataset]
                rows = len(entry.stand_in(entry.make(**setting.dataset_params), np.random.default_rng(0)).labels)
                rows -= setting.problem_params["test"]
            assert panel.options["variables"] == 2 * 3 * rows * setting.problem_params["K"]  # both ways, three links


def test_a_figure_runs_and_keeps_its_points(tmp_path: Path) -> None:
    if importlib.util.find_spec("jax") is None:
        pytest.skip('needs JAX: pip install "fedrepro[deep]"')
    from fedrepro.runs.compute import execute
    from fedrepro.runs.identity import plan

    figure = read.load(ROOT / "experiments" / "gcca" / "fig10.yaml", "smoke")
    made = plan.make([figure], stand_in=True)
    for run in made.runs.values():
        if run.setting.algorithm == "altmaxvar-deep" and "loss" in run.setting.explicit:
            continue
        record = execute.measured(run.setting, run.trial, execute.opened(run, tmp_path))
        assert record.meta["status"] == "ok"
        assert {name: array.shape for name, array in record.artifacts.items()} == {
            **{f"view{i}": (200, 2) for i in (1, 2, 3)}, "G": (200, 2), "labels": (200,)
        }  # fmt: skip
        assert 0.5 <= record.metrics["cluster_accuracy"][-1] <= 1
