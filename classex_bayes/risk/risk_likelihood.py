"""Data of a task for the model of the risk, and their likelihood."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from classex_bayes.bayes.model.likelihoods import BernsteinData, Likelihood, whitening
from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.influence import repair_covariance
from classex_bayes.exceptions import DataError
from classex_bayes.risk.average_risks import average_risk, linear_statistics, risk_coefficients
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray, NumberArray

_N_SIZES = 12
# Directions whose variance is below this share of the largest are noise. Relative costs change
# little with k, and few errors determine them.
_SMALLEST_DIRECTION = 1e-2
_ROUNDING = 1e-12  # of a variance
# Prior of the logit of the relative cost, on the scale of Phi^-1(u).
_LEVEL_SD, _LENGTH, _TREND, _N_FUNCTIONS = 1.5, 2.0, 0.3, 12
_MIDDLE, _MIDDLE_SD = 2.5, 1.5


def element_risk(basis: RadialBasis, k: FloatArray | IntArray) -> FloatArray:
    r"""Risk (n_k, m) on k classes of the bumps between neighbouring knots.

    With :math:`h_l` the basis CDFs, the bumps are :math:`b_l = h_l - h_{l+1}`, the last one
    :math:`h_m`. The risk of :math:`\bar K = \sum_l v_l b_l` is linear in v:

    .. math:: (k-1) \int b_l(u) u^{k-2} du = A_{l+1}(k) - A_l(k), \qquad A_{m+1} = 1.

    With v the cumulative weights of a mixture, the product with them is 1 - A(k) w.
    """
    return np.diff(basis.accuracy(k), axis=1, append=1.0)


def cost_functions(knots: FloatArray) -> FloatArray:
    """Functions on the knots, (m, 12), whose normal combinations are smooth with a trend.

    The leading eigenvectors of a squared-exponential kernel of unit variance and a linear one,
    less their mean where most errors are, so that the level next to them keeps its meaning.
    """
    kernel = np.exp(-0.5 * (np.subtract.outer(knots, knots) / _LENGTH) ** 2)
    kernel += _TREND**2 * np.outer(knots, knots)
    weight = np.exp(-0.5 * ((knots - _MIDDLE) / _MIDDLE_SD) ** 2)
    kernel -= (weight / weight.sum()) @ kernel
    kernel -= (kernel @ (weight / weight.sum()))[:, None]
    values, vectors = np.linalg.eigh(kernel)
    return vectors[:, -_N_FUNCTIONS:] * np.sqrt(values[-_N_FUNCTIONS:])


class ObservedRisk(NamedTuple):
    """Errors and risks of a task on a grid of k, in units of the largest cost."""

    k: IntArray  # (n_k,)
    error: FloatArray  # (n_k,): 1 - ATA_k
    risk: FloatArray  # (n_k,)
    covariance: FloatArray  # (2 n_k, 2 n_k), dyadic, errors first
    clustered: FloatArray  # (2 n_k, 2 n_k), from differences between test classes alone
    one_error: FloatArray  # (n_k,): sd of the risk by the cost of one more error
    smallest: float  # cost of an error
    largest: float  # the unit

    @classmethod
    def of(cls, task: SourceTask, cost: NumberArray) -> Self:
        """Statistics of a task under a checked cost matrix, in one pass over its scores."""
        k, n_classes, largest = task.grid(_N_SIZES), task.n_classes, float(cost.max())
        if largest == 0:
            raise DataError("cost: found only zeros, expected at least one cost above 0")
        between = cost[~np.eye(n_classes, dtype=bool)] / largest
        errors = np.broadcast_to(1.0, cost.shape)
        statistics = linear_statistics(task, [errors, cost], risk_coefficients(k))
        unit = np.repeat([1.0, largest], k.size)
        error, risk = (average_risk(by_rank, k) for by_rank in statistics.cost_by_rank)
        return cls(
            k,
            error,
            risk / largest,
            statistics.covariance / np.outer(unit, unit),
            statistics.clustered / np.outer(unit, unit),
            float(between.std()) * ((k - 1) / (n_classes - 1) / task.n_test),
            float(between.min()),
            largest,
        )


@dataclass(frozen=True)
class RiskData(Likelihood):
    r"""Ranks, and what an error costs: the two factors of the risk.

    Ranks enter in the Bernstein form, as in `BernsteinData`. Given them, the mean relative cost
    of an error among k classes, :math:`r_k = AvRisk_k / (1 - AGA_k)`, follows from the risks:
    :math:`T (AvTestRisk - r \circ (1 - ATA)) \sim N(0, I)` where T whitens the covariance of that
    difference at the observed ratio. Arrays have 12 rows, so that one compiled model serves every
    k1.
    """

    kind: ClassVar[str] = "risk"
    rows: ClassVar[str] = "bin"
    descriptions: ClassVar[Mapping[str, str]] = {
        "cost_level": "log odds of the relative cost of an error, at its mean",
        "cost_sd": "how much these log odds vary with the rank",
        "cost_z": "standard normal coefficients of how they vary",
    }
    matrix: FloatArray  # this and the next two as in `BernsteinData`
    counts: FloatArray
    precision: FloatArray
    bump_risk: FloatArray  # (12, m): `element_risk` on the grid of k
    whitened_error: FloatArray  # (12, 12): T diag(1 - ATA)
    whitened_risk: FloatArray  # (12,): T AvTestRisk
    functions: FloatArray  # (m, 12): `cost_functions` on the knots
    smallest: float  # relative cost of an error

    @classmethod
    def of(cls, task: SourceTask, observed: ObservedRisk, basis: RadialBasis) -> Self:
        """Data of a task."""
        ranks = BernsteinData.of(task, basis).padded()
        error, risk = observed.error, observed.risk
        ratio = np.divide(risk, error, out=np.zeros_like(risk), where=error > 0)
        contrast = np.hstack([-np.diag(ratio), np.eye(risk.size)])
        covariance = repair_covariance(
            contrast @ observed.covariance @ contrast.T,
            contrast @ observed.clustered @ contrast.T,
        )
        # If all errors cost the same, their relative cost is known, up to rounding.
        is_exact = np.diag(covariance) <= _ROUNDING * np.diag(observed.covariance)[risk.size :]
        covariance[is_exact, :] = covariance[:, is_exact] = 0.0
        # The uncertainty of one error is added, because costs of few errors may agree by chance.
        covariance += np.outer(observed.one_error, observed.one_error)
        whiten = whitening(covariance, _SMALLEST_DIRECTION)
        missing = _N_SIZES - risk.size
        return cls(
            ranks.matrix,
            ranks.counts,
            ranks.precision,
            # Copies of the last row, because rows of zeros would divide 0 by 0.
            element_risk(basis, np.pad(observed.k, (0, missing), "edge")),
            np.pad(whiten * error, (0, missing)),
            np.pad(whiten @ risk, (0, missing)),
            cost_functions(basis.knots),
            observed.smallest,
        )

    def register(self, data: dict[str, Any], weights: Any) -> None:
        """Register the relative cost and the observations in the current PyMC model."""
        ranks = BernsteinData(self.matrix, self.counts, self.precision)
        ranks.register(data, weights)
        level = pm.Normal("cost_level", 0.0, _LEVEL_SD)
        sd = pm.HalfNormal("cost_sd", 1.0)
        pm.modelcontext(None).add_coord("cost_function", range(_N_FUNCTIONS))
        z = pm.Normal("cost_z", 0.0, 1.0, dims="cost_function")
        logit = level + sd * pt.dot(data["functions"], z)
        relative = data["smallest"] + (1 - data["smallest"]) * pt.sigmoid(logit)
        errors = pt.cumsum(weights)
        ratio = pt.dot(data["bump_risk"], errors * relative) / pt.dot(data["bump_risk"], errors)
        expected = pt.dot(data["whitened_error"], ratio)
        # Draws of the risk are called "risk".
        pm.Normal("observed_risk", expected, 1.0, observed=data["whitened_risk"])

    def relative_cost(self, posterior: Any) -> FloatArray:
        """Draws of the relative cost of an error on the knots: shape (chain, draw, m)."""
        level, sd, z = (posterior[f"cost_{name}"].values for name in ("level", "sd", "z"))
        logit = level[..., None] + sd[..., None] * (z @ self.functions.T)
        return self.smallest + (1 - self.smallest) / (1 + np.exp(-logit))
