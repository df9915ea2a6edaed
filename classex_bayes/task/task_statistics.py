"""TaskStatistics: accuracies on the k1 classes of a task, and their covariance."""

from typing import Any, Self

import numpy as np

from classex_bayes.arguments import class_count, class_counts, how_many, seed_sequence
from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.dependence import AnswerDependence
from classex_bayes.core.metrics import Accuracy, named_metric
from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.core.ranks.ties import TieHandling
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import folded, html_block, html_facts
from classex_bayes.task.accuracy_curve import AccuracyCurve
from classex_bayes.task.class_labels import encode_labels
from classex_bayes.task.designed_losses import DesignedLosses
from classex_bayes.task.doubts import doubts_of
from classex_bayes.task.evidence import LossEvidence, MadeFrom
from classex_bayes.task.loss_intervals import LossIntervals
from classex_bayes.task.task_facts import task_facts, task_line
from classex_bayes.task.validation import (
    FEWEST_CLASSES,
    drawn_by_design,
    enough_classes,
    require_ranks,
)
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed

Tested = LossEvidence | LossIntervals | DesignedLosses


class TaskStatistics:
    """Accuracies, their covariance and the data they come from; made by `SourceTask`."""

    def __init__(
        self,
        evidence: Tested | AccuracyCurve,
        kind: MadeFrom,
        classes: list[Any] | None = None,
    ) -> None:
        self._evidence, self.kind, self.classes = evidence, kind, classes
        self.n_classes, self.n_test = evidence.n_classes, evidence.n_test

    @classmethod
    def _of(cls, evidence: Tested, kind: MadeFrom, classes: list[Any] | None) -> Self:
        """Task whose kind says why its ranks are unknown, if they are."""
        if isinstance(evidence, LossIntervals):
            kind = evidence.kind
        return cls(evidence, kind, classes)

    @property
    def evidence(self) -> LossEvidence:
        """Labels, weights, losses and scores. Raises `DataError` if only accuracies are known."""
        require_ranks(self)
        assert isinstance(self._evidence, LossEvidence)
        return self._evidence

    @property
    def has_ranks(self) -> bool:
        """Whether the rank of every instance is known. If not, `ranks` raises `DataError`."""
        return isinstance(self._evidence, LossEvidence)

    @property
    def intervals(self) -> LossIntervals | None:
        """Bounds of the losses, if ranks are known only within bounds."""
        return self._evidence if isinstance(self._evidence, LossIntervals) else None

    @property
    def designed(self) -> DesignedLosses | None:
        """Losses under the sampling design; None if classes were drawn one by one, equally."""
        return self._evidence if isinstance(self._evidence, DesignedLosses) else None

    @property
    def counted(self) -> LossEvidence | None:
        """Losses as counted, or the lowest ones within bounds; None for an accuracy curve."""
        if self.designed is not None:
            return self.designed.drawn
        if self.intervals is not None:
            return self.intervals.lowest
        return self.evidence if self.has_ranks else None

    @property
    def ranks(self) -> IntArray:
        """Rank of the true class of each test instance, 1 is best: shape (n_test,)."""
        return (self.evidence if self.designed is None else self.designed.drawn).losses + 1

    @property
    def y(self) -> IntArray:
        """Positions of the true classes, shape (n_test,)."""
        return self._tested.y

    @property
    def class_weight(self) -> FloatArray:
        """Weights of the test classes, summing to 1, shape (n_classes,)."""
        return self._tested.class_weight

    @property
    def instance_weight(self) -> FloatArray:
        """Weights of the test instances, summing to 1: class weight / repeats of the class."""
        return self._tested.instance_weight

    @property
    def _tested(self) -> Tested:
        """Evidence of single instances."""
        return self.designed or self.intervals or self.evidence

    @property
    def source(self) -> ScoreSource | None:
        """Source of the scores; None if they are not known."""
        return self._evidence.source

    @property
    def embedding_metric(self) -> str | None:
        """How embeddings are compared, such as "cosine"; None if there are none."""
        return getattr(self.source, "metric", None)

    @property
    def nearest_classes(self) -> NearestClasses:
        """Wrong classes that score best for each test instance, with their scores.

        A task with scores computes the lists on demand, in one pass over the scores, and keeps
        them. The lists contain 32 classes, or as many as the vector index returned
        (`SourceTask.from_search`).

        Returns
        -------
        NearestClasses
            Lists of equal length, best class first, and the score of the true class.

        Raises
        ------
        DataError
            If neither scores nor such lists are known.

        Examples
        --------
        >>> from classex_bayes import SourceTask
        >>> scores = [[0.9, 0.2, 0.1], [0.3, 0.5, 0.6], [0.1, 0.2, 0.7]]
        >>> SourceTask.from_scores(scores, [0, 1, 2]).nearest_classes.classes.tolist()
        [[1, 2], [2, 0], [1, 0]]
        """
        curve = isinstance(self._evidence, AccuracyCurve)
        if self.designed is not None:
            raise drawn_by_design("task", "a tail of scores")
        lists = None if curve else self._tested.nearest_classes
        if lists is None:
            raise DataError(
                f"task: it was made from {self.kind}, so it is unknown which wrong classes score "
                "best; make it with from_scores, from_embeddings, or from_search with distances"
            )
        return lists

    @property
    def ties(self) -> TieHandling:
        """Rule for competitors with the score of the true class."""
        return self._tested.ties

    @property
    def n_tied(self) -> int:
        """Number of (instance, competitor) pairs with equal scores."""
        return self._evidence.n_tied

    @property
    def n_touched(self) -> int:
        """Number of test instances whose true class is tied with a competitor."""
        return self._evidence.n_touched

    @property
    def doubts(self) -> tuple[str, ...]:
        """Sentences that say why the data may be faulty. `fit` warns of each."""
        return doubts_of(self)

    def grid(self, number: int = 12) -> IntArray:
        """Log-spaced numbers of classes from 2 to k1 at which the accuracy is known.

        Parameters
        ----------
        number : int
            Largest number of values to return.

        Returns
        -------
        int array, increasing
        """
        return self._evidence.grid(how_many(number, "number"))

    def accuracy(self, k: ClassCounts) -> FloatArray:
        """Average test accuracy ATA_k over all subsets of k source classes, k <= k1.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes in 2..n_classes.

        Returns
        -------
        array of shape (n_k,)
            Accuracies. At k = k1 this is the ordinary (class-weighted) test accuracy.

        Raises
        ------
        DataError
            If k is outside 2..n_classes, if an accuracy curve does not contain k, or if ranks are
            known only within bounds that do not determine the accuracy at k.

        See Also
        --------
        classex_bayes.core.subsets.average_test_accuracy : The formula.
        classex_bayes.accuracy_under_priors : The other interpretation of class weights.
        """
        return self._evidence.accuracy(class_counts(k, largest=self.n_classes))

    def accuracy_bounds(self, k: ClassCounts) -> tuple[FloatArray, FloatArray]:
        """Bounds of the average test accuracy if ranks are known only within bounds.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes in 2..n_classes.

        Returns
        -------
        lower, upper : arrays of shape (n_k,)
            ATA_k with every rank at its worst and at its best. Both equal `accuracy` if it is
            known.

        Raises
        ------
        DataError
            k as for `accuracy`.

        Examples
        --------
        >>> from classex_bayes import SourceTask
        >>> task = SourceTask.from_ranks([1, 1, 2, 3], range(4), n_classes=4, truncated_at=2)
        >>> [bound.round(3).tolist() for bound in task.accuracy_bounds([2, 4])]
        [[0.667, 0.5], [0.75, 0.5]]
        """
        counts = class_counts(k, largest=self.n_classes)
        if self.intervals is not None:
            return self.intervals.accuracy_bounds(counts)
        accuracy = self._evidence.accuracy(counts)
        return accuracy, accuracy

    def metric(self, metric: str, k: ClassCounts) -> FloatArray:
        """Average of a metric over all subsets of k source classes, k <= k1.

        Parameters
        ----------
        metric : str
            As in `BayesianExtrapolator.predict`: "accuracy", "accuracy@5" (= "recall@5"), "mrr",
            "mrr@10", "ndcg", "ndcg@10", "mean_rank" or "median_rank". At k = k1 the metric is
            computed directly from the ranks. Lists of the M best classes determine the metrics with
            m <= M there.
        k : int or array-like of int
            Numbers of classes in 2..n_classes.

        Returns
        -------
        array of shape (n_k,)
            Unbiased estimates of the expectation of the metric on k random classes. The median rank
            is an exception: it is the median over all subsets and instances together.

        Raises
        ------
        DataError
            If the metric is unknown, if it is not accuracy and only accuracies are known, if the
            bounds of the ranks do not determine it, or for k as in `accuracy`.

        Examples
        --------
        >>> from classex_bayes import SourceTask
        >>> task = SourceTask.from_ranks([1, 1, 2, 3], range(4), n_classes=4)
        >>> [task.metric(name, [2, 4]).round(3).tolist() for name in ("mrr", "mean_rank")]
        [[0.875, 0.708], [1.25, 1.75]]
        """
        chosen, counts = named_metric(metric), class_counts(k, largest=self.n_classes)
        if chosen == Accuracy():
            return self._evidence.accuracy(counts)
        if self.intervals is not None or self.designed is not None:
            return self._tested.metric(chosen, counts)
        require_ranks(self, f"the metric {metric!r}")
        return self.evidence.metric(chosen, counts)

    def accuracy_cov(self, k: ClassCounts) -> FloatArray:
        """Covariance of the average test accuracies at `k`.

        With scores the estimate is dyadic-cluster-robust. It takes one more pass over the scores,
        except at `grid()`. After `without_scores` it is interpolated between `grid()`, linearly in
        log k. With ranks alone it is 1.25 times the class-clustered covariance, or less if class
        weights are unequal. For an accuracy curve it is Cov(k <= k') = a_k' (1 - a_k) deff / n.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes in 2..n_classes.

        Returns
        -------
        array of shape (n_k, n_k)
            Covariance matrix, positive semidefinite.

        See Also
        --------
        classex_bayes.core.influence.Influence : The dyadic formula.
        """
        return self._evidence.covariance(class_counts(k, largest=self.n_classes))

    def design_effect(self) -> float:
        r"""Ratio of the variance of ATA_k to its variance with independent instances.

        Instances are dependent because they share competitors and, with repeats, classes. If fewer
        than 5 classes have errors, the design effect is :math:`n \sum_l w_l^2`, which is the mean
        number of repeats if weights are equal.

        Returns
        -------
        float
            Design effect, at least 1.

        See Also
        --------
        classex_bayes.core.influence.design_effect : The formula.
        """
        return self._evidence.design_effect

    @property
    def loss_bins(self) -> IntArray:
        """Largest number of losses (n_bins,) of each bin that the likelihood counts."""
        return self._tested.loss_bins

    def bin_probabilities(self, basis: RadialBasis) -> FloatArray:
        """Probability (n_bins, m) of each of `loss_bins` under each element of a basis."""
        return self._tested.bin_probabilities(basis)

    def loss_histogram(
        self, last_loss: IntArray, instance_group: IntArray | None = None
    ) -> FloatArray:
        """Weighted number of instances in each bin of losses.

        Parameters
        ----------
        last_loss : int array of shape (n_bins,)
            Largest number of losses of each bin, such as `loss_bins`.
        instance_group : int array of shape (n_test,), optional
            Group 0, 1, ... of each instance. Groups are counted separately.

        Returns
        -------
        array of shape (n_bins,) or (n_groups, n_bins)
            Counts, which sum to n_test. A loss that is known within bounds is spread evenly over
            these.

        Raises
        ------
        DataError
            If only accuracies are known.
        """
        return self._tested.histogram(last_loss, instance_group)

    @property
    def dependence(self) -> AnswerDependence:
        """Dependence between correct answers at k1, estimated from the task."""
        return self._evidence.dependence

    def subsample(self, n_classes: int, random_seed: RandomSeed = None) -> Self:
        """Task on some of the classes, drawn at random without replacement.

        Parameters
        ----------
        n_classes : int
            Number of classes to keep, 3..k1. If classes came in groups, whole groups are drawn
            until they contain at least this number.
        random_seed : int, SeedSequence or None
            Seed of the draw.

        Returns
        -------
        SourceTask
            The test instances of the drawn classes, scored on these classes.

        Raises
        ------
        DataError
            If the task has no scores and its ranks are known only within bounds or its classes were
            drawn by a sampling design.

        Notes
        -----
        A task made from ranks alone does not contain which class beat which. Each instance then
        keeps a hypergeometric share of the wrong classes that rank above the true one. This is
        unbiased for every ATA_k but loses the dependence between instances.
        """
        size = class_count(n_classes, "n_classes", self.n_classes, FEWEST_CLASSES)
        rng = np.random.default_rng(seed_sequence(random_seed))
        losses = self.designed
        if losses is not None and losses.design.is_grouped:
            return self.select(losses.design.draw(size, losses.tested_groups, rng), rng)
        kept = np.sort(rng.choice(self.n_classes, size, replace=False))
        return self.select(kept, rng)

    def select(self, kept: IntArray, rng: np.random.Generator | None = None) -> Self:
        """Task on the given classes. For tasks made from ranks see `subsample`.

        Parameters
        ----------
        kept : int array
            Positions of the classes to keep, without repetition, at least 3.
        rng : Generator, optional
            Generator that thins ranks whose scores are unknown.

        Returns
        -------
        SourceTask

        Raises
        ------
        DataError
            If positions are outside 0..k1 - 1, repeated, or too few.
        """
        places = encode_labels(kept, None, self.n_classes, None, "kept")
        enough_classes(places.size, "kept")
        if np.bincount(places).max() > 1:
            raise DataError(f"kept: expected different positions, found {places.tolist()}")
        names = self.classes and [self.classes[j] for j in places]
        evidence = self._tested.select(places, rng or np.random.default_rng())
        return self._of(evidence, self.kind, names)

    def without_scores(self) -> Self:
        """Task without its scores, with the statistics that were computed from them.

        The result is small enough to pickle. It contains ranks, labels, 24 numbers for each class,
        and `nearest_classes` with 64 numbers for each instance. Computing the latter may take
        another pass over the scores. `KDE`, costs and diagnosis need scores and do not accept it.
        `subsample` treats it like a task made from ranks.

        Returns
        -------
        SourceTask

        See Also
        --------
        classex_bayes.SourceTask.merge : Join tasks on parts of the test instances.
        """
        return type(self)(self._tested.without_source(), self.kind, self.classes)

    def __repr__(self) -> str:
        """Size, accuracy with its standard error, ties, and doubts about the data."""
        return "\n".join([task_line(self), *(folded(f"doubt: {doubt}") for doubt in self.doubts)])

    def _repr_html_(self) -> str:
        return html_block("SourceTask", html_facts(task_facts(self)))
