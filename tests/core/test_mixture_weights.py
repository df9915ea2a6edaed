"""Mixture weights: known maxima, optimality, and the constraint."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from classex_bayes.core.mixture_weights import likeliest_weights


def test_disjoint_laws_take_the_shares():
    share = np.array([0.2, 0.5, 0.3])
    weights, slope = likeliest_weights(np.eye(3), share, np.zeros(3))
    np.testing.assert_allclose(weights, share, atol=1e-9)
    np.testing.assert_allclose(slope, 1, atol=1e-8)


@given(seed=st.integers(0, 10**6))
def test_two_laws_against_one_dimension(seed):
    rng = np.random.default_rng(seed)
    chance, share = rng.dirichlet(np.ones(5), 2).T, rng.dirichlet(np.ones(5))

    def loss(w):
        return -share @ np.log(chance @ [w, 1 - w])

    best = minimize_scalar(loss, bounds=(0, 1), method="bounded", options={"xatol": 1e-10})
    lowest = min(best.fun, loss(0.0), loss(1.0))
    weights, slope = likeliest_weights(chance, share, np.zeros(2))
    assert -share @ np.log(chance @ weights) == pytest.approx(lowest, abs=1e-8)
    assert slope.max() <= 1 + 1e-6


@given(seed=st.integers(0, 10**6))
def test_the_constraint_holds_and_costs_likelihood(seed):
    rng = np.random.default_rng(seed)
    chance, share = rng.dirichlet(np.ones(6), 30).T, rng.dirichlet(np.ones(6))
    excess = np.sort(rng.normal(size=30))
    free, _ = likeliest_weights(chance, share, np.zeros(30))
    weights, slope = likeliest_weights(chance, share, excess)
    assert weights.min() >= 0 and weights.sum() == pytest.approx(1)
    assert abs(excess @ weights) < 1e-8
    assert share @ np.log(chance @ weights) <= share @ np.log(chance @ free) + 1e-7
    # The Lagrangian is stationary where weights are positive and falls elsewhere.
    assert slope.max() <= 1 + 1e-6
    assert slope[weights > 1e-6] == pytest.approx(1, abs=1e-3)


@given(seed=st.integers(0, 10**6), n_nearest=st.integers(1, 5))
def test_where_the_excess_has_one_sign_only_the_nearest_columns_have_weight(seed, n_nearest):
    rng = np.random.default_rng(seed)
    chance, share = rng.dirichlet(np.ones(6), 12).T, rng.dirichlet(np.ones(6))
    excess = rng.choice([-1, 1]) * np.append(np.full(n_nearest, 0.1), rng.uniform(0.2, 1, 7))
    chance, place = chance[:, : excess.size], rng.permutation(excess.size)
    weights, slope = likeliest_weights(chance[:, place], share, excess[place])
    nearest = place < n_nearest
    alone, _ = likeliest_weights(chance[:, place[nearest]], share, np.zeros(n_nearest))
    np.testing.assert_array_equal(weights[~nearest], 0)
    np.testing.assert_allclose(weights[nearest], alone, atol=1e-12)
    assert np.all(np.isneginf(slope[~nearest])) and np.all(np.isfinite(slope[nearest]))
