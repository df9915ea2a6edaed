"""Several pilots in one posterior: their data, their attributes, and everything downstream."""

import numpy as np
import pytest
import xarray as xr
from helpers import short_fit
from numpy.testing import assert_allclose, assert_array_equal

from classex_bayes import BayesianExtrapolator, SourceTask, load, save
from classex_bayes.bayes.idata import pooled_groups
from classex_bayes.bayes.model.likelihoods import coarsening
from classex_bayes.core import RadialBasis
from classex_bayes.exceptions import DataWarning
from classex_bayes.simulate import GaussianNearestNeighbor

LAW = GaussianNearestNeighbor(dim=10, noise_variance=0.2)
BASIS = RadialBasis.regular(-4, 8, 0.5)


def independent(k1, n_errors, names=None):
    """One instance of each class, so that the information is the same for each of them."""
    ranks = [2] * n_errors + [1] * (k1 - n_errors)
    return SourceTask.from_ranks(ranks, names or range(k1), n_classes=k1, classes=names)


@pytest.fixture(scope="module")
def tasks(pilot):
    """Two independent pilots of one law; the first has fewer classes than bins."""
    small = SourceTask.from_embeddings(*LAW.sample(30, repeats=3, random_seed=5))
    return small, pilot.task


@pytest.fixture(scope="module")
def pooled(fit, tasks):
    return fit(tasks)


# Data


@pytest.mark.parametrize("curves", [False, True])
def test_log_likelihoods_are_added(tasks, curves):
    if curves:
        law = [(task, task.grid()) for task in tasks]
        tasks = [
            SourceTask.from_accuracies(
                k, task.accuracy(k), n_test=task.n_test, n_classes=task.n_classes
            )
            for task, k in law
        ]
    w = np.random.default_rng(1).dirichlet(np.ones(BASIS.knots.size))
    data, _ = pooled_groups(tasks, BASIS)
    sizes = [task.n_test / task.design_effect() for task in tasks]
    alone = [
        coarsening(sum(sizes)) / coarsening(n) * pooled_groups([task], BASIS)[0].log_likelihood(w)
        for task, n in zip(tasks, sizes, strict=True)
    ]
    assert data.log_likelihood(w) == pytest.approx(sum(alone))
    assert data.padded().log_likelihood(w) == pytest.approx(sum(alone))


def part_of(group, number):
    """Variables of one task in a group of several."""
    parts = {dim: group[f"{dim}_task"].values == number for dim in ("bin", "k")}
    return group.isel({dim: np.flatnonzero(here) for dim, here in parts.items()})


def test_replicates_have_the_noise_of_their_task(fit):
    tasks = [independent(60, 15), independent(30, 8)]
    model = fit(tasks)
    replicated = model.sample_posterior_predictive(random_seed=1)["posterior_predictive"]
    bin_task = replicated["bin_task"].values
    for number, task in enumerate(tasks):
        histogram, n = part_of(replicated.to_dataset(), number)["rank_histogram"], task.n_test
        assert_allclose(histogram.sum("bin"), n)
        first = model.idata["constant_data"]["matrix"].values[bin_task == number][0]
        share = model.weights_.values @ first
        effective = max(round(n / task.design_effect()), 1)
        noise = n * np.sqrt(share * (1 - share) / effective)
        standard = (histogram.values[..., 0] - n * share) / noise  # of 1,000 draws
        assert abs(standard.mean()) < 4 / np.sqrt(1000)
        assert standard.std() == pytest.approx(1, abs=4 / np.sqrt(2 * 1000))


# Fitted models


@pytest.mark.nightly
def test_the_pool_knows_more_than_its_parts(pilot):
    settings = {"sampler": {"draws": 1500, "chains": 2}, "random_seed": 1, "progressbar": False}
    parts = pilot.task, SourceTask.from_embeddings(*LAW.sample(200, repeats=2, random_seed=6))
    *alone, both = (
        BayesianExtrapolator(evidence="ranks").fit(of, **settings).predict([200, 800])
        for of in (*parts, parts)
    )
    # About the square root of 1/2. The ratio has a Monte Carlo error of 0.04.
    for part in alone:
        assert np.all(both.draws.std(["chain", "draw"]) < 0.9 * part.draws.std(["chain", "draw"]))
    interval, truth = both.interval(0.999, "eti"), pilot.law.accuracy([200, 800])
    assert np.all((interval["lower"] < truth) & (truth < interval["upper"]))


def test_what_is_told(pooled, tasks):
    prediction = pooled.predict(1000)
    assert prediction.n_classes == 200
    assert any("independent" in note for note in prediction.notes)
    assert pooled.task is None and pooled.tasks == tasks and not pooled.is_loaded
    assert pooled.discriminability([0.5, 0.99]).shape == (2, 500, 2)


def test_replicates_have_the_shape_of_each_task(pooled, tasks):
    tree = pooled.sample_posterior_predictive(random_seed=1)
    group, observed = (
        tree[name].to_dataset() for name in ("posterior_predictive", "observed_data")
    )
    for number, task in enumerate(tasks):
        part, seen = part_of(group, number), part_of(observed, number)
        assert_array_equal(part["k"], seen["k"])
        assert_array_equal(seen["accuracy"], task.accuracy(seen["k"].values))
        assert_allclose(part["rank_histogram"].sum("bin"), task.n_test)
        error = part["accuracy"].mean(["chain", "draw"]) - seen["accuracy"]
        assert np.all(np.abs(error) < 4 * part["accuracy"].std(["chain", "draw"]) + 0.01)
    prior = pooled.sample_prior_predictive(draws=3)["prior_predictive"]
    assert prior["rank_histogram"].sizes["bin"] == 78


def test_log_likelihood_by_class(pooled):
    group = pooled.compute_log_likelihood()["log_likelihood"].to_dataset()
    assert group["class_task"].values.tolist() == [0] * 30 + [1] * 200
    observed, constant = (pooled.idata[g] for g in ("observed_data", "constant_data"))
    of_ranks = pooled.weights_.values @ constant["matrix"].values.T
    precision = constant["precision"].values[observed["bin_task"].values]
    expected = np.log(of_ranks) @ (observed["rank_histogram"].values * precision)
    assert_allclose(group["rank_histogram"].sum("class"), expected)
    assert "rank_histogram" in pooled.model.named_vars


def test_files(pooled, tasks, tmp_path):
    again = load(save(pooled, tmp_path / "pool.nc"))
    assert_array_equal(again.predict(999).draws.values, pooled.predict(999).draws.values)
    assert again.predict(999).notes == pooled.predict(999).notes
    assert again.tasks == () and again.task is None and again.is_loaded
    assert again.is_fitted_to(tasks) and pooled.is_fitted_to(list(tasks))
    for other in (tasks[0], tasks[::-1], tasks[:1]):
        assert not again.is_fitted_to(other) and not pooled.is_fitted_to(other)
    xr.testing.assert_equal(
        *(m.compute_log_likelihood(tasks)["log_likelihood"].to_dataset() for m in (pooled, again))
    )
    ours, theirs = (m.sample_posterior_predictive() for m in (pooled, again))
    assert (
        theirs["posterior_predictive"]
        .to_dataset()
        .equals(ours["posterior_predictive"].to_dataset())
    )


def test_pilots_of_different_classifiers_contradict_their_pool():
    """Of 60 classes one got 54 right and the other 12; two that differ by chance are one law."""
    model = BayesianExtrapolator()
    with pytest.warns(DataWarning):
        model.fit([independent(60, 6), independent(60, 48)], **short_fit(100))
    assert any("one classifier" in note for note in model.predict(60).notes)
    model.fit([independent(60, 20), independent(60, 28)], **short_fit(100))
    assert not any("one classifier" in note for note in model.predict(60).notes)
