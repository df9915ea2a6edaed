"""Margins: how far the true class's score stands out, in units free of the scale of the scores.

Every score is put on the normal scale by its rank among the scores of all wrong classes, and
standardised by the mean and standard deviation of the wrong classes of its own instance (T-norm).
An increasing transform of the scores, the same for all instances, therefore changes no margin.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import gaussian_kde

from classex_bayes.core.ranks.sources import ScoreSource, split_scores
from classex_bayes.core.ranks.threads import for_each, ranges
from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray, IntArray

# Pairs (instance, wrong class) that make the reference laws; their sorting takes a second.
_REFERENCE_PAIRS = 2**22
_BLOCK_PAIRS = 2**20
# The tail is a curve from this share of the pairs to the last pairs, which are left to chance.
_TAIL_SHARE, _FEWEST_PAIRS, _ENOUGH_PAIRS = 0.1, 3, 300
_LEAST_SLOPE = 0.3
_FEWEST_LEVELS = 6
# Share of the pairs at which instances are compared with one another; 2.6 on the normal scale.
_COMPARED_SHARE = 0.0047
# Prior mean and standard deviation of the unevenness, from populations of classes, and a value
# above that of every one of them.
_UNEVENNESS, _LARGEST_UNEVENNESS = (0.3, 0.4), 1.5
# Bandwidth of the density of margins in units of Scott's, and the steepest it is believed to be.
_WIDER, _STEEPEST = 1.3, 4.0
# One pair in ten million. Pilots hold no such pair, so larger margins are not told apart.
LARGEST_MARGIN = 5.2


class Margins(NamedTuple):
    """Margins of the test instances (n,) and what their law says.

    `margin` is the normal score of the share of all pairs (instance, wrong class) that stand out
    less: an instance like all others is beaten by a competitor with probability Phi(-margin).
    `slope` is the derivative of the log density of the margins. `unevenness` is the squared
    coefficient of variation between instances of the share of wrong classes that stand out by
    2.6, 0 if all tails have one shape: posterior mean plus standard deviation, so that a small
    pilot counts as uneven until it shows otherwise.
    """

    margin: FloatArray
    slope: FloatArray
    unevenness: float


def measure_margins(source: ScoreSource, y: IntArray) -> Margins:
    r"""Margins of all test instances, from their scores.

    With :math:`z_{ij}` the normal score of the rank of a score among all wrong-class scores, and
    :math:`\bar z_i, s_i` the mean and standard deviation of the wrong classes of instance i,

    .. math:: t_i = \frac{z_{i y_i} - \bar z_i}{s_i}, \qquad
              c_i = -\Phi^{-1}\left(\frac{\#\{(l, j): t_{lj} > t_i\}}{n (k_1 - 1)}\right)

    with :math:`t_{lj}` of wrong class j of instance l standardised by the other wrong classes of
    that instance (mid-ranks, half a pair added). In the tail :math:`c` is a quadratic in
    :math:`t`, fitted to these shares, and goes on linearly beyond the last pairs.

    Parameters
    ----------
    source : ScoreSource
        Scores of n instances on k1 classes.
    y : int array of shape (n,)
        True classes.

    Returns
    -------
    Margins

    Raises
    ------
    DataError
        An instance whose wrong classes have the same score, all or all but one; scores of a few
        values only.

    Notes
    -----
    The reference laws are those of at most the median number of instances of each class, and
    beyond 4 million pairs those of some of these; margins of all instances are measured against
    them.

    References
    ----------
    Auckenthaler, Carey and Lloyd-Thomas, Digital Signal Processing 10, 2000 (T-norm).

    Examples
    --------
    >>> from classex_bayes.core.ranks.sources import ScoreMatrix
    >>> rng = np.random.default_rng(1)
    >>> scores, y = rng.normal(size=(50, 50)) + 3 * np.eye(50), np.arange(50)
    >>> plain = measure_margins(ScoreMatrix(scores), y)
    >>> curved = measure_margins(ScoreMatrix(np.exp(scores)), y)
    >>> bool(np.all(plain.margin == curved.margin))
    True
    """
    n, n_classes = source.shape
    chosen = _reference_rows(y, max(1, _REFERENCE_PAIRS // n_classes))
    reference = np.sort(split_scores(source.scores(chosen), y[chosen])[1].ravel())
    standard = np.empty(n)
    rivals = np.empty((chosen.size, n_classes - 1))
    place = np.full(n, -1)
    place[chosen] = np.arange(chosen.size)

    def standardise(part: slice) -> None:
        rows = np.arange(part.start, part.stop)
        normal = _normal_scores(source.scores(rows), reference)
        standard[rows], others = _standardised(normal, y, rows)
        here = place[rows] >= 0
        rivals[place[rows][here]] = others[here]

    parts = ranges(n, max(1, _BLOCK_PAIRS // n_classes))
    if source.in_order:
        for part in parts:
            standardise(part)
    else:
        for_each(standardise, parts)
    margin = _tail_curve(rivals, standard)
    return Margins(margin, _log_density_slope(margin, y), _unevenness(rivals, y[chosen]))


def _reference_rows(y: IntArray, most: int) -> IntArray:
    """Instances of the reference laws, in which no class counts for many."""
    order = np.argsort(y, kind="stable")
    repeats = np.bincount(y)
    place = np.arange(y.size) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    rows = np.sort(order[place < np.ceil(np.median(repeats[repeats > 0]))])
    if rows.size <= most:
        return rows
    return rows[np.unique(np.linspace(0, rows.size - 1, most).astype(np.int64))]


def _normal_scores(scores: FloatArray, reference: FloatArray) -> FloatArray:
    """Normal scores of the mid-ranks among the sorted reference."""
    flat = scores.ravel()
    rank = np.searchsorted(reference, flat, "left") + np.searchsorted(reference, flat, "right")
    return ndtri((rank / 2 + 0.5) / (reference.size + 1)).reshape(scores.shape)


def _standardised(z: FloatArray, y: IntArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
    """True classes by the wrong ones (n_rows,), wrong ones by each other (n_rows, k1 - 1)."""
    true, wrong = split_scores(z, y[rows])
    number = wrong.shape[1]
    centre = wrong.mean(axis=1)
    away = wrong - centre[:, None]
    squares = (away**2).sum(axis=1)
    # Leaving one out shifts the mean by d / (m - 1) and takes d^2 m / (m - 1) off the squares.
    left = squares[:, None] - away**2 * number / (number - 1)
    alike = left.min(axis=1) <= np.maximum(1e-9 * squares, 1e-20)
    if alike.any():
        raise DataError(
            f"scores: found the same score for all wrong classes, or for all but one, of row "
            f"{rows[np.argmax(alike)]}; expected scores with a spread that the true class's can be "
            "compared with (of a saturated softmax, pass the logits)"
        )
    others = away * (number / (number - 1)) / np.sqrt(left / (number - 1))
    return (true - centre) / np.sqrt(squares / number), others


def _tail_curve(rivals: FloatArray, standard: FloatArray) -> FloatArray:
    """Normal score of the share of rivals that stand out less than each value."""
    ordered = np.sort(rivals.ravel())
    size = ordered.size
    levels = np.geomspace(_TAIL_SHARE, min(_FEWEST_PAIRS / size, _TAIL_SHARE / 2), 40)
    value = ordered[np.clip(size - np.rint(levels * size).astype(np.int64), 0, size - 1)]
    above = np.maximum(size - np.searchsorted(ordered, value, "right"), 0.5)
    usable = np.unique(value, return_index=True)[1]
    if usable.size < _FEWEST_LEVELS:
        raise DataError(
            f"scores: found {usable.size} distinct margins among the best wrong classes, expected "
            f"{_FEWEST_LEVELS} or more; scores of so few values have no tail to follow"
        )
    value, above = value[usable], above[usable]
    margin = -ndtri(above / size)
    # The error of a normal score is about that of the log share over the score.
    weight = np.sqrt(np.minimum(above, _ENOUGH_PAIRS)) * margin
    start, end = value[0], value[-1]
    curve = np.polynomial.Polynomial.fit(value, margin, 2, w=weight)
    if min(curve.deriv()(start), curve.deriv()(end)) <= 0:
        curve = np.polynomial.Polynomial.fit(value, margin, 1, w=weight)
    slope = max(float(curve.deriv()(end)), _LEAST_SLOPE)
    tail = curve(np.minimum(standard, end)) + slope * np.maximum(standard - end, 0)
    tail = np.maximum(tail, margin[0])  # which the body ends with
    return np.where(standard > start, tail, _normal_scores(standard, ordered))


def _unevenness(rivals: FloatArray, y: IntArray) -> float:
    """Posterior mean plus standard deviation of the unevenness (see `Margins`)."""
    n, number = rivals.shape
    level = np.quantile(rivals, 1 - _COMPARED_SHARE)
    # Not fewer than that share, whatever the ties.
    above = (rivals >= level).sum(axis=1).astype(float)
    share = above.sum() / (n * number)
    raw = (above * (above - 1)).sum() / (n * number * (number - 1)) / share**2 - 1
    # Expected pairs of rivals that stand out from one instance, one instance of a class counted.
    pairs = np.unique(y).size * (number * _COMPARED_SHARE) ** 2
    error = np.sqrt(2 / pairs) * (1 + max(raw, 0.0))
    mean, sd = _UNEVENNESS
    precision = 1 / error**2 + 1 / sd**2
    centre = (raw / error**2 + mean / sd**2) / precision
    spread = 1 / np.sqrt(precision)
    return float(min(max(centre, 0.0) + spread, _LARGEST_UNEVENNESS))


def _log_density_slope(margin: FloatArray, y: IntArray) -> FloatArray:
    """Derivative of the log density of the margins, classes weighing the same, bounded."""
    limited = np.minimum(margin, LARGEST_MARGIN)
    if np.ptp(limited) < 1e-6:
        return np.zeros(margin.size)
    density = gaussian_kde(limited, weights=1 / np.bincount(y)[y])
    density.set_bandwidth(density.factor * _WIDER)
    # A table, since the density costs n for each place: far finer than its bandwidth.
    at, step = np.linspace(limited.min() - 0.1, limited.max() + 0.1, 200), 0.05
    slope = (density.logpdf(at + step) - density.logpdf(at - step)) / (2 * step)
    return np.clip(np.interp(limited, at, slope), -_STEEPEST, _STEEPEST)
