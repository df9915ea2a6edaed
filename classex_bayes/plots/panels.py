"""Axes in which a plot draws named series: looks, styles of the user, numbers and the legend."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from textwrap import fill
from typing import Any

import numpy as np
import xarray as xr
from cycler import Cycler, cycler
from matplotlib import pyplot as plt
from matplotlib import rcParams, rcParamsDefault
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import ArrayLike

from classex_bayes.arguments import whole_number
from classex_bayes.exceptions import DataError
from classex_bayes.results.draws import SAMPLE_DIMS, interval_label, interval_name, interval_of
from classex_bayes.results.extrapolation import Bounds, Extrapolation

type Style = Mapping[str, Any]

# Okabe and Ito's colours, distinct in every form of colour blindness. Their yellow is left out,
# because it is too light for a line on white.
PALETTE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"
MUTED = "#606060"  # a gray unlike the palette in every colour blindness
_DASHES, _MARKERS = ("-", "--", ":", "-."), ("o", "s", "^", "d")
# All pairs of a colour and a dash: the dashes move by one further in each round of the colours.
_SERIES = range(len(PALETTE) * len(_DASHES))
# Defaults in place of those of matplotlib, where the user has not changed them.
_STYLE = {
    "axes.prop_cycle": cycler(
        color=[PALETTE[n % len(PALETTE)] for n in _SERIES],
        linestyle=[_DASHES[(n + n // len(PALETTE)) % len(_DASHES)] for n in _SERIES],
        marker=[_MARKERS[n % len(_MARKERS)] for n in _SERIES],
    ),
    "legend.frameon": False,
    "legend.handlelength": 2.5,
}
_SIZE, _WIDE = (8.0, 5.5), (11.0, 4.8)  # inches, of one panel and of several
_NARROW = 5.0  # inches with small legends
_BAND = 0.2  # opacity
_BAR_STEP = 1.03  # ratio of the places of bars at the same number of classes
_DOTTED = 12  # a curve at so few places has a dot at each
# A legend: columns, width of a letter as a share of its height, letters before a text and at least
# in its lines, and inches below the axes that a figure of the usual height has room for.
_MOST_COLUMNS, _LETTER, _BEFORE, _FEWEST, _ROOM = 3, 0.6, 9, 12, 1.2
_MOST_NUMBERS = 10  # on a logarithmic axis
# First digits of numbers, and how many numbers as far apart as the two nearest fill a decade.
_DIGITS = {(1, 2, 3, 4, 5, 7): 10, (1, 2, 5): 3, (1,): 0}
# On an axis between them numbers are written out; on others they are powers of 10.
_SMALLEST, _LARGEST = 3e-5, 3e6
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@contextmanager
def drawn_panels(
    n_panels: int,
    interval: tuple[float, str],
    styles: Mapping[str, Style | None],
    *,
    ax: Any,
    figure_kwargs: Style | None,
    col_wrap: int | None,
) -> Iterator[list["Panel"]]:
    """Provide the panels of a plot; number their axes and add the legend after it has drawn.

    `interval` is the level and kind of intervals. `styles` has the style of every visual, None if
    the user removes it. Further arguments are those of every plot.
    """
    usual = {**_STYLE, "figure.figsize": _SIZE if n_panels == 1 else _WIDE}
    unchanged = {name: usual[name] for name in usual if rcParams[name] == rcParamsDefault[name]}
    with plt.rc_context(unchanged):
        if ax is None:
            axes = _new_axes(n_panels, figure_kwargs, col_wrap)
        else:
            axes = _checked_axes(ax, n_panels, figure_kwargs=figure_kwargs, col_wrap=col_wrap)
        try:
            yield [Panel(panel, interval, styles) for panel in axes]
            for panel in axes:
                for axis in (panel.xaxis, panel.yaxis):
                    if axis.get_scale() == "log" and panel.has_data():
                        _number(axis)
            if (legend := styles["legend"]) is not None:
                with named_refusal("visuals", legend):
                    _add_legend(axes[0], legend, is_new=ax is None)
        except BaseException:
            if ax is None:
                plt.close(axes[0].get_figure())
            raise


class Panel:
    """Axes in which a plot draws series by their names.

    A new line has the next look of the axes, as far as its own `looks` leave it open. The user may
    remove or style what has the name `visual`.
    """

    muted = MUTED

    def __init__(
        self, axes: Axes, interval: tuple[float, str], styles: Mapping[str, Style | None]
    ) -> None:
        self.axes, self.interval, self._styles = axes, interval, styles
        self._n_bars = 0
        if not axes.has_data():
            axes.set_prop_cycle(_looks())

    @property
    def ink(self) -> str:
        """The colour of text."""
        return rcParams["text.color"]

    def line(self, series: str, x: ArrayLike, y: ArrayLike, visual: str, **looks: Any) -> Line2D:
        """Draw a line, with dots where it is known at few x, and return it."""
        (line,) = self.axes.plot(x, y, label=series, **looks)
        if np.size(x) > _DOTTED and "marker" not in looks:
            line.set_marker("")
        self._style(line, visual)
        return line

    def reference(self, series: str, x: ArrayLike, y: ArrayLike, visual: str, **looks: Any) -> None:
        """Draw a line without dots, by default in the colour of text."""
        usual = {"color": self.ink, "linestyle": "-", "marker": ""}
        self.line(series, x, y, visual, **{**usual, **looks})

    def points(self, series: str, x: ArrayLike, y: ArrayLike, visual: str, **looks: Any) -> None:
        """Draw points, by default in the colour of text, which is that of observed data."""
        usual = {"color": self.ink, "linestyle": "", "marker": "o"}
        self.line(series, x, y, visual, **{**usual, **looks})

    def band(
        self,
        series: str,
        x: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        visual: str = "ci_band",
        *,
        color: Any,
    ) -> None:
        """Fill between two curves; at a single x draw a bar."""
        looks = {"color": color, "label": series}
        if np.size(x) > 1:
            band = self.axes.fill_between(
                np.asarray(x), lower, upper, alpha=_BAND, linewidth=0, **looks
            )
            self._style(band, visual)
        else:
            ends = np.ravel([x, x]), np.ravel([lower, upper])
            (bar,) = self.axes.plot(*ends, linestyle="-", marker="", **looks)
            self._style(bar, visual)

    def level(self, series: str, y: float, visual: str) -> None:
        """Draw a value as a gray line along all x."""
        self._style(self.axes.axhline(y, color=MUTED, label=series), visual)

    def vertical(self, series: str, x: float, visual: str) -> None:
        """Draw a dotted gray vertical line."""
        self._style(self.axes.axvline(x, linestyle=":", color=MUTED, label=series), visual)

    def draws(
        self, name: str, x: ArrayLike, draws: xr.DataArray, law: str = "credible", **looks: Any
    ) -> Line2D:
        """Draw mean and interval of draws of dimensions (chain, draw) and one along increasing x.

        Return the line of the mean. Its name has the type, level and kind of the interval.
        """
        series = f"{name}, {interval_label(*self.interval, law)}"
        line = self.line(series, x, draws.mean(SAMPLE_DIMS).values, "mean", **looks)
        limits = interval_of(draws, *self.interval).transpose("ci_bound", ...).values
        self.band(series, x, *limits, color=line.get_color())
        return line

    def prediction(self, name: str, prediction: Extrapolation, **looks: Any) -> Line2D | None:
        """Draw mean and interval of a prediction, or its values if it has no draws.

        Return the line; bounds have none. At a single k predictions are side by side.
        """
        draws, law = prediction.draws.sortby("k"), prediction.interval_type
        k = draws["k"].values
        if isinstance(prediction, Bounds):
            series = f"{name}, {interval_name(self.interval[0], 'limits')}"
            limits = prediction.interval(self.interval[0]).loc[k].to_numpy().T
            self.band(series, k, *limits, color=MUTED)
            return None
        if law == "none":
            return self.line(name, k, draws.mean(SAMPLE_DIMS).values, "mean", **looks)
        x = k * _BAR_STEP**self._n_bars
        self._n_bars += k.size == 1
        return self.draws(name, x, draws, law, **looks)

    def label(
        self, title: str, x_label: str, y_label: str, *, log_x: bool = True, log_y: bool = False
    ) -> None:
        """Write title and labels of the axes, and set their scales."""
        for name, text in {"title": title, "xlabel": x_label, "ylabel": y_label}.items():
            style = self._styles[name]
            if text and style is not None:
                # Names that the user gives are not mathtext.
                settings = {"text": text.replace("$", r"\$"), "wrap": True, **style}
                with named_refusal("visuals", style):
                    getattr(self.axes, f"set_{name}")(settings.pop("text"), **settings)
        self.axes.set(xscale="log" if log_x else "linear", yscale="log" if log_y else "linear")

    def _style(self, drawn: Artist, visual: str) -> None:
        """Style or remove what was drawn, as the user wants it."""
        style = self._styles[visual]
        if style is None:
            drawn.remove()
            self.axes.relim()
        else:
            with named_refusal("visuals", style):
                drawn.set(**style)


@contextmanager
def named_refusal(name: str, given: Style | None) -> Iterator[None]:
    """Say which argument matplotlib refuses, if the user gave it."""
    try:
        yield
    except (AttributeError, TypeError, ValueError) as error:
        if not given:
            raise
        raise DataError(f"{name}: found what matplotlib refuses: {error}") from error


def _looks() -> Cycler:
    """The cycle of the user, with line styles and markers if it has colours only, or our own."""
    looks = rcParams["axes.prop_cycle"]
    for name, values in {"linestyle": _DASHES, "marker": _MARKERS}.items():
        if name not in looks.keys:
            looks += cycler(name, [values[n % len(values)] for n in range(len(looks))])
    return looks


def _new_axes(n_panels: int, figure_kwargs: Style | None, col_wrap: int | None) -> list[Axes]:
    """Axes in a new figure."""
    if not isinstance(figure_kwargs, Mapping | None):
        raise DataError(f"figure_kwargs: expected a mapping, found {figure_kwargs!r}")
    columns = n_panels if col_wrap is None else whole_number(col_wrap, "col_wrap", 1)
    settings = {"layout": ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.06), **(figure_kwargs or {})}
    with named_refusal("figure_kwargs", figure_kwargs):
        figure = plt.figure(**settings)
    shape = -(-n_panels // columns), min(columns, n_panels)
    return list(np.ravel(figure.subplots(*shape)))[:n_panels]


def _checked_axes(ax: Any, n_panels: int, **of_new: Any) -> list[Axes]:
    """Axes of the user; arguments of a new figure must be None."""
    for name, value in of_new.items():
        if value is not None:
            raise DataError(f"{name}: the axes are in a figure that exists; leave it out")
    found = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(found) != n_panels or not all(isinstance(axes, Axes) for axes in found):
        number = "one axes" if n_panels == 1 else f"{n_panels} axes"
        raise DataError(f"ax: expected {number} of matplotlib, found {ax!r}")
    return found


def _number(axis: Axis) -> None:
    """Number a logarithmic axis: written out if the numbers are short, and as many as have room."""
    most = min(axis.get_tick_space(), _MOST_NUMBERS)
    low, high = axis.get_view_interval()
    decades = np.log10(high / low)
    digits = next(digits for digits, n in _DIGITS.items() if n * decades <= most)
    axis.set_major_locator(LogLocator(subs=digits, numticks=most))
    axis.set_major_formatter(lambda value, _: number_text(value, *axis.get_view_interval()))
    axis.set_minor_locator(LogLocator(subs=range(2, 10), numticks=100))
    axis.set_minor_formatter(NullFormatter())


def number_text(value: float, low: float, high: float) -> str:
    """Return a number of an axis between two ends: 1,000 or 0.01, or a power of 10."""
    if _SMALLEST <= low <= high <= _LARGEST:
        return f"{value:,.10g}"
    exponent = int(np.floor(np.log10(value) + 1e-9))
    digit = value / 10.0**exponent
    times = "" if np.isclose(digit, 1) else f"{digit:.2g} × "
    return f"{times}10{str(exponent).translate(_SUPERSCRIPTS)}"


def _add_legend(axes: Axes, style: Style, *, is_new: bool) -> None:
    """Add the legend of all named artists: below the axes of a new figure, or inside the user's.

    A location such as "outside lower center" is one in the figure. Names are wrapped, and a new
    figure grows with its legend.
    """
    artists, names = axes.get_legend_handles_labels()
    if not names:
        return
    loc = style.get("loc", "outside lower center" if is_new else "best")
    outside = str(loc).startswith("outside")
    figure: Any = axes.get_figure(root=True)
    around = figure if outside else axes
    entries: dict[str, list[Artist]] = {}
    for artist, name in zip(artists, names, strict=True):
        entries.setdefault(name, []).append(artist)
    width = around.get_window_extent().width / figure.dpi
    size = rcParams["legend.fontsize"]
    if width < _NARROW and size == rcParamsDefault["legend.fontsize"]:
        size = "small"
    settings = {"loc": loc, "fontsize": size, **style}
    height = FontProperties(size=settings["fontsize"]).get_size_in_points()
    letters = int(width * 72 / (_LETTER * height))
    columns = min(_MOST_COLUMNS, len(entries)) if outside else 1
    lengths = [len(name) + _BEFORE for name in entries]
    while columns > 1 and sum(map(max, np.array_split(lengths, columns))) > letters:
        columns -= 1
    line = max(int(0.9 * letters) - _BEFORE, _FEWEST)
    legend = around.legend(
        [tuple(artists) for artists in entries.values()],
        [fill(name, line).replace("$", r"\$") for name in entries],
        handler_map={tuple: HandlerTuple(ndivide=1, pad=0)},
        **{"ncols": columns, **settings},
    )
    if not outside:
        legend.set_in_layout(False)
    elif is_new:
        more = legend.get_window_extent().height / figure.dpi - _ROOM
        figure.set_figheight(figure.get_figheight() + max(more, 0))
