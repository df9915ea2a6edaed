"""Check of estimators by an extrapolation within the pilot, whose answer was measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from classex_bayes.arguments import FEWEST_CLASSES, seed_sequence, source_task, whole_number
from classex_bayes.bayes.fitted import FittedModel
from classex_bayes.core.subsets import log_spaced
from classex_bayes.estimators.base import Estimator, named_estimators
from classex_bayes.evaluate.trials import SAMPLER, Trial, run_trials
from classex_bayes.exceptions import DataError, DataWarning, warn
from classex_bayes.formatting import by_reason
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results.check_report import CheckReport
from classex_bayes.results.draws import interval_settings
from classex_bayes.results.pilot_extrapolation import PilotExtrapolation
from classex_bayes.task.rules import Finding
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray, RandomSeed

_FEWEST_IN_PART, _FEWEST_PARTS, _MOST_PARTS = 25, 3, 10
_FEWEST_UNITS = 2  # of a part: tested classes, or groups if classes came in groups
_N_K = 6  # of the curves
_COLUMNS = (
    "n_source", "k", "predicted", "measured", "error", "sd", "p_value", "coverage", "passed",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Parts:
    """Disjoint parts of a pilot, drawn one by one by a call."""

    task: SourceTask
    places: tuple[IntArray, ...]  # of the classes of each part
    k: IntArray

    @classmethod
    def of(cls, task: SourceTask, n_parts: int | None, seeds: np.random.SeedSequence) -> "_Parts":
        """Deal the drawn units, which are classes or groups of them, to the parts at random."""
        table, k1 = task.require("ranks"), task.n_classes
        design = table.design
        if design is None:
            task.require("ranks among all classes")
        unit = np.arange(k1) if design is None else design.group
        tested = np.bincount(unit, table.class_weight) > 0
        n_units = int(np.count_nonzero(tested))
        fewest = _FEWEST_IN_PART if n_parts is None else FEWEST_CLASSES
        most = min(k1 // fewest, n_units // _FEWEST_UNITS)
        if most < _FEWEST_PARTS:
            units = "" if n_units == k1 else f" ({n_units} tested units)"
            raise DataError(
                f"task: found {k1} classes{units}, too few for an extrapolation within the pilot, "
                f"which needs {_FEWEST_PARTS} parts of {fewest} classes, with {_FEWEST_UNITS} "
                "tested classes or groups each; test more classes, or back-test on a larger task"
            )
        size = min(most, _MOST_PARTS) if n_parts is None else n_parts
        size = whole_number(size, "n_parts", _FEWEST_PARTS)
        if size > most:
            raise DataError(
                f"n_parts: found {size}, expected at most {most}, because a part needs "
                f"{FEWEST_CLASSES} of the {k1} classes and {_FEWEST_UNITS} of the {n_units} tested "
                "classes or groups"
            )
        order = np.random.default_rng(seeds).permutation(tested.size)
        order = order[np.argsort(~tested[order], kind="stable")]  # each part has its share of both
        places = tuple(np.flatnonzero(np.isin(unit, order[i::size])) for i in range(size))
        grid = task.grid()
        if not grid.size or grid[-1] <= len(places[0]):
            raise DataError(
                f"task: its accuracy is known at none of more than {len(places[0])} classes, the "
                "size of a part, so an extrapolation within the pilot cannot be checked"
            )
        return cls(task, places, log_spaced(len(places[0]), int(grid[-1]), _N_K))

    def weight(self, part: int) -> FloatArray:
        """Weights (n,) of the instances of a part in the whole task."""
        table = self.task.require("ranks")
        return np.where(np.isin(table.y, self.places[part]), table.weight, 0.0)

    def __call__(self, part: int, seed: np.random.SeedSequence) -> Trial:
        """Task of a part, and the accuracy of its instances among all classes."""
        weight = self.weight(part)
        table = replace(self.task.require("ranks"), weight=weight / weight.sum())
        return Trial(self.task.select(self.places[part], seed), SourceTask(table).accuracy(self.k))


@dataclass(frozen=True, repr=False, eq=False)
class ExtrapolationCheck(CheckReport):
    """Extrapolations from parts of a pilot to all its classes; made by `extrapolation_check`.

    Attributes
    ----------
    checks : tuple of Finding
        Result of each estimator, by its name. Estimators that could not be checked have the reason.
    title : str
        Title of the report.
    results : dict from str to PilotExtrapolation
        Result of each estimator by its name.
    curves : DataFrame
        Mean prediction of the parts, indexed by (estimator, k), k from the size of a part to all
        classes of the pilot: "predicted", mean limits "lower" and "upper" (missing for point
        estimates), and "measured".
    ci_prob : float
        Level of the limits, and of the intervals whose coverage is reported.
    """

    plot = PlotMethod("plot_extrapolation_check")

    results: Mapping[str, PilotExtrapolation]
    curves: pd.DataFrame
    ci_prob: float

    @property
    def table(self) -> pd.DataFrame:
        """One row for each estimator: the fields and properties of `PilotExtrapolation`."""
        rows = [[getattr(result, name) for name in _COLUMNS] for result in self.results.values()]
        index = pd.Index(self.results, name="estimator")
        return pd.DataFrame(rows, index, _COLUMNS).astype({"coverage": float})


def extrapolation_check(
    estimators: Estimator | Sequence[Estimator] | Mapping[str, Estimator],
    task: SourceTask | None = None,
    *,
    n_parts: int | None = None,
    ci_prob: float | None = None,
    sampler: Mapping[str, Any] | None = SAMPLER,
    random_seed: RandomSeed = 0,
    n_jobs: int | None = None,
    progressbar: bool = True,
) -> ExtrapolationCheck:
    r"""Extrapolate from parts of a pilot to all its classes, whose accuracy was measured.

    The classes of the pilot are dealt to J disjoint parts at random. A copy of each estimator is
    fitted to each part, and predicts the accuracy on all classes of the pilot. The mean of the
    predictions is compared with the accuracy of the pilot.

    Parameters
    ----------
    estimators : estimator, sequence of estimators, or mapping from names to estimators
        Estimators to check. A model that was fitted to `task` keeps the result: if it fails, each
        of its predictions, and its report, says so, also after it is saved and loaded.
    task : SourceTask, optional
        The pilot; by default that of a single fitted model. It needs ranks on at least 75 classes,
        or on 3 for each part if `n_parts` is given.
    n_parts : int, optional
        Number of parts, at least 3. By default 10, or fewer so that a part has at least 25 classes.
    ci_prob, sampler, random_seed, n_jobs, progressbar
        As for `backtest`, with parts in place of pilots.

    Raises
    ------
    Interrupted
        If interrupted. Its `partial` is the table of the finished fits.

    Warns
    -----
    DataWarning
        A fitted model failed.

    See Also
    --------
    classex_bayes.backtest : The same for a large task, with pilots of any size.

    Notes
    -----
    Let :math:`m_j` be the prediction of part j and :math:`e_j` this less the accuracy of its own
    instances among all classes, :math:`s_m` and :math:`s_e` their standard deviations over the
    parts, and v the mean posterior variance of the predictions. The mean error is the predicted
    less the measured accuracy of the pilot. Its standard deviation is

    .. math:: \sqrt{\max(v - s_m^2, 0) + s_e^2 / J}.

    Errors that differ between parts average out. The rest of the posterior variance is an error
    that the parts have in common, such as that of a prior. A point estimate has v = 0. The check
    fails if the p-value of Student's t law with J - 1 degrees of freedom is below 0.05 and the
    error is above 0.02. Few parts show large errors alone, so a model keeps the result of the
    check with the most parts. The page "Is the interval right?" reports how often it fails where
    predictions are right, and where they are not.

    Examples
    --------
    >>> from classex_bayes.simulate import GaussianNearestNeighbor
    >>> from classex_bayes import KDE
    >>> law = GaussianNearestNeighbor(dim=10, noise_variance=0.2)
    >>> task = SourceTask.from_embeddings(*law.sample(200, random_seed=1))
    >>> check = extrapolation_check(KDE("ucv"), task, progressbar=False)
    >>> check.table[["n_source", "k", "predicted", "measured"]].round(2).values.tolist()
    [[25.0, 200.0, 0.29, 0.74]]
    """
    named = named_estimators(
        estimators if isinstance(estimators, Mapping | Sequence) else [estimators]
    )
    if task is None and len(named) == 1:
        task = getattr(next(iter(named.values())), "task", None)
    if task is None:
        raise DataError(
            "task: found none, expected the pilot; pass it with task=, since only one model that "
            "was fitted here has it"
        )
    source_task(task)
    level, _ = interval_settings(ci_prob, "eti")
    parts = _Parts.of(task, n_parts, seed_sequence(random_seed))
    numbers = range(len(parts.places))
    trials = run_trials(
        named,
        parts,
        numbers,
        parts.k,
        n_simulations=1,
        random_seed=random_seed,
        ci_prob=level,
        sampler=sampler,
        n_jobs=n_jobs,
        progressbar=progressbar,
    )
    share = np.array([parts.weight(part).sum() for part in numbers])
    results, curves, left_out = {}, {}, {}
    for name, rows in trials.groupby("estimator", sort=False):
        if rows["mean"].isna().any():
            left_out[name] = rows.loc[rows["mean"].isna(), "note"].iloc[0]
        else:
            results[name], curves[name] = _compared(rows, parts, share, level)
    if not results:
        reasons = "; ".join(by_reason(left_out))
        raise DataError(f"estimators: none could be fitted to every part ({reasons})")
    for name, result in results.items():
        model = named[name]
        if isinstance(model, FittedModel) and model.is_fitted_to(task):
            model.keep_extrapolation(result)
            if not result.passed:
                warn(result.finding.sentence, DataWarning)
    checks = [replace(result.finding, name=name) for name, result in results.items()]
    checks += [Finding(name, None, reason, is_note=True) for name, reason in left_out.items()]
    title, curve = "Extrapolation within the pilot", pd.concat(curves, names=["estimator"])
    return ExtrapolationCheck(tuple(checks), title, results, curve, level)


def _compared(
    rows: pd.DataFrame, parts: _Parts, share: FloatArray, ci_prob: float
) -> tuple[PilotExtrapolation, pd.DataFrame]:
    """Result and curve of an estimator; `share` (n_parts,) are the weights of the parts."""
    # Trials are in the order of the parts, with all k of each part.
    by_part = {
        column: rows[column].to_numpy(float).reshape(share.size, -1)
        for column in ("mean", "truth", "lower", "upper")
    }
    mean, truth, lower, upper = (values[:, -1] for values in by_part.values())
    measured = parts.task.accuracy(parts.k)
    posterior = share @ ((upper - lower) / (2 * ndtri((1 + ci_prob) / 2))) ** 2
    shared = np.nan_to_num(posterior - _variance(mean, share))
    variance = max(shared, 0) + _variance(mean - truth, share) * (share @ share)
    covered = (lower <= measured[-1]) & (measured[-1] <= upper)
    result = PilotExtrapolation(
        n_parts=share.size,
        n_source=round(np.mean([*map(len, parts.places)])),
        k=int(parts.k[-1]),
        predicted=float(share @ mean),
        measured=float(measured[-1]),
        sd=float(np.sqrt(variance)),
        coverage=None if np.isnan(lower).any() else float(share[covered].sum() / share.sum()),
    )
    names = {"predicted": "mean", "lower": "lower", "upper": "upper"}
    curve = pd.DataFrame({name: share @ by_part[column] for name, column in names.items()})
    return result, curve.assign(measured=measured, k=parts.k).set_index("k")


def _variance(values: FloatArray, share: FloatArray) -> float:
    """Variance over the parts, which have these shares of the weight."""
    return float(share.size / (share.size - 1) * share @ (values - share @ values) ** 2)
