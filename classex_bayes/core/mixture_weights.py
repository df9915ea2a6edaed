"""Maximum likelihood weights of a mixture, with or without one linear constraint."""

from typing import Any

import numpy as np
from scipy.optimize import nnls

from classex_bayes.typing import FloatArray

ROUNDING = 1e-12
_MOST_STEPS, _WANTED_GAP, _LARGEST_GAP = 100, 1e-10, 1e-6
# Steps of nonnegative least squares per column. Near-collinear columns enter and leave, and the 3
# steps that SciPy allows are not always enough.
_NNLS_STEPS = 50
# Weight of the constraint relative to the quadratic model of the likelihood.
_PENALTY, _MOST_SHIFTS = 1e2, 10
# Rounding error of a gain, and a gap that is no worse than it.
_NO_GAIN, _SMALL_GAP = 1e-14, 1e-8
# A probability this much smaller than that of the best column gets that column at the start.
_WEAK, _ADDED = 1e-4, 0.1


def likeliest_weights(
    chance: FloatArray,
    share: FloatArray,
    excess: FloatArray,
    start: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    r"""Weights w (m,) that maximise :math:`\sum_v n_v \log (P w)_v`, with b'w = 0, on the simplex.

    P is `chance` (n_values, m), n is `share` (n_values,) with sum 1, and b is `excess` (m,); zeros
    mean no constraint. If all of b has the same sign, b'w is as near 0 as possible. Each step
    maximises a quadratic model over the simplex by nonnegative least squares, which selects few
    columns and is exact on them. The step goes towards this maximum as far as the likelihood
    increases. `start` (m,) are weights near the maximum, with b'w = 0, for a faster search.

    The second array (m,) is the derivative of the Lagrangian by each weight. At the maximum it is
    at most 1, and 1 at positive weights. Its excess over 1 bounds the distance from the maximum,
    because log x <= x - 1. `RuntimeError` if the bound stays above 1e-6.
    """
    nearest = np.clip(0.0, excess.min(), excess.max())
    if min(excess.max(), -excess.min()) <= ROUNDING:
        allowed = np.abs(excess - nearest) <= ROUNDING
        chance, excess = chance[:, allowed], np.zeros(np.count_nonzero(allowed))
    else:
        allowed = np.ones(excess.size, dtype=bool)
        excess = excess / min(excess.max(), -excess.min())

    multiplier: Any = 0.0
    weights = _start(chance, excess, None if start is None else start[allowed])
    root = np.sqrt(share)
    target = np.append(np.zeros(share.size + 1), 1.0)
    for _ in range(_MOST_STEPS):
        fitted = chance @ weights
        slope = (share / fitted) @ chance - multiplier * excess
        if slope.max() - 1 <= _WANTED_GAP:
            break
        # New columns are needed only at peaks of the slope. The others stay at 0.
        peak = np.append(slope[1:] <= slope[:-1], True) & np.append(True, slope[1:] > slope[:-1])
        tried = np.flatnonzero((weights > 0) | peak)
        bound = excess[tried]
        model = root[:, None] * (chance[:, tried] / fitted[:, None] - 2)
        for _ in range(_MOST_SHIFTS):
            # The penalty alone makes b'w small. Shifts by the multiplier make it 0.
            shifted = _PENALTY * (bound + multiplier / _PENALTY**2)
            best = np.zeros(weights.size)
            system = np.vstack([model, shifted, np.ones(tried.size)])
            # Near-collinear columns of unequal size would stop the search too early.
            size = np.sqrt((system**2).sum(axis=0))
            best[tried] = nnls(system / size, target, maxiter=_NNLS_STEPS * tried.size)[0] / size
            best /= best.sum()
            multiplier += _PENALTY**2 * (excess @ best)
            if abs(excess @ best) <= ROUNDING:
                break
        change = chance @ best / fitted - 1
        if not excess.any() and share @ change <= _NO_GAIN:
            if slope.max() - 1 <= _SMALL_GAP:
                break
            # Rounding spoils the quadratic model. The column of the largest slope still gains.
            best = np.zeros(weights.size)
            best[slope.argmax()] = 1.0
            change = chance @ best / fitted - 1
        gain = share @ change
        if gain > 0:
            step = min(1.0, 0.9 / max(-change.min(), 0.9))
            while share @ np.log1p(step * change) < 1e-4 * step * gain and step > ROUNDING:
                step /= 2
            weights = (1 - step) * weights + step * best
        elif slope.max() - 1 <= _LARGEST_GAP:
            break
    slope = (share / (chance @ weights)) @ chance - multiplier * excess
    if not (slope.max() - 1 <= _LARGEST_GAP and abs(excess @ weights) <= ROUNDING * _PENALTY):
        raise RuntimeError(
            "the maximum of the likelihood was not found; the mean log-likelihood may be up to "
            f"{max(slope.max() - 1, 0.0):.2g} below it"
        )

    all_weights, all_slopes = np.zeros(allowed.size), np.full(allowed.size, -np.inf)
    all_weights[allowed], all_slopes[allowed] = weights, slope
    return all_weights, all_slopes


def _start(chance: FloatArray, excess: FloatArray, near: FloatArray | None = None) -> FloatArray:
    """Weights to start from, with b'w = 0: `near`, or equal ones on columns of the whole range.

    They are changed so that no probability is very small.
    """
    weights = np.zeros(excess.size)
    if near is None:
        # A few columns suffice, because neighbours are similar.
        weights[::16] = weights[-1] = 1.0
    else:
        weights += near
    weights /= weights.sum()
    weak = chance @ weights < _WEAK * chance.max(axis=1)
    weights[chance[weak].argmax(axis=1)] += _ADDED
    weights /= weights.sum()
    mean = excess @ weights
    if mean != 0:
        opposite = excess.argmin() if mean > 0 else excess.argmax()
        moved = mean / (mean - excess[opposite])
        weights *= 1 - moved
        weights[opposite] += moved
    return weights
