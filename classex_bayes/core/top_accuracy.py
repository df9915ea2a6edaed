"""Top-m accuracy: the chance that the true class is among the m best of k."""

import numpy as np
from scipy.special import ndtr, ndtri, polygamma

from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.subsets import (
    accuracy_given_losses,
    average_test_accuracy,
    weighted_over_losses,
)
from classex_bayes.typing import FloatArray, IntArray

# 16 ratios of neighbouring chances, each at most k1^2, do not overflow for k1 up to 1e9.
_STEPS = 16
# Terms below this share of the total are dropped, and so is the rest of a tail far below it, of
# which at most k1 terms are to come.
_SMALL_TERM, _SMALL_TAIL = 1e-17, 1e-26
_MOST_PAIRS = 50_000


def top_accuracy_given_losses(
    losses: IntArray, n_classes: int, k: IntArray, top: int
) -> FloatArray:
    r"""Chance that an instance with given losses has its class among the m best of k classes.

    Of the k - 1 wrong classes drawn at random from k1 - 1, at most m - 1 may be among the L that
    scored higher:

    .. math:: \sum_{j < m} \binom{L}{j} \binom{k_1 - 1 - L}{k - 1 - j} \Big/ \binom{k_1 - 1}{k - 1}.

    The terms on both sides of j = m - 1 come from the ratios of neighbours and are divided by
    their total, so that no factorial is needed; the absolute error is below 1e-12.

    Parameters
    ----------
    losses : int array of shape (n,)
        Number of wrong classes scoring above the true one, 0..n_classes - 1.
    n_classes : int
        k1, the number of source classes.
    k : int array of shape (n_k,)
        Sizes of the subsets, 1..n_classes.
    top : int
        m, at least 1. With m = 1 it is `accuracy_given_losses`; with m >= k it is 1.

    Returns
    -------
    array of shape (n, n_k)

    Examples
    --------
    >>> top_accuracy_given_losses(np.array([0, 1, 2]), 3, np.array([2, 3]), 2).tolist()
    [[1.0, 1.0], [1.0, 1.0], [1.0, 0.0]]
    """
    if top == 1:
        return accuracy_given_losses(losses, n_classes, k)
    lost = np.asarray(losses, dtype=float)[:, None]
    drawn = np.asarray(k, dtype=float) - 1
    lost, drawn = np.broadcast_arrays(lost, drawn)
    most, competitors = float(top - 1), float(n_classes - 1)
    chance = np.where(np.minimum(lost, drawn) <= most, 1.0, 0.0)
    open_ = (chance == 0) & (lost + drawn - competitors <= most)
    at_most = np.empty(np.count_nonzero(open_))
    open_lost, open_drawn = lost[open_], drawn[open_]
    for start in range(0, at_most.size, _MOST_PAIRS):
        part = slice(start, start + _MOST_PAIRS)
        at_most[part] = _chance_at_most(most, open_lost[part], open_drawn[part], competitors)
    chance[open_] = at_most
    return chance


def _chance_at_most(
    most: float, lost: FloatArray, drawn: FloatArray, competitors: float
) -> FloatArray:
    """Hypergeometric CDF at a value `most` that is possible, for pairs of L and k - 1."""
    # Sums of the chances of most, most - 1, ... and of most + 1, ..., in units of that of `most`.
    below, above = np.ones(lost.size), np.zeros(lost.size)
    term_below, term_above = np.ones(lost.size), np.ones(lost.size)
    left = np.arange(lost.size)
    spare = competitors - lost - drawn
    for first in range(0, int(competitors) + 1, _STEPS):
        step = first + np.arange(_STEPS)
        marked, taken, rest = (values[left, None] for values in (lost, drawn, spare))
        # The ratios reach 0 at the ends of the range of possible values.
        j = most - step
        fall = j * (rest + j) / ((marked - j + 1) * (taken - j + 1))
        j = most + step
        rise = (marked - j) * (taken - j) / ((j + 1) * (rest + j + 1))
        terms = term_below[left, None] * np.cumprod(fall, axis=1)
        below[left] += terms.sum(axis=1)
        term_below[left] = terms[:, -1]
        terms = term_above[left, None] * np.cumprod(rise, axis=1)
        above[left] += terms.sum(axis=1)
        term_above[left] = terms[:, -1]
        small, large = np.minimum(below, above)[left], np.maximum(below, above)[left]
        term = np.maximum(term_below, term_above)[left]
        left = left[(term > _SMALL_TERM * large) & (small > _SMALL_TAIL * large)]
        if left.size == 0:
            break
    return 1 / (1 + above / below)


def average_top_accuracy(
    losses: IntArray, n_classes: int, k: IntArray, weights: FloatArray, top: int
) -> FloatArray:
    r"""Average top-m accuracy over all subsets of k source classes.

    The weighted mean of `top_accuracy_given_losses`: unbiased for the expected top-m accuracy on
    k classes, and the plain (weighted) top-m accuracy at k = k1.

    Parameters
    ----------
    losses : int array of shape (n,)
        Losses of the test instances.
    n_classes : int
        k1.
    k : int array of shape (n_k,)
        Numbers of classes, 1..k1.
    weights : array of shape (n,)
        Instance weights that sum to 1.
    top : int
        m, at least 1. With m = 1 it is `average_test_accuracy`.

    Returns
    -------
    array of shape (n_k,)

    Examples
    --------
    >>> losses = np.array([0, 1, 2])
    >>> average_top_accuracy(losses, 3, np.array([2, 3]), np.full(3, 1 / 3), 2).round(4)
    array([1.    , 0.6667])
    """
    if top == 1:
        return average_test_accuracy(losses, n_classes, k, weights)
    accuracy = weighted_over_losses(
        lambda values, part: top_accuracy_given_losses(values, n_classes, part, top),
        losses,
        k,
        weights,
    )
    return np.where(np.atleast_1d(k) <= top, 1.0, accuracy)


def expected_top_accuracy(basis: RadialBasis, k: IntArray, top: int) -> FloatArray:
    r"""Expected top-m accuracy on k classes for each element of a radial basis.

    Given the favorability U the losses on k classes are Binomial(k - 1, 1 - U), so element l has

    .. math:: A_l(k; m) = E[P(L < m)] = E[1 - h_l(X)], \qquad X \sim Beta(k - m, m).

    The expectation over X is taken on the scale of its log odds, where the integrand is smooth
    for every k and m. For a mixture with weights w it is :math:`\sum_l w_l A_l(k; m)`. The
    absolute error is below 1e-11 for k up to 1e12.

    Parameters
    ----------
    basis : RadialBasis
        Basis with n elements.
    k : int array of shape (n_k,)
        Numbers of classes, at least 1.
    top : int
        m, at least 1. With m = 1 it is `RadialBasis.accuracy`; with m >= k it is 1.

    Returns
    -------
    array of shape (n_k, n)

    References
    ----------
    Zheng and Benjamini, draft (2016), section 4 (the cumulative form gamma_m).

    Examples
    --------
    With one standard normal element the favorability is uniform: m of k by guessing.

    >>> guessing = RadialBasis(np.array([0.0]), 1.0)
    >>> expected_top_accuracy(guessing, np.array([2, 5, 1000]), 5).round(6).ravel().tolist()
    [1.0, 1.0, 0.005]
    """
    if top == 1:
        return basis.accuracy(k)
    sizes = np.atleast_1d(k)
    accuracy = np.ones((sizes.size, basis.knots.size))
    for row in np.flatnonzero(sizes > top):
        z, weight = _beta_rule(float(sizes[row] - top), float(top), basis.bandwidth)
        accuracy[row] = weight @ ndtr((basis.knots - z[:, None]) / basis.bandwidth)
    return np.minimum(accuracy, 1.0)


def _beta_rule(wins: float, top: float, bandwidth: float) -> tuple[FloatArray, FloatArray]:
    """Nodes Phi^-1(x) and weights of a trapezoid rule over X ~ Beta(wins, top).

    Quantiles as nodes would need SciPy's `betaincinv`, which fails at m = 1000 for k from 1e8 on.
    """
    total = wins + top
    sd = float(np.sqrt(polygamma(1, wins) + polygamma(1, top)))
    step = min(0.2, 0.4 * sd, 0.4 * bandwidth)
    # Normal in the middle, exponential in the tails: beyond, the density is below 1e-18.
    n_nodes = int(np.ceil((9.2 * sd + 42 / min(wins, top)) / step))
    # Log odds of 1 - X, as distance from their mode, keep the exponent from cancelling.
    distance = np.arange(-n_nodes, n_nodes + 1) * step
    spread = np.log1p(top / total * np.expm1(distance))
    weight = np.exp(top * distance - total * spread)
    x, rest = wins / total * np.exp(-spread), top / total * np.exp(distance - spread)
    z = np.where(x < rest, ndtri(np.minimum(x, 0.5)), -ndtri(np.minimum(rest, 0.5)))
    kept = weight > 1e-18
    return z[kept], weight[kept] / weight[kept].sum()
