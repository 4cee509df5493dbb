"""Images of one's own: six clients with 40 drawn figures of 16 x 16 pixels each, bars and crosses, in ink of their own.

``python example.py`` writes images.npz beside this file, for ``fedrepro run images.yaml``, and trains on the same
images from memory; it takes the extra "deep".
"""

from pathlib import Path

import numpy as np

from fedrepro import ClientImages, PerFedSIConcat, PersonalSide, run

HERE = Path(__file__).parent
CLIENTS, EACH, SIZE = 6, 40, 16


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """pixels (240, 16, 16), label, client, split (1: to test with), and side (6, 2): dark or light ink."""
    draw = np.random.default_rng(0)
    client, label = np.repeat(np.arange(CLIENTS), EACH), np.arange(CLIENTS * EACH) % 3
    pixels = 60 * draw.random((client.size, SIZE, SIZE))
    for i, (kind, where) in enumerate(zip(label, draw.integers(4, 12, size=client.size), strict=True)):
        if kind != 1:
            pixels[i, where] = 255
        if kind != 0:
            pixels[i, :, where] = 255
    dark = client % 2 == 0
    pixels[dark] = 255 - pixels[dark]
    side = np.eye(2)[np.arange(CLIENTS) % 2]
    return pixels.astype(np.uint8), label, client, (np.arange(client.size) % 4 == 3).astype(int), side


def write(folder: Path) -> None:
    """images.npz with pixels, labels, client, split and side."""
    names = ("pixels", "labels", "client", "split", "side")
    np.savez(folder / "images.npz", **dict(zip(names, arrays(), strict=True)))


if __name__ == "__main__":
    write(HERE)
    pixels, label, client, split, side = arrays()
    images = ClientImages(pixels[..., None], label, split=split, side=side)
    problem = PersonalSide(images, client, widths=[8, 8, 8, 16])
    history = run(PerFedSIConcat(fraction=0.5, batch=5), problem, rounds=6)
    print(f"accuracy {history['accuracy'][-1]:.3f} after {history.rounds[-1]} rounds")
