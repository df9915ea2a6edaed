r"""Calibration of local tails by losses in held-out halves of the classes.

A wrong class is nearer than the true one with probability

.. math:: \log p = \log \frac{j}{k - 1} + c - b v q + \varepsilon, \qquad
          \varepsilon \sim N(0, 1 / j),

where q is the depth of `classex_bayes.bayes.tails.local_tails` among k classes. For exact power
laws the level c is 0 and the slope b is 1. The scatter :math:`\varepsilon` is that of the order
statistic :math:`r_j`. v is 1, or, with probability :math:`\pi`, uniform on [0, 1]. In the latter
case the instance has look-alikes that the nearest wrong classes do not predict. The classes are
split into halves. One half gives q. The losses among the n classes of the other half are
Binomial(n, p).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import xarray as xr
from scipy.special import expit

from classex_bayes.bayes.tails.distance_scale import DistanceScale
from classex_bayes.bayes.tails.importance_sample import ImportanceSample, mode_of
from classex_bayes.bayes.tails.local_tails import LARGEST_DEPTH, N_NEAREST, held_out_n_better
from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.typing import BoolArray, FloatArray, IntArray

# Parameters of a fit and their descriptions.
TAIL_PARAMETERS = {
    "level": "c: level of log p, with p the probability that a wrong class is nearer; 0 for power "
    "laws",
    "slope": "b: rate at which log p falls with the depth; 1 for power laws",
    "look_alikes": "share of the instances that have look-alikes",
    "tail_error": "error of the slope at depths with hardly any better classes",
}
# Depths at which the likelihood and laws are tabulated.
DEPTHS = np.linspace(0.0, LARGEST_DEPTH, 151)
_N_SPLITS = 4
# Priors: c ~ N, b ~ Student t, logit(pi) ~ N. Means and scales are those of the populations of
# docs/corpus.md. The t law allows for exponents that change with the distance.
_MEAN, _SCALE = np.array([-0.2, 1.08, -2.8]), np.array([0.12, 0.1, 0.6])
_SLOPE_FREEDOM = 3.0
_LARGEST_LOG_P, _SMALLEST_SHARE = -0.02, 1e-12
SCATTER_NODES, _HERMITE = np.polynomial.hermite_e.hermegauss(15)
SCATTER_WEIGHT = _HERMITE / _HERMITE.sum()
# Depth at which p is about e^-2 / k1. Beyond it losses are too rare to estimate the slope.
_INFORMATIVE_DEPTH = np.log(N_NEAREST) + 2.0
_SHORTER = (np.arange(10) + 0.5) / 10


@dataclass(frozen=True, eq=False)
class HeldOutTable:
    """Weight of the instances by losses in the other half and by depth. The sum is at most n.

    Attributes
    ----------
    losses : int array of shape (n_losses,)
        Losses that occur.
    weight : array of shape (n_losses, 151)
        Weights, split linearly between the two nearest of `DEPTHS`.
    n_rivals : float
        Mean number of wrong classes in a half.
    """

    n_better: IntArray
    weight: FloatArray
    n_rivals: float

    @classmethod
    def of(
        cls,
        nearest: NearestClasses,
        scale: DistanceScale,
        weight: FloatArray,
        halves: Sequence[BoolArray],
    ) -> "HeldOutTable":
        """Take depths from each of the halves (k1,), and losses from the other classes.

        `weight` (n,) holds the weights of the instances. They are divided by the number of halves.
        """
        depths, n_better = zip(
            *(held_out_n_better(nearest, scale, half) for half in halves), strict=True
        )
        depth, lost = np.concatenate(depths), np.concatenate(n_better)
        share = np.tile(weight, len(depths)) / len(depths)
        inside = depth > 0
        values, row = np.unique(lost[inside], return_inverse=True)
        table = on_grid_by_row(row, values.size, depth[inside], share[inside], DEPTHS)
        return cls(values, table, (halves[0].size - 1) / 2)

    def group(self) -> xr.Dataset:
        """The table as a group of `idata`."""
        coords = {"n_better": self.n_better, "depth": DEPTHS}
        values = {"weight": (("n_better", "depth"), self.weight), "n_rivals": self.n_rivals}
        return xr.Dataset(values, coords)

    @classmethod
    def of_group(cls, group: xr.Dataset) -> "HeldOutTable":
        """Inverse of `group`."""
        return cls(group["n_better"].values, group["weight"].values, float(group["n_rivals"]))

    def log_likelihood(self, parameters: FloatArray) -> float:
        """Log-likelihood of one point (level, slope, log odds of look-alikes)."""
        log_p, chance = tail_law(parameters, self.n_rivals)
        log_wins = np.log1p(-np.exp(log_p))
        row, column = self._filled
        lost = self.n_better[row, None]
        terms = lost * log_p[column] + (self.n_rivals - lost) * log_wins[column]
        top = terms.max(axis=1)
        log_chance = np.log(np.exp(terms - top[:, None]) @ chance) + top
        return float(self.weight[row, column] @ log_chance)

    @cached_property
    def _filled(self) -> tuple[IntArray, IntArray]:
        row, column = np.nonzero(self.weight)
        return row, column


def random_halves(n_classes: int, rng: np.random.Generator) -> list[BoolArray]:
    """Random halves (k1,) of the classes, each followed by its complement."""
    half = np.zeros(n_classes, dtype=bool)
    half[: n_classes // 2] = True
    halves = [rng.permutation(half) for _ in range(_N_SPLITS)]
    return [side for half in halves for side in (half, ~half)]


def split_linearly(values: FloatArray, grid: FloatArray) -> list[tuple[IntArray, FloatArray]]:
    """Places on an even grid and shares of the two points next to each value."""
    position = np.clip((values - grid[0]) / (grid[1] - grid[0]), 0, grid.size - 1)
    left = np.minimum(position.astype(np.int64), grid.size - 2)
    return [(left, 1 - (position - left)), (left + 1, position - left)]


def on_grid(values: FloatArray, weight: FloatArray | float, grid: FloatArray) -> FloatArray:
    """Weight of the values at each point of an even grid, split linearly."""
    return on_grid_by_row(0, 1, values, weight, grid)[0]


def on_grid_by_row(
    row: IntArray | int,
    n_rows: int,
    values: FloatArray,
    weight: FloatArray | float,
    grid: FloatArray,
) -> FloatArray:
    """As `on_grid`, separately for the values of each row: shape (n_rows, m)."""
    total = np.zeros(n_rows * grid.size)
    for column, part in split_linearly(values, grid):
        total += np.bincount(row * grid.size + column, part * weight, total.size)
    return total.reshape(n_rows, grid.size)


def tail_law(
    parameters: FloatArray, n_rivals: float, scatter: FloatArray | float = N_NEAREST**-0.5
) -> tuple[FloatArray, FloatArray]:
    """Nodes of log p (151, m) at `DEPTHS`, and their probabilities (m,).

    `parameters` are level, slope and log odds of look-alikes. `scatter` is the standard deviation
    of log p, one for each depth or for all.
    """
    level, slope, odds = parameters
    share = max(float(expit(odds)), _SMALLEST_SHARE)
    base = np.log(N_NEAREST / n_rivals) + level
    usual = (base - slope * DEPTHS)[:, None] + np.reshape(scatter, (-1, 1)) * SCATTER_NODES
    look_alike = base - slope * DEPTHS[:, None] * _SHORTER
    chance = np.concatenate(
        [
            (1 - share) * SCATTER_WEIGHT,
            np.full(_SHORTER.size, share / _SHORTER.size),
        ]
    )
    return np.minimum(np.hstack([usual, look_alike]), _LARGEST_LOG_P), chance


def tail_law_with_error(
    parameters: FloatArray,
    tail_error: float,
    n_rivals: float,
    scatter: FloatArray | float = N_NEAREST**-0.5,
) -> tuple[FloatArray, FloatArray]:
    r"""As `tail_law`, with the slope :math:`b + \delta` beyond the depth :math:`2 + \log j`.

    `tail_error` is :math:`\delta`, the error of the slope at depths with hardly any better classes.
    """
    log_p, chance = tail_law(parameters, n_rivals, scatter)
    error = max(tail_error, -parameters[1])  # p never rises with the depth
    return log_p - (error * np.maximum(DEPTHS - _INFORMATIVE_DEPTH, 0.0))[:, None], chance


def law_outside(lowest: int, highest: int, n_classes: int) -> tuple[FloatArray, FloatArray]:
    """Nodes (m,) of log p given the losses on k1 classes, and their probabilities.

    If the losses are known up to an interval, log p is uniform between its ends.
    """
    ends = np.log((np.array([lowest, highest]) + 0.5) / n_classes)
    centres = np.linspace(ends[0], ends[1], 1 if lowest == highest else 20)
    log_p = np.add.outer(centres, SCATTER_NODES / np.sqrt(lowest + 0.5))
    return log_p.ravel(), np.tile(SCATTER_WEIGHT / centres.size, centres.size)


def log_prior(parameters: FloatArray) -> float:
    """Log prior density of level, slope and log odds of look-alikes, up to a constant."""
    level, slope, odds = (((parameters - _MEAN) / _SCALE) ** 2).tolist()
    of_slope = (_SLOPE_FREEDOM + 1) * np.log1p(slope / _SLOPE_FREEDOM)
    return float(-0.5 * (level + odds + of_slope))


def log_density(table: HeldOutTable, point: FloatArray) -> float:
    """Log density of the posterior at (level, slope, log odds of look-alikes), unnormalised."""
    return table.log_likelihood(point) + log_prior(point)


def tail_mode(table: HeldOutTable) -> tuple[FloatArray, float]:
    """Mode of the posterior, and the log density there, by which scales of scores are compared."""
    return mode_of(partial(log_density, table), _MEAN, _SCALE)


def tail_sample(
    table: HeldOutTable, mode: FloatArray, rng: np.random.Generator
) -> ImportanceSample:
    """Importance sample of level, slope and log odds of look-alikes."""
    return ImportanceSample.of(partial(log_density, table), mode, _SCALE, rng)
