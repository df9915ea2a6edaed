"""Accuracies of a test, a finite population and a replicate: moments and simulated tasks."""

from dataclasses import replace
from math import comb

import numpy as np
import pytest
import xarray as xr
from helpers import short_fit
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr
from scipy.stats import binom, hypergeom, norm

from classex_bayes import BayesianExtrapolator, SourceTask, load, save
from classex_bayes.bayes import finite_accuracy
from classex_bayes.bayes.finite_accuracy import (
    population_accuracy,
    single_test_accuracy,
)
from classex_bayes.bayes.model.likelihoods import BernsteinData
from classex_bayes.core import MixtureLaw, RadialBasis
from classex_bayes.core.dependence import AnswerDependence, answer_dependence
from classex_bayes.simulate import GaussianNearestNeighbor
from studies.laws import HierarchicalNormal, UniformSphere

BASIS, COARSE = RadialBasis.regular(-4, 8, 0.5), RadialBasis.regular(-2, 5, 0.5)
WEIGHTS = np.random.default_rng(2).dirichlet(np.ones(COARSE.knots.size))
K1 = np.array([10, 50, 200])
PILOT = AnswerDependence(0.25, 0.1, 1.0, 5, 60)


def independent(accuracy, k, repeats, dependence=PILOT, draws=10_000):
    expected = np.broadcast_to(np.asarray(accuracy, dtype=float), (2, draws, len(k)))
    rng = np.random.default_rng(1)
    return single_test_accuracy(expected, np.array(k), repeats, dependence, rng)


@pytest.mark.parametrize("repeats", [1, 5])
@pytest.mark.parametrize("between", [-0.5, 0.1, 0.8])
def test_moments_are_those_of_the_dependence(repeats, between):
    pilot = AnswerDependence(0.25, between, 1.0, 5, 60)
    accuracy, k = np.array([0.97, 0.5, 0.01]), np.array([60, 240, 10**12])
    draws = independent(accuracy, k, repeats, pilot)
    variance = pilot.variance(accuracy, k, repeats)
    error = np.sqrt(variance / (2 * 10_000))
    assert np.all(np.abs(draws.mean(axis=(0, 1)) - accuracy) < 4 * error)
    assert_allclose(draws.var(axis=(0, 1)), variance, rtol=0.06)


def test_the_variance_holds_for_few_answers_too():
    pilot = AnswerDependence(0.25, 1.0, 1.0, 5, 60)
    assert pilot.design_effect(5) == 7
    found = independent([0.5], [4], 5, pilot)
    assert found.var() == pytest.approx(0.25 / 20 * 7, rel=0.05)


def test_draws_are_shares_that_a_test_can_show():
    draws = independent([0.999, 0.7], [20, 33], 3)
    right = draws * np.array([60, 99])
    assert_allclose(right, np.rint(right), atol=1e-9)
    assert draws.min() >= 0 and draws.max() == 1


def test_certain_answers_stay_certain():
    assert_array_equal(independent([1.0, 0.0], [50, 50], 5, draws=50)[0, 0], [1, 0])


def test_weights_of_classes_widen_the_noise():
    even, uneven = (AnswerDependence(0.25, 0.0, s, 5, 60) for s in (1.0, 2.0))
    narrow, wide = (independent([0.5], [100], 5, pilot).var() for pilot in (even, uneven))
    assert wide / narrow == pytest.approx(2, rel=0.1)


def test_more_dependence_than_answers():
    pilot = AnswerDependence(1.0, 50.0, 1.0, 5, 60)
    draws = independent([0.3], [4], 2, pilot)
    assert np.isin(draws, [0, 1]).mean() > 0.9
    assert draws.mean() == pytest.approx(0.3, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(
    "law",
    [
        GaussianNearestNeighbor(10, 0.2),
        HierarchicalNormal(50, group_variance=3.0, class_variance=0.1, noise_variance=0.05),
        GaussianNearestNeighbor(10, 0.3, template_variance=0),
    ],
)
def test_intervals_of_the_posterior_hold_what_is_measured(law, fit, capsys):
    # A minute and a half on one core for the three laws.
    k1, size, held = 100, np.array([400]), []
    for seed in np.random.SeedSequence(11).spawn(50):
        of_pilot, other = seed.spawn(2)
        task = SourceTask.from_embeddings(*law.sample(k1, repeats=2, random_seed=of_pilot))
        variance = float(task.accuracy_cov(task.grid())[-1, -1])
        found = answer_dependence(task.ranks - 1, task.y, np.full(k1, 1 / k1), variance)
        draws = fit(task).predict(size).accuracy.values
        rng = np.random.default_rng(of_pilot)
        predicted = single_test_accuracy(draws, size, 2, found, rng)
        sample = law.sample(400, repeats=2, random_seed=other)
        truth = (SourceTask.from_embeddings(*sample).ranks == 1).mean()
        low, high = np.quantile(predicted, [0.05, 0.95])
        held.append(low - 1e-9 <= truth <= high + 1e-9)
    with capsys.disabled():
        print(f"\n{law}: {np.mean(held):.2f}")
    assert np.mean(held) > 0.8


@pytest.fixture(scope="module")
def weights():
    """One law of Z, near that of the pilot, as 20,000 draws."""
    one = np.exp(-0.5 * ((BASIS.knots - 2.8) / 1.0) ** 2)
    return np.broadcast_to(one / one.sum(), (2, 10_000, one.size))


def dependence_of(task, **changes):
    return replace(task.variance.dependence, **changes)


def drawn(weights, task, k, population, dependence=None):
    grid = task.grid(25)
    observed = xr.DataArray(task.accuracy(grid), {"k": grid}, "k")
    dependence = dependence or task.variance.dependence
    law, rng = MixtureLaw(BASIS, weights), np.random.default_rng(1)
    return population_accuracy(law, observed, dependence, np.array(k), population, rng)


def expected(weights, k):
    return weights[0, 0] @ BASIS.accuracy(np.array(k, dtype=float)).T


def test_all_classes_with_instances_without_end_were_seen(weights, pilot):
    k = pilot.task.grid(25)[::6]
    found = drawn(weights, pilot.task, k, 200, dependence_of(pilot.task, repeats=1e12))
    assert_allclose(found, np.broadcast_to(pilot.task.accuracy(k), found.shape), atol=1e-4)


def test_all_classes_seen_leave_the_noise_of_instances(weights, pilot):
    dependence = dependence_of(pilot.task, within=0.3, between=0.1, repeats=2.0)
    found = drawn(weights, pilot.task, [200], 200, dependence)[..., 0]
    a = expected(weights, [200])[0]
    b = 0.4 / (0.35 + 0.4)
    assert found.mean() == pytest.approx(a + b * (pilot.task.accuracy(200) - a), abs=2e-4)
    assert found.std() == pytest.approx(np.sqrt(a * (1 - a) * 0.4 * (1 - b) / 200), rel=0.02)


@pytest.mark.parametrize(("k1", "size"), [(200, 500), (4, 10)])
def test_a_part_of_the_classes_seen(weights, pilot, k1, size):
    # At k = K the answers are those of all classes: closed forms of the nested events.
    few = SourceTask.from_ranks([1, 1, 2, 1, 1, 1, 1, 1], np.arange(8) % 4, n_classes=4)
    task = pilot.task if k1 == 200 else few
    dependence = dependence_of(task, within=0.3, between=0.1, repeats=2.0)
    found = drawn(weights, task, [size], size, dependence)[..., 0]
    (before, after), b, f = expected(weights, [k1, size]), 0.4 / 0.75, k1 / size
    mean = after + f * b * after / before * (task.accuracy(k1) - before)
    explained = f * b * after**2 * (1 - before) / before
    variance = 0.4 / size * (after * (1 - after) - explained)
    # Draws beyond 1 are cut off.
    cut = norm(mean, np.sqrt(variance))
    middle = cut.expect(lambda x: np.clip(x, 0, 1))
    assert found.mean() == pytest.approx(middle, abs=3e-4 if k1 == 200 else 3e-3)
    second = cut.expect(lambda x: np.clip(x, 0, 1) ** 2)
    assert found.std() == pytest.approx(np.sqrt(second - middle**2), rel=0.02)


@pytest.mark.parametrize(("k", "population"), [(100, 240), (230, 300)])
def test_competitors_in_common_are_drawn_without_replacement(weights, pilot, k, population):
    """Answers among k and among j of m classes: over the law of the competitors in common."""
    dependence = dependence_of(pilot.task, within=0.3, between=0.1, repeats=2.0)

    def covariance(first, second, among):
        common = np.arange(min(first, second))
        chance = hypergeom(among - 1, first - 1, second - 1).pmf(common)
        joint = expected(weights, first + second - 1 - common) @ chance
        return joint - np.prod(expected(weights, [first, second]))

    j = min(k, 200)
    after, before = expected(weights, [k, j])
    share = 200 / population * 0.4 / 0.75  # of the pilot, and of its classes in the population
    kept = share * covariance(k, j, population) / covariance(j, j, 200)
    mean = after + kept * (pilot.task.accuracy(j) - before)
    unexplained = covariance(k, k, population) - kept * covariance(k, j, population)
    sd = np.sqrt(dependence.shared / population * unexplained)
    found = drawn(weights, pilot.task, [k], population, dependence)[..., 0]
    assert found.mean() == pytest.approx(mean, abs=5e-4)
    assert found.std() == pytest.approx(sd, rel=0.03)


def test_a_population_without_end_is_the_expectation(pilot, weights):
    assert_allclose(
        drawn(weights, pilot.task, K1, 10**12),
        np.broadcast_to(expected(weights, K1), (2, 10_000, 3)),
        atol=1e-4,
    )


def test_draws_are_curves_of_shares(pilot, weights):
    found = drawn(weights, pilot.task, [2, 50, 100, 150, 200, 250, 300], 300)
    assert found.min() >= 0 and found.max() <= 1
    assert np.mean(np.diff(found, axis=-1) <= 1e-6) > 0.98


def test_perfect_pilots_stay_within_bounds(weights):
    task = SourceTask.from_ranks([1] * 40, range(40), n_classes=40)
    sure = np.zeros((1, 5, BASIS.knots.size))
    sure[..., -1] = 1
    assert np.all(drawn(sure, task, [2, 40, 60], 60) > 0.999)


def test_bare_curves(weights):
    curve = SourceTask.from_accuracies([10, 40], [0.9, 0.8], n_test=100, n_classes=50)
    assert np.isfinite(drawn(weights[:, :50], curve, [5, 20, 45, 50, 70], 70)).all()


@pytest.mark.nightly
def test_intervals_narrow_towards_the_whole(fitted, pilot, tmp_path):
    sd = [
        float(fitted.predict_population(200, size).draws.values.std())
        for size in (200, 300, 1000, 10**6)
    ]
    assert np.all(np.diff(sd) > 0)
    assert sd[-1] == pytest.approx(float(fitted.predict(200).draws.values.std()), rel=0.02)
    assert sd[0] < 0.85 * sd[-1]
    found = fitted.predict_population([200, 300], 300)
    assert_array_equal(found.draws.values, fitted.predict_population([200, 300], 300).draws.values)
    again = load(save(fitted, tmp_path / "model.nc"))
    assert_array_equal(again.predict_population([200, 300], 300).draws.values, found.draws.values)


@pytest.mark.slow
@pytest.mark.parametrize("law", [GaussianNearestNeighbor(10, 0.2), UniformSphere(16, 0.004)])
@pytest.mark.parametrize("repeats", [1, 5])
def test_coverage_of_finite_populations(law, repeats):
    size, many, held, widths = 400, 30, [], []
    for seed in range(60):
        probes, gallery, y = law.sample(size, repeats=many + repeats, random_seed=seed)
        turn = np.arange(y.size) - np.searchsorted(y, y)
        whole = SourceTask.from_embeddings(probes[turn >= repeats], gallery, y[turn >= repeats])
        for k1 in (100, 320):
            mine, k = (turn < repeats) & (y < k1), [k1, size]
            task = SourceTask.from_embeddings(probes[mine], gallery[:k1], y[mine])
            model = BayesianExtrapolator().fit(
                task,
                sampler={"draws": 300, "tune": 300, "chains": 2, "cores": 1}, random_seed=seed,
                progressbar=False,
            )  # fmt: skip
            truth = whole.accuracy(k)
            interval = model.predict_population(k, size).interval(0.9, "eti")
            held.append((interval["lower"] < truth) & (truth < interval["upper"]))
            wide = model.predict(k).interval(0.9, "eti").diff(axis=1)["upper"]
            widths.append(interval.diff(axis=1)["upper"] / wide)
    assert 0.83 <= np.mean(held) <= 0.98
    assert np.mean(widths) < 1


def test_templates_without_instances_are_no_tested_classes():
    """30 of 300 classes were tested among templates of all: much is left to vary."""
    sample = GaussianNearestNeighbor(dim=10, noise_variance=0.2).sample(
        300, repeats=8, random_seed=1
    )
    rows = sample.y < 30
    task = SourceTask.from_embeddings(
        sample.probes[rows], sample.gallery, sample.y[rows], untested="competitors"
    )
    fit = short_fit(500, 500)
    model = BayesianExtrapolator(evidence="ranks").fit(task, **fit)
    known = float(model.predict_population(300, 300).draws.std())
    unknown = float(model.predict(300).draws.std())
    # The finite population correction, by the 30 tested classes, and all of them for contrast.
    assert known > 0.8 * unknown
    whole = SourceTask.from_embeddings(*sample)
    tested = BayesianExtrapolator(evidence="ranks").fit(whole, **fit)
    assert tested.predict_population(300, 300).draws.std() < 0.8 * tested.predict(300).draws.std()


def law_of_n_better(k1):
    """Chances of 0..k1 - 1 better classes by plain quadrature over Z."""
    z = np.linspace(-8, 10, 4001)
    density = norm.pdf(z[:, None], COARSE.knots, COARSE.bandwidth) @ WEIGHTS
    chances = binom.pmf(np.arange(k1)[:, None], k1 - 1, ndtr(-z))
    return chances @ density * (z[1] - z[0])


def test_histograms_have_the_noise_of_the_effective_sample():
    k1, n, deff = 20, 300, 5.0
    matrix = COARSE.bin_probabilities(np.arange(k1), k1)
    data = BernsteinData(matrix, np.full(k1, n / k1), 1 / deff)
    weights = np.broadcast_to(WEIGHTS, (2, 4000, WEIGHTS.size))
    draws = data.replicates(weights, np.random.default_rng(0))
    assert draws.shape == (2, 4000, k1)
    assert_allclose(draws.sum(axis=-1), n)
    share, draws = law_of_n_better(k1), draws.reshape(-1, k1)
    sd = n * np.sqrt(share * (1 - share) / 60)
    assert np.all(np.abs(draws.mean(axis=0) - n * share) < 4.5 * sd / np.sqrt(8000))
    assert_allclose(draws.std(axis=0), sd, rtol=0.1)


@pytest.mark.parametrize("effective", [40, 5000])
def test_accuracies_have_the_noise_of_the_effective_sample(effective, constants):
    k1, k = 30, np.array([2, 5, 15, 30])
    law = MixtureLaw(COARSE, np.broadcast_to(WEIGHTS, (2, 2000, WEIGHTS.size)))
    rng = np.random.default_rng(1)
    # Many instances are simulated by fewer, whose noise is scaled.
    with constants(finite_accuracy, _MOST_INSTANCES=500):
        draws = finite_accuracy.replicated_accuracy(law, (k1, effective), k, rng)
    assert draws.shape == (2, 2000, 4) and draws.min() >= 0 and draws.max() <= 1
    share, wins = law_of_n_better(k1), np.arange(k1)[::-1]
    correct = np.array([[comb(v, size - 1) / comb(k1 - 1, size - 1) for v in wins] for size in k])
    mean = correct @ share
    sd = np.sqrt((correct**2 @ share - mean**2) / effective)
    draws = draws.reshape(-1, 4)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 4 * sd / np.sqrt(4000))
    assert_allclose(draws.std(axis=0), sd, rtol=0.06)
