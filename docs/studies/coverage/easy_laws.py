"""Ten easy recognition problems, whose pilots contain almost no errors: docs/scores.md."""

from zlib import crc32

import numpy as np
import pandas as pd

import classex_bayes as cb
from studies.coverage.trials import all_rows, summary
from studies.pages import paragraph, version
from studies.shared import CI_PROB, quiet

N_CLASSES, REPEATS, PILOT, FACTORS = 6000, 2, 50, (1, 10, 50)
Y = np.repeat(np.arange(N_CLASSES), REPEATS)
SAMPLER = {"sampler": {"draws": 250, "tune": 500, "chains": 4, "cores": 1}, "progressbar": False}
MODELS = {"ranks": cb.BayesianExtrapolator(evidence="ranks"), "scores": cb.BayesianExtrapolator()}


def nearest(gallery, noise, templates=None):
    """Task of the nearest template by Euclidean distance."""
    templates = gallery if templates is None else templates
    return cb.SourceTask.from_embeddings(gallery[Y] + noise, templates, Y)


def logits(gallery, noise, bias):
    """Task of dot products with the templates, each with a bias."""
    scores = (gallery[Y] + noise) @ gallery.T + bias
    return cb.SourceTask.from_scores(scores.astype(np.float32), Y)


def gaussian(dim, sd):
    """Gaussian templates and noise."""
    return lambda r: nearest(r.normal(size=(N_CLASSES, dim)), sd * r.normal(size=(Y.size, dim)))


def noisy_templates(r):
    """Templates with the noise of the probes."""
    gallery = r.normal(size=(N_CLASSES, 16))
    noise = 0.35 * r.normal(size=(Y.size, 16))
    return nearest(gallery, noise, gallery + 0.35 * r.normal(size=gallery.shape))


def clusters(r):
    """Templates in 300 clusters."""
    centres = r.normal(size=(300, 16))[r.integers(300, size=N_CLASSES)]
    gallery = centres + 0.35 * r.normal(size=centres.shape)
    return nearest(gallery, 0.3 * r.normal(size=(Y.size, 16)))


def sphere(r):
    """Directions, compared by the cosine."""
    gallery = r.normal(size=(N_CLASSES, 20))
    gallery /= np.linalg.norm(gallery, axis=1, keepdims=True)
    probes = gallery[Y] + 0.2 * r.normal(size=(Y.size, 20))
    return cb.SourceTask.from_embeddings(probes, gallery, Y, distance="cosine")


LAWS = {
    "noisy templates, 16 dimensions": noisy_templates,
    "logits with a bias, 32 dimensions": lambda r: logits(
        r.normal(size=(N_CLASSES, 32)),
        0.5 * r.normal(size=(Y.size, 32)),
        1.5 * r.normal(size=N_CLASSES),
    ),
    "Gaussian, 30 dimensions": gaussian(30, 0.95),
    "Gaussian, 8 dimensions": gaussian(8, 0.3),
    "directions, 20 dimensions": sphere,
    "uniform in a cube, 5 dimensions": lambda r: nearest(
        r.random((N_CLASSES, 5)), 0.05 * r.normal(size=(Y.size, 5))
    ),
    "noise of Student's t, 20 dimensions": lambda r: nearest(
        r.normal(size=(N_CLASSES, 20)), 0.5 * r.standard_t(4, size=(Y.size, 20))
    ),
    "clusters, 16 dimensions": clusters,
    "Laplace, 12 dimensions": lambda r: nearest(
        r.laplace(size=(N_CLASSES, 12)), 0.4 * r.normal(size=(Y.size, 12))
    ),
    "dot products, 60 dimensions": lambda r: logits(
        r.normal(size=(N_CLASSES, 60)), 0.8 * r.normal(size=(Y.size, 60)), 0.0
    ),
}


def pilots(law, n_pilots):
    """Rows of the pilots of one law: every model and k."""
    task = LAWS[law](np.random.default_rng(crc32(law.encode())))
    k = PILOT * np.array(FACTORS)
    truth = task.accuracy(k)
    rows = []
    with quiet():
        for seed in range(n_pilots):
            pilot = task.subsample(PILOT, random_seed=seed)
            for evidence, model in MODELS.items():
                predicted = model.fit(pilot, random_seed=seed, **SAMPLER).predict(k)
                limits = predicted.interval(CI_PROB, "eti").to_numpy()[:, :2]
                for row in zip(FACTORS, truth, predicted.mean, *limits.T, strict=True):
                    rows.append((law, evidence, *row))
    return rows


def tables(options):
    """The ranges of errors and coverage over the laws, from ranks and from scores."""
    n_pilots = options.repeats(20)
    columns = ["law", "evidence", "factor", "truth", "mean", "lower", "upper"]
    cases = [(law, n_pilots) for law in LAWS]
    trials = options.kept(
        "easy-laws", lambda: pd.DataFrame(all_rows(pilots, cases, options.jobs), columns=columns)
    )
    return {"scores.md": {"easy laws": paragraph(in_words(trials, n_pilots))}}


def in_words(trials, n_pilots):
    """Accuracies on the classes of the pilots, and ranges of RMSE and coverage over the laws."""
    cells = summary(trials, ["law", "evidence", "factor"]).set_index(["evidence", "factor"])
    accuracy = trials.loc[trials["factor"] == FACTORS[0], "truth"]
    far = FACTORS[-1]
    rmse = {name: cells.loc[name, "rmse"].loc[far] for name in MODELS}
    held = {name: cells.loc[name, "held"] for name in MODELS}
    return (
        f"With accuracies of {accuracy.min():.4f} to {accuracy.max():.4f} on {PILOT} classes, the "
        f"RMSE on {far * PILOT:,} classes is {span(rmse['scores'], '.3f')} from scores and "
        f"{span(rmse['ranks'], '.3f')} from ranks alone. The coverage at {FACTORS[0]}, "
        f"{FACTORS[1]} and {far} times the classes of the pilots is {span(held['scores'], '.2f')} "
        f"and {span(held['ranks'], '.2f')}. {len(LAWS)} problems, {n_pilots} pilots of each. "
        f"{version()}"
    )


def span(values, spec):
    """Smallest and largest value."""
    return f"{values.min():{spec}} to {values.max():{spec}}"
