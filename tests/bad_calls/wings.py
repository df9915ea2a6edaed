"""Bad calls of open sets, risks, information, identification and simulated populations."""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pandas as pd

import classex_bayes as cb
from bad_calls import Bad
from classex_bayes.identification import (
    decoding_scores,
    identification_task,
    shrinkage_intensity,
    shrunk_covariance,
)
from classex_bayes.information import (
    bayes_accuracy_bound,
    bayes_accuracy_variance,
    confusion_information,
    fano_bound,
    implied_information,
    information_bound,
    information_difference,
    largest_accuracy,
    smallest_information,
)
from classex_bayes.open_set import open_set_rates
from classex_bayes.results import Estimand
from classex_bayes.risk import (
    BayesianRisk,
    MomentRisk,
    PolynomialRisk,
    average_test_risk,
    average_test_risk_cov,
    cost_from_levels,
    noise_amplification,
)
from classex_bayes.simulate import GaussianNearestNeighbor, VonMisesFisher

NAN = float("nan")
RNG = np.random.default_rng(0)


def each(call, argument, *values):
    """Rows of one argument, whose error says of each value that it is wrong."""
    return [Bad(call, argument, "", {argument: value}) for value in values]


def ranked(n_better, n_classes, **options):
    ranks = np.array(n_better) + 1
    return cb.SourceTask.from_ranks(ranks, range(ranks.size), n_classes=n_classes, **options)


THREE, PERFECT, HALF = ranked([0, 1, 0], 3), ranked([0] * 30, 30), ranked([0, 1] * 20, 40)
CURVE = cb.SourceTask.from_accuracies([2, 9], [0.9, 0.8], n_test=50, n_classes=9)

# Open sets

GALLERY = RNG.normal(size=(60, 8))
PROBES = GALLERY + 0.5 * RNG.normal(size=(60, 8))
DISTANCES = ((PROBES[:, None] - GALLERY) ** 2).sum(axis=2)
ORDER = np.argsort(DISTANCES, axis=1)
LISTS = ORDER[:, :40], np.take_along_axis(DISTANCES, ORDER[:, :40], axis=1)
LOGITS = RNG.normal(size=(60, 60)) + 4 * np.eye(60)
SOFTMAX = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
SQUARE = RNG.normal(size=(60, 60))


def scores(matrix=LOGITS):
    return cb.SourceTask.from_scores(matrix, range(60))


def distances(**options):
    return cb.SourceTask.from_scores(DISTANCES, range(60), higher_is_better=False, **options)


def open_set(task=None, nonmated=None, **parameters):
    task = distances() if task is None else task
    few = {"sampler": {"draws": 50, "chains": 2}, "random_seed": 1}
    return cb.OpenSetExtrapolator(**parameters).fit(task, nonmated=nonmated, **few)


def strangers(nonmated, probes=PROBES, gallery=GALLERY, distance="cosine"):
    task = cb.SourceTask.from_embeddings(probes, gallery, range(60), distance=distance)
    return open_set(task, nonmated)


@cache
def fitted():
    return open_set()


def identified(**target):
    return fitted().predict(500, **target)


def rates(task=None, k=10, threshold=0.5, rank=1):
    return open_set_rates(distances() if task is None else task, k, threshold, rank=rank)


DESIGNS = [
    (open_set, {"inclusion": np.linspace(0.2, 1, 60)}),
    (open_set, {"groups": np.arange(60) // 2}),
    (rates, {"groups": np.arange(60) // 2}),
]
OPEN_SET = [
    Bad(identified, "threshold", "neither fpir", {}, lambda: identified(fpir=0.1)),
    Bad(identified, "threshold", "threshold and fpir", {"threshold": 0.5, "fpir": 0.1}),
    *each(identified, "threshold", [0.5, NAN], 1e9),
    *each(identified, "fpir", 0),
    *each(identified, "fnir", 2),
    *each(partial(identified, fpir=0.1), "prob_kept", 1, [0.9, 1], [0.5, 0.5]),
    *each(partial(identified, threshold=0.5), "rank", 0),
    *each(lambda rate: identified(threshold=1.0).interval(rate), "rate", "x", 0.95),
    *each(open_set, "drift", -1),
    *each(open_set, "tail_prior", 0.1),
    # Too few classes, missing values, too few probes, better than perfect, ties
    *each(open_set, "nonmated", np.ones((30, 7)), np.full((30, 60), NAN), np.ones((3, 60))),
    *each(open_set, "nonmated", -np.ones((30, 60)), np.ones((30, 60))),
    Bad(
        lambda: open_set(nonmated=[part[:, :10] for part in LISTS]),
        "nonmated",
        "lists of 10 classes",
        remedy=lambda: open_set(nonmated=LISTS),
    ),
    Bad(strangers, "nonmated", "7 60 embeddings of 8", {"nonmated": PROBES[:, :7]}),
    Bad(strangers, "nonmated", "zero", {"nonmated": np.zeros((30, 8))}),
    Bad(
        partial(strangers, SQUARE, SQUARE + RNG.normal(size=(60, 60)), SQUARE, "sqeuclidean"),
        "nonmated",
        "cannot be distinguished ids, dist",
    ),
    # Scores of another scale, of all probes and of a tenth
    *each(partial(open_set, scores()), "nonmated", 1000 * LOGITS),
    *each(partial(open_set, scores()), "nonmated", np.r_[1000 * LOGITS[:6], LOGITS[6:]]),
    Bad(lambda: open_set(distances().select(range(12))), "task", "12 classes"),
    Bad(open_set, "task", "tied", {"task": scores(np.eye(60)[np.arange(60) // 2])}),
    Bad(open_set, "task", "from ranks", {"task": PERFECT}),
    Bad(open_set, "task", "from accuracies", {"task": CURVE}),
    *[
        Bad(
            call,
            "task",
            "unequal probabilities or in groups",
            {"task": distances(sampling=cb.Sampling(**design))},
        )
        for call, design in DESIGNS
    ],
    *each(rates, "k", 60),
    *each(rates, "threshold", [[0.5]], NAN),
    *each(rates, "rank", 0),
    *each(partial(rates, k=2), "task", THREE),
    *[
        Bad(call, "", "sum to 1 logits", {"task": scores(SOFTMAX)}, partial(call, scores()))
        for call in (rates, open_set)
    ],
]

# Risks

COST = RNG.uniform(size=(6, 6)) * (1 - np.eye(6))
SIX = cb.SourceTask.from_scores(RNG.normal(size=(18, 6)), np.arange(18) % 6)
NAMES = list("abcdef")
NAMED = cb.SourceTask.from_scores(RNG.normal(size=(6, 6)), NAMES, classes=NAMES)
FRAME, NUMBERED = pd.DataFrame(COST, NAMES, NAMES), pd.DataFrame(COST)
GENUS = np.arange(30) // 3
LEVELS = pd.DataFrame({"genus": GENUS, "family": GENUS // 2})
SPLIT = {"genus": [0, 0, 1], "family": [0, 1, 1]}
FORTY = cb.SourceTask.from_scores(RNG.normal(size=(80, 40)), np.arange(80) % 40)
ONES = 1 - np.eye(40)


def average(cost=COST, task=SIX, k=3):
    return average_test_risk(task, cost, k)


def covariance(task=SIX, k=3):
    return average_test_risk_cov(task, COST, k)


def put(place, value):
    changed = COST.copy()
    changed[place] = value
    return changed


def polynomial(cost=ONES, **settings):
    return PolynomialRisk(cost, **settings).fit(FORTY)


def moments(cost=ONES, **settings):
    return MomentRisk(cost, **settings).fit(FORTY)


def bayesian(task=FORTY, cost=ONES, sampler=None, **settings):
    return BayesianRisk(cost, **settings).fit(task, sampler=sampler)


RISK = [
    *each(average, "cost", put((2, 4), NAN), put((1, 0), -0.1), put((5, 0), 1.5), put((3, 3), 0.5)),
    *each(average, "cost", COST[:5], COST[0], "zero-one", COST > 0.5, None),
    *each(average, "cost", NUMBERED.rename(index={0: "zero"})),
    *each(
        partial(average, task=NAMED), "cost", FRAME.drop(columns="c"), FRAME.iloc[[*range(6), 0]]
    ),
    *each(partial(average, task=SIX.select([1, 2, 3, 5])), "cost", NUMBERED),
    *[row for call in (average, covariance) for row in each(call, "k", 1, 7, 2.5, [3, 3])],
    *[row for call in (average, covariance) for row in each(call, "task", ranked([1] * 6, 6), 3)],
    *each(cost_from_levels, "taxonomy", LEVELS[["family", "genus"]], LEVELS.reset_index()),
    *each(cost_from_levels, "taxonomy", LEVELS.where(LEVELS["genus"] != 3), None, {}),
    *each(cost_from_levels, "taxonomy", {"genus": [0, 1], "family": [1]}),
    Bad(cost_from_levels, "taxonomy", "'genus' 0", {"taxonomy": SPLIT}),
    *each(partial(cost_from_levels, LEVELS), "costs", {"genus": 0.5}, [0.1, 0.2]),
    *each(partial(cost_from_levels, LEVELS), "costs", {"genus": 0.5, "family": 1.5}),
    *each(polynomial, "degree", 30, 38, -1, 1.5),
    *each(partial(noise_amplification, 20, 1000), "degree", 12, 17),
    *each(partial(noise_amplification, 60, 1000), "degree", 13),
    *each(polynomial, "cost", np.ones((40, 40))),
    *each(moments, "cost", np.eye(40)),
    *each(moments, "bandwidth", 0, 100.0),
    *each(moments, "weights", [1, 2], -np.ones(39)),
    *each(moments, "nonnegative", "yes"),
    *each(bayesian, "task", HALF, "task"),
    *each(bayesian, "cost", np.eye(50), np.zeros((40, 40))),
    *each(bayesian, "prior", "flat"),
    Bad(bayesian, "draws", "0", {"sampler": {"draws": 0}}),
]

# Information


def scored(classes):
    matrix = np.eye(3) + np.arange(3) / np.pi
    return cb.SourceTask.from_scores(matrix, list("abc"), classes=list(classes))


def implied(source=HALF, **options):
    return implied_information(source, **options)


WEIGHTED = ranked([0, 1, 2], 3, class_weight=[1, 2, 1])
TIED = cb.SourceTask.from_scores(np.ones((5, 5)), range(5), ties="optimistic")
ONE, TWO = (
    cb.Extrapolation.from_draws([2, 5], np.full((1, n, 2), 0.5), "drawn", "credible", 300)
    for n in (1, 2)
)
TOP = replace(ONE, estimand=Estimand(metric="accuracy@2"))
bound, mutual = bayes_accuracy_bound, partial(confusion_information, [[5, 1], [1, 5]])
PAIRS = [
    (HALF, ONE, ""),
    (PERFECT, PERFECT, ""),
    (HALF, THREE, "40 and 3"),
    (scored("abc"), scored("acb"), "class 1 'b' and 'c'"),
    (ONE, TWO, "(1, 1) and (1, 2) draws"),
    (THREE, WEIGHTED, "class 0 0.333333 and 0.25"),
]
INFORMATION = [
    *each(partial(largest_accuracy, k=5), "information", -1, NAN, "much"),
    *each(partial(largest_accuracy, 1), "k", 1),
    *each(partial(largest_accuracy, 1, 5), "unit", "bytes"),
    *each(partial(smallest_information, k=5), "accuracy", 1.1),
    *each(partial(smallest_information, 0.5), "k", [5, 6]),
    Bad(lambda: bayes_accuracy_variance(1), "k", "1"),
    *each(bound, "task", [], [[0.5]], 0.5),
    *each(partial(bound, THREE), "alpha", 0),
    *each(partial(bound, THREE), "method", "normal"),
    *each(partial(information_bound, THREE), "unit", "bans"),
    Bad(bound, "task", "class weights", {"task": WEIGHTED}),
    Bad(bound, "task", "untested", {"task": ranked([0, 1], 3, untested="competitors")}),
    Bad(bound, "task", "accuracies alone", {"task": CURVE}),
    Bad(bound, "task", "same number", {"task": [THREE, PERFECT]}),
    Bad(bound, "task", "20 ties", {"task": TIED}),
    *each(partial(fano_bound, k=5), "accuracy", 1.2),
    *each(partial(fano_bound, 0.5), "k", 1),
    *each(partial(fano_bound, 0.5, 5), "unit", "bans"),
    *each(confusion_information, "confusion", [1, 2, 3], [[5, 1], [0, 0]]),
    Bad(confusion_information, "", "row 0, column 0", {"confusion": [[0.5, 0.5], [0.1, 0.9]]}),
    Bad(confusion_information, "", "row 0, column 1", {"confusion": [[5, -1], [1, 3]]}),
    *each(mutual, "correction", "jackknife"),
    *each(mutual, "unit", "bans"),
    *each(mutual, "class_weight", [1]),
    *each(implied, "source", 3.0, TOP),
    *each(implied, "unit", "bytes"),
    *each(implied, "k", 41),
    Bad(implied, "k", "leave k out", {"source": ONE, "k": 2}, lambda: implied(ONE)),
    Bad(lambda: implied().to("bytes"), "unit", ""),
    Bad(lambda: implied().interval(1.5), "ci_prob", ""),
    Bad(lambda: implied(PERFECT).interval(), "", "no standard error"),
    Bad(lambda: information_difference(HALF, ranked([0] * 40, 40)).interval(), "", "no standard"),
    *[
        Bad(partial(information_difference, *pair), "first, second", words)
        for *pair, words in PAIRS
    ],
    *each(partial(information_difference, ranked([0, 1, 2] * 3, 9)), "second", CURVE),
    *each(partial(information_difference, HALF, HALF), "paired", "no"),
]

# Identification

RESPONSES, PREDICTIONS = RNG.normal(size=(2, 5, 3))


def identify(responses=RESPONSES, predictions=PREDICTIONS, noise=None, **options):
    return identification_task(
        responses, predictions, np.eye(3) if noise is None else noise, **options
    )


def decode(noise):
    return decoding_scores(RESPONSES, PREDICTIONS, noise)


IDENTIFICATION = [
    *each(identify, "responses", RESPONSES[:4], np.where(RESPONSES > 0, NAN, RESPONSES)),
    Bad(identify, "responses, covariance", "", {"responses": RESPONSES[:, :2]}),
    Bad(identify, "predictions, covariance", "", {"predictions": PREDICTIONS[:, :2]}),
    Bad(decode, "responses, covariance", "", {"noise": np.eye(2)}),
    Bad(decode, "responses, covariance", "", {"noise": np.triu(np.ones((3, 3)))}),
    Bad(decode, "covariance", "", {"noise": -np.eye(3)}),
    *each(identify, "classes", ["a", "b"]),
    Bad(
        partial(identify, RESPONSES[:4], y=range(4)),
        "y",
        "untested='competitors'",
        remedy=partial(identify, RESPONSES[:4], y=range(4), untested="competitors"),
    ),
    *each(shrunk_covariance, "residuals", [[1.0, 2.0], [NAN, 1.0]]),
    *each(shrinkage_intensity, "residuals", [[1.0, 0.0], [2.0, 0.0]], [[1.0, 2.0]]),
    *each(partial(shrunk_covariance, RESPONSES), "shrinkage", 1.1, "best"),
]

# Simulated populations

SPHERE = VonMisesFisher()
SIMULATE = [
    *each(GaussianNearestNeighbor, "dim", 0, 2.5),
    *each(GaussianNearestNeighbor, "noise_variance", 0, "a", [0.1]),
    *each(GaussianNearestNeighbor, "template_variance", -1),
    *each(VonMisesFisher, "dim", 1),
    *each(VonMisesFisher, "concentration", 0),
    *each(SPHERE.accuracy, "k", 1, 2.5, [2, 1], [], [[2, 3]], "2", True, NAN, None),
    *each(SPHERE.sample, "n_classes", 1, 2.0, "3", None),
    *each(partial(SPHERE.sample, 3), "repeats", 0, [1, 2], [1, 1, 0], 1.5, [[1, 1, 1]], "1", None),
    *each(partial(SPHERE.sample, 5), "random_seed", -1),
]
ROWS = OPEN_SET + RISK + INFORMATION + IDENTIFICATION + SIMULATE
