r"""The data of one or several pilots: groups of `idata`, and the record of their fit.

The log-likelihoods of independent pilots are added. If pilots have classes in common, the sum
would count these classes twice. So the log-likelihoods are multiplied by weights lambda. Let
e_t = n_t / deff_t be the number of independent instances with the information of pilot t, and R
the correlation of the pilots' errors. Then

.. math::

    \lambda = \arg\min_{\lambda \ge 0} \lambda' C \lambda - 2 \lambda' e,
    \quad C_{st} = R_{st} \sqrt{e_s e_t},
    \quad R_{st} = \frac{m_{st}}{\sqrt{k_s k_t}} \sqrt{b_s b_t}.

Here m_st is the number of common classes. b_t is the share of a pilot's variance that new
instances of its classes would have in common with it (`AnswerDependence.carried_over`). It is 1 if
the pilots also share their instances. This is the best linear combination of estimates with those
correlations. The weights are 1 if pilots share nothing. A task that is a part of another one, with
the same instances, gets the weight 0. The pool has at least as much information as its most
informative task.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import nnls

from classex_bayes.arguments import one_of
from classex_bayes.bayes.fit_record import FitRecord
from classex_bayes.bayes.idata import described
from classex_bayes.bayes.model.likelihoods import (
    BernsteinData,
    LikelihoodData,
    PowerData,
    likelihood_data,
)
from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.dependence import AnswerDependence
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

SHARED = ("nothing", "classes", "instances")
_N_OBSERVED_K = 25
# Below 1, so that equal tasks get equal weights: at 1 any weights with the sum 1 are optimal.
_LARGEST_CORRELATION = 0.999


def pooled_groups(
    tasks: Sequence[SourceTask], basis: RadialBasis, likelihood: str, shared: str = "nothing"
) -> tuple[LikelihoodData, xr.DataTree, FitRecord]:
    """Data of one or several tasks for the likelihood, their groups, and the record of their fit.

    The group observed_data holds the accuracies on a grid of k. It also holds the histogram of
    ranks, whose coordinate is the largest rank of each bin, or the whitened accuracies.
    constant_data holds the sizes of the tasks and the matrix whose product with the weights is the
    expectation of the histogram or of the whitened accuracies. The rows of several tasks follow
    each other along bin (or direction) and k. The coordinates bin_task and k_task hold the number
    of the task of each row.
    """
    one_of(shared, SHARED, "shared")
    if shared == "nothing" and len({id(task) for task in tasks}) < len(tasks):
        raise DataError(
            "task: the same task is in the list twice and would be counted twice; remove one copy"
        )
    curves = any(task.table.kind == "accuracies" for task in tasks)
    if curves and isinstance(likelihood, str) and likelihood == "auto":
        likelihood = PowerData.kind  # of all tasks
    weight = np.ones(1) if len(tasks) == 1 else pool_weights(tasks, shared)
    parts: list[Any] = [
        likelihood_data(task, basis, likelihood, share)
        for task, share in zip(tasks, weight.tolist(), strict=True)
    ]
    data = type(parts[0]).joined(parts)
    record = (
        FitRecord.of_task(tasks[0]) if len(tasks) == 1 else pooled_record(tasks, weight, shared)
    )
    return data, _groups(tasks, parts, data, basis, weight), record


def _groups(
    tasks: Sequence[SourceTask],
    parts: Sequence[LikelihoodData],
    data: LikelihoodData,
    basis: RadialBasis,
    weight: FloatArray,
) -> xr.DataTree:
    """Groups observed_data and constant_data of the data of tasks, one after the other."""
    row, k = data.rows, [task.grid(_N_OBSERVED_K) for task in tasks]
    positions: list[IntArray] = [np.arange(len(part.matrix)) for part in parts]
    if row == BernsteinData.rows:
        positions = [task.require("ranks").n_better_bins + 1 for task in tasks]
    coords: dict[str, Any] = {row: np.concatenate(positions), "k": np.concatenate(k)}
    if len(tasks) > 1:
        for name, several in ((row, positions), ("k", k)):
            numbers = np.repeat(np.arange(len(tasks)), [part.size for part in several])
            coords[f"{name}_task"] = name, numbers
    # The accuracy is known at no k if ranks are known up to wide intervals.
    accuracy = [
        task.accuracy(g) if g.size else g.astype(float) for task, g in zip(tasks, k, strict=True)
    ]
    observed = xr.Dataset(
        {data.observed: (row, data.values), "accuracy": ("k", np.concatenate(accuracy))}, coords
    )
    sizes = {
        "n_classes": [task.n_classes for task in tasks],
        "n_test": [task.n_test for task in tasks],
        "design_effect": [task.design_effect() for task in tasks],
        "weight": weight,
    }
    constant = xr.Dataset(
        {"matrix": ((row, "knot"), data.matrix)}
        | {name: ("task", values) for name, values in sizes.items()},
        {name: at for name, at in coords.items() if name.startswith(row)} | {"knot": basis.knots},
    )
    groups = {"observed_data": described(observed), "constant_data": described(constant)}
    return xr.DataTree.from_dict(groups)


def data_of(tree: xr.DataTree, weighted: bool = True) -> LikelihoodData:
    """Data of the likelihood, read from the groups of `pooled_groups`.

    If not `weighted`, each task counts in full, as in replicates of it.
    """
    observed, constant = tree["observed_data"].to_dataset(), tree["constant_data"].to_dataset()
    observed[["accuracy", "k"]]  # a file without them fails here, not later
    if BernsteinData.observed not in observed:
        return PowerData(constant["matrix"].values, observed[PowerData.observed].values)
    number = np.asarray(observed.coords.get(f"{BernsteinData.rows}_task", 0))
    weight = constant["weight"].values if weighted else 1.0
    precision = weight / constant["design_effect"].values
    counts = observed[BernsteinData.observed].values
    return BernsteinData(constant["matrix"].values, counts, precision[number], number)


def task_sizes(tree: xr.DataTree) -> list[tuple[int, int, float]]:
    """Number of classes, number of instances and design effect of every task of a fit."""
    fixed = tree["constant_data"].to_dataset()
    sizes = (fixed[name].values.tolist() for name in ("n_classes", "n_test", "design_effect"))
    return list(zip(*sizes, strict=True))


def task_part(group: xr.Dataset, number: int) -> xr.Dataset:
    """Rows of one task in a group of a pooled fit, as in a fit to that task alone.

    A group without numbers of tasks is returned whole.
    """
    for dim in map(str, group.dims):
        if f"{dim}_task" in group.coords:
            group = group.isel({dim: group[f"{dim}_task"].values == number})
            group = group.drop_vars(f"{dim}_task")
    return group


def pooled_record(tasks: Sequence[SourceTask], weight: FloatArray, shared: str) -> FitRecord:
    """Record of a fit to several tasks with the weights lambda (n_tasks,)."""
    n_test = np.array([task.n_test for task in tasks])
    design_effect = np.array([task.design_effect() for task in tasks])
    of_tasks = [task.table.variance.permanent for task in tasks]
    counts, permanent = [part for part in of_tasks if part is not None], None
    if counts:
        unbeaten, beaten, present = np.transpose(counts)
        permanent = float(unbeaten.sum()), float(beaten.sum()), float(present.mean())
    return FitRecord(
        task_kind=", ".join(sorted({task.table.kind for task in tasks})),
        n_classes=max(task.n_classes for task in tasks),
        n_test=int(n_test.sum()),
        design_effect=float(n_test.sum() / (weight * n_test / design_effect).sum()),
        dependence=pooled_dependence(tasks),
        n_tasks=len(tasks),
        shared=shared,
        designed=any(not task.table.is_simple_random for task in tasks),
        permanent_losses=permanent,
        notes=tuple(pool_notes(tasks, weight, shared)),
    )


def pool_weights(tasks: Sequence[SourceTask], shared: str) -> FloatArray:
    """Weights lambda (n_tasks,) of the log-likelihoods of tasks, in [0, 1].

    They are those of the best combination of correlated estimates (Bates and Granger, Operational
    Research Quarterly 20, 1969). Classes are matched by name. If one of two tasks has no names, the
    smaller one is treated as a part of the larger one.

    >>> large = SourceTask.from_ranks([1] * 30 + [2] * 10, range(40), n_classes=40)
    >>> small = SourceTask.from_ranks([1] * 15 + [2] * 5, range(20), n_classes=20)
    >>> [pool_weights([large, small], shared).round(2).tolist() for shared in SHARED]
    [[1.0, 1.0], [0.9, 0.76], [1.0, 0.0]]
    """
    if shared == "nothing":
        return np.ones(len(tasks))
    root = np.sqrt([task.n_test / task.design_effect() for task in tasks])
    inherited = np.ones(len(tasks))
    if shared == "classes":
        inherited = np.array([task.table.variance.dependence.carried_over for task in tasks])
    correlation = np.eye(len(tasks))
    for s, first in enumerate(tasks):
        for t, second in enumerate(tasks[:s]):
            common = _n_common(first, second) / np.sqrt(first.n_classes * second.n_classes)
            common *= np.sqrt(inherited[s] * inherited[t])
            correlation[s, t] = correlation[t, s] = min(common, _LARGEST_CORRELATION)
    half = np.linalg.cholesky(_positive_definite(correlation))
    weighted_root, _ = nnls(half.T, np.linalg.solve(half, root))
    return np.clip(weighted_root / root, 0.0, 1.0)


def _positive_definite(correlation: FloatArray) -> FloatArray:
    """Raise eigenvalues that are not positive, and scale to a correlation matrix again.

    Negative eigenvalues occur if tasks have no names: their assumed overlaps can contradict the
    names of other tasks.
    """
    values, vectors = np.linalg.eigh(correlation)
    raised = (vectors * np.maximum(values, (1 - _LARGEST_CORRELATION) / 2)) @ vectors.T
    sd = np.sqrt(np.diag(raised))
    return raised / np.outer(sd, sd)


def _n_common(first: SourceTask, second: SourceTask) -> int:
    """Number of classes that two tasks have in common."""
    if first.classes is None or second.classes is None:
        return min(first.n_classes, second.n_classes)
    return len(set(first.classes) & set(second.classes))


def pooled_dependence(tasks: Sequence[SourceTask]) -> AnswerDependence:
    """Dependence between answers, with correlations averaged by the number of classes.

    The other fields are those of the task with the most classes.
    """
    by_task = [task.table.variance.dependence for task in tasks]
    largest = max(by_task, key=lambda dependence: dependence.n_classes)
    sizes = np.array([dependence.n_classes for dependence in by_task], dtype=float)
    return replace(
        largest,
        within=float(np.average([dependence.within for dependence in by_task], weights=sizes)),
        between=float(np.average([dependence.between for dependence in by_task], weights=sizes)),
    )


def pool_notes(tasks: Sequence[SourceTask], weight: FloatArray, shared: str) -> list[str]:
    """Notes for the reader of a pooled prediction."""
    sizes = ", ".join(str(task.n_classes) for task in tasks)
    if shared != "nothing":
        shares = ", ".join(f"{share:.2f}" for share in weight)
        return [f"pilots of {sizes} classes share {shared} and are weighted by {shares}"]
    notes = [f"pilots of {sizes} classes are assumed to be independent"]
    named = [set(task.classes) for task in tasks if task.classes is not None]
    repeated = sum(map(len, named)) - len(set().union(*named))
    if repeated:
        notes.append(
            f"{repeated} names of classes occur again in other pilots; if they are the same "
            "classes, fit with shared='classes' or shared='instances'"
        )
    return notes
