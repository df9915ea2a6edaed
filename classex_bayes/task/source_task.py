"""SourceTask: the tested classes, reduced to what extrapolation needs."""

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from classex_bayes.core.ranks.embeddings import EmbeddingScores, Metric, Reduce
from classex_bayes.core.ranks.sources import ScoreMatrix, ScoreSource
from classex_bayes.core.ranks.ties import Ties
from classex_bayes.exceptions import DataError
from classex_bayes.task import frames, validation
from classex_bayes.task.accuracy_curve import AccuracyCurve
from classex_bayes.task.dask_sources import DaskEmbeddings, DaskScores, dask_matrix, is_dask
from classex_bayes.task.evidence import LossEvidence
from classex_bayes.task.merge import merged
from classex_bayes.task.statistics import Kind, TaskStatistics
from classex_bayes.typing import RandomSeed

Untested = Literal["error", "competitors"]


class SourceTask(TaskStatistics):
    r"""A classifier tested on k1 source classes.

    Make one by `from_scores`, `from_embeddings`, `from_ranks` or `from_accuracies`, or from files
    by `classex_bayes.read_task`. Ranks and the covariance of ATA_k at 12 log-spaced k are computed
    once, in one pass over the scores; the task keeps a reference to what it was made from, never a
    copy.

    Attributes
    ----------
    n_classes : int
        k1, the number of source classes.
    n_test : int
        Number of test instances.
    ranks : int array of shape (n_test,)
        Rank of the true class of each instance, 1 is best (ties broken).
    y : int array of shape (n_test,)
        Position of the true class of each instance.
    classes : list or None
        Names of the classes, if given.
    n_tied : int
        Number of (instance, competitor) pairs with equal scores.

    Notes
    -----
    The scores must be *marginal*: the score of a class may not depend on which other classes are
    present (jmlr2018, section 2.2). Softmax outputs of fixed logits keep the ranking and are fine.
    """

    @classmethod
    def from_scores(
        cls,
        scores: Any,
        y: Any,
        *,
        classes: Any = None,
        higher_is_better: bool = True,
        ties: Ties = "random",
        class_weight: Any = None,
        untested: Untested = "error",
        random_seed: RandomSeed = None,
    ) -> "SourceTask":
        """Make a task from a matrix of scores.

        Parameters
        ----------
        scores : array-like of shape (n, k1), DataFrame, or array on a disk or device
            Score of every class for every test instance, like scikit-learn's `predict_proba` or
            `decision_function`. The columns of a pandas or polars frame name the classes, unless
            `y` holds positions. Memory maps, HDF5 and Zarr
            arrays are read in blocks, once, in order; arrays of the array API (PyTorch, CuPy, JAX)
            are compared where they are; Dask arrays may be larger than memory (docs/dask.md). None
            is ever copied whole.
        y : array-like of shape (n,)
            True classes: positions of columns, or names if the classes are named. Rows go by
            position; an index of pandas that says otherwise is an error.
        classes : sequence of k1 names, optional
            Names of the columns. If all are text, numbers in `y` are positions.
        higher_is_better : bool
            False for distances.
        ties : {"random", "pessimistic", "optimistic"}
            Does a competitor with the true class's score beat it? By one infinitesimal noise per
            (seed, instance, class); always; never.
        class_weight : array-like of shape (k1,) or mapping from class to weight, optional
            Prior probabilities of the test classes; equal by default. A mapping or pandas Series
            is read by name, an array in the order of the classes.
        untested : {"error", "competitors"}
            What to do with classes that no test instance belongs to.
        random_seed : int, SeedSequence or None
            Seed of the tie-breaking noise.

        Returns
        -------
        SourceTask

        Raises
        ------
        DataError
            NaN or infinite scores, wrong shapes, labels outside the classes, fewer than 3 classes,
            a class without test instances; the message names the first offending place.

        References
        ----------
        Zheng, Achanta and Benjamini, JMLR 19(65), 2018, section 2.

        Examples
        --------
        >>> scores = [[0.9, 0.2, 0.1], [0.3, 0.5, 0.6], [0.1, 0.2, 0.7]]
        >>> task = SourceTask.from_scores(scores, [0, 1, 2])
        >>> task.ranks.tolist(), task.accuracy([2, 3]).round(3).tolist()
        ([1, 2, 1], [0.833, 0.667])
        """
        higher_is_better = validation.truth_value(higher_is_better, "higher_is_better")
        source: ScoreSource
        if is_dask(scores):
            source = DaskScores(scores, higher_is_better)
        else:
            validation.refuse_swapped(scores, y, ("scores", "y"))
            frames.refuse_disorder(scores, y, ("scores", "y"))
            if frames.is_frame(scores):
                classes = validation.column_names(scores.columns, classes, y)
            source = ScoreMatrix(validation.as_matrix_anywhere(scores, "scores"), higher_is_better)
        validation.enough_classes(source.shape[1], "scores")
        return cls._from_source(
            source,
            "scores",
            y,
            validation.class_names(classes, source.shape[1]),
            ties,
            class_weight,
            untested,
            random_seed,
        )

    @classmethod
    def from_embeddings(
        cls,
        probes: Any,
        gallery: Any,
        y: Any,
        *,
        metric: Metric = "sqeuclidean",
        gallery_y: Any = None,
        reduce: Reduce = "max",
        classes: Any = None,
        ties: Ties = "random",
        class_weight: Any = None,
        untested: Untested = "error",
        random_seed: RandomSeed = None,
    ) -> "SourceTask":
        """Make a task from embeddings of test instances and class templates.

        The score matrix is never formed: blocks of rows are compared in single precision, and
        pairs too close to call are decided by the formula in double precision, so the ranks are
        those of double precision.

        Parameters
        ----------
        probes : array-like of shape (n, d), or array on a disk or device
            Embeddings of the test instances. They or the gallery may be Dask arrays, which may be
            larger than memory (docs/dask.md).
        gallery : array-like of shape (n_templates, d), or array on a disk or device
            Embeddings of the templates; without `gallery_y`, one row for each class. Where it is
            on a device, the products are formed there. Where it is a pandas frame, its index names
            the classes if `y` holds such names; an index of numbers in `y` that could as well be
            positions is an error. Frames of probes and gallery must have their columns in the
            same order.
        y : array-like of shape (n,)
            True classes: rows of `gallery`, or names (of `classes`, in `gallery_y` or in the index
            of `gallery`).
        metric : {"sqeuclidean", "cosine", "dot"}
            Score: minus the squared Euclidean distance, the cosine, or the dot product.
        gallery_y : array-like of shape (n_templates,), optional
            Class of each template where classes have several.
        reduce : {"max", "mean"}
            Score of a class from those of its templates.
        classes, ties, class_weight, untested, random_seed
            As in `from_scores`.

        Returns
        -------
        SourceTask

        Raises
        ------
        DataError
            As `from_scores`; also for zero vectors under the cosine.

        Examples
        --------
        >>> gallery = np.eye(3)
        >>> task = SourceTask.from_embeddings(gallery + 0.1, gallery, [0, 1, 2])
        >>> task.ranks.tolist()
        [1, 1, 1]
        """
        frames.refuse_disorder(probes, y, ("probes", "y"))
        frames.refuse_disorder(gallery, gallery_y, ("gallery", "gallery_y"))
        frames.refuse_other_columns(probes, gallery, ("probes", "gallery"))
        if gallery_y is None:
            classes = validation.row_names(gallery, classes, y)
        validation.one_of(metric, ("sqeuclidean", "cosine", "dot"), "metric")
        validation.one_of(reduce, ("max", "mean"), "reduce")
        in_dask = is_dask(probes) or is_dask(gallery)
        as_matrix = dask_matrix if in_dask else validation.as_matrix_anywhere
        probes, gallery = as_matrix(probes, "probes"), as_matrix(gallery, "gallery")
        if probes.shape[1] != gallery.shape[1]:
            raise DataError(
                f"probes, gallery: found {probes.shape[1]} and {gallery.shape[1]} coordinates, "
                "expected the same number"
            )
        if not in_dask:
            validation.finite_embeddings(probes, "probes", metric)
            validation.finite_embeddings(gallery, "gallery", metric)
        if gallery_y is None:
            template_class = np.arange(gallery.shape[0])
        else:
            labels = validation.as_vector(gallery_y, "gallery_y")
            if classes is None:
                try:
                    classes = np.unique(labels).tolist()
                except TypeError:
                    raise DataError("gallery_y: labels of different types; pass classes=") from None
                validation.refuse_positions(y, classes, "gallery_y")
            classes = validation.class_names(classes, None)
            template_class = validation.encode_templates(gallery_y, gallery.shape[0], classes)
        n_classes = int(template_class.max()) + 1
        validation.enough_classes(n_classes, "gallery")
        make = DaskEmbeddings if in_dask else EmbeddingScores
        return cls._from_source(
            make(probes, gallery, template_class, metric, reduce),
            "embeddings",
            y,
            validation.class_names(classes, n_classes),
            ties,
            class_weight,
            untested,
            random_seed,
        )

    @classmethod
    def _from_source(
        cls,
        source: ScoreSource,
        kind: Kind,
        y: Any,
        classes: list[Any] | None,
        ties: Ties,
        class_weight: Any,
        untested: Untested,
        random_seed: RandomSeed,
    ) -> "SourceTask":
        validation.one_of(ties, ("random", "pessimistic", "optimistic"), "ties")
        n, n_classes = source.shape
        labels = validation.encode_labels(y, n, n_classes, classes)
        validation.tested_classes(labels, n_classes, classes, untested)
        weight = validation.class_weights(class_weight, labels, n_classes, classes)
        tie_seed = int(validation.seed_sequence(random_seed).generate_state(1, np.uint64)[0])
        evidence = LossEvidence(
            n_classes, labels, weight, source=source, ties=ties, tie_seed=tie_seed
        )
        return cls(evidence, kind, classes)

    @classmethod
    def from_ranks(
        cls,
        ranks: Any,
        y: Any,
        *,
        n_classes: int,
        classes: Any = None,
        class_weight: Any = None,
        untested: Untested = "error",
    ) -> "SourceTask":
        """Make a task from the rank of the true class of each test instance.

        Ranks are all that the model needs; without the scores the competitors' part of the
        variance is set by a factor of 1.25 on the class-clustered variance, and `KDE` is
        unavailable.

        Parameters
        ----------
        ranks : array-like of int, shape (n,)
            1 (best) to n_classes: one more than the number of wrong classes that scored higher.
        y : array-like of shape (n,)
            True classes: positions 0..n_classes - 1, or names.
        n_classes : int
            k1.
        classes, class_weight, untested
            As in `from_scores`.

        Returns
        -------
        SourceTask

        Raises
        ------
        DataError
            Ranks that are not whole numbers in 1..n_classes; labels as in `from_scores`.

        Examples
        --------
        >>> SourceTask.from_ranks([1, 1, 2, 3], [0, 1, 2, 3], n_classes=4).accuracy(4).tolist()
        [0.5]
        """
        frames.refuse_disorder(ranks, y, ("ranks", "y"))
        n_classes = validation.class_count(n_classes, "n_classes")
        validation.enough_classes(n_classes, "n_classes")
        names = validation.class_names(classes, n_classes)
        losses = validation.whole_ranks(ranks, n_classes) - 1
        labels = validation.encode_labels(y, losses.size, n_classes, names)
        validation.tested_classes(labels, n_classes, names, untested)
        weight = validation.class_weights(class_weight, labels, n_classes, names)
        return cls(LossEvidence(n_classes, labels, weight, losses=losses), "ranks", names)

    @classmethod
    def from_accuracies(
        cls,
        k: Any,
        accuracy: Any,
        *,
        n_test: int,
        n_classes: int,
        design_effect: float = 2.0,
    ) -> "SourceTask":
        """Make a task from a bare accuracy curve.

        Parameters
        ----------
        k : array-like of int, shape (n_k,)
            Numbers of classes, 2..n_classes.
        accuracy : array-like of shape (n_k,)
            Average test accuracy at each k.
        n_test : int
            Number of test instances behind the curve.
        n_classes : int
            k1, the number of source classes behind the curve.
        design_effect : float
            How many times larger the variance is than that of independent instances.

        Returns
        -------
        SourceTask

        Raises
        ------
        DataError
            Accuracies outside [0, 1], or rising in k by more than 4 standard deviations.

        Warns
        -----
        ExtrapolationWarning
            Accuracies rising in k by more than 2 standard deviations.

        Examples
        --------
        >>> task = SourceTask.from_accuracies([2, 10], [0.99, 0.95], n_test=50, n_classes=10)
        >>> task.accuracy(10).tolist()
        [0.95]
        """
        n_classes = validation.class_count(n_classes, "n_classes")
        validation.enough_classes(n_classes, "n_classes")
        return cls(
            AccuracyCurve.checked(k, accuracy, n_test, n_classes, design_effect), "accuracies"
        )

    @classmethod
    def merge(cls, parts: Iterable["SourceTask"], class_weight: Any = None) -> "SourceTask":
        """Put tasks on shards of the test instances together: one test, scored in parts.

        The result is that of the whole test: ranks in the order of the parts, and the exact
        covariance, from the sums that each part keeps. Merging is associative.

        Parameters
        ----------
        parts : iterable of SourceTask
            Tasks on the same k1 classes (all of them competitors in every part), the same rule
            for ties; each made with ``untested="competitors"`` where it does not test them all.
        class_weight : array-like of shape (k1,) or mapping from class to weight, optional
            Weights of the test classes of the whole, with which the parts were made as well;
            equal by default.

        Returns
        -------
        SourceTask
            With scores if all parts have them. If a part was made from ranks, the whole counts
            as made from ranks.

        Raises
        ------
        DataError
            Parts that differ in classes or ties, weights that differ within a part from those of
            the whole, parts made from accuracies; instances of one class in several parts that
            have no scores any more.

        Notes
        -----
        For many files, one a shard of probes, sort or split the probes so that all those of a
        class are in one file; make one part a file, on any machine, let go of its scores by
        `without_scores`, pickle it, and merge what was pickled (all at once, or one by one with
        what has been merged before). Instances of one class in several
        parts are put together as well while the parts have their scores, which are then read
        again for these classes. Each part breaks its ties by its own `random_seed`; costs and
        diagnosis, which walk through the scores of a merged task anew, may break them otherwise.

        Examples
        --------
        >>> scores = np.random.default_rng(1).normal(size=(6, 4))
        >>> y = np.array([0, 0, 1, 1, 2, 3])
        >>> parts = [
        ...     SourceTask.from_scores(scores[rows], y[rows], untested="competitors")
        ...     for rows in (slice(0, 4), slice(4, 6))
        ... ]
        >>> merged, whole = SourceTask.merge(parts), SourceTask.from_scores(scores, y)
        >>> bool(np.all(merged.ranks == whole.ranks))
        True
        >>> bool(np.allclose(merged.accuracy_cov([2, 4]), whole.accuracy_cov([2, 4])))
        True
        """
        evidence, kind, classes = merged(parts, class_weight)
        return cls(evidence, kind, classes)
