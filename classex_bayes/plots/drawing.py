"""Drawing of charts: from named series to a figure of any backend of arviz-plots.

Figures of matplotlib are finished in `matplotlib_looks`; the others are as arviz-plots draws them.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from typing import Any, Literal, TypedDict

import numpy as np
import xarray as xr
from arviz_base import rcParams
from arviz_plots import PlotCollection

from classex_bayes.arguments import one_of
from classex_bayes.exceptions import DataError, require_extra
from classex_bayes.plots.chart import PANEL, Chart

Style = Mapping[str, Any]
Visuals = Mapping[str, bool | Style]
BackendName = Literal["matplotlib", "plotly", "bokeh", "none"]
BACKENDS = "matplotlib", "plotly", "bokeh", "none"
TEXTS = "title", "xlabel", "ylabel", "legend"  # of every plot
# Okabe and Ito's colours, distinct in every form of colour blindness. Their yellow is left out,
# because it is too light for a line on white.
PALETTE: tuple[str, ...] = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
_N_DASHES = 4  # line styles of every backend, by ArviZ's names C0 to C3
_MARKERS = ("C0", "C5", "C2", "C4")  # circle, square, triangle, diamond
_BAND = 0.2  # opacity
# arviz-plots' function that draws a mark, and the looks that it takes besides the colour.
_FUNCTIONS = {
    "line": ("line", "linestyle"),
    "points": ("scatter", "marker"),
    "band": ("fill_between_y", "alpha"),
    "bar": ("ciliney",),
}
_BAR_STEP = 1.03  # ratio of the places of bars at the same number of classes


class Drawing(TypedDict, total=False):
    """Keyword arguments of `draw` besides the chart, which every plot has."""

    visuals: Visuals | None
    ax: Any
    backend: BackendName | None
    figure_kwargs: Mapping[str, Any] | None
    col_wrap: int | None


# Text that replaces {shared} in the docstring of a plot: parameters that some plots have, by name,
# then those of all plots.
_OF_SOME = {
    "ci_kind": """\
ci_prob, ci_kind : optional
    Level and kind of the intervals; ArviZ's rcParams by default.
""",
    "random_seed": """\
random_seed : int, SeedSequence or None
    Seed of the random draws.
""",
}
_DRAWING = """\
visuals : mapping, optional
    Removes (False) or styles (a mapping of arguments) what has one of these names: {names}.
ax : matplotlib Axes or sequence of them, optional
    Axes in which it is drawn, one for each panel.
backend : {{"matplotlib", "plotly", "bokeh", "none"}}, optional
    Plotting library of a new figure; ArviZ's rcParams by default.
figure_kwargs : mapping, optional
    Arguments of a new figure, such as ``{{"figsize": (3.3, 2.5)}}``.
col_wrap : int, optional
    Panels in a row of a new figure; all by default.

Returns
-------
PlotCollection
    `.savefig(path)`, `.show()`, `.get_viz("plot")` for the native axes."""


def plot_function[**P](
    *visuals: str,
) -> Callable[[Callable[P, Chart]], Callable[P, PlotCollection]]:
    """Return a decorator that makes a plot of a function that fills a chart.

    The plot has the keyword arguments of `draw`, too. The function states them as
    ``**drawing: Unpack[Drawing]``, for editors and type checkers, and does not receive them. Their
    documentation takes the place of {shared} at the end of its parameters. `visuals` are the names
    of its marks.
    """

    def decorate(fill_chart: Callable[P, Chart]) -> Callable[P, PlotCollection]:
        signature = inspect.signature(fill_chart)
        parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        signature = signature.replace(
            parameters=[*parameters, *_DRAWN.values()], return_annotation=PlotCollection
        )

        @wraps(fill_chart)
        def plot(*args: P.args, **kwargs: P.kwargs) -> PlotCollection:
            require_extra("plots", "a plot", "matplotlib")
            bound = signature.bind(*args, **kwargs)
            drawing: Any = {name: bound.arguments.pop(name, None) for name in _DRAWN}
            chart = fill_chart(*bound.args, **bound.kwargs)
            chart.visuals = visuals
            return draw(chart, **drawing)

        vars(plot)["__signature__"] = signature
        text = inspect.getdoc(fill_chart) or ""  # empty with python -OO
        names = ", ".join(f'"{name}"' for name in (*visuals, *TEXTS))
        shared = [part for name, part in _OF_SOME.items() if name in signature.parameters]
        shared.append(_DRAWING.format(names=names))
        plot.__doc__ = text.replace("{shared}", "".join(shared))
        return plot

    return decorate


def chart_of[**P](plot: Callable[P, PlotCollection]) -> Callable[P, Chart]:
    """Return the function that fills the chart of a plot and does not draw it."""
    return inspect.unwrap(plot)


def draw(
    chart: Chart,
    *,
    visuals: Visuals | None = None,
    ax: Any = None,
    backend: BackendName | None = None,
    figure_kwargs: Mapping[str, Any] | None = None,
    col_wrap: int | None = None,
) -> PlotCollection:
    """Draw a chart; the arguments are those of every plot.

    Raises
    ------
    DataError
        A visual that the chart has not, a wrong number of axes, or arguments of a new figure
        together with axes.
    """
    styles = visual_styles(visuals, [*chart.visuals, *(m.visual for m in chart.marks), *TEXTS])
    of_new = {"backend": backend, "figure_kwargs": figure_kwargs, "col_wrap": col_wrap}
    collection = _target(chart, ax, **of_new)
    targets = [collection.get_target(panel, {}) for panel in chart.panels]
    _draw_marks(chart, collection, targets[0], styles)
    _label(chart, collection.backend, targets, styles)
    if collection.backend == "matplotlib":
        from classex_bayes.plots.matplotlib_looks import finish

        finish(targets, chart.log_x, chart.log_y, styles["legend"], is_new=ax is None)
    return collection


_DRAWN = {
    name: parameter
    for name, parameter in inspect.signature(draw).parameters.items()
    if name != "chart"
}


def visual_styles(visuals: Any, names: Sequence[str]) -> dict[str, Style | None]:
    """Return the style of each visual, None if the user removes it."""
    styles: dict[str, Style | None] = {name: {} for name in names}
    wanted = f"expected a mapping from some of {', '.join(styles)} to False or a style"
    if not isinstance(visuals, Mapping | None):
        raise DataError(f"visuals: {wanted}, found {visuals!r}")
    for name, style in (visuals or {}).items():
        if name not in styles or not isinstance(style, bool | Mapping):
            raise DataError(f"visuals: {wanted}, found {name!r}: {style!r}")
        styles[name] = style if isinstance(style, Mapping) else {} if style else None
    return styles


def _target(chart: Chart, ax: Any, **of_new: Any) -> PlotCollection:
    """A collection with a plot for each panel of a chart: of a new figure, or around axes."""
    if ax is None:
        return _new_figure(chart, **of_new)
    for name, value in of_new.items():
        if value is not None:
            raise DataError(f"{name}: the axes are in a figure that exists; leave it out")
    return _around_axes(ax, chart.panels)


def _new_figure(
    chart: Chart,
    backend: str | None,
    figure_kwargs: Mapping[str, Any] | None,
    col_wrap: int | None,
) -> PlotCollection:
    """A new figure with a plot for each panel."""
    name = rcParams["plot.backend"] if backend is None else backend
    one_of(name, BACKENDS, "backend")
    settings: dict[str, Any] = {}
    if name == "matplotlib":
        from classex_bayes.plots.matplotlib_looks import figure_settings

        settings = figure_settings(len(chart.panels))
    elif name != "none":
        require_extra("interactive", f"backend {name!r}", name)
    if name == "bokeh":
        log = {"x_axis_type": chart.log_x, "y_axis_type": chart.log_y}
        settings = {"subplot_kws": {axis: "log" for axis, is_log in log.items() if is_log}}
    return PlotCollection.wrap(
        xr.Dataset(dict.fromkeys(chart.panels, 0.0)),
        cols=["__variable__"],
        backend=name,
        col_wrap=len(chart.panels) if col_wrap is None else col_wrap,
        figure_kwargs={**settings, **(figure_kwargs or {})},
    )


def _around_axes(ax: Any, panels: Sequence[str]) -> PlotCollection:
    """A collection whose plots are axes of matplotlib."""
    from matplotlib.axes import Axes

    axes = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(axes) != len(panels) or not all(isinstance(target, Axes) for target in axes):
        number = "one axes" if len(panels) == 1 else f"{len(panels)} axes ({', '.join(panels)})"
        raise DataError(f"ax: expected {number} of matplotlib, found {ax!r}")
    plots = {panel: np.array(a, dtype=object) for panel, a in zip(panels, axes, strict=True)}
    figure = xr.Dataset({"figure": np.array(axes[0].get_figure(root=True), dtype=object)})
    viz = xr.DataTree.from_dict({"/": figure, "plot": xr.Dataset(plots)})
    return PlotCollection(xr.Dataset(dict.fromkeys(panels, 0.0)), viz, backend="matplotlib")


def _draw_marks(
    chart: Chart, collection: PlotCollection, target: Any, styles: Mapping[str, Style | None]
) -> None:
    """Draw all marks that the user has not removed, and store them in the collection."""
    functions = import_module(f"arviz_plots.backend.{collection.backend}")
    looks, dodge = _looks(chart, collection.backend, target), _dodge(chart)
    named: set[str] = set()
    for mark in chart.marks:
        user_style = styles[mark.visual]
        if user_style is None:
            continue
        x, *y = (np.asarray(axis, dtype=float) for axis in (mark.x, *mark.y))
        name, *keys = _FUNCTIONS[mark.kind]
        style = {key: looks[mark.series][key] for key in ("color", *keys)}
        if styles["legend"] is not None:
            style |= _legend_entry(collection.backend, mark.series, mark.series not in named)
            named.add(mark.series)
        # Stored by this name in the collection.
        panel = () if mark.panel == PANEL else (mark.panel,)
        collection.map(
            _on_target(getattr(functions, name), x * dodge.get(mark.series, 1.0), *y),
            " ".join([mark.kind, *panel, mark.series]),
            data=xr.Dataset({mark.panel: 0.0}),
            **{**style, **mark.style, **user_style},
        )


def _on_target(function: Callable[..., Any], *values: Any) -> Callable[..., Any]:
    """The function of a backend with these values, in the form that a collection calls."""
    return lambda _, target, **style: function(*values, target, **style)


def _legend_entry(backend: str, series: str, is_first: bool) -> dict[str, Any]:
    """Arguments that tie a mark to the entry of its series in the legend."""
    if backend == "matplotlib":
        return {"label": series}
    if backend == "plotly":
        return {"name": series, "legendgroup": series, "showlegend": is_first}
    return {"legend_label": series} if backend == "bokeh" else {}


def _looks(chart: Chart, backend: str, target: Any) -> dict[str, dict[str, Any]]:
    """Looks of every series by name; in axes of matplotlib after those that are there."""
    palette, first = PALETTE, 0
    if backend == "matplotlib":
        from classex_bayes.plots.matplotlib_looks import colors_of_style

        palette = colors_of_style() or PALETTE
        first = len(set(target.get_legend_handles_labels()[1]))
    looks = {}
    for series, place in chart.series.items():
        number = 0 if place is None else first + place
        color, dash = palette_place(number, palette)
        looks[series] = {
            "color": color,
            "linestyle": f"C{dash}",
            "marker": _MARKERS[number % len(_MARKERS)],
            "alpha": _BAND,
        }
    return looks


def palette_place(number: int, palette: Sequence[str]) -> tuple[str, int]:
    """Return colour and line style of the series with this number.

    Line styles move by one further in each round of the palette: colours meet every style in turn.
    """
    return palette[number % len(palette)], (number + number // len(palette)) % _N_DASHES


def _dodge(chart: Chart) -> dict[str, float]:
    """Factors that set bars at a single number of classes side by side."""
    names = [mark.series for mark in chart.marks if mark.kind == "bar"]
    bars = list(dict.fromkeys(names)) if chart.log_x else []
    return {name: _BAR_STEP ** (i - (len(bars) - 1) / 2) for i, name in enumerate(bars)}


def _label(
    chart: Chart, backend: str, targets: Sequence[Any], styles: Mapping[str, Style | None]
) -> None:
    """Write the labels of the axes, and the title above the first panel."""
    functions = import_module(f"arviz_plots.backend.{backend}")

    def write(name: str, text: str, target: Any) -> None:
        if (style := styles[name]) is not None:
            # Names that the user gives are not mathtext.
            text = text.replace("$", r"\$") if backend == "matplotlib" else text
            settings = {"text": text, **style}
            getattr(functions, name)(settings.pop("text"), target, **settings)

    write("title", chart.title, targets[0])
    for target, y_label in zip(targets, chart.y_labels, strict=True):
        write("xlabel", chart.x_label, target)
        write("ylabel", y_label, target)
        if backend == "plotly":  # bokeh's axes are logarithmic from the beginning
            for axis, is_log in (("x", chart.log_x), ("y", chart.log_y)):
                getattr(target, f"update_{axis}axes")(type="log" if is_log else "linear")
