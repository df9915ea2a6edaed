r"""Drift of the mean probability of a wrong score above a threshold from the local tails.

As the threshold gets tighter, the log of the mean probability may drift away from the tails. Steps
of the drift are normal, with a variance proportional to the decrease of the log probability.
The number of wrong scores that reach each threshold constrains the steps. If no wrong score of the
pilot reaches a threshold, nothing constrains the step, and the intervals widen.
"""

import numpy as np

from classex_bayes.open_set.probe_tails import ProbeLists
from classex_bayes.typing import FloatArray

# Prior sd of the drift at the loosest threshold, which many wrong scores reach.
_FIRST_SD = 0.2
RATIO = 1.5  # of the numbers of wrong scores above neighbouring thresholds
_MOST_ABOVE = 3.0  # wrong scores of a probe above the loosest threshold, on average
_N_BEYOND = 60
_NEWTON_STEPS, _LARGEST_MOVE = 20, 0.5
_LARGEST_CHANCE = 0.999


def threshold_grid(lists: ProbeLists, slope: float, ratio: float = RATIO) -> FloatArray:
    """Log distances, descending: observed wrong scores, then steps beyond the best of them.

    `slope` is that of the log probability in the log distance. From one threshold to the next, the
    number of wrong scores falls by the factor `ratio`.
    """
    finite = np.sort(lists.log_distance[np.isfinite(lists.log_distance)])
    most = min(int(_MOST_ABOVE * len(lists.weight)), finite.size)
    numbers = np.unique(np.ceil(most / ratio ** np.arange(np.log(most) / np.log(ratio) + 1)))
    observed = finite[numbers.astype(int) - 1]
    beyond = observed[0] - np.log(ratio) / slope * np.arange(1, _N_BEYOND + 1)
    return np.unique(np.concatenate([observed, beyond]))[::-1]


def observed_level(lists: ProbeLists, log_threshold: float) -> tuple[float, float]:
    """Mean share of the rivals above a threshold, and the number of independent pairs behind it.

    Pairs (probe, class) are dependent if they share the owner of the probe or the class. The
    variance of their weighted number is the sum of squared deviations of the owners plus that of
    the classes, minus that of single pairs, which both sums contain.
    """
    above = lists.log_distance <= log_threshold
    pair = np.broadcast_to(lists.weight[:, None], above.shape)[above]
    total = float(pair.sum())
    alone = lists.n_rivals / float((lists.weight**2).sum())
    if total == 0:
        return 0.0, alone
    of_owner = np.bincount(lists.owner, lists.weight * (above.sum(axis=1) - total))
    of_class = np.bincount(lists.classes[above], pair, lists.n_rivals) - total / lists.n_rivals
    single = float((pair**2).sum())
    variance = float((of_owner**2).sum() + (of_class**2).sum()) - single
    return total / lists.n_rivals, total * lists.n_rivals / max(variance, single)


def level_drift(
    lists: ProbeLists, grid: FloatArray, log_level: FloatArray, sd: float, rng: np.random.Generator
) -> FloatArray:
    """Draws (draws, T) of the drift at a descending grid (T,) of log distances.

    `log_level` (draws, T) is the log of the mean probability that the tails predict, descending.
    `sd` is the standard deviation of the drift over a decrease of the log probability by 1.
    """
    drift = np.empty_like(log_level)
    before = 0.0
    for place, log_threshold in enumerate(grid):
        level, pairs = observed_level(lists, log_threshold)
        if place == 0:
            drift[:, 0] = _first_step(level * pairs, np.exp(log_level[:, 0]) * pairs, rng)
        else:
            fall = np.maximum(log_level[:, place - 1] - log_level[:, place], 1e-9)
            steps = _step(before * pairs, level * pairs, fall, sd, rng)
            drift[:, place] = drift[:, place - 1] + steps
        before = level
    return drift


def _first_step(number: float, expected: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draws of the drift, given a Poisson `number` with mean expected * exp(drift)."""
    move = np.zeros_like(expected)
    for _ in range(_NEWTON_STEPS):
        mean = expected * np.exp(move)
        curvature = mean + _FIRST_SD**-2
        slope = number - mean - move / _FIRST_SD**2
        move += np.clip(slope / curvature, -_LARGEST_MOVE, _LARGEST_MOVE)
    sd = (expected * np.exp(move) + _FIRST_SD**-2) ** -0.5
    return move + sd * rng.standard_normal(expected.size)


def _step(
    before: float, after: float, fall: FloatArray, sd: float, rng: np.random.Generator
) -> FloatArray:
    """Draws of steps, given that `after` of `before` pairs also reach the tighter threshold.

    The tails predict the share e^-fall. The mean probability never increases as the threshold gets
    tighter, so a step is at most the fall.
    """
    variance = sd**2 * fall
    if variance.max() == 0:
        return np.zeros_like(fall)
    move = np.zeros_like(fall)
    for _ in range(_NEWTON_STEPS):
        share = np.minimum(np.exp(move - fall), _LARGEST_CHANCE)
        slope = (after - before * share) / (1 - share) - move / variance
        curvature = before * share / (1 - share) + 1 / variance
        move += np.clip(slope / curvature, -_LARGEST_MOVE, _LARGEST_MOVE)
        move = np.minimum(move, fall)
    return np.minimum(move + curvature**-0.5 * rng.standard_normal(fall.size), fall)
