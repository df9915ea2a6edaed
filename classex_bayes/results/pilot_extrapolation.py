"""Extrapolation within a pilot: from parts of its classes to all of them, which were tested."""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from classex_bayes.formatting import percent
from classex_bayes.typing import FloatArray

_LEVEL, _SMALLEST_ERROR = 0.05, 0.02
_N_QUANTILES = 1000
_SMALLEST_SD = 1e-9  # of parts that are all alike


@dataclass(frozen=True)
class PilotExtrapolation:
    r"""Predictions of one estimator from parts of a pilot, and the accuracy on all its classes.

    Attributes
    ----------
    n_parts, n_source, k : int
        Number of parts, classes in a part, and classes for which they predict.
    predicted, measured : float
        Mean prediction of the parts, and the accuracy of the pilot.
    sd : float
        Standard deviation of their difference if the estimator is right.
    coverage : float or None
        Share of the parts whose interval contains the accuracy; None without intervals.
    """

    n_parts: int
    n_source: int
    k: int
    predicted: float
    measured: float
    sd: float
    coverage: float | None = None

    @property
    def error(self) -> float:
        """Predicted less measured accuracy."""
        return self.predicted - self.measured

    @property
    def p_value(self) -> float:
        """Probability of an error at least as far from 0 if the estimator is right, by a t law."""
        return 2 * float(stdtr(self.n_parts - 1, -abs(self.error) / max(self.sd, _SMALLEST_SD)))

    @property
    def quantiles(self) -> FloatArray:
        """Evenly spaced quantiles of the accuracy if the estimator is right, with the same law."""
        levels = (np.arange(_N_QUANTILES) + 0.5) / _N_QUANTILES
        values = self.predicted + self.sd * stdtrit(self.n_parts - 1, levels)
        return np.clip(values, 0.0, 1.0)

    @property
    def passed(self) -> bool:
        """Whether chance explains the error (p-value of at least 0.05), or it is within 0.02."""
        return self.p_value >= _LEVEL or abs(self.error) <= _SMALLEST_ERROR

    @property
    def sentence(self) -> str:
        """The result in words."""
        predicted, measured = (percent(x, 1) for x in (self.predicted, self.measured))
        return (
            f"from {self.n_source:,} of the classes {predicted} were predicted on all {self.k:,}, "
            f"and {measured} were measured (mean of {self.n_parts} disjoint parts; standard "
            f"deviation {100 * self.sd:.1f} points, p-value {self.p_value:.3f})"
        )

    @property
    def fault(self) -> str:
        """Sentence for readers of predictions if the check failed; else empty."""
        if self.passed:
            return ""
        side = "high" if self.error > 0 else "low"
        return (
            f"the extrapolation within the pilot is too {side}: {self.sentence}. Predictions far "
            "beyond the pilot are not reliable"
        )
