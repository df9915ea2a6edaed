"""Pilots that a plan simulates: the populations they come from, their ranks and posteriors."""

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import cycle
from math import ceil
from typing import NamedTuple

import numpy as np
import pandas as pd
from arviz_stats.base import array_stats

from classex_bayes.arguments import FEWEST_CLASSES
from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.model.likelihoods import SMALLEST_SHARE, BernsteinData, coarsening
from classex_bayes.bayes.model.priors import MixturePrior
from classex_bayes.bayes.sampling import SamplerSettings, sample_posterior
from classex_bayes.bayes.tails.importance_sample import LARGEST_PARETO_K
from classex_bayes.core.basis import n_better_bins
from classex_bayes.core.dependence import AnswerDependence, typical_dependence
from classex_bayes.core.law import MixtureLaw
from classex_bayes.core.metrics import MeanMetric
from classex_bayes.exceptions import ConvergenceWarning
from classex_bayes.parallel import with_progress
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

PRIOR = MixturePrior()
# Draws of one posterior are reweighted to several pilots. Chains start at maxima and need few
# tuning steps.
SAMPLER = {"draws": 1000, "tune": 100, "chains": 2, "target_accept": 0.9}
N_DRAWS = 1000  # that represent a posterior
# A fit that is reweighted counts a quarter of the instances of its pilot, so that it is wider than
# the posteriors of the others. Otherwise, intervals of the reweighted draws are a few percent too
# narrow.
_WIDENING = 4.0
_FEWEST_EFFECTIVE = 100


@dataclass(frozen=True, eq=False)
class Populations:
    """Laws that pilots are simulated from, and how the answers of a pilot depend on each other."""

    law: MixtureLaw  # of the simulated pilots, weights (n_pilots, m)
    dependence: AnswerDependence
    notes: tuple[str, ...] = ()  # for readers of the plan

    def ranks(self, n_classes: int, repeats: float, rng: np.random.Generator) -> IntArray:
        """Histograms of ranks (n_pilots, n_bins), a pilot of each law, as if independent.

        Pilots of k1 classes with r instances each have the information of k1 r / d independent
        instances, d the design effect. With 0.5 repeats, every second class has an instance.
        """
        size = max(round(n_classes * repeats / self.dependence.design_effect(repeats)), 1)
        matrix = self.law.basis.bin_probabilities(n_better_bins(n_classes), n_classes)
        shares = np.maximum(self.law.weights @ matrix.T, 0)
        return rng.multinomial(size, shares / shares.sum(axis=1, keepdims=True))


@cache
def corpus_laws() -> pd.DataFrame:
    """Packaged laws of U* in real populations; `python docs/studies/corpus` writes them anew.

    A row has "name" and "kind" of the population, its number of classes "n_classes", its exact
    "accuracy" at some "k", and the "weights" of a law on the basis of the default prior that was
    fitted to the ranks of all classes. Beyond `n_classes` the law is an extrapolation.
    """
    packaged = files("classex_bayes") / "evaluate" / "packaged" / "corpus_laws.json"
    return pd.DataFrame(json.loads(packaged.read_text(encoding="utf-8")))


def kinds_in_turn(laws: pd.DataFrame, number: int, rng: np.random.Generator) -> pd.DataFrame:
    """Rows of populations. Kinds alternate, and so do the populations of a kind, randomly."""
    kinds = [np.array(part.index) for _, part in laws.groupby("kind", sort=False)]
    turns = cycle([cycle(rng.permutation(kinds[place])) for place in rng.permutation(len(kinds))])
    return laws.loc[[next(next(turns)) for _ in range(number)]]


def populations_of_corpus(k: int, n_pilots: int, rng: np.random.Generator) -> Populations:
    """Real populations, whose kinds alternate, with the typical dependence between answers."""
    drawn = kinds_in_turn(corpus_laws(), n_pilots, rng)
    weights = np.array(drawn["weights"].tolist())  # rounded, so their sum is nearly 1
    different = drawn.drop_duplicates("name")
    n_kinds, smaller = different["kind"].nunique(), (different["n_classes"] < k).sum()
    notes = [
        f"the pilots were simulated from {len(different)} real populations of {n_kinds} kinds; "
        "with a small pilot of your own the plan is more precise"
    ]
    if smaller:
        notes.append(
            f"the accuracy at {k:,} is an extrapolation in populations with fewer classes: "
            f"{smaller} of {len(different)}"
        )
    law = MixtureLaw(PRIOR.basis, weights / weights.sum(axis=1, keepdims=True))
    return Populations(law, typical_dependence(FEWEST_CLASSES, FEWEST_CLASSES), tuple(notes))


def populations_of_task(
    task: SourceTask, n_pilots: int, seed: np.random.SeedSequence, progressbar: bool
) -> Populations:
    """Posterior draws of a pilot."""
    fit_seed, order_seed = seed.spawn(2)
    with warnings.catch_warnings():
        # A guess needs fewer draws than a result.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = BayesianExtrapolator(PRIOR)
        model.fit(task, sampler=SAMPLER, random_seed=fit_seed, progressbar=progressbar)
    dependence, law = model.attributes_.dependence, model.law_
    notes = dependence.notes
    if not task.table.competitors_shared:  # no competitor is shared
        effect = task.design_effect()
        dependence = replace(dependence, spread=effect, within=0.0, between=0.0)
    elif not task.variance.has_influence:
        # Fits to ranks without scores are wider by the competitors that they do not see.
        dependence = dependence.without_influence()
    weights = law.weights.reshape(-1, law.weights.shape[-1])
    order = np.random.default_rng(order_seed).permutation(len(weights))
    chosen = weights[order[np.arange(n_pilots) % order.size]]
    return Populations(replace(law, weights=chosen), dependence, notes)


class _Fit(NamedTuple):
    """Draws of mixture weights (n, m), their log-likelihood (n,), and logs of shares, by k1."""

    laws: FloatArray
    log_likelihood: FloatArray
    log_shares: dict[int, FloatArray]  # (n, n_bins)

    def log_weights(self, n_classes: int, counts: IntArray) -> FloatArray:
        """Logs of the weights (n,) of the draws for another posterior, up to a constant."""
        return self.log_shares[n_classes] @ counts - self.log_likelihood


def simulated_draws(
    populations: Populations,
    designs: Sequence[tuple[int, float]],
    k: int,
    metric: MeanMetric,
    seed: np.random.SeedSequence,
    progressbar: bool,
) -> FloatArray:
    r"""Posterior draws (n_designs, n_pilots, 1000) of the metric at k, in increasing order.

    `designs` are pairs of a number of classes and a number of instances of each.

    Few pilots are fitted. All posteriors have the same prior, so draws of one represent another
    with the weights :math:`L / L_j`, where L is the likelihood of the pilot and L_j that of the
    fit. Of all fits, the one with the most equal weights is used. A pilot for which every fit
    has too unequal weights gets a wider fit, and if that fails too, a separate fit.

    References
    ----------
    Vehtari et al., Journal of Machine Learning Research 25(72), 2024 (Pareto-smoothed importance
    sampling).
    """
    settings = SamplerSettings.of(SAMPLER, progressbar=False)
    basis = PRIOR.basis
    value = metric.expected(basis, np.array([k]))[0]
    matrix = {n: basis.bin_probabilities(n_better_bins(n), n) for n, _ in designs}
    pilots = []
    for n_classes, repeats in designs:
        # Seeds do not depend on the other designs.
        key = (*seed.spawn_key, n_classes, ceil(repeats))
        rng = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=key))
        counts = populations.ranks(n_classes, repeats, rng)
        pilots += [(n_classes, row * coarsening(row.sum())) for row in counts]

    def fit(n_classes: int, counts: FloatArray, number: int) -> _Fit:
        data = BernsteinData(matrix[n_classes], counts, 1.0)
        tree = sample_posterior(PRIOR, data, settings, number)
        if settings.shortfall(tree):
            raise KeyboardInterrupt
        laws = tree["mixture"].to_dataset()["weights"].values.reshape(-1, value.size)
        shares = {n: np.log(np.maximum(laws @ m.T, SMALLEST_SHARE)) for n, m in matrix.items()}
        return _Fit(laws, shares[n_classes] @ counts, shares)

    fits: list[_Fit] = []
    draws = np.empty((len(pilots), N_DRAWS))
    # Small pilots come first, since draws of a wide posterior may be reweighted to a narrow one.
    order = np.argsort([counts.sum() for _, counts in pilots], kind="stable")
    for place in with_progress(order, len(order), "pilots", progressbar):
        n_classes, counts = pilot = pilots[place]
        best = max(fits, key=lambda fit: _effective(fit.log_weights(*pilot)), default=None)
        weight = None if best is None else _reliable(best.log_weights(*pilot))
        if best is None or weight is None:
            best = fit(n_classes, counts / _WIDENING, place)
            fits.append(best)
            weight = _reliable(best.log_weights(*pilot))
        if weight is None:
            best = fit(n_classes, counts.astype(float), place)
            weight = np.full(len(best.laws), 1 / len(best.laws))
        draws[place] = _equally_weighted(best.laws @ value, weight)
    return draws.reshape(len(designs), -1, N_DRAWS)


def _effective(log_weight: FloatArray) -> float:
    weight = np.exp(log_weight - log_weight.max())
    return float(weight.sum() ** 2 / (weight @ weight))


def _reliable(log_weight: FloatArray) -> FloatArray | None:
    """Smoothed weights (n,), which sum to 1; None if too few draws would decide."""
    if _effective(log_weight) < _FEWEST_EFFECTIVE / 2:
        return None
    smoothed, pareto_k = array_stats.psislw(-log_weight)
    if pareto_k > LARGEST_PARETO_K or _effective(smoothed) < _FEWEST_EFFECTIVE:
        return None
    weight = np.exp(smoothed - smoothed.max())
    return weight / weight.sum()


def _equally_weighted(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Values (n,) of weighted draws as 1000 of one weight, in increasing order."""
    order = np.argsort(values)
    shares = (np.arange(N_DRAWS) + 0.5) / N_DRAWS
    places = np.searchsorted(np.cumsum(weight[order]), shares)
    return values[order[np.minimum(places, order.size - 1)]]
