r"""Least squares of accuracies on a radial basis: the linear algebra of ClassExReg.

The accuracy is linear in the coefficients, :math:`ATA_k \approx \sum_l \beta_l A_l(k) +
\beta_0`. The constant is an atom of the law of U*: instances that always win (the R package). In
the regression of the errors :math:`1 - ATA_k` on :math:`1 - A_l(k)`, it is an atom of instances
that always lose (the paper).
"""

from functools import lru_cache
from typing import Literal

import numpy as np
from scipy.optimize import nnls
from scipy.special import ndtri

from classex_bayes.core.basis import RadialBasis
from classex_bayes.typing import BoolArray, FloatArray

Variant = Literal["package", "paper"]


def regular_knots(n_classes: int, bandwidth: float) -> FloatArray:
    r"""Knots of the R package for k1 classes, increasing, (m,).

    :math:`\lceil T / h \rceil` equally spaced values from 0 to :math:`T = \Phi^{-1}(1 - 1/k_1^2)`
    and their negatives, for bandwidth h; the spacing is larger than h.
    """
    largest = -ndtri(1 / n_classes**2)
    positive = np.linspace(0.0, largest, int(np.ceil(largest / bandwidth)))
    return np.concatenate([-positive[:0:-1], positive])


def paper_knots(n_ranks: int, bandwidth: float) -> FloatArray:
    r"""Knots of jmlr2018, section 4, (m,), for `n_ranks` = n k1: n instances, k1 classes.

    The finest equally spaced values from :math:`-T` to :math:`T = \Phi^{-1}(1 - 1/(n k_1))` that
    are at least h/2 apart, for bandwidth h. With r instances per class, n = r k1.
    """
    largest = -ndtri(1 / n_ranks)
    spaces = max(1, int(np.floor(2 * largest / (bandwidth / 2))))
    return np.linspace(-largest, largest, spaces + 1)


def knots_of(n_classes: int, n_test: int, bandwidth: float, variant: Variant) -> FloatArray:
    """Knots of the R package or of the paper."""
    if variant == "package":
        return regular_knots(n_classes, bandwidth)
    return paper_knots(n_test * n_classes, bandwidth)


# Resampling and back-tests need the same few matrices hundreds of times.
@lru_cache(maxsize=32)
def basis_accuracy(knots: tuple[float, ...], bandwidth: float, k: tuple[int, ...]) -> FloatArray:
    r"""Accuracy of each basis element, :math:`A_l(k) = E[\Phi(t_l + h \varepsilon)^{k-1}]`.

    The array, of shape (n_k, m), is cached for the next call with the same arguments and therefore
    read-only.
    """
    accuracy = RadialBasis(np.array(knots), bandwidth).accuracy(np.array(k))
    accuracy.flags.writeable = False
    return accuracy


def response(accuracy: FloatArray, variant: Variant) -> FloatArray:
    """Accuracy for the R package, else 1 - accuracy. A second call is the inverse."""
    return accuracy if variant == "package" else 1 - accuracy


def design(accuracy: FloatArray, variant: Variant) -> FloatArray:
    """Columns of the regression from the accuracies (n_k, m) of the basis; last, the constant."""
    return np.column_stack([response(accuracy, variant), np.ones(accuracy.shape[0])])


def least_squares(
    columns: FloatArray, values: FloatArray, weight: FloatArray, nonnegative: bool
) -> FloatArray:
    """Coefficients (m,) with the least weighted sum of squares, for `values` (n_k,).

    >>> least_squares(np.eye(2), np.array([1.0, -1.0]), np.ones(2), nonnegative=True).tolist()
    [1.0, 0.0]
    """
    scale = np.sqrt(weight)
    if nonnegative:
        return nnls(columns * scale[:, None], values * scale)[0]
    return np.linalg.lstsq(columns * scale[:, None], values * scale)[0]


def response_map(columns: FloatArray, weight: FloatArray, active: BoolArray) -> FloatArray:
    r"""Linear map (m, n_k) from the response to the coefficients of the active columns.

    :math:`G = (H'WH)^{-1} H'W`, with H the `active` columns (m,). In nonnegative least squares, the
    active columns have positive coefficients. The pseudoinverse drops the same near-collinear
    directions as `least_squares`. Rows of inactive columns are 0.
    """
    scale = np.sqrt(weight)
    gain = np.zeros(columns.T.shape)
    smallest = np.finfo(float).eps * max(columns.shape)
    gain[active] = np.linalg.pinv(columns[:, active] * scale[:, None], rcond=smallest) * scale
    return gain
