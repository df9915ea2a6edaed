"""Variance of the accuracies of tables of ranks: dependence through classes and competitors.

At every k with a known ATA_k, any numbers of better classes within the bounds give the same. The
errors of two classifiers on the same instances, or of two groups of instances of the same classes,
are correlated. A class that is hard, or that beats many instances, changes both accuracies.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from classex_bayes.core.dependence import AnswerDependence, answer_dependence
from classex_bayes.core.influence import (
    UNSEEN_COMPETITORS,
    GivenBetter,
    Influence,
    Instances,
    accuracy_after_deletion,
    clustered_covariance,
    design_effect,
    equal_weights,
    pooled_competitors,
    repair_covariance,
    unseen_competitors,
    weight_effect,
)
from classex_bayes.core.metrics import Accuracy
from classex_bayes.core.rank_pass import RankBlock, row_groups
from classex_bayes.core.subsets import accuracy_given_n_better, log_spaced
from classex_bayes.task.rank_table import N_GRID, RankHistogram, RankTable, statistics_of
from classex_bayes.typing import FloatArray, IntArray

FEWEST_ERRING_CLASSES = 5
# The design effect of a sampling design is averaged with a typical one, which has the weight of
# this many units, and to which each further instance of a unit adds this much.
_TYPICAL_UNITS, _TYPICAL_WITHIN = 4.0, 0.1


class RankVariance:
    """Covariance of ATA_k, design effect and dependence of a table of ranks.

    All are those of a weighted mean over units: its weights, and the means of the units, determine
    them. Classes, groups of classes and users are units.
    """

    def __init__(self, table: RankTable) -> None:
        self.table = table

    @cached_property
    def has_influence(self) -> bool:
        """Whether the influence of the units, from the scores, is that of the ranks."""
        table = self.table
        # Of ranks that are only bounded, ties would decide at random which competitors matter.
        decided = not table.bounded.any() or table.smallest_k is None
        return table.influence is not None and decided

    @property
    def competitors_unseen(self) -> bool:
        """Whether instances share competitors whose influence is unknown; a typical one is used."""
        return self.table.competitors_shared and not self.has_influence

    @property
    def _typical(self) -> IntArray:
        """Numbers of better competitors (n,) within their bounds."""
        table = self.table
        if self.has_influence and not table.is_exact:
            assert table.counts is not None
            return table.counts.n_better
        return table.min_better

    @cached_property
    def _histograms(self) -> list[RankHistogram]:
        """Histograms of the typical numbers of better competitors."""
        table, typical = self.table, self._typical
        if typical is table.min_better:
            return table.histograms_of_min_better
        return table.histograms(typical)

    @cached_property
    def _grid(self) -> IntArray:
        """Numbers of classes at which the dependence between instances is estimated."""
        smallest = 2 if self.has_influence else self.table.smallest_k or 2
        return log_spaced(smallest, self.table.largest_k, N_GRID)

    # The same mean of other instances, or with other weights

    @property
    def _winnable(self) -> "RankVariance":
        """That of the instances that do not always lose; this one if all are such."""
        table = self.table
        rest = table if table.always_loses.all() else table.without(table.always_loses)
        return self if rest is table else RankVariance(rest)

    @property
    def _with_equal_units(self) -> "RankVariance":
        """That with weights in proportion within each unit, such that all units weigh the same."""
        table, weight = self.table, self.unit_weight
        if weight_effect(weight) == 1:
            return self
        factor = equal_weights(weight) / np.where(weight > 0, weight, 1.0)
        return RankVariance(replace(table, weight=table.weight * factor[table.unit]))

    # Means over the instances of each unit, and over all instances

    def _sums(self, values: FloatArray) -> FloatArray:
        """Sums (n_units,) of values (n,) over the instances of each unit."""
        influence, unit = self.table.influence, self.table.unit
        n_units = self.table.n_classes if influence is None else len(influence.as_test)
        return np.bincount(unit, values, max(n_units, int(unit.max()) + 1))

    @cached_property
    def unit_weight(self) -> FloatArray:
        """Weights (n_units,) of the units, summing to 1."""
        return self._sums(self.table.weight)

    def unit_means(
        self, k: IntArray, given_n_better: GivenBetter = accuracy_given_n_better
    ) -> FloatArray:
        """Weighted accuracy (n_units, n_k) of the units; 0 where a unit has no weight.

        Instances that a sibling beats lose at every k.
        """
        table, of_units = self.table, self.unit_weight
        sums = np.zeros((of_units.size, k.size))
        for rows in self._histograms:
            if rows.siblings_better:
                continue
            chances = given_n_better(rows.n_better, rows.n_competitors + 1, rows.sizes(k))
            unit, share = table.unit[rows.rows], table.weight[rows.rows]
            for column, chance in enumerate(chances.T):
                sums[:, column] += np.bincount(unit, share * chance[rows.place], of_units.size)
        return sums / np.where(of_units > 0, of_units, 1.0)[:, None]

    def clustered(self, k: IntArray) -> FloatArray:
        """Covariance (n_k, n_k) of ATA_k from differences between units alone."""
        return clustered_covariance(self.unit_means(k), self.unit_weight)

    def independent(self, k: IntArray) -> FloatArray:
        """Variance (n_k,) of ATA_k if the instances were independent."""
        chances, shares = [], []
        for rows in self._histograms:
            chances.append(
                accuracy_given_n_better(rows.n_better, rows.n_competitors + 1, rows.sizes(k))
            )
            shares.append(np.bincount(rows.place, self.table.weight[rows.rows]))
        chance, share = np.concatenate(chances), np.concatenate(shares)
        share = share / share.sum()  # so that equal chances have no variance
        return share @ (chance - share @ chance) ** 2 / self.table.n_test

    @property
    def resampled_variance(self) -> FloatArray:
        """Variance (n_grid,) of ATA_k on the grid if units are drawn with replacement."""
        means, weight = self.unit_means(self.table.grid()), self.unit_weight
        deviations = weight[:, None] * (means - weight @ means)
        return np.asarray((deviations**2).sum(axis=0))

    # Covariance

    def covariance(self, k: IntArray) -> FloatArray:
        """Covariance of ATA_k: shape (n_k, n_k), positive semidefinite."""
        table, of_units, clustered = self.table, self.unit_weight, self.clustered(k)
        if table.pool is not None:
            accuracy = of_units @ self.unit_means(k)
            return clustered * pooled_competitors(accuracy, np.unique(table.y).size / table.pool)
        if not self.has_influence:
            factor = unseen_competitors(of_units) if self.competitors_unseen else 1.0
            return factor * clustered
        assert table.influence is not None
        grid = log_spaced(2, table.largest_k, N_GRID)
        if np.array_equal(k, grid):
            dyadic = table.influence.covariance(of_units)
        elif (source := table.all_scores) is not None:
            rule = table.tie_rule, table.tie_seed
            statistics = statistics_of(source, table.y, table.weight, k, *rule, table.design)
            dyadic = statistics.influence.covariance(of_units)
        else:
            between = _interpolation(k, grid)
            dyadic = between @ table.influence.covariance(of_units) @ between.T
        return repair_covariance(dyadic, clustered)

    @property
    def unit_influence(self) -> FloatArray:
        """Influence of each unit on ATA_k for k on the grid, shape (n_units, n_grid)."""
        assert self.table.influence is not None
        return self.table.influence.psi(self.unit_weight)

    # Design effect

    @cached_property
    def design_effect(self) -> float:
        r"""Inflation of the variance by weights, by dependence, and by unknown orders.

        It is that of the accuracy of instances that do not always lose. Let :math:`d = c \sum_u
        w_u^2` be the effect of the weights of the c units (`weight_effect`), and C and I the
        clustered and the independent variance with equal weights. The design effect is the median
        over k of d C / I plus the part of the competitors. All units contribute equally to the
        dependence within units, so a heavy unit counts as one. Unknown ranks add the variance of a
        uniform distribution between the bounds of ATA_k, in units of the independent variance.

        If classes came in groups or with unequal probabilities, C and I have the weights of the
        design, and the median is averaged with a typical value (`_averaged`).
        """
        if self.table.design is not None:
            return self._averaged(*self._winnable.weighted_effect())
        if (winnable := self._winnable) is not self:
            return winnable.design_effect
        k, n, equal = self._grid, self.table.n_test, self._with_equal_units
        effect = float(weight_effect(self.unit_weight))
        independent, clustered = equal.independent(k), effect * np.diag(equal.clustered(k))
        # Deviations from a weighted mean are too small by the variance of that mean.
        within = np.diag(self.clustered(k))
        reference = self.independent(k) + within * (1 - 1 / effect) / n
        of_competitors = np.diag(self.covariance(k)) - within
        of_competitors /= np.where(reference, reference, 1.0)
        variance = clustered + of_competitors * independent
        # The mean number of repeats if weights are equal.
        repeats = round(float(n * (self.unit_weight**2).sum()), 6)
        of_ranks = equal.inflation(variance, clustered, independent, repeats)
        if not self.table.equally_likely.any():
            return of_ranks
        return round(of_ranks + self._inflation_by_orders(), 6)

    def weighted_effect(self) -> tuple[float, FloatArray]:
        """Design effect with the weights of the design, 0 without errors; errors (n_units,)."""
        k = self._grid
        independent, means = self.independent(k), self.unit_means(k)
        variances = np.diag(self.covariance(k)), np.diag(self.clustered(k))
        usable = independent > 1e-26 / self.table.n_test
        ratio = 0.0
        if usable.any():
            ratio = design_effect(*(v[usable] for v in (*variances, independent)))
        return ratio, self.unit_weight * (1 - means[:, -1])

    def _averaged(self, ratio: float, wrong: FloatArray) -> float:
        r"""Design effect d = `ratio`, averaged with a typical one that does not depend on errors.

        .. math:: \frac{m d + 4 d_0}{m + 4}, \qquad
            d_0 = \bigl(1 + 2 (n \sum_i \omega_i^2 - 1)\bigr) (1 + 0.1 (\bar r - 1)),

        where m is the effective number of units with errors, whose weights are `wrong` (n_units,),
        and :math:`\bar r` the effective number of instances per unit. With few errors d is usually
        too small, because most pilots contain no errors of rare units, which have the largest
        weights.
        """
        weight, of_units = self.table.weight, self.unit_weight
        squares = float(weight @ weight)
        repeats = float(of_units @ of_units) / squares
        typical = (1 + 2 * (self.table.n_test * squares - 1)) * (
            1 + _TYPICAL_WITHIN * (repeats - 1)
        )
        m = float(wrong.sum() ** 2 / (wrong @ wrong)) if wrong.any() else 0.0
        return round(max((m * ratio + _TYPICAL_UNITS * typical) / (m + _TYPICAL_UNITS), 1.0), 6)

    def _inflation_by_orders(self) -> float:
        """Variance of ATA_k between its bounds, in units of its variance if ranks were known.

        It is the largest where ATA_k would be known if the orders that are equally likely were.
        """
        table = self.table
        min_better, max_better = (
            np.where(table.equally_likely, self._typical, end)
            for end in (table.min_better, table.max_better)
        )
        k = replace(table, min_better=min_better, max_better=max_better).grid()
        lower, upper = table.metric_bounds(Accuracy(), k)
        middle = (table.n_test * (lower + upper) / 2 + 0.5) / (table.n_test + 1)
        independent = self.independent(k)
        independent = np.maximum(independent, middle * (1 - middle) / table.n_test**2)
        return float(((upper - lower) ** 2 / (12 * independent)).max(initial=0.0))

    @cached_property
    def competitor_effect(self) -> float:
        """Inflation of the variance between units by the competitors that they share."""
        if not self.table.is_exact:
            return UNSEEN_COMPETITORS
        if (winnable := self._winnable) is not self:
            return winnable.competitor_effect
        k = self._grid
        clustered, variance = np.diag(self.clustered(k)), np.diag(self.covariance(k))
        return self.inflation(variance, clustered, clustered, 1.0)

    def inflation(
        self, variance: FloatArray, clustered: FloatArray, reference: FloatArray, otherwise: float
    ) -> float:
        """Ratio of the variance of ATA_k to `reference`, if enough units have errors."""
        # Equal probabilities differ by rounding errors, whose ratios are meaningless.
        usable = reference > 1e-26 / self.table.n_test
        if self._n_erring < FEWEST_ERRING_CLASSES or not usable.any():
            return otherwise
        return design_effect(variance[usable], clustered[usable], reference[usable])

    @property
    def _n_erring(self) -> float:
        """Number of units that have errors; effective, if their weights are unequal."""
        weight = self.unit_weight[np.unique(self.table.unit[self._typical > 0])]
        weight = weight[weight > 0]
        return weight.size and float(weight.size / weight_effect(weight / weight.sum()))

    # Dependence of answers

    @cached_property
    def dependence(self) -> AnswerDependence:
        """Dependence between correct answers at k1, for new units that are drawn equally.

        The dependence within a group of classes is treated as common to all classes.
        """
        table, design = self.table, self.table.design
        if design is None:
            # From ranks alone, the part of shared competitors is unknown.
            variance = float(self.covariance(self._grid)[-1, -1]) if self.has_influence else None
            return answer_dependence(self._typical, table.y, table.class_weight, variance)
        prior = table.class_weight / design.class_weight
        ungrouped = answer_dependence(table.n_better, table.y, prior / prior.sum())
        if not design.is_grouped:
            return ungrouped
        correct = table.n_better == 0
        of_groups = self._effect_on_mean(correct.astype(float))
        more = max(of_groups - ungrouped.design_effect(ungrouped.repeats), 0)
        return replace(ungrouped, between=ungrouped.between + more / ungrouped.repeats)

    @cached_property
    def always_lost(self) -> tuple[float, float, float] | None:
        """Instances that always lose; None if there are none, and no siblings.

        The effective number of the other instances, that of these, and the mean number of siblings.
        """
        table, loses = self.table, self.table.always_loses
        n_siblings = float(table.weight @ table.siblings)
        if not loses.any() and n_siblings == 0:
            return None
        lost = float(table.weight @ loses)
        n = table.n_test / self._effect_on_mean((~loses).astype(float))
        return n * (1 - lost), n * lost, n_siblings

    def _effect_on_mean(self, values: FloatArray) -> float:
        """Design effect of the weighted mean of values (n,), from differences between units."""
        weight, of_units = self.table.weight, self.unit_weight
        means = self._sums(weight * values) / np.where(of_units > 0, of_units, 1.0)
        independent = float(weight @ (values - weight @ values) ** 2) / self.table.n_test
        clustered = float(clustered_covariance(means[:, None], of_units)[0, 0])
        ratio = clustered / independent if independent > 0 else 0.0
        return self._averaged(ratio, self._sums(weight * (1 - values)))


def _interpolation(k: IntArray, grid: IntArray) -> FloatArray:
    """Matrix (n_k, n_grid) that interpolates statistics on `grid` at `k`, linearly in log k."""
    return np.column_stack([np.interp(np.log(k), np.log(grid), unit) for unit in np.eye(grid.size)])


# Several tests


def joint_covariance(
    tests: Sequence[RankTable],
    k: IntArray,
    given_n_better: GivenBetter = accuracy_given_n_better,
) -> FloatArray:
    r"""Covariance (m n_k, m n_k) of ATA_k within and between m tests on the same k1 classes.

    With the influences :math:`\psi^a_j` and their parts :math:`\phi^a_{lj}` of test a, as in
    `classex_bayes.core.influence.Influence`,

    .. math::

        \Sigma_{ab} = \frac{\sum_j \psi^a_j {\psi^b_j}'}{k_1 (k_1 - 1)}
            - \sum_{lj} \phi^a_{lj} {\phi^b_{lj}}'.

    Both sums include instances that two tests share, so no further term is needed. If the scores of
    a test are unknown, the result is `classex_bayes.core.influence.clustered_covariance`.
    With `given_n_better` of another `classex_bayes.core.metrics.MeanMetric` it is the covariance of
    that metric.
    """
    n_classes = tests[0].n_classes
    accuracies = [RankVariance(test).unit_means(k, given_n_better) for test in tests]
    weights = [np.repeat(test.class_weight[:, None], k.size, axis=1) for test in tests]
    class_weight = np.hstack(weights)
    clustered = clustered_covariance(np.hstack(accuracies), class_weight)
    if any(test.all_scores is None for test in tests):
        return clustered
    influence = Influence.zeros(n_classes, len(tests) * k.size)
    for blocks in _blocks_of_classes(tests):
        influence.add(_instances_of_all_tests(tests, blocks, k, given_n_better))
    return repair_covariance(influence.covariance(class_weight), clustered)


def _blocks_of_classes(tests: Sequence[RankTable]) -> Iterator[tuple[RankBlock, ...]]:
    """Tuples with one block of each test; all blocks of a tuple have the same complete classes."""
    ends = np.cumsum([test.y.size for test in tests])
    y = np.concatenate([test.y for test in tests])
    groups = list(row_groups(y, tests[0].n_classes, packed=True))
    walks = []
    for test, end in zip(tests, ends, strict=True):
        start = end - test.y.size
        rows = [group[(group >= start) & (group < end)] - start for group in groups]
        walks.append(test.blocks(rows))
    return zip(*walks, strict=True)


def _instances_of_all_tests(
    tests: Sequence[RankTable],
    blocks: Sequence[RankBlock],
    k: IntArray,
    given_n_better: GivenBetter,
) -> Instances:
    """Instances of one block of each test. They contribute only to the means of their test."""
    parts = []
    for place, (test, block) in enumerate(zip(tests, blocks, strict=True)):
        y, weight = test.y[block.rows], test.weight[block.rows]
        columns = slice(place * k.size, (place + 1) * k.size)
        values = np.zeros((2, y.size, len(tests) * k.size))
        values[:, :, columns] = accuracy_after_deletion(
            block.n_better, weight, test.n_classes, k, given_n_better
        )
        parts.append(Instances(y, block.defeats, block.n_better, *values))
    return Instances.joined(parts, tests[0].n_classes)
