"""Doubts about a task: checks of its data, warnings of fits and notes of predictions.

A *doubt* means that the data are probably faulty. Every fit warns of it once. A *caution* is a fact
about small samples, which sound data may have too: its check passes with a hint. Both are notes of
every prediction. The checks
are cheap because none reads the scores again. Some rows are inspected when the task is made
(`classex_bayes.task.foreign_columns`).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from classex_bayes.core.influence import weight_effect
from classex_bayes.exceptions import DataWarning, warn
from classex_bayes.formatting import folded
from classex_bayes.task.evidence import FEWEST_ERRING_CLASSES, LossEvidence
from classex_bayes.task.foreign_columns import column_name
from classex_bayes.task.loss_intervals import LossIntervals
from classex_bayes.typing import FloatArray, IntArray

FEWEST_CLASSES, FEWEST_ERRORS, MOST_TIES, _FARTHEST_RULES = 20, 10, 0.05, 2.0
FEWEST_EFFECTIVE, FEWEST_FOR_CONCENTRATION, ERRORS_FOR_CONCENTRATION = 7.0, 50, 20
# Ranks at random: the variance of an instance's accuracy between two classes is at most 1 / 12,
# up to 1 / k1. So many standard errors are more than good classifiers reach if instances are few;
# less than five, or those of one class that has all the weight, tell guessing by chance alone.
_GUESSING_SD, _STANDARD_ERRORS, _WIDEST_MARGIN, _TOO_FEW = 12**-0.5, 3, 0.15, 0.4
_WORDS = {True: "ok", False: "WARNING", None: "not checked"}
_told: ContextVar[bool] = ContextVar("told", default=False)


@dataclass(frozen=True)
class Check:
    """One question about a task and its answer.

    Attributes
    ----------
    name : str
        Name of the check.
    passed : bool or None
        None where it could not be checked.
    sentence : str
        The finding, its meaning and the remedy, or the reason why nothing was checked.
    value : float
        Number that decided the check; NaN if nothing was checked.
    threshold : float
        Limit that `value` was compared with; NaN if there is none.
    is_hint : bool
        Whether the sentence is worth reading although the check passed.
    """

    name: str
    passed: bool | None
    sentence: str
    value: float = float("nan")
    threshold: float = float("nan")
    is_hint: bool = False

    @property
    def _word(self) -> str:
        return "hint" if self.is_hint else _WORDS[self.passed]

    @property
    def verdict(self) -> str:
        """The answer and the sentence: "WARNING: ..."."""
        return f"{self._word}: {self.sentence}"

    def __repr__(self) -> str:
        """One line: the verdict, the name and the sentence."""
        return folded(f"{self._word:<11}  {self.name}: {self.sentence}", indent=13)


def doubts_of(task: Any) -> tuple[str, ...]:
    """Sentences of failed checks that sound data pass."""
    checks = [better_than_chance(task)] if task.grid().size else []
    if task.kind == "decisions":
        checks.append(decisions(task.intervals))
    if (scored := _scored(task)) is not None:
        checks.append(scored_as_predicted(scored))
    if task.intervals is None and (evidence := task.counted) is not None:
        checks.append(ties(evidence))
        if evidence.statistics is not None:
            checks.append(competitors_alike(evidence, task.classes))
            checks.append(embeddings_fit(evidence))
            checks.append(concentrated_errors(evidence, task.classes))
    return tuple(check.sentence for check in checks if check.passed is False)


def notes_on(tasks: Sequence[Any]) -> tuple[str, ...]:
    """Doubts and cautions about the data of a fit: each is a note of its predictions."""
    notes: list[str] = []
    for task in tasks:
        checks = [few_classes(task.n_classes)]
        if task.kind != "accuracies":
            checks.append(few_weighty_classes(task.class_weight))
        if (evidence := task.counted) is not None:
            checks.append(few_errors(evidence.losses, task.y))
            if task.intervals is None and ties(evidence).passed:
                checks.append(many_ties(evidence))
        if (assuming := task.intervals or task.designed) is not None and assuming.assumption:
            notes.append(assuming.assumption)
        if (scored := _scored(task)) is not None:
            notes += scored.score_doubts.cautions
        notes += [*task.doubts, *(check.sentence for check in checks if check.is_hint)]
    return tuple(dict.fromkeys(notes))


def _scored(task: Any) -> LossEvidence | None:
    """Evidence with the doubts that were found when the task was made."""
    return task.counted if task.intervals is None else task.intervals.broken


def warn_of_doubts(*tasks: Any) -> None:
    """Warn of the doubts about tasks, except within `doubts_told`."""
    if not _told.get():
        for doubt in dict.fromkeys(doubt for task in tasks for doubt in task.doubts):
            warn(doubt, DataWarning)


@contextmanager
def doubts_told() -> Iterator[None]:
    """Silence the doubts of fits inside, because the caller warned or studies doubtful data."""
    token = _told.set(True)
    try:
        yield
    finally:
        _told.reset(token)


def caution(name: str, enough: bool, sentence: str, value: float, threshold: float) -> Check:
    """A check that sound data may not meet. It passes, with a hint if they do not."""
    return Check(name, True, sentence, value, threshold, is_hint=not enough)


def better_than_chance(task: Any) -> Check:
    """Whether the accuracy among the fewest classes is above that of guessing, 1 / k.

    If ranks are known, the accuracy between two classes must be above 1/2 by 3 standard errors of
    random ranks, but by no more than 0.15. With fewer than five independent instances, it must not
    be below 1/2 by this amount. If ranks are known within bounds, the same rule applies at the
    smallest k with known accuracy. An accuracy curve must not be below 1 / k.
    """
    k, margin = int(task.grid()[0]), 0.0
    # Siblings that are always present make the accuracy on two classes lower than 1 / 2.
    drawn = task if task.designed is None else task.designed.drawn
    accuracy = float(drawn.accuracy(np.array([k]))[0])
    if task.kind != "accuracies":
        sd = _GUESSING_SD if task.intervals is None else (1 / k * (1 - 1 / k)) ** 0.5
        margin = _STANDARD_ERRORS * sd * (task.design_effect() / task.n_test) ** 0.5
    margin_asked = min(margin, _WIDEST_MARGIN) if margin <= _TOO_FEW else -margin
    threshold = 1 / k + margin_asked
    passed = accuracy >= threshold
    sentence = f"the accuracy among {k} classes is {accuracy:.3f}; guessing gives {1 / k:.3g}"
    if accuracy < 1 / k - margin:
        sentence += (
            ". True classes score below most wrong ones. Check whether the sign of the scores is "
            "reversed (higher_is_better) or y is in another order than the scores"
        )
    elif not passed:
        sentence += (
            ". True classes score no better than wrong ones. Check whether y is in another order "
            "than the scores"
        )
    return Check("better than chance", passed, sentence, accuracy, threshold)


def ties(evidence: LossEvidence) -> Check:
    """How far the rule for ties moves the extrapolation, in standard errors.

    The check compares the rules by the accuracy among all k1 classes and by its decline from about
    k1 / 2 classes on. The largest and smallest values may differ by 2 standard errors. Ties in
    fewer than 10 instances and in at most 5% of them have little effect and pass. The standard
    error of an accuracy is at least that of one instance.
    """
    touched, distance, sentence = evidence.n_touched, 0.0, _tied(evidence)
    if touched >= FEWEST_ERRORS or touched > MOST_TIES * evidence.n_test:
        k = evidence.grid()
        half = int(np.abs(k - evidence.n_classes / 2).argmin())
        contrast = np.zeros((2, k.size))
        contrast[:, -1], contrast[1, half] = 1.0, -1.0
        worst, best = LossIntervals.of_ties(evidence).accuracy_bounds(k)
        moved = np.abs(contrast @ (best - worst))
        variance = np.diag(contrast @ evidence.covariance(k) @ contrast.T)
        distances = moved / np.sqrt(np.maximum(variance, evidence.n_test**-2))
        distance = float(distances.max())
        if distance > _FARTHEST_RULES:
            of_what = ("accuracy", "decline of accuracy towards k1")[int(distances.argmax())]
            sentence += (
                f". The rule moves the {of_what} by up to {distance:.1f} standard errors. Pass "
                "scores with more digits, or ties='unknown' if the ties hide an order"
            )
    return Check("ties", distance <= _FARTHEST_RULES, sentence, distance, _FARTHEST_RULES)


def many_ties(evidence: LossEvidence) -> Check:
    """Whether the true class is tied in more than 5% of the instances, whatever the effect."""
    value = evidence.n_touched / evidence.n_test
    return caution("many ties", value <= MOST_TIES, _tied(evidence), value, MOST_TIES)


def _tied(evidence: LossEvidence) -> str:
    return (
        f"the true class is tied with a competitor in {evidence.n_touched} of {evidence.n_test} "
        f"instances (rule: {evidence.ties})"
    )


def decisions(intervals: LossIntervals) -> Check:
    """Whether scores are decisions, which do not determine the ranks of wrong answers."""
    sentence = (
        "most rows of scores have only two different values, as if they were decisions. They "
        f"show only whether an answer among {intervals.n_classes} classes is correct; "
        f"{intervals.remedy}"
    )
    return Check("decisions", False, sentence)


def competitors_alike(evidence: LossEvidence, names: Sequence[Any] | None) -> Check:
    """Whether untested classes score like tested classes on instances of other classes."""
    unlike = evidence.score_doubts.unlike
    sentence = "untested classes score like tested ones"
    if unlike:
        found = (
            f"{column_name(columns, names)}, whose scores {why}" for why, columns in unlike.items()
        )
        sentence = (
            f"no instance belongs to {', nor to '.join(found)}. Leave out columns that are not "
            "classes, such as an index, a threshold or padding"
        )
    return Check("competitors", not unlike, sentence)


def embeddings_fit(evidence: LossEvidence) -> Check:
    """Whether probes are new and have the unit of the templates, judged by some rows of both."""
    found = evidence.score_doubts.embeddings
    return Check("embeddings", not found, "; ".join(found))


def scored_as_predicted(evidence: LossEvidence) -> Check:
    """Whether a classifier's scores agree with its `predict`, and the instances are new to it."""
    found = evidence.score_doubts.classifier
    return Check("classifier", not found, "; ".join(found))


def concentrated_errors(evidence: LossEvidence, names: Sequence[Any] | None) -> Check:
    r"""Whether a few classes make up the sampling error of ATA at k = k1.

    The effective number of classes is the participation number :math:`(\sum_j \psi_j^2)^2 / \sum_j
    \psi_j^4` of the dyadic influences. Below 7 the covariance depends on a handful of classes.
    Differences between classes are normal: sound tasks of 100 classes have a value of 10 to 40,
    which grows with k1. Unequal class weights reduce it although the data are sound. The number of
    classes is therefore the participation number of the squared weights.
    """
    name, n_classes = "concentrated errors", round(participation(evidence.class_weight**2))
    n_errors = int(np.count_nonzero(evidence.losses))
    if n_classes < FEWEST_FOR_CONCENTRATION or n_errors < ERRORS_FOR_CONCENTRATION:
        return Check(
            name,
            None,
            f"needs {FEWEST_FOR_CONCENTRATION} classes of similar weight and "
            f"{ERRORS_FOR_CONCENTRATION} instances with errors, found {n_classes} and {n_errors}",
        )
    squares = evidence.class_influence[:, -1] ** 2
    if not squares.any():
        return Check(name, None, "the accuracy among all classes has no sampling error")
    effective = participation(squares)
    passed = effective >= FEWEST_EFFECTIVE
    sentence = f"the sampling error is that of {effective:.1f} equally important classes"
    if not passed:
        top = np.argsort(-squares)[:5]
        named = ", ".join(str(j if names is None else names[j]) for j in top.tolist())
        share = float(squares[top].sum() / squares.sum())
        sentence += (
            f". Classes {named} cause {100 * share:.0f}% of it. Check whether they are "
            "mislabelled or have a template that wins everywhere. The standard errors may be "
            "wrong"
        )
    return Check(name, passed, sentence, effective, FEWEST_EFFECTIVE)


def few_classes(n_classes: int) -> Check:
    """Whether there are at least 20 classes, enough to describe their population."""
    enough = n_classes >= FEWEST_CLASSES
    sentence = f"{n_classes} classes"
    if not enough:
        sentence += (
            " are few. Rely on intervals and not on means or point estimates, and test "
            f"{FEWEST_CLASSES} or more classes"
        )
    return caution("few classes", enough, sentence, float(n_classes), float(FEWEST_CLASSES))


def few_weighty_classes(class_weight: FloatArray) -> Check:
    r"""Whether the effective number of classes :math:`1 / \sum_l w_l^2` is at least 20."""
    n_classes = class_weight.size
    # Computed from the effect of the weights, which is exactly 1 for equal ones.
    effective = float(np.count_nonzero(class_weight) / weight_effect(class_weight))
    enough = n_classes < FEWEST_CLASSES or effective >= FEWEST_CLASSES
    sentence = (
        f"with these weights {n_classes} classes are as informative as {effective:.1f} "
        "equally weighted ones"
    )
    if not enough:
        sentence += ". Rely on intervals and not on means or point estimates"
    return caution("few weighty classes", enough, sentence, effective, float(FEWEST_CLASSES))


def few_errors(losses: IntArray, y: IntArray) -> Check:
    """Whether at least 10 instances in 5 classes are wrong. With fewer, the prior dominates."""
    erring = np.unique(y[losses > 0]).size
    n = int((losses > 0).sum())
    enough = n >= FEWEST_ERRORS and erring >= FEWEST_ERRING_CLASSES
    sentence = f"{_counted(n, 'instance')} of {_counted(erring, 'class')} lost to a competitor"
    if n == 0:
        sentence = "no instance lost to a competitor"
    if not enough:
        sentence += (
            ". So few errors give only an upper limit of the decline, and the model or its prior "
            f"dominates. Test more classes or instances until {FEWEST_ERRORS} or more are wrong"
        )
    return caution("few errors", enough, sentence, float(n), float(FEWEST_ERRORS))


def _counted(number: int, noun: str) -> str:
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{number} {noun if number == 1 else plural}"


def participation(squares: FloatArray) -> float:
    r"""Participation number :math:`(\sum_j s_j)^2 / \sum_j s_j^2` of nonnegative numbers.

    It lies between 1 (one number has all the weight) and their count (all are equal). It is 0 if
    all are 0.
    """
    total = float((squares**2).sum())
    return float(squares.sum() ** 2 / total) if total > 0 else float(np.count_nonzero(squares))
