"""Identification of the stimulus whose predicted response is nearest to the measured response."""

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
    r"""Transform responses to coordinates in which the noise has unit covariance.

    Maps :math:`v \mapsto C^{-1} v` with :math:`\Sigma = C C'` (Cholesky). Squared Euclidean
    distances of the results are squared Mahalanobis distances of the responses.

    Parameters
    ----------
    vectors : array-like of shape (n, q)
        Responses or predicted responses, one per row.
    covariance : array-like of shape (q, q)
        Covariance Sigma of the noise.

    Returns
    -------
    array of shape (n, q)

    Raises
    ------
    DataError
        If numbers are not finite, if shapes do not match, or if the covariance is not symmetric and
        positive definite.

    Examples
    --------
    >>> whiten([[2.0, 3.0]], [[4.0, 0.0], [0.0, 9.0]]).tolist()
    [[1.0, 1.0]]
    """
    rows = finite_matrix(vectors, "vectors")
    return solve_triangular(_root(covariance, rows.shape[1]), rows.T, lower=True).T


def decoding_scores(responses: Any, predictions: Any, covariance: Any) -> FloatArray:
    r"""Log posterior of every stimulus given every response, up to a constant for each response.

    .. math:: M_{ij} = -\tfrac{1}{2} (y_i - \hat y_j)' \Sigma^{-1} (y_i - \hat y_j)

    for measured responses :math:`y_i`, predicted responses :math:`\hat y_j` and equal prior
    probabilities of the stimuli.

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
        Scores. `identification_task` computes them in blocks and needs less memory.

    Raises
    ------
    DataError
        As in `whiten`.

    References
    ----------
    Zheng, thesis (2017), section 2.6.4.

    Examples
    --------
    >>> decoding_scores([[1.0, 2.0]], [[1.0, 2.0], [3.0, 2.0]], np.eye(2)).tolist()
    [[-0.0, -2.0]]
    """
    observed, predicted = _whitened(responses, predictions, covariance)
    scores = np.empty((len(observed), len(predicted)))
    for i, row in enumerate(observed):
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
    """Task of identifying the stimulus that evoked a response; every stimulus is a class.

    The score of a stimulus is minus the squared Mahalanobis distance between the response and the
    predicted response. The stimulus with the largest score is chosen. Scores are computed in blocks
    from whitened responses.

    Parameters
    ----------
    responses : array-like of shape (n, q)
        Measured responses.
    predictions : array-like of shape (n_stimuli, q)
        Predicted response to each stimulus.
    covariance : array-like of shape (q, q)
        Covariance of the noise.
    y : array-like of shape (n,), optional
        Stimulus of each response, as a row of `predictions` or a name. By default response i
        belongs to stimulus i.
    classes : sequence of n_stimuli names, optional
        Names of the stimuli.
    ties, class_weight, untested, random_seed
        As in `SourceTask.from_embeddings`. `untested="competitors"` permits stimuli without
        responses.

    Returns
    -------
    SourceTask
        `task.accuracy(k)` is the identification accuracy curve, the mean over all sets of k
        stimuli.

    Raises
    ------
    DataError
        As in `whiten` and `SourceTask.from_embeddings`; or if numbers of columns differ, or
        numbers of responses and stimuli differ without `y`.

    Notes
    -----
    The curve needs the number of sets of k stimuli in which stimulus l is chosen for a response to
    stimulus i. Let R be the number of stimuli that l beats. The thesis gives C(R - 2, k - 2), but
    the number is C(R - 1, k - 2).

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
    observed, predicted = _whitened(responses, predictions, covariance)
    if y is None:
        if len(observed) != len(predicted):
            raise DataError(
                f"responses: found {len(observed)} for {len(predicted)} stimuli; pass y=, the "
                "stimulus of each response"
            )
        classes = class_names(classes, len(predicted))
        y = np.arange(len(observed)) if classes is None else classes
    return SourceTask.from_embeddings(
        observed,
        predicted,
        y,
        distance="sqeuclidean",
        classes=classes,
        ties=ties,
        class_weight=class_weight,
        untested=untested,
        random_seed=random_seed,
    )


def _whitened(responses: Any, predictions: Any, covariance: Any) -> tuple[FloatArray, FloatArray]:
    """Responses and predictions in the coordinates of `whiten`."""
    observed = finite_matrix(responses, "responses")
    predicted = finite_matrix(predictions, "predictions")
    if observed.shape[1] != predicted.shape[1]:
        raise DataError(
            f"responses, predictions: found {observed.shape[1]} and {predicted.shape[1]} columns, "
            "expected the same number"
        )
    return whiten(observed, covariance), whiten(predicted, covariance)


def _root(covariance: Any, q: int) -> FloatArray:
    """Lower Cholesky factor of a covariance of q responses."""
    matrix = finite_matrix(covariance, "covariance")
    if matrix.shape != (q, q):
        raise DataError(f"covariance: expected shape {(q, q)}, found {matrix.shape}")
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-12 * np.abs(matrix).max()):
        raise DataError("covariance: found an asymmetric matrix, expected a symmetric one")
    try:
        return cholesky(matrix, lower=True)
    except np.linalg.LinAlgError:
        raise DataError(
            "covariance: found a matrix that is not positive definite; estimate it with more "
            "shrinkage"
        ) from None
