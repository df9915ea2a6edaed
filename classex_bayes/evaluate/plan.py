"""Plan a pilot: how many classes and repeats give an interval of a wanted width."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
from joblib import delayed
from scipy.special import betaincinv

from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.idata import dependence_of
from classex_bayes.bayes.model.likelihoods import BernsteinData
from classex_bayes.bayes.model.priors import MixturePrior, Prior, checked_prior
from classex_bayes.bayes.sampling import SamplerSettings, sample_posterior, sampler_settings
from classex_bayes.core.basis import RadialBasis, loss_bins
from classex_bayes.core.dependence import AnswerDependence, typical_dependence
from classex_bayes.evaluate.progress_bar import with_progress
from classex_bayes.exceptions import ConvergenceWarning, DataError, interrupted_whole
from classex_bayes.formatting import Display, Shown
from classex_bayes.results import interval_label
from classex_bayes.simulate import KnownLaw
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import (
    FEWEST_CLASSES,
    class_count,
    class_counts,
    how_many,
    number,
    probability,
    seed_sequence,
    share,
    truth_value,
)
from classex_bayes.typing import FloatArray, IntArray, RandomSeed

SAMPLER = {"draws": 300, "tune": 300, "chains": 2}
# A guessed accuracy counts as much as one measured on so many independent instances.
_GUESS_INSTANCES = 200
_N_QUANTILES = 400
Source = KnownLaw | Mapping[int, float] | SourceTask | BayesianExtrapolator


@dataclass(frozen=True, repr=False, eq=False)
class Plan(Shown):
    """Widths of the intervals that pilots of several designs would give; made by `plan`.

    Attributes
    ----------
    table : DataFrame
        One row for each design: "classes" (k1), "repeats" (r), "instances" (k1 r), "width" and
        "width_sd" (mean and standard deviation over simulated pilots), "reached" (share of them
        whose interval is no wider than wanted) and "error" (root mean square error of their
        posterior means).
    k2 : int
        Number of classes of the target.
    width : float
        Wanted width of the interval of the accuracy at k2.
    prob : float
        Level of the equal-tailed interval.
    n_pilots : int
        Pilots simulated for each design.
    accuracy : tuple of float
        Mean and standard deviation of the accuracies at k2 that the pilots were simulated from.
    """

    table: pd.DataFrame
    k2: int
    width: float
    prob: float
    n_pilots: int
    accuracy: tuple[float, float]

    def cheapest(
        self, reached: float = 0.5, *, per_class: float = 0.0, per_instance: float = 1.0
    ) -> pd.Series:
        """Least costly design that reaches the wanted width.

        Parameters
        ----------
        reached : float
            Share of the simulated pilots that must reach it.
        per_class, per_instance : float
            Costs of a class and of a test instance; instances alone count by default.

        Returns
        -------
        Series
            A row of `table` and its "cost"; of equal costs the one with the narrowest intervals.

        Raises
        ------
        DataError
            No design of the table reaches the width so often, or a negative cost.
        """
        wanted = share(reached, "reached")
        costs = (
            number(per_class, "per_class", 0, False),
            number(per_instance, "per_instance", 0, False),
        )
        enough = self.table[self.table["reached"] >= wanted]
        if enough.empty:
            best = self.table.sort_values("width").iloc[0]
            raise DataError(
                f"width: no design reaches {self.width:g} for {wanted:.0%} of its pilots; the "
                f"narrowest intervals, {best['width']:.3f} on average, come from "
                f"{best['classes']:.0f} classes with {best['repeats']:.0f} instances each. Plan "
                "with more classes, or a larger width"
            )
        cost = costs[0] * enough["classes"] + costs[1] * enough["instances"]
        return enough.assign(cost=cost).sort_values(["cost", "width"]).iloc[0]

    def _header(self) -> str:
        mean, sd = self.accuracy
        return (
            f"Plan for a {interval_label(self.prob, 'eti')} of width {self.width:g} at "
            f"{self.k2:,} classes, where the accuracy is taken to be {mean:.3f} (sd {sd:.3f}); "
            f"{self.n_pilots} pilots of each design"
        )

    def _advice(self) -> str:
        try:
            best = self.cheapest()
        except DataError as error:
            return str(error)
        return (
            f"fewest instances: {best['classes']:.0f} classes with {best['repeats']:.0f} each, "
            f"{best['instances']:.0f} in all"
        )

    def _display(self) -> Display:
        return Display(self._header(), self.table, (self._advice(),), decimals=3, index=False)


class _Truth(NamedTuple):
    """What a simulated pilot is drawn from: a known law, or weights on a basis."""

    law: KnownLaw | None
    basis: RadialBasis | None
    weights: FloatArray  # (m,); empty with a law

    def accuracy(self, k: int) -> float:
        if self.law is not None:
            return float(self.law.accuracy([k])[0])
        assert self.basis is not None
        return float(self.basis.accuracy(np.array([k]))[0] @ self.weights)

    def bins(self, last_loss: IntArray, n_classes: int) -> FloatArray:
        """Probabilities of the bins of losses."""
        if self.law is None:
            assert self.basis is not None
            found = self.basis.bin_probabilities(last_loss, n_classes) @ self.weights
        else:
            # P(L <= v) = E[1 - D(X)], X ~ Beta(k1 - 1 - v, v + 1), over the quantiles of X.
            v = last_loss[:-1, None].astype(float)
            middle = (np.arange(_N_QUANTILES) + 0.5) / _N_QUANTILES
            levels = betaincinv(n_classes - 1 - v, v + 1, middle)
            below = 1 - self.law.discriminability(levels.ravel()).reshape(levels.shape)
            found = np.diff(np.concatenate([[0.0], below.mean(axis=1), [1.0]]))
        found = np.maximum(found, 0)
        return found / found.sum()


class _Design(NamedTuple):
    """One simulated pilot: its size, its design effect, and its seed."""

    n_classes: int
    repeats: int
    design_effect: float
    truth: _Truth
    seed: np.random.SeedSequence


def plan(
    source: Source,
    k2: int,
    width: float,
    *,
    classes: Sequence[int] = (50, 100, 200, 400),
    repeats: Sequence[int] = (1, 2, 5),
    prob: float = 0.9,
    n_pilots: int = 20,
    prior: Prior | None = None,
    sampler: Mapping[str, Any] = SAMPLER,
    random_seed: RandomSeed = None,
    n_jobs: int | None = None,
    progressbar: bool = True,
) -> Plan:
    r"""Find how many classes and repeats a pilot needs for an interval of a given width.

    For each design (k1, r), pilots are simulated: favorabilities from what is guessed, a histogram
    of losses with the information of k1 r / d independent instances, d = 1 + (r - 1) rho + r c the
    design effect (`classex_bayes.core.dependence.AnswerDependence`), and the posterior fitted to
    it.

    Parameters
    ----------
    source : KnownLaw, mapping from k to accuracy, SourceTask, or fitted BayesianExtrapolator
        What is guessed: a law of `classex_bayes.simulate`; accuracies at some numbers of classes,
        ``{100: 0.9}``, each taken for as sure as one from 200 instances, what they leave open
        being drawn from the prior; or a small pilot, whose posterior draws take turns, so that its
        uncertainty enters, and whose dependence between answers is used. With the others,
        rho = 0.20 and c = 0.08.
    k2 : int
        Number of classes of the target.
    width : float
        Wanted width of the interval of the accuracy at k2, in (0, 1).
    classes, repeats : sequence of int
        Numbers of classes and of test instances per class to try, in all combinations.
    prob : float
        Level of the equal-tailed interval.
    n_pilots : int
        Pilots to simulate for each design; the same truths for all designs.
    prior : MixturePrior or DirichletPrior, optional
        Prior of the model that the pilots will be fitted with; that of a model given as `source`,
        else `MixturePrior()`.
    sampler : mapping
        Arguments "draws", "tune", "chains", "target_accept" of `BayesianExtrapolator.fit`.
    random_seed : int, SeedSequence or None
        Same seed, same numbers, for any number of processes; a design's do not depend on the
        others tried.
    n_jobs : int, optional
        Processes of joblib; by default one, or as `joblib.parallel_config` says.
    progressbar : bool
        Show progress on a terminal.

    Returns
    -------
    Plan

    Raises
    ------
    DataError
        A source that is none of these, or arguments out of range.
    NotFittedError
        A model without draws.

    Notes
    -----
    The pilot to come is taken by itself; a small pilot at hand can later be pooled with it
    (`BayesianExtrapolator.fit` with a list of tasks), which narrows the interval further.

    References
    ----------
    Kruschke, Doing Bayesian Data Analysis (2015), chapter 13 (precision as the goal of planning).

    Examples
    --------
    >>> from classex_bayes.simulate import FavorabilityLaw
    >>> law = FavorabilityLaw(means=(2.5,), sds=(1.0,))
    >>> found = plan(
    ...     law, 1000, 0.3, classes=[50, 400], repeats=[2], n_pilots=4, random_seed=1,
    ...     sampler={"draws": 100, "tune": 200, "chains": 2}, progressbar=False,
    ... )
    >>> found.table["instances"].tolist(), bool(found.table["width"].is_monotonic_decreasing)
    ([100, 800], True)
    >>> int(found.cheapest()["classes"])
    400
    """
    target = class_count(k2, "k2", smallest=2)
    wanted, level = probability(width, "width"), probability(prob, "prob")
    sizes = np.sort(class_counts(classes, "classes", smallest=FEWEST_CLASSES)).tolist()
    each = np.sort(class_counts(repeats, "repeats", smallest=1)).tolist()
    pilots = how_many(n_pilots, "n_pilots")
    shown = truth_value(progressbar, "progressbar")
    if n_jobs == 0:
        raise DataError("n_jobs: found 0, expected a number of processes, or -1 for all processors")
    settings = SamplerSettings(**{**sampler_settings(sampler), "cores": 1, "progressbar": False})
    seeds = seed_sequence(random_seed)
    if prior is None and isinstance(source, BayesianExtrapolator):
        prior = source.prior
    law = checked_prior(MixturePrior() if prior is None else prior)
    with interrupted_whole("the plan"):
        truths, dependence = _guessed(source, law, pilots, settings, seeds)
    designs = [
        _Design(
            size,
            several,
            dependence.design_effect(several),
            truth,
            _child(seeds, size, several, place),
        )
        for size in sizes
        for several in each
        for place, truth in enumerate(truths)
    ]
    work = (delayed(_interval)(design, law, target, level, settings) for design in designs)
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
    with interrupted_whole("the plan"):
        found = np.array(list(with_progress(parallel(work), len(designs), "pilots", shown)))
    true = np.array([truth.accuracy(target) for truth in truths])
    widths, means = found.T.reshape(2, len(sizes), len(each), pilots)
    rows = [
        {
            "classes": size,
            "repeats": several,
            "instances": size * several,
            "width": widths[i, j].mean(),
            "width_sd": widths[i, j].std(ddof=1) if pilots > 1 else np.nan,
            "reached": (widths[i, j] <= wanted).mean(),
            "error": np.sqrt(np.mean((means[i, j] - true) ** 2)),
        }
        for i, size in enumerate(sizes)
        for j, several in enumerate(each)
    ]
    moments = float(true.mean()), float(true.std())
    return Plan(pd.DataFrame(rows), target, wanted, level, pilots, moments)


def _child(seeds: np.random.SeedSequence, *place: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seeds.entropy, spawn_key=(*seeds.spawn_key, *place))


def _guessed(
    source: Any,
    prior: Prior,
    n_pilots: int,
    settings: SamplerSettings,
    seeds: np.random.SeedSequence,
) -> tuple[list[_Truth], AnswerDependence]:
    """What every simulated pilot is drawn from, and the dependence between answers."""
    if isinstance(source, KnownLaw):
        truth = _Truth(source, None, np.empty(0))
        return [truth] * n_pilots, typical_dependence(FEWEST_CLASSES, FEWEST_CLASSES)
    if isinstance(source, Mapping):
        k, values = list(source), list(source.values())
        largest = int(class_counts(k, "source").max())
        source = SourceTask.from_accuracies(
            k,
            values,
            n_test=_GUESS_INSTANCES,
            n_classes=max(largest, FEWEST_CLASSES),
            design_effect=1,
        )
    if isinstance(source, SourceTask):
        with warnings.catch_warnings():
            # A guess needs fewer draws than a result.
            warnings.simplefilter("ignore", ConvergenceWarning)
            source = BayesianExtrapolator(prior).fit(
                source,
                random_seed=_child(seeds, 0),
                draws=settings.draws,
                tune=settings.tune,
                chains=settings.chains,
                target_accept=settings.target_accept,
                nuts_sampler=settings.nuts_sampler,
                cores=1,
                progressbar=False,
            )
    if not isinstance(source, BayesianExtrapolator):
        raise DataError(
            "source: expected a law of classex_bayes.simulate, a mapping from k to accuracy, a "
            f"SourceTask or a fitted BayesianExtrapolator, found {type(source).__name__}"
        )
    weights = source.idata["posterior"].to_dataset()["weights"].values
    flat = weights.reshape(-1, weights.shape[-1])
    # Spread over the draws, whatever their number.
    rng = np.random.default_rng(_child(seeds, 1))
    chosen = rng.permutation(flat.shape[0])[np.arange(n_pilots) % flat.shape[0]]
    basis = source._fitted_prior.basis
    return [_Truth(None, basis, flat[row]) for row in chosen], dependence_of(source.idata)


def _interval(
    design: _Design, prior: Prior, k2: int, prob: float, settings: SamplerSettings
) -> tuple[float, float]:
    """Width of the interval, and posterior mean, at k2 from one simulated pilot."""
    for_data, for_fit = seed_sequence(design.seed).spawn(2)
    last_loss = loss_bins(design.n_classes)
    instances = design.n_classes * design.repeats
    effective = max(round(instances / design.design_effect), 1)
    bins = design.truth.bins(last_loss, design.n_classes)
    counts = np.random.default_rng(for_data).multinomial(effective, bins)
    matrix = prior.basis.bin_probabilities(last_loss, design.n_classes)
    data = BernsteinData(matrix, counts * (instances / effective), instances / effective)
    tree = sample_posterior(prior, data, settings, int(for_fit.generate_state(1)[0]))
    weights = tree["posterior"].to_dataset()["weights"].values
    draws = (weights @ prior.basis.accuracy(np.array([k2])).T).ravel()
    lower, upper = np.quantile(draws, [(1 - prob) / 2, (1 + prob) / 2])
    return float(upper - lower), float(draws.mean())
