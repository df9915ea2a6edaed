"""How often predictive checks raise an alarm, sound tasks and broken ones: docs/calibration.md."""

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist
from scipy.stats import binom

import classex_bayes as cb
from classex_bayes.simulate import GaussianNearestNeighbor, VonMisesFisher
from studies.coverage.trials import all_rows
from studies.laws import HierarchicalNormal, UniformSphere, zoo
from studies.pages import markdown, version
from studies.shared import quiet

EMBEDDED = {
    "Gaussian, 8 dimensions": GaussianNearestNeighbor(dim=8, noise_variance=0.12),
    "known centres, 4 dimensions": GaussianNearestNeighbor(
        dim=4, noise_variance=0.06, template_variance=0
    ),
    "hierarchy, 12 groups": HierarchicalNormal(n_groups=12, dim=8, population_seed=7),
    "clusters, 4 narrow groups": HierarchicalNormal(
        n_groups=4, dim=8, class_variance=0.25, noise_variance=0.08, population_seed=11
    ),
    "sphere, caps": UniformSphere(dim=24, cap=0.006),
    "sphere, von Mises-Fisher": VonMisesFisher(dim=24, concentration=45.0),
}
UNEQUAL, CHARACTERS = "unequal variances", "characters in three fonts"
SOUND = (*EMBEDDED, UNEQUAL, "left-skewed", "atom at 0", CHARACTERS)
BROKEN_LAWS = "Gaussian, 8 dimensions", "hierarchy, 12 groups", UNEQUAL, "sphere, von Mises-Fisher"
KINDS = {
    "3 answered at random": ("random", 3),
    "labels of 2 swapped": ("swapped", 2),
    "1 has the template of another": ("doubled", 1),
    "1 template near half of all instances": ("hub", 1),
}
N_CLASSES, REPEATS = 100, 4
DRAWS = {
    "sampler": {"draws": 300, "tune": 400, "chains": 2},
    "random_seed": 1,
    "progressbar": False,
}


def scores(law, n_classes, repeats, seed):
    """Scores (n, k1) of a law of embeddings, and the true classes."""
    if law == UNEQUAL:
        rng = np.random.default_rng(seed)
        sd = np.sqrt(0.15) * np.exp(0.4 * rng.standard_normal(n_classes))
        centres = rng.standard_normal((n_classes, 8))
        y = np.repeat(np.arange(n_classes), repeats)
        gallery = centres + 0.7 * sd[:, None] * rng.standard_normal(centres.shape)
        probes = centres[y] + sd[y, None] * rng.standard_normal((y.size, 8))
    else:
        probes, gallery, y = EMBEDDED[law].sample(n_classes, repeats=repeats, random_seed=seed)
    return -cdist(probes, gallery, "sqeuclidean"), y


def sound_task(law, n_classes, repeats, seed):
    """Task of a law in which nothing is broken; characters have their own three instances."""
    if law == CHARACTERS:
        return cb.load_glyphs().task().subsample(n_classes, random_seed=seed)
    if law in zoo():
        n_test = n_classes * repeats
        ranks, y, _ = zoo()[law].sample(n_classes, n_test=n_test, random_seed=seed)
        return cb.SourceTask.from_ranks(ranks, y, n_classes=n_classes)
    return cb.SourceTask.from_scores(*scores(law, n_classes, repeats, seed), random_seed=seed)


def broken_task(law, n_classes, repeats, kind, n_broken, seed):
    """Task in which some classes are broken, and these classes."""
    matrix, y = scores(law, n_classes, repeats, seed)
    rng = np.random.default_rng([seed, 1])
    broken = rng.choice(n_classes, n_broken, replace=False)
    if kind == "random":
        rows = np.isin(y, broken)
        matrix[rows] = rng.standard_normal((rows.sum(), n_classes))
    elif kind == "swapped":
        matrix[:, broken] = matrix[:, broken.reshape(-1, 2)[:, ::-1].ravel()]
    elif kind == "doubled":
        others = (broken + 1) % n_classes
        matrix[:, broken] = matrix[:, others] - 1e-9
    else:
        near = rng.random(len(y)) < 0.5
        matrix[np.ix_(near, broken)] = matrix.max() + 1.0
    return cb.SourceTask.from_scores(matrix, y, random_seed=seed), set(broken.tolist())


def alarms(task):
    """Whether predictive checks raise an alarm, and a binomial test of each class.

    The binomial tests have a level of 5% over all classes (Bonferroni).
    """
    with quiet():
        model = cb.BayesianExtrapolator(evidence="ranks").fit(task, **DRAWS)
        checks = cb.posterior_checks(model)
    repeats = np.bincount(task.y)
    right = np.bincount(task.y, task.ranks == 1)
    p_values = binom.cdf(right, repeats, right.sum() / task.n_test)
    return not checks.passed, p_values.min() < 0.05 / repeats.size


def share(raised):
    """Alarms of so many tasks."""
    return f"{sum(raised)} of {len(raised)}"


def sound(law, seed):
    """Alarms of a sound task."""
    task = sound_task(law, N_CLASSES, REPEATS, 5000 + seed)
    return [(f"none, {len(SOUND)} laws", *alarms(task))]


def broken(name, law, seed):
    """Alarms of a task with broken classes."""
    task, _ = broken_task(law, N_CLASSES, REPEATS, *KINDS[name], 6000 + seed)
    return [(name, *alarms(task))]


def tables(options):
    """How many tasks raise an alarm: sound ones, and those of each fault over four laws."""
    seeds = range(options.repeats(10)), range(options.repeats(5))
    intact = [(law, seed) for law in SOUND for seed in seeds[0]]
    faulty = [(name, law, seed) for name in KINDS for law in BROKEN_LAWS for seed in seeds[1]]
    rows = all_rows(sound, intact, options.jobs) + all_rows(broken, faulty, options.jobs)
    columns = ["broken classes", "tasks with an alarm", "by a binomial test of each class"]
    trials = pd.DataFrame(rows, columns=columns)
    counts = trials.groupby("broken classes", sort=False).agg(share).reset_index()
    return {"calibration.md": {"broken classes": f"{markdown(counts)}\n\n{version()}"}}
