"""ClassExReg: regression of average test accuracies on a radial basis of the discriminability."""

import numpy as np

from classex_bayes.arguments import class_counts, one_of
from classex_bayes.core.basis import RadialBasis
from classex_bayes.estimators.base import PointEstimator, note_outside, sizes_text
from classex_bayes.estimators.classexreg.basis_regression import (
    Variant,
    basis_accuracy,
    design,
    knots_of,
    least_squares,
    response,
    response_map,
)
from classex_bayes.estimators.classexreg.halves import choose_bandwidth, halve
from classex_bayes.estimators.kde.bandwidth import positive_bandwidth
from classex_bayes.estimators.training_curve import (
    TrainingCurve,
    accuracy_factor,
    training_curve,
)
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed

# At the lower limit the basis has a thousand near-equal elements, at the upper limit only one.
_NARROWEST, _WIDEST = 0.01, 10.0
# There is no note if predictions with other bandwidths differ by less.
_SMALLEST_RANGE = 0.02


class ClassExReg(PointEstimator):
    r"""Extrapolation by regression (jmlr2018), with the choices of the R package or of the paper.

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
        extrapolates from random halves of the classes to all of them
        (`classex_bayes.estimators.classexreg.halves`).
    k : array-like of int, optional
        Numbers of classes to train on, 1..k1. The accuracy at k = 1 is 1, which pulls the sum of
        the coefficients towards 1. By default all of 2..k1; above 500 classes, log-spaced numbers
        with weights that represent all of them, which changes predictions by less than 5e-4. For a
        task without ranks, the default is the numbers at which its accuracy is known.
    variant : {"package", "paper"}
        "package" makes the choices of the R package, above. Halves are drawn without replacement.
        "paper" makes those of the text. The errors 1 - ATA_k are regressed on 1 - A_l(k) and a
        constant, which is the share of instances that always lose. Coefficients may be negative; of
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
    coef_cov_ : array of shape (m + 1, m + 1)
        Large-sample covariance of `coef_`, computed on first access.

    Raises
    ------
    DataError
        From `fit`: a parameter is out of range; there are fewer than 2 numbers of classes to train
        on; or the bandwidth is to be chosen, but the task has no ranks, has only 3 classes, or
        fewer than 2 numbers in `k` are within half of the classes.

    Notes
    -----
    The coefficients need not sum to 1, so predictions can exceed 1 at k far below k1. With
    ``variant="paper"`` they can also fall below 0. The result then has a note.

    The choice of the bandwidth is noisy for few classes. A note reports which bandwidths other
    halves may choose, and the range of the predictions with them. docs/estimators.md shows how far
    they differ, and why the choices of the paper predict worse than those of the package.

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
        plausible: FloatArray = np.empty(0)
        if self.bandwidth is not None:
            bandwidth = positive_bandwidth(self.bandwidth, _NARROWEST, _WIDEST)
        else:
            replace = self.variant == "paper"
            halves = halve(task, self.n_resamples, self.random_seed, replace)
            bandwidth, plausible = choose_bandwidth(task, halves, k=k, variant=self.variant)

        self._task, self._training, self._variant = task, training_curve(task, k), self.variant
        self.bandwidth_ = bandwidth
        self.knots_, self.coef_ = self._regression(bandwidth)
        self._plausible = plausible
        self._coef_factor: FloatArray | None = None

    def _regression(self, bandwidth: float) -> tuple[FloatArray, FloatArray]:
        """Knots and coefficients for a bandwidth."""
        task, curve = self._task, self._training
        knots = knots_of(task.n_classes, task.n_test, bandwidth, self._variant)
        columns = _design(knots, curve, bandwidth, self._variant)
        values = response(curve.accuracy, self._variant)
        return knots, least_squares(columns, values, curve.weight, self._variant == "package")

    def _curve(self, k: IntArray) -> FloatArray:
        return self._predicted(k, self.bandwidth_, self.knots_, self.coef_)

    def _predicted(
        self, k: IntArray, bandwidth: float, knots: FloatArray, coef: FloatArray
    ) -> FloatArray:
        columns = design(RadialBasis(knots, bandwidth).accuracy(k), self._variant)
        return response(columns @ coef, self._variant)

    def _notes(self, k: IntArray, values: FloatArray) -> tuple[str, ...]:
        outside = note_outside(values, k, "the coefficients need not sum to 1")
        return outside + self._note_on_halves(k.max(keepdims=True))

    def _note_on_halves(self, farthest: IntArray) -> tuple[str, ...]:
        """Note on the predictions with the bandwidths that other halves may choose."""
        if self._plausible.size < 2:
            return ()
        others = [self._predicted(farthest, h, *self._regression(h))[0] for h in self._plausible]
        low, high = min(others), max(others)
        if high - low < _SMALLEST_RANGE:
            return ()
        narrow, wide = self._plausible[[0, -1]]
        return (
            f"the bandwidth {self.bandwidth_:g} was chosen on random halves of the classes. With "
            f"other halves it may lie between {narrow:g} and {wide:g}, and the prediction on "
            f"{farthest[0]:,} classes between {low:.2f} and {high:.2f}",
        )

    @property
    def coef_cov_(self) -> FloatArray:
        """Large-sample covariance of the coefficients, shape (m, m); see `standard_error`."""
        factor = self._factor()
        return factor @ factor.T

    def standard_error(self, k: ClassCounts) -> FloatArray:
        r"""Large-sample standard error of the expected accuracy on `k` classes.

        Let H be the design matrix of the training curve, W its weights and :math:`\Sigma` the
        covariance of its accuracies (`SourceTask.accuracy_cov`). The standard error at k is
        :math:`\sqrt{x_k' Cov(\hat\beta) x_k}`, with :math:`x_k` the row of the design at k and

        .. math:: Cov(\hat\beta) = (H'WH)^{-1} H'W \Sigma W H (H'WH)^{-1}.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes, at least 2.

        Returns
        -------
        array of shape (n_k,)

        Raises
        ------
        NotFittedError
            `fit` was not called.
        DataError
            `k` is not a whole number of at least 2, or an array of them.

        Notes
        -----
        The standard error is conditional on the bandwidth and, for nonnegative least squares, on
        the set of positive coefficients. It excludes their variation and the error of the model.
        At 2 to 10 times 100 and 500 Gaussian classes, the standard deviation of predictions was 0.7
        to 1.05 times the standard error with a fixed bandwidth, and 1.1 to 1.35 times with a chosen
        bandwidth. Use `classex_bayes.estimators.bootstrap.bootstrap` for a chosen bandwidth. The
        first call makes one more pass over the scores.

        References
        ----------
        Zheng, thesis (2017), Theorem 3.4.1.
        """
        factor = self._factor()
        accuracy = RadialBasis(self.knots_, self.bandwidth_).accuracy(class_counts(k))
        return np.linalg.norm(design(accuracy, self._variant) @ factor, axis=1)

    def _factor(self) -> FloatArray:
        """Factor F of the covariance F F' of the coefficients."""
        self._require("coef_")
        if self._coef_factor is None:
            columns = _design(self.knots_, self._training, self.bandwidth_, self._variant)
            active = (
                self.coef_ > 0 if self._variant == "package" else np.full(self.coef_.size, True)
            )
            gain = response_map(columns, self._training.weight, active)
            self._coef_factor = gain @ accuracy_factor(self._task, self._training.k)
        return self._coef_factor


def _design(
    knots: FloatArray, curve: TrainingCurve, bandwidth: float, variant: Variant
) -> FloatArray:
    accuracy = basis_accuracy(tuple(knots.tolist()), bandwidth, tuple(curve.k.tolist()))
    return design(accuracy, variant)
