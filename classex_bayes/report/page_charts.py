"""Charts of the page: those of `classex_bayes.plots` as drawings with tables of their numbers.

The paths of a drawing are in percent of its axes, so the page can stretch them to any width.
Colours are names of custom properties of the style sheet ("--posterior"), so one drawing serves
light mode, dark mode and print.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from classex_bayes.formatting import PERCENTAGES, brief_decimal, capitalized, exact_percent, percent
from classex_bayes.open_set.nonmated_searches import NonmatedSearches
from classex_bayes.open_set.open_set import OpenSetExtrapolator
from classex_bayes.open_set.open_set_prediction import OpenSetPrediction
from classex_bayes.plots.accuracy_plot import (
    OBSERVED,
    TARGET,
    accuracy_chart,
)
from classex_bayes.plots.chart import Chart, Mark
from classex_bayes.plots.discriminability_plot import RESOLVED, discriminability_chart
from classex_bayes.plots.open_set_plot import det_chart
from classex_bayes.plots.ppc_plot import ppc_chart
from classex_bayes.plots.prob_at_least_plot import prob_at_least_chart
from classex_bayes.report.chart_axes import Axis
from classex_bayes.report.findings import Findings
from classex_bayes.results import Extrapolation, interval_name
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, NumberArray

_INNER = 0.5
_N_POINTS, _N_ROWS, _N_PILOT = 100, 12, 12
_FEWEST_DECADES = 4
_DASHES = ("7,3", "2,3", "9,3,2,3", "12,4", "4,2")
_TARGET_DASH = "1,4"
_WIDE, _THIN = 2.5, 1.75
_SHADE = 0.2  # opacity of bands in the colour of their lines
_MEAN_AND_LIMITS = "posterior mean", "lower limit", "upper limit"
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class LegendEntry:
    """An entry of the legend. It shows and hides the series that have its key."""

    key: str
    name: str
    color: str
    shape: str = "line"  # or "band" or "points"
    dash: str = ""
    width: float = _THIN


@dataclass(frozen=True)
class PageSeries:
    """A mark of a chart in the style of its legend entry.

    `values` are its values as text, shown when the reader points at them. `errors` are the lower
    and upper limits of its points, if they have any.
    """

    mark: Mark
    entry: LegendEntry
    values: Sequence[str] = ()
    errors: tuple[FloatArray, FloatArray] | None = None

    @property
    def shade(self) -> float:
        """Opacity; a band in the colour of its line is lighter than the line."""
        return _SHADE if self.mark.kind == "band" and self.entry.shape == "line" else 1.0

    def path(self, x: Axis, y: Axis) -> str:
        """Path of a line, of the outline of a band, or of dots with the lines of their errors."""
        across, up = x.places(self.mark.x), [y.places(values) for values in self.mark.y]
        if self.mark.kind == "line":
            return f"M{_corners(across, up[0])}"
        if self.mark.kind == "band":
            both = np.append(across, across[::-1]), np.append(up[1], up[0][::-1])
            return f"M{_corners(*both)}Z"
        # A line of length 0 with round ends is a dot, which stays round in a stretched chart.
        return "".join(f"M{_corner(*point)}h0" for point in zip(across, up[0], strict=True))

    def error_path(self, x: Axis, y: Axis) -> str:
        """Path of vertical lines between the limits of the points."""
        if self.errors is None:
            return ""
        ends = zip(x.places(self.mark.x), *map(y.places, self.errors), strict=True)
        return "".join(f"M{_corner(at, low)}L{_corner(at, high)}" for at, low, high in ends)


@dataclass(frozen=True)
class VerticalLine:
    """A vertical line with a label at its bottom or top, away from the curve."""

    x: float
    text: str
    at: str = "bottom"


@dataclass(frozen=True)
class PageChart:
    """A drawing with its id in the page (`key`) and a description for screen readers (`label`).

    `columns` and `rows` are a table of some of its numbers as text. `read_x` formats values of x.
    """

    key: str
    label: str
    series: Sequence[PageSeries]
    x: Axis
    y: Axis
    read_x: Callable[[float], str]
    legend: tuple[LegendEntry, ...]
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    line: VerticalLine | None = None

    @property
    def grid(self) -> str:
        """Path of the grid lines at the labels of both axes."""
        across = (f"M{place:.2f} 0v100" for place, _ in self.x.numbers)
        up = (f"M0 {100 - place:.2f}h100" for place, _ in self.y.numbers)
        return "".join([*across, *up])

    @property
    def line_place(self) -> float:
        """Position of the vertical line."""
        assert self.line is not None
        return float(self.x.places(np.array(self.line.x)))

    @property
    def readings(self) -> list[dict[str, object]]:
        """Text of every point that the reader can point at, in the order of the legend."""
        read = [series for series in self.series if series.values]
        if self.legend:
            read.sort(key=lambda series: self.legend.index(series.entry))
        return [
            {
                "series": series.entry.key,
                "name": series.entry.name,
                "at": np.round(self.x.places(series.mark.x), 2).tolist(),
                "x": [self.read_x(x) for x in series.mark.x.tolist()],
                "y": list(series.values),
            }
            for series in read
        ]


_POSTERIOR = LegendEntry("posterior", "posterior mean", "--posterior", width=_WIDE)


def _corner(across: float, up: float) -> str:
    return f"{across:.2f} {100 - up:.2f}"


def _corners(across: FloatArray, up: FloatArray) -> str:
    """Positions as the corners of a path, whose y-axis points down."""
    return "L".join(_corner(*place) for place in zip(across, up, strict=True))


def _interval(ci_prob: float, key: str = "interval", color: str = "--band") -> LegendEntry:
    return LegendEntry(key, f"{interval_name(ci_prob)} (credible)", color, "band")


def _ribbon(chart: Chart, series: str) -> tuple[Mark, Mark, tuple[NumberArray, ...]]:
    """Band and line of a series, and their numbers: mean, lower and upper limit."""
    band, line = chart.mark(series, "band"), chart.mark(series, "line")
    return band, line, (*line.y, *band.y)


def _heights(series: Sequence[PageSeries]) -> FloatArray:
    """All values along y."""
    drawn = [array for item in series for array in (*item.mark.y, *(item.errors or ()))]
    return np.concatenate([np.ravel(array) for array in drawn])


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _classes(k: float) -> str:
    return f"{k:,.0f} classes"


def _tested(n_classes: int) -> VerticalLine:
    return VerticalLine(n_classes, f"{n_classes:,} classes tested")


def _one_decimal(share: float) -> str:
    return percent(share, 1)


def _rows(
    x: Sequence[str], *columns: NumberArray, written: Callable[[float], str] = _one_decimal
) -> list[tuple[str, ...]]:
    """Rows of a table, at about a dozen evenly spaced places."""
    places = np.unique(np.linspace(0, len(x) - 1, _N_ROWS).round().astype(int))
    return [(x[i], *(written(float(column[i])) for column in columns)) for i in places]


def _written(k: NumberArray) -> list[str]:
    return [f"{number:,}" for number in k]


def _spans(written: Callable[[float], str], low: NumberArray, high: NumberArray) -> list[str]:
    """Limits as text: "67.4% to 76.1%"."""
    pairs = zip(map(written, low.tolist()), map(written, high.tolist()), strict=True)
    return [f"{lower} to {upper}" for lower, upper in pairs]


def _with_limits(
    written: Callable[[float], str], middle: NumberArray, low: NumberArray, high: NumberArray
) -> list[str]:
    """Values with their limits: "72.0% (67.4% to 76.1%)"."""
    pairs = zip(map(written, middle.tolist()), _spans(written, low, high), strict=True)
    return [f"{value} ({span})" for value, span in pairs]


def accuracy(findings: Findings, curves: Sequence[Extrapolation]) -> PageChart:
    """Chart of the posterior of accuracy or another metric, with pilot, references and target."""
    estimand = findings.prediction.estimand
    in_percent = estimand.numerals is PERCENTAGES
    written = _one_decimal if in_percent else brief_decimal
    task, ci_prob = findings.task, findings.ci_prob
    chart = accuracy_chart(
        curves, task, target=findings.target, ci_prob=ci_prob, n_observed=_N_PILOT
    )
    posterior, *references = chart.series[: len(curves)]
    band, line, numbers = _ribbon(chart, posterior)
    drawn = [PageSeries(band, _interval(ci_prob))]
    if ci_prob > _INNER:
        inner = accuracy_chart(curves[0], ci_prob=_INNER).marks[0]
        drawn.append(PageSeries(inner, _interval(_INNER, "inner", "--band-inner")))
    for number, (name, prediction) in enumerate(zip(references, curves[1:], strict=True)):
        color, dash = _reference_looks(number)
        entry = LegendEntry(f"reference-{number + 1}", prediction.estimator, color, dash=dash)
        mark = chart.mark(name, "line")
        drawn.append(PageSeries(mark, entry, [*map(written, mark.y[0].tolist())]))
    drawn.append(PageSeries(line, _POSTERIOR, _with_limits(written, *numbers)))
    if findings.target is not None:
        name = f"target {exact_percent(findings.target)}"
        entry = LegendEntry("target", name, "--target", dash=_TARGET_DASH)
        drawn.append(PageSeries(chart.mark(TARGET, "line"), entry))
    # Sampling intervals need a covariance, which is computed for accuracy only.
    has_errors = estimand.metric == "accuracy"
    name = f"pilot, {interval_name(ci_prob)} (sampling)" if has_errors else "pilot"
    pilot = LegendEntry("pilot", name, "--ink", "points")
    if OBSERVED in chart.series:
        mark = chart.mark(OBSERVED, "points")
        values, errors = [*map(written, mark.y[0].tolist())], None
        if has_errors:
            errors = _sampling_errors(task, mark, ci_prob)
            values = _with_limits(written, mark.y[0], *errors)
        drawn.append(PageSeries(mark, pilot, values, errors))
    grid, mean = line.x, numbers[0]
    y_axis = Axis.log if estimand.is_rank else Axis.linear
    entries = [series.entry for series in drawn if series.entry is not _POSTERIOR]
    return PageChart(
        "accuracy",
        f"{capitalized(estimand.describe())} against the number of classes, from "
        f"{written(float(mean[0]))} on 2 to {written(float(mean[-1]))} on {grid[-1]:,} classes, "
        "with credible bands.",
        drawn,
        Axis.log(chart.x_name, grid, _count, least_step=1),
        y_axis(estimand.describe(), _heights(drawn), exact_percent if in_percent else _plain),
        _classes,
        (_POSTERIOR, *entries),
        ("classes", *_MEAN_AND_LIMITS),
        _rows(_written(grid), *numbers, written=written),
        _tested(task.n_classes),
    )


def _reference_looks(number: int) -> tuple[str, str]:
    """Colour and dash of a reference; each round of colours has the dashes in another order."""
    turn, place = divmod(number, len(_DASHES))
    return f"--reference-{place + 1}", _DASHES[(place + turn) % len(_DASHES)]


def _plain(value: float) -> str:
    return f"{value:,.10g}"


def _sampling_errors(
    task: SourceTask, points: Mark, ci_prob: float
) -> tuple[FloatArray, FloatArray]:
    """Limits of normal sampling intervals of average test accuracies."""
    (seen,) = points.y
    half = ndtri((1 + ci_prob) / 2) * np.sqrt(np.diag(task.accuracy_cov(points.x)))
    return np.maximum(seen - half, 0), np.minimum(seen + half, 1)


def reaching(posterior: Extrapolation, target: float) -> PageChart:
    """Chart of the probability that accuracy reaches the target, against the number of classes."""
    chart = prob_at_least_chart(posterior, target)
    (line,) = chart.marks
    grid, share = line.x, line.y[0]
    name = f"probability that accuracy is at least {exact_percent(target)}"
    entry = LegendEntry("reaching", "probability", "--posterior", width=_WIDE)
    return PageChart(
        "reaching",
        f"{name.capitalize()}, against the number of classes: {percent(share[0], 1)} on 2, "
        f"{percent(share[-1], 1)} on {grid[-1]:,}.",
        [PageSeries(line, entry, [_one_decimal(value) for value in share.tolist()])],
        Axis.log(chart.x_name, grid, _count, least_step=1),
        Axis.linear(chart.y_labels[0], np.array([0.0, 1.0]), exact_percent),
        _classes,
        (),
        ("classes", name),
        _rows(_written(grid), share),
        _tested(posterior.n_classes),
    )


def discriminability(findings: Findings) -> PageChart:
    """Chart of D(1 - 1/N) on the normal scale, which spreads out the tail of many competitors."""
    farthest = max(_FEWEST_DECADES, math.ceil(math.log10(findings.grid(2)[-1])))
    rivals = np.array([2.0, *(10.0**power for power in range(1, farthest + 1))])
    places = -ndtri(1 / rivals)
    z = np.linspace(places[0], places[-1], _N_POINTS)
    chart = discriminability_chart(findings.model, findings.ci_prob, z=z)
    band, line, numbers = _ribbon(chart, chart.series[0])
    drawn = [
        PageSeries(band, interval := _interval(findings.ci_prob)),
        PageSeries(line, _POSTERIOR, _with_limits(_one_decimal, *numbers)),
    ]
    axis = Axis.linear("N: loses to at least one in N competitors", places, _plain)
    ticks = [(place, _short(number)) for place, number in zip(places, rivals, strict=True)]
    limit = float(chart.mark(RESOLVED, "line").x[0])
    return PageChart(
        "discriminability",
        "Share of test instances that lose to at least one in N random competitors, against N, "
        "with its credible band.",
        drawn,
        replace(axis, ticks=ticks),
        Axis.linear("share of instances, D(u)", _heights(drawn), exact_percent),
        lambda place: f"one in {_one_in(place)}",
        (_POSTERIOR, interval),
        ("one competitor in", *_MEAN_AND_LIMITS),
        _rows([_one_in(place) for place in z], *numbers),
        VerticalLine(limit, f"seen with {findings.task.n_classes:,} classes", "top"),
    )


def _one_in(place: float) -> str:
    return f"{1 / ndtr(-place):,.0f}"


def _short(number: float) -> str:
    """A power of ten with few letters."""
    if number < 10_000:
        return f"{number:,.0f}"
    return f"10{f'{math.log10(number):.0f}'.translate(_SUPERSCRIPTS)}"


def predictive(findings: Findings) -> PageChart:
    """Chart of the ranks of pilot and replicates, or of accuracies if the task has no ranks."""
    bare = findings.task.kind == "accuracies"
    chart = ppc_chart(
        findings.model, findings.task, "accuracy" if bare else "ranks", ci_prob=findings.ci_prob
    )
    replicated, observed = chart.series
    band, points = chart.mark(replicated, "band"), chart.mark(observed, "points")
    x_label, (y_label,) = chart.x_name, chart.y_labels
    pilot = LegendEntry("pilot", "pilot", "--ink", "points")
    name = f"replicates, {interval_name(findings.ci_prob)}"
    replicates = LegendEntry("replicates", name, "--band", "band")
    drawn = [
        PageSeries(band, replicates, _spans(_one_decimal, *band.y)),
        PageSeries(points, pilot, [_one_decimal(value) for value in points.y[0].tolist()]),
    ]
    return PageChart(
        "predictive",
        f"{y_label.capitalize()} against {x_label}, of the pilot and of replicates drawn from the "
        "model.",
        drawn,
        Axis.log(x_label, points.x, _count, least_step=1),
        Axis.linear(y_label, _heights(drawn), exact_percent),
        _classes if bare else lambda rank: f"{x_label} {rank:,.0f}",
        (pilot, replicates),
        (x_label, "pilot", "lower limit", "upper limit"),
        _rows(_written(points.x), *points.y, *band.y),
    )


def detection(model: OpenSetExtrapolator, rates: OpenSetPrediction, ci_prob: float) -> PageChart:
    """Chart of DET curves: FNIR against FPIR for each number of enrolled classes."""
    chart = det_chart(model, rates.k, rank=rates.rank, ci_prob=ci_prob)
    drawn: list[PageSeries] = []
    entries: list[LegendEntry] = []
    rows: list[tuple[str, ...]] = []
    for number, (k, name) in enumerate(zip(rates.k.tolist(), chart.series, strict=False)):
        band, line, numbers = _ribbon(chart, name)
        color, dash = _reference_looks(number)
        # One button shows and hides both band and line.
        entry = LegendEntry(f"enrolled-{number + 1}", f"{k:,} enrolled", color, dash=dash)
        values = _with_limits(_one_decimal, *numbers)
        drawn += [PageSeries(band, entry), PageSeries(line, entry, values)]
        entries.append(entry)
        rows += [(f"{k:,}", *row) for row in _rows([percent(x, 2) for x in line.x], *numbers)]
    best_wrong = NonmatedSearches.of(model.idata).best_score
    marks = [mark for mark in chart.marks if mark.series == best_wrong]
    if marks:
        seen = LegendEntry("best-wrong", best_wrong, "--ink", "points")
        drawn += [PageSeries(mark, seen) for mark in marks]
        entries.append(seen)
    fpir = np.concatenate([series.mark.x for series in drawn])
    return PageChart(
        "detection",
        f"{chart.y_labels[0]} against FPIR on logarithmic axes, a curve for each number of "
        "enrolled classes, with credible bands.",
        drawn,
        Axis.log(chart.x_name, fpir, exact_percent),
        Axis.log(chart.y_labels[0], _heights(drawn), exact_percent),
        lambda x: f"FPIR {percent(x, 2)}",
        tuple(entries),
        ("classes", "FPIR", *_MEAN_AND_LIMITS),
        rows,
    )
