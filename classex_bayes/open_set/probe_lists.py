"""Lists of the nearest wrong classes of probes, and the reading of those of non-mated probes."""

from typing import Any, NamedTuple, Self

import numpy as np

from classex_bayes.array_access import as_matrix, finite_rows, is_frame, with_labels
from classex_bayes.bayes.tails.depths import (
    LARGEST_TIED_SHARE,
    N_NEAREST,
    DistanceScale,
    is_tied,
)
from classex_bayes.core.ranks.embeddings import EmbeddingScores, finite_embeddings
from classex_bayes.core.ranks.nearest import ROUNDING, SHORTEST_LIST, NearestClasses
from classex_bayes.core.ranks.sources import ScoreMatrix
from classex_bayes.exceptions import DataError
from classex_bayes.task.class_labels import first_moved, refuse_disorder
from classex_bayes.task.lists import ListedRanks
from classex_bayes.task.search_results import random_order, read_lists
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import BoolArray, FloatArray, IntArray, NumberArray

_FEWEST_PROBES = 20
_LARGEST_BEYOND = 0.05  # share of probes with scores that the task does not allow
_MOST_UNKNOWN = 0.01  # share of the probes whose scores may be unknown at the loosest threshold


class ProbeLists(NamedTuple):
    """The nearest wrong classes of n probes."""

    log_distance: FloatArray  # (n, M), ascending; infinite where there is no class
    classes: IntArray  # (n, M): positions of the classes among those enrolled
    weight: FloatArray  # (n,): of the probes, summing to 1
    owner: IntArray  # (n,): number of the class, such as a person, that a probe belongs to
    n_wrong: int  # wrong classes of a probe: k1 - 1 if it is mated, else k1

    @classmethod
    def of_task(cls, task: SourceTask, nearest: NearestClasses, scale: DistanceScale) -> Self:
        """Lists of the wrong classes of the test instances."""
        weight, n_wrong = task.require("ranks").weight, task.n_classes - 1
        return cls(scale.log_distance(nearest.scores), nearest.classes, weight, task.y, n_wrong)

    @classmethod
    def of_nonmated(cls, lists: NearestClasses, n_classes: int, scale: DistanceScale) -> Self:
        """Lists of non-mated probes, each of another class, from `nonmated_lists`."""
        n, log_distance = len(lists.scores), scale.log_distance(lists.scores)
        # Scores beyond the origin of the scale have the same distance, so they are tied, too.
        near = log_distance[:, :N_NEAREST]
        tied = is_tied(near, np.full(n, np.inf), log_distance[:, -1]).mean()
        if tied > LARGEST_TIED_SHARE:
            raise DataError(
                f"nonmated: the {N_NEAREST} best classes of {tied:.0%} of the probes have the "
                "same score, or a score better than the task allows; expected scores of the same "
                "kind as those of the task, with all their digits"
            )
        return cls(log_distance, lists.classes, np.full(n, 1 / n), np.arange(n), n_classes)

    def independent(self, design_effect: float) -> FloatArray:
        """Weights (n,) that sum to the number of independent probes.

        The design effect includes both dependence and unequal weights.
        """
        return self.weight * (len(self.weight) / design_effect)

    def nearest_in(self, half: BoolArray) -> FloatArray:
        """Log distances (n, j) of the nearest classes of a half (k1,), then infinite ones."""
        here = (self.classes >= 0) & half[self.classes]
        return np.sort(np.where(here, self.log_distance, np.inf), axis=1)[:, :N_NEAREST]


def nonmated_lists(nonmated: Any, task: SourceTask) -> NearestClasses:
    """The classes that score best for each non-mated probe, from all scores or from lists.

    They are scores (n, k1) or a pair of classes and scores (n, M), in the direction of the task, or
    embeddings (n, d).
    """
    n_classes, negated = task.n_classes, task.nearest_classes.negated
    matrices = isinstance(nonmated, list) and all(getattr(x, "ndim", 0) == 2 for x in nonmated)
    if (isinstance(nonmated, tuple) or matrices) and len(nonmated) == 2:
        ids, distances = map(with_labels, nonmated)
        refuse_disorder(ids, distances, ("ids", "distances"))
        found = read_lists(ids, distances, n_classes, task.classes, not negated)
        found = found.with_ties_broken(random_order).without_cut_ties(n_classes)
        lists = ListedRanks.of(found.without_repeated(), n_classes, negated=negated).nearest
        if lists is None or lists.scores.shape[1] < SHORTEST_LIST:
            length = 0 if lists is None else lists.scores.shape[1]
            raise DataError(
                f"nonmated: found lists of {length} classes, expected {SHORTEST_LIST} or more"
            )
    else:
        nonmated = with_labels(nonmated)
        columns = list(nonmated.columns) if is_frame(nonmated) else []
        if (place := first_moved(task.classes or (), columns)) is not None:
            raise DataError(
                f"nonmated: the columns are the classes of the task in another order; column "
                f"{place} is {columns[place]!r}; pass nonmated[task.classes]"
            )
        source = _nonmated_source(as_matrix(nonmated, "nonmated"), task)
        lists = NearestClasses.of(source, np.full(source.shape[0], -1))
    if len(lists.scores) < _FEWEST_PROBES:
        raise DataError(
            f"nonmated: found {len(lists.scores)} probes, expected at least {_FEWEST_PROBES}"
        )
    return lists


def _nonmated_source(matrix: NumberArray, task: SourceTask) -> ScoreMatrix:
    """Scores of non-mated probes, from their scores (n, k1) or embeddings (n, d)."""
    width, n_classes = matrix.shape[1], task.n_classes
    source, of_embeddings = task.require("ranks").source, ""
    if isinstance(source, EmbeddingScores):
        dim = source.gallery.shape[1]
        if width == dim == n_classes:
            raise DataError(
                f"nonmated: found {width} columns, expected scores of the {width} classes or "
                f"embeddings of {width} coordinates, which cannot be distinguished here; pass "
                "candidate lists (ids, distances) as in SourceTask.from_search"
            )
        if width == dim:
            finite_embeddings(matrix, "nonmated", source.distance)
            return ScoreMatrix(source.scores_of(matrix), True)
        of_embeddings = f", embeddings of {dim} coordinates"
    if width != n_classes:
        raise DataError(
            f"nonmated: found {width} columns, expected scores of the {n_classes} classes of the "
            f"task{of_embeddings}, or a pair (ids, distances) of lists as in SourceTask.from_search"
        )
    scores = matrix.astype(float)
    finite_rows(scores, "nonmated")
    return ScoreMatrix(scores, not task.nearest_classes.negated)


def refuse_other_scores(lists: NearestClasses, task: SourceTask) -> None:
    """Raise DataError if scores of non-mated probes are not of the kind of the task's.

    None is better than a perfect score, but for rounding. If there is no such score, the nearest
    classes of nearly all probes score no better than the best class of the task.
    """
    of_task = task.nearest_classes
    best, near = float(lists.scores.max()), lists.scores[:, N_NEAREST - 1]
    limit = max(float(of_task.scores.max()), float(of_task.true.max()))
    if of_task.has_origin:
        assert of_task.perfect is not None
        limit = of_task.perfect
    limit += ROUNDING * float(np.abs(lists.scores[np.isfinite(lists.scores)]).max())
    too_good = best > limit if of_task.has_origin else (near > limit).mean() > _LARGEST_BEYOND
    if too_good:
        found = -best if of_task.negated else best
        raise DataError(
            f"nonmated: found {found:g}, better than a perfect score or than the task allows; "
            "expected scores of the same kind and direction as those of the task"
        )


def reached_by_99_percent(ends: FloatArray, weight: FloatArray) -> float:
    """Largest log distance that at most 1% of the probes, by weight, have their end before."""
    order = np.argsort(ends)
    place = int(np.searchsorted(weight[order].cumsum(), _MOST_UNKNOWN, side="right"))
    return float(np.nextafter(np.append(ends[order], np.inf)[place], -np.inf))
