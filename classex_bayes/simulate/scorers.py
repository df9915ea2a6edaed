"""Classifiers trained on features: marginal ones, which extrapolate, and others for contrast.

A classifier is marginal if the score of a class depends on the training data of that class alone;
then the scores on a subset of the classes are the same columns. The others are retrained on every
set of classes, and the theory does not cover them.
"""

from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from classex_bayes.arguments import finite_matrix, number, share
from classex_bayes.exceptions import DataError
from classex_bayes.task.class_labels import encode_labels
from classex_bayes.typing import FloatArray

_SINGULAR = 1e-12


def qda_scores(train: Any, train_y: Any, test: Any, *, shrinkage: float = 0.0) -> FloatArray:
    r"""Scores of quadratic discriminant analysis; marginal.

    .. math:: m_j(x) = -(x - \mu_j)' S_j^{-1} (x - \mu_j) - \log\det S_j

    with the mean :math:`\mu_j` and the covariance :math:`S_j` (divided by the number) of the
    training instances of class j; shrunk, :math:`(1 - \lambda) S_j + \lambda\,diag(S_j)`.

    Parameters
    ----------
    train : array-like of shape (n_train, d)
        Features of the training instances.
    train_y : array-like of int, shape (n_train,)
        Their classes 0..k1 - 1, each at least twice.
    test : array-like of shape (n_test, d)
        Features of the test instances.
    shrinkage : float, default 0
        Lambda in [0, 1]. Without shrinkage a class needs more than d training instances.

    Returns
    -------
    array of shape (n_test, k1)
        Scores as `SourceTask.from_scores` takes them.

    Raises
    ------
    DataError
        Arguments of another form; a class whose covariance is singular.

    References
    ----------
    Zheng, Achanta and Benjamini, nips2016, section 2.1.

    Examples
    --------
    >>> train, test = [[0.0], [2.0], [3.0], [5.0]], [[1.0], [4.0]]
    >>> qda_scores(train, [0, 0, 1, 1], test).tolist()
    [[-0.0, -9.0], [-9.0, -0.0]]
    """
    toward_diagonal = share(shrinkage, "shrinkage")
    classes, probes = _by_class(train, train_y, test)
    scores = np.empty((len(probes), len(classes)))
    for j, members in enumerate(classes):
        root = _root(_covariance([members]), toward_diagonal, f"class {j}")
        log_det = 2 * np.log(np.diag(root)).sum()
        scores[:, j] = -_squared_distance(root, probes, members) - log_det
    return scores


def naive_bayes_scores(train: Any, train_y: Any, test: Any) -> FloatArray:
    r"""Scores of Gaussian naive Bayes, twice the log density up to a constant; marginal.

    .. math:: m_j(x) = -\sum_c \frac{(x_c - \mu_{jc})^2}{s_{jc}^2} + \log s_{jc}^2

    It is `qda_scores` with the covariances shrunk to their diagonal.

    Parameters
    ----------
    train, train_y, test
        As in `qda_scores`.

    Returns
    -------
    array of shape (n_test, k1)
        Scores as `SourceTask.from_scores` takes them.

    Raises
    ------
    DataError
        Arguments of another form; a class in which a feature is constant.

    Examples
    --------
    >>> train = [[0.0, 1.0], [2.0, 3.0], [3.0, 0.0], [5.0, 4.0]]
    >>> naive_bayes_scores(train, [0, 0, 1, 1], [[1.0, 2.0]]).round(2).tolist()
    [[-0.0, -10.39]]
    """
    return qda_scores(train, train_y, test, shrinkage=1.0)


def lda_scores(train: Any, train_y: Any, test: Any, *, shrinkage: float = 0.0) -> FloatArray:
    r"""Scores of linear discriminant analysis; not marginal.

    .. math:: m_j(x) = -(x - \mu_j)' S^{-1} (x - \mu_j)

    with one covariance S pooled over the classes that are present, so the score of a class changes
    with its competitors.

    Parameters
    ----------
    train, train_y, test
        As in `qda_scores`; a class may have one training instance.
    shrinkage : float, default 0
        Share in [0, 1] of the diagonal of S in the covariance.

    Returns
    -------
    array of shape (n_test, k1)
        Scores as `SourceTask.from_scores` takes them.

    Raises
    ------
    DataError
        Arguments of another form; a singular covariance.

    Examples
    --------
    >>> lda_scores([[0.0], [2.0], [3.0], [5.0]], [0, 0, 1, 1], [[1.0], [4.0]]).tolist()
    [[-0.0, -9.0], [-9.0, -0.0]]
    """
    toward_diagonal = share(shrinkage, "shrinkage")
    classes, probes = _by_class(train, train_y, test)
    root = _root(_covariance(classes), toward_diagonal, "the classes")
    return np.stack([-_squared_distance(root, probes, members) for members in classes], axis=1)


def logistic_scores(train: Any, train_y: Any, test: Any, *, penalty: float = 1.0) -> FloatArray:
    """Scores of multinomial logistic regression; not marginal.

    All classes are fitted together, so the score of a class changes with its competitors.

    Parameters
    ----------
    train, train_y, test
        As in `qda_scores`; a class may have one training instance.
    penalty : float, default 1
        Weight of half the sum of squared coefficients beside the summed log loss; positive.

    Returns
    -------
    array of shape (n_test, k1)
        Log probabilities, as `SourceTask.from_scores` takes them.

    Raises
    ------
    DataError
        Arguments of another form.
    ImportError
        scikit-learn is not installed.

    Examples
    --------
    >>> train = [[-1.0], [-0.5], [0.5], [1.0], [4.0], [4.5]]
    >>> logistic_scores(train, [0, 0, 1, 1, 2, 2], [[-2.0], [5.0]]).argmax(axis=1).tolist()
    [0, 2]
    """
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise ImportError(
            'logistic_scores needs scikit-learn; pip install "classex-bayes[identification]"'
        ) from None
    weight = number(penalty, "penalty", 1e-12, whole=False)
    classes, probes = _by_class(train, train_y, test)
    labels = np.repeat(np.arange(len(classes)), [len(members) for members in classes])
    model = LogisticRegression(C=1 / weight, max_iter=10_000).fit(np.vstack(classes), labels)
    return model.predict_log_proba(probes)


def _by_class(train: Any, train_y: Any, test: Any) -> tuple[list[FloatArray], FloatArray]:
    """Training instances of each class, and the test instances."""
    features, probes = finite_matrix(train, "train"), finite_matrix(test, "test")
    if features.shape[1] != probes.shape[1]:
        raise DataError(
            f"train, test: found {features.shape[1]} and {probes.shape[1]} features, "
            "expected the same number"
        )
    labels = encode_labels(train_y, len(features), len(features), None, "train_y")
    counts = np.bincount(labels, minlength=2)
    if not counts.all():
        raise DataError(f"train_y: class {np.argmin(counts)} has no training instance")
    return [features[labels == j] for j in range(counts.size)], probes


def _covariance(classes: list[FloatArray]) -> FloatArray:
    """Covariance about the means of the classes, divided by the number of instances."""
    centred = np.vstack([members - members.mean(axis=0) for members in classes])
    return centred.T @ centred / len(centred)


def _root(covariance: FloatArray, shrinkage: float, whose: str) -> FloatArray:
    """Lower Cholesky factor of a covariance shrunk to its diagonal."""
    shrunk = (1 - shrinkage) * covariance
    np.fill_diagonal(shrunk, np.diag(covariance))
    try:
        root = cholesky(shrunk, lower=True)
        # The share of a feature's variance that the features before it leave unexplained.
        if np.any(np.diag(root) ** 2 <= _SINGULAR * np.diag(shrunk)):
            raise np.linalg.LinAlgError
    except np.linalg.LinAlgError:
        raise DataError(
            f"train: the covariance of {whose} is singular in {len(shrunk)} features; give more "
            "training instances, drop constant features, or pass shrinkage= above 0"
        ) from None
    return root


def _squared_distance(root: FloatArray, probes: FloatArray, members: FloatArray) -> FloatArray:
    """Squared Mahalanobis distances of the probes to the mean of a class."""
    whitened = solve_triangular(root, (probes - members.mean(axis=0)).T, lower=True)
    return np.einsum("ij,ij->j", whitened, whitened)
