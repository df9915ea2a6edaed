"""Diagnosis: all checks of one task.

For sound tasks, most of the checked numbers are 0 or far from their thresholds, so these checks
have no false alarms. The two checks of the shape of the errors have thresholds from simulations of
sound tasks. They give a false alarm in at most about 1% of these.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from classex_bayes.arguments import seed_sequence, source_task
from classex_bayes.assumptions.score_facts import (
    ScoreFacts,
    linked_share,
    mean_degree,
)
from classex_bayes.estimators.moment_bounds import MomentBounds
from classex_bayes.exceptions import DataError, DataWarning
from classex_bayes.formatting import by_fields, html_block, html_facts
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results.draws import interval_name, interval_settings
from classex_bayes.results.extrapolation import REACHED
from classex_bayes.task.check import Check, noted
from classex_bayes.task.data_checks import participation
from classex_bayes.task.provenance import CLASSES
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.rank_variance import RankVariance
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray, RandomSeed

_MOST_REPEATED, _MOST_DOUBLE_CLASSES = 0.01, 0.005
_SMALLEST_LINKED, _SMALLEST_DEGREE, _LEVEL = 0.5, 4.0, 0.01
_N_RANDOM = 199  # orders of classes that the observed one is compared with
_SAME_COLUMN = 1e-6
_NEIGHBOURS = 10  # places apart, at most, in the order of the classes
_GROUPS, _ORDER = "groups of classes", "order of classes"
_ROWS, _COLUMNS = "copies of instances", "copies of classes"
_NORMALISED, _REACH = "normalisation of scores", "reach of the ranks"
_IN_GROUPS = (
    "If they were sampled in groups (genera, families of products, authors) and not one by one, "
    "make the task with sampling=Sampling(groups=...)"
)
_NEED_RANKS = ("number of errors",)
_NEED_SCORES = "ties", "concentration of errors", _ROWS, _COLUMNS, _GROUPS, _ORDER, _NORMALISED


@dataclass(frozen=True, eq=False)
class ClassErrors:
    """Contribution of every class to the errors, for plots; arrays of shape (n_classes,)."""

    missed: FloatArray  # share of the class's instances that are wrong at k1; 0 without instances
    beaten: FloatArray  # share of the other classes' instances that it beats as a competitor
    influence: FloatArray  # share of the sum of squared influences on ATA_k; sums to 1
    n_classes_effective: float  # participation number of the influences
    __repr__ = by_fields


@dataclass(frozen=True, repr=False, eq=False)
class TaskReport:
    """Checks of a task.

    Attributes
    ----------
    checks : tuple of Check
        Checks in a fixed order. ``report["ties"]`` is the check of that name.
    title : str
        Title of the report.
    class_errors : ClassErrors or None
        Contribution of each class to the errors; None if scores are unknown.

    Examples
    --------
    >>> report = TaskReport((Check("ties", True, "no pair is tied", 0.0, 0.05),), "3 classes")
    >>> report
    3 classes: nothing found
    ok           ties: no pair is tied
    >>> report.passed, report["ties"].value
    (True, 0.0)
    """

    plot = PlotMethod("plot_diagnosis")

    checks: tuple[Check, ...]
    title: str
    class_errors: ClassErrors | None = None

    @property
    def passed(self) -> bool:
        """Whether no check failed. Checks that could not be made count as passed."""
        return not self.warnings

    @property
    def warnings(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.passed is False)

    @property
    def table(self) -> pd.DataFrame:
        """All checks: index "check", columns "passed", "value", "limit" and "sentence"."""
        columns = {
            name: [getattr(check, name) for check in self.checks]
            for name in ("passed", "value", "limit", "sentence")
        }
        index = pd.Index([check.name for check in self.checks], name="check")
        return pd.DataFrame(columns, index=index).astype({"passed": object})

    def __getitem__(self, name: str) -> Check:
        """Check of the given name; raises `DataError` if there is none."""
        for check in self.checks:
            if check.name == name:
                return check
        names = ", ".join(repr(check.name) for check in self.checks)
        raise DataError(f"name: found {name!r}, expected one of {names}")

    def __iter__(self) -> Iterator[Check]:
        """Walk through the checks."""
        return iter(self.checks)

    @property
    def verdict(self) -> str:
        """Number of warnings and of notes: "nothing found, 1 note"."""
        n_warnings, n_notes = len(self.warnings), sum(check.is_note for check in self.checks)
        verdict = "nothing found"
        if n_warnings:
            verdict = f"{n_warnings} warning{'s' if n_warnings > 1 else ''}"
        elif not any(check.passed for check in self.checks):
            verdict = "no check could be made"
        return verdict + (f", {n_notes} note{'s' if n_notes > 1 else ''}" if n_notes else "")

    @property
    def _header(self) -> str:
        return f"{self.title}: {self.verdict}"

    def __repr__(self) -> str:
        """Header, then one line a check."""
        return "\n".join([self._header, *map(repr, self.checks)])

    def _repr_html_(self) -> str:
        facts = {check.name: check.verdict for check in self.checks}
        return html_block(self._header, html_facts(facts))


def diagnose(task: SourceTask, *, random_seed: RandomSeed = None) -> TaskReport:
    """Check a task for problems that make an extrapolation unreliable.

    The checks take one more pass over the scores in blocks, in memory of order k1 + n.

    Parameters
    ----------
    task : SourceTask
        Any task. Checks that need unknown ranks or scores are left out, with the reason.
    random_seed : int, SeedSequence or None
        Seed of random projections of the scores and of permutations.

    Returns
    -------
    TaskReport
        The checks of every fit, which docs/checks.md lists with their signs and remedies, and:

        - "number of classes", fewer than 20, and "number of errors", fewer than 10 or in fewer than
          5 classes: notes alone;
        - "reach of the ranks": up to how many classes the ranks determine the accuracy to within
          0.2 without a prior (`MomentBounds`), a note alone if they do not on the pilot's own
          classes;
        - "copies of instances": above 1% repeat the scores of others;
        - "copies of classes": above 0.5% have exactly the scores of another. Also look at the best
          wrong pairs of `SourceTask.nearest_classes`;
        - "groups of classes": confusions fall into separate groups of classes;
        - "order of classes": confusions join classes that are next to each other, a note alone;
        - "normalisation of scores": a note alone.

    Raises
    ------
    DataError
        If `task` is not a task.

    See Also
    --------
    measure_drift : Whether, and how much, the scores of a class depend on its competitors.

    Notes
    -----
    A check fails if the data are probably faulty. A note is worth reading and no fault: a small
    pilot, or one of a very accurate classifier, has few classes or few errors. "Ties" states a
    fact. On sound simulated tasks the other checks failed in at most 1% of cases.

    Examples
    --------
    >>> scores = np.random.default_rng(1).normal(size=(60, 30)) + 3 * np.eye(30)[np.arange(60) % 30]
    >>> from classex_bayes import SourceTask
    >>> task = SourceTask.from_scores(scores, np.arange(60) % 30, higher_is_better=False)
    >>> report = diagnose(task, random_seed=1)
    >>> report.passed, [check.name for check in report.warnings]
    (False, ['accuracy on few classes'])
    """
    source_task(task)
    table = task.table
    checks = {check.name: check for check in task.checks}
    checks[_REACH] = _reach(task)
    nouns = table.provenance.nouns
    found = f"{task.n_test} {'test ' * (nouns is CLASSES)}{nouns.instances}"
    title = f"{task.n_classes} {nouns.ranked}, {found} from {table.made_from}"
    exact = table.answered if isinstance(table, RankTable) and table.is_exact else None
    if exact is None or exact.source is None:
        unknown = [name for name in _NEED_RANKS + _NEED_SCORES if name not in checks]
        reason = f"needs scores; the task was made from {table.made_from}"
        if exact is not None and exact.influence is not None:
            reason = "needs scores of all classes, which are no longer at hand"
        return TaskReport((*checks.values(), *_unknown(unknown, reason)), title)
    rng = np.random.default_rng(seed_sequence(random_seed))
    facts = ScoreFacts(exact, rng)
    of_scores = [_copies_of_instances(facts), _copies_of_classes(facts.sketch, task.classes)]
    if table.is_simple_random:
        of_scores += [_groups(facts.edges), _order(facts.edges, task, rng)]
    else:
        of_scores += _unknown((_GROUPS, _ORDER), "the groups that the classes came in are known")
    of_scores.append(_normalisation(facts))
    return TaskReport((*checks.values(), *of_scores), title, _class_errors(exact, facts))


def _class_errors(table: RankTable, facts: ScoreFacts) -> ClassErrors:
    repeats = np.bincount(table.y, minlength=table.n_classes)
    wrong = np.bincount(table.y, table.n_better > 0, minlength=table.n_classes)
    squares = RankVariance(table).unit_influence[:, -1] ** 2
    total = squares.sum()
    share = squares / total if total > 0 else np.full(squares.size, 1 / squares.size)
    return ClassErrors(
        wrong / np.maximum(repeats, 1), facts.as_competitor, share, participation(squares)
    )


def _reach(task: SourceTask) -> Check:
    """Whether the limits without a prior are within 0.2 on the classes of the pilot.

    The value is the number of classes up to which they are (`MomentBounds.reach`).
    """
    if not isinstance(task.table, RankTable):
        return Check(_REACH, None, f"needs ranks; the task was made from {task.table.made_from}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # its checks are in the same diagnosis
        value = float(MomentBounds().fit(task).reach())
    enough = value >= task.n_classes
    number = f"{value:,.0f}" if np.isfinite(value) else "any number of"
    classes = f"{number} class{'es' if value > 1 else ''}"
    limits = interval_name(interval_settings(None, None)[0], "limits")
    sentence = f"the ranks determine the accuracy to within {REACHED:g} without a prior ({limits})"
    sentence += f" up to {classes}"
    if not enough:
        sentence += f", fewer than the {task.n_classes:,} tested; test more classes"
    return noted(_REACH, enough, sentence, value, float(task.n_classes))


def _copies_of_instances(facts: ScoreFacts) -> Check:
    """Share of instances whose scores equal those of an earlier one, among rows of many values."""
    n = int(facts.distinctive.sum())
    if n < facts.row_hash.size / 2:
        return Check(_ROWS, None, "most rows have too few different scores to be distinguished")
    value = 1 - np.unique(facts.row_hash[facts.distinctive]).size / n
    passed = value <= _MOST_REPEATED
    sentence = f"{round(value * n)} of {n} instances repeat the scores of another"
    if not passed:
        sentence += "; remove these copies, because with them intervals are too short"
    return Check(_ROWS, passed, sentence, value, _MOST_REPEATED)


def _copies_of_classes(sketch: FloatArray, names: Sequence[Any] | None) -> Check:
    """Share of classes whose scores equal another's, to 1e-6 of the scores' spread."""
    order = np.argsort(sketch[:, 0], kind="stable")
    gap = np.diff(sketch[order], axis=0)
    same = np.sqrt((gap**2).mean(axis=1)) <= _SAME_COLUMN
    value = float(same.sum()) / len(sketch)
    passed = value <= _MOST_DOUBLE_CLASSES
    sentence = f"{same.sum()} of {len(sketch)} classes have the scores of another"
    if same.any():
        place = int(np.argmax(same))
        pair = sorted(order[place : place + 2].tolist())
        first, second = (j if names is None else names[j] for j in pair)
        sentence += f", such as {first!r} and {second!r}"
    if not passed:
        sentence += (
            "; merge classes that cannot be distinguished, because with them accuracy falls "
            "too fast"
        )
    return Check(_COLUMNS, passed, sentence, value, _MOST_DOUBLE_CLASSES)


def _groups(edges: IntArray) -> Check:
    """Whether the graph of confusions has several large components, as with classes in groups.

    The value is `linked_share`. Graphs of classes in two or more dimensions are connected from
    about 4 confusions per class on, so graphs with fewer are not checked. The check does not
    detect groups that are sometimes confused with each other. Classes drawn one by one from a
    population with groups are sound. Only the user can distinguish these from classes that were
    drawn in groups.
    """
    degree = mean_degree(edges)
    if degree < _SMALLEST_DEGREE:
        needed = f"needs {_SMALLEST_DEGREE:g} confusions per class to detect groups"
        return Check(_GROUPS, None, f"{needed}, found {degree:.1f}")
    value = linked_share(edges)
    sentence = f"{100 * value:.0f}% of pairs of classes are linked by a chain of confusions"
    passed = value >= _SMALLEST_LINKED
    if not passed:
        sentence += f"; classes form groups. {_IN_GROUPS}, the group of each class"
    return Check(_GROUPS, passed, sentence, value, _SMALLEST_LINKED)


def _order(edges: IntArray, task: SourceTask, rng: np.random.Generator) -> Check:
    """Whether confusions join classes at most 10 places apart more often than in random orders.

    They do if the classes of a group are adjacent. They also do if classes drawn one by one were
    sorted. The check is therefore a note and never fails. It is not a note if the names are in
    alphabetical order, because similar classes often have similar names.
    """
    if not len(edges):
        return Check(_ORDER, None, "no classes are confused")

    def near(order: IntArray) -> float:
        return float((np.abs(np.diff(order[edges], axis=1)) <= _NEIGHBOURS).mean())

    value = near(np.arange(task.n_classes))
    at_random = np.array([near(rng.permutation(task.n_classes)) for _ in range(_N_RANDOM)])
    sentence = (
        f"{100 * value:.0f}% of confusions join classes at most {_NEIGHBOURS} places apart, "
        f"compared with {100 * at_random.mean():.0f}% in random orders"
    )
    gathered = (1 + int((at_random >= value).sum())) / (_N_RANDOM + 1) <= _LEVEL
    names = [*map(str, task.classes or ())]
    alphabetical = bool(names) and names == sorted(names)
    if gathered and alphabetical:
        sentence += ". The names are in alphabetical order, and similar classes have similar names"
    elif gathered:
        sentence += f". Adjacent classes are similar. {_IN_GROUPS}"
    return Check(_ORDER, True, sentence, value, is_note=gathered and not alphabetical)


def _normalisation(facts: ScoreFacts) -> Check:
    """Whether rows are probabilities or standardised over the classes; a note, never a failure.

    Normalising a row keeps the order of its classes, so ranks and predictions stay the same. A
    softmax of fixed logits is marginal in effect. Normalised scores suggest joint training, which
    only `measure_drift` can assess. Rates at a threshold need scores that do not depend on the
    other classes, so standardised rows (z-norm, t-norm) have no threshold for more classes.
    """
    if facts.sums_to_one or facts.log_sums_to_one:
        kind = "probabilities" if facts.sums_to_one else "log probabilities"
        sentence = (
            f"rows are {kind} over the classes, which does not change ranks; if the classifier was "
            "trained jointly on these classes, test it with measure_drift"
        )
    elif facts.same_moments:
        sentence = (
            "all rows have the same mean and standard deviation, as after z-norm or t-norm. This "
            "does not change ranks, but such scores depend on the other classes: give rates at a "
            "threshold the scores before normalisation"
        )
    else:
        return Check(_NORMALISED, True, "rows are not probabilities over the classes", 0.0)
    return Check(_NORMALISED, True, sentence, 1.0, is_note=True)


def _unknown(names: Sequence[str], reason: str) -> list[Check]:
    """Checks that cannot be made for the given reason."""
    return [Check(name, None, reason) for name in names]
