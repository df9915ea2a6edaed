"""Least-squares extrapolation of the average risk, for any cost of each confusion.

The average risk on k classes is a moment of one function, the mean cost of confusing an instance
with a competitor that beats the share u of the others if it beats the true class too:
AvRisk_k = (k - 1) int K(u) u^(k-2) du. Both estimators model K as linear in known functions.
"""

from abc import abstractmethod
from typing import Any, Literal

import numpy as np

from classex_bayes.arguments import class_count, class_counts, number, one_of
from classex_bayes.estimators.base import PointEstimator, note_outside
from classex_bayes.exceptions import DataError
from classex_bayes.results import RISK, Estimand
from classex_bayes.risk.average_risks import cost_matrix, task_costs
from classex_bayes.risk.covariance import ByRank, StreamedCosts
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray

Covariate = Literal["calibrated", "u_statistic"]
# With a larger condition number, predictions have fewer than 5 correct digits.
_LARGEST_CONDITION = 1e10


class LinearRisk(PointEstimator):
    """Risk that is linear in coefficients, which are linear in the costs by rank."""

    _estimand = Estimand(metric=RISK)
    coef_: FloatArray
    _spread: StreamedCosts

    @abstractmethod
    def _moments(self, k: IntArray) -> FloatArray:
        """Risk on k classes of each function of the basis: array of shape (n_k, m)."""

    def _curve(self, k: IntArray) -> FloatArray:
        return self._moments(k) @ self.coef_

    def _notes(self, k: IntArray, values: FloatArray) -> tuple[str, ...]:
        return note_outside(values, k, "nothing bounds the predictions")

    def standard_error(self, k: ClassCounts) -> FloatArray:
        r"""Standard error of the predicted risk from sampling classes and instances.

        :math:`\sqrt{W_k' \Sigma W_k}` with W the moments of the basis and Sigma the dyadic
        cluster-robust covariance of the coefficients; If this variance is not positive, only the
        differences between test classes are used. The standard error does not include the bias of a
        risk that the basis cannot express.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes, at least 2.

        Returns
        -------
        array of shape (n_k,)

        Raises
        ------
        NotFittedError
            `fit` was not called.
        """
        spread = self._require("_spread")
        moments = self._moments(class_counts(k))
        dyadic, clustered = (
            np.einsum("ki,ij,kj->k", moments, covariance, moments)
            for covariance in (spread.covariance, spread.clustered)
        )
        return np.sqrt(np.where(dyadic > 0, dyadic, np.maximum(clustered, 0.0)))


class PolynomialRisk(LinearRisk):
    r"""Extrapolation of the risk by a polynomial in the rank of the competitor (draft2016).

    With K a polynomial, the cost :math:`C_{il} = cost[y_i, l] 1\{l \text{ beats } y_i\}` of each
    pair of an instance and a wrong class is regressed on the powers of the share U of competitors
    that class l beats. Only the number R of other competitors that it beats is observed, R = 0..n
    with n = k1 - 2. The calibrated covariates are the conditional expectations of the powers,

    .. math::

        E[U^h \mid R] = \frac{(R+1)_h}{(n+2)_h}, \qquad
        \widehat{AvRisk}_k = \sum_{h=0}^d \hat\beta_h \frac{k-1}{k-1+h}

    with rising factorials :math:`(x)_h`. They depend only on the rank, so this is a regression of
    the k1 - 1 expected costs by rank.

    Parameters
    ----------
    cost : array-like of shape (k1, k1) or DataFrame
        Cost of predicting the class of the column where that of the row is true, in [0, 1], as
        in `classex_bayes.risk.average_test_risk`.
    degree : int
        Degree d of the polynomial, 0..k1 - 3; above 10 only if the powers are not collinear in
        double precision.
    covariate : {"calibrated", "u_statistic"}
        "calibrated" uses the conditional expectations above. "u_statistic" uses the unbiased
        estimates of the powers that the draft prints, C(R, h) / C(n, h). Regression on the latter
        is biased.

    Attributes
    ----------
    coef_ : array of shape (degree + 1,)
        Coefficients of 1, u, ..., u^d.

    Raises
    ------
    DataError
        From `fit`, if the task has no scores, or if the cost matrix, degree or covariate is out of
        range.

    Notes
    -----
    The estimator is unbiased if K is a polynomial of this degree. The fit reproduces the average
    test risks on 2..d + 2 classes exactly and uses no further information. If K is not such a
    polynomial, the fit misses even the test risk at k1. Predictions may leave [0, 1].

    References
    ----------
    Zheng, Achanta and Benjamini, draft (2016), sections 3.3 and 3.4, appendix A.1.

    Examples
    --------
    >>> scores = np.random.default_rng(1).normal(size=(40, 40)) + 2.5 * np.eye(40)
    >>> task = SourceTask.from_scores(scores, np.arange(40))
    >>> cost = np.minimum(abs(np.subtract.outer(np.arange(40), np.arange(40))) / 10, 1)
    >>> model = PolynomialRisk(cost, degree=4).fit(task)
    >>> model.predict([40, 80]).mean.round(2).tolist(), model.standard_error([40, 80]).round(2)
    ([0.27, 0.3], array([0.06, 0.07]))
    """

    def __init__(self, cost: Any, degree: int = 2, covariate: Covariate = "calibrated") -> None:
        self.cost = cost
        self.degree = degree
        self.covariate = covariate

    def _name_parts(self) -> list[str]:
        covariate = [] if self.covariate == "calibrated" else [self.covariate]
        return [f"degree {self.degree}", *covariate]

    def _fit(self, task: SourceTask) -> None:
        matrix = cost_matrix(self.cost, task)
        one_of(self.covariate, ("calibrated", "u_statistic"), "covariate")
        degree = polynomial_degree(self.degree, task.n_classes)
        every, one_fewer = (
            _fitted_by(n_classes, degree, self.covariate).T
            for n_classes in (task.n_classes, task.n_classes - 1)
        )
        self._spread = task_costs(task, [matrix], ByRank(every, one_fewer))
        self.coef_ = self._spread.cost_by_rank[0] @ every
        self._unit_covariance = every.T @ every
        repeats = np.bincount(task.y)
        self._fewest_repeats = int(repeats[repeats > 0].min())

    def variance_bound(self, k: ClassCounts) -> FloatArray:
        r"""Bound :math:`\kappa / (4r)` of the draft on the variance of the predicted risk.

        :math:`\kappa = W_k' (Z'Z)^{-1} W_k` with Z the covariates and r the fewest repeats of a
        class. Costs by rank in [0, 1] have variances of at most 1/4. The bound treats them as
        uncorrelated, which they are not. Compare it with `standard_error`.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes, at least 2.

        Returns
        -------
        array of shape (n_k,)

        Raises
        ------
        NotFittedError
            `fit` was not called.

        See Also
        --------
        classex_bayes.risk.noise_amplification : The factor kappa from the sizes alone.
        """
        unit = self._require("_unit_covariance")
        moments = self._moments(class_counts(k))
        return np.einsum("ki,ij,kj->k", moments, unit, moments) / (4 * self._fewest_repeats)

    def _moments(self, k: IntArray) -> FloatArray:
        return power_moments(k, self.coef_.size - 1)


def noise_amplification(n_classes: int, k: ClassCounts, degree: int) -> FloatArray:
    r"""Factor by which noise of the costs by rank is amplified in the risk on k classes.

    :math:`\kappa(k_1, k, d) = W' (Z'Z)^{-1} W` with :math:`W_h = (k-1) / (k-1+h)` and
    :math:`Z_{mh} = (m)_h / (k_1)_h`, m = 1..k1 - 1: the variance of the risk that
    `PolynomialRisk` predicts if the costs by rank had variance 1 and no correlation.

    Parameters
    ----------
    n_classes : int
        k1, the number of source classes.
    k : int or array-like of int
        Numbers of classes to predict for, at least 2.
    degree : int
        Degree of the polynomial, 0..n_classes - 3.

    Returns
    -------
    array of shape (n_k,)
        The relative error is below 1e-5.

    Raises
    ------
    DataError
        If an argument is out of range, or if the powers are collinear in double precision, which is
        possible from degree 11 on.

    References
    ----------
    Zheng, Achanta and Benjamini, draft (2016), section 3.4, with W corrected.

    Examples
    --------
    >>> noise_amplification(20, [20, 200], 2).round(3)
    array([0.386, 0.565])
    """
    size = class_count(n_classes, "n_classes", smallest=3)
    order = polynomial_degree(degree, size)
    amplified = power_moments(class_counts(k), order) @ _fitted_by(size, order, "calibrated")
    return (amplified**2).sum(axis=1)


def polynomial_degree(degree: Any, n_classes: int) -> int:
    """Return a degree that the costs by rank of k1 classes, and of one fewer, determine."""
    order = int(number(degree, "degree", 0, whole=True))
    if order > n_classes - 3:
        raise DataError(
            f"degree: found {order}, expected at most k1 - 3 = {n_classes - 3}; with a higher "
            "degree the standard error cannot be estimated"
        )
    return order


def _fitted_by(n_classes: int, degree: int, covariate: Covariate) -> FloatArray:
    """Map from costs by rank to least-squares coefficients: array (degree + 1, k1 - 1)."""
    u, values, vt = np.linalg.svd(_covariates(n_classes, degree, covariate), full_matrices=False)
    if values[0] > _LARGEST_CONDITION * values[-1]:
        raise DataError(
            f"degree: found {degree}, at which the powers of {n_classes} classes are collinear in "
            "double precision; expected a lower degree (up to 10 always works)"
        )
    return vt.T @ (u / values).T


def _covariates(n_classes: int, degree: int, covariate: Covariate) -> FloatArray:
    """Covariates of the powers 0..degree for the ranks 0..k1 - 2: array (k1 - 1, degree + 1)."""
    others = n_classes - 2
    beaten = others - np.arange(n_classes - 1.0)
    columns = [np.ones(n_classes - 1)]
    for h in range(degree):
        if covariate == "calibrated":
            factor = (beaten + 1 + h) / (others + 2 + h)
        else:
            factor = (beaten - h) / (others - h)
        columns.append(columns[-1] * factor)
    return np.column_stack(columns)


def power_moments(k: IntArray, degree: int) -> FloatArray:
    """Risk on k classes of K(u) = u^h, (k-1) / (k-1+h), for h = 0..degree."""
    rivals = k[:, None] - 1.0
    return rivals / (rivals + np.arange(degree + 1))
