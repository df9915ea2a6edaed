"""A task and its replicates, for the checks of a fitted model."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr

from classex_bayes.bayes.checks.class_ranks import (
    RHO,
    RandomClasses,
    bins_by_class,
    latent_limits,
    replicated_bins,
    rho_prior,
)
from classex_bayes.bayes.extrapolator import checked_model_with_prior
from classex_bayes.bayes.idata import task_part, task_sizes, weights_of
from classex_bayes.bayes.law_model import LawModel, checked_model
from classex_bayes.core.basis import n_better_bins
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import source_task
from classex_bayes.typing import FloatArray, IntArray, RandomSeed

Group = Literal["posterior", "prior"]
_CLASSES = 5  # stage of the seed, after those of the fitted model
_WORST_SHARE = 0.1
_MOST_CLASSES = 20_000
# A replicate needs one random number for each instance.
_MOST_DRAWS, _FEWEST_DRAWS, _MOST_NUMBERS = 500, 200, 5_000_000
_SMALLEST_SHARE = 1e-12


@dataclass(frozen=True)
class ReplicatedClasses:
    """Statistics of the classes of a task and of at most 500 replicates."""

    observed: FloatArray  # (n_tested,): accuracy at k1 of each tested class
    replicated: FloatArray  # (n_draws, n_tested): the same of the replicates
    weight: FloatArray  # (n_tested,): weights of the classes; they sum to 1
    names: list[Any]  # names of the classes, or their positions
    # (), (n_draws,): log-likelihood ratio of the best share of random classes to no random class
    evidence: tuple[float, FloatArray]
    at_random: FloatArray  # (n_tested,): probability that the class answers at random

    def discrepancies(self) -> dict[str, tuple[float, FloatArray]]:
        """Evidence of random answers, spread, lowest accuracy, errors of the worst tenth."""
        both = np.vstack([self.observed, self.replicated])
        mean = both @ self.weight
        spread = np.sqrt((both - mean[:, None]) ** 2 @ self.weight)
        wrong = self.weight * (1 - both)
        worst = max(round(_WORST_SHARE * both.shape[1]), 1)
        heaviest = -np.partition(-wrong, worst - 1, axis=1)[:, :worst].sum(axis=1)
        carried = heaviest / np.maximum(wrong.sum(axis=1), np.finfo(float).tiny)
        values = {
            "sd of accuracy": spread,
            "lowest accuracy": both.min(axis=1),
            f"errors in the worst {100 * _WORST_SHARE:g}%": carried,
        }
        discrepancies = {"answered at random": self.evidence}
        discrepancies |= {name: (value[0], value[1:]) for name, value in values.items()}
        return {f"classes: {name}": value for name, value in discrepancies.items()}


def observed_and_replicated(
    model: LawModel,
    task: SourceTask | None = None,
    group: Group = "posterior",
    random_seed: RandomSeed = None,
) -> tuple[xr.Dataset, xr.Dataset]:
    """Histogram of ranks (bin) and accuracies (k) of a task, and their replicates from a model.

    The replicates have the further dimensions chain and draw. They are drawn if `idata` has none
    or a seed is given. The power form has no histogram. `task` is as in `posterior_checks`.
    """
    tree = checked_model(model).idata
    if task is not None:
        source_task(task)
    position = task_position(model, task)
    name = f"{group}_predictive"
    if name not in tree or random_seed is not None:
        _sample(model, group, random_seed)
    observed = task_part(tree["observed_data"].to_dataset(), position)
    replicated = task_part(tree[name].to_dataset(), position)
    if task is None or any(task is fitted for fitted in model.tasks):
        return observed, replicated
    observed = observed.copy()
    if "rank_histogram" in observed:
        ranks = task.require("ranks")
        counts = ranks.histogram(observed["bin"].values - 1)
        observed["rank_histogram"] = ("bin", counts)
    if observed["k"].size:
        observed["accuracy"] = ("k", task.accuracy(observed["k"].values))
    return observed, replicated


def replicated_classes(
    model: LawModel,
    task: SourceTask | None = None,
    group: Group = "posterior",
    random_seed: RandomSeed = None,
) -> ReplicatedClasses:
    """Statistics of the classes of a task, and their replicates from a model.

    Arguments are as in `observed_and_replicated`. A replicate takes the law of one draw, and a
    correlation of ranks from the posterior of `RandomClasses` (from its prior for group="prior").
    Of more than 20,000 classes, 20,000 evenly spaced ones are compared. It raises `DataError` if
    the task has no ranks, or one instance in every class.
    """
    position = task_position(checked_model(model), task)
    if task is None:
        if not model.tasks:
            raise DataError("classes: a loaded model has no task; pass its task to check them")
        task = model.tasks[position]
    ranks = task.require("exact ranks", "classes")
    n_better = ranks.n_better
    tested = np.flatnonzero(ranks.class_weight)
    tested = tested[np.linspace(0, tested.size - 1, min(tested.size, _MOST_CLASSES)).astype(int)]
    seen = np.isin(task.y, tested)
    y = np.searchsorted(tested, task.y[seen])
    repeats = np.bincount(y)
    if repeats.max() < 2:
        raise DataError(
            "classes: with one instance per class, broken classes look like hard instances"
        )
    if group == "prior" and "prior" not in model.idata:
        _sample(model, group, random_seed)
    bin_ends = n_better_bins(task.n_classes)
    share = _shares(model, group, bin_ends, task.n_classes)
    uniform = np.diff(bin_ends, prepend=-1) / task.n_classes
    bins = np.searchsorted(bin_ends, n_better[seen])
    counts = bins_by_class(bins, y, uniform.size)
    class_weight = ranks.class_weight[tested] / ranks.class_weight[tested].sum()

    rng = model.fit_.record.rng(_CLASSES, random_seed)
    mixture = RandomClasses(share.mean(axis=0), uniform, tested.size)
    relative = class_weight * tested.size
    rho = rho_prior() if group == "prior" else mixture.rho_posterior(counts, relative)
    tables = mixture.tables(float(RHO @ rho))
    between = max(ranks.variance.dependence.between, 0.0) / (task.n_classes - 1)
    n_draws = int(np.clip(_MOST_NUMBERS // y.size, _FEWEST_DRAWS, _MOST_DRAWS))
    draws = rng.choice(len(share), n_draws, replace=n_draws > len(share))
    replicated, evidence = np.empty((n_draws, tested.size)), np.empty(n_draws)
    for row, limit in enumerate(latent_limits(share[draws])):
        drawn = replicated_bins(limit, rng.choice(RHO, p=rho), between, y, rng)
        of_row = bins_by_class(drawn, y, uniform.size)
        replicated[row] = of_row[:, 0] / repeats
        evidence[row] = mixture.evidence(of_row, relative, tables)
    return ReplicatedClasses(
        counts[:, 0] / repeats,
        replicated,
        class_weight,
        tested.tolist() if task.classes is None else [task.classes[j] for j in tested],
        (mixture.evidence(counts, relative, tables), evidence),
        mixture.probability(counts, relative, tables),
    )


def _sample(model: LawModel, group: Group, random_seed: RandomSeed) -> None:
    """Add replicates to `idata`, and for group="prior" also the draws of their laws."""
    if group == "posterior":
        model.sample_posterior_predictive(random_seed=random_seed)
    else:
        with_prior = checked_model_with_prior(model, "group='prior'")
        with_prior.sample_prior_predictive(random_seed=random_seed)


def _shares(model: LawModel, group: Group, bin_ends: IntArray, n_classes: int) -> FloatArray:
    """Probabilities (n_draws, n_bins) of bins of losses for every draw."""
    weights = weights_of(model.idata, group).values
    matrix = model.law_.basis.bin_probabilities(bin_ends, n_classes)
    share = np.maximum(weights.reshape(-1, len(matrix.T)) @ matrix.T, _SMALLEST_SHARE)
    return share / share.sum(axis=1, keepdims=True)


def task_position(model: LawModel, task: SourceTask | None) -> int:
    """Position of `task`, or of the task that it replaces, among the fitted tasks."""
    sizes = task_sizes(model.idata)
    for position, fitted in enumerate(model.tasks):
        if task is fitted:
            return position
    if len(sizes) > 1:
        raise DataError(f"task: the model was fitted to {len(sizes)} tasks; pass one of them")
    if task is not None and task.n_classes != sizes[0][0]:
        raise DataError(
            f"task: found {task.n_classes} classes, expected {sizes[0][0]} as in the fitted task"
        )
    return 0
