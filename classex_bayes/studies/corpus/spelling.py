"""Words recognised by the misspellings that people have collected."""

import numpy as np

from classex_bayes.studies.corpus.packages import Packages
from classex_bayes.studies.corpus.population import Population, Recipe
from classex_bayes.studies.corpus.text_features import character_ngrams, hashed
from classex_bayes.typing import FloatArray

_N_WORDS = 9_000
_PROBES_PER_WORD = 3


def corrections(dictionary: str) -> dict[str, list[str]]:
    r"""Misspellings of each word; those that several words may explain are left out.

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


def discriminant_directions(
    templates: FloatArray, probes: FloatArray, y: np.ndarray, d: int
) -> FloatArray:
    """Directions of discriminant analysis: most variance of templates for that of errors.

    Errors are the differences of probes and their templates. The mean variance of an error is
    added to each variance, times .1.
    """
    errors = probes - templates[y]
    variances, axes = np.linalg.eigh(errors.T @ errors / len(errors))
    whitening = axes / np.sqrt(variances + 0.1 * variances.mean())
    _, directions = np.linalg.eigh(np.cov((templates @ whitening).T))
    return whitening @ directions[:, ::-1][:, :d]


def _ngrams(texts: list[str]) -> FloatArray:
    return hashed([character_ngrams(text, (1, 2, 3)) for text in texts], 1024).toarray()


def _misspelt(packages: Packages) -> Population:
    folder = packages.pypi("codespell", "2.4.1") / "codespell_lib" / "data"
    misspellings = corrections((folder / "dictionary.txt").read_text(encoding="utf8"))
    rng = np.random.default_rng(17)
    order = [sorted(misspellings)[i] for i in rng.permutation(len(misspellings))]
    tested, training = order[:_N_WORDS], order[_N_WORDS:]
    known = [wrong for word in training for wrong in misspellings[word]]
    of_known = np.repeat(range(len(training)), [len(misspellings[word]) for word in training])
    directions = discriminant_directions(_ngrams(training), _ngrams(known), of_known, 200)
    y, probes = [], []
    for row, word in enumerate(tested):
        wrong = misspellings[word]
        for i in rng.permutation(len(wrong))[:_PROBES_PER_WORD]:
            y.append(row)
            probes.append(wrong[i])
    return Population(_ngrams(tested) @ directions, _ngrams(probes) @ directions, np.array(y))


RECIPES = (
    Recipe(
        name="misspellings",
        kind="text",
        about=(
            "Classes are 9,000 English words and phrases, drawn at random from the corrections in "
            "codespell's dictionary. The template is the word. The test instances are up to three "
            "of its misspellings, drawn at random, as people found them in texts and programs. "
            "Misspellings of which several words may be meant are left out. Inflected forms are "
            "words of their own. A wrong answer corrects a misspelling to another word."
        ),
        classifier=(
            "Euclidean distance after linear discriminant analysis (200 dimensions) of runs of "
            "one to three characters, hashed to 1,024 signed buckets; learnt on the other words "
            "of the dictionary and their misspellings."
        ),
        packages=("codespell 2.4.1 (PyPI; GPL 2, dictionary CC BY-SA 3.0)",),
        make=_misspelt,
    ),
)
