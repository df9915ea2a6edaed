"""Words, recognised by their real misspellings."""

import numpy as np

from classex_bayes.typing import FloatArray
from studies.corpus.packages import Packages
from studies.corpus.population import Population, Recipe, shuffled
from studies.corpus.projections import discriminants, ridged
from studies.corpus.text_features import character_ngrams, hashed

_N_WORDS = 9_000
_PROBES_PER_WORD = 3


def corrections(dictionary: str) -> dict[str, list[str]]:
    r"""Return the misspellings of each word, without those of several possible corrections.

    >>> corrections("teh->the\nhte->the\nans->and, ants,")
    {'the': ['teh', 'hte']}
    """
    misspellings: dict[str, list[str]] = {}
    for line in dictionary.splitlines():
        wrong, _, right = line.partition("->")
        candidates = [word for word in right.split(",") if word.strip()]
        if len(candidates) == 1:
            misspellings.setdefault(candidates[0].strip(), []).append(wrong)
    return misspellings


def _ngrams(texts: list[str]) -> FloatArray:
    return hashed([character_ngrams(text, (1, 2, 3)) for text in texts], 1024).toarray()


def misspellings_of(packages: Packages) -> dict[str, list[str]]:
    """Return the misspellings of each word in codespell's dictionary."""
    folder = packages.pypi("codespell", "2.4.1") / "codespell_lib" / "data"
    return corrections((folder / "dictionary.txt").read_text(encoding="utf8"))


def _misspelt(packages: Packages) -> Population:
    misspellings = misspellings_of(packages)
    rng = np.random.default_rng(17)
    order = shuffled(sorted(misspellings), rng)
    tested, training = order[:_N_WORDS], order[_N_WORDS:]
    pairs = [(word, wrong) for word in training for wrong in misspellings[word]]
    errors = _ngrams([wrong for _, wrong in pairs]) - _ngrams([word for word, _ in pairs])
    within = ridged(errors.T @ errors / len(errors), 0.1)
    axes = discriminants(_ngrams(training), within, 200)
    y, probes = [], []
    for row, word in enumerate(tested):
        for wrong in shuffled(misspellings[word], rng)[:_PROBES_PER_WORD]:
            y.append(row)
            probes.append(wrong)
    return Population(_ngrams(tested) @ axes, _ngrams(probes) @ axes, np.array(y))


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="misspellings",
        kind="text",
        summary="English words from real misspellings; discriminant axes of n-grams",
        about=(
            "Classes are 9,000 English words and phrases, drawn at random from the corrections in "
            "codespell's dictionary. The template is the word. The test instances are up to three "
            "of its misspellings, drawn at random, as people found them in texts and programs. "
            "Misspellings with several possible corrections are left out. Inflected forms are "
            "separate words. The misspellings are real; no noise is added. A wrong answer "
            "corrects a misspelling to another word."
        ),
        classifier=(
            "Euclidean distance after linear discriminant analysis (200 dimensions) of runs of one "
            "to three characters, hashed to 1,024 signed buckets. The analysis is learnt on the "
            "other words of the dictionary and their misspellings."
        ),
        packages=("codespell 2.4.1 (PyPI, GPL-2; its dictionary CC-BY-SA-3.0)",),
        make=_misspelt,
    ),
)
