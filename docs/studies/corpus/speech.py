"""Words spoken by one synthetic voice, recognised in the speech of another."""

from collections.abc import Iterable

import numpy as np

from classex_bayes.typing import FloatArray
from studies.corpus.cepstra import vector
from studies.corpus.packages import Packages
from studies.corpus.population import Population, Recipe, shuffled
from studies.corpus.projections import discriminant_axes, hidden_layer
from studies.corpus.shared_data import ESPEAK, WAMERICAN, english_words
from studies.corpus.voices import RATE, espeak, flite

_N_CLASSES, _N_TRAINING = 4000, 1500


def german(text: str) -> list[str]:
    """Return the words of three or more letters, nouns capitalised, in alphabetical order.

    Examples
    --------
    >>> german("Öl ABM müde Haus z.B. Bäume")
    ['Bäume', 'Haus', 'müde']
    """
    words = {word for word in text.split() if word.isalpha() and len(word) > 2}
    return sorted(word for word in words if word[1:].islower())


def sound_vectors(sounds: Iterable[FloatArray]) -> FloatArray:
    """Return the cepstra of words as vectors."""
    return np.stack([vector(sound, RATE) for sound in sounds])


def _english(packages: Packages) -> Population:
    """Words by espeak-ng as templates, by two voices of flite as probes."""
    words = shuffled(english_words(packages), 1)[: _N_TRAINING + _N_CLASSES]
    voices = [
        sound_vectors(espeak(packages, words, "en-us")),
        sound_vectors(flite(packages, words, "kal16")),
        sound_vectors(flite(packages, words, "slt")),
    ]
    training = np.concatenate([voice[:_N_TRAINING] for voice in voices])
    project = discriminant_axes(training, np.tile(np.arange(_N_TRAINING), 3), 50)
    gallery, *spoken = (project(voice[_N_TRAINING:]) for voice in voices)
    y = np.tile(np.arange(_N_CLASSES), 2)
    return Population(gallery, np.concatenate(spoken), y, "cosine")


def _german(packages: Packages) -> Population:
    """Words by a voice of espeak-ng as templates, by a faster and higher one as probes."""
    file = packages.debian("wngerman") / "usr/share/dict/ngerman"
    words = shuffled(german(file.read_text(encoding="utf-8")), 1)[: _N_TRAINING + _N_CLASSES]
    slow = sound_vectors(espeak(packages, words, "de"))
    fast = sound_vectors(espeak(packages, words, "de+f5", 220))
    training = np.concatenate([slow[:_N_TRAINING], fast[:_N_TRAINING]])
    mean, scale = training.mean(0), training.std(0)
    units = hidden_layer((training - mean) / scale, np.tile(np.arange(_N_TRAINING), 2))
    gallery, probes = (units((voice[_N_TRAINING:] - mean) / scale) for voice in (slow, fast))
    return Population(gallery, probes, np.arange(_N_CLASSES), "cosine")


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="spoken-english",
        kind="sounds",
        summary="English words in other synthetic voices; discriminant axes of cepstra",
        about=(
            "Classes are 4,000 words, drawn at random from the lower-case words of three or more "
            "letters of a list of American English; inflected forms are separate classes. The "
            "template is a word spoken by espeak-ng, American English. The two test instances are "
            "the word spoken by two voices of flite, kal16 (a man, diphones) and slt (a woman, "
            "statistical parametric). All voices are synthetic; no noise is added. A wrong answer "
            "is a word whose template resembles the test instance more."
        ),
        classifier=(
            "Cosine of 50 linear discriminants of 13 mel-frequency cepstra at 20 equally spaced "
            "times. The discriminants are learnt on 1,500 other words in the three voices."
        ),
        packages=(
            WAMERICAN,
            ESPEAK,
            "flite 2.2 (Debian, BSD-like; with its voices)",
        ),
        make=_english,
    ),
    Recipe(
        name="spoken-german",
        kind="sounds",
        summary="German words in another synthetic voice; hidden units of a network",
        about=(
            "Classes are 4,000 words, drawn at random from the words of three or more letters of a "
            "list of German, nouns and names among them. Words with capitals inside are "
            "abbreviations and left out. Inflected forms are separate classes. The template is a "
            "word spoken by the voice de of espeak-ng, at 175 words a minute. The one test "
            "instance is the word spoken by its variant f5, a woman, at 220 words a minute. Both "
            "voices are synthetic; no noise is added. A wrong answer is a word whose template "
            "resembles the test instance more."
        ),
        classifier=(
            "Cosine of the 128 hidden units of a network that was trained to tell 1,500 other "
            "words apart in both voices, from 13 mel-frequency cepstra at 20 equally spaced times."
        ),
        packages=(
            "wngerman 20161207 (Debian, GPL-2+)",
            ESPEAK,
        ),
        make=_german,
    ),
)
