"""Whether tails can be fitted to the scores of a task, and on which scale they are distances."""

import numpy as np

from classex_bayes.bayes.tails.distance_scale import DistanceScale, candidate_scales
from classex_bayes.bayes.tails.local_tails import N_NEAREST, SHORTEST_LIST, share_tied
from classex_bayes.bayes.tails.tail_calibration import HeldOutTable, random_halves, tail_mode
from classex_bayes.core.influence import UNSEEN_COMPETITORS
from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

# With fewer classes the halves are too small for tails. With fewer effective classes (their weights
# are too unequal) the variance between classes is unknown.
_FEWEST_CLASSES, _FEWEST_EFFECTIVE = 20, 10
LARGEST_TIED_SHARE = 0.05
# All but one of the populations of docs/corpus.md have a smaller slope. For that
# one tails predict worse than ranks.
LARGEST_SLOPE = 1.25


def why_no_tails(task: SourceTask, nearest: NearestClasses) -> str:
    """Reason why no tails can be fitted to the scores of a task, or an empty text."""
    if task.n_classes < _FEWEST_CLASSES:
        return f"{task.n_classes} classes are fewer than the {_FEWEST_CLASSES} that tails need"
    effective = 1 / float((task.evidence.instances("tails").class_weight ** 2).sum())
    if effective < _FEWEST_EFFECTIVE:
        return (
            f"the weights of the {task.n_classes} classes are so unequal that they count as "
            f"{effective:.1f} classes, fewer than {_FEWEST_EFFECTIVE}"
        )
    if (length := nearest.scores.shape[1]) < SHORTEST_LIST:
        return (
            f"lists of {length} wrong classes are shorter than the {SHORTEST_LIST} that tails need "
            f"(ask the index for {SHORTEST_LIST + 1} classes or more)"
        )
    if not np.isfinite(nearest.true).any():
        return "no true class is in its list, so none has a score"
    tied = share_tied(nearest)
    if task.evidence.kind == "decisions" or tied > LARGEST_TIED_SHARE:
        return (
            f"scores are tied (in {tied:.0%} of the instances the {N_NEAREST} best wrong classes, "
            "or all but the best few, have the same score), so they are not distances"
        )
    return ""


def best_scale(
    nearest: NearestClasses, weight: FloatArray, n_classes: int, rng: np.random.Generator
) -> tuple[DistanceScale, HeldOutTable, FloatArray]:
    """The scale with the highest posterior mode, the table of held-out losses, and the mode."""
    halves = random_halves(n_classes, rng)
    best: tuple[DistanceScale, HeldOutTable, FloatArray] | None = None
    highest = -np.inf
    for scale in candidate_scales(nearest):
        table = HeldOutTable.of(nearest, scale, weight, halves)
        mode, height = tail_mode(table)
        if best is None or height > highest:
            best, highest = (scale, table, mode), height
    assert best is not None
    return best


def n_better_bounds(task: SourceTask) -> tuple[IntArray, IntArray]:
    """Smallest and largest losses (n,) that the ranks allow."""
    evidence = task.evidence.undesigned("a tail of scores")
    return evidence.lowest, evidence.highest


def competitor_effect(task: SourceTask) -> float:
    """Inflation of the variance between classes by the competitors that they share."""
    if not task.evidence.is_exact:
        return UNSEEN_COMPETITORS
    return task.evidence.exact("the effect of competitors").competitor_effect
