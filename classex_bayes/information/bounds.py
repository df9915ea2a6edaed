"""Model-free bounds on the Bayes classifier's accuracy and on mutual information."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import xlogy

from classex_bayes.arguments import as_numeric, class_count, one_of, probability
from classex_bayes.core.increasing_root import increasing_root
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import source_task
from classex_bayes.typing import FloatArray

Unit = Literal["nats", "bits"]
Method = Literal["bounded_differences", "cantelli", "chebyshev"]
NATS = {"nats": 1.0, "bits": float(np.log(2))}
# Range of log c. Below it the accuracy is 1 / k up to rounding, above it 1.
_LOG_C = (-36.0, 43.0)
# First node and step for log y. The first y is far below 1 / c, and the step gives errors of 1e-15.
_LOG_NODES = (-85.0, 0.2)
_SMALL_C = 30.0
_METHODS = ("bounded_differences", "cantelli", "chebyshev")


def bayes_accuracy_variance(k: int) -> float:
    r"""Upper bound on the variance of the Bayes accuracy of k random classes.

    Changing one class changes the Bayes accuracy :math:`BA_k = \frac1k \int \max_i p(y \mid x_i)\,
    dy` by at most 1/k. By the inequality of Efron and Stein, :math:`Var[BA_k] \le 1 / (4k)` for
    every distribution.

    Parameters
    ----------
    k : int
        Number of classes, at least 2.

    Returns
    -------
    float

    References
    ----------
    Zheng, thesis (2017), Theorem 2.5.1.

    Examples
    --------
    >>> bayes_accuracy_variance(100)
    0.0025
    """
    return 1 / (4 * class_count(k, "k", smallest=2))


@dataclass(frozen=True, repr=False)
class AccuracyBound:
    """Lower confidence bound on the average Bayes accuracy ABA_k.

    Attributes
    ----------
    bound : float
        The bound, at least 1 / k, because every ABA_k is at least 1 / k.
    accuracy : float
        Test accuracy of the classifier that gives the bound.
    test_deviation, class_deviation : float
        Deductions for the sampling of test instances and of classes. The bound is the accuracy
        minus their sum, or with "bounded_differences" minus the root of their sum of squares.
    alpha : float
        Largest probability that the bound is too high.
    n_classes : int
        k, the number of classes.
    method : str
        Inequality that bounds the effect of the sampling of classes.
    """

    bound: float
    accuracy: float
    test_deviation: float
    class_deviation: float
    alpha: float
    n_classes: int
    method: Method

    def information(self, unit: Unit = "nats") -> float:
        """Lower confidence bound on mutual information: `smallest_information` of the bound."""
        return float(smallest_information(self.bound, self.n_classes, unit))

    def __repr__(self) -> str:
        """One sentence with the bound and its parts."""
        return (
            f"average Bayes accuracy on {self.n_classes} classes is at least {self.bound:.4f} with "
            f"confidence {100 * (1 - self.alpha):g}% (test accuracy {self.accuracy:.4f}; "
            f"deviations {self.test_deviation:.4f} by test instances, {self.class_deviation:.4f} "
            f"by classes; {self.method})"
        )


@dataclass(frozen=True, repr=False)
class InformationBound:
    """Lower confidence bound on the mutual information of label and features.

    Attributes
    ----------
    information : float
        The bound.
    unit : {"nats", "bits"}
        Its unit.
    accuracy : AccuracyBound
        Bound on the Bayes accuracy that it comes from, with its level and number of classes.
    """

    information: float
    unit: Unit
    accuracy: AccuracyBound

    def __repr__(self) -> str:
        """One sentence with the bound, its level, and the number of classes that it comes from."""
        return (
            f"mutual information is at least {self.information:.3f} {self.unit} with confidence "
            f"{100 * (1 - self.accuracy.alpha):g}%, from the accuracy at "
            f"k = {self.accuracy.n_classes}"
        )


def bayes_accuracy_bound(
    task: SourceTask | Sequence[SourceTask],
    alpha: float = 0.05,
    method: Method = "bounded_differences",
) -> AccuracyBound:
    r"""Lower confidence bound on the average Bayes accuracy on as many classes as were tested.

    No classifier is better than the Bayes classifier. The test accuracy :math:`\widehat{GA}`, minus
    an allowance for chance, is therefore a lower bound of :math:`ABA_{k} = E[BA_{k}]` at :math:`k =
    k_1`:

    .. math::

        \max_i \Big( \widehat{GA}_i - \sqrt{\tfrac12 \log\tfrac{\ell}{\alpha}
            \big(\textstyle\sum_j \omega_{ij}^2 + \tfrac1k\big)} \Big)

    over the :math:`\ell` classifiers i, with :math:`\omega_{ij}` the weights of its test instances.
    Replacing an instance changes the accuracy by at most :math:`\omega_{ij}`, and replacing a class
    by at most 1/k, so one exponential inequality (McDiarmid's) covers both.

    Parameters
    ----------
    task : SourceTask or sequence of SourceTask
        The test, or the tests of several classifiers on the same classes. The best of these may be
        chosen, because the bound is corrected for the choice (Bonferroni).
    alpha : float
        Largest probability that the bound exceeds ABA_k.
    method : {"bounded_differences", "cantelli", "chebyshev"}
        The formula above, or that of the thesis:
        :math:`\widehat{GA} - \sqrt{\log(\ell / \alpha_1) \sum_j \omega_j^2 / 2}` less a deviation
        of the classes with variance 1/(4k) by Cantelli's one-sided inequality,
        :math:`\sqrt{(1 - \alpha_2) / (4 k \alpha_2)}`, or by Chebyshev's,
        :math:`1 / \sqrt{4 k \alpha_2}`. The split :math:`\alpha_1 + \alpha_2 = \alpha` is the
        one with the smallest deviation, which the outcomes of the test do not affect.

    Returns
    -------
    AccuracyBound

    Raises
    ------
    DataError
        If classes have unequal weights or no test instances, ties count as correct, a task is an
        accuracy curve, tasks differ in the number of classes, or `alpha` is outside (0, 1).

    Notes
    -----
    The bound assumes that the classes are independent draws from their population. It assumes that
    test instances are independent given the classes, and that they were not used to train or choose
    the classifier, except to choose among the given tasks.

    References
    ----------
    Zheng, thesis (2017), Theorem 2.5.2 and Lemma 2.5.1, with one-sided Hoeffding inequalities. For
    the default, which is sharper at the usual `alpha`: McDiarmid, On the method of bounded
    differences (1989).

    Examples
    --------
    >>> task = SourceTask.from_ranks([1] * 380 + [2] * 20, np.arange(400), n_classes=400)
    >>> round(bayes_accuracy_bound(task).bound, 3)
    0.863
    >>> round(bayes_accuracy_bound(task, method="cantelli").bound, 3)
    0.754
    """
    if not isinstance(task, SourceTask | Sequence):
        raise DataError(f"task: expected a SourceTask or a list of them, found {task!r}")
    tasks = [task] if isinstance(task, SourceTask) else list(task)
    alpha = probability(alpha, "alpha")
    one_of(method, _METHODS, "method")
    k = _common_classes(tasks)
    squares = np.array([np.sum(member.require("ranks").weight ** 2) for member in tasks])

    def test_deviation(level: float) -> FloatArray:
        return np.sqrt(np.log(len(tasks) / level) * squares / 2)

    def class_deviation(level: float) -> float:
        above = level if method == "cantelli" else 0.0
        return float(np.sqrt((1 - above) / level * bayes_accuracy_variance(k)))

    if method == "bounded_differences":
        by_test, by_class = test_deviation(alpha), np.sqrt(np.log(len(tasks) / alpha) / (2 * k))
        deviation = np.hypot(by_test, by_class)
    else:
        share = minimize_scalar(
            lambda s: test_deviation((1 - s) * alpha).max() + class_deviation(s * alpha),
            bounds=(1e-6, 1 - 1e-6),
            method="bounded",
        ).x
        by_test, by_class = test_deviation((1 - share) * alpha), class_deviation(share * alpha)
        deviation = by_test + by_class
    accuracy = np.array([member.accuracy(k)[0] for member in tasks])
    best = int(np.argmax(accuracy - deviation))
    return AccuracyBound(
        max(float(accuracy[best] - deviation[best]), 1 / k),
        float(accuracy[best]),
        float(by_test[best]),
        float(by_class),
        alpha,
        k,
        method,
    )


def information_bound(
    task: SourceTask | Sequence[SourceTask],
    alpha: float = 0.05,
    method: Method = "bounded_differences",
    unit: Unit = "nats",
) -> "InformationBound":
    r"""Lower confidence bound on the mutual information of label and features.

    The bound is :math:`C_k^{-1}` (`smallest_information`) at the lower bound on the average Bayes
    accuracy.

    Parameters
    ----------
    task, alpha, method
        As in `bayes_accuracy_bound`.
    unit : {"nats", "bits"}
        Unit of the result.

    Returns
    -------
    InformationBound
        Its `information` is 0 if the bound on the accuracy is 1 / k.

    Raises
    ------
    DataError
        As in `bayes_accuracy_bound`, or if `unit` is unknown.

    Notes
    -----
    The assumptions are those of `bayes_accuracy_bound`.
    The bound uses only the accuracy on all k1 classes. It must hold for every distribution of label
    and features, so it may be far below the information, and more classes may make it weaker. The
    bounds of subsamples (`SourceTask.subsample`) are valid too, if their size is chosen before the
    data are seen.

    References
    ----------
    Zheng, thesis (2017), section 4.4.

    Examples
    --------
    >>> task = SourceTask.from_ranks([1] * 380 + [2] * 20, np.arange(400), n_classes=400)
    >>> information_bound(task, unit="bits")
    mutual information is at least 9.691 bits with confidence 95%, from the accuracy at k = 400
    """
    one_of(unit, tuple(NATS), "unit")
    accuracy = bayes_accuracy_bound(task, alpha, method)
    return InformationBound(accuracy.information(unit), unit, accuracy)


def _common_classes(tasks: list[SourceTask]) -> int:
    """Return the number of classes that all tasks share."""
    if not tasks:
        raise DataError("task: expected at least one task, found none")
    for member in tasks:
        source_task(member)
        evidence = member.require("plain ranks")
        weight = evidence.class_weight
        if np.ptp(weight) > 1e-12:
            raise DataError(
                "task: expected equal class weights and every class tested, found class weights "
                f"from {weight.min():.3g} to {weight.max():.3g}; make the task without "
                "class_weight= and without untested classes"
            )
        if evidence.ties == "optimistic" and evidence.n_tied:
            raise DataError(
                f"task: found {evidence.n_tied} ties counted as correct, which may make a "
                "classifier look better than the Bayes classifier; make the task with another "
                "ties="
            )
    counts = {member.n_classes for member in tasks}
    if len(counts) > 1:
        raise DataError(
            f"task: found tests on {sorted(counts)} classes, expected the same number in all"
        )
    return counts.pop()


def largest_accuracy(information: Any, k: int, unit: Unit = "nats") -> FloatArray:
    r"""Largest average Bayes accuracy on k classes for given mutual information.

    :math:`C_k(\iota) = \int_0^1 Q_c(t) t^{k-1} dt` with
    :math:`Q_c(t) = e^{c t^{k-1}} / \int_0^1 e^{c s^{k-1}} ds` and c such that
    :math:`\int_0^1 Q_c \log Q_c\, dt = \iota`. No joint distribution of label and features with
    information :math:`\iota` has a higher :math:`ABA_k`, and one distribution attains it.

    Parameters
    ----------
    information : float or array
        Mutual information, at least 0.
    k : int
        Number of classes, at least 2.
    unit : {"nats", "bits"}
        Unit of `information`.

    Returns
    -------
    float or array
        Largest accuracy. It increases from 1 / k at 0 to 1 at infinity and is concave. The relative
        error is below 1e-9.

    Raises
    ------
    DataError
        If information is negative or not a number, or `k` or `unit` is invalid.

    References
    ----------
    Zheng, thesis (2017), Theorem 4.3.1.

    Examples
    --------
    >>> largest_accuracy([0, 1, 5], k=10).round(4).tolist()
    [0.1, 0.5131, 0.9781]
    """
    one_of(unit, tuple(NATS), "unit")
    nats = _checked(information, "information", np.inf) * NATS[unit]
    k = class_count(k, "k", smallest=2)
    log_c = increasing_root(lambda x, goal: _tilted(x, k)[2] - goal, _LOG_C, nats)
    accuracy = np.where(log_c > 0, 1.0, 1 / k)
    inside = np.isfinite(log_c)
    accuracy[inside] = _tilted(log_c[inside], k)[0]
    return accuracy[()]


def smallest_information(accuracy: Any, k: int, unit: Unit = "nats") -> FloatArray:
    r"""Smallest mutual information for a given average Bayes accuracy on k classes.

    It is the inverse :math:`C_k^{-1}` of `largest_accuracy`.

    Parameters
    ----------
    accuracy : float or array
        Average Bayes accuracy :math:`ABA_k`, in [0, 1].
    k : int
        Number of classes, at least 2.
    unit : {"nats", "bits"}
        Unit of the result.

    Returns
    -------
    float or array
        0 at accuracies up to 1 / k, infinite at accuracy 1; increasing and convex.

    Raises
    ------
    DataError
        An accuracy outside [0, 1].

    References
    ----------
    Zheng, thesis (2017), section 4.3.1.

    Examples
    --------
    >>> smallest_information([0.1, 0.5, 0.9], k=10, unit="bits").round(3).tolist()
    [0.0, 1.366, 4.903]
    """
    one_of(unit, tuple(NATS), "unit")
    accuracy = _checked(accuracy, "accuracy", 1.0)
    k = class_count(k, "k", smallest=2)

    def excess(x: FloatArray, goal: FloatArray) -> FloatArray:
        right, wrong, _ = _tilted(x, k)
        return np.where(goal > 0.5, (1 - goal) - wrong, right - goal)

    log_c = increasing_root(excess, _LOG_C, accuracy)
    information = np.where(log_c > 0, np.inf, 0.0)
    inside = np.isfinite(log_c) & (accuracy > 1 / k)
    information[inside] = _tilted(log_c[inside], k)[2]
    return (information / NATS[unit])[()]


def fano_bound(accuracy: Any, k: int, unit: Unit = "nats") -> FloatArray:
    r"""Lower bound on mutual information by Fano's inequality, given an accuracy on k classes.

    .. math:: I(X; Y) \ge \log k - h(e) - e \log(k - 1), \qquad
        h(e) = -e \log e - (1 - e) \log(1 - e), \quad e = 1 - accuracy

    Parameters
    ----------
    accuracy : float or array
        Accuracy on k equally frequent classes, in [0, 1].
    k : int
        Number of classes, at least 2.
    unit : {"nats", "bits"}
        Unit of the result.

    Returns
    -------
    float or array
        0 at accuracies up to 1 / k, log k at accuracy 1; increasing and convex.

    Raises
    ------
    DataError
        An accuracy outside [0, 1].

    Notes
    -----
    On fixed classes with equal priors, the information of the predicted classes
    (`confusion_information`) is at least Fano's bound at their accuracy. The two are equal if all
    errors are equally likely. On randomly drawn classes, both Fano's bound and
    `smallest_information` at the average Bayes accuracy are lower bounds. `smallest_information` is
    the larger one and is sharp. It has no upper limit, while Fano's bound and the information of
    the predicted classes are at most log k.

    References
    ----------
    Fano, Transmission of Information (1961); Cover and Thomas, Elements of Information Theory
    (2006), section 2.10; Zheng, thesis (2017), sections 1.1 and 1.4.1.

    Examples
    --------
    >>> fano_bound([0.1, 0.5, 0.9, 1], k=10, unit="bits").round(3).tolist()
    [0.0, 0.737, 2.536, 3.322]
    """
    one_of(unit, tuple(NATS), "unit")
    right = _checked(accuracy, "accuracy", 1.0)
    k = class_count(k, "k", smallest=2)
    # The bound is the divergence of the predictions from guessing. This form is accurate near 1/k.
    right = np.maximum(right, 1 / k)
    wrong = 1 - right
    divergence = xlogy(right, right * k) + xlogy(wrong, wrong * k / (k - 1))
    return np.maximum(divergence / NATS[unit], 0.0)[()]


def _checked(values: Any, name: str, largest: float) -> FloatArray:
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
