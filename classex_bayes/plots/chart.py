"""Charts: named series with their labels and looks, which `figure.draw` puts into a figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from classex_bayes.arguments import class_counts
from classex_bayes.exceptions import DataError
from classex_bayes.results.draws import (
    SAMPLE_DIMS,
    interval_label,
    interval_name,
    interval_of,
    interval_settings,
)
from classex_bayes.results.extrapolation import Bounds, Extrapolation
from classex_bayes.typing import ClassCounts, IntArray, NumberArray

Kind = Literal["line", "points", "band", "bar"]
Style = Mapping[str, Any]
Visuals = Mapping[str, bool | Style]
PANEL = "panel"
TEXTS = "title", "xlabel", "ylabel", "legend"  # of every plot
# matplotlib's parameter of the colour of text; a gray unlike the palette in every colour blindness.
INK, MUTED = "text.color", "#606060"
_VISUALS = {"line": "mean", "points": "observed", "band": "ci_band", "bar": "ci_band"}
_MOST_NAMED = 8
_DOTTED = 12  # a curve at so few places has a dot at each
_SLACK = 1.25  # a level at a single number of classes is drawn over this factor to both sides


def number_of(units: str) -> str:
    """Return the label of the axis of k, which counts classes or documents."""
    return f"number of {units} k"


N_CLASSES = number_of("classes")


def chosen_k(available: Any, k: ClassCounts | None) -> IntArray:
    """Return the numbers of classes that are drawn, rising: the requested ones, or all."""
    available = np.unique(np.asarray(available))
    if k is None:
        return available
    counts = np.sort(class_counts(k))
    missing = counts[~np.isin(counts, available)]
    if missing.size:
        numbers = ", ".join(f"{number:,}" for number in available[:_MOST_NAMED])
        more = ", ..." if available.size > _MOST_NAMED else ""
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


@dataclass(frozen=True, eq=False)
class Mark:
    """The drawing of one call in a panel: a line, points, or a band (a bar) between two values.

    `visual` is the name by which it is removed or styled. `y` has the values (n,) at `x`, of a band
    the lower and the upper ones; `style` replaces the looks of the series.
    """

    kind: Kind
    visual: str
    series: str
    panel: str
    x: NumberArray
    y: tuple[NumberArray, ...]
    style: Style


class Chart:
    """Panels side by side with named series, which `classex_bayes.plots.figure.draw` draws.

    A series takes the next colour of the palette, with its own line style and marker, unless its
    first mark has a colour: `INK` is that of text. `series` maps names, in the order of the legend,
    to places in the palette, and `marks` are in the order in which they are drawn. Intervals have
    the level and kind `ci_prob` and `ci_kind`, by default 0.9 and equal tails. `visuals` are
    names that the user may remove or style, besides those of the marks that are there.
    """

    def __init__(
        self,
        ci_prob: float | None = None,
        ci_kind: str | None = None,
        *,
        panels: Sequence[str] = (PANEL,),
        log_x: bool = True,
        log_y: bool = False,
    ) -> None:
        self.interval = interval_settings(ci_prob, ci_kind)
        self.panels, self.log_x, self.log_y = tuple(panels), log_x, log_y
        self.visuals: tuple[str, ...] = ()
        self.series: dict[str, int | None] = {}
        self.marks: list[Mark] = []
        self.title = self.x_label = ""
        self.y_labels: tuple[str, ...] = ()

    def mark(self, series: str, kind: Kind) -> Mark:
        """Return the first mark of a series that has this form."""
        return next(mark for mark in self.marks if (mark.series, mark.kind) == (series, kind))

    def add(
        self,
        kind: Kind,
        series: str,
        x: ArrayLike,
        *y: ArrayLike,
        visual: str = "",
        panel: str = PANEL,
        **style: Any,
    ) -> None:
        """Add a mark, and its series if it is new. At a single x lines are points, bands bars."""
        if np.size(x) == 1 and kind != "points":
            kind = "points" if kind == "line" else "bar"
            style.pop("linestyle", None)
        places, values = np.asarray(x), tuple(np.asarray(part) for part in y)
        self.marks.append(
            Mark(kind, visual or _VISUALS[kind], series, panel, places, values, style)
        )
        if series not in self.series:
            colored = sum(place is not None for place in self.series.values())
            self.series[series] = None if "color" in style else colored

    def curve(self, series: str, x: ArrayLike, y: ArrayLike, **settings: Any) -> None:
        """Add a line with dots where it is known at few x; the settings are those of `add`."""
        settings = {"visual": "mean", **settings}
        self.add("line", series, x, y, **settings)
        if 1 < np.size(x) <= _DOTTED:
            self.add("points", series, x, y, **settings)

    def level(self, series: str, x: Any, value: float, visual: str) -> None:
        """Add a gray value along all x; around a single one, so that there is a line."""
        low, high = float(np.min(x)), float(np.max(x))
        ends = (low, high) if low < high else (low / _SLACK, high * _SLACK)
        self.add("line", series, ends, [value, value], visual=visual, color=MUTED)

    def vertical(
        self, series: str, x: float, ends: tuple[float, float], visual: str, panel: str = PANEL
    ) -> None:
        """Add a dotted gray vertical line between two values."""
        looks = {"linestyle": ":", "color": MUTED}
        self.add("line", series, [x, x], ends, visual=visual, panel=panel, **looks)

    def draws(
        self,
        name: str,
        x: NumberArray,
        draws: xr.DataArray,
        law: str = "credible",
        *,
        dots: bool = False,
        **settings: Any,
    ) -> str:
        """Add mean and interval of draws of dimensions (chain, draw) and one along increasing x.

        The mean has dots where it is known at few x, if they are wanted. Return the name of the
        series, which has the type, level and kind of the interval.
        """
        series = f"{name}, {interval_label(*self.interval, law)}"
        bounds, mean = interval_of(draws, *self.interval), draws.mean(SAMPLE_DIMS).values
        limits = (bounds.sel(ci_bound=side).values for side in ("lower", "upper"))
        self.add("band", series, x, *limits, **settings)
        if dots:
            self.curve(series, x, mean, **settings)
        else:
            self.add("line", series, x, mean, **settings)
        return series

    def prediction(
        self, name: str, prediction: Extrapolation, k: ClassCounts | None = None, **settings: Any
    ) -> str:
        """Add mean and interval of a prediction, or its values if it has no draws, at some k.

        Return the name of the series.
        """
        draws = at_k(prediction, k).draws.sortby("k")
        x, law = draws["k"].values, prediction.interval_type
        if isinstance(prediction, Bounds):
            limits = prediction.interval(self.interval[0]).loc[x].to_numpy().T
            series = f"{name}, {interval_name(self.interval[0], 'limits')}"
            self.add("band", series, x, *limits, **{"color": MUTED, **settings})
            return series
        if law != "none":
            return self.draws(name, x, draws, law, dots=True, **settings)
        self.curve(name, x, draws.mean(SAMPLE_DIMS).values, **settings)
        return name

    def labelled(self, title: str, x_label: str, *y_labels: str) -> "Chart":
        """Set title and labels of the axes, and return the chart."""
        self.title, self.x_label, self.y_labels = title, x_label, y_labels
        return self
