"""Scores of the corpus: heads, retrieval, strings and vectors, against independent sources."""

import math
from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from scipy.stats import norm
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB

from studies.corpus import retrieval_scores
from studies.corpus.heads import margin_head, softmax_head
from studies.corpus.population import ScoredPopulation, load
from studies.corpus.string_scores import edit_distances, hashes, shared_parts
from studies.corpus.vector_scores import correlations, kernel, log_likelihood_ratios

DOCUMENTS = ["a rose is a rose", "the wars of the roses", "rose water", "is water the one"]
QUERIES = ["the rose", "water of the rose is", "unheard words", "one one one"]
DOCUMENTS, QUERIES = ([text.split() for text in texts] for texts in (DOCUMENTS, QUERIES))


@pytest.fixture
def clouds():
    """Vectors (200, 4) of five classes that overlap."""
    rng = np.random.default_rng(1)
    y = np.arange(200) % 5
    return rng.normal(size=(5, 4))[y] + rng.normal(size=(200, 4)), y


def test_a_softmax_head_is_a_penalised_logistic_regression(clouds):
    x, y = clouds
    expected = LogisticRegression(C=1 / (200 * 0.01), fit_intercept=False, tol=1e-8).fit(x, y)
    weights = softmax_head(x, y, epochs=600, step=0.1, penalty=0.01)
    np.testing.assert_allclose(weights, expected.coef_, atol=1e-3)


def test_no_better_head_with_a_margin_is_found(clouds):
    x, y = clouds
    x = x / np.linalg.norm(x, axis=1, keepdims=True)

    def loss(weights):
        weights = weights.reshape(5, 4)
        cosines = x @ (weights / np.linalg.norm(weights, axis=1, keepdims=True)).T
        logits = 8 * (cosines - 0.2 * np.eye(5)[y])
        return -log_softmax(logits, axis=1)[np.arange(200), y].mean()

    trained = margin_head(x, y, scale=8, margin=0.2, epochs=600).astype(float)
    np.testing.assert_allclose(np.linalg.norm(trained, axis=1), 8, rtol=1e-5)
    assert loss(trained) < minimize(loss, trained.ravel()).fun + 1e-4
    assert loss(trained) < loss(margin_head(x, y, scale=8, margin=0, epochs=600)) - 1e-4


def test_bm25():
    mean = sum(map(len, DOCUMENTS)) / 4
    expected = np.zeros((4, 4))
    for row, query in enumerate(QUERIES):
        for column, document in enumerate(DOCUMENTS):
            for word in query:
                n = sum(word in other for other in DOCUMENTS)
                count = document.count(word)
                length = count + 1.2 * (0.25 + 0.75 * len(document) / mean)
                expected[row, column] += math.log(1 + (4 - n + 0.5) / (n + 0.5)) * count / length
    np.testing.assert_allclose(retrieval_scores.bm25(DOCUMENTS, QUERIES), expected, rtol=1e-6)


def test_language_models():
    every = [word for document in DOCUMENTS for word in document]
    expected = np.zeros((4, 4))
    for row, query in enumerate(QUERIES):
        for column, document in enumerate(DOCUMENTS):
            for word in set(every).intersection(query):
                common = every.count(word) / len(every)
                mixed = (document.count(word) / len(document) + common) / 2
                expected[row, column] += query.count(word) * math.log(mixed / common)
    shift = retrieval_scores.unigram_log_likelihoods(DOCUMENTS, QUERIES) - expected
    np.testing.assert_allclose(shift, np.tile(shift[:, :1], 4), atol=1e-6)


def test_naive_bayes():
    counts = CountVectorizer(analyzer=list).fit(DOCUMENTS)
    machine = MultinomialNB(alpha=0.1).fit(counts.transform(DOCUMENTS), range(4))
    logs = retrieval_scores.naive_bayes(DOCUMENTS, QUERIES)
    expected = machine.predict_log_proba(counts.transform(QUERIES))
    np.testing.assert_allclose(log_softmax(logs, axis=1), expected)


@cache
def levenshtein(a, b):
    if not a or not b:
        return len(a) + len(b)
    changed = levenshtein(a[1:], b[1:]) + (a[0] != b[0])
    return min(changed, levenshtein(a[1:], b) + 1, levenshtein(a, b[1:]) + 1)


def test_edit_distances():
    rng = np.random.default_rng(2)
    texts = ["".join(rng.choice(list("abc"), size)) for size in rng.integers(0, 8, 20)]
    expected = [[levenshtein(a, b) for b in texts] for a in texts[:10]]
    np.testing.assert_array_equal(edit_distances(texts[:10], texts), expected)


def test_shared_parts_of_sets():
    expected = [
        [len({*a} & {*b}) / len({*a} | {*b}) for b in map(tuple, DOCUMENTS)]
        for a in map(tuple, QUERIES)
    ]
    np.testing.assert_allclose(shared_parts(QUERIES, DOCUMENTS), expected, rtol=1e-6)


def test_bits_differ_as_angles():
    first, second = np.eye(2), np.array([[1.0, 1.0], [-1.0, 0.0]])
    bits = hashes(np.concatenate([first, second]), 20_000, np.random.default_rng(3))
    shares = [[np.mean(bits[i] != bits[j]) for j in (2, 3)] for i in (0, 1)]
    np.testing.assert_allclose(shares, [[0.25, 1], [0.25, 0.5]], atol=0.015)


def test_log_likelihood_ratios_of_normal_vectors():
    rng = np.random.default_rng(4)
    probes, gallery = rng.normal(size=(6, 3)), rng.normal(size=(5, 3))
    within, between = np.array([0.5, 1.0, 2.0]), np.array([1.0, 0.7, 3.0])
    # A second vector given the first of its class, and of any class.
    share = between / (within + between)
    same = norm.logpdf(probes[:, None], share * gallery, np.sqrt(within + within * share))
    other = norm.logpdf(probes, 0, np.sqrt(within + between))[:, None]
    shift = log_likelihood_ratios(probes, gallery, within, between) - (same - other).sum(-1)
    np.testing.assert_allclose(shift, shift[0, 0])


def test_correlations_and_kernels():
    rng = np.random.default_rng(5)
    gallery, probes = rng.normal(size=(2, 40, 3))
    expected = np.corrcoef(probes, gallery)[:40, 40:]
    np.testing.assert_allclose(correlations(probes, gallery), expected, atol=1e-6)
    squares = ((probes[:, None] - gallery) ** 2).sum(-1)
    width = np.median(np.sort(squares, axis=1)[:, 29])
    np.testing.assert_allclose(kernel(probes, gallery), np.exp(-squares / width))


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_scores_are_kept_as_they_are(tmp_path, higher_is_better):
    scores = np.random.default_rng(6).integers(0, 5, (7, 4)).astype(np.int16)
    made = ScoredPopulation(scores, np.arange(7) % 4, higher_is_better)
    made.save(tmp_path / "made.npz")
    kept = load(tmp_path / "made.npz")
    assert kept.scores.dtype == np.int16 and kept.higher_is_better is higher_is_better
    np.testing.assert_array_equal(kept.task().ranks, made.task().ranks)
