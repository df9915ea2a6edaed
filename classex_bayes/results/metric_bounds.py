"""Bounds: confidence limits of a metric without a point estimate between them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from classex_bayes.exceptions import DataError
from classex_bayes.results.draws import DrawsTable, interval_columns, interval_settings
from classex_bayes.results.estimand import Estimand
from classex_bayes.results.extrapolation import Extrapolation
from classex_bayes.typing import FloatArray, IntArray

# Lower and upper limits (2, n_k) at numbers of classes (n_k,), of the level `ci_prob`.
Limits = Callable[[IntArray, float], FloatArray]


_ACCURACY = Estimand()
_N_EACH = 50  # draws of each limit


@dataclass(frozen=True, repr=False, eq=False)
class Bounds(Extrapolation):
    """Confidence limits of a metric at some numbers of classes.

    `interval` computes the limits of any level. Half of the draws are the lower limits of the level
    of ArviZ's rcParams and half are the upper ones, so tables and plots of draws show these limits.
    Nothing within the limits is more probable than anything else. So tables have no mean, there are
    no probabilities, and `mean` is the middle between the limits, whose largest error is smallest.

    Attributes
    ----------
    limits : callable
        Returns the limits (2, n_k) at numbers of classes (n_k,) for a level.
    """

    limits: Limits | None = None

    @classmethod
    def of(
        cls,
        k: IntArray,
        limits: Limits,
        estimator: str,
        n_classes: int,
        notes: tuple[str, ...] = (),
        estimand: Estimand = _ACCURACY,
    ) -> "Bounds":
        """Wrap limits at `k` (n_k,)."""
        ends = limits(k, interval_settings(None, None)[0])
        draws = xr.DataArray(
            np.repeat(ends, _N_EACH, axis=0)[None],
            dims=("chain", "draw", "k"),
            coords={"chain": [0], "draw": np.arange(2 * _N_EACH), "k": k},
            name=estimand.quantity,
        )
        return cls(draws, estimator, "confidence", n_classes, notes, estimand, limits=limits)

    def interval(self, ci_prob: float | None = None, ci_kind: str | None = None) -> pd.DataFrame:
        """Limits at each k.

        Parameters
        ----------
        ci_prob : float, optional
            Level; ArviZ's ``rcParams["stats.ci_prob"]`` by default.
        ci_kind : {"eti", "hdi"}, optional
            Not used, because nothing lies between the limits.

        Returns
        -------
        DataFrame
            Columns "lower" and "upper", indexed by k.
        """
        assert self.limits is not None
        lower, upper = self.limits(self.k, interval_settings(ci_prob, ci_kind)[0])
        return pd.DataFrame({"lower": lower, "upper": upper}, index=self._index)

    def _probability(self, event: xr.DataArray) -> pd.Series:
        raise DataError(
            f"{self.estimator} gives limits without probabilities; call prob_at_least of the "
            "prediction of a BayesianExtrapolator"
        )

    def _table(self, ci_prob: float | None = None, ci_kind: str | None = None) -> DrawsTable:
        limits = self.interval(ci_prob, ci_kind)
        limits.columns = list(interval_columns(*interval_settings(ci_prob, ci_kind)))
        return DrawsTable(limits, limits * np.nan)
