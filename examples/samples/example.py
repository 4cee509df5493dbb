"""Samples of one's own: 300 points in 20 features, in three groups, on 10 clients.

``python example.py`` writes samples.csv beside this file, for ``fedrepro run samples.yaml``, and clusters the same
samples from memory.
"""

from pathlib import Path

import numpy as np

from fedrepro import Clustering, FedMGS, run

HERE = Path(__file__).parent


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X (20, 300), one sample a column; the group and the client of each."""
    draw = np.random.default_rng(0)
    group = np.arange(300) % 3
    centres = 4.0 * (draw.random((20, 3)) < 0.4)
    X = np.abs(centres[:, group] + draw.normal(0, 1.0, size=(20, 300)))
    return X, group, draw.integers(10, size=300)


def write(folder: Path) -> None:
    """samples.csv: one row per sample: features, then the columns group and client."""
    X, group, client = arrays()
    rows = np.column_stack([X.T, group, client])
    header = ",".join([*(f"f{i}" for i in range(20)), "group", "client"])
    np.savetxt(folder / "samples.csv", rows, delimiter=",", header=header, comments="", fmt="%.10g")


if __name__ == "__main__":
    write(HERE)
    X, group, client = arrays()
    unit = np.abs(X).max()  # the penalties and the initial point of the problem depend on the scale of X
    history = run(
        FedMGS(m=5, Q1=5, Q2=20), Clustering(X / unit, client, K=3, rho=1e-4, labels=group), rounds=30,
        metrics=("objective", "accuracy"),
    )  # fmt: skip
    print(f"accuracy {history['accuracy'][-1]:.3f} after {history.rounds[-1]} rounds")
