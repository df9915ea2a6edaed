"""Charts hold what they draw: marks, names and labels, before a backend is chosen."""

import arviz_base
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from classex_bayes.exceptions import DataError
from classex_bayes.open_set.open_set import OpenSetExtrapolator
from classex_bayes.plots.chart import INK, Chart, require_type
from classex_bayes.plots.drawing import draw


def test_predictions_are_in_order_and_points_have_no_band(prediction, point):
    chart = Chart(0.8, "hdi")
    series = chart.prediction("drawn", prediction)
    assert chart.prediction("point", point, [1000, 10], color=INK) == "point"
    assert series == "drawn, 80% credible interval (highest density)"
    assert [(mark.series, mark.kind) for mark in chart.marks] == [
        (series, "band"), (series, "line"), (series, "points"), ("point", "line"),
        ("point", "points"),
    ]  # fmt: skip
    band, line = chart.mark(series, "band"), chart.mark(series, "line")
    assert band.x.tolist() == line.x.tolist() == [10, 200, 1000]
    limits = prediction.interval(0.8, "hdi").sort_index()
    assert_array_equal(band.y, limits[["lower", "upper"]].to_numpy().T)
    assert_allclose(line.y[0], prediction.mean.sort_index())
    assert chart.mark("point", "line").y[0].tolist() == [0.9, 0.5]
    # The second has a colour of its own and takes none of the palette.
    assert chart.series == {series: 0, "point": None} and chart.n_colors == 1


def test_intervals_are_those_of_the_settings_of_arviz(prediction):
    with arviz_base.rc_context({"stats.ci_prob": 0.5, "stats.ci_kind": "hdi"}):
        assert (
            Chart().prediction("a", prediction).endswith("50% credible interval (highest density)")
        )
    for wrong in ({"ci_prob": 1}, {"ci_kind": "central"}):
        with pytest.raises(DataError, match=next(iter(wrong))):
            Chart(**wrong)


def test_a_single_x(prediction):
    chart = Chart(0.9, "eti")
    series = chart.prediction("a", prediction, 200)
    chart.level("level", chart.marks[0].x, 0.5, visual="target")
    bar, mean, level = chart.marks
    assert (bar.kind, mean.kind) == ("band", "points")
    lower, upper = prediction.interval(0.9, "eti").loc[200]
    assert [*bar.y[0], *bar.y[1]] == [lower, upper]
    assert level.x[0] < 200 < level.x[1] and set(level.y[0]) == {0.5} and series in chart.series


def test_curves_pass_through_what_is_known_and_are_monotone():
    chart, x, y = Chart(), np.array([2.0, 10, 100, 5000]), np.array([1.0, 0.9, 0.9, 0.2])
    chart.curve("a", x, y)
    chart.line("b", x, y)
    smooth, dots, straight = chart.marks
    shown = smooth.smoothed()
    assert shown.x.size >= 200 and straight.smoothed() is straight
    assert shown.x[0] == smooth.x[0] and np.count_nonzero(shown.x > smooth.x[-2]) > 2
    assert_allclose(np.interp(x, shown.x, shown.y[0]), y)
    assert np.all(np.diff(shown.y[0]) <= 0) and dots.kind == "points"
    chart.curve("log", x, np.log(x))  # straight on the axis
    straight = chart.mark("log", "line").smoothed()
    assert_allclose(straight.y[0], np.log(straight.x))
    chart.curve("many", np.arange(1.0, 100), np.arange(1.0, 100))
    assert chart.marks[-1].kind == "line" and chart.marks[-1].smoothed() is chart.marks[-1]


def test_arrays_are_kept_without_a_backend():
    chart, x, y = Chart(), np.array([2.0, 10, 100]), np.array([1.0, 0.9, 0.5])
    chart.curve("a", x, y)
    plot = draw(chart.labelled("title", "x", "y"), backend="none")
    line = plot.viz["line a"]["panel"].item()
    assert_array_equal(line["x"], x)
    assert_array_equal(line["y"], y)


def test_types_are_named():
    require_type(1, int, "found")
    with pytest.raises(DataError, match="found: expected a str, found int"):
        require_type(1, str, "found")
    with pytest.raises(DataError, match="model: expected an OpenSetExtrapolator, found int"):
        require_type(1, OpenSetExtrapolator, "model")
    with pytest.raises(DataError, match=r"found: expected what predict\(k\) returns, found int"):
        require_type(1, str, "found", "predict(k)")
