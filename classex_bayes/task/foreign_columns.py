"""Columns that are not scores of a class: row numbers, labels, folds, constants.

A competitor's scores are of the same kind as those of tested classes for instances of other
classes. A column without test instances whose values differ in kind from all of these is foreign.
The check inspects some rows. It needs at least 10 rows and 3 tested classes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from classex_bayes.core.ranks.array_access import read_rows, to_host
from classex_bayes.core.ranks.embeddings import EmbeddingScores
from classex_bayes.core.ranks.shards import ConcatenatedScores
from classex_bayes.core.ranks.sources import ScoreMatrix, ScoreSource
from classex_bayes.exceptions import DataError
from classex_bayes.task.classifier_scores import ClassifierScores
from classex_bayes.task.dask_sources import DaskScores
from classex_bayes.typing import BoolArray, FloatArray, IntArray

_FEWEST_ROWS, _MANY_ROWS, _FEWEST_TESTED = 10, 20, 3
_MOST_ROWS, _MOST_ENTRIES = 1000, 2**22
# What no tested class does in half of the rows, no competitor does in all.
_HALF = 0.5
# So many tested classes show how unlike each other classes are: three times their range covers
# others, and others have at least a fourth of the values of the one that has fewest.
_MANY_TESTED, _RANGES, _FEWER = 20, 3, 4
_OTHER_UNIT = 10.0  # times the spread of the templates, which noise does not reach
_ROUNDING = 1e-6  # of row numbers that were divided by their number
_NEAR = 1e-3  # times the range of a row's scores


def refuse_foreign_columns(source: ScoreSource, y: IntArray, names: Sequence[Any] | None) -> None:
    """Raise if a column is certainly not a score, or a coordinate certainly not an embedding.

    `y` (n,) are the true classes, with the `names` of all classes.
    """
    if isinstance(source, EmbeddingScores):  # chunks of Dask are read once
        _refuse_foreign_coordinates(_first_rows(source.probes), y, "probes")
        _refuse_foreign_coordinates(_first_rows(source.gallery), np.arange(0), "gallery")
    untested = _UntestedScores.of(source, y)
    if untested is not None:
        untested.refuse_foreign(names)


class ScoreDoubts(NamedTuple):
    """Reasons why some scores may be faulty.

    `unlike` maps each reason to the positions of untested columns that differ from all others.
    `cautions` are facts about the classifier that gave the scores.
    """

    unlike: Mapping[str, IntArray] = {}
    embeddings: tuple[str, ...] = ()
    classifier: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: ScoreSource, y: IntArray) -> Self:
        """Inspect some rows of the scores now, because their file may be closed later."""
        untested = _UntestedScores.of(source, y)
        unlike = {} if untested is None else untested.unlike()
        found = cls(unlike, _doubtful_embeddings(source))
        shards = source.sources if isinstance(source, ConcatenatedScores) else (source,)
        told = [shard for shard in shards if isinstance(shard, ClassifierScores)]
        return found.with_classifiers(
            [cls(classifier=shard.doubts, cautions=shard.cautions) for shard in told]
        )

    def in_whole(self, y: IntArray) -> Self:
        """Doubts that remain if other shards test the classes `y`."""
        unlike = {why: np.setdiff1d(columns, y) for why, columns in self.unlike.items()}
        return self._replace(unlike={why: left for why, left in unlike.items() if left.size})

    def with_classifiers(self, parts: Sequence["ScoreDoubts"]) -> Self:
        """These doubts with those about the classifiers of parts, each once."""
        of_parts = [doubt for part in parts for doubt in part.classifier]
        cautions = [caution for part in parts for caution in part.cautions]
        return self._replace(
            classifier=tuple(dict.fromkeys([*self.classifier, *of_parts])),
            cautions=tuple(dict.fromkeys([*self.cautions, *cautions])),
        )


def _doubtful_embeddings(source: ScoreSource) -> tuple[str, ...]:
    """Sentences about probes and templates that do not fit each other."""
    if not isinstance(source, EmbeddingScores):
        return ()
    probes, gallery = _first_rows(source.probes), _first_rows(source.gallery)
    if len(probes) < _FEWEST_ROWS:
        return ()
    sentences = []
    templates = {template.tobytes() for template in gallery}
    known = np.mean([probe.tobytes() in templates for probe in probes])
    if known > _HALF:
        sentences.append(
            f"{100 * known:.0f}% of the first {len(probes)} probes are templates of the gallery; "
            "use test instances that the classifier has not seen"
        )
    left, right = (np.mean((rows - gallery.mean(axis=0)) ** 2) for rows in (probes, gallery))
    ratio = (left / right) ** 0.5 if right > 0 else 1.0
    if source.metric == "sqeuclidean" and not 1 / _OTHER_UNIT < ratio < _OTHER_UNIT:
        sentences.append(
            f"probes lie {ratio:.3g} times as far from the mean of the gallery as templates do; "
            "check that both have the same unit and normalisation"
        )
    return tuple(sentences)


def column_name(columns: IntArray, names: Sequence[Any] | None) -> str:
    """The first of some columns, with its name and the number of the others."""
    first, more = int(columns[0]), columns.size - 1
    name = f"column {first}" if names is None else f"column {first} ({names[first]!r})"
    return f"{name} and {more} more" if more else name


def _first_rows(matrix: Any) -> FloatArray:
    """Rows of a matrix from anywhere, few enough to be read at once."""
    n, width = matrix.shape
    some = min(n, _MOST_ROWS, max(_MOST_ENTRIES // width, _MANY_ROWS))
    if hasattr(matrix, "compute"):  # Dask's
        return np.asarray(to_host(matrix[:some].compute()), dtype=float)
    return np.asarray(read_rows(matrix, np.arange(some)), dtype=float)


def _first_scores(source: Any) -> FloatArray | None:
    """First rows of scores, or of their first shard; None for embeddings."""
    if isinstance(source, ConcatenatedScores):
        return _first_scores(source.sources[0])
    if isinstance(source, DaskScores):
        return _first_rows(source.rows)
    return _first_rows(source.matrix) if isinstance(source, ScoreMatrix) else None


def _refuse_foreign_coordinates(values: FloatArray, labels: IntArray, name: str) -> None:
    """`labels` are those of the rows or of more, or none."""
    found = {"the numbers of the rows": _are_row_numbers(values)}
    if labels.size:
        found["one number for each class"] = _are_labels(values, labels[: len(values)])
    for kind, columns in found.items():
        if columns.any() and columns.mean() < _HALF:
            raise DataError(
                f"{name}: coordinate {np.argmax(columns)} contains {kind}, like an index or a "
                "label; leave it out of probes and gallery"
            )


@dataclass(frozen=True, eq=False)
class _UntestedScores:
    """Some rows of scores: those of classes that no instance belongs to, and of the others.

    `competitors` (m, n_untested) stand in `columns`; `others` (m, n_tested) are the scores of the
    tested classes, `of_rivals` those for instances of other classes; `y` (m,) are the true ones.
    """

    competitors: FloatArray
    columns: IntArray
    others: FloatArray
    of_rivals: BoolArray
    y: IntArray

    @classmethod
    def of(cls, source: ScoreSource, y: IntArray) -> Self | None:
        """Split some scores; None where they tell nothing."""
        tested = np.bincount(y, minlength=source.shape[1]) > 0
        classes, columns = np.flatnonzero(tested), np.flatnonzero(~tested)
        if not columns.size or classes.size < _FEWEST_TESTED or y.size < _FEWEST_ROWS:
            return None
        scores = _first_scores(source)
        if scores is None or len(scores) < _FEWEST_ROWS:
            return None
        y = y[: len(scores)]
        rivals = classes != y[:, None]
        return cls(scores[:, columns], columns, scores[:, classes], rivals, y)

    def _share(self, has: BoolArray) -> float:
        """Largest share of rows in which a competitor has a property."""
        number = np.maximum(self.of_rivals.sum(axis=0), 1)
        return float(((has & self.of_rivals).sum(axis=0) / number).max())

    def refuse_foreign(self, names: Sequence[Any] | None) -> None:
        """Raise if a competitor is certainly not a class."""
        values, others = self.competitors, self.others
        varies = (values != values[0]).any(axis=0)
        for kind, found, known in (
            ("the numbers of the rows", _are_row_numbers(values), _are_row_numbers(others).any()),
            (
                "one number for each class",
                _are_labels(values, self.y),
                _are_labels(others, self.y).any(),
            ),
            ("sums or extremes of the others", self._summarise(), np.zeros(1)),
            (
                "whole numbers beside real ones",
                _is_whole(values).all(axis=0) & varies,
                self._share(_is_whole(others)) >= _HALF,
            ),
        ):
            if found.any() and not known:
                first = column_name(self.columns[found][:1], names)
                raise DataError(
                    f"scores: {first} contains {kind}, and no instance belongs to it; expected "
                    "scores of a class. Leave out an index, a label, a fold or a total"
                )

    def _summarise(self) -> BoolArray:
        """Whether competitors are the sum, mean, largest or smallest of all other scores."""
        values, whole = self.competitors, np.hstack([self.others, self.competitors])
        found = np.zeros(values.shape[1], dtype=bool)
        with np.errstate(invalid="ignore", over="ignore"):
            total = whole.sum(axis=1, keepdims=True) - values
            number = whole.shape[1] - 1
            top, low = -np.sort(-whole, axis=1)[:, :2], np.sort(whole, axis=1)[:, :2]
            apart = _NEAR * (top[:, :1] - low[:, :1])  # scores far from 0 may differ by little
            summaries = [(total, np.full_like(apart, np.inf)), (total / number, apart)]
            for extreme, next_one in (np.split(ends, 2, axis=1) for ends in (top, low)):
                # Many classes share the smallest score of a row, for example with smoothed votes.
                if self._share(self.others == extreme) < _HALF:
                    summaries.append((np.where(values == extreme, next_one, extreme), apart))
            for summary, most in summaries:
                close = np.abs(values - summary) <= np.minimum(_ROUNDING * np.abs(summary), most)
                found |= close.all(axis=0) & (values != values[0]).any(axis=0)
        return found

    def _repeat(self) -> BoolArray:
        """Whether competitors of many values have the scores of another column."""
        values = self.competitors
        many = _number_of_values(np.sort(values, axis=0)) > len(values) * _HALF
        rows = [column.tobytes() for column in values.T]
        number = Counter([*rows, *(column.tobytes() for column in self.others.T)])
        return many & np.array([number[row] > 1 for row in rows])

    def unlike(self) -> dict[str, IntArray]:
        """Columns of few values, and of scores beyond the range of all others."""
        values, others = self.competitors, np.sort(self.others, axis=0)
        found: dict[str, BoolArray] = {}
        many = others.shape[1] >= _MANY_TESTED
        rivals = self.others[self.of_rivals]
        rivals = rivals[np.isfinite(rivals)]
        typical = np.sort(values, axis=0)[len(values) // 2]
        if (
            len(values) >= _MANY_ROWS
            and self._share(self.others == others[len(others) // 2]) < _HALF
        ):
            few = max(1, int(_number_of_values(others).min()) // _FEWER) if many else 1
            found["take few values"] = (_number_of_values(np.sort(values, axis=0)) <= few) & (
                many | np.isfinite(typical)
            )
        if many and rivals.size:
            low, high = rivals.min(), rivals.max()
            found["are on another scale"] = np.isfinite(typical) & (
                np.abs(2 * typical - low - high) > _RANGES * (high - low)
            )
        found["repeat another column"] = self._repeat()
        return {why: self.columns[which] for why, which in found.items() if which.any()}


def _number_of_values(ordered: FloatArray) -> IntArray:
    """Number of different values down each column, which is in order."""
    return np.asarray(1 + np.count_nonzero(ordered[1:] != ordered[:-1], axis=0))


def _is_whole(values: FloatArray) -> BoolArray:
    whole: BoolArray = np.isfinite(values) & (values == np.rint(values))
    return whole


def _are_row_numbers(values: FloatArray) -> BoolArray:
    """Whether columns are equally spaced: in order, or of 20 rows or more in any order."""
    if len(values) < _FEWEST_ROWS:
        return np.zeros(values.shape[1], dtype=bool)
    if len(values) >= _MANY_ROWS:
        values = np.sort(values, axis=0)
    with np.errstate(invalid="ignore", over="ignore"):
        step = (values[-1] - values[0]) / (len(values) - 1)
        equal = np.abs(np.diff(values, axis=0) - step) <= _ROUNDING * np.abs(step)
    found: BoolArray = (step != 0) & np.isfinite(step) & equal.all(axis=0)
    return found


def _are_labels(values: FloatArray, y: IntArray) -> BoolArray:
    """Whether columns hold one number for each class, where classes have several instances."""
    _, first, place = np.unique(y, return_index=True, return_inverse=True)
    if first.size < _FEWEST_TESTED or y.size < first.size + _FEWEST_ROWS // 2:
        return np.zeros(values.shape[1], dtype=bool)
    of_class = values[first]
    different = _number_of_values(np.sort(of_class, axis=0)) == first.size
    found: BoolArray = different & (values == of_class[place]).all(axis=0)
    return found
