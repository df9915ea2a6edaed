"""E[Phi(mu + sd eps)^(k-1)] against arbitrary precision and exact cases."""

import mpmath
import numpy as np
import pytest
from helpers import few_examples
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr

from classex_bayes.core import expected_power, signal_accuracy
from classex_bayes.core.normal_law import increasing_root, signal_from_accuracy

# mu, sd, and the integral at each k to 12 decimals, from a 40-digit trapezoid rule.


def in_arbitrary_precision(mu, sd, k):
    """Adaptive quadrature on panels that meet where Phi^(k-1) rises."""
    with mpmath.workdps(25):
        mu, sd = mpmath.mpf(mu), mpmath.mpf(sd)
        miss = -mpmath.expm1(-mpmath.log(2) / (k - 1))  # where Phi^(k-1) is 1/2
        rise = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * miss)
        flank = (rise - mu) / sd
        width = 1 / (sd * (rise + 1))
        edges = {-12, 12, *range(-12, 13, 3)}
        edges |= {flank + step * width for step in (-8, -4, -2, -1, 0, 1, 2, 4, 8, 16)}
        edges = sorted(edge for edge in edges if -12 <= edge <= 12)

        def integrand(eps):
            miss = mpmath.erfc((mu + sd * eps) / mpmath.sqrt(2)) / 2
            return mpmath.npdf(eps) * mpmath.exp((k - 1) * mpmath.log1p(-miss))

        return float(mpmath.quad(integrand, edges, maxdegree=7))


@pytest.mark.parametrize("k", [37, 10**6, 10**9, 10**12])
@pytest.mark.parametrize(("mu", "sd"), [(0.5, 1.5), (2.5, 0.25), (7.0, 3.0)])
def test_arbitrary_precision(mu, sd, k):
    found = expected_power(mu, sd, np.array([float(k)])).item()
    assert found == pytest.approx(in_arbitrary_precision(mu, sd, k), abs=1e-11)


@few_examples(6)
@given(mu=st.floats(-4, 8), sd=st.floats(0.05, 3), exponent=st.floats(np.log(2), np.log(1e9)))
def test_arbitrary_precision_anywhere(mu, sd, exponent):
    k = round(np.exp(exponent))
    found = expected_power(mu, sd, np.array([float(k)])).item()
    assert found == pytest.approx(in_arbitrary_precision(mu, sd, k), abs=1e-9)


def test_uniform_favorability_is_guessing():
    k = np.concatenate([np.arange(1, 50), np.geomspace(100, 1e12, 21)])
    np.testing.assert_allclose(expected_power(0, 1, k).ravel(), 1 / k, rtol=0, atol=1e-11)


@given(st.floats(-6, 10), st.floats(1, 1e12))
def test_no_spread_is_a_power(mu, k):
    # In logs: the power of a rounded Phi(mu) would be off by 1e-4 at k = 1e12.
    found = expected_power(mu, 0.0, np.array([k])).item()
    assert found == pytest.approx(np.exp((k - 1) * log_ndtr(mu)), rel=1e-12, abs=1e-300)
    if k < 100:
        assert found == pytest.approx(ndtr(mu) ** (k - 1), rel=1e-10, abs=1e-300)


@given(st.floats(-6, 10), st.floats(0, 3))
def test_two_classes_are_a_normal_probability(mu, sd):
    # P(eps' < mu + sd eps) for independent normals.
    expected = ndtr(mu / np.hypot(1, sd))
    assert expected_power(mu, sd, np.array([2.0])).item() == pytest.approx(expected, abs=1e-12)


@given(
    mu=st.lists(st.floats(-6, 10), min_size=1, max_size=5),
    sd=st.floats(0, 3),
    k=st.lists(st.floats(1, 1e12), min_size=1, max_size=5).map(sorted),
)
def test_accuracies_fall_with_k_and_rise_with_mu(mu, sd, k):
    accuracy = expected_power(np.sort(mu), sd, np.array(k))
    assert accuracy.shape == (len(k), len(mu))
    assert np.all((accuracy >= 0) & (accuracy <= 1 + 1e-12))
    assert np.all(np.diff(accuracy, axis=0) <= 1e-12)
    assert np.all(np.diff(accuracy, axis=1) >= -1e-12)


def test_one_at_a_time_gives_the_same():
    mu, sd, k = np.array([0.0, 2.0, 5.0]), np.array([0.1, 1.0, 2.5]), np.array([2.0, 1e3, 1e9])
    together = expected_power(mu, sd, k)
    for i, size in enumerate(k):
        for j in range(3):
            alone = expected_power(mu[j], sd[j], np.array([size])).item()
            assert together[i, j] == pytest.approx(alone, abs=1e-11)


def five_point_difference(function, step=1e-3):
    ends = [function(place * step) for place in (-2, -1, 1, 2)]
    return (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * step)


# The law with one parameter

SIZES = np.array([2, 3, 20, 1000, 10**6, 10**9, 10**12])


def test_signal_accuracy_is_the_law_with_sd_one():
    signal = np.concatenate([np.linspace(-4, 14, 37), [-60.0, 60.0]])
    np.testing.assert_allclose(
        signal_accuracy(signal, SIZES), expected_power(signal, 1.0, SIZES), rtol=0, atol=1e-13
    )


def test_infinite_signals_are_limits():
    ends = np.array([-np.inf, np.inf])
    assert signal_accuracy(ends, SIZES).tolist() == [
        [pytest.approx(0, abs=1e-50), 1.0] for _ in SIZES
    ]
    np.testing.assert_allclose(signal_accuracy(ends, SIZES, order=1), 0, atol=1e-50)


@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_of_the_signal_accuracy(order):
    signal = np.linspace(-2, 10, 25)
    expected = five_point_difference(lambda step: signal_accuracy(signal + step, SIZES, order - 1))
    np.testing.assert_allclose(signal_accuracy(signal, SIZES, order), expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("k", [2, 10**4, 10**9])
@pytest.mark.parametrize("accuracy", [0.01, 0.922])
def test_signals_in_arbitrary_precision(accuracy, k):
    signal = signal_from_accuracy(accuracy, k).item()
    assert in_arbitrary_precision(signal, 1, k) == pytest.approx(accuracy, abs=1e-12)


@given(
    accuracy=st.lists(st.floats(1e-9, 1 - 1e-12), min_size=1, max_size=5),
    exponent=st.floats(np.log(2), np.log(1e9)),
)
def test_round_trip_from_accuracy(accuracy, exponent):
    k = np.round(np.exp(exponent))
    signal = signal_from_accuracy(accuracy, k)
    found = signal_accuracy(signal, np.array([k]))[0]
    np.testing.assert_allclose(found, accuracy, rtol=1e-9, atol=1e-13)
    assert np.array_equal(signal > 1e-9, np.array(accuracy) > 1 / k + 1e-12)


def test_inverse_of_two_classes_is_known():
    signal = np.array([-3.0, -0.5, 0.0, 1.0, 4.0])
    found = signal_from_accuracy(ndtr(signal / np.sqrt(2)), 2)
    np.testing.assert_allclose(found, signal, rtol=0, atol=1e-11)


def test_inverse_at_the_ends_and_many_shapes():
    k = np.array([[2], [100]])
    found = signal_from_accuracy([0.0, 0.5, 1.0], k)
    assert found.shape == (2, 3)
    assert np.all(found[:, 0] == -np.inf) and np.all(found[:, 2] == np.inf)
    np.testing.assert_allclose(found[:, 1], [0.0, signal_from_accuracy(0.5, 100)], atol=1e-12)
    assert signal_from_accuracy(1e-40, 2) == -np.inf
    nearly = signal_from_accuracy(1 - np.array([1e-12, 2**-53]), 2)
    np.testing.assert_allclose(ndtr(-nearly / np.sqrt(2)), [1e-12, 2**-53], rtol=1e-4)


# Roots of increasing functions: inverses, ends of the bracket, and shapes


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=6))
def test_inverse_and_ends(goals):
    goal = np.array(goals)
    root = increasing_root(lambda x, goal: np.sinh(x) - goal, (-2.0, 3.0), goal, xrtol=1e-14)
    low, high = np.sinh([-2.0, 3.0])
    inside = (goal > low) & (goal < high)
    np.testing.assert_allclose(root[inside], np.arcsinh(goal[inside]), rtol=1e-12, atol=1e-14)
    assert np.all(root[goal <= low] == -np.inf) and np.all(root[goal >= high] == np.inf)


def test_brackets_and_shapes():
    goal = np.array([[1.0, 4.0, 9.0]])
    lower = np.array([0.5, 1.5, 4.0])
    root = increasing_root(lambda x, goal: x**2 - goal, (lower, lower + 1), goal)
    np.testing.assert_allclose(root, [[1.0, 2.0, -np.inf]])
    assert increasing_root(lambda x, goal: x - goal, (0.0, 1.0), np.empty(0)).shape == (0,)
