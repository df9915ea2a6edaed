"""Two forms of the moment likelihood: what the model is told about a task, and how likely it is.

Both are linear in the weights: a fixed matrix times w gives the expectation of the data. PyMC is
imported where a graph is built, since a fit does without it.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from classex_bayes.core.basis import RadialBasis, loss_bins
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import one_of
from classex_bayes.typing import FloatArray

N_BINS = 48
_N_POWERS = 12
# The floor keeps the logarithm finite in bins that only pad the shape.
SMALLEST_SHARE = 1e-300
# Directions of the accuracies whose variance is below this share of the largest are noise.
_SMALLEST_DIRECTION = 1e-3


@dataclass(frozen=True)
class BernsteinData:
    r"""Histogram of ranks and the matrix of its expectation: the default likelihood.

    :math:`\log L(w) = \sum_b n_b \log (Bw)_b / \mathrm{deff}`, a quasi-multinomial: B holds the
    Bernstein moments of the basis elements over bins of ranks, deff the design effect.

    Attributes
    ----------
    matrix : array of shape (n_bins, m)
        Probability of each bin under each basis element.
    counts : array of shape (n_bins,)
        Weighted number of instances in each bin.
    design_effect : float
        Inflation of the variance by dependence between instances.
    """

    kind: ClassVar[str] = "bernstein"
    observed: ClassVar[str] = "loss_histogram"
    rows: ClassVar[str] = "bin"
    matrix: FloatArray
    counts: FloatArray
    design_effect: float

    @classmethod
    def of(cls, task: SourceTask, basis: RadialBasis) -> Self:
        """Data of a task whose ranks are known."""
        last_loss = loss_bins(task.n_classes, N_BINS)
        return cls(
            basis.bin_probabilities(last_loss, task.n_classes),
            task.histogram(last_loss),
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
    def precision(self) -> float:
        """Weight of an instance in the log-likelihood."""
        return 1 / self.design_effect

    @property
    def effective_sample(self) -> int:
        """Number of independent instances that hold the information of the histogram."""
        return max(round(self.counts.sum() / self.design_effect), 1)

    @staticmethod
    def register(data: dict[str, Any], weights: Any) -> None:
        """Register the observed histogram in the current PyMC model."""
        import pymc as pm
        import pytensor.tensor as pt

        matrix, deff, counts = data["matrix"], data["design_effect"], data["counts"]
        share = pt.dot(matrix, weights)
        pm.CustomDist(
            BernsteinData.observed,
            share,
            deff,
            pt.sum(counts),
            logp=_histogram_logp,
            random=_histogram_random,
            signature="(b),(),()->(b)",
            observed=counts,
            dims="bin",
        )


def _histogram_logp(value: Any, share: Any, deff: Any, total: Any) -> Any:
    import pytensor.tensor as pt

    return pt.sum(value * pt.log(pt.maximum(share, SMALLEST_SHARE))) / deff


def _histogram_random(
    share: FloatArray,
    deff: FloatArray,
    total: FloatArray,
    rng: np.random.Generator | None = None,
    size: Any = None,
) -> FloatArray:
    """Histograms with the information of n / deff independent instances, rescaled to n."""
    rng = rng or np.random.default_rng()
    effective = np.maximum(np.rint(total / deff), 1).astype(int)
    share = np.maximum(share, 0)
    draws = rng.multinomial(effective, share / share.sum(-1, keepdims=True), size=size)
    return draws * (total / effective)[..., None]


@dataclass(frozen=True)
class PooledData:
    r"""Histograms of several tasks, each with a matrix, design effect and weight of its own.

    :math:`\log L(w) = \sum_t \lambda_t \sum_b n_{tb} \log (B_t w)_b / \mathrm{deff}_t`. The rows
    of all tasks lie one below the other, 48 for each, so that one compiled model serves every
    pool of so many tasks.

    Attributes
    ----------
    parts : tuple of BernsteinData
        Data of every task.
    weight : tuple of float
        lambda, in [0, 1]: the share of a task's information that no other task has
        (`classex_bayes.bayes.pooling`).
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
        own = [part.design_effect for part in self.parts]
        return np.repeat(np.array(self.weight) / own, N_BINS)

    def padded(self) -> Self:
        """Return the data as they are: every task has 48 rows."""
        return self

    @staticmethod
    def register(data: dict[str, Any], weights: Any) -> None:
        """Register the observed histograms in the current PyMC model."""
        import pymc as pm
        import pytensor.tensor as pt

        counts = data["counts"]
        pm.CustomDist(
            PooledData.observed,
            pt.dot(data["matrix"], weights),
            data["precision"],
            pt.sum(pt.reshape(counts, (-1, N_BINS)), axis=1),
            logp=_pooled_logp,
            random=_pooled_random,
            signature="(b),(b),(t)->(b)",
            observed=counts,
            dims="bin",
        )


def _pooled_logp(value: Any, share: Any, precision: Any, total: Any) -> Any:
    import pytensor.tensor as pt

    return pt.sum(value * precision * pt.log(pt.maximum(share, SMALLEST_SHARE)))


def _pooled_random(
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
        _histogram_random(
            share[..., N_BINS * t : N_BINS * (t + 1)], deff[..., t], total[..., t], rng, size
        )
        for t in range(total.shape[-1])
    ]
    return np.concatenate(blocks, axis=-1)


@dataclass(frozen=True)
class PowerData:
    r"""Accuracies at some k, whitened: for tasks that know no ranks.

    With Sigma the covariance of ATA on a grid of k and A the accuracy matrix of the basis,
    :math:`T (ATA - A w) \sim N(0, I)` where T whitens Sigma and drops directions that are noise.

    Attributes
    ----------
    matrix : array of shape (n_k, m)
        T A; zero rows where directions were dropped.
    whitened : array of shape (n_k,)
        T ATA.
    """

    kind: ClassVar[str] = "power"
    observed: ClassVar[str] = "whitened_accuracy"
    rows: ClassVar[str] = "direction"
    matrix: FloatArray
    whitened: FloatArray

    @classmethod
    def of(cls, task: SourceTask, basis: RadialBasis) -> Self:
        """Data of a task, on its grid of k."""
        k = task.grid(_N_POWERS)
        accuracy, covariance = task.accuracy(k), task.accuracy_cov(k)
        # Half an instance of doubt: an accuracy without errors is not known without error.
        share = (accuracy * task.n_test + 0.5) / (task.n_test + 1)
        floor = share * (1 - share) / task.n_test
        covariance = covariance + np.diag(np.maximum(floor - np.diag(covariance), 0))
        sd = np.sqrt(np.diag(covariance))
        values, vectors = np.linalg.eigh(covariance / np.outer(sd, sd))
        kept = values > _SMALLEST_DIRECTION * values[-1]
        scale = np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
        whiten = (scale * vectors).T / sd
        return cls(whiten @ basis.accuracy(k), whiten @ accuracy)

    def padded(self) -> Self:
        """Return the data as they are: the number of accuracies seldom varies."""
        return self

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
            dims="direction",
        )


LikelihoodData = BernsteinData | PooledData | PowerData
LIKELIHOODS: dict[str, type[BernsteinData] | type[PowerData]] = {
    kind.kind: kind for kind in (BernsteinData, PowerData)
}


def likelihood_data(
    task: SourceTask, basis: RadialBasis, likelihood: str
) -> BernsteinData | PowerData:
    """Data of a task in the form `likelihood`: "bernstein", "power", or "auto".

    "auto" is the Bernstein form where ranks are known and the power form for a bare curve.
    """
    one_of(likelihood, ("auto", *LIKELIHOODS), "likelihood")
    curve_only = task.kind == "accuracies"
    if likelihood == "auto":
        likelihood = PowerData.kind if curve_only else BernsteinData.kind
    if likelihood == BernsteinData.kind and curve_only:
        raise DataError(
            "likelihood: 'bernstein' needs ranks and the task has accuracies alone; use 'power'"
        )
    return LIKELIHOODS[likelihood].of(task, basis)


def arrays(data: LikelihoodData) -> dict[str, Any]:
    """What the compiled model takes of the data, by name."""
    if isinstance(data, PooledData):
        return {"matrix": data.matrix, "counts": data.counts, "precision": data.precision}
    return {field.name: getattr(data, field.name) for field in fields(data)}
