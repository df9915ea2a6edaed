"""Texts of very different length, with the log-likelihoods of language models."""

import numpy as np
from scipy import sparse

from classex_bayes.typing import FloatArray
from studies.corpus import functions, manuals
from studies.corpus.functions import described_functions, function_versions
from studies.corpus.manuals import manual_pages
from studies.corpus.packages import Packages
from studies.corpus.population import Recipe, ScoredPopulation, shuffled
from studies.corpus.retrieval_scores import Texts, counts_of, unigram_log_likelihoods
from studies.corpus.text_features import ngrams

_N_CLASSES = 4_000
_SHORTEST, _LONGEST = 4, 200


def cut[Item](items: list[Item], rng: np.random.Generator) -> list[Item]:
    """Return a run of 4 to 200 items at a random place, or all of them if they are fewer.

    The logarithm of the length is uniform.
    """
    length = int(np.exp(rng.uniform(np.log(_SHORTEST), np.log(_LONGEST + 1))))
    start = rng.integers(max(len(items) - length, 0) + 1)
    return items[start : start + length]


def word_log_likelihoods(documents: Texts, queries: Texts, *, share: float) -> FloatArray:
    """Log-likelihoods (n, n_documents) of queries by unigram models of the documents.

    A word's probability is (1 - share) times its frequency in the document plus `share` times its
    frequency in all documents. Words of no document are ignored.
    """
    counts, asked = counts_of(documents, queries)
    common = np.log(share * np.asarray(counts.sum(axis=0)).ravel() / counts.sum())
    ratios = unigram_log_likelihoods(documents, queries, share=share)
    return np.asarray(ratios + (asked @ common)[:, None], np.float32)


def trigram_log_likelihoods(
    documents: list[str], queries: list[str], *, share: float
) -> FloatArray:
    """Log-likelihoods (n, n_documents) of queries by trigram models of characters.

    The probability of a character after two others is (1 - share) times its frequency there in
    the document plus `share` times its frequency there in all documents. It is the latter alone if
    the two do not occur in the document. Trigrams of no document are ignored.
    """
    runs, asked_runs = (
        [ngrams(text, (3,), "") for text in texts] for texts in (documents, queries)
    )
    counts, asked = counts_of(runs, asked_runs)
    trigrams = sorted({run for text in runs for run in text})
    _, context = np.unique([run[:2] for run in trigrams], return_inverse=True)
    of_context = sparse.csr_array((np.ones(len(trigrams)), (np.arange(len(trigrams)), context)))
    before = (counts @ of_context).toarray()
    total = np.asarray(counts.sum(axis=0)).ravel()
    common = total / np.bincount(context, total)[context]
    entries = counts.tocoo()
    row, column = entries.coords
    ratio = entries.data / before[row, context[column]] / common[column]
    gain = sparse.csr_array((np.log1p((1 - share) / share * ratio), (row, column)), counts.shape)
    scores = (asked @ gain.T).toarray() + np.log(share) * ((asked @ of_context) @ (before > 0).T)
    return np.asarray(scores + (asked @ np.log(common))[:, None], np.float32)


def _manual_unigrams(packages: Packages) -> ScoredPopulation:
    pages = shuffled(manual_pages(packages), 81)[:_N_CLASSES]
    rng = np.random.default_rng(81)
    queries = [cut(second, rng) for _, second in pages]
    scores = word_log_likelihoods([first for first, _ in pages], queries, share=0.5)
    return ScoredPopulation(scores, np.arange(len(pages)))


def _manual_trigrams(packages: Packages) -> ScoredPopulation:
    pages = shuffled(manual_pages(packages), 82)[:_N_CLASSES]
    rng = np.random.default_rng(82)
    queries = [" ".join(cut(second, rng)) for _, second in pages]
    scores = trigram_log_likelihoods([" ".join(first) for first, _ in pages], queries, share=0.3)
    return ScoredPopulation(scores, np.arange(len(pages)))


def _function_trigrams(packages: Packages) -> ScoredPopulation:
    old, new = function_versions(packages)
    chosen = shuffled(range(len(old)), 83)[:_N_CLASSES]
    rng = np.random.default_rng(83)
    queries = [" ".join(cut(list(new[i]), rng)) for i in chosen]
    documents = [" ".join(old[i]) for i in chosen]
    return ScoredPopulation(
        trigram_log_likelihoods(documents, queries, share=0.3), np.arange(len(chosen))
    )


def _docstring_unigrams(packages: Packages) -> ScoredPopulation:
    pairs = described_functions(packages)[:_N_CLASSES]
    rng = np.random.default_rng(84)
    scores = word_log_likelihoods(
        [code for code, _ in pairs], [cut(text, rng) for _, text in pairs], share=0.5
    )
    return ScoredPopulation(scores, np.arange(len(pairs)))


_LENGTHS = "4 to 200 {} (the logarithm is uniform), or fewer if the {} is shorter"
_TRIGRAMS = (
    "Log-likelihood of the characters of the test instance, {} joined by blanks, under "
    "trigram models: the frequency of a character after two others in the template (.7), mixed "
    "with that in all templates (.3). Trigrams that no template has are ignored. {} The "
    "log-likelihood is not divided by the length, so the scale of the scores differs."
)
_UNIGRAMS = (
    "Log-likelihood of the words under unigram models: the frequency of a word in the template, "
    "mixed half and half with that in all templates. Words that no template has are ignored. {} "
    "The log-likelihood is not divided by the length, so the scale of the scores differs."
)
_NOT_TUNED = "Nothing was chosen after accuracies had been seen."

RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="manual-unigrams",
        kind="text",
        summary="manual pages from 4 to 200 later words; unigram models",
        about="Classes are 4,000 manual pages, drawn at random from those of manual-halves. The "
        "template is the first half of a page, and the test instance is a run of words at a random "
        f"place of the second half, of {_LENGTHS.format('words', 'half')}. Families of similar "
        "pages stay. No noise is added. A wrong answer is another page.",
        classifier=_UNIGRAMS.format(_NOT_TUNED),
        packages=manuals.RECIPES[0].packages,
        make=_manual_unigrams,
        scores="log-likelihood",
    ),
    Recipe(
        name="manual-trigrams",
        kind="text",
        summary="manual pages from 4 to 200 later words; trigrams of characters",
        about="Classes are 4,000 manual pages, drawn anew from those of manual-halves. The "
        "template is the first half of a page, and the test instance is a run of words at a random "
        f"place of the second half, of {_LENGTHS.format('words', 'half')}. Families of similar "
        "pages stay. No noise is added. A wrong answer is another page.",
        classifier=_TRIGRAMS.format("words", _NOT_TUNED),
        packages=manuals.RECIPES[0].packages,
        make=_manual_trigrams,
        scores="log-likelihood",
    ),
    Recipe(
        name="function-trigrams",
        kind="code",
        summary="Python functions from a part of a later version; trigrams of characters",
        about="Classes are 4,000 functions and methods, drawn anew from those of "
        "functions-versions. The template is the older body, and the test instance is a run of "
        "identifiers at a random place of the newer one, of "
        f"{_LENGTHS.format('identifiers', 'body')}. Many bodies have not "
        "changed. The changes are real. A wrong answer takes a function for the successor of "
        "another.",
        classifier=_TRIGRAMS.format("identifiers", _NOT_TUNED),
        packages=functions.RECIPES[1].packages[:6],
        make=_function_trigrams,
        scores="log-likelihood",
    ),
    Recipe(
        name="docstring-unigrams",
        kind="code",
        summary="Python functions from 4 to 200 words of their docstrings; unigram models",
        about="Classes are 4,000 functions and methods, drawn at random from those of "
        "functions-docstrings. The template is made of the words of the name and of the "
        "identifiers in the body. The test instance is a run of words at a random place of the "
        f"docstring's description, of {_LENGTHS.format('words', 'description')}. No noise is "
        "added. A wrong answer is another function.",
        classifier=_UNIGRAMS.format(_NOT_TUNED),
        packages=functions.RECIPES[0].packages,
        make=_docstring_unigrams,
        scores="log-likelihood",
    ),
)
