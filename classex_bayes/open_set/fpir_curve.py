"""FPIR as a function of the threshold, which decreases in every draw."""

from functools import cached_property

import numpy as np

from classex_bayes.open_set.level_drift import threshold_grid
from classex_bayes.open_set.wrong_tails import WrongTails
from classex_bayes.typing import FloatArray

_TINY = 1e-300


class FpirCurve:
    """Draws of FPIR with k enrolled classes at any threshold.

    FPIR is computed at knots. A draw of the drift may lift it a little from one knot to the next
    tighter one, or probes that enter their tails may. So each draw is replaced by its running
    minimum. Between knots the log of the rate -log(1 - FPIR) is linear in the log distance.
    """

    def __init__(self, tails: WrongTails, k: int) -> None:
        self._tails, self._k = tails, k
        self._log_rates: list[FloatArray] = []  # at the first knots, as far as they were needed

    @cached_property
    def knots(self) -> FloatArray:
        """Log distances, descending: from where the lists end to where the tails do."""
        grid = threshold_grid(self._tails.lists, self._tails.slope, np.inf)
        return np.unique(np.minimum(grid, self._tails.loosest(self._k)))[::-1]

    def at(self, log_threshold: float) -> FloatArray:
        """FPIR (draws,) at a threshold; beyond the knots that of the last one."""
        knots = self.knots
        place = float(np.interp(-log_threshold, -knots, np.arange(knots.size)))
        left = min(int(place), knots.size - 2)
        first, second = self._log_rate(left), self._log_rate(left + 1)
        return -np.expm1(-np.exp(first + (place - left) * (second - first)))

    def _log_rate(self, knot: int) -> FloatArray:
        """Log rate (draws,) at a knot, after those at looser ones."""
        rates = self._log_rates
        for at in self.knots[len(rates) : knot + 1].tolist():
            none = np.maximum(self._tails.none_above(at, self._k), _TINY)
            log_rate = np.log(np.maximum(-np.log(none), _TINY))
            rates.append(np.minimum(log_rate, rates[-1]) if rates else log_rate)
        return rates[knot]
