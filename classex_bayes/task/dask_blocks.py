"""What one worker does at a time, where a pass is cut into row blocks x ranges of classes.

No task sees more than one block of instances and one range of the classes, and each is a pure
function of its arguments, so that a scheduler may run it anywhere and again. Row blocks hold whole
classes; the scores of their true classes come first, as the range may not hold these.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from classex_bayes.core.ranks.array_access import compilable
from classex_bayes.core.ranks.defeats import (
    Contested,
    Defeats,
    RivalSums,
    deletion_gains,
    find_defeats,
    own_sums,
    rival_sums,
)
from classex_bayes.core.ranks.embeddings import EmbeddingScores, Metric, Reduce
from classex_bayes.core.ranks.sources import ScoreMatrix
from classex_bayes.core.ranks.ties import Ties
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
class Comparison:
    """How scores are made and compared."""

    ties: Ties
    seed: int
    metric: Metric = "sqeuclidean"
    reduce: Reduce = "max"
    higher_is_better: bool = True


class Templates(NamedTuple):
    """Templates of some classes, in order of class."""

    embeddings: FloatArray  # (n_templates, d)
    classes: IntArray  # (n_templates,)


def own_templates(gallery: FloatArray, classes: ClassRange, rows: RowBlock) -> Templates:
    """Templates, from one range, of the classes that the instances belong to."""
    of = classes.template_classes() + classes.first
    kept = np.flatnonzero(np.isin(of, rows.y))
    return Templates(gallery[kept], of[kept])


def own_scores(probes: FloatArray, rows: RowBlock, how: Comparison, *own: Templates) -> FloatArray:
    """Reference scores of the true classes, from their templates: shape (n,)."""
    present, template_class = np.unique(
        np.concatenate([some.classes for some in own]), return_inverse=True
    )
    gallery = np.concatenate([some.embeddings for some in own])
    source = EmbeddingScores(probes, gallery, template_class, how.metric, how.reduce)
    probes, place = compilable(probes, np.arange(rows.y.size))
    return source.reference_scores(probes, place, np.searchsorted(present, rows.y))


class _RangeScores(EmbeddingScores):
    """Scores on a range of classes of instances whose own scores are known; their column is -1."""

    own: FloatArray

    def reference_scores(self, probes: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
        """Reference scores of pairs (row of `probes`, class)."""
        result = self.own[rows]
        rivals = columns >= 0
        result[rivals] = super().reference_scores(probes, rows[rivals], columns[rivals])
        return result


def embedding_defeats(
    probes: FloatArray,
    gallery: FloatArray,
    own: FloatArray,
    rows: RowBlock,
    classes: ClassRange,
    how: Comparison,
) -> Defeats:
    """Who of a range of classes beat the instances of a row block, from embeddings."""
    inside = (rows.y >= classes.first) & (rows.y < classes.first + classes.width)
    column = np.where(inside, rows.y - classes.first, -1)
    probes, _ = compilable(probes, np.arange(rows.y.size))
    source = _RangeScores(probes, gallery, classes.template_classes(), how.metric, how.reduce)
    source.own = own
    return _defeats(source, column, rows, classes, how)


def score_defeats(
    scores: NumberArray, rows: RowBlock, classes: ClassRange, how: Comparison
) -> Defeats:
    """Who of all classes beat the instances of a row block, from their scores."""
    source = ScoreMatrix(scores, how.higher_is_better, rows.instance)
    return _defeats(source, rows.y, rows, classes, how)


def _defeats(
    source: Contested, column: IntArray, rows: RowBlock, classes: ClassRange, how: Comparison
) -> Defeats:
    return find_defeats(source, column, rows.instance, rows.y, classes.first, how.ties, how.seed)


def count_defeats(defeats: Defeats) -> tuple[IntArray, int]:
    """Losses within the range and the number of tied pairs."""
    return defeats.losses, defeats.tied


class RowSums(NamedTuple):
    """What a row block adds to the statistics without regard to who beat it."""

    losses: IntArray  # (n,)
    tied: int
    tested: IntArray  # (n_tested,): classes of the block
    as_test: FloatArray  # (n_tested, n_k)
    pair_sum: FloatArray  # (n_k, n_k)
    gain: FloatArray  # (n, n_k)


def sum_rows(rows: RowBlock, n_classes: int, k: IntArray, *counts: tuple[IntArray, int]) -> RowSums:
    """Join what the ranges counted for a row block."""
    losses = np.sum([part for part, _ in counts], axis=0)
    gains = deletion_gains(losses, n_classes, rows.weight, k)
    tested, as_test, pair_sum = own_sums(losses, rows.y, gains, n_classes)
    tied = sum(part for _, part in counts)
    return RowSums(losses, tied, tested, as_test, pair_sum, gains.gain)


def sum_rivals(defeats: Defeats, rows: RowBlock, row_sums: RowSums) -> RivalSums:
    """What the classes of a range add to the statistics as competitors of a row block."""
    return rival_sums(defeats, rows.y, row_sums.gain)


def add_rivals(*parts: RivalSums) -> RivalSums:
    """Sum over row blocks."""
    as_rival = np.sum([part.as_rival for part in parts], axis=0)
    return RivalSums(as_rival, np.sum([part.pair_sum for part in parts], axis=0))


def without_gain(row_sums: RowSums) -> RowSums:
    """What of a row block's sums is of interest once its competitors are done."""
    return row_sums._replace(gain=row_sums.gain[:0])
