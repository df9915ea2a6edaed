"""The PyMC model: prior of the weights and moment likelihood."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import xarray as xr

from classex_bayes.bayes.model.likelihoods import Likelihood
from classex_bayes.bayes.model.priors import KNOT, Prior
from classex_bayes.typing import NumberArray


def build_model(prior: Prior, data: Likelihood, row: NumberArray | None = None) -> pm.Model:
    """Build the model of a prior and data. The arrays of the data are `pm.Data`.

    The model has the parameters of the prior, the deterministic "weights" (dimension "knot") and
    the observed variable of the likelihood. `row` (n_rows,) is the coordinate of the data. Without
    it, or if it has another length, the rows are numbered.
    """
    n_rows = data.matrix.shape[0]
    if row is None or row.size != n_rows:
        row = np.arange(n_rows)
    coords = {KNOT: prior.basis.knots, data.rows: row}
    dims = {"matrix": (data.rows, KNOT), "counts": data.rows, "whitened": data.rows}
    with pm.Model(coords=coords) as model:
        containers = {
            name: pm.Data(name, value, dims=dims.get(name)) for name, value in data.arrays().items()
        }
        log_weights = prior.log_weights()
        # Written out, the softmax compiles in half the time of the fused operation.
        unnormalised = pt.exp(log_weights - pt.max(log_weights))
        weights = pm.Deterministic("weights", unnormalised / pt.sum(unnormalised), dims=KNOT)
        type(data).register(containers, weights)
    return model


def prior_draws(prior: Prior, data: Likelihood, draws: int, rng: np.random.Generator) -> xr.Dataset:
    """Draw parameters and weights from the prior: dimensions chain (one), draw, knot."""
    model = build_model(prior, data)
    variables = [*model.free_RVs, model["weights"]]
    # Compiling for speed would take longer than all the draws.
    values = pm.draw(variables, draws, random_seed=int(rng.integers(2**32)), mode="FAST_COMPILE")
    if draws == 1:
        values = [np.asarray(value)[None] for value in values]
    group = xr.Dataset(coords={"chain": [0], "draw": np.arange(draws)})
    for variable, value in zip(variables, values, strict=True):
        inner = model.named_vars_to_dims.get(variable.name, ())
        unnamed = [f"{variable.name}_dim_{axis}" for axis in range(np.ndim(value) - 1)]
        group[variable.name] = (["chain", "draw", *(inner or unnamed)], np.asarray(value)[None])
    return group.assign_coords(
        {dim: list(model.coords[dim]) for dim in group.dims if dim in model.coords}
    )
