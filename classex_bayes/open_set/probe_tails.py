r"""Local tails of the wrong scores of each probe, and the law of the scores in them.

The j nearest wrong classes of a probe are at the distances :math:`r_1 \le \dots \le r_j`. The tail
of the probe has the location :math:`x = \log r_j` and an exponent m: near :math:`r_j`, a random one
of n enrolled classes is within the distance d with probability :math:`(j / n) (d / r_j)^m`. At the
distance d it has the depth

.. math:: q = m u (1 + \gamma u), \qquad u = x - \log d,

in the tail. The curvature :math:`\gamma \ge 0` is that of all probes: exponents rise towards a
probe. Embeddings have a few coordinates with large variances and many with small ones, which
separate classes only at small distances.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import boxcox, digamma, gammaln, polygamma

from classex_bayes.arguments import as_matrix, finite_rows
from classex_bayes.bayes.tails.importance_sample import ImportanceSample
from classex_bayes.bayes.tails.local_tails import N_NEAREST, DistanceScale, is_tied
from classex_bayes.bayes.tails.scale_choice import LARGEST_TIED_SHARE, SHORTEST_LIST, ScaleFit
from classex_bayes.core.jit import compiled
from classex_bayes.core.linear_split import add_linearly
from classex_bayes.core.ranks.nearest import ROUNDING, NearestClasses
from classex_bayes.core.ranks.sources import ScoreMatrix
from classex_bayes.exceptions import DataError
from classex_bayes.task.ranked_lists import read_distances, read_ids, search_results
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import BoolArray, FloatArray, IntArray

# Sampling variances of log m and of m x, which are logarithms of gamma variables.
_EXPONENT_NOISE = float(polygamma(1, N_NEAREST - 1))
_LOCATION_NOISE = float(polygamma(1, N_NEAREST))
# Percentiles to which exponents are clipped. If a wrong class equals the probe, its exponent is
# arbitrary.
_EXTREME = 1.0, 99.0
_SMALLEST_VARIANCE = 1e-6
_FEWEST_PROBES = 20
_LARGEST_BEYOND = 0.05  # share of probes with scores that the task does not allow
# Deeper than any pilot reaches: p is 1e-13 of its value among the nearest classes.
DEEPEST = 30.0
_EVENT_DEPTHS = np.linspace(0.0, DEEPEST, 601)
# Normal priors of c, b and xi. Near-duplicates of some classes give xi < 0.
_MEAN, _SCALE = np.array([0.0, 1.0, 0.0]), np.array([0.2, 0.2, 0.15])
# Normal prior of the relative increase of an exponent over a depth of 1, and values to choose from.
_RISE, _RISE_SD, _RISES = 0.1, 0.1, np.linspace(0.0, 0.6, 61)
_SMALLEST_SLOPE, _IMPOSSIBLE = 0.05, -1e10


class ProbeLists(NamedTuple):
    """The nearest wrong classes of n probes."""

    log_distance: FloatArray  # (n, M), ascending; infinite where there is no class
    classes: IntArray  # (n, M): positions of the classes among those enrolled
    weight: FloatArray  # (n,): of the probes, summing to 1
    owner: IntArray  # (n,): number of the class, such as a person, that a probe belongs to
    n_wrong: int  # wrong classes of a probe: k1 - 1 if it is mated, else k1

    @classmethod
    def of_task(cls, task: SourceTask, nearest: NearestClasses, scale: DistanceScale) -> Self:
        """Lists of the wrong classes of the test instances."""
        weight, n_wrong = task.require("ranks").weight, task.n_classes - 1
        return cls(scale.log_distance(nearest.scores), nearest.classes, weight, task.y, n_wrong)

    @classmethod
    def of_nonmated(cls, lists: NearestClasses, n_classes: int, scale: DistanceScale) -> Self:
        """Lists of non-mated probes, each of another class, from `nonmated_lists`."""
        n, log_distance = len(lists.scores), scale.log_distance(lists.scores)
        # Scores beyond the origin of the scale have the same distance, so they are tied, too.
        near = log_distance[:, :N_NEAREST]
        tied = is_tied(near, np.full(n, np.inf), log_distance[:, -1]).mean()
        if tied > LARGEST_TIED_SHARE:
            raise DataError(
                f"nonmated: the {N_NEAREST} best classes of {tied:.0%} of the probes have the "
                "same score, or a score better than the task allows; expected scores of the same "
                "kind as those of the task, with all their digits"
            )
        return cls(log_distance, lists.classes, np.full(n, 1 / n), np.arange(n), n_classes)

    def at(self, kept: BoolArray) -> Self:
        """Some of the probes."""
        log_distance, classes, weight, owner, n_wrong = self
        weight = weight[kept] / weight[kept].sum()
        return type(self)(log_distance[kept], classes[kept], weight, owner[kept], n_wrong)

    def independent(self, design_effect: float) -> FloatArray:
        """Weights (n,) that sum to the number of independent probes.

        The design effect includes both dependence and unequal weights.
        """
        return self.weight * (len(self.weight) / design_effect)

    def nearest_in(self, half: BoolArray) -> FloatArray:
        """Log distances (n, j) of the nearest classes of a half (k1,), then infinite ones."""
        here = (self.classes >= 0) & half[self.classes]
        return np.sort(np.where(here, self.log_distance, np.inf), axis=1)[:, :N_NEAREST]


def nonmated_lists(nonmated: Any, task: SourceTask) -> NearestClasses:
    """The classes that score best for each non-mated probe, from all scores or from lists.

    Scores (n, k1), or a pair of classes and scores (n, M), have the direction of the task.
    """
    n_classes, negated = task.n_classes, task.nearest_classes.negated
    if isinstance(nonmated, tuple) and len(nonmated) == 2:
        ids = read_ids(nonmated[0], n_classes, task.classes)
        scores, no_class = read_distances(nonmated[1], ids), np.full(len(ids), -2)
        lists = search_results(ids, no_class, n_classes, scores, not negated, 0).nearest
        if lists is None or lists.scores.shape[1] < SHORTEST_LIST:
            length = 0 if lists is None else lists.scores.shape[1]
            raise DataError(
                f"nonmated: found lists of {length} classes, expected {SHORTEST_LIST} or more"
            )
    else:
        matrix = as_matrix(nonmated, "nonmated").astype(float)
        finite_rows(matrix, "nonmated")
        if matrix.shape[1] != n_classes:
            raise DataError(
                f"nonmated: found scores of {matrix.shape[1]} classes, expected the {n_classes} of "
                "the task, or a pair (ids, distances) of lists as in SourceTask.from_search"
            )
        source, no_class = ScoreMatrix(matrix, not negated), np.full(len(matrix), -1)
        lists = NearestClasses.of(source, no_class)
    if len(lists.scores) < _FEWEST_PROBES:
        raise DataError(
            f"nonmated: found {len(lists.scores)} probes, expected at least {_FEWEST_PROBES}"
        )
    return lists


def possible_scales(fits: Sequence[ScaleFit], lists: NearestClasses) -> list[ScaleFit]:
    """Fits on scales whose origin no score of non-mated probes exceeds, but for rounding."""
    best = float(lists.scores.max())
    rounding = ROUNDING * float(np.abs(lists.scores[np.isfinite(lists.scores)]).max())
    near = lists.scores[:, N_NEAREST - 1]
    beyond = max(float((near > fit.scale.best + rounding).mean()) for fit in fits)
    possible = [fit for fit in fits if best <= fit.scale.best + rounding]
    if beyond > _LARGEST_BEYOND or not possible:
        raise DataError(
            f"nonmated: found {abs(best):g}, better than a perfect score or than the task "
            "allows; expected scores of the same kind and direction as those of the task"
        )
    return possible


def observed_tails(wrong: FloatArray) -> FloatArray:
    """Locations and log exponents (n, 2) from log distances (n, j), ascending.

    Both are NaN if fewer than j classes have a distance. Only the log exponent is NaN if the j
    distances are equal, or if one of them is 0.
    """
    location = np.where(np.isfinite(wrong[:, -1]), wrong[:, -1], np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = (location[:, None] - wrong[:, :-1]).sum(axis=1)
        log_exponent = digamma(N_NEAREST - 1) - np.log(total)
    finite = np.isfinite(log_exponent)
    if finite.any():
        lower, upper = np.percentile(log_exponent[finite], _EXTREME)
        log_exponent[finite] = np.clip(log_exponent[finite], lower, upper)
    return np.column_stack([location, np.where(finite, log_exponent, np.nan)])


@dataclass(frozen=True)
class TailHierarchy:
    r"""Normal law of location and log exponent across probes, without their sampling noise.

    The tails of the probes are observed in two halves of the enrolled classes, with independent
    noise. The covariance across probes is therefore that between the two halves. Given the observed
    tail of a probe, its location and exponent are posterior means, and log p at the depth q has the
    variance

    .. math:: v(q) = m^2 R_{11} + 2 m q R_{12} + q^2 R_{22},

    where R is the posterior covariance of location and log exponent.
    """

    exponent: float  # geometric mean
    gain: FloatArray  # (2, 2): takes an observed deviation from the mean to the posterior mean's
    rest: FloatArray  # (2, 2): R

    @classmethod
    def of(cls, whole: FloatArray, halves: Sequence[tuple[FloatArray, FloatArray]]) -> Self:
        """Law from `observed_tails` (n, 2) among all classes, and from those in pairs of halves."""
        exponent = float(np.exp(np.nanmean(whole[:, 1])))
        between = np.mean([_covariance(*pair) for pair in halves], axis=0)
        values, vectors = np.linalg.eigh((between + between.T) / 2)
        between = (vectors * np.maximum(values, _SMALLEST_VARIANCE)) @ vectors.T
        noise = np.diag([_LOCATION_NOISE / exponent**2, _EXPONENT_NOISE])
        gain = np.linalg.solve(between + noise, between).T
        return cls(exponent, gain, between - gain @ between)

    def shrunk(self, observed: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior means (n,) of locations and exponents; NaN if a probe has no tail."""
        # The tails of a half are those of fewer classes, so they lie about another mean.
        mean = np.nanmean(observed, axis=0)
        away = observed - mean
        away[:, 1] = np.where(np.isnan(away[:, 1]), 0.0, away[:, 1])
        location, log_exponent = mean[:, None] + self.gain @ away.T
        return location, np.exp(log_exponent)

    def scatter(self, depth: FloatArray) -> FloatArray:
        """Standard deviation of log p at depths, given the observed tail."""
        variance = self.exponent**2 * self.rest[0, 0] + 2 * self.exponent * depth * self.rest[0, 1]
        return np.sqrt(np.maximum(variance + depth**2 * self.rest[1, 1], _SMALLEST_VARIANCE))


def _covariance(first: FloatArray, second: FloatArray) -> FloatArray:
    """Covariance (2, 2) of the tails in one half with those in the other."""
    in_both = ~np.isnan(first + second).any(axis=1)
    if not in_both.any():
        return np.zeros((2, 2))
    away = [tails[in_both] - tails[in_both].mean(axis=0) for tails in (first, second)]
    return away[0].T @ away[1] / np.count_nonzero(in_both)


@dataclass(frozen=True)
class HeldOutDepths:
    r"""Depths of the classes of one half in the tails that the classes of the other half give.

    Held-out classes have a positive depth. If tails were exact powers of the distance, j classes
    would have one on average, and depths would be exponential with mean 1. The calibration
    generalises the number and the law: a wrong class is deeper than q with the probability

    .. math:: p(q) = \frac{j}{n} e^{c} S(q), \qquad - \frac{d}{dq} \log S(q) = b (1 + q)^{\xi}.
    """

    depths: FloatArray  # (601,): weight of the held-out classes by depth
    weight: FloatArray  # (n_counts,): of the probes with 0, 1, 2, ... held-out classes
    scatter: float  # standard deviation of log p at depth 0

    @classmethod
    def of(
        cls,
        lists: ProbeLists,
        halves: Sequence[BoolArray],
        tails: Iterable[tuple[FloatArray, FloatArray]],
        design_effect: float,
        scatter: float,
        curvature: float,
    ) -> Self:
        """Count the classes outside each of the halves (k1,), in the tails of those inside.

        `tails` holds locations and exponents (n,) for each half. A location is NaN if a probe has
        no tail.
        """
        depths, number = np.zeros(_EVENT_DEPTHS.size), np.zeros(lists.classes.shape[1] + 1)
        # The weights of a probe in all halves add up to its weight.
        weight = lists.independent(design_effect) / len(halves)
        for half, tail in zip(halves, tails, strict=True):
            of_lists = lists.log_distance, lists.classes, weight, half
            _add_held_out(*of_lists, *tail, curvature, depths, number)
        return cls(depths, number, scatter)

    def log_density(self, points: FloatArray) -> FloatArray:
        """Log densities (n,) of the posterior at points (n, 3): c, b, xi; up to a constant.

        The numbers of held-out classes are Poisson. Their rate has a gamma law with the variance of
        the scatter.
        """
        prior = (((points - _MEAN) / _SCALE) ** 2).sum(axis=1)
        level, slope, shape = points.T[:, :, None]
        impossible = slope <= _SMALLEST_SLOPE
        slope = np.maximum(slope, _SMALLEST_SLOPE)
        rate, gamma = N_NEAREST * np.exp(level), self.scatter**-2
        counts = np.arange(self.weight.size)
        of_count = gammaln(counts + gamma) - gammaln(gamma) + gamma * np.log(gamma)
        of_count = of_count + counts * np.log(rate) - (counts + gamma) * np.log(rate + gamma)
        of_depth = np.log(slope) + shape * np.log1p(_EVENT_DEPTHS)
        of_depth = of_depth + log_survival(_EVENT_DEPTHS, slope, shape)
        total = of_count @ self.weight + of_depth @ self.depths - 0.5 * prior
        return np.where(impossible[:, 0], _IMPOSSIBLE, total)

    def sample(self, rng: np.random.Generator) -> ImportanceSample:
        """Importance sample of (c, b, xi)."""
        return ImportanceSample.of(self.log_density, _MEAN, _SCALE, rng)


@compiled(nogil=True)
def _add_held_out(
    log_distance: FloatArray,
    classes: IntArray,
    weight: FloatArray,
    half: BoolArray,
    location: FloatArray,
    exponent: FloatArray,
    curvature: float,
    depths: FloatArray,
    number: FloatArray,
) -> None:
    """Add the weights (n,) of held-out classes by depth, and of probes by their number."""
    for i in range(classes.shape[0]):
        if not np.isnan(location[i]):
            n_held_out = 0
            for place in range(classes.shape[1]):
                wrong = classes[i, place]
                inwards = min(location[i] - log_distance[i, place], DEEPEST / exponent[i])
                if inwards > 0 and wrong >= 0 and not half[wrong]:
                    n_held_out += 1
                    depth = exponent[i] * inwards * (1 + curvature * inwards)
                    add_linearly(weight[i], depth / DEEPEST * (depths.size - 1), depths)
            number[n_held_out] += weight[i]


def likeliest_curvature(
    lists: ProbeLists,
    halves: Sequence[BoolArray],
    tails: Iterable[tuple[FloatArray, FloatArray]],
    design_effect: float,
) -> float:
    r"""Mode of the curvature :math:`\gamma`, from the arguments of `HeldOutDepths.of`.

    Depths of held-out classes are exponential with an unknown rate b. The density of a log distance
    is :math:`b m (1 + 2 \gamma u) e^{-b q}`.
    """
    inwards: list[FloatArray] = []
    of_power_law: list[FloatArray] = []
    weight: list[FloatArray] = []
    for half, (location, exponent) in zip(halves, tails, strict=True):
        towards = location[:, None] - lists.log_distance
        held_out = (lists.classes >= 0) & ~half[lists.classes] & (towards > 0)
        probe, _ = np.nonzero(held_out)
        inwards.append(np.minimum(towards[held_out], DEEPEST / exponent[probe]))
        of_power_law.append(exponent[probe] * inwards[-1])
        weight.append(lists.independent(design_effect)[probe] / len(halves))
    u, q, share = map(np.concatenate, (inwards, of_power_law, weight))
    if not share.sum():
        return 0.0
    typical = np.exp(np.average(np.log(q / u), weights=share))
    curvature = _RISES[:, None] * float(typical) / 2
    log_likelihood = np.log1p(2 * curvature * u) @ share
    log_likelihood -= share.sum() * np.log((q * (1 + curvature * u)) @ share)
    log_prior = -0.5 * ((_RISES - _RISE) / _RISE_SD) ** 2
    return float(curvature[np.argmax(log_likelihood + log_prior), 0])


def log_survival(depth: FloatArray, slope: FloatArray, shape: FloatArray) -> FloatArray:
    r"""Log of S(q), whose slope is :math:`- b (1 + q)^{\xi}`."""
    return -slope * boxcox(1 + depth, 1 + shape)
