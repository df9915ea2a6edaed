"""Bandwidths of a normal kernel: the selectors of R's `stats` package, exactly.

Cross-validation and Sheather-Jones need sums over all pairs of points. R bins the sample into 1000
cells and counts the pairs by the number of cells between them. Cell numbers are rounded towards
zero, so the cell around zero is twice as wide. A selected bandwidth therefore depends slightly on
location.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.fft import irfft, rfft
from scipy.optimize import brentq, minimize_scalar

from classex_bayes.arguments import is_real
from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray

_N_CELLS = 1000
# Pairs whose squared distance in bandwidths is larger contribute nothing: exp(-250) = 1e-109.
_FAR = 1000.0
# The largest bandwidth of the search, by Scott's oversmoothing rule. The smallest is a tenth of it.
_OVERSMOOTHED = 1.144


def select(rule: str, samples: Any) -> FloatArray:
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
    - "sj", Sheather and Jones (JRSS B 53, 1991): solves
      :math:`h = \{2 \sqrt\pi\, n\, \hat S(\alpha(h))\}^{-1/5}` with
      :math:`\alpha(h) = 1.357 \{\hat S(a) / \hat T(b)\}^{1/7} h^{5/7}`. Here :math:`\hat S` and
      :math:`\hat T` are kernel estimates of the integrated squared second and third derivatives
      of the density. The root has full precision; R stops within 1% of H.
    """
    array = np.asarray(samples, dtype=float)
    rows = np.atleast_2d(array)
    # Samples are scaled by a power of two, which is exact. Squares then cannot overflow.
    _, exponent = np.frexp(np.maximum(rows.max(axis=1), -rows.min(axis=1)))
    selected = np.ldexp(RULES[rule](np.ldexp(rows, -exponent[:, None])), exponent)
    return selected.reshape(array.shape[:-1])


def positive_bandwidth(bandwidth: Any, smallest: float = 0.0, largest: float = np.inf) -> float:
    """Bandwidth as a positive number from `smallest` to `largest`; otherwise `DataError`."""
    if not (is_real(bandwidth) and 0 < bandwidth < np.inf and smallest <= bandwidth <= largest):
        limits = "" if np.isinf(largest) else f" in {smallest:g}..{largest:g}"
        raise DataError(f"bandwidth: found {bandwidth!r}, expected a positive number{limits}")
    return float(bandwidth)


@dataclass(frozen=True)
class _Pairs:
    """Pairs of points of one sample, counted by the number of cells between them."""

    n: int
    width: float  # of a cell
    number: FloatArray  # (n_cells,)

    @classmethod
    def count(cls, x: FloatArray) -> list[Self]:
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
        return [cls(x.shape[1], *row) for row in zip(width, number, strict=True)]

    def near(self, h: float) -> tuple[FloatArray, FloatArray]:
        """Numbers of pairs and squared distances in bandwidths, without distant pairs."""
        unit = self.width / h
        n_near = min(_N_CELLS, int(np.sqrt(_FAR) / unit) + 1)
        return self.number[:n_near], (unit * np.arange(n_near)) ** 2


def _spread(x: FloatArray, normal_iqr: float) -> FloatArray:
    """Smaller of standard deviation and scaled interquartile range; the former if that is 0."""
    sd = np.std(x, axis=1, ddof=1)
    lower, upper = np.quantile(x, [0.25, 0.75], axis=1)
    smaller = np.minimum(sd, (upper - lower) / normal_iqr)
    return np.where(smaller > 0, smaller, sd)


def _rule_of_thumb(x: FloatArray) -> FloatArray:
    return 0.9 * _spread(x, 1.34) * x.shape[1] ** (-1 / 5)


def _unbiased(h: float, pairs: _Pairs) -> float:
    number, scaled = pairs.near(h)
    kernel = np.exp(-scaled / 4)
    excess = number @ (kernel - np.sqrt(8) * kernel**2)
    return (0.5 + excess / pairs.n) / (pairs.n * h * np.sqrt(np.pi))


def _biased(h: float, pairs: _Pairs) -> float:
    number, scaled = pairs.near(h)
    excess = number @ (np.exp(-scaled / 4) * ((scaled - 12) * scaled + 12))
    return (1 + excess / (32 * pairs.n)) / (2 * pairs.n * h * np.sqrt(np.pi))


def _cross_validate(x: FloatArray, criterion: Callable[[float, _Pairs], float]) -> FloatArray:
    """Minimise a criterion for each row by Brent's bounded search, as in R's `optimize`."""
    widest = _OVERSMOOTHED * np.std(x, axis=1, ddof=1) * x.shape[1] ** (-1 / 5)
    selected = [
        minimize_scalar(
            criterion,
            bounds=(0.1 * limit, limit),
            args=(pairs,),
            method="bounded",
            options={"xatol": 0.01 * limit},
        ).x
        for limit, pairs in zip(widest, _Pairs.count(x), strict=True)
    ]
    return np.array(selected)


def _second_derivative(h: float, pairs: _Pairs) -> float:
    """Kernel estimate of the integrated squared second derivative of the density."""
    number, scaled = pairs.near(h)
    total = 2 * number @ (np.exp(-scaled / 2) * ((scaled - 6) * scaled + 3)) + 3 * pairs.n
    return total / (pairs.n * (pairs.n - 1) * h**5 * np.sqrt(2 * np.pi))


def _third_derivative(h: float, pairs: _Pairs) -> float:
    """Kernel estimate of the integrated squared third derivative of the density."""
    number, scaled = pairs.near(h)
    polynomial = ((scaled - 15) * scaled + 45) * scaled - 15
    total = 15 * pairs.n - 2 * number @ (np.exp(-scaled / 2) * polynomial)
    return total / (pairs.n * (pairs.n - 1) * h**7 * np.sqrt(2 * np.pi))


def _sheather_jones(x: FloatArray) -> FloatArray:
    return np.array(list(map(_root, _Pairs.count(x), _spread(x, 1.349))))


def _root(pairs: _Pairs, spread: float) -> float:
    """Solve the equation of Sheather and Jones for one sample."""
    # Both estimates are positive, because their kernels have nonnegative Fourier transforms.
    second = _second_derivative(1.24 * spread * pairs.n ** (-1 / 7), pairs)
    third = _third_derivative(1.23 * spread * pairs.n ** (-1 / 9), pairs)
    ratio = 1.357 * (second / third) ** (1 / 7)

    def excess(h: float) -> float:
        curvature = _second_derivative(ratio * h ** (5 / 7), pairs)
        return (2 * np.sqrt(np.pi) * pairs.n * curvature) ** (-1 / 5) - h

    upper = _OVERSMOOTHED * spread * pairs.n ** (-1 / 5)
    lower = 0.1 * upper
    # A root exists, because the excess is positive near 0 and negative for large h. With several
    # roots the result depends on the bracket, so it widens as in R: above and below in turn.
    above = True
    while excess(lower) * excess(upper) > 0:
        lower, upper = (lower, 1.2 * upper) if above else (0.8 * lower, upper)
        above = not above
    return brentq(excess, lower, upper, xtol=1e-12 * upper, rtol=1e-12)


RULES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "ucv": lambda x: _cross_validate(x, _unbiased),
    "bcv": lambda x: _cross_validate(x, _biased),
    "sj": _sheather_jones,
    "nrd0": _rule_of_thumb,
}
