"""Forms of the moment likelihood: data of the tasks and their density given the weights.

In each form the expectation of the data is linear in the weights: a fixed matrix times w. Only
functions that build a graph import PyMC, because a fit can do without it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from classex_bayes.arguments import one_of
from classex_bayes.core.basis import N_BINS, RadialBasis
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

_N_POWERS = 12
# The floor keeps the logarithm finite in bins that only pad the shape.
SMALLEST_SHARE = 1e-300
# Directions of the accuracies whose variance is below this share of the largest are noise.
_SMALLEST_DIRECTION = 1e-3


@dataclass(frozen=True)
class Likelihood:
    """Data in the form that a likelihood takes. The fields of a subclass are its arrays."""

    kind: ClassVar[str]
    rows: ClassVar[str]  # dimension along which the data lie
    descriptions: ClassVar[Mapping[str, str]] = {}  # of parameters that the likelihood adds

    if TYPE_CHECKING:  # a field of most subclasses

        @property
        def matrix(self) -> FloatArray:
            """Its product with the weights is the expectation of the data."""

        @staticmethod
        def register(data: dict[str, Any], weights: Any) -> None:
            """Register the observed data in the current PyMC model."""

    def padded(self) -> Self:
        """Return the same data in the shape of the compiled model."""
        return self

    def arrays(self) -> dict[str, Any]:
        """Arrays that the compiled model takes, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class BernsteinData(Likelihood):
    r"""Histogram of ranks and the matrix of its expectation: the default likelihood.

    :math:`\log L(w) = \sum_b n_b \log (Bw)_b / \mathrm{deff}`, a quasi-multinomial: B holds the
    Bernstein moments of the basis elements over bins of ranks, deff the design effect. If ranks
    are known up to intervals, bins are wider: decisions have two bins, rank 1 and all other ranks.
    """

    kind: ClassVar[str] = "bernstein"
    observed: ClassVar[str] = "rank_histogram"
    rows: ClassVar[str] = "bin"
    matrix: FloatArray  # (n_bins, m): probability of each bin under each basis element
    counts: FloatArray  # (n_bins,): weighted number of instances in each bin
    design_effect: float  # inflation of the variance by dependence between instances

    @classmethod
    def of(cls, task: SourceTask, basis: RadialBasis) -> Self:
        """Data of a task with ranks, exact or known up to intervals."""
        ranks = task.require("ranks")
        return cls(
            ranks.bin_probabilities(basis),
            ranks.histogram(ranks.n_better_bins),
            task.design_effect(),
        )

    def padded(self) -> Self:
        """Return the same data with 48 bins, so that one compiled model serves every k1."""
        missing = N_BINS - self.counts.size
        return replace(
            self,
            matrix=np.pad(self.matrix, ((0, missing), (0, 0))),
            counts=np.pad(self.counts, (0, missing)),
        )

    @property
    def parts(self) -> tuple[Self, ...]:
        """Data of every task, as in `PooledData`. There is one task."""
        return (self,)

    @property
    def weight(self) -> tuple[float, ...]:
        """Weight of every task, as in `PooledData`. The only task has the weight 1."""
        return (1.0,)

    @property
    def precision(self) -> float:
        """Weight of an instance in the log-likelihood."""
        return 1 / self.design_effect

    @property
    def effective_sample(self) -> int:
        """Number of independent instances that hold the information of the histogram."""
        return int(_effective_sample(self.counts.sum(), self.design_effect))

    def log_likelihood(self, weights: FloatArray) -> FloatArray:
        """Log-likelihood of weights (..., m), up to a constant; one for each column of counts."""
        log_shares = np.log(np.maximum(weights @ self.matrix.T, SMALLEST_SHARE))
        return log_shares @ self.counts / self.design_effect

    def replicates(self, weights: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Histograms of replicated tasks: Multinomial(n / deff, B w), rescaled to n."""
        share = weights @ self.matrix.T
        return _random_histogram(share, self.design_effect, float(self.counts.sum()), rng)

    @staticmethod
    def register(data: dict[str, Any], weights: Any) -> None:
        """Register the observed histogram in the current PyMC model."""
        import pytensor.tensor as pt

        size = data["design_effect"], pt.sum(data["counts"])
        _register_histogram(
            data, weights, size, _histogram_logp, _random_histogram, "(b),(),()->(b)"
        )


@dataclass(frozen=True)
class PooledData(Likelihood):
    r"""Histograms of several tasks, each with a matrix, design effect and weight.

    :math:`\log L(w) = \sum_t \lambda_t \sum_b n_{tb} \log (B_t w)_b / \mathrm{deff}_t`. The rows of
    all tasks are concatenated, 48 for each task, so that one compiled model serves every pool of
    the same number of tasks. The `weight` :math:`\lambda_t` of a task, in [0, 1], is the share of
    its information that it adds to the pool (`classex_bayes.bayes.pooling`).
    """

    kind: ClassVar[str] = "pooled"
    observed: ClassVar[str] = BernsteinData.observed
    rows: ClassVar[str] = BernsteinData.rows
    parts: tuple[BernsteinData, ...]
    weight: tuple[float, ...]

    @property
    def matrix(self) -> FloatArray:
        """Probability of each bin of each task under each basis element, (48 n_tasks, m)."""
        return np.vstack([part.padded().matrix for part in self.parts])

    @property
    def counts(self) -> FloatArray:
        """Weighted number of instances in each bin of each task, (48 n_tasks,)."""
        return np.concatenate([part.padded().counts for part in self.parts])

    @property
    def precision(self) -> FloatArray:
        """Weight over design effect of the task of each row, (48 n_tasks,)."""
        design_effect = [part.design_effect for part in self.parts]
        return np.repeat(np.array(self.weight) / design_effect, N_BINS)

    def arrays(self) -> dict[str, Any]:
        """Arrays that the compiled model takes, by name."""
        return {"matrix": self.matrix, "counts": self.counts, "precision": self.precision}

    def log_likelihood(self, weights: FloatArray) -> FloatArray:
        """Log-likelihood of weights (..., m), up to a constant."""
        parts = zip(self.weight, self.parts, strict=True)
        return np.sum([share * part.log_likelihood(weights) for share, part in parts], axis=0)

    def replicates(self, weights: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Histograms of replicated tasks, each with the information that it adds to the pool."""
        total = np.array([part.counts.sum() for part in self.parts])
        return random_pool(weights @ self.matrix.T, self.precision, total, rng)

    @staticmethod
    def register(data: dict[str, Any], weights: Any) -> None:
        """Register the observed histograms in the current PyMC model."""
        import pytensor.tensor as pt

        total = pt.sum(pt.reshape(data["counts"], (-1, N_BINS)), axis=1)
        size = data["precision"], total
        _register_histogram(data, weights, size, _pooled_logp, random_pool, "(b),(b),(t)->(b)")


def _register_histogram(
    data: dict[str, Any],
    weights: Any,
    size: tuple[Any, Any],
    logp: Callable[..., Any],
    random: Callable[..., FloatArray],
    signature: str,
) -> None:
    import pymc as pm
    import pytensor.tensor as pt

    pm.CustomDist(
        BernsteinData.observed,
        pt.dot(data["matrix"], weights),
        *size,
        logp=logp,
        random=random,
        signature=signature,
        observed=data["counts"],
        dims=BernsteinData.rows,
    )


def _histogram_logp(value: Any, share: Any, deff: Any, total: Any) -> Any:
    import pytensor.tensor as pt

    return pt.sum(value * pt.log(pt.maximum(share, SMALLEST_SHARE))) / deff


def _pooled_logp(value: Any, share: Any, precision: Any, total: Any) -> Any:
    import pytensor.tensor as pt

    return pt.sum(value * precision * pt.log(pt.maximum(share, SMALLEST_SHARE)))


def _effective_sample(total: Any, deff: Any) -> IntArray:
    return np.maximum(np.rint(total / deff), 1).astype(int)


def _random_histogram(
    share: FloatArray,
    deff: FloatArray | float,
    total: FloatArray | float,
    rng: np.random.Generator | None = None,
    size: Any = None,
) -> FloatArray:
    """Histograms with the information of n / deff independent instances, rescaled to n."""
    rng = rng or np.random.default_rng()
    effective = _effective_sample(total, deff)
    share = np.maximum(share, 0)
    draws = rng.multinomial(effective, share / share.sum(-1, keepdims=True), size=size)
    return draws * (total / effective)[..., None]


def random_pool(
    share: FloatArray,
    precision: FloatArray,
    total: FloatArray,
    rng: np.random.Generator | None = None,
    size: Any = None,
) -> FloatArray:
    """Histograms of every task, each with the information that it adds to the pool."""
    rng = rng or np.random.default_rng()
    deff = 1 / np.maximum(precision[..., ::N_BINS], SMALLEST_SHARE)
    blocks = [
        _random_histogram(
            share[..., N_BINS * t : N_BINS * (t + 1)], deff[..., t], total[..., t], rng, size
        )
        for t in range(total.shape[-1])
    ]
    return np.concatenate(blocks, axis=-1)


@dataclass(frozen=True)
class PowerData(Likelihood):
    r"""Whitened accuracies on a grid of k, for tasks made from accuracies.

    With Sigma the covariance of ATA on the grid and A the accuracy matrix of the basis,
    :math:`T (ATA - A w) \sim N(0, I)`. T whitens Sigma and drops directions that are noise.
    """

    kind: ClassVar[str] = "power"
    observed: ClassVar[str] = "whitened_accuracy"
    rows: ClassVar[str] = "direction"
    matrix: FloatArray  # (n_k, m): T A; zero rows where directions were dropped
    whitened: FloatArray  # (n_k,): T ATA

    @classmethod
    def of(cls, task: SourceTask, basis: RadialBasis) -> Self:
        """Data of a task on a grid of k. Raises DataError if the task has no accuracies."""
        k = task.grid(_N_POWERS)
        if k.size == 0:
            raise DataError(
                f"likelihood: 'power' needs accuracies, but none is known, because "
                f"{task.table.why_unknown}; use 'bernstein'"
            )
        accuracy, covariance = task.accuracy(k), task.accuracy_cov(k)
        # Half an instance is added, because an accuracy of 0 or 1 has sampling error too.
        share = (accuracy * task.n_test + 0.5) / (task.n_test + 1)
        floor = share * (1 - share) / task.n_test
        covariance = covariance + np.diag(np.maximum(floor - np.diag(covariance), 0))
        whiten = whitening(covariance, _SMALLEST_DIRECTION)
        return cls(whiten @ basis.accuracy(k), whiten @ accuracy)

    def log_likelihood(self, weights: FloatArray) -> FloatArray:
        """Log-likelihood of weights (..., m), up to a constant."""
        return -0.5 * ((self.whitened - weights @ self.matrix.T) ** 2).sum(axis=-1)

    @staticmethod
    def register(data: dict[str, Any], weights: Any) -> None:
        """Register the observed accuracies in the current PyMC model."""
        import pymc as pm
        import pytensor.tensor as pt

        pm.Normal(
            PowerData.observed,
            pt.dot(data["matrix"], weights),
            1.0,
            observed=data["whitened"],
            dims=PowerData.rows,
        )


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


LikelihoodData = BernsteinData | PooledData | PowerData


def likelihood_data(
    task: SourceTask, basis: RadialBasis, likelihood: str
) -> BernsteinData | PowerData:
    """Data of a task in the form `likelihood`: "bernstein", "power", or "auto".

    "auto" is the power form for a task made from accuracies and the Bernstein form for all others.
    """
    one_of(likelihood, ("auto", BernsteinData.kind, PowerData.kind), "likelihood")
    curve_only = task.table.kind == "accuracies"
    if likelihood == BernsteinData.kind and curve_only:
        raise DataError(
            "likelihood: 'bernstein' needs ranks, but the task was made from accuracies; use "
            "'power'"
        )
    power = curve_only or likelihood == PowerData.kind
    return PowerData.of(task, basis) if power else BernsteinData.of(task, basis)
