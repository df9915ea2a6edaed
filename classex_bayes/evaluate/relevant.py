"""RelevantDocuments: the task of a run whose queries have several relevant documents."""

import os
from pathlib import Path
from typing import Any, Self

from classex_bayes.io.tables import read_entries
from classex_bayes.task.judged_runs import Missing
from classex_bayes.task.source_task import SourceTask


class RelevantDocuments(SourceTask):
    r"""The task of a run and its judgements, also from their files.

    It is that of `SourceTask.from_run`. With d(r) the gain of rank r, and :math:`L_{qj}` irrelevant
    documents before the j-th best of the :math:`R_q` relevant documents of query q, whose grade is
    :math:`g_{qj}`, recall and nDCG are those of trec_eval:

    .. math:: \frac{1}{n} \sum_q \frac{1}{c_q} \sum_{j=1}^{R_q} g_{qj} \, d(j + L_{qj}).

    Recall@m has grades of 1, d(r) = 1 for :math:`r \le m`, and :math:`c_q = R_q`. nDCG has
    :math:`d(r) = 1 / \log_2(r + 1)`, and :math:`c_q` is the sum for the best order of the grades.
    In other metrics the best ranked document counts. On more documents, these are assumed to be
    irrelevant, so that the relevant ones keep their order and the j-th best one its grade.

    Attributes
    ----------
    judged : Judged
        Ranks of all relevant documents, for authors of metrics (`relevant_ranks`).

    Examples
    --------
    >>> qrels = {"a": {"d1": 2, "d2": 1}, "b": {"d3": 1}, "c": {"d4": 1}}
    >>> run = {"a": {"d2": 9.0, "d5": 8.0, "d1": 7.0}, "b": {"d3": 5.0}, "c": {"d6": 7.0}}
    >>> documents = RelevantDocuments.from_run(qrels, run, n_classes=10)
    >>> documents.metric("recall@2").round(3), documents.metric("ndcg@3").round(3)
    (array([0.5]), array([0.587]))
    """

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
        """Read a run and its judgements.

        Parameters
        ----------
        qrels, run
            As in `SourceTask.from_run`, or paths of files as `read_task` takes.
        n_classes, own_candidates, relevance_level, missing, higher_is_better, ignore_identical
            As in `SourceTask.from_run`.

        Returns
        -------
        RelevantDocuments

        Raises
        ------
        DataError
            As `SourceTask.from_run`.

        Warns
        -----
        DataWarning
            As `SourceTask.from_run`.
        """
        if isinstance(qrels, str | os.PathLike):
            qrels = read_entries(Path(qrels), "qrels")
        if isinstance(run, str | os.PathLike):
            run = read_entries(Path(run), "run")
        return super().from_run(
            qrels,
            run,
            n_classes=n_classes,
            own_candidates=own_candidates,
            relevance_level=relevance_level,
            missing=missing,
            higher_is_better=higher_is_better,
            ignore_identical=ignore_identical,
        )
