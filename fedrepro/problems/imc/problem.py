r"""Inductive matrix completion over clients: the simulation of ``perfedsi`` (section 3, Appendix C.4).

Client m knows its side information z_m and a few entries of column m of :math:`L_* = M_* Z^T`. The problem is to find
:math:`U \in R^{d \times r}, V \in R^{k \times r}` with :math:`U V^T \approx M_*`:

.. math:: L(U, V) = \frac{1}{2M} \|(U V^T - M_*) Z^T\|_F^2

This is perfedsi (5) with the factor 1/2 of (10); the two sides of (5) differ in it (discrepancy perfedsi.17).
Methods without side information predict with another Z: see ``fedrepro.problems.imc.methods.imc_plain``.

Source: perfedsi (5), (10), section 3 and Appendix C.4; discrepancy perfedsi.17.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from fedrepro import seeds
from fedrepro.arrays import unmasked
from fedrepro.datasets.imc_instances import Instance, conditioning
from fedrepro.errors import UserError
from fedrepro.parameters import Flag, Number, Range, all_of, whole
from fedrepro.protocols import Cost, Metric, Problem, Work, by_name
from fedrepro.registry import add_problem
from fedrepro.seeds import Rng

METRICS = by_name(
    Metric("error", "relative error  ‖UVᵀZᵀ − L*‖ / ‖L*‖", "lower", "over all entries, also the unseen ones"),
    Metric("loss", "loss  L(U, V)", "lower", "squared error over 2M, over all entries"),
    Metric("observed_error", "relative error, observed entries", "lower", "over the entries seen"),
    Metric("lam_min", "conditioning  λmin", "higher", "of the instance; 0 where L* is not determined"),
)

PARAMETERS: dict[str, Any] = {"fresh": False, "init": 0.1, "truth": False}


@dataclass
class State:
    """One point, predicting U V^T Z^T: U (d, r), V (q, r), Z (M, q), where Z is the method's own. Updated in place."""

    U: np.ndarray
    V: np.ndarray
    Z: np.ndarray

    def copy(self) -> State:
        """A copy that later rounds do not change."""
        return State(self.U.copy(), self.V.copy(), self.Z)


@dataclass(frozen=True)
class Start:
    """The initial point number ``trial``: ``scale`` times N(0, 1) entries, which depend on the name and shape."""

    trial: int
    scale: float

    def draw(self, name: str, shape: tuple[int, int]) -> np.ndarray:
        """The matrix ``name`` at the start."""
        facts = {"problem": "imc", "trial": self.trial, "array": name, "shape": list(shape)}
        return self.scale * seeds.generator("init", **facts).standard_normal(shape)


class IMC(Problem):
    """The inductive completion problem in memory.

    instance : the matrices and the observed entries. fresh : whether the steps of a client may use any entry of its
    column (the theorem's setting, a control) instead of its few observed ones (the simulation). init : size of the
    initial entries. truth : whether these entries are added to U* and V*, for a start near the truth (perfedsi
    Definition 3.1); only methods with side information can start there.

    >>> import numpy as np
    >>> from fedrepro import IMC, Instance
    >>> rng = np.random.default_rng(0)
    >>> U, V, Z = rng.standard_normal((6, 2)), rng.standard_normal((3, 2)), rng.standard_normal((8, 3))
    >>> observed = np.array([rng.permutation(6)[:4] for _ in range(8)])
    >>> problem = IMC(Instance(U, V, Z, observed))
    >>> problem.d, problem.M
    (6, 8)
    """

    name = "imc"
    metrics = METRICS
    default_metrics = ("error",)
    parameters = PARAMETERS
    ranges: ClassVar[Mapping[str, Range]] = {"fresh": Flag(), "init": Number(above=0.0), "truth": Flag()}
    probes: ClassVar[Mapping[str, Mapping[str, Any]]] = {"dense": {"dataset": {"name": "imc"}}}

    def __init__(self, instance: Instance, *, fresh: bool = False, init: float = 0.1, truth: bool = False) -> None:
        IMC.check({"fresh": fresh, "init": init, "truth": truth}, {})
        unmasked(U=instance.U, V=instance.V, Z=instance.Z, observed=instance.observed)
        self.U, self.V, self.Z = instance.U, instance.V, instance.Z
        (self.d, self.r), (self.M, self.k) = self.U.shape, self.Z.shape
        with threadpool_limits(limits=1):  # more threads add in another order
            self.L = self.U @ (self.V.T @ self.Z.T)
            self.norm = float(np.linalg.norm(self.L))
            self.lam_min = conditioning(self.U, self.V, self.Z, instance.observed)
        everything = np.tile(np.arange(self.d), (self.M, 1))
        self.items = everything if fresh else instance.observed
        self.init, self.truth = init, truth

    def initial(self, trial: int) -> Start:
        """The initial point number ``trial``."""
        whole("trial", trial, 0)
        return Start(trial, self.init)

    def start(self, init: Any, U: tuple[int, int], V: tuple[int, int], rng: Rng) -> list[np.ndarray]:
        """U and V at the start: from a ``Start``, explicit matrices of these shapes, or random for None."""
        if init is None:
            init = Start(int(rng.integers(2**31)), self.init)
        if isinstance(init, Start):
            return self._drawn(init, U, V)
        factors = [np.array(part, dtype=np.float64) for part in init]
        if [part.shape for part in factors] != [U, V]:
            raise UserError(f"init: U and V must have shapes {U} and {V}, not {[part.shape for part in factors]}")
        return factors

    def _drawn(self, init: Start, U: tuple[int, int], V: tuple[int, int]) -> list[np.ndarray]:
        parts = [init.draw("U", U), init.draw("V", V)]
        if not self.truth:
            return parts
        if (self.U.shape, self.V.shape) != (U, V):
            raise UserError("truth: a method without side information learns other matrices; start it at random")
        return [self.U + parts[0], self.V + parts[1]]

    def measure(self, state: State, names: Sequence[str]) -> dict[str, float]:
        """The value of each named metric at a state."""
        with np.errstate(over="ignore", invalid="ignore"):
            E = state.U @ (state.V.T @ state.Z.T) - self.L
            error = float(np.linalg.norm(E)) / self.norm
        seen = (self.items, np.arange(self.M)[:, None])
        values = {
            "error": error,
            "loss": (error * self.norm) ** 2 / (2 * self.M),
            "observed_error": float(np.linalg.norm(E[seen]) / np.linalg.norm(self.L[seen])),
            "lam_min": self.lam_min,
        }
        all_of("metrics", names, tuple(METRICS))
        return {name: values[name] for name in names}

    @staticmethod
    def stored_bytes(facts: Mapping[str, Any]) -> float:
        """Four small matrices."""
        return 80.0 * (facts["M"] + facts["N"])

    @staticmethod
    def preparing(facts: Mapping[str, Any]) -> Cost:
        """The cost of writing them."""
        return Cost(Work(calls=1000.0))

    @staticmethod
    def measuring(names: Sequence[str], facts: Mapping[str, Any]) -> Cost:
        """The cost of the whole matrix U V^T Z^T."""
        return Cost(round=Work(singles=6.0 * facts["M"] * facts["N"], calls=45.0))

    def artifacts(self, state: State, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Named arrays of a state: ``U`` and ``V``."""
        all_of("artifacts", names, ("U", "V"))
        return {name: getattr(state, name).copy() for name in names}

    @classmethod
    def prepare(cls, folder: Path, data: Instance, client: np.ndarray | None, parameters: Mapping[str, Any]) -> None:
        """Write an ``Instance``, for ``stored``."""
        arrays = {"U": data.U, "V": data.V, "Z": data.Z, "observed": data.observed}
        unmasked(**arrays)
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array)
        (folder / "facts.json").write_text(json.dumps(data.facts), encoding="utf-8")

    @classmethod
    def stored(cls, folder: Path, parameters: Mapping[str, Any]) -> IMC:
        """The problem in a folder written by ``prepare``."""
        arrays = {name: np.load(folder / f"{name}.npy") for name in ("U", "V", "Z", "observed")}
        return IMC(Instance(**arrays), **{**PARAMETERS, **parameters})

    @staticmethod
    def diverged(values: Mapping[str, np.ndarray]) -> str | None:
        """Why a run counts as diverged, or None: a value is not finite."""
        for name, column in values.items():
            bad = np.flatnonzero(~np.isfinite(column))
            if bad.size:
                return f"{name} is not finite at record {int(bad[0])}"
        return None


add_problem(
    IMC,
    "Inductive matrix completion: each client sees a few entries of its column and its side information",
    data_kind="imc",
    artifacts=("U", "V"),
)
