r"""Mean probability of wrong scores beyond the observed ones: Pareto tail of all pairs.

The excesses y of wrong scores over a high score u have the survival function
:math:`(1 + \xi y / \sigma)^{-1 / \xi}` (Pickands, Annals of Statistics 3, 1975).
"""

import numpy as np

from classex_bayes.bayes.tails.importance_sample import ImportanceSample, mode_of
from classex_bayes.core.linear_split import on_grid
from classex_bayes.open_set.depth_law import log_survival
from classex_bayes.open_set.level_drift import observed_levels
from classex_bayes.open_set.probe_tails import ProbeLists
from classex_bayes.typing import FloatArray

_N_ABOVE = 40.0  # independent pairs above u
_PRIOR_SHAPE_SD, _PRIOR_SCALE_SD = 0.2, 2.0
_LOWEST = -60.0  # log probability
_SMALLEST_SHAPE, _IMPOSSIBLE = -0.5, -1e10
_N_CELLS = 1000  # of excesses


def pareto_level(
    lists: ProbeLists, grid: FloatArray, log_level: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Log of the mean probability (draws, T) at a descending grid: the Pareto tail from u on.

    The score is minus the log distance, so a power law of the distance has shape 0. u is the
    tightest threshold of the grid that 40 independent pairs reach.
    """
    observed, pairs = observed_levels(lists, grid)
    start = max(int(np.count_nonzero(observed * pairs >= _N_ABOVE)) - 1, 0)
    excess = grid[start] - lists.log_distance
    probe, place = np.nonzero((excess >= 0) & np.isfinite(excess))
    above, weight = excess[probe, place], lists.weight[probe]
    # The log density of an excess is nearly linear within a cell.
    cells = np.linspace(0.0, above.max(), _N_CELLS + 1)
    number = on_grid(above, weight * pairs[start] / lists.n_rivals, cells)
    centre = np.array([np.log(np.average(above, weights=weight)), 0.0])
    scale = np.array([_PRIOR_SCALE_SD, _PRIOR_SHAPE_SD])

    def log_density(points: FloatArray) -> FloatArray:
        log_sigma, shape = points.T[:, :, None]
        slope = np.exp(-log_sigma)
        # Where an excess lies beyond the end point of the law.
        impossible = (shape < _SMALLEST_SHAPE) | (1 + shape * slope * cells[-1] <= 0)
        of_excess = -log_sigma + (1 + shape) * log_survival(cells, slope, shape)
        prior = (((points - centre) / scale) ** 2).sum(axis=1)
        return np.where(impossible[:, 0], _IMPOSSIBLE, of_excess @ number - 0.5 * prior)

    mode = mode_of(log_density, centre, scale)
    drawn = ImportanceSample.of(log_density, mode, scale, rng).draw(len(log_level), rng)
    slope, shape = np.exp(-drawn[:, :1]), drawn[:, 1:]
    tail = log_survival(grid[start] - grid[start:], slope, shape)
    level = log_level.copy()
    level[:, start:] = level[:, [start]] + np.maximum(tail, _LOWEST)
    return level
