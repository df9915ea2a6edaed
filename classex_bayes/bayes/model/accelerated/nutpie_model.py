"""The sampler's view of a posterior, without compiling its PyMC model."""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeGuard

import numba
import numpy as np
import pandas as pd
from numba import types
from nutpie.compile_pymc import CompiledPyMCModel

from classex_bayes.bayes.model.accelerated import density
from classex_bayes.bayes.model.likelihoods import (
    BernsteinData,
    LikelihoodData,
    PooledData,
    PowerData,
)
from classex_bayes.bayes.model.priors import DirichletPrior, MixturePrior, Prior
from classex_bayes.core.jit import callback
from classex_bayes.typing import FloatArray

_NOT_FINITE = 3  # makes the draw a divergent one
_numbers = types.CPointer(types.double)


@callback(types.int64(types.uint64, _numbers, _numbers, _numbers, _numbers))
def _log_density(n: Any, x: Any, gradient: Any, value: Any, packed: Any) -> int:
    constants = numba.carray(packed, (int(packed[density.SIZE]),))
    slope = numba.carray(gradient, (n,))
    found = density.moved_log_density(numba.carray(x, (n,)), constants, slope)
    value[0] = found
    finite = np.isfinite(found)
    for j in range(slope.size):
        finite = finite and np.isfinite(slope[j])
    return 0 if finite else _NOT_FINITE


@callback(types.int64(types.uint64, types.uint64, _numbers, _numbers, _numbers))
def _keep(n: Any, n_kept: Any, x: Any, kept: Any, packed: Any) -> int:
    constants = numba.carray(packed, (int(packed[density.SIZE]),))
    parameters = np.empty(n)
    density.from_moved(numba.carray(x, (n,)), constants, parameters)
    density.keep(parameters, constants, numba.carray(kept, (n_kept,)))
    return 0


def is_written_out(prior: Prior, data: Any) -> TypeGuard[MixturePrior | DirichletPrior]:
    """Whether `density` knows prior and likelihood; else the PyMC model has to be compiled."""
    known = BernsteinData, PooledData, PowerData
    return type(prior) in (MixturePrior, DirichletPrior) and isinstance(data, known)


class Layout(NamedTuple):
    """Parameters in the order in which `density` takes them."""

    free: Mapping[str, tuple[int, ...]]  # names and shapes of the unconstrained parameters
    derived: Mapping[str, tuple[int, ...]]  # what a draw keeps beside them
    start: FloatArray  # a point in the middle of the prior, in the coordinates that are moved


def layout(prior: MixturePrior | DirichletPrior) -> Layout:
    """Names, order and shapes of the parameters, as PyMC has them.

    Parameters
    ----------
    prior : MixturePrior or DirichletPrior
        Prior on the weights.

    Returns
    -------
    Layout
        Positive parameters appear as logarithms, shares as log odds.
    """
    n_knots = prior.basis.knots.size
    if isinstance(prior, DirichletPrior):
        free = {"gamma_log__": (n_knots,)}
        derived = {"gamma": (n_knots,), "weights": (n_knots,)}
        return Layout(free, derived, np.full(n_knots, np.log(prior.concentration)))
    n_functions = prior.deviations().shape[1] if prior.deviation > 0 else 0
    scale, apart = prior.scale, prior.separation / prior.scale
    if prior.has_groups:
        scale *= np.sqrt(1 + apart**2 / 4)
    start: dict[str, Any] = {"mu": prior.location, "tau_log__": np.log(scale)}
    names = ["tau"]
    if prior.has_groups:
        start |= {"share_logodds__": 0.0, "separation_log__": np.log(apart)}
        names += ["share", "separation"]
        if prior.imbalance > 0:
            start["imbalance"] = 0.0
    if prior.deviation > 0:
        start |= {"sigma_log__": np.log(prior.deviation), "z": np.zeros(n_functions)}
        names.append("sigma")
    shapes = {name: np.shape(value) for name, value in start.items()}
    kept = {**dict.fromkeys(names, ()), "weights": (n_knots,)}
    return Layout(shapes, kept, np.concatenate([np.ravel(value) for value in start.values()]))


def pack(prior: MixturePrior | DirichletPrior, data: LikelihoodData) -> FloatArray:
    """All constants of the density in one vector.

    Parameters
    ----------
    prior : MixturePrior or DirichletPrior
        Prior on the weights.
    data : BernsteinData, PooledData or PowerData
        What the tasks say.

    Returns
    -------
    array
        Header (`classex_bayes.bayes.model.accelerated.density`), knots, functions of the deviation
        (n_functions, m), the likelihood's matrix (n_rows, m) and vector (n_rows,): counts over the
        design effect, or whitened accuracies. Bins without instances are
        left out: they say nothing.
    """
    knots = prior.basis.knots
    functions: FloatArray = np.empty((0, knots.size))
    header = np.zeros(density.HEADER)
    if isinstance(prior, DirichletPrior):
        header[density.IS_DIRICHLET] = True
        header[density.CONCENTRATION] = prior.concentration
    else:
        if prior.deviation > 0:
            functions = prior.deviations().T
        header[density.HAS_GROUPS] = prior.has_groups
        header[density.IS_MONOTONE] = prior.monotone
        header[density.LOCATION : density.HEADER] = (
            prior.location,
            prior.location_sd,
            np.log(prior.scale),
            prior.scale_log_sd,
            prior.separation,
            prior.imbalance,
            prior.deviation,
            prior.bandwidth,
        )
    if isinstance(data, PowerData):
        matrix, vector = data.matrix, data.whitened
    else:
        told = data.counts > 0
        matrix, vector = data.matrix[told], (data.counts * data.precision)[told]
    matrix = np.where(np.abs(matrix) > density.NEGLIGIBLE, matrix, 0.0)
    header[density.IS_POWER] = isinstance(data, PowerData)
    header[density.N_KNOTS] = knots.size
    header[density.N_FUNCTIONS] = functions.shape[0]
    header[density.N_ROWS] = vector.size
    packed = np.concatenate([header, knots, functions.ravel(), matrix.ravel(), vector])
    packed[density.SIZE] = packed.size
    return packed


def compiled_model(prior: MixturePrior | DirichletPrior, data: LikelihoodData) -> CompiledPyMCModel:
    """Posterior in the form that `nutpie.sample` takes.

    Parameters
    ----------
    prior : MixturePrior or DirichletPrior
        Prior on the weights.
    data : BernsteinData, PooledData or PowerData
        What the tasks say.

    Returns
    -------
    CompiledPyMCModel
        What `nutpie.compile_pymc_model` returns for the PyMC model, with functions that are
        compiled once on a machine.
    """
    free, derived, start = layout(prior)
    shapes = {**free, **derived}
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes.values()])
    slices = [
        slice(end - int(np.prod(shape)), end)
        for end, shape in zip(ends, shapes.values(), strict=True)
    ]
    places = [
        name if not shape else f"{name}_{j}"
        for name, shape in free.items()
        for j in range(int(np.prod(shape)))
    ]

    def initial_point(seed: Any) -> FloatArray:
        return start + np.random.default_rng(seed).uniform(-1, 1, start.size)

    return CompiledPyMCModel(
        dims={"weights": ("knot",)},
        reparameterized_names=[name for name in free if name.endswith("__")],
        compiled_logp_func=_log_density,
        compiled_expand_func=_keep,
        initial_point_func=initial_point,
        shared_data={},
        shared_var_keys={},
        user_data=pack(prior, data),
        n_expanded=int(ends[-1]),
        shape_info=(list(shapes), slices, [np.array(s, dtype=np.int64) for s in shapes.values()]),
        logp_func=None,
        expand_func=None,
        _n_dim=start.size,
        _shapes=shapes,
        _coords={
            "knot": pd.Index(prior.basis.knots),
            "unconstrained_parameter": pd.Index(places),
        },
    )
