"""Metrics: functions of the rank of the true class among k classes.

Each metric is defined once, for a pilot (`Metric.average`) and for a distribution of U*
(`Metric.under`). `SourceTask.metric`, `BayesianExtrapolator.predict`, plots and tables select it by
its name.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from typing import ClassVar, Self

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

    To add a metric, define `name`, `given_n_better`, `given_favorability`, `expected` and `behind`
    in a subclass, and add it to `METRICS`.
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


@dataclass(frozen=True)
class Accuracy(MeanMetric):
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

    m: int = 1
    called: str = field(default="accuracy", compare=False, repr=False)

    @property
    def name(self) -> str:
        """The name by which it was requested, such as "recall@m"; "accuracy" if m is 1.

        Recall@1 keeps its name, because of several relevant documents it is another metric.
        """
        is_accuracy = self.m == 1 and not self.counts_all
        return "accuracy" if is_accuracy else f"{self.called}@{self.m}"

    @property
    def label(self) -> str:
        """Either "accuracy", "top-m accuracy", or another name such as "hit rate@m"."""
        if self.called == "accuracy":
            return "accuracy" if self.m == 1 else f"top-{self.m} accuracy"
        return self.name.replace("_", " ")

    @property
    def is_of_retrieval(self) -> bool:
        """Whether it was requested by another name than accuracy."""
        return self.called != "accuracy"

    @property
    def counts_all(self) -> bool:
        """Whether it is the recall: the share of the relevant documents that are found."""
        return self.called == "recall"

    def given_n_better(self, n_better: IntArray, n_classes: int, k: IntArray) -> FloatArray:
        """Hypergeometric probability, see `top_accuracy_given_n_better`."""
        return top_accuracy_given_n_better(n_better, n_classes, k, self.m)

    def within_limits(self, mean: FloatArray, k: FloatArray | IntArray) -> FloatArray:
        """Accuracies (..., n_k) within [0, 1], and exactly 1 for k <= m."""
        # Two classifiers are equal there, and rounding must not make one of them better.
        return np.where(np.atleast_1d(k) <= self.m, 1.0, super().within_limits(mean, k))

    def behind(self, n_ahead: int) -> "Accuracy":
        """Accuracy among the m - `n_ahead` best."""
        return replace(self, m=max(self.m - n_ahead, 0))

    def given_favorability(self, z: FloatArray, k: float) -> FloatArray:
        """P(Binomial(k - 1, 1 - Phi(z)) < m)."""
        if k <= self.m:
            return np.ones(z.size)
        above = betainc(self.m, k - self.m, ndtr(-z))
        return np.where(above < 0.5, 1 - above, betainc(k - self.m, self.m, ndtr(z)))

    def expected(self, basis: RadialBasis, k: FloatArray | IntArray) -> FloatArray:
        """Binomial probability under each element, see `expected_top_accuracy`."""
        return expected_top_accuracy(basis, k, self.m)


_MOST_GAINS = 1000  # a sum over ranks has m terms


@dataclass(frozen=True)
class GainMetric(MeanMetric):
    """Mean of a gain in [0, 1] that decreases with the rank. Ranks beyond m, if given, gain 0.

    A subclass names itself, `short` as an argument and `long` in texts, and defines `of_rank`.
    """

    m: int | None = None
    n_ahead: int = field(default=0, kw_only=True)  # classes that are always ahead

    short: ClassVar[str]
    long: ClassVar[str]
    is_of_retrieval = True

    def __post_init__(self) -> None:
        """Raise DataError if m is so large that the sums take too long."""
        if self.m is not None and self.m > _MOST_GAINS:
            raise DataError(
                f"metric: found {self.name!r}, expected an m of at most {_MOST_GAINS}; pass "
                f"{self.short!r} for gains at every rank"
            )

    @property
    def name(self) -> str:
        """The short name, with @m if there is an m."""
        return self.short if self.m is None else f"{self.short}@{self.m}"

    @property
    def label(self) -> str:
        """The long name, with @m if there is an m."""
        return self.long if self.m is None else f"{self.long}@{self.m}"

    @abstractmethod
    def of_rank(self, rank: FloatArray) -> FloatArray:
        """Gains in [0, 1] of ranks, without the cutoff m."""

    def gain(self, rank: FloatArray) -> FloatArray:
        """Gains of ranks among the classes that are not always ahead, 0 beyond m."""
        rank = rank + self.n_ahead
        gains = self.of_rank(rank)
        return gains if self.m is None else np.where(rank <= self.m, gains, 0.0)

    def behind(self, n_ahead: int) -> Self:
        """Metric with the gains of the ranks beyond `n_ahead`."""
        return replace(self, n_ahead=n_ahead)

    def given_n_better(self, n_better: IntArray, n_classes: int, k: IntArray) -> FloatArray:
        """Hypergeometric mean, see `gain_given_n_better`."""
        return gain_given_n_better(n_better, n_classes, k, self.gain, self.m)

    def given_favorability(self, z: FloatArray, k: float) -> FloatArray:
        """Binomial mean, see `gain_given_favorability`."""
        return gain_given_favorability(z, k, self.gain, self.m)

    def expected(self, basis: RadialBasis, k: FloatArray | IntArray) -> FloatArray:
        """Binomial mean under each element, see `expected_gain`."""
        return expected_gain(basis, k, self.gain, self.m)


@dataclass(frozen=True)
class MeanReciprocalRank(GainMetric):
    r"""Mean reciprocal rank :math:`\sum_{r \le m} P(R = r) / r`; without m, r runs up to k.

    Without m it is :math:`E[(1 - U^k) / (k (1 - U))]`. This is also the mean of the expected
    accuracies on 1, ..., k classes.
    """

    short, long = "mrr", "MRR"

    def of_rank(self, rank: FloatArray) -> FloatArray:
        """The reciprocal rank."""
        return 1 / rank


class MeanAveragePrecision(MeanReciprocalRank):
    """Mean average precision, which is MRR if each query has one relevant document.

    It is not defined here if a query has several, all of which it counts.
    """

    short, long, counts_all = "map", "MAP", True


@dataclass(frozen=True)
class DiscountedGain(GainMetric):
    r"""nDCG with one relevant document: :math:`\sum_{r \le m} P(R = r) / \log_2(1 + r)`.

    Without m, r runs up to k. The ideal gain is 1. Several relevant documents have gains by their
    grades (`classex_bayes.task.relevant_ranks`).

    References
    ----------
    Järvelin and Kekäläinen, ACM Trans. Inf. Syst. 20(4), 2002.
    """

    short, long, counts_all = "ndcg", "nDCG", True

    def of_rank(self, rank: FloatArray) -> FloatArray:
        """The discount of the rank."""
        return 1 / np.log2(1 + rank)


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


def _precision(m: int | None = None) -> Accuracy:
    """Precision@1; with one relevant document, precision@m is recall@m / m."""
    if m is None:
        raise DataError("metric: found 'precision', expected 'precision@1'")
    if m > 1:
        raise DataError(
            f"metric: found precision@{m}, which is recall@{m} / {m} if one document is relevant; "
            f"ask for 'recall@{m}' and divide by {m}"
        )
    return Accuracy()


# Constructors of the metrics by name. A name given as "name@m" passes m to the constructor.
METRICS: dict[str, Callable[..., Metric]] = {
    "accuracy": Accuracy,
    "recall": partial(Accuracy, called="recall"),
    "hit_rate": partial(Accuracy, called="hit_rate"),
    "success": partial(Accuracy, called="success"),
    "mrr": MeanReciprocalRank,
    "ndcg": DiscountedGain,
    "mean_rank": MeanRank,
    "median_rank": MedianRank,
    "map": MeanAveragePrecision,
    "precision": _precision,
}
# Names in other software, without the marks between their words.
_SYNONYMS = {
    name: key
    for key, names in {
        "accuracy": "acc top topk topaccuracy topkaccuracy rank",
        "recall": "r",
        "hit_rate": "hit hits hitrate hitratio hr",
        "success": "s",
        "mrr": "rr reciprank reciprocalrank meanreciprocalrank inverseharmonicmeanrank",
        "mean_rank": "mr mnr meanrank arithmeticmeanrank",
        "median_rank": "medr mdr medianrank",
        "map": "ap averageprecision meanaverageprecision",
        "precision": "p prec",
    }.items()
    for name in names.split()
}
_ONLY_WITH_M = "top", "topk", "rank"
_NAME = re.compile(r"([a-z_-]+?)(?:(?:@|[_-]?(?:(?:at|cut)[_-]?)?)([0-9]+)((?:_acc|_accuracy)?))?")


def standard_name(name: str) -> str:
    """Name of a metric in the words of `METRICS`, from the names that other software gives it.

    Examples
    --------
    >>> [standard_name(name) for name in ("HR@10", "ndcg_cut_10", "recip_rank", "top5", "MRR@10")]
    ['hit_rate@10', 'ndcg@10', 'mrr', 'accuracy@5', 'mrr@10']
    """
    parts = _NAME.fullmatch(name.lower())
    if parts is None:
        return name.lower()
    words, m, _ = parts.groups()
    flat = re.sub("[_-]", "", words)
    if m is None and flat in _ONLY_WITH_M:
        return name
    key = _SYNONYMS.get(flat, words)
    return key if m is None else f"{key}@{m}"


def named_metric(name: str) -> Metric:
    """Metric with a given name.

    Parameters
    ----------
    name : str
        A key of `METRICS` in any case, such as "accuracy", or a name that other software gives it
        (`standard_name`). If the metric has an m, "@m" may follow, with m in 1..10^12 - 1, or in
        1..1000 for "mrr" and "ndcg". "recall", "hit_rate" and "success" need an m, and the
        precision has only m = 1.

    Examples
    --------
    >>> named_metric("recall@5")
    Accuracy(m=5)
    """
    if isinstance(name, str) and "," in name:
        raise DataError(f"metric: found {name!r}, expected one metric; make one call for each")
    key, at, m = standard_name(name).partition("@") if isinstance(name, str) else ("", "", "")
    if key not in METRICS:
        raise DataError(
            f"metric: found {name!r}, expected one of {', '.join(METRICS)}, such as 'accuracy@5'"
        )
    if not at:
        metric = METRICS[key]()
        if isinstance(metric, Accuracy) and metric.is_of_retrieval:  # no m is standard
            raise DataError(f"metric: found {name!r}, expected '{key}@1', '{key}@10' or similar")
        return metric
    if "m" not in signature(METRICS[key]).parameters:
        raise DataError(f"metric: found {name!r}, expected {key!r}, which has no m")
    if not (m.isascii() and m.isdigit() and len(m) <= _MOST_DIGITS and int(m) > 0):
        raise DataError(f"metric: found {name!r}, expected a whole number in 1..10^12 - 1 after @")
    return METRICS[key](int(m))


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
