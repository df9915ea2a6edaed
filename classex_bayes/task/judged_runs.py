"""Runs of a retrieval system and their relevance judgements, read like trec_eval."""

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from classex_bayes.arguments import one_of, truth_value, whole_number
from classex_bayes.array_access import as_numeric, as_vector, is_frame
from classex_bayes.core.ranks.sample import Sample
from classex_bayes.exceptions import DataError, DataWarning, warn
from classex_bayes.task.class_labels import class_labels
from classex_bayes.task.provenance import DOCUMENTS
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.ranked_lists import SearchResults, search_results
from classex_bayes.typing import BoolArray, FloatArray, IntArray

Missing = Literal["error", "unanswered", "unsearched"]
# Columns of judgements and of runs: query, document and number.
ENTRY_COLUMNS = {
    "qrels": ("query_id", "doc_id", "relevance"),
    "run": ("query_id", "doc_id", "score"),
}
# Their usual names, without marks and in lower case.
_USUAL_COLUMNS = {
    "query_id": "queryid query qid topic topicid",
    "doc_id": "docid docno document documentid did corpusid passageid pid",
    "relevance": "relevance rel relevancy score label grade judgment judgement",
    "score": "score sim similarity rsv",
}
_MOSTLY = 0.5  # share of the queries that find the document of their own name


def run_table(lists: "JudgedLists", k1: int) -> RankTable:
    """Table of the best relevant documents of judged lists."""
    n_queries = np.bincount(lists.y, minlength=k1)
    labels = class_labels(lists.y, lists.y.size, k1, None, n_queries, "competitors")
    return best_relevant(lists, k1).table(labels, unanswered=lists.is_empty)


class _Entries(NamedTuple):
    """Queries of qrels or of a run, some of them without entries, and the entries."""

    queries: pd.Index
    table: pd.DataFrame  # columns query, document and number


class JudgedLists(NamedTuple):
    """Queries with their relevant documents and those that a run lists, in order of rank.

    Documents have positions in the order of their names, relevant ones first: two runs with the
    same judgements give their queries the same true documents.
    """

    queries: pd.Index  # (n,): their names
    y: IntArray  # (n,): the first relevant document of each query in the judgements
    relevance_level: int  # smallest relevance of relevant documents
    judged_query: IntArray  # (n_judged,): queries of the documents with a relevance above 0
    judged_grade: IntArray  # (n_judged,): their relevance
    judged_place: IntArray  # (n_judged,): their places among the entries; n_entries if unlisted
    n_documents: int  # of the corpus, or of all lists if each query has candidates of its own
    query: IntArray  # (n_entries,): queries of the listed documents
    document: IntArray  # (n_entries,): listed documents
    score: FloatArray  # (n_entries,): their scores, larger is better
    grade: IntArray  # (n_entries,): their relevance
    facts: tuple[str, ...]

    @property
    def n_queries(self) -> int:
        """Number n of queries."""
        return self.queries.size

    @property
    def is_relevant(self) -> BoolArray:
        """Whether each listed document (n_entries,) is relevant."""
        return self.grade >= self.relevance_level

    @property
    def length(self) -> int:
        """Length of the longest list."""
        return int(np.bincount(self.query, minlength=self.n_queries).max())

    @property
    def is_empty(self) -> BoolArray:
        """Whether the list of each query (n,) has no document: a miss at every k."""
        return np.bincount(self.query, minlength=self.n_queries) == 0


def judged_lists(
    qrels: Any,
    run: Any,
    n_classes: int | None,
    relevance_level: Any,
    missing: Missing,
    *,
    higher_is_better: Any = True,
    ignore_identical: Any = False,
) -> JudgedLists:
    """Arguments of `SourceTask.from_run`, read and sorted like trec_eval.

    `n_classes` is None if each query has candidates of its own.
    """
    level = whole_number(relevance_level, "relevance_level", 1)
    higher = truth_value(higher_is_better, "higher_is_better")
    ignored = truth_value(ignore_identical, "ignore_identical")
    one_of(missing, ("error", "unanswered", "unsearched"), "missing")
    judged, listed = _read_entries(qrels, "qrels"), _read_entries(run, "run")
    numbers = judged.table["number"].to_numpy()
    fraction = numbers != np.floor(numbers)
    if fraction.any():
        row = int(np.argmax(fraction))
        raise DataError(
            f"qrels: found relevance {numbers[row]} of {_place(judged.table, row)}, expected whole "
            "numbers; the arguments are qrels and run, in this order"
        )
    relevant = judged.table[numbers >= level]
    if ignored:
        relevant = relevant[relevant["query"] != relevant["document"]]
    if relevant.empty:
        raise DataError(
            f"qrels: found no document of relevance >= {level}, expected at least one; lower "
            "relevance_level"
        )
    queries = _tested(pd.Index(relevant["query"].unique()), listed.queries, level, missing)
    own = (listed.table["query"] == listed.table["document"]).to_numpy()
    judged_own = (relevant["query"] == relevant["document"]).any()
    found = float(np.count_nonzero(own & listed.table["query"].isin(queries).to_numpy()))
    facts: tuple[str, ...] = ()
    if not (ignored or judged_own) and found > _MOSTLY * queries.size:
        fault = (
            f"{found / queries.size:.0%} of the queries find the document of their name, as if the "
            "index contained the test instances themselves: pass ignore_identical=True"
        )
        warn(fault, DataWarning)
        facts = (fault,)
    table = listed.table[~own] if ignored else listed.table
    first, second = (
        pd.Index(entries["document"].unique()).sort_values() for entries in (relevant, table)
    )
    if first.size == 1:
        raise DataError(
            f"qrels: all queries have the relevant document {first[0]!r}, expected queries for "
            "at least 2 documents"
        )
    documents = first.append(second).unique()
    if documents.size > (n_documents := documents.size if n_classes is None else n_classes):
        raise DataError(
            f"n_classes: found {n_classes}, but qrels and run name {documents.size} documents; "
            "expected the number of documents of the corpus; if each query has candidates of its "
            "own, pass own_candidates=True in its place"
        )
    relevant = relevant[relevant["query"].isin(queries)]
    of_query = relevant.drop_duplicates("query").set_index("query")["document"]
    # Like trec_eval: scores in single precision, equal scores in descending order of names.
    table = table.assign(
        query=queries.get_indexer(table["query"]), single=table["number"].astype(np.float32)
    )
    table = table[table["query"] >= 0].sort_values(
        ["query", "single", "document"], ascending=[True, not higher, False]
    )
    if table.empty:
        raise DataError("run: found no document for any query, expected at least one")
    query, document = table["query"].to_numpy(), documents.get_indexer(table["document"])
    judged_query = queries.get_indexer(judged.table["query"])
    graded = (numbers >= 1) & (judged_query >= 0)
    if ignored:
        graded &= (judged.table["query"] != judged.table["document"]).to_numpy()
    judged_query, grades = judged_query[graded], numbers[graded].astype(np.int64)
    judged_document = documents.get_indexer(judged.table["document"][graded])
    pairs = np.where(judged_document < 0, -1, judged_query * n_documents + judged_document)
    position = _positions(pairs, query * n_documents + document)
    grade = np.zeros(query.size + 1, dtype=np.int64)  # the last one is of documents not listed
    grade[position] = grades
    grade = grade[:-1]
    scores = table["number"].to_numpy()
    return JudgedLists(
        queries,
        documents.get_indexer(of_query.loc[queries]),
        level,
        judged_query,
        grades,
        position,
        n_documents,
        query,
        document,
        scores if higher else -scores,
        grade,
        facts,
    )


def _positions(pairs: IntArray, listed: IntArray) -> IntArray:
    """Places of pairs of query and document among those listed; their number for the others."""
    order = np.argsort(listed)
    position = order[np.searchsorted(listed, pairs, sorter=order).clip(max=listed.size - 1)]
    return np.where(listed[position] == pairs, position, listed.size)


def own_table_of(lists: JudgedLists) -> tuple[RankTable, list[Any]]:
    """Table of queries whose best relevant document was ranked among their own candidates."""
    results, answered = best_relevant(lists, lists.n_documents), ~lists.is_empty
    lowest, highest, n_wrong = (column[answered] for column in results[:3])
    of_answered = SearchResults(
        lowest, highest, n_wrong, None, results.facts, sample=results.sample
    )
    table, names = of_answered.own_table(lists.queries[answered], lists.queries[~answered])
    several = bool((np.bincount(lists.judged_query) > 1).any())
    return replace(table, provenance=replace(table.provenance, several_relevant=several)), names


def best_relevant(lists: JudgedLists, n_classes: int) -> SearchResults:
    """Rank of the best relevant document of each query; the others are neither right nor wrong."""
    query, document, right, length = lists.query, lists.document, lists.is_relevant, lists.length
    answered, place = np.unique(query[right], return_index=True)
    best = np.flatnonzero(right)[place]
    best_listed = lists.y.copy()
    best_listed[answered] = document[best]
    kept = ~right
    kept[best] = True
    query, document, scores = query[kept], document[kept], lists.score[kept]
    place = np.arange(query.size) - np.searchsorted(query, query)
    shape = lists.n_queries, length
    ids, values = np.full(shape, -1, dtype=np.int64), np.zeros(shape)
    ids[query, place], values[query, place] = document, scores
    results = search_results(
        ids, best_listed, n_classes, values, higher_is_better=True, nouns=DOCUMENTS
    )
    lowest, highest = results.lowest, results.highest
    sample = Sample.of_lists(ids, values, best_listed)
    # trec_eval counts an unlisted document as missed at every depth, even after a short list.
    lowest = np.where(lowest < highest, min(length, n_classes - 1), lowest)
    lowest[lists.is_empty] = highest[lists.is_empty] = n_classes - 1
    facts = tuple(filter(None, (*lists.facts, _relevant(lists), *results.facts)))
    return results._replace(lowest=lowest, facts=facts, sample=sample)


def _relevant(lists: JudgedLists) -> str:
    """Fact about queries with several relevant documents; empty if there are none."""
    n_several = int((np.bincount(lists.judged_query) > 1).sum())
    if not n_several:
        return ""
    relevant = lists.judged_grade >= lists.relevance_level
    unlisted = relevant & (lists.judged_place == lists.query.size)
    sentence = (
        f"{n_several} of {lists.n_queries} queries have several relevant documents, of which "
        "accuracy, success@m and MRR count the best ranked one, and recall@m and nDCG all"
    )
    if unlisted.any():
        share = f"{unlisted.sum()} of all {relevant.sum()}"
        sentence += f"; {share} relevant documents are not in the lists"
    return sentence


def _tested(wanted: pd.Index, searched: pd.Index, level: int, missing: Missing) -> pd.Index:
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
            f"because qrels has no document of relevance >= {level} for them",
            DataWarning,
        )
    return queries


def usual_columns(names: Iterable[Any], name: str) -> dict[Any, str]:
    """Our names of the columns of judgements or a run, by the names that they have."""
    found, present = dict[Any, str](), list(names)
    for column in ENTRY_COLUMNS[name]:
        usual = _USUAL_COLUMNS[column].split()
        alike = [n for n in present if re.sub(r"[\W_]", "", str(n).lower()) in usual]
        if column in present or len(alike) == 1:
            found[column if column in present else alike[0]] = column
    return found


def _read_entries(values: Any, name: str) -> _Entries:
    """Queries and documents with their numbers, in any form that evaluations of retrieval use.

    These are mappings, also to sets of relevant documents or lists of ranked ones; frames; objects
    that turn into one of both, as those of ranx; and sequences of entries, as of ir_measures.
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
    if is_frame(values):
        present = {ours: theirs for theirs, ours in usual_columns(values.columns, name).items()}
        if len(present) < len(columns):
            raise DataError(
                f"{name}: found columns {', '.join(map(str, values.columns))}, expected "
                f"{', '.join(columns)}"
            )
        query, document = (as_vector(values[present[c]], name).tolist() for c in columns[:2])
        queries, numbers = list(dict.fromkeys(query)), values[present[columns[2]]]
    elif isinstance(values, Mapping) and all(_is_listed(v, name) for v in values.values()):
        queries = list(values)
        entries = [(q, *pair) for q, listed in values.items() for pair in _pairs(listed, name)]
        query, document, numbers = ([entry[place] for entry in entries] for place in range(3))
    else:
        found = type(values).__name__
        remedy = "read files by classex_bayes.read_task(run, qrels=qrels, n_classes=n)"
        if isinstance(values, Mapping):
            other = next(value for value in values.values() if not _is_listed(value, name))
            found += f" of {type(other).__name__}"
            remedy = "relevant documents may be a set, and ranked ones a list"
        raise DataError(
            f"{name}: expected a mapping {{query: {{document: {columns[2]}}}}}, or a frame with "
            f"columns {', '.join(columns)}, found {found}; {remedy}"
        )
    numbers = as_vector(numbers, name)
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
    return _Entries(pd.Index(_names(queries, name)), table)


def _is_listed(documents: Any, name: str) -> bool:
    """Whether these are documents with numbers, or a list of them, or a set of relevant ones."""
    return isinstance(documents, Mapping | list | tuple) or (
        name == "qrels" and isinstance(documents, Set)
    )


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
