"""BayesianExtrapolator: truth recovered from simulated tasks, and draws that hang together."""

import copy
import pickle
import warnings

import numpy as np
import pymc as pm
import pytest
from helpers import unsound_data
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr
from scipy.stats import binom
from sklearn.base import clone

from classex_bayes import BayesianExtrapolator, ClassExReg, MixturePrior, SourceTask
from classex_bayes.exceptions import ExtrapolationWarning
from classex_bayes.results import Estimand
from classex_bayes.simulate import GaussianNearestNeighbor

K = np.array([2, 3, 7, 40, 200, 1000, 20_000])


# Truth


@pytest.mark.parametrize(("noise", "k1"), [(0.1, 100), (0.2, 300), (0.4, 200)])
def test_posterior_holds_the_truth(fit, noise, k1):
    law = GaussianNearestNeighbor(dim=10, noise_variance=noise)
    task = SourceTask.from_embeddings(*law.sample(k1, random_seed=int(1000 * noise)))
    k = k1 * np.array([1, 2, 5, 20])
    predicted = fit(task).predict(k)
    truth, interval = law.accuracy(k), predicted.interval(0.999, "eti")
    assert np.all((interval["lower"] < truth) & (truth < interval["upper"]))
    # About three times the root mean squared errors of simulations.
    assert np.all(np.abs(predicted.mean - truth) < [0.09, 0.1, 0.12, 0.15])
    assert np.all(interval.diff(axis=1)["upper"] < 0.8)


def test_curve_alone_holds_the_truth(fitted_curve, pilot):
    assert fitted_curve.idata.attrs["made_from"] == "accuracies"
    k = [60, 200, 1000, 4000]
    predicted, truth = fitted_curve.predict(k), pilot.law.accuracy(k)
    interval = predicted.interval(0.999, "eti")
    assert np.all((interval["lower"] < truth) & (truth < interval["upper"]))
    assert np.all(np.abs(predicted.mean - truth) < [0.03, 0.03, 0.12, 0.12])
    assert any("ranks unknown" in note for note in predicted.notes)
    group = fitted_curve.sample_posterior_predictive(random_seed=1)["posterior_predictive"]
    assert group["accuracy"].shape == (2, 500, 5) and "rank_histogram" not in group


def test_perfect_pilot(fit):
    # No error among n independent instances: a rate above 3/n has a chance of 5% at most.
    task = SourceTask.from_ranks([1] * 100, range(100), n_classes=100)
    model = BayesianExtrapolator().fit(task, random_seed=1, progressbar=False)
    low = model.predict([100, 300, 1000, 10_000]).interval(0.9, "eti")["lower"]
    assert 0.96 < low[100] < 0.995
    assert np.all(np.diff(low) < 0)
    assert model.classes_until(0.5).prob_at_least(1000) > 0.95


@unsound_data
def test_hopeless_pilot(fit):
    ranks = np.random.default_rng(1).integers(1, 101, 200)
    task = SourceTask.from_ranks(ranks, np.arange(200) % 100, n_classes=100)
    predicted = fit(task).predict([10, 100])
    interval = predicted.interval(0.95, "eti")
    for k in (10, 100):
        assert interval.loc[k, "lower"] < 1 / k < interval.loc[k, "upper"] < 3 / k + 0.05


# The curves


def test_predictions_are_accuracies(fitted):
    accuracy = fitted.predict(K).accuracy
    assert accuracy.dims == ("chain", "draw", "k") and accuracy["k"].values.tolist() == K.tolist()
    assert accuracy.min() >= 0 and accuracy.max() <= 1
    assert np.all(np.diff(accuracy.values, axis=-1) <= 1e-12)
    # The order of k does not matter.
    backwards = fitted.predict(K[::-1]).accuracy
    assert_array_equal(backwards.values[..., ::-1], accuracy.values)
    assert_allclose(fitted.predict(40).accuracy.values[..., 0], accuracy.sel(k=40), rtol=1e-12)


def test_discriminability_is_a_cdf_with_these_accuracies(fitted):
    u = np.concatenate([[0], ndtr(np.linspace(-8, 8, 2000)), [1]])
    found = fitted.discriminability(u)
    assert found.dims == ("chain", "draw", "u") and found.shape == (2, 500, 2002)
    d = found.values
    assert np.all(np.diff(d, axis=-1) >= -1e-12)
    assert_allclose(d[..., 0], 0, atol=1e-12)
    assert_allclose(d[..., -1], 1, atol=1e-12)
    # AGA_k = 1 - int D(u) d u^(k-1)
    for k in (2, 40, 1000):
        middle = (d[..., 1:] + d[..., :-1]) / 2
        integral = middle @ np.diff(u ** (k - 1))
        assert_allclose(1 - integral, fitted.predict(k).accuracy.values[..., 0], atol=1e-4)


@pytest.mark.parametrize("level", [0.3, 0.6, 0.9])
def test_classes_until_inverts_the_prediction(fitted, level):
    until = fitted.classes_until(level)
    k = until.k.values
    assert k.shape == (2, 500) and until.level == level
    basis, weights = fitted.prior.basis, fitted.weights_.values
    for chain, draw in np.argwhere((k > 1) & np.isfinite(k))[::10]:
        near = k[chain, draw] * np.array([1 - 1e-3, 1 + 1e-3]) + [0, 1]
        before, after = basis.accuracy(np.maximum(near, 2)) @ weights[chain, draw]
        assert before >= level > after
    # The same event seen from both sides.
    for size in (200, 1000):
        accurate = fitted.predict(size).prob_at_least(level)[size]
        assert until.prob_at_least(size) == pytest.approx(accurate, abs=0.005)


def test_far_predictions_are_warned_of(fitted):
    with pytest.warns(ExtrapolationWarning) as caught:
        predicted = fitted.predict([100, 20_001])
    assert len(caught) == 1 and caught[0].filename == __file__
    assert any("20,001" in note for note in predicted.notes)


def test_a_far_k_is_warned_of_once_for_each_fit(fitted):
    """Each prediction has the note, in the words of its metric."""
    point = ClassExReg(0.5).fit(fitted.task)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        predicted = [fitted.predict(30_003, metric=name) for name in ("accuracy", "mrr")]
        predicted += [fitted.predict_test(30_003, random_seed=1), point.predict(30_003)]
        predicted += [point.predict(30_003), point.fit(fitted.task).predict(30_003)]
    assert len(caught) == 3
    assert all(any("30,003" in note for note in p.notes) for p in predicted)


@unsound_data
def test_predictions_from_scores_of_the_wrong_sign_say_so(fit):
    y = np.arange(60) % 30
    scores = np.random.default_rng(1).normal(size=(60, 30)) + 2 * np.eye(30)[y]
    tasks = {
        "sign": SourceTask.from_scores(scores, y, higher_is_better=False),
        "order": SourceTask.from_scores(scores, np.roll(y, 1)),
        "": SourceTask.from_scores(scores, y),
    }
    for words, task in tasks.items():
        notes = fit(task, draws=50, tune=100).predict(30).notes
        assert bool(words) == any("True classes score" in note for note in notes)
        assert words in " ".join(notes)


# An estimator like others


def test_clone():
    model = BayesianExtrapolator(MixturePrior(deviation=2.0), "ranks")
    other = clone(model)
    assert other is not model and other.get_params() == model.get_params()
    assert other.set_params(evidence="all") is other and other.evidence == "all"
    assert model.evidence == "ranks"
    with pytest.raises(TypeError):
        other.set_params(draws=5)


def test_parameters_set_after_fit_wait_for_the_next(fit, small_task):
    model = fit(small_task(), draws=50)
    before = model.predict(K[:-1]).mean
    model.set_params(prior=MixturePrior(lower=-3.0, upper=9.0))
    assert_allclose(model.predict(K[:-1]).mean, before)


def test_a_new_fit_forgets_the_last_one(small_task):
    few = {"sampler": {"draws": 20, "tune": 50, "chains": 2}, "progressbar": False}
    model, other = BayesianExtrapolator(), small_task(50, 80)
    model.fit(small_task(), random_seed=1, **few)
    before = model.law_, model.diagnosis_, model.likelihood_data_, model.model
    model.fit(other, random_seed=2, **few)
    after = model.law_, model.diagnosis_, model.likelihood_data_, model.model
    assert not any(first is second for first, second in zip(before, after, strict=True))
    fresh = BayesianExtrapolator().fit(other, random_seed=2, **few)
    assert_array_equal(model.predict(K[:5]).accuracy, fresh.predict(K[:5]).accuracy)
    assert model.notes_ == fresh.notes_ and model.diagnosis_ == fresh.diagnosis_


def test_a_fitted_model_can_be_sent_to_another_process(fit, small_task):
    model = fit(small_task(), draws=20)
    assert model.is_fitted and isinstance(model.model, pm.Model)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert_array_equal(other.predict(50).accuracy, model.predict(50).accuracy)
        assert other.idata.attrs == model.idata.attrs and other.model is not model.model


def test_model_of_the_fitted_task(fitted, pilot):
    assert isinstance(fitted.model, pm.Model)
    data = fitted.model["counts"].get_value()
    assert_array_equal(data, fitted.idata["observed_data"]["rank_histogram"])
    assert fitted.task is pilot.task


# Top m


def test_top_m_accuracy_is_the_mixture_of_its_elements(fitted, pilot):
    u = np.linspace(0, 1, 20_001)
    cdf = fitted.discriminability(u).values.mean(axis=(0, 1))
    for top, k in ((2, 10), (5, 1000)):
        found = fitted.predict(k, metric=f"accuracy@{top}")
        assert found.estimand == Estimand(metric=f"accuracy@{top}")
        middle, step = (u[1:] + u[:-1]) / 2, np.diff(cdf)
        exact = step @ binom.cdf(top - 1, k - 1, 1 - middle)
        assert found.mean[k] == pytest.approx(exact, abs=2e-4)


def test_top_m_accuracy_rises_with_m_and_is_seen_in_the_task(fitted, pilot):
    metrics = [f"accuracy@{top}" for top in (1, 2, 5, 20)]
    curves = np.array([fitted.predict([20, 200], metric=metric).mean for metric in metrics])
    assert np.all(np.diff(curves, axis=0) >= 0) and curves[-1, 0] == 1
    for top in (1, 2, 5):
        interval = fitted.predict(200, metric=f"accuracy@{top}").interval(0.99, "eti")
        observed = pilot.task.metric(f"accuracy@{top}", 200)
        assert interval["lower"].item() - 0.01 < observed < interval["upper"].item() + 0.01


# Measured accuracy


def test_a_measured_accuracy_varies_about_the_expected_one(fitted):
    k = [200, 1000]
    expected = fitted.predict(k)
    spreads = []
    for repeats in (50, 5, 1):
        found = fitted.predict_test(k, repeats=repeats)
        assert found.estimand == Estimand(repeats=repeats)
        size = found.accuracy.sizes["chain"] * found.accuracy.sizes["draw"]
        noise = found.accuracy.std(["chain", "draw"]).values / np.sqrt(size)
        assert np.all(np.abs(found.mean - expected.mean) < 5 * noise)
        # A share that so many answers can show.
        shown = found.accuracy.values * np.array(k) * repeats
        assert_allclose(shown, np.rint(shown), atol=1e-6)
        spreads.append(found.accuracy.std(["chain", "draw"]).values)
    assert np.all(np.array(spreads) > expected.accuracy.std(["chain", "draw"]).values)
    # On 1,000 classes the spread is mainly that of the expected accuracy.
    assert np.all(np.diff(spreads, axis=0)[:, 0] > 0)


def test_measured_accuracies_have_seeds_which_a_loaded_model_keeps(fitted):
    def draws(model, seed):
        return model.predict_test(300, repeats=3, random_seed=seed).accuracy.values

    assert_array_equal(draws(fitted, 1), draws(fitted, 1))
    assert not np.array_equal(draws(fitted, 1), draws(fitted, 2))
    loaded = BayesianExtrapolator.from_idata(fitted.idata.copy())
    assert_array_equal(draws(loaded, None), draws(fitted, None))


def test_measured_accuracy_of_a_curve(fitted_curve):
    found = fitted_curve.predict_test(500, repeats=2)
    assert found.accuracy.std() > fitted_curve.predict(500).accuracy.std()
