"""Ranked lists of a vector index, read once into ranks and nearest classes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from classex_bayes.arguments import LARGEST_K, truth_value
from classex_bayes.array_access import as_array, as_numeric, contents, is_frame, with_labels
from classex_bayes.core.rank_pass import tie_noise
from classex_bayes.core.ranks.nearest import LENGTH, SHORTEST_LIST, NearestClasses
from classex_bayes.core.ranks.sample import Sample
from classex_bayes.core.ranks.threads import ranges
from classex_bayes.exceptions import DataError
from classex_bayes.task.class_labels import ClassLabels, Untested, class_labels, class_names
from classex_bayes.task.own_negatives import catalogue_size, own_table
from classex_bayes.task.provenance import (
    CANDIDATES,
    CLASSES,
    CUT_RANKS,
    DOCUMENTS,
    ITEMS,
    Nouns,
    Provenance,
)
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.score_reading import refuse_disorder, table_of_ranks, tie_seed
from classex_bayes.typing import BoolArray, FloatArray, IntArray, NumberArray

_BLOCK = 2**20  # entries at a time
_ROUNDING = 1e-5  # of the largest number of a row: distances may have been computed again
# Shares of the lists that may end before the others, and before the length that tails need.
_SHORT, _TOO_SHORT = 0.01, 0.1
_FEWEST_REMOVED = 0.5  # share of the lists that contain the test instance itself
_NO_CHANCE = 1e-3


class SearchResults(NamedTuple):
    """Bounds (n,) of the number of better classes, nearest classes if known, and facts."""

    lowest: IntArray
    highest: IntArray
    n_wrong: IntArray  # (n,): number of wrong classes that are listed
    nearest: NearestClasses | None
    facts: tuple[str, ...] = ()
    nouns: Nouns = CLASSES
    sample: Sample | None = None

    def table(self, labels: ClassLabels, **columns: Any) -> RankTable:
        """Table of the instances, with further columns."""
        facts = ". ".join(self.facts)
        provenance = Provenance(unknown=CUT_RANKS, assumption=facts, nouns=self.nouns)
        columns |= {"nearest": self.nearest, "provenance": provenance, "sample": self.sample}
        return table_of_ranks(labels, self.lowest, self.highest, **columns)

    def own_table(self, unit: Any, unanswered: Any) -> tuple[RankTable, list[Any]]:
        """Table of instances whose lists contain all candidates, and the names of the units."""
        lost = self.lowest < self.highest
        if lost.any():
            name = unit[lost].tolist()[0]
            raise DataError(
                f"own_candidates: the list of row {int(np.argmax(lost))}, of {name!r}, lacks "
                "its true class, expected all candidates; add it, or leave the row out"
            )
        table, names = own_table(self.lowest + 1, unit, self.n_wrong, unanswered)
        nouns = CANDIDATES if self.nouns is DOCUMENTS else ITEMS
        facts = ". ".join((table.provenance.assumption, *self.facts))
        provenance = replace(table.provenance, assumption=facts, nouns=nouns)
        return replace(table, provenance=provenance, sample=self.sample), names


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
    k1 = catalogue_size(n_classes, own_candidates)
    names = class_names(classes, k1)
    _refuse_filler(names)
    ids, distances, y = map(with_labels, (ids, distances, y))
    refuse_disorder(ids, y, ("ids", "y"))
    size = k1 if k1 is not None else LARGEST_K if names is None else len(names)
    lists = read_ids(ids, size, names)
    size = int(lists.max()) + 1 if k1 is None and names is None else size
    if distances is not None:
        refuse_disorder(distances, y, ("distances", "y"))
        distances = read_distances(distances, lists)
    if k1 is None:
        if class_weight is not None:
            raise DataError(
                "class_weight: found it together with own_candidates=True, expected one of them; "
                "leave class_weight out, because the units weigh the same"
            )
        untested = "competitors"
    labels = class_labels(y, len(lists), size, names, class_weight, untested, unanswered)
    facts: tuple[str, ...] = ()
    if truth_value(ignore_identical, "ignore_identical"):
        values = _lists_of_scores(lists, distances, higher)
        lists, removed = _without_identical(lists, labels.y, values, distances is not None, higher)
        facts = (_removed(removed),)
    results = search_results(
        lists, labels.y, size, distances, higher, tie_seed(0), are_whole=k1 is None
    )
    scored = None if distances is None else _lists_of_scores(lists, distances, higher)
    results = results._replace(sample=Sample.of_lists(lists, scored, labels.y))
    facts += (_lone_classes(lists, labels.y),)
    results = results._replace(facts=tuple(filter(None, (*results.facts, *facts))))
    if k1 is None:
        table, units = results.own_table(labels.y, labels.unanswered)
        return table, units if names is None else [names[place] for place in units]
    return results.table(labels), names


def _refuse_filler(names: Sequence[Any] | None) -> None:
    """Raise if a class is named -1, which fills lists."""
    if names is not None and -1 in names:
        raise DataError(
            "classes: found -1, which fills lists that have ended, expected another name; if it "
            "marks junk, which is neither right nor wrong, leave it out of classes and n_classes"
        )


def read_ids(ids: Any, n_classes: int, names: Sequence[Any] | None) -> IntArray:
    """Positions (n, M) of the classes in the lists, -1 after the end of a list.

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
    codes, distinct = pd.factorize(ids.ravel())
    position = {-1: -1, "-1": -1} | {  # NumPy makes text of numbers beside it
        name: place for place, name in enumerate(names)
    }
    unknown = [label for label in distinct.tolist() if label not in position]
    if unknown:
        row, place = _first(ids == unknown[0])
        raise DataError(
            f"ids: found {unknown[0]!r} at row {row}, position {place}, which is not among the "
            f"{len(names)} classes; the first classes are {list(names[:3])!r}"
        )
    # The code of what is missing is -1, the last place.
    places = np.array([*map(position.__getitem__, distinct.tolist()), -1], dtype=np.int64)
    return places[codes].reshape(ids.shape)


def read_distances(distances: Any, ids: IntArray) -> NumberArray:
    """Distances or scores (n, M) of the entries of the lists."""
    array = as_numeric(distances, "distances")
    if array.shape != ids.shape:
        raise DataError(
            f"distances: found shape {array.shape}, expected {ids.shape} as ids has: one number "
            "for each entry of the lists"
        )
    return array


def _lists_of_scores(
    ids: IntArray, distances: NumberArray | None, higher_is_better: bool
) -> FloatArray:
    """Scores (n, M) of the entries, larger is better; minus their places without distances."""
    if distances is None:
        return np.broadcast_to(-np.arange(ids.shape[1], dtype=float), ids.shape)
    values = distances.astype(float) if higher_is_better else -distances.astype(float)
    return np.where(ids >= 0, values, -np.inf)


def _without_identical(
    ids: IntArray, y: IntArray, scores: FloatArray, scored: bool, higher_is_better: bool
) -> tuple[IntArray, BoolArray]:
    """Lists (n, M) without an entry each that can be the test instance itself, and which had one.

    It is of the true class and exceeds the limit of `Sample.self_match_limit`. Where there is none,
    it is at distance 0; similarities of instances to themselves differ, so there the first entry is
    taken.
    """
    own = ids == y[:, None]
    limit = Sample.of_lists(ids, scores, y).self_match_limit() if scored else np.inf
    if np.isfinite(limit):
        identical = own & (scores > limit)
    elif scored and not higher_is_better:
        scale = float(np.median(np.abs(scores[ids >= 0])))  # the largest distance may be a mask
        identical = own & (np.abs(scores) <= _ROUNDING * scale)
    else:
        identical = own & (np.arange(ids.shape[1]) == (ids >= 0).argmax(axis=1)[:, None])
    rows = np.flatnonzero(identical.any(axis=1))
    ids = ids.copy()
    ids[rows, identical[rows].argmax(axis=1)] = -1
    if (ids < 0).all():
        raise DataError(
            "ignore_identical: found nothing but the test instances themselves in the lists, "
            "expected other entries, too"
        )
    return ids, identical.any(axis=1)


def _removed(removed: BoolArray) -> str:
    """Whether most lists had an entry of the test instance itself, which was left out."""
    share = float(removed.mean())
    passed = share >= _FEWEST_REMOVED
    sentence = f"ignore_identical left out an entry of {share:.0%} of the lists"
    if not passed:
        sentence += (
            "; the others have no entry of the true class at distance 0 or so near to it that it "
            "must be the instance itself: leave ignore_identical out if the index lacks them, or "
            "remove each instance from its list by its own number"
        )
    return sentence


def _lone_classes(ids: IntArray, y: IntArray) -> str:
    """Whether classes of one instance have entries in lists (n, M), as often as those of several.

    The instance itself may be the only entry of its class in the index, and be left out.
    """
    missed, alone = (ids != y[:, None]).all(axis=1), np.bincount(y)[y] == 1
    usual = float((missed[~alone].sum() + 1) / (np.count_nonzero(~alone) + 2))
    all_miss = missed[alone].all() and not alone.all()
    chance = usual ** int(alone.sum()) if all_miss else 1.0  # that all miss by chance
    if chance < _NO_CHANCE:
        return (
            f"{alone.sum()} instances are the only ones of their classes, and their lists have no "
            "entry of these. If the index has none, every answer to them is wrong: leave them "
            "out, and pass untested='competitors'"
        )
    return ""


def search_results(
    ids: IntArray,
    y: IntArray,
    n_classes: int,
    distances: NumberArray | None,
    higher_is_better: bool,
    tie_seed: int | None = None,
    nouns: Nouns = CLASSES,
    are_whole: bool = False,
) -> SearchResults:
    """Ranks that follow from lists (n, M) of classes, best first, and their scores.

    Of several entries of one class in a row, the first counts. With a `tie_seed` equal distances
    are in random order, as scores are; otherwise in that of the lists. Lists that `are_whole` lack
    no class.
    """
    n, length = ids.shape[0], min(LENGTH, ids.shape[1])
    left_out = np.zeros(n, dtype=np.int64)
    lowest, highest, n_wrong = np.empty((3, n), dtype=np.int64)
    shape = (0, 0) if distances is None else (n, length)
    classes, scores, true = np.empty(shape, dtype=np.int64), np.empty(shape), np.empty(n)
    largest = -np.inf
    for part in ranges(n, max(1, _BLOCK // ids.shape[1])):
        listed, given = ids[part], None if distances is None else distances[part]
        if given is not None and tie_seed is not None:
            longest = 0 if are_whole else n_classes
            listed, given, left_out[part] = _settled(
                listed, given, longest, np.arange(part.start, part.stop), tie_seed
            )
        first = _first_of_class(listed)
        is_true = first & (listed == y[part, None])
        wrong = first & ~is_true
        place, found = is_true.argmax(axis=1)[:, None], is_true.any(axis=1)
        before = np.take_along_axis(wrong.cumsum(axis=1), place, axis=1)[:, 0]
        n_wrong[part] = wrong.sum(axis=1)
        lowest[part] = np.where(found, before, n_wrong[part])
        highest[part] = np.where(found, before, n_classes - 1)
        if given is None:
            continue
        values = _scores(given, listed >= 0, part.start, higher_is_better)
        largest = max(largest, float(values.max()))
        true[part] = np.where(found, np.take_along_axis(values, place, axis=1)[:, 0], -np.inf)
        order = np.argsort(~wrong, axis=1, kind="stable")[:, :length]
        ended = np.arange(length) >= n_wrong[part, None]
        classes[part] = np.where(ended, -1, np.take_along_axis(listed, order, axis=1))
        scores[part] = np.where(ended, -np.inf, np.take_along_axis(values, order, axis=1))
    # A few lists that end early, and empty ones, are padded; all others would be cut to their
    # length. So are those without the length that tails need, if nine in ten have it.
    lengths = n_wrong[(ids >= 0).any(axis=1)]
    reached, usual = np.quantile(lengths, [_SHORT, _TOO_SHORT], method="lower").astype(int).tolist()
    least = SHORTEST_LIST if usual >= SHORTEST_LIST else 0
    length = min(length, max(reached, least))
    facts: tuple[str, ...] = ()
    if tie_seed is not None and left_out.any():
        facts = (_tied_ends(left_out),)
    if distances is None or length == 0:
        return SearchResults(lowest, highest, n_wrong, None, facts, nouns)
    # Negative distances, as of 1 - inner product, have no origin, unless they are rounding errors.
    rounding = _ROUNDING * float(np.abs(scores[np.isfinite(scores)]).max(initial=0.0))
    perfect = None if higher_is_better or largest > rounding else 0.0
    unknown = np.full(n, np.nan)  # a list has only the best scores of its row
    nearest = NearestClasses(
        classes[:, :length],
        scores[:, :length],
        true,
        unknown,
        unknown,
        perfect,
        not higher_is_better,
    )
    return SearchResults(lowest, highest, n_wrong, nearest, facts, nouns)


def _settled(
    ids: IntArray, distances: NumberArray, n_classes: int, instance: IntArray, seed: int
) -> tuple[IntArray, NumberArray, IntArray]:
    """Lists whose tied entries are in random order, without those that are tied with the last one.

    An index keeps tied entries in an order of its own, such as that of their numbers. The random
    order is that of equal scores, so lists of all classes have the ranks of the scores. If the last
    entry is tied, the index may have left out more classes with the same distance. The list
    therefore ends before them, but keeps one entry. Also returns how many entries are left out.
    """
    # Without the gaps between entries.
    packed = np.argsort(ids < 0, axis=1, kind="stable")
    ids, distances = (np.take_along_axis(array, packed, axis=1) for array in (ids, distances))
    equal = (distances[:, 1:] == distances[:, :-1]) & (ids[:, 1:] >= 0)
    left_out = np.zeros(len(ids), dtype=np.int64)
    tied = np.flatnonzero(equal.any(axis=1))
    if not tied.size:
        return ids, distances, left_out
    of_run = np.insert((~equal[tied]).cumsum(axis=1), 0, 0, axis=1)
    noise = tie_noise(seed, np.repeat(instance[tied], ids.shape[1]), ids[tied].ravel())
    order = np.lexsort((-noise.reshape(of_run.shape), of_run), axis=1)
    classes = np.take_along_axis(ids[tied], order, axis=1)
    is_first = _first_of_class(classes)
    last = (classes >= 0).sum(axis=1, keepdims=True) - 1
    at_end = (of_run == np.take_along_axis(of_run, last, axis=1)) & (classes >= 0)
    is_open = ((at_end & is_first).sum(axis=1) > 1) & (is_first.sum(axis=1) < n_classes)
    at_end &= is_open[:, None]
    at_end[:, 0] = False
    left_out[tied] = at_end.sum(axis=1)
    ids[tied] = np.where(at_end, -1, classes)
    return ids, distances, left_out


def _tied_ends(left_out: IntArray) -> str:
    """Fact about entries that are left out, because they are tied with the last ones."""
    return (
        f"{np.count_nonzero(left_out)} of {left_out.size} lists end in equal distances. An index "
        f"lists some of the tied classes by its own order, so {left_out.sum()} entries "
        "are left out, and the ranks of their classes are unknown. Pass longer lists, "
        "or distances with more digits"
    )


def _first_of_class(ids: IntArray) -> BoolArray:
    """Whether an entry is the first of its class in its row."""
    order = np.argsort(ids, axis=1, kind="stable")
    by_class = np.take_along_axis(ids, order, axis=1)
    is_first = by_class >= 0
    is_first[:, 1:] &= by_class[:, 1:] != by_class[:, :-1]
    result = np.empty_like(is_first)
    np.put_along_axis(result, order, is_first, axis=1)
    return result


def _scores(
    distances: NumberArray, listed: BoolArray, first_row: int, higher_is_better: bool
) -> FloatArray:
    """Scores of some rows of the lists, larger is better; -inf where there is no class."""
    scores = distances.astype(float) if higher_is_better else -distances.astype(float)
    bad = listed & ~np.isfinite(scores)
    if bad.any():
        row, place = _first(bad)
        raise DataError(
            f"distances: found {distances[row, place]} at row {first_row + row}, position {place}; "
            "expected numbers; pass -1 in ids where a list has ended"
        )
    scores[~listed] = np.inf  # so that any value is allowed there
    falling = np.minimum.accumulate(scores, axis=1)
    size = np.where(listed, np.abs(scores), 0).max(axis=1, keepdims=True)
    bad = listed & (scores > falling + _ROUNDING * size)
    if bad.any():
        row, place = _first(bad)
        best = "largest" if higher_is_better else "smallest"
        raise DataError(
            f"distances: found {distances[row, place]} at row {first_row + row}, position "
            f"{place}, after a worse one; expected the best, which is the {best}, first; sort ids "
            f"and distances, or pass higher_is_better={not higher_is_better}"
        )
    falling[~listed] = -np.inf
    return falling


def _first(bad: BoolArray) -> tuple[int, int]:
    """Row and column of the first True."""
    row, column = np.unravel_index(int(np.argmax(bad)), bad.shape)
    return int(row), int(column)
