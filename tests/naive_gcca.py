"""gcca Algorithm 1 written down line by line, for the tests: dense views, plain NumPy, no speed."""

from __future__ import annotations

import numpy as np

from fedrepro.seeds import streams


def quantized(D, q, u, rng):
    """Eq. (18)-(20)."""
    S = 2 ** (q - 1) - 1
    U = rng.random(D.shape)
    largest = np.abs(D).max()
    if largest == 0:
        return np.zeros_like(D)
    C = np.zeros_like(D)
    for j in range(D.shape[0]):
        for k in range(D.shape[1]):
            a = S * (abs(D[j, k]) / largest)
            p = np.floor(a)
            level = p + 1 if U[j, k] < a - p else p
            C[j, k] = np.sign(D[j, k]) * largest * level / S
    return C / u


def minibatch(u, J):
    """b rows of J without replacement."""
    left = list(range(J))
    for j, value in enumerate(u):
        other = j + int(value * (J - j))
        left[j], left[other] = left[other], left[j]
    return left[: len(u)]


def polar(Y):
    U, _, Vt = np.linalg.svd(Y, full_matrices=False)
    return U @ Vt


def cutemaxvar(X, K, rng, Q, G, rounds, *, q, T, b, rho=0.0, center="none", error_feedback=True, directions="both",
               u=1.0, step=1.0, unbiased=True):  # fmt: skip
    """Yield (Q, G, Mhat, Ghat) at the initial point and after every round; ``q`` None: no quantization."""
    drawn = streams(rng)
    *up_streams, down_stream = drawn.compressor.spawn(len(X) + 1)
    batches = drawn.minibatch.spawn(len(X))
    J = X[0].shape[0]
    Q = [Q_i.copy() for Q_i in Q]
    M = [X_i @ Q_i for X_i, Q_i in zip(X, Q, strict=True)]
    H = np.eye(J) - np.ones((J, J)) / J
    Mhat = [H @ M_i if center == "estimate" else M_i.copy() for M_i in M]  # lines 2-6
    if G is None:
        G = polar(sum(H @ m if center == "sum" else m for m in Mhat))  # line 7, eq. (9)
    Ghat = G.copy()  # line 8
    yield Q, G, Mhat, Ghat
    for _ in range(rounds):
        last_M, last_G = M, G
        M, messages = [], []
        for i, X_i in enumerate(X):
            alpha = step / np.linalg.norm(X_i, 2) ** 2
            uniforms = batches[i].random((T, b)) if b is not None else None
            Q_i = Q[i].copy()
            for t in range(T):  # lines 19-22
                F = range(J) if b is None else minibatch(uniforms[t], J)
                scale = J / b if b is not None and unbiased else 1.0
                XF, GF = X_i[list(F)], Ghat[list(F)]
                Q_i = Q_i - alpha * scale * XF.T @ (XF @ Q_i - GF)
            Q[i] = Q_i
            M.append(X_i @ Q_i)
            if q is None:
                Mhat[i] = M[i].copy()
            else:
                Delta = M[i] - Mhat[i] if error_feedback else M[i] - last_M[i]  # line 23
                messages.append(quantized(Delta, q, u, up_streams[i]))
                Mhat[i] = Mhat[i] + messages[-1]  # lines 25, 28
        if center == "estimate":
            Mhat = [H @ m for m in Mhat]
        Y = sum(H @ m if center == "sum" else m for m in Mhat) + rho * G  # eq. (15)
        G = polar(Y)  # eq. (16)
        if q is None or directions == "uplink":
            Ghat = G.copy()
        else:
            Delta = G - Ghat if error_feedback else G - last_G  # line 30
            Ghat = Ghat + quantized(Delta, q, u, down_stream)  # line 32
        yield list(Q), G, list(Mhat), Ghat
