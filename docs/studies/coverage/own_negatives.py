"""How far metrics among all items err that follow from ranks among a few negatives."""

import numpy as np
import pandas as pd

import classex_bayes as cb
from studies.corpus.catalogue import population
from studies.coverage.trials import all_rows
from studies.pages import version
from studies.shared import CI_PROB, quiet

METRICS = "accuracy", "hit_rate@10"
NEGATIVES, USERS = (50, 99, 500), (300, 3000)
SAMPLER = {"sampler": {"cores": 1}, "progressbar": False}
METHODS = "least_squares", "bias_variance", "maximum_likelihood", "maximum_entropy"
_COLUMNS = ["population", "negatives", "users", "metric", "estimator", "error", "held", "width"]


def populations(options):
    """Tasks on all items, by name: every query is a user, and its class the item."""
    yield "characters", cb.load_glyphs().task()
    if not options.small:
        law = cb.simulate.VonMisesFisher(dim=16, concentration=30)
        probes, gallery, y = law.sample(30_000, repeats=1, random_seed=5)
        simulated = cb.SourceTask.from_embeddings(probes, gallery, y, distance="cosine")
        yield "von Mises-Fisher", simulated
        for name in ("misspellings", "spoken-english"):
            yield name, population(name, options.out).task()


def pilot(name, ranks, n_items, n_negatives, seed, truth):
    """Rows of one set of users: every metric and estimator."""
    rng = np.random.default_rng(seed)
    n_better = rng.hypergeometric(ranks - 1, n_items - ranks, n_negatives)
    users = np.arange(ranks.size)
    task = cb.SourceTask.from_ranks(n_better + 1, users, n_negatives=n_negatives)
    rows = []
    with quiet():
        model = cb.BayesianExtrapolator().fit(task, random_seed=seed, **SAMPLER)
        references = {name: cb.estimators.SampledMetrics(name).fit(task) for name in METHODS}
        for metric in METRICS:
            cell, true = (name, n_negatives, ranks.size, metric), truth[metric]
            found = model.predict(n_items, metric=metric)
            lower, upper = found.interval(CI_PROB, "eti").to_numpy()[0]
            held = float(lower <= true <= upper)
            rows.append((*cell, "posterior", found.mean.item() - true, held, upper - lower))
            values = {"sampled metric": task.metric(metric, n_negatives + 1).item()} | {
                label: point.predict(n_items, metric=metric).mean.item()
                for label, point in references.items()
            }
            for label, value in values.items():
                rows.append((*cell, label, value - true, np.nan, np.nan))
    return rows


def cases(options):
    """Arguments of all sets of users."""
    for name, everything in populations(options):
        n_items = everything.n_classes
        truth = {metric: everything.metric(metric, n_items).item() for metric in METRICS}
        for n_negatives in NEGATIVES[: 1 if options.small else None]:
            for n_users in USERS[: 1 if options.small else None]:
                for seed in range(options.repeats(5)):
                    rng = np.random.default_rng([seed, n_users, n_negatives])
                    drawn = rng.choice(everything.n_test, min(n_users, everything.n_test), False)
                    yield name, everything.ranks[drawn], n_items, n_negatives, seed, truth


def tables(options):
    """Sentences on the errors of every estimator, and on coverage and width of the posterior."""
    trials = options.kept(
        "own_negatives",
        lambda: pd.DataFrame(all_rows(pilot, cases(options), options.jobs), columns=_COLUMNS),
    )
    cells = trials.assign(error=trials["error"] ** 2).groupby(["negatives", "metric", "estimator"])
    errors = np.sqrt(cells["error"].mean()).unstack("estimator")
    of_posterior = trials[trials["estimator"] == "posterior"]
    means = of_posterior.groupby(["negatives", "metric"])[["held", "width"]].mean()
    span = {name: _span(errors[name]) for name in errors}
    literature = ", ".join(f"{span[name]} ({name.replace('_', ' ')})" for name in METHODS)
    text = (
        f"The posterior mean has root mean squared errors of {span['posterior']}, the sampled "
        f"metric itself of {span['sampled metric']}. Those of the [estimators of the literature]"
        f"(../estimators.md) are {literature}. {CI_PROB:.0%} intervals contained the true metric "
        f"in {_span(means['held'], '.0%')} of the cases; their mean width is "
        f"{_span(means['width'])}."
    )
    return {"roles/recommender.md": {"own negatives": f"{text} {version()}"}}


def _span(values: pd.Series, form: str = ".3f") -> str:
    """Smallest and largest value over numbers of negatives and metrics."""
    return f"{values.min():{form}} to {values.max():{form}}"
