"""Arrays of a caller are not changed, and refused if some of their information would be lost."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import fedrepro
from fedrepro import registry
from fedrepro.data.formats import npy_parts
from fedrepro.errors import ParameterError, UserError
from fedrepro.problems.clustering.labels import from_rows
from fedrepro.problems.clustering.problem import Clustering
from fedrepro.runs.compute import execute

from .test_contracts import freeze, prints, setting_of

FORMATS = ("coo", "csc", "csr")
CLUSTERING = [name for name, entry in registry.methods().items() if entry.problem == "clustering"]
CLIENT = np.arange(40) % 4


def twice(format: str) -> tuple[Any, np.ndarray]:
    """A sparse matrix (12, 40) that stores every third entry in two parts, in no order, and the same matrix densely."""
    rng = np.random.default_rng(0)
    row, column = np.nonzero(rng.random((12, 40)) < 0.4)
    value = 0.1 + rng.random(row.size)
    dense = np.zeros((12, 40))
    dense[row, column] = value
    half = np.arange(0, row.size, 3)
    parts = np.append(value, value[half] / 2)
    parts[half] /= 2
    row, column = np.append(row, row[half]), np.append(column, column[half])
    if format == "coo":
        return sparse.coo_matrix((parts, (row, column)), dense.shape), dense
    across, along = (column, row) if format == "csc" else (row, column)
    order = np.argsort(across, kind="stable")
    count = np.bincount(across, minlength=40 if format == "csc" else 12)
    kind = {"csc": sparse.csc_matrix, "csr": sparse.csr_matrix}[format]
    return kind((parts[order], along[order], np.append(0, np.cumsum(count))), dense.shape), dense


def arrays_of(X: Any) -> dict[str, np.ndarray]:
    """The arrays of a sparse matrix."""
    names = ("data", "row", "col") if X.format == "coo" else ("data", "indices", "indptr")
    return {name: getattr(X, name) for name in names}


def method_of(name: str) -> Any:
    """A clustering method with parameters that fit the matrix of ``twice``."""
    from . import tiny

    return registry.methods()[name].make(**tiny.TINY["clustering"].values(name))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("client", [None, CLIENT], ids=("one client", "four clients"))
def test_entries_held_twice_are_added_up_and_the_caller_keeps_them(format: str, client: Any, tmp_path: Any) -> None:
    X, dense = twice(format)
    freeze(arrays_of(X))
    before = prints(arrays_of(X))
    assert X.nnz > np.count_nonzero(dense)
    made = Clustering(X, client, K=3)
    exact = Clustering(dense, client, K=3)
    Clustering.prepare(tmp_path, fedrepro.Samples(X), client, {})
    for problem in (made, Clustering.stored(tmp_path, {"K": 3})):
        assert problem.X.has_canonical_format
        np.testing.assert_array_equal(problem.X.toarray(), exact.X)
        assert problem.norm2 == pytest.approx(exact.norm2, rel=1e-14)
        assert (problem.w_min, problem.w_max) == (exact.w_min, exact.w_max)
    assert prints(arrays_of(X)) == before


@pytest.mark.parametrize("format", ["coo", "csc"])
@pytest.mark.parametrize("name", CLUSTERING)
def test_a_method_on_sparse_samples_writes_into_nothing_and_gets_what_it_gets_on_dense_ones(
    name: str, format: str
) -> None:
    X, dense = twice(format)
    client, labels = CLIENT.copy(), np.arange(40) % 3
    freeze([arrays_of(X), client, labels])
    before = prints(arrays_of(X))
    method = method_of(name)
    sparse_history, wanted = (fedrepro.run(method, Clustering(A, client, K=3, labels=labels), 3) for A in (X, dense))
    np.testing.assert_allclose(sparse_history["objective"], wanted["objective"], rtol=1e-9)
    assert prints(arrays_of(X)) == before


def test_a_mask_is_not_lost() -> None:
    X = np.ma.masked_array(np.ones((5, 40)), mask=np.eye(5, 40, dtype=bool))
    why = (
        "{}: is a masked array, and its masked values would be used as data; fill it "
        r"\(numpy.ma.filled\), or leave those samples out"
    )
    with pytest.raises(UserError, match=f"^{why.format('X')}$"):
        Clustering(X, CLIENT, K=3)
    hidden = np.ma.masked_less(CLIENT, 1)
    with pytest.raises(UserError, match=why.format("client")):
        Clustering(np.eye(5, 40), hidden, K=3)
    with pytest.raises(UserError, match=why.format("labels")):
        Clustering(np.eye(5, 40), labels=hidden)


@pytest.mark.parametrize("missing", [float("nan"), None], ids=str)
def test_a_missing_label_is_no_class(missing: Any) -> None:
    labels = [0, 1, missing, 1] * 10
    why = r"^labels: 10 of 40 are missing \(NaN or None\), the first at 2 \(counted from 0\); leave those samples out$"
    with pytest.raises(UserError, match=why):
        Clustering(np.eye(5, 40), labels=labels)
    assert Clustering(np.eye(5, 40), labels=["a", "b"] * 20).K == 2


@pytest.mark.parametrize("K", [41, 10**6])
def test_more_clusters_than_samples_are_refused_at_once(K: int) -> None:
    with pytest.raises(ParameterError, match=f"^K: must be at most the number of samples N = 40, not {K}$"):
        Clustering(np.eye(5, 40), K=K)
    assert Clustering(np.eye(5, 40), K=40).K == 40


def test_where_H_falls_to_zero_the_run_says_so() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 200)) - 1.5
    history = fedrepro.run(fedrepro.FedMAvg(m=3, Q1=10), Clustering(X, np.arange(200) % 10, K=5), 20)
    assert not history.state.H.any()
    assert (
        history.diverged
        == "H is zero everywhere in round 20: is X mostly negative? Shift it, or give another initial point"
    )
    back = rng.random((30, 200)) - 1.5  # negative everywhere, but W follows
    history = fedrepro.run(fedrepro.FedMAvg(m=3, Q1=10), Clustering(back, np.arange(200) % 10, K=5), 20)
    assert history["objective"].max() < 2.0
    assert history.diverged is None


def test_digits_lost_to_underflow_decide_no_label() -> None:
    least, normal = 5e-324, np.finfo(np.float64).tiny
    Hs = np.array([[0, 0, least], [0, normal / 2, 0], [0, normal, least], [normal / 4, 0, 1e-300], [0, 0, 0]])
    assert from_rows(Hs).tolist() == [0, 0, 1, 2, 0]


def test_a_sample_that_is_zero_ends_in_the_first_cluster() -> None:
    X = np.random.default_rng(0).random((30, 200))
    X[:, ::10] = 0.0
    problem = Clustering(X, np.arange(200) % 10, K=5)
    history = fedrepro.run(fedrepro.FedMGS(m=3, Q1=10, Q2=100), problem, 1000, record_every=1000, record_dense=0)
    assert history.state.H[:, ::10].any(), "nothing is left of it: the test shows nothing"
    assert not problem.found(history.state)[::10].any()


@pytest.mark.parametrize(
    ("X", "why"),
    [
        ({"indptr": [0, 2, 1, 3]}, r"where the columns of the sparse matrix begin \(indptr\) must be 4 numbers that"),
        ({"indptr": [0, 1, 2, 9]}, r"\(indptr\) must be 4 numbers that rise from 0 to at most 3"),
        ({"indices": [0, 1, 7]}, "indices of the sparse matrix must be 0 to 3, one is 7"),
        ({"indices": [0, -1, 2]}, "indices of the sparse matrix must be 0 to 3, one is -1"),
    ],
)
def test_a_sparse_matrix_that_points_outside_itself_is_refused(X: dict[str, list[int]], why: str) -> None:
    made = sparse.csc_matrix((np.ones(3), [0, 1, 2], [0, 1, 2, 3]), (4, 3))
    for name, values in X.items():
        setattr(made, name, np.array(values, dtype=np.int32))
    with pytest.raises(UserError, match=f"^X: is damaged: .*{why}"):
        Clustering(made, K=2)


def test_a_coordinate_outside_the_matrix_is_refused() -> None:
    made = sparse.coo_matrix((np.ones(3), ([0, 1, 2], [0, 1, 2])), (4, 3))
    made.coords = (np.array([0, 1, 2]), np.array([0, 1, 3]))
    with pytest.raises(UserError, match="X: is damaged: column indices of the sparse matrix must be 0 to 2, one is 3"):
        Clustering(made, K=2)


# -- every problem -----------------------------------------------------------------------------------------------------


def tiny_problem(problem: str) -> tuple[type, list[Any], dict[str, Any]]:
    """The class of a problem, the data and clients of its tiny instance, and its parameters."""
    name = next(name for name, entry in registry.methods().items() if entry.problem == problem)
    setting = setting_of(name)
    data, client = execute.data_of(setting, 1, stand_in=True)
    return registry.problems()[problem].cls, [copy.deepcopy(data), client], dict(setting.problem_params)


MASKED = {
    "clustering": ("X", "labels"),
    "completion": ("user", "item", "value"),
    "gcca": ("views",),
    "gcca-deep": ("views",),
    "imc": ("U", "V", "Z", "observed"),
    "personal": ("pixels", "labels"),
    "shift": ("x", "noise", "theta", "b", "z"),
}
"""By problem, the arrays of its data."""


@pytest.mark.parametrize(("problem", "field"), [(p, field) for p in MASKED for field in MASKED[p]])
def test_no_problem_reads_what_a_mask_hides(problem: str, field: str) -> None:
    cls, (data, client), parameters = tiny_problem(problem)
    given = getattr(data, field)
    if field == "views":
        given[1] = np.ma.masked_array(given[1])
    else:
        setattr(data, field, np.ma.masked_array(given))
    name = "view 2" if field == "views" else field
    with pytest.raises(UserError, match=f"^{name}: is a masked array, and its masked values would be used as data"):
        cls.of(data, client, parameters)  # type: ignore[attr-defined]


def own(problem: str) -> tuple[Any, Any, dict[str, Any]]:
    """The user's own data, their clients, and parameters of a problem on them."""
    from fedrepro import ClientImages, Entries, Measured, SplitRatings

    draw, ids = np.random.default_rng(0), np.arange(24)
    if problem == "completion-split":
        user, item = np.divmod(np.arange(96), 8)
        stars, test = 1.0 + (user + item) % 5, np.arange(96) % 4 == 0
        return SplitRatings(user, item, stars, 12, 8, test=test), np.arange(12) % 3, {"r": 2}
    if problem == "imc-observed":
        entries = Entries(ids // 4, ids % 4, draw.random(24), Z=draw.random((6, 3)), items=4)
        return entries, None, {"r": 2, "test": 0.25}
    if problem == "regression":
        return Measured(draw.random((24, 3)), draw.random(24), ids // 6, z=draw.random((4, 2))), None, {"test": 0.2}
    pixels = draw.integers(0, 256, (24, 16, 16, 1), dtype=np.uint8)
    images = ClientImages(pixels, ids % 2, split=ids % 4 // 3, side=np.eye(3))
    return images, ids // 8, {"widths": [2, 2, 2, 2]}


OWN = {
    "completion-split": ("user", "item", "value"),
    "imc-observed": ("client", "item", "value", "Z"),
    "personal-side": ("pixels", "labels", "side"),
    "regression": ("x", "y", "client", "z"),
}
"""By problem on data of the user's own, the arrays of its data."""


DERIVED = {"completion-steps": "completion"}
"""Problems that read their data as another one does."""


def test_the_arrays_of_every_problem_are_known() -> None:
    problems = registry.problems()
    assert set(MASKED) | set(OWN) | set(DERIVED) == set(problems)
    assert all(problems[name].cls.__mro__[1] is problems[of].cls for name, of in DERIVED.items())


@pytest.mark.parametrize(("problem", "field"), [(p, field) for p in OWN for field in OWN[p]])
def test_no_problem_on_own_data_reads_what_a_mask_hides(problem: str, field: str) -> None:
    data, client, parameters = own(problem)
    cls = registry.problems()[problem].cls
    cls.of(data, client, parameters)  # type: ignore[attr-defined]
    setattr(data, field, np.ma.masked_array(getattr(data, field)))
    with pytest.raises(UserError, match=f"{field}: is a masked array"):
        cls.of(data, client, parameters)  # type: ignore[attr-defined]


@pytest.mark.parametrize("problem", ["completion", "personal"])
def test_no_problem_reads_a_client_that_a_mask_hides(problem: str) -> None:
    cls, (data, client), parameters = tiny_problem(problem)
    with pytest.raises(UserError, match="client: is a masked array"):
        cls.of(data, np.ma.masked_array(client), parameters)  # type: ignore[attr-defined]


@pytest.mark.parametrize("field", ["labels", "group"])
def test_an_image_of_no_class_or_group_is_refused(field: str) -> None:
    cls, (data, client), parameters = tiny_problem("personal")
    names = np.arange(len(data.labels), dtype=np.float64) % 3
    names[4] = np.nan
    setattr(data, field, names)
    with pytest.raises(UserError, match=f"^{field}: 1 of {names.size} are missing .NaN or None., the first at 4 "):
        cls.of(data, client, parameters)  # type: ignore[attr-defined]


def test_a_row_of_no_class_is_refused_by_deep_gcca() -> None:
    rng = np.random.default_rng(0)
    labels = np.where(np.arange(12) == 3, np.nan, 1.0)
    with pytest.raises(UserError, match="labels: 1 of 12 are missing"):
        fedrepro.DeepGCCA([rng.random((12, 4)), rng.random((12, 3))], 2, labels=labels)


@pytest.mark.parametrize("format", FORMATS)
def test_views_that_hold_entries_twice_are_added_up_and_the_caller_keeps_them(format: str) -> None:
    X, dense = twice(format)
    X, dense = X.T, dense.T  # one sample per row
    other = np.random.default_rng(1).random((40, 6))
    freeze(arrays_of(X))
    before = prints(arrays_of(X))
    sparse_history, wanted = (
        fedrepro.run(fedrepro.AltMaxVar(m=4), fedrepro.GCCA([A, other], 2), 3) for A in (X, dense)
    )
    np.testing.assert_allclose(sparse_history["cost"], wanted["cost"], rtol=1e-9)
    assert prints(arrays_of(X)) == before


def test_a_sparse_view_that_points_outside_itself_is_refused() -> None:
    bad = sparse.csr_matrix(np.eye(6)[:, :4])
    bad.indices = np.where(bad.indices == 2, 9, bad.indices)
    with pytest.raises(UserError, match="view 2: is damaged: indices of the sparse matrix must be 0 to 3, one is 9"):
        fedrepro.GCCA([np.random.default_rng(0).random((6, 3)), bad], 1)


# -- every partition and dataset ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", registry.partitions())
def test_a_partition_writes_into_nothing(name: str) -> None:
    problems = {"users": "completion", "iid_images": "personal", "alphabets": "personal"}
    _, (data, _), _ = tiny_problem(problems.get(name, "clustering"))
    if name == "alphabets":
        data.group = data.labels % 2
    if name == "two_digits":
        data.labels = np.arange(len(data.labels)) % 3
    if name == "given":
        data.client = np.arange(data.X.shape[1]) % 3
    freeze(data)
    before = prints(data)
    partition = registry.partitions()[name].make(**PARTITIONS.get(name, {}))
    partition.assign(data, np.random.default_rng(0))
    assert prints(data) == before


PARTITIONS: dict[str, dict[str, Any]] = {
    "alphabets": {"per_alphabet": 1, "train": 1, "test": 1},
    "iid_images": {"P": 4},
    "users": {"P": 4},
    "two_digits": {"P": 3},
    "similarity": {"P": 4},
    "uniform": {"P": 4},
    "dirichlet": {"P": 4},
}
"""Parameters that fit the tiny instances."""


def test_datasets_are_given_arrays_that_cannot_be_written_to(tmp_path: Path) -> None:
    npy_parts.Writer(tmp_path).save("all", "pixels", np.arange(6))
    (array,) = npy_parts.read(tmp_path, "all").values()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
