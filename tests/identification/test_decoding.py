"""Decoding: Mahalanobis distances, sets of stimuli by brute force, known laws, shrinkage."""

import re
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from classex_bayes.identification import (
    decoding_scores,
    identification_task,
    shrinkage_intensity,
    shrunk_covariance,
)
from classex_bayes.simulate import GaussianNearestNeighbor

PAGE = Path(__file__).parents[2] / "docs" / "roles" / "neuroscientist.md"
RESIDUALS = arrays(float, (7, 3), elements=st.floats(-10, 10)).filter(
    lambda errors: np.all(np.abs(errors).max(axis=0) > 0.1)
)


def experiment(n, q, seed, p=None, noise=0.5):
    """Responses, predictions and noise covariance; whitened predictions are N(0, I / noise)."""
    rng = np.random.default_rng(seed)
    root = np.tril(rng.normal(size=(q, q)))
    np.fill_diagonal(root, rng.uniform(0.5, 2, q))
    B = np.linalg.qr(rng.normal(size=(p or q, q)))[0] @ root.T
    predictions = rng.normal(size=(n, p or q)) @ B
    responses = predictions + np.sqrt(noise) * rng.normal(size=(n, q)) @ root.T
    return responses, predictions, noise * root @ root.T


# Identification


@given(st.integers(0, 10**6), st.integers(1, 8))
def test_scores_are_mahalanobis_distances(seed, q):
    responses, predictions, covariance = experiment(6, q, seed)
    gap = responses[:, None] - predictions
    explicit = -0.5 * np.einsum("ijk,kl,ijl->ij", gap, np.linalg.inv(covariance), gap)
    scores = decoding_scores(responses, predictions, covariance)
    np.testing.assert_allclose(scores, explicit, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("k", [2, 3, 4, 6])
def test_accuracy_is_that_of_all_sets_of_stimuli(k):
    n_stimuli = 6
    responses, predictions, covariance = experiment(n_stimuli, 2, 3, noise=2.0)
    scores = decoding_scores(responses, predictions, covariance)
    task = identification_task(responses, predictions, covariance)
    assert task.ranks.tolist() == (scores >= np.diag(scores)[:, None]).sum(axis=1).tolist()
    right = [
        scores[i, list(stimuli)].argmax() == stimuli.index(i)
        for stimuli in combinations(range(n_stimuli), k)
        for i in stimuli
    ]
    accuracy = task.accuracy(k)
    assert accuracy == pytest.approx(np.mean(right), abs=1e-12)
    # Thesis (2.6) and (2.7) with R the number of stimuli that l beats, and R - 1 for R - 2.
    beaten = (scores[:, :, None] > scores[:, None]).sum(axis=2)
    wrong = sum(
        comb(int(beaten[i, other]) - 1, k - 2)
        for i in range(n_stimuli)
        for other in range(n_stimuli)
        if scores[i, other] > scores[i, i]
    )
    assert 1 - wrong / (comb(n_stimuli, k) * k) == pytest.approx(accuracy, abs=1e-12)


@pytest.mark.parametrize(("q", "p", "noise"), [(3, 3, 0.02), (8, 20, 0.5), (20, 20, 1.0)])
def test_accuracy_of_the_true_model_is_known(q, p, noise):
    # Correlated noise whitens to isotropic noise about known Gaussian centres.
    task = identification_task(*experiment(1500, q, q, p, noise))
    k = [2, 20, 1000]
    error = np.sqrt(np.diag(task.accuracy_cov(k)))
    law = GaussianNearestNeighbor(q, noise, template_variance=0)
    assert np.all(np.abs(task.accuracy(k) - law.accuracy(k)) < 4 * error)
    assert error.max() < 0.03


def test_repeated_and_named_stimuli():
    responses, predictions, covariance = experiment(5, 3, 4)
    order = [4, 0, 0, 2, 1, 3]
    task = identification_task(responses[order], predictions, covariance, order)
    assert task.n_test == 6 and task.n_classes == 5
    names = ["a", "b", "c", "d", "e"]
    named = identification_task(
        responses[order], predictions, covariance, [names[i] for i in order], classes=names
    )
    assert named.classes == names and named.ranks.tolist() == task.ranks.tolist()
    in_order = identification_task(responses, predictions, covariance, classes=names)
    assert in_order.y.tolist() == [0, 1, 2, 3, 4]


def test_stimuli_without_responses_compete():
    responses, predictions, covariance = experiment(9, 3, 5)
    task = identification_task(
        responses[:4], predictions, covariance, range(4), untested="competitors"
    )
    assert task.n_classes == 9 and task.n_test == 4


# Covariance of the noise


@given(RESIDUALS, st.floats(0, 1))
def test_shrunk_covariance_is_the_formula(residuals, shrinkage):
    raw = sum(np.outer(row, row) for row in residuals) / 7
    expected = (1 - shrinkage) * raw + shrinkage * np.diag(np.diag(raw))
    covariance = shrunk_covariance(residuals, shrinkage)
    np.testing.assert_allclose(covariance, expected, atol=1e-10)
    assert np.array_equal(covariance, covariance.T)
    chosen = shrunk_covariance(residuals, shrinkage_intensity(residuals))
    assert np.array_equal(shrunk_covariance(residuals), chosen)


@given(RESIDUALS, arrays(float, 3, elements=st.floats(0.1, 100)))
def test_intensity_is_the_formula_in_any_units(residuals, units):
    scaled = residuals / np.sqrt(np.mean(residuals**2, axis=0))
    products = [scaled[:, i] * scaled[:, j] for i in range(3) for j in range(3) if i != j]
    variance = sum(product.var(ddof=1) / 7 for product in products)
    between = sum(product.mean() ** 2 for product in products)
    expected = min(1.0, variance / between) if between > 0 else 0.0
    for values in (residuals, residuals * units):
        assert shrinkage_intensity(values) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("n", [30, 100, 400])
def test_intensity_comes_close_to_the_best_shrinkage(n):
    rng = np.random.default_rng(n)
    truth = 0.4 ** np.abs(np.subtract.outer(np.arange(20), np.arange(20)))
    chosen, best = [], []
    for _ in range(20):
        residuals = rng.multivariate_normal(np.zeros(20), truth, size=n)
        chosen.append(np.sum((shrunk_covariance(residuals) - truth) ** 2))
        candidates = [shrunk_covariance(residuals, share) for share in np.linspace(0, 1, 41)]
        best.append(min(np.sum((candidate - truth) ** 2) for candidate in candidates))
    assert np.mean(chosen) < 1.1 * np.mean(best)


def test_a_single_response_needs_no_shrinkage():
    assert shrinkage_intensity([[1.0], [2.0]]) == 0.0


# An encoding model of scikit-learn


def test_the_recipe_is_close_to_the_true_model():
    """The encoding model of the page for neuroscientists has nearly the accuracy of the truth."""
    first_part = PAGE.read_text("utf-8").partition("## Which region")[0]
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```", first_part, re.DOTALL | re.MULTILINE):
        exec(compile(block, str(PAGE), "exec"), names)
    variance = np.diag(names["covariance"])
    # The noise has the standard deviation 4; the error of a prediction adds 20 / 400 of it.
    assert variance.mean() == pytest.approx(16 * 1.05, rel=4 * np.sqrt(2 / (400 * 60)))
    truth = identification_task(
        names["test_responses"], names["test"] @ names["weights"], 16 * np.eye(60)
    )
    k = [2, 10, 200]
    task = names["task"]
    shortfall = truth.accuracy(k) - task.accuracy(k)
    assert np.all(shortfall > -0.02) and np.all(shortfall < [0.01, 0.04, 0.12])
    assert task.classes == names["names"] and task.n_test == 200
