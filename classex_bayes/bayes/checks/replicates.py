"""A task and its replicates, for the checks of a fitted model."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr

from classex_bayes.bayes.extrapolator import BayesianExtrapolator, checked_model
from classex_bayes.bayes.idata import MIXTURE, task_part, task_sizes
from classex_bayes.bayes.predict.replicated_accuracy import replicated_class_accuracy
from classex_bayes.bayes.provenance import stage_rng
from classex_bayes.core.basis import loss_histogram
from classex_bayes.core.law import MixtureLaw
from classex_bayes.exceptions import DataError
from classex_bayes.results import SAMPLE_DIMS
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import source_task
from classex_bayes.typing import FloatArray, RandomSeed

Group = Literal["posterior", "prior"]
_CLASSES = 5  # stage of the seed, after those of the fitted model
_WORST_SHARE = 0.1
# Each draw costs as many random numbers as there are classes.
_MOST_CLASS_DRAWS = 1000


@dataclass(frozen=True)
class ClassAccuracies:
    """Accuracies at k1 of the single classes of a task, observed and replicated."""

    observed: FloatArray  # (n_tested,): share of right answers of each tested class
    replicated: FloatArray  # (n_draws, n_tested): the same of at most 1,000 replicates
    weight: FloatArray  # (n_tested,): sums to 1
    names: list[Any]  # or positions

    def discrepancies(self) -> dict[str, tuple[float, FloatArray]]:
        """Spread, lowest accuracy, errors of the worst tenth: observed, and in each replicate."""
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
        return {f"classes: {name}": (value[0], value[1:]) for name, value in values.items()}


def observed_and_replicated(
    model: BayesianExtrapolator,
    task: SourceTask | None = None,
    group: Group = "posterior",
    random_seed: RandomSeed = None,
) -> tuple[xr.Dataset, xr.Dataset]:
    """Histogram of ranks (bin) and accuracies (k) of a task, and replicates of them from a model.

    The replicates have the dimensions chain and draw in front; they are drawn if `idata` has none
    or a seed is given. The histogram is missing in the power form. `task` is as in
    `posterior_checks`.
    """
    tree = checked_model(model).idata
    if task is not None:
        source_task(task)
    position = task_position(model, task)
    name = f"{group}_predictive"
    if name not in tree or random_seed is not None:
        getattr(model, f"sample_{name}")(random_seed=random_seed)
    observed = task_part(tree["observed_data"].to_dataset(), position)
    replicated = task_part(tree[name].to_dataset(), position)
    if task is None or any(task is fitted for fitted in model.tasks):
        return observed, replicated
    observed = observed.copy()
    if "loss_histogram" in observed:
        weights = task.n_test * task.instance_weight
        counts = loss_histogram(task.evidence.losses, observed["bin"].values, weights)
        observed["loss_histogram"] = ("bin", counts)
    observed["accuracy"] = ("k", task.accuracy(observed["k"].values))
    return observed, replicated


def replicated_classes(
    model: BayesianExtrapolator,
    task: SourceTask | None = None,
    group: Group = "posterior",
    random_seed: RandomSeed = None,
) -> ClassAccuracies:
    """Accuracies of the single classes of a task, and replicates of them from a model.

    Arguments as of `observed_and_replicated`. The dependence between answers of a class is the
    task's. `DataError` if there are no ranks, or one instance in every class.
    """
    position = task_position(checked_model(model), task)
    if task is None:
        if not model.tasks:
            raise DataError("classes: the model comes from a file; give its task to see them")
        task = model.tasks[position]
    if task.kind == "accuracies":
        raise DataError("classes: the task was made from accuracies and knows none")
    tested = np.flatnonzero(task.class_weight)
    repeats = np.bincount(task.y, minlength=task.n_classes)[tested]
    if repeats.max() < 2:
        raise DataError("classes: one instance each says nothing of their spread")
    if group == "prior" and "prior" not in model.idata:
        model.sample_prior_predictive(random_seed=random_seed)
    mixture = model.idata[MIXTURE[group]].to_dataset()
    weights = mixture["weights"].transpose(*SAMPLE_DIMS, "knot").values
    law = MixtureLaw(model.prior_.basis, weights)
    expected = law.expected(np.array([task.n_classes])).ravel()
    step = max(int(np.ceil(expected.size / _MOST_CLASS_DRAWS)), 1)
    replicated = replicated_class_accuracy(
        expected[::step],
        repeats,
        task.dependence.within,
        stage_rng(model.idata.attrs, _CLASSES, random_seed),
    )
    right = np.bincount(task.y, weights=task.ranks == 1, minlength=task.n_classes)[tested]
    names = tested.tolist() if task.classes is None else [task.classes[j] for j in tested]
    return ClassAccuracies(right / repeats, replicated, task.class_weight[tested], names)


def task_position(model: BayesianExtrapolator, task: SourceTask | None) -> int:
    """Position among the fitted tasks of the one that a task is, or stands in for."""
    sizes = task_sizes(model.idata)
    for position, fitted in enumerate(model.tasks):
        if task is fitted:
            return position
    if len(sizes) > 1:
        raise DataError(f"task: the model was fitted to {len(sizes)} tasks; give one of them")
    if task is not None and task.n_classes != sizes[0][0]:
        raise DataError(f"task: it has {task.n_classes} classes, unlike the fitted one")
    return 0
