"""Checks of every fit to ranks: the gap to the best law, and accuracies that contradict the law."""

from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from classex_bayes.bayes.model.likelihoods import SMALLEST_SHARE, BernsteinData
from classex_bayes.core.law import MixtureLaw
from classex_bayes.core.mixture_weights import likeliest_weights
from classex_bayes.task.rules import Finding
from classex_bayes.typing import FloatArray

# The law contradicts its pilot beyond both: posterior standard deviations, and a difference.
_CONFLICT, _SMALLEST_CONFLICT = 3.0, 0.02
_UNUSUAL = 0.01
# Replicates are drawn until 10 gaps are as large as that of the data, and 200 times at most.
_ENOUGH, _MOST_REPLICATES = 10, 200


@dataclass(frozen=True, eq=False)
class FitGap:
    r"""Gap between the posterior's log-likelihood and the maximum over laws on the knots.

    With :math:`\log L(w; y)` the log-likelihood of data y and :math:`w^{(s)}` a draw, the gap is
    :math:`\max_w \log L(w; y) - \log L(w^{(s)}; y)` in nats of the effective sample. It is compared
    with the gap of data replicated from the same draw (Gelman, Meng and Stern, Statistica Sinica
    6, 1996). The best law also fits the noise. So if the posterior contains the law of the data,
    its gap is like that of replicates.

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
        """Share of replicates whose gap is at least that of the data at the same draw."""
        return float(np.mean(self.replicated >= self.observed))

    def __repr__(self) -> str:
        """Mean gap, gap of the best draw, mean gap of replicates, and p-value."""
        return (
            f"{self.mean:.1f} nats below the best law on the knots (best draw "
            f"{self.best_draw:.1f}, replicates {self.replicated.mean():.1f}, p {self.p_value:.2f})"
        )

    @property
    def finding(self) -> Finding:
        """Whether chance explains the gap: a p-value of at least 0.01."""
        passed = self.p_value >= _UNUSUAL
        sentence = f"the posterior lies {self!r}"
        if not passed:
            sentence = (
                f"the posterior misses the shape of the data: it lies {self!r}. Either the prior "
                "excludes the law that fits, or the chains did not reach it. Try a more flexible "
                "prior: MixturePrior(deviation=3, length=0.4, n_functions=40)"
            )
        return Finding("best law", passed, sentence, self.p_value, _UNUSUAL)


def fit_gap(data: BernsteinData, weights: FloatArray, rng: np.random.Generator) -> FitGap:
    """Gap of draws of the weights (chain, draw, m).

    Replicates are multinomial with the number of independent instances that the likelihood counts,
    as in predictive checks. So a gap is unusual if the likelihood as it was sampled shows it.
    There is one for each of up to 200 random draws. No more are made once 10 of them have a gap
    as large as that of the data (Besag and Clifford, Biometrika 78, 1991).
    """
    draws = weights.reshape(-1, weights.shape[-1])
    gaps = largest_log_likelihood(data) - data.log_likelihood(draws)
    places = rng.permutation(len(draws))[:_MOST_REPLICATES]
    replicated: list[float] = []
    n_larger = 0
    for place in places:
        replicate = replace(data, counts=data.replicates(draws[place], rng))
        gap = largest_log_likelihood(replicate) - replicate.log_likelihood(draws[place])
        replicated.append(float(gap))
        n_larger += gap >= gaps[place]
        if n_larger == _ENOUGH:
            break
    observed = gaps[places[: len(replicated)]]
    return FitGap(float(gaps.min()), float(gaps.mean()), observed, np.array(replicated))


def largest_log_likelihood(data: BernsteinData) -> float:
    """Largest log-likelihood over all weights on the simplex."""
    filled = data.counts > 0
    information = (data.counts * data.precision)[filled]
    share = information / information.sum()
    chance = np.maximum(data.matrix[filled], SMALLEST_SHARE)
    weights, _ = likeliest_weights(chance, share, np.zeros(chance.shape[1]))
    return float(information @ np.log(chance @ weights))


def pilot_accuracy(law: MixtureLaw, tree: xr.DataTree) -> Finding:
    """Whether a law gives the accuracies on up to k1 classes that were measured.

    It contradicts them if a difference is above 0.02 and above three posterior standard deviations.
    If the law is that of several tasks, their sampling errors are added to these.
    """
    name = "accuracy of the pilot"
    measured = tree["observed_data"].to_dataset()["accuracy"]
    if not measured.size:
        return Finding(name, None, "needs a known accuracy")
    k, draws = measured["k"].values, law.expected(measured["k"].values)
    mean, sd = draws.mean(axis=(0, 1)), draws.std(axis=(0, 1))
    reason = (
        "Classes may be confused in groups, such as twins, which are not drawn one by one; see "
        "posterior_checks and Sampling(groups=...)"
    )
    if "k_task" in measured.coords:
        reason = (
            "Tasks that are fitted together are tests of one classifier, so fit others one by "
            f"one. {reason}"
        )
        tasks = tree["constant_data"].to_dataset().isel(task=measured["k_task"].values)
        independent = tasks["n_test"].values / tasks["design_effect"].values
        sd = np.sqrt(sd**2 + mean * (1 - mean) / independent)
    error, limit = np.abs(measured.values - mean), np.maximum(_CONFLICT * sd, _SMALLEST_CONFLICT)
    worst = int((error - limit).argmax())
    passed = bool(error[worst] <= limit[worst])
    sentence = (
        f"the accuracy on {k[worst]} of its classes was {measured.values[worst]:.3f}, "
        f"{'and' if passed else 'but'} the model gives {mean[worst]:.3f}"
    )
    if not passed:
        sentence = f"the model contradicts its pilot: {sentence}. {reason}"
    return Finding(name, passed, sentence, float(error[worst]), float(limit[worst]))
