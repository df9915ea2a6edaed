"""Several pilots in one posterior: weights of what they share, and everything downstream."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.finite_accuracy import predictive_group
from classex_bayes.bayes.idata import class_log_likelihood
from classex_bayes.bayes.model.likelihoods import BernsteinData, PowerData, likelihood_data
from classex_bayes.bayes.model.priors import MixturePrior
from classex_bayes.bayes.pooling import (
    data_of,
    pool_weights,
    pooled_dependence,
    pooled_groups,
    task_part,
)
from classex_bayes.bayes.storage import load, save
from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.law import MixtureLaw
from classex_bayes.exceptions import DataError, DataWarning
from classex_bayes.simulate import GaussianNearestNeighbor
from classex_bayes.task.source_task import SourceTask

LAW = GaussianNearestNeighbor(dim=10, noise_variance=0.2)
BASIS = RadialBasis.regular(-4, 8, 0.5)


def independent(k1, n_errors, names=None):
    """One instance of each class, so that the information is the same for each of them."""
    ranks = [2] * n_errors + [1] * (k1 - n_errors)
    return SourceTask.from_ranks(ranks, names or range(k1), n_classes=k1, classes=names)


def information(tasks):
    return np.array([task.n_test / task.design_effect() for task in tasks])


@pytest.fixture(scope="module")
def tasks(pilot):
    """Two independent pilots of one law; the first has fewer classes than bins."""
    small = SourceTask.from_embeddings(*LAW.sample(30, repeats=3, random_seed=5))
    return small, pilot.task


@pytest.fixture(scope="module")
def pooled(fit, tasks):
    return fit(tasks)


# Weights


def test_independent_pilots_count_in_full():
    tasks = [independent(40, 8), independent(80, 16)]
    assert_array_equal(pool_weights(tasks, "nothing"), 1)
    named = [independent(5, 2, list("abcde")), independent(4, 2, list("wxyz"))]
    assert_allclose(pool_weights(named, "instances"), 1)


def test_a_part_of_another_adds_nothing():
    tasks = [independent(40, 10), independent(160, 40), independent(80, 20)]
    assert_allclose(pool_weights(tasks, "instances"), [0, 1, 0], atol=1e-6)


def test_copies_share_what_one_of_them_knows():
    copies = [independent(40, 8) for _ in range(3)]
    assert_allclose(pool_weights(copies, "instances"), 1 / 3, rtol=2e-3)


def test_half_of_the_classes_in_common():
    names = [f"c{j}" for j in range(60)]
    tasks = [independent(40, 8, names[:40]), independent(40, 8, names[20:])]
    # Two means with correlation 1/2: each counts 1 / (1 + 1/2).
    assert_allclose(pool_weights(tasks, "instances"), 2 / 3)
    inherited = pooled_dependence(tasks).carried_over
    assert_allclose(pool_weights(tasks, "classes"), 1 / (1 + inherited / 2))


@given(
    sizes=st.lists(st.integers(8, 90), min_size=2, max_size=5),
    named=st.lists(st.booleans(), min_size=5, max_size=5),
    start=st.lists(st.integers(0, 60), min_size=5, max_size=5),
    shared=st.sampled_from(["classes", "instances"]),
)
def test_a_pool_knows_what_its_best_task_knows(sizes, named, start, shared):
    tasks = [
        independent(k1, k1 // 4, list(range(first, first + k1)) if names else None)
        for k1, names, first in zip(sizes, named, start, strict=False)
    ]
    weight, known = pool_weights(tasks, shared), information(tasks)
    assert np.all((weight >= 0) & (weight <= 1))
    assert (1 - 5e-3) * known.max() <= weight @ known <= known.sum() * (1 + 1e-9)


@pytest.mark.parametrize("shared", ["nothing", "classes", "instances"])
def test_variance_of_the_pooled_mean(shared):
    # Means of normal class effects and normal instances, combined with the weights: the pool
    # claims the information sum(lambda e), in units of one answer.
    rng, rho = np.random.default_rng(1), 0.28
    large, small = slice(0, 60), slice(0, 30)
    effect = rng.normal(0, np.sqrt(rho), (20_000, 90))
    noise = rng.normal(0, np.sqrt(1 - rho), (20_000, 150))
    first = (effect[:, large] + noise[:, :60]).mean(axis=1)
    if shared == "instances":
        second = (effect[:, small] + noise[:, :30]).mean(axis=1)
    else:
        where = slice(60, 90) if shared == "nothing" else small
        second = (effect[:, where] + noise[:, 60:90]).mean(axis=1)
    tasks = [independent(60, 15), independent(30, 8)]
    # With one instance a class and losses alone the dependence is the typical one, rho + c = 0.28.
    weight = pool_weights(tasks, shared)
    e = np.array([60.0, 30.0])
    estimate = (weight[0] * e[0] * first + weight[1] * e[1] * second) / (weight @ e)
    assert estimate.var() * (weight @ e) == pytest.approx(1, abs=0.08)


# Data


@pytest.mark.parametrize("likelihood", ["bernstein", "power"])
def test_log_likelihood_is_the_weighted_sum(tasks, likelihood):
    data = pooled_groups(tasks, BASIS, likelihood, "classes")[0]
    weight = pool_weights(tasks, "classes")
    w = np.random.default_rng(1).dirichlet(np.ones(BASIS.knots.size))
    single = [likelihood_data(task, BASIS, likelihood).log_likelihood(w) for task in tasks]
    assert weight.min() < 1
    assert data.log_likelihood(w) == pytest.approx(weight @ single)


def test_padded_bins_change_nothing(tasks):
    data = pooled_groups(tasks, BASIS, "auto", "classes")[0]
    padded = data.padded()
    assert padded.matrix.shape == (96, BASIS.knots.size)
    w = np.random.default_rng(1).dirichlet(np.ones(BASIS.knots.size))
    assert padded.log_likelihood(w) == pytest.approx(data.log_likelihood(w))


def test_bare_curves_put_all_in_the_power_form(tasks):
    curve = SourceTask.from_accuracies([10, 50], [0.9, 0.8], n_test=100, n_classes=50)
    data, tree, record = pooled_groups([tasks[1], curve], BASIS, "auto", "nothing")
    assert isinstance(data, PowerData)
    assert record.task_kind == "accuracies, embeddings"
    weights = xr.DataArray(
        np.full((1, 3, BASIS.knots.size), 1 / BASIS.knots.size), dims=("chain", "draw", "knot")
    ).assign_coords(chain=[0], draw=range(3))
    group = predictive_group(
        weights, tree, MixtureLaw(BASIS, weights.values), np.random.default_rng(1)
    )
    assert task_part(group, 1)["k"].values.tolist() == [10, 50]
    with pytest.raises(DataError, match=r"^likelihood:"):
        pooled_groups([tasks[1], curve], BASIS, "bernstein", "nothing")


def test_replicates_have_the_noise_of_their_task_whatever_its_weight():
    tasks = [independent(60, 15), independent(60, 15)]
    data, tree, _ = pooled_groups(tasks, BASIS, "auto", "instances")
    assert tree["constant_data"]["weight"].values.max() < 0.6
    weights = xr.DataArray(
        np.full((1, 4000, BASIS.knots.size), 1 / BASIS.knots.size), dims=("chain", "draw", "knot")
    ).assign_coords(chain=[0], draw=range(4000))
    law, rng = MixtureLaw(BASIS, weights.values), np.random.default_rng(1)
    right = task_part(predictive_group(weights, tree, law, rng), 1)["rank_histogram"][0, :, 0]
    share = data.matrix[0].mean()
    effective = 60 / tasks[1].design_effect()
    assert right.mean() == pytest.approx(60 * share, abs=0.5)
    sd = 60 * np.sqrt(share * (1 - share) / effective)
    assert float(right.std()) == pytest.approx(sd, rel=0.05)


def test_one_task_in_a_list_is_that_task(fit, tasks):
    model = fit(tasks[:1], draws=20)
    assert isinstance(model.fit_.data, BernsteinData) and model.fit_.record.n_tasks == 1
    assert model.task is tasks[0]


def test_histograms_of_the_model_have_their_totals(tasks):
    data = pooled_groups(tasks, BASIS, "auto")[0]
    weights = np.full(BASIS.knots.size, 1 / BASIS.knots.size)
    drawn = data.replicates(weights, np.random.default_rng(1))
    assert_allclose([drawn[:30].sum(), drawn[30:].sum()], [90, 400])


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


def test_names_stand_once_where_classes_are_shared():
    names = [f"c{j}" for j in range(12)]
    shared = [independent(12, 3, names), independent(8, 2, names[4:])]
    data = pooled_groups(shared, BASIS, "auto", "classes")[0]
    weights = xr.DataArray(
        np.full((1, 1, BASIS.knots.size), 1 / BASIS.knots.size), dims=("chain", "draw", "knot")
    ).assign_coords(chain=[0], draw=[0])
    group, apart = (
        class_log_likelihood(weights, data, shared, what) for what in ("classes", "nothing")
    )
    assert group["class"].values.tolist() == sorted(names)
    total = apart["rank_histogram"].sum("class")
    assert_allclose(group["rank_histogram"].sum("class"), total)


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
    with pytest.raises(DataError, match=r"^shared:"):
        model.fit(tasks, shared="all")
    with pytest.raises(DataError, match=r"^population:"):
        pooled.predict_population(300, 400)


def test_names_that_occur_again_are_noted():
    named = [independent(5, 2, list("abcde")), independent(4, 1, list("bcyz"))]
    _, _, record = pooled_groups(named, BASIS, "auto")
    assert any("2 names of classes occur again" in note for note in record.notes)


@pytest.mark.slow
@pytest.mark.parametrize("shared", ["nothing", "instances", "classes"])
def test_coverage_of_pooled_intervals(shared):
    k, held = [400, 2000], []
    truth = LAW.accuracy(k)
    for seed in range(100):
        probes, gallery, y = LAW.sample(100, repeats=2, random_seed=seed)
        first = np.arange(y.size) % 2 == 0
        large = SourceTask.from_embeddings(probes[first], gallery, y[first])
        within = (y < 50) & (first if shared == "instances" else ~first)
        small = SourceTask.from_embeddings(probes[within], gallery[:50], y[within])
        if shared == "nothing":
            small = SourceTask.from_embeddings(*LAW.sample(50, random_seed=seed + 1000))
        model = BayesianExtrapolator(MixturePrior()).fit(
            [large, small], shared=shared,
            sampler={"draws": 300, "tune": 300, "chains": 2, "cores": 1},
            random_seed=seed, progressbar=False,
        )  # fmt: skip
        interval = model.predict(k).interval(0.9, "eti")
        held.append((interval["lower"] < truth) & (truth < interval["upper"]))
    assert np.all(np.mean(held, axis=0) >= 0.82)


def test_pilots_of_different_classifiers_contradict_their_pool():
    """Of 60 classes one got 54 right and the other 12; two that differ by chance are one law."""
    few = {"sampler": {"draws": 100, "tune": 200, "chains": 2}, "random_seed": 1}
    model = BayesianExtrapolator()
    with pytest.warns(DataWarning, match="one classifier"):
        model.fit([independent(60, 6), independent(60, 48)], progressbar=False, **few)
    assert model.contradiction_ in " ".join(model.predict(60).notes)
    alike = [independent(60, 20), independent(60, 28)]  # 1.5 standard errors apart
    assert not model.fit(alike, progressbar=False, **few).contradiction_
