"""Width of the interval against the size of the pilot."""

from typing import Any

import numpy as np
from arviz_plots import PlotCollection

from classex_bayes.evaluate.plan import Plan
from classex_bayes.exceptions import DataError
from classex_bayes.plots._common import Panel


def plot_plan(found: Plan, *, backend: str | None = None) -> PlotCollection:
    """Draw the width of the interval against the number of classes, a line for each repeats.

    Lines are means over simulated pilots, bands reach one standard deviation to both sides; the
    wanted width is a line of its own.

    Parameters
    ----------
    found : Plan
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
    if not isinstance(found, Plan):
        raise DataError(f"found: expected a Plan, found {type(found).__name__}")
    table: Any = found.table
    lines = {
        f"{repeats} instance{'s' * (repeats > 1)} of each class": rows
        for repeats, rows in table.groupby("repeats")
    }
    goal = f"wanted ({found.width:g})"
    panel = Panel({**dict.fromkeys(lines), goal: "gray"}, backend)
    for name, rows in lines.items():
        k, mean, sd = (rows[column].to_numpy() for column in ("classes", "width", "width_sd"))
        if found.n_pilots > 1:
            panel.band(name, k, np.maximum(mean - sd, 0), mean + sd, alpha=0.2)
        panel.line(name, k, mean)
    sizes = table["classes"]
    if sizes.nunique() > 1:
        ends = np.array([sizes.min(), sizes.max()])
        panel.line(goal, ends, np.full(2, found.width))
    else:
        panel.points(goal, sizes.to_numpy()[:1], np.array([found.width]))
    title = f"Plan: accuracy at {found.k2} classes"
    label = f"width of the interval (eti{100 * found.prob:g})"
    return panel.finish(title, "number of classes of the pilot", label, log_x=True)
