"""Bad calls of the estimators of the literature, of their bootstrap and of bounds."""

from functools import partial

import numpy as np

import classex_bayes as cb
from bad_calls import Bad
from classex_bayes import SourceTask, estimators

RNG = np.random.default_rng(0)
Y = np.arange(24) % 12
SCORES = RNG.normal(size=(24, 12)) + 2 * np.eye(12)[Y]
TASK = SourceTask.from_scores(SCORES, Y)
RANKS = SourceTask.from_ranks(TASK.ranks, Y, n_classes=12)
CURVE = SourceTask.from_accuracies([2, 5, 12], [0.95, 0.9, 0.8], n_test=50, n_classes=12)
ONE = SourceTask.from_accuracies([12], [0.8], n_test=50, n_classes=12)
THREE = SourceTask.from_ranks([1, 2, 1], range(3), n_classes=3)
NONE_RIGHT = SourceTask.from_ranks([2, 3, 4, 2, 3], range(5), n_classes=5)
OWN = SourceTask.from_ranks([1, 2, 3, 1], range(4), n_negatives=9)
UNEQUAL = SourceTask.from_ranks([1, 2, 3, 1], range(4), n_negatives=[9, 9, 5, 9])
CUT = SourceTask.from_ranks([1, 2, 3, 3], range(4), n_classes=4, truncated_at=2)
COST = RNG.uniform(size=(12, 12)) * (1 - np.eye(12))


def fit(kind, task=TASK, **parameters):
    return kind(**parameters).fit(task)


def of_each(call, bad):
    """A row for each bad value of each argument."""
    return [Bad(call, name, "", {name: value}) for name, values in bad.items() for value in values]


def bootstrap(**options):
    values = {"estimator": cb.ClassExReg(), "task": TASK, "k": 40, "n_resamples": 3} | options
    return estimators.bootstrap(**values)


def without_spread(row, wrong):
    """A task whose wrong scores in one row are all the same."""
    scores = SCORES.copy()
    scores[row] = np.where(np.arange(12) == Y[row], 1.0, wrong)
    return SourceTask.from_scores(scores, Y)


NEEDS_SCORES = [
    estimators.KDE,
    estimators.BinomialModel,
    partial(cb.risk.PolynomialRisk, COST),
    partial(cb.risk.MomentRisk, COST),
]
FITTED = cb.ClassExReg(0.5).fit(TASK)
BOUNDS = cb.MomentBounds().fit(TASK)
NEGATIVES = estimators.SampledMetrics().fit(OWN)
ROWS = [
    # Tasks
    *[
        Bad(fit, "task", "", {"kind": kind, "task": task})
        for kind in NEEDS_SCORES
        for task in (RANKS, CURVE)
    ],
    *[Bad(fit, "task", "int", {"kind": kind, "task": 3}) for kind in (cb.KDE, cb.MomentBounds)],
    Bad(lambda: estimators.TwoParameter().fit(COST, Y), "fit", ""),
    Bad(fit, "task", "", {"kind": estimators.PseudoLikelihood, "task": CURVE}),
    Bad(fit, "task", "ranks", {"kind": cb.MomentBounds, "task": CURVE}),
    Bad(fit, "task", "", {"kind": cb.ClassExReg, "task": CURVE}),
    Bad(fit, "bandwidth", "", {"kind": cb.ClassExReg, "task": THREE}),
    Bad(fit, "k", "", {"kind": partial(cb.ClassExReg, 0.5), "task": ONE}),
    Bad(fit, "k", "", {"kind": partial(cb.ClassExReg, 0.5, k=[2, 7]), "task": CURVE}),
    Bad(fit, "k", "", {"kind": estimators.MixedExponential, "task": ONE}),
    Bad(
        fit,
        "moment",
        "",
        {"kind": partial(estimators.PseudoLikelihood, monotone=False), "task": NONE_RIGHT},
        lambda: estimators.PseudoLikelihood(monotone=False, moment=False).fit(NONE_RIGHT),
    ),
    *[
        Bad(
            fit,
            "scores",
            f"row {row} bandwidth=",
            {"kind": cb.KDE, "task": task},
            partial(cb.KDE(0.5).fit, task),
        )
        for row, task in ((4, without_spread(4, 0.25)), (7, without_spread(7, -np.inf)))
    ],
    *[
        Bad(fit, "task", words, {"kind": estimators.SampledMetrics, "task": task})
        for task, words in ((UNEQUAL, "5 to 9"), (CUT, ""), (CURVE, ""))
    ],
    # Parameters
    *of_each(
        partial(fit, cb.ClassExReg),
        {
            "bandwidth": [0.001, "ucv"],
            "k": [[2, 41], [0, 3], [5], [5, 30, 40]],
            "n_resamples": [0, 2.5],
            "random_seed": [-1],
            "variant": ["print"],
        },
    ),
    *of_each(partial(fit, cb.KDE), {"bandwidth": ["silverman", 0.0, -1, np.nan, None]}),
    *of_each(partial(fit, estimators.LogLinear), {"k": [[5], [2, 41]]}),
    *of_each(partial(fit, estimators.HighDimensional), {"k": ["some", 41, [2, 2]]}),
    Bad(fit, "k", "", {"kind": partial(estimators.HighDimensional, 4), "task": CURVE}),
    *of_each(
        partial(fit, estimators.PseudoLikelihood),
        {
            "monotone": [1, None, np.array([True])],
            "moment": ["yes"],
            "likelihood": ["normal"],
        },
    ),
    *of_each(
        partial(fit, estimators.SampledMetrics, OWN),
        {"gamma": [1.1, -0.1], "eta": [0], "em_steps": [0, 1.5], "method": ["em"]},
    ),
    # Questions
    *of_each(FITTED.predict, {"k": [1, 2.5, [], "10", [3, 3]]}),
    *of_each(FITTED.standard_error, {"k": [1, [3, 3]]}),
    *of_each(
        estimators.TwoParameter().fit(TASK).discriminability, {"u": [1.5, [0.5, -0.1], "0.5"]}
    ),
    Bad(BOUNDS.predict(10).prob_at_least, "", "without probabilities", {"level": 0.5}),
    *of_each(partial(BOUNDS.predict, 10), {"metric": ["median_rank", "other"]}),
    *of_each(BOUNDS.reach, {"width": [2]}),
    *of_each(partial(NEGATIVES.predict, 20), {"metric": ["median_rank", "f1"]}),
    # Bootstrap
    *of_each(
        bootstrap,
        {
            "n_resamples": [1],
            "k": [1],
            "progressbar": [1],
            "n_jobs": [0],
            "random_seed": [-1],
            "task": [None, CURVE],
        },
    ),
]
