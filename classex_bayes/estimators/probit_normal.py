"""HighDimensional and TwoParameter: Phi^-1 of the favorability is normal, with sd 1 or any sd."""

from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri

from classex_bayes.arguments import class_counts, one_of
from classex_bayes.core.normal_law import (
    expected_power,
    expected_power_slopes,
    increasing_root,
    signal_accuracy,
    signal_from_accuracy,
)
from classex_bayes.core.subsets import log_binomial
from classex_bayes.estimators.base import LawEstimator, PointEstimator, sizes_text
from classex_bayes.estimators.measured_curve import (
    ROUNDING,
    MeasuredCurve,
    best_fit,
    coarse_starts,
    measured_curve,
    rank_shares,
)
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray

# Accuracies change with the signal on a scale of about 1, so steps of 1/8 miss no minimum; at
# the last step every accuracy is 1.
_SIGNALS = np.arange(0, 26, 0.125)
_TOLERANCE = 1e-14
_WEAKEST = 1e-7  # weaker signals are rounding
Method = Literal["least_squares", "pseudolikelihood"]
SMALLEST_SD, LARGEST_SD = 0.05, 10.0
# The search runs over the probit of the accuracy on 2 classes and the log of the sd.
_LIMITS = np.array([[-8.0, np.log(SMALLEST_SD)], [8.0, np.log(LARGEST_SD)]])
_START_PROBITS = np.arange(-3, 7, 0.25)
_START_SDS = (0.1, 0.25, 0.5, 0.8, 1.2, 2.0, 4.0, 8.0)
_NEGLIGIBLE = 40.0  # below the peak of a log density


class HighDimensional(PointEstimator):
    r"""Extrapolation by the one-parameter law of high-dimensional Bayes classifiers.

    The accuracy on k classes is :math:`\bar\pi_k(c) = \int \varphi(z - c) \Phi(z)^{k-1} dz` at
    every k, with :math:`c = \sqrt{2 I}` and I the mutual information of label and features in
    nats. A single accuracy determines the signal c. Several accuracies are fitted by least squares:

    .. math::

        \hat c = \bar\pi_{k_1}^{-1}(ATA_{k_1}) \quad\text{or}\quad
        \hat c = \arg\min_{c \ge 0} \sum_k \left(ATA_k - \bar\pi_k(c)\right)^2

    Parameters
    ----------
    k : int, array-like of int, or "all", optional
        Numbers of classes, 2..k1, whose accuracies determine the signal. By default only k1, or
        the largest number at which the accuracy of the task is known. "all" means 2..k1; above 500
        classes, log-spaced numbers with weights that represent all of them. For a task without
        ranks, "all" means the numbers at which its accuracy is known.

    Attributes
    ----------
    signal_ : float
        Signal c.
    information_ : float
        :math:`c^2 / 2`, in nats. It is the mutual information if the law holds and the classifier
        is the Bayes classifier.

    Raises
    ------
    DataError
        From `fit`: `k` is outside 2..k1, or the accuracy of the task is unknown at `k`.

    Notes
    -----
    The law holds for the Bayes classifier in the limit of many weakly informative dimensions. It
    is `TwoParameter` with standard deviation 1. Predictions are in [0, 1] and fall with k.

    If the accuracy is 1, the signal is infinite and every prediction is 1. If the accuracy is that
    of guessing or less, the signal is 0 and predictions are 1 / k. The result then has a note.

    References
    ----------
    Zheng, Achanta and Benjamini, nips2016, section 4.3; Zheng, thesis (2017), section 5.4. The
    former prints :math:`\pi_K(\frac12 (\pi_k^{-1}(1 - p_k))^2)`; both sides have the same argument.

    Examples
    --------
    >>> task = SourceTask.from_accuracies(20, 0.922, n_test=2000, n_classes=20)
    >>> model = HighDimensional().fit(task)
    >>> round(model.information_, 2), model.predict([20, 400]).mean.round(3).tolist()
    (5.98, [0.922, 0.678])
    """

    def __init__(self, k: ClassCounts | str | None = None) -> None:
        self.k = k

    def _name_parts(self) -> list[str]:
        return [] if self.k is None else [sizes_text(self.k)]

    def _fit(self, task: SourceTask) -> None:
        curve = signal_curve(task, self.k)
        self.signal_ = float(fit_signal(curve.k, curve.accuracy, curve.weight)[0])
        self.information_ = self.signal_**2 / 2

    def _curve(self, k: IntArray) -> FloatArray:
        return np.minimum(signal_accuracy(self.signal_, k)[:, 0], 1.0)

    def _notes(self, k: IntArray, values: FloatArray) -> tuple[str, ...]:
        if np.isinf(self.signal_):
            return ("the pilot has no errors: the signal is infinite and every prediction is 1",)
        if self.signal_ == 0:
            return ("the accuracy is that of guessing or less: the signal is 0",)
        return ()


def signal_curve(task: SourceTask, k: ClassCounts | str | None) -> MeasuredCurve:
    """Average test accuracies that determine the signal: `measured_curve`, or a single accuracy.

    `k` is that of `HighDimensional`. Any other value is a `DataError`.
    """
    if isinstance(k, str) and k != "all":
        raise DataError(f"k: found {k!r}, expected numbers of classes, 'all' or None")
    all_sizes = isinstance(k, str)
    if k is None:
        sizes = task.grid()[-1:]
    else:
        sizes = task.grid() if all_sizes else class_counts(k, largest=task.n_classes)
    if sizes.size == 1:
        return MeasuredCurve(sizes, np.ones(1), task.accuracy(sizes))
    return measured_curve(task, None if all_sizes else sizes)


def fit_signal(k: IntArray, accuracy: FloatArray, weight: FloatArray) -> FloatArray:
    r"""Signals c (n_curves,) whose accuracy curves are nearest to given curves.

    For each curve a of `accuracy` (n_k,) or (n_curves, n_k), c is the global minimum of
    :math:`\sum_k w_k (a_k - \bar\pi_k(c))^2` over c >= 0. It is the root of the derivative next to
    the best point of a fine grid. A single accuracy is inverted. The signal is 0 if the curve of
    guessing is nearest, and infinite if all accuracies are 1. Zheng, thesis (2017), section 5.4, in
    :math:`c^2 / 2`.
    """
    accuracy = np.atleast_2d(accuracy)
    perfect = (accuracy > 1 - ROUNDING).all(axis=1)
    if k.size == 1:
        signal = signal_from_accuracy(accuracy[:, 0], k[0])
    else:
        signal = _least_squares(k, accuracy, weight)
    return np.where(perfect, np.inf, np.where(signal > _WEAKEST, signal, 0.0))


def _least_squares(k: IntArray, accuracy: FloatArray, weight: FloatArray) -> FloatArray:
    error = np.full(accuracy.shape[0], np.inf)
    signal = np.zeros(accuracy.shape[0])
    for start, curve in zip(_SIGNALS, signal_accuracy(_SIGNALS, k).T, strict=True):
        new_error = (accuracy - curve) ** 2 @ weight
        signal = np.where(new_error < error, start, signal)
        error = np.minimum(new_error, error)

    bracket = np.maximum(signal - _SIGNALS[1], 0), signal + _SIGNALS[1]

    def uphill(signal: FloatArray, number: FloatArray) -> FloatArray:
        value, slope = (signal_accuracy(signal, k, order) for order in range(2))
        return weight @ ((value - accuracy[number.astype(int)].T) * slope)

    numbers = np.arange(len(accuracy), dtype=float)
    root = increasing_root(uphill, bracket, numbers, xatol=_TOLERANCE, xrtol=_TOLERANCE)
    return np.clip(root, *bracket)


class TwoParameter(LawEstimator):
    r"""Extrapolation by a normal law of :math:`Z = \Phi^{-1}(U^*)`, with two parameters.

    If the scores are jointly normal, :math:`Z \sim N(\mu, \nu^2)`, and the accuracy on k classes
    is

    .. math::

        E[U^{*\,k-1}] = \int \frac1\nu \varphi\Big(\frac{z - \mu}{\nu}\Big) \Phi(z)^{k-1} dz

    Parameters
    ----------
    method : {"least_squares", "pseudolikelihood"}
        "least_squares" minimises :math:`\sum_{k=2}^{k_1} (ATA_k - E[U^{*\,k-1}])^2`.
        "pseudolikelihood" maximises the product of the probabilities of the ranks, as if instances
        were independent: :math:`\sum_v n_v \log \int \frac1\nu
        \varphi(\frac{z - \mu}{\nu}) \binom{k_1 - 1}{v} \Phi(z)^{v} \Phi(-z)^{k_1 - 1 - v} dz`.
        Here :math:`n_v` is the weight of the instances that beat v competitors; the weights of the
        classes are equal, or those of `class_weight` of the task.

    Attributes
    ----------
    mean_, sd_ : float
        Mean and standard deviation of Z.

    Raises
    ------
    DataError
        From `fit`: the method is unknown; the accuracy is known at fewer than 2 numbers of classes;
        or the method is "pseudolikelihood" and the task has no ranks.

    Notes
    -----
    The standard deviation is limited to 0.05..10, and the result has a note if it is at a limit.
    Near 10 almost all instances have no better class or only better ones. Near 0.05 all instances
    have the same favorability. If the pilot has no errors, the mean is infinite and every
    prediction is 1. If it has only errors, the mean is minus infinity and every prediction is 0. In
    both cases the standard deviation is set to 1.

    The CDF of U* is :math:`D(u) = \Phi((\Phi^{-1}(u) - \mu) / \nu)`. Predictions are in [0, 1] and
    decrease with k. The time of the pseudolikelihood grows with the number of distinct ranks: a
    second for 50,000 classes, minutes for a million.

    References
    ----------
    Zheng, thesis (2017), section 5.3, Lemma 1; the pseudolikelihood is that of Zheng, Achanta and
    Benjamini, nips2016, section 4.2, with k - 1 competitors.

    Examples
    --------
    >>> ranks = [1] * 14 + [2, 2, 3, 4, 6, 10]
    >>> task = SourceTask.from_ranks(ranks, np.arange(20), n_classes=20)
    >>> model = TwoParameter("pseudolikelihood").fit(task)
    >>> round(model.mean_, 2), round(model.sd_, 2), model.predict([20, 80]).mean.round(2).tolist()
    (2.5, 1.2, [0.69, 0.53])
    """

    def __init__(self, method: Method = "least_squares") -> None:
        self.method = method

    def _name_parts(self) -> list[str]:
        return [self.method]

    def _fit(self, task: SourceTask) -> None:
        one_of(self.method, ("least_squares", "pseudolikelihood"), "method")
        if self.method == "least_squares":
            self.mean_, self.sd_ = _nearest_curve(measured_curve(task))
        else:
            shares = rank_shares(task.require("exact ranks"))
            self.mean_, self.sd_ = _likeliest(*shares, task.n_classes, measured_curve(task))

    def _curve(self, k: IntArray) -> FloatArray:
        if np.isinf(self.mean_):
            return np.full(k.size, 1.0 if self.mean_ > 0 else 0.0)
        return np.minimum(expected_power(self.mean_, self.sd_, k)[:, 0], 1.0)

    def _notes(self, k: IntArray, values: FloatArray) -> tuple[str, ...]:
        if np.isinf(self.mean_):
            errors, limit = ("no", 1) if self.mean_ > 0 else ("only", 0)
            return (
                f"the pilot has {errors} errors: the mean is infinite and every prediction is "
                f"{limit}",
            )
        if not 1.01 * SMALLEST_SD < self.sd_ < 0.99 * LARGEST_SD:
            return (f"the standard deviation is at the limit of its range, {self.sd_:.3g}",)
        return ()

    def _cdf(self, u: FloatArray) -> FloatArray:
        if np.isinf(self.mean_):
            return (u >= (self.mean_ > 0)).astype(float)
        return ndtr((ndtri(u) - self.mean_) / self.sd_)


def _natural(point: FloatArray) -> tuple[float, float]:
    """Mean and sd from the probit of the accuracy on 2 classes and the log sd."""
    sd = np.exp(point[1])
    return float(point[0] * np.hypot(1, sd)), float(sd)


def _chain(point: FloatArray, by_mean: FloatArray, by_sd: FloatArray) -> FloatArray:
    """Derivatives by the search coordinates, on a new last axis, from those by mean and sd."""
    sd = np.exp(point[1])
    spread = np.hypot(1, sd)
    by_log_sd = sd * (by_sd + by_mean * point[0] * sd / spread)
    return np.stack([by_mean * spread, by_log_sd], axis=-1)


def _nearest_curve(curve: MeasuredCurve) -> tuple[float, float]:
    """Mean and sd whose accuracy curve is nearest in least squares."""
    if np.all(curve.accuracy > 1 - ROUNDING):
        return np.inf, 1.0
    if np.all(curve.accuracy < ROUNDING):
        return -np.inf, 1.0
    root = np.sqrt(curve.weight)

    def residual(point: FloatArray) -> FloatArray:
        return root * (expected_power(*_natural(point), curve.k)[:, 0] - curve.accuracy)

    def slopes(point: FloatArray) -> FloatArray:
        by_mean, by_sd = expected_power_slopes(*_natural(point), curve.k)
        return root[:, None] * _chain(point, by_mean[:, 0], by_sd[:, 0])

    return _natural(best_fit(residual, _starts(curve), (_LIMITS[0], _LIMITS[1]), slopes))


def _starts(curve: MeasuredCurve) -> FloatArray:
    """Starting points (2, 2) of the search."""

    def accuracy(probit: FloatArray, sd: float, k: IntArray) -> FloatArray:
        return expected_power(probit * np.hypot(1, sd), sd, k)

    starts = coarse_starts(curve, curve.weight, accuracy, _START_PROBITS, _START_SDS, 2)
    return np.column_stack([starts[:, 0], np.log(starts[:, 1])])


def _likeliest(
    n_better: IntArray, share: FloatArray, n_classes: int, curve: MeasuredCurve
) -> tuple[float, float]:
    """Mean and sd that maximise the pseudolikelihood; the search starts at the nearest curves."""
    if n_better.size == 1 and n_better[0] in (0, n_classes - 1):
        return (np.inf if n_better[0] == 0 else -np.inf), 1.0
    objective = log_pseudolikelihood(n_better, share, n_classes)

    def negative(point: FloatArray) -> tuple[float, FloatArray]:
        value, by_mean, by_sd = objective(*_natural(point))
        return -value, -_chain(point, np.array(by_mean), np.array(by_sd))

    fits = [
        minimize(
            negative,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=_LIMITS.T,
            options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 500},
        )
        for start in _starts(curve)
    ]
    return _natural(min(fits, key=lambda fit: fit.fun).x)


def log_pseudolikelihood(
    n_better: IntArray, weight: FloatArray, n_classes: int
) -> Callable[[float, float], tuple[float, float, float]]:
    r"""Pseudolikelihood of ranks as a function of mean and standard deviation.

    :math:`\sum_L w_L \log \int \frac1\nu \varphi(\frac{z - \mu}{\nu}) \binom{k_1 - 1}{L}
    \Phi(z)^{k_1 - 1 - L} \Phi(-z)^{L} dz`. In z the binomial factor is log-concave. Its peak, at
    :math:`\Phi(-z) = L / (k_1 - 1)`, is as narrow as :math:`k_1^{-1/2}`. Every L therefore has
    separate nodes over the range in which the factor is not negligible, for all means and sds. For
    L = 0 and L = k1 - 1 the factor has no peak, so the nodes depend on mean and sd.

    The function maps mean and sd (at least 0.05) to the pseudolikelihood of distinct L (m,)
    with weights w, and to its derivatives by mean and sd. The relative error of each probability
    above 1e-12 is below 1e-9 for k1 up to 1e6, and below 1e-5 up to 1e9.
    """
    n_wrong = n_classes - 1
    inner = (n_better > 0) & (n_better < n_wrong)
    none, all_better = weight[n_better == 0].sum(), weight[n_better == n_wrong].sum()
    z, log_mass = _binomial_nodes(n_better[inner].astype(float), n_wrong)

    def evaluate(mean: float, sd: float) -> tuple[float, float, float]:
        standard = (z - mean) / sd
        log_step = log_mass - np.log(sd)
        total = weight[inner] @ _log_integrals(log_step, standard, sd)
        if none:
            total += none * _log_extreme(mean, sd, n_wrong)
        if all_better:
            total += all_better * _log_extreme(-mean, sd, n_wrong) * [1, -1, 1]
        return float(total[0]), float(total[1]), float(total[2])

    return evaluate


def _log_integrals(log_step: FloatArray, standard: FloatArray, sd: float) -> FloatArray:
    """Log of the sum over nodes (last axis) of step times normal density, and its derivatives.

    A new last axis has the value, the derivative by the mean and the derivative by the sd.
    """
    log_terms = log_step - 0.5 * standard**2 - np.log(2 * np.pi) / 2
    value = logsumexp(log_terms, axis=-1)
    share = np.exp(log_terms - value[..., None])
    by_mean = (share * standard).sum(axis=-1) / sd
    by_sd = ((share * standard**2).sum(axis=-1) - 1) / sd
    return np.stack([value, by_mean, by_sd], axis=-1)


def _log_extreme(mean: float, sd: float, n_wrong: int) -> FloatArray:
    """Log probability of L = 0 and its derivatives: log of `expected_power`, no underflow."""
    step = 0.3 / (1 + sd * np.sqrt(2 * np.log(n_wrong + 1)))
    standard = np.arange(-_NEGLIGIBLE, _NEGLIGIBLE, step)
    log_step = n_wrong * log_ndtr(mean + sd * standard) + np.log(step)
    return _log_integrals(log_step, standard, sd)


def _binomial_nodes(n_better: FloatArray, n_wrong: int) -> tuple[FloatArray, FloatArray]:
    """Nodes z and the log of step times binomial probability, of shape (m, n_nodes)."""
    if n_better.size == 0:
        return np.empty((0, 1)), np.empty((0, 1))
    n_worse = n_wrong - n_better
    log_choose = log_binomial(n_wrong, n_better)

    def log_chance(z: FloatArray) -> FloatArray:
        shape = (-1,) + (1,) * (z.ndim - 1)
        better, worse, choose = (x.reshape(shape) for x in (n_better, n_worse, log_choose))
        return choose + worse * log_ndtr(z) + better * log_ndtr(-z)

    peak = -ndtri(n_better / n_wrong)
    floor = log_chance(peak) - _NEGLIGIBLE
    edges = []
    for side in (-1, 1):
        near, far = peak, peak + side * 16.0
        for _ in range(30):
            middle = (near + far) / 2
            high = log_chance(middle) > floor
            near, far = np.where(high, middle, near), np.where(high, far, middle)
        edges.append(far)
    # Steps of 0.8 sd integrate a normal density to 1e-13; 64 nodes integrate the binomial factor.
    widest = np.max(edges[1] - edges[0])
    n_nodes = max(64, int(np.ceil(widest / (0.8 * SMALLEST_SD))))
    z = np.linspace(edges[0], edges[1], n_nodes, axis=1)
    step = (edges[1] - edges[0]) / (n_nodes - 1)
    return z, log_chance(z) + np.log(step)[:, None]
