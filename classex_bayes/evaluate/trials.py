"""Repeated trials: many tasks of known accuracy, every estimator on each, one long table."""

import pickle
import time
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from classex_bayes.bayes.sampling import sampler_settings
from classex_bayes.estimators.base import (
    FIT_ERRORS,
    Estimator,
    fitted_copy,
    get_parameters,
    named_estimators,
)
from classex_bayes.evaluate.progress_bar import with_progress
from classex_bayes.evaluate.scoring import crps, probability_transform
from classex_bayes.evaluate.trial_store import COLUMNS, TrialStore
from classex_bayes.exceptions import (
    ConvergenceWarning,
    DataError,
    ExtrapolationWarning,
    Interrupted,
)
from classex_bayes.results import Extrapolation
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import (
    class_counts,
    how_many,
    number,
    probability,
    seed_sequence,
    truth_value,
)
from classex_bayes.typing import ClassCounts, FloatArray, RandomSeed

SAMPLER = {"draws": 500, "tune": 500, "chains": 2}
Draw = Callable[..., "Trial"]


class Trial(NamedTuple):
    """A task and its known accuracy at the numbers of classes of the study, shape (n_k,)."""

    task: SourceTask
    truth: FloatArray


class _Entrant(NamedTuple):
    """An estimator, its name, and a digest of the study and of its parameters."""

    name: str
    estimator: Estimator
    settings: str


class _Unit(NamedTuple):
    """One task to draw and the estimators that are still to be tried on it."""

    cell: Any
    repeat: int
    entrants: list[_Entrant]


def run_trials(
    draw: Draw,
    cells: Sequence[Any],
    estimators: Sequence[Estimator] | Mapping[str, Estimator],
    k: ClassCounts,
    *,
    n_repeats: int,
    random_seed: int = 0,
    ci_prob: float = 0.9,
    sampler: Mapping[str, Any] = SAMPLER,
    n_jobs: int | None = None,
    store: str | Path | None = None,
    progressbar: bool = True,
) -> pd.DataFrame:
    """Fit every estimator to many tasks and set its predictions beside the truth.

    Parameters
    ----------
    draw : callable
        ``draw(cell, seed_sequence)`` returns a `Trial`; picklable where ``n_jobs`` is not 1.
    cells : sequence
        Settings to draw from, numbers or strings.
    estimators : sequence of estimators, or mapping from names to estimators
        Copies are fitted; those without a seed of their own take one from the trial.
    k : int or array-like of int
        Numbers of classes to predict for.
    n_repeats : int
        Tasks in each cell.
    random_seed : int
        Every task and every fit has a seed that depends on this number, the cell and the repeat
        alone, so the table is the same for any ``n_jobs``, and more repeats add to it.
    ci_prob : float
        Level of the equal-tailed intervals.
    sampler : mapping
        Arguments of `fit` for estimators that draw from a posterior.
    n_jobs : int, optional
        Processes of joblib; by default one, or as `joblib.parallel_config` says.
    store : path, optional
        A .csv that grows with every finished task. Estimators that have a row in it for a task
        are not fitted to it again, so an interrupted study goes on where it stopped. It holds
        one study: the same draws, `k`, `random_seed`, `ci_prob` and `sampler`. Draws are the
        same where the function has the same name and arguments.
    progressbar : bool
        Show progress on a terminal.

    Returns
    -------
    DataFrame
        One row for each cell, repeat, estimator and k: "truth", "mean", "lower" and "upper"
        (missing for point estimates), "crps" and "pit" (missing for point estimates; see
        `classex_bayes.evaluate.scoring`), "seconds" of fit and prediction, and "note": why an
        estimator could not be fitted ("mean" is missing then), or what is wrong with its draws.

    Raises
    ------
    DataError
        Two estimators of one name, nothing to do, a store that is not one, or one of another
        study or with other parameters of an estimator.
    ImportError
        An estimator needs a package that is not installed.
    Interrupted
        A `KeyboardInterrupt`, or a process that was lost; its `partial` is the table of the tasks
        so far.

    Examples
    --------
    >>> from classex_bayes.simulate import FavorabilityLaw
    >>> from classex_bayes.estimators.classexreg.classexreg import ClassExReg
    >>> def draw(mean, seed):
    ...     law = FavorabilityLaw(means=(mean,), sds=(1.0,))
    ...     losses, y, n_classes = law.sample(50, random_seed=seed)
    ...     return Trial(SourceTask.from_losses(losses, y, n_classes=n_classes), law.accuracy(100))
    >>> table = run_trials(draw, [2.0, 3.0], [ClassExReg(0.5)], 100, n_repeats=2)
    >>> table.shape, table["truth"].unique().round(3).tolist()
    ((4, 12), [0.323, 0.678])
    """
    counts = class_counts(k)
    repeats = how_many(n_repeats, "n_repeats")
    if n_jobs is not None:
        number(n_jobs, "n_jobs", -np.inf, whole=True)
    if n_jobs == 0:
        raise DataError("n_jobs: found 0, expected a number of processes, or -1 for all processors")
    probability(ci_prob, "ci_prob")
    shown = truth_value(progressbar, "progressbar")
    named = named_estimators(estimators)
    study = draw, counts, random_seed, ci_prob, sorted(sampler_settings(sampler).items())
    entrants = [
        _Entrant(name, estimator, "" if store is None else _digest(study, estimator))
        for name, estimator in named.items()
    ]
    kept = TrialStore(store)
    done = kept.resume({entrant.name: entrant.settings for entrant in entrants}, counts.size)
    finished = set(zip(done["cell"], done["repeat"], done["estimator"], strict=True))
    units = [
        _Unit(cell, repeat, left)
        for repeat in range(repeats)
        for cell in cells
        if (left := [e for e in entrants if (str(cell), repeat, e.name) not in finished])
    ]
    work = (
        delayed(_run)(draw, unit, counts, random_seed, ci_prob, dict(sampler)) for unit in units
    )
    parts = [done]

    def finished_rows() -> pd.DataFrame:
        table = pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)
        asked = table["cell"].isin([str(cell) for cell in cells]) & (table["repeat"] < repeats)
        asked &= table["estimator"].isin(named)
        return table[asked].drop(columns="settings").reset_index(drop=True)

    results = Parallel(n_jobs=n_jobs, return_as="generator")(work)
    try:
        for rows in with_progress(results, len(units), "tasks", shown):
            parts.append(pd.DataFrame(rows, columns=list(COLUMNS)))
            kept.append(parts[-1])
    except (KeyboardInterrupt, BrokenExecutor) as error:
        rows = finished_rows()
        lost = "a process was lost (killed, or out of memory): "
        told = lost if isinstance(error, BrokenExecutor) else ""
        told += f"interrupted after {len(parts) - 1} of {len(units)} tasks"
        kept_in = f"; {store} keeps what was finished" if store and len(rows) else ""
        raise Interrupted(told + kept_in, rows) from None
    return finished_rows()


def _digest(study: tuple[Any, ...], estimator: Estimator) -> str:
    """The same in later processes for the same study and parameters, and hardly for others."""
    try:
        return joblib.hash((study, type(estimator), get_parameters(estimator)))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise DataError(
            "store: draw and estimators must be such that they can be pickled, not functions "
            f"inside functions ({str(error).splitlines()[0][:200]})"
        ) from None


def _seed(cell: Any, repeat: int, random_seed: RandomSeed) -> np.random.SeedSequence:
    """Seed of one task: other cells and other repeats leave it as it is."""
    place = (zlib.crc32(str(cell).encode()), repeat)
    return np.random.SeedSequence(seed_sequence(random_seed).entropy, spawn_key=place)


def _run(
    draw: Draw,
    unit: _Unit,
    k: Any,
    random_seed: int,
    ci_prob: float,
    sampler: dict[str, Any],
) -> list[tuple[Any, ...]]:
    seed = _seed(unit.cell, unit.repeat, random_seed)
    for_task, for_fits = seed.spawn(2)
    fit_seed = int(for_fits.generate_state(1)[0])
    trial = draw(unit.cell, for_task)
    rows: list[tuple[Any, ...]] = []
    for name, estimator, settings in unit.entrants:
        start = time.perf_counter()
        missing = np.full(k.size, np.nan)
        found, note = [missing] * 5, ""
        try:
            prediction, note = _predict(estimator, trial.task, k, fit_seed, sampler)
        except FIT_ERRORS as error:
            note = " ".join(str(error).split())
        else:
            found = _scored(prediction, trial.truth, ci_prob)
        seconds = time.perf_counter() - start
        rows += [
            (str(unit.cell), unit.repeat, name, settings, *values, seconds, note)
            for values in zip(k, trial.truth, *found, strict=True)
        ]
    return rows


def _scored(prediction: Extrapolation, truth: FloatArray, ci_prob: float) -> list[FloatArray]:
    """Mean, limits of the interval, CRPS and probability transform at every k."""
    draws = prediction.values.transpose(..., "k").values.reshape(-1, prediction.k.size)
    missing = np.full(prediction.k.size, np.nan)
    lower, upper, transform = missing, missing, missing
    if prediction.interval_type != "none":
        lower, upper = prediction.interval(ci_prob, "eti").to_numpy().T
        transform = probability_transform(draws, truth)
    return [prediction.mean.to_numpy(), lower, upper, crps(draws, truth), transform]


def _predict(
    estimator: Estimator, task: SourceTask, k: Any, seed: int, sampler: dict[str, Any]
) -> tuple[Extrapolation, str]:
    """Prediction of a fitted copy, and what the sampler warned of."""
    with warnings.catch_warnings(record=True) as caught:
        # How far predictions err is what is studied; the sampler's warnings go into the table.
        warnings.simplefilter("ignore", ExtrapolationWarning)
        warnings.simplefilter("always", ConvergenceWarning)
        fitted = fitted_copy(estimator, task, seed, **{**sampler, "cores": 1, "progressbar": False})
        prediction = fitted.predict(k)
    return prediction, "; ".join(str(warning.message) for warning in caught)
