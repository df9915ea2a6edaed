"""Identification of the stimulus whose predicted response is nearest to the measured response."""

from typing import Any, Literal

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.spatial.distance import cdist

from classex_bayes.arguments import one_of, share
from classex_bayes.array_access import as_matrix, finite_rows
from classex_bayes.exceptions import DataError
from classex_bayes.task.class_labels import Untested
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray


def decoding_scores(responses: Any, predictions: Any, covariance: Any) -> FloatArray:
    r"""Log posterior (n, n_stimuli) of every stimulus, up to a constant for each response.

    .. math:: M_{ij} = -\tfrac{1}{2} (y_i - \hat y_j)' \Sigma^{-1} (y_i - \hat y_j)

    for equal prior probabilities of the stimuli (Zheng, thesis, 2017, section 2.6.4). These are
    scores for `SourceTask.from_scores`. `identification_task` needs less memory.

    Parameters
    ----------
    responses : array-like of shape (n, q)
        Measured responses :math:`y_i`.
    predictions : array-like of shape (n_stimuli, q)
        Response :math:`\hat y_j` that an encoding model predicts for each stimulus.
    covariance : array-like of shape (q, q)
        Covariance Sigma of the noise, such as `shrunk_covariance` of the residuals.

    Examples
    --------
    >>> decoding_scores([[1.0, 2.0]], [[1.0, 2.0], [3.0, 2.0]], np.eye(2)).tolist()
    [[-0.0, -2.0]]
    """
    observed = _whitened(responses, "responses", covariance)
    predicted = _whitened(predictions, "predictions", covariance)
    return -0.5 * cdist(observed, predicted, "sqeuclidean")


def identification_task(
    responses: Any,
    predictions: Any,
    covariance: Any,
    y: Any = None,
    *,
    classes: Any = None,
    untested: Untested = "error",
) -> SourceTask:
    r"""Task of identifying the stimulus that evoked a response; every stimulus is a class.

    The scores are `decoding_scores`, computed in blocks. The score of a stimulus depends on its own
    predicted response alone. `task.accuracy(k)` is the identification accuracy curve, the mean over
    all sets of k stimuli. (If stimulus l has the better score and beats R stimuli, it is chosen in
    :math:`\binom{R - 1}{k - 2}` of the sets with the true one. The thesis prints R - 2.)

    Parameters
    ----------
    responses, predictions, covariance
        As in `decoding_scores`. The encoding model was fitted to other stimuli.
    y : array-like of shape (n,), optional
        Stimulus of each response, as a row of `predictions` or a name. By default response i
        belongs to stimulus i.
    classes, untested
        As in `SourceTask.from_scores`, of the stimuli.

    References
    ----------
    Zheng, thesis (2017), sections 2.6.4 and 2.6.5; Kay et al., Nature 452 (2008).

    Examples
    --------
    >>> predictions = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> identification_task(predictions + 0.1, predictions, np.eye(2)).ranks.tolist()
    [1, 1, 1]
    """
    observed = _whitened(responses, "responses", covariance)
    predicted = _whitened(predictions, "predictions", covariance)
    if y is None:
        if len(observed) != len(predicted):
            raise DataError(
                f"responses: found {len(observed)} for {len(predicted)} stimuli; pass y=, the "
                "stimulus of each response"
            )
        y = np.arange(len(observed)) if classes is None else classes
    return SourceTask.from_embeddings(
        observed, predicted, y, distance="sqeuclidean", classes=classes, untested=untested
    )


def shrunk_covariance(residuals: Any, shrinkage: float | Literal["auto"] = "auto") -> FloatArray:
    r"""Covariance (q, q) of residuals about zero, shrunk to its diagonal.

    .. math::

        \hat\Sigma = (1 - \lambda) S + \lambda\,\mathrm{Diag}(S), \qquad S = \frac{1}{N} E'E

    It is positive definite if lambda > 0, or if the residuals have rank q (Zheng, thesis, 2017,
    section 2.6.3).

    Parameters
    ----------
    residuals : array-like of shape (n, q)
        Residuals E of q responses. Those of out-of-fold predictions have the noise of a new
        response and the error of its prediction. Those of the training fit are too small.
    shrinkage : float or "auto"
        Lambda in [0, 1]; by default `shrinkage_intensity` of the residuals.

    Examples
    --------
    >>> shrunk_covariance([[1.0, 1.0], [-1.0, -1.0]], 0.25)
    array([[1.  , 0.75],
           [0.75, 1.  ]])
    """
    errors = _residuals(residuals)
    if isinstance(shrinkage, str):
        one_of(shrinkage, ("auto",), "shrinkage")
        shrinkage = shrinkage_intensity(errors)
    covariance = errors.T @ errors / len(errors)
    variances = np.diag(covariance).copy()
    covariance *= 1 - share(shrinkage, "shrinkage")
    np.fill_diagonal(covariance, variances)
    return covariance


def shrinkage_intensity(residuals: Any) -> float:
    r"""Estimate the shrinkage that minimises the expected squared error of the correlations.

    .. math::

        \hat\lambda = \min\Big(1, \frac{\sum_{i \ne j} \widehat{\mathrm{Var}}(r_{ij})}
            {\sum_{i \ne j} r_{ij}^2}\Big), \qquad
        \widehat{\mathrm{Var}}(r_{ij}) = \frac{1}{N (N - 1)} \sum_t (z_{ti} z_{tj} - r_{ij})^2

    with :math:`z` the residuals scaled to a mean square of 1 in each column, and :math:`r_{ij}` the
    mean of :math:`z_{ti} z_{tj}` over t. It is 0 for a single response.

    Parameters
    ----------
    residuals : array-like of shape (n, q)
        Residuals of q responses, n at least 2.

    References
    ----------
    Schaefer and Strimmer, Statistical Applications in Genetics and Molecular Biology 4 (2005),
    article 32, for a diagonal target with unequal variances.

    Examples
    --------
    >>> noise = np.random.default_rng(1).normal(size=(50, 10))
    >>> shrinkage_intensity(noise) > 0.8
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
    # Rounding may make a sum of variances of 0 negative.
    return float(np.clip(variance[other].sum() / between, 0, 1)) if between > 0 else 0.0


def _whitened(vectors: Any, name: str, covariance: Any) -> FloatArray:
    """Responses (n, q) in coordinates in which the noise has unit covariance.

    With Sigma = C C' (Cholesky) these are C^-1 v. Their squared Euclidean distances are squared
    Mahalanobis distances of the responses.
    """
    rows, matrix = _finite_matrix(vectors, name), _finite_matrix(covariance, "covariance")
    q = rows.shape[1]
    if matrix.shape != (q, q) or not np.allclose(matrix, matrix.T, atol=0):
        raise DataError(
            f"{name}, covariance: found {q} columns and a covariance of shape {matrix.shape}, "
            f"expected a symmetric one of shape {(q, q)}"
        )
    try:
        root = cholesky(matrix, lower=True)
    except np.linalg.LinAlgError:
        raise DataError(
            "covariance: found a matrix that is not positive definite; estimate it with more "
            "shrinkage"
        ) from None
    return solve_triangular(root, rows.T, lower=True).T


def _finite_matrix(values: Any, name: str) -> FloatArray:
    array = as_matrix(values, name).astype(float)
    finite_rows(array, name)
    return array


def _residuals(residuals: Any) -> FloatArray:
    """Finite residuals, of which no column is all zero."""
    errors = _finite_matrix(residuals, "residuals")
    zero = ~np.any(errors, axis=0)
    if zero.any():
        raise DataError(
            f"residuals: column {np.argmax(zero)} is all zero; drop this response, because it has "
            "no noise"
        )
    return errors
