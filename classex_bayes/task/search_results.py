"""Results of a vector index, read into lists and a table of ranks."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from classex_bayes.arguments import MOST_CLASSES, truth_value
from classex_bayes.array_access import as_array, as_numeric, contents, is_frame, with_labels
from classex_bayes.core.rank_pass import tie_noise
from classex_bayes.exceptions import DataError, DataWarning, warn
from classex_bayes.task.class_labels import (
    Untested,
    class_labels,
    class_names,
    encode_labels,
    places_of_names,
    refuse_disorder,
)
from classex_bayes.task.lists import ROUNDING, ListedRanks, Lists
from classex_bayes.task.own_negatives import catalogue_size, own_table_of_lists
from classex_bayes.task.provenance import CUT_RANKS, Provenance
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.score_reading import table_of_ranks, tie_seed
from classex_bayes.typing import BoolArray, FloatArray, IntArray, NumberArray

_FEWEST_REMOVED = 0.5  # share of the lists that contain the test instance itself
_MOST_CUT, _MOST_LEFT_OUT = 0.05, 0.5  # shares of the lists that end in ties, and of the entries


def search_table(
    ids: Any,
    y: Any,
    n_classes: Any,
    distances: Any,
    classes: Any,
    higher_is_better: Any,
    ignore_identical: Any,
    own_candidates: Any,
    class_weight: Any,
    untested: Untested,
    unanswered: Any,
) -> tuple[RankTable, list[Any] | None]:
    """Table of the arguments of `SourceTask.from_search`, and the names of the classes."""
    higher = truth_value(higher_is_better, "higher_is_better")
    ignored = truth_value(ignore_identical, "ignore_identical")
    k1 = catalogue_size(n_classes, own_candidates)
    names = class_names(classes, k1)
    _refuse_filler(names)
    ids, distances, y = map(with_labels, (ids, distances, y))
    refuse_disorder(ids, y, ("ids", "y"))
    refuse_disorder(distances, y, ("distances", "y"))
    size = k1 if k1 is not None else MOST_CLASSES if names is None else len(names)
    lists = read_lists(ids, distances, size, names, higher)
    if k1 is None:
        if class_weight is not None:
            raise DataError(
                "class_weight: found it together with own_candidates=True, expected one of them; "
                "leave class_weight out, because the units weigh the same"
            )
        untested = "competitors"
        size = int(lists.item.max()) + 1 if names is None else size
    positions = encode_labels(y, lists.n_queries, size, names)
    labels = class_labels(positions, size, names, class_weight, untested, unanswered)
    lists = lists._replace(grade=(lists.item == labels.y[lists.query]).astype(np.int8))
    facts = []
    if ignored:
        lists, fact = _without_identical(lists, labels.y, higher)
        facts.append(fact)
    sample = lists.sample(labels.y)
    lists = lists.with_ties_broken(random_order)
    if k1 is not None:
        lists, fact = _without_cut_ties(lists, k1)
        facts.append(fact)
    n_entries, lists = lists.query.size, lists.without_repeated()
    several = lists.query.size < n_entries  # classes have several entries
    ranks = ListedRanks.of(lists, size, negated=not higher)
    if k1 is None:
        table, units = own_table_of_lists(ranks, labels.y, labels.unanswered, names)
        words = table.provenance.with_facts(*facts)
        return replace(table, sample=sample, several_relevant=several, provenance=words), units
    table = table_of_ranks(
        labels,
        size,
        ranks.min_better,
        ranks.max_better,
        counts=ranks.counts,
        nearest=ranks.nearest,
        sample=sample,
        several_relevant=several,
        provenance=Provenance(unknown=CUT_RANKS).with_facts(*facts),
    )
    return table, names


def random_order(query: IntArray, item: IntArray) -> FloatArray:
    """Noise (n_entries,) that orders entries with equal scores.

    An index keeps them in an order of its own, such as that of their numbers. The noise is that of
    equal scores in `SourceTask.from_scores`, so lists of all classes have the same ranks.
    """
    return tie_noise(tie_seed(0), query, item)


def read_lists(
    ids: Any, distances: Any, n_classes: int, names: Sequence[Any] | None, higher_is_better: bool
) -> Lists:
    """Lists of classes with their distances or scores, all of grade 0."""
    positions = _read_ids(ids, n_classes, names)
    listed = positions >= 0
    score = None
    if distances is not None:
        score = _read_distances(distances, listed, higher_is_better)[listed]
    query, item = np.repeat(np.arange(len(listed)), listed.sum(axis=1)), positions[listed]
    return Lists(len(positions), query, item, score, np.zeros(item.size, dtype=np.int8))


def _refuse_filler(names: Sequence[Any] | None) -> None:
    """Raise if a class is named -1, which fills lists."""
    if names is not None and -1 in names:
        raise DataError(
            "classes: found -1, which fills lists that have ended, expected another name; if it "
            "marks junk, which is neither right nor wrong, leave it out of classes and n_classes"
        )


def _read_ids(ids: Any, n_classes: int, names: Sequence[Any] | None) -> IntArray:
    """Positions (n, M) of the classes in the lists, -1 where there is none.

    If the names are text, numbers are positions.
    """
    of_names = is_frame(ids) and names is not None
    array = as_array(ids.to_numpy() if of_names else ids, "ids")
    if array.ndim != 2 or 0 in array.shape:
        raise DataError(
            f"ids: expected a row of classes for each test instance, found shape {array.shape}"
        )
    numbers = array.dtype.kind in "iuf"
    if names is not None and not (numbers and all(isinstance(name, str) for name in names)):
        array = _positions(array, names)
    elif not numbers:
        raise DataError(
            f"ids: expected positions 0..{n_classes - 1} of the classes, found "
            f"{contents(array)}; to use names, pass classes="
        )
    bad = ~((array >= -1) & (array < n_classes) & (array == np.floor(array)))
    if bad.any():
        row, place = _first(bad)
        raise DataError(
            f"ids: found {array[row, place]} at row {row}, position {place}; expected classes in "
            f"0..{n_classes - 1}, or -1 after the end of a list; if the index returns numbers of "
            "entries, pass the classes of these entries"
        )
    empty = (array == -1).all(axis=1)
    if empty.any():
        raise DataError(
            f"ids: found no class in row {int(np.argmax(empty))}, expected at least one; if its "
            "search failed, leave the row out and pass its class in unanswered=, as a miss"
        )
    return array.astype(np.int64, copy=False)


def _positions(ids: NumberArray, names: Sequence[Any]) -> IntArray:
    """Positions of names; -1 for -1 and for what is missing."""
    place = places_of_names(ids.ravel(), names, "ids").reshape(ids.shape)
    # NumPy makes text of numbers beside it.
    filler = pd.isna(ids) | (ids == -1) | (ids == "-1") | (ids == "")
    unknown = (place < 0) & ~filler
    if unknown.any():
        row, column = _first(unknown)
        raise DataError(
            f"ids: found {ids[row].tolist()[column]!r} at row {row}, position {column}, which is "
            f"not among the {len(names)} classes; the first classes are {list(names[:3])!r}"
        )
    return place


def _read_distances(distances: Any, listed: BoolArray, higher_is_better: bool) -> FloatArray:
    """Scores (n, M) of the entries, larger is better, of which those that are `listed` count.

    Entries that are out of order by rounding have equal scores.
    """
    array = as_numeric(distances, "distances")
    if array.shape != listed.shape:
        raise DataError(
            f"distances: found shape {array.shape}, expected {listed.shape} as ids has: one number "
            "for each entry of the lists"
        )
    scores = array.astype(float)
    if not higher_is_better:
        np.negative(scores, out=scores)
    bad = listed & ~np.isfinite(scores)
    if bad.any():
        row, place = _first(bad)
        raise DataError(
            f"distances: found {array[row, place]} at row {row}, position {place}; "
            "expected numbers; pass -1 in ids where a list has ended"
        )
    scores[~listed] = np.inf  # so that any value is allowed there
    falling = np.minimum.accumulate(scores, axis=1)
    size = np.abs(scores).max(axis=1, keepdims=True, where=listed, initial=0.0)
    bad = listed & (scores > falling + ROUNDING * size)
    if bad.any():
        row, place = _first(bad)
        best = "largest" if higher_is_better else "smallest"
        raise DataError(
            f"distances: found {array[row, place]} at row {row}, position "
            f"{place}, after a worse one; expected the best, which is the {best}, first; sort ids "
            f"and distances, or pass higher_is_better={not higher_is_better}"
        )
    return falling


def _without_identical(lists: Lists, y: IntArray, higher_is_better: bool) -> tuple[Lists, str]:
    """Lists without an entry each that can be the test instance itself, and how many had one.

    It is of the true class and exceeds the limit of `Sample.self_match_limit`. Where there is no
    limit, it is at distance 0; similarities of instances to themselves differ, so there the first
    entry is taken.
    """
    limit = np.inf if lists.score is None else lists.sample(y).self_match_limit()
    if lists.score is not None and np.isfinite(limit):
        identical = lists.score > limit
    elif lists.score is not None and not higher_is_better:
        # The largest distance may be a mask.
        identical = np.abs(lists.score) <= ROUNDING * float(np.median(np.abs(lists.score)))
    else:
        identical = np.insert(np.diff(lists.query) > 0, 0, True)
    rows = np.flatnonzero(identical & (lists.grade > 0))
    queries, first = np.unique(lists.query[rows], return_index=True)
    if queries.size == lists.query.size:
        raise DataError(
            "ignore_identical: found nothing but the test instances themselves in the lists, "
            "expected other entries, too"
        )
    kept = np.ones(lists.query.size, dtype=bool)
    kept[rows[first]] = False
    share = queries.size / lists.n_queries
    sentence = f"ignore_identical left out an entry of {share:.0%} of the lists"
    if share < _FEWEST_REMOVED:
        sentence += (
            "; the others have no entry of the true class at distance 0 or so near to it that it "
            "must be the instance itself: leave ignore_identical out if the index lacks them, or "
            "remove each instance from its list by its own number"
        )
    return lists.at(kept), sentence


def _without_cut_ties(lists: Lists, n_classes: int) -> tuple[Lists, str]:
    """Lists that end before ties that the index may have cut, and a fact if these are many.

    Warns if most entries are left out.
    """
    kept = lists.without_cut_ties(n_classes)
    n_cut = int(np.count_nonzero(kept.lengths < lists.lengths))
    if n_cut <= _MOST_CUT * lists.n_queries:
        return kept, ""
    n_left_out = lists.query.size - kept.query.size
    sentence = (
        f"{n_cut} of {lists.n_queries} lists end in equal distances. An index lists some of the "
        f"tied classes by its own order, so {n_left_out} entries are left out, and the ranks of "
        "their classes are unknown. Pass longer lists, or distances with more digits"
    )
    if n_left_out > _MOST_LEFT_OUT * lists.query.size:
        warn(sentence, DataWarning)
    return kept, sentence


def _first(bad: BoolArray) -> tuple[int, int]:
    """Row and column of the first True."""
    row, column = np.unravel_index(int(np.argmax(bad)), bad.shape)
    return int(row), int(column)
