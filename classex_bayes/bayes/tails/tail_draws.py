"""Draws of the law of U* from the tails of a task's scores."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from classex_bayes.bayes.tails.local_tails import depths_of
from classex_bayes.bayes.tails.scale_choice import (
    ScaleFit,
    competitor_effect,
    n_better_bounds,
    numbers_of_draws,
    scale_fits,
)
from classex_bayes.bayes.tails.tail_calibration import named_parameters
from classex_bayes.bayes.tails.tail_laws import TailCells, draw_laws
from classex_bayes.core.basis import RadialBasis
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

# Standard deviation of the error of the slope for p below a seventh of 1 / k1, where ranks do not
# determine it. The resulting error of log p grows with log(k / k1).
DISCREPANCY = 0.25
LEAST_SHARE = 0.05  # of the draws, on a scale that matters


@dataclass(frozen=True, eq=False)
class TailDraws:
    """Independent draws from the posterior of the tails, scale by scale.

    Attributes
    ----------
    weights : array of shape (n, m)
        Laws of U* on the knots of a basis.
    parameters : dict from str to array of shape (n,)
        Draws of `classex_bayes.bayes.tails.tail_calibration.TAIL_PARAMETERS`.
    log_prior, log_likelihood : array of shape (n,)
        Log densities of the draws.
    scale_place : int array of shape (n,)
        Place of the scale of each draw among `fits`.
    fits : list of ScaleFit
        Calibrations on all scales, the most probable one first.
    """

    weights: FloatArray
    parameters: dict[str, FloatArray]
    log_prior: FloatArray
    log_likelihood: FloatArray
    scale_place: IntArray
    fits: list[ScaleFit]

    @classmethod
    def of(
        cls, task: SourceTask, basis: RadialBasis, size: int, seeds: np.random.SeedSequence
    ) -> Self:
        """Calibrate the tails on every scale, and draw laws in proportion to the probabilities."""
        halves, rng = (np.random.default_rng(seed) for seed in seeds.spawn(2))
        fits = scale_fits(task, halves)
        nearest, effect, bounds = (
            task.nearest_classes,
            competitor_effect(task),
            n_better_bounds(task),
        )
        tested, class_place = np.unique(task.y, return_inverse=True)
        instances = task.require("ranks")
        class_weight = instances.class_weight[tested]
        errors = DISCREPANCY * rng.standard_normal(size)
        points, weights = np.empty((size, 4)), np.empty((size, basis.knots.size))
        log_prior, log_likelihood = np.empty(size), np.empty(size)
        numbers = numbers_of_draws(fits, size)
        place = np.repeat(np.arange(len(fits)), numbers)
        for at, (fit, number) in enumerate(zip(fits, numbers, strict=True)):
            if number == 0:
                continue
            part = place == at
            points[part] = fit.sample.draw(number, rng)
            log_prior[part] = fit.prior.log_density(points[part])
            distinct, repeated = np.unique(points[part], axis=0, return_inverse=True)
            log_likelihood[part] = fit.table.log_likelihood(distinct)[repeated]
            depth = depths_of(nearest, fit.scale, instances.weight)
            cells = TailCells.of(depth, bounds, class_place, task.n_classes, basis)
            weights[part] = draw_laws(
                points[part], errors[part], class_weight, effect, cells, task.n_classes, rng
            )
        drawn = {**named_parameters(points), "tail_error": errors}
        log_prior -= 0.5 * (errors / DISCREPANCY) ** 2
        return cls(weights, drawn, log_prior, log_likelihood, place, fits)

    @property
    def pareto_k(self) -> float:
        """Largest tail index of the importance weights on scales that matter."""
        return max(fit.sample.pareto_k for fit in self.fits if fit.prob > LEAST_SHARE)
