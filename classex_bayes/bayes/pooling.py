r"""One posterior from several pilots, which may have classes in common.

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

import numpy as np
import xarray as xr
from scipy.optimize import nnls

from classex_bayes.arguments import one_of
from classex_bayes.bayes.fit_record import FitRecord
from classex_bayes.bayes.idata import ROWS, data_groups, described, task_groups
from classex_bayes.bayes.model.likelihoods import (
    BernsteinData,
    LikelihoodData,
    PooledData,
    PowerData,
    likelihood_data,
)
from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.dependence import AnswerDependence
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray

SHARED = ("nothing", "classes", "instances")
# Below 1, so that equal tasks get equal weights: at 1 any weights with the sum 1 are optimal.
_LARGEST_CORRELATION = 0.999


def pooled_groups(
    tasks: Sequence[SourceTask], basis: RadialBasis, likelihood: str, shared: str
) -> tuple[LikelihoodData, xr.DataTree, FitRecord]:
    """Data of one or several tasks for the likelihood, their groups, and the record of their fit.

    The groups of one task are those of `data_groups`. The rows of several tasks are concatenated
    along bin (or direction), k and task. The coordinates bin_task and k_task hold the number of the
    task of each row.
    """
    one_of(shared, SHARED, "shared")
    if len(tasks) == 1:
        return *task_groups(tasks[0], basis, likelihood), FitRecord.of_task(tasks[0])
    if shared == "nothing" and len({id(task) for task in tasks}) < len(tasks):
        raise DataError(
            "task: the same task is in the list twice and would be counted twice; remove one copy"
        )
    data, parts, weight = pooled_data(tasks, basis, likelihood, shared)
    trees = [data_groups(task, part, basis) for task, part in zip(tasks, parts, strict=True)]
    observed, constant = (
        [_numbered(tree[group].to_dataset(), number) for number, tree in enumerate(trees)]
        for group in ("observed_data", "constant_data")
    )
    joint = xr.merge([_joined(observed, data.observed), _joined(observed, "accuracy")])
    names = "matrix", "n_classes", "n_test", "design_effect"
    fixed = xr.merge([_joined(constant, name) for name in names]).assign(weight=("task", weight))
    tree = xr.DataTree.from_dict(
        {"observed_data": described(joint), "constant_data": described(fixed)}
    )
    return data, tree, pooled_record(tasks, weight, shared)


def pooled_record(tasks: Sequence[SourceTask], weight: FloatArray, shared: str) -> FitRecord:
    """Record of a fit to several tasks with the weights lambda (n_tasks,)."""
    n_test = np.array([task.n_test for task in tasks])
    design_effect = np.array([task.design_effect() for task in tasks])
    known = [
        task.table.variance.permanent for task in tasks if task.table.variance.permanent is not None
    ]
    permanent = None
    if known:
        unbeaten, beaten, present = np.transpose(known)
        permanent = float(unbeaten.sum()), float(beaten.sum()), float(present.mean())
    return FitRecord(
        task_kind=", ".join(sorted({task.table.kind for task in tasks})),
        n_classes=max(task.n_classes for task in tasks),
        n_test=int(n_test.sum()),
        design_effect=float(n_test.sum() / (weight * n_test / design_effect).sum()),
        dependence=pooled_dependence(tasks),
        n_tasks=len(tasks),
        shared=shared,
        designed=any(not task.table.is_plain for task in tasks),
        permanent_losses=permanent,
        notes=tuple(pool_notes(tasks, weight, shared)),
    )


def _numbered(data: xr.Dataset, number: int) -> xr.Dataset:
    """Add the number of the task as a coordinate of its rows and of k."""
    rows = {f"{dim}_task": (dim, np.full(data.sizes[dim], number)) for dim in ROWS & {*data.dims}}
    return data.assign_coords(rows)


def _joined(parts: Sequence[xr.Dataset], name: str) -> xr.Dataset:
    """One variable of several tasks, concatenated along its rows."""
    along = str(parts[0][name].dims[0])
    return xr.concat([part[[name]] for part in parts], dim=along)


def pooled_data(
    tasks: Sequence[SourceTask], basis: RadialBasis, likelihood: str, shared: str
) -> tuple[LikelihoodData, list[BernsteinData | PowerData], FloatArray]:
    """Data of the pool, data of each task, and the weights lambda (n_tasks,) of the tasks.

    All tasks have the same form of the likelihood. "auto" is the power form if one of the tasks
    was made from accuracies. Rows of the power form are multiplied by the square root of the
    weight.
    """
    curves = any(task.table.kind == "accuracies" for task in tasks)
    if curves and isinstance(likelihood, str) and likelihood == "auto":
        likelihood = PowerData.kind
    parts = [likelihood_data(task, basis, likelihood) for task in tasks]
    weight = pool_weights(tasks, shared)
    histograms = tuple(part for part in parts if isinstance(part, BernsteinData))
    if histograms:
        return PooledData(histograms, tuple(weight.tolist())), parts, weight
    scaled = [
        PowerData(np.sqrt(share) * part.matrix, np.sqrt(share) * part.whitened)
        for part, share in zip(parts, weight, strict=True)
        if isinstance(part, PowerData)
    ]
    rows = np.vstack([part.matrix for part in scaled])
    values = np.concatenate([part.whitened for part in scaled])
    return PowerData(rows, values), [*scaled], weight


def pool_weights(tasks: Sequence[SourceTask], shared: str) -> FloatArray:
    """Weights lambda (n_tasks,) of the log-likelihoods of tasks, in [0, 1].

    They are those of the best combination of correlated estimates (Bates and Granger, Operational
    Research Quarterly 20, 1969). Classes are matched by name. If one of two tasks has no names, the
    smaller one is taken to be a part of the larger one.

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
