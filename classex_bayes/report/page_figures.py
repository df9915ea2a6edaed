"""Figures of the page: plots of `classex_bayes.plots` as SVG, for wide screens and for phones.

Colours are custom properties of the style sheet ("--ink"), so one drawing serves light mode, dark
mode and print. The page gives its font to the text.
"""

import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy.special import ndtri

from classex_bayes.formatting import PERCENTAGES, capitalized, exact_percent
from classex_bayes.plots.accuracy_plot import plot_accuracy
from classex_bayes.plots.check_plots import plot_extrapolation_check, plot_ppc
from classex_bayes.plots.panels import MUTED, PALETTE, number_text
from classex_bayes.plots.posterior_plots import plot_discriminability, plot_prob_at_least
from classex_bayes.report.findings import Findings
from classex_bayes.results.extrapolation import Extrapolation

# Pixels of the page, without the legend, and size of letters.
_SIZES = {"desk": (896, 430, 14), "phone": (350, 300, 12)}
_INK, _GRID = "#1c2126", "#ebe8e2"
_COLORS = {_INK: "ink", MUTED: "muted", _GRID: "grid"}
_COLORS |= {color.lower(): f"series-{number}" for number, color in enumerate(PALETTE, 1)}
_STYLE = {
    "figure.dpi": 72,  # so that a point is a pixel
    "figure.facecolor": "none",
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "axes.edgecolor": MUTED,
    "axes.grid": True,
    "axes.labelcolor": _INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "grid.color": _GRID,
    "legend.labelcolor": _INK,
    "lines.linewidth": 2,
    "svg.fonttype": "none",
    "text.color": _INK,
    "xtick.color": MUTED,
    "xtick.labelcolor": _INK,
    "ytick.color": MUTED,
    "ytick.labelcolor": _INK,
}
_N_POINTS, _FEWEST_DECADES = 100, 4
_LONGEST = 10**5  # number that is written out
_BESIDE = 0.4  # the text of a line further to the left, as a share of the axis, is to its right


@dataclass(frozen=True)
class PageFigure:
    """A plot with its id in the page, as SVG by screen, and its description in words."""

    key: str
    drawings: Mapping[str, str]
    description: str


def _figure(
    key: str,
    plot: Callable[..., Axes],
    *arguments: Any,
    in_percent: bool = True,
    marked: tuple[float, str] | None = None,
    chosen: tuple[float, float] | None = None,
    finish: Callable[[Axes], Any] = lambda axes: None,
    visuals: Mapping[str, Any] | None = None,
    **settings: Any,
) -> PageFigure:
    """Draw a plot for each screen.

    A vertical line at `marked` has a text. The reader moves another one between the ends `chosen`.
    `finish` changes the axes.
    """
    drawings, description = {}, ""
    looks = {"title": False, "legend": {"loc": "outside lower center"}, **(visuals or {})}
    for screen, (width, height, letters) in _SIZES.items():
        name = f"{key}-{screen}"
        sizes = {"font.size": letters, "legend.fontsize": letters, "lines.markersize": letters / 3}
        ids = {"svg.id": name, "svg.hashsalt": name}
        with style.context({**_STYLE, **sizes, **ids}, after_reset=True):
            figure = Figure((width / 72, height / 72), layout="constrained")
            axes = plot(*arguments, ax=figure.subplots(), visuals=looks, **settings)
            if in_percent:
                axes.yaxis.set_major_locator(MaxNLocator(8, steps=(1, 2, 5, 10)))
                axes.yaxis.set_major_formatter(lambda y, _: exact_percent(y))
                low, high = axes.get_ylim()  # regressions on accuracies may exceed 100%
                axes.set_ylim(max(low, -0.02), min(high, 1.02))
            finish(axes)
            if marked is not None:
                _mark(axes, *marked)
            if chosen is not None:
                axes.axvline(chosen[1], color=PALETTE[0], linewidth=1, gid="chosen")
            below = sum(legend.get_window_extent().height for legend in figure.legends)
            figure.set_figheight((height + below) / 72)
            drawing = _svg(figure, screen)
            if chosen is not None:
                first, last = axes.transData.transform([(end, 0) for end in chosen])[:, 0]
                place = f'data-end="{last:.1f}" data-span="{last - first:.1f}"'
                drawing = drawing.replace('<g id="chosen">', f'<g class="chosen" {place}>')
            drawings[screen] = drawing
            description = _description(axes)
    return PageFigure(key, drawings, description)


def _svg(figure: Figure, screen: str) -> str:
    """A figure as a small element of the page, whose groups have no ids that others have."""
    file = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(file, format="svg", metadata=nothing)
    text = " ".join(file.getvalue().split())
    text = re.sub(r"^.*?<svg ", f'<svg class="{screen}" ', text)
    surplus = ' (width|height)="[0-9.]+pt"', ' id="[a-zA-Z0-9.]+_[0-9]+"', "<style.*?</style>"
    for part in (*surplus, "font-family: [^;]*; ", ' transform="rotate[(]-0 [^"]*"'):
        text = re.sub(part, "", text)
    text = re.sub(r"\d+\.\d{2,}(?=[^<>]*>)", lambda number: f"{float(number[0]):.1f}", text)
    for color, name in _COLORS.items():
        text = text.replace(color, f"var(--{name})")
    return text


def _description(axes: Axes) -> str:
    """What a plot shows, for those who do not see it."""
    lines = [
        f"{line.get_label()}, from {y[0]:.3g} to {y[-1]:.3g}"
        for line in axes.lines
        if (y := np.asarray(line.get_ydata())).size > 2
    ]
    title = f"{capitalized(axes.get_ylabel())} against {axes.get_xlabel()}"
    return f"{title}. From left to right: {'; '.join(lines)}."


def _mark(axes: Axes, x: float, text: str) -> None:
    """Add a dotted vertical line with a text above the axes, where no curve passes through it."""
    axes.axvline(x, color=MUTED, linestyle=":", linewidth=1.2)
    place = axes.transAxes.inverted().transform(axes.transData.transform((x, 0)))[0]
    side = "left" if place < _BESIDE else "right"
    at_top = axes.get_xaxis_transform()
    axes.text(x, 1.01, text, transform=at_top, va="bottom", ha=side, color=MUTED)


def figures(findings: Findings, curves: Sequence[Extrapolation]) -> Iterator[PageFigure]:
    """Return all figures of the page; `curves` are predictions of the model and of references."""
    model, task, target, level = findings.model, findings.task, findings.target, findings.ci_prob
    posterior, estimand = curves[0], findings.prediction.estimand
    tested = task.n_classes, f"{task.n_classes:,} {estimand.units} tested"
    name = "" if target is None else f"target {estimand.exact(target)}"
    yield _figure(
        "accuracy",
        plot_accuracy,
        curves,
        task,
        target=target,
        ci_prob=level,
        in_percent=estimand.numerals is PERCENTAGES,
        marked=tested,
        chosen=(float(posterior.k.min()), float(posterior.k.max())),
        visuals={
            "ylabel": {"text": estimand.describe()},
            "target": {"label": name, "linewidth": 1.2},
            "ref_line": False,  # `marked` has a text
        },
    )
    if target is not None:
        yield _figure(
            "reaching",
            plot_prob_at_least,
            posterior,
            target,
            marked=tested,
            finish=lambda axes: axes.set_ylim(-0.02, 1.02),
            visuals={
                "legend": False,
                "ylabel": {"text": f"probability of {estimand.reaching(target)}"},
            },
        )
    kind = "ranks" if task.table.has_ranks else "accuracy"
    yield _figure("predictive", plot_ppc, model, task, kind=kind, ci_prob=level)
    if not isinstance(findings.within, str):
        yield _figure("within", plot_extrapolation_check, findings.within)
    # On the normal scale, which spreads out the tail of many competitors.
    farthest = max(_FEWEST_DECADES, math.ceil(math.log10(posterior.k.max())))
    competitors = [2, *(10**power for power in range(1, farthest + 1))]
    places = -ndtri(1 / np.array(competitors, dtype=float))
    texts = [f"{n:,}" if n <= _LONGEST else number_text(n, 1, math.inf) for n in competitors]
    yield _figure(
        "discriminability",
        plot_discriminability,
        model,
        z=np.linspace(places[0], places[-1], _N_POINTS),
        ci_prob=level,
        finish=lambda axes: axes.set_xticks(places, texts),
        visuals={
            "xlabel": {"text": "N: loses to at least one in N competitors"},
            "ylabel": {"text": "share of instances, D(u)"},
        },
    )
    if findings.open_set is not None:
        from classex_bayes.plots.open_set_plot import plot_det

        identifier, rates = findings.open_set
        yield _figure(
            "detection",
            plot_det,
            identifier,
            rates.k,
            rank=rates.rank,
            ci_prob=level,
            in_percent=False,
        )
