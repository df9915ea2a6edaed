"""Runs of a retrieval system and their relevance judgements, read like trec_eval."""

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from classex_bayes.arguments import one_of, shown, truth_value, whole_number
from classex_bayes.array_access import as_numeric, as_vector, contents, is_frame
from classex_bayes.core.ranks.sample import Sample
from classex_bayes.exceptions import DataError, DataWarning, warn
from classex_bayes.task.class_labels import class_labels
from classex_bayes.task.lists import ListedRanks, Lists
from classex_bayes.task.own_negatives import own_table_of_lists
from classex_bayes.task.provenance import CANDIDATES, CUT_RANKS, DOCUMENTS, Provenance
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.score_reading import table_of_ranks
from classex_bayes.typing import IntArray

Missing = Literal["error", "unanswered", "unsearched"]
# Columns of judgements and of runs: query, document and number.
ENTRY_COLUMNS = {
    "qrels": ("query_id", "doc_id", "relevance"),
    "run": ("query_id", "doc_id", "score"),
}
# Their usual names, without marks and in lower case.
_USUAL_COLUMNS = {
    "query_id": "queryid query qid topic topicid left leftid probe user userid",
    "doc_id": "docid docno doc document documentid did corpusid passageid pid right rightid "
    "reference item itemid",
    "relevance": "relevance rel relevancy score label grade judgment judgement target match",
    "score": "score sim similarity rsv",
}
# Labels of trials and pairs. Truth values are text in files.
TEXT_GRADES = {"target": 1, "nontarget": 0, "match": 1, "nonmatch": 0, "genuine": 1, "impostor": 0}
TEXT_GRADES |= {"same": 1, "different": 0, "True": 1, "False": 0}
_PARTLY_SHARED, _FIRST = 0.05, 0.3  # shares of nearest neighbours
_MOST_NAMESAKES = 0.5  # share of the queries that find the document of their own name


class JudgedRun(NamedTuple):
    """Queries with their relevant documents and the lists of a run.

    Documents have positions in the order of their names, relevant ones first: two runs with the
    same judgements give their queries the same true documents.
    """

    queries: pd.Index  # (n,): their names
    y: IntArray  # (n,): the first relevant document of each query in the judgements
    relevance_level: int  # smallest grade of relevant documents
    n_documents: int  # in judgements and run
    lists: Lists
    unlisted_query: IntArray  # (n_unlisted,): queries of judged documents that their lists lack
    unlisted_grade: IntArray  # (n_unlisted,): grades of these documents
    namesakes: str  # fact about documents that have the names of queries, or empty
    neighbours: str  # fact about judgements that seem to be nearest neighbours, or empty

    @property
    def depth(self) -> int:
        """Length of the longest list.

        trec_eval counts an unlisted document as missed at every depth, even after a short list.
        """
        return int(self.lists.lengths.max())

    def table(self, n_classes: int) -> RankTable:
        """Table of the best relevant documents, in a corpus of `n_classes` documents."""
        n_queries = np.bincount(self.y, minlength=n_classes)
        labels = class_labels(self.y, n_classes, None, n_queries, "competitors")
        ranks = ListedRanks.of(self.lists, n_classes, self.relevance_level, self.depth)
        return table_of_ranks(
            labels,
            n_classes,
            ranks.min_better,
            ranks.max_better,
            unanswered=self.lists.lengths == 0,
            counts=ranks.counts,
            nearest=ranks.nearest,
            sample=self._sample(ranks),
            **self._described(Provenance(unknown=CUT_RANKS, nouns=DOCUMENTS)),
        )

    def own_table(self) -> tuple[RankTable, list[Any]]:
        """Table of queries with candidates of their own, and the names of the queries."""
        answered = self.lists.lengths > 0
        place = np.cumsum(answered) - 1
        lists = self.lists._replace(n_queries=place[-1] + 1, query=place[self.lists.query])
        run = self._replace(queries=self.queries[answered], y=self.y[answered], lists=lists)
        ranks = ListedRanks.of(lists, self.n_documents, self.relevance_level)
        table, names = own_table_of_lists(ranks, run.queries, self.queries[~answered])
        described = self._described(replace(table.provenance, nouns=CANDIDATES))
        return replace(table, sample=run._sample(ranks), **described), names

    def _sample(self, ranks: ListedRanks) -> Sample:
        """First lists without relevant documents other than the best one."""
        lists = self.lists
        kept = (lists.grade < self.relevance_level) | (lists.item == ranks.best[lists.query])
        return lists.at(kept).sample(np.where(ranks.best < 0, self.y, ranks.best))

    def _described(self, provenance: Provenance) -> dict[str, Any]:
        """Rule for ties, and facts on the judgements, of a table."""
        listed = self.lists.at(self.lists.grade > 0)
        n_judged = np.bincount(np.append(listed.query, self.unlisted_query))
        n_several, several = int((n_judged > 1).sum()), ""
        if n_several:
            several = (
                f"{n_several} of {self.queries.size} queries have several relevant documents, of "
                "which accuracy, success@m and MRR count the best ranked one, and other metrics "
                f"all; {self.unlisted_query.size} of the {n_judged.sum()} relevant documents "
                "are not in the lists, and documents added later count as irrelevant"
            )
        words = provenance.with_facts(several, self.namesakes, self.neighbours)
        return {"ties": "names", "several_relevant": n_several > 0, "provenance": words}


def judged_run(
    qrels: Any,
    run: Any,
    n_classes: int | None,
    relevance_level: Any,
    missing: Missing,
    *,
    higher_is_better: Any = True,
    ignore_identical: Any = False,
) -> JudgedRun:
    """Arguments of `SourceTask.from_run`; `n_classes` is None if queries have own candidates."""
    relevance_level = whole_number(relevance_level, "relevance_level", 1)
    higher = truth_value(higher_is_better, "higher_is_better")
    ignored = truth_value(ignore_identical, "ignore_identical")
    one_of(missing, ("error", "unanswered", "unsearched"), "missing")
    judgements = _read_entries(qrels, "qrels")[1]
    searched, entries = _read_entries(run, "run")
    _refuse_fractions(judgements)
    levels = np.unique(judgements["number"]).tolist()
    judgements = judgements[judgements["number"] >= 1]
    if ignored:
        judgements, entries = _without_namesakes(judgements), _without_namesakes(entries)
    relevant = judgements[judgements["number"] >= relevance_level]
    if relevant.empty:
        raise DataError(
            f"qrels: found the relevances {shown(levels)}, expected one of at least "
            f"{relevance_level}"
        )
    queries = _tested(pd.Index(relevant["query"].unique()), searched, relevance_level, missing)
    documents = _documents(relevant, entries, n_classes)
    lists = _lists(entries, queries, documents, higher)
    judged_query = queries.get_indexer(judgements["query"])
    tested = judged_query >= 0
    judged_query, document = judged_query[tested], judgements["document"][tested]
    item, grade = documents.get_indexer(document), judgements["number"][tested].to_numpy(np.int64)
    pair, listed_pair = (
        of_query * documents.size + of_item
        for of_query, of_item in ((judged_query, item), (lists.query, lists.item))
    )
    known = item >= 0  # a document that is neither relevant nor listed has no position
    grade_of_pair = pd.Series(grade[known], index=pair[known])
    unlisted = ~(known & pd.Index(pair).isin(listed_pair))
    lists = lists._replace(grade=grade_of_pair.reindex(listed_pair, fill_value=0).to_numpy())
    first_relevant = relevant.drop_duplicates("query").set_index("query")["document"]
    return JudgedRun(
        queries,
        documents.get_indexer(first_relevant.loc[queries]),
        relevance_level,
        documents.size,
        lists,
        judged_query[unlisted],
        grade[unlisted],
        _namesakes(relevant, entries, queries),
        _neighbours(judgements[tested], lists),
    )


def _refuse_fractions(judgements: pd.DataFrame) -> None:
    """Raise if a relevance is no whole number."""
    grades = judgements["number"].to_numpy()
    fraction = grades != np.floor(grades)
    if fraction.any():
        row = int(np.argmax(fraction))
        raise DataError(
            f"qrels: found relevance {grades[row]} of {_place(judgements, row)}, expected whole "
            "numbers; the arguments are qrels and run, in this order"
        )


def _without_namesakes(entries: pd.DataFrame) -> pd.DataFrame:
    """Entries without the documents that have the names of their queries."""
    return entries[entries["query"] != entries["document"]]


def _namesakes(relevant: pd.DataFrame, entries: pd.DataFrame, queries: pd.Index) -> str:
    """Warn if most queries find the document of their name, which is relevant to none of them."""
    found = entries["query"][entries["query"] == entries["document"]].isin(queries).sum()
    are_relevant = (relevant["query"] == relevant["document"]).any()
    if are_relevant or found <= _MOST_NAMESAKES * queries.size:
        return ""
    sentence = (
        f"{found / queries.size:.0%} of the queries find the document of their name, as if the "
        "index contained the test instances themselves: pass ignore_identical=True"
    )
    warn(sentence, DataWarning)
    return sentence


def _neighbours(judgements: pd.DataFrame, lists: Lists) -> str:
    """Fact about judgements that seem to be the results of an exact search, as of benchmarks.

    All queries have the same number of relevant documents, of one grade; queries share a part of
    theirs, unlike those of one class; and these documents fill the first ranks.
    """
    of_queries = judgements.groupby("query")["document"].agg(frozenset)
    sizes, sets = of_queries.map(len), of_queries.unique()
    n_relevant, n_documents = int(sizes.max()), judgements["document"].nunique()
    first = lists.grade[lists.places() < n_relevant] > 0
    partly_shared = 1 - n_documents / (len(sets) * n_relevant) >= _PARTLY_SHARED
    are_alike = n_relevant > 1 and sizes.min() == n_relevant and judgements["number"].nunique() == 1
    if not (are_alike and partly_shared and first.size and first.mean() >= _FIRST):
        return ""
    return (
        f"every query has {n_relevant} relevant documents of one grade, as if these were the "
        "nearest neighbours of an exact search. More documents displace them, which a prediction "
        "leaves out: judge and search the larger corpus anew"
    )


def _documents(relevant: pd.DataFrame, entries: pd.DataFrame, n_classes: int | None) -> pd.Index:
    """Names of all documents, the relevant ones first."""
    first, second = (
        pd.Index(table["document"].unique()).sort_values() for table in (relevant, entries)
    )
    if first.size == 1:
        raise DataError(
            f"qrels: all queries have the relevant document {first[0]!r}, expected queries for "
            "at least 2 documents"
        )
    documents = first.append(second).unique()
    if n_classes is not None and documents.size > n_classes:
        raise DataError(
            f"n_classes: found {n_classes}, but qrels and run name {documents.size} documents; "
            "expected the number of documents of the corpus; if each query has candidates of its "
            "own, pass own_candidates=True in its place"
        )
    return documents


def _lists(
    entries: pd.DataFrame, queries: pd.Index, documents: pd.Index, higher_is_better: bool
) -> Lists:
    """Lists in the order of trec_eval, all of grade 0.

    Scores that are equal in single precision are ties, and ties are in descending order of names.
    """
    query, item = (
        names.get_indexer(entries[column])
        for names, column in ((queries, "query"), (documents, "document"))
    )
    score = entries["number"].to_numpy() * (1 if higher_is_better else -1)
    order = np.lexsort((-score, query))
    order = order[query[order] >= 0]
    if not order.size:
        raise DataError("run: found no document for any query, expected at least one")
    grade = np.zeros(order.size, dtype=np.int64)
    lists = Lists(queries.size, query[order], item[order], score[order].astype(np.float32), grade)
    begins = lists.begins_tie()
    lowest = np.minimum.reduceat(score[order], np.flatnonzero(begins))
    lists = lists._replace(score=lowest[begins.cumsum() - 1])
    place_of_name = documents.argsort().argsort()
    return lists.with_ties_broken(lambda _, item: place_of_name[item])


def _tested(
    wanted: pd.Index, searched: pd.Index, relevance_level: int, missing: Missing
) -> pd.Index:
    """Queries to be tested, of those with relevant documents and those of the run."""
    absent = wanted.difference(searched, sort=False)
    if absent.size == wanted.size:
        raise DataError(
            "run: found no query that has relevant documents in qrels; their names begin with "
            f"{wanted[0]!r} in qrels and {next(iter(searched), None)!r} in run"
        )
    if absent.size and missing == "error":
        raise DataError(
            f"run: {absent.size} of {wanted.size} queries with relevant documents are missing, "
            f"such as {absent[0]!r}; pass missing='unanswered' if nothing was found for them "
            "(trec_eval -c), or missing='unsearched' to leave them out (trec_eval without -c)"
        )
    queries = wanted.difference(absent, sort=False) if missing == "unsearched" else wanted
    extra = searched.difference(wanted, sort=False)
    if extra.size:
        warn(
            f"run: left out {extra.size} of {searched.size} queries, such as {extra[0]!r}, "
            f"because qrels has no document of relevance >= {relevance_level} for them",
            DataWarning,
        )
    return queries


def usual_columns(names: Iterable[Any], name: str) -> dict[Any, str]:
    """Our names of the columns of judgements or a run, by the names that they have."""
    found, present = dict[Any, str](), list(names)
    for column in ENTRY_COLUMNS[name]:
        usual = _USUAL_COLUMNS[column].split()
        simple = {n: re.sub(r"[\W_]", "", str(n).lower()) for n in present}
        alike = [n for n in present if simple[n] in usual]
        if len(alike) > 1 and column == "relevance":  # of pairs with a score and a label
            alike = [n for n in alike if simple[n] != "score"]
        if column in present or len(alike) == 1:
            found[column if column in present else alike[0]] = column
    return found


def _read_entries(values: Any, name: str) -> tuple[pd.Index, pd.DataFrame]:
    """Names of the queries, some of them without entries, and a frame: query, document, number.

    Names are text, like those of files.
    """
    columns = ENTRY_COLUMNS[name]
    values = _frame_or_mapping(values, name)
    if isinstance(values, Mapping):
        queries = list(values)
        entries = [(q, *pair) for q, listed in values.items() for pair in _pairs(listed, name)]
        query, document, numbers = ([entry[place] for entry in entries] for place in range(3))
    else:
        present = {ours: theirs for theirs, ours in usual_columns(values.columns, name).items()}
        if len(present) < len(columns):
            raise DataError(
                f"{name}: found columns {', '.join(map(str, values.columns))}, expected "
                f"{', '.join(columns)}"
            )
        query, document = (as_vector(values[present[c]], name).tolist() for c in columns[:2])
        queries, numbers = list(dict.fromkeys(query)), values[present[columns[2]]]
    numbers = as_vector(numbers, name)
    if name == "qrels" and contents(numbers) == "text":
        numbers = as_vector([TEXT_GRADES.get(grade, grade) for grade in numbers.tolist()], name)
    if numbers.dtype.kind == "b" and name == "qrels":
        numbers = numbers.astype(int)
    number = as_numeric(numbers, name)
    table = pd.DataFrame(
        {"query": _names(query, name), "document": _names(document, name), "number": number}
    )
    with np.errstate(over="ignore"):
        bad = ~np.isfinite(number.astype(np.float32))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"{name}: found {columns[2]} {number[row]} of {_place(table, row)}, expected a finite "
            "number in single precision"
        )
    twice = table.duplicated(["query", "document"])
    if twice.any():
        place = _place(table, int(twice.argmax()))
        raise DataError(
            f"{name}: found {place} twice, expected once; keep the one with the best {columns[2]}"
        )
    return pd.Index(_names(queries, name)), table


def _frame_or_mapping(values: Any, name: str) -> Any:
    """Entries as a frame or as a mapping from queries to documents.

    Objects of ranx turn into a mapping, data sets of ir_datasets have one of the iterators of
    entries that ir_measures takes. Relevant documents may be a set, and ranked ones a list.
    """
    columns = ENTRY_COLUMNS[name]
    if hasattr(values, "to_dict") and not is_frame(values):
        values = values.to_dict()
    elif hasattr(values, name) and not isinstance(values, Mapping):
        values = getattr(values, name)
    if not isinstance(values, Mapping | str) and not is_frame(values) and np.iterable(values):
        rows = list(values)
        if rows and all(hasattr(row, column) for row in rows for column in columns):
            values = pd.DataFrame({c: [getattr(row, c) for row in rows] for c in columns})
    kinds = (Mapping, list, tuple, Set) if name == "qrels" else (Mapping, list, tuple)
    of_queries = values.values() if isinstance(values, Mapping) else [None]
    if not is_frame(values) and not all(isinstance(documents, kinds) for documents in of_queries):
        raise DataError(
            f"{name}: expected a mapping {{query: {{document: {columns[2]}}}}}, or a frame with "
            f"columns {', '.join(columns)}, found {type(values).__name__}; relevant documents may "
            "be a set, and ranked ones a list; read files by classex_bayes.read_task(run, "
            "qrels=qrels, n_classes=n)"
        )
    return values


def _pairs(documents: Any, name: str) -> Iterable[tuple[Any, Any]]:
    """Documents with numbers: 1 for those that are relevant, minus the rank for ranked ones."""
    if isinstance(documents, Mapping):
        return documents.items()
    if name == "run" and all(isinstance(pair, tuple) and len(pair) == 2 for pair in documents):
        return documents
    return [(item, 1 if name == "qrels" else -place) for place, item in enumerate(documents)]


def _names(items: list[Any], name: str) -> list[str]:
    """Names of queries or documents as text, like those of files."""
    for item in items:
        if not isinstance(item, str | int | np.integer):
            raise DataError(
                f"{name}: expected names of queries and documents as text or whole numbers, found "
                f"{item!r}"
            )
    names = [str(item) for item in items]
    try:
        "".join(names).encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{name}: expected names of text, found one that is none: {error}"
        ) from None
    return names


def _place(entries: pd.DataFrame, row: int) -> str:
    return f"document {entries['document'][row]!r} of query {entries['query'][row]!r}"
