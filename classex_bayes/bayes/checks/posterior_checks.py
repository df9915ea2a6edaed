"""Posterior predictive checks in numbers: what replicated tasks show beside what was seen."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from classex_bayes.bayes.checks.replicates import (
    ClassAccuracies,
    class_accuracies,
    fitted_part,
    seen_and_replicated,
)
from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.idata import data_of, task_sizes
from classex_bayes.bayes.model.likelihoods import BernsteinData, PooledData
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import Display, Shown
from classex_bayes.results import SAMPLE_DIMS, interval_of, interval_settings
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import probability
from classex_bayes.typing import FloatArray, IntArray, RandomSeed

_N_K = 6
# Pearson's distance is only nearly chi-square where fewer instances are expected.
_FEWEST_EXPECTED = 5.0
_GROUPS_PER_DECADE = 2
_LEVEL = 0.01


@dataclass(frozen=True, repr=False, eq=False)
class PredictiveReport(Shown):
    """Discrepancies between a task and its replicates; made by `posterior_checks`.

    Attributes
    ----------
    table : DataFrame
        One row for each discrepancy: "observed", "mean" and limits over the replicates, "p_value"
        (share of replicates above the observed, those equal counted half) and "unusual" (whether
        that is below or above what the level allows).
    replicated : dict from str to array
        Draws of every discrepancy, for plots.
    title : str
        What was checked.
    notes : tuple of str
        What could not be checked, and the worst classes where they stand out.

    Notes
    -----
    Predictive p-values are not uniform where the model is right: it was fitted to the same data,
    which draws them towards 0.5 (no false alarm in 60 simulated tasks of 50 to 500 classes). The
    distance of the ranks is compared with that of a replicate from the same draw. The dependence
    between answers of a class is estimated from the same task, so a few hopeless classes among
    almost perfect ones pass: they raise it. `classex_bayes.diagnose` asks who carries the errors.
    """

    table: pd.DataFrame
    replicated: Mapping[str, FloatArray]
    title: str
    notes: tuple[str, ...] = ()

    @property
    def unusual(self) -> tuple[str, ...]:
        """Names of the discrepancies that replicates hardly show."""
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
        found = ", ".join(self.unusual)
        return f"{self.title}: {f'unusual: {found}' if found else 'nothing unusual'}"

    def _display(self) -> Display:
        notes = tuple(f"note: {note}" for note in self.notes)
        return Display(self._header, self.table, notes, decimals=3)


def posterior_checks(
    model: BayesianExtrapolator,
    task: SourceTask | None = None,
    *,
    level: float = _LEVEL,
    random_seed: RandomSeed = None,
) -> PredictiveReport:
    r"""Check a fitted model against replicates of its task.

    Three kinds of discrepancies. *Ranks*: shares of instances in groups of ranks (right answers,
    then two groups to a decade, joined until 5 independent instances are expected in each), and
    Pearson's distance over them, :math:`\sum_g (n_g - n p_g)^2 / (n p_g \mathrm{deff})`, from the
    expectation of each draw. *ATA*: average test accuracy at six k. *Classes*: standard deviation
    over classes of accuracy at k1, the lowest, and the share of the errors in the worst tenth;
    replicated with independent classes whose answers are as alike as the task's are on average
    (`predictive_class_accuracy`), so that what stands out is classes unlike the others, not spread
    as such.

    Parameters
    ----------
    model : BayesianExtrapolator
        A fitted model; replicates are drawn where `idata` has none or a seed is given.
    task : SourceTask, optional
        What to compare with: the fitted task (the default), one of several fitted ones, or a
        second task of the same number of classes. A model read from a file needs it for the
        classes.
    level : float
        Two-sided level of each discrepancy; upper alone for the distance.
    random_seed : int, SeedSequence or None
        Seed of the replicates; that of the fit by default.

    Returns
    -------
    PredictiveReport

    Raises
    ------
    DataError
        Not a model, a task of another size, or several fitted tasks of which none is given.
    NotFittedError
        The model has no draws.

    References
    ----------
    Gelman, Meng and Stern, Statistica Sinica 6 (1996) (discrepancies that depend on parameters).

    Examples
    --------
    >>> task = SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], range(50), n_classes=50)
    >>> model = BayesianExtrapolator().fit(
    ...     task, draws=500, tune=500, chains=2, random_seed=1, progressbar=False
    ... )
    >>> posterior_checks(model).passed
    True
    """
    limit = probability(level, "level")
    observed, replicated = seen_and_replicated(model, task, "posterior", random_seed)
    found: dict[str, tuple[Any, FloatArray]] = {}
    notes = []
    part = fitted_part(model, task)
    data = data_of(model.idata)
    if isinstance(data, PooledData):
        data = data.parts[part]
    if isinstance(data, BernsteinData):
        found |= _ranks(observed, replicated, model.weights_.values, data)
    else:
        notes.append("ranks: not known to the power form")
    grid = observed["k"].values
    wanted = np.geomspace(grid[0], grid[-1], _N_K)
    for k in np.unique(grid[np.abs(np.log(grid[:, None] / wanted)).argmin(axis=0)]):
        draws = replicated["accuracy"].sel(k=k).transpose(*SAMPLE_DIMS).values.ravel()
        found[f"ATA: k = {k}"] = float(observed["accuracy"].sel(k=k)), draws
    try:
        classes = class_accuracies(model, task, random_seed=random_seed)
    except DataError as error:
        notes.append(str(error))
        classes = None
    if classes is not None:
        found |= classes.discrepancies()
    table = pd.DataFrame([_row(*pair, limit) for pair in found.values()], index=list(found))
    if classes is not None and table["unusual"].filter(like="classes").any():
        notes.append(_about(classes, table))
    k1, n, _ = task_sizes(model.idata)[part]
    return PredictiveReport(
        table.rename_axis("discrepancy"),
        {name: draws for name, (_, draws) in found.items()},
        f"Replicates of {k1} classes, {n} instances",
        tuple(notes),
    )


def _about(classes: ClassAccuracies, table: pd.DataFrame) -> str:
    """What is unusual about the classes: some are too bad, or all are too alike."""
    higher = table["observed"] > table["mean"]
    worse = (table.index.str.contains("lowest") ^ higher) & table["unusual"]
    if not worse.filter(like="classes").any():
        return (
            "classes are more alike than chance allows; the instances of a class seem to be of "
            "different kinds (fonts, cameras), as in a stratified sample"
        )
    worst = np.argsort(classes.observed)[:5]
    shares = ", ".join(f"{classes.names[j]} ({classes.observed[j]:.2f})" for j in worst)
    return f"classes with the lowest accuracy: {shares}"


def _ranks(
    observed: xr.Dataset, replicated: xr.Dataset, weights: FloatArray, data: BernsteinData
) -> dict[str, tuple[Any, FloatArray]]:
    """Shares of instances in groups of ranks, and Pearson's distance over the groups."""
    seen = observed["loss_histogram"].values
    drawn = replicated["loss_histogram"].transpose(*SAMPLE_DIMS, "bin").values
    drawn = drawn.reshape(-1, seen.size)
    share = np.maximum(weights @ data.matrix.T, 0).reshape(-1, seen.size)
    share /= share.sum(axis=1, keepdims=True)
    last_loss = observed["bin"].values
    starts = _groups(last_loss, data.effective_sample * share.mean(axis=0))
    total = data.counts.sum()
    expected = total * np.add.reduceat(share, starts, axis=1)
    groups = np.add.reduceat(np.vstack([seen * total / seen.sum(), drawn]), starts, axis=1)
    scale = expected * total / data.effective_sample
    distance = ((groups[:1] - expected) ** 2 / scale).sum(axis=1)
    own = ((groups[1:] - expected) ** 2 / scale).sum(axis=1)
    found: dict[str, tuple[Any, FloatArray]] = {"ranks: distance": (distance, own)}
    first = np.append(0, last_loss[:-1] + 1)[starts]
    last = np.append(first[1:] - 1, last_loss[-1])
    for group, (low, high) in enumerate(zip(first, last, strict=True)):
        label = f"ranks: {low + 1}" + (f" to {high + 1}" if high > low else "")
        values = groups[:, group] / total
        found[label] = float(values[0]), values[1:]
    return found


def _groups(last_loss: IntArray, expected: FloatArray) -> IntArray:
    """First bins of groups of ranks, none with too few instances where all have enough."""
    decade = np.floor(_GROUPS_PER_DECADE * np.log10(last_loss + 1.0) + 1e-9)
    decade[0] = -1  # no losses: a right answer
    starts = [0]
    for bin_ in np.flatnonzero(np.diff(decade)) + 1:
        if expected[starts[-1] : bin_].sum() >= _FEWEST_EXPECTED:
            starts.append(int(bin_))
    if len(starts) > 1 and expected[starts[-1] :].sum() < _FEWEST_EXPECTED:
        starts.pop()
    return np.array(starts)


def _row(observed: Any, draws: FloatArray, level: float) -> dict[str, Any]:
    """Row of the table; an observed value for every draw is a distance, unusual if large."""
    paired = np.ndim(observed) > 0
    above = float(np.mean(draws > observed) + np.mean(draws == observed) / 2)
    prob, kind = interval_settings(None, None)
    array = xr.DataArray(draws[None], dims=SAMPLE_DIMS)
    lower, upper = interval_of(array, prob, kind).values
    tail = above if paired else 2 * min(above, 1 - above)
    label = f"{kind}{100 * prob:g}"
    return {
        "observed": float(np.mean(observed)),
        "mean": float(draws.mean()),
        f"{label}_lb": float(lower),
        f"{label}_ub": float(upper),
        "p_value": above,
        "unusual": bool(tail < level),
    }
