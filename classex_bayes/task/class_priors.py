"""Accuracy under class priors: two interpretations of class weights on fewer classes."""

from itertools import combinations
from math import comb
from typing import Literal

import numpy as np

from classex_bayes.arguments import (
    class_counts,
    number_at_one_k,
    one_of,
    seed_sequence,
    source_task,
)
from classex_bayes.core.influence import equal_weights, weight_effect
from classex_bayes.core.metrics import Accuracy
from classex_bayes.core.rank_pass import row_groups
from classex_bayes.exceptions import DataError
from classex_bayes.task.class_labels import instance_weights
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import BoolArray, ClassCounts, FloatArray, RandomSeed

_N_SUBSETS, _AT_ONCE = 4000, 500


@number_at_one_k
def accuracy_under_priors(
    task: SourceTask,
    k: ClassCounts,
    *,
    normalized: Literal["once", "within_subsets"] = "once",
    random_seed: RandomSeed = 0,
) -> FloatArray:
    r"""Average test accuracy on k classes, the class weights normalised once or in each subset.

    With w_l the `class_weight` of the task and :math:`a_l(C)` the share of correct answers to
    instances of class l among the classes C,

    .. math::

        A^{once}_k = \sum_l w_l \operatorname*{mean}_{C \ni l} a_l(C), \qquad
        A^{within}_k = \operatorname*{mean}_C \frac{\sum_{l \in C} w_l a_l(C)}{\sum_{l \in C} w_l},

    where the means are over sets C of k of the k1 classes. With "once", a test instance is drawn
    from the whole test and then its k - 1 competitors; this is `SourceTask.accuracy`. With
    "within_subsets", k classes are drawn and then a test instance among them, by their priors. Both
    are the same at k = k1 and for equal weights.

    Parameters
    ----------
    task : SourceTask
        Tested classes. "within_subsets" needs positive weights, and scores if these are unequal.
    k : int or array-like of int
        Numbers of classes in 2..n_classes.
    normalized : {"once", "within_subsets"}
        Whether the weights are normalised once or within each subset.
    random_seed : int, SeedSequence or None
        Seed of the sample of 4,000 subsets, if there are more.

    Returns
    -------
    array of shape (n_k,)
        Accuracies. If subsets are sampled, the standard error is at most 0.008.

    Notes
    -----
    Every model predicts "once": for k > k1 the true class is drawn by the weights, and its
    competitors are drawn equally. If classes have independent weights, the two accuracies differ by
    terms of order 1 / k, so they agree on many classes.

    References
    ----------
    Zheng, Achanta and Benjamini, Extrapolating expected accuracies (2016): section 2.2 normalises
    within each subset, the algorithm of section 3.3 takes one set of weights.

    Examples
    --------
    >>> scores = [[0.9, 0.2, 0.1], [0.3, 0.5, 0.6], [0.1, 0.2, 0.7]]
    >>> task = SourceTask.from_scores(scores, [0, 1, 2], class_weight=[1, 3, 1])
    >>> accuracy_under_priors(task, [2, 3]).round(3).tolist()
    [0.7, 0.4]
    >>> accuracy_under_priors(task, [2, 3], normalized="within_subsets").round(3).tolist()
    [0.75, 0.4]
    """
    source_task(task)
    one_of(normalized, ("once", "within_subsets"), "normalized")
    counts = class_counts(k, largest=task.n_classes)
    if normalized == "once":
        return task.accuracy(counts)
    class_weight = task.require("ranks").class_weight
    if weight_effect(class_weight) == 1:
        return task.accuracy(counts)
    table = task.require("scores")
    if not class_weight.all():
        place = int(np.argmin(class_weight))
        raise DataError(
            f"task: class {place} has weight zero, and weights cannot be normalised in a subset "
            "of such classes; select classes that have test instances and weight, or pass "
            "normalized='once'"
        )
    seeds = seed_sequence(random_seed).spawn(counts.size)
    accuracies = [
        _within_subsets(table, int(size), np.random.default_rng(seed))
        for size, seed in zip(counts, seeds, strict=True)
    ]
    return np.array(accuracies)


def _within_subsets(table: RankTable, k: int, rng: np.random.Generator) -> float:
    """Mean over subsets, as the exact mean for equal weights and the difference from it."""
    member = _subsets(table.n_classes, k, rng)
    equal = equal_weights(table.class_weight)
    weights = np.stack([table.class_weight, equal])
    of_instances = np.stack([instance_weights(table.y, weight) for weight in weights])
    right = np.zeros((2, member.shape[1]))
    for block in table.blocks(row_groups(table.y, table.n_classes)):
        beaten = block.defeats.beaten(np.arange(block.rows.size)).astype(np.float32)
        for start in range(0, member.shape[1], _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            wins = (beaten @ member[:, part] == 0) & member[table.y[block.rows], part]
            right[:, part] += of_instances[:, block.rows] @ wins
    accuracy = right / (weights @ member)
    exact = Accuracy().average(table.n_better, table.n_classes, np.array([k]), of_instances[1])
    return float(exact[0] + (accuracy[0] - accuracy[1]).mean())


def _subsets(n_classes: int, k: int, rng: np.random.Generator) -> BoolArray:
    """Which classes (n_classes, n_sets) are in each subset: all subsets, if they are few."""
    if comb(n_classes, k) <= _N_SUBSETS:
        chosen = np.array(list(combinations(range(n_classes), k)))
    else:
        drawn = [rng.choice(n_classes, k, replace=False) for _ in range(_N_SUBSETS)]
        chosen = np.array(drawn)
    member = np.zeros((n_classes, len(chosen)), dtype=bool)
    member[chosen.T, np.arange(len(chosen))] = True
    return member
