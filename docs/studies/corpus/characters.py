"""Characters of Unicode in the fonts of different designers."""

import unicodedata
from collections.abc import Callable

import numpy as np
from scipy.ndimage import gaussian_filter

from classex_bayes.typing import FloatArray
from studies.corpus.drawings import FontFamily, fitted, kept_back
from studies.corpus.packages import Packages
from studies.corpus.population import Population, Recipe, shuffled
from studies.corpus.projections import Projection, discriminant_axes, hidden_layer
from studies.corpus.shared_data import DEJAVU, FREEFONT

Feature = Callable[[FloatArray], FloatArray]

_SIZE = 24
_ANCIENT = (
    "AEGEAN", "ANATOLIAN", "CARIAN", "CRETAN", "CUNEIFORM", "CYPRIOT", "EGYPTIAN", "GOTHIC",
    "LINEAR", "LYCIAN", "LYDIAN", "MEROITIC", "OLD", "PHAISTOS", "PHOENICIAN", "UGARITIC",
)  # fmt: skip


def draw(
    characters: list[str], template: FontFamily, others: list[FontFamily], size: int
) -> Population:
    """Draw characters in a square of `size` pixels, scaled and centred by the box around the ink.

    The family `template` draws the templates, and all others draw the test instances. Characters
    are left out if only one family has them, if they have no ink, or if they share template and
    compatibility decomposition (NFKC) with another.
    """
    drawn: dict[tuple[str, bytes], tuple[FloatArray, list[FloatArray]]] = {}
    for character in characters:
        images = [family.ink(character) for family in (template, *others) if character in family]
        if character not in template or images[0] is None:
            continue
        first, *rest = [fitted(image, size, size) for image in images if image is not None]
        key = unicodedata.normalize("NFKC", character), first.tobytes()
        if rest:
            drawn.setdefault(key, (first, rest))
    classes = list(drawn.values())
    return Population(
        gallery=np.array([first for first, _ in classes]),
        probes=np.array([probe for _, rest in classes for probe in rest]),
        y=np.repeat(np.arange(len(classes)), [len(rest) for _, rest in classes]),
    )


def is_letter(character: str) -> bool:
    """Whether a character is a letter or a number of a script that is not ancient."""
    ancient = unicodedata.name(character, "").startswith(_ANCIENT)
    return not ancient and unicodedata.category(character)[0] in "LN" and _is_distinct(character)


def is_ancient(character: str) -> bool:
    """Whether a character is a letter, number or sign of an ancient script."""
    named = unicodedata.name(character, "").startswith(_ANCIENT)
    return named and unicodedata.category(character)[0] in "LNS" and _is_distinct(character)


def is_symbol(character: str) -> bool:
    """Whether a character is a symbol or a punctuation mark."""
    return unicodedata.category(character)[0] in "SP" and _is_distinct(character)


def _is_distinct(character: str) -> bool:
    """Whether Unicode equates a character with no other, and it is not kept for final checks."""
    return unicodedata.normalize("NFC", character) == character and not kept_back(character)


def blurred(drawings: FloatArray, size: int) -> FloatArray:
    """Smooth drawings (n, size * size) by a Gaussian of one pixel."""
    images = drawings.reshape(-1, size, size)
    return gaussian_filter(images, (0, 1, 1)).reshape(len(drawings), -1)


def _family(packages: Packages, *sources: tuple[str, str]) -> FontFamily:
    """Fonts of Debian packages, by package and pattern of their names."""
    return FontFamily(
        file for name, pattern in sources for file in sorted(packages.debian(name).rglob(pattern))
    )


def _noto(packages: Packages) -> FontFamily:
    core = "fonts-noto-core"
    return _family(packages, (core, "NotoSans-Regular.ttf"), (core, "NotoSans*-Regular.ttf"))


def _outlines(packages: Packages) -> list[FontFamily]:
    """Families of outline fonts other than Noto."""
    sil = ("fonts-sil-nuosusil", "*.ttf"), ("fonts-sil-abyssinica", "*.ttf")
    return [
        _family(packages, ("fonts-dejavu-core", "DejaVuSans.ttf")),
        _family(packages, ("fonts-freefont-ttf", "FreeSerif.ttf")),
        _family(packages, *sil),
    ]


def _unifont(packages: Packages) -> FontFamily:
    name = "fonts-unifont"
    return _family(packages, (name, "unifont.otf"), (name, "unifont_upper.otf"))


def _chosen(family: FontFamily, wanted: Callable[[str], bool]) -> list[str]:
    return [character for character in sorted(family) if wanted(character)]


def _discriminant(drawings: Population, n_components: int) -> Projection:
    """Discriminant axes of blurred drawings."""
    images, y = drawings.pooled()
    return discriminant_axes(blurred(images, _SIZE), y, n_components)


def _population(drawings: Population, project: Feature) -> Population:
    gallery, probes = (blurred(x, _SIZE) for x in (drawings.gallery, drawings.probes))
    return Population(project(gallery), project(probes), drawings.y, "cosine")


def letter_drawings(packages: Packages, size: int = 16) -> Population:
    """Return drawings of letters, templates by Noto and test instances by other fonts."""
    noto = _noto(packages)
    return draw(_chosen(noto, is_letter), noto, _outlines(packages), size)


def _letters_pixels(packages: Packages) -> Population:
    drawings = letter_drawings(packages)
    gallery, probes = blurred(drawings.gallery, 16), blurred(drawings.probes, 16)
    return Population(gallery, probes, drawings.y, "cosine")


def _letters_screen(packages: Packages) -> Population:
    noto, unifont = _noto(packages), _unifont(packages)
    letters = shuffled(_chosen(noto, is_letter), 17)
    training = draw(letters[:5000], noto, [unifont, *_outlines(packages)], _SIZE)
    return _population(draw(letters[5000:], noto, [unifont], _SIZE), _discriminant(training, 32))


def _ancient_signs(packages: Packages) -> Population:
    noto, name = _noto(packages), "fonts-ancient-scripts"
    patterns = "AegyptusR", "Akkadian", "Aegean", "Anatolian", "Nilus", "Analecta"
    scholars = _family(packages, *((name, f"{pattern}_hint.ttf") for pattern in patterns))
    training = draw(_chosen(noto, is_letter), noto, _outlines(packages), _SIZE)
    drawings = draw(_chosen(noto, is_ancient), noto, [scholars], _SIZE)
    return _population(drawings, _discriminant(training, 64))


def _symbols(packages: Packages) -> Population:
    noto, unifont, outlines = _noto(packages), _unifont(packages), _outlines(packages)
    letters = shuffled(_chosen(noto, is_letter), 17)[:3000]
    images, y = draw(letters, noto, [unifont, *outlines], _SIZE).pooled()
    layer = hidden_layer(blurred(images, _SIZE), y)
    symbola = _family(packages, ("fonts-symbola", "*.ttf"))
    drawings = draw(_chosen(symbola, is_symbol), symbola, [noto, *outlines[:2], unifont], _SIZE)
    return _population(drawings, layer)


_NOTO = "fonts-noto-core 20201225 (Debian, OFL-1.1)"
_UNIFONT = "fonts-unifont 15.0.01 (Debian, GPL-2+ with the font exception)"
_OUTLINES = (
    DEJAVU,
    FREEFONT,
    "fonts-sil-nuosusil 2.200 (Debian, OFL-1.1)",
    "fonts-sil-abyssinica 2.100 (Debian, OFL-1.1)",
)
_LEFT_OUT = (
    "Han and Hangul are left out, because they are kept for final checks. Also left out are "
    "combining marks, characters that Unicode equates with another, characters without ink, "
    "characters that only one font has (by the tables of the fonts), and those that share template "
    "and compatibility decomposition with another. Lookalikes of other scripts (Latin A, Greek "
    "Alpha) stay, and some of their templates are equal. Drawings are scaled and centred by the "
    "box around the ink, so size and height on the line are lost. Differences are those between "
    "the typefaces; no noise is added. A wrong answer is a character that resembles the test "
    "instance more."
)

RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="letters-pixels",
        kind="characters in two typefaces",
        summary="letters in other typefaces; cosine of pixels",
        about=(
            "Classes are the letters and numbers of the scripts in use. The template is the "
            "drawing of Noto Sans. The test instances are those of DejaVu Sans, FreeSerif, Nuosu "
            "SIL (Yi) and Abyssinica SIL (Ethiopic): one to three a class. " + _LEFT_OUT
        ),
        classifier=(
            "Cosine of 16 x 16 grey pixels, smoothed by a Gaussian of one pixel. Nothing is "
            "trained."
        ),
        packages=(_NOTO, *_OUTLINES),
        make=_letters_pixels,
    ),
    Recipe(
        name="letters-screen",
        kind="characters in two typefaces",
        summary="letters as bitmaps of a screen font; discriminant axes of pixels",
        about=(
            "Classes are the letters and numbers of the scripts in use. The template is the "
            "drawing of Noto Sans, the test instance that of Unifont, whose letters are bitmaps of "
            "8 or 16 by 16 points. A random 5,000 characters are set aside for training. "
            + _LEFT_OUT
        ),
        classifier=(
            "Cosine in 32 discriminant axes of 24 x 24 smoothed pixels, trained on the characters "
            "set aside in Noto Sans, Unifont, DejaVu Sans, FreeSerif and SIL's fonts. The number "
            "of axes was chosen after accuracies had been seen."
        ),
        packages=(_NOTO, _UNIFONT, *_OUTLINES),
        make=_letters_screen,
    ),
    Recipe(
        name="ancient-signs",
        kind="characters in two typefaces",
        summary="ancient signs in another font; discriminant axes",
        about=(
            "Classes are Egyptian and Anatolian hieroglyphs, cuneiform, Linear A and B, Meroitic "
            "and other signs of ancient scripts. The template is the drawing of Noto, the test "
            "instance that of George Douros' fonts for scholars (Aegyptus, Akkadian, Anatolian, "
            "Aegean, Nilus, Analecta). " + _LEFT_OUT
        ),
        classifier=(
            "Cosine in 64 discriminant axes of 24 x 24 smoothed pixels, trained on letters of "
            "scripts in use in Noto Sans, DejaVu Sans, FreeSerif and SIL's fonts."
        ),
        packages=(_NOTO, "fonts-ancient-scripts 2.60 (Debian, free for any use)", *_OUTLINES),
        make=_ancient_signs,
    ),
    Recipe(
        name="symbols",
        kind="characters in two typefaces",
        summary="symbols and punctuation in other typefaces; hidden units of a network",
        about=(
            "Classes are symbols and punctuation marks: arrows, operators, Braille, music, game "
            "tiles, emoji in black and white. The template is the drawing of Symbola. The test "
            "instances are those of Noto, DejaVu Sans, FreeSerif and Unifont: one to four a "
            "class. " + _LEFT_OUT
        ),
        classifier=(
            "Cosine of the 128 hidden units of a small network on 24 x 24 smoothed pixels. It was "
            "trained to tell 3,000 letters apart, in Noto Sans, Unifont, DejaVu Sans, FreeSerif "
            "and SIL's fonts; it saw no symbol."
        ),
        packages=("fonts-symbola 2.60 (Debian, free for any use)", _NOTO, _UNIFONT, *_OUTLINES),
        make=_symbols,
    ),
)
