"""PseudoLikelihood against EM, a convex solver, exact polynomials and laws in closed form."""

from itertools import pairwise

import cvxpy
import mpmath
import numpy as np
import pytest
from helpers import few_examples, ranked_task, unsound_data
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import binom

from classex_bayes import SourceTask
from classex_bayes.estimators import PseudoLikelihood
from studies.laws import FavorabilityLaw

# Predictions far beyond the data are part of what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.ExtrapolationWarning")

VARIANTS = [(monotone, moment) for monotone in (True, False) for moment in (True, False)]
every_variant = pytest.mark.parametrize(("monotone", "moment"), VARIANTS)


def random_task(seed, k1, n_test=None):
    rng = np.random.default_rng(seed)
    law = FavorabilityLaw(
        means=tuple(rng.normal(1.5, 1.5, 2)), sds=tuple(rng.uniform(0.1, 2, 2)), atom_at_one=0.1
    )
    ranks, y, _ = law.sample(k1, n_test=n_test, random_seed=seed)
    return SourceTask.from_ranks(ranks, y, n_classes=k1)


def beta_task(a, k1, n_test, seed):
    """Favorability with CDF u^a, so AGA_k = a / (a + k - 1); the density rises for a > 1."""
    rng = np.random.default_rng(seed)
    return ranked_task(rng.binomial(k1 - 1, 1 - rng.beta(a, 1, n_test)), k1)


def columns(n_better, k1, left, monotone):
    """Probabilities of losses for U* = left, or uniform on [left, 1], by exact quadrature."""
    n_better = np.asarray(n_better)[:, None]
    if not monotone:
        return binom.pmf(n_better, k1 - 1, 1 - left)
    nodes, weights = np.polynomial.legendre.leggauss(k1 // 2 + 1)
    table = np.zeros((n_better.size, left.size))
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        table += weight * binom.pmf(n_better, k1 - 1, (1 - left) * (1 - node))
    return table


def instance_weights(task):
    """Classes weigh the same, whatever their numbers of instances."""
    return 1 / (task.n_classes * np.bincount(task.y)[task.y])


def shares(task):
    n_better, place = np.unique(task.ranks - 1, return_inverse=True)
    return n_better, np.bincount(place, weights=instance_weights(task))


# Optimality


@unsound_data
@every_variant
@few_examples(15)
@given(seed=st.integers(0, 10**6), k1=st.integers(3, 120), repeats=st.sampled_from([1, 3, 40]))
def test_conditions_of_optimality(monotone, moment, seed, k1, repeats):
    task = random_task(seed, k1, k1 * repeats)
    right = task.accuracy(k1)
    if moment and right == 0 and not monotone:
        return
    model = PseudoLikelihood(monotone, moment).fit(task)
    assert model.weights_.sum() == pytest.approx(1, abs=1e-12) and (model.weights_ > 0).all()
    n_better, share = shares(task)
    fitted = columns(n_better, k1, model.support_, monotone) @ model.weights_
    assert model.log_likelihood_ == pytest.approx(share @ np.log(fitted), abs=1e-8)

    left = np.append(np.sin(np.linspace(0, np.pi / 2, 400)) ** 2, 1 - np.geomspace(1e-3, 1e-9, 50))
    slope = (share / fitted) @ columns(n_better, k1, left, monotone)
    if not moment:
        # Off the grid as well no law is likelier by more than the grid is coarse.
        assert slope.max() < 1 + (1e-3 if monotone else 4e-3)
        return
    chance = 1 / k1 if monotone else 0.0
    assert model.predict(k1).mean.item() == pytest.approx(max(right, chance), abs=1e-9)
    if not chance < right < 1:
        return
    # With a constraint the same holds for the slope less a multiple of the moment's excess.
    powers = columns([0], k1, left, monotone)[0] - right
    own = columns([0], k1, model.support_, monotone)[0] - right
    own_slope = (share / fitted) @ columns(n_better, k1, model.support_, monotone)
    multiplier = 0.0
    if np.abs(own).max() > 1e-9:
        multiplier = own @ (model.weights_ * (own_slope - 1)) / (own @ (model.weights_ * own))
    assert (slope - multiplier * powers).max() < 1 + (1e-3 if monotone else 4e-3)


@every_variant
def test_many_classes(monotone, moment):
    task = random_task(3, 5000)
    model = PseudoLikelihood(monotone, moment).fit(task)
    assert model.optimality_gap_ < 1e-6
    assert model.predict(5000).mean.item() == pytest.approx(task.accuracy(5000), abs=0.003)


# Moments and distribution functions


@every_variant
def test_moments_and_distribution_function_are_those_of_the_fitted_mixture(monotone, moment):
    """Of points, or of uniform laws from each point to 1."""
    model = PseudoLikelihood(monotone, moment).fit(random_task(4, 40, 80))
    k, u = np.array([2, 3, 50, 10**6]), np.array([0.0, 0.5, 0.9, 1 - 1e-9, 1.0])
    support, weights = model.support_, model.weights_

    def moment_of(left, size):
        left = mpmath.mpf(left)
        if monotone and left < 1:
            return (1 - left**size) / (size * (1 - left))
        return left ** (size - 1)

    with mpmath.workdps(60):
        expected = [
            float(mpmath.fdot(weights.tolist(), [moment_of(x, size) for x in support.tolist()]))
            for size in k.tolist()
        ]
    np.testing.assert_allclose(model.predict(k).mean, expected, rtol=1e-8)
    width = 1 - support
    below = np.where(u[:, None] >= support, 1.0, 0.0)
    if monotone:
        inside = np.clip((u[:, None] - support) / np.where(width > 0, width, 1), 0, 1)
        below = np.where(width > 0, inside, below)
    np.testing.assert_allclose(model.discriminability(u), below @ weights, atol=1e-9)


@every_variant
def test_discriminability_gives_the_accuracy(monotone, moment):
    model = PseudoLikelihood(monotone, moment).fit(random_task(4, 40, 80))
    ends = model.discriminability([0, 1])
    assert ends[0] >= 0 and ends[1] == pytest.approx(1, abs=1e-12)
    assert (np.diff(model.discriminability(np.linspace(0, 1, 101))) >= 0).all()
    for k in (2, 10, 40):
        jumps = np.unique(np.concatenate([[0.0], model.support_, [1.0]]))
        integral = sum(
            quad(lambda u, k=k: model.discriminability(u)[0] * u ** (k - 2), *ends, limit=200)[0]
            for ends in pairwise(jumps)
        )
        assert 1 - (k - 1) * integral == pytest.approx(model.predict(k).mean.item(), abs=1e-6)


# Large samples


@unsound_data
@pytest.mark.parametrize(("monotone", "moment"), [(True, True), (True, False)])
@pytest.mark.parametrize("a", [1.0, 5.0, 60.0])
def test_recovers_a_nondecreasing_density(monotone, moment, a):
    model = PseudoLikelihood(monotone, moment).fit(beta_task(a, 100, 50_000, 1))
    k = np.array([2, 30, 100, 200, 400])
    np.testing.assert_allclose(model.predict(k).mean, a / (a + k - 1), atol=0.015)
    u = np.linspace(0, 1, 21)
    np.testing.assert_allclose(model.discriminability(u), u**a, atol=0.02)


# Range, limits and symmetries


@unsound_data
@pytest.mark.parametrize(("right", "others"), [(2, 100), (3, 250), (8, 950)])
def test_just_above_guessing(right, others):
    # Guessing gets 1 of 1000 classes right; the losses of the others pull elsewhere.
    n_better = np.concatenate([np.zeros(right, int), np.full(1000 - right, others)])
    model = PseudoLikelihood().fit(ranked_task(n_better, 1000))
    assert model.predict(1000).mean.item() == pytest.approx(right / 1000, abs=1e-10)


@unsound_data
def test_no_instance_right():
    task = ranked_task([1, 2, 3, 1, 2], 5)
    plain = PseudoLikelihood(monotone=False, moment=False).fit(task)
    assert plain.predict(10**6).mean.item() == pytest.approx(0, abs=1e-6)
    hopeless = PseudoLikelihood(monotone=False, moment=False).fit(ranked_task([4] * 5, 5))
    assert hopeless.support_.tolist() == [0] and hopeless.predict([2, 9]).mean.tolist() == [0, 0]


# The Bernoulli terms of the draft of 2016


def bernoulli_value(task, gamma):
    """Equation (12) of the draft with k1 - 1 competitors, divided by their number."""
    wins = task.n_classes - task.ranks
    beaten = wins[:, None] < np.arange(
        1, task.n_classes
    )  # the h-th competitor beats the true class
    terms = np.where(beaten, np.log(gamma), np.log1p(-gamma))
    return instance_weights(task) @ terms.mean(axis=1)


def gammas(laws, weights, k1, monotone):
    """P(V < h), h = 1..k1 - 1, from the probabilities of the losses."""
    by_wins = (columns(np.arange(k1), k1, laws, monotone) @ weights)[::-1]
    return by_wins.cumsum()[:-1]


@unsound_data
@every_variant
@pytest.mark.parametrize(("k1", "repeats"), [(5, 40), (30, 3), (60, 1)])
def test_convex_solver_finds_the_same_bernoulli_maximum(monotone, moment, k1, repeats):
    task = random_task(k1, k1, k1 * repeats)
    model = PseudoLikelihood(monotone, moment, "bernoulli").fit(task)
    gamma = gammas(model.support_, model.weights_, k1, monotone)
    found = bernoulli_value(task, gamma)
    assert model.log_likelihood_ == pytest.approx(found, abs=1e-9)

    left = np.unique(np.append(np.linspace(0, 1, 120)[:-1], model.support_))
    table = columns(np.arange(k1), k1, left, monotone)[::-1].cumsum(axis=0)[:-1]
    weights = cvxpy.Variable(left.size, nonneg=True)
    wins = k1 - task.ranks
    share = instance_weights(task) @ (wins[:, None] < np.arange(1, k1))
    value = share @ cvxpy.log(table @ weights) + (1 - share) @ cvxpy.log((1 - table) @ weights)
    constraints = [cvxpy.sum(weights) == 1]
    if moment:
        constraints.append(columns([0], k1, left, monotone)[0] @ weights == task.accuracy(k1))
    best = cvxpy.Problem(cvxpy.Maximize(value / (k1 - 1)), constraints).solve(solver="CLARABEL")
    assert best <= found + 1e-6
    # The fitted law is among those that the solver mixed.
    assert best == pytest.approx(found, abs=1e-5)
    if moment:
        assert model.predict(k1).mean.item() == pytest.approx(task.accuracy(k1), abs=1e-9)


def test_both_likelihoods_find_a_law_that_has_the_shares():
    """Two moments are those of a law, so both fit the accuracy on 2 and 3 classes exactly."""
    task = SourceTask.from_ranks([1] * 6 + [2, 2, 3], np.arange(9) % 3, n_classes=3)
    for likelihood in ("binomial", "bernoulli"):
        model = PseudoLikelihood(False, False, likelihood).fit(task)
        np.testing.assert_allclose(model.predict([2, 3]).mean, task.accuracy([2, 3]), atol=1e-5)


def test_few_events_stand_for_all():
    """Of the 1,199 events about 500 are used."""
    task = beta_task(5, 1200, 1200, seed=5)
    model = PseudoLikelihood(likelihood="bernoulli").fit(task)
    gamma = gammas(model.support_, model.weights_, 1200, monotone=True)
    assert model.log_likelihood_ == pytest.approx(bernoulli_value(task, gamma), rel=0.01)
