"""Thresholds of a system, which are scores or distances, as log distances of the tails."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from classex_bayes.bayes.tails.distance_scale import DistanceScale
from classex_bayes.typing import FloatArray

# Of log distances. A step changes the number of wrong scores above a threshold by about 0.1%.
_RESOLUTION = 1e-4


@dataclass(frozen=True)
class ThresholdScale:
    """Conversion of thresholds to log distances and back, and their digits."""

    scale: DistanceScale  # of scores, of which the larger ones are better
    are_distances: bool  # whether thresholds are distances, the negatives of scores

    @property
    def _sign(self) -> int:
        return -1 if self.are_distances else 1

    def threshold(self, log_distance: Any) -> FloatArray:
        """Thresholds at log distances."""
        return self._sign * self.scale.score(np.asarray(log_distance))

    def log_distance(self, threshold: Any) -> FloatArray:
        """Log distances at thresholds: the inverse of `threshold`."""
        return self.scale.log_distance(self._sign * np.asarray(threshold, dtype=float))

    def round(self, log_distance: float, stricter: bool = True) -> float:
        """Threshold with the decimals that its log distance needs, rounded in one direction."""
        exact, decimals = float(self.threshold(log_distance)), self._decimals(log_distance)
        nearest, unit = round(exact, decimals), 10.0**-decimals
        direction = self._sign if stricter else -self._sign
        is_beyond = direction * nearest >= direction * exact
        return nearest if is_beyond else round(nearest + direction * unit, decimals)

    def text(self, log_distance: Any) -> str:
        """Threshold as text, with one decimal more than that of `round`."""
        threshold = float(self.threshold(log_distance))
        return f"{round(threshold, self._decimals(log_distance) + 1):.15g}"

    def _decimals(self, log_distance: Any) -> int:
        """Decimals of thresholds whose log distances differ by less than the resolution."""
        near = self.threshold([log_distance, log_distance - _RESOLUTION])
        step = max(abs(float(np.diff(near)[0])), math.ulp(float(near[0])))
        return -math.floor(math.log10(step))
