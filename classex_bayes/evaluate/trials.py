"""Repeated trials: every estimator on many tasks of known accuracy, in one long table."""

import json
import time
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd

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
from classex_bayes.typing import ClassCounts, FloatArray, IntArray

SAMPLER = {"draws": 500, "tune": 500, "chains": 2}
_COLUMNS = (
    "cell", "simulation", "estimator", "k", "truth", "mean", "lower", "upper", "crps", "pit",
    "seconds", "note",
)  # fmt: skip


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
    random_seed: int
    ci_prob: float
    sampler: dict[str, Any]

    def run(self, cell: Any, number: int, estimator: Estimator) -> list[list[Any]]:
        """Truth and prediction of an estimator from one task: the columns from k on, by k."""
        place = (zlib.crc32(str(cell).encode()), number)
        seed = np.random.SeedSequence(seed_sequence(self.random_seed).entropy, spawn_key=place)
        task_seed, fits_seed = seed.spawn(2)
        trial = self.draw(cell, task_seed)
        start = time.perf_counter()
        scores, note = [np.full(self.k.size, np.nan)] * 5, ""
        try:
            prediction, note = self._predict(estimator, trial.task, fits_seed)
        except FIT_ERRORS as error:
            note = str(error)
        else:
            scores = _scores(prediction, trial.truth, self.ci_prob)
        seconds = time.perf_counter() - start
        columns = [np.asarray(column).tolist() for column in (self.k, trial.truth, *scores)]
        last = seconds, " ".join(note.split())
        return [[*values, *last] for values in zip(*columns, strict=True)]

    def _predict(
        self, estimator: Estimator, task: SourceTask, seed: np.random.SeedSequence
    ) -> tuple[Extrapolation, str]:
        """Prediction of a fitted copy, and the warnings of its sampler."""
        require_metric(estimator, self.metric)
        settings: dict[str, Any] = {
            "metrics": self.metric,
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
    random_seed: int = 0,
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

    `store` is a file that grows with every finished fit. Fits that it has are not repeated, so an
    interrupted study resumes. They are the same if the estimator, the draw function with its
    arguments, and the arguments of this function are the same; others may share the file.

    The table has one row for each cell, simulation, estimator and k: "truth", "mean", "lower" and
    "upper" (missing for point estimates), "crps" (missing for bounds) and "pit" (missing for both;
    see `classex_bayes.evaluate.scoring`), "seconds" of fit and prediction, and "note": why an
    estimator could not be fitted ("mean" is missing then), or the problems of its draws. It is
    also the `partial` of an `Interrupted`.
    """
    SamplerSettings.of(sampler, progressbar)  # refused before the first fit
    study = _Study(
        draw,
        class_counts(k),
        named_metric(metric).name,
        random_seed,
        interval_settings(ci_prob, "eti")[0],
        dict(sampler or {}),
    )
    n_tasks = how_many(n_simulations, "n_simulations")
    jobs, show = checked_jobs(n_jobs), truth_value(progressbar, "progressbar")
    named = named_estimators(estimators)
    trials = [(cell, number, name) for number in range(n_tasks) for cell in cells for name in named]
    keys = dict(
        zip(trials, trials if store is None else _digests(study, trials, named), strict=True)
    )
    finished = _Store(store)
    pending = [trial for trial in trials if keys[trial] not in finished.rows]

    def table() -> pd.DataFrame:
        rows = [
            (str(cell), number, name, *row)
            for cell, number, name in trials
            for row in finished.rows.get(keys[cell, number, name], ())
        ]
        return pd.DataFrame(rows, columns=list(_COLUMNS))

    cases = [(cell, number, named[name]) for cell, number, name in pending]
    n_done = 0
    try:
        for rows in in_parallel(study.run, cases, len(cases), jobs, "fits", show):
            finished.add(keys[pending[n_done]], rows)
            n_done += 1
    except (KeyboardInterrupt, BrokenExecutor) as error:
        lost = "a process was lost (killed, or out of memory): "
        message = lost if isinstance(error, BrokenExecutor) else ""
        message += f"interrupted after {n_done} of {len(pending)} fits"
        if store and finished.rows:
            message += f"; {store} keeps the finished fits"
        raise Interrupted(message, table()) from None
    return table()


def _digests(
    study: _Study, trials: Sequence[tuple[Any, int, str]], named: Mapping[str, Any]
) -> list[str]:
    """A name of each trial that is the same in every process; pickles the study."""
    of_study = joblib.hash(study)
    parameters = {
        name: joblib.hash((type(e), e.get_params() if hasattr(e, "get_params") else vars(e)))
        for name, e in named.items()
    }
    return [joblib.hash((of_study, str(cell), n, parameters[name])) for cell, n, name in trials]


class _Store:
    """Rows of finished trials by their keys; a file keeps them if there is one.

    A line of the file is a key with its rows. An interruption can cut one off.
    """

    def __init__(self, path: str | Path | None) -> None:
        self._path = None if path is None else file_path(path, "store")
        self.rows: dict[Any, list[list[Any]]] = {}
        if self._path is not None and self._path.exists():
            lines = self._path.read_text(encoding="utf-8", errors="replace").splitlines()
            for line in lines:
                with suppress(ValueError):
                    self.rows.update([json.loads(line)])
            if lines and not self.rows:
                raise DataError(f"store: {path} is not a file of trials; pass a new file")

    def add(self, key: Any, rows: list[list[Any]]) -> None:
        """Add the rows of a trial."""
        self.rows[key] = rows
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write("\n" + json.dumps([key, rows]))


def _scores(prediction: Extrapolation, truth: FloatArray, ci_prob: float) -> list[FloatArray]:
    """Mean, limits of the interval, CRPS and probability transform at every k."""
    draws = prediction.draws.transpose(..., "k").values.reshape(-1, prediction.k.size)
    missing = np.full(prediction.k.size, np.nan)
    score, lower, upper, transform = crps(draws, truth), missing, missing, missing
    if prediction.interval_type != "none":
        lower, upper = prediction.interval(ci_prob, "eti").to_numpy().T
        transform = probability_transform(draws, truth)
    if isinstance(prediction, Bounds):  # limits are not a distribution
        score, transform = missing, missing
    return [prediction.mean.to_numpy(), lower, upper, score, transform]
