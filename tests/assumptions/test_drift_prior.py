"""Posterior of the drift: against weighted draws of the prior, and its limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from classex_bayes.assumptions.drift_prior import DriftPrior, brownian_covariance

NOTHING = np.empty(0), np.empty(0), np.empty((0, 0))


def prior_draws(prior, x, number, rng):
    """Slope, and drift at x, drawn as the docstring of the prior has it."""
    slope = prior.slope * rng.standard_normal(number)
    wander = prior.wander * np.abs(rng.standard_normal(number))
    walk = np.zeros((number, x.size))
    for sign in (-1, 1):
        side = np.flatnonzero(np.sign(x) == sign)
        order = side[np.argsort(np.abs(x[side]))]
        steps = np.diff(np.abs(x[order]), prepend=0)
        walk[:, order] = np.cumsum(np.sqrt(steps) * rng.standard_normal((number, side.size)), 1)
    return slope, slope[:, None] * x + wander[:, None] * walk


@pytest.mark.parametrize(
    ("prior", "measured"),
    [(DriftPrior(0.1, 0.05), [0.2, 0.05]), (DriftPrior(0.05, 0.2), [-0.1, 0.3])],
)
def test_against_weighted_draws_of_the_prior(prior, measured):
    rng = np.random.default_rng(1)
    x, beyond = np.log([0.2, 0.5]), np.log([0.3, 4, 20])
    noise = 0.1**2 * np.array([[1.0, 0.3], [0.3, 0.6]])
    slope, drift = prior_draws(prior, np.r_[x, beyond], 200_000, rng)
    error = drift[:, :2] - measured
    weight = np.exp(-0.5 * np.einsum("ij,jk,ik->i", error, np.linalg.inv(noise), error))
    weight /= weight.sum()
    effective = 1 / (weight**2).sum()
    posterior = prior.given(x, np.array(measured), noise)
    found = posterior.draws(beyond, 100_000, rng)

    mean = weight @ drift[:, 2:]
    spread = np.sqrt(weight @ (drift[:, 2:] - mean) ** 2)
    tolerance = 5 * spread * np.sqrt(1 / effective + 1e-5)
    assert np.all(np.abs(found.mean(axis=0) - mean) < tolerance)
    assert_allclose(found.std(axis=0), spread, rtol=0.03)
    assert posterior.slope_mean == pytest.approx(weight @ slope, abs=5 / np.sqrt(effective) * 0.1)
    assert posterior.slope_sd == pytest.approx(
        np.sqrt(weight @ (slope - weight @ slope) ** 2), rel=0.03
    )


def test_the_prior_alone():
    prior, x = DriftPrior(0.1, 0.2), np.log([0.1, 1, 4])
    posterior = prior.given(*NOTHING)
    assert posterior.slope_mean == 0 and posterior.slope_sd == pytest.approx(0.1)
    draws = posterior.draws(x, 100_000, np.random.default_rng(2))
    variance = 0.1**2 * x**2 + 0.2**2 * np.abs(x)
    assert_allclose(draws.var(axis=0), variance, rtol=0.03)
    # Smaller numbers of classes and larger ones share the slope alone.
    assert np.cov(draws.T)[0, 2] == pytest.approx(0.1**2 * x[0] * x[2], rel=0.15)


def test_exact_measurements_are_met_and_source_has_no_drift():
    x, drift = np.log([0.1, 0.5]), np.array([0.4, -0.1])
    posterior = DriftPrior().given(x, drift, 1e-10 * np.eye(2))
    draws = posterior.draws(np.r_[x, 0.0], 100, np.random.default_rng(3))
    assert_allclose(draws[:, :2], np.broadcast_to(drift, (100, 2)), atol=1e-4)
    assert_array_equal(draws[:, 2], np.zeros(100))


def test_a_drift_that_never_moved_is_taken_as_none():
    x = np.log([0.1, 0.2, 0.5])
    still = DriftPrior().given(x, np.zeros(3), 1e-6 * np.eye(3))
    free = DriftPrior().given(*NOTHING)
    rng = np.random.default_rng(4)
    width = [one.draws(np.log([4.0]), 20_000, rng).std() for one in (still, free)]
    assert width[0] < 0.15 * width[1]
    assert still.slope_sd < 0.02


@given(
    st.lists(st.floats(-3, -0.1), min_size=1, max_size=4),
    st.lists(st.floats(-1, 1), min_size=4, max_size=4),
    st.floats(0.01, 0.5),
)
@settings(max_examples=30, deadline=None)
def test_signs_turn_together(x, drift, error):
    places, values = np.array(x), np.array(drift[: len(x)])
    noise = error**2 * np.eye(len(x))
    one, other = (DriftPrior().given(places, sign * values, noise) for sign in (1, -1))
    assert one.slope_mean == pytest.approx(-other.slope_mean)
    assert_allclose(one.weight, other.weight)
    assert one.weight.sum() == pytest.approx(1)
    assert one.slope_sd == pytest.approx(other.slope_sd) and one.slope_sd > 0


def test_brownian_covariance_is_positive():
    x = np.array([-2.0, -0.3, 0.0, 0.4, 0.4, 5.0])
    assert np.linalg.eigvalsh(brownian_covariance(x, x)).min() > -1e-12
