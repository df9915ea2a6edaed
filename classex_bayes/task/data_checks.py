"""Checks of the data of a task. They are cheap, because none reads the scores again."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from classex_bayes.core.influence import weight_effect
from classex_bayes.core.metrics import Accuracy
from classex_bayes.core.ranks.rank_counts import RankCounts
from classex_bayes.task.accuracy_curve import AccuracyCurve
from classex_bayes.task.check import Check, noted
from classex_bayes.task.provenance import Nouns
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.rank_variance import FEWEST_ERRING_CLASSES, RankVariance
from classex_bayes.task.score_checks import checks_of_sample
from classex_bayes.typing import FloatArray, IntArray

FEW_CLASSES, FEWEST_ERRORS, MOST_TIES, FARTHEST_RULES = 20, 10, 0.05, 2.0
FEWEST_EFFECTIVE, FEWEST_FOR_CONCENTRATION, ERRORS_FOR_CONCENTRATION = 7.0, 50, 20
# Ranks at random: the variance of an instance's accuracy between two classes is at most 1 / 12,
# up to 1 / k1. So many standard errors are more than good classifiers reach if instances are few;
# less than five, or those of one class that has all the weight, show guessing by chance alone.
_GUESSING_SD, _STANDARD_ERRORS, _WIDEST_MARGIN, _TOO_FEW = 12**-0.5, 3, 0.15, 0.4
# An atom of instances that lose to all competitors: its smallest share, its ratio to those that
# lose to at least so many of them, its largest share, and how many beat those tied with the rest.
_MOST_LAST, _LAST_TO_MOST, _MOST_COMPETITORS, _FAILED, _BEHIND = 0.02, 3, 0.5, 0.5, 0.6
_SHORTEST_END, _EARLY = 20, 0.2  # a rank, and a share of the classes
_MOST_IN_GROUP, _MOST_GROUPED, _ANSCOMBE = 10, 4.0, 3 / 8
_LABELS = "y is in another order than the scores or counts from 1"
_ORDERS = {  # what may be wrong, by the noun of what is ranked
    "classes": _LABELS,
    "documents": "run and qrels name queries or documents differently",
    "items": "the true item is not first in its row",
}


def checks_of(
    variance: RankVariance | AccuracyCurve, names: Sequence[Any] | None
) -> tuple[Check, ...]:
    """Checks of a table of ranks or of an accuracy curve. `names` are those of the classes."""
    if isinstance(variance, AccuracyCurve):
        chance = better_than_chance(int(variance.k[0]), float(variance.values[0]), 0.0)
        return few_classes(variance.n_classes), chance
    table, nouns = variance.table, variance.table.provenance.nouns
    if table.provenance.is_part:
        return ()
    checks = [
        few_classes(table.class_weight.size, nouns.units),  # k1, or more with own negatives
        few_weighty_classes(table.class_weight),
        few_errors(table.n_better, table.y, nouns),
        *table.provenance.checks,
        *checks_of_sample(table, names),
    ]
    if table.is_exact:
        checks.append(last_ranks(table))
        if table.competitors_shared and not table.has_scores:
            checks.append(ranks_end_early(table))
    if table.is_simple_random:
        checks.append(grouped_ranks(variance))
    answered = table.answered
    grid = answered.grid()
    if grid.size:
        k = grid[:1]
        accuracy = float(answered.metric_bounds(Accuracy(), k)[1][0])
        if answered.siblings.any():  # if they are always present, it is lower than 1 / 2 by itself
            average = Accuracy().average(answered.n_better, table.n_classes, k, answered.weight)
            accuracy = float(average[0])
        size = int(k[0])
        sd = (1 / size * (1 - 1 / size)) ** 0.5 if answered.why_unknown else _GUESSING_SD
        of_answered = variance if answered is table else RankVariance(answered)
        error = sd * (of_answered.design_effect / answered.n_test) ** 0.5
        margin = _STANDARD_ERRORS * error
        checks.append(better_than_chance(size, accuracy, margin, nouns.ranked))
    if table.are_decisions:
        checks.append(decisions(table.n_classes))
    if table.counts is not None and table.is_exact:
        checks.append(ties(variance, table.counts))
        if table.is_simple_random and table.influence is not None:
            checks.append(concentrated_errors(variance, names))
    return tuple(checks)


def better_than_chance(k: int, accuracy: float, margin: float, ranked: str = "classes") -> Check:
    """Whether the accuracy among k classes, the fewest, is above that of guessing, 1 / k.

    It must be above by `margin`, three standard errors of random ranks, but by no more than 0.15.
    With fewer than five independent instances, it must not be below by this amount. The margin of
    an accuracy curve is 0. `ranked` is the noun of what is ranked.
    """
    required = min(margin, _WIDEST_MARGIN) if margin <= _TOO_FEW else -margin
    threshold = 1 / k + required
    passed = accuracy >= threshold
    sentence = f"the accuracy among {k} {ranked} is {accuracy:.3f}; guessing gives {1 / k:.3g}"
    if accuracy < 1 / k - margin:
        sentence += (
            ". True classes score below most wrong ones. Check whether the sign of the scores is "
            "reversed (higher_is_better=False for distances, else higher_is_better=True) or "
            f"{_ORDERS[ranked]}"
        )
    elif not passed:
        sentence += (
            f". True classes score no better than wrong ones. Check whether {_ORDERS[ranked]}, or "
            "scores are ranks or distances, of which the lowest is best"
        )
    return Check("accuracy on few classes", passed, sentence, accuracy, threshold)


def ties(variance: RankVariance, counts: RankCounts) -> Check:
    """How far the rule for ties moves the extrapolation, in standard errors.

    The check compares the rules by the accuracy among all k1 classes and by its decline from about
    k1 / 2 classes on. The largest and smallest values may differ by 2 standard errors. The standard
    error of an accuracy is at least that of one instance. Ties of the true class in fewer than 10
    instances and in at most 5% of them have little effect and pass; more are a note.
    """
    table = variance.table
    touched = int(np.count_nonzero(counts.lowest < counts.highest))
    distance = 0.0
    sentence = (
        f"the true class is tied with a competitor in {touched} of {table.n_test} instances "
        f"(rule: {table.ties})"
    )
    if touched >= FEWEST_ERRORS or touched > MOST_TIES * table.n_test:
        k = table.grid()
        half = int(np.abs(k - table.n_classes / 2).argmin())
        contrast = np.zeros((2, k.size))
        contrast[:, -1], contrast[1, half] = 1.0, -1.0
        if table.provenance.design is None:
            worst, best = table.with_open_ties().metric_bounds(Accuracy(), k)
        else:
            worst, best = (
                Accuracy().average(n_better, table.n_classes, k, table.weight)
                for n_better in (counts.highest, counts.lowest)
            )
        moved = np.abs(contrast @ (best - worst))
        squares = np.diag(contrast @ variance.covariance(k) @ contrast.T)
        distances = moved / np.sqrt(np.maximum(squares, table.n_test**-2))
        distance = float(distances.max())
        if distance > FARTHEST_RULES:
            of_what = ("accuracy", "decline of accuracy towards k1")[int(distances.argmax())]
            remedy = "Pass scores with more digits"
            if table.competitors_shared:
                remedy = (
                    "Merge classes that are copies of others (diagnose names them), or pass scores "
                    "with more digits, or ties='unknown' if the ties hide an order"
                )
            sentence += (
                f". The rule moves the {of_what} by up to {distance:.1f} standard errors. {remedy}"
            )
    others = table.n_classes - 1 if table.competitors_shared else table.n_competitors
    n_flat = int(np.count_nonzero((counts.lowest == 0) & (counts.highest == others)))
    if n_flat:
        sentence += (
            f". {n_flat} of them have one score for all classes: if nothing was found for these, "
            "leave them out and pass their labels in unanswered="
        )
    passed = distance <= FARTHEST_RULES
    is_note = passed and (touched > MOST_TIES * table.n_test or n_flat > 0)
    return Check("ties", passed, sentence, distance, FARTHEST_RULES, is_note)


def decisions(n_classes: int) -> Check:
    """Whether scores are decisions, which do not determine the ranks of wrong answers."""
    sentence = (
        "most rows of scores have only two different values, as if they were decisions. They "
        f"show only whether an answer among {n_classes} classes is correct; pass scores that rank "
        "the classes, such as distances"
    )
    return Check("scores that rank the classes", False, sentence)


def concentrated_errors(variance: RankVariance, names: Sequence[Any] | None) -> Check:
    r"""Whether a few classes make up the sampling error of ATA at a large k on the grid.

    It is the largest k that leaves 20 right answers. With fewer, the few classes that have them
    would decide. The effective number of classes is the participation number :math:`(\sum_j
    \psi_j^2)^2 / \sum_j \psi_j^4` of the dyadic influences. Below 7 the covariance depends on a
    handful of classes. Differences between classes are normal: sound tasks of 100 classes have a
    value of 10 to 40, which grows with k1. Unequal class weights reduce it although the data are
    sound. The number of classes is therefore the participation number of the squared weights.
    """
    table, name = variance.table, "concentration of errors"
    n_classes = round(participation(table.class_weight**2))
    n_errors = int(np.count_nonzero(table.n_better))
    k = table.grid()
    n_right = table.n_test * table.metric_bounds(Accuracy(), k)[0]
    if n_classes < FEWEST_FOR_CONCENTRATION or min(n_errors, n_right[0]) < ERRORS_FOR_CONCENTRATION:
        return Check(
            name,
            None,
            f"needs {FEWEST_FOR_CONCENTRATION} classes of similar weight, "
            f"{ERRORS_FOR_CONCENTRATION} instances with errors and {ERRORS_FOR_CONCENTRATION} "
            f"without, found {n_classes}, {n_errors} and {table.n_test - n_errors}",
        )
    place = np.flatnonzero(n_right >= ERRORS_FOR_CONCENTRATION)[-1]
    squares = variance.unit_influence[:, place] ** 2
    if not squares.any():
        return Check(name, None, "the accuracy among all classes has no sampling error")
    effective = participation(squares)
    passed = effective >= FEWEST_EFFECTIVE
    sentence = (
        "the effective number of classes that contribute to the standard error of the accuracy is "
        f"{effective:.0f}"
    )
    if not passed:
        top = np.argsort(-squares)[:5]
        named = ", ".join(str(j if names is None else names[j]) for j in top.tolist())
        share = float(squares[top].sum() / squares.sum())
        sentence += (
            f". Classes {named} cause {100 * share:.0f}% of the variance of the accuracy. Check "
            "whether they are mislabelled or have a template that wins everywhere. The standard "
            "errors may be wrong"
        )
    return Check(name, passed, sentence, effective, FEWEST_EFFECTIVE)


def grouped_ranks(variance: RankVariance) -> Check:
    r"""Whether the numbers of better classes are those of competitors that were drawn one by one.

    Then the number of better classes is binomial, given the probability that a random class is
    better. Whatever its distribution, the probabilities :math:`p_j` of j better classes of n
    satisfy :math:`q_j^2 \le q_{j-1} q_{j+1}` with :math:`q_j = p_j / \binom{n}{j}` (Cauchy and
    Schwarz). Classes that come in pairs or small groups violate this: if every class has a twin,
    many instances have one better class and hardly any has two. The value is the largest violation
    in standard errors, of square roots of counts. In simulations of competitors that are all
    equally good, where both sides are equal, the largest of 3,600 was 3.7.
    """
    table = variance.table
    known = table.lowest == table.highest
    n, most = table.n_classes - 1, int(table.lowest[~known].min(initial=_MOST_IN_GROUP + 2))
    weight = table.n_test * table.weight
    counts = np.bincount(table.lowest, weight, _MOST_IN_GROUP + 2)[: min(most, n + 1)]
    before, here, after = counts[:-2], counts[1:-1], counts[2:]
    j = np.arange(1, counts.size - 1)
    usable = (before > 0) & (here > 0)
    before, here, after, j = before[usable], here[usable], after[usable], j[usable]
    least = here**2 / before * j * (n - j) / ((j + 1) * (n - j + 1))
    square = variance.design_effect * (1 + least * (4 / here + 1 / before))
    violation = 2 * (np.sqrt(least + _ANSCOMBE) - np.sqrt(after + _ANSCOMBE)) / np.sqrt(square)
    if not violation.size:
        return Check("gaps between ranks", None, "needs two neighbouring ranks that are known")
    place = int(np.argmax(violation))
    sentence = (
        f"{_rounded(here[place])} instances have rank {j[place] + 1} and "
        f"{_rounded(after[place])} rank {j[place] + 2}"
    )
    passed = bool(violation[place] <= _MOST_GROUPED)
    if not passed:
        sentence += (
            f"; if classes were drawn one by one, at least {least[place]:.0f} would have rank "
            f"{j[place] + 2}. Classes seem to come in groups of {j[place] + 1}, such as twins or "
            "classes that were enrolled twice: merge them, or pass the groups that were sampled as "
            "sampling=Sampling(groups=...)"
        )
    return Check("gaps between ranks", passed, sentence, float(violation[place]), _MOST_GROUPED)


def last_ranks(table: RankTable) -> Check:
    """Whether instances that lose to all competitors are no more than those that lose to most.

    Those count, too, that lose to most and are tied with all others at the lowest score. A search
    that failed loses to all of them, and to a few more or fewer at larger k. So they make up an
    atom of the law of U*, which a mixture of smooth laws does not have. A single competitor shows
    no such atom.
    """
    last, tied = table.lowest >= table.n_competitors, np.zeros(table.n_test, dtype=bool)
    if table.counts is not None and table.provenance.design is None:
        tied = table.counts.lowest >= _BEHIND * table.n_competitors
        tied &= table.counts.lowest < table.counts.highest
        tied &= table.counts.highest >= table.n_competitors
    last = (last | tied) & (table.n_competitors > 1) & ~table.unanswered
    most = (table.lowest >= _MOST_COMPETITORS * table.n_competitors) & ~last
    share, n = float(np.mean(last)), int(np.count_nonzero(last))
    n_most = int(np.count_nonzero(most))
    few = n <= FEWEST_ERRORS // 2 + _LAST_TO_MOST * n_most
    # Most are last if the sign is reversed, but not tied there.
    passed = few or not (tied.mean() > _FAILED or _MOST_LAST < share <= _FAILED)
    sentence = f"{_counted(n, 'instance')} lost to every competitor, or are tied with the worst"
    if not passed:
        sentence += (
            f", and {n_most} to most of them. If their searches failed, leave them out and pass "
            "their classes in unanswered=. If their classes have no template or no training "
            "instance, as in folds of cross-validation that are not stratified, leave them out"
        )
    return Check("last ranks", passed, sentence, share, _MOST_LAST)


def ranks_end_early(table: RankTable) -> Check:
    """Whether ranks end far before the number of classes, as ranks in shorter lists do.

    With a smooth law, ranks thin out towards the last one. Ranks among few negatives of each
    instance's own, or in lists that were cut, end in many: at least 10 are in the last tenth, and
    half as many as in the tenth before.
    """
    ranks = table.lowest[~table.unanswered] + 1
    largest = int(ranks.max(initial=1))
    tenths = np.bincount(np.ceil(10 * ranks / largest).astype(int), minlength=11)
    n_before, n_last = tenths[9:11].tolist()
    early = _SHORTEST_END <= largest <= _EARLY * table.n_classes
    passed = not early or n_last < max(FEWEST_ERRORS, n_before / 2)
    sentence = f"the largest rank is {largest:,} of {table.n_classes:,}"
    if not passed:
        sentence += (
            f", and {n_last} are in the last tenth below it. If each instance was ranked among "
            f"negatives of its own, pass n_negatives={largest - 1} in place of n_classes; if lists "
            f"were cut, pass truncated_at={largest}"
        )
    return Check("end of the ranks", passed, sentence, float(n_last), float(FEWEST_ERRORS))


def few_classes(n_classes: int, units: str = "classes") -> Check:
    """Whether there are at least 20 classes, enough to describe their population."""
    enough = n_classes >= FEW_CLASSES
    sentence = f"{n_classes} {units}"
    if not enough:
        sentence += (
            " are few. Rely on intervals and not on means or point estimates, and test "
            f"{FEW_CLASSES} or more"
        )
    return noted(f"number of {units}", enough, sentence, float(n_classes), float(FEW_CLASSES))


def few_weighty_classes(class_weight: FloatArray) -> Check:
    r"""Whether the effective number of classes :math:`1 / \sum_l w_l^2` is at least 20."""
    n_classes = class_weight.size
    # Computed from the effect of the weights, which is exactly 1 for equal ones.
    effective = float(np.count_nonzero(class_weight) / weight_effect(class_weight))
    enough = n_classes < FEW_CLASSES or effective >= FEW_CLASSES
    sentence = (
        f"with these weights {n_classes} classes are as informative as {effective:.1f} "
        "equally weighted ones"
        if effective < n_classes
        else f"all {n_classes} classes have the same weight"
    )
    if not enough:
        sentence += ". Rely on intervals and not on means or point estimates"
    return noted("weights of classes", enough, sentence, effective, float(FEW_CLASSES))


def few_errors(n_better: IntArray, y: IntArray, nouns: Nouns) -> Check:
    """Whether at least 10 instances in 5 classes are wrong. With fewer, the prior dominates."""
    erring = np.unique(y[n_better > 0]).size
    n = int((n_better > 0).sum())
    enough = n >= FEWEST_ERRORS and erring >= FEWEST_ERRING_CLASSES
    sentence = f"{n} of {y.size:,} {nouns.instances} lost to a competitor"
    sentence += f", in {erring} of the {nouns.units}" * (n > 0)
    if n == 0:
        sentence += (
            ". See whether the classifier was trained on them, or they are compared with "
            "themselves or with near copies, such as shots of one camera"
        )
    if not enough:
        sentence += (
            ". So few errors hardly show how fast the accuracy falls, and the model or its prior "
            f"dominates. Test more {nouns.ranked} or {nouns.instances} until {FEWEST_ERRORS} or "
            "more are wrong"
        )
    return noted("number of errors", enough, sentence, float(n), float(FEWEST_ERRORS))


def _rounded(count: float) -> str:
    """A count; "about 14" if weights make it a fraction."""
    return f"{'' if np.isclose(count, round(count)) else 'about '}{count:.0f}"


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
