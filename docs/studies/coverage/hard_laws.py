"""Fits to ten laws that the default prior does not contain: docs/calibration.md."""

import numpy as np
import pandas as pd

import classex_bayes as cb
from studies.coverage.trials import all_rows
from studies.laws import FavorabilityLaw, HierarchicalNormal, zoo
from studies.pages import markdown, version
from studies.shared import CI_PROB, quiet


def uniform(*intervals):
    """Z uniform on intervals, their ends smoothed by sd 0.03."""
    means = np.concatenate([np.arange(lower, upper, 0.05) for lower, upper in intervals])
    return FavorabilityLaw(tuple(means), (0.03,) * means.size)


LAWS = {
    "three narrow groups, sd 0.2": FavorabilityLaw(
        (0.5, 2.5, 4.5), (0.2, 0.2, 0.2), (0.1, 0.6, 0.3)
    ),
    "three narrow groups, sd 0.15": FavorabilityLaw(
        (1.0, 2.2, 3.6), (0.15, 0.15, 0.15), (0.2, 0.3, 0.5)
    ),
    "three narrow groups, sd 0.3": FavorabilityLaw(
        (0.0, 2.0, 4.0), (0.3, 0.3, 0.3), (0.25, 0.4, 0.35)
    ),
    "two narrow groups and a broad one": FavorabilityLaw(
        (1.5, 3.0, 3.5), (0.1, 0.15, 1.0), (0.3, 0.3, 0.4)
    ),
    "Z uniform on 0 to 4": uniform((0, 4)),
    "Z uniform on 1 to 3": uniform((1, 3)),
    "Z uniform on 0.5 to 1.5 and 3 to 4": uniform((0.5, 1.5), (3, 4)),
    "near-duplicates": zoo()["near-duplicates"],
    "100 clusters": HierarchicalNormal(100, class_variance=0.05, noise_variance=0.05),
    "300 clusters": HierarchicalNormal(300, class_variance=0.02, noise_variance=0.02),
}
ROUGHER = "`MixturePrior(deviation=3, length=0.4, n_functions=40)`, one task of each law"
PRIORS = {
    "default": cb.MixturePrior(),
    ROUGHER: cb.MixturePrior(deviation=3, length=0.4, n_functions=40),
}
SEEDS = {"default": (1, 2), ROUGHER: (1,)}
K1, ASKED = 1000, [1000, 10_000]
COVERAGE = ["coverage at k1", "coverage at 10 k1"]


def task_of(law, seed):
    """One instance for each of k1 classes."""
    if isinstance(law, HierarchicalNormal):
        return cb.SourceTask.from_embeddings(*law.sample(K1, random_seed=seed))
    ranks, y, n_classes = law.sample(K1, random_seed=seed)
    return cb.SourceTask.from_ranks(ranks, y, n_classes=n_classes)


def fitted(prior, law, seed):
    """Whether a fit converged, and whether its intervals contain the true accuracy."""
    with quiet():
        model = cb.BayesianExtrapolator(PRIORS[prior])
        model.fit(task_of(LAWS[law], seed), random_seed=seed, progressbar=False)
        lower, upper = model.predict(ASKED).interval(CI_PROB, "eti").to_numpy().T
    truth = LAWS[law].accuracy(ASKED)
    held = (lower <= truth) & (truth <= upper)
    return [(prior, not model.diagnosis_.problems, *held)]


def tables(options):
    """A row for each prior."""
    cases = [
        (prior, law, seed)
        for prior in PRIORS
        for law in list(LAWS)[: 1 if options.small else None]
        for seed in SEEDS[prior]
    ]
    rows = all_rows(fitted, cases, options.jobs)
    columns = ["prior", "converged", *COVERAGE]
    groups = pd.DataFrame(rows, columns=columns).groupby("prior", sort=False)
    table = groups.sum().astype(str) + " of " + groups.count().astype(str)
    text = f"{markdown(table.reset_index())}\n\n{version()}"
    return {"calibration.md": {"hard laws": text}}
