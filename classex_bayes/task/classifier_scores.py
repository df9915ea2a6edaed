"""Scores of a fitted classifier that rank the classes as its `predict` does."""

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from classex_bayes.arguments import as_vector
from classex_bayes.core.ranks.sources import ScoreMatrix
from classex_bayes.exceptions import DataError, DataWarning, warn
from classex_bayes.frames import refuse_masked, refuse_unread, with_labels
from classex_bayes.task.class_labels import class_names, encode_labels
from classex_bayes.task.data_checks import Check
from classex_bayes.task.score_arguments import LabelledScores, refuse_disorder
from classex_bayes.task.validation import enough_classes
from classex_bayes.typing import IntArray, NumberArray

# In this order, because the first have the fewest ties: probabilities saturate at 0 and 1.
_METHODS = "decision_function", "predict_joint_log_proba", "predict_log_proba", "predict_proba"
# Classifiers that describe each class by its own training rows alone, as scikit-learn fits them.
_MARGINAL = {
    "BernoulliNB",
    "GaussianNB",
    "MultinomialNB",
    "NearestCentroid",
    "QuadraticDiscriminantAnalysis",
}
# The end of a note, which a prediction with drift no longer has.
MEASURE_DRIFT = (
    "train it on some smaller sets of classes too, and pass these tasks to cb.measure_drift"
)
_BLOCK_ELEMENTS = 2**22
_ROUNDING = 8  # units in the last place within which scores tie
_SHOWN = 5


class _Scorer(NamedTuple):
    """A scoring method: its name, and its function of some rows."""

    name: str
    score: Callable[[Any], Any]
    higher_is_better: bool = True


def read_classifier(clf: Any, X: Any, y: Any) -> LabelledScores:
    """Arguments of `SourceTask.from_classifier`; warns if the scores disagree with `predict`."""
    names = _fitted_classes(clf)
    X, y = with_labels(X), with_labels(y)
    rows = _Rows(X)
    refuse_disorder(X, y, ("X", "y"))
    labels = _seen_labels(y, rows.n, names)
    predicted = np.concatenate([np.asarray(clf.predict(part)) for _, part in rows.blocks(1)])
    if predicted.ndim == 2 and predicted.shape[1] == 1:
        predicted = predicted[:, 0]
    predicted = encode_labels(predicted, rows.n, len(names), names, "clf.predict(X)")
    tried = _tried(_scorers(clf), rows, predicted, len(names))
    n_other, scorer, scores = min(tried, key=itemgetter(0))
    checks = [_agreement(clf, scorer, n_other, rows.n)]
    if not checks[0].passed:
        warn(checks[0].sentence, DataWarning)
    if not _is_marginal(clf):
        sentence = (
            f"{type(_classifier(clf)).__name__} may score a class by the other classes that it was "
            "trained with. If it is retrained for more classes, it becomes another classifier; "
            f"{MEASURE_DRIFT}"
        )
        checks.append(Check("marginality", True, sentence, is_note=True))
    source = ScoreMatrix(scores, scorer.higher_is_better)
    return LabelledScores(source, labels, names, checks=tuple(checks))


class _Rows:
    """Rows of any input of a classifier, in blocks: arrays, sparse matrices, frames, lists."""

    def __init__(self, X: Any) -> None:
        refuse_unread(X, "X")
        refuse_masked(X, "X")
        X = X.tocsr() if hasattr(X, "tocsr") else X
        self._rows = getattr(X, "iloc", X)
        if not (hasattr(X, "__len__") or hasattr(X, "shape")):
            raise DataError(f"X: expected test instances in rows, found {type(X).__name__}")
        self.n = int(X.shape[0]) if hasattr(X, "shape") else len(X)
        if self.n == 0:
            raise DataError("X: expected at least one test instance, found none")

    def blocks(self, width: int) -> Iterator[tuple[slice, Any]]:
        """Slices and their rows, so few that `width` numbers for each need little memory."""
        size = max(1, _BLOCK_ELEMENTS // width)
        for start in range(0, self.n, size):
            part = slice(start, min(start + size, self.n))
            yield part, self._rows[part]


def _fitted_classes(clf: Any) -> list[Any]:
    """Classes of a fitted classifier with one output."""
    kind = clf.__name__ if isinstance(clf, type) else type(clf).__name__
    if isinstance(clf, type) or not (hasattr(clf, "predict") and hasattr(clf, "classes_")):
        raise DataError(
            f"clf: expected a fitted classifier with predict and classes_, found {kind} without "
            "them; call clf.fit(X_train, y_train) first (a search needs refit=True), and pass "
            "scores of anything else to SourceTask.from_scores"
        )
    classes = clf.classes_
    if getattr(clf, "multilabel_", False) or any(np.ndim(label) for label in classes):
        raise DataError(
            f"clf: found {kind} with several outputs, expected one class for each instance; pass "
            "the scores of one output to SourceTask.from_scores"
        )
    names = class_names(classes, None) or []
    enough_classes(len(names), "clf.classes_")
    return names


def _seen_labels(y: Any, n: int, names: list[Any]) -> Any:
    """True classes as the classifier names them."""
    labels = as_vector(y, "y")
    if labels.ndim != 1 or labels.size != n:
        raise DataError(f"y: found shape {labels.shape} for {n} rows of X, expected a label each")
    trained = set(names)
    unseen = list(dict.fromkeys(repr(label) for label in labels.tolist() if label not in trained))
    if unseen:
        shown = ", ".join(unseen[:_SHOWN])
        more = f" and {len(unseen) - _SHOWN} more" if len(unseen) > _SHOWN else ""
        raise DataError(
            f"y: the classifier has not seen {shown}{more}; expected labels of clf.classes_, "
            f"such as {names[0]!r}: leave out instances of other classes, or train with them"
        )
    return labels


def _classifier(clf: Any) -> Any:
    """The classifier of a pipeline or search, which have `steps` and `best_estimator_`."""
    if hasattr(clf, "best_estimator_"):
        return _classifier(clf.best_estimator_)
    return _classifier(clf.steps[-1][1]) if hasattr(clf, "steps") else clf


def _is_marginal(clf: Any) -> bool:
    """Whether the classifier is known to score each class on its own, by its name or a base's."""
    return any(base.__name__ in _MARGINAL for base in type(_classifier(clf)).__mro__)


def _scorers(clf: Any) -> Iterator[_Scorer]:
    """Scoring methods, the best first."""
    last = _classifier(clf)
    bases = {base.__name__ for base in type(last).__mro__}
    if "NearestCentroid" in bases:  # its probabilities rescale the features
        from sklearn.metrics import pairwise_distances

        whole = getattr(clf, "best_estimator_", clf)
        features = whole[:-1].transform if hasattr(whole, "steps") else _unchanged
        yield _Scorer(
            "the distance to centroids_",
            lambda rows: pairwise_distances(features(rows), last.centroids_, last.metric),
            False,
        )
    if "KNeighborsClassifier" in bases and last.n_neighbors == 1:
        raise DataError(
            "clf: KNeighborsClassifier(n_neighbors=1) shows only which class won; pass the "
            "training rows as templates: SourceTask.from_embeddings(X, X_train, y, "
            "gallery_y=y_train)"
        )
    if getattr(last, "decision_function_shape", "ovr") == "ovo":
        raise DataError(
            f"clf: found {type(last).__name__} with decision_function_shape='ovo', which scores "
            "pairs of classes, expected a score for each class; set it to 'ovr', which needs no "
            "new fit"
        )
    methods = [name for name in _METHODS if callable(getattr(clf, name, None))]
    if not methods:
        raise DataError(
            f"clf: {type(clf).__name__} has only predict, expected one of {', '.join(_METHODS)}; "
            "decisions give only the accuracy among all classes. If you have only decisions, "
            "pass (clf.predict(X)[:, None] == clf.classes_) * 1.0 to SourceTask.from_scores with "
            "classes=clf.classes_"
        )
    for name in methods:
        yield _Scorer(f"clf.{name}", getattr(clf, name))


def _unchanged(rows: Any) -> Any:
    return rows


def _tried(
    scorers: Iterator[_Scorer], rows: _Rows, predicted: IntArray, n_classes: int
) -> Iterator[tuple[int, _Scorer, NumberArray]]:
    """Methods with their scores, and in how many instances `predict` disagrees, until in none."""
    for scorer in scorers:
        scores = _scores(scorer, rows, n_classes)
        n_other = _count_other(scores, predicted, scorer.higher_is_better)
        yield n_other, scorer, scores
        if n_other == 0:
            return


def _scores(scorer: _Scorer, rows: _Rows, n_classes: int) -> NumberArray:
    """Scores of all rows, from blocks of them."""
    for place, part in rows.blocks(n_classes):
        with np.errstate(divide="ignore"):  # logarithms of probabilities that are zero
            block = np.asarray(scorer.score(part))
        shape = place.stop - place.start, n_classes
        if block.shape != shape:
            raise DataError(
                f"{scorer.name}(X): found shape {block.shape}, expected {shape}: a score for each "
                "class of clf.classes_"
            )
        if place.start == 0:
            result = np.empty((rows.n, n_classes), block.dtype)
        result[place] = block
    return result


def _count_other(scores: NumberArray, predicted: IntArray, higher_is_better: bool) -> int:
    """Number of instances whose best class is not the predicted one, ties aside."""
    number, size = 0, max(1, _BLOCK_ELEMENTS // scores.shape[1])
    eps = np.finfo(scores.dtype if scores.dtype.kind == "f" else float).eps
    for start in range(0, len(scores), size):
        part = scores[start : start + size].astype(float)
        part = part if higher_is_better else -part
        best = part.max(axis=1)
        of_predicted = part[np.arange(len(part)), predicted[start : start + size]]
        with np.errstate(invalid="ignore"):  # infinite and missing scores are refused later
            number += int(np.sum(of_predicted < best - _ROUNDING * eps * np.abs(best)))
    return number


def _agreement(clf: Any, scorer: _Scorer, n_other: int, n: int) -> Check:
    """Whether the best scores are those of the predicted classes."""
    remedy = "pass scores whose best class is the predicted one to SourceTask.from_scores"
    if getattr(_classifier(clf), "break_ties", True) is False:
        remedy = "set break_ties=True, so that predict uses these scores; no new fit is needed"
    sentence = (
        f"the best class by {scorer.name} is not that of clf.predict in {n_other} of {n} "
        f"instances, so the task describes another classifier; {remedy}"
    )
    return Check("classifier", n_other == 0, sentence if n_other else "")
