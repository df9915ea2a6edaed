"""The posterior in nutpie's form, with a log density that is compiled once per machine.

Chains start near maxima of the posterior, in coordinates in which it is nearly normal. If some
directions are far narrower than others, a sampler takes short steps in all directions, and its
chains stay near their starting points. Laplace's approximation gives scales and starting points
before the first draw.
"""

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import nutpie
import pandas as pd
from nutpie.compile_pymc import CompiledPyMCModel
from scipy.optimize import minimize

from classex_bayes.bayes.model import density
from classex_bayes.bayes.model.likelihoods import (
    FEW_ROWS,
    BernsteinData,
    LikelihoodData,
    PowerData,
)
from classex_bayes.bayes.model.priors import FUNCTION, KNOT, MixturePrior
from classex_bayes.core.ranks.threads import products_in_one_thread
from classex_bayes.typing import FloatArray, IntArray

_sample = nutpie.sample
# Number of climbs from random points. No law that was tried had more than three maxima.
_N_CLIMBS = 6
_CLIMBING = {"maxcor": 30, "maxiter": 500}
_STEP = 1e-4
_SMALLEST_CURVATURE = 0.5
_NUMBERS = ctypes.POINTER(ctypes.c_double)


class Layout(NamedTuple):
    """Free parameters, and the values that a draw derives from them."""

    free: Mapping[str, tuple[int, ...]]  # names and shapes of the unconstrained parameters
    derived: Mapping[str, tuple[int, ...]]  # names and shapes of the other variables of a draw
    places: IntArray  # (n_free,): places of the free parameters among all of `density`
    middle: FloatArray  # all, fixed or in the middle of their prior; coordinates of `from_moved`

    @property
    def start(self) -> FloatArray:
        """A point in the middle of the prior: free coordinates of `density.from_moved`."""
        return self.middle[self.places]


def layout(prior: MixturePrior) -> Layout:
    """Names, order and shapes of the parameters, as in the PyMC model.

    Positive parameters appear as logarithms, shares as log odds. Parameters that the prior lacks
    are fixed where they have no effect.
    """
    apart = prior.separation / prior.scale if prior.has_groups else 0.0
    n_functions = prior.deviations().shape[1] if prior.deviation > 0 else 0
    with np.errstate(divide="ignore"):
        middle = {
            "mu": (0.0, True),
            "tau_log__": (0.0, True),
            "share_logodds__": (0.0, prior.has_groups),
            "separation_log__": (np.log(apart), prior.has_groups),
            "imbalance": (0.0, prior.has_groups and prior.imbalance > 0),
            "tail": (prior.tail if prior.has_tail else 0.0, prior.has_tail and prior.tail_sd > 0),
            "sigma_log__": (np.log(prior.deviation), n_functions > 0),
        }
    values = np.array([value for value, _ in middle.values()])
    free = dict.fromkeys([name for name, (_, is_free) in middle.items() if is_free], ())
    places = np.flatnonzero([is_free for _, is_free in middle.values()])
    names = ["tau", *["share", "separation"] * prior.has_groups, *["sigma"] * (n_functions > 0)]
    derived = {**dict.fromkeys(names, ()), "weights": (prior.basis.knots.size,)}
    return Layout(
        free | ({"z": (n_functions,)} if n_functions else {}),
        derived,
        np.append(places, density.FIRST_Z + np.arange(n_functions)),
        np.append(values, np.zeros(n_functions)),
    )


def pack(prior: MixturePrior, data: LikelihoodData) -> FloatArray:
    """All constants of the density in one vector.

    They are, in this order, the header (`classex_bayes.bayes.model.density`), knots t
    (m,), log(1 + t) (m,), functions of the deviation (n_functions, m), the likelihood's matrix
    (n_rows, m) and its vector (n_rows,), the fixed parameters and the places of the others
    (`layout`), and the centre and the root of `whitened`, here without effect. The likelihood's
    vector holds the counts times their precision, or the whitened accuracies. Bins without
    instances do not change the likelihood and are left out.
    """
    knots, parameters = prior.basis.knots, layout(prior)
    n_free = parameters.places.size
    functions = prior.deviations().T if prior.deviation > 0 else np.empty((0, knots.size))
    if is_power := isinstance(data, PowerData):
        matrix, vector = data.matrix, data.whitened
    else:
        filled = data.counts > 0
        matrix, vector = data.matrix[filled], (data.counts * data.precision)[filled]
    matrix = np.where(np.abs(matrix) > density.NEGLIGIBLE, matrix, 0.0)
    header = np.zeros(density.HEADER)
    header[density.N_KNOTS : density.LOCATION] = (
        knots.size, len(functions), vector.size, n_free, is_power
    )  # fmt: skip
    header[density.LOCATION :] = (
        prior.location,
        prior.location_sd,
        np.log(prior.scale),
        prior.scale_log_sd,
        prior.scale_freedom,
        prior.separation if prior.has_groups else 0.0,
        prior.imbalance if prior.has_groups else 0.0,
        prior.tail,
        prior.tail_sd if prior.has_tail else 0.0,
        prior.deviation,
        prior.bandwidth,
        prior.separation if data.n_rows <= FEW_ROWS and prior.has_groups else np.inf,
    )
    arrays = knots, np.log1p(np.maximum(knots, 0)), functions, matrix, vector
    point = parameters.middle, parameters.places, np.zeros(n_free), np.eye(n_free)
    return _sized(header, *arrays, *point)


def whitened(packed: FloatArray, centre: FloatArray, root: FloatArray) -> FloatArray:
    """Constants of the density for a sampler of q, where the point is centre + root @ q."""
    return _sized(packed[: -centre.size - root.size], centre, root)


def _sized(*parts: Any) -> FloatArray:
    packed = np.concatenate([np.ravel(part) for part in parts])
    packed[density.SIZE] = packed.size
    return packed


class LogDensity:
    """Python interface to a log density of n numbers that is compiled for nutpie."""

    def __init__(self, compiled: Any, constants: FloatArray) -> None:
        self._call, self._constants = compiled.ctypes, constants

    def negative(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Minus the log density and its gradient (n,); inf and zeros if they are not finite."""
        point = np.ascontiguousarray(point)
        gradient, value = np.empty(point.size), np.empty(1)
        arrays = point, gradient, value, self._constants
        if self._call(point.size, *(array.ctypes.data_as(_NUMBERS) for array in arrays)) != 0:
            return np.inf, np.zeros(point.size)
        return -float(value[0]), -gradient

    def root_of_covariance(self, point: FloatArray) -> FloatArray:
        """Matrix R (n, n) at a maximum: R R' is the inverse of the curvature.

        Negative curvatures occur if a climb ended before a maximum. They get a positive sign. Then
        curvatures below 0.5 are raised to 0.5.
        """
        steps = _STEP * np.eye(point.size)
        rise = [self.negative(point + step)[1] - self.negative(point - step)[1] for step in steps]
        curvature = np.array(rise) / (2 * _STEP)
        values, vectors = np.linalg.eigh((curvature + curvature.T) / 2)
        return vectors / np.sqrt(np.maximum(np.abs(values), _SMALLEST_CURVATURE))


class Maxima(NamedTuple):
    """Maxima of a log density, with the mass of the normal approximation at each.

    A maximum is repeated for each climb that ends there.
    """

    points: FloatArray  # (n_climbs, n)
    share: FloatArray  # (n_climbs,): masses over their sum
    root: FloatArray  # (n, n): root of the covariance at the centre

    @property
    def centre(self) -> FloatArray:
        """The maximum of the largest mass, (n,)."""
        return self.points[self.share.argmax()]

    def draw_near_mode(self, rng: np.random.Generator) -> FloatArray:
        """Random point q (n,) such that centre + root @ q is near one of the maxima.

        The probability of a maximum is proportional to its mass times the number of climbs that
        end there. So chains rarely start where the posterior has little mass. If chains cannot move
        between several large maxima, they start at different ones and disagree.
        """
        chosen = self.points[rng.choice(self.share.size, p=self.share)]
        q = np.linalg.solve(self.root, chosen - self.centre)
        return q + rng.uniform(-1, 1, q.size)


@products_in_one_thread()
def maxima(density: LogDensity, start: FloatArray) -> Maxima:
    """Ends of climbs from random points around `start` (n,); the same at every call.

    Raises ValueError if the density is finite at none of the ends.
    """
    rng = np.random.default_rng(0)
    ends = [
        minimize(
            density.negative,
            start + rng.uniform(-1, 1, start.size),
            jac=True,
            method="L-BFGS-B",
            options=_CLIMBING,
        )
        for _ in range(_N_CLIMBS)
    ]
    ends = [end for end in ends if np.isfinite(end.fun)]
    if not ends:
        raise ValueError("the log density is not finite where climbs begin")
    roots = [density.root_of_covariance(end.x) for end in ends]
    log_mass = [
        np.linalg.slogdet(root).logabsdet - end.fun for root, end in zip(roots, ends, strict=True)
    ]
    mass = np.exp(log_mass - np.max(log_mass))
    return Maxima(np.array([end.x for end in ends]), mass / mass.sum(), roots[mass.argmax()])


def compiled_model(prior: MixturePrior, data: LikelihoodData) -> CompiledPyMCModel:
    """Posterior of the class that `nutpie.compile_pymc_model` makes from a PyMC model.

    The class is private to nutpie. If the installed version differs, any exception may be raised.
    """
    _try_out(CompiledPyMCModel)
    return _model(prior, data)


@cache
def _try_out(model_class: Any) -> None:
    """Raise unless nutpie takes a small model of this class and returns sound draws."""
    prior = MixturePrior(lower=0.0, upper=4.0, bandwidth=1.0, deviation=0.0)
    data = BernsteinData(np.ones((1, prior.basis.knots.size)), np.ones(1), 1.0)
    settings = {"draws": 2, "tune": 2, "chains": 1, "cores": 1, "seed": 0, "progress_bar": False}
    posterior = _sample(_model(prior, data), save_warmup=False, **settings)["posterior"]
    np.testing.assert_allclose(posterior["weights"].sum("knot"), np.ones((1, 2)))


def _model(prior: MixturePrior, data: LikelihoodData) -> CompiledPyMCModel:
    parameters = layout(prior)
    free, shapes = parameters.free, {**parameters.free, **parameters.derived}
    sizes = [int(np.prod(shape)) for shape in shapes.values()]
    ends = np.cumsum(sizes)
    places = [
        name if not shape else f"{name}_{j}"
        for name, shape in free.items()
        for j in range(int(np.prod(shape)))
    ]
    packed = pack(prior, data)
    modes = maxima(LogDensity(density.log_density_for_nutpie, packed), parameters.start)

    return CompiledPyMCModel(
        dims={"weights": (KNOT,), "z": (FUNCTION,)},
        reparameterized_names=[name for name in free if name.endswith("__")],
        compiled_logp_func=density.log_density_for_nutpie,
        compiled_expand_func=density.expand_for_nutpie,
        initial_point_func=lambda seed: modes.draw_near_mode(np.random.default_rng(seed)),
        shared_data={},
        shared_var_keys={},
        user_data=whitened(packed, modes.centre, modes.root),
        n_expanded=sum(sizes),
        shape_info=(
            list(shapes),
            [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)],
            [np.array(shape, dtype=np.int64) for shape in shapes.values()],
        ),
        logp_func=None,
        expand_func=None,
        _n_dim=parameters.start.size,
        _shapes=shapes,
        _coords={
            KNOT: pd.Index(prior.basis.knots),
            FUNCTION: pd.RangeIndex(shapes.get("z", (0,))[0]),
            "unconstrained_parameter": pd.Index(places),
        },
    )
