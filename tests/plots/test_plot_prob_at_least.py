"""The plot of the probability of an accuracy: a line for each level."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from classex_bayes.exceptions import DataError
from classex_bayes.plots.drawing import chart_of
from classex_bayes.plots.prob_at_least_plot import plot_prob_at_least
from classex_bayes.results import Extrapolation

fill = chart_of(plot_prob_at_least)


def test_prob_at_least(prediction):
    assert prediction.prob_at_least(0.5).name == "probability"
    chart = fill(prediction, [0.4, 0.6])
    assert (chart.title, chart.y_labels) == ("drawn: expected accuracy", ("posterior probability",))
    for level in (0.4, 0.6):
        line = chart.mark(f"at least {level}", "line")
        assert line.x.tolist() == [10, 200, 1000]
        assert_allclose(line.y[0], prediction.prob_at_least(level)[[10, 200, 1000]])
    assert [mark.kind for mark in fill(prediction, 0.4, k=[200]).marks] == ["points"]
    assert fill(prediction, 0.4, k=200).marks[0].x.tolist() == [10, 200]


def test_refused(prediction, point):
    for given, level, message in (
        (point, 0.5, "point is a point estimate"),
        (0.5, 0.5, "prediction: expected what predict"),
        (prediction, [], "level: expected one or more different levels"),
        (prediction, [0.5, 0.5], "level: expected one or more different levels"),
        (prediction, [0.5, 5], "level: expected a number between 0 and 1"),
    ):
        with pytest.raises(DataError, match=message):
            fill(given, level)
    ranks = Extrapolation(prediction.draws, "a", "credible", 10)
    assert np.isfinite(fill(ranks, 0.5).marks[0].y[0]).all()
