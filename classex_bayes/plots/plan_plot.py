"""Width of the interval against the size of the pilot."""

from typing import Any

import numpy as np
from arviz_plots import PlotCollection

from classex_bayes.evaluate.plan import Plan
from classex_bayes.plots.chart import MUTED, Chart, require_type
from classex_bayes.results import interval_label


def plot_plan(result: Plan, *, backend: str | None = None) -> PlotCollection:
    """Draw the width of the interval against the number of classes, a line for each repeats.

    Lines are means over simulated pilots, bands reach one standard deviation to both sides; the
    wanted width is a line of its own.

    Parameters
    ----------
    result : Plan
        What `classex_bayes.evaluate.plan.plan` returned.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Plotting library; ArviZ's rcParams by default.

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
    lines = {
        f"{repeats} instance{'s' * (repeats > 1)} of each class": rows
        for repeats, rows in table.groupby("repeats")
    }
    goal = f"wanted ({result.width:g})"
    chart = Chart({**dict.fromkeys(lines), goal: MUTED})
    for name, rows in lines.items():
        k, mean, sd = (rows[column].to_numpy() for column in ("classes", "width", "width_sd"))
        if result.n_pilots > 1:
            chart.band(name, k, np.maximum(mean - sd, 0), mean + sd)
        chart.line(name, k, mean)
    chart.level(goal, table["classes"].to_numpy(), result.width)
    title = f"Plan: accuracy at {result.k:,} classes"
    title += "\nbands: one standard deviation over pilots" * (result.n_pilots > 1)
    label = f"width of the {interval_label(result.ci_prob, result.ci_kind)}"
    return chart.labelled(title, "number of classes of the pilot", label).draw(backend)
