"""Features that are learnt on other classes or instances than the tested ones."""

import warnings
from collections.abc import Callable

import numpy as np

from classex_bayes.typing import FloatArray, IntArray


class Projection:
    """A linear map of vectors: (x - mean) @ axes."""

    def __init__(self, mean: FloatArray, axes: FloatArray) -> None:
        self.mean, self.axes = mean, axes

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the coordinates of vectors (n, d)."""
        return (x - self.mean) @ self.axes


def principal_components(x: FloatArray, n_components: int) -> Projection:
    """Return the axes of largest variance."""
    mean = x.mean(axis=0)
    _, vectors = np.linalg.eigh(np.cov(x - mean, rowvar=False))
    return Projection(mean, vectors[:, ::-1][:, :n_components])


def whitened_components(x: FloatArray, n_components: int) -> Projection:
    """Return principal components, each of variance one."""
    plain = principal_components(x, n_components)
    return Projection(plain.mean, plain.axes / plain(x).std(axis=0))


def ridged(covariance: FloatArray, share: float) -> FloatArray:
    """Add `share` of the mean variance to each variance of a covariance."""
    return covariance + share * np.trace(covariance) / len(covariance) * np.eye(len(covariance))


def discriminants(x: FloatArray, within: FloatArray, n_components: int) -> FloatArray:
    """Return the axes with the largest ratio of the variance of `x` to that of errors.

    The errors have the covariance `within`, and variance one along each axis.
    """
    values, vectors = np.linalg.eigh(within)
    whiten = vectors / np.sqrt(values)
    _, between = np.linalg.eigh(np.cov(x @ whiten, rowvar=False))
    return np.asarray(whiten @ between[:, ::-1][:, :n_components])


def discriminant_axes(x: FloatArray, y: IntArray, n_components: int) -> Projection:
    """Linear discriminant analysis: the largest ratios of variance between to within classes.

    The covariance within classes is shrunk by a tenth towards a multiple of the identity.
    """
    classes, index = np.unique(y, return_inverse=True)
    counts = np.bincount(index)[:, None]
    means = np.zeros((classes.size, x.shape[1]))
    np.add.at(means, index, x)
    means /= counts
    residuals = x - means[index]
    within = residuals.T @ residuals / (len(x) - classes.size)
    within = 0.9 * within + 0.1 * np.trace(within) / len(within) * np.eye(len(within))
    return Projection(x.mean(axis=0), discriminants(means, within, n_components))


def hidden_layer(
    x: FloatArray, y: IntArray, *, n_units: int = 128, epochs: int = 10
) -> Callable[[FloatArray], FloatArray]:
    """Return the hidden units of a small network that was trained to classify `y`."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    network = MLPClassifier((n_units,), batch_size=64, max_iter=epochs, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(np.asarray(x, np.float32), y)
    weights, bias = network.coefs_[0], network.intercepts_[0]
    return lambda images: np.maximum(images @ weights + bias, 0)
