"""Training curves: which numbers of classes, with which weights, and the covariance's factor."""

import numpy as np
import pytest
from helpers import few_errors

from classex_bayes.estimators.measured_curve import (
    accuracy_factor,
    measured_curve,
)
from classex_bayes.exceptions import DataError
from classex_bayes.simulate import FavorabilityLaw, GaussianNearestNeighbor
from classex_bayes.task.source_task import SourceTask

CURVE = SourceTask.from_accuracies([2, 10, 30], [0.99, 0.9, 0.8], n_test=300, n_classes=30)


def test_all_numbers_of_classes():
    task = few_errors(500)
    curve = measured_curve(task)
    np.testing.assert_array_equal(curve.k, np.arange(2, 501))
    np.testing.assert_array_equal(curve.weight, 1.0)
    np.testing.assert_array_equal(curve.accuracy, task.accuracy(curve.k))


def test_fewer_numbers_stand_for_all():
    curve = measured_curve(few_errors(5000))
    assert curve.k.size <= 500 and (curve.k[0], curve.k[-1]) == (2, 5000)
    assert curve.weight.sum() == pytest.approx(4999)
    # The weighted mean of a smooth function is its mean over all numbers.
    assert np.average(np.log(curve.k), weights=curve.weight) == pytest.approx(
        np.log(np.arange(2, 5001)).mean(), abs=1e-3
    )


def test_given_numbers_and_a_bare_curve():
    curve = measured_curve(few_errors(40), np.array([30, 1, 50, 4]))
    assert curve.k.tolist() == [30, 1, 4] and curve.weight.tolist() == [1, 1, 1]
    assert curve.accuracy[1] == 1
    assert measured_curve(CURVE).accuracy.tolist() == [0.99, 0.9, 0.8]


@pytest.mark.parametrize("k", [[5], [50, 60], [30, 50]])
def test_refuses_fewer_than_two(k):
    with pytest.raises(DataError, match=r"^k: "):
        measured_curve(few_errors(40), np.array(k))


# The covariance


@pytest.fixture(scope="module")
def embedded():
    law = GaussianNearestNeighbor(dim=10, noise_variance=0.2)
    return SourceTask.from_embeddings(*law.sample(400, random_seed=1))


def test_factor_of_few_numbers_is_exact(embedded):
    for task in (embedded, few_errors(), CURVE):
        k = np.array([2, 10, 30])
        factor = accuracy_factor(task, k)
        np.testing.assert_allclose(factor @ factor.T, task.accuracy_cov(k), rtol=1e-9, atol=1e-16)


def test_factor_of_many_numbers_is_interpolated(embedded):
    # k1 itself apart, which the covariance takes for k1 - 1.
    k = np.arange(2, 400)
    factor = accuracy_factor(embedded, k)
    assert factor.shape[1] <= 60
    exact = embedded.accuracy_cov(k)
    sd = np.sqrt(np.diag(exact))
    assert np.abs(factor @ factor.T - exact).max() < 1e-3 * np.outer(sd, sd).max()
    np.testing.assert_allclose(np.linalg.norm(factor, axis=1), sd, rtol=1e-3)


def test_one_class_has_no_error(embedded):
    k = np.array([50, 1, 3])
    factor = accuracy_factor(embedded, k)
    assert np.all(factor[1] == 0)
    rows = [0, 2]
    covariance = embedded.accuracy_cov([3, 50])[::-1, ::-1]
    np.testing.assert_allclose((factor @ factor.T)[np.ix_(rows, rows)], covariance, rtol=1e-9)
    single = accuracy_factor(embedded, np.array([1, 7]))
    assert np.linalg.norm(single[1]) == pytest.approx(np.sqrt(embedded.accuracy_cov(7)[0, 0]))


def test_factor_of_a_curve_with_a_gap_is_exact():
    k = np.append(np.arange(2, 102), 1000)
    accuracy = np.linspace(0.99, 0.5, k.size)
    task = SourceTask.from_accuracies(k, accuracy, n_test=500, n_classes=1000)
    factor = accuracy_factor(task, k)
    np.testing.assert_allclose(factor @ factor.T, task.accuracy_cov(k), atol=1e-12)


@pytest.mark.parametrize("last", [60, 250, 299, 300])
def test_factor_across_a_gap(last):
    law = FavorabilityLaw(means=(2.0,), sds=(1.0,))
    ranks, y, n_classes = law.sample(300, random_seed=1)
    task = SourceTask.from_ranks(ranks, y, n_classes=n_classes)
    k = np.concatenate([np.arange(1, 40), np.arange(40, 60), [last], [80, 90]])
    k = np.unique(np.append(k, np.arange(100, 120)))
    factor = accuracy_factor(task, k)
    exact = np.sqrt(np.diag(task.accuracy_cov(k[k > 1])))
    np.testing.assert_allclose(np.sqrt((factor**2).sum(axis=1))[k > 1], exact, rtol=1e-2)
    assert not factor[k == 1].any()
