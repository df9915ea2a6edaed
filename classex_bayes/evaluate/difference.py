"""How much better one classifier is than another."""

from dataclasses import dataclass
from html import escape

import numpy as np
import pandas as pd
import xarray as xr

from classex_bayes.exceptions import DataError
from classex_bayes.results import SAMPLE_DIMS, interval_of, interval_settings


@dataclass(frozen=True, repr=False, eq=False)
class AccuracyDifference:
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

    def summary(self, ci_prob: float | None = None, ci_kind: str | None = None) -> pd.DataFrame:
        """Table indexed by k.

        Parameters
        ----------
        ci_prob, ci_kind : optional
            Level and kind of the interval; ArviZ's rcParams by default.

        Returns
        -------
        DataFrame
            Columns "mean", "sd", the limits of the interval, and "prob_above", the probability
            that the first is better.
        """
        prob, kind = interval_settings(ci_prob, ci_kind)
        bounds, label = self.interval(prob, kind), f"{kind}{100 * prob:g}"
        return pd.DataFrame(
            {
                "mean": self.mean,
                "sd": self._series(self.draws.std(SAMPLE_DIMS, ddof=1)),
                f"{label}_lb": bounds["lower"],
                f"{label}_ub": bounds["upper"],
                "prob_above": self.prob_above(),
            }
        )

    def _series(self, values: xr.DataArray) -> pd.Series:
        return pd.Series(values.values, index=pd.Index(self.draws["k"].values, name="k"))

    def _header(self) -> str:
        return f"expected accuracy of {self.first} less that of {self.second}"

    def __repr__(self) -> str:
        """Header and table as plain text."""
        return f"{self._header()}\n{self.summary().to_string(float_format='{:.4f}'.format)}"

    def _repr_html_(self) -> str:
        table = self.summary().to_html(float_format="{:.4f}".format)
        return f"<div><p><b>{escape(self._header())}</b></p>{table}</div>"
