"""Extrapolation: the one result type of every estimator, with or without draws."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from arviz_base import rcParams
from arviz_stats import eti, hdi

from classex_bayes.data.task import SourceTask
from classex_bayes.data.validation import class_counts, one_of, probability
from classex_bayes.exceptions import DataError, ExtrapolationWarning, warn
from classex_bayes.typing import FloatArray, IntArray

IntervalType = Literal["credible", "bootstrap", "none"]
Quantity = Literal["accuracy", "risk"]
SAMPLE_DIMS = ["chain", "draw"]
# Studies of calibration reach factors of 10 to 70; beyond 100 the prior decides.
_FARTHEST_FACTOR = 100


def interval_settings(ci_prob: float | None, ci_kind: str | None) -> tuple[float, str]:
    """Level and kind of intervals, from ArviZ's rcParams where they are not given."""
    prob = rcParams["stats.ci_prob"] if ci_prob is None else probability(ci_prob, "ci_prob")
    kind = rcParams["stats.ci_kind"] if ci_kind is None else ci_kind
    one_of(kind, ("eti", "hdi"), "ci_kind")
    return float(prob), kind


def interval_of(draws: xr.DataArray, ci_prob: float | None, ci_kind: str | None) -> xr.DataArray:
    """Credible interval over chains and draws, with dimension `ci_bound` (lower, upper)."""
    prob, kind = interval_settings(ci_prob, ci_kind)
    return (eti if kind == "eti" else hdi)(draws, prob=prob, dim=SAMPLE_DIMS)


@dataclass(frozen=True, repr=False, eq=False)
class Extrapolation:
    """Accuracy or risk predicted by one estimator at some numbers of classes.

    Attributes
    ----------
    values : DataArray with dimensions (chain, draw, k)
        Predictions, also read as `accuracy` or `risk`; point estimates have one chain and one draw.
    estimator : str
        Name of the estimator.
    interval_type : {"credible", "bootstrap", "none"}
        What the spread over draws means.
    n_classes : int
        k1, the number of source classes.
    notes : tuple of str
        What the reader of the numbers must know; printed below every table.
    quantity : {"accuracy", "risk"}
        What is predicted: the expected share of correct answers, or the expected cost of an answer.

    Examples
    --------
    >>> Extrapolation.from_point([10, 20], [0.9, 0.8], "example", n_classes=5).mean.tolist()
    [0.9, 0.8]
    """

    values: xr.DataArray
    estimator: str
    interval_type: IntervalType
    n_classes: int
    notes: tuple[str, ...] = ()
    quantity: Quantity = "accuracy"

    @classmethod
    def from_point(
        cls,
        k: Any,
        values: Any,
        estimator: str,
        n_classes: int,
        notes: tuple[str, ...] = (),
        quantity: Quantity = "accuracy",
    ) -> "Extrapolation":
        """Wrap a point estimate: one chain, one draw, no interval.

        Parameters
        ----------
        k : array-like of int, shape (n_k,)
            Numbers of classes.
        values : array-like of shape (n_k,)
            Predicted accuracy, or risk, at each k.
        estimator : str
            Name in tables and legends.
        n_classes : int
            k1, the number of source classes.
        notes : tuple of str
            What the reader must know.
        quantity : {"accuracy", "risk"}
            What is predicted.

        Returns
        -------
        Extrapolation
        """
        draws = np.asarray(values, dtype=float)[None, None, :]
        return cls.from_draws(k, draws, estimator, "none", n_classes, notes, quantity)

    @classmethod
    def from_draws(
        cls,
        k: Any,
        values: FloatArray,
        estimator: str,
        interval_type: IntervalType,
        n_classes: int,
        notes: tuple[str, ...] = (),
        quantity: Quantity = "accuracy",
    ) -> "Extrapolation":
        """Wrap draws of the accuracy, or of the risk.

        Parameters
        ----------
        k : array-like of int, shape (n_k,)
            Numbers of classes.
        values : array of shape (chain, draw, n_k)
            Draws.
        estimator : str
            Name in tables and legends.
        interval_type : {"credible", "bootstrap", "none"}
            What the spread over draws means.
        n_classes : int
            k1, the number of source classes.
        notes : tuple of str
            What the reader must know; one is added where k is far beyond k1.
        quantity : {"accuracy", "risk"}
            What is predicted.

        Returns
        -------
        Extrapolation

        Raises
        ------
        FloatingPointError
            A draw is not finite.
        """
        if not np.isfinite(values).all():
            raise FloatingPointError(f"{estimator}: the predicted {quantity} is not finite")
        notes = notes + _far_beyond(np.max(k), n_classes)
        array = xr.DataArray(
            values,
            dims=("chain", "draw", "k"),
            coords={
                "chain": np.arange(values.shape[0]),
                "draw": np.arange(values.shape[1]),
                "k": np.atleast_1d(k),
            },
            name=quantity,
        )
        return cls(array, estimator, interval_type, n_classes, notes, quantity)

    @property
    def accuracy(self) -> xr.DataArray:
        """Predicted accuracy: dimensions (chain, draw, k); `DataError` where it is a risk."""
        return self._of("accuracy")

    @property
    def risk(self) -> xr.DataArray:
        """Predicted risk: dimensions (chain, draw, k); `DataError` where it is an accuracy."""
        return self._of("risk")

    def _of(self, quantity: Quantity) -> xr.DataArray:
        if quantity != self.quantity:
            raise DataError(
                f"{self.estimator} predicts {self.quantity} and not {quantity}; "
                f"read .{self.quantity}"
            )
        return self.values

    @property
    def k(self) -> IntArray:
        """Numbers of classes of the prediction, shape (n_k,)."""
        return self.values["k"].values

    @property
    def mean(self) -> pd.Series:
        """Mean over draws, indexed by k."""
        return self._series(self.values.mean(SAMPLE_DIMS))

    def interval(self, prob: float | None = None, kind: str | None = None) -> pd.DataFrame:
        """Interval of the prediction at each k.

        Parameters
        ----------
        prob : float, optional
            Level; ArviZ's ``rcParams["stats.ci_prob"]`` by default.
        kind : {"eti", "hdi"}, optional
            Equal-tailed or highest density; ``rcParams["stats.ci_kind"]`` by default.

        Returns
        -------
        DataFrame
            Columns "lower" and "upper", indexed by k.

        Raises
        ------
        DataError
            The estimator gives points without an interval.
        """
        if self.interval_type == "none":
            raise DataError(f"{self.estimator} is a point estimate and has no interval")
        bounds = interval_of(self.values, prob, kind)
        index = pd.Index(self.k, name="k")
        return pd.DataFrame(
            {side: bounds.sel(ci_bound=side).values for side in ("lower", "upper")}, index=index
        )

    def prob_at_least(self, accuracy: float) -> pd.Series:
        """Posterior probability that the accuracy is at least `accuracy`, at each k."""
        level = probability(accuracy, "accuracy")
        return self._probability(self.accuracy >= level)

    def prob_at_most(self, risk: float) -> pd.Series:
        """Posterior probability that the risk is at most `risk`, at each k."""
        level = probability(risk, "risk")
        return self._probability(self.risk <= level)

    def _probability(self, event: xr.DataArray) -> pd.Series:
        if self.interval_type == "none":
            raise DataError(f"{self.estimator} is a point estimate and has no probabilities")
        return self._series(event.mean(SAMPLE_DIMS))

    def summary(self, ci_prob: float | None = None, ci_kind: str | None = None) -> pd.DataFrame:
        """Table of the prediction, indexed by k.

        Parameters
        ----------
        ci_prob, ci_kind : optional
            Level and kind of the interval; ArviZ's rcParams by default.

        Returns
        -------
        DataFrame
            Columns "mean", "sd" and the limits, whose names carry kind and level
            ("eti89_lb", "eti89_ub"); "mean" alone for point estimates.
        """
        table = pd.DataFrame({"mean": self.mean})
        if self.interval_type == "none":
            return table
        prob, kind = interval_settings(ci_prob, ci_kind)
        bounds = self.interval(prob, kind)
        label = f"{kind}{100 * prob:g}"
        table["sd"] = self._series(self.values.std(SAMPLE_DIMS, ddof=1))
        table[f"{label}_lb"], table[f"{label}_ub"] = bounds["lower"], bounds["upper"]
        return table

    def to_dataframe(self) -> pd.DataFrame:
        """All draws as a table with columns chain, draw, k and the quantity."""
        return self.values.to_dataframe().reset_index()

    def _series(self, values: xr.DataArray) -> pd.Series:
        return pd.Series(values.values, index=pd.Index(self.k, name="k"), name=self.quantity)

    def __repr__(self) -> str:
        """Header, table and notes as plain text."""
        lines = [
            f"{self.estimator}: expected {self.quantity}, from {self.n_classes} source classes"
        ]
        lines.append(self.summary().to_string(float_format=lambda value: f"{value:.4f}"))
        lines.extend(f"note: {note}" for note in self.notes)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        header = (
            f"{escape(self.estimator)}: expected {self.quantity}, from {self.n_classes} classes"
        )
        table = self.summary().to_html(float_format=lambda value: f"{value:.4f}")
        notes = "".join(f"<p><small>{escape(note)}</small></p>" for note in self.notes)
        return f"<div><p><b>{header}</b></p>{table}{notes}</div>"


def _far_beyond(largest_k: int, n_classes: int) -> tuple[str, ...]:
    """Warn of a k that the source classes say little about; return the warning as a note."""
    if largest_k <= _FARTHEST_FACTOR * n_classes:
        return ()
    note = (
        f"k = {largest_k} is {largest_k / n_classes:.3g} times the {n_classes} source classes; "
        "so far out the prediction rests on the model rather than on the data"
    )
    warn(note, ExtrapolationWarning)
    return (note,)


def one_quantity(predictions: Sequence[Extrapolation]) -> Quantity:
    """What all the predictions are of; raise where some are of accuracy and some of risk."""
    quantities = {prediction.quantity for prediction in predictions}
    if len(quantities) > 1:
        raise DataError("predictions: found accuracies beside risks, expected one of the two")
    return quantities.pop()


def known_accuracy(truth: Any, k: IntArray | None) -> pd.Series:
    """Known accuracies at those of `k` where they are known, indexed by k.

    Parameters
    ----------
    truth : SourceTask or mapping from k to accuracy or Series indexed by k
        A task on more classes, whose average test accuracy is taken, or numbers.
    k : int array of shape (n_k,) or None
        Numbers of classes asked for; None for all that a mapping knows.
    """
    if isinstance(truth, SourceTask):
        k = truth.grid(60) if k is None else k
        covered = k[k <= truth.n_classes]
        if truth.kind == "accuracies":
            covered = np.intersect1d(covered, truth.grid())
        values = truth.accuracy(covered) if covered.size else np.empty(0)
        return pd.Series(values, index=pd.Index(covered, name="k"), dtype=float)
    if not isinstance(truth, Mapping | pd.Series):
        raise DataError(
            "truth: expected a SourceTask or a mapping from k to accuracy, found "
            f"{type(truth).__name__}"
        )
    try:
        known = pd.Series(truth, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(f"truth: expected accuracies as numbers ({error})") from None
    known.index = pd.Index(class_counts(list(known.index), "truth"), name="k")
    if not known.between(0, 1).all():
        raise DataError(f"truth: expected accuracies in [0, 1], found {known.tolist()}")
    known = known.sort_index()
    return known if k is None else known[known.index.isin(k)]


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
            f"({100 * prob:g}% credible interval: {lower} to {upper})"
        )

    def __repr__(self) -> str:
        """Return `describe()`."""
        return self.describe()
