"""Evidence: what a task knows, as one interface.

It is implemented by an accuracy curve (`classex_bayes.task.accuracy_curve`), by ranks, exact or
within bounds (`classex_bayes.task.rank_evidence`), and by ranks of classes that were drawn by a
design (`classex_bayes.task.designed_ranks`). What an implementation cannot do raises its own error.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, NoReturn, Self

import numpy as np

from classex_bayes.core.basis import Basis, n_better_bins
from classex_bayes.core.dependence import AnswerDependence
from classex_bayes.core.metrics import Accuracy, Metric
from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.core.ranks.rank_counts import RankCounts
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.core.ranks.ties import TieHandling
from classex_bayes.exceptions import DataError
from classex_bayes.task.check import Check
from classex_bayes.typing import FloatArray, IntArray

MadeFrom = Literal[  # what a task is made from
    "scores", "embeddings", "ranks", "accuracies", "decisions", "tied scores", "cut ranks"
]
FEWEST_ERRING_CLASSES = 5
N_GRID = 12
WITH_SCORES = "make it with from_scores or from_embeddings"
WITH_RANKS = "make it with from_scores, from_embeddings or from_ranks"
# Values count as known if their bounds differ by no more than this.
KNOWN = 1e-6


class Evidence(ABC):
    """Accuracies on the k1 classes of a test, their covariance, and what they come from."""

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """Number of classes, k1."""

    @property
    @abstractmethod
    def n_test(self) -> int:
        """Number of test instances."""

    @property
    @abstractmethod
    def kind(self) -> MadeFrom:
        """What the task is made from."""

    @property
    @abstractmethod
    def design_effect(self) -> float:
        """Inflation of the variance of ATA_k by the dependence between instances."""

    @property
    @abstractmethod
    def dependence(self) -> AnswerDependence:
        """Dependence between correct answers at k1."""

    @property
    def is_exact(self) -> bool:
        """Whether every rank is known, among classes that were drawn one by one, equally."""
        return False

    @property
    def has_influence(self) -> bool:
        """Whether the competitors' part of the variance is estimated; else a fit widens for it."""
        return True

    @property
    def is_designed(self) -> bool:
        """Whether classes were drawn with unequal probabilities or in groups."""
        return False

    @property
    def has_scores(self) -> bool:
        """Whether scores of the nearest wrong classes are known."""
        return False

    @abstractmethod
    def grid(self, number: int = N_GRID) -> IntArray:
        """Log-spaced numbers of classes at which the accuracy is known; there may be none."""

    @abstractmethod
    def metric_bounds(self, metric: Metric, k: IntArray) -> tuple[FloatArray, FloatArray]:
        """Bounds (n_k,) of a metric over what is unknown of the ranks."""

    def metric(self, metric: Metric, k: IntArray) -> FloatArray:
        """Average (n_k,) of a metric over subsets of the classes; DataError if it is unknown."""
        lower, upper = self.metric_bounds(metric, k)
        unknown = upper - lower > KNOWN
        if unknown.any():
            first = int(np.argmax(unknown))
            raise DataError(
                f"k: {metric.name} at {k[first]} classes lies between {lower[first]:.4g} and "
                f"{upper[first]:.4g}, because {self.why_unknown}"
            )
        return (lower + upper) / 2

    def accuracy(self, k: IntArray) -> FloatArray:
        """Average test accuracy ATA_k: shape (n_k,)."""
        return self.metric(Accuracy(), k)

    @abstractmethod
    def known_counts(self, metric: Metric, k: IntArray) -> IntArray:
        """Numbers of classes among `k` (n_k,) at which a metric is known."""

    @abstractmethod
    def covariance(self, k: IntArray) -> FloatArray:
        """Covariance of ATA_k: shape (n_k, n_k), positive semidefinite."""

    @property
    def siblings(self) -> tuple[float, float, float] | None:
        """Effective numbers of instances that no sibling beats and of others, siblings present.

        None if classes did not come in groups.
        """
        return None

    @property
    def distance(self) -> str | None:
        """How embeddings are compared; None without embeddings."""
        return None

    @property
    def n_tied(self) -> int:
        """Number of (instance, competitor) pairs with equal scores."""
        return 0

    @property
    def why_unknown(self) -> str:
        """Why the accuracy is unknown at some k; empty if it is known at all."""
        return ""

    @property
    @abstractmethod
    def data(self) -> tuple[Any, ...]:
        """Arrays of numbers from which everything else follows."""

    @abstractmethod
    def checks(self, names: Sequence[Any] | None) -> list[Check]:
        """Checks of the data that read no scores. `names` are those of the classes."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Sentences for readers of a prediction about what it assumes of the data."""
        return ()

    def instances(self, user: str, name: str = "task") -> "InstanceEvidence":
        """The evidence itself, an `InstanceEvidence`, if it has the ranks of single instances.

        Otherwise raise a DataError that says that `user` needs them.
        """
        self._refuse(user, name=name)

    def undesigned(self, user: str, name: str = "task") -> Any:
        """The evidence itself if it has ranks of classes that were drawn one by one, equally.

        Otherwise raise a DataError that says that `user` needs them.
        """
        self._refuse(user, name=name)

    def exact(self, user: str, remedy: str = WITH_RANKS, name: str = "task") -> Any:
        """The evidence itself, a `RankEvidence`, if it is exact.

        Otherwise raise a DataError that says that `user` needs exact ranks.
        """
        self._refuse(user, remedy, name)

    def scores(self, user: str, remedy: str = WITH_SCORES) -> ScoreSource:
        """Scores of exact evidence, or a DataError that says that `user` needs them."""
        source: ScoreSource | None = self.exact(user, remedy).source
        if source is None:
            gone = "no longer has its" if self.kind in ("scores", "embeddings") else "has no"
            raise DataError(
                f"task: it was made from {self.kind} and {gone} scores, which {user} needs; "
                f"{remedy}"
            )
        return source

    @abstractmethod
    def _refuse(self, user: str, remedy: str = WITH_RANKS, name: str = "task") -> NoReturn:
        """Raise the DataError that `user` cannot be done with this evidence."""


@dataclass(frozen=True, eq=False)
class InstanceEvidence(Evidence):
    """Evidence of single test instances: positions `y` (n,) of their classes, and their losses.

    `class_weight` (k1,) are weights of the test classes, which sum to 1.
    """

    y: IntArray
    class_weight: FloatArray

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was computed on demand, so that equal data are equal when pickled."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def instances(self, user: str, name: str = "task") -> Self:
        """The evidence itself."""
        return self

    @cached_property
    def n_classes(self) -> int:
        """Number of classes, k1."""
        return self.class_weight.size

    @cached_property
    def n_test(self) -> int:
        """Number of test instances."""
        return self.y.size

    @cached_property
    def instance_weight(self) -> FloatArray:
        """Weights of the test instances, summing to 1: class weight / repeats of the class."""
        return instance_weights(self.y, self.class_weight)

    @property
    @abstractmethod
    def plain(self) -> Any:
        """The `RankEvidence` if classes had been drawn equally and unknown ranks were the best."""

    @property
    def distance(self) -> str | None:
        """How embeddings are compared; None without embeddings."""
        return getattr(self.plain.source, "distance", None)

    @property
    @abstractmethod
    def n_better(self) -> IntArray:
        """Number (n,) of wrong classes that beat each instance; DataError if it is unknown."""

    @property
    @abstractmethod
    def ties(self) -> TieHandling:
        """Rule for competitors with the score of the true class."""

    @property
    @abstractmethod
    def counts(self) -> RankCounts | None:
        """Losses as counted from the scores; None if scores were never known."""

    @property
    def n_tied(self) -> int:
        """Number of (instance, competitor) pairs with equal scores."""
        return 0 if self.counts is None else self.counts.tied

    @property
    def n_touched(self) -> int:
        """Number of instances whose true class is tied with a competitor."""
        if self.counts is None:
            return 0
        return int(np.count_nonzero(self.counts.lowest < self.counts.highest))

    @property
    @abstractmethod
    def nearest_classes(self) -> NearestClasses:
        """The wrong classes that score best for each instance; DataError if they are unknown."""

    @property
    def n_better_bins(self) -> IntArray:
        """Largest loss of each bin that the likelihood counts."""
        return n_better_bins(self.n_classes)

    def bin_probabilities(self, basis: Basis, *, thinned: bool = True) -> FloatArray:
        """Probability (n_bins, m) of each of `n_better_bins` under each element of a basis.

        `thinned` concerns instances that siblings beat (`DesignedRanks.bin_probabilities`).
        """
        return basis.bin_probabilities(self.n_better_bins, self.n_classes)

    @abstractmethod
    def histogram(self, bin_ends: IntArray, group: IntArray | None = None) -> FloatArray:
        """Weighted number of instances in each bin of losses, of each group; sums to n."""

    def draw(self, n_classes: int, rng: np.random.Generator) -> IntArray:
        """Positions of classes drawn as the classes of the task were drawn."""
        return np.sort(rng.choice(self.n_classes, n_classes, replace=False))

    @abstractmethod
    def select(self, kept: IntArray, rng: np.random.Generator) -> Self:
        """Evidence of the classes at positions `kept` alone."""

    @abstractmethod
    def without_source(self) -> Self:
        """Evidence without its scores, with the statistics that were computed from them."""


def instance_weights(y: IntArray, class_weight: FloatArray) -> FloatArray:
    """Weight of each instance: the weight of its class over the class's number of instances."""
    return class_weight[y] / np.bincount(y, minlength=class_weight.size)[y]
