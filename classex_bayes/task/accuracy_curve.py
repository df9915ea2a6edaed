"""Tests of which tables were printed: an accuracy curve, and the variance without true classes."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from classex_bayes.arguments import (
    class_counts,
    number,
    number_of_text,
    whole_number,
    whole_numbers,
)
from classex_bayes.array_access import as_numeric, as_vector, contents
from classex_bayes.core.dependence import AnswerDependence, typical_dependence
from classex_bayes.core.metrics import Accuracy, Metric
from classex_bayes.exceptions import DataError, ExtrapolationWarning, warn
from classex_bayes.task.provenance import Provenance
from classex_bayes.task.rank_table import N_GRID, RankTable
from classex_bayes.typing import FloatArray, IntArray

_WARN_AT, _REFUSE_AT = 2.0, 4.0
_SMALLEST_EFFECT = 2.0  # by default


def printed_shares(values: Any, name: str, places: IntArray, place: str) -> FloatArray:
    """Shares in [0, 1] of a printed table, one for each of `places`, such as numbers of classes.

    Text may be a number or a percentage.
    """
    vector = np.atleast_1d(as_vector(values, name))
    if contents(vector) == "text":
        vector = np.array([_share_of_text(value, name) for value in vector.tolist()])
    shares = as_numeric(vector, name).astype(float)
    if shares.shape != places.shape:
        raise DataError(f"{name}: found shape {shares.shape} for {places.size} values of {place}")
    bad = ~((shares >= 0) & (shares <= 1))
    if bad.any():
        first = int(np.argmax(bad))
        are_percentages = bool(shares.max() > 1 and shares.min() >= 0 and shares.max() <= 100)
        raise DataError(
            f"{name}: found {shares[first]:g} at {place} = {places[first]}; expected shares in "
            f"[0, 1]{'; divide percentages by 100' * are_percentages}"
        )
    return shares


def _share_of_text(text: str, name: str) -> float:
    try:
        return number_of_text(text)
    except ValueError:
        raise DataError(f"{name}: found {text!r}, expected a number or percentage") from None


def effect_without_labels(
    n_classes: int, n_test: int, design_effect: Any = None, *, are_shared: bool = True
) -> float:
    r"""Design effect of a test whose true classes are unknown: as given, or a typical one.

    It is :math:`1 + 0.2 (r - 1) + 0.08 r` with r = n_test / n_classes, and at least 2. Instances
    that share neither classes nor competitors are independent.
    """
    if design_effect is not None:
        return number(design_effect, "design_effect", 1)
    if not are_shared:
        return 1.0
    typical = typical_dependence(n_classes, n_test).design_effect(n_test / n_classes)
    return max(typical, _SMALLEST_EFFECT)


@dataclass(frozen=True, eq=False)
class AccuracyCurve:
    """Accuracies measured at increasing numbers of classes, on the same or on other instances."""

    n_classes: int
    k: IntArray
    values: FloatArray
    n_test: int  # all instances
    design_effect: float
    n_each: IntArray | None = None  # (n_k,): instances of each k; None if they are the same

    has_ranks: ClassVar[bool] = False
    is_labelled: ClassVar[bool] = False
    made_from: ClassVar[str] = "accuracies"
    why_unknown: ClassVar[str] = ""
    assumptions: ClassVar[tuple[str, ...]] = ()
    is_exact: ClassVar[bool] = False
    is_simple_random: ClassVar[bool] = True
    has_one_size: ClassVar[bool] = True
    has_scores: ClassVar[bool] = False
    competitors_shared: ClassVar[bool] = True
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
        values = printed_shares(accuracy, "accuracy", counts, "k")
        several, order = np.ndim(n_test) > 0, np.argsort(counts)
        if several:
            n = whole_numbers(n_test, "n_test", 1, counts.size).astype(np.int64)
        else:
            n = np.array([whole_number(n_test, "n_test", 1)])
        curve = cls(
            n_classes,
            counts[order],
            values[order],
            int(n.sum()),
            effect_without_labels(n_classes, int(n.max()), design_effect),
            n[order] if several else None,
        )
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
        n = self.instances(self.k)
        n = np.minimum(n, n[lowest])
        spread = np.sqrt(2 * np.maximum(middle * (1 - middle), 1 / n) * self.design_effect / n)
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

    def instances(self, k: IntArray) -> IntArray:
        """Numbers (n_k,) of instances on which the accuracies at `k` were measured."""
        if self.n_each is None:
            return np.full(k.size, self.n_test)
        return self.n_each[self._position(k)]

    def _position(self, k: IntArray) -> IntArray:
        position = np.minimum(np.searchsorted(self.k, k), self.k.size - 1)
        missing = self.k[position] != k
        if missing.any():
            raise DataError(
                f"k: the task has no accuracy at {k[np.argmax(missing)]} classes; known values of "
                f"k are {', '.join(map(str, self.k[:8]))}{', ...' if self.k.size > 8 else ''}"
            )
        return position


@dataclass(frozen=True, eq=False)
class UnlabelledVariance:
    r"""Variance of the accuracies of a test whose true classes are unknown.

    The events "instance i is correct among k classes" are nested, so
    :math:`Cov(ATA_k, ATA_{k'}) = a_{k'} (1 - a_k) \mathrm{deff} / n` for k <= k'. Accuracies at
    different k that were measured on instances of their own are independent.
    """

    table: RankTable | AccuracyCurve

    has_influence: ClassVar[bool] = True  # as if it were known, because nothing else is
    competitors_unseen: ClassVar[bool] = False
    always_lost: ClassVar[None] = None

    @property
    def design_effect(self) -> float:
        """Design effect of the test, as given or typical."""
        assert self.table.design_effect is not None
        return self.table.design_effect

    def covariance(self, k: IntArray) -> FloatArray:
        """Covariance of the accuracies at `k`: shape (n_k, n_k)."""
        table, (accuracy, _) = self.table, self.table.metric_bounds(Accuracy(), k)
        n, is_joint = np.full(k.size, table.n_test), True
        if isinstance(table, AccuracyCurve):
            n, is_joint = table.instances(k), table.n_each is None
        # Half an instance keeps the variance of a perfect or hopeless accuracy positive.
        share = (accuracy * n + 0.5) / (n + 1)
        nested = np.minimum.outer(share, share) * (1 - np.maximum.outer(share, share))
        return (nested if is_joint else np.diag(np.diag(nested))) * self.design_effect / n

    @property
    def dependence(self) -> AnswerDependence:
        """Typical dependence of correct answers, because such a test does not determine it."""
        table = self.table
        # Candidates of each instance's own are not shared, and users are the classes.
        n_classes = table.n_classes if table.competitors_shared else table.n_test
        return typical_dependence(n_classes, table.n_test)
