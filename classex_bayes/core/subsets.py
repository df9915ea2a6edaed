"""Accuracy on random subsets of the source classes, from ranks alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import gammaln

from classex_bayes.typing import FloatArray, IntArray

_LARGEST_TABLE = 1_000_000
# A product of 16 ratios of neighbouring probabilities, each at most k1^2, does not overflow for k1
# up to 1e9.
_STEPS = 16
# Summation stops if the last terms are below the first share of the larger tail sum, or if the
# smaller tail sum is below the second share of it. At most k1 terms of a tail are dropped.
_SMALL_TERM, _SMALL_TAIL = 1e-17, 1e-26
_MOST_PAIRS = 50_000
# From this argument on, the Stirling series of log gamma is exact to double precision.
_STIRLING_FROM = 16.0


def log_spaced(smallest: float, largest: float, number: int) -> IntArray:
    """At most `number` sizes from `smallest` to `largest`, evenly spaced in the logarithm.

    Examples
    --------
    >>> log_spaced(2, 1000, 4).tolist()
    [2, 16, 126, 1000]
    """
    return np.unique(np.rint(np.geomspace(smallest, largest, number)).astype(np.int64))


def log_gamma_ratio(x: FloatArray, t: FloatArray | IntArray | int) -> FloatArray:
    r"""Log of :math:`\Gamma(x + t) / \Gamma(x)`, without the cancellation of two large log gammas.

    `x` is positive, `t` is at least 0, and the two broadcast.
    """
    large = x >= _STIRLING_FROM
    base = np.where(large, x, _STIRLING_FROM)
    by_series = (
        (base + t - 0.5) * np.log1p(t / base)
        + t * (np.log(base) - 1)
        + _stirling_correction(base + t)
        - _stirling_correction(base)
    )
    return np.where(large, by_series, gammaln(x + t) - gammaln(x))


def _stirling_correction(x: FloatArray) -> FloatArray:
    """Log gamma minus its leading Stirling term, for x >= 16."""
    inverse_square = 1 / (x * x)
    series = 1 / 1260 - inverse_square * (1 / 1680 - inverse_square / 1188)
    return (1 / 12 - inverse_square * (1 / 360 - inverse_square * series)) / x


def log_binomial(n: float, v: FloatArray) -> FloatArray:
    r"""Log of the binomial coefficient :math:`\binom{n}{v}` for whole numbers 0 <= v <= n <= 1e12.

    The error is below 1e-14 (1 + m log(n)) with m the smaller of v and n - v. A difference of log
    gammas would have an error of up to 1e-14 n.
    """
    short = np.minimum(v, n - v)
    return log_gamma_ratio(n - short + 1, short) - gammaln(short + 1)


def accuracy_given_n_better(
    n_better: IntArray, n_classes: int | IntArray | FloatArray, k: IntArray | FloatArray
) -> FloatArray:
    r"""Probability (n, n_k) that an instance with L better classes is correct on k classes.

    Of N = k1 - 1 competitors, L score better than the true class. The instance beats k - 1 of them,
    drawn at random, with probability :math:`\binom{N - L}{k-1} / \binom{N}{k-1}` (Zheng, Achanta
    and Benjamini, JMLR 19(65), 2018, section 2.3). The relative error is below 1e-10 for k1 up to
    1e6 and below 1e-7 up to 1e12. If the k are consecutive, the recursion :math:`f_{k+1} = f_k (N -
    L - k + 1) / (N - k + 1)` is used.

    `n_classes` is k1, or has shape (n,) if instances met different numbers of competitors. `k` has
    shape (n_k,), or (n, n_k) if it differs between instances; it may then be fractional.

    >>> accuracy_given_n_better(np.array([0, 1, 2]), 3, np.array([2, 3])).tolist()
    [[1.0, 1.0], [0.5, 0.0], [0.0, 0.0]]
    >>> accuracy_given_n_better(np.array([0, 1, 1]), np.array([3, 3, 5]), np.array([2])).round(9)
    array([[1.  ],
           [0.5 ],
           [0.75]])
    """
    number = np.asarray(n_classes, dtype=float) - 1
    competitors = number[:, None] if number.ndim else float(number)
    better = np.asarray(n_better, dtype=float)[:, None]
    drawn = np.atleast_2d(np.asarray(k, dtype=float)) - 1
    if len(drawn) > 1 or np.any(np.diff(drawn) != 1):
        return _chance(better, drawn, competitors)
    earlier = drawn[:, :-1]
    ratio = np.maximum(competitors - better - earlier, 0.0)
    ratio /= np.maximum(competitors - earlier, 1.0)
    return np.cumprod(np.hstack([_chance(better, drawn[:, :1], competitors), ratio]), axis=1)


def _chance(better: FloatArray, drawn: FloatArray, competitors: float | FloatArray) -> FloatArray:
    """C(N - L, m) / C(N, m) for L of shape (n, 1), m of (1 or n, n_k), and N a number or (n, 1)."""
    possible = better + drawn < competitors + 1
    # The ratio is symmetric in L and m. The shorter product has less cancellation.
    short = np.minimum(better, drawn)
    long = np.maximum(better, drawn)
    rest = np.where(possible, competitors - long, short)
    log_f = log_gamma_ratio(rest - short + 1, short) - log_gamma_ratio(
        np.maximum(competitors - short, 0) + 1, short
    )
    # An instance that nobody beats is correct among any number of classes.
    return np.where(possible, np.exp(log_f), better == 0)


def top_accuracy_given_n_better(
    n_better: IntArray, n_classes: int, k: IntArray, top: int
) -> FloatArray:
    r"""Probability (n, n_k) that the true class of an instance is among the m best of k classes.

    k - 1 wrong classes are drawn at random from k1 - 1. At most m - 1 of them may be among the L
    classes that score higher than the true class:

    .. math:: \sum_{j < m} \binom{L}{j} \binom{k_1 - 1 - L}{k - 1 - j} \Big/ \binom{k_1 - 1}{k - 1}.

    The terms are products of ratios of neighbouring terms, from j = m - 1 in both directions,
    divided by their total. The absolute error is below 1e-12.
    """
    if top == 1:
        return accuracy_given_n_better(n_better, n_classes, k)
    if top < 1:
        return np.zeros((np.size(n_better), np.size(k)))
    better = np.asarray(n_better, dtype=float)[:, None]
    drawn = np.asarray(k, dtype=float) - 1
    better, drawn = np.broadcast_arrays(better, drawn)
    most, competitors = float(top - 1), float(n_classes - 1)
    chance = np.where(np.minimum(better, drawn) <= most, 1.0, 0.0)
    undecided = (chance == 0) & (better + drawn - competitors <= most)
    at_most = np.empty(np.count_nonzero(undecided))
    undecided_better, undecided_drawn = better[undecided], drawn[undecided]
    for start in range(0, at_most.size, _MOST_PAIRS):
        part = slice(start, start + _MOST_PAIRS)
        at_most[part] = _chance_at_most(
            most, undecided_better[part], undecided_drawn[part], competitors
        )
    chance[undecided] = at_most
    return chance


def _chance_at_most(
    most: float, n_better: FloatArray, drawn: FloatArray, competitors: float
) -> FloatArray:
    """Hypergeometric CDF at `most`, which must be a possible value, for pairs of L and k - 1."""
    # Sums of the probabilities of most, most - 1, ... and of most + 1, ..., relative to that of
    # `most`.
    below, above = np.ones(n_better.size), np.zeros(n_better.size)
    term_below, term_above = np.ones(n_better.size), np.ones(n_better.size)
    left = np.arange(n_better.size)
    spare = competitors - n_better - drawn
    for first in range(0, int(competitors) + 1, _STEPS):
        step = first + np.arange(_STEPS)
        better, sampled, rest = (values[left, None] for values in (n_better, drawn, spare))
        # The ratios reach 0 at the ends of the range of possible values.
        j = most - step
        fall = j * (rest + j) / ((better - j + 1) * (sampled - j + 1))
        j = most + step
        rise = (better - j) * (sampled - j) / ((j + 1) * (rest + j + 1))
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


def distinct_n_better(n_better: IntArray) -> tuple[IntArray, IntArray]:
    """Distinct numbers in increasing order, and the index (n,) of each instance in them."""
    if n_better.max(initial=0) > _LARGEST_TABLE + n_better.size:
        values, where = np.unique(n_better, return_inverse=True)
        return values, where
    # A table of occurring values takes a tenth of the time of sorting.
    occurs = np.bincount(n_better) > 0
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[n_better]


def weighted_over_n_better(
    given_n_better: Callable[[IntArray, Any], FloatArray],
    n_better: IntArray,
    k: IntArray | FloatArray,
    weights: FloatArray,
) -> FloatArray:
    """Weighted mean (n_k,) over instances of a function of the number of better classes and of k.

    `given_n_better` returns values (n_values, n_k) from distinct numbers and numbers of classes.
    """
    values, where = distinct_n_better(n_better)
    share = np.bincount(where, weights=weights, minlength=values.size)
    k = np.atleast_1d(k)
    total = np.empty(k.size)
    # Blocks of k limit the size of the table (distinct numbers x k) for a million classes.
    width = max(1, 100_000 // values.size)
    for start in range(0, k.size, width):
        part = slice(start, start + width)
        total[part] = share @ given_n_better(values, k[part])
    return total
