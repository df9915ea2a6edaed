"""Charts drawn in a plot that exists: their looks, titles and axes."""

import numpy as np
import pytest
import xarray as xr

from classex_bayes.exceptions import DataError
from classex_bayes.plots.accuracy_plot import plot_accuracy
from classex_bayes.plots.chart import Chart
from classex_bayes.plots.classes_until_plot import plot_classes_until
from classex_bayes.plots.libraries import PALETTE, PlotLibrary
from classex_bayes.results import ClassesUntil, Extrapolation

LIBRARIES = ["matplotlib", "plotly", "bokeh"]
every_library = pytest.mark.parametrize("backend", LIBRARIES)


def curve(name, start=0.9):
    return Extrapolation.from_point([10, 100], [start, start - 0.2], name, 10)


def looks(plot, name):
    """Colour and dashes of the line of a series."""
    line = plot.viz[f"line {name}"]["panel"].item()
    if plot.backend == "matplotlib":
        return line.get_color(), line.get_linestyle()
    if plot.backend == "plotly":
        return line.line.color, line.line.dash
    return line.glyph.line_color, str(line.glyph.line_dash)


@every_library
def test_curves_of_two_calls_differ(backend):
    plot = plot_accuracy(curve("a"), target=0.5, backend=backend)
    plot_accuracy([curve("b"), curve("c")], plot_collection=plot)
    plot_accuracy(curve("d"), plot_collection=plot)
    found = [looks(plot, name) for name in "abcd"]
    assert [color for color, _ in found] == list(PALETTE[:4])
    assert len({dash for _, dash in found}) == 4
    together = plot_accuracy([curve(name) for name in "abcd"], backend=backend)
    assert [looks(together, name) for name in "abcd"] == found


def test_curves_of_two_calls_on_the_same_axes_differ():
    from matplotlib import pyplot as plt

    _, axes = plt.subplots()
    for name in "ab":
        plot_accuracy(curve(name), ax=axes)
    assert [line.get_color() for line in axes.lines] == list(PALETTE[:2])
    assert [line.get_linestyle() for line in axes.lines] == ["-", "--"]
    axes.clear()
    plot_accuracy(curve("c"), ax=axes)
    assert [line.get_color() for line in axes.lines] == [PALETTE[0]]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["c"]


def test_colours_that_belong_together_move_together():
    draws = xr.DataArray([[900.0, 1000.0, 1100.0, np.inf]], dims=("chain", "draw"))
    plot = plot_classes_until(ClassesUntil(0.8, draws, 10**12, 50), backend="plotly")
    later = plot_classes_until(ClassesUntil(0.7, draws / 10, 10**12, 50), plot_collection=plot)
    posterior = looks(later, "posterior")
    assert posterior == (PALETTE[2], "dot")
    bands = {trace.fillcolor for trace in plot.get_viz("figure").data if trace.fill == "tonexty"}
    assert len(bands) == 4


@every_library
def test_a_later_title_takes_the_place_of_the_first(backend):
    plot = plot_accuracy(curve("a"), visuals={"title": {"text": "first"}}, backend=backend)
    plot_accuracy(curve("b"), visuals={"title": {"text": "second"}}, plot_collection=plot)
    if backend == "plotly":
        notes = [note.text for note in plot.get_viz("figure").layout.annotations]
        assert [text for text in notes if text.strip()] == ["second"]
    else:
        target = plot.get_viz("plot")
        title = target.get_title() if backend == "matplotlib" else target.title.text
        assert title == "second"


def share(log_x=False, label="share"):
    chart = Chart({"shares": None}, log_x=log_x)
    chart.line("shares", np.array([0.1, 1.0]), np.array([0.0, 1.0]))
    return chart.labelled("Shares", label, "share carried")


@pytest.mark.parametrize("backend", [*LIBRARIES, "none"])
def test_another_x_axis_is_refused(backend):
    plot = plot_accuracy(curve("a"), backend=backend)
    before = list(plot.viz.children)
    found = r"plot_collection: found a plot with logarithmic x \(number of classes k\) and linear y"
    for chart in (share(), share(log_x=True), share(label="number of classes $k$")):
        with pytest.raises(DataError, match=f"{found}, expected .*; draw in one"):
            chart.draw(plot_collection=plot)
    assert list(plot.viz.children) == before


def test_another_x_axis_is_refused_on_axes():
    from matplotlib import pyplot as plt

    _, axes = plt.subplots()
    share().draw(ax=axes)
    with pytest.raises(DataError, match=r"ax: found a plot with linear x \(share\) and linear y"):
        plot_accuracy(curve("a"), ax=axes)
    axes.clear()
    assert plot_accuracy(curve("a"), ax=axes).backend == "matplotlib"


def test_the_legend_of_plotly_has_the_dashes_of_the_lines():
    plot = plot_accuracy([curve(name) for name in "abcd"], target=0.5, backend="plotly")
    figure = plot.get_viz("figure")
    entries = {trace.name: trace.line.dash for trace in figure.data if trace.showlegend}
    assert entries == {name: looks(plot, name)[1] for name in [*"abcd", "target"]}


def test_a_theme_of_bokeh_that_cannot_be_read_leaves_our_colours(monkeypatch):
    from bokeh import io

    monkeypatch.setattr(type(io.curdoc()), "theme", object())
    plot = plot_accuracy(curve("a"), backend="bokeh")
    assert looks(plot, "a")[0] == PlotLibrary().palette()[0]
