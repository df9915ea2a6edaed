"""Drawing of charts: the arguments that every plot has, and what they do."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from typing import Any, Literal, TypedDict
from weakref import WeakKeyDictionary

import numpy as np
import xarray as xr
from arviz_plots import PlotCollection

from classex_bayes.exceptions import DataError, require_extra
from classex_bayes.plots.backends import BACKENDS, Backend, Style
from classex_bayes.plots.chart import INK, PANEL, Chart, Mark
from classex_bayes.plots.plot_targets import plot_target

Visuals = Mapping[str, bool | Mapping[str, Any]]
BackendName = Literal["matplotlib", "plotly", "bokeh", "none"]
TEXTS = "title", "xlabel", "ylabel", "legend"  # of every plot
_N_DASHES = 4  # line styles of every backend, by ArviZ's names C0 to C3
_MARKERS = ("C0", "C5", "C2", "C4")  # circle, square, triangle, diamond
_BAND = 0.2  # opacity
_BESIDE = 1.03  # so far is a bar beside the next at the same number of classes
# Number of colours that charts took, by the first of their plots.
_COLORS: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
_SECTION = re.compile(r"\n\n(?=[A-Z][A-Za-z ]+\n-{3,}\n)")


class Drawing(TypedDict, total=False):
    """Keyword arguments of `draw` besides the chart, which every plot has."""

    visuals: Visuals | None
    plot_collection: PlotCollection | None
    ax: Any
    backend: BackendName | None
    figure_kwargs: Mapping[str, Any] | None
    col_wrap: int | None


def draw(
    chart: Chart,
    *,
    visuals: Visuals | None = None,
    plot_collection: PlotCollection | None = None,
    ax: Any = None,
    backend: BackendName | None = None,
    figure_kwargs: Mapping[str, Any] | None = None,
    col_wrap: int | None = None,
) -> PlotCollection:
    """Draw a chart.

    Parameters
    ----------
    chart : Chart
        The chart.
    visuals : mapping, optional
        Removes (False) or styles (a mapping of arguments) what has one of these names:
        those of the chart.
    plot_collection : PlotCollection, optional
        Plot of ArviZ in which this one is drawn: one that a plot of the same panels returned, or
        one with a single plot.
    ax : matplotlib Axes or sequence of them, optional
        Axes in which it is drawn, one for each panel.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Plotting library; ArviZ's rcParams by default.
    figure_kwargs : mapping, optional
        Arguments of a new figure, such as ``{"figsize": (3.3, 2.5)}``.
    col_wrap : int, optional
        Panels in a row; all by default.

    Returns
    -------
    PlotCollection
        `.savefig(path)`, `.show()`, `.get_viz("plot")` for the native axes.

    Raises
    ------
    DataError
        A visual that the chart has not, a collection without its panels or with other axes, a wrong
        number of axes, or arguments of a figure beside axes.
    """
    names = [*chart.visuals, *(mark.visual for mark in chart.marks), *TEXTS]
    styles = visual_styles(visuals, tuple(dict.fromkeys(names)))
    collection = plot_target(chart, plot_collection, ax, backend, figure_kwargs, col_wrap)
    library = BACKENDS[collection.backend]
    functions = import_module(f"arviz_plots.backend.{collection.backend}")
    targets = [collection.get_target(panel, {}) for panel in chart.panels]
    looks, dodge = _looks(chart, library, targets[0]), _dodge(chart)
    legend, drawn = styles["legend"], set()
    for mark in chart.marks:
        user_style = styles[mark.visual]
        if user_style is None:
            continue
        shown = mark if collection.backend == "none" else mark.smoothed()
        x, *y = (np.asarray(axis, dtype=float) for axis in (shown.x, *shown.y))
        function, style = _visual(mark, looks[mark.series], library)
        entry = {} if legend is None else library.entry(mark.series)
        # Stored by this name in the collection.
        panel = () if mark.panel == PANEL else (mark.panel,)
        collection.map(
            _on_target(getattr(functions, function), x * dodge.get(mark.series, 1.0), *y),
            " ".join([mark.kind, *panel, mark.series]),
            data=xr.Dataset({mark.panel: 0.0}),
            **{**style, **entry, **user_style},
        )
        drawn.add(mark.series)
    _label(chart, targets, functions, library, styles)
    if drawn and legend is not None:
        series = [name for name in chart.series if name in drawn]
        library.legend(targets, series, legend, plot_collection is None and ax is None)
    return collection


def _on_target(function: Callable[..., Any], *values: Any) -> Callable[..., Any]:
    """The function of a backend with these values, in the form that a collection calls."""
    return lambda _, target, **style: function(*values, target, **style)


def _visual(mark: Mark, looks: Mapping[str, str], library: Backend) -> tuple[str, dict[str, Any]]:
    """Name of arviz-plots' function that draws a mark, and its arguments."""
    style: dict[str, Any] = {"color": looks["color"]}
    function = "ciliney"  # a band at a single x
    if mark.kind == "line":
        function, style["linestyle"] = "line", looks["linestyle"]
    elif mark.kind == "points":
        function, style["marker"] = "scatter", looks["marker"]
    elif np.size(mark.x) > 1:
        function, style["alpha"] = "fill_between_y", _BAND
    style |= {**library.styles.get(function, {}), **mark.style}
    return function, style | ({"color": library.ink} if style["color"] == INK else {})


def _looks(chart: Chart, library: Backend, target: Any) -> dict[str, dict[str, str]]:
    """Colour, line style and marker of every series, after those that the plot has."""
    first = 0
    if not isinstance(target, list):  # as of the backend "none"
        cleared = hasattr(target, "has_data") and not target.has_data()  # axes of matplotlib
        first = 0 if cleared else _COLORS.get(target, 0)
        _COLORS[target] = first + chart.n_colors
    looks = {}
    for series, place in chart.series.items():
        number = 0 if place is None else first + place
        color, dash = palette_place(number, library.palette)
        marker = _MARKERS[number % len(_MARKERS)]
        looks[series] = {"color": color, "linestyle": f"C{dash}", "marker": marker}
    return looks


def palette_place(number: int, palette: Sequence[str]) -> tuple[str, int]:
    """Return colour and line style of the series with this number.

    Line styles move by one further in each round of the palette: colours meet every style in turn.
    """
    return palette[number % len(palette)], (number + number // len(palette)) % _N_DASHES


def _dodge(chart: Chart) -> dict[str, float]:
    """Factors that set bars at a single number of classes side by side."""
    single = [mark for mark in chart.marks if mark.kind == "band" and np.size(mark.x) == 1]
    bars = list(dict.fromkeys(mark.series for mark in single)) if chart.log_x else []
    return {name: _BESIDE ** (i - (len(bars) - 1) / 2) for i, name in enumerate(bars)}


def _label(
    chart: Chart,
    targets: Sequence[Any],
    functions: Any,
    library: Backend,
    styles: Mapping[str, Style | None],
) -> None:
    """Set scales and numbers of the axes, their labels, and the title above the first panel."""
    for panel, target, y_label in zip(chart.panels, targets, chart.y_labels, strict=True):
        marks = [mark for mark in chart.marks if mark.panel == panel]
        if chart.log_x:
            library.log_axis(target, "x", np.concatenate([mark.x for mark in marks]))
        if chart.log_y:
            library.log_axis(target, "y", np.concatenate([y for mark in marks for y in mark.y]))
        for name, label in (("xlabel", chart.x_label), ("ylabel", y_label)):
            if (style := styles[name]) is not None:
                text = {"text": library.math(label), **style}
                getattr(functions, name)(text.pop("text"), target, **text)
    if (style := styles["title"]) is not None:
        text = {"text": library.literal(chart.title), **library.title(targets[0]), **style}
        functions.title(text.pop("text"), targets[0], **text)


def visual_styles(visuals: Any, names: Sequence[str]) -> dict[str, Style | None]:
    """Return the style of each visual, None if the user removes it."""
    wanted = f"expected a mapping from some of {', '.join(names)} to False or a style"
    if not isinstance(visuals, Mapping | None):
        raise DataError(f"visuals: {wanted}, found {visuals!r}")
    styles: dict[str, Style | None] = {name: {} for name in names}
    for name, style in (visuals or {}).items():
        if name not in styles or not isinstance(style, bool | Mapping):
            raise DataError(f"visuals: {wanted}, found {name!r}: {style!r}")
        styles[name] = style if isinstance(style, Mapping) else {} if style else None
    return styles


_DRAWING = {
    name: parameter
    for name, parameter in inspect.signature(draw).parameters.items()
    if name != "chart"
}


def plot_function[**P](
    *visuals: str,
) -> Callable[[Callable[P, Chart]], Callable[P, PlotCollection]]:
    """Return a decorator that makes a plot of a function that fills a chart.

    The plot has the keyword arguments of `draw` too, in its signature and in its docstring, which
    names the visuals. A function states them as ``**drawing: Unpack[Drawing]``, for editors and
    type checkers; it does not receive them.
    """

    def decorate(fill_chart: Callable[P, Chart]) -> Callable[P, PlotCollection]:
        signature = inspect.signature(fill_chart)
        parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        signature = signature.replace(
            parameters=[*parameters, *_DRAWING.values()], return_annotation=PlotCollection
        )

        @wraps(fill_chart)
        def plot(*args: P.args, **kwargs: P.kwargs) -> PlotCollection:
            # Of every backend, since its round numbers are those of every plot.
            require_extra("plots", "a plot", "matplotlib")
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{fill_chart.__name__}: {error}") from None
            drawing = {name: bound.arguments.pop(name, None) for name in _DRAWING}
            chart = fill_chart(*bound.args, **bound.kwargs)
            chart.visuals = visuals
            return draw(chart, **drawing)

        vars(plot)["__signature__"] = signature
        plot.__doc__ = _docstring(fill_chart, (*visuals, *TEXTS))
        return plot

    return decorate


def chart_of[**P](plot: Callable[P, PlotCollection]) -> Callable[P, Chart]:
    """Return the function that fills the chart of a plot and does not draw it."""
    return inspect.unwrap(plot)


def _docstring(fill_chart: Callable[..., Chart], visuals: Sequence[str]) -> str:
    """Docstring of a plot, with the parameters and the result of `draw`."""
    text, common = inspect.getdoc(fill_chart) or "", inspect.getdoc(draw) or ""
    if not text or not common:  # as of python -OO
        return text
    summary, *sections = _SECTION.split(text)
    if not sections or not sections[0].startswith("Parameters"):
        raise TypeError(f"{fill_chart.__name__}: its docstring has no section Parameters")
    parameters, *others = sections
    _, drawing, result, *_ = _SECTION.split(common)
    names = ", ".join(f'"{name}"' for name in visuals[:-1]) + f' or "{visuals[-1]}"'
    drawing = drawing[drawing.index("visuals :") :].replace("those of the chart", names)
    return "\n\n".join([summary, f"{parameters}\n{drawing}", result, *others])
