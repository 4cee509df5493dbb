"""The algorithm of CuteMaxVar-Deep and its networks in NumPy, with derivatives by hand: slow, but easy to check."""

from __future__ import annotations

import numpy as np

EPS, MOMENTUM = 1e-5, 0.1


def forward(model, x, train):
    """Outputs, what the backward pass needs of each hidden layer, and the new running statistics."""
    kept, new = [], {}
    layers = sorted({name.partition(".")[0] for name in model if name.startswith("layer")})
    for name in layers:
        z = x @ model[f"{name}.kernel"] + model[f"{name}.bias"]
        if train:
            mean, var = z.mean(axis=0), z.var(axis=0)
            new[f"{name}.mean"] = (1 - MOMENTUM) * model[f"{name}.mean"] + MOMENTUM * mean
            new[f"{name}.var"] = (1 - MOMENTUM) * model[f"{name}.var"] + MOMENTUM * z.var(axis=0, ddof=1)
        else:
            mean, var = model[f"{name}.mean"], model[f"{name}.var"]
        unit = (z - mean) / np.sqrt(var + EPS)
        y = model[f"{name}.scale"] * unit + model[f"{name}.shift"]
        kept.append((name, x, unit, var, y))
        x = np.maximum(y, 0)
    return x @ model["head.kernel"] + model["head.bias"], kept, x, new


def gradient(model, x, target, loss):
    """The loss of a minibatch, its gradient, and the new running statistics."""
    out, kept, last, new = forward(model, x, True)
    residual = out - target
    total, n = np.sum(residual**2), len(x)
    d = residual / n if loss == "squared" else residual / (2 * n * np.sqrt(total))
    value = total / (2 * n) if loss == "squared" else np.sqrt(total) / (2 * n)
    g = {"head.kernel": last.T @ d, "head.bias": d.sum(axis=0)}
    d = d @ model["head.kernel"].T
    for name, x_in, unit, var, y in reversed(kept):
        d = d * (y > 0)
        g[f"{name}.scale"], g[f"{name}.shift"] = (d * unit).sum(axis=0), d.sum(axis=0)
        d = d * model[f"{name}.scale"]
        d = (d - d.mean(axis=0) - unit * (d * unit).mean(axis=0)) / np.sqrt(var + EPS)
        g[f"{name}.kernel"], g[f"{name}.bias"] = x_in.T @ d, d.sum(axis=0)
        d = d @ model[f"{name}.kernel"].T
    return value, g, new


class Adam:
    """Kingma and Ba, Algorithm 1."""

    def __init__(self, lr):
        self.lr, self.t, self.m, self.v = lr, 0, {}, {}

    def step(self, model, g):
        self.t += 1
        for name, values in g.items():
            self.m[name] = 0.9 * self.m.get(name, 0.0) + 0.1 * values
            self.v[name] = 0.999 * self.v.get(name, 0.0) + 0.001 * values**2
            m, v = self.m[name] / (1 - 0.9**self.t), self.v[name] / (1 - 0.999**self.t)
            model[name] = model[name] - self.lr * m / (np.sqrt(v) + 1e-8)


def polar(Y):
    U, _, Vt = np.linalg.svd(Y, full_matrices=False)
    return U @ Vt


def quantize(D, q, rng):
    S, most = 2 ** (q - 1) - 1, np.abs(D).max()
    a = S * np.abs(D) / most
    level = np.floor(a) + (rng.random(D.shape) < a - np.floor(a))
    return np.sign(D) * level * most / S


def cutemaxvar_deep(views, models, batches, rounds, *, q, lr, loss, scaled, center, compress_down, streams):
    """The states (M, G, Ghat) of the deep method; ``batches[r][i]``: the rows of each step of node i in round r."""
    J = len(views[0])
    s = np.sqrt(J) if scaled else 1.0
    models = [dict(model) for model in models]
    adams = [Adam(lr) for _ in models]
    *ups, down = streams
    M = [forward(model, X, False)[0] / s for model, X in zip(models, views, strict=True)]
    hat = [M_i - M_i.mean(axis=0) for M_i in M] if center == "estimate" else list(M)
    G = polar(sum(hat) - sum(hat).mean(axis=0))
    G_hat = G
    yield M, G, G_hat
    for r in range(rounds):
        for i, (model, adam, X) in enumerate(zip(models, adams, views, strict=True)):
            for rows in batches[r][i]:
                _, g, new = gradient(model, X[rows], s * G_hat[rows], loss)
                adam.step(model, g)
                model.update(new)
            M[i] = forward(model, X, False)[0] / s
            hat[i] = hat[i] + quantize(M[i] - hat[i], q, ups[i])
        if center == "estimate":
            hat = [h - h.mean(axis=0) for h in hat]
        G = polar(sum(hat) - sum(hat).mean(axis=0))
        G_hat = G_hat + quantize(G - G_hat, q, down) if compress_down else G
        yield list(M), G, G_hat
