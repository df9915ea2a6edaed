"""Bandwidths of a normal kernel for one sample: the selectors of R's `stats` package, exactly.

Cross-validation and Sheather-Jones need sums over all pairs of points. R bins the sample on 1000
cells and counts pairs by the number of cells between them; cells are numbered towards zero, so
the cell around zero is twice as wide and a selected bandwidth depends slightly on location.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from classex_bayes.data.validation import as_numeric
from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray

_N_CELLS = 1000
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
    return _in_unit_scale(sample, lambda x: 0.9 * _spread(x, 1.34) * x.size ** (-1 / 5))


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

    def criterion(h: float, pairs: _Pairs) -> float:
        kernel = np.exp(-pairs.distance2 / (4 * h * h))
        excess = pairs.number @ (kernel - np.sqrt(8) * kernel**2)
        return float((0.5 + excess / pairs.n) / (pairs.n * h * np.sqrt(np.pi)))

    return _in_unit_scale(sample, lambda x: _smallest_criterion(x, criterion))


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

    def criterion(h: float, pairs: _Pairs) -> float:
        scaled = pairs.distance2 / (h * h)
        excess = pairs.number @ (np.exp(-scaled / 4) * ((scaled - 12) * scaled + 12))
        return float((1 + excess / (32 * pairs.n)) / (2 * pairs.n * h * np.sqrt(np.pi)))

    return _in_unit_scale(sample, lambda x: _smallest_criterion(x, criterion))


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
    return _in_unit_scale(sample, _solve_the_equation)


SELECTORS: dict[str, Callable[[Any], float]] = {"ucv": ucv, "bcv": bcv, "sj": sj, "nrd0": nrd0}


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


class _Pairs(NamedTuple):
    """Pairs of sample points counted by their binned distance; empty distances left out."""

    n: int
    distance2: FloatArray  # squared distances
    number: FloatArray


def _in_unit_scale(sample: Any, rule: Callable[[FloatArray], float]) -> float:
    """Apply a rule to the sample scaled by a power of two: exact, and squares cannot overflow."""
    x = np.asarray(as_numeric(sample, "sample"), dtype=float)
    if x.ndim != 1 or x.size < 2:
        raise DataError(f"sample: found shape {x.shape}, expected at least two numbers in a row")
    if not np.isfinite(x).all():
        raise DataError(f"sample: found {x[np.argmin(np.isfinite(x))]}, expected finite numbers")
    if x.min() == x.max():
        raise DataError(f"sample: all {x.size} numbers equal {x[0]:g}, expected different ones")
    exponent = np.frexp(np.abs(x).max())[1]
    return float(np.ldexp(rule(np.ldexp(x, -exponent)), exponent))


def _spread(x: FloatArray, normal_iqr: float) -> float:
    """Smaller of standard deviation and scaled interquartile range, the former where that is 0."""
    sd = float(np.std(x, ddof=1))
    lower, upper = np.quantile(x, [0.25, 0.75])
    return min(sd, float(upper - lower) / normal_iqr) or sd


def _count_pairs(x: FloatArray) -> _Pairs:
    width = 1.01 * (x.max() - x.min()) / _N_CELLS
    cell = np.trunc(x / width)
    # A range of a few units in the last place may round to more cells than there are.
    histogram = np.bincount(np.minimum(cell - cell.min(), _N_CELLS - 1).astype(np.int64))
    spectrum = np.fft.rfft(histogram, 2 * _N_CELLS)
    count = np.rint(np.fft.irfft(np.abs(spectrum) ** 2, 2 * _N_CELLS)[:_N_CELLS])
    count[0] = (count[0] - x.size) / 2
    apart = np.flatnonzero(count)
    return _Pairs(x.size, (apart * width) ** 2, count[apart])


def _smallest_criterion(x: FloatArray, criterion: Callable[[float, _Pairs], float]) -> float:
    widest = _OVERSMOOTHED * np.std(x, ddof=1) * x.size ** (-1 / 5)
    return minimize_scalar(
        criterion,
        bounds=(0.1 * widest, widest),
        args=(_count_pairs(x),),
        method="bounded",
        options={"xatol": 0.01 * widest},
    ).x


def _curvature(h: float, pairs: _Pairs) -> float:
    """Kernel estimate of the integrated squared second derivative of the density."""
    scaled = pairs.distance2 / (h * h)
    total = 2 * pairs.number @ (np.exp(-scaled / 2) * ((scaled - 6) * scaled + 3)) + 3 * pairs.n
    return float(total / (pairs.n * (pairs.n - 1) * h**5 * np.sqrt(2 * np.pi)))


def _third_derivative(h: float, pairs: _Pairs) -> float:
    """Kernel estimate of the integrated squared third derivative of the density."""
    scaled = pairs.distance2 / (h * h)
    polynomial = ((scaled - 15) * scaled + 45) * scaled - 15
    total = 15 * pairs.n - 2 * pairs.number @ (np.exp(-scaled / 2) * polynomial)
    return float(total / (pairs.n * (pairs.n - 1) * h**7 * np.sqrt(2 * np.pi)))


def _solve_the_equation(x: FloatArray) -> float:
    pairs, n, scale = _count_pairs(x), x.size, _spread(x, 1.349)
    # Both estimates are positive: their kernels have nonnegative Fourier transforms.
    second = _curvature(1.24 * scale * n ** (-1 / 7), pairs)
    third = _third_derivative(1.23 * scale * n ** (-1 / 9), pairs)
    ratio = 1.357 * (second / third) ** (1 / 7)

    def excess(h: float) -> float:
        curvature = _curvature(ratio * h ** (5 / 7), pairs)
        return (2 * np.sqrt(np.pi) * n * curvature) ** (-1 / 5) - h

    upper = _OVERSMOOTHED * scale * n ** (-1 / 5)
    lower = 0.1 * upper
    # A root exists, as the excess is positive near 0 and negative far out. Which one is found can
    # depend on the bracket, so it widens as R's does: above and below in turn.
    above = True
    while excess(lower) * excess(upper) > 0:
        lower, upper = (lower, 1.2 * upper) if above else (0.8 * lower, upper)
        above = not above
    return brentq(excess, lower, upper, xtol=1e-12 * upper, rtol=1e-12)
