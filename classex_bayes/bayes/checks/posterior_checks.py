"""Posterior predictive checks: they compare a task with replicates from the model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from classex_bayes.arguments import source_task
from classex_bayes.bayes.checks.class_ranks import ClassRanks, class_ranks, task_position
from classex_bayes.bayes.extrapolator import BayesianExtrapolator, checked_model
from classex_bayes.bayes.fit_attributes import Stage
from classex_bayes.bayes.idata import task_part, task_sizes
from classex_bayes.bayes.model.likelihoods import BernsteinData
from classex_bayes.exceptions import DataError
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results.check_report import CheckReport
from classex_bayes.results.draws import (
    SAMPLE_DIMS,
    interval_columns,
    interval_of,
    interval_settings,
)
from classex_bayes.task.rank_bins import bin_counts
from classex_bayes.task.rules import Finding
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray, RandomSeed

_N_K = 6
# With fewer expected instances, Pearson's distance is far from chi-square.
_FEWEST_EXPECTED = 5.0
_GROUPS_PER_DECADE = 2
_LEVEL = 0.01
_N_WORST = 5
_NEEDED = (
    "needs the task, with exact ranks and several instances in some classes: with one instance per "
    "class, broken classes look like hard instances"
)
_ALIKE = (
    "classes are more alike than chance allows; the instances of a class seem to be of different "
    "kinds (fonts, cameras), as in a stratified sample"
)
Group = Literal["posterior", "prior"]


def _two_sided(above: float) -> float:
    return 2 * min(above, 1 - above)


def _too_low(above: float) -> float:
    return min(2 * (1 - above), 1.0)


def _too_high(above: float) -> float:
    return min(2 * above, 1.0)


def _upper(above: float) -> float:
    return above


class Discrepancy(NamedTuple):
    """A statistic of the data, at every draw if it depends on the law, and of replicates.

    `tail` returns the p-value from the share of replicates above the data.
    """

    observed: float | FloatArray
    replicated: FloatArray
    tail: Callable[[float], float] = _two_sided
    advice: str = ""  # follows the finding if it is unusual

    @property
    def above(self) -> float:
        """Share of replicates above the observed value; equal values count half."""
        draws, observed = self.replicated, self.observed
        return float(np.mean(draws > observed) + np.mean(draws == observed) / 2)

    @property
    def numbers(self) -> dict[str, float]:
        """Observed value, and mean and interval of the replicates."""
        settings = interval_settings(None, None)
        limits = interval_of(xr.DataArray(self.replicated[None], dims=SAMPLE_DIMS), *settings)
        return {
            "observed": float(np.mean(self.observed)),
            "mean": float(self.replicated.mean()),
            **dict(zip(interval_columns(*settings), map(float, limits.values), strict=True)),
        }

    def finding(self, name: str) -> Finding:
        """Whether the observed value is among the replicates."""
        observed, mean, lower, upper = self.numbers.values()
        p_value = self.tail(self.above)
        passed = p_value >= _LEVEL
        sentence = (
            f"{observed:.3g} in the pilot, replicates {mean:.3g} ({lower:.3g} to {upper:.3g}), "
            f"p {p_value:.3f}{'' if passed else self.advice}"
        )
        return Finding(name, passed, sentence, p_value, _LEVEL)


@dataclass(frozen=True, repr=False, eq=False)
class PredictiveReport(CheckReport):
    """Checks of a fitted model; made by `posterior_checks`.

    Attributes
    ----------
    checks : tuple of Finding
        Findings in a fixed order. ``report["ranks: distance"]`` is that of this discrepancy. The
        value of a discrepancy is a p-value, and it fails if this is below the limit 0.01. Distances
        fail only if they are too large: a value below the interval with a p-value near 1 means that
        the model fits better than usual.
    title : str
        Size of the replicates.
    discrepancies : dict from str to Discrepancy
        Observed value and replicates of the checks that compare with these, for plots. `table` has
        their columns "observed", "mean" and interval over the replicates.
    model : BayesianExtrapolator
        The checked model.
    task : SourceTask or None
        The argument `task` of `posterior_checks`.

    Notes
    -----
    Predictive p-values are not uniform even if the model is correct. It was fitted to the same
    data, which moves them towards 0.5. The distance of the ranks is compared with that of a
    replicate from the same draw. The page "Is the interval right?" reports how often sound and
    broken tasks raise an alarm. With one instance per class, broken classes cannot be distinguished
    from hard instances. `classex_bayes.diagnose` detects a competitor that beats every true class.
    """

    plot = PlotMethod("plot_ppc")

    discrepancies: Mapping[str, Discrepancy]
    model: BayesianExtrapolator
    task: SourceTask | None = None

    @property
    def table(self) -> pd.DataFrame:
        """All checks as rows, with the numbers of the discrepancies."""
        numbers = {name: found.numbers for name, found in self.discrepancies.items()}
        return super().table.join(pd.DataFrame.from_dict(numbers, orient="index"))


def posterior_checks(
    model: BayesianExtrapolator,
    task: SourceTask | None = None,
    *,
    random_seed: RandomSeed = None,
) -> PredictiveReport:
    r"""Check a fitted model, among others against replicates of its task.

    There are six kinds of checks:

    - Those that *every fit* makes (``model.checks_``): whether the model gives the accuracies on up
      to k1 classes that were measured, whether the tails of scores predict the ranks in held-out
      halves of the classes (``model.tails_``), and the result of
      `classex_bayes.extrapolation_check`, if it was made for this model.
    - *Best law*: nats by which the log-likelihood of the draws lies below that of the best law on
      the knots, for the data and for replicates (``model.fit_gap_``). This check and those of every
      fit are made for the fitted task alone.
    - *Ranks*: shares of instances in groups of ranks, and Pearson's distance from the expectation
      of each draw over these groups, :math:`\sum_g (n_g - n p_g)^2 / (n p_g \mathrm{deff})`. The
      groups are rank 1, then two for each decade. Groups are joined until each has at least 5
      expected independent instances.
    - *ATA*: average test accuracy at six k.
    - *Classes*: the standard deviation and the minimum over classes of the accuracy at k1, and the
      number of classes that seem to answer at random, with the probability that no class does. It
      is below 0.05 for at most one in 19 sound tasks whose classes differ as in the model.

    Each discrepancy fails at the level 0.01. The test is one-sided (upper) for distances. For
    others the p-value of one tail is doubled. Classes that are more alike than the replicates get a
    note and no alarm.

    Replicates of ranks and ATA have as many independent instances as the likelihood counts
    (`classex_bayes.bayes.model.likelihoods.coarsening`): fewer than 5,000. So smaller differences
    than the posterior allows are not unusual, however large the task is.

    Classes differ in every task, by more than chance. So ranks of replicated classes are correlated
    within a class. The correlation is learnt from the classes that do not seem to answer at random,
    with a prior from sound laws (`classex_bayes.bayes.checks.class_ranks`). So broken classes are
    unusual, but a large spread between classes is not.

    Parameters
    ----------
    model : BayesianExtrapolator
        A fitted model. If `idata` has no replicates, or a seed is given, they are drawn.
    task : SourceTask, optional
        Task to compare with the replicates: the fitted task (default), one of several fitted
        tasks, or a second task with the same number of classes. For a loaded model the check of
        the classes needs it.
    random_seed : int, SeedSequence or None
        Seed of the replicates; by default that of the fit.

    Returns
    -------
    PredictiveReport

    References
    ----------
    Gelman, Meng and Stern, Statistica Sinica 6 (1996) (discrepancies that depend on parameters).

    Examples
    --------
    >>> from classex_bayes import BayesianExtrapolator
    >>> task = SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], range(50), n_classes=50)
    >>> model = BayesianExtrapolator().fit(
    ...     task, sampler={"draws": 500, "tune": 500, "chains": 2}, random_seed=1, progressbar=False
    ... )
    >>> posterior_checks(model).passed
    True
    """
    observed, replicated = observed_and_replicated(model, task, "posterior", random_seed)
    position = task_position(model, task)
    checks: list[Finding] = []
    if task is None or model.is_fitted_to(task):
        gap = model.fit_gap_
        checks = [*model.checks_, *([] if gap is None else [gap.finding])]
    found: dict[str, Discrepancy] = {}
    if (data := model.histogram_) is None:
        checks.append(Finding("ranks", None, "needs ranks"))
    else:
        found |= _of_ranks(observed, replicated, model.weights_.values, data.part(position))
    for k in _spread(observed["k"].values):
        draws = replicated["accuracy"].sel(k=k).transpose(*SAMPLE_DIMS).values.ravel()
        found[f"accuracy: k = {k}"] = Discrepancy(float(observed["accuracy"].sel(k=k)), draws)
    checks += [discrepancy.finding(name) for name, discrepancy in found.items()]
    try:
        classes = class_ranks(model, task)
    except DataError:
        checks.append(Finding("classes", None, _NEEDED, is_note=True))
    else:
        of_classes = _of_classes(classes, model.attributes_.rng(Stage.CLASS_CHECKS, random_seed))
        found |= of_classes
        differ, lowest = (discrepancy.finding(name) for name, discrepancy in of_classes.items())
        if of_classes[differ.name].above > 1 - _LEVEL / 2:
            differ = replace(differ, sentence=f"{differ.sentence}; {_ALIKE}", is_note=True)
        checks += [differ, lowest, classes.at_random]
    n_classes, n_test, _ = task_sizes(model.idata)[position]
    title = f"Replicates of {n_classes} classes, {n_test} instances"
    return PredictiveReport(tuple(checks), title, found, model, task)


def observed_and_replicated(
    model: BayesianExtrapolator,
    task: SourceTask | None = None,
    group: Group = "posterior",
    random_seed: RandomSeed = None,
) -> tuple[xr.Dataset, xr.Dataset]:
    """Histogram of ranks (bin) and accuracies (k) of a task, and their replicates from a model.

    The replicates have the further dimensions chain and draw. They are drawn if `idata` has none
    or a seed is given. Accuracies have no histogram. `task` is as in `posterior_checks`.
    """
    tree = checked_model(model).idata
    if task is not None:
        source_task(task)
    position = task_position(model, task)
    name, drawn = f"{group}_predictive", tree
    if name not in tree or random_seed is not None:
        if group == "posterior":
            model.sample_posterior_predictive(random_seed=random_seed)
        else:
            passed = task if model.is_loaded else None  # a file has no scores
            drawn = model.sample_prior_predictive(passed, random_seed=random_seed)
    observed = task_part(tree["observed_data"].to_dataset(), position)
    replicated = task_part(drawn[name].to_dataset(), position)
    if task is None or any(task is fitted for fitted in model.tasks):
        return observed, replicated
    observed = observed.copy()
    if "rank_histogram" in observed:
        counts = bin_counts(task.require("ranks"), ends=observed["bin"].values - 1)
        observed["rank_histogram"] = ("bin", counts)
    if observed["k"].size:
        observed["accuracy"] = ("k", task.accuracy(observed["k"].values))
    return observed, replicated


def _spread(grid: IntArray) -> IntArray:
    """At most six numbers of classes, evenly spaced on the log scale."""
    if grid.size == 0:
        return grid
    spaced = np.geomspace(grid[0], grid[-1], _N_K)
    return np.unique(grid[np.abs(np.log(grid[:, None] / spaced)).argmin(axis=0)])


def _of_classes(classes: ClassRanks, rng: np.random.Generator) -> dict[str, Discrepancy]:
    """Standard deviation and minimum of the accuracy over classes."""
    spread, lowest = classes.discrepancies(classes.replicates(rng))
    worst = np.argsort(classes.accuracy, kind="stable")[:_N_WORST]
    named = ", ".join(f"{classes.names[j]} ({classes.accuracy[j]:.2f})" for j in worst)
    advice = f"; classes with the lowest accuracy: {named}"
    return {
        "classes: sd of accuracy": Discrepancy(*spread, _too_high, advice),
        "classes: lowest accuracy": Discrepancy(*lowest, _too_low, advice),
    }


def _of_ranks(
    observed: xr.Dataset, replicated: xr.Dataset, weights: FloatArray, data: BernsteinData
) -> dict[str, Discrepancy]:
    """Shares of instances in groups of ranks, and Pearson's distance over the groups.

    None of a single group, to which all instances belong.
    """
    counts = observed["rank_histogram"].values
    draws = replicated["rank_histogram"].transpose(*SAMPLE_DIMS, "bin").values
    share = np.maximum(weights @ data.matrix.T, 0).reshape(-1, counts.size)
    share /= share.sum(axis=1, keepdims=True)
    last_rank = observed["bin"].values
    starts = rank_groups(last_rank, data.effective_sample * share.mean(axis=0))
    if starts.size == 1:
        return {}
    total = data.counts.sum()
    expected = total * np.add.reduceat(share, starts, axis=1)
    histograms = np.vstack([counts * total / counts.sum(), draws.reshape(-1, counts.size)])
    groups = np.add.reduceat(histograms, starts, axis=1)
    scale = expected * total / data.effective_sample
    distance = ((groups[:1] - expected) ** 2 / scale).sum(axis=1)
    replicated_distance = ((groups[1:] - expected) ** 2 / scale).sum(axis=1)
    found = {"ranks: distance": Discrepancy(distance, replicated_distance, _upper)}
    first = np.append(0, last_rank[:-1])[starts] + 1
    last = np.append(first[1:] - 1, last_rank[-1])
    for low, high, values in zip(first, last, groups.T / total, strict=True):
        label = f"ranks: {low}" + (f" to {high}" if high > low else "")
        found[label] = Discrepancy(float(values[0]), values[1:])
    return found


def rank_groups(last_rank: IntArray, expected: FloatArray) -> IntArray:
    """First bins of groups of ranks, each with at least 5 expected instances.

    If fewer than 5 instances are expected in total, there is one group.
    """
    decade = np.floor(_GROUPS_PER_DECADE * np.log10(last_rank) + 1e-9)
    decade[0] = -1  # rank 1: a correct answer
    starts = [0]
    for bin_ in np.flatnonzero(np.diff(decade)) + 1:
        if expected[starts[-1] : bin_].sum() >= _FEWEST_EXPECTED:
            starts.append(int(bin_))
    if len(starts) > 1 and expected[starts[-1] :].sum() < _FEWEST_EXPECTED:
        starts.pop()
    return np.array(starts)
