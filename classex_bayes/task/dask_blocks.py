"""Tasks of a Dask graph: a pass over the scores is cut into row blocks x ranges of classes.

A task reads at most one block of instances and one range of classes. It is a pure function of its
arguments, so a scheduler may run it on any worker and repeat it. Row blocks contain whole classes.
The scores of their true classes come first, because a range may not contain these classes.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from classex_bayes.core.influence import accuracy_after_deletion, centring, class_sums
from classex_bayes.core.ranks.array_access import compilable
from classex_bayes.core.ranks.defeats import Defeats, add_defeats, find_defeats
from classex_bayes.core.ranks.embeddings import EmbeddingMetric, EmbeddingScores, Reduce
from classex_bayes.core.ranks.losses import LossCounts
from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.core.ranks.sources import ScoreMatrix
from classex_bayes.core.ranks.ties import TieBreak, Ties
from classex_bayes.typing import FloatArray, IntArray, NumberArray


@dataclass(frozen=True)
class RowBlock:
    """Instances of one block of rows, those of one class next to each other."""

    instance: IntArray  # (n,), numbers in the whole test
    y: IntArray  # (n,), true classes
    weight: FloatArray  # (n,)


@dataclass(frozen=True)
class ClassRange:
    """Consecutive classes, with their templates in order of class."""

    first: int
    width: int
    template_class: IntArray | None = None  # minus `first`; None: one template for each class

    def template_classes(self) -> IntArray:
        """Class of each template, counted from `first`."""
        return np.arange(self.width) if self.template_class is None else self.template_class


@dataclass(frozen=True)
class Scoring:
    """Settings by which scores are made and compared."""

    ties: Ties = "random"
    seed: int = 0
    metric: EmbeddingMetric = "sqeuclidean"
    reduce: Reduce = "max"
    higher_is_better: bool = True

    def tie_break(self, rows: RowBlock, classes: ClassRange) -> TieBreak:
        """Rule for equal scores of a row block in a range of classes."""
        return TieBreak(self.ties, self.seed, rows.instance, rows.y, classes.first)


class Templates(NamedTuple):
    """Templates of some classes, in order of class."""

    embeddings: FloatArray  # (n_templates, d)
    classes: IntArray  # (n_templates,)


def true_templates(gallery: FloatArray, classes: ClassRange, rows: RowBlock) -> Templates:
    """Templates, from one range, of the true classes of the instances."""
    template_class = classes.template_classes() + classes.first
    kept = np.flatnonzero(np.isin(template_class, rows.y))
    return Templates(gallery[kept], template_class[kept])


def true_scores(
    probes: FloatArray, rows: RowBlock, scoring: Scoring, *templates: Templates
) -> FloatArray:
    """Reference scores of the true classes, from their templates: shape (n,)."""
    present, template_class = np.unique(
        np.concatenate([part.classes for part in templates]), return_inverse=True
    )
    gallery = np.concatenate([part.embeddings for part in templates])
    source = EmbeddingScores(probes, gallery, template_class, scoring.metric, scoring.reduce)
    probes, place = compilable(probes, np.arange(rows.y.size))
    return source.reference_scores(probes, place, np.searchsorted(present, rows.y))


class _RangeScores(EmbeddingScores):
    """Scores on a range of classes; a true class outside of it is column -1."""

    true: FloatArray  # (n,): reference scores of the true classes

    def reference_scores(self, probes: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
        """Reference scores of pairs (row of `probes`, class)."""
        result = self.true[rows]
        inside = columns >= 0
        result[inside] = super().reference_scores(probes, rows[inside], columns[inside])
        return result


def embedding_defeats(
    probes: FloatArray,
    gallery: FloatArray,
    true: FloatArray,
    rows: RowBlock,
    classes: ClassRange,
    scoring: Scoring,
) -> Defeats:
    """Classes of a range that beat the instances of a row block, from embeddings."""
    inside = (rows.y >= classes.first) & (rows.y < classes.first + classes.width)
    column = np.where(inside, rows.y - classes.first, -1)
    probes, _ = compilable(probes, np.arange(rows.y.size))
    source = _RangeScores(
        probes, gallery, classes.template_classes(), scoring.metric, scoring.reduce
    )
    source.true = true
    return find_defeats(source, column, scoring.tie_break(rows, classes))


def score_defeats(
    scores: NumberArray, rows: RowBlock, classes: ClassRange, scoring: Scoring
) -> Defeats:
    """Classes that beat the instances of a row block, from their scores."""
    source = ScoreMatrix(scores, scoring.higher_is_better, rows.instance)
    return find_defeats(source, rows.y, scoring.tie_break(rows, classes))


def nearest_of_embeddings(
    probes: FloatArray,
    gallery: FloatArray,
    y: IntArray,
    classes: ClassRange,
    scoring: Scoring,
    size: int,
) -> NearestClasses:
    """Nearest classes of a range, for the instances of a row block, from embeddings."""
    source = EmbeddingScores(
        probes, gallery, classes.template_classes(), scoring.metric, scoring.reduce
    )
    return NearestClasses.in_range(source, y, size, classes.first)


def nearest_of_scores(
    scores: NumberArray, y: IntArray, scoring: Scoring, size: int
) -> NearestClasses:
    """Nearest of all classes, for the instances of a row block, from their scores."""
    return NearestClasses.in_range(ScoreMatrix(scores, scoring.higher_is_better), y, size)


def merge_nearest(size: int, *parts: NearestClasses) -> NearestClasses:
    """Nearest classes of several ranges, for the instances of a row block."""
    return NearestClasses.merged(parts, size)


def count_defeats(defeats: Defeats) -> LossCounts:
    """Losses within the range."""
    return defeats.counts


class RowSums(NamedTuple):
    """Part of a row block in the statistics that does not depend on which classes beat it."""

    counts: LossCounts  # (n,)
    tested: IntArray  # (n_tested,): classes of the block
    as_test: FloatArray  # (n_tested, n_k)
    pair_sum: FloatArray  # (n_k, n_k)
    gain: FloatArray  # (n, n_k)


def sum_rows(rows: RowBlock, n_classes: int, k: IntArray, *ranges: LossCounts) -> RowSums:
    """Sums of a row block from its counts in all ranges of classes."""
    counts = LossCounts(*np.sum(ranges, axis=0))
    losses = counts.losses
    contribution, gain = accuracy_after_deletion(losses, rows.weight, n_classes, k)
    tested, as_test = class_sums(rows.y, contribution)
    _, class_gain = class_sums(rows.y, losses[:, None] * gain)
    return RowSums(counts, tested, as_test, -centring(class_gain, n_classes), gain)


class CompetitorSums(NamedTuple):
    """Part of the classes of a range in the statistics, as competitors."""

    as_competitor: FloatArray  # (width, n_k)
    pair_sum: FloatArray  # (n_k, n_k)


def sum_competitors(defeats: Defeats, rows: RowBlock, row_sums: RowSums) -> CompetitorSums:
    """Sums of the classes of a range as competitors of a row block."""
    losses, gain = defeats.losses, row_sums.gain
    erring = np.flatnonzero(losses)
    as_competitor = np.zeros((defeats.width, gain.shape[1]))
    pair_sum = add_defeats(
        defeats.words[erring], losses[erring], rows.y[erring], gain[erring], as_competitor
    )
    return CompetitorSums(as_competitor, pair_sum)


def add_competitors(*parts: CompetitorSums) -> CompetitorSums:
    """Sum over row blocks."""
    return CompetitorSums._make(np.sum(sums, axis=0) for sums in zip(*parts, strict=True))


def without_gain(row_sums: RowSums) -> RowSums:
    """Sums of a row block without the gain, which only `sum_competitors` needs."""
    return row_sums._replace(gain=row_sums.gain[:0])
