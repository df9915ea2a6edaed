"""Tunes, recognised by a part: their second half, or a hummed phrase."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from classex_bayes.typing import FloatArray
from studies.corpus.abc_notation import Tune, tunes
from studies.corpus.packages import Packages
from studies.corpus.population import Population, Recipe, shuffled
from studies.corpus.text_features import LatentSemantics, ngrams

_MUSIC21 = "10.5.1"
_BOOKS = ("essenFolksong", "oneills1850", "airdsAirs", "ryansMammoth", "miscFolk")
_N_TRAINING = 3000
_SHORTEST = 32
_HUMMED = 24
_D = 256


def melodies(packages: Packages) -> list[Tune]:
    """Return the tunes of 32 notes or more in random order; equal tunes in any key count once."""
    corpus = packages.pypi("music21", _MUSIC21) / "music21" / "corpus"
    files = [file for book in _BOOKS for file in sorted((corpus / book).glob("*.abc"))]
    kept: dict[tuple[tuple[int, int], ...], Tune] = {}
    for file in files:
        if file.name.startswith("test"):  # copies of tunes in other files
            continue
        for tune in tunes(file.read_text(encoding="utf-8", errors="replace")):
            if len(tune.pitches) >= _SHORTEST:
                kept.setdefault(tuple(steps(tune.pitches, tune.durations)), tune)
    return shuffled(kept.values(), 1)


def steps(
    pitches: Sequence[float] | FloatArray, durations: Sequence[Fraction | float] | FloatArray
) -> list[tuple[int, int]]:
    """Return rounded steps between notes: semitones up, and base-2 log ratio of the lengths."""
    up = np.diff(np.asarray(pitches)).round().astype(int)
    longer = np.diff(np.log2(np.asarray(durations, float))).round().astype(int)
    return list(zip(up.tolist(), longer.tolist(), strict=True))


def motifs(path: Sequence[tuple[int, int]]) -> list[str]:
    """Return the features of a tune: 2- to 4-grams of intervals, and 2-grams with rhythm."""
    return ngrams([str(up) for up, _ in path], (2, 3, 4)) + ngrams(list(map(str, path)), (2,))


def hummed(tune: Tune, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Draw the steps of 24 consecutive notes as someone hums them from memory.

    One note in twenty is forgotten. Intervals have normal errors with a standard deviation of half
    a semitone, so pitches drift. Lengths have log-normal errors of 20%.
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
    """Latent semantics learnt on 3,000 tunes, and the other tunes."""
    every = melodies(packages)
    training = every[:_N_TRAINING]
    texts = [motifs(steps(tune.pitches, tune.durations)) for tune in training]
    return LatentSemantics(texts, _D), every[_N_TRAINING:]


_CLASSES = (
    "Classes are melodies of German, other European, Chinese, Irish, Scottish and American "
    "collections. Tunes of fewer than 32 notes are left out. If tunes have equal intervals and "
    "rhythms, only the first is kept. Variants of a tune are separate classes, even under one "
    "title. "
)
_CLASSIFIER = (
    "Cosine of latent semantics (256 dimensions) of TF-IDF weights. Features are runs of two to "
    "four intervals, and of two intervals with their rhythm. Weights and dimensions are learnt on "
    "3,000 other whole tunes."
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
        summary="melodies, the second half from the first; latent semantics of intervals",
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
        summary="melodies from 24 notes of simulated humming; latent semantics of intervals",
        about=_CLASSES + "The template is a whole tune, without repeats. The two test instances "
        "are 24 consecutive notes at random places, as someone hums them from memory. One note in "
        "twenty is forgotten. Intervals have normal errors of half a semitone (standard deviation) "
        "and are rounded. Lengths have log-normal errors of 20%. The tunes are real, the errors "
        "are drawn at random. A wrong answer is another tune that contains motifs like the "
        "hummed ones.",
        classifier=_CLASSIFIER,
        packages=_PACKAGES,
        make=_humming,
    ),
)
