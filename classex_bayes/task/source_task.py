"""SourceTask: a tested classifier, made from scores, ranks or other data."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from classex_bayes.arguments import class_count, enough_classes, source_task
from classex_bayes.core.rank_pass import TieHandling
from classex_bayes.core.ranks.embeddings import Distance, Reduce
from classex_bayes.exceptions import DataError
from classex_bayes.task.accuracy_curve import AccuracyCurve
from classex_bayes.task.class_labels import Untested
from classex_bayes.task.classifier_scores import read_classifier
from classex_bayes.task.confusion import confusion_table
from classex_bayes.task.judged_runs import Missing, judged_run
from classex_bayes.task.own_negatives import catalogue_size, own_table, scored_table
from classex_bayes.task.recalls import recalls_table
from classex_bayes.task.relevant_ranks import Judged
from classex_bayes.task.sampling_design import Sampling
from classex_bayes.task.score_reading import (
    ranked_table,
    read_batches,
    read_embeddings,
    read_scores,
    table_of_scores,
)
from classex_bayes.task.search_results import search_table
from classex_bayes.task.table_parts import merged_table
from classex_bayes.task.task_statistics import TaskStatistics
from classex_bayes.typing import RandomSeed


class SourceTask(TaskStatistics):
    r"""A classifier tested on k1 source classes.

    Each constructor returns a task: `from_scores`, whose documentation has the arguments that they
    share, `from_embeddings`, `from_batches`, `from_classifier`, `from_ranks`, `from_negatives`,
    `from_search`, `from_run`, `from_confusion`, `from_recalls` and `from_accuracies`.
    `classex_bayes.read_task` reads one from files. Ranks and the covariance of ATA_k at 12
    log-spaced k are computed once, in one pass over the scores. The task refers to its arrays and
    never copies them.

    Attributes
    ----------
    n_classes : int
        Number of source classes, called k1.
    n_test : int
        Number of test instances.
    classes : list or None
        Names of the classes; None if no names were given. With negatives of each instance's own,
        names of the users.
    table : RankTable or AccuracyCurve
        What the task knows, for authors of estimators: `require` returns it or says what it lacks.

    Notes
    -----
    The scores must be *marginal*: the score of a class must not depend on which other classes are
    present. Probabilities are used like the fixed logits of their softmax.
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
        unanswered: Any = None,
        sampling: Sampling | None = None,
        random_seed: RandomSeed = 0,
    ) -> Self:
        r"""Make a task from scores: rows are test instances, and columns are classes.

        Parameters
        ----------
        scores : array-like of shape (n, k1), DataFrame, or array on a disk or device
            Score of every class for every test instance, like scikit-learn's `predict_proba` or
            `decision_function`, of at least 3 classes. A score of -inf rules a class out; all
            others are finite. Columns of a pandas or polars frame and coordinates of xarray name
            the classes, unless `y` contains positions. Memory maps, HDF5 and Zarr arrays are read
            in blocks, once, in order. Arrays of the array API (PyTorch, CuPy, JAX) are compared on
            their device. Dask arrays may be larger than memory (docs/data.md). Scores are not
            copied: an array that is changed later changes what `select` and `subsample` return.
        y : array-like of shape (n,)
            True classes: positions of columns, or names if the classes are named. Labels belong to
            rows by position. A pandas index in another order is an error.
        classes : sequence of k1 names, optional
            Names of the columns. If all names are text, numbers in `y` are positions.
        higher_is_better : bool
            Whether higher scores are better. Pass False for distances.
        ties : {"auto", "random", "pessimistic", "optimistic", "unknown"}
            Rule for competitors with the same score as the true class. "random" breaks ties by an
            infinitesimal noise of each (seed, instance, class). With "pessimistic" these
            competitors win, and with "optimistic" they lose. "unknown" keeps the interval of ranks
            that the ties allow. "auto" means "unknown" if most rows have only two different scores,
            like one-hot decisions, and "random" otherwise.
        class_weight : array-like of shape (k1,), mapping from class to weight or "instances"
            Prior probabilities of the test classes; equal by default. A mapping or pandas Series is
            read by name. An array is read in the order of the classes. With "instances" all test
            instances (users, queries) weigh alike.
        untested : {"error", "competitors"}
            Treatment of classes without test instances. "error" raises `DataError`. "competitors"
            keeps these classes as competitors of the tested ones.
        unanswered : array-like, optional
            True classes of further test instances without an answer, such as probes without a
            face, whose rows are not among the scores. They are misses at every k, as in the
            evaluations of NIST; in metrics of several ranks they are last.
        sampling : Sampling, optional
            How the classes were drawn, if with unequal probabilities or in groups.
        random_seed : int, SeedSequence or None
            Seed of the noise that breaks ties. By default the same scores give the same ranks.

        Notes
        -----
        Predictions assume that the score of a class does not change if classes are added. A softmax
        head that will be retrained for more classes is another classifier: see `measure_drift`.

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
        shared = ties, class_weight, untested, unanswered, sampling, random_seed
        return cls(*table_of_scores(labelled, *shared))

    @classmethod
    def from_embeddings(
        cls,
        probes: Any,
        gallery: Any,
        y: Any,
        *,
        distance: Distance = "sqeuclidean",
        gallery_y: Any = None,
        reduce: Reduce = "max",
        classes: Any = None,
        ties: TieHandling = "auto",
        class_weight: Any = None,
        untested: Untested = "error",
        unanswered: Any = None,
        sampling: Sampling | None = None,
        random_seed: RandomSeed = 0,
    ) -> Self:
        """Make a task from embeddings of test instances and class templates.

        The score matrix is never formed. Blocks of rows are compared in single precision. Close
        pairs are recomputed in double precision, so the ranks equal those of double precision.

        Parameters
        ----------
        probes : array-like of shape (n, d), or array on a disk or device
            Embeddings of the test instances. Dask arrays are accepted (docs/data.md).
        gallery : array-like of shape (n_templates, d), or array on a disk or device
            Embeddings of the templates. Without `gallery_y` there is one row for each class. Dot
            products are computed on the device of the gallery. The index of a pandas frame names
            the classes if `y` contains these names. Frames need the columns of `probes`.
        y : array-like of shape (n,)
            True classes: row numbers of `gallery`, or names that occur in `classes`, in `gallery_y`
            or in the index of `gallery`.
        distance : {"sqeuclidean", "cosine", "dot"}
            How embeddings are compared. The score is minus the squared Euclidean distance, the
            cosine, or the dot product.
        gallery_y : array-like of shape (n_templates,), optional
            Class of each template. Needed if a class has several templates.
        reduce : {"max", "mean"}
            How the score of a class is computed from the scores of its templates.
        classes, ties, class_weight, untested, unanswered, sampling, random_seed
            As in `from_scores`.

        Examples
        --------
        >>> gallery = np.eye(3)
        >>> task = SourceTask.from_embeddings(gallery + 0.1, gallery, [0, 1, 2])
        >>> task.ranks.tolist()
        [1, 1, 1]
        """
        labelled = read_embeddings(
            probes,
            gallery,
            y,
            distance=distance,
            gallery_y=gallery_y,
            reduce=reduce,
            classes=classes,
        )
        shared = ties, class_weight, untested, unanswered, sampling, random_seed
        return cls(*table_of_scores(labelled, *shared))

    @classmethod
    def from_batches(
        cls,
        batches: Any,
        *,
        gallery: Any = None,
        distance: Distance = "sqeuclidean",
        gallery_y: Any = None,
        reduce: Reduce = "max",
        classes: Any = None,
        higher_is_better: bool = True,
        ties: TieHandling = "auto",
        class_weight: Any = None,
        untested: Untested = "error",
        unanswered: Any = None,
        sampling: Sampling | None = None,
        random_seed: RandomSeed = 0,
    ) -> Self:
        """Make a task from batches of test instances, such as those of a DataLoader.

        The task is that of all instances at once, with the same ranks, covariance and
        `nearest_classes`, but without scores (docs/data.md). So `diagnose`, `KDE` and
        `BayesianRisk` do not accept it, and on a few of its classes (`subsample`) fits use ranks
        alone.

        Parameters
        ----------
        batches : iterable of pairs
            Pairs (scores, y) as in `from_scores`. With a `gallery`, pairs (embeddings, y) as in
            `from_embeddings`. A generator is read once.
        gallery : array-like of shape (n_templates, d), optional
            Embeddings of the templates.
        distance, gallery_y, reduce
            As in `from_embeddings`.
        classes, higher_is_better, ties, class_weight, untested, unanswered, sampling, random_seed
            As in `from_scores`.

        Examples
        --------
        >>> scores = np.array([[0.9, 0.2, 0.1], [0.3, 0.5, 0.6], [0.1, 0.2, 0.7]])
        >>> batches = [(scores[:2], [0, 1]), (scores[2:], [2])]
        >>> SourceTask.from_batches(batches).ranks.tolist()
        [1, 2, 1]
        """
        labelled = read_batches(
            batches, gallery, classes, higher_is_better, distance, gallery_y, reduce
        )
        shared = ties, class_weight, untested, unanswered, sampling, random_seed
        return cls(*table_of_scores(labelled, *shared))

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
        unanswered: Any = None,
        sampling: Sampling | None = None,
        random_seed: RandomSeed = 0,
    ) -> Self:
        """Make a task from a fitted classifier that follows the conventions of scikit-learn.

        Scores are the first of `decision_function`, `predict_joint_log_proba`, `predict_log_proba`
        and `predict_proba` whose best class is most often the predicted class. Those of
        `NearestCentroid` are distances, because its probabilities rescale the features.

        Parameters
        ----------
        clf : fitted classifier, pipeline or search
            Object with `predict` and `classes_`. The latter name the classes of the task.
        X : array-like of shape (n, d), DataFrame, sparse matrix or list
            Test instances as ``clf.predict`` accepts them. They must not be training rows, which
            cannot be detected.
        y : array-like of shape (n,)
            True classes, as labels of ``clf.classes_``.
        ties, class_weight, untested, unanswered, sampling, random_seed
            As in `from_scores`.

        Warns
        -----
        DataWarning
            If the scores disagree with `predict`. Predictions carry a note on this, and on a
            classifier that is not known to be marginal (`measure_drift`).

        Examples
        --------
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = [[0.0], [0.1], [1.0], [1.2], [3.0], [3.1]], ["a", "a", "b", "b", "c", "c"]
        >>> clf = GaussianNB().fit(X, y)
        >>> SourceTask.from_classifier(clf, [[0.2], [0.9], [2.0]], list("abc")).ranks.tolist()
        [1, 1, 2]
        """
        labelled = read_classifier(clf, X, y)
        shared = ties, class_weight, untested, unanswered, sampling, random_seed
        return cls(*table_of_scores(labelled, *shared))

    @classmethod
    def from_ranks(
        cls,
        ranks: Any,
        y: Any,
        *,
        n_classes: int | None = None,
        n_negatives: Any = None,
        pool: int | None = None,
        truncated_at: int | None = None,
        classes: Any = None,
        class_weight: Any = None,
        untested: Untested = "error",
        unanswered: Any = None,
    ) -> Self:
        """Make a task from the rank of the true class of each test instance.

        Without scores, the variance due to shared competitors cannot be estimated. The
        class-clustered variance is multiplied by 1.25 instead, or by less if class weights are
        unequal. `KDE` needs scores and is unavailable.

        Parameters
        ----------
        ranks : array-like of int, shape (n,)
            Ranks 1 (best) to n_classes: one more than the number of wrong classes that win. Halves,
            such as 1.5, are tied between two ranks ("realistic" ranks of knowledge graphs).
        y : array-like of shape (n,)
            True classes: positions 0..n_classes - 1, or names. With `n_negatives`, the user (or
            item) of each instance, by any label. Users weigh the same.
        n_classes : int, optional
            Number k1 of source classes. Either this or `n_negatives` is needed.
        n_negatives : int or int array of shape (n,), optional
            Number of negatives if each true class, such as the item that a user chose, was ranked
            among negatives of its own, drawn at random from the catalogue with equal probabilities
            (by popularity, predictions are about items drawn so). The true class is not among them.
            The task has k1 = n_negatives + 1 classes, and k counts the items that the true one is
            ranked among.
        pool : int, optional
            Number of classes that the candidates of all instances were drawn from, again and again,
            as in episodes of N ways (N-way K-shot). `y` is the class of each instance then. By
            default candidates are draws from the whole population.
        truncated_at : int, optional
            Length M of the lists, if ranks come from lists of the M best classes. Every rank above
            M, such as M + 1, means that the true class is not in the list. Its rank then lies in M
            + 1..n_classes, and accuracy is known only near k1 (`accuracy_bounds`).
        classes, class_weight, untested, unanswered
            As in `from_scores`.

        Examples
        --------
        >>> SourceTask.from_ranks([1, 1, 2, 3], [0, 1, 2, 3], n_classes=4).accuracy(4).item()
        0.5
        >>> task = SourceTask.from_ranks([1, 4, 30], ["ann", "bob", "eve"], n_negatives=99)
        >>> task.metric("hit_rate@10", 100).round(3).item()
        0.667
        """
        if n_negatives is not None:
            others = (n_classes, truncated_at, classes, class_weight)
            if any(other is not None for other in others) or untested != "error":
                raise DataError(
                    "n_negatives: found it together with arguments on shared classes, expected "
                    "only ranks and y, because each instance has negatives of its own"
                )
            return cls(*own_table(ranks, y, n_negatives, unanswered, pool))
        if pool is not None:
            raise DataError("pool: found it without n_negatives, expected both or none")
        shared = classes, class_weight, untested, unanswered
        return cls(*ranked_table(ranks, y, n_classes, truncated_at, *shared))

    @classmethod
    def from_negatives(
        cls,
        scores: Any,
        y: Any,
        *,
        higher_is_better: bool = True,
        ties: TieHandling = "auto",
        unanswered: Any = None,
        pool: int | None = None,
        random_seed: RandomSeed = 0,
    ) -> Self:
        """Make a task from scores of true items and of negatives that each of them has alone.

        It is that of `from_ranks` with `n_negatives`, which says how the negatives are drawn. Many
        tests of recommenders have this layout.

        Parameters
        ----------
        scores : array-like of shape (n, 1 + n_negatives)
            In each row, first the score of the true item, then those of its negatives, at least 2.
            NaN fills rows with fewer negatives, and -inf items that are not offered, such as those
            that the user already has, which are no negatives.
        y : array-like of shape (n,)
            User (or item) of each row, by any label. Users weigh the same.
        higher_is_better, ties, random_seed
            As in `from_scores`. There is no "unknown" order of ties, and "auto" means "random".
        unanswered : array-like, optional
            Users of further instances that had no list. They are misses at every k.
        pool
            As in `from_ranks`: for episodes of N ways, the number of classes behind them.

        References
        ----------
        Krichene and Rendle, "On sampled metrics for item recommendation", KDD 2020.

        Examples
        --------
        >>> scores = [[0.9, 0.1, 0.3], [0.2, 0.5, 0.1], [0.4, 0.8, 0.7]]
        >>> SourceTask.from_negatives(scores, ["ann", "bob", "eve"]).ranks.tolist()
        [1, 2, 3]
        """
        return cls(*scored_table(scores, y, higher_is_better, ties, unanswered, pool, random_seed))

    @classmethod
    def from_search(
        cls,
        ids: Any,
        y: Any,
        *,
        n_classes: int | None = None,
        own_candidates: bool = False,
        distances: Any = None,
        classes: Any = None,
        higher_is_better: bool = False,
        ignore_identical: bool = False,
        class_weight: Any = None,
        untested: Untested = "error",
        unanswered: Any = None,
    ) -> Self:
        """Make a task from the results of a vector index such as FAISS, hnswlib or pgvector.

        The rank of the true class is its place among the different classes of the list. If the list
        lacks the true class, its rank is known within bounds (`truncated_at` of `from_ranks`).

        Parameters
        ----------
        ids : array-like of shape (n, M)
            Classes of the nearest entries of the index for each test instance, best first:
            positions 0..n_classes - 1, or names. Entries of -1 are skipped. If a class
            occurs several times in a row, its first entry counts.
        y : array-like of shape (n,)
            True classes: positions 0..n_classes - 1, or names.
        n_classes : int
            Number k1 of classes in the index.
        own_candidates : bool
            Whether each list contains all candidates of its instance, drawn at random for it alone.
            Pass it in place of `n_classes`. The task is that of `from_ranks` with `n_negatives`.
        distances : array-like of shape (n, M), optional
            Distances of these entries. They are needed for `nearest_classes`. Negative distances,
            such as 1 - inner product, are allowed. A distance of 0 has no meaning then.
        classes
            As in `from_scores`. Needed if `ids` contains names.
        higher_is_better : bool
            Whether higher values are better. Pass True for similarities, such as inner products.
        ignore_identical : bool
            Whether to leave out the test instances themselves, which the index contains: of each
            list, the entry of the true class that is far nearer than usual (docs/data.md). Without
            distances, the first entry if it is of the true class.
        class_weight, untested, unanswered
            As in `from_scores`. Pass "competitors" if the index contains untested classes.

        Notes
        -----
        Equal distances are in random order, as in `from_scores`. A list ends before entries that
        are tied with its last one, because the index may have left out others. `nearest_classes`
        are as long as 99% of the rows allow, with at most 32 wrong classes; shorter lists are
        filled with class -1 and score -inf. Accuracies are those of the index (docs/data.md).

        Examples
        --------
        >>> ids, distances = [[0, 2], [2, 1], [1, 0]], [[0.1, 0.5], [0.2, 0.3], [0.4, 0.6]]
        >>> task = SourceTask.from_search(ids, [0, 1, 2], n_classes=3, distances=distances)
        >>> task.ranks.tolist(), task.nearest_classes.scores.tolist()
        ([1, 2, 3], [[-0.5], [-0.2], [-0.4]])
        """
        table, names = search_table(
            ids,
            y,
            n_classes,
            distances,
            classes,
            higher_is_better,
            ignore_identical,
            own_candidates,
            class_weight,
            untested,
            unanswered,
        )
        return cls(table, names)

    @classmethod
    def from_run(
        cls,
        qrels: Any,
        run: Any,
        *,
        n_classes: int | None = None,
        own_candidates: bool = False,
        relevance_level: int = 1,
        missing: Missing = "error",
        higher_is_better: bool = True,
        ignore_identical: bool = False,
    ) -> Self:
        """Make a task from a run of a retrieval system and relevance judgements, as in TREC.

        A class is a document of the corpus, and its test instances are queries. If a query has
        several relevant documents, most metrics count all, as in trec_eval: MAP, precision@m,
        recall@m, and nDCG@m with their relevance as gains. For accuracy, success@m and MRR the best
        ranked one counts.

        Parameters
        ----------
        qrels : mapping {query: {document: relevance}}, DataFrame, or judgements of other software
            Relevance, as whole numbers or as truth values. Columns of a frame: query_id, doc_id,
            relevance, or other usual names (docs/data.md). Also sets of relevant documents, Qrels
            of ranx and sequences of Qrel of ir_measures.
        run : mapping {query: {document: score}}, DataFrame, or run of other software
            Retrieved documents with scores, higher is better. Columns: query_id, doc_id, score.
            Also lists of documents, best first, Run of ranx and sequences of ScoredDoc.
        n_classes : int
            Number k1 of documents in the corpus, retrieved or not.
        own_candidates : bool
            As in `from_search`: the candidates of each query are its own, as in tests of rerankers.
        relevance_level : int
            Documents with at least this relevance are relevant. The gains of nDCG do not depend
            on it.
        missing : {"error", "unanswered", "unsearched"}
            Treatment of queries that have relevant documents and are missing in the run. "error"
            raises `DataError`. "unanswered" counts an empty list, like ``trec_eval -c``. A query
            with an empty list ranks last at every k. "unsearched" leaves the query out, like
            pytrec_eval.
        higher_is_better : bool
            Whether higher scores are better. Pass False for distances and places.
        ignore_identical : bool
            Whether to leave out the document that has the name of its query, as for corpora whose
            queries are documents.

        Warns
        -----
        DataWarning
            If queries of the run have no relevant document. They are left out.

        Notes
        -----
        Lists are sorted by score in single precision. Documents with equal scores are sorted by
        name in descending order, as in trec_eval. All queries have the same weight. A relevant
        document that is not listed ranks below the longest list, even if the query's own list is
        shorter. Its exact rank is unknown, as in `from_ranks` with `truncated_at`. The class of a
        query is its first relevant document in qrels, which is the same for every run, so that runs
        can be paired (`classex_bayes.compare_classifiers`). Predictions for more documents assume
        that these are irrelevant to the queries.

        Examples
        --------
        >>> qrels = {"a": {"d1": 1}, "b": {"d2": 1}, "c": {"d3": 1}}
        >>> run = {"a": {"d1": 9.0, "d2": 8.0}, "b": {"d1": 5.0, "d2": 4.0}, "c": {"d4": 7.0}}
        >>> task = SourceTask.from_run(qrels, run, n_classes=10)
        >>> task.metric("recall@2", 10).round(3).item()
        0.667
        """
        k1 = catalogue_size(n_classes, own_candidates)
        judged = judged_run(
            qrels,
            run,
            k1,
            relevance_level,
            missing,
            higher_is_better=higher_is_better,
            ignore_identical=ignore_identical,
        )
        table, names = judged.own_table() if k1 is None else (judged.table(k1), None)
        return cls(table, names, Judged.of(judged, k1))

    @classmethod
    def from_confusion(
        cls,
        counts: Any,
        *,
        classes: Any = None,
        class_weight: Any = None,
        untested: Untested = "error",
    ) -> Self:
        r"""Make a task from a confusion matrix, for tests of which nothing else was kept.

        The accuracy is known at k1 alone, and the prior determines how it declines. Intervals
        may be too narrow and predictions too high (docs/data.md, "Ties and decisions"): pass scores
        or ranks if they were kept.

        Parameters
        ----------
        counts : array-like of int, shape (k1, k1), or DataFrame
            Number of instances of each true class (rows) by predicted class (columns), such as
            `pandas.crosstab` returns. Names of the rows that no column has are classes without
            predictions. Totals in the last row and column are left out.
        classes, class_weight, untested
            As in `from_scores`.

        Warns
        -----
        UserWarning
            If totals are left out.

        Examples
        --------
        >>> task = SourceTask.from_confusion([[6, 4, 0], [3, 5, 2], [1, 4, 5]])
        >>> task.accuracy(3).round(3).item()
        0.533
        """
        return cls(*confusion_table(counts, classes, class_weight, untested))

    @classmethod
    def from_recalls(
        cls,
        recalls: Any,
        *,
        n_test: int,
        n_classes: int | None = None,
        n_negatives: int | None = None,
        per_unit: int = 1,
        decimals: int | None = None,
        design_effect: float | None = None,
    ) -> Self:
        r"""Make a task from recalls at one number of classes, such as those of a printed table.

        Recall@m, hit rate@m, top-m accuracy and the CMC at rank m are one thing: the share of
        instances whose true class is among the m best. Several m show how fast the accuracy falls
        with more classes. One m does not, and the prior decides it.

        Parameters
        ----------
        recalls : mapping from m to recall, or pandas DataFrame
            Recalls in [0, 1] at increasing m, such as ``{1: 0.52, 5: 0.84}``. Names such as
            "recall@5" are accepted in place of m. A frame has columns m and recall.
        n_test : int
            Number of test instances.
        n_classes : int, optional
            Number k1 of classes that all instances were searched among. Either this or
            `n_negatives` is needed.
        n_negatives : int, optional
            Number of negatives if each true class was ranked among negatives of its own, as in
            `from_ranks`.
        per_unit : int
            Number of candidates of each class, such as 5 captions of each image, if recalls count
            candidates. Then n_classes or n_negatives counts classes. Wrong candidates of one class
            win together, so l better ones belong to fewer classes, whose number is uncertain: the
            prediction says how many are assumed, and the design effect is larger. Recalls among
            classes are better data.
        decimals : int, optional
            Number of decimals that the recalls were rounded to; by default as many as they have,
            and at least 3. The error of rounding is added to the design effect.
        design_effect : float, optional
            As in `from_accuracies`; with `n_negatives`, by default 1.

        Examples
        --------
        >>> table = {1: 0.52, 5: 0.843, 10: 0.92}
        >>> task = SourceTask.from_recalls(table, n_test=25_000, n_classes=1000)
        >>> task.metric("recall@5", 1000).round(3).tolist(), round(task.design_effect(), 1)
        (0.843, 7.8)
        """
        numbers = n_classes, n_negatives, per_unit
        return cls(recalls_table(recalls, n_test, *numbers, decimals, design_effect))

    @classmethod
    def from_accuracies(
        cls,
        k: Any,
        accuracy: Any,
        *,
        n_test: Any,
        n_classes: int,
        design_effect: float | None = None,
    ) -> Self:
        """Make a task from an accuracy curve alone.

        One accuracy does not show how fast it falls, and the prior decides it.

        Parameters
        ----------
        k : array-like of int, shape (n_k,)
            Numbers of classes, 2..n_classes.
        accuracy : array-like of shape (n_k,)
            Average test accuracy at each k, in [0, 1].
        n_test : int or int array of shape (n_k,)
            Number of test instances that the curve was measured on. An array has the numbers of
            each k, if every accuracy was measured on instances of its own.
        n_classes : int
            Number k1 of source classes that the curve was measured on.
        design_effect : float, optional
            Ratio of the variance to the variance with independent instances. Instances of one class
            are alike, so by default it is :math:`1 + 0.2 (r - 1) + 0.08 r` with r = n_test /
            n_classes, of the largest n_test, and at least 2.

        Warns
        -----
        ExtrapolationWarning
            If accuracies increase with k by more than 2 standard deviations. More than 4 are a
            `DataError`.

        Examples
        --------
        >>> task = SourceTask.from_accuracies([2, 10], [0.99, 0.95], n_test=50, n_classes=10)
        >>> task.accuracy(10).item()
        0.95
        """
        k1 = class_count(n_classes, "n_classes")
        enough_classes(k1, "n_classes")
        return cls(AccuracyCurve.checked(k, accuracy, n_test, k1, design_effect))

    @classmethod
    def merge(cls, parts: Iterable["SourceTask"], class_weight: Any = None) -> Self:
        """Put tasks on shards of the test instances together: one test, scored in parts.

        The result is that of the whole test: ranks in the order of the parts, and the exact
        covariance, from the sums that each part keeps. Merging is associative.

        Parameters
        ----------
        parts : iterable of SourceTask
            Tasks with ranks on the same k1 classes, with the same rule for ties and the same
            direction of scores. A part that does not test all classes must be made with
            ``untested="competitors"``.
        class_weight : array-like of shape (k1,) or mapping from class to weight, optional
            Weights of the test classes in the merged task; equal by default. The parts must have
            been made with the same weights.

        Returns
        -------
        SourceTask
            Task with scores if all parts have scores. It counts as made from ranks if a part was.

        Raises
        ------
        DataError
            If instances of one class are in several parts that no longer have scores.

        Warns
        -----
        DataWarning
            If every part tests all classes and these have no names, so that they may be different
            ones, as in folds over classes. Fit such tasks together: ``model.fit([first, second])``.

        Notes
        -----
        To process many files of probes, put all probes of a class into one file. Make a part from
        each file on any machine, call `without_scores` on it and pickle it. Then merge the pickled
        parts, all at once or one by one. If a class has instances in several parts, the scores of
        all parts are read again. Ties that are broken at random may then be broken differently, and
        so they may where costs or a diagnosis read the scores of a merged task.

        Examples
        --------
        >>> scores = np.random.default_rng(1).normal(size=(6, 4))
        >>> y, rows = np.array([0, 0, 1, 1, 2, 3]), (slice(0, 4), slice(4, 6))
        >>> parts = [SourceTask.from_scores(scores[i], y[i], untested="competitors") for i in rows]
        >>> merged, whole = SourceTask.merge(parts), SourceTask.from_scores(scores, y)
        >>> bool(np.allclose(merged.accuracy_cov([2, 4]), whole.accuracy_cov([2, 4])))
        True
        """
        if not np.iterable(parts):
            raise DataError(f"parts: expected a sequence of tasks, found {parts!r}")
        tasks = list(parts)
        if not tasks:
            raise DataError("parts: expected at least one task, found none")
        for number, task in enumerate(tasks):
            source_task(task, f"parts[{number}]")
            if (first := next(j for j, other in enumerate(tasks) if other is task)) < number:
                raise DataError(f"parts: part {number} is part {first} once more")
        tables = [
            task.require("ranks among all classes", f"parts[{number}]")
            for number, task in enumerate(tasks)
        ]
        names = [task.classes for task in tasks]
        return cls(merged_table(tables, names, class_weight), names[0])
