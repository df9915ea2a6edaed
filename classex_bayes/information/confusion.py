"""Mutual information of true and predicted classes, from a confusion matrix."""

from typing import Any, Literal

import numpy as np
from scipy.special import entr

from classex_bayes.arguments import as_numeric, one_of
from classex_bayes.exceptions import DataError
from classex_bayes.information.bounds import NATS, Unit
from classex_bayes.task.class_labels import class_weights
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

Correction = Literal["miller_madow", "none"]


def confusion_information(
    confusion: Any,
    *,
    class_weight: Any = None,
    correction: Correction = "miller_madow",
    unit: Unit = "nats",
) -> float:
    r"""Mutual information of true and predicted classes, from a confusion matrix.

    Let :math:`p_{ij}` be the share of the :math:`n_i` instances of class i that were classified as
    j. With class priors :math:`\pi_i` and :math:`p_j = \sum_i \pi_i p_{ij}`,

    .. math:: \hat I = H(p) - \sum_i \pi_i H(p_i), \qquad H(p) = -\sum_j p_j \log p_j.

    To first order, the bias of a plug-in entropy is :math:`-\frac12 \sum_j Var(p_j) / p_j`. The
    correction of Miller and Madow adds :math:`(m_i - 1) / (2 n_i)` to the entropy of row i, with
    :math:`m_i` its number of nonzero cells. To that of the mean row it adds
    :math:`\frac12 \sum_j \sum_i \pi_i^2 p_{ij} (1 - p_{ij}) / (n_i p_j)`, because the numbers of
    instances per class are fixed.

    Parameters
    ----------
    confusion : SourceTask or array-like of shape (k, n_answers)
        Counts with true classes in rows and predicted classes in columns, as in scikit-learn. For a
        task, the predicted class is the one with the largest score.
    class_weight : array-like of shape (k,), optional
        Prior probabilities of the true classes. By default equal, or those of the task.
    correction : {"miller_madow", "none"}
        Whether the bias is corrected.
    unit : {"nats", "bits"}
        Unit of the result.

    Returns
    -------
    float
        Estimate. The plug-in estimate is in [0, log k]. The corrected estimate may be outside.

    Raises
    ------
    DataError
        If `confusion` is not a matrix of counts, fewer than two classes have instances, the wrong
        classes of a task are unknown, or class weights are invalid.

    Notes
    -----
    The result is the information of the predicted classes, which is at most log k. The information
    of the features is at least as large and has no upper limit. `fano_bound` explains the order of
    the bounds. The correction assumes several instances for each cell that is not rare. With one
    instance per class every row has entropy 0, and both estimates are near log k for any
    classifier.

    References
    ----------
    Miller, Note on the bias of information estimates (1955); Panzeri et al., Journal of
    Neurophysiology 98 (2007); Zheng, thesis (2017), section 1.4.1.

    Examples
    --------
    >>> counts = [[45, 3, 2], [4, 44, 2], [1, 3, 46]]
    >>> round(confusion_information(counts, unit="bits", correction="none"), 3)
    1.027
    >>> round(confusion_information(counts, unit="bits"), 3)
    1.001
    """
    one_of(correction, ("miller_madow", "none"), "correction")
    one_of(unit, tuple(NATS), "unit")
    if isinstance(confusion, SourceTask):
        weight = confusion.require("ranks").class_weight
        pairs = np.stack([confusion.y, _predicted(confusion)])
        (row, column), number = np.unique(pairs, axis=1, return_counts=True)
        count = number.astype(float)
    else:
        counts = _counts(confusion)
        row, column = np.nonzero(counts)
        count = counts[row, column]
        weight = class_weights(None, row, len(counts), None)
    if class_weight is not None:
        weight = class_weights(class_weight, row, weight.size, None)
    size = np.bincount(row, count, weight.size)[row]
    share, prior = count / size, weight[row]
    _, place = np.unique(column, return_inverse=True)
    mean_row = np.bincount(place, prior * share)
    information = entr(mean_row).sum() - prior @ entr(share)
    if correction == "miller_madow":
        variance = share * (1 - share) / size
        positive = mean_row[place] > 0
        of_mean = (prior**2 * variance)[positive] / mean_row[place][positive]
        information += (of_mean.sum() - prior @ (variance / share)) / 2
    return float(information / NATS[unit])


def _predicted(task: SourceTask) -> IntArray:
    """Class with the largest score for each instance. Ties are broken as in the task."""
    nearest = task.nearest_classes
    wrong = task.ranks > 1 if task.table.is_exact else nearest.scores[:, 0] > nearest.true
    return np.where(wrong, nearest.classes[:, 0], task.y)


def _counts(confusion: Any) -> FloatArray:
    counts = as_numeric(confusion, "confusion").astype(float)
    if counts.ndim != 2:
        raise DataError(
            f"confusion: found shape {counts.shape}, expected a matrix of counts with true classes "
            "in rows, or a SourceTask"
        )
    bad = ~(np.isfinite(counts) & (counts >= 0) & (counts == np.rint(counts)))
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise DataError(
            f"confusion: found {counts[i, j]} in row {i}, column {j}; expected counts and not "
            "shares"
        )
    if np.count_nonzero(counts.sum(axis=1)) < 2:
        raise DataError("confusion: expected instances of at least 2 true classes")
    return counts
