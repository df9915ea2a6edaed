"""Bad calls of comparisons, plans, groups, back-tests and checks, and of drift and diagnosis."""

from copy import copy
from functools import cache, partial

import numpy as np

import classex_bayes as cb
from bad_calls import Bad
from classex_bayes.evaluate.trials import run_trials
from classex_bayes.results import Estimand

NAN = float("nan")
RNG = np.random.default_rng(0)
QUIET = {"progressbar": False, "random_seed": 1}
FEW = {**QUIET, "sampler": {"draws": 20, "tune": 50, "chains": 2}}


def each(call, argument, *values):
    """Rows of one argument, whose error says of each value that it is wrong."""
    return [Bad(call, argument, "", {argument: value}) for value in values]


def ranked(n_classes=40, repeats=2, **options):
    y = np.arange(n_classes * repeats) % n_classes
    ranks = 1 + np.arange(y.size) ** 2 % min(11, n_classes)
    return cb.SourceTask.from_ranks(ranks, y, **{"n_classes": n_classes} | options)


TASK, OTHER, WIDE = ranked(), ranked(41), ranked(120, 1)
NAMED = ranked(4, 1, classes=list("abcd")), ranked(4, 1, classes=list("abdc"))
CURVE = cb.SourceTask.from_accuracies([2, 12], [0.9, 0.5], n_test=24, n_classes=12)
CUT = cb.SourceTask.from_ranks(np.minimum(TASK.ranks, 6), TASK.y, n_classes=40, truncated_at=5)
DECISIONS = cb.SourceTask.from_scores(np.eye(100)[np.arange(100) // 2], range(100))
GROUPS = np.arange(120) % 5
GROUPED = cb.SourceTask.from_scores(
    RNG.normal(size=(120, 120)) + 2 * np.eye(120), range(120), sampling=cb.Sampling(groups=GROUPS)
)
POINT = cb.ClassExReg(0.5)


@cache
def documents(n_queries=30, length=20):
    """A task of queries of two relevant documents each, among 100."""
    qrels = {f"q{i}": {f"d{2 * i + j}": 1 for j in range(2)} for i in range(n_queries)}
    scores = np.random.default_rng(1).normal(size=(n_queries, 100))
    scores += 2 * np.repeat(np.eye(n_queries, 50), 2, axis=1)
    run = {
        f"q{i}": {f"d{j}": float(row[j]) for j in np.argsort(-row)[:length]}
        for i, row in enumerate(scores)
    }
    return cb.SourceTask.from_run(qrels, run, n_classes=100)


BY_RANKS = cb.BayesianExtrapolator(evidence="ranks")


@cache
def model(n_queries=30):
    return copy(BY_RANKS).fit(documents(n_queries), **FEW)


def pooled():
    return copy(BY_RANKS).fit([documents(), documents(31)], **FEW)


def drawn(k, metric="accuracy", n_classes=40, seed=0, **estimand):
    """A prediction of random draws."""
    draws = np.random.default_rng(seed).uniform(size=(2, 50, np.size(k)))
    estimand = Estimand(metric=metric, **estimand)
    return cb.Extrapolation.from_draws(k, draws, "drawn", "credible", n_classes, estimand=estimand)


# Metrics and levels


def level(level, metric="mean_rank"):
    return drawn([100], metric).prob_at_least(level)


def until(level):
    return model().classes_until(level, metric="mrr")


def report(target, metric="mrr"):
    return cb.write_report(model(), 100, "report.html", metric=metric, target=target)


LEVELS = [
    Bad(partial(CUT.metric, "recall@5", 20), "k", "20 classes between"),
    *[
        Bad(partial(CUT.metric, name, 40), "k", f"{name.partition('@')[0]} between mrr@5 k = 40")
        for name in ("mrr@6", "mrr", "ndcg", "mean_rank")
    ],
    *each(level, "level", 0.9, 101, "10", NAN, True),
    *each(partial(level, metric="mrr"), "level", 10),
    *each(until, "level", 0),
    *each(report, "target", -1, 101),
    *each(partial(report, metric="median_rank"), "target", -1, 101),
]

# Comparisons of estimators


class Given:
    """Predicts a quantity by its name alone."""

    def __init__(self, name, metric="risk"):
        self.name, self.metric = name, metric

    def fit(self, task):
        return self

    def predict(self, k):
        return drawn(k, self.metric)


def compared(estimators=(POINT,), task=TASK, k=50, **options):
    return cb.compare(list(estimators), task, k, **options)


def compare(estimators):
    return cb.compare(estimators, TASK, 50)


KDE, BCV = cb.KDE("ucv"), cb.KDE("bcv")
COMPARE = [
    *each(compare, "estimators", [], None, "KDE", KDE, [cb.KDE], [3], [KDE, POINT, KDE]),
    *[
        Bad(verb, "estimators", "task; found <SourceTask", {}, remedy)
        for verb, remedy in (
            (partial(cb.compare, TASK, [POINT], 50), partial(cb.compare, [POINT], TASK, 50)),
            (
                partial(cb.backtest, TASK, [POINT], 30),
                partial(cb.backtest, [POINT], TASK, 30, n_pilots=1, progressbar=False),
            ),
        )
    ],
    Bad(compare, "estimators", "KDE(ucv), KDE(bcv):", {"estimators": [KDE, BCV]}),
    *each(compared, "task", np.eye(5)),
    *each(compared, "k", 1, [5, 5]),
    *each(compared, "truth", 0.5, {50: 1.5}),
    *each(partial(compared, [Given("a", "mean_rank")], metric="mean_rank"), "truth", {50: 0.5}),
    *each(compared, "ci_prob", 95),
    *each(compared, "ci_kind", "central"),
    *each(compared, "random_seed", -3),
    *each(compared, "n_resamples", 1),
    *each(compared, "metric", "f1"),
    Bad(partial(compared, [Given("a"), Given("b", "accuracy")]), "predictions", ""),
    *each(partial(compared, [Given("a")]), "truth", TASK),
]

# Comparisons of classifiers and groups of instances


def classifiers(tasks=None, k=50, **options):
    return cb.compare_classifiers(tasks or {"a": TASK, "b": TASK}, k, **options)


def against(other, first=TASK, **options):
    return classifiers({"a": first, "b": other}, **options)


BOTH = {"a": drawn([50]), "b": drawn([50], seed=1)}
DIFFERENCE = cb.evaluate.ClassifierComparison(BOTH, None, True).difference


def grouped(groups=None, k=100, task=TASK, **options):
    groups = list("ab") * 40 if groups is None else groups
    return cb.extrapolate_groups(task, groups, k, **options)


LABELS = np.array(list("ab") * 40, dtype=object)
MISSING = np.where(np.arange(80) == 7, None, LABELS)
NO_NUMBER = np.where(np.arange(80) == 3, NAN, 1.0)
MIXES = {"c": 1.0}, {"a": -1.0}, {"a": NAN}, {"a": 0, "b": 0}, {}, {"a": 0.5}, [0.5, 0.5]
CLASSIFIERS = [
    Bad(against, "tasks", "40 and 41 classes", {"other": OTHER}),
    Bad(against, "tasks", "80 and 120 instances", {"other": ranked(repeats=3)}),
    Bad(
        against,
        "tasks",
        "row 0: 0 and 39",
        {"other": cb.SourceTask.from_ranks(TASK.ranks, TASK.y[::-1], n_classes=40)},
    ),
    Bad(against, "tasks", "class 0 0.025 and", {"other": ranked(class_weight=[2] + [1] * 39)}),
    Bad(against, "tasks['b']", "accuracies alone", {"other": CURVE}),
    Bad(against, "tasks", "class 2 is 'c' and 'd'", {"other": NAMED[1], "first": NAMED[0]}),
    Bad(partial(against, CUT, CUT, metric="recall@6"), "tasks['a']", "cut ranks"),
    *each(partial(against, CUT, CUT), "metric", "mean_rank", "median_rank"),
    *each(classifiers, "metric", "recall@40"),
    *each(classifiers, "tasks", [TASK, TASK], {"a": TASK}, {1: TASK, "1": TASK}),
    *each(classifiers, "k", 1),
    *each(classifiers, "model", cb.BayesianExtrapolator),
    *each(classifiers, "paired", "yes"),
    Bad(partial(DIFFERENCE, "x", "b"), "first", "'x'"),
    Bad(partial(DIFFERENCE, "b", "b"), "second", "'b'"),
    *each(DIFFERENCE("a", "b").prob_above, "margin", "x", 2),
    Bad(grouped, "groups", "79 labels for 80", {"groups": LABELS[1:]}),
    Bad(grouped, "groups", "row 7", {"groups": MISSING}),
    Bad(grouped, "groups", "row 3", {"groups": NO_NUMBER}),
    Bad(grouped, "groups", "row 1", {"groups": ["a", NAN] * 40}),
    Bad(grouped, "groups", "at least two", {"groups": ["a"] * 80}),
    Bad(grouped, "groups", "'overall'", {"groups": ["overall", "b"] * 40}),
    Bad(grouped, "groups", "6 labels for 80", {"groups": "camera"}),
    Bad(grouped, "groups", "'rare' 2", {"groups": np.where(TASK.y < 2, "rare", "usual")}),
    *each(partial(grouped, ["a", "b"] * 12), "task", CURVE),
    *each(grouped, "model", "x"),
    *[Bad(grouped, "", "mix", {"mix": mix}) for mix in MIXES],
]

# Plans, back-tests, trials and extrapolation within the pilot


def planned(task=TASK, k=1000, **options):
    return cb.plan(task, k, **{"width": 0.1, **QUIET} | options)


USERS = cb.SourceTask.from_ranks(TASK.ranks, range(80), n_negatives=99)


def trials(**options):
    settings = {"cells": [2.0], "k": [60], "n_simulations": 1, **QUIET} | options
    return run_trials(settings.pop("estimators", [POINT]), lambda *_: TASK, **settings)


def backtested(task=TASK, n_source=20, **options):
    return cb.backtest([POINT], task, n_source, **{"n_pilots": 1, **QUIET} | options)


def checked(estimators=POINT, task=WIDE, **options):
    return cb.extrapolation_check(estimators, task, **QUIET | options)


PLAN = [
    *each(planned, "task", 0.9, {10: 0.9}, [TASK, TASK]),
    *each(planned, "k", 1),
    *each(planned, "width", 2, None),
    *each(planned, "excludes", 1.5, "chance"),
    *each(planned, "ci_prob", 0),
    *each(planned, "classes", [2]),
    *each(planned, "repeats", [0], []),
    *each(partial(planned, classes=[50]), "repeats", [0.04]),  # 2 instances
    *each(planned, "metric", "mean_rank", "median_rank", "recall"),
    *each(planned, "n_pilots", 0),
    *each(planned, "progressbar", 1),
    *[
        Bad(partial(planned, USERS, 500, **sizes), "", "users")
        for sizes in ({"classes": [100], "users": [9]}, {"users": [2]})
    ],
    Bad(partial(planned, None, users=[9]), "negatives, users", "classes= and repeats="),
    *each(backtested, "n_source", 40, 2),
    *each(backtested, "k", 41),
    *each(backtested, "n_pilots", 0),
    *each(backtested, "task", CURVE, 3),
    *each(trials, "estimators", [cb.ClassExReg(), cb.ClassExReg(n_resamples=2)]),
    *each(trials, "n_jobs", 0),
    *each(trials, "n_simulations", 0),
    Bad(checked, "task", "60 3 parts of 25", {"task": WIDE.select(np.arange(60))}),
    *each(checked, "n_parts", 2, 67, 3.5),
    Bad(checked, "task", "(5 tested units), 2 tested", {"task": GROUPED}),
    Bad(lambda: GROUPED.select(np.flatnonzero(GROUPS == 0)), "groups", "one group"),
    *each(checked, "random_seed", -1),
    Bad(partial(cb.extrapolation_check, POINT), "task", "none"),
    *each(checked, "estimators", 7),
    Bad(checked, "", "KDE(ucv): scores", {"estimators": KDE}),
    Bad(checked, "", "decision k = 100", {"task": DECISIONS}),
]

# Several relevant documents, and lists in a second order


def lacking(query):
    """A run of queries for the same documents without one of them."""
    qrels = {f"q{i}": {f"d{i // 3}": 1} for i in range(60)}
    run = {name: {"d0": 1.0} for name in qrels if name != query}
    return cb.SourceTask.from_run(qrels, run, n_classes=50, missing="unsearched")


def of_bounds(metric):
    return cb.MomentBounds().fit(documents()).predict(300, metric=metric)


def of_sampled(metric):
    return cb.estimators.SampledMetrics().fit(documents()).predict(300, metric=metric)


def entries():
    """Tasks of classes with two entries each: templates, labels in lists, and tasks of these."""
    gallery, label = np.random.default_rng(1).normal(size=(12, 3)), np.repeat(np.arange(6), 2)
    probes = gallery[::2] + 0.1
    first = cb.SourceTask.from_embeddings(probes, gallery, np.arange(6), gallery_y=label)
    batches = cb.SourceTask.from_batches(
        [(probes[:3], [0, 1, 2]), (probes[3:], [3, 4, 5])], gallery=gallery, gallery_y=label
    )
    nearest = ((probes[:, None] - gallery) ** 2).sum(axis=2).argsort(axis=1)
    lists = cb.SourceTask.from_search(label[nearest], np.arange(6), n_classes=6)
    return first, batches, lists, first.subsample(4, random_seed=1), first.without_scores()


RECALL = "queries have several relevant documents"
PART = {"a": documents(), "b": documents(31)}
DOCUMENTS = [
    Bad(partial(documents(length=5).metric, "recall@10", 100), "k", "100 documents between"),
    Bad(lambda: pooled().predict(300, metric="recall@5"), "metric", RECALL),
    Bad(partial(cb.compare_classifiers, PART, 300, metric="recall@5"), "tasks", "queries"),
    Bad(
        lambda: cb.compare_classifiers({"a": lacking("q0"), "b": lacking("q1")}, 50),
        "tasks",
        "queries",
    ),
    *[
        Bad(call, "", RECALL, {"metric": metric}, partial(call, metric="success@5"))
        for metric in ("recall@5", "recall@1", "nDCG@5", "map")
        for call in (of_bounds, of_sampled)
    ],
    Bad(partial(planned, documents(), 300, metric="recall@5"), "", RECALL),
    *[
        Bad(task.metric, "metric", "several entries from_run(qrels, run", {"metric": metric}, call)
        for task in entries()
        for metric in ("map", "ap@5", "map@r", "Rprec", "precision@3", "recall@3", "ndcg")
        for call in (partial(task.metric, "success@3"), partial(task.metric, "mrr"))
    ],
    Bad(lambda: cb.sensitivity(model(), 300, metric="recall@5"), "", RECALL),
]

# Drift and diagnosis

DRIFT, KS = cb.measure_drift(TASK), [20, 40, 160]
PREDICTIONS = [
    cb.Extrapolation.from_point([100], [0.5], "points", 40),
    *[drawn(KS, metric) for metric in ("risk", "accuracy@5")],
    drawn(KS, n_classes=50),
    drawn(KS, repeats=1),
    DRIFT.apply(drawn(KS)),
]
ASSUMPTIONS = [
    *each(DRIFT.apply, "prediction", *PREDICTIONS),
    Bad(
        partial(cb.measure_drift, NAMED[0], nested=True),
        "smaller_tasks",
        "'e'",
        {"smaller_tasks": ranked(3, classes=list("abe"))},
    ),
    Bad(lambda: cb.diagnose(TASK)["e"], "name", "'e' 'number of classes'"),
]
ROWS = LEVELS + COMPARE + CLASSIFIERS + PLAN + DOCUMENTS + ASSUMPTIONS
