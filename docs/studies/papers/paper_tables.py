"""The tables of the papers as text: our numbers and the printed ones."""

import numpy as np
import pandas as pd

from studies.papers import published
from studies.papers.faces import face_table
from studies.papers.gaussian_simulation import rmse_table
from studies.papers.nips_table import nips_table
from studies.papers.telugu import side_by_side


def table1_cells(trials: pd.DataFrame, n_classes: int) -> pd.DataFrame:
    """Table 1 of jmlr2018 from `gaussian_trials`: a row an estimator, a column a number of classes.

    The printed row follows the row of the same estimator.
    """
    table = rmse_table(trials)
    wide = table["rmse"].map("{:.3f}".format).unstack("k", sort=False)
    targets = wide.columns
    wide.columns = [f"{k:,}" for k in targets]
    by_estimator = table.groupby(level="estimator", sort=False)
    largest = by_estimator["bias"].agg(lambda biases: max(biases, key=abs))
    wide["largest bias"] = largest.map("{:+.3f}".format)
    wide["coverage"] = by_estimator["coverage"].mean().map(_share)
    if table["failed"].any():
        wide["failed"] = by_estimator["failed"].max().map(_share)
    errors = published.table1()
    for estimator, row in errors[errors.index.get_level_values("k1") == n_classes].iterrows():
        factors = [k / n_classes for k in targets]
        printed = [f"{row[f]:.3f}" if f in row.index else "" for f in factors]
        wide.loc[f"{estimator[1]}, printed"] = [*printed, *[""] * (wide.shape[1] - len(printed))]
    order = [row for name in by_estimator.groups for row in (name, f"{name}, printed")]
    wide = wide.loc[[row for row in order if row in wide.index]]
    return wide.rename_axis(index="estimator", columns=None)


def table2_cells(trials: pd.DataFrame) -> pd.DataFrame:
    """Table 2 of jmlr2018 from `face_trials`: a row an estimator, a column a size of pilots.

    Printed rows follow the others if the pilots have the paper's sizes.
    """
    table = face_table(trials)
    wide = table["rmse"].map("{:.3f}".format).unstack("k1", sort=False)
    shares = table["coverage90"].map(_share).unstack("k1", sort=False)
    wide["coverage"] = shares.agg(" ".join, axis=1).str.strip()
    printed = published.table2()["rmse"].map("{:.3f}".format).unstack("k1")
    printed = printed.rename(index="{}, printed".format).reindex(columns=wide.columns)
    wide = pd.concat([wide, printed.dropna(how="all")]).fillna("")
    return wide.rename(columns=str).rename_axis(index="estimator", columns=None)


def table3_cells(table: pd.DataFrame) -> pd.DataFrame:
    """Table 3 of jmlr2018 from `telugu_table`. Intervals stand in a row below their estimator."""
    wide = side_by_side(table)
    text = wide.map(lambda value: "" if np.isnan(value) else f"{value:.3f}")
    rows: dict[str, list[str]] = {}
    for name, cells in text.iterrows():
        rows[str(name)] = cells.tolist()
        if name in table.index.unique("estimator"):
            limits = table[["lower", "upper"]].xs(name, level="estimator").to_numpy()
            if not np.isnan(limits).all():
                rows[f"{name}, 90% interval"] = [_range(*ends) for ends in limits]
    return pd.DataFrame.from_dict(rows, "index", columns=text.columns).rename_axis("estimator")


def nips_cells(trials: pd.DataFrame) -> pd.DataFrame:
    """The table of nips2016 from `nips_trials`."""
    table = nips_table(trials)
    numbers = table.map(lambda value: "" if np.isnan(value) else f"{value:.3f}")
    spread = numbers["lowest"] + " to " + numbers["highest"] + " (sd " + numbers["sd"] + ")"
    numbers.insert(4, "range", spread.where(table["mean"].notna(), ""))
    return numbers.drop(columns=["lowest", "highest", "sd"])


def _range(lower: float, upper: float) -> str:
    return "" if np.isnan(lower) else f"{lower:.3f} to {upper:.3f}"


def _share(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.2f}"
