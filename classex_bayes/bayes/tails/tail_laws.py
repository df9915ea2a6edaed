"""Draws of the law of U* from the calibrated tails of a task's scores."""

from typing import NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array
from scipy.special import log_ndtr, ndtri_exp

from classex_bayes.bayes.tails.calibration import FormFit, form_fits, numbers_of_draws
from classex_bayes.bayes.tails.depths import N_NEAREST, ScoreForm, depths_of, tail_scores
from classex_bayes.bayes.tails.tail_model import (
    DEPTHS,
    TailParameters,
    TailPrior,
    law_outside,
    mean_log_p,
    tail_law,
)
from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.jit import compiled
from classex_bayes.core.linear_split import add_linearly, between_points, on_grid, split_linearly
from classex_bayes.task.rank_variance import RankVariance
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

_LEAST_SHARE = 0.05  # of the draws, with a form that matters
_STEP = 0.005
# Logarithms of p at which functions of it are tabulated.
LOG_P = -40.0 + _STEP * np.arange(8000)  # up to -0.005
_Z = -ndtri_exp(LOG_P)
_MOST_GROUPS = 20_000  # of classes that are resampled together
_DRAWS_AT_ONCE = 200


class TailDraws(NamedTuple):
    """Independent draws from the posterior of the tails, form by form."""

    weights: FloatArray  # (n, m): laws of U* on the knots of a basis
    parameters: dict[str, FloatArray]  # of the `TailPrior`, (n,) each
    log_prior: FloatArray  # (n,)
    log_likelihood: FloatArray  # (n,)
    form_place: IntArray  # (n,): place of the form of each draw among the fits
    fits: list[FormFit]  # calibrations with all forms, the most probable one first

    @classmethod
    def of(
        cls,
        task: SourceTask,
        basis: RadialBasis,
        prior: TailPrior,
        size: int,
        seeds: np.random.SeedSequence,
    ) -> Self:
        """Calibrate the tails with every form, and draw laws in proportion to their probability."""
        halves, rng = (np.random.default_rng(seed) for seed in seeds.spawn(2))
        fits = form_fits(task, prior, halves)
        errors = prior.draw_errors(size, rng)
        points = np.empty((size, prior.mean.size))
        weights = np.empty((size, basis.knots.size))
        log_likelihood = np.empty(size)
        numbers = numbers_of_draws(fits, size)
        place = np.repeat(np.arange(len(fits)), numbers)
        for at, (fit, number) in enumerate(zip(fits, numbers, strict=True)):
            if number == 0:
                continue
            part = place == at
            points[part] = fit.sample.draw(number, rng)
            distinct, repeated = np.unique(points[part], axis=0, return_inverse=True)
            log_likelihood[part] = fit.table.log_likelihood(distinct)[repeated]
            of_all = TailParameters.of_points(points[part]).beyond(errors[part])
            weights[part] = tail_laws(task, fit.form, basis, of_all, rng)
        drawn = {**TailParameters.of_points(points)._asdict(), "slope_error": errors}
        log_prior = prior.log_density(points) + prior.log_density_of_errors(errors)
        return cls(weights, drawn, log_prior, log_likelihood, place, fits)

    @property
    def pareto_k(self) -> float:
        """Largest tail index of the importance weights with forms that matter."""
        return max(fit.sample.pareto_k for fit in self.fits if fit.prob > _LEAST_SHARE)


def tail_laws(
    task: SourceTask,
    form: ScoreForm,
    basis: RadialBasis,
    parameters: TailParameters,
    rng: np.random.Generator,
) -> FloatArray:
    """Weights (n, m) on the knots of laws of U*, one for each of the parameters (n,).

    The depths of the instances are data, and their classes are resampled.
    """
    instances = task.require("ranks among all classes")
    tested, class_place = np.unique(task.y, return_inverse=True)
    depth = depths_of(tail_scores(task), form, instances)
    bounds = instances.min_better, instances.max_better
    cells = TailCells.of(depth, bounds, class_place, task.n_classes, basis)
    effect = RankVariance(instances).competitor_effect
    return cells.draw_laws(parameters, instances.class_weight[tested], effect, rng)


class TailCells(NamedTuple):
    """Instances of the tested classes by the evidence on their p.

    The cells are the depths of `tail_model.DEPTHS`, and the numbers of better classes of
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
            outside[row] = on_grid(np.interp(log_p, LOG_P, _Z), weight, basis.knots)
        return cls(csr_array((share, place), shape=shape), outside, n_classes - 1, basis)

    def draw_laws(
        self,
        parameters: TailParameters,
        class_weight: FloatArray,
        effect: float,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Weights (n, m) on the knots, one law for each of the parameters (n,).

        The tested classes, of `class_weight`, are resampled. `effect` is the inflation of the
        variance between classes by the competitors that they share.
        """
        knots = self.basis.knots
        # Variance that the kernel of a knot, and linear splitting between knots, give to one point.
        blur = self.basis.bandwidth**2 + float(np.diff(knots).mean()) ** 2 / 6
        n = parameters.level.size
        weights = np.empty((n, knots.size))
        position = np.interp(_Z, knots, np.arange(knots.size))
        groups = rng.permutation(class_weight.size) % min(class_weight.size, _MOST_GROUPS)
        grouped = np.bincount(groups, class_weight)
        # A class of weight 0 may be a group of its own, which is never drawn.
        part_of_group = class_weight / np.where(grouped > 0, grouped, 1.0)[groups]
        membership = csr_array((part_of_group, (groups, np.arange(groups.size))))
        share = membership @ self.share
        for first in range(0, n, _DRAWS_AT_ONCE):
            part = slice(first, min(first + _DRAWS_AT_ONCE, n))
            drawn = resampled(grouped, 1 / effect, part.stop - part.start, rng)
            chances = np.ascontiguousarray(drawn @ share)  # one layout, which compiles once
            weights[part] = chances[:, DEPTHS.size :] @ self.outside
            scatter = _narrower(parameters.at(part), self.n_wrong, blur)
            nodes, chance = tail_law(parameters.at(part), self.n_wrong, scatter)
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
                    place = between_points(position, (log_p[i, d, m] - LOG_P[0]) / _STEP)
                    add_linearly(share[i, d] * chance[i, m], place, weights[i])


def _narrower(parameters: TailParameters, n_wrong: float, blur: float) -> FloatArray:
    """Scatter (n, 151) of log p at `DEPTHS` less what the knots' kernels add to it."""
    start, decline = mean_log_p(parameters, n_wrong)
    z = np.interp(start - decline, LOG_P, _Z)
    steepness = np.exp(-0.5 * z**2 - log_ndtr(-z)) / np.sqrt(2 * np.pi)  # of log p in Z
    of_slopes = parameters.slope_spread[:, None] * decline  # z has this factor, too
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
