"""Charts of the page: those of `classex_bayes.plots` as traces of plotly.js, beside their numbers.

Colours are names of custom properties of the style sheet ("--posterior"), which the page resolves,
so that one chart serves light, dark and paper.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from classex_bayes.formatting import PERCENTAGES, brief_decimal, capitalized, exact_percent, percent
from classex_bayes.open_set.open_set import OpenSetExtrapolator
from classex_bayes.open_set.open_set_prediction import OpenSetPrediction
from classex_bayes.plots.accuracy_plot import (
    OBSERVED,
    OBSERVED_METRIC,
    TARGET,
    accuracy_chart,
)
from classex_bayes.plots.chart import Chart, Mark
from classex_bayes.plots.discriminability_plot import RESOLVED, discriminability_chart
from classex_bayes.plots.open_set_plot import BEST_WRONG, det_chart
from classex_bayes.plots.ppc_plot import ppc_chart
from classex_bayes.plots.prob_at_least_plot import prob_at_least_chart
from classex_bayes.report.findings import Findings
from classex_bayes.results import Extrapolation, interval_name
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import NumberArray

_INNER = 0.5
_N_POINTS, _N_ROWS, _N_PILOT = 100, 12, 12
_DECADES_FOR_POWERS, _MOST_POWERS = 2, 6
_FEWEST_DECADES = 4
_DASHES = ("7px,3px", "2px,3px", "9px,3px,2px,3px", "12px,4px", "4px,2px")
_TARGET_DASH = "1px,4px"
_WIDE, _THIN = 2.5, 1.75
_SHADE = 0.2  # of bands in the colour of their lines
_MEAN_AND_LIMITS = "posterior mean", "lower limit", "upper limit"


@dataclass(frozen=True)
class LegendEntry:
    """An entry of the legend, which shows and hides the trace that carries its key."""

    key: str
    name: str
    color: str
    shape: str = "line"  # or "band" or "points"
    dash: str = ""
    width: float = _THIN


@dataclass(frozen=True)
class PageChart:
    """Chart for plotly.js, with its id in the page and a description for readers who do not see it.

    `columns` and `rows` are some of its numbers as text.
    """

    key: str
    label: str
    traces: list[dict[str, Any]]
    layout: dict[str, Any]
    legend: tuple[LegendEntry, ...]
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


_POSTERIOR = LegendEntry("posterior", "posterior mean", "--posterior", width=_WIDE)


def _interval(ci_prob: float, key: str = "interval", color: str = "--band") -> LegendEntry:
    return LegendEntry(key, f"{interval_name(ci_prob)} (credible)", color, "band")


def _trace(mark: Mark, entry: LegendEntry) -> dict[str, Any]:
    """A mark of a chart with the looks of the page."""
    x, y = mark.x.tolist(), mark.y[0].tolist()
    trace = {
        "type": "scatter", "mode": "lines", "meta": entry.key, "name": entry.name, "x": x, "y": y,
    }  # fmt: skip
    if mark.kind == "points":
        return {**trace, "mode": "markers", "marker": {"color": entry.color, "size": 6}}
    if mark.kind == "line":
        dash = {"dash": entry.dash} if entry.dash else {}
        return {**trace, "line": {"color": entry.color, "width": entry.width, **dash}}
    # A closed outline, so that a band is one trace and hides as one.
    return {
        **trace, "x": [*x, *x[::-1]], "y": [*mark.y[1].tolist(), *y[::-1]], "fill": "toself",
        "fillcolor": entry.color, "hoverinfo": "skip", "line": {"width": 0},
    }  # fmt: skip


def _ribbon(chart: Chart, series: str) -> tuple[Mark, Mark, tuple[NumberArray, ...]]:
    """Band and line of a series, and the numbers of both: mean, lower and upper limit."""
    band, line = chart.mark(series, "band"), chart.mark(series, "line")
    return band, line, (*line.y, *band.y)


def _axes(x_title: str, y_title: str, **x: Any) -> dict[str, Any]:
    return {
        "xaxis": {"title": {"text": x_title}, **x},
        "yaxis": {"title": {"text": y_title}, "tickformat": ".0~%", "hoverformat": ".1%"},
    }


def _counts(k: NumberArray, unit: str) -> dict[str, Any]:
    """A logarithmic axis of numbers of a unit, with a little room at its ends."""
    low, high = math.log10(float(k.min())), math.log10(float(k.max()))
    room = 0.03 * (high - low)
    axis = {
        "type": "log", "range": [low - room, high + room],
        "unifiedhovertitle": {"text": f"%{{x:,d}} {unit}"},
    }  # fmt: skip
    if high - low < _DECADES_FOR_POWERS:
        return {**axis, "dtick": "D2"}
    every = math.ceil((high - low) / _MOST_POWERS)
    small = {"dtick": "D1" if every == 1 else 1, "ticks": "outside"}
    return {**axis, "dtick": every, "tickformat": ",d", "minor": small}


def _vertical_line(x: float, text: str, at: str = "bottom") -> dict[str, Any]:
    """A vertical line with words at its bottom or top, wherever the curve is not."""
    label = {
        "text": text, "textposition": "start" if at == "bottom" else "end", "textangle": 0,
        "xanchor": "right", "yanchor": at, "font": {"color": "--muted", "size": 12},
    }  # fmt: skip
    line = {"color": "--muted", "width": 1, "dash": "2px,3px"}
    ends = {"xref": "x", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1}
    return {"shapes": [{"type": "line", **ends, "line": line, "label": label}]}


def _one_decimal(share: float) -> str:
    return percent(share, 1)


def _rows(
    x: Sequence[str], *columns: NumberArray, written: Callable[[float], str] = _one_decimal
) -> list[tuple[str, ...]]:
    """Shares, or other values, at about a dozen evenly spaced places."""
    places = np.unique(np.linspace(0, len(x) - 1, _N_ROWS).round().astype(int))
    return [(x[i], *(written(float(column[i])) for column in columns)) for i in places]


def _written(k: NumberArray) -> list[str]:
    return [f"{number:,}" for number in k]


def accuracy(findings: Findings, curves: Sequence[Extrapolation]) -> PageChart:
    """The posterior of the accuracy or other metric beside pilot, references and target."""
    estimand = findings.prediction.estimand
    in_percent = estimand.numerals is PERCENTAGES
    form, written = (":.1%", _one_decimal) if in_percent else (":,.3~g", brief_decimal)
    task, ci_prob = findings.task, findings.ci_prob
    chart = accuracy_chart(
        curves, task, target=findings.target, ci_prob=ci_prob, n_observed=_N_PILOT
    )
    posterior, *references = chart.series[: len(curves)]
    band, line, numbers = _ribbon(chart, posterior)
    marks = [(band, _interval(ci_prob))]
    if ci_prob > _INNER:
        inner = accuracy_chart(curves[0], ci_prob=_INNER).marks[0]
        marks.append((inner, _interval(_INNER, "inner", "--band-inner")))
    for number, (series, prediction) in enumerate(zip(references, curves[1:], strict=True)):
        # Colour and dash go round with different periods.
        turn, place = divmod(number, len(_DASHES))
        color, dash = f"--reference-{place + 1}", _DASHES[(place + turn) % len(_DASHES)]
        entry = LegendEntry(f"reference-{number + 1}", prediction.estimator, color, dash=dash)
        marks.append((chart.mark(series, "line"), entry))
    marks.append((line, _POSTERIOR))
    if findings.target is not None:
        name = f"target {exact_percent(findings.target)}"
        entry = LegendEntry("target", name, "--target", dash=_TARGET_DASH)
        marks.append((chart.mark(TARGET, "line"), entry))
    # Only the accuracy itself has a covariance.
    has_errors = estimand.metric == "accuracy"
    name = f"pilot, {interval_name(ci_prob)} (sampling)" if has_errors else "pilot"
    pilot = LegendEntry("pilot", name, "--ink", "points")
    for observed in {OBSERVED, OBSERVED_METRIC} & {*chart.series}:
        marks.append((chart.mark(observed, "points"), pilot))
    traces = [_trace(*pair) for pair in marks]
    if has_errors and marks[-1][1] is pilot:
        traces[-1]["error_y"] = _sampling_errors(task, marks[-1][0], ci_prob)
    hover = {
        "customdata": np.column_stack(numbers[1:]).tolist(),
        "hovertemplate": f"%{{y{form}}} (%{{customdata[0]{form}}} to %{{customdata[1]{form}}})",
    }
    traces = [{**trace, **hover} if trace["meta"] == "posterior" else trace for trace in traces]
    grid, mean = line.x, numbers[0]
    layout = _axes(chart.x_label, estimand.describe(), **_counts(grid, "classes"))
    if not in_percent:
        layout["yaxis"] |= {"tickformat": ",.3~g", "hoverformat": ",.3~g"}
    if estimand.is_rank:
        layout["yaxis"]["type"] = "log"
    entries = [entry for _, entry in marks if entry is not _POSTERIOR]
    return PageChart(
        "accuracy",
        f"{capitalized(estimand.describe())} against the number of classes, from "
        f"{written(float(mean[0]))} on 2 to {written(float(mean[-1]))} on {grid[-1]:,} classes, "
        "with credible bands.",
        traces,
        layout | _vertical_line(task.n_classes, f"{task.n_classes:,} classes tested"),
        (_POSTERIOR, *entries),
        ("classes", *_MEAN_AND_LIMITS),
        _rows(_written(grid), *numbers, written=written),
    )


def _sampling_errors(task: SourceTask, points: Mark, ci_prob: float) -> dict[str, Any]:
    """Normal sampling intervals of average test accuracies."""
    (seen,) = points.y
    half = ndtri((1 + ci_prob) / 2) * np.sqrt(np.diag(task.accuracy_cov(points.x)))
    return {
        "type": "data", "symmetric": False, "array": (np.minimum(seen + half, 1) - seen).tolist(),
        "arrayminus": (seen - np.maximum(seen - half, 0)).tolist(), "color": "--ink",
        "thickness": 1.25, "width": 3,
    }  # fmt: skip


def reaching(posterior: Extrapolation, target: float) -> PageChart:
    """Probability that the accuracy is at least the target, against the number of classes."""
    chart = prob_at_least_chart(posterior, target)
    (line,) = chart.marks
    grid, share = line.x, line.y[0]
    name = f"probability that accuracy is at least {exact_percent(target)}"
    layout = _axes(chart.x_label, *chart.y_labels, **_counts(grid, "classes"))
    layout["yaxis"]["range"] = [-0.03, 1.03]
    return PageChart(
        "reaching",
        f"{name.capitalize()}, against the number of classes: {percent(share[0], 1)} on 2, "
        f"{percent(share[-1], 1)} on {grid[-1]:,}.",
        [_trace(line, LegendEntry("reaching", "probability", "--posterior", width=_WIDE))],
        layout | _vertical_line(posterior.n_classes, f"{posterior.n_classes:,} classes tested"),
        (),
        ("classes", name),
        _rows(_written(grid), share),
    )


def discriminability(findings: Findings) -> PageChart:
    """D(1 - 1/N) on the normal scale, which spreads out the tail that many classes rest on."""
    farthest = max(_FEWEST_DECADES, math.ceil(math.log10(findings.grid(2)[-1])))
    rivals = np.array([2.0, *(10.0**power for power in range(1, farthest + 1))])
    places = -ndtri(1 / rivals)
    z = np.linspace(places[0], places[-1], _N_POINTS)
    chart = discriminability_chart(findings.model, findings.ci_prob, z=z)
    band, line, numbers = _ribbon(chart, chart.series[0])
    room = 0.03 * (places[-1] - places[0])
    axis = {
        "tickvals": places.tolist(), "ticktext": [_short(number) for number in rivals],
        "tickangle": 0, "range": [places[0] - room, places[-1] + room],
    }  # fmt: skip
    layout = _axes(
        "loses to at least one in so many competitors", "share of instances, D(u)", **axis
    )
    limit = float(chart.mark(RESOLVED, "line").x[0])
    layout |= _vertical_line(limit, f"seen with {findings.task.n_classes:,} classes", "top")
    one_in = [f"{1 / ndtr(-place):,.0f}" for place in z]
    hover = {"text": one_in, "hovertemplate": "one in %{text}: %{y:.1%}<extra></extra>"}
    interval = _interval(findings.ci_prob)
    return PageChart(
        "discriminability",
        "Share of test instances that lose to at least one in so many random competitors, with "
        "its credible band.",
        [_trace(band, interval), _trace(line, _POSTERIOR) | hover],
        {**layout, "hovermode": "closest"},
        (_POSTERIOR, interval),
        ("one competitor in", *_MEAN_AND_LIMITS),
        _rows(one_in, *numbers),
    )


def _short(number: float) -> str:
    """A power of ten with few letters."""
    return f"{number:,.0f}" if number < 10_000 else f"10<sup>{math.log10(number):.0f}</sup>"


def predictive(findings: Findings) -> PageChart:
    """Ranks of the task, or its accuracies where these are all that is known, and replicates."""
    bare = findings.task.kind == "accuracies"
    chart = ppc_chart(
        findings.model, findings.task, "accuracy" if bare else "ranks", ci_prob=findings.ci_prob
    )
    replicated, observed = chart.series
    band, points = chart.mark(replicated, "band"), chart.mark(observed, "points")
    x_label, (y_label,) = chart.x_label, chart.y_labels
    pilot = LegendEntry("pilot", "pilot", "--ink", "points")
    name = f"replicates, {interval_name(findings.ci_prob)}"
    replicates = LegendEntry("replicates", name, "--band", "band")
    return PageChart(
        "predictive",
        f"{y_label.capitalize()} against {x_label}: of the pilot, and of replicates that the "
        "model draws.",
        [_trace(band, replicates), _trace(points, pilot)],
        _axes(x_label, y_label, **_counts(points.x, "classes" if bare else x_label)),
        (pilot, replicates),
        (x_label, "pilot", "lower limit", "upper limit"),
        _rows(_written(points.x), *points.y, *band.y),
    )


def detection(model: OpenSetExtrapolator, rates: OpenSetPrediction, ci_prob: float) -> PageChart:
    """DET curves: FNIR against FPIR at each number of enrolled classes."""
    chart = det_chart(model, rates.k, rank=rates.rank, ci_prob=ci_prob)
    traces: list[dict[str, Any]] = []
    entries: list[LegendEntry] = []
    rows: list[tuple[str, ...]] = []
    for number, (k, series) in enumerate(zip(rates.k.tolist(), chart.series, strict=False)):
        band, line, numbers = _ribbon(chart, series)
        turn, place = divmod(number, len(_DASHES))
        color, dash = f"--reference-{place + 1}", _DASHES[(place + turn) % len(_DASHES)]
        # Its button shows and hides band and line.
        entry = LegendEntry(f"enrolled-{number + 1}", f"{k:,} enrolled", color, dash=dash)
        hover = {
            "customdata": np.column_stack(numbers[1:]).tolist(),
            "hovertemplate": "FPIR %{x:.2~%}: FNIR %{y:.1%} (%{customdata[0]:.1%} to "
            "%{customdata[1]:.1%})",
        }
        traces += [_trace(band, entry) | {"opacity": _SHADE}, _trace(line, entry) | hover]
        entries.append(entry)
        rows += [(f"{k:,}", *row) for row in _rows([percent(x, 2) for x in line.x], *numbers)]
    marks = [mark for mark in chart.marks if mark.series == BEST_WRONG]
    if marks:
        seen = LegendEntry("best-wrong", BEST_WRONG, "--ink", "points")
        traces += [_trace(mark, seen) for mark in marks]
        entries.append(seen)
    layout = _axes(chart.x_label, *chart.y_labels, type="log", dtick=1, tickformat=".4~%")
    layout["yaxis"] |= {"type": "log", "dtick": "D2"}
    return PageChart(
        "detection",
        f"{chart.y_labels[0]} against FPIR on logarithmic axes, a curve for each number of "
        "enrolled classes, with credible bands.",
        traces,
        {**layout, "hovermode": "closest"},
        tuple(entries),
        ("classes", "FPIR", *_MEAN_AND_LIMITS),
        rows,
    )
