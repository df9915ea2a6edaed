"""Ten laws of the favorability with different shapes, for stress tests."""

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, log_ndtr, ndtr, ndtri, poch, stdtr

from classex_bayes.arguments import number, numbers
from classex_bayes.simulate.laws import FavorabilityLaw, IndependentInstances, mean_power
from classex_bayes.typing import FloatArray

# With larger parameters the gamma functions of `BetaLaw` overflow before k = 1e12.
_LARGEST_A, _LARGEST_B = 1e6, 20.0
# The largest of up to 1e12 standard normals lies outside with a probability below 1e-18.
_LOWEST, _HIGHEST = -9.0, 12.0
# The error of the trapezoid rule is about exp(-2 pi w / step). Here w is the distance of the
# integrand's singularity from the real line, which is at least the scale of the Student law.
_LARGEST_STEP, _STEP_IN_SCALES, _SMALLEST_SCALE = 0.03, 0.15, 0.01
_DUPLICATES = 1e-3


@dataclass(frozen=True)
class BetaLaw(IndependentInstances):
    r"""Test instances whose favorability is a beta variable times a constant c <= 1.

    With :math:`U^* = c B`, :math:`B \sim \mathrm{Beta}(a, b)`,

    .. math:: AGA_k = c^{k-1} \frac{B(a + k - 1, b)}{B(a, b)},

    which falls like :math:`k^{-b}` if c = 1. If a share 1 - c of all classes are near-duplicates of
    the true class and always win, no U* is above c < 1. Beyond 1 / (1 - c) classes the accuracy
    then falls exponentially.

    Parameters
    ----------
    a, b : float
        Parameters of the beta law; `DataError` unless in (0, 1,000,000] and (0, 20].
    highest : float, default 1
        Supremum c of the favorability; `DataError` unless in (0, 1].

    Examples
    --------
    >>> BetaLaw(2.0, 0.05).accuracy([2, 100, 10_000]).round(3)
    array([0.976, 0.812, 0.645])
    >>> BetaLaw(2.0, 0.05, highest=0.999).accuracy([2, 100, 10_000]).round(3)
    array([0.975, 0.735, 0.   ])
    """

    a: float
    b: float
    highest: float = 1.0

    def __post_init__(self) -> None:
        """Reject parameters outside their range."""
        _up_to("a", self.a, _LARGEST_A)
        _up_to("b", self.b, _LARGEST_B)
        _up_to("highest", self.highest, 1.0)

    def _chances_to_lose(self, n: int, rng: np.random.Generator) -> FloatArray:
        return 1 - self.highest * rng.beta(self.a, self.b, n)

    def _accuracy(self, k: FloatArray) -> FloatArray:
        # Ratios of gamma functions, because differences of log beta functions have 9 digits only.
        beta = poch(self.a, self.b) / poch(self.a + k - 1, self.b)
        return self.highest ** (k - 1) * beta

    def _discriminability(self, u: FloatArray) -> FloatArray:
        return betainc(self.a, self.b, np.minimum(u / self.highest, 1.0))


def _up_to(name: str, value: float, largest: float) -> None:
    """Raise unless `value` is positive and not above `largest`."""
    numbers(
        [value], name, f"a number in (0, {largest:,.0f}]", lambda x: (x > 0) & (x <= largest), 1
    )


@dataclass(frozen=True)
class StudentLaw(IndependentInstances):
    r"""Test instances whose Z = Phi^-1(U*) has heavy tails: a Student variable, scaled and shifted.

    :math:`Z = m + s T`, and T has :math:`\nu` degrees of freedom. An instance wins if Z is above
    the largest of k - 1 standard normal variables:

    .. math:: AGA_k = \int P(Z > z) (k - 1) \Phi(z)^{k-2} \varphi(z) \, dz

    Parameters
    ----------
    location : float, default 3
        Median m of Z; `DataError` unless finite.
    scale : float, default 0.7
        Scale s of Z; `DataError` unless at least 0.01.
    df : float, default 3
        Degrees of freedom :math:`\nu`; `DataError` unless at least 1. With 1 it is the Cauchy law.

    Examples
    --------
    >>> StudentLaw(location=3.0, scale=0.7, df=3.0).accuracy([2, 100, 10_000]).round(3)
    array([0.977, 0.707, 0.171])
    """

    location: float = 3.0
    scale: float = 0.7
    df: float = 3.0

    def __post_init__(self) -> None:
        """Reject parameters outside their range."""
        numbers([self.location], "location", "a finite number", np.isfinite, 1)
        number(self.scale, "scale", _SMALLEST_SCALE, whole=False)
        number(self.df, "df", 1, whole=False)

    def _chances_to_lose(self, n: int, rng: np.random.Generator) -> FloatArray:
        return ndtr(-self.location - self.scale * rng.standard_t(self.df, n))

    def _accuracy(self, k: FloatArray) -> FloatArray:
        step = min(_LARGEST_STEP, _STEP_IN_SCALES * self.scale)
        z = np.arange(_LOWEST, _HIGHEST, step)
        # `mean_power` has one factor Phi more than the density of the maximum.
        density = np.exp(-0.5 * z**2 - log_ndtr(z)) * (step / np.sqrt(2 * np.pi))
        above = 1 - self._below(z)
        return (k - 1) * mean_power(log_ndtr(z), density * above, k)

    def _discriminability(self, u: FloatArray) -> FloatArray:
        return self._below(ndtri(u))

    def _below(self, z: FloatArray) -> FloatArray:
        """P(Z <= z)."""
        return stdtr(self.df, (z - self.location) / self.scale)


def zoo() -> dict[str, IndependentInstances]:
    """Ten laws of the favorability for stress tests, by name.

    In six laws Z = Phi^-1(U*) is normal, bimodal, skewed to the left or to the right, heavy-tailed
    or in two narrow groups. In the other four U* is a beta variable, has an atom at 0 (mislabelled
    test items) or at 1, or is never above 0.999, because every class has near-duplicates.

    Returns
    -------
    dict of str to law
        Each law has `accuracy`, `discriminability` and `sample`. Accuracies on 100 classes are
        between 0.5 and 0.85.

    Examples
    --------
    >>> for name, law in zoo().items():
    ...     print(f"{name:17s}", *(f"{value:.3f}" for value in law.accuracy([100, 1000, 10_000])))
    normal            0.678 0.412 0.208
    bimodal           0.643 0.580 0.395
    left-skewed       0.705 0.514 0.272
    right-skewed      0.667 0.378 0.252
    heavy-tailed      0.707 0.394 0.171
    beta              0.812 0.724 0.645
    atom at 0         0.710 0.474 0.253
    atom at 1         0.575 0.446 0.409
    near-duplicates   0.735 0.266 0.000
    two narrow groups 0.544 0.392 0.059
    """
    return {
        "normal": FavorabilityLaw((3.0,), (1.0,)),
        "bimodal": FavorabilityLaw((1.0, 4.0), (0.5, 0.5), (0.35, 0.65)),
        "left-skewed": FavorabilityLaw((3.8, 2.8, 1.2), (0.5, 0.8, 1.2), (0.5, 0.3, 0.2)),
        "right-skewed": FavorabilityLaw((2.4, 3.4, 5.0), (0.4, 0.8, 1.3), (0.5, 0.3, 0.2)),
        "heavy-tailed": StudentLaw(location=3.0, scale=0.7, df=3.0),
        "beta": BetaLaw(2.0, 0.05),
        "atom at 0": FavorabilityLaw((3.3,), (0.9,), atom_at_zero=0.1),
        "atom at 1": FavorabilityLaw((2.0,), (0.8,), atom_at_one=0.4),
        "near-duplicates": BetaLaw(2.0, 0.05, highest=1 - _DUPLICATES),
        "two narrow groups": FavorabilityLaw((2.0, 3.5), (0.1, 0.1)),
    }
