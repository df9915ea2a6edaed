"""The parts of the tails of wrong scores, against simulation, quadrature and closed forms."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import digamma, inv_boxcox, polygamma
from scipy.stats import norm

from classex_bayes.open_set.depth_law import HeldOutDepths, HeldOutPairs, log_survival
from classex_bayes.open_set.level_drift import LevelDrift, observed_levels, threshold_grid
from classex_bayes.open_set.local_tails import LocalTails, TailHierarchy, observed_tails
from classex_bayes.open_set.poisson_lognormal import chance_of_none
from classex_bayes.open_set.probe_lists import ProbeLists
from classex_bayes.open_set.wrong_tails import WrongTails

N = 4  # nearest classes of a tail


def power_law_lists(n, n_rivals, rng, exponent=6.0, location=0.0, length=32):
    """Lists of probes whose wrong classes follow a power law, from order statistics."""
    arrivals = rng.exponential(size=(n, length)).cumsum(axis=1) / n_rivals
    log_distance = location + np.log(arrivals) / np.reshape(exponent, (-1, 1))
    classes = np.argsort(rng.random((n, n_rivals + 1)), axis=1)[:, :length]
    return ProbeLists(log_distance, classes, np.full(n, 1 / n), np.arange(n), n_rivals)


@pytest.mark.parametrize("log_rate", [-20.0, -5.3, -0.21, 1.234, 4.0])
@pytest.mark.parametrize("sd", [0.0, 0.33, 1.02, 2.5])
def test_chance_of_none_is_the_integral_over_the_scatter(log_rate, sd):
    def integrand(z):
        return norm.pdf(z) * np.exp(-np.exp(log_rate + sd * z - sd**2 / 2))

    expected = quad(integrand, -12, 12, limit=200)[0]
    found = float(chance_of_none(np.array([log_rate]), np.array([sd]))[0])
    assert found == pytest.approx(expected, abs=3e-4)
    assert 1 - found == pytest.approx(1 - expected, rel=2e-3, abs=1e-9)


@pytest.mark.parametrize(("slope", "shape"), [(1.0, 0.3), (0.8, 0.0), (1.3, -0.5), (1.1, -1.0)])
def test_survival_is_the_integral_of_its_slope(slope, shape):
    for depth in (0.0, 0.4, 3.0, 25.0):
        expected = quad(lambda q: -slope * (1 + q) ** shape, 0, depth)[0]
        assert float(log_survival(depth, slope, shape)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.nightly
def test_observed_tails_are_unbiased_with_the_known_noise():
    rng = np.random.default_rng(1)
    found = observed_tails(power_law_lists(40_000, 500, rng).log_distance[:, :N])
    location, log_exponent = found.T
    # log of the rate within r_j is log gamma; 1% of each end of the exponents is cut.
    assert (6 * location + np.log(500)).mean() == pytest.approx(digamma(N), abs=0.01)
    assert (6 * location).var() == pytest.approx(float(polygamma(1, N)), rel=0.03)
    assert log_exponent.mean() == pytest.approx(np.log(6), abs=0.01)
    assert log_exponent.var() == pytest.approx(float(polygamma(1, N - 1)), rel=0.08)


def test_rows_without_a_tail():
    wrong = np.array([[0.0, 1.0, 2.0, np.inf], [1.0, 1.0, 1.0, 1.0], [0.0, 0.5, 1.0, 2.0]])
    location, log_exponent = observed_tails(wrong).T
    assert np.isnan(location).tolist() == [True, False, False]
    assert np.isnan(log_exponent).tolist() == [True, True, False]


def test_the_hierarchy_tells_differences_from_noise():
    rng = np.random.default_rng(2)
    n, n_rivals = 4000, 400
    location = 0.5 * rng.standard_normal(n)
    exponent = np.exp(np.log(6) + 0.6 * location + 0.2 * rng.standard_normal(n))
    halves = []
    for _ in range(2):
        pair = [
            observed_tails(
                power_law_lists(n, n_rivals // 2, rng, exponent, location[:, None]).log_distance[
                    :, :N
                ]
            )
            for _ in range(2)
        ]
        halves.append(tuple(pair))
    lists = power_law_lists(n, n_rivals, rng, exponent, location[:, None])
    observed = observed_tails(lists.log_distance[:, :N])
    hierarchy = TailHierarchy.of(observed, halves)
    centre, shrunk, _ = hierarchy.shrunk(observed)
    error = np.log(shrunk) - np.log(exponent)
    # Better than the observed exponents, unbiased, and with the variance that it states.
    assert error.std() < 0.5 * np.nanstd(observed[:, 1] - np.log(exponent))
    assert error.mean() == pytest.approx(0, abs=0.02)
    assert error.var() == pytest.approx(hierarchy.rest[1, 1], rel=0.3)
    # So has log p at every depth, in which errors of locations and of exponents add up.
    for depth in (1.0, 4.0):
        log_p = exponent * (centre - depth / shrunk - location)
        stated = float(hierarchy.scatter(np.array(depth)))
        assert (log_p + depth).std() == pytest.approx(stated, rel=0.08)
    # Alike probes have one exponent: nothing is left of the noise.
    alike = [tuple(observed_tails(power_law_lists(n, 200, rng).log_distance[:, :N]) for _ in "ab")]
    flat = TailHierarchy.of(observed_tails(power_law_lists(n, 400, rng).log_distance[:, :N]), alike)
    assert np.all(np.abs(flat.gain) < 0.1)


@pytest.mark.parametrize("sd", [(0.08, 0.0), (0.0, 0.5)])  # of locations, of log exponents
def test_the_truth_regressed_on_posterior_means_has_the_slope_one(sd):
    """Sampling noise of the wrong size would shrink too little or too much."""
    rng, n = np.random.default_rng(4), 20_000
    truth = np.array([0.0, np.log(6)]) + sd * rng.standard_normal((n, 2))
    whole, first, second = (
        # In units in which the location of the tail does not depend on its exponent.
        observed_tails(truth[:, :1] + np.log(arrivals / np.exp(digamma(N))) / np.exp(truth[:, 1:]))
        for arrivals in rng.exponential(size=(3, n, N)).cumsum(axis=2)
    )
    location, exponent, _ = TailHierarchy.of(whole, [(first, second)]).shrunk(whole)
    differs = int(np.argmax(sd))
    found = (location, np.log(exponent))[differs]
    # Exponents are clipped at both ends, so theirs is 1.05. Noise of one class less gives 0.87.
    assert np.polyfit(found, truth[:, differs], 1)[0] == pytest.approx(1, abs=0.09)


def held_out_depths(depth):
    """Counts of the positive ones among the depths (n, m) of n probes."""
    n = len(depth)
    classes = np.zeros(depth.shape, dtype=np.int64)
    lists = ProbeLists(-depth, classes, np.full(n, 1 / n), np.arange(n), 1)
    none, tails = np.zeros(1, dtype=bool), LocalTails(np.zeros(n), np.ones(n))
    pairs = HeldOutPairs.of(lists, [none], [tails], 1.0)
    return HeldOutDepths.of(pairs, N**-0.5, 0.0)


@pytest.mark.parametrize("shape", [-0.3, 0.0, 0.3])
def test_the_law_of_depths_is_found(shape):
    rng = np.random.default_rng(3)
    n = 6000
    depth = inv_boxcox(rng.exponential(size=(n, 12)) / 1.1, 1 + shape) - 1
    number = rng.poisson(np.exp(0.1) * rng.gamma(N, size=n))
    depth[np.arange(12) >= number[:, None]] = -1
    held_out = held_out_depths(depth)
    sample = held_out.sample(rng)
    assert sample.pareto_k < 0.7
    drawn = sample.draw(2000, rng)
    # Rates above 12 are cut, of which there are few.
    away = (drawn.mean(axis=0) - [0.1, 1.1, shape]) / drawn.std(axis=0)
    assert np.all(np.abs(away) < 4)


@pytest.mark.parametrize("rise", [0.0, 0.1, 0.3])
def test_the_rise_of_exponents_is_found(rise):
    """A wrong class is at u = x - log d with a chance e^-q for q = m u (1 + rise m0 u / 2)."""
    rng, n, typical = np.random.default_rng(9), 4000, 10.0
    exponent = typical * np.exp(0.3 * rng.standard_normal(n))
    depth = rng.exponential(size=(n, 4))
    curvature = rise * typical / 2
    inwards = 2 * depth / exponent[:, None]
    inwards /= 1 + np.sqrt(1 + 4 * curvature * depth / exponent[:, None])
    lists = ProbeLists(
        -inwards, np.zeros((n, 4), dtype=np.int64), np.full(n, 1 / n), np.arange(n), 1
    )
    tails = [LocalTails(np.zeros(n), exponent)]
    pairs = HeldOutPairs.of(lists, [np.zeros(1, dtype=bool)], tails, 1.0)
    found = pairs.likeliest_curvature()
    assert 2 * found / typical == pytest.approx(rise, abs=0.04)


def test_probes_without_a_tail_leave_the_prior_of_the_law_of_depths():
    """Level N(0, 0.2^2), slope N(1, 0.2^2) and shape N(0, 0.15^2)."""
    rng = np.random.default_rng(0)
    lists, nowhere = power_law_lists(20, 50, rng), LocalTails(np.full(20, np.nan), np.ones(20))
    pairs = HeldOutPairs.of(lists, [np.zeros(51, dtype=bool)], [nowhere], 1.0)
    held_out = HeldOutDepths.of(pairs, N**-0.5, 0.0)
    mean, sd = np.array([0.0, 1.0, 0.0]), np.array([0.2, 0.2, 0.15])
    points = mean + sd * rng.uniform(-2, 2, size=(50, 3))
    away = held_out.log_density(points) - norm.logpdf(points, mean, sd).sum(axis=1)
    np.testing.assert_allclose(away, away[0], atol=1e-9)


def test_near_duplicates_make_the_shape_less_certain():
    """Those of the pilot are a sign of others that are too rare for it."""
    rng, shapes = np.random.default_rng(2), []
    for share in (0.0, 0.3):
        lists = power_law_lists(1000, 300, rng)
        inwards = rng.exponential(size=1000) * (rng.random(1000) < share)
        lists.log_distance[:, 0] -= inwards
        halves = [rng.permutation(301) < 150 for _ in range(2)]
        halves = [side for half in halves for side in (half, ~half)]
        tails, _ = WrongTails.of(lists, halves, 1.0, 1.0, 500, 0.35, rng)
        shapes.append(tails.law.parameters[:, 2])
    exact, near = shapes
    assert abs(exact.mean()) < 0.1 and near.mean() < -0.2
    assert near.std() > 2 * exact.std()


def test_independent_pairs_are_counted():
    rng = np.random.default_rng(4)
    lists = power_law_lists(500, 400, rng)
    threshold = float(np.sort(lists.log_distance.ravel())[300])
    (level,), (pairs,) = observed_levels(lists, np.array([threshold]))
    assert level == pytest.approx(301 / 500 / 400)
    # Neither owners nor classes matter: every pair is independent.
    assert level * pairs == pytest.approx(301, rel=0.25)
    # Two probes of each owner with the same scores are one.
    doubled = ProbeLists(*(np.repeat(part, 2, axis=0) for part in lists[:4]), lists.n_wrong)
    doubled = doubled._replace(weight=doubled.weight / 2)
    (again,), (fewer,) = observed_levels(doubled, np.array([threshold]))
    assert again == pytest.approx(level) and 0.6 * pairs < fewer < 1.01 * pairs


def test_probes_without_weight_do_not_count():
    rng = np.random.default_rng(7)
    lists = power_law_lists(60, 100, rng)
    weight = np.where(lists.log_distance[:, 0] > np.median(lists.log_distance[:, 0]), 1.0, 0.0)
    thresholds = np.quantile(lists.log_distance, [0.5, 0.02, 0.001])
    lists = lists._replace(weight=weight / weight.sum())
    kept = ProbeLists(*(part[weight > 0] for part in lists[:4]), lists.n_wrong)
    levels = (observed_levels(some, thresholds) for some in (lists, kept))
    for found, expected in zip(*levels, strict=True):
        np.testing.assert_allclose(found, expected)


def test_nearest_classes_of_a_half():
    rng = np.random.default_rng(8)
    lists = power_law_lists(40, 30, rng, length=12)
    lists.classes[:5, 9:] = -1  # shorter lists
    half = rng.random(31) < 0.3
    for row, nearest in enumerate(lists.nearest_in(half)):
        here = [
            at
            for at, rival in zip(lists.log_distance[row], lists.classes[row], strict=True)
            if rival >= 0 and half[rival]
        ]
        assert nearest.tolist() == [*here, *[np.inf] * N][:N]


def test_the_drift_follows_the_data_and_widens_beyond_them():
    rng = np.random.default_rng(5)
    lists = power_law_lists(2000, 300, rng)
    grid = threshold_grid(lists, 6.0)
    assert np.all(np.diff(grid) < 0)
    foretold = np.log(np.exp(6 * grid)) + 0.5  # too high by e^0.5
    drift = LevelDrift.of(lists, grid, np.tile(foretold, (2000, 1)), 0.35, rng).draws
    observed, _ = observed_levels(lists, grid)
    many = observed * 2000 * 300 > 200
    assert np.allclose(drift[:, many].mean(axis=0), -0.5, atol=0.2)
    beyond = observed == 0
    sd = drift[:, beyond].std(axis=0)
    fall = foretold[beyond][0] - foretold[beyond]
    # A random walk with variance 0.35^2 for each unit of the fall.
    np.testing.assert_allclose(sd**2 - sd[0] ** 2, 0.35**2 * fall, rtol=0.15, atol=0.02)
    # The mean chance never rises with the threshold.
    assert np.all(np.diff(foretold + drift, axis=1) <= 1e-9)
    fixed = LevelDrift.of(lists, grid, np.tile(foretold, (3, 1)), 0.0, rng).draws
    assert np.all(np.diff(fixed, axis=1) == 0)


def test_steps_of_the_drift_are_those_of_their_posterior():
    """Mean and spread of each step against its density, which is integrated on a grid."""
    rng = np.random.default_rng(6)
    lists = power_law_lists(2000, 300, rng)
    grid = threshold_grid(lists, 6.0)
    foretold = 6 * grid + 0.5
    drift = LevelDrift.of(lists, grid, np.tile(foretold, (4000, 1)), 0.35, rng).draws
    above, independent = observed_levels(lists, grid)
    falls, befores = -np.diff(foretold, prepend=0.0), np.append(1.0, above[:-1])
    for place in range(6):
        before, level, pairs = befores[place], above[place], independent[place]
        fall = falls[place]
        variance = 0.35**2 * fall if place else 0.2**2
        step = np.linspace(-1.5, fall - 1e-9, 4001)
        kept, lost = level * pairs, (before - level) * pairs
        log_density = kept * (step - fall) + lost * np.log1p(-np.exp(step - fall))
        log_density -= step**2 / (2 * variance)
        density = np.exp(log_density - log_density.max())
        mean, square = (np.average(step**power, weights=density) for power in (1, 2))
        found, sd = np.diff(drift, prepend=0.0)[:, place], np.sqrt(square - mean**2)
        assert found.mean() == pytest.approx(mean, abs=0.2 * sd)
        assert found.std() == pytest.approx(sd, rel=0.1)
