"""What the plots share: panels whose series have looks, labels and a legend."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import xarray as xr
from arviz_base import rcParams
from arviz_plots import PlotCollection, visuals

from classex_bayes.plots._backends import BACKENDS, Arrays, folded
from classex_bayes.results import Extrapolation, interval_label
from classex_bayes.task.validation import one_of
from classex_bayes.typing import IntArray, NumberArray

PANEL = "panel"
INK, MUTED = "ink", "#606060"  # a gray told apart from the palette in colour blindness
_N_DASHES = 4  # line styles of every library, by ArviZ's names C0 to C3
_MARKERS = ("C0", "C5", "C2", "C4")  # circle, square, triangle, diamond
_BAND = 0.2
_TITLE = 64  # letters in a line
_SLACK = 1.25  # a level beside a single number of classes reaches so far to both sides


def series_label(name: str, prediction: Extrapolation, prob: float, kind: str) -> str:
    """Name in the legend, with the interval's type and level where there is one."""
    if prediction.interval_type == "none":
        return name
    return f"{name}, {interval_label(prob, kind, prediction.interval_type)}"


def chosen_backend(backend: str | None) -> tuple[str, Arrays]:
    """Name of the library to draw with, the default of ArviZ's rcParams, and its particulars.

    Raises
    ------
    DataError
        No such backend.
    ImportError
        A library that is not installed.
    """
    name = rcParams["plot.backend"] if backend is None else backend
    one_of(name, tuple(BACKENDS), "backend")
    try:
        import_module(f"arviz_plots.backend.{name}")
    except ModuleNotFoundError as error:
        raise ImportError(
            f'backend {name!r} needs {error.name}: pip install "classex-bayes[plots]"'
        ) from error
    return name, BACKENDS[name]


def spaced_counts(smallest: float, largest: float, n_points: int) -> IntArray:
    """At most so many numbers of classes between two, evenly on a logarithmic axis."""
    return np.unique(np.rint(np.geomspace(smallest, largest, n_points)).astype(np.int64))


class Panels:
    """Panels side by side whose named series are drawn through a `PlotCollection`.

    Series of the palette differ in colour, line style and marker.

    Parameters
    ----------
    series : mapping from str to str or None
        Names in the legend with their colours: None takes the next of the palette, "C<n>" one of
        it, `INK` the colour of the style's text.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        ArviZ's ``rcParams["plot.backend"]`` by default.
    names : sequence of str
        Names of the panels.
    log_x : bool
        Whether x is a number on a logarithmic axis.
    """

    def __init__(
        self,
        series: Mapping[str, str | None],
        backend: str | None,
        names: Sequence[str] = (PANEL,),
        *,
        log_x: bool = True,
    ) -> None:
        name, self._backend = chosen_backend(backend)
        palette = self._backend.palette()
        self._looks: dict[str, dict[str, str]] = {}
        place = 0
        for label, color in series.items():
            number = place if color is None else 0
            if color is None:
                color, place = f"C{place}", place + 1
            if color == INK:
                color = self._backend.ink()
            elif color[0] == "C":
                color = palette[int(color[1:]) % len(palette)]
            self._looks[label] = {
                "color": color,
                # One further in each round of the palette: colours meet every style in turn.
                "linestyle": f"C{(number + number // len(palette)) % _N_DASHES}",
                "marker": _MARKERS[number % len(_MARKERS)],
            }
        self._names, self._log_x = tuple(names), log_x
        self._marks: dict[str, list[tuple[str, str]]] = {label: [] for label in series}
        self._ends = np.inf, 0.0
        self.collection = PlotCollection.wrap(
            xr.Dataset(dict.fromkeys(names, 0.0)),
            cols=["__variable__"],
            backend=name,
            figure_kwargs=self._backend.figure(len(names), log_x=log_x),
        )

    def line(
        self, series: str, x: NumberArray, y: NumberArray, panel: str = PANEL, **style: Any
    ) -> None:
        """Draw a line, or a point where there is a single x."""
        if np.size(x) == 1:
            return self.points(series, x, y, panel)
        looks = self._of(series, "color", "linestyle") | self._backend.line | style
        self._draw(visuals.line_xy, "line", series, panel, "plot_axis", looks, x=x, y=y)

    def points(
        self, series: str, x: NumberArray, y: NumberArray, panel: str = PANEL, **style: Any
    ) -> None:
        """Draw points."""
        looks = self._of(series, "color", "marker") | self._backend.point | style
        self._draw(visuals.scatter_xy, "points", series, panel, "plot_axis", looks, x=x, y=y)

    def band(
        self,
        series: str,
        x: NumberArray,
        lower: NumberArray,
        upper: NumberArray,
        panel: str = PANEL,
    ) -> None:
        """Draw a band, or a bar where there is a single x."""
        if np.size(x) == 1:
            visual, along = visuals.ci_line_y, "plot_axis"
            looks = self._of(series, "color") | self._backend.line
        else:
            visual, along = visuals.fill_between_y, "kwarg"
            looks = self._of(series, "color") | {"alpha": _BAND}
        self._draw(visual, "band", series, panel, along, looks, x=x, y_bottom=lower, y_top=upper)

    def level(self, series: str, x: NumberArray, value: float) -> None:
        """Draw a value along all x; around a single one, so that there is a line."""
        ends = np.array([np.min(x), np.max(x)], dtype=float)
        if ends[0] == ends[1]:
            ends *= [1 / _SLACK, _SLACK]
        self.line(series, ends, np.full(2, value))

    def finish(self, title: str, x_label: str, *y_labels: str) -> PlotCollection:
        """Label the axes, add the legend and return the collection."""
        collection = self.collection
        if self._log_x:
            collection.map(visuals.set_xscale, "scale", scale="log", store_artist=False)
        collection.map(visuals.labelled_x, "labelled_x", text=x_label)
        for name, label in zip(self._names, y_labels, strict=True):
            only = collection.data[[name]]
            collection.map(visuals.labelled_y, f"labelled_y {name}", data=only, text=label)
        first = collection.data[[self._names[0]]]
        text = self._backend.literal(folded(title, _TITLE))
        collection.map(visuals.labelled_title, "labelled_title", data=first, text=text)
        if self._log_x:
            for target in collection.viz["plot"].dataset.values():
                self._backend.count_axis(target.item(), *self._ends)
        drawn = {
            series: [collection.viz[visual][panel].item() for visual, panel in marks]
            for series, marks in self._marks.items()
            if marks
        }
        self._backend.legend(collection, drawn)
        return collection

    def _of(self, series: str, *names: str) -> dict[str, Any]:
        return {name: self._looks[series][name] for name in names}

    def _draw(
        self,
        visual: Any,
        what: str,
        series: str,
        panel: str,
        along: str,
        style: dict[str, Any],
        **axes: NumberArray,
    ) -> None:
        """Draw one series; visuals find the axes along the dimension `along`."""
        values = np.stack([np.asarray(axis, dtype=float) for axis in axes.values()])
        array = xr.DataArray(values, dims=(along, "point"), coords={along: list(axes)})
        label = f"{what} {series}" if panel == PANEL else f"{what} {panel} {series}"
        tie = self._backend.tie(series)
        self.collection.map(visual, label, data=xr.Dataset({panel: array}), **tie, **style)
        low, high = self._ends
        self._ends = min(low, float(np.nanmin(axes["x"]))), max(high, float(np.nanmax(axes["x"])))
        if panel == self._names[0]:
            self._marks[series].append((label, panel))
