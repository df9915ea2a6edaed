"""Tunes found by a part of themselves: their second half, or a phrase that someone hums."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from classex_bayes.studies.corpus.abc_notation import Tune, tunes
from classex_bayes.studies.corpus.packages import Packages
from classex_bayes.studies.corpus.population import Population, Recipe, shuffled
from classex_bayes.studies.corpus.text_features import LatentSemantics, ngrams
from classex_bayes.typing import FloatArray

_MUSIC21 = "10.5.1"
_BOOKS = ("essenFolksong", "oneills1850", "airdsAirs", "ryansMammoth", "miscFolk")
_N_TRAINING = 3000
_SHORTEST = 32
_HUMMED = 24
_D = 256


def melodies(packages: Packages) -> list[Tune]:
    """Tunes of 32 notes or more in random order; of equal tunes, in whatever key, the first."""
    corpus = packages.pypi("music21", _MUSIC21) / "music21" / "corpus"
    files = [file for book in _BOOKS for file in sorted((corpus / book).glob("*.abc"))]
    kept: dict[tuple[tuple[int, int], ...], Tune] = {}
    for file in files:
        if file.name.startswith("test"):  # tunes of other files, once more
            continue
        for tune in tunes(file.read_text(encoding="utf-8", errors="replace")):
            if len(tune.pitches) >= _SHORTEST:
                kept.setdefault(tuple(steps(tune.pitches, tune.durations)), tune)
    return shuffled(kept.values(), 1)


def steps(
    pitches: Sequence[float] | FloatArray, durations: Sequence[Fraction | float] | FloatArray
) -> list[tuple[int, int]]:
    """From each note to the next: semitones up, and doublings of the length, rounded."""
    up = np.diff(np.asarray(pitches)).round().astype(int)
    longer = np.diff(np.log2(np.asarray(durations, float))).round().astype(int)
    return list(zip(up.tolist(), longer.tolist(), strict=True))


def motifs(path: Sequence[tuple[int, int]]) -> list[str]:
    """Features of a tune: runs of two to four intervals, and of two with their rhythm."""
    return ngrams([str(up) for up, _ in path], (2, 3, 4)) + ngrams(list(map(str, path)), (2,))


def hummed(tune: Tune, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Steps of 24 consecutive notes as someone hums them from memory.

    One note in twenty is forgotten. Pitches drift: intervals have normal errors of half a
    semitone. Lengths have log-normal errors of a fifth.
    """
    start = rng.integers(len(tune.pitches) - _HUMMED + 1)
    kept = np.flatnonzero(rng.random(_HUMMED) >= 0.05) + start
    drift = rng.normal(0, 0.5, kept.size).cumsum()
    pitches = np.asarray(tune.pitches)[kept] + drift
    durations = np.asarray(tune.durations, float)[kept] * np.exp(rng.normal(0, 0.2, kept.size))
    return steps(pitches, durations)


def _halves(packages: Packages) -> Population:
    """First halves of tunes as templates, second halves as probes."""
    training, tested = _split(packages)
    paths = [steps(tune.pitches, tune.durations) for tune in tested]
    first = training([motifs(path[: len(path) // 2]) for path in paths])
    second = training([motifs(path[len(path) // 2 + 1 :]) for path in paths])
    return Population(first, second, np.arange(len(paths)), "cosine")


def _humming(packages: Packages) -> Population:
    """Whole tunes as templates, two hummed phrases of each as probes."""
    training, tested = _split(packages)
    gallery = training([motifs(steps(tune.pitches, tune.durations)) for tune in tested])
    rng = np.random.default_rng(2)
    y = np.repeat(np.arange(len(tested)), 2)
    probes = training([motifs(hummed(tested[place], rng)) for place in y])
    return Population(gallery, probes, y, "cosine")


def _split(packages: Packages) -> tuple[LatentSemantics, list[Tune]]:
    """Weights learnt on 3,000 tunes, and the other tunes."""
    every = melodies(packages)
    training = every[:_N_TRAINING]
    texts = [motifs(steps(tune.pitches, tune.durations)) for tune in training]
    return LatentSemantics(texts, _D), every[_N_TRAINING:]


_CLASSES = (
    "Classes are melodies of German, other European, Chinese, Irish, Scottish and American "
    "collections. Tunes of fewer than 32 notes are left out, and so are copies: of tunes with "
    "equal intervals and rhythms the first is kept. Variants of a tune are classes of their own, "
    "under whatever title. "
)
_CLASSIFIER = (
    "Cosine of latent semantics, 256 dimensions, of TF-IDF weights of runs of two to four "
    "intervals, and of two intervals with their rhythm. Weights and dimensions are learnt on 3,000 "
    "other tunes, whole ones."
)
_PACKAGES = (
    f"music21 {_MUSIC21} (PyPI, BSD-3-clause; melodies in abc notation of the Essen folksong "
    "collection, for non-commercial use and of unclear legal status, and of O'Neill's Music of "
    "Ireland, Aird's Airs, Ryan's Mammoth Collection, and Northumbrian and fife tunes, music out "
    "of copyright)",
)

RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="tune-halves",
        kind="sounds",
        about=_CLASSES + "The template is the first half of a tune. The one test instance is the "
        "second half; no noise is added. A wrong answer is a first half that resembles the test "
        "instance more, often of a variant of the tune or of its genre.",
        classifier=_CLASSIFIER,
        packages=_PACKAGES,
        make=_halves,
    ),
    Recipe(
        name="hummed-tunes",
        kind="sounds",
        about=_CLASSES + "The template is a whole tune, without repeats. The two test instances "
        "are 24 consecutive notes at random places, as someone hums them from memory: one note in "
        "twenty is forgotten, intervals have normal errors of half a semitone (standard deviation) "
        "and are rounded, lengths have log-normal errors of a fifth. The tunes are real, the "
        "errors are drawn at random. A wrong answer is another tune that contains motifs like the "
        "hummed ones.",
        classifier=_CLASSIFIER,
        packages=_PACKAGES,
        make=_humming,
    ),
)
