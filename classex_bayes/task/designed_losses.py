"""Losses of a pilot whose classes were drawn with unequal probabilities or in groups."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.dependence import AnswerDependence, answer_dependence
from classex_bayes.core.influence import repair_covariance, weight_effect
from classex_bayes.core.metrics import Accuracy, Metric
from classex_bayes.core.ranks.ties import Ties
from classex_bayes.core.sharded_influence import StatisticsSource
from classex_bayes.core.subsets import log_spaced
from classex_bayes.core.weighted_influence import (
    WeightedStatistics,
    clustered_group_covariance,
    group_covariance,
    of_groups,
    sibling_absence,
    weighted_statistics,
)
from classex_bayes.exceptions import DataError
from classex_bayes.task.evidence import LabelledInstances, LossEvidence
from classex_bayes.task.sampling_design import SamplingDesign
from classex_bayes.task.validation import drawn_by_design
from classex_bayes.typing import FloatArray, IntArray

_GRID = 12
# An instance with fewer losses averages the weights of this number of nearest competitors.
_NEAREST = 8
# Numbers of competitors that differ by a smaller factor are treated as equal.
_STEP = 1.25
# The design effect is averaged with a typical one, which has the weight of this many groups.
_TYPICAL_GROUPS, _TYPICAL_WITHIN = 4.0, 0.1


@dataclass(frozen=True, eq=False)
class DesignedLosses(LabelledInstances):
    r"""Losses of instances whose classes came into the pilot by a `SamplingDesign`.

    `class_weight` (k1,) are prior weights times the number of classes that each class stands for.
    ATA_k is the weighted mean over instances of

    .. math:: (1 - \varphi)^{S_i} \binom{N_i - L_i}{m_i} \Big/ \binom{N_i}{m_i}, \qquad
        m_i = k - 1 - \varphi s_i,

    where instance i has s_i siblings, lost to S_i of them, and to L_i classes of other groups,
    which are a share L_i / N_i of their weight; phi is the `sibling_share`.

    The likelihood counts instances in bins of L. An instance that loses to a sibling loses at any
    k, so it counts in the last bin that it can reach, in proportion to the siblings present. The
    share of these instances in that bin is taken as observed. The probability of a bin is the mean
    over the other instances of its probability given `competitor_number`. `sibling_counts` gives
    the precision of the share. The law of U* (`classex_bayes.bayes.law_model.LawModel.law_`) draws
    it.

    Attributes
    ----------
    drawn : LossEvidence
        The pilot as if its classes had been drawn one by one with equal probabilities.
    design : SamplingDesign
        The design by which they were drawn.
    weighted : WeightedStatistics
        Weights of the competitors, and their influence on ATA_k for k on `grid`.
    """

    drawn: LossEvidence
    design: SamplingDesign
    weighted: WeightedStatistics

    # Code that used the scores and plain statistics directly would ignore the design.
    source: ClassVar[None] = None
    statistics: ClassVar[None] = None

    @classmethod
    def of(cls, drawn: LossEvidence, design: SamplingDesign) -> Self:
        """Losses of a pilot, from one more pass over its scores."""
        if isinstance(drawn.source, StatisticsSource):
            raise DataError(
                "inclusion, class_groups: found a Dask array of scores, expected scores in "
                "memory or on a disk; pass scores.compute()"
            )
        weight = drawn.class_weight * design.class_weight
        if np.unique(design.group[weight > 0]).size < 2:
            raise DataError(
                "class_groups: found test instances with weight in one group, expected at least "
                "2 groups, because groups are the units that were drawn"
            )
        labelled = LabelledInstances(drawn.y, weight / weight.sum())
        weighted = _pass(drawn, labelled, design, _grid(design, drawn.y))
        return cls(drawn.y, labelled.class_weight, drawn, design, weighted)

    @property
    def ties(self) -> Ties:
        """Rule for competitors with the score of the true class."""
        return self.drawn.ties

    @property
    def n_tied(self) -> int:
        """Number of (instance, competitor) pairs with equal scores."""
        return self.drawn.n_tied

    @property
    def n_touched(self) -> int:
        """Number of instances whose true class is tied with a competitor."""
        return self.drawn.n_touched

    @property
    def nearest_classes(self) -> None:
        """None, because such lists assume classes drawn one by one with equal probabilities."""
        return None

    @property
    def assumption(self) -> str:
        """Sentence for readers of a prediction: the assumption about the design."""
        design, facts = self.design, []
        if design.is_weighted:
            ratio = design.inclusion.max() / design.inclusion.min()
            worth = np.count_nonzero(self.class_weight) / float(weight_effect(self.class_weight))
            facts.append(
                f"some classes had {ratio:.3g} times the probability of others to be in the "
                f"pilot: {np.count_nonzero(self.class_weight)} tested classes count as {worth:.0f}"
            )
        if design.is_grouped:
            share = design.sibling_share
            held = {0.0: "one class of each group", 1.0: "whole groups too"}.get(
                share, f"other classes of a class's own group with probability {share:g}"
            )
            fact = (
                f"classes came in {design.n_groups} groups: larger sets of classes are assumed to "
                f"contain {held}"
            )
            if share > 0:
                fact += (
                    "; an instance that loses to its own group counts as losing to all classes, "
                    "so metrics other than accuracy are too pessimistic"
                )
            facts.append(fact)
        return "; ".join(facts)

    @property
    def group_of(self) -> IntArray:
        """Groups (n,) of the instances."""
        return self.design.group[self.y]

    @property
    def tested_groups(self) -> IntArray:
        """Groups that contain tested classes, at least 2."""
        return np.unique(self.design.group[self.class_weight > 0])

    def grid(self, number: int = _GRID) -> IntArray:
        r"""Log-spaced numbers of classes from 2 to the effective number of competitors.

        The largest is the smallest :math:`1 + (\sum_j c_j)^2 / \sum_j c_j^2` of an instance, the
        sums over the classes of other groups than its own.
        """
        return _grid(self.design, self.y, number)

    def accuracy(self, k: IntArray) -> FloatArray:
        """Average test accuracy ATA_k: shape (n_k,)."""
        return np.minimum(self.instance_weight @ self._chances(k), 1.0)

    def metric(self, metric: Metric, k: IntArray) -> FloatArray:
        """Accuracy; `DataError` for other metrics."""
        if metric == Accuracy():
            return self.accuracy(k)
        raise drawn_by_design("task", f"the metric {metric.name!r}")

    def _chances(self, k: IntArray) -> FloatArray:
        """Probability (n, n_k) that each instance is correct among k classes."""
        return self.weighted.met.accuracy(k, self._absence)

    @property
    def _absence(self) -> FloatArray:
        """Probability (n,) that no sibling that beat the instance is among the k classes."""
        return sibling_absence(self.weighted.met.siblings, self.design.sibling_share)

    def covariance(self, k: IntArray) -> FloatArray:
        """Covariance of ATA_k: shape (n_k, n_k), positive semidefinite."""
        weighted = self.weighted
        if not np.array_equal(k, self.grid()):
            if self.drawn.source is None:
                raise DataError(
                    "k: the task no longer has its scores and knows its covariance only at "
                    "task.grid(); pass k from task.grid()"
                )
            weighted = _pass(self.drawn, self, self.design, k)
        values, place = self._chances(k), (self.instance_weight, self.group_of)
        clustered = clustered_group_covariance(values, *place)
        return repair_covariance(group_covariance(values, *place, weighted), clustered)

    @cached_property
    def design_effect(self) -> float:
        r"""Inflation of the variance by weights and by dependence within and between groups.

        It is the design effect of the accuracy of instances that no sibling beats. Let d be the
        median over k of the variance divided by the variance with independent instances. It is
        averaged with a typical value d_0:

        .. math:: \frac{m d + 4 d_0}{m + 4}, \qquad
            d_0 = \bigl(1 + 2 (n \sum_i \omega_i^2 - 1)\bigr) (1 + 0.1 (\bar r - 1)),

        where m is the effective number of groups with errors, and :math:`\bar r` the effective
        number of instances per group. With few errors d is usually too small, because most pilots
        contain no errors of rare groups, which have the largest weights.
        """
        met, left = self.weighted.met, self.instance_weight * self._absence
        share = float(left.sum())
        if not share:
            return round(max(self._typical_effect, 1.0), 6)
        values, weight = met.accuracy(self.grid(), np.ones(self.n_test)), left / share
        shared = self.weighted.scaled(1 / share)
        variances = (
            np.diag(group_covariance(values, weight, self.group_of, shared)),
            np.diag(clustered_group_covariance(values, weight, self.group_of)),
        )
        return self._averaged_effect(values, weight, variances)

    def _averaged_effect(
        self, values: FloatArray, weight: FloatArray, variances: tuple[FloatArray, ...]
    ) -> float:
        """The formula of `design_effect` for weighted means of values (n, n_k)."""
        n = self.n_test * float((weight > 0).mean())
        independent = weight @ (values - weight @ values) ** 2 / n
        usable = independent > 1e-26 / n
        ratio = max(
            (float(np.median(v[usable] / independent[usable])) for v in variances if usable.any()),
            default=0.0,
        )
        wrong = np.bincount(self.group_of, weight * (1 - values[:, -1]))
        m = float(wrong.sum() ** 2 / (wrong @ wrong)) if wrong.any() else 0.0
        effect = (m * ratio + _TYPICAL_GROUPS * self._typical_effect) / (m + _TYPICAL_GROUPS)
        return round(max(effect, 1.0), 6)

    @property
    def _typical_effect(self) -> float:
        """The typical design effect d_0 of `design_effect`."""
        weight = self.instance_weight
        squares = float(weight @ weight)
        by_group = np.bincount(self.group_of, weight)
        repeats = float(by_group @ by_group) / squares
        return (1 + 2 * (self.n_test * squares - 1)) * (1 + _TYPICAL_WITHIN * (repeats - 1))

    @property
    def sibling_counts(self) -> tuple[float, float]:
        """Effective numbers of instances that no sibling beats and of others."""
        values, weight = self._absence[:, None], self.instance_weight
        share = float(weight @ self._absence)
        variance = np.diag(clustered_group_covariance(values, weight, self.group_of))
        n = self.n_test / self._averaged_effect(values, weight, (variance,))
        return n * share, n * (1 - share)

    @cached_property
    def dependence(self) -> AnswerDependence:
        """Dependence between correct answers at k1, for new classes drawn equally or in groups.

        The dependence within a group is treated as common to all classes.
        """
        plain = answer_dependence(self.drawn.losses, self.y, self.drawn.class_weight)
        if not self.design.is_grouped:
            return plain
        grid = self.grid()
        variance = np.diag(self.covariance(grid))[-1:]
        effect = self._averaged_effect(self._chances(grid[-1:]), self.instance_weight, (variance,))
        more = max(effect - plain.design_effect(plain.repeats), 0.0)
        return replace(plain, between=plain.between + more / plain.repeats)

    @cached_property
    def competitor_number(self) -> FloatArray:
        r"""Number N_i (n,) of equally weighted competitors of each instance.

        :math:`W_i / \bar c_i`, where W_i is the weight of all classes of other groups and
        :math:`\bar c_i` the mean weight of those that beat the instance. If fewer than 8 beat it,
        the mean is over the 8 that score best.
        """
        design, met, weight = self.design, self.weighted.met, self.design.class_weight
        total = weight.sum() - np.bincount(design.group, weight)[self.group_of]
        if not design.is_weighted:
            return total
        lists = self.drawn.nearest_classes
        assert lists is not None
        other = (design.group[lists.classes] != self.group_of[:, None]) & (lists.classes >= 0)
        nearest = other & (np.cumsum(other, axis=1) <= _NEAREST)
        n_nearest = np.maximum(nearest.sum(axis=1), 1)
        mean = (weight[lists.classes] * nearest).sum(axis=1) / n_nearest
        mean = np.where(nearest.any(axis=1), mean, 1.0)
        return np.where(met.losses >= _NEAREST, met.number, total / mean)

    @cached_property
    def _log_number(self) -> FloatArray:
        return np.log(np.maximum(self.competitor_number, 2.0))

    @cached_property
    def _level(self) -> IntArray:
        """Levels (n,) 0, 1, ... of instances that met about the same number of competitors."""
        above = self._log_number - self._log_number.min()
        return np.floor(above / np.log(_STEP)).astype(np.int64)

    @cached_property
    def _rivals(self) -> IntArray:
        """Number of competitors of each level, 0 where a level has no weight."""
        share = np.bincount(self._level, self.instance_weight)
        total = np.bincount(self._level, self.instance_weight * self._log_number)
        mean = np.exp(np.divide(total, share, out=np.zeros_like(total), where=share > 0))
        return np.where(share > 0, np.rint(mean), 0).astype(np.int64)

    def bin_probabilities(self, basis: RadialBasis) -> FloatArray:
        """Probability (n_bins, m) of each of `loss_bins` under each element of a basis."""
        bins, share = self.loss_bins, np.bincount(self._level, self.instance_weight)
        unbeaten = np.bincount(self._level, self.instance_weight * self._absence)
        matrix = np.zeros((bins.size, basis.knots.size))
        for rivals, of_level, left in zip(self._rivals, share, unbeaten, strict=True):
            if rivals:
                last = np.append(bins[:-1][bins[:-1] < rivals], rivals)
                matrix[: last.size] += left * basis.bin_probabilities(last, int(rivals) + 1)
                matrix[last.size - 1] += of_level - left
        return matrix

    def histogram(self, last_loss: IntArray, group: IntArray | None = None) -> FloatArray:
        """Weighted number of instances in each bin of losses, of each group; sums to n."""
        if group is None:
            return self.histogram(last_loss, np.zeros(self.n_test, dtype=np.int64))[0]
        # The last bin that the competitors of an instance reach.
        lost_to_all = np.searchsorted(last_loss[:-1], self._rivals[self._level])
        bins = np.minimum(np.searchsorted(last_loss, self.weighted.met.losses), lost_to_all)
        weight, absence = self.n_test * self.instance_weight, self._absence
        counts = np.zeros((int(group.max()) + 1, last_loss.size))
        np.add.at(counts, (group, bins), weight * absence)
        np.add.at(counts, (group, lost_to_all), weight * (1 - absence))
        return counts

    def without_source(self) -> Self:
        """Losses without the scores, with the statistics that were computed from them."""
        return replace(self, drawn=self.drawn.without_source())

    def select(self, kept: IntArray, rng: np.random.Generator) -> Self:
        """Losses of the classes at positions `kept` alone, from the scores."""
        if self.drawn.source is None:
            raise DataError(
                "task: it no longer has its scores, and its classes were drawn with unequal "
                "probabilities or in groups, so it is unknown which of some classes beat which; "
                "use a task with scores"
            )
        return self.of(self.drawn.select(kept, rng), self.design.select(kept))

    def redrawn(self, rng: np.random.Generator) -> Self:
        """Losses of groups drawn with replacement, against the competitors that they met."""
        tested = self.tested_groups
        drawn = tested[:1]
        while np.unique(drawn).size < 2:
            drawn = rng.choice(tested, tested.size)
        times = np.bincount(drawn, minlength=self.design.n_groups)
        weight = self.class_weight * times[self.design.group]
        return replace(self, class_weight=weight / weight.sum())

    @property
    def resampled_variance(self) -> FloatArray:
        """Variance (n_grid,) of ATA_k on `grid` over `redrawn`."""
        values = self._chances(self.grid())
        psi = of_groups(values, self.instance_weight, self.group_of, self.design.n_groups)
        return (psi**2).sum(axis=0)


def _grid(design: SamplingDesign, y: IntArray, number: int = _GRID) -> IntArray:
    count, total, squares = (
        by_group.sum() - by_group
        for by_group in (np.bincount(design.group, design.class_weight**p) for p in range(3))
    )
    # If one class has nearly all the weight, the sum of squares of the others is rounding noise.
    competitors = total**2 / np.maximum(squares, total**2 / count)
    competitors += design.sibling_share * (np.bincount(design.group) - 1)
    return log_spaced(2, max(int(1 + competitors[design.group[y]].min() + 1e-9), 2), number)


def _pass(
    drawn: LossEvidence, labelled: LabelledInstances, design: SamplingDesign, k: IntArray
) -> WeightedStatistics:
    source = drawn.source
    assert source is not None
    weights = labelled.instance_weight, design.class_weight
    return weighted_statistics(
        source,
        drawn.y,
        *weights,
        design.group,
        design.sibling_share,
        k,
        drawn.ties,
        drawn.tie_seed,
    )
