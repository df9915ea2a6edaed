"""Targets of a chart: a new figure, axes of matplotlib, or a collection that exists."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from arviz_base import rcParams
from arviz_plots import PlotCollection

from classex_bayes.arguments import one_of
from classex_bayes.exceptions import DataError, require_extra
from classex_bayes.plots.backends import BACKENDS
from classex_bayes.plots.chart import Chart, require_type


def plot_target(
    chart: Chart,
    plot_collection: PlotCollection | None,
    ax: Any,
    backend: str | None,
    figure_kwargs: Mapping[str, Any] | None,
    col_wrap: int | None,
) -> PlotCollection:
    """Return a collection with a plot for each panel of a chart: a new one, or one that exists."""
    if plot_collection is None and ax is None:
        name = _installed(rcParams["plot.backend"] if backend is None else backend)
        return PlotCollection.wrap(
            xr.Dataset(dict.fromkeys(chart.panels, 0.0)),
            cols=["__variable__"],
            backend=name,
            col_wrap=len(chart.panels) if col_wrap is None else col_wrap,
            figure_kwargs={**BACKENDS[name].figure(chart), **(figure_kwargs or {})},
        )
    for name, value in (("figure_kwargs", figure_kwargs), ("col_wrap", col_wrap)):
        if value is not None:
            raise DataError(f"{name}: the axes are in a figure that exists; set it there")
    if ax is None:
        collection = _with_panels(plot_collection, chart.panels)
    elif plot_collection is None:
        collection = _around_axes(ax, chart.panels)
    else:
        raise DataError("ax: found axes beside plot_collection; give one of the two")
    if backend not in (None, collection.backend):
        raise DataError(f"backend: found {backend!r}, but the plot is of {collection.backend}")
    return collection


def _installed(backend: str) -> str:
    """The name of a backend, if it is installed."""
    one_of(backend, tuple(BACKENDS), "backend")
    if backend != "none":
        require_extra("interactive", f"backend {backend!r}", backend)
    return backend


def _with_panels(collection: Any, panels: Sequence[str]) -> PlotCollection:
    """The collection, if it has a plot for each panel or one plot for all that is drawn."""
    require_type(collection, PlotCollection, "plot_collection")
    viz = collection.viz
    single = "plot" in viz.data_vars and viz["plot"].size == 1 and len(panels) == 1
    plots = [] if "plot" not in viz.children else [str(name) for name in viz["plot"].data_vars]
    if not (single or set(panels) <= set(plots)):
        raise DataError(
            f"plot_collection: expected one with the plots {', '.join(map(repr, panels))}, found "
            f"{', '.join(map(repr, plots)) or 'others'}; ax takes the axes of any of them"
        )
    return collection


def _around_axes(ax: Any, panels: Sequence[str]) -> PlotCollection:
    """A collection whose plots are axes of matplotlib."""
    from matplotlib.axes import Axes

    axes = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(axes) != len(panels) or not all(isinstance(target, Axes) for target in axes):
        number = "one axes" if len(panels) == 1 else f"{len(panels)} axes ({', '.join(panels)})"
        kinds = ", ".join(sorted({type(target).__name__ for target in axes})) or "none"
        raise DataError(
            f"ax: expected {number} of matplotlib, such as one of figure.axes, found {len(axes)} "
            f"({kinds})"
        )
    parts = {"plot": axes, "row_index": [0] * len(axes), "col_index": [*range(len(axes))]}
    viz = {
        part: xr.Dataset(
            {panel: np.array(v, dtype=object) for panel, v in zip(panels, values, strict=True)}
        )
        for part, values in parts.items()
    }
    viz["/"] = xr.Dataset({"figure": np.array(axes[0].get_figure(root=True), dtype=object)})
    data = xr.Dataset(dict.fromkeys(panels, 0.0))
    return PlotCollection(data, xr.DataTree.from_dict(viz), backend="matplotlib")
