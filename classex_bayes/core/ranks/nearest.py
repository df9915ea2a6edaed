"""The nearest wrong classes of every test instance, from one pass over the scores."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from classex_bayes.core.jit import compiled
from classex_bayes.core.rank_pass import RankableScores
from classex_bayes.core.ranks.device import LARGEST_SUM, TILE_PAIRS
from classex_bayes.core.ranks.threads import for_each, ranges
from classex_bayes.formatting import by_fields
from classex_bayes.typing import BoolArray, FloatArray, IntArray

# With this length, each random half of the classes has the few nearest classes that a tail is
# fitted to, except for one row in 10^4.
LENGTH = 32
# Shorter lists say too little about tails: in 98% of the lists of this length a given half of the
# classes has the few nearest ones. The other lists are not used. They have more classes in the
# other half, and so more better classes there. If many were left out, these would seem rare.
SHORTEST_LIST = 15
# By which a score may exceed that of a perfect match, relative to the scores: twice the error of
# single precision.
ROUNDING = 1e-6
_BLOCK_PAIRS = 2**22
# The lowest number is no score, but masks a class like -inf, if it is lower than all others by so
# many times their range: the first for a number that occurs again, the second for a single one.
_MASKED = 10.0, 1e3
# Fewer scores have no useful standard deviation, nor have scores that differ by rounding alone.
_FEWEST_SCORES, _EQUAL = SHORTEST_LIST, 1e-12


class BestClasses(NamedTuple):
    """Some of the best classes of each of n instances, and scores in double precision."""

    classes: IntArray  # (n, m): ascending
    scores: FloatArray  # (n, m)
    true: FloatArray  # (n,): scores of the true classes, which may be among the others
    moments: FloatArray  # (6, n): of the finite scores of the other classes, see `row_moments`

    @classmethod
    def all_of(cls, scores: FloatArray, y: IntArray) -> "BestClasses":
        """All classes, from scores (n, k1) and true classes y (n,)."""
        classes = np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
        moments = np.empty((6, y.size))
        row_moments(scores, y, moments)
        return cls(classes, scores, scores[np.arange(y.size), y], moments)


@compiled(nogil=True)
def row_moments(scores: FloatArray, y: IntArray, moments: FloatArray) -> None:
    """Put moments of the finite wrong scores of rows into `moments` (6, n).

    These are their number, the lowest one, their mean and standard deviation, and those of their
    logarithms, which are NaN if the scores are no probabilities. Zeros count as the smallest
    positive score, because a softmax is rounded to 0. `scores` are (n, k1), and `y` (n,) the true
    classes.
    """
    # Loops, because array expressions take seconds to compile.
    wrong = np.empty(scores.shape[1])
    for i in range(scores.shape[0]):
        number, lowest, least = 0, np.inf, np.inf
        for j in range(scores.shape[1]):
            score = scores[i, j]
            if j != y[i] and np.isfinite(score):
                wrong[number] = score
                number += 1
                lowest = min(lowest, score)
                if score > 0:
                    least = min(least, score)
        values = wrong[:number]
        moments[0, i], moments[1, i], moments[2:, i] = number, lowest, np.nan
        if number:
            moments[2, i], moments[3, i] = _moments(values)
        if lowest >= 0 and 0 < number * moments[2, i] <= LARGEST_SUM:
            for j in range(number):
                values[j] = np.log(max(values[j], least))
            moments[4, i], moments[5, i] = _moments(values)


@compiled(nogil=True)
def _moments(values: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation of values (n,)."""
    total, square = 0.0, 0.0
    for value in values:
        total += value - values[0]  # the origin of the sum, which keeps digits
    mean = values[0] + total / values.size
    for value in values:
        square += (value - mean) ** 2
    return mean, np.sqrt(square / values.size)


class BestScores(RankableScores, Protocol):
    """What a pass for the nearest classes needs of scores."""

    @property
    def on_device(self) -> bool:
        """Whether a device finds the best classes, in larger parts, one after the other."""

    @property
    def perfect(self) -> float | None:
        """Score of an instance that equals its template; None if the scores have no such origin."""

    def best(self, rows: IntArray, y: IntArray, size: int) -> BestClasses:
        """Some classes of the instances `rows`, with the best `size` of those other than y (n,)."""


def is_negated(source: BestScores) -> bool:
    """Whether the scores are distances with the opposite sign."""
    return source.perfect == 0


@dataclass(frozen=True, eq=False)
class NearestClasses:
    """The M wrong classes that score best for each of n test instances, best first.

    Attributes
    ----------
    classes : int array of shape (n, M)
        Positions of the classes. Shorter lists are padded with -1.
    scores : array of shape (n, M)
        Their scores, larger is better. It is -inf for classes that are ruled out and for padding.
    true : array of shape (n,)
        Score of the true class; -inf if it is only known to be below the list.
    moments : array of shape (n, 2)
        Mean and standard deviation of the finite scores of all wrong classes. NaN if there are
        fewer than 15, if they are equal, if a number such as -1e9 masks some, or if only a list is
        known.
    log_moments : array of shape (n, 2)
        Those of the logarithms of probabilities, with a sum of at most 1; NaN for other scores.
    perfect : float or None
        Score of an instance that equals its template: 0 for distances, 1 for the cosine. None if
        the scores have no such origin.
    negated : bool
        Whether the scores are distances with the opposite sign.
    """

    classes: IntArray
    scores: FloatArray
    true: FloatArray
    moments: FloatArray
    log_moments: FloatArray
    perfect: float | None = None
    negated: bool = False
    __repr__ = by_fields

    @classmethod
    def of(cls, source: BestScores, y: IntArray, length: int = LENGTH) -> Self:
        """Lists of up to `length` classes, from one pass over the scores in blocks.

        `y` (n,) are the true classes. Lists are shorter if there are fewer wrong classes. Classes
        with equal scores are in order of column.
        """
        lists, lowest = cls.with_masks(source, y, length)
        return lists.without_masks(lowest)

    @classmethod
    def with_masks(
        cls, source: BestScores, y: IntArray, length: int = LENGTH
    ) -> tuple[Self, FloatArray]:
        """As `of`, with the scores of classes that are masked, and the lowest scores (n,).

        Whether a score is a mask depends on all instances of a test.
        """
        n, n_classes = source.shape
        size = min(length, n_classes - 1)
        classes, scores = np.empty((n, size), dtype=np.int64), np.empty((n, size))
        true, lowest = np.empty((2, n))
        moments, log_moments = np.empty((2, n, 2))

        def read(part: slice) -> None:
            rows = np.arange(part.start, part.stop)
            of_rows = source.best(rows, y[rows], size)
            true[rows] = of_rows.true
            number, lowest[rows], *of_scores = of_rows.moments
            moments[rows] = _known_moments(number, *of_scores[:2])
            log_moments[rows] = _known_moments(number, *of_scores[2:])
            # NaN is sorted last, after classes that are ruled out by a score of -inf.
            values = np.where(of_rows.classes == y[rows, None], np.nan, of_rows.scores)
            order = np.argpartition(-values, size - 1, axis=1)[:, :size]
            order = np.sort(order, axis=1)
            best = np.take_along_axis(values, order, axis=1)
            ranked = np.argsort(-best, axis=1, kind="stable")
            order = np.take_along_axis(order, ranked, axis=1)
            classes[rows] = np.take_along_axis(of_rows.classes, order, axis=1)
            scores[rows] = np.take_along_axis(best, ranked, axis=1)

        pairs = TILE_PAIRS if source.on_device else _BLOCK_PAIRS
        parts = ranges(n, max(1, pairs // n_classes))
        if source.in_order or source.on_device:
            for part in parts:
                read(part)
        else:
            for_each(read, parts)
        lists = cls(classes, scores, true, moments, log_moments, source.perfect, is_negated(source))
        return lists, lowest

    def without_masks(self, lowest: FloatArray) -> Self:
        """Lists whose masks rule classes out, if `lowest` (n,) are the lowest wrong scores."""
        scores, true, lowest = self.scores.copy(), self.true.copy(), lowest.copy()
        _rule_out(scores, true, lowest)
        moments = np.where(np.isneginf(lowest)[:, None], np.nan, self.moments)
        return replace(self, scores=scores, true=true, moments=moments)

    @property
    def has_origin(self) -> bool:
        """Whether the scores are distances or cosines, which have an origin that none exceeds."""
        if self.perfect is None:
            return False
        known = [values[np.isfinite(values)] for values in (self.scores, self.true)]
        rounding = ROUNDING * np.abs(known[0]).max()
        return bool(np.concatenate(known).max() <= self.perfect + rounding)

    def of_instances(self, rows: IntArray) -> "NearestClasses":
        """Lists of some of the instances."""
        return replace(self, **{name: getattr(self, name)[rows] for name in _ROWS})

    def spread(self, rows: BoolArray) -> "NearestClasses":
        """Lists of the `rows` (n,) that are True, and empty ones for instances without scores."""
        empty = -1, -np.inf, -np.inf, np.nan, np.nan
        columns: dict[str, Any] = {}
        for name, value in zip(_ROWS, empty, strict=True):
            known = getattr(self, name)
            columns[name] = np.full((rows.size, *known.shape[1:]), value)
            columns[name][rows] = known
        return replace(self, **columns)

    @classmethod
    def joined(cls, parts: "Iterable[NearestClasses]") -> Self:
        """Lists of all parts, one part after the other, cut to the shortest length."""
        lists = list(parts)
        size = min(part.classes.shape[1] for part in lists)
        origins = {part.perfect for part in lists}
        return cls(
            np.concatenate([part.classes[:, :size] for part in lists]),
            np.concatenate([part.scores[:, :size] for part in lists]),
            np.concatenate([part.true for part in lists]),
            np.concatenate([part.moments for part in lists]),
            np.concatenate([part.log_moments for part in lists]),
            origins.pop() if len(origins) == 1 else None,
            all(part.negated for part in lists),
        )


_ROWS = "classes", "scores", "true", "moments", "log_moments"  # fields with a row for each instance


def _known_moments(number: FloatArray, mean: FloatArray, sd: FloatArray) -> FloatArray:
    """Means and standard deviations (n, 2) of wrong scores; NaN if they say too little."""
    known = (number >= _FEWEST_SCORES) & np.isfinite(sd) & (sd > _EQUAL * np.abs(mean))
    return np.where(known, [mean, sd], np.nan).T


def _rule_out(*scores: FloatArray) -> None:
    """Replace a number such as -1e9 or the lowest float that masks classes by -inf, in place."""
    finite = np.concatenate([values[np.isfinite(values)] for values in scores])
    if not finite.size:
        return
    lowest = finite.min()
    others = finite[finite > lowest]
    if not others.size:
        return
    # Halves, because the difference of two floats may overflow.
    least = _MASKED[int(finite.size - others.size == 1)]
    if others.min() / 2 - lowest / 2 > least * (others.max() / 2 - others.min() / 2) > 0:
        for values in scores:
            values[values == lowest] = -np.inf
