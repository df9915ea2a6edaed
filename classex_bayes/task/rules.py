"""Rules on the data of a task: what is measured, its limit, and the sentence for readers.

`RULES`, at the end, is the table. Each of its rows has a function above, which measures one number
on the finished ranks or on the first rows of scores, and the reason for its limit. Answers are
`Finding`s. A *warning* means that the data are probably faulty. A *note* is a sentence with every
prediction: each warning, and facts that sound data may have too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binom, hypergeom

from classex_bayes.core.influence import weight_effect
from classex_bayes.core.metrics import Accuracy
from classex_bayes.core.ranks.device import LARGEST_SUM
from classex_bayes.core.ranks.sample import Sample
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import folded
from classex_bayes.task.accuracy_curve import AccuracyCurve, UnlabelledVariance
from classex_bayes.task.provenance import CUT_RANKS, Nouns
from classex_bayes.task.rank_bins import bin_ends
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.rank_variance import RankVariance
from classex_bayes.typing import FloatArray

_FEWEST = 10  # rows, classes or errors; the standard error of fewer is itself uncertain
_WORDS = {True: "ok", False: "WARNING", None: "not checked"}


@dataclass(frozen=True)
class Finding:
    """Answer of one check: of a rule on the data, or of a fit.

    Attributes
    ----------
    name : str
        Name of the rule or check.
    passed : bool or None
        False if the data are probably faulty, or the fit is not reliable. None where the check does
        not apply.
    sentence : str
        The finding, its meaning and the remedy, or the data that the check needs.
    value : float
        Number that decided; NaN if nothing was measured.
    limit : float
        Limit that `value` was compared with; NaN if nothing was measured.
    is_note : bool
        Whether predictions show the sentence although the rule passed. It is a fact that sound
        data may have too.
    """

    name: str
    passed: bool | None
    sentence: str
    value: float = float("nan")
    limit: float = float("nan")
    is_note: bool = False

    @property
    def _word(self) -> str:
        return "note" if self.is_note else _WORDS[self.passed]

    @property
    def verdict(self) -> str:
        """The answer and the sentence: "WARNING: ..."."""
        return f"{self._word}: {self.sentence}"

    def __repr__(self) -> str:
        """One line: the verdict, the name and the sentence."""
        return folded(f"{self._word:<11}  {self.name}: {self.sentence}", indent=13)


@dataclass(frozen=True)
class Rule:
    """What is measured, its limit, and the sentence that is made from the numbers.

    `measure` returns numbers by name, "value" among them, or None where the rule does not apply. A
    "limit" among them replaces that of the rule. Both sentences are formatted with the numbers;
    `advice` follows where the value is beyond the limit.
    """

    name: str
    measure: Callable[[Any], Mapping[str, Any] | None]
    limit: float
    sentence: str
    advice: str = ""
    at_least: bool = False  # the limit is the smallest value that passes, not the largest
    is_note: bool = False  # beyond the limit are facts that sound data may have too
    needs: str = "scores of all classes"

    def finding(self, data: Any) -> Finding:
        """Answer for the data that `measure` takes."""
        measured = self.measure(data)
        if measured is None:
            return Finding(self.name, None, f"needs {self.needs}")
        numbers = {"limit": self.limit, **measured}
        value, limit = float(numbers["value"]), float(numbers["limit"])
        beyond = value < limit if self.at_least else value > limit
        sentence = (self.sentence + self.advice * beyond).format(**numbers)
        return Finding(
            self.name, not beyond or self.is_note, sentence, value, limit, beyond and self.is_note
        )


class Tested(NamedTuple):
    """A task as rules see it."""

    table: Any  # RankTable, or AccuracyCurve for rules `OF_CURVES`
    variance: Any  # RankVariance, or UnlabelledVariance
    names: Sequence[Any] | None  # of the classes

    @property
    def nouns(self) -> Nouns:
        """Words for what the test is about."""
        nouns: Nouns = self.table.provenance.nouns
        return nouns

    @property
    def scores(self) -> Sample | None:
        """First rows of scores, of all classes or of lists."""
        sample: Sample | None = self.table.first_rows
        return sample if sample is not None and sample.has_scores else None

    @property
    def matrix(self) -> Sample | None:
        """First rows of scores of all classes."""
        return None if self.table.influence is None else self.scores

    @property
    def lists(self) -> Sample | None:
        """First lists."""
        lists: Sample | None = self.table.first_rows if self.table.influence is None else None
        return lists

    def name(self, number: int) -> Any:
        """Name of a class."""
        return number if self.names is None else repr(self.names[number])


def findings_of(
    variance: RankVariance | UnlabelledVariance, names: Sequence[Any] | None
) -> tuple[Finding, ...]:
    """Answers of all rules on the table of a variance, whose classes have `names`."""
    table = variance.table
    if table.provenance.is_part:  # of a test that is checked as a whole
        return ()
    tested = Tested(table, variance, names)
    return tuple(rule.finding(tested) for rule in (RULES if table.has_ranks else OF_CURVES))


# Measures: the sample is large enough


def _classes(tested: Tested) -> Mapping[str, Any]:
    r"""Effective number of classes :math:`1 / \sum_l w_l^2`."""
    # Without labels, users with negatives of their own have one instance each.
    n = tested.table.n_classes if tested.table.competitors_shared else tested.table.n_test
    effective = float(n)
    if tested.table.is_labelled:
        weight = tested.table.class_weight
        n = int(np.count_nonzero(weight))
        effective = float(n / weight_effect(weight))  # exactly n for equal weights
    found = f"{n:,} {tested.nouns.units}"
    if effective < n:
        found += f", with these weights as informative as {effective:.1f} equally weighted ones,"
    return {"value": effective, "found": found}


def _errors(tested: Tested) -> Mapping[str, Any]:
    """Number of instances with errors, or twice that of their classes if these are fewer."""
    table = tested.table
    erring = table.n_better > 0
    n, n_classes = np.count_nonzero(erring), np.unique(table.y[erring]).size
    instances = tested.nouns.true if table.provenance.is_part else tested.nouns.instances
    at_least = "at least " * bool((table.bounded & ~erring).any())
    found = f"{at_least}{n} of {table.n_test:,} {instances} lost to a competitor"
    found += f", in {n_classes} of the {tested.nouns.units}" * bool(n and table.is_labelled)
    if n == 0:
        found += (
            ". See whether the classifier was trained on them, or they are compared with "
            "themselves, with near copies, such as shots of one camera, or with templates that "
            "contain them, such as the mean of all images of a class"
        )
    return {"value": min(n, 2 * n_classes), "found": found, "nouns": tested.nouns}


# Measures: ranks show the decline


def _decline(tested: Tested) -> Mapping[str, Any] | None:
    """Number of accuracies, or of ends of bins of ranks, whose shares the data determine."""
    table = tested.table
    if not table.has_ranks:
        number = table.k.size
    elif table.is_exact or not table.bounded.any():
        return None
    else:
        try:
            number = bin_ends(table).size - 1
        except DataError:  # which a fit to this table alone raises
            return None
    among = table.n_classes if table.has_ranks or number > 1 else int(table.k[0])
    found = f"{number} shares of instances" if number > 1 else "one share of instances"
    ranked = tested.nouns.ranked
    return {"value": number, "found": found, "ranked": ranked, "among": f"{among:,} {ranked}"}


def _beyond(tested: Tested) -> Mapping[str, Any] | None:
    """Share of the misses among all classes that rank beyond the largest m of several recalls."""
    table = tested.table
    if table.is_labelled or not table.has_ranks:
        return None
    missed, largest = table.min_better > 0, int(table.min_better.max())
    smallest = int(table.max_better[~missed].max(initial=0)) + 1
    if not missed.any() or largest <= smallest or missed.all():
        return None
    beyond = table.weight[table.min_better == largest].sum() / table.weight[missed].sum()
    return {"value": float(beyond), "m": largest}


def _pool(tested: Tested) -> Mapping[str, Any] | None:
    """Instances for each unit, if candidates may have been drawn again and again from few classes.

    Nothing in the data shows it, but users hardly have so many test items.
    """
    table = tested.table
    if table.competitors_shared or table.pool is not None or not table.is_labelled:
        return None
    n_units = np.unique(table.y).size
    return {"value": table.n_test / n_units, "n": n_units, "nouns": tested.nouns}


def _weights(tested: Tested) -> Mapping[str, Any] | None:
    """How far the accuracy with equal weights of the instances is from that of the classes.

    It is 0 unless classes with many instances are clearly better, or worse: the correlation with
    the logarithms of the numbers is three standard errors. If all classes are tested, they are what
    was drawn, and not users or queries.
    """
    table, k = tested.table, tested.table.grid()[-1:]
    if not (table.is_labelled and table.is_simple_random and k.size):
        return None
    counts, weight = np.bincount(table.y, minlength=table.n_classes), table.class_weight
    drawn = counts > 0
    log_counts = np.log(counts[drawn])
    if drawn.all() or not log_counts.std():
        return None
    if not np.allclose(weight[drawn], 1 / log_counts.size):
        return None
    right = tested.variance.unit_means(k)[drawn, 0]
    alike, of_instances = float(right.mean()), float(np.average(right, weights=counts[drawn]))
    correlation = np.corrcoef(log_counts, right)[0, 1] if right.std() else 0.0
    value = abs(of_instances - alike) * (abs(correlation) * right.size**0.5 > 3)
    numbers = {"alike": alike, "of_instances": of_instances}
    return {"value": value, **numbers, "nouns": tested.nouns}


# Measures: true classes score better than wrong ones


def _chance(tested: Tested) -> Mapping[str, Any] | None:
    """Accuracy among the fewest classes at which it is known, where guessing gives 1 / k.

    It has to be better by two standard errors of guesses. The limit is at most 0.15 above guessing,
    because good classifiers do not reach more with few instances. An accuracy curve has no
    instances, and siblings, which are hard to tell apart, are left out.
    """
    if isinstance(curve := tested.table, AccuracyCurve):
        k, accuracy, margin = int(curve.k[0]), float(curve.values[0]), 0.0
    else:
        table = replace(tested.table.answered, siblings=None, siblings_better=None)
        variance = RankVariance(table) if table.is_labelled else tested.variance
        independent = table.n_test / variance.design_effect
        if not (grid := table.grid()).size or independent < _FEWEST / 2:
            return None
        k = int(grid[0])
        accuracy = float(table.metric_bounds(Accuracy(), grid[:1])[1][0])
        margin = min(2 * (1 / k * (1 - 1 / k) / independent) ** 0.5, 0.15)
    order = {
        "classes": "y is in another order than the scores, counts from 1 or numbers other classes",
        "documents": "run and qrels name queries or documents differently",
        "items": "the true item is not first in its row",
    }[tested.nouns.ranked]
    numbers = {"value": accuracy, "limit": 1 / k + margin, "k": k, "guess": 1 / k}
    return {**numbers, "ranked": tested.nouns.ranked, "order": order}


def _order(tested: Tested) -> Mapping[str, Any] | None:
    """Mean share of the listed wrong classes before the true one, in standard errors above 1/2."""
    if (lists := tested.lists) is None:
        return None
    n_wrong = (lists.classes >= 0).sum(axis=1)
    rows = (n_wrong > 0) & np.isfinite(lists.true)
    _, of_class = np.unique(lists.y[rows], return_inverse=True)
    number = np.bincount(of_class)
    if number.size < _FEWEST:
        return None
    before = (lists.wrong > lists.true[:, None]).sum(axis=1)[rows] / n_wrong[rows]
    share = np.bincount(of_class, before) / number
    mean, error = float(share.mean()), float(share.std()) / number.size**0.5
    value = (mean - 0.5) / max(error, np.finfo(float).eps)
    return {"value": value, "share": mean, "true": tested.nouns.true}


# Measures: one place or one class has too many instances


def _dominant(tested: Tested) -> Mapping[str, Any] | None:
    """Largest share of the instances for which one wrong class is the best, and the only one.

    Hubs of weak classifiers reach a fifth only if vectors of few dimensions are compared by dot
    products, or if there are few classes, where the limit is six times an equal share.
    """
    if (sample := tested.matrix) is None or sample.y.size < _FEWEST:
        return None
    best = sample.best_wrong
    wins = (sample.wrong == best[:, None]).sum(axis=1) == 1
    number = np.bincount(sample.first[wins & (best > sample.true)], minlength=1)
    share, limit = number.max() / sample.y.size, max(0.2, 6 / tested.table.n_classes)
    return {"value": share, "limit": limit, "name": tested.name(int(number.argmax()))}


def _ties(tested: Tested) -> Mapping[str, Any] | None:
    """How far the rule for ties moves the accuracy among k1 / 2 to k1 classes, in standard errors.

    Among fewer classes, ties behind better competitors would count that hardly matter. The standard
    error is at least that of four errors.
    """
    table, counts = tested.table, tested.table.counts
    k = table.grid()
    if counts is None or not k.size or table.are_decisions:
        return None
    k = k[2 * k >= k[-1]]
    if table.design is None:
        worst, best = table.with_open_ties().metric_bounds(Accuracy(), k)
    else:
        worst, best = (
            Accuracy().average(n_better, table.n_classes, k, table.weight)
            for n_better in (counts.max_better, counts.min_better)
        )
    square = np.maximum(np.diag(tested.variance.covariance(k)), 4 / table.n_test**2)
    remedy = "Pass scores with more digits"
    if table.competitors_shared:
        remedy = (
            "Merge classes that are copies of others (diagnose names them), or pass scores with "
            "more digits, or ties='unknown' if the ties hide an order"
        )
    return {
        "value": ((best - worst) / np.sqrt(square)).max(),
        "touched": int(np.count_nonzero(counts.min_better < counts.max_better)),
        "n": table.n_test,
        "ties": table.ties,
        "remedy": remedy,
    }


def _last(tested: Tested) -> Mapping[str, Any] | None:
    """Share of the instances that lose to all competitors, if there is a gap before them.

    A search that failed loses to all of them, or is tied with the worst. Laws of favorability are
    smooth, so instances that rank last by their scores come with others that lose to most. If most
    instances are last, the sign is reversed.
    """
    table, counts = tested.table, tested.table.counts
    if not table.is_exact:
        return None
    ends = table if counts is None or table.design is not None else counts
    low = (2 * ends.min_better >= table.n_competitors) & ~table.unanswered
    last = low & (ends.max_better >= table.n_competitors) & (table.n_competitors > 1)
    n, n_others = np.count_nonzero(last), np.count_nonzero(low & ~last)
    is_atom = _FEWEST <= n <= table.n_test / 2 and n > 3 * n_others
    return {"value": n / table.n_test if is_atom else 0.0, "n": n, "most": n_others}


def _reranked(tested: Tested) -> Mapping[str, Any] | None:
    """Probability of so few true classes behind the first quarter of lists of one system.

    Among the r best entries of one system the number of true classes grows at least like the power
    of r that finds all of them among all classes. A second model moves the true classes to the top
    that a first one listed, and those that the first one, or an index, missed stay missing.
    """
    table = tested.table
    missed = table.bounded & (table.provenance.unknown == CUT_RANKS)  # not ties or decisions
    listed = ~missed & ~table.unanswered
    n_listed, n_missed = int(listed.sum()), int(missed.sum())
    length = int(table.min_better[missed].max(initial=0))
    if not _FEWEST <= length < table.n_classes or not n_listed:
        return None
    first = -(-length // 4)
    late = int((listed & (table.min_better >= first)).sum())
    power = np.log1p(n_missed / n_listed) / np.log(table.n_classes / length)
    chance = binom.cdf(late, n_listed, 1 - (first / length) ** power)
    numbers = {"late": late, "first": first, "missed": n_missed, "length": length}
    return {"value": chance, **numbers, "true": tested.nouns.true}


def _candidates(tested: Tested) -> Mapping[str, Any] | None:
    """Number of wrong classes that pairs of lists share, as a multiple of that of random lists.

    Two random lists of :math:`m_i` and :math:`m_j` classes out of k1 share :math:`m_i m_j / k_1` of
    them, and more if they are the best of all classes. If chance gives 15, a quarter of them has a
    probability of 2e-4. Lists of one or two neighbours may differ, as on a ring.
    """
    lists, n_classes = tested.lists, tested.table.n_classes
    if lists is None or not tested.table.competitors_shared:
        return None
    row, place = np.nonzero(lists.classes >= 0)
    # A class may have several entries in a list.
    pairs = np.unique(row * n_classes + lists.classes[row, place])
    sizes, listed = (np.bincount(part).astype(float) for part in np.divmod(pairs, n_classes))
    by_chance = float(sizes.sum() ** 2 - (sizes**2).sum()) / (2 * n_classes)
    if by_chance < 15 or pairs.size < 3 * np.unique(row).size:
        return None
    shared = float((listed * (listed - 1)).sum() / 2)
    numbers = {"shared": shared, "by_chance": by_chance, "of": n_classes}
    return {"value": shared / by_chance, **numbers}


def _entries_of_one_class(tested: Tested) -> Mapping[str, Any] | None:
    """Probability of so few tested classes among those that beat one class again and again.

    If several entries of a class compete and y names one of them, the others have no test instance.
    They beat instances of this class twice or more, and at least as many as of all other classes.
    Untested classes that are a random draw do so as often as tested ones. Those of a tenth of the
    classes hardly change the accuracy.
    """
    table, sample = tested.table, tested.table.first_rows
    if sample is None or not table.is_simple_random:
        return None
    is_tested = np.bincount(table.y, minlength=table.n_classes) > 0
    n_tested, repeats = np.count_nonzero(is_tested), np.bincount(sample.y)
    n_repeated = np.count_nonzero(repeats > 1)
    if min(n_repeated, table.n_classes - n_tested) < _FEWEST:
        return None
    nearest = np.argsort(-sample.wrong, axis=1, kind="stable")[:, :3]
    above = np.take_along_axis(sample.wrong, nearest, axis=1) > sample.true[:, None]
    winner = np.take_along_axis(sample.classes, nearest, axis=1)[above]
    loser = np.broadcast_to(sample.y[:, None], above.shape)[above]
    (winner, loser), n_wins = np.unique([winner, loser], axis=1, return_counts=True)
    again = (n_wins > 1) & (2 * n_wins >= np.bincount(winner, n_wins)[winner])
    found = np.unique(winner[again])
    n_found_tested = np.count_nonzero(is_tested[found])
    beaten = np.unique(loser[again & ~is_tested[winner]]).size
    chance = hypergeom.cdf(n_found_tested, table.n_classes - 1, n_tested - 1, found.size)
    value = chance if beaten > n_repeated / 10 else 1.0
    numbers = {"beaten": beaten, "of": n_repeated, "found": found.size}
    return {"value": value, **numbers, "tested": n_found_tested}


# Measures: scores show how near a class is


def _self_matches(tested: Tested) -> Mapping[str, Any] | None:
    """Share of the true scores that only a comparison with itself explains."""
    if (sample := tested.scores) is None:
        return None
    # Probabilities and their logarithms saturate.
    are_logs = sample.true.max() == 0 and not _are_distances(tested.table)
    limit = sample.self_match_limit()
    if are_logs or sums_to_one(sample.scores):
        limit = np.inf
    return {"value": float((sample.true > limit).mean())}


def _normalised(tested: Tested) -> Mapping[str, Any] | None:
    """Share of the rows of ranks, or of probabilities that were passed as distances.

    Rows of ranks contain the same numbers in another order. Probabilities that are passed as
    similarities are sound.
    """
    if (sample := tested.matrix) is None:
        return None
    if _are_distances(tested.table) and sums_to_one(sample.scores):
        kind = "1 minus probabilities over the classes, or minus their logarithms"
        return {"value": 1.0, "kind": kind}
    ordered = np.sort(sample.scores, axis=1)
    typical = np.sort(ordered, axis=0)[len(ordered) // 2]  # the medians
    if np.unique(typical).size < _FEWEST or len(ordered) < _FEWEST:
        return None
    share = float((ordered == typical).all(axis=1).mean())
    return {"value": share, "kind": "the same numbers in another order, as ranks are"}


def _percentages(tested: Tested) -> Mapping[str, Any] | None:
    """Sum of most rows of multiples of probabilities, whose logarithms the model does not take."""
    if (sample := tested.matrix) is None or _are_distances(tested.table):
        return None
    scores = sample.scores
    are_ranks = np.ptp(scores.max(axis=1)) == 0
    if scores.min() < 0 or are_ranks or not sums_to_one(scores):
        return None
    return {"value": float(np.median(scores.sum(axis=1)))}


def _rounded(tested: Tested) -> Mapping[str, Any] | None:
    """Share of the rows in which some of the best classes are tied at a probability of 0 or 1.

    Votes of up to 500 voters have no probabilities below 0.002, but a softmax that is rounded to 0
    has, in half precision or with three decimals. The tails of scores use the few nearest classes
    alone.
    """
    if (sample := tested.matrix) is None:
        return None
    scores = sample.scores
    are_tiny = (scores > 0) & (scores < 0.002)
    if scores.min() < 0 or scores.max() > 1 or not are_tiny.any():
        return None
    nearest = min(4, sample.wrong.shape[1])
    best = np.partition(sample.wrong, -nearest, axis=1)[:, -nearest:]
    some = np.sort(np.column_stack([sample.true, best]), axis=1)
    tied = (some[:, 1:] == some[:, :-1]) & ((some[:, 1:] == 0) | (some[:, 1:] == 1))
    return {"value": float(tied.any(axis=1).mean())}


def sums_to_one(scores: FloatArray) -> bool:
    """Whether scores (n, k1) are made of probabilities over the classes, which sum to 1.

    They are these probabilities, or a multiple of them, their logarithms, or minus the
    probabilities of all other classes. Their sums vary less than the best ones do, unlike those of
    scores that are nearly equal. Rows of zeros and a one are decisions.
    """
    if scores.min() >= 0:
        total = scores.sum(axis=1, keepdims=True)
        kinds = [scores / max(float(np.median(total)), np.finfo(float).tiny)]
    else:
        kinds = [1 + scores]
        probs = np.exp(np.minimum(scores, 1.0))
        rest = 1 - probs.max(axis=1)
        # Small distances of true classes are no logarithms: the others do not have the rest.
        if np.abs(probs.sum(axis=1) - 1).mean() <= rest.mean() / 2:
            kinds.append(probs)
    rounding = 1e-2  # of probabilities and their logarithms in half precision
    return any(
        probs.min() >= 0
        and probs.max(axis=1).min() < 1
        and bool((np.abs((total := probs.sum(axis=1)) - 1) <= rounding).all())
        and float(total.std()) <= np.finfo(np.float32).eps + float(probs.max(axis=1).std()) / 2
        for probs in kinds
    )


def _are_distances(table: RankTable) -> bool:
    """Whether the smallest scores are the best."""
    scored = table.source if table.nearest is None else table.nearest
    return scored is not None and scored.perfect == 0


_CLASSES = Rule(
    "number of classes", _classes,
    20,  # of fewer, the standard error of an accuracy may be above 0.5 / 20**0.5 = 0.11
    "{found}",
    " are few. Rely on intervals and not on means or point estimates, and test {limit:.0f} or "
    "more. If they are ways of episodes, use SourceTask.from_negatives with pool=",
    at_least=True, is_note=True,
)  # fmt: skip
_GUESSING = Rule(
    "accuracy on few classes", _chance,
    np.nan,  # two standard errors of guesses, at most 0.15, above 1 / k
    "the accuracy among {k} {ranked} is {value:.3f}; guessing gives {guess:.3g}",
    ". True classes score no better than wrong ones. Check whether the sign of the scores is "
    "reversed (higher_is_better=False for distances, else higher_is_better=True), or {order}",
    at_least=True, needs="a known accuracy and five independent instances",
)  # fmt: skip
ERRORS = Rule(
    "number of errors", _errors,
    _FEWEST,
    "{found}",
    ". So few errors, or of so few {nouns.units}, hardly show how fast the accuracy falls, and "
    "the model or its prior dominates. Test more {nouns.ranked} or {nouns.instances} until "
    "{limit:.0f} or more are wrong, of 5 {nouns.units} or more",
    at_least=True, is_note=True,
)  # fmt: skip
_DECLINE = Rule(
    "numbers that show the decline", _decline,
    2,
    "the data are {found}, among {among}",
    ", so the decline is that of the prior. Pass recalls at several m (SourceTask.from_recalls), "
    "accuracies at several numbers of {ranked}, or ranks",
    at_least=True, is_note=True, needs="ranks within bounds, or accuracies",
)  # fmt: skip
OF_CURVES = _CLASSES, _GUESSING, _DECLINE
RULES = (
    _CLASSES,
    ERRORS,
    Rule(
        "pool of candidates", _pool,
        30,  # few users have more test items
        "there are {value:.0f} {nouns.instances} for each of {n} {nouns.units}",
        ". If their candidates were drawn again and again from the same few classes, as in "
        "episodes of N ways, the interval is too short: pass pool=, the number of these classes, "
        "to SourceTask.from_negatives or from_ranks, with the class of each row as y",
        is_note=True, needs="candidates of each instance's own",
    ),
    Rule(
        "weights of classes", _weights,
        0.03,  # of the accuracy; less hardly matters next to an interval
        "the accuracy is {alike:.3f} if all {nouns.units} weigh alike, as here, and "
        "{of_instances:.3f} if all {nouns.instances} do",
        "; pass class_weight='instances' for the latter, such as the share of users whose item is "
        "found",
        is_note=True, needs="untested classes and equal weights of the others",
    ),
    _GUESSING,
    _DECLINE,
    Rule(
        "misses beyond the recalls", _beyond,
        0.98,  # a smooth law has some misses between two m
        "{value:.0%} of the misses rank beyond the {m} best",
        ", as those of wrong labels and failed searches do, which are misses at every number of "
        "classes. No law of the package has such misses, and predictions may be too low",
        is_note=True, needs="recalls at several m",
    ),
    Rule(
        "order of lists", _order,
        4,  # standard errors: one sound test in 30,000
        "{true} stand behind {share:.0%} of the wrong ones in their lists, on average",
        ", as if the order were reversed: pass the best first, or the other value of "
        "higher_is_better",
        needs="lists of at least 10 classes",
    ),
    Rule(
        "dominant class", _dominant,
        np.nan,  # a fifth, or six times an equal share
        "one wrong class is the best for {value:.0%} of the instances",
        ", column {name} of scores. Leave it out if it is no class, such as a fold, a time or the "
        "number of the row. Otherwise check its template, because it harms all classes equally",
    ),
    Rule(
        "ties", _ties,
        2,  # standard errors: beyond it the rule for ties decides more than the data
        "the true class is tied with a competitor in {touched} of {n} instances (rule: {ties})",
        ". The rule moves the accuracy by up to {value:.1f} standard errors. {remedy}",
        needs="ranks from scores",
    ),
    Rule(
        "last ranks", _last,
        0.02,  # fewer hardly move a prediction
        "{n} instances lost to every competitor, or are tied with the worst",
        ", and {most} to most of them. If their searches failed, leave them out and pass their "
        "classes in unanswered=. If their classes have no template or no training instance, as in "
        "folds of cross-validation that are not stratified, leave them out",
        needs="known ranks",
    ),
    Rule(
        "reranked lists", _reranked,
        0.1,  # it is a note, because true classes that no list can have look alike
        "{late} {true} have ranks beyond {first}, and {missed} are not in the {length} best",
        ", as if an approximate index with few probes had missed them, or a second model had "
        "reordered the best entries of a first one. Compare the lists with those of an exact "
        "search, which a larger index misses more of. A first model limits every metric with more "
        "of them: fit its lists as another task, and pass both models to predict_reranked with "
        "n_reranked={length}",
        at_least=True, is_note=True,
        needs="lists of at least 10 classes that lack some true classes",
    ),
    Rule(
        "own candidates", _candidates,
        0.25,  # random lists share 1, the best of all classes more, own candidates none
        "lists share {shared:,.0f} wrong classes, random ones {by_chance:,.0f}",
        ", as if each instance had been ranked among candidates of its own, and not among all "
        "{of:,} classes: pass own_candidates=True in place of n_classes to SourceTask.from_run or "
        "from_search, or ranks with n_negatives",
        at_least=True, needs="lists that share 15 wrong classes by chance",
    ),
    Rule(
        "entries of one class", _entries_of_one_class,
        0.001,  # of 900 sound tasks none was below 0.01
        "{beaten} of {of} classes lose again and again to untested ones that beat few others; of "
        "the {found} classes that beat others so, {tested} are tested",
        ", as if several entries of a class competed, of which y names one: pass the class of each "
        "entry as gallery_y to from_embeddings (labels[ids] as ids to from_search, the best column "
        "of each class to from_scores), or all right answers to SourceTask.from_run",
        at_least=True, needs="scores or lists, untested classes and several instances of others",
    ),
    Rule(
        "self matches", _self_matches,
        0,
        "{value:.0%} of the true classes match perfectly",
        ", as if each test instance were compared with itself: use test instances that are not "
        "among the templates, or pass ignore_identical=True",
        needs="scores",
    ),
    Rule(
        "normalised scores", _normalised,
        0.5,  # measured scores of two instances are never the same numbers
        "{value:.0%} of the rows of scores are {kind}",
        ". These do not measure how near a class is: pass the logits or distances that they were "
        "made from, or probabilities with higher_is_better=True, or the ranks of the true classes "
        "to SourceTask.from_ranks",
    ),
    Rule(
        "percentages", _percentages,
        LARGEST_SUM,
        "all rows of scores sum to about {value:.3g}",
        ", as percentages do: pass the logits, or probabilities, whose sum is 1",
        needs="multiples of probabilities",
    ),
    Rule(
        "rounded probabilities", _rounded,
        0.05,  # fewer hardly change the tails of the scores
        "in {value:.0%} of the rows some of the best classes have the same probability, 0 or 1",
        ", because a softmax or sigmoid was rounded: pass the logits",
        needs="probabilities",
    ),
)  # fmt: skip
