"""Width of the interval, or power, against the size of the pilot."""

from typing import Any, Unpack

import numpy as np

from classex_bayes.evaluate.plan import USUAL_POWER, Plan
from classex_bayes.plots.chart import MUTED, Chart, require_type
from classex_bayes.plots.drawing import Drawing, plot_function
from classex_bayes.results import interval_label


@plot_function("error_band", "mean", "target")
def plot_plan(result: Plan, **drawing: Unpack[Drawing]) -> Chart:
    """Draw the width of the interval, or power, against the number of classes.

    Each number of repeats has a line. If some classes of a plan have no instance, each number of
    classes has a line against the number of instances. If a width is wanted, lines are its means
    over simulated pilots, and bands reach one standard deviation to both sides. Otherwise lines are
    power, and bands reach one standard error. The wanted width, or a power of 0.8, is a line of its
    own.

    Parameters
    ----------
    result : Plan
        What `classex_bayes.evaluate.plan.plan` returned.

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
    table = table.assign(mean=mean, **ends)
    if (table["repeats"] < 1).any():
        along, x_label = "instances", "number of test instances of the pilot"
        lines = {f"{classes:,} classes": rows for classes, rows in table.groupby("classes")}
    else:
        along, x_label = "classes", "number of classes of the pilot"
        lines = {
            f"{repeats:g} instance{'s' * (repeats > 1)} of each class": rows
            for repeats, rows in table.groupby("repeats")
        }
    chart = Chart()
    for name, rows in lines.items():
        k = rows[along].to_numpy()
        if result.n_pilots > 1:
            limits = rows["lower"].to_numpy(), rows["upper"].to_numpy()
            chart.band(name, k, *limits, visual="error_band")
        chart.curve(name, k, rows["mean"].to_numpy(), smooth=False)
    chart.level(goal, table[along].to_numpy(), level, visual="target", color=MUTED)
    title = f"Plan: {result.quantity} at {result.k:,} classes"
    title += f"\nbands: {bands}" * (result.n_pilots > 1)
    return chart.labelled(title, x_label, label)
