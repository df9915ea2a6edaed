"""Instances that were ranked among negatives of their own, as recommenders are tested."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from classex_bayes.arguments import (
    MOST_CLASSES,
    class_total,
    one_of,
    seed_sequence,
    truth_value,
    whole_number,
    whole_numbers,
)
from classex_bayes.array_access import as_matrix, as_vector, contents, with_labels
from classex_bayes.core.rank_pass import RankCounts, TieHandling
from classex_bayes.core.ranks.sample import Sample, first_rows
from classex_bayes.exceptions import DataError
from classex_bayes.task.class_labels import ClassLabels, label_vector, refuse_disorder
from classex_bayes.task.lists import ListedRanks
from classex_bayes.task.provenance import CLASSES, ITEMS, Provenance
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.score_reading import read_ranks, table_of_ranks
from classex_bayes.typing import BoolArray, IntArray, NumberArray, RandomSeed

_REAL = {"i", "u", "f"}  # kinds of numbers, which are equal across types
RANDOM_NEGATIVES = (
    "the negatives of each instance count as uniform draws from all items; if they were drawn by "
    "popularity, the prediction is about k items drawn in the same way, and not about a catalogue "
    "of k items"
)
_OF_A_POOL = (
    "all candidates were drawn from the same {} classes, so the intervals are those of a test of "
    "so many classes"
)
# One alone does not show how accuracy falls with more.
_FEWEST = 2
_ONE = (
    "because one alone does not show how accuracy falls with more; a share of pairs in which the "
    "true class wins is data of SourceTask.from_accuracies([2], [share], n_test=, n_classes=)"
)


def catalogue_size(n_classes: Any, own_candidates: Any) -> int | None:
    """Number of classes that all lists are made of; None if they are each instance's own."""
    own = truth_value(own_candidates, "own_candidates")
    if own == (n_classes is not None):
        found = "it together with own_candidates=True" if own else "none"
        raise DataError(
            f"n_classes: found {found}, expected the number of classes (documents) that are "
            "searched; or pass own_candidates=True in its place if each list has candidates of its "
            "own"
        )
    return None if own else class_total(n_classes)


def own_table(
    ranks: Any, y: Any, n_negatives: Any, unanswered: Any = None, pool: Any = None, **others: Any
) -> tuple[RankTable, list[Any]]:
    """Table of instances that met `n_negatives` competitors, a number or (n,), of their own.

    The labels `y` (n,) are the units, whose names are returned. They weigh the same, and so do the
    instances of each. Those of `unanswered` come last. `others` are further values of the table.
    """
    labels, names = _units(y, unanswered)
    n, given = labels.y.size, as_vector(n_negatives, "n_negatives")
    refuse_disorder(with_labels(n_negatives), with_labels(y), ("n_negatives", "y"))
    n_competitors = np.broadcast_to(checked_negatives(given, n if given.ndim else 1), n)
    min_better, max_better = read_ranks(ranks, y, int(n_competitors.max()) + 1)
    if min_better.size != n:
        raise DataError(f"y: found {n} labels for {min_better.size} rows, expected one for each")
    beyond = max_better > n_competitors
    if beyond.any():
        row = int(np.argmax(beyond))
        raise DataError(
            f"ranks: found {max_better[row] + 1} at row {row}, whose instance has "
            f"{n_competitors[row]} negatives; expected a rank in 1..{n_competitors[row] + 1}"
        )
    words = Provenance(
        "ranks among negatives of their own", nouns=ITEMS, assumption=RANDOM_NEGATIVES
    )
    if pool is not None:
        pool = whole_number(pool, "pool", int(n_competitors.max()) + 1)
        if len(names) > pool:
            raise DataError(
                f"y: found {len(names)} labels, and a pool of {pool} classes; expected the class "
                "of each row, not its episode"
            )
        words = replace(words, nouns=CLASSES, assumption=_OF_A_POOL.format(pool))
    table = table_of_ranks(
        labels,
        int(n_competitors.min()) + 1,
        min_better,
        max_better,
        n_competitors,
        competitors_shared=False,
        pool=pool,
        provenance=words,
        **others,
    )
    return table, names


def checked_negatives(n_negatives: Any, size: int = 1) -> IntArray:
    """Numbers (size,) of negatives of an instance."""
    numbers = whole_numbers(n_negatives, "n_negatives", 1, size)
    _refuse_few(numbers.astype(np.int64), "n_negatives")
    if (most := numbers.max()) > MOST_CLASSES:
        raise DataError(f"n_negatives: found {most:g}, expected at most {MOST_CLASSES:g}")
    return numbers.astype(np.int64)


def _units(y: Any, unanswered: Any) -> tuple[ClassLabels, list[Any]]:
    """Units of the instances as their classes, from labels of any kind, and their names."""
    labels, lost = (
        label_vector(y),
        label_vector(() if unanswered is None else unanswered, "unanswered"),
    )
    if not labels.size:
        raise DataError("y: expected the user or item of each row, found none")
    for name, values in (("y", labels), ("unanswered", lost)):
        missing = pd.isna(values)
        if missing.any():
            row = int(np.argmax(missing))
            raise DataError(f"{name}: found no label at row {row}, expected one")
    n = labels.size
    if lost.size:
        if contents(labels) != contents(lost) and not {labels.dtype.kind, lost.dtype.kind} <= _REAL:
            raise DataError(
                f"unanswered: found {contents(lost)}, expected labels like those of y, which are "
                f"{contents(labels)}"
            )
        labels = np.append(labels, lost)
    try:
        names, unit = np.unique(labels, return_inverse=True)
    except TypeError:
        raise DataError("y: found labels of different types, expected one type") from None
    if names.size < 2:
        raise DataError(
            f"y: found instances of {names.tolist()[0]!r} alone, expected at least 2 users"
        )
    unit = unit.astype(np.int64)
    weight = np.full(names.size, 1 / names.size)
    return ClassLabels(unit[:n], unit[n:], weight), names.tolist()


def own_table_of_lists(
    ranks: ListedRanks, unit: Any, unanswered: Any, names: Sequence[Any] | None = None
) -> tuple[RankTable, list[Any]]:
    """Table of instances whose lists have all of their candidates, and the names of the units.

    `names` are given if the units are positions in them.
    """
    lost = ranks.best < 0
    if lost.any():
        row = int(np.argmax(lost))
        name = unit.tolist()[row] if names is None else names[unit[row]]
        raise DataError(
            f"own_candidates: the list of row {row}, of {name!r}, lacks its true class, expected "
            "all candidates; add it, or leave the row out"
        )
    _refuse_few(ranks.n_wrong, "own_candidates")
    n_better = ranks.min_better
    table, units = own_table(n_better + 1, unit, ranks.n_wrong, unanswered, counts=ranks.counts)
    return table, units if names is None else [names[place] for place in units]


def _refuse_few(n_negatives: IntArray, argument: str) -> None:
    """Raise if a row has too few negatives; `argument` is that from which they are known."""
    row = int(np.argmin(n_negatives))
    where = f" in row {row}" * (n_negatives.size > 1)
    if n_negatives[row] < _FEWEST:
        raise DataError(
            f"{argument}: found {n_negatives[row]} negatives{where}, expected at least "
            f"{_FEWEST}, {_ONE}"
        )


def scored_table(
    scores: Any,
    y: Any,
    higher_is_better: Any,
    ties: TieHandling,
    unanswered: Any,
    pool: Any,
    random_seed: RandomSeed,
) -> tuple[RankTable, list[Any]]:
    """Table of the first score of each row among the others that are not NaN."""
    one_of(ties, ("auto", "random", "pessimistic", "optimistic"), "ties")
    matrix = as_matrix(scores, "scores")
    refuse_disorder(with_labels(scores), with_labels(y), ("scores", "y"))
    higher = truth_value(higher_is_better, "higher_is_better")
    positive, negatives = matrix[:, :1], matrix[:, 1:]
    if np.isnan(positive).any():
        row = int(np.argmax(np.isnan(positive)))
        raise DataError(f"scores: found NaN at row {row}, column 0, expected the true item's score")
    # The system does not offer the others.
    offered = ~np.isnan(negatives) & (negatives != (-np.inf if higher else np.inf))
    n_offered = offered.sum(axis=1)
    _refuse_few(n_offered, "scores")
    min_better = (negatives > positive if higher else negatives < positive).sum(axis=1)
    tied = (offered & (negatives == positive)).sum(axis=1)
    rule: Any = "random" if ties == "auto" else ties
    if rule == "random":
        rng = np.random.default_rng(seed_sequence(random_seed))
        n_better = min_better + rng.integers(0, tied, endpoint=True)
    else:
        n_better = min_better + tied * (rule == "pessimistic")
    counts = RankCounts(n_better, min_better, min_better + tied, np.zeros_like(min_better))
    others = {"counts": counts, "ties": rule, "sample": _sample(matrix, offered, higher)}
    return own_table(1 + n_better, y, n_offered, unanswered, pool, **others)


def _sample(matrix: NumberArray, offered: BoolArray, higher_is_better: bool) -> Sample:
    """First rows of the scores; items have no names."""
    first = first_rows(*matrix.shape)
    is_item = np.column_stack([np.ones(first.size, dtype=bool), offered[first]])
    ids = np.where(is_item, np.arange(matrix.shape[1]), -1)
    scores = matrix[first].astype(float) * (1 if higher_is_better else -1)
    return Sample.of_lists(ids, scores, np.zeros_like(first))
