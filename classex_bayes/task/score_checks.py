"""Scores that are not what they seem: ranks, cosines, negative distances, rounded probabilities.

The check inspects some rows of the scores.
"""

from collections.abc import Iterator

import numpy as np

from classex_bayes.core.ranks.nearest import ROUNDING
from classex_bayes.core.ranks.sources import ScoreSource, split_scores
from classex_bayes.task.check import Check
from classex_bayes.typing import FloatArray, IntArray

_MOST_ROWS, _MOST_ENTRIES = 1000, 2**21
_FEWEST_ROWS, _FEWEST_VALUES, _NEAREST = 3, 10, 4
_MOSTLY, _FEW, _MANY_TIES = 0.5, 0.1, 0.05
_STANDARD_ERRORS = 4  # by which the class before the true one is best more often
_TINY = 1e-6  # votes have no smaller probability, but a softmax that rounds to 0 has
_NEAR, _HALF_PRECISION = 0.5, 1e-3  # the largest cosine is above the first, at most 1 + the second


def scores_fit(source: ScoreSource, y: IntArray) -> Check:
    """Whether scores measure how near the classes `y` (n,) are, with all their digits.

    A fault is a warning. Scores that look like cosines are a note.
    """
    n, n_classes = source.shape
    rows = np.arange(min(n, _MOST_ROWS, max(_MOST_ENTRIES // n_classes, _FEWEST_ROWS)))
    scores = source.scores(rows)
    faults = [*_same_values(scores), *_rounded_probabilities(scores, y[rows])]
    faults += _shifted_labels(scores, y)
    faults += _negative_distances(-scores) if source.perfect == 0 else []
    notes = [] if source.perfect == 0 else [*_cosines(scores)]
    sentence = ". ".join(faults + notes) or "nothing unusual"
    return Check("scores", not faults, sentence, is_note=bool(notes and not faults))


def _same_values(scores: FloatArray) -> Iterator[str]:
    """Sentence if most rows are permutations of one another."""
    ordered = np.sort(scores, axis=1)
    typical = np.sort(ordered, axis=0)[len(ordered) // 2]  # the medians
    same = (ordered == typical).all(axis=1).mean()
    if len(scores) >= _FEWEST_ROWS and np.unique(typical).size >= _FEWEST_VALUES and same > _MOSTLY:
        yield (
            "most rows of scores contain the same numbers in another order, as ranks do. They show "
            "the order of the classes and not how near a class is: pass the scores that were "
            "ranked, or the ranks of the true classes to SourceTask.from_ranks"
        )


def _rounded_probabilities(scores: FloatArray, y: IntArray) -> Iterator[str]:
    """Sentence if classes that matter are tied at a probability of 0 or 1, which rounding made."""
    if not (scores.min() >= 0 and scores.max() <= 1 and ((scores > 0) & (scores < _TINY)).any()):
        return
    true, wrong = split_scores(scores.copy(), y)
    nearest = min(_NEAREST, wrong.shape[1])
    best = np.partition(wrong, -nearest, axis=1)[:, -nearest:]
    some = np.sort(np.column_stack([true, best]), axis=1)
    rounded = (some[:, :-1] == 0) | (some[:, :-1] == 1)
    share = float(((some[:, 1:] == some[:, :-1]) & rounded).any(axis=1).mean())
    if share > _MANY_TIES:
        yield (
            f"in {share:.0%} of the rows some of the best classes have the same probability, 0 or "
            "1, because a softmax or sigmoid was rounded: pass the logits"
        )


def _shifted_labels(scores: FloatArray, y: IntArray) -> Iterator[str]:
    """Sentence if class 0 has no instance, and the class before the true one is best instead."""
    n, n_classes = scores.shape
    ahead = scores.argmax(axis=1) - y[:n]
    of_classes = ahead[np.unique(y[:n], return_index=True)[1]]  # independent: one row of each
    before, true = (int(np.count_nonzero(of_classes == place)) for place in (-1, 0))
    usual = max(true, of_classes.size / (n_classes - 1))  # wrong classes are best by chance
    far_better = before > 2 * usual and before - usual > _STANDARD_ERRORS * (before + usual) ** 0.5
    if y.min() == 1 and far_better:
        yield (
            f"class 0 has no test instance, and the best score is that of class y - 1 in "
            f"{np.mean(ahead == -1):.0%} of the rows, that of class y in "
            f"{np.mean(ahead == 0):.0%}. If y counts from 1, pass y - 1"
        )


def _negative_distances(distances: FloatArray) -> Iterator[str]:
    """Sentence if a few distances are negative by more than the rounding of single precision."""
    finite = distances[np.isfinite(distances)]
    negative = finite < -ROUNDING * np.abs(finite).max(initial=0.0)
    if negative.any() and (share := negative.mean()) < _FEW:
        yield (
            f"{share:.2g} of the distances are negative, down to {finite.min():.3g}, so the "
            "distance of a perfect match is not known to be 0. If they were rounded, such as 1 - "
            "cosine in half precision, pass np.maximum(scores, 0); if they are no distances, pass "
            "their negatives with higher_is_better=True"
        )


def _cosines(scores: FloatArray) -> Iterator[str]:
    """Sentence if all scores lie between -1 and 1 and have both signs."""
    finite = scores[np.isfinite(scores)]
    if finite.size and finite.min() < 0 and _NEAR < np.abs(finite).max() <= 1 + _HALF_PRECISION:
        yield (
            "all scores lie between -1 and 1. If they are cosines or correlations, a perfect match "
            "has 1, which the model cannot know: pass "
            "np.maximum(1 - scores, 0) with higher_is_better=False"
        )
