"""The plot of a plan: a line for each repeats, and the wanted width."""

import numpy as np
import pandas as pd
import pytest

from classex_bayes.evaluate.plan import Plan
from classex_bayes.exceptions import DataError
from classex_bayes.plots.plan_plot import plot_plan


def planned(classes, n_pilots=5, width=0.08, excludes=None):
    rows = [
        {"classes": k, "repeats": r, "instances": k * r, "width": 1 / np.sqrt(k * r)}
        for k in classes
        for r in (1, 4)
    ]
    table = pd.DataFrame(rows).assign(width_sd=0.01, reached=0.5, error=0.1)
    table["power"] = 1 - table["width"]
    return Plan(table, 1000, width, excludes, 0.9, "eti", n_pilots, (0.8, 0.01))


@pytest.mark.parametrize("backend", ["none", "matplotlib"])
def test_lines(backend):
    plot = plot_plan(planned([50, 100, 400]), backend=backend)
    assert plot.backend == backend
    if backend == "matplotlib":
        axes = plot.get_viz("plot")
        assert axes.get_title() == (
            "Plan: accuracy at 1,000 classes\nbands: one standard deviation over pilots"
        )
        once, often, wanted = (line.get_data() for line in axes.lines)
        np.testing.assert_allclose(once, [[50, 100, 400], 1 / np.sqrt([50, 100, 400])])
        np.testing.assert_allclose(often[1], 0.5 * once[1])
        np.testing.assert_allclose(wanted, [[50, 400], [0.08, 0.08]])
        names = [text.get_text() for text in axes.figure.legends[0].get_texts()]
        assert names[1] == "4 instances of each class"


def test_power():
    plot = plot_plan(planned([100, 400], 5, None, 0.5), backend="matplotlib")
    axes = plot.get_viz("plot")
    assert axes.get_title() == "Plan: accuracy at 1,000 classes\nbands: one standard error"
    assert axes.get_ylabel() == "share of 90% credible intervals without 0.5"
    once, often, usual = (line.get_data() for line in axes.lines)
    np.testing.assert_allclose(once, [[100, 400], [0.9, 0.95]])
    np.testing.assert_allclose(often[1], [0.95, 0.975])
    np.testing.assert_allclose(usual[1], [0.8, 0.8])
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == pytest.approx(0.9 - np.sqrt(0.9 * 0.1 / 5))
    assert band[:, 1].max() <= 1


def test_a_single_size_and_pilot():
    assert plot_plan(planned([50], 1), backend="none").backend == "none"


def test_refused():
    with pytest.raises(DataError, match="result: expected a Plan, found int"):
        plot_plan(3)
