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
    mean_log_p,
    slope_spread,
    tail_law,
)
from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.jit import compiled
from classex_bayes.core.linear_split import add_linearly, between_points, on_grid, split_linearly
from classex_bayes.typing import FloatArray, IntArray

_LOWEST, _STEP = -40.0, 0.005
_LOG_P = _LOWEST + _STEP * np.arange(8000)  # up to -0.005
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
    basis : RadialBasis
        The knots.
    """

    share: csr_array
    outside: FloatArray
    basis: RadialBasis

    @classmethod
    def of(
        cls,
        depth: FloatArray,
        bounds: tuple[IntArray, IntArray],
        class_place: IntArray,
        n_classes: int,
        basis: RadialBasis,
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
        outside = np.empty((lost.shape[1], basis.knots.size))
        for row, (low, high) in enumerate(lost.T):
            log_p, weight = law_outside(low, high, n_classes - 1)
            outside[row] = on_grid(np.interp(log_p, _LOG_P, _Z), weight, basis.knots)
        return cls(csr_array((share, place), shape=shape), outside, basis)


def draw_laws(
    parameters: FloatArray,
    tail_error: FloatArray,
    class_weight: FloatArray,
    effect: float,
    cells: TailCells,
    n_classes: int,
    rng: np.random.Generator,
) -> FloatArray:
    r"""Weights (draws, m) on the knots of the cells, one law for each draw of the parameters.

    Parameters
    ----------
    parameters : array of shape (draws, 4)
        Those of `classex_bayes.bayes.tails.tail_calibration.TailPrior`.
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
    knots = cells.basis.knots
    # Variance that the kernel of a knot, and linear splitting between knots, give to one point.
    blur = cells.basis.bandwidth**2 + float(np.diff(knots).mean()) ** 2 / 6
    weights = np.empty((len(parameters), knots.size))
    position = np.interp(_Z, knots, np.arange(knots.size))
    groups = rng.permutation(class_weight.size) % min(class_weight.size, _MOST_GROUPS)
    grouped = np.bincount(groups, class_weight)
    # A class of weight 0 may be a group of its own, which is never drawn.
    part_of_group = class_weight / np.where(grouped > 0, grouped, 1.0)[groups]
    membership = csr_array((part_of_group, (groups, np.arange(groups.size))))
    share = membership @ cells.share
    for first in range(0, len(parameters), _DRAWS_AT_ONCE):
        part = slice(first, min(first + _DRAWS_AT_ONCE, len(parameters)))
        drawn = resampled(grouped, 1 / effect, part.stop - part.start, rng)
        chances = np.ascontiguousarray(drawn @ share)  # one layout, which compiles once
        weights[part] = chances[:, DEPTHS.size :] @ cells.outside
        points, error = parameters[part], tail_error[part]
        scatter = _narrower(points, n_classes - 1, error, blur)
        nodes, chance = tail_law(points, n_classes - 1, error, scatter)
        _add_to_knots(nodes, chances, chance, position, weights[part])
    return weights / weights.sum(axis=1, keepdims=True)


@compiled(nogil=True)
def _add_to_knots(
    log_p: FloatArray,
    share: FloatArray,
    chance: FloatArray,
    position: FloatArray,
    weights: FloatArray,
) -> None:
    """Add masses at the nodes `log_p` (n, 151, m) to `weights` (n, n_knots), split linearly.

    A node has the mass `share` (n, 151 or more) of its depth times its probability `chance` (n, m).
    `position` is the place among the knots of each log p of the grid.
    """
    for i in range(log_p.shape[0]):
        for d in range(log_p.shape[1]):
            if share[i, d] > 0:
                for m in range(log_p.shape[2]):
                    place = between_points(position, (log_p[i, d, m] - _LOWEST) / _STEP)
                    add_linearly(share[i, d] * chance[i, m], place, weights[i])


def _narrower(
    points: FloatArray, n_rivals: float, tail_error: FloatArray, blur: float
) -> FloatArray:
    """Scatter (n, 151) of log p at `DEPTHS` less what the knots' kernels add to it."""
    start, decline = mean_log_p(points, n_rivals, tail_error)
    z = np.interp(start - decline, _LOG_P, _Z)
    steepness = np.exp(-0.5 * z**2 - log_ndtr(-z)) / np.sqrt(2 * np.pi)  # of log p in Z
    of_slopes = slope_spread(points) * decline  # z has this factor, too
    total = (N_NEAREST**-0.5 + of_slopes) ** 2
    return np.sqrt(np.maximum(total - blur * steepness**2, 0.0)) - of_slopes
