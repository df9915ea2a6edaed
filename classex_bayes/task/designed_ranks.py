"""Ranks of a pilot whose classes were drawn with unequal probabilities or in groups."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np

from classex_bayes.core.basis import Basis
from classex_bayes.core.dependence import AnswerDependence, answer_dependence
from classex_bayes.core.influence import (
    clustered_covariance,
    repair_covariance,
    weight_effect,
)
from classex_bayes.core.metrics import Accuracy, Metric
from classex_bayes.core.ranks.rank_counts import RankCounts
from classex_bayes.core.ranks.ties import TieHandling
from classex_bayes.core.subsets import log_spaced
from classex_bayes.core.weighted_influence import WeightedStatistics, weighted_statistics
from classex_bayes.exceptions import DataError
from classex_bayes.task.check import Check
from classex_bayes.task.dask_sources import DaskSource
from classex_bayes.task.data_checks import instance_checks
from classex_bayes.task.evidence import (
    N_GRID,
    WITH_RANKS,
    InstanceEvidence,
    MadeFrom,
    instance_weights,
)
from classex_bayes.task.rank_evidence import RankEvidence
from classex_bayes.task.sampling_design import SamplingDesign
from classex_bayes.typing import FloatArray, IntArray

# An instance with fewer losses averages the weights of this number of nearest competitors.
_NEAREST = 8
# Numbers of competitors that differ by a smaller factor are treated as equal.
_STEP = 1.25
# The design effect is averaged with a typical one, which has the weight of this many groups.
_TYPICAL_GROUPS, _TYPICAL_WITHIN = 4.0, 0.1


@dataclass(frozen=True, eq=False)
class DesignedRanks(InstanceEvidence):
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
    over the other instances of its probability given `competitor_number`. `siblings` gives
    the precision of the share. The law of U* (`classex_bayes.bayes.law_model.LawModel.law_`) draws
    it.

    Attributes
    ----------
    drawn : RankEvidence
        The pilot as if its classes had been drawn one by one with equal probabilities.
    design : SamplingDesign
        The design by which they were drawn.
    statistics : WeightedStatistics
        Weights of the competitors, and the influence of the groups on ATA_k for k on `grid`.
    """

    drawn: RankEvidence
    design: SamplingDesign
    statistics: WeightedStatistics

    @classmethod
    def of(cls, drawn: RankEvidence, design: SamplingDesign) -> Self:
        """Ranks of a pilot, from one more pass over its scores."""
        if not drawn.is_exact:
            raise DataError(
                "sampling: found scores that do not determine ranks (decisions, or "
                "ties='unknown'), expected scores that rank the classes"
            )
        if isinstance(drawn.source, DaskSource):
            raise DataError(
                "sampling: found a Dask array of scores, expected scores in memory or on a disk; "
                "pass scores.compute()"
            )
        weight = drawn.class_weight * design.class_weight
        if np.unique(design.group[weight > 0]).size < 2:
            raise DataError(
                "groups: found test instances with weight in one group, expected at least 2 "
                "groups, because groups are the units that were drawn"
            )
        weight = weight / weight.sum()
        of_instances = instance_weights(drawn.y, weight)
        statistics = _pass(drawn, of_instances, design, _grid(design, drawn.y))
        return cls(drawn.y, weight, drawn, design, statistics)

    @property
    def plain(self) -> RankEvidence:
        """The pilot as if its classes had been drawn one by one with equal probabilities."""
        return self.drawn

    @cached_property
    def kind(self) -> MadeFrom:
        """What the task is made from."""
        return self.drawn.kind

    @property
    def n_better(self) -> IntArray:
        """Number (n,) of classes that beat each instance."""
        return self.drawn.n_better

    @property
    def ties(self) -> TieHandling:
        """Rule for competitors with the score of the true class."""
        return self.drawn.ties

    @property
    def counts(self) -> RankCounts | None:
        """Losses as counted from the scores."""
        return self.drawn.counts

    @property
    def is_designed(self) -> bool:
        """True."""
        return True

    @property
    def has_scores(self) -> bool:
        """Whether scores of the nearest wrong classes are known."""
        return self.drawn.has_scores

    @property
    def nearest_classes(self) -> NoReturn:
        """Raise DataError: such lists assume classes drawn one by one with equal probabilities."""
        self._refuse("a tail of scores")

    def _refuse(self, user: str, remedy: str = WITH_RANKS, name: str = "task") -> NoReturn:
        raise DataError(
            f"{name}: its classes were drawn with unequal probabilities or in groups, but {user} "
            "assumes that they were drawn one by one, equally; use BayesianExtrapolator, or make "
            "the task without sampling="
        )

    @property
    def data(self) -> tuple[Any, ...]:
        """Data of the pilot as drawn, and the design."""
        return *self.drawn.data, self.design.inclusion, self.design.group

    def checks(self, names: Sequence[Any] | None) -> list[Check]:
        """Checks of the data that read no scores. `names` are those of the classes."""
        return instance_checks(self, names)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The design, and what it assumes about larger sets of classes."""
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
        return tuple(facts)

    @property
    def group_of(self) -> IntArray:
        """Groups (n,) of the instances."""
        return self.design.group[self.y]

    @property
    def tested_groups(self) -> IntArray:
        """Groups that contain tested classes, at least 2."""
        return np.unique(self.design.group[self.class_weight > 0])

    def grid(self, number: int = N_GRID) -> IntArray:
        r"""Log-spaced numbers of classes from 2 to the effective number of competitors.

        The largest is the smallest :math:`1 + (\sum_j c_j)^2 / \sum_j c_j^2` of an instance, the
        sums over the classes of other groups than its own.
        """
        return _grid(self.design, self.y, number)

    def metric_bounds(self, metric: Metric, k: IntArray) -> tuple[FloatArray, FloatArray]:
        """Accuracy (n_k,) twice, since it is known; `DataError` for other metrics."""
        if metric != Accuracy():
            self._refuse(f"the metric {metric.name!r}")
        accuracy = np.minimum(self.instance_weight @ self._chances(k), 1.0)
        return accuracy, accuracy

    def known_counts(self, metric: Metric, k: IntArray) -> IntArray:
        """All numbers of classes for the accuracy, none for other metrics."""
        return k if metric == Accuracy() else k[:0]

    def _chances(self, k: IntArray) -> FloatArray:
        """Probability (n, n_k) that each instance is correct among k classes."""
        return self._absence[:, None] * self.statistics.competitors.accuracy(k)

    @property
    def _absence(self) -> FloatArray:
        """Probability (n,) that no sibling that beat the instance is among the k classes."""
        return self.statistics.competitors.absence(self.design.sibling_share)

    def _by_group(self, values: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums (n_groups, n_k) of weighted values (n, n_k), and weights (n_groups,) of groups."""
        n_groups, group = self.design.n_groups, self.group_of
        sums = [np.bincount(group, weight * column, n_groups) for column in values.T]
        return np.stack(sums, axis=1), np.bincount(group, weight, n_groups)

    def _clustered(self, values: FloatArray, weight: FloatArray) -> FloatArray:
        """Covariance (n_k, n_k) of weighted means, from differences between groups alone."""
        sums, of_groups = self._by_group(values, weight)
        return clustered_covariance(sums / np.maximum(of_groups, 1e-300)[:, None], of_groups)

    def covariance(self, k: IntArray) -> FloatArray:
        """Covariance of ATA_k: shape (n_k, n_k), positive semidefinite."""
        influence = self.statistics.influence
        if not np.array_equal(k, self.grid()):
            if self.drawn.source is None:
                raise DataError(
                    "k: the task no longer has its scores and knows its covariance only at "
                    "task.grid(); pass k from task.grid()"
                )
            influence = _pass(self.drawn, self.instance_weight, self.design, k).influence
        of_groups = np.bincount(self.group_of, self.instance_weight, self.design.n_groups)
        clustered = self._clustered(self._chances(k), self.instance_weight)
        return repair_covariance(influence.covariance(of_groups), clustered)

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
        left = self.instance_weight * self._absence
        share = float(left.sum())
        if not share:
            return round(max(self._typical_effect, 1.0), 6)
        values, weight = self.statistics.competitors.accuracy(self.grid()), left / share
        sums, of_groups = self._by_group(values, weight)
        influence = replace(self.statistics.influence.scaled(1 / share), as_test=sums)
        dyadic, clustered = influence.covariance(of_groups), self._clustered(values, weight)
        return self._averaged_effect(values, weight, (np.diag(dyadic), np.diag(clustered)))

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
    def siblings(self) -> tuple[float, float, float] | None:
        """Effective numbers of instances that no sibling beats and of others, siblings present."""
        if not self.design.is_grouped:
            return None
        values, weight = self._absence[:, None], self.instance_weight
        share = float(weight @ self._absence)
        variance = np.diag(self._clustered(values, weight))
        n = self.n_test / self._averaged_effect(values, weight, (variance,))
        present = float(weight @ self.statistics.competitors.present)
        return n * share, n * (1 - share), present

    @cached_property
    def dependence(self) -> AnswerDependence:
        """Dependence between correct answers at k1, for new classes drawn equally or in groups.

        The dependence within a group is treated as common to all classes.
        """
        plain = answer_dependence(self.drawn.n_better, self.y, self.drawn.class_weight)
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
        design, weight = self.design, self.design.class_weight
        competitors = self.statistics.competitors
        total = weight.sum() - np.bincount(design.group, weight)[self.group_of]
        if not design.is_weighted:
            return total
        lists = self.drawn.nearest_classes
        other = (design.group[lists.classes] != self.group_of[:, None]) & (lists.classes >= 0)
        nearest = other & (np.cumsum(other, axis=1) <= _NEAREST)
        n_nearest = np.maximum(nearest.sum(axis=1), 1)
        mean = (weight[lists.classes] * nearest).sum(axis=1) / n_nearest
        mean = np.where(nearest.any(axis=1), mean, 1.0)
        return np.where(competitors.n_better >= _NEAREST, competitors.number, total / mean)

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

    def bin_probabilities(self, basis: Basis, *, thinned: bool = True) -> FloatArray:
        """Probability (n_bins, m) of each of `n_better_bins` under each element of a basis.

        `thinned`: the share of instances that a sibling beats is as observed. Otherwise U* = 0
        describes them.
        """
        bins, share = self.n_better_bins, np.bincount(self._level, self.instance_weight)
        absence = self._absence if thinned else 1.0
        unbeaten = np.bincount(self._level, self.instance_weight * absence)
        matrix = np.zeros((bins.size, basis.knots.size))
        for rivals, of_level, left in zip(self._rivals, share, unbeaten, strict=True):
            if rivals:
                last = np.append(bins[:-1][bins[:-1] < rivals], rivals)
                matrix[: last.size] += left * basis.bin_probabilities(last, int(rivals) + 1)
                matrix[last.size - 1] += of_level - left
        return matrix

    def histogram(self, bin_ends: IntArray, group: IntArray | None = None) -> FloatArray:
        """Weighted number of instances in each bin of losses, of each group; sums to n."""
        if group is None:
            return self.histogram(bin_ends, np.zeros(self.n_test, dtype=np.int64))[0]
        # The last bin that the competitors of an instance reach.
        lost_to_all = np.searchsorted(bin_ends[:-1], self._rivals[self._level])
        bins = np.minimum(
            np.searchsorted(bin_ends, self.statistics.competitors.n_better), lost_to_all
        )
        weight, absence = self.n_test * self.instance_weight, self._absence
        counts = np.zeros((int(group.max()) + 1, bin_ends.size))
        np.add.at(counts, (group, bins), weight * absence)
        np.add.at(counts, (group, lost_to_all), weight * (1 - absence))
        return counts

    def without_source(self) -> Self:
        """Losses without the scores, with the statistics that were computed from them."""
        return replace(self, drawn=self.drawn.without_source())

    def draw(self, n_classes: int, rng: np.random.Generator) -> IntArray:
        """Positions of the classes of whole groups, at least `n_classes`, drawn at random."""
        if not self.design.is_grouped:
            return super().draw(n_classes, rng)
        return self.design.draw(n_classes, self.tested_groups, rng)

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
        sums, of_groups = self._by_group(values, self.instance_weight)
        return np.asarray(((sums - of_groups[:, None] * sums.sum(axis=0)) ** 2).sum(axis=0))


def _grid(design: SamplingDesign, y: IntArray, number: int = N_GRID) -> IntArray:
    count, total, squares = (
        by_group.sum() - by_group
        for by_group in (np.bincount(design.group, design.class_weight**p) for p in range(3))
    )
    # If one class has nearly all the weight, the sum of squares of the others is rounding noise.
    competitors = total**2 / np.maximum(squares, total**2 / count)
    competitors += design.sibling_share * (np.bincount(design.group) - 1)
    return log_spaced(2, max(int(1 + competitors[design.group[y]].min() + 1e-9), 2), number)


def _pass(
    drawn: RankEvidence, instance_weight: FloatArray, design: SamplingDesign, k: IntArray
) -> WeightedStatistics:
    assert drawn.source is not None
    return weighted_statistics(
        drawn.source,
        drawn.y,
        instance_weight,
        design.class_weight,
        design.group,
        design.sibling_share,
        k,
        drawn.tie_rule,
        drawn.tie_seed,
    )
