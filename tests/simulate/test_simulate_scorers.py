"""Trained classifiers: marginal ones keep their scores on subsets of the classes, others do not."""

import sys
from functools import partial
from itertools import combinations
from math import log, pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gaussian_kde, multivariate_normal, norm
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB

from classex_bayes.exceptions import DataError
from classex_bayes.simulate import (
    FeatureSample,
    GaussianClasses,
    lda_scores,
    logistic_scores,
    naive_bayes_scores,
    qda_scores,
)
from classex_bayes.task.source_task import SourceTask

MARGINAL = [qda_scores, naive_bayes_scores]
RETRAINED = [lda_scores, logistic_scores]


@pytest.fixture(scope="module")
def sample():
    law = GaussianClasses(dim=3, noise_variance=0.8, degrees=4)
    return law.sample(6, n_train=12, n_test=4, random_seed=1)


def on_subset(scorer, sample, kept):
    """Scores and labels of a classifier trained and tested on some of the classes alone."""
    position = {label: place for place, label in enumerate(kept)}
    train, test = np.isin(sample.train_y, kept), np.isin(sample.y, kept)
    train_y = [position[label] for label in sample.train_y[train]]
    scores = scorer(sample.train[train], train_y, sample.test[test])
    return scores, np.array([position[label] for label in sample.y[test]])


def retrained_accuracy(scorer, sample, k):
    """Mean accuracy over all subsets of k classes, the classifier being trained on each."""
    rates = []
    for kept in combinations(range(6), k):
        scores, y = on_subset(scorer, sample, kept)
        rates.append(np.mean(scores.argmax(axis=1) == y))
    return np.mean(rates)


# Marginal or not


@pytest.mark.parametrize("scorer", MARGINAL)
def test_marginal_scores_are_columns_of_the_full_matrix(sample, scorer):
    full = scorer(sample.train, sample.train_y, sample.test)
    for kept in [(0, 1), (1, 3, 4), (5, 2)]:
        scores, _ = on_subset(scorer, sample, kept)
        rows = np.isin(sample.y, kept)
        assert np.array_equal(scores, full[np.ix_(rows, kept)])


@pytest.mark.parametrize("scorer", MARGINAL)
def test_average_test_accuracy_is_that_of_retrained_marginal_classifiers(sample, scorer):
    scores = scorer(sample.train, sample.train_y, sample.test)
    task = SourceTask.from_scores(scores, sample.y)
    retrained = [retrained_accuracy(scorer, sample, k) for k in (2, 3, 4, 5)]
    assert task.accuracy([2, 3, 4, 5]) == pytest.approx(retrained, abs=1e-12)


@pytest.mark.parametrize("scorer", RETRAINED)
def test_average_test_accuracy_is_not_that_of_other_classifiers(sample, scorer):
    full = scorer(sample.train, sample.train_y, sample.test)
    scores, _ = on_subset(scorer, sample, (1, 3, 4))
    before = full[np.ix_(np.isin(sample.y, (1, 3, 4)), (1, 3, 4))]
    # Even up to a constant of the row, which does not matter to a ranking.
    change = (scores - scores[:, :1]) - (before - before[:, :1])
    assert np.abs(change).max() > 0.1
    accuracy = SourceTask.from_scores(full, sample.y).accuracy([2, 3])
    retrained = [retrained_accuracy(scorer, sample, k) for k in (2, 3)]
    assert np.abs(accuracy - retrained).max() > 1e-3


# Scores against other implementations


def test_qda_is_twice_the_log_density(sample):
    scores = qda_scores(sample.train, sample.train_y, sample.test)
    for j in range(6):
        members = sample.train[sample.train_y == j]
        law = multivariate_normal(members.mean(axis=0), np.cov(members.T, bias=True))
        expected = 2 * law.logpdf(sample.test) + 3 * log(2 * pi)
        np.testing.assert_allclose(scores[:, j], expected, atol=1e-9)


def test_naive_bayes_is_the_sum_of_log_densities(sample):
    scores = naive_bayes_scores(sample.train, sample.train_y, sample.test)
    for j in range(6):
        members = sample.train[sample.train_y == j]
        terms = norm.logpdf(sample.test, members.mean(axis=0), members.std(axis=0))
        np.testing.assert_allclose(scores[:, j], terms.sum(axis=1), atol=1e-9)


def counts_and_bits(seed=4):
    """Training and test instances with whole features, some classes rare."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(5), [4, 6, 3, 5, 7])
    rate = rng.gamma(1.0, 2.0, (5, 8))
    return rng.poisson(rate[y]), y, rng.poisson(rate[np.arange(20) % 5])


@pytest.mark.parametrize("prior", [None, [0.1, 0.3, 0.2, 0.25, 0.15]])
@pytest.mark.parametrize("smoothing", [0.3, 1.0])
def test_joint_log_likelihood_of_scikit_learn(sample, prior, smoothing):
    train, y, test = counts_and_bits()
    equal = np.full(5, 0.2) if prior is None else np.array(prior)
    options = {"class_prior": prior, "smoothing": smoothing}
    real = sample.train_y < 5
    cases = {
        "multinomial": (MultinomialNB(alpha=smoothing, class_prior=equal), train, y, test),
        "bernoulli": (BernoulliNB(alpha=smoothing, class_prior=equal), train > 2, y, test > 2),
        "normal": (
            GaussianNB(priors=equal, var_smoothing=0),
            sample.train[real],
            sample.train_y[real],
            sample.test,
        ),
    }
    for density, (model, *data) in cases.items():
        features, labels, probes = (np.asarray(part, dtype=float) for part in data)
        labels = labels.astype(int)
        scores = naive_bayes_scores(features, labels, probes, density=density, **options)
        expected = model.fit(features, labels).predict_joint_log_proba(probes)
        expected -= np.log(0.2) if prior is None else 0.0
        np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)


def test_kernel_densities_of_scipy(sample):
    scores = naive_bayes_scores(sample.train, sample.train_y, sample.test, density="kde")
    for j in range(6):
        members = sample.train[sample.train_y == j]
        terms = [gaussian_kde(members[:, c]).logpdf(sample.test[:, c]) for c in range(3)]
        np.testing.assert_allclose(scores[:, j], np.sum(terms, axis=0), rtol=1e-9)
    far = naive_bayes_scores(sample.train, sample.train_y, [[1e3] * 3], density="kde")
    assert np.isfinite(far).all()


@pytest.mark.parametrize("density", ["normal", "bernoulli", "multinomial", "kde"])
def test_scores_of_naive_bayes_depend_on_their_class_alone(density, sample):
    """Also with priors, whose sum over the classes at hand plays no part."""
    train, y, test = counts_and_bits()
    if density == "bernoulli":
        train, test = train > 2, test > 2
    elif density != "multinomial":
        train, y, test = sample.train, sample.train_y, sample.test
    prior = np.random.default_rng(5).dirichlet(np.ones(y.max() + 1))
    score = partial(naive_bayes_scores, density=density)
    features, probes = np.asarray(train, dtype=float), np.asarray(test, dtype=float)
    full = score(features, y, probes, class_prior=prior)
    for kept in ([0, 1], [4, 1, 3]):
        rows = np.isin(y, kept)
        places = np.argsort(kept)[np.searchsorted(np.sort(kept), y[rows])]
        part = score(features[rows], places, probes, class_prior=prior[kept])
        np.testing.assert_array_equal(part, full[:, kept])
    changed = np.where(y[:, None] == 2, features[::-1], features)
    other = score(changed, y, probes, class_prior=prior)
    assert np.array_equal(np.delete(other, 2, 1), np.delete(full, 2, 1))
    assert not np.array_equal(other[:, 2], full[:, 2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"density": "gamma"}, "density: found 'gamma'"),
        ({"density": "bernoulli"}, "train: found 0.5 at row 1, column 1; expected 0 or 1"),
        ({"class_prior": [1, 0]}, "class_prior: found 0.0 at position 1"),
        ({"class_prior": [1]}, r"class_prior: expected 2 .*, found shape \(1,\)"),
        ({"smoothing": 0}, "smoothing: "),
    ],
)
def test_bad_densities(options, message):
    train, y = [[0.0, 1.0], [1.0, 0.5], [2.0, 2.5], [3.0, 0.1]], [0, 0, 1, 1]
    with pytest.raises(DataError, match=message):
        naive_bayes_scores(train, y, [[1.0, 1.0]], **options)
    with pytest.raises(DataError, match=r"test: found -1\.0 at row 0, column 1; expected counts"):
        naive_bayes_scores(train, y, [[1.0, -1.0]], density="multinomial")


def test_answers_of_scikit_learn():
    train, train_y, test, _ = GaussianClasses(4, 0.5, 6).sample(
        9, n_train=30, n_test=20, random_seed=2
    )
    pairs = [
        (naive_bayes_scores, GaussianNB(var_smoothing=0)),
        (lda_scores, LinearDiscriminantAnalysis(solver="lsqr")),
        (qda_scores, QuadraticDiscriminantAnalysis()),
    ]
    for scorer, model in pairs:
        ours = scorer(train, train_y, test).argmax(axis=1)
        theirs = model.fit(train, train_y).predict(test)
        # Its covariances of QDA are divided by n - 1, which moves a few borders.
        assert np.mean(ours == theirs) > (0.97 if scorer is qda_scores else 0.9999)


def test_logistic_scores_are_log_probabilities(sample):
    scores = logistic_scores(sample.train, sample.train_y, sample.test, penalty=0.1)
    np.testing.assert_allclose(np.exp(scores).sum(axis=1), 1)
    guess = logistic_scores(sample.train, sample.train_y, sample.test, penalty=1e9)
    np.testing.assert_allclose(np.exp(guess), 1 / 6, atol=1e-3)


@given(st.floats(0, 1), st.permutations(range(6)))
def test_order_of_training_instances_does_not_matter(shrinkage, order):
    train, train_y, test, _ = GaussianClasses(2).sample(2, n_train=3, n_test=5, random_seed=3)
    order = list(order)
    for scorer in (qda_scores, lda_scores):
        scores = scorer(train, train_y, test, shrinkage=shrinkage)
        shuffled = scorer(train[order], train_y[order], test, shrinkage=shrinkage)
        np.testing.assert_allclose(scores, shuffled, rtol=1e-7, atol=1e-7)


def test_shrinkage_runs_from_qda_to_naive_bayes(sample):
    arguments = sample.train, sample.train_y, sample.test
    twice = 2 * naive_bayes_scores(*arguments) + 3 * log(2 * pi)
    np.testing.assert_allclose(qda_scores(*arguments, shrinkage=1), twice, rtol=1e-9, atol=1e-9)
    few = GaussianClasses(10).sample(5, n_train=4, random_seed=0)
    assert np.isfinite(qda_scores(few.train, few.train_y, few.test, shrinkage=0.1)).all()


# Features


def test_moments_of_features():
    law = GaussianClasses(3, 0.5, degrees=6)
    train, train_y, test, y = law.sample(4000, n_train=3, n_test=2, random_seed=4)
    assert train.shape == (12_000, 3) and test.shape == (8000, 3)
    assert np.bincount(train_y).tolist() == [3] * 4000 and np.bincount(y).tolist() == [2] * 4000
    assert np.var(train) == pytest.approx(1.5, rel=0.05)
    np.testing.assert_allclose(np.mean(train[::3] * test[::2]), 1, atol=0.05)
    within = train[::3] - train[1::3]
    np.testing.assert_allclose(within.T @ within / 8000, 0.5 * np.eye(3), atol=0.03)
    # Squared lengths vary between classes: Var(W_cc / nu) = 2 / nu.
    by_class = GaussianClasses(1, 1.0, degrees=6).sample(3000, n_train=400, random_seed=5).train
    variances = by_class.reshape(3000, 400).var(axis=1)
    assert np.var(variances) == pytest.approx(2 / 6 + 2 / 400 * (1 + 2 / 6), rel=0.15)
    equal = GaussianClasses(1, 1.0).sample(3000, n_train=400, random_seed=5).train
    assert np.var(equal.reshape(3000, 400).var(axis=1)) < 0.01


def test_seed_fixes_the_features():
    law = GaussianClasses()
    one, again = (law.sample(3, n_train=2, random_seed=7) for _ in range(2))
    assert isinstance(one, FeatureSample)
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
    assert not np.array_equal(one.train, law.sample(3, n_train=2, random_seed=8).train)


# Bad arguments


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GaussianClasses(dim=0), "dim: .*found 0"),
        (lambda: GaussianClasses(noise_variance=0), "noise_variance: .*found 0"),
        (lambda: GaussianClasses(dim=3, degrees=2), "degrees: .*found 2"),
        (lambda: GaussianClasses().sample(1, n_train=2), "n_classes: .*found 1"),
        (lambda: GaussianClasses().sample(3, n_train=0), "n_train: .*found 0"),
        (lambda: GaussianClasses().sample(3, n_train=2, n_test=0), "n_test: .*found 0"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(DataError, match=message):
        make()


@pytest.mark.parametrize("scorer", MARGINAL + RETRAINED)
def test_bad_training_data(scorer):
    train, y, test = [[0.0, 1.0], [1.0, 0.5], [2.0, 2.5], [3.0, 0.1]], [0, 0, 1, 1], [[1.0, 1.0]]
    for arguments, message in [
        ((train, y, [[1.0]]), "train, test: found 2 and 1 features"),
        ((train, y[:3], test), "train_y: found 3 labels for 4 rows"),
        ((train, [0, 0, 2, 2], test), "train_y: class 1 has no training"),
        ((train, [0, 0, 0, 0], test), "train_y: class 1 has no training"),
        (([[np.nan, 1.0], *train[1:]], y, test), "train: found nan at row 0, column 0"),
        ((train, y, [[1.0, np.inf]]), "test: found inf at row 0, column 1"),
    ]:
        with pytest.raises(DataError, match=message):
            scorer(*arguments)


def test_singular_covariances():
    train, y, test = [[0.0, 1.0], [1.0, 0.5], [2.0, 2.5], [3.0, 0.1]], [0, 0, 1, 1], [[1.0, 1.0]]
    with pytest.raises(DataError, match="covariance of class 0 is singular in 2 features"):
        qda_scores(train, y, test)
    constant = [[0.0, 1.0], [1.0, 1.0], [2.0, 2.5], [3.0, 0.1]]
    for density in ("normal", "kde"):
        with pytest.raises(DataError, match="feature 1 is constant in class 0"):
            naive_bayes_scores(constant, y, test, density=density)
    with pytest.raises(DataError, match="covariance of the classes is singular"):
        lda_scores([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]], y, test)
    # Rounding may leave a factor to a feature that the others determine.
    nearly = [[0.0, 0.0], [1.0, 1.0 + 1e-7], [2.0, 2.0], [3.0, 3.0]]
    with pytest.raises(DataError, match="covariance of the classes is singular"):
        lda_scores(nearly, y, test)
    for shrinkage in (-0.1, 1.1, np.nan, "a"):
        with pytest.raises(DataError, match="shrinkage"):
            qda_scores(train, y, test, shrinkage=shrinkage)
    with pytest.raises(DataError, match="penalty"):
        logistic_scores(train, y, test, penalty=0)


def test_logistic_scores_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(ImportError, match=r"pip install \"classex-bayes\[identification\]\""):
        logistic_scores([[0.0], [1.0]], [0, 1], [[0.0]])
