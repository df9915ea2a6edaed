"""Distance of a posterior below the best likelihood that a law on the knots can reach."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from classex_bayes.bayes.model.likelihoods import (
    SMALLEST_SHARE,
    BernsteinData,
    LikelihoodData,
    PooledData,
    PowerData,
)
from classex_bayes.estimators.pseudolikelihood.mixture_weights import likeliest_weights
from classex_bayes.typing import FloatArray

UNUSUAL = 0.01
# Replicates are drawn until so many lie as far below their best law as the data, or to the end.
_ENOUGH, _MOST_REPLICATES = 10, 200


@dataclass(frozen=True, eq=False)
class FitGap:
    r"""Distance of the posterior from the likeliest law on the knots.

    With :math:`\log L(w; y)` the log-likelihood of data y and :math:`w^{(s)}` a draw, the gap is
    :math:`\max_w \log L(w; y) - \log L(w^{(s)}; y)` in nats of the effective sample. It is compared
    with that of data replicated from the same draw (Gelman, Meng and Stern, Statistica Sinica 6,
    1996): a posterior that contains the law of the data lies as far below the best law, which also
    fits the noise, as replicates do.

    Attributes
    ----------
    best_draw : float
        Gap of the draw that fits best.
    mean : float
        Mean gap over all draws.
    observed, replicated : array of shape (n_replicates,)
        Gap of the data, and of a replicate, at the same draws.
    """

    best_draw: float
    mean: float
    observed: FloatArray
    replicated: FloatArray

    @property
    def p_value(self) -> float:
        """Share of replicates whose gap is as large as that of the data."""
        return float(np.mean(self.replicated >= self.observed))

    @property
    def unusual(self) -> bool:
        """Whether the posterior lies farther below than chance explains, at the level 0.01."""
        return self.p_value < UNUSUAL

    def __repr__(self) -> str:
        """The gap, that of the best draw and of replicates, and the p-value."""
        return (
            f"{self.mean:.1f} nats below the best law on the knots (best draw "
            f"{self.best_draw:.1f}, replicates {self.replicated.mean():.1f}, p {self.p_value:.2f})"
        )

    @property
    def notes(self) -> list[str]:
        """A note for readers of predictions, if the gap is unusual."""
        if not self.unusual:
            return []
        return [
            f"the posterior misses the shape of the data: it lies {self!r}; the prior forbids the "
            "law that the data ask for, or the chains did not find it; a rougher prior may reach "
            "it: MixturePrior(deviation=3, length=0.4, n_functions=40)"
        ]


@dataclass(frozen=True, eq=False)
class FitGapOnDemand:
    """The gap of a fit, computed when someone reads it, and once.

    It costs up to half a second, and back-tests fit many models whose gap nobody reads.
    """

    data: LikelihoodData
    weights: FloatArray
    rng: np.random.Generator

    @cached_property
    def gap(self) -> FitGap | None:
        """The gap; None for the power form, or if the best law was not found."""
        if isinstance(self.data, PowerData):
            return None
        try:
            return fit_gap(self.data, self.weights, self.rng)
        except RuntimeError:
            return None

    def notes(self) -> list[str]:
        """Notes for readers of predictions."""
        return [] if self.gap is None else self.gap.notes


def fit_gap(
    data: BernsteinData | PooledData, weights: FloatArray, rng: np.random.Generator
) -> FitGap:
    """Gap of draws of the weights (chain, draw, m).

    Replicates are Multinomial with the effective sample of each task, as in predictive checks.
    They are drawn at up to 200 draws until 10 gaps of replicates are as
    large as that of the data (Besag and Clifford, Biometrika 78, 1991).
    """
    draws = weights.reshape(-1, weights.shape[-1])
    gaps = largest_log_likelihood(data, data.counts) - _log_likelihood(data, draws, data.counts)
    places = rng.permutation(len(draws))[:_MOST_REPLICATES]
    replicated: list[float] = []
    n_larger = 0
    for place in places:
        counts = data.replicates(draws[place], rng)
        gap = largest_log_likelihood(data, counts) - _log_likelihood(data, draws[place], counts)
        replicated.append(float(gap))
        n_larger += gap >= gaps[place]
        if n_larger == _ENOUGH:
            break
    observed = gaps[places[: len(replicated)]]
    return FitGap(float(gaps.min()), float(gaps.mean()), observed, np.array(replicated))


def largest_log_likelihood(data: BernsteinData | PooledData, counts: FloatArray) -> float:
    """Largest log-likelihood of `counts` (n_rows,) over all weights on the simplex."""
    filled = counts > 0
    information = (counts * data.precision)[filled]
    share = information / information.sum()
    chance = np.maximum(data.matrix[filled], SMALLEST_SHARE)
    weights, _ = likeliest_weights(chance, share, np.zeros(chance.shape[1]))
    return float(information @ np.log(chance @ weights))


def _log_likelihood(
    data: BernsteinData | PooledData, weights: FloatArray, counts: FloatArray
) -> FloatArray:
    shares = np.maximum(weights @ data.matrix.T, SMALLEST_SHARE)
    return np.log(shares) @ (counts * data.precision)
