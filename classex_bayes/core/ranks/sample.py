"""Sample: the first test instances with their scores, for rules that look at scores."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from classex_bayes.array_access import is_on_disk
from classex_bayes.typing import FloatArray, IntArray

_MOST_ROWS, _FEWEST_ROWS, _MOST_ENTRIES = 1000, 10, 2**19
_SELF, _MOSTLY = 1e-3, 0.95  # of distances that only a comparison with itself gives, of rows
_LARGEST = 1e300  # larger numbers mask classes, and their differences would overflow


class Sample(NamedTuple):
    """Some test instances with the scores of their true classes and of wrong ones.

    Larger scores are better. Lists that have ended are padded with class -1 and score -inf, and a
    true class that is not listed has the score -inf.
    """

    y: IntArray  # (n,)
    true: FloatArray  # (n,)
    classes: IntArray  # (n, m): of the wrong scores
    wrong: FloatArray  # (n, m)
    has_scores: bool = True  # otherwise scores are minus the places in a list

    @classmethod
    def of_source(cls, source: Any, y: IntArray) -> "Sample":
        """First rows of a `ScoreSource`, whose true classes are y (n,)."""
        templates = getattr(source, "template_class", None)
        rows = first_rows(y.size, source.shape[1] if templates is None else templates.size)
        return cls.of_matrix(source.scores(rows), y[rows])

    @classmethod
    def of_matrix(cls, scores: FloatArray, y: IntArray) -> "Sample":
        """First rows of scores (n, k1) of all classes."""
        n, n_classes = scores.shape
        rows, others = first_rows(n, n_classes), np.arange(n_classes - 1, dtype=np.int32)
        scores, y = _without_overflow(scores[rows]), y[rows]
        others = others + (others >= y[:, None])
        wrong = np.take_along_axis(scores, others, axis=1)
        return cls(y, scores[np.arange(y.size), y], others.astype(np.int32), wrong)

    @classmethod
    def of_lists(cls, ids: IntArray, scores: FloatArray | None, y: IntArray) -> "Sample":
        """First lists (n, m) of classes with these scores, or best first, without entries of -1.

        Of several entries of the true class the best counts.
        """
        rows = first_rows(*ids.shape)
        ids, y = ids[rows], y[rows]
        values = -np.arange(ids.shape[1], dtype=float) if scores is None else scores[rows]
        values = _without_overflow(np.where(ids >= 0, values, -np.inf))
        own = ids == y[:, None]
        wrong = (ids >= 0) & ~own
        return cls(
            y,
            np.where(own, values, -np.inf).max(axis=1),
            np.where(wrong, ids, -1).astype(np.int32),
            np.where(wrong, values, -np.inf),
            scores is not None,
        )

    @classmethod
    def joined(cls, samples: Sequence["Sample"]) -> "Sample":
        """First instances of all samples together."""
        width = max(sample.wrong.shape[1] for sample in samples)
        padded = [
            sample._replace(
                classes=_padded(sample.classes, width, -1),
                wrong=_padded(sample.wrong, width, -np.inf),
            )
            for sample in samples
        ]
        rows = first_rows(sum(sample.y.size for sample in samples), width)
        y, true, classes, wrong = (
            np.concatenate([sample[place] for sample in padded])[rows] for place in range(4)
        )
        return cls(y, true, classes, wrong, all(sample.has_scores for sample in samples))

    @property
    def scores(self) -> FloatArray:
        """Scores (n, m + 1) of each row, the true class first."""
        return np.column_stack([self.true, self.wrong])

    @property
    def best_wrong(self) -> FloatArray:
        """Best wrong score (n,)."""
        return self.wrong.max(axis=1)

    @property
    def first(self) -> IntArray:
        """Class (n,) that scores best."""
        rival = np.take_along_axis(self.classes, self.wrong.argmax(axis=1)[:, None], axis=1)[:, 0]
        return np.where(self.true >= self.best_wrong, self.y, rival)

    def self_match_limit(self) -> float:
        """Score that a true class exceeds only by comparison of an instance with itself; else inf.

        Of instances that are among their own templates, nearly all true scores are the best that
        occurs, by a thousandth of the distance of the best wrong ones. Scores that saturate do not
        count: their typical wrong scores lie as near to the lowest one.
        """
        known = np.isfinite(self.true) & np.isfinite(self.best_wrong)
        if np.count_nonzero(known) < max(_FEWEST_ROWS, known.size / 2):
            return np.inf
        true, wrong = self.true[known], self.wrong[np.isfinite(self.wrong)]
        best, lowest = float(true.max()), float(wrong.min())
        near = best - float(np.quantile(true, 1 - _MOSTLY))
        far = best - float(np.quantile(self.best_wrong[known], _MOSTLY))
        saturated = np.median(wrong) - lowest <= _SELF * (best - lowest)
        if near > _SELF * far or far <= 0 or saturated:
            return np.inf
        return best - float(np.sqrt(max(near, _SELF**2 * far) * far))


class KeptRows:
    """An array on a disk that is read in order, and keeps the first rows, which rules look at."""

    def __init__(self, array: Any) -> None:
        self._array, self.shape, self.dtype = array, tuple(array.shape), np.dtype(array.dtype)
        self._kept = np.empty((0, *self.shape[1:]), dtype=self.dtype)

    def __getitem__(self, key: Any) -> Any:
        """Rows as the array returns them."""
        start, stop, _ = key.indices(self.shape[0]) if isinstance(key, slice) else (-1, 0, 0)
        if start >= 0 and stop <= len(self._kept):
            return self._kept[key]
        rows = self._array[key]
        missing = first_rows(*self.shape).size - len(self._kept)
        if start == len(self._kept) and missing:
            self._kept = np.concatenate([self._kept, rows[:missing]])
        return rows


def keeping_first_rows(array: Any) -> Any:
    """An array that is on a disk, as one that keeps its first rows; others are unchanged."""
    return KeptRows(array) if is_on_disk(array) else array


def first_rows(n: int, width: int) -> IntArray:
    """Numbers of the first of n rows of so many entries, few enough to be kept."""
    return np.arange(min(n, _MOST_ROWS, max(_MOST_ENTRIES // width, _FEWEST_ROWS)))


def _padded(values: Any, width: int, fill: float) -> Any:
    return np.pad(values, ((0, 0), (0, width - values.shape[1])), constant_values=fill)


def _without_overflow(scores: FloatArray) -> FloatArray:
    """Scores whose differences are finite where they are."""
    return np.where(np.isfinite(scores), np.clip(scores, -_LARGEST, _LARGEST), scores)
