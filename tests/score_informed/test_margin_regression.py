"""The beta-binomial law of losses given margins, against SciPy and arithmetic of many digits."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import gammaln, ndtr
from scipy.stats import betabinom

from classex_bayes.score_informed.margin_regression import (
    PARAMETERS,
    Regressors,
    accuracy_given_margin,
    beta_law,
    log_likelihood,
)
from classex_bayes.score_informed.margins import Margins

THETA = st.tuples(
    st.floats(-2, 1),
    st.floats(-1, 0.5),
    st.floats(0, 2),
    st.floats(-4, 1),
    st.floats(0, 3),
    st.floats(-0.5, 0.5),
    st.floats(-1, 1),
).map(np.array)
MARGIN = np.array([-1.0, 0.5, 1.5, 2.3, 3.0, 3.7, 4.5, 7.0])
SLOPE = np.array([2.0, 1.5, 1.0, 0.5, 0.0, -0.5, -1.5, -3.0])


def known(losses=None, k1=100):
    losses = np.zeros(MARGIN.size, int) if losses is None else losses
    return Regressors.of(Margins(MARGIN, SLOPE, 0.1), losses, np.ones(MARGIN.size), k1)


@given(THETA)
@settings(max_examples=50, deadline=None)
def test_mean_and_spread_of_the_law(theta):
    a, b = beta_law(theta, known())
    assert (a > 0).all() and (b > 0).all()
    mean = a / (a + b)
    spread = b / (a * (a + b + 1))
    named = dict(zip(PARAMETERS, theta, strict=True))
    c = np.minimum(MARGIN, 5.2)
    beyond = np.maximum(c - 2.3263478740408408, 0)
    v = np.exp(
        np.clip(
            named["spread"]
            + named["spread_slope"] * np.clip(c - 2.3, -2, 3)
            + named["spread_beyond"] * beyond,
            np.log(0.005),
            np.log(50),
        )
    )
    pull = -np.log1p(v) * SLOPE / np.maximum(c, 1)
    r = (
        named["level"]
        + named["level_slope"] * np.clip(c - 3, -2, 2.5)
        + named["regression"] * pull
        + named["level_beyond"] * beyond
    )
    expected = np.minimum(ndtr(-c) * np.exp(r), 0.7)
    assert_allclose(mean, expected, rtol=1e-9)
    assert_allclose(spread, np.minimum(v, 0.9 * (1 - expected) / expected), rtol=1e-6)


@given(THETA, st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_likelihood_is_that_of_the_beta_binomial_law(theta, seed):
    losses = np.random.default_rng(seed).integers(0, 100, MARGIN.size)
    data = known(losses)
    a, b = beta_law(theta, data)
    choose = gammaln(100) - gammaln(losses + 1) - gammaln(100 - losses)
    expected = (betabinom.logpmf(losses, 99, a, b) - choose).sum()
    assert log_likelihood(theta, data) == pytest.approx(expected, rel=1e-7, abs=1e-6)


def test_many_parameters_at_once():
    rng = np.random.default_rng(1)
    theta = rng.normal(size=(5, 7)) * 0.3
    data = known(rng.integers(0, 5, MARGIN.size))
    assert_allclose(log_likelihood(theta, data), [log_likelihood(one, data) for one in theta])
    some = data.select(np.array([2, 5]))
    assert log_likelihood(theta[0], some) == pytest.approx(
        sum(log_likelihood(theta[0], data.select(np.array([i]))) for i in (2, 5))
    )


@given(THETA, st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_expected_accuracy_with_many_digits(theta, seed):
    losses = np.random.default_rng(seed).integers(0, 4, MARGIN.size)
    data, k = known(losses), np.array([2, 100, 10_000, 10**12])
    a, b = beta_law(theta, data)
    found = accuracy_given_margin(theta, data, k)
    assert found.shape == (4, MARGIN.size)
    with mpmath.workdps(50):
        for i in range(MARGIN.size):
            alpha = mpmath.mpf(a[i]) + int(losses[i])
            beta = mpmath.mpf(b[i]) + 99 - int(losses[i])
            for row, size in zip(found, k.tolist(), strict=True):
                exact = mpmath.exp(
                    mpmath.loggamma(beta + size - 1)
                    - mpmath.loggamma(beta)
                    + mpmath.loggamma(alpha + beta)
                    - mpmath.loggamma(alpha + beta + size - 1)
                )
                assert abs(row[i] - float(exact)) < 1e-8


@given(THETA)
@settings(max_examples=20, deadline=None)
def test_accuracy_falls_with_classes_and_losses(theta):
    k = np.array([2, 3, 10, 100, 10_000, 10**6])
    none, some = known(), known(np.full(MARGIN.size, 3))
    found = accuracy_given_margin(theta, none, k)
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found, axis=0) <= 1e-12).all()
    assert (accuracy_given_margin(theta, some, k) <= found + 1e-12).all()
