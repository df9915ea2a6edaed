"""The tables of the papers as text: our numbers and the printed ones."""

import numpy as np
import pandas as pd

from studies.papers import published
from studies.papers.faces import face_table
from studies.papers.gaussian_simulation import rmse_table
from studies.papers.nips_table import hd_from_accuracy


def table1_cells(trials: pd.DataFrame, n_classes: int) -> pd.DataFrame:
    """Table 1 of jmlr2018 from `gaussian_trials`, at the smallest and the largest k of the trials.

    A row is an estimator. Printed numbers are in brackets.
    """
    table = rmse_table(trials)
    errors = published.table1()
    printed = errors[errors.index.get_level_values("k1") == n_classes].droplevel("k1")
    printed.columns = [int(factor * n_classes) for factor in printed.columns]
    wide = _with_printed(table["rmse"].unstack("k", sort=False).iloc[:, [0, -1]], printed)
    by_estimator = table.groupby(level="estimator", sort=False)
    wide["coverage"] = by_estimator["coverage"].mean().map(_share)
    if table["failed"].any():
        wide["failed"] = by_estimator["failed"].max().map(_share)
    return wide.rename_axis(index="estimator", columns=None)


def table2_cells(trials: pd.DataFrame) -> pd.DataFrame:
    """Table 2 of jmlr2018 from `face_trials`: a row an estimator, a column a size of pilots.

    Printed numbers are in brackets if the pilots have the paper's sizes.
    """
    table = face_table(trials)
    printed = published.table2()["rmse"].unstack("k1")
    wide = _with_printed(table["rmse"].unstack("k1", sort=False), printed)
    shares = table["coverage90"].map(_share).unstack("k1", sort=False)
    wide["coverage"] = shares.agg(" ".join, axis=1).str.strip()
    return wide.rename_axis(index="estimator", columns=None)


def table3_cells(table: pd.DataFrame) -> pd.DataFrame:
    """Table 3 of jmlr2018 from `telugu_table`: a row an extrapolation, a column an estimator.

    Intervals are in brackets.
    """
    ends = zip(table["lower"], table["upper"], strict=True)
    cells = table["predicted"].map("{:.3f}".format) + [_interval(*pair) for pair in ends]
    wide = cells.unstack("estimator", sort=False)
    wide = wide.drop(columns=["KDE(bcv)", "TwoParameter"], errors="ignore")
    regression = published.table3().reindex(wide.index).map(_number)
    wide.insert(0, "truth", regression.pop("truth"))
    wide = wide.join(regression.add_prefix("ClassExReg, ")).reset_index()
    return wide.rename(columns={"k1": "from", "k2": "to"}).set_index("classifier")


def nips_cells(trials: pd.DataFrame) -> pd.DataFrame:
    """The table of nips2016 from `nips_trials`, with the range over subsets in brackets."""
    rows = {}
    for classifier, numbers in published.telugu2016().iterrows():
        rows[classifier] = {name: _number(numbers[name]) for name in ("at 20", "at 400")}
        for name in ("EXP", "CON"):
            ours = (trials["classifier"] == classifier) & (trials["estimator"] == name)
            predicted = trials.loc[ours, "predicted"]
            span = _interval(predicted.min(), predicted.max())
            rows[classifier][name] = f"{numbers[name]:.3f}{span}"
        of_hd = {"printed": numbers["HD"], **hd_from_accuracy(numbers["at 20"])}
        rows[classifier] |= {f"HD, {name}": _number(value) for name, value in of_hd.items()}
    return pd.DataFrame.from_dict(rows, "index").rename_axis("classifier")


def _with_printed(values: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """Errors as text, the printed ones in brackets, with numbers of classes as headings."""
    known = printed.reindex(values.index, columns=values.columns)
    brackets = known.map(lambda value: "" if np.isnan(value) else f" ({value:.3f})")
    cells = values.map("{:.3f}".format) + brackets
    return cells.rename(columns="{:,}".format)


def _interval(lower: float, upper: float) -> str:
    return "" if np.isnan(lower) else f" ({lower:.3f} to {upper:.3f})"


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.3f}"


def _share(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.2f}"
