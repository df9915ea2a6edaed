"""Every public plot on every library: legends, labels, axes, colours and the user's settings."""

import inspect
import itertools
import re
from dataclasses import replace
from html import unescape

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import classex_bayes as cb
from classex_bayes.assumptions.drift import measure_drift
from classex_bayes.evaluate.backtest import backtest
from classex_bayes.evaluate.classifiers import ClassifierComparison
from classex_bayes.evaluate.groups import GroupedExtrapolation
from classex_bayes.evaluate.plan import Plan
from classex_bayes.exceptions import DataError
from classex_bayes.plots.chart import MUTED
from classex_bayes.plots.libraries import LIBRARIES, PALETTE
from classex_bayes.results import ClassesUntil, Extrapolation, interval_label

DRAWN = ["matplotlib", "plotly", "bokeh"]
INTERVAL = "90% credible interval"
WORDS = {"ci_prob": 0.9, "ci_kind": "eti"}


@pytest.fixture(scope="module")
def inputs(fitted, pilot):
    """What the plots take."""
    k = [10, 200, 1000]
    predictions = {
        name: Extrapolation.from_draws(
            k, np.random.default_rng(1).beta(a, 3, (2, 50, 3)), name, "credible", 10
        )
        for name, a in (("near", 9), ("far", 5))
    }
    mix = pd.Series({"near": 0.25, "far": 0.75})
    table = pd.DataFrame({"classes": [50, 400], "repeats": 1, "width": [0.2, 0.1]})
    table = table.assign(width_sd=0.01, reached=0.5, error=0.1)
    plan = Plan(table, 1000, 0.08, None, 0.9, "eti", 5, (0.8, 0.1))
    until = xr.DataArray([10 ** np.random.default_rng(1).normal(4, 1, 200)], dims=("chain", "draw"))
    few = pilot.task.subsample(60, random_seed=1)
    open_set = cb.OpenSetExtrapolator().fit(pilot.task, draws=50, chains=2, random_seed=1)
    tails = cb.ScoreInformedExtrapolator().fit(few, draws=100, chains=2, random_seed=1)
    return {
        "model": fitted,
        "task": pilot.task,
        "prediction": fitted.predict(k),
        "point": cb.ClassExReg(0.5).fit(pilot.task).predict(k),
        "classifiers": ClassifierComparison(predictions, None, True),
        "groups": GroupedExtrapolation(predictions, mix, mix, mix, None),
        "plan": plan,
        "until": ClassesUntil(0.8, until, 10**12, 10**10),
        "drift": measure_drift(pilot.task, {20: 0.9, 50: 0.8}),
        "backtest": backtest([cb.ClassExReg(0.5)], few, 20, n_pilots=2, progressbar=False),
        "sensitivity": cb.sensitivity(fitted, k),
        "report": cb.diagnose(few, random_seed=1),
        "tails": cb.tail_checks(tails),
        "open set": open_set,
        "checks": cb.posterior_checks(fitted),
        "comparison": cb.compare([cb.ClassExReg(0.5)], pilot.task, k),
    }


# How each is drawn, and its legend.
PLOTS = {
    cb.plot_accuracy: (
        lambda i: ([i["prediction"], i["point"]], i["task"], {1000: 0.5}, 0.7),
        WORDS,
        [
            f"BayesianExtrapolator, {INTERVAL}", "ClassExReg(0.5)",
            "observed", "truth", "target",
        ],
    ),
    cb.plots.plot_prior_predictive: (
        lambda i: (i["model"],),
        {**WORDS, "draws": 50, "random_seed": 1},
        [
            f"prior of BayesianExtrapolator, {INTERVAL}", f"BayesianExtrapolator, {INTERVAL}",
            "observed",
        ],
    ),
    cb.plot_ppc: (
        lambda i: (i["model"],),
        {**WORDS, "random_seed": 1},
        ["replicated, 90% posterior predictive interval", "observed"],
    ),
    cb.plots.plot_classifiers: (
        lambda i: (i["classifiers"],), WORDS, [f"near, {INTERVAL}", f"far, {INTERVAL}"]
    ),
    cb.plots.plot_groups: (
        lambda i: (i["groups"],),
        WORDS,
        [f"near (share 0.25), {INTERVAL}", f"far (share 0.75), {INTERVAL}", f"overall, {INTERVAL}"],
    ),
    cb.plots.plot_diagnosis: (lambda i: (i["report"],), {}, None),
    cb.plots.plot_discriminability: (
        lambda i: (i["model"],),
        WORDS,
        [f"BayesianExtrapolator, {INTERVAL}", "resolved by the source classes"],
    ),
    cb.plots.plot_drift: (
        lambda i: (i["drift"], i["prediction"]),
        WORDS,
        [
            f"BayesianExtrapolator, {INTERVAL}", f"BayesianExtrapolator + drift, {INTERVAL}",
            "measured, retrained on k", "subsampled to k", "source classes",
        ],
    ),
    cb.plots.plot_plan: (lambda i: (i["plan"],), {}, ["1 instance of each class", "wanted (0.08)"]),
    cb.plots.plot_classes_until: (
        lambda i: (i["until"],),
        {"ci_prob": 0.9},
        ["posterior", f"{INTERVAL}: 234 to 197,000", "median"],
    ),
    cb.plots.plot_prob_at_least: (
        lambda i: (i["prediction"], [0.5, 0.7]), {}, ["at least 0.5", "at least 0.7"]
    ),
    cb.plots.plot_sensitivity: (
        lambda i: (i["sensitivity"],),
        WORDS,
        [f"prior to the power {a}, {INTERVAL}" for a in (0.8, 1, 1.25)],
    ),
    cb.plots.plot_backtest: (lambda i: (i["backtest"],), {}, ["ClassExReg(0.5)"]),
    cb.plots.plot_tail_checks: (
        lambda i: (i["tails"],),
        WORDS,
        ["replicated, 90% posterior predictive interval", "observed"],
    ),
    cb.plots.plot_det: (
        lambda i: (i["open set"], [100, 1000]),
        WORDS,
        [
            f"100 enrolled, {INTERVAL}", f"1,000 enrolled, {INTERVAL}",
            "best wrong score of the pilot",
        ],
    ),
    cb.plots.plot_threshold: (
        lambda i: (i["open set"], [100, 1000]),
        WORDS,
        [
            f"100 enrolled, {INTERVAL}", f"1,000 enrolled, {INTERVAL}",
            "best wrong score of the pilot",
        ],
    ),
}  # fmt: skip


def legend(plot):
    """Texts of the legend with the marks drawn before them: line, points or band."""
    if plot.backend == "matplotlib":
        (found,) = plot.get_viz("figure").legends
        kinds = {"Line2D": "line", "Rectangle": "band", "PathCollection": "points"}
        return {
            text.get_text(): {kinds[type(artist).__name__] for artist in row}
            for text, row in zip(found.get_texts(), rows(found), strict=True)
        }
    if plot.backend == "plotly":
        return {
            trace.name: {"lines": {"line"}, "markers": {"points"}, "none": set()}.get(
                trace.mode, {"line", "points"}
            )
            | ({"band"} if trace.fill else set())
            for trace in plot.get_viz("figure").data
            if trace.showlegend
        }
    (first, *_) = (target.item() for target in plot.viz["plot"].dataset.values())
    kinds = {"Line": "line", "Segment": "line", "Scatter": "points", "VArea": "band"}
    return {
        entry.label.value: {kinds[type(one.glyph).__name__] for one in entry.renderers}
        for entry in first.legend[0].items
    }


def rows(found):
    """Artists of each entry of a legend of matplotlib."""
    boxes = [
        entry for box in found._legend_handle_box.get_children() for entry in box.get_children()
    ]
    return [entry.get_children()[0].get_children() for entry in boxes]


@pytest.mark.parametrize("backend", ["none", *DRAWN])
@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.__name__)
def test_every_plot(inputs, plot, backend):
    arguments, settings, texts = PLOTS[plot]
    drawn = plot(*arguments(inputs), **settings, backend=backend)
    assert drawn.backend == backend
    if backend != "none" and texts is not None:
        assert list(legend(drawn)) == texts


def test_no_plot_is_left_out():
    assert set(cb.plots.__all__) == {plot.__name__ for plot in PLOTS}


# What every plot takes

TAIL = {"visuals": None, "plot_collection": None, "ax": None, "backend": None}
WITHOUT_K = {  # whose axis is no number of classes, or that of a pilot
    "plot_ppc", "plot_diagnosis", "plot_discriminability", "plot_plan", "plot_classes_until",
    "plot_tail_checks",
}  # fmt: skip
PANELS = {cb.plots.plot_classifiers: 2, cb.plots.plot_threshold: 2}
every_plot = pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.__name__)


def drawn_by(inputs, plot, **given):
    arguments, settings, _ = PLOTS[plot]
    return plot(*arguments(inputs), **{**settings, **given})


def visuals_of(plot):
    """Names that the docstring of a plot gives to what may be removed or styled."""
    head, end = "visuals : mapping, optional\n", "\nplot_coll"
    docstring = inspect.getdoc(plot)
    assert head in docstring, f"{plot.__name__}: its docstring has no {head.strip()!r}"
    text = docstring.split(head)[1].split(end)[0]
    return re.findall(r'"(\w+)"', text)


@every_plot
def test_every_signature_ends_alike(plot):
    parameters = inspect.signature(plot).parameters
    assert list(parameters)[-5:] == [*TAIL, "pc_kwargs"]
    for name, default in TAIL.items():
        assert (parameters[name].kind.name, parameters[name].default) == ("KEYWORD_ONLY", default)
    assert parameters["pc_kwargs"].kind.name == "VAR_KEYWORD"
    assert ("k" in parameters) == (plot.__name__ not in WITHOUT_K)
    assert "k" not in parameters or parameters["k"].default is None


@every_plot
def test_names_of_visuals(inputs, plot):
    for wrong in ({"no such": False}, {"title": "no mapping"}, "title"):
        with pytest.raises(DataError, match="visuals: expected") as raised:
            drawn_by(inputs, plot, visuals=wrong, backend="none")
        named = str(raised.value).split("some of ")[1].split(" to False")[0]
        assert named.split(", ") == visuals_of(plot)


@pytest.mark.parametrize("backend", DRAWN)
@every_plot
def test_every_visual_can_be_removed(inputs, plot, backend):
    drawn = drawn_by(inputs, plot, visuals=dict.fromkeys(visuals_of(plot), False), backend=backend)
    left = set(drawn.viz.children) - {"plot", "row_index", "col_index", "ref_line"}
    assert left == set()
    if backend == "matplotlib":
        axes = drawn.get_viz("figure").axes
        assert not drawn.get_viz("figure").legends
        assert {text for a in axes for text in (a.get_title(), a.get_xlabel())} == {""}


@every_plot
def test_every_plot_on_axes_of_its_own(inputs, plot):
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, PANELS.get(plot, 1) + 1, layout="constrained")
    drawn = drawn_by(inputs, plot, ax=axes[1:] if axes.size > 2 else axes[1])
    assert drawn.get_viz("figure") is figure and figure.axes == list(axes)
    assert axes[1].lines and not axes[0].lines and not figure.legends
    assert axes[1].get_legend()
    figure.draw_without_rendering()


@pytest.mark.parametrize("backend", DRAWN)
@pytest.mark.parametrize(
    "plot", [plot for plot in PLOTS if plot.__name__ not in WITHOUT_K], ids=lambda p: p.__name__
)
def test_numbers_of_classes_are_chosen(inputs, plot, backend):
    given = {"k": [200, 1000]}
    arguments, settings, _ = PLOTS[plot]
    first = arguments(inputs)
    if plot in (cb.plots.plot_det, cb.plots.plot_threshold):
        first = first[:1]
    if plot is cb.plots.plot_backtest:
        given = {"k": inputs["backtest"].scores.index.unique("k")[:1]}
    drawn = plot(*first, **{**settings, **given}, backend=backend)
    assert drawn.backend == backend
    if plot is cb.plots.plot_prob_at_least:
        line = plot(*first, **given, backend="none").viz["line at least 0.5"]["panel"].item()
        assert line["x"].tolist() == [200, 1000]
    predicts = plot in (cb.plots.plot_prior_predictive, cb.plots.plot_det, cb.plots.plot_threshold)
    if not predicts:
        with pytest.raises(DataError, match="k: found 7, expected some of "):
            plot(*first, **settings, k=[7], backend="none")


def test_styles_go_to_what_is_drawn(inputs):
    style = {"ci_band": {"color": "#123456", "alpha": 0.5}, "title": {"text": "mine"}}
    axes = lines(inputs, visuals={"mean": {"color": "#654321"}}).get_viz("plot")
    assert axes.lines[0].get_color() == "#654321"
    axes = cb.plot_accuracy(inputs["prediction"], visuals=style, backend="matplotlib")
    band = axes.get_viz("plot").collections[0]
    np.testing.assert_allclose(band.get_facecolor()[0], mpl.colors.to_rgba("#123456", 0.5))
    assert axes.get_viz("plot").get_title() == "mine"


@pytest.mark.parametrize(
    ("visual", "style", "reason"),
    [
        ("observed", {"ms": 2}, "ms"),
        ("observed", {"s": 2}, "points have no s"),
        ("mean", {"bogus": 3}, "bogus"),
        ("ci_band", {"color": "no such colour"}, "no such colour"),
        ("xlabel", {"label": "a"}, "label"),
        ("title", {"colour": "red"}, "colour"),
        ("legend", {"place": "best"}, "place"),
    ],
)
def test_wrong_styles_are_named(inputs, visual, style, reason):
    wanted = f"visuals: '{visual}' cannot be drawn with .*{reason}.*points have size, marker"
    with pytest.raises(DataError, match=wanted):
        cb.plot_accuracy(
            inputs["prediction"], inputs["task"], visuals={visual: style}, backend="matplotlib"
        )


@pytest.mark.parametrize("backend", DRAWN)
def test_styles_of_every_library(inputs, backend):
    style = {
        "observed": {"size": 5, "alpha": 0.5, "color": "red"},
        "mean": {"width": 3, "alpha": 0.5, "color": "red"},
        "ci_band": {"alpha": 0.1, "color": "red"},
        "xlabel": {"text": "pictures", "size": "10pt" if backend == "bokeh" else 10},
    }
    drawn = cb.plot_accuracy(inputs["prediction"], inputs["task"], visuals=style, backend=backend)
    if backend == "matplotlib":
        axes = drawn.get_viz("plot")
        assert axes.lines[0].get_linewidth() == 3 and axes.get_xlabel() == "pictures"
        assert axes.collections[-1].get_sizes().tolist() == [5]


@pytest.mark.parametrize("backend", DRAWN)
def test_a_plot_in_another(inputs, backend):
    first = cb.plot_accuracy(inputs["prediction"], **WORDS, backend=backend)
    both = cb.plot_accuracy(inputs["point"], plot_collection=first)
    assert both is first
    assert list(legend(both)) == [f"BayesianExtrapolator, {INTERVAL}", "ClassExReg(0.5)"]


def test_axes_that_do_not_fit(inputs):
    from matplotlib import pyplot as plt

    _, axes = plt.subplots(1, 2)
    for given, message in (
        ({"ax": axes}, r"ax: expected one axes of matplotlib .* found 2 \(Axes\)"),
        ({"ax": 3}, r"ax: expected one axes of matplotlib .* found 1 \(int\)"),
        ({"ax": axes[0].figure}, r"such as one of figure.axes, found 1 \(Figure\)"),
        ({"ax": plt.figure().add_subplot(projection="polar")}, r"found 1 \(PolarAxes\)"),
        ({"ax": plt.figure().add_subplot(projection="3d")}, r"found 1 \(Axes3D\)"),
        ({"ax": axes[0], "backend": "plotly"}, "backend: found 'plotly', but the plot given is of"),
        ({"ax": axes[0], "figure_kwargs": {}}, "figure_kwargs: the axes are in a figure"),
        ({"figsize": (3, 3)}, "figsize: no such argument of this plot; those of the figure are fi"),
        ({"figure_kwargs": (3, 2)}, "figure_kwargs: expected a mapping such as .* found tuple"),
        ({"plot_collection": axes[0]}, "plot_collection: expected an arviz_plots.PlotCollection"),
    ):
        with pytest.raises(DataError, match=message):
            cb.plot_accuracy(inputs["point"], **given)
    first = cb.plot_accuracy(inputs["point"], backend="none")
    with pytest.raises(DataError, match=r"with the plots 'accuracy', 'prob.* 'panel'"):
        cb.plots.plot_classifiers(inputs["classifiers"], plot_collection=first)
    with pytest.raises(DataError, match="ax: found axes beside plot_collection"):
        cb.plot_accuracy(inputs["point"], plot_collection=first, ax=axes[0])


# Results, by what draws them.
METHODS = {
    "prediction": "plot_accuracy", "point": "plot_accuracy", "model": "plot_accuracy",
    "classifiers": "plot_classifiers", "groups": "plot_groups", "plan": "plot_plan",
    "until": "plot_classes_until", "drift": "plot_drift", "backtest": "plot_backtest",
    "sensitivity": "plot_sensitivity", "report": "plot_diagnosis", "tails": "plot_tail_checks",
    "open set": "plot_det", "comparison": "plot_accuracy", "checks": "plot_ppc",
}  # fmt: skip


@pytest.mark.parametrize("key", METHODS)
def test_results_draw_themselves(inputs, key):
    function = getattr(cb.plots, METHODS[key])
    method = inputs[key].plot
    assert method.__func__ is function and method.__doc__ == function.__doc__
    parameters = list(inspect.signature(function).parameters)[1:]
    assert list(inspect.signature(method).parameters) == parameters
    arguments = [inputs["prediction"]] if key == "drift" else []
    assert method(*arguments, backend="none").backend == "none"


# Small figures


@pytest.mark.parametrize("k", [[2, 5], [300, 420], [2, 9], [200, 3000], [2, 10**5], [2, 10**9]])
@pytest.mark.parametrize("width", [2.0, 3.3, 8.0])
def test_numbers_do_not_collide(k, width):
    draws = np.random.default_rng(1).beta(5, 3, (1, 50, 2))
    prediction = Extrapolation.from_draws(k, draws, "x", "credible", 10**8)
    sized = {"figure_kwargs": {"figsize": (width, 3)}}
    axes = prediction.plot(backend="matplotlib", **sized).get_viz("plot")
    axes.figure.draw_without_rendering()
    left, right = axes.get_window_extent().intervalx
    texts = [text for text in axes.get_xticklabels(which="both") if text.get_text()]
    boxes = [text.get_window_extent().intervalx for text in texts]
    seen = [box for box in boxes if left - 1 <= box.mean() <= right + 1]
    assert len(seen) >= 1 + (width > 3)
    assert all(a[1] < b[0] for a, b in itertools.pairwise(seen))


@pytest.mark.parametrize("backend", DRAWN)
def test_formulas_are_readable(inputs, backend):
    drawn = cb.plots.plot_discriminability(inputs["model"], backend=backend)
    if backend == "matplotlib":
        assert drawn.get_viz("plot").get_ylabel() == r"$D(u) = P(U^* \leq u)$"
        return
    figure = drawn.get_viz("figure")
    axis = figure.layout.yaxis.title.text if backend == "plotly" else (
        drawn.get_viz("plot").yaxis.axis_label
    )  # fmt: skip
    assert axis == "D(u) = P(U* ≤ u)"


@pytest.mark.parametrize("backend", DRAWN)
def test_marks_of_the_legend(inputs, backend):
    given = [inputs["prediction"], inputs["point"]], inputs["task"]
    marks = legend(cb.plot_accuracy(*given, inputs["task"], 0.7, **WORDS, backend=backend))
    assert list(marks.values()) == [
        {"line", "points", "band"}, {"line", "points"}, {"points"}, {"line"}, {"line"},
    ]  # fmt: skip
    marks = legend(cb.plot_accuracy(*given, {1000: 0.5}, **WORDS, backend=backend))
    assert marks["truth"] == {"points"}


@pytest.mark.parametrize("backend", DRAWN)
def test_a_single_number_of_classes(inputs, backend):
    one = Extrapolation(inputs["prediction"].draws.isel(k=[2]), "one", "bootstrap", 200)
    drawn = cb.plot_accuracy(one, target=0.6, ci_prob=0.5, ci_kind="hdi", backend=backend)
    bar = "one, 50% bootstrap interval (highest density)"
    assert legend(drawn) == {bar: {"line", "points"}, "target": {"line"}}
    if backend == "matplotlib":
        x = drawn.viz["line target"]["panel"].item().get_xdata()
        assert x[0] < 1000 < x[1]


@pytest.mark.parametrize("backend", DRAWN)
def test_counts_are_written_out_on_a_logarithmic_axis(inputs, backend):
    target = cb.plot_accuracy(inputs["prediction"], backend=backend).get_viz("plot", "panel")
    if backend == "matplotlib":
        axis = target.xaxis
        target.figure.canvas.draw()
        assert target.get_xscale() == "log"
        assert {"10", "100", "1,000"} <= {text.get_text() for text in axis.get_ticklabels()}
    elif backend == "plotly":
        axis = target.figure.layout.xaxis
        assert (axis.type, axis.tickformat) == ("log", ",d")
    else:
        assert type(target.x_scale).__name__ == "LogScale"
        assert target.xaxis[0].formatter.format == "0,0"
        assert {10, 100, 1000} <= set(target.xaxis[0].ticker.ticks)


def test_powers_where_counts_are_too_long(inputs):
    far = xr.DataArray([[1e3, 1e11, np.inf]], dims=("chain", "draw"))
    axes = cb.plots.plot_classes_until(
        ClassesUntil(0.8, far, 10**12, 10**10), backend="matplotlib"
    ).get_viz("plot")
    axes.figure.canvas.draw()
    assert any("10^{" in text.get_text() for text in axes.get_xticklabels())


# Settings of the user


def lines(inputs, backend="matplotlib", **given):
    return cb.plot_accuracy(inputs["point"], inputs["task"], **given, backend=backend)


def test_rcparams_of_matplotlib_are_respected(inputs):
    plain = lines(inputs)
    settings = {
        "figure.figsize": (5, 3),
        "axes.prop_cycle": mpl.cycler(color=["#123456", "red"]),
        "legend.frameon": False,
        "font.size": 17,
        "savefig.dpi": 40,
        "lines.linewidth": 5,
    }
    with mpl.rc_context(settings):
        own = lines(inputs)
    figure, line = own.get_viz("figure"), own.viz["line ClassExReg(0.5)"]["panel"].item()
    assert figure.get_size_inches().tolist() == [5, 3]
    assert (line.get_color(), line.get_linewidth()) == ("#123456", 5)
    assert figure.axes[0].xaxis.label.get_size() == 17
    assert plain.get_viz("figure").get_size_inches().tolist() == [8, 5.5]
    assert plain.viz["line ClassExReg(0.5)"]["panel"].item().get_color() == PALETTE[0]


def test_resolution_of_saved_figures(inputs, tmp_path):
    from matplotlib import image

    with mpl.rc_context({"figure.figsize": (5, 3), "savefig.dpi": 40}):
        lines(inputs).savefig(tmp_path / "small.png")
    assert image.imread(tmp_path / "small.png").shape[:2] == (120, 200)


def test_points_are_seen_on_dark_styles(inputs):
    with mpl.rc_context():
        mpl.style.use("dark_background")
        points = lines(inputs).viz["points observed"]["panel"].item()
    np.testing.assert_array_equal(points.get_facecolor()[0], [1, 1, 1, 1])


def test_templates_of_plotly_are_respected(inputs, monkeypatch):
    from plotly import io

    monkeypatch.setattr(io.templates, "default", "plotly_dark")
    dark = lines(inputs, "plotly").viz
    assert dark["points observed"]["panel"].item().marker.color == "#f2f5fa"
    assert dark["line ClassExReg(0.5)"]["panel"].item().line.color == PALETTE[0]
    monkeypatch.setattr(io.templates, "default", "ggplot2")
    own = lines(inputs, "plotly").viz["line ClassExReg(0.5)"]["panel"].item()
    assert own.line.color == io.templates["ggplot2"].layout.colorway[0]
    monkeypatch.setattr(io.templates, "default", None)
    bare = lines(inputs, "plotly").viz["points observed"]["panel"].item()
    assert bare.marker.color == "black"


def test_themes_of_bokeh_are_respected(inputs):
    from bokeh import io as bokeh_io
    from bokeh import themes

    before = bokeh_io.curdoc().theme
    attributes = {"Title": {"text_color": "#fafafa"}, "Cycler": {"colors": ["#010203"]}}
    try:
        bokeh_io.curdoc().theme = themes.Theme(json={"attrs": attributes})
        own = lines(inputs, "bokeh").viz
    finally:
        bokeh_io.curdoc().theme = before
    assert own["points observed"]["panel"].item().glyph.fill_color == "#fafafa"
    assert own["line ClassExReg(0.5)"]["panel"].item().glyph.line_color == "#010203"


def test_a_library_that_is_missing_is_told(inputs, monkeypatch):
    import builtins
    import sys

    real = builtins.__import__

    def without(name, *arguments, **settings):
        if name.split(".")[0] == "bokeh":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *arguments, **settings)

    for name in [n for n in sys.modules if n.startswith("arviz_plots.backend.bokeh")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"needs bokeh.*classex-bayes\[plots\]"):
        cb.plots.plot_plan(*PLOTS[cb.plots.plot_plan][0](inputs), backend="bokeh")


# Colours and words

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


def test_many_series_differ_in_colour_or_line_style(inputs):
    many = [
        Extrapolation.from_point([10, 100], [0.9, 0.8], f"estimator {i}", 10) for i in range(24)
    ]
    drawn = cb.plot_accuracy(many, backend="matplotlib")
    looks = {(line.get_color(), line.get_linestyle()) for line in drawn.get_viz("plot").lines}
    assert len(looks) == 24


# Names are the user's

NAMES = [r"$\bad$", "<b>bold</b> & co &lt;", "$$x$$ \\(y\\)", r"\$ a $", "a/b", "_a"]


@pytest.mark.parametrize("backend", DRAWN)
def test_names_are_no_markup(backend, tmp_path):
    plain = [Extrapolation.from_point([10, 100], [0.9, 0.8], name, 10) for name in NAMES]
    drawn = cb.plot_accuracy(plain, backend=backend)
    texts = list(legend(drawn))
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


@pytest.mark.parametrize("backend", DRAWN)
def test_names_in_titles_are_no_markup(inputs, backend):
    prediction = replace(inputs["prediction"], estimator=r"$\bad$ $$x$$ <b>")
    drawn = cb.plots.plot_prob_at_least(prediction, 0.5, backend=backend)
    title = r"$\bad$ $$x$$ <b>: expected accuracy"
    if backend == "matplotlib":
        drawn.get_viz("figure").draw_without_rendering()
        assert drawn.get_viz("plot").get_title().replace(r"\$", "$") == title
    elif backend == "plotly":
        found = next(one for one in drawn.get_viz("figure").layout.annotations if one.text.strip())
        assert unescape(found.text) == title
    else:
        text = drawn.get_viz("plot").title.text
        assert (type(text).__name__, text.text) == ("PlainText", title)


LONG = ["x" * 200, "M" * 200, "a name of some words " * 10, "short"]


@pytest.mark.parametrize("backend", DRAWN)
def test_long_names_are_wrapped(backend):
    points = [Extrapolation.from_point([10, 100], [0.9, 0.8], name, 10) for name in LONG]
    drawn = cb.plot_accuracy(points, backend=backend)
    breaks = "<br>" if backend == "plotly" else "\n"
    for text, name in zip(legend(drawn), LONG, strict=True):
        lines = text.split(breaks)
        assert max(map(len, lines)) <= 120
        assert "".join("".join(lines).split()) == "".join(name.split())
    if backend == "matplotlib":
        inside_and_seen(drawn)


def test_many_estimators_leave_room_for_the_plot():
    names = [f"estimator {i}" for i in range(29)] + ["one with a long name " * 9]
    points = [Extrapolation.from_point([10, 100], [0.9, 0.8], name, 10) for name in names]
    drawn = cb.plot_accuracy(points, backend="matplotlib")
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


def test_intervals_in_words():
    assert interval_label(0.9, "eti") == INTERVAL
    assert interval_label(0.125, "hdi", "bootstrap") == (
        "12.5% bootstrap interval (highest density)"
    )
    assert set(LIBRARIES) == {"none", "matplotlib", "plotly", "bokeh"}
