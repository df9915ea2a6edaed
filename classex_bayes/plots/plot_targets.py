"""Targets of a chart: a new figure, axes of matplotlib, or a collection that exists."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import xarray as xr
from arviz_base import rcParams
from arviz_plots import PlotCollection

from classex_bayes.arguments import one_of
from classex_bayes.exceptions import DataError
from classex_bayes.plots.libraries import LIBRARIES, Frame, PlotLibrary

_PC_KWARGS = "figure_kwargs", "col_wrap"


@dataclass(frozen=True)
class PlotContents:
    """What charts have drawn in a plot: their axes, and how many colours of the palette."""

    x_label: str
    log_x: bool
    log_y: bool
    n_colors: int

    @property
    def axes(self) -> str:
        """The axes in words."""
        x, y = ("logarithmic" if log else "linear" for log in (self.log_x, self.log_y))
        return f"{x} x ({self.x_label}) and {y} y"


# Of plots that exist, for what is drawn there later.
_CONTENTS: WeakKeyDictionary[Any, PlotContents] = WeakKeyDictionary()


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


def plot_target(
    panels: Sequence[str],
    plot_collection: PlotCollection | None,
    ax: Any,
    backend: str | None,
    pc_kwargs: Mapping[str, Any],
    **scales: bool,
) -> tuple[PlotCollection, Frame]:
    """Return a collection with a plot for each panel, and whose its figure is."""
    for name in pc_kwargs:
        if name not in _PC_KWARGS:
            raise DataError(
                f"{name}: no such argument of this plot; those of the figure are "
                f"{' and '.join(_PC_KWARGS)}"
            )
    asked = pc_kwargs.get("figure_kwargs") or {}
    if not isinstance(asked, Mapping):
        raise DataError(
            "figure_kwargs: expected a mapping such as {'figsize': (3.3, 2.5)}, found "
            f"{type(asked).__name__}"
        )
    if plot_collection is None and ax is None:
        name, library = chosen_library(backend)
        settings = {**library.figure(len(panels), **scales), **asked}
        data = xr.Dataset(dict.fromkeys(panels, 0.0))
        wrap = {**pc_kwargs, "figure_kwargs": settings}
        collection = PlotCollection.wrap(data, cols=["__variable__"], backend=name, **wrap)
        return collection, Frame.SIZED if "figsize" in asked else Frame.OURS
    if pc_kwargs:
        raise DataError(
            f"{', '.join(pc_kwargs)}: the axes are in a figure that exists; set it there"
        )
    if ax is None:
        collection = _with_panels(plot_collection, panels)
    elif plot_collection is None:
        collection = _around_axes(ax, panels)
    else:
        raise DataError("ax: found axes beside plot_collection; give one of the two")
    if backend not in (None, collection.backend):
        raise DataError(
            f"backend: found {backend!r}, but the plot given is of {collection.backend}"
        )
    return collection, Frame.GIVEN


def enter_contents(
    collection: PlotCollection, panels: Sequence[str], contents: PlotContents, argument: str
) -> int:
    """Enter what a chart draws; return how many colours of the palette were drawn before.

    Axes that were cleared are as new.
    """
    plots = [collection.get_target(panel, {}) for panel in panels]
    if collection.backend == "none":
        plots = [collection]  # whose targets are lists
    elif collection.backend == "matplotlib":
        for axes in plots:
            if not axes.has_data():
                _CONTENTS.pop(axes, None)
    earlier = [_CONTENTS[plot] for plot in plots if plot in _CONTENTS]
    for drawn in earlier:
        if drawn.axes != contents.axes:
            raise DataError(
                f"{argument}: found a plot with {drawn.axes}, expected {contents.axes}; draw in "
                "one with these axes, or in a new one"
            )
    n_colors = max((drawn.n_colors for drawn in earlier), default=0)
    for plot in plots:
        _CONTENTS[plot] = replace(contents, n_colors=n_colors + contents.n_colors)
    return n_colors


def _with_panels(collection: Any, panels: Sequence[str]) -> PlotCollection:
    """The collection, if it has a plot for each panel or one plot for all that is drawn."""
    if not isinstance(collection, PlotCollection):
        raise DataError(
            "plot_collection: expected an arviz_plots.PlotCollection, found "
            f"{type(collection).__name__}; axes of matplotlib are given as ax"
        )
    viz = collection.viz
    single = "plot" in viz.data_vars and viz["plot"].size == 1 and len(panels) == 1
    found = [] if "plot" not in viz.children else [str(name) for name in viz["plot"].data_vars]
    if not (single or set(panels) <= set(found)):
        raise DataError(
            f"plot_collection: expected one with the plots {', '.join(map(repr, panels))}, found "
            f"{', '.join(map(repr, found)) or 'others'}; ax takes the axes of any of them"
        )
    return collection


def _around_axes(ax: Any, panels: Sequence[str]) -> PlotCollection:
    """A collection whose plots are axes of matplotlib."""
    from matplotlib.axes import Axes

    axes = list(np.ravel(np.asarray(ax, dtype=object)))
    flat = all(isinstance(target, Axes) and target.name == "rectilinear" for target in axes)
    if not flat or len(axes) != len(panels):
        number = "one axes" if len(panels) == 1 else f"{len(panels)} axes"
        kinds = ", ".join(sorted({type(target).__name__ for target in axes})) or "none"
        raise DataError(
            f"ax: expected {number} of matplotlib with x and y, such as one of figure.axes, found "
            f"{len(axes)} ({kinds})"
        )
    figure = xr.Dataset({"figure": np.array(axes[0].get_figure(root=True), dtype=object)})
    groups = {
        "plot": axes,
        "row_index": [0] * len(axes),
        "col_index": list(range(len(axes))),
    }
    children = {
        group: xr.DataTree(
            xr.Dataset(
                {
                    panel: np.array(value, dtype=object)
                    for panel, value in zip(panels, values, strict=True)
                }
            )
        )
        for group, values in groups.items()
    }
    data = xr.Dataset(dict.fromkeys(panels, 0.0))
    return PlotCollection(data, xr.DataTree(figure, children=children), backend="matplotlib")
