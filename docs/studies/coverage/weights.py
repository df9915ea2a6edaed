"""How often intervals hold the truth if classes weigh differently: docs/calibration.md."""

import numpy as np
import pandas as pd

import classex_bayes as cb
from classex_bayes.simulate import GaussianNearestNeighbor
from studies.coverage.trials import all_rows
from studies.laws import HierarchicalNormal
from studies.pages import paragraph, version
from studies.shared import quiet

EASY, HARD = GaussianNearestNeighbor(10, 0.2), GaussianNearestNeighbor(10, 0.4)
HIERARCHY = HierarchicalNormal(noise_variance=0.25)
DESIGNS = (
    ("Gaussian, noise 0.4", HARD, 50, 1, "scores"),
    ("Gaussian, noise 0.2", EASY, 50, 5, "scores"),
    ("Gaussian, noise 0.2", EASY, 100, 1, "scores"),
    ("hierarchy", HIERARCHY, 50, 5, "ranks"),
)
ONE_HEAVY, POWERS, TIED = (0.5, 0.95), (1, 1.5, 2), {"easy": 0.8, "hard": -0.8}
WEIGHTS = (
    "equal",
    *(f"one class {share:.0%}" for share in ONE_HEAVY),
    *(f"1 / rank^{power:g}" for power in POWERS),
)
SHOWN = "equal", "one class 50%", "1 / rank^1.5"  # on the page
N_TASKS, FACTORS = 60, (1, 5, 20)
DRAWS = {"sampler": {"draws": 300, "tune": 300, "chains": 2}, "progressbar": False}


def class_weights(kind, law, gallery, rng):
    """Weights of the classes of a task, independent of their difficulty or tied to it."""
    n_classes, dim = gallery.shape
    if kind.startswith("heavy classes"):
        # Classes far from the centre have few neighbours.
        radius = ((gallery**2).sum(axis=1) / (1 + law.noise_variance) - dim) / np.sqrt(2 * dim)
        tie = TIED[kind.split()[-1]]
        own = np.sqrt(1 - tie**2) * rng.standard_normal(n_classes)
        weight = np.exp(0.9 * (tie * radius + own))
        return weight / weight.sum()
    place = WEIGHTS.index(kind) - 1
    if place < 0:
        weight = np.ones(n_classes)
    elif place < len(ONE_HEAVY):
        weight = np.full(n_classes, (1 - ONE_HEAVY[place]) / (n_classes - 1))
        weight[0] = ONE_HEAVY[place]
    else:
        weight = np.arange(1, n_classes + 1.0) ** -POWERS[place - len(ONE_HEAVY)]
    return rng.permutation(weight / weight.sum())


def true_accuracy(kind, law, k):
    """Accuracy at k; where weights tell of difficulty, of true classes drawn by their weights."""
    if kind in WEIGHTS:
        return law.accuracy(k)
    found = []
    for seed in range(3):
        probes, gallery, y = law.sample(12_000, random_seed=900 + seed)
        weight = class_weights(kind, law, gallery, np.random.default_rng(seed))
        task = cb.SourceTask.from_embeddings(probes, gallery, y, class_weight=weight)
        found.append(task.accuracy(k))
    return np.mean(found, axis=0)


def held(kind, law, n_classes, repeats, made_from, n_tasks=N_TASKS):
    """Share of 90% intervals that hold the accuracy, and their mean width: arrays over k."""
    k = np.array(FACTORS) * n_classes
    true, inside, width = true_accuracy(kind, law, k), [], []
    for seed in range(n_tasks):
        probes, gallery, y = law.sample(n_classes, repeats=repeats, random_seed=seed)
        weight = class_weights(kind, law, gallery, np.random.default_rng(seed))
        task = cb.SourceTask.from_embeddings(probes, gallery, y, class_weight=weight)
        if made_from == "ranks":
            task = cb.SourceTask.from_ranks(task.ranks, y, n_classes=n_classes, class_weight=weight)
        model = cb.BayesianExtrapolator(evidence="ranks").fit(task, random_seed=seed, **DRAWS)
        draws = model.predict(k).accuracy.values.reshape(-1, k.size)
        lower, upper = np.quantile(draws, [0.05, 0.95], axis=0)
        inside.append((lower <= true) & (true <= upper))
        width.append(upper - lower)
    return np.mean(inside, axis=0), np.mean(width, axis=0)


def row(name, law, n_classes, repeats, made_from, kind, n_tasks):
    """Weights, design and the coverage at each number of classes."""
    with quiet():
        shares, _ = held(kind, law, n_classes, repeats, made_from, n_tasks)
    return [(kind, f"{name}, {n_classes} classes with {repeats} instances", *shares)]


def tables(options):
    """The range of the coverage over weights and designs, and the lowest."""
    kinds = SHOWN[: 1 if options.small else None]
    cases = [(*design, kind) for design in DESIGNS for kind in kinds]
    cases += [(*DESIGNS[0], f"heavy classes {tie}") for tie in TIED]
    cases = [(*case, options.repeats(N_TASKS)) for case in cases]
    rows = pd.DataFrame(all_rows(row, cases, options.jobs), columns=["weights", "design", *FACTORS])
    return {"calibration.md": {"class weights": coverage_in_words(rows)}}


def coverage_in_words(rows):
    """The range of the coverage at k1 and beyond, and where it is lowest."""
    rows = rows.set_index(["weights", "design"])
    at_k1, beyond = rows[FACTORS[0]], rows[[*FACTORS[1:]]].stack()
    kind, design, factor = beyond.idxmin()
    return paragraph(
        f"The coverage is {at_k1.min():.2f} to {at_k1.max():.2f} at k1, and {beyond.min():.2f} to "
        f"{beyond.max():.2f} at {FACTORS[1]} k1 and {FACTORS[2]} k1. It is lowest at {factor} k1 "
        f'with the weights "{kind}" ({design}). {version()}'
    )
