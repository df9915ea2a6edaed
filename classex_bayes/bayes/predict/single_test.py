"""Draws of the accuracy that one test on a concrete set of classes will show."""

import numpy as np

from classex_bayes.bayes.predict.beta_binomial import SMALLEST_MEAN, beta_binomial
from classex_bayes.core.dependence import AnswerDependence
from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray, IntArray


def single_test_accuracy(
    expected: FloatArray,
    k: IntArray,
    repeats: int,
    dependence: AnswerDependence,
    rng: np.random.Generator,
) -> FloatArray:
    r"""Accuracy TA_k (chain, draw, n_k) of a test on new classes, independent of the pilot's.

    Given A = AGA_k, the test has N = k r / s answers with the design effect
    d = s (1 + (r - 1) rho) + r c (`AnswerDependence`). The number of right answers is
    beta-binomial with mean N A and variance N A (1 - A) d / s,

    .. math::

        TA_k = \frac{1}{N} Binomial(N, p), \quad
        p \sim Beta(\varphi A, \varphi (1 - A)), \quad \varphi = \frac{N - d/s}{d/s - 1},

    so that TA_k is a share that a test can show, even if A is near 0 or 1. Each k stands for a
    class set of its own.
    """
    answers = _n_answers(k * float(repeats), dependence)
    inflation = dependence.design_effect(repeats) / dependence.spread
    return _n_right(answers, expected, inflation, rng) / answers


def nested_test_accuracy(
    expected: FloatArray,
    k: IntArray,
    repeats: int,
    dependence: AnswerDependence,
    expected_source: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Accuracy TA_k (chain, draw, n_k) of a test whose classes include the pilot's, k >= k1.

    Of the r instances of a pilot class, min(r, r1) are those of the pilot. They had
    k1 min(r, r1) TA_k1 right answers among k1 classes; each stays right among k with chance
    AGA_k / AGA_k1. Further instances of the pilot's classes inherit the share b
    (`AnswerDependence.carried_over`) of its deviation: their chance is
    :math:`AGA_k (1 + b (TA_{k_1} / AGA_{k_1} - 1))`. Instances of the other classes have AGA_k. The
    three numbers of right answers are beta-binomial as in `single_test_accuracy`. At k = k1 and
    r = r1 the result is TA_k1. `expected_source` (chain, draw) are draws of AGA_k1.
    """
    source, accuracy = dependence.n_classes, dependence.accuracy
    if accuracy is None:
        raise DataError(
            "nested: the accuracy of the pilot on all its classes is not known; pass nested=False"
        )
    if np.min(k) < source:
        raise DataError(
            f"k: found {np.min(k)}; expected at least the {source} source classes, which are part "
            "of the target classes where nested=True"
        )
    reused_repeats = min(float(repeats), dependence.repeats)
    inflation = dependence.design_effect(repeats) / dependence.spread
    reused = int(_n_answers(source * reused_repeats, dependence))
    answers = np.maximum(_n_answers(k * float(repeats), dependence), reused)
    further = np.rint(source * (repeats - reused_repeats) / dependence.spread).astype(np.int64)
    further = np.minimum(further, answers - reused)

    before = np.maximum(expected_source, SMALLEST_MEAN)[..., None]
    survival = np.minimum(expected / before, 1.0)
    inherited = 1 + dependence.carried_over * (accuracy / before - 1)
    right_before = _right_before(reused, accuracy, dependence, expected_source.shape, rng)
    right = _n_right(right_before[..., None], survival, inflation, rng)
    right += _n_right(further, np.minimum(expected * inherited, 1.0), inflation, rng)
    right += _n_right(answers - reused - further, expected, inflation, rng)
    return right / answers


def _n_answers(instances: FloatArray | float, dependence: AnswerDependence) -> IntArray:
    """Number of answers that weigh the same as the instances of a test."""
    return np.maximum(np.rint(instances / dependence.spread), 1).astype(np.int64)


def _right_before(
    reused: int,
    accuracy: float,
    dependence: AnswerDependence,
    shape: tuple[int, ...],
    rng: np.random.Generator,
) -> IntArray:
    """Right answers of the pilot among those that are used again: all of them, or a sample."""
    total = int(_n_answers(dependence.n_classes * dependence.repeats, dependence))
    right = int(np.rint(total * accuracy))
    if reused == total:
        return np.full(shape, right)
    return rng.hypergeometric(right, total - right, reused, size=shape)


def _n_right(
    answers: IntArray, mean: FloatArray, inflation: float, rng: np.random.Generator
) -> IntArray:
    """Numbers of right answers whose variance is inflated."""
    excess = inflation - 1
    size = (answers - inflation) / excess if excess > 0 else np.inf
    return beta_binomial(answers, mean, size, rng)
