r"""Local tails: the depth of a true class in the tail of its nearest wrong classes.

Let :math:`r_1 \le \dots \le r_j` be the distances of the j wrong classes nearest to an instance,
and d that of its true class. If the number of classes within a distance grows like a power of the
distance, a wrong class is nearer than the true one with probability

.. math:: \log p = \log \frac{j}{k_1 - 1} - q, \qquad q = m \log \frac{r_j}{d},

where the exponent m has Hill's estimate. The bias of its logarithm is corrected:
:math:`\log m = \psi(j - 1) - \log \sum_{l < j} \log (r_j / r_l)`, with the digamma function
:math:`\psi`. The depth q is the same for every power of the distances. Scores are distances on a
scale that is chosen from some candidates (`classex_bayes.bayes.tails.scale_choice`).
"""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.special import digamma, polygamma

from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.task.rank_table import RankTable
from classex_bayes.typing import BoolArray, FloatArray, IntArray

# Number j of nearest wrong classes. A larger number reaches beyond the range of the power law. On
# the populations of docs/corpus.md errors are equal with 3 and 4 and larger from 5.
N_NEAREST = 4
# In 98% of the lists of this length a given half of the classes has j classes. The other lists are
# not used. They have more classes in the other half, and so more better classes there. If many
# were left out, better classes would seem rare.
SHORTEST_LIST = 15
# Here p is about 1e-6 / k1, which no pilot can distinguish from 0.
LARGEST_DEPTH = 15.0
# Depth if none of the j classes is farther than the true class, or if the scores tell none because
# classes are tied, ruled out or not listed.
OUTSIDE = -1.0
_ROUNDING = 1e-12  # relative to log distances, which are equal if they differ by less
_GOLDEN_RATIO = (np.sqrt(5) - 1) / 2  # its multiples, modulo 1, fill [0, 1] evenly


@dataclass(frozen=True)
class DistanceScale:
    r"""A transform of scores s (larger is better) into log distances.

    Local tails depend only on ratios of differences of log distances. So a power of the distances
    gives the same tails. The kinds are "origin", :math:`\log(s_0 - s)`, for tails of scores
    that end at :math:`s_0`; "exponential", :math:`-s / u`, the limit for a far origin, as for
    logits; and "reciprocal", :math:`-\log(s - s_1)`, for heavy tails of scores above :math:`s_1`,
    as for probabilities. They are the three kinds of extreme values.
    """

    kind: str
    # s_0, which no score exceeds: 0 for negated distances, 1 for the cosine; or s_1, below them all
    origin: float = np.inf
    unit: float = 1.0  # u; the variance of log distances between instances depends on it

    @property
    def has_known_origin(self) -> bool:
        """Whether the origin is that of distances or cosines and not one of those tried."""
        return self.kind == "origin" and self.origin in (0.0, 1.0)

    @property
    def best(self) -> float:
        """Score that none exceeds on this scale."""
        return self.origin if self.kind == "origin" else np.inf

    def log_distance(self, scores: FloatArray) -> FloatArray:
        """Log distances: -inf for a score at the origin, inf for a class that is ruled out."""
        with np.errstate(divide="ignore"):
            if self.kind == "exponential":
                return -scores / self.unit
            if self.kind == "reciprocal":
                return -np.log(np.maximum(scores - self.origin, 0.0))
            return np.log(np.maximum(self.origin - scores, 0.0))

    def score(self, log_distance: FloatArray) -> FloatArray:
        """Scores at log distances: the inverse of `log_distance`."""
        if self.kind == "exponential":
            return -log_distance * self.unit
        if self.kind == "reciprocal":
            return self.origin + np.exp(-log_distance)
        return self.origin - np.exp(log_distance)

    def name(self, digits: int) -> str:
        """The distance as a formula, s being a score; its origin has so many digits."""
        if self.kind == "exponential":
            return "exp(-s)"
        if not self.origin:
            return "1 / s" if self.kind == "reciprocal" else "-s"
        if self.kind == "reciprocal":
            sign = "-" if self.origin > 0 else "+"
            return f"1 / (s {sign} {abs(self.origin):.{digits}g})"
        return f"{self.origin:.{digits}g} - s"


def tail_depths(wrong: FloatArray, true: FloatArray, weight: FloatArray) -> FloatArray:
    r"""Depths q (n,) from log distances of the j nearest wrong classes and of the true class.

    The log exponents have the sampling variance :math:`\psi'(j - 1)`. The rest of their variance is
    between instances. Deviations of the log exponents from their mean are multiplied by the share
    of the variance between instances.

    Parameters
    ----------
    wrong : array of shape (n, j)
        Log distances of the nearest wrong classes, ascending.
    true : array of shape (n,)
        Log distances of the true classes.
    weight : array of shape (n,)
        Weights of the instances in the mean and variance of the log exponents, such that classes
        count alike, whatever their numbers of instances.

    Returns
    -------
    array of shape (n,)
        At most `LARGEST_DEPTH`. Negative if no wrong class is farther than the true one, or if one
        has an infinite distance.
    """
    spacings, farthest = wrong.shape[1] - 1, wrong[:, -1]
    with np.errstate(invalid="ignore"):
        total = (farthest[:, None] - wrong[:, :-1]).sum(axis=1)
        inside = farthest - true
        rounding = _ROUNDING * np.abs(wrong).max(axis=1)
    # Classes that are all at one distance, or with one at the distance 0, give no exponent. The
    # mean is used.
    spread = np.isfinite(total) & (total > rounding) & (weight > 0)
    logs, share = digamma(spacings) - np.log(total[spread]), weight[spread]
    if not logs.size:
        return np.full(true.size, OUTSIDE)
    noise = float(polygamma(1, spacings))
    mean = np.average(logs, weights=share)
    lower, upper = np.percentile(logs, [16, 84], method="inverted_cdf", weights=share)
    between = max((upper - lower) ** 2 / 4 - noise, 0.0)
    log_exponent = np.full(true.size, mean)
    log_exponent[spread] += between / (between + noise) * (logs - mean)
    has_tail = (inside > 0) & np.isfinite(farthest)
    log_depth = log_exponent + np.log(inside, out=np.zeros(true.size), where=has_tail)
    depth = np.exp(np.minimum(log_depth, np.log(LARGEST_DEPTH)))
    return np.where(has_tail, depth, OUTSIDE)


def is_tied(wrong: FloatArray, true: FloatArray, last: FloatArray) -> BoolArray:
    """Whether scores (n, j) of the nearest wrong classes and true ones (n,) tell no depth.

    The nearest classes have the same score, or one has that of the true class or the `last` (n,) of
    its list. The latter occurs if scores were kept only for a few classes, such as the five most
    probable ones, and the others have a common score.
    """
    same = (wrong[:, 0] == wrong[:, -1]) | (wrong[:, -1] == last)
    return np.asarray(same | (wrong == true[:, None]).any(axis=1))


def depths_of(nearest: NearestClasses, scale: DistanceScale, table: RankTable) -> FloatArray:
    """Depths (n,) of the true classes of a table of ranks among all source classes.

    With fewer than j better classes an instance lies in its tail. If its scores tell no depth, it
    has the depths of others with as many better classes, spread evenly over them.
    """
    every = np.ones(int(nearest.classes.max()) + 1, dtype=bool)
    depth = PartLists.of(nearest, every, table.weight).depths(scale)
    n_better = (table.lowest + table.highest) // 2
    for number in range(N_NEAREST):
        alike = (n_better == number) & (table.weight > 0)
        known, unknown = alike & (depth > 0), alike & (depth <= 0)
        if known.any():
            levels = (0.5 + _GOLDEN_RATIO * np.arange(np.count_nonzero(unknown))) % 1
            quantiles = {"method": "inverted_cdf", "weights": table.weight[known]}
            depth[unknown] = np.quantile(depth[known], levels, **quantiles)
    return depth


class PartLists(NamedTuple):
    """Nearest wrong classes in a part of the classes, and better ones among the others."""

    wrong: FloatArray  # (n, j): scores of the j nearest wrong classes in the part, best first
    true: FloatArray  # (n,): scores of the true classes
    usable: BoolArray  # (n,): whether j classes of the part are listed, and they are not tied
    # (2, n): listed classes outside the part that are nearer than the true one, without and with
    # those that are tied with it
    n_better: IntArray
    weight: FloatArray  # (n,): weights of the instances

    @classmethod
    def of(cls, nearest: NearestClasses, in_part: BoolArray, weight: FloatArray) -> Self:
        """Split lists by a part (k1,) of the classes."""
        here = (nearest.classes >= 0) & in_part[nearest.classes]
        # If fewer than j are in the part, places of other classes follow.
        places = np.argsort(~here, axis=1, kind="stable")[:, :N_NEAREST]
        wrong = np.take_along_axis(nearest.scores, places, axis=1)
        listed = np.take_along_axis(here, places[:, -1:], axis=1)[:, 0]
        true = nearest.true[:, None]
        elsewhere = (nearest.classes >= 0) & ~here
        nearer = np.stack([nearest.scores > true, nearest.scores >= true])
        n_better = (nearer & elsewhere).sum(axis=2)
        is_last = places[:, -1] == nearest.scores.shape[1] - 1  # tied with no other class
        last = np.where(is_last, np.nan, nearest.scores[:, -1])
        usable = listed & ~is_tied(wrong, nearest.true, last)
        return cls(wrong, nearest.true, usable, n_better, weight)

    def depths(self, scale: DistanceScale) -> FloatArray:
        """Depths (n,) of the true classes in the part."""
        depth = np.full(self.true.size, OUTSIDE)
        wrong, true = (scale.log_distance(s[self.usable]) for s in (self.wrong, self.true))
        depth[self.usable] = tail_depths(wrong, true, self.weight[self.usable])
        return depth
