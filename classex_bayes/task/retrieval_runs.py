"""Runs of a retrieval system and relevance judgements, read once into lists of documents."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from classex_bayes.arguments import as_numeric, as_vector, one_of, whole_number
from classex_bayes.exceptions import DataError, DataWarning, warn
from classex_bayes.frames import is_frame
from classex_bayes.task.check import Check
from classex_bayes.task.data_checks import MOST_TIES
from classex_bayes.task.search_results import SearchResults, search_results
from classex_bayes.typing import BoolArray, FloatArray, IntArray

Missing = Literal["error", "unanswered", "unsearched"]
# Columns of judgements and of runs: query, document and number.
ENTRY_COLUMNS = {
    "qrels": ("query_id", "doc_id", "relevance"),
    "run": ("query_id", "doc_id", "score"),
}
_MOSTLY = 0.5


class _Entries(NamedTuple):
    """Positions of a query, -1 if it is left out, and a document in each entry."""

    query: IntArray
    document: IntArray


class _NamedEntries(NamedTuple):
    """Queries of qrels or of a run; the query, the document and the number of each entry."""

    queries: pd.Index
    query: pd.Index
    document: pd.Index
    number: Any


def read_run(
    qrels: Any, run: Any, n_classes: int, relevance_level: Any, missing: Missing
) -> tuple[IntArray, SearchResults]:
    """True documents (n,) of the queries of `SourceTask.from_run`, and their ranks.

    Documents have positions in the order of their names, relevant ones first: two runs with the
    same judgements give their queries the same true documents.
    """
    level = whole_number(relevance_level, "relevance_level", 1)
    one_of(missing, ("error", "unanswered", "unsearched"), "missing")
    judged, listed = _read_entries(qrels, "qrels"), _read_entries(run, "run")
    fraction = judged.number != np.floor(judged.number)
    if fraction.any():
        row = int(np.argmax(fraction))
        raise DataError(
            f"qrels: found relevance {judged.number[row]} of {_place(judged, row)}, expected whole "
            "numbers; the arguments are qrels and run, in this order"
        )
    relevant = judged.number >= level
    if not relevant.any():
        raise DataError(
            f"qrels: found no document of relevance >= {level}, expected at least one; lower "
            "relevance_level"
        )
    query, document = judged.query[relevant], judged.document[relevant]
    queries = _tested(query.unique(), listed.queries, level, missing)
    relevant_first = document.unique().sort_values(), listed.document.unique().sort_values()
    documents = relevant_first[0].append(relevant_first[1]).unique()
    if document.nunique() == 1:
        raise DataError(
            f"qrels: all queries have the relevant document {document[0]!r}, expected queries for "
            "at least 2 documents"
        )
    if documents.size > n_classes:
        raise DataError(
            f"n_classes: found {n_classes}, but qrels and run name {documents.size} documents; "
            "expected the number of documents of the corpus"
        )
    return _ranked(
        _Entries(queries.get_indexer(query), documents.get_indexer(document)),
        _Entries(queries.get_indexer(listed.query), documents.get_indexer(listed.document)),
        listed.number.astype(float),
        np.argsort(documents.argsort()),
        queries.size,
        n_classes,
    )


def _ranked(
    relevant: _Entries,
    listed: _Entries,
    scores: FloatArray,
    alphabetical: IntArray,
    n: int,
    n_classes: int,
) -> tuple[IntArray, SearchResults]:
    """Ranks from the relevant and the listed documents of n queries.

    `alphabetical` are the places of all documents in the order of their names.
    """
    inside = relevant.query >= 0
    y = np.empty(n, dtype=np.int64)
    # Backwards, so that the first one in qrels remains.
    y[relevant.query[inside][::-1]] = relevant.document[inside][::-1]
    # Like trec_eval: scores in single precision, equal scores in descending order of names.
    order = np.lexsort((-alphabetical[listed.document], -scores.astype(np.float32), listed.query))
    order = order[listed.query[order] >= 0]
    query, document, scores = listed.query[order], listed.document[order], scores[order]
    length = int(np.bincount(query, minlength=n).max())
    if length == 0:
        raise DataError("run: found no document for any query, expected at least one")
    right = np.isin(query * n_classes + document, relevant.query * n_classes + relevant.document)
    answered, first = np.unique(query[right], return_index=True)
    best = np.flatnonzero(right)[first]
    best_listed = y.copy()
    best_listed[answered] = document[best]
    # Other relevant documents are neither correct nor wrong.
    kept = ~right
    kept[best] = True
    query, document, scores = query[kept], document[kept], scores[kept]
    check = _tied_documents(query, scores, right[kept], n)
    place = np.arange(query.size) - np.searchsorted(query, query)
    ids, values = np.full((n, length), -1, dtype=np.int64), np.zeros((n, length))
    ids[query, place], values[query, place] = document, scores
    results = search_results(ids, best_listed, n_classes, values, higher_is_better=True)
    lowest, highest = results.lowest, results.highest
    # trec_eval counts an unlisted document as missed at every depth, even after a short list.
    lowest = np.where(lowest < highest, min(length, n_classes - 1), lowest)
    return y, results._replace(lowest=lowest, checks=(check,))


def _tied_documents(
    query: IntArray, scores: FloatArray, relevant: BoolArray, n_queries: int
) -> Check:
    """Whether relevant documents are tied with others, so that names determine their ranks.

    Entries (n_entries,) are in the order of their ranks.
    """
    single = scores.astype(np.float32)
    equal = (query[1:] == query[:-1]) & (single[1:] == single[:-1])
    touched = relevant & (np.append(equal, False) | np.insert(equal, 0, False))
    share = float(touched.sum()) / n_queries
    sentence = (
        f"the relevant document is tied with others for {touched.sum()} of {n_queries} queries"
    )
    if touched.any():
        sentence += (
            ". As in trec_eval, names of documents decide, in descending order. Break ties as the "
            "system does, by small differences of the scores"
        )
    passed = share <= _MOSTLY
    return Check("ties", passed, sentence, share, _MOSTLY, passed and share > MOST_TIES)


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
            "(trec_eval -c), or 'unsearched' to leave them out (trec_eval without -c)"
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


def _read_entries(values: Any, name: str) -> _NamedEntries:
    """Queries and documents with their numbers, of mappings or a frame."""
    columns = ENTRY_COLUMNS[name]
    if hasattr(values, "to_dict") and not is_frame(values):
        values = values.to_dict()  # Qrels and Run of ranx
    if is_frame(values):
        lacking = [column for column in columns if column not in values.columns]
        if lacking:
            raise DataError(
                f"{name}: found columns {', '.join(map(str, values.columns))}, expected "
                f"{', '.join(columns)}"
            )
        query, document = (as_vector(values[column], name).tolist() for column in columns[:2])
        queries, numbers = list(dict.fromkeys(query)), values[columns[2]]
    elif isinstance(values, Mapping) and all(isinstance(v, Mapping) for v in values.values()):
        queries = list(values)
        query = [q for q, listed in values.items() for _ in listed]
        document = [item for listed in values.values() for item in listed]
        numbers = np.array([number for listed in values.values() for number in listed.values()])
    else:
        raise DataError(
            f"{name}: expected a mapping {{query: {{document: {columns[2]}}}}}, or a frame with "
            f"columns {', '.join(columns)}, found {type(values).__name__}; read files by "
            "classex_bayes.read_task(run, qrels=qrels, n_classes=n)"
        )
    entries = _NamedEntries(
        pd.Index(_names(queries, name)),
        pd.Index(_names(query, name)),
        pd.Index(_names(document, name)),
        as_numeric(as_vector(numbers, name), name),
    )
    _refuse_bad(entries, name)
    return entries


def _names(items: list[Any], name: str) -> list[str]:
    """Names of queries or documents as text, like those of files."""
    for item in items:
        if not isinstance(item, str | int | np.integer):
            raise DataError(
                f"{name}: expected names of queries and documents as text or whole numbers, found "
                f"{item!r}"
            )
    return [str(item) for item in items]


def _refuse_bad(entries: _NamedEntries, name: str) -> None:
    """Raise where a number is not finite, or a query has a document twice."""
    with np.errstate(over="ignore"):
        bad = ~np.isfinite(entries.number.astype(np.float32))
    if bad.any():
        row = int(np.argmax(bad))
        what = ENTRY_COLUMNS[name][2]
        raise DataError(
            f"{name}: found {what} {entries.number[row]} of {_place(entries, row)}, expected a "
            "finite number in single precision"
        )
    twice = pd.MultiIndex.from_arrays([entries.query, entries.document]).duplicated()
    if twice.any():
        raise DataError(
            f"{name}: found {_place(entries, int(np.argmax(twice)))} twice, expected once"
        )


def _place(entries: _NamedEntries, row: int) -> str:
    return f"document {entries.document[row]!r} of query {entries.query[row]!r}"
