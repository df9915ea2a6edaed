"""Drawings of characters and words in given fonts."""

import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image, ImageFont

from classex_bayes.typing import FloatArray

# Pixels of an em, far above the resolution of the features.
_EM = 64
# Names of characters that are kept for final checks.
_KEPT_BACK = ("CJK", "HANGUL", "KANGXI", "IDEOGRAPH")


class FontFamily:
    """Font files of one family. The first file that has a character draws it."""

    def __init__(self, files: Iterable[Path]) -> None:
        from fontTools.ttLib import TTFont

        self._file_of: dict[str, Path] = {}
        self._fonts: dict[Path, ImageFont.FreeTypeFont] = {}
        for file in files:
            with TTFont(file, lazy=True) as font:
                for code in font.getBestCmap():
                    self._file_of.setdefault(chr(code), file)

    def __contains__(self, character: str) -> bool:
        """Whether a file draws the character."""
        return character in self._file_of

    def __iter__(self) -> Iterator[str]:
        """Yield the characters that files draw."""
        return iter(self._file_of)

    def ink(self, text: str) -> Image.Image | None:
        """Draw `text`, white on black and cropped to its ink; None if there is no ink."""
        file = self._file_of[text[0]]
        if file not in self._fonts:
            basic = ImageFont.Layout.BASIC
            self._fonts[file] = ImageFont.truetype(file, _EM, layout_engine=basic)
        font = self._fonts[file]
        core = font.getmask(text)
        if not core.size[0] * core.size[1]:
            return None
        image = Image.frombytes("L", core.size, bytes(core))
        box = image.getbbox()
        return None if box is None else image.crop(box)


def fitted(image: Image.Image, width: int, height: int, margin: int = 1) -> FloatArray:
    """Return a drawing, scaled and centred in a frame, as pixels (height * width,) in [0, 1]."""
    room = width - 2 * margin, height - 2 * margin
    scale = min(room[0] / image.width, room[1] / image.height)
    size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    frame = Image.new(image.mode, (width, height))
    small = image.resize(size, Image.Resampling.BILINEAR)
    frame.paste(small, ((width - size[0]) // 2, (height - size[1]) // 2))
    return np.asarray(frame, dtype=float).ravel() / 255


def kept_back(character: str) -> bool:
    """Whether a character is Han or Hangul, or made of such."""
    parts = character + unicodedata.normalize("NFKD", character)
    return any(word in unicodedata.name(part, "") for part in parts for word in _KEPT_BACK)
