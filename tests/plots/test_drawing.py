"""Charts on every backend: legends, axes, colours, names, the user's settings and targets."""

import itertools
from html import unescape

import matplotlib as mpl
import numpy as np
import pytest

import classex_bayes as cb
from classex_bayes.exceptions import DataError
from classex_bayes.plots.backends import PALETTE
from classex_bayes.plots.chart import MUTED, Chart
from classex_bayes.plots.drawing import chart_of, draw, palette_place
from classex_bayes.plots.log_ticks import log_ticks
from classex_bayes.results import Extrapolation

DRAWN = ["matplotlib", "plotly", "bokeh"]
INTERVAL = "drawn, 90% credible interval"
WORDS = {"ci_prob": 0.9, "ci_kind": "eti"}
every_backend = pytest.mark.parametrize("backend", DRAWN)


def curve(name, start=0.9):
    return Extrapolation.from_point([10, 100], [start, start - 0.2], name, 10)


def legend(plot):
    """Texts of the legend."""
    if plot.backend == "matplotlib":
        (found,) = plot.get_viz("figure").legends
        return [text.get_text() for text in found.get_texts()]
    if plot.backend == "plotly":
        shown = [trace for trace in plot.get_viz("figure").data if trace.showlegend]
        return [trace.name for trace in sorted(shown, key=lambda trace: trace.legendrank)]
    (first, *_) = (target.item() for target in plot.viz["plot"].dataset.values())
    return [entry.label.value for entry in first.legend[0].items]


def looks(plot, name):
    """Colour and dashes of the line of a series."""
    line = plot.viz[f"line {name}"]["panel"].item()
    if plot.backend == "matplotlib":
        return line.get_color(), line.get_linestyle()
    if plot.backend == "plotly":
        return line.line.color, line.line.dash
    return line.glyph.line_color, str(line.glyph.line_dash)


# What is drawn


@every_backend
def test_values_and_legend(prediction, point, backend):
    known = {20: 0.8, 1000: 0.5}
    plot = cb.plot_accuracy([prediction, point], None, known, 0.7, **WORDS, backend=backend)
    assert legend(plot) == [INTERVAL, "point", "truth", "target"]
    line, band = (plot.viz[f"{kind} {INTERVAL}"]["panel"].item() for kind in ("line", "band"))
    points = plot.viz["points truth"]["panel"].item()
    limits = prediction.interval(0.9, "eti").sort_index()
    if backend == "matplotlib":
        x, y = line.get_data()
        heights = band.get_paths()[0].vertices[:, 1]
        dots = points.get_offsets().tolist()
    elif backend == "plotly":
        x, y, heights = line.x, line.y, band.y
        dots = np.transpose([points.x, points.y]).tolist()
    else:
        x, y = (line.data_source.data[axis] for axis in "xy")
        heights = band.data_source.data["y2"]
        dots = np.transpose([points.data_source.data[axis] for axis in "xy"]).tolist()
    # Curves pass through what is known and are smooth between.
    assert np.asarray(x)[[0, -1]].tolist() == [10, 1000] and len(x) > 100
    at = np.searchsorted(x, [10, 200, 1000])
    np.testing.assert_allclose(np.asarray(y)[at], prediction.mean.sort_index())
    assert max(heights) == pytest.approx(limits["upper"].max())
    assert dots == [[20, 0.8], [1000, 0.5]]


def test_the_legend_has_the_marks_of_its_series(prediction, point):
    plot = cb.plot_accuracy([prediction, point], None, {20: 0.8}, 0.7, backend="matplotlib")
    (found,) = plot.get_viz("figure").legends
    columns = found._legend_handle_box.get_children()
    entries = [entry for column in columns for entry in column.get_children()]
    kinds = [
        [type(artist).__name__ for artist in entry.get_children()[0].get_children()]
        for entry in entries
    ]
    assert kinds == [
        ["Rectangle", "PathCollection", "Line2D"], ["PathCollection", "Line2D"],
        ["PathCollection"], ["Line2D"],
    ]  # fmt: skip
    plot = cb.plot_accuracy([prediction, point], None, {20: 0.8}, 0.7, backend="plotly")
    shown = [trace.mode for trace in plot.get_viz("figure").data if trace.showlegend]
    assert shown == ["lines", "lines", "markers", "lines"]


@every_backend
def test_a_single_number_of_classes_has_bars_side_by_side(prediction, backend):
    one = Extrapolation(prediction.draws.isel(k=[0]), "one", "bootstrap", 200)
    other = Extrapolation(prediction.draws.isel(k=[0]), "other", "bootstrap", 200)
    plot = cb.plot_accuracy([one, other], target=0.6, ci_prob=0.5, ci_kind="hdi", backend=backend)
    label = "50% bootstrap interval (highest density)"
    assert legend(plot) == [f"one, {label}", f"other, {label}", "target"]
    if backend == "matplotlib":
        lines = [plot.viz[f"band {name}, {label}"]["panel"].item() for name in ("one", "other")]
        left, right = (line.get_xdata()[0].item() for line in lines)
        assert left < 1000 < right
        ends = plot.viz["line target"]["panel"].item().get_xdata()
        assert ends[0] < left and right < ends[1]


@every_backend
def test_formulas_are_readable(backend):
    chart = Chart(log_x=False)
    chart.line("a", np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    chart.labelled("t", r"$z = \Phi^{-1}(u)$", r"$D(u) = P(U^* \leq u)$")
    plot = draw(chart, backend=backend)
    if backend == "matplotlib":
        assert plot.get_viz("plot").get_ylabel() == r"$D(u) = P(U^* \leq u)$"
        return
    if backend == "plotly":
        layout = plot.get_viz("figure").layout
        labels = layout.xaxis.title.text, layout.yaxis.title.text
    else:
        target = plot.get_viz("plot")
        labels = target.xaxis.axis_label, target.yaxis.axis_label
    assert labels == ("z = Φ⁻¹(u)", "D(u) = P(U* ≤ u)")


# Numbers of the axes


@pytest.mark.parametrize(
    ("ends", "numbers"),
    [
        ((1.9, 5200), [10, 100, 1000]),
        ((2, 60), [2, 5, 10, 20, 50]),
        ((0.25, 1.1), [0.3, 0.4, 0.6, 0.8, 1]),
        ((31, 39), [32, 34, 36, 38]),
        ((18, 1.3e9), [100, 1e4, 1e6, 1e8]),
        ((1.95, 3.05), [2, 3]),  # of classes, whose numbers are whole
        ((6.9, 7.1), [6.9, 6.95, 7, 7.05, 7.1]),
    ],
)
def test_round_numbers_of_an_axis(ends, numbers):
    np.testing.assert_allclose(log_ticks(*ends), numbers)


@pytest.mark.parametrize(
    ("width", "k"),
    [
        (2.0, [300, 420]), (2.0, [2, 10**5]), (3.3, [2, 5]), (3.3, [2, 9]), (3.3, [200, 3000]),
        (3.3, [2, 10**9]), (8.0, [300, 420]), (8.0, [2, 10**5]),
    ],
)  # fmt: skip
def test_numbers_do_not_collide(width, k):
    points = Extrapolation.from_point(k, [0.9, 0.8], "x", 10**8)
    sized = {"figure_kwargs": {"figsize": (width, 3)}}
    axes = points.plot(backend="matplotlib", **sized).get_viz("plot")
    axes.figure.draw_without_rendering()
    left, right = axes.get_window_extent().intervalx
    texts = [text for text in axes.get_xticklabels(which="both") if text.get_text()]
    boxes = [text.get_window_extent().intervalx for text in texts]
    seen = [box for box in boxes if left - 1 <= box.mean() <= right + 1]
    assert len(seen) >= 1 + (width > 3)
    assert all(a[1] < b[0] for a, b in itertools.pairwise(seen))


@pytest.mark.parametrize("values", [[1e-5, 0.9], [0.2, 0.9], [2, 60], [2, 1000]])
@every_backend
def test_numbers_on_logarithmic_axes(values, backend):
    chart = Chart(log_x=False, log_y=True)
    chart.line("a", np.array([0.0, 1.0]), np.array(values))
    target = draw(chart.labelled("t", "x", "y"), backend=backend).get_viz("plot")
    powers = values[0] < 1e-4
    texts, step = {
        1e-5: ({"$10^{-2}$"}, 1),
        0.9: ({"0.3", "0.4"}, "D1"),
        60: ({"2", "5", "10", "20", "50"}, "D2"),
        1000: ({"10", "100", "1,000"}, 1),
    }[values[0] if powers else values[1]]
    if backend == "matplotlib":
        target.figure.canvas.draw()
        assert texts <= {text.get_text() for text in target.get_yticklabels()}
        assert (target.get_xscale(), target.get_yscale()) == ("linear", "log")
    elif backend == "plotly":
        axis = target.figure.layout.yaxis
        assert (axis.type, axis.tickformat) == ("log", None if powers else ",~r")
        assert axis.dtick == step
        assert axis.exponentformat == ("power" if powers else None)
    else:
        (axis,) = target.yaxis
        assert type(target.y_scale).__name__ == "LogScale"
        written = None if powers else "0,0" if values[0] > 1 else "0.[000000]"
        assert getattr(axis.formatter, "format", None) == written


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
        own = cb.plot_accuracy(curve("a"), backend="matplotlib")
        own.savefig(tmp_path / "small.png")
    assert image.imread(tmp_path / "small.png").shape[:2] == (120, 200)
    figure, line = own.get_viz("figure"), own.viz["line a"]["panel"].item()
    assert figure.get_size_inches().tolist() == [5, 3]
    assert (line.get_color(), line.get_linewidth()) == ("#123456", 5)
    assert figure.axes[0].xaxis.label.get_size() == 17 and figure.legends[0].handlelength == 1
    plain = cb.plot_accuracy(curve("a"), backend="matplotlib")
    assert plain.get_viz("figure").get_size_inches().tolist() == [8, 5.5]
    assert (
        looks(plain, "a")[0] == PALETTE[0] and not plain.get_viz("figure").legends[0].get_frame_on()
    )


def test_text_is_seen_on_dark_styles(monkeypatch):
    def observed(backend):
        plot = cb.plot_accuracy(curve("a"), truth={10: 0.8}, backend=backend)
        return plot.viz["points truth"]["panel"].item()

    with mpl.rc_context():
        mpl.style.use("dark_background")
        np.testing.assert_array_equal(observed("matplotlib").get_facecolor()[0], [1, 1, 1, 1])
    from plotly import io

    monkeypatch.setattr(io.templates, "default", "plotly_dark")
    assert observed("plotly").marker.color == "#f2f5fa"
    monkeypatch.setattr(io.templates, "default", None)
    assert observed("plotly").marker.color == "black"
    from bokeh.io import curdoc

    monkeypatch.setattr(curdoc(), "theme", "dark_minimal")
    assert observed("bokeh").glyph.fill_color == "#FFFFFF"


def test_templates_of_plotly_are_respected(monkeypatch):
    from plotly import io

    for template in ("plotly_dark", "ggplot2"):
        monkeypatch.setattr(io.templates, "default", template)
        colors = io.templates[template].layout.colorway if template == "ggplot2" else PALETTE
        assert looks(cb.plot_accuracy(curve("a"), backend="plotly"), "a")[0] == colors[0]


def test_styles_go_to_what_is_drawn(prediction):
    style = {
        "ci_band": {"color": "#123456", "alpha": 0.5},
        "mean": {"color": "#654321", "width": 3},
        "truth": {"size": 5, "color": "red"},
        "title": {"text": "mine"},
        "xlabel": {"text": "pictures", "size": 10},
        "ylabel": False,
        "legend": {"loc": "upper left"},
    }
    plot = cb.plot_accuracy(prediction, truth={9: 0.9}, visuals=style, backend="matplotlib")
    axes = plot.get_viz("plot")
    assert (axes.lines[0].get_color(), axes.lines[0].get_linewidth()) == ("#654321", 3)
    band, *_, points = axes.collections
    np.testing.assert_allclose(band.get_facecolor()[0], mpl.colors.to_rgba("#123456", 0.5))
    assert points.get_sizes().tolist() == [5]
    assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == ("mine", "pictures", "")


@pytest.mark.parametrize("backend", ["plotly", "bokeh"])
def test_styles_of_pages(prediction, backend):
    style = {
        "truth": {"size": 5, "alpha": 0.5, "color": "red"},
        "mean": {"width": 3, "alpha": 0.5, "color": "red"},
        "ci_band": {"alpha": 0.1, "color": "red"},
        "xlabel": {"text": "pictures", "size": "10pt" if backend == "bokeh" else 10},
        "legend": False,
    }
    plot = cb.plot_accuracy(prediction, truth={9: 0.9}, visuals=style, backend=backend)
    if backend == "bokeh":
        assert plot.get_viz("plot").xaxis.axis_label == "pictures"
        assert not plot.get_viz("plot").legend
    else:
        assert plot.get_viz("figure").layout.xaxis.title.text == "pictures"
        assert not any(trace.showlegend for trace in plot.get_viz("figure").data)


@every_backend
def test_everything_is_removed(prediction, backend):
    names = "ci_band", "mean", "truth", "title", "xlabel", "ylabel", "legend"
    plot = cb.plot_accuracy(
        prediction, truth={9: 0.9}, visuals=dict.fromkeys(names, False), backend=backend
    )
    assert not plot.viz.children.keys() - {"plot", "row_index", "col_index"}
    if backend == "matplotlib":
        (axes,) = plot.get_viz("figure").axes
        assert not plot.get_viz("figure").legends
        assert {axes.get_title(), axes.get_xlabel(), axes.get_ylabel()} == {""}


def test_a_visual_that_is_not_there_can_be_removed():
    assert cb.plot_accuracy(curve("a"), visuals={"observed": False}, backend="none")


@pytest.mark.parametrize("wrong", [{"title": "no mapping"}, "title"])
def test_wrong_visuals(wrong):
    with pytest.raises(DataError, match="visuals: expected"):
        cb.plot_accuracy(curve("a"), visuals=wrong, backend="none")


def test_a_backend_that_is_missing(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "bokeh", None)
    with pytest.raises(ImportError, match=r"needs bokeh.*classex-bayes\[interactive\]"):
        cb.plot_accuracy(curve("a"), backend="bokeh")
    with pytest.raises(DataError, match="backend: found 'gnuplot'"):
        cb.plot_accuracy(curve("a"), backend="gnuplot")


# Targets


@every_backend
def test_a_plot_in_another(backend):
    plot = cb.plot_accuracy(
        curve("a"), target=0.5, visuals={"title": {"text": "first"}}, backend=backend
    )
    both = cb.plot_accuracy([curve("b"), curve("c")], plot_collection=plot)
    cb.plot_accuracy(curve("d"), plot_collection=plot)
    assert both is plot and set(legend(plot)) == {*"abcd", "target"}
    found = [looks(plot, name) for name in "abcd"]
    assert [color for color, _ in found] == list(PALETTE[:4])
    assert len({dash for _, dash in found}) == 4
    together = cb.plot_accuracy([curve(name) for name in "abcd"], backend=backend)
    assert [looks(together, name) for name in "abcd"] == found
    # A later title takes the place of the first.
    if backend == "plotly":
        titles = [note.text for note in plot.get_viz("figure").layout.annotations]
        assert [text for text in titles if text.strip()] == ["Accuracy on more classes"]


def test_axes_of_the_user(prediction):
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, layout="constrained")
    plot = cb.plot_accuracy(prediction, ax=axes[1])
    assert plot.get_viz("figure") is figure and figure.axes == list(axes)
    assert axes[1].lines and not axes[0].lines and not figure.legends and axes[1].get_legend()
    cb.plot_accuracy(curve("b"), ax=axes[1])
    assert [line.get_color() for line in axes[1].lines] == list(PALETTE[:2])
    assert [line.get_linestyle() for line in axes[1].lines] == ["-", "--"]
    axes[1].clear()
    cb.plot_accuracy(curve("c"), ax=axes[1])
    assert [line.get_color() for line in axes[1].lines] == [PALETTE[0]]
    assert [text.get_text() for text in axes[1].get_legend().get_texts()] == ["c"]
    panels = Chart(panels=("left", "right"))
    for panel in panels.panels:
        panels.line("a", np.array([1.0, 2.0]), np.array([0.0, 1.0]), panel=panel)
    draw(panels.labelled("t", "x", "y", "z"), ax=axes[[0, 2]])
    assert axes[0].lines and axes[2].get_ylabel() == "z"
    figure.draw_without_rendering()


def test_targets_that_do_not_fit():
    from matplotlib import pyplot as plt

    _, axes = plt.subplots(1, 2)
    plot = cb.plot_accuracy(curve("a"), backend="none")
    for given, message in (
        ({"ax": axes}, r"ax: expected one axes .* found 2 \(Axes\)"),
        ({"ax": 3}, r"ax: .* found 1 \(int\)"),
        ({"ax": axes[0].figure}, r"ax: .* found 1 \(Figure\)"),
        ({"ax": axes[0], "backend": "plotly"}, "backend: found 'plotly'"),
        ({"ax": axes[0], "figure_kwargs": {}}, "figure_kwargs: the axes are in a figure"),
        ({"plot_collection": axes[0]}, "plot_collection: expected a PlotCollection"),
        ({"plot_collection": plot, "ax": axes[0]}, "ax: found axes beside plot_collection"),
    ):
        with pytest.raises(DataError, match=message):
            cb.plot_accuracy(curve("a"), **given)
    two = Chart(panels=("accuracy", "best")).labelled("t", "x", "y", "z")
    with pytest.raises(DataError, match=r"plot_collection: expected .* 'accuracy', 'best'"):
        draw(two, plot_collection=plot)


def test_the_size_of_a_figure():
    sized = {"backend": "matplotlib", "figure_kwargs": {"figsize": (3.3, 2.5)}}
    figure = cb.plot_accuracy(curve("a"), **sized).get_viz("figure")
    assert figure.get_size_inches().tolist() == [3.3, 2.5]


def test_panels_share_a_legend_and_can_be_below_one_another():
    chart = Chart(panels=("left", "right"))
    for panel in chart.panels:
        chart.line("a", np.array([1.0, 2.0]), np.array([0.0, 1.0]), panel=panel)
    chart.labelled("t", "x", "y", "z")
    for columns, rows in ((None, 1), (1, 2)):
        figure = draw(chart, backend="matplotlib", col_wrap=columns).get_viz("figure")
        assert figure.axes[0].get_subplotspec().get_gridspec().nrows == rows
    left, right = (target.item() for target in draw(chart, backend="bokeh").viz["plot"].values())
    assert left.legend[0].click_policy == "hide" and left.legend[0] in left.below
    assert not right.legend[0].visible


# Colours

# Machado, Oliveira and Fernandes, IEEE TVCG 15(6), 2009: complete loss of one kind of cones.
BLINDNESS = {
    "none": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
XYZ = [
    [0.4124564, 0.3575761, 0.1804375],
    [0.2126729, 0.7151522, 0.0721750],
    [0.0193339, 0.1191920, 0.9503041],
]


def lab(color, seen_by):
    """CIE L*a*b* of a colour as someone sees it (D65)."""
    srgb = np.array(mpl.colors.to_rgb(color))
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(BLINDNESS[seen_by]) @ linear, 0, 1)
    xyz = np.array(XYZ) @ seen / np.sum(XYZ, axis=1)
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("seen_by", BLINDNESS)
def test_colours_are_told_apart(seen_by):
    # 2.3 is just noticeable side by side; matplotlib's own first six come to 4.6 (protanopia).
    seen = [lab(color, seen_by) for color in (*PALETTE, MUTED, "black")]
    closest = min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2))
    assert closest > 15


@pytest.mark.parametrize("color", [*PALETTE, MUTED])
def test_colours_are_seen_on_white_and_on_black(color):
    srgb = np.array(mpl.colors.to_rgb(color))
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    luminance = linear @ XYZ[1]
    assert 1.05 / (luminance + 0.05) > 2 and (luminance + 0.05) / 0.05 > 2


def test_many_series_differ_in_colour_or_line_style():
    assert len({palette_place(number, "abcdef") for number in range(24)}) == 24
    many = [curve(f"estimator {i}") for i in range(24)]
    drawn = cb.plot_accuracy(many, backend="matplotlib")
    found = {(line.get_color(), line.get_linestyle()) for line in drawn.get_viz("plot").lines}
    assert len(found) == 24


# Names are the user's

NAMES = [r"$\bad$", "<b>bold</b> & co &lt;", "$$x$$ \\(y\\)", r"\$ a $", "a/b", "_a"]


@every_backend
def test_names_are_no_markup(backend, tmp_path):
    drawn = cb.plot_accuracy([curve(name) for name in NAMES], backend=backend)
    texts = legend(drawn)
    if backend == "matplotlib":
        from matplotlib import cbook

        drawn.savefig(tmp_path / "names.svg")
        assert [text.replace(r"\$", "$") for text in texts] == NAMES
        assert not any(map(cbook.is_math_text, texts))
    elif backend == "plotly":
        assert [unescape(text) for text in texts] == NAMES
        assert not any(mark in text for mark in "<>$" for text in texts)
    else:
        assert texts == NAMES


@pytest.mark.parametrize("backend", ["matplotlib", "plotly"])
def test_names_in_titles_are_no_markup(prediction, backend):
    from dataclasses import replace

    named = replace(prediction, estimator=r"$\bad$ $$x$$ <b>")
    title = r"$\bad$ $$x$$ <b>: expected accuracy"
    drawn = cb.plots.plot_prob_at_least(named, 0.5, backend=backend)
    if backend == "matplotlib":
        drawn.get_viz("figure").draw_without_rendering()
        assert drawn.get_viz("plot").get_title().replace(r"\$", "$") == title
    else:
        found = next(one for one in drawn.get_viz("figure").layout.annotations if one.text.strip())
        assert unescape(found.text) == title


LONG = ["x" * 200, "M" * 200, "a name of some words " * 10, "short"]


@every_backend
def test_long_names_are_wrapped(backend):
    drawn = cb.plot_accuracy([curve(name) for name in LONG], backend=backend)
    breaks = "<br>" if backend == "plotly" else "\n"
    for text, name in zip(legend(drawn), LONG, strict=True):
        lines = text.split(breaks)
        assert max(map(len, lines)) <= 120
        assert "".join("".join(lines).split()) == "".join(name.split())
    if backend == "matplotlib":
        inside_and_seen(drawn)


def test_many_estimators_leave_room_for_the_plot():
    names = [f"estimator {i}" for i in range(29)] + ["one with a long name " * 9]
    drawn = cb.plot_accuracy([curve(name) for name in names], backend="matplotlib")
    assert len(legend(drawn)) == 30
    inside_and_seen(drawn)


def inside_and_seen(drawn):
    """The legend stays within the figure, whatever its resolution; the axes stay large."""
    figure = drawn.get_viz("figure")
    for dpi in (50, 100, 300):
        figure.set_dpi(dpi)
        figure.draw_without_rendering()
        box = figure.legends[0].get_window_extent()
        assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert box.y0 >= 0 and box.y1 < figure.axes[0].get_window_extent().y0
        assert figure.axes[0].get_window_extent().height > 3 * dpi


def test_a_long_title_is_wrapped():
    point = curve("a name of some words " * 8)
    drawn = cb.plots.plot_prob_at_least(
        Extrapolation(point.draws, point.estimator, "credible", 10), 0.5, backend="matplotlib",
        figure_kwargs={"figsize": (4, 3)},
    )  # fmt: skip
    figure = drawn.get_viz("figure")
    figure.draw_without_rendering()
    box = figure.axes[0].title.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.x1
    assert chart_of(cb.plots.plot_prob_at_least)(
        Extrapolation(point.draws, "a", "credible", 10), 0.5
    ).title.startswith("a: ")
