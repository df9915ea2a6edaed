"""Where scores come from: a given matrix, or embeddings whose score matrix is never formed.

Both kinds of source answer in blocks of rows. A block holds comparable scores and, for each row,
the limits `low` and `high` around the score of the true class: a competitor above `high` has
certainly beaten it, one below `low` has certainly lost; the few in between are decided by
`exact`, the reference formula in double precision. So embeddings are compared at the speed of a
single-precision matrix product with the outcome of the double-precision formula.
"""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol, Self

import numpy as np

from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray, IntArray, NumberArray

Metric = Literal["sqeuclidean", "cosine", "dot"]
Reduce = Literal["max", "mean"]
_PAIRS_AT_ONCE = 200_000


class Block(NamedTuple):
    """Scores of some rows and the band around the true class's score that needs `exact`."""

    scores: NumberArray  # (rows, k1)
    low: NumberArray  # (rows,)
    high: NumberArray  # (rows,)


class ScoreSource(Protocol):
    """What the losses, their covariance and KDE need to know about scores."""

    @property
    def width(self) -> int:
        """Number of elements that one row of a block takes."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of test instances and of classes."""

    def block(self, rows: IntArray, y: IntArray, scratch: FloatArray) -> Block:
        """Comparable scores of the instances `rows`, whose true classes are `y`.

        `scratch` is single-precision memory (at least rows x k1) that the scores may live in.
        """

    def exact(self, rows: IntArray, columns: IntArray) -> NumberArray:
        """Reference scores of pairs (instance, class), up to a constant of the instance."""

    def scores(self, rows: IntArray) -> FloatArray:
        """Scores of the instances `rows` in double precision, larger is better."""

    def subset(self, rows: IntArray, columns: IntArray) -> Self:
        """Return the source of the instances `rows` scored on the classes `columns`."""


@dataclass(frozen=True)
class ScoreMatrix:
    """Scores given as a matrix (n, k1); distances are negated on the way out."""

    matrix: NumberArray
    higher_is_better: bool = True

    @property
    def shape(self) -> tuple[int, int]:
        """Number of test instances and of classes."""
        return self.matrix.shape[0], self.matrix.shape[1]

    @property
    def width(self) -> int:
        """Number of elements that one row of a block takes."""
        return self.matrix.shape[1]

    def _oriented(self, values: NumberArray) -> NumberArray:
        if self.higher_is_better:
            return values
        # The complement reverses the order of whole numbers without overflow.
        return ~values if values.dtype.kind in "iu" else -values

    def block(self, rows: IntArray, y: IntArray, scratch: FloatArray) -> Block:
        """Comparable scores of the instances `rows`; the band has no width."""
        scores = self._oriented(_take(self.matrix, rows))
        if scores.dtype.kind == "f" and not scores.max(initial=-np.inf) < np.inf:
            raise self._invalid()
        own = scores[np.arange(rows.size), y]
        return Block(scores, own, own)

    def _invalid(self) -> DataError:
        """Error that names the first NaN or infinitely good score of the whole matrix."""
        worst = np.inf if self.higher_is_better else -np.inf
        for row in range(self.shape[0]):
            bad = np.isnan(self.matrix[row]) | (self.matrix[row] == worst)
            if bad.any():
                break
        column = int(np.argmax(bad))
        found = "NaN" if np.isnan(self.matrix[row, column]) else f"{worst}"
        return DataError(
            f"scores: found {found} at row {row}, column {column}; expected numbers "
            f"({-worst} alone is allowed, for a class ruled out)"
        )

    def exact(self, rows: IntArray, columns: IntArray) -> NumberArray:
        """Scores of pairs (instance, class)."""
        return self._oriented(self.matrix[rows, columns])

    def scores(self, rows: IntArray) -> FloatArray:
        """Scores of the instances `rows` in double precision."""
        scores = _take(self.matrix, rows).astype(float)
        return scores if self.higher_is_better else -scores

    def subset(self, rows: IntArray, columns: IntArray) -> "ScoreMatrix":
        """Return the source of the instances `rows` scored on the classes `columns`."""
        return replace(self, matrix=self.matrix[np.ix_(rows, columns)])


class EmbeddingScores:
    """Scores computed from embeddings of test instances and of class templates.

    Parameters
    ----------
    probes : array of shape (n, d)
        Embeddings of the test instances.
    gallery : array of shape (n_templates, d)
        Embeddings of the templates.
    template_class : int array of shape (n_templates,)
        Class of each template, 0..k1 - 1; every class has one.
    metric : {"sqeuclidean", "cosine", "dot"}
        Score of a template: minus the squared Euclidean distance, the cosine, the dot product.
    reduce : {"max", "mean"}
        Score of a class from those of its templates.
    """

    def __init__(
        self,
        probes: FloatArray,
        gallery: FloatArray,
        template_class: IntArray,
        metric: Metric,
        reduce: Reduce,
    ) -> None:
        self.probes, self.gallery = probes, gallery
        self.template_class, self.metric, self.reduce = template_class, metric, reduce
        order = np.argsort(template_class, kind="stable")
        self._templates = order
        self._counts = np.bincount(template_class)
        self._starts = np.concatenate([[0], np.cumsum(self._counts)[:-1]])
        self._one_template = bool(np.all(self._counts == 1))
        self._prepare(np.asarray(gallery, dtype=float)[order])

    def _prepare(self, gallery: FloatArray) -> None:
        """Single-precision factors whose product orders the classes as the metric does.

        For the squared distance, 2 p.g - |g|^2 (the row constant |p|^2 dropped) about the centre
        of the gallery, which keeps the rounding band narrow.
        """
        dim = gallery.shape[1]
        self._centre = gallery.mean(axis=0) if self.metric == "sqeuclidean" else np.zeros(dim)
        centred = gallery - self._centre
        norms = np.sqrt(np.einsum("ij,ij->i", centred, centred))
        if self.metric == "cosine":
            centred = centred / norms[:, None]
        self._scale = float(norms.max()) or 1.0
        if self.metric == "sqeuclidean":
            factor = np.hstack([centred / self._scale, -((norms / self._scale) ** 2)[:, None]])
        else:
            factor = centred if self.metric == "cosine" else centred / self._scale
        self._factor = _single_precision(factor)
        # Worst case of rounding both factors and summing d + 1 products in single precision.
        self._rounding = 1.01 * (dim + 8) * 2.0**-24

    def _row_factor(self, rows: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Left factor, a bound on the sum of its absolute products, the rounding of `exact`."""
        centred = np.asarray(self.probes[rows], dtype=float) - self._centre
        norm = np.sqrt(np.einsum("ij,ij->i", centred, centred))
        if self.metric == "cosine":
            return centred / norm[:, None], np.ones(rows.size), np.zeros(rows.size)
        # One scale a row keeps far probes inside the range of single precision.
        size = np.maximum(norm / self._scale, 1.0)
        scaled = centred / (self._scale * size)[:, None]
        if self.metric == "dot":
            return scaled, norm / self._scale / size, np.zeros(rows.size)
        # Rounding of the double-precision formula itself, seen from far probes.
        distance = norm / self._scale + 1
        reference = 2 * (centred.shape[1] + 3) * 2.0**-53 * distance * (distance / size)
        factor = np.hstack([2 * scaled, (1 / size)[:, None]])
        return factor, (2 * norm / self._scale + 1) / size, reference

    @property
    def shape(self) -> tuple[int, int]:
        """Number of test instances and of classes."""
        return self.probes.shape[0], self._counts.size

    @property
    def width(self) -> int:
        """Number of elements that one row of a block takes."""
        return self.gallery.shape[0]

    def block(self, rows: IntArray, y: IntArray, scratch: FloatArray) -> Block:
        """Comparable single-precision scores with the band that rounding may blur."""
        factor, bound, reference = self._row_factor(rows)
        room = scratch[: rows.size] if self._one_template else None
        product = np.matmul(_single_precision(factor), self._factor.T, out=room)
        scores = self._reduce(product)
        # Products below the normal range of single precision add the second term.
        band = 2 * self._rounding * bound + reference + 1e-37
        own = scores[np.arange(rows.size), y].astype(float)
        low = np.nextafter((own - 2 * band).astype(np.float32), np.float32(-np.inf))
        high = np.nextafter((own + 2 * band).astype(np.float32), np.float32(np.inf))
        return Block(scores, low, high)

    def _reduce(self, by_template: FloatArray) -> FloatArray:
        """Scores of classes from scores of templates, the templates being in order of class."""
        if self._one_template:
            return by_template
        if self.reduce == "max":
            return np.maximum.reduceat(by_template, self._starts, axis=-1)
        sums = np.add.reduceat(by_template, self._starts, axis=-1, dtype=float)
        return (sums / self._counts).astype(by_template.dtype)

    def exact(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Reference scores of pairs (instance, class): sums over coordinates in fixed order."""
        result = np.empty(rows.size)
        for start in range(0, rows.size, _PAIRS_AT_ONCE):
            part = slice(start, start + _PAIRS_AT_ONCE)
            result[part] = self._exact_part(rows[part], columns[part])
        return result

    def _exact_part(self, rows: IntArray, columns: IntArray) -> FloatArray:
        counts = self._counts[columns]
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        within = np.arange(counts.sum()) - np.repeat(starts, counts)
        templates = self._templates[np.repeat(self._starts[columns], counts) + within]
        by_template = self._pair_scores(np.repeat(rows, counts), templates)
        if self._one_template:
            return by_template
        if self.reduce == "max":
            return np.maximum.reduceat(by_template, starts)
        return np.add.reduceat(by_template, starts) / counts

    def _pair_scores(self, rows: IntArray, templates: IntArray) -> FloatArray:
        total = np.zeros(rows.size)
        norm_p, norm_g = np.zeros(rows.size), np.zeros(rows.size)
        for c in range(self.probes.shape[1]):
            p = np.asarray(self.probes[rows, c], dtype=float)
            g = np.asarray(self.gallery[templates, c], dtype=float)
            if self.metric == "sqeuclidean":
                total -= (p - g) ** 2
            else:
                total += p * g
            if self.metric == "cosine":
                norm_p += p * p
                norm_g += g * g
        return total / np.sqrt(norm_p) / np.sqrt(norm_g) if self.metric == "cosine" else total

    def scores(self, rows: IntArray) -> FloatArray:
        """Scores of the instances `rows` in double precision."""
        probes = np.asarray(self.probes[rows], dtype=float) - self._centre
        gallery = np.asarray(self.gallery[self._templates], dtype=float) - self._centre
        product = probes @ gallery.T
        if self.metric == "dot":
            return self._reduce(product)
        squares_p, squares_g = (probes**2).sum(axis=1), (gallery**2).sum(axis=1)
        if self.metric == "cosine":
            return self._reduce(product / np.outer(np.sqrt(squares_p), np.sqrt(squares_g)))
        return self._reduce(2 * product - squares_p[:, None] - squares_g)

    def subset(self, rows: IntArray, columns: IntArray) -> "EmbeddingScores":
        """Return the source of the instances `rows` scored on the classes `columns`."""
        new_number = np.full(self._counts.size, -1)
        new_number[columns] = np.arange(columns.size)
        kept = np.flatnonzero(new_number[self.template_class] >= 0)
        return EmbeddingScores(
            self.probes[rows],
            self.gallery[kept],
            new_number[self.template_class[kept]],
            self.metric,
            self.reduce,
        )


def _single_precision(factor: FloatArray) -> FloatArray:
    """Copy whose inner dimension is a multiple of 8: others multiply half as fast."""
    padded = np.zeros((factor.shape[0], -(-factor.shape[1] // 8) * 8), dtype=np.float32)
    padded[:, : factor.shape[1]] = factor
    return padded


def _take(matrix: NumberArray, rows: IntArray) -> NumberArray:
    """Rows of a matrix, as a view where they are consecutive, in a type that compares fast."""
    if rows.size and rows[-1] - rows[0] == rows.size - 1 and np.all(np.diff(rows) == 1):
        block = np.asarray(matrix[rows[0] : rows[-1] + 1])
    else:
        block = np.asarray(matrix[rows])
    if block.dtype == np.float16:
        return block.astype(np.float32)
    return block
