"""PseudoLikelihood: maximum likelihood estimate of the law of the favorability from ranks."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import betainc, betaincc, xlog1py, xlogy

from classex_bayes.arguments import one_of, truth_value
from classex_bayes.core.mixture_weights import ROUNDING, likeliest_weights
from classex_bayes.core.subsets import log_binomial, log_spaced
from classex_bayes.estimators.base import LawEstimator
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import BoolArray, FloatArray, IntArray

# Points of the grid per standard deviation of V / (k1 - 1), and in total.
_POINTS_PER_SD, _MOST_POINTS = 8, 4000
# Smaller gaps, down to a gap that no number of instances can distinguish from 0.
_POINTS_PER_DECADE, _SMALLEST_GAP = 16, 1e-9
# Thresholds of the nested events.
_MOST_EVENTS = 500

Likelihood = Literal["binomial", "bernoulli"]


class PseudoLikelihood(LawEstimator):
    r"""Extrapolation by maximum pseudolikelihood of the ranks.

    An instance with favorability U* beats :math:`V \sim \mathrm{Binomial}(k_1 - 1, U^*)` of its
    competitors. The estimated law :math:`\eta` of U* maximises the product of the probabilities of
    the observed V, as if instances were independent. The predictions are its moments:

    .. math::

        \hat\eta = \arg\max_\eta \sum_v n_v
            \log \int_0^1 \binom{k_1 - 1}{v} u^v (1 - u)^{k_1 - 1 - v} d\eta(u), \qquad
        \widehat{AGA}_k = \int_0^1 u^{k-1} d\hat\eta(u)

    Here :math:`n_v` is the share of instances with V = v. The weights of the classes are equal, or
    those of `class_weight` of the task.

    Parameters
    ----------
    monotone : bool
        True allows only laws with a nondecreasing density, the shape for a Bayes classifier. These
        are mixtures of uniform laws on [s, 1] and, as the limit s = 1, a point mass at U* = 1.
        False allows all laws.
    moment : bool
        True allows only laws that reproduce the test accuracy, :math:`\int u^{k_1-1} d\eta(u) =
        ATA_{k_1}`, which must be positive if `monotone` is False.
    likelihood : {"binomial", "bernoulli"}
        "binomial" is the likelihood above. "bernoulli" is that of the draft (References). Its h-th
        event is that the competitor with rank h from the bottom beats the true class. This happens
        if V < h, so the probability of the event is :math:`\gamma_h = P(V < h)`. The law maximises
        the sum

        .. math:: \frac1{k_1 - 1} \sum_{h=1}^{k_1-1} \Big(\hat\gamma_h \log \gamma_h(\eta) +
            (1 - \hat\gamma_h) \log(1 - \gamma_h(\eta))\Big), \qquad
            \hat\gamma_h = \sum_{v<h} n_v.

    Attributes
    ----------
    support_ : array of shape (m,)
        Points s of the mixture components, increasing. With ``monotone=True`` they are the left
        ends of the uniform laws, otherwise values of U*.
    weights_ : array of shape (m,)
        Weights of the components; positive, sum 1. Several mixtures may have the same likelihood.
    log_likelihood_ : float
        Mean log-probability of the ranks, :math:`\sum_v n_v \log P(V = v)`, or of the events.
    optimality_gap_ : float
        Upper bound, by convex duality, on the maximum over the grid minus `log_likelihood_`. If it
        is above 1e-6, `fit` raises `RuntimeError`.

    Notes
    -----
    The default, with both constraints, is the constrained estimate of the paper,
    :math:`\hat p^{CON}`. Without constraints it is the unconstrained estimate of the paper.
    Predictions are in [0, 1] and do not increase with k.

    The binomial likelihood is the probability of the rank of an instance. The Bernoulli likelihood
    sums the log-probabilities of k1 - 1 events, as if they were independent. The events are in fact
    nested: each implies the next. All ranks h have equal weights, so the few ranks near the top,
    which determine the accuracy on more classes, have little weight. If a law has
    :math:`\gamma_h = \hat\gamma_h` for all h, it maximises both likelihoods.

    The draft has the Bernoulli law, the same law with the test accuracy (``moment=True``), and both
    with a nondecreasing :math:`\bar K`. For errors :math:`\bar K(u)` is :math:`P(U^* \le u)`, which
    never decreases. ``monotone=True`` requires a nondecreasing derivative instead. The draft prints
    k1 for the k1 - 1 competitors.

    The law has its mass on a grid of s. The grid is equally spaced on the arcsine square-root
    scale, with 8 points per binomial standard deviation. Then come log-spaced gaps 1 - s down to
    1e-9 / k1, and s = 1. The maximum has positive weight at a few of these points. The grid has
    about :math:`25 \sqrt{k_1}` points. Above 25,000 classes it is coarser, with about 4000 points.
    Time and memory grow with the number of points times the number of distinct ranks.

    The point mass at 1 is allowed because the likelihood often has no maximum among the densities
    without it: far more instances have 0 than 1 better class. With the point mass, predictions
    never fall below its weight. Without it they fall fast. Noise decides between the two.

    The likelihood depends only on the moments of the law up to k1 - 1, so its maximum need not be
    unique, as the paper warns. Even a unique maximum does not make the extrapolation certain.

    A law with a nondecreasing density has at least the accuracy of guessing. If the test accuracy
    is lower, ``monotone=True, moment=True`` gives the uniform law, which guesses, and the result
    has a note.

    References
    ----------
    Zheng, Achanta and Benjamini, arXiv:1606.05228 (2016), section 4.2 and Theorems 3.2 and 3.4.
    Section 4.2 prints Binomial(k, U) for Binomial(k - 1, U). The same authors, draft (2016),
    section 4, (12). The quadratic steps are those of Wang, Journal of the Royal Statistical Society
    B 69 (2007), 185-198.

    Examples
    --------
    >>> ranks = [1] * 14 + [2, 2, 3, 4, 6, 10]
    >>> task = SourceTask.from_ranks(ranks, np.arange(20), n_classes=20)
    >>> model = PseudoLikelihood().fit(task)
    >>> model.predict([20, 80]).mean.round(2).tolist()
    [0.7, 0.56]
    """

    def __init__(
        self, monotone: bool = True, moment: bool = True, likelihood: Likelihood = "binomial"
    ) -> None:
        self.monotone = monotone
        self.moment = moment
        self.likelihood = likelihood

    def _name_parts(self) -> list[str]:
        constraints = [name for name in ("monotone", "moment") if getattr(self, name)]
        events = ["bernoulli"] if self.likelihood == "bernoulli" else []
        return (constraints or ["unconstrained"]) + events

    def _fit(self, task: SourceTask) -> None:
        monotone = truth_value(self.monotone, "monotone")
        constrained = truth_value(self.moment, "moment")
        one_of(self.likelihood, ("binomial", "bernoulli"), "likelihood")
        table = task.require("exact ranks")
        n_better, place = np.unique(table.n_better[table.weight > 0], return_inverse=True)
        total = np.bincount(place, weights=table.weight[table.weight > 0])
        share: FloatArray = total / total.sum()
        laws = _Laws(_grid(task.n_classes), monotone)
        excess = np.zeros(laws.gap.size)
        notes: tuple[str, ...] = ()
        if constrained:
            accuracy = share[0] if n_better[0] == 0 else 0.0
            if accuracy == 0 and not monotone:
                raise DataError(
                    f"moment: the test accuracy on {task.n_classes} classes is 0, which only "
                    "U* = 0 reproduces; pass moment=False or monotone=True"
                )
            excess = laws.accuracy(np.array([task.n_classes]))[0] - accuracy
            if excess.min() > ROUNDING:
                notes = ("the test accuracy is below that of guessing; 1 / k is used instead",)
        if self.likelihood == "binomial":
            log_chance = laws.log_probabilities(n_better, task.n_classes)
            # A factor of a row does not change the maximum. It prevents underflow in far tails.
            level = log_chance.max(axis=1)
            chance = np.exp(log_chance - level[:, None])
        else:
            chance, share = _nested_events(laws, n_better, share, task.n_classes)
            level = np.zeros(share.size)
        weights, slope = likeliest_weights(chance, share, excess)
        fitted = chance @ weights
        used = weights > 0
        self._laws, self.weights_ = laws.at(used), weights[used]
        self.support_ = 1 - self._laws.gap
        self.log_likelihood_ = float(share @ (np.log(fitted) + level))
        self.optimality_gap_ = max(float(slope.max()) - 1, 0.0)
        self._fit_notes = notes

    def _curve(self, k: IntArray) -> FloatArray:
        # Weights sum to 1 up to rounding.
        return np.minimum(self._laws.accuracy(k) @ self.weights_, 1.0)

    def _notes(self, k: IntArray, values: FloatArray) -> tuple[str, ...]:
        return self._fit_notes

    def _cdf(self, u: FloatArray) -> FloatArray:
        return np.minimum(self._laws.cdf(u) @ self.weights_, 1.0)


@dataclass(frozen=True)
class _Laws:
    """Components of the mixture that is the law of the favorability.

    They are uniform on [1 - gap, 1] if `monotone`, otherwise point masses at 1 - gap.
    """

    gap: FloatArray  # (m,), decreasing
    monotone: bool

    def at(self, places: BoolArray) -> "_Laws":
        return _Laws(self.gap[places], self.monotone)

    def accuracy(self, k: IntArray) -> FloatArray:
        """Moments E[U*^(k-1)]: array of shape (n_k, m)."""
        size = np.asarray(k, dtype=float)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            log_left = np.log1p(-self.gap)
            if not self.monotone:
                return np.exp((size - 1) * log_left)
            mean_power = -np.expm1(size * log_left) / (size * self.gap)
        return np.where(self.gap > 0, mean_power, 1.0)

    def log_probabilities(self, n_better: IntArray, n_classes: int) -> FloatArray:
        """Log-probabilities of n_better among k1 classes: array of shape (n_values, m)."""
        better = n_better[:, None].astype(float)
        worse = n_classes - 1 - better
        if not self.monotone:
            ways = log_binomial(n_classes - 1, better)
            return ways + xlog1py(worse, -self.gap) + xlogy(better, self.gap)
        with np.errstate(divide="ignore", invalid="ignore"):
            chance = betainc(better + 1, worse + 1, self.gap) / (n_classes * self.gap)
            return np.log(np.where(self.gap > 0, chance, better == 0))

    def reaches(self, threshold: FloatArray, n_classes: int) -> tuple[FloatArray, FloatArray]:
        """Probabilities that n_better among k1 classes reaches, or misses, a threshold 1..k1 - 1.

        Two arrays of shape (n_thresholds, m).
        """
        a, rest = threshold[:, None], n_classes - threshold[:, None]
        reached, missed = betainc(a, rest, self.gap), betaincc(a, rest, self.gap)
        if self.monotone:  # the mean over gaps from 0
            with np.errstate(divide="ignore", invalid="ignore"):
                part = a * betainc(a + 1, rest, self.gap) / (n_classes * self.gap)
            part = np.where(self.gap > 0, part, 0.0)
            reached, missed = np.maximum(reached - part, 0.0), missed + part
        return reached, missed

    def cdf(self, u: FloatArray) -> FloatArray:
        """Distribution functions at `u`: array of shape (n_u, m)."""
        if not self.monotone:
            return (u[:, None] >= 1 - self.gap).astype(float)
        # Gaps may be too small for 1 - gap to differ from 1.
        miss = 1 - u[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(miss > 0, np.maximum(1 - miss / self.gap, 0.0), 1.0)


def _nested_events(
    laws: _Laws, n_better: IntArray, share: FloatArray, n_classes: int
) -> tuple[FloatArray, FloatArray]:
    """Probabilities (n_events, m) that n_better reaches, and misses, 1..k1 - 1; shares.

    The shares are those of the events. Rank h from the bottom corresponds to k1 - h better classes.
    More than 500 thresholds are represented by log-spaced thresholds with weights.
    """
    threshold = np.arange(1.0, n_classes)
    if threshold.size > _MOST_EVENTS:
        threshold = log_spaced(1, n_classes - 1, _MOST_EVENTS).astype(float)
    ends = np.concatenate([[0.5], (threshold[1:] + threshold[:-1]) / 2, [n_classes - 0.5]])
    weight = np.diff(ends) / (n_classes - 1)
    at_least = np.append(share[::-1].cumsum()[::-1], 0.0)[np.searchsorted(n_better, threshold)]
    at_least = np.minimum(at_least, 1.0)
    chance = np.vstack(laws.reaches(threshold, n_classes))
    shares = np.concatenate([weight * at_least, weight * (1 - at_least)])
    seen = shares > ROUNDING
    return chance[seen], shares[seen] / shares[seen].sum()


def _grid(n_classes: int) -> FloatArray:
    """Gaps 1 - s of the grid, from 1 down to 0."""
    # The arcsine root of V / (k1 - 1) has the standard deviation 1 / (2 sqrt(k1 - 1)).
    number = min(int(np.ceil(np.pi * np.sqrt(n_classes - 1) * _POINTS_PER_SD)), _MOST_POINTS)
    gap = np.sin(np.linspace(np.pi / 2, 0, number + 1)[:-1]) ** 2
    smallest = _SMALLEST_GAP / n_classes
    n_small = int(np.ceil(_POINTS_PER_DECADE * np.log10(gap[-1] / smallest)))
    return np.concatenate([gap, np.geomspace(gap[-1], smallest, n_small + 1)[1:], [0.0]])
