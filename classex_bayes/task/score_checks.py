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
from classex_bayes.core.ranks.sources import (
    ConcatenatedScores,
    ScoreSource,
    is_negated,
    split_scores,
)
from classex_bayes.exceptions import DataError
from classex_bayes.task.check import Check
from classex_bayes.task.dask_sources import DaskSource
from classex_bayes.task.misuse import (
    Ranking,
    columns_are_classes,
    counts_of_decisions,
    floor_of_scores,
    self_match_limit,
    self_matches,
    shifted_labels,
    ties_of_rounding,
    true_item_first,
    without_overflow,
)
from classex_bayes.typing import BoolArray, FloatArray, IntArray

_MOST_ROWS, _MOST_ENTRIES = 1000, 2**21
_FEWEST_ROWS, _FEWEST_VALUES, _NEAREST = 3, 10, 4
_MOSTLY, _FEW, _MANY_TIES = 0.5, 0.1, 0.05
_TINY = 1e-6  # votes have no smaller probability, but a softmax that rounds to 0 has
_NEAR, _HALF_PRECISION = 0.5, 1e-3  # the largest cosine is above the first, at most 1 + the second
_SUM_ROUNDING = 1e-2  # of probabilities and their logarithms in half precision
_FEWEST_PROBES, _MANY_PROBES, _FEWEST_CLASSES = 10, 20, 3
_MOST_COORDINATES = 2**22
_OTHER_UNIT = 10.0  # times the spread of the templates, which noise does not reach
_SAME_NORM, _OTHER_NORMS = 1e-2, 0.1  # spread of lengths, in shares of their mean
_SAME_MEAN = 1e-2  # of the distance of probes: rounding of half precision
# Distance of a probe to itself, in shares of that to the nearest wrong templates.
_SAME_VECTOR = 1e-6
_STEP_ROUNDING = 1e-6  # of row numbers that were divided by their number


def source_checks(
    source: ScoreSource, y: IntArray, names: Sequence[Any] | None
) -> tuple[Check, ...]:
    """Checks of scores or embeddings of instances of the classes `y` (n,), by their first rows.

    `names` are those of the classes. Dask arrays are not checked.
    """
    if isinstance(source, DaskSource):
        return ()
    if isinstance(source, EmbeddingScores):
        _refuse_foreign_coordinates(source, y)
        return _checks_of_embeddings(source, y, names)
    return checks_of_scores(source, y, names)


def joined_rows(sources: Sequence[ScoreSource]) -> ScoreSource:
    """Source of the instances of several ones on the same classes, for checks."""
    first = sources[0]
    if isinstance(first, EmbeddingScores):
        parts = [_first_rows(source.probes) for source in sources if hasattr(source, "probes")]
        return first.with_probes(np.concatenate(parts))
    return ConcatenatedScores(sources)


def checks_of_scores(
    source: ScoreSource, y: IntArray, names: Sequence[Any] | None
) -> tuple[Check, ...]:
    """Checks of the first rows of scores of instances of the classes `y` (n,)."""
    rows = np.arange(min(source.shape[0], most_rows(source.shape[1])))
    scores = without_overflow(source.scores(rows))
    ranking = Ranking.of_matrix(scores, y[: len(scores)])
    are_probabilities = sums_to_one(scores)  # which saturate
    limit = np.inf if are_probabilities else self_match_limit(ranking)
    remedy = "compare each instance with templates that are made without it"
    return (
        _scores_fit(source, scores, ranking.y),
        self_matches(ranking, limit, remedy),
        _labels_fit(ranking, scores.shape[1], names),
        true_item_first(ranking),
        ties_of_rounding(ranking.true, ranking.wrong),
        columns_are_classes(scores, y, names),
        counts_of_decisions(scores, ranking.y, y.size),
        floor_of_scores(scores),
    )


def most_rows(width: int) -> int:
    """Number of rows of a matrix that are few enough to be read at once."""
    return min(_MOST_ROWS, max(_MOST_ENTRIES // width, _FEWEST_PROBES))


def _labels_fit(ranking: Ranking, n_classes: int, names: Sequence[Any] | None) -> Check:
    return shifted_labels(
        ranking, n_classes, "pass {}" if names is None else "check the order of the names"
    )


def _scores_fit(source: ScoreSource, scores: FloatArray, y: IntArray) -> Check:
    """Whether scores measure how near the classes `y` (n,) are, with all their digits.

    A fault is a warning. Scores that look like cosines are a note.
    """
    faults = [*_same_values(scores), *_rounded_probabilities(scores, y)]
    if is_negated(source):
        faults += [*_negative_distances(-scores), *_probabilities_as_distances(scores)]
    notes = [] if is_negated(source) else [*_cosines(scores)]
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


def _refuse_foreign_coordinates(source: EmbeddingScores, y: IntArray) -> None:
    """Raise if a coordinate contains row numbers, or one number for each class of y (n,)."""
    for name, matrix, labels in (("probes", source.probes, y), ("gallery", source.gallery, y[:0])):
        values = _first_rows(matrix)
        contents = {"the numbers of the rows": _are_row_numbers(values)}
        if labels.size:
            contents["one number for each class"] = _are_labels(values, labels[: len(values)])
        for content, columns in contents.items():
            if columns.any() and columns.mean() < _MOSTLY:
                raise DataError(
                    f"{name}: coordinate {np.argmax(columns)} contains {content}, like an index or "
                    "a label; leave it out of probes and gallery"
                )


def _checks_of_embeddings(
    source: EmbeddingScores, y: IntArray, names: Sequence[Any] | None
) -> tuple[Check, ...]:
    """Whether the probes of classes `y` (n,) are new and have the unit of the templates."""
    # Few rows, because their scores would not be computed otherwise.
    rows = np.arange(min(source.probes.shape[0], most_rows(8 * source.template_class.size)))
    ranking = Ranking.of_matrix(source.scores(rows), y[rows])
    remedy = (
        "use test instances that the classifier has not seen, or pass the nearest templates of "
        "each as search results (SourceTask.from_search) with ignore_identical=True"
    )
    same = self_matches(ranking, self_match_limit(ranking, _SAME_VECTOR), remedy)
    probes, gallery = _first_rows(source.probes), _first_rows(source.gallery)
    sentences = []
    if len(probes) >= _FEWEST_PROBES:
        if same.passed and _are_means(source, probes, y, gallery):
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
    fit = Check("embeddings", not sentences, "; ".join(sentences) or "nothing unusual")
    return fit, same, _labels_fit(ranking, source.shape[1], names)


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


def _are_row_numbers(values: FloatArray) -> BoolArray:
    """Whether columns are equally spaced: in order, or of 20 rows or more in any order."""
    if len(values) < _FEWEST_PROBES:
        return np.zeros(values.shape[1], dtype=bool)
    if len(values) >= _MANY_PROBES:
        values = np.sort(values, axis=0)
    with np.errstate(invalid="ignore", over="ignore"):
        step = (values[-1] - values[0]) / (len(values) - 1)
        equal = np.abs(np.diff(values, axis=0) - step) <= _STEP_ROUNDING * np.abs(step)
    are_numbers: BoolArray = (step != 0) & np.isfinite(step) & equal.all(axis=0)
    return are_numbers


def _are_labels(values: FloatArray, y: IntArray) -> BoolArray:
    """Whether columns hold one number for each class, where classes have several instances."""
    _, first, place = np.unique(y, return_index=True, return_inverse=True)
    if first.size < _FEWEST_CLASSES or y.size < first.size + _FEWEST_PROBES // 2:
        return np.zeros(values.shape[1], dtype=bool)
    of_class = np.sort(values[first], axis=0)
    n_values = 1 + np.count_nonzero(of_class[1:] != of_class[:-1], axis=0)
    are_labels: BoolArray = (n_values == first.size) & (values == values[first][place]).all(axis=0)
    return are_labels
