"""ClassesUntil: how many classes keep an accuracy."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from classex_bayes.formatting import html_block, html_facts
from classex_bayes.results.intervals import interval_settings, interval_words


@dataclass(frozen=True, repr=False, eq=False)
class ClassesUntil:
    """Number of classes at which expected accuracy falls to a level.

    Attributes
    ----------
    level : float
        The accuracy.
    k : DataArray with dimensions (chain, draw)
        Largest number of classes whose expected accuracy is at least `level`, interpolated; 1
        where even two classes are too many, infinite beyond `largest`.
    largest : int
        Where the search stopped.
    """

    level: float
    k: xr.DataArray
    largest: int

    @property
    def median(self) -> float:
        """Posterior median; may be infinite."""
        return float(np.quantile(self.k.values, 0.5, method="inverted_cdf"))

    def interval(self, prob: float | None = None) -> tuple[float, float]:
        """Equal-tailed credible interval; its ends are draws, so they may be infinite."""
        level, _ = interval_settings(prob, "eti")
        tails = [(1 - level) / 2, (1 + level) / 2]
        lower, upper = np.quantile(self.k.values, tails, method="inverted_cdf")
        return float(lower), float(upper)

    def prob_at_least(self, k: float) -> float:
        """Posterior probability that at least `k` classes keep the accuracy above the level."""
        return float((self.k.values >= k).mean())

    def _text(self, k: float) -> str:
        return f"more than {self.largest:.0e}" if np.isinf(k) else f"{k:,.0f}"

    def describe(self, prob: float | None = None) -> str:
        """One sentence with the median and an interval of the level `prob`."""
        prob, _ = interval_settings(prob, "eti")
        lower, upper = (self._text(k) for k in self.interval(prob))
        return (
            f"accuracy falls to {self.level:g} at {self._text(self.median)} classes "
            f"({interval_words(prob, 'eti')}: {lower} to {upper})"
        )

    def __repr__(self) -> str:
        """Return `describe()`."""
        return self.describe()

    def _repr_html_(self) -> str:
        prob, _ = interval_settings(None, "eti")
        lower, upper = (self._text(k) for k in self.interval(prob))
        facts = {
            "median": f"{self._text(self.median)} classes",
            interval_words(prob, "eti"): f"{lower} to {upper}",
        }
        return html_block(f"Accuracy falls to {self.level:g}", html_facts(facts))
