"""Charts, and what is drawn of them: legends, axes, colours, and the user's settings and axes."""

import itertools

import arviz_base
import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import classex_bayes as cb
from classex_bayes import Extrapolation
from classex_bayes.exceptions import DataError
from classex_bayes.plots.chart import INK, Chart
from classex_bayes.plots.figure import PALETTE, draw

INTERVAL = "drawn, 90% credible interval"
WORDS = {"ci_prob": 0.9, "ci_kind": "eti"}


def curve(name, start=0.9):
    return Extrapolation.from_point([10, 100], [start, start - 0.2], name, 10)


def legend(axes):
    """Texts of the legend."""
    (found,) = axes.figure.legends
    return [text.get_text() for text in found.get_texts()]


def artist(artists, series):
    """The first of some artists that belongs to a series."""
    return next(drawn for drawn in artists if drawn.get_label() == series)


# Charts


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
    assert chart.series == {series: 0, "point": None}


def test_intervals_are_those_of_the_settings_of_arviz(prediction):
    with arviz_base.rc_context({"stats.ci_prob": 0.5, "stats.ci_kind": "hdi"}):
        name = Chart().prediction("a", prediction)
    assert name == "a, 50% credible interval (highest density)"
    for wrong in ({"ci_prob": 1}, {"ci_kind": "central"}):
        with pytest.raises(DataError, match=next(iter(wrong))):
            Chart(**wrong)


def test_a_single_number_of_classes_has_bars_points_and_a_level(prediction):
    chart = Chart(0.9, "eti")
    series = chart.prediction("a", prediction, 200)
    chart.level("level", chart.marks[0].x, 0.5, visual="target")
    bar, mean, level = chart.marks
    assert (bar.kind, mean.kind) == ("bar", "points")
    lower, upper = prediction.interval(0.9, "eti").loc[200]
    assert [*bar.y[0], *bar.y[1]] == [lower, upper]
    assert level.x[0] < 200 < level.x[1] and set(level.y[0]) == {0.5} and series in chart.series


def test_curves_have_dots_where_they_are_known_at_few_places():
    chart = Chart()
    for n in (2, 12, 13):
        chart.curve(f"{n}", np.arange(1, n + 1), np.arange(n))
    dotted = [mark.series for mark in chart.marks if mark.kind == "points"]
    assert dotted == ["2", "12"]


# What is drawn


def test_values_and_legend(prediction, point):
    known = {20: 0.8, 1000: 0.5}
    axes = cb.plot_accuracy([prediction, point], None, known, 0.7, **WORDS)
    x, y = artist(axes.lines, INTERVAL).get_data()
    assert_array_equal(x, [10, 200, 1000])
    assert_allclose(y, prediction.mean.sort_index())
    band = artist(axes.collections, INTERVAL).get_paths()[0].vertices
    limits = prediction.interval(0.9, "eti")
    assert (band[:, 1].min(), band[:, 1].max()) == (limits["lower"].min(), limits["upper"].max())
    assert artist(axes.collections, "truth").get_offsets().tolist() == [[20, 0.8], [1000, 0.5]]
    assert legend(axes) == [INTERVAL, "point", "truth", "target"]


def test_the_plotting_library_of_arviz_is_for_its_own_plots():
    with arviz_base.rc_context({"plot.backend": "plotly"}):
        assert isinstance(cb.plot_accuracy(curve("a")), mpl.axes.Axes)


def test_the_legend_has_the_marks_of_its_series(prediction, point):
    (found,) = cb.plot_accuracy([prediction, point], None, {20: 0.8}, 0.7).figure.legends
    drawn = {
        kind.__name__: len(found.findobj(kind))
        for kind in (mpl.collections.PathCollection, mpl.lines.Line2D)
    }
    # Dots of two curves and of the truth; lines of two curves and of the target.
    assert drawn == {"PathCollection": 3, "Line2D": 3}
    assert len(found.findobj(mpl.patches.Rectangle)) == 1  # the band


def test_bars_are_side_by_side(prediction):
    several = [
        Extrapolation(prediction.draws.isel(k=[0]), name, "bootstrap", 200)
        for name in ("one", "other")
    ]
    axes = cb.plot_accuracy(several, target=0.6, **WORDS)
    label = "90% bootstrap interval"
    assert legend(axes) == [f"one, {label}", f"other, {label}", "target"]
    bars = [artist(axes.lines, f"{name}, {label}") for name in ("one", "other")]
    left, right = (bar.get_xdata()[0].item() for bar in bars)
    ends = artist(axes.lines, "target").get_xdata()
    assert ends[0] < left < 1000 < right < ends[1]


# Numbers of the axes


@pytest.mark.parametrize(
    ("width", "k", "numbers"),
    [
        (8.0, [2, 1000], ["2", "5", "10", "20", "50", "100", "200", "500", "1,000"]),
        (8.0, [2, 10**5], ["10", "100", "1,000", "10,000", "100,000"]),
        (3.3, [2, 1000], ["10", "100", "1,000"]),
        (3.3, [2, 9], ["2", "5"]),
        (3.3, [200, 3000], ["200", "500", "1,000", "2,000"]),
        (3.3, [2, 10**9], ["10²", "10⁴", "10⁶", "10⁸"]),
        (8.0, [100, 400], ["100", "200", "300", "400"]),
        (8.0, [100, 1000], ["100", "200", "500", "1,000"]),
        (8.0, [310, 390], ["320", "360"]),
    ],
)
def test_numbers_of_classes_are_round_and_do_not_collide(width, k, numbers):
    points = Extrapolation.from_point(k, [0.9, 0.8], "x", 10**8)
    sized = {"figure_kwargs": {"figsize": (width, 3)}}
    axes = points.plot(**sized)
    axes.figure.draw_without_rendering()
    left, right = axes.get_window_extent().intervalx
    texts = [text for text in axes.get_xticklabels(which="both") if text.get_text()]
    seen = [t for t in texts if left <= t.get_window_extent().intervalx.mean() <= right]
    assert set(numbers) <= {text.get_text() for text in seen}
    boxes = sorted(text.get_window_extent().intervalx.tolist() for text in seen)
    assert all(first[1] < second[0] for first, second in itertools.pairwise(boxes))


@pytest.mark.parametrize(
    ("values", "numbers"),
    [([1e-5, 0.9], {"10⁻⁴", "10⁻²"}), ([0.2, 0.9], {"0.2", "0.5"}), ([1, 60], {"1", "10", "50"})],
)
def test_numbers_up_a_logarithmic_axis(values, numbers):
    chart = Chart(log_x=False, log_y=True)
    chart.add("line", "a", [0, 1], values)
    axes = draw(chart.labelled("t", "x", "y"))
    axes.figure.canvas.draw()
    assert numbers <= {text.get_text() for text in axes.get_yticklabels()}
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")


# Settings of the user


def test_rcparams_of_matplotlib_are_respected(tmp_path):
    from matplotlib import image

    settings = {
        "figure.figsize": (5, 3),
        "axes.prop_cycle": mpl.cycler(color=["#123456", "red"]),
        "legend.handlelength": 1,
        "font.size": 17,
        "savefig.dpi": 40,
        "lines.linewidth": 5,
    }
    with mpl.rc_context(settings):
        axes = cb.plot_accuracy(curve("a"))
        axes.figure.savefig(tmp_path / "small.png")
    assert image.imread(tmp_path / "small.png").shape[:2] == (120, 200)
    (line,) = axes.lines
    assert axes.figure.get_size_inches().tolist() == [5, 3]
    assert (line.get_color(), line.get_linewidth()) == ("#123456", 5)
    assert axes.xaxis.label.get_size() == 17 and axes.figure.legends[0].handlelength == 1
    usual = cb.plot_accuracy(curve("a"))
    assert usual.figure.get_size_inches().tolist() == [8, 5.5]
    assert usual.lines[0].get_color() == PALETTE[0]
    assert not usual.figure.legends[0].get_frame_on()
    small = cb.plot_accuracy(curve("a"), figure_kwargs={"figsize": (3.3, 2.5)})
    assert small.figure.get_size_inches().tolist() == [3.3, 2.5]


def test_observed_data_are_seen_on_dark_styles():
    with mpl.rc_context():
        mpl.style.use("dark_background")
        axes = cb.plot_accuracy(curve("a"), truth={10: 0.8})
    dots = artist(axes.collections, "truth")
    assert_array_equal(dots.get_facecolor()[0], [1, 1, 1, 1])


def test_styles_go_to_what_is_drawn(prediction):
    style = {
        "ci_band": {"color": "#123456", "alpha": 0.5},
        "mean": {"color": "#654321", "linewidth": 3},
        "truth": {"s": 5, "color": "red"},
        "title": {"text": "mine"},
        "xlabel": {"text": "pictures", "size": 10},
        "ylabel": False,
        "legend": {"loc": "upper left"},
    }
    axes = cb.plot_accuracy(prediction, truth={9: 0.9}, visuals=style)
    assert (axes.lines[0].get_color(), axes.lines[0].get_linewidth()) == ("#654321", 3)
    band, *_, points = axes.collections
    assert_allclose(band.get_facecolor()[0], mpl.colors.to_rgba("#123456", 0.5))
    assert points.get_sizes().tolist() == [5]
    assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == ("mine", "pictures", "")


def test_everything_is_removed(prediction):
    names = "ci_band", "mean", "truth", "title", "xlabel", "ylabel", "legend"
    axes = cb.plot_accuracy(prediction, truth={9: 0.9}, visuals=dict.fromkeys(names, False))
    assert not (axes.lines or axes.collections or axes.figure.legends)
    assert {axes.get_title(), axes.get_xlabel(), axes.get_ylabel()} == {""}


@pytest.mark.parametrize("wrong", [{"title": "no mapping"}, "title", {"band": False}])
def test_wrong_visuals(wrong):
    with pytest.raises(DataError, match="visuals: expected"):
        cb.plot_accuracy(curve("a"), visuals=wrong)
    # One that is not drawn this time can be removed.
    assert cb.plot_accuracy(curve("a"), visuals={"observed": False})


@pytest.mark.parametrize(
    "refused",
    [
        {"visuals": {"mean": {"colour": "red"}}},
        {"visuals": {"mean": {"color": "no colour"}}},
        {"figure_kwargs": {"figsize": "wide"}},
        {"figure_kwargs": {"size": 3}},
    ],
)
def test_what_matplotlib_refuses_names_the_argument(refused):
    with pytest.raises(DataError, match=f"^{next(iter(refused))}: found what matplotlib refuses"):
        cb.plot_accuracy(curve("a"), **refused)


# Axes


def test_axes_of_the_user(prediction):
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, layout="constrained")
    assert cb.plot_accuracy(prediction, ax=axes[1]) is axes[1]
    assert figure.axes == list(axes)
    assert axes[1].lines and not axes[0].lines and not figure.legends and axes[1].get_legend()
    # A second chart takes the next colour and line style, and comes into the legend.
    cb.plot_accuracy(curve("b"), ax=axes[1])
    assert [line.get_color() for line in axes[1].lines] == list(PALETTE[:2])
    assert [line.get_linestyle() for line in axes[1].lines] == ["-", "--"]
    assert axes[1].get_legend().get_texts()[1].get_text() == "b"
    axes[1].clear()
    cb.plot_accuracy(curve("c"), ax=axes[1])
    assert [line.get_color() for line in axes[1].lines] == [PALETTE[0]]
    panels = Chart(panels=("left", "right"))
    for panel in panels.panels:
        panels.add("line", "a", [1, 2], [0, 1], panel=panel)
    assert draw(panels.labelled("t", "x", "y", "z"), ax=axes[[0, 2]]) == [axes[0], axes[2]]
    assert axes[0].lines and axes[2].get_ylabel() == "z"
    figure.draw_without_rendering()


def test_axes_that_do_not_fit():
    from matplotlib import pyplot as plt

    _, axes = plt.subplots(1, 2)
    for given, message in (
        ({"ax": axes}, "ax: expected one axes"),
        ({"ax": 3}, "ax: .* found 3"),
        ({"ax": axes[0].figure}, "ax: .* found Figure|ax: .* found <Figure"),
        ({"ax": axes[0], "figure_kwargs": {}}, "figure_kwargs: the axes are in a figure"),
        ({"ax": axes[0], "col_wrap": 1}, "col_wrap: the axes are in a figure"),
        ({"col_wrap": 0}, "col_wrap: expected a whole number"),
    ):
        with pytest.raises(DataError, match=message):
            cb.plot_accuracy(curve("a"), **given)


@pytest.mark.parametrize(("columns", "rows"), [(None, 1), (1, 2)])
def test_panels_share_a_legend_and_can_be_below_one_another(columns, rows):
    chart = Chart(panels=("left", "right"))
    for panel in chart.panels:
        chart.add("line", "a", [1, 2], [0, 1], panel=panel)
    axes = draw(chart.labelled("t", "x", "y", "z"), col_wrap=columns)
    assert axes[0].figure.axes == axes
    assert axes[0].get_subplotspec().get_gridspec().nrows == rows
    assert legend(axes[0]) == ["a"]


def test_many_series_differ_in_colour_or_line_style():
    many = [curve(f"estimator {i}") for i in range(24)]
    drawn = cb.plot_accuracy(many)
    found = {(line.get_color(), line.get_linestyle()) for line in drawn.lines}
    assert len(found) == 24
    inside_and_seen(drawn)


# Names are the user's


def test_names_are_no_mathtext(prediction, tmp_path):
    from dataclasses import replace

    from matplotlib import cbook

    names = [r"$\bad$", "<b>bold</b> & co &lt;", "$$x$$ \\(y\\)", r"\$ a $", "a/b"]
    drawn = cb.plot_accuracy([curve(name) for name in names])
    drawn.figure.savefig(tmp_path / "names.svg")
    assert [text.replace(r"\$", "$") for text in legend(drawn)] == names
    assert not any(map(cbook.is_math_text, legend(drawn)))
    named = replace(prediction, estimator=r"$\bad$ $$x$$")
    title = cb.plots.plot_prob_at_least(named, 0.5).get_title()
    assert title.replace(r"\$", "$") == r"$\bad$ $$x$$: expected accuracy"
    assert not cbook.is_math_text(title)


@pytest.mark.parametrize("width", [3.3, 8])
def test_long_names_are_wrapped(width):
    names = ["unbroken_name_" * 12, "a name of some words " * 9, "short"]
    sized = {"figure_kwargs": {"figsize": (width, 5)}}
    drawn = cb.plot_accuracy([curve(name) for name in names], **sized)
    assert ["".join(text.split()) for text in legend(drawn)] == ["".join(n.split()) for n in names]
    inside_and_seen(drawn)
    draws = Extrapolation(curve(names[1]).draws, names[1], "credible", 10)
    titled = cb.plots.plot_prob_at_least(draws, 0.5, **sized)
    titled.figure.draw_without_rendering()
    box = titled.title.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= titled.figure.bbox.x1


def inside_and_seen(drawn):
    """The legend stays within the figure, whatever its resolution; the axes stay large."""
    figure = drawn.figure
    for dpi in (50, 300):
        figure.set_dpi(dpi)
        figure.draw_without_rendering()
        box = figure.legends[0].get_window_extent()
        assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert box.y0 >= 0 and box.y1 < drawn.get_window_extent().y0
        assert drawn.get_window_extent().height > 2.5 * dpi


def test_labels_of_paper_size_are_within_the_figure():
    chart = Chart()
    chart.curve("a", [1, 2], [0.1, 0.2])
    label = "a label that is longer than the axes of a small figure"
    sized = {"figure_kwargs": {"figsize": (3.4, 2.4)}}
    axes = draw(chart.labelled("title", label, label), **sized)
    axes.figure.draw_without_rendering()
    for text in (axes.xaxis.label, axes.yaxis.label):
        box = text.get_window_extent()
        assert (box.min >= 0).all() and (box.max <= axes.figure.bbox.max).all()
