"""Width of the interval, or power, against the size of the pilot."""

from typing import Any

import numpy as np
from arviz_plots import PlotCollection

from classex_bayes.evaluate.plan import USUAL_POWER, Plan
from classex_bayes.plots.chart import MUTED, Chart, Visuals, require_type
from classex_bayes.results import interval_label


def plot_plan(
    result: Plan,
    *,
    visuals: Visuals | None = None,
    plot_collection: PlotCollection | None = None,
    ax: Any = None,
    backend: str | None = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    """Draw the width of the interval, or power, against the number of classes.

    Each number of repeats has a line. If a width is wanted, lines are its means over simulated
    pilots, and bands reach one standard deviation to both sides. Otherwise lines are power, and
    bands reach one standard error. The wanted width, or a power of 0.8, is a line of its own.

    Parameters
    ----------
    result : Plan
        What `classex_bayes.evaluate.plan.plan` returned.
    visuals : mapping, optional
        Removes (False) or styles (a mapping of arguments) what has this name: "error_band", "mean",
        "target", "title", "xlabel", "ylabel" or "legend".
    plot_collection, ax, backend : optional
        A collection or axes of matplotlib to draw in, and the plotting library ("matplotlib",
        "plotly", "bokeh" or "none"); see `classex_bayes.plots.chart.Chart.draw`.
    **pc_kwargs
        `figure_kwargs` and `col_wrap`, as of `arviz_plots.PlotCollection.wrap`.

    Returns
    -------
    PlotCollection

    Raises
    ------
    DataError
        No plan.
    """
    require_type(result, Plan, "result")
    table: Any = result.table
    interval = interval_label(result.ci_prob, result.ci_kind)
    if result.width is not None:
        mean, error, largest = table["width"], table["width_sd"], np.inf
        level, goal = result.width, f"wanted ({result.width:g})"
        label, bands = f"width of the {interval}", "one standard deviation over pilots"
    else:
        mean, largest = table["power"], 1.0
        error = np.sqrt(mean * (1 - mean) / result.n_pilots)
        level, goal = USUAL_POWER, f"usual ({USUAL_POWER:g})"
        label, bands = f"share of {interval}s without {result.excludes:g}", "one standard error"
    ends = {"lower": (mean - error).clip(lower=0), "upper": (mean + error).clip(upper=largest)}
    lines = {
        f"{repeats} instance{'s' * (repeats > 1)} of each class": rows
        for repeats, rows in table.assign(mean=mean, **ends).groupby("repeats")
    }
    series = {**dict.fromkeys(lines), goal: MUTED}
    chart = Chart(series, visuals=("error_band", "mean", "target"))
    for name, rows in lines.items():
        k = rows["classes"].to_numpy()
        if result.n_pilots > 1:
            limits = rows["lower"].to_numpy(), rows["upper"].to_numpy()
            chart.band(name, k, *limits, visual="error_band")
        chart.line(name, k, rows["mean"].to_numpy())
        if k.size > 1:
            chart.points(name, k, rows["mean"].to_numpy(), visual="mean")
    chart.level(goal, table["classes"].to_numpy(), level, visual="target")
    title = f"Plan: {result.quantity} at {result.k:,} classes"
    title += f"\nbands: {bands}" * (result.n_pilots > 1)
    return chart.labelled(title, "number of classes of the pilot", label).draw(
        visuals, plot_collection, ax, backend, **pc_kwargs
    )
