"""Draws of the accuracy TA_k of one test on one set of classes."""

import numpy as np

from classex_bayes.core.dependence import AnswerDependence
from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray, IntArray, NumberArray

_ROUNDING = 1e-9
# A beta variable needs two positive parameters, and overflows where both are tiny.
_SMALLEST_MEAN, _SMALLEST_SIZE = 1e-12, 0.01


def single_test_accuracy(
    expected: FloatArray,
    k: IntArray,
    repeats: int,
    dependence: AnswerDependence,
    rng: np.random.Generator,
) -> FloatArray:
    r"""Accuracy TA_k (chain, draw, n_k) of a test on new classes, independent of the pilot's.

    Given A = AGA_k, the test has N = k r / s answers with the design effect
    d = s (1 + (r - 1) rho) + r c (`AnswerDependence`). The number of correct answers is
    beta-binomial with mean N A and variance N A (1 - A) d / s,

    .. math::

        TA_k = \frac{1}{N} Binomial(N, p), \quad
        p \sim Beta(\varphi A, \varphi (1 - A)), \quad \varphi = \frac{N - d/s}{d/s - 1}.

    So TA_k is a share that a test can have, even if A is near 0 or 1. Each k has a separate set
    of classes.
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

    The test has r instances of each class and three kinds of answers. The number of correct answers
    of each kind is beta-binomial as in `single_test_accuracy`.

    - Reused instances: min(r, r1) of each class that the pilot tested. They had
      k_t min(r, r1) TA_k1 correct answers among k1 classes. Each of these stays correct among k
      classes with probability AGA_k / AGA_k1.
    - Further instances of the classes that the pilot tested. They inherit the share b
      (`AnswerDependence.carried_over`) of the pilot's deviation. The probability of a correct
      answer is :math:`AGA_k (1 + b (TA_{k_1} / AGA_{k_1} - 1))`.
    - Instances of the other classes. The probability of a correct answer is AGA_k.

    At k = k1 and r = r1 the result is TA_k1 if the pilot tested all its classes. If weights or
    repeats are so unequal that TA_k1 is not a share of whole answers, the shares of correct answers
    have beta laws with the same means and variances. `expected_source` (chain, draw) are draws of
    AGA_k1.

    Raises DataError if TA_k1 is unknown, or if a k is below k1.
    """
    source, tested, accuracy = dependence.n_classes, dependence.n_tested, dependence.accuracy
    if accuracy is None:
        raise DataError(
            "nested: the accuracy of the pilot on all its classes is unknown; pass nested=False"
        )
    if np.min(k) < source:
        raise DataError(
            f"k: found {np.min(k)}, expected at least the {source} source classes, which are part "
            "of the test if nested=True; increase k or pass nested=False"
        )
    reused_repeats = min(float(repeats), dependence.repeats)
    inflation = dependence.design_effect(repeats) / dependence.spread
    total = tested * dependence.repeats / dependence.spread
    whole = _is_whole(total) and _is_whole(total * accuracy)
    reused = _n_answers(tested * reused_repeats, dependence, whole)
    answers = np.maximum(_n_answers(k * float(repeats), dependence, whole), reused)
    further = tested * (repeats - reused_repeats) / dependence.spread
    further = np.minimum(np.rint(further).astype(np.int64) if whole else further, answers - reused)

    before = np.maximum(expected_source, _SMALLEST_MEAN)[..., None]
    survival = np.minimum(expected / before, 1.0)
    inherited = 1 + dependence.carried_over * (accuracy / before - 1)
    right_before = _right_before(reused, total, accuracy, expected_source.shape, rng)
    right = _n_right(right_before[..., None], survival, inflation, rng)
    right += _n_right(further, np.minimum(expected * inherited, 1.0), inflation, rng)
    right += _n_right(answers - reused - further, expected, inflation, rng)
    return right / answers


def _is_whole(value: float) -> bool:
    return abs(value - round(value)) < _ROUNDING * max(value, 1)


def _n_answers(
    instances: FloatArray | float, dependence: AnswerDependence, whole: bool = True
) -> NumberArray:
    """Number of answers of equal weight that correspond to the instances of a test."""
    answers = np.asarray(instances / dependence.spread)
    return np.maximum(np.rint(answers), 1).astype(np.int64) if whole else answers


def _right_before(
    reused: NumberArray,
    total: float,
    accuracy: float,
    shape: tuple[int, ...],
    rng: np.random.Generator,
) -> NumberArray:
    """Correct answers of the pilot among the reused ones, which are all or a random sample."""
    whole, right = reused.dtype.kind == "i", total * accuracy
    if np.isclose(reused, total, rtol=_ROUNDING, atol=0):
        return np.full(shape, round(right) if whole else right)
    if whole:
        wrong = round(total) - round(right)
        return rng.hypergeometric(round(right), wrong, int(reused), size=shape)
    # Variance of a hypergeometric number over that of a binomial number.
    inflation = float((total - reused) / np.maximum(total - 1, reused))
    return _n_right(reused, np.full(shape, accuracy), inflation, rng)


def _n_right(
    answers: NumberArray, mean: FloatArray, inflation: float, rng: np.random.Generator
) -> NumberArray:
    r"""Numbers of correct answers with inflated variance. They are whole if `answers` are.

    Whole numbers are :math:`Binomial(n, p)` with :math:`p \sim Beta(\varphi m, \varphi (1 - m))`,
    where m is `mean`. Without inflation they are binomial.
    """
    if answers.dtype.kind == "f":
        return answers * _beta_share(mean, answers / inflation - 1, rng)
    if inflation <= 1:
        return rng.binomial(answers, mean)
    size = (answers - inflation) / (inflation - 1)
    return rng.binomial(answers, _beta_share(mean, size, rng))


def _beta_share(mean: FloatArray, size: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draws of the beta law with this mean; 0 or 1 where the mean is."""
    size = np.maximum(size, _SMALLEST_SIZE)
    inside = np.clip(mean, _SMALLEST_MEAN, 1 - _SMALLEST_MEAN)
    share = rng.beta(size * inside, size * (1 - inside))
    return np.where((mean > 0) & (mean < 1), share, mean)
