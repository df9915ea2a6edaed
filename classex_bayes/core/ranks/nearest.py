"""The nearest wrong classes of every test instance, from one pass over the scores."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from classex_bayes.core.jit import compiled
from classex_bayes.core.rank_pass import RankableScores
from classex_bayes.core.ranks.device import TILE_PAIRS
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
    moments: FloatArray  # (4, n): of the finite scores of the other classes, see `row_moments`

    @classmethod
    def all_of(cls, scores: FloatArray, y: IntArray) -> "BestClasses":
        """All classes, from scores (n, k1) and true classes y (n,)."""
        classes = np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
        moments = np.empty((4, y.size))
        row_moments(scores, y, moments)
        return cls(classes, scores, scores[np.arange(y.size), y], moments)


@compiled(nogil=True)
def row_moments(scores: FloatArray, y: IntArray, moments: FloatArray) -> None:
    """Put moments of the finite wrong scores of rows into `moments` (4, n).

    These are their number, mean, standard deviation, and the lowest one. `scores` are (n, k1), and
    `y` (n,) the true classes.
    """
    for i in range(scores.shape[0]):
        number, first, total, square, lowest = 0, 0.0, 0.0, 0.0, np.inf
        for j in range(scores.shape[1]):
            score = scores[i, j]
            if j != y[i] and np.isfinite(score):
                if number == 0:
                    first = score  # the origin of the sum, which keeps digits
                number += 1
                total += score - first
                lowest = min(lowest, score)
        mean = first + total / max(number, 1)
        for j in range(scores.shape[1]):
            if j != y[i] and np.isfinite(scores[i, j]):
                square += (scores[i, j] - mean) ** 2
        moments[0, i], moments[1, i] = number, mean
        moments[2, i], moments[3, i] = np.sqrt(square / max(number, 1)), lowest


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
    mean, sd : array of shape (n,)
        Mean and standard deviation of the finite scores of all wrong classes. NaN if there are
        fewer than 15, if they are equal, if a number such as -1e9 masks some, or if only a list is
        known.
    perfect : float or None
        Score of an instance that equals its template: 0 for distances, 1 for the cosine. None if
        the scores have no such origin.
    negated : bool
        Whether the scores are distances with the opposite sign.
    """

    classes: IntArray
    scores: FloatArray
    true: FloatArray
    mean: FloatArray
    sd: FloatArray
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
        true, mean, sd, lowest = np.empty((4, n))

        def read(part: slice) -> None:
            rows = np.arange(part.start, part.stop)
            of_rows = source.best(rows, y[rows], size)
            true[rows] = of_rows.true
            mean[rows], sd[rows] = _mean_and_sd(*of_rows.moments[:3])
            lowest[rows] = of_rows.moments[3]
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
        lists = cls(classes, scores, true, mean, sd, source.perfect, is_negated(source))
        return lists, lowest

    def without_masks(self, lowest: FloatArray) -> Self:
        """Lists whose masks rule classes out, if `lowest` (n,) are the lowest wrong scores."""
        scores, true, lowest = self.scores.copy(), self.true.copy(), lowest.copy()
        _rule_out(scores, true, lowest)
        masked = np.isneginf(lowest)
        mean, sd = (np.where(masked, np.nan, values) for values in (self.mean, self.sd))
        return replace(self, scores=scores, true=true, mean=mean, sd=sd)

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
        empty = {"classes": -1, "scores": -np.inf, "true": -np.inf, "mean": np.nan, "sd": np.nan}
        columns: dict[str, Any] = {}
        for name, value in empty.items():
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
            np.concatenate([part.mean for part in lists]),
            np.concatenate([part.sd for part in lists]),
            origins.pop() if len(origins) == 1 else None,
            all(part.negated for part in lists),
        )


_ROWS = "classes", "scores", "true", "mean", "sd"  # fields with a row for each instance


def _mean_and_sd(
    number: FloatArray, mean: FloatArray, sd: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation (n,) of the wrong scores of a row; NaN if they say too little."""
    known = (number >= _FEWEST_SCORES) & np.isfinite(sd) & (sd > _EQUAL * np.abs(mean))
    return np.where(known, mean, np.nan), np.where(known, sd, np.nan)


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
