"""Plan a pilot: how many classes and repeats give an interval of a wanted width."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import betaincinv

from classex_bayes.arguments import (
    class_count,
    class_counts,
    how_many,
    number,
    probability,
    seed_sequence,
    share,
    truth_value,
)
from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.idata import dependence_of
from classex_bayes.bayes.law_model import LawModel
from classex_bayes.bayes.model.likelihoods import BernsteinData
from classex_bayes.bayes.model.priors import MixturePrior, Prior, checked_prior
from classex_bayes.bayes.sampling import SamplerSettings, sample_posterior, sampler_settings
from classex_bayes.core.basis import loss_bins
from classex_bayes.core.dependence import AnswerDependence, typical_dependence
from classex_bayes.core.law import MixtureLaw
from classex_bayes.evaluate.corpus_laws import CorpusLaw, corpus_laws, kinds_in_turn
from classex_bayes.evaluate.parallel import checked_jobs, in_parallel
from classex_bayes.exceptions import ConvergenceWarning, DataError, interrupted_whole
from classex_bayes.formatting import Display, Shown
from classex_bayes.results import SAMPLE_DIMS, interval_label, interval_of, interval_settings
from classex_bayes.simulate import KnownLaw
from classex_bayes.task.doubts import notes_on
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import FEWEST_CLASSES
from classex_bayes.typing import FloatArray, IntArray, RandomSeed

SAMPLER = {"draws": 300, "tune": 300, "chains": 2}
# A guessed accuracy counts as much as one measured on so many independent instances.
_GUESS_INSTANCES = 200
_N_QUANTILES = 400
Guess = KnownLaw | Mapping[int, float] | SourceTask | LawModel | None


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
    k : int
        Number of classes asked for.
    width : float
        Wanted width of the interval of the accuracy at k.
    ci_prob, ci_kind
        Level and kind of the interval.
    n_pilots : int
        Pilots simulated for each design.
    accuracy : tuple of float
        Mean and standard deviation of the accuracies at k that the pilots were simulated from.
    notes : tuple of str
        Doubts about the pilot at hand, such as few errors, after which the prior decides what
        the accuracy is taken to be; how new classes are taken to weigh, if its own are unequal.
        Without a pilot: how many real populations the pilots were simulated from, and in how many
        of them the accuracy at k is an extrapolation.
    """

    table: pd.DataFrame
    k: int
    width: float
    ci_prob: float
    ci_kind: str
    n_pilots: int
    accuracy: tuple[float, float]
    notes: tuple[str, ...] = ()

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
            f"Plan for a {interval_label(self.ci_prob, self.ci_kind)} of width {self.width:g} at "
            f"{self.k:,} classes, where the accuracy is taken to be {mean:.3f} (sd {sd:.3f}); "
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
        advice = (self._advice(), *(f"note: {note}" for note in self.notes))
        return Display(self._header(), self.table, advice, decimals=3, index=False)


Population = KnownLaw | MixtureLaw  # what simulated pilots are drawn from


def _accuracy(population: Population, k: int) -> float:
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


def _bins_of_pilots(populations: list[Population], n_classes: int) -> list[FloatArray]:
    """Probabilities of the bins for each pilot; a law, which takes seconds, once for all."""
    last_loss = loss_bins(n_classes)
    different = {id(population): population for population in populations}
    shares = {
        place: bin_shares(population, last_loss, n_classes)
        for place, population in different.items()
    }
    return [shares[id(population)] for population in populations]


class _SimulatedPilot(NamedTuple):
    """Size, design effect, probabilities of the bins of losses, and seed of a pilot."""

    n_classes: int
    repeats: int
    design_effect: float
    bins: FloatArray
    seed: np.random.SeedSequence


def plan(
    task: Guess,
    k: int,
    *,
    width: float,
    classes: Sequence[int] = (50, 100, 200, 400),
    repeats: Sequence[int] = (1, 2, 5),
    n_pilots: int = 20,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    prior: Prior | None = None,
    sampler: Mapping[str, Any] = SAMPLER,
    random_seed: RandomSeed = None,
    n_jobs: int | None = None,
    progressbar: bool = True,
) -> Plan:
    r"""Find how many classes and repeats a pilot needs for an interval of a given width.

    For each design (k1, r), pilots are simulated: favorabilities from what is guessed, a histogram
    of ranks with the information of k1 r / d independent instances, d = 1 + (r - 1) rho + r c the
    design effect (`classex_bayes.core.dependence.AnswerDependence`), and the posterior fitted to
    it.

    Parameters
    ----------
    task : SourceTask, fitted LawModel, mapping from k to accuracy, KnownLaw or None
        What is known or guessed. A small pilot, or the model fitted to it: its posterior draws take
        turns, so that its uncertainty enters, and its dependence between answers is used. Or
        accuracies at some numbers of classes, ``{100: 0.9}``: each is taken for as sure as one from
        200 instances, and what they leave open is drawn from the prior. Or a law of
        `classex_bayes.simulate`. Or None, if nothing is known yet: pilots come from the real
        populations of the corpus, whose kinds take turns. Without a pilot, rho = 0.20 and c = 0.08.
    k : int
        Number of classes asked for.
    width : float
        Wanted width of the interval of the accuracy at k, in (0, 1).
    classes, repeats : sequence of int
        Numbers of classes and of test instances per class to try, in all combinations.
    n_pilots : int
        Pilots to simulate for each design; from the same populations for all designs.
    ci_prob, ci_kind : optional
        Level and kind of the interval; ArviZ's rcParams by default.
    prior : MixturePrior or DirichletPrior, optional
        Prior of the model that the pilots will be fitted with; that of a model given as `task`,
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
        A task that is none of these, or arguments out of range.
    NotFittedError
        A model without draws.

    Notes
    -----
    The pilot to come is taken by itself; a small pilot at hand can later be pooled with it
    (`BayesianExtrapolator.fit` with a list of tasks), which narrows the interval further.

    Widths are those at the accuracy that the pilot at hand suggests (`Plan.accuracy`). Intervals
    are widest at middle accuracies. So those of the pilot to come will be wider if the accuracy is
    nearer to 1/2 than suggested, as after a pilot of too few errors, and narrower if it is farther.

    Given None, `Plan.accuracy` and "width_sd" also show how much populations differ. Kinds come in
    turn, and so do the populations of a kind, both in random order. Their laws are packaged;
    ``classex-bayes study corpus`` makes the populations and writes the laws. Beyond the classes of
    a population its law is an extrapolation; `Plan.notes` says so.

    References
    ----------
    Kruschke, Doing Bayesian Data Analysis (2015), chapter 13 (precision as the goal of planning).

    Examples
    --------
    >>> from classex_bayes.simulate import FavorabilityLaw
    >>> law = FavorabilityLaw(means=(2.5,), sds=(1.0,))
    >>> pilots = plan(
    ...     law, 1000, width=0.2, classes=[50, 400], repeats=[2], n_pilots=4, random_seed=1,
    ...     sampler={"draws": 100, "tune": 200, "chains": 2}, progressbar=False,
    ... )
    >>> pilots.table["instances"].tolist(), bool(pilots.table["width"].is_monotonic_decreasing)
    ([100, 800], True)
    >>> int(pilots.cheapest()["classes"])
    400
    """
    target = class_count(k, "k", smallest=2)
    wanted = probability(width, "width")
    level, kind = interval_settings(ci_prob, ci_kind)
    sizes = np.sort(class_counts(classes, "classes", smallest=FEWEST_CLASSES)).tolist()
    per_class = np.sort(class_counts(repeats, "repeats", smallest=1)).tolist()
    n_simulated = how_many(n_pilots, "n_pilots")
    show = truth_value(progressbar, "progressbar")
    jobs = checked_jobs(n_jobs)
    settings = SamplerSettings(**{**sampler_settings(sampler), "cores": 1, "progressbar": False})
    seeds = seed_sequence(random_seed)
    if prior is None and isinstance(task, BayesianExtrapolator):
        prior = task.prior
    law = checked_prior(MixturePrior() if prior is None else prior)
    with interrupted_whole("the plan"):
        populations, dependence, notes = _guessed(task, law, target, n_simulated, settings, seeds)
        shares = {size: _bins_of_pilots(populations, size) for size in sizes}
    pilots = [
        _SimulatedPilot(
            size,
            n_repeats,
            dependence.design_effect(n_repeats),
            bins,
            _child(seeds, size, n_repeats, place),
        )
        for size in sizes
        for n_repeats in per_class
        for place, bins in enumerate(shares[size])
    ]
    with interrupted_whole("the plan"):
        cases = [(pilot, law, target, level, kind, settings) for pilot in pilots]
        intervals = np.array(list(in_parallel(_interval, cases, jobs, "pilots", show)))
    true = np.array([_accuracy(population, target) for population in populations])
    widths, means = intervals.T.reshape(2, len(sizes), len(per_class), n_simulated)
    rows = [
        {
            "classes": size,
            "repeats": n_repeats,
            "instances": size * n_repeats,
            "width": widths[i, j].mean(),
            "width_sd": widths[i, j].std(ddof=1) if n_simulated > 1 else np.nan,
            "reached": (widths[i, j] <= wanted).mean(),
            "error": np.sqrt(np.mean((means[i, j] - true) ** 2)),
        }
        for i, size in enumerate(sizes)
        for j, n_repeats in enumerate(per_class)
    ]
    moments = float(true.mean()), float(true.std())
    table = pd.DataFrame(rows)
    notes = (*_notes_on_pilot(task), *notes, *dependence.notes)
    return Plan(table, target, wanted, level, kind, n_simulated, moments, notes)


def _notes_on_pilot(guess: Guess) -> tuple[str, ...]:
    """Doubts about the pilot at hand; a guess without one, or read from a file, has none."""
    if isinstance(guess, SourceTask):
        return notes_on([guess])
    return notes_on(guess.tasks) if isinstance(guess, LawModel) else ()


def _notes_on_corpus(drawn: list[CorpusLaw], k: int) -> tuple[str, ...]:
    """Where pilots come from, and in how many populations their accuracy at k is not measured."""
    different = {population.name: population for population in drawn}.values()
    kinds = {population.kind for population in different}
    smaller = sum(population.n_classes < k for population in different)
    notes = [
        f"the pilots were simulated from {len(different)} real populations of {len(kinds)} kinds; "
        "a small pilot of your own narrows down what to expect"
    ]
    if smaller:
        notes.append(
            f"the accuracy at {k:,} is extrapolated where a population has fewer classes: "
            f"{smaller} of {len(different)}"
        )
    return tuple(notes)


def _child(seeds: np.random.SeedSequence, *place: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seeds.entropy, spawn_key=(*seeds.spawn_key, *place))


def _guessed(
    guess: Any,
    prior: Prior,
    target: int,
    n_pilots: int,
    settings: SamplerSettings,
    seeds: np.random.SeedSequence,
) -> tuple[list[Population], AnswerDependence, tuple[str, ...]]:
    """Population of every simulated pilot, the dependence between answers, and notes on both."""
    # Spread over the draws or the kinds, whatever their number.
    rng = np.random.default_rng(_child(seeds, 1))
    typical = typical_dependence(FEWEST_CLASSES, FEWEST_CLASSES)
    if guess is None:
        drawn = kinds_in_turn(corpus_laws(), n_pilots, rng)
        return [population.law for population in drawn], typical, _notes_on_corpus(drawn, target)
    if isinstance(guess, KnownLaw):
        return [guess] * n_pilots, typical, ()
    if isinstance(guess, Mapping):
        k, values = list(guess), list(guess.values())
        largest = int(class_counts(k, "task").max())
        guess = SourceTask.from_accuracies(
            k,
            values,
            n_test=_GUESS_INSTANCES,
            n_classes=max(largest, FEWEST_CLASSES),
            design_effect=1,
        )
    if isinstance(guess, SourceTask):
        with warnings.catch_warnings():
            # A guess needs fewer draws than a result.
            warnings.simplefilter("ignore", ConvergenceWarning)
            guess = BayesianExtrapolator(prior).fit(
                guess, random_seed=_child(seeds, 0), **asdict(settings)
            )
    if not isinstance(guess, LawModel):
        raise DataError(
            "task: expected a SourceTask, a fitted model such as BayesianExtrapolator, a mapping "
            "from k to accuracy, a law of classex_bayes.simulate or None, found "
            f"{type(guess).__name__}"
        )
    law = guess.law_
    flat = law.weights.reshape(-1, law.weights.shape[-1])
    chosen = rng.permutation(flat.shape[0])[np.arange(n_pilots) % flat.shape[0]]
    laws: list[Population] = [replace(law, weights=flat[row]) for row in chosen]
    return laws, dependence_of(guess.idata), ()


def _interval(
    pilot: _SimulatedPilot,
    prior: Prior,
    k: int,
    ci_prob: float,
    ci_kind: str,
    settings: SamplerSettings,
) -> tuple[float, float]:
    """Width of the interval, and posterior mean, at k from a simulated pilot."""
    data_seed, fit_seed = seed_sequence(pilot.seed).spawn(2)
    last_loss = loss_bins(pilot.n_classes)
    instances = pilot.n_classes * pilot.repeats
    effective = max(round(instances / pilot.design_effect), 1)
    counts = np.random.default_rng(data_seed).multinomial(effective, pilot.bins)
    matrix = prior.basis.bin_probabilities(last_loss, pilot.n_classes)
    data = BernsteinData(matrix, counts * (instances / effective), instances / effective)
    tree = sample_posterior(prior, data, settings, int(fit_seed.generate_state(1)[0]))
    weights = tree["mixture"].to_dataset()["weights"].values
    draws = xr.DataArray(weights @ prior.basis.accuracy(np.array([k]))[0], dims=SAMPLE_DIMS)
    lower, upper = interval_of(draws, ci_prob, ci_kind).values
    return float(upper - lower), float(draws.mean())
