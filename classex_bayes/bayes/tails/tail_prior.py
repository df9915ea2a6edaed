"""TailPrior: the prior of the tails of scores."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, logit

from classex_bayes.arguments import number, positive, probability
from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray

SLOPE_FREEDOM = 3.0
_LARGEST_LOG_SPREAD = 1.0  # far out in the priors; slopes of such instances would overflow


@dataclass(frozen=True)
class TailPrior:
    r"""Independent priors of the parameters of the tails of scores.

    `classex_bayes.bayes.tails.tail_calibration` has the law of the probability p that a wrong class
    scores better than the true class of an instance, given its depth q. Halves of the classes
    determine its parameters c, b, :math:`\pi`, :math:`\tau` and :math:`\delta`. Among all classes
    and more, the slope is :math:`b + \varepsilon`. The pilot says nothing about
    :math:`\varepsilon`.

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
    slope_sd: float = 0.5
    look_alikes: float = 0.004
    look_alikes_sd: float = 1.8
    slope_spread: float = 0.2
    slope_spread_sd: float = 0.7
    slope_change: float = -0.25
    slope_change_sd: float = 0.6
    slope_error: float = -0.03
    slope_error_sd: float = 0.07

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
        of_slope = (SLOPE_FREEDOM + 1) * np.log1p(slope / SLOPE_FREEDOM)
        return -0.5 * (level + of_slope + sum(others))

    def register(self) -> dict[str, Any]:
        """Register the parameters in the current PyMC model; return them by name."""
        import pymc as pm
        from pymc.distributions.transforms import logodds

        share, spread = logit(self.look_alikes), np.log(self.slope_spread)
        slope = {"nu": SLOPE_FREEDOM, "mu": self.slope, "sigma": self.slope_sd}
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

    def log_density_of_errors(self, errors: FloatArray) -> FloatArray:
        r"""Log densities (n,) of :math:`\varepsilon`, up to a constant."""
        return -0.5 * ((errors - self.slope_error) / self.slope_error_sd) ** 2


# Distances of a known origin have slopes of 1.05 to 1.3 on the populations of docs/corpus.md, but
# for one, with fragments of genes. Other scores are distances only roughly: each instance may have
# an origin of its own, as with logits, so that slopes differ between instances.
KNOWN_ORIGIN = TailPrior(
    slope=1.1,
    slope_sd=0.15,
    slope_spread=0.02,
    slope_spread_sd=0.5,
    slope_change=-0.1,
    slope_change_sd=0.15,
    slope_error=-0.02,
    slope_error_sd=0.03,
)
UNKNOWN_ORIGIN = TailPrior()


def draw_errors(prior: TailPrior, size: int, rng: np.random.Generator) -> FloatArray:
    r"""Draws (size,) of :math:`\varepsilon` from a prior."""
    return prior.slope_error + prior.slope_error_sd * rng.standard_normal(size)


def with_errors(points: FloatArray, errors: FloatArray) -> FloatArray:
    r"""Points (n, 5) with the slope :math:`b + \varepsilon`, from errors (n,)."""
    return points + np.outer(errors, [0.0, 1.0, 0.0, 0.0, 0.0])


def checked_tail_prior(prior: Any) -> None:
    """Raise DataError if it is neither a `TailPrior` nor None."""
    if not (prior is None or isinstance(prior, TailPrior)):
        raise DataError(
            f"tail_prior: expected a TailPrior, or None for the default, found {prior!r}"
        )


def named_parameters(points: FloatArray) -> dict[str, FloatArray]:
    """Parameters (n,) by name, from points (n, 5) of a `TailPrior`."""
    level, slope, odds, _, change = points.T
    spread = slope_spread(points)[:, 0]
    shares = {"look_alikes": expit(odds), "slope_spread": spread}
    return {"level": level, "slope": slope, **shares, "slope_change": change}


def points_of(parameters: Mapping[str, FloatArray]) -> FloatArray:
    """Inverse of `named_parameters`."""
    odds, log_spread = logit(parameters["look_alikes"]), np.log(parameters["slope_spread"])
    plain = [parameters[name] for name in ("level", "slope", "slope_change")]
    return np.column_stack([*plain[:2], odds, log_spread, plain[2]])


def slope_spread(points: FloatArray) -> FloatArray:
    r""":math:`\tau`, shape (n, 1), from points (n, 5) of a `TailPrior`."""
    return np.exp(np.minimum(points[:, 3:4], _LARGEST_LOG_SPREAD))
