"""KDE: favorability of each test instance from a kernel density of its wrong-class scores.

The bandwidths are exactly those of R's `stats` package. Cross-validation needs sums over all pairs
of points. R bins the sample into 1000 cells and counts the pairs by the number of cells between
them. Cell numbers are rounded towards zero, so the cell around zero is twice as wide. A selected
bandwidth therefore depends slightly on location.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.fft import irfft, rfft
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from classex_bayes.arguments import is_real, one_of
from classex_bayes.core.ranks.sources import split_scores
from classex_bayes.core.ranks.threads import for_each
from classex_bayes.estimators.base import ScoreEstimator
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

# About 4 MB of scores per thread in double precision; the computation needs a dozen times as much.
_BLOCK_ELEMENTS = 500_000
_N_CELLS = 1000
# Pairs whose squared distance in bandwidths is larger contribute nothing: exp(-250) = 1e-109.
_FAR = 1000.0
# The largest bandwidth of the search, by Scott's oversmoothing rule. The smallest is a tenth of it.
_OVERSMOOTHED = 1.144


class KDE(ScoreEstimator):
    r"""Extrapolation by kernel density estimates, after Kay et al.

    For test instance i, the scores of the k1 - 1 wrong classes are smoothed by a normal kernel with
    bandwidth :math:`h_i`. The smoothed distribution gives the favorability :math:`\hat a_i`, and
    the favorabilities of all instances give the accuracy:

    .. math::

        \hat a_i = \frac{1}{k_1 - 1} \sum_j \Phi\left(\frac{m_i - m_{ij}}{h_i}\right), \qquad
        \widehat{AGA}_k = \sum_i \omega_i \hat a_i^{k-1}

    with :math:`m_i` the score of the true class and :math:`\omega_i` the weight of the instance.

    Parameters
    ----------
    bandwidth : {"ucv", "bcv", "nrd0"} or positive float
        Rule that selects :math:`h_i`: unbiased or biased cross-validation, or Silverman's rule of
        thumb. It needs at least two different finite scores of wrong classes. A number is the
        bandwidth of all instances.

    Attributes
    ----------
    bandwidths_ : array of shape (n,)
        Bandwidth of each test instance.
    favorability_ : array of shape (n,)
        Estimated probability that a random competitor scores below the true class.

    Notes
    -----
    The estimate needs scores and depends on their scale: a monotone transformation of the scores
    (distances squared, say) changes it. Cross-validation often ends at a limit of its search range.

    A competitor with score -inf is ruled out. It is left out of the choice of the bandwidth and
    counts as beaten. If the true class is ruled out too, the two are tied and count as half.

    Predictions have an absolute error below 1e-12 for k up to 1e12, given the bandwidths.

    The JMLR paper prints :math:`1 - (1 - a)^{k-1}` instead of :math:`a^{k-1}`. In its Table 3, the
    columns KDE-BCV and KDE-UCV are interchanged.

    References
    ----------
    Kay, Naselaris, Prenger and Gallant, Nature 452 (2008), supplement p. 29; Zheng, Achanta and
    Benjamini, JMLR 19(65), 2018, section 3.5.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> scores = rng.normal(size=(30, 30)) + 3 * np.eye(30)
    >>> task = SourceTask.from_scores(scores, np.arange(30))
    >>> KDE("nrd0").fit(task).predict([2, 30, 1000]).mean.round(2).tolist()
    [0.99, 0.83, 0.59]
    """

    def __init__(self, bandwidth: str | float = "ucv") -> None:
        self.bandwidth = bandwidth

    def _name_parts(self) -> list[str]:
        return [f"{self.bandwidth}"]

    def _fit(self, task: SourceTask) -> None:
        if isinstance(self.bandwidth, str):
            one_of(self.bandwidth, tuple(RULES), "bandwidth")
        else:
            positive_bandwidth(self.bandwidth)
        source, y = task.scores, task.y
        bandwidths, log_favorability = np.empty(task.n_test), np.empty(task.n_test)

        def estimate(rows: IntArray) -> None:
            true, wrong = split_scores(source.scores(rows), y[rows])
            bandwidths[rows] = self._select(rows, wrong)
            log_favorability[rows] = _log_share_below(true, wrong, bandwidths[rows])

        height = max(1, _BLOCK_ELEMENTS // task.n_classes)
        blocks = np.split(np.arange(task.n_test), np.arange(height, task.n_test, height))
        for_each(estimate, blocks)
        self.bandwidths_, self._log_favorability = bandwidths, log_favorability
        self._weigh(task)

    def _notes(self, k: IntArray, values: FloatArray) -> tuple[str, ...]:
        return (
            "KDE depends on the scale of the scores: squared distances give another prediction "
            "than distances, although all ranks are the same",
        )

    def _select(self, rows: IntArray, wrong: FloatArray) -> FloatArray:
        if not isinstance(self.bandwidth, str):
            return np.full(rows.size, self.bandwidth)
        finite = wrong > -np.inf
        n_finite = finite.sum(axis=1)
        selected = np.empty(rows.size)
        # Rows with the same number of finite scores form a matrix. Usually these are all rows.
        for size in np.unique(n_finite):
            group = np.flatnonzero(n_finite == size)
            samples = wrong[group][finite[group]].reshape(group.size, size)
            usable = samples.min(axis=1, initial=np.inf) < samples.max(axis=1, initial=-np.inf)
            if not usable.all():
                row = rows[group[np.argmin(usable)]]
                raise DataError(
                    f"scores: no {self.bandwidth} bandwidth for row {row}, expected at least two "
                    "finite wrong-class scores that differ; pass bandwidth= a number, or use "
                    "ClassExReg"
                )
            selected[group] = select_bandwidths(self.bandwidth, samples)
        return selected


def _log_share_below(true: FloatArray, wrong: FloatArray, bandwidths: FloatArray) -> FloatArray:
    """Log share of smoothed wrong-class scores below the true class's; overwrites `wrong`.

    If the share above is the smaller, the log comes from it, because powers of a rounded share
    would have errors of up to 1e-4 at k = 1e12.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        standard = np.subtract(true[:, None], wrong, out=wrong)
        standard /= bandwidths[:, None]
    # True class and competitor are both ruled out.
    standard[np.isnan(standard)] = 0.0
    above = ndtr(-standard).mean(axis=1)
    behind = above > 0.5
    with np.errstate(divide="ignore"):
        log_share = np.log1p(-above)
        log_share[behind] = np.log(ndtr(standard[behind]).mean(axis=1))
    return log_share


# Bandwidths


def positive_bandwidth(bandwidth: Any, smallest: float = 0.0, largest: float = np.inf) -> float:
    """Bandwidth as a positive number from `smallest` to `largest`; otherwise `DataError`."""
    if not (is_real(bandwidth) and 0 < bandwidth < np.inf and smallest <= bandwidth <= largest):
        limits = "" if np.isinf(largest) else f" in {smallest:g}..{largest:g}"
        raise DataError(f"bandwidth: found {bandwidth!r}, expected a positive number{limits}")
    return float(bandwidth)


def select_bandwidths(rule: str, samples: Any) -> FloatArray:
    r"""Bandwidth h of a normal kernel, its standard deviation, for each of `samples` (..., n).

    A sample has n points, standard deviation s and interquartile range IQR. Sums are over the pairs
    p of its points, :math:`\delta_p` is their distance, and :math:`D_p = (\delta_p/h)^2`.

    - "nrd0", Silverman, Density Estimation (1986), (3.31):
      :math:`h = 0.9 \min(s, IQR / 1.34) n^{-1/5}`.
    - "ucv", unbiased cross-validation (Rudemo, Scand. J. Statist. 9, 1982): minimises
      :math:`\frac{1}{2 n h \sqrt\pi} + \frac{1}{n^2 h \sqrt\pi} \sum_p
      \left(e^{-D_p/4} - \sqrt 8 e^{-D_p/2}\right)` on [0.1 H, H],
      :math:`H = 1.144 s n^{-1/5}`, to within 0.01 H, as in R.
    - "bcv", biased cross-validation (Scott and Terrell, JASA 82, 1987): minimises on the same range
      :math:`\frac{1}{2 n h \sqrt\pi} + \frac{1}{64 n^2 h \sqrt\pi} \sum_p
      e^{-D_p/4} (D_p^2 - 12 D_p + 12)`.
    """
    array = np.asarray(samples, dtype=float)
    rows = np.atleast_2d(array)
    # Samples are scaled by a power of two, which is exact. Squares then cannot overflow.
    _, exponent = np.frexp(np.maximum(rows.max(axis=1), -rows.min(axis=1)))
    selected = np.ldexp(RULES[rule](np.ldexp(rows, -exponent[:, None])), exponent)
    return selected.reshape(array.shape[:-1])


class _Pairs(NamedTuple):
    """Pairs of points of one sample, counted by the number of cells between them."""

    n: int
    width: float  # of a cell
    number: FloatArray  # (n_cells,)

    def near(self, h: float) -> tuple[FloatArray, FloatArray]:
        """Numbers of pairs and squared distances in bandwidths, without distant pairs."""
        unit = self.width / h
        n_near = min(_N_CELLS, int(np.sqrt(_FAR) / unit) + 1)
        return self.number[:n_near], (unit * np.arange(n_near)) ** 2


def _count_pairs(x: FloatArray) -> list[_Pairs]:
    """Bin each row and count pairs by the autocorrelation of its histogram."""
    low, high = x.min(axis=1), x.max(axis=1)
    width = 1.01 * (high - low) / _N_CELLS
    cell = np.trunc(x / width[:, None])
    cell -= np.trunc(low / width)[:, None]
    # If the range is a few units in the last place, rounding may give too large a cell number.
    np.minimum(cell, _N_CELLS - 1, out=cell)
    cell += _N_CELLS * np.arange(width.size)[:, None]
    n_cells = _N_CELLS * width.size
    histogram = np.bincount(cell.astype(np.int64).ravel(), minlength=n_cells)
    spectrum = rfft(histogram.reshape(width.size, _N_CELLS), 2 * _N_CELLS)
    number = np.rint(irfft(np.abs(spectrum) ** 2, 2 * _N_CELLS)[:, :_N_CELLS])
    number[:, 0] = (number[:, 0] - x.shape[1]) / 2
    return [_Pairs(x.shape[1], *row) for row in zip(width, number, strict=True)]


def _rule_of_thumb(x: FloatArray) -> FloatArray:
    sd = np.std(x, axis=1, ddof=1)
    lower, upper = np.quantile(x, [0.25, 0.75], axis=1)
    smaller = np.minimum(sd, (upper - lower) / 1.34)
    return 0.9 * np.where(smaller > 0, smaller, sd) * x.shape[1] ** (-1 / 5)


def _unbiased(h: float, pairs: _Pairs) -> float:
    number, scaled = pairs.near(h)
    kernel = np.exp(-scaled / 4)
    excess = number @ (kernel - np.sqrt(8) * kernel**2)
    return (0.5 + excess / pairs.n) / (pairs.n * h * np.sqrt(np.pi))


def _biased(h: float, pairs: _Pairs) -> float:
    number, scaled = pairs.near(h)
    excess = number @ (np.exp(-scaled / 4) * ((scaled - 12) * scaled + 12))
    return (1 + excess / (32 * pairs.n)) / (2 * pairs.n * h * np.sqrt(np.pi))


def _cross_validate(criterion: Callable[[float, _Pairs], float], x: FloatArray) -> FloatArray:
    """Minimise a criterion for each row by Brent's bounded search, as in R's `optimize`."""
    widest = _OVERSMOOTHED * np.std(x, axis=1, ddof=1) * x.shape[1] ** (-1 / 5)
    selected = [
        minimize_scalar(
            criterion, bounds=(0.1 * h, h), args=(pairs,), options={"xatol": 0.01 * h}
        ).x
        for h, pairs in zip(widest, _count_pairs(x), strict=True)
    ]
    return np.array(selected)


RULES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "ucv": partial(_cross_validate, _unbiased),
    "bcv": partial(_cross_validate, _biased),
    "nrd0": _rule_of_thumb,
}
