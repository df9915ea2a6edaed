"""Scores and embeddings in Dask arrays: every block of rows is a test of its own, and they add up.

Dask is imported only if a Dask array is given. The current Dask scheduler runs the graph.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, cast

import numpy as np

from classex_bayes.arguments import (
    as_matrix_anywhere,
    finite_embeddings,
    matrix_shape,
    numeric_type,
)
from classex_bayes.array_access import is_on_device, to_host
from classex_bayes.core.influence import Influence
from classex_bayes.core.rank_pass import RankStatistics, rank_statistics
from classex_bayes.core.ranks.embeddings import PERFECT, Distance, EmbeddingScores, Reduce
from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.core.ranks.rank_counts import RankCounts, Ties
from classex_bayes.core.ranks.sample import Sample
from classex_bayes.core.ranks.sources import ScoreMatrix, ScoreSource
from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray, IntArray, NumberArray

_FAN_IN = 8


def is_dask(array: Any) -> bool:
    """Whether an array is a Dask array, without an import of Dask."""
    return type(array).__module__.partition(".")[0] == "dask"


class DaskSource(ABC):
    """Scores from Dask arrays (n, m) with all columns in one chunk."""

    def __init__(self, rows: Any, n_classes: int, perfect: float | None) -> None:
        self.rows, self.perfect = rows, perfect
        self.shape = rows.shape[0], n_classes
        self.in_order, self.on_device = True, False

    @abstractmethod
    def part(self, rows: Any, instance: IntArray) -> Any:
        """Delayed source of a delayed block of rows, the numbers (n,) of whose rows are given."""

    @abstractmethod
    def subset(self, rows: IntArray, columns: IntArray) -> ScoreSource:
        """Instances `rows` scored on the classes `columns`, in memory."""

    def statistics(
        self, y: IntArray, weight: FloatArray, k: IntArray, ties: Ties, seed: int
    ) -> RankStatistics:
        """Numbers of better classes and the influence of each class, added up over blocks."""
        from dask import delayed

        in_order = np.count_nonzero(np.diff(y)) + 1 == np.unique(y).size
        order = np.arange(y.size) if in_order else np.argsort(y, kind="stable")
        rows = self.rows if in_order else self.rows[order]
        class_ends = np.append(np.flatnonzero(np.diff(y[order])) + 1, y.size)
        ends = np.unique(class_ends[np.searchsorted(class_ends, np.cumsum(rows.chunks[0]))])
        counts, influences = [], []
        samples: list[Any] = []
        for instance, block in _blocks(rows, order, ends):
            part = self.part(block, instance)
            statistics = delayed(rank_statistics, nout=2)(
                part, y[instance], weight[instance], k, ties, seed, instance
            )
            samples = samples or [delayed(Sample.of_source)(part, y[instance])]
            counts.append(statistics[0])
            influences.append(statistics[1])
        while len(influences) > 1:
            groups = [
                influences[start : start + _FAN_IN] for start in range(0, len(influences), _FAN_IN)
            ]
            influences = [delayed(_sum)(*group) for group in groups]
        of_blocks, influence, sample = _computed(counts, influences[0], samples[0])
        total = RankCounts.zeros(y.size)
        for whole, part in zip(total, RankCounts.joined(of_blocks), strict=True):
            whole[order] = part
        return RankStatistics(total, influence, {"lowest": total.n_better}, sample)

    def nearest(self, y: IntArray) -> NearestClasses:
        """Lists of the nearest wrong classes, block by block, as `NearestClasses.of`."""
        from dask import delayed

        blocks = _blocks(self.rows, np.arange(y.size), np.cumsum(self.rows.chunks[0]))
        parts = [
            delayed(NearestClasses.with_masks)(self.part(block, instance), y[instance])
            for instance, block in blocks
        ]
        lists, lowest = zip(*_computed(parts)[0], strict=True)
        return NearestClasses.joined(lists).without_masks(np.concatenate(lowest))

    def scores(self, *_: Any) -> NoReturn:
        """Raise `DataError`."""
        raise DataError(
            "task: its scores are in Dask arrays, from which only ranks, their covariance and "
            "nearest classes can be computed; use task.subsample(n_classes), which reads the "
            "scores of some classes into memory"
        )

    block = best = scores


class DaskScores(DaskSource):
    """A matrix of scores in a Dask array of shape (n, k1)."""

    def __init__(self, scores: Any, higher_is_better: bool) -> None:
        matrix = dask_matrix(scores, "scores")
        super().__init__(matrix, matrix.shape[1], None if higher_is_better else 0.0)
        self.higher_is_better = higher_is_better

    def part(self, rows: Any, instance: IntArray) -> Any:
        """Delayed source of a block of rows."""
        from dask import delayed

        return delayed(ScoreMatrix)(rows, self.higher_is_better, instance)

    def subset(self, rows: IntArray, columns: IntArray) -> ScoreMatrix:
        """Scores of the instances `rows` on the classes `columns`, in memory."""
        return ScoreMatrix(self.rows[rows][:, columns].compute(), self.higher_is_better)


class DaskEmbeddings(DaskSource):
    """Probes and templates, one or both of them in Dask arrays.

    Every worker needs the memory for all templates.
    """

    def __init__(
        self,
        probes: Any,
        gallery: Any,
        template_class: IntArray,
        distance: Distance,
        reduce: Reduce,
    ) -> None:
        rows, n_classes = _checked(probes, "probes", distance), int(template_class.max()) + 1
        super().__init__(rows, n_classes, PERFECT.get(distance))
        self.gallery = _checked(gallery, "gallery", distance)
        self.template_class, self.distance, self.reduce = template_class, distance, reduce

    def part(self, rows: Any, instance: IntArray) -> Any:
        """Delayed source of a block of probes and all templates."""
        from dask import delayed

        gallery = self.gallery.rechunk(-1).to_delayed(optimize_graph=False)[0, 0]
        return delayed(EmbeddingScores)(
            rows, gallery, self.template_class, self.distance, self.reduce
        )

    def subset(self, rows: IntArray, columns: IntArray) -> EmbeddingScores:
        """Instances `rows` scored on the classes `columns`, in memory."""
        new_position = np.full(self.shape[1], -1)
        new_position[columns] = np.arange(columns.size)
        kept = np.flatnonzero(new_position[self.template_class] >= 0)
        return EmbeddingScores(
            self.rows[rows].compute(),
            self.gallery[kept].compute(),
            new_position[self.template_class[kept]],
            self.distance,
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


def _checked(array: Any, name: str, distance: Distance) -> Any:
    """Embeddings whose chunks are checked when they are read."""
    return array.map_blocks(_finite_chunk, name, distance, dtype=array.dtype, meta=array._meta)


def _finite_chunk(chunk: Any, name: str, distance: Distance, block_info: Any = None) -> NumberArray:
    first, last = block_info[0]["array-location"][0]
    finite_embeddings(chunk, f"{name}[{first}:{last}]", distance)
    return cast(NumberArray, chunk)


def _blocks(rows: Any, instance: IntArray, ends: IntArray) -> Iterator[tuple[IntArray, Any]]:
    """Numbers of the instances and delayed rows of each block; `ends` are those of the blocks."""
    chunks = rows.rechunk({0: tuple(np.diff(ends, prepend=0).tolist())})
    blocks = chunks.to_delayed(optimize_graph=False)[:, 0]
    return zip(np.split(instance, ends[:-1]), blocks, strict=True)


def _sum(first: Influence, *others: Influence) -> Influence:
    return sum(others, first)


def _computed(*delayed: Any) -> Sequence[Any]:
    """Results of a graph."""
    from dask import compute

    with warnings.catch_warnings():
        # Labels are part of the graph, even if it is large.
        warnings.filterwarnings("ignore", message="Sending large graph")
        return cast(Sequence[Any], compute(*delayed))
