r"""Probability that the true class is among the R best of k classes and reaches a threshold.

A wrong class beats the true one with a probability p that follows from the depth of the true class
in the local tail of its instance (`classex_bayes.bayes.tails.tail_model`). If the true class
has no depth, p follows from the number of better ones among the tested classes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import xarray as xr
from scipy.special import betaincc

from classex_bayes.bayes.tails.depths import (
    LARGEST_DEPTH,
    N_NEAREST,
    DistanceScale,
    ScoreForm,
    depths_of,
)
from classex_bayes.bayes.tails.tail_laws import LOG_P
from classex_bayes.bayes.tails.tail_model import (
    DEPTHS,
    LARGEST_LOG_P,
    TAIL_PARAMETERS,
    TailParameters,
    law_outside,
    tail_law,
)
from classex_bayes.core.jit import compiled
from classex_bayes.core.linear_split import between_points
from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.open_set.wrong_tails import WrongTails
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import BoolArray, FloatArray, IntArray

_COARSE = 0.2  # range of depths in one cell
# Prior of the decline: gamma, with a mean of 1.5 and a standard deviation of 1.
_PRIOR_MEAN, _PRIOR_SHAPE = 1.5, 2.25
_DRAWS_AT_ONCE = 200
# Jeffreys' prior of a share: numbers of instances unlike the answered ones, with either outcome.
_UNSEEN = 0.5, 0.5
_PARAMETERS = {
    **TAIL_PARAMETERS,
    "decline": "how fast wrong classes thin out from the true class inwards; 1 for a power law",
    "unseen_identified": "share of instances unlike those seen: identified",
    "unseen_missed": "share of instances that reach no threshold: unanswered and unlike those seen",
}


@dataclass(frozen=True, eq=False)
class MatedTails:
    """Draws of the probability that n instances are identified."""

    wrong: WrongTails  # wrong scores of the same instances
    log_distance: FloatArray  # (n,): of the true class; infinite if it has no score
    depth: FloatArray  # (n,): of the true class; negative if it has none
    bounds: IntArray  # (2, n): smallest and largest number of better classes
    parameters: TailParameters  # (draws,) each, with the error of the slope
    # (draws,): factor by which wrong classes thin out faster than a power law, from the true class
    # inwards
    decline: FloatArray
    unseen: FloatArray  # (draws, 2): shares of unlike instances that are identified, or missed

    @classmethod
    def of(
        cls,
        task: SourceTask,
        nearest: NearestClasses,
        scale: DistanceScale,
        parameters: TailParameters,
        wrong: WrongTails,
        answered_share: float,
        rng: np.random.Generator,
    ) -> Self:
        """Tails of the true classes of the answered instances, with the resampled weights.

        `answered_share` of all instances have an answer. The others are missed at every threshold.
        """
        log_true = scale.log_distance(nearest.true)
        table = task.require("ranks among all classes")
        depth = depths_of(nearest, ScoreForm(scale), table)
        few = np.isposinf(wrong.lists.log_distance[:, N_NEAREST - 1]) & np.isfinite(log_true)
        inwards = wrong.local.location[few] - log_true[few]
        depth[few] = np.minimum(wrong.local.exponent[few] * inwards, LARGEST_DEPTH)
        effect = max(task.design_effect(), 1.0)
        draws = parameters.level.size
        decline = _decline(wrong, log_true, depth > 0, effect, draws, rng)
        bounds = np.array([table.min_better, table.max_better])
        answered = task.n_test / effect
        identified, missed = _UNSEEN
        missed += answered * (1 / answered_share - 1)
        unseen = rng.dirichlet((answered, identified, missed), draws)[:, 1:]
        return cls(wrong, log_true, depth, bounds, parameters, decline, unseen)

    @cached_property
    def _outside(self) -> tuple[IntArray, IntArray]:
        """Distinct bounds (2, m) without a depth, and the place of each instance."""
        bounds, place = np.unique(self.bounds[:, ~self.has_depth], axis=1, return_inverse=True)
        return bounds, place.ravel()

    def accepted(self, log_threshold: float) -> BoolArray:
        """Whether the true class reaches the threshold: shape (n,)."""
        return self.log_distance <= log_threshold

    def listed(self, k: int, rank: int) -> tuple[FloatArray, FloatArray]:
        """Probabilities that true classes are among the best `rank` of `k`, at any threshold.

        The first array (draws, 151) is at the depths `DEPTHS`. The second (n,) is for instances
        without a depth, and 0 for the others.
        """
        # P(Bin(k - 1, p) < rank) is an incomplete beta function, which exists for any k.
        chance = betaincc(rank, k - rank, np.exp(LOG_P)) if rank < k else np.ones(LOG_P.size)
        by_depth = self._mean_by_depth(chance)
        bounds, place = self._outside
        outside = np.zeros(self.depth.size)
        laws = [law_outside(low, high, self.wrong.lists.n_wrong) for low, high in bounds.T]
        values = [np.interp(log_p, LOG_P, chance) @ weight for log_p, weight in laws]
        outside[~self.has_depth] = np.array(values)[place] if values else 0.0
        return by_depth, outside

    def identified(self, log_threshold: float, listed: tuple[FloatArray, FloatArray]) -> FloatArray:
        """Probability (draws,) that the true class is among the best and reaches a threshold.

        `listed` are the probabilities that it is among the best, from the method of this name.
        """
        by_depth, outside = listed
        groups, accepted = self.wrong.groups, self.accepted(log_threshold)
        cells = groups.cells_of_grid(accepted & self.has_depth, self.depth, DEPTHS)
        seen = groups.mean_by_cell(cells, by_depth) + groups.mean(accepted * outside)
        return self._with_unseen(np.clip(seen, 0.0, 1.0))

    def _with_unseen(self, share: FloatArray) -> FloatArray:
        """Share (draws,) of the instances that are identified or answered, from that of the pilot.

        It is never exactly 0 or 1, because other instances than those of the pilot exist.
        """
        return share * (1 - self.unseen.sum(axis=1)) + self.unseen[:, 0]

    def _mean_by_depth(self, of_log_p: FloatArray) -> FloatArray:
        """Mean (draws, 151) at `DEPTHS` of a function of log p, whose values are at `LOG_P`."""
        means = np.empty((self.decline.size, DEPTHS.size))
        for first in range(0, len(means), _DRAWS_AT_ONCE):
            part = slice(first, first + _DRAWS_AT_ONCE)
            log_p, weight = tail_law(self.parameters.at(part), self.wrong.lists.n_wrong)
            _put_means(log_p, weight, of_log_p, means[part])
        return means

    @cached_property
    def _log_nearer(self) -> FloatArray:
        """Log of the mean probability (draws, 151) that a wrong class is nearer, at `DEPTHS`."""
        return np.log(self._mean_by_depth(np.exp(LOG_P)))

    @property
    def has_depth(self) -> BoolArray:
        """Whether the true class of an instance lies in its tail: shape (n,)."""
        return self.depth > 0

    def answered(self, log_threshold: float, k: int) -> FloatArray:
        """Share (draws,) of the instances for which one of the k classes reaches the threshold."""
        # If the true class lies in the tail, its distance predicts the nearer wrong classes better
        # than the tail does: a poor probe is far from all classes.
        others = ~self.accepted(log_threshold) & ~self.has_depth
        none = self._none_nearer(log_threshold, k - 1)
        none += self.wrong.none_above(log_threshold, k - 1, others)
        return self._with_unseen(1 - none)

    def _none_nearer(self, log_threshold: float, n_wrong: int) -> FloatArray:
        r"""Probability (draws,) that neither the true class nor a wrong one reaches a threshold.

        It covers the instances with a depth; others add 0. Let d be the distance of the true class.
        From d inwards, the probability that a wrong class is nearer falls like
        :math:`(t / d)^{r m}`, with the `decline` r. It is at most that of the tail.
        """
        wrong = self.wrong
        kept = np.flatnonzero(self.has_depth & ~self.accepted(log_threshold))
        inwards = wrong.local.exponent[kept] * (self.log_distance[kept] - log_threshold)
        # Instances with about the same depths share a cell.
        place = np.rint([self.depth[kept] / _COARSE, np.minimum(inwards, LARGEST_DEPTH) / _COARSE])
        cells, cell = np.unique(place, axis=1, return_inverse=True)
        depth, further = cells * _COARSE
        columns = np.rint(depth / (DEPTHS[1] - DEPTHS[0])).astype(int)
        log_p = self._log_nearer[:, columns] - self.decline[:, None] * further
        log_p = np.minimum(log_p, wrong.log_chance(depth + further, log_threshold))
        none = np.exp(n_wrong * np.log1p(-np.exp(np.minimum(log_p, LARGEST_LOG_P))))
        return wrong.groups.mean_by_cell(wrong.groups.cells(kept, cell.ravel(), depth.size), none)

    def store(self, tree: xr.DataTree, name: str) -> dict[str, tuple[FloatArray, str]]:
        """Put a group of the instances into a tree. Return draws of parameters, and their texts."""
        instances = {
            "log_distance": ("instance", self.log_distance),
            "depth": ("instance", self.depth),
            "n_better": (("bound", "instance"), self.bounds),
        }
        tree[name] = xr.DataTree(xr.Dataset(instances))
        columns = *self.parameters, self.decline, *self.unseen.T
        return {
            parameter: (values, text)
            for (parameter, text), values in zip(_PARAMETERS.items(), columns, strict=True)
        }

    @classmethod
    def stored(
        cls, tree: xr.DataTree, name: str, drawn: Mapping[str, FloatArray], wrong: WrongTails
    ) -> Self:
        """Tails that `store` put into a tree, with the draws of the parameters."""
        instances = tree[name].to_dataset()
        return cls(
            wrong,
            instances["log_distance"].values,
            instances["depth"].values,
            instances["n_better"].values,
            TailParameters(*(drawn[name] for name in TAIL_PARAMETERS)),
            drawn["decline"],
            np.column_stack([drawn["unseen_identified"], drawn["unseen_missed"]]),
        )


@compiled(nogil=True)
def _put_means(
    log_p: FloatArray, weight: FloatArray, of_log_p: FloatArray, means: FloatArray
) -> None:
    """Put means over the nodes `log_p` (n, 151, m), with weights (n, m), into `means` (n, 151)."""
    for i in range(log_p.shape[0]):
        for d in range(log_p.shape[1]):
            mean = 0.0
            for m in range(log_p.shape[2]):
                place = (log_p[i, d, m] - LOG_P[0]) / (LOG_P[1] - LOG_P[0])
                mean += weight[i, m] * between_points(of_log_p, place)
            means[i, d] = mean


def _decline(
    wrong: WrongTails,
    log_true: FloatArray,
    in_tail: BoolArray,
    design_effect: float,
    draws: int,
    rng: np.random.Generator,
) -> FloatArray:
    r"""Draws of the rate r at which wrong classes thin out from the true class inwards.

    Let some wrong classes, at the distances :math:`d_l`, be nearer to an instance `in_tail` than
    the true one at d. Under the law :math:`(t / d)^{r m}` the depths :math:`m \log(d / d_l)` are
    exponential with rate r. All depths of one instance count as one observation, their mean.
    """
    lists = wrong.lists
    with np.errstate(invalid="ignore"):  # both are infinite where they are ruled out
        inwards = wrong.local.exponent[:, None] * (log_true[:, None] - lists.log_distance)
    nearer = (inwards > 0) & np.isfinite(inwards) & in_tail[:, None]
    number = nearer.sum(axis=1)
    beaten = number > 0
    mean = np.where(nearer, inwards, 0.0).sum(axis=1)[beaten] / number[beaten]
    weight = lists.independent(design_effect)[beaten]
    shape = _PRIOR_SHAPE + weight.sum()
    rate = _PRIOR_SHAPE / _PRIOR_MEAN + float(weight @ mean)
    return rng.gamma(shape, 1 / rate, draws)
