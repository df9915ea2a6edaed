"""Difference in implied information between classifiers or regions tested on the same classes."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from classex_bayes.arguments import truth_value
from classex_bayes.estimators.high_dimensional import signal_curve
from classex_bayes.exceptions import DataError
from classex_bayes.information.bounds import Unit
from classex_bayes.information.implied import (
    ImpliedInformation,
    accuracy_influence,
    implied_information,
)
from classex_bayes.task.joint_covariance import joint_covariance
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import (
    require_same_classes,
    require_same_weights,
)
from classex_bayes.typing import ClassCounts, FloatArray


@dataclass(frozen=True, repr=False, eq=False)
class InformationDifference(ImpliedInformation):
    """Implied information of one test minus that of another.

    It has the attributes and methods of `ImpliedInformation`. `information` is the difference.

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
    the information of test a with respect to its accuracies, and :math:`\Sigma_{ab}` the covariance
    of the accuracies within and between the tests, estimated by deleting classes from both. Then

    .. math::

        Var[\hat I_a - \hat I_b] = s_a^2 + s_b^2 - 2 \rho s_a s_b, \qquad
        \rho = \frac{d_a' \Sigma_{ab} d_b}{\sqrt{d_a' \Sigma_{aa} d_a \; d_b' \Sigma_{bb} d_b}},

    where :math:`s_a, s_b` are the standard errors of `implied_information`.

    Parameters
    ----------
    first, second : SourceTask, fitted estimator, or Extrapolation
        Two objects of one kind, as for `implied_information`. Draws with the same number are
        subtracted. Draws of `compare_classifiers` are paired, others are independent.
    unit : {"nats", "bits"}
        Unit of the result.
    k : int or array-like of int, optional
        Numbers of classes at which accuracies are compared, as in `implied_information`.
    paired : bool
        Whether two tasks have the same classes, at the same positions. Their instances may be the
        same or different. Pass False for independent tests.

    Returns
    -------
    InformationDifference
        Difference. It has no standard error if one of the two estimates has none.

    Raises
    ------
    DataError
        If only one of the two is a task; if paired tasks differ in classes or weights, or have only
        accuracies; if the numbers of draws differ; if both estimates are infinite; or for `k` as in
        `implied_information`.

    Notes
    -----
    On 400 pilots of 60 Gaussian classes, two instances each, with one classifier that saw ten
    features and one that saw eight of them, the errors of the estimates had a correlation of 0.69.
    The 90% intervals contained the limit of the difference in 90% of the cases. Intervals that
    treat the tests as independent contained it in 100% and were 1.7 times as wide.

    References
    ----------
    Zheng, thesis (2017), section 5.1.1, compares decoders by implied information. For the
    covariance of tests: `classex_bayes.task.joint_covariance`.

    Examples
    --------
    >>> from classex_bayes.simulate import GaussianNearestNeighbor
    >>> probes, gallery, y = GaussianNearestNeighbor(dim=10).sample(60, repeats=2, random_seed=1)
    >>> whole = SourceTask.from_embeddings(probes, gallery, y)
    >>> part = SourceTask.from_embeddings(probes[:, :8], gallery[:, :8], y)
    >>> difference = information_difference(whole, part)
    >>> bool(difference.interval(0.9)[0] > 0)
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
    estimates = [implied_information(test, "nats", k) for test in pair]
    if all(np.isinf(estimate.mean) for estimate in estimates):
        raise DataError(
            "first, second: both have no errors, so their implied information is infinite; "
            "use harder tests"
        )
    a, b = estimates
    if a.information.shape != b.information.shape:
        raise DataError(
            f"first, second: found {a.information.shape} and {b.information.shape} draws, expected "
            "the same numbers"
        )
    correlation = standard_error = None
    if a.standard_error is not None and b.standard_error is not None:
        correlation = _correlation(tasks, estimates, k) if paired else 0.0
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
    tasks: list[SourceTask], estimates: list[ImpliedInformation], k: ClassCounts | None
) -> float:
    """Correlation of the errors of two estimates on the same classes."""
    influences: list[FloatArray] = []
    for task, estimate in zip(tasks, estimates, strict=True):
        curve = signal_curve(task, "all" if k is None else k)
        sizes, influence = accuracy_influence(task, curve, np.sqrt(2 * estimate.mean))
        influences.append(influence)
    covariance = joint_covariance([task.require("exact ranks") for task in tasks], sizes)
    moves = np.zeros((2, 2 * sizes.size))
    moves[0, : sizes.size], moves[1, sizes.size :] = influences
    joint = moves @ covariance @ moves.T
    return float(joint[0, 1] / np.sqrt(joint[0, 0] * joint[1, 1]))


def _require_same_classes(first: SourceTask, second: SourceTask) -> None:
    remedy = "pass paired=False for tests on different classes"
    for name, task in (("first", first), ("second", second)):
        task.require("exact ranks", name)
    require_same_classes("first, second", first, second, remedy)
    require_same_weights("first, second", first, second)
