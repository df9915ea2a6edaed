"""Scores and features of the corpus against textbook formulas and independent sources."""

import math
from collections import Counter
from functools import cache

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.special import log_softmax
from scipy.stats import norm
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB

from studies.corpus import orbits, retrieval_scores, sequences
from studies.corpus.heads import softmax_head
from studies.corpus.projections import discriminants
from studies.corpus.string_scores import edit_distances, hashes
from studies.corpus.vector_scores import log_likelihood_ratios

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


def test_words_are_counted_with_overlaps():
    gene = np.random.default_rng(2).integers(0, 4, 1500)
    runs = (gene[i : i + sequences.LENGTH] for i in range(1501 - sequences.LENGTH))
    expected = Counter(run.tobytes() for run in runs)
    counts = sequences.words(gene)
    assert sorted(counts[counts > 0]) == sorted(expected.values())


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


def test_discriminants_are_generalized_eigenvectors():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 4))
    mixed = rng.normal(size=(4, 4))
    within = mixed @ mixed.T
    axes = discriminants(x, within, 3)
    ratios, _ = eigh(np.cov(x.T), within)
    np.testing.assert_allclose(axes.T @ within @ axes, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(axes.T @ np.cov(x.T) @ axes, np.diag(ratios[:0:-1]), atol=1e-6)


def test_energy_and_momentum_are_those_of_the_ellipse():
    rng = np.random.default_rng(6)
    a, e, inclination = rng.uniform(1, 50, 200), rng.beta(1, 2, 200), rng.uniform(0, 3, 200)
    angles = [rng.uniform(0, 2 * np.pi, 200) for _ in range(3)]
    position, velocity = orbits.states(np.column_stack([a, e, inclination, *angles]))
    distance = np.linalg.norm(position, axis=1)
    np.testing.assert_allclose((velocity**2).sum(1) / 2 - 1 / distance, -1 / (2 * a), rtol=1e-6)
    momentum, parameter = np.cross(position, velocity), a * (1 - e**2)
    np.testing.assert_allclose((momentum**2).sum(1), parameter, rtol=1e-6)
    np.testing.assert_allclose(momentum[:, 2] / np.sqrt(parameter), np.cos(inclination))
