"""Trials of a study of coverage: in several processes, and their errors in each cell."""

import numpy as np
from joblib import Parallel, delayed

from studies.pages import markdown


def all_rows(pilot, cases, jobs):
    """Rows of `pilot` for the arguments of every case, in their order."""
    rows = Parallel(n_jobs=jobs)(delayed(pilot)(*case) for case in cases)
    return [row for rows_of_one in rows for row in rows_of_one]


def summary(trials, by):
    """Errors in each cell, from columns "truth", "mean", "lower" and "upper".

    The columns are the number of pilots, the share of intervals that contained the true accuracy,
    bias, RMSE and mean width.
    """
    error = trials["mean"] - trials["truth"]
    trials = trials.assign(
        held=trials["truth"].between(trials["lower"], trials["upper"]),
        bias=error,
        rmse=error**2,
        width=trials["upper"] - trials["lower"],
    )
    groups = trials.groupby(by, sort=False)
    cells = groups[["held", "bias", "rmse", "width"]].mean()
    cells.insert(0, "pilots", groups.size())
    return cells.assign(rmse=np.sqrt(cells["rmse"])).reset_index()


def mean_over_cells(cells, name):
    """Table of means over cells of one population, pilot and `name`, and the range of "held"."""
    groups = cells.groupby(["population", "pilot", name], sort=False)
    table = groups[["held", "bias", "rmse", "width"]].mean()
    held = groups["held"].agg(["min", "max"]).itertuples(index=False)
    table.insert(1, "of the cells", [f"{low:.2f} to {high:.2f}" for low, high in held])
    formats = {"held": ".2f", "bias": "+.3f", "RMSE": ".3f", "width": ".3f"}
    return markdown(table.reset_index().rename(columns={"rmse": "RMSE"}), formats)
