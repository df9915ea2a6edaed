"""ATA_k in arbitrary precision, by its recurrence, and against the R package."""

import tracemalloc
from math import comb

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes.core import named_metric
from classex_bayes.core.subsets import (
    accuracy_given_n_better,
    distinct_n_better,
    log_gamma_ratio,
)

# Losses that are not zero on the task gauss2 of the R package ClassEx 0.0.0.9000 (k1 = 60, one
# instance a class), and the average test accuracies that it computes.
GAUSS2_N_BETTER = np.repeat([0, 1, 2, 3, 8], [47, 9, 2, 1, 1])
GAUSS2_ATA = {
    1: 1.0,
    2: 0.9932203389830508,
    3: 0.9867621274108708,
    5: 0.974695725286331,
    10: 0.9484008794875104,
    20: 0.9058673253715324,
    30: 0.8702045619033484,
    45: 0.8237478310312132,
    59: 0.7858757062146893,
    60: 0.7833333333333333,
}


def exact_chance(n_better, n_classes, k):
    """C(k1 - 1 - losses, k - 1) / C(k1 - 1, k - 1) in 40 digits."""
    total, drawn = n_classes - 1, k - 1
    if n_better + drawn > total:
        return 0.0
    with mpmath.workdps(40):
        up = mpmath.loggamma(total - n_better + 1) + mpmath.loggamma(total - drawn + 1)
        down = mpmath.loggamma(total - n_better - drawn + 1) + mpmath.loggamma(total + 1)
        return float(mpmath.exp(up - down))


@given(n_classes=st.integers(2, 200), data=st.data())
def test_chance_is_a_ratio_of_binomials(n_classes, data):
    n_better = np.arange(n_classes)
    k = data.draw(st.lists(st.integers(1, n_classes), min_size=1, max_size=5))
    total = n_classes - 1
    expected = [[comb(total - v, j - 1) / comb(total, j - 1) for j in k] for v in n_better]
    found = accuracy_given_n_better(n_better, n_classes, np.array(k))
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-300)


def test_an_instance_that_nobody_beats_is_right_among_more_classes_than_it_met():
    found = accuracy_given_n_better(np.array([0, 1]), 5, np.array([3, 9]))
    np.testing.assert_allclose(found, [[1, 1], [0.5, 0]], rtol=1e-14)


@given(st.data())
def test_chance_in_arbitrary_precision(data):
    n_classes = data.draw(st.sampled_from([10**3, 10**5, 999_999, 10**6]))
    near_edges = st.one_of(
        st.integers(0, 60),
        st.integers(0, n_classes - 1),
        st.integers(n_classes - 60, n_classes - 1),
    )
    n_better = data.draw(near_edges)
    k = 1 + data.draw(near_edges)
    found = accuracy_given_n_better(np.array([n_better]), n_classes, np.array([k])).item()
    expected = exact_chance(n_better, n_classes, k)
    assert found == pytest.approx(expected, rel=2e-10, abs=1e-300)


@given(n_classes=st.integers(4, 3000), seed=st.integers(0, 2**32 - 1))
def test_consecutive_sizes_by_recurrence(n_classes, seed):
    """Many consecutive k come from a recurrence, scattered ones from log gammas."""
    rng = np.random.default_rng(seed)
    n_better = np.append(rng.integers(0, n_classes, 5), [0, n_classes - 1])
    first = int(rng.integers(1, n_classes - 1))
    k = np.arange(first, n_classes + 1)
    by_recurrence = accuracy_given_n_better(n_better, n_classes, k)
    scattered = [accuracy_given_n_better(n_better, n_classes, k[part::2]) for part in (0, 1)]
    expected = np.empty(by_recurrence.shape)
    expected[:, ::2], expected[:, 1::2] = scattered
    np.testing.assert_allclose(by_recurrence, expected, rtol=1e-10, atol=1e-300)


def test_long_recurrences_stay_accurate_and_underflow_to_zero():
    n_classes, n_better = 10**6, np.array([1, 50, 10**5])
    chance = accuracy_given_n_better(n_better, n_classes, np.arange(1, n_classes + 1))
    k = np.array([2, 999, 10**5, 899_999, n_classes - 1, n_classes])
    for row, lost in zip(chance, n_better.tolist(), strict=True):
        for size in k[k <= n_classes - lost].tolist():
            expected = exact_chance(lost, n_classes, size)
            assert row[size - 1] == pytest.approx(expected, rel=1e-10, abs=1e-290)
        assert np.all(row[n_classes - lost :] == 0)


def test_equals_r():
    k, expected = np.array(list(GAUSS2_ATA)), list(GAUSS2_ATA.values())
    found = named_metric("accuracy").average(GAUSS2_N_BETTER, 60, k, np.full(60, 1 / 60))
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("largest", [0, 9, 10**6 + 6, 10**6 + 7, 10**12])
def test_distinct_losses_give_the_losses_back(largest):
    n_better = np.array([largest, 0, largest, largest // 2, 0, largest])
    values, where = distinct_n_better(n_better)
    assert values.tolist() == sorted(set(n_better.tolist()))
    assert values[where].tolist() == n_better.tolist()


def test_a_million_classes_need_little_memory():
    # The table of 4,000 distinct losses x 2,000 k takes 64 MB, and a dozen temporaries as much.
    n_better = np.arange(4000) ** 2 // 16
    k = np.unique(np.geomspace(2, 10**6, 2800).astype(int))
    tracemalloc.start()
    accuracy = named_metric("accuracy").average(n_better, 10**6, k, np.full(4000, 1 / 4000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500e6
    assert np.all(np.diff(accuracy) <= 1e-12)


# Ratios of gamma functions, against arithmetic of many digits


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
