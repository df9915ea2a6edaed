"""Tasks from fitted classifiers: their scores are those of `predict`."""

import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from scipy.special import softmax
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OutputCodeClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

import classex_bayes as cb
from classex_bayes import ClassExReg, Sampling, SourceTask
from classex_bayes.exceptions import DataError, DataWarning

PAGE = (Path(__file__).parents[2] / "docs/data.md").read_text(encoding="utf-8")
K1, TRAIN, TEST = 12, 10, 8
KEPT = np.array([0, 1, 2, 4, 5, 7, 8, 9, 11])


@pytest.fixture(scope="module")
def data():
    """Classes with centres, scales and sizes of their own, whose names are in disorder."""
    rng = np.random.default_rng(3)
    scale = np.array([1, 1, 2, 5, 0.3])
    names = np.array([f"class {j}" for j in rng.permutation(K1)])
    centres = 1.2 * rng.normal(size=(K1, 5))
    spreads = rng.uniform(0.4, 1.2, (K1, 5))

    def draw(repeats):
        j = rng.permutation(np.repeat(np.arange(K1), repeats))
        return scale * (centres[j] + spreads[j] * rng.normal(size=(j.size, 5))), names[j]

    return *draw(TRAIN + np.arange(K1) % 3), *draw(np.full(K1, TEST))


def fitted(clf, X, y):
    with warnings.catch_warnings():  # few iterations
        warnings.simplefilter("ignore")
        return clone(clf).fit(X, y)


def order_of(task):
    """Rank of every class for every instance, tied ones at their worst."""
    return rankdata(-task.scores.scores(np.arange(task.n_test)), method="max", axis=1)


# Scores of predict


def centroid_distances(clf, X):
    return -np.linalg.norm(X[:, None] - clf.centroids_, axis=2)


def scaled_centroid_distances(clf, X):
    return centroid_distances(clf[-1], clf[:-1].transform(X))


def manhattan_distances(clf, X):
    return -np.abs(X[:, None] - clf[-1].centroids_).sum(axis=2)


SEARCH = GridSearchCV(make_pipeline(StandardScaler(), PCA(4), NearestCentroid()), {}, cv=2)
SCORED = {
    "centroids": (NearestCentroid(), centroid_distances),
    "centroids, manhattan": (
        make_pipeline("passthrough", NearestCentroid(metric="manhattan")),
        manhattan_distances,
    ),
    "pipeline in a search": (
        SEARCH,
        lambda clf, X: scaled_centroid_distances(clf.best_estimator_, X),
    ),
    "naive Bayes": (GaussianNB(), "predict_joint_log_proba"),
    "search": (GridSearchCV(GaussianNB(), {}, cv=2), "predict_log_proba"),
    "quadratic": (QuadraticDiscriminantAnalysis(), "decision_function"),
    "logistic": (make_pipeline(StandardScaler(), LogisticRegression()), "decision_function"),
    "pairs": (SVC(break_ties=True), "decision_function"),
    "forest": (RandomForestClassifier(8, random_state=0), "predict_log_proba"),
    "neighbours": (KNeighborsClassifier(), "predict_proba"),
}


@pytest.mark.parametrize(("clf", "expected"), SCORED.values(), ids=SCORED)
def test_scores_are_those_of_predict(data, clf, expected):
    X, y, X_test, y_test = data
    clf = fitted(clf, X, y)
    worst, best = (
        SourceTask.from_classifier(clf, X_test, y_test, ties=ties)
        for ties in ("pessimistic", "optimistic")
    )
    with np.errstate(divide="ignore"):
        scores = (
            getattr(clf, expected)(X_test) if isinstance(expected, str) else expected(clf, X_test)
        )
    by_scores = SourceTask.from_scores(scores, y_test, ties="pessimistic", classes=clf.classes_)
    np.testing.assert_array_equal(worst.ranks, by_scores.ranks)
    assert worst.classes == clf.classes_.tolist()
    right = clf.predict(X_test) == y_test
    assert right[worst.ranks == 1].all() and (best.ranks[right] == 1).all()
    assert not any("that of clf.predict" in note for note in worst.notes)


# Marginal classifiers


class MyBayes(GaussianNB):
    """Derived from a known one."""


@pytest.mark.parametrize(
    ("clf", "is_marginal"),
    [
        (NearestCentroid(), True),
        (GaussianNB(), True),
        (MyBayes(), True),
        (BernoulliNB(), True),
        (QuadraticDiscriminantAnalysis(), True),
        (LinearDiscriminantAnalysis(), False),
        (LogisticRegression(), False),
        (KNeighborsClassifier(), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_note_on_classifiers_that_are_not_marginal(data, clf, is_marginal):
    """A marginal classifier that is trained without some classes ranks the others as before."""
    X, y, X_test, y_test = data
    clf = fitted(clf, X, y)
    task = SourceTask.from_classifier(clf, X_test, y_test, ties="pessimistic")
    names = clf.classes_[KEPT]
    train, test = np.isin(y, names), np.isin(y_test, names)
    again = SourceTask.from_classifier(
        fitted(clf, X[train], y[train]), X_test[test], y_test[test], ties="pessimistic"
    )
    assert np.array_equal(order_of(again), order_of(task.select(KEPT))) == is_marginal
    notes = [note for note in task.notes if type(clf).__name__ in note]
    assert bool(notes) is not is_marginal and not set(notes) & {*task.warnings}


# Scores that disagree with predict


class Templates(ClassifierMixin, BaseEstimator):
    """A classifier of someone else, with classes in an order of its own."""

    def __init__(self, seed=0, wrong=0):
        self.seed, self.wrong = seed, wrong

    def fit(self, X, y):
        self.classes_ = np.random.default_rng(self.seed).permutation(np.unique(y))
        self.means_ = np.array([X[y == name].mean(axis=0) for name in self.classes_])
        return self

    def decision_function(self, X):
        return -((X[:, None] - self.means_) ** 2).sum(axis=2)

    def predict(self, X):
        best = self.decision_function(X).argmax(axis=1)
        best[: self.wrong] = (best[: self.wrong] + 1) % len(self.classes_)
        return self.classes_[best]


class Rounded(Templates):
    """Its second class is ahead by a rounding error; predictions come as a column."""

    def decision_function(self, X):
        scores = super().decision_function(X)
        rows, best = np.arange(len(X)), scores.argmax(axis=1)
        scores[rows, (best + 1) % scores.shape[1]] = np.nextafter(scores[rows, best], np.inf)
        return scores

    def predict(self, X):
        return self.classes_[Templates.decision_function(self, X).argmax(axis=1)][:, None]


class Coarse(Templates):
    """Its scores tie."""

    def decision_function(self, X):
        return np.round(super().decision_function(X) / 5)


class Both(Templates):
    """Has two kinds of scores, none of which is that of its predictions."""

    def predict_proba(self, X):
        return softmax(self.decision_function(X), axis=1)


def test_classes_in_an_order_of_their_own(data):
    X, y, X_test, y_test = data
    task, usual = (
        SourceTask.from_classifier(clf.fit(X, y), X_test, y_test)
        for clf in (Templates(), NearestCentroid())
    )
    assert task.classes != usual.classes
    np.testing.assert_array_equal(task.ranks, usual.ranks)


def test_disagreement_is_warned_of(data):
    X, y, X_test, y_test = data
    clf, said = Templates(wrong=7).fit(X, y), "in 7 of 96"
    with pytest.warns(DataWarning, match=said):
        task = SourceTask.from_classifier(clf, X_test, y_test)
    prediction = ClassExReg(0.5).fit(task).predict([20])
    for kept in (task, task.select(KEPT), task.without_scores(), prediction):
        assert said in " ".join(kept.notes)


def test_one_instance_counts_and_rounding_does_not(data):
    X, y, X_test, y_test = data
    with pytest.warns(DataWarning, match="in 1 of 96"):
        SourceTask.from_classifier(Both(wrong=1).fit(X, y), X_test, y_test)
    with pytest.warns(DataWarning):
        tied = SourceTask.from_classifier(
            Coarse(wrong=60).fit(X, y), X_test, y_test, ties="unknown"
        )
    assert any("that of clf.predict" in note for note in tied.notes)
    with pytest.raises(DataError):
        _ = tied.ranks
    assert SourceTask.from_classifier(Rounded().fit(X, y), X_test, y_test).warnings == ()


def test_votes_between_pairs(data):
    X, y, X_test, y_test = data
    clf = SVC(C=1e-3).fit(X, y)
    with pytest.warns(DataWarning, match="break_ties=True"):
        SourceTask.from_classifier(clf, X_test, y_test)
    SourceTask.from_classifier(clf.set_params(break_ties=True), X_test, y_test)
    clf.set_params(break_ties=False, decision_function_shape="ovo")
    for names in (np.unique(y), np.unique(y)[:3]):  # three pairs of three classes
        train, test = np.isin(y, names), np.isin(y_test, names)
        with pytest.raises(DataError):
            SourceTask.from_classifier(clf.fit(X[train], y[train]), X_test[test], y_test[test])


def test_one_neighbour_has_a_remedy(data):
    """Distances to the training rows rank the classes as one nearest neighbour does."""
    X, y, X_test, y_test = data
    clf = make_pipeline("passthrough", KNeighborsClassifier(1)).fit(X, y)
    with pytest.raises(DataError):
        SourceTask.from_classifier(clf, X_test, y_test)
    task = SourceTask.from_embeddings(X_test, X, y_test, gallery_y=y)  # as the message says
    np.testing.assert_array_equal(task.ranks == 1, clf.predict(X_test) == y_test)


def test_predict_alone_has_a_remedy(data):
    X, y, X_test, y_test = data
    clf = fitted(OutputCodeClassifier(LinearSVC(), random_state=0), X, y)
    with pytest.raises(DataError):
        SourceTask.from_classifier(clf, X_test, y_test)
    decisions = (clf.predict(X_test)[:, None] == clf.classes_) * 1.0  # as the message says
    task = SourceTask.from_scores(decisions, y_test, classes=clf.classes_)
    lower, upper = task.accuracy_bounds(K1)
    assert lower == upper == pytest.approx(np.mean(clf.predict(X_test) == y_test))


# What holds instances and labels


def test_all_kinds_of_rows(data):
    X, y, X_test, y_test = data
    columns = [f"feature {j}" for j in range(5)]
    clf = make_pipeline(MinMaxScaler(), GaussianNB()).set_output(transform="default").fit(X, y)
    expected = SourceTask.from_classifier(clf, X_test, y_test).ranks
    index = np.random.default_rng(1).permutation(len(y_test))
    kinds = (X_test.tolist(), pd.DataFrame(X_test, index=index), X_test.astype(np.float32))
    for rows in kinds:
        found = SourceTask.from_classifier(clf, rows, y_test.tolist()).ranks
        np.testing.assert_array_equal(found, expected)
    for frame in (pd.DataFrame, pl.DataFrame):
        named = GaussianNB().fit(frame(dict(zip(columns, X.T, strict=True))), y)
        rows = frame(dict(zip(columns, X_test.T, strict=True)))
        labels = pd.Series(y_test) if frame is pd.DataFrame else pl.Series(y_test)
        found = SourceTask.from_classifier(named, rows, labels).ranks
        np.testing.assert_array_equal(found, expected)
    centroids = NearestCentroid().fit(scipy.sparse.csr_array(X), y)
    dense = SourceTask.from_classifier(centroids, X_test, y_test).ranks
    for kind in (scipy.sparse.csr_array, scipy.sparse.coo_matrix):
        found = SourceTask.from_classifier(centroids, kind(X_test), y_test).ranks
        np.testing.assert_array_equal(found, dense)


def test_options_are_those_of_scores(data):
    X, y, X_test, y_test = data
    clf = GaussianNB().fit(X, y)
    some = y_test != clf.classes_[3]
    options = {
        "untested": "competitors",
        "class_weight": {name: 1 + len(name) for name in clf.classes_},
        "sampling": Sampling(groups=[name[-1] for name in clf.classes_]),
    }
    task = SourceTask.from_classifier(clf, X_test[some], y_test[some], **options)
    expected = SourceTask.from_scores(
        clf.predict_joint_log_proba(X_test[some]), y_test[some], classes=clf.classes_, **options
    )
    assert task.n_classes == K1
    np.testing.assert_array_equal(task.accuracy([2, 9]), expected.accuracy([2, 9]))
    with pytest.raises(DataError):
        SourceTask.from_classifier(clf, X_test[some], y_test[some])


# The page's code


def test_code_of_the_page():
    """Tasks of each fold's classifier, merged, have the same ranks as scores of all folds."""
    section = PAGE.partition("## scikit-learn classifiers\n")[2].partition("\n## ")[0]
    names, tasks = {"np": np, "cb": cb}, []
    for code in re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE):
        exec(code, names)
        tasks.append(names["task"])
    single, crossed = tasks
    clf, X, labels, folds = (names[name] for name in ("clf", "X", "labels", "folds"))
    right = clf.predict(names["X_test"]) == names["y_test"]
    assert single.accuracy(100) == pytest.approx(right.mean())
    splits = [*folds.split(X, labels)]
    merged = SourceTask.merge(
        SourceTask.from_classifier(clone(clf).fit(X[train], labels[train]), X[test], labels[test])
        for train, test in splits
    )
    assert crossed.n_test == merged.n_test == 1500
    order = np.concatenate([test for _, test in splits])
    # Labels in the order of `np.unique`, and logarithms that normalise what is merged.
    np.testing.assert_array_equal(crossed.ranks[order], merged.ranks)
    np.testing.assert_array_equal(crossed.y[order], merged.y)


def test_texts():
    words = [f"w{j}" for j in range(30)]
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(10), 6)
    texts = [" ".join(rng.choice(words[3 * j : 3 * j + 8], 4)) for j in y]
    clf = make_pipeline(TfidfVectorizer(), MultinomialNB()).fit(texts[::2], y[::2])
    task = SourceTask.from_classifier(clf, texts[1::2], y[1::2], ties="optimistic")
    assert task.accuracy(10) == pytest.approx(clf.score(texts[1::2], y[1::2]))
    assert task.classes == list(range(10))


def test_warnings_of_parts_are_those_of_the_whole(data):
    X, y, X_test, y_test = data
    first = np.isin(y_test, np.unique(y)[:5])
    with pytest.warns(DataWarning, match="in 7 of 56"):
        parts = [
            SourceTask.from_classifier(
                Templates(wrong=wrong).fit(X, y), X_test[rows], y_test[rows], untested="competitors"
            )
            for wrong, rows in ((0, first), (7, ~first))
        ]
    whole = SourceTask.merge(parts)
    small = SourceTask.merge([part.without_scores() for part in parts])
    for task in (whole, whole.select(KEPT), small):
        assert any("in 7 of 56" in note for note in task.notes)
        assert any("Templates may score" in note for note in task.notes)
