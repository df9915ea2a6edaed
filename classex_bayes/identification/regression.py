"""Regularised linear regression of each response on the stimulus, with out-of-fold predictions.

Features are standardised. Cross-validation over stimuli chooses the penalty of each response. All
presentations of one stimulus are in the same fold.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import svd

from classex_bayes.exceptions import DataError, require_extra
from classex_bayes.typing import FloatArray, IntArray

_RIDGE_PENALTIES = np.logspace(-4, 3, 15)  # per training instance

Folds = list[tuple[IntArray, IntArray]]


@dataclass(frozen=True)
class LinearFit:
    """Coefficients for raw features, the chosen penalties, and predictions of left-out folds."""

    coef: FloatArray  # (p, q)
    intercept: FloatArray  # (q,)
    alpha: FloatArray  # (q,)
    l1_ratio: FloatArray  # (q,)
    out_of_fold: FloatArray  # (n, q)


def stimulus_folds(stimuli: FloatArray, y: IntArray, cv: int, rng: np.random.Generator) -> Folds:
    """Training and test rows of the responses for `cv` folds of the distinct stimuli."""
    _, identity = np.unique(stimuli, axis=0, return_inverse=True)
    identity = identity.ravel()[y]
    shown, number = np.unique(identity, return_inverse=True)
    if shown.size < cv:
        raise DataError(f"cv: found {cv} folds for {shown.size} different stimuli")
    fold = rng.permutation(shown.size)[number] % cv
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(cv)]


class _RidgePath:
    """Ridge regression on standardised features for any penalty, by one decomposition."""

    def __init__(self, features: FloatArray, responses: FloatArray) -> None:
        self.centre, self.scale = _standards(features)
        self.mean = responses.mean(axis=0)
        left, self.singular, self.right = svd(
            (features - self.centre) / self.scale, full_matrices=False
        )
        self.rotated = left.T @ (responses - self.mean)

    def coefficients(self, alpha: FloatArray | float) -> FloatArray:
        """Coefficients (rank, q) of the principal directions. `alpha` is a number or (q,)."""
        s = self.singular[:, None]
        return s / (s**2 + alpha) * self.rotated

    def predict(self, features: FloatArray, alpha: FloatArray | float) -> FloatArray:
        """Predicted responses."""
        directions = ((features - self.centre) / self.scale) @ self.right.T
        return self.mean + directions @ self.coefficients(alpha)


def ridge(
    features: FloatArray, responses: FloatArray, folds: Folds, alphas: FloatArray | None
) -> LinearFit:
    r"""Minimise :math:`\|y - X\beta\|^2 + \alpha \|\beta\|^2` for each response.

    `alphas` are the candidates, by default 15 log-spaced ones from 1e-4 to 1e3 times the number of
    instances. Features are standardised first.
    """
    n, q = responses.shape
    candidates = n * _RIDGE_PENALTIES if alphas is None else alphas
    paths = [_RidgePath(features[train], responses[train]) for train, _ in folds]
    squared = np.zeros((candidates.size, q))
    for path, (_, test) in zip(paths, folds, strict=True):
        for place, alpha in enumerate(candidates):
            error = responses[test] - path.predict(features[test], alpha)
            squared[place] += np.sum(error**2, axis=0)
    alpha = candidates[squared.argmin(axis=0)]
    out_of_fold = np.empty((n, q))
    for path, (_, test) in zip(paths, folds, strict=True):
        out_of_fold[test] = path.predict(features[test], alpha)
    path = _RidgePath(features, responses)
    coef = path.right.T @ path.coefficients(alpha) / path.scale[:, None]
    return LinearFit(coef, path.mean - path.centre @ coef, alpha, np.zeros(q), out_of_fold)


def elastic_net(
    features: FloatArray,
    responses: FloatArray,
    folds: Folds,
    alphas: FloatArray | None,
    l1_ratios: Sequence[float],
) -> LinearFit:
    r"""Minimise :math:`\|y - X\beta\|^2 / 2N + \alpha (\rho |\beta|_1 + (1 - \rho) |\beta|^2 / 2)`.

    This is done for each response, in scikit-learn's parametrisation. `alphas` are the candidates.
    By default there are 100, from the smallest one at which all coefficients are 0 down to a
    thousandth of it.
    """
    require_extra(
        "identification",
        "method='elastic_net' (but not method='ridge')",
        "sklearn.linear_model",
    )
    from sklearn.linear_model import enet_path

    n, q = responses.shape
    everything = np.arange(n)
    parts = [_standardised(features, train, test) for train, test in folds]
    standard, _ = _standardised(features, everything, everything)
    coef = np.empty((features.shape[1], q))
    alpha, l1_ratio, out_of_fold = np.empty(q), np.empty(q), np.empty((n, q))
    mean = responses.mean(axis=0)
    for j, response in enumerate(responses.T):
        least = np.inf
        for ratio in l1_ratios:
            grid = _penalties(standard, response - mean[j], ratio) if alphas is None else alphas
            grid = np.sort(grid)[::-1]
            settings = {"l1_ratio": ratio, "max_iter": 10_000}
            predicted = np.empty((n, grid.size))
            for (train, test), (seen, unseen) in zip(folds, parts, strict=True):
                level = response[train].mean()
                path = enet_path(seen, response[train] - level, alphas=grid, **settings)[1]
                predicted[test] = level + unseen @ path
            squared = np.sum((response[:, None] - predicted) ** 2, axis=0)
            best = int(squared.argmin())
            if squared[best] < least:
                least, alpha[j], l1_ratio[j] = squared[best], grid[best], ratio
                out_of_fold[:, j] = predicted[:, best]
        settings = {"l1_ratio": l1_ratio[j], "max_iter": 10_000}
        chosen = enet_path(standard, response - mean[j], alphas=[alpha[j]], **settings)
        coef[:, j] = chosen[1][:, 0]
    centre, scale = _standards(features)
    coef /= scale[:, None]
    return LinearFit(coef, mean - centre @ coef, alpha, l1_ratio, out_of_fold)


def _penalties(standard: FloatArray, centred: FloatArray, l1_ratio: float) -> FloatArray:
    """Default candidates for alpha."""
    largest = np.abs(standard.T @ centred).max() / (centred.size * l1_ratio)
    return max(largest, np.finfo(float).tiny * 1e3) * np.logspace(-3, 0, 100)


def _standardised(
    features: FloatArray, train: IntArray, test: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Training and test rows of the features, both standardised with the training rows."""
    centre, scale = _standards(features[train])
    return (features[train] - centre) / scale, (features[test] - centre) / scale


def _standards(features: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations; the scale 1 of a constant feature gives coefficient 0."""
    scale = features.std(axis=0)
    return features.mean(axis=0), np.where(scale > 0, scale, 1.0)
