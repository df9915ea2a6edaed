"""Slow studies behind the figures in README.md: `pytest -m slow -s tests/studies`.

Each prints its table. The number of repetitions can be lowered by STUDY_REPETITIONS.
"""

import os

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist

import classex_bayes as cb
from classex_bayes.results import interval_of

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning")]

CHAINS = {"sampler": {"draws": 500, "tune": 500, "chains": 2}, "progressbar": False}


def repetitions(default):
    return int(os.environ.get("STUDY_REPETITIONS", default))


def references(seed):
    return [cb.ClassExReg(random_seed=seed), cb.KDE("ucv"), cb.KDE("bcv")]


def run(tasks, k, truth):
    """Errors and coverage of the 90% intervals of every estimator: long table."""
    model, rows = cb.BayesianExtrapolator(), []
    for seed, task in enumerate(tasks):
        prediction = model.fit(task, random_seed=seed, **CHAINS).predict(k)
        bounds = interval_of(prediction.accuracy, 0.9, "eti")
        held = (bounds.sel(ci_bound="lower") <= truth) & (truth <= bounds.sel(ci_bound="upper"))
        rows.append(("posterior mean", *(prediction.mean.to_numpy() - truth), held.values))
        for estimator in references(seed):
            error = estimator.fit(task).predict(k).mean.to_numpy() - truth
            rows.append((estimator.name, *error, np.full(k.size, np.nan)))
    names = [row[0] for row in rows]
    errors = pd.DataFrame([row[1:-1] for row in rows], index=names, columns=k)
    held = pd.DataFrame([row[-1] for row in rows if row[0] == "posterior mean"], columns=k)
    rmse = (errors**2).groupby(level=0).mean() ** 0.5
    return rmse, held


def distance_task(law, seed):
    """Scores are distances, as in the paper: KDE depends on their scale, the others do not."""
    probes, gallery, y = law.sample(500, random_seed=1000 + seed)
    return cb.SourceTask.from_scores(cdist(probes, gallery), y, higher_is_better=False)


def test_gaussian_nearest_neighbour():
    """RMSE over five noise levels (jmlr2018, section 4) and coverage of 90% intervals.

    With 200 repetitions each RMSE is known to about 5%.
    """
    n, k = repetitions(200), np.array([1000, 2000, 5000, 10_000])
    tables, shares = {}, {}
    for noise in (0.05, 0.1, 0.2, 0.3, 0.4):
        law = cb.simulate.GaussianNearestNeighbor(10, noise)
        tasks = (distance_task(law, seed) for seed in range(n))
        tables[noise], shares[noise] = run(tasks, k, law.accuracy(k))
        print(f"\nnoise variance {noise}, {n} repetitions\n", tables[noise].round(4))
        print("coverage of 90% intervals", shares[noise].mean().to_dict())
    worst = pd.concat(tables).groupby(level=1).max()
    coverage = float(pd.concat(shares).to_numpy(dtype=float).mean())
    print("\nlargest RMSE over noise levels\n", worst.round(4), f"\npooled coverage {coverage:.3f}")
    assert (worst.loc["posterior mean"] <= [0.030, 0.035, 0.045, 0.056]).all()
    assert 0.87 <= coverage <= 0.98


def on_distances(task):
    """Return the same task with plain distances for its squared ones: same losses, another KDE."""
    squares = -task.table.source.scores(np.arange(task.n_test))
    distances = np.sqrt(np.maximum(squares, 0))
    return cb.SourceTask.from_scores(distances, task.y, higher_is_better=False)


def test_glyphs():
    """Random pilots of 100 of the 2965 packaged characters, predicted for all of them.

    The score is minus the squared distance, as the data define it. KDE depends on its scale, so
    its figures on plain distances are printed too; the mark is set on the score of the data.
    """
    n, everything = repetitions(60), cb.load_glyphs().task()
    k = np.array([300, 1000, 2965])
    truth = everything.accuracy(k)
    pilots = [everything.subsample(100, random_seed=seed) for seed in range(n)]
    rmse, held = run(pilots, k, truth)
    print(f"\n{n} pilots of 100 characters\n", rmse.round(4), "\ncoverage", held.mean().to_dict())
    for rule in ("ucv", "bcv"):
        errors = [cb.KDE(rule).fit(on_distances(p)).predict(k).mean - truth for p in pilots]
        figures = np.sqrt(np.mean(np.square(errors), axis=0)).round(4)
        print(f"KDE({rule}) on plain distances", figures)
    assert rmse.loc["posterior mean", 2965] <= 0.085
    assert (rmse.loc["posterior mean", 2965] < rmse.drop("posterior mean")[2965]).all()
    assert held[2965].mean() >= 0.82
