"""Charts of the page: those of `classex_bayes.plots` as drawings with tables of their numbers.

The paths of a drawing are in percent of its axes, so the page can stretch them to any width.
Colours are names of custom properties of the style sheet ("--posterior"), so one drawing serves
light mode, dark mode and print.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.special import ndtr, ndtri

from classex_bayes.formatting import (
    PERCENTAGES,
    RATES,
    Numerals,
    capitalized,
    exact_percent,
    percent,
)
from classex_bayes.open_set.nonmated_searches import NonmatedSearches
from classex_bayes.open_set.open_set import OpenSetExtrapolator
from classex_bayes.open_set.open_set_prediction import OpenSetPrediction
from classex_bayes.plots.accuracy_plot import OBSERVED, TARGET, plot_accuracy
from classex_bayes.plots.chart import Chart, Mark
from classex_bayes.plots.discriminability_plot import plot_discriminability
from classex_bayes.plots.drawing import chart_of
from classex_bayes.plots.log_ticks import plain
from classex_bayes.plots.open_set_plot import plot_det
from classex_bayes.plots.ppc_plot import plot_ppc
from classex_bayes.plots.prob_at_least_plot import plot_prob_at_least
from classex_bayes.report.chart_axes import Axis
from classex_bayes.report.findings import Findings
from classex_bayes.results import Bounds, Extrapolation, interval_name
from classex_bayes.typing import FloatArray, NumberArray

_INNER = 0.5
_N_POINTS, _N_ROWS, _N_PILOT = 100, 12, 12
_FEWEST_DECADES = 4
_LONGEST = 10**5  # number that is written out beside smaller ones
_DASHES = ("7,3", "2,3", "9,3,2,3", "12,4", "4,2")
_WIDE, _THIN = 2.5, 1.75


@dataclass(frozen=True)
class LegendEntry:
    """An entry of the legend. It shows and hides the series that have its key."""

    key: str
    name: str
    color: str
    shape: str = "line"  # or "band" or "points"
    dash: str = ""
    width: float = _THIN


@dataclass(frozen=True, eq=False)
class PageSeries:
    """A mark of a chart in the style of its legend entry.

    `limits` are lower and upper limits of its values, which points show as lines. If it `is_read`,
    its values are shown when the reader points at them.
    """

    mark: Mark
    entry: LegendEntry
    limits: tuple[NumberArray, ...] = ()
    is_read: bool = True

    def path(self, x: Axis, y: Axis) -> str:
        """Path of a line, of the outline of a band, or of dots."""
        across, up = x.places(self.mark.x), [y.places(values) for values in self.mark.y]
        if self.mark.kind == "line":
            return f"M{_corners(across, up[0])}"
        if self.mark.kind == "band":
            return f"M{_corners(np.append(across, across[::-1]), np.append(up[1], up[0][::-1]))}Z"
        # A line of length 0 with round ends is a dot, which stays round in a stretched chart.
        return "".join(f"M{_corner(*place)}h0" for place in zip(across, up[0], strict=True))

    def error_path(self, x: Axis, y: Axis) -> str:
        """Path of vertical lines between the limits of points."""
        if not self.limits or self.mark.kind != "points":
            return ""
        ends = zip(x.places(self.mark.x), *map(y.places, self.limits), strict=True)
        return "".join(f"M{_corner(at, low)}L{_corner(at, high)}" for at, low, high in ends)

    def texts(self, numerals: Numerals) -> list[str]:
        """Values as text: "72.0%", with limits "72.0% (67.4 to 76.1%)", or those of a band."""
        rows = zip(*(y.tolist() for y in (*self.mark.y, *self.limits)), strict=True)
        if self.limits:
            shown = [numerals.estimate(*row) for row in rows]
            return [f"{estimate.mean} ({estimate.span})" for estimate in shown]
        return [(numerals.span if len(row) > 1 else numerals.value)(*row) for row in rows]


@dataclass(frozen=True)
class VerticalLine:
    """A vertical line with a label above the chart, where no curve passes through it."""

    x: float
    text: str


@dataclass(frozen=True, eq=False)
class PageChart:
    """A drawing with its id in the page (`key`) and its series, in the order of drawing.

    `read_x` and `numerals` format values for the reader.
    """

    key: str
    series: Sequence[PageSeries]
    x: Axis
    y: Axis
    read_x: Callable[[float], str]
    numerals: Numerals
    line: VerticalLine | None = None

    @property
    def label(self) -> str:
        """Description for screen readers, with the ends of the first curve."""
        first, *_ = self.readings
        ends = [f"{first['y'][place]} at {first['x'][place]}" for place in (0, -1)]
        axes = f"{capitalized(self.y.title)} against {self.x.title}"
        return f"{axes}; {first['name']}: {', '.join(ends)}"

    @property
    def legend(self) -> list[LegendEntry]:
        """Entries of the series, if there are several."""
        entries = list(dict.fromkeys(series.entry for series in self.series))
        return sorted(entries, key=_rank) if len(entries) > 1 else []

    @property
    def readings(self) -> list[dict[str, Any]]:
        """Text of every point that the reader can point at, in the order of the legend."""
        return [
            {
                "series": series.entry.key,
                "name": series.entry.name,
                "at": np.round(self.x.places(series.mark.x), 2).tolist(),
                "x": [self.read_x(x) for x in series.mark.x.tolist()],
                "y": series.texts(self.numerals),
            }
            for series in sorted(self.series, key=lambda series: _rank(series.entry))
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


_POSTERIOR = LegendEntry("posterior", "posterior mean", "--posterior", width=_WIDE)


def _rank(entry: LegendEntry) -> bool:
    """Place in the legend: the posterior mean is first."""
    return entry is not _POSTERIOR


def _corner(across: float, up: float) -> str:
    return f"{across:.2f} {100 - up:.2f}"


def _corners(across: FloatArray, up: FloatArray) -> str:
    """Positions as the corners of a path, whose y-axis points down."""
    return "L".join(_corner(*place) for place in zip(across, up, strict=True))


def _interval(ci_prob: float, key: str = "interval", color: str = "--band") -> LegendEntry:
    return LegendEntry(key, f"{interval_name(ci_prob)} (credible)", color, "band")


def _reference(number: int, key: str, name: str) -> LegendEntry:
    """Entry of a line beside others; each round of colours has the dashes in another order."""
    turn, place = divmod(number, len(_DASHES))
    dash = _DASHES[(place + turn) % len(_DASHES)]
    return LegendEntry(f"{key}-{number + 1}", name, f"--reference-{place + 1}", dash=dash)


def _ribbon(
    chart: Chart, series: str, line: LegendEntry, band: LegendEntry | None = None
) -> list[PageSeries]:
    """Band and line of a series. The line is read with the limits of the band."""
    limits, mean = chart.mark(series, "band"), chart.mark(series, "line")
    return [PageSeries(limits, band or line, is_read=False), PageSeries(mean, line, limits.y)]


def _heights(drawn: Sequence[PageSeries]) -> FloatArray:
    """All values along y."""
    return np.concatenate([y for series in drawn for y in (*series.mark.y, *series.limits)])


def _plain(value: float) -> str:
    return f"{value:,.10g}"


def _power(value: float) -> str:
    """A power of 10 with few letters; 2 and 10 as they are."""
    return _plain(value) if value <= 10 else plain(f"$10^{{{math.log10(value):.0f}}}$")


def _number_of(units: str) -> Callable[[float], str]:
    return lambda k: f"{k:,.0f} {units}"


def _tested(n_classes: int, units: str) -> VerticalLine:
    return VerticalLine(n_classes, f"{n_classes:,} {units} tested")


def accuracy(findings: Findings, curves: Sequence[Extrapolation]) -> PageChart:
    """Chart of the posterior of accuracy or another metric, with pilot, references and target."""
    estimand, target = findings.prediction.estimand, findings.target
    in_percent = estimand.numerals is PERCENTAGES
    task, ci_prob = findings.task, findings.ci_prob
    bounds = [curve for curve in curves if isinstance(curve, Bounds)]
    curves = [curve for curve in curves if curve not in bounds]
    chart = chart_of(plot_accuracy)(curves, task, target=target, ci_prob=ci_prob)
    posterior, *references = [*chart.series][: len(curves)]
    band, line = _ribbon(chart, posterior, _POSTERIOR, _interval(ci_prob))
    outer = [chart_of(plot_accuracy)(curve, ci_prob=ci_prob).marks[0] for curve in bounds]
    name = f"{interval_name(ci_prob)} (ranks alone)"
    drawn = [PageSeries(mark, LegendEntry("bounds", name, "--bounds", "band")) for mark in outer]
    drawn.append(band)
    if ci_prob > _INNER:
        inner = chart_of(plot_accuracy)(curves[0], ci_prob=_INNER).marks[0]
        entry = _interval(_INNER, "inner", "--band-inner")
        drawn.append(PageSeries(inner, entry, is_read=False))
    for number, (name, prediction) in enumerate(zip(references, curves[1:], strict=True)):
        entry = _reference(number, "reference", prediction.estimator)
        mark = chart.mark(name, "line")
        if in_percent:  # regressions on accuracies may exceed 100%
            mark = replace(mark, y=(np.clip(mark.y[0], 0, 1),))
        drawn.append(PageSeries(mark, entry))
    drawn.append(line)
    if target is not None:
        entry = LegendEntry("target", f"target {exact_percent(target)}", "--target", dash="1,4")
        drawn.append(PageSeries(chart.mark(TARGET, "line"), entry, is_read=False))
    if OBSERVED in chart.series:
        drawn.append(_pilot(chart.mark(OBSERVED, "points"), findings))
    y_ticks = exact_percent if in_percent else _plain
    return PageChart(
        "accuracy",
        drawn,
        Axis.of(chart.x_name, curves[0].k, _plain, log=True),
        Axis.of(estimand.describe(), _heights(drawn), y_ticks, log=chart.log_y),
        _number_of(estimand.units),
        estimand.numerals,
        _tested(task.n_classes, estimand.units),
    )


def _pilot(observed: Mark, findings: Findings) -> PageSeries:
    """About a dozen of the observed points, with sampling intervals if the metric has them."""
    every = -(-observed.x.size // _N_PILOT)
    kept = slice((observed.x.size - 1) % every, None, every)
    mark = replace(observed, x=observed.x[kept], y=(observed.y[0][kept],))
    # Sampling intervals need a covariance, which is computed for accuracy only.
    if findings.prediction.estimand.metric != "accuracy":
        return PageSeries(mark, LegendEntry("pilot", "pilot", "--ink", "points"))
    level = findings.ci_prob
    half = ndtri((1 + level) / 2) * np.sqrt(np.diag(findings.task.accuracy_cov(mark.x)))
    limits = np.maximum(mark.y[0] - half, 0), np.minimum(mark.y[0] + half, 1)
    name = f"pilot, {interval_name(level)} (sampling)"
    return PageSeries(mark, LegendEntry("pilot", name, "--ink", "points"), limits)


def reaching(posterior: Extrapolation, target: float) -> PageChart:
    """Chart of the probability that accuracy reaches the target, against the number of classes."""
    chart = chart_of(plot_prob_at_least)(posterior, target)
    line = chart.marks[0]
    name = f"probability of at least {exact_percent(target)}"
    entry = LegendEntry("reaching", name, "--posterior", width=_WIDE)
    return PageChart(
        "reaching",
        [PageSeries(line, entry)],
        Axis.of(chart.x_name, line.x, _plain, log=True),
        Axis.of(chart.y_labels[0], np.array([0.0, 1.0]), exact_percent),
        _number_of(posterior.estimand.units),
        PERCENTAGES,
        _tested(posterior.n_classes, posterior.estimand.units),
    )


def discriminability(findings: Findings) -> PageChart:
    """Chart of D(1 - 1/N) on the normal scale, which spreads out the tail of many competitors."""
    farthest = max(_FEWEST_DECADES, math.ceil(math.log10(findings.grid(2)[-1])))
    rivals = np.array([2.0, *(10.0**power for power in range(1, farthest + 1))])
    places = -ndtri(1 / rivals)
    z = np.linspace(places[0], places[-1], _N_POINTS)
    chart = chart_of(plot_discriminability)(findings.model, z=z, ci_prob=findings.ci_prob)
    posterior, resolved = chart.series
    drawn = _ribbon(chart, posterior, _POSTERIOR, _interval(findings.ci_prob))
    axis = Axis.of("N: loses to at least one in N competitors", places, _plain)
    text = _plain if rivals[-1] <= _LONGEST else _power
    ticks = [(place, text(number)) for place, number in zip(places.tolist(), rivals, strict=True)]
    tested = f"seen with {findings.task.n_classes:,} {findings.prediction.estimand.units}"
    return PageChart(
        "discriminability",
        drawn,
        replace(axis, ticks=ticks),
        Axis.of("share of instances, D(u)", _heights(drawn), exact_percent),
        lambda place: f"one in {1 / ndtr(-place):,.0f}",
        PERCENTAGES,
        VerticalLine(float(chart.mark(resolved, "line").x[0]), tested),
    )


def predictive(findings: Findings) -> PageChart:
    """Chart of the ranks of pilot and replicates, or of accuracies if the task has no ranks."""
    bare = findings.task.table.kind == "accuracies"
    kind: Literal["ranks", "accuracy"] = "accuracy" if bare else "ranks"
    level = findings.ci_prob
    chart = chart_of(plot_ppc)(findings.model, findings.task, kind=kind, ci_prob=level)
    band, _, points = chart.marks
    name = f"replicates, {interval_name(level)}"
    drawn = [
        PageSeries(band, LegendEntry("replicates", name, "--band", "band")),
        PageSeries(points, LegendEntry("pilot", "pilot", "--ink", "points")),
    ]
    x_label, (y_label,) = chart.x_name, chart.y_labels
    return PageChart(
        "predictive",
        drawn,
        Axis.of(x_label, points.x, _plain, log=True),
        Axis.of(y_label, _heights(drawn), exact_percent),
        _number_of("classes") if bare else lambda rank: f"{x_label} {rank:,.0f}",
        PERCENTAGES,
    )


def detection(model: OpenSetExtrapolator, rates: OpenSetPrediction, ci_prob: float) -> PageChart:
    """Chart of DET curves: FNIR against FPIR for each number of enrolled classes."""
    chart = chart_of(plot_det)(model, rates.k, rank=rates.rank, ci_prob=ci_prob)
    best_wrong = NonmatedSearches.of(model.idata).best_score
    names = [name for name in chart.series if name != best_wrong]
    drawn: list[PageSeries] = []
    for number, (k, name) in enumerate(zip(rates.k.tolist(), names, strict=True)):
        # One button shows and hides both band and line.
        drawn += _ribbon(chart, name, _reference(number, "enrolled", f"{k:,} enrolled"))
    seen = LegendEntry("best-wrong", best_wrong, "--ink", "points")
    marks = [mark for mark in chart.marks if mark.series == best_wrong]
    drawn += [PageSeries(mark, seen, is_read=False) for mark in marks]
    fpir = np.concatenate([series.mark.x for series in drawn])
    return PageChart(
        "detection",
        drawn,
        Axis.of(chart.x_name, fpir, exact_percent, log=True),
        Axis.of(chart.y_labels[0], _heights(drawn), exact_percent, log=True),
        lambda x: f"FPIR {percent(x, 2)}",
        RATES,
    )
