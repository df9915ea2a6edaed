"""Width of the interval against the size of the pilot."""

from typing import Any

import numpy as np
from arviz_plots import PlotCollection

from classex_bayes.evaluate.plan import Plan
from classex_bayes.exceptions import DataError
from classex_bayes.plots._panels import MUTED, Panels
from classex_bayes.results import interval_label


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
    panel = Panels({**dict.fromkeys(lines), goal: MUTED}, backend)
    for name, rows in lines.items():
        k, mean, sd = (rows[column].to_numpy() for column in ("classes", "width", "width_sd"))
        if found.n_pilots > 1:
            panel.band(name, k, np.maximum(mean - sd, 0), mean + sd)
        panel.line(name, k, mean)
    panel.level(goal, table["classes"].to_numpy(), found.width)
    title = f"Plan: accuracy at {found.k:,} classes"
    title += "\nbands: one standard deviation over pilots" * (found.n_pilots > 1)
    label = f"width of the {interval_label(found.ci_prob, found.ci_kind)}"
    return panel.finish(title, "number of classes of the pilot", label)
