"""Entries of a matrix of one's own: 60 clients see 12 of 25 items each; what they see follows from 5 numbers of theirs.

``python example.py`` writes entries.npz beside this file, for ``fedrepro run entries.yaml``, and completes the same
matrix from memory. The true factors are used to make the data, and by nothing else.
"""

from pathlib import Path

import numpy as np

from fedrepro import Entries, IMCPerFedSI, ObservedIMC, run

HERE = Path(__file__).parent
CLIENTS, ITEMS, SEEN = 60, 25, 12


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """client, item and value of each entry; Z (60, 5), rows of norm 1."""
    draw = np.random.default_rng(0)
    Z = draw.normal(size=(CLIENTS, 5))
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    L = draw.normal(size=(ITEMS, 2)) @ draw.normal(size=(2, 5)) @ Z.T
    client = np.repeat(np.arange(CLIENTS), SEEN)
    item = np.concatenate([draw.choice(ITEMS, SEEN, replace=False) for _ in range(CLIENTS)])
    return client, item, L[item, client] + draw.normal(0, 0.01, size=client.size), Z


def write(folder: Path) -> None:
    """entries.npz with client, item, value and Z."""
    np.savez(folder / "entries.npz", **dict(zip(("client", "item", "value", "Z"), arrays(), strict=True)))


if __name__ == "__main__":
    write(HERE)
    client, item, value, Z = arrays()
    problem = ObservedIMC(Entries(client, item, value, Z, ITEMS), r=2, test=0.25)
    history = run(IMCPerFedSI(eta=0.2, tau=20, m=10), problem, rounds=300, metrics=("rmse_train", "rmse"))
    print(f"RMSE of held-back entries {history['rmse'][-1]:.4f}, at the start {history['rmse'][0]:.4f}")
