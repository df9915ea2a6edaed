"""Comparison of estimators in one table."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from classex_bayes.arguments import class_counts, how_many, seed_sequence, source_task, truth_value
from classex_bayes.bayes.fitted import FittedModel
from classex_bayes.core.metrics import named_metric
from classex_bayes.estimators.base import (
    FIT_ERRORS,
    Estimator,
    fitted_copy,
    named_estimators,
    prediction_of,
    require_metric,
)
from classex_bayes.estimators.moment_bounds import MomentBounds
from classex_bayes.estimators.resampling import bootstrapped
from classex_bayes.exceptions import DataError, DataWarning, ExtrapolationWarning, Interrupted
from classex_bayes.formatting import PERCENTAGES, Display, Shown, by_reason, capitalized, percent
from classex_bayes.parallel import checked_jobs, with_progress
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results.draws import interval_columns, interval_name, interval_settings
from classex_bayes.results.extrapolation import Bounds, Extrapolation, far_beyond
from classex_bayes.results.reference_values import reference_values, shared_metric, whose_notes
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.task_statistics import warn_of
from classex_bayes.typing import ClassCounts, IntArray, RandomSeed

# Level of the limits that contradict an estimate. It is high because several k are compared.
_CONTRADICTED = 0.99
_FITTED_AGAIN = (
    "the model was fitted to other data or with other parameters, so a copy was fitted to this "
    "task; plot_accuracy draws fits to different tasks together"
)


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """Predictions of several estimators from one task.

    Attributes
    ----------
    table : DataFrame
        Indexed by estimator and k: "mean", interval limits (missing for point estimates),
        "interval_type" and, where the true accuracy is known, "truth", "error" and "covered".
    predictions : list of Extrapolation
        One prediction for each estimator that could be fitted.
    estimators : list of estimators
        The fitted estimators, in the same order.
    skipped : dict
        Reasons why other estimators could not be fitted, by name.
    contradicted : dict
        Sentences about point estimates that the data contradict, by name.
    """

    plot = PlotMethod("plot_accuracy")

    table: pd.DataFrame
    predictions: list[Extrapolation]
    estimators: list[Estimator]
    skipped: dict[str, str]
    contradicted: dict[str, str]

    def _display(self) -> Display:
        # All rows have the same decimals, so that estimators and truth can be compared.
        whole = self.predictions[0]
        header = f"{whole.description}, from {whole.n_classes:,} {whole.estimand.source}"
        return Display(capitalized(header), self.table, tuple(self.notes))

    @property
    def notes(self) -> list[str]:
        """Notes of the predictions, each once, and the reasons of the estimators left out."""
        notes = []
        for note, names in whose_notes(self.predictions).items():
            of_all = len(names) == len(self.predictions)
            notes.append(f"note: {note}" if of_all else f"note ({', '.join(names)}): {note}")
        return notes + [f"left out: {sentence}" for sentence in by_reason(self.skipped)]


def compare(
    estimators: Sequence[Estimator] | Mapping[str, Estimator],
    task: SourceTask,
    k: ClassCounts,
    *,
    metric: str = "accuracy",
    truth: Any = None,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    n_resamples: int | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> Comparison:
    """Fit estimators to one task and put their predictions into one table.

    Parameters
    ----------
    estimators : sequence of estimators, or mapping from names to estimators
        Estimators. Copies are fitted and the originals stay unchanged. An estimator whose posterior
        was fitted to this task, or read from a file and fitted to these data, is used as it is. If
        two estimators have the same name, pass a mapping with different names.
    task : SourceTask
        The tested classes.
    k : int or array-like of int
        Numbers of classes to predict for.
    metric : str
        Metric, as in `BayesianExtrapolator.predict`. Estimators that predict only accuracy are left
        out for other metrics.
    truth : SourceTask or mapping from k to accuracy, optional
        Known accuracy or other metric, for example that of the task on all classes.
    ci_prob, ci_kind : optional
        Level and kind of the intervals; by default 0.9, or ArviZ's changed rcParams.
    n_resamples : int, optional
        Give point estimates of the accuracy intervals from so many resamples of the classes
        (`classex_bayes.estimators.bootstrap`, which fits every estimator as often). They hold the
        sampling error of the pilot and leave out the bias of the estimator. By default there are
        none.
    random_seed : int, SeedSequence or None
        Seed of the fits of estimators without a seed of their own, and of the resamples.
    progressbar : bool
        Whether to show progress on a terminal.

    Returns
    -------
    Comparison
        An estimator that cannot be fitted (such as KDE without scores) is left out, and `skipped`
        contains the reason.
        A note names each point estimate that the data contradict: one that lies outside the 99%
        limits of `MomentBounds`, on the classes of the pilot or at `k`.

    Raises
    ------
    Interrupted
        If interrupted (a `KeyboardInterrupt`). Its `partial` compares the finished estimators, None
        if there are none.

    Examples
    --------
    >>> from classex_bayes.simulate import GaussianNearestNeighbor
    >>> from classex_bayes import KDE
    >>> law = GaussianNearestNeighbor(dim=10, noise_variance=0.2)
    >>> task = SourceTask.from_embeddings(*law.sample(100, random_seed=1))
    >>> compare([KDE("ucv"), KDE("bcv")], task, [100, 1000]).table.shape
    (4, 2)
    """
    named = named_estimators(estimators)
    source_task(task)
    counts, metric_name = class_counts(k), named_metric(metric).name
    interval = interval_settings(ci_prob, ci_kind)
    reference = None if truth is None else reference_values(truth, counts, metric_name)
    seeds = seed_sequence(random_seed)
    if n_resamples is not None:
        how_many(n_resamples, "n_resamples", 2)
    show = truth_value(progressbar, "progressbar") and len(named) > 1
    warn_of(task)
    far_beyond(int(counts.max()), task.n_classes)  # warns once, and not for every estimator
    bounds = _bounds(task) if metric_name == "accuracy" else None
    result = Comparison(pd.DataFrame(), [], [], {}, {})
    rows: dict[str, pd.DataFrame] = {}
    try:
        for name, estimator in with_progress(named.items(), len(named), "estimators", show):
            try:
                require_metric(estimator, metric_name)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ExtrapolationWarning)
                    warnings.simplefilter("ignore", DataWarning)
                    fitted = _fitted(estimator, task, random_seed, metric_name)
                    point = prediction_of(fitted, counts, metric_name)
                    if fitted is not estimator and getattr(estimator, "is_fitted", False):
                        point = point.with_notes([_FITTED_AGAIN])
                    prediction, is_point = point, point.interval_type == "none"
                    if is_point and n_resamples is not None:
                        seed = seed_sequence(seeds)
                        prediction = _with_interval(point, fitted, task, n_resamples, seed)
                    if is_point and bounds is not None:
                        sentence = _contradiction(fitted, counts, bounds)
                        if sentence:
                            result.contradicted[name] = sentence
                            prediction = prediction.with_notes([sentence])
            except (*FIT_ERRORS, ImportError) as error:
                result.skipped[name] = str(error)
                continue
            predicted = prediction.estimand.metric
            if predicted != metric_name and isinstance(truth, SourceTask):
                raise DataError(
                    f"truth: found a task, expected a mapping from k to {predicted}, which "
                    f"{name} predicts"
                )
            result.predictions.append(replace(prediction, estimator=name))
            result.estimators.append(fitted)
            rows[name] = _rows(prediction, point, reference, interval)
    except KeyboardInterrupt:
        message = f"interrupted after {len(rows)} of {len(named)} estimators"
        partial = replace(result, table=_table(rows, interval)) if rows else None
        raise Interrupted(message, partial) from None
    if not rows:
        reasons = "; ".join(by_reason(result.skipped))
        raise DataError(f"estimators: none could be fitted ({reasons})")
    shared_metric(result.predictions)
    return replace(result, table=_table(rows, interval))


def _fitted(
    estimator: Estimator, task: SourceTask, random_seed: RandomSeed, metric: str
) -> Estimator:
    """Fitted copy of an estimator, or the estimator itself if it has draws for this task."""
    if isinstance(estimator, FittedModel):
        if estimator.is_fitted_to(task):
            return estimator
        if estimator.is_loaded:
            raise DataError(
                "task: the model read from a file was fitted to another task, of "
                f"{estimator.attributes_.n_classes} classes and "
                f"{estimator.attributes_.n_test} instances, or with other parameters"
            )
    return fitted_copy(estimator, task, random_seed)


def _with_interval(
    point: Extrapolation,
    fitted: Estimator,
    task: SourceTask,
    n_resamples: int,
    seeds: np.random.SeedSequence,
) -> Extrapolation:
    """Bootstrap draws about a point estimate, or the estimate with a note why it has none."""
    try:
        return bootstrapped(fitted, task, point, n_resamples, seeds, checked_jobs(None), False)
    except FIT_ERRORS as error:
        return point.with_notes([f"no bootstrap interval: {error}"])


def _bounds(task: SourceTask) -> MomentBounds | None:
    """Limits without a prior, or None without ranks."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            return MomentBounds().fit(task)
    except DataError:
        return None


def _contradiction(fitted: Estimator, k: IntArray, bounds: MomentBounds) -> str:
    """Sentence on a point estimate outside the bounds, where it is farthest outside; or none."""
    counts = np.union1d(k, bounds.n_classes)
    estimate = prediction_of(fitted, counts, "accuracy").mean.to_numpy()
    lower, upper = bounds.predict(counts).interval(_CONTRADICTED).to_numpy().T
    outside = np.maximum(lower - estimate, estimate - upper)
    worst = int(outside.argmax())
    if outside[worst] <= 0:
        return ""
    of_pilot = ", those of the pilot" * bool(counts[worst] == bounds.n_classes)
    return (
        f"the data contradict the estimate of {percent(estimate[worst], 1)} on {counts[worst]:,} "
        f"classes{of_pilot}: the ranks allow "
        f"{PERCENTAGES.span(lower[worst], upper[worst])} without a prior "
        f"({interval_name(_CONTRADICTED, 'limits')})"
    )


def _rows(
    prediction: Extrapolation,
    point: Extrapolation,
    reference: pd.Series | None,
    interval: tuple[float, str],
) -> pd.DataFrame:
    """Rows of one estimator by k, with the truth and the error where it is known."""
    rows = prediction.summary(*interval, "none").drop(columns="sd", errors="ignore")
    if not isinstance(prediction, Bounds):
        rows["mean"] = point.mean  # that of bootstrap draws that end at 0 or 1 is biased
    rows["interval_type"] = prediction.interval_type
    if reference is not None:
        rows["truth"] = rows.index.map(reference)
        if "mean" in rows:
            rows["error"] = rows["mean"] - rows["truth"]
        lower, upper = interval_columns(*interval)
        if lower in rows:
            covered = rows["truth"].between(rows[lower], rows[upper])
            rows["covered"] = covered.astype(object).where(rows["truth"].notna())
    return rows


def _table(rows: dict[str, pd.DataFrame], interval: tuple[float, str]) -> pd.DataFrame:
    """Rows of all estimators; columns that no estimator has are absent."""
    table = pd.concat(rows, names=["estimator", "k"])
    limits = interval_columns(*interval)
    order = ["mean", *limits, "interval_type", "truth", "error", "covered"]
    return table[[column for column in order if column in table]]
