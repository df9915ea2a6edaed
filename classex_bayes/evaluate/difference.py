"""Difference of the accuracies, or of another metric, of two classifiers."""

from dataclasses import dataclass

import pandas as pd
import xarray as xr

from classex_bayes.arguments import is_real
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import Display
from classex_bayes.results import CurveDraws, DrawsTable, Estimand

_ACCURACY = Estimand()


@dataclass(frozen=True, repr=False, eq=False)
class AccuracyDifference(CurveDraws):
    """Posterior of the accuracy, or of another metric, of one classifier minus that of another.

    `summary` has the additional column "prob_above", the probability that the first is better.

    Attributes
    ----------
    first, second : str
        Names of the classifiers. The first is better if the difference is positive.
    draws : DataArray with dimensions (chain, draw, k)
        Metric of the first minus that of the second.
    estimand : Estimand
        The quantity that is compared.
    """

    first: str
    second: str
    draws: xr.DataArray
    estimand: Estimand = _ACCURACY

    def prob_above(self, margin: float = 0.0) -> pd.Series:
        """Posterior probability that the first is better by more than `margin`, at each k."""
        if not is_real(margin):
            raise DataError(f"margin: expected a number, found {margin!r}")
        if not -1 <= margin <= 1:
            raise DataError(f"margin: expected a difference in [-1, 1], found {margin}")
        return self._probability(self.draws > margin)

    def _table(self, ci_prob: float | None = None, ci_kind: str | None = None) -> DrawsTable:
        table = super()._table(ci_prob, ci_kind)
        return table.with_shares("prob_above", self.draws > 0)

    def _display(self) -> Display:
        header = f"{self.estimand.describe()} of {self.first} minus that of {self.second}"
        return Display(header, self._table().text())
