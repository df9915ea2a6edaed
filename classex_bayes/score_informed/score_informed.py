"""ScoreInformedExtrapolator: a posterior from ranks and scores."""

import json
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import xarray as xr
from scipy.special import expit

from classex_bayes.arguments import number, seed_sequence
from classex_bayes.bayes.extrapolator import sample_posterior_of_tasks
from classex_bayes.bayes.idata import described, task_groups
from classex_bayes.bayes.law_model import LawModel
from classex_bayes.bayes.model.priors import MixturePrior
from classex_bayes.bayes.sampling import SamplerSettings
from classex_bayes.bayes.tails.distance_scale import DistanceScale
from classex_bayes.bayes.tails.local_tails import depths_of
from classex_bayes.bayes.tails.scale_choice import (
    LARGEST_SLOPE,
    best_scale,
    competitor_effect,
    n_better_bounds,
    why_no_tails,
)
from classex_bayes.bayes.tails.tail_calibration import DEPTHS, TAIL_PARAMETERS, on_grid, tail_sample
from classex_bayes.core.law import MixtureLaw
from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.estimators.base import takes_one_task
from classex_bayes.results import SAMPLE_DIMS
from classex_bayes.score_informed.tail_laws import BASIS, TailCells, draw_laws
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import source_task
from classex_bayes.typing import RandomSeed

# Ranks and scores contradict each other beyond both: standard deviations, and a difference.
_CONFLICT, _SMALLEST_CONFLICT = 2.0, 0.02
HELD_OUT = "held_out_losses"  # its group in `idata`


class ScoreInformedExtrapolator(LawModel):
    r"""Posterior of the accuracy on more classes, from ranks and scores.

    Ranks contain only whether the true class won. Scores also contain by how much. The few wrong
    classes nearest to an instance show how fast the density of competitors decreases towards it.
    With d the distance of the true class, :math:`r_1 \le \dots \le r_j` those of the j = 4 nearest
    wrong classes and m their local exponent (Hill's estimate), a random class is nearer than the
    true one with probability

    .. math:: \log p = \log \frac{j}{k_1 - 1} + c - b v q + \varepsilon, \qquad
              q = m \log \frac{r_j}{d},

    and :math:`AGA_k = E[(1 - p)^{k - 1}]` over the instances. Level c, slope b and the share
    :math:`\pi` of instances with look-alikes (v uniform on [0, 1] instead of 1) are calibrated by
    losses in one half of the classes, given depths q from the other half
    (`classex_bayes.bayes.tails.tail_calibration`). Each draw of the parameters, with resampled
    classes, gives a draw of the law of U* = 1 - p. Predictions follow from these draws as in
    `BayesianExtrapolator`.

    Distances and the cosine are used on their natural scale. Powers of distances give the same
    result. For other scores, the likelihood of the held-out losses chooses among :math:`\log(s_0 -
    s)` with several origins :math:`s_0`, :math:`-s` (logits) and :math:`-\log s` (probabilities).

    If the scores are not informative enough, the posterior is that of `BayesianExtrapolator`, and a
    note on every prediction gives the reason. Reasons are ties, scores with only two values or of
    only a few classes, fewer than 20 classes, class weights with an effective number of fewer than
    10 classes, lists of fewer than 15 wrong classes, and a slope above 1.25, which shows that the
    tails are not power laws.

    Parameters
    ----------
    discrepancy : float
        Standard deviation of the error of the slope for p below a seventh of 1 / k1, where losses
        do not determine it. The resulting error of log p grows with log(k / k1).

    Attributes
    ----------
    posterior_ : Dataset
        Draws of "level", "slope", "look_alikes" and "tail_error", which is the error of the slope
        far beyond the pilot.
    scale_ : str or None
        Scale of the scores s on which they are treated as distances; None if only ranks are used.
    pareto_k_ : float
        Tail index of the importance weights of the draws. Above 0.7 the draws are unreliable.
    idata : DataTree
        Groups posterior, mixture (weights of the law on its knots), observed_data, constant_data
        and held_out_losses: the weight of the instances by losses and depth.
    task : SourceTask or None
        The fitted task; None after `classex_bayes.load`.

    See Also
    --------
    BayesianExtrapolator : From ranks alone.

    Notes
    -----
    docs/scores.md reports its errors on real populations and shows where it fails. The templates of
    all classes must be made in the same way. A template that is made from the test instance is too
    near.

    References
    ----------
    Hill, Annals of Statistics 3, 1975 (the exponent); Amsaleg et al., KDD 2015 (local intrinsic
    dimension); Scheirer, Rocha, Micheals and Boult, IEEE TPAMI 33, 2011 (extreme values of
    recognition scores).

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> gallery = rng.normal(size=(60, 8))
    >>> probes = gallery + 0.4 * rng.normal(size=(60, 8))
    >>> task = SourceTask.from_embeddings(probes, gallery, range(60))
    >>> model = ScoreInformedExtrapolator().fit(task, sampler={"draws": 500}, random_seed=1)
    >>> pred = model.predict([60, 600])
    >>> bool(pred.mean[600] < pred.mean[60])
    True
    """

    def __init__(self, discrepancy: float = 0.25) -> None:
        self.discrepancy = discrepancy

    @takes_one_task
    def fit(
        self,
        task: SourceTask,
        *,
        sampler: Mapping[str, Any] | None = None,
        random_seed: RandomSeed = None,
        progressbar: bool = True,
    ) -> Self:
        """Calibrate the local tails and draw laws of U*.

        Parameters
        ----------
        task : SourceTask
            Task made from scores, embeddings, or lists of a vector index with distances.
        sampler : mapping, optional
            As for `BayesianExtrapolator.fit`. All draws are independent, so only draws and chains
            count, unless the posterior is that of the ranks.
        random_seed : int, SeedSequence or None
            Seed of the halves of the classes and of the draws.
        progressbar : bool
            As for `BayesianExtrapolator.fit`.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If the task has no scores, or `discrepancy` is negative.

        Warns
        -----
        DataWarning, ConvergenceWarning
            As for `BayesianExtrapolator.fit`. Also if the importance weights are unreliable.
        """
        source_task(task)
        discrepancy = number(self.discrepancy, "discrepancy", 0, whole=False)
        settings = SamplerSettings.of(sampler, progressbar)
        seeds = seed_sequence(random_seed)
        nearest = task.nearest_classes
        reason = why_no_tails(task, nearest)
        if reason:
            return self._fit_ranks(task, settings, seeds, reason)
        halves, rng = (np.random.default_rng(seed) for seed in seeds.spawn(2))
        evidence = task.evidence.instances("tails")
        # Instances of a class are dependent, and so are instances that share competitors.
        weight = task.n_test * evidence.instance_weight / max(task.design_effect(), 1.0)
        scale, table, mode = best_scale(nearest, weight, task.n_classes, halves)
        posterior = tail_sample(table, mode, rng)
        number_of_draws = settings.chains * settings.draws
        parameters = posterior.draw(number_of_draws, rng)
        if (slope := float(parameters[:, 1].mean())) > LARGEST_SLOPE:
            why = (
                f"the probability of losing to a class decreases {slope:.2f} times as fast as the "
                "tails of the distances"
            )
            return self._fit_ranks(task, settings, seeds, why)
        tail_error = discrepancy * rng.standard_normal(number_of_draws)
        tested, place = np.unique(task.y, return_inverse=True)
        weights = draw_laws(
            parameters,
            tail_error,
            evidence.class_weight[tested],
            competitor_effect(task),
            TailCells.of(depths_of(nearest, scale), n_better_bounds(task), place, task.n_classes),
            task.n_classes,
            rng,
        )
        shape = settings.chains, settings.draws
        law = MixtureLaw(BASIS, weights.reshape(*shape, -1))
        values = {
            "level": parameters[:, 0],
            "slope": parameters[:, 1],
            "look_alikes": expit(parameters[:, 2]),
            "tail_error": tail_error,
        }
        drawn = xr.Dataset({name: (SAMPLE_DIMS, x.reshape(shape)) for name, x in values.items()})
        drawn = described(drawn, TAIL_PARAMETERS)
        _, tree = task_groups(task, law.basis, "auto")
        tree[HELD_OUT] = xr.DataTree(table.group())
        tree.attrs.update(pareto_k=posterior.pareto_k, **scale.attributes)
        tree["observed_data"] = xr.DataTree(_with_depths(tree, nearest, scale))
        tree.attrs["notes"] = json.dumps(_contradiction(task, law))
        return self._keep_law(task, law, seeds, drawn, tree)

    def _fit_ranks(
        self, task: SourceTask, settings: SamplerSettings, seeds: np.random.SeedSequence, why: str
    ) -> Self:
        """Keep the draws of the model of the ranks."""
        tree, stop = sample_posterior_of_tasks(
            (task,), MixturePrior(), "auto", "nothing", settings, seeds
        )
        tree.attrs["notes"] = json.dumps([f"only ranks are used, because {why}"])
        return self._keep(tree, (task,), seeds, settings, stop)

    def _data_groups(self, tasks: tuple[SourceTask, ...]) -> xr.DataTree:
        tree = super()._data_groups(tasks)
        if self._scale is not None:
            data = _with_depths(tree, tasks[0].nearest_classes, self._scale)
            tree["observed_data"] = xr.DataTree(data)
        return tree

    @property
    def _scale(self) -> DistanceScale | None:
        attributes = self.idata.attrs
        if "scale_kind" not in attributes:
            return None
        return DistanceScale.of_attributes(attributes)

    def _fit_text(self) -> str:
        return "ranks alone" if self.scale_ is None else f"tails on distances {self.scale_}"

    @property
    def posterior_(self) -> xr.Dataset:
        """Draws of the parameters of the calibration, or of the model of the ranks."""
        return self.idata["posterior"].to_dataset().drop_dims("k")

    @property
    def scale_(self) -> str | None:
        """Scale of the scores s on which they are distances; None if ranks are used alone."""
        return None if self._scale is None else str(self._scale)

    @property
    def pareto_k_(self) -> float:
        """Tail index of the importance weights; NaN if ranks are used alone."""
        return float(self.idata.attrs.get("pareto_k", np.nan))


def _with_depths(tree: xr.DataTree, nearest: NearestClasses, scale: DistanceScale) -> xr.Dataset:
    """The group observed_data with the number of instances at each depth."""
    depth = depths_of(nearest, scale)
    counts = on_grid(depth[depth > 0], 1.0, DEPTHS)
    text = {"description": "number of instances at each depth in the local tails"}
    return tree["observed_data"].to_dataset().assign(depth_counts=("depth", counts, text))


def _contradiction(task: SourceTask, law: MixtureLaw) -> list[str]:
    """Note if the tails predict another accuracy on the source classes than was measured."""
    k = np.array([task.n_classes])
    lower, upper = task.accuracy_bounds(k)
    if upper[0] - lower[0] > _SMALLEST_CONFLICT:
        return []
    measured, foretold = float(lower[0] + upper[0]) / 2, law.expected(k)
    apart = abs(measured - float(foretold.mean()))
    if apart <= max(_CONFLICT * float(foretold.std()), _SMALLEST_CONFLICT):
        return []
    return [
        f"ranks and scores contradict each other: the accuracy on the {task.n_classes} source "
        f"classes is {measured:.3f}, but the tails predict {foretold.mean():.3f}. Check that true "
        "and wrong classes are scored in the same way"
    ]
