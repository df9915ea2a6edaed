"""The chance of no event if the number of events is Poisson and its rate lognormal, tabulated."""

from functools import cache

import numpy as np

from classex_bayes.core.jit import compiled
from classex_bayes.core.linear_split import between_points
from classex_bayes.typing import FloatArray

_STEP, _LARGEST_LOG_RATE, _LARGEST_SD = 0.05, 30.0, 8.0
_NODES = np.linspace(-9, 9, 181)


def chance_of_none(log_rate: FloatArray, sd: FloatArray) -> FloatArray:
    r""":math:`E[e^{-\lambda F}]` for a lognormal factor F with mean 1.

    `log_rate` and the standard deviation `sd` of log F broadcast; they are clipped to [-30, 30] and
    to at most 8. Values are interpolated linearly in a table. Their error is below 3e-4, and the
    relative error of one minus the value is below 0.2%.
    """
    log_rate, sd = np.broadcast_arrays(log_rate, sd)
    chance = np.empty(sd.size)
    _interpolate(np.ravel(log_rate), np.ravel(sd), _table(), chance)
    return chance.reshape(sd.shape)


@compiled(nogil=True)
def _interpolate(
    log_rate: FloatArray, sd: FloatArray, table: FloatArray, chance: FloatArray
) -> None:
    """Interpolate the table bilinearly at points (n,)."""
    last = table.shape[0] - 1
    for i in range(chance.size):
        row = min(max((log_rate[i] + _LARGEST_LOG_RATE) / _STEP, 0.0), last)
        above = min(int(row), last - 1)
        upper = between_points(table[above], sd[i] / _STEP)
        lower = between_points(table[above + 1], sd[i] / _STEP)
        chance[i] = upper + (row - above) * (lower - upper)


@cache
def _table() -> FloatArray:
    """Chance of no event by log rate and standard deviation, in steps of 0.05."""
    log_rates = np.arange(-_LARGEST_LOG_RATE, _LARGEST_LOG_RATE + _STEP / 2, _STEP)
    sd = np.arange(0.0, _LARGEST_SD + _STEP / 2, _STEP)
    density = np.exp(-0.5 * _NODES**2)
    density /= density.sum()
    scatter = np.outer(sd, _NODES) - 0.5 * sd[:, None] ** 2
    table = np.empty((log_rates.size, sd.size))
    for row, log_rate in enumerate(log_rates):
        table[row] = np.exp(-np.exp(np.minimum(log_rate + scatter, 50.0))) @ density
    return table
