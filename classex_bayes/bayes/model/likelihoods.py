"""Two forms of the moment likelihood, and the PyMC model of a prior and a likelihood.

In each form the expectation of the data is linear in the weights: a fixed matrix times w. Only
functions that build a graph import PyMC, because a fit can do without it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import xarray as xr

from classex_bayes.bayes.model.priors import KNOT, Prior
from classex_bayes.core.basis import N_BINS, RadialBasis
from classex_bayes.exceptions import DataError
from classex_bayes.task.rank_bins import bin_counts, bin_probabilities
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, NumberArray

if TYPE_CHECKING:
    import pymc as pm

# Number of independent instances that a likelihood counts as at most (`coarsening`).
LARGEST_SAMPLE = 5_000
# Data of at most so many rows, such as decisions, determine one accuracy.
FEW_ROWS = 2
_N_POWERS = 12
# The floor keeps the logarithm finite in bins that only pad the shape.
SMALLEST_SHARE = 1e-300
# Directions of the accuracies whose variance is below this share of the largest are noise.
_SMALLEST_DIRECTION = 1e-3


@dataclass(frozen=True)
class Likelihood(ABC):
    """Data in the form that a likelihood takes. The fields of a subclass are its arrays."""

    rows: ClassVar[str]  # dimension along which the data lie
    observed: ClassVar[str]  # name of the observed variable
    descriptions: ClassVar[Mapping[str, str]] = {}  # of parameters that the likelihood adds

    if TYPE_CHECKING:  # a field of every subclass
        matrix: FloatArray  # its product with the weights is the expectation of the data

    @property
    def n_rows(self) -> int:
        """Number of rows of the matrix that are not zero."""
        return int(np.count_nonzero(self.matrix.any(axis=1)))

    @abstractmethod
    def register(self, data: dict[str, Any], weights: Any) -> None:
        """Register the observed data, `pm.Data` by name, in the current PyMC model."""

    def padded(self) -> Self:
        """Return the same data in the shape of the compiled model."""
        return self

    def arrays(self) -> dict[str, Any]:
        """Arrays that the compiled model takes, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def coarsening(n_effective: float) -> float:
    r"""Power to which the likelihood is raised, :math:`1 / \sqrt{1 + (n / n_0)^2}`.

    Here n is the number of instances over the design effect, summed over all fitted tasks, and
    :math:`n_0` is `LARGEST_SAMPLE` (docs/background.md explains why).

    References
    ----------
    Miller and Dunson, Journal of the American Statistical Association 114, 2019 (coarsened
    posteriors, with the power :math:`1 / (1 + n / n_0)`).
    """
    return float(1 / np.sqrt(1 + (n_effective / LARGEST_SAMPLE) ** 2))


@dataclass(frozen=True)
class BernsteinData(Likelihood):
    r"""Histograms of ranks and the matrix of their expectation: the default likelihood.

    :math:`\log L(w) = \sum_b p_b n_b \log (Bw)_b`, a quasi-multinomial: B holds the Bernstein
    moments of the basis elements over bins of ranks, and p the precision of the task, which is the
    power of `coarsening` over the design effect. If ranks are
    known up to intervals, bins are wider: decisions have two bins, rank 1 and all other ranks. The
    bins of several tasks follow each other.
    """

    observed: ClassVar[str] = "rank_histogram"
    rows: ClassVar[str] = "bin"
    matrix: FloatArray  # (n_bins, m): probability of each bin under each basis element
    counts: FloatArray  # (n_bins,): weighted number of instances in each bin
    precision: Any = 1.0  # (n_bins,), or one number for all: weight of an instance of the task
    task: Any = 0  # (n_bins,), or one number for all: number of the task

    def __post_init__(self) -> None:
        """Repeat values that are the same for all bins."""
        for name in ("precision", "task"):
            repeated = np.broadcast_to(getattr(self, name), self.counts.shape)
            object.__setattr__(self, name, repeated)

    def arrays(self) -> dict[str, Any]:
        """Arrays that the compiled model takes, by name. The numbers of the tasks are fixed."""
        return {name: getattr(self, name) for name in ("matrix", "counts", "precision")}

    @classmethod
    def of(cls, task: SourceTask, basis: RadialBasis, power: float = 1.0) -> Self:
        """Data of a task with ranks, exact or known up to intervals; `power` as of `coarsening`."""
        table = task.require("ranks")
        precision = power / task.design_effect()
        return cls(bin_probabilities(table, basis), bin_counts(table), precision)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Data of several tasks."""
        return cls(
            np.vstack([part.matrix for part in parts]),
            np.concatenate([part.counts for part in parts]),
            np.concatenate([part.precision for part in parts]),
            np.repeat(np.arange(len(parts)), [part.counts.size for part in parts]),
        )

    def part(self, number: int) -> Self:
        """Data of one of the tasks."""
        rows = self.task == number
        return type(self)(self.matrix[rows], self.counts[rows], self.precision[rows])

    @property
    def parts(self) -> list[Self]:
        """Data of every task."""
        return [self.part(number) for number in range(self.task[-1] + 1)]

    def padded(self) -> Self:
        """Return the same data with 48 bins a task, so that one compiled model serves every k1."""
        parts = []
        for part in self.parts:
            missing = 0, N_BINS - part.counts.size
            matrix = np.pad(part.matrix, (missing, (0, 0)))
            parts.append(type(self)(matrix, np.pad(part.counts, missing), part.precision[0]))
        return self.joined(parts)

    @property
    def effective_sample(self) -> int:
        """Number of independent instances that the histogram of a task counts as."""
        return max(round(self.counts.sum() * self.precision[0]), 1)

    @property
    def values(self) -> FloatArray:
        """The observed data."""
        return self.counts

    def log_shares(self, weights: FloatArray) -> FloatArray:
        """Log-probabilities (..., n_bins) of the bins under weights (..., m)."""
        return np.log(np.maximum(weights @ self.matrix.T, SMALLEST_SHARE))

    def log_likelihood(self, weights: FloatArray) -> FloatArray:
        """Log-likelihood of weights (..., m), up to a constant."""
        return self.log_shares(weights) @ (self.counts * self.precision)

    def replicates(self, weights: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Histograms of replicated tasks: Multinomial(p n, B w) of each, rescaled to n."""
        return self._random(weights @ self.matrix.T, self.precision, self.counts, rng)

    def _random(
        self,
        share: FloatArray,
        precision: FloatArray,
        counts: FloatArray,
        rng: np.random.Generator | None = None,
        size: Any = None,
    ) -> FloatArray:
        """Histograms of p n independent instances, rescaled to n."""
        rng, histograms = rng or np.random.default_rng(), []
        for rows in (self.task == number for number in range(self.task[-1] + 1)):
            total, of_task = counts[rows].sum(), np.maximum(share[..., rows], 0)
            effective = max(round(total * precision[rows][0]), 1)
            of_task = of_task / of_task.sum(-1, keepdims=True)
            histograms.append(rng.multinomial(effective, of_task, size=size) * (total / effective))
        return np.concatenate(histograms, axis=-1)

    def register(self, data: dict[str, Any], weights: Any) -> None:
        """Register the observed histograms in the current PyMC model."""
        import pymc as pm
        import pytensor.tensor as pt

        pm.CustomDist(
            self.observed,
            pt.dot(data["matrix"], weights),
            data["precision"],
            data["counts"],
            logp=_histogram_logp,
            random=self._random,
            signature="(b),(b),(b)->(b)",
            observed=data["counts"],
            dims=self.rows,
        )


def _histogram_logp(value: Any, share: Any, precision: Any, counts: Any) -> Any:
    import pytensor.tensor as pt

    return pt.sum(value * precision * pt.log(pt.maximum(share, SMALLEST_SHARE)))


@dataclass(frozen=True)
class PowerData(Likelihood):
    r"""Whitened accuracies on a grid of k, for tasks made from accuracies.

    With Sigma the covariance of ATA on the grid and A the accuracy matrix of the basis,
    :math:`T (ATA - A w) \sim N(0, I)`. T whitens Sigma over the power of `coarsening` and drops
    directions that are noise.
    """

    observed: ClassVar[str] = "whitened_accuracy"
    rows: ClassVar[str] = "direction"
    matrix: FloatArray  # (n_k, m): T A; zero rows where directions were dropped
    whitened: FloatArray  # (n_k,): T ATA

    @classmethod
    def of(cls, task: SourceTask, basis: RadialBasis, power: float = 1.0) -> Self:
        """Data of a task on a grid of k. Raises DataError if the task has no accuracies."""
        k = task.grid(_N_POWERS)
        if k.size == 0:
            raise DataError(
                "task: ranks that are known up to intervals cannot be fitted together with an "
                f"accuracy curve, because {task.table.why_unknown}; fit them one by one"
            )
        accuracy, covariance = task.accuracy(k), task.accuracy_cov(k)
        # Half an instance is added, because an accuracy of 0 or 1 has sampling error too.
        share = (accuracy * task.n_test + 0.5) / (task.n_test + 1)
        floor = share * (1 - share) / task.n_test
        covariance = covariance + np.diag(np.maximum(floor - np.diag(covariance), 0))
        whiten = whitening(covariance / power, _SMALLEST_DIRECTION)
        return cls(whiten @ basis.accuracy(k), whiten @ accuracy)

    @property
    def values(self) -> FloatArray:
        """The observed data."""
        return self.whitened

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Data of several tasks."""
        matrix = np.vstack([part.matrix for part in parts])
        return cls(matrix, np.concatenate([part.whitened for part in parts]))

    def log_likelihood(self, weights: FloatArray) -> FloatArray:
        """Log-likelihood of weights (..., m), up to a constant."""
        return -0.5 * ((self.whitened - weights @ self.matrix.T) ** 2).sum(axis=-1)

    def register(self, data: dict[str, Any], weights: Any) -> None:
        """Register the observed accuracies in the current PyMC model."""
        import pymc as pm
        import pytensor.tensor as pt

        expected = pt.dot(data["matrix"], weights)
        pm.Normal(self.observed, expected, 1.0, observed=data["whitened"], dims=self.rows)


def whitening(covariance: FloatArray, smallest: float) -> FloatArray:
    """Matrix (n, n) that makes noise with this covariance standard normal.

    Directions whose variance is below `smallest` times the largest get zero rows.
    """
    sd = np.sqrt(np.diag(covariance))
    scaled = covariance / np.where(sd > 0, np.outer(sd, sd), 1.0)
    values, vectors = np.linalg.eigh(scaled)
    kept = values > max(smallest * values[-1], 0.0)
    scale = np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
    return (scale * vectors).T / np.where(sd > 0, sd, 1.0)


LikelihoodData = BernsteinData | PowerData


def build_model(prior: Prior, data: Likelihood, tree: xr.DataTree | None = None) -> "pm.Model":
    """Build the model of a prior and data. The arrays of the data are `pm.Data`.

    The model has the parameters of the prior, the deterministic "weights" (dimension "knot") and
    the observed variable of the likelihood. The group observed_data of `tree` has the coordinate of
    the data. Without it the rows are numbered.
    """
    import pymc as pm
    import pytensor.tensor as pt

    row: NumberArray = np.arange(len(data.matrix))
    if tree is not None and data.rows in tree["observed_data"].coords:
        row = tree["observed_data"].coords[data.rows].values
    coords = {KNOT: prior.basis.knots, data.rows: row}
    dims = {"matrix": (data.rows, KNOT)} | dict.fromkeys(
        ("counts", "precision", "whitened"), data.rows
    )
    with pm.Model(coords=coords) as model:
        containers = {
            name: pm.Data(name, value, dims=dims.get(name)) for name, value in data.arrays().items()
        }
        log_weights = prior.log_weights()
        # Written out, the softmax compiles in half the time of the fused operation.
        unnormalised = pt.exp(log_weights - pt.max(log_weights))
        weights = pm.Deterministic("weights", unnormalised / pt.sum(unnormalised), dims=KNOT)
        data.register(containers, weights)
    return model


def prior_draws(prior: Prior, data: Likelihood, draws: int, rng: np.random.Generator) -> xr.Dataset:
    """Draw parameters and weights from the prior: dimensions chain (one), draw, knot."""
    import pymc as pm

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
