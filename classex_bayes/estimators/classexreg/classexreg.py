"""ClassExReg: regression of average test accuracies on a radial basis of the discriminability."""

from typing import Any, Self

import numpy as np

from classex_bayes.arguments import class_counts, one_of, truth_value
from classex_bayes.core.basis import RadialBasis
from classex_bayes.estimators.base import PointEstimator, note_outside, sizes_text
from classex_bayes.estimators.classexreg.basis_regression import (
    Atom,
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
    training_weights,
)
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed

# Outside these limits the basis has a thousand near-equal elements, or one.
_NARROWEST, _WIDEST = 0.01, 10.0
# Predictions with other bandwidths that differ by less are not worth a note.
_SMALLEST_RANGE = 0.02


class ClassExReg(PointEstimator):
    r"""Extrapolation by regression (jmlr2018), with the choices of the R package or the paper's.

    The discriminability function is a sum of radial-basis CDFs with coefficients
    :math:`\beta_l`, so the accuracy is linear in them and least squares on the average test
    accuracies of the source classes gives

    .. math::

        \widehat{AGA}_k = \sum_l \hat\beta_l A_l(k) + \hat\beta_0, \qquad
        \hat\beta = \arg\min_{\beta \ge 0} \sum_{k=2}^{k_1} w_k
            \Big(ATA_k - \sum_l \beta_l A_l(k) - \beta_0\Big)^2

    with :math:`A_l(k) = E[\Phi(t_l + h \varepsilon)^{k-1}]`. The knots :math:`t_l` are
    :math:`\lceil T / h \rceil` equally spaced values from 0 to :math:`T = \Phi^{-1}(1 - 1/k_1^2)`
    and their negatives. These are the choices of the R package ClassEx; `as_printed` makes those
    of the paper.

    Parameters
    ----------
    bandwidth : float in 0.01..10, optional
        Bandwidth h of the basis. By default one of 0.1, 0.2, ..., 1: the one that best
        extrapolates from random halves of the classes to all of them
        (`classex_bayes.estimators.classexreg.halves`).
    k : array-like of int, optional
        Numbers of classes to train on, 1..k1; k = 1, where the accuracy is 1, softly pulls the
        sum of the coefficients to 1. By default 2..k1, or the known ones of a bare curve; for
        more than 500 classes fewer, log-spaced numbers, weighted to stand for all of 2..k1,
        which changes predictions by less than 5e-4.
    nonnegative : bool
        Nonnegative least squares, as in the R package, or unconstrained, as in the paper: then
        the basis is nearly collinear, the coefficients are those of the smallest norm, and
        extrapolations are mostly noise.
    atom : {1, 0, None}
        1: a constant element beside the basis, instances that no competitor ever beats
        (favorability 1; the R package). 0: the regression of the errors 1 - ATA_k on 1 - A_l(k)
        and a constant, instances that always lose (favorability 0; the paper with an intercept).
        None: the same without the constant (the paper's equation as printed).
    n_resamples : int
        Random halves of the classes to choose the bandwidth with.
    random_seed : int, SeedSequence or None
        Seed of the halves.
    weights : array-like, optional
        Weights w_k in the sum of squares, positive: one for each number in `k`, by default for
        each of 2..k1 (or each known one of a bare curve). Equal by default. Halves take those of
        their numbers of classes.
    subsets : int array-like of shape (n_resamples, k0), optional
        Positions of classes to choose the bandwidth with, in place of random halves. Those of a
        row differ, unless ``variant="paper"``.
    variant : {"package", "paper"}
        Knots and halves. "package": the knots above; halves drawn without replacement and always
        extrapolated by nonnegative least squares. "paper": the finest equally spaced knots from
        -T to T, :math:`T = \Phi^{-1}(1 - 1/(n k_1))` for n test instances (r k1 with r a class),
        that are at least h/2 apart; halves drawn with replacement and extrapolated as
        `nonnegative` says.

    Attributes
    ----------
    bandwidth_ : float
        Bandwidth used.
    knots_ : array of shape (m,)
        Knots, increasing.
    coef_ : array of shape (m + 1,), or (m,) with ``atom=None``
        Coefficients of the knots, then that of the constant.
    coef_cov_ : array of shape (m + 1, m + 1), or (m, m) with ``atom=None``
        Their large-sample covariance; computed when asked for.

    Raises
    ------
    DataError
        From `fit`: a parameter out of range; fewer than 2 numbers of classes to train on; a
        bandwidth to be chosen from a bare curve, from 3 classes, or with fewer than 2 members of
        `k` among half of the classes; `subsets` or `weights` of another form.

    Notes
    -----
    Nothing makes the coefficients sum to 1, so predictions can leave [0, 1]: with ``atom=1`` they
    can exceed 1 at k far below k1, with the others fall below 0 far beyond k1, unconstrained
    both. The result then has a note.

    The choice of bandwidth is noisy for few classes: on the same 100 classes it was 0.2 to 1 over
    seeds, and the predictions at four times as many had a standard deviation of 0.017. A note
    says which bandwidths other halves may choose and between which limits the predictions then
    lie; on 10 pilots of 60 and 100 Gaussian classes 94% of the seeds were between them at 100 k1.

    A class that is drawn twice competes with a copy of itself. The paper breaks ties at random
    (after Definition 2), so that of c copies one is right. Half as many draws as classes hold
    :math:`(1 - e^{-1/2}) k_1` different ones, so that a half loses a factor down to 0.79 of its
    accuracy to copies. The whole task has none, so the halves of ``variant="paper"`` are compared
    with an accuracy that is not theirs. On 100 pilots of 250 Gaussian classes the RMSE at 2, 4
    and 10 times as many was 0.035, 0.044 and 0.055 with the package's choices; with the paper's
    0.049, 0.41 and 5.5, and nonnegative 0.045, 0.071 and 0.131, as h = 1 nearly always won.

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
        nonnegative: bool = True,
        atom: Atom = 1,
        n_resamples: int = 25,
        random_seed: RandomSeed = None,
        weights: Any = None,
        subsets: Any = None,
        variant: Variant = "package",
    ) -> None:
        self.bandwidth = bandwidth
        self.k = k
        self.nonnegative = nonnegative
        self.atom = atom
        self.n_resamples = n_resamples
        self.random_seed = random_seed
        self.weights = weights
        self.subsets = subsets
        self.variant = variant

    @classmethod
    def as_printed(
        cls,
        bandwidth: float | None = None,
        n_resamples: int = 25,
        random_seed: RandomSeed = None,
    ) -> Self:
        """Estimator with all choices of the paper's text, where the R package has others.

        They are ``variant="paper", nonnegative=False, atom=0``.

        Parameters
        ----------
        bandwidth, n_resamples, random_seed
            As in the constructor; `set_params` sets others.

        Returns
        -------
        ClassExReg

        References
        ----------
        Zheng, Achanta and Benjamini, JMLR 19(65), 2018, sections 3.3, 3.4 and 4.

        Examples
        --------
        >>> ClassExReg.as_printed(random_seed=1)
        ClassExReg(nonnegative=False, atom=0, random_seed=1, variant='paper')
        """
        model = cls(bandwidth, n_resamples=n_resamples, random_seed=random_seed)
        return model.set_params(variant="paper", nonnegative=False, atom=0)

    def _name_parts(self) -> list[str]:
        parts = [] if self.bandwidth is None else [f"{self.bandwidth}"]
        parts += [] if self.variant == "package" else [self.variant]
        parts += [] if self.atom == 1 else [f"atom={self.atom}"]
        parts += [] if self.nonnegative else ["unconstrained"]
        parts += [] if self.k is None else [sizes_text(self.k)]
        return parts + ([] if self.weights is None else ["weighted"])

    def _fit(self, task: SourceTask) -> None:
        one_of(self.atom, (0, 1, None), "atom")
        one_of(self.variant, ("package", "paper"), "variant")
        nonnegative = truth_value(self.nonnegative, "nonnegative")
        k = weights = None
        if self.k is not None:
            k = class_counts(self.k, largest=task.n_classes, smallest=1)
        if self.weights is not None:
            weights = training_weights(self.weights, task, k)
        plausible: FloatArray = np.empty(0)
        if self.bandwidth is not None:
            bandwidth = positive_bandwidth(self.bandwidth, _NARROWEST, _WIDEST)
        else:
            printed = self.variant == "paper"
            halves = halve(task, self.n_resamples, self.subsets, self.random_seed, printed)
            bandwidth, plausible = choose_bandwidth(
                task,
                halves,
                k=k,
                atom=self.atom,
                weights=weights,
                variant=self.variant,
                nonnegative=nonnegative or not printed,
            )

        self._task, self._training = task, training_curve(task, k, weights)
        self._atom, self._nonnegative, self._variant = self.atom, nonnegative, self.variant
        self.bandwidth_ = bandwidth
        self.knots_, self.coef_ = self._regression(bandwidth)
        self._plausible = plausible if self.subsets is None else np.empty(0)
        self._coef_factor: FloatArray | None = None

    def _regression(self, bandwidth: float) -> tuple[FloatArray, FloatArray]:
        """Knots and coefficients for a bandwidth."""
        task, curve = self._task, self._training
        knots = knots_of(task.n_classes, task.n_test, bandwidth, self._variant)
        columns = _design(knots, curve, bandwidth, self._atom)
        values = response(curve.accuracy, self._atom)
        return knots, least_squares(columns, values, curve.weight, self._nonnegative)

    def _curve(self, k: IntArray) -> FloatArray:
        return self._predicted(k, self.bandwidth_, self.knots_, self.coef_)

    def _predicted(
        self, k: IntArray, bandwidth: float, knots: FloatArray, coef: FloatArray
    ) -> FloatArray:
        columns = design(RadialBasis(knots, bandwidth).accuracy(k), self._atom)
        return response(columns @ coef, self._atom)

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
            f"the bandwidth {self.bandwidth_:g} is chosen on random halves of the classes; other "
            f"halves may choose {narrow:g} to {wide:g}, with predictions of {low:.2f} to "
            f"{high:.2f} on {farthest[0]:,} classes",
        )

    @property
    def coef_cov_(self) -> FloatArray:
        """Large-sample covariance of the coefficients, shape (m, m); see `standard_error`."""
        factor = self._factor()
        return factor @ factor.T

    def standard_error(self, k: ClassCounts) -> FloatArray:
        r"""Large-sample standard error of the expected accuracy on `k` classes.

        With H the design of the training curve, W its weights and :math:`\Sigma` the covariance
        of its accuracies (`SourceTask.accuracy_cov`: dyadic where scores are known),

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

        Notes
        -----
        Given the bandwidth, and for nonnegative least squares given which coefficients are
        positive: how these vary, and the error of the model, come on top. At 2 to 10 times 100
        and 500 Gaussian classes the standard deviation of predictions was 0.7 to 1.05 times the
        standard error with a bandwidth given, 1.1 to 1.35 times with a chosen one, where
        `classex_bayes.estimators.bootstrap.bootstrap` is the better measure. The first call makes
        one more pass over the scores.

        References
        ----------
        Zheng, thesis (2017), Theorem 3.4.1.
        """
        factor = self._factor()
        return np.linalg.norm(self._columns(class_counts(k)) @ factor, axis=1)

    def _columns(self, counts: IntArray) -> FloatArray:
        accuracy = RadialBasis(self.knots_, self.bandwidth_).accuracy(counts)
        return design(accuracy, self._atom)

    def _factor(self) -> FloatArray:
        """Factor F of the covariance F F' of the coefficients."""
        self._require("coef_")
        if self._coef_factor is None:
            columns = _design(self.knots_, self._training, self.bandwidth_, self._atom)
            active = self.coef_ > 0 if self._nonnegative else np.full(self.coef_.size, True)
            gain = response_map(columns, self._training.weight, active)
            self._coef_factor = gain @ accuracy_factor(self._task, self._training.k)
        return self._coef_factor


def _design(knots: FloatArray, curve: TrainingCurve, bandwidth: float, atom: Atom) -> FloatArray:
    return design(basis_accuracy(tuple(knots.tolist()), bandwidth, tuple(curve.k.tolist())), atom)
