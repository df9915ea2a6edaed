"""Random weights of the classes, as if other classes had been drawn from the population."""

import numpy as np

from classex_bayes.typing import FloatArray


def resampled(weight: FloatArray, shape: float, draws: int, rng: np.random.Generator) -> FloatArray:
    r"""Dirichlet draws (draws, n) about the class weights (n,). Each row sums to 1.

    The parameters are :math:`a\, w_l / S`, with :math:`S = \sum_l w_l^2` and a the `shape`. A mean
    over classes then has approximately the variance :math:`S / a \sum_l w_l (m_l - A)^2`, in which
    every class counts by its weight. Gamma draws of one shape, multiplied by :math:`w_l`, would
    have :math:`w_l^2` in this sum. That would compare a heavy class with a mean A that is mainly
    its accuracy.
    """
    relative = weight / weight.max()
    shapes = shape * relative * (relative.sum() / (relative**2).sum())
    size = draws, weight.size
    with np.errstate(divide="ignore"):  # weights of 0
        # In logarithms, since draws of a small shape underflow.
        logs = np.log(rng.gamma(shapes + 1, size=size))
        logs -= rng.standard_exponential(size) / shapes
    drawn = np.exp(logs - logs.max(axis=1, keepdims=True))
    return drawn / drawn.sum(axis=1, keepdims=True)
