"""Looks of figures of matplotlib: colours, size, logarithmic axes and the legend."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib import rcParams, rcParamsDefault
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend_handler import HandlerTuple
from matplotlib.ticker import LogLocator, NullFormatter

Style = Mapping[str, Any]
_SIZE, _WIDE = (8.0, 5.5), (11.0, 4.8)  # inches, of one panel and of several
_NARROW = 5.0  # inches with small legends
# A legend: columns, width of a letter as a share of its height, letters before a text and at least
# in its lines, and inches below the axes that a figure of the usual height has room for.
_MOST_COLUMNS, _LETTER, _BEFORE, _FEWEST, _ROOM = 3, 0.6, 9, 12, 1.2
_MOST_NUMBERS = 10  # on a logarithmic axis
# First digits of numbers, and how many numbers as far apart as the two nearest fill a decade.
_DIGITS = {(1, 2, 3, 4, 5, 7): 10, (1, 2, 5): 3, (1,): 0}
# On an axis between them numbers are written out; on others they are powers of 10.
_SMALLEST, _LARGEST = 3e-5, 3e6
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def changed(name: str) -> bool:
    """Whether the user changed a parameter of matplotlib, by hand or by a style."""
    return rcParams[name] != rcParamsDefault[name]


def colors_of_style() -> tuple[str, ...]:
    """Return the colours that the user set; none if they are matplotlib's."""
    cycle = rcParams["axes.prop_cycle"].by_key()
    return tuple(cycle.get("color", ())) if changed("axes.prop_cycle") else ()


def figure_settings(n_panels: int) -> dict[str, Any]:
    """Return the arguments of a new figure; the size is the user's if one was set."""
    size = {} if changed("figure.figsize") else {"figsize": _SIZE if n_panels == 1 else _WIDE}
    return {"layout": ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.06), **size}


def finish(
    panels: Sequence[Any], log_x: bool, log_y: bool, legend: Style | None, *, is_new: bool
) -> None:
    """Finish axes in which a chart was drawn; `legend` is the user's style, None for no legend."""
    for axes in panels:
        for name, is_log in (("x", log_x), ("y", log_y)):
            if is_log:
                getattr(axes, f"set_{name}scale")("log")
                _number(getattr(axes, f"{name}axis"))
        for text in (axes.title, axes.xaxis.label, axes.yaxis.label):
            text.set_wrap(True)
    if legend is not None and panels[0].get_legend_handles_labels()[1]:
        _add_legend(panels[0], legend, is_new)


def log_locator(low: float, high: float, most: int) -> LogLocator:
    """Return matplotlib's ticks at powers of 10, and at as many multiples of them as have room."""
    decades = np.log10(high / low)
    digits = next(digits for digits, n in _DIGITS.items() if n * decades <= most)
    return LogLocator(subs=digits, numticks=most)


def number_text(value: float, low: float, high: float) -> str:
    """Return a number of an axis between two ends: 1,000 or 0.01, or a power of 10."""
    if _SMALLEST <= low <= high <= _LARGEST:
        return f"{value:,.10g}"
    exponent = int(np.floor(np.log10(value) + 1e-9))
    digit = value / 10.0**exponent
    times = "" if np.isclose(digit, 1) else f"{digit:.2g} × "
    return f"{times}10{str(exponent).translate(_SUPERSCRIPTS)}"


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
    settings = {key: value for key, value in settings.items() if not changed(f"legend.{key}")}
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
    elif not changed("figure.figsize"):
        more = legend.get_window_extent().height / figure.dpi - _ROOM
        figure.set_figheight(figure.get_figheight() + max(more, 0))
