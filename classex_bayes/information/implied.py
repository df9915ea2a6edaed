"""Implied information: the mutual information that fits an accuracy curve best, and differences."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import xarray as xr
from scipy.special import ndtri

from classex_bayes.arguments import class_counts, truth_value
from classex_bayes.core.normal_law import signal_accuracy
from classex_bayes.estimators.probit_normal import HighDimensional, fit_signal, signal_curve
from classex_bayes.exceptions import DataError
from classex_bayes.information.bounds import Unit, nats_per
from classex_bayes.results.draws import SAMPLE_DIMS, interval_label, interval_of, interval_settings
from classex_bayes.results.extrapolation import Extrapolation, IntervalType
from classex_bayes.results.reference_values import expected_accuracy
from classex_bayes.task.rank_variance import joint_covariance
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.task_statistics import require_same_classes, require_same_weights
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
        That of a point estimate from data. None for draws, and for information that is 0 or
        infinite, where the delta method fails.
    unit, source, interval_type : str
        "nats" or "bits", the source of the accuracy curve, and the meaning of the spread over
        draws: "credible", "bootstrap" or "none".
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
        """Lower and upper limit over draws, or of a normal law for a point estimate.

        The law has the mean and the standard error. Limits of an information are at least 0.

        Parameters
        ----------
        ci_prob, ci_kind : optional
            Level, and kind ("eti" or "hdi") of the interval over draws; by default 0.9 and
            "eti", or ArviZ's changed rcParams.
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
        """Convert to another unit, "nats" or "bits"."""
        factor = nats_per(self.unit) / nats_per(unit)
        error = None if self.standard_error is None else self.standard_error * factor
        return replace(self, information=self.information * factor, standard_error=error, unit=unit)

    def __repr__(self) -> str:
        """One sentence with the estimate and its uncertainty."""
        text = f"{self._quantity} {self.mean:.3f} {self.unit}"
        if self.standard_error is not None:
            text += f" (standard error {self.standard_error:.3f})"
        if self.interval_type != "none":
            lower, upper = self.interval()
            name = interval_label(*interval_settings(None, None), self.interval_type)
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
        Source of the accuracy curve.
    unit : {"nats", "bits"}
        Unit of the result.
    k : int or array-like of int, optional
        Numbers of classes at which the curves are compared, with equal weights: 2..k1 for a task,
        also larger ones for a fitted estimator. By default 2..k1, or those of the accuracy curve or
        of the Extrapolation. Many values are represented by fewer log-spaced ones with weights.

    Notes
    -----
    :math:`\bar\pi_k(\sqrt{2I})` is the accuracy of the Bayes classifier if label and features have
    information I, in the limit of many weakly informative dimensions (thesis, assumptions A1 to
    A4). In this limit the implied information of any classifier is at most I. Elsewhere it can
    exceed I: it is 9.7 nats for ten pairs of normal variables whose information is 8.3 nats.
    `information_bound` makes no such assumption.

    If the curve has the shape of this law, the implied information does not depend on `k`. Real
    curves have it only roughly. Compare studies over the same range of `k` and the same kind of
    classes, and draw the curve of the law next to the observed one.

    References
    ----------
    Zheng, thesis (2017), section 5.4; Zheng and Benjamini, arXiv:1606.05229 (2016).

    Examples
    --------
    >>> task = SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], np.arange(50), n_classes=50)
    >>> implied_information(task)
    implied information 6.299 nats (standard error 1.109), from SourceTask at k = 2..50
    """
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
    largest = None if k is not None else source.predict(2).n_classes
    counts = np.sort(class_counts(k)) if largest is None else np.arange(2, largest + 1)
    sizes, weight = _representatives(counts)
    return _of_prediction(source.predict(sizes), sizes, weight).to(unit)


def _of_task(task: SourceTask, k: ClassCounts | None) -> ImpliedInformation:
    """Estimate from average test accuracies, with a standard error by the delta method."""
    information = HighDimensional("all" if k is None else k).fit(task).information_
    error = None
    if 0 < information < np.inf:
        sizes, influence = _influence(task, k, information)
        error = float(np.sqrt(influence @ task.accuracy_cov(sizes) @ influence))
    used = signal_curve(task, "all" if k is None else k).k
    draw = xr.DataArray([[information]], dims=SAMPLE_DIMS)
    return ImpliedInformation(
        draw, error, "nats", "SourceTask", "none", int(used.min()), int(used.max())
    )


def _influence(
    task: SourceTask, k: ClassCounts | None, information: float
) -> tuple[IntArray, FloatArray]:
    """Numbers of classes k, and the derivative of the information in nats by ATA_k at these k.

    A few k are used, because the covariance is computed at few k and is nearly linear in log k
    between them.
    """
    curve, signal = signal_curve(task, "all" if k is None else k), np.sqrt(2 * information)
    value, slope, bend = (signal_accuracy(signal, curve.k, order)[:, 0] for order in range(3))
    steepness = curve.weight @ (slope**2 - (curve.accuracy - value) * bend)
    grid = task.grid()
    sizes = np.sort(curve.k if curve.k.size <= grid.size else grid)
    return sizes, _shared_out(signal * curve.weight * slope / steepness, curve.k, sizes)


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
    spaced = np.geomspace(sizes[0], sizes[-1], _MOST_SIZES)
    few = sizes[np.unique(np.searchsorted(sizes, spaced).clip(max=sizes.size - 1))]
    few = sizes if sizes.size <= _MOST_SIZES else few
    return few, _shared_out(np.ones(sizes.size), sizes, few)


def _shared_out(amount: FloatArray, sizes: IntArray, few: IntArray) -> FloatArray:
    """Distribute the amounts at `sizes` to their neighbours among `few`, linearly in log k.

    The amounts keep their sum of products with any function that is linear in log k between `few`.
    """
    if few.size == 1:
        return np.array([amount.sum()])
    right = np.searchsorted(few, sizes).clip(1, few.size - 1)
    low, high = np.log(few[right - 1]), np.log(few[right])
    part = amount * (np.log(sizes) - low) / (high - low)
    return np.bincount(right - 1, amount - part, few.size) + np.bincount(right, part, few.size)


@dataclass(frozen=True, repr=False, eq=False)
class InformationDifference(ImpliedInformation):
    """Implied information of one test minus that of another: `information` is the difference.

    Attributes
    ----------
    correlation : float or None
        Correlation of the errors of the two point estimates; None for draws.
    """

    correlation: float | None = None

    _quantity: ClassVar[str] = "difference of implied information"
    _lowest: ClassVar[float] = -np.inf


def information_difference(
    first: Any,
    second: Any,
    unit: Unit = "nats",
    k: ClassCounts | None = None,
    *,
    paired: bool = True,
) -> InformationDifference:
    r"""Implied information of one test minus that of another on the same classes.

    Errors of two classifiers, or of two regions of a brain, tested on the same classes are
    correlated, because a hard class changes both accuracies. Let :math:`d_a` be the derivative of
    the information of test a by its accuracies, and :math:`\Sigma_{ab}` the covariance of the
    accuracies within and between the tests (`classex_bayes.task.rank_variance`). With the
    standard errors :math:`s_a, s_b` of `implied_information`,

    .. math::

        Var[\hat I_a - \hat I_b] = s_a^2 + s_b^2 - 2 \rho s_a s_b, \qquad
        \rho = \frac{d_a' \Sigma_{ab} d_b}{\sqrt{d_a' \Sigma_{aa} d_a \; d_b' \Sigma_{bb} d_b}}.

    Parameters
    ----------
    first, second : SourceTask, fitted estimator, or Extrapolation
        Two objects of one kind, as for `implied_information`. Draws with the same number are
        subtracted. Draws of `compare_classifiers` are paired, others are independent.
    unit, k
        As in `implied_information`.
    paired : bool
        Whether two tasks have the same classes, at the same positions. Their instances may be the
        same or different. Pass False for independent tests.

    Notes
    -----
    On 400 pilots of 60 Gaussian classes, with one classifier that saw ten features and one that saw
    eight of them, the 90% intervals contained the limit of the difference in 90% of the cases.
    Intervals that treat the tests as independent were 1.7 times as wide.

    References
    ----------
    Zheng, thesis (2017), section 5.1.1, compares decoders by implied information.

    Examples
    --------
    >>> from classex_bayes.simulate import GaussianNearestNeighbor
    >>> probes, gallery, y = GaussianNearestNeighbor(dim=10).sample(60, repeats=2, random_seed=1)
    >>> whole = SourceTask.from_embeddings(probes, gallery, y)
    >>> part = SourceTask.from_embeddings(probes[:, :8], gallery[:, :8], y)
    >>> bool(information_difference(whole, part).interval(0.9)[0] > 0)
    True
    """
    pair = first, second
    tasks = [test for test in pair if isinstance(test, SourceTask)]
    if len(tasks) == 1:
        raise DataError(
            "first, second: found a SourceTask and something else, expected two tasks, or two "
            "fitted estimators or predictions"
        )
    if truth_value(paired, "paired") and tasks:
        _require_same_classes(*tasks)
    a, b = (implied_information(test, "nats", k) for test in pair)
    if np.isinf(a.mean) and np.isinf(b.mean):
        raise DataError(
            "first, second: both have no errors, so their implied information is infinite; "
            "use harder tests"
        )
    if a.information.shape != b.information.shape:
        raise DataError(
            f"first, second: found {a.information.shape} and {b.information.shape} draws, expected "
            "the same numbers"
        )
    correlation = standard_error = None
    if a.standard_error is not None and b.standard_error is not None:
        correlation = _correlation(tasks, (a.mean, b.mean), k) if paired else 0.0
        shared = 2 * correlation * a.standard_error * b.standard_error
        variance = a.standard_error**2 + b.standard_error**2 - shared
        standard_error = float(np.sqrt(max(variance, 0.0)))  # rounding
    return InformationDifference(
        a.information.copy(data=a.information.values - b.information.values),
        standard_error,
        "nats",
        f"first ({a.source}) minus second ({b.source})",
        a.interval_type,
        max(a.smallest_k, b.smallest_k),
        min(a.largest_k, b.largest_k),
        correlation,
    ).to(unit)


def _correlation(
    tasks: list[SourceTask], information: tuple[float, float], k: ClassCounts | None
) -> float:
    """Correlation of the errors of two estimates on the same classes."""
    (sizes, first), (_, second) = (
        _influence(task, k, value) for task, value in zip(tasks, information, strict=True)
    )
    both = joint_covariance([task.require("exact ranks") for task in tasks], sizes)
    derivative = np.kron(np.eye(2), np.ones(sizes.size)) * np.concatenate([first, second])
    covariance = derivative @ both @ derivative.T
    return float(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))


def _require_same_classes(first: SourceTask, second: SourceTask) -> None:
    """Raise unless two tests have exact ranks on the same classes, weighted alike."""
    for name, task in (("first", first), ("second", second)):
        task.require("exact ranks", name)
    remedy = "pass paired=False for tests on different classes"
    require_same_classes("first, second", first, second, remedy)
    require_same_weights("first, second", first, second)
