"""An accuracy curve: accuracies at some numbers of classes, without ranks or scores."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from classex_bayes.arguments import class_counts, number, whole_number
from classex_bayes.array_access import as_numeric, as_vector
from classex_bayes.core.dependence import AnswerDependence, typical_dependence
from classex_bayes.core.metrics import Accuracy, Metric
from classex_bayes.exceptions import DataError, ExtrapolationWarning, warn
from classex_bayes.task.provenance import Provenance
from classex_bayes.task.rank_table import N_GRID
from classex_bayes.typing import FloatArray, IntArray

_WARN_AT, _REFUSE_AT = 2.0, 4.0
_SMALLEST_EFFECT = 2.0  # by default


@dataclass(frozen=True, eq=False)
class AccuracyCurve:
    """Accuracies measured at increasing numbers of classes on n instances.

    The events "instance i is correct among k classes" are nested, so
    Cov(k <= k') = a_k' (1 - a_k) deff / n.
    """

    n_classes: int
    k: IntArray
    values: FloatArray
    n_test: int
    design_effect: float

    made_from: ClassVar[str] = "accuracies"
    has_ranks: ClassVar[bool] = False
    why_unknown: ClassVar[str] = ""
    assumptions: ClassVar[tuple[str, ...]] = ()
    is_exact: ClassVar[bool] = False
    is_simple_random: ClassVar[bool] = True
    has_one_size: ClassVar[bool] = True
    has_scores: ClassVar[bool] = False
    competitors_shared: ClassVar[bool] = True
    has_influence: ClassVar[bool] = True
    competitors_unseen: ClassVar[bool] = False
    always_lost: ClassVar[None] = None
    answered_share: ClassVar[float] = 1.0
    distance: ClassVar[None] = None
    several_relevant: ClassVar[bool] = False
    provenance: ClassVar[Provenance] = Provenance("accuracies")

    @classmethod
    def checked(
        cls, k: Any, accuracy: Any, n_test: Any, n_classes: int, design_effect: Any
    ) -> Self:
        """Validate the arguments of `SourceTask.from_accuracies`."""
        counts = class_counts(k, largest=n_classes)
        accuracy = as_vector(accuracy, "accuracy")
        values = np.atleast_1d(as_numeric(accuracy, "accuracy")).astype(float)
        if values.shape != counts.shape:
            raise DataError(f"accuracy: found shape {values.shape} for {counts.size} values of k")
        bad = ~((values >= 0) & (values <= 1))
        if bad.any():
            raise DataError(
                f"accuracy: found {values[np.argmax(bad)]} at k = {counts[np.argmax(bad)]}; "
                "expected shares in [0, 1]"
            )
        order, n = np.argsort(counts), whole_number(n_test, "n_test", 1)
        if design_effect is None:
            typical = typical_dependence(n_classes, n, None).design_effect(n / n_classes)
            design_effect = max(typical, _SMALLEST_EFFECT)
        effect = number(design_effect, "design_effect", 1)
        curve = cls(n_classes, counts[order], values[order], n, effect)
        curve._refuse_rises()
        return curve

    def _refuse_rises(self) -> None:
        """Refuse accuracies that increase with k by more than their noise."""
        # Compared with the lowest accuracy before, so that several small increases add up.
        lowest = [int(np.argmin(self.values[: end + 1])) for end in range(self.values.size)]
        before = self.values[lowest]
        rise = self.values - before
        # The variance of a difference of nested shares: each instance is lost between the two k or
        # not.
        middle = (self.values + before) / 2
        floor = 1 / self.n_test
        spread = np.sqrt(
            2 * np.maximum(middle * (1 - middle), floor) * self.design_effect / self.n_test
        )
        size = rise / spread
        if size.max() <= _WARN_AT:
            return
        worst = int(np.argmax(size))
        message = (
            f"accuracy: increases from {before[worst]:.4g} at k = {self.k[lowest[worst]]} to "
            f"{self.values[worst]:.4g} at k = {self.k[worst]}, {size[worst]:.1f} standard "
            "deviations; expected accuracy cannot increase with the number of classes"
        )
        if size[worst] > _REFUSE_AT:
            raise DataError(f"{message}. Check that k and accuracy belong together")
        warn(message, ExtrapolationWarning)

    @property
    def answered(self) -> Self:
        """The curve itself, which does not say which instances have no answer."""
        return self

    def grid(self, number: int = N_GRID) -> IntArray:
        """Return the numbers of classes with a known accuracy."""
        return self.k

    def metric_bounds(self, metric: Metric, k: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the measured accuracies at `k` twice; `k` must be among the measured numbers."""
        if not metric.is_accuracy:
            raise DataError(
                f"metric: found {metric.name!r}, expected 'accuracy', because the task was made "
                "from accuracies alone; make it with from_scores, from_embeddings or from_ranks"
            )
        accuracy = self.values[self._position(k)]
        return accuracy, accuracy

    def known_counts(self, metric: Metric, k: IntArray) -> IntArray:
        """Return the measured numbers among `k` for the accuracy, and none for other metrics."""
        return k[np.isin(k, self.k)] if metric.is_accuracy else k[:0]

    def covariance(self, k: IntArray) -> FloatArray:
        """Covariance of the accuracies at `k`: shape (n_k, n_k)."""
        # Half an instance keeps the variance of a perfect or hopeless accuracy positive.
        share = (self.metric_bounds(Accuracy(), k)[0] * self.n_test + 0.5) / (self.n_test + 1)
        nested = np.minimum.outer(share, share) * (1 - np.maximum.outer(share, share))
        return nested * self.design_effect / self.n_test

    @property
    def dependence(self) -> AnswerDependence:
        """Typical dependence of correct answers, because a curve does not determine it."""
        accuracy = float(self.values[-1]) if self.k[-1] == self.n_classes else None
        return typical_dependence(self.n_classes, self.n_test, accuracy)

    def _position(self, k: IntArray) -> IntArray:
        position = np.minimum(np.searchsorted(self.k, k), self.k.size - 1)
        missing = self.k[position] != k
        if missing.any():
            raise DataError(
                f"k: the task has no accuracy at {k[np.argmax(missing)]} classes; known values of "
                f"k are {', '.join(map(str, self.k[:8]))}{', ...' if self.k.size > 8 else ''}"
            )
        return position
