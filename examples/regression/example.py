"""Regression data of one's own: 40 clients with 5 to 30 samples each; what shifts their responses stands in z.

``python example.py`` writes regression.csv beside this file, for ``fedrepro run regression.yaml``, and fits the same
data from memory.
"""

from pathlib import Path

import numpy as np

from fedrepro import Measured, Regression, ShiftAveraging, run

HERE = Path(__file__).parent
CLIENTS, D, K = 40, 6, 2


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """x (n, 6), y (n,), client (n,), z (40, 2)."""
    draw = np.random.default_rng(0)
    client = np.repeat(np.arange(CLIENTS), draw.integers(5, 31, size=CLIENTS))
    z = draw.normal(size=(CLIENTS, K))
    x = draw.normal(size=(client.size, D))
    y = x @ draw.normal(size=D) + (z @ [2.0, -1.0])[client] + draw.normal(0, 0.3, size=client.size)
    return x, y, client, z


def write(folder: Path) -> None:
    """regression.csv: client, the response y, inputs x0 ... x5, and z0, z1, the same in all rows of a client."""
    x, y, client, z = arrays()
    header = ",".join(["client", "y", *(f"x{i}" for i in range(D)), *(f"z{i}" for i in range(K))])
    rows = np.column_stack([client, y, x, z[client]])
    np.savetxt(folder / "regression.csv", rows, delimiter=",", header=header, comments="", fmt="%.10g")


if __name__ == "__main__":
    write(HERE)
    x, y, client, z = arrays()
    problem = Regression(Measured(x, y, client, z))
    for side in (False, True):
        history = run(ShiftAveraging(side=side, m=10), problem, rounds=60, metrics=("mse_train", "mse"))
        print(f"{'with' if side else 'without'} side information: mean squared error {history['mse'][-1]:.3f}")
