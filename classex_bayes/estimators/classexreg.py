"""ClassExReg: regression of average test accuracies on a radial basis of the discriminability."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, Self

import numpy as np
from scipy.optimize import nnls
from scipy.special import ndtri

from classex_bayes.core.basis import RadialBasis
from classex_bayes.data.task import SourceTask
from classex_bayes.data.validation import (
    FEWEST_CLASSES,
    class_counts,
    one_of,
    seed_sequence,
    source_task,
)
from classex_bayes.estimators.bandwidth import fixed
from classex_bayes.estimators.base import Parameters
from classex_bayes.estimators.training import training_curve
from classex_bayes.exceptions import DataError
from classex_bayes.results import Extrapolation
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed

Atom = Literal[0, 1] | None
BANDWIDTHS = tuple(round(0.1 * step, 1) for step in range(1, 11))
# Outside these limits the basis has a thousand near-equal elements, or one.
_NARROWEST, _WIDEST = 0.01, 10.0
_ROUNDING = 1e-9


class ClassExReg(Parameters):
    r"""Extrapolation by regression (jmlr2018), with the choices of the R package ClassEx.

    The discriminability function is a sum of radial-basis CDFs with coefficients
    :math:`\beta_l`, so the accuracy is linear in them and least squares on the average test
    accuracies of the source classes gives

    .. math::

        \widehat{AGA}_k = \sum_l \hat\beta_l A_l(k) + \hat\beta_0, \qquad
        \hat\beta = \arg\min_{\beta \ge 0} \sum_{k=2}^{k_1}
            \Big(ATA_k - \sum_l \beta_l A_l(k) - \beta_0\Big)^2

    with :math:`A_l(k) = E[\Phi(t_l + h \varepsilon)^{k-1}]`. The knots :math:`t_l` are
    :math:`\lceil T / h \rceil` equally spaced values from 0 to :math:`T = \Phi^{-1}(1 - 1/k_1^2)`
    and their negatives.

    Parameters
    ----------
    bandwidth : float in 0.01..10, optional
        Bandwidth h of the basis. By default one of 0.1, 0.2, ..., 1: the one that best
        extrapolates from random halves of the classes to all of them (`choose_bandwidth`).
    k : array-like of int, optional
        Numbers of classes to train on, 1..k1; k = 1, where the accuracy is 1, softly pulls the
        sum of the coefficients to 1. By default 2..k1, or the known ones of a bare curve; for
        more than 2000 classes fewer, log-spaced numbers, weighted to stand for all of 2..k1.
    nonnegative : bool
        Nonnegative least squares, as in the R package, or unconstrained, as in the paper: then
        the basis is nearly collinear and extrapolations are mostly noise. The bandwidth is
        always chosen by nonnegative least squares.
    atom : {1, 0, None}
        1: a constant element beside the basis, instances that no competitor ever beats
        (favorability 1; the R package). 0: the regression of the errors 1 - ATA_k on 1 - A_l(k)
        and a constant, instances that always lose (favorability 0; the paper with an intercept).
        None: the same without the constant (the paper's equation as printed).
    n_resamples : int
        Random halves of the classes, drawn without replacement, to choose the bandwidth with.
    random_seed : int, SeedSequence or None
        Seed of the halves.

    Attributes
    ----------
    bandwidth_ : float
        Bandwidth used.
    knots_ : array of shape (m,)
        Knots, increasing.
    coef_ : array of shape (m + 1,), or (m,) with ``atom=None``
        Coefficients of the knots, then that of the constant.

    Notes
    -----
    Nothing makes the coefficients sum to 1, so predictions can leave [0, 1]: with ``atom=1`` they
    can exceed 1 at k far below k1, with the others fall below 0 far beyond k1, unconstrained
    both. The result then has a note.

    The choice of bandwidth is noisy for few classes: on the same 100 classes it was 0.2 to 1 over
    seeds, and the predictions at four times as many had a standard deviation of 0.017.

    References
    ----------
    Zheng, Achanta and Benjamini, JMLR 19(65), 2018, sections 3.3 and 3.4. The R package resamples
    without replacement and constrains the coefficients, unlike the text.

    Examples
    --------
    >>> losses = [0] * 14 + [1, 1, 2, 3, 5, 9]
    >>> task = SourceTask.from_losses(losses, np.arange(20), n_classes=20)
    >>> ClassExReg(bandwidth=0.5).fit(task).predict([20, 80]).mean.round(3).tolist()
    [0.7, 0.577]
    """

    def __init__(
        self,
        bandwidth: float | None = None,
        k: ClassCounts | None = None,
        nonnegative: bool = True,
        atom: Atom = 1,
        n_resamples: int = 25,
        random_seed: RandomSeed = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.k = k
        self.nonnegative = nonnegative
        self.atom = atom
        self.n_resamples = n_resamples
        self.random_seed = random_seed

    def fit(self, task: SourceTask) -> Self:
        """Choose the bandwidth if none was given, then fit the coefficients.

        Parameters
        ----------
        task : SourceTask
            Made in any way; one made from accuracies alone needs ``bandwidth``.

        Returns
        -------
        ClassExReg
            Itself.

        Raises
        ------
        DataError
            A parameter out of range; fewer than 2 numbers of classes to train on; a bandwidth to
            be chosen from a bare curve, from 3 classes, or with fewer than 2 members of `k` among
            half of the classes.
        """
        source_task(task)
        one_of(self.atom, (0, 1, None), "atom")
        k = None
        if self.k is not None:
            k = class_counts(self.k, largest=task.n_classes, smallest=1)
        if self.bandwidth is None:
            halves = random_halves(task, self.n_resamples, self.random_seed)
            bandwidth = choose_bandwidth(task, halves, k=k, atom=self.atom)
        else:
            bandwidth = fixed(self.bandwidth, _NARROWEST, _WIDEST)

        curve = training_curve(task, k)
        accuracy = _basis_accuracy(task.n_classes, bandwidth, tuple(curve.k.tolist()))
        coef = _regress(
            _design(accuracy, self.atom),
            _response(curve.accuracy, self.atom),
            curve.weight,
            self.nonnegative,
        )
        self.bandwidth_, self.knots_ = bandwidth, _knots(task.n_classes, bandwidth)
        self.coef_, self._atom, self._n_classes = coef, self.atom, task.n_classes
        return self

    def predict(self, k: ClassCounts) -> Extrapolation:
        """Expected accuracy on `k` classes.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes, at least 2.

        Returns
        -------
        Extrapolation
            Point estimate; a note tells where it leaves [0, 1].

        Raises
        ------
        NotFittedError
            `fit` was not called.
        """
        coef = self._require("coef_")
        counts = class_counts(k)
        accuracy = RadialBasis(self.knots_, self.bandwidth_).accuracy(counts)
        values = _response(_design(accuracy, self._atom) @ coef, self._atom)
        outside = (values < -_ROUNDING) | (values > 1 + _ROUNDING)
        notes: tuple[str, ...] = ()
        if outside.any():
            places = ", ".join(map(str, counts[outside]))
            notes = (f"outside [0, 1] at k = {places}: the coefficients need not sum to 1",)
        return Extrapolation.from_point(counts, values, self.name, self._n_classes, notes)


def random_halves(
    task: SourceTask, number: int, random_seed: RandomSeed = None
) -> Iterator[SourceTask]:
    """Tasks on random halves of the classes, drawn without replacement.

    Parameters
    ----------
    task : SourceTask
        Made from scores, embeddings or losses, with at least 4 classes.
    number : int
        How many.
    random_seed : int, SeedSequence or None
        Seed of the draws.

    Returns
    -------
    iterator of SourceTask
        Each with half of the classes, rounded down but at least 3. A half without two tested
        classes is drawn again.

    Raises
    ------
    DataError
        A bare accuracy curve, fewer than 4 classes, or `number` below 1.

    Examples
    --------
    >>> task = SourceTask.from_losses([0, 0, 1, 0, 2, 0, 0, 1], np.arange(8), n_classes=8)
    >>> [half.n_classes for half in random_halves(task, 3, 1)]
    [4, 4, 4]
    """
    whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    if not (whole and number >= 1):
        raise DataError(f"n_resamples: found {number!r}, expected a whole number >= 1")
    if task.kind == "accuracies":
        raise DataError(
            "bandwidth: choosing it needs losses, and the task was made from accuracies alone; "
            "pass bandwidth="
        )
    size = max(FEWEST_CLASSES, task.n_classes // 2)
    if size == task.n_classes:
        raise DataError(
            f"bandwidth: choosing it needs at least {size + 1} classes, found {size}; "
            "pass bandwidth="
        )
    rng = np.random.default_rng(seed_sequence(random_seed))

    def draw() -> SourceTask:
        while True:
            kept = np.sort(rng.choice(task.n_classes, size, replace=False))
            if np.count_nonzero(task.class_weight[kept]) >= 2:
                return task.select(kept, rng)

    return (draw() for _ in range(number))


def choose_bandwidth(
    task: SourceTask,
    halves: Iterable[SourceTask],
    bandwidths: Sequence[float] = BANDWIDTHS,
    k: IntArray | None = None,
    atom: Atom = 1,
) -> float:
    """Bandwidth with the smallest root mean square error from the halves to all the classes.

    Parameters
    ----------
    task : SourceTask
        All source classes; its accuracy is the truth to predict.
    halves : iterable of SourceTask
        Tasks on some of the classes (`random_halves`).
    bandwidths : sequence of float
        Candidates; the first wins where several are equally good.
    k : int array, optional
        As in `ClassExReg`; a half trains on those of them that it has.
    atom : {1, 0, None}
        As in `ClassExReg`.

    Returns
    -------
    float

    Raises
    ------
    DataError
        Fewer than 2 of the numbers in `k` are left for a half.

    References
    ----------
    Zheng, Achanta and Benjamini, JMLR 19(65), 2018, section 3.4.

    Examples
    --------
    >>> task = SourceTask.from_losses([0, 0, 1, 0, 2, 0, 0, 1], np.arange(8), n_classes=8)
    >>> choose_bandwidth(task, random_halves(task, 10, 1)) in BANDWIDTHS
    True
    """
    predicted = extrapolate_halves(task, halves, bandwidths, k, atom)
    squared_error = (predicted - task.accuracy(task.n_classes)) ** 2
    return float(bandwidths[int(np.argmin(squared_error.mean(axis=0)))])


def extrapolate_halves(
    task: SourceTask,
    halves: Iterable[SourceTask],
    bandwidths: Sequence[float] = BANDWIDTHS,
    k: IntArray | None = None,
    atom: Atom = 1,
) -> FloatArray:
    """Accuracy on all classes that each half predicts with each bandwidth.

    The knots are those of all the classes, as in the R package.

    Parameters
    ----------
    task, halves, bandwidths, k, atom
        As in `choose_bandwidth`.

    Returns
    -------
    array of shape (n_halves, n_bandwidths)

    Raises
    ------
    DataError
        Fewer than 2 of the numbers in `k` are left for a half.
    """
    predicted = []
    for half in halves:
        curve = training_curve(half, k)
        response = _response(curve.accuracy, atom)
        with_target = (*curve.k.tolist(), task.n_classes)
        row = []
        for bandwidth in bandwidths:
            design = _design(_basis_accuracy(task.n_classes, bandwidth, with_target), atom)
            coef = _regress(design[:-1], response, curve.weight, nonnegative=True)
            row.append(_response(design[-1] @ coef, atom))
        predicted.append(row)
    return np.array(predicted)


def _knots(n_classes: int, bandwidth: float) -> FloatArray:
    largest = -ndtri(1 / n_classes**2)
    positive = np.linspace(0.0, largest, int(np.ceil(largest / bandwidth)))
    return np.concatenate([-positive[:0:-1], positive])


# Resampling and back-tests come back to the same few matrices hundreds of times.
@lru_cache(maxsize=32)
def _basis_accuracy(n_classes: int, bandwidth: float, k: tuple[int, ...]) -> FloatArray:
    """Accuracy matrix (n_k, m) of the basis for k1 classes; read-only, as it is shared."""
    accuracy = RadialBasis(_knots(n_classes, bandwidth), bandwidth).accuracy(np.array(k))
    accuracy.flags.writeable = False
    return accuracy


def _response(accuracy: FloatArray, atom: Atom) -> FloatArray:
    """What is regressed, accuracy or error, and the way back from it."""
    return accuracy if atom == 1 else 1 - accuracy


def _design(accuracy: FloatArray, atom: Atom) -> FloatArray:
    """Columns of the regression from those of the accuracy matrix."""
    columns = _response(accuracy, atom)
    if atom is None:
        return columns
    return np.column_stack([columns, np.ones(columns.shape[0])])


def _regress(
    design: FloatArray, response: FloatArray, weight: FloatArray, nonnegative: bool
) -> FloatArray:
    scale = np.sqrt(weight)
    if nonnegative:
        return nnls(design * scale[:, None], response * scale)[0]
    return np.linalg.lstsq(design * scale[:, None], response * scale)[0]
