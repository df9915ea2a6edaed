"""Plan a pilot: numbers of classes and instances for an interval of a given width."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr

from classex_bayes.arguments import (
    FEWEST_CLASSES,
    class_count,
    class_counts,
    how_many,
    numbers,
    probability,
    seed_sequence,
    share,
    source_task,
    truth_value,
)
from classex_bayes.core.metrics import MeanMetric, named_metric
from classex_bayes.evaluate.planned_pilots import (
    populations_of_corpus,
    populations_of_task,
    simulated_draws,
)
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import Display, Shown, percent
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results.draws import SAMPLE_DIMS, interval_label, interval_of, interval_settings
from classex_bayes.task.provenance import refuse_all_relevant
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.task_statistics import notes_of
from classex_bayes.typing import RandomSeed

USUAL_REACHED, USUAL_POWER = 0.5, 0.8
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
        means). "reached" and "power" are present only if requested. If instances have negatives of
        their own, the first columns are "negatives" and "users", the number of instances.
    k : int
        Number of classes asked for.
    width : float or None
        Wanted width of the interval of the metric at k.
    excludes : float or None
        Value of the metric that the interval should exclude.
    ci_prob, ci_kind
        Level and kind of the interval.
    n_pilots : int
        Number of pilots simulated for each design.
    assumed : tuple of float
        Mean and standard deviation of the metric at k that the pilots were simulated from.
    metric : str
        Name of the metric, such as "accuracy" or "recall@10".
    notes : tuple of str
        Notes on the existing pilot, such as few errors, in which case the prior dominates the
        assumed accuracy. The assumed weights of new classes, if weights are unequal. Without a
        pilot, the number of real populations that the pilots were simulated from, and the number of
        those whose accuracy at k is an extrapolation.
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
    metric: str = "accuracy"
    notes: tuple[str, ...] = ()

    def cheapest(self, reached: float = USUAL_REACHED, *, power: float = USUAL_POWER) -> pd.Series:
        """Design with the fewest instances that meets the requirements.

        Parameters
        ----------
        reached : float
            Share of the simulated pilots that must reach the width, if a width was given. Half of
            them by default.
        power : float
            Share of the simulated pilots whose interval must exclude the value, if one was given.

        Returns
        -------
        Series
            Row of `table`. Among designs with equally many instances, the one with the narrowest
            intervals. `DataError` if no design meets the requirements.
        """
        goals = {"reached": share(reached, "reached"), "power": share(power, "power")}
        designs = self._meeting(goals)
        if designs.empty:
            raise DataError(f"classes, repeats: {self._no_design(goals)}")
        return designs.iloc[0]

    @property
    def quantity(self) -> str:
        """Name of the quantity of the interval, such as "recall@10"."""
        return named_metric(self.metric).label

    @property
    def advice(self) -> str:
        """The design with the fewest instances, or what to change where none is good enough."""
        goals = {"reached": USUAL_REACHED, "power": USUAL_POWER}
        designs = self._meeting(goals)
        if designs.empty:
            return self._no_design(goals)
        row, found = designs.iloc[0], []
        total = "" if self._size == "users" else f", {row['instances']:.0f} in all"
        if self.width is not None:
            found.append(f"{row['reached']:.0%} of the pilots reach the width")
        if self.excludes is not None:
            found.append(f"power {row['power']:.2f}")
        error = max((goals[name] * (1 - goals[name])) ** 0.5 for name in goals if name in row)
        return (
            f"fewest {self._size}: {_design(row)}{total}; {', '.join(found)} (standard error of "
            f"{self.n_pilots} simulated pilots: {error / self.n_pilots**0.5:.2f})"
        )

    @property
    def _size(self) -> str:
        """The column of the number of test instances."""
        return "users" if "users" in self.table else "instances"

    def _meeting(self, goals: dict[str, float]) -> pd.DataFrame:
        """Designs with at least these shares of the pilots, those with the fewest instances first.

        Of designs with equally many instances, the one with the narrowest intervals is first.
        """
        designs = self.table.sort_values([self._size, "width"])
        for name, least in goals.items():
            if name in designs:
                designs = designs[designs[name] >= least]
        return designs

    def _no_design(self, goals: dict[str, float]) -> str:
        """What no design reaches, and what to change."""
        wanted = []
        if self.width is not None:
            wanted.append(f"reaches the width {self.width:g} for {goals['reached']:.0%}")
        if self.excludes is not None:
            wanted.append(f"excludes {self.excludes:g} for {goals['power']:.0%}")
        larger = "negatives or users" if "users" in self.table else "classes or instances"
        return (
            f"no design {' and '.join(wanted)} of its pilots. Plan with more {larger}"
            f"{'' if self.width is None else ', or a larger width'}"
        )

    def _display(self) -> Display:
        mean, sd = self.assumed
        width = "" if self.width is None else f" of width {self.width:g}"
        value = "" if self.excludes is None else f" that excludes {self.excludes:g}"
        header = (
            f"Plan: {interval_label(self.ci_prob, self.ci_kind)}{width}{value} at {self.k:,} "
            f"classes, where the {self.quantity} is assumed to be {mean:.3f} (sd {sd:.3f}); "
            f"{self.n_pilots} pilots of each design"
        )
        advice = (self.advice, *(f"note: {note}" for note in self.notes))
        return Display(header, self.table, advice, decimals=3, index=False)


def _design(row: pd.Series) -> str:
    if "users" in row:
        return f"{row['users']:.0f} users with {row['negatives']:.0f} negatives each"
    classes = f"{row['classes']:.0f} classes with"
    if row["repeats"] < 1:
        return f"{classes} one instance of {percent(row['repeats'])} of them"
    return f"{classes} {row['repeats']:g} instance{'' if row['repeats'] == 1 else 's'} each"


def plan(
    task: SourceTask | None,
    k: int,
    *,
    width: float | None = None,
    excludes: float | None = None,
    metric: str = "accuracy",
    classes: Sequence[int] | None = None,
    repeats: Sequence[float] | None = None,
    negatives: Sequence[int] | None = None,
    users: Sequence[int] | None = None,
    n_pilots: int = 20,
    ci_prob: float | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> Plan:
    r"""Find the number of classes and repeats that a pilot needs for a width or for power.

    For each design (k1, r), pilots are simulated. Favorabilities are drawn from the law of a
    population. A pilot is a histogram of ranks with the information of k1 r / d independent
    instances, where d = 1 + (r - 1) rho + r c is the design effect
    (`classex_bayes.core.dependence.AnswerDependence`). The posterior of the default model gives the
    interval.

    Parameters
    ----------
    task : SourceTask or None
        A small pilot. Pilots are simulated from all its posterior draws, so its uncertainty is
        included. The dependence between its answers is used. A guess is a pilot, too: one of
        `SourceTask.from_accuracies`, with as many instances as it is certain.

        None if nothing is known yet. Pilots are simulated from the real populations of the corpus
        (docs/corpus.md), whose kinds alternate, with rho = 0.20 and c = 0.08.
    k : int
        Number of classes asked for.
    width : float, optional
        Largest acceptable width of the interval of the metric at k, in (0, 1).
    excludes : float, optional
        Value that the interval should exclude, such as the accuracy of chance, 1 / k.
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
    negatives, users : sequence of int, optional
        Numbers of negatives of each instance and of instances to try, in place of `classes` and
        `repeats`, if instances have negatives of their own (`SourceTask.from_ranks`). By default
        the negatives of the pilot, and 1, 2, 4 and 8 times as many instances.
    n_pilots : int
        Number of pilots to simulate for each design, from the same populations for all designs. A
        power of 0.8 has the standard error 0.09 with 20 of them and 0.04 with 100.
    ci_prob : optional
        Level of the interval; by default 0.9, or ArviZ's changed rcParams, as its kind.
    random_seed : int, SeedSequence or None
        Seed. The same seed gives the same numbers.
    progressbar : bool
        Whether to show progress and the remaining time on a terminal.

    Notes
    -----
    The intervals use only the new pilot. An existing small pilot can later be pooled with it
    (`BayesianExtrapolator.fit` with a list of tasks). To find out whether a pilot is large enough,
    pass it with its own size as the only design.

    Widths are those at the accuracy that the existing pilot suggests (`Plan.assumed`). They will be
    larger if the accuracy is nearer to 1/2, as after a pilot with too few errors. The width of a
    single pilot has a Monte Carlo error of about 5%, which "width_sd" contains.

    If the guess is uncertain, power is an average over it, also called assurance. With larger
    pilots it tends to the probability that the value is wrong and not to 1.

    References
    ----------
    Kruschke, Doing Bayesian Data Analysis (2015), chapter 13 (precision and power as goals of
    planning); Zheng, Achanta and Benjamini, draft (2016), section 1 (power against generality in
    the choice of the number of classes).

    Examples
    --------
    Guess an accuracy of 0.8 on 100 classes, as certain as 200 independent instances.

    >>> guess = SourceTask.from_accuracies(
    ...     [100], [0.8], n_test=200, n_classes=100, design_effect=1
    ... )
    >>> pilots = plan(
    ...     guess, 1000, width=0.2, classes=[50, 400], repeats=[2], n_pilots=4, random_seed=1,
    ...     progressbar=False,
    ... )
    >>> int(pilots.cheapest()["classes"])
    400
    """
    target_k, chosen = class_count(k, "k", smallest=2), named_metric(metric)
    if not isinstance(chosen, MeanMetric) or chosen.is_rank:
        raise DataError(f"metric: found {metric!r}, expected a mean in [0, 1], such as 'mrr'")
    if task is not None:
        source_task(task)
        refuse_all_relevant(chosen, task.several_relevant)
    if width is None and excludes is None:
        raise DataError(
            "width: found neither width nor excludes; expected the width of the interval, or a "
            "value that it should exclude"
        )
    wanted = None if width is None else probability(width, "width")
    excluded = None if excludes is None else share(excludes, "excludes")
    prob, kind = interval_settings(ci_prob, None)
    designs = _designs(classes, repeats, negatives, users, task, target_k)
    n_simulated, show = how_many(n_pilots, "n_pilots"), truth_value(progressbar, "progressbar")
    of_populations, of_pilots = seed_sequence(random_seed).spawn(2)
    if task is None:
        rng = np.random.default_rng(of_populations)
        populations = populations_of_corpus(target_k, n_simulated, rng)
    else:
        populations = populations_of_task(task, n_simulated, of_populations, show)
    draws = simulated_draws(populations, designs, target_k, chosen, of_pilots, show)
    # Of a simulated pilot all draws are one chain.
    array = xr.DataArray(draws[:, :, None], dims=("design", "pilot", *SAMPLE_DIMS))
    ends = interval_of(array, prob, kind)
    lower, upper = (ends.sel(ci_bound=side).values for side in ("lower", "upper"))
    widths = upper - lower
    truth = populations.law.expected(np.array([target_k]), chosen)[:, 0]
    table = pd.DataFrame(designs, columns=["classes", "repeats"])
    table["instances"] = (table["classes"] * table["repeats"]).round().astype(int)
    if task is not None and not task.table.competitors_shared:
        table = pd.DataFrame({"negatives": table["classes"] - 1, "users": table["instances"]})
    table["width"] = widths.mean(axis=1)
    table["width_sd"] = widths.std(axis=1, ddof=1) if n_simulated > 1 else np.nan
    if wanted is not None:
        table["reached"] = (widths <= wanted).mean(axis=1)
    if excluded is not None:
        table["power"] = ((lower > excluded) | (upper < excluded)).mean(axis=1)
    table["error"] = np.sqrt(np.mean((draws.mean(axis=-1) - truth) ** 2, axis=1))
    notes = () if task is None else notes_of([task])
    if task is not None and task.table.has_scores:
        notes += (_RANKS_OF_PILOTS,)
    return Plan(
        table,
        target_k,
        wanted,
        excluded,
        prob,
        kind,
        n_simulated,
        (float(truth.mean()), float(truth.std())),
        chosen.name,
        (*notes, *populations.notes),
    )


def _designs(
    classes: Sequence[int] | None,
    repeats: Sequence[float] | None,
    negatives: Sequence[int] | None,
    users: Sequence[int] | None,
    task: SourceTask | None,
    k: int,
) -> list[tuple[int, float]]:
    """Pairs of a number of classes and a number of instances of each; see `plan` on defaults."""
    has_own = task is not None and not task.table.competitors_shared
    if (negatives, users) != (None, None) and not (has_own and classes is repeats is None):
        raise DataError(
            "negatives, users: expected them for a pilot whose instances have negatives of their "
            "own, without classes and repeats; pass classes= and repeats="
        )
    if task is not None and has_own and classes is repeats is None:
        sizes = class_counts([task.n_classes - 1] if negatives is None else negatives, "negatives")
        usual = task.n_test * _TIMES if users is None else users
        numbers_of_users = class_counts(usual, "users", smallest=FEWEST_CLASSES)
        return [(n + 1, m / (n + 1)) for n, m in product(sizes.tolist(), numbers_of_users.tolist())]
    usual, per_class = np.array([50, 100, 200, 400]), np.array([1, 2, 5])
    if task is not None:
        n_classes, n_test = task.n_classes, task.n_test
        usual = n_classes * _TIMES[n_classes * _TIMES <= max(k, n_classes)]
        if n_test < n_classes:
            usual = usual[:1]
            fewest = FEWEST_CLASSES / n_classes
            per_class = np.unique(np.clip(_TIMES * n_test / n_classes, fewest, 1))
    sizes = class_counts(usual if classes is None else classes, "classes", smallest=FEWEST_CLASSES)
    expected = f"positive numbers, so that each pilot has at least {FEWEST_CLASSES} instances"
    values = numbers(
        per_class if repeats is None else repeats,
        "repeats",
        expected,
        lambda r: np.rint(r * sizes.min()) >= FEWEST_CLASSES,
    )
    if np.all(values == np.rint(values)):
        values = values.astype(int)
    return list(product(np.sort(sizes).tolist(), np.unique(values).tolist()))
