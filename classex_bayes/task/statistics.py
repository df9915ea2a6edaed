"""What a source task knows: its instances, average test accuracies and their covariance."""

from typing import Any, Literal, Self

import numpy as np

from classex_bayes.core.dependence import AnswerDependence
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.core.ranks.ties import Ties
from classex_bayes.core.top_accuracy import average_top_accuracy
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import folded, html_block, html_facts, with_error
from classex_bayes.task import validation
from classex_bayes.task.accuracy_curve import AccuracyCurve
from classex_bayes.task.evidence import LossEvidence
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed

Kind = Literal["scores", "embeddings", "ranks", "accuracies"]


class TaskStatistics:
    """Statistics of k1 tested classes; the part of `SourceTask` beside its constructors."""

    def __init__(
        self, evidence: LossEvidence | AccuracyCurve, kind: Kind, classes: list[Any] | None = None
    ) -> None:
        self._evidence, self.kind, self.classes = evidence, kind, classes
        self.n_classes, self.n_test = evidence.n_classes, evidence.n_test

    @property
    def ranks(self) -> IntArray:
        """Rank of the true class of each test instance, 1 is best: shape (n_test,)."""
        return self.evidence.losses + 1

    @property
    def y(self) -> IntArray:
        """Positions of the true classes, shape (n_test,)."""
        return self.evidence.y

    @property
    def class_weight(self) -> FloatArray:
        """Weights of the test classes, summing to 1, shape (n_classes,)."""
        return self.evidence.class_weight

    @property
    def instance_weight(self) -> FloatArray:
        """Weights of the test instances, summing to 1: class weight / repeats of the class."""
        return self.evidence.instance_weight

    @property
    def source(self) -> ScoreSource | None:
        """Where the scores come from; None where they are not known."""
        return self._evidence.source if isinstance(self._evidence, LossEvidence) else None

    @property
    def ties(self) -> Ties:
        """How competitors with the true class's score were ordered."""
        return self.evidence.ties

    @property
    def tie_seed(self) -> int:
        """Seed of the noise that broke ties."""
        return self.evidence.tie_seed

    @property
    def n_tied(self) -> int:
        """Number of (instance, competitor) pairs with equal scores."""
        return self._evidence.n_tied if isinstance(self._evidence, LossEvidence) else 0

    @property
    def knows_competitors(self) -> bool:
        """Whether who beat whom is known, as the competitors' part of the variance needs."""
        return isinstance(self._evidence, LossEvidence) and self._evidence.statistics is not None

    @property
    def evidence(self) -> LossEvidence:
        """What the ranks and scores tell; refused if only accuracies are known."""
        if isinstance(self._evidence, AccuracyCurve):
            raise DataError(
                "task: it was made from accuracies alone and has no ranks; make it with "
                "from_scores, from_embeddings or from_ranks"
            )
        return self._evidence

    def grid(self, number: int = 12) -> IntArray:
        """Log-spaced numbers of classes from 2 to k1, or the known ones of a bare curve.

        Parameters
        ----------
        number : int
            At most how many.

        Returns
        -------
        int array
            Increasing.
        """
        return self._evidence.grid(validation.how_many(number, "number"))

    def accuracy(self, k: ClassCounts, top: int = 1) -> FloatArray:
        """Average test accuracy ATA_k over all subsets of k source classes, k <= k1.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes in 2..n_classes.
        top : int
            m, at least 1: an instance counts as correct if its class is among the m best of k.

        Returns
        -------
        array of shape (n_k,)
            At k = k1 the plain (class-weighted) test accuracy.

        Raises
        ------
        DataError
            k outside 2..n_classes, not whole, or not among the known ones of a bare curve; top
            not a whole number of at least 1, or above 1 for a bare curve.

        See Also
        --------
        classex_bayes.core.subsets.average_test_accuracy : The formula.
        classex_bayes.core.top_accuracy.average_top_accuracy : The formula for top above 1.
        """
        counts = validation.class_counts(k, largest=self.n_classes)
        best = int(validation.number(top, "top", 1, whole=True))
        if best == 1:
            return self._evidence.accuracy(counts)
        if isinstance(self._evidence, AccuracyCurve):
            raise DataError(
                f"top: found {best}, expected 1; the task was made from accuracies alone and has "
                "no ranks; make it with from_scores, from_embeddings or from_ranks"
            )
        weights = self.instance_weight
        return average_top_accuracy(self.evidence.losses, self.n_classes, counts, weights, best)

    def accuracy_cov(self, k: ClassCounts) -> FloatArray:
        """Covariance of the average test accuracies at `k`.

        Dyadic-cluster-robust where scores are known (one more pass over them, but for `grid()`;
        interpolated in log k between `grid()` once they are let go); 1.25 times the
        class-clustered covariance if only ranks are known;
        Cov(k <= k') = a_k' (1 - a_k) deff / n for a bare curve.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes in 2..n_classes.

        Returns
        -------
        array of shape (n_k, n_k)
            Positive semidefinite.

        See Also
        --------
        classex_bayes.core.influence.Influence : The dyadic formula.
        """
        return self._evidence.covariance(validation.class_counts(k, largest=self.n_classes))

    def design_effect(self) -> float:
        """How many times the dependence between instances inflates the variance of ATA_k.

        Instances share competitors and, with repeats, classes. With fewer than 5 classes that have
        errors the ratio of variances is unreliable and the mean number of repeats stands in.

        Returns
        -------
        float
            At least 1.

        See Also
        --------
        classex_bayes.core.influence.design_effect : The formula.
        """
        return self._evidence.design_effect

    @property
    def dependence(self) -> AnswerDependence:
        """How the right answers at k1 hang together, as far as the task tells."""
        return self._evidence.dependence

    def histogram(self, last_loss: IntArray) -> FloatArray:
        """Number of instances in each bin of losses = rank - 1; classes weigh the same.

        Parameters
        ----------
        last_loss : int array of shape (n_bins,)
            Largest loss of each bin (`classex_bayes.core.basis.loss_bins`).

        Returns
        -------
        array of shape (n_bins,)

        Raises
        ------
        DataError
            A task made from accuracies, or bins that do not end at n_classes - 1.
        """
        last = validation.as_numeric(last_loss, "last_loss")
        rising = last.ndim == 1 and last.size > 0 and np.all(np.diff(last, prepend=-1) > 0)
        if not (rising and np.all(last == np.floor(last)) and last[-1] == self.n_classes - 1):
            raise DataError(
                "last_loss: expected increasing whole numbers >= 0, the last of them "
                f"{self.n_classes - 1}, found {last_loss!r}"
            )
        return self.evidence.histogram(last.astype(np.int64))

    def subsample(self, n_classes: int, random_seed: RandomSeed = None) -> Self:
        """Task on some of the classes, drawn at random without replacement.

        Parameters
        ----------
        n_classes : int
            Number of classes to keep, 3..k1.
        random_seed : int, SeedSequence or None
            Seed of the draw.

        Returns
        -------
        SourceTask
            The test instances of the drawn classes, scored on the drawn classes.

        Notes
        -----
        A task made from ranks alone has forgotten who beat whom. There each instance keeps a
        hypergeometric share of the wrong classes above its own, which is right for every ATA_k on
        average but loses the dependence between instances.
        """
        few, many = validation.FEWEST_CLASSES, self.n_classes
        size = validation.class_count(n_classes, "n_classes", many, few)
        rng = np.random.default_rng(validation.seed_sequence(random_seed))
        kept = np.sort(rng.choice(self.n_classes, size, replace=False))
        return self.select(kept, rng)

    def select(self, kept: IntArray, rng: np.random.Generator | None = None) -> Self:
        """Task on given classes; see `subsample` for tasks made from ranks.

        Parameters
        ----------
        kept : int array
            Positions of the classes to keep, without repetition, at least 3.
        rng : Generator, optional
            Thins ranks whose scores are unknown.

        Returns
        -------
        SourceTask

        Raises
        ------
        DataError
            Positions outside 0..k1 - 1, repeated, or too few.
        """
        places = validation.encode_labels(kept, None, self.n_classes, None, "kept")
        validation.enough_classes(places.size, "kept")
        if np.unique(places).size < places.size:
            raise DataError(f"kept: expected different positions, found {places.tolist()}")
        evidence = self.evidence.select(places, rng or np.random.default_rng())
        names = None if self.classes is None else [self.classes[j] for j in places]
        return type(self)(evidence, self.kind, names)

    def without_scores(self) -> Self:
        """Task that has let go of its scores and keeps the statistics of the pass over them.

        Small enough to pickle and send: ranks, labels, and the sums behind the covariance at
        `grid()`, 24 numbers for each class. What looks at scores again (`KDE`, costs, diagnosis) is
        not available, and `subsample` treats it like a task made from ranks.

        Returns
        -------
        SourceTask

        See Also
        --------
        classex_bayes.SourceTask.merge : Puts shards of a test together again.
        """
        return type(self)(self.evidence.without_source(), self.kind, self.classes)

    def _accuracy_text(self) -> str:
        """Accuracy at k1, or at the largest known k, with its standard error."""
        grid = self.grid()
        error = float(np.sqrt(self.accuracy_cov(grid)[-1, -1]))
        text = with_error(float(self.accuracy(grid)[-1]), error)
        return text if grid[-1] == self.n_classes else f"{text} at k = {grid[-1]}"

    def __repr__(self) -> str:
        """Size, accuracy with its standard error, and ties."""
        ties = f", {self.n_tied:,} ties ({self.ties})" if self.n_tied else ""
        return folded(
            f"<SourceTask: {self.n_classes:,} classes, {self.n_test:,} test instances from "
            f"{self.kind}, accuracy {self._accuracy_text()}{ties}>"
        )

    def _repr_html_(self) -> str:
        facts = {
            "classes": f"{self.n_classes:,}",
            "test instances": f"{self.n_test:,}",
            "made from": self.kind,
            "accuracy": self._accuracy_text(),
            "design effect": f"{self.design_effect():.3g}",
        }
        if self.n_tied:
            facts["ties"] = f"{self.n_tied:,} ({self.ties})"
        return html_block("SourceTask", html_facts(facts))
