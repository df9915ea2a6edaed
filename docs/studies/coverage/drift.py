"""Intervals for retrained classifiers, with the measured drift and without: docs/questions.md.

A pilot has 200 classes, and the classifier is retrained on 50 and 100 of them for the drift. The
truth is the accuracy of the classifier retrained on 1,000 and 2,000 classes.
"""

import warnings

import numpy as np
import pandas as pd
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, RidgeClassifier

import classex_bayes as cb
from studies.coverage.sampling_designs import SAMPLER
from studies.coverage.trials import all_rows, summary
from studies.pages import markdown, version
from studies.shared import CI_PROB, quiet

SMALLER, SOURCE, LARGER = (50, 100), 200, (1000, 2000)
N_TRAIN, N_TEST = 4, 16


def mapped(dim, noise, rectified):
    """Features: 720 random projections of Gaussian classes, rectified or not."""

    def sample(rng):
        weights = rng.standard_normal((dim, 720)) / np.sqrt(dim)
        shift = 0.5 * rng.standard_normal(720)
        features = gaussian(dim, noise)(rng) @ weights + shift
        return np.maximum(features, 0) if rectified else features

    return sample


def gaussian(dim, noise):
    """Features (classes, instances, dim) of classes that are normal about their means."""

    def sample(rng):
        means = rng.standard_normal((max(LARGER), 1, dim))
        scatter = rng.standard_normal((max(LARGER), N_TRAIN + N_TEST, dim))
        return means + noise * scatter

    return sample


CLASSIFIERS = {
    "ridge, 8 dimensions": (mapped(8, 0.3, False), lambda: RidgeClassifier(alpha=30)),
    "ridge, 8 dimensions, rectified": (mapped(8, 0.3, True), lambda: RidgeClassifier(alpha=30)),
    "ridge, 16 dimensions, rectified": (mapped(16, 0.6, True), lambda: RidgeClassifier(alpha=30)),
    "logistic regression, 10 iterations": (
        gaussian(16, 0.6),
        lambda: LogisticRegression(max_iter=10),
    ),
    "linear discriminant analysis": (
        gaussian(16, 0.6),
        lambda: LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1),
    ),
}


def retrained(classifier, features, n_classes, n_test=N_TEST):
    """Task of the classifier trained on the first classes."""
    train, test = (part[:n_classes] for part in np.split(features, [N_TRAIN], axis=1))
    test, labels = test[:, :n_test], np.arange(n_classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier.fit(train.reshape(-1, train.shape[-1]), np.repeat(labels, N_TRAIN))
    scores = classifier.decision_function(test.reshape(-1, test.shape[-1]))
    return cb.SourceTask.from_scores(scores, np.repeat(labels, n_test), classes=labels)


def pilot(name, seed):
    """Rows of one pilot, without drift and with it."""
    sample, classifier = CLASSIFIERS[name]
    features = sample(np.random.default_rng(seed)).astype(np.float32)
    with quiet():
        *small, task = (retrained(classifier(), features, k) for k in (*SMALLER, SOURCE))
        model = cb.BayesianExtrapolator(evidence="ranks").fit(task, random_seed=seed, **SAMPLER)
        without = model.predict(LARGER)
        drift = cb.measure_drift(task, small, nested=True)
        both = without, drift.apply(without, random_seed=seed)
        truth = [retrained(classifier(), features, k, 4).accuracy(k) for k in LARGER]
    rows = []
    for with_drift, prediction in enumerate(both):
        limits = prediction.interval(CI_PROB, "eti").to_numpy()
        for k, true, mean, ends in zip(LARGER, truth, prediction.mean, limits, strict=True):
            rows.append((name, k, bool(with_drift), not drift.is_linear, true, mean, *ends))
    return rows


def tables(options):
    """A row for each classifier, at the farther number of classes, without drift and with it."""
    columns = ["classifier", "k", "drift", "bent", "truth", "mean", "lower", "upper"]
    cases = [(name, seed) for name in CLASSIFIERS for seed in range(options.repeats(20))]
    trials = options.kept(
        "drift", lambda: pd.DataFrame(all_rows(pilot, cases, options.jobs), columns=columns)
    )
    trials = trials[trials["k"] == max(LARGER)]
    cells = summary(trials, columns[:3])
    rows = []
    for name, part in cells.groupby("classifier", sort=False):
        row = {"classifier": name}
        for way, of_way in zip(("without", "with"), part.sort_values("drift").iloc, strict=True):
            row |= {f"coverage {way}": f"{of_way['held']:.2f}"}
            row |= {f"width {way}": f"{of_way['width']:.3f}"}
        rows.append(row)
    text = (
        f"{markdown(pd.DataFrame(rows))}\n\n{cells['pilots'].max()} pilots in each row, predicted "
        f"for {max(LARGER):,} classes. {version()}"
    )
    return {"questions.md": {"drift": text}}
