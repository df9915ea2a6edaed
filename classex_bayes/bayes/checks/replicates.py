"""A task and its replicates: what is set beside each other to check a fitted model."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr

from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.idata import task_part, task_sizes
from classex_bayes.bayes.predict.replicated_accuracy import replicated_class_accuracy
from classex_bayes.bayes.provenance import stage_rng
from classex_bayes.core.basis import loss_histogram
from classex_bayes.exceptions import DataError
from classex_bayes.results import SAMPLE_DIMS
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import source_task
from classex_bayes.typing import FloatArray, RandomSeed

Group = Literal["posterior", "prior"]
_CLASSES = 5  # a stage of the seed, after those of the fitted model
_WORST_SHARE = 0.1
# Each costs as many random numbers as there are classes.
_MOST_CLASS_DRAWS = 1000


@dataclass(frozen=True)
class ClassAccuracies:
    """Accuracies at k1 of the single classes of a task, seen and replicated.

    Attributes
    ----------
    observed : array of shape (n_tested,)
        Share of right answers of each tested class.
    replicated : array of shape (n_draws, n_tested)
        The same of replicates, for at most 1,000 draws.
    weight : array of shape (n_tested,)
        Weights of the classes, summing to 1.
    names : list
        Names or positions of the classes.
    """

    observed: FloatArray
    replicated: FloatArray
    weight: FloatArray
    names: list[Any]

    def discrepancies(self) -> dict[str, tuple[float, FloatArray]]:
        """Spread, lowest accuracy and errors of the worst tenth: seen, and in each replicate."""
        both = np.vstack([self.observed, self.replicated])
        mean = both @ self.weight
        spread = np.sqrt((both - mean[:, None]) ** 2 @ self.weight)
        wrong = self.weight * (1 - both)
        worst = max(round(_WORST_SHARE * both.shape[1]), 1)
        heaviest = -np.partition(-wrong, worst - 1, axis=1)[:, :worst].sum(axis=1)
        carried = heaviest / np.maximum(wrong.sum(axis=1), np.finfo(float).tiny)
        found = {
            "sd of accuracy": spread,
            "lowest accuracy": both.min(axis=1),
            f"errors in the worst {100 * _WORST_SHARE:g}%": carried,
        }
        return {f"classes: {name}": (values[0], values[1:]) for name, values in found.items()}


def seen_and_replicated(
    model: BayesianExtrapolator,
    task: SourceTask | None = None,
    group: Group = "posterior",
    random_seed: RandomSeed = None,
) -> tuple[xr.Dataset, xr.Dataset]:
    """Histogram of ranks and accuracies of a task, and replicates of them from a model.

    Parameters
    ----------
    model : BayesianExtrapolator
        A fitted model.
    task : SourceTask, optional
        As in `posterior_checks`.
    group : {"posterior", "prior"}
        Whose replicates; drawn where `idata` has none or a seed is given.
    random_seed : int, SeedSequence or None
        Seed of the replicates.

    Returns
    -------
    observed : Dataset
        loss_histogram (bin) where ranks are known to the model, accuracy (k).
    replicated : Dataset
        The same with dimensions chain and draw before these.
    """
    _model(model)
    tree = model.idata
    if task is not None:
        source_task(task)
    part = fitted_part(model, task)
    name = f"{group}_predictive"
    if name not in tree or random_seed is not None:
        getattr(model, f"sample_{name}")(random_seed=random_seed)
    observed = task_part(tree["observed_data"].to_dataset(), part)
    replicated = task_part(tree[name].to_dataset(), part)
    if task is None or any(task is one for one in model.tasks):
        return observed, replicated
    observed = observed.copy()
    if "loss_histogram" in observed:
        weights = task.n_test * task.instance_weight
        counts = loss_histogram(task.evidence.losses, observed["bin"].values, weights)
        observed["loss_histogram"] = ("bin", counts)
    observed["accuracy"] = ("k", task.accuracy(observed["k"].values))
    return observed, replicated


def class_accuracies(
    model: BayesianExtrapolator,
    task: SourceTask | None = None,
    group: Group = "posterior",
    random_seed: RandomSeed = None,
) -> ClassAccuracies:
    """Accuracies of the single classes of a task, and replicates of them from a model.

    Parameters
    ----------
    model : BayesianExtrapolator
        A fitted model.
    task, group, random_seed
        As in `seen_and_replicated`. The dependence between answers of a class is the task's.

    Returns
    -------
    ClassAccuracies

    Raises
    ------
    DataError
        No ranks, or one instance in every class, which says nothing of their spread.
    """
    _model(model)
    part = fitted_part(model, task)
    if task is None:
        if not model.tasks:
            raise DataError("classes: the model comes from a file; give its task to see them")
        task = model.tasks[part]
    if task.kind == "accuracies":
        raise DataError("classes: the task was made from accuracies and knows none")
    tested = np.flatnonzero(task.class_weight)
    repeats = np.bincount(task.y, minlength=task.n_classes)[tested]
    if repeats.max() < 2:
        raise DataError("classes: one instance each says nothing of their spread")
    if group == "prior" and "prior" not in model.idata:
        model.sample_prior_predictive(random_seed=random_seed)
    weights = model.idata[group].to_dataset()["weights"].transpose(*SAMPLE_DIMS, "knot").values
    expected = (weights @ model.prior_.basis.accuracy(np.array([task.n_classes])).T).ravel()
    every = max(int(np.ceil(expected.size / _MOST_CLASS_DRAWS)), 1)
    replicated = replicated_class_accuracy(
        expected[::every],
        repeats,
        task.dependence.within,
        stage_rng(model.idata.attrs, _CLASSES, random_seed),
    )
    right = np.bincount(task.y, weights=task.ranks == 1, minlength=task.n_classes)[tested]
    names = tested.tolist() if task.classes is None else [task.classes[j] for j in tested]
    return ClassAccuracies(right / repeats, replicated, task.class_weight[tested], names)


def _model(model: Any) -> None:
    if not isinstance(model, BayesianExtrapolator):
        raise DataError(f"model: expected a BayesianExtrapolator, found {type(model).__name__}")


def fitted_part(model: BayesianExtrapolator, task: SourceTask | None) -> int:
    """Position of the task that is meant among the fitted ones."""
    sizes = task_sizes(model.idata)
    for position, one in enumerate(model.tasks):
        if task is one:
            return position
    if len(sizes) > 1:
        raise DataError(f"task: the model was fitted to {len(sizes)} tasks; give one of them")
    if task is not None and task.n_classes != sizes[0][0]:
        raise DataError(f"task: it has {task.n_classes} classes, unlike the fitted one")
    return 0
