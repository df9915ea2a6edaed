"""Rules on the data of a task: what is measured, its limit, and the sentence for readers.

Each rule is a row of `RULES`, and each answer is a `Finding`. A *warning* means that the data are
probably faulty. A *note* is a sentence with every prediction: each warning, and facts about small
samples that sound data may have too. Rules look at the finished table and its first rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binom, poisson

from classex_bayes.array_access import read_rows
from classex_bayes.core.influence import weight_effect
from classex_bayes.core.metrics import Accuracy
from classex_bayes.core.ranks.embeddings import EmbeddingScores
from classex_bayes.core.ranks.sample import Sample, first_rows
from classex_bayes.formatting import folded
from classex_bayes.task.accuracy_curve import AccuracyCurve
from classex_bayes.task.provenance import CUT_RANKS, Nouns
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.rank_variance import RankVariance
from classex_bayes.typing import FloatArray

_FEW_CLASSES, _FEWEST_ERRORS = 20, 10
_FEWEST = 10  # rows or classes that a rule needs
_STANDARD_ERRORS = 4  # of chance: one sound test in 30,000
_MOSTLY = 0.5
# Ranks at random: the variance of an instance's accuracy between two classes is at most 1 / 12.
# Three standard errors are more than good classifiers reach if instances are few, so at most 0.15
# is required, and nothing with fewer than five independent instances.
_GUESSING_SD, _GUESSING_ERRORS, _WIDEST_MARGIN, _TOO_FEW = 12**-0.5, 3, 0.15, 0.4
_MOST_TIES = 0.05  # fewer have little effect
_LAST_TO_MOST = 3  # smooth laws have no atom of instances that lose to all competitors
_CHANCE, _SHORTEST_OWN = 1e-4, 3  # the nearest classes of regular ones, as on a ring, differ
_MOST_IN_GROUP, _ANSCOMBE = 10, 3 / 8
# Differences between classes are normal: sound tasks of 100 classes have a value of 10 to 40.
_FEWEST_FOR_CONCENTRATION, _ERRORS_FOR_CONCENTRATION = 50, 20
_SHIFTED = 0.1  # share of the classes
_NEAREST, _TINY = 4, 1e-6  # votes have no smaller probability, but a softmax that rounds to 0 has
_ON_DIAGONAL = 1 / 3  # numbers of common points do not reach this share
_SAME_MEAN = 1e-2  # of the distance of probes: rounding of half precision
_SHORTEST, _MOST_LATE, _GROWTH = 8, 0.125, 2
_WORDS = {True: "ok", False: "WARNING", None: "not checked"}


@dataclass(frozen=True)
class Finding:
    """Answer of one rule.

    Attributes
    ----------
    name : str
        Name of the rule.
    passed : bool or None
        False if the data are probably faulty. None where the rule does not apply.
    sentence : str
        The finding, its meaning and the remedy, or the data that the rule needs.
    value : float
        Number that decided; NaN if nothing was measured.
    limit : float
        Limit that `value` was compared with; NaN if nothing was measured.
    is_note : bool
        Whether predictions show the sentence although the rule passed. It is a fact about small
        samples, which sound data may have too.
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
    is_note: bool = False  # beyond the limit are facts of small samples, and no faults
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
    variance: Any  # RankVariance, or AccuracyCurve
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
    variance: RankVariance | AccuracyCurve, names: Sequence[Any] | None
) -> tuple[Finding, ...]:
    """Answers of all rules on a table of ranks or an accuracy curve, whose classes have `names`."""
    if isinstance(variance, AccuracyCurve):
        return tuple(rule.finding(Tested(variance, variance, names)) for rule in OF_CURVES)
    if variance.table.provenance.is_part:  # of a test that is checked as a whole
        return ()
    tested = Tested(variance.table, variance, names)
    return tuple(rule.finding(tested) for rule in RULES)


# Measures: the sample is large enough


def _classes(tested: Tested) -> Mapping[str, Any]:
    r"""Effective number of classes :math:`1 / \sum_l w_l^2`."""
    n, effective = tested.table.n_classes, float(tested.table.n_classes)
    if isinstance(tested.table, RankTable):
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
    found = f"{n} of {table.n_test:,} {tested.nouns.instances} lost to a competitor"
    found += f", in {n_classes} of the {tested.nouns.units}" * bool(n)
    if n == 0:
        found += (
            ". See whether the classifier was trained on them, or they are compared with "
            "themselves or with near copies, such as shots of one camera"
        )
    return {"value": min(n, 2 * n_classes), "found": found, "nouns": tested.nouns}


# Measures: labels, order and names of the classes


def _chance(tested: Tested) -> Mapping[str, Any] | None:
    """Accuracy among the fewest classes, where guessing gives 1 / k."""
    if isinstance(curve := tested.table, AccuracyCurve):
        k, accuracy, margin = int(curve.k[0]), float(curve.values[0]), 0.0
    else:
        answered = tested.table.answered
        if not (grid := answered.grid()).size:
            return None
        k = int(grid[0])
        accuracy = float(answered.metric_bounds(Accuracy(), grid[:1])[1][0])
        if answered.siblings.any():  # if they are always present, it is lower by itself
            sizes = answered.n_classes, grid[:1], answered.weight
            accuracy = float(Accuracy().average(answered.n_better, *sizes)[0])
        sd = (1 / k * (1 - 1 / k)) ** 0.5 if answered.why_unknown else _GUESSING_SD
        effect = RankVariance(answered).design_effect
        margin = _GUESSING_ERRORS * sd * (effect / answered.n_test) ** 0.5
    required = min(margin, _WIDEST_MARGIN) if margin <= _TOO_FEW else -margin
    order = {
        "classes": "y is in another order than the scores, counts from 1 or numbers other classes",
        "documents": "run and qrels name queries or documents differently",
        "items": "the true item is not first in its row",
    }[tested.nouns.ranked]
    how = "below" if accuracy < 1 / k - margin else "no better than"
    limit, ranked = 1 / k + required, tested.nouns.ranked
    return {
        "value": accuracy, "limit": limit, "k": k, "guess": 1 / k,
        "ranked": ranked, "order": order, "how": how,
    }  # fmt: skip


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


def _shift(tested: Tested) -> Mapping[str, Any] | None:
    """Share of the classes whose first instance is of class y + d by the scores, with one d."""
    sample, n_classes = tested.table.first_rows, tested.table.n_classes
    if sample is None or not tested.table.competitors_shared:
        return None
    rows = np.unique(sample.y, return_index=True)[1]  # independent: one row of each class
    ahead = (sample.first - sample.y)[rows] % n_classes
    places, number = np.unique(np.append(ahead[ahead > 0], 1), return_counts=True)
    place, n = int(places[number.argmax()]), ahead.size
    by = place if place <= n_classes // 2 else place - n_classes
    right, most = int(np.sum(ahead == 0)), int(np.sum(ahead == place))
    usual = max(
        float(right), n / (n_classes - 1)
    )  # neighbours of ordered classes are not best as often
    far = most > 2 * usual and most - usual > _STANDARD_ERRORS * (most + usual) ** 0.5
    label = f"y {'+' if by > 0 else '-'} {abs(by)}"
    if by + sample.y.min() < 0 or by + sample.y.max() >= n_classes:
        label = f"({label}) % {n_classes}"
    remedy = f"pass {label}" if tested.names is None else "check the order of the names"
    share = most / n if far else 0.0
    return {"value": share, "right": right, "most": most, "n": n, "label": label, "remedy": remedy}


def _untested(tested: Tested) -> Mapping[str, Any] | None:
    """Largest share of the instances for which one class without test instances is the best.

    Hubs, which win often, are rarely alone.
    """
    sample, y = tested.matrix, tested.table.y
    if sample is None or sample.y.size < _FEWEST or np.unique(y).size == tested.table.n_classes:
        return None
    best = sample.first[~np.isin(sample.first, y)]
    number = np.bincount(best, minlength=2)
    usual, most = np.sort(number)[-2:].tolist()
    far = most - usual > _STANDARD_ERRORS * (most + usual) ** 0.5
    name = tested.name(int(number.argmax()))
    return {"value": most / sample.y.size if far else 0.0, "name": name}


# Measures: ties, failed searches, candidates of each instance's own


def _ties(tested: Tested) -> Mapping[str, Any] | None:
    """How far the rule for ties moves the extrapolation, in standard errors.

    The rules are compared by the accuracy among all k1 classes and by its decline from about k1 / 2
    classes on. The standard error of an accuracy is at least that of one instance.
    """
    table, counts = tested.table, tested.table.counts
    k = table.grid()
    if counts is None or not k.size or table.are_decisions:
        return None
    touched = int(np.count_nonzero(counts.min_better < counts.max_better))
    distances = np.zeros(2)
    if touched >= _FEWEST_ERRORS or touched > _MOST_TIES * table.n_test:
        contrast = np.zeros((2, k.size))
        contrast[:, -1], contrast[1, np.abs(k - table.n_classes / 2).argmin()] = 1.0, -1.0
        if table.design is None:
            worst, best = table.with_open_ties().metric_bounds(Accuracy(), k)
        else:
            worst, best = (
                Accuracy().average(n_better, table.n_classes, k, table.weight)
                for n_better in (counts.max_better, counts.min_better)
            )
        squares = np.diag(contrast @ tested.variance.covariance(k) @ contrast.T)
        moved = np.abs(contrast @ (best - worst))
        distances = moved / np.sqrt(np.maximum(squares, table.n_test**-2))
    remedy = "Pass scores with more digits"
    if table.competitors_shared:
        remedy = (
            "Merge classes that are copies of others (diagnose names them), or pass scores with "
            "more digits, or ties='unknown' if the ties hide an order"
        )
    what = ("accuracy", "decline of accuracy towards k1")[int(distances.argmax())]
    return {
        "value": distances.max(), "touched": touched, "n": table.n_test, "ties": table.ties,
        "what": what, "remedy": remedy,
    }  # fmt: skip


def _last(tested: Tested) -> Mapping[str, Any] | None:
    """Share of the instances that lose to all competitors, if far fewer lose to most of them.

    Those that lose to most and are tied with all others count, too. A search that failed loses to
    all of them, and to a few more or fewer at larger k.
    """
    table = tested.table
    if not table.is_exact:
        return None
    most = table.min_better >= _MOSTLY * table.n_competitors
    last = table.min_better >= table.n_competitors
    tied = np.zeros_like(last)
    if (counts := table.counts) is not None and table.design is None:
        tied = (counts.min_better >= _MOSTLY * table.n_competitors) & (
            counts.min_better < counts.max_better
        )
        tied &= counts.max_better >= table.n_competitors
    last = (last | tied) & (table.n_competitors > 1) & ~table.unanswered
    n, n_most = np.count_nonzero(last), np.count_nonzero(most & ~last)
    is_atom = n > _FEWEST_ERRORS // 2 + _LAST_TO_MOST * n_most
    is_atom &= n <= _MOSTLY * table.n_test or bool(tied.any())  # else the sign is reversed
    return {"value": n / table.n_test if is_atom else 0.0, "n": n, "most": n_most}


def _candidates(tested: Tested) -> Mapping[str, Any] | None:
    """Number of wrong classes that pairs of lists share, as a multiple of that of random lists.

    Two random lists of :math:`m_i` and :math:`m_j` classes out of k1 share :math:`m_i m_j / k_1` of
    them, and more if they are the best of all classes.
    """
    lists, n_classes = tested.lists, tested.table.n_classes
    if lists is None or not tested.table.competitors_shared:
        return None
    row, place = np.nonzero(lists.classes >= 0)
    # A class may have several entries in a list.
    pairs = np.unique(row * n_classes + lists.classes[row, place])
    if pairs.size < _SHORTEST_OWN * np.unique(row).size:
        return None
    sizes, listed = (np.bincount(part).astype(float) for part in np.divmod(pairs, n_classes))
    by_chance = float(sizes.sum() ** 2 - (sizes**2).sum()) / (2 * n_classes)
    shared = float((listed * (listed - 1)).sum() / 2)
    if by_chance == 0 or poisson.cdf(shared, by_chance) >= _CHANCE:
        by_chance = min(by_chance, shared)  # chance would give as few
    value = shared / by_chance if by_chance else 1.0
    return {"value": value, "shared": shared, "by_chance": by_chance, "of": n_classes}


def _late(tested: Tested) -> dict[str, Any] | None:
    """Numbers of true classes in the second half of the lists, and missing ones.

    In the lists of one system the ranks of the true classes thin out slowly: if few are in the
    second half of the lists, few are in each doubling of the rank after it. A second model that
    reorders the best entries of a first one moves the true classes to the top, and those that the
    first one missed stay missing.
    """
    table = tested.table
    missed = table.bounded & (table.provenance.unknown == CUT_RANKS)  # not ties or decisions
    if not (length := int(table.min_better[missed].max(initial=0))):
        return None
    n_missed = int(missed.sum())
    n_late = int((~missed & ~table.unanswered & (2 * table.min_better >= length)).sum())
    few = n_late < min(n_missed, _MOST_LATE * (table.n_test - n_missed)) and length >= _SHORTEST
    true = tested.nouns.true
    return {"late": n_late, "missed": n_missed, "length": length, "few": few, "true": true}


def _reranked(tested: Tested) -> Mapping[str, Any] | None:
    """Spread of the last quarter of the scores of a list, in that of the middle half, if few late.

    It is about 0.3 for the best of many scores, 0.5 for uniform ones, 0.8 to 1.2 for normal ones of
    which none is left out.
    """
    lists, numbers = tested.lists, _late(tested)
    if numbers is None or lists is None or not lists.has_scores:
        return None
    scores = -np.sort(-lists.scores, axis=1)[:, : numbers["length"]]
    n = scores.shape[1]
    upper, lower, last = scores[:, [n // 4, 3 * n // 4, -1]].T
    full = np.isfinite(last) & (upper > lower)
    spread = (lower[full] - last[full]) / (upper[full] - lower[full])
    return numbers | {"value": np.median(spread) if full.any() and numbers["few"] else 0.0}


def _reordered(tested: Tested) -> Mapping[str, Any] | None:
    """Probability that so few are late in lists of one system, if so many are missing."""
    numbers = _late(tested)
    if numbers is None or (tested.lists is not None and tested.lists.has_scores):
        return None
    doublings = np.log2(max(tested.table.n_classes / numbers["length"], 1.0))
    late, missed = numbers["late"], numbers["missed"]
    chance = binom.cdf(late, late + missed, 1 / (1 + _GROWTH * doublings))
    return numbers | {"value": chance if numbers["few"] else 1.0}


# Measures: classes in groups, classes that dominate


def _gaps(tested: Tested) -> Mapping[str, Any] | None:
    r"""Largest gap between the numbers of neighbouring ranks, in standard errors.

    If competitors are drawn one by one, the number of better ones is binomial, given the
    probability that a random class is better. Whatever its distribution, the probabilities
    :math:`p_j` of j better classes of n satisfy :math:`q_j^2 \le q_{j-1} q_{j+1}` with
    :math:`q_j = p_j / \binom{n}{j}` (Cauchy and Schwarz). Classes that come in pairs or small
    groups violate this: if every class has a twin, many instances have one better class and hardly
    any has two. In simulations of competitors that are all equally good, where both sides are
    equal, the largest of 3,600 was 3.7.
    """
    table = tested.table
    if not table.is_simple_random:
        return None
    known = table.min_better == table.max_better
    n, most = table.n_classes - 1, int(table.min_better[~known].min(initial=_MOST_IN_GROUP + 2))
    weight = table.n_test * table.weight
    counts = np.bincount(table.min_better, weight, _MOST_IN_GROUP + 2)[: min(most, n + 1)]
    before, here, after = counts[:-2], counts[1:-1], counts[2:]
    j = np.arange(1, counts.size - 1)
    usable = (before > 0) & (here > 0)
    before, here, after, j = before[usable], here[usable], after[usable], j[usable]
    least = here**2 / before * j * (n - j) / ((j + 1) * (n - j + 1))
    square = tested.variance.design_effect * (1 + least * (4 / here + 1 / before))
    violation = 2 * (np.sqrt(least + _ANSCOMBE) - np.sqrt(after + _ANSCOMBE)) / np.sqrt(square)
    if not violation.size:
        return None
    at = int(np.argmax(violation))
    return {
        "value": violation[at], "here": here[at], "after": after[at], "least": least[at],
        "rank": j[at] + 1, "next": j[at] + 2,
    }  # fmt: skip


def _concentration(tested: Tested) -> Mapping[str, Any] | None:
    r"""Effective number of classes that make up the sampling error of ATA at a large k.

    It is the largest k that leaves 20 right answers. The value is the participation number
    :math:`(\sum_j \psi_j^2)^2 / \sum_j \psi_j^4` of the dyadic influences. Unequal class weights
    reduce it although the data are sound, so these must be as good as 50 equal ones.
    """
    table = tested.table
    if not (table.is_simple_random and table.is_exact) or table.influence is None:
        return None
    k = table.grid()
    right = np.flatnonzero(
        table.n_test * table.metric_bounds(Accuracy(), k)[0] >= _ERRORS_FOR_CONCENTRATION
    )
    few_errors = np.count_nonzero(table.n_better) < _ERRORS_FOR_CONCENTRATION
    few_classes = round(participation(table.class_weight**2)) < _FEWEST_FOR_CONCENTRATION
    if few_errors or few_classes or not right.size:
        return None
    squares = tested.variance.unit_influence[:, right[-1]] ** 2
    if not squares.any():
        return None
    top = np.argsort(-squares)[:5]
    worst = ", ".join(str(tested.name(j)) for j in top.tolist())
    share = squares[top].sum() / squares.sum()
    return {"value": participation(squares), "worst": worst, "share": share}


# Measures: scores that are not what they seem


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


def _permuted(tested: Tested) -> Mapping[str, Any] | None:
    """Share of the rows that contain the same numbers in another order, as ranks do."""
    if (sample := tested.matrix) is None:
        return None
    ordered = np.sort(sample.scores, axis=1)
    typical = np.sort(ordered, axis=0)[len(ordered) // 2]  # the medians
    if np.unique(typical).size < _FEWEST or len(ordered) < 3:
        return None
    return {"value": float((ordered == typical).all(axis=1).mean())}


def _probabilities(tested: Tested) -> Mapping[str, Any] | None:
    """Whether distances are made of probabilities over the classes."""
    if (sample := tested.matrix) is None or not _are_distances(tested.table):
        return None
    return {"value": float(sums_to_one(sample.scores))}


def _rounded(tested: Tested) -> Mapping[str, Any] | None:
    """Share of the rows in which some of the best classes are tied at a probability of 0 or 1."""
    if (sample := tested.matrix) is None or tested.table.are_decisions:
        return None
    scores = sample.scores
    are_tiny = (scores > 0) & (scores < _TINY)
    if scores.min() < 0 or scores.max() > 1 or not are_tiny.any():
        return None
    nearest = min(_NEAREST, sample.wrong.shape[1])
    best = np.partition(sample.wrong, -nearest, axis=1)[:, -nearest:]
    some = np.sort(np.column_stack([sample.true, best]), axis=1)
    tied = (some[:, 1:] == some[:, :-1]) & ((some[:, 1:] == 0) | (some[:, 1:] == 1))
    return {"value": float(tied.any(axis=1).mean())}


def _decisions(tested: Tested) -> Mapping[str, Any] | None:
    """Share of the rows that have only two different values."""
    table = tested.table
    if table.counts is None or table.is_exact:
        return None
    return {"value": table.counts.two_values.mean(), "k1": table.n_classes}


def _confusions(tested: Tested) -> Mapping[str, Any] | None:
    """Share of the rows, one for each class, that are whole numbers, most of them right."""
    sample, table = tested.matrix, tested.table
    if sample is None or not sample.y.size == table.n_test == np.unique(sample.y).size:
        return None
    scores = sample.scores
    if table.n_test != table.n_classes or scores.min() < 0 or scores.max() <= 1:
        return None
    right = sample.true / np.maximum(scores.sum(axis=1), 1)
    whole = (scores == np.floor(scores)).all(axis=1)
    return {"value": whole.mean() if right.mean() > _ON_DIAGONAL else 0.0}


def _templates(tested: Tested) -> Mapping[str, Any] | None:
    """Share of the templates that are the means of all probes of their classes."""
    source, y = tested.table.source, tested.table.y[~tested.table.unanswered]
    # A file may be closed by now.
    if not isinstance(source, EmbeddingScores) or source.several or source.in_order:
        return None
    rows = first_rows(*source.probes.shape)
    probes = np.asarray(read_rows(source.probes, rows), dtype=float)
    seen, repeats = (np.bincount(of, minlength=source.shape[1]) for of in (y[rows], y))
    whole = np.flatnonzero((seen == repeats) & (repeats > 1))[: rows.size]
    if whole.size < _FEWEST:
        return None
    means = np.zeros((seen.size, probes.shape[1]))
    np.add.at(means, y[rows], probes)
    means /= np.maximum(seen, 1)[:, None]
    of_class = np.sort(np.argsort(source.template_class)[whole])
    gallery = np.asarray(read_rows(source.gallery, of_class), dtype=float)
    away = np.linalg.norm(means[source.template_class[of_class]] - gallery, axis=1)
    within = np.median(np.linalg.norm(probes - means[y[rows]], axis=1))
    return {"value": float((away <= _SAME_MEAN * within).mean())}


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
        if np.abs(probs.sum(axis=1) - 1).mean() <= _MOSTLY * rest.mean():
            kinds.append(probs)
    rounding = 1e-2  # of probabilities and their logarithms in half precision
    return any(
        probs.min() >= 0
        and probs.max(axis=1).min() < 1
        and bool((np.abs((total := probs.sum(axis=1)) - 1) <= rounding).all())
        and float(total.std()) <= np.finfo(np.float32).eps + float(probs.max(axis=1).std()) / 2
        for probs in kinds
    )


def participation(squares: FloatArray) -> float:
    r"""Participation number :math:`(\sum_j s_j)^2 / \sum_j s_j^2` of nonnegative numbers.

    It lies between 1 (one number has all the weight) and their count (all are equal). It is 0 if
    all are 0.
    """
    total = float((squares**2).sum())
    return float(squares.sum() ** 2 / total) if total > 0 else float(np.count_nonzero(squares))


def _are_distances(table: RankTable) -> bool:
    """Whether the smallest scores are the best."""
    scored = table.source if table.nearest is None else table.nearest
    return scored is not None and scored.perfect == 0


_CLASSES = Rule(
    "number of classes", _classes, _FEW_CLASSES,
    "{found}",
    " are few. Rely on intervals and not on means or point estimates, and test {limit:.0f} or more",
    at_least=True, is_note=True,
)  # fmt: skip
_GUESSING = Rule(
    "accuracy on few classes", _chance, np.nan,
    "the accuracy among {k} {ranked} is {value:.3f}; guessing gives {guess:.3g}",
    ". True classes score {how} wrong ones. Check whether the sign of the scores is reversed "
    "(higher_is_better=False for distances, else higher_is_better=True), or {order}",
    at_least=True, needs="a known accuracy",
)  # fmt: skip
OF_CURVES = _CLASSES, _GUESSING
_LATE = "{late} {true} have ranks in the second half of the lists, and {missed} are missing"
_FIRST_STAGE = (
    ", as if a second model had reordered the best entries of a first one. If so, the first one "
    "limits every metric with more of them: fit its lists as another task, and pass both models to "
    "predict_reranked with n_reranked={length}"
)
RULES = (
    _CLASSES,
    Rule(
        "number of errors", _errors, _FEWEST_ERRORS,
        "{found}",
        ". So few errors, or of so few {nouns.units}, hardly show how fast the accuracy falls, and "
        "the model or its prior dominates. Test more {nouns.ranked} or {nouns.instances} until "
        "{limit:.0f} or more are wrong, of 5 {nouns.units} or more",
        at_least=True, is_note=True,
    ),
    _GUESSING,
    Rule(
        "order of lists", _order, _STANDARD_ERRORS,
        "{true} stand behind {share:.0%} of the wrong ones in their lists, on average",
        ", as if the order were reversed: pass the best first, or the other value of "
        "higher_is_better",
        needs="lists of at least 10 classes",
    ),
    Rule(
        "labels", _shift, _SHIFTED,
        "the first instance of {right} of {n} classes is recognised",
        ", and class {label} is the best one for {most}, as if labels were off: {remedy}, or, if y "
        "counts only classes that occur, the numbers of their columns",
        needs="scores or lists of classes",
    ),
    Rule(
        "columns", _untested, 0.2,
        "an untested column is the best for {value:.0%} of the instances, far more than others",
        ": column {name} of scores; leave it out if it is no class, such as a fold, a time or the "
        "number of the row",
        needs="scores of untested classes",
    ),
    Rule(
        "ties", _ties, 2.0,
        "the true class is tied with a competitor in {touched} of {n} instances (rule: {ties})",
        ". The rule moves the {what} by up to {value:.1f} standard errors. {remedy}",
        needs="ranks from scores",
    ),
    Rule(
        "last ranks", _last, 0.02,
        "{n} instances lost to every competitor, or are tied with the worst",
        ", and {most} to most of them. If their searches failed, leave them out and pass their "
        "classes in unanswered=. If their classes have no template or no training instance, as in "
        "folds of cross-validation that are not stratified, leave them out",
        needs="known ranks",
    ),
    Rule(
        "own candidates", _candidates, 0.25,
        "lists share {shared:,.0f} wrong classes, random ones {by_chance:,.0f}",
        ", as if each instance had been ranked among candidates of its own, and not among all "
        "{of:,} classes: pass own_candidates=True in place of n_classes to SourceTask.from_run or "
        "from_search, or ranks with n_negatives",
        at_least=True, needs="lists of classes",
    ),
    Rule(
        "reranked lists", _reranked, 0.6,
        _LATE, _FIRST_STAGE, needs="lists with scores that lack some true classes",
    ),
    Rule(
        "reordered ranks", _reordered, 0.01,
        _LATE, _FIRST_STAGE, at_least=True, is_note=True,
        needs="ranks in lists that lack some true classes",
    ),
    Rule(
        "gaps between ranks", _gaps, _STANDARD_ERRORS,
        "{here:.0f} instances have rank {rank} and {after:.0f} rank {next}",
        "; if classes were drawn one by one, at least {least:.0f} would have rank {next}. Classes "
        "seem to come in groups of {rank}, such as twins or classes that were enrolled twice: "
        "merge them, or pass the groups that were sampled as sampling=Sampling(groups=...)",
        needs="two neighbouring ranks of classes drawn one by one",
    ),
    Rule(
        "concentration of errors", _concentration, 7.0,
        "the effective number of classes that contribute to the standard error of the accuracy is "
        "{value:.0f}",
        ". Classes {worst} cause {share:.0%} of the variance of the accuracy. Check whether they "
        "are mislabelled or have a template that wins everywhere. The standard errors may be wrong",
        at_least=True,
        needs="scores of 50 classes of similar weight, and 20 instances with and without errors",
    ),
    Rule(
        "self matches", _self_matches, 0.0,
        "{value:.0%} of the true classes match perfectly",
        ", as if each test instance were compared with itself: use test instances that are not "
        "among the templates, or pass ignore_identical=True",
        needs="scores",
    ),
    Rule(
        "order alone", _permuted, _MOSTLY,
        "{value:.0%} of the rows of scores contain the same numbers in another order",
        ", as ranks do. They show the order of the classes and not how near a class is: pass the "
        "scores that were ranked, or the ranks of the true classes to SourceTask.from_ranks",
    ),
    Rule(
        "distances", _probabilities, 0.0,
        "{value:.0%} of the rows of distances are made of probabilities over the classes",
        ": 1 minus these or minus their logarithms, which do not measure how near a class is. Pass "
        "the logits, or the probabilities with higher_is_better=True",
        needs="distances to all classes",
    ),
    Rule(
        "rounded probabilities", _rounded, 0.05,
        "in {value:.0%} of the rows some of the best classes have the same probability, 0 or 1",
        ", because a softmax or sigmoid was rounded: pass the logits",
        needs="probabilities",
    ),
    Rule(
        "scores that rank the classes", _decisions, _MOSTLY,
        "{value:.0%} of the rows of scores have only two different values",
        ", as if they were decisions. They show only whether an answer among {k1} classes is "
        "correct; pass scores that rank the classes, such as distances",
        needs="scores whose ties are open",
    ),
    Rule(
        "counts", _confusions, 0.9,
        "{value:.0%} of the rows are counts of decisions",
        ", whole numbers and one row for each class, like a confusion matrix: pass it to "
        "SourceTask.from_confusion",
        needs="scores above 1, with one row for each class",
    ),
    Rule(
        "templates", _templates, _MOSTLY,
        "{value:.0%} of the templates are the means of the probes of their classes",
        "; make them of other instances than those that are tested",
        needs="embeddings in memory, with several probes of a class",
    ),
)  # fmt: skip
