"""A neural network, the posterior and ClassExReg on the corpus: docs/estimators.md."""

from time import process_time

import numpy as np
import pandas as pd

import classex_bayes as cb
from classex_bayes.estimators.base import fitted_copy
from studies.cleanex import CleaneX
from studies.corpus.catalogue import population, recipes
from studies.coverage.trials import all_rows
from studies.pages import markdown, version
from studies.shared import quiet

N_SOURCE, K, N_SEEDS = 100, 1000, 3
N_POPULATIONS = 3  # of each kind of scores
TARGETS = ["100", "1,000", "all"]
ESTIMATORS = (
    cb.BayesianExtrapolator(), cb.BayesianExtrapolator(evidence="ranks"), cb.ClassExReg(),
    CleaneX(),
)  # fmt: skip
COLUMNS = [
    "scores", "population", "classes", "estimator", "target", "truth", "mean", "misfit", "seconds",
]  # fmt: skip


def pilot(scores, name, task, seed):
    """Predictions of every estimator, with a seed, from the pilot of a population."""
    k = [N_SOURCE, K, task.n_classes]
    rows = []
    with quiet():
        drawn = task.subsample(N_SOURCE, random_seed=0)
        for estimator in ESTIMATORS:
            start = process_time()
            model = fitted_copy(estimator, drawn, seed, progressbar=False, sampler={"cores": 1})
            mean = model.predict(k).mean.to_numpy()
            seconds = process_time() - start
            misfit = mean[0] - drawn.accuracy(N_SOURCE).item()
            rows += [
                (scores, name, task.n_classes, model.name, *at_k, misfit, seconds)
                for at_k in zip(TARGETS, task.accuracy(k), mean, strict=True)
            ]
    return rows


def populations(options):
    """Kind of scores, name and task of the first populations of each kind of scores.

    Those of one kind of scores have different kinds of classes.
    """
    if options.small:
        yield "distance", "characters", cb.load_glyphs().task("brush")
        return
    facts = pd.DataFrame([(of.scores, of.kind, of.name) for of in recipes().values()])
    for scores, _, name in facts.drop_duplicates([0, 1]).groupby(0).head(N_POPULATIONS).to_numpy():
        yield scores, name, population(name, options.out).task()


def error_table(trials):
    """Errors, spread between seeds, misfit at k1 and time of every estimator.

    The largest error is that of the mean over seeds in one population, for all classes. The spread
    is the standard deviation of the predictions from one pilot.
    """
    cell = ["estimator", "target"]
    square = trials.assign(square=(trials["mean"] - trials["truth"]) ** 2).groupby(cell)["square"]
    variance = trials.groupby([*cell, "population"])["mean"].var().groupby(cell)
    parts = {
        "RMSE": square.mean().unstack()[TARGETS],
        "SD between seeds": variance.mean().unstack()[TARGETS[1:]],
    }
    table = np.sqrt(pd.concat(parts, axis="columns"))
    table.columns = [f"{name}, {target}" for name, target in table.columns]
    far = trials[trials["target"] == TARGETS[-1]]
    means = far.groupby(["estimator", "population"])[["mean", "truth"]].mean()
    errors = (means["mean"] - means["truth"]).abs().groupby("estimator")
    table.insert(len(TARGETS), "largest error, all", errors.max())
    fits = trials.groupby("estimator")
    table["misfit"] = np.sqrt(fits["misfit"].agg(lambda misfit: np.mean(misfit**2)))
    table["seconds"] = fits["seconds"].median()
    return table.loc[trials["estimator"].unique()].reset_index()


def tables(options):
    """Errors of every estimator."""
    cases = (
        (*of_population, seed)
        for of_population in populations(options)
        for seed in range(options.repeats(N_SEEDS))
    )
    trials = options.kept(
        "neural_network",
        lambda: pd.DataFrame(all_rows(pilot, cases, options.jobs), columns=COLUMNS),
    )
    errors = error_table(trials)
    formats = dict.fromkeys(errors.columns[1:-1], ".3f") | {"seconds": ".1f"}
    text = f"{version()}\n\n{markdown(errors, formats)}"
    return {"estimators.md": {"neural network": text}}
