"""Plan a pilot: numbers of classes and repeats for an interval of a given width."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from classex_bayes.arguments import (
    class_count,
    class_counts,
    how_many,
    is_real,
    number,
    one_of,
    probability,
    seed_sequence,
    share,
    truth_value,
)
from classex_bayes.bayes.coupling import (
    TYPICAL_CORRELATION,
    couple,
    coupled_order,
    sampling_correlation,
)
from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.idata import dependence_of
from classex_bayes.bayes.law_model import LawModel
from classex_bayes.bayes.model.priors import MixturePrior, Prior, checked_prior
from classex_bayes.bayes.sampling import SamplerSettings, sampler_settings
from classex_bayes.core.dependence import AnswerDependence, typical_dependence
from classex_bayes.core.law import MixtureLaw
from classex_bayes.evaluate.corpus_laws import CorpusLaw, corpus_laws, kinds_in_turn
from classex_bayes.evaluate.simulated_pilots import (
    Population,
    SimulatedPilot,
    accuracy_of,
    bins_of_pilots,
    posteriors,
    simulated_counts,
)
from classex_bayes.exceptions import ConvergenceWarning, DataError
from classex_bayes.formatting import Display, Shown
from classex_bayes.parallel import checked_jobs
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results import SAMPLE_DIMS, interval_label, interval_of, interval_settings
from classex_bayes.simulate import KnownLaw
from classex_bayes.task.data_checks import notes_of
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import FEWEST_CLASSES
from classex_bayes.typing import FloatArray, IntArray, RandomSeed

SAMPLER = {"draws": 300, "tune": 300, "chains": 2, "target_accept": 0.9}
# A guessed accuracy has the weight of one measured on this number of independent instances.
_GUESS_INSTANCES = 200
USUAL_POWER = 0.8
Guess = KnownLaw | Mapping[int, float] | SourceTask | LawModel | None


@dataclass(frozen=True, repr=False, eq=False)
class Plan(Shown):
    """Intervals that pilots of several designs would give; made by `plan`.

    Attributes
    ----------
    table : DataFrame
        One row for each design: "classes" (k1), "repeats" (r), "instances" (k1 r), "width" and
        "width_sd" (mean and standard deviation over simulated pilots), "reached" (share of them
        whose interval is at most as wide as requested), "power" (share of them whose interval does
        not contain the excluded value) and "error" (root mean square error of their posterior
        means). "reached" and "power" are present only if requested.
    k : int
        Number of classes asked for.
    width : float or None
        Wanted width of the interval of the accuracy at k.
    excludes : float or None
        Accuracy, or difference of two, that the interval should exclude.
    ci_prob, ci_kind
        Level and kind of the interval.
    n_pilots : int
        Number of pilots simulated for each design.
    accuracy : tuple of float
        Mean and standard deviation of the accuracies at k, or of the differences of two, that the
        pilots were simulated from.
    notes : tuple of str
        Doubts about the existing pilot, such as few errors, in which case the prior dominates the
        assumed accuracy. The assumed weights of new classes, if weights are unequal. Without a
        pilot, the number of real populations that the pilots were simulated from, and the number of
        those whose accuracy at k is an extrapolation. For two classifiers, the assumed correlation
        of their errors.
    of_difference : bool
        Whether the interval is that of the difference of two accuracies.
    """

    plot = PlotMethod("plot_plan")

    table: pd.DataFrame
    k: int
    width: float | None
    excludes: float | None
    ci_prob: float
    ci_kind: str
    n_pilots: int
    accuracy: tuple[float, float]
    notes: tuple[str, ...] = ()
    of_difference: bool = False

    def cheapest(
        self,
        reached: float = 0.5,
        *,
        power: float = USUAL_POWER,
        per_class: float = 0.0,
        per_instance: float = 1.0,
    ) -> pd.Series:
        """Design with the lowest cost that meets the requirements.

        Parameters
        ----------
        reached : float
            Share of the simulated pilots that must reach the width, if a width was given. Half of
            them by default.
        power : float
            Share of the simulated pilots whose interval must exclude the value, if one was given.
        per_class, per_instance : float
            Costs of a class and of a test instance. By default only instances have a cost.

        Returns
        -------
        Series
            Row of `table` with its "cost". Among designs with equal costs, the one with the
            narrowest intervals.

        Raises
        ------
        DataError
            If no design of the table meets the requirements, or a cost is negative.
        """
        of_width, of_value = share(reached, "reached"), share(power, "power")
        costs = (
            number(per_class, "per_class", 0, False),
            number(per_instance, "per_instance", 0, False),
        )
        enough = self.table
        if self.width is not None:
            enough = enough[enough["reached"] >= of_width]
            if enough.empty:
                best = self.table.sort_values("width").iloc[0]
                raise DataError(
                    f"width: no design reaches {self.width:g} for {of_width:.0%} of its pilots; "
                    f"the narrowest intervals, {best['width']:.3f} on average, come from "
                    f"{_design(best)}. Plan with more classes, or a larger width"
                )
        if self.excludes is not None:
            enough = enough[enough["power"] >= of_value]
            if enough.empty:
                best = self.table.sort_values(["power", "width"], ascending=[False, True]).iloc[0]
                raise DataError(
                    f"excludes: no design excludes {self.excludes:g} for {of_value:.0%} of its "
                    f"pilots; the most powerful, {best['power']:.0%}, has {_design(best)}. Plan "
                    "with more classes or repeats"
                )
        cost = costs[0] * enough["classes"] + costs[1] * enough["instances"]
        return enough.assign(cost=cost).sort_values(["cost", "width"]).iloc[0]

    @property
    def quantity(self) -> str:
        """Name of the quantity of the interval."""
        return "difference" if self.of_difference else "accuracy"

    @property
    def header(self) -> str:
        """The question that the plan answers."""
        mean, sd = self.accuracy
        width = "" if self.width is None else f" of width {self.width:g}"
        value = "" if self.excludes is None else f" that excludes {self.excludes:g}"
        return (
            f"Plan for a {interval_label(self.ci_prob, self.ci_kind)}{width}{value} at {self.k:,} "
            f"classes, where the {self.quantity} is assumed to be {mean:.3f} (sd {sd:.3f}); "
            f"{self.n_pilots} pilots of each design"
        )

    @property
    def advice(self) -> str:
        """The design with the fewest instances, or what to change where none is good enough."""
        try:
            best = self.cheapest()
        except DataError as error:
            return str(error)
        by_width = "reached" in self.table
        share = f"; {best['reached']:.0%} of the pilots reach the width" if by_width else ""
        return (
            f"fewest instances: {best['classes']:.0f} classes with {best['repeats']:.0f} each, "
            f"{best['instances']:.0f} in all{share}"
        )

    def _display(self) -> Display:
        advice = (self.advice, *(f"note: {note}" for note in self.notes))
        return Display(self.header, self.table, advice, decimals=3, index=False)


def _design(row: pd.Series) -> str:
    instances = f"{row['repeats']:.0f} instance{'' if row['repeats'] == 1 else 's'}"
    return f"{row['classes']:.0f} classes with {instances} each"


def plan(
    task: Guess | Sequence[Guess],
    k: int,
    *,
    width: float | None = None,
    excludes: float | str | None = None,
    classes: Sequence[int] = (50, 100, 200, 400),
    repeats: Sequence[int] = (1, 2, 5),
    n_pilots: int = 20,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    prior: Prior | None = None,
    sampler: Mapping[str, Any] = SAMPLER,
    random_seed: RandomSeed = None,
    n_jobs: int | None = -1,
    progressbar: bool = True,
) -> Plan:
    r"""Find the number of classes and repeats that a pilot needs for a width or for power.

    For each design (k1, r), pilots are simulated. Favorabilities are drawn from the guess. A pilot
    is a histogram of ranks with the information of k1 r / d independent instances, where
    d = 1 + (r - 1) rho + r c is the design effect
    (`classex_bayes.core.dependence.AnswerDependence`). Its posterior gives the interval. Few
    posteriors are sampled; the others are reweighted draws of these
    (`classex_bayes.evaluate.law_pool.LawPool`).

    Parameters
    ----------
    task : SourceTask, fitted LawModel, mapping from k to accuracy, KnownLaw, None, or two of them
        Knowledge or guess about the accuracy:

        - a small pilot, or a model fitted to it. Pilots are simulated from all its posterior draws,
          so its uncertainty is included. The dependence between its answers is used;
        - accuracies at some numbers of classes, ``{100: 0.9}``. Each has the weight of an accuracy
          from 200 instances, and the prior determines the rest;
        - a law of `classex_bayes.simulate`;
        - None, if nothing is known yet. Pilots are simulated from the real populations of the
          corpus, whose kinds alternate.

        Without a pilot, rho = 0.20 and c = 0.08. Pass a list of two for two classifiers that will
        be tested on the same instances. The interval is then that of the first accuracy minus the
        second.
    k : int
        Number of classes asked for.
    width : float, optional
        Largest acceptable width of the interval of the accuracy at k, in (0, 1).
    excludes : float or "chance", optional
        Value that the interval should exclude, such as "chance", which is 1 / k. For two
        classifiers pass 0 to detect a difference.
    classes, repeats : sequence of int
        Numbers of classes and of test instances per class to try, in all combinations. All classes
        of a planned pilot are tested, also if `task` has classes without instances (documents
        without a query).
    n_pilots : int
        Number of pilots to simulate for each design, from the same populations for all designs. A
        power of 0.8 has the standard error 0.09 with 20 of them and 0.04 with 100.
    ci_prob, ci_kind : optional
        Level and kind of the interval; ArviZ's rcParams by default.
    prior : MixturePrior or DirichletPrior, optional
        Prior of the model that will be fitted to the pilot. By default that of a model given as
        `task`, else `MixturePrior()`.
    sampler : mapping
        Arguments "draws", "tune", "chains", "target_accept" of `BayesianExtrapolator.fit`.
    random_seed : int, SeedSequence or None
        Seed. The same seed gives the same numbers for any number of threads.
    n_jobs : int, optional
        Number of simultaneous fits; the number of processors by default. None uses the setting of
        `joblib.parallel_config`.
    progressbar : bool
        Whether to show progress and the remaining time on a terminal.

    Returns
    -------
    Plan

    Raises
    ------
    DataError
        If `task` is none of these, neither a width nor a value is given, or an argument is out of
        range.
    NotFittedError
        If a model has no draws.

    Notes
    -----
    The intervals use only the new pilot. An existing small pilot can later be pooled with it
    (`BayesianExtrapolator.fit` with a list of tasks), which narrows the interval further.

    The duration grows with the number of classes: seconds for 1,000, minutes for 100,000.

    Widths are those at the accuracy that the existing pilot suggests (`Plan.accuracy`). Intervals
    are widest at middle accuracies. The intervals of the new pilot will be wider if the accuracy is
    nearer to 1/2 than suggested, as after a pilot with too few errors. They will be narrower if it
    is farther from 1/2.

    If the guess is uncertain, power is an average over it, also called assurance. With larger
    pilots it tends to the probability that the value is wrong and not to 1.

    For two classifiers, answers to the same instances are simulated with the correlation of their
    errors in the two existing pilots if these have the same instances, and with 0.25 otherwise.
    Posteriors are coupled with this correlation, as in `compare_classifiers`.

    If `task` is None, `Plan.accuracy` and "width_sd" also contain the differences between
    populations. Kinds alternate, and so do the populations of a kind, both in random order. Their
    laws are packaged; docs/corpus.md describes the populations. Beyond the number of classes of a
    population its law is an extrapolation, and `Plan.notes` says so.

    References
    ----------
    Kruschke, Doing Bayesian Data Analysis (2015), chapter 13 (precision and power as goals of
    planning); Zheng, Achanta and Benjamini, draft (2016), section 1 (power against generality in
    the choice of the number of classes).

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
    guesses = _guesses(task)
    wanted = None if width is None else probability(width, "width")
    value = _excluded(excludes, target, len(guesses))
    if wanted is None and value is None:
        raise DataError(
            "width: found neither width nor excludes; expected the width of the interval, or a "
            "value that it should exclude"
        )
    level, kind = interval_settings(ci_prob, ci_kind)
    sizes = np.sort(class_counts(classes, "classes", smallest=FEWEST_CLASSES)).tolist()
    per_class = np.sort(class_counts(repeats, "repeats", smallest=1)).tolist()
    n_simulated = how_many(n_pilots, "n_pilots")
    show = truth_value(progressbar, "progressbar")
    jobs = checked_jobs(n_jobs)
    settings = SamplerSettings(**{**sampler_settings(sampler), "cores": 1, "progressbar": False})
    seeds = seed_sequence(random_seed)
    if prior is None and isinstance(guesses[0], BayesianExtrapolator):
        prior = guesses[0].prior
    law = checked_prior(MixturePrior() if prior is None else prior)
    populations = _populations(guesses, law, target, n_simulated, settings, seeds)
    designs = [(size, n_repeats) for size in sizes for n_repeats in per_class]
    pilots = list(populations.pilots(sizes, per_class, seeds))
    drawn = posteriors(pilots, law, target, settings, jobs, show)
    # Of each design, simulated pilot and classifier: accuracies at k1 and at k.
    drawn = drawn.reshape(-1, len(guesses), *drawn.shape[1:])
    rng = np.random.default_rng(_child(seeds, 2))
    draws = np.array(
        [_draws_at_k(accuracies, populations.correlation, rng) for accuracies in drawn]
    )
    ends = interval_of(xr.DataArray(draws[:, None], dims=("pilot", *SAMPLE_DIMS)), level, kind)
    lower, upper = ends.values.reshape(-1, 2).T.reshape(2, len(designs), n_simulated)
    means = draws.mean(axis=-1).reshape(len(designs), n_simulated)
    true = populations.accuracy(target)
    table = pd.DataFrame(designs, columns=["classes", "repeats"])
    table["instances"] = table["classes"] * table["repeats"]
    widths = upper - lower
    table["width"] = widths.mean(axis=1)
    table["width_sd"] = widths.std(axis=1, ddof=1) if n_simulated > 1 else np.nan
    if wanted is not None:
        table["reached"] = (widths <= wanted).mean(axis=1)
    if value is not None:
        table["power"] = ((lower > value) | (upper < value)).mean(axis=1)
    table["error"] = np.sqrt(np.mean((means - true) ** 2, axis=1))
    moments = float(true.mean()), float(true.std())
    notes = tuple(dict.fromkeys([note for guess in guesses for note in _notes_on_pilot(guess)]))
    return Plan(
        table, target, wanted, value, level, kind, n_simulated, moments,
        (*notes, *populations.notes), len(guesses) > 1,
    )  # fmt: skip


def _guesses(task: Any) -> tuple[Any, ...]:
    """The guess of one classifier, or of two."""
    if not isinstance(task, list | tuple):
        return (task,)
    if len(task) != 2 or any(guess is None for guess in task):
        raise DataError(
            f"task: expected a guess of one classifier or of two, found {len(task)}"
            + " with None among them" * (len(task) == 2)
        )
    return tuple(task)


def _excluded(excludes: Any, k: int, n_guesses: int) -> float | None:
    """Value that the interval should exclude."""
    if excludes is None:
        return None
    if n_guesses > 1:
        if not (is_real(excludes) and -1 < excludes < 1):
            raise DataError(
                f"excludes: expected a difference of accuracies in (-1, 1), such as 0, found "
                f"{excludes!r}"
            )
        return float(excludes)
    if isinstance(excludes, str):
        one_of(excludes, ("chance",), "excludes")
        return 1 / k
    return share(excludes, "excludes")


def _draws_at_k(accuracies: FloatArray, correlation: float, rng: np.random.Generator) -> FloatArray:
    """Draws of the accuracy at k, or of the difference of two; from (n_guesses, 2, n_draws)."""
    if len(accuracies) == 1:
        return np.asarray(accuracies[0, 1])
    matrix = np.array([[1, correlation], [correlation, 1]])
    order = coupled_order(accuracies[:, 0], matrix, rng)
    first, second = np.take_along_axis(accuracies[:, 1], order, axis=1)
    return np.asarray(first - second)


@dataclass(frozen=True, eq=False)
class _Populations:
    """Populations of the simulated pilots of each classifier, and how their answers depend."""

    of_each: tuple[list[Population], ...]
    dependence: tuple[AnswerDependence, ...]
    correlation: float
    notes: tuple[str, ...]

    def accuracy(self, k: int) -> FloatArray:
        """Accuracy at k, or the difference of two, of each simulated pilot."""
        first, *others = ([accuracy_of(law, k) for law in laws] for laws in self.of_each)
        return np.subtract(first, others[0]) if others else np.array(first)

    def pilots(
        self, sizes: Sequence[int], repeats: Sequence[int], seeds: np.random.SeedSequence
    ) -> Iterator[SimulatedPilot]:
        """Pilots of each design; of two classifiers, both of one test follow each other."""
        for size in sizes:
            shares = [bins_of_pilots(laws, size) for laws in self.of_each]
            for n_repeats in repeats:
                effective = [
                    max(round(size * n_repeats / known.design_effect(n_repeats)), 1)
                    for known in self.dependence
                ]
                for place, bins in enumerate(zip(*shares, strict=True)):
                    children = _child(seeds, size, n_repeats, place).spawn(1 + len(bins))
                    rng = np.random.default_rng(children[0])
                    counts = simulated_counts(bins, effective, self.correlation, rng)
                    for seen, expected, seed in zip(counts, bins, children[1:], strict=True):
                        fit_seed = int(seed.generate_state(1)[0])
                        yield SimulatedPilot(size, seen, expected, fit_seed)


def _notes_on_pilot(guess: Guess) -> tuple[str, ...]:
    """Doubts about the existing pilot; empty for other guesses and for models from a file."""
    if isinstance(guess, SourceTask):
        return notes_of([guess])
    return notes_of(guess.tasks) if isinstance(guess, LawModel) else ()


def _notes_on_corpus(drawn: list[CorpusLaw], k: int) -> tuple[str, ...]:
    """A sentence on the source of the pilots, and on populations whose accuracy at k is unknown."""
    different = {population.name: population for population in drawn}.values()
    kinds = {population.kind for population in different}
    smaller = sum(population.n_classes < k for population in different)
    notes = [
        f"the pilots were simulated from {len(different)} real populations of {len(kinds)} kinds; "
        "with a small pilot of your own the plan is more precise"
    ]
    if smaller:
        notes.append(
            f"the accuracy at {k:,} is an extrapolation in populations with fewer classes: "
            f"{smaller} of {len(different)}"
        )
    return tuple(notes)


def _child(seeds: np.random.SeedSequence, *place: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seeds.entropy, spawn_key=(*seeds.spawn_key, *place))


def _populations(
    guesses: tuple[Any, ...],
    prior: Prior,
    target: int,
    n_pilots: int,
    settings: SamplerSettings,
    seeds: np.random.SeedSequence,
) -> _Populations:
    """Populations of every simulated pilot, and notes on them."""
    # Spread over the draws or the kinds, whatever their number.
    rng = np.random.default_rng(_child(seeds, 1))
    typical = typical_dependence(FEWEST_CLASSES, FEWEST_CLASSES)
    if guesses[0] is None:
        drawn = kinds_in_turn(corpus_laws(), n_pilots, rng)
        laws: list[Population] = [population.law for population in drawn]
        return _Populations((laws,), (typical,), 0.0, _notes_on_corpus(drawn, target))
    known = [
        _law_or_model(guess, prior, settings, _child(seeds, 0, *[place] * (place > 0)))
        for place, guess in enumerate(guesses)
    ]
    dependence = tuple(
        typical if isinstance(law, KnownLaw) else dependence_of(law.idata) for law in known
    )
    notes = tuple(dict.fromkeys(note for law in dependence for note in law.notes_on_tests))
    correlation, laws_of = 0.0, [law if isinstance(law, KnownLaw) else law.law_ for law in known]
    if len(known) > 1:
        estimated = _correlation(known)
        correlation = TYPICAL_CORRELATION if estimated is None else estimated
        notes += (
            "the errors of the two classifiers are assumed to have the correlation "
            f"{correlation:.2f}"
            + (", estimated from the given pilots" if estimated is not None else ", a typical one"),
        )
        models = {place: law for place, law in enumerate(known) if isinstance(law, LawModel)}
        if estimated is not None and _n_laws(laws_of[0]) == _n_laws(laws_of[1]):
            matrix = np.array([[1, correlation], [correlation, 1]])
            laws_of = [*couple(models, matrix, rng).laws.values()]
    order = rng.permutation(_n_laws(laws_of[0]))
    of_each = []
    for law in laws_of:
        if _n_laws(law) != order.size:
            order = rng.permutation(_n_laws(law))
        of_each.append(_taken(law, order[np.arange(n_pilots) % order.size]))
    return _Populations(tuple(of_each), dependence, correlation, notes)


def _law_or_model(
    guess: Any, prior: Prior, settings: SamplerSettings, seed: np.random.SeedSequence
) -> KnownLaw | LawModel:
    """A law that is known, or a model with draws of laws."""
    if isinstance(guess, KnownLaw):
        return guess
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
            guess = BayesianExtrapolator(prior).fit(guess, random_seed=seed, **asdict(settings))
    if not isinstance(guess, LawModel):
        raise DataError(
            "task: expected a SourceTask, a fitted model such as BayesianExtrapolator, a mapping "
            "from k to accuracy, a law of classex_bayes.simulate or None, found "
            f"{type(guess).__name__}"
        )
    return guess


def _correlation(known: Sequence[KnownLaw | LawModel]) -> float | None:
    """Correlation of the errors in two pilots on the same instances; None for others."""
    tasks = [task for law in known if isinstance(law, LawModel) for task in law.tasks]
    first, second = tasks if len(tasks) == 2 else (None, None)
    if first is None or second is None or "accuracies" in (first.kind, second.kind):
        return None
    if first.n_classes != second.n_classes or not np.array_equal(first.y, second.y):
        return None
    return float(sampling_correlation([first, second])[0, 1])


def _n_laws(law: KnownLaw | MixtureLaw) -> int:
    """Number of draws; 1 of a law that is known."""
    return 1 if isinstance(law, KnownLaw) else law.weights[..., 0].size


def _taken(law: KnownLaw | MixtureLaw, places: IntArray) -> list[Population]:
    """Laws at some places among the draws."""
    if isinstance(law, KnownLaw):
        return [law] * places.size
    flat = law.weights.reshape(-1, law.weights.shape[-1])
    return [replace(law, weights=flat[place]) for place in places]
