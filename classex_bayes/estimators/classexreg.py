"""ClassExReg: regression of average test accuracies on a radial basis of the discriminability."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from scipy.interpolate import make_interp_spline
from scipy.optimize import nnls
from scipy.special import ndtri

from classex_bayes.arguments import class_counts, number_at_one_k, one_of
from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.subsets import log_spaced
from classex_bayes.estimators.base import PointEstimator, note_outside, sizes_text
from classex_bayes.estimators.kde import positive_bandwidth
from classex_bayes.estimators.measured_curve import MeasuredCurve, measured_curve
from classex_bayes.estimators.resampling import halve
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed

Variant = Literal["package", "paper"]
# At the lower limit the basis has a thousand near-equal elements, at the upper limit only one.
_NARROWEST, _WIDEST = 0.01, 10.0
BANDWIDTHS = tuple(round(0.1 * step, 1) for step in range(1, 11))
# Resamples of the halves, and the share of them that makes a bandwidth plausible.
_REDRAWN, _PLAUSIBLE = 200, 0.02
# Numbers of classes at which the covariance of the accuracies is computed.
_COVARIANCE_SIZES = 60
# There is no note if predictions with other bandwidths differ by less.
_SMALLEST_RANGE = 0.02


class ClassExReg(PointEstimator):
    r"""Extrapolation by regression, with the choices of the R package or of the paper.

    The discriminability function is a sum of radial-basis CDFs with coefficients
    :math:`\beta_l`, so the accuracy is linear in them. Least squares on the average test
    accuracies of the source classes gives

    .. math::

        \widehat{AGA}_k = \sum_l \hat\beta_l A_l(k) + \hat\beta_0, \qquad
        \hat\beta = \arg\min_{\beta \ge 0} \sum_{k=2}^{k_1}
            \Big(ATA_k - \sum_l \beta_l A_l(k) - \beta_0\Big)^2

    with :math:`A_l(k) = E[\Phi(t_l + h \varepsilon)^{k-1}]`. The knots :math:`t_l` are
    :math:`\lceil T / h \rceil` equally spaced values from 0 to :math:`T = \Phi^{-1}(1 - 1/k_1^2)`
    and their negatives. The constant is the share of instances that no competitor ever beats. These
    are the choices of the R package ClassEx; `variant` has those of the paper.

    Parameters
    ----------
    bandwidth : float in 0.01..10, optional
        Bandwidth h of the basis. By default the value among 0.1, 0.2, ..., 1 that best
        extrapolates from random halves of the classes to all of them (`choose_bandwidth`). The
        choice needs ranks, at least 4 classes, and two numbers in `k` up to half of them.
    k : array-like of int, optional
        Numbers of classes to train on, at least two of 1..k1. The accuracy at k = 1 is 1, which
        pulls the sum of the coefficients towards 1. By default all of 2..k1; above 500 classes,
        log-spaced numbers with weights that represent all of them, which changes predictions by
        less than 5e-4. For a task without ranks, the default is the numbers at which its accuracy
        is known.
    variant : {"package", "paper"}
        "package" makes the choices of the R package, above. Halves are drawn without replacement.
        "paper" makes those of the text. The errors 1 - ATA_k are regressed on 1 - A_l(k) and a
        constant, which is the share of instances with U* = 0. Coefficients may be negative; of
        several solutions, that with the smallest norm is used. The basis is nearly collinear, so
        extrapolations are mostly noise. Knots are the finest equally spaced ones from -T to T that
        are at least h/2 apart, with :math:`T = \Phi^{-1}(1 - 1/(n k_1))` for n test instances.
        Halves are drawn with replacement.
    n_resamples : int
        Number of random halves of the classes that choose the bandwidth.
    random_seed : int, SeedSequence or None
        Seed of the halves.

    Attributes
    ----------
    bandwidth_ : float
        Bandwidth used.
    knots_ : array of shape (m,)
        Knots, increasing.
    coef_ : array of shape (m + 1,)
        Coefficients of the knots, then that of the constant.

    Notes
    -----
    The coefficients need not sum to 1, so predictions can exceed 1 at k far below k1. With
    ``variant="paper"`` they can also fall below 0. The result then has a note.

    The choice of the bandwidth is noisy for few classes. A note reports which bandwidths other
    halves may choose, and the range of the predictions with them. docs/estimators.md says why the
    choices of the paper predict worse than those of the package.

    References
    ----------
    Zheng, Achanta and Benjamini, JMLR 19(65), 2018, sections 3.3, 3.4 and 4 (basis).

    Examples
    --------
    >>> ranks = [1] * 14 + [2, 2, 3, 4, 6, 10]
    >>> task = SourceTask.from_ranks(ranks, np.arange(20), n_classes=20)
    >>> ClassExReg(bandwidth=0.5).fit(task).predict([20, 80]).mean.round(3).tolist()
    [0.7, 0.577]
    """

    def __init__(
        self,
        bandwidth: float | None = None,
        k: ClassCounts | None = None,
        variant: Variant = "package",
        n_resamples: int = 25,
        random_seed: RandomSeed = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.k = k
        self.variant = variant
        self.n_resamples = n_resamples
        self.random_seed = random_seed

    def _name_parts(self) -> list[str]:
        parts = [] if self.bandwidth is None else [f"{self.bandwidth}"]
        parts += [] if self.variant == "package" else [self.variant]
        return parts + ([] if self.k is None else [sizes_text(self.k)])

    def _fit(self, task: SourceTask) -> None:
        one_of(self.variant, ("package", "paper"), "variant")
        k = None
        if self.k is not None:
            k = class_counts(self.k, largest=task.n_classes, smallest=1)
        others: FloatArray = np.empty(0)
        if self.bandwidth is not None:
            bandwidth = positive_bandwidth(self.bandwidth, _NARROWEST, _WIDEST)
        else:
            replace = self.variant == "paper"
            halves = halve(task, self.n_resamples, self.random_seed, replace)
            bandwidth, others = choose_bandwidth(task, halves, k=k, variant=self.variant)

        self._task, self._training = task, measured_curve(task, k)
        self._regression = Regression.of(task, bandwidth, self.variant)
        self._plausible = [Regression.of(task, other, self.variant) for other in others.tolist()]
        self.bandwidth_, self.knots_ = bandwidth, self._regression.knots
        self.coef_ = self._regression.coefficients(self._training)

    def _curve(self, k: IntArray) -> FloatArray:
        return self._regression.accuracy(k, self.coef_)

    def _notes(self, k: IntArray, values: FloatArray) -> tuple[str, ...]:
        outside = note_outside(values, k, "the coefficients need not sum to 1")
        return outside + self._note_on_halves(k.max(keepdims=True))

    def _note_on_halves(self, farthest: IntArray) -> tuple[str, ...]:
        """Note on the predictions with the bandwidths that other halves may choose."""
        predicted = [
            self._answered * other.accuracy(farthest, other.coefficients(self._training))[0]
            for other in self._plausible
        ]
        if len(predicted) < 2 or max(predicted) - min(predicted) < _SMALLEST_RANGE:
            return ()
        narrow, wide = self._plausible[0].bandwidth, self._plausible[-1].bandwidth
        return (
            f"the bandwidth {self.bandwidth_:g} was chosen on random halves of the classes. With "
            f"other halves it may lie between {narrow:g} and {wide:g}, and the prediction on "
            f"{farthest[0]:,} classes between {min(predicted):.2f} and {max(predicted):.2f}",
        )

    @number_at_one_k
    def standard_error(self, k: ClassCounts) -> FloatArray:
        r"""Large-sample standard error (n_k,) of the expected accuracy on `k` classes.

        Let H be the design matrix of the training curve, W its weights and :math:`\Sigma` the
        covariance of its accuracies (`SourceTask.accuracy_cov`). The standard error at k is
        :math:`\sqrt{x_k' Cov(\hat\beta) x_k}`, with :math:`x_k` the row of the design at k and

        .. math:: Cov(\hat\beta) = (H'WH)^{-1} H'W \Sigma W H (H'WH)^{-1}.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes, at least 2.

        Notes
        -----
        The standard error is conditional on the bandwidth and, for nonnegative least squares, on
        the set of positive coefficients. It excludes their variation, the error of the model, and
        that of the share of unanswered instances. Use `classex_bayes.estimators.bootstrap` for a
        chosen bandwidth. Each call makes one more pass over the scores.

        References
        ----------
        Zheng, thesis (2017), Theorem 3.4.1.
        """
        coef, training = self._require("coef_"), self._training
        gain = self._regression.columns(class_counts(k)) @ self._regression.gain(training, coef)
        sizes, gain = training.k[training.k > 1], gain[:, training.k > 1]  # ATA_1 = 1 has no error
        if sizes.size > _COVARIANCE_SIZES and self._task.table.is_exact:
            # Errors of ATA_k change slowly with log k. `accuracy_cov` treats k1 as k1 - 1, which
            # would bend the spline: no node at k1.
            last = min(int(sizes.max()), self._task.n_classes - 1)
            nodes = log_spaced(int(sizes.min()), last, _COVARIANCE_SIZES)
            spline = make_interp_spline(np.log(nodes), np.eye(nodes.size))
            sizes, gain = nodes, gain @ spline(np.log(sizes))
        covariance = self._task.accuracy_cov(sizes)
        return self._answered * np.sqrt(np.maximum(((gain @ covariance) * gain).sum(axis=1), 0))


@dataclass(frozen=True)
class Regression:
    r"""Least squares of accuracies on the radial basis of a bandwidth.

    The accuracy is linear in the coefficients, :math:`ATA_k \approx \sum_l \beta_l A_l(k) +
    \beta_0`. The constant is an atom of the law of U*: instances with U* = 1 (the R package).
    In the regression of the errors :math:`1 - ATA_k` on :math:`1 - A_l(k)`, it is an atom of
    instances with U* = 0 (the paper).
    """

    n_classes: int
    n_test: int
    bandwidth: float
    variant: Variant = "package"

    @classmethod
    def of(cls, task: SourceTask, bandwidth: float, variant: Variant) -> "Regression":
        """Regression with the knots of all classes of a task."""
        return cls(task.n_classes, task.n_test, bandwidth, variant)

    @property
    def knots(self) -> FloatArray:
        r"""Knots (m,), increasing, from -T to T.

        R package: :math:`\lceil T / h \rceil` equally spaced values from 0 to :math:`T =
        \Phi^{-1}(1 - 1/k_1^2)` and their negatives; the spacing is larger than h. Paper (section
        4): the finest equally spaced values that are at least h/2 apart, with :math:`T =
        \Phi^{-1}(1 - 1/(n k_1))` for n instances. With r instances per class, n = r k1.
        """
        if self.variant == "package":
            largest = -ndtri(1 / self.n_classes**2)
            positive = np.linspace(0.0, largest, int(np.ceil(largest / self.bandwidth)))
            return np.concatenate([-positive[:0:-1], positive])
        largest = -ndtri(1 / (self.n_test * self.n_classes))
        spaces = max(1, int(np.floor(2 * largest / (self.bandwidth / 2))))
        return np.linspace(-largest, largest, spaces + 1)

    def columns(self, k: IntArray) -> FloatArray:
        """Columns (n_k, m + 1) of the regression; last, the constant. The array is read-only."""
        return basis_columns(self, tuple(k.tolist()))

    def response(self, accuracy: FloatArray) -> FloatArray:
        """Accuracy for the R package, else 1 - accuracy. A second call is the inverse."""
        return accuracy if self.variant == "package" else 1 - accuracy

    def coefficients(self, curve: MeasuredCurve) -> FloatArray:
        """Coefficients (m + 1,) with the least weighted sum of squares; R's are nonnegative."""
        scale = np.sqrt(curve.weight)
        columns, values = self.columns(curve.k) * scale[:, None], self.response(curve.accuracy)
        if self.variant == "package":
            return nnls(columns, values * scale)[0]
        return np.linalg.lstsq(columns, values * scale)[0]

    def accuracy(self, k: IntArray, coef: FloatArray) -> FloatArray:
        """Accuracy (n_k,) on `k` classes."""
        return self.response(self.columns(k) @ coef)

    def gain(self, curve: MeasuredCurve, coef: FloatArray) -> FloatArray:
        r"""Linear map (m + 1, n_k) from the response to the coefficients near `coef`.

        :math:`G = (H'WH)^{-1} H'W`, with H the active columns. In nonnegative least squares, these
        have positive coefficients. The pseudoinverse drops the same near-collinear directions as
        `coefficients`. Rows of inactive columns are 0.
        """
        columns, scale = self.columns(curve.k), np.sqrt(curve.weight)
        active = (coef > 0) | (self.variant == "paper")
        gain = np.zeros(columns.T.shape)
        smallest = np.finfo(float).eps * max(columns.shape)
        gain[active] = np.linalg.pinv(columns[:, active] * scale[:, None], rcond=smallest) * scale
        return gain


# Resampling and back-tests need the same few matrices hundreds of times.
@lru_cache(maxsize=64)
def basis_columns(regression: Regression, k: tuple[int, ...]) -> FloatArray:
    """Columns of `Regression.columns`, read-only and kept for the next call."""
    accuracy = RadialBasis(regression.knots, regression.bandwidth).accuracy(np.array(k))
    columns = np.column_stack([regression.response(accuracy), np.ones(len(k))])
    columns.flags.writeable = False
    return columns


# The choice of the bandwidth


class ChosenBandwidth(NamedTuple):
    """Bandwidth that the halves choose, and bandwidths that other random halves may choose.

    Halves are random and independent. A bootstrap of the halves therefore shows how other halves
    would choose. `plausible` are the bandwidths chosen by at least 2% of the resamples.
    """

    value: float
    plausible: FloatArray


def choose_bandwidth(
    task: SourceTask,
    halves: Iterable[SourceTask],
    k: IntArray | None = None,
    variant: Variant = "package",
) -> ChosenBandwidth:
    """Bandwidth with the smallest error when the halves predict the accuracy on all classes.

    The error is the root mean square over halves; of equal errors, the first bandwidth is chosen.
    Zheng, Achanta and Benjamini, JMLR 19(65), 2018, section 3.4. Arguments are those of
    `extrapolate_halves`.
    """
    predicted = extrapolate_halves(task, halves, k, variant)
    squared_error = (predicted - task.accuracy(task.grid()[-1])) ** 2
    best = int(np.argmin(squared_error.mean(axis=0)))
    n_halves = len(squared_error)
    # With a fixed seed the same halves give the same note.
    times = np.random.default_rng(0).multinomial(n_halves, np.ones(n_halves) / n_halves, _REDRAWN)
    chosen = np.argmin(times @ squared_error, axis=1)
    share = np.bincount(chosen, minlength=len(BANDWIDTHS)) / _REDRAWN
    return ChosenBandwidth(BANDWIDTHS[best], np.array(BANDWIDTHS)[share >= _PLAUSIBLE])


def extrapolate_halves(
    task: SourceTask,
    halves: Iterable[SourceTask],
    k: IntArray | None = None,
    variant: Variant = "package",
) -> FloatArray:
    """Accuracy (n_halves, n_bandwidths) on all classes, predicted by each half.

    The knots are those of all classes, as in the R package and in the paper. With unequal
    probabilities of the classes, the number of all classes is the effective one. `k` and `variant`
    are those of `ClassExReg`. A half uses the k up to its number of classes.
    """
    regressions = [Regression.of(task, bandwidth, variant) for bandwidth in BANDWIDTHS]
    predicted = []
    for half in halves:
        if k is not None and np.count_nonzero(k <= half.n_classes) < 2:
            raise DataError(
                f"k: found {np.count_nonzero(k <= half.n_classes)} numbers of classes up to "
                f"{half.n_classes}, expected at least 2, because the choice of the bandwidth "
                "trains on a part of the classes; pass more numbers, or bandwidth="
            )
        curve = measured_curve(half, k)
        predicted.append(
            [fit.accuracy(task.grid()[-1:], fit.coefficients(curve))[0] for fit in regressions]
        )
    return np.array(predicted)
