"""Several pilots in one posterior: their data, their record, and everything downstream."""

import numpy as np
import pytest
import xarray as xr
from helpers import short_fit
from numpy.testing import assert_allclose, assert_array_equal

from classex_bayes import BayesianExtrapolator, SourceTask, load, save
from classex_bayes.bayes.finite_accuracy import predictive_group
from classex_bayes.bayes.fit_record import FitRecord
from classex_bayes.bayes.idata import data_of, pooled_groups, task_part
from classex_bayes.bayes.model.likelihoods import BernsteinData, PowerData, coarsening
from classex_bayes.core import MixtureLaw, RadialBasis
from classex_bayes.exceptions import DataError, DataWarning
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
    data, tree = pooled_groups(tasks, BASIS)
    sizes = [task.n_test / task.design_effect() for task in tasks]
    alone = [
        coarsening(sum(sizes)) / coarsening(n) * pooled_groups([task], BASIS)[0].log_likelihood(w)
        for task, n in zip(tasks, sizes, strict=True)
    ]
    assert isinstance(data, PowerData if curves else BernsteinData)
    assert data.log_likelihood(w) == pytest.approx(sum(alone))
    assert data_of(tree).log_likelihood(w) == pytest.approx(sum(alone))
    assert data.padded().log_likelihood(w) == pytest.approx(sum(alone))
    if not curves:
        assert data.padded().matrix.shape == (96, BASIS.knots.size)


def test_one_accuracy_curve_makes_all_tasks_curves(tasks):
    curve = SourceTask.from_accuracies([10, 50], [0.9, 0.8], n_test=100, n_classes=50)
    data, tree = pooled_groups([tasks[1], curve], BASIS)
    assert isinstance(data, PowerData)
    assert FitRecord.of_tasks([tasks[1], curve]).made_from == "accuracies, embeddings"
    weights = flat_weights(3)
    group = predictive_group(
        weights, tree, MixtureLaw(BASIS, weights.values), np.random.default_rng(1)
    )
    assert task_part(group, 1)["k"].values.tolist() == [10, 50]


def flat_weights(draws):
    values = np.full((1, draws, BASIS.knots.size), 1 / BASIS.knots.size)
    coords = {"chain": [0], "draw": range(draws)}
    return xr.DataArray(values, coords, ("chain", "draw", "knot"))


def test_replicates_have_the_noise_of_their_task():
    tasks = [independent(60, 15), independent(30, 8)]
    data, tree = pooled_groups(tasks, BASIS)
    weights = flat_weights(4000)
    law, rng = MixtureLaw(BASIS, weights.values), np.random.default_rng(1)
    group = predictive_group(weights, tree, law, rng)
    for number, task in enumerate(tasks):
        histogram = task_part(group, number)["rank_histogram"]
        assert_allclose(histogram.sum("bin"), task.n_test)
        right, n = histogram[0, :, 0], task.n_test
        share = data.part(number).matrix[0].mean()
        effective = max(round(n / task.design_effect()), 1)
        assert right.mean() == pytest.approx(n * share, abs=0.5)
        sd = n * np.sqrt(share * (1 - share) / effective)
        assert float(right.std()) == pytest.approx(sd, rel=0.05)


def test_the_record_adds_information_and_averages_correlations(tasks):
    record, alone = FitRecord.of_tasks(tasks), FitRecord.of_tasks(tasks[:1])
    information = [task.n_test / task.design_effect() for task in tasks]
    assert record.n_test / record.design_effect == pytest.approx(sum(information))
    dependences = [task.variance.dependence for task in tasks]
    assert dependences[0].within != dependences[1].within
    for name in ("within", "between"):
        small, large = (getattr(dependence, name) for dependence in dependences)
        assert getattr(record.dependence, name) == pytest.approx((30 * small + 200 * large) / 230)
    assert record.dependence.n_classes == record.n_classes == 200
    assert alone.dependence == dependences[0]
    assert alone.design_effect == tasks[0].design_effect()


# Fitted models


@pytest.mark.nightly
def test_the_pool_knows_more_than_its_parts(tasks, pilot):
    settings = {"sampler": {"draws": 1500, "chains": 2}, "random_seed": 1, "progressbar": False}
    alone, both = (
        BayesianExtrapolator(evidence="ranks").fit(of, **settings).predict([200, 800])
        for of in (tasks[1], tasks)
    )
    assert np.all(both.draws.std(["chain", "draw"]) < 1.03 * alone.draws.std(["chain", "draw"]))
    interval, truth = both.interval(0.999, "eti"), pilot.law.accuracy([200, 800])
    assert np.all((interval["lower"] < truth) & (truth < interval["upper"]))


def test_what_is_told(pooled, tasks):
    assert "fitted to 200 classes and 490 instances in 2 tasks" in repr(pooled)
    prediction = pooled.predict(1000)
    assert prediction.n_classes == 200
    assert "pilots of 30, 200 classes are assumed to be independent" in prediction.notes
    assert pooled.task is None and pooled.tasks == tasks and not pooled.is_loaded
    assert pooled.discriminability([0.5, 0.99]).shape == (2, 500, 2)


def test_measured_accuracy_is_nested_in_the_largest(pooled, pilot):
    found = pooled.predict_test(200, nested=True, repeats=2)
    assert_allclose(found.draws, pilot.task.accuracy(200)[0], atol=1e-3)


def test_replicates_have_the_shape_of_each_task(pooled, tasks):
    tree = pooled.sample_posterior_predictive(random_seed=1)
    group, observed = (
        tree[name].to_dataset() for name in ("posterior_predictive", "observed_data")
    )
    for number, task in enumerate(tasks):
        part, seen = task_part(group, number), task_part(observed, number)
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
    weights = pooled.weights_.values
    data = data_of(pooled.idata).arrays()
    share = np.maximum(weights @ data["matrix"].T, 1e-300)
    expected = np.log(share) @ (data["counts"] * data["precision"])
    assert_allclose(group["rank_histogram"].sum("class"), expected)
    assert "rank_histogram" in pooled.model.named_vars


def test_files(pooled, tasks, tmp_path):
    again = load(save(pooled, tmp_path / "pool.nc"))
    assert_array_equal(again.predict(999).draws.values, pooled.predict(999).draws.values)
    assert repr(again) == repr(pooled) and again.predict(999).notes == pooled.predict(999).notes
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


def test_refused(pooled, tasks):
    model = BayesianExtrapolator()
    with pytest.raises(DataError, match=r"^task:"):
        model.fit([])
    with pytest.raises(DataError, match=r"^task:"):
        model.fit([tasks[0], 3])
    with pytest.raises(DataError, match=r"^task:"):
        model.fit([tasks[0], tasks[0]])
    with pytest.raises(DataError, match=r"^population:"):
        pooled.predict_population(300, 400)


def test_names_that_occur_again_are_noted():
    named = [independent(5, 2, list("abcde")), independent(4, 1, list("bcyz"))]
    notes = FitRecord.of_tasks(named).notes
    assert any("2 names of classes occur again" in note for note in notes)


def test_pilots_of_different_classifiers_contradict_their_pool():
    """Of 60 classes one got 54 right and the other 12; two that differ by chance are one law."""
    model = BayesianExtrapolator()
    with pytest.warns(DataWarning, match="one classifier"):
        model.fit([independent(60, 6), independent(60, 48)], **short_fit(100))
    assert model.contradiction_ in " ".join(model.predict(60).notes)
    alike = [independent(60, 20), independent(60, 28)]  # 1.5 standard errors apart
    assert not model.fit(alike, **short_fit(100)).contradiction_
