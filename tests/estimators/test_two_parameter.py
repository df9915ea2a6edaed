"""TwoParameter: exact recovery, the pseudolikelihood against quadrature, and degenerate tasks."""

import mpmath
import numpy as np
import pytest
from helpers import few_examples, ranked_task, unsound_data
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri
from scipy.stats import betabinom

from classex_bayes.core.normal_law import expected_power
from classex_bayes.estimators.probit_normal import (
    HighDimensional,
    TwoParameter,
    log_pseudolikelihood,
)
from classex_bayes.exceptions import DataError
from classex_bayes.simulate import FavorabilityLaw, GaussianNearestNeighbor
from classex_bayes.task.source_task import SourceTask

METHODS = pytest.mark.parametrize("method", ["least_squares", "pseudolikelihood"])
SIZES = np.array([2, 3, 5, 10, 20, 50, 100, 200, 500, 1000])


def curve(accuracy, k=SIZES, n_test=10**6):
    return SourceTask.from_accuracies(k, accuracy, n_test=n_test, n_classes=int(np.max(k)))


def in_arbitrary_precision(loss, k1, mean, sd):
    """Log probability of a loss: Gauss-Legendre on panels about the peak of the integrand."""
    wins = k1 - 1 - loss
    grid = np.linspace(-40, 40, 16_001)
    log_terms = -0.5 * ((grid - mean) / sd) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        log_terms += (wins * np.log(ndtr(grid)) if wins else 0) + (
            loss * np.log(ndtr(-grid)) if loss else 0
        )
    inside = grid[log_terms > np.nanmax(log_terms) - 60]

    def integrand(z):
        below, above = mpmath.erfc(-z / mpmath.sqrt(2)) / 2, mpmath.erfc(z / mpmath.sqrt(2)) / 2
        power = wins * mpmath.log1p(-above) if above < 0.5 else wins * mpmath.log(below)
        if loss:
            power += loss * mpmath.log(above)
        return mpmath.exp(power) * mpmath.npdf(z, mean, sd)

    with mpmath.workdps(25):
        edges = [mpmath.mpf(edge) for edge in np.linspace(inside[0], inside[-1], 16)]
        integral = mpmath.quad(integrand, edges, maxdegree=4)
        return float(mpmath.log(mpmath.binomial(k1 - 1, loss)) + mpmath.log(integral))


# The pseudolikelihood


@pytest.mark.parametrize(
    ("k1", "mean", "sd"),
    [
        *((3, 1.0, 3.0), (40, 2.5, 0.05), (5000, 2.0, 0.8), (5000, 1.0, 3.0)),
        (10**6, 3.0, 1.2),
    ],
)
def test_probabilities_of_losses_in_arbitrary_precision(k1, mean, sd):
    for loss in sorted({0, max(1, k1 // 100), k1 // 4}):
        expected = in_arbitrary_precision(loss, k1, mean, sd)
        if expected > np.log(1e-12):
            value, _, _ = log_pseudolikelihood(np.array([loss]), np.ones(1), k1)(mean, sd)
            assert value == pytest.approx(expected, abs=1e-9)


@few_examples(15)
@given(mean=st.floats(-2, 4), log_sd=st.floats(np.log(0.05), np.log(5)), k1=st.integers(3, 60))
def test_probabilities_sum_to_one(mean, log_sd, k1):
    n_better = np.arange(k1)
    log_p = [
        log_pseudolikelihood(n_better[[v]], np.ones(1), k1)(mean, np.exp(log_sd))[0]
        for v in n_better
    ]
    assert np.exp(log_p).sum() == pytest.approx(1, abs=1e-9)


def test_uniform_favorability_makes_losses_uniform():
    value, by_mean, by_sd = log_pseudolikelihood(np.arange(30), np.full(30, 1 / 30), 30)(0.0, 1.0)
    assert value == pytest.approx(-np.log(30), abs=1e-12)
    # Uniform losses are likeliest under the uniform law.
    assert (by_mean, by_sd) == pytest.approx((0, 0), abs=1e-12)


@pytest.mark.parametrize(("mean", "sd"), [(1.5, 0.9), (3.0, 0.2), (0.0, 4.0)])
def test_slopes_of_the_pseudolikelihood(mean, sd):
    n_better, weight = np.array([0, 1, 4, 30, 59]), np.array([0.5, 0.2, 0.15, 0.1, 0.05])
    objective = log_pseudolikelihood(n_better, weight, 60)
    step = 1e-5
    _, by_mean, by_sd = objective(mean, sd)
    difference = objective(mean + step, sd)[0] - objective(mean - step, sd)[0]
    assert by_mean == pytest.approx(difference / (2 * step), rel=1e-6, abs=1e-7)
    difference = objective(mean, sd + step)[0] - objective(mean, sd - step)[0]
    assert by_sd == pytest.approx(difference / (2 * step), rel=1e-6, abs=1e-7)


def test_extreme_parameters_do_not_underflow():
    objective = log_pseudolikelihood(np.array([0, 499]), np.array([0.5, 0.5]), 500)
    for mean in (-20.0, 20.0):
        value, by_mean, _ = objective(mean, 0.05)
        assert np.isfinite(value) and value < -1000
        assert by_mean * mean < 0  # back to where both losses are possible


@unsound_data
@few_examples(4)
@given(
    seed=st.integers(0, 10**6),
    shape=st.sampled_from([(0.3, 0.2), (20, 2), (1, 1), (5, 0.5)]),
    k1=st.integers(4, 120),
)
def test_pseudolikelihood_is_the_largest_of_a_grid(seed, shape, k1):
    n_better = betabinom(k1 - 1, *shape[::-1]).rvs(k1, random_state=seed)
    if n_better.max() == 0:
        n_better[0] = 1
    model = TwoParameter("pseudolikelihood").fit(ranked_task(n_better, k1))
    distinct, counts = np.unique(n_better, return_counts=True)
    objective = log_pseudolikelihood(distinct, counts / counts.sum(), k1)
    found = objective(model.mean_, model.sd_)[0]
    for sd in np.geomspace(0.05, 10, 9):
        for probit in np.linspace(-3, 5, 17):
            assert objective(probit * np.hypot(1, sd), sd)[0] <= found + 1e-10


# Recovery


@unsound_data
@few_examples(12)
@given(
    mean=st.floats(-1, 5),
    sd=st.floats(0.07, 6),
    k=st.sampled_from([SIZES, np.array([2, 12]), np.array([5, 50, 400])]),
)
def test_exact_curves_are_recovered(mean, sd, k):
    accuracy = expected_power(mean, sd, k)[:, 0]
    # Who always wins, or wins on one number of classes alone, shows less than two parameters.
    if np.ptp(accuracy) < 1e-4 or np.count_nonzero(accuracy > 1e-6) < 2:
        return
    model = TwoParameter().fit(curve(accuracy, k))
    far = np.array([30, 900])
    np.testing.assert_allclose(
        model.predict(far).mean, expected_power(mean, sd, far)[:, 0], atol=1e-6
    )
    if accuracy.min() > 1e-3 and accuracy[0] - accuracy[-1] > 1e-2:
        assert (model.mean_, model.sd_) == pytest.approx((mean, sd), abs=1e-4)


@METHODS
def test_the_law_is_found_again_in_losses(method):
    law = FavorabilityLaw(means=(2.3,), sds=(0.7,))
    ranks, y, k1 = law.sample(300, n_test=12_000, random_seed=1)
    task = SourceTask.from_ranks(ranks, y, n_classes=k1)
    model = TwoParameter(method).fit(task)
    # Standard deviations over 40 samples were below 0.012 and 0.015.
    assert (model.mean_, model.sd_) == pytest.approx((2.3, 0.7), abs=0.05)
    far = [1000, 10_000]
    np.testing.assert_allclose(model.predict(far).mean, law.accuracy(far), atol=0.02)


def test_expected_losses_are_recovered():
    """Of exact probabilities of the losses, no other parameters make more likely ones."""
    mean, sd, k1 = 1.7, 1.3, 25
    share = [
        np.exp(log_pseudolikelihood(np.array([v]), np.ones(1), k1)(mean, sd)[0]) for v in range(k1)
    ]
    _, by_mean, by_sd = log_pseudolikelihood(np.arange(k1), np.array(share), k1)(mean, sd)
    assert (by_mean, by_sd) == pytest.approx((0, 0), abs=1e-10)


def test_sd_one_is_the_high_dimensional_law():
    task = curve(expected_power(2.4, 1.0, SIZES)[:, 0])
    two, one = TwoParameter().fit(task), HighDimensional("all").fit(task)
    assert (two.mean_, two.sd_) == pytest.approx((one.signal_, 1.0), abs=1e-6)


@METHODS
def test_embeddings_extrapolate(method):
    law = GaussianNearestNeighbor(10, 0.2)
    task = SourceTask.from_embeddings(*law.sample(300, repeats=2, random_seed=2))
    pred = TwoParameter(method).fit(task).predict([600, 3000])
    # Root mean square errors over repetitions are about 0.03.
    np.testing.assert_allclose(pred.mean, law.accuracy([600, 3000]), atol=0.09)


@unsound_data
@few_examples(10)
@given(seed=st.integers(0, 10**6), noise=st.floats(0, 0.1))
def test_least_squares_are_the_least_of_a_grid(seed, noise):
    rng = np.random.default_rng(seed)
    mean, sd = rng.uniform(0, 4), np.exp(rng.uniform(-2, 1.5))
    noisy = expected_power(mean, sd, SIZES)[:, 0] + noise * rng.normal(size=SIZES.size)
    task = curve(-np.sort(-np.clip(noisy, 0, 0.999)))
    model = TwoParameter().fit(task)
    accuracy = task.accuracy(SIZES)

    def squares(mean, sd):
        return np.sum((expected_power(mean, sd, SIZES)[:, 0] - accuracy) ** 2)

    found = squares(model.mean_, model.sd_)
    for sd in np.geomspace(0.05, 10, 7):
        for probit in np.linspace(-3, 5, 17):
            assert squares(probit * np.hypot(1, sd), sd) >= found - 1e-12


# Degenerate tasks


@unsound_data
@METHODS
@pytest.mark.parametrize(
    ("n_better", "limit"), [(np.repeat([0, 49], 25), 10), (np.full(50, 1), 0.05)]
)
def test_a_limit_of_the_sd_is_told(method, n_better, limit):
    model = TwoParameter(method).fit(ranked_task(n_better, 50))
    assert model.sd_ == pytest.approx(limit)
    assert "limit" in model.predict(100).notes[0]


@METHODS
def test_a_single_error(method):
    n_better = np.append(np.zeros(49, int), 1)
    pred = TwoParameter(method).fit(ranked_task(n_better, 50)).predict([50, 500])
    assert pred.mean[50] == pytest.approx(0.98, abs=0.002)
    assert 0.5 < pred.mean[500] < 0.98


def test_many_classes():
    """The binomial in z is 0.01 wide at 10,000 classes."""
    k1 = 10_000
    law = FavorabilityLaw(means=(2.3,), sds=(0.3,))
    n_better = law.sample(k1, random_seed=1).ranks[:800] - 1
    distinct, counts = np.unique(n_better, return_counts=True)
    objective = log_pseudolikelihood(distinct, counts / 800, k1)
    values = [objective(2.3, sd)[0] for sd in (0.25, 0.3, 0.35)]
    assert np.argmax(values) == 1
    # With so many competitors the losses show Z itself, whose likelihood is normal.
    z = ndtri((k1 - 1 - n_better + 0.5) / k1)
    log_normal = -0.5 * ((z - 2.3) / 0.3) ** 2 - np.log(0.3 * np.sqrt(2 * np.pi))
    log_density = 0.5 * z**2 + np.log(np.sqrt(2 * np.pi)) - np.log(k1)
    assert values[1] == pytest.approx(np.mean(log_normal + log_density), abs=2e-3)


# Parameters


def test_discriminability_is_the_normal_law():
    model = TwoParameter().fit(ranked_task([0, 0, 1, 2, 0, 3, 0, 0], 8))
    u = np.array([0, 0.3, 0.9, 1])
    expected = ndtr((ndtri(u) - model.mean_) / model.sd_)
    np.testing.assert_allclose(model.discriminability(u), expected)
    assert model.discriminability(u)[[0, 3]].tolist() == [0, 1]
    with pytest.raises(DataError, match=r"^u: "):
        model.discriminability([0.5, 1.5])


def test_unknown_method():
    with pytest.raises(DataError, match=r"^method"):
        TwoParameter("moments").fit(ranked_task([0, 0, 1, 2], 4))
