"""Features of images, trained without the classes that are tested."""

import warnings
from collections.abc import Callable

import numpy as np

from classex_bayes.typing import FloatArray, IntArray


class Projection:
    """A linear map of vectors: (x - mean) @ axes."""

    def __init__(self, mean: FloatArray, axes: FloatArray) -> None:
        self.mean, self.axes = mean, axes

    def __call__(self, x: FloatArray) -> FloatArray:
        """Coordinates of vectors (n, d)."""
        return (x - self.mean) @ self.axes


def principal_components(x: FloatArray, n_components: int) -> Projection:
    """Axes of largest variance."""
    mean = x.mean(axis=0)
    _, vectors = np.linalg.eigh(np.cov(x - mean, rowvar=False))
    return Projection(mean, vectors[:, ::-1][:, :n_components])


def discriminant_axes(x: FloatArray, y: IntArray, n_components: int) -> Projection:
    """Linear discriminant analysis: largest variance between classes for that within.

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
    values, vectors = np.linalg.eigh(within)
    whiten = vectors / np.sqrt(values)
    _, between = np.linalg.eigh(np.cov(means @ whiten, rowvar=False))
    return Projection(x.mean(axis=0), whiten @ between[:, ::-1][:, :n_components])


def hidden_layer(
    x: FloatArray, y: IntArray, *, n_units: int = 128, epochs: int = 10
) -> Callable[[FloatArray], FloatArray]:
    """Units of a small network that was trained to tell the classes `y` apart."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    network = MLPClassifier((n_units,), batch_size=64, max_iter=epochs, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(np.asarray(x, np.float32), y)
    weights, bias = network.coefs_[0], network.intercepts_[0]
    return lambda images: np.maximum(images @ weights + bias, 0)


def gradient_cells(images: IntArray, *, cells: int = 6, directions: int = 8) -> FloatArray:
    """Square roots of the shares of edges of each direction in each cell of colour images.

    Images are (n, side, side, 3), from 0 to 255. A pixel counts with the size of its steepest
    gradient among the three colours, shared between the two next directions, and between cells by
    a Gaussian of half a cell.
    """
    from scipy.ndimage import gaussian_filter

    smooth = gaussian_filter(np.asarray(images, np.float32) / 255, (0, 1, 1, 0))
    down, right = np.gradient(smooth, axis=(1, 2))
    steepest = (down**2 + right**2).argmax(axis=-1)[..., None]
    down, right = (np.take_along_axis(x, steepest, -1)[..., 0] for x in (down, right))
    size = np.hypot(down, right)
    direction = np.arctan2(down, right) % np.pi / np.pi * directions
    step = images.shape[1] // cells
    shares = []
    for centre in range(directions):
        away = np.abs(direction - centre)
        weight = np.clip(1 - np.minimum(away, directions - away), 0, None)
        edges = gaussian_filter(size * weight, (0, step / 2, step / 2))
        shares.append(edges[:, step // 2 :: step, step // 2 :: step].reshape(len(images), -1))
    cell_edges = np.concatenate(shares, axis=1) + 1e-6
    return np.sqrt(cell_edges / cell_edges.sum(axis=1, keepdims=True))


def whitened_components(x: FloatArray, n_components: int) -> Projection:
    """Principal components, each of variance one."""
    plain = principal_components(x, n_components)
    return Projection(plain.mean, plain.axes / plain(x).std(axis=0))
