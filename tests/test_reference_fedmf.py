"""The authors' released program, run on a small problem: every number of every round, to ten digits.

``fixtures/fedmf_small.npz`` holds data, initial point, partitions, drawn clients, and for seven runs the objective and
the accuracy (in thousandths) at 61 points and the final factors. M=200, N=1000, K=5, P=10.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrepro.problems.clustering.methods.fedmavg import FedMAvg
from fedrepro.problems.clustering.methods.fedmgs import FedMGS
from fedrepro.problems.clustering.methods.fedpalm import FedPALM
from fedrepro.problems.clustering.problem import Clustering
from fedrepro.runs.compute.drive import run

RUNS: dict[str, Any] = {
    "gs_uniform_m10_Q1_10_Q2_100": FedMGS(m=10, Q1=10, Q2=100),
    "gs_uniform_m10_Q1_1_Q2_1": FedMGS(Q1=1, Q2=1),
    "gs_uniform_m3_Q1_10_Q2_100": FedMGS(m=3, Q1=10, Q2=100),
    "avg_uniform_m10_Q1_10_Q2_1": FedMAvg(Q1=10, Q2=1),
    "avg_uniform_m10_Q1_10_Q2_10": FedMAvg(m=10, Q1=10, Q2=10),
    "avg_kmeans_m10_Q1_10_Qhat_10": FedMAvg(Q1=10, Qhat=10),
    "palm_uniform_HW_1": FedPALM(Q=2),
}


@cache
def reference() -> dict[str, np.ndarray]:
    """The fixture's arrays."""
    with np.load(Path(__file__).parent / "fixtures" / "fedmf_small.npz") as file:
        return {name: file[name] for name in file.files}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_the_authors_run(name: str) -> None:
    data = reference()
    problem = Clustering(data["X"], data[f"par_{name.split('_')[1]}"], K=5, labels=data["labels"])
    init, clients = (data["W0"], data["H0"]), data.get(f"{name}__A")
    h = run(RUNS[name], problem, 60, init=init, clients=clients, metrics=("objective", "accuracy"))
    np.testing.assert_allclose(h["objective"], data[f"{name}__obj"], rtol=1e-10, atol=0)
    np.testing.assert_array_equal(np.rint(1000 * h["accuracy"]), data[f"{name}__acc"])
    np.testing.assert_allclose(h.state.W, data[f"{name}__Wend"], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(h.state.H, data[f"{name}__Hend"], rtol=1e-10, atol=1e-10)


def test_every_reference_run_is_compared() -> None:
    assert {name.removesuffix("__obj") for name in reference() if name.endswith("__obj")} == set(RUNS)


def test_the_initial_point_is_the_authors_first_one() -> None:
    data = reference()
    W0, H0 = Clustering(data["X"], data["par_kmeans"], K=5).initial(1)
    np.testing.assert_allclose(W0, data["W0"], rtol=1e-14)
    np.testing.assert_allclose(H0, data["H0"], rtol=1e-14)
