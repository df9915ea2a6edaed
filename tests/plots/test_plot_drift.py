"""The plot of a drift: both predictions, and the accuracies that it was measured by."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from classex_bayes.assumptions.drift import measure_drift
from classex_bayes.exceptions import DataError
from classex_bayes.plots.drawing import chart_of
from classex_bayes.plots.drift_plot import plot_drift
from classex_bayes.results import Extrapolation
from classex_bayes.task.source_task import SourceTask

K = [400, 20, 100]
NAME = "name, 90% credible interval"
DRIFTED = "name + drift, 90% credible interval"
POINTS = ["subsampled to k", "measured, retrained on k"]
WORDS = {"ci_prob": 0.9, "ci_kind": "eti"}
fill = chart_of(plot_drift)


@pytest.fixture(scope="module")
def task():
    return SourceTask.from_ranks(np.arange(400) % 25 // 18 + 1, np.arange(400) % 100, n_classes=100)


@pytest.fixture(scope="module")
def prediction():
    draws = np.random.default_rng(1).normal([0.5, 0.9, 0.7], 0.02, (2, 300, 3))
    return Extrapolation.from_draws(K, draws, "name", "credible", 100)


def test_drift(task, prediction):
    drift = measure_drift(task, {20: 0.97, 50: 0.85})
    chart = fill(drift, prediction, **WORDS, random_seed=2)
    assert list(chart.series) == [NAME, DRIFTED, "source classes", *POINTS]
    assert chart.title.startswith("Drift of retrained classifiers: ")
    for name, shown in ((NAME, prediction), (DRIFTED, drift.apply(prediction, random_seed=2))):
        band, limits = chart.mark(name, "band"), shown.interval(0.9, "eti").sort_index()
        assert_array_equal(band.x, [20, 100, 400])
        assert_allclose(band.y, limits[["lower", "upper"]].to_numpy().T)
    source = chart.mark("source classes", "line")
    assert source.x.tolist() == [100, 100]
    assert source.y[0].tolist() == [min(mark.y[0].min() for mark in chart.marks), 1]
    for name, column in zip(POINTS, ("subsampled", "measured"), strict=True):
        points = chart.mark(name, "points")
        assert_array_equal(points.x, [20, 50])
        assert_allclose(points.y[0], drift.table[column])


def test_without_smaller_tasks_there_are_no_points(task, prediction):
    assert not set(POINTS) & set(fill(measure_drift(task), prediction).series)


def test_refused(task, prediction):
    with pytest.raises(DataError, match="drift: expected what measure_drift returns"):
        fill(task, prediction)
    with pytest.raises(DataError, match="prediction: expected what predict"):
        fill(measure_drift(task), task)
