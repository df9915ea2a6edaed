"""Groups of `idata`: data of the fitted tasks, draws of parameters and weights, log-likelihoods."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from classex_bayes.bayes.model.likelihoods import (
    BernsteinData,
    LikelihoodData,
    PowerData,
    coarsening,
)
from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.law import MixtureLaw
from classex_bayes.exceptions import DataError
from classex_bayes.results.draws import SAMPLE_DIMS
from classex_bayes.task.rank_bins import bin_counts, bin_ends
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray, NumberArray

_N_OBSERVED_K = 25
_ROUNDING = 1e-5  # of data that other threads or machines computed
# Name of the group of mixture weights: of the law that predicts, of the law given ranks alone if
# scores were used too, and of the prior of the latter.
MIXTURE = {"posterior": "mixture", "ranks": "mixture_given_ranks", "prior": "prior_mixture"}
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
    "n_classes": "number of tested classes of each task",
    "n_test": "number of test instances of each task",
    "precision": "number of independent instances that one instance counts as in the likelihood",
    "n_winnable": "effective number of instances that do not always lose, if there are others",
    "n_lost": "effective number of instances that always lose",
    "n_siblings": "mean number of competitors of the own group",
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


def pooled_groups(
    tasks: Sequence[SourceTask], basis: RadialBasis
) -> tuple[LikelihoodData, xr.DataTree]:
    """Data of one or several tasks for the likelihood, and their groups.

    The group observed_data holds the accuracies on a grid of k. It also holds the histogram of
    ranks, whose coordinate is the largest rank of each bin, or the whitened accuracies.
    constant_data holds the sizes of the tasks and the matrix whose product with the weights is the
    expectation of the histogram or of the whitened accuracies. The rows of several tasks follow
    each other along bin (or direction) and k. The coordinates bin_task and k_task hold the number
    of the task of each row.
    """
    if len({id(task) for task in tasks}) < len(tasks):
        raise DataError(
            "task: the same task is in the list twice and would be counted twice; remove one copy"
        )
    has_ranks = all(task.table.has_ranks for task in tasks)
    form: Any = BernsteinData if has_ranks else PowerData
    power = coarsening(sum(task.n_test / task.design_effect() for task in tasks))
    parts = [form.of(task, basis, power) for task in tasks]
    data, row, k = form.joined(parts), form.rows, [task.grid(_N_OBSERVED_K) for task in tasks]
    positions: list[IntArray] = [np.arange(len(part.matrix)) for part in parts]
    if form is BernsteinData:
        positions = [bin_ends(task.require("ranks")) + 1 for task in tasks]
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
    losses = np.array([task.variance.always_lost or (0.0, 0.0, 0.0) for task in tasks])
    sizes = {
        "n_classes": [task.n_classes for task in tasks],
        "n_test": [task.n_test for task in tasks],
        "design_effect": [task.design_effect() for task in tasks],
        "precision": [power / task.design_effect() for task in tasks],
        "n_winnable": losses[:, 0],
        "n_lost": losses[:, 1],
        "n_siblings": losses[:, 2],
    }
    constant = xr.Dataset(
        {"matrix": ((row, "knot"), data.matrix)}
        | {name: ("task", values) for name, values in sizes.items()},
        {name: at for name, at in coords.items() if name.startswith(row)} | {"knot": basis.knots},
    )
    groups = {"observed_data": described(observed), "constant_data": described(constant)}
    return data, xr.DataTree.from_dict(groups)


def data_of(tree: xr.DataTree) -> LikelihoodData:
    """Data of the likelihood, read from the groups of `pooled_groups`."""
    observed, constant = tree["observed_data"].to_dataset(), tree["constant_data"].to_dataset()
    observed[["accuracy", "k"]]  # a file without them fails here, not later
    if BernsteinData.observed not in observed:
        return PowerData(constant["matrix"].values, observed[PowerData.observed].values)
    number = np.asarray(observed.coords.get(f"{BernsteinData.rows}_task", 0))
    precision = constant["precision"].values[number]
    counts = observed[BernsteinData.observed].values
    return BernsteinData(constant["matrix"].values, counts, precision, number)


def same_values(group: xr.DataTree, other: xr.DataTree) -> bool:
    """Whether two groups have the same variables with the same values, up to rounding."""
    try:
        xr.testing.assert_allclose(group.to_dataset(), other.to_dataset(), rtol=_ROUNDING)
    except AssertionError:
        return False
    return True


def task_sizes(tree: xr.DataTree) -> list[tuple[int, int, float]]:
    """Number of classes, number of instances and precision of every task of a fit."""
    fixed = tree["constant_data"].to_dataset()
    sizes = (fixed[name].values.tolist() for name in ("n_classes", "n_test", "precision"))
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
        attrs={"bandwidth": law.basis.bandwidth, "siblings": law.siblings},
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


def law_of_group(group: xr.Dataset) -> MixtureLaw:
    """Inverse of `mixture_group`."""
    basis = RadialBasis(group["knot"].values, float(group.attrs["bandwidth"]))
    return MixtureLaw(basis, group["weights"].values, float(group.attrs["siblings"]))


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


def class_log_likelihood(
    weights: xr.DataArray, data: BernsteinData, tasks: Sequence[SourceTask]
) -> xr.Dataset:
    """Log-likelihood of the instances of every tested class: variable with chain, draw and class.

    Classes of several tasks follow each other, and the coordinate class_task numbers the tasks.
    """
    names: list[Any] = []
    parts = []
    for task, part in zip(tasks, data.parts, strict=True):
        classes, position = np.unique(task.y, return_inverse=True)
        counts = bin_counts(task.require("ranks"), position) * part.precision[0]
        parts.append(part.log_shares(weights.values) @ counts.T)
        names += classes.tolist() if task.classes is None else [task.classes[c] for c in classes]
    coords: dict[str, Any] = {name: weights[name].values for name in SAMPLE_DIMS}
    coords["class"] = _labels(names)
    if len(parts) > 1:
        number = np.repeat(np.arange(len(parts)), [part.shape[-1] for part in parts])
        coords["class_task"] = "class", number
    joint = np.concatenate(parts, axis=-1)
    group = xr.Dataset({data.observed: ((*SAMPLE_DIMS, "class"), joint)}, coords)
    return described(group, {data.observed: "log-likelihood of the instances of each class"})


def _labels(names: list[Any]) -> NumberArray:
    """Names of classes as numbers or text, which files can hold."""
    if all(isinstance(name, int | float | np.number) for name in names):
        numbers = np.array(names)
        if numbers.dtype.kind in "biuf":  # integers beyond 64 bits become objects
            return numbers
    return np.array(list(map(str, names)))
