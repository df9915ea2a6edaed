"""Covariance of the noise in responses, shrunk to its diagonal."""

from typing import Any

import numpy as np

from classex_bayes.arguments import finite_matrix, share
from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray


def shrunk_covariance(residuals: Any, shrinkage: float) -> FloatArray:
    r"""Covariance of residuals about zero, shrunk to its diagonal.

    .. math::

        \hat\Sigma = (1 - \lambda) S + \lambda\,\mathrm{Diag}(S), \qquad S = \frac{1}{N} E'E

    Parameters
    ----------
    residuals : array-like of shape (n, q)
        Residuals E of q responses.
    shrinkage : float
        Lambda in [0, 1].

    Returns
    -------
    array of shape (q, q)
        Covariance. It is positive definite if lambda > 0, or if the residuals have rank q.

    Raises
    ------
    DataError
        If residuals are not finite, if a column is all zero, or if lambda is outside [0, 1].

    References
    ----------
    Zheng, thesis (2017), section 2.6.3.

    Examples
    --------
    >>> shrunk_covariance([[1.0, 1.0], [-1.0, -1.0]], 0.25)
    array([[1.  , 0.75],
           [0.75, 1.  ]])
    """
    errors = _residuals(residuals)
    covariance = errors.T @ errors / len(errors)
    variances = np.diag(covariance).copy()
    covariance *= 1 - share(shrinkage, "shrinkage")
    np.fill_diagonal(covariance, variances)
    return covariance


def shrinkage_intensity(residuals: Any) -> float:
    r"""Estimate the shrinkage that minimises the expected squared error of the correlations.

    Let :math:`z` be the residuals scaled to a mean square of 1 in each column, :math:`w_{tij} =
    z_{ti} z_{tj}`, and :math:`r_{ij}` the mean of :math:`w_{tij}` over t. The estimate is

    .. math::

        \hat\lambda = \frac{\sum_{i \ne j} \widehat{\mathrm{Var}}(r_{ij})}
            {\sum_{i \ne j} r_{ij}^2}, \qquad
        \widehat{\mathrm{Var}}(r_{ij}) = \frac{1}{N (N - 1)} \sum_t (w_{tij} - r_{ij})^2

    or 1 if this is larger than 1. It does not depend on the units of the responses.

    Parameters
    ----------
    residuals : array-like of shape (n, q)
        Residuals of q responses, n at least 2.

    Returns
    -------
    float
        In [0, 1]; 0 for a single response.

    Raises
    ------
    DataError
        If residuals are not finite, if a column is all zero, or if there are fewer than 2 rows.

    References
    ----------
    Schaefer and Strimmer, Statistical Applications in Genetics and Molecular Biology 4 (2005),
    article 32, for a diagonal target with unequal variances.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> noise = rng.normal(size=(50, 10))
    >>> shrinkage_intensity(noise) > 0.8
    True
    >>> shrinkage_intensity(noise + rng.normal(size=(50, 1))) < 0.1
    True
    """
    errors = _residuals(residuals)
    n, q = errors.shape
    if n < 2:
        raise DataError("residuals: found 1 row, expected at least 2")
    scaled = errors / np.sqrt(np.mean(errors**2, axis=0))
    correlation = scaled.T @ scaled / n
    squares = scaled**2
    variance = (squares.T @ squares / n - correlation**2) / (n - 1)
    other = ~np.eye(q, dtype=bool)
    between = np.sum(correlation[other] ** 2)
    return float(min(1.0, variance[other].sum() / between)) if between > 0 else 0.0


def _residuals(residuals: Any) -> FloatArray:
    """Validated residuals: finite, and no column is all zero."""
    errors = finite_matrix(residuals, "residuals")
    zero = ~np.any(errors, axis=0)
    if zero.any():
        raise DataError(
            f"residuals: column {np.argmax(zero)} is all zero; drop this response, because it has "
            "no noise"
        )
    return errors
