"""The log density of the posterior and its gradient, computed in one pass.

It is the density of the PyMC model (`classex_bayes.bayes.model.likelihoods.build_model`) of a
`MixturePrior`, on the same unconstrained parameters. The density that PyMC builds is compiled in
every process, which takes longer than sampling. This one is compiled once and cached on disk.

Every `MixturePrior` has the same parameters, some of which may be fixed: one group is two groups at
the distance 0, and no deviation is one of scale 0. The sampler moves only the others.
All constants are in one vector, made by `classex_bayes.bayes.model.nutpie_model.pack`.
"""

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import types

from classex_bayes.bayes.model.likelihoods import SMALLEST_SHARE
from classex_bayes.bayes.model.priors import LEAST_VARIANCE, NEARLY_LOG
from classex_bayes.core.jit import log_failed_cache

# Places of the constants in the vector. Behind them are knots, their logarithms, functions, matrix
# and data, values of the fixed parameters, places of the others, and centre and root of
# `classex_bayes.bayes.model.nutpie_model.whitened`.
(
    SIZE, N_KNOTS, N_FUNCTIONS, N_ROWS, N_FREE, IS_POWER, LOCATION, LOCATION_SD, LOG_SCALE,
    SCALE_LOG_SD, SCALE_FREEDOM, SEPARATION, IMBALANCE_SD, TAIL_MEAN, TAIL_SD, DEVIATION,
    BANDWIDTH, UNIT, HEADER,
) = range(19)  # fmt: skip
# Places of the parameters in their unconstrained vector. The coefficients z follow.
MU, LOG_TAU, LOG_ODDS, LOG_SEPARATION, IMBALANCE, TAIL, LOG_SIGMA, FIRST_Z = range(8)
# Smaller arguments of the quantiles of Student's law are expanded in a series.
_NEARLY_NORMAL = 1e-4
# Scales of the groups between which the uncertainty of their mean grows with the scale.
_LEAST_SPREAD, _LARGEST_SPREAD = 1.0, 10.0
# Smaller numbers count as 0. Their products would be subnormal, and arithmetic with these is slow.
NEGLIGIBLE = 1e-150
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
_LOG_HALF_NORMAL = 0.5 * math.log(2 / math.pi)
_NOT_FINITE = 3  # marks the draw as divergent
_numbers = types.CPointer(types.double)
# Sums may be reordered, but infinities and NaN keep their meaning. Everything is inlined. Otherwise
# the process that compiles could link other copies of a function, with sums in another order, than
# processes that load the cache.
_inner = numba.njit(
    error_model="numpy",
    fastmath={"reassoc", "contract", "nsz", "arcp"},
    forceinline=True,
    # Only compiled functions call these. Entries for Python and C would take longer to compile.
    no_cpython_wrapper=True,
    no_cfunc_wrapper=True,
)


def c_function(*arguments: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator `numba.cfunc` of an int64, with a cache on disk if numba's cache can be used."""

    def decorate(function: Callable[..., Any]) -> Any:
        signature = types.int64(*arguments)
        try:
            return numba.cfunc(signature, cache=True)(function)
        except Exception as error:  # no folder to write in, a full disk, a damaged file
            log_failed_cache(error)
            return numba.cfunc(signature)(function)

    return decorate


@_inner
def _copy(source: Any, target: Any) -> None:
    """Like `target[:] = source`, whose error for unequal shapes would take seconds to compile."""
    for j in range(source.size):
        target[j] = source[j]


@_inner
def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@_inner
def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x))


@_inner
def _yeo_johnson(t: float, log: float, tail: float) -> float:
    """T(t) of `priors.yeo_johnson`; `log` is log(1 + t), or 0 if t < 0."""
    power = 1 + tail
    if t <= 0:
        return t
    if abs(power) < NEARLY_LOG:
        return log * (1 + power * log * (1 / 2 + power * log / 6))
    return math.expm1(power * log) / power


@_inner
def _yeo_johnson_by_tail(log: float, height: float, tail: float) -> float:
    """Derivative of T(t) by the tail; `height` is T(t)."""
    power = 1 + tail
    if abs(power) < NEARLY_LOG:
        return log * log * (1 / 2 + power * log * (1 / 3 + power * log / 8))
    return (log * (1 + power * height) - height) / power if log > 0 else 0.0


@_inner
def _at_mu(x: Any, tail: float) -> Any:
    """T and its derivative at mu, and log(1 + mu), or 0 if mu < 0."""
    log = math.log1p(max(x[MU], 0.0))
    return _yeo_johnson(x[MU], log, tail), math.exp(tail * log), log


@_inner
def _stretched(x: Any, knots: Any, log_knots: Any, stretched: Any) -> None:
    """Write the knots on the transformed scale, (T(t) - T(mu)) / T'(mu)."""
    tail = x[TAIL]
    centre, slope, _ = _at_mu(x, tail)
    for j in range(knots.size):
        stretched[j] = (_yeo_johnson(knots[j], log_knots[j], tail) - centre) / slope


@_inner
def _stretched_gradient(
    x: Any, log_knots: Any, stretched: Any, upstream: Any, gradient: Any
) -> float:
    """Add the derivative by mu to `gradient`, and return the derivative by the tail.

    `upstream` holds the derivatives by the stretched knots.
    """
    tail = x[TAIL]
    centre, slope, log_mu = _at_mu(x, tail)
    centre_by_tail = _yeo_johnson_by_tail(log_mu, centre, tail)
    curvature = tail / (1 + x[MU]) if x[MU] > 0 else 0.0
    total = by_stretched = by_heights = 0.0
    for j in range(log_knots.size):
        height = centre + slope * stretched[j]
        total += upstream[j]
        by_stretched += upstream[j] * stretched[j]
        by_heights += upstream[j] * _yeo_johnson_by_tail(log_knots[j], height, tail)
    gradient[MU] -= total + curvature * by_stretched
    return (by_heights - centre_by_tail * total) / slope - log_mu * by_stretched


@_inner
def _width(x: Any, packed: Any) -> Any:
    """Scale of the groups, and the derivative of its logarithm by log tau."""
    tau = math.exp(x[LOG_TAU])
    width = math.sqrt(tau * tau + LEAST_VARIANCE * packed[BANDWIDTH] ** 2)
    return width, (tau / width) ** 2


@_inner
def _two_groups(x: Any, packed: Any, stretched: Any, logs: Any, harder_share: Any) -> None:
    """Log of the larger group density at each knot, and the harder group's responsibility.

    The density of the mixture is the larger group density over the responsibility of that group.
    """
    share = _logistic(x[LOG_ODDS])
    separation = math.exp(x[LOG_SEPARATION])
    width, _ = _width(x, packed)
    imbalance = x[IMBALANCE]
    ratio = np.exp(imbalance)
    harder_width, easier_width = width * ratio, width / ratio
    # log share and log(1 - share) from the log odds: neither rounds to log 0.
    harder_log = -_softplus(-x[LOG_ODDS]) - imbalance
    easier_log = -_softplus(x[LOG_ODDS]) + imbalance
    for j in range(stretched.size):
        harder = (stretched[j] + (1 - share) * separation) / harder_width
        easier = (stretched[j] - share * separation) / easier_width
        a = harder_log - 0.5 * harder * harder
        b = easier_log - 0.5 * easier * easier
        small = math.exp(-abs(a - b))
        logs[j] = max(a, b)
        harder_share[j] = (1.0 if a > b else small) / (1 + small)


@_inner
def _two_groups_gradient(
    x: Any,
    packed: Any,
    stretched: Any,
    harder_share: Any,
    upstream: Any,
    gradient: Any,
    pull: Any,
) -> None:
    """Add the gradient by the groups' parameters. Write that by the stretched knots to `pull`."""
    share = _logistic(x[LOG_ODDS])
    separation = math.exp(x[LOG_SEPARATION])
    width, by_log_tau = _width(x, packed)
    ratio = math.exp(x[IMBALANCE])
    harder_width, easier_width = width * ratio, width / ratio
    log_width = log_odds = log_separation = imbalance = 0.0
    for j in range(stretched.size):
        harder = (stretched[j] + (1 - share) * separation) / harder_width
        easier = (stretched[j] - share * separation) / easier_width
        up_harder = upstream[j] * harder_share[j]
        up_easier = upstream[j] - up_harder
        pull_harder = up_harder * harder / harder_width
        pull_easier = up_easier * easier / easier_width
        pull[j] = -pull_harder - pull_easier
        log_width += up_harder * harder * harder + up_easier * easier * easier
        log_odds += (
            up_harder * (1 - share)
            - up_easier * share
            + share * (1 - share) * separation * (pull_harder + pull_easier)
        )
        log_separation += separation * (share * pull_easier - (1 - share) * pull_harder)
        imbalance += up_harder * (harder * harder - 1) + up_easier * (1 - easier * easier)
    gradient[LOG_TAU] += by_log_tau * log_width
    gradient[LOG_ODDS] += log_odds
    gradient[LOG_SEPARATION] += log_separation
    gradient[IMBALANCE] += imbalance


@_inner
def _unpacked(packed: Any) -> Any:
    """Views of the knots t, log(1 + t), the deviation's functions, and the likelihood's arrays."""
    m, n_functions = int(packed[N_KNOTS]), int(packed[N_FUNCTIONS])
    n_rows = int(packed[N_ROWS])
    log_knots = HEADER + m
    functions = log_knots + m
    matrix = functions + n_functions * m
    vector = matrix + n_rows * m
    return (
        packed[HEADER:log_knots],
        packed[log_knots:functions],
        packed[functions:matrix].reshape((n_functions, m)),
        packed[matrix:vector].reshape((n_rows, m)),
        packed[vector : vector + n_rows],
    )


@_inner
def _unpacked_point(packed: Any) -> Any:
    """Views of the fixed parameters, the places of the free ones, and their centre and root."""
    n = int(packed[N_FREE])
    root = packed.size - n * n
    centre = root - n
    places = centre - n
    fixed = places - FIRST_Z - int(packed[N_FUNCTIONS])
    return (
        packed[fixed:places],
        packed[places:centre],
        packed[centre:root],
        packed[root:].reshape((n, n)),
    )


@_inner
def filled(free: Any, packed: Any) -> Any:
    """Vector of all parameters, from the free ones (n_free,)."""
    fixed, places, _, _ = _unpacked_point(packed)
    x = fixed.copy()
    for j in range(free.size):
        x[int(places[j])] = free[j]
    return x


@_inner
def _weights(
    x: Any,
    packed: Any,
    knots: Any,
    log_knots: Any,
    functions: Any,
    weights: Any,
    stretched: Any,
    harder_share: Any,
) -> None:
    """Mixture weights at an unconstrained point."""
    _stretched(x, knots, log_knots, stretched)
    _two_groups(x, packed, stretched, weights, harder_share)
    tail, sigma = x[TAIL], math.exp(x[LOG_SIGMA])
    for j in range(knots.size):
        weights[j] += tail * log_knots[j]
    for f in range(functions.shape[0]):
        scale = sigma * x[FIRST_Z + f]
        for j in range(knots.size):
            weights[j] += scale * functions[f, j]
    top, total = -np.inf, 0.0
    for j in range(weights.size):  # `weights.max()` would take longer to compile
        top = max(top, weights[j])
    for j in range(weights.size):
        raised = math.exp(weights[j] - top) / max(harder_share[j], 1 - harder_share[j])
        weights[j] = 0.0 if raised <= NEGLIGIBLE else raised  # NaN stays NaN
        total += weights[j]
    weights /= total


@_inner
def _likelihood(packed: Any, matrix: Any, vector: Any, weights: Any, gradient: Any) -> float:
    """Log likelihood of the weights; adds its derivatives to `gradient`."""
    value = 0.0
    for row in range(vector.size):
        expected = 0.0
        for j in range(weights.size):
            expected += matrix[row, j] * weights[j]
        if packed[IS_POWER] > 0:
            pull = vector[row] - expected
            value -= 0.5 * pull * pull + _HALF_LOG_TWO_PI
        else:
            value += vector[row] * math.log(max(expected, SMALLEST_SHARE))
            pull = vector[row] / expected if expected > SMALLEST_SHARE else 0.0
        for j in range(weights.size):
            gradient[j] += pull * matrix[row, j]
    return value


@_inner
def _normal(x: float, mean: float, sd: float, place: int, gradient: Any) -> float:
    scaled = (x - mean) / sd
    gradient[place] -= scaled / sd
    return -0.5 * scaled * scaled - math.log(sd) - _HALF_LOG_TWO_PI


@_inner
def _student(x: Any, packed: Any, gradient: Any) -> float:
    """Density of log tau."""
    freedom, sd = packed[SCALE_FREEDOM], packed[SCALE_LOG_SD]
    scaled = (x[LOG_TAU] - packed[LOG_SCALE]) / sd
    gradient[LOG_TAU] -= (freedom + 1) * scaled / (freedom + scaled * scaled) / sd
    height = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    height -= 0.5 * math.log(freedom * math.pi) + math.log(sd)
    return height - 0.5 * (freedom + 1) * math.log1p(scaled * scaled / freedom)


@_inner
def _log_half_normal(x: float, sd: float, place: int, gradient: Any) -> float:
    """Density of x = log of a half-normal variable."""
    scaled = math.exp(x) / sd
    gradient[place] += 1 - scaled * scaled
    return _LOG_HALF_NORMAL - math.log(sd) - 0.5 * scaled * scaled + x


@_inner
def _prior(x: Any, packed: Any, gradient: Any) -> float:
    """Log density of the free parameters in the unconstrained space, with its derivatives."""
    value = _normal(x[MU], packed[LOCATION], packed[LOCATION_SD], MU, gradient)
    value += _student(x, packed, gradient)
    if packed[SEPARATION] > 0:
        # A uniform share has the logistic density in its log odds.
        value -= _softplus(x[LOG_ODDS]) + _softplus(-x[LOG_ODDS])
        gradient[LOG_ODDS] += 1 - 2 * _logistic(x[LOG_ODDS])
        separation = x[LOG_SEPARATION]
        value += _log_half_normal(separation, packed[SEPARATION], LOG_SEPARATION, gradient)
        if packed[IMBALANCE_SD] > 0:
            value += _normal(x[IMBALANCE], 0.0, packed[IMBALANCE_SD], IMBALANCE, gradient)
    if packed[TAIL_SD] > 0:
        value += _normal(x[TAIL], packed[TAIL_MEAN], packed[TAIL_SD], TAIL, gradient)
    if packed[N_FUNCTIONS] > 0:
        value += _log_half_normal(x[LOG_SIGMA], packed[DEVIATION], LOG_SIGMA, gradient)
        for j in range(x.size - int(packed[N_FUNCTIONS]), x.size):
            value += _normal(x[j], 0.0, 1.0, j, gradient)
    return value


@_inner
def log_density(x: Any, packed: Any, gradient: Any) -> float:
    """Log density of an unconstrained point (`filled`); overwrites `gradient`.

    The relative error is below 1e-12 if each observed bin has a probability above 1e-150. For
    smaller probabilities the floor of the likelihood applies. Derivatives by fixed parameters mean
    nothing.
    """
    knots, log_knots, functions, matrix, vector = _unpacked(packed)
    m = knots.size
    weights, upstream = np.empty(m), np.zeros(m)
    stretched, harder_share = np.empty(m), np.empty(m)
    _weights(x, packed, knots, log_knots, functions, weights, stretched, harder_share)
    value = _likelihood(packed, matrix, vector, weights, upstream)
    mean = 0.0
    for j in range(m):
        mean += weights[j] * upstream[j]
    for j in range(m):
        upstream[j] = weights[j] * (upstream[j] - mean)
    gradient[:] = 0.0
    value += _prior(x, packed, gradient)
    sigma = math.exp(x[LOG_SIGMA])
    for f in range(functions.shape[0]):
        product = 0.0
        for j in range(m):
            product += functions[f, j] * upstream[j]
        gradient[FIRST_Z + f] += sigma * product
        gradient[LOG_SIGMA] += sigma * x[FIRST_Z + f] * product
    _two_groups_gradient(x, packed, stretched, harder_share, upstream, gradient, weights)
    by_tail = _stretched_gradient(x, log_knots, stretched, weights, gradient)
    for j in range(m):
        by_tail += upstream[j] * log_knots[j]
    gradient[TAIL] += by_tail
    return value


@_inner
def _student_quantile(v: float, freedom: float) -> Any:
    r"""Quantile t of Student's law at the level of a standard normal v, nearly.

    It is :math:`t = \sqrt{\nu (e^w - 1)}` with the sign of v and :math:`w = v^2 / (\nu c^2)`,
    :math:`c = (8 \nu + 1) / (8 \nu + 3)` (Wallace, Annals of Mathematical Statistics 30, 1959).
    Returns t, log dt / dv, and the derivative of the latter.
    """
    c = (8 * freedom + 1) / (8 * freedom + 3)
    w = v * v / (freedom * c * c)
    ratio = math.expm1(w) / w if w > _NEARLY_NORMAL else 1 + w / 2
    by_w = math.exp(w) / math.expm1(w) - 1 / w if w > _NEARLY_NORMAL else 0.5 + w / 12
    slope = w - 0.5 * math.log(ratio) - math.log(c)
    return v * math.sqrt(ratio) / c, slope, 2 * v / (freedom * c * c) * (1 - 0.5 * by_w)


@_inner
def _scale_and_mean(q: Any, packed: Any, x: Any) -> Any:
    r"""Write log s and mu of `from_moved` to x, log s in the place of log tau.

    .. math::

        \log s = \log s_0 + \sigma \, t_\nu(v), \quad \mu = \mu_0 + g m, \quad
        g^2 = (1 + s^2) / (1 + s^2 / 100),

    where :math:`t_\nu` is `_student_quantile`, and the constants are those of the prior. Returns
    the log volume of the map (m, v) and its derivative by v, g, and the derivatives of log s and
    mu by v.
    """
    t, log_slope, by_v = _student_quantile(q[LOG_TAU], packed[SCALE_FREEDOM])
    x[LOG_TAU] = packed[LOG_SCALE] + packed[SCALE_LOG_SD] * t
    scale_by_v = packed[SCALE_LOG_SD] * math.exp(log_slope)
    square = math.exp(2 * x[LOG_TAU])
    least, largest = _LEAST_SPREAD**2, _LARGEST_SPREAD**2
    spread = math.sqrt((square + least) / (1 + square / largest))
    spread_by_v = scale_by_v * (square / (square + least) - square / (square + largest))
    x[MU] = packed[LOCATION] + spread * q[MU]
    log_volume = math.log(scale_by_v) + math.log(spread)
    return log_volume, by_v + spread_by_v, spread, scale_by_v, spread * q[MU] * spread_by_v


@_inner
def from_moved(q: Any, packed: Any, x: Any) -> Any:
    r"""Write the unconstrained parameters x for the coordinates q that are whitened.

    q holds :math:`\log \delta + \log(1 + s^2 / u^2) / 2` instead of :math:`\log \Delta`, where
    :math:`\delta = \Delta / \tau`. Instead of mu and :math:`\log \tau` it holds m and v of
    `_scale_and_mean`, which give mu and :math:`\log s`. Here :math:`s = \tau \sqrt{V}`, with
    :math:`V = p r^2 + (1 - p) / r^2 + p (1 - p) \delta^2`, is the joint scale of the groups, which
    ranks determine well; they have infinite u. Decisions leave s nearly the law of its prior, which
    has heavy tails, and determine mu the less well the larger s is. In v and m such a posterior is
    nearly normal, too. They have the prior's scale of :math:`\Delta` as u. The prior bounds
    :math:`\Delta`, and so :math:`\delta` by about u / s. If s is large, log s is steep in v, and
    with infinite u the sampler would diverge at this bound.

    Returns the derivatives of :math:`\log V / 2` by the log odds, log delta and imbalance, and that
    of log delta by log s.
    """
    _copy(q, x)
    _scale_and_mean(q, packed, x)
    if packed[SEPARATION] == 0:  # one group, whose scale is s
        return 0.0, 0.0, 0.0, 0.0
    square = math.exp(2 * x[LOG_TAU]) / packed[UNIT] ** 2
    log_delta = q[LOG_SEPARATION] - 0.5 * math.log1p(square)
    share, imbalance = _logistic(q[LOG_ODDS]), q[IMBALANCE]
    harder, easier = math.exp(2 * imbalance), math.exp(-2 * imbalance)
    apart = math.exp(2 * log_delta)
    both = share * (1 - share)
    variance = share * harder + (1 - share) * easier + both * apart
    x[LOG_TAU] -= 0.5 * math.log(variance)
    x[LOG_SEPARATION] = log_delta + x[LOG_TAU]
    by_odds = 0.5 * both * (harder - easier + (1 - 2 * share) * apart)
    by_imbalance = share * harder - (1 - share) * easier
    by_scale = -square / (1 + square)
    return by_odds / variance, both * apart / variance, by_imbalance / variance, by_scale


@_inner
def moved_log_density(q: Any, packed: Any, gradient: Any) -> float:
    """Log density of a point of `from_moved`; overwrites `gradient`."""
    x = np.empty(q.size)
    log_volume, volume_by_v, spread, scale_by_v, mu_by_v = _scale_and_mean(q, packed, x)
    by_odds, by_apart, by_imbalance, apart_by_scale = from_moved(q, packed, x)
    value = log_density(x, packed, gradient) + log_volume
    by_scale = gradient[LOG_TAU] + gradient[LOG_SEPARATION]
    gradient[LOG_SEPARATION] -= by_scale * by_apart
    by_scale_alone = by_scale + gradient[LOG_SEPARATION] * apart_by_scale
    gradient[LOG_TAU] = by_scale_alone * scale_by_v + gradient[MU] * mu_by_v + volume_by_v
    gradient[MU] *= spread
    gradient[LOG_ODDS] -= by_scale * by_odds
    gradient[IMBALANCE] -= by_scale * by_imbalance
    return value


@_inner
def expand(x: Any, packed: Any, expanded: Any) -> None:
    """Write the free parameters, the constrained ones and the weights of a draw."""
    knots, log_knots, functions, _, _ = _unpacked(packed)
    _, places, _, _ = _unpacked_point(packed)
    for j in range(places.size):
        expanded[j] = x[int(places[j])]
    place = places.size
    expanded[place] = math.exp(x[LOG_TAU])
    place += 1
    if packed[SEPARATION] > 0:
        expanded[place], expanded[place + 1] = _logistic(x[LOG_ODDS]), math.exp(x[LOG_SEPARATION])
        place += 2
    if packed[N_FUNCTIONS] > 0:
        expanded[place] = math.exp(x[LOG_SIGMA])
        place += 1
    scratch = np.empty(knots.size), np.empty(knots.size)
    _weights(x, packed, knots, log_knots, functions, expanded[place:], *scratch)


@_inner
def from_whitened(whitened: Any, packed: Any) -> Any:
    """The point of `from_moved` whose free coordinates are centre + root @ whitened."""
    _, _, centre, root = _unpacked_point(packed)
    free = centre.copy()
    for i in range(free.size):
        for j in range(free.size):
            free[i] += root[i, j] * whitened[j]
    return filled(free, packed)


@c_function(types.uint64, _numbers, _numbers, _numbers, _numbers)
def log_density_for_nutpie(n: Any, point: Any, gradient: Any, value: Any, packed: Any) -> int:
    """Log density of the point that the sampler moves, as a C function for nutpie."""
    constants = numba.carray(packed, (int(packed[SIZE]),))
    _, places, _, root = _unpacked_point(constants)
    q = from_whitened(numba.carray(point, (n,)), constants)
    slope, by_q = numba.carray(gradient, (n,)), np.empty(q.size)
    value[0] = moved_log_density(q, constants, by_q)
    for j in range(slope.size):
        slope[j] = 0.0
        for i in range(slope.size):
            slope[j] += root[i, j] * by_q[int(places[i])]
    finite = np.isfinite(value[0])
    for j in range(slope.size):
        finite = finite and np.isfinite(slope[j])
    return 0 if finite else _NOT_FINITE


@c_function(types.uint64, types.uint64, _numbers, _numbers, _numbers)
def expand_for_nutpie(n: Any, n_expanded: Any, point: Any, expanded: Any, packed: Any) -> int:
    """`expand` as a C function for nutpie, for a point of the sampler."""
    constants = numba.carray(packed, (int(packed[SIZE]),))
    q = from_whitened(numba.carray(point, (n,)), constants)
    x = np.empty(q.size)
    from_moved(q, constants, x)
    expand(x, constants, numba.carray(expanded, (n_expanded,)))
    return 0
