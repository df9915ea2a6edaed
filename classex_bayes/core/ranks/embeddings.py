"""Scores computed from embeddings, a tile at a time: the score matrix is never formed.

Tiles are products in single precision; the bound on their rounding tells which pairs need the
reference formula, a sum over coordinates in fixed order in double precision.
"""

from typing import Any, Literal, NamedTuple

import numpy as np

from classex_bayes.core.ranks.array_access import (
    compilable,
    is_on_device,
    is_stored,
    read_rows,
    row_slices,
    to_host,
)
from classex_bayes.core.ranks.array_backends import (
    LARGEST_SCALE,
    SMALLEST_SCALE,
    compare_products,
    device_dtype,
    matmul_roundoff,
)
from classex_bayes.core.ranks.sources import WORD, Comparison
from classex_bayes.core.ranks.threads import Scratch, for_each, ranges
from classex_bayes.typing import FloatArray, IntArray

Metric = Literal["sqeuclidean", "cosine", "dot"]
Reduce = Literal["max", "mean"]
_PAIRS_AT_ONCE = 200_000
# Rows and columns of a part of the work: enough rows to pay for the factor of a gallery tile.
_PART = (4096, 1024)
_PROBES_AT_ONCE = 2048
# A tile of products stays in the cache of one core: 1 MB.
_TILE_COLUMNS = 512
_TILE_ELEMENTS = 2**18
_SCRATCH = Scratch()


class EmbeddingScores:
    """Scores computed from embeddings of test instances and of class templates.

    Parameters
    ----------
    probes : array of shape (n, d)
        Embeddings of the test instances, in memory or read on demand.
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
        probes: Any,
        gallery: Any,
        template_class: IntArray,
        metric: Metric,
        reduce: Reduce,
    ) -> None:
        self.probes, self.gallery = probes, gallery
        self.template_class, self.metric, self.reduce = template_class, metric, reduce
        self._templates = np.argsort(template_class, kind="stable")
        self._counts = np.bincount(template_class)
        self._starts = np.concatenate([[0], np.cumsum(self._counts)])
        self.several = self._counts.size < template_class.size
        self.centre, self.scale = self._place()
        # Worst case of rounding both factors and summing d + 1 products in single precision.
        self._rounding = 1.01 * (gallery.shape[1] + 8) * 2.0**-24
        if is_on_device(gallery):
            # There the right factor with its square norms is of single precision, too.
            self._rounding = 2.05 * (gallery.shape[1] + 16) * 2.0**-24
            self._rounding += 3 * matmul_roundoff(gallery)
            if not SMALLEST_SCALE <= self.scale <= LARGEST_SCALE:
                self._rounding = np.inf

    def _place(self) -> tuple[FloatArray, float]:
        """Point that the distances are computed about, and the largest norm of a template.

        The centre of the gallery keeps the rounding band of the squared distance narrow.
        """
        from classex_bayes.core.ranks.tiles import square_norms

        centre = np.zeros(self.gallery.shape[1])
        if self.metric == "sqeuclidean":
            for part in row_slices(self.gallery):
                centre += to_host(self.gallery[part, :]).sum(axis=0, dtype=float)
            centre /= self.gallery.shape[0]
            if is_on_device(self.gallery):
                # Rounded, so that it is the same wherever it is subtracted.
                centre = centre.astype(device_dtype(self.gallery)).astype(float)
        largest = 0.0
        for part in row_slices(self.gallery):
            rows = compilable(self.gallery, np.arange(part.start, part.stop))
            largest = max(largest, float(square_norms(*rows, centre).max()))
        return centre, float(np.sqrt(largest)) or 1.0

    @property
    def shape(self) -> tuple[int, int]:
        """Number of test instances and of classes."""
        return self.probes.shape[0], self._counts.size

    @property
    def in_order(self) -> bool:
        """Whether the probes are read on demand."""
        return is_stored(self.probes)

    def contest(self, rows: IntArray, y: IntArray) -> "EmbeddingContest":
        """Open the comparison of the instances `rows`, whose true classes are `y`."""
        return EmbeddingContest(self, rows, y)

    def templates_of(self, columns: slice) -> IntArray:
        """Templates of some classes, in order of class."""
        return self._templates[self._starts[columns.start] : self._starts[columns.stop]]

    def gallery_factor(self, columns: slice) -> FloatArray:
        """Right factor of the products, (templates of the classes in order, d or d + 1).

        For the squared distance 2 p.g - |g|^2, the row constant |p|^2 dropped.
        """
        from classex_bayes.core.ranks.tiles import scale_rows, square_norms

        gallery, rows = compilable(self.gallery, self.templates_of(columns))
        distance = self.metric == "sqeuclidean"
        factor = np.empty((rows.size, gallery.shape[1] + distance), dtype=np.float32)
        scale = np.full(rows.size, 1 / self.scale)
        if self.metric == "cosine":
            scale = 1 / np.sqrt(square_norms(gallery, rows, self.centre))
        elif distance:
            factor[:, -1] = -square_norms(gallery, rows, self.centre) / self.scale / self.scale
        scale_rows(gallery, rows, self.centre, scale, factor)
        return factor

    def probe_factor(self, probes: FloatArray, rows: IntArray, factor: FloatArray) -> "Place":
        """Write the left factor of the products; return what they are to be compared with."""
        from classex_bayes.core.ranks.tiles import scale_rows, square_norms

        norm = np.sqrt(square_norms(probes, rows, self.centre))
        tiny = (factor.shape[1] + 8) * 2.0**-124  # where products leave the normal range
        if self.metric == "cosine":
            scale_rows(probes, rows, self.centre, 1 / norm, factor)
            ones = np.ones(rows.size)
            return Place(np.zeros(rows.size), ones, self._rounding * ones + tiny)
        # One scale a row keeps far probes inside the range of single precision.
        norm /= self.scale
        size = np.maximum(norm, 1.0)
        unit = 1 / (self.scale * size)
        if self.metric == "dot":
            scale_rows(probes, rows, self.centre, unit, factor)
            band = self._rounding * norm / size + tiny
            return Place(np.zeros(rows.size), unit / self.scale, band)
        scale_rows(probes, rows, self.centre, 2 * unit, factor)
        factor[:, -1] = 1 / size
        # The second term is the rounding of the double-precision formula, seen from far probes.
        reference = 2 * (probes.shape[1] + 3) * 2.0**-53 * (norm + 1) * ((norm + 1) / size)
        band = self._rounding * (2 * norm + 1) / size + 2 * reference + tiny
        return Place(norm * (norm / size), unit / self.scale, band)

    def reduced(self, by_template: FloatArray, columns: slice) -> FloatArray:
        """Scores of classes from scores of their templates, these in order of class."""
        if not self.several:
            return by_template
        starts = self._starts[columns] - self._starts[columns.start]
        if self.reduce == "max":
            return np.maximum.reduceat(by_template, starts, axis=-1)
        sums = np.add.reduceat(by_template, starts, axis=-1, dtype=float)
        return (sums / self._counts[columns]).astype(by_template.dtype)

    def exact(self, probes: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
        """Reference scores of pairs (row of `probes`, class)."""
        result = np.empty(rows.size)
        for part in ranges(rows.size, _PAIRS_AT_ONCE):
            result[part] = self._exact_part(probes, rows[part], columns[part])
        return result

    def _exact_part(self, probes: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
        counts = self._counts[columns]
        if not self.several:
            return self._pair_scores(probes, rows, self._templates[columns])
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        within = np.arange(counts.sum()) - np.repeat(starts, counts)
        templates = self._templates[np.repeat(self._starts[columns], counts) + within]
        by_template = self._pair_scores(probes, np.repeat(rows, counts), templates)
        if self.reduce == "max":
            return np.maximum.reduceat(by_template, starts)
        return np.add.reduceat(by_template, starts) / counts

    def _pair_scores(self, probes: FloatArray, rows: IntArray, templates: IntArray) -> FloatArray:
        from classex_bayes.core.ranks.tiles import pair_products

        gallery, templates = compilable(self.gallery, templates)
        if self.metric == "sqeuclidean":
            return pair_products(probes, rows, gallery, templates, True)
        product = pair_products(probes, rows, gallery, templates, False)
        if self.metric == "dot":
            return product
        norm_p = pair_products(probes, rows, probes, rows, False)
        norm_g = pair_products(gallery, templates, gallery, templates, False)
        return product / np.sqrt(norm_p) / np.sqrt(norm_g)

    def scores(self, rows: IntArray) -> FloatArray:
        """Scores of the instances `rows` in double precision."""
        probes = read_rows(self.probes, rows).astype(float) - self.centre
        squares_p = (probes**2).sum(axis=1)
        result = np.empty((rows.size, self._counts.size))
        for columns in self.tiles(slice(0, self._counts.size)):
            gallery = read_rows(self.gallery, self.templates_of(columns)).astype(float)
            gallery -= self.centre
            product = probes @ gallery.T
            squares_g = (gallery**2).sum(axis=1)
            if self.metric == "cosine":
                product /= np.outer(np.sqrt(squares_p), np.sqrt(squares_g))
            elif self.metric == "sqeuclidean":
                product = 2 * product - squares_p[:, None] - squares_g
            result[:, columns] = self.reduced(product, columns)
        return result

    def subset(self, rows: IntArray, columns: IntArray) -> "EmbeddingScores":
        """Return the source of the instances `rows` scored on the classes `columns`."""
        new_number = np.full(self._counts.size, -1)
        new_number[columns] = np.arange(columns.size)
        kept = np.flatnonzero(new_number[self.template_class] >= 0)
        return EmbeddingScores(
            read_rows(self.probes, rows),
            read_rows(self.gallery, kept),
            new_number[self.template_class[kept]],
            self.metric,
            self.reduce,
        )

    def tiles(self, columns: slice) -> list[slice]:
        """Cut classes into tiles of whole words of classes with not too many templates."""
        tiles, start = [], columns.start
        while start < columns.stop:
            end = np.searchsorted(self._starts, self._starts[start] + _TILE_COLUMNS, side="right")
            whole = max((int(end) - 1 - start) // WORD * WORD, WORD)
            tiles.append(slice(start, min(start + whole, columns.stop)))
            start = tiles[-1].stop
        return tiles


def _single(numbers: FloatArray) -> FloatArray:
    return numbers.astype(np.float32)


class Place(NamedTuple):
    """Where the products of some probes lie: offset + unit x reference score, within the band."""

    offset: FloatArray  # (n,)
    unit: FloatArray  # (n,)
    band: FloatArray  # (n,)


class EmbeddingContest:
    """Some probes, about to be compared with all classes."""

    def __init__(self, source: EmbeddingScores, rows: IntArray, y: IntArray) -> None:
        self.source, self.y = source, y
        self._probes, self._rows = compilable(source.probes, rows)
        height, width = _PART
        self.parts = [
            (at, columns)
            for columns in ranges(source.shape[1], width)
            for at in ranges(rows.size, height)
        ]
        dim = self._probes.shape[1] + (source.metric == "sqeuclidean")
        self.factor = np.empty((rows.size, dim), dtype=np.float32)
        self.low, self.high = np.empty((2, rows.size), dtype=np.float32)
        for_each(self._prepare, ranges(rows.size, _PROBES_AT_ONCE))

    def _prepare(self, at: slice) -> None:
        """Set left factors and the limits around the reference scores of the true classes."""
        rows = self._rows[at]
        # Where numbers leave the range, a limit is NaN, which leaves all to the exact formula.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            place = self.source.probe_factor(self._probes, rows, self.factor[at])
            own = place.offset + self.source.exact(self._probes, rows, self.y[at]) * place.unit
            self.low[at] = np.nextafter(_single(own - place.band), np.float32(-np.inf))
            self.high[at] = np.nextafter(_single(own + place.band), np.float32(np.inf))

    def compare(self, part: tuple[slice, slice]) -> Comparison:
        """Compare some of the instances with some of the classes."""
        from classex_bayes.core.ranks.tiles import compare

        at, columns = part
        if is_on_device(self.source.gallery):
            return compare_products(self, at, columns)
        y, low, high = self.y[at], self.low[at], self.high[at]
        words = y.size, -(-(columns.stop - columns.start) // WORD)
        above = _SCRATCH.array("above", words, np.uint64)
        close = _SCRATCH.array("close", words, np.uint64)
        counts, n_close = np.zeros(y.size, dtype=np.int64), 0
        largest, one = np.float32(np.inf), np.float32(1)
        tiles = self.source.tiles(columns)
        # Contiguous in this direction they multiply a tenth faster.
        factors = [np.ascontiguousarray(self.source.gallery_factor(tile).T) for tile in tiles]
        # What does not change from tile to tile is made once: threads wait for each other's Python.
        height = min(y.size, max(1, _TILE_ELEMENTS // max(len(right.T) for right in factors)))
        products = [
            _SCRATCH.array("product", (height, right.shape[1]), np.float32) for right in factors
        ]
        owns = [y - tile.start for tile in tiles]
        words_before = [(tile.start - columns.start) // WORD for tile in tiles]
        per_tile = list(zip(tiles, factors, products, owns, words_before, strict=True))
        rows, factor = np.arange(height), self.factor[at]
        for some in ranges(y.size, height):
            left, limits = factor[some], (low[some], high[some])
            out, places = (above[some], close[some], counts[some]), rows[: some.stop - some.start]
            for tile, right, product, own, word in per_tile:
                found = np.matmul(left, right, out=product[: places.size])
                scores = self.source.reduced(found, tile)
                close_words = compare(scores, places, one, *limits, largest, own[some], word, *out)[
                    1
                ]
                n_close += close_words
        return Comparison(at, columns.start // WORD, above, close, counts, n_close > 0)

    def exact(self, places: IntArray, columns: IntArray) -> FloatArray:
        """Reference scores of pairs (instance, class): sums over coordinates in fixed order."""
        return self.source.exact(self._probes, self._rows[places], columns)
