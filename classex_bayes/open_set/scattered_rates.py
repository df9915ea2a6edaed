"""Probability of no event if the rate of events varies between probes."""

from functools import cache

import numpy as np

from classex_bayes.core.jit import compiled
from classex_bayes.typing import FloatArray

_STEP, _LARGEST_LOG_RATE, _LARGEST_SD = 0.05, 30.0, 8.0
_LOG_RATE = np.arange(-_LARGEST_LOG_RATE, _LARGEST_LOG_RATE + _STEP / 2, _STEP)
_SD = np.arange(0.0, _LARGEST_SD + _STEP / 2, _STEP)
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
    last_row, last_column = table.shape[0] - 1, table.shape[1] - 1
    for i in range(chance.size):
        row = min(max((log_rate[i] + _LARGEST_LOG_RATE) / _STEP, 0.0), last_row)
        column = min(sd[i] / _STEP, last_column)
        above, left = min(int(row), last_row - 1), min(int(column), last_column - 1)
        down, right = row - above, column - left
        upper = (1 - right) * table[above, left] + right * table[above, left + 1]
        lower = (1 - right) * table[above + 1, left] + right * table[above + 1, left + 1]
        chance[i] = (1 - down) * upper + down * lower


@cache
def _table() -> FloatArray:
    density = np.exp(-0.5 * _NODES**2)
    density /= density.sum()
    scatter = np.outer(_SD, _NODES) - 0.5 * _SD[:, None] ** 2
    table = np.empty((_LOG_RATE.size, _SD.size))
    for row, log_rate in enumerate(_LOG_RATE):
        table[row] = np.exp(-np.exp(np.minimum(log_rate + scatter, 50.0))) @ density
    return table
