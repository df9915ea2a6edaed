"""The plot of a diagnosis draws the shares that classes have in the errors."""

import numpy as np
import pytest

from classex_bayes.assumptions.diagnosis import diagnose
from classex_bayes.exceptions import DataError
from classex_bayes.plots.diagnosis_plot import plot_diagnosis
from classex_bayes.plots.drawing import chart_of
from classex_bayes.task.source_task import SourceTask

fill = chart_of(plot_diagnosis)


def test_lorenz_curves(results):
    report = results["report"]
    chart = fill(report)
    assert chart.title.startswith("Who carries the errors: 60 classes, ")
    assert len(chart.marks) == 4
    worst = np.sort(report.class_errors.missed)[::-1]
    first = chart.marks[0]
    np.testing.assert_allclose(first.y[0][1:], np.cumsum(worst) / worst.sum())
    np.testing.assert_allclose(first.x, np.arange(61) / 60)
    for mark in chart.marks:
        (curve,) = mark.y
        assert curve[0] == 0 and curve[-1] == pytest.approx(1)
        assert (np.diff(curve, 2) <= 1e-12).all()  # concave: largest first


def test_a_task_without_errors():
    y = np.arange(12)
    task = SourceTask.from_scores(np.eye(12) + np.arange(144).reshape(12, 12) / 1e4, y)
    assert "errors, by true class" not in fill(diagnose(task)).series


def test_refused(pilot):
    bare = SourceTask.from_ranks(pilot.task.ranks, pilot.task.y, n_classes=200)
    with pytest.raises(DataError, match="report: it has no errors by class"):
        fill(diagnose(bare))
    with pytest.raises(DataError, match="report: expected a TaskReport, found int"):
        fill(3)
