"""Priors on the weights of the radial basis: what is believed of D(u) before any ranks.

PyMC is imported where a graph is built, since a fit does without it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from classex_bayes.arguments import how_many, is_real, truth_value
from classex_bayes.core.basis import RadialBasis
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import call
from classex_bayes.typing import FloatArray

# The sine functions live on an interval somewhat longer than the knots', beyond whose ends the
# approximate Gaussian process is forced to zero.
_REACH = 1.15
# Standard deviation of the weight under which the deviation is orthogonal to the quadratic.
_WEIGHT_SD = 4.0
# Variance of groups in squares of the bandwidth h, at least: a narrower group would jump from knot
# to knot, and so would the posterior where the data do not tell groups.
LEAST_VARIANCE = 0.5
# Steps of a monotone log density above 1 / 20 stay as they are, falls become nearly level.
SHARPNESS = 50.0
# Powers nearer to 0 are taken as a series about the logarithm.
NEARLY_LOG = 1e-4
_FARTHEST = 100.0
# Wider ones leave double precision, narrower ones are a number rather than a law.
_RANGES = dict.fromkeys(
    ("location_sd", "scale", "deviation", "separation", "imbalance", "tail_sd", "length"),
    (1e-3, 1e3),
) | {
    "location": (-_FARTHEST, _FARTHEST),
    "scale_log_sd": (1e-3, 5.0),
    "scale_freedom": (2.0, 1e9),
    "tail": (-10.0, 10.0),
}
_MAY_BE_ABSENT = ("deviation", "separation", "imbalance", "tail_sd")
_MOST_KNOTS = 10_000
# Dimensions of parameters: knots, and functions of the deviation.
KNOT, FUNCTION = "knot", "function"
_MOST_FUNCTIONS = 1000


@runtime_checkable
class Prior(Protocol):
    r"""A law of the mixture weights on the knots of a radial basis.

    Any object with these two members is a prior, such as one of your own. Make its class a frozen
    dataclass. That gives it equality and a hash, by which models tell whether they are fitted with
    it and which compiled model serves it again, and a description by its fields, without which a
    fitted model cannot be saved.

    Attributes
    ----------
    basis : RadialBasis
        Knots :math:`t_l` and bandwidth h: :math:`Z = \Phi^{-1}(U^*)` is a mixture of
        :math:`N(t_l, h^2)`. From -4 to 8 in steps of 0.1 to 0.5 is enough for up to 10^12 classes.
    descriptions : mapping from str to str, optional
        What each parameter is. `idata` keeps it as the attribute "description" of the draws, and
        shows the parameters in this order.

    See Also
    --------
    MixturePrior, DirichletPrior : The priors of this package.

    Notes
    -----
    nutpie compiles a prior of your own once in a process: 20 seconds to two minutes the first time
    on a machine, 7 to 20 seconds later, since PyTensor keeps most of the result on disk.
    `classex_bayes.load` needs the prior again, since files have its name and fields, not its code.

    Examples
    --------
    A Laplace law of Z instead of one that is nearly normal:

    >>> from dataclasses import dataclass
    >>> import classex_bayes as cb
    >>> from classex_bayes.core.basis import RadialBasis
    >>> @dataclass(frozen=True)
    ... class LaplacePrior:
    ...     location: float = 2.5
    ...     @property
    ...     def basis(self):
    ...         return RadialBasis.regular(-4, 8, 0.25)
    ...     def log_weights(self):
    ...         import pymc as pm
    ...         centre = pm.Normal("centre", self.location, 2)
    ...         scale = pm.HalfNormal("scale", 1)
    ...         return -abs(self.basis.knots - centre) / scale
    >>> task = cb.SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], range(50), n_classes=50)
    >>> model = cb.BayesianExtrapolator(LaplacePrior(location=3.0)).fit(
    ...     task, draws=500, tune=500, chains=2, random_seed=1, progressbar=False
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
        """Knots and bandwidth that the weights belong to."""

    def log_weights(self) -> Any:
        """Register the parameters in the current PyMC model.

        Returns
        -------
        TensorVariable of shape (n_knots,)
            Logarithms of the weights, up to a constant.
        """


@dataclass(frozen=True, kw_only=True, repr=False)
class _OnKnots:
    """Knots from `lower` to `upper` in steps of `bandwidth`, on the scale of Z = Phi^-1(U*)."""

    lower: float = -4.0
    upper: float = 8.0
    bandwidth: float = 0.25

    def __post_init__(self) -> None:
        """Validate."""
        _numbers(self, "lower", "upper")
        _numbers(self, "bandwidth", positive=True)
        if not self.upper - self.lower >= 4 * self.bandwidth:
            raise DataError(
                f"lower, upper: expected a range of at least 4 bandwidths, found "
                f"{self.lower}..{self.upper}"
            )
        if max(-self.lower, self.upper) > _FARTHEST:
            raise DataError(
                f"lower, upper: expected at most {_FARTHEST:g} away from 0, found "
                f"{self.lower}..{self.upper}"
            )
        if self.upper - self.lower > _MOST_KNOTS * self.bandwidth:
            raise DataError(
                f"bandwidth: expected at most {_MOST_KNOTS} knots in {self.lower}..{self.upper}, "
                f"found {self.bandwidth}"
            )

    def __repr__(self) -> str:
        """Return the class with the fields that are not at their defaults."""
        defaults = {field.name: field.default for field in fields(self)}
        return call(type(self).__name__, vars(self), defaults)

    @property
    def basis(self) -> RadialBasis:
        """Knots and bandwidth that the weights belong to."""
        return RadialBasis.regular(self.lower, self.upper, self.bandwidth)


@dataclass(frozen=True, kw_only=True, repr=False)
class MixturePrior(_OnKnots):
    r"""One or two normal groups of instances on a scale that the tail bends, and a smooth g.

    .. math::

        \log w_l = \log\left(p \, N(y_l; -(1 - p) \Delta, \tau_1^2)
            + (1 - p) \, N(y_l; p \Delta, \tau_2^2)\right)
            + a \log(1 + t_l^+) + g(t_l) - \text{logsumexp},

    .. math::

        y_l = \frac{T_a(t_l) - T_a(\mu)}{T_a'(\mu)}, \quad
        T_a(t) = \frac{(1 + t)^{1 + a} - 1}{1 + a} \; (t > 0), \; t \; (t \le 0), \quad
        \tau_{1, 2} = \sqrt{\tau^2 + h^2 / 2} \, e^{\pm b}.

    The *tail* a says how accuracy falls far out. An instance has :math:`-\log_2 p` bits of
    identifying information, :math:`p = 1 - U^*` being its chance to lose to a random class. With
    a = 0 the groups are normal in :math:`Z = \Phi^{-1}(U^*)`: one group is the two-parameter
    family with mean mu and variance tau^2 + 1.5 h^2. With a = 1 they are nearly normal in bits,
    because :math:`T_1(Z)` is nearly linear in them, and the probit of the accuracy is nearly a
    straight line in log k. With a below 0 some instances hardly ever lose, and the curve flattens.
    On the scale y, which has the unit of Z at mu, mu is the mean, p the share of the harder group,
    and Delta the separation of the two. The deviation g is a squared-exponential Gaussian process
    in 12 sine functions, orthogonal to 1, t, t^2 so that mu and tau keep their meaning. Groups and
    tail set the centre, g the uncertainty that grows beyond what k1 classes resolve.

    Parameters
    ----------
    lower, upper, bandwidth : float
        Knots from `lower` to `upper` in steps of the bandwidth h.
    location, location_sd : float
        mu ~ N(location, location_sd^2). Z = 3 are 9.5 bits.
    scale, scale_log_sd : float
        log tau ~ Student t, centre log scale, scale `scale_log_sd`.
    scale_freedom : float
        Degrees of freedom of that law. With 3, groups may also be far narrower than most; with 1e6
        tau is log-normal.
    deviation : float
        sigma ~ HalfNormal(deviation), the size of g; 0 drops g, the second group and the tail and
        leaves the two-parameter family.
    separation : float
        Delta ~ HalfNormal(separation), and p is uniform; 0 for a single group.
    imbalance : float
        b ~ N(0, imbalance^2), half the log ratio of the two groups' scales.
    tail, tail_sd : float
        a ~ N(tail, tail_sd^2); fixed if `tail_sd` is 0, and 0 without a deviation.
    length : float
        Length scale of g.
    n_functions : int
        Number of sine functions.
    monotone : bool
        Keep the density of U* nondecreasing, as it is for the classifier that answers by the true
        posterior probability (the Bayes classifier): wherever log w_l + t_l^2 / (2 (1 - h^2)) would
        fall from one knot to the next, it stays. mu and tau then say where the law would be without
        that constraint.

    Notes
    -----
    The defaults were chosen on real populations by proper scores; docs/calibration.md says how.
    The bandwidth is fine, since k1 = 1000 classes resolve groups narrower than 0.25. The length
    scale is fixed: the ranks say little about it, and sampling it opened corners of the posterior
    where chains got stuck. The weight under which g is orthogonal to the quadratic is as wide as
    the knots (sd 4): a narrower one lets g grow at the ends of the knots.

    References
    ----------
    Zheng, thesis (2017), Lemma 1 (two-parameter family); Zheng, Achanta and Benjamini,
    nips2016, Theorem 3.4 (monotone density); Yeo and Johnson, Biometrika 87, 2000 (T);
    Riutort-Mayol et al., Statistics and Computing 33, 2023 (Gaussian processes in sine functions).

    Examples
    --------
    >>> MixturePrior(deviation=0).basis.knots.size
    121
    """

    descriptions: ClassVar[Mapping[str, str]] = {
        "mu": "mean of Z = Phi^-1(U*) over both groups",
        "tau": "scale of the groups, on that of Z at mu",
        "share": "share of the instances that are in the harder group",
        "separation": "distance between the means of the two groups",
        "imbalance": "half the log ratio of the scales of the harder and the easier group",
        "tail": "how accuracy falls far out: 0 normal in Z, 1 nearly normal in bits",
        "sigma": "size of the smooth deviation from the groups",
        "z": "standard normal coefficients of the deviation",
    }
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
    monotone: bool = False

    def __post_init__(self) -> None:
        """Validate."""
        super().__post_init__()
        _numbers(self, "location", "deviation", "separation", "imbalance", "tail", "tail_sd")
        _numbers(self, "location_sd", "scale", "length", positive=True)
        _numbers(self, "scale_log_sd", "scale_freedom", positive=True)
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if not (least <= value <= most or (value == 0 and name in _MAY_BE_ABSENT)):
                zero = "0 or " if name in _MAY_BE_ABSENT else ""
                raise DataError(
                    f"{name}: expected {zero}a number from {least:g} to {most:g}, found {value!r}"
                )
        object.__setattr__(self, "n_functions", how_many(self.n_functions, "n_functions", 4))
        if self.n_functions > _MOST_FUNCTIONS:
            raise DataError(
                f"n_functions: expected at most {_MOST_FUNCTIONS}, found {self.n_functions}"
            )
        object.__setattr__(self, "monotone", truth_value(self.monotone, "monotone"))
        if self.monotone and self.bandwidth >= 1:
            raise DataError(f"bandwidth: expected below 1 with monotone, found {self.bandwidth!r}")

    @property
    def has_groups(self) -> bool:
        """Whether there are two groups; without a deviation there is one."""
        return self.deviation > 0 and self.separation > 0

    @property
    def has_tail(self) -> bool:
        """Whether the scale of the groups may be bent; without a deviation it is straight."""
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
        stretched = (bent(knots, tail) - bent(mu, tail)) / slope(mu, tail)
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
        return self._nondecreasing(logs) if self.monotone else logs

    def _two_groups(
        self, stretched: Any, width: Any, share: Any, separation: Any, imbalance: Any = 0.0
    ) -> Any:
        """Log density of the harder and the easier group together, up to a constant."""
        import pytensor.tensor as pt

        ratio = pt.exp(imbalance)
        harder = (stretched + (1 - share) * separation) / (width * ratio)
        easier = (stretched - share * separation) / width * ratio
        return pt.logaddexp(
            pt.log(share / ratio) - 0.5 * harder**2,
            pt.log1p(-share) + pt.log(ratio) - 0.5 * easier**2,
        )

    def _nondecreasing(self, logs: Any) -> Any:
        """Turn falls of the log ratio to the normal density into steps near zero.

        A mixture with weights a_l exp(-t_l^2 / (2 (1 - h^2))) has the ratio E[a(T) | Z = z] to the
        standard normal density, T given Z being normal with a mean that grows with z; so it is
        nondecreasing where a is.
        """
        import pytensor.tensor as pt

        standard = 0.5 * self.basis.knots**2 / (1 - self.bandwidth**2)
        steps = pt.diff(logs + standard) * SHARPNESS
        rise = pt.softplus(steps) / SHARPNESS
        return pt.concatenate([pt.zeros(1), pt.cumsum(rise)]) - standard

    def deviations(self) -> FloatArray:
        """Functions on the knots, (m, n_functions - 3), whose normal combinations are g / sigma.

        The Gaussian process conditioned on being orthogonal to 1, t, t^2: in the coordinates where
        its coefficients are standard normal, the null space of the three inner products.
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


def _log_student(freedom: Any, centre: Any, scale: Any, size: Any) -> Any:
    """Variable whose logarithm has a Student t law; PyMC derives its density."""
    import pymc as pm
    import pytensor.tensor as pt

    return pt.exp(pm.StudentT.dist(nu=freedom, mu=centre, sigma=scale, size=size))


def slope(t: Any, tail: Any) -> Any:
    """Derivative of `bent` by t."""
    import pytensor.tensor as pt

    return pt.exp(tail * pt.log1p(pt.maximum(t, 0.0)))


def bent(t: Any, tail: Any) -> Any:
    """T_a(t) of `MixturePrior` at the tail a: the scale on which groups are normal."""
    import pytensor.tensor as pt

    power, log = 1 + tail, pt.log1p(pt.maximum(t, 0.0))
    near = abs(power) < NEARLY_LOG
    far = pt.expm1(power * log) / pt.switch(near, 1.0, power)
    series = log * (1 + power * log * (1 / 2 + power * log / 6))
    return pt.minimum(t, 0.0) + pt.switch(near, series, far)


@dataclass(frozen=True, kw_only=True, repr=False)
class DirichletPrior(_OnKnots):
    """Exchangeable weights: w ~ Dirichlet(concentration, ..., concentration).

    It knows nothing of smoothness or of where accuracy usually lies: with few test instances its
    predictions, within the source classes too, are pulled towards a flat law of Z on the knots.

    Parameters
    ----------
    lower, upper, bandwidth : float
        Knots from `lower` to `upper` in steps of the bandwidth h.
    concentration : float
        Concentration of every weight: so many instances' worth of flatness. 1 is flat on the
        simplex, where the log prior is constant.

    Examples
    --------
    >>> DirichletPrior(concentration=1.5).basis.bandwidth
    0.5
    """

    descriptions: ClassVar[Mapping[str, str]] = {"gamma": "weights of the knots before division"}
    bandwidth: float = 0.5
    concentration: float = 0.5

    def __post_init__(self) -> None:
        """Validate."""
        super().__post_init__()
        _numbers(self, "concentration", positive=True)

    def log_weights(self) -> Any:
        """Register the weights as normalised gamma variables in the current PyMC model."""
        import pymc as pm
        import pytensor.tensor as pt

        pm.modelcontext(None).add_coord(KNOT, self.basis.knots)
        return pt.log(pm.Gamma("gamma", self.concentration, 1.0, dims=KNOT))


# By name, as files have them: `classex_bayes.load` makes these again.
PRIORS: dict[str, type[MixturePrior] | type[DirichletPrior]] = {
    prior.__name__: prior for prior in (MixturePrior, DirichletPrior)
}


def descriptions_of(prior: Prior) -> Mapping[str, str]:
    """What the parameters of a prior are, as far as it says."""
    return getattr(prior, "descriptions", {})


def checked_prior(prior: Any) -> Prior:
    """Return a prior, or raise where it is something else."""
    if not isinstance(prior, Prior) or isinstance(prior, type):
        raise DataError(
            "prior: expected a MixturePrior, a DirichletPrior or one of your own with `basis` and "
            f"`log_weights` (see classex_bayes.Prior), found {prior!r}"
        )
    try:
        hash(prior)
    except TypeError:
        raise DataError(
            f"prior: {type(prior).__name__} has no hash; make it a dataclass with frozen=True"
        ) from None
    return prior


def _numbers(prior: Any, *names: str, positive: bool = False) -> None:
    """Make fields plain floats (which files can hold), or say what is wrong with them."""
    for name in names:
        value = getattr(prior, name)
        if not is_real(value) or not -np.inf < value < np.inf or (positive and value <= 0):
            kind = "a positive" if positive else "a finite"
            raise DataError(f"{name}: expected {kind} number, found {value!r}")
        object.__setattr__(prior, name, float(value))
