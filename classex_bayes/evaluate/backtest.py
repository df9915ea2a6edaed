"""Back-test: pilots from a task with known accuracy are extrapolated and scored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from classex_bayes.arguments import FEWEST_CLASSES, class_counts, how_many, source_task
from classex_bayes.core.metrics import named_metric
from classex_bayes.estimators.base import Estimator, named_estimators
from classex_bayes.evaluate.scoring import LEVELS, score_trials
from classex_bayes.evaluate.trials import SAMPLER, Trial, run_trials
from classex_bayes.exceptions import DataError, Interrupted
from classex_bayes.formatting import Display, Shown, by_reason
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results.draws import interval_settings
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, RandomSeed

_FACTORS = (1, 2, 4, 10, 20)


@dataclass(frozen=True)
class Pilots:
    """Draws pilots without replacement from a task. The truth is its metric at `k`."""

    task: SourceTask
    k: tuple[int, ...]
    metric: str = "accuracy"

    def __call__(self, n_source: int, seed: np.random.SeedSequence) -> Trial:
        """Draw a pilot of this many classes."""
        return Trial(self.task.subsample(n_source, seed), self.task.metric(self.metric, self.k))


@dataclass(frozen=True, repr=False)
class Backtest(Shown):
    """Predictions from many pilots with their errors and scores.

    Attributes
    ----------
    trials : DataFrame
        Every prediction, as from `classex_bayes.evaluate.trials.run_trials`. "cell" is the number
        of source classes.
    scores : DataFrame
        Scores, indexed by (n_source, estimator, k). Columns as from
        `classex_bayes.evaluate.scoring.score_trials`.
    ci_prob : float
        Level of the intervals whose score and width are given.
    """

    plot = PlotMethod("plot_backtest")

    trials: pd.DataFrame
    scores: pd.DataFrame
    ci_prob: float

    def _display(self) -> Display:
        names = self.scores.columns
        coverage = names[names.str.fullmatch(r"coverage[\d.]+")]
        columns = ["truth", "n", "rmse", "rmse_se", "bias", "crps", "width", *coverage]
        header = f"Errors and coverage of predictions; widths of {100 * self.ci_prob:g}% intervals"
        return Display(header, self.scores[columns], self._left_out, decimals=3)

    @property
    def _left_out(self) -> tuple[str, ...]:
        """Why estimators have no scores at all."""
        reasons = {
            str(name): rows["note"].iloc[0]
            for name, rows in self.trials.groupby("estimator", sort=False)
            if rows["mean"].isna().all()
        }
        return tuple(f"left out: {sentence}" for sentence in by_reason(reasons))


def backtest(
    estimators: Sequence[Estimator] | Mapping[str, Estimator],
    task: SourceTask,
    n_source: int | Sequence[int],
    k: ClassCounts | None = None,
    *,
    metric: str = "accuracy",
    n_pilots: int = 100,
    ci_prob: float | None = None,
    sampler: Mapping[str, Any] | None = SAMPLER,
    random_seed: RandomSeed = 0,
    n_jobs: int | None = None,
    store: str | Path | None = None,
    progressbar: bool = True,
) -> Backtest:
    r"""Extrapolate from many pilots of a large task and compare with its known accuracy.

    Each pilot is a random subset of `n_source` classes with their test instances. The truth at k
    is ATA_k of the whole task, the average over all its subsets of k classes.

    Parameters
    ----------
    estimators : sequence of estimators, or mapping from names to estimators
        Estimators that extrapolate from every pilot.
    task : SourceTask
        Large task, from scores or embeddings. (If it was made from ranks alone, pilots have thinned
        ranks that are independent between instances.)
    n_source : int or sequence of int
        Numbers of classes of the pilots.
    k : int or array-like of int, optional
        Numbers of classes to predict for, up to those of the task. A pilot predicts for those that
        are not smaller than it. By default 1, 2, 4, 10 and 20 times the sizes of the pilots, and
        all classes.
    metric : str
        Metric, as in `BayesianExtrapolator.predict`. Estimators that predict only accuracy have no
        scores for other metrics.
    n_pilots : int
        Number of pilots of each size.
    ci_prob : float, optional
        Level of the equal-tailed intervals whose score and width are reported; by default 0.9,
        or ArviZ's changed rcParams. Coverage is reported at this level and at 50, 80, 90 and 95%.
    sampler : mapping
        As for `BayesianExtrapolator.fit`, for estimators that draw from a posterior.
    random_seed : int, SeedSequence or None
        Seed. The same seed gives the same pilots and fits for any number of processes.
    n_jobs : int, optional
        Number of joblib processes; one by default, or as set by `joblib.parallel_config`, which can
        also send the work to a cluster.
    store : path, optional
        A folder that grows with every finished fit. The same back-test, or one with more pilots or
        estimators, continues from there.
    progressbar : bool
        Whether to show progress on a terminal.

    Raises
    ------
    Interrupted
        If interrupted (a `KeyboardInterrupt`). Its `partial` is the back-test of the finished
        pilots, None if there are none.

    Notes
    -----
    Pilots of one task overlap and share its population. The standard errors describe the variation
    over pilots from *this* task. A pilot is a part of the task, so errors are somewhat smaller than
    for a new set of classes. This effect increases with the size of the pilot.

    Examples
    --------
    >>> from classex_bayes.simulate import GaussianNearestNeighbor
    >>> from classex_bayes import ClassExReg
    >>> law = GaussianNearestNeighbor(dim=10, noise_variance=0.2)
    >>> task = SourceTask.from_embeddings(*law.sample(200, random_seed=1))
    >>> result = backtest([ClassExReg(0.5)], task, 50, n_pilots=5, progressbar=False)
    >>> result.scores["rmse"].round(3).tolist()
    [0.049, 0.073, 0.119]
    """
    named = named_estimators(estimators)
    source_task(task)
    metric_name, (prob, _) = named_metric(metric).name, interval_settings(ci_prob, "eti")
    if task.table.is_simple_random:
        task.require("exact ranks")
    sizes = class_counts(n_source, "n_source", task.n_classes - 1, FEWEST_CLASSES).tolist()
    if k is None:
        multiples = {size * factor for size in sizes for factor in _FACTORS}
        largest = int(task.grid()[-1])
        k = sorted({size for size in multiples if size < largest} | {largest})
    counts = class_counts(k, largest=task.n_classes).tolist()
    if max(counts) < max(sizes):
        raise DataError(
            f"k: found {max(counts)} as the largest, expected at least the {max(sizes)} classes of "
            "the largest pilots"
        )
    try:
        trials = run_trials(
            named,
            Pilots(task, tuple(counts), metric_name),
            sizes,
            counts,
            n_simulations=how_many(n_pilots, "n_pilots"),
            metric=metric_name,
            random_seed=random_seed,
            ci_prob=prob,
            sampler=sampler,
            n_jobs=n_jobs,
            store=store,
            progressbar=progressbar,
        )
    except Interrupted as stop:
        stop.partial = _backtest(stop.partial, prob) if len(stop.partial) else None
        raise
    return _backtest(trials, prob)


def _backtest(trials: pd.DataFrame, ci_prob: float) -> Backtest:
    trials["cell"] = trials["cell"].astype(int)
    # For larger pilots this includes k within their own classes, which is not extrapolation.
    trials = trials[trials["k"] >= trials["cell"]].reset_index(drop=True)
    scores = score_trials(trials, ci_prob, sorted({*LEVELS, ci_prob}))
    return Backtest(trials, scores.rename_axis(["n_source", "estimator", "k"]), ci_prob)
