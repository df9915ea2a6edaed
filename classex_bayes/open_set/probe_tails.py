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

from classex_bayes.array_access import as_matrix, finite_rows, is_frame, with_labels
from classex_bayes.bayes.tails.depths import (
    LARGEST_TIED_SHARE,
    N_NEAREST,
    DistanceScale,
    is_tied,
)
from classex_bayes.bayes.tails.importance_sample import ImportanceSample
from classex_bayes.core.linear_split import on_grid
from classex_bayes.core.ranks.embeddings import EmbeddingScores, finite_embeddings
from classex_bayes.core.ranks.nearest import ROUNDING, SHORTEST_LIST, NearestClasses
from classex_bayes.core.ranks.sources import ScoreMatrix
from classex_bayes.exceptions import DataError
from classex_bayes.task.class_labels import first_moved, refuse_disorder
from classex_bayes.task.lists import ListedRanks
from classex_bayes.task.search_results import random_order, read_lists
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import BoolArray, FloatArray, IntArray, NumberArray

# Sampling variances of log m and of m x, which are logarithms of gamma variables.
_EXPONENT_NOISE = float(polygamma(1, N_NEAREST - 1))
_LOCATION_NOISE = float(polygamma(1, N_NEAREST))
# Percentiles to which exponents are clipped. If a wrong class equals the probe, its exponent is
# arbitrary.
_EXTREME = 1.0, 99.0
_SMALLEST_VARIANCE = 1e-6
_FEWEST_PROBES = 20
_LARGEST_BEYOND = 0.05  # share of probes with scores that the task does not allow
# Deeper than true classes are in `tail_model.DEPTHS`, since thresholds for a small FPIR with many
# classes lie beyond all scores of a pilot: p is 1e-13 of its value among the nearest classes.
DEEPEST = 30.0
THRESHOLD_DEPTHS = np.linspace(0.0, DEEPEST, 301)
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

    They are scores (n, k1) or a pair of classes and scores (n, M), in the direction of the task, or
    embeddings (n, d).
    """
    n_classes, negated = task.n_classes, task.nearest_classes.negated
    matrices = isinstance(nonmated, list) and all(getattr(x, "ndim", 0) == 2 for x in nonmated)
    if (isinstance(nonmated, tuple) or matrices) and len(nonmated) == 2:
        ids, distances = map(with_labels, nonmated)
        refuse_disorder(ids, distances, ("ids", "distances"))
        found = read_lists(ids, distances, n_classes, task.classes, not negated)
        found = found.with_ties_broken(random_order).without_cut_ties(n_classes)
        lists = ListedRanks.of(found.without_repeated(), n_classes, negated=negated).nearest
        if lists is None or lists.scores.shape[1] < SHORTEST_LIST:
            length = 0 if lists is None else lists.scores.shape[1]
            raise DataError(
                f"nonmated: found lists of {length} classes, expected {SHORTEST_LIST} or more"
            )
    else:
        nonmated = with_labels(nonmated)
        columns = list(nonmated.columns) if is_frame(nonmated) else []
        if (place := first_moved(task.classes or (), columns)) is not None:
            raise DataError(
                f"nonmated: the columns are the classes of the task in another order; column "
                f"{place} is {columns[place]!r}; pass nonmated[task.classes]"
            )
        source = _nonmated_source(as_matrix(nonmated, "nonmated"), task)
        lists = NearestClasses.of(source, np.full(source.shape[0], -1))
    if len(lists.scores) < _FEWEST_PROBES:
        raise DataError(
            f"nonmated: found {len(lists.scores)} probes, expected at least {_FEWEST_PROBES}"
        )
    return lists


def _nonmated_source(matrix: NumberArray, task: SourceTask) -> ScoreMatrix:
    """Scores of non-mated probes, from their scores (n, k1) or embeddings (n, d)."""
    width, n_classes = matrix.shape[1], task.n_classes
    source, of_embeddings = task.require("ranks").source, ""
    if isinstance(source, EmbeddingScores):
        dim = source.gallery.shape[1]
        if width == dim == n_classes:
            raise DataError(
                f"nonmated: found {width} columns, expected scores of the {width} classes or "
                f"embeddings of {width} coordinates, which cannot be distinguished here; pass "
                "candidate lists (ids, distances) as in SourceTask.from_search"
            )
        if width == dim:
            finite_embeddings(matrix, "nonmated", source.distance)
            return ScoreMatrix(source.scores_of(matrix), True)
        of_embeddings = f", embeddings of {dim} coordinates"
    if width != n_classes:
        raise DataError(
            f"nonmated: found {width} columns, expected scores of the {n_classes} classes of the "
            f"task{of_embeddings}, or a pair (ids, distances) of lists as in SourceTask.from_search"
        )
    scores = matrix.astype(float)
    finite_rows(scores, "nonmated")
    return ScoreMatrix(scores, not task.nearest_classes.negated)


def refuse_other_scores(lists: NearestClasses, task: SourceTask) -> None:
    """Raise DataError if scores of non-mated probes are not of the kind of the task's.

    None is better than a perfect score, but for rounding. If there is no such score, the nearest
    classes of nearly all probes score no better than the best class of the task.
    """
    of_task = task.nearest_classes
    best, near = float(lists.scores.max()), lists.scores[:, N_NEAREST - 1]
    limit = max(float(of_task.scores.max()), float(of_task.true.max()))
    if of_task.has_origin:
        assert of_task.perfect is not None
        limit = of_task.perfect
    limit += ROUNDING * float(np.abs(lists.scores[np.isfinite(lists.scores)]).max())
    too_good = best > limit if of_task.has_origin else (near > limit).mean() > _LARGEST_BEYOND
    if too_good:
        found = -best if of_task.negated else best
        raise DataError(
            f"nonmated: found {found:g}, better than a perfect score or than the task allows; "
            "expected scores of the same kind and direction as those of the task"
        )


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

    depths: FloatArray  # (301,): weight of the held-out classes by depth
    weight: FloatArray  # (n_counts,): of the probes with 0, 1, 2, ... held-out classes
    scatter: float  # standard deviation of log p at depth 0

    @classmethod
    def of(cls, pairs: "HeldOutPairs", n_most: int, scatter: float, curvature: float) -> Self:
        """Count the held-out classes by depth, and the probes by their number, at most `n_most`."""
        depth = pairs.power_law * (1 + curvature * pairs.inwards)
        depths = on_grid(depth, pairs.weight[pairs.probe], THRESHOLD_DEPTHS)
        number = np.bincount(pairs.probe, minlength=pairs.weight.size)
        return cls(depths, np.bincount(number, pairs.weight, n_most + 1), scatter)

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
        of_depth = np.log(slope) + shape * np.log1p(THRESHOLD_DEPTHS)
        of_depth = of_depth + log_survival(THRESHOLD_DEPTHS, slope, shape)
        total = of_count @ self.weight + of_depth @ self.depths - 0.5 * prior
        return np.where(impossible[:, 0], _IMPOSSIBLE, total)

    def sample(self, rng: np.random.Generator) -> ImportanceSample:
        """Importance sample of (c, b, xi)."""
        return ImportanceSample.of(self.log_density, _MEAN, _SCALE, rng)


class HeldOutPairs(NamedTuple):
    """Pairs of a probe and a class of one half in the tail that the other half gives."""

    inwards: FloatArray  # (n_pairs,): log distances u from the location inwards
    power_law: FloatArray  # (n_pairs,): depths m u of power laws
    probe: IntArray  # (n_pairs,): place of the probe among those with a tail, of all halves
    weight: FloatArray  # (n,): weights of these probes, which sum to their effective number

    @classmethod
    def of(
        cls,
        lists: ProbeLists,
        halves: Sequence[BoolArray],
        tails: Iterable[tuple[FloatArray, FloatArray]],
        design_effect: float,
    ) -> Self:
        """Pairs of all halves (k1,), from the `tails` (n,) that the classes inside each give.

        A tail is a location, which is NaN if there is none, and an exponent.
        """
        # The weights of a probe in all halves add up to its weight.
        weight = lists.independent(design_effect) / len(halves)
        parts: list[tuple[Any, ...]] = []
        first = 0
        for half, (location, exponent) in zip(halves, tails, strict=True):
            has_tail = ~np.isnan(location)
            towards = location[has_tail, None] - lists.log_distance[has_tail]
            classes, slopes = lists.classes[has_tail], exponent[has_tail]
            probe, place = np.nonzero((classes >= 0) & ~half[classes] & (towards > 0))
            inwards = np.minimum(towards[probe, place], DEEPEST / slopes[probe])
            parts.append((inwards, slopes[probe] * inwards, first + probe, weight[has_tail]))
            first += len(classes)
        return cls(*map(np.concatenate, zip(*parts, strict=True)))

    def likeliest_curvature(self) -> float:
        r"""Mode of the curvature :math:`\gamma`.

        Depths of held-out classes are exponential with an unknown rate b. The density of a log
        distance is :math:`b m (1 + 2 \gamma u) e^{-b q}`.
        """
        u, q, share = self.inwards, self.power_law, self.weight[self.probe]
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
