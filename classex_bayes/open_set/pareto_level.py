r"""Mean probability of wrong scores beyond the observed ones: Pareto tail of all pairs.

The excesses y of wrong scores over a high score u have the survival function
:math:`(1 + \xi y / \sigma)^{-1 / \xi}` (Pickands, Annals of Statistics 3, 1975).
"""

import numpy as np

from classex_bayes.bayes.tails.importance_sample import ImportanceSample, mode_of
from classex_bayes.open_set.depth_law import log_survival
from classex_bayes.open_set.level_drift import observed_level
from classex_bayes.open_set.probe_tails import ProbeLists
from classex_bayes.typing import FloatArray

_N_ABOVE = 40.0  # independent pairs above u
_PRIOR_SHAPE_SD, _PRIOR_SCALE_SD = 0.2, 2.0
_LOWEST = -60.0  # log probability
_SMALLEST_SHAPE, _IMPOSSIBLE = -0.5, -1e10


def pareto_level(
    lists: ProbeLists, grid: FloatArray, log_level: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Log of the mean probability (draws, T) at a descending grid: the Pareto tail from u on.

    The score is minus the log distance, so a power law of the distance has shape 0. u is the
    tightest threshold of the grid that 40 independent pairs reach.
    """
    reached = [np.prod(observed_level(lists, threshold)) for threshold in grid]
    start = max(int(np.count_nonzero(np.array(reached) >= _N_ABOVE)) - 1, 0)
    excess = grid[start] - lists.log_distance
    weight = np.broadcast_to(lists.weight[:, None], excess.shape)[excess >= 0]
    weight = weight / weight.sum() * reached[start]
    above = excess[excess >= 0]
    finite = np.isfinite(above)
    above, weight = above[finite], weight[finite]
    centre = np.array([np.log(np.average(above, weights=weight)), 0.0])
    scale = np.array([_PRIOR_SCALE_SD, _PRIOR_SHAPE_SD])

    def log_density(points: FloatArray) -> FloatArray:
        # One at a time, because there may be millions of excesses.
        return np.array([_log_density(above, weight, centre, scale, point) for point in points])

    mode = mode_of(log_density, centre, scale)
    drawn = ImportanceSample.of(log_density, mode, scale, rng).draw(len(log_level), rng)
    slope, shape = np.exp(-drawn[:, :1]), drawn[:, 1:]
    tail = log_survival(grid[start] - grid[start:], slope, shape)
    level = log_level.copy()
    level[:, start:] = level[:, [start]] + np.maximum(tail, _LOWEST)
    return level


def _log_density(
    above: FloatArray,
    weight: FloatArray,
    centre: FloatArray,
    scale: FloatArray,
    parameters: FloatArray,
) -> float:
    """Log density of the posterior at (log sigma, xi), up to a constant."""
    log_sigma, shape = parameters
    if 1 + shape * np.exp(-log_sigma) * above.max() <= 0 or shape < _SMALLEST_SHAPE:
        return _IMPOSSIBLE  # an excess lies beyond the end point of the law
    of_excess = -log_sigma + (1 + shape) * log_survival(above, np.exp(-log_sigma), shape)
    prior = (((parameters - centre) / scale) ** 2).sum()
    return float(weight @ of_excess - 0.5 * prior)
