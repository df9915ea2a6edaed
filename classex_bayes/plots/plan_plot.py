"""Width of the interval, or power, against the size of the pilot."""

from typing import Any

import numpy as np
from arviz_plots import PlotCollection

from classex_bayes.evaluate.plan import Plan
from classex_bayes.plots.chart import MUTED, Chart, require_type
from classex_bayes.results import interval_label

_USUAL_POWER = 0.8


def plot_plan(result: Plan, *, backend: str | None = None) -> PlotCollection:
    """Draw the width of the interval, or power, against the number of classes by repeats.

    Lines of widths are means over simulated pilots, bands reach one standard deviation to both
    sides. Without a wanted width the lines are power, the bands its standard error. The wanted
    width, or a power of 0.8, is a line of its own.

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
    of_width = result.width is not None
    level = _USUAL_POWER if result.width is None else result.width
    goal = f"wanted ({level:g})" if of_width else f"usual ({level:g})"
    chart = Chart({**dict.fromkeys(lines), goal: MUTED})
    for name, rows in lines.items():
        k = rows["classes"].to_numpy()
        if of_width:
            mean, sd = rows["width"].to_numpy(), rows["width_sd"].to_numpy()
        else:
            mean = rows["power"].to_numpy()
            sd = np.sqrt(mean * (1 - mean) / result.n_pilots)
        if result.n_pilots > 1:
            top = mean + sd if of_width else np.minimum(mean + sd, 1)
            chart.band(name, k, np.maximum(mean - sd, 0), top)
        chart.line(name, k, mean)
    chart.level(goal, table["classes"].to_numpy(), level)
    title = f"Plan: {result.quantity} at {result.k:,} classes"
    interval = interval_label(result.ci_prob, result.ci_kind)
    if of_width:
        title += "\nbands: one standard deviation over pilots" * (result.n_pilots > 1)
        return chart.labelled(
            title, "number of classes of the pilot", f"width of the {interval}"
        ).draw(backend)
    title += "\nbands: one standard error" * (result.n_pilots > 1)
    label = f"share of {interval}s without {result.excludes:g}"
    return chart.labelled(title, "number of classes of the pilot", label).draw(backend)
