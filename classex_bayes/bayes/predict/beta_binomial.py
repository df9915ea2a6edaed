"""Beta-binomial numbers of correct answers, whose variance exceeds that of independent answers."""

import numpy as np

from classex_bayes.typing import FloatArray, IntArray

# A beta variable needs two positive parameters, and overflows where both are tiny.
SMALLEST_MEAN, _SMALLEST_SIZE = 1e-12, 0.01


def beta_binomial(
    n: IntArray, mean: FloatArray, size: FloatArray | float, rng: np.random.Generator
) -> IntArray:
    r"""Draws of :math:`Binomial(n, p)` with :math:`p \sim Beta(\varphi m, \varphi (1 - m))`.

    m is `mean`. If it is exactly 0 or 1, the draw is 0 or n. phi is `size`. It is infinite for a
    binomial law.
    """
    if np.all(np.isinf(size)):
        return rng.binomial(n, mean)
    return rng.binomial(n, beta_share(mean, size, rng))


def beta_share(mean: FloatArray, size: FloatArray | float, rng: np.random.Generator) -> FloatArray:
    """Draws of p in `beta_binomial`."""
    size = np.maximum(size, _SMALLEST_SIZE)
    inside = np.clip(mean, SMALLEST_MEAN, 1 - SMALLEST_MEAN)
    share = rng.beta(size * inside, size * (1 - inside))
    return np.where((mean > 0) & (mean < 1), share, mean)
