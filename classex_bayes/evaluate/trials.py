"""Repeated trials: every estimator on many tasks of known accuracy, in one long table."""

import time
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd

from classex_bayes._version import __version__
from classex_bayes.arguments import class_counts, file_path, how_many, seed_sequence, truth_value
from classex_bayes.bayes.sampling import SamplerSettings
from classex_bayes.core.metrics import named_metric
from classex_bayes.estimators.base import (
    FIT_ERRORS,
    Estimator,
    fitted_copy,
    named_estimators,
    prediction_of,
    require_metric,
)
from classex_bayes.evaluate.scoring import crps, probability_transform
from classex_bayes.exceptions import (
    ConvergenceWarning,
    DataError,
    DataWarning,
    ExtrapolationWarning,
    Interrupted,
)
from classex_bayes.parallel import checked_jobs, in_parallel
from classex_bayes.results.draws import interval_settings
from classex_bayes.results.extrapolation import Bounds, Extrapolation
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed

SAMPLER = {"draws": 500, "tune": 500, "chains": 2}
_PLACE = "cell", "simulation", "estimator"
_SCORES = "mean", "lower", "upper", "crps", "pit"


class Trial(NamedTuple):
    """A task and its known accuracy, or other metric, at the k of the study, shape (n_k,)."""

    task: SourceTask
    truth: FloatArray


@dataclass(frozen=True)
class _Study:
    """Settings that all trials have in common."""

    draw: Callable[..., Trial]
    k: IntArray
    metric: str
    seed: tuple[Any, tuple[int, ...]]  # entropy and spawn key, one for all estimators
    ci_prob: float
    sampler: dict[str, Any]

    def run(self, cell: Any, number: int, estimator: Estimator) -> pd.DataFrame:
        """Truth and prediction of an estimator from one task: the columns from k on, by k."""
        place = (zlib.crc32(str(cell).encode()), number)
        entropy, spawn_key = self.seed
        seed = np.random.SeedSequence(entropy, spawn_key=(*spawn_key, *place))
        task_seed, fits_seed = seed.spawn(2)
        trial = self.draw(cell, task_seed)
        start = time.perf_counter()
        scores: dict[str, Any] = dict.fromkeys(_SCORES, np.nan)
        note = ""
        try:
            prediction, note = self._predict(estimator, trial.task, fits_seed)
        except FIT_ERRORS as error:
            note = str(error)
        else:
            scores = _scores(prediction, trial.truth, self.ci_prob)
        seconds = time.perf_counter() - start
        last = {"seconds": seconds, "note": " ".join(note.split())}
        return pd.DataFrame({"k": self.k, "truth": trial.truth, **scores, **last})

    def _predict(
        self, estimator: Estimator, task: SourceTask, seed: np.random.SeedSequence
    ) -> tuple[Extrapolation, str]:
        """Prediction of a fitted copy, and the warnings of its sampler."""
        require_metric(estimator, self.metric)
        settings: dict[str, Any] = {
            "sampler": {**self.sampler, "cores": 1},
            "progressbar": False,
        }
        with warnings.catch_warnings(record=True) as caught:
            # Errors of predictions are measured, so warnings of the fit go into the table, but for
            # those of the data, which are the same for every estimator.
            warnings.simplefilter("ignore", ExtrapolationWarning)
            warnings.simplefilter("always", ConvergenceWarning)
            warnings.simplefilter("always", DataWarning)
            fitted = fitted_copy(estimator, task, int(seed.generate_state(1)[0]), **settings)
            prediction = prediction_of(fitted, self.k, self.metric)
        texts = (str(warning.message) for warning in caught)
        return prediction, "; ".join(text for text in texts if text not in task.warnings)


def run_trials(
    estimators: Sequence[Estimator] | Mapping[str, Estimator],
    draw: Callable[..., Trial],
    cells: Sequence[Any],
    k: ClassCounts,
    *,
    n_simulations: int,
    metric: str = "accuracy",
    random_seed: RandomSeed = 0,
    ci_prob: float | None = None,
    sampler: Mapping[str, Any] | None = SAMPLER,
    n_jobs: int | None = None,
    store: str | Path | None = None,
    progressbar: bool = True,
) -> pd.DataFrame:
    """Fit every estimator to many tasks and compare its predictions with the true metric.

    ``draw(cell, seed_sequence)`` returns a `Trial`; picklable if ``n_jobs`` is not 1. It is called
    anew for each estimator. The other arguments are those of `classex_bayes.backtest`, with
    `n_simulations` tasks in each of `cells` (numbers or strings). The seed of a task and of its
    fits depends on `random_seed`, the cell and the number of the simulation alone, so the table is
    the same for any ``n_jobs``, and more simulations add to it.

    `store` is a folder that grows with every finished fit (`joblib.Memory`). Fits that it has are
    not repeated, so an interrupted study resumes. They are the same if the estimator, the draw
    function with its arguments, and the arguments of this function are the same; other studies may
    share the folder.

    The table has one row for each cell, simulation, estimator and k: "truth", "mean", "lower" and
    "upper" (missing for point estimates), "crps" (missing for bounds) and "pit" (missing for both;
    see `classex_bayes.evaluate.scoring`), "seconds" of fit and prediction, and "note": why an
    estimator could not be fitted ("mean" is missing then), or the problems of its draws. It is
    also the `partial` of an `Interrupted`.
    """
    SamplerSettings.of(sampler, progressbar)  # refused before the first fit
    seeds = seed_sequence(random_seed)
    study = _Study(
        draw,
        class_counts(k),
        named_metric(metric).name,
        (seeds.entropy, seeds.spawn_key),
        interval_settings(ci_prob, "eti")[0],
        dict(sampler or {}),
    )
    n_tasks = how_many(n_simulations, "n_simulations")
    jobs, show = checked_jobs(n_jobs), truth_value(progressbar, "progressbar")
    named = named_estimators(estimators)
    cases = [(cell, number, name) for number in range(n_tasks) for cell in cells for name in named]
    run, keys = _run, dict.fromkeys(named, "")
    if store is not None:
        folder = file_path(store, "store")
        if folder.is_file():
            raise DataError(f"store: found the file {folder}, expected a folder, or a new path")
        run = joblib.Memory(folder, verbose=0).cache(_run, ignore=["study", "cell", "estimator"])
        keys = {name: _key(study, estimator) for name, estimator in named.items()}
    calls = [
        (f"{keys[name]} {cell}", study, cell, number, named[name]) for cell, number, name in cases
    ]
    finished: list[pd.DataFrame] = []
    try:  # an interruption leaves those that were added before
        finished.extend(in_parallel(run, calls, len(calls), jobs, "fits", show))
    except (KeyboardInterrupt, BrokenExecutor) as error:
        lost = "a process was lost (killed, or out of memory): "
        message = lost if isinstance(error, BrokenExecutor) else ""
        message += f"interrupted after {len(finished)} of {len(cases)} fits"
        if store:
            message += f"; {store} keeps the finished fits"
        raise Interrupted(message, _table(cases, finished)) from None
    return _table(cases, finished)


def _run(key: str, study: _Study, cell: Any, number: int, estimator: Estimator) -> pd.DataFrame:
    """Run one trial; its result is stored by the key and the number."""
    return study.run(cell, number, estimator)


def _key(study: _Study, estimator: Any) -> str:
    """Digest of what decides a trial but for its task, the same in every process."""
    has_parameters = hasattr(estimator, "get_params")
    settings = estimator.get_params() if has_parameters else vars(estimator)
    return joblib.hash((__version__, study, type(estimator), settings))


def _table(cases: list[tuple[Any, int, str]], finished: list[pd.DataFrame]) -> pd.DataFrame:
    """Rows of the finished cases, which are the first ones."""
    places = [
        rows.assign(cell=str(cell), simulation=number, estimator=name)
        for (cell, number, name), rows in zip(cases, finished, strict=False)
    ]
    table = pd.concat(places, ignore_index=True) if places else pd.DataFrame(columns=[*_PLACE])
    return table[[*_PLACE, *table.columns.drop([*_PLACE])]]


def _scores(prediction: Extrapolation, truth: FloatArray, ci_prob: float) -> dict[str, FloatArray]:
    """Mean, limits of the interval, CRPS and probability transform at every k."""
    draws = prediction.draws.transpose(..., "k").values.reshape(-1, prediction.k.size)
    missing = np.full(prediction.k.size, np.nan)
    score, lower, upper, transform = crps(draws, truth), missing, missing, missing
    if prediction.interval_type != "none":
        lower, upper = prediction.interval(ci_prob, "eti").to_numpy().T
        transform = probability_transform(draws, truth)
    if isinstance(prediction, Bounds):  # limits are not a distribution
        score, transform = missing, missing
    values = prediction.mean.to_numpy(), lower, upper, score, transform
    return dict(zip(_SCORES, values, strict=True))
