"""Posterior predictive checks: they compare a task with replicates from the model."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from classex_bayes.arguments import probability, source_task
from classex_bayes.bayes.checks.class_ranks import ClassRanks, class_ranks, task_position
from classex_bayes.bayes.checks.tail_checks import TailReport, tail_report
from classex_bayes.bayes.extrapolator import checked_model_with_prior
from classex_bayes.bayes.fit_attributes import Stage
from classex_bayes.bayes.idata import task_part, task_sizes
from classex_bayes.bayes.law_model import LawModel, checked_model
from classex_bayes.bayes.model.likelihoods import BernsteinData
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import Display, Shown
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results.draws import (
    SAMPLE_DIMS,
    interval_columns,
    interval_of,
    interval_settings,
)
from classex_bayes.task.rank_bins import bin_counts
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray, RandomSeed

_N_K = 6
# With fewer expected instances, Pearson's distance is far from chi-square.
_FEWEST_EXPECTED = 5.0
_GROUPS_PER_DECADE = 2
_LEVEL = 0.01
_MOST_NAMES = 10
_AT_RANDOM = "classes: answered at random"
Group = Literal["posterior", "prior"]


def _two_sided(above: float) -> float:
    return 2 * min(above, 1 - above)


def _upper(above: float) -> float:
    return above


class Discrepancy(NamedTuple):
    """A statistic of the data, at every draw if it depends on the law, and of replicates.

    `tail` returns the p-value from the share of replicates above the data. `passed` is the result
    of a check that has a level of its own.
    """

    observed: float | FloatArray
    replicated: FloatArray
    tail: Callable[[float], float] = _two_sided
    passed: bool | None = None

    def row(self, level: float) -> dict[str, Any]:
        """Row of the table."""
        draws, observed = self.replicated, self.observed
        above = float(np.mean(draws > observed) + np.mean(draws == observed) / 2)
        settings = interval_settings(None, None)
        limits = interval_of(xr.DataArray(draws[None], dims=SAMPLE_DIMS), *settings)
        unusual = self.tail(above) < level if self.passed is None else not self.passed
        return {
            "observed": float(np.mean(observed)),
            "mean": float(draws.mean()),
            **dict(zip(interval_columns(*settings), map(float, limits.values), strict=True)),
            "p_value": above,
            "unusual": bool(unusual),
        }


@dataclass(frozen=True, repr=False, eq=False)
class PredictiveReport(Shown):
    """Discrepancies between a task and its replicates; made by `posterior_checks`.

    Attributes
    ----------
    table : DataFrame
        One row for each discrepancy: "observed", "mean" and interval over the replicates, "p_value"
        (share of replicates above the observed value; equal values count half) and "unusual"
        (whether the p-value is beyond the level: near 0, or near 1 if values may be too low).
        Distances and "fit" are unusual only if they are too large: a value below the interval with
        a p-value near 1 means that the model fits better than usual. For
        classes answered at random, "observed" is their expected number and "p_value" the
        probability that there are none. They are unusual below 0.05, and have no replicates.
    replicated : dict from str to array
        Draws of every other discrepancy, for plots.
    title : str
        Size of the replicates.
    notes : tuple of str
        Checks that were left out, with the reason, and the worst classes if they are unusual.
    model : LawModel
        The checked model.
    task : SourceTask or None
        The argument `task` of `posterior_checks`.
    tails : TailReport or None
        Details of the check of the tails of scores, if they were used.

    Notes
    -----
    Predictive p-values are not uniform even if the model is correct. It was fitted to the same
    data, which moves them towards 0.5. The distance of the ranks is compared with that of a
    replicate from the same draw. The page "Is the interval right?" reports how often sound and
    broken tasks raise an alarm. With one instance per class, broken classes cannot be distinguished
    from hard instances. `classex_bayes.diagnose` detects a competitor that beats every true class.
    """

    plot = PlotMethod("plot_ppc")

    table: pd.DataFrame
    replicated: Mapping[str, FloatArray]
    title: str
    notes: tuple[str, ...]
    model: LawModel
    task: SourceTask | None = None
    tails: TailReport | None = None

    @property
    def unusual(self) -> tuple[str, ...]:
        """Names of the unusual discrepancies."""
        return tuple(self.table.index[self.table["unusual"]])

    @property
    def passed(self) -> bool:
        """Whether no discrepancy is unusual."""
        return not self.unusual

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the discrepancies."""
        return iter(self.table.index)

    @property
    def _header(self) -> str:
        names = ", ".join(self.unusual)
        return f"{self.title}: {f'unusual: {names}' if names else 'nothing unusual'}"

    def _display(self) -> Display:
        notes = tuple(f"note: {note}" for note in self.notes)
        return Display(self._header, self.table, notes, decimals=3)


def posterior_checks(
    model: LawModel,
    task: SourceTask | None = None,
    *,
    level: float = _LEVEL,
    random_seed: RandomSeed = None,
) -> PredictiveReport:
    r"""Check a fitted model against replicates of its task.

    There are six kinds of discrepancies:

    - *Ranks*: shares of instances in groups of ranks, and Pearson's distance from the expectation
      of each draw over these groups, :math:`\sum_g (n_g - n p_g)^2 / (n p_g \mathrm{deff})`. The
      groups are rank 1, then two for each decade. Groups are joined until each has at least 5
      expected independent instances.
    - *Fit*: nats by which the log-likelihood of a draw lies below that of the best law on the
      knots, for the data and for a replicate (`FitGap`). It is computed only
      for the fitted task.
    - *ATA*: average test accuracy at six k.
    - *Classes*: the standard deviation and the minimum over classes of the accuracy at k1, and the
      number of classes that seem to answer at random, with the probability that no class does. It
      is below 0.05 for at most one in 19 sound tasks whose classes differ as in the model.
    - *Tails*: ranks in held-out halves of the classes, as the tails of scores predict them
      (`TailReport`), if scores were used. They are unusual at the level 0.05.
    - *Extrapolation*: the result of `classex_bayes.extrapolation_check`, if it was made for this
      model; "mean" is the prediction. It is unusual if that check fails.

    Replicates of ranks, fit and ATA have as many independent instances as the likelihood counts
    (`classex_bayes.bayes.model.likelihoods.coarsening`): fewer than 5,000. So smaller differences
    than the posterior allows are not unusual, however large the task is.

    Classes differ in every task, by more than chance. So ranks of replicated classes are correlated
    within a class. The correlation is learnt from the classes that do not seem to answer at random,
    with a prior from sound laws (`classex_bayes.bayes.checks.class_ranks`). So broken classes are
    unusual, but a large spread between classes is not.

    Parameters
    ----------
    model : LawModel
        A fitted model, such as a `BayesianExtrapolator`. If `idata` has no replicates, or a seed
        is given, they are drawn.
    task : SourceTask, optional
        Task to compare with the replicates: the fitted task (default), one of several fitted
        tasks, or a second task with the same number of classes. For a loaded model the check of
        the classes needs it.
    level : float
        Level of each discrepancy that has replicates. The test is one-sided (upper) for the
        distance and the fit. For other discrepancies the p-value of one tail is doubled. Classes
        that are more alike than the replicates get a note and no alarm.
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
    limit = probability(level, "level")
    observed, replicated = observed_and_replicated(model, task, "posterior", random_seed)
    position = task_position(model, task)
    found: dict[str, Discrepancy] = {}
    notes = []
    data = model.histogram_
    if data is None:
        notes.append("ranks: they are unknown, because the model was fitted to accuracies")
    else:
        found |= _of_ranks(observed, replicated, model.weights_.values, data.part(position))
    tails = None
    if task is None or model.is_fitted_to(task):
        tails = tail_report(model.idata, model.attributes_.rng(Stage.TAIL_CHECKS, random_seed))
        found |= _of_fit(model, tails)
    for k in _spread(observed["k"].values):
        draws = replicated["accuracy"].sel(k=k).transpose(*SAMPLE_DIMS).values.ravel()
        found[f"accuracy: k = {k}"] = Discrepancy(float(observed["accuracy"].sel(k=k)), draws)
    classes = None
    try:
        classes = class_ranks(model, task)
    except DataError as error:
        notes.append(str(error))
    else:
        replicates = classes.replicates(model.attributes_.rng(Stage.CLASS_CHECKS, random_seed))
        spread, lowest = classes.discrepancies(replicates)
        # Classes that are more alike than in the model get a note and no alarm.
        found["classes: sd of accuracy"] = Discrepancy(*spread, lambda above: 2 * above)
        found["classes: lowest accuracy"] = Discrepancy(*lowest, lambda above: 2 * (1 - above))
    rows = {name: discrepancy.row(limit) for name, discrepancy in found.items()}
    if classes is not None:
        rows[_AT_RANDOM] = {
            "observed": float(classes.posterior.at_random.sum()),
            "p_value": classes.posterior.none_at_random,
            "unusual": classes.posterior.is_unusual,
        }
    table = pd.DataFrame([*rows.values()], index=pd.Index(rows, name="discrepancy"))
    if classes is not None:
        notes += _notes_on_classes(classes, table, limit)
    n_classes, n_test, _ = task_sizes(model.idata)[position]
    return PredictiveReport(
        table,
        {name: discrepancy.replicated for name, discrepancy in found.items()},
        f"Replicates of {n_classes} classes, {n_test} instances",
        tuple(notes),
        model,
        task,
        tails,
    )


def _of_fit(model: LawModel, tails: TailReport | None) -> dict[str, Discrepancy]:
    """Discrepancies that belong to the fitted task alone."""
    found = {}
    if (gap := model.fit_gap_) is not None:
        found["fit: nats below the best law"] = Discrepancy(gap.observed, gap.replicated, _upper)
    if tails is not None:
        distances = Discrepancy(*tails.distance, passed=tails.passed)
        found["tails: distance in held-out halves"] = distances
    if (within := model.attributes_.pilot_extrapolation) is not None:
        name = f"extrapolation: {within.n_source} to {within.k} classes"
        found[name] = Discrepancy(within.measured, within.quantiles, passed=within.passed)
    return found


def observed_and_replicated(
    model: LawModel,
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
            with_prior = checked_model_with_prior(model, "group='prior'")
            passed = task if model.is_loaded else None  # a file has no scores
            drawn = with_prior.sample_prior_predictive(passed, random_seed=random_seed)
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


def classes_at_random(model: LawModel, task: SourceTask) -> str | None:
    """The note of `posterior_checks` on classes that seem to answer at random.

    It is None if there are no such classes, or if the task cannot show them. It takes less than a
    second for some thousand instances.
    """
    try:
        classes = class_ranks(model, task)
    except DataError:
        return None
    return _note_on_random(classes) if classes.posterior.is_unusual else None


def _spread(grid: IntArray) -> IntArray:
    """At most six numbers of classes, evenly spaced on the log scale."""
    if grid.size == 0:
        return grid
    spaced = np.geomspace(grid[0], grid[-1], _N_K)
    return np.unique(grid[np.abs(np.log(grid[:, None] / spaced)).argmin(axis=0)])


def _notes_on_classes(classes: ClassRanks, table: pd.DataFrame, level: float) -> Iterator[str]:
    """Notes on classes that answer at random or are the worst, or on classes that are too alike."""
    unusual = table["unusual"].filter(like="classes")
    if unusual[_AT_RANDOM]:
        yield _note_on_random(classes)
    if unusual.drop(_AT_RANDOM).any():
        worst = np.argsort(classes.accuracy, kind="stable")[:5]
        named = ", ".join(f"{classes.names[j]} ({classes.accuracy[j]:.2f})" for j in worst)
        yield f"classes with the lowest accuracy: {named}"
    if 1 - table.loc["classes: sd of accuracy", "p_value"] < level / 2:
        yield (
            "classes are more alike than chance allows; the instances of a class seem to be of "
            "different kinds (fonts, cameras), as in a stratified sample"
        )


def _note_on_random(classes: ClassRanks) -> str:
    order = np.argsort(-classes.posterior.at_random, kind="stable")
    n_random = max(round(float(classes.posterior.at_random.sum())), 1)
    names = ", ".join(str(classes.names[j]) for j in order[: min(n_random, _MOST_NAMES)])
    more = f" and {n_random - _MOST_NAMES} more" if n_random > _MOST_NAMES else ""
    verb = "stands" if n_random == 1 else "stand"
    return (
        f"{n_random} of {order.size} classes {verb} out as if answered at random: "
        f"{names}{more}; look at their labels and templates"
    )


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
