"""What decisions, cut lists and tied scores cost, compared with all ranks: docs/data.md.

Each trial is a pilot of 100 classes with 2 instances each, and asks for 1,000 classes. Posteriors
are draws of the default prior, weighted by the likelihood, which takes a hundredth of the time of
sampling each.
"""

from functools import cache

import numpy as np
import pandas as pd

import classex_bayes as cb
from classex_bayes.bayes.model.likelihoods import BernsteinData, prior_draws
from classex_bayes.simulate import GaussianNearestNeighbor, VonMisesFisher
from studies.coverage.trials import all_rows, summary
from studies.laws import HierarchicalNormal
from studies.pages import markdown, version
from studies.shared import CI_PROB, quiet

PRIOR = cb.MixturePrior()
N_DRAWS, SEED = 40_000, 16
K1, REPEATS, ASKED, LENGTH = 100, 2, 1000, 5
LAWS = {
    "Gaussian, noise 0.1": GaussianNearestNeighbor(10, 0.1),
    "Gaussian, noise 0.2": GaussianNearestNeighbor(10, 0.2),
    "Gaussian, noise 0.4": GaussianNearestNeighbor(10, 0.4),
    "hierarchical": HierarchicalNormal(10, class_variance=0.3, noise_variance=0.1),
    "von Mises-Fisher": VonMisesFisher(10, 30.0),
}
# Scores between the best and the median competitor take so many values.
LEVELS = {"fine": 8, "coarse": 3}


def scores_of(sample):
    """Minus the squared distances from a sample of a law: shape (n, k1)."""
    squares = ((sample.probes[:, None] - sample.gallery[None]) ** 2).sum(axis=-1)
    return -squares


def rounded(scores, levels):
    """Scores of which the better half of the classes shares few values."""
    step = np.median(scores.max(axis=1) - np.median(scores, axis=1)) / levels
    return np.round(scores / step)


def tasks_of(scores, y):
    """The same test, known in several ways."""
    full = cb.SourceTask.from_scores(scores, y)
    decisions = np.eye(K1)[scores.argmax(axis=1)]
    tasks = {"all ranks": full, "decisions": cb.SourceTask.from_scores(decisions, y)}
    tasks["decisions, ties='random'"] = cb.SourceTask.from_scores(decisions, y, ties="random")
    ranks = np.minimum(full.ranks, LENGTH + 1)
    tasks[f"lists of {LENGTH}"] = cb.SourceTask.from_ranks(
        ranks, y, n_classes=K1, truncated_at=LENGTH
    )
    for name, levels in LEVELS.items():
        for ties in ("random", "unknown"):
            tasks[f"{name} scores, ties='{ties}'"] = cb.SourceTask.from_scores(
                rounded(scores, levels), y, ties=ties
            )
    return tasks


def posterior_of(task, weights, accuracy):
    """Mean and 90% interval of the accuracy among those asked for."""
    density = BernsteinData.of(task, PRIOR.basis).log_likelihood(weights)
    share = np.exp(density - density.max())
    share /= share.sum()
    order = np.argsort(accuracy)
    reached = np.cumsum(share[order])
    ends = np.searchsorted(reached, [(1 - CI_PROB) / 2, (1 + CI_PROB) / 2])
    return float(share @ accuracy), *accuracy[order][ends]


@cache
def prior_sample():
    """Draws of the prior: weights of the mixture (n, m), and the accuracies asked for (n,)."""
    some = cb.SourceTask.from_ranks(np.arange(1, K1 + 1), range(K1), n_classes=K1)
    drawn = prior_draws(
        PRIOR, BernsteinData.of(some, PRIOR.basis), N_DRAWS, np.random.default_rng(SEED)
    )
    weights = drawn["weights"].values[0]
    return weights, weights @ PRIOR.basis.accuracy(np.array([ASKED]))[0]


def law_rows(law_name, n_tasks):
    """A row for each task of a law and way of knowing it."""
    weights, accuracy = prior_sample()
    truth = LAWS[law_name].accuracy(ASKED).item()
    rows = []
    for seed in np.random.SeedSequence(SEED).spawn(n_tasks):
        sample = LAWS[law_name].sample(K1, repeats=REPEATS, random_seed=seed)
        with quiet():
            for known, task in tasks_of(scores_of(sample), sample.y).items():
                rows.append((known, law_name, truth, *posterior_of(task, weights, accuracy)))
    return rows


def tables(options):
    """Coverage and error by what is known, over all laws."""
    cases = [(law_name, options.repeats(20)) for law_name in LAWS]
    columns = ["known", "law", "truth", "mean", "lower", "upper"]
    trials = options.kept(
        "ties", lambda: pd.DataFrame(all_rows(law_rows, cases, options.jobs), columns=columns)
    )
    cells = summary(trials, ["known"]).set_index("known")
    by_law = summary(trials, ["known", "law"]).groupby("known")["held"].min()
    table = pd.DataFrame({"coverage": cells["held"], "lowest": by_law, "mean error": cells["bias"]})
    formats = {"coverage": ".2f", "lowest": ".2f", "mean error": "+.3f"}
    text = markdown(table.loc[cells.index].rename_axis("what is known").reset_index(), formats)
    return {"data.md": {"incomplete ranks": f"{text}\n\n{version()}"}}
