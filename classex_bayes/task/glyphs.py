"""Packaged real data: printed characters with known accuracy at every number of classes."""

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt

from classex_bayes.exceptions import DataError
from classex_bayes.formatting import by_fields
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray

FONTS = ("rounded", "handwriting", "brush")


@dataclass(frozen=True)
class Glyphs:
    """Embeddings of 2965 kanji: one mincho template each, and one probe in each of three fonts.

    Attributes
    ----------
    probes : float16 array of shape (8895, 48)
        Embeddings of the test instances.
    gallery : float16 array of shape (2965, 48)
        Embeddings of the templates. The score is minus the squared Euclidean distance.
    y : array of str, shape (8895,)
        True character of each probe.
    classes : list of str
        The 2965 characters of JIS X 0208 level 1, in order of `gallery`.
    font : array of str, shape (8895,)
        Font of each probe: "rounded", "handwriting" or "brush".
    """

    probes: FloatArray
    gallery: FloatArray
    y: npt.NDArray[np.str_]
    classes: list[str]
    font: npt.NDArray[np.str_]
    __repr__ = by_fields

    def task(self, font: str | None = None) -> SourceTask:
        """Task on all 2965 classes, with the probes of one font or of all three.

        Parameters
        ----------
        font : {"rounded", "handwriting", "brush"}, optional
            Keep the probes of this font only.
        """
        if font is not None and font not in FONTS:
            raise DataError(f"font: found {font!r}, expected one of {', '.join(FONTS)}")
        kept = np.full(self.font.size, True) if font is None else self.font == font
        return SourceTask.from_embeddings(
            self.probes[kept], self.gallery, self.y[kept], classes=self.classes
        )


def load_glyphs() -> Glyphs:
    """Load the packaged glyphs.

    The characters were rendered in free fonts (IPA Mincho; Motoya L Maruberi, YOzFont, Aoyagi
    Kouzan), described by stroke directions on a lattice, and projected on 48 principal components
    of other characters. The score of a class therefore depends only on its own template. The
    difficulty of probes differs much between fonts, so the distribution of Z = Phi^-1(U*) is far
    from a single normal one.

    Examples
    --------
    >>> glyphs = load_glyphs()
    >>> glyphs.probes.shape, len(glyphs.classes)
    ((8895, 48), 2965)
    """
    packaged: Any = files("classex_bayes") / "task" / "packaged" / "glyphs.npz"
    with packaged.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        characters = np.array([chr(point) for point in arrays["codepoints"]])
        return Glyphs(
            probes=arrays["probes"],
            gallery=arrays["gallery"],
            y=characters[arrays["label"]],
            classes=characters.tolist(),
            font=np.array(FONTS)[arrays["font"]],
        )
