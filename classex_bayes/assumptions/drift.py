"""Classifiers that are retrained on fewer classes: the drift from the extrapolated accuracy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri
from scipy.stats import chi2

from classex_bayes.arguments import class_counts, seed_sequence, source_task, truth_value
from classex_bayes.core.influence import (
    clustered_covariance,
    unseen_competitors,
)
from classex_bayes.exceptions import DataError, ExtrapolationWarning, warn
from classex_bayes.formatting import Display, Shown
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results.extrapolation import Extrapolation
from classex_bayes.results.reference_values import expected_accuracy
from classex_bayes.task.classifier_scores import MEASURE_DRIFT
from classex_bayes.task.rank_variance import RankVariance
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, RandomSeed

_DRIFT_LEVEL, _LINE_LEVEL = 0.01, 0.05
# Prior scale of the slope in probits for each factor e, and of its change beyond k1.
SLOPE = 0.1
_HALF_AN_ANSWER = 0.5
_WITH_DRIFT = " + drift"  # end of the names of predictions


def _smaller_tasks(task: SourceTask, smaller_tasks: Any) -> list[SourceTask]:
    """Smaller tasks as a list, possibly empty; raise if an item is not a smaller task."""
    source_task(task)
    if not (isinstance(smaller_tasks, SourceTask) or np.iterable(smaller_tasks)):
        raise DataError(f"smaller_tasks: expected one task or several, found {smaller_tasks!r}")
    smaller = [smaller_tasks] if isinstance(smaller_tasks, SourceTask) else list(smaller_tasks)
    for place, small in enumerate(smaller):
        source_task(small, f"smaller_tasks: task {place}")
        if small.n_classes >= task.n_classes:
            raise DataError(
                f"smaller_tasks: task {place} has {small.n_classes} classes, expected fewer than "
                f"the {task.n_classes} of task"
            )
    return smaller


@dataclass(frozen=True, repr=False, eq=False)
class Drift(Shown):
    r"""Drift of a retrained classifier, :math:`\delta(k)` in probits; made by `measure_drift`.

    .. math:: \delta(k) = \Phi^{-1}(\text{accuracy of the classifier trained on k classes})
        - \Phi^{-1}(AGA_k\text{ of the scores on }k_1)

    The drift is a line in log k, and its slope may change at k1,

    .. math:: \delta(k) = \begin{cases} b\,x & k \le k_1 \\ (b + c)\,x & k > k_1 \end{cases},
        \quad x = \log(k / k_1), \quad b, c \sim N(0, s^2)

    with :math:`s = 0.1` probits for each factor e in the number of classes. Measurements at smaller
    numbers of classes inform b. Nothing informs c, so the interval beyond k1 stays wide, however
    precise they are. If they contradict a line, their noise is multiplied by chi-squared over its
    degrees of freedom (Birge's ratio).

    Attributes
    ----------
    table : DataFrame
        Indexed by k, one row for each smaller task: "measured" (its accuracy), "subsampled" (the
        accuracy of the large task's scores on k classes), "delta" and its standard error "se".
    n_classes : int
        k1, where the drift is 0.
    noise : array of shape (m, m)
        Covariance of the errors of "delta".

    Notes
    -----
    For each factor e, linear and logistic classifiers of Telugu characters drift by -0.04 to -0.15
    (20 to 400 classes), retrained classifiers of simulated Gaussian classes by -0.15 to 0.15.

    References
    ----------
    Zheng, Achanta and Benjamini, JMLR 19(65), 2018, Table 3 (Telugu).
    """

    plot = PlotMethod("plot_drift")

    table: pd.DataFrame
    n_classes: int
    noise: FloatArray

    @property
    def _x(self) -> FloatArray:
        return np.log(self.table.index.to_numpy(dtype=float) / self.n_classes)

    @cached_property
    def _line(self) -> tuple[float, float, float]:
        """Posterior mean and standard deviation of b, and the p-value of a chi-squared test."""
        x, delta, excess, p_value = self._x, self.table["delta"].to_numpy(), 1.0, 1.0
        by_x, by_delta = np.linalg.solve(self.noise, np.stack([x, delta], axis=1)).T
        if np.unique(x).size > 1:
            chi_squared = delta @ by_delta - (x @ by_delta) ** 2 / (x @ by_x)
            p_value = float(chi2.sf(chi_squared, x.size - 1))
            if p_value < _LINE_LEVEL:
                excess = chi_squared / (x.size - 1)
        sd = (SLOPE**-2 + x @ by_x / excess) ** -0.5
        return float(x @ by_delta / excess * sd**2), float(sd), p_value

    @property
    def slope_mean(self) -> float:
        """Posterior mean of the slope b."""
        return self._line[0]

    @property
    def slope_sd(self) -> float:
        """Posterior standard deviation of the slope b."""
        return self._line[1]

    def draws(self, k: ArrayLike, number: int, rng: np.random.Generator) -> FloatArray:
        """Draws (number, n_k) of the drift in probits.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes.
        number : int
            Number of draws.
        rng : Generator
            Source of random numbers.
        """
        x = np.log(np.asarray(k) / self.n_classes)
        slope = rng.normal(self.slope_mean, self.slope_sd, (number, 1))
        change = rng.normal(0.0, SLOPE, (number, 1))
        return slope * x + change * np.maximum(x, 0.0)

    @property
    def p_value(self) -> float:
        """Of a chi-squared test that there is no drift, as if scores are marginal."""
        delta = self.table["delta"].to_numpy()
        chi_squared = delta @ np.linalg.solve(self.noise, delta)
        return float(chi2.sf(chi_squared, delta.size)) if delta.size else 1.0

    @property
    def p_value_of_line(self) -> float:
        """Of a chi-squared test that the measured drifts are a line through 0; 1 for one alone."""
        return self._line[2]

    def apply(self, prediction: Extrapolation, *, random_seed: RandomSeed = None) -> Extrapolation:
        r"""Add the drift to a prediction, :math:`\Phi(\Phi^{-1}(A_k) + \delta(k))` draw by draw.

        Parameters
        ----------
        prediction : Extrapolation
            Draws of the expected accuracy, from a fit to the task whose drift was measured. A point
            estimate, a risk, a top-m or a measured accuracy has no such draws.
        random_seed : int, SeedSequence or None
            Seed of the drift.

        Returns
        -------
        Extrapolation
            Prediction with drift, named "... + drift". It has the notes of the prediction and one
            about the drift.
        """
        if not isinstance(prediction, Extrapolation):
            raise DataError(
                f"prediction: expected what predict returns, found {type(prediction).__name__}"
            )
        if prediction.n_classes != self.n_classes or prediction.interval_type == "none":
            kind = "a point estimate" if prediction.interval_type == "none" else "draws"
            raise DataError(
                f"prediction: found {kind} of {prediction.estimator} from {prediction.n_classes} "
                f"classes, expected draws, which the drift can widen, from {self.n_classes}"
            )
        if prediction.estimator.endswith(_WITH_DRIFT):
            raise DataError("prediction: found one with drift, expected what predict returns")
        accuracy = expected_accuracy(prediction, "prediction")
        rng = np.random.default_rng(seed_sequence(random_seed))
        delta = self.draws(prediction.k, accuracy[..., 0].size, rng).reshape(accuracy.shape)
        # The notes of a classifier that is not marginal end with the advice to measure its drift.
        notes = [note.removesuffix(f"; {MEASURE_DRIFT}") for note in prediction.notes]
        return replace(
            prediction,
            draws=accuracy.copy(data=ndtr(ndtri(accuracy.values) + delta)).rename("accuracy"),
            estimator=prediction.estimator + _WITH_DRIFT,
            base_notes=(*notes, *self._notes(int(prediction.k.max()))),
            rank_limits=None,
        )

    @property
    def is_linear(self) -> bool:
        """Whether the measured drifts agree with a line in log k, at a level of 5%."""
        return self.p_value_of_line >= _LINE_LEVEL

    @property
    def _bend(self) -> str:
        return (
            f"the measured drift is not a line in log k (p = {self.p_value_of_line:.2g}), so its "
            "slope changes. Test the retrained classifier on as many classes as possible"
        )

    def _notes(self, farthest: int = 0) -> list[str]:
        """The slope and its evidence, and its limits up to `farthest` classes."""
        sizes = self.table.index.unique()
        measured = ", ".join(f"{k:,}" for k in sizes)
        source = f"retrained classifiers at k = {measured}" if measured else "its prior alone"
        notes = [
            f"the drift of retrained classifiers is {self.slope_mean:+.3f} +- "
            f"{self.slope_sd:.3f} probits for each factor e in k, estimated from {source}; beyond "
            f"{self.n_classes:,} classes it may change by +- {SLOPE:g}"
        ]
        if self.p_value < _DRIFT_LEVEL:
            notes.append(
                f"a classifier without drift is unlikely (p = {self.p_value:.2g}): scores depend "
                "on the competitors, or the smaller tasks are of other classes or training data"
            )
        if not self.is_linear:
            notes.append(self._bend)
        if measured and farthest * sizes.min() > self.n_classes**2:
            notes.append(
                f"the drift was measured over a factor of {self.n_classes / sizes.min():.1f} in "
                f"the number of classes, and is extended over {farthest / self.n_classes:.1f}. A "
                "classifier that runs out of capacity there shows no sign of it on fewer classes"
            )
        return notes

    def _display(self) -> Display:
        title = f"Drift from {self.n_classes} classes, in probits of accuracy"
        notes = tuple(f"note: {note}" for note in self._notes())
        return Display(title, self.table if len(self.table) else None, notes)


def measure_drift(
    task: SourceTask,
    smaller_tasks: SourceTask | Sequence[SourceTask] | Mapping[int, float] = (),
    *,
    nested: bool = False,
) -> Drift:
    r"""Measure how far a retrained classifier drifts from the extrapolated accuracy.

    A classifier that is trained on all classes together, or whose scores are normalised over them,
    is not marginal. After retraining on k classes it differs from the classifier that the scores on
    k1 classes describe. The difference is measured in probits at the k of smaller tasks,

    .. math:: \hat\delta(k) = \Phi^{-1}(\text{accuracy on } k) - \Phi^{-1}(ATA_k),

    where half an answer is added to the right and to the wrong ones, with delta-method errors. A
    line in log k (`Drift`) extrapolates the drift beyond k1.

    Parameters
    ----------
    task : SourceTask
        Task on k1 classes, whose accuracy is extrapolated.
    smaller_tasks : SourceTask, sequence of SourceTask, or mapping from k to accuracy
        Tasks of the classifier retrained on k < k1 classes of the same population. Accuracies alone
        are assumed to be measured on as many instances per class as the task has. If there are
        none, the drift has its prior.
    nested : bool
        Whether the classes of the smaller tasks are among those of the task and have the same names
        (`classes` of `from_scores`). If so, both classifiers are compared on these classes by exact
        ranks, and effects of the choice of classes cancel in the difference.

    Returns
    -------
    Drift
        Measured drift. Its method `.apply(model.predict(k))` shifts and widens a prediction.

    Warns
    -----
    ExtrapolationWarning
        The measured drifts contradict a line in log k. Predictions have this as a note.

    Notes
    -----
    docs/questions.md has the coverage beyond k1, and what no interval covers. All classifiers need
    as much training data for each class. Smaller tasks are treated as independent of each other,
    and of the task unless they are nested. If they share classes with it and nested=False, their
    standard errors are too large.

    Examples
    --------
    >>> task = SourceTask.from_ranks(np.arange(200) % 25 + 1, np.arange(200) % 100, n_classes=100)
    >>> drift = measure_drift(task, {20: 0.55, 50: 0.2})
    >>> drift.table["delta"].round(2).to_dict()
    {20: 0.96, 50: 0.56}
    >>> round(drift.slope_mean, 2)
    -0.13
    """
    source_task(task)
    if isinstance(smaller_tasks, Mapping):
        smaller_tasks = _as_tasks(task, smaller_tasks)
    smaller = sorted(_smaller_tasks(task, smaller_tasks), key=lambda small: small.n_classes)
    k = np.array([small.n_classes for small in smaller], dtype=np.int64)
    compare = _paired if truth_value(nested, "nested") else _unpaired
    measured, subsampled, delta, noise = compare(task, smaller)
    columns = {"measured": measured, "subsampled": subsampled, "delta": delta}
    table = pd.DataFrame(columns, index=pd.Index(k, name="k")).assign(se=np.sqrt(np.diag(noise)))
    drift = Drift(table, task.n_classes, noise)
    if not drift.is_linear:
        warn(drift._bend, ExtrapolationWarning)
    return drift


def _as_tasks(task: SourceTask, accuracies: Mapping[int, float]) -> list[SourceTask]:
    """Tasks of known accuracies, with the repeats and the design effect of the large task."""
    class_counts(list(accuracies), "smaller_tasks")
    return [
        SourceTask.from_accuracies(
            [k],
            [accuracy],
            n_test=max(1, round(task.n_test * k / task.n_classes)),
            n_classes=k,
            design_effect=task.design_effect(),
        )
        for k, accuracy in accuracies.items()
    ]


def _probit(share: Any, n: Any) -> tuple[Any, Any]:
    """Probits of shares of n answers, and their slopes; half an answer keeps them finite."""
    z = ndtri((share * n + _HALF_AN_ANSWER) / (n + 1))
    return z, np.sqrt(2 * np.pi) * np.exp(z**2 / 2)


def _unpaired(task: SourceTask, smaller: Sequence[SourceTask]) -> tuple[FloatArray, ...]:
    """Measured and subsampled accuracies, drifts, and the covariance of their errors."""
    if not smaller:
        return np.empty(0), np.empty(0), np.empty(0), np.empty((0, 0))
    k, place = np.unique([small.n_classes for small in smaller], return_inverse=True)
    subsampled, covariance = task.accuracy(k)[place], task.accuracy_cov(k)[np.ix_(place, place)]
    measured = np.array([small.accuracy(small.n_classes) for small in smaller])
    variance = np.array([small.accuracy_cov(small.n_classes) for small in smaller])
    # Few classes estimate the variance of a small task badly. If the classifiers have the same
    # accuracy, it is at least k1 / k times that of ATA_k (Hoeffding, 1948).
    least = np.diag(covariance) * task.n_classes / k[place]
    n = np.array([small.n_test for small in smaller])
    z, slope = _probit(measured, n)
    expected, large_slope = _probit(subsampled, task.n_test)
    variance = slope**2 * np.maximum(variance, _HALF_AN_ANSWER / n**2)
    # In probits, since near 0 and 1 the accuracy of the retrained classifier varies less.
    variance = np.maximum(variance, large_slope**2 * least)
    noise = np.outer(large_slope, large_slope) * covariance + np.diag(variance)
    return measured, subsampled, z - expected, noise


def _paired(task: SourceTask, smaller: Sequence[SourceTask]) -> tuple[FloatArray, ...]:
    """The same where both classifiers are compared class by class."""
    rows = np.empty((len(smaller), 4))
    for place, small in enumerate(smaller):
        large = _on_classes_of(task, small)
        weight = np.minimum(
            *(tested.require("exact ranks").class_weight for tested in (large, small))
        )
        weight = weight / weight.sum()
        by_class = [_accuracy_by_class(tested) for tested in (small, large)]
        (measured, subsampled), n = (weight @ right for right in by_class), small.n_test
        z, slope = _probit(measured, n)
        expected, large_slope = _probit(subsampled, large.n_test)
        # Each class affects both probits. Equal effects cancel.
        difference = slope * by_class[0] - large_slope * by_class[1]
        variance = clustered_covariance(difference[:, None], weight)[0, 0]
        variance = unseen_competitors(weight) * variance
        least = _HALF_AN_ANSWER * (slope / n) ** 2
        rows[place] = measured, subsampled, z - expected, max(variance, least)
    measured, subsampled, delta, variance = rows.T
    return measured, subsampled, delta, np.diag(variance)


def _on_classes_of(task: SourceTask, small: SourceTask) -> SourceTask:
    """The task on the classes of a smaller one, by their names."""
    position = {name: j for j, name in enumerate(task.classes or ())}
    for name in small.classes or (None,):
        if name not in position:
            raise DataError(
                f"smaller_tasks: that of {small.n_classes} classes has the class {name!r}, which "
                "task does not have; pass nested=False for other classes or classes without names"
            )
    return task.select(np.array([position[name] for name in small.classes or ()]))


def _accuracy_by_class(task: SourceTask) -> FloatArray:
    """Share of correct answers of each class; 0 for untested classes."""
    table = task.require("exact ranks")
    return RankVariance(table).unit_means(np.array([task.n_classes]))[:, 0]
