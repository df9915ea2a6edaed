"""Least-squares extrapolation of the average risk, for any cost of each confusion.

AvRisk_k = (k - 1) int K(u) u^(k - 2) du with K(u) the mean cost that a competitor causes if it
beats the share u of the others. Both estimators model K as linear in known functions.
"""

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy.optimize import nnls
from scipy.special import ndtri

from classex_bayes.arguments import (
    class_count,
    class_counts,
    number_at_one_k,
    numbers,
    truth_value,
    whole_number,
)
from classex_bayes.core.basis import RadialBasis
from classex_bayes.estimators.base import PointEstimator, note_outside
from classex_bayes.estimators.kde import positive_bandwidth
from classex_bayes.estimators.measured_curve import measured_curve
from classex_bayes.exceptions import DataError
from classex_bayes.results.extrapolation import RISK, Estimand
from classex_bayes.risk.average_risks import (
    Coefficients,
    LinearStatistics,
    average_test_risk,
    cost_matrix,
    linear_statistics,
    risk_coefficients,
)
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray

# With a larger condition number, predictions have fewer than 5 correct digits.
_LARGEST_CONDITION = 1e10
_NARROWEST, _WIDEST = 0.05, 10.0
_LOWEST_KNOT = -4.0
# Directions of the basis below this share of the largest are dominated by rounding.
_SMALLEST_DIRECTION = 1e-10


class LinearRisk(PointEstimator):
    """Risk that is linear in coefficients, which are linear in the costs by rank."""

    _estimand = Estimand(metric=RISK)
    coef_: FloatArray
    _statistics: LinearStatistics  # of the coefficients

    @abstractmethod
    def _moments(self, k: IntArray) -> FloatArray:
        """Risk on k classes of each function of the basis: array of shape (n_k, m)."""

    def _curve(self, k: IntArray) -> FloatArray:
        return self._moments(k) @ self.coef_

    def _notes(self, k: IntArray, values: FloatArray) -> tuple[str, ...]:
        return note_outside(values, k, "nothing bounds the predictions")

    @number_at_one_k
    def standard_error(self, k: ClassCounts) -> FloatArray:
        r"""Standard error (n_k,) of the predicted risk from sampling classes and instances.

        :math:`\sqrt{W_k' \Sigma W_k}` with W the moments of the basis and Sigma the dyadic
        cluster-robust covariance of the coefficients. If this variance is not positive, only the
        differences between test classes are used. The bias of a risk that the basis cannot express
        is not included.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes, at least 2.
        """
        spread = self._require("_statistics")
        moments = self._moments(class_counts(k))
        dyadic, clustered = (
            np.einsum("ki,ij,kj->k", moments, covariance, moments)
            for covariance in (spread.covariance, spread.clustered)
        )
        return np.sqrt(np.where(dyadic > 0, dyadic, np.maximum(clustered, 0.0)))


class PolynomialRisk(LinearRisk):
    r"""Extrapolation of the risk by a polynomial in the rank of the competitor.

    The cost :math:`C_{il} = cost[y_i, l] 1\{l \text{ beats } y_i\}` of each pair of an instance and
    a wrong class is regressed on the powers of the share U of competitors that class l beats. Only
    the number R of other competitors that it beats is observed, of n = k1 - 2. The covariates are
    the conditional expectations of the powers,

    .. math::

        E[U^h \mid R] = \frac{(R+1)_h}{(n+2)_h}, \qquad
        \widehat{AvRisk}_k = \sum_{h=0}^d \hat\beta_h \frac{k-1}{k-1+h}

    with rising factorials :math:`(x)_h`. So this is a regression of the expected costs by rank.

    Parameters
    ----------
    cost : array-like of shape (k1, k1) or DataFrame
        As in `classex_bayes.risk.average_test_risk`.
    degree : int
        Degree d of the polynomial, 0..k1 - 3; above 10 only if the powers are not collinear in
        double precision.

    Attributes
    ----------
    coef_ : array of shape (degree + 1,)
        Coefficients of 1, u, ..., u^d.

    Notes
    -----
    The estimator is unbiased if K is a polynomial of this degree. The fit reproduces the average
    test risks on 2..d + 2 classes exactly and uses no further information. If K is not such a
    polynomial, the fit misses even the test risk at k1. Predictions may leave [0, 1].

    References
    ----------
    Zheng, Achanta and Benjamini, draft (2016), section 3.3 and appendix A.1. Section 3.3 prints
    the covariates C(R, h) / C(n, h), on which the regression is biased.

    Examples
    --------
    >>> scores = np.random.default_rng(1).normal(size=(40, 40)) + 2.5 * np.eye(40)
    >>> task = SourceTask.from_scores(scores, np.arange(40))
    >>> cost = np.minimum(abs(np.subtract.outer(np.arange(40), np.arange(40))) / 10, 1)
    >>> model = PolynomialRisk(cost, degree=4).fit(task)
    >>> model.predict([40, 80]).mean.round(2).tolist(), model.standard_error([40, 80]).round(2)
    ([0.27, 0.3], array([0.06, 0.07]))
    """

    def __init__(self, cost: Any, degree: int = 2) -> None:
        self.cost = cost
        self.degree = degree

    def _name_parts(self) -> list[str]:
        return [f"degree {self.degree}"]

    def _fit(self, task: SourceTask) -> None:
        matrix = cost_matrix(self.cost, task)
        coefficients = _least_squares_on_powers(self.degree, task.n_classes)
        self._statistics = linear_statistics(task, [matrix], coefficients)
        self.coef_ = self._statistics.cost_by_rank[0] @ coefficients(task.n_classes)

    def _moments(self, k: IntArray) -> FloatArray:
        return _power_moments(k, self.coef_.size - 1)


@number_at_one_k
def noise_amplification(n_classes: int, k: ClassCounts, degree: int) -> FloatArray:
    r"""Factor (n_k,) by which noise of the costs by rank is amplified in the risk on k classes.

    :math:`\kappa(k_1, k, d) = W' (Z'Z)^{-1} W` with :math:`W_h = (k-1) / (k-1+h)` and
    :math:`Z_{mh} = (m)_h / (k_1)_h`, m = 1..k1 - 1. It is the variance of the risk that
    `PolynomialRisk` predicts if the costs by rank have variance 1 and no correlation. With r test
    instances per class, the draft bounds the variance by :math:`\kappa / (4r)`. Costs by rank are
    correlated, so compare this with `standard_error`.

    Parameters
    ----------
    n_classes : int
        Source classes k1, at least 3.
    k : int or array-like of int
        Numbers of classes, at least 2.
    degree : int
        Degree d of the polynomial, as in `PolynomialRisk`.

    References
    ----------
    Zheng, Achanta and Benjamini, draft (2016), section 3.4, with W corrected.

    Examples
    --------
    >>> noise_amplification(20, [20, 200], 2).round(3)
    array([0.386, 0.565])
    """
    n = class_count(n_classes, "n_classes", smallest=3)
    coefficients = _least_squares_on_powers(degree, n)(n)
    amplified = coefficients @ _power_moments(class_counts(k), coefficients.shape[1] - 1).T
    return (amplified**2).sum(axis=0)


def _least_squares_on_powers(degree: Any, n_classes: int) -> Coefficients:
    """Coefficients by rank of the least-squares coefficients of the powers 0..degree."""
    order = whole_number(degree, "degree", 0)
    if order > n_classes - 3:
        raise DataError(
            f"degree: found {order}, expected at most k1 - 3 = {n_classes - 3}; with a higher "
            "degree the standard error cannot be estimated"
        )

    def coefficients(n: int) -> FloatArray:
        power = np.arange(order)
        factors = (n - 1.0 - np.arange(n - 1)[:, None] + power) / (n + power)
        covariates = np.cumprod(np.hstack([np.ones((n - 1, 1)), factors]), axis=1)
        u, values, vt = np.linalg.svd(covariates, full_matrices=False)
        if values[0] > _LARGEST_CONDITION * values[-1]:
            raise DataError(
                f"degree: found {order}, at which the powers of {n} classes are collinear in "
                "double precision; expected a lower degree (up to 10 always works)"
            )
        return u / values @ vt

    return coefficients


def _power_moments(k: IntArray, degree: int) -> FloatArray:
    """Risk on k classes of K(u) = u^h, (k-1) / (k-1+h), for h = 0..degree."""
    competitors = k[:, None] - 1.0
    return competitors / (competitors + np.arange(degree + 1))


class MomentRisk(LinearRisk):
    r"""Extrapolation of the risk by the moment method.

    With :math:`K(u) = \sum_l \beta_l h_l(u)` the average risk is linear in the moments of the basis
    functions, and so are the coefficients in the average test risks:

    .. math::

        \widehat{AvRisk}_k = \sum_l \hat\beta_l H_{lk}, \qquad H_{lk} = (k-1) \int h_l u^{k-2} du,
        \qquad \hat\beta = \arg\min_\beta \sum_{k=2}^{k_1}
            w_k \Big(AvTestRisk_k - \sum_l \beta_l H_{lk}\Big)^2

    The basis functions are radial-basis CDFs, :math:`h_l(u) = \Phi((\Phi^{-1}(u) - t_l) / h)`, with
    :math:`H_{lk} = 1 - A_l(k)` and knots from -4 to :math:`\Phi^{-1}(1 - 1/k_1^2)`.

    Parameters
    ----------
    cost : array-like of shape (k1, k1) or DataFrame
        As in `classex_bayes.risk.average_test_risk`.
    bandwidth : float in 0.05..10
        Bandwidth h and largest step of the knots.
    nonnegative : bool
        Whether coefficients must be nonnegative, so that K is nonnegative and increases with u.
        The thesis has no constraint. Then the basis is nearly collinear, and extrapolations are
        mostly noise.
    weights : array-like of shape (k1 - 1,), optional
        Positive weights :math:`w_k` of k = 2..k1; equal by default. For more than 500 classes,
        fewer log-spaced k represent all.

    Attributes
    ----------
    coef_, knots_ : arrays of shape (m,)
        Coefficients of the basis functions, and their knots on the scale of Phi^-1(u).

    Notes
    -----
    Predictions may leave [0, 1]. Standard errors are those of the large-sample theory,
    :math:`(H'wH)^{-1} H'w \Sigma w H (H'wH)^{-1}`, with the dyadic covariance of the average test
    risks. Under the constraint, the set of functions with positive coefficients is treated as
    fixed.

    References
    ----------
    Zheng, thesis (2017), section 3.4, (3.7)-(3.12) with k - 1 for the printed k - 2.

    Examples
    --------
    >>> scores = np.random.default_rng(1).normal(size=(40, 40)) + 2.5 * np.eye(40)
    >>> task = SourceTask.from_scores(scores, np.arange(40))
    >>> cost = np.minimum(abs(np.subtract.outer(np.arange(40), np.arange(40))) / 10, 1)
    >>> MomentRisk(cost).fit(task).predict([40, 80]).mean.round(2).tolist()
    [0.31, 0.37]
    """

    def __init__(
        self, cost: Any, bandwidth: float = 1.0, nonnegative: bool = True, weights: Any = None
    ) -> None:
        self.cost = cost
        self.bandwidth = bandwidth
        self.nonnegative = nonnegative
        self.weights = weights

    def _name_parts(self) -> list[str]:
        free = [] if self.nonnegative else ["free"]
        return [f"{self.bandwidth}", *free, *([] if self.weights is None else ["weighted"])]

    def _fit(self, task: SourceTask) -> None:
        matrix, n_classes = cost_matrix(self.cost, task), task.n_classes
        weights: FloatArray = np.ones(n_classes - 1)
        if self.weights is not None:
            expected = f"positive finite numbers, one for each k in 2..{n_classes}"
            weights = numbers(self.weights, "weights", expected, lambda x: x > 0, n_classes - 1)
        width = positive_bandwidth(self.bandwidth, _NARROWEST, _WIDEST)
        basis = RadialBasis.regular(_LOWEST_KNOT, -ndtri(1 / n_classes**2), width)

        curve = measured_curve(task)
        scale = np.sqrt(curve.weight * weights[curve.k - 2])
        design = scale[:, None] * (1 - basis.accuracy(curve.k))
        risk = average_test_risk(task, matrix, curve.k)
        used = np.full(design.shape[1], True)
        if truth_value(self.nonnegative, "nonnegative"):
            used = nnls(design, scale * risk)[0] > 0
        solution = np.zeros((design.shape[1], curve.k.size))
        solution[used] = np.linalg.pinv(design[:, used], rcond=_SMALLEST_DIRECTION) * scale
        at_k = risk_coefficients(curve.k)
        self._statistics = linear_statistics(task, [matrix], lambda n: at_k(n) @ solution.T)
        self.coef_, self.knots_, self._basis = solution @ risk, basis.knots, basis

    def _moments(self, k: IntArray) -> FloatArray:
        return 1 - self._basis.accuracy(k)
