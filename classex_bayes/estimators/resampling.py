"""Bootstrap of any estimator over classes, and halves of the classes."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from classex_bayes.arguments import (
    FEWEST_CLASSES,
    class_counts,
    how_many,
    seed_sequence,
    source_task,
    truth_value,
)
from classex_bayes.core.rank_pass import row_groups
from classex_bayes.estimators.base import Estimator, fitted_copy, require_estimator
from classex_bayes.exceptions import DataError, DataWarning, ExtrapolationWarning
from classex_bayes.parallel import checked_jobs, in_parallel
from classex_bayes.results.extrapolation import Extrapolation
from classex_bayes.task.accuracy_curve import AccuracyCurve
from classex_bayes.task.rank_variance import RankVariance
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.table_parts import redraw_groups, select
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, NumberArray, RandomSeed

_ROUNDING = 1e-24
Redraw = Callable[[np.random.Generator], SourceTask]


def bootstrap(
    estimator: Estimator,
    task: SourceTask,
    k: ClassCounts,
    *,
    n_resamples: int = 200,
    random_seed: RandomSeed = None,
    n_jobs: int | None = None,
    progressbar: bool = True,
) -> Extrapolation:
    r"""Bootstrap draws of an estimator's prediction.

    Test classes are drawn with replacement, with all their instances. If the classes of the task
    were sampled in groups, whole groups are drawn. A class that is drawn twice has twice the
    weight; the competitors stay the same. A copy of the estimator is fitted to each resample,
    including choices such as a bandwidth. The deviations of the predictions :math:`\hat a^*_s` from
    their mean are scaled and added to the prediction :math:`\hat a` from the task itself:

    .. math:: \hat a_s = \hat a + c\,(\hat a^*_s - \bar a^*), \qquad
              c^2 = \operatorname{median}_k \frac{\Sigma_{kk}}{\sum_l w_l^2 (A_{lk} - ATA_k)^2}.

    Here :math:`\Sigma` is the covariance of ATA_k (`SourceTask.accuracy_cov`), which includes the
    effect of shared competitors. The denominator is the variance over resamples, with
    :math:`w_l` the weight and :math:`A_{lk}` the accuracy of the class or group l. Draws are
    clipped to [0, 1].

    If only ranks are known, :math:`c^2` contains a fixed factor for the unknown competitors. If
    the task was made from accuracies, curves are drawn from :math:`N(ATA, \Sigma)` and made to
    decrease with k by isotonic regression.

    Resamples have ranks and no scores, so an estimator that uses halves of the classes thins their
    ranks at random. `KDE` and `BinomialModel` need the scores. They have a method `reweigh`, which
    learns from the same scores with other weights of the classes. `KDE` smooths each instance once
    and `BinomialModel` weighs its pooled scores again. Your own estimator is resampled in this way
    if it has this method.

    Parameters
    ----------
    estimator : estimator
        Any estimator that can be fitted to the task. It does not change, because copies are fitted.
    task : SourceTask
        The tested classes.
    k : int or array-like of int
        Numbers of classes, at least 2.
    n_resamples : int
        Number of draws. Resamples to which the estimator cannot be fitted are left out, and a note
        says how many. More than half of them are a `DataError`.
    random_seed : int, SeedSequence or None
        Seed of the resamples and of the fits to them. The draws are the same for any number of
        processes.
    n_jobs : int, optional
        Number of joblib processes. By default one, or the number set by `joblib.parallel_config`.
    progressbar : bool
        Whether to show progress.

    Returns
    -------
    Extrapolation
        Draws of dimensions (chain=1, draw=n_resamples), ``interval_type="bootstrap"``.

    Notes
    -----
    The interval contains the sampling error of the estimator, not its bias. docs/estimators.md
    reports the bias, and how often the intervals of each estimator contain the true accuracy. A
    fixed bandwidth, ``ClassExReg(model.bandwidth_)``, is faster but ignores the variation of the
    choice. For `KDE`, classes are resampled only as true classes.

    To resample the classes in both roles, as test classes and as competitors, is worse. Copies of
    one competitor beat the same instances, so resampled accuracies at k = k1 rise. Pairs of test
    class and competitor also count three times, which doubles the variance of rare errors.

    References
    ----------
    Owen, The pigeonhole bootstrap, Ann. Appl. Stat. 1 (2007); Davezies, D'Haultfoeuille and
    Guyonvarch, Ann. Statist. 49 (2021): resampling of two crossed roles.

    Examples
    --------
    >>> from classex_bayes import ClassExReg
    >>> ranks = [1] * 14 + [2, 2, 3, 4, 6, 10]
    >>> task = SourceTask.from_ranks(ranks, np.arange(20), n_classes=20)
    >>> result = bootstrap(ClassExReg(0.5), task, 80, progressbar=False, random_seed=1)
    >>> result.summary(0.9, "eti").round(2).iloc[0].tolist()
    [0.58, 0.17, 0.3, 0.86]
    """
    source_task(task)
    counts = class_counts(k)
    n_draws = how_many(n_resamples, "n_resamples", 2)
    jobs, show = checked_jobs(n_jobs), truth_value(progressbar, "progressbar")
    seed = seed_sequence(random_seed)
    require_estimator(estimator, "estimator")
    fitted = fitted_copy(estimator, task, seed, progressbar=False)
    return bootstrapped(fitted, task, fitted.predict(counts), n_draws, seed, jobs, show)


def bootstrapped(
    fitted: Estimator,
    task: SourceTask,
    point: Extrapolation,
    n_draws: int,
    seed: np.random.SeedSequence,
    n_jobs: int | None,
    show: bool,
) -> Extrapolation:
    """Bootstrap draws around the prediction of an estimator that is fitted to the task."""
    seedless: Any = copy(fitted)
    if hasattr(seedless, "random_seed"):
        seedless.random_seed = None
    method = "reweigh" if hasattr(fitted, "reweigh") else "fit"
    labelled = task.table.is_labelled
    redraw, scale, note = _units(task, method == "reweigh") if labelled else _curves(task)
    cases = (
        (seedless, redraw(np.random.default_rng(class_seed)), fit_seed, point.k, method)
        for class_seed, fit_seed in (child.spawn(2) for child in seed.spawn(n_draws))
    )
    resampled = list(in_parallel(_prediction, cases, n_draws, n_jobs, "bootstrap", show))
    kept = [prediction for prediction in resampled if isinstance(prediction, np.ndarray)]
    errors = [error for error in resampled if isinstance(error, DataError)]
    count = f"{len(errors)} of {n_draws} resamples"
    if len(errors) > len(kept):
        raise DataError(f"estimator: {point.estimator} cannot be fitted to {count} ({errors[0]})")
    notes = [*point.notes, f"{note}; the estimator's bias is left out"]
    if errors:
        notes.append(
            f"{count} are left out, because {point.estimator} cannot be fitted to them "
            f"({errors[0]})"
        )
    deviations = np.array(kept) - np.mean(kept, axis=0)
    draws = np.clip(point.mean.to_numpy() + scale * deviations, 0.0, 1.0)
    with warnings.catch_warnings():
        # The prediction from the task itself has already warned.
        warnings.simplefilter("ignore", ExtrapolationWarning)
        result = Extrapolation.from_draws(
            point.k,
            draws[None],
            point.estimator,
            "bootstrap",
            task.n_classes,
            estimand=point.estimand,
        )
    return replace(result, base_notes=tuple(notes))


def _prediction(
    estimator: Estimator,
    resample: SourceTask,
    seed: np.random.SeedSequence,
    k: IntArray,
    method: str,
) -> FloatArray | DataError:
    """Predicted accuracies of a copy fitted to a resample, or the error of that fit."""
    with warnings.catch_warnings():
        # The fit to the task itself, and the prediction from it, have already warned.
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ExtrapolationWarning)
        try:
            fitted = fitted_copy(estimator, resample, seed, method, progressbar=False)
            prediction = fitted.predict(k)
        except DataError as error:
            return error
    return prediction.accuracy.values.mean(axis=(0, 1))


def _units(task: SourceTask, with_scores: bool) -> tuple[Redraw, float, str]:
    """Draw units with replacement; the scale of deviations, and a note.

    Without the scores, resamples are small and take little time to send to other processes. Halves
    of classes that came in groups need the scores.
    """
    table = task.require("ranks")
    total = np.diag(task.accuracy_cov(task.grid()))
    of_resamples = RankVariance(table).resampled_variance
    # Equal accuracies differ by rounding errors, whose ratios are meaningless.
    varies = of_resamples > _ROUNDING
    n_units = np.unique(table.unit[table.weight > 0]).size
    are_classes = n_units == np.count_nonzero(table.class_weight)
    note = f"bootstrap of {n_units} {'test classes' if are_classes else 'groups of test classes'}"
    if varies.any():
        scale = float(np.sqrt(np.median(total[varies] / of_resamples[varies])))
        state = "shared" if table.influence else "unknown"
        note += f", deviations scaled by {scale:.2f} for {state} competitors"
    else:
        scale = 1.0
        note += " with equal accuracies"
    if table.is_simple_random and not with_scores:
        table = replace(table, source=None)
    return lambda rng: SourceTask(redraw_groups(table, rng), task.classes), scale, note


def _curves(task: SourceTask) -> tuple[Redraw, float, str]:
    """Draw curves from a normal law."""
    k = task.grid()
    accuracy, covariance = task.accuracy(k), task.accuracy_cov(k)
    of_each = task.table.n_each if isinstance(task.table, AccuracyCurve) else None
    n_test = task.n_test if of_each is None else of_each
    settings: dict[str, Any] = {"n_test": n_test, "n_classes": task.n_classes}

    def redraw(rng: np.random.Generator) -> SourceTask:
        drawn = rng.multivariate_normal(accuracy, covariance, method="eigh")
        falling = isotonic_regression(np.clip(drawn, 0.0, 1.0), increasing=False).x
        return SourceTask.from_accuracies(
            k, falling, **settings, design_effect=task.design_effect()
        )

    return redraw, 1.0, "bootstrap of the given accuracies with normal errors"


# Halves of the classes


def halve(
    task: SourceTask,
    n_resamples: int = 25,
    random_seed: RandomSeed = None,
    replace: bool = False,
) -> list[SourceTask]:
    """`n_resamples` tasks on random halves of the classes, with ranks only.

    A half has half of the classes, rounded down, but at least 3. It is drawn again if fewer than
    two of its classes were tested. With `replace`, classes may be drawn several times (`subtasks`).
    Classes that were sampled in groups stay in their groups. If scores are unknown, the seed also
    thins the ranks.
    """
    n_halves = how_many(n_resamples, "n_resamples")
    seeds, size = seed_sequence(random_seed), max(FEWEST_CLASSES, task.n_classes // 2)
    if not task.table.is_simple_random:
        return [task.subsample(size, seed) for seed in seeds.spawn(n_halves)]
    class_weight = task.require("exact ranks").class_weight
    if size == task.n_classes:
        raise DataError(
            f"bandwidth: its choice needs at least {size + 1} classes, found {size}; "
            "pass bandwidth="
        )
    rng = np.random.default_rng(seeds)

    def drawn() -> Iterator[IntArray]:
        for _ in range(n_halves):
            kept = np.empty(0, dtype=np.int64)
            while np.count_nonzero(class_weight[np.unique(kept)]) < 2:
                kept = np.sort(rng.choice(task.n_classes, size, replace=replace))
            yield kept

    return subtasks(task, drawn(), rng)


def subtasks(
    task: SourceTask, subsets: Iterable[IntArray], rng: np.random.Generator
) -> list[SourceTask]:
    """Tasks, with ranks only, on subsets of the classes, which are given by their positions.

    A class whose position is repeated competes with copies of itself. Its c copies have the same
    scores, so ties are broken at random. The c copies of an instance then have 0, 1, ..., c - 1 of
    the class's copies above them, one number for each copy of the instance.

    Without scores, `rng` thins the ranks (`SourceTask.subsample`). Among classes that were drawn
    with replacement, an instance with L better classes of k1 - 1 is beaten by each of them with
    probability L / (k1 - 1).
    """
    if task.require("exact ranks").all_scores is None:
        return [_thinned(task, kept, rng) for kept in subsets]
    subsets = list(subsets)
    copies = np.array([np.bincount(kept, minlength=task.n_classes) for kept in subsets])
    n_better = n_better_among(task, copies.T)
    return [_subtask(task, kept, column) for kept, column in zip(subsets, n_better.T, strict=True)]


def n_better_among(task: SourceTask, copies: NumberArray) -> IntArray:
    r"""Number (n_test, n_sets) of better classes of every instance in several sets of competitors.

    :math:`L_{is} = \sum_j W_{ij} c_{js}`, with :math:`W_{ij} = 1` if competitor j beats instance i
    by the rule for ties of the task. `copies` c (n_classes, n_sets) are the numbers of times that
    each class is in each set. All sets are counted in one pass over the scores.
    """
    groups = row_groups(task.y, task.n_classes)
    # Sums of whole numbers below 2^24 are exact in single precision.
    factor = copies.astype(np.float32)
    n_better = np.zeros((task.n_test, copies.shape[1]), dtype=np.int32)
    for block in task.require("scores").blocks(groups):
        erring = np.flatnonzero(block.n_better)
        n_better[block.rows[erring]] = block.defeats.beaten(erring).astype(np.float32) @ factor
    return n_better


def _thinned(task: SourceTask, kept: IntArray, rng: np.random.Generator) -> SourceTask:
    """Task on some of the classes, from ranks only."""
    copies = np.bincount(kept, minlength=task.n_classes)
    if copies.max() == 1:
        return SourceTask(select(task.require("ranks"), kept, rng))
    others = np.maximum(kept.size - copies[task.y], 0)
    return _subtask(task, kept, rng.binomial(others, (task.ranks - 1) / (task.n_classes - 1)))


def _subtask(task: SourceTask, kept: IntArray, n_better: IntArray) -> SourceTask:
    """Task on classes, some perhaps repeated, from numbers (n_test,) of better ones among them."""
    copies = np.bincount(kept, minlength=task.n_classes)
    # Places of the copies of each class, one class after the other.
    places, first = np.argsort(kept, kind="stable"), np.cumsum(copies) - copies
    times = copies[task.y]
    row = np.repeat(np.arange(task.n_test), times)
    earlier = np.arange(row.size) - np.repeat(np.cumsum(times) - times, times)
    return SourceTask.from_ranks(
        n_better[row] + earlier + 1,
        places[first[task.y[row]] + earlier],
        n_classes=kept.size,
        class_weight=task.require("ranks").class_weight[kept],
        untested="competitors",
    )
