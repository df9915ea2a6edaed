"""The plot of a drift: both predictions, and the accuracies that it was measured by."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from classex_bayes.assumptions.drift import measure_drift
from classex_bayes.exceptions import DataError
from classex_bayes.plots.drift_plot import plot_drift
from classex_bayes.results import Extrapolation
from classex_bayes.task.source_task import SourceTask

K = [400, 20, 100]
NAME = "name, 90% credible interval"
DRIFTED = "name + drift, 90% credible interval"
POINTS = ["points subsampled to k", "points measured, retrained on k"]


@pytest.fixture(scope="module")
def task():
    return SourceTask.from_ranks(np.arange(400) % 25 // 18 + 1, np.arange(400) % 100, n_classes=100)


@pytest.fixture(scope="module")
def prediction():
    draws = np.random.default_rng(1).normal([0.5, 0.9, 0.7], 0.02, (2, 300, 3))
    return Extrapolation.from_draws(K, draws, "name", "credible", 100)


@pytest.mark.parametrize("backend", ["none", "matplotlib"])
def test_drift(task, prediction, backend):
    drift = measure_drift(task, {20: 0.97, 50: 0.85})
    plot = plot_drift(drift, prediction, ci_prob=0.9, ci_kind="eti", random_seed=2, backend=backend)
    lines = {f"{what} {name}" for what in ("line", "band") for name in (NAME, DRIFTED)}
    assert lines | set(POINTS) < set(plot.viz.children)
    if backend == "matplotlib":
        axes = plot.get_viz("plot")
        assert axes.get_xscale() == "log"
        assert axes.get_title().startswith("Drift of retrained classifiers: ")
        return
    found = drift.apply(prediction, random_seed=2)
    band = plot.viz[f"band {DRIFTED}"]["panel"].item()
    assert_array_equal(band["x"], [20, 100, 400])
    assert_allclose(band["y_bottom"], found.interval(0.9, "eti")["lower"].loc[[20, 100, 400]])
    for name, column in zip(POINTS, ("subsampled", "measured"), strict=True):
        points = plot.viz[name]["panel"].item()
        assert_array_equal(points["x"], [20, 50])
        assert_allclose(points["y"], drift.table[column])


def test_without_smaller_tasks_there_are_no_points(task, prediction):
    plot = plot_drift(measure_drift(task), prediction, backend="none")
    assert not set(POINTS) & set(plot.viz.children)


def test_refused(task, prediction):
    with pytest.raises(DataError, match="drift: expected what measure_drift returns"):
        plot_drift(task, prediction, backend="none")
    with pytest.raises(DataError, match="prediction: expected what predict"):
        plot_drift(measure_drift(task), task, backend="none")
