"""Figures of the paper: what is drawn is what the laws and the trials say."""

import numpy as np
import pandas as pd
import pytest

from studies.laws import bivariate_normal
from studies.papers import paper_figures as papers
from studies.papers.gaussian_simulation import rmse_by_cell


def test_figure4_the_means_of_label_sets_lie_on_the_line():
    axes = papers.figure4(n_sets=4000).axes[0]
    exact, means = (line.get_ydata() for line in axes.lines[-2:])
    np.testing.assert_allclose(exact, bivariate_normal(0.7).accuracy(np.arange(2, 11)))
    np.testing.assert_allclose(means, exact, atol=4 * 0.15 / np.sqrt(4000))


def trials():
    rows = [
        (cell, simulation, estimator, k, truth, truth + error)
        for cell, truth in (("0.1", 0.9), ("0.2", 0.6))
        for estimator, errors in (("a", (0.1, -0.1)), ("b", (0.05, 0.02)))
        for simulation, error in enumerate(errors)
        for k in (10, 20, 40)
    ]
    return pd.DataFrame(rows, columns=["cell", "simulation", "estimator", "k", "truth", "mean"])


@pytest.mark.parametrize(("figure", "column"), [(papers.figure7, "rmse"), (papers.figure8, "bias")])
def test_figures_7_and_8(figure, column):
    drawn = figure(trials())
    assert [panel.get_title() for panel in drawn.axes] == [f"{k} classes" for k in (10, 20, 40)]
    cells = rmse_by_cell(trials())[column].sort_index()
    for line in drawn.axes[1].lines[:2]:
        x, y = line.get_data()
        assert x.tolist() == [0.6, 0.9]
        expected = cells.loc[(line.get_label(), 20)].loc[["0.2", "0.1"]]
        np.testing.assert_allclose(y, expected)


def faces():
    rows = [
        (size, simulation, name, k, 1 / k, 1 / k + error * k / 40)
        for size in ("5", "10")
        for name, errors in (("KDE(bcv)", (0.1, -0.2, 0.3)), ("ClassExReg", (0.0, 0.1, 0.2)))
        for simulation, error in enumerate(errors)
        for k in (2, 10, 40)
    ]
    return pd.DataFrame(rows, columns=["cell", "simulation", "estimator", "k", "truth", "mean"])


def test_figure10_one_curve_for_each_pilot():
    table = faces()
    panels = papers.figure10(table).axes
    assert [panel.get_title() for panel in panels] == ["ClassExReg", "KDE(bcv)", "", ""]
    assert panels[2].get_ylabel().startswith("from 10 classes")
    *pilots, size, truth = panels[3].lines
    assert len(pilots) == 3 and size.get_xdata() == [10, 10]
    k, values = truth.get_data()
    np.testing.assert_allclose(values, 1 / np.asarray(k))
    assert truth.get_color() == "black"
    drawn = sorted(line.get_ydata()[-1] for line in pilots)
    np.testing.assert_allclose(drawn, 1 / 40 + np.array([-0.2, 0.1, 0.3]))
    rmse = np.sqrt(np.mean(np.square([0.1, 0.2, 0.3])))
    assert panels[3].texts[0].get_text() == f"RMSE {rmse:.3f}"
