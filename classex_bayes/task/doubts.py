"""Doubts about a task: checks of its evidence, what fits warn of and what predictions say.

A *doubt* means that the data are probably not what they should be: every fit warns of it, once. A
*caution* is a fact about small samples that sound data may have too. Both are notes of every
prediction. All are cheap: no check reads the scores again. Some rows are looked at when the task is
made (`classex_bayes.task.foreign_columns`).
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
        The finding, its meaning and the remedy; or the reason why nothing was checked.
    value : float
        The number that decided; NaN where it could not be checked.
    threshold : float
        The limit that `value` was compared with; NaN where there is none.
    is_hint : bool
        Whether a sentence that passed is worth reading all the same.
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
    """Sentences of the checks that failed and that sound data pass."""
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
    return _failed(checks)


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
        notes += [*task.doubts, *_failed(checks)]
    return tuple(dict.fromkeys(notes))


def _scored(task: Any) -> LossEvidence | None:
    """Evidence with what was seen of the scores when the task was made."""
    return task.counted if task.intervals is None else task.intervals.broken


def _failed(checks: Sequence[Check]) -> tuple[str, ...]:
    return tuple(check.sentence for check in checks if check.passed is False)


def warn_of_doubts(*tasks: Any) -> None:
    """Warn of the doubts about tasks, but not within `doubts_told`."""
    if not _told.get():
        for doubt in dict.fromkeys(doubt for task in tasks for doubt in task.doubts):
            warn(doubt, DataWarning)


@contextmanager
def doubts_told() -> Iterator[None]:
    """Let fits within not warn of doubts, since the caller did or studies doubtful data."""
    token = _told.set(True)
    try:
        yield
    finally:
        _told.reset(token)


def better_than_chance(task: Any) -> Check:
    """Whether the accuracy among the fewest classes is above that of guessing, 1 / k.

    From ranks, accuracy between two classes must be above 1/2 by 3 of the standard errors that
    ranks at random have, but by no more than 0.15; of fewer than five independent instances, it
    may not be below 1/2 by as many. The same holds at the smallest known k where ranks are known
    within bounds; a bare curve must not be below 1 / k.
    """
    k, margin = int(task.grid()[0]), 0.0
    # Siblings that are always there make two classes harder than guessing among two.
    drawn = task if task.designed is None else task.designed.drawn
    accuracy = float(drawn.accuracy(np.array([k]))[0])
    if task.kind != "accuracies":
        sd = _GUESSING_SD if task.intervals is None else (1 / k * (1 - 1 / k)) ** 0.5
        margin = _STANDARD_ERRORS * sd * (task.design_effect() / task.n_test) ** 0.5
    margin_asked = min(margin, _WIDEST_MARGIN) if margin <= _TOO_FEW else -margin
    threshold = 1 / k + margin_asked
    passed = accuracy >= threshold
    sentence = f"accuracy {accuracy:.3f} among {k} classes, {1 / k:.3g} by guessing"
    if accuracy < 1 / k - margin:
        sentence += (
            "; right answers score below most wrong ones: is the sign of the scores reversed "
            "(higher_is_better), or y in another order than the scores?"
        )
    elif not passed:
        sentence += (
            "; right answers score no better than wrong ones: is y in another order than the "
            "scores?"
        )
    return Check("better than chance", passed, sentence, accuracy, threshold)


def ties(evidence: LossEvidence) -> Check:
    """Standard errors by which the rule for ties can move what extrapolation rests on.

    This is the accuracy among all k1 classes, and its decline from about k1 / 2 classes on: its
    largest and smallest value by any rule may lie 2 standard errors apart. Below 10 instances and
    5% of them ties decide little. An accuracy is not known better than by one instance.
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
                f"; the rule moves the {of_what} by up to {distance:.1f} standard errors: give "
                "scores with more digits, or say ties='unknown' if the ties hide an order"
            )
    return Check("ties", distance <= _FARTHEST_RULES, sentence, distance, _FARTHEST_RULES)


def many_ties(evidence: LossEvidence) -> Check:
    """Whether the true class is tied in more than 5% of the instances, whatever that does."""
    value = evidence.n_touched / evidence.n_test
    return Check("many ties", value <= MOST_TIES, _tied(evidence), value, MOST_TIES)


def _tied(evidence: LossEvidence) -> str:
    return (
        f"the true class is tied with a competitor in {evidence.n_touched} of {evidence.n_test} "
        f"instances (rule: {evidence.ties})"
    )


def decisions(intervals: LossIntervals) -> Check:
    """Whether scores are decisions, which say nothing of the ranks of wrong answers."""
    sentence = (
        "most rows of scores have two different values, as if they were decisions: right or wrong "
        f"among {intervals.n_classes} classes is all that they tell; {intervals.remedy}"
    )
    return Check("decisions", False, sentence)


def competitors_alike(evidence: LossEvidence, names: Sequence[Any] | None) -> Check:
    """Whether the scores of untested classes are such as those of tested ones for others."""
    unlike = evidence.score_doubts.unlike
    sentence = "untested classes score like tested ones"
    if unlike:
        found = (
            f"{column_name(columns, names)}, whose scores {why}" for why, columns in unlike.items()
        )
        sentence = (
            f"no instance belongs to {', nor to '.join(found)}: leave out what is no class, such "
            "as an index, a threshold or padding"
        )
    return Check("competitors", not unlike, sentence)


def embeddings_fit(evidence: LossEvidence) -> Check:
    """Whether probes are new and of the unit of the templates, by some rows of both."""
    found = evidence.score_doubts.embeddings
    return Check("embeddings", not found, "; ".join(found))


def scored_as_predicted(evidence: LossEvidence) -> Check:
    """Whether the scores of a classifier are those of its `predict`, for instances new to it."""
    found = evidence.score_doubts.classifier
    return Check("classifier", not found, "; ".join(found))


def concentrated_errors(evidence: LossEvidence, names: Sequence[Any] | None) -> Check:
    r"""Whether a few classes make up the sampling error of ATA at k = k1.

    The effective number of classes is the participation number
    :math:`(\sum_j \psi_j^2)^2 / \sum_j \psi_j^4` of the dyadic influences. Below 7 the covariance
    rests on a handful of classes. That classes differ is normal: on sound tasks of 100 classes it
    is 10 to 40, and grows with k1. Class weights concentrate it without a fault of the data, so
    they count only as many classes as the participation number of their squares.
    """
    name, n_classes = "concentrated errors", round(participation(evidence.class_weight**2))
    n_errors = int(np.count_nonzero(evidence.losses))
    if n_classes < FEWEST_FOR_CONCENTRATION or n_errors < ERRORS_FOR_CONCENTRATION:
        return Check(
            name,
            None,
            f"needs {FEWEST_FOR_CONCENTRATION} classes of like weight and "
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
            f"; {100 * share:.0f}% is due to classes {named}: look at them (mislabelled? one "
            "template that wins everywhere?), and expect the standard errors to be off"
        )
    return Check(name, passed, sentence, effective, FEWEST_EFFECTIVE)


def few_classes(n_classes: int) -> Check:
    """Whether there are 20 classes, of which their population can be told."""
    passed = n_classes >= FEWEST_CLASSES
    sentence = f"{n_classes} classes"
    if not passed:
        sentence += (
            f" are few: trust an interval and not a mean or a point estimate, and test "
            f"{FEWEST_CLASSES} or more"
        )
    return Check("few classes", passed, sentence, float(n_classes), float(FEWEST_CLASSES))


def few_weighty_classes(class_weight: FloatArray) -> Check:
    r"""Whether unequal weights leave 20 classes that count, by :math:`1 / \sum_l w_l^2`."""
    n_classes = class_weight.size
    # By the effect of the weights, which is exactly 1 for equal ones.
    effective = float(np.count_nonzero(class_weight) / weight_effect(class_weight))
    passed = n_classes < FEWEST_CLASSES or effective >= FEWEST_CLASSES
    sentence = f"by their weights {n_classes} classes tell no more than {effective:.1f} equal ones"
    if not passed:
        sentence += ": trust an interval and not a mean or a point estimate"
    return Check("few weighty classes", passed, sentence, effective, float(FEWEST_CLASSES))


def few_errors(losses: IntArray, y: IntArray) -> Check:
    """Whether 10 instances are wrong, in 5 classes; the fewer, the more the prior decides."""
    erring = np.unique(y[losses > 0]).size
    n = int((losses > 0).sum())
    passed = n >= FEWEST_ERRORS and erring >= FEWEST_ERRING_CLASSES
    sentence = f"{_counted(n, 'instance')} of {_counted(erring, 'class')} lost to some competitor"
    if n == 0:
        sentence = "no instance lost to a competitor"
    if not passed:
        sentence += (
            "; with so few the decline is known by its upper limit alone, and the model, or its "
            "prior, decides"
        )
    return Check("few errors", passed, sentence, float(n), float(FEWEST_ERRORS))


def _counted(number: int, noun: str) -> str:
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{number} {noun if number == 1 else plural}"


def participation(squares: FloatArray) -> float:
    r"""Participation number :math:`(\sum_j s_j)^2 / \sum_j s_j^2` of nonnegative numbers.

    Between 1 (one of them is all) and their number (all are equal); 0 where all are 0.
    """
    total = float((squares**2).sum())
    return float(squares.sum() ** 2 / total) if total > 0 else float(np.count_nonzero(squares))
