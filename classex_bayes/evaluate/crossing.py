"""The number of classes at which one classifier overtakes another."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from classex_bayes.arguments import class_counts, number
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import Display
from classex_bayes.results import CountDraws
from classex_bayes.results.extrapolation import FARTHEST_FACTOR
from classex_bayes.typing import BoolArray, FloatArray, IntArray

_POINTS_PER_DECADE = 40


@dataclass(frozen=True, repr=False, eq=False)
class Crossing(CountDraws):
    """Posterior of the first number of classes at which the curves of two classifiers cross.

    Attributes
    ----------
    first, second : str
        Names of the classifiers.
    k : DataArray with dimensions (chain, draw)
        First crossing of the curves in the range, interpolated. Infinite if they do not cross.
    ahead : DataArray with dimensions (chain, draw)
        Whether `first` is better before the crossing.
    between : tuple of int
        The range of k.
    n_classes : int
        k1, the number of source classes.

    Notes
    -----
    If one classifier is much better at k1, most crossings are beyond 100 k1. There the curves and
    their crossing depend on the tails of the model more than on the data.
    """

    first: str
    second: str
    k: xr.DataArray
    ahead: xr.DataArray
    between: tuple[int, int]
    n_classes: int

    @property
    def probability(self) -> float:
        """Posterior probability that the curves cross in the range."""
        return float(np.isfinite(self.k.values).mean())

    def prob_between(self, low: float, high: float) -> float:
        """Posterior probability that the first crossing is between `low` and `high`."""
        low, high = number(low, "low", 1, whole=False), number(high, "high", 1, whole=False)
        return float(((self.k.values >= low) & (self.k.values <= high)).mean())

    def outcomes(self) -> pd.DataFrame:
        """The four orders of the curves, with the probability of each.

        Returns
        -------
        DataFrame
            Rows "A throughout", "A, then B", "B, then A", "B throughout"; columns "probability"
            and "k", the median of the crossing over the draws in which it happens.
        """
        crosses, k = np.isfinite(self.k.values), self.k.values
        a, b = self.first, self.second
        events = {
            f"{a} throughout": self.ahead.values & ~crosses,
            f"{a}, then {b}": self.ahead.values & crosses,
            f"{b}, then {a}": ~self.ahead.values & crosses,
            f"{b} throughout": ~self.ahead.values & ~crosses,
        }
        rows = {
            name: (
                float(event.mean()),
                float(np.median(k[event])) if (event & crosses).any() else np.nan,
            )
            for name, event in events.items()
        }
        return pd.DataFrame.from_dict(rows, orient="index", columns=["probability", "k"])

    def _text(self, k: float) -> str:
        return "never" if np.isinf(k) else f"{k:,.0f}"

    def describe(self, ci_prob: float | None = None) -> str:
        """Sentence with the probability of a crossing, its median and an interval."""
        far = FARTHEST_FACTOR * self.n_classes
        near = f" ({self.prob_between(1, far):.2f} up to {far:,})" if far < self.between[1] else ""
        return (
            f"{self.first} and {self.second} cross between {self.between[0]:,} and "
            f"{self.between[1]:,} classes with probability {self.probability:.2f}{near}; over all "
            f"draws the median is {self._text(self.median)} ({self.describe_interval(ci_prob)})"
        )

    def _display(self) -> Display:
        table = self.outcomes()
        cells = {
            "probability": table["probability"].map("{:.3f}".format),
            "k": table["k"].map(lambda k: "-" if np.isnan(k) else f"{k:,.0f}"),
        }
        shown = table.assign(**cells).rename(columns={"k": "median k, if so"})
        return Display(self.describe(), shown)


def search_grid(low: int, high: int) -> FloatArray:
    """Numbers of classes from `low` to `high`, at least 40 a decade, equally spaced in log k."""
    return np.geomspace(low, high, int(np.ceil(_POINTS_PER_DECADE * np.log10(high / low))) + 2)


def first_crossing(difference: FloatArray, k: FloatArray) -> tuple[FloatArray, BoolArray]:
    """First change of sign of each curve (..., n_k), interpolated linearly in log k.

    `difference` is the accuracy of one classifier minus that of another, `k` (n_k,) is increasing.
    Returns the crossing (...), infinite if the sign does not change, and whether the difference is
    positive before it.

    >>> curves = np.array([[0.2, 0.1, -0.1], [-0.2, -0.1, -0.1]])
    >>> crossing, ahead = first_crossing(curves, np.array([10.0, 100.0, 10_000.0]))
    >>> crossing.round(1).tolist(), ahead.tolist()
    ([1000.0, inf], [True, False])
    """
    flat = difference.reshape(-1, k.size)
    rows = np.arange(flat.shape[0])
    # If the curves are equal at first, the one that is higher afterwards is ahead.
    ahead = flat[rows, np.argmax(flat != 0, axis=1)] > 0
    changed = flat * np.where(ahead, 1, -1)[:, None] < 0
    after = np.argmax(changed, axis=1)
    before = np.maximum(after - 1, 0)
    left, right = np.abs(flat[rows, before]), np.abs(flat[rows, after])
    fraction = left / np.maximum(left + right, np.finfo(float).tiny)
    place = k[before] * (k[after] / k[before]) ** fraction
    crossing = np.where(changed.any(axis=1), place, np.inf)
    shape = difference.shape[:-1]
    return crossing.reshape(shape), ahead.reshape(shape)


def search_range(between: tuple[int, int]) -> tuple[int, int]:
    """Two increasing numbers of classes."""
    if isinstance(between, str) or np.shape(between) != (2,):
        raise DataError(f"between: expected two numbers of classes, found {between!r}")
    limits: IntArray = class_counts(list(between), "between")
    if limits[0] > limits[1]:
        raise DataError(f"between: expected the smaller number first, found {between!r}")
    return int(limits[0]), int(limits[1])
