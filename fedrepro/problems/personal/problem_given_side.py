r"""Personalised image classification with given side information: ``personal`` on the user's own data.

The problem is that of ``fedrepro.problems.personal``, except that z_m is not computed from the images: it is part of
the data (``ClientImages.side``), a row of numbers per client. Networks use it without scaling; numbers of size 1 suit
them.

Source: perfedsi (3), (4), section 4.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.arrays import unmasked
from fedrepro.errors import ParameterError, UserError
from fedrepro.problems.personal import problem as personal
from fedrepro.problems.personal.problem import _FILES, ARTIFACTS, Personal, _Arrays, _arrays
from fedrepro.registry import add_problem

PARAMETERS = {name: default for name, default in personal.PARAMETERS.items() if name not in ("side", "side_epochs")}


class PersonalSide(Personal):
    """The problem in memory.

    The parameters are those of ``Personal`` without ``side`` and ``side_epochs``.

    images : ``ClientImages`` with ``side``, a row for each client. client : (n, 2) integers, the client of each image
    (-1: none) and its part (0 train, 1 test); or (n,) clients if ``images.split`` contains the part. Every client needs
    both parts.

    Raises UserError if the data cannot work, and ParameterError if a parameter cannot.

    Example:
    >>> import numpy as np
    >>> from fedrepro import ClientImages, PersonalSide
    >>> rng = np.random.default_rng(0)
    >>> pixels, part = rng.integers(0, 256, (24, 16, 16, 1), dtype=np.uint8), np.arange(24) % 4 // 3
    >>> images = ClientImages(pixels, np.arange(24) % 2, split=part, side=np.eye(3))
    >>> PersonalSide(images, np.arange(24) // 8, widths=[2, 2, 2, 2]).M
    3
    """

    name = "personal-side"
    parameters = PARAMETERS

    def __init__(self, images: Any, client: Any, **parameters: Any) -> None:
        PersonalSide.check(parameters, {"size": np.shape(images.pixels)[1]})
        self._set_up(_with_side(images, client, parameters), parameters)

    @classmethod
    def check(cls, parameters: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        """Raise ParameterError if a parameter cannot work; ``facts`` may contain ``images``, ``size`` and ``side``."""
        super().check(parameters, facts)
        if facts.get("images") is not None and facts.get("side") is None:
            raise ParameterError("side", "is not among these data; use the problem personal")

    @classmethod
    def prepare(cls, folder: Path, data: Any, client: np.ndarray | None, parameters: Mapping[str, Any]) -> None:
        """Write images, each client's rows and the side information, for ``stored``."""
        arrays = _with_side(data, client, parameters)
        for name in _FILES:
            np.save(folder / f"{name}.npy", getattr(arrays, name))
        (folder / "facts.json").write_text(json.dumps(arrays.facts), encoding="utf-8")


def _with_side(images: Any, client: Any, parameters: Mapping[str, Any]) -> _Arrays:
    arrays = _arrays(images, client, {**personal.PARAMETERS, **parameters})
    side = getattr(images, "side", None)
    if side is None:
        raise UserError("side: these images have no side information of their own; use the problem personal")
    unmasked(side=side)
    z = np.asarray(side, dtype=np.float64)
    if z.ndim != 2 or 0 in z.shape or len(z) != len(arrays.z):
        raise UserError(f"side: must have a row for each of the {len(arrays.z)} clients, (M, q), not shape {z.shape}")
    if not np.isfinite(z).all():
        raise UserError("side: must contain finite numbers")
    arrays.z = z
    return arrays


add_problem(
    PersonalSide,
    "Federated image classification with side information from the data",
    data_kind="images",
    artifacts=ARTIFACTS,
)
