"""PolynomialRisk and MomentRisk: exact where the conditional risk is in the span of their bases."""

import mpmath
import numpy as np
import pytest
from helpers import unsound_data
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls
from scipy.special import ndtri
from scipy.stats import beta

from classex_bayes import SourceTask
from classex_bayes.core import RadialBasis
from classex_bayes.risk import (
    MomentRisk,
    PolynomialRisk,
    average_test_risk,
    average_test_risk_cov,
    noise_amplification,
)
from classex_bayes.simulate import GaussianNearestNeighbor

pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.ExtrapolationWarning")
LAW = GaussianNearestNeighbor(dim=5, noise_variance=0.15)


def task_with_costs_by_rank(by_rank):
    """One instance a class, weighted so that 0-1 costs by rank are the given, falling numbers."""
    n_classes = by_rank.size + 1
    weight = -np.diff(np.concatenate([[1.0], by_rank, [0.0]]))
    scores = np.empty((n_classes, n_classes))
    for i in range(n_classes):
        scores[i, np.arange(n_classes) != i] = np.arange(n_classes - 1, 0, -1)
        scores[i, i] = n_classes - 0.5 - i
    return SourceTask.from_scores(scores, np.arange(n_classes), class_weight=weight)


def sample(n_classes=40, seed=1, repeats=2):
    """Task of a Gaussian law; the farther classes are apart, the dearer to confuse."""
    probes, gallery, y = LAW.sample(n_classes, repeats=repeats, random_seed=seed)
    cost = np.minimum(np.linalg.norm(gallery[:, None] - gallery, axis=2) / 4, 1)
    return SourceTask.from_embeddings(probes, gallery, y), cost


def random_task(seed, n_classes, repeats=2):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), repeats)
    scores = rng.normal(size=(y.size, n_classes)) + 1.5 * np.eye(n_classes)[y]
    cost = rng.uniform(size=(n_classes, n_classes)) * (1 - np.eye(n_classes))
    return SourceTask.from_scores(scores, y), cost


# Polynomials


@unsound_data
def test_a_quadratic_is_recovered():
    # The expectation of tasks with K(u) = u^2: E[u^2 | R] = (R + 1)(R + 2) / (k1 (k1 + 1)).
    beaten = 18 - np.arange(19)
    task = task_with_costs_by_rank((beaten + 1) * (beaten + 2) / 420)
    k = np.array([2, 20, 200, 10**6])
    model = PolynomialRisk(1 - np.eye(20)).fit(task)
    np.testing.assert_allclose(model.coef_, [0, 0, 1], atol=1e-10)
    np.testing.assert_allclose(model.predict(k).mean, (k - 1) / (k + 1), atol=1e-10)


@unsound_data
@given(seed=st.integers(0, 2**32 - 1), n_classes=st.integers(4, 30), degree=st.integers(0, 5))
def test_reproduces_the_risks_on_few_classes(seed, n_classes, degree):
    # The chance of a rank in subsets of k classes is a polynomial of degree k - 2 in the rank.
    degree = min(degree, n_classes - 3)
    task, cost = random_task(seed, n_classes)
    k = np.arange(2, degree + 3)
    found = PolynomialRisk(cost, degree).fit(task).predict(k).mean
    np.testing.assert_allclose(found, average_test_risk(task, cost, k), atol=1e-9)


def test_it_is_the_regression_of_the_draft():
    task, cost = random_task(3, 12)
    response, powers = [], []
    for scores, own in zip(task.table.source.scores(np.arange(24)), task.y, strict=True):
        for wrong in set(range(12)) - {own}:
            beaten = (scores[wrong] > np.delete(scores, [own, wrong])).sum()
            response.append(cost[own, wrong] * (scores[wrong] > scores[own]))
            powers.append([1, (beaten + 1) / 12, (beaten + 1) * (beaten + 2) / (12 * 13)])
    coef = np.linalg.lstsq(np.array(powers), np.array(response), rcond=None)[0]
    np.testing.assert_allclose(PolynomialRisk(cost).fit(task).coef_, coef, atol=1e-10)


@unsound_data
def test_standard_error_of_polynomials_is_that_of_simulations():
    # U* has the distribution function u^2, and every instance competitors of its own.
    rng, y = np.random.default_rng(0), np.repeat(np.arange(20), 5)
    found, errors, n_tasks = [], [], 60
    for _ in range(n_tasks):
        scores = rng.uniform(size=(100, 20))
        scores[np.arange(100), y] = np.sqrt(rng.uniform(size=100))
        model = PolynomialRisk(1 - np.eye(20)).fit(SourceTask.from_scores(scores, y))
        found.append(model.predict(200).mean[200])
        errors.append(model.standard_error(200) ** 2)
    assert np.mean(found) == pytest.approx(199 / 201, abs=4 * np.std(found) / np.sqrt(n_tasks))
    assert np.mean(errors) == pytest.approx(np.var(found), rel=0.6)
    assert noise_amplification(20, 200, 2) / (4 * 5) > 5 * np.var(found)


@pytest.mark.parametrize(("n_classes", "degree"), [(3, 0), (10, 7), (13, 10), (40, 10)])
def test_noise_amplification_in_arbitrary_precision(n_classes, degree):
    k = [2, n_classes, 10 * n_classes, 10**12]
    with mpmath.workdps(60):
        rows = range(n_classes - 1)
        z = mpmath.matrix(n_classes - 1, degree + 1)
        for j in rows:
            for h in range(degree + 1):
                z[j, h] = mpmath.rf(n_classes - 1 - j, h) / mpmath.rf(n_classes, h)
        expected = []
        for size in k:
            w = mpmath.matrix([mpmath.mpf(size - 1) / (size - 1 + h) for h in range(degree + 1)])
            expected.append(float((w.T * mpmath.lu_solve(z.T * z, w))[0]))
    np.testing.assert_allclose(noise_amplification(n_classes, k, degree), expected, rtol=1e-5)


@unsound_data
def test_predictions_are_risks_with_notes_where_they_cannot_be():
    task = task_with_costs_by_rank(np.array([1.0, *[0.01] * 8]))
    predicted = PolynomialRisk(1 - np.eye(10), degree=6).fit(task).predict([2, 10, 1000])
    assert predicted.quantity == "risk" and predicted.interval_type == "none"
    assert predicted.mean[1000] > 1 and "outside" in predicted.notes[0]


# Moments


@unsound_data
def test_a_mixture_of_radial_functions_is_recovered():
    # Costs by rank of one element of the basis, by the moments of the ranks' beta laws.
    n_classes, width = 30, 1.0
    knots = RadialBasis.regular(-4, -ndtri(1 / 900), width).knots
    element = RadialBasis(knots[[5]], width)
    u = (np.arange(20_000) + 0.5) / 20_000
    by_rank = np.array(
        [beta.pdf(u, n_classes - 1 - j, j + 1) @ element.cdf(u)[:, 0] / u.size for j in range(29)]
    )
    task = task_with_costs_by_rank(0.8 * by_rank)
    model = MomentRisk(1 - np.eye(n_classes), bandwidth=width).fit(task)
    k = np.array([2, 30, 300, 3000])
    expected = 0.8 * (1 - element.accuracy(k)[:, 0])
    np.testing.assert_allclose(model.predict(k).mean, expected, atol=5e-4)


@pytest.mark.parametrize("nonnegative", [True, False])
def test_least_squares_written_out(nonnegative):
    task, cost = sample()
    k, weights = np.arange(2, 41), np.random.default_rng(1).uniform(0.1, 1, 39)
    model = MomentRisk(cost, bandwidth=4.0, nonnegative=nonnegative, weights=weights).fit(task)
    scale = np.sqrt(weights)
    design = scale[:, None] * (1 - RadialBasis(model.knots_, 4.0).accuracy(k))
    risk = scale * average_test_risk(task, cost, k)
    expected = nnls(design, risk)[0] if nonnegative else np.linalg.lstsq(design, risk)[0]
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-6, atol=1e-8)
    assert model.knots_[0] == -4 and model.knots_[-1] == pytest.approx(-ndtri(1 / 1600))


def test_standard_error_is_the_sandwich():
    task, cost = sample()
    model = MomentRisk(cost, bandwidth=4.0, nonnegative=False).fit(task)
    k, ahead = np.arange(2, 41), np.array([40, 400])
    design, wanted = (1 - RadialBasis(model.knots_, 4.0).accuracy(size) for size in (k, ahead))
    solve = wanted @ np.linalg.pinv(design)
    # Up to what makes the covariance of the risks positive semidefinite.
    expected = np.diag(solve @ average_test_risk_cov(task, cost, k) @ solve.T)
    np.testing.assert_allclose(model.standard_error(ahead) ** 2, expected, rtol=1e-3)


def test_standard_error_of_moments_is_that_of_simulations():
    found, errors = [], []
    for seed in range(60):
        task, cost = sample(30, seed)
        model = MomentRisk(cost, bandwidth=4.0, nonnegative=False).fit(task)
        found.append(model.predict(60).mean[60])
        errors.append(model.standard_error(60) ** 2)
    assert np.mean(errors) == pytest.approx(np.var(found), rel=0.6)


def test_many_numbers_of_classes():
    """Of more than 500 a part has the same curve."""
    task, cost = sample(600, repeats=1)
    k = np.array([60, 600])
    found = MomentRisk(cost).fit(task).predict(k).mean
    np.testing.assert_allclose(found, average_test_risk(task, cost, k), atol=5e-3)


def test_near_the_truth_beyond_the_source_classes():
    # The test risk of many more classes of the same population.
    task, cost = sample(150, repeats=1)
    k = np.array([150, 300, 600])
    truth = average_test_risk(*sample(800, seed=2, repeats=1), k)
    found = MomentRisk(cost).fit(task).predict(k).mean
    assert np.all(np.abs(found - truth) < [0.06, 0.08, 0.12])


@pytest.mark.parametrize("estimator", [MomentRisk, PolynomialRisk])
def test_no_errors(estimator):
    model = estimator(1 - np.eye(8)).fit(SourceTask.from_scores(np.eye(8), np.arange(8)))
    np.testing.assert_allclose(model.predict([2, 100]).mean, 0, atol=1e-12)
    assert model.standard_error([2, 100]).tolist() == [0, 0]
