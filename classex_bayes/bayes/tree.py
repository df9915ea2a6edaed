"""What a DataTree holds beside the draws: data, constants, provenance, predictive groups."""

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import xarray as xr

import classex_bayes
from classex_bayes.bayes.likelihoods import BernsteinData, LikelihoodData, PowerData
from classex_bayes.bayes.predictive import predictive_accuracy, predictive_histogram
from classex_bayes.bayes.priors import DirichletPrior, MixturePrior, Prior
from classex_bayes.bayes.sampling import SamplerSettings
from classex_bayes.core.basis import RadialBasis, loss_bins
from classex_bayes.core.measured import AnswerDependence, answer_dependence, typical_dependence
from classex_bayes.data.task import SourceTask
from classex_bayes.exceptions import DataError

_PRIORS: dict[str, type[Any]] = {cls.__name__: cls for cls in (MixturePrior, DirichletPrior)}
_N_OBSERVED_K = 25


def data_groups(task: SourceTask, data: LikelihoodData, basis: RadialBasis) -> xr.DataTree:
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
        dependence=json.dumps(asdict(_dependence(task))),
    )
    return tree


def _dependence(task: SourceTask) -> AnswerDependence:
    """How the right answers of a task hang together at k1, as far as it tells."""
    grid = task.grid()
    last = grid[-1]
    if task.kind == "accuracies":
        known = float(task.accuracy(last)[0]) if last == task.n_classes else None
        return typical_dependence(task.n_classes, task.n_test, known)
    # Of losses alone, the part of shared competitors is unknown.
    variance = None if task.source is None else float(task.accuracy_cov(grid)[-1, -1])
    return answer_dependence(task.losses, task.y, task.class_weight, variance)


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
    matrix = constant["matrix"].values
    if BernsteinData.observed in observed:
        counts = observed[BernsteinData.observed].values
        return BernsteinData(matrix, counts, float(constant["design_effect"]))
    return PowerData(matrix, observed[PowerData.observed].values)


def predictive_group(
    weights: xr.DataArray,
    tree: xr.DataTree,
    basis: RadialBasis,
    rng: np.random.Generator,
) -> xr.Dataset:
    """Replicated data of a task of the size of `tree`, one for each draw of the weights."""
    data, observed = data_of(tree), tree["observed_data"].to_dataset()
    coords = {name: weights[name].values for name in ("chain", "draw")}
    effective = max(round(tree.attrs["n_test"] / tree.attrs["design_effect"]), 1)
    k = observed["k"].values
    accuracy = predictive_accuracy(
        weights.values, basis, (tree.attrs["n_classes"], effective), k, rng
    )
    group = xr.Dataset({"accuracy": (("chain", "draw", "k"), accuracy)}, coords={**coords, "k": k})
    if isinstance(data, BernsteinData):
        histogram = predictive_histogram(weights.values, data, rng)
        group[data.observed] = (("chain", "draw", "bin"), histogram)
        group = group.assign_coords(bin=observed["bin"].values)
    return group


def provenance(
    prior: Prior, likelihood: str, settings: SamplerSettings, seeds: np.random.SeedSequence
) -> dict[str, Any]:
    """Attributes that say what was fitted, how, and by which version."""
    return {
        "modeling_interface": "classex_bayes",
        "modeling_interface_version": classex_bayes.__version__,
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
