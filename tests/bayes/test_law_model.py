"""Answers and checks from draws of the law: populations, contradictions, files, limits of ranks."""

import numpy as np
import pytest
import xarray as xr
from helpers import short_fit
from numpy.testing import assert_allclose, assert_array_equal

import classex_bayes as cb
from classex_bayes import load, save
from classex_bayes.exceptions import DataError, DataWarning
from studies.laws import FavorabilityLaw

CLASSES, REPEATS = 100, 4
LAW = FavorabilityLaw(means=(2.0,), sds=(1.0,))
K = np.array([2, 30, 100, 3000])
FEW = short_fit(1000, 300)


class Renamed(cb.BayesianExtrapolator):
    """A model of another package."""


@pytest.fixture(scope="module")
def task():
    ranks, y, _ = LAW.sample(CLASSES, n_test=CLASSES * REPEATS, random_seed=2)
    return cb.SourceTask.from_ranks(ranks, y, n_classes=CLASSES, untested="competitors")


@pytest.fixture(scope="module")
def model(task):
    return Renamed().fit(task, **FEW)


def test_finite_population(model):
    # The pilot is the population, so that instances alone differ.
    sd = [float(p.draws.std()) for p in (model.predict_population(100, 100), model.predict(100))]
    assert sd[0] < 0.9 * sd[1]
    large = model.predict_population(K[:3], 10**9).mean
    assert_allclose(large, model.predict(K[:3]).mean, atol=1e-3)


def test_replicates_have_the_law(model):
    replicated = model.sample_posterior_predictive(random_seed=4)["posterior_predictive"]
    expected = model.law_.expected(replicated["k"].values).mean(axis=(0, 1))
    assert_allclose(replicated["accuracy"].mean(("chain", "draw")), expected, atol=0.01)


def test_a_law_that_contradicts_its_pilot_is_told(model, task):
    prior = cb.MixturePrior(location=0.5, location_sd=0.01, deviation=0)
    with pytest.warns(DataWarning, match="contradicts"):
        other = cb.BayesianExtrapolator(prior).fit(task, **FEW)
    for k in (2, 100):
        notes = [any("contradicts" in n for n in m.predict(k).notes) for m in (model, other)]
        assert notes == [False, True]
    assert cb.posterior_checks(model).passed
    assert not cb.posterior_checks(other)["ranks: distance"].passed


def test_a_contradiction_at_few_classes_is_told(model, task):
    """A law may be right on all classes and wrong on few: here some instances never lose."""
    tree, right = model.idata.copy(deep=True), task.accuracy(100).item()
    weights = tree["mixture"]["weights"].copy(deep=True)
    weights[...], weights[..., 0], weights[..., -1] = 0.0, 1 - right, right
    tree["mixture"] = xr.DataTree(tree["mixture"].to_dataset().assign(weights=weights))
    other = Renamed.from_idata(tree)
    assert other.predict(100).mean[100] == pytest.approx(right, abs=0.01)
    assert any("contradicts" in note for note in other.predict(2).notes)


def test_a_file_of_a_class_of_another_package(model, task, tmp_path):
    path = save(model, tmp_path / "model.nc")
    with pytest.raises(DataError):
        load(path)
    again = Renamed.from_idata(xr.open_datatree(path))
    assert again.get_params() == model.get_params() and again.is_fitted_to(task)
    assert not again.is_fitted_to(task.subsample(50, random_seed=1))
    for question in (
        lambda model: model.predict(K),
        lambda model: model.predict(K, metric="accuracy@3"),
        lambda model: model.predict_test(K),
        lambda model: model.predict_population(K, 5000),
    ):
        assert_array_equal(question(again).draws, question(model).draws)


def on_limits(prediction):
    return [note for note in prediction.notes if "without a prior" in note]


def test_beyond_the_reach_of_the_ranks_a_note_says_what_they_allow(tmp_path):
    sample = LAW.sample(CLASSES, random_seed=2)
    task = cb.SourceTask.from_ranks(*sample[:2], n_classes=CLASSES)
    model, bounds = cb.BayesianExtrapolator().fit(task, **FEW), cb.MomentBounds().fit(task)
    reach = bounds.reach()
    assert not on_limits(model.predict([CLASSES // 2, reach // 2]))
    (note,) = on_limits(model.predict([CLASSES, 5 * CLASSES]))
    lower, upper = bounds.predict(5 * CLASSES).interval().to_numpy()[0]
    assert f"{100 * lower:.1f} to {100 * upper:.1f}%" in note and f"{reach:,}" in note
    far = [20 * CLASSES]
    assert on_limits(model.predict(far, metric="mrr"))
    assert not on_limits(model.predict(far, metric="mean_rank"))
    assert not on_limits(model.predict_test(far))
    loaded = load(save(model, tmp_path / "model.nc"))
    assert on_limits(loaded.predict(far)) == on_limits(model.predict(far)) != []
    # One accuracy counts the instances of rank 1, as one recall does.
    right = float(LAW.accuracy([50])[0])
    one = cb.SourceTask.from_accuracies(50, right, n_test=100, n_classes=50)
    recall = cb.SourceTask.from_recalls({1: right}, n_test=100, n_classes=50, decimals=9)
    notes = [
        cb.BayesianExtrapolator().fit(task, **FEW).predict(500).notes for task in (one, recall)
    ]
    limits = [[note for note in of_task if "without a prior" in note] for of_task in notes]
    assert limits[0] == [note.replace("recalls", "accuracies") for note in limits[1]] != []
    assert all(any("decline is that of the prior" in n for n in of_task) for of_task in notes)
    # Bounds need the ranks of one task.
    k = [2, 50]
    curve = cb.SourceTask.from_accuracies(k, LAW.accuracy(k), n_test=100, n_classes=50)
    assert not on_limits(cb.BayesianExtrapolator().fit(curve, **FEW).predict(5000))
