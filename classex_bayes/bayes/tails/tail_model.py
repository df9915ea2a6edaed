r"""The model of local tails: the law of p given a depth, its parameters, and their prior.

A wrong class is nearer than the true one with probability

.. math:: \log p = \log \frac{j}{k - 1} + c - v e^{-\tau z} (b q + \delta (q - q_0)_+)
          + \frac{z}{\sqrt{j}}, \qquad z \sim N(0, 1),

where q is the depth of `classex_bayes.bayes.tails.depths` among k classes. For exact power laws c,
:math:`\delta` and :math:`\tau` are 0, and b is 1. docs/background.md explains the parameters.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import betaincinv, expit, logit

from classex_bayes.arguments import number, positive, probability
from classex_bayes.bayes.tails.depths import LARGEST_DEPTH, N_NEAREST
from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray

_SLOPE_FREEDOM = 3.0
_LARGEST_LOG_SPREAD = 1.0  # far out in the prior; slopes of such instances would overflow
# Parameters of a fit and their descriptions.
TAIL_PARAMETERS = {
    "level": "c: level of log p, with p the probability that a wrong class is nearer; 0 for power "
    "laws",
    "slope": "b: rate at which log p falls with the depth; 1 for power laws",
    "look_alikes": "share of the instances that have look-alikes",
    "slope_spread": "tau: standard deviation of the log slopes of instances",
    "slope_change": "delta: change of the slope at depths with hardly any better classes",
}
# Depths at which the likelihood and laws are tabulated.
DEPTHS = np.linspace(0.0, LARGEST_DEPTH, 151)
LARGEST_LOG_P, _SMALLEST_SHARE = -0.02, 1e-12
# Enough for means over instances: with tau = 0.3 the error is .001 in an accuracy.
_SCATTER_NODES, _HERMITE = np.polynomial.hermite_e.hermegauss(15)
_SCATTER_WEIGHT = _HERMITE / _HERMITE.sum()
# Depth at which p is about e^-2 / k1. Beyond it better classes are too rare to estimate the slope.
_INFORMATIVE_DEPTH = np.log(N_NEAREST) + 2.0
_SHORTER = (np.arange(10) + 0.5) / 10
N_NODES = _SCATTER_NODES.size + _SHORTER.size
# Levels of the quantiles that represent the law of p given n_better, and how many values are tried
# between bounds.
_LEVELS, _WITHIN_BOUNDS = (np.arange(15) + 0.5) / 15, 20


class TailParameters(NamedTuple):
    """Values of the parameters, (n,) each; see `TAIL_PARAMETERS`."""

    level: FloatArray
    slope: FloatArray
    look_alikes: FloatArray
    slope_spread: FloatArray
    slope_change: FloatArray

    @classmethod
    def of_points(cls, points: FloatArray) -> Self:
        """Parameters of points (n, 5), in which share and spread have no limits."""
        level, slope, odds, log_spread, change = points.T
        spread = np.exp(np.minimum(log_spread, _LARGEST_LOG_SPREAD))
        return cls(level, slope, expit(odds), spread, change)

    @property
    def points(self) -> FloatArray:
        """Inverse of `of_points`."""
        odds, log_spread = logit(self.look_alikes), np.log(self.slope_spread)
        return np.column_stack([self.level, self.slope, odds, log_spread, self.slope_change])

    def at(self, places: Any) -> "TailParameters":
        """Some of the values."""
        return TailParameters(*(values[places] for values in self))

    def beyond(self, errors: FloatArray) -> "TailParameters":
        r"""Parameters among all classes and more, with the slope :math:`b + \varepsilon`."""
        return self._replace(slope=self.slope + errors)


@dataclass(frozen=True)
class TailPrior:
    r"""Independent priors of the parameters of the tails of scores.

    docs/background.md has the law of the probability p that a wrong class scores better than the
    true class of an instance, given its depth q. Halves of the classes inform c, b, :math:`\pi`,
    :math:`\tau` and :math:`\delta`, but not :math:`\varepsilon`, by which the slope differs among
    all classes and more.

    Parameters
    ----------
    level, level_sd : float
        Mean and standard deviation of the level c, which is normal.
    slope, slope_sd : float
        Centre and scale of the slope b. It has Student's t law with 3 degrees of freedom, which
        allows for exponents that change with the distance.
    look_alikes, look_alikes_sd : float
        Median of the share :math:`\pi` of instances with look-alikes, and standard deviation of its
        logit, which is normal.
    slope_spread, slope_spread_sd : float
        Median of the spread :math:`\tau` of the slopes of instances, and standard deviation of its
        logarithm, which is normal.
    slope_change, slope_change_sd : float
        Mean and standard deviation of the change :math:`\delta` of the slope beyond q = 2 + log 4,
        which is normal.
    slope_error, slope_error_sd : float
        Mean and standard deviation of :math:`\varepsilon`, which is normal.

    Raises
    ------
    DataError
        A parameter is not a finite number, a median or standard deviation is not positive, or the
        share is not below 1.

    Examples
    --------
    >>> TailPrior(slope_change=0, slope_change_sd=0.1).slope_change_sd
    0.1
    """

    level: float = -0.2
    level_sd: float = 0.12
    slope: float = 1.15
    slope_sd: float = 0.25
    look_alikes: float = 0.004
    look_alikes_sd: float = 1.8
    slope_spread: float = 0.03
    slope_spread_sd: float = 0.6
    slope_change: float = 0.0
    slope_change_sd: float = 0.25
    slope_error: float = -0.02
    slope_error_sd: float = 0.04

    def __post_init__(self) -> None:
        """Check and convert the parameters."""
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if name.endswith("_sd") or name == "slope_spread":
                checked = positive(value, name)
            elif name == "look_alikes":
                checked = probability(value, name)
            else:
                checked = number(value, name, -np.inf)
            object.__setattr__(self, name, checked)

    @cached_property
    def mean(self) -> FloatArray:
        r"""Means of points: c, b, :math:`logit \pi`, :math:`\log \tau` and :math:`\delta`."""
        odds, log_spread = logit(self.look_alikes), np.log(self.slope_spread)
        return np.array([self.level, self.slope, odds, log_spread, self.slope_change])

    @cached_property
    def scale(self) -> FloatArray:
        """Scales (5,) of points."""
        spreads = self.look_alikes_sd, self.slope_spread_sd, self.slope_change_sd
        return np.array([self.level_sd, self.slope_sd, *spreads])

    def log_density(self, points: FloatArray) -> FloatArray:
        """Log densities (n,) of points (n, 5), up to a constant."""
        level, slope, *others = (((points - self.mean) / self.scale) ** 2).T
        of_slope = (_SLOPE_FREEDOM + 1) * np.log1p(slope / _SLOPE_FREEDOM)
        return -0.5 * (level + of_slope + sum(others))

    def register(self) -> dict[str, Any]:
        """Register the parameters in the current PyMC model; return them by name."""
        import pymc as pm
        from pymc.distributions.transforms import logodds

        share, spread = logit(self.look_alikes), np.log(self.slope_spread)
        slope = {"nu": _SLOPE_FREEDOM, "mu": self.slope, "sigma": self.slope_sd}
        return {
            "level": pm.Normal("level", self.level, self.level_sd),
            "slope": pm.StudentT("slope", **slope),
            "look_alikes": pm.LogitNormal(
                "look_alikes", share, self.look_alikes_sd, default_transform=logodds
            ),
            "slope_spread": pm.LogNormal("slope_spread", spread, self.slope_spread_sd),
            "slope_change": pm.Normal("slope_change", self.slope_change, self.slope_change_sd),
            "slope_error": pm.Normal("slope_error", self.slope_error, self.slope_error_sd),
        }

    def draw_errors(self, size: int, rng: np.random.Generator) -> FloatArray:
        r"""Draw :math:`\varepsilon`.

        Parameters
        ----------
        size : int
            Number of draws.
        rng : Generator
            Source of random numbers.

        Returns
        -------
        array of shape (size,)
        """
        return self.slope_error + self.slope_error_sd * rng.standard_normal(size)

    def log_density_of_errors(self, errors: FloatArray) -> FloatArray:
        r"""Log densities (n,) of :math:`\varepsilon`, up to a constant."""
        return -0.5 * ((errors - self.slope_error) / self.slope_error_sd) ** 2


def drawn_parameters(prior: TailPrior, size: int, rng: np.random.Generator) -> TailParameters:
    """Draws (size,) of the parameters among half of the classes from their prior."""
    standard = rng.standard_normal((size, prior.mean.size))
    standard[:, 1] *= np.sqrt(_SLOPE_FREEDOM / rng.chisquare(_SLOPE_FREEDOM, size))
    return TailParameters.of_points(prior.mean + prior.scale * standard)


def checked_tail_prior(prior: Any) -> TailPrior:
    """Return the prior. Raise DataError if it is no `TailPrior`."""
    if not isinstance(prior, TailPrior):
        raise DataError(f"tail_prior: expected a TailPrior, found {prior!r}")
    return prior


def mean_log_p(parameters: TailParameters, n_wrong: float) -> tuple[FloatArray, FloatArray]:
    r"""Log p (n, 1) at depth 0, and its decline (n, 151) to the depths `DEPTHS`, without scatter.

    The slope is b, and :math:`b + \delta` beyond the depth :math:`q_0`. p never rises with depth.
    """
    slope = np.maximum(parameters.slope, 0.0)[:, None]
    change = np.maximum(parameters.slope_change[:, None], -slope)
    decline = slope * DEPTHS + change * np.maximum(DEPTHS - _INFORMATIVE_DEPTH, 0.0)
    return np.log(N_NEAREST / n_wrong) + parameters.level[:, None], decline


def tail_law(
    parameters: TailParameters, n_wrong: float, scatter: FloatArray | float = N_NEAREST**-0.5
) -> tuple[FloatArray, FloatArray]:
    """Nodes of log p (n, 151, m) at `DEPTHS`, and their probabilities (n, m).

    `scatter`, of shape (n, 151) or one for all, is the factor of z in log p.
    """
    start, decline = (values[..., None] for values in mean_log_p(parameters, n_wrong))
    share = np.clip(parameters.look_alikes, _SMALLEST_SHARE, 1 - _SMALLEST_SHARE)[:, None]
    factor = np.exp(-parameters.slope_spread[:, None, None] * _SCATTER_NODES)
    usual = start - decline * factor + np.asarray(scatter)[..., None] * _SCATTER_NODES
    look_alike = start - decline * _SHORTER
    shorter = np.full(_SHORTER.size, 1 / _SHORTER.size)
    chance = np.concatenate([(1 - share) * _SCATTER_WEIGHT, share * shorter], axis=1)
    return np.minimum(np.concatenate([usual, look_alike], axis=2), LARGEST_LOG_P), chance


def symbolic_tail_law(
    parameters: Mapping[str, Any], depth: FloatArray, n_wrong: float
) -> tuple[Any, Any]:
    """`tail_law` at depths (d,) as tensors: nodes of log p (d, m), and log probabilities (m,).

    The parameters are tensors, which `TailPrior.register` returns.
    """
    import pytensor.tensor as pt

    level, slope, share, spread, change = (parameters[name] for name in TAIL_PARAMETERS)
    rate = pt.maximum(slope, 0.0)
    beyond = np.maximum(depth - _INFORMATIVE_DEPTH, 0.0)[:, None]
    decline = rate * depth[:, None] + pt.maximum(change, -rate) * beyond
    scatter = _SCATTER_NODES / np.sqrt(N_NEAREST) - decline * pt.exp(-spread * _SCATTER_NODES)
    below = pt.concatenate([scatter, -decline * _SHORTER], axis=1)
    log_p = pt.minimum(np.log(N_NEAREST / n_wrong) + level + below, LARGEST_LOG_P)
    usual, look_alike = pt.log1p(-share), pt.log(share / _SHORTER.size)
    others = pt.repeat(look_alike, _SHORTER.size)
    return log_p, pt.concatenate([usual + np.log(_SCATTER_WEIGHT), others])


def law_outside(min_better: int, max_better: int, n_wrong: int) -> tuple[FloatArray, FloatArray]:
    """Nodes (m,) of log p given the number of better ones among n wrong classes; probabilities.

    With v better classes the law of p is Beta(v + 1/2, n - v + 1/2), the posterior under Jeffreys'
    prior. If v is known up to an interval, the law is a mixture in which log(v + 1/2) is uniform.
    """
    number = 1 if min_better == max_better else _WITHIN_BOUNDS
    shape = np.geomspace(min_better + 0.5, max_better + 0.5, number)[:, None]
    log_p = np.log(betaincinv(shape, n_wrong + 1 - shape, _LEVELS)).ravel()
    return log_p, np.full(log_p.size, 1 / log_p.size)
