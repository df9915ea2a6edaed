"""Summaries of draws: moments, intervals, probabilities and rounded tables."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from arviz_base.rcparams import defaultParams, rcParams
from arviz_stats import eti, hdi, mcse

from classex_bayes.arguments import one_of, probability
from classex_bayes.formatting import ROUNDING, Shown, bounded
from classex_bayes.typing import FloatArray

SAMPLE_DIMS = ["chain", "draw"]
RoundTo = Literal["auto", "none"] | None
# Decimals of displayed numbers without a Monte Carlo error, and of any.
_USUAL_PLACES, _MOST_PLACES = 4, 6
_PARTS = 8
_LEVEL = 0.9  # of intervals, unless ArviZ's rcParams were changed


def interval_settings(ci_prob: float | None, ci_kind: str | None) -> tuple[float, str]:
    """Return level and kind of intervals: by default 0.9, unless ArviZ's rcParams were changed."""
    prob = rcParams["stats.ci_prob"] if ci_prob is None else probability(ci_prob, "ci_prob")
    if ci_prob is None and prob == defaultParams["stats.ci_prob"][0]:
        prob = _LEVEL
    kind = rcParams["stats.ci_kind"] if ci_kind is None else ci_kind
    one_of(kind, ("eti", "hdi"), "ci_kind")
    return float(prob), kind


def interval_of(
    draws: xr.DataArray, ci_prob: float | None = None, ci_kind: str | None = None
) -> xr.DataArray:
    """Return the interval over chains and draws, with dimension `ci_bound` (lower, upper)."""
    prob, kind = interval_settings(ci_prob, ci_kind)
    return (eti if kind == "eti" else hdi)(draws, prob=prob, dim=SAMPLE_DIMS)


def interval_columns(ci_prob: float, ci_kind: str) -> tuple[str, str]:
    """Return the names of the limits in tables: "eti90_lb" and "eti90_ub"."""
    return f"{ci_kind}{100 * ci_prob:g}_lb", f"{ci_kind}{100 * ci_prob:g}_ub"


def interval_name(ci_prob: float, noun: str = "interval") -> str:
    """Return "90% interval"; limits that need no prior are called "90% limits"."""
    return f"{100 * ci_prob:g}% {noun}"


def interval_label(ci_prob: float, ci_kind: str, of: str = "credible") -> str:
    """Return "90% credible interval"; an interval of highest density is marked as such."""
    suffix = " (highest density)" if ci_kind == "hdi" else ""
    return f"{100 * ci_prob:g}% {of} interval{suffix}"


class Tabulated(Shown):
    """A result that is summarised by a table of draws."""

    @abstractmethod
    def _table(self, ci_prob: float | None = None, ci_kind: str | None = None) -> "DrawsTable":
        """Return the table with intervals, by default those of `interval_settings`."""

    def summary(
        self,
        ci_prob: float | None = None,
        ci_kind: str | None = None,
        round_to: RoundTo = "auto",
    ) -> pd.DataFrame:
        """Table of means, standard deviations and limits of intervals.

        Parameters
        ----------
        ci_prob, ci_kind : optional
            Level and kind ("eti" or "hdi") of the intervals; by default 0.9 and "eti", or ArviZ's
            changed rcParams.
        round_to : {"auto", "none"} or None
            "auto" rounds every number to the digits that its Monte Carlo standard error supports.
            "none" or None keeps all digits. Numbers without such an error are never rounded.

        Returns
        -------
        DataFrame
            Columns "mean", "sd" and the limits, whose names contain kind and level ("eti90_lb",
            "eti90_ub"). Point estimates have only "mean".
        """
        return self._table(ci_prob, ci_kind).frame(round_to)


class CurveDraws(Tabulated):
    """Draws of one number for each number of classes."""

    draws: xr.DataArray  # dimensions (chain, draw, k)

    def _require_spread(self, statistic: str) -> None:
        """Raise if the draws have no spread, so that the statistic is undefined."""

    @property
    def mean(self) -> pd.Series:
        """Mean over draws, indexed by k."""
        return self._by_k(self.draws.mean(SAMPLE_DIMS))

    @property
    def median(self) -> pd.Series:
        """Median over draws, indexed by k."""
        return self._by_k(self.draws.median(SAMPLE_DIMS))

    def interval(self, ci_prob: float | None = None, ci_kind: str | None = None) -> pd.DataFrame:
        """Interval at each k.

        Parameters
        ----------
        ci_prob : float, optional
            Level; 0.9 by default, or ArviZ's changed ``rcParams["stats.ci_prob"]``.
        ci_kind : {"eti", "hdi"}, optional
            Equal-tailed or highest density; ``rcParams["stats.ci_kind"]`` by default.

        Returns
        -------
        DataFrame
            Columns "lower" and "upper", indexed by k. Point estimates have no interval.
        """
        self._require_spread("interval")
        bounds = interval_of(self.draws, ci_prob, ci_kind)
        limits = {side: bounds.sel(ci_bound=side).values for side in ("lower", "upper")}
        return pd.DataFrame(limits, index=self._index)

    def to_dataframe(self) -> pd.DataFrame:
        """All draws as a table with columns chain, draw, k and the quantity."""
        return self.draws.to_dataframe().reset_index()

    def _probability(self, event: xr.DataArray) -> pd.Series:
        """Share of the draws in which an event occurs, indexed by k."""
        self._require_spread("probabilities")
        return self._by_k(event.mean(SAMPLE_DIMS)).rename("probability")

    def _table(self, ci_prob: float | None = None, ci_kind: str | None = None) -> "DrawsTable":
        return DrawsTable.of_draws(self.draws, ci_prob, ci_kind)

    @property
    def _index(self) -> pd.Index:
        return pd.Index(self.draws["k"].values, name="k")

    def _by_k(self, values: xr.DataArray) -> pd.Series:
        return pd.Series(values.values, index=self._index, name=self.draws.name)


@dataclass(frozen=True, eq=False)
class DrawsTable:
    r"""A table of numbers and a table of their Monte Carlo standard errors.

    A number with the error s has :math:`-\lfloor\log_{10}(2 s)\rfloor` decimals, as in the tables
    of ArviZ. Its last digit is the first one that other draws may change. Numbers without an error
    have the error 0 or NaN.
    """

    numbers: pd.DataFrame
    errors: pd.DataFrame

    @classmethod
    def of_points(cls, mean: pd.Series) -> "DrawsTable":
        """Table of numbers that do not come from draws."""
        table = pd.DataFrame({"mean": mean})
        return cls(table, table * np.nan)

    @classmethod
    def of_draws(
        cls, draws: xr.DataArray, ci_prob: float | None = None, ci_kind: str | None = None
    ) -> "DrawsTable":
        """Mean, sd and limits (such as "eti90_lb"), indexed by k and any other dimensions."""
        prob, kind = interval_settings(ci_prob, ci_kind)
        rows = [name for name in draws.dims if name not in SAMPLE_DIMS]
        index = pd.MultiIndex.from_product([draws[name].values for name in rows], names=rows)
        if index.nlevels == 1:
            index = index.get_level_values(0)
        draws = draws.transpose(*rows, *SAMPLE_DIMS)
        limits = interval_of(draws, prob, kind).transpose("ci_bound", ...).values
        columns = "mean", "sd", *interval_columns(prob, kind)
        numbers = draws.mean(SAMPLE_DIMS), draws.std(SAMPLE_DIMS, ddof=1, skipna=False), *limits
        errors = (
            _errors(draws, "mean"),
            _errors(draws, "sd"),
            *_errors_of_limits(draws, limits, prob, kind),
        )
        return cls(
            *(
                pd.DataFrame(dict(zip(columns, map(np.ravel, values), strict=True)), index)
                for values in (numbers, errors)
            )
        )

    def with_shares(self, name: str, shares: xr.DataArray) -> "DrawsTable":
        """The table with an additional column: the mean of draws with a value for every row."""
        shares = shares.astype(float)
        return DrawsTable(
            self.numbers.assign(**{name: shares.mean(SAMPLE_DIMS).values.ravel()}),
            self.errors.assign(**{name: _errors(shares, "mean").ravel()}),
        )

    def with_constants(self, name: str, values: Any) -> "DrawsTable":
        """The table with an additional first column without Monte Carlo errors."""
        numbers, errors = self.numbers.copy(), self.errors.copy()
        numbers.insert(0, name, values)
        errors.insert(0, name, np.nan)
        return DrawsTable(numbers, errors)

    def frame(self, round_to: RoundTo) -> pd.DataFrame:
        """The numbers, rounded ("auto"; numbers without an error keep all digits) or not."""
        one_of(round_to, ("auto", "none", None), "round_to")
        if round_to != "auto":
            return self.numbers
        columns = {
            name: [
                number if (places := _places(error)) is None else round(float(number), places)
                for number, error in zip(self.numbers[name], self.errors[name], strict=True)
            ]
            for name in self.numbers
        }
        return pd.DataFrame(columns, self.numbers.index)

    def text(self) -> pd.DataFrame:
        """The rounded numbers as text. Numbers without an error have 4 decimals, others at most 6.

        A number that would be rounded to 0 or 1 is shown as a bound, "<0.0001", with the most
        decimals of its row.
        """
        rows = [
            _texts(numbers, [_places(error) for error in errors])
            for numbers, errors in zip(
                self.numbers.to_numpy(float).tolist(), self.errors.to_numpy(float), strict=True
            )
        ]
        return pd.DataFrame(rows, self.numbers.index, self.numbers.columns)


def _places(error: float) -> int | None:
    """Decimals that a standard error supports; None if there is no error."""
    has_error = np.isfinite(error) and error > ROUNDING
    return max(-math.floor(math.log10(2 * error)), 0) if has_error else None


def _texts(numbers: list[float], supported: list[int | None]) -> list[str]:
    """Numbers of one row as text, with the decimals that their errors support."""
    places = [_USUAL_PLACES if p is None else min(p, _MOST_PLACES) for p in supported]
    texts = map(bounded, numbers, places)
    finest = [bounded(number, max(places)) for number in numbers]
    return [fine if text[0] in "<>" else text for text, fine in zip(texts, finest, strict=True)]


def _errors(draws: xr.DataArray, method: str) -> FloatArray:
    """Monte Carlo standard errors of a mean or an sd; 0 or NaN if all draws are equal."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return mcse(draws, sample_dims=SAMPLE_DIMS, method=method).values


def _errors_of_limits(
    draws: xr.DataArray, limits: FloatArray, prob: float, kind: str
) -> FloatArray:
    """Monte Carlo standard errors (2, n) of lower and upper limits of intervals, by rows of draws.

    The limits are quantiles, and their errors are those of quantiles. Limits of highest density
    intervals vary more, because the interval can slide if the density is about the same at both
    ends. At best their error decreases with the cube root of the number of draws. For a flat
    density it does not decrease (Grübel 1988). The error is therefore at least the spread of the
    limits over parts of the draws.
    """
    chains = draws.values.reshape(-1, *draws.shape[-2:])
    ends = limits.reshape(2, -1)
    below = (chains <= ends[..., None, None]).mean((-2, -1))
    errors = np.array(
        [
            [mcse(v, method="quantile", prob=p) for v, p in zip(chains, shares, strict=True)]
            for shares in below
        ]
    )
    size = chains[0].size // _PARTS
    if kind == "hdi" and size > 0:
        parts = chains.reshape(len(chains), -1)[:, : size * _PARTS].reshape(-1, _PARTS, size)
        array = xr.DataArray(parts, dims=("row", "part", "draw"))
        spread = hdi(array, prob=prob, dim="draw").std("part", ddof=1)
        errors = np.fmax(errors, spread.transpose("ci_bound", "row").values)
    return errors
