"""Kept pictures have fewer bytes, look the same and still contain their provenance."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from fedrepro.plotting.shrink_png import reduce_colours


def test_a_picture_takes_less_room_and_keeps_its_record(tmp_path: Path) -> None:
    path = tmp_path / "one.png"
    figure, axes = plt.subplots()
    axes.plot(np.linspace(0, 1, 50) ** 2, marker="o")
    axes.fill_between(range(50), np.linspace(0, 1, 50), alpha=0.3)
    axes.set_title("objective  N·F/‖X‖²")
    figure.savefig(path, dpi=150, metadata={"Title": "drawn of ‖X‖²", "fedrepro": "run x"})
    plt.close(figure)
    with Image.open(path) as before:
        pixels, size = np.asarray(before.convert("RGB")).astype(int), path.stat().st_size
    assert reduce_colours(path)
    with Image.open(path) as after:
        assert after.text["Title"] == "drawn of ‖X‖²"
        assert after.text["fedrepro"] == "run x"
        assert round(after.info["dpi"][0]) == 150
        off = np.abs(np.asarray(after.convert("RGB")).astype(int) - pixels).max(axis=2)
    assert path.stat().st_size < 0.7 * size
    assert off.max() <= 32
    assert (off > 8).mean() < 0.001
    kept = path.read_bytes()
    assert not reduce_colours(path)
    assert path.read_bytes() == kept
