r"""Federated image classification with personalised clients: the problem of ``perfedsi``, section 4.

Client m holds train and test images and side information :math:`z_m`, which is never sent. All clients have the same
classes and the same architecture (``fedrepro.nets.convnet``); methods differ in the layers that clients share. Accuracy
is the mean over *all* clients of the accuracy of the client's model on its own test images, among all classes
(discrepancy perfedsi.5):

* ``accuracy`` (reading E1): the client's model after a download of the shared layers;
* ``accuracy_tuned`` (reading E2): this model after one more local epoch.

**Side information.** ``side="group"``: a classifier of the images' groups (Omniglot: alphabets) is trained on all
clients' train images; z_m is the mean of the output of its last block over client m's train images. ``side="shift"``:
the number of the client's affine shift, one-hot. **Shifts.** ``shift="affine"`` applies shift m mod 4 to the images of
client m.

Arithmetic is in single precision, PyTorch's default (the paper names none); ``precision="double"`` is for checks of
derivatives.

Source: perfedsi section 4 and Appendix D; docs/derivations/personal-networks.md.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fedrepro import seeds
from fedrepro.arrays import complete, unmasked
from fedrepro.datasets.types import Images
from fedrepro.errors import ParameterError, UserError
from fedrepro.nets.convnet import Net, initial
from fedrepro.nets.stacked_models import Model, stacked, stacks
from fedrepro.nets.training import SGD, Data, mean_features, on_device, orders, score, train
from fedrepro.nets.weights import given
from fedrepro.parameters import OneOf, Range, Whole, all_of, whole
from fedrepro.problems.personal.image_shifts import SHIFTS, shifted
from fedrepro.protocols import Cost, Metric, Problem, Work, by_name
from fedrepro.registry import add_problem
from fedrepro.seeds import Rng

METRICS = by_name(
    Metric("accuracy", "test accuracy", "higher", "mean over clients, of the model after a download"),
    Metric("accuracy_tuned", "test accuracy after one local epoch", "higher", "the same after one more local epoch"),
    Metric("train_accuracy", "train accuracy", "higher", "mean over clients, on their train images"),
    Metric("loss", "test cross-entropy", "lower", "mean over clients, on their test images"),
    Metric("clients", "clients", "higher", "number of clients M"),
    Metric("train_samples", "train images per client", "higher", "mean over clients"),
    Metric("test_samples", "test images per client", "higher", "mean over clients"),
)

PARAMETERS: dict[str, Any] = {
    "widths": [64, 64, 64, 256],
    "last_pool": "floor",
    "shift": "none",
    "side": "none",
    "side_epochs": 8,
    "precision": "single",
}

ARTIFACTS = ("client_accuracy", "side")

_CLASSIFIER = SGD(lr=0.02, momentum=0.9, batch=32)
"""Training of the group classifier, which the paper does not specify (discrepancy perfedsi.22)."""


@dataclass(frozen=True)
class Start:
    """The initial point number ``trial``: each named array has its own draw, so networks share their common arrays."""

    trial: int

    def uniform(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Numbers in [-1, 1) for the array ``name``."""
        return seeds.generator("init", problem="personal", trial=self.trial, array=name).uniform(-1.0, 1.0, shape)


@dataclass
class State:
    """The clients' models after a round, updated in place.

    shared : arrays all clients have in common. own : (clients, ...) arrays that stay with each client; a name in both
    is the client's own. z : (clients, side_dim). sgd : the local training, for one more epoch. length : models
    stacked at a time. anchor : what the proximal term of sgd pulls to, or None. round : rounds done.
    """

    net: Net
    shared: Model
    own: Model
    z: np.ndarray
    sgd: SGD
    length: int = 1
    anchor: Model | None = None
    round: int = 0

    def models(self, clients: np.ndarray) -> Model:
        """The models of ``clients``, stacked."""
        return stacked(self.shared, self.own, self.net, clients)

    def copy(self) -> State:
        """A copy that later rounds do not change."""
        shared, own = ({name: v.copy() for name, v in part.items()} for part in (self.shared, self.own))
        anchor = None if self.anchor is None else {name: v.copy() for name, v in self.anchor.items()}
        return dataclasses.replace(self, shared=shared, own=own, anchor=anchor)


@dataclass
class _Arrays:
    """The arrays that ``prepare`` writes: images, and the rows of train and test images, ordered by client."""

    pixels: np.ndarray
    labels: np.ndarray
    train: np.ndarray
    train_starts: np.ndarray
    test: np.ndarray
    test_starts: np.ndarray
    z: np.ndarray
    facts: dict[str, Any] = field(default_factory=dict)


_FILES = ("pixels", "labels", "train", "train_starts", "test", "test_starts", "z")


class Personal(Problem):
    """The problem in memory.

    images : ``Images``. client : (n, 2) integers, the client of each image (-1: none) and its part (0 train, 1
    test); or (n,) clients if ``images.split`` contains the part. Every client needs both parts.
    widths : channels of the network's four blocks, at least 1 each. last_pool : rounding of an odd size in the last
    pooling, ``floor`` or ``ceil``. shift : transformation of the images: ``none``, or ``affine``, shift m mod 4 for
    client m. side : side information z_m: ``none``; ``group``, features of the images' groups; ``shift``, the client's
    shift, one-hot. side_epochs : epochs of the classifier of the groups. precision : precision of all arithmetic,
    ``single`` or ``double``.

    Raises UserError if the data cannot work, and ParameterError if a parameter cannot.

    >>> import numpy as np
    >>> from fedrepro import Images, Personal
    >>> rng = np.random.default_rng(0)
    >>> images = Images(rng.integers(0, 256, (24, 16, 16, 1), dtype=np.uint8), np.arange(24) % 2)
    >>> client = np.column_stack([np.arange(24) // 8, np.arange(24) % 4 == 3])  # client, test?
    >>> problem = Personal(images, client, widths=(2, 2, 2, 2))
    >>> problem.M  # clients
    3
    """

    name = "personal"
    metrics = METRICS
    default_metrics = ("accuracy",)
    parameters = PARAMETERS
    ranges: ClassVar[Mapping[str, Range]] = {
        "last_pool": OneOf("floor", "ceil"),
        "shift": OneOf("none", "affine"),
        "side": OneOf("none", "group", "shift"),
        "side_epochs": Whole(),
        "precision": OneOf("single", "double"),
    }

    def __init__(self, images: Images, client: Any, **parameters: Any) -> None:
        self._set_up(_arrays(images, client, {**PARAMETERS, **parameters}), parameters)

    @classmethod
    def stored(cls, folder: Path, parameters: Mapping[str, Any]) -> Personal:
        """The problem in a folder written by ``prepare``."""
        facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
        problem = cls.__new__(cls)
        loaded = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in _FILES}
        problem._set_up(_Arrays(**loaded, facts=facts), parameters)
        return problem

    def _set_up(self, arrays: _Arrays, parameters: Mapping[str, Any]) -> None:
        Personal.check(parameters, {})
        values = {**PARAMETERS, **parameters}
        self.pixels, self.labels, self.z = arrays.pixels, arrays.labels, np.asarray(arrays.z)
        self.train_rows = np.split(np.asarray(arrays.train), arrays.train_starts[1:-1])
        self.test_rows = np.split(np.asarray(arrays.test), arrays.test_starts[1:-1])
        self.M = len(self.train_rows)
        self.sizes = np.array([len(rows) for rows in self.train_rows])
        self.most_train = _room(int(self.sizes.max()))
        self.most_test = _room(max(len(rows) for rows in self.test_rows))
        self.double = values["precision"] == "double"
        self.dtype = np.float64 if self.double else np.float32
        self.plain = Net(
            size=self.pixels.shape[1],
            channels=self.pixels.shape[3],
            classes=int(arrays.facts["classes"]),
            widths=tuple(values["widths"]),
            ceil=values["last_pool"] == "ceil",
        )

    @functools.cached_property
    def data(self) -> Data:
        """The images on the device."""
        return on_device(self.pixels, self.labels, self.double)

    def initial(self, trial: int) -> Start:
        """The initial point number ``trial``."""
        whole("trial", trial, 0)
        return Start(trial)

    def start(self, net: Net, init: Any, rng: Rng) -> Model:
        """The initial model of a network: from a ``Start``, from arrays by name, or random for None."""
        if init is None:
            init = Start(int(rng.integers(2**31)))
        return initial(net, init.uniform, self.dtype) if isinstance(init, Start) else given(net, init, self.dtype)

    def orders(self, clients: np.ndarray, rng: Rng, sgd: SGD) -> tuple[np.ndarray, np.ndarray]:
        """The minibatches of one local training of each of ``clients``."""
        return orders([self.train_rows[m] for m in clients], rng, sgd, self.most_train)

    def measure(self, state: State, names: Sequence[str]) -> dict[str, float]:
        """The value of each named metric at a state. Accuracies of models that are not finite are NaN."""
        values: dict[str, float] = {
            "clients": float(self.M),
            "train_samples": float(self.sizes.mean()),
            "test_samples": float(np.mean([len(rows) for rows in self.test_rows])),
        }
        all_of("metrics", names, tuple(METRICS))
        if {"accuracy", "loss"} & set(names):
            right, lost = self.scores(state)
            values |= {"accuracy": float(right.mean()), "loss": float(lost.mean())}
        if "train_accuracy" in names:
            values["train_accuracy"] = float(self.scores(state, on="train")[0].mean())
        if "accuracy_tuned" in names:
            values["accuracy_tuned"] = float(self.scores(state, tuned=True)[0].mean())
        return {name: values[name] for name in names}

    def scores(self, state: State, on: str = "test", tuned: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Accuracy and mean cross-entropy of each client's model on its own ``test`` or ``train`` images: (M,) each.

        ``tuned`` trains a copy of each model for one more local epoch first.
        """
        rows = self.test_rows if on == "test" else self.train_rows
        most = max(self.most_test, self.most_train)  # one shape for both: compiled once
        rng = seeds.generator("tuned", round=state.round)
        parts = []
        for clients, count in stacks(np.arange(self.M), state.length):
            models, z = state.models(clients), state.z[clients]
            if tuned:
                batches = self.orders(clients, rng, state.sgd)
                models = train(state.net, self.data, models, z, batches, state.sgd, anchor=state.anchor)
            both = score(state.net, self.data, models, z, [rows[m] for m in clients], most)
            parts.append([values[:count] for values in both])
        right, lost = zip(*parts, strict=True)
        return np.concatenate(right), np.concatenate(lost)

    @staticmethod
    def stored_bytes(facts: Mapping[str, Any]) -> float:
        """The images, one byte per value, and their clients."""
        return facts["images"] * (facts["size"] ** 2 * network(facts).channels + 16.0)

    @staticmethod
    def preparing(facts: Mapping[str, Any]) -> Cost:
        """The cost of writing the images, and of training a network on all of them for ``side="group"``."""
        values = facts["images"] * facts["size"] ** 2 * network(facts).channels
        writing = Work(singles=values * (4.0 if facts["shift"] == "affine" else 1.0), calls=1000.0)
        if facts["side"] != "group":
            return Cost(writing, holds=values)
        epochs = facts["side_epochs"] + 0.4
        training = Work(network=6.0 * network(facts).macs * train_images(facts) * epochs, programs=3.0)
        return Cost(writing + training, holds=2.0 * values + 3e7, libraries=("jax",))

    @staticmethod
    def measuring(names: Sequence[str], facts: Mapping[str, Any]) -> Cost:
        """The cost of a forward pass of the test or train images, and of one more epoch for ``accuracy_tuned``."""
        train, macs = train_images(facts), network(facts).macs
        test = train * facts["test"] / facts["train"]
        passes = ("accuracy" in names or "loss" in names) * test + ("train_accuracy" in names) * train
        passes += ("accuracy_tuned" in names) * (test + 3.0 * train)
        programs = float(("accuracy_tuned" in names) + bool(passes))
        work = Work(network=2.0 * macs * passes, calls=40.0 * facts["P"])
        return Cost(Work(), work, 0.0, ("jax",) if passes else (), Work(programs=programs))

    def artifacts(self, state: State, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Named arrays of a state: ``client_accuracy`` (M,), and the side information ``side`` (M, side_dim)."""
        all_of("artifacts", names, ARTIFACTS)
        arrays = {"client_accuracy": self.scores(state)[0]} if "client_accuracy" in names else {}
        return arrays | ({"side": self.z} if "side" in names else {})

    @classmethod
    def check(cls, parameters: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        """Raise ParameterError if a parameter cannot work; ``facts`` may contain the ``size`` of the images."""
        super().check(parameters, facts)
        values = {**PARAMETERS, **parameters}
        if not isinstance(values["widths"], (list, tuple)):
            raise ParameterError("widths", f"must be a list of the channels of four blocks, not {values['widths']!r}")
        for width in values["widths"]:
            whole("widths", width)
        if values["side"] == "shift" and values["shift"] == "none":
            raise ParameterError("side", "'shift' is the number of a client's shift; it needs shift: affine")
        Net(facts.get("size") or 28, 1, 1, tuple(values["widths"]), values["last_pool"] == "ceil")

    @classmethod
    def prepare(cls, folder: Path, data: Images, client: np.ndarray | None, parameters: Mapping[str, Any]) -> None:
        """Write images, each client's rows and the side information, for ``Personal.stored``."""
        arrays = _arrays(data, client, {**PARAMETERS, **parameters})
        for name in _FILES:
            np.save(folder / f"{name}.npy", getattr(arrays, name))
        (folder / "facts.json").write_text(json.dumps(arrays.facts), encoding="utf-8")

    @staticmethod
    def diverged(values: Mapping[str, np.ndarray]) -> str | None:
        """Why a run counts as diverged, or None: a value is not finite."""
        for name, column in values.items():
            bad = np.flatnonzero(~np.isfinite(column))
            if bad.size:
                return f"{name} is not finite at record {int(bad[0])}: a model holds numbers that are not finite"
        return None


def network(facts: Mapping[str, Any]) -> Net:
    """The network of clients without side information."""
    widths = tuple(facts.get("widths") or PARAMETERS["widths"])
    return Net(facts["size"], facts["channels"], facts["classes"], widths)


def train_images(facts: Mapping[str, Any]) -> float:
    """The number of train images of all clients; datasets of drawings give a share of each character's images."""
    if "per_alphabet" in facts:
        return float(facts["images"] * facts["per_alphabet"] * facts["train"] / facts["drawings"])
    return float(facts["train"])


def _arrays(images: Images, client: Any, parameters: Mapping[str, Any]) -> _Arrays:
    Personal.check(parameters, {"size": images.pixels.shape[1]})
    if client is None:
        raise ParameterError("partition", "images need a partition: alphabets (Omniglot) or iid_images (CIFAR)")
    unmasked(client=client, pixels=images.pixels, labels=images.labels, group=images.group)
    complete(labels=images.labels, group=images.group)
    owner, part = _owners(images, np.asarray(client))
    M = int(owner.max()) + 1
    rows, starts = zip(
        *(_by_client(owner, part == kind, M, name) for kind, name in ((0, "train"), (1, "test"))), strict=True
    )
    pixels = _shifted(images.pixels, owner) if parameters["shift"] == "affine" else images.pixels
    facts = {"classes": int(images.labels.max()) + 1}
    arrays = _Arrays(
        pixels, np.asarray(images.labels, np.int32), rows[0], starts[0], rows[1], starts[1], np.zeros((M, 0)), facts
    )
    if parameters["side"] == "shift":
        arrays.z = np.eye(len(SHIFTS))[np.arange(M) % len(SHIFTS)]
    elif parameters["side"] == "group":
        arrays.z = _group_features(images, arrays, parameters)
    return arrays


def _owners(images: Images, client: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The client of each image and its part."""
    n = len(images.labels)
    if client.shape == (n,) and images.split is not None:
        return client, np.asarray(images.split)
    if client.shape != (n, 2):
        raise UserError(
            f"client: must give client and part (0 train, 1 test) of each of {n} images, ({n}, 2), not {client.shape}"
        )
    return client[:, 0], client[:, 1]


def _by_client(owner: np.ndarray, chosen: np.ndarray, M: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the chosen images, ordered by client, and the start of each client's rows, (M + 1,)."""
    rows = np.flatnonzero(chosen & (owner >= 0))
    rows = rows[np.argsort(owner[rows], kind="stable")]
    counts = np.bincount(owner[rows], minlength=M)
    if (counts == 0).any():
        raise UserError(f"client {int(np.argmin(counts))} has no {name} images; every client needs both kinds")
    return rows, np.concatenate([[0], np.cumsum(counts)])


def _shifted(pixels: np.ndarray, owner: np.ndarray) -> np.ndarray:
    moved = np.array(pixels)
    for number, (turns, degrees) in enumerate(SHIFTS):
        members = np.flatnonzero((owner >= 0) & (owner % len(SHIFTS) == number))
        moved[members] = shifted(pixels[members], turns, degrees)
    return moved


def _group_features(images: Images, arrays: _Arrays, parameters: Mapping[str, Any]) -> np.ndarray:
    """z_m: the mean output of the last block of a classifier of the groups, over client m's train images.

    perfedsi Appendix D: the same network with a head for the groups, trained centrally on all clients' train images.
    """
    if images.group is None:
        raise ParameterError("side", "'group' trains a classifier of the images' groups, and these have none")
    names, group = np.unique(images.group, return_inverse=True)
    net = Net(
        size=images.pixels.shape[1],
        channels=images.pixels.shape[3],
        classes=len(names),
        widths=tuple(parameters["widths"]),
        ceil=parameters["last_pool"] == "ceil",
    )
    double = parameters["precision"] == "double"
    data = on_device(arrays.pixels, group, double)
    rng = seeds.generator("side", widths=list(net.widths), groups=len(names), images=len(arrays.train))
    model = initial(net, lambda _, shape: rng.uniform(-1.0, 1.0, shape), data.dtype)
    epochs = int(parameters["side_epochs"])
    sgd = SGD(_CLASSIFIER.lr, _CLASSIFIER.momentum, _CLASSIFIER.batch, epochs)
    batches = orders([arrays.train], rng, sgd, _room(len(arrays.train)))
    stack = {name: values[None] for name, values in model.items()}
    model = {name: v[0] for name, v in train(net, data, stack, np.zeros((1, 0)), batches, sgd).items()}
    rows = np.split(arrays.train, arrays.train_starts[1:-1])
    return mean_features(net, data, model, rows, _room(max(len(own) for own in rows)))


def _room(most: int) -> int:
    """A number of rows of at least ``most``, from few possible ones, so that partitions share compiled programs."""
    room = 1024
    while room < most:
        room *= 4
    return room


add_problem(
    Personal,
    "Federated image classification with personalised clients and side information",
    data_kind="images",
    artifacts=ARTIFACTS,
)
