"""Draws of the law of U* from local tails: weights on the knots of a radial basis."""

from typing import NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array
from scipy.special import log_ndtr, ndtri_exp

from classex_bayes.bayes.tails.class_resampling import resampled
from classex_bayes.bayes.tails.local_tails import N_NEAREST
from classex_bayes.bayes.tails.tail_calibration import (
    DEPTHS,
    law_outside,
    on_grid,
    split_linearly,
    tail_law_with_error,
)
from classex_bayes.core.basis import RadialBasis
from classex_bayes.typing import FloatArray, IntArray

# Finer than the knots of the priors: laws of instances are narrow, and their knots blur them.
BASIS = RadialBasis.regular(-4.0, 8.0, 0.1)
_STEP = float(BASIS.knots[1] - BASIS.knots[0])
# Variance that the kernel of a knot, and linear splitting between knots, give to one point.
_BLUR = BASIS.bandwidth**2 + _STEP**2 / 6
_LOG_P = np.linspace(-40.0, -1e-3, 8000)
_Z = -ndtri_exp(_LOG_P)
_MOST_GROUPS = 20_000  # of classes that are resampled together
_DRAWS_AT_ONCE = 200


class TailCells(NamedTuple):
    """Instances of the tested classes by what is known of their p.

    Attributes
    ----------
    share : sparse array of shape (n_classes, 151 + n_outside)
        Share of each tested class's instances in each cell: the depths of
        `classex_bayes.bayes.tails.tail_calibration.DEPTHS`, then the losses of instances outside
        their tails.
    outside : array of shape (n_outside, m)
        Law of Z on the knots for each of the latter.
    """

    share: csr_array
    outside: FloatArray

    @classmethod
    def of(
        cls,
        depth: FloatArray,
        bounds: tuple[IntArray, IntArray],
        class_place: IntArray,
        n_classes: int,
    ) -> Self:
        """Cells of instances whose losses lie within `bounds`, two arrays of shape (n,).

        `class_place` (n,) numbers the tested classes.
        """
        inside = depth > 0
        lost, cell = np.unique(np.stack(bounds)[:, ~inside], axis=1, return_inverse=True)
        rows, columns, values = [class_place[~inside]], [DEPTHS.size + cell.ravel()], []
        values.append(np.ones(cell.size))
        for column, part in split_linearly(depth[inside], DEPTHS):
            rows.append(class_place[inside])
            columns.append(column)
            values.append(part)
        place = np.concatenate(rows), np.concatenate(columns)
        repeats = np.bincount(class_place)
        share = np.concatenate(values) / repeats[place[0]]
        shape = repeats.size, DEPTHS.size + lost.shape[1]
        outside = np.array([_on_knots(*law_outside(low, high, n_classes)) for low, high in lost.T])
        return cls(csr_array((share, place), shape=shape), outside.reshape(-1, BASIS.knots.size))


def _on_knots(log_p: FloatArray, weight: FloatArray) -> FloatArray:
    """Weights (m,) on the knots of points with `weight`."""
    return on_grid(np.interp(log_p, _LOG_P, _Z), weight, BASIS.knots)


def draw_laws(
    parameters: FloatArray,
    tail_error: FloatArray,
    class_weight: FloatArray,
    effect: float,
    cells: TailCells,
    n_classes: int,
    rng: np.random.Generator,
) -> FloatArray:
    r"""Weights (draws, m) on the knots of `BASIS`, one law for each draw of the parameters.

    Parameters
    ----------
    parameters : array of shape (draws, 3)
        Level, slope and log odds of look-alikes.
    tail_error : array of shape (draws,)
        :math:`\delta`: beyond the depth :math:`2 + \log j`, the slope is :math:`b + \delta`.
    class_weight : array of shape (n_classes,)
        Weights of the tested classes; they are resampled.
    effect : float
        Inflation of the variance between classes by the competitors that they share.
    cells : TailCells
        The instances.
    n_classes : int
        k1.
    rng : Generator
        Resamples the classes.
    """
    weights = np.empty((len(parameters), BASIS.knots.size))
    groups = rng.permutation(class_weight.size) % min(class_weight.size, _MOST_GROUPS)
    grouped = np.bincount(groups, class_weight)
    # A class of weight 0 may be a group of its own, which is never drawn.
    part_of_group = class_weight / np.where(grouped > 0, grouped, 1.0)[groups]
    membership = csr_array((part_of_group, (groups, np.arange(groups.size))))
    share = membership @ cells.share
    for first in range(0, len(parameters), _DRAWS_AT_ONCE):
        part = slice(first, min(first + _DRAWS_AT_ONCE, len(parameters)))
        chances = resampled(grouped, 1 / effect, part.stop - part.start, rng) @ share
        inside, outside = np.split(chances, [DEPTHS.size], axis=1)
        weights[part] = outside @ cells.outside
        for row in range(part.start, part.stop):
            scatter = _narrower(parameters[row], n_classes - 1)
            log_p, weight = tail_law_with_error(
                parameters[row], tail_error[row], n_classes - 1, scatter
            )
            joint = np.multiply.outer(inside[row - part.start], weight)
            weights[row] += _on_knots(log_p.ravel(), joint.ravel())
    return weights / weights.sum(axis=1, keepdims=True)


def _narrower(parameters: FloatArray, n_rivals: float) -> FloatArray:
    """Scatter of log p at `DEPTHS` less what the knots' kernels add to it."""
    centre = np.log(N_NEAREST / n_rivals) + parameters[0] - parameters[1] * DEPTHS
    z = np.interp(centre, _LOG_P, _Z)
    slope = np.exp(-0.5 * z**2 - log_ndtr(-z)) / np.sqrt(2 * np.pi)  # of log p in Z
    return np.sqrt(np.maximum(1 / N_NEAREST - _BLUR * slope**2, 0.0))
