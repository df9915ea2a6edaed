"""Scores of a fitted classifier that rank the classes as its `predict` does."""

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from classex_bayes.arguments import enough_classes
from classex_bayes.array_access import with_labels
from classex_bayes.core.ranks.sources import ScoreMatrix
from classex_bayes.exceptions import DataError, DataWarning, warn
from classex_bayes.task.class_labels import (
    class_names,
    encode_labels,
    refuse_disorder,
    refuse_positions,
)
from classex_bayes.task.score_reading import LabelledScores
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
_ROUNDING = 8  # units in the last place within which scores tie


class _Scorer(NamedTuple):
    """A scoring method: its name, and its function of some rows."""

    name: str
    score: Callable[[Any], Any]
    higher_is_better: bool = True


def read_classifier(clf: Any, X: Any, y: Any) -> LabelledScores:
    """Arguments of `SourceTask.from_classifier`."""
    names = _fitted_classes(clf)
    X, y = with_labels(X), with_labels(y)
    refuse_disorder(X, y, ("X", "y"))
    refuse_positions(y, names, "clf.classes_")
    labels = np.ravel(clf.predict(X))
    n, predicted = labels.size, encode_labels(labels, None, len(names), names, "clf.predict(X)")
    n_other, scorer, scores = min(_tried(clf, X, predicted, len(names)), key=itemgetter(0))
    sentences = [_disagreement(clf, scorer.name, n_other, n)] if n_other else []
    if sentences:
        warn(sentences[0], DataWarning)
    if not _is_marginal(clf):
        sentences.append(
            f"{type(_classifier(clf)).__name__} may score a class by the other classes that it was "
            "trained with. If it is retrained for more classes, it becomes another classifier; "
            f"{MEASURE_DRIFT}"
        )
    labelled = LabelledScores.of(ScoreMatrix(scores, scorer.higher_is_better), y, names)
    return labelled._replace(provenance=labelled.provenance.with_facts(*sentences))


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

        def distances(X: Any) -> NumberArray:
            features = whole[:-1].transform(X) if hasattr(whole, "steps") else X
            return pairwise_distances(features, last.centroids_, last.metric)

        yield _Scorer("the distance to centroids_", distances, False)
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


def _tried(
    clf: Any, X: Any, predicted: IntArray, n_classes: int
) -> Iterator[tuple[int, _Scorer, NumberArray]]:
    """Methods with their scores, and in how many instances `predict` disagrees, until in none."""
    for scorer in _scorers(clf):
        with np.errstate(divide="ignore"):  # logarithms of probabilities that are zero
            scores = np.asarray(scorer.score(X))
        if scores.shape != (predicted.size, n_classes):
            raise DataError(
                f"{scorer.name}(X): found shape {scores.shape}, expected "
                f"{(predicted.size, n_classes)}: a score for each class of clf.classes_"
            )
        n_other = _count_other(scores, predicted, scorer.higher_is_better)
        yield n_other, scorer, scores
        if n_other == 0:
            return


def _count_other(scores: NumberArray, predicted: IntArray, higher_is_better: bool) -> int:
    """Number of instances whose best class is not the predicted one, ties aside."""
    sign = 1.0 if higher_is_better else -1.0
    best = sign * (scores.max(axis=1) if higher_is_better else scores.min(axis=1))
    of_predicted = sign * scores[np.arange(predicted.size), predicted]
    eps = np.finfo(scores.dtype if scores.dtype.kind == "f" else float).eps
    with np.errstate(invalid="ignore"):  # infinite and missing scores are refused later
        return int(np.sum(of_predicted < best - _ROUNDING * eps * np.abs(best)))


def _disagreement(clf: Any, scorer: str, n_other: int, n: int) -> str:
    """Warning that the best scores are not those of the predicted classes."""
    remedy = "pass scores whose best class is the predicted one to SourceTask.from_scores"
    if getattr(_classifier(clf), "break_ties", True) is False:
        remedy = "set break_ties=True, so that predict uses these scores; no new fit is needed"
    return (
        f"the best class by {scorer} is not that of clf.predict in {n_other} of {n} "
        f"instances, so the task describes another classifier; {remedy}"
    )
