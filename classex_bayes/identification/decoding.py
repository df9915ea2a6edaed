"""From predicted responses to an identification task: the nearest prediction names the stimulus."""

from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from classex_bayes.arguments import finite_matrix
from classex_bayes.core.ranks.ties import TieHandling
from classex_bayes.exceptions import DataError
from classex_bayes.task.class_labels import Untested, class_names
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, RandomSeed


def whiten(vectors: Any, covariance: Any) -> FloatArray:
    r"""Coordinates in which the noise has unit covariance.

    With :math:`\Sigma = C C'` (Cholesky), :math:`v \mapsto C^{-1} v`; so squared Euclidean
    distances become squared Mahalanobis distances.

    Parameters
    ----------
    vectors : array-like of shape (n, q)
        Responses or predicted responses, one a row.
    covariance : array-like of shape (q, q)
        Covariance Sigma of the noise.

    Returns
    -------
    array of shape (n, q)

    Raises
    ------
    DataError
        Numbers that are not finite, shapes that do not fit, a covariance that is not symmetric
        and positive definite.

    Examples
    --------
    >>> whiten([[2.0, 3.0]], [[4.0, 0.0], [0.0, 9.0]]).tolist()
    [[1.0, 1.0]]
    """
    rows = finite_matrix(vectors, "vectors")
    return solve_triangular(_root(covariance, rows.shape[1]), rows.T, lower=True).T


def decoding_scores(responses: Any, predictions: Any, covariance: Any) -> FloatArray:
    r"""Log posterior of every stimulus for every response, up to a constant of the response.

    .. math:: M_{ij} = -\tfrac{1}{2} (y_i - \hat y_j)' \Sigma^{-1} (y_i - \hat y_j)

    with :math:`\hat y_j` the predicted response to stimulus j and equal prior probabilities.

    Parameters
    ----------
    responses : array-like of shape (n, q)
        Measured responses.
    predictions : array-like of shape (n_stimuli, q)
        Predicted responses.
    covariance : array-like of shape (q, q)
        Covariance Sigma of the noise.

    Returns
    -------
    array of shape (n, n_stimuli)
        The whole matrix; `identification_task` needs only blocks of it.

    Raises
    ------
    DataError
        As `whiten`.

    References
    ----------
    Zheng, thesis (2017), section 2.6.4.

    Examples
    --------
    >>> decoding_scores([[1.0, 2.0]], [[1.0, 2.0], [3.0, 2.0]], np.eye(2)).tolist()
    [[-0.0, -2.0]]
    """
    measured, predicted = _whitened(responses, predictions, covariance)
    scores = np.empty((len(measured), len(predicted)))
    for i, row in enumerate(measured):
        scores[i] = -0.5 * np.sum((predicted - row) ** 2, axis=1)
    return scores


def identification_task(
    responses: Any,
    predictions: Any,
    covariance: Any,
    y: Any = None,
    *,
    classes: Any = None,
    ties: TieHandling = "auto",
    class_weight: Any = None,
    untested: Untested = "error",
    random_seed: RandomSeed = 0,
) -> SourceTask:
    """Task of telling which stimulus evoked a response; every stimulus is a class.

    The stimulus with the smallest squared Mahalanobis distance between response and predicted
    response wins. Both sides are whitened, so the matrix of scores is never formed.

    Parameters
    ----------
    responses : array-like of shape (n, q)
        Measured responses.
    predictions : array-like of shape (n_stimuli, q)
        Predicted response to each stimulus.
    covariance : array-like of shape (q, q)
        Covariance of the noise.
    y : array-like of shape (n,), optional
        Stimulus of each response: row of `predictions`, or name. By default response i belongs to
        stimulus i.
    classes : sequence of n_stimuli names, optional
        Names of the stimuli.
    ties, class_weight, untested, random_seed
        As in `SourceTask.from_embeddings`; `untested="competitors"` admits stimuli that were
        never shown.

    Returns
    -------
    SourceTask
        `task.accuracy(k)` is the identification accuracy curve, the mean over all sets of k
        stimuli.

    Raises
    ------
    DataError
        As `whiten` and `SourceTask.from_embeddings`.

    Notes
    -----
    The thesis counts, for response i and another stimulus l, the sets in which l wins as
    C(R - 2, k - 2); with R the number of stimuli that l beats it is C(R - 1, k - 2).

    References
    ----------
    Zheng, thesis (2017), sections 2.6.4 and 2.6.5; Kay, Naselaris, Prenger and Gallant, Nature
    452 (2008).

    Examples
    --------
    >>> predictions = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> task = identification_task(predictions + 0.1, predictions, np.eye(2))
    >>> task.ranks.tolist()
    [1, 1, 1]
    """
    measured, predicted = _whitened(responses, predictions, covariance)
    if y is None:
        if len(measured) != len(predicted):
            raise DataError(
                f"responses: found {len(measured)} for {len(predicted)} stimuli; pass y=, the "
                "stimulus of each response"
            )
        classes = class_names(classes, len(predicted))
        y = np.arange(len(measured)) if classes is None else classes
    return SourceTask.from_embeddings(
        measured,
        predicted,
        y,
        metric="sqeuclidean",
        classes=classes,
        ties=ties,
        class_weight=class_weight,
        untested=untested,
        random_seed=random_seed,
    )


def _whitened(responses: Any, predictions: Any, covariance: Any) -> tuple[FloatArray, FloatArray]:
    """Responses and predictions in the coordinates of `whiten`."""
    measured = finite_matrix(responses, "responses")
    predicted = finite_matrix(predictions, "predictions")
    if measured.shape[1] != predicted.shape[1]:
        raise DataError(
            f"responses, predictions: found {measured.shape[1]} and {predicted.shape[1]} columns, "
            "expected the same number"
        )
    return whiten(measured, covariance), whiten(predicted, covariance)


def _root(covariance: Any, q: int) -> FloatArray:
    """Lower Cholesky factor of a covariance of q responses."""
    matrix = finite_matrix(covariance, "covariance")
    if matrix.shape != (q, q):
        raise DataError(f"covariance: expected shape {(q, q)}, found {matrix.shape}")
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-12 * np.abs(matrix).max()):
        raise DataError("covariance: expected a symmetric matrix")
    try:
        return cholesky(matrix, lower=True)
    except np.linalg.LinAlgError:
        raise DataError(
            "covariance: it is not positive definite; estimate it with more shrinkage"
        ) from None
