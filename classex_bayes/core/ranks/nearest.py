"""The nearest wrong classes of every test instance, from one pass over the scores."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.core.ranks.threads import for_each, ranges
from classex_bayes.typing import FloatArray, IntArray

# Both halves of the classes hold the few nearest that a tail is fitted to, but for one row in 10^4.
LENGTH = 32
_BLOCK_PAIRS = 2**22


@dataclass(frozen=True, eq=False)
class NearestClasses:
    """The M wrong classes that score best for each of n test instances, best first.

    Attributes
    ----------
    classes : int array of shape (n, M)
        Positions of the classes.
    scores : array of shape (n, M)
        Their scores, larger is better.
    true : array of shape (n,)
        Score of the true class; -inf if all that is known is that it is below the list.
    perfect : float or None
        Score of an instance that equals its template: 0 for distances, 1 for the cosine. None if
        the scores have no such origin.
    """

    classes: IntArray
    scores: FloatArray
    true: FloatArray
    perfect: float | None = None

    @classmethod
    def of(cls, source: ScoreSource, y: IntArray, length: int = LENGTH) -> Self:
        """Read the scores once, in blocks, and keep `length` numbers of each instance.

        `y` (n,) are the true classes. There are fewer numbers if there are fewer wrong classes.
        Of equal scores, those of the first columns come first.
        """
        n, n_classes = source.shape
        size = min(length, n_classes - 1)
        classes, scores = np.empty((n, size), dtype=np.int64), np.empty((n, size))
        true = np.empty(n)

        def read(part: slice) -> None:
            rows = np.arange(part.start, part.stop)
            values = source.scores(rows)
            places = np.arange(rows.size), y[rows]
            true[rows] = values[places]
            values[places] = -np.inf
            # The true class comes last, also behind classes that are ruled out by a score of -inf.
            order = np.argpartition(-values, size - 1, axis=1)[:, :size]
            order = np.sort(order, axis=1)
            best = np.take_along_axis(values, order, axis=1)
            ranked = np.argsort(-best, axis=1, kind="stable")
            classes[rows] = np.take_along_axis(order, ranked, axis=1)
            scores[rows] = np.take_along_axis(best, ranked, axis=1)

        parts = ranges(n, max(1, _BLOCK_PAIRS // n_classes))
        if source.in_order:
            for part in parts:
                read(part)
        else:
            for_each(read, parts)
        return cls(classes, scores, true, source.perfect)

    @classmethod
    def joined(cls, parts: "Iterable[NearestClasses]") -> Self:
        """Lists of all parts, one part after the other, as long as the shortest."""
        lists = list(parts)
        size = min(part.classes.shape[1] for part in lists)
        origins = {part.perfect for part in lists}
        return cls(
            np.concatenate([part.classes[:, :size] for part in lists]),
            np.concatenate([part.scores[:, :size] for part in lists]),
            np.concatenate([part.true for part in lists]),
            origins.pop() if len(origins) == 1 else None,
        )
