"""Charts: named series with their looks and labels, drawn on any of the plotting libraries."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np
import xarray as xr
from arviz_base import rcParams
from arviz_plots import PlotCollection, visuals

from classex_bayes.arguments import one_of
from classex_bayes.exceptions import DataError
from classex_bayes.plots.libraries import LIBRARIES, PlotLibrary, wrapped
from classex_bayes.results import SAMPLE_DIMS, Extrapolation, interval_label, interval_of
from classex_bayes.typing import FloatArray, NumberArray

PANEL = "panel"
INK, MUTED = "ink", "#606060"  # a gray told apart from the palette in colour blindness
N_CLASSES = "number of classes"  # label of the axis
_N_DASHES = 4  # line styles of every library, by ArviZ's names C0 to C3
_MARKERS = ("C0", "C5", "C2", "C4")  # circle, square, triangle, diamond
_BAND = 0.2
_TITLE = 64  # letters in a line
_SLACK = 1.25  # a level beside a single number of classes reaches so far to both sides


def series_label(name: str, prediction: Extrapolation, prob: float, kind: str) -> str:
    """Return the name in the legend, with type and level of the interval if there is one."""
    if prediction.interval_type == "none":
        return name
    return f"{name}, {interval_label(prob, kind, prediction.interval_type)}"


def require_type(value: Any, expected: type, name: str, made_by: str = "") -> None:
    """Raise `DataError` where the argument `name` has another type."""
    if not isinstance(value, expected):
        wanted = f"what {made_by} returns" if made_by else f"a {expected.__name__}"
        raise DataError(f"{name}: expected {wanted}, found {type(value).__name__}")


def chosen_library(backend: str | None) -> tuple[str, PlotLibrary]:
    """Name of the library, by default that of ArviZ's rcParams, and its particulars."""
    name = rcParams["plot.backend"] if backend is None else backend
    one_of(name, tuple(LIBRARIES), "backend")
    try:
        import_module(f"arviz_plots.backend.{name}")
    except ModuleNotFoundError as error:
        raise ImportError(
            f'backend {name!r} needs {error.name}: pip install "classex-bayes[plots]"'
        ) from error
    return name, LIBRARIES[name]


def palette_place(number: int, palette: Sequence[str]) -> tuple[str, int]:
    """Return colour and line style of the series with this number.

    Line styles move by one further in each round of the palette: colours meet every style in turn.
    """
    return palette[number % len(palette)], (number + number // len(palette)) % _N_DASHES


@dataclass(frozen=True)
class Ribbon:
    """Mean and limits of draws along increasing x; both limits of points are the mean."""

    x: NumberArray
    mean: FloatArray
    lower: FloatArray
    upper: FloatArray
    is_point: bool = False

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
            return cls(k, mean, mean, mean, is_point=True)
        lower, upper = prediction.interval(prob, kind).to_numpy()[order].T
        return cls(k, mean, lower, upper)


@dataclass(frozen=True)
class Mark:
    """The drawing of one call in a panel: a line, points, or a band between two values.

    `y` has the values (n,) at `x`, of a band the lower and the upper ones; `style` replaces the
    looks of the series.
    """

    kind: Literal["line", "points", "band"]
    series: str
    panel: str
    x: NumberArray
    y: tuple[NumberArray, ...]
    style: Mapping[str, Any]


class Chart:
    """Panels side by side with named series; nothing is drawn before `draw`.

    Series of the palette differ in colour, line style and marker. `series` maps the names in the
    legend to colours: None takes the next of the palette, "C<n>" one of it, `INK` the colour of
    the style's text. `marks` are in the order in which they are drawn.
    """

    def __init__(
        self,
        series: Mapping[str, str | None],
        panels: Sequence[str] = (PANEL,),
        *,
        log_x: bool = True,
        log_y: bool = False,
    ) -> None:
        self._colors, self._panels = dict(series), tuple(panels)
        self._log_x, self._log_y = log_x, log_y
        self.marks: list[Mark] = []
        self.title = self.x_label = ""
        self.y_labels: tuple[str, ...] = ()

    @property
    def series(self) -> tuple[str, ...]:
        """Names of the series, in the order of the legend."""
        return tuple(self._colors)

    def mark(self, series: str, kind: str) -> Mark:
        """Return the first mark of a series that has this form."""
        return next(mark for mark in self.marks if (mark.series, mark.kind) == (series, kind))

    def line(
        self, series: str, x: NumberArray, y: NumberArray, panel: str = PANEL, **style: Any
    ) -> None:
        """Add a line, or a point where there is a single x."""
        if np.size(x) == 1:
            return self.points(series, x, y, panel)
        self.marks.append(Mark("line", series, panel, x, (y,), style))

    def points(
        self, series: str, x: NumberArray, y: NumberArray, panel: str = PANEL, **style: Any
    ) -> None:
        """Add points."""
        self.marks.append(Mark("points", series, panel, x, (y,), style))

    def band(
        self,
        series: str,
        x: NumberArray,
        lower: NumberArray,
        upper: NumberArray,
        panel: str = PANEL,
    ) -> None:
        """Add a band, or a bar where there is a single x."""
        self.marks.append(Mark("band", series, panel, x, (lower, upper), {}))

    def ribbon(self, series: str, ribbon: Ribbon, panel: str = PANEL) -> None:
        """Add the band between the limits, except of points, and the line of the mean."""
        if not ribbon.is_point:
            self.band(series, ribbon.x, ribbon.lower, ribbon.upper, panel)
        self.line(series, ribbon.x, ribbon.mean, panel)

    def level(self, series: str, x: NumberArray, value: float) -> None:
        """Add a value along all x; around a single one, so that there is a line."""
        ends = np.array([np.min(x), np.max(x)], dtype=float)
        if ends[0] == ends[1]:
            ends *= [1 / _SLACK, _SLACK]
        self.line(series, ends, np.full(2, value))

    def labelled(self, title: str, x_label: str, *y_labels: str) -> "Chart":
        """Set title and labels of the axes, and return the chart."""
        self.title, self.x_label, self.y_labels = title, x_label, y_labels
        return self

    def draw(self, backend: str | None = None) -> PlotCollection:
        """Draw the chart by a library, by default that of ArviZ's ``rcParams["plot.backend"]``."""
        name, library = chosen_library(backend)
        collection = PlotCollection.wrap(
            xr.Dataset(dict.fromkeys(self._panels, 0.0)),
            cols=["__variable__"],
            backend=name,
            figure_kwargs=library.figure(len(self._panels), log_x=self._log_x, log_y=self._log_y),
        )
        drawn: dict[str, list[Any]] = {series: [] for series in self._colors}
        looks = self._looks(library)
        for mark in self.marks:
            artist = _draw(collection, library, mark, looks[mark.series])
            if mark.panel == self._panels[0]:
                drawn[mark.series].append(artist)
        self._label_axes(collection, library)
        library.legend(collection, {series: marks for series, marks in drawn.items() if marks})
        return collection

    def _looks(self, library: PlotLibrary) -> dict[str, dict[str, str]]:
        """Colour, line style and marker of every series."""
        palette, looks, place = library.palette(), {}, 0
        for series, color in self._colors.items():
            number = place if color is None else 0
            next_color, dash = palette_place(number, palette)
            if color is None:
                color, place = next_color, place + 1
            elif color == INK:
                color = library.ink()
            elif color[0] == "C":
                color = palette[int(color[1:]) % len(palette)]
            marker = _MARKERS[number % len(_MARKERS)]
            looks[series] = {"color": color, "linestyle": f"C{dash}", "marker": marker}
        return looks

    def _label_axes(self, collection: PlotCollection, library: PlotLibrary) -> None:
        if self._log_x:
            collection.map(visuals.set_xscale, "scale", scale="log", store_artist=False)
        if self._log_y:
            collection.map(visuals.set_yscale, "y scale", scale="log", store_artist=False)
        collection.map(visuals.labelled_x, "labelled_x", text=self.x_label)
        for panel, label in zip(self._panels, self.y_labels, strict=True):
            only = collection.data[[panel]]
            collection.map(visuals.labelled_y, f"labelled_y {panel}", data=only, text=label)
        first = collection.data[[self._panels[0]]]
        text = library.literal(wrapped(self.title, _TITLE))
        collection.map(visuals.labelled_title, "labelled_title", data=first, text=text)
        for panel in self._panels:
            marks = [mark for mark in self.marks if mark.panel == panel]
            target = collection.viz["plot"][panel].item()
            if self._log_x:
                library.count_axis(target, "x", *_ends(mark.x for mark in marks))
            if self._log_y:
                library.count_axis(target, "y", *_ends(y for mark in marks for y in mark.y))


def _ends(values: Iterable[NumberArray]) -> tuple[float, float]:
    """Smallest and largest of the numbers of some arrays."""
    together = np.concatenate([np.ravel(array) for array in values])
    return float(np.nanmin(together)), float(np.nanmax(together))


def _draw(
    collection: PlotCollection, library: PlotLibrary, mark: Mark, looks: Mapping[str, str]
) -> Any:
    """Draw a mark and return its artist; visuals find the axes along the dimension `along`."""
    color = {"color": looks["color"]}
    along, axes = "plot_axis", ["x", "y"]
    if mark.kind == "line":
        visual, style = visuals.line_xy, {**color, "linestyle": looks["linestyle"], **library.line}
    elif mark.kind == "points":
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
    collection.map(visual, label, data=data, **tie, **{**style, **mark.style})
    return collection.viz[label][mark.panel].item()
