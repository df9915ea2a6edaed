"""Pilots that are simulated from what is guessed, and the posteriors fitted to them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from classex_bayes.bayes.model.likelihoods import BernsteinData
from classex_bayes.bayes.model.priors import Prior
from classex_bayes.bayes.sampling import SamplerSettings, sample_posterior
from classex_bayes.core.basis import loss_bins
from classex_bayes.core.law import MixtureLaw
from classex_bayes.evaluate.law_pool import LawPool
from classex_bayes.parallel import in_parallel, with_progress
from classex_bayes.simulate import KnownLaw
from classex_bayes.typing import FloatArray, IntArray

Population = KnownLaw | MixtureLaw  # what simulated pilots are drawn from
_N_QUANTILES = 400
# Draws that stand for a posterior.
N_DRAWS = 1000
# A fit that serves for others is to half as much information, so that it is wider than theirs.
_WIDENING = 2.0
_FITS_AT_ONCE = 6


def accuracy_of(population: Population, k: int) -> float:
    """Expected accuracy of a population."""
    if isinstance(population, KnownLaw):
        return float(population.accuracy([k])[0])
    return float(population.expected(np.array([k]))[0])


def bin_shares(population: Population, last_loss: IntArray, n_classes: int) -> FloatArray:
    """Probabilities of the bins of losses."""
    if isinstance(population, MixtureLaw):
        shares = population.basis.bin_probabilities(last_loss, n_classes) @ population.weights
    else:
        # P(L <= v) = E[1 - D(X)], X ~ Beta(k1 - 1 - v, v + 1), over the quantiles of X.
        v = last_loss[:-1, None].astype(float)
        middle = (np.arange(_N_QUANTILES) + 0.5) / _N_QUANTILES
        levels = betaincinv(n_classes - 1 - v, v + 1, middle)
        below = 1 - population.discriminability(levels.ravel()).reshape(levels.shape)
        shares = np.diff(np.concatenate([[0.0], below.mean(axis=1), [1.0]]))
    shares = np.maximum(shares, 0)
    return shares / shares.sum()


def bins_of_pilots(populations: Sequence[Population], n_classes: int) -> list[FloatArray]:
    """Probabilities of the bins for each pilot; a law, which takes seconds, once for all."""
    last_loss = loss_bins(n_classes)
    different = {id(population): population for population in populations}
    shares = {
        place: bin_shares(population, last_loss, n_classes)
        for place, population in different.items()
    }
    return [shares[id(population)] for population in populations]


@dataclass(frozen=True, eq=False)
class SimulatedPilot:
    """Histogram of a pilot's ranks as if of independent instances, and what it was drawn from.

    Attributes
    ----------
    n_classes : int
        k1.
    counts : array of shape (n_bins,)
        Instances in each bin of losses.
    bins : array of shape (n_bins,)
        Probabilities of the bins in the population.
    seed : int
        Seed of the fit.
    """

    n_classes: int
    counts: FloatArray
    bins: FloatArray
    seed: int

    @property
    def size(self) -> float:
        """Number of independent instances with the information of the pilot."""
        return float(self.counts.sum())


def simulated_counts(
    bins: Sequence[FloatArray], sizes: Sequence[int], correlation: float, rng: np.random.Generator
) -> list[FloatArray]:
    r"""Histograms of tests on the same instances, one for each of the laws of their bins.

    With probability c an instance is equally hard for all, at the same quantile of their ranks,
    else independently so. The answers of two tests then have the correlation
    :math:`c (\min(p_1, p_2) - p_1 p_2) / \sqrt{p_1 q_1 p_2 q_2}`, p the shares of correct answers
    and q of wrong ones.
    """
    right = np.array([shares[0] for shares in bins])
    sd = np.sqrt(right * (1 - right)).prod() if len(bins) > 1 else 0.0
    most = right.min() - right.prod()
    alike = min(max(correlation * sd / most, 0.0), 1.0) if most > 0 else 0.0
    common = rng.random(max(sizes))
    quantiles = [common, *(rng.random(common.size) for _ in bins[1:])]
    is_common = rng.random(common.size) < alike
    counts = []
    for shares, size, quantile in zip(bins, sizes, quantiles, strict=True):
        place = np.searchsorted(
            np.cumsum(shares)[:-1], np.where(is_common, common, quantile)[:size]
        )
        counts.append(np.bincount(place, minlength=shares.size).astype(float))
    return counts


def posteriors(
    pilots: Sequence[SimulatedPilot],
    prior: Prior,
    k: int,
    settings: SamplerSettings,
    n_jobs: int | None,
    progressbar: bool,
) -> FloatArray:
    """Accuracies at k1 and at k under 1000 draws from the posterior of each pilot.

    Few pilots are fitted: the draws of these posteriors serve for others
    (`classex_bayes.evaluate.law_pool`). A pilot for which they do not gets a fit of its own.

    Returns
    -------
    array of shape (n_pilots, 2, 1000)
        In order of the accuracies at k; of each pilot's draws both belong together.
    """
    accuracies = np.empty((len(pilots), 2, N_DRAWS))
    solved = _in_turn(pilots, prior, k, settings, n_jobs)
    for place, draws in with_progress(solved, len(pilots), "pilots", progressbar):
        accuracies[place] = draws
    return accuracies


def _in_turn(
    pilots: Sequence[SimulatedPilot],
    prior: Prior,
    k: int,
    settings: SamplerSettings,
    n_jobs: int | None,
) -> Iterator[tuple[int, FloatArray]]:
    """Places of pilots and their accuracies, as soon as draws of the pool serve for them.

    Fits are to the populations of pilots first. A pilot that these do not serve gets its own.
    """
    basis = prior.basis
    sizes = {pilot.n_classes for pilot in pilots}
    matrix = {size: basis.bin_probabilities(loss_bins(size), size) for size in sizes}
    accuracy = {size: basis.accuracy(np.array([size, k])) for size in sizes}
    pool = LawPool(matrix)
    of_population: set[int] = set()  # whose population was fitted
    left = sorted(range(len(pilots)), key=lambda place: pilots[place].size)
    while left:
        spread = np.linspace(0, len(left) - 1, _FITS_AT_ONCE).round().astype(int)
        chosen = [left[place] for place in np.unique(spread)]
        final = of_population.intersection(chosen)
        counts = [_counts(pilots[place], own=place in final) for place in chosen]
        cases = [
            (prior, BernsteinData(matrix[pilots[p].n_classes], c, 1.0), settings, pilots[p].seed)
            for p, c in zip(chosen, counts, strict=True)
        ]
        fits = in_parallel(_laws, cases, len(cases), n_jobs, "fits", False, threads=True)
        for place, fitted, laws in zip(chosen, counts, fits, strict=True):
            pool.add(pilots[place].n_classes, fitted, laws)
        pool.solve()
        of_population.update(chosen)
        of_laws = {size: pool.laws @ of.T for size, of in accuracy.items()}
        waiting = []
        for place in left:
            pilot = pilots[place]
            weight, reliable = pool.weights(pilot.n_classes, pilot.counts)
            if reliable or place in final:
                yield place, _equally_weighted(of_laws[pilot.n_classes], weight)
            else:
                waiting.append(place)
        left = waiting


def _counts(pilot: SimulatedPilot, own: bool) -> FloatArray:
    """Counts of a pilot, or of its population: fewer of them, so that others are covered."""
    return pilot.counts if own else pilot.size * pilot.bins / _WIDENING


def _laws(prior: Prior, data: BernsteinData, settings: SamplerSettings, seed: int) -> FloatArray:
    """Draws of the mixture weights, (n, m)."""
    tree = sample_posterior(prior, data, settings, seed)
    weights = tree["mixture"].to_dataset()["weights"].values
    return weights.reshape(-1, weights.shape[-1])


def _equally_weighted(accuracy: FloatArray, weight: FloatArray) -> FloatArray:
    """Accuracies (n, 2) of weighted draws as 1000 of one weight, in order of the last."""
    order = np.argsort(accuracy[:, -1])
    levels = (np.arange(N_DRAWS) + 0.5) / N_DRAWS
    places = np.searchsorted(np.cumsum(weight[order]), levels)
    return accuracy[order[np.minimum(places, order.size - 1)]].T
