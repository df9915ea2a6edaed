"""Figures of charts with matplotlib: axes, marks, colours, labels and the legend."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib import rcParams, rcParamsDefault
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend_handler import HandlerTuple
from matplotlib.ticker import LogLocator, NullFormatter

from classex_bayes.arguments import whole_number
from classex_bayes.exceptions import DataError
from classex_bayes.plots.axis_numbers import log_locator, number_text
from classex_bayes.plots.chart import INK, TEXTS, Chart, Kind, Style, Visuals
from classex_bayes.typing import NumberArray

# Okabe and Ito's colours, distinct in every form of colour blindness. Their yellow is left out,
# because it is too light for a line on white.
PALETTE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"
_DASHES = "-", "--", ":", "-."
_MARKERS = "o", "s", "^", "d"
_BAND = 0.2  # opacity
_BAR_STEP = 1.03  # ratio of the places of bars at the same number of classes
_SIZE, _WIDE = (8.0, 5.5), (11.0, 4.8)  # inches, of one panel and of several
_NARROW = 5.0  # inches with small legends
# A legend: columns, width of a letter as a share of its height, letters before a text and at least
# in its lines, and inches below the axes that a figure of the usual height has room for.
_MOST_COLUMNS, _LETTER, _BEFORE, _FEWEST, _ROOM = 3, 0.6, 9, 12, 1.2
_MOST_NUMBERS = 10  # on a logarithmic axis


def draw(
    chart: Chart,
    *,
    visuals: Visuals | None = None,
    ax: Any = None,
    figure_kwargs: Style | None = None,
    col_wrap: int | None = None,
) -> Any:
    """Draw a chart and return its axes; the arguments are those of every plot.

    Raises
    ------
    DataError
        A visual that the chart has not, a wrong number of axes, or arguments of a new figure
        together with axes.
    """
    styles = _visual_styles(visuals, [*chart.visuals, *(m.visual for m in chart.marks), *TEXTS])
    if ax is None:
        panels = _new_axes(len(chart.panels), figure_kwargs, col_wrap)
    else:
        panels = _checked_axes(ax, chart.panels, figure_kwargs=figure_kwargs, col_wrap=col_wrap)
    _draw_marks(chart, panels, styles)
    _write(panels[0], "title", chart.title, styles)
    for axes, y_label in zip(panels, chart.y_labels, strict=True):
        _write(axes, "xlabel", chart.x_label, styles)
        _write(axes, "ylabel", y_label, styles)
        if chart.log_x:
            axes.set_xscale("log")
            _number(axes.xaxis)
        if chart.log_y:
            axes.set_yscale("log")
            _number(axes.yaxis)
    legend = styles["legend"]
    if legend is not None and panels[0].get_legend_handles_labels()[1]:
        _add_legend(panels[0], legend, below=ax is None)
    return panels if len(panels) > 1 else panels[0]


def _visual_styles(visuals: Any, names: Sequence[str]) -> dict[str, Style | None]:
    """Style of each visual, None if the user removes it."""
    styles: dict[str, Style | None] = {name: {} for name in names}
    wanted = f"expected a mapping from some of {', '.join(styles)} to False or a style"
    if not isinstance(visuals, Mapping | None):
        raise DataError(f"visuals: {wanted}, found {visuals!r}")
    for name, style in (visuals or {}).items():
        if name not in styles or not isinstance(style, bool | Mapping):
            raise DataError(f"visuals: {wanted}, found {name!r}: {style!r}")
        styles[name] = style if isinstance(style, Mapping) else {} if style else None
    return styles


def _changed(name: str) -> bool:
    """Whether the user changed a parameter of matplotlib, by hand or by a style."""
    return rcParams[name] != rcParamsDefault[name]


def _new_axes(n_panels: int, figure_kwargs: Style | None, col_wrap: int | None) -> list[Axes]:
    """Axes in a new figure, whose size is the user's if one was set."""
    columns = n_panels if col_wrap is None else whole_number(col_wrap, "col_wrap", 1)
    settings: dict[str, Any] = {"layout": ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.06)}
    if not _changed("figure.figsize"):
        settings["figsize"] = _SIZE if n_panels == 1 else _WIDE
    figure = plt.figure(**{**settings, **(figure_kwargs or {})})
    shape = -(-n_panels // columns), min(columns, n_panels)
    return [figure.add_subplot(*shape, place) for place in range(1, n_panels + 1)]


def _checked_axes(ax: Any, panels: Sequence[str], **of_new: Any) -> list[Axes]:
    """Axes of the user; arguments of a new figure must be None."""
    for name, value in of_new.items():
        if value is not None:
            raise DataError(f"{name}: the axes are in a figure that exists; leave it out")
    found = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(found) != len(panels) or not all(isinstance(axes, Axes) for axes in found):
        number = "one axes" if len(panels) == 1 else f"{len(panels)} axes ({', '.join(panels)})"
        raise DataError(f"ax: expected {number} of matplotlib, found {ax!r}")
    return found


def _draw_marks(chart: Chart, panels: Sequence[Axes], styles: Mapping[str, Style | None]) -> None:
    """Draw all marks that the user has not removed."""
    axes = dict(zip(chart.panels, panels, strict=True))
    looks, dodge = _looks(chart, panels[0]), _dodge(chart)
    for mark in chart.marks:
        look, user_style = looks[mark.series], styles[mark.visual]
        if user_style is None:
            continue
        style = {"color": look["color"], **mark.style}
        if style["color"] == INK:
            style["color"] = rcParams[INK]
        if styles["legend"] is not None:
            style["label"] = mark.series
        x = mark.x * dodge.get(mark.series, 1.0)
        _draw_mark(axes[mark.panel], mark.kind, x, mark.y, look, {**style, **user_style})


def _draw_mark(
    axes: Axes, kind: Kind, x: NumberArray, y: Sequence[NumberArray], look: Style, style: Style
) -> None:
    """Draw a mark with the looks of its series, which its own style replaces."""
    match kind:
        case "line":
            axes.plot(x, *y, **{"linestyle": look["linestyle"], **style})
        case "points":  # above bands, as lines are
            axes.scatter(x, *y, **{"marker": look["marker"], "zorder": 2, **style})
        case "band":
            lower, upper = y
            axes.fill_between(x, lower, upper, **{"alpha": _BAND, "linewidth": 0, **style})
        case "bar":
            axes.plot([x, x], y, **style)


def _looks(chart: Chart, axes: Axes) -> dict[str, dict[str, str]]:
    """Looks of every series by name, after those that are in the axes."""
    cycle: dict[str, Sequence[str]] = {"color": PALETTE, "linestyle": _DASHES, "marker": _MARKERS}
    if _changed("axes.prop_cycle"):
        cycle |= rcParams["axes.prop_cycle"].by_key()
    first = len(set(axes.get_legend_handles_labels()[1]))
    looks = {}
    for series, place in chart.series.items():
        number = 0 if place is None else first + place
        # Line styles move by one further in each round of the colours, which meet all in turn.
        dash = number + number // len(cycle["color"])
        places = {"color": number, "linestyle": dash, "marker": number}
        looks[series] = {key: cycle[key][at % len(cycle[key])] for key, at in places.items()}
    return looks


def _dodge(chart: Chart) -> dict[str, float]:
    """Factors that set bars at a single number of classes side by side."""
    names = [mark.series for mark in chart.marks if mark.kind == "bar"]
    bars = list(dict.fromkeys(names)) if chart.log_x else []
    return {name: _BAR_STEP ** (i - (len(bars) - 1) / 2) for i, name in enumerate(bars)}


def _write(axes: Axes, name: str, text: str, styles: Mapping[str, Style | None]) -> None:
    """Write the title or a label of axes, unless the user removes it."""
    if (style := styles[name]) is not None:
        # Names that the user gives are not mathtext.
        settings = {"text": text.replace("$", r"\$"), "wrap": True, **style}
        getattr(axes, f"set_{name}")(settings.pop("text"), **settings)


def _number(axis: Any) -> None:
    """Number a logarithmic axis: written out if the numbers are short, and as many as have room."""
    most = min(axis.get_tick_space(), _MOST_NUMBERS)
    low, high = axis.get_view_interval()
    axis.set_major_locator(log_locator(low, high, most))
    axis.set_major_formatter(lambda value, _: number_text(value, *axis.get_view_interval()))
    axis.set_minor_locator(LogLocator(subs=range(2, 10), numticks=100))
    axis.set_minor_formatter(NullFormatter())


def _add_legend(axes: Any, style: Style, below: bool) -> None:
    """Add the legend of all named artists, inside the axes, or below those of a new figure.

    Names are wrapped, and a new figure grows with its legend.
    """
    figure = axes.get_figure(root=True)
    entries: dict[str, list[Any]] = {}
    for artist, name in zip(*axes.get_legend_handles_labels(), strict=True):
        entries.setdefault(name, []).append(artist)
    around = figure if below else axes
    width = around.get_window_extent().width / figure.dpi
    settings: dict[str, Any] = {"frameon": False, "handlelength": 2.0 if width < _NARROW else 3.0}
    if width < _NARROW:
        settings["fontsize"] = "small"
    settings = {key: value for key, value in settings.items() if not _changed(f"legend.{key}")}
    font = FontProperties(size=settings.get("fontsize", rcParams["legend.fontsize"]))
    letters = int(width * 72 / (_LETTER * font.get_size_in_points()))
    columns = min(_MOST_COLUMNS, len(entries)) if below else 1
    lengths = [len(name) + _BEFORE for name in entries]
    while columns > 1 and sum(map(max, np.array_split(lengths, columns))) > letters:
        columns -= 1
    line = max(int(0.9 * letters) - _BEFORE, _FEWEST)
    legend = around.legend(
        [tuple(artists) for artists in entries.values()],
        [fill(name, line).replace("$", r"\$") for name in entries],
        **{
            "loc": "outside lower center" if below else "best",
            "ncols": columns,
            "scatteryoffsets": [0.5],
            "handler_map": {tuple: HandlerTuple(ndivide=1, pad=0)},
            **settings,
            **style,
        },
    )
    if not below:
        legend.set_in_layout(False)
    elif not _changed("figure.figsize"):
        more = legend.get_window_extent().height / figure.dpi - _ROOM
        figure.set_figheight(figure.get_figheight() + max(more, 0))
