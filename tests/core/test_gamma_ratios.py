"""Ratios of gamma functions, against arithmetic of many digits."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes.core.gamma_ratios import log_gamma_ratio


@given(
    st.floats(-4, 15).map(lambda e: 10.0**e),
    st.one_of(st.just(0.0), st.floats(-4, 6).map(lambda e: 10.0**e)),
)
def test_ratio_with_many_digits(x, by):
    with mpmath.workdps(50):
        exact = mpmath.loggamma(mpmath.mpf(x) + by) - mpmath.loggamma(mpmath.mpf(x))
        found = log_gamma_ratio(np.array([x]), np.array([by]))[0]
        assert abs(found - exact) < 1e-10 * (1 + by) * max(1, abs(float(np.log(x))))


@pytest.mark.parametrize("x", [15.99, 16.0, 18.0, 30.0, 100.0])
@pytest.mark.parametrize("by", [0.5, 1.0, 7.0])
def test_ratio_where_the_series_is_shortest(x, by):
    with mpmath.workdps(50):
        exact = float(mpmath.loggamma(mpmath.mpf(x) + by) - mpmath.loggamma(mpmath.mpf(x)))
    assert log_gamma_ratio(np.array([x]), by)[0] == pytest.approx(exact, abs=3e-11)
