"""A neural network, the posterior and ClassExReg on the corpus: docs/estimators.md."""

import numpy as np
import pandas as pd

import classex_bayes as cb
from classex_bayes.estimators.base import fitted_copy
from studies.cleanex import CleaneX
from studies.corpus.catalogue import population, recipes
from studies.coverage.trials import all_rows
from studies.pages import version
from studies.shared import quiet

N_SOURCE, K, N_SEEDS = 100, 1000, 3
N_POPULATIONS = 3  # of each kind of scores
TARGETS = ["100", "1,000", "all"]
ESTIMATORS = (
    cb.BayesianExtrapolator(), cb.ClassExReg(), CleaneX(),
)  # fmt: skip
COLUMNS = ["scores", "population", "classes", "estimator", "target", "truth", "mean"]


def pilot(scores, name, task, seed):
    """Predictions of every estimator, with a seed, from the pilot of a population."""
    k = [N_SOURCE, K, task.n_classes]
    rows = []
    with quiet():
        drawn = task.subsample(N_SOURCE, random_seed=0)
        for estimator in ESTIMATORS:
            model = fitted_copy(estimator, drawn, seed, progressbar=False, sampler={"cores": 1})
            mean = model.predict(k).mean
            rows += [
                (scores, name, task.n_classes, model.name, *at_k)
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
    """RMSE (estimator, target), and the largest error of the mean over seeds in one population."""
    square = trials.assign(square=(trials["mean"] - trials["truth"]) ** 2)
    rmse = np.sqrt(square.groupby(["estimator", "target"])["square"].mean()).unstack()[TARGETS]
    far = trials[trials["target"] == TARGETS[-1]]
    means = far.groupby(["estimator", "population"])[["mean", "truth"]].mean()
    errors = (means["mean"] - means["truth"]).abs().groupby("estimator")
    return rmse.assign(largest=errors.max())


def tables(options):
    """Sentences on the errors of the network, a regression and the posterior."""
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
    columns = [*TARGETS[1:], "largest"]
    network, regression, posterior = (
        errors.loc[name, columns].map("{:.3f}".format)
        for name in ("CleaneX", "ClassExReg", "BayesianExtrapolator")
    )
    cells = zip(network, regression, posterior, strict=True)
    near, far, largest = (f"{a} (ClassExReg {b}, BayesianExtrapolator {c})" for a, b, c in cells)
    text = (
        f"From 100 classes of {trials['population'].nunique()} populations of the corpus, with "
        f"{N_SEEDS} seeds, its RMSE is {near}\non 1,000 classes, and {far}\non all. The largest "
        f"error on all classes of a population is {largest}.\n{version()}"
    )
    return {"estimators.md": {"neural network": text}}
