"""Charts: named series with their labels and looks, which are drawn by `drawing.draw`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import xarray as xr
from scipy.interpolate import PchipInterpolator

from classex_bayes.arguments import class_counts
from classex_bayes.exceptions import DataError
from classex_bayes.plots.log_ticks import plain
from classex_bayes.results import (
    SAMPLE_DIMS,
    Bounds,
    Extrapolation,
    interval_label,
    interval_name,
    interval_of,
    interval_settings,
)
from classex_bayes.typing import ClassCounts, IntArray, NumberArray

PANEL = "panel"
INK, MUTED = "ink", "#606060"  # a gray told apart from the palette in colour blindness
_MOST_NAMED = 8
# A curve given at fewer places is drawn smoothly between them; at these few they are dots too.
_SMOOTHED, _DOTTED = 60, 12
_N_SMOOTH = 200
_SLACK = 1.25  # a level beside a single number of classes reaches so far to both sides


def number_of(units: str) -> str:
    """Return the label of the axis of k, which counts classes or documents."""
    return f"number of {units} $k$"


N_CLASSES = number_of("classes")


def require_type(value: Any, expected: type, name: str, made_by: str = "") -> None:
    """Raise `DataError` where the argument `name` has another type."""
    if not isinstance(value, expected):
        article = "an" if expected.__name__[0] in "AEIOU" else "a"
        wanted = f"what {made_by} returns" if made_by else f"{article} {expected.__name__}"
        raise DataError(f"{name}: expected {wanted}, found {type(value).__name__}")


def chosen_k(available: Any, k: ClassCounts | None) -> IntArray:
    """Return the numbers of classes that are drawn, rising: the requested ones, or all."""
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


def up_to(prediction: Extrapolation, end: int) -> Extrapolation:
    """Return the prediction at those of its numbers of classes that are at most `end`."""
    known = prediction.k[prediction.k <= end]
    return at_k(prediction, known if known.size else end)


@dataclass(frozen=True, eq=False)
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
    """Panels side by side with named series, which `classex_bayes.plots.drawing.draw` draws.

    A series takes the next colour of the palette, with its own line style and marker, unless its
    first mark has a colour: `INK` is that of text. `series` maps names, in the order of the legend,
    to places in the palette, and `marks` are in the order in which they are drawn. Intervals have
    the level and kind `ci_prob` and `ci_kind`, by default those of ArviZ's rcParams. `visuals` are
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

    @property
    def n_colors(self) -> int:
        """Number of colours of the palette that the series take."""
        return sum(place is not None for place in self.series.values())

    @property
    def x_name(self) -> str:
        """Label of the x axis in letters alone."""
        return plain(self.x_label)

    def mark(self, series: str, kind: str) -> Mark:
        """Return the first mark of a series that has this form."""
        return next(mark for mark in self.marks if (mark.series, mark.kind) == (series, kind))

    def line(self, series: str, x: NumberArray, y: NumberArray, **settings: Any) -> None:
        """Add a line, or a point where there is a single x; its settings are those of a curve."""
        if np.size(x) == 1:
            settings.pop("linestyle", None)
        kind: Literal["line", "points"] = "line" if np.size(x) > 1 else "points"
        self._add(kind, series, x, (y,), **{"visual": "mean", **settings})

    def points(self, series: str, x: NumberArray, y: NumberArray, **settings: Any) -> None:
        """Add points."""
        self._add("points", series, x, (y,), **{"visual": "observed", **settings})

    def band(
        self, series: str, x: NumberArray, lower: NumberArray, upper: NumberArray, **settings: Any
    ) -> None:
        """Add a band, or a bar where there is a single x."""
        self._add("band", series, x, (lower, upper), **{"visual": "ci_band", **settings})

    def curve(
        self, series: str, x: NumberArray, y: NumberArray, *, smooth: bool = True, **settings: Any
    ) -> None:
        """Add a line that is smooth, with dots where it is known at few x."""
        self.line(series, x, y, smooth=smooth, **settings)
        if 1 < np.size(x) <= _DOTTED:
            self.points(series, x, y, **{"visual": "mean", **settings})

    def level(self, series: str, x: NumberArray, value: float, **settings: Any) -> None:
        """Add a value along all x; around a single one, so that there is a line."""
        ends = np.array([np.min(x), np.max(x)], dtype=float)
        if ends[0] == ends[1]:
            ends *= [1 / _SLACK, _SLACK]
        self.line(series, ends, np.full(2, value), **settings)

    def vertical(self, series: str, x: float, low: float, high: float, **settings: Any) -> None:
        """Add a dotted vertical line."""
        self.line(series, np.full(2, x), np.array([low, high]), linestyle="C2", **settings)

    def draws(
        self,
        name: str,
        x: NumberArray,
        draws: xr.DataArray,
        law: str = "credible",
        *,
        smooth: bool = False,
        **settings: Any,
    ) -> str:
        """Add mean and interval of draws of dimensions (chain, draw) and one along increasing x.

        Return the name of the series, which has the type, level and kind of the interval.
        """
        series = f"{name}, {interval_label(*self.interval, law)}"
        bounds = interval_of(draws, *self.interval)
        lower, upper = (bounds.sel(ci_bound=side).values for side in ("lower", "upper"))
        self.band(series, x, lower, upper, smooth=smooth, **settings)
        draw = self.curve if smooth else self.line
        draw(series, x, draws.mean(SAMPLE_DIMS).values, smooth=smooth, **settings)
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
            lower, upper = prediction.interval(self.interval[0]).loc[x].to_numpy().T
            series = f"{name}, {interval_name(self.interval[0])}"
            self.band(series, x, lower, upper, smooth=True, **{"color": MUTED, **settings})
            return series
        if law != "none":
            return self.draws(name, x, draws, law, smooth=True, **settings)
        self.curve(name, x, draws.mean(SAMPLE_DIMS).values, **settings)
        return name

    def labelled(self, title: str, x_label: str, *y_labels: str) -> "Chart":
        """Set title and labels of the axes, and return the chart."""
        self.title, self.x_label, self.y_labels = title, x_label, y_labels
        return self

    def _add(
        self,
        kind: Literal["line", "points", "band"],
        series: str,
        x: NumberArray,
        y: tuple[NumberArray, ...],
        *,
        visual: str,
        panel: str = PANEL,
        smooth: bool = False,
        **style: Any,
    ) -> None:
        """Add a mark, and its series if it is new."""
        self.marks.append(Mark(kind, visual, series, panel, x, y, style, smooth))
        place = None if "color" in style else self.n_colors
        self.series.setdefault(series, place)
