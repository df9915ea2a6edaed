"""The log density of the posterior and its gradient, computed in one pass.

It is the density of the PyMC model (`classex_bayes.bayes.model.likelihoods.build_model`) on the
same unconstrained parameters, for the priors and likelihoods of this package. The density that PyMC
builds is compiled in every process, which takes longer than sampling. This one is compiled once and
cached on disk.
All constants are in one vector, made by
`classex_bayes.bayes.model.nutpie_model.pack`.
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

# Places of the constants in the vector. Knots, functions, matrix and data follow. If the sampler's
# point is whitened, the last are centre and root of
# `classex_bayes.bayes.model.nutpie_model`.
(
    SIZE, N_KNOTS, N_FUNCTIONS, N_ROWS, IS_DIRICHLET, HAS_GROUPS, IS_POWER, IS_WHITENED,
    CONCENTRATION, LOCATION, LOCATION_SD, LOG_SCALE, SCALE_LOG_SD, SCALE_FREEDOM, SEPARATION,
    IMBALANCE, TAIL, TAIL_SD, DEVIATION, BANDWIDTH, HEADER,
) = range(21)  # fmt: skip
# Smaller numbers count as 0. Their products would be subnormal, and arithmetic with these is slow.
NEGLIGIBLE = 1e-150
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
_LOG_HALF_NORMAL = 0.5 * math.log(2 / math.pi)
_NOT_FINITE = 3  # marks the draw as divergent
_numbers = types.CPointer(types.double)
# Sums may be reordered, but infinities and NaN keep their meaning. Everything is inlined. Otherwise
# the process that compiles could link other copies of a function, with sums in another order, than
# processes that load the cache.
_options = {
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "forceinline": True,
}
_compiled = numba.njit(**_options)
# Only compiled functions call these. An entry for Python would take a sixth of the time to compile.
_inner = numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_options)


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
def _place_of_tail(packed: Any) -> int:
    if not packed[HAS_GROUPS] > 0:
        return 2
    return 5 if packed[IMBALANCE] > 0 else 4


@_inner
def _tail(x: Any, packed: Any) -> float:
    return x[_place_of_tail(packed)] if packed[TAIL_SD] > 0 else packed[TAIL]


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
    log = math.log1p(max(x[0], 0.0))
    return _yeo_johnson(x[0], log, tail), math.exp(tail * log), log


@_inner
def _stretched(x: Any, packed: Any, knots: Any, log_knots: Any, stretched: Any) -> None:
    """Write the knots on the transformed scale, (T(t) - T(mu)) / T'(mu)."""
    tail = _tail(x, packed)
    centre, slope, _ = _at_mu(x, tail)
    for j in range(knots.size):
        stretched[j] = (_yeo_johnson(knots[j], log_knots[j], tail) - centre) / slope


@_inner
def _stretched_gradient(
    x: Any, packed: Any, log_knots: Any, stretched: Any, upstream: Any, gradient: Any
) -> float:
    """Add the derivative by mu to `gradient`, and return the derivative by the tail.

    `upstream` holds the derivatives by the stretched knots.
    """
    tail = _tail(x, packed)
    centre, slope, log_mu = _at_mu(x, tail)
    centre_by_tail = _yeo_johnson_by_tail(log_mu, centre, tail)
    curvature = tail / (1 + x[0]) if x[0] > 0 else 0.0
    total = by_stretched = by_heights = 0.0
    for j in range(log_knots.size):
        height = centre + slope * stretched[j]
        total += upstream[j]
        by_stretched += upstream[j] * stretched[j]
        by_heights += upstream[j] * _yeo_johnson_by_tail(log_knots[j], height, tail)
    gradient[0] -= total + curvature * by_stretched
    return (by_heights - centre_by_tail * total) / slope - log_mu * by_stretched


@_inner
def _width(x: Any, packed: Any) -> Any:
    """Scale of the groups, and the derivative of its logarithm by log tau."""
    tau = math.exp(x[1])
    width = math.sqrt(tau * tau + LEAST_VARIANCE * packed[BANDWIDTH] ** 2)
    return width, (tau / width) ** 2


@_inner
def _two_groups(x: Any, packed: Any, stretched: Any, logs: Any, harder_share: Any) -> None:
    """Log of the larger group density at each knot, and the harder group's responsibility.

    The density of the mixture is the larger group density over the responsibility of that group.
    """
    share = _logistic(x[2])
    separation = math.exp(x[3])
    width, _ = _width(x, packed)
    imbalance = x[4] if packed[IMBALANCE] > 0 else 0.0
    ratio = np.exp(imbalance)
    harder_width, easier_width = width * ratio, width / ratio
    # log share and log(1 - share) from the log odds: neither rounds to log 0.
    harder_log = -_softplus(-x[2]) - imbalance
    easier_log = -_softplus(x[2]) + imbalance
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
    share = _logistic(x[2])
    separation = math.exp(x[3])
    width, by_log_tau = _width(x, packed)
    ratio = math.exp(x[4]) if packed[IMBALANCE] > 0 else 1.0
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
    gradient[1] += by_log_tau * log_width
    gradient[2] += log_odds
    gradient[3] += log_separation
    if packed[IMBALANCE] > 0:
        gradient[4] += imbalance


@_inner
def _one_group(x: Any, packed: Any, stretched: Any, logs: Any) -> None:
    width, _ = _width(x, packed)
    for j in range(stretched.size):
        logs[j] = -0.5 * (stretched[j] / width) ** 2


@_inner
def _one_group_gradient(
    x: Any, packed: Any, stretched: Any, upstream: Any, gradient: Any, pull: Any
) -> None:
    """Gradients as in `_two_groups_gradient`, for one group."""
    width, by_log_tau = _width(x, packed)
    for j in range(stretched.size):
        scaled = stretched[j] / width
        gradient[1] += by_log_tau * upstream[j] * scaled * scaled
        pull[j] = -upstream[j] * scaled / width


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
    n_functions = functions.shape[0]
    harder_share[:] = 1.0
    if packed[IS_DIRICHLET] > 0:
        _copy(x, weights)
    else:
        _stretched(x, packed, knots, log_knots, stretched)
        if packed[HAS_GROUPS] > 0:
            _two_groups(x, packed, stretched, weights, harder_share)
        else:
            _one_group(x, packed, stretched, weights)
        tail = _tail(x, packed)
        for j in range(knots.size):
            weights[j] += tail * log_knots[j]
        if n_functions > 0:
            first = x.size - n_functions
            sigma = math.exp(x[first - 1])
            for f in range(n_functions):
                scale = sigma * x[first + f]
                for j in range(knots.size):
                    weights[j] += scale * functions[f, j]
    top, total = weights.max(), 0.0
    for j in range(weights.size):
        raised = math.exp(weights[j] - top) / max(harder_share[j], 1 - harder_share[j])
        weights[j] = raised if raised > NEGLIGIBLE else 0.0
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
    scaled = (x[1] - packed[LOG_SCALE]) / sd
    gradient[1] -= (freedom + 1) * scaled / (freedom + scaled * scaled) / sd
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
    """Log density of the parameters in the unconstrained space, with its derivatives."""
    if packed[IS_DIRICHLET] > 0:
        concentration = packed[CONCENTRATION]
        value = 0.0
        for j in range(x.size):
            gamma = math.exp(x[j])
            value += concentration * x[j] - gamma
            gradient[j] += concentration - gamma
        return value - x.size * math.lgamma(concentration)
    n_functions = int(packed[N_FUNCTIONS])
    value = _normal(x[0], packed[LOCATION], packed[LOCATION_SD], 0, gradient)
    value += _student(x, packed, gradient)
    if packed[HAS_GROUPS] > 0:
        # A uniform share has the logistic density in its log odds.
        value -= _softplus(x[2]) + _softplus(-x[2])
        gradient[2] += 1 - 2 * _logistic(x[2])
        value += _log_half_normal(x[3], packed[SEPARATION], 3, gradient)
        if packed[IMBALANCE] > 0:
            value += _normal(x[4], 0.0, packed[IMBALANCE], 4, gradient)
    if packed[TAIL_SD] > 0:
        place = _place_of_tail(packed)
        value += _normal(x[place], packed[TAIL], packed[TAIL_SD], place, gradient)
    if n_functions > 0:
        first = x.size - n_functions
        value += _log_half_normal(x[first - 1], packed[DEVIATION], first - 1, gradient)
        for j in range(first, x.size):
            value += _normal(x[j], 0.0, 1.0, j, gradient)
    return value


@_compiled
def log_density(x: Any, packed: Any, gradient: Any) -> float:
    """Log density of an unconstrained point; overwrites `gradient`.

    The relative error is below 1e-12 if each observed bin has a probability above 1e-150. For
    smaller probabilities the floor of the likelihood applies.
    """
    knots, log_knots, functions, matrix, vector = _unpacked(packed)
    m, n_functions = knots.size, functions.shape[0]
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
    if packed[IS_DIRICHLET] > 0:
        gradient += upstream
        return value
    if n_functions > 0:
        first = x.size - n_functions
        sigma = math.exp(x[first - 1])
        for f in range(n_functions):
            product = 0.0
            for j in range(m):
                product += functions[f, j] * upstream[j]
            gradient[first + f] += sigma * product
            gradient[first - 1] += sigma * x[first + f] * product
    if packed[HAS_GROUPS] > 0:
        _two_groups_gradient(x, packed, stretched, harder_share, upstream, gradient, weights)
    else:
        _one_group_gradient(x, packed, stretched, upstream, gradient, weights)
    by_tail = _stretched_gradient(x, packed, log_knots, stretched, weights, gradient)
    if packed[TAIL_SD] > 0:
        for j in range(m):
            by_tail += upstream[j] * log_knots[j]
        gradient[_place_of_tail(packed)] += by_tail
    return value


@_compiled
def from_moved(q: Any, packed: Any, x: Any) -> Any:
    r"""Write the unconstrained parameters x for the coordinates q that are whitened.

    With two groups, q holds :math:`\log s` and :math:`\log \delta` instead of :math:`\log \tau` and
    :math:`\log \Delta`. Here :math:`s = \tau \sqrt{V}`, with
    :math:`V = p r^2 + (1 - p) / r^2 + p (1 - p) \delta^2`, is the joint scale of the groups, which
    the data determine well, and :math:`\delta = \Delta / \tau`. The map preserves volumes.

    Returns the derivatives of :math:`\log V / 2` by the log odds, log delta and imbalance.
    """
    _copy(q, x)
    if not packed[HAS_GROUPS] > 0:
        return 0.0, 0.0, 0.0
    share, imbalance = _logistic(q[2]), q[4] if packed[IMBALANCE] > 0 else 0.0
    harder, easier = math.exp(2 * imbalance), math.exp(-2 * imbalance)
    apart = math.exp(2 * q[3])
    both = share * (1 - share)
    variance = share * harder + (1 - share) * easier + both * apart
    x[1] = q[1] - 0.5 * math.log(variance)
    x[3] = q[3] + x[1]
    by_odds = 0.5 * both * (harder - easier + (1 - 2 * share) * apart)
    by_imbalance = share * harder - (1 - share) * easier
    return by_odds / variance, both * apart / variance, by_imbalance / variance


@_compiled
def moved_log_density(q: Any, packed: Any, gradient: Any) -> float:
    """Log density of a point of `from_moved`; overwrites `gradient`."""
    x = np.empty(q.size)
    by_odds, by_apart, by_imbalance = from_moved(q, packed, x)
    value = log_density(x, packed, gradient)
    if packed[HAS_GROUPS] > 0:
        by_scale = gradient[1] + gradient[3]
        gradient[1] = by_scale
        gradient[2] -= by_scale * by_odds
        gradient[3] -= by_scale * by_apart
        if packed[IMBALANCE] > 0:
            gradient[4] -= by_scale * by_imbalance
    return value


@_compiled
def expand(x: Any, packed: Any, expanded: Any) -> None:
    """Write the unconstrained point, the constrained parameters and the weights of a draw."""
    knots, log_knots, functions, _, _ = _unpacked(packed)
    m, n_functions = knots.size, functions.shape[0]
    _copy(x, expanded)
    place = x.size
    if packed[IS_DIRICHLET] > 0:
        for j in range(m):
            expanded[place + j] = math.exp(x[j])
        place += m
    else:
        expanded[place] = math.exp(x[1])
        place += 1
        if packed[HAS_GROUPS] > 0:
            expanded[place], expanded[place + 1] = _logistic(x[2]), math.exp(x[3])
            place += 2
        if n_functions > 0:
            expanded[place] = math.exp(x[x.size - n_functions - 1])
            place += 1
    scratch = np.empty(m), np.empty(m)
    _weights(x, packed, knots, log_knots, functions, expanded[place:], *scratch)


@_compiled
def from_whitened(whitened: Any, packed: Any, q: Any) -> Any:
    """Write q = centre + root @ whitened, (n,), and return the root (n, n).

    Without whitening q is a copy, and the root has the shape (0, 0).
    """
    n = whitened.size if packed[IS_WHITENED] > 0 else 0
    first = packed.size - n * n
    root = packed[first:].reshape((n, n))
    _copy(whitened, q)
    for i in range(n):
        q[i] = packed[first - n + i]
        for j in range(n):
            q[i] += root[i, j] * whitened[j]
    return root


@c_function(types.uint64, _numbers, _numbers, _numbers, _numbers)
def log_density_for_nutpie(n: Any, point: Any, gradient: Any, value: Any, packed: Any) -> int:
    """Log density of the point that the sampler moves, as a C function for nutpie."""
    constants = numba.carray(packed, (int(packed[SIZE]),))
    slope, q, by_q = numba.carray(gradient, (n,)), np.empty(n), np.empty(n)
    root = from_whitened(numba.carray(point, (n,)), constants, q)
    value[0] = moved_log_density(q, constants, by_q)
    _copy(by_q, slope)
    for j in range(root.shape[0]):
        slope[j] = 0.0
        for i in range(root.shape[0]):
            slope[j] += root[i, j] * by_q[i]
    finite = np.isfinite(value[0])
    for j in range(slope.size):
        finite = finite and np.isfinite(slope[j])
    return 0 if finite else _NOT_FINITE


@c_function(types.uint64, types.uint64, _numbers, _numbers, _numbers)
def expand_for_nutpie(n: Any, n_expanded: Any, point: Any, expanded: Any, packed: Any) -> int:
    """`expand` as a C function for nutpie, for a point of the sampler."""
    constants = numba.carray(packed, (int(packed[SIZE]),))
    q, parameters = np.empty(n), np.empty(n)
    from_whitened(numba.carray(point, (n,)), constants, q)
    from_moved(q, constants, parameters)
    expand(parameters, constants, numba.carray(expanded, (n_expanded,)))
    return 0
