"""Linear classifiers that are trained on the classes that they shall recognise."""

import numpy as np

from classex_bayes.typing import FloatArray, IntArray

_BATCH = 256
_FIRST, _SECOND = 0.9, 0.999  # rates of the averages of Adam


def with_constant(x: FloatArray) -> FloatArray:
    """Append a coordinate of 1, whose weight is the bias of a class."""
    return np.column_stack([x, np.ones(len(x))])


def unit(x: FloatArray) -> FloatArray:
    """Scale rows to length 1."""
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12))


def softmax_head(
    x: FloatArray, y: IntArray, *, epochs: int = 15, step: float = 0.02, penalty: float = 1e-4
) -> FloatArray:
    """Weights (n_classes, d) of a linear head that minimise the cross-entropy of its logits.

    The squares of the weights are penalised. Adam takes batches of 256 rows of `x` (n, d) in random
    order, and its step declines to 0.
    """
    return _trained(x, y, epochs, step, penalty, scale=None, margin=0.0)


def margin_head(
    x: FloatArray, y: IntArray, *, scale: float, margin: float, epochs: int = 15, step: float = 0.02
) -> FloatArray:
    """Directions (n_classes, d), times `scale`, of a head trained as CosFace.

    A logit is `scale` times the cosine of a row of `x` with the direction of a class. In training
    the margin is subtracted from the cosine of the true class. Source: Wang et al. (2018),
    "CosFace: Large margin cosine loss for deep face recognition".
    """
    return scale * unit(_trained(unit(x), y, epochs, step, 0.0, scale, margin))


def _trained(
    x: FloatArray,
    y: IntArray,
    epochs: int,
    step: float,
    penalty: float,
    scale: float | None,
    margin: float,
) -> FloatArray:
    rng = np.random.default_rng(0)
    x = np.asarray(x, np.float32)
    weights = 0.01 * rng.standard_normal((y.max() + 1, x.shape[1]), np.float32)
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    n_batches = -(-len(x) // _BATCH)
    total, t = epochs * n_batches, 0
    for _ in range(epochs):
        for batch in np.array_split(rng.permutation(len(x)), n_batches):
            rows, true, t = x[batch], y[batch], t + 1
            length = np.linalg.norm(weights, axis=1, keepdims=True)
            used = weights if scale is None else weights / length
            logits = rows @ used.T
            at_true = np.arange(len(batch)), true
            logits[at_true] -= np.float32(margin)
            logits *= np.float32(scale or 1.0)
            logits -= logits.max(axis=1, keepdims=True)
            probs = np.exp(logits, out=logits)
            probs /= probs.sum(axis=1, keepdims=True)
            probs[at_true] -= 1
            gradient = probs.T @ rows * np.float32((scale or 1.0) / len(batch))
            if scale is not None:
                gradient -= used * (gradient * used).sum(axis=1, keepdims=True)
                gradient /= length
            gradient += np.float32(penalty) * weights
            mean += np.float32(1 - _FIRST) * (gradient - mean)
            square += np.float32(1 - _SECOND) * (gradient**2 - square)
            rate = step * (1 - t / total) * np.sqrt(1 - _SECOND**t) / (1 - _FIRST**t)
            weights -= np.float32(rate) * mean / (np.sqrt(square) + np.float32(1e-8))
    return weights
