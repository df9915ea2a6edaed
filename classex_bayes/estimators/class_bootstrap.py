"""Bootstrap over classes: draws of the prediction of any estimator."""

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from classex_bayes.arguments import class_counts, how_many, seed_sequence, truth_value
from classex_bayes.core.influence import (
    class_accuracies,
    clustered_covariance,
    weight_effect,
)
from classex_bayes.estimators.estimator import (
    Estimator,
    ScoreReader,
    fitted_copy,
    require_estimator,
)
from classex_bayes.estimators.resampling import redraw_test_classes, reweigh_test_classes
from classex_bayes.estimators.training_curve import accuracy_factor
from classex_bayes.exceptions import DataError, DataWarning, ExtrapolationWarning
from classex_bayes.parallel import checked_jobs, in_parallel
from classex_bayes.results import Extrapolation
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.table_reading import redraw_groups
from classex_bayes.task.validation import source_task
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed

_ROUNDING = 1e-24


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

    Test classes are drawn with replacement, with all their instances. The competitors stay the
    same. A copy of the estimator is fitted to each resample, including choices such as a bandwidth.
    If the classes of the task were sampled in groups, whole groups are drawn. The deviations of the
    predictions :math:`\hat a^*_s` from their mean are scaled and added to the prediction
    :math:`\hat a` from the task itself:

    .. math:: \hat a_s = \hat a + c\,(\hat a^*_s - \bar a^*), \qquad
              c^2 = \operatorname{median}_k \frac{\Sigma_{kk}}{\Sigma^{test}_{kk}},

    Here :math:`\Sigma` is the covariance of ATA_k (`SourceTask.accuracy_cov`), which includes the
    effect of shared competitors. :math:`\Sigma^{test}` is its part due to the test classes, which
    is the covariance over resamples. Draws are clipped to [0, 1]. All classes of a resample have
    equal weights. If the n tested classes of the task have unequal weights :math:`w_l`,
    :math:`\Sigma^{test}` is divided by :math:`n \sum_l w_l^2`.

    If only ranks are known, :math:`c^2` contains a fixed factor for the unknown competitors. If
    the task was made from accuracies, curves are drawn from :math:`N(ATA, \Sigma)` and made to
    decrease with k by isotonic regression. Resamples have ranks and no scores, so an estimator that
    uses halves of the classes thins their ranks at random.

    `KDE`, `BinomialModel` and `CleaneX` need scores, so their resamples keep the scores. A class
    that is drawn twice has twice the weight and does not compete with a copy of itself. `KDE`
    smooths each instance separately, so only the weights of the instances change. `BinomialModel`
    also weighs its pooled scores again. Your own estimator is resampled in this way if it has a
    method `reweighed`.

    Parameters
    ----------
    estimator : estimator
        Any estimator that can be fitted to the task. It does not change, because copies are fitted.
        `CleaneX` trains a network for each resample, which takes seconds to minutes.
    task : SourceTask
        The tested classes.
    k : int or array-like of int
        Numbers of classes, at least 2.
    n_resamples : int
        Number of draws. Resamples to which the estimator cannot be fitted are left out, and a note
        says how many.
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

    Raises
    ------
    DataError
        An argument is out of range, or the estimator cannot be fitted to the task or to more than
        half of the resamples.

    Notes
    -----
    The interval contains the sampling error of the estimator, not its bias. docs/estimators.md
    reports how often the intervals of each estimator contain the true accuracy and the mean of its
    estimates. A fixed bandwidth, ``ClassExReg(model.bandwidth_)``, is faster but ignores the
    variation of the choice. For `KDE`, classes are resampled only as true classes.

    To resample the classes in both roles, as test classes and as competitors, is worse. Copies of
    one competitor beat the same instances, so resampled accuracies at k = k1 rise by 0.1 to 4
    standard deviations. Pairs of test class and competitor also count three times, which doubles
    the variance of ATA_k if errors are rare. With the draws used here, the variance of ATA_k was
    0.87 to 1.25 times the true variance, for 20, 100 and 500 classes with 1 and 5 instances each.

    References
    ----------
    Owen, The pigeonhole bootstrap, Ann. Appl. Stat. 1 (2007); Davezies, D'Haultfoeuille and
    Guyonvarch, Ann. Statist. 49 (2021): resampling of two crossed roles.

    Examples
    --------
    >>> from classex_bayes.estimators.classexreg.classexreg import ClassExReg
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
    if hasattr(seedless, "progressbar"):
        seedless.progressbar = False

    if not task.table.is_plain:
        resampling = _groups(task)
    else:
        reads_scores = isinstance(fitted, ScoreReader)
        redraw = reweigh_test_classes if reads_scores else redraw_test_classes
        resampling = _test_classes(task, redraw) if task.table.is_exact else _bare_curve(task)
    # Resampled tasks are small: they hold ranks, or weights and a reference to the scores.
    cases = (
        (seedless, resampling.redraw(np.random.default_rng(class_seed)), fit_seed, point.k)
        for class_seed, fit_seed in (child.spawn(2) for child in seed.spawn(n_draws))
    )
    resampled = list(in_parallel(_prediction, cases, n_draws, n_jobs, "bootstrap", show))
    kept, left_out = _fitted_ones(resampled, point.estimator)
    with warnings.catch_warnings():
        # The prediction from the task itself has already warned.
        warnings.simplefilter("ignore", ExtrapolationWarning)
        draws = np.array(kept)
        draws = point.mean.to_numpy() + resampling.scale * (draws - draws.mean(axis=0))
        result = Extrapolation.from_draws(
            point.k,
            np.clip(draws, 0.0, 1.0)[None],
            point.estimator,
            "bootstrap",
            task.n_classes,
            estimand=point.estimand,
        )
    return replace(result, base_notes=(*point.notes, resampling.note, *left_out))


def _prediction(
    estimator: Estimator, resample: SourceTask, seed: np.random.SeedSequence, k: IntArray
) -> FloatArray | DataError:
    """Predicted accuracies of a copy fitted to a resample, or the error of that fit."""
    with warnings.catch_warnings():
        # The fit to the task itself, and the prediction from it, have already warned.
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ExtrapolationWarning)
        try:
            if isinstance(estimator, ScoreReader):
                fitted = estimator.reweighed(resample, seed)
            else:
                fitted = fitted_copy(estimator, resample, seed, progressbar=False)
            prediction = fitted.predict(k)
        except DataError as error:
            return error
    return prediction.accuracy.values.mean(axis=(0, 1))


def _fitted_ones(
    resampled: list[FloatArray | DataError], name: str
) -> tuple[list[FloatArray], tuple[str, ...]]:
    """Predictions from the resamples that could be fitted, and a note on the others."""
    kept = [prediction for prediction in resampled if not isinstance(prediction, DataError)]
    errors = [error for error in resampled if isinstance(error, DataError)]
    count = f"{len(errors)} of {len(resampled)} resamples"
    if 2 * len(errors) > len(resampled):
        raise DataError(f"estimator: {name} cannot be fitted to {count} ({errors[0]})")
    if not errors:
        return kept, ()
    return kept, (f"{count} are left out, because {name} cannot be fitted to them ({errors[0]})",)


class _Resampling(NamedTuple):
    """Way to resample a task."""

    redraw: Callable[[np.random.Generator], SourceTask]
    scale: float  # of the deviations from the mean
    note: str


def _test_classes(
    task: SourceTask, redraw: Callable[[SourceTask, np.random.Generator], SourceTask]
) -> _Resampling:
    evidence = task.require("exact ranks")
    k, n_tested = task.grid(), np.count_nonzero(evidence.class_weight)
    total = np.diag(task.accuracy_cov(k))
    accuracies = class_accuracies(evidence.n_better, task.y, task.n_classes, k)
    clustered = clustered_covariance(accuracies, evidence.class_weight)
    # Classes have equal weights in a resample.
    effect = float(weight_effect(evidence.class_weight))
    of_resamples = np.diag(clustered) * (n_tested - 1) / n_tested / effect
    # Equal accuracies differ by rounding errors, whose ratios are meaningless.
    varies = of_resamples > _ROUNDING
    note = f"bootstrap of {n_tested} test classes"
    if not varies.any():
        scale = 1.0
        note += " with equal accuracies"
    else:
        scale = float(np.sqrt(np.median(total[varies] / of_resamples[varies])))
        why = "shared competitors" if evidence.influence else "unknown competitors"
        why += ", and unequal weights" if effect > 1 else ""
        note += f", deviations scaled by {scale:.2f} for {why}"
    return _Resampling(
        lambda rng: redraw(task, rng),
        scale,
        f"{note}; the estimator's bias is left out",
    )


def _groups(task: SourceTask) -> _Resampling:
    """Draw groups with replacement; they keep their weights."""
    table = task.require("ranks")
    total, resampled = np.diag(task.accuracy_cov(task.grid())), table.variance.resampled_variance
    varies = resampled > _ROUNDING
    scale = float(np.sqrt(np.median(total[varies] / resampled[varies]))) if varies.any() else 1.0
    n_groups = np.unique(table.unit[table.weight > 0]).size
    n_tested = np.count_nonzero(table.class_weight)
    drawn = "test classes" if n_groups == n_tested else "groups of test classes"
    return _Resampling(
        lambda rng: SourceTask(redraw_groups(table, rng), task.classes),
        scale,
        f"bootstrap of {n_groups} {drawn}, deviations scaled by {scale:.2f} for shared "
        "competitors; the estimator's bias is left out",
    )


def _bare_curve(task: SourceTask) -> _Resampling:
    k = task.grid()
    accuracy, factor = task.accuracy(k), accuracy_factor(task, k)

    def redraw(rng: np.random.Generator) -> SourceTask:
        drawn = accuracy + factor @ rng.standard_normal(factor.shape[1])
        falling = isotonic_regression(np.clip(drawn, 0.0, 1.0), increasing=False).x
        return SourceTask.from_accuracies(
            k,
            falling,
            n_test=task.n_test,
            n_classes=task.n_classes,
            design_effect=task.design_effect(),
        )

    return _Resampling(
        redraw,
        1.0,
        "bootstrap of the given accuracies with normal errors; the estimator's bias is left out",
    )
