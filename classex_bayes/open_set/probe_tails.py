r"""Local tails of the wrong scores of each probe, and how they differ between probes.

With the distances :math:`r_1 \le \dots \le r_j` of the j nearest wrong classes, the tail of a probe
has a location :math:`x = \log r_j` and an exponent m: among the enrolled classes, one is within the
distance d with probability :math:`(j / n) (d / r_j)^m`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import digamma, polygamma

from classex_bayes.arguments import as_matrix, finite_rows
from classex_bayes.bayes.tails.distance_scale import DistanceScale
from classex_bayes.bayes.tails.local_tails import (
    LARGEST_DEPTH,
    N_NEAREST,
    nearest_in_half,
    share_tied,
)
from classex_bayes.bayes.tails.scale_choice import LARGEST_TIED_SHARE
from classex_bayes.core.ranks.nearest import LENGTH, NearestClasses
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import BoolArray, FloatArray, IntArray

# Sampling variances of log m and of m x: those of logarithms of gamma variables.
_EXPONENT_NOISE = float(polygamma(1, N_NEAREST - 1))
_LOCATION_NOISE = float(polygamma(1, N_NEAREST))
# Shares of the probes whose exponents are cut to those of the rest: a wrong class that equals the
# probe makes any exponent.
_EXTREME = 1.0, 99.0
_SMALLEST_VARIANCE = 1e-6
_FEWEST_PROBES, _ROUNDING = 20, 1e-9


class ProbeLists(NamedTuple):
    """The nearest wrong classes of n probes.

    Attributes
    ----------
    log_distance : array of shape (n, M)
        Log distances, ascending; infinite where there is no class.
    classes : int array of shape (n, M)
        Positions of the classes among those enrolled.
    weight : array of shape (n,)
        Weights of the probes, summing to 1.
    owner : int array of shape (n,)
        Number of the person, or other class, that a probe is of.
    n_rivals : int
        Number of enrolled classes that a probe is not of: k1 - 1 if it is mated, else k1.
    """

    log_distance: FloatArray
    classes: IntArray
    weight: FloatArray
    owner: IntArray
    n_rivals: int

    @classmethod
    def of_task(cls, task: SourceTask, nearest: NearestClasses, scale: DistanceScale) -> Self:
        """Lists of the test instances, for the classes that they are not of."""
        log_distance, rivals = scale.log_distance(nearest.scores), task.n_classes - 1
        return cls(log_distance, nearest.classes, task.instance_weight, task.y, rivals)

    @classmethod
    def of_scores(
        cls, scores: Any, nearest: NearestClasses, scale: DistanceScale, n_classes: int
    ) -> Self:
        """Lists of non-mated probes from their scores (n, k1), each probe of a class of its own.

        `nearest` are the lists of the mated probes, whose direction and origin the scores share.
        """
        matrix = as_matrix(scores, "nonmated").astype(float)
        finite_rows(matrix, "nonmated")
        n, width = matrix.shape
        if width != n_classes:
            raise DataError(
                f"nonmated: found scores of {width} classes, expected the {n_classes} of the task"
            )
        if n < _FEWEST_PROBES:
            raise DataError(f"nonmated: found {n} probes, expected at least {_FEWEST_PROBES}")
        oriented = -matrix if nearest.negated else matrix
        if nearest.perfect is not None and oriented.max() > nearest.perfect + _ROUNDING:
            raise DataError(
                f"nonmated: found {matrix.flat[int(oriented.argmax())]:g}, better than a perfect "
                "score; expected scores of the same kind and direction as those of the task"
            )
        length = min(LENGTH, width)
        best = np.argpartition(-oriented, length - 1, axis=1)[:, :length]
        values = np.take_along_axis(oriented, best, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")
        log_distance = scale.log_distance(np.take_along_axis(values, order, axis=1))
        classes = np.take_along_axis(best, order, axis=1)
        # Scores beyond the origin of the scale have one distance, too.
        tied = share_tied(NearestClasses(classes, -log_distance, np.full(n, -np.inf)))
        if tied > LARGEST_TIED_SHARE:
            raise DataError(
                f"nonmated: the {N_NEAREST} best classes of {tied:.0%} of the probes have the "
                "same score, or a score better than the task allows; expected scores of the same "
                "kind as those of the task, with all their digits"
            )
        return cls(log_distance, classes, np.full(n, 1 / n), np.arange(n), n_classes)

    def at(self, kept: BoolArray) -> Self:
        """Some of the probes."""
        log_distance, classes, weight, owner, n_rivals = self
        weight = weight[kept] / weight[kept].sum()
        return type(self)(log_distance[kept], classes[kept], weight, owner[kept], n_rivals)

    def independent(self, design_effect: float) -> FloatArray:
        """Weights (n,) that sum to the number of independent probes.

        The design effect is that of dependence and of unequal weights together.
        """
        return self.weight * (len(self.weight) / design_effect)

    def above(self, log_threshold: float) -> IntArray:
        """Number (n,) of listed classes within a distance."""
        return (self.log_distance <= log_threshold).sum(axis=1)

    def nearest_in(self, in_half: BoolArray) -> tuple[FloatArray, BoolArray]:
        """Log distances (n, j) of the j nearest classes of a half, and which entries are in it."""
        here, places = nearest_in_half(self.classes, in_half)
        wrong = np.take_along_axis(self.log_distance, places, axis=1)
        return np.where(np.take_along_axis(here, places, axis=1), wrong, np.inf), here


def observed_tails(wrong: FloatArray) -> FloatArray:
    """Locations and log exponents (n, 2) from log distances (n, j), ascending.

    NaN where fewer than j classes have a distance; the log exponent alone is NaN where all of them
    are equally far.
    """
    location = np.where(np.isfinite(wrong[:, -1]), wrong[:, -1], np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.clip(location[:, None] - wrong[:, :-1], 0.0, LARGEST_DEPTH)
        log_exponent = digamma(N_NEAREST - 1) - np.log(ratios.sum(axis=1))
    known = np.isfinite(log_exponent)
    if known.any():
        lower, upper = np.percentile(log_exponent[known], _EXTREME)
        log_exponent[known] = np.clip(log_exponent[known], lower, upper)
    return np.column_stack([location, np.where(known, log_exponent, np.nan)])


@dataclass(frozen=True)
class TailHierarchy:
    r"""Normal law of location and log exponent between probes, beside their sampling noise.

    The covariance between probes is that of the tails in one half of the enrolled classes with
    those in the other half, whose noise is independent. Given the observed tail of a probe, its
    location and exponent are their posterior means, and log p at the depth q has the variance

    .. math:: v(q) = m^2 R_{11} + 2 m q R_{12} + q^2 R_{22},

    R being their posterior covariance.

    Attributes
    ----------
    mean : array of shape (2,)
        Mean location and log exponent.
    gain : array of shape (2, 2)
        What an observed deviation from the mean moves the posterior mean by.
    rest : array of shape (2, 2)
        R, the posterior covariance.
    """

    mean: FloatArray
    gain: FloatArray
    rest: FloatArray

    @classmethod
    def of(cls, whole: FloatArray, halves: Sequence[tuple[FloatArray, FloatArray]]) -> Self:
        """Law of the tails `whole` (n, 2), given those in pairs of halves, of `observed_tails`."""
        mean = np.nanmean(whole, axis=0)
        between = np.mean([_covariance(*pair) for pair in halves], axis=0)
        values, vectors = np.linalg.eigh((between + between.T) / 2)
        between = (vectors * np.maximum(values, _SMALLEST_VARIANCE)) @ vectors.T
        noise = np.diag([_LOCATION_NOISE * np.exp(-2 * mean[1]), _EXPONENT_NOISE])
        gain = np.linalg.solve(between + noise, between).T
        return cls(mean, gain, between - gain @ between)

    def shrunk(self, observed: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Locations and exponents (n,) given the observed tails; NaN where there is no tail."""
        away = observed - self.mean
        away[:, 1] = np.where(np.isnan(away[:, 1]), 0.0, away[:, 1])
        location, log_exponent = (self.mean + away @ self.gain.T).T
        return location, np.exp(log_exponent)

    def scatter(self, depth: FloatArray) -> FloatArray:
        """Standard deviation of log p at depths, given the observed tail."""
        exponent = float(np.exp(self.mean[1]))
        variance = exponent**2 * self.rest[0, 0] + 2 * exponent * depth * self.rest[0, 1]
        return np.sqrt(np.maximum(variance + depth**2 * self.rest[1, 1], _SMALLEST_VARIANCE))


def _covariance(first: FloatArray, second: FloatArray) -> FloatArray:
    """Covariance (2, 2) of the tails in one half with those in the other."""
    known = ~np.isnan(first + second).any(axis=1)
    if not known.any():
        return np.zeros((2, 2))
    away = [tails[known] - tails[known].mean(axis=0) for tails in (first, second)]
    return away[0].T @ away[1] / np.count_nonzero(known)
