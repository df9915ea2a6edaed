"""How far predicted metrics of retrieval err: docs/questions.md."""

import pandas as pd

import classex_bayes as cb
from classex_bayes.simulate import GaussianNearestNeighbor
from studies.coverage.trials import all_rows, summary
from studies.pages import version
from studies.shared import CI_PROB, quiet

METRICS = "mrr", "recall@10"
POPULATIONS = "Gaussian, 10 dimensions", "characters"
SIZES, FACTORS = (100, 300), (3, 10, 30)
SAMPLER = {"sampler": {"draws": 250, "tune": 250, "chains": 4, "cores": 1}, "progressbar": False}
MODELS = {
    "ranks": cb.BayesianExtrapolator(evidence="ranks"),
    "ranks and scores": cb.BayesianExtrapolator(),
}


def population(name):
    """Task of all classes."""
    if name == "characters":
        return cb.load_glyphs().task()
    law = GaussianNearestNeighbor(dim=10, noise_variance=0.2)
    return cb.SourceTask.from_embeddings(*law.sample(9100, random_seed=5))


def pilot(name, task, seed, truth):
    """Rows of one pilot: every model, metric and k."""
    rows = []
    with quiet():
        for kind, model in MODELS.items():
            fitted = model.fit(task, random_seed=seed, **SAMPLER)
            for metric, values in truth.items():
                found = fitted.predict(list(values), metric=metric)
                bounds = found.interval(CI_PROB, "eti")
                for k, true in values.items():
                    limits = bounds.loc[k, ["lower", "upper"]]
                    cell = name, task.n_classes, kind, metric, k
                    rows.append((*cell, true, found.mean[k], *limits))
    return rows


def cases(options):
    """Arguments of all pilots."""
    for name in POPULATIONS:
        everything = population(name)
        for n_source in SIZES:
            k = sorted({min(factor * n_source, everything.n_classes) for factor in FACTORS})
            truth = {m: dict(zip(k, everything.metric(m, k), strict=True)) for m in METRICS}
            for seed in range(options.repeats(20)):
                yield name, everything.subsample(n_source, random_seed=seed), seed, truth


def tables(options):
    """A sentence on coverage and errors."""
    columns = ["population", "pilot", "model", "metric", "k", "truth", "mean", "lower", "upper"]
    trials = options.kept(
        "metrics",
        lambda: pd.DataFrame(all_rows(pilot, cases(options), options.jobs), columns=columns),
    )
    cells = summary(trials, columns[:5])
    means = cells.groupby(["population", "pilot", "metric", "model"])[["held", "rmse"]].mean()
    held, rmse = (means[name].agg(["min", "max"]) for name in ("held", "rmse"))
    text = (
        f"The coverage of 90% intervals of {' and '.join(METRICS)} was {held['min']:.2f} to "
        f"{held['max']:.2f} for pilots of {' and '.join(map(str, SIZES))} classes of two "
        f"populations, at 3, 10 and 30 times their classes. The RMSE was {rmse['min']:.3f} to "
        f"{rmse['max']:.3f}. {version()}"
    )
    return {"questions.md": {"metric errors": text}}
