"""Extrapolation within a pilot: from parts of its classes to all of them, which were tested."""

from dataclasses import dataclass

from scipy.special import stdtr

from classex_bayes.formatting import percent
from classex_bayes.task.rules import Finding

_LEVEL, _SMALLEST_ERROR = 0.05, 0.02
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
    def passed(self) -> bool:
        """Whether chance explains the error (p-value of at least 0.05), or it is within 0.02."""
        return self.p_value >= _LEVEL or abs(self.error) <= _SMALLEST_ERROR

    @property
    def finding(self) -> Finding:
        """The result as a check of the estimator. The value is the p-value."""
        predicted, measured = (percent(x, 1) for x in (self.predicted, self.measured))
        sentence = (
            f"from {self.n_source:,} of the classes {predicted} were predicted on all {self.k:,}, "
            f"and {measured} were measured (mean of {self.n_parts} disjoint parts; standard "
            f"deviation {100 * self.sd:.1f} points, p-value {self.p_value:.3f})"
        )
        if self.coverage is not None:
            sentence += f"; {percent(self.coverage)} of the intervals contain it"
        if not self.passed:
            sentence = (
                f"the extrapolation within the pilot is too {'high' if self.error > 0 else 'low'}: "
                f"{sentence}. Predictions far beyond the pilot are not reliable"
            )
        name = "extrapolation within the pilot"
        return Finding(name, self.passed, sentence, self.p_value, _LEVEL)
