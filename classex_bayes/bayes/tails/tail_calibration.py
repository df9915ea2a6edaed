r"""The model of local tails, calibrated by better classes in held-out halves of the classes.

A wrong class is nearer than the true one with probability

.. math:: \log p = \log \frac{j}{k - 1} + c - v e^{-\tau z} (b q + \delta (q - q_0)_+)
          + \frac{z}{\sqrt{j}}, \qquad z \sim N(0, 1),

where q is the depth of `classex_bayes.bayes.tails.local_tails` among k classes. For exact power
laws the level c is 0, the slope b is 1, and its change :math:`\delta` beyond
:math:`q_0 = 2 + \log j` and :math:`\tau` are 0. Depths are estimates. The deepest ones are in part
overestimates, so that the change is usually negative. z says how much worse than usual an instance
is: :math:`z / \sqrt{j}` is the scatter of the order statistic :math:`r_j`, and the slopes of
instances differ by the factor :math:`e^{-\tau z}`. v is 1, or, with probability :math:`\pi`,
uniform on [0, 1]. In the latter case the instance has look-alikes that the nearest wrong classes do
not predict, and z is 0. The classes are split into halves. One half gives q. The number of better
ones among the n classes of the other half is Binomial(n, p).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import betaincinv, expit

from classex_bayes.bayes.tails.importance_sample import N_PROPOSALS, ImportanceSample, LogDensity
from classex_bayes.bayes.tails.local_tails import LARGEST_DEPTH, N_NEAREST, DistanceScale, PartLists
from classex_bayes.bayes.tails.tail_prior import TailPrior, slope_spread
from classex_bayes.core.linear_split import on_grid_by_row
from classex_bayes.typing import BoolArray, FloatArray, IntArray

# Parameters of a fit and their descriptions.
TAIL_PARAMETERS = {
    "level": "c: level of log p, with p the probability that a wrong class is nearer; 0 for power "
    "laws",
    "slope": "b: rate at which log p falls with the depth; 1 for power laws",
    "look_alikes": "share of the instances that have look-alikes",
    "slope_spread": "tau: standard deviation of the log slopes of instances",
    "slope_change": "delta: change of the slope at depths with hardly any better classes",
}
# Depths at which the likelihood and laws are tabulated.
DEPTHS = np.linspace(0.0, LARGEST_DEPTH, 151)
_N_SPLITS = 4
_LARGEST_LOG_P, _SMALLEST_SHARE = -0.02, 1e-12
# Enough for means over instances: with tau = 0.3 the error is .001 in an accuracy.
_SCATTER_NODES, _HERMITE = np.polynomial.hermite_e.hermegauss(15)
_SCATTER_WEIGHT = _HERMITE / _HERMITE.sum()
# Depth at which p is about e^-2 / k1. Beyond it better classes are too rare to estimate the slope.
_INFORMATIVE_DEPTH = np.log(N_NEAREST) + 2.0
_SHORTER = (np.arange(10) + 0.5) / 10
_N_NODES = _SCATTER_NODES.size + _SHORTER.size
# Levels of the quantiles that represent the law of p given n_better, and how many values are tried
# between bounds.
_LEVELS, _WITHIN_BOUNDS = (np.arange(15) + 0.5) / 15, 20
_MOST_TERMS = 200_000  # of the likelihood at once: 1.6 MB, which a cache holds


@dataclass(frozen=True, eq=False)
class HeldOutTable:
    """Weight of instances by better classes in the other half and by depth; at most n in all.

    Classes that are tied with the true one are better in one half of the weight.
    """

    n_better: IntArray  # (n_counts,): numbers of better classes that occur
    weight: FloatArray  # (n_counts, 151): split linearly between the two nearest of `DEPTHS`
    n_wrong: float  # mean number of wrong classes in a half

    @classmethod
    def of(cls, lists: Sequence[PartLists], scale: DistanceScale, n_classes: int) -> "HeldOutTable":
        """Count instances by depth in a half of the classes and better ones in the other half."""
        largest = max(int(half.n_better.max()) for half in lists)
        table = np.zeros((largest + 1, DEPTHS.size))
        for half in lists:
            depth = half.depths(scale)
            inside = depth > 0
            at, weight = depth[inside], half.weight[inside] / 2
            for n_better in half.n_better[:, inside]:
                table += on_grid_by_row(n_better, largest + 1, at, weight, DEPTHS)
        occurs = table.any(axis=1)
        return cls(np.flatnonzero(occurs), table[occurs], (n_classes - 1) / 2)

    def group(self) -> xr.Dataset:
        """The table as a group of `idata`."""
        coords = {"n_better": self.n_better, "depth": DEPTHS}
        values = {"weight": (("n_better", "depth"), self.weight), "n_wrong": self.n_wrong}
        return xr.Dataset(values, coords)

    @classmethod
    def of_group(cls, group: xr.Dataset) -> "HeldOutTable":
        """Inverse of `group`."""
        return cls(group["n_better"].values, group["weight"].values, float(group["n_wrong"]))

    def log_likelihood(self, points: FloatArray) -> FloatArray:
        """Log-likelihoods (n,) of points (n, 5) of a `TailPrior`."""
        row, column = self._filled
        better, weight = self.n_better[row, None], self.weight[row, column]
        at_once = max(_MOST_TERMS // max(row.size * _N_NODES, 1), 1)
        values = np.empty(len(points))
        for first in range(0, len(points), at_once):
            part = slice(first, first + at_once)
            log_p, chance = tail_law(points[part], self.n_wrong)
            log_wins = np.log1p(-np.exp(log_p))
            terms = better * log_p[:, column] + (self.n_wrong - better) * log_wins[:, column]
            # Without the checks of `logsumexp`, which take longer than the sum.
            top = terms.max(axis=2, keepdims=True)
            terms -= top
            mean = (np.exp(terms, out=terms) @ chance[:, :, None])[..., 0]
            values[part] = (np.log(mean) + top[..., 0]) @ weight
        return values

    def symbolic_log_likelihood(self, parameters: Mapping[str, Any]) -> Any:
        """`log_likelihood` as a tensor, of the parameters that `TailPrior.register` returns."""
        import pytensor.tensor as pt

        row, column = self._filled
        level, slope, share, spread, change = (
            parameters[name]
            for name in ("level", "slope", "look_alikes", "slope_spread", "slope_change")
        )
        rate = pt.maximum(slope, 0.0)
        beyond = np.maximum(DEPTHS[column] - _INFORMATIVE_DEPTH, 0.0)[:, None]
        decline = rate * DEPTHS[column][:, None] + pt.maximum(change, -rate) * beyond
        scatter = _SCATTER_NODES / np.sqrt(N_NEAREST) - decline * pt.exp(-spread * _SCATTER_NODES)
        below = pt.concatenate([scatter, -decline * _SHORTER], axis=1)
        start = np.log(N_NEAREST / self.n_wrong) + level
        log_p = pt.minimum(start + below, _LARGEST_LOG_P)
        usual, look_alike = pt.log1p(-share), pt.log(share / _SHORTER.size)
        log_chance = pt.concatenate(
            [usual + np.log(_SCATTER_WEIGHT), pt.repeat(look_alike, _SHORTER.size)]
        )
        better, weight = self.n_better[row, None], self.weight[row, column]
        log_wins = pt.log1p(-pt.exp(log_p))
        terms = better * log_p + (self.n_wrong - better) * log_wins + log_chance
        return pt.dot(pt.logsumexp(terms, axis=1), weight)

    @cached_property
    def _filled(self) -> tuple[IntArray, IntArray]:
        row, column = np.nonzero(self.weight)
        return row, column


def posterior_density(prior: TailPrior, table: HeldOutTable) -> LogDensity:
    """Log density, up to a constant, of points (n, 5) given held-out classes."""
    return lambda points: table.log_likelihood(points) + prior.log_density(points)


def posterior_sample(
    prior: TailPrior,
    table: HeldOutTable,
    rng: np.random.Generator,
    numbers: Sequence[int] = N_PROPOSALS,
) -> ImportanceSample:
    """Importance sample of the parameters given held-out classes."""
    density = posterior_density(prior, table)
    return ImportanceSample.of(density, prior.mean, prior.scale, rng, numbers)


def random_halves(n_classes: int, rng: np.random.Generator) -> list[BoolArray]:
    """Random halves (k1,) of the classes, each followed by its complement."""
    half = np.zeros(n_classes, dtype=bool)
    half[: n_classes // 2] = True
    halves = [rng.permutation(half) for _ in range(_N_SPLITS)]
    return [side for half in halves for side in (half, ~half)]


def mean_log_p(points: FloatArray, n_wrong: float) -> tuple[FloatArray, FloatArray]:
    r"""Log p (n, 1) at depth 0, and its decline (n, 151) to the depths `DEPTHS`, without scatter.

    The slope is b, and :math:`b + \delta` beyond the depth :math:`q_0`. p never rises with depth.
    """
    level, slope, _, _, change = points.T[:, :, None]
    slope = np.maximum(slope, 0.0)
    beyond = np.maximum(DEPTHS - _INFORMATIVE_DEPTH, 0.0)
    decline = slope * DEPTHS + np.maximum(change, -slope) * beyond
    return np.log(N_NEAREST / n_wrong) + level, decline


def tail_law(
    points: FloatArray, n_wrong: float, scatter: FloatArray | float = N_NEAREST**-0.5
) -> tuple[FloatArray, FloatArray]:
    """Nodes of log p (n, 151, m) at `DEPTHS`, and their probabilities (n, m).

    `points` (n, 5) are those of a `TailPrior`. `scatter`, of shape (n, 151) or one for all, is the
    factor of z in log p.
    """
    start, decline = (values[..., None] for values in mean_log_p(points, n_wrong))
    share = np.clip(expit(points[:, 2:3]), _SMALLEST_SHARE, 1 - _SMALLEST_SHARE)
    factor = np.exp(-slope_spread(points)[..., None] * _SCATTER_NODES)
    usual = start - decline * factor + np.asarray(scatter)[..., None] * _SCATTER_NODES
    look_alike = start - decline * _SHORTER
    shorter = np.full(_SHORTER.size, 1 / _SHORTER.size)
    chance = np.concatenate([(1 - share) * _SCATTER_WEIGHT, share * shorter], axis=1)
    return np.minimum(np.concatenate([usual, look_alike], axis=2), _LARGEST_LOG_P), chance


def law_outside(lowest: int, highest: int, n_wrong: int) -> tuple[FloatArray, FloatArray]:
    """Nodes (m,) of log p given the number of better ones among n wrong classes; probabilities.

    With v better classes the law of p is Beta(v + 1/2, n - v + 1/2), the posterior under Jeffreys'
    prior. If v is known up to an interval, the law is a mixture in which log(v + 1/2) is uniform.
    """
    number = 1 if lowest == highest else _WITHIN_BOUNDS
    shape = np.geomspace(lowest + 0.5, highest + 0.5, number)[:, None]
    log_p = np.log(betaincinv(shape, n_wrong + 1 - shape, _LEVELS)).ravel()
    return log_p, np.full(log_p.size, 1 / log_p.size)
