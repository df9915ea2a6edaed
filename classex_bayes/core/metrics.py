"""Metrics: functions of the rank of the true class among k classes.

Each metric is defined once, for a pilot (`Metric.average`) and for a distribution of U*
(`Metric.under`). `SourceTask.metric`, `BayesianExtrapolator.predict`, plots and tables select it by
its name.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np
from scipy.special import betainc, ndtr, ndtri, polygamma

from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.rank_gains import (
    expected_gain,
    gain_given_favorability,
    gain_given_n_better,
)
from classex_bayes.core.subsets import top_accuracy_given_n_better, weighted_over_n_better
from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray, IntArray


class Metric(ABC):
    """A statistic of the rank of the true class among k classes; rank 1 is best.

    If a query has several relevant documents, its rank is the rank of the best of them, unless the
    metric `counts_all`. Most metrics are the mean of a function of the rank (`MeanMetric`).
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Name that selects the metric, such as "accuracy@5"."""

    @property
    def label(self) -> str:
        """Name of the metric on axes and in headers."""
        return self.name

    is_rank: ClassVar[bool] = False
    """Whether values are ranks in 1..k (smaller is better). Other metrics lie in [0, 1]."""

    @property
    def is_of_retrieval(self) -> bool:
        """Whether classes are documents, which a query finds."""
        return False

    @property
    def counts_all(self) -> bool:
        """Whether all relevant documents of a query count, and not the best one alone."""
        return False

    @property
    def is_accuracy(self) -> bool:
        """Whether it counts the ranks of 1 alone, as the accuracy does."""
        return False

    def limits(self, k: FloatArray | IntArray) -> tuple[float, FloatArray]:
        """Smallest possible value, and largest possible values (n_k,), on k classes."""
        sizes = np.atleast_1d(np.asarray(k, dtype=float))
        return (1.0, sizes) if self.is_rank else (0.0, np.ones(sizes.size))

    @abstractmethod
    def average(
        self, n_better: IntArray, n_classes: int, k: IntArray, weights: FloatArray
    ) -> FloatArray:
        """Value (n_k,) over all subsets of k source classes and the weighted instances.

        `n_better` (n,) are rank - 1: the number of wrong classes that score above the true class.
        `weights` (n,) sum to 1.
        """

    @abstractmethod
    def under(
        self, weights: FloatArray, basis: RadialBasis, k: FloatArray | IntArray
    ) -> FloatArray:
        """Value (..., n_k) on k classes under mixtures of a radial basis as distributions of U*.

        `weights` (..., m) are the mixture weights. Given the favorability U, the rank is
        1 + Binomial(k - 1, 1 - U).
        """


class MeanMetric(Metric):
    """The mean of a function of the rank.

    To add a metric that is a mean of gains, add a row to `GAINS`.
    """

    @abstractmethod
    def given_n_better(self, n_better: IntArray, n_classes: int, k: IntArray) -> FloatArray:
        """Mean (n, n_k) over the subsets of k source classes that contain the true class.

        `n_better` are as in `average`.
        """

    @abstractmethod
    def given_favorability(self, z: FloatArray, k: float) -> FloatArray:
        """Expectation (n_z,) on k > 1 classes if U* = Phi(z); z may be infinite."""

    @abstractmethod
    def expected(self, basis: RadialBasis, k: FloatArray | IntArray) -> FloatArray:
        """Expectation (n_k, m) on k classes for each of the m elements of a radial basis."""

    def average(
        self, n_better: IntArray, n_classes: int, k: IntArray, weights: FloatArray
    ) -> FloatArray:
        """Weighted mean (n_k,) of `given_n_better` over instances.

        For k <= k1 it is an unbiased estimate of the expectation on k classes.
        """
        return self.within_limits(self.weighted_sum(n_better, n_classes, k, weights), k)

    def weighted_sum(
        self, n_better: IntArray, n_classes: int, k: FloatArray | IntArray, weights: FloatArray
    ) -> FloatArray:
        """Weighted sum (n_k,) of `given_n_better` over instances."""
        return weighted_over_n_better(
            lambda values, part: self.given_n_better(values, n_classes, part), n_better, k, weights
        )

    def within_limits(self, mean: FloatArray, k: FloatArray | IntArray) -> FloatArray:
        """Means (..., n_k) within their limits, which rounding of the weights may exceed."""
        return np.clip(mean, *self.limits(k))

    @abstractmethod
    def behind(self, n_ahead: int) -> "MeanMetric":
        """The metric if the true class has this number of further classes ahead of it."""

    def under(
        self, weights: FloatArray, basis: RadialBasis, k: FloatArray | IntArray
    ) -> FloatArray:
        """Expectation (..., n_k) under each mixture."""
        return self.within_limits(weights @ self.expected(basis, k).T, k)


Discount = Callable[[FloatArray], FloatArray]
Coefficient = Callable[[FloatArray, FloatArray, int], FloatArray]


class Gain(NamedTuple):
    r"""A row of the table of gains.

    A relevant document at rank r gains :math:`c \, d(r)` up to a last rank, and nothing beyond it.
    If the document is the j-th relevant one, :math:`r = j + N_j` with N_j irrelevant ones before
    it. The metric of a query is the sum over its relevant documents, of which there are R.
    """

    label: str
    discount: Discount | None = None  # d(r); None if it is 1
    # c(j, R, m); None if the best relevant document counts alone, as if it were the only one
    coefficient: Coefficient | None = None
    graded: bool = False  # c is the grade as a share of the sum for the best order of the grades
    last: Literal["m", "m or none", "R"] = "m or none"  # the last rank with a gain


def _of_each(j: FloatArray, n_relevant: FloatArray, m: int) -> FloatArray:
    return 1 / n_relevant


# The metrics of trec_eval, of recommenders and of metric learning (Musgrave et al., ECCV 2020).
GAINS = {
    "accuracy": Gain("accuracy"),
    "hit_rate": Gain("hit rate", last="m"),
    "success": Gain("success", last="m"),
    "recall": Gain("recall", None, _of_each, last="m"),
    "precision": Gain("precision", None, lambda j, n_relevant, m: np.ones_like(j) / m, last="m"),
    "r_precision": Gain("R-precision", None, _of_each, last="R"),
    "mrr": Gain("MRR", np.reciprocal),
    "map": Gain("MAP", np.reciprocal, lambda j, n_relevant, m: j / n_relevant),
    "map@r": Gain("MAP@R", np.reciprocal, lambda j, n_relevant, m: j / n_relevant, last="R"),
    "ndcg": Gain("nDCG", lambda rank: 1 / np.log2(1 + rank), _of_each, graded=True),
}
# If one document is relevant, all of these are the share of ranks up to m.
SHARES_UP_TO_M = {"accuracy", "hit_rate", "success", "recall"}
_MOST_GAINS = 1000  # a sum over ranks has m terms


@dataclass(frozen=True)
class GainMetric(MeanMetric):
    r"""Mean of the gains of a row of `GAINS`.

    The mean is that of one relevant document of each query, R = j = 1. Of several, which
    `classex_bayes.task.relevant_ranks` adds up, it is that of one of them relative to the
    coefficient of an only one.

    Parameters
    ----------
    m : int, optional
        The last rank with a gain.
    key : str
        Key of the row.
    n_ahead : int
        Number of further classes that are always ahead, such as better relevant documents.
    n_relevant : int
        R, which is the last rank with a gain in some rows.
    """

    m: int | None = None
    key: str = "mrr"
    n_ahead: int = field(default=0, kw_only=True)
    n_relevant: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        """Raise DataError if m is so large that the sums take too long."""
        if self.row.discount is not None and self.m is not None and self.m > _MOST_GAINS:
            raise DataError(
                f"metric: found {self.name!r}, expected an m of at most {_MOST_GAINS}; pass "
                f"{self.key!r} for gains at every rank"
            )

    @property
    def row(self) -> Gain:
        """Row of the table of gains."""
        return GAINS[self.key]

    @property
    def counts_all(self) -> bool:
        """Whether all relevant documents of a query count, and not the best one alone."""
        return self.row.coefficient is not None

    @property
    def is_graded(self) -> bool:
        """Whether gains depend on the grades of the documents."""
        return self.row.graded

    @property
    def is_of_retrieval(self) -> bool:
        """Whether it was requested by another name than accuracy."""
        return self.key != "accuracy"

    @property
    def is_accuracy(self) -> bool:
        """Whether it counts the ranks of 1 alone: the accuracy, or another share up to m = 1."""
        return self.row.discount is None and self.last == 1 and not self.n_ahead

    @property
    def name(self) -> str:
        """The name by which it was requested, such as "recall@m"; "accuracy" if m is 1.

        Recall@1 keeps its name, because of several relevant documents it is another metric.
        """
        if self.is_accuracy and not self.counts_all:
            return "accuracy"
        return self.key if self.m is None else f"{self.key}@{self.m}"

    @property
    def label(self) -> str:
        """The label of the row, with @m if there is an m; "top-m accuracy"."""
        if self.key == "accuracy":
            return "accuracy" if self.m == 1 else f"top-{self.m} accuracy"
        return self.row.label if self.m is None else f"{self.row.label}@{self.m}"

    @property
    def last(self) -> int | None:
        """The last rank with a gain; None if all ranks have one."""
        return self.n_relevant if self.row.last == "R" else self.m

    @property
    def smallest_k(self) -> int:
        """Smallest number of classes on which it depends on the ranks."""
        return 2 if self.row.discount is not None else (self.last or 1) + 1

    @property
    def scale(self) -> float:
        """Coefficient of the only relevant document of a query."""
        return float(self.coefficient(np.ones(1), np.ones(1))[0]) if self.counts_all else 1.0

    def coefficient(self, j: FloatArray, n_relevant: FloatArray) -> FloatArray:
        """Coefficients (n,) of the j-th relevant documents of queries, all of the same grade."""
        assert self.row.coefficient is not None
        return self.row.coefficient(j, n_relevant, self.m or 1)

    def behind(self, n_ahead: int) -> Self:
        """Metric with the gains of the ranks beyond `n_ahead`."""
        return replace(self, n_ahead=self.n_ahead + n_ahead)

    def within_limits(self, mean: FloatArray, k: FloatArray | IntArray) -> FloatArray:
        """Means (..., n_k) within [0, 1]; accuracies are exactly 1 for k <= m."""
        clipped = np.clip(mean, 0.0, self.scale)
        if self.row.discount is not None or self.last is None or self.n_ahead:
            return clipped
        # Two classifiers are equal there, and rounding must not make one of them better.
        return np.where(np.atleast_1d(k) <= self.last, self.scale, clipped)

    @property
    def _top(self) -> int:
        """Number of ranks with a gain among the classes that are not always ahead."""
        assert self.last is not None
        return max(self.last - self.n_ahead, 0)

    def _gains(self, rank: FloatArray) -> FloatArray:
        """Gains of ranks among the classes that are not always ahead."""
        return discounted(self.row.discount, rank + self.n_ahead, self.last)

    def given_n_better(self, n_better: IntArray, n_classes: int, k: IntArray) -> FloatArray:
        """Hypergeometric mean, see `top_accuracy_given_n_better` and `gain_given_n_better`."""
        if self.row.discount is None:
            found = top_accuracy_given_n_better(n_better, n_classes, k, self._top)
        else:
            found = gain_given_n_better(n_better, n_classes, k, self._gains, self.last)
        return self.scale * found

    def given_favorability(self, z: FloatArray, k: float) -> FloatArray:
        """Binomial mean, see `gain_given_favorability`."""
        if self.row.discount is not None:
            return self.scale * gain_given_favorability(z, k, self._gains, self.last)
        if (top := self._top) == 0 or k <= top:
            return np.full(z.size, self.scale if top else 0.0)
        above = betainc(top, k - top, ndtr(-z))
        below = betainc(k - top, top, ndtr(z))
        return self.scale * np.where(above < 0.5, 1 - above, below)

    def expected(self, basis: RadialBasis, k: FloatArray | IntArray) -> FloatArray:
        """Binomial mean under each element."""
        return self.expected_of([self], basis, k)[0]

    @staticmethod
    def expected_of(
        metrics: Sequence["GainMetric"], basis: RadialBasis, k: FloatArray | IntArray
    ) -> FloatArray:
        """Expectations (n_metrics, n_k, m) of metrics of one row and m, which share the sums.

        See `expected_top_accuracy` and `expected_gain`.
        """
        first = metrics[0]
        if (discount := first.row.discount) is None:
            tops, place = np.unique([metric._top for metric in metrics], return_inverse=True)
            found = [expected_top_accuracy(basis, k, top) for top in tops.tolist()]
            return first.scale * np.stack(found)[place]
        ahead = np.array([metric.n_ahead for metric in metrics])
        last = None if first.last is None else np.array([metric.last for metric in metrics])

        def gains(rank: FloatArray) -> FloatArray:
            of_metrics = tuple(slice(None) if axis == 0 else None for axis in range(1 + rank.ndim))
            ends = None if last is None else last[of_metrics]
            return discounted(discount, rank + ahead[of_metrics], ends)

        return first.scale * expected_gain(basis, k, gains, None if last is None else last.max())


def discounted(
    discount: Discount | None, rank: FloatArray, last: IntArray | int | None
) -> FloatArray:
    """Gains of ranks, 0 beyond the last."""
    gains = np.ones(rank.shape) if discount is None else discount(rank)
    return gains if last is None else np.where(rank <= last, gains, 0.0)


@dataclass(frozen=True)
class Accuracy(GainMetric):
    r"""Top-m accuracy :math:`P(R \le m)`, also called recall@m, hit rate@m and success@m.

    The average of the accuracy, m = 1, over subsets of the tested classes is the average test
    accuracy :math:`ATA_k = \sum_i \omega_i \binom{V_i}{k-1} / \binom{k_1-1}{k-1}`, where
    :math:`V_i = k_1 - 1 - L_i` and L_i classes are better than the true one (Zheng, Achanta and
    Benjamini, JMLR 19(65), 2018, (4)). At k = k1 it is the weighted test accuracy.

    Examples
    --------
    >>> weights = np.full(3, 1 / 3)
    >>> Accuracy().average(np.array([0, 1, 0]), 3, np.array([2, 3]), weights).round(4)
    array([0.8333, 0.6667])
    """

    m: int | None = 1
    key: str = "accuracy"


@dataclass(frozen=True)
class MeanRank(MeanMetric):
    r"""Mean of the rank, :math:`1 + (k - 1) E[1 - U]`; smaller is better."""

    name, label, is_rank = "mean_rank", "mean rank", True
    n_ahead: int = 0  # classes that are always ahead

    def given_n_better(self, n_better: IntArray, n_classes: int, k: IntArray) -> FloatArray:
        """1 + L (k - 1) / (k1 - 1) for L better classes."""
        return (
            1
            + self.n_ahead
            + np.asarray(n_better)[:, None] * ((np.atleast_1d(k) - 1) / (n_classes - 1))
        )

    def behind(self, n_ahead: int) -> "MeanRank":
        """Mean rank with this number added."""
        return MeanRank(self.n_ahead + n_ahead)

    def given_favorability(self, z: FloatArray, k: float) -> FloatArray:
        """1 + (k - 1) (1 - Phi(z))."""
        return 1 + (k - 1) * ndtr(-z)

    def expected(self, basis: RadialBasis, k: FloatArray | IntArray) -> FloatArray:
        """1 + (k - 1) P(a random competitor scores above the true class)."""
        beaten = ndtr(-basis.knots / np.hypot(1, basis.bandwidth))
        return 1 + (np.atleast_1d(np.asarray(k, dtype=float)) - 1)[:, None] * beaten


@dataclass(frozen=True)
class MedianRank(Metric):
    """Smallest r with P(R <= r) at least 1/2; smaller is better.

    P(R <= r) is the expected top-r accuracy. The median is not linear in the distribution of U*, so
    the value of a pilot is a biased estimate of the median on k classes.
    """

    name, label, is_rank = "median_rank", "median rank", True

    def average(
        self, n_better: IntArray, n_classes: int, k: IntArray, weights: FloatArray
    ) -> FloatArray:
        """Median (n_k,) over all pairs of a subset of k source classes and an instance."""

        def top_accuracy(m: int, size: int) -> float:
            return float(Accuracy(m).average(n_better, n_classes, np.array([size]), weights)[0])

        return self.by_top_accuracy(top_accuracy, k)

    @staticmethod
    def by_top_accuracy(top_accuracy: Callable[[int, int], float], k: IntArray) -> FloatArray:
        """Median ranks (n_k,) from a function of m and of a number of classes: P(R <= m)."""

        def smallest(size: int) -> int:
            few, enough = 0, size
            while enough - few > 1:
                middle = (few + enough) // 2
                # Rounding must not reject a share of exactly one half.
                if top_accuracy(middle, size) >= 0.5 - _ROUNDING:
                    enough = middle
                else:
                    few = middle
            return enough

        return np.array([smallest(int(size)) for size in np.atleast_1d(k)], dtype=float)

    def under(
        self, weights: FloatArray, basis: RadialBasis, k: FloatArray | IntArray
    ) -> FloatArray:
        """Median (..., n_k) under each mixture, see `median_rank`."""
        flat = weights.reshape(-1, weights.shape[-1])
        medians = [median_rank(flat, basis, int(size)) for size in np.atleast_1d(k)]
        return np.stack(medians, axis=-1).reshape(*weights.shape[:-1], -1)


_ROUNDING = 1e-12
_TABULATED, _REFINEMENTS = 129, 4
_MOST_DIGITS = 12


# Names in other software (trec_eval, ir_measures, ranx, libraries of metric learning), without the
# marks between their words. "n@m" passes m.
_SYNONYMS = {
    name: key
    for key, names in {
        "accuracy": "acc top topk topaccuracy topkaccuracy rank cmc",
        "recall": "r",
        "hit_rate": "hit hits hitrate hitratio hr",
        "success": "s",
        "precision": "p prec",
        "r_precision": "rprec rprecision precisionr precisionatr pr",
        "mrr": "rr reciprank reciprocalrank meanreciprocalrank inverseharmonicmeanrank",
        "map": "ap averageprecision meanaverageprecision",
        "map@r": "apr mapr mapatr averageprecisionatr meanaverageprecisionatr",
        "ndcg": "normalizeddiscountedcumulativegain",
        "mean_rank": "mr mnr meanrank arithmeticmeanrank",
        "median_rank": "medr mdr medianrank",
    }.items()
    for name in names.split()
}
_ONLY_WITH_M = "top", "topk", "rank", "cmc"
_NAME = re.compile(r"([a-z_-]+?)(?:(?:@|[_-]?(?:(?:at|cut)[_-]?)?)([0-9]+)((?:_acc|_accuracy)?))?")
_OF_RANKS: dict[str, Callable[[], Metric]] = {"mean_rank": MeanRank, "median_rank": MedianRank}


def standard_name(name: str) -> str:
    """Name of a metric in the words of `GAINS`, from the names that other software gives it.

    Examples
    --------
    >>> names = "HR@10", "ndcg_cut_10", "recip_rank", "Top 5", "P_10", "Rprec", "AP@10", "MAP@R"
    >>> [standard_name(name) for name in names]  # doctest: +NORMALIZE_WHITESPACE
    ['hit_rate@10', 'ndcg@10', 'mrr', 'accuracy@5', 'precision@10', 'r_precision', 'map@10',
     'map@r']
    """
    simple = re.sub(r"\s+", "_", re.sub(r"\s*@\s*", "@", name.strip().lower()))
    parts = _NAME.fullmatch(simple)
    words, m, _ = (simple, None, None) if parts is None else parts.groups()
    flat = re.sub("[@_-]", "", words)
    if m is None and flat in _ONLY_WITH_M:
        return name
    key = _SYNONYMS.get(flat, words)
    return key if m is None else f"{key}@{m}"


def named_metric(name: str) -> Metric:
    """Metric with a given name.

    Parameters
    ----------
    name : str
        A key of `GAINS` in any case, such as "accuracy", "mean_rank", "median_rank", or a name that
        other software gives it (`standard_name`). If the metric has an m, "@m" may follow, with m
        in 1..10^12 - 1, or in 1..1000 for "mrr", "map" and "ndcg". Some metrics need an m.

    Examples
    --------
    >>> named_metric("accuracy@5")
    Accuracy(m=5, key='accuracy', n_ahead=0, n_relevant=1)
    """
    if isinstance(name, str) and "," in name:
        raise DataError(f"metric: found {name!r}, expected one metric; make one call for each")
    standard = standard_name(name) if isinstance(name, str) else ""
    key, at, m = (standard, "", "") if standard in GAINS else standard.partition("@")
    if key not in GAINS and key not in _OF_RANKS:
        names = ", ".join([*GAINS, *_OF_RANKS])
        raise DataError(f"metric: found {name!r}, expected one of {names}, such as 'accuracy@5'")
    row = GAINS.get(key)
    if at and (row is None or row.last == "R"):
        raise DataError(f"metric: found {name!r}, expected {key!r}, which has no m")
    if row is None:
        return _OF_RANKS[key]()
    if not at and row.last == "m":
        raise DataError(f"metric: found {name!r}, expected '{key}@1', '{key}@10' or similar")
    if at and not (m.isascii() and m.isdigit() and len(m) <= _MOST_DIGITS and int(m) > 0):
        raise DataError(f"metric: found {name!r}, expected a whole number in 1..10^12 - 1 after @")
    if key == "accuracy" or standard == "precision@1":
        return Accuracy(int(m or 1))
    kind = Accuracy if key in SHARES_UP_TO_M else GainMetric
    return kind(int(m) if at else None, key)


def mean_metric(name: str) -> MeanMetric:
    """As `named_metric`, of metrics that are means; raise for the others."""
    metric = named_metric(name)
    if not isinstance(metric, MeanMetric):
        raise DataError(f"metric: found {name!r}, expected a mean of a function of the rank")
    return metric


def expected_top_accuracy(basis: RadialBasis, k: FloatArray | IntArray, top: int) -> FloatArray:
    r"""Expected top-m accuracy (n_k, n) on k classes for each of n elements of a radial basis.

    Given the favorability U, the number L of better classes among k is Binomial(k - 1, 1 - U). So
    the accuracy of element l, with CDF :math:`h_l`, is

    .. math:: A_l(k; m) = E[P(L < m)] = E[1 - h_l(X)], \qquad X \sim Beta(k - m, m).

    The integral over X uses the log odds of X, because the integrand is then smooth for every k and
    m. The accuracy of a mixture with weights w is :math:`\sum_l w_l A_l(k; m)`. The absolute error
    is below 1e-11 for k up to 1e12. `top` is m: for m = 0 the accuracies are 0, for m = 1 they
    equal `RadialBasis.accuracy`, and for k <= m they are 1.

    References
    ----------
    Zheng, Achanta and Benjamini, draft (2016), section 4 (the cumulative form gamma_m).

    Examples
    --------
    With one standard normal element the favorability is uniform and the accuracy is that of
    guessing, m / k.

    >>> guessing = RadialBasis(np.array([0.0]), 1.0)
    >>> expected_top_accuracy(guessing, np.array([2, 5, 1000]), 5).round(6).ravel().tolist()
    [1.0, 1.0, 0.005]
    """
    if top == 1:
        return basis.accuracy(k)
    sizes = np.atleast_1d(k)
    if top == 0:
        return np.zeros((sizes.size, basis.knots.size))
    accuracy = np.ones((sizes.size, basis.knots.size))
    for row in np.flatnonzero(sizes > top):
        z, weight = _beta_rule(float(sizes[row] - top), float(top), basis.bandwidth)
        accuracy[row] = weight @ ndtr((basis.knots - z[:, None]) / basis.bandwidth)
    return np.minimum(accuracy, 1.0)


def median_rank(weights: FloatArray, basis: RadialBasis, k: int) -> FloatArray:
    r"""Median rank (n,) on k classes: the smallest r with :math:`P(R \le r) \ge 1/2`.

    The n distributions of U* are mixtures of a basis, with `weights` (n, m). P(R <= r) is the
    expected top-r accuracy. It is tabulated at up to 129 log-spaced ranks from 1 to k. The table is
    refined up to three times, each time between the ranks that enclose the medians of all mixtures.
    The result is exact if the last table contains every rank of its range. Otherwise it is
    interpolated linearly in the logarithm of the rank, with an error below 1%.

    Examples
    --------
    With one standard normal element all ranks are equally likely.

    >>> median_rank(np.array([[1.0]]), RadialBasis(np.array([0.0]), 1.0), 99).tolist()
    [50.0]
    """
    first, last = 1, k
    for _ in range(_REFINEMENTS):
        rank = np.unique(np.rint(np.geomspace(first, last, _TABULATED)).astype(np.int64))
        at_most = np.stack(
            [weights @ expected_top_accuracy(basis, np.array([k]), int(r))[0] for r in rank], axis=1
        )
        # Each row reaches 1/2, because it is 1 at r = k.
        place = np.argmax(at_most >= 0.5 - _ROUNDING, axis=1)
        low, high = max(int(place.min()) - 1, 0), int(place.max())
        if rank.size == last - first + 1 or (low, high) == (0, rank.size - 1):
            break
        first, last = int(rank[low]), int(rank[high])
    rows, before = np.arange(place.size), np.maximum(place - 1, 0)
    lower, upper = at_most[rows, before], at_most[rows, place]
    share = np.clip((0.5 - lower) / np.maximum(upper - lower, np.finfo(float).tiny), 0, 1)
    between = np.ceil(rank[before] * (rank[place] / rank[before]) ** share)
    return np.clip(between, np.minimum(rank[before] + 1, rank[place]), rank[place])


def _beta_rule(wins: float, top: float, bandwidth: float) -> tuple[FloatArray, FloatArray]:
    """Nodes Phi^-1(x) and weights of a trapezoid rule over X ~ Beta(wins, top).

    Quantiles as nodes would need SciPy's `betaincinv`, which fails at m = 1000 for k from 1e8 on.
    """
    total = wins + top
    sd = float(np.sqrt(polygamma(1, wins) + polygamma(1, top)))
    step = min(0.2, 0.4 * sd, 0.4 * bandwidth)
    # The density is normal in the middle and exponential in the tails. Beyond these nodes it is
    # below 1e-18.
    n_nodes = int(np.ceil((9.2 * sd + 42 / min(wins, top)) / step))
    # The log odds of 1 - X, measured from their mode, avoid cancellation in the exponent.
    distance = np.arange(-n_nodes, n_nodes + 1) * step
    spread = np.log1p(top / total * np.expm1(distance))
    weight = np.exp(top * distance - total * spread)
    x, rest = wins / total * np.exp(-spread), top / total * np.exp(distance - spread)
    z = np.where(x < rest, ndtri(np.minimum(x, 0.5)), -ndtri(np.minimum(rest, 0.5)))
    kept = weight > 1e-18
    return z[kept], weight[kept] / weight[kept].sum()
