"""A known finite population: what the tested part of it says of the whole."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import hypergeom, norm

from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.predict.finite_population import population_accuracy
from classex_bayes.bayes.storage import load, save
from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.law import MixtureLaw
from classex_bayes.exceptions import DataError
from classex_bayes.simulate import GaussianNearestNeighbor
from classex_bayes.task.source_task import SourceTask
from studies.laws import UniformSphere

BASIS = RadialBasis.regular(-4, 8, 0.5)
K1 = np.array([10, 50, 200])


@pytest.fixture(scope="module")
def weights():
    """One law of Z, near that of the pilot, as 20,000 draws."""
    one = np.exp(-0.5 * ((BASIS.knots - 2.8) / 1.0) ** 2)
    return np.broadcast_to(one / one.sum(), (2, 10_000, one.size))


def dependence_of(task, **changes):
    return replace(task.table.variance.dependence, **changes)


def drawn(weights, task, k, population, dependence=None):
    grid = task.grid(25)
    observed = xr.DataArray(task.accuracy(grid), {"k": grid}, "k")
    dependence = dependence or task.table.variance.dependence
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
    assert dependence.carried_over == pytest.approx(b)
    assert found.mean() == pytest.approx(a + b * (pilot.task.accuracy(200)[0] - a), abs=2e-4)
    assert found.std() == pytest.approx(np.sqrt(a * (1 - a) * 0.4 * (1 - b) / 200), rel=0.02)


@pytest.mark.parametrize(("k1", "size"), [(200, 500), (4, 10)])
def test_a_part_of_the_classes_seen(weights, pilot, k1, size):
    # At k = K the answers are those of all classes: closed forms of the nested events.
    few = SourceTask.from_ranks([1, 1, 2, 1, 1, 1, 1, 1], np.arange(8) % 4, n_classes=4)
    task = pilot.task if k1 == 200 else few
    dependence = dependence_of(task, within=0.3, between=0.1, repeats=2.0)
    found = drawn(weights, task, [size], size, dependence)[..., 0]
    (before, after), b, f = expected(weights, [k1, size]), 0.4 / 0.75, k1 / size
    mean = after + f * b * after / before * (task.accuracy(k1)[0] - before)
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
    share = 200 / population * dependence.carried_over
    kept = share * covariance(k, j, population) / covariance(j, j, 200)
    mean = after + kept * (pilot.task.accuracy(j)[0] - before)
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
    assert found.description == "expected accuracy (300 classes in all)"
    assert_array_equal(found.draws.values, fitted.predict_population([200, 300], 300).draws.values)
    assert fitted.idata["predictions"]["accuracy"].attrs["population"] == 300
    again = load(save(fitted, tmp_path / "model.nc"))
    assert_array_equal(again.predict_population([200, 300], 300).draws.values, found.draws.values)


def test_refused(fitted):
    with pytest.raises(DataError, match=r"^population:"):
        fitted.predict_population(200, 199)
    with pytest.raises(DataError, match=r"^k:"):
        fitted.predict_population([200, 301], 300)
    with pytest.raises(DataError, match=r"^population:"):
        fitted.predict_population(200, 300.5)


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
    fit = {
        "sampler": {"draws": 500, "tune": 500, "chains": 2},
        "random_seed": 1,
        "progressbar": False,
    }
    model = BayesianExtrapolator().fit(task, **fit)
    known = float(model.predict_population(300, 300).draws.std())
    unknown = float(model.predict(300).draws.std())
    # The finite population correction, by the 30 tested classes, and all of them for contrast.
    assert known > 0.8 * unknown
    whole = SourceTask.from_embeddings(*sample)
    tested = BayesianExtrapolator().fit(whole, **fit)
    assert tested.predict_population(300, 300).draws.std() < 0.8 * tested.predict(300).draws.std()
