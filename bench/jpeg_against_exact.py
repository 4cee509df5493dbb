"""Whether the loss of JPEG images changes what perfedsi's Fig. 2 shows: the same images of CIFAR-10 both ways.

Some copies of CIFAR-10 hold JPEG images in class folders (``fedrepro data list`` says so of an imported one). This
script trains the six methods of Fig. 2 on images whose exact pixels are known, and on the same images from JPEG files,
in the same order, with the same clients, shifts, first weights and draws. It prints for each method the accuracy with
both, their difference over trials with its 95 % interval, and the same for the lead of PerFedSI.

``EXACT`` is an archive with ``pixels`` (n, 32, 32, 3), ``labels``, ``batch`` (0 to 5; 5 is the test batch), ``index``
(place in the batch) and ``all_labels`` (6, 10000), the labels of all images in the official order. ``JPEG`` is a .tar
archive of ``train/CLASS/NNNN.jpg`` and ``test/CLASS/NNNN.jpg``; the files of a class are in the official order.

Run ``python bench/jpeg_against_exact.py EXACT JPEG --clients 100`` (half an hour on one core).
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image
from scipy import stats

from fedrepro.results import load

SPEC = """\
paper: beyond
figure: jpeg
title: "Exact pixels and JPEG"
problem: {{name: personal, widths: [16, 16, 32, 16], shift: affine, side: shift}}
trials: {trials}
rounds: {rounds}
record_every: {rounds}
record_dense: 0
datasets:
  exact: {{name: images-file, path: {folder}/exact.npz}}
  jpeg: {{name: images-file, path: {folder}/jpeg.npz}}
partition: {{name: iid_images, P: {clients}}}
panels:
  a:
    title: "exact"
    dataset: exact
    y: accuracy
    curves:
      - {{algorithm: [perfedsi-mask, personal-fedavg, sr-ph, pr-sh, local], lr: 0.1}}
      - {{algorithm: ditto, lr: 0.05}}
  b: {{like: a, title: "JPEG", dataset: jpeg}}
"""


def same_images(exact: Path, jpeg: Path) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return the images of an archive of exact pixels, and the same from JPEG files, in the same order."""
    archive = np.load(exact)
    place = within_class(archive["all_labels"])[archive["batch"], archive["index"]]
    split = (archive["batch"] == 5).astype(int)
    wanted = {(s, c, p): row for row, (s, c, p) in enumerate(zip(split, archive["labels"], place, strict=True))}
    decoded = np.empty_like(archive["pixels"])
    for key, data in files(jpeg):
        if key in wanted:
            decoded[wanted.pop(key)] = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    if wanted:
        raise SystemExit(f"{jpeg} lacks {len(wanted)} of the images in {exact}")
    common = {"labels": archive["labels"], "split": split}
    return {"pixels": archive["pixels"], **common}, {"pixels": decoded, **common}


def within_class(labels: np.ndarray) -> np.ndarray:
    """Return the place of each image among those of its class, counted through the training batches or the test."""
    place = np.empty(labels.shape, dtype=int)
    for batches in (slice(0, 5), slice(5, 6)):
        flat, out = labels[batches].ravel(), np.empty(labels[batches].size, dtype=int)
        for label in np.unique(flat):
            out[flat == label] = np.arange((flat == label).sum())
        place[batches] = out.reshape(labels[batches].shape)
    return place


def files(jpeg: Path) -> list[tuple[tuple[int, int, int], bytes]]:
    """Return split, class, place in the class and content of every file."""
    folders: dict[tuple[str, str], list[tuple[str, bytes]]] = defaultdict(list)
    with tarfile.open(jpeg) as archive:
        for member in archive:
            if member.isfile() and member.name.endswith(".jpg"):
                split, label, name = Path(member.name).parts[-3:]
                opened = archive.extractfile(member)
                folders[split, label].append((name, opened.read() if opened else b""))
    classes = {label: number for number, label in enumerate(sorted({label for _, label in folders}))}
    return [
        ((int(split == "test"), classes[label], place), data)
        for (split, label), found in folders.items()
        for place, (_, data) in enumerate(sorted(found))
    ]


def difference(values: np.ndarray) -> str:
    """Return mean and half width of Student's 95 % interval, in percentage points."""
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
    return f"{100 * values.mean():+.2f} ± {100 * half:.2f}"


def table(ends: pd.DataFrame) -> str:
    """Return a Markdown table of accuracies: a row for each method, then one for PerFedSI's lead over each."""
    by = ends.pivot_table(index="trial", columns=["panel", "algorithm"], values="value")
    lines = ["| | exact | JPEG | JPEG minus exact |", "|---|---|---|---|"]
    for method in by["a"].columns:
        exact, jpeg = by["a"][method], by["b"][method]
        cells = f"{100 * exact.mean():.2f} | {100 * jpeg.mean():.2f} | {difference((jpeg - exact).to_numpy())}"
        lines.append(f"| {method} | {cells} |")
    for method in by["a"].columns.drop("perfedsi-mask"):
        leads = [by[panel]["perfedsi-mask"] - by[panel][method] for panel in ("a", "b")]
        cells = " | ".join(difference(lead.to_numpy()) for lead in (*leads, leads[1] - leads[0]))
        lines.append(f"| lead of PerFedSI over {method} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    """Train on both and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("exact", type=Path)
    parser.add_argument("jpeg", type=Path)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        both = dict(zip(("exact", "jpeg"), same_images(given.exact, given.jpeg), strict=True))
        for kind, arrays in both.items():
            np.savez(folder / f"{kind}.npz", **arrays)
        error = np.square(both["exact"]["pixels"] / 255.0 - both["jpeg"]["pixels"] / 255.0).mean(axis=(1, 2, 3))
        decibels = np.median(-10 * np.log10(error))
        print(f"{len(error):,} images, {decibels:.1f} dB in the median; {given.clients} clients")
        spec = folder / "jpeg.yaml"
        spec.write_text(SPEC.format(folder=folder, clients=given.clients, trials=given.trials, rounds=given.rounds))
        options = ["--tier", "paper", "--results", str(folder / "results"), "--jobs", str(given.jobs)]
        command = [sys.executable, "-m", "fedrepro", "run", str(spec), *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        rows = load(spec, results=folder / "results")
        ends = rows[(rows["metric"] == "accuracy") & (rows["round"] == given.rounds)]
        print(table(ends))


if __name__ == "__main__":
    main()
