"""ClassesUntil: the number of classes up to which an accuracy is kept."""

from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from classex_bayes.formatting import Display, count, exact_percent
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results.draws import CountDraws
from classex_bayes.results.extrapolation import FARTHEST_FACTOR


@dataclass(frozen=True, repr=False, eq=False)
class ClassesUntil(CountDraws):
    """Number of classes at which expected accuracy falls to a level.

    Attributes
    ----------
    level : float
        Level of the expected accuracy.
    k : DataArray with dimensions (chain, draw)
        Largest number of classes whose expected accuracy is at least `level`, interpolated. It is 1
        if even two classes are too many, and infinite beyond `largest`.
    largest : int
        Largest number of classes that was tried.
    n_classes : int
        k1, the number of source classes. Sentences say "more than" beyond 100 times as many.
    """

    plot = PlotMethod("plot_classes_until")

    level: float
    k: xr.DataArray
    largest: int
    n_classes: int

    def describe(self, ci_prob: float | None = None) -> str:
        """One sentence with the median and an interval of the level `ci_prob`.

        Beyond 100 k1 classes the model decides more than the data. An interval that reaches so far
        has no upper limit in the sentence: "4,220 or more". `median` and `interval` have the
        numbers.
        """
        if self.interval(ci_prob)[1] < 2:
            return f"accuracy is below {exact_percent(self.level)} on any number of classes"
        return f"{self.describe_median()} ({self.describe_interval(ci_prob)})"

    def describe_median(self) -> str:
        """The sentence of `describe` without the interval."""
        near = self._near()
        accuracy, median = exact_percent(self.level), near.median
        if median < 2:
            return f"accuracy is below {accuracy} even on 2 classes"
        verb = "stays above {} on" if np.isinf(median) else "falls to {} at"
        return f"accuracy {verb.format(accuracy)} {near._text(median)} classes"

    def describe_interval(self, ci_prob: float | None = None) -> str:
        """Name of the interval of `describe`, and its limits."""
        return super(ClassesUntil, self._near()).describe_interval(ci_prob)

    def _near(self) -> "ClassesUntil":
        """The same, searched up to 100 k1 classes."""
        farthest = min(self.largest, FARTHEST_FACTOR * self.n_classes)
        return replace(self, k=self.k.where(self.k <= farthest, np.inf), largest=farthest)

    def _text(self, k: float) -> str:
        # Draws support no more digits than three.
        return count(float(f"{k:.3g}") if 1000 <= k < np.inf else k, self.largest)

    def _span(self, lower: float, upper: float) -> str:
        if np.isinf(upper) and np.isfinite(lower):
            return f"{self._text(max(lower, 2))} or more"
        return f"up to {self._text(upper)}" if lower < 2 <= upper else super()._span(lower, upper)

    def _display(self) -> Display:
        return Display(self.describe())
