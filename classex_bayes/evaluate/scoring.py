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
    rows = {}
    for place, group in trials.groupby(["cell", "estimator", "k"], sort=False):
        fitted = group.dropna(subset="mean")
        if len(fitted):
            rows[place] = {
                "truth": fitted["truth"].mean(),
                "n": len(fitted),
                "failed": len(group) - len(fitted),
                **_averages(fitted, prob, levels),
            }
    if not rows:
        reasons = "; ".join(trials["note"].unique())
        raise DataError(f"estimators: no estimator was fitted in any trial ({reasons})")
    index = pd.MultiIndex.from_tuples(rows, names=["cell", "estimator", "k"])
    return pd.DataFrame(list(rows.values()), index=index)


def _averages(fitted: pd.DataFrame, ci_prob: float, levels: Sequence[float]) -> dict[str, float]:
    """Scores of one estimator at one k."""
    is_estimate = fitted["crps"].notna()  # which the middle of bounds is not
    error = (fitted["mean"] - fitted["truth"]).where(is_estimate).to_numpy()
    scores = {"bias": _mean(error)}
    square, square_se = _mean(error**2)
    rmse = np.sqrt(square)
    scores["rmse"] = rmse, 0.0 if rmse == 0 else square_se / (2 * rmse)
    scores["crps"] = _mean(fitted["crps"].to_numpy())
    lower, upper = (fitted[name].to_numpy(dtype=float) for name in ("lower", "upper"))
    truth = fitted["truth"].to_numpy(dtype=float)
    scores["interval_score"] = _mean(interval_score(lower, upper, truth, ci_prob))
    from_middle = np.abs(fitted["pit"].to_numpy(dtype=float) - 0.5)
    no_draws = np.isnan(from_middle)
    for level in levels:
        covered = np.where(no_draws, np.nan, from_middle <= level / 2)
        if level == ci_prob:  # of bounds, whose limits are known at this level alone
            within = np.where(np.isnan(lower), np.nan, (lower <= truth) & (truth <= upper))
            covered = np.where(no_draws, within, covered)
        scores[f"coverage{100 * level:g}"] = _share(covered)
    columns: dict[str, float] = {}
    for name, (value, standard_error) in scores.items():
        columns |= {name: value, f"{name}_se": standard_error}
    return columns | {"width": float(np.mean(upper - lower))}


def _mean(values: FloatArray) -> tuple[float, float]:
    """Mean and its standard error, missing where there is a single value."""
    spread = values.std(ddof=1) if values.size > 1 else np.nan
    return float(values.mean()), float(spread / np.sqrt(values.size))


def _share(held: FloatArray) -> tuple[float, float]:
    """Share of trials that held, and its standard error, which is above 0 if all or none held.

    The error is that of the share with one more trial of each kind (Agresti and Coull, The American
    Statistician 52, 1998).
    """
    more = held.size + 2
    adjusted = (held.sum() + 1) / more
    return float(held.mean()), float(np.sqrt(adjusted * (1 - adjusted) / more))
