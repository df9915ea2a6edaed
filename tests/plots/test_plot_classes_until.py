"""The plot of a number of classes: draws, interval, and draws beyond the search."""

import numpy as np
import pytest
import xarray as xr
from helpers import marks
from numpy.testing import assert_allclose, assert_array_equal

from classex_bayes.exceptions import DataError
from classex_bayes.plots.classes_until_plot import plot_classes_until
from classex_bayes.results import ClassesUntil

LARGEST = 10**12


def until(k):
    draws = xr.DataArray(np.atleast_2d(np.asarray(k, dtype=float)), dims=("chain", "draw"))
    return ClassesUntil(0.8, draws, LARGEST)


def spread(number=2000):
    k = 10 ** np.random.default_rng(1).normal(10, 2, number)
    return until(np.where(k < LARGEST, k, np.inf))


@pytest.mark.parametrize("backend", ["none", "matplotlib"])
def test_classes_until(backend):
    result = spread()
    beyond = np.isinf(result.k.values).mean()
    plot = plot_classes_until(result, ci_prob=0.8, backend=backend)
    edge = f"more than 10^12: {beyond:.0%} of the draws"
    if backend == "matplotlib":
        axes = plot.get_viz("plot")
        assert axes.get_xscale() == "log"
        assert axes.get_title().startswith("Accuracy falls to 80% at ")
        texts = [text.get_text() for text in axes.figure.legends[0].get_texts()]
        assert texts == ["posterior", "80% credible interval", "median", edge]
        return
    steps = marks(plot, "line posterior")
    heights = steps["y"][1:-1:2]
    assert heights.sum() + beyond == pytest.approx(1)
    edges = np.log10(steps["x"][::2])
    inside = np.log10(result.k.values[np.isfinite(result.k.values)])
    assert_allclose(heights[0] * result.k.size, np.sum(inside < edges[1]))
    last = marks(plot, f"line {edge}")
    assert_array_equal(last["x"], [LARGEST, LARGEST])
    assert_allclose(last["y"], [0, beyond])
    assert_allclose(marks(plot, "line median")["x"], result.median)
    band, (lower, _) = marks(plot, "band 80% credible interval"), result.interval(0.8)
    assert band["x"].min() == pytest.approx(lower)
    assert band["x"].max() == pytest.approx(steps["x"].max())  # the upper end is infinite
    # The band follows the histogram.
    middle = (band["x"][2::2] + band["x"][1:-1:2]) / 2
    assert set(np.round(band["y_top"], 12)) <= set(np.round(heights, 12)) and middle.size


@pytest.mark.parametrize("backend", ["none", "matplotlib"])
@pytest.mark.parametrize("k", [[np.inf] * 5, [1.0] * 5, [37.5], [2, 3, np.inf, np.inf, np.inf]])
def test_extreme_answers(k, backend):
    plot = plot_classes_until(until(k), backend=backend)
    names = set(plot.viz.children)
    assert ("line median" in names) == (np.isinf(k).mean() <= 0.5)
    assert ("line posterior" in names) == (not np.isinf(k).all())
    if "line posterior" in names and backend == "none":
        assert marks(plot, "line posterior")["y"].sum() == pytest.approx(2 * np.isfinite(k).mean())


def test_refused():
    with pytest.raises(DataError, match="result: expected what classes_until returns"):
        plot_classes_until(100)
