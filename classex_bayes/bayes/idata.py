"""What a DataTree holds beside the draws: data, constants, provenance, predictive groups."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import xarray as xr

from classex_bayes._version import __version__
from classex_bayes.bayes.model.likelihoods import (
    BernsteinData,
    LikelihoodData,
    PooledData,
    PowerData,
)
from classex_bayes.bayes.model.priors import DirichletPrior, MixturePrior, Prior
from classex_bayes.bayes.pooling import pool_notes, pooled_data, pooled_dependence
from classex_bayes.bayes.predict.predictive import (
    class_log_likelihood,
    predictive_accuracy,
    predictive_histogram,
)
from classex_bayes.bayes.sampling import SamplerSettings
from classex_bayes.core.basis import RadialBasis, loss_bins
from classex_bayes.core.dependence import AnswerDependence
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray

_PRIORS: dict[str, type[Any]] = {cls.__name__: cls for cls in (MixturePrior, DirichletPrior)}
_N_OBSERVED_K = 25
# Dimensions along which the rows of several tasks follow each other, and what tells them apart.
_ROWS = {BernsteinData.rows, PowerData.rows, "k"}
_MARKS = {f"{row}_task" for row in _ROWS}


def described(
    tasks: Sequence[SourceTask], basis: RadialBasis, likelihood: str, shared: str
) -> tuple[LikelihoodData, xr.DataTree]:
    """Data of one or several tasks for the likelihood, and their groups as of `data_groups`.

    Of several tasks the rows of all lie one after the other along bin (or direction) and k; the
    coordinates bin_task and k_task tell the task of each, and constant_data has the dimension
    task with the design effect and weight of each.
    """
    data, parts, weight = pooled_data(tasks, basis, likelihood, shared)
    trees = [data_groups(task, part, basis) for task, part in zip(tasks, parts, strict=True)]
    if len(trees) == 1:
        return data, trees[0]
    observed = [
        _numbered(tree["observed_data"].to_dataset(), number) for number, tree in enumerate(trees)
    ]
    constant = [
        _numbered(tree["constant_data"].to_dataset(), number) for number, tree in enumerate(trees)
    ]
    joint = xr.merge([_joined(observed, data.observed), _joined(observed, "accuracy")])
    fixed = _joined(constant, "matrix")
    each: list[dict[Any, Any]] = [tree.attrs for tree in trees]
    own = [attributes["design_effect"] for attributes in each]
    fixed["design_effect"], fixed["weight"] = ("task", own), ("task", weight)
    fixed["n_classes"] = ("task", [attributes["n_classes"] for attributes in each])
    fixed["n_test"] = ("task", [attributes["n_test"] for attributes in each])
    n_test = np.array([attributes["n_test"] for attributes in each])
    tree = xr.DataTree.from_dict({"observed_data": joint, "constant_data": fixed})
    tree.attrs.update(
        task_kind=", ".join(sorted({task.kind for task in tasks})),
        n_classes=max(task.n_classes for task in tasks),
        n_test=int(n_test.sum()),
        design_effect=float(n_test.sum() / (weight * n_test / own).sum()),
        dependence=json.dumps(asdict(pooled_dependence(tasks))),
        n_tasks=len(tasks),
        shared=shared,
        pool_notes=json.dumps(pool_notes(tasks, weight, shared)),
    )
    return data, tree


def _numbered(data: xr.Dataset, number: int) -> xr.Dataset:
    """Rows and numbers of classes marked as those of one task."""
    marks = {f"{dim}_task": (dim, np.full(data.sizes[dim], number)) for dim in _ROWS & {*data.dims}}
    return data.assign_coords(marks)


def _joined(parts: Sequence[xr.Dataset], name: str) -> xr.Dataset:
    """One variable of several tasks, one after the other along its rows."""
    along = str(parts[0][name].dims[0])
    return xr.concat([part[[name]] for part in parts], dim=along)


def task_sizes(tree: xr.DataTree) -> list[tuple[int, int, float]]:
    """Number of classes, of instances, and design effect of every task of a fit."""
    if "n_tasks" not in tree.attrs:
        return [tuple(tree.attrs[name] for name in ("n_classes", "n_test", "design_effect"))]
    fixed = tree["constant_data"].to_dataset()
    return list(
        zip(
            fixed["n_classes"].values.tolist(),
            fixed["n_test"].values.tolist(),
            fixed["design_effect"].values.tolist(),
            strict=True,
        )
    )


def task_part(group: xr.Dataset, number: int) -> xr.Dataset:
    """Part of one task of a pooled fit in observed_data, a predictive group and their like.

    Parameters
    ----------
    group : Dataset
        A group of `idata`.
    number : int
        Position of the task in the list that was fitted.

    Returns
    -------
    Dataset
        As of a model fitted to that task alone; all of it where there are no marks of tasks.
    """
    for dim in sorted(_ROWS & {*group.dims}):
        if f"{dim}_task" in group.coords:
            group = group.isel({dim: group[f"{dim}_task"].values == number})
            group = group.drop_vars(f"{dim}_task")
    return group


def data_groups(
    task: SourceTask, data: BernsteinData | PowerData, basis: RadialBasis
) -> xr.DataTree:
    """Groups observed_data and constant_data of a task, with its size as attributes.

    observed_data holds the accuracies on a grid of k and the histogram of losses (coordinate: the
    largest loss of each bin) or the whitened accuracies; constant_data the matrix whose product
    with the weights is their expectation.
    """
    k = task.grid(_N_OBSERVED_K)
    row, values, name = (
        ("bin", data.counts, data.observed)
        if isinstance(data, BernsteinData)
        else ("direction", data.whitened, data.observed)
    )
    position = loss_bins(task.n_classes, values.size) if row == "bin" else np.arange(values.size)
    coords = {"knot": basis.knots, row: position, "k": k}
    observed = xr.Dataset(
        {name: (row, values), "accuracy": ("k", task.accuracy(k))},
        coords={dim: coords[dim] for dim in (row, "k")},
    )
    constant = xr.Dataset(
        {"matrix": ((row, "knot"), data.matrix), "design_effect": task.design_effect()},
        coords={dim: coords[dim] for dim in (row, "knot")},
    )
    tree = xr.DataTree.from_dict({"observed_data": observed, "constant_data": constant})
    tree.attrs.update(
        task_kind=task.kind,
        n_classes=task.n_classes,
        n_test=task.n_test,
        design_effect=task.design_effect(),
        dependence=json.dumps(asdict(task.dependence)),
    )
    return tree


def dependence_of(tree: xr.DataTree) -> AnswerDependence:
    """Dependence between answers that was stored at the fit."""
    if "dependence" not in tree.attrs:
        raise DataError(
            "kind: the model comes from a file that does not tell how answers depend on each "
            "other; fit it again to predict a measured accuracy"
        )
    return AnswerDependence(**json.loads(tree.attrs["dependence"]))


def data_of(tree: xr.DataTree) -> LikelihoodData:
    """Inverse of `data_groups`: the data of the likelihood."""
    observed, constant = tree["observed_data"].to_dataset(), tree["constant_data"].to_dataset()
    if BernsteinData.observed not in observed:
        return PowerData(constant["matrix"].values, observed[PowerData.observed].values)
    parts = []
    for number, (_, _, own) in enumerate(task_sizes(tree)):
        matrix = task_part(constant, number)["matrix"].values
        counts = task_part(observed, number)[BernsteinData.observed].values
        parts.append(BernsteinData(matrix, counts, float(own)))
    if len(parts) == 1:
        return parts[0]
    return PooledData(tuple(parts), tuple(constant["weight"].values.tolist()))


def predictive_group(
    weights: xr.DataArray,
    tree: xr.DataTree,
    basis: RadialBasis,
    rng: np.random.Generator,
) -> xr.Dataset:
    """Replicated data of the tasks of `tree`, each of its size, one for each draw of the weights.

    Replicates of pooled tasks are independent of each other.
    """
    data, observed = data_of(tree), tree["observed_data"].to_dataset()
    coords = {name: weights[name].values for name in ("chain", "draw")}
    rows = {str(d): observed[d].variable for d in observed.coords if d in (*_ROWS, *_MARKS)}
    accuracies = []
    for number, (n_classes, n_test, own) in enumerate(task_sizes(tree)):
        k = task_part(observed, number)["k"].values
        effective = max(round(n_test / own), 1)
        accuracies.append(
            predictive_accuracy(weights.values, basis, (n_classes, effective), k, rng)
        )
    group = xr.Dataset({"accuracy": (("chain", "draw", "k"), np.concatenate(accuracies, axis=-1))})
    parts = data.parts if isinstance(data, PooledData) else (data,)
    histograms = [
        predictive_histogram(weights.values, part, rng)
        for part in parts
        if isinstance(part, BernsteinData)
    ]
    if histograms:
        replicated = np.concatenate(histograms, axis=-1)
        group[BernsteinData.observed] = (("chain", "draw", "bin"), replicated)
    kept = {name: value for name, value in rows.items() if value.dims[0] in group.dims}
    return group.assign_coords({**coords, **kept})


def log_likelihood_group(
    weights: xr.DataArray,
    data: BernsteinData | PooledData,
    tasks: Sequence[SourceTask],
    shared: str | None,
) -> xr.Dataset:
    """Log-likelihood by class; classes that tasks share by name stand once."""
    parts, share = (
        ((data,), (1.0,)) if isinstance(data, BernsteinData) else (data.parts, data.weight)
    )
    values: list[FloatArray] = []
    names: list[Any] = []
    numbers: list[int] = []
    for number, (task, part, factor) in enumerate(zip(tasks, parts, share, strict=True)):
        own, classes = class_log_likelihood(weights.values, part, task)
        values.append(factor * own)
        names += classes.tolist() if task.classes is None else [task.classes[c] for c in classes]
        numbers += [number] * classes.size
    joint, labels = np.concatenate(values, axis=-1), np.array(names)
    marks: dict[str, Any] = {}
    if shared not in (None, "nothing") and all(task.classes is not None for task in tasks):
        labels, place = np.unique(labels, return_inverse=True)
        joint = joint @ (place[:, None] == np.arange(labels.size)).astype(float)
    elif len(tasks) > 1:
        marks["class_task"] = ("class", numbers)
    coords = {name: weights[name].values for name in ("chain", "draw")}
    return xr.Dataset(
        {data.observed: (("chain", "draw", "class"), joint)},
        coords={**coords, "class": labels, **marks},
    )


def provenance(
    prior: Prior, likelihood: str, settings: SamplerSettings, seeds: np.random.SeedSequence
) -> dict[str, Any]:
    """Attributes that say what was fitted, how, and by which version."""
    return {
        "modeling_interface": "classex_bayes",
        "modeling_interface_version": __version__,
        "prior": json.dumps({"type": type(prior).__name__, **vars(prior)}),
        "likelihood": likelihood,
        "sampler": json.dumps(asdict(settings)),
        # As text: the entropy of an unseeded fit has 128 bits.
        "random_seed": json.dumps(_plain(seeds.entropy)),
        "random_seed_spawn_key": json.dumps(list(seeds.spawn_key)),
    }


def prior_of(attributes: dict[Any, Any]) -> Prior:
    """Inverse of `provenance`: the prior."""
    fields = json.loads(attributes["prior"])
    kind = fields.pop("type")
    if kind not in _PRIORS:
        raise DataError(f"prior: found {kind!r} in the file, expected one of {', '.join(_PRIORS)}")
    return _PRIORS[kind](**fields)


def seeds_of(attributes: dict[Any, Any]) -> np.random.SeedSequence:
    """Inverse of `provenance`: the seed of the fit."""
    entropy = json.loads(attributes["random_seed"])
    key = json.loads(attributes["random_seed_spawn_key"])
    return np.random.SeedSequence(entropy, spawn_key=tuple(key))


def _plain(entropy: Any) -> Any:
    return int(entropy) if np.ndim(entropy) == 0 else [int(word) for word in entropy]
