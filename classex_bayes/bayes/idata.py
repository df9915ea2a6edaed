"""Groups of `idata` beside the draws: data, constants, predictive draws, log-likelihoods."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from classex_bayes.bayes.model.likelihoods import (
    BernsteinData,
    Likelihood,
    LikelihoodData,
    PooledData,
    PowerData,
    likelihood_data,
)
from classex_bayes.bayes.model.priors import Prior
from classex_bayes.bayes.predict.replicated_accuracy import replicated_accuracy
from classex_bayes.core.basis import N_BINS, RadialBasis
from classex_bayes.core.law import MixtureLaw
from classex_bayes.results import SAMPLE_DIMS
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray, NumberArray

if TYPE_CHECKING:  # a fit does not import PyMC; only functions that build a graph do
    import pymc as pm

# Name of the group of mixture weights: of the law that predicts, of the law given ranks alone if
# scores were used too, and of the prior of the latter.
MIXTURE = {"posterior": "mixture", "ranks": "mixture_given_ranks", "prior": "prior_mixture"}
_N_OBSERVED_K = 25
# Dimensions along which the rows of several tasks are concatenated. A coordinate such as k_task
# holds the number of the task of each row.
ROWS = {BernsteinData.rows, PowerData.rows, "k"}
_NUMBERS = {f"{row}_task" for row in ROWS}
# Descriptions of variables, which have the same meaning in every group.
_BINS = "weighted number of instances in each bin of ranks; the coordinate is its largest rank"
_WEIGHTS = "weights of the knots t: D(u) is the sum of w Phi((Phi^-1(u) - t) / h)"
EXPECTED_ACCURACY = "expected accuracy on k classes: 1, 10 and 100 times k1"
_DESCRIPTIONS = {
    BernsteinData.observed: _BINS,
    PowerData.observed: "linear combinations of accuracies, with standard normal noise",
    "accuracy": "average test accuracy on k of the tested classes",
    "weights": _WEIGHTS,
    "matrix": "its product with the weights is the expectation of the data",
    "design_effect": "number of instances with the information of one independent instance",
    "weight": "weight of each task in the log-likelihood",
    "n_classes": "number of tested classes of each task",
    "n_test": "number of test instances of each task",
    "class_task": "task of each class",
}


def described(data: xr.Dataset, descriptions: Mapping[str, str] = _DESCRIPTIONS) -> xr.Dataset:
    """Add the attribute "description" to each variable of the data.

    Variables are in the order of the descriptions. Variables without description come last.
    """
    first = [name for name in descriptions if name in data.data_vars]
    names = [*first, *(name for name in data.data_vars if name not in first)]
    ordered = data[names].assign_attrs(data.attrs)
    texts = {name: ordered[name].assign_attrs(description=descriptions[name]) for name in first}
    return ordered.assign(texts)


def split_weights(
    draws: xr.Dataset,
    basis: RadialBasis,
    descriptions: Mapping[str, str],
    group: str = "posterior",
) -> dict[str, xr.Dataset]:
    """Split draws into a group of the parameters and a group of the mixture weights.

    There are as many weights as knots, and they follow from the parameters. They have a separate
    group, so that tables and plots of ArviZ show the parameters alone.
    """
    parameters = described(draws.drop_vars("weights"), descriptions)
    weights = draws[["weights"]].assign_attrs(bandwidth=basis.bandwidth)
    return {group: parameters, MIXTURE[group]: described(weights)}


def mixture_group(law: MixtureLaw) -> xr.Dataset:
    """Group of the mixture weights (chain, draw, knot), with knots and bandwidth of the basis."""
    chain, draw = map(np.arange, law.weights.shape[:2])
    weights = xr.Dataset(
        {"weights": ((*SAMPLE_DIMS, "knot"), law.weights)},
        coords={"chain": chain, "draw": draw, "knot": law.basis.knots},
        attrs={"bandwidth": law.basis.bandwidth},
    )
    return described(weights)


def weights_of(tree: xr.DataTree, group: str = "posterior") -> xr.DataArray:
    """Draws of the mixture weights (chain, draw, knot): a key of `MIXTURE`."""
    if group == "ranks" and MIXTURE[group] not in tree.children:
        group = "posterior"  # no scores were used
    weights = tree[MIXTURE[group]].to_dataset()["weights"]
    return weights.transpose(*SAMPLE_DIMS, "knot")


def basis_of(tree: xr.DataTree) -> RadialBasis:
    """Basis of the mixture weights."""
    group = tree[MIXTURE["posterior"]].to_dataset()
    return RadialBasis(group["knot"].values, float(group.attrs["bandwidth"]))


def by_draw(
    draws: xr.Dataset | xr.DataArray, values: FloatArray, name: str, last: str, position: Any
) -> xr.DataArray:
    """Values that follow from draws, as a DataArray with the dimensions chain, draw and `last`."""
    coords = {dim: draws[dim].values for dim in SAMPLE_DIMS} | {last: position}
    return xr.DataArray(values, dims=(*SAMPLE_DIMS, last), coords=coords, name=name)


def with_predictions(draws: xr.Dataset, predicted: xr.DataArray, description: str) -> xr.Dataset:
    """Dataset of the draws of a prediction (chain, draw, k), then those of the parameters."""
    first = predicted.assign_attrs(description=description).to_dataset()
    return first.assign(draws.data_vars).assign_attrs(draws.attrs)


def task_groups(
    task: SourceTask, basis: RadialBasis, likelihood: str
) -> tuple[BernsteinData | PowerData, xr.DataTree]:
    """Data of one task for the likelihood, and their groups from `data_groups`."""
    data = likelihood_data(task, basis, likelihood)
    return data, data_groups(task, data, basis)


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


def data_groups(
    task: SourceTask, data: BernsteinData | PowerData, basis: RadialBasis
) -> xr.DataTree:
    """Groups observed_data and constant_data of a task.

    observed_data holds the accuracies on a grid of k. It also holds the histogram of ranks, whose
    coordinate is the largest rank of each bin, or the whitened accuracies. constant_data holds the
    size of the task and the matrix whose product with the weights is the expectation of the
    histogram or of the whitened accuracies.
    """
    k = task.grid(_N_OBSERVED_K)
    row, values, name = (
        ("bin", data.counts, data.observed)
        if isinstance(data, BernsteinData)
        else ("direction", data.whitened, data.observed)
    )
    position: IntArray = np.arange(values.size)
    if row == "bin":
        position = task.require("ranks").n_better_bins + 1
    coords = {"knot": basis.knots, row: position, "k": k}
    observed = xr.Dataset(
        {name: (row, values), "accuracy": ("k", task.accuracy(k) if k.size else k.astype(float))},
        coords={dim: coords[dim] for dim in (row, "k")},
    )
    sizes: dict[str, float] = {"n_classes": task.n_classes, "n_test": task.n_test}
    sizes |= {"design_effect": task.design_effect(), "weight": 1.0}
    constant = xr.Dataset(
        {"matrix": ((row, "knot"), data.matrix)}
        | {name: ("task", [size]) for name, size in sizes.items()},
        coords={dim: coords[dim] for dim in (row, "knot")},
    )
    return xr.DataTree.from_dict(
        {"observed_data": described(observed), "constant_data": described(constant)}
    )


def built(prior: Prior, data: Likelihood, tree: xr.DataTree) -> "pm.Model":
    """PyMC model of a prior and data. `tree` has the groups of the data and their coordinates."""
    from classex_bayes.bayes.model.graph import build_model

    observed = tree["observed_data"].to_dataset()
    row = observed[data.rows].values if data.rows in observed.indexes else None
    return build_model(prior, data, row)


def data_of(tree: xr.DataTree) -> LikelihoodData:
    """Data of the likelihood, read from the groups of a fit: the inverse of `data_groups`."""
    observed, constant = tree["observed_data"].to_dataset(), tree["constant_data"].to_dataset()
    observed[["accuracy", "k"]]  # a file without them fails here, not later
    if BernsteinData.observed not in observed:
        return PowerData(constant["matrix"].values, observed[PowerData.observed].values)
    parts = []
    for number, (_, _, design_effect) in enumerate(task_sizes(tree)):
        matrix = task_part(constant, number)["matrix"].values
        counts = task_part(observed, number)[BernsteinData.observed].values
        parts.append(BernsteinData(matrix, counts, float(design_effect)))
    if len(parts) == 1:
        return parts[0]
    return PooledData(tuple(parts), tuple(constant["weight"].values.tolist()))


def predictive_group(
    weights: xr.DataArray,
    tree: xr.DataTree,
    law: MixtureLaw,
    rng: np.random.Generator,
) -> xr.Dataset:
    """Replicated data of the tasks of `tree`: one replicate of each for each draw of the weights.

    A replicate has the size of its task. `law` is the law with the weights. Replicates of pooled
    tasks are independent of each other.
    """
    data, observed = data_of(tree), tree["observed_data"].to_dataset()
    coords = {name: weights[name].values for name in ("chain", "draw")}
    rows = {str(d): observed[d].variable for d in observed.coords if d in (*ROWS, *_NUMBERS)}
    accuracies = []
    for number, (n_classes, n_test, design_effect) in enumerate(task_sizes(tree)):
        k = task_part(observed, number)["k"].values
        effective = max(round(n_test / design_effect), 1)
        accuracies.append(replicated_accuracy(law, (n_classes, effective), k, rng))
    group = xr.Dataset({"accuracy": (("chain", "draw", "k"), np.concatenate(accuracies, axis=-1))})
    if not isinstance(data, PowerData):
        histograms = [part.replicates(weights.values, rng) for part in data.parts]
        group[data.observed] = (("chain", "draw", "bin"), np.concatenate(histograms, axis=-1))
    present = {name: row for name, row in rows.items() if row.dims[0] in group.dims}
    return described(group.assign_coords({**coords, **present}))


def class_group(tasks: Sequence[SourceTask]) -> xr.Dataset:
    """Histogram of ranks of every tested class. Classes of several tasks are concatenated."""
    counts, numbers = [], []
    names: list[Any] = []
    for number, task in enumerate(tasks):
        classes, position = np.unique(task.y, return_inverse=True)
        ranks = task.require("ranks")
        histogram = ranks.histogram(ranks.n_better_bins, position)
        counts.append(np.pad(histogram, ((0, 0), (0, N_BINS - histogram.shape[1]))))
        names += classes.tolist() if task.classes is None else [task.classes[c] for c in classes]
        numbers += [number] * classes.size
    group = xr.Dataset(
        {
            BernsteinData.observed: (("class", BernsteinData.rows), np.concatenate(counts)),
            "class_task": ("class", numbers),
        },
        coords={"class": _labels(names)},
        attrs={"named": int(all(task.classes is not None for task in tasks))},
    )
    return described(group)


def _labels(names: list[Any]) -> NumberArray:
    """Names of classes as numbers or text, which files can hold."""
    if all(isinstance(name, int | float | np.number) for name in names):
        numbers = np.array(names)
        if numbers.dtype.kind in "biuf":  # integers beyond 64 bits become objects
            return numbers
    return np.array(list(map(str, names)))


def log_likelihood_group(
    weights: xr.DataArray,
    data: BernsteinData | PooledData,
    classes: xr.Dataset,
    shared: str | None,
) -> xr.Dataset:
    """Log-likelihood of each class of `class_group`.

    If tasks share classes, the log-likelihoods of classes with the same name are added.
    """
    counts, number = classes[data.observed].values, classes["class_task"].values
    joint = np.concatenate(
        [
            factor
            * replace(part, counts=counts[number == place, : part.counts.size].T).log_likelihood(
                weights.values
            )
            for place, (part, factor) in enumerate(zip(data.parts, data.weight, strict=True))
        ],
        axis=-1,
    )
    labels, task_numbers = classes["class"].values, {}
    if shared not in (None, "nothing") and classes.attrs["named"]:
        labels, place = np.unique(labels, return_inverse=True)
        joint = joint @ (place[:, None] == np.arange(labels.size)).astype(float)
    elif len(data.parts) > 1:
        task_numbers["class_task"] = ("class", number)
    coords = {name: weights[name].values for name in ("chain", "draw")}
    group = xr.Dataset(
        {data.observed: (("chain", "draw", "class"), joint)},
        coords={**coords, "class": labels, **task_numbers},
    )
    return described(group, {data.observed: "log-likelihood of the instances of each class"})
