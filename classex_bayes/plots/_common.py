"""What the plots share: one panel whose series carry colours and a legend."""

from collections.abc import Mapping
from itertools import count
from typing import Any

import numpy as np
import xarray as xr
from arviz_base import rcParams
from arviz_plots import PlotCollection, visuals

from classex_bayes.data.validation import one_of
from classex_bayes.typing import NumberArray

BACKENDS = ("matplotlib", "plotly", "bokeh", "none")
_FIGURE = {"figsize": (8.0, 5.5), "figsize_units": "inches", "layout": "constrained"}
_LEGEND = {"loc": "outside lower center", "ncols": 2, "frameon": False}


class Panel:
    """One panel with named series, drawn through a `PlotCollection` of any backend.

    Parameters
    ----------
    series : mapping from str to str or None
        Names in the legend with their colours; None takes the next of the palette.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        ArviZ's ``rcParams["plot.backend"]`` by default.
    """

    def __init__(self, series: Mapping[str, str | None], backend: str | None) -> None:
        backend = rcParams["plot.backend"] if backend is None else backend
        one_of(backend, BACKENDS, "backend")
        palette = (f"C{number}" for number in count())
        empty = xr.Dataset({"panel": ("series", np.zeros(len(series)))}, {"series": list(series)})
        self.collection = PlotCollection.wrap(
            empty,
            cols=["__variable__"],
            aes={"color": ["series"]},
            color=[color or next(palette) for color in series.values()],
            backend=backend,
            figure_kwargs=_FIGURE if backend == "matplotlib" else {},
        )

    def _data(self, series: str, along: str = "plot_axis", **axes: NumberArray) -> dict[str, Any]:
        """Arguments of `map` that draw one series; visuals find the axes along `along`."""
        values = np.stack([np.asarray(axis, dtype=float) for axis in axes.values()])
        array = xr.DataArray(
            values[None],
            dims=("series", along, "point"),
            coords={"series": [series], along: list(axes)},
        )
        return {"data": xr.Dataset({"panel": array})}

    def line(self, series: str, x: NumberArray, y: NumberArray, **style: Any) -> None:
        """Draw a line, or a point where there is a single x."""
        if np.size(x) == 1:
            return self.points(series, x, y)
        self.collection.map(
            visuals.line_xy, f"line {series}", **self._data(series, x=x, y=y), **style
        )

    def points(self, series: str, x: NumberArray, y: NumberArray, **style: Any) -> None:
        """Draw points."""
        self.collection.map(
            visuals.scatter_xy, f"points {series}", **self._data(series, x=x, y=y), **style
        )

    def band(
        self, series: str, x: NumberArray, lower: NumberArray, upper: NumberArray, **style: Any
    ) -> None:
        """Draw a band, or bars where there is a single x."""
        single = np.size(x) == 1
        data = self._data(
            series, "plot_axis" if single else "kwarg", x=x, y_bottom=lower, y_top=upper
        )
        draw = visuals.ci_line_y if single else visuals.fill_between_y
        self.collection.map(draw, f"band {series}", **data, **style)

    def finish(self, title: str, x_label: str, y_label: str, *, log_x: bool) -> PlotCollection:
        """Label the axes, add the legend and return the collection."""
        collection = self.collection
        everything = {"ignore_aes": "all"}
        if log_x:
            collection.map(
                visuals.set_xscale, "scale", scale="log", store_artist=False, **everything
            )
        for visual, text in (
            (visuals.labelled_x, x_label),
            (visuals.labelled_y, y_label),
            (visuals.labelled_title, title),
        ):
            collection.map(visual, visual.__name__, text=text, **everything)
        if collection.backend != "none":
            place = _LEGEND if collection.backend == "matplotlib" else {}
            collection.add_legend("series", title="", **place)
        return collection
