"""Results of estimators: what is predicted, predictions, limits, and numbers of classes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from classex_bayes.arguments import LARGEST_K, is_real, number, probability
from classex_bayes.core.metrics import Accuracy, MeanMetric, Metric, named_metric
from classex_bayes.core.rank_limits import RankLimits
from classex_bayes.exceptions import DataError, ExtrapolationWarning, warn
from classex_bayes.formatting import (
    DECIMALS,
    PERCENTAGES,
    Display,
    Numerals,
    Shown,
    count,
    exact_percent,
)
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results.draws import (
    CurveDraws,
    DrawsTable,
    interval_columns,
    interval_label,
    interval_name,
    interval_settings,
)
from classex_bayes.typing import FloatArray, IntArray

RISK = "risk"
IntervalType = Literal["credible", "bootstrap", "confidence", "none"]
# Studies of calibration reach factors of 10 to 70. Beyond 100 the prior dominates.
FARTHEST_FACTOR = 100
REACHED = 0.2  # distance between the limits of the ranks up to which a pilot is said to reach
_N_EACH = 50  # draws of each limit of `Bounds`
# Lower and upper limits (2, n_k) at numbers of classes (n_k,), of the level `ci_prob`.
Limits = Callable[[IntArray, float], FloatArray]


@dataclass(frozen=True, kw_only=True)
class Estimand:
    """The predicted quantity, described by the arguments of `BayesianExtrapolator.predict`.

    Attributes
    ----------
    metric : str
        A metric of `classex_bayes.core.metrics`, such as "accuracy@5" or "mrr", or "risk", the mean
        cost of an answer.
    repeats : int or None
        Number of test instances of each class, if it is the result of a single test; None if it is
        the average over sets of classes.
    population : int or None
        Number of classes in a finite population; None for an infinite one.
    ranked : str
        What the data rank: "documents" of runs, "items" of negatives. If "classes", the name of the
        metric may say more.

    Examples
    --------
    >>> Estimand(metric="accuracy@5").describe()
    'expected top-5 accuracy'
    >>> Estimand(metric="mrr").describe(), Estimand(metric="median_rank").describe()
    ('expected MRR', 'median rank')
    >>> Estimand(repeats=2).describe()
    'measured accuracy (2 instances a class)'
    """

    metric: str = "accuracy"
    repeats: int | None = None
    population: int | None = None
    ranked: str = field(default="classes", compare=False)

    def describe(self) -> str:
        """Return the estimand in words, for headers and legends."""
        name, details = self.label, []
        if self.repeats is not None:
            details.append(f"{self.repeats} instance{'s' if self.repeats > 1 else ''} a class")
        elif self._chosen is None or isinstance(self._chosen, MeanMetric):
            name = f"expected {name}"
        if self.population is not None:
            details.append(f"{self.population:,} classes in all")
        return f"{name} ({', '.join(details)})" if details else name

    @property
    def quantity(self) -> str:
        """Name of the metric without its m; "accuracy" is also that of recall@m."""
        return "accuracy" if isinstance(self._chosen, Accuracy) else self.metric.partition("@")[0]

    @property
    def label(self) -> str:
        """Name of the quantity for axes."""
        name = RISK if self._chosen is None else self._chosen.label
        return f"measured {name}" if self.repeats is not None else name

    @property
    def units(self) -> str:
        """What is ranked: "classes", or "documents" or "items" of such data or metrics."""
        if self.ranked != "classes" or self._chosen is None or not self._chosen.is_of_retrieval:
            return self.ranked
        return "items" if self.metric.startswith("hit_rate") else "documents"

    @property
    def source(self) -> str:
        """Name of the k1 classes of the pilot."""
        return "source classes" if self.units == "classes" else self.units

    @property
    def is_rank(self) -> bool:
        """Whether values are ranks in 1..k, smaller being better; else they are in [0, 1]."""
        return self._chosen is not None and self._chosen.is_rank

    @property
    def less_is_better(self) -> bool:
        """Whether a target is reached by values of at most it: of ranks and risks."""
        return self.is_rank or self.metric == RISK

    @property
    def numerals(self) -> Numerals:
        """Format of the values: accuracies and risks as percentages, others as decimals."""
        return PERCENTAGES if self.quantity in ("accuracy", RISK) else DECIMALS

    def exact(self, level: float) -> str:
        """Return a level that the user has chosen, with all its digits."""
        return exact_percent(level) if self.numerals is PERCENTAGES else f"{level:.12g}"

    def reaching(self, level: float) -> str:
        """Return what a value does that reaches a level: "at least 80%", "at most 12"."""
        return f"at {'most' if self.less_is_better else 'least'} {self.exact(level)}"

    @property
    def _chosen(self) -> Metric | None:
        """The metric; None for a risk, which does not depend on ranks alone."""
        return None if self.metric == RISK else named_metric(self.metric)


_ACCURACY = Estimand()


def checked_level(estimand: Estimand, level: Any, name: str, largest: int = LARGEST_K) -> float:
    """Return a level or a target in (0, 1), or of ranks on up to `largest` classes."""
    if not estimand.is_rank:
        return probability(level, name)
    if not (is_real(level) and 1 <= level <= largest):
        raise DataError(
            f"{name}: expected a rank in 1..{largest:,}, because the metric is the "
            f"{estimand.label} and 1 is best, found {level!r}"
        )
    return float(level)


@dataclass(frozen=True, repr=False, eq=False)
class Extrapolation(CurveDraws):
    """Accuracy, risk or another metric, predicted by one estimator at some numbers of classes.

    Attributes
    ----------
    draws : DataArray with dimensions (chain, draw, k)
        Draws of the predicted metric. Accuracies and risks are also available as `accuracy` and
        `risk`. Point estimates have one chain and one draw.
    estimator : str
        Name of the estimator.
    interval_type : {"credible", "bootstrap", "confidence", "none"}
        Meaning of the spread over draws; "confidence" for `Bounds`.
    n_classes : int
        k1, the number of source classes.
    base_notes : tuple of str
        Notes that were known at the prediction. `notes` has all.
    estimand : Estimand
        The predicted quantity: its metric, whether it is expected or measured in one test, and
        whether the population is finite.
    evidence : str
        Evidence of the posterior: "ranks", "ranks and scores", or "recalls" or "accuracies" of a
        printed table. Empty for other estimators.
    rank_limits : RankLimits or None
        Values that the ranks of the pilot allow without a prior, if the prediction is a posterior
        of an expectation.

    Examples
    --------
    >>> Extrapolation.from_point([10, 20], [0.9, 0.8], "example", n_classes=5).mean.tolist()
    [0.9, 0.8]
    """

    plot = PlotMethod("plot_accuracy")

    draws: xr.DataArray
    estimator: str
    interval_type: IntervalType
    n_classes: int
    base_notes: tuple[str, ...] = ()
    estimand: Estimand = _ACCURACY
    evidence: str = ""
    rank_limits: RankLimits | None = None

    @classmethod
    def from_point(
        cls,
        k: Any,
        values: Any,
        estimator: str,
        n_classes: int,
        notes: tuple[str, ...] = (),
        estimand: Estimand = _ACCURACY,
        warned: set[tuple[int, int]] | None = None,
    ) -> "Extrapolation":
        """Wrap a point estimate, `values` (n_k,): one chain, one draw, no interval.

        The other arguments are those of `from_draws`.
        """
        draws = np.atleast_1d(np.asarray(values, dtype=float))[None, None]
        return cls.from_draws(
            k, draws, estimator, "none", n_classes, notes, estimand, warned=warned
        )

    @classmethod
    def from_draws(
        cls,
        k: Any,
        draws: FloatArray,
        estimator: str,
        interval_type: IntervalType,
        n_classes: int,
        notes: tuple[str, ...] = (),
        estimand: Estimand = _ACCURACY,
        evidence: str = "",
        rank_limits: RankLimits | None = None,
        warned: set[tuple[int, int]] | None = None,
    ) -> "Extrapolation":
        """Wrap draws of a metric, or of the risk.

        Parameters
        ----------
        k : array-like of int, shape (n_k,)
            Numbers of classes.
        draws : array of shape (chain, draw, n_k)
            Draws.
        estimator : str
            Name in tables and legends.
        interval_type : {"credible", "bootstrap", "none"}
            Meaning of the spread over draws.
        n_classes : int
            k1, the number of source classes.
        notes : tuple of str
            Notes for readers. A note is added if k is far beyond k1.
        estimand : Estimand
            The quantity that is predicted.
        evidence : str
            Evidence of the posterior.
        rank_limits : RankLimits, optional
            Values that the ranks of the pilot allow without a prior.
        warned : set of (int, int), optional
            Pairs (k, k1) that are far apart and were warned of. One of them is not warned of again.

        Returns
        -------
        Extrapolation

        Raises
        ------
        FloatingPointError
            If a draw is not finite.
        """
        if not np.isfinite(draws).all():
            quantity = estimand.quantity
            raise FloatingPointError(f"{estimator}: the predicted {quantity} is not finite")
        notes = notes + far_beyond(int(np.max(k)), n_classes, estimand.source, warned)
        array = xr.DataArray(
            draws,
            dims=("chain", "draw", "k"),
            coords={
                "chain": np.arange(draws.shape[0]),
                "draw": np.arange(draws.shape[1]),
                "k": np.atleast_1d(k),
            },
            name=estimand.quantity,
        )
        return cls(
            array, estimator, interval_type, n_classes, notes, estimand, evidence, rank_limits
        )

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Notes for readers of the numbers, printed below every table.

        They are computed when they are first read, because the limits of the ranks take longer than
        the prediction.
        """
        return *self.base_notes, *self._notes_on_limits()

    @property
    def rank_bounds(self) -> "Bounds | None":
        """Limits without a prior at the same k, as from `MomentBounds`; None if unknown."""
        metric = None if self.rank_limits is None else named_metric(self.estimand.metric)
        if self.rank_limits is None or not isinstance(metric, MeanMetric):
            return None
        limits, name = partial(self.rank_limits.at, metric), "ranks without a prior"
        return Bounds.of(self.k, limits, name, self.n_classes, estimand=self.estimand)

    @property
    def bounding_data(self) -> str:
        """Data whose limits are known without a prior: "ranks", "recalls" or "accuracies"."""
        return "ranks" if "ranks" in (self.evidence or "ranks") else self.evidence

    def _notes_on_limits(self) -> tuple[str, ...]:
        """A sentence on the limits without a prior at the largest k, if they are apart."""
        if self.rank_limits is None:
            return ()
        metric = named_metric(self.estimand.metric)
        if metric.is_rank or not isinstance(metric, MeanMetric):
            return ()
        level, _ = interval_settings(None, None)
        lower, upper = self.rank_limits.at(metric, self.k.max(keepdims=True), level)[:, 0]
        if upper - lower <= REACHED:
            return ()
        units = self.estimand.units
        note = (
            f"on {self.k.max():,} {units} the {self.bounding_data} allow "
            f"{self.estimand.numerals.span(lower, upper)} without a prior "
            f"({interval_name(level, 'limits')})"
        )
        reach = self.rank_limits.reach(REACHED, level, self.n_classes, LARGEST_K)
        if 1 < reach < np.inf and metric.name == "accuracy":
            note += f"; they determine the accuracy to within {REACHED:g} up to {reach:,} {units}"
        return (note,)

    def with_notes(self, notes: Iterable[str]) -> "Extrapolation":
        """Copy with further notes, a sentence each."""
        return replace(self, base_notes=(*self.base_notes, *notes))

    @property
    def accuracy(self) -> xr.DataArray:
        """Predicted accuracy: dimensions (chain, draw, k); `DataError` if it is another metric."""
        return self._of("accuracy")

    @property
    def risk(self) -> xr.DataArray:
        """Predicted risk: dimensions (chain, draw, k); `DataError` if it is another metric."""
        return self._of(RISK)

    def _of(self, quantity: str) -> xr.DataArray:
        if quantity != self.quantity:
            read = self.quantity if self.quantity in ("accuracy", RISK) else "draws"
            raise DataError(
                f"{self.estimator} predicts {self.quantity} and not {quantity}; read .{read}"
            )
        return self.draws

    @property
    def quantity(self) -> str:
        """Name of the predicted metric without its m: "accuracy", "risk" or another name."""
        return self.estimand.quantity

    @property
    def description(self) -> str:
        """The estimand in words."""
        return self.estimand.describe()

    @property
    def k(self) -> IntArray:
        """Numbers of classes of the prediction, shape (n_k,)."""
        return self.draws["k"].values

    def prob_at_least(self, level: float) -> pd.Series:
        """Posterior probability that the metric is at least `level`; for ranks a level in 1..k."""
        value = checked_level(self.estimand, level, "level", int(self.k.max()))
        if self.quantity == RISK:
            raise DataError(
                f"{self.estimator} predicts risk, which is better if smaller; call "
                ".prob_at_most(risk)"
            )
        return self._probability(self.draws >= value)

    def prob_at_most(self, level: float) -> pd.Series:
        """Posterior probability that the metric, such as a mean rank, is at most `level`."""
        value = checked_level(self.estimand, level, "level", int(self.k.max()))
        return self._probability(self.draws <= value)

    def prob_reached(self, level: float) -> pd.Series:
        """Posterior probability of a metric as good as `level`: at most it for ranks and risks."""
        if self.estimand.less_is_better:
            return self.prob_at_most(level)
        return self.prob_at_least(level)

    def _require_spread(self, statistic: str) -> None:
        if self.interval_type == "none":
            raise DataError(f"{self.estimator} is a point estimate and has no {statistic}")

    def _table(self, ci_prob: float | None = None, ci_kind: str | None = None) -> DrawsTable:
        if self.interval_type == "none":
            return DrawsTable.of_points(self.mean)
        return super()._table(ci_prob, ci_kind)

    def _display(self) -> Display:
        of = "of" if self.estimand.units == "classes" else "among"
        source = f"{self.evidence} {of} " * bool(self.evidence)
        source += f"{self.n_classes:,} {self.estimand.source}"
        return Display(
            f"{self.estimator}: {self.description}, from {source}",
            self._table().text(),
            tuple(f"note: {note}" for note in self.notes),
        )


@dataclass(frozen=True, repr=False, eq=False)
class Bounds(Extrapolation):
    """Confidence limits of a metric at some numbers of classes.

    `interval` computes the limits of any level. Half of the draws are the lower limits of the usual
    level and half are the upper ones, so tables and plots of draws show these limits.
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
        """Wrap `limits`, which the class describes; others as in `Extrapolation.from_draws`."""
        ends = limits(k, interval_settings(None, None)[0])
        draws = xr.DataArray(
            np.repeat(ends, _N_EACH, axis=0)[None],
            dims=("chain", "draw", "k"),
            coords={"chain": [0], "draw": np.arange(2 * _N_EACH), "k": k},
            name=estimand.quantity,
        )
        return cls(draws, estimator, "confidence", n_classes, notes, estimand, limits=limits)

    def interval(self, ci_prob: float | None = None, ci_kind: str | None = None) -> pd.DataFrame:
        """Limits at each k, of a level as in `Extrapolation.interval`, and of one kind."""
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


@dataclass(frozen=True, repr=False, eq=False)
class ClassesUntil(Shown):
    """Number of classes at which expected accuracy falls to a level, or a rank rises to it.

    Attributes
    ----------
    level : float
        Level of the expected metric.
    k : DataArray with dimensions (chain, draw)
        Largest number of classes that keep the level, interpolated. It is 1 if even two classes are
        too many, and infinite beyond `largest`.
    largest : int
        Largest number of classes that was tried.
    n_classes : int
        k1, the number of source classes. Sentences say "more than" beyond 100 times as many.
    estimand : Estimand
        The quantity that has the level.
    """

    plot = PlotMethod("plot_classes_until")

    level: float
    k: xr.DataArray
    largest: int
    n_classes: int
    estimand: Estimand = _ACCURACY

    @property
    def median(self) -> float:
        """Posterior median; may be infinite."""
        return float(np.quantile(self.k.values, 0.5, method="inverted_cdf"))

    def interval(self, ci_prob: float | None = None) -> tuple[float, float]:
        """Equal-tailed credible interval; its limits are draws and may be infinite.

        `ci_prob` is 0.9 by default, or ArviZ's changed ``rcParams["stats.ci_prob"]``.
        """
        prob, _ = interval_settings(ci_prob, "eti")
        tails = [(1 - prob) / 2, (1 + prob) / 2]
        lower, upper = np.quantile(self.k.values, tails, method="inverted_cdf")
        return float(lower), float(upper)

    def prob_at_least(self, k: float) -> float:
        """Posterior probability that the number of classes is at least `k`."""
        if not (isinstance(k, float) and k == np.inf):
            number(k, "k", 0)
        return float((self.k.values >= k).mean())

    def describe(self, ci_prob: float | None = None) -> str:
        """One sentence with the median and an interval of a level as in `interval`.

        Beyond 100 k1 classes the model decides more than the data. An interval that reaches so far
        has no upper limit in the sentence: "4,220 or more". `median` and `interval` have the
        numbers.
        """
        if self.interval(ci_prob)[1] < 2:
            return f"{self._missed} on any number of {self.estimand.units}"
        return f"{self.describe_median()} ({self.describe_interval(ci_prob)})"

    def describe_median(self) -> str:
        """The sentence of `describe` without the interval."""
        median, units = self._within_reach(self.median), self.estimand.units
        if median < 2:
            return f"{self._missed} even on 2 {units}"
        turns, stays = ("rises", "below") if self.estimand.is_rank else ("falls", "above")
        verb = f"probably stays {stays} {{}} on" if np.isinf(median) else f"{turns} to {{}} at"
        level = verb.format(self.estimand.exact(self.level))
        return f"{self.estimand.label} {level} {self._text(median)} {units}"

    @property
    def _missed(self) -> str:
        """A clause that no number of classes keeps the level."""
        side = "above" if self.estimand.is_rank else "below"
        return f"{self.estimand.label} is {side} {self.estimand.exact(self.level)}"

    def describe_interval(self, ci_prob: float | None = None) -> str:
        """Name of the interval of `describe`, and its limits."""
        prob, kind = interval_settings(ci_prob, "eti")
        lower, upper = map(self._within_reach, self.interval(prob))
        if np.isinf(upper) and np.isfinite(lower):
            span = f"{self._text(max(lower, 2))} or more"
        elif lower < 2 <= upper:
            span = f"up to {self._text(upper)}"
        else:
            span = " to ".join(dict.fromkeys([self._text(lower), self._text(upper)]))
        return f"{interval_label(prob, kind)}: {span}"

    @property
    def _reach(self) -> int:
        """Number of classes beyond which sentences have no number."""
        return min(self.largest, FARTHEST_FACTOR * self.n_classes)

    def _within_reach(self, k: float) -> float:
        return k if k <= self._reach else np.inf

    def _text(self, k: float) -> str:
        # Draws support no more digits than three.
        return count(float(f"{k:.3g}") if 1000 <= k < np.inf else k, self._reach)

    def _display(self) -> Display:
        return Display(self.describe())


def far_beyond(
    largest_k: int,
    n_classes: int,
    classes: str = "source classes",
    warned: set[tuple[int, int]] | None = None,
) -> tuple[str, ...]:
    """Warn of a k far beyond the n classes of the pilot, which are called `classes`.

    Returns the warning as a note for the prediction. The pairs (k, n) in `warned` are not warned of
    again.
    """
    if largest_k <= FARTHEST_FACTOR * n_classes:
        return ()
    note = (
        f"k = {largest_k:,} is {largest_k / n_classes:,.0f} times the {n_classes:,} {classes}; so "
        "far beyond them the prediction depends on the model more than on the data"
    )
    pair, warned = (largest_k, n_classes), set() if warned is None else warned
    if pair not in warned:
        warn(note, ExtrapolationWarning)
    warned.add(pair)
    return (note,)
