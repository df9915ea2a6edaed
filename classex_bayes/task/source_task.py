"""SourceTask: the tested classes, reduced to what extrapolation needs."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from classex_bayes.arguments import class_count, one_of, seed_sequence, truth_value
from classex_bayes.core.ranks.embeddings import EmbeddingMetric, Reduce
from classex_bayes.core.ranks.ties import TieHandling, Ties
from classex_bayes.exceptions import DataError
from classex_bayes.task.accuracy_curve import AccuracyCurve
from classex_bayes.task.class_labels import Untested, class_labels, class_names
from classex_bayes.task.classifier_scores import read_classifier
from classex_bayes.task.designed_losses import DesignedLosses
from classex_bayes.task.evidence import LossEvidence, MadeFrom
from classex_bayes.task.foreign_columns import refuse_foreign_columns
from classex_bayes.task.loss_intervals import mostly_decisions, with_open_ties, within_bounds
from classex_bayes.task.merge import merged
from classex_bayes.task.retrieval_runs import Missing, read_run
from classex_bayes.task.sampling_design import SamplingDesign
from classex_bayes.task.score_arguments import (
    LabelledScores,
    read_embeddings,
    read_ranks,
    read_scores,
)
from classex_bayes.task.search_results import read_distances, read_ids, search_results
from classex_bayes.task.task_statistics import TaskStatistics
from classex_bayes.task.validation import class_total, enough_classes
from classex_bayes.typing import RandomSeed


class SourceTask(TaskStatistics):
    r"""A classifier tested on k1 source classes.

    Make one by `from_scores`, `from_classifier`, `from_embeddings`, `from_ranks`, `from_search`,
    `from_run` or `from_accuracies`, or from files by `classex_bayes.read_task`. Ranks and the
    covariance of ATA_k at 12 log-spaced k are computed once, in one pass over the scores; the task
    refers to what it was made from and never copies it.

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
    n_touched : int
        Number of instances in such a pair.

    Notes
    -----
    The scores must be *marginal*: the score of a class may not depend on which other classes are
    present (jmlr2018, section 2.1). Softmax outputs of fixed logits keep the ranking and are fine.
    """

    @classmethod
    def from_scores(
        cls,
        scores: Any,
        y: Any,
        *,
        classes: Any = None,
        higher_is_better: bool = True,
        ties: TieHandling = "auto",
        class_weight: Any = None,
        untested: Untested = "error",
        inclusion: Any = None,
        class_groups: Any = None,
        sibling_share: float = 1.0,
        random_seed: RandomSeed = 0,
    ) -> Self:
        r"""Make a task from a matrix of scores.

        Parameters
        ----------
        scores : array-like of shape (n, k1), DataFrame, or array on a disk or device
            Score of every class for every test instance, like scikit-learn's `predict_proba` or
            `decision_function`. The columns of a pandas or polars frame name the classes, unless
            `y` holds positions; so do coordinates of xarray. Memory maps, HDF5 and Zarr arrays are
            read in blocks, once, in order; arrays of the array API (PyTorch, CuPy, JAX) are
            compared where they are; Dask arrays may be larger than memory (docs/dask.md). None of
            these is ever copied whole.
        y : array-like of shape (n,)
            True classes: positions of columns, or names if the classes are named. Rows go by
            position; an index of pandas that says otherwise is an error.
        classes : sequence of k1 names, optional
            Names of the columns. If all are text, numbers in `y` are positions.
        higher_is_better : bool
            False for distances.
        ties : {"auto", "random", "pessimistic", "optimistic", "unknown"}
            Rule for competitors that have the score of the true class. "random" breaks ties by an
            infinitesimal noise of each (seed, instance, class). With "pessimistic" such
            competitors win, with "optimistic" they lose. "unknown" keeps the interval of ranks
            that the ties allow. "auto" is "unknown" if most rows have two different scores, like
            one-hot decisions, and else "random".
        class_weight : array-like of shape (k1,) or mapping from class to weight, optional
            Prior probabilities of the test classes; equal by default. A mapping or pandas Series
            is read by name, an array in the order of the classes.
        untested : {"error", "competitors"}
            Classes without test instances are an error, or they compete.
        inclusion : array-like of shape (k1,) or mapping from class to probability, optional
            Probabilities in (0, 1] with which the classes came into the pilot; only their ratios
            count. A class of probability :math:`\pi` stands for :math:`1 / \pi` classes, as test
            class and as competitor (docs/sampling.md). Of n draws with replacement by chances p it
            is :math:`1 - (1 - p)^n`, and a class drawn twice is one class.
        class_groups : array-like of shape (k1,) or mapping from class to group, optional
            Groups, such as genera, authors or product families, that came into the pilot whole.
        sibling_share : float
            Share in [0, 1] of a class's siblings in the pilot that a larger set of classes
            contains: 1 if it consists of whole groups too, 0 if it has one class of each group,
            k / K if it has k random ones of K classes in all.
        random_seed : int, SeedSequence or None
            Seed of the noise that breaks ties; fixed, so the same scores have the same ranks.

        Returns
        -------
        SourceTask

        Raises
        ------
        DataError
            NaN or infinite scores, wrong shapes, labels outside the classes, fewer than 3 classes,
            a class without test instances, a competitor that is an index or a label by what it
            holds; the message names the first offending place.

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
        labelled = read_scores(scores, y, classes, higher_is_better)
        design = inclusion, class_groups, sibling_share
        return cls._scored("scores", labelled, ties, class_weight, untested, design, random_seed)

    @classmethod
    def from_embeddings(
        cls,
        probes: Any,
        gallery: Any,
        y: Any,
        *,
        metric: EmbeddingMetric = "sqeuclidean",
        gallery_y: Any = None,
        reduce: Reduce = "max",
        classes: Any = None,
        ties: TieHandling = "auto",
        class_weight: Any = None,
        untested: Untested = "error",
        inclusion: Any = None,
        class_groups: Any = None,
        sibling_share: float = 1.0,
        random_seed: RandomSeed = 0,
    ) -> Self:
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
            Embeddings of the templates; without `gallery_y`, one row for each class. The products
            are formed where the gallery is. The index of a pandas frame names the classes if `y`
            holds such names and not numbers that could be positions. Frames of probes and gallery
            must have the same order of columns.
        y : array-like of shape (n,)
            True classes: rows of `gallery`, or names (of `classes`, in `gallery_y` or in the index
            of `gallery`).
        metric : {"sqeuclidean", "cosine", "dot"}
            Score: minus the squared Euclidean distance, the cosine, or the dot product.
        gallery_y : array-like of shape (n_templates,), optional
            Class of each template if classes have several.
        reduce : {"max", "mean"}
            Score of a class from those of its templates.
        classes, ties, class_weight, untested, inclusion, class_groups, sibling_share, random_seed
            As in `from_scores`.

        Returns
        -------
        SourceTask

        Raises
        ------
        DataError
            As `from_scores`; also for zero vectors under the cosine, and for coordinates that
            number the rows or hold one number for each class.

        Examples
        --------
        >>> gallery = np.eye(3)
        >>> task = SourceTask.from_embeddings(gallery + 0.1, gallery, [0, 1, 2])
        >>> task.ranks.tolist()
        [1, 1, 1]
        """
        labelled = read_embeddings(
            probes, gallery, y, metric=metric, gallery_y=gallery_y, reduce=reduce, classes=classes
        )
        design = inclusion, class_groups, sibling_share
        return cls._scored(
            "embeddings", labelled, ties, class_weight, untested, design, random_seed
        )

    @classmethod
    def from_classifier(
        cls,
        clf: Any,
        X: Any,
        y: Any,
        *,
        ties: TieHandling = "auto",
        class_weight: Any = None,
        untested: Untested = "error",
        inclusion: Any = None,
        class_groups: Any = None,
        sibling_share: float = 1.0,
        random_seed: RandomSeed = 0,
    ) -> Self:
        """Make a task from a fitted classifier that follows the conventions of scikit-learn.

        Scores are distances if ``clf.predict`` goes by them. Otherwise they are the first of
        `decision_function`, `predict_joint_log_proba`, `predict_log_proba` and `predict_proba`
        whose best class is the predicted one most often (docs/from_sklearn.md).

        Parameters
        ----------
        clf : fitted classifier, pipeline or search
            With `classes_`, which name the classes of the task, and `predict`.
        X : array-like of shape (n, d), DataFrame, sparse matrix or list
            Test instances that are new to the classifier. Only one nearest neighbour can tell.
        y : array-like of shape (n,)
            True classes, in labels of ``clf.classes_``.
        ties, class_weight, untested, inclusion, class_groups, sibling_share, random_seed
            As in `from_scores`.

        Returns
        -------
        SourceTask

        Raises
        ------
        DataError
            A classifier without fit or scores, or with several outputs; labels that it has not
            seen; as `from_scores`.

        Warns
        -----
        DataWarning
            The best class is not the predicted one, or the classifier is not marginal
            (`measure_drift`). Predictions carry both as notes.

        Examples
        --------
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = [[0.0], [0.1], [1.0], [1.2], [3.0], [3.1]], ["a", "a", "b", "b", "c", "c"]
        >>> clf = GaussianNB().fit(X, y)
        >>> SourceTask.from_classifier(clf, [[0.2], [0.9], [2.0]], list("abc")).ranks.tolist()
        [1, 1, 2]
        """
        labelled = read_classifier(clf, X, y)
        design = inclusion, class_groups, sibling_share
        return cls._scored("scores", labelled, ties, class_weight, untested, design, random_seed)

    @classmethod
    def _scored(
        cls,
        kind: MadeFrom,
        labelled: LabelledScores,
        ties: TieHandling,
        class_weight: Any,
        untested: Untested,
        sampling: tuple[Any, Any, Any],
        random_seed: RandomSeed,
    ) -> Self:
        source, y, names = labelled
        design = SamplingDesign.read(*sampling, source.shape[1], names)
        one_of(ties, ("auto", "random", "pessimistic", "optimistic", "unknown"), "ties")
        rule: Ties = "random" if ties == "auto" or ties == "unknown" else ties
        labels = class_labels(y, *source.shape, names, class_weight, untested)
        tie_seed = int(seed_sequence(random_seed).generate_state(1, np.uint64)[0])
        refuse_foreign_columns(source, labels.y, names)
        evidence = LossEvidence.of_scores(source, labels.y, labels.weight, rule, tie_seed)
        if ties == "unknown" or (ties == "auto" and mostly_decisions(evidence)):
            if design is not None:
                raise DataError(
                    "inclusion, class_groups: found scores that leave ranks open (decisions, or "
                    "ties='unknown'), expected scores that rank the classes"
                )
            return cls._of(with_open_ties(evidence), kind, names)
        return cls(evidence if design is None else DesignedLosses.of(evidence, design), kind, names)

    @classmethod
    def from_ranks(
        cls,
        ranks: Any,
        y: Any,
        *,
        n_classes: int,
        truncated_at: int | None = None,
        classes: Any = None,
        class_weight: Any = None,
        untested: Untested = "error",
    ) -> Self:
        """Make a task from the rank of the true class of each test instance.

        Ranks are all that the model needs; without the scores the competitors' part of the
        variance is set by a factor of 1.25 on the class-clustered variance (less if classes weigh
        unequally), and `KDE` is unavailable.

        Parameters
        ----------
        ranks : array-like of int, shape (n,)
            1 (best) to n_classes: one more than the number of wrong classes that scored higher.
        y : array-like of shape (n,)
            True classes: positions 0..n_classes - 1, or names.
        n_classes : int
            k1.
        truncated_at : int, optional
            M, where ranks come from lists of the M best classes: every rank above M, such as
            M + 1, means that the true class is not in the list. Its rank is then known to lie
            in M + 1..n_classes, and accuracy is known near k1 alone (`accuracy_bounds`).
        classes, class_weight, untested
            As in `from_scores`.

        Returns
        -------
        SourceTask

        Raises
        ------
        DataError
            Ranks that are not whole numbers in 1..n_classes; labels as in `from_scores`; lists
            that are as long as there are classes.

        Examples
        --------
        >>> SourceTask.from_ranks([1, 1, 2, 3], [0, 1, 2, 3], n_classes=4).accuracy(4).tolist()
        [0.5]
        """
        k1 = class_total(n_classes)
        length = None
        if truncated_at is not None:
            length = class_count(truncated_at, "truncated_at", k1 - 1, 1)
        losses = read_ranks(ranks, y, k1, length) - 1
        names = class_names(classes, k1)
        labels = class_labels(y, losses.size, k1, names, class_weight, untested)
        lowest = highest = losses
        if length is not None:
            lowest, highest = np.minimum(losses, length), np.where(losses < length, losses, k1 - 1)
        return cls._of(within_bounds(labels.y, labels.weight, lowest, highest), "ranks", names)

    @classmethod
    def from_search(
        cls,
        ids: Any,
        y: Any,
        *,
        n_classes: int,
        distances: Any = None,
        classes: Any = None,
        higher_is_better: bool = False,
        class_weight: Any = None,
        untested: Untested = "error",
    ) -> Self:
        """Make a task from what a vector index returns, such as FAISS, hnswlib or pgvector.

        The rank of the true class is its place among the different classes of the list. If it is
        not there, its rank is known within bounds, as in `from_ranks` with `truncated_at`.

        Parameters
        ----------
        ids : array-like of shape (n, M)
            Classes of the nearest entries of the index for each test instance, best first:
            positions 0..n_classes - 1, or names. -1 stands behind the end of a shorter list. If a
            class has several entries in a row, the first one counts.
        y : array-like of shape (n,)
            True classes: positions 0..n_classes - 1, or names.
        n_classes : int
            k1, the number of classes in the index.
        distances : array-like of shape (n, M), optional
            Distances of these entries. With them the task has `nearest_classes`. Negative ones are
            allowed (1 - inner product); then a distance of 0 has no meaning.
        classes
            As in `from_scores`; needed if there are names.
        higher_is_better : bool
            True for similarities, such as inner products.
        class_weight, untested
            As in `from_scores`. An index mostly has classes that were not tested: "competitors".

        Returns
        -------
        SourceTask

        Raises
        ------
        DataError
            Classes outside of 0..n_classes - 1, a row without any, distances that are not sorted,
            not finite or of another shape; labels as in `from_scores`.

        Notes
        -----
        Scores that tie stay in the order of the index. The lists of `nearest_classes` are as long
        as 99% of the rows allow, 32 wrong classes at most; the few shorter ones end in class -1
        with score -inf. An approximate index may miss a true class that is near: accuracies are
        those of the index, not of the embeddings.

        Examples
        --------
        >>> ids, distances = [[0, 2], [2, 1], [1, 0]], [[0.1, 0.5], [0.2, 0.3], [0.4, 0.6]]
        >>> task = SourceTask.from_search(ids, [0, 1, 2], n_classes=3, distances=distances)
        >>> task.ranks.tolist(), task.nearest_classes.scores.tolist()
        ([1, 2, 3], [[-0.5], [-0.2], [-0.4]])
        """
        k1, higher = class_total(n_classes), truth_value(higher_is_better, "higher_is_better")
        names = class_names(classes, k1)
        lists = read_ids(ids, k1, names)
        if distances is not None:
            distances = read_distances(distances, lists)
        labels = class_labels(y, len(lists), k1, names, class_weight, untested)
        results = search_results(lists, labels.y, k1, distances, higher)
        return cls._of(within_bounds(labels.y, labels.weight, *results), "ranks", names)

    @classmethod
    def from_run(
        cls,
        qrels: Any,
        run: Any,
        *,
        n_classes: int,
        relevance_level: int = 1,
        missing: Missing = "error",
    ) -> Self:
        """Make a task from a run of a retrieval system and the relevance judgements, as of TREC.

        A class is a document of the corpus, and its test instances are queries. Of several
        relevant documents of a query the best ranked counts: accuracy among the m best is
        success@m, and MRR is as usual, but recall@m and nDCG@m count one relevant document.

        Parameters
        ----------
        qrels : mapping {query: {document: relevance}}, or DataFrame
            Judgements: whole numbers. Columns of a frame: query_id, doc_id, relevance.
        run : mapping {query: {document: score}}, or DataFrame
            Lists of documents, higher scores are better. Columns: query_id, doc_id, score.
        n_classes : int
            k1, the number of documents of the corpus, listed or not.
        relevance_level : int
            Documents of at least this relevance are relevant.
        missing : {"error", "unanswered", "unsearched"}
            Queries with relevant documents that the run has not: refused; answered by an empty
            list, as with ``trec_eval -c``; or left out, as without -c and in pytrec_eval.

        Returns
        -------
        SourceTask

        Raises
        ------
        DataError
            Queries that are missing, documents named twice in a list or more than n_classes in
            all, numbers that are not finite.

        Warns
        -----
        DataWarning
            Queries of the run that have no relevant document; they are left out.

        Notes
        -----
        Lists are sorted by score in single precision, and equal ones by the document's name, the
        last first, as in trec_eval. Every query weighs the same. A relevant document that is not
        listed ranks below the longest list, however short the query's own; how far is unknown, as
        in `from_ranks` with `truncated_at`. If no relevant document is listed, the class of a
        query is the first one in qrels. Predictions for more documents take these to be
        irrelevant to the queries.

        Examples
        --------
        >>> qrels = {"a": {"d1": 1}, "b": {"d2": 1}, "c": {"d3": 1}}
        >>> run = {"a": {"d1": 9.0, "d2": 8.0}, "b": {"d1": 5.0, "d2": 4.0}, "c": {"d4": 7.0}}
        >>> task = SourceTask.from_run(qrels, run, n_classes=10)
        >>> task.metric("recall@2", 10).round(3).tolist()
        [0.667]
        """
        k1 = class_total(n_classes)
        y, results = read_run(qrels, run, k1, relevance_level, missing)
        n_queries = np.bincount(y, minlength=k1)
        labels = class_labels(y, y.size, k1, None, n_queries, "competitors")
        return cls._of(within_bounds(labels.y, labels.weight, *results), "ranks", None)

    @classmethod
    def from_accuracies(
        cls, k: Any, accuracy: Any, *, n_test: int, n_classes: int, design_effect: float = 2.0
    ) -> Self:
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
        k1 = class_count(n_classes, "n_classes")
        enough_classes(k1, "n_classes")
        return cls(AccuracyCurve.checked(k, accuracy, n_test, k1, design_effect), "accuracies")

    @classmethod
    def merge(cls, parts: Iterable["SourceTask"], class_weight: Any = None) -> Self:
        """Put tasks on shards of the test instances together: one test, scored in parts.

        The result is that of the whole test: ranks in the order of the parts, and the exact
        covariance, from the sums that each part keeps. Merging is associative.

        Parameters
        ----------
        parts : iterable of SourceTask
            Tasks on the same k1 classes (all of them competitors in every part), the same rule
            for ties; each made with ``untested="competitors"`` if it does not test them all.
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
        For many files, one a shard of probes: put all probes of a class into one file, make a part
        of each file on any machine, call `without_scores` on it, pickle it, and merge what was
        pickled, at once or one by one. Instances of one class in several parts are put together
        only while the parts have their scores, which are then read again for these classes. Each
        part breaks ties by its own `random_seed`; costs and diagnosis, which walk through the
        scores of a merged task anew, may break them otherwise.

        Examples
        --------
        >>> scores = np.random.default_rng(1).normal(size=(6, 4))
        >>> y, rows = np.array([0, 0, 1, 1, 2, 3]), (slice(0, 4), slice(4, 6))
        >>> parts = [SourceTask.from_scores(scores[i], y[i], untested="competitors") for i in rows]
        >>> merged, whole = SourceTask.merge(parts), SourceTask.from_scores(scores, y)
        >>> bool(np.allclose(merged.accuracy_cov([2, 4]), whole.accuracy_cov([2, 4])))
        True
        """
        return cls(*merged(parts, class_weight))
