"""Measured curves: which numbers of classes, with which weights."""

import numpy as np
import pytest
from helpers import few_errors

from classex_bayes import SourceTask
from classex_bayes.estimators.measured_curve import measured_curve
from classex_bayes.exceptions import DataError

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
