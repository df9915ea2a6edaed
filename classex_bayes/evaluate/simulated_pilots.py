"""Simulation of pilots: their ranks, and the posteriors of the accuracy that they give."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from classex_bayes.bayes.coupling import coupled_order
from classex_bayes.bayes.model.likelihoods import BernsteinData
from classex_bayes.bayes.model.priors import Prior
from classex_bayes.bayes.sampling import SamplerSettings, sample_posterior
from classex_bayes.core.basis import n_better_bins
from classex_bayes.core.law import MixtureLaw
from classex_bayes.core.metrics import Accuracy, MeanMetric
from classex_bayes.evaluate.law_pool import LawPool
from classex_bayes.evaluate.pilot_populations import Populations, child_seed
from classex_bayes.parallel import in_parallel, with_progress
from classex_bayes.typing import FloatArray

# Draws that stand for a posterior.
N_DRAWS = 1000
# A fit that serves for others counts a quarter of its pilot's instances, so that it is wider than
# theirs. Without that, intervals of the reweighted draws are a few percent too narrow.
_WIDENING = 4.0
_FITS_AT_ONCE = 4
_ACCURACY = Accuracy()
_TINY = np.finfo(float).tiny


@dataclass(frozen=True, eq=False)
class SimulatedPilot:
    """Histogram of a pilot's ranks as if of independent instances.

    Attributes
    ----------
    n_classes : int
        k1.
    counts : array of shape (n_bins,)
        Instances in each bin of ranks.
    seed : int
        Seed of the fit.
    """

    n_classes: int
    counts: FloatArray
    seed: int

    @property
    def size(self) -> float:
        """Number of independent instances with the information of the pilot."""
        return float(self.counts.sum())


def simulated_draws(
    populations: Populations,
    designs: Sequence[tuple[int, float]],
    k: int,
    prior: Prior,
    settings: SamplerSettings,
    seeds: np.random.SeedSequence,
    n_jobs: int | None,
    progressbar: bool,
) -> FloatArray:
    """Posterior draws of the metric of the populations at k, or of its difference.

    Returns
    -------
    array of shape (n_designs, n_pilots, 1000)
        `designs` are pairs of a number of classes and a number of instances of each. With 0.5,
        every second class has one.
    """
    pilots = [
        pilot for design in designs for pilot in _pilots_of_design(populations, *design, seeds)
    ]
    values = posteriors(pilots, k, prior, settings, n_jobs, progressbar, populations.metric)
    values = values.reshape(-1, len(populations.laws), *values.shape[1:])
    if len(populations.laws) == 1:
        draws = values[:, 0, 1]
    else:
        rng = np.random.default_rng(child_seed(seeds, 2))
        draws = np.array([_difference(pair, populations.correlation, rng) for pair in values])
    return draws.reshape(len(designs), -1, N_DRAWS)


def _difference(values: FloatArray, correlation: float, rng: np.random.Generator) -> FloatArray:
    """Coupled draws of the difference at k, from values (2, 2, n_draws) at k1 and at k."""
    matrix = np.array([[1, correlation], [correlation, 1]])
    order = coupled_order(values[:, 0], matrix, rng)
    first, second = np.take_along_axis(values[:, 1], order, axis=1)
    return np.asarray(first - second)


def _pilots_of_design(
    populations: Populations, n_classes: int, repeats: float, seeds: np.random.SeedSequence
) -> Iterator[SimulatedPilot]:
    """Pilots of one design; of two classifiers, both of one test follow each other."""
    shares = [bin_shares(law, n_classes) for law in populations.laws]
    effective = [
        max(round(n_classes * repeats / part.design_effect(repeats)), 1)
        for part in populations.dependence
    ]
    ends = n_better_bins(n_classes)
    gain = populations.metric.given_n_better(ends, n_classes, np.array([n_classes]))[:, 0]
    for place, bins in enumerate(zip(*shares, strict=True)):
        children = child_seed(seeds, n_classes, ceil(repeats), place).spawn(1 + len(bins))
        rng = np.random.default_rng(children[0])
        histograms = simulated_counts(bins, effective, populations.correlation, gain, rng)
        for counts, seed in zip(histograms, children[1:], strict=True):
            yield SimulatedPilot(n_classes, counts, int(seed.generate_state(1)[0]))


def bin_shares(law: MixtureLaw, n_classes: int) -> FloatArray:
    """Probabilities (n_pilots, n_bins) of the bins of ranks under laws (n_pilots, m)."""
    matrix = law.basis.bin_probabilities(n_better_bins(n_classes), n_classes)
    shares = [np.maximum(matrix @ weights, 0) for weights in law.weights]
    return np.array([share / share.sum() for share in shares])


def simulated_counts(
    bins: Sequence[FloatArray],
    sizes: Sequence[int],
    correlation: float,
    gain: FloatArray,
    rng: np.random.Generator,
) -> list[FloatArray]:
    r"""Histograms of tests on the same instances, one for each of the laws of their bins.

    With probability c an instance is equally hard for all, at the same quantile of their ranks,
    else independently so. The metrics of an instance in two tests, `gain` (n_bins,) of its bin,
    then have the correlation :math:`c v_{12} / \sqrt{v_{11} v_{22}}`, where :math:`v_{ab}` is the
    covariance of the gains of tests a and b at the same quantile. For the accuracy it is
    :math:`\min(p_a, p_b) - p_a p_b`, p the shares of correct answers.
    """
    ends = [np.cumsum(shares)[:-1] for shares in bins]
    share_common = 0.0
    if len(bins) > 1:
        covariance = _covariance_at_equal_quantiles(ends, gain)
        most = covariance[0, 1] / np.sqrt(max(covariance[0, 0] * covariance[1, 1], _TINY))
        share_common = min(max(correlation / most, 0.0), 1.0) if most > 0 else 0.0
    common = rng.random(max(sizes))
    quantiles = [common, *(rng.random(common.size) for _ in bins[1:])]
    is_common = rng.random(common.size) < share_common
    counts = []
    for end, size, quantile in zip(ends, sizes, quantiles, strict=True):
        place = np.searchsorted(end, np.where(is_common, common, quantile)[:size])
        counts.append(np.bincount(place, minlength=end.size + 1).astype(float))
    return counts


def _covariance_at_equal_quantiles(ends: Sequence[FloatArray], gain: FloatArray) -> FloatArray:
    """Covariance (n, n) of the gains of n tests, whose bins end at the quantiles `ends`."""
    edges = np.unique(np.concatenate([[0.0, 1.0], *ends]).clip(0, 1))
    width, middle = np.diff(edges), (edges[1:] + edges[:-1]) / 2
    gains = np.stack([gain[np.searchsorted(end, middle)] for end in ends])
    return np.cov(gains, aweights=width, ddof=0)


def posteriors(
    pilots: Sequence[SimulatedPilot],
    k: int,
    prior: Prior,
    settings: SamplerSettings,
    n_jobs: int | None,
    progressbar: bool,
    metric: MeanMetric = _ACCURACY,
) -> FloatArray:
    """Values of a metric at k1 and at k under 1000 draws from the posterior of each pilot.

    Few pilots are fitted: the draws of these posteriors serve for others
    (`classex_bayes.evaluate.law_pool`). A pilot for which they do not gets a fit of its own.

    Returns
    -------
    array of shape (n_pilots, 2, 1000)
        In order of the values at k; of each pilot's draws both belong together.
    """
    values = np.empty((len(pilots), 2, N_DRAWS))
    solved = _in_turn(pilots, k, prior, settings, n_jobs, metric)
    for place, draws in with_progress(solved, len(pilots), "pilots", progressbar):
        values[place] = draws
    return values


def _in_turn(
    pilots: Sequence[SimulatedPilot],
    k: int,
    prior: Prior,
    settings: SamplerSettings,
    n_jobs: int | None,
    metric: MeanMetric,
) -> Iterator[tuple[int, FloatArray]]:
    """Places of pilots and their values, as soon as draws of the pool serve for them.

    The first fit to a pilot is wide. A pilot that is chosen again gets its own posterior.
    """
    basis = prior.basis
    sizes = {pilot.n_classes for pilot in pilots}
    matrix = {size: basis.bin_probabilities(n_better_bins(size), size) for size in sizes}
    expected = {size: metric.expected(basis, np.array([size, k])) for size in sizes}
    pool = LawPool(matrix)
    fitted: set[int] = set()
    pending = sorted(range(len(pilots)), key=lambda place: pilots[place].size)
    while pending:
        spread = np.linspace(0, len(pending) - 1, _FITS_AT_ONCE).round().astype(int)
        chosen = [pending[place] for place in np.unique(spread)]
        final = fitted.intersection(chosen)
        counts = [pilots[place].counts / (1.0 if place in final else _WIDENING) for place in chosen]
        cases = [
            (prior, BernsteinData(matrix[pilots[p].n_classes], c, 1.0), settings, pilots[p].seed)
            for p, c in zip(chosen, counts, strict=True)
        ]
        fits = in_parallel(_laws, cases, len(cases), n_jobs, "fits", False, threads=True)
        for place, histogram, laws in zip(chosen, counts, fits, strict=True):
            pool.add(pilots[place].n_classes, histogram, laws)
        pool.solve()
        fitted.update(chosen)
        values = {size: pool.laws @ matrix.T for size, matrix in expected.items()}
        waiting = []
        for place in pending:
            pilot = pilots[place]
            weight, reliable = pool.weights(pilot.n_classes, pilot.counts)
            if reliable or place in final:
                yield place, _equally_weighted(values[pilot.n_classes], weight)
            else:
                waiting.append(place)
        pending = waiting


def _laws(prior: Prior, data: BernsteinData, settings: SamplerSettings, seed: int) -> FloatArray:
    """Draws of the mixture weights, (n, m)."""
    tree = sample_posterior(prior, data, settings, seed)
    weights = tree["mixture"].to_dataset()["weights"].values
    return weights.reshape(-1, weights.shape[-1])


def _equally_weighted(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Values (n, 2) of weighted draws as 1000 of one weight, in order of the last."""
    order = np.argsort(values[:, -1])
    levels = (np.arange(N_DRAWS) + 0.5) / N_DRAWS
    places = np.searchsorted(np.cumsum(weight[order]), levels)
    return values[order[np.minimum(places, order.size - 1)]].T
