"""Random weights of the classes, as if other classes had been drawn from the population."""

import numpy as np

from classex_bayes.typing import FloatArray


def resampled(weight: FloatArray, shape: float, draws: int, rng: np.random.Generator) -> FloatArray:
    r"""Draws from a Dirichlet law about class weights, each row summing to 1: shape (draws, n).

    With parameters :math:`a\, w_l / S`, :math:`S = \sum_l w_l^2` and a the `shape`, a mean over
    classes has about the variance :math:`S / a \sum_l w_l (m_l - A)^2`: all classes tell how they
    differ. Gamma draws of one shape, times :math:`w_l`, would have :math:`w_l^2` there, and a heavy
    class would be compared with itself.
    """
    relative = weight / weight.max()
    shapes = shape * relative * (relative.sum() / (relative**2).sum())
    size = draws, weight.size
    with np.errstate(divide="ignore"):  # weights of 0
        # In logarithms, since draws of a small shape underflow.
        chances = np.log(rng.gamma(shapes + 1, size=size))
        chances -= rng.standard_exponential(size) / shapes
    drawn = np.exp(chances - chances.max(axis=1, keepdims=True))
    return drawn / drawn.sum(axis=1, keepdims=True)
