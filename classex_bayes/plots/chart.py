"""Charts: named series with their looks and labels, drawn on any of the plotting libraries."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import xarray as xr
from arviz_plots import PlotCollection, visuals
from scipy.interpolate import PchipInterpolator

from classex_bayes.arguments import class_counts
from classex_bayes.exceptions import DataError
from classex_bayes.plots.libraries import LIBRARIES, PlotLibrary, plain
from classex_bayes.plots.plot_targets import PlotContents, enter_contents, plot_target
from classex_bayes.results import SAMPLE_DIMS, Extrapolation, interval_label, interval_of
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, NumberArray

PANEL = "panel"
# What can be removed or styled: of every plot, and of those that name no others.
TEXTS = "title", "xlabel", "ylabel", "legend"
CURVES = "ci_band", "mean", "observed"
INK, MUTED = "ink", "#606060"  # a gray told apart from the palette in colour blindness
N_CLASSES = "number of classes $k$"  # label of the axis
_STYLES = (
    "points have size, marker, color and alpha; lines have width, linestyle, color and alpha; "
    "bands have color and alpha; titles and labels have text, size and color"
)
_N_DASHES = 4  # line styles of every library, by ArviZ's names C0 to C3
_MARKERS = ("C0", "C5", "C2", "C4")  # circle, square, triangle, diamond
_BAND = 0.2
_MOST_NAMED = 8
# A curve given at fewer places is drawn smoothly between them; at these few they are dots too.
_SMOOTHED, _DOTTED = 60, 12
_N_SMOOTH = 200
_BESIDE = 1.03  # so far is a bar beside the next at the same number of classes
_SLACK = 1.25  # a level beside a single number of classes reaches so far to both sides


def series_label(name: str, prediction: Extrapolation, prob: float, kind: str) -> str:
    """Return the name in the legend, with type and level of the interval if there is one."""
    if prediction.interval_type == "none":
        return name
    return f"{name}, {interval_label(prob, kind, prediction.interval_type)}"


def require_type(value: Any, expected: type, name: str, made_by: str = "") -> None:
    """Raise `DataError` where the argument `name` has another type."""
    if not isinstance(value, expected):
        article = "an" if expected.__name__[0] in "AEIOU" else "a"
        wanted = f"what {made_by} returns" if made_by else f"{article} {expected.__name__}"
        raise DataError(f"{name}: expected {wanted}, found {type(value).__name__}")


def chosen_k(available: Any, k: ClassCounts | None) -> IntArray:
    """Return the numbers of classes that are drawn, rising: those asked for, or all there are."""
    known = np.unique(np.asarray(available))
    if k is None:
        return known
    counts = np.sort(class_counts(k))
    missing = counts[~np.isin(counts, known)]
    if missing.size:
        numbers = ", ".join(f"{number:,}" for number in known[:_MOST_NAMED])
        more = ", ..." if known.size > _MOST_NAMED else ""
        raise DataError(
            f"k: found {missing[0]:,}, expected some of {numbers}{more}, at which there is a "
            "prediction; predict it there, or give the fitted model"
        )
    return counts


def at_k(prediction: Extrapolation, k: ClassCounts | None) -> Extrapolation:
    """Return the prediction at the numbers of classes that are drawn."""
    if k is None:
        return prediction
    return replace(prediction, draws=prediction.draws.sel(k=chosen_k(prediction.k, k)))


def palette_place(number: int, palette: Sequence[str]) -> tuple[str, int]:
    """Return colour and line style of the series with this number.

    Line styles move by one further in each round of the palette: colours meet every style in turn.
    """
    return palette[number % len(palette)], (number + number // len(palette)) % _N_DASHES


Visuals = Mapping[str, bool | Mapping[str, Any]]


@dataclass(frozen=True)
class Ribbon:
    """Mean and limits of draws along increasing x; both limits of points are the mean."""

    x: NumberArray
    mean: FloatArray
    lower: FloatArray
    upper: FloatArray
    is_point: bool = False
    smooth: bool = False  # whether it is a curve of log x, known at some places

    @classmethod
    def of_draws(cls, x: NumberArray, draws: xr.DataArray, prob: float, kind: str) -> "Ribbon":
        """Return the ribbon of draws with dimensions (chain, draw) and one along x."""
        bounds = interval_of(draws, prob, kind)
        lower, upper = (bounds.sel(ci_bound=side).values for side in ("lower", "upper"))
        return cls(x, draws.mean(SAMPLE_DIMS).values, lower, upper)

    @classmethod
    def of_prediction(cls, prediction: Extrapolation, prob: float, kind: str) -> "Ribbon":
        """Return the ribbon of a prediction."""
        order = np.argsort(prediction.k)
        k, mean = prediction.k[order], prediction.mean.to_numpy()[order]
        if prediction.interval_type == "none":
            return cls(k, mean, mean, mean, is_point=True, smooth=True)
        lower, upper = prediction.interval(prob, kind).to_numpy()[order].T
        return cls(k, mean, lower, upper, smooth=True)


@dataclass(frozen=True)
class Mark:
    """The drawing of one call in a panel: a line, points, or a band between two values.

    `visual` is the name by which it is removed or styled. `y` has the values (n,) at `x`, of a band
    the lower and the upper ones; `style` replaces the looks of the series. A mark that is smooth is
    interpolated between its places (monotonically, in log x) when it is drawn.
    """

    kind: Literal["line", "points", "band"]
    visual: str
    series: str
    panel: str
    x: NumberArray
    y: tuple[NumberArray, ...]
    style: Mapping[str, Any]
    smooth: bool = False

    def smoothed(self) -> "Mark":
        """Return the mark with as many places as a curve without corners needs."""
        x = np.asarray(self.x, dtype=float)
        if not self.smooth or not 2 < x.size < _SMOOTHED or np.any(np.diff(x) <= 0):
            return self
        places = np.union1d(np.geomspace(x[0], x[-1], _N_SMOOTH), x)
        curves = tuple(PchipInterpolator(np.log(x), y)(np.log(places)) for y in self.y)
        return replace(self, x=places, y=curves)


class Chart:
    """Panels side by side with named series; nothing is drawn before `draw`.

    Series of the palette differ in colour, line style and marker, from one another and from those
    that charts drew in the same plot before. `series` maps the names in the legend to colours: None
    takes the next of the palette, "C<n>" one of it, `INK` the colour of the style's text. `visuals`
    are the names of what the user may remove or style, besides the texts. `marks` are in the order
    in which they are drawn.
    """

    def __init__(
        self,
        series: Mapping[str, str | None],
        panels: Sequence[str] = (PANEL,),
        *,
        visuals: Sequence[str] = CURVES,
        log_x: bool = True,
        log_y: bool = False,
    ) -> None:
        self._colors, self._panels = dict(series), tuple(panels)
        self._log_x, self._log_y = log_x, log_y
        self.visuals = (*visuals, *TEXTS)
        self.marks: list[Mark] = []
        self.title = self.x_label = ""
        self.y_labels: tuple[str, ...] = ()

    @property
    def series(self) -> tuple[str, ...]:
        """Names of the series, in the order of the legend."""
        return tuple(self._colors)

    @property
    def x_name(self) -> str:
        """Label of the x axis in letters alone."""
        return plain(self.x_label)

    def mark(self, series: str, kind: str) -> Mark:
        """Return the first mark of a series that has this form."""
        return next(mark for mark in self.marks if (mark.series, mark.kind) == (series, kind))

    def line(
        self,
        series: str,
        x: NumberArray,
        y: NumberArray,
        panel: str = PANEL,
        *,
        visual: str = "mean",
        smooth: bool = False,
        **style: Any,
    ) -> None:
        """Add a line, or a point where there is a single x."""
        if np.size(x) == 1:
            return self.points(series, x, y, panel, visual=visual)
        self.marks.append(Mark("line", visual, series, panel, x, (y,), style, smooth))

    def points(
        self,
        series: str,
        x: NumberArray,
        y: NumberArray,
        panel: str = PANEL,
        *,
        visual: str = "observed",
        **style: Any,
    ) -> None:
        """Add points."""
        self.marks.append(Mark("points", visual, series, panel, x, (y,), style))

    def band(
        self,
        series: str,
        x: NumberArray,
        lower: NumberArray,
        upper: NumberArray,
        panel: str = PANEL,
        *,
        visual: str = "ci_band",
        smooth: bool = False,
    ) -> None:
        """Add a band, or a bar where there is a single x."""
        self.marks.append(Mark("band", visual, series, panel, x, (lower, upper), {}, smooth))

    def curve(
        self, series: str, x: NumberArray, y: NumberArray, panel: str = PANEL, **names: str
    ) -> None:
        """Add a smooth line, with dots where it is known at few x."""
        self.line(series, x, y, panel, smooth=True, **names)
        if 1 < np.size(x) <= _DOTTED:
            self.points(series, x, y, panel, **{"visual": "mean", **names})

    def ribbon(self, series: str, ribbon: Ribbon, panel: str = PANEL) -> None:
        """Add the band between the limits, except of points, and the line of the mean."""
        if not ribbon.is_point:
            limits = ribbon.lower, ribbon.upper
            self.band(series, ribbon.x, *limits, panel, smooth=ribbon.smooth)
        (self.curve if ribbon.smooth else self.line)(series, ribbon.x, ribbon.mean, panel)

    def level(self, series: str, x: NumberArray, value: float, *, visual: str) -> None:
        """Add a value along all x; around a single one, so that there is a line."""
        ends = np.array([np.min(x), np.max(x)], dtype=float)
        if ends[0] == ends[1]:
            ends *= [1 / _SLACK, _SLACK]
        self.line(series, ends, np.full(2, value), visual=visual)

    def labelled(self, title: str, x_label: str, *y_labels: str) -> "Chart":
        """Set title and labels of the axes, and return the chart."""
        self.title, self.x_label, self.y_labels = title, x_label, y_labels
        return self

    def draw(
        self,
        visuals: Visuals | None = None,
        plot_collection: PlotCollection | None = None,
        ax: Any = None,
        backend: str | None = None,
        **pc_kwargs: Any,
    ) -> PlotCollection:
        """Draw the chart; the arguments are those that every plot has.

        Parameters
        ----------
        visuals : mapping from str to bool or mapping, optional
            False removes what has this name, a mapping goes to the library's function as style.
        plot_collection : PlotCollection, optional
            Collection of ArviZ in which it is drawn: one that a plot of the same panels returned,
            or one with a single plot.
        ax : matplotlib Axes or sequence of them, optional
            Axes in which it is drawn, one for each panel.
        backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
            Plotting library; ArviZ's rcParams by default.
        **pc_kwargs
            `figure_kwargs` and `col_wrap` of `arviz_plots.PlotCollection.wrap`, such as
            ``figure_kwargs={"figsize": (3.3, 2.5)}``.

        Returns
        -------
        PlotCollection

        Raises
        ------
        DataError
            A visual that the plot has not, a style that a visual cannot have, a collection without
            its panels or with other axes, a wrong number of axes, an argument that the plot has
            not, or one of the figure that is no mapping or is given beside axes.
        """
        styles = visual_styles(visuals, self.visuals)
        scales = {"log_x": self._log_x, "log_y": self._log_y}
        collection, frame = plot_target(
            self._panels, plot_collection, ax, backend, pc_kwargs, **scales
        )
        argument = "ax" if plot_collection is None else "plot_collection"
        contents = PlotContents(self.x_name, self._log_x, self._log_y, self._n_colors)
        first_color = enter_contents(collection, self._panels, contents, argument)
        library = LIBRARIES[collection.backend]
        drawn: dict[str, list[Any]] = {series: [] for series in self._colors}
        looks = self._looks(library, first_color)
        dodge = self._dodge()
        for mark in self.marks:
            style = styles[mark.visual]
            if style is None:
                continue
            shown = mark.smoothed() if library.smooth else mark
            if mark.series in dodge:
                shown = replace(shown, x=shown.x * dodge[mark.series])
            with _styled(mark.visual, style):
                artist = _draw(collection, library, shown, looks[mark.series], style)
            if mark.panel == self._panels[0]:
                drawn[mark.series].append(artist)
        self._label_axes(collection, library, styles)
        entries = {series: marks for series, marks in drawn.items() if marks}
        plots = [collection.get_target(panel, {}) for panel in self._panels]
        if entries and (style := styles["legend"]) is not None:
            with _styled("legend", style):
                library.legend(plots, entries, style, frame)
        else:
            library.no_legend(plots)
        return collection

    def _dodge(self) -> dict[str, float]:
        """Factors that set bars at a single number of classes side by side."""
        single = (mark for mark in self.marks if mark.kind == "band" and np.size(mark.x) == 1)
        bars = list(dict.fromkeys(mark.series for mark in single)) if self._log_x else []
        return {name: _BESIDE ** (i - (len(bars) - 1) / 2) for i, name in enumerate(bars)}

    @property
    def _n_colors(self) -> int:
        """Number of colours of the palette."""
        colors = self._colors.values()
        fixed = [int(color[1:]) + 1 for color in colors if color and color[0] == "C"]
        return max(sum(color is None for color in colors), *fixed, 0)

    def _looks(self, library: PlotLibrary, first: int) -> dict[str, dict[str, str]]:
        """Colour, line style and marker of every series, from a place of the palette on."""
        palette, looks, place = library.palette(), {}, first
        for series, color in self._colors.items():
            number = place if color is None else first if color[0] == "C" else 0
            next_color, dash = palette_place(number, palette)
            if color is None:
                color, place = next_color, place + 1
            elif color == INK:
                color = library.ink()
            elif color[0] == "C":
                color = palette[(first + int(color[1:])) % len(palette)]
            marker = _MARKERS[number % len(_MARKERS)]
            looks[series] = {"color": color, "linestyle": f"C{dash}", "marker": marker}
        return looks

    def _label_axes(
        self,
        collection: PlotCollection,
        library: PlotLibrary,
        styles: Mapping[str, Mapping[str, Any] | None],
    ) -> None:
        data = {panel: xr.Dataset({panel: 0.0}) for panel in self._panels}
        for panel, label in zip(self._panels, self.y_labels, strict=True):
            shown = {"data": data[panel]}
            if self._log_x:
                collection.map(
                    visuals.set_xscale, "scale", scale="log", store_artist=False, **shown
                )
            if self._log_y:
                collection.map(
                    visuals.set_yscale, "y scale", scale="log", store_artist=False, **shown
                )
            if (style := styles["xlabel"]) is not None:
                text = {"text": library.math(self.x_label), **style}
                with _styled("xlabel", style):
                    collection.map(visuals.labelled_x, "xlabel", **shown, **text)
            if (style := styles["ylabel"]) is not None:
                text = {"text": library.math(label), **style}
                with _styled("ylabel", style):
                    collection.map(visuals.labelled_y, "ylabel", **shown, **text)
        first = self._panels[0]
        if (style := styles["title"]) is not None:
            target = collection.get_target(first, {})
            text = {**library.title(self.title, target), **style}
            with _styled("title", style):
                collection.map(visuals.labelled_title, "title", data=data[first], **text)
        for panel in self._panels:
            marks = [mark for mark in self.marks if mark.panel == panel]
            target = collection.get_target(panel, {})
            if self._log_x:
                library.count_axis(target, "x", *_ends(mark.x for mark in marks))
            if self._log_y:
                library.count_axis(target, "y", *_ends(y for mark in marks for y in mark.y))


def visual_styles(given: Any, names: Sequence[str]) -> dict[str, Mapping[str, Any] | None]:
    """Return the style of each visual, None if the user removes it."""
    wanted = f"expected a mapping from some of {', '.join(names)} to False or a style"
    if not isinstance(given, Mapping | None):
        raise DataError(f"visuals: {wanted}, found {given!r}")
    styles: dict[str, Mapping[str, Any] | None] = {name: {} for name in names}
    for name, style in (given or {}).items():
        if name not in styles or not isinstance(style, bool | Mapping):
            raise DataError(f"visuals: {wanted}, found {name!r}: {style!r}")
        styles[name] = style if isinstance(style, Mapping) else {} if style else None
    return styles


@contextmanager
def _styled(name: str, style: Mapping[str, Any]) -> Iterator[None]:
    """Say which visual has a style that the plotting library refuses."""
    try:
        yield
    except (AttributeError, TypeError, ValueError) as error:
        if not style:
            raise
        raise DataError(
            f"visuals: {name!r} cannot be drawn with {dict(style)!r} ({error}); {_STYLES}"
        ) from error


def _ends(values: Iterable[NumberArray]) -> tuple[float, float]:
    """Smallest and largest of the numbers of some arrays."""
    together = np.concatenate([np.ravel(array) for array in values])
    return float(np.nanmin(together)), float(np.nanmax(together))


def _draw(
    collection: PlotCollection,
    library: PlotLibrary,
    mark: Mark,
    looks: Mapping[str, str],
    given: Mapping[str, Any],
) -> Any:
    """Draw a mark and return its artist; visuals find the axes along the dimension `along`."""
    color = {"color": looks["color"]}
    along, axes = "plot_axis", ["x", "y"]
    if mark.kind == "line":
        visual, style = visuals.line_xy, {**color, "linestyle": looks["linestyle"], **library.line}
    elif mark.kind == "points":
        if "s" in given:  # matplotlib's name, which ArviZ would pass over
            raise TypeError("points have no s")
        visual, style = visuals.scatter_xy, {**color, "marker": looks["marker"], **library.point}
    else:
        axes = ["x", "y_bottom", "y_top"]
        visual, style = visuals.ci_line_y, {**color, **library.line}
        if np.size(mark.x) > 1:
            visual, along, style = visuals.fill_between_y, "kwarg", {**color, "alpha": _BAND}
    values = np.stack([np.asarray(axis, dtype=float) for axis in (mark.x, *mark.y)])
    array = xr.DataArray(values, dims=(along, "point"), coords={along: axes})
    place = "" if mark.panel == PANEL else f"{mark.panel} "
    label = f"{mark.kind} {place}{mark.series}"
    tie = library.tie(mark.series)
    data = xr.Dataset({mark.panel: array})
    collection.map(visual, label, data=data, **tie, **{**style, **mark.style, **given})
    return collection.viz[label][mark.panel].item()
