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
MOST_ABOVE = 3.0  # wrong scores of a probe above the loosest threshold of the drift
_N_BEYOND = 60
_NEWTON_STEPS, _LARGEST_MOVE = 20, 0.5
_LARGEST_CHANCE = 0.999


def threshold_grid(
    lists: ProbeLists, slope: float, most_above: float = MOST_ABOVE, ratio: float = RATIO
) -> FloatArray:
    """Log distances, descending: observed wrong scores, then steps beyond the best of them.

    `slope` is that of the log probability in the log distance. The loosest threshold has
    `most_above` wrong scores of a probe above it, on average, or all that are listed. From one
    threshold to the next, the number of wrong scores falls by the factor `ratio`.
    """
    finite = lists.log_distance[np.isfinite(lists.log_distance)]
    most = int(min(most_above * len(lists.weight), finite.size))
    numbers = np.unique(np.ceil(most / ratio ** np.arange(np.log(most) / np.log(ratio) + 1)))
    nearest = np.sort(np.partition(finite, most - 1)[:most])
    observed = nearest[numbers.astype(int) - 1]
    beyond = observed[0] - np.log(ratio) / slope * np.arange(1, _N_BEYOND + 1)
    return np.unique(np.concatenate([observed, beyond]))[::-1]


def observed_levels(lists: ProbeLists, log_thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean shares (T,) of the rivals above thresholds, and the independent pairs behind each.

    Pairs (probe, class) are dependent if they share the owner of the probe or the class. The
    variance of their weighted number is the sum of squared deviations of the owners plus that of
    the classes, minus that of single pairs, which both sums contain.
    """
    counted = (lists.log_distance <= log_thresholds.max()) & (lists.weight > 0)[:, None]
    probe, place = np.nonzero(counted)
    log_distance = lists.log_distance[probe, place]
    order = np.argsort(log_distance)
    numbers = np.searchsorted(log_distance[order], log_thresholds, side="right")
    probe = probe[order]
    pair, owner, rival = lists.weight[probe], lists.owner[probe], lists.classes[probe, place[order]]
    of_owners = np.bincount(lists.owner, lists.weight)
    level = np.zeros(numbers.size)
    pairs = np.full(numbers.size, lists.n_rivals / (lists.weight**2).sum())
    for row in np.flatnonzero(numbers).tolist():
        above = slice(numbers[row])
        total, single = pair[above].sum(), (pair[above] ** 2).sum()
        of_owner = np.bincount(owner[above], pair[above], of_owners.size) - total * of_owners
        of_class = np.bincount(rival[above], pair[above], lists.n_rivals) - total / lists.n_rivals
        variance = (of_owner**2).sum() + (of_class**2).sum() - single
        level[row] = total / lists.n_rivals
        pairs[row] = total * lists.n_rivals / max(variance, single)
    return level, pairs


def level_drift(
    lists: ProbeLists, grid: FloatArray, log_level: FloatArray, sd: float, rng: np.random.Generator
) -> FloatArray:
    """Draws (draws, T) of the drift at a descending grid (T,) of log distances.

    `log_level` (draws, T) is the log of the mean probability that the tails predict, descending.
    `sd` is the standard deviation of the drift over a decrease of the log probability by 1.
    """
    level, pairs = observed_levels(lists, grid)
    first = _first_step(level[0] * pairs[0], np.exp(log_level[:, 0]) * pairs[0], rng)
    fall = np.maximum(-np.diff(log_level), 1e-9)
    steps = _steps(level[:-1] * pairs[1:], level[1:] * pairs[1:], fall, sd, rng)
    return np.column_stack([first, steps]).cumsum(axis=1)


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


def _steps(
    before: FloatArray, after: FloatArray, fall: FloatArray, sd: float, rng: np.random.Generator
) -> FloatArray:
    """Draws (draws, m) of steps: `after` (m,) of `before` pairs reach the next threshold.

    The tails predict the shares e^-fall. The mean probability never increases as the threshold gets
    tighter, so a step is at most the fall.
    """
    prior = sd**2 * fall
    mode, variance = np.zeros_like(fall), prior.copy()
    # If no pair is left, the posterior is the prior.
    left = before > 0
    before, after, expected, prior = before[left], after[left], fall[:, left], prior[:, left]
    move = mode[:, left]
    for _ in range(_NEWTON_STEPS):
        share = np.minimum(np.exp(move - expected), _LARGEST_CHANCE)
        # Slope and curvature are multiplied by the prior variance, which may be 0.
        slope = (after - before * share) / (1 - share) * prior - move
        curvature = before * share / (1 - share) * prior + 1
        move += np.clip(slope / curvature, -_LARGEST_MOVE, _LARGEST_MOVE)
        move = np.minimum(move, expected)
    mode[:, left], variance[:, left] = move, prior / curvature
    # Drawn step by step, so that the first ones do not depend on how many follow.
    normal = rng.standard_normal(fall.T.shape).T
    return np.minimum(mode + np.sqrt(variance) * normal, fall)
