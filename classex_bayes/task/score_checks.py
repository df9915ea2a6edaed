"""Scores and embeddings that are not what they seem; the checks inspect some of their rows.

Scores may be ranks, cosines, negative distances or rounded probabilities. Embeddings may have row
numbers or labels among their coordinates, templates among the probes, or two units.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from classex_bayes.array_access import read_rows
from classex_bayes.core.ranks.embeddings import EmbeddingScores
from classex_bayes.core.ranks.nearest import ROUNDING
from classex_bayes.core.ranks.sources import ScoreSource, is_negated, split_scores
from classex_bayes.exceptions import DataError
from classex_bayes.task.check import Check
from classex_bayes.task.misuse import (
    order_of_lists,
    own_candidates_of,
    reranked,
    self_match_limit,
    self_matches,
    shifted_labels,
    spread_at_end,
    ties_of_rounding,
    true_item_first,
)
from classex_bayes.task.provenance import CUT_RANKS
from classex_bayes.task.rank_table import RankTable
from classex_bayes.typing import FloatArray, IntArray

_MOST_ROWS = 1000
_FEWEST_ROWS, _FEWEST_VALUES, _NEAREST = 3, 10, 4
_MOSTLY, _FEW, _MANY_TIES = 0.5, 0.1, 0.05
_TINY = 1e-6  # votes have no smaller probability, but a softmax that rounds to 0 has
_NEAR, _HALF_PRECISION = 0.5, 1e-3  # the largest cosine is above the first, at most 1 + the second
_SUM_ROUNDING = 1e-2  # of probabilities and their logarithms in half precision
_FEWEST_PROBES, _MANY_PROBES = 10, 20
_MOST_COORDINATES = 2**22
_OTHER_UNIT = 10.0  # times the spread of the templates, which noise does not reach
_SAME_NORM, _OTHER_NORMS = 1e-2, 0.1  # spread of lengths, in shares of their mean
_SAME_MEAN = 1e-2  # of the distance of probes: rounding of half precision


def checks_of_sample(table: RankTable, names: Sequence[Any] | None) -> tuple[Check, ...]:
    """Checks of the first rows of scores or lists. `names` are those of the classes."""
    sample = table.first_rows
    true = table.provenance.nouns.true
    if sample is None and table.provenance.unknown is CUT_RANKS:
        return (reranked(table.lowest, table.highest, table.n_classes, None, true),)
    if sample is None:
        return ()
    checks = []
    if sample.has_scores:
        sums = sums_to_one(sample.scores) if np.isfinite(sample.wrong).all() else False
        limit = np.inf if sums else self_match_limit(sample)
        remedy = (
            "use test instances that the classifier has not seen, compare each instance with "
            "templates that are made without it, or pass ignore_identical=True"
        )
        checks += [self_matches(sample, limit, remedy), ties_of_rounding(sample.true, sample.wrong)]
    if table.influence is None:
        missed = np.isneginf(sample.true)
        before = (sample.wrong > sample.true[:, None]).sum(axis=1)
        n_wrong = (sample.classes >= 0).sum(axis=1)
        remedy = "pass the best first, or the other value of higher_is_better"
        checks.append(order_of_lists(sample.y[~missed], before[~missed], n_wrong[~missed], remedy))
        if table.competitors_shared:
            row, place = np.nonzero(sample.classes >= 0)
            checks.append(own_candidates_of(row, sample.classes[row, place], table.n_classes))
            spread = spread_at_end(-np.sort(-sample.wrong, axis=1))
            checks.append(reranked(table.lowest, table.highest, table.n_classes, spread, true))
    elif isinstance(table.provenance.source, EmbeddingScores):
        checks.append(_check_of_embeddings(table.provenance.source, table.y))
    else:
        negated = table.provenance.source is not None and is_negated(table.provenance.source)
        checks.append(_scores_fit(negated, sample.scores, np.zeros_like(sample.y)))
        checks.append(true_item_first(sample))
    if table.competitors_shared:
        remedy = "pass {}" if names is None else "check the order of the names"
        checks.append(shifted_labels(sample, table.n_classes, remedy))
    return tuple(checks)


def _scores_fit(negated: bool, scores: FloatArray, y: IntArray) -> Check:
    """Whether scores measure how near the classes `y` (n,) are, with all their digits.

    A fault is a warning. Scores that look like cosines are a note.
    """
    faults = [*_same_values(scores), *_rounded_probabilities(scores, y)]
    if negated:
        faults += [*_negative_distances(-scores), *_probabilities_as_distances(scores)]
    notes = [] if negated else [*_cosines(scores)]
    sentence = ". ".join(faults + notes) or "nothing unusual"
    return Check("scores", not faults, sentence, is_note=bool(notes and not faults))


def _same_values(scores: FloatArray) -> Iterator[str]:
    """Sentence if most rows are permutations of one another."""
    ordered = np.sort(scores, axis=1)
    typical = np.sort(ordered, axis=0)[len(ordered) // 2]  # the medians
    same = (ordered == typical).all(axis=1).mean()
    if len(scores) >= _FEWEST_ROWS and np.unique(typical).size >= _FEWEST_VALUES and same > _MOSTLY:
        yield (
            "most rows of scores contain the same numbers in another order, as ranks do. They show "
            "the order of the classes and not how near a class is: pass the scores that were "
            "ranked, or the ranks of the true classes to SourceTask.from_ranks"
        )


def _rounded_probabilities(scores: FloatArray, y: IntArray) -> Iterator[str]:
    """Sentence if classes that matter are tied at a probability of 0 or 1, which rounding made."""
    if not (scores.min() >= 0 and scores.max() <= 1 and ((scores > 0) & (scores < _TINY)).any()):
        return
    true, wrong = split_scores(scores.copy(), y)
    nearest = min(_NEAREST, wrong.shape[1])
    best = np.partition(wrong, -nearest, axis=1)[:, -nearest:]
    some = np.sort(np.column_stack([true, best]), axis=1)
    rounded = (some[:, :-1] == 0) | (some[:, :-1] == 1)
    share = float(((some[:, 1:] == some[:, :-1]) & rounded).any(axis=1).mean())
    if share > _MANY_TIES:
        yield (
            f"in {share:.0%} of the rows some of the best classes have the same probability, 0 or "
            "1, because a softmax or sigmoid was rounded: pass the logits"
        )


def _negative_distances(distances: FloatArray) -> Iterator[str]:
    """Sentence if a few distances are negative by more than the rounding of single precision."""
    finite = distances[np.isfinite(distances)]
    negative = finite < -ROUNDING * np.abs(finite).max(initial=0.0)
    if negative.any() and (share := negative.mean()) < _FEW:
        yield (
            f"{share:.2g} of the distances are negative, down to {finite.min():.3g}, so the "
            "distance of a perfect match is not known to be 0. If they were rounded, such as 1 - "
            "cosine in half precision, pass np.maximum(scores, 0); if they are no distances, pass "
            "their negatives with higher_is_better=True"
        )


def _probabilities_as_distances(scores: FloatArray) -> Iterator[str]:
    """Sentence if distances are made of probabilities over the classes."""
    if sums_to_one(scores):
        yield (
            "the distances are 1 minus probabilities over the classes, or minus their logarithms, "
            "which do not measure how near a class is: pass the logits, or the probabilities "
            "with higher_is_better=True"
        )


def sums_to_one(scores: FloatArray) -> bool:
    """Whether scores are made of probabilities over the classes, which sum to 1 in each row.

    They are these probabilities, or a multiple of them, their logarithms, or minus the
    probabilities of all other classes. Their sums vary less than the best ones do, unlike those
    of scores that are nearly equal. Rows of zeros and a one are decisions.
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
    return any(
        probs.min() >= 0
        and probs.max(axis=1).min() < 1
        and bool((np.abs((total := probs.sum(axis=1)) - 1) <= _SUM_ROUNDING).all())
        and float(total.std()) <= np.finfo(np.float32).eps + float(probs.max(axis=1).std()) / 2
        for probs in kinds
    )


def _cosines(scores: FloatArray) -> Iterator[str]:
    """Sentence if all scores lie between -1 and 1 and have both signs."""
    finite = scores[np.isfinite(scores)]
    if finite.size and finite.min() < 0 and _NEAR < np.abs(finite).max() <= 1 + _HALF_PRECISION:
        yield (
            "all scores lie between -1 and 1: if they are cosines of embeddings, pass "
            "np.maximum(1 - scores, 0) with higher_is_better=False, which says that 1 is a perfect "
            "match; correlations with noisy measurements stay as they are"
        )


def refuse_softmax(source: ScoreSource | None) -> None:
    """Raise if the scores of every instance are made of probabilities that sum to 1.

    Enrolling another class changes all of them, so they have no rates at a threshold. Their ranks
    do not change.
    """
    if source is None:
        return
    if sums_to_one(source.scores(np.arange(min(source.shape[0], _MOST_ROWS)))):
        raise DataError(
            "task: the scores of each instance are made of probabilities over the classes, "
            "because these sum to 1. With more classes they are smaller, so they have no rates at "
            "a threshold; pass the logits, before the softmax"
        )


def _check_of_embeddings(source: EmbeddingScores, y: IntArray) -> Check:
    """Whether the probes of classes `y` (n,) are new and have the unit of the templates."""
    probes, gallery = _first_rows(source.probes), _first_rows(source.gallery)
    sentences = []
    if len(probes) >= _FEWEST_PROBES:
        if _are_means(source, probes, y, gallery):
            sentences.append(
                "templates are the means of the probes of their classes; make them of other "
                "instances than those that are tested"
            )
        of_probes, of_gallery = (np.linalg.norm(rows, axis=1) for rows in (probes, gallery))
        if (
            source.distance != "cosine"
            and of_probes.std() < _SAME_NORM * of_probes.mean()
            and of_gallery.std() > _OTHER_NORMS * of_gallery.mean()
            and of_gallery.max() > (1 + _SAME_NORM) * of_probes.max()  # means are shorter
        ):
            sentences.append(
                "all probes have one length and templates have not, which decides between them: "
                "pass distance='cosine', or normalise both"
            )
        left, right = (np.mean((rows - gallery.mean(axis=0)) ** 2) for rows in (probes, gallery))
        ratio = (left / right) ** 0.5 if right > 0 else 1.0
        if source.distance == "sqeuclidean" and not 1 / _OTHER_UNIT < ratio < _OTHER_UNIT:
            sentences.append(
                f"probes lie {ratio:.3g} times as far from the mean of the gallery as templates "
                "do; check that both have the same unit and normalisation"
            )
    return Check("embeddings", not sentences, "; ".join(sentences) or "nothing unusual")


def _are_means(
    source: EmbeddingScores, probes: FloatArray, y: IntArray, gallery: FloatArray
) -> bool:
    """Whether most templates in sight, one of each class, are means of two or more probes."""
    of_template = source.template_class[: len(gallery)]
    if np.unique(source.template_class).size < source.template_class.size:
        return False
    sums, n_classes = np.zeros((source.shape[1], probes.shape[1])), source.shape[1]
    np.add.at(sums, y[: len(probes)], probes)
    seen, repeats = (np.bincount(rows, minlength=n_classes) for rows in (y[: len(probes)], y))
    whole = (seen == repeats)[of_template] & (repeats > 1)[of_template]
    if whole.sum() < _FEWEST_PROBES:
        return False
    means = sums[of_template] / np.maximum(seen, 1)[of_template, None]
    away = np.linalg.norm(means - gallery, axis=1)[whole]
    within = np.linalg.norm(probes - sums[y[: len(probes)]] / seen[y[: len(probes)], None], axis=1)
    return bool(np.mean(away <= _SAME_MEAN * np.median(within)) > _MOSTLY)


def _first_rows(matrix: Any) -> FloatArray:
    """Rows of a matrix from anywhere, few enough to be read at once."""
    n, width = matrix.shape
    number = min(n, _MOST_ROWS, max(_MOST_COORDINATES // width, _MANY_PROBES))
    return np.asarray(read_rows(matrix, np.arange(number)), dtype=float)
