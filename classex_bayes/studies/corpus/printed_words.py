"""English words printed in different typefaces."""

from collections.abc import Callable

import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter

from classex_bayes.studies.corpus.drawings import FontFamily
from classex_bayes.studies.corpus.image_features import (
    Projection,
    discriminant_axes,
    principal_components,
)
from classex_bayes.studies.corpus.packages import Packages
from classex_bayes.studies.corpus.population import Population, Recipe
from classex_bayes.typing import FloatArray, IntArray

_WIDTH, _HEIGHT = 96, 24
_N_TRAINING = 3_000


def plain_words(lines: list[str]) -> list[str]:
    """Words of three letters or more, all of them from a to z, without duplicates."""
    words = {line.strip() for line in lines}
    return sorted(w for w in words if len(w) > 2 and w.isascii() and w.isalpha() and w.islower())


def stretched(ink: Image.Image) -> FloatArray:
    """Smoothed pixels (_HEIGHT * _WIDTH,) of a drawing that is stretched to fill the frame."""
    image = ink.resize((_WIDTH, _HEIGHT), Image.Resampling.BILINEAR)
    return gaussian_filter(np.asarray(image, float) / 255, 1).ravel()


def _faces(packages: Packages, words: list[str], faces: tuple[str, ...]) -> list[FloatArray]:
    """Pixels of words in each typeface."""
    folders = [packages.debian(name) for name in ("fonts-dejavu-core", "fonts-freefont-ttf")]
    pixels = []
    for face in faces:
        family = FontFamily(file for folder in folders for file in folder.rglob(f"{face}.ttf"))
        inks = [family.ink(word) for word in words]
        pixels.append(np.array([stretched(ink) for ink in inks if ink is not None]))
    return pixels


def _words(
    packages: Packages,
    chosen: slice,
    faces: tuple[str, ...],
    train: Callable[[FloatArray, IntArray], Callable[[FloatArray], FloatArray]],
) -> Population:
    """Words of a random order, the first typeface as template, and those before for training."""
    file = packages.debian("wamerican") / "usr/share/dict/american-english"
    listed = plain_words(file.read_text(encoding="utf-8").splitlines())
    order = np.random.default_rng(17).permutation(len(listed))
    words = [listed[position] for position in order]
    training = words[chosen.start - _N_TRAINING : chosen.start]
    others = np.tile(np.arange(_N_TRAINING), len(faces))
    project = train(np.concatenate(_faces(packages, training, faces)), others)
    gallery, *probes = (project(pixels) for pixels in _faces(packages, words[chosen], faces))
    y = np.tile(np.arange(len(gallery)), len(probes))
    return Population(gallery, np.concatenate(probes), y, "cosine")


def _printed(packages: Packages) -> Population:
    faces = "FreeSerif", "DejaVuSans", "DejaVuSansMono"
    chosen = slice(_N_TRAINING, _N_TRAINING + 15_000)
    return _words(packages, chosen, faces, lambda x, _: principal_components(x, 128))


def _italic(packages: Packages) -> Population:
    def train(x: FloatArray, y: IntArray) -> Callable[[FloatArray], FloatArray]:
        components = principal_components(x, 128)
        axes = discriminant_axes(components(x), y, 48)
        return Projection(components.mean, components.axes @ axes.axes)

    chosen = slice(18_000 + _N_TRAINING, 18_000 + _N_TRAINING + 8_000)
    return _words(packages, chosen, ("DejaVuSans", "FreeSerifItalic"), train)


_WORDS = (
    "Classes are English words, a random {} of those of three letters or more from a to z in a "
    "list for spelling checkers, inflected forms included. The template is the word in {}, "
    "{}, as an image stretched to 96 x 24 pixels, so neither its length nor the height of its "
    "letters is known. Letters are never cut apart. Other words are left out at random; 3,000 of "
    "them serve for training. A wrong answer is another word, often one of similar shape."
)
_FONTS = (
    "Debian wamerican 2020.12.07 (public domain)",
    "Debian fonts-dejavu-core 2.37 (Bitstream Vera)",
    "Debian fonts-freefont-ttf 20120503 (GPL-3+ with the font exception)",
)

RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="printed-words",
        kind="printed words",
        about=_WORDS.format(
            "15,000", "FreeSerif", "and the probes are in DejaVu Sans and DejaVu Sans Mono"
        ),
        classifier=(
            "Cosine of 128 principal components of smoothed pixels, trained on other words in all "
            "three typefaces."
        ),
        packages=_FONTS,
        make=_printed,
    ),
    Recipe(
        name="italic-words",
        kind="printed words",
        about=_WORDS.format("8,000", "DejaVu Sans", "and the probe is in FreeSerif Italic")
        + " No word is in the population printed-words.",
        classifier=(
            "Cosine in 48 discriminant axes of 128 principal components of smoothed pixels, "
            "trained on other words in both typefaces."
        ),
        packages=_FONTS,
        make=_italic,
    ),
)
