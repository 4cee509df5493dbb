r"""Inductive matrix completion from observed entries: ``imc`` on the user's own data.

Client m knows its side information z_m and a few entries of its column of a matrix; the true factors are unknown. The
methods of ``fedrepro.problems.imc`` fit :math:`U V^T z_m` to the training entries (perfedsi (4), (11), (12)). The
metrics are the errors on the entries held back and on the training entries.

**Numbers of entries.** Steps sample a client's entries uniformly. If clients have different numbers of entries, those
of each client are repeated in turn to a common length: ``CHANCES`` times the largest number, or the least common
multiple if that is shorter. The probability of an entry is then off by at most one part in ``CHANCES``.

**Units.** eta depends on the size of z and of the entries, because the steps are gradient steps; the paper's z have
norm 1 (``rows: unit`` of the dataset ``entries-file``).

Source: perfedsi (4), (11), (12), section 3 and Appendix C.4.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fedrepro.arrays import unmasked
from fedrepro.datasets.own_types import Entries
from fedrepro.errors import ParameterError, UserError
from fedrepro.numerics import held_back
from fedrepro.parameters import Number, Range, Whole, all_of
from fedrepro.problems.imc.problem import IMC, State
from fedrepro.protocols import Metric, by_name
from fedrepro.registry import add_problem

CHANCES = 50

METRICS = by_name(
    Metric("rmse", "RMSE, held-back entries", "lower", "root mean square error of the entries held back"),
    Metric("rmse_train", "RMSE, entries trained with", "lower", "the same of the entries trained with"),
    Metric("error", "relative error, held-back entries", "lower", "‖error‖ / ‖entries‖ of those held back"),
    Metric("observed_error", "relative error, entries trained with", "lower", "the same of the entries trained with"),
)

PARAMETERS: dict[str, Any] = {"r": 2, "test": 0.2, "init": 0.1}


class ObservedIMC(IMC):
    """The problem in memory.

    entries : ``Entries``. r : rank, 1 .. min(items, k). test : share of each client's entries held back, rounded down;
    ignored if the data mark the test entries. init : size of the initial entries.

    Raises UserError if the data cannot work, and ParameterError if a parameter cannot.

    Example:
    >>> import numpy as np
    >>> from fedrepro import Entries, ObservedIMC
    >>> rng = np.random.default_rng(0)
    >>> client, item = np.repeat(np.arange(8), 4), np.concatenate([rng.permutation(6)[:4] for _ in range(8)])
    >>> entries = Entries(client, item, rng.random(32), Z=rng.standard_normal((8, 3)), items=6)
    >>> problem = ObservedIMC(entries, r=2, test=0.25)
    >>> problem.d, problem.M
    (6, 8)
    """

    name = "imc-observed"
    metrics = METRICS
    default_metrics = ("rmse_train",)
    parameters = PARAMETERS
    ranges: ClassVar[Mapping[str, Range]] = {
        "r": Whole(),
        "test": Number(least=0.0, most=0.99),
        "init": Number(above=0.0),
    }
    stored_parameters = ("test",)
    probes: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # own data are not at hand to be measured on

    def __init__(self, entries: Entries, *, r: int = 2, test: float = 0.2, init: float = 0.1) -> None:
        ObservedIMC.check({"r": r, "test": test, "init": init}, {})
        _check(entries)
        client, item = np.asarray(entries.client), np.asarray(entries.item)
        value, Z = np.asarray(entries.value, dtype=np.float64), np.asarray(entries.Z, dtype=np.float64)
        held = (
            held_back.drawn(self.name, client, test, (client, item, value))
            if entries.test is None
            else np.asarray(entries.test, dtype=bool)
        )
        self._set_up(client, item, value, Z, int(entries.items), held, r, init)

    def _set_up(
        self,
        client: np.ndarray,
        item: np.ndarray,
        value: np.ndarray,
        Z: np.ndarray,
        d: int,
        held: np.ndarray,
        r: int,
        init: float,
    ) -> None:
        self.Z, self.d, self.r, self.init, self.truth = Z, d, int(r), init, False  # the truth is not known
        self.M, self.k = Z.shape
        if self.r > min(self.d, self.k):
            raise ParameterError("r", f"must be at most the {self.d} items and the {self.k} numbers of z, not {r}")
        self.client, self.item, self.value, self.held = client, item, value, held
        counts = np.bincount(client[~held], minlength=self.M)
        if not counts.all():
            raise UserError(f"entries: client {int(np.argmin(counts))} has none to train with; leave it out")
        self.L = np.full((self.d, self.M), np.nan)  # unobserved entries are NaN, and no step reads them
        self.L[item, client] = value
        self.items = _even(client[~held], item[~held], counts)

    def measure(self, state: State, names: Sequence[str]) -> dict[str, float]:
        """The value of each named metric at a state."""
        all_of("metrics", names, tuple(METRICS))
        with np.errstate(over="ignore", invalid="ignore"):
            W = state.Z @ state.V
            error = np.einsum("nr,nr->n", state.U[self.item], W[self.client]) - self.value
            values = {}
            for name in names:
                chosen = self.held if name in ("rmse", "error") else ~self.held
                if not chosen.any():
                    raise ParameterError("test", f"leaves no entry to measure '{name}' on; hold some back")
                size = float(np.linalg.norm(error[chosen]))
                scale = math.sqrt(chosen.sum()) if "rmse" in name else float(np.linalg.norm(self.value[chosen]))
                values[name] = size / scale
        return values

    @classmethod
    def check(cls, parameters: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        """Raise ParameterError if a parameter cannot work; ``facts`` may contain the items N and k, or None."""
        super().check(parameters, facts)
        r = parameters.get("r", PARAMETERS["r"])
        for name, what in (("N", "items"), ("k", "numbers of z")):
            if facts.get(name) and r > facts[name]:
                raise ParameterError("r", f"must be at most the {facts[name]} {what}, not {r}")

    @classmethod
    def prepare(cls, folder: Path, data: Any, client: np.ndarray | None, parameters: Mapping[str, Any]) -> None:
        """Write ``Entries`` and which of them are held back, for ``stored``."""
        problem = cls(data, r=1, test={**PARAMETERS, **parameters}["test"])
        for name in _FILES:
            np.save(folder / f"{name}.npy", getattr(problem, name))
        (folder / "facts.json").write_text(json.dumps({"d": problem.d}), encoding="utf-8")

    @classmethod
    def stored(cls, folder: Path, parameters: Mapping[str, Any]) -> ObservedIMC:
        """The problem in a folder written by ``prepare``."""
        values, problem = {**PARAMETERS, **parameters}, cls.__new__(cls)
        facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
        client, item, value, Z, held = (np.load(folder / f"{name}.npy") for name in _FILES)
        problem._set_up(client, item, value, Z, facts["d"], held, values["r"], values["init"])
        return problem


_FILES = ("client", "item", "value", "Z", "held")


def _check(entries: Entries) -> None:
    unmasked(client=entries.client, item=entries.item, value=entries.value, Z=entries.Z)
    client, item, value = (np.asarray(array) for array in (entries.client, entries.item, entries.value))
    if not client.shape == item.shape == value.shape or client.ndim != 1 or not client.size:
        raise UserError(
            "entries: client, item and value must be arrays of one length of at least 1, not of shapes "
            f"{client.shape}, {item.shape} and {value.shape}"
        )
    Z = np.asarray(entries.Z)
    if Z.ndim != 2 or 0 in Z.shape:
        raise UserError(f"Z: must have a row of side information for each client, (M, k), not shape {Z.shape}")
    for name, ids, count in (("client", client, len(Z)), ("item", item, entries.items)):
        if ids.dtype.kind not in "iu" or ids.min() < 0 or ids.max() >= count:
            raise UserError(f"entries: {name} ids must be integers from 0 to {count - 1}")
    if not (np.isfinite(value).all() and np.isfinite(Z).all()):
        raise UserError("entries: value and Z must be finite numbers")
    if entries.test is not None and np.shape(entries.test) != client.shape:
        raise UserError(f"test: must give true or false for each entry, {client.shape}, not {np.shape(entries.test)}")
    pairs = client.astype(np.int64) * int(entries.items) + item
    if len(np.unique(pairs)) < len(pairs):
        raise UserError("entries: a pair of client and item occurs more than once; keep one entry per pair")


def _even(client: np.ndarray, item: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The items of each client's entries, repeated in turn to a common length: (M, length)."""
    length = math.lcm(*(int(count) for count in np.unique(counts)))
    length = min(length, CHANCES * int(counts.max()))
    ordered = item[np.argsort(client, kind="stable")]
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    place = starts[:, None] + np.arange(length)[None, :] % counts[:, None]
    return ordered[place]


add_problem(
    ObservedIMC,
    "Inductive matrix completion from observed entries of the user's own, true factors unknown",
    data_kind="entries",
    artifacts=("U", "V"),
)
