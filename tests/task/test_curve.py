"""Bare accuracy curves: covariance of nested events, and curves that rise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes import SourceTask
from classex_bayes.exceptions import DataError, ExtrapolationWarning


def test_covariance_of_a_curve_is_that_of_nested_events():
    n, deff = 10**6, 3.0
    a = np.array([0.9, 0.8, 0.6])
    curve = SourceTask.from_accuracies(
        [50, 5, 20], a[[2, 0, 1]], n_test=n, n_classes=80, design_effect=deff
    )
    assert curve.grid().tolist() == [5, 20, 50] and curve.design_effect() == deff
    found = curve.accuracy_cov([5, 20, 50])
    expected = [[a[max(i, j)] * (1 - a[min(i, j)]) * deff / n for j in range(3)] for i in range(3)]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    reversed_k = curve.accuracy_cov([50, 20, 5])
    np.testing.assert_array_equal(reversed_k, found[::-1, ::-1])


def test_covariance_of_nested_events_by_simulation():
    rng = np.random.default_rng(0)
    n, repetitions = 50, 20_000
    u = rng.random((repetitions, n))
    shares = np.stack([(u < a).mean(axis=1) for a in (0.9, 0.5)])
    curve = SourceTask.from_accuracies([2, 9], [0.9, 0.5], n_test=n, n_classes=9, design_effect=1)
    np.testing.assert_allclose(np.cov(shares), curve.accuracy_cov([2, 9]), rtol=0.1)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), st.integers(1, 10**5))
def test_covariance_of_a_curve_is_positive(accuracy, n_test):
    values = sorted(accuracy, reverse=True)
    k = range(2, 2 + len(values))
    curve = SourceTask.from_accuracies(k, values, n_test=n_test, n_classes=20)
    covariance = curve.accuracy_cov(k)
    assert np.all(np.diag(covariance) > 0)
    assert np.linalg.eigvalsh(covariance).min() > -1e-12


def test_rising_accuracies_warn_or_are_refused():
    # Both accuracies near 0.5, n = 100 and deff = 2: a standard deviation of the rise is 0.1.
    def curve(rise):
        return SourceTask.from_accuracies(
            [2, 10, 20], [0.9, 0.5, 0.5 + rise], n_test=100, n_classes=20
        )

    assert curve(0.15).accuracy(20) == 0.65
    with pytest.warns(ExtrapolationWarning, match="increases"):
        curve(0.25)
    with pytest.raises(DataError):
        curve(0.45)
