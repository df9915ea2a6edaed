"""The drift: how the mean probability of a wrong score above a threshold leaves its law.

The wrong scores of the pilot that reach a threshold determine the mean. As the threshold gets
tighter, the log of the mean drifts away from the law of the tails. Its steps are normal, with a
variance proportional to the decrease of the log probability. If no wrong score reaches a threshold,
nothing constrains the step, and the intervals widen. Each draw of the law also has a random error,
which the drift corrects as far as wrong scores reach.
"""

from typing import NamedTuple, Self

import numpy as np

from classex_bayes.core.linear_split import split_linearly
from classex_bayes.open_set.probe_lists import ProbeLists
from classex_bayes.typing import FloatArray

# Numbers of wrong scores above neighbouring thresholds have this ratio. Some wrong scores of a
# probe are above the loosest one.
_RATIO, _MOST_ABOVE = 1.5, 3.0
_N_BEYOND = 60
_FIRST_SD = 0.2  # prior sd of the drift at the loosest threshold, which many wrong scores reach
_NEWTON_STEPS, _LARGEST_MOVE, _LARGEST_CHANCE = 20, 0.5, 0.999


class LevelDrift(NamedTuple):
    """Draws of the drift at a grid of thresholds."""

    grid: FloatArray  # (T,): log distances, descending
    draws: FloatArray  # (draws, T)

    @classmethod
    def of(
        cls,
        lists: ProbeLists,
        grid: FloatArray,
        log_level: FloatArray,
        sd: float,
        rng: np.random.Generator,
    ) -> Self:
        """Draws given the wrong scores of the pilot that reach each threshold.

        `log_level` (draws, T) is the log of the mean probability that the law predicts, descending.
        `sd` is the standard deviation of the drift over a decrease of the log probability by 1.
        """
        level, pairs = observed_levels(lists, grid)
        # All pairs are before the loosest threshold; those that reach one are before the next.
        before, after = np.append(pairs[0], level[:-1] * pairs[1:]), level * pairs
        fall = np.maximum(-np.diff(log_level, prepend=0.0), 1e-9)
        variance = sd**2 * fall
        variance[:, 0] = _FIRST_SD**2
        return cls(grid, _steps(before, after, fall, variance, rng).cumsum(axis=1))

    def at(self, log_threshold: float) -> FloatArray:
        """Drift (draws,) at a threshold; constant beyond the ends of the grid."""
        (left, before), (right, after) = split_linearly(-log_threshold, -self.grid)
        return before * self.draws[:, left] + after * self.draws[:, right]


def threshold_grid(lists: ProbeLists, slope: float, most_above: float = _MOST_ABOVE) -> FloatArray:
    """Log distances, descending: observed wrong scores, then steps beyond the best of them.

    `slope` is that of the log probability in the log distance. The loosest threshold has
    `most_above` wrong scores of a probe above it, on average, or all that are listed. From one
    threshold to the next, the number of wrong scores falls by the factor 1.5.
    """
    finite = lists.log_distance[np.isfinite(lists.log_distance)]
    most = int(min(most_above * len(lists.weight), finite.size))
    n_observed = np.log(most) / np.log(_RATIO)
    numbers = np.unique(np.ceil(most / _RATIO ** np.arange(n_observed + 1)))
    nearest = np.sort(finite)[: most + 1]
    # Halfway to the next score, since the number above a score itself is too large on average.
    place = numbers.astype(int)
    observed = (nearest[place - 1] + nearest[np.minimum(place, nearest.size - 1)]) / 2
    beyond = observed[0] - np.log(_RATIO) / slope * np.arange(1, _N_BEYOND + 1)
    return np.unique(np.concatenate([observed, beyond]))[::-1]


def observed_levels(lists: ProbeLists, log_thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean shares (T,) of wrong classes above thresholds, and the independent pairs behind each.

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
    pair, owner, wrong = lists.weight[probe], lists.owner[probe], lists.classes[probe, place[order]]
    of_owners = np.bincount(lists.owner, lists.weight)
    level = np.zeros(numbers.size)
    pairs = np.full(numbers.size, lists.n_wrong / (lists.weight**2).sum())
    for row in np.flatnonzero(numbers).tolist():
        above = slice(numbers[row])
        total, single = pair[above].sum(), (pair[above] ** 2).sum()
        of_owner = np.bincount(owner[above], pair[above], of_owners.size) - total * of_owners
        of_class = np.bincount(wrong[above], pair[above], lists.n_wrong) - total / lists.n_wrong
        variance = (of_owner**2).sum() + (of_class**2).sum() - single
        level[row] = total / lists.n_wrong
        pairs[row] = total * lists.n_wrong / max(variance, single)
    return level, pairs


def _steps(
    before: FloatArray,
    after: FloatArray,
    fall: FloatArray,
    prior: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Draws (draws, m) of steps: `after` (m,) of `before` pairs reach the next threshold.

    The tails predict the shares e^-fall, and steps have the variances `prior`. The mean probability
    never increases as the threshold gets tighter, so a step is at most the fall.
    """
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
