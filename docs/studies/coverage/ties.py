"""Coverage of intervals from decisions, cut lists and tied scores, against all ranks.

    python docs/figures/measure_intervals.py trials.csv

Each trial is a pilot of 100 classes with 2 instances each, and asks for 1,000 classes. The table
that it prints is that of docs/ties.md. Posteriors are draws of the default prior, weighted by the
likelihood, which takes a hundredth of the time of sampling each.
"""

import argparse
import warnings
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

import classex_bayes as cb
from classex_bayes.bayes.model.graph import prior_draws
from classex_bayes.bayes.model.likelihoods import BernsteinData
from classex_bayes.simulate import GaussianNearestNeighbor, HierarchicalNormal, VonMisesFisher

PRIOR = cb.MixturePrior()
N_DRAWS = 40_000
K1, REPEATS, ASKED, CI_PROB = 100, 2, 1000, 0.9
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
    for length in (5, 10):
        ranks = np.minimum(full.ranks, length + 1)
        tasks[f"lists of {length}"] = cb.SourceTask.from_ranks(
            ranks, y, n_classes=K1, truncated_at=length
        )
    for name, levels in LEVELS.items():
        for ties in ("random", "unknown"):
            tasks[f"{name} scores, ties='{ties}'"] = cb.SourceTask.from_scores(
                rounded(scores, levels), y, ties=ties
            )
    return tasks


def posterior_of(task, weights, accuracy):
    """Mean, 90% interval and effective number of draws of the accuracy among those asked for."""
    density = BernsteinData.of(task, PRIOR.basis).log_likelihood(weights)
    share = np.exp(density - density.max())
    share /= share.sum()
    order = np.argsort(accuracy)
    reached = np.cumsum(share[order])
    ends = np.searchsorted(reached, [(1 - CI_PROB) / 2, (1 + CI_PROB) / 2])
    return float(share @ accuracy), *accuracy[order][ends], 1 / (share**2).sum()


def trials(n_tasks, seed):
    """One row for each law, task and way of knowing it."""
    some = cb.SourceTask.from_ranks(np.arange(1, K1 + 1), range(K1), n_classes=K1)
    drawn = prior_draws(
        PRIOR, BernsteinData.of(some, PRIOR.basis), N_DRAWS, np.random.default_rng(seed)
    )
    weights = drawn["weights"].values[0]
    accuracy = weights @ PRIOR.basis.accuracy(np.array([ASKED]))[0]
    for law_name, law in LAWS.items():
        truth = float(law.accuracy(ASKED)[0])
        for number, child in enumerate(np.random.SeedSequence(seed).spawn(n_tasks)):
            sample = law.sample(K1, repeats=REPEATS, random_seed=child)
            for known, task in tasks_of(scores_of(sample), sample.y).items():
                touched = task.n_touched / task.n_test
                yield (
                    law_name,
                    number,
                    known,
                    touched,
                    truth,
                    *posterior_of(task, weights, accuracy),
                )


COLUMNS = ["law", "task", "known", "touched", "truth", "mean", "lower", "upper", "ess"]


def table(data):
    """Coverage, width and error by what is known, over all laws."""
    held = (data.lower <= data.truth) & (data.truth <= data.upper)
    error = data["mean"] - data.truth
    data = data.assign(held=held, width=data.upper - data.lower, error=error, square=error**2)
    grouped = data.groupby("known", sort=False)
    result = grouped[["touched", "held", "width", "error"]].mean()
    result["RMSE"] = np.sqrt(grouped["square"].mean())
    by_law = data.groupby(["known", "law"])["held"].mean().groupby("known").min()
    # So few draws carry the weight in the worst twentieth of the posteriors.
    return result.assign(lowest=by_law, ess=grouped["ess"].quantile(0.05), n=grouped.size())


def as_markdown(result):
    """The table of the page."""
    lines = [
        "| what is known | instances with ties | 90% intervals that held | worst law | mean width "
        "| mean error | RMSE | effective draws |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, row in result.iterrows():
        se = np.sqrt(row.held * (1 - row.held) / row.n)
        touched = f"{100 * row.touched:.0f}%"
        lines.append(
            f"| {name} | {touched} | {row.held:.2f} (se {se:.2f}) | {row.lowest:.2f} | "
            f"{row.width:.2f} | {row.error:+.3f} | {row.RMSE:.3f} | {row.ess:.0f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="CSV of the trials; read if it is there")
    parser.add_argument("--tasks", type=int, default=20, help="of each law")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if not options.file.exists():
        pd.DataFrame(trials(options.tasks, seed=16), columns=COLUMNS).to_csv(
            options.file, index=False
        )
    trial_table = pd.read_csv(options.file)
    print(f"Version {cb.__version__}, {date.today()}, {len(trial_table)} posteriors.\n")
    print(as_markdown(table(trial_table)))
