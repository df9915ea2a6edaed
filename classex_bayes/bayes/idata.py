"""Groups of `idata`: draws of parameters and weights, histograms and log-likelihoods of classes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from classex_bayes.bayes.model.likelihoods import BernsteinData, PowerData
from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.law import MixtureLaw
from classex_bayes.results import SAMPLE_DIMS
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, NumberArray

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
    "weight": "weight of each task in the log-likelihood",
    "n_classes": "number of tested classes of each task",
    "n_test": "number of test instances of each task",
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


def class_log_likelihood(
    weights: xr.DataArray, data: BernsteinData, tasks: Sequence[SourceTask], shared: str
) -> xr.Dataset:
    """Log-likelihood of the instances of every tested class: variable with chain, draw and class.

    Classes of several tasks follow each other. If tasks share classes, the log-likelihoods of
    classes with the same name are added.
    """
    names: list[Any] = []
    parts = []
    for task, part in zip(tasks, data.parts, strict=True):
        classes, position = np.unique(task.y, return_inverse=True)
        ranks = task.require("ranks")
        counts = ranks.histogram(ranks.n_better_bins, position) * part.precision[0]
        parts.append(part.log_shares(weights.values) @ counts.T)
        names += classes.tolist() if task.classes is None else [task.classes[c] for c in classes]
    joint, labels = np.concatenate(parts, axis=-1), _labels(names)
    coords: dict[str, Any] = {name: weights[name].values for name in SAMPLE_DIMS}
    if shared != "nothing" and all(task.classes is not None for task in tasks):
        labels, place = np.unique(labels, return_inverse=True)
        joint = joint @ (place[:, None] == np.arange(labels.size)).astype(float)
    elif len(parts) > 1:
        number = np.repeat(np.arange(len(parts)), [part.shape[-1] for part in parts])
        coords["class_task"] = "class", number
    group = xr.Dataset(
        {data.observed: ((*SAMPLE_DIMS, "class"), joint)}, coords | {"class": labels}
    )
    return described(group, {data.observed: "log-likelihood of the instances of each class"})


def _labels(names: list[Any]) -> NumberArray:
    """Names of classes as numbers or text, which files can hold."""
    if all(isinstance(name, int | float | np.number) for name in names):
        numbers = np.array(names)
        if numbers.dtype.kind in "biuf":  # integers beyond 64 bits become objects
            return numbers
    return np.array(list(map(str, names)))
