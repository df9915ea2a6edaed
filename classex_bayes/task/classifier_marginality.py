"""Marginal classifiers: whether the score of a class depends on that class alone, by class name.

A *marginal* classifier gives a class the same score, up to an increasing function of each instance,
whichever other classes it was trained with (jmlr2018, section 2.1). The facts describe classifiers
as scikit-learn trains them. They are looked up by class name, so nothing is imported.
"""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

Degree = Literal["marginal", "nearly", "unknown", "not"]
_DEGREES: tuple[Degree, ...] = "marginal", "nearly", "unknown", "not"

MARGINAL = {
    "BernoulliNB",
    "GaussianNB",
    "KNeighborsClassifier",
    "MultinomialNB",
    "NearestCentroid",
    "QuadraticDiscriminantAnalysis",
    "RadiusNeighborsClassifier",
}
# Parameters that make these marginal, and the verdict for all others.
_MARGINAL_IF: dict[str, tuple[dict[str, Any], Degree, str]] = {
    "KNeighborsClassifier": ({"n_neighbors": 1}, "not", "several neighbours vote"),
    "NearestCentroid": (
        {"shrink_threshold": None, "priors": "uniform"},
        "nearly",
        "its classes share the scale of the features",
    ),
}
NEARLY = {
    "CategoricalNB": "its classes share the list of categories",
    "LinearDiscriminantAnalysis": "its classes share a covariance",
}
NOT = {
    "all classes are trained together": (
        "CatBoostClassifier",
        "GaussianProcessClassifier",
        "LGBMClassifier",
        "LabelSpreading",
        "LogisticRegression",
        "LogisticRegressionCV",
        "MLPClassifier",
        "OutputCodeClassifier",
        "XGBClassifier",
    ),
    "each class is trained against all others": (
        "CalibratedClassifierCV",
        "ComplementNB",
        "LinearSVC",
        "OneVsRestClassifier",
        "PassiveAggressiveClassifier",
        "Perceptron",
        "RidgeClassifier",
        "RidgeClassifierCV",
        "SGDClassifier",
    ),
    "each class is trained against every other": ("NuSVC", "OneVsOneClassifier", "SVC"),
    "trees split all classes at once": (
        "DecisionTreeClassifier",
        "ExtraTreeClassifier",
        "ExtraTreesClassifier",
        "GradientBoostingClassifier",
        "HistGradientBoostingClassifier",
        "RandomForestClassifier",
    ),
    "the votes of all classes add up to one": (
        "AdaBoostClassifier",
        "BaggingClassifier",
        "StackingClassifier",
        "VotingClassifier",
    ),
}


# The end of a note, which a prediction with drift no longer has.
MEASURE_DRIFT = (
    "train it on some smaller sets of classes too, and pass these tasks to cb.measure_drift"
)


class Marginality(NamedTuple):
    """Whether a classifier is marginal, and why it is not: a clause about the step `of`."""

    degree: Degree
    of: str
    why: str = ""

    @property
    def note(self) -> str | None:
        """Note for readers of predictions; None for a marginal classifier."""
        return {
            "marginal": None,
            "nearly": f"{self.of} is nearly marginal: {self.why}, which more classes change a "
            "little",
            "unknown": f"whether {self.of} is marginal is unknown, and the score of a class may "
            f"depend on the classes that it is trained with; {MEASURE_DRIFT}",
            "not": f"{self.of} is not marginal, because {self.why}: with more classes it is "
            f"retrained and becomes another classifier; {MEASURE_DRIFT}",
        }[self.degree]


def steps_of(clf: Any) -> Iterator[Any]:
    """Transformers of a pipeline in order, then its classifier; searches stand for what they found.

    Pipelines have `steps`, searches `best_estimator_`.
    """
    if hasattr(clf, "best_estimator_"):
        yield from steps_of(clf.best_estimator_)
    elif hasattr(clf, "steps"):
        for _, step in clf.steps:
            if step is not None and not isinstance(step, str):  # "passthrough"
                yield from steps_of(step)
    elif _is_frozen(clf) and not hasattr(clf.estimator, "transform"):
        yield from steps_of(clf.estimator)
    else:
        yield clf


def marginality_of(clf: Any) -> Marginality:
    """Marginality of the classifier, or of the step of its pipeline that departs furthest."""
    *transformers, last = steps_of(clf)
    found = [_of_classifier(last), *map(_of_transformer, transformers)]
    return max(found, key=lambda step: _DEGREES.index(step.degree))


def _of_classifier(clf: Any) -> Marginality:
    """By the first known name among the class and its bases."""
    if _is_frozen(clf):
        return _of_classifier(clf.estimator)
    for name in (base.__name__ for base in type(clf).__mro__):
        if name in MARGINAL:
            wanted, otherwise, why = _MARGINAL_IF.get(name, ({}, "marginal", ""))
            as_wanted = all(getattr(clf, key, value) == value for key, value in wanted.items())
            return Marginality("marginal", name) if as_wanted else Marginality(otherwise, name, why)
        if name in NEARLY:
            return Marginality("nearly", name, NEARLY[name])
        for why, names in NOT.items():
            if name in names:
                return Marginality("not", name, why)
    return Marginality("unknown", type(clf).__name__)


def _of_transformer(step: Any) -> Marginality:
    """Marginality of a transformer: fitted features depend on all classes."""
    name = type(step).__name__
    tags = step.__sklearn_tags__() if hasattr(step, "__sklearn_tags__") else None
    if _is_frozen(step) or (tags is not None and not tags.requires_fit):
        return Marginality("marginal", name)
    known = _of_classifier(step)
    if known.degree != "unknown":
        return known
    if tags is not None and tags.target_tags.required:
        return Marginality("not", name, "its features are learned from the labels of all classes")
    return Marginality("nearly", name, "it was fitted to all classes together")


def _is_frozen(step: Any) -> bool:
    return type(step).__name__ == "FrozenEstimator"
