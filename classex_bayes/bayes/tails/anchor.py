r"""Laws from tails of scores, moved to the accuracy on the source classes that ranks support.

Let :math:`r` be the logit of the accuracy on the k1 source classes given ranks, and :math:`t` given
tails. Tails may be biased, and both have sampling errors of the same test instances:

.. math:: r = \alpha + e_r, \qquad t = \alpha + \Delta + e_t, \qquad \Delta \sim s \, t_1.

The discrepancy :math:`\Delta` has heavy tails. If r and t differ by no more than sampling errors
explain, :math:`\alpha` is the best linear combination of both. If they differ more, :math:`\alpha`
follows the ranks. It never leaves the draws given ranks, which hold what a pilot without errors
allows. The covariance of the errors is the smaller variance, as for any two estimates of
which one is efficient (Hausman, Econometrica 46, 1978), but their correlation is at most 0.9.

Each law is then transported, :math:`Z \to Z + \delta / (1 + |x|)`, where x is the number of decades
between p = 1 - U* and 1 / k1. The shift :math:`\delta` gives the law the accuracy :math:`\alpha` on
k1 classes. It fades for instances that lose clearly, whose p the ranks give, and far out.
"""

import numpy as np
from scipy.special import expit, log_ndtr, logit

from classex_bayes.core.law import MixtureLaw
from classex_bayes.core.linear_split import on_grid_by_row
from classex_bayes.typing import FloatArray

_SCALE = 0.1  # of the discrepancy
_LARGEST_CORRELATION = 0.9  # of the sampling errors
_N_DISCREPANCIES = 801  # around 0, and around the observed difference
_LARGEST_SHIFT, _BISECTIONS = 8.0, 32
_SMALLEST_ACCURACY, _SMALLEST_VARIANCE = 1e-9, 1e-12


def anchored(
    tails: MixtureLaw, rank_accuracy: FloatArray, n_classes: int, rng: np.random.Generator
) -> tuple[MixtureLaw, FloatArray, FloatArray]:
    """Laws that follow ranks on k1 classes and tails beyond, their shifts and accuracies on k1.

    Parameters
    ----------
    tails : MixtureLaw
        Independent draws (n, m) from tails. The result has their order.
    rank_accuracy : array of shape (n,)
        Draws of the expected accuracy on the k1 source classes, given ranks.
    n_classes : int
        k1.
    rng : Generator
        Draws discrepancies.

    Returns
    -------
    law : MixtureLaw
    shift : array of shape (n,)
    accuracy : array of shape (n,)
    """
    tail_accuracy = tails.expected(np.array([n_classes]))[:, 0]
    accuracy = expit(_combined(_logit(rank_accuracy), _logit(tail_accuracy), rng))
    within = np.clip(accuracy, rank_accuracy.min(), rank_accuracy.max())
    law, shift = _moved(tails, within, n_classes)
    return law, shift, within


def _logit(accuracy: FloatArray) -> FloatArray:
    return logit(np.clip(accuracy, _SMALLEST_ACCURACY, 1 - _SMALLEST_ACCURACY))


def _combined(
    rank_logit: FloatArray, tail_logit: FloatArray, rng: np.random.Generator
) -> FloatArray:
    r"""Draws (n,) of :math:`\alpha`, from draws (n,) of r and t, in the order of the latter."""
    mean_r, mean_t = rank_logit.mean(), tail_logit.mean()
    var_r, var_t = (max(float(x.var()), _SMALLEST_VARIANCE) for x in (rank_logit, tail_logit))
    correlation = min(np.sqrt(min(var_r, var_t) / max(var_r, var_t)), _LARGEST_CORRELATION)
    covariance = correlation * np.sqrt(var_r * var_t)
    var_difference = var_r + var_t - 2 * covariance
    sd = float(np.sqrt(var_difference))
    discrepancy = _discrepancies(float(mean_t - mean_r), sd, rng, tail_logit.size)
    share = (var_r - covariance) / var_difference  # of the tails in the combination
    variance = (var_r * var_t - covariance**2) / var_difference
    standard = (tail_logit - mean_t) / np.sqrt(var_t)
    return mean_r + share * (mean_t - discrepancy - mean_r) + np.sqrt(variance) * standard


def _discrepancies(difference: float, sd: float, rng: np.random.Generator, size: int) -> FloatArray:
    r"""Draws (size,) of :math:`\Delta` given a difference t - r with the standard deviation sd."""
    # Dense where the prior or the likelihood has its mass.
    widest = np.arcsinh(max(2 * abs(difference), 10.0) / _SCALE)
    of_prior = _SCALE * np.sinh(np.linspace(-widest, widest, _N_DISCREPANCIES))
    of_likelihood = difference + sd * np.linspace(-8, 8, _N_DISCREPANCIES)
    grid = np.unique(np.concatenate([of_prior, of_likelihood]))
    log_density = -np.log1p((grid / _SCALE) ** 2)
    log_density -= 0.5 * ((difference - grid) / sd) ** 2
    mass = np.exp(log_density - log_density.max()) * np.gradient(grid)
    cumulative = mass.cumsum()
    return grid[cumulative.searchsorted(rng.random(size) * cumulative[-1])]


def _moved(law: MixtureLaw, accuracy: FloatArray, n_classes: int) -> tuple[MixtureLaw, FloatArray]:
    """Laws with the given accuracies (n,) on k1 classes, and their shifts (n,)."""
    knots = law.basis.knots
    decades = (-log_ndtr(-knots) - np.log(n_classes)) / np.log(10)
    fading = 1 / (1 + np.abs(decades))
    right = MixtureLaw(law.basis, np.eye(knots.size)).expected(np.array([n_classes]))[:, 0]
    low = np.full(accuracy.size, -_LARGEST_SHIFT)
    high = -low
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        shifted = np.interp(knots + middle[:, None] * fading, knots, right)
        below = (law.weights * shifted).sum(axis=1) < accuracy
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    shift = (low + high) / 2
    moved = knots + shift[:, None] * fading
    row = np.repeat(np.arange(accuracy.size), knots.size)
    weights = on_grid_by_row(row, accuracy.size, moved.ravel(), law.weights.ravel(), knots)
    return MixtureLaw(law.basis, weights), shift
