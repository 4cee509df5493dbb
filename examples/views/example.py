"""Views of one's own: 200 samples seen in three ways, one of them sparse, two classes.

``python example.py`` writes views.mat beside this file, for ``fedrepro run views.yaml``, and finds the common
representation of the same views from memory.
"""

from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse

from fedrepro import GCCA, CuteMaxVar, run

HERE = Path(__file__).parent


def arrays() -> tuple[list, np.ndarray]:
    """Views (200, 12), (200, 8) and, sparse, (200, 30) of the same samples; the class of each."""
    draw = np.random.default_rng(0)
    label = np.arange(200) % 2
    shared = draw.normal(size=(200, 3)) + 2.0 * label[:, None]
    dense = [shared @ draw.normal(size=(3, n)) + 0.3 * draw.normal(size=(200, n)) for n in (12, 8)]
    counts = draw.poisson(np.exp(0.4 * shared @ draw.normal(size=(3, 30)) - 1.0))
    dense = [(X - X.mean(axis=0)) / X.std(axis=0) for X in dense]
    return [*dense, scipy.sparse.csr_matrix(np.log1p(counts))], label


def write(folder: Path) -> None:
    """views.mat with the matrices sound, text and words, and the vector label."""
    views, label = arrays()
    names = dict(zip(("sound", "text", "words"), views, strict=True))
    scipy.io.savemat(folder / "views.mat", {**names, "label": label})


if __name__ == "__main__":
    write(HERE)
    views, _ = arrays()
    history = run(CuteMaxVar(m=8, T=20), GCCA(views, K=2), rounds=40, metrics=("ratio", "subspace"))
    print(f"cost / optimal cost {history['ratio'][-1]:.5f} after {history.rounds[-1]} rounds")
