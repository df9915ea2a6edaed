"""Scores and embeddings in Dask arrays: the pass over them as a graph of pure tasks.

Dask is imported only if a Dask array is given. The current Dask scheduler runs the graph.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np

from classex_bayes.arguments import matrix_shape, numeric_type
from classex_bayes.core.influence import Influence, LossStatistics
from classex_bayes.core.ranks.array_access import is_on_device, to_host
from classex_bayes.core.ranks.embeddings import PERFECT, EmbeddingMetric, EmbeddingScores, Reduce
from classex_bayes.core.ranks.losses import LossCounts
from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.core.ranks.sources import ScoreMatrix
from classex_bayes.core.ranks.ties import Ties
from classex_bayes.exceptions import DataError
from classex_bayes.task import dask_blocks as blocks
from classex_bayes.task.dask_blocks import ClassRange, CompetitorSums, RowBlock, RowSums, Scoring
from classex_bayes.task.validation import as_matrix_anywhere, finite_embeddings
from classex_bayes.typing import FloatArray, IntArray, NumberArray

FAN_IN = 8


def is_dask(array: Any) -> bool:
    """Whether an array is a Dask array, without an import of Dask."""
    return type(array).__module__.partition(".")[0] == "dask"


class DelayedRows(NamedTuple):
    """A row block of the graph."""

    values: Any  # delayed scores or probes
    labels: Any  # delayed RowBlock
    tested: IntArray  # its classes


class DelayedRange(NamedTuple):
    """A range of classes of the graph."""

    classes: Any  # delayed ClassRange
    templates: Any = None  # delayed embeddings


class DaskSource(ABC):
    """Scores from Dask arrays (n, m) with all columns in one chunk."""

    def __init__(self, rows: Any, n_classes: int) -> None:
        self.rows = rows
        self.shape = rows.shape[0], n_classes
        self.in_order = True

    @abstractmethod
    def ranges(self) -> list[DelayedRange]:
        """Ranges of the classes, in order."""

    @property
    @abstractmethod
    def perfect(self) -> float | None:
        """Score of an instance that equals its template; None if the scores have no such origin."""

    @abstractmethod
    def nearest_cells(
        self, values: Any, y: Any, ranges: list[DelayedRange], size: int
    ) -> list[Any]:
        """Delayed lists of the nearest classes of one row block, in every range of classes."""

    @abstractmethod
    def cells(
        self, rows: DelayedRows, ranges: list[DelayedRange], ties: Ties, seed: int
    ) -> list[Any]:
        """Delayed `Defeats` of one row block, for every range of classes."""

    def statistics(
        self, y: IntArray, weight: FloatArray, k: IntArray, ties: Ties, seed: int
    ) -> LossStatistics:
        """Losses and the influence of each class, as in `loss_statistics`.

        Every row block is compared with every range of classes. Its losses then determine the
        gains. For each range, a tree sums the gains over row blocks.
        """
        from dask import delayed

        order = _grouped_order(y)
        ends = _aligned_ends(y[order], self.rows.chunks[0])
        rows = self.rows if np.array_equal(order, np.arange(y.size)) else self.rows[order]
        ranges = self.ranges()
        row_sums: list[Any] = []
        competitor_sums: list[list[Any]] = [[] for _ in ranges]
        for instance, piece in zip(np.split(order, ends[:-1]), _pieces(rows, ends), strict=True):
            labels = RowBlock(instance, y[instance], weight[instance])
            block = delayed(labels, traverse=False)
            cells = self.cells(DelayedRows(piece, block, np.unique(labels.y)), ranges, ties, seed)
            counts = [delayed(blocks.count_defeats)(cell) for cell in cells]
            sums = delayed(blocks.sum_rows)(block, self.shape[1], k, *counts)
            row_sums.append(delayed(blocks.without_gain)(sums))
            for place, cell in enumerate(cells):
                competitor_sums[place].append(delayed(blocks.sum_competitors)(cell, block, sums))
        sums = [_tree(blocks.add_competitors, parts) for parts in competitor_sums]
        return _assembled(np.split(order, ends[:-1]), *_computed(row_sums, sums))

    def nearest(self, y: IntArray, length: int) -> NearestClasses:
        """Lists of the nearest wrong classes, as `NearestClasses.of`.

        For each row block, a tree merges the lists of all ranges of classes.
        """
        from dask import delayed

        ends, size = np.cumsum(self.rows.chunks[0]), min(length, self.shape[1] - 1)
        ranges, merge = self.ranges(), partial(blocks.merge_nearest, size)
        parts = []
        for labels, values in zip(np.split(y, ends[:-1]), _pieces(self.rows, ends), strict=True):
            block = delayed(labels, traverse=False)
            parts.append(_tree(merge, self.nearest_cells(values, block, ranges, size)))
        return NearestClasses.joined(_computed(parts)[0])

    def _refuse(self) -> NoReturn:
        raise DataError(
            "task: its scores are in Dask arrays, from which only losses, their covariance and "
            "nearest classes can be computed; use task.subsample(n_classes), which reads the "
            "scores of some classes into memory"
        )

    def block(self, rows: IntArray, y: IntArray) -> NoReturn:
        """Raise `DataError`."""
        self._refuse()

    def scores(self, rows: IntArray) -> NoReturn:
        """Raise `DataError`."""
        self._refuse()


class DaskScores(DaskSource):
    """A matrix of scores in a Dask array of shape (n, k1)."""

    def __init__(self, scores: Any, higher_is_better: bool) -> None:
        matrix = dask_matrix(scores, "scores")
        super().__init__(matrix, matrix.shape[1])
        self.higher_is_better = higher_is_better

    def ranges(self) -> list[DelayedRange]:
        """All classes at once."""
        from dask import delayed

        return [DelayedRange(delayed(ClassRange(0, self.shape[1]), traverse=False))]

    def cells(
        self, rows: DelayedRows, ranges: list[DelayedRange], ties: Ties, seed: int
    ) -> list[Any]:
        """One cell: the scores of a row block."""
        from dask import delayed

        scoring = Scoring(ties, seed, higher_is_better=self.higher_is_better)
        classes = ranges[0].classes
        return [delayed(blocks.score_defeats)(rows.values, rows.labels, classes, scoring)]

    @property
    def perfect(self) -> float | None:
        """0 for distances; scores of other kinds have no origin."""
        return None if self.higher_is_better else 0.0

    def nearest_cells(
        self, values: Any, y: Any, ranges: list[DelayedRange], size: int
    ) -> list[Any]:
        """One cell: the lists of a row block."""
        from dask import delayed

        scoring = Scoring(higher_is_better=self.higher_is_better)
        return [delayed(blocks.nearest_of_scores)(values, y, scoring, size)]

    def subset(self, rows: IntArray, columns: IntArray) -> Any:
        """Scores of the instances `rows` on the classes `columns`, in memory."""
        return ScoreMatrix(self.rows[rows][:, columns].compute(), self.higher_is_better)


class DaskEmbeddings(DaskSource):
    """Probes and templates, one or both of them in Dask arrays.

    The ranges of classes are the chunks of the gallery, extended to whole classes.
    """

    def __init__(
        self,
        probes: Any,
        gallery: Any,
        template_class: IntArray,
        metric: EmbeddingMetric,
        reduce: Reduce,
    ) -> None:
        super().__init__(_checked(probes, "probes", metric), template_class.max() + 1)
        self.metric, self.reduce = metric, reduce
        order = np.argsort(template_class, kind="stable")
        gallery = _checked(gallery, "gallery", metric)
        self._template_class = template_class[order]
        self._ends = _aligned_ends(self._template_class, gallery.chunks[0])
        if not np.array_equal(order, np.arange(order.size)):
            gallery = gallery[order]
        self.gallery = gallery.rechunk({0: tuple(np.diff(self._ends, prepend=0).tolist())})

    def ranges(self) -> list[DelayedRange]:
        """One range for each chunk of the gallery."""
        from dask import delayed

        ranges = []
        chunks = self.gallery.to_delayed(optimize_graph=False)[:, 0]
        parts = np.split(self._template_class, self._ends[:-1])
        for templates, labels in zip(chunks, parts, strict=True):
            first, width = int(labels[0]), int(labels[-1] - labels[0]) + 1
            classes = ClassRange(first, width, None if width == labels.size else labels - first)
            ranges.append(DelayedRange(delayed(classes, traverse=False), templates))
        return ranges

    def cells(
        self, rows: DelayedRows, ranges: list[DelayedRange], ties: Ties, seed: int
    ) -> list[Any]:
        """One cell for each chunk of the gallery. The scores of the true classes come first."""
        from dask import delayed

        scoring = Scoring(ties, seed, self.metric, self.reduce)
        first_template = np.searchsorted(self._template_class, rows.tested)
        holders = np.unique(np.searchsorted(self._ends, first_template, side="right"))
        templates = [
            delayed(blocks.true_templates)(part.templates, part.classes, rows.labels)
            for part in (ranges[holder] for holder in holders)
        ]
        true = delayed(blocks.true_scores)(rows.values, rows.labels, scoring, *templates)
        return [
            delayed(blocks.embedding_defeats)(
                rows.values, part.templates, true, rows.labels, part.classes, scoring
            )
            for part in ranges
        ]

    @property
    def perfect(self) -> float | None:
        """0 for distances, 1 for the cosine; the dot product has no origin."""
        return PERFECT.get(self.metric)

    def nearest_cells(
        self, values: Any, y: Any, ranges: list[DelayedRange], size: int
    ) -> list[Any]:
        """One cell for each chunk of the gallery."""
        from dask import delayed

        scoring = Scoring(metric=self.metric, reduce=self.reduce)
        return [
            delayed(blocks.nearest_of_embeddings)(
                values, part.templates, y, part.classes, scoring, size
            )
            for part in ranges
        ]

    def subset(self, rows: IntArray, columns: IntArray) -> Any:
        """Instances `rows` scored on the classes `columns`, in memory."""
        new_number = np.full(self.shape[1], -1)
        new_number[columns] = np.arange(columns.size)
        kept = np.flatnonzero(new_number[self._template_class] >= 0)
        return EmbeddingScores(
            self.rows[rows].compute(),
            self.gallery[kept].compute(),
            new_number[self._template_class[kept]],
            self.metric,
            self.reduce,
        )


def dask_matrix(array: Any, name: str) -> Any:
    """Argument `name`, a matrix of real numbers, as a Dask array with its columns in one chunk.

    Other Dask collections and unknown shapes are a `DataError`.
    """
    import dask.array as da

    if not is_dask(array):
        array = as_matrix_anywhere(array, name)
        if is_on_device(array) and not isinstance(array.dtype, np.dtype):
            array = to_host(array)  # Dask supports only NumPy's element types
        array = da.from_array(array, chunks={0: "auto", 1: -1})
    if not isinstance(array, da.Array):
        raise DataError(
            f"{name}: expected a Dask array, found a {type(array).__name__}; "
            "to_dask_array(lengths=True) turns a Dask DataFrame into one"
        )
    numeric_type(array, name)
    if any(np.isnan(size) for size in array.shape):
        raise DataError(f"{name}: the sizes of its chunks are unknown; call compute_chunk_sizes()")
    matrix_shape(array, name)
    return array.rechunk({1: -1})


def _checked(array: Any, name: str, metric: EmbeddingMetric) -> Any:
    """Embeddings whose chunks are checked when they are read."""
    return array.map_blocks(_finite_chunk, name, metric, dtype=array.dtype, meta=array._meta)


def _finite_chunk(
    chunk: Any, name: str, metric: EmbeddingMetric, block_info: Any = None
) -> NumberArray:
    first, last = block_info[0]["array-location"][0]
    finite_embeddings(chunk, f"{name}[{first}:{last}]", metric)
    return cast(NumberArray, chunk)


def _grouped_order(y: IntArray) -> IntArray:
    """Order with the instances of a class next to each other; unchanged if they already are."""
    order = np.argsort(y, kind="stable")
    n_runs = np.count_nonzero(np.diff(y)) + 1
    return np.arange(y.size) if n_runs == np.unique(y).size else order


def _aligned_ends(labels: IntArray, chunks: Sequence[int]) -> IntArray:
    """Ends of blocks of whole classes: the end of each chunk, moved to the end of its class."""
    class_ends = np.append(np.flatnonzero(np.diff(labels)) + 1, labels.size)
    return np.unique(class_ends[np.searchsorted(class_ends, np.cumsum(chunks))])


def _pieces(rows: Any, ends: IntArray) -> Any:
    """Delayed blocks of rows that end at `ends`."""
    chunks = rows.rechunk({0: tuple(np.diff(ends, prepend=0).tolist())})
    return chunks.to_delayed(optimize_graph=False)[:, 0]


def _computed(*delayed: Any) -> Any:
    """Results of a graph."""
    from dask import compute

    with warnings.catch_warnings():
        # Labels are part of the graph, even if it is large.
        warnings.filterwarnings("ignore", message="Sending large graph")
        return compute(*delayed)


def _tree(join: Callable[..., Any], parts: list[Any]) -> Any:
    from dask import delayed

    while len(parts) > 1:
        groups = [parts[start : start + FAN_IN] for start in range(0, len(parts), FAN_IN)]
        parts = [delayed(join)(*group) for group in groups]
    return parts[0]


def _assembled(
    instances: list[IntArray], row_sums: list[RowSums], competitors: list[CompetitorSums]
) -> LossStatistics:
    """Statistics of the whole from those of its row blocks and ranges of classes."""
    as_competitor = np.concatenate([part.as_competitor for part in competitors])
    as_test = np.zeros_like(as_competitor)
    counts = LossCounts.zeros(sum(instance.size for instance in instances))
    for instance, part in zip(instances, row_sums, strict=True):
        for total, of_block in zip(counts, part.counts, strict=True):
            total[instance] = of_block
        as_test[part.tested] = part.as_test
    pair_sums = [part.pair_sum for part in row_sums] + [part.pair_sum for part in competitors]
    influence = Influence(as_test, as_competitor, np.sum(pair_sums, axis=0))
    return LossStatistics(counts, influence)
