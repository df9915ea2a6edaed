"""Charts of the page: those of `classex_bayes.plots` as drawings with tables of their numbers.

The paths of a drawing are in percent of its axes, so the page can stretch them to any width.
Colours are names of custom properties of the style sheet ("--posterior"), so one drawing serves
light mode, dark mode and print.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from matplotlib.ticker import Locator, LogLocator, MaxNLocator
from scipy.special import ndtr, ndtri

from classex_bayes.evaluate.extrapolation_check import ExtrapolationCheck
from classex_bayes.formatting import (
    PERCENTAGES,
    RATES,
    Numerals,
    capitalized,
    exact_percent,
    percent,
)
from classex_bayes.plots.accuracy_plot import OBSERVED, TARGET, plot_accuracy
from classex_bayes.plots.axis_numbers import log_locator, number_text
from classex_bayes.plots.chart import Chart, Mark
from classex_bayes.plots.check_plots import plot_extrapolation_check, plot_ppc
from classex_bayes.plots.drawing import chart_of
from classex_bayes.plots.posterior_plots import plot_discriminability, plot_prob_at_least
from classex_bayes.report.findings import Findings
from classex_bayes.results.draws import interval_name
from classex_bayes.results.extrapolation import Bounds, Extrapolation
from classex_bayes.typing import FloatArray, NumberArray

if TYPE_CHECKING:  # most pages have no part on open sets
    from classex_bayes.open_set.open_set import OpenSetExtrapolator
    from classex_bayes.open_set.open_set_prediction import OpenSetPrediction

_INNER = 0.5
_N_POINTS, _N_ROWS, _N_PILOT = 100, 12, 12
_FEWEST_DECADES = 4
_LONGEST = 10**5  # number that is written out next to smaller ones
_DASHES = ("7,3", "2,3", "9,3,2,3", "12,4", "4,2")
_WIDE, _THIN = 2.5, 1.75
_ROOM = 0.03  # at both ends of an axis, as a share of its range
_MOST_NUMBERS, _MOST_DECADES = 9, 6  # of an axis, and decades that all have small ticks
# Letters that fit next to an axis on a phone, and the gap between two labels in letters.
_LETTERS, _GAP = 32, 2


def _number(value: float) -> str:
    return f"{value:,.10g}"


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`. If it `is_log`, these are base-10 logarithms of its ends.

    `ticks` are values with their labels, `small_ticks` values without; all are within the axis.
    """

    title: str
    low: float
    high: float
    is_log: bool
    ticks: Mapping[float, str]
    small_ticks: Sequence[float]

    @classmethod
    def of(
        cls, title: str, values: NumberArray, written: Callable[[float], str], *, log: bool = False
    ) -> "Axis":
        """Return an axis with room for all values, which are positive on a logarithmic one."""
        scaled = np.log10(values[values > 0]) if log else values
        low, high = float(scaled.min()), float(scaled.max())
        room = _ROOM * (high - low) or _ROOM * abs(high) or 1.0
        low, high = low - room, high + room
        first, last = (10**low, 10**high) if log else (low, high)
        locator: Locator = MaxNLocator(_MOST_NUMBERS, steps=(1, 2, 5, 10))
        small: list[float] = []
        if log:
            locator = log_locator(first, last, _MOST_NUMBERS)
            digits = range(1, 10) if high - low < _MOST_DECADES else (1,)
            small = _within(LogLocator(subs=digits, numticks=100), first, last)
        ticks = {tick: written(tick) for tick in _within(locator, first, last)}
        return cls(title, low, high, log, ticks, small)

    def places(self, values: Any) -> FloatArray:
        """Positions of values in percent of the axis; 0 and 100 are its ends."""
        with np.errstate(divide="ignore"):  # 0 is below every logarithmic axis
            scaled = np.log10(values) if self.is_log else np.asarray(values, dtype=float)
        return np.clip(100 * (scaled - self.low) / (self.high - self.low), -100.0, 200.0)

    @property
    def numbers(self) -> list[tuple[float, str]]:
        """Positions and labels of the ticks."""
        places = self.places([*self.ticks]).tolist()
        return list(zip(places, self.ticks.values(), strict=True))

    @property
    def is_dense(self) -> bool:
        """Whether a phone has room for only every second label."""
        return sum(len(text) + _GAP for text in self.ticks.values()) > _LETTERS

    @property
    def widest(self) -> int:
        """Number of letters of the longest label."""
        return max(map(len, self.ticks.values()), default=0)


def _within(locator: Locator, first: float, last: float) -> list[float]:
    """Ticks between the ends of an axis."""
    ticks = np.asarray(locator.tick_values(first, last))
    return ticks[(first <= ticks) & (ticks <= last)].tolist()


@dataclass(frozen=True, eq=False)
class PageSeries:
    """Marks of a chart with one entry in the legend, which shows and hides them by its key.

    `limits` are lower and upper limits of the values of the last mark; points show them as lines.
    If it `is_read`, its values are shown when the reader points at them.
    """

    key: str
    name: str
    color: str
    marks: Sequence[Mark]
    limits: tuple[NumberArray, ...] = ()
    is_read: bool = True
    dash: str = ""
    width: float = _THIN

    @property
    def mark(self) -> Mark:
        """The mark that the legend shows and whose values are read."""
        return self.marks[-1]

    def texts(self, numerals: Numerals) -> list[str]:
        """Values as text: "72.0%", with limits "72.0% (67.4 to 76.1%)", or those of a band."""
        rows = zip(*(y.tolist() for y in (*self.mark.y, *self.limits)), strict=True)
        if self.limits:
            shown = [numerals.estimate(*row) for row in rows]
            return [f"{estimate.mean} ({estimate.span})" for estimate in shown]
        return [(numerals.span if len(row) > 1 else numerals.value)(*row) for row in rows]


@dataclass(frozen=True, eq=False)
class PageChart:
    """A drawing with its id in the page (`key`) and its series, in the order of drawing.

    `read_x` and `numerals` format values for the reader. `line` is the place of a vertical line
    with a text above the chart, where no curve passes through it.
    """

    key: str
    series: Sequence[PageSeries]
    x: Axis
    y: Axis
    read_x: Callable[[float], str]
    numerals: Numerals = PERCENTAGES
    line: tuple[float, str] | None = None

    @classmethod
    def of(
        cls,
        key: str,
        chart: Chart,
        series: Sequence[PageSeries],
        read_x: Callable[[float], str],
        x_text: Callable[[float], str] = _number,
        y_text: Callable[[float], str] = exact_percent,
        **settings: Any,
    ) -> "PageChart":
        """Return the drawing of series of a chart with its axes, and texts of their numbers."""
        marks = [mark for drawn in series for mark in drawn.marks]
        values = [mark.y for mark in marks] + [drawn.limits for drawn in series]
        x = np.concatenate([mark.x for mark in marks])
        y = np.concatenate([part for parts in values for part in parts])
        axis = Axis.of(chart.x_label, x, x_text, log=chart.log_x)
        up = Axis.of(chart.y_labels[0], y, y_text, log=chart.log_y)
        return cls(key, series, axis, up, read_x, **settings)

    def path(self, mark: Mark) -> str:
        """Path of a line, of the outline of a band, or of dots."""
        across, up = self.x.places(mark.x), [self.y.places(values) for values in mark.y]
        if mark.kind == "points":
            # A line of length 0 with round ends is a dot, which stays round in a stretched chart.
            return "".join(f"M{_corner(*place)}h0" for place in zip(across, up[0], strict=True))
        end = ""
        if mark.kind == "band":
            across, up, end = np.append(across, across[::-1]), [np.append(up[1], up[0][::-1])], "Z"
        corners = zip(across, up[0], strict=True)
        return f"M{'L'.join(_corner(*place) for place in corners)}{end}"

    def error_path(self, series: PageSeries) -> str:
        """Path of vertical lines between the limits of points."""
        limits = map(self.y.places, series.limits)
        ends = zip(self.x.places(series.mark.x), *limits, strict=True)
        return "".join(f"M{_corner(at, low)}L{_corner(at, high)}" for at, low, high in ends)

    @property
    def label(self) -> str:
        """Description for screen readers, with the ends of the first curve."""
        first, *_ = self.readings
        ends = [f"{first['y'][place]} at {first['x'][place]}" for place in (0, -1)]
        axes = f"{capitalized(self.y.title)} against {self.x.title}"
        return f"{axes}; {first['name']}: {', '.join(ends)}"

    @property
    def legend(self) -> list[PageSeries]:
        """One series for each entry, that of the posterior first, if there are several."""
        entries = {series.key: series for series in self.series}
        ordered = sorted(entries.values(), key=lambda series: series.key != "posterior")
        return ordered if len(ordered) > 1 else []

    @property
    def readings(self) -> list[dict[str, Any]]:
        """Text of every point that the reader can point at, in the order of the legend."""
        return [
            {
                "series": series.key,
                "name": series.name,
                "at": np.round(self.x.places(series.mark.x), 2).tolist(),
                "x": [self.read_x(x) for x in series.mark.x.tolist()],
                "y": series.texts(self.numerals),
            }
            for series in self.legend or self.series
            if series.is_read
        ]

    @property
    def tables(self) -> dict[str, list[tuple[str, str]]]:
        """Places and values of about a dozen points of each series, by its name."""
        return {
            read["name"]: [
                (read["x"][i], read["y"][i])
                for i in np.unique(np.linspace(0, len(read["x"]) - 1, _N_ROWS).astype(int))
            ]
            for read in self.readings
        }


def _corner(across: float, up: float) -> str:
    """A place as the corner of a path, whose y-axis points down."""
    return f"{across:.2f} {100 - up:.2f}"


def _number_of(units: str) -> Callable[[float], str]:
    return lambda k: f"{k:,.0f} {units}"


def _posterior(chart: Chart, series: str, ci_prob: float) -> list[PageSeries]:
    """Interval and mean of a series. The mean is read with the limits of the interval."""
    band, mean = chart.mark(series, "band"), chart.mark(series, "line")
    name = f"{interval_name(ci_prob)} (credible)"
    return [
        PageSeries("interval", name, "--band", [band], is_read=False),
        PageSeries("posterior", "posterior mean", "--posterior", [mean], band.y, width=_WIDE),
    ]


def _reference_series(
    number: int, key: str, name: str, *marks: Mark, **settings: Any
) -> PageSeries:
    """A series of another estimator; each round of colours has the dashes in another order."""
    turn, place = divmod(number, len(_DASHES))
    color, dash = f"--reference-{place + 1}", _DASHES[(place + turn) % len(_DASHES)]
    return PageSeries(f"{key}-{number + 1}", name, color, marks, dash=dash, **settings)


def accuracy(findings: Findings, curves: Sequence[Extrapolation]) -> PageChart:
    """Chart of the posterior of accuracy or another metric, with pilot, references and target."""
    estimand, target = findings.prediction.estimand, findings.target
    in_percent = estimand.numerals is PERCENTAGES
    task, level, fill = findings.task, findings.ci_prob, chart_of(plot_accuracy)
    chart = fill(curves, task, target=target, ci_prob=level)
    # Bounds are drawn first.
    n_bounds = sum(isinstance(curve, Bounds) for curve in curves)
    others = [curve for curve in curves if not isinstance(curve, Bounds)]
    names = [*chart.series][n_bounds : len(curves)]
    interval, mean = _posterior(chart, names[0], level)
    limits = f"{interval_name(level, 'limits')} without a prior"
    drawn = [PageSeries("bounds", limits, "--bounds", [mark]) for mark in chart.marks[:n_bounds]]
    drawn.append(interval)
    if level > _INNER:
        inner = fill(others[0], ci_prob=_INNER).marks[0]
        name = f"{interval_name(_INNER)} (credible)"
        drawn.append(PageSeries("inner", name, "--band-inner", [inner], is_read=False))
    for number, (name, reference) in enumerate(zip(names[1:], others[1:], strict=True)):
        mark = chart.mark(name, "line")
        if in_percent:  # regressions on accuracies may exceed 100%
            mark = replace(mark, y=(np.clip(mark.y[0], 0, 1),))
        drawn.append(_reference_series(number, "reference", reference.estimator, mark))
    drawn.append(mean)
    if target is not None:
        name, mark = f"target {estimand.exact(target)}", chart.mark(TARGET, "line")
        drawn.append(PageSeries("target", name, "--target", [mark], is_read=False, dash="1,4"))
    if OBSERVED in chart.series:
        drawn.append(_pilot(chart.mark(OBSERVED, "points"), findings))
    return PageChart.of(
        "accuracy",
        chart.labelled("", chart.x_label, estimand.describe()),
        drawn,
        _number_of(estimand.units),
        y_text=exact_percent if in_percent else _number,
        numerals=estimand.numerals,
        line=(task.n_classes, f"{task.n_classes:,} {estimand.units} tested"),
    )


def _pilot(observed: Mark, findings: Findings) -> PageSeries:
    """About a dozen of the observed points, with sampling intervals if the metric has them."""
    every = -(-observed.x.size // _N_PILOT)
    kept = slice((observed.x.size - 1) % every, None, every)
    mark = replace(observed, x=observed.x[kept], y=(observed.y[0][kept],))
    # Sampling intervals need a covariance, which is computed for accuracy only.
    if findings.prediction.estimand.metric != "accuracy":
        return PageSeries("pilot", "pilot", "--ink", [mark])
    level = findings.ci_prob
    half = ndtri((1 + level) / 2) * np.sqrt(np.diag(findings.task.accuracy_cov(mark.x)))
    limits = np.maximum(mark.y[0] - half, 0), np.minimum(mark.y[0] + half, 1)
    return PageSeries("pilot", f"pilot, {interval_name(level)} (sampling)", "--ink", [mark], limits)


def reaching(posterior: Extrapolation, target: float) -> PageChart:
    """Chart of the probability that the target is reached, against the number of classes."""
    chart = chart_of(plot_prob_at_least)(posterior, target)
    estimand = posterior.estimand
    name, units = f"probability of {estimand.reaching(target)}", estimand.units
    line = PageSeries("reaching", name, "--posterior", chart.marks, width=_WIDE)
    drawing = PageChart.of(
        "reaching",
        chart,
        [line],
        _number_of(units),
        line=(posterior.n_classes, f"{posterior.n_classes:,} {units} tested"),
    )
    return replace(drawing, y=Axis.of(chart.y_labels[0], np.array([0.0, 1.0]), exact_percent))


def discriminability(findings: Findings) -> PageChart:
    """Chart of D(1 - 1/N) on the normal scale, which spreads out the tail of many competitors."""
    farthest = max(_FEWEST_DECADES, math.ceil(math.log10(findings.grid(2)[-1])))
    competitors = [2.0, *(10.0**power for power in range(1, farthest + 1))]
    places = -ndtri(1 / np.array(competitors))
    z = np.linspace(places[0], places[-1], _N_POINTS)
    chart = chart_of(plot_discriminability)(findings.model, z=z, ci_prob=findings.ci_prob)
    posterior, resolved = chart.series
    limit = float(chart.mark(resolved, "line").x[0])
    drawing = PageChart.of(
        "discriminability",
        chart.labelled("", "N: loses to at least one in N competitors", "share of instances, D(u)"),
        _posterior(chart, posterior, findings.ci_prob),
        lambda place: f"one in {1 / ndtr(-place):,.0f}",
        line=(limit, f"seen with {findings.task.n_classes:,} {findings.prediction.estimand.units}"),
    )
    powers = competitors[-1] > _LONGEST
    texts = [number_text(n, n, math.inf) if powers and n > 10 else _number(n) for n in competitors]
    ticks = dict(zip(places.tolist(), texts, strict=True))
    return replace(drawing, x=replace(drawing.x, ticks=ticks))


def predictive(findings: Findings) -> PageChart:
    """Chart of the ranks of pilot and replicates, or of accuracies if the task has no ranks."""
    bare, level = not findings.task.table.has_ranks, findings.ci_prob
    kind: Literal["ranks", "accuracy"] = "accuracy" if bare else "ranks"
    chart = chart_of(plot_ppc)(findings.model, findings.task, kind=kind, ci_prob=level)
    band, _, points = chart.marks
    drawn = [
        PageSeries("replicates", f"replicates, {interval_name(level)}", "--band", [band]),
        PageSeries("pilot", "pilot", "--ink", [points]),
    ]
    read_x = _number_of("classes") if bare else lambda rank: f"{chart.x_label} {rank:,.0f}"
    return PageChart.of("predictive", chart, drawn, read_x)


def within(check: ExtrapolationCheck) -> PageChart:
    """Chart of extrapolations from parts of the pilot, that of the model first."""
    chart = chart_of(plot_extrapolation_check)(check)
    names, result = [*check.results], next(iter(check.results.values()))
    first, *others = [*chart.series][: len(names)]
    drawn = [
        PageSeries("band", f"{interval_name(check.ci_prob)} of a part", "--band", [mark])
        for mark in chart.marks
        if (mark.series, mark.kind) == (first, "band")
    ]
    for number, (name, series) in enumerate(zip(names[1:], others, strict=True)):
        drawn.append(_reference_series(number, "within", name, chart.mark(series, "line")))
    mean = chart.mark(first, "line")
    drawn.append(PageSeries("posterior", names[0], "--posterior", [mean], width=_WIDE))
    measured = chart.mark("measured", "points")
    drawn.append(PageSeries("pilot", "measured", "--ink", [measured]))
    tested = result.n_source, f"{result.n_source:,} classes in a part"
    return PageChart.of("within", chart, drawn, _number_of("classes"), line=tested)


def detection(
    model: "OpenSetExtrapolator", rates: "OpenSetPrediction", ci_prob: float
) -> PageChart:
    """Chart of DET curves: FNIR against FPIR for each number of enrolled classes."""
    from classex_bayes.plots.open_set_plot import plot_det

    chart = chart_of(plot_det)(model, rates.k, rank=rates.rank, ci_prob=ci_prob)
    enrolled = zip(rates.k.tolist(), [*chart.series][: rates.k.size], strict=True)
    drawn: list[PageSeries] = []
    for number, (k, name) in enumerate(enrolled):
        band, line = chart.mark(name, "band"), chart.mark(name, "line")
        drawn.append(
            _reference_series(number, "enrolled", f"{k:,} enrolled", band, line, limits=band.y)
        )
    for mark in chart.marks:
        if mark.visual == "best_wrong":
            look = "best-wrong", mark.series, "--ink"
            drawn.append(PageSeries(*look, [mark], is_read=False))
    return PageChart.of(
        "detection",
        chart,
        drawn,
        lambda x: f"FPIR {percent(x, 2)}",
        x_text=exact_percent,
        numerals=RATES,
    )
