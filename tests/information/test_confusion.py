"""Information of confusion matrices and Fano's bound: extremes, orderings, bias by enumeration."""

from itertools import product

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.stats import binom
from sklearn.metrics import confusion_matrix, mutual_info_score

from classex_bayes.information import (
    confusion_information,
    fano_bound,
    smallest_information,
)
from studies.laws import bivariate_normal

BITS = np.log(2)


def plug_in(counts, **options):
    return confusion_information(counts, correction="none", **options)


@pytest.mark.parametrize("correction", ["none", "miller_madow"])
def test_answers_of_classes_without_weight_do_not_count(correction):
    whole = [[3, 0, 0], [0, 5, 0], [1, 0, 2]]
    found = confusion_information(whole, class_weight=[1, 0, 1], correction=correction)
    assert found == confusion_information([[3, 0], [1, 2]], correction=correction) > 0


# Fano's bound


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("accuracy", [0.55, 0.8, 0.97])
def test_fano_is_the_least_information_of_answers_with_an_accuracy(k, accuracy):
    chance = cp.Variable((k, k), nonneg=True)
    mean_row = cp.sum(chance, axis=0) / k
    independent = cp.vstack([mean_row / k] * k)
    problem = cp.Problem(
        cp.Minimize(cp.sum(cp.rel_entr(chance / k, independent))),
        [cp.sum(chance, axis=1) == 1, cp.trace(chance) / k == accuracy],
    )
    problem.solve(solver="CLARABEL")
    assert fano_bound(accuracy, k) == pytest.approx(problem.value, abs=1e-6)


def test_ends_of_fano():
    assert fano_bound([0, 0.02, 0.1], 10).tolist() == [0, 0, 0]
    assert fano_bound(1, 10, "bits") == pytest.approx(np.log2(10))
    error = 1e-9
    expected = np.log(10) + error * (np.log(error) - 1 - np.log(9))
    assert fano_bound(1 - error, 10) == pytest.approx(expected, rel=1e-14)
    # Near guessing it is half the chi-squared distance.
    assert fano_bound(0.1 + 1e-6, 10) == pytest.approx(1e-12 / (2 * 0.1 * 0.9), rel=1e-3)


@given(seed=st.integers(0, 10**6), k=st.integers(2, 12))
def test_answers_have_at_least_the_information_of_fano(seed, k):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(3, (k, k)) + np.diag(rng.poisson(20, k)) + 1
    share = counts / counts.sum(axis=1, keepdims=True)
    found = plug_in(counts)
    assert fano_bound(np.trace(share) / k, k) - 1e-12 <= found <= np.log(k)


def test_fano_is_reached_by_equal_errors():
    counts = 7 + 40 * np.eye(6, dtype=int)
    assert plug_in(counts) == pytest.approx(fano_bound(47 / 82, 6), rel=1e-12)


@pytest.mark.parametrize("rho", [0.7, 0.95])
def test_answers_on_random_classes_have_at_most_the_information(rho):
    """Each is below the information of label and features: -log(1 - rho^2) in two dimensions."""
    law = bivariate_normal(rho=rho, dim=2)
    answers, right = [], []
    for seed in range(12):
        probes, gallery, y = law.sample(15, repeats=400, random_seed=seed)
        predicted = cdist(probes, gallery, "sqeuclidean").argmin(axis=1)
        answers.append(confusion_information(confusion_matrix(y, predicted)))
        right.append(np.mean(predicted == y))
    answers, accuracy = np.mean(answers), np.mean(right)
    assert fano_bound(accuracy, 15) < answers < -np.log(1 - rho**2)
    assert fano_bound(accuracy, 15) < smallest_information(accuracy, 15) < -np.log(1 - rho**2)


# Confusion matrices


def test_plug_in_is_that_of_scikit_learn():
    rng = np.random.default_rng(1)
    true = np.repeat(np.arange(7), 30)
    predicted = np.where(rng.random(210) < 0.6, true, rng.integers(0, 7, 210))
    counts = confusion_matrix(true, predicted)
    assert plug_in(counts) == pytest.approx(mutual_info_score(true, predicted), rel=1e-12)
    assert plug_in(counts, unit="bits") == pytest.approx(plug_in(counts) / BITS)


def test_priors_count_like_instances():
    rng = np.random.default_rng(2)
    counts = rng.poisson(4, (5, 6)) + 1
    size = counts.sum(axis=1)
    share = counts / counts.sum()
    outer = share.sum(axis=1, keepdims=True) * share.sum(axis=0)
    expected = np.sum(share * np.log(share / outer))
    assert plug_in(counts, class_weight=size) == pytest.approx(expected, rel=1e-12)
    assert plug_in(counts) != pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("right", [(0.7, 0.85), (0.5, 0.5), (0.9, 0.6)])
def test_the_correction_removes_the_bias_of_first_order(right):
    """Expectations over all outcomes of two binomial rows."""
    n = 25
    chance = np.array([[right[0], 1 - right[0]], [1 - right[1], right[1]]])
    truth = plug_in(np.rint(1e9 * chance))
    found = np.zeros(2)
    for a, b in product(range(n + 1), repeat=2):
        weight = binom.pmf(a, n, right[0]) * binom.pmf(b, n, right[1])
        counts = [[a, n - a], [n - b, b]]
        found += weight * np.array([plug_in(counts), confusion_information(counts)])
    biased, corrected = found - truth
    assert biased > 0 and abs(corrected) < 0.4 * biased


def test_rows_have_the_printed_correction():
    """With a sure mean row, what is added is half of m_i - 1 over n_i in the mean of the rows."""
    counts = np.array([[90, 10, 0, 0], [0, 0, 40, 60]])
    # Answers of the classes are different ones; the mean row's cells have no other class.
    share = counts[counts > 0] / 100
    of_mean = np.sum(0.25 * share * (1 - share) / 100 / (share / 2))
    expected = (of_mean - np.mean([1 / 100, 1 / 100])) / 2
    found = confusion_information(counts) - plug_in(counts)
    assert found == pytest.approx(expected, rel=1e-10)
    assert confusion_information(50 * np.eye(4)) == pytest.approx(np.log(4), rel=1e-12)


def test_empty_rows_are_left_out():
    counts = np.array([[5, 2, 1], [0, 0, 0], [1, 1, 6]])
    assert confusion_information(counts) == pytest.approx(confusion_information(counts[[0, 2]]))
