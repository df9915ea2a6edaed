"""Sentences about accuracies, intervals and pilots, each defined once."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from classex_bayes.formatting import PERCENTAGES, percent
from classex_bayes.results.draws import interval_name
from classex_bayes.results.extrapolation import Estimand
from classex_bayes.task.provenance import CANDIDATES, ITEMS
from classex_bayes.task.source_task import SourceTask

_ACCURACY = Estimand()
_SCORES: dict[str | None, str] = {
    "sqeuclidean": "squared distances",
    "cosine": "cosines",
    "dot": "dot products",
}
_ERROR_SHARE, _MOST_NAMED = 0.4, 5
_PILOTS = {
    "classes": ("tested", "instances", ("got", "right")),
    "documents": ("searched", "queries", ("answered", "right at rank 1")),
}
_PILOTS["items"] = _PILOTS["documents"]
_NUMERALS = ("No", "One", "Two", "Three", "Four", "Five")


def headline(
    k: int,
    mean: float,
    lower: float,
    upper: float,
    ci_prob: float,
    estimand: Estimand = _ACCURACY,
) -> str:
    """Return the accuracy on k classes, or another metric, and its interval in one sentence.

    >>> headline(10_000, 0.7123, 0.6312, 0.7799, 0.9)
    'On 10,000 classes: 71.2%, 90% interval 63.1 to 78.0%'
    >>> headline(10_000, 13.42, 8.2, 20.3, 0.9, Estimand(metric="mean_rank"))
    'On 10,000 classes: mean rank 13.4, 90% interval 8.2 to 20.3'
    """
    shown = estimand.numerals.estimate(mean, lower, upper)
    name = "" if estimand == _ACCURACY else f"{estimand.label} "
    return f"On {k:,} {estimand.units}: {name}{shown.mean}, {interval_name(ci_prob)} {shown.span}"


def pilot_sentence(task: SourceTask, estimand: Estimand = _ACCURACY) -> str:
    """Return the size and the accuracy of a pilot in one sentence, in the words of a metric.

    >>> pilot_sentence(SourceTask.from_ranks([1, 3, 1, 2], [0, 0, 1, 2], n_classes=3))[-42:]
    'got 50.0% right, with equal class weights.'
    """
    largest, accuracy = pilot_accuracy(task)
    among = "" if largest == task.n_classes else f" among {largest:,}"
    details = ""
    if task.table.is_labelled:
        tested, repeats = np.unique(task.y, return_counts=True)
        weights = task.require("ranks").class_weight[tested]
        if np.ptp(weights) > 0:
            details = ", with the given class weights"
        elif np.ptp(repeats) > 0:
            details = ", with equal class weights"
    if (nouns := task.table.provenance.nouns) in (ITEMS, CANDIDATES):
        table = task.require("ranks")
        users, most = np.unique(table.y).size, int(table.n_competitors.max())
        others = f"{task.n_classes - 1:,}{' or more' * (most >= task.n_classes)}"
        return (
            f"In the pilot {task.n_test:,} {nouns.true} of {users:,} {nouns.units} were each "
            f"ranked among {others} others{among}, and {accuracy} were first"
            f"{details.replace('class', 'user')}."
        )
    of_them = " of them" if task.table.is_labelled and not details else ""
    done, instances, right = _PILOTS[estimand.units]
    return (
        f"The pilot {done} {task.n_classes:,} {estimand.units} with {task.n_test:,} {instances} "
        f"and {right[0]} {accuracy}{of_them} {right[1]}{among}{details}."
    )


def joint_notes(notes: Mapping[Any, Sequence[str]]) -> tuple[str, ...]:
    """Return notes by name: those that all have once, the others with the name before them.

    >>> joint_notes({"a": ["few errors", "ties"], "b": ["ties"]})
    ('ties', 'a: few errors')
    """
    common = set.intersection(*map(set, notes.values()))
    shared = [note for note in next(iter(notes.values())) if note in common]
    return (
        *shared,
        *(f"{name}: {n}" for name, of_name in notes.items() for n in of_name if n not in common),
    )


def score_direction(task: SourceTask) -> str:
    """Return the kind of the scores of a task, and which thresholds are strict.

    >>> gallery = np.eye(20)
    >>> score_direction(SourceTask.from_embeddings(gallery, gallery, range(20)))
    'squared distances: smaller is stricter'
    """
    negated = task.nearest_classes.negated
    name = _SCORES.get(task.table.distance, "distances" if negated else "scores")
    return f"{name}: {'smaller' if negated else 'larger'} is stricter"


def pilot_accuracy(task: SourceTask) -> tuple[int, str]:
    """Most classes at which the accuracy of a pilot is known, and this accuracy, or its bounds."""
    grid = task.grid()
    if grid.size:
        return int(grid[-1]), percent(float(task.accuracy(grid[-1])), 1)
    lower, upper = task.accuracy_bounds(task.n_classes)
    return task.n_classes, PERCENTAGES.span(float(lower), float(upper))


def errors_sentence(task: SourceTask) -> str:
    """Return how few classes account for 40% of the errors among all k1 classes.

    They are named unless others have as many errors as the last of them.

    >>> task = SourceTask.from_ranks([1, 4, 2, 1, 3, 1], [0, 1, 1, 2, 2, 3], n_classes=4)
    >>> errors_sentence(task)
    'One class accounts for 67% of the 3 errors: 1.'
    """
    if not task.table.is_labelled:
        return f"Errors of single classes are unknown, because only {task.table.made_from} are."
    if not task.grid().size:
        return f"Errors of single classes are unknown: {task.table.why_unknown}."
    n_better = task.require("ranks").n_better
    errors = np.bincount(task.y, weights=n_better > 0, minlength=task.n_classes)
    total = int(errors.sum())
    if total == 0:
        return f"None of the {task.n_test:,} instances is wrong among {task.n_classes:,} classes."
    worst = np.argsort(-errors, kind="stable")
    cumulative, units = np.cumsum(errors[worst]) / total, task.table.provenance.nouns.units
    number = int(np.searchsorted(cumulative, _ERROR_SHARE - 1e-12)) + 1
    share = f"{percent(cumulative[number - 1])} of the {total:,} errors"
    share = "the only error" if total == 1 else share
    if number > _MOST_NAMED:
        tested = np.unique(task.y).size
        return f"{number:,} of the {tested:,} tested {units} account for {share}."
    if errors[worst[number - 1]] == errors[worst[number]]:  # one of equals is not named
        return f"The {total:,} errors are spread over {np.count_nonzero(errors):,} {units}."
    names = ", ".join(str(j if task.classes is None else task.classes[j]) for j in worst[:number])
    verb = "class accounts for" if number == 1 else "classes account for"
    return f"{_NUMERALS[number]} {verb} {share}: {names}."
