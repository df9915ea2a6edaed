"""Classifiers trained on features: marginal ones, which can be extrapolated, and others.

A classifier is marginal if the score of a class depends only on the training data of that class.
Its scores on a subset of the classes are then the same columns. Other classifiers are retrained on
every set of classes, and the theory does not cover them.
"""

from typing import Any, Literal

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import logsumexp

from classex_bayes.arguments import finite_matrix, number, numbers, one_of, positive, share
from classex_bayes.exceptions import DataError, require_extra
from classex_bayes.task.class_labels import encode_labels
from classex_bayes.typing import FloatArray

_SINGULAR = 1e-12
Density = Literal["normal", "bernoulli", "multinomial", "kde"]


def qda_scores(train: Any, train_y: Any, test: Any, *, shrinkage: float = 0.0) -> FloatArray:
    r"""Scores of quadratic discriminant analysis; marginal.

    .. math:: m_j(x) = -(x - \mu_j)' S_j^{-1} (x - \mu_j) - \log\det S_j

    with the mean :math:`\mu_j` and the covariance :math:`S_j` (divided by the number) of the
    training instances of class j. Shrinkage replaces :math:`S_j` by
    :math:`(1 - \lambda) S_j + \lambda\,diag(S_j)`.

    Parameters
    ----------
    train : array-like of shape (n_train, d)
        Features of the training instances.
    train_y : array-like of int, shape (n_train,)
        Classes 0..k1 - 1 of the training instances, each at least twice.
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
        If an argument is invalid or the covariance of a class is singular.

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


def naive_bayes_scores(
    train: Any,
    train_y: Any,
    test: Any,
    *,
    density: Density = "normal",
    class_prior: Any = None,
    smoothing: float = 1.0,
) -> FloatArray:
    r"""Scores of naive Bayes, the log of prior times density; marginal.

    .. math:: m_j(x) = \log \pi_j + \sum_c \log \hat f_{jc}(x_c)

    :math:`\hat f_{jc}` is the density of feature c, estimated from the training instances of class
    j alone. With independent features this is the marginal model :math:`M(\hat F_j, \pi_j) =
    \log \pi_j + \log \hat f_j` of the papers.

    Parameters
    ----------
    train, train_y, test
        As in `qda_scores`.
    density : {"normal", "bernoulli", "multinomial", "kde"}
        "normal": mean and variance (divided by the number) of the class. "bernoulli": features are
        0 or 1. If :math:`n_1` of n instances have a 1, its probability is
        :math:`(n_1 + a) / (n + 2a)`. "multinomial": features are counts. If the class has
        :math:`N_c` counts of feature c among N counts of d features, its probability is
        :math:`p_c = (N_c + a) / (N + d a)`. The multinomial coefficient is left out, because all
        classes share it. "kde": a normal kernel of width :math:`s_{jc} n^{-1/5}` on every training
        instance (Scott's rule; :math:`s_{jc}` is the standard deviation with divisor n - 1).
    class_prior : array-like of shape (k1,), optional
        Prior :math:`\pi_j` of each class, positive; equal by default. It is not normalised, because
        dividing by the sum over the present classes does not change the ranking.
    smoothing : float
        Pseudocount a of "bernoulli" and "multinomial"; positive.

    Returns
    -------
    array of shape (n_test, k1)
        Scores as `SourceTask.from_scores` takes them.

    Raises
    ------
    DataError
        If an argument is invalid; if a feature is constant in a class, with "normal" or "kde"; if
        features are not 0 or 1 with "bernoulli", or negative with "multinomial".

    References
    ----------
    Zheng, Achanta and Benjamini, draft (2016), section 2.2, and JMLR 19(65), 2018, section 2.2;
    Manning, Raghavan and Schuetze, Introduction to Information Retrieval (2008), chapter 13.

    Examples
    --------
    >>> train = [[0.0, 1.0], [2.0, 3.0], [3.0, 0.0], [5.0, 4.0]]
    >>> naive_bayes_scores(train, [0, 0, 1, 1], [[1.0, 2.0]]).round(2).tolist()
    [[-1.84, -7.03]]
    >>> words = [[3, 0, 1], [2, 1, 0], [0, 4, 1]]
    >>> naive_bayes_scores(
    ...     words, [0, 0, 1], [[1, 1, 0]], density="multinomial", class_prior=[2, 1]
    ... ).round(2).tolist()
    [[-1.43, -2.55]]
    """
    one_of(density, tuple(_DENSITIES), "density")
    amount = positive(smoothing, "smoothing")
    classes, probes = _by_class(train, train_y, test)
    prior: FloatArray = np.ones(len(classes))
    if class_prior is not None:
        expected = "positive finite numbers, one for each class"
        prior = numbers(class_prior, "class_prior", expected, lambda x: x > 0, len(classes))
    for name, features in (("train", np.vstack(classes)), ("test", probes)):
        _check_features(features, name, density)
    log_density = _DENSITIES[density]
    scores = np.empty((len(probes), len(classes)))
    for j, members in enumerate(classes):
        constant = np.ptp(members, axis=0) == 0
        if density in ("normal", "kde") and constant.any():
            raise DataError(
                f"train: feature {np.argmax(constant)} is constant in class {j}; drop it, pass "
                "more training instances, or use another density"
            )
        scores[:, j] = np.log(prior[j]) + log_density(members, probes, amount)
    return scores


def lda_scores(train: Any, train_y: Any, test: Any, *, shrinkage: float = 0.0) -> FloatArray:
    r"""Scores of linear discriminant analysis; not marginal.

    .. math:: m_j(x) = -(x - \mu_j)' S^{-1} (x - \mu_j)

    The covariance S is pooled over the classes that are present, so the score of a class depends on
    its competitors.

    Parameters
    ----------
    train, train_y, test
        As in `qda_scores`; a class may have one training instance.
    shrinkage : float, default 0
        Lambda in [0, 1]. It replaces S by :math:`(1 - \lambda) S + \lambda\,diag(S)`.

    Returns
    -------
    array of shape (n_test, k1)
        Scores as `SourceTask.from_scores` takes them.

    Raises
    ------
    DataError
        If an argument is invalid or the covariance is singular.

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

    One model is fitted to all classes, so the score of a class depends on its competitors.

    Parameters
    ----------
    train, train_y, test
        As in `qda_scores`; a class may have one training instance.
    penalty : float, default 1
        Weight of half the sum of squared coefficients relative to the summed log loss; positive.

    Returns
    -------
    array of shape (n_test, k1)
        Log probabilities, as `SourceTask.from_scores` takes them.

    Raises
    ------
    DataError
        If an argument is invalid.
    ImportError
        If scikit-learn is not installed.

    Examples
    --------
    >>> train = [[-1.0], [-0.5], [0.5], [1.0], [4.0], [4.5]]
    >>> logistic_scores(train, [0, 0, 1, 1, 2, 2], [[-2.0], [5.0]]).argmax(axis=1).tolist()
    [0, 2]
    """
    require_extra("identification", "logistic_scores", "sklearn.linear_model")
    from sklearn.linear_model import LogisticRegression

    weight = number(penalty, "penalty", 1e-12, whole=False)
    classes, probes = _by_class(train, train_y, test)
    labels = np.repeat(np.arange(len(classes)), [len(members) for members in classes])
    model = LogisticRegression(C=1 / weight, max_iter=10_000).fit(np.vstack(classes), labels)
    return model.predict_log_proba(probes)


def _check_features(features: FloatArray, name: str, density: Density) -> None:
    """Raise if a density does not allow the values of some features."""
    allowed, expected = np.full(features.shape, True), ""
    if density == "bernoulli":
        allowed, expected = (features == 0) | (features == 1), "0 or 1"
    elif density == "multinomial":
        allowed, expected = features >= 0, "counts, none negative"
    if not allowed.all():
        row, column = np.argwhere(~allowed)[0]
        raise DataError(
            f"{name}: found {features[row, column]} at row {row}, column {column}; expected "
            f'{expected} with density="{density}"'
        )


def _normal_log_density(members: FloatArray, probes: FloatArray, _: float) -> FloatArray:
    variance = members.var(axis=0)
    squared = (probes - members.mean(axis=0)) ** 2 / variance
    return -0.5 * (squared + np.log(2 * np.pi * variance)).sum(axis=1)


def _bernoulli_log_density(members: FloatArray, probes: FloatArray, smoothing: float) -> FloatArray:
    chance = (members.sum(axis=0) + smoothing) / (len(members) + 2 * smoothing)
    return probes @ np.log(chance) + (1 - probes) @ np.log1p(-chance)


def _multinomial_log_density(
    members: FloatArray, probes: FloatArray, smoothing: float
) -> FloatArray:
    count = members.sum(axis=0) + smoothing
    return probes @ np.log(count / count.sum())


def _kernel_log_density(members: FloatArray, probes: FloatArray, _: float) -> FloatArray:
    n = len(members)
    total = np.zeros(len(probes))
    for values, at in zip(members.T, probes.T, strict=True):
        width = values.std(ddof=1) * n ** (-1 / 5)
        squared = ((at[:, None] - values) / width) ** 2
        total += logsumexp(-squared / 2, axis=1) - np.log(n * width * np.sqrt(2 * np.pi))
    return total


_DENSITIES = {
    "normal": _normal_log_density,
    "bernoulli": _bernoulli_log_density,
    "multinomial": _multinomial_log_density,
    "kde": _kernel_log_density,
}


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
        # diag(root)^2 is the variance of a feature that the features before it do not explain.
        if np.any(np.diag(root) ** 2 <= _SINGULAR * np.diag(shrunk)):
            raise np.linalg.LinAlgError
    except np.linalg.LinAlgError:
        raise DataError(
            f"train: the covariance of {whose} is singular in {len(shrunk)} features; pass more "
            "training instances, drop constant features, or pass shrinkage= above 0"
        ) from None
    return root


def _squared_distance(root: FloatArray, probes: FloatArray, members: FloatArray) -> FloatArray:
    """Squared Mahalanobis distances of the probes to the mean of a class."""
    whitened = solve_triangular(root, (probes - members.mean(axis=0)).T, lower=True)
    return np.einsum("ij,ij->j", whitened, whitened)
