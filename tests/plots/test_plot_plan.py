"""The plot of a plan: a line for each repeats, and the wanted width."""

import numpy as np
import pandas as pd
import pytest

from classex_bayes.evaluate.plan import Plan
from classex_bayes.exceptions import DataError
from classex_bayes.plots.drawing import chart_of
from classex_bayes.plots.plan_plot import plot_plan

fill = chart_of(plot_plan)


def planned(classes, n_pilots=5, width=0.08, excludes=None):
    rows = [
        {"classes": k, "repeats": r, "instances": k * r, "width": 1 / np.sqrt(k * r)}
        for k in classes
        for r in (1, 4)
    ]
    table = pd.DataFrame(rows).assign(width_sd=0.01, reached=0.5, error=0.1)
    table["power"] = 1 - table["width"]
    return Plan(table, 1000, width, excludes, 0.9, "eti", n_pilots, (0.8, 0.01))


def test_lines():
    chart = fill(planned([50, 100, 400]))
    assert chart.title.splitlines() == [
        "Plan: accuracy at 1,000 classes", "bands: one standard deviation over pilots"
    ]  # fmt: skip
    once, often, wanted = chart.series
    assert often == "4 instances of each class"
    for name, repeats in ((once, 1), (often, 4)):
        line, band = chart.mark(name, "line"), chart.mark(name, "band")
        assert line.x.tolist() == band.x.tolist() == [50, 100, 400]
        np.testing.assert_allclose(line.y[0], 1 / np.sqrt(repeats * line.x))
        np.testing.assert_allclose(band.y, [line.y[0] - 0.01, line.y[0] + 0.01])
    level = chart.mark(wanted, "line")
    np.testing.assert_allclose([level.x, level.y[0]], [[50, 400], [0.08, 0.08]])


def test_queries_on_a_corpus():
    """With instances of some classes alone, widths stand against the number of instances."""
    result = planned([400])
    result.table["repeats"], result.table["instances"] = [0.25, 1.0], [100, 400]
    chart = fill(result)
    line = chart.mark("400 classes", "line")
    assert line.x.tolist() == [100, 400]
    assert chart.x_label == "number of test instances of the pilot"


def test_power():
    chart = fill(planned([100, 400], 5, None, 0.5))
    assert chart.title == "Plan: accuracy at 1,000 classes\nbands: one standard error"
    assert chart.y_labels == ("share of 90% credible intervals without 0.5",)
    once, often, usual = chart.series
    np.testing.assert_allclose(chart.mark(once, "line").y[0], [0.9, 0.95])
    np.testing.assert_allclose(chart.mark(often, "line").y[0], [0.95, 0.975])
    np.testing.assert_allclose(chart.mark(usual, "line").y[0], [0.8, 0.8])
    lower, upper = chart.mark(once, "band").y
    assert lower.min() == pytest.approx(0.9 - np.sqrt(0.9 * 0.1 / 5)) and upper.max() <= 1


def test_a_single_size_and_pilot():
    kinds = [mark.kind for mark in fill(planned([50], 1)).marks]
    assert kinds == ["points", "points", "line"]


def test_refused():
    with pytest.raises(DataError, match="result: expected a Plan, found int"):
        fill(3)
