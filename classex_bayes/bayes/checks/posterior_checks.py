"""Posterior predictive checks: a task compared with replicates from the model."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from classex_bayes.arguments import probability
from classex_bayes.bayes.checks.replicates import (
    ReplicatedClasses,
    observed_and_replicated,
    replicated_classes,
    task_position,
)
from classex_bayes.bayes.idata import task_sizes
from classex_bayes.bayes.law_model import LawModel
from classex_bayes.bayes.model.likelihoods import BernsteinData, PowerData
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import Display, Shown
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results import SAMPLE_DIMS, interval_columns, interval_of, interval_settings
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray, RandomSeed

_N_K = 6
# Pearson's distance is only nearly chi-square where fewer instances are expected.
_FEWEST_EXPECTED = 5.0
_GROUPS_PER_DECADE = 2
_LEVEL = 0.01
_MOST_NAMES = 10
_FIT = "fit: nats below the best law"
_AT_RANDOM = "classes: answered at random"
_UPPER_ALONE = "ranks: distance", _AT_RANDOM, _FIT
# Classes that are more alike than the model has them are no fault; they get a note.
_HIGH_IS_BAD, _LOW_IS_BAD = ("classes: sd", "classes: errors"), ("classes: lowest",)
# Observed value, or one for each draw, and the values of the replicates.
Discrepancy = tuple[float | FloatArray, FloatArray]


@dataclass(frozen=True, repr=False, eq=False)
class PredictiveReport(Shown):
    """Discrepancies between a task and its replicates; made by `posterior_checks`.

    Attributes
    ----------
    table : DataFrame
        One row for each discrepancy: "observed", "mean" and limits over the replicates, "p_value"
        (share of replicates above the observed value, equal ones counted half) and "unusual"
        (whether the p-value is beyond the level).
    replicated : dict from str to array
        Draws of every discrepancy, for plots.
    title : str
        Size of the replicates.
    notes : tuple of str
        Checks that could not be made and why, and the worst classes if they stand out.
    model : LawModel
        The model that was checked.
    task : SourceTask or None
        The task that it was compared with, if it was given.

    Notes
    -----
    Predictive p-values are not uniform even if the model is right: it was fitted to the same data,
    which draws them towards 0.5. The distance of the ranks is compared with that of a replicate
    from the same draw. The replicates of "classes" are whole tasks in which every class answers as
    the model means it (`classex_bayes.bayes.checks.class_ranks`). The page "Is the interval right?"
    has the shares of sound and of broken tasks that raise an alarm. With one instance each, broken
    classes cannot be told from hard instances. A competitor that beats every true class is a fault
    of all classes and is seen by `classex_bayes.diagnose`.
    """

    plot = PlotMethod("plot_ppc")

    table: pd.DataFrame
    replicated: Mapping[str, FloatArray]
    title: str
    notes: tuple[str, ...]
    model: LawModel
    task: SourceTask | None = None

    @property
    def unusual(self) -> tuple[str, ...]:
        """Names of the discrepancies that are unusual among the replicates."""
        return tuple(self.table.index[self.table["unusual"]])

    @property
    def passed(self) -> bool:
        """Whether nothing is unusual."""
        return not self.unusual

    def __iter__(self) -> Iterator[str]:
        """Walk through the names of the discrepancies."""
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

    Four kinds of discrepancies. *Ranks*: shares of instances in groups of ranks (right answers,
    then two groups to a decade, joined until 5 independent instances are expected in each), and
    Pearson's distance over them, :math:`\sum_g (n_g - n p_g)^2 / (n p_g \mathrm{deff})`, from the
    expectation of each draw. *Fit*, of the fitted task alone: nats by which the log-likelihood of
    a draw lies below that of the best law on the knots, of the data and of a replicate
    (`classex_bayes.bayes.fit_gap`). *ATA*: average test accuracy at six k. *Classes*: the
    log-likelihood ratio of "some classes answer at random" to "none does", the standard deviation
    over classes of accuracy at k1, the lowest, and the share of the errors in the worst tenth.

    Replicated classes have the model's law of ranks, which are alike within a class: their
    correlation is learnt from the task, but for classes that seem to answer at random, with a prior
    from sound laws (`classex_bayes.bayes.checks.class_ranks`). So broken classes stand out, and
    spread as such does not.

    Parameters
    ----------
    model : LawModel
        A fitted model, such as a `BayesianExtrapolator`; replicates are drawn where `idata`
        has none or a seed is given.
    task : SourceTask, optional
        Task to compare with the replicates: the fitted one (the default), one of several fitted
        ones, or a second task of the same number of classes. A model read from a file needs it for
        the classes.
    level : float
        Level of each discrepancy: upper for the distance, the fit and classes at random, else
        two-sided. Classes that are more alike than the replicates get a note and no alarm.
    random_seed : int, SeedSequence or None
        Seed of the replicates; that of the fit by default.

    Returns
    -------
    PredictiveReport

    Raises
    ------
    DataError
        Not a model, a task of another size, or no task given for a model fitted to several.
    NotFittedError
        The model has no draws.

    References
    ----------
    Gelman, Meng and Stern, Statistica Sinica 6 (1996) (discrepancies that depend on parameters).

    Examples
    --------
    >>> from classex_bayes.bayes.extrapolator import BayesianExtrapolator
    >>> task = SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], range(50), n_classes=50)
    >>> model = BayesianExtrapolator().fit(
    ...     task, draws=500, tune=500, chains=2, random_seed=1, progressbar=False
    ... )
    >>> posterior_checks(model).passed
    True
    """
    limit = probability(level, "level")
    observed, replicated = observed_and_replicated(model, task, "posterior", random_seed)
    position = task_position(model, task)
    discrepancies: dict[str, Discrepancy] = {}
    notes = []
    if isinstance(model.data_, PowerData):
        notes.append("ranks: not known to the power form")
    else:
        data = model.data_.parts[position]
        discrepancies |= _of_ranks(observed, replicated, model.weights_.values, data)
        gap = model.fit_gap_
        if gap is not None and (task is None or model.is_fitted_to(task)):
            discrepancies[_FIT] = gap.observed, gap.replicated
    grid = observed["k"].values
    for k in _spread(grid):
        draws = replicated["accuracy"].sel(k=k).transpose(*SAMPLE_DIMS).values.ravel()
        discrepancies[f"ATA: k = {k}"] = float(observed["accuracy"].sel(k=k)), draws
    classes = None
    try:
        classes = replicated_classes(model, task, random_seed=random_seed)
        discrepancies |= classes.discrepancies()
    except DataError as error:
        notes.append(str(error))
    rows = [_row(name, *values, limit) for name, values in discrepancies.items()]
    table = pd.DataFrame(rows, index=pd.Index(discrepancies, name="discrepancy"))
    if classes is not None:
        notes += _notes_on_classes(classes, table, limit)
    n_classes, n_test, _ = task_sizes(model.idata)[position]
    return PredictiveReport(
        table,
        {name: draws for name, (_, draws) in discrepancies.items()},
        f"Replicates of {n_classes} classes, {n_test} instances",
        tuple(notes),
        model,
        task,
    )


def classes_at_random(
    model: LawModel, task: SourceTask | None = None, *, level: float = _LEVEL
) -> str | None:
    """The note of `posterior_checks` on classes that seem to answer at random, without the rest.

    None where there are no such classes, or they cannot be seen. It takes less than a second for
    some thousand instances.
    """
    try:
        classes = replicated_classes(model, task)
    except DataError:
        return None
    unusual = _row(_AT_RANDOM, *classes.discrepancies()[_AT_RANDOM], level)["unusual"]
    return _note_on_random(classes) if unusual else None


def _spread(grid: IntArray) -> IntArray:
    """At most six numbers of classes, evenly spread in the logarithm."""
    if grid.size == 0:
        return grid
    spaced = np.geomspace(grid[0], grid[-1], _N_K)
    return np.unique(grid[np.abs(np.log(grid[:, None] / spaced)).argmin(axis=0)])


def _notes_on_classes(
    classes: ReplicatedClasses, table: pd.DataFrame, level: float
) -> Iterator[str]:
    """Which classes answer at random or are the worst, or that all are too alike."""
    unusual = table["unusual"].filter(like="classes")
    if unusual[_AT_RANDOM]:
        yield _note_on_random(classes)
    if unusual.drop(_AT_RANDOM).any():
        worst = np.argsort(classes.observed, kind="stable")[:5]
        named = ", ".join(f"{classes.names[j]} ({classes.observed[j]:.2f})" for j in worst)
        yield f"classes with the lowest accuracy: {named}"
    if 1 - table.loc["classes: sd of accuracy", "p_value"] < level / 2:
        yield (
            "classes are more alike than chance allows; the instances of a class seem to be of "
            "different kinds (fonts, cameras), as in a stratified sample"
        )


def _note_on_random(classes: ReplicatedClasses) -> str:
    order = np.argsort(-classes.at_random, kind="stable")
    n_random = max(round(float(classes.at_random.sum())), 1)
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
    """Shares of instances in groups of ranks, and Pearson's distance over the groups."""
    counts = observed["loss_histogram"].values
    draws = replicated["loss_histogram"].transpose(*SAMPLE_DIMS, "bin").values
    share = np.maximum(weights @ data.matrix.T, 0).reshape(-1, counts.size)
    share /= share.sum(axis=1, keepdims=True)
    last_loss = observed["bin"].values
    starts = rank_groups(last_loss, data.effective_sample * share.mean(axis=0))
    total = data.counts.sum()
    expected = total * np.add.reduceat(share, starts, axis=1)
    histograms = np.vstack([counts * total / counts.sum(), draws.reshape(-1, counts.size)])
    groups = np.add.reduceat(histograms, starts, axis=1)
    scale = expected * total / data.effective_sample
    distance = ((groups[:1] - expected) ** 2 / scale).sum(axis=1)
    replicated_distance = ((groups[1:] - expected) ** 2 / scale).sum(axis=1)
    discrepancies: dict[str, Discrepancy] = {"ranks: distance": (distance, replicated_distance)}
    first = np.append(0, last_loss[:-1] + 1)[starts] + 1
    last = np.append(first[1:] - 1, last_loss[-1] + 1)
    for low, high, values in zip(first, last, groups.T / total, strict=True):
        label = f"ranks: {low}" + (f" to {high}" if high > low else "")
        discrepancies[label] = float(values[0]), values[1:]
    return discrepancies


def rank_groups(last_loss: IntArray, expected: FloatArray) -> IntArray:
    """First bins of groups of ranks in each of which at least 5 instances are expected.

    If there are fewer in all, there is one group.
    """
    decade = np.floor(_GROUPS_PER_DECADE * np.log10(last_loss + 1.0) + 1e-9)
    decade[0] = -1  # rank 1: a right answer
    starts = [0]
    for bin_ in np.flatnonzero(np.diff(decade)) + 1:
        if expected[starts[-1] : bin_].sum() >= _FEWEST_EXPECTED:
            starts.append(int(bin_))
    if len(starts) > 1 and expected[starts[-1] :].sum() < _FEWEST_EXPECTED:
        starts.pop()
    return np.array(starts)


def _row(name: str, observed: Any, draws: FloatArray, level: float) -> dict[str, Any]:
    """Row of the table; some values are unusual on one side only."""
    above = float(np.mean(draws > observed) + np.mean(draws == observed) / 2)
    prob, kind = interval_settings(None, None)
    lower, upper = interval_of(xr.DataArray(draws[None], dims=SAMPLE_DIMS), prob, kind).values
    columns = interval_columns(prob, kind)
    return {
        "observed": float(np.mean(observed)),
        "mean": float(draws.mean()),
        **dict(zip(columns, (float(lower), float(upper)), strict=True)),
        "p_value": above,
        "unusual": bool(_tail(name, above) < level),
    }


def _tail(name: str, above: float) -> float:
    """P-value of a discrepancy from the share of replicates above it."""
    if name in _UPPER_ALONE:
        return above
    if name.startswith(_HIGH_IS_BAD):
        return 2 * above
    if name.startswith(_LOW_IS_BAD):
        return 2 * (1 - above)
    return 2 * min(above, 1 - above)
