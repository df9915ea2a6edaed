"""Ranked lists as one long table of entries, and the ranks that follow from it.

Results of a vector index, runs of a retrieval system and lists of candidates of each query's own
become this table. Each rule for ties, repeated items, short and empty lists and relevance is here.
"""

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np

from classex_bayes.core.rank_pass import RankCounts
from classex_bayes.core.ranks.nearest import LENGTH, SHORTEST_LIST, NearestClasses
from classex_bayes.core.ranks.sample import Sample, first_rows
from classex_bayes.typing import BoolArray, FloatArray, IntArray

ROUNDING = 1e-5  # of the largest of a row: they may have been computed again
# Shares of the lists that may end before the others, and before the length that tails need.
_SHORT, _TOO_SHORT = 0.01, 0.1
TieBreak = Callable[[IntArray, IntArray], FloatArray | IntArray]


class Lists(NamedTuple):
    """Entries of ranked lists, one a row; those of a query follow each other, the best one first.

    Items are positions in the catalogue. Those of grade 0 are wrong for their query.
    """

    n_queries: int  # some of which may have no entry
    query: IntArray  # (n_entries,), ascending
    item: IntArray  # (n_entries,)
    score: FloatArray | None  # (n_entries,), larger is better; None if only the order is known
    grade: IntArray  # (n_entries,)

    def at(self, rows: IntArray | BoolArray) -> Self:
        """Some of the entries."""
        score = None if self.score is None else self.score[rows]
        return self._replace(
            query=self.query[rows], item=self.item[rows], score=score, grade=self.grade[rows]
        )

    @property
    def lengths(self) -> IntArray:
        """Number (n_queries,) of entries of each list."""
        return np.bincount(self.query, minlength=self.n_queries)

    def begins_tie(self) -> BoolArray:
        """Whether each entry (n_entries,) is the first of its list with its score."""
        begins = np.ones(self.query.size, dtype=bool)
        if self.score is not None:
            begins[1:] = (self.query[1:] != self.query[:-1]) | (self.score[1:] != self.score[:-1])
        return begins

    def with_ties_broken(self, tie_break: TieBreak) -> Self:
        """Entries with equal scores in descending order of `tie_break`(query, item)."""
        begins = self.begins_tie()
        tied = np.flatnonzero(~begins | np.append(~begins[1:], False))
        key = tie_break(self.query[tied], self.item[tied])
        order = tied[np.lexsort((-key, begins.cumsum()[tied]))]
        item, grade = self.item.copy(), self.grade.copy()
        item[tied], grade[tied] = item[order], grade[order]
        return self._replace(item=item, grade=grade)

    def without_cut_ties(self, n_items: int) -> Self:
        """Lists that end before entries tied with the last one, if they lack some of the items.

        There may be more items with the same score. A list keeps one entry.
        """
        if self.score is None:
            return self
        last = np.empty(self.n_queries)
        last[self.query] = self.score
        cut, is_first = self.score == last[self.query], ~self._repeated()
        n_tied, n_listed = (
            np.bincount(self.query[rows], minlength=self.n_queries)
            for rows in (cut & is_first, is_first)
        )
        cut &= ((n_tied > 1) & (n_listed < n_items))[self.query]
        cut[1:] &= self.query[1:] == self.query[:-1]
        cut[0] = False
        return self.at(~cut) if cut.any() else self

    def without_repeated(self) -> Self:
        """Lists with the first entry of each item alone."""
        repeated = self._repeated()
        return self.at(~repeated) if repeated.any() else self

    def _repeated(self) -> BoolArray:
        """Whether the list of each entry (n_entries,) has the same item before it."""
        pair = self.query * (self.item.max(initial=0) + 1) + self.item
        order = np.argsort(pair, kind="stable")
        pair = pair[order]
        repeated = np.zeros(pair.size, dtype=bool)
        repeated[order[1:]] = pair[1:] == pair[:-1]
        return repeated

    def wrong_before(self, least_grade: int = 1) -> tuple[IntArray, IntArray]:
        """Number of wrong entries before each entry (n_entries,), and in each list (n_queries,).

        Entries of a grade below `least_grade` are wrong.
        """
        wrong = self.grade < least_grade
        n_wrong = np.bincount(self.query[wrong], minlength=self.n_queries)
        before = np.cumsum(wrong) - wrong
        before -= (np.cumsum(n_wrong) - n_wrong)[self.query]
        return before, n_wrong

    def places(self) -> IntArray:
        """Place of each entry in its list, from 0."""
        return np.arange(self.query.size) - self.query.searchsorted(self.query)

    def scores_are_places(self) -> bool:
        """Whether scores differ with the place in the list, and all lists have the same ones."""
        assert self.score is not None
        place = self.places()
        of_place = np.empty(place.max(initial=-1) + 1, dtype=self.score.dtype)
        of_place[place] = self.score
        return bool(np.ptp(of_place) > 0 and (of_place[place] == self.score).all())

    def sample(self, y: IntArray) -> Sample:
        """First lists, of queries whose relevant items are y (n_queries,)."""
        rows = first_rows(self.n_queries, int(self.lengths.max()))
        lists = self.at(self.query < rows.size)
        place = lists.places()
        shape = rows.size, int(lists.lengths.max())
        ids, scores = np.full(shape, -1), np.full(shape, -np.inf)
        ids[lists.query, place] = lists.item
        if lists.score is None:
            return Sample.of_lists(ids, None, y[rows])
        scores[lists.query, place] = lists.score
        return Sample.of_lists(ids, scores, y[rows])


class ListedRanks(NamedTuple):
    """Rank of the best relevant item of each query, among the wrong items of its list."""

    min_better: IntArray  # (n_queries,): fewest wrong items that are better
    max_better: IntArray  # (n_queries,)
    n_wrong: IntArray  # (n_queries,): wrong items in the list
    best: IntArray  # (n_queries,): the best relevant item; -1 if none is listed
    counts: RankCounts | None  # with the best and worst order of ties; None without scores
    nearest: NearestClasses | None  # None without scores, or if most lists have no wrong item

    @classmethod
    def of(
        cls,
        lists: Lists,
        n_items: int,
        least_grade: int = 1,
        depth: int | None = None,
        negated: bool = False,
    ) -> Self:
        """Ranks among `n_items` items, from lists in the order of ranks.

        Items of `least_grade` or more are relevant. The best of a query counts, and the others are
        neither right nor wrong. If a list has none, all of its wrong items are better; if `depth`
        items were searched for, as many are better, and an empty list is a miss: all are better.
        `negated` says that scores are distances with the opposite sign.
        """
        before, n_wrong = lists.wrong_before(least_grade)
        relevant = np.flatnonzero(lists.grade >= least_grade)
        answered, first = np.unique(lists.query[relevant], return_index=True)
        place = relevant[first]
        min_better, max_better = n_wrong.copy(), np.full(lists.n_queries, n_items - 1)
        if depth is not None:
            min_better = np.where(lists.lengths > 0, min(depth, n_items - 1), n_items - 1)
        min_better[answered] = max_better[answered] = before[place]
        best = np.full(lists.n_queries, -1)
        best[answered] = lists.item[place]
        if lists.score is None:
            return cls(min_better, max_better, n_wrong, best, None, None)
        true = np.full(lists.n_queries, -np.inf)
        true[answered] = lists.score[place]
        starts = np.append(np.flatnonzero(lists.begins_tie()), lists.query.size)
        tie = starts.searchsorted(place, side="right") - 1
        first_tied, last_tied = starts[tie], starts[tie + 1] - 1
        del starts  # which takes as much memory as a column of the lists
        counts = RankCounts(
            min_better, min_better.copy(), min_better.copy(), np.zeros_like(min_better)
        )
        counts.min_better[answered] = before[first_tied]
        counts.max_better[answered] = before[last_tied] + (lists.grade[last_tied] < least_grade)
        nearest = _nearest(lists, before, n_wrong, true, least_grade, negated)
        return cls(min_better, max_better, n_wrong, best, counts, nearest)


def _nearest(
    lists: Lists,
    before: IntArray,
    n_wrong: IntArray,
    true: FloatArray,
    least_grade: int,
    negated: bool,
) -> NearestClasses | None:
    """The best wrong items of each list, as many as nearly all lists have.

    A few lists that end early, and empty ones, are padded; all others would be cut to their length.
    So are those without the length that tails need, if nine in ten have it. Scores that depend on
    the place alone, such as 1 / rank or those of lists of names, are ranks and no scores.
    """
    assert lists.score is not None
    lengths = n_wrong[lists.lengths > 0]
    reached, usual = np.quantile(lengths, [_SHORT, _TOO_SHORT], method="lower").astype(int).tolist()
    length = min(LENGTH, max(reached, SHORTEST_LIST if usual >= SHORTEST_LIST else 0))
    if length == 0 or lists.scores_are_places():
        return None
    rows = np.flatnonzero((lists.grade < least_grade) & (before < LENGTH))
    place, shape = (lists.query[rows], before[rows]), (lists.n_queries, LENGTH)
    classes, scores = np.full(shape, -1), np.full(shape, -np.inf)
    classes[place], scores[place] = lists.item[rows], lists.score[rows]
    # Negative distances, as of 1 - inner product, have no origin, unless they are rounding errors.
    rounding = ROUNDING * float(np.abs(lists.score[rows]).max(initial=0.0))
    has_origin = negated and lists.score.max() <= rounding
    unknown = np.full((lists.n_queries, 2), np.nan)  # a list has only the best scores of its row
    return NearestClasses(
        classes[:, :length],
        scores[:, :length],
        true,
        unknown,
        unknown,
        0.0 if has_origin else None,
        negated,
    )
