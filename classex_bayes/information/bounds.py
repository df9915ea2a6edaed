"""Bounds on the Bayes accuracy and on mutual information, and the information of confusions."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import entr, logit, xlogy

from classex_bayes.arguments import class_count, one_of, probability, source_task
from classex_bayes.array_access import as_matrix, as_numeric
from classex_bayes.core.normal_law import increasing_root
from classex_bayes.exceptions import DataError
from classex_bayes.task.class_labels import class_weights
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray

Unit = Literal["nats", "bits"]
Method = Literal["bounded_differences", "cantelli", "chebyshev"]
_NATS = {"nats": 1.0, "bits": float(np.log(2))}
# Range of log c. Below it the accuracy is 1 / k up to rounding, above it 1.
_LOG_C = (-36.0, 43.0)
# First node and step for log y. The first y is far below 1 / c, and the step gives errors of 1e-15.
_LOG_NODES = (-85.0, 0.2)
_SMALL_C = 30.0


def nats_per(unit: Unit) -> float:
    """Nats in one unit of information."""
    one_of(unit, tuple(_NATS), "unit")
    return _NATS[unit]


def bayes_accuracy_variance(k: int) -> float:
    r"""Upper bound on the variance of the Bayes accuracy of k random classes of any population.

    Changing one class changes :math:`BA_k = \frac1k \int \max_i p(y \mid x_i)\, dy` by at most
    1/k. By the inequality of Efron and Stein, :math:`Var[BA_k] \le 1 / (4k)`.

    Parameters
    ----------
    k : int
        Number of classes, at least 2.

    References
    ----------
    Zheng, thesis (2017), Theorem 2.5.1.

    Examples
    --------
    >>> bayes_accuracy_variance(100)
    0.0025
    """
    return 1 / (4 * class_count(k, "k", smallest=2))


def bayes_accuracy_bound(
    task: SourceTask | Sequence[SourceTask],
    alpha: float = 0.05,
    method: Method = "bounded_differences",
) -> float:
    r"""Lower confidence bound on the average Bayes accuracy on as many classes as were tested.

    No classifier is better than the Bayes classifier, so the test accuracy :math:`\widehat{GA}`
    minus an allowance for chance is a lower bound of :math:`ABA_k = E[BA_k]` at k = k1:

    .. math::

        \max_i \Big( \widehat{GA}_i - \sqrt{\tfrac12 \log\tfrac{\ell}{\alpha}
            \big(\textstyle\sum_j \omega_{ij}^2 + \tfrac1k\big)} \Big)

    over the :math:`\ell` classifiers i, with :math:`\omega_{ij}` the weights of the test instances.
    Replacing an instance changes the accuracy by at most :math:`\omega_{ij}`, and replacing a class
    by at most 1/k, so one exponential inequality (McDiarmid's) covers both. The bound is at least
    1/k, the accuracy of guessing.

    Parameters
    ----------
    task : SourceTask or sequence of SourceTask
        The test, or the tests of several classifiers on the same classes, of which the best is
        chosen. The bound is corrected for the choice (Bonferroni).
    alpha : float
        Largest probability that the bound exceeds ABA_k.
    method : {"bounded_differences", "cantelli", "chebyshev"}
        The formula above, or that of the thesis:
        :math:`\widehat{GA} - \sqrt{\log(\ell / \alpha_1) \sum_j \omega_j^2 / 2}` less a deviation
        of the classes with variance 1/(4k) by Cantelli's one-sided inequality,
        :math:`\sqrt{(1 - \alpha_2) / (4 k \alpha_2)}`, or by Chebyshev's,
        :math:`1 / \sqrt{4 k \alpha_2}`. The split :math:`\alpha_1 + \alpha_2 = \alpha` is the
        one with the smallest deviation, which the outcomes of the test do not affect.

    Notes
    -----
    The classes are assumed to be independent draws from their population. Test instances are
    assumed to be independent given the classes, and unused by the training or the choice of the
    classifier, except the choice among the given tasks. Unequal class weights and ties that count
    as correct are refused.

    References
    ----------
    Zheng, thesis (2017), Theorem 2.5.2 and Lemma 2.5.1, with one-sided Hoeffding inequalities;
    McDiarmid, On the method of bounded differences (1989), for the default.

    Examples
    --------
    >>> task = SourceTask.from_ranks([1] * 380 + [2] * 20, np.arange(400), n_classes=400)
    >>> round(bayes_accuracy_bound(task), 3)
    0.863
    >>> round(bayes_accuracy_bound(task, method="cantelli"), 3)
    0.754
    """
    one_of(method, ("bounded_differences", "cantelli", "chebyshev"), "method")
    alpha = probability(alpha, "alpha")
    tasks = list(task) if isinstance(task, Sequence) else [task]
    k, squares = _common_test(tasks)

    def of_tests(level: float) -> FloatArray:
        return np.sqrt(np.log(len(tasks) / level) * squares / 2)

    def of_classes(level: float) -> FloatArray:
        above = level if method == "cantelli" else 0.0
        return np.sqrt((1 - above) / level * bayes_accuracy_variance(k))

    if method == "bounded_differences":
        deviation = np.sqrt(np.log(len(tasks) / alpha) * (squares + 1 / k) / 2)
    else:
        share = minimize_scalar(
            lambda s: of_tests((1 - s) * alpha).max() + of_classes(s * alpha),
            bounds=(1e-6, 1 - 1e-6),
            method="bounded",
        ).x
        deviation = of_tests((1 - share) * alpha) + of_classes(share * alpha)
    accuracy = np.array([member.accuracy(k) for member in tasks])
    return max(float(np.max(accuracy - deviation)), 1 / k)


def _common_test(tasks: list[SourceTask]) -> tuple[int, FloatArray]:
    """Number of classes that all tests share, and sums of squared weights of their instances."""
    squares = []
    for member in tasks:
        source_task(member)
        table = member.require("ranks among all classes")
        weight = table.class_weight
        if np.ptp(weight) > 1e-12:
            raise DataError(
                "task: expected equal class weights and every class tested, found class weights "
                f"from {weight.min():.3g} to {weight.max():.3g}; make the task without "
                "class_weight= and without untested classes"
            )
        if table.ties == "optimistic" and table.n_tied:
            raise DataError(
                f"task: found {table.n_tied} ties counted as correct, which may make a "
                "classifier look better than the Bayes classifier; make the task with another "
                "ties="
            )
        squares.append(np.sum(table.weight**2))
    counts = {member.n_classes for member in tasks}
    if len(counts) != 1:
        raise DataError(
            f"task: found tests on {sorted(counts)} classes, expected tests on the same number"
        )
    return counts.pop(), np.array(squares)


def information_bound(
    task: SourceTask | Sequence[SourceTask],
    alpha: float = 0.05,
    method: Method = "bounded_differences",
    unit: Unit = "nats",
) -> float:
    r"""Lower confidence bound on the mutual information of label and features.

    It is :math:`C_k^{-1}` (`smallest_information`) at `bayes_accuracy_bound`, with its assumptions
    (Zheng, thesis, 2017, section 4.4), and 0 if that bound is 1 / k.

    Parameters
    ----------
    task, alpha, method
        As in `bayes_accuracy_bound`.
    unit : {"nats", "bits"}
        Unit of the result.

    Notes
    -----
    The bound uses only the accuracy on all k1 classes. It holds for every distribution of label
    and features, so it may be far below the information, and more classes may make it weaker. The
    bound of a subsample (`SourceTask.subsample`) is valid too, if its size is chosen before the
    data are seen.

    Examples
    --------
    >>> task = SourceTask.from_ranks([1] * 380 + [2] * 20, np.arange(400), n_classes=400)
    >>> round(information_bound(task, unit="bits"), 3)
    9.691
    """
    bound = bayes_accuracy_bound(task, alpha, method)
    n_classes = (task[0] if isinstance(task, Sequence) else task).n_classes
    return float(smallest_information(bound, n_classes, unit))


def largest_accuracy(information: Any, k: int, unit: Unit = "nats") -> FloatArray:
    r"""Largest average Bayes accuracy on k classes for given mutual information.

    :math:`C_k(\iota) = \int_0^1 Q_c(t) t^{k-1} dt` with
    :math:`Q_c(t) = e^{c t^{k-1}} / \int_0^1 e^{c s^{k-1}} ds` and c such that
    :math:`\int_0^1 Q_c \log Q_c\, dt = \iota`. No joint distribution of label and features with
    information :math:`\iota` has a higher :math:`ABA_k`, and one distribution attains it. The
    relative error is below 1e-9.

    Parameters
    ----------
    information : float or array
        Mutual information, at least 0.
    k : int
        Number of classes, at least 2.
    unit : {"nats", "bits"}
        Unit of the information.

    References
    ----------
    Zheng, thesis (2017), Theorem 4.3.1.

    Examples
    --------
    >>> largest_accuracy([0, 1, 5], k=10).round(4).tolist()
    [0.1, 0.5131, 0.9781]
    """
    nats = _within(information, "information", np.inf) * nats_per(unit)
    k = class_count(k, "k", smallest=2)
    log_c = increasing_root(lambda x, goal: _tilted(x, k)[2] - goal, _LOG_C, nats)
    accuracy = np.where(log_c > 0, 1.0, 1 / k)
    inside = np.isfinite(log_c)
    accuracy[inside] = _tilted(log_c[inside], k)[0]
    return accuracy[()]


def smallest_information(accuracy: Any, k: int, unit: Unit = "nats") -> FloatArray:
    r"""Smallest mutual information for a given average Bayes accuracy on k classes.

    It is the inverse :math:`C_k^{-1}` of `largest_accuracy` (Zheng, thesis, 2017, section 4.3.1): 0
    at accuracies up to 1 / k, infinite at accuracy 1.

    Parameters
    ----------
    accuracy : float or array
        Average Bayes accuracy :math:`ABA_k`, in [0, 1].
    k, unit
        As in `largest_accuracy`.

    Examples
    --------
    >>> smallest_information([0.1, 0.5, 0.9], k=10, unit="bits").round(3).tolist()
    [0.0, 1.366, 4.903]
    """
    accuracy = _within(accuracy, "accuracy", 1.0)
    k = class_count(k, "k", smallest=2)

    def excess(x: FloatArray, goal: FloatArray) -> FloatArray:
        right, wrong, _ = _tilted(x, k)
        return np.log(right / wrong) - goal  # accurate near 0 and near 1

    log_c = increasing_root(excess, _LOG_C, logit(accuracy))
    information = np.where(log_c > 0, np.inf, 0.0)
    inside = np.isfinite(log_c) & (accuracy > 1 / k)
    information[inside] = _tilted(log_c[inside], k)[2]
    return (information / nats_per(unit))[()]


def fano_bound(accuracy: Any, k: int, unit: Unit = "nats") -> FloatArray:
    r"""Lower bound on mutual information by Fano's inequality, given an accuracy on k classes.

    With e = 1 - accuracy it is :math:`\log k + e \log e + (1 - e) \log(1 - e) - e \log(k - 1)`
    (Cover and Thomas, Elements of Information Theory, 2006, section 2.10). It is 0 at accuracies up
    to 1 / k, and log k at accuracy 1. On randomly drawn classes, `smallest_information` at the
    average Bayes accuracy is a larger lower bound.

    Parameters
    ----------
    accuracy : float or array
        Accuracy on k equally frequent classes, in [0, 1].
    k, unit
        As in `largest_accuracy`.

    Examples
    --------
    >>> fano_bound([0.1, 0.5, 0.9, 1], k=10, unit="bits").round(3).tolist()
    [0.0, 0.737, 2.536, 3.322]
    """
    k = class_count(k, "k", smallest=2)
    # The bound is the divergence of the predictions from guessing. This form is accurate near 1/k.
    right = np.maximum(_within(accuracy, "accuracy", 1.0), 1 / k)
    wrong = 1 - right
    divergence = xlogy(right, right * k) + xlogy(wrong, wrong * k / (k - 1))
    return np.maximum(divergence / nats_per(unit), 0.0)[()]


def _within(values: Any, name: str, largest: float) -> FloatArray:
    """Values as an array, or DataError if one is outside [0, `largest`]."""
    array = np.asarray(as_numeric(values, name), dtype=float)
    if not np.all((array >= 0) & (array <= largest)):
        raise DataError(f"{name}: expected numbers in [0, {largest:g}], found {values!r}")
    return array


def _tilted(log_c: FloatArray, k: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Accuracy, error and information of Q_c, each of the shape (m,) of `log_c`.

    With t = exp(-y / (k - 1)) the power t^(k-1) is s = exp(-y), and y is exponential with mean
    k - 1. The trapezoid rule runs over log y, so its nodes cover the mass for every c.
    """
    c = np.exp(log_c)[:, None]
    log_y = np.arange(_LOG_NODES[0], np.log(40.0 * (k - 1)), _LOG_NODES[1])
    y = np.exp(log_y)
    weight = np.exp(log_y - y / (k - 1))
    weight /= weight.sum()
    s, rest = np.exp(-y), -np.expm1(-y)
    tilted = weight * np.exp(-c * rest)
    total = tilted.sum(axis=1)
    accuracy, error = tilted @ s / total, tilted @ rest / total
    # Information is c A - log E[e^(c s)]. If c is large, c is subtracted from both terms, because
    # each is close to c.
    c = c[:, 0]
    small = np.minimum(c, _SMALL_C)
    by_growth = small * accuracy - np.log1p(np.expm1(small[:, None] * s) @ weight)
    by_decay = -c * error - np.log(total)
    return accuracy, error, np.where(c < _SMALL_C, by_growth, by_decay)


def confusion_information(
    confusion: Any,
    *,
    class_weight: Any = None,
    correction: Literal["miller_madow", "none"] = "miller_madow",
    unit: Unit = "nats",
) -> float:
    r"""Mutual information of true and predicted classes, from a confusion matrix.

    Let :math:`p_{ij}` be the share of the :math:`n_i` instances of class i that were classified as
    j. With class priors :math:`\pi_i` and :math:`p_j = \sum_i \pi_i p_{ij}`,

    .. math:: \hat I = H(p) - \sum_i \pi_i H(p_i), \qquad H(p) = -\sum_j p_j \log p_j.

    To first order, the bias of a plug-in entropy is :math:`-\frac12 \sum_j Var(p_j) / p_j`. The
    correction of Miller and Madow (1955) adds this to H(p), with :math:`Var(p_j) = \sum_i \pi_i^2
    p_{ij} (1 - p_{ij}) / n_i`, and :math:`(m_i - 1) / (2 n_i)` to :math:`H(p_i)`, with :math:`m_i`
    its number of nonzero shares. It assumes several instances for each cell that is not rare; with
    fewer the result is too large.

    Parameters
    ----------
    confusion : array-like of shape (k, n_answers)
        Counts with true classes in rows and predicted classes in columns, as of scikit-learn's
        ``confusion_matrix``.
    class_weight : array-like of shape (k,), optional
        Prior probabilities of the true classes; equal by default.
    correction : {"miller_madow", "none"}
        Whether the bias is corrected. Without it the result is in [0, log k].
    unit : {"nats", "bits"}
        Unit of the result.

    Examples
    --------
    >>> counts = [[45, 3, 2], [4, 44, 2], [1, 3, 46]]
    >>> round(confusion_information(counts, unit="bits"), 3)
    1.001
    """
    one_of(correction, ("miller_madow", "none"), "correction")
    counts = as_matrix(confusion, "confusion").astype(float)
    bad = ~(np.isfinite(counts) & (counts >= 0) & (counts == np.rint(counts)))
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise DataError(
            f"confusion: found {counts[i, j]} in row {i}, column {j}; expected counts and not "
            "shares"
        )
    n = counts.sum(axis=1)
    if np.count_nonzero(n) < 2:
        raise DataError("confusion: expected instances of at least 2 true classes")
    prior = class_weights(class_weight, np.flatnonzero(n), n.size, None)
    counts = counts[:, prior @ counts > 0]  # answers that no class with weight gives do not occur
    n, m = np.maximum(n, 1), np.count_nonzero(counts, axis=1)
    share = counts / n[:, None]
    mean = prior @ share
    information = entr(mean).sum() - prior @ entr(share).sum(axis=1)
    if correction == "miller_madow":
        variance = prior**2 / n @ (share * (1 - share))
        information += ((variance / mean).sum() - prior @ ((m - 1) / n)) / 2
    return float(information / nats_per(unit))
