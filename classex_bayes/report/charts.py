"""Charts of the page: traces for plotly.js, a legend, and the same numbers as a table.

Colours are names of custom properties of the style sheet ("--posterior"), which the page resolves,
so that one chart serves light, dark and paper.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from classex_bayes.formatting import exact_percent, percent
from classex_bayes.plots.plot_ppc import compared
from classex_bayes.report.findings import Findings
from classex_bayes.results import SAMPLE_DIMS, Extrapolation, interval_name, interval_of
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, NumberArray

_INNER = 0.5
_N_POINTS, _N_ROWS = 100, 12
_DECADES_FOR_POWERS, _MOST_POWERS = 2, 6
_FEWEST_DECADES = 4
_DASHES = ("7px,3px", "2px,3px", "9px,3px,2px,3px", "12px,4px", "4px,2px")
_TARGET_DASH = "1px,4px"
_WIDE, _THIN = 2.5, 1.75


@dataclass(frozen=True)
class Series:
    """An entry of the legend, which shows and hides the traces that carry its key."""

    key: str
    name: str
    color: str
    shape: str = "line"  # or "band" or "points"
    dash: str = ""


@dataclass(frozen=True)
class Chart:
    """One chart.

    Attributes
    ----------
    key : str
        Its id in the page.
    label : str
        What it shows, for readers who do not see it.
    traces, layout : list and dict
        For plotly.js.
    legend : tuple of Series
        In the order of the traces.
    columns, rows : tuple of str and sequence of tuples of str
        Some of its numbers, as text.
    """

    key: str
    label: str
    traces: list[dict[str, Any]]
    layout: dict[str, Any]
    legend: tuple[Series, ...]
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def _line(
    key: str, name: str, x: NumberArray, y: NumberArray, color: str, **style: Any
) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines", "meta": key, "name": name, "x": x.tolist(),
        "y": y.tolist(), "line": {"color": color, "width": _THIN, **style},
    }  # fmt: skip


def _band(
    key: str, name: str, x: NumberArray, lower: FloatArray, upper: FloatArray, fill: str
) -> dict[str, Any]:
    """A closed outline, so that a band is one trace and hides as one."""
    return {
        "type": "scatter", "mode": "lines", "meta": key, "name": name, "hoverinfo": "skip",
        "x": [*x.tolist(), *x[::-1].tolist()], "y": [*upper.tolist(), *lower[::-1].tolist()],
        "fill": "toself", "fillcolor": fill, "line": {"width": 0},
    }  # fmt: skip


def _points(key: str, name: str, x: NumberArray, y: FloatArray) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "markers", "meta": key, "name": name, "x": x.tolist(),
        "y": y.tolist(), "marker": {"color": "--ink", "size": 6},
    }  # fmt: skip


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


def _mark(x: float, text: str, at: str = "bottom") -> dict[str, Any]:
    """A vertical line with words at its bottom or top, wherever the curve is not."""
    label = {
        "text": text, "textposition": "start" if at == "bottom" else "end", "textangle": 0,
        "xanchor": "right", "yanchor": at, "font": {"color": "--muted", "size": 12},
    }  # fmt: skip
    line = {"color": "--muted", "width": 1, "dash": "2px,3px"}
    ends = {"xref": "x", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1}
    return {"shapes": [{"type": "line", **ends, "line": line, "label": label}]}


def _some(number: int) -> list[int]:
    """Positions of a dozen evenly spaced points."""
    return np.unique(np.linspace(0, number - 1, _N_ROWS).round().astype(int)).tolist()


def accuracy(findings: Findings, curves: Sequence[Extrapolation]) -> Chart:
    """The posterior of the accuracy curve beside the pilot, the references and the target."""
    posterior, *references = curves
    grid = posterior.k
    lower, upper = posterior.interval(findings.ci_prob).to_numpy().T
    mean, words = posterior.mean.to_numpy(), interval_name(findings.ci_prob)
    traces = [_band("interval", words, grid, lower, upper, "--band")]
    legend = [Series("posterior", "posterior mean", "--posterior")]
    legend.append(Series("interval", f"{words} (credible)", "--band", "band"))
    if findings.ci_prob > _INNER:
        name, half = interval_name(_INNER), posterior.interval(_INNER)
        low, high = half["lower"].to_numpy(), half["upper"].to_numpy()
        traces.append(_band("inner", name, grid, low, high, "--band-inner"))
        legend.append(Series("inner", f"{name} (credible)", "--band-inner", "band"))
    for number, prediction in enumerate(references):
        # Colour and dash go round with different periods.
        turn, place = divmod(number, len(_DASHES))
        key, color = f"reference-{number + 1}", f"--reference-{place + 1}"
        dash, values = _DASHES[(place + turn) % len(_DASHES)], prediction.mean.to_numpy()
        traces.append(_line(key, prediction.estimator, grid, values, color, dash=dash))
        legend.append(Series(key, prediction.estimator, color, dash=dash))
    line = _line("posterior", "posterior mean", grid, mean, "--posterior", width=_WIDE)
    line["customdata"] = np.column_stack([lower, upper]).tolist()
    line["hovertemplate"] = "%{y:.1%} (%{customdata[0]:.1%} to %{customdata[1]:.1%})"
    traces.append(line)
    if findings.target is not None:
        target = np.full(2, findings.target)
        ends, name = grid[[0, -1]], f"target {exact_percent(findings.target)}"
        traces.append(_line("target", name, ends, target, "--target", dash=_TARGET_DASH))
        legend.append(Series("target", name, "--target", dash=_TARGET_DASH))
    traces.append(_pilot(findings.task, findings.ci_prob))
    legend.append(Series("pilot", f"pilot, {words} (sampling)", "--ink", "points"))
    layout = _axes("number of classes", "expected accuracy", **_counts(grid, "classes"))
    n_classes = findings.task.n_classes
    layout |= _mark(n_classes, f"{n_classes:,} classes tested")
    rows = [
        (f"{grid[i]:,}", *(percent(float(v[i]), 1) for v in (mean, lower, upper)))
        for i in _some(grid.size)
    ]
    return Chart(
        "accuracy",
        f"Expected accuracy against the number of classes, from {percent(mean[0], 1)} on 2 to "
        f"{percent(mean[-1], 1)} on {grid[-1]:,} classes, with credible bands.",
        traces,
        layout,
        tuple(legend),
        ("classes", "posterior mean", "lower limit", "upper limit"),
        rows,
    )


def _pilot(task: SourceTask, ci_prob: float) -> dict[str, Any]:
    """Average test accuracies of the task with normal sampling intervals."""
    k = task.grid()
    seen = task.accuracy(k)
    half = ndtri((1 + ci_prob) / 2) * np.sqrt(np.diag(task.accuracy_cov(k)))
    errors = {
        "type": "data", "symmetric": False, "array": (np.minimum(seen + half, 1) - seen).tolist(),
        "arrayminus": (seen - np.maximum(seen - half, 0)).tolist(), "color": "--ink",
        "thickness": 1.25, "width": 3,
    }  # fmt: skip
    return {**_points("pilot", "pilot", k, seen), "error_y": errors}


def reaching(posterior: Extrapolation, target: float) -> Chart:
    """Probability that the accuracy is at least the target, against the number of classes."""
    grid, share = posterior.k, posterior.prob_at_least(target).to_numpy()
    words = f"probability that accuracy is at least {exact_percent(target)}"
    layout = _axes("number of classes", "probability", **_counts(grid, "classes"))
    layout["yaxis"]["range"] = [-0.03, 1.03]
    layout |= _mark(posterior.n_classes, f"{posterior.n_classes:,} classes tested")
    return Chart(
        "reaching",
        f"{words.capitalize()}, against the number of classes: {percent(share[0], 1)} on 2, "
        f"{percent(share[-1], 1)} on {grid[-1]:,}.",
        [_line("reaching", "probability", grid, share, "--posterior", width=_WIDE)],
        layout,
        (),
        ("classes", words),
        [(f"{grid[i]:,}", percent(share[i], 1)) for i in _some(grid.size)],
    )


def discriminability(findings: Findings) -> Chart:
    """D(1 - 1/N) on the normal scale, which spreads out the tail that many classes rest on."""
    farthest = max(_FEWEST_DECADES, math.ceil(math.log10(findings.grid(2)[-1])))
    rivals = np.array([2.0, *(10.0**power for power in range(1, farthest + 1))])
    places = -ndtri(1 / rivals)
    z = np.linspace(places[0], places[-1], _N_POINTS)
    draws = findings.model.discriminability(ndtr(z))
    bounds, words = interval_of(draws, findings.ci_prob, None), interval_name(findings.ci_prob)
    lower, upper = (bounds.sel(ci_bound=side).values for side in ("lower", "upper"))
    mean = draws.mean(SAMPLE_DIMS).values
    room = 0.03 * (places[-1] - places[0])
    axis = {
        "tickvals": places.tolist(), "ticktext": [_short(number) for number in rivals],
        "tickangle": 0, "range": [places[0] - room, places[-1] + room],
    }  # fmt: skip
    n_classes = findings.task.n_classes
    layout = _axes(
        "loses to at least one in so many competitors", "share of instances, D(u)", **axis
    )
    layout |= _mark(float(-ndtri(1 / n_classes)), f"seen with {n_classes:,} classes", "top")
    one_in = [f"{1 / ndtr(-place):,.0f}" for place in z]
    line = _line("posterior", "posterior mean", z, mean, "--posterior", width=_WIDE)
    line |= {"text": one_in, "hovertemplate": "one in %{text}: %{y:.1%}<extra></extra>"}
    return Chart(
        "discriminability",
        "Share of test instances that lose to at least one in so many random competitors, with "
        "its credible band.",
        [_band("interval", words, z, lower, upper, "--band"), line],
        {**layout, "hovermode": "closest"},
        (
            Series("posterior", "posterior mean", "--posterior"),
            Series("interval", f"{words} (credible)", "--band", "band"),
        ),
        ("one competitor in", "posterior mean", "lower limit", "upper limit"),
        [
            (one_in[i], *(percent(float(v[i]), 1) for v in (mean, lower, upper)))
            for i in _some(z.size)
        ],
    )


def _short(number: float) -> str:
    """A power of ten with few letters."""
    return f"{number:,.0f}" if number < 10_000 else f"10<sup>{math.log10(number):.0f}</sup>"


def predictive(findings: Findings) -> Chart:
    """Ranks of the task, or its accuracies where these are all that is known, and replicates."""
    kind, unit = "ranks", "rank of the true class"
    x_title, y_title = f"{unit} at most", "share of instances"
    if findings.task.kind == "accuracies":
        kind, unit, x_title, y_title = "accuracy", "classes", "number of classes", "accuracy"
    draws, seen, x, _, _ = compared(findings.model, findings.task, kind)
    bounds, words = interval_of(draws, findings.ci_prob, None), interval_name(findings.ci_prob)
    lower, upper = (bounds.sel(ci_bound=side).values for side in ("lower", "upper"))
    return Chart(
        "predictive",
        f"{y_title.capitalize()} against {x_title}: of the pilot, and of replicates that the "
        "model draws.",
        [
            _band("replicates", words, x, lower, upper, "--band"),
            _points("pilot", "pilot", x, seen),
        ],
        _axes(x_title, y_title, **_counts(x, unit)),
        (
            Series("pilot", "pilot", "--ink", "points"),
            Series("replicates", f"replicates, {words}", "--band", "band"),
        ),
        (x_title, "pilot", "lower limit", "upper limit"),
        [
            (f"{x[i]:,}", *(percent(float(v[i]), 1) for v in (seen, lower, upper)))
            for i in _some(x.size)
        ],
    )
