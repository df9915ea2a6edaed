"""Laws from tails that are moved to the accuracy which ranks give on the source classes."""

import numpy as np
import pytest
from helpers import few_examples
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import expit, log_ndtr, logit

from classex_bayes.bayes.score_evidence import anchored
from classex_bayes.core import MixtureLaw, RadialBasis

BASIS = RadialBasis.regular(-4.0, 8.0, 0.1)
COUNTS = np.geomspace(2, 10**9, 30)


def normal_laws(rng, mean, sd, size=200, spread=0.1):
    """Draws of laws whose Z is normal, as tails would give them."""
    means = mean + spread * rng.standard_normal(size)
    weights = np.exp(-0.5 * ((BASIS.knots - means[:, None]) / sd) ** 2)
    return MixtureLaw(BASIS, weights / weights.sum(axis=1, keepdims=True))


def on_k1(law, k1):
    return law.expected(np.array([k1]))[:, 0]


def in_order_of(values, law, k1):
    """Values that rise with the accuracy of the law on k1 classes."""
    return np.sort(values)[on_k1(law, k1).argsort().argsort()]


def moved(law, ranks, k1, seed=2):
    return anchored(law, ranks, k1, np.random.default_rng(seed))[:2]


@few_examples(15)
@given(
    seed=st.integers(0, 10**6),
    mean=st.floats(0.5, 5.0),
    sd=st.floats(0.3, 1.5),
    offset=st.floats(-2.0, 2.0),
    width=st.floats(0.02, 0.5),
    k1=st.integers(20, 5000),
)
def test_moved_laws_are_laws_near_both_evidences(seed, mean, sd, offset, width, k1):
    rng = np.random.default_rng(seed)
    law = normal_laws(rng, mean, sd)
    tails = logit(np.clip(on_k1(law, k1), 1e-9, 1 - 1e-9))
    centre = np.clip(tails.mean() + offset, -6, 6)
    ranks = in_order_of(expit(centre + width * rng.standard_normal(200)), law, k1)
    found, shift = moved(law, ranks, k1, seed)
    assert found.weights.shape == law.weights.shape and (found.weights >= 0).all()
    assert_allclose(found.weights.sum(axis=1), 1)
    assert (np.diff(found.expected(COUNTS), axis=1) <= 1e-12).all()
    assert np.isfinite(shift).all() and (np.abs(shift) <= 8).all()
    accuracy = on_k1(found, k1)
    lower, upper = sorted([centre, tails.mean()])
    if abs(tails.mean()) < 6:
        noise = 4 * (width + tails.std())
        assert lower - noise < logit(np.clip(accuracy.mean(), 1e-9, 1 - 1e-9)) < upper + noise


@pytest.mark.parametrize("offset", [-1.5, 1.5])
def test_ranks_that_contradict_tails_win_on_the_source_classes(offset):
    rng, k1 = np.random.default_rng(1), 200
    law = normal_laws(rng, 3.0, 0.8)
    centre = logit(on_k1(law, k1).mean()) + offset
    ranks = in_order_of(expit(centre + 0.15 * rng.standard_normal(200)), law, k1)
    found, shift = moved(law, ranks, k1)
    accuracy = on_k1(found, k1)
    # The discrepancy is about 0.1, with heavy tails, so a large one leaves hardly any pull.
    assert abs(logit(accuracy).mean() - centre) < 0.15
    assert logit(accuracy).std() < 1.5 * logit(ranks).std()
    assert (np.sign(shift) == np.sign(offset)).all()


def test_evidences_that_agree_are_combined():
    """The variance is that of the best linear combination: no more than of either evidence."""
    rng, k1 = np.random.default_rng(1), 200
    law = normal_laws(rng, 3.0, 0.8, size=2000)
    tails = logit(on_k1(law, k1))
    ranks = in_order_of(expit(tails.mean() + 0.4 * rng.standard_normal(2000)), law, k1)
    found, shift = moved(law, ranks, k1)
    accuracy = logit(on_k1(found, k1))
    assert accuracy.mean() == pytest.approx(tails.mean(), abs=0.05)
    assert accuracy.std() < 1.1 * logit(ranks).std()
    assert abs(shift.mean()) < 0.05


def test_known_tails_leave_the_ranks_as_they_are():
    """Of tails without a sampling error and far from the ranks nothing is left but the shape."""
    rng, k1 = np.random.default_rng(1), 100
    law = normal_laws(rng, 3.0, 0.8, spread=0.0)
    centre = logit(on_k1(law, k1).mean()) - 1.5
    ranks = expit(centre + 0.2 * rng.standard_normal(200))
    accuracy = on_k1(moved(law, ranks, k1)[0], k1)
    assert np.mean(logit(accuracy)) == pytest.approx(centre, abs=0.1)


@pytest.mark.parametrize("offset", [-0.4, 0.4])
def test_each_point_moves_less_the_farther_it_is(offset):
    """Z = z moves to z + delta / (1 + x); x are decades between 1 - Phi(z) and 1 / k1."""
    k1, points = 100, MixtureLaw(BASIS, np.eye(BASIS.knots.size))
    for place in (50, 60, 70, 90, 100):
        z = BASIS.knots[place]
        law = MixtureLaw(BASIS, points.weights[[place] * 50])
        accuracy = np.interp(z + offset, BASIS.knots, on_k1(points, k1))
        found, shift = moved(law, np.full(50, accuracy), k1)
        x = abs(-log_ndtr(-z) - np.log(k1)) / np.log(10)
        assert_allclose(found.weights @ BASIS.knots, z + shift / (1 + x), atol=1e-6)


def test_far_out_laws_keep_the_shape_of_the_tails():
    """The quantile of four nines moves by less than half of what the median moves."""
    rng, k1 = np.random.default_rng(3), 100
    law = normal_laws(rng, 2.5, 1.0, spread=0.02)
    centre = logit(on_k1(law, k1).mean()) + 0.8
    ranks = in_order_of(expit(centre + 0.05 * rng.standard_normal(200)), law, k1)
    found, shift = moved(law, ranks, k1)
    before, after = (
        np.interp([0.2, 0.5, 0.9999], w.weights.mean(axis=0).cumsum(), BASIS.knots)
        for w in (law, found)
    )
    low, middle, far = after - before
    # Z = 2.5 is a fifth of a decade from 1 / k1.
    assert middle == pytest.approx(shift.mean() / 1.2, abs=0.05) and shift.mean() > 0.15
    assert 0 < low < middle and 0 < far < 0.5 * middle


def test_the_same_seed_gives_the_same_laws():
    rng = np.random.default_rng(1)
    law = normal_laws(rng, 3.0, 0.8)
    ranks = in_order_of(expit(rng.standard_normal(200)), law, 100)
    first, second, other = (moved(law, ranks, 100, seed)[0].weights for seed in (2, 2, 3))
    assert (first == second).all() and not (first == other).all()


@pytest.mark.parametrize("value", [0.0, 1e-12, 1.0])
def test_extreme_accuracies_of_ranks_have_laws(value):
    law = normal_laws(np.random.default_rng(1), 3.0, 0.8)
    found, shift = moved(law, np.full(200, value), 100)
    assert np.isfinite(found.weights).all() and np.isfinite(shift).all()
    assert_allclose(found.weights.sum(axis=1), 1)


def test_laws_stay_within_what_the_ranks_allow():
    """Tails that are sure of many errors cannot make a pilot without errors lose as many."""
    rng, k1 = np.random.default_rng(1), 200
    law = normal_laws(rng, 3.0, 0.8, spread=0.3)
    ranks = rng.beta(300, 1, 200)
    assert on_k1(law, k1).mean() < 0.9
    accuracy = on_k1(moved(law, ranks, k1)[0], k1)
    assert accuracy.min() >= ranks.min() - 2e-3 and accuracy.max() <= ranks.max() + 2e-3
