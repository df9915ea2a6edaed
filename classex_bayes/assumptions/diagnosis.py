"""Whether a task should be trusted: all checks of one task."""

import numpy as np

from classex_bayes.assumptions import task_checks as checks
from classex_bayes.assumptions.score_facts import ScoreFacts, stream
from classex_bayes.assumptions.task_report import Check, ClassErrors, TaskReport, participation
from classex_bayes.task import validation
from classex_bayes.task.statistics import TaskStatistics
from classex_bayes.typing import RandomSeed

_NEED_LOSSES = ("few errors", "ties")
_NEED_SCORES = (
    "duplicated instances",
    "duplicated classes",
    "concentrated errors",
    "grouped confusions",
    "normalised scores",
)


def diagnose(
    task: TaskStatistics, *, random_seed: RandomSeed = None, n_permutations: int = 199
) -> TaskReport:
    """Ask of a task what makes an extrapolation untrustworthy.

    One more pass over the scores in blocks, in memory of order k1 + n.

    Parameters
    ----------
    task : SourceTask
        Any; what needs ranks or scores is left out, with the reason, where they are not known.
    random_seed : int, SeedSequence or None
        Seed of projections of the scores and of permutations.
    n_permutations : int
        Random graphs of "grouped confusions", at least 99.

    Returns
    -------
    TaskReport
        Its checks:

        - "few classes": fewer than 20, or too few to reach twice as many with a standard error
          of 0.1;
        - "better than chance": the true class loses to most competitors;
        - "few errors": fewer than 10 wrong answers, or fewer than 5 classes with them;
        - "ties": more than 5% of the pairs that are tied or won by the wrong class are tied;
        - "duplicated instances": above 1% repeat the scores of others;
        - "duplicated classes": above 0.5% have the scores of another;
        - "concentrated errors": fewer than 7 classes make up the sampling error;
        - "grouped confusions": confusions fall into separate groups of classes;
        - "normalised scores": a hint alone.

    Raises
    ------
    DataError
        No task, or too few permutations.

    See Also
    --------
    check_marginality : Whether the scores of a class depend on its competitors.

    Notes
    -----
    "Few classes", "few errors" and "ties" state facts. On sound simulated tasks the other
    checks failed in at most 1% of cases.

    Examples
    --------
    >>> scores = np.random.default_rng(1).normal(size=(60, 30)) + 3 * np.eye(30)[np.arange(60) % 30]
    >>> from classex_bayes.task.source_task import SourceTask
    >>> task = SourceTask.from_scores(scores, np.arange(60) % 30, higher_is_better=False)
    >>> report = diagnose(task, random_seed=1)
    >>> report.passed, [check.name for check in report.warnings]
    (False, ['better than chance'])
    """
    validation.source_task(task)
    n_draws = validation.how_many(n_permutations, "n_permutations", 99)
    first = int(task.grid()[0])
    found = [
        checks.few_classes(task),
        checks.better_than_chance(float(task.accuracy(first)[0]), first),
    ]
    title = f"{task.n_classes} classes, {task.n_test} test instances from {task.kind}"
    if task.kind == "accuracies":
        reason = "the task was made from accuracies alone and has no ranks"
        found.extend(checks.unknown(_NEED_LOSSES + _NEED_SCORES, reason))
        return TaskReport(tuple(found), title)
    found.append(checks.few_errors(task.evidence.losses, task.y))
    if task.source is None:
        reason = "the task was made from ranks and has no scores"
        found.extend(checks.unknown(("ties", *_NEED_SCORES), reason))
        return TaskReport(tuple(found), title)
    found.append(checks.ties(task.n_tied, task.evidence.losses, task.ties))
    rng = np.random.default_rng(validation.seed_sequence(random_seed))
    facts = stream(task, rng)
    errors = _class_errors(task, facts)
    found.extend(_of_scores(task, facts, errors, n_draws, rng))
    return TaskReport(tuple(found), title, errors)


def _of_scores(
    task: TaskStatistics,
    facts: ScoreFacts,
    errors: ClassErrors,
    n_draws: int,
    rng: np.random.Generator,
) -> list[Check]:
    n_errors = int((task.ranks > 1).sum())
    effective = errors.n_classes_effective
    return [
        checks.duplicated_instances(facts.row_hash, facts.telling),
        checks.duplicated_classes(facts.sketch, task.classes),
        checks.concentrated_errors(effective, errors.influence, n_errors, task.classes),
        checks.grouped_confusions(facts.edges, n_draws, rng),
        checks.normalised_scores(facts.sums_to_one, facts.log_sums_to_one),
    ]


def _class_errors(task: TaskStatistics, facts: ScoreFacts) -> ClassErrors:
    repeats = np.bincount(task.y, minlength=task.n_classes)
    wrong = np.bincount(task.y, task.ranks > 1, minlength=task.n_classes)
    squares = task.evidence.class_influence[:, -1] ** 2
    total = squares.sum()
    share = squares / total if total > 0 else np.full(squares.size, 1 / squares.size)
    return ClassErrors(
        wrong / np.maximum(repeats, 1), facts.as_competitor, share, participation(squares)
    )
