"""Bounds: C_k by convex optimisation and arbitrary precision; coverage where the truth is known."""

import cvxpy as cp
import mpmath
import numpy as np
import pytest
from helpers import few_examples, ranked_task
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes import SourceTask
from classex_bayes.information import (
    bayes_accuracy_bound,
    bayes_accuracy_variance,
    information_bound,
    largest_accuracy,
    smallest_information,
)
from studies.laws import bivariate_normal

METHODS = ("bounded_differences", "cantelli", "chebyshev")
BITS = np.log(2)


# C_k, the largest accuracy


def on_the_curve(c, k):
    """Accuracy, error and information of Q_c in arbitrary precision, by confluent functions."""
    with mpmath.workdps(60):
        a, c = mpmath.mpf(1) / (k - 1), mpmath.mpf(float(c))
        total = mpmath.hyp1f1(a, a + 1, c)  # int exp(c t^(k-1)) dt
        accuracy = a * (mpmath.exp(c) / total - 1) / c
        return float(accuracy), float(1 - accuracy), float(c * accuracy - mpmath.log(total))


@pytest.mark.parametrize("k", [2, 3, 10, 1000, 10**6, 10**9, 10**12])
@pytest.mark.parametrize("c", [1e-3, 0.3, 5.0, 29.9, 30.1, 400.0])
def test_largest_accuracy_in_arbitrary_precision(k, c):
    accuracy, error, information = on_the_curve(c, k)
    found = largest_accuracy(information, k)
    assert found == pytest.approx(accuracy, rel=1e-9)
    assert 1 - found == pytest.approx(error, rel=1e-9, abs=1e-15)
    rounding = 1e-15 * c / error  # of the accuracy, in the information
    assert smallest_information(accuracy, k) == pytest.approx(information, rel=1e-8, abs=rounding)


@pytest.mark.parametrize("k", [2, 5, 20])
@pytest.mark.parametrize("information", [0.05, 0.7, 1.5])
def test_largest_accuracy_by_convex_optimisation(k, information):
    """Maximise int Q t^(k-1) over piecewise constant Q with int Q = 1 and int Q log Q limited."""
    edges = np.linspace(0, 1, 301) ** (1 / (k - 1))
    width = np.diff(edges)
    power = np.diff(edges**k) / k  # int t^(k-1) over each piece
    q = cp.Variable(width.size, nonneg=True)
    limits = [width @ q == 1, cp.sum(cp.multiply(width, -cp.entr(q))) <= information]
    problem = cp.Problem(cp.Maximize(power @ q), [*limits, cp.diff(q) >= 0])
    problem.solve(solver=cp.CLARABEL)
    # A piecewise constant Q loses a little.
    found = largest_accuracy(information, k)
    assert problem.value <= found + 1e-6
    assert problem.value == pytest.approx(found, abs=5e-5)


def test_limits_of_the_largest_accuracy():
    for k in (2, 7, 10**6):
        np.testing.assert_allclose(largest_accuracy([0, 1e-300], k), 1 / k, rtol=1e-12)
        assert largest_accuracy([1e3, 1e6, np.inf], k).tolist() == [1, 1, 1]
        # Far out Q is exponential in 1 - t, and the error (k - 1) exp(-information - 1).
        error = 1 - largest_accuracy(25 + np.log(k), k)
        assert error == pytest.approx((k - 1) / k * np.exp(-26), rel=2e-4)


def test_smallest_information_at_the_ends():
    assert smallest_information([0, 0.05, 0.1, 1], 10).tolist() == [0, 0, 0, np.inf]
    assert smallest_information(0.999, 10, unit="bits") == pytest.approx(
        smallest_information(0.999, 10) / BITS
    )
    assert largest_accuracy(2.0, 10, unit="bits") == largest_accuracy(2 * BITS, 10)
    assert smallest_information(1 - 1e-15, 10) == pytest.approx(
        np.log(9) - 1 + 15 * np.log(10), 0.1
    )


def test_shapes_follow_the_input():
    assert np.ndim(largest_accuracy(1.0, 5)) == 0
    assert largest_accuracy(np.ones((2, 3)), 5).shape == (2, 3)
    assert smallest_information([[0.5], [0.6]], 5).shape == (2, 1)


@few_examples(10)
@given(rho=st.floats(0.05, 0.99), dim=st.integers(1, 8), k=st.sampled_from([2, 5, 100, 10**4]))
def test_known_laws_obey_the_bound(rho, dim, k):
    law = bivariate_normal(rho, dim)
    information = -dim / 2 * np.log(1 - rho**2)
    accuracy = law.accuracy(k).item()
    assert accuracy <= largest_accuracy(information, k) + 1e-9
    assert smallest_information(min(accuracy, 1 - 1e-9), k) <= information * (1 + 1e-6) + 1e-9


# The bound on the average Bayes accuracy


def test_variance_bound():
    assert bayes_accuracy_variance(50) == 1 / 200 and bayes_accuracy_variance(2) == 1 / 8
    law = bivariate_normal(0.9, 1)
    # So many repeats that test instances add little to the variance of the Bayes accuracy.
    accuracy = [
        SourceTask.from_embeddings(*law.sample(8, repeats=200, random_seed=s)).accuracy(8)
        for s in range(30)
    ]
    assert np.var(accuracy) < bayes_accuracy_variance(8)


def test_formulas():
    n_better, k, alpha = np.array([0] * 90 + [3] * 10), 50, 0.1
    task = ranked_task(n_better, k)  # two instances a class
    deviation = np.sqrt(np.log(1 / alpha) * (1 / 100 + 1 / 50) / 2)
    assert bayes_accuracy_bound(task, alpha) == pytest.approx(0.9 - deviation)
    share = np.linspace(1e-4, 1 - 1e-4, 20_001)
    hoeffding = np.sqrt(np.log(1 / ((1 - share) * alpha)) / 200)
    cantelli = np.sqrt((1 - share * alpha) / (4 * k * share * alpha))
    found = bayes_accuracy_bound(task, alpha, "cantelli")
    assert found == pytest.approx(0.9 - np.min(hoeffding + cantelli), abs=1e-6)
    chebyshev = 1 / np.sqrt(4 * k * share * alpha)
    found = bayes_accuracy_bound(task, alpha, "chebyshev")
    assert found == pytest.approx(0.9 - np.min(hoeffding + chebyshev), abs=1e-6)
    # The even split and the constants of Theorem 2.5.2, with one-sided Hoeffding.
    assert found >= 0.9 - np.sqrt(np.log(2 / alpha) / 200) - 1 / np.sqrt(2 * alpha * k)


def test_unequal_repeats_cost():
    y = np.concatenate([np.arange(20), np.zeros(60, int)])
    bound = bayes_accuracy_bound(ranked_task(np.zeros(80, int), 20, y=y))
    squares = 19 / 400 + 61 / (20 * 61) ** 2
    assert bound == pytest.approx(1 - np.sqrt(np.log(20) * (squares + 1 / 20) / 2))


def test_several_classifiers_pay_for_the_choice():
    good, poor = (ranked_task(np.repeat([0, 1], [200 - n, n]), 200) for n in (10, 40))
    for method in METHODS:
        alone = bayes_accuracy_bound(good, method=method)
        chosen = bayes_accuracy_bound([poor, good], method=method)
        assert bayes_accuracy_bound(poor, method=method) - 0.05 < chosen < alone
        assert bayes_accuracy_bound([good], method=method) == alone
    both = np.sqrt(np.log(2 / 0.05) * (2 / 200) / 2)
    assert bayes_accuracy_bound([poor, good]) == pytest.approx(0.95 - both)


def test_information_is_the_smallest_for_the_bound():
    guessing, perfect = ranked_task(np.arange(5), 5), ranked_task(np.zeros(100, int), 100)
    assert bayes_accuracy_bound(guessing) == 1 / 5 and information_bound(guessing) == 0
    bound = bayes_accuracy_bound(perfect, 0.1, "cantelli")
    for tests in (perfect, [perfect]):
        found = information_bound(tests, 0.1, "cantelli", "bits")
        assert found == smallest_information(bound, 100, "bits") > 0


def coverage(law, k1, repeats, alpha, n_classifiers, repetitions):
    """Shares of bounds that hold, and of those above guessing, for each method."""
    accuracy = law.accuracy(k1).item()
    information = law.dim / 2 * np.log1p(1 / law.noise_variance)
    rng = np.random.default_rng([17, k1])
    held, useful = [], []
    for seed in range(repetitions):
        probes, gallery, y = law.sample(k1, repeats=repeats, random_seed=seed)
        noise = 0.05 * rng.normal(size=(n_classifiers, *gallery.shape))
        templates = [gallery + scale * each for scale, each in enumerate(noise)]
        tasks = [SourceTask.from_embeddings(probes, each, y) for each in templates]
        bounds = np.array([bayes_accuracy_bound(tasks, alpha, method) for method in METHODS])
        nats = np.array([information_bound(tasks, alpha, method) for method in METHODS])
        held.append((bounds <= accuracy) & (nats <= information))
        useful.append(nats > 0)
    return np.mean(held, axis=0), np.mean(useful, axis=0)


@pytest.mark.parametrize("n_classifiers", [1, 3])
def test_bounds_hold(n_classifiers):
    covered, useful = coverage(bivariate_normal(0.9, 4), 60, 2, 0.5, n_classifiers, 20)
    # At least 1/2 by right; in fact the inequalities leave much room.
    assert np.all(covered >= 0.8) and np.all(useful == 1)


@pytest.mark.slow
@pytest.mark.parametrize("n_classifiers", [1, 4])
@pytest.mark.parametrize("alpha", [0.05, 0.5])
@pytest.mark.parametrize(("k1", "repeats"), [(20, 5), (100, 1), (100, 10)])
def test_coverage_study(k1, repeats, alpha, n_classifiers):
    covered, useful = coverage(bivariate_normal(0.9, 6), k1, repeats, alpha, n_classifiers, 200)
    assert np.all(covered >= 1 - alpha) and np.all(useful == 1)
