"""Bad calls of plots and of the report."""

from functools import cache
from pathlib import Path

import numpy as np

import classex_bayes as cb
from bad_calls import Bad
from classex_bayes import plots

POINT = cb.Extrapolation.from_point([10, 200], [0.9, 0.7], "point", 200)
DRAWS = np.random.default_rng(1).uniform(0.5, 0.9, (2, 20, 2))
DRAWN = cb.Extrapolation.from_draws([10, 200], DRAWS, "drawn", "credible", 200)
BARE = cb.SourceTask.from_ranks([1, 1, 2, 3], range(4), n_classes=4)
SCORED = cb.SourceTask.from_scores(np.eye(9) + np.arange(81).reshape(9, 9) / 50, range(9))


def accuracy(predictions=POINT, **values):
    return plots.plot_accuracy(predictions, **values)


def prob(prediction=DRAWN, level=0.5, **values):
    return plots.plot_prob_at_least(prediction, level, **values)


def prior(model=None, **values):
    return plots.plot_prior_predictive(model or cb.BayesianExtrapolator(), **values)


def drift(prediction):
    return plots.plot_drift(cb.measure_drift(SCORED), prediction)


def diagnosis(task):
    return plots.plot_diagnosis(cb.diagnose(task))


@cache
def model():
    sampler = {"draws": 20, "tune": 50, "chains": 2}
    return cb.BayesianExtrapolator().fit(BARE, sampler=sampler, random_seed=1, progressbar=False)


def report(model_of=model, k=9, path="a.html", **values):
    return cb.write_report(model_of(), k, path, **values)


def report_in_place_of_a_folder():
    Path("folder.html").mkdir()
    report(path="folder.html")


ROWS = [
    # Accuracy
    Bad(accuracy, "predictions", "found none", {"predictions": []}),
    Bad(accuracy, "predictions", "found 1.0", {"predictions": [1.0]}),
    Bad(accuracy, "predictions", "fitted ClassExReg", {"predictions": cb.ClassExReg}),
    Bad(
        accuracy,
        "predictions",
        "'point' twice mapping",
        {"predictions": [POINT, POINT]},
        remedy=lambda: accuracy({"first": POINT, "second": POINT}),
    ),
    Bad(
        lambda: accuracy(cb.ClassExReg(0.5).fit(BARE), metric="mrr"),
        "metric",
        "'mrr' accuracy alone",
    ),
    Bad(accuracy, "task", "found int", {"task": 3}),
    *[
        Bad(accuracy, "truth", "", {"truth": truth})
        for truth in (0.5, [0.5], {"many": 0.5, 3: 0.2}, {100: 5})
    ],
    Bad(accuracy, "target", "0 and 1 90", {"target": 90}),
    Bad(accuracy, "k", "found 5 10, 200", {"k": 5}, remedy=lambda: accuracy(k=10)),
    Bad(accuracy, "ci_prob", "", {"predictions": DRAWN, "ci_prob": 1}),
    Bad(accuracy, "ci_kind", "central", {"predictions": DRAWN, "ci_kind": "central"}),
    # Arguments of all plots
    *[
        Bad(accuracy, "visuals", "expected mean", {"visuals": visuals})
        for visuals in ("title", {"title": "no mapping"}, {"band": False})
    ],
    Bad(accuracy, "ax", "found 3", {"ax": 3}),
    Bad(accuracy, "figure_kwargs", "mapping found 3", {"figure_kwargs": 3}),
    Bad(accuracy, "col_wrap", "0", {"col_wrap": 0}),
    # Other plots
    Bad(prob, "", "point estimate", {"prediction": POINT}),
    Bad(prob, "prediction", "0.5", {"prediction": 0.5}),
    *[Bad(prob, "level", str(level), {"level": level}) for level in ([], [0.5, 0.5])],
    Bad(prob, "level", "0 and 1", {"level": [0.5, 5]}),
    Bad(prior, "model", "SourceTask", {"model": BARE}),
    Bad(prior, "task", "found int", {"task": 3}),
    Bad(plots.plot_discriminability, "model", "ClassExReg", {"model": cb.ClassExReg()}),
    Bad(drift, "prediction", "what predict", {"prediction": BARE}),
    Bad(diagnosis, "report", "scores", {"task": BARE}, remedy=lambda: diagnosis(SCORED)),
    # Report
    Bad(report, "path", ".html 'a.pdf'", {"path": "a.pdf"}),
    Bad(report_in_place_of_a_folder, "path", "folder"),
    Bad(report, "k", "2", {"k": 1}),
    Bad(report, "target", "0 and 1", {"target": 1.0}),
    Bad(report, "ci_prob", "0 and 1 90", {"ci_prob": 90}),
    Bad(report, "task", "another", {"task": SCORED}),
    Bad(report, "task", "found int", {"task": 3}),
    Bad(report, "references", "ClassExReg twice", {"references": [cb.ClassExReg()] * 2}),
    Bad(
        report,
        "references",
        "BayesianExtrapolator twice",
        {"references": [cb.BayesianExtrapolator()]},
    ),
    Bad(report, "model", "BayesianExtrapolator", {"model_of": cb.ClassExReg}),
    Bad(report, "open_set", "fit(task)", {"open_set": cb.OpenSetExtrapolator()}),
]
