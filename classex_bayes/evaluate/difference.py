"""How much better one classifier is than another."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from classex_bayes.exceptions import DataError
from classex_bayes.formatting import Display, Shown
from classex_bayes.results import SAMPLE_DIMS, DrawsTable, RoundTo, interval_of


@dataclass(frozen=True, repr=False, eq=False)
class AccuracyDifference(Shown):
    """Posterior of the accuracy of one classifier less that of another.

    Attributes
    ----------
    first, second : str
        Names; positive differences speak for the first.
    draws : DataArray with dimensions (chain, draw, k)
        Accuracy of the first less that of the second.
    """

    first: str
    second: str
    draws: xr.DataArray

    @property
    def mean(self) -> pd.Series:
        """Posterior mean, indexed by k."""
        return self._series(self.draws.mean(SAMPLE_DIMS))

    def interval(self, prob: float | None = None, kind: str | None = None) -> pd.DataFrame:
        """Credible interval at each k.

        Parameters
        ----------
        prob, kind : optional
            Level and kind ("eti" or "hdi"); ArviZ's rcParams by default.

        Returns
        -------
        DataFrame
            Columns "lower" and "upper", indexed by k.
        """
        bounds = interval_of(self.draws, prob, kind)
        return pd.DataFrame(
            {side: self._series(bounds.sel(ci_bound=side)) for side in ("lower", "upper")}
        )

    def prob_above(self, margin: float = 0.0) -> pd.Series:
        """Posterior probability that the first is better by more than `margin`, at each k."""
        if isinstance(margin, bool) or not isinstance(margin, int | float | np.number):
            raise DataError(f"margin: expected a number, found {margin!r}")
        if not -1 <= margin <= 1:
            raise DataError(f"margin: expected a difference of accuracies, found {margin}")
        return self._series((self.draws > margin).mean(SAMPLE_DIMS))

    def _table(self, ci_prob: float | None = None, ci_kind: str | None = None) -> DrawsTable:
        table = DrawsTable.of_draws(self.draws, ci_prob, ci_kind)
        return table.with_shares("prob_above", self.draws > 0)

    def summary(
        self,
        ci_prob: float | None = None,
        ci_kind: str | None = None,
        round_to: RoundTo = "auto",
    ) -> pd.DataFrame:
        """Table indexed by k.

        Parameters
        ----------
        ci_prob, ci_kind : optional
            Level and kind of the interval; ArviZ's rcParams by default.
        round_to : {"auto", "none"} or None
            As for `Extrapolation.summary`.

        Returns
        -------
        DataFrame
            Columns "mean", "sd", the limits of the interval, and "prob_above", the probability
            that the first is better.
        """
        return self._table(ci_prob, ci_kind).frame(round_to)

    def _series(self, values: xr.DataArray) -> pd.Series:
        return pd.Series(values.values, index=pd.Index(self.draws["k"].values, name="k"))

    def _display(self) -> Display:
        header = f"expected accuracy of {self.first} less that of {self.second}"
        return Display(header, self._table().text())
