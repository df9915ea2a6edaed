"""The bandwidth of ClassExReg: the one that best extrapolates from halves of the classes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from classex_bayes.arguments import how_many, seed_sequence
from classex_bayes.estimators.classexreg.basis_regression import (
    Variant,
    basis_accuracy,
    design,
    knots_of,
    least_squares,
    response,
)
from classex_bayes.estimators.resampling import subtasks
from classex_bayes.estimators.training_curve import training_curve
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import FEWEST_CLASSES
from classex_bayes.typing import FloatArray, IntArray, RandomSeed

BANDWIDTHS = tuple(round(0.1 * step, 1) for step in range(1, 11))
_REDRAWN, _PLAUSIBLE = 200, 0.02


class ChosenBandwidth(NamedTuple):
    """Bandwidth that the halves choose, and bandwidths that other random halves may choose.

    Halves are random and independent. A bootstrap of the halves therefore shows how other halves
    would choose. `plausible` are the bandwidths chosen by at least 2% of the resamples.
    """

    value: float
    plausible: FloatArray


def halve(
    task: SourceTask,
    n_resamples: int = 25,
    random_seed: RandomSeed = None,
    replace: bool = False,
) -> list[SourceTask]:
    """`n_resamples` tasks on random halves of the classes, with ranks only.

    A half has half of the classes, rounded down, but at least 3. It is drawn again if fewer than
    two of its classes were tested. With `replace`, classes may be drawn several times
    (`classex_bayes.estimators.resampling.subtasks`). Classes that were sampled in groups stay in
    their groups. If scores are unknown, the seed also thins the ranks.
    """
    n_halves = how_many(n_resamples, "n_resamples")
    if not task.table.is_plain:
        seeds = seed_sequence(random_seed).spawn(n_halves)
        return [task.subsample(_half(task), seed) for seed in seeds]
    evidence = task.require("exact ranks")
    rng = np.random.default_rng(seed_sequence(random_seed))
    halves = _random_halves(task, evidence.class_weight, n_halves, replace, rng)
    return subtasks(task, halves, rng)


def _half(task: SourceTask) -> int:
    return max(FEWEST_CLASSES, task.n_classes // 2)


def _random_halves(
    task: SourceTask,
    class_weight: FloatArray,
    n_halves: int,
    replace: bool,
    rng: np.random.Generator,
) -> Iterator[IntArray]:
    size = _half(task)
    if size == task.n_classes:
        raise DataError(
            f"bandwidth: its choice needs at least {size + 1} classes, found {size}; "
            "pass bandwidth="
        )
    for _ in range(n_halves):
        kept = np.empty(0, dtype=np.int64)
        while np.count_nonzero(class_weight[np.unique(kept)]) < 2:
            kept = np.sort(rng.choice(task.n_classes, size, replace=replace))
        yield kept


def choose_bandwidth(
    task: SourceTask,
    halves: Iterable[SourceTask],
    bandwidths: Sequence[float] = BANDWIDTHS,
    k: IntArray | None = None,
    variant: Variant = "package",
) -> ChosenBandwidth:
    """Bandwidth with the smallest error when the halves predict the accuracy on all classes.

    The error is the root mean square over halves; of equal errors, the first bandwidth is chosen.
    Zheng, Achanta and Benjamini, JMLR 19(65), 2018, section 3.4. Arguments are those of
    `extrapolate_halves`.
    """
    predicted = extrapolate_halves(task, halves, bandwidths, k, variant)
    squared_error = (predicted - task.accuracy(_all_classes(task))) ** 2
    best = int(np.argmin(squared_error.mean(axis=0)))
    n_halves = len(squared_error)
    # With a fixed seed the same halves give the same note.
    times = np.random.default_rng(0).multinomial(n_halves, np.ones(n_halves) / n_halves, _REDRAWN)
    chosen = np.argmin(times @ squared_error, axis=1)
    share = np.bincount(chosen, minlength=len(bandwidths)) / _REDRAWN
    return ChosenBandwidth(float(bandwidths[best]), np.array(bandwidths)[share >= _PLAUSIBLE])


def extrapolate_halves(
    task: SourceTask,
    halves: Iterable[SourceTask],
    bandwidths: Sequence[float] = BANDWIDTHS,
    k: IntArray | None = None,
    variant: Variant = "package",
) -> FloatArray:
    """Accuracy (n_halves, n_bandwidths) on all classes, predicted by each half.

    The knots are those of all classes, as in the R package and in the paper. `k` and `variant` are
    those of `ClassExReg`. A half uses the k up to its number of classes.
    """
    knots = {
        bandwidth: tuple(knots_of(task.n_classes, task.n_test, bandwidth, variant).tolist())
        for bandwidth in bandwidths
    }
    predicted = []
    for half in halves:
        if k is not None and np.count_nonzero(k <= half.n_classes) < 2:
            raise DataError(
                f"k: found {np.count_nonzero(k <= half.n_classes)} numbers of classes up to "
                f"{half.n_classes}, expected at least 2, because the choice of the bandwidth "
                "trains on a part of the classes; pass more numbers, or bandwidth="
            )
        curve = training_curve(half, k)
        target = response(curve.accuracy, variant)
        with_all = (*curve.k.tolist(), _all_classes(task))
        row = []
        for bandwidth, places in knots.items():
            columns = design(basis_accuracy(places, bandwidth, with_all), variant)
            coef = least_squares(columns[:-1], target, curve.weight, variant == "package")
            row.append(response(columns[-1] @ coef, variant))
        predicted.append(row)
    return np.array(predicted)


def _all_classes(task: SourceTask) -> int:
    """Number of all classes; if their probabilities are unequal, the effective number."""
    return int(task.grid()[-1])
