"""Coverage of intervals, by question: docs/questions.md."""

import unicodedata

import numpy as np
from joblib import Parallel, delayed
from scipy.spatial.distance import cdist

import classex_bayes as cb
from studies.laws import HierarchicalNormal, UniformSphere
from studies.pages import version
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


def share_range(shares):
    """The smallest and the largest of some shares, in percent."""
    return f"{100 * np.min(shares):.0f} to {np.max(shares):.0%}"


def fitted(tasks, seed):
    """The posterior of a pilot, or of several."""
    model = cb.BayesianExtrapolator(evidence="ranks")
    return model.fit(tasks, random_seed=seed, **FEW)


def one_test(n_pilots):
    """Pilots of 100 classes; the accuracy measured on 400 new classes."""
    rows = []
    for law in LAWS.values():
        held = []
        for seed in range(n_pilots):
            probes, gallery, y = law.sample(400, repeats=2, random_seed=2 * seed)
            pilot = cb.SourceTask.from_embeddings(probes[y < 100], gallery[:100], y[y < 100])
            predicted = fitted(pilot, seed).predict_test(400, repeats=2, random_seed=1)
            test = cb.SourceTask.from_embeddings(
                *law.sample(400, repeats=2, random_seed=2 * seed + 1)
            )
            held.append(contains(predicted, (test.ranks == 1).mean()).item())
        rows.append(np.mean(held))
    return (
        "In simulations, 90% intervals contained the accuracy measured on 400 new classes in "
        f"{share_range(rows)} of the cases (fewest: {list(LAWS)[np.argmin(rows)]})."
    )


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
    width, held = np.transpose([np.mean(cell, axis=0) for cell in cells.values()])
    k1, repeats = list(cells)[np.argmin(width)]
    return (
        f"In simulated populations of {size} classes its width was {share_range(width)} of that of "
        f"`predict` (narrowest: {k1} classes, {repeats} instances of each), and 90% intervals "
        f"contained the true accuracy in {share_range(held)} of the cases."
    )


def costs(n_pilots):
    """Pilots of 100 classes: the mean cost on 1,000, if classes of one group cost 0.3."""
    glyphs = cb.load_glyphs()
    radicals = [ord(unicodedata.normalize("NFKC", chr(0x2F00 + j))) for j in range(214)]
    radical = np.searchsorted(radicals, [ord(c) for c in glyphs.classes], side="right")
    law = HierarchicalNormal(100, group_variance=3.0, class_variance=0.1, noise_variance=0.02)
    rows = []
    for name in ("characters by radical", "a simulation with 100 groups"):
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
        rows.append((name, held.mean(), error.mean()))
    cases = [f"{held:.2f} for {name} (bias {bias:+.3f})" for name, held, bias in rows]
    return (
        f"For pilots of 100 classes and the mean cost on 1,000, the coverage of 90% intervals was "
        f"{' and '.join(cases)}."
    )


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
    means = {name: np.mean(cell, axis=0) for name, cell in cells.items()}
    widths = [f"{near:.2f} and {far:.2f} for {name}" for name, (*_, near, far) in means.items()]
    held = share_range([cell[:2] for cell in means.values()])
    return (
        f"In simulated pilots of 100 and 50 classes, the mean widths of 90% intervals at {k[0]} "
        f"and {k[1]:,} classes were {' and '.join(widths)}; they contained the true accuracy in "
        f"{held} of the cases."
    )


QUESTIONS = {
    "one test": (one_test, 60),
    "finite": (finite, 40),
    "costs": (costs, 24),
    "pooled": (pooled, 60),
}


def sentence(name, options):
    """The sentence of a question."""
    study, n_pilots = QUESTIONS[name]
    with quiet():
        return f"{study(options.repeats(n_pilots))} {version()}"


def tables(options):
    """A sentence for each question."""
    found = Parallel(n_jobs=options.jobs)(delayed(sentence)(name, options) for name in QUESTIONS)
    return {"questions.md": dict(zip(QUESTIONS, found, strict=True))}
