"""English words printed in different typefaces."""

from collections.abc import Callable

import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter

from classex_bayes.typing import FloatArray, IntArray
from studies.corpus.drawings import FontFamily
from studies.corpus.packages import Packages
from studies.corpus.population import Population, Recipe, shuffled
from studies.corpus.projections import (
    Projection,
    discriminant_axes,
    principal_components,
)
from studies.corpus.shared_data import (
    DEJAVU,
    FREEFONT,
    WAMERICAN,
    english_words,
)

_WIDTH, _HEIGHT = 96, 24
_N_TRAINING = 3_000


def stretched(ink: Image.Image) -> FloatArray:
    """Stretch a drawing to fill the frame; return smoothed pixels (_HEIGHT * _WIDTH,)."""
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
    """Words in random order. The first typeface draws the templates; words before are training."""
    words = shuffled(english_words(packages), 17)
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
    "Classes are {} random English words of three letters or more from a to z in a list for "
    "spelling checkers, inflected forms included. The template is the word in {}, {}. Each is an "
    "image of the whole word, stretched to 96 x 24 pixels, so its length and the height of its "
    "letters are lost. Other words are left out at random; 3,000 of them serve for training. "
    "Differences are those between the typefaces; no noise is added. A wrong answer is another "
    "word, often one of similar shape."
)
_FACES = " The typefaces were chosen after accuracies had been seen."
_PACKAGES = WAMERICAN, DEJAVU, FREEFONT

RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="printed-words",
        kind="printed words",
        summary="images of English words in other typefaces; principal components",
        about=_WORDS.format(
            "15,000", "FreeSerif", "the test instances are in DejaVu Sans and DejaVu Sans Mono"
        ),
        classifier=(
            "Cosine of 128 principal components of smoothed pixels, trained on other words in all "
            "three typefaces." + _FACES
        ),
        packages=_PACKAGES,
        make=_printed,
    ),
    Recipe(
        name="italic-words",
        kind="printed words",
        summary="images of English words in italics; discriminant axes",
        about=_WORDS.format("8,000", "DejaVu Sans", "the test instance is in FreeSerif Italic")
        + " No word is in the population printed-words.",
        classifier=(
            "Cosine in 48 discriminant axes of 128 principal components of smoothed pixels, "
            "trained on other words in both typefaces." + _FACES
        ),
        packages=_PACKAGES,
        make=_italic,
    ),
)
