"""Scores computed from embeddings, one tile at a time, without the whole score matrix.

Tiles are products in single precision. Pairs within their rounding bound are compared by the
reference formula, a sum over coordinates in fixed order in double precision.
"""

from collections.abc import Iterator
from copy import copy
from functools import cached_property
from typing import Any, Literal

import array_api_compat
import numpy as np

from classex_bayes.array_access import (
    compilable,
    finite_rows,
    is_on_device,
    is_on_disk,
    on_device_of,
    read_rows,
    row_slices,
    take,
    to_host,
)
from classex_bayes.core.jit import compiled
from classex_bayes.core.ranks import device, packed_bits
from classex_bayes.core.ranks.nearest import BestClasses
from classex_bayes.core.ranks.packed_bits import WORD, PackedPairs, word_count
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.core.ranks.threads import for_each, ranges
from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray, IntArray, NumberArray

Distance = Literal["sqeuclidean", "cosine", "dot"]
# Score of a probe that equals its template. The dot product has no largest value.
PERFECT: dict[Distance, float] = {"sqeuclidean": 0.0, "cosine": 1.0}
Reduce = Literal["max", "mean"]
# Squares of smaller numbers underflow in double precision.
SMALLEST_COORDINATE = 1e-152
_PAIRS_AT_ONCE = 200_000
# Classes beyond the wanted ones, by which lists from single precision are nearly always certain.
_SPARE = 15
_PART_PAIRS = 2**22  # whose scores are in memory where a list is uncertain
# Rows and columns of a part of the work. The cost of the factor of a gallery tile is shared by the
# rows.
_PART = (4096, 1024)
# Copies of so many probes in double precision stay in the cache.
_PROBES_AT_ONCE = 256
# A tile of products stays in the cache of one core: 1 MB.
_TILE_COLUMNS = 512
_TILE_ELEMENTS = 2**18


def finite_embeddings(
    array: Any, name: str, distance: Distance, row_numbers: IntArray | None = None
) -> None:
    """Raise at the first NaN, infinity, number out of range, or zero vector under the cosine.

    `row_numbers` (n,) are those of the rows in the message, if they are part of a larger array.
    """
    numbers = np.arange(array.shape[0]) if row_numbers is None else row_numbers
    for part in row_slices(array):
        values, rows = read_rows(array, np.arange(part.start, part.stop)), numbers[part]
        finite_rows(values, name, rows)
        if distance == "sqeuclidean":  # a vector may lie anywhere near the origin
            continue
        size = np.abs(values).max(axis=1)
        if distance == "cosine" and (size == 0).any():
            raise DataError(
                f"{name}: row {rows[np.argmax(size == 0)]} is the zero vector, which has no "
                "cosine; if its extraction failed, leave it out and pass its class in unanswered=, "
                "or use another distance"
            )
        tiny = (size > 0) & (size < SMALLEST_COORDINATE)
        if tiny.any():
            row = int(np.argmax(tiny))
            raise too_small(f"{name}: the largest number of row {rows[row]}", size[row])


def too_small(what: str, size: float) -> DataError:
    """Error if squares underflow in double precision."""
    return DataError(
        f"{what} is {size:g}, whose square underflows in double precision; expected at least "
        f"{SMALLEST_COORDINATE:g}; multiply probes and gallery by the same factor"
    )


class EmbeddingScores(ScoreSource):
    """Scores computed from embeddings of test instances (n, d) and of class templates.

    `template_class` (n_templates,) is the class of each row of `gallery` (n_templates, d). Every
    class has at least one template. The score of a template is minus the squared Euclidean
    distance, the cosine or the dot product. The score of a class is the maximum or the mean over
    its templates.
    """

    def __init__(
        self,
        probes: Any,
        gallery: Any,
        template_class: IntArray,
        distance: Distance,
        reduce: Reduce,
    ) -> None:
        self.probes, self.gallery = probes, gallery
        self.template_class, self.distance, self.reduce = template_class, distance, reduce
        self._templates = np.argsort(template_class, kind="stable")
        self._counts = np.bincount(template_class)
        self._starts = np.concatenate([[0], np.cumsum(self._counts)])
        self.several = self._counts.size < template_class.size
        self.centre, self.scale = self._centre_and_scale()
        # Worst-case error of rounding both factors and summing d + 1 products in single precision.
        self._rounding = 1.01 * (gallery.shape[1] + 8) * 2.0**-24
        if self.on_device:  # which sums in any order and may round the factors once more
            self._rounding = 2.02 * (gallery.shape[1] + 8) * 2.0**-24
            self._rounding += 3 * device.matmul_roundoff(gallery)

    @property
    def best_of_several(self) -> bool:
        """Whether the best of several templates of a class counts."""
        return self.several and self.reduce == "max"

    def with_probes(self, probes: Any) -> "EmbeddingScores":
        """Return the source of other probes on the same templates."""
        other = copy(self)
        other.probes = probes
        return other

    def _centre_and_scale(self) -> tuple[FloatArray, float]:
        """Origin of the coordinates, and the largest norm of a template relative to it.

        For squared distances the origin is the mean template, which keeps the rounding band narrow.
        """
        centre = np.zeros(self.gallery.shape[1])
        if self.distance == "sqeuclidean":
            for part in row_slices(self.gallery):
                centre += to_host(self.gallery[part, :]).sum(axis=0, dtype=float)
            centre /= self.gallery.shape[0]
        largest = size = 0.0
        for part in row_slices(self.gallery):
            templates = to_host(self.gallery[part, :]) - centre
            largest = max(largest, float(_squares(templates).max()))
            size = max(size, float(np.abs(templates).max()))
        if 0 < size < SMALLEST_COORDINATE:
            raise too_small("gallery: the largest difference of a template from their mean", size)
        return centre, float(np.sqrt(largest)) or 1.0

    @property
    def shape(self) -> tuple[int, int]:
        """Number of test instances and of classes."""
        return self.probes.shape[0], self._counts.size

    @property
    def in_order(self) -> bool:
        """Whether the probes are read on demand."""
        return is_on_disk(self.probes)

    @property
    def on_device(self) -> bool:
        """Whether the templates are on a device, which computes the scores."""
        return is_on_device(self.gallery)

    @property
    def perfect(self) -> float | None:
        """0 for distances, 1 for the cosine; the dot product has no origin."""
        return PERFECT.get(self.distance)

    def block(self, rows: IntArray, y: IntArray) -> "EmbeddingBlock | DeviceEmbeddingBlock":
        """Prepare the comparison of the instances `rows`, whose true classes are `y`."""
        kind = DeviceEmbeddingBlock if self.on_device else EmbeddingBlock
        return kind(self, rows, y)

    def templates_of(self, columns: slice) -> IntArray:
        """Templates of a range of classes, in order of class."""
        return self._templates[self._starts[columns.start] : self._starts[columns.stop]]

    def gallery_factor(self, columns: slice) -> FloatArray:
        """Right factor of the products with a range of classes, in order: (d or d + 1, n_columns).

        A column is that of a template, or the mean of those of a class if its score is the mean.
        For the squared distance the products are 2 p.g - |g|^2, without the row constant |p|^2.
        """
        templates = read_rows(self.gallery, self.templates_of(columns)) - self.centre
        if self.distance == "cosine":
            templates /= np.sqrt(_squares(templates))[:, None]
        else:
            templates /= self.scale
        if self.distance == "sqeuclidean":
            templates = np.column_stack([templates, -_squares(templates)])
        if self.several and self.reduce == "mean":
            starts = self._starts[columns] - self._starts[columns.start]
            templates = np.add.reduceat(templates, starts) / self._counts[columns, None]
        return templates.T.astype(np.float32)

    @cached_property
    def factor_on_device(self) -> Any:
        """Right factors of all classes, one a row, on the device of the gallery."""
        tiles = self.tiles_of(slice(0, self._counts.size), _TILE_COLUMNS)
        factor = np.concatenate([self.gallery_factor(tile).T for tile in tiles])
        return on_device_of(self.gallery, factor)

    def probe_factor(
        self, probes: FloatArray, rows: IntArray, factor: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Write the left factor of the products to `factor`; return offset, unit and band of rows.

        The products of a row equal offset + unit x reference score, up to an error within the band.
        """
        centred, dim = probes[rows] - self.centre, probes.shape[1]
        norm = np.sqrt(_squares(centred))
        tiny = (factor.shape[1] + 8) * 2.0**-124  # error of products below the normal range
        zeros, ones = np.zeros(rows.size), np.ones(rows.size)
        if self.distance == "cosine":
            factor[:] = centred / norm[:, None]
            return zeros, ones, self._rounding * ones + tiny
        # A scale for each row keeps far probes inside the range of single precision.
        norm /= self.scale
        size = np.maximum(norm, 1.0)
        unit = 1 / (self.scale * size)
        if self.distance == "dot":
            factor[:] = centred * unit[:, None]
            return zeros, unit / self.scale, self._rounding * norm / size + tiny
        np.multiply(centred, 2 * unit[:, None], out=factor[:, :dim], casting="same_kind")
        factor[:, dim] = 1 / size
        # The second term bounds the rounding error of the reference formula for far probes.
        reference = 2 * (dim + 3) * 2.0**-53 * (norm + 1) * ((norm + 1) / size)
        band = self._rounding * (2 * norm + 1) / size + 2 * reference + tiny
        return norm * (norm / size), unit / self.scale, band

    def reduced(self, by_template: FloatArray, columns: slice) -> FloatArray:
        """Scores of classes from scores of their templates, which are in order of class."""
        if not self.several:
            return by_template
        starts = self._starts[columns] - self._starts[columns.start]
        if self.reduce == "max":
            return np.maximum.reduceat(by_template, starts, axis=-1)
        sums = np.add.reduceat(by_template, starts, axis=-1, dtype=float)
        return (sums / self._counts[columns]).astype(by_template.dtype)

    def reference_scores(self, probes: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
        """Reference scores of pairs (row of `probes`, class): sums in double precision."""
        result = np.empty(rows.size)
        for part in ranges(rows.size, _PAIRS_AT_ONCE):
            result[part] = self._reference_part(probes, rows[part], columns[part])
        return result

    def _reference_part(self, probes: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
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
        gallery, templates = compilable(self.gallery, templates)
        squared = self.distance == "sqeuclidean"
        score = _pair_products(probes, rows, gallery, templates, squared)
        if self.distance == "cosine":
            squares_p = _pair_products(probes, rows, probes, rows, False)
            squares_g = _pair_products(gallery, templates, gallery, templates, False)
            return score / np.sqrt(squares_p) / np.sqrt(squares_g)
        return score

    def scores(self, rows: IntArray) -> FloatArray:
        """Scores of the instances `rows` in double precision."""
        return self.scores_of(read_rows(self.probes, rows))

    def scores_of(self, probes: NumberArray) -> FloatArray:
        """Scores of any probes (n, d) in double precision."""
        probes = probes - self.centre
        squares_p = _squares(probes)
        result = np.empty((len(probes), self._counts.size))
        for columns in self.tiles_of(slice(0, self._counts.size), _TILE_COLUMNS):
            gallery = read_rows(self.gallery, self.templates_of(columns)) - self.centre
            product, squares_g = probes @ gallery.T, _squares(gallery)
            if self.distance == "cosine":
                product /= np.outer(np.sqrt(squares_p), np.sqrt(squares_g))
            elif self.distance == "sqeuclidean":
                product = 2 * product - squares_p[:, None] - squares_g
            result[:, columns] = self.reduced(product, columns)
        return result

    def best(self, rows: IntArray, y: IntArray, size: int) -> BestClasses:
        """Some classes of the instances `rows`, with the best `size` of those other than y (n,)."""
        if self.on_device:
            return DeviceEmbeddingBlock(self, rows, y).best(size)
        return BestClasses.all_of(self.scores(rows), y)

    def scores_on_device(self, left: Any, columns: slice) -> Any:
        """Products of probes, as the left factor (n, d or d + 1) on the device, with classes."""
        factor, counts = self.factor_on_device, self._counts[columns]
        if not self.best_of_several:
            return device.matmul(left, factor[columns, :].T)
        xp = array_api_compat.array_namespace(left)
        parts, order = [], []
        for number in np.unique(counts).tolist():  # of the templates of a class
            places = np.flatnonzero(counts == number)
            rows = self._starts[columns.start + places][:, None] + np.arange(number)
            by_template = device.matmul(left, take(factor, rows.ravel()).T)
            parts.append(xp.max(xp.reshape(by_template, (-1, *rows.shape)), axis=2))
            order.append(places)
        in_order = on_device_of(left, np.argsort(np.concatenate(order)))
        return xp.take(xp.concat(parts, axis=1), in_order, axis=1)

    def subset(self, rows: IntArray, columns: IntArray) -> "EmbeddingScores":
        """Return the source of the instances `rows` scored on the classes `columns`."""
        kept, template_class = templates_of_classes(self.template_class, columns)
        probes, gallery = read_rows(self.probes, rows), read_rows(self.gallery, kept)
        return EmbeddingScores(probes, gallery, template_class, self.distance, self.reduce)

    def tiles_of(self, columns: slice, most: int) -> list[slice]:
        """Cut classes into tiles: multiples of 64, with at most so many templates if possible."""
        result, start = [], columns.start
        while start < columns.stop:
            end = np.searchsorted(self._starts, self._starts[start] + most, side="right")
            whole = max((int(end) - 1 - start) // WORD * WORD, WORD)
            result.append(slice(start, min(start + whole, columns.stop)))
            start = result[-1].stop
        return result


def templates_of_classes(template_class: IntArray, columns: IntArray) -> tuple[IntArray, IntArray]:
    """Templates of the classes `columns`, and the places of their classes among these."""
    new_number = np.full(int(template_class.max()) + 1, -1)
    new_number[columns] = np.arange(columns.size)
    kept = np.flatnonzero(new_number[template_class] >= 0)
    return kept, new_number[template_class[kept]]


@compiled(nogil=True)
def _pair_products(
    left: NumberArray, i: IntArray, right: NumberArray, j: IntArray, distance: bool
) -> FloatArray:
    """The reference formula: sums over coordinates of left[i] right[j] or -(left[i] - right[j])^2.

    Coordinates are summed in order, in double precision, without contraction.
    """
    result = np.empty(i.size)
    for n in range(i.size):
        a, b = left[i[n]], right[j[n]]
        total = 0.0
        if distance:
            for c in range(a.size):
                total -= (np.float64(a[c]) - np.float64(b[c])) ** 2
        else:
            for c in range(a.size):
                total += np.float64(a[c]) * np.float64(b[c])
        result[n] = total
    return result


def _squares(vectors: FloatArray) -> FloatArray:
    return np.einsum("ij,ij->i", vectors, vectors)


class _Probes:
    """Some probes, each with the band of products around the score of its true class."""

    def __init__(self, source: EmbeddingScores, rows: IntArray, y: IntArray) -> None:
        self._source, self._y = source, y
        self._probes, self._rows = compilable(source.probes, rows)
        dim = self._probes.shape[1] + (source.distance == "sqeuclidean")
        self._factor = np.empty((rows.size, dim), dtype=np.float32)
        self._low, self._high = np.empty((2, rows.size), dtype=np.float32)
        self._offset, self._unit = np.empty((2, rows.size))
        # A device brings the templates of all true classes at once.
        at_once = max(rows.size, 1) if source.on_device else _PROBES_AT_ONCE
        for_each(self._prepare, ranges(rows.size, at_once))

    def _prepare(self, at: slice) -> None:
        """Set the left factor of the products and the band of some probes."""
        rows, factor = self._rows[at], self._factor[at]
        # If numbers leave the range, a limit is NaN. Then the reference formula decides all pairs.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            offset, unit, band = self._source.probe_factor(self._probes, rows, factor)
            true = self._source.reference_scores(self._probes, rows, self._y[at])
            self._offset[at], self._unit[at] = offset, unit
            product = offset + unit * true
            low, high = (product - band).astype(np.float32), (product + band).astype(np.float32)
            self._low[at] = np.nextafter(low, np.float32(-np.inf))
            self._high[at] = np.nextafter(high, np.float32(np.inf))

    def reference_scores(self, places: IntArray, columns: IntArray) -> FloatArray:
        """Reference scores of pairs (place in the block, class)."""
        return self._source.reference_scores(self._probes, self._rows[places], columns)


class EmbeddingBlock(_Probes):
    """Some probes, compared with the templates on the processor."""

    @property
    def parts(self) -> list[tuple[slice, slice]]:
        """Ranges of instances and of classes."""
        height, width = _PART
        return [
            (at, columns)
            for columns in ranges(self._source.shape[1], width)
            for at in ranges(self._low.size, height)
        ]

    def compare(self, part: tuple[slice, slice]) -> PackedPairs:
        """Compare some of the instances with some of the classes."""
        at, columns = part
        source, left, low, high = self._source, self._factor[at], self._low[at], self._high[at]
        shape = low.size, word_count(columns.stop - columns.start)
        above, close = np.empty((2, *shape), dtype=np.uint64)
        tiles_here = source.tiles_of(columns, _TILE_COLUMNS)
        factors = [source.gallery_factor(tile) for tile in tiles_here]
        widest = max(right.shape[1] for right in factors)
        sign, largest = np.float32(1), np.float32(np.inf)
        for some in ranges(low.size, max(1, _TILE_ELEMENTS // widest)):
            rows = np.arange(some.stop - some.start)
            for tile, right in zip(tiles_here, factors, strict=True):
                scores = left[some] @ right
                if source.reduce == "max":
                    scores = source.reduced(scores, tile)
                word = (tile.start - columns.start) // WORD
                band, bits = (low[some], high[some]), (above[some], close[some])
                packed_bits.compare(scores, rows, sign, *band, largest, word, *bits)
        return PackedPairs(at, columns.start // WORD, above, close)


class DeviceEmbeddingBlock(_Probes):
    """Some probes, compared with all templates on the device of the gallery."""

    @property
    def parts(self) -> list[slice]:
        """All instances at once."""
        return ranges(self._low.size, max(self._low.size, 1))

    def compare(self, part: slice) -> PackedPairs:
        """Compare all instances with all classes."""
        shape = self._low.size, word_count(self._source.shape[1])
        above, close = np.empty((2, *shape), dtype=np.uint64)
        low, high = (
            on_device_of(self._source.gallery, x[:, None]) for x in (self._low, self._high)
        )
        for columns, scores in self._scores():
            words = slice(columns.start // WORD, word_count(columns.stop))
            is_above = scores > high
            above[:, words] = device.packed(is_above)
            close[:, words] = device.packed(~(is_above | (scores < low)))
        return PackedPairs(part, 0, above, close)

    def best(self, size: int) -> BestClasses:
        """Some classes of each instance, with the best `size` wrong ones whatever the rounding."""
        n, n_classes = self._low.size, self._source.shape[1]
        width = min(size + 1 + _SPARE, n_classes)
        classes, approximate, products = device.best_of_tiles(
            (scores for _, scores in self._scores()), width, self._y
        )
        classes = np.sort(classes, axis=1)
        places = np.repeat(np.arange(n), width)
        scores = self.reference_scores(places, classes.ravel()).reshape(n, width)
        # The list may lack one of the best where rounding decided what its last classes are.
        last, first_spare = approximate[:, -1], approximate[:, min(size, width - 1)]
        certain = last + (self._high - self._low) < first_spare
        certain = (width == n_classes) | (certain & (approximate[:, 0] < np.inf))
        uncertain = np.flatnonzero(~certain)
        for part in ranges(uncertain.size, max(_PART_PAIRS // n_classes, 1)):
            rows = uncertain[part]
            whole = self._source.scores_of(self._probes[self._rows[rows]])
            classes[rows] = np.sort(np.argpartition(-whole, width - 1, axis=1)[:, :width], axis=1)
            scores[rows] = np.take_along_axis(whole, classes[rows], axis=1)
        true = self.reference_scores(np.arange(n), self._y)
        products[1:3] -= self._offset  # lowest and mean
        products[1:4] /= self._unit
        products[4:] = np.nan  # logarithms are for probabilities alone
        return BestClasses(classes, scores, true, products)

    def _scores(self) -> Iterator[tuple[slice, Any]]:
        """Tiles of classes, and scores of these in single precision on the device."""
        source = self._source
        left = on_device_of(source.gallery, self._factor)
        most = max(device.TILE_PAIRS // max(len(self._factor), 1), 1)
        for columns in source.tiles_of(slice(0, source.shape[1]), most):
            yield columns, source.scores_on_device(left, columns)
