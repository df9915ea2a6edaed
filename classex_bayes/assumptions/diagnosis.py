"""Diagnosis: all rules on one task, with those that read all scores once more.

For sound tasks, most of the measured numbers are 0 or far from their limits.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from classex_bayes.arguments import seed_sequence, source_task
from classex_bayes.core.rank_pass import RankBlock, row_groups
from classex_bayes.core.ranks.sample import Sample
from classex_bayes.estimators.moment_bounds import MomentBounds
from classex_bayes.exceptions import DataWarning
from classex_bayes.formatting import by_fields
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results.check_report import CheckReport
from classex_bayes.results.draws import interval_name, interval_settings
from classex_bayes.results.extrapolation import REACHED
from classex_bayes.task.provenance import CLASSES
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.rank_variance import RankVariance
from classex_bayes.task.rules import Rule, sums_to_one
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import BoolArray, FloatArray, IntArray, RandomSeed

_MOST_EDGES = 50_000  # confusions kept for the graph
_CLOSE = 0.1  # share of the classes; an instance that more classes beat does not show similarity
_DISTINCT_VALUES = 10  # a row with fewer different scores may occur twice by chance


@dataclass(frozen=True, eq=False)
class ClassErrors:
    """Contribution of every class to the errors, for plots; arrays of shape (n_classes,)."""

    missed: FloatArray  # share of the class's instances that are wrong at k1; 0 without instances
    beaten: FloatArray  # share of the other classes' instances that it beats as a competitor
    influence: FloatArray  # share of the sum of squared influences on ATA_k; sums to 1
    n_classes_effective: float  # participation number of the influences
    __repr__ = by_fields


@dataclass(frozen=True, repr=False, eq=False)
class TaskReport(CheckReport):
    """Checks of a task; made by `diagnose`.

    Attributes
    ----------
    checks : tuple of Finding
        Findings in a fixed order. ``report["ties"]`` is that of the rule "ties".
    title : str
        Title of the report.
    class_errors : ClassErrors or None
        Contribution of each class to the errors; None if scores are unknown.
    """

    plot = PlotMethod("plot_diagnosis")

    class_errors: ClassErrors | None = None


def diagnose(task: SourceTask, *, random_seed: RandomSeed = None) -> TaskReport:
    """Check a task for problems that make an extrapolation unreliable.

    The checks take one more pass over the scores in blocks, in memory of order k1 + n.

    Parameters
    ----------
    task : SourceTask
        Any task. Rules that do not apply have passed None, and say which data they need.
    random_seed : int, SeedSequence or None
        Seed of random projections of the scores, and of the classes whose confusions are kept.

    Returns
    -------
    TaskReport
        The findings of every fit, which docs/checks.md lists with their signs and remedies, and:

        - "reach of the ranks": up to how many classes the ranks determine the accuracy to within
          0.2 without a prior (`MomentBounds`), a note alone if they do not on the pilot's own
          classes;
        - "copies of instances": above 1% repeat the scores of others;
        - "copies of classes": above 0.5% have exactly the scores of another. Also look at the best
          wrong pairs of `SourceTask.nearest_classes`;
        - "groups of classes": confusions fall into separate groups of classes.

    See Also
    --------
    measure_drift : Whether, and how much, the scores of a class depend on its competitors.

    Notes
    -----
    A rule fails if the data are probably faulty. A note is worth reading and no fault: a small
    pilot, or one of a very accurate classifier, has few classes or few errors.

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
    nouns = table.provenance.nouns
    found = f"{task.n_test} {'test ' * (nouns is CLASSES)}{nouns.instances}"
    title = f"{task.n_classes} {nouns.ranked}, {found} from {table.made_from}"
    diagnosed = Diagnosed(task, np.random.default_rng(seed_sequence(random_seed)))
    findings = (*task.checks, *(rule.finding(diagnosed) for rule in RULES_OF_ALL_SCORES))
    return TaskReport(findings, title, diagnosed.class_errors)


class Diagnosed:
    """A task, and facts of one more pass over its scores, made where a rule asks for them."""

    def __init__(self, task: SourceTask, rng: np.random.Generator) -> None:
        self.task, self.rng = task, rng

    @cached_property
    def facts(self) -> "ScoreFacts | None":
        """Facts of all scores; None if these or the ranks are unknown."""
        table = self.task.table
        exact = table.answered if isinstance(table, RankTable) and table.is_exact else None
        return None if exact is None or exact.all_scores is None else ScoreFacts(exact, self.rng)

    @cached_property
    def sample(self) -> Sample | None:
        """First rows of the scores of all classes."""
        table = self.task.table
        return table.first_rows if isinstance(table, RankTable) and table.influence else None

    @cached_property
    def are_probabilities(self) -> bool:
        """Whether scores are made of probabilities over the classes."""
        return self.sample is not None and sums_to_one(self.sample.scores)

    @property
    def class_errors(self) -> ClassErrors | None:
        """Contribution of each class to the errors; None without scores."""
        if self.facts is None:
            return None
        table = self.facts.table
        repeats = np.bincount(table.y, minlength=table.n_classes)
        wrong = np.bincount(table.y, table.n_better > 0, minlength=table.n_classes)
        squares = RankVariance(table).unit_influence[:, -1] ** 2
        total = squares.sum()
        share = squares / total if total > 0 else np.full(squares.size, 1 / squares.size)
        missed, beaten = wrong / np.maximum(repeats, 1), self.facts.as_competitor
        effective = 1 / float((share**2).sum())  # their participation number
        return ClassErrors(missed, beaten, share, effective)


class ScoreFacts:
    """Facts from one pass over the scores, in O(k1 + n) memory."""

    def __init__(self, table: RankTable, rng: np.random.Generator) -> None:
        assert table.source is not None
        self.table = table
        y, weight, n_better = table.y, table.weight, table.n_better
        self._source = table.source
        n, n_classes = table.source.shape
        confusions = int(n_better[n_better <= _most_better(n_classes)].sum())
        share = min(1.0, float(np.sqrt(_MOST_EDGES / max(confusions, 1))))
        kept = np.zeros(n_classes, dtype=bool)
        kept[rng.permutation(n_classes)[: max(3, int(share * n_classes))]] = True
        self.row_hash = np.empty(n, dtype=np.int64)  # equal for equal rows of scores
        self.distinctive = np.zeros(n, dtype=bool)  # rows with enough different scores
        as_competitor, edges = np.zeros((n_classes, 1)), []
        for block in table.blocks(row_groups(y, n_classes)):
            gain = weight[block.rows, None]
            block.defeats.add_gains(block.n_better, gain, as_competitor)
            edges.append(_edges(block, y[block.rows], kept))
            self._add(block.rows)
        self.as_competitor = as_competitor[:, 0]  # (k1,): weight of the instances that each beats
        # Confusions (n_edges, 2): a test class, and a competitor that beat one of its instances.
        # They are those of a random subset of the classes if there are too many.
        self.edges = np.unique(np.concatenate(edges), axis=0)

    def _add(self, rows: IntArray) -> None:
        scores = self._source.scores(rows) + 0.0  # a negative zero equals zero
        self.row_hash[rows] = [hash(row.tobytes()) for row in scores]
        some = np.sort(scores[:, :200], axis=1)
        different = 1 + (some[:, 1:] > some[:, :-1]).sum(axis=1)
        whole = bool(np.all(some == np.floor(some)))
        enough = _DISTINCT_VALUES if whole else min(scores.shape[1], _DISTINCT_VALUES)
        self.distinctive[rows] = different >= enough


def _most_better(n_classes: int) -> int:
    return max(3, int(_CLOSE * n_classes))


def _edges(block: RankBlock, y: IntArray, kept: BoolArray) -> IntArray:
    """Pairs (test class, competitor that beat it) among the kept classes, from close defeats."""
    close = (block.n_better > 0) & (block.n_better <= _most_better(kept.size)) & kept[y]
    rows = np.flatnonzero(close)
    places, competitors = block.defeats.pairs(rows)
    pairs = np.stack([y[rows[places]], competitors], axis=1)
    return np.unique(pairs[kept[competitors]], axis=0)


# Rules


def _reach(diagnosed: Diagnosed) -> Mapping[str, Any] | None:
    """Number of classes up to which the limits without a prior are within 0.2."""
    if not isinstance(diagnosed.task.table, RankTable):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # its findings are in the same diagnosis
        value = float(MomentBounds().fit(diagnosed.task).reach())
    number = f"{value:,.0f}" if np.isfinite(value) else "any number of"
    k1 = diagnosed.task.n_classes
    limits = interval_name(interval_settings(None, None)[0], "limits")
    return {"value": value, "limit": k1, "number": number, "limits": limits, "within": REACHED}


def _same_rows(diagnosed: Diagnosed) -> Mapping[str, Any] | None:
    """Share of the instances whose scores equal those of an earlier one, of many values."""
    facts = diagnosed.facts
    if facts is None or 2 * (n := int(facts.distinctive.sum())) < facts.row_hash.size:
        return None
    value = 1 - np.unique(facts.row_hash[facts.distinctive]).size / n
    return {"value": value, "same": round(value * n), "n": n}


def _same_columns(diagnosed: Diagnosed) -> Mapping[str, Any] | None:
    r"""Share of the classes whose scores in the first rows equal another's.

    Columns are compared through projections :math:`\sum_i z_i (m_j(x_i) - \overline{m}(x_i)) /
    \sqrt n` on standard normal z, whose difference between two classes has the mean square of the
    scores' difference. It may be rounding, 1e-6 of the spread of the scores. Classes that are ruled
    out by a score of -inf have the lowest other one, less 1.
    """
    sample, names = diagnosed.sample, diagnosed.task.classes
    if sample is None or diagnosed.are_probabilities:  # many of these are nearly 0
        return None
    scores = np.empty((sample.y.size, diagnosed.task.n_classes))
    columns = np.column_stack([sample.y, sample.classes]).astype(np.int64)
    np.put_along_axis(scores, columns, sample.scores, axis=1)
    lowest = np.where(np.isfinite(scores), scores, np.inf).min(axis=1, keepdims=True)
    scores = np.where(np.isfinite(scores), scores, lowest - 1)
    scores -= scores.mean(axis=1, keepdims=True)
    directions = diagnosed.rng.standard_normal((len(scores), 16))
    sketch = scores.T @ directions / (np.linalg.norm(scores) / scores.shape[1] ** 0.5 or 1.0)
    order = np.argsort(sketch[:, 0], kind="stable")
    same = np.sqrt((np.diff(sketch[order], axis=0) ** 2).mean(axis=1)) <= 1e-6
    pair = ""
    if same.any():
        place = int(np.argmax(same))
        numbers = sorted(order[place : place + 2].tolist())
        first, second = (j if names is None else names[j] for j in numbers)
        pair = f", such as {first!r} and {second!r}"
    return {"value": same.sum() / len(sketch), "same": same.sum(), "n": len(sketch), "pair": pair}


def _linked(diagnosed: Diagnosed) -> Mapping[str, Any] | None:
    r"""Probability that two confused classes are linked by a chain of confusions.

    With pieces of :math:`c_1, c_2, \dots` classes among the n classes that are confused with any,
    :math:`\sum_m (c_m / n)^2`. Random graphs of classes in two or more dimensions are connected if
    each class has four confusions. Classes drawn one by one from a population with groups are
    sound. Only the user can distinguish these from classes that were drawn in groups.
    """
    if diagnosed.facts is None or not diagnosed.task.table.is_simple_random:
        return None
    pairs = np.unique(np.sort(diagnosed.facts.edges, axis=1), axis=0)
    of_classes, ends = np.unique(pairs, return_inverse=True)
    n = of_classes.size
    if not n or 2 * len(pairs) / n < 4:
        return None
    graph = csr_array((np.ones(len(pairs)), tuple(ends.reshape(pairs.shape).T)), shape=(n, n))
    _, piece = connected_components(graph, directed=False)
    return {"value": float(((np.bincount(piece) / n) ** 2).sum())}


RULES_OF_ALL_SCORES = (
    Rule(
        "reach of the ranks", _reach,
        np.nan,  # the number of classes of the pilot
        "the ranks determine the accuracy to within {within:g} without a prior ({limits}) up to "
        "{number} classes",
        ", fewer than the {limit:,.0f} tested; test more classes",
        at_least=True, is_note=True, needs="ranks",
    ),
    Rule(
        "copies of instances", _same_rows,
        0.01,  # a copy among 100 instances
        "{same} of {n} instances repeat the scores of another",
        "; remove these copies, because with them intervals are too short",
        needs="scores with many different values",
    ),
    Rule(
        "copies of classes", _same_columns,
        0.005,  # a copy among 200 classes
        "{same} of {n} classes have the scores of another{pair}",
        "; merge classes that cannot be distinguished, because with them accuracy falls too fast",
        needs="scores of all classes that are no probabilities",
    ),
    Rule(
        "groups of classes", _linked,
        0.5,  # one piece has 1, two equal ones have 0.5
        "{value:.0%} of pairs of classes are linked by a chain of confusions",
        "; classes form groups. If they were sampled in groups (genera, families of products, "
        "authors) and not one by one, make the task with sampling=Sampling(groups=...), the group "
        "of each class",
        at_least=True, needs="scores of classes drawn one by one, with 4 confusions each",
    ),
)  # fmt: skip
