"""The plot of the probability of an accuracy: a line for each level."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from classex_bayes.exceptions import DataError
from classex_bayes.plots.prob_at_least_plot import plot_prob_at_least
from classex_bayes.results import Extrapolation


@pytest.mark.parametrize("backend", ["none", "matplotlib"])
def test_prob_at_least(backend):
    draws = np.random.default_rng(2).uniform(0.5, 1, (2, 300, 3)) / [2, 1, 1.5]
    prediction = Extrapolation.from_draws([1000, 10, 100], draws, "name", "credible", 10)
    plot = plot_prob_at_least(prediction, [0.4, 0.6], backend=backend)
    if backend == "matplotlib":
        axes = plot.get_viz("plot")
        assert (axes.get_xscale(), axes.get_ylabel()) == ("log", "posterior probability")
        assert axes.get_title() == "name: expected accuracy"
        return
    for level in (0.4, 0.6):
        line = plot.viz[f"line at least {level}"]["panel"].item()
        assert_array_equal(line["x"], [10, 100, 1000])
        assert_allclose(line["y"], prediction.prob_at_least(level)[[10, 100, 1000]])
    single = Extrapolation.from_draws([10], draws[..., :1], "name", "credible", 10)
    assert "points at least 0.4" in plot_prob_at_least(single, 0.4, backend="none").viz.children


def test_refused():
    point = Extrapolation.from_point([10, 20], [0.9, 0.8], "points", 10)
    draws = Extrapolation.from_draws([10], np.full((1, 5, 1), 0.5), "name", "credible", 10)
    for prediction, accuracy, message in (
        (point, 0.5, "points is a point estimate"),
        (0.5, 0.5, "prediction: expected what predict"),
        (draws, [], "level: expected one or more different levels"),
        (draws, [0.5, 0.5], "level: expected one or more different levels"),
        (draws, [0.5, 5], "level: expected a number between 0 and 1"),
    ):
        with pytest.raises(DataError, match=message):
            plot_prob_at_least(prediction, accuracy, backend="none")
