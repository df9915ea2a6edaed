r"""Losses regressed on margins: a beta-binomial law whose mean and spread follow the margin.

Instance i is beaten by a random competitor with probability :math:`p_i`, of which its margin
:math:`c_i` (at most 5.2) and its rank less 1, :math:`L_i`, tell:

.. math::

    L_i \mid p_i \sim \mathrm{Binomial}(k_1 - 1, p_i), \qquad
    p_i \sim \mathrm{Beta} \text{ with mean } m_i \text{ and } CV^2\ v_i

    \log m_i = \log \Phi(-c_i) + \mathrm{level} + \mathrm{level\_slope} (c_i - 3)
    + \mathrm{regression}\ T_i + \mathrm{level\_beyond}\ e_i

    \log v_i = \mathrm{spread} + \mathrm{spread\_slope} (c_i - 2.3) + \mathrm{spread\_beyond}\ e_i

:math:`e_i = (c_i + \Phi^{-1}(1/k_1))_+` lies beyond what ranks show. :math:`T_i` is the
regression to the mean of a noisy margin (Tweedie's formula): noise that gives :math:`p_i` the
spread :math:`v_i` has variance about :math:`\log(1 + v_i) / c_i^2` in margins, and pulls the
margin towards where margins are dense, which changes :math:`\log m_i` by
:math:`T_i = -\log(1 + v_i) f'(c_i) / (c_i f(c_i))`, with 1 for smaller :math:`c_i`.

Slopes end where margins are rare (2 below and 2.5 above 3; 3 above 2.3); :math:`m_i` is at most
0.7; :math:`v_i` lies between 0.005 and 50, and below what a beta law of its mean can have.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtri

from classex_bayes.core.gamma_ratios import log_gamma_ratio
from classex_bayes.score_informed.margins import LARGEST_MARGIN, Margins
from classex_bayes.typing import FloatArray, IntArray

PARAMETERS = (
    "level",
    "level_slope",
    "regression",
    "spread",
    "spread_slope",
    "level_beyond",
    "spread_beyond",
)
_LEVEL_AT, _SPREAD_AT = 3.0, 2.3
_SMALLEST_LOG_MEAN, _LARGEST_MEAN = -50.0, 0.7
_SMALLEST_SPREAD, _LARGEST_SPREAD = 0.005, 50.0


class Regressors(NamedTuple):
    """Regressors of the law of each instance's ranks; arrays of shape (n,)."""

    log_share: FloatArray
    level: FloatArray
    pull: FloatArray
    spread: FloatArray
    beyond: FloatArray
    losses: IntArray
    weight: FloatArray
    n_rivals: int

    @classmethod
    def of(
        cls, margins: Margins, losses: IntArray, weight: FloatArray, n_classes: int
    ) -> "Regressors":
        """Regressors of margins and losses on k1 classes; weights have the mean 1."""
        c = np.minimum(margins.margin, LARGEST_MARGIN)
        return cls(
            log_share=log_ndtr(-c),
            level=np.clip(c - _LEVEL_AT, -2.0, 2.5),
            pull=-margins.slope / np.maximum(c, 1.0),
            spread=np.clip(c - _SPREAD_AT, -2.0, 3.0),
            beyond=np.maximum(c + ndtri(1 / n_classes), 0.0),
            losses=losses,
            weight=weight,
            n_rivals=n_classes - 1,
        )

    def select(self, which: IntArray) -> "Regressors":
        """Regressors of some instances."""
        return Regressors(
            self.log_share[which],
            self.level[which],
            self.pull[which],
            self.spread[which],
            self.beyond[which],
            self.losses[which],
            self.weight[which],
            self.n_rivals,
        )


def beta_law(theta: FloatArray, regressors: Regressors) -> tuple[FloatArray, FloatArray]:
    """Parameters of the beta law of p_i, each of shape (..., n), for parameters (..., 7)."""
    level, slope, regression, spread, spread_slope, level_beyond, spread_beyond = np.moveaxis(
        theta[..., None], -2, 0
    )
    log_spread = spread + spread_slope * regressors.spread + spread_beyond * regressors.beyond
    v = np.exp(np.clip(log_spread, np.log(_SMALLEST_SPREAD), np.log(_LARGEST_SPREAD)))
    log_mean = regressors.log_share + level + slope * regressors.level
    log_mean = log_mean + level_beyond * regressors.beyond
    log_mean = log_mean + regression * np.log1p(v) * regressors.pull
    mean = np.exp(np.clip(log_mean, _SMALLEST_LOG_MEAN, np.log(_LARGEST_MEAN)))
    # The largest spread that a beta law of this mean can have, and still a density at 0.
    v = np.minimum(v, 0.9 * (1 - mean) / mean)
    size = (1 - mean) / (mean * v) - 1
    return mean * size, (1 - mean) * size


def log_likelihood(theta: FloatArray, regressors: Regressors) -> FloatArray:
    """Log probability of the losses, up to a constant, summed by weight: shape (...)."""
    a, b = beta_law(theta, regressors)
    lost, n_rivals = regressors.losses, regressors.n_rivals
    log_probability = log_gamma_ratio(a, lost) + log_gamma_ratio(b, n_rivals - lost)
    log_probability = log_probability - log_gamma_ratio(a + b, n_rivals)
    return log_probability @ regressors.weight


def accuracy_given_margin(theta: FloatArray, regressors: Regressors, k: IntArray) -> FloatArray:
    r"""Chance of each instance to be right among k classes, given its margin and losses.

    .. math::

        E[(1 - p_i)^{k-1} \mid L_i]
        = \frac{B(a_i + L_i,\ b_i + V_i + k - 1)}{B(a_i + L_i,\ b_i + V_i)},
        \qquad V_i = k_1 - 1 - L_i

    Parameters
    ----------
    theta : array of shape (7,)
        One draw of the parameters.
    regressors : Regressors
        Of n instances.
    k : int array of shape (n_k,)
        Numbers of classes.

    Returns
    -------
    array of shape (n_k, n)
    """
    a, b = beta_law(theta, regressors)
    a, b = a + regressors.losses, b + regressors.n_rivals - regressors.losses
    more = np.asarray(k, float)[:, None] - 1
    return np.exp(np.minimum(log_gamma_ratio(b, a) - log_gamma_ratio(b + more, a), 0.0))
