"""Figures of the paper: what is drawn is what the laws and the trials say."""

import numpy as np
import pandas as pd
import pytest

from classex_bayes.exceptions import DataError
from classex_bayes.plots import paper_figures as papers
from classex_bayes.simulate import BivariateNormal
from classex_bayes.studies.gaussian_simulation import rmse_by_cell


def test_figure4_the_means_of_label_sets_lie_on_the_line():
    axes = papers.figure4(n_sets=4000, random_seed=1).axes[0]
    exact, means = (line.get_ydata() for line in axes.lines[-2:])
    np.testing.assert_allclose(exact, BivariateNormal(0.7).accuracy(np.arange(2, 11)))
    np.testing.assert_allclose(means, exact, atol=4 * 0.15 / np.sqrt(4000))
    with pytest.raises(DataError, match="n_sets"):
        papers.figure4(n_sets=1)


def test_figures_5_and_6():
    left, right = papers.figure5().axes
    assert left.get_ylabel() == "label y"
    u, d = right.lines[0].get_data()
    np.testing.assert_allclose(d, BivariateNormal(0.7).discriminability(u))
    accuracy, law = papers.figure6().axes
    assert len(accuracy.lines) == len(law.lines) == 4
    # The higher the correlation, the higher the accuracy and the lower D.
    assert np.all(np.diff([line.get_ydata() for line in accuracy.lines], axis=0) > 0)


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
    with pytest.raises(DataError, match="no estimator was fitted"):
        figure(trials().assign(mean=np.nan))


def test_figures_show_tasks_that_every_estimator_met():
    table = trials()
    missing = (table["estimator"] == "b") & (table["simulation"] == 1)
    drawn, alone = papers.figure7(table[~missing]), papers.figure7(table[table["simulation"] == 0])
    for panel, other in zip(drawn.axes, alone.axes, strict=True):
        for line, expected in zip(panel.lines, other.lines, strict=True):
            np.testing.assert_array_equal(line.get_ydata(), expected.get_ydata())
    never_together = table[(table["estimator"] == "a") == (table["simulation"] == 0)]
    with pytest.raises(DataError, match="no task"):
        papers.figure7(never_together)
