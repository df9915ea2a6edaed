"""Scales on which a score is the logarithm of a distance."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from classex_bayes.core.ranks.nearest import ROUNDING, NearestClasses
from classex_bayes.typing import FloatArray

# Origins to try beyond the best score and below the worst listed one, in standard deviations of
# the listed scores.
_BEYOND, _BELOW = (0.1, 1.0), 1.0


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


def candidate_scales(nearest: NearestClasses) -> Iterator[DistanceScale]:
    """Scales to choose from: the natural one for distances and cosines, else a family."""
    listed = nearest.scores[np.isfinite(nearest.scores)]
    true = nearest.true[np.isfinite(nearest.true)]
    best = float(np.concatenate([listed, true]).max())
    largest = float(np.abs(listed).max())
    if nearest.perfect is not None and best <= nearest.perfect + ROUNDING * largest:
        yield DistanceScale("origin", nearest.perfect)
        return
    # Squares of numbers above 1e154 overflow.
    size = max(largest, np.finfo(float).tiny)
    spread = float((listed / size).std()) * size
    yield DistanceScale("exponential", unit=max(spread, np.finfo(float).tiny))
    worst = float(min(listed.min(), true.min()))
    if worst > 0 and best <= 1:  # probabilities
        yield DistanceScale("reciprocal", 0.0)
    for beyond in _BEYOND:
        if np.isfinite(origin := best + beyond * spread):
            yield DistanceScale("origin", origin)
    if np.isfinite(origin := worst - _BELOW * spread):
        yield DistanceScale("reciprocal", origin)
