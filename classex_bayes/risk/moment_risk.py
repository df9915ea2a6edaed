"""MomentRisk: the average risk from its values on fewer classes, through moments of a basis."""

from typing import Any, Literal

import numpy as np
from scipy.optimize import nnls
from scipy.special import ndtri

from classex_bayes.arguments import numbers, one_of, truth_value
from classex_bayes.core.basis import RadialBasis
from classex_bayes.estimators.kde.bandwidth import positive_bandwidth
from classex_bayes.estimators.training_curve import training_curve
from classex_bayes.risk.average_risks import average_test_risk, cost_matrix, task_costs
from classex_bayes.risk.covariance import ByRank, risk_by_rank
from classex_bayes.risk.polynomial_risk import LinearRisk, polynomial_degree, power_moments
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

Basis = Literal["radial", "powers"]
_NARROWEST, _WIDEST = 0.05, 10.0
_LOWEST_KNOT = -4.0
# Directions of the basis below this share of the largest are lost in rounding.
_SMALLEST_DIRECTION = 1e-10
_TABLE_ELEMENTS = 4_000_000


class MomentRisk(LinearRisk):
    r"""Extrapolation of the risk by the moment method (thesis 2017).

    With :math:`K(u) = \sum_l \beta_l h_l(u)` the average risk is linear in the moments of the basis
    functions, and so are the coefficients in the average test risks:

    .. math::

        \widehat{AvRisk}_k = \sum_l \hat\beta_l H_{lk}, \qquad H_{lk} = (k-1) \int h_l u^{k-2} du,
        \qquad \hat\beta = \arg\min_\beta \sum_{k=2}^{k_1}
            w_k \Big(AvTestRisk_k - \sum_l \beta_l H_{lk}\Big)^2

    Parameters
    ----------
    cost : array-like of shape (k1, k1) or DataFrame
        Cost of predicting the class of the column where that of the row is true, in [0, 1], as
        in `classex_bayes.risk.average_test_risk`.
    basis : {"radial", "powers"}
        Radial-basis CDFs :math:`h_l(u) = \Phi((\Phi^{-1}(u) - t_l) / h)`, with
        :math:`H_{lk} = 1 - A_l(k)` and knots from -4 to :math:`\Phi^{-1}(1 - 1/k_1^2)`; or powers
        :math:`u^l`, with :math:`H_{lk} = (k-1) / (k-1+l)`.
    bandwidth : float in 0.05..10
        Bandwidth h and largest step of the knots of the radial basis.
    degree : int
        Largest power, 0..k1 - 3.
    nonnegative : bool
        Whether coefficients must be nonnegative. If so, K is nonnegative and increases with u.
        Without the constraint the radial basis is nearly collinear, and extrapolations are mostly
        noise.
    weights : array-like of shape (k1 - 1,), optional
        Positive weights :math:`w_k` of k = 2..k1; equal by default. For more than 500 classes,
        fewer log-spaced k represent all.

    Attributes
    ----------
    coef_ : array of shape (m,)
        Coefficients of the basis functions.
    knots_ : array of shape (m,)
        Knots of the radial basis, on the scale of Phi^-1(u); empty for powers.

    Raises
    ------
    DataError
        From `fit`, if the task has no scores, or if the cost matrix or a parameter is out of range.

    Notes
    -----
    Predictions may leave [0, 1]. Standard errors are those of the large-sample theory,
    :math:`(H'wH)^{-1} H'w \Sigma w H (H'wH)^{-1}`, with the dyadic covariance of the average test
    risks. Under the constraint, the formula treats the set of functions with positive coefficients
    as fixed.

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
        self,
        cost: Any,
        basis: Basis = "radial",
        bandwidth: float = 1.0,
        degree: int = 2,
        nonnegative: bool = True,
        weights: Any = None,
    ) -> None:
        self.cost = cost
        self.basis = basis
        self.bandwidth = bandwidth
        self.degree = degree
        self.nonnegative = nonnegative
        self.weights = weights

    def _name_parts(self) -> list[str]:
        parts = [f"{self.basis} {self.degree if self.basis == 'powers' else self.bandwidth}"]
        parts += [] if self.nonnegative else ["free"]
        return parts + ([] if self.weights is None else ["weighted"])

    def _fit(self, task: SourceTask) -> None:
        matrix = cost_matrix(self.cost, task)
        one_of(self.basis, ("radial", "powers"), "basis")
        n_classes = task.n_classes
        weights: FloatArray = np.ones(n_classes - 1)
        if self.weights is not None:
            expected = f"positive finite numbers, one for each k in 2..{n_classes}"
            weights = numbers(self.weights, "weights", expected, lambda x: x > 0, n_classes - 1)
        basis: RadialBasis | int
        if self.basis == "radial":
            width = positive_bandwidth(self.bandwidth, _NARROWEST, _WIDEST)
            basis = RadialBasis.regular(_LOWEST_KNOT, -ndtri(1 / n_classes**2), width)
        else:
            basis = polynomial_degree(self.degree, n_classes)

        curve = training_curve(task)
        scale = np.sqrt(curve.weight * weights[curve.k - 2])
        design = scale[:, None] * _basis_moments(basis, curve.k)
        risk = average_test_risk(task, matrix, curve.k)
        used = np.full(design.shape[1], True)
        if truth_value(self.nonnegative, "nonnegative"):
            used = nnls(design, scale * risk)[0] > 0
        solution = np.zeros((design.shape[1], curve.k.size))
        solution[used] = np.linalg.pinv(design[:, used], rcond=_SMALLEST_DIRECTION) * scale
        self._spread = task_costs(task, [matrix], _combined(n_classes, curve.k, solution.T))
        self.coef_, self._basis = solution @ risk, basis

    @property
    def knots_(self) -> FloatArray:
        """Knots of the radial basis, on the scale of Phi^-1(u); empty for powers."""
        basis = self._require("_basis")
        return basis.knots if isinstance(basis, RadialBasis) else np.empty(0)

    def _moments(self, k: IntArray) -> FloatArray:
        return _basis_moments(self._basis, k)


def _basis_moments(basis: RadialBasis | int, k: IntArray) -> FloatArray:
    """Moments H_lk of a radial basis, or of the powers up to a degree."""
    return 1 - basis.accuracy(k) if isinstance(basis, RadialBasis) else power_moments(k, basis)


def _combined(n_classes: int, k: IntArray, weights: FloatArray) -> ByRank:
    """Coefficients by rank of weighted sums of the risks at `k`, some k at a time."""
    height = max(1, _TABLE_ELEMENTS // n_classes)
    every = np.zeros((n_classes - 1, weights.shape[1]))
    one_fewer = every[1:].copy()
    for start in range(0, k.size, height):
        part = slice(start, start + height)
        sums = risk_by_rank(n_classes, k[part]).combined(weights[part])
        every += sums.every
        one_fewer += sums.one_fewer
    return ByRank(every, one_fewer)
