"""Posterior of the regression of losses on margins, by importance sampling."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from arviz_stats.base import array_stats
from scipy.optimize import minimize

from classex_bayes.score_informed.margin_regression import PARAMETERS, Regressors, log_likelihood
from classex_bayes.typing import FloatArray

_NUMBER = len(PARAMETERS)
_DIFFERENCE = 0.05  # of the Hessian, in standard deviations of the prior
_DEGREES = 7  # of the proposal, a multivariate t law
_PROPOSALS_PER_DRAW, _FEWEST_PROPOSALS = 4, 2000
_PAIRS_AT_ONCE = 2**20


class NormalPriors(NamedTuple):
    """Independent normal priors of the parameters; arrays of shape (7,)."""

    mean: FloatArray
    sd: FloatArray


def priors(unevenness: float) -> NormalPriors:
    """Priors that follow how unlike the tails of the instances are (`Margins.unevenness`).

    If wrong classes stand out from all instances alike, instances lose nearly as often as the
    share of pairs says. Otherwise most lose less often than that, and some more; how much was
    chosen on pilots of fourteen populations (docs/scores.md).
    """
    spread_slope = 1.7
    spread = np.log(0.06 + 1.8 * unevenness) - 0.3 * spread_slope
    mean = [-1.1 * unevenness, -0.6 * unevenness, 1.0, spread, spread_slope, 0.0, 0.0]
    wider = 0.4 * unevenness
    sd = [0.2 + wider, 0.12 + wider, 0.3, 0.6 + 0.5 * unevenness, 0.8, 0.15, 0.5]
    return NormalPriors(np.array(mean), np.array(sd))


def draw_posterior(
    regressors: Regressors,
    prior: NormalPriors,
    design_effect: float,
    draws: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, float]:
    """Draws (draws, 7) from the posterior, and the tail index of their weights.

    The log-likelihood is divided by the design effect. A multivariate t law at the mode proposes,
    then one with the moments of the weighted proposals; Pareto-smoothed importance weights choose
    among the second proposals. With a tail index above 0.7 the draws are not to be trusted.
    """

    def log_density(unit: FloatArray) -> FloatArray:
        theta = prior.mean + prior.sd * unit
        return log_likelihood(theta, regressors) / design_effect - (unit**2).sum(axis=-1) / 2

    def loss(unit: FloatArray) -> float:
        return -float(log_density(unit))

    mode = minimize(loss, np.zeros(_NUMBER), method="BFGS").x
    centre, root = mode, _root_of_covariance(loss, mode)
    size = max(_PROPOSALS_PER_DRAW * draws, _FEWEST_PROPOSALS)
    height = max(1, _PAIRS_AT_ONCE // max(regressors.losses.size, 1))
    for _ in range(2):
        stretch = np.sqrt(_DEGREES / rng.chisquare(_DEGREES, size))
        normal = rng.standard_normal((size, _NUMBER)) * stretch[:, None]
        unit = centre + normal @ root.T
        target = np.concatenate([log_density(block) for block in _blocks(unit, height)])
        proposed = -(_DEGREES + _NUMBER) / 2 * np.log1p((normal**2).sum(axis=1) / _DEGREES)
        # Pareto smoothing takes the log density of what is left out, the reverse of a weight.
        log_weight, pareto_k = array_stats.psislw(proposed - target)
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        centre = weight @ unit
        away = (unit - centre) * np.sqrt(weight)[:, None]
        value, vector = np.linalg.eigh(away.T @ away)
        root = vector * np.sqrt(np.maximum(value, 1e-6))
    places = np.searchsorted(np.cumsum(weight), (np.arange(draws) + rng.random()) / draws)
    chosen = unit[rng.permutation(np.minimum(places, size - 1))]
    return prior.mean + prior.sd * chosen, float(pareto_k)


def _blocks(values: FloatArray, height: int) -> list[FloatArray]:
    return np.split(values, range(height, len(values), height))


def _root_of_covariance(loss: Callable[[FloatArray], float], at: FloatArray) -> FloatArray:
    """Square root of the inverse Hessian."""
    steps = _DIFFERENCE * np.eye(_NUMBER)
    hessian = np.empty((_NUMBER, _NUMBER))
    for i in range(_NUMBER):
        for j in range(i, _NUMBER):
            plus, minus = steps[i] + steps[j], steps[i] - steps[j]
            corners = loss(at + plus) - loss(at + minus) - loss(at - minus) + loss(at - plus)
            hessian[i, j] = hessian[j, i] = corners / (4 * _DIFFERENCE**2)
    # The prior alone has a Hessian of 1; less is curvature of the likelihood far from the mode.
    value, vector = np.linalg.eigh(hessian)
    return vector / np.sqrt(np.maximum(value, 0.5))
