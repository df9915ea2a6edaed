"""Bandwidths of a normal kernel: the selectors of R's `stats` package, exactly.

Cross-validation and Sheather-Jones need sums over all pairs of points. R bins the sample on 1000
cells and counts pairs by the number of cells between them; cells are numbered towards zero, so
the cell around zero is twice as wide and a selected bandwidth depends slightly on location.

All rules work on the rows of a matrix at once (`select`); a single sample is a matrix of one row.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.fft import irfft, rfft
from scipy.optimize import brentq

from classex_bayes.estimators.kde.brent import minimize_bounded
from classex_bayes.exceptions import DataError
from classex_bayes.task.validation import as_numeric
from classex_bayes.typing import BoolArray, FloatArray, IntArray

_N_CELLS = 1000
# Pairs further apart than the root of this many bandwidths count nothing: exp(-250) = 1e-109.
_FAR = 1000.0
# The widest bandwidth searched: Scott's oversmoothing rule; the narrowest is a tenth of it.
_OVERSMOOTHED = 1.144


def nrd0(sample: Any) -> float:
    r"""Silverman's rule of thumb, :math:`h = 0.9 \min(s, IQR / 1.34) n^{-1/5}`.

    Parameters
    ----------
    sample : array-like of shape (n,)
        At least two different finite numbers.

    Returns
    -------
    float
        Bandwidth: standard deviation of the normal kernel.

    Raises
    ------
    DataError
        The sample has fewer than two points, is constant or not finite.

    References
    ----------
    Silverman, Density Estimation (1986), (3.31).

    Examples
    --------
    >>> round(nrd0([1.0, 2.0, 3.0, 5.0, 8.0]), 4)
    1.4604
    """
    return _of_one(sample, "nrd0")


def ucv(sample: Any) -> float:
    r"""Unbiased (least-squares) cross-validation.

    Minimises, over pairs of points at distance :math:`\delta_p` and :math:`D_p = (\delta_p/h)^2`,

    .. math:: UCV(h) = \frac{1}{2 n h \sqrt\pi}
              + \frac{1}{n^2 h \sqrt\pi} \sum_p \left(e^{-D_p/4} - \sqrt 8 e^{-D_p/2}\right)

    on [0.1 H, H], H = 1.144 s n^(-1/5), to within 0.01 H as R does.

    Parameters
    ----------
    sample : array-like of shape (n,)
        At least two different finite numbers.

    Returns
    -------
    float
        Bandwidth: standard deviation of the normal kernel.

    Raises
    ------
    DataError
        The sample has fewer than two points, is constant or not finite.

    References
    ----------
    Rudemo, Scand. J. Statist. 9 (1982); Bowman, Biometrika 71 (1984).

    Examples
    --------
    >>> round(ucv([1.0, 2.0, 3.0, 5.0, 8.0]), 4)
    2.2865
    """
    return _of_one(sample, "ucv")


def bcv(sample: Any) -> float:
    r"""Biased cross-validation.

    Minimises, in the notation and on the range of `ucv`,

    .. math:: BCV(h) = \frac{1}{2 n h \sqrt\pi}
              + \frac{1}{64 n^2 h \sqrt\pi} \sum_p e^{-D_p/4} (D_p^2 - 12 D_p + 12).

    Parameters
    ----------
    sample : array-like of shape (n,)
        At least two different finite numbers.

    Returns
    -------
    float
        Bandwidth: standard deviation of the normal kernel.

    Raises
    ------
    DataError
        The sample has fewer than two points, is constant or not finite.

    References
    ----------
    Scott and Terrell, JASA 82 (1987).

    Examples
    --------
    >>> round(bcv([1.0, 2.0, 3.0, 5.0, 8.0]), 4)
    2.2903
    """
    return _of_one(sample, "bcv")


def sj(sample: Any) -> float:
    r"""Sheather and Jones' selector, which solves the equation for the optimal bandwidth.

    :math:`h = \{2 \sqrt\pi\, n\, \hat S(\alpha(h))\}^{-1/5}` with :math:`\hat S(\alpha)` the
    kernel estimate of the integrated squared second derivative of the density and
    :math:`\alpha(h) = 1.357 \{\hat S(a) / \hat T(b)\}^{1/7} h^{5/7}`.

    Parameters
    ----------
    sample : array-like of shape (n,)
        At least two different finite numbers.

    Returns
    -------
    float
        Bandwidth: standard deviation of the normal kernel.

    Raises
    ------
    DataError
        The sample has fewer than two points, is constant or not finite.

    Notes
    -----
    The root is solved to full precision; R stops within 1% of the widest bandwidth.

    References
    ----------
    Sheather and Jones, JRSS B 53 (1991).

    Examples
    --------
    >>> round(sj([1.0, 2.0, 3.0, 5.0, 8.0]), 4)
    1.6297
    """
    return _of_one(sample, "sj")


SELECTORS: dict[str, Callable[[Any], float]] = {"ucv": ucv, "bcv": bcv, "sj": sj, "nrd0": nrd0}


def select(name: str, samples: FloatArray) -> FloatArray:
    """Bandwidth of each of several samples.

    Parameters
    ----------
    name : {"ucv", "bcv", "sj", "nrd0"}
        Selector.
    samples : array of shape (n_samples, n)
        Samples, each as `check_sample` demands.

    Returns
    -------
    array of shape (n_samples,)

    Examples
    --------
    >>> select("nrd0", np.array([[1.0, 2.0, 3.0, 5.0, 8.0], [8.0, 6.0, 4.0, 0.0, 1.0]])).round(4)
    array([1.4604, 2.183 ])
    """
    # Scaled by a power of two, which is exact, so that squares cannot overflow.
    _, exponent = np.frexp(np.maximum(samples.max(axis=1), -samples.min(axis=1)))
    return np.ldexp(_RULES[name](np.ldexp(samples, -exponent[:, None])), exponent)


def check_sample(sample: Any) -> FloatArray:
    """Return a sample that determines a bandwidth.

    Parameters
    ----------
    sample : array-like of shape (n,)
        At least two different finite numbers.

    Returns
    -------
    array of shape (n,)

    Raises
    ------
    DataError
        The sample has fewer than two points, is constant or not finite.
    """
    x = np.asarray(as_numeric(sample, "sample"), dtype=float)
    if x.ndim != 1 or x.size < 2:
        raise DataError(f"sample: found shape {x.shape}, expected at least two numbers in a row")
    if not np.isfinite(x).all():
        raise DataError(f"sample: found {x[np.argmin(np.isfinite(x))]}, expected finite numbers")
    if x.min() == x.max():
        raise DataError(f"sample: all {x.size} numbers equal {x[0]:g}, expected different ones")
    return x


def fixed(bandwidth: Any, smallest: float = 0.0, largest: float = np.inf) -> float:
    """Return a bandwidth given as a number.

    Parameters
    ----------
    bandwidth : positive float
        The number.
    smallest, largest : float
        Limits, included.

    Returns
    -------
    float

    Raises
    ------
    DataError
        Not a number, not positive and finite, or outside the limits.

    Examples
    --------
    >>> fixed(1)
    1.0
    """
    real = isinstance(bandwidth, int | float | np.integer | np.floating)
    real = real and not isinstance(bandwidth, bool)
    if not (real and 0 < bandwidth < np.inf and smallest <= bandwidth <= largest):
        limits = "" if np.isinf(largest) else f" in {smallest:g}..{largest:g}"
        raise DataError(f"bandwidth: found {bandwidth!r}, expected a positive number{limits}")
    return float(bandwidth)


def _of_one(sample: Any, name: str) -> float:
    return float(select(name, check_sample(sample)[None])[0])


@dataclass(frozen=True)
class _Pairs:
    """Pairs of points of each sample, counted by the number of cells between them."""

    n: int
    width: FloatArray  # (n_samples,): width of a cell
    number: FloatArray  # (n_samples, n_cells)

    @classmethod
    def count(cls, x: FloatArray) -> Self:
        """Bin each row and correlate its histogram with itself."""
        low, high = x.min(axis=1), x.max(axis=1)
        width = 1.01 * (high - low) / _N_CELLS
        cell = np.trunc(x / width[:, None])
        cell -= np.trunc(low / width)[:, None]
        # A range of a few units in the last place may round to more cells than there are.
        np.minimum(cell, _N_CELLS - 1, out=cell)
        cell += _N_CELLS * np.arange(width.size)[:, None]
        n_cells = _N_CELLS * width.size
        histogram = np.bincount(cell.astype(np.int64).ravel(), minlength=n_cells)
        spectrum = rfft(histogram.reshape(width.size, _N_CELLS), 2 * _N_CELLS)
        number = np.rint(irfft(np.abs(spectrum) ** 2, 2 * _N_CELLS)[:, :_N_CELLS])
        number[:, 0] = (number[:, 0] - x.shape[1]) / 2
        return cls(x.shape[1], width, number)

    def of(self, samples: BoolArray | IntArray) -> "_Pairs":
        """Pairs of some of the samples."""
        if samples.dtype == bool and samples.all():
            return self
        return _Pairs(self.n, self.width[samples], self.number[samples])

    def near(self, h: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Number of pairs and squared distance in bandwidths, in the cells that count."""
        unit = self.width / h
        n_near = min(_N_CELLS, int(np.sqrt(_FAR) / unit.min()) + 1)
        apart = np.multiply.outer(unit, np.arange(n_near))
        return self.number[:, :n_near], np.square(apart, out=apart)


def _row_sums(left: FloatArray, right: FloatArray) -> FloatArray:
    return np.einsum("ij,ij->i", left, right)


def _spread(x: FloatArray, normal_iqr: float) -> FloatArray:
    """Smaller of standard deviation and scaled interquartile range, the former where that is 0."""
    sd = np.std(x, axis=1, ddof=1)
    lower, upper = np.quantile(x, [0.25, 0.75], axis=1)
    smaller = np.minimum(sd, (upper - lower) / normal_iqr)
    return np.where(smaller > 0, smaller, sd)


def _rule_of_thumb(x: FloatArray) -> FloatArray:
    return 0.9 * _spread(x, 1.34) * x.shape[1] ** (-1 / 5)


def _unbiased(h: FloatArray, pairs: _Pairs) -> FloatArray:
    number, scaled = pairs.near(h)
    kernel = np.exp(np.multiply(scaled, -1 / 4, out=scaled), out=scaled)
    excess = _row_sums(number, kernel - np.sqrt(8) * kernel**2)
    return (0.5 + excess / pairs.n) / (pairs.n * h * np.sqrt(np.pi))


def _biased(h: FloatArray, pairs: _Pairs) -> FloatArray:
    number, scaled = pairs.near(h)
    excess = _row_sums(number, np.exp(-scaled / 4) * ((scaled - 12) * scaled + 12))
    return (1 + excess / (32 * pairs.n)) / (2 * pairs.n * h * np.sqrt(np.pi))


def _cross_validate(
    x: FloatArray, criterion: Callable[[FloatArray, _Pairs], FloatArray]
) -> FloatArray:
    widest = _OVERSMOOTHED * np.std(x, axis=1, ddof=1) * x.shape[1] ** (-1 / 5)
    pairs = _Pairs.count(x)
    return minimize_bounded(
        lambda h, running: criterion(h, pairs.of(running)), 0.1 * widest, widest, 0.01 * widest
    )


def _curvature(h: FloatArray, pairs: _Pairs) -> FloatArray:
    """Kernel estimate of the integrated squared second derivative of the density."""
    number, scaled = pairs.near(h)
    polynomial = (scaled - 6) * scaled + 3
    total = 2 * _row_sums(number, np.exp(-scaled / 2) * polynomial) + 3 * pairs.n
    return total / (pairs.n * (pairs.n - 1) * h**5 * np.sqrt(2 * np.pi))


def _third_derivative(h: FloatArray, pairs: _Pairs) -> FloatArray:
    """Kernel estimate of the integrated squared third derivative of the density."""
    number, scaled = pairs.near(h)
    polynomial = ((scaled - 15) * scaled + 45) * scaled - 15
    total = 15 * pairs.n - 2 * _row_sums(number, np.exp(-scaled / 2) * polynomial)
    return total / (pairs.n * (pairs.n - 1) * h**7 * np.sqrt(2 * np.pi))


def _solve_the_equation(x: FloatArray) -> FloatArray:
    pairs, n, scale = _Pairs.count(x), x.shape[1], _spread(x, 1.349)
    # Both estimates are positive: their kernels have nonnegative Fourier transforms.
    second = _curvature(1.24 * scale * n ** (-1 / 7), pairs)
    third = _third_derivative(1.23 * scale * n ** (-1 / 9), pairs)
    ratio = 1.357 * (second / third) ** (1 / 7)

    upper = _OVERSMOOTHED * scale * n ** (-1 / 5)
    # One after the other: where there are several roots, Brent's steps decide which one is found.
    single = (pairs.of(np.array([sample])) for sample in range(scale.size))
    return np.array(list(map(_root, single, ratio, upper)))


def _root(pairs: _Pairs, ratio: float, upper: float) -> float:
    """Solve the equation of Sheather and Jones for one sample."""

    def excess(h: float) -> float:
        curvature = _curvature(np.array([ratio * h ** (5 / 7)]), pairs)[0]
        return (2 * np.sqrt(np.pi) * pairs.n * curvature) ** (-1 / 5) - h

    lower = 0.1 * upper
    # A root exists, as the excess is positive near 0 and negative far out. Which one is found can
    # depend on the bracket, so it widens as R's does: above and below in turn.
    above = True
    while excess(lower) * excess(upper) > 0:
        lower, upper = (lower, 1.2 * upper) if above else (0.8 * lower, upper)
        above = not above
    return brentq(excess, lower, upper, xtol=1e-12 * upper, rtol=1e-12)


_RULES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "ucv": lambda x: _cross_validate(x, _unbiased),
    "bcv": lambda x: _cross_validate(x, _biased),
    "sj": _solve_the_equation,
    "nrd0": _rule_of_thumb,
}
