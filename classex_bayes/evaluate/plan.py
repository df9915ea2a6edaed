"""Plan a pilot: numbers of classes and instances for an interval of a given width."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
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
    numbers,
    one_of,
    probability,
    seed_sequence,
    share,
    truth_value,
)
from classex_bayes.bayes.model.priors import MixturePrior, Prior, checked_prior
from classex_bayes.bayes.sampling import SamplerSettings
from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.metrics import MeanMetric, named_metric
from classex_bayes.evaluate.pilot_populations import (
    populations_of_corpus,
    populations_of_tasks,
    task_of_guess,
)
from classex_bayes.evaluate.same_instances import require_same_instances
from classex_bayes.evaluate.simulated_pilots import simulated_draws
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import Display, Shown, percent
from classex_bayes.parallel import checked_jobs
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results import SAMPLE_DIMS, interval_label, interval_of, interval_settings
from classex_bayes.task.data_checks import notes_of
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import FEWEST_CLASSES
from classex_bayes.typing import RandomSeed

# Draws of one posterior serve for several pilots. Chains start at maxima and need little tuning.
SAMPLER = {"draws": 1000, "tune": 100, "chains": 2, "target_accept": 0.9}
USUAL_POWER = 0.8
# Sizes of planned pilots, in sizes of the existing one.
_TIMES = np.array([1, 2, 4, 8])
_RANKS_OF_PILOTS = (
    "intervals are those of ranks alone; with scores, intervals far beyond the pilot are narrower"
)


@dataclass(frozen=True, repr=False, eq=False)
class Plan(Shown):
    """Intervals that pilots of several designs would give; made by `plan`.

    Attributes
    ----------
    table : DataFrame
        One row for each design: "classes" (k1), "repeats" (r; below 1, only that share of the
        classes has an instance), "instances" (k1 r), "width" and
        "width_sd" (mean and standard deviation over simulated pilots), "reached" (share of them
        whose interval is at most as wide as requested), "power" (share of them whose interval does
        not contain the excluded value) and "error" (root mean square error of their posterior
        means). "reached" and "power" are present only if requested.
    k : int
        Number of classes asked for.
    width : float or None
        Wanted width of the interval of the metric at k.
    excludes : float or None
        Value of the metric, or difference of two, that the interval should exclude.
    ci_prob, ci_kind
        Level and kind of the interval.
    n_pilots : int
        Number of pilots simulated for each design.
    assumed : tuple of float
        Mean and standard deviation of the metric at k, or of the differences of two, that the
        pilots were simulated from.
    notes : tuple of str
        Notes on the existing pilot, such as few errors, in which case the prior dominates the
        assumed accuracy. The assumed weights of new classes, if weights are unequal. Without a
        pilot, the number of real populations that the pilots were simulated from, and the number of
        those whose accuracy at k is an extrapolation. For two classifiers, the assumed correlation
        of their errors.
    of_difference : bool
        Whether the interval is that of the difference of two classifiers.
    metric : str
        Name of the metric, such as "accuracy" or "recall@10".
    """

    plot = PlotMethod("plot_plan")

    table: pd.DataFrame
    k: int
    width: float | None
    excludes: float | None
    ci_prob: float
    ci_kind: str
    n_pilots: int
    assumed: tuple[float, float]
    notes: tuple[str, ...] = ()
    of_difference: bool = False
    metric: str = "accuracy"

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
        least_reached, least_power = share(reached, "reached"), share(power, "power")
        class_cost = number(per_class, "per_class", 0, whole=False)
        instance_cost = number(per_instance, "per_instance", 0, whole=False)
        designs = self.table
        if self.width is not None:
            designs = designs[designs["reached"] >= least_reached]
            if designs.empty:
                best = self._narrowest
                raise DataError(
                    f"width: no design reaches {self.width:g} for {least_reached:.0%} of its "
                    f"pilots. The narrowest intervals, {best['width']:.3f} on average, come from "
                    f"{_design(best)}. Plan with more classes or instances, or a larger width"
                )
        if self.excludes is not None:
            designs = designs[designs["power"] >= least_power]
            if designs.empty:
                best = self._most_powerful
                raise DataError(
                    f"excludes: no design excludes {self.excludes:g} for {least_power:.0%} of its "
                    f"pilots. The most powerful, {best['power']:.0%}, has {_design(best)}. Plan "
                    "with more classes or instances"
                )
        cost = class_cost * designs["classes"] + instance_cost * designs["instances"]
        return designs.assign(cost=cost).sort_values(["cost", "width"]).iloc[0]

    @property
    def nearest(self) -> pd.Series:
        """Design with the narrowest intervals, or with the most power if no width was given."""
        return self._most_powerful if self.width is None else self._narrowest

    @property
    def _narrowest(self) -> pd.Series:
        return self.table.sort_values("width").iloc[0]

    @property
    def _most_powerful(self) -> pd.Series:
        return self.table.sort_values(["power", "width"], ascending=[False, True]).iloc[0]

    @property
    def quantity(self) -> str:
        """Name of the quantity of the interval."""
        label = named_metric(self.metric).label
        if self.of_difference:
            return "difference" if label == "accuracy" else f"difference of {label}"
        return label

    @property
    def header(self) -> str:
        """The question that the plan answers."""
        mean, sd = self.assumed
        width = "" if self.width is None else f" of width {self.width:g}"
        value = "" if self.excludes is None else f" that excludes {self.excludes:g}"
        return (
            f"Plan: {interval_label(self.ci_prob, self.ci_kind)}{width}{value} at {self.k:,} "
            f"classes, where the {self.quantity} is assumed to be {mean:.3f} (sd {sd:.3f}); "
            f"{self.n_pilots} pilots of each design"
        )

    @property
    def advice(self) -> str:
        """The design with the fewest instances, or what to change where none is good enough."""
        try:
            best = self.cheapest()
        except DataError as error:
            return str(error).split(": ", 1)[1]
        by_width = "reached" in self.table
        share = f"; {best['reached']:.0%} of the pilots reach the width" if by_width else ""
        return f"fewest instances: {_design(best)}, {best['instances']:.0f} in all{share}"

    def _display(self) -> Display:
        advice = (self.advice, *(f"note: {note}" for note in self.notes))
        return Display(self.header, self.table, advice, decimals=3, index=False)


def _design(row: pd.Series) -> str:
    classes = f"{row['classes']:.0f} classes with"
    if row["repeats"] < 1:
        return f"{classes} one instance of {percent(row['repeats'])} of them"
    return f"{classes} {row['repeats']:g} instance{'' if row['repeats'] == 1 else 's'} each"


def plan(
    task: SourceTask | Sequence[SourceTask] | Mapping[int, float] | None,
    k: int,
    *,
    width: float | None = None,
    excludes: float | str | None = None,
    metric: str = "accuracy",
    classes: Sequence[int] | None = None,
    repeats: Sequence[float] | None = None,
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
    task : SourceTask, two of them, mapping from k to accuracy, or None
        Knowledge about the accuracy:

        - a small pilot. Pilots are simulated from all its posterior draws, so its uncertainty is
          included. The dependence between its answers is used;
        - a list of two pilots, of two classifiers that were tested on the same instances. The
          interval is that of the first accuracy minus the second;
        - guessed accuracies at some numbers of classes, ``{100: 0.9}``. Each has the weight of an
          accuracy from 200 instances, and the prior determines the rest;
        - None, if nothing is known yet. Pilots are simulated from the real populations of the
          corpus, whose kinds alternate.

        Without a pilot, rho = 0.20 and c = 0.08.
    k : int
        Number of classes asked for.
    width : float, optional
        Largest acceptable width of the interval of the metric at k, in (0, 1).
    excludes : float or "chance", optional
        Value that the interval should exclude, such as "chance", which is that of random ranks:
        1 / k for the accuracy. For two classifiers pass 0 to detect a difference.
    metric : str
        Metric of `BayesianExtrapolator.predict` that is a mean in [0, 1], such as "recall@10".
    classes, repeats : sequence of int and of float, optional
        Numbers of classes and of test instances per class to try, in all combinations. With 0.25
        repeats every fourth class has one instance, and all compete: documents without a query.

        By default a plan begins with the sizes of the pilot. A pilot with instances of all its
        classes is tried with 1, 2, 4 and 8 times as many, up to k, and 1, 2 and 5 instances each.
        One with fewer instances than classes is tried with all its classes and 1, 2, 4 and 8 times
        as many instances, up to one for each class. Without a pilot the numbers of classes are 50,
        100, 200 and 400.
    n_pilots : int
        Number of pilots to simulate for each design, from the same populations for all designs. A
        power of 0.8 has the standard error 0.09 with 20 of them and 0.04 with 100.
    ci_prob, ci_kind : optional
        Level and kind of the interval; ArviZ's rcParams by default.
    prior : MixturePrior or DirichletPrior, optional
        Prior of the model that will be fitted to the pilot; `MixturePrior()` by default.
    sampler : mapping, optional
        As for `BayesianExtrapolator.fit`.
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
        If `task` is none of these, the two pilots are not tests on the same instances, neither a
        width nor a value is given, or an argument is out of range.

    Notes
    -----
    The intervals use only the new pilot. An existing small pilot can later be pooled with it
    (`BayesianExtrapolator.fit` with a list of tasks), which narrows the interval further.

    The duration grows with the number of classes: seconds for 1,000, minutes for 100,000.

    The width of a single pilot has a Monte Carlo error of about 5%. "width_sd" contains this error.
    In "width" most of it averages out over pilots.

    To find out whether a pilot is large enough, pass it with its own size as the only design.

    Widths are those at the accuracy that the existing pilot suggests (`Plan.assumed`). Intervals
    are widest at middle accuracies. The intervals of the new pilot will be wider if the accuracy is
    nearer to 1/2 than suggested, as after a pilot with too few errors. They will be narrower if it
    is farther from 1/2.

    If the guess is uncertain, power is an average over it, also called assurance. With larger
    pilots it tends to the probability that the value is wrong and not to 1.

    For two classifiers, answers to the same instances are simulated with the correlation of their
    errors in the two existing pilots. Posteriors are coupled with this correlation, as in
    `compare_classifiers`.

    If `task` is None, `Plan.assumed` and "width_sd" also contain the differences between
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
    >>> pilots = plan(
    ...     {100: 0.8}, 1000, width=0.2, classes=[50, 400], repeats=[2], n_pilots=4, random_seed=1,
    ...     sampler={"draws": 100, "tune": 200, "chains": 2}, progressbar=False,
    ... )
    >>> pilots.table["instances"].tolist(), bool(pilots.table["width"].is_monotonic_decreasing)
    ([100, 800], True)
    >>> int(pilots.cheapest()["classes"])
    400
    """
    target_k = class_count(k, "k", smallest=2)
    chosen = _mean_metric(metric)
    tasks = _tasks(task, chosen)
    largest_width = None if width is None else probability(width, "width")
    excluded = _excluded(excludes, target_k, chosen, of_difference=len(tasks) > 1)
    if largest_width is None and excluded is None:
        raise DataError(
            "width: found neither width nor excludes; expected the width of the interval, or a "
            "value that it should exclude"
        )
    prob, kind = interval_settings(ci_prob, ci_kind)
    designs = _designs(classes, repeats, None if isinstance(task, Mapping) else tasks, target_k)
    n_simulated, jobs = how_many(n_pilots, "n_pilots"), checked_jobs(n_jobs)
    show = truth_value(progressbar, "progressbar")
    settings = SamplerSettings.of(sampler, progressbar=False, cores=1)
    seeds = seed_sequence(random_seed)
    model_prior = checked_prior(MixturePrior() if prior is None else prior)
    if tasks:
        populations = populations_of_tasks(
            tasks, model_prior, n_simulated, settings, seeds, chosen, show
        )
    else:
        populations = populations_of_corpus(target_k, n_simulated, seeds, chosen)
    draws = simulated_draws(
        populations, designs, target_k, model_prior, settings, seeds, jobs, show
    )
    # Of a simulated pilot all draws are one chain.
    array = xr.DataArray(draws[:, :, None], dims=("design", "pilot", *SAMPLE_DIMS))
    ends = interval_of(array, prob, kind)
    lower, upper = (ends.sel(ci_bound=side).values for side in ("lower", "upper"))
    widths, truth = upper - lower, populations.expected(target_k)
    table = pd.DataFrame(designs, columns=["classes", "repeats"])
    table["instances"] = (table["classes"] * table["repeats"]).round().astype(int)
    table["width"] = widths.mean(axis=1)
    table["width_sd"] = widths.std(axis=1, ddof=1) if n_simulated > 1 else np.nan
    if largest_width is not None:
        table["reached"] = (widths <= largest_width).mean(axis=1)
    if excluded is not None:
        table["power"] = ((lower > excluded) | (upper < excluded)).mean(axis=1)
    table["error"] = np.sqrt(np.mean((draws.mean(axis=-1) - truth) ** 2, axis=1))
    on_data = () if isinstance(task, Mapping) else notes_of(tasks)
    if any(pilot.table.has_scores for pilot in tasks):
        on_data += (_RANKS_OF_PILOTS,)
    return Plan(
        table,
        target_k,
        largest_width,
        excluded,
        prob,
        kind,
        n_simulated,
        (float(truth.mean()), float(truth.std())),
        (*on_data, *populations.notes),
        len(tasks) > 1,
        chosen.name,
    )


def _mean_metric(name: str) -> MeanMetric:
    metric = named_metric(name)
    if not isinstance(metric, MeanMetric) or metric.is_rank:
        raise DataError(f"metric: found {name!r}, expected a mean in [0, 1], such as 'mrr'")
    return metric


def _designs(
    classes: Sequence[int] | None,
    repeats: Sequence[float] | None,
    tasks: Sequence[SourceTask] | None,
    k: int,
) -> list[tuple[int, float]]:
    """Pairs of a number of classes and a number of instances of each; see `plan` on defaults."""
    usual, per_class = np.array([50, 100, 200, 400]), np.array([1, 2, 5])
    if tasks:
        n_classes, n_test = tasks[0].n_classes, tasks[0].n_test
        usual = n_classes * _TIMES[n_classes * _TIMES <= max(k, n_classes)]
        if n_test < n_classes:
            usual = usual[:1]
            fewest = FEWEST_CLASSES / n_classes
            per_class = np.unique(np.clip(_TIMES * n_test / n_classes, fewest, 1))
    sizes = class_counts(usual if classes is None else classes, "classes", smallest=FEWEST_CLASSES)
    expected = f"positive numbers, so that each pilot has at least {FEWEST_CLASSES} instances"
    given = numbers(
        per_class if repeats is None else repeats,
        "repeats",
        expected,
        lambda r: np.rint(r * sizes.min()) >= FEWEST_CLASSES,
    )
    given = given.astype(int) if np.all(given == np.rint(given)) else given
    return list(product(np.sort(sizes).tolist(), np.unique(given).tolist()))


def _tasks(task: Any, metric: MeanMetric) -> list[SourceTask]:
    """Pilots of one classifier or of two; none if nothing is known."""
    if task is None:
        return []
    if isinstance(task, Mapping):
        return [task_of_guess(task)]
    tasks = list(task) if isinstance(task, list | tuple) else [task]
    if not all(isinstance(pilot, SourceTask) for pilot in tasks) or len(tasks) not in (1, 2):
        raise DataError(
            "task: expected a SourceTask, a list of two, a mapping from k to accuracy or None, "
            f"found {task!r}"
        )
    if len(tasks) == 2:
        require_same_instances(dict(enumerate(tasks)), metric, "task", "plan for each alone")
    return tasks


def _excluded(excludes: Any, k: int, metric: MeanMetric, of_difference: bool) -> float | None:
    """Value that the interval should exclude."""
    if excludes is None:
        return None
    if of_difference:
        if not (is_real(excludes) and -1 < excludes < 1):
            raise DataError(
                f"excludes: expected a difference of accuracies in (-1, 1), such as 0, found "
                f"{excludes!r}"
            )
        return float(excludes)
    if isinstance(excludes, str):
        one_of(excludes, ("chance",), "excludes")
        # The favorability of random ranks is uniform: that of one standard normal element.
        return float(metric.expected(RadialBasis(np.zeros(1), 1.0), np.array([k])).item())
    return share(excludes, "excludes")
