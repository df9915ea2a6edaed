"""Scores and embeddings in Dask arrays: every block of rows is a test of its own, and they add up.

Dask is imported only if a Dask array is given. The current Dask scheduler runs the graph.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, cast

import numpy as np

from classex_bayes.array_access import (
    as_matrix_anywhere,
    as_numeric,
    is_dask,
    is_on_device,
    refuse_no_matrix,
    to_host,
)
from classex_bayes.core.influence import Influence
from classex_bayes.core.rank_pass import RankCounts, RankStatistics, Ties, rank_statistics
from classex_bayes.core.ranks.embeddings import (
    PERFECT,
    Distance,
    EmbeddingScores,
    Reduce,
    finite_embeddings,
    templates_of_classes,
)
from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.core.ranks.sample import Sample
from classex_bayes.core.ranks.sources import ScoreMatrix, ScoreSource
from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray, IntArray, NumberArray

_FAN_IN = 8


@dataclass(frozen=True, eq=False)
class DaskSource:
    """Scores of the rows of a Dask array, each block of which is a source on a worker."""

    rows: Any  # Dask array (n, m) with all columns in one chunk
    n_classes: int
    perfect: float | None
    distance: Distance | None  # how embeddings are compared
    make: Callable[..., ScoreSource]  # of the rows of a block, their numbers and `others`
    others: tuple[Any, ...]
    # Instances scored on some classes, in memory, from numbers of rows and columns.
    subset: Callable[[IntArray, IntArray], ScoreSource]
    best_of_several: bool = False  # templates of a class
    in_order = True
    on_device = False
    has_scores: ClassVar[bool] = False
    is_local: ClassVar[bool] = False

    @property
    def shape(self) -> tuple[int, int]:
        """Number of test instances and of classes."""
        return self.rows.shape[0], self.n_classes

    def _blocks(self, order: IntArray | None, ends: IntArray) -> Iterator[tuple[IntArray, Any]]:
        """Numbers of the instances of each block, and its delayed source; `ends` are in `order`."""
        from dask import delayed

        rows = self.rows if order is None else self.rows[order]
        numbers = np.arange(rows.shape[0]) if order is None else order
        chunks = rows.rechunk({0: tuple(np.diff(ends, prepend=0).tolist())})
        blocks = chunks.to_delayed(optimize_graph=False)[:, 0]
        for instance, block in zip(np.split(numbers, ends[:-1]), blocks, strict=True):
            yield instance, delayed(self.make)(block, instance, *self.others)

    def statistics(
        self, y: IntArray, weight: FloatArray, k: IntArray, ties: Ties, seed: int
    ) -> RankStatistics:
        """Numbers of better classes and the influence of each class, added up over blocks.

        A block has all instances of its classes. Rows are sorted by class, if they are not.
        """
        from dask import delayed

        is_grouped = np.count_nonzero(np.diff(y)) + 1 == np.unique(y).size
        order = None if is_grouped else np.argsort(y, kind="stable")
        of_rows = y if order is None else y[order]
        class_ends = np.append(np.flatnonzero(np.diff(of_rows)) + 1, y.size)
        ends = np.unique(class_ends[np.searchsorted(class_ends, np.cumsum(self.rows.chunks[0]))])
        counts: list[Any] = []
        influences: list[Any] = []
        samples: list[Any] = []
        for instance, source in self._blocks(order, ends):
            statistics = delayed(rank_statistics, nout=2)(
                source, y[instance], weight[instance], k, ties, seed, instance
            )
            samples = samples or [delayed(Sample.of_source)(source, y[instance])]
            counts.append(statistics[0])
            influences.append(statistics[1])
        while len(influences) > 1:
            groups = range(0, len(influences), _FAN_IN)
            influences = [delayed(_sum)(*influences[at : at + _FAN_IN]) for at in groups]
        of_blocks, influence, sample = _computed(counts, influences[0], samples[0])
        total = RankCounts.joined(of_blocks)
        if order is not None:
            total = total.at(np.argsort(order))
        return RankStatistics(total, influence, {"min_better": total.n_better}, sample)

    def design_statistics(self, *_: Any) -> NoReturn:
        """Raise `DataError`."""
        raise DataError(
            "sampling: found a Dask array of scores, expected scores in memory or on a disk; "
            "pass scores.compute()"
        )

    def sample(self, y: IntArray) -> None:
        """Return None."""

    def nearest(self, y: IntArray) -> NearestClasses:
        """Lists of the nearest wrong classes, block by block, as `NearestClasses.of`."""
        from dask import delayed

        parts = [
            delayed(NearestClasses.with_masks)(source, y[instance])
            for instance, source in self._blocks(None, np.cumsum(self.rows.chunks[0]))
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


def dask_scores(scores: Any, higher_is_better: bool) -> DaskSource:
    """Source of a matrix of scores (n, k1)."""
    matrix = dask_matrix(scores, "scores")

    def subset(rows: IntArray, columns: IntArray) -> ScoreMatrix:
        return ScoreMatrix(matrix[rows][:, columns].compute(), higher_is_better)

    perfect = None if higher_is_better else 0.0
    others = (higher_is_better,)
    return DaskSource(matrix, matrix.shape[1], perfect, None, _score_block, others, subset)


def dask_embeddings(
    probes: Any, gallery: Any, template_class: IntArray, distance: Distance, reduce: Reduce
) -> DaskSource:
    """Source of probes and templates in Dask arrays. Workers need the memory for all templates."""

    def subset(rows: IntArray, columns: IntArray) -> EmbeddingScores:
        kept, classes = templates_of_classes(template_class, columns)
        some = probes[rows].compute(), gallery[kept].compute()
        return EmbeddingScores(*some, classes, distance, reduce)

    templates = gallery.rechunk(-1).to_delayed(optimize_graph=False)[0, 0]
    others = templates, template_class, distance, reduce
    n_classes = int(template_class.max()) + 1
    perfect = PERFECT.get(distance)
    several = reduce == "max" and n_classes < template_class.size
    passes = _embedding_block, others, subset, several
    return DaskSource(probes, n_classes, perfect, distance, *passes)


def _score_block(rows: NumberArray, numbers: IntArray, higher_is_better: bool) -> ScoreMatrix:
    return ScoreMatrix(rows, higher_is_better, numbers)


def _embedding_block(
    probes: NumberArray, numbers: IntArray, gallery: NumberArray, *others: Any
) -> EmbeddingScores:
    distance = others[1]
    finite_embeddings(probes, "probes", distance, numbers)
    finite_embeddings(gallery, "gallery", distance)
    return EmbeddingScores(probes, gallery, *others)


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
    as_numeric(np.empty((0, 0), array.dtype), name)
    if any(np.isnan(size) for size in array.shape):
        raise DataError(f"{name}: the sizes of its chunks are unknown; call compute_chunk_sizes()")
    refuse_no_matrix(array.shape, name)
    return array.rechunk({1: -1})


def _sum(first: Influence, *others: Influence) -> Influence:
    return sum(others, first)


def _computed(*delayed: Any) -> Sequence[Any]:
    from dask import compute

    with warnings.catch_warnings():
        # Labels are part of the graph, even if it is large.
        warnings.filterwarnings("ignore", message="Sending large graph")
        return cast(Sequence[Any], compute(*delayed))
