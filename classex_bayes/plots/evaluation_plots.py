"""Results of evaluations: several classifiers, groups of instances, back-tests and plans."""

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from classex_bayes.arguments import class_count, one_of
from classex_bayes.evaluate.backtest import Backtest
from classex_bayes.evaluate.classifiers import ClassifierComparison
from classex_bayes.evaluate.groups import OVERALL, GroupedExtrapolation
from classex_bayes.evaluate.plan import USUAL_POWER, Plan
from classex_bayes.exceptions import DataError
from classex_bayes.plots.drawing import (
    N_CLASSES,
    Drawing,
    at_k,
    chosen_k,
    number_of,
    plot_function,
)
from classex_bayes.results.draws import interval_label
from classex_bayes.typing import ClassCounts

if TYPE_CHECKING:
    from classex_bayes.plots.panels import Panel

_LABELS = {
    "rmse": "root mean square error",
    "bias": "mean predicted minus true value",
    "crps": "CRPS",
    "interval_score": "interval score",
    "width": "mean width of the intervals",
}
_REACH = 2  # standard errors of a score


@plot_function("ci_band", "mean", "prob_best", n_panels=2)
def plot_classifiers(
    panels: "list[Panel]",
    result: ClassifierComparison,
    *,
    k: ClassCounts | None = None,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    **drawing: Unpack[Drawing],
) -> None:
    """Draw the accuracy, or another metric, of each classifier, and how probably it is the best.

    These are two panels. `plot_accuracy` of ``list(result.predictions.values())`` draws the first.

    Parameters
    ----------
    result : ClassifierComparison
        Result of `classex_bayes.compare_classifiers`.
    k : int or array-like of int, optional
        Numbers of classes that are drawn; all of the result by default.
    {shared}
    """
    accuracies, probabilities = panels
    metric, units = result.estimand.label, result.estimand.units
    best = result.prob_best().loc[chosen_k(result.k, k)]
    for name, prediction in result.predictions.items():
        line: Any = accuracies.prediction(name, at_k(prediction, k))
        probabilities.line(line.get_label(), best.index, best[name], "prob_best")
    title = f"Expected {metric} of {len(result.predictions)} classifiers"
    accuracies.label(title, number_of(units), metric)
    probabilities.label("", number_of(units), "probability of being best")


@plot_function("ci_band", "mean")
def plot_groups(
    panel: "Panel",
    result: GroupedExtrapolation,
    *,
    k: ClassCounts | None = None,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    **drawing: Unpack[Drawing],
) -> None:
    """Draw the accuracy of each group, and in the colour of text that of the mix.

    Parameters
    ----------
    result : GroupedExtrapolation
        Result of `classex_bayes.extrapolate_groups`.
    k : int or array-like of int, optional
        Numbers of classes that are drawn; all of the result by default.
    {shared}
    """
    for name, prediction in result.by_group.items():
        panel.prediction(f"{name} (share {result.mix[name]:.2g})", at_k(prediction, k))
    panel.prediction(OVERALL, at_k(result.overall, k), color=panel.ink, linestyle="-")
    panel.label("Expected accuracy by group", N_CLASSES, "accuracy")


@plot_function("error_band", "score", "nominal")
def plot_backtest(
    panel: "Panel",
    result: Backtest,
    score: str = "rmse",
    n_source: int | None = None,
    *,
    k: ClassCounts | None = None,
    **drawing: Unpack[Drawing],
) -> None:
    """Draw a score of every estimator against the number of classes.

    Parameters
    ----------
    result : Backtest
        Result of `classex_bayes.backtest`.
    score : str
        A column of its scores: "rmse", "bias", "crps", "interval_score", "width" or "coverage90"
        and its like, which have a line at the nominal level. Bands reach two Monte Carlo standard
        errors to both sides.
    n_source : int, optional
        Size of the pilots; needed where there are several.
    k : int or array-like of int, optional
        Numbers of classes that are drawn; all of the back-test by default.
    {shared}

    Raises
    ------
    DataError
        No such score or size, or no estimator that has the score.

    Examples
    --------
    >>> from classex_bayes import ClassExReg, backtest, load_glyphs
    >>> task = load_glyphs().task("rounded").subsample(100, random_seed=1)
    >>> result = backtest([ClassExReg(0.5)], task, 20, n_pilots=2, progressbar=False)
    >>> plot_backtest(result).get_ylabel()
    'root mean square error'
    """
    columns = result.scores.columns
    one_of(score, [name for name in columns if name in _LABELS or f"{name}_se" in columns], "score")
    sizes = result.scores.index.unique("n_source").tolist()
    if n_source is None and len(sizes) > 1:
        raise DataError(f"n_source: expected one of {', '.join(map(str, sizes))}, found None")
    size = sizes[0] if n_source is None else class_count(n_source, "n_source")
    one_of(size, sizes, "n_source")
    scores: Any = result.scores
    table = scores.xs(size, level="n_source").dropna(subset=score)
    if table.empty:
        raise DataError(f"score: no estimator has a {score}, which needs draws")
    drawn = chosen_k(table.index.unique("k"), k)
    table = table[table.index.isin(drawn, level="k")]
    nominal = score.removeprefix("coverage") if score.startswith("coverage") else ""
    title = f"Back-test: {int(table['n'].max())} pilots of {size} classes"
    for name in table.index.unique("estimator"):
        rows = table.xs(name, level="estimator").sort_index()
        values = rows[score].to_numpy()
        line = panel.line(name, rows.index, values, "score")
        if f"{score}_se" in rows and rows[f"{score}_se"].notna().all():
            reach = _REACH * rows[f"{score}_se"].to_numpy()
            lowest, highest = (0, 1) if nominal else (-np.inf, np.inf)
            lower, upper = np.clip([values - reach, values + reach], lowest, highest)
            panel.band(name, rows.index, lower, upper, "error_band", color=line.get_color())
    if nominal:
        panel.level("nominal", float(nominal) / 100, "nominal")
    if f"{score}_se" in table and table[f"{score}_se"].notna().any():
        title += "\nbands: two Monte Carlo standard errors"
    label = _LABELS.get(score, f"share of {nominal}% intervals that contain the true value")
    panel.label(title, N_CLASSES, label)


@plot_function("error_band", "mean", "target")
def plot_plan(panel: "Panel", result: Plan, **drawing: Unpack[Drawing]) -> None:
    """Draw the width of the interval, or power, against the number of classes.

    Each number of repeats, or of negatives, has a line. If some classes of a plan have no instance,
    each number of classes has a line against the number of instances. If a width is wanted, lines
    are its means over simulated pilots, and bands reach one standard deviation to both sides.
    Otherwise lines are power, and bands reach one standard error. The wanted width, or a power of
    0.8, is a line of its own.

    Parameters
    ----------
    result : Plan
        Result of `classex_bayes.plan`.
    {shared}
    """
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
    if "users" in table:
        along, x_label = "users", "number of users of the pilot"
        lines = {f"{n:,} negatives each": rows for n, rows in table.groupby("negatives")}
    elif (table["repeats"] < 1).any():
        along, x_label = "instances", "number of test instances of the pilot"
        lines = {f"{classes:,} classes": rows for classes, rows in table.groupby("classes")}
    else:
        along, x_label = "classes", "number of classes of the pilot"
        lines = {
            f"{repeats:g} instance{'s' * (repeats > 1)} of each class": rows
            for repeats, rows in table.groupby("repeats")
        }
    for name, rows in lines.items():
        line = panel.line(name, rows[along], rows["mean"], "mean")
        if result.n_pilots > 1:
            limits = rows["lower"], rows["upper"]
            panel.band(name, rows[along], *limits, "error_band", color=line.get_color())
    panel.level(goal, level, "target")
    title = f"Plan: {result.quantity} at {result.k:,} classes"
    title += f"\nbands: {bands}" * (result.n_pilots > 1)
    panel.label(title, x_label, label)
