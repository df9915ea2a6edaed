"""The plot of a diagnosis draws the shares that classes have in the errors."""

import numpy as np
import pytest

from classex_bayes.assumptions.diagnosis import diagnose
from classex_bayes.exceptions import DataError
from classex_bayes.plots.diagnosis_plot import plot_diagnosis
from classex_bayes.simulate import GaussianNearestNeighbor
from classex_bayes.task.source_task import SourceTask


@pytest.fixture(scope="module")
def task():
    law = GaussianNearestNeighbor(dim=8, noise_variance=0.2)
    return SourceTask.from_embeddings(*law.sample(60, repeats=2, random_seed=1))


@pytest.mark.parametrize("backend", ["none", "matplotlib"])
def test_lorenz_curves(task, backend):
    report = diagnose(task, random_seed=1)
    plot = plot_diagnosis(report, backend=backend)
    assert plot.backend == backend
    if backend == "matplotlib":
        axes = plot.get_viz("plot")
        assert axes.get_title() == "Who carries the errors: 60 classes, 0 warnings"
        assert len(axes.lines) == 4
        worst = np.sort(report.class_errors.missed)[::-1]
        x, y = axes.lines[0].get_data()
        np.testing.assert_allclose(y[1:], np.cumsum(worst) / worst.sum())
        np.testing.assert_allclose(x, np.arange(61) / 60)
        for line in axes.lines:
            curve = line.get_ydata()
            assert curve[0] == 0
            assert curve[-1] == pytest.approx(1)
            assert (np.diff(curve, 2) <= 1e-12).all()  # concave: largest first


def test_a_task_without_errors():
    y = np.arange(12)
    task = SourceTask.from_scores(np.eye(12) + np.arange(144).reshape(12, 12) / 1e4, y)
    assert plot_diagnosis(diagnose(task), backend="none").backend == "none"


def test_refused(task):
    bare = SourceTask.from_ranks(task.ranks, task.y, n_classes=60)
    with pytest.raises(DataError, match="report: it has no errors by class"):
        plot_diagnosis(diagnose(bare))
    with pytest.raises(DataError, match="report: expected a TaskReport, found int"):
        plot_diagnosis(3)
