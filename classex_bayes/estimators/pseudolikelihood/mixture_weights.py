"""Maximum likelihood weights of a mixture, with or without one linear constraint."""

from typing import Any

import numpy as np
from scipy.optimize import nnls

from classex_bayes.typing import FloatArray

ROUNDING = 1e-12
_MOST_STEPS, _WANTED_GAP, _LARGEST_GAP = 100, 1e-10, 1e-6
# Near-collinear columns come and go; the 3 that SciPy allows were once too few.
_NNLS_STEPS = 50
# Weight of the constraint beside the quadratic model of the likelihood.
_PENALTY, _MOST_SHIFTS = 1e2, 10


def likeliest_weights(
    chance: FloatArray, share: FloatArray, excess: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""Weights w (m,) that maximise :math:`\sum_v n_v \log (P w)_v`, with b'w = 0, on the simplex.

    P is `chance` (n_losses, m), n `share` (n_losses,) of sum 1, b `excess` (m,), zeros for no
    constraint. If all of b has one sign, b'w is as near 0 as can be. Each step maximises a
    quadratic model over the simplex by nonnegative least squares, which find few columns out of
    many and are exact on them, and goes as far towards its maximum as the likelihood rises.

    Also returns the derivative (m,) of the Lagrangian by each weight: at the maximum at most 1,
    and 1 at positive weights. Its excess over 1 bounds the distance from the maximum, as
    log x <= x - 1.
    """
    nearest = np.clip(0.0, excess.min(), excess.max())
    if min(excess.max(), -excess.min()) <= ROUNDING:
        allowed = np.abs(excess - nearest) <= ROUNDING
        chance, excess = chance[:, allowed], np.zeros(np.count_nonzero(allowed))
    else:
        allowed = np.ones(excess.size, dtype=bool)
        excess = excess / min(excess.max(), -excess.min())

    multiplier: Any = 0.0
    weights = _start(chance, excess)
    root = np.sqrt(share)
    target = np.append(np.zeros(share.size + 1), 1.0)
    for _ in range(_MOST_STEPS):
        fitted = chance @ weights
        slope = (share / fitted) @ chance - multiplier * excess
        if slope.max() - 1 <= _WANTED_GAP:
            break
        # New columns need only come from where the slope peaks; the others stay at 0.
        peak = np.append(slope[1:] <= slope[:-1], True) & np.append(True, slope[1:] > slope[:-1])
        tried = np.flatnonzero((weights > 0) | peak)
        bound = excess[tried]
        model = root[:, None] * (chance[:, tried] / fitted[:, None] - 2)
        for _ in range(_MOST_SHIFTS):
            # The penalty alone would leave b'w small; shifted by the multiplier it goes to 0.
            shifted = _PENALTY * (bound + multiplier / _PENALTY**2)
            best = np.zeros(weights.size)
            system = np.vstack([model, shifted, np.ones(tried.size)])
            best[tried] = nnls(system, target, maxiter=_NNLS_STEPS * tried.size)[0]
            best /= best.sum()
            multiplier += _PENALTY**2 * (excess @ best)
            if abs(excess @ best) <= ROUNDING:
                break
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


def _start(chance: FloatArray, excess: FloatArray) -> FloatArray:
    """Weights with b'w = 0 on some columns everywhere, so that all probabilities are positive."""
    weights = np.zeros(excess.size)
    # A few are enough to begin with; neighbours are alike.
    weights[::16] = weights[-1] = 1.0
    missing = chance @ weights == 0
    weights[chance[missing].argmax(axis=1)] = 1.0
    weights /= weights.sum()
    mean = excess @ weights
    if mean != 0:
        opposite = excess.argmin() if mean > 0 else excess.argmax()
        moved = mean / (mean - excess[opposite])
        weights *= 1 - moved
        weights[opposite] += moved
    return weights
