"""Implied information: the mutual information that fits an accuracy curve best."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import xarray as xr
from scipy.special import ndtri

from classex_bayes.arguments import class_counts, one_of
from classex_bayes.core.normal_law import signal_accuracy
from classex_bayes.estimators.high_dimensional import HighDimensional, fit_signal, signal_curve
from classex_bayes.estimators.training_curve import TrainingCurve
from classex_bayes.exceptions import DataError
from classex_bayes.information.bounds import NATS, Unit
from classex_bayes.results import (
    SAMPLE_DIMS,
    Extrapolation,
    IntervalType,
    expected_accuracy,
    interval_label,
    interval_of,
    interval_settings,
)
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray

# Numbers of classes that represent all those at which the curve of a model is compared.
_MOST_SIZES = 64


@dataclass(frozen=True, repr=False, eq=False)
class ImpliedInformation:
    """Information implied by an accuracy curve.

    Attributes
    ----------
    information : DataArray with dimensions (chain, draw)
        Implied information; a point estimate has one chain and one draw.
    standard_error : float or None
        Standard error of a point estimate from data. It is None for draws. It is also None if the
        information is 0 or infinite, because the delta method fails.
    unit : {"nats", "bits"}
        Unit of the information and its standard error.
    source : str
        Source of the accuracy curve.
    interval_type : {"credible", "bootstrap", "none"}
        Meaning of the spread over draws.
    smallest_k, largest_k : int
        Smallest and largest number of classes at which the curve was compared.
    """

    information: xr.DataArray
    standard_error: float | None
    unit: Unit
    source: str
    interval_type: IntervalType
    smallest_k: int
    largest_k: int

    _quantity: ClassVar[str] = "implied information"
    _lowest: ClassVar[float] = 0.0

    @property
    def mean(self) -> float:
        """Mean over draws, or the point estimate."""
        return float(self.information.mean(SAMPLE_DIMS))

    def interval(
        self, ci_prob: float | None = None, ci_kind: str | None = None
    ) -> tuple[float, float]:
        """Interval of the implied information.

        Parameters
        ----------
        ci_prob : float, optional
            Level; ArviZ's ``rcParams["stats.ci_prob"]`` by default.
        ci_kind : {"eti", "hdi"}, optional
            Kind of the interval over draws; ``rcParams["stats.ci_kind"]`` by default. The interval
            of a point estimate is that of a normal distribution with its standard error, cut at 0
            for an information.

        Returns
        -------
        tuple of float
            Lower and upper limit.

        Raises
        ------
        DataError
            If a point estimate has no standard error.
        """
        prob, kind = interval_settings(ci_prob, ci_kind)
        if self.interval_type != "none":
            bounds = interval_of(self.information, prob, kind)
            return float(bounds.sel(ci_bound="lower")), float(bounds.sel(ci_bound="upper"))
        if self.standard_error is None:
            raise DataError(
                f"{self.source}: {self._quantity} {self.mean:.3g} has no standard error, so it "
                "has no interval"
            )
        reach = float(ndtri((1 + prob) / 2)) * self.standard_error
        return max(self.mean - reach, self._lowest), self.mean + reach

    def to(self, unit: Unit) -> Self:
        """Convert to another unit.

        Parameters
        ----------
        unit : {"nats", "bits"}
            Unit of the result.

        Returns
        -------
        ImpliedInformation
        """
        one_of(unit, tuple(NATS), "unit")
        factor = NATS[self.unit] / NATS[unit]
        error = None if self.standard_error is None else self.standard_error * factor
        return replace(self, information=self.information * factor, standard_error=error, unit=unit)

    def __repr__(self) -> str:
        """One sentence with the estimate and its uncertainty."""
        text = f"{self._quantity} {self.mean:.3f} {self.unit}"
        if self.standard_error is not None:
            text += f" (standard error {self.standard_error:.3f})"
        if self.interval_type != "none":
            prob, kind = interval_settings(None, None)
            lower, upper = self.interval()
            name = interval_label(prob, kind, self.interval_type)
            text += f" ({name}: {lower:.3f} to {upper:.3f})"
        return f"{text}, from {self.source} at k = {self.smallest_k}..{self.largest_k}"


def implied_information(
    source: Any, unit: Unit = "nats", k: ClassCounts | None = None
) -> ImpliedInformation:
    r"""Mutual information that fits an accuracy curve best.

    .. math::

        \hat I = \arg\min_{\iota \ge 0} \sum_k \left(A_k - \bar\pi_k(\sqrt{2\iota})\right)^2, \qquad
        \bar\pi_k(c) = \int \varphi(z - c) \Phi(z)^{k-1} dz

    For a task, :math:`A_k` is ATA_k, and the delta method gives a standard error, :math:`Var[\hat
    c] = d^\top \Sigma d` with :math:`\Sigma` the covariance of ATA_k and :math:`d_k = \bar\pi'_k /
    \sum_j (\bar\pi_j'^2 - (A_j - \bar\pi_j) \bar\pi''_j)` at :math:`\hat c = \sqrt{2 \hat I}`. For
    a fitted model, each draw of the accuracy curve gives a draw of the information.

    Parameters
    ----------
    source : SourceTask, fitted estimator, or Extrapolation
        A fitted estimator has a method `predict` that returns an Extrapolation.
    unit : {"nats", "bits"}
        Unit of the result.
    k : int or array-like of int, optional
        Numbers of classes at which the curves are compared, with equal weights: 2..k1 for a task,
        also larger ones for a fitted estimator. By default 2..k1, or those of the accuracy curve or
        of the Extrapolation. A large number of values is represented by fewer log-spaced ones with
        weights.

    Returns
    -------
    ImpliedInformation

    Raises
    ------
    DataError
        If `source` is none of these or predicts top-m or measured accuracy, if `k` is out of range,
        or if `k` is given together with an Extrapolation.

    Notes
    -----
    :math:`\bar\pi_k(\sqrt{2I})` is the accuracy of the Bayes classifier if label and features have
    information I, in the limit of many weakly informative dimensions (thesis, assumptions A1 to
    A4). No classifier is better than the Bayes classifier, so in this limit the implied information
    is at most I. In other cases it is a measure of precision without an upper limit, and it can
    exceed I. For example, it is 9.7 nats for ten pairs of normal variables whose information is 8.3
    nats in total. `information_bound` makes no such assumption.

    If the accuracy curve has the shape of this law, the implied information does not depend on `k`.
    Real curves have it only roughly. Compare studies over the same range of `k` and the same kind
    of classes, and draw the curve of the law beside the observed one.

    References
    ----------
    Zheng, thesis (2017), section 5.4; Zheng and Benjamini, arXiv:1606.05229 (2016).

    Examples
    --------
    >>> task = SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], np.arange(50), n_classes=50)
    >>> implied_information(task)
    implied information 6.299 nats (standard error 1.109), from SourceTask at k = 2..50
    """
    one_of(unit, tuple(NATS), "unit")
    if isinstance(source, SourceTask):
        return _of_task(source, k).to(unit)
    if isinstance(source, Extrapolation):
        if k is not None:
            raise DataError(
                "k: found k together with an Extrapolation, which has its own numbers of "
                "classes; leave k out"
            )
        sizes, weight = _representatives(np.sort(source.k))
        return _of_prediction(source, sizes, weight).to(unit)
    if isinstance(source, type) or not callable(getattr(source, "predict", None)):
        raise DataError(
            "source: expected a SourceTask, a fitted estimator or an Extrapolation, found "
            f"{type(source).__name__}"
        )
    counts = (
        np.arange(2, source.predict(2).n_classes + 1) if k is None else np.sort(class_counts(k))
    )
    sizes, weight = _representatives(counts)
    return _of_prediction(source.predict(sizes), sizes, weight).to(unit)


def _of_task(task: SourceTask, k: ClassCounts | None) -> ImpliedInformation:
    """Estimate from average test accuracies, with a standard error by the delta method."""
    counts = "all" if k is None else k
    signal = HighDimensional(counts).fit(task).signal_
    curve = signal_curve(task, counts)
    return ImpliedInformation(
        xr.DataArray([[signal**2 / 2]], dims=SAMPLE_DIMS),
        _standard_error(task, curve, signal),
        "nats",
        "SourceTask",
        "none",
        int(curve.k.min()),
        int(curve.k.max()),
    )


def _standard_error(task: SourceTask, curve: TrainingCurve, signal: float) -> float | None:
    """Standard error of the information in nats."""
    if signal == 0 or np.isinf(signal):
        return None
    sizes, influence = accuracy_influence(task, curve, signal)
    return float(np.sqrt(influence @ task.accuracy_cov(sizes) @ influence))


def accuracy_influence(
    task: SourceTask, curve: TrainingCurve, signal: float
) -> tuple[IntArray, FloatArray]:
    """Numbers of classes k, and the derivative of the information in nats by ATA_k at these k.

    A few k are used, because the covariance is computed at few k and is nearly linear in log k
    between them.
    """
    value, slope, bend = (signal_accuracy(signal, curve.k, order)[:, 0] for order in range(3))
    steepness = curve.weight @ (slope**2 - (curve.accuracy - value) * bend)
    grid = task.grid()
    sizes = np.sort(curve.k if curve.k.size <= grid.size else grid)
    return sizes, _share_out(signal * curve.weight * slope / steepness, curve.k, sizes)


def _of_prediction(
    prediction: Extrapolation, sizes: IntArray, weight: FloatArray
) -> ImpliedInformation:
    """Draws of the information from draws of the accuracy."""
    accuracy = expected_accuracy(prediction, "source").sel(k=sizes)
    curves = accuracy.transpose(*SAMPLE_DIMS, "k").values
    signal = fit_signal(sizes, curves.reshape(-1, sizes.size), weight)
    information = accuracy.isel(k=0, drop=True).copy(data=(signal**2 / 2).reshape(curves.shape[:2]))
    return ImpliedInformation(
        information.rename("information"),
        None,
        "nats",
        prediction.estimator,
        prediction.interval_type,
        int(sizes[0]),
        int(sizes[-1]),
    )


def _representatives(sizes: IntArray) -> tuple[IntArray, FloatArray]:
    """A few of the increasing numbers of classes, weighted to represent all of them."""
    if sizes.size <= _MOST_SIZES:
        return sizes, np.ones(sizes.size)
    spaced = np.geomspace(sizes[0], sizes[-1], _MOST_SIZES)
    few = sizes[np.unique(np.searchsorted(sizes, spaced).clip(max=sizes.size - 1))]
    return few, _share_out(np.ones(sizes.size), sizes, few)


def _share_out(amount: FloatArray, sizes: IntArray, few: IntArray) -> FloatArray:
    """Distribute the amounts at `sizes` to their neighbours among `few`, linearly in log k.

    The amounts keep their sum of products with any function that is linear in log k between `few`.
    """
    if few.size == 1:
        return np.array([amount.sum()])
    right = np.searchsorted(few, sizes).clip(1, few.size - 1)
    low, high = np.log(few[right - 1]), np.log(few[right])
    part = amount * (np.log(sizes) - low) / (high - low)
    return np.bincount(right - 1, amount - part, few.size) + np.bincount(right, part, few.size)
