"""Accuracy of several classifiers, and which of them is the best, against the number of classes."""

from typing import Any

import numpy as np
import xarray as xr
from arviz_base import rcParams
from arviz_plots import PlotCollection, visuals

from classex_bayes.data.validation import one_of
from classex_bayes.evaluate.classifiers import ClassifierComparison
from classex_bayes.exceptions import DataError
from classex_bayes.plots._common import BACKENDS
from classex_bayes.results import interval_settings
from classex_bayes.typing import NumberArray

_ACCURACY, _BEST = "accuracy", "probability of being best"
_LEGEND = {"loc": "outside lower center", "frameon": False}


def plot_classifiers(
    found: ClassifierComparison,
    *,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    backend: str | None = None,
) -> PlotCollection:
    """Draw the accuracy of each classifier, and the probability that it is the best.

    Parameters
    ----------
    found : ClassifierComparison
        What `classex_bayes.compare_classifiers` returned.
    ci_prob, ci_kind : optional
        Level and kind of the ribbons; ArviZ's rcParams by default.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Plotting library; ArviZ's rcParams by default.

    Returns
    -------
    PlotCollection
        Panels "accuracy" and "probability of being best".

    Raises
    ------
    DataError
        No comparison of classifiers.
    """
    if not isinstance(found, ClassifierComparison):
        raise DataError(f"found: expected a ClassifierComparison, found {type(found).__name__}")
    prob, kind = interval_settings(ci_prob, ci_kind)
    panels = _Panels(
        {name: f"{name} ({kind}{100 * prob:g})" for name in found.classifiers}, backend
    )
    order = np.argsort(found.k)
    k, best = found.k[order], found.prob_best().iloc[order]
    for name, prediction in found.predictions.items():
        bounds = prediction.interval(prob, kind).to_numpy()[order]
        panels.band(_ACCURACY, name, k, bounds[:, 0], bounds[:, 1])
        panels.line(_ACCURACY, name, k, prediction.mean.to_numpy()[order])
        panels.line(_BEST, name, k, best[name].to_numpy())
    return panels.finish()


class _Panels:
    """Two panels side by side whose series share colours and a legend."""

    def __init__(self, labels: dict[str, str], backend: str | None) -> None:
        backend = rcParams["plot.backend"] if backend is None else backend
        one_of(backend, BACKENDS, "backend")
        self.labels = labels
        nothing = ("series", np.zeros(len(labels)))
        figure: dict[str, Any] = {"figsize": (11.0, 4.8), "figsize_units": "inches"}
        self.collection = PlotCollection.wrap(
            xr.Dataset({_ACCURACY: nothing, _BEST: nothing}, {"series": list(labels.values())}),
            cols=["__variable__"],
            aes={"color": ["series"]},
            color=[f"C{number}" for number in range(len(labels))],
            backend=backend,
            figure_kwargs={**figure, "layout": "constrained"} if backend == "matplotlib" else {},
        )

    def _draw(
        self, visual: Any, panel: str, name: str, along: str, style: dict[str, Any], **axes: Any
    ) -> None:
        values = np.stack([np.asarray(axis, dtype=float) for axis in axes.values()])
        array = xr.DataArray(
            values[None],
            dims=("series", along, "point"),
            coords={"series": [self.labels[name]], along: list(axes)},
        )
        label = f"{visual.__name__} {panel} {name}"
        self.collection.map(visual, label, data=xr.Dataset({panel: array}), **style)

    def line(self, panel: str, name: str, x: NumberArray, y: NumberArray) -> None:
        """Draw a line, or a point where there is a single x."""
        visual = visuals.scatter_xy if x.size == 1 else visuals.line_xy
        self._draw(visual, panel, name, "plot_axis", {}, x=x, y=y)

    def band(
        self, panel: str, name: str, x: NumberArray, lower: NumberArray, upper: NumberArray
    ) -> None:
        """Draw a band, or a bar where there is a single x."""
        single = x.size == 1
        visual = visuals.ci_line_y if single else visuals.fill_between_y
        along = "plot_axis" if single else "kwarg"
        self._draw(visual, panel, name, along, {"alpha": 0.25}, x=x, y_bottom=lower, y_top=upper)

    def finish(self) -> PlotCollection:
        """Label the axes, add the legend and return the collection."""
        collection, everything = self.collection, {"ignore_aes": "all"}
        collection.map(visuals.set_xscale, "scale", scale="log", store_artist=False, **everything)
        collection.map(visuals.labelled_x, "labelled_x", text="number of classes", **everything)
        for panel in (_ACCURACY, _BEST):
            collection.map(
                visuals.labelled_y,
                f"labelled_y {panel}",
                data=collection.data[[panel]],
                text=panel,
                **everything,
            )
        if collection.backend != "none":
            place = {**_LEGEND, "ncols": min(len(self.labels), 4)}
            collection.add_legend(
                "series", title="", **(place if collection.backend == "matplotlib" else {})
            )
        return collection
