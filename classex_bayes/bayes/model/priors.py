"""Priors on the weights of the radial basis, and so on D(u).

A fit does not import PyMC. Only methods that build a graph do.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import xarray as xr
from scipy import stats

from classex_bayes.arguments import how_many, is_real
from classex_bayes.core.basis import RadialBasis
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import by_fields, call
from classex_bayes.typing import FloatArray

# The interval of the sine functions is longer than that of the knots by this factor, because the
# approximate Gaussian process is 0 at the ends of its interval.
_REACH = 1.15
# Standard deviation of the weight under which the deviation is orthogonal to the quadratic.
_WEIGHT_SD = 4.0
# Smallest variance of a group in squares of the bandwidth h. A narrower group would jump from knot
# to knot, and so would the posterior if the data do not determine the groups.
LEAST_VARIANCE = 0.5
# Powers nearer to 0 are expanded in a series about the logarithm.
NEARLY_LOG = 1e-4
# Ranges of the fields. Wider laws overflow in double precision, and narrower ones are nearly
# constants. Scales that may be 0 then have no parameter.
_SCALES = ("location_sd", "scale", "deviation", "separation", "imbalance", "tail_sd", "length")
_RANGES = dict.fromkeys(_SCALES, (1e-3, 1e3)) | {
    "lower": (-100.0, 100.0),
    "upper": (-100.0, 100.0),
    "bandwidth": (1e-3, 1e3),
    "location": (-100.0, 100.0),
    "scale_log_sd": (1e-3, 5.0),
    "scale_freedom": (2.0, 1e9),
    "tail": (-10.0, 10.0),
}
_MAY_BE_ZERO = ("deviation", "separation", "imbalance", "tail_sd")
# Dimensions of parameters: the knots and the functions of the deviation.
KNOT, FUNCTION = "knot", "function"


@runtime_checkable
class Prior(Protocol):
    r"""A law of the mixture weights on the knots of a radial basis.

    Any object with the members `basis` and `log_weights` is a prior. Make the class of your own
    prior a frozen dataclass. Then it has equality and a hash, by which models recognise the prior
    of their fit and reuse its compiled model. It also has fields that describe it, which `save`
    needs.

    Attributes
    ----------
    basis : RadialBasis
        Knots :math:`t_l` and bandwidth h: :math:`Z = \Phi^{-1}(U^*)` is a mixture of
        :math:`N(t_l, h^2)`. From -4 to 8 is enough for up to 10^12 classes. Ranks need steps of at
        most 0.5, and scores steps of at most 0.15. With wider steps scores are left out, with a
        note.
    descriptions : mapping from str to str, optional
        Description of each parameter. It becomes the attribute "description" of the draws in
        `idata`, which shows the parameters in this order.

    See Also
    --------
    classex_bayes.MixturePrior : The prior of this package.

    Notes
    -----
    nutpie compiles your own prior once in a process, for some seconds, and longer the first time
    on a machine. PyTensor keeps its functions on disk, but nutpie compiles the two functions around
    them anew. Files have the name and the fields of a prior but not its code. `classex_bayes.load`
    finds classes that are in the dictionary `classex_bayes.bayes.model.priors.PRIORS`, by their
    names. Otherwise pass your own prior to it.

    Examples
    --------
    A Laplace law of Z:

    >>> from dataclasses import dataclass
    >>> import classex_bayes as cb
    >>> from classex_bayes.core import RadialBasis
    >>> @dataclass(frozen=True)
    ... class LaplacePrior:
    ...     location: float = 2.5
    ...     @property
    ...     def basis(self):
    ...         return RadialBasis.regular(-4, 8, 0.15)
    ...     def log_weights(self):
    ...         import pymc as pm
    ...         centre = pm.Normal("centre", self.location, 2)
    ...         scale = pm.HalfNormal("scale", 1)
    ...         return -abs(self.basis.knots - centre) / scale
    >>> task = cb.SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], range(50), n_classes=50)
    >>> model = cb.BayesianExtrapolator(LaplacePrior(location=3.0)).fit(
    ...     task, sampler={"draws": 500, "tune": 500, "chains": 2}, random_seed=1, progressbar=False
    ... )
    >>> list(model.idata["posterior"].data_vars)
    ['accuracy', 'centre', 'scale']
    >>> from tempfile import mkdtemp
    >>> path = cb.save(model, mkdtemp() + "/laplace.nc")
    >>> bool(cb.load(path, prior=LaplacePrior(location=3.0)).predict(500).mean[500] > 0.5)
    True
    """

    @property
    def basis(self) -> RadialBasis:
        """Knots and bandwidth of the weights."""

    def log_weights(self) -> Any:
        """Register the parameters in the current PyMC model.

        Returns
        -------
        TensorVariable of shape (n_knots,)
            Logarithms of the weights, up to a constant.
        """


@dataclass(frozen=True, kw_only=True, repr=False)
class MixturePrior:
    r"""Prior with one or two normal groups of instances and a smooth deviation.

    .. math::

        \log w_l = \log\left(p \, N(y_l; -(1 - p) \Delta, \tau_1^2)
            + (1 - p) \, N(y_l; p \Delta, \tau_2^2)\right)
            + a \log(1 + t_l^+) + g(t_l) - \text{logsumexp},

    .. math::

        y_l = \frac{T_a(t_l) - T_a(\mu)}{T_a'(\mu)}, \quad
        T_a(t) = \frac{(1 + t)^{1 + a} - 1}{1 + a} \; (t > 0), \; t \; (t \le 0), \quad
        \tau_{1, 2} = \sqrt{\tau^2 + h^2 / 2} \, e^{\pm b}.

    The tail a determines how accuracy falls at large k. Let :math:`1 - U^*` be the probability that
    a random class is better than the true one. Then :math:`-\log_2 (1 - U^*)` is its identifying
    information in bits.

    - With a = 0 the groups are normal in :math:`Z = \Phi^{-1}(U^*)`. One group is the two-parameter
      family with mean mu and variance tau^2 + 1.5 h^2.
    - With a = 1 the groups are nearly normal in bits, because :math:`T_1(Z)` is nearly linear in
      bits. The probit of the accuracy is nearly a straight line in log k.
    - With a < 0 some instances almost never have a better class, and the curve flattens.

    The scale y has the unit of Z at mu. On it, mu is the mean over both groups, p the share of the
    harder group, and Delta the distance between the means of the groups. The deviation g is a
    squared-exponential Gaussian process in 12 sine functions. It is orthogonal to 1, t and t^2, so
    that mu and tau keep their meaning. It adds uncertainty beyond the range that k1 classes
    resolve.

    Parameters
    ----------
    lower, upper, bandwidth : float
        Knots from `lower` to `upper` in steps of the bandwidth h.
    location, location_sd : float
        mu ~ N(location, location_sd^2). Z = 3 is 9.5 bits.
    scale, scale_log_sd : float
        log tau has a Student t law with centre log(scale) and scale `scale_log_sd`.
    scale_freedom : float
        Degrees of freedom of that law. With 3, very narrow groups are possible. With 1e6, tau is
        log-normal.
    deviation : float
        sigma ~ HalfNormal(deviation) is the scale of g. With 0 there is no g, no
        second group and no tail. The prior is then the two-parameter family.
    separation : float
        Delta ~ HalfNormal(separation), and p is uniform. With 0 there is a single group.
    imbalance : float
        b ~ N(0, imbalance^2), half the log ratio of the scales of the two groups.
    tail, tail_sd : float
        a ~ N(tail, tail_sd^2). If `tail_sd` is 0, a is fixed. If `deviation` is 0, a is 0.
    length : float
        Length scale of g.
    n_functions : int
        Number of sine functions.

    Raises
    ------
    DataError
        A parameter is not a number, or outside of its range.

    Notes
    -----
    The defaults were chosen on real populations by proper scores; docs/calibration.md says how.
    The bandwidth is 0.1, because k1 = 1000 classes resolve groups narrower than 0.25. The length
    scale is fixed, because the ranks say little about it and chains got stuck when it was sampled.
    The weight under which g is orthogonal to the quadratic is as wide as the knots (sd 4). A
    narrower weight lets g grow at the ends of the knots.

    References
    ----------
    Zheng, thesis (2017), Lemma 1 (two-parameter family); Yeo and Johnson, Biometrika 87, 2000 (T);
    Riutort-Mayol et al., Statistics and Computing 33, 2023 (Gaussian processes in sine functions).

    Examples
    --------
    >>> MixturePrior(deviation=0).basis.knots.size
    121
    """

    descriptions: ClassVar[Mapping[str, str]] = {
        "mu": "mean of Z = Phi^-1(U*) over both groups",
        "tau": "scale of the groups, in the unit of Z at mu",
        "share": "share of the instances that are in the harder group",
        "separation": "distance between the means of the two groups",
        "imbalance": "half the log ratio of the scales of the harder and the easier group",
        "tail": "shape of the tail: 0 normal in Z, 1 nearly normal in bits",
        "sigma": "scale of the smooth deviation from the groups",
        "z": "standard normal coefficients of the deviation",
    }
    lower: float = -4.0
    upper: float = 8.0
    bandwidth: float = 0.1
    location: float = 3.0
    location_sd: float = 1.8
    scale: float = 1.2
    scale_log_sd: float = 0.35
    scale_freedom: float = 3.0
    deviation: float = 0.8
    separation: float = 1.5
    imbalance: float = 0.25
    tail: float = 0.4
    tail_sd: float = 0.4
    length: float = 1.2
    n_functions: int = 12

    def __post_init__(self) -> None:
        """Validate numbers, and make them plain floats, which files can hold."""
        for field in fields(self):
            if field.name in _RANGES:
                value, (least, most) = getattr(self, field.name), _RANGES[field.name]
                zero = field.name in _MAY_BE_ZERO
                if not is_real(value) or not (least <= value <= most or (zero and value == 0)):
                    raise DataError(
                        f"{field.name}: expected {'0 or ' if zero else ''}a number from {least:g} "
                        f"to {most:g}, found {value!r}"
                    )
                object.__setattr__(self, field.name, float(value))
        object.__setattr__(self, "n_functions", how_many(self.n_functions, "n_functions", 4))
        if not self.upper - self.lower >= 4 * self.bandwidth:
            raise DataError(
                f"lower, upper, bandwidth: expected a range of at least 4 bandwidths, found "
                f"{self.lower}..{self.upper}"
            )

    __repr__ = by_fields

    def __str__(self) -> str:
        """Return the call with the numbers of all fields."""
        return call(type(self).__name__, vars(self), {})

    @property
    def basis(self) -> RadialBasis:
        """Knots and bandwidth of the weights."""
        return RadialBasis.regular(self.lower, self.upper, self.bandwidth)

    @property
    def has_groups(self) -> bool:
        """Whether there are two groups. Without a deviation there is one."""
        return self.deviation > 0 and self.separation > 0

    @property
    def has_tail(self) -> bool:
        """Whether the tail may differ from 0. Without a deviation it is 0."""
        return self.deviation > 0 and (self.tail != 0 or self.tail_sd > 0)

    def log_weights(self) -> Any:
        """Register the groups' parameters and the deviation in the current PyMC model."""
        import pymc as pm
        import pytensor.tensor as pt
        from pymc.distributions import transforms as pm_transforms

        knots = self.basis.knots
        mu = pm.Normal("mu", self.location, self.location_sd)
        law = (self.scale_freedom, np.log(self.scale), self.scale_log_sd)
        tau = pm.CustomDist("tau", *law, dist=_log_student, transform=pm_transforms.log)
        width = pt.sqrt(tau**2 + LEAST_VARIANCE * self.bandwidth**2)
        groups: dict[str, Any] = {}
        if self.has_groups:
            groups["share"] = pm.Beta("share", 1.0, 1.0)
            groups["separation"] = pm.HalfNormal("separation", self.separation)
            if self.imbalance:
                groups["imbalance"] = pm.Normal("imbalance", 0.0, self.imbalance)
        tail: Any = pt.as_tensor(self.tail if self.has_tail else 0.0)
        if self.has_tail and self.tail_sd > 0:
            tail = pm.Normal("tail", self.tail, self.tail_sd)
        stretched = yeo_johnson(knots, tail) - yeo_johnson(mu, tail)
        stretched /= slope(mu, tail)
        logs = (
            self._two_groups(stretched, width, **groups)
            if groups
            else -0.5 * (stretched / width) ** 2
        )
        logs = logs + pt.log(slope(knots, tail))
        if self.deviation > 0:
            sigma = pm.HalfNormal("sigma", self.deviation)
            functions = self.deviations()
            pm.modelcontext(None).add_coord(FUNCTION, range(functions.shape[1]))
            z = pm.Normal("z", 0.0, 1.0, dims=FUNCTION)
            logs = logs + sigma * pt.dot(functions, z)
        return logs

    def _two_groups(
        self, stretched: Any, width: Any, share: Any, separation: Any, imbalance: Any = 0.0
    ) -> Any:
        """Log density of the mixture of the two groups, up to a constant."""
        import pytensor.tensor as pt

        ratio = pt.exp(imbalance)
        harder = (stretched + (1 - share) * separation) / (width * ratio)
        easier = (stretched - share * separation) / width * ratio
        return pt.logaddexp(
            pt.log(share / ratio) - 0.5 * harder**2,
            pt.log1p(-share) + pt.log(ratio) - 0.5 * easier**2,
        )

    def deviations(self) -> FloatArray:
        """Functions on the knots, (m, n_functions - 3), whose normal combinations are g / sigma.

        This is the Gaussian process given that it is orthogonal to 1, t and t^2. Its coefficients
        are standard normal, so the functions span the null space of the three inner products.
        """
        knots = self.basis.knots
        middle, half = (self.lower + self.upper) / 2, (self.upper - self.lower) / 2
        reach = _REACH * half
        frequency = np.pi * np.arange(1, self.n_functions + 1) / (2 * reach)
        density = np.sqrt(2 * np.pi) * self.length * np.exp(-0.5 * (self.length * frequency) ** 2)
        functions = np.sin(frequency * (knots[:, None] - middle + reach))
        functions *= np.sqrt(density / reach)
        weight = np.exp(-0.5 * ((knots - self.location) / _WEIGHT_SD) ** 2)[:, None]
        products = (weight * np.vander((knots - middle) / half, 3)).T @ functions
        return functions @ np.linalg.svd(products)[2][3:].T


# Priors that `load` makes again, by the names of their classes.
PRIORS: dict[str, Callable[..., Prior]] = {MixturePrior.__name__: MixturePrior}


def log_densities(prior: MixturePrior, draws: xr.Dataset) -> xr.Dataset:
    """Log prior density of every parameter at draws, as `pymc.stats.compute_log_prior` has it.

    PyMC would compile the same densities, which takes longer than a fit.
    """
    log_tau = np.log(draws["tau"])
    scaled = (log_tau - np.log(prior.scale)) / prior.scale_log_sd
    known = {
        "mu": stats.norm(prior.location, prior.location_sd).logpdf,
        "share": np.zeros_like,
        "separation": stats.halfnorm(scale=prior.separation).logpdf,
        "imbalance": stats.norm(scale=prior.imbalance).logpdf,
        "tail": stats.norm(prior.tail, prior.tail_sd).logpdf,
        "sigma": stats.halfnorm(scale=prior.deviation).logpdf,
        "z": stats.norm.logpdf,
    }
    densities = {
        name: draws[name].copy(data=density(draws[name].values))
        for name, density in known.items()
        if name in draws
    }
    of_log = stats.t.logpdf(scaled, prior.scale_freedom) - np.log(prior.scale_log_sd)
    return xr.Dataset({**densities, "tau": of_log - log_tau})


def _log_student(freedom: Any, centre: Any, scale: Any, size: Any) -> Any:
    """Variable whose logarithm has a Student t law. PyMC derives its density."""
    import pymc as pm
    import pytensor.tensor as pt

    return pt.exp(pm.StudentT.dist(nu=freedom, mu=centre, sigma=scale, size=size))


def slope(t: Any, tail: Any) -> Any:
    """Derivative of `yeo_johnson` by t."""
    import pytensor.tensor as pt

    return pt.exp(tail * pt.log1p(pt.maximum(t, 0.0)))


def yeo_johnson(t: Any, tail: Any) -> Any:
    """T_a(t) of `MixturePrior`, the scale on which groups are normal."""
    import pytensor.tensor as pt

    power, log = 1 + tail, pt.log1p(pt.maximum(t, 0.0))
    near = abs(power) < NEARLY_LOG
    far = pt.expm1(power * log) / pt.switch(near, 1.0, power)
    series = log * (1 + power * log * (1 / 2 + power * log / 6))
    return pt.minimum(t, 0.0) + pt.switch(near, series, far)


def descriptions_of(prior: Prior) -> Mapping[str, str]:
    """Descriptions of the parameters of a prior; empty if it has none."""
    return getattr(prior, "descriptions", {})


def checked_prior(prior: Any) -> Prior:
    """Return the prior. Raise DataError if it is not a prior."""
    if not isinstance(prior, Prior) or isinstance(prior, type):
        raise DataError(
            "prior: expected a MixturePrior or your own prior with `basis` and `log_weights` (see "
            f"classex_bayes.bayes.Prior), found {prior!r}"
        )
    try:
        hash(prior)
    except TypeError:
        raise DataError(
            f"prior: {type(prior).__name__} has no hash; make it a dataclass with frozen=True"
        ) from None
    return prior
