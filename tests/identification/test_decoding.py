"""Decoding: Mahalanobis distances, identification by brute force, and a law known exactly."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes.exceptions import DataError
from classex_bayes.identification import decoding_scores, identification_task, whiten
from classex_bayes.simulate import GaussianKnownCentres


def experiment(n, q, seed, p=None, noise=0.5):
    """Responses, predictions and noise covariance; whitened predictions are N(0, I / noise)."""
    rng = np.random.default_rng(seed)
    root = np.tril(rng.normal(size=(q, q)))
    np.fill_diagonal(root, rng.uniform(0.5, 2, q))
    B = np.linalg.qr(rng.normal(size=(p or q, q)))[0] @ root.T
    predictions = rng.normal(size=(n, p or q)) @ B
    responses = predictions + np.sqrt(noise) * rng.normal(size=(n, q)) @ root.T
    return responses, predictions, noise * root @ root.T


@given(st.integers(0, 10**6), st.integers(1, 8))
def test_scores_are_mahalanobis_distances(seed, q):
    responses, predictions, covariance = experiment(6, q, seed)
    inverse = np.linalg.inv(covariance)
    gap = responses[:, None] - predictions
    explicit = -0.5 * np.einsum("ijk,kl,ijl->ij", gap, inverse, gap)
    scores = decoding_scores(responses, predictions, covariance)
    np.testing.assert_allclose(scores, explicit, rtol=1e-6, atol=1e-8)


def test_whitened_noise_has_unit_covariance():
    responses, predictions, covariance = experiment(20_000, 4, 1)
    noise = whiten(responses, covariance) - whiten(predictions, covariance)
    np.testing.assert_allclose(noise.T @ noise / len(noise), np.eye(4), atol=0.05)


def test_the_task_has_the_losses_of_the_scores():
    responses, predictions, covariance = experiment(60, 5, 2, noise=2.0)
    scores = decoding_scores(responses, predictions, covariance)
    task = identification_task(responses, predictions, covariance)
    assert task.table.kind == "embeddings" and task.n_classes == 60
    assert task.table.n_better.tolist() == (scores > np.diag(scores)[:, None]).sum(axis=1).tolist()


@pytest.mark.parametrize("k", [2, 3, 4, 6])
def test_accuracy_is_that_of_all_sets_of_stimuli(k):
    M = 6
    responses, predictions, covariance = experiment(M, 2, 3, noise=2.0)
    scores = decoding_scores(responses, predictions, covariance)
    right = [
        scores[i, list(stimuli)].argmax() == stimuli.index(i)
        for stimuli in combinations(range(M), k)
        for i in stimuli
    ]
    accuracy = identification_task(responses, predictions, covariance).accuracy(k)[0]
    assert accuracy == pytest.approx(np.mean(right), abs=1e-12)
    # Thesis (2.6) and (2.7) with R the number of stimuli that l beats, and R - 1 for R - 2.
    beaten = (scores[:, :, None] > scores[:, None]).sum(axis=2)
    wrong = sum(
        comb(int(beaten[i, other]) - 1, k - 2)
        for i in range(M)
        for other in range(M)
        if scores[i, other] > scores[i, i]
    )
    assert 1 - wrong / (comb(M, k) * k) == pytest.approx(accuracy, abs=1e-12)


@pytest.mark.parametrize(("q", "p", "noise"), [(3, 3, 0.02), (8, 20, 0.5), (20, 20, 1.0)])
def test_accuracy_of_the_true_model_is_known(q, p, noise):
    # Correlated noise whitens to isotropic noise about known Gaussian centres.
    task = identification_task(*experiment(1500, q, q, p, noise))
    k = [2, 20, 1000]
    error = np.sqrt(np.diag(task.accuracy_cov(k)))
    law = GaussianKnownCentres(q, noise)
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


def test_stimuli_never_shown_compete():
    responses, predictions, covariance = experiment(9, 3, 5)
    task = identification_task(
        responses[:4], predictions, covariance, range(4), untested="competitors"
    )
    assert task.n_classes == 9 and task.n_test == 4
    with pytest.raises(DataError, match=r"^y: "):
        identification_task(responses[:4], predictions, covariance, range(4))


def test_equal_stimuli_are_tied():
    responses, predictions, covariance = experiment(4, 3, 6)
    predictions[1] = predictions[0]
    assert identification_task(responses, predictions, covariance).table.n_tied == 2


def test_bad_arguments():
    responses, predictions, covariance = experiment(5, 3, 7)
    with pytest.raises(DataError, match=r"^responses: "):
        identification_task(responses[:4], predictions, covariance)
    with pytest.raises(DataError, match=r"^responses, predictions: "):
        identification_task(responses[:, :2], predictions, covariance)
    with pytest.raises(DataError, match=r"^covariance: "):
        decoding_scores(responses, predictions, np.eye(2))
    with pytest.raises(DataError, match=r"^covariance: "):
        whiten(responses, np.triu(np.ones((3, 3))))
    with pytest.raises(DataError, match=r"^covariance: "):
        whiten(responses, -np.eye(3))
    responses[2, 1] = np.nan
    with pytest.raises(DataError, match=r"^responses: "):
        identification_task(responses, predictions, covariance)
    with pytest.raises(DataError, match=r"^classes: "):
        identification_task(predictions, predictions, covariance, classes=["a", "b"])
