"""Draws of the law of U* from the calibrated tails of a task's scores."""

from typing import NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array
from scipy.special import log_ndtr, ndtri_exp

from classex_bayes.bayes.tails.local_tails import N_NEAREST, depths_of
from classex_bayes.bayes.tails.scale_choice import (
    ScaleFit,
    numbers_of_draws,
    scale_fits,
)
from classex_bayes.bayes.tails.tail_calibration import (
    DEPTHS,
    law_outside,
    mean_log_p,
    tail_law,
)
from classex_bayes.bayes.tails.tail_prior import (
    TailPrior,
    draw_errors,
    named_parameters,
    slope_spread,
    with_errors,
)
from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.jit import compiled
from classex_bayes.core.linear_split import add_linearly, between_points, on_grid, split_linearly
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

LEAST_SHARE = 0.05  # of the draws, on a scale that matters
_LOWEST, _STEP = -40.0, 0.005
_LOG_P = _LOWEST + _STEP * np.arange(8000)  # up to -0.005
_Z = -ndtri_exp(_LOG_P)
_MOST_GROUPS = 20_000  # of classes that are resampled together
_DRAWS_AT_ONCE = 200


class TailDraws(NamedTuple):
    """Independent draws from the posterior of the tails, scale by scale."""

    weights: FloatArray  # (n, m): laws of U* on the knots of a basis
    parameters: dict[str, FloatArray]  # of the `TailPrior`, (n,) each
    log_prior: FloatArray  # (n,)
    log_likelihood: FloatArray  # (n,)
    scale_place: IntArray  # (n,): place of the scale of each draw among the fits
    fits: list[ScaleFit]  # calibrations on all scales, the most probable one first

    @classmethod
    def of(
        cls,
        task: SourceTask,
        basis: RadialBasis,
        prior: TailPrior | None,
        size: int,
        seeds: np.random.SeedSequence,
    ) -> Self:
        """Calibrate the tails on every scale, and draw laws in proportion to the probabilities."""
        halves, rng = (np.random.default_rng(seed) for seed in seeds.spawn(2))
        fits = scale_fits(task, prior, halves)
        prior = fits[0].prior
        errors = draw_errors(prior, size, rng)
        points = np.empty((size, prior.mean.size))
        weights = np.empty((size, basis.knots.size))
        log_likelihood = np.empty(size)
        numbers = numbers_of_draws(fits, size)
        place = np.repeat(np.arange(len(fits)), numbers)
        instances = task.require("ranks among all classes")
        tested, class_place = np.unique(task.y, return_inverse=True)
        of_classes = instances.class_weight[tested], instances.variance.competitor_effect
        for at, (fit, number) in enumerate(zip(fits, numbers, strict=True)):
            if number == 0:
                continue
            part = place == at
            points[part] = fit.sample.draw(number, rng)
            distinct, repeated = np.unique(points[part], axis=0, return_inverse=True)
            log_likelihood[part] = fit.table.log_likelihood(distinct)[repeated]
            depth = depths_of(task.nearest_classes, fit.scale, instances)
            bounds = instances.lowest, instances.highest
            cells = TailCells.of(depth, bounds, class_place, task.n_classes, basis)
            of_all = with_errors(points[part], errors[part])
            weights[part] = cells.draw_laws(of_all, *of_classes, rng)
        drawn = {**named_parameters(points), "slope_error": errors}
        log_prior = prior.log_density(points) + prior.log_density_of_errors(errors)
        return cls(weights, drawn, log_prior, log_likelihood, place, fits)

    @property
    def pareto_k(self) -> float:
        """Largest tail index of the importance weights on scales that matter."""
        return max(fit.sample.pareto_k for fit in self.fits if fit.prob > LEAST_SHARE)


class TailCells(NamedTuple):
    """Instances of the tested classes by the evidence on their p.

    The cells are the depths of `tail_calibration.DEPTHS`, and the numbers of better classes of
    instances outside their tails.
    """

    share: csr_array  # (n_classes, n_cells): share of each class's instances in each cell
    outside: FloatArray  # (n_outside, m): law of Z on the knots of the cells outside
    n_wrong: int  # number of wrong classes of an instance
    basis: RadialBasis  # the knots

    @classmethod
    def of(
        cls,
        depth: FloatArray,
        bounds: tuple[IntArray, IntArray],
        class_place: IntArray,
        n_classes: int,
        basis: RadialBasis,
    ) -> Self:
        """Cells of instances whose numbers of better classes lie within `bounds`, (n,) each.

        `class_place` (n,) numbers the tested classes.
        """
        inside = depth > 0
        n_better, cell = np.unique(np.stack(bounds)[:, ~inside], axis=1, return_inverse=True)
        rows, columns, values = [class_place[~inside]], [DEPTHS.size + cell.ravel()], []
        values.append(np.ones(cell.size))
        for column, part in split_linearly(depth[inside], DEPTHS):
            rows.append(class_place[inside])
            columns.append(column)
            values.append(part)
        place = np.concatenate(rows), np.concatenate(columns)
        repeats = np.bincount(class_place)
        share = np.concatenate(values) / repeats[place[0]]
        shape = repeats.size, DEPTHS.size + n_better.shape[1]
        outside = np.empty((n_better.shape[1], basis.knots.size))
        for row, (low, high) in enumerate(n_better.T):
            log_p, weight = law_outside(low, high, n_classes - 1)
            outside[row] = on_grid(np.interp(log_p, _LOG_P, _Z), weight, basis.knots)
        return cls(csr_array((share, place), shape=shape), outside, n_classes - 1, basis)

    def draw_laws(
        self,
        points: FloatArray,
        class_weight: FloatArray,
        effect: float,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Weights (n, m) on the knots, one law for each of the points (n, 5) of a `TailPrior`.

        The tested classes, of `class_weight`, are resampled. `effect` is the inflation of the
        variance between classes by the competitors that they share.
        """
        knots = self.basis.knots
        # Variance that the kernel of a knot, and linear splitting between knots, give to one point.
        blur = self.basis.bandwidth**2 + float(np.diff(knots).mean()) ** 2 / 6
        weights = np.empty((len(points), knots.size))
        position = np.interp(_Z, knots, np.arange(knots.size))
        groups = rng.permutation(class_weight.size) % min(class_weight.size, _MOST_GROUPS)
        grouped = np.bincount(groups, class_weight)
        # A class of weight 0 may be a group of its own, which is never drawn.
        part_of_group = class_weight / np.where(grouped > 0, grouped, 1.0)[groups]
        membership = csr_array((part_of_group, (groups, np.arange(groups.size))))
        share = membership @ self.share
        for first in range(0, len(points), _DRAWS_AT_ONCE):
            part = slice(first, min(first + _DRAWS_AT_ONCE, len(points)))
            drawn = resampled(grouped, 1 / effect, part.stop - part.start, rng)
            chances = np.ascontiguousarray(drawn @ share)  # one layout, which compiles once
            weights[part] = chances[:, DEPTHS.size :] @ self.outside
            scatter = _narrower(points[part], self.n_wrong, blur)
            nodes, chance = tail_law(points[part], self.n_wrong, scatter)
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


def _narrower(points: FloatArray, n_wrong: float, blur: float) -> FloatArray:
    """Scatter (n, 151) of log p at `DEPTHS` less what the knots' kernels add to it."""
    start, decline = mean_log_p(points, n_wrong)
    z = np.interp(start - decline, _LOG_P, _Z)
    steepness = np.exp(-0.5 * z**2 - log_ndtr(-z)) / np.sqrt(2 * np.pi)  # of log p in Z
    of_slopes = slope_spread(points) * decline  # z has this factor, too
    total = (N_NEAREST**-0.5 + of_slopes) ** 2
    return np.sqrt(np.maximum(total - blur * steepness**2, 0.0)) - of_slopes


def resampled(weight: FloatArray, shape: float, draws: int, rng: np.random.Generator) -> FloatArray:
    r"""Dirichlet draws (draws, n) about the class weights (n,), as if other classes were drawn.

    The parameters are :math:`a\, w_l / S`, with :math:`S = \sum_l w_l^2` and a the `shape`. A mean
    over classes then has approximately the variance :math:`S / a \sum_l w_l (m_l - A)^2`, in which
    every class counts by its weight. Gamma draws of one shape, multiplied by :math:`w_l`, would
    have :math:`w_l^2` in this sum. That would compare a heavy class with a mean A that is mainly
    its accuracy.
    """
    relative = weight / weight.max()
    shapes = shape * relative * (relative.sum() / (relative**2).sum())
    size = draws, weight.size
    with np.errstate(divide="ignore"):  # weights of 0
        # In logarithms, since draws of a small shape underflow.
        logs = np.log(rng.gamma(shapes + 1, size=size))
        logs -= rng.standard_exponential(size) / shapes
    drawn = np.exp(logs - logs.max(axis=1, keepdims=True))
    return drawn / drawn.sum(axis=1, keepdims=True)
