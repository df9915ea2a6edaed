"""Charts hold what they draw: marks, names and labels, before a library is chosen."""

import numpy as np
import pytest

from classex_bayes.estimators.classexreg.classexreg import ClassExReg
from classex_bayes.exceptions import DataError
from classex_bayes.open_set.open_set import OpenSetExtrapolator
from classex_bayes.plots.accuracy_plot import TARGET, accuracy_chart
from classex_bayes.plots.chart import INK, Chart, Ribbon, palette_place, require_type
from classex_bayes.results import Extrapolation


def test_ribbons_are_in_order_and_points_have_no_band():
    draws = np.random.default_rng(1).beta(8, 3, (2, 100, 3))
    drawn = Extrapolation.from_draws([1000, 10, 100], draws, "drawn", "credible", 10)
    ribbon = Ribbon.of_prediction(drawn, 0.9, "eti")
    assert ribbon.x.tolist() == [10, 100, 1000]
    np.testing.assert_array_equal(ribbon.lower, drawn.interval(0.9, "eti")["lower"].sort_index())
    point = Ribbon.of_prediction(
        Extrapolation.from_point([20, 10], [0.8, 0.9], "p", 10), 0.9, "eti"
    )
    chart = Chart({"drawn": None, "point": INK})
    chart.ribbon("drawn", ribbon)
    chart.ribbon("point", point)
    assert [(mark.series, mark.kind) for mark in chart.marks] == [
        ("drawn", "band"), ("drawn", "line"), ("drawn", "points"), ("point", "line"),
        ("point", "points"),
    ]  # fmt: skip
    assert chart.mark("point", "line").y[0].tolist() == [0.9, 0.8]


def test_a_chart_is_known_before_it_is_drawn(pilot):
    model = ClassExReg(0.5).fit(pilot.task)
    chart = accuracy_chart(model, pilot.task, target=0.7, n_observed=5)
    assert chart.series == ("ClassExReg(0.5)", "observed", "target")
    assert (chart.x_label, chart.y_labels) == ("number of classes $k$", ("accuracy",))
    observed = chart.mark("observed", "points")
    np.testing.assert_allclose(observed.y[0], pilot.task.accuracy(observed.x))
    assert observed.x.size == 5 and set(chart.mark(TARGET, "line").y[0]) == {0.7}
    assert chart.draw(backend="none").backend == "none"


def test_colours_meet_every_line_style():
    assert len({palette_place(number, "abcdef") for number in range(24)}) == 24


def test_types_are_named():
    require_type(1, int, "found")
    with pytest.raises(DataError, match="found: expected a str, found int"):
        require_type(1, str, "found")
    with pytest.raises(DataError, match="model: expected an OpenSetExtrapolator, found int"):
        require_type(1, OpenSetExtrapolator, "model")
    with pytest.raises(DataError, match=r"found: expected what predict\(k\) returns, found int"):
        require_type(1, str, "found", "predict(k)")
