"""Pictures kept in the repository in 256 colours: two fifths of the bytes, and no difference that one sees.

``python -m fedrepro.plotting.shrink_png FOLDER`` does it to every PNG there that has more; ``make archive`` calls it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngImageFile, PngInfo

from fedrepro.files import atomically


def thin(path: Path) -> bool:
    """Write a PNG anew in 256 colours, with its text chunks (what it was drawn of); False where it has no more."""
    with Image.open(path) as found:
        if not isinstance(found, PngImageFile) or found.mode == "P":
            return False
        kept = PngInfo()
        for name, text in found.text.items():
            (kept.add_text if text.isascii() else kept.add_itxt)(name, text)
        dpi = {"dpi": found.info["dpi"]} if "dpi" in found.info else {}
        small = found.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    atomically(path, lambda place: small.save(place, format="PNG", pnginfo=kept, optimize=True, **dpi))
    return True


if __name__ == "__main__":
    for folder in sys.argv[1:]:
        for picture in sorted(Path(folder).rglob("*.png")):
            if thin(picture):
                print(picture)
