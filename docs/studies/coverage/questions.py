"""Coverage of intervals, by question: docs/questions.md."""

import unicodedata

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.spatial.distance import cdist

import classex_bayes as cb
from studies.laws import HierarchicalNormal, UniformSphere
from studies.pages import markdown, version
from studies.shared import CI_PROB, quiet

FEW = {"sampler": {"draws": 300, "tune": 300, "chains": 2, "cores": 1}, "progressbar": False}
LAW = cb.simulate.GaussianNearestNeighbor(dim=10, noise_variance=0.2)
LAWS = {
    "Gaussian, nearest template": LAW,
    "Gaussian, known centres": cb.simulate.GaussianNearestNeighbor(
        dim=10, noise_variance=0.3, template_variance=0
    ),
    "hierarchy": HierarchicalNormal(
        50, group_variance=3.0, class_variance=0.1, noise_variance=0.05
    ),
    "sphere": UniformSphere(16, 0.004),
}


def limits(prediction):
    """Lower and upper limits (2, number of k) of 90% intervals."""
    return prediction.interval(CI_PROB, "eti").to_numpy().T


def contains(prediction, truth):
    """Whether 90% intervals contain the true value, at each k."""
    low, high = limits(prediction)
    truth = np.asarray(truth)
    return (low - 1e-9 <= truth) & (truth <= high + 1e-9)


def fitted(tasks, seed):
    """The posterior of a pilot, or of several."""
    model = cb.BayesianExtrapolator(evidence="ranks")
    return model.fit(tasks, random_seed=seed, **FEW)


def one_test(n_pilots):
    """Pilots of 100 classes; the accuracy measured on 400 new classes."""
    rows = []
    for name, law in LAWS.items():
        held = []
        for seed in range(n_pilots):
            probes, gallery, y = law.sample(400, repeats=2, random_seed=2 * seed)
            pilot = cb.SourceTask.from_embeddings(probes[y < 100], gallery[:100], y[y < 100])
            predicted = fitted(pilot, seed).predict_test(400, repeats=2, random_seed=1)
            test = cb.SourceTask.from_embeddings(
                *law.sample(400, repeats=2, random_seed=2 * seed + 1)
            )
            held.append(contains(predicted, (test.ranks == 1).mean()).item())
        rows.append((name, np.mean(held)))
    columns = ["population", "400 new classes"]
    return markdown(pd.DataFrame(rows, columns=columns), dict.fromkeys(columns[1:], ".2f"))


def finite(n_pilots, size=400):
    """Pilots of a population of 400 classes: coverage and width for all of these classes."""
    cells = {(k1, r): [] for k1 in (100, 200, 320) for r in (1, 5)}
    for seed in range(n_pilots):
        probes, gallery, y = LAW.sample(size, repeats=35, random_seed=seed)
        turn = np.arange(y.size) - np.searchsorted(y, y)
        tested = turn >= 5
        truth = cb.SourceTask.from_embeddings(probes[tested], gallery, y[tested]).accuracy(size)
        for (k1, r), cell in cells.items():
            mine = (turn < r) & (y < k1)
            pilot = cb.SourceTask.from_embeddings(probes[mine], gallery[:k1], y[mine])
            model = fitted(pilot, seed)
            here, anywhere = model.predict_population(size, size), model.predict(size)
            width = np.diff(limits(here), axis=0) / np.diff(limits(anywhere), axis=0)
            cell.append((width.item(), contains(here, truth).item()))
    columns = ["pilot", "instances of each class", "width, as a share", "coverage of 90% intervals"]
    rows = [(*case, *np.mean(cell, axis=0)) for case, cell in cells.items()]
    return markdown(pd.DataFrame(rows, columns=columns), dict.fromkeys(columns[2:], ".2f"))


def costs(n_pilots):
    """Pilots of 100 classes: the mean cost on 1,000, if classes of one group cost 0.3."""
    glyphs = cb.load_glyphs()
    radicals = [ord(unicodedata.normalize("NFKC", chr(0x2F00 + j))) for j in range(214)]
    radical = np.searchsorted(radicals, [ord(c) for c in glyphs.classes], side="right")
    law = HierarchicalNormal(100, group_variance=3.0, class_variance=0.1, noise_variance=0.02)
    rows = []
    for name in ("characters, by radical", "simulation with 100 groups"):
        cells = []
        for seed in range(n_pilots):
            if name.startswith("characters"):
                whole, group = glyphs.task(), radical
            else:
                sample = law.sample(1000, repeats=2, random_seed=seed)
                whole = cb.SourceTask.from_embeddings(*sample)
                # Groups lie far apart: a template belongs to the nearest centre.
                group = cdist(sample.gallery, law.group_centres).argmin(axis=1)
            cost = np.where(group[:, None] == group, 0.3, 1.0)
            np.fill_diagonal(cost, 0)
            chosen = np.sort(np.random.default_rng(seed).choice(len(group), 100, replace=False))
            model = cb.risk.BayesianRisk(cost[np.ix_(chosen, chosen)])
            model.fit(whole.select(chosen), random_seed=seed, **FEW)
            predicted = model.predict(1000)
            truth = float(np.ravel(cb.risk.average_test_risk(whole, cost, 1000))[0])
            cells.append((contains(predicted, truth).item(), predicted.mean.item() - truth))
        held, error = np.array(cells, float).T
        rows.append((name, held.mean(), error.mean(), np.sqrt(np.mean(error**2))))
    columns = ["population", "coverage of 90% intervals", "bias", "RMSE"]
    formats = dict(zip(columns[1:], (".2f", "+.3f", ".3f"), strict=True))
    return markdown(pd.DataFrame(rows, columns=columns), formats)


def pooled(n_pilots):
    """Two pilots, of 100 and of 50 classes, against the larger alone; targets 400 and 2,000."""
    k, cells = [400, 2000], {"both": [], "the larger alone": []}
    truth = LAW.accuracy(k)
    for seed in range(n_pilots):
        probes, gallery, y = LAW.sample(100, repeats=2, random_seed=seed)
        first = np.arange(y.size) % 2 == 0
        large = cb.SourceTask.from_embeddings(probes[first], gallery, y[first])
        small = cb.SourceTask.from_embeddings(*LAW.sample(50, random_seed=seed + 1000))
        for name, tasks in (("both", [large, small]), ("the larger alone", large)):
            predicted = fitted(tasks, seed).predict(k)
            width = np.diff(limits(predicted), axis=0)[0]
            cells[name].append([*contains(predicted, truth), *width])
    rows = [(name, *np.mean(cell, axis=0)) for name, cell in cells.items()]
    columns = ["fitted", "coverage at 400", "at 2,000", "width at 400", "width at 2,000"]
    return markdown(pd.DataFrame(rows, columns=columns), dict.fromkeys(columns[1:], ".2f"))


QUESTIONS = {
    "one test": (one_test, 60),
    "finite": (finite, 40),
    "costs": (costs, 24),
    "pooled": (pooled, 60),
}


def table(name, options):
    """The table of a question."""
    study, n_pilots = QUESTIONS[name]
    with quiet():
        return f"{study(options.repeats(n_pilots))}\n\n{version()}"


def tables(options):
    """A table for each question."""
    found = Parallel(n_jobs=options.jobs)(delayed(table)(name, options) for name in QUESTIONS)
    return {"questions.md": dict(zip(QUESTIONS, found, strict=True))}
