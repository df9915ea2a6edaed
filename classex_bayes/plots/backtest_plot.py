"""Scores of a back-test against the number of classes."""

from typing import Any, Unpack

import numpy as np

from classex_bayes.arguments import class_count, one_of
from classex_bayes.evaluate.backtest import Backtest
from classex_bayes.exceptions import DataError
from classex_bayes.plots.chart import MUTED, N_CLASSES, Chart, chosen_k, require_type
from classex_bayes.plots.drawing import Drawing, plot_function
from classex_bayes.typing import ClassCounts, FloatArray

_LABELS = {
    "rmse": "root mean square error",
    "bias": "mean predicted minus true value",
    "crps": "CRPS",
    "interval_score": "interval score",
    "width": "mean width of the intervals",
}
_NOMINAL = "nominal"
_REACH = 2


@plot_function("error_band", "score", "nominal")
def plot_backtest(
    result: Backtest,
    score: str = "rmse",
    n_source: int | None = None,
    *,
    k: ClassCounts | None = None,
    **drawing: Unpack[Drawing],
) -> Chart:
    """Draw a score of every estimator against the number of classes.

    Parameters
    ----------
    result : Backtest
        What `classex_bayes.backtest` returned.
    score : str
        A column of its scores: "rmse", "bias", "crps", "interval_score", "width" or "coverage90"
        and its like, which have a line at the nominal level. Bands reach two Monte Carlo standard
        errors to both sides.
    n_source : int, optional
        Size of the pilots; needed where there are several.
    k : int or array-like of int, optional
        Numbers of classes that are drawn; all of the back-test by default.

    Raises
    ------
    DataError
        No back-test, no such score or size, or no estimator that has the score.

    Examples
    --------
    >>> from classex_bayes.task.glyphs import load_glyphs
    >>> from classex_bayes.estimators.classexreg.classexreg import ClassExReg
    >>> from classex_bayes.evaluate.backtest import backtest
    >>> task = load_glyphs().task("rounded").subsample(100, random_seed=1)
    >>> result = backtest([ClassExReg(0.5)], task, 20, n_pilots=2, progressbar=False)
    >>> plot_backtest(result, backend="none").backend
    'none'
    """
    require_type(result, Backtest, "result")
    columns = result.scores.columns
    one_of(score, [name for name in columns if name in _LABELS or f"{name}_se" in columns], "score")
    sizes = result.scores.index.unique("n_source").tolist()
    if n_source is None and len(sizes) > 1:
        raise DataError(f"n_source: expected one of {', '.join(map(str, sizes))}, found None")
    size = sizes[0] if n_source is None else class_count(n_source, "n_source")
    one_of(size, sizes, "n_source")
    scores: Any = result.scores
    table = scores.xs(size, level="n_source").dropna(subset=score)
    if k is not None:
        drawn = chosen_k(table.index.unique("k"), k)
        table = table[table.index.isin(drawn, level="k")]
    names = table.index.unique("estimator").tolist()
    if not names:
        raise DataError(f"score: no estimator has a {score}, which needs draws")
    nominal = score.startswith("coverage")
    chart = Chart()
    for name in names:
        rows = table.xs(name, level="estimator").sort_index()
        sizes, values = rows.index.to_numpy(), rows[score].to_numpy()
        error: Any = rows.get(f"{score}_se")
        limits = None
        if nominal:
            limits = _wilson(values, rows["n"].to_numpy())
        elif error is not None and error.notna().all():
            limits = values - _REACH * error.to_numpy(), values + _REACH * error.to_numpy()
        if limits is not None:
            chart.band(name, sizes, *limits, visual="error_band")
        chart.curve(name, sizes, values, visual="score", smooth=False)
    if nominal:
        level = float(score.removeprefix("coverage")) / 100
        k_drawn = table.index.get_level_values("k").to_numpy()
        chart.level(_NOMINAL, k_drawn, level, visual="nominal", color=MUTED)
    label = _LABELS.get(score, f"share of {score.removeprefix('coverage')}% intervals that held")
    title = f"Back-test: {int(table['n'].max())} pilots of {size} classes"
    if any(mark.kind == "band" for mark in chart.marks):
        title += "\nbands: two Monte Carlo standard errors"
    return chart.labelled(title, N_CLASSES, label)


def _wilson(share: FloatArray, n: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Probabilities from which shares of n are two of their standard errors away."""
    square = _REACH**2 / n
    middle = (share + square / 2) / (1 + square)
    reach = np.sqrt(square * (share * (1 - share) + square / 4)) / (1 + square)
    return middle - reach, middle + reach
