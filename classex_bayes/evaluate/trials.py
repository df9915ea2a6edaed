"""Repeated trials: every estimator on many tasks of known accuracy, in one long table."""

import pickle
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

from classex_bayes.arguments import class_counts, how_many, seed_sequence, truth_value
from classex_bayes.bayes.sampling import SamplerSettings
from classex_bayes.core.metrics import named_metric
from classex_bayes.estimators.estimator import (
    FIT_ERRORS,
    Estimator,
    fitted_copy,
    named_estimators,
    prediction_of,
    require_metric,
)
from classex_bayes.evaluate.scoring import crps, probability_transform
from classex_bayes.evaluate.trial_store import COLUMNS, TrialStore
from classex_bayes.exceptions import (
    ConvergenceWarning,
    DataError,
    DataWarning,
    ExtrapolationWarning,
    Interrupted,
)
from classex_bayes.parallel import checked_jobs, in_parallel
from classex_bayes.results import Bounds, Extrapolation, interval_settings
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed

SAMPLER = {"draws": 500, "tune": 500, "chains": 2}
Draw = Callable[..., "Trial"]


class Trial(NamedTuple):
    """A task and its known accuracy, or other metric, at the k of the study, shape (n_k,)."""

    task: SourceTask
    truth: FloatArray


class _Candidate(NamedTuple):
    """An estimator, its name, and a digest of the study and of its parameters."""

    name: str
    estimator: Estimator
    settings: str


class _Simulation(NamedTuple):
    """A task to draw, and the estimators that have not been tried on it."""

    cell: Any
    number: int
    candidates: list[_Candidate]


@dataclass(frozen=True)
class _Experiment:
    """What all simulations have in common."""

    draw: Draw
    k: IntArray
    metric: str
    random_seed: int
    ci_prob: float
    sampler: dict[str, Any]

    def candidate(self, name: str, estimator: Estimator, is_stored: bool) -> _Candidate:
        """An estimator with a digest that is the same in later processes, if there is a store."""
        if not is_stored:
            return _Candidate(name, estimator, "")
        study = (
            getattr(self.draw, "identity", self.draw),
            self.k,
            self.random_seed,
            self.ci_prob,
            self.metric,
            sorted(self.sampler.items()),
        )
        parameters = estimator.get_params() if hasattr(estimator, "get_params") else {}
        try:
            return _Candidate(name, estimator, joblib.hash((study, type(estimator), parameters)))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise DataError(
                "store: draw and estimators must be picklable, so they cannot be functions inside "
                f"functions ({str(error).splitlines()[0][:200]})"
            ) from None

    def run(self, simulation: _Simulation) -> list[tuple[Any, ...]]:
        """Rows of one task: predictions of every candidate and the truth."""
        cell, number, candidates = simulation
        task_seed, fits_seed = _seed(cell, number, self.random_seed).spawn(2)
        fit_seed = int(fits_seed.generate_state(1)[0])
        trial = self.draw(cell, task_seed)
        rows: list[tuple[Any, ...]] = []
        for name, estimator, settings in candidates:
            start = time.perf_counter()
            scores, note = [np.full(self.k.size, np.nan)] * 5, ""
            try:
                prediction, note = self._predict(estimator, trial.task, fit_seed)
            except FIT_ERRORS as error:
                note = str(error)
            else:
                scores = _scores(prediction, trial.truth, self.ci_prob)
            seconds = time.perf_counter() - start
            rows += [
                (str(cell), number, name, settings, *values, seconds, " ".join(note.split()))
                for values in zip(self.k, trial.truth, *scores, strict=True)
            ]
        return rows

    def _predict(
        self, estimator: Estimator, task: SourceTask, seed: int
    ) -> tuple[Extrapolation, str]:
        """Prediction of a fitted copy, and the warnings of its sampler."""
        require_metric(estimator, self.metric)
        sampler = {**self.sampler, "cores": 1}
        with warnings.catch_warnings(record=True) as caught:
            # Errors of predictions are measured, so warnings of the fit go into the table, but for
            # those of the data, which are the same for every estimator.
            warnings.simplefilter("ignore", ExtrapolationWarning)
            warnings.simplefilter("always", ConvergenceWarning)
            warnings.simplefilter("always", DataWarning)
            prediction = prediction_of(
                fitted_copy(estimator, task, seed, sampler=sampler, progressbar=False),
                self.k,
                self.metric,
            )
        said = (str(warning.message) for warning in caught)
        return prediction, "; ".join(text for text in said if text not in task.warnings)


def run_trials(
    estimators: Sequence[Estimator] | Mapping[str, Estimator],
    draw: Draw,
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
    """Fit every estimator to many tasks and compare its predictions with the truth.

    ``draw(cell, seed_sequence)`` returns a `Trial`; picklable if ``n_jobs`` is not 1. The other
    arguments are those of `classex_bayes.backtest`, with `n_simulations` tasks in each of `cells`
    (numbers or strings). The seed of a task and of its fits depends on `random_seed`, the cell and
    the number of the simulation alone, so the table is the same for any ``n_jobs``, and more
    simulations add to it.

    `store` is a .csv that grows with every finished task. Estimators that have a row in it for a
    task are not fitted to it again, so an interrupted study resumes. It holds one study: the same
    draws, `k`, `metric`, `random_seed`, `ci_prob` and `sampler`. Draws are the same if the function
    has the same name and arguments, or an equal attribute `identity`.

    The table has one row for each cell, simulation, estimator and k: "truth", "mean", "lower" and
    "upper" (missing for point estimates), "crps" (missing for bounds) and "pit" (missing for both;
    see `classex_bayes.evaluate.scoring`), "seconds" of fit and prediction, and "note": why an
    estimator could not be fitted ("mean" is missing then), or what is wrong with its draws. It is
    also the `partial` of an `Interrupted`.
    """
    SamplerSettings.of(sampler, progressbar)  # refused before the first fit
    study = _Experiment(
        draw,
        class_counts(k),
        named_metric(metric).name,
        random_seed,
        interval_settings(ci_prob, "eti")[0],
        dict(sampler or {}),
    )
    n_tasks = how_many(n_simulations, "n_simulations")
    jobs, show = checked_jobs(n_jobs), truth_value(progressbar, "progressbar")
    candidates = [
        study.candidate(name, estimator, store is not None)
        for name, estimator in named_estimators(estimators).items()
    ]
    settings = {candidate.name: candidate.settings for candidate in candidates}
    trial_store = TrialStore(store)
    stored = trial_store.resume(settings, study.k.size)
    finished = set(zip(stored["cell"], stored["simulation"], stored["estimator"], strict=True))
    pending = [
        _Simulation(cell, number, missing)
        for number in range(n_tasks)
        for cell in cells
        if (missing := [c for c in candidates if (str(cell), number, c.name) not in finished])
    ]
    parts = [stored]

    def finished_rows() -> pd.DataFrame:
        table = pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)
        requested = table["cell"].isin([str(cell) for cell in cells])
        requested &= (table["simulation"] < n_tasks) & table["estimator"].isin(settings)
        return table[requested].drop(columns="settings").reset_index(drop=True)

    cases = [(simulation,) for simulation in pending]
    try:
        for rows in in_parallel(study.run, cases, len(cases), jobs, "tasks", show):
            parts.append(pd.DataFrame(rows, columns=list(COLUMNS)))
            trial_store.append(parts[-1])
    except (KeyboardInterrupt, BrokenExecutor) as error:
        rows = finished_rows()
        lost = "a process was lost (killed, or out of memory): "
        message = lost if isinstance(error, BrokenExecutor) else ""
        message += f"interrupted after {len(parts) - 1} of {len(pending)} tasks"
        if store and len(rows):
            message += f"; {store} keeps what was finished"
        raise Interrupted(message, rows) from None
    return finished_rows()


def _seed(cell: Any, number: int, random_seed: RandomSeed) -> np.random.SeedSequence:
    """Seed of one task, which does not depend on other cells and simulations."""
    place = (zlib.crc32(str(cell).encode()), number)
    return np.random.SeedSequence(seed_sequence(random_seed).entropy, spawn_key=place)


def _scores(prediction: Extrapolation, truth: FloatArray, ci_prob: float) -> list[FloatArray]:
    """Mean, limits of the interval, CRPS and probability transform at every k."""
    draws = prediction.draws.transpose(..., "k").values.reshape(-1, prediction.k.size)
    missing = np.full(prediction.k.size, np.nan)
    score, lower, upper, transform = crps(draws, truth), missing, missing, missing
    if prediction.interval_type != "none":
        lower, upper = prediction.interval(ci_prob, "eti").to_numpy().T
        transform = probability_transform(draws, truth)
    if isinstance(prediction, Bounds):  # limits are no distribution
        score, transform = missing, missing
    return [prediction.mean.to_numpy(), lower, upper, score, transform]
