"""Ratios of gamma functions, to double precision at any size."""

import numpy as np
from scipy.special import gammaln

from classex_bayes.typing import FloatArray, IntArray

# From this argument on, the Stirling series below is exact to double precision.
_STIRLING_FROM = 16.0


def log_gamma_ratio(x: FloatArray, t: FloatArray | IntArray | int) -> FloatArray:
    r"""Log of :math:`\Gamma(x + t) / \Gamma(x)`, without the cancellation of two large log gammas.

    `x` is positive, `t` is at least 0, and the two broadcast.
    """
    large = x >= _STIRLING_FROM
    base = np.where(large, x, _STIRLING_FROM)
    by_series = (
        (base + t - 0.5) * np.log1p(t / base)
        + t * (np.log(base) - 1)
        + _stirling_correction(base + t)
        - _stirling_correction(base)
    )
    return np.where(large, by_series, gammaln(x + t) - gammaln(x))


def _stirling_correction(x: FloatArray) -> FloatArray:
    """Log gamma minus its leading Stirling term, for x >= 16."""
    inverse_square = 1 / (x * x)
    series = 1 / 1260 - inverse_square * (1 / 1680 - inverse_square / 1188)
    return (1 / 12 - inverse_square * (1 / 360 - inverse_square * series)) / x
