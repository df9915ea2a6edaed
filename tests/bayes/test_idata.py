"""What a fitted model keeps: groups, attributes, predictive draws and pointwise densities."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from arviz_stats import loo
from numpy.testing import assert_allclose, assert_array_equal

import classex_bayes
from classex_bayes import BayesianExtrapolator, SourceTask, load, save
from classex_bayes.exceptions import DataError


def test_groups_and_attributes(fit, pilot):
    model = fit(pilot.task, draws=50, tune=200)
    for step in (
        model.sample_prior_predictive,
        model.sample_posterior_predictive,
    ):
        step(random_seed=1)
    model.compute_log_likelihood()
    groups = "posterior mixture sample_stats observed_data constant_data"
    groups += " prior prior_mixture prior_predictive posterior_predictive log_likelihood log_prior"
    groups += " mixture_given_ranks tails held_out_ranks"
    assert set(model.idata.children) == set(groups.split())
    mixture = model.idata["mixture"].to_dataset()
    assert mixture["weights"].dims == ("chain", "draw", "knot")
    assert_array_equal(mixture["knot"], model.prior.basis.knots)
    assert "weights" not in model.idata["posterior"] and "weights" not in model.idata["prior"]
    observed = model.idata["observed_data"].to_dataset()
    assert observed["rank_histogram"].dims == ("bin",) and observed["accuracy"].dims == ("k",)
    assert_array_equal(observed["accuracy"], pilot.task.accuracy(observed["k"].values))
    ends = np.append(0, observed["bin"].values) + 0.5
    expected, _ = np.histogram(pilot.task.ranks, ends)
    assert_allclose(observed["rank_histogram"], expected)
    assert model.idata["constant_data"]["matrix"].dims == ("bin", "knot")
    attributes = model.idata.attrs
    assert attributes["modeling_interface"] == "classex_bayes"
    assert attributes["modeling_interface_version"] == classex_bayes.__version__


def test_predictions_change_nothing(fitted):
    groups, attributes = {*fitted.idata.groups}, dict(fitted.idata.attrs)
    fitted.predict([10, 20], metric="mrr")
    fitted.predict_test(7)
    fitted.predict_population(300, 1000)
    fitted.classes_until(0.5)
    assert {*fitted.idata.groups} == groups and fitted.idata.attrs == attributes


def test_posterior_predictive_covers_the_observed(fitted):
    fitted.sample_posterior_predictive(random_seed=3)
    group = fitted.idata["posterior_predictive"].to_dataset()
    observed = fitted.idata["observed_data"].to_dataset()
    assert group["accuracy"].dims == ("chain", "draw", "k")
    assert group["rank_histogram"].dims == ("chain", "draw", "bin")
    for name in ("k", "bin"):
        assert_array_equal(group[name], observed[name])
    assert_allclose(group["rank_histogram"].sum("bin"), 400)
    for name in ("accuracy", "rank_histogram"):
        low, high = group[name].quantile([0.025, 0.975], ["chain", "draw"]).values
        held = (low <= observed[name].values) & (observed[name].values <= high)
        assert held.mean() > 0.85, name
    # Replicates scatter about the expected accuracy.
    expected = fitted.predict(group["k"].values).accuracy
    noise = (group["accuracy"] - expected).values.reshape(1000, -1)
    assert np.all(np.abs(noise.mean(axis=0)) < 4.5 * noise.std(axis=0) / np.sqrt(1000))
    again = fitted.sample_posterior_predictive(random_seed=3)["posterior_predictive"]
    assert_array_equal(again["accuracy"], group["accuracy"])


def test_predictive_draws_follow_the_seed_of_the_fit(fit, small_task):
    draws = []
    for seed in (1, 1, 2):
        model = fit(small_task(), draws=10, tune=50, random_seed=seed)
        tree = model.sample_prior_predictive(draws=10)
        weights = tree["prior_mixture"]["weights"].values
        noise = model.sample_posterior_predictive()["posterior_predictive"]["rank_histogram"]
        draws.append((weights, noise.values))
    for first, second, other in zip(*draws, strict=True):
        assert_array_equal(first, second)
        assert not np.array_equal(first, other)


def test_prior_predictive(fitted, pilot, small_task):
    fresh = BayesianExtrapolator()
    drawn = fresh.sample_prior_predictive(pilot.task, draws=300, random_seed=4)
    prior, replicated = drawn["prior_mixture"].to_dataset(), drawn["prior_predictive"].to_dataset()
    assert prior["weights"].dims == ("chain", "draw", "knot")
    assert prior["weights"].shape == (1, 300, fresh.prior.basis.knots.size)
    assert replicated["accuracy"].dims == ("chain", "draw", "k")
    assert replicated["rank_histogram"].sizes == {"chain": 1, "draw": 300, "bin": 48}
    assert_allclose(replicated["rank_histogram"].sum("bin"), 400)
    k = replicated["k"].values
    noise = (
        replicated["accuracy"].values - prior["weights"].values @ fresh.prior.basis.accuracy(k).T
    )
    assert np.all(np.abs(noise.mean(axis=1)) < 5 * noise.std(axis=1) / np.sqrt(300))
    # Without a task it is that of the fitted one, and joins the tree.
    same = fitted.sample_prior_predictive(draws=300, random_seed=4)
    assert_array_equal(same["prior_mixture"]["weights"], prior["weights"])
    assert_array_equal(fitted.idata["prior_predictive"]["accuracy"], replicated["accuracy"])
    single = fitted.sample_prior_predictive(small_task(), draws=1, random_seed=4)
    assert single["prior_mixture"]["weights"].shape == (1, 1, fitted.prior.basis.knots.size)
    assert fitted.idata["prior"].sizes["draw"] == 300


def test_prior_draws_of_a_loaded_model_given_its_task_join_the_tree(fitted, pilot):
    loaded = BayesianExtrapolator.from_idata(fitted.idata.copy())
    drawn = loaded.sample_prior_predictive(pilot.task, draws=7)["prior"]
    expected = fitted.sample_prior_predictive(draws=7)["prior"]
    assert_array_equal(drawn["accuracy"], expected["accuracy"])
    assert_array_equal(loaded.idata["prior"]["accuracy"], expected["accuracy"])


def test_log_likelihood_adds_up_to_the_model(fitted, pilot):
    group = fitted.compute_log_likelihood()["log_likelihood"].to_dataset()["rank_histogram"]
    assert group.dims == ("chain", "draw", "class") and group["class"].values.tolist() == [
        *range(200)
    ]
    observed, constant = (
        fitted.idata[name].to_dataset() for name in ("observed_data", "constant_data")
    )
    of_ranks = fitted.idata["mixture_given_ranks"]["weights"].values
    share = of_ranks @ constant["matrix"].values.T
    precision = float(constant["precision"][0])
    assert precision == pytest.approx(1 / pilot.task.design_effect(), rel=0.01)
    total = np.log(np.maximum(share, 1e-300)) @ observed["rank_histogram"].values * precision
    assert_allclose(group.sum("class"), total, rtol=1e-10)
    # A class of two instances of the 400.
    bins = np.searchsorted(observed["bin"].values, pilot.task.ranks[pilot.task.y == 3])
    assert_allclose(group.sel({"class": 3}), np.log(share[..., bins]).sum(axis=-1) * precision)


def test_log_likelihood_of_named_weighted_and_untested_classes(fit):
    ranks, y = [1, 4, 2, 1, 3, 1], list("aabcdd")
    task = SourceTask.from_ranks(
        ranks, y, n_classes=5, classes=list("dxcba"), class_weight=[1, 0, 2, 3, 4],
        untested="competitors",
    )  # fmt: skip
    model = fit(task, draws=20, tune=50)
    group = model.compute_log_likelihood()["log_likelihood"]["rank_histogram"]
    assert group["class"].values.tolist() == list("dcba")
    observed = model.idata["observed_data"]["rank_histogram"].values
    assert_allclose(observed, 6 * np.array([0.45, 0.3, 0.05, 0.2, 0]), atol=1e-12)
    matrix = model.idata["constant_data"]["matrix"].values
    share = model.weights_.values @ matrix.T
    total = np.log(share) @ observed / task.design_effect()
    assert_allclose(group.sum("class"), total, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")  # of few draws
def test_classes_of_any_name_are_left_out_after_loading(fit, tmp_path):
    names = ["b", 3, 2.5, "é", "d", (1, 2)]
    y = np.empty(6, dtype=object)
    y[:] = names
    task = SourceTask.from_ranks([1, 4, 2, 1, 3, 1], y, n_classes=6, classes=names)
    model = fit(task, draws=30, tune=50)
    expected = model.compute_log_likelihood()["log_likelihood"]["rank_histogram"]
    labels = ["b", "3", "2.5", "é", "d", "(1, 2)"]
    assert expected["class"].values.tolist() == labels
    del model.idata["log_likelihood"]
    again = load(save(model, tmp_path / "model.nc")).compute_log_likelihood(task)
    xr.testing.assert_equal(again["log_likelihood"]["rank_histogram"], expected)
    assert loo(again).elpd == loo(model.compute_log_likelihood()).elpd


def test_a_loaded_model_needs_its_task_to_leave_classes_out(fitted, pilot, small_task):
    expected = fitted.compute_log_likelihood()["log_likelihood"].to_dataset()
    del fitted.idata["log_likelihood"]
    again = BayesianExtrapolator.from_idata(fitted.idata.copy())
    for task in (None, small_task()):
        with pytest.raises(DataError):
            again.compute_log_likelihood(task)
    computed = again.compute_log_likelihood(pilot.task)["log_likelihood"].to_dataset()
    xr.testing.assert_equal(computed, expected)


def test_log_prior_is_that_of_pymc(fitted, pilot):
    group = fitted.compute_log_likelihood()["log_prior"].to_dataset().drop_vars("tail_prior")
    with BayesianExtrapolator(fitted.prior, evidence="ranks").build(pilot.task):
        expected = pm.stats.compute_log_prior(
            fitted.idata, extend_inferencedata=False, progressbar=False
        )
    assert set(group) == set(expected) > {"mu", "tau", "share", "sigma", "z"}
    for name, values in expected.items():
        assert_allclose(group[name], values.transpose(*group[name].dims), rtol=1e-7, atol=1e-7)
