"""Kinds of misuse, each found by one rule for every scale, type and constructor.

The rules look at ranks, at the order of the scores of a row, or at scores relative to others of the
same test. Those of lists come first, then those of score matrices.
"""

import numpy as np
from scipy.stats import binom, poisson

from classex_bayes.core.ranks.sample import Sample
from classex_bayes.task.check import Check
from classex_bayes.typing import FloatArray, IntArray

_FEWEST = 10  # instances, lists or classes that a rule needs
_STANDARD_ERRORS = 4
# A true score is that of the instance itself if it is so near to the best one, in shares of the
# distance of the nearest wrong classes or of rounding; noise varies by no more than this factor.
_SELF, _MOST_SELF, _TYPICAL, _NOISE, _LOST = 1e-3, 0.95, 0.75, 2.0, 0.01
_SINGLE, _HALF = 1e-6, 1e-3  # rounding, in shares of the score
_SATURATED = 3e-3  # median wrong score of scores that saturate at both ends
# Own candidates: share of the classes that random lists have in common, probability that these have
# so few, and wrong classes of a list.
_TOO_FEW, _CHANCE, _SHORTEST_OWN, _MOST_ENTRIES = 0.25, 1e-4, 3, 2**21
_SHIFTED, _FEW_RIGHT = 0.1, 2  # least share of the classes, and those right before a step
_ROUNDED, _MOST_ROUNDED = 1e-5, 0.05  # in shares of a score, and of the instances
_MOSTLY = 0.5
# Of reranked lists: shortest ones, most of them in the number of documents, share of the found that
# have ranks in the second half, and the spread of the last quarter of their scores, in that of the
# middle half. It is about 0.3 for the best of many scores, 0.5 for uniform ones, 0.8 to 1.2 for
# normal ones of which none is left out.
_SHORTEST, _LONGEST, _MOST_LATE, _MOST_SPREAD = 8, 0.25, 0.125, 0.6
# Growth of the number of true classes from the second half of the lists to a doubling of the rank.
_GROWTH, _RARE = 2, 0.01


def self_match_limit(ranking: Sample, largest: float = _SELF) -> float:
    """Score that a true class exceeds only by comparison of an instance with itself; else inf.

    Of instances that are among their own templates, the true scores hardly vary and are the best
    that occur, while the best wrong ones vary far below: their distance is `largest` times as large
    or more. If typical wrong scores lie at the lower end, scores saturate, and then they may do so
    at the upper end too, unless double precision has equal ones there, but not at the lower end.
    """
    true, wrong = ranking.true, ranking.best_wrong
    known = np.isfinite(true) & np.isfinite(wrong)
    if np.count_nonzero(known) < max(_FEWEST, _MOSTLY * known.size):
        return np.inf
    some, true, wrong = ranking.wrong[np.isfinite(ranking.wrong)], true[known], wrong[known]
    with np.errstate(over="ignore"):
        half, single = (np.array_equal(some, some.astype(kind)) for kind in ("f2", "f4"))
    best, lowest = float(true.max()), float(some.min())
    rounding = (_HALF if half else _SINGLE) * max(abs(best), float(np.median(np.abs(some))))
    typical, near = np.quantile(best - true, [_TYPICAL, _MOST_SELF])
    far = float(np.quantile(best - wrong, 1 - _MOST_SELF))
    are_one = near <= max(largest * far, 2 * rounding) and far > 10 * rounding
    is_noise = typical <= rounding or near <= _NOISE * typical
    lost = float((true < wrong - near).mean())
    above = some[some > lowest]  # most words of texts are in no other one
    typical_wrong = min(np.median(wrong), np.median(above)) if above.size else lowest
    saturated = typical_wrong - lowest < _SATURATED * (best - lowest)
    saturated &= single or near > 0 or some.size - above.size > max(_FEWEST, _LOST * some.size)
    if not (are_one and is_noise and lost <= _LOST) or saturated:
        return np.inf
    return best - float(np.sqrt(max(near, rounding) * far))


def self_matches(ranking: Sample, limit: float, remedy: str) -> Check:
    """Whether no true score exceeds the `limit` of `self_match_limit`."""
    share = float((ranking.true > limit).mean())
    sentence = f"{share:.0%} of the true classes match perfectly"
    if share:
        sentence += f", as if each test instance were compared with itself: {remedy}"
    return Check("self matches", share == 0, sentence, share, 0.0)


def names_of_queries(share: float) -> Check:
    """Whether at most half of the queries find the document of their own name."""
    sentence = f"{share:.0%} of the queries find the document of their name"
    if share > _MOSTLY:
        sentence += (
            ", as if the index contained the test instances themselves: pass ignore_identical=True"
        )
    return Check("names of queries", share <= _MOSTLY, sentence, share, _MOSTLY)


def order_of_lists(y: IntArray, n_better: IntArray, n_wrong: IntArray, remedy: str) -> Check:
    """Whether the true classes that are listed stand in the better half of their lists.

    `n_better` (n,) of the `n_wrong` (n,) wrong classes of each list stand before the true one.
    """
    usable = n_wrong > 0
    _, of_class = np.unique(y[usable], return_inverse=True)
    number = np.bincount(of_class)
    if number.size < _FEWEST:
        return Check("order of lists", None, f"needs lists with {_FEWEST} true classes")
    mean = np.bincount(of_class, n_better[usable] / n_wrong[usable]) / number
    value, error = float(mean.mean()), float(mean.std()) / number.size**0.5
    passed = value - 0.5 <= _STANDARD_ERRORS * error
    sentence = f"true classes stand behind {value:.0%} of the wrong ones in their lists, on average"
    if not passed:
        sentence += f", as if the order were reversed and the scores distances or places: {remedy}"
    return Check("order of lists", passed, sentence, value, 0.5)


def own_candidates_of(row: IntArray, listed: IntArray, n_classes: int) -> Check:
    """Whether lists of wrong classes share as many classes as random lists would.

    `listed` are the classes of all lists, and `row` the ascending numbers of their lists. Two lists
    of :math:`m_i` and :math:`m_j` classes out of k1 share :math:`m_i m_j / k_1` of them by chance,
    and more if they are the best of all classes. The value is the ratio to this number, which is
    too low at less than a quarter, unless random lists are likely to share as few or lists have
    fewer than three wrong classes.
    """
    # A class may have several entries in a list.
    pairs = np.unique(row[:_MOST_ENTRIES] * n_classes + listed[:_MOST_ENTRIES])
    sizes, met = (np.bincount(part).astype(float) for part in np.divmod(pairs, n_classes))
    by_chance = float(sizes.sum() ** 2 - (sizes**2).sum()) / (2 * n_classes)
    shared = float((met * (met - 1)).sum() / 2)
    value = shared / by_chance if by_chance else 1.0
    by_luck = float(poisson.cdf(shared, by_chance)) >= _CHANCE
    # The nearest classes of regular ones, as on a ring, are all different.
    passed = value >= _TOO_FEW or by_luck or pairs.size < _SHORTEST_OWN * np.unique(row).size
    sentence = f"lists share {shared:,.0f} wrong classes, random ones {by_chance:,.0f}"
    if not passed:
        sentence += (
            ", as if each instance had been ranked among candidates of its own, and not among all "
            f"{n_classes:,} classes: pass own_candidates=True in place of n_classes to "
            "SourceTask.from_run or from_search, or ranks with n_negatives"
        )
    return Check("own candidates", passed, sentence, value, _TOO_FEW)


def spread_at_end(scores: FloatArray) -> FloatArray:
    """Spread (n,) of the last quarter of full lists (n, M), in that of the middle half."""
    n, spread = scores.shape[1], np.full(len(scores), np.nan)
    upper, lower, last = scores[:, [n // 4, 3 * n // 4, -1]].T
    full = np.isfinite(last) & (upper > lower)
    spread[full] = (lower[full] - last[full]) / (upper[full] - lower[full])
    return spread


def reranked(
    lowest: IntArray,
    highest: IntArray,
    n_classes: int,
    spread: FloatArray | None = None,
    true: str = "true classes",
) -> Check:
    """Whether true classes are missing in lists as if ranks beyond these were rare.

    In the lists of one system the ranks of the true classes thin out slowly: if few are in the
    second half of the lists, few are in each doubling of the rank after it. A second model that
    reorders the best entries of a first one moves the true classes to the top, and those that the
    first one missed stay missing. Scores show it too: those of the best of many classes lie close
    together at the end of a list. `spread` (n,) is that of `spread_at_end`.
    """
    missed = lowest < highest
    length = int(lowest[missed].max(initial=0))
    n_missed, n_late = int(missed.sum()), int((~missed & (2 * lowest >= length)).sum())
    doublings = np.log2(max(n_classes / max(length, 1), 1.0))
    chance = float(binom.cdf(n_late, n_late + n_missed, 1 / (1 + _GROWTH * doublings)))
    is_short = _SHORTEST <= length <= _LONGEST * n_classes
    thins_out = is_short and n_late < min(n_missed, _MOST_LATE * (lowest.size - n_missed))
    ends = np.nan if spread is None or np.isnan(spread).all() else float(np.nanmedian(spread))
    passed = not (thins_out and ends > _MOST_SPREAD)
    is_note = thins_out and passed and chance < _RARE
    sentence = f"the lists have all {true}"
    if n_missed:
        sentence = (
            f"{n_late} {true} have ranks in the second half of the lists, and {n_missed} are "
            "missing in them"
        )
    if is_note or not passed:
        sentence += (
            ", as if a second model had reordered the best entries of a first one. If so, the "
            "first one limits every metric with more of them: fit its lists as another task, and "
            f"pass both models to predict_reranked with n_reranked={length}"
        )
    return Check("reranked lists", passed, sentence, ends, _MOST_SPREAD, is_note)


def shifted_labels(ranking: Sample, n_classes: int, remedy: str) -> Check:
    """Whether another class than that of y, always as far from it, is often the best one.

    It is so in place of the class of y, for all classes or for those after one that y leaves out.
    Neighbours of ordered classes, such as ages, are not best more often than the class of y.
    """
    first_rows = np.unique(ranking.y, return_index=True)[1]  # independent: one row of each class
    ahead = (ranking.first - ranking.y)[first_rows] % n_classes
    places, number = np.unique(np.append(ahead[ahead > 0], 1), return_counts=True)
    place = int(places[number.argmax()])
    by = place if place <= n_classes // 2 else place - n_classes
    is_right, is_other = ahead == 0, ahead == place
    # The class after which y + by is right; before it, y is.
    start = int(np.cumsum((is_other * 1 - is_right)[::-1])[::-1].argmax())
    if is_right[:start].sum() <= max(_FEW_RIGHT, 4 * is_other[:start].sum()):
        start = 0
    right, most, n = int(is_right[start:].sum()), int(is_other[start:].sum()), ahead.size - start
    usual = max(right, n / (n_classes - 1))
    far = most > 2 * usual and most - usual > _STANDARD_ERRORS * (most + usual) ** 0.5
    passed = not (far and most > _SHIFTED * ahead.size)
    sentence = f"the first instance of {int(is_right.sum())} of {ahead.size} classes is recognised"
    if not passed:
        sentence = f"{right} of {n} classes are best for their first instance"
        label = f"y {'+' if by > 0 else '-'} {abs(by)}"
        if start == 0 and (by + ranking.y.min() < 0 or by + ranking.y.max() >= n_classes):
            label = f"({label}) % {n_classes}"
        sentence += f", and class {label} for {most}, as if "
        if start:
            sentence = f"from class {ranking.y[first_rows[start]]} on, {sentence}" + (
                "y counted only classes that occur: pass the numbers of their columns"
            )
        else:
            sentence += f"labels were off by {abs(by)}: {remedy.format(label)}"
    return Check("labels", passed, sentence, most / ahead.size, _SHIFTED)


def ties_of_rounding(true: FloatArray, wrong: FloatArray) -> Check:
    """Whether wrong scores (n, m) differ from the true one (n,) by more than single precision does.

    If ties are hidden so, as many wrong scores are within it as in the hundred times wider range
    after it, and their order says which of them was computed in another way, or first. The value is
    the share of the instances.
    """
    rows = np.isfinite(true) & np.isfinite(wrong).any(axis=1)
    if np.count_nonzero(rows) < _FEWEST:
        return Check("rounding", None, f"needs {_FEWEST} instances with scores")
    true, wrong = true[rows, None], np.where(np.isfinite(wrong[rows]), wrong[rows], np.nan)
    spread = np.nanmax(wrong, axis=1) - np.nanmin(wrong, axis=1)
    scale = np.minimum(np.abs(true), spread[:, None])
    gap = np.abs(wrong - true)
    near = (gap > 0) & (gap <= _ROUNDED * scale)
    after = (gap > _ROUNDED * scale) & (gap <= 100 * _ROUNDED * scale)
    touched, others = (int(np.count_nonzero(part.any(axis=1))) for part in (near, after))
    value = touched / len(true)
    passed = value <= _MOST_ROUNDED or touched <= others + 1  # a single one may be chance
    sentence = f"{value:.0%} of the instances have wrong scores within rounding of the true one"
    if not passed:
        digits = int(np.floor(-np.log10(100 * gap[near].max())))
        sentence += (
            ", as if equal scores had been computed in two ways: pass np.round(scores, "
            f"{digits}), so that they are tied"
        )
    return Check("rounding", passed, sentence, value, _MOST_ROUNDED)


def true_item_first(ranking: Sample) -> Check:
    """Whether column 0 is the best one in rows of different labels, and these score by chance."""
    y, n = ranking.y, ranking.y.size
    right = int(np.count_nonzero(ranking.first == y))
    most, *others = np.bincount(ranking.first, minlength=2).tolist()
    usual = n / (1 + ranking.wrong.shape[1])
    by_chance = right - usual <= _STANDARD_ERRORS * usual**0.5 and n == np.unique(y).size
    next_one = max(others)  # hubs are rarely alone
    far = n >= _FEWEST and most - next_one > _STANDARD_ERRORS * (most + next_one) ** 0.5
    sentence = f"column 0 is best in {most} of {n} rows"
    if by_chance and far:
        sentence += (
            f", and y in {right}, as if each row had candidates of its own, the true one first: "
            "pass the rows to SourceTask.from_negatives"
        )
    return Check("candidates", not (by_chance and far), sentence, most / n)
