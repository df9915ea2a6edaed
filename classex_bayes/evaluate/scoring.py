"""Proper scores of predictions, and their averages over trials with Monte Carlo errors."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from classex_bayes.arguments import probability
from classex_bayes.exceptions import DataError
from classex_bayes.results.draws import interval_settings
from classex_bayes.typing import FloatArray

LEVELS = (0.5, 0.8, 0.9, 0.95)


def crps(draws: FloatArray, truth: FloatArray) -> FloatArray:
    r"""Continuous ranked probability score (n,) of draws (S, n); for one draw the absolute error.

    .. math:: CRPS = \frac{1}{S} \sum_s |x_s - x|
              - \frac{1}{2 S^2} \sum_{s, s'} |x_s - x_{s'}|

    Smaller is better (Gneiting and Raftery, JASA 102, 2007, section 4.2).
    """
    ordered = np.sort(draws, axis=0)
    size = ordered.shape[0]
    gaps = (2 * np.arange(1, size + 1) - size - 1) @ ordered / size**2
    return np.abs(ordered - truth).mean(axis=0) - gaps


def probability_transform(draws: FloatArray, truth: FloatArray) -> FloatArray:
    """Share (n,) of draws (S, n) below the truth, ties counted half: uniform if calibrated."""
    return ((draws < truth).mean(axis=0) + (draws <= truth).mean(axis=0)) / 2


def interval_score(
    lower: FloatArray, upper: FloatArray, truth: FloatArray, ci_prob: float
) -> FloatArray:
    r"""Interval score (n,) of equal-tailed intervals: width plus a penalty for misses.

    .. math:: (u - l) + \frac{2}{\alpha} (l - x)^+ + \frac{2}{\alpha} (x - u)^+,
              \qquad \alpha = 1 - ci\_prob

    Smaller is better (Gneiting and Raftery, JASA 102, 2007, section 6.2).
    """
    missed = np.maximum(lower - truth, 0) + np.maximum(truth - upper, 0)
    return upper - lower + 2 / (1 - ci_prob) * missed


def score_trials(
    trials: pd.DataFrame, ci_prob: float | None = None, levels: Sequence[float] = LEVELS
) -> pd.DataFrame:
    """Average errors and scores of `run_trials`, each with its Monte Carlo standard error.

    Indexed by (cell, estimator, k): "truth" (mean), "n" trials, "failed" (number of further trials
    that could not be fitted), then "bias", "rmse", "crps", "interval_score" and "coverage50", ...,
    of the equal-tailed intervals at `levels`, each followed by its error ("bias_se", ...), and
    "width", the mean width of the intervals at `ci_prob`. Scores that need draws are missing for
    point estimates. Their CRPS is the mean absolute error. Bounds have no CRPS. Their error is that
    of the middle of the limits, and their coverage is known at `ci_prob` alone.
    """
    prob, _ = interval_settings(ci_prob, "eti")
    for level in levels:
        probability(level, "levels")
    place = ["cell", "estimator", "k"]
    fitted = trials.dropna(subset="mean").set_index(place)
    if fitted.empty:
        reasons = "; ".join(trials["note"].unique())
        raise DataError(f"estimators: no estimator was fitted in any trial ({reasons})")
    scores = _scores(fitted, prob, levels)
    grouped = scores.groupby(place, sort=False)
    means, errors, n = grouped.mean(), grouped.sem(), grouped.size()
    for name in means.columns[means.columns.str.startswith("coverage")]:
        # One more trial of each kind keeps the error above 0 if all or none held (Agresti and
        # Coull, The American Statistician 52, 1998).
        share = (n * means[name] + 1) / (n + 2)
        errors[name] = np.sqrt(share * (1 - share) / (n + 2))
    means["rmse"] = np.sqrt(means["rmse"])
    errors["rmse"] = (errors["rmse"] / (2 * means["rmse"])).where(means["rmse"] != 0, 0.0)
    columns = {"truth": fitted["truth"].groupby(place, sort=False).mean(), "n": n}
    columns["failed"] = trials.set_index(place)["mean"].isna().groupby(place).sum().loc[n.index]
    for name in means:
        columns |= {name: means[name], f"{name}_se": errors[name]}
    columns["width"] = (fitted["upper"] - fitted["lower"]).groupby(place, sort=False).mean()
    return pd.DataFrame(columns)


def _scores(fitted: pd.DataFrame, ci_prob: float, levels: Sequence[float]) -> pd.DataFrame:
    """Scores of every prediction, in the order of the table; "rmse" is the squared error."""
    numbers = fitted[["mean", "truth", "lower", "upper", "crps", "pit"]].astype(float)
    mean, truth, lower, upper, score, transform = (numbers[name] for name in numbers)
    error = (mean - truth).where(score.notna())  # the middle of bounds is no estimate
    scores = {"bias": error, "rmse": error**2, "crps": score}
    scores["interval_score"] = interval_score(lower, upper, truth, ci_prob)
    for level in levels:
        covered = ((transform - 0.5).abs() <= level / 2).astype(float).where(transform.notna())
        if level == ci_prob:  # of bounds, whose limits are known at this level alone
            within = ((lower <= truth) & (truth <= upper)).astype(float)
            covered = covered.fillna(within.where(lower.notna()))
        scores[f"coverage{100 * level:g}"] = covered
    return pd.DataFrame(scores)
