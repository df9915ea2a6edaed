"""What all plots share: legends, axes, colours, and the user's settings and axes."""

import itertools

import matplotlib as mpl
import pytest
from drawn import Drawn
from numpy.testing import assert_allclose, assert_array_equal

import classex_bayes as cb
from classex_bayes import Extrapolation
from classex_bayes.exceptions import DataError
from classex_bayes.results import Estimand

WORDS = {"ci_prob": 0.9, "ci_kind": "eti"}


def curve(name, start=0.9):
    return Extrapolation.from_point([10, 100], [start, start - 0.2], name, 10)


def legend(axes):
    """Texts of the legend."""
    (found,) = axes.figure.legends
    return [text.get_text() for text in found.get_texts()]


def test_the_legend_has_the_marks_of_its_series(prediction, point):
    (found,) = cb.plot_accuracy([prediction, point], None, {20: 0.8}, 0.7).figure.legends
    looks = {(line.get_linestyle(), line.get_marker()) for line in found.findobj(mpl.lines.Line2D)}
    # Two curves with dots, the truth, the target and the source classes.
    assert looks == {("-", "o"), ("--", "s"), ("None", "d"), ("-", "None"), (":", "None")}
    assert len(found.findobj(mpl.patches.Rectangle)) == 1  # the band


def test_bars_are_side_by_side(prediction):
    several = [
        Extrapolation(prediction.draws.isel(k=[0]), name, "bootstrap", 200)
        for name in ("one", "other")
    ]
    chart = Drawn(cb.plot_accuracy(several, target=0.6, **WORDS))
    names = [f"{name}, 90% bootstrap interval" for name in ("one", "other")]
    assert chart.legend == [*names, "target", "source classes"]
    left, right = (chart.mark(name, "line").x[0] for name in names)
    assert left == 1000 < right < 1100


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
    points = Extrapolation.from_point(k, [0.9, 0.8], "x", k[1])
    sized = {"figure_kwargs": {"figsize": (width, 3)}}
    axes = points.plot(**sized)
    axes.figure.draw_without_rendering()
    left, right = axes.get_window_extent().intervalx
    texts = [text for text in axes.get_xticklabels(which="both") if text.get_text()]
    seen = [t for t in texts if left <= t.get_window_extent().intervalx.mean() <= right]
    assert set(numbers) <= {text.get_text() for text in seen}
    boxes = sorted(text.get_window_extent().intervalx.tolist() for text in seen)
    assert all(first[1] < second[0] for first, second in itertools.pairwise(boxes))


def test_numbers_up_a_logarithmic_axis():
    ranks = Extrapolation.from_point(
        [100, 1000], [1, 60], "a", 10, estimand=Estimand(metric="mean_rank")
    )
    axes = ranks.plot()
    axes.figure.canvas.draw()
    assert {"1", "10", "50"} <= {text.get_text() for text in axes.get_yticklabels()}


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
        first, second, _ = cb.plot_accuracy([curve("a"), curve("b")]).lines
    assert image.imread(tmp_path / "small.png").shape[:2] == (120, 200)
    line, _ = axes.lines
    assert first.get_linestyle() != second.get_linestyle()
    assert axes.figure.get_size_inches().tolist() == [5, 3]
    assert (line.get_color(), line.get_linewidth()) == ("#123456", 5)
    assert axes.xaxis.label.get_size() == 17 and axes.figure.legends[0].handlelength == 1
    usual = cb.plot_accuracy(curve("a"))
    assert usual.figure.get_size_inches().tolist() == [8, 5.5]
    small = cb.plot_accuracy(curve("a"), figure_kwargs={"figsize": (3.3, 2.5)})
    assert small.figure.get_size_inches().tolist() == [3.3, 2.5]


def test_observed_data_are_seen_on_dark_styles():
    with mpl.rc_context():
        mpl.style.use("dark_background")
        axes = cb.plot_accuracy(curve("a"), truth={10: 0.8})
    (dots,) = (drawn for drawn in axes.lines if drawn.get_label() == "truth")
    assert_array_equal(mpl.colors.to_rgba(dots.get_color()), [1, 1, 1, 1])


def test_styles_go_to_what_is_drawn(prediction):
    style = {
        "ci_band": {"color": "#123456", "alpha": 0.5},
        "mean": {"color": "#654321", "linewidth": 3},
        "truth": {"markersize": 5, "color": "red"},
        "title": {"text": "mine"},
        "xlabel": {"text": "pictures", "size": 10},
        "ylabel": False,
        "legend": {"loc": "upper left"},
    }
    axes = cb.plot_accuracy(prediction, truth={9: 0.9}, visuals=style)
    assert (axes.lines[0].get_color(), axes.lines[0].get_linewidth()) == ("#654321", 3)
    (band,), points = axes.collections, axes.lines[-2]
    assert_allclose(band.get_facecolor()[0], mpl.colors.to_rgba("#123456", 0.5))
    assert (points.get_markersize(), points.get_color()) == (5, "red")
    assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == ("mine", "pictures", "")


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
    with pytest.raises(DataError) as caught:
        cb.plot_accuracy(curve("a"), **refused)
    assert str(caught.value).startswith(f"{next(iter(refused))}: ")


# Axes


def test_axes_of_the_user(prediction, results):
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, layout="constrained")
    assert cb.plot_accuracy(prediction, ax=axes[1]) is axes[1]
    assert figure.axes == list(axes)
    assert axes[1].lines and not axes[0].lines and not figure.legends and axes[1].get_legend()
    # A second plot takes the next colour and line style, and comes into the legend.
    cb.plot_accuracy(curve("b"), ax=axes[1])
    first, _, second, _ = axes[1].lines
    assert first.get_color() != second.get_color()
    assert first.get_linestyle() != second.get_linestyle()
    assert "b" in [text.get_text() for text in axes[1].get_legend().get_texts()]
    axes[1].clear()
    cb.plot_accuracy(curve("c"), ax=axes[1])
    assert axes[1].lines[0].get_color() == first.get_color()
    assert results["classifiers"].plot(ax=axes[[0, 2]]) == [axes[0], axes[2]]
    assert axes[0].lines and axes[2].lines
    figure.draw_without_rendering()


def test_axes_that_do_not_fit():
    from matplotlib import pyplot as plt

    _, axes = plt.subplots(1, 2)
    for given in (
        {"ax": axes}, {"ax": axes[0].figure}, {"ax": axes[0], "figure_kwargs": {}},
        {"ax": axes[0], "col_wrap": 1},
    ):  # fmt: skip
        with pytest.raises(DataError) as caught:
            cb.plot_accuracy(curve("a"), **given)
        assert str(caught.value).startswith(f"{[*given][-1]}: ")


@pytest.mark.parametrize(("columns", "rows"), [(None, 1), (1, 2)])
def test_panels_share_a_legend_and_can_be_below_one_another(results, columns, rows):
    axes = results["classifiers"].plot(col_wrap=columns, **WORDS)
    assert axes[0].figure.axes == axes
    assert axes[0].get_subplotspec().get_gridspec().nrows == rows
    assert Drawn(axes).legend == [f"{name}, 90% credible interval" for name in ("near", "far")]


def test_many_series_differ_in_colour_or_line_style():
    many = [curve(f"estimator {i}") for i in range(24)]
    drawn = cb.plot_accuracy(many)
    found = {(line.get_color(), line.get_linestyle()) for line in drawn.lines[:-1]}
    assert len(found) == 24
    inside_and_seen(drawn)


# Names are the user's


def test_names_are_no_mathtext(prediction, tmp_path):
    from dataclasses import replace

    from matplotlib import cbook

    names = [r"$\bad$", "<b>bold</b> & co &lt;", "$$x$$ \\(y\\)", r"\$ a $", "a/b"]
    drawn = cb.plot_accuracy([curve(name) for name in names])
    drawn.figure.savefig(tmp_path / "names.svg")
    assert [text.replace(r"\$", "$") for text in legend(drawn)] == [*names, "source classes"]
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
    shown = ["".join(text.split()) for text in legend(drawn)[:-1]]
    assert shown == ["".join(name.split()) for name in names]
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


def test_labels_of_paper_size_are_within_the_figure(results):
    sized = {"figure_kwargs": {"figsize": (3.4, 2.4)}}
    axes = cb.plots.plot_tail_checks(results["tails"], **sized)  # whose labels are long
    axes.figure.draw_without_rendering()
    for text in (axes.xaxis.label, axes.yaxis.label):
        box = text.get_window_extent()
        assert (box.min >= 0).all() and (box.max <= axes.figure.bbox.max).all()
