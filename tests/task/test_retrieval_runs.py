"""Runs and judgements of retrieval against pytrec_eval and a count of documents one by one."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest

from classex_bayes import BayesianExtrapolator, DataError, SourceTask, diagnose
from classex_bayes.exceptions import DataWarning, ExtrapolationWarning

pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")

GOLDEN = json.loads((Path(__file__).parents[1] / "reference/pytrec_eval.json").read_text())
CASES = GOLDEN["cases"]
N_DOCUMENTS = GOLDEN["n_documents"]


def task_of(case, missing):
    return SourceTask.from_run(case["qrels"], case["run"], n_classes=N_DOCUMENTS, missing=missing)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_metrics_are_those_of_pytrec_eval(case):
    """What is not listed counts as 0, and so does a query without a list with -c."""
    depth = max(map(len, case["run"].values()))
    for missing, n in (("unsearched", len(case["run"])), ("unanswered", len(case["qrels"]))):
        task = task_of(case, missing)
        assert task.n_test == n
        for metric, values in case["expected"].items():
            name = f"mrr@{depth}" if metric == "mrr" else metric
            found = task.metric(name, N_DOCUMENTS)
            # pytrec_eval adds in double precision as well.
            np.testing.assert_allclose(found, sum(values) / n, rtol=1e-12)


def test_mean_reciprocal_rank_of_whole_lists():
    case = CASES["lists of the corpus"]
    task = task_of(case, "unsearched")
    values = case["expected"]["mrr"]
    assert task.table.made_from == "ranks"
    np.testing.assert_allclose(1 / task.ranks, values, rtol=1e-12)
    np.testing.assert_allclose(task.metric("mrr", N_DOCUMENTS), np.mean(values), rtol=1e-12)


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def random_run(rng, n=60, n_documents=40, length=12):
    """Judgements with several relevant documents, and lists of different lengths with ties."""
    qrels, run = {}, {}
    for query in range(n):
        several = rng.choice(n_documents, 5, replace=False)
        qrels[f"q{query}"] = {f"d{d}": int(d % 3) for d in several} | {f"d{query % 7}": 1}
        listed = rng.choice(n_documents, rng.integers(length // 2, length + 1), replace=False)
        run[f"q{query}"] = {f"d{d}": float(rng.integers(0, 4)) for d in listed}
    return qrels, run


def counted(relevant, listed):
    """Best ranked relevant document, its losses, and the wrong documents, one after the other."""
    order = sorted(listed, reverse=True)
    order = sorted(order, key=lambda document: listed[document], reverse=True)
    found = [document for document in order if document in relevant]
    best = found[0] if found else relevant[0]
    wrong = [document for document in order if document not in relevant]
    return best, order.index(best) if found else None, wrong


@pytest.mark.parametrize("level", [1, 2])
def test_documents_counted_one_by_one(rng, level):
    qrels, run = random_run(rng)
    qrels = {q: d for q, d in qrels.items() if any(r >= level for r in d.values())}
    run = {q: run[q] for q in qrels}
    task = SourceTask.from_run(qrels, run, n_classes=100, relevance_level=level)
    answers = {d for judged in qrels.values() for d in judged if judged[d] >= level}
    names = sorted(answers) + sorted({d for listed in run.values() for d in listed} - answers)
    longest, lists = max(map(len, run.values())), task.nearest_classes
    assert task.n_classes == 100 and task.n_test == len(qrels)
    assert task.table.made_from == "cut ranks"
    size = lists.classes.shape[1]
    assert size >= 3
    for row, (query, listed) in enumerate(run.items()):
        relevant = [document for document, r in qrels[query].items() if r >= level]
        best, n_better, wrong = counted(relevant, listed)
        bounds = (longest, 99) if n_better is None else (n_better, n_better)
        assert names[task.y[row]] == relevant[0]
        assert task.table.lowest[row] == bounds[0]
        assert task.table.highest[row] == bounds[1]
        shown = [names[j] for j in lists.classes[row] if j >= 0]
        assert shown == wrong[:size]
        scores = [listed[document] for document in shown] + [-np.inf] * (size - len(shown))
        assert lists.scores[row].tolist() == scores
        assert lists.true[row] == (-np.inf if n_better is None else listed[best])


def test_lists_of_one_document_each_are_results_of_a_search(rng):
    """With one relevant document and full lists, both ways in know the same."""
    scores = rng.normal(size=(80, 50)) + 2 * np.eye(50)[np.arange(80) % 50]
    ids = np.argsort(-scores, axis=1)[:, :20]
    near = np.take_along_axis(scores, ids, axis=1)
    y = np.arange(80) % 50
    searched = SourceTask.from_search(
        ids, y, n_classes=50, distances=near, higher_is_better=True, class_weight=np.bincount(y)
    )
    run = {
        i: dict(zip(row, values, strict=True))
        for i, (row, values) in enumerate(zip(ids.tolist(), near.tolist(), strict=True))
    }
    task = SourceTask.from_run({i: {int(j): 1} for i, j in enumerate(y)}, run, n_classes=50)
    k = np.arange(2, 51)
    for bound, expected in zip(task.accuracy_bounds(k), searched.accuracy_bounds(k), strict=True):
        np.testing.assert_allclose(bound, expected, rtol=1e-12)
    assert task.bins.ends.tolist() == searched.bins.ends.tolist()
    np.testing.assert_array_equal(task.nearest_classes.scores, searched.nearest_classes.scores)
    # Whole numbers are names like any other: positions follow their order as text.
    names = np.array(sorted(range(50), key=str))
    assert names[task.nearest_classes.classes].tolist() == searched.nearest_classes.classes.tolist()


def frames(qrels, run, make):
    """The same as frames with other columns beside those that count."""
    tables = []
    for values, number in ((qrels, "relevance"), (run, "score")):
        rows = [(q, 0, d, x) for q, listed in values.items() for d, x in listed.items()]
        columns = ["query_id", "iteration", "doc_id", number]
        tables.append(make(rows, columns))
    return tables


@pytest.mark.parametrize("kind", ["pandas", "polars", "entries in disorder"])
def test_other_forms_of_the_same(rng, kind):
    qrels, run = random_run(rng)
    make = {
        "pandas": lambda rows, columns: pd.DataFrame(rows, columns=columns, index=[0] * len(rows)),
        "polars": lambda rows, columns: pl.DataFrame(rows, schema=columns, orient="row"),
    }
    task = SourceTask.from_run(qrels, run, n_classes=100)
    if kind in make:
        qrels, run = frames(qrels, run, make[kind])
    else:
        run = {q: dict(rng.permutation(list(listed.items())).tolist()) for q, listed in run.items()}
        run = {q: {d: float(s) for d, s in run[q].items()} for q in rng.permutation(list(run))}
    other = SourceTask.from_run(qrels, run, n_classes=100)
    assert other.y.tolist() == task.y.tolist()
    for bound in ("lowest", "highest"):
        expected = getattr(task.table, bound).tolist()
        assert getattr(other.table, bound).tolist() == expected


class Qrel(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    iteration: str = "0"


class ScoredDoc(NamedTuple):
    query_id: str
    doc_id: str
    score: float


@pytest.mark.parametrize("kind", ["ir_measures", "generators", "pyterrier", "ranx", "pairs"])
def test_forms_of_other_software(rng, kind):
    qrels, run = random_run(rng)
    expected = SourceTask.from_run(qrels, run, n_classes=50)
    if kind in ("ir_measures", "generators"):
        made = (
            [make(q, d, x) for q, listed in values.items() for d, x in listed.items()]
            for make, values in ((Qrel, qrels), (ScoredDoc, run))
        )
        qrels, run = map(iter, made) if kind == "generators" else made
    elif kind == "pyterrier":
        qrels, run = frames(qrels, run, lambda rows, columns: pd.DataFrame(rows, columns=columns))
        names = {"query_id": "qid", "doc_id": "docno", "relevance": "label"}
        qrels, run = qrels.rename(columns=names), run.rename(columns=names)
    elif kind == "ranx":
        qrels, run = SimpleNamespace(qrels=qrels), SimpleNamespace(run=run)
    else:
        run = {q: list(listed.items()) for q, listed in run.items()}
    task = SourceTask.from_run(qrels, run, n_classes=50)
    assert task.table.lowest.tolist() == expected.table.lowest.tolist()
    assert task.y.tolist() == expected.y.tolist()


@pytest.mark.parametrize("make", [set, list, lambda documents: dict.fromkeys(documents, True)])
def test_relevant_documents_and_lists_without_numbers(rng, make):
    """Sentence Transformers has sets of relevant documents, and lists are ranked, best first."""
    qrels, run = random_run(rng)
    relevant = {q: [d for d, x in judged.items() if x > 0] for q, judged in qrels.items()}
    expected = SourceTask.from_run(qrels, run, n_classes=50)
    ranked = {
        q: sorted(listed, key=lambda d, s=listed: (np.float32(s[d]), d), reverse=True)
        for q, listed in run.items()
    }
    task = SourceTask.from_run({q: make(r) for q, r in relevant.items()}, ranked, n_classes=50)
    assert task.table.lowest.tolist() == expected.table.lowest.tolist()


def test_objects_that_turn_into_mappings(rng):
    """Qrels and Run of ranx have `to_dict`."""

    class Ranx:
        def __init__(self, entries):
            self.entries = entries

        def to_dict(self):
            return self.entries

    qrels, run = random_run(rng)
    plain = SourceTask.from_run(qrels, run, n_classes=50)
    task = SourceTask.from_run(Ranx(qrels), Ranx(run), n_classes=50)
    assert task.table.lowest.tolist() == plain.table.lowest.tolist()


def test_two_runs_have_the_same_classes_in_the_same_rows(rng):
    """Whatever they list, and whichever of several relevant documents they find."""
    qrels, run = random_run(rng)
    other = {
        query: {f"z{d}" if d[-1] == "1" else d: -score for d, score in listed.items()}
        for query, listed in reversed(run.items())
    }
    first, second = (SourceTask.from_run(qrels, lists, n_classes=200) for lists in (run, other))
    assert first.table.lowest.tolist() != second.table.lowest.tolist()
    assert first.y.tolist() == second.y.tolist()
    assert first.table.class_weight.tolist() == second.table.class_weight.tolist()


def test_nothing_is_open_beside_lists_of_the_whole_corpus():
    """A document that is not listed is then the last."""
    whole = {"x": 1.0, "y": 3.0, "z": 2.0}
    qrels, run = {"a": {"x": 1}, "b": {"y": 1}, "c": {"z": 1}}, {"a": whole, "b": {}, "c": whole}
    assert SourceTask.from_run(qrels, run, n_classes=3).ranks.tolist() == [3, 3, 2]


def test_every_query_weighs_the_same():
    """Three queries ask for one document, and one for another."""
    qrels = {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1}, "d": {"y": 1}}
    run = {q: {"x": 2.0, "y": 1.0, "z": 0.0} for q in qrels}
    task = SourceTask.from_run(qrels, run, n_classes=3)
    assert task.ranks.tolist() == [1, 1, 1, 2]
    assert task.accuracy(3).tolist() == [0.75]
    assert task.table.class_weight.tolist() == [0.75, 0.25, 0.0]


def test_queries_without_relevant_documents_are_left_out():
    qrels = {"a": {"x": 1}, "b": {"y": 1}, "c": {"x": 0}}
    run = {q: {"x": 2.0, "y": 1.0} for q in "abcd"}
    message = r"^run: left out 2 of 4 queries, such as 'c', because qrels has no document of relev"
    with pytest.warns(DataWarning, match=message):
        task = SourceTask.from_run(qrels, run, n_classes=9)
    assert task.ranks.tolist() == [1, 2]


QRELS = {"a": {"x": 1}, "b": {"y": 1}}
RUN = {"a": {"x": 2.0, "z": 1.0}, "b": {"x": 3.0}}
WRONG = {
    "a path": (
        {"run": "my.run"},
        r"run: .*\{query: \{document: score\}\}.*read_",
    ),
    "sets": (
        {"run": {"a": {"x"}, "b": {"y"}}},
        "run: .*dict of set; .* ranked ones a list",
    ),
    "other columns": (
        {"run": pd.DataFrame({"where": ["a"], "docno": ["x"], "score": [1.0]})},
        "run: .*where, docno, score, expected query_id, doc_id",
    ),
    "ambiguous columns": (
        {"qrels": pd.DataFrame({"qid": ["a"], "docno": ["x"], "score": [1.0], "rel": [1]})},
        "qrels: .*qid, docno, score, rel, expected query_id, doc_id, relevance",
    ),
    "swapped": ({"qrels": {"a": {"x": 2.5}}}, "qrels: .*relevance 2.5 .*qrels and run"),
    "NaN": (
        {"run": RUN | {"b": {"x": np.nan}}},
        "run: found score nan of document 'x' of query 'b",
    ),
    "too large": ({"run": RUN | {"b": {"x": 1e39}}}, r"run: found score 1e\+39 of document 'x'"),
    "text": ({"run": RUN | {"b": {"x": "3"}}}, "run: expected real numbers"),
    "no name": ({"run": RUN | {"b": {None: 3.0}}}, "run: expected names .*found None"),
    "no text": ({"run": RUN | {"b": {"\ud800": 3.0}}}, "run: expected names of text"),
    "twice": ({"run": RUN | {"b": {1: 3.0, "1": 2.0}}}, "run: .*'1' of query 'b' twice"),
    "missing": ({"run": {"a": RUN["a"]}}, "run: 1 of 2 .* such as 'b'; pass missing"),
    "other queries": ({"run": {"q1": {"x": 1.0}}}, "run: found no query .* 'a' in qrels and 'q1'"),
    "empty lists": ({"run": {"a": {}, "b": {}}}, "run: found no document for any query"),
    "nothing relevant": ({"relevance_level": 2}, "qrels: found no document of relevance >= 2"),
    "level": ({"relevance_level": 0}, "relevance_level: .* >= 1, found 0"),
    "rule": ({"missing": "zero"}, "missing: found 'zero', .*'error', 'unanswered'"),
    "small corpus": (
        {"n_classes": 3, "run": RUN | {"b": {"u": 1.0}}},
        "n_classes: found 3, .*4 documents",
    ),
    "one document": (
        {"qrels": {"a": {"x": 1}, "b": {"x": 1}}},
        "qrels: all queries .* document 'x'",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
def test_errors_say_what_is_wrong(arguments, message):
    with pytest.raises(DataError, match=f"^{message}"):
        SourceTask.from_run(**{"qrels": QRELS, "run": RUN, "n_classes": 9} | arguments)


def test_relevant_documents_that_are_tied():
    """Names decide, as in trec_eval; a warning says so if they decide the accuracy.

    Of 40 queries 37 are right at once. Three ties at the top move the accuracy by .075, which is
    less than two standard errors, .083. If the tied documents are not at the top, they do not
    move it.
    """
    qrels = {f"q{j}": {f"d{j}": 1} for j in range(40)}
    cases = (0, True, ""), (3, True, "note"), (8, True, "warning"), (8, False, "note")
    for n_tied, at_top, kind in (*cases, (30, False, "warning")):
        run = {
            f"q{j}": {f"d{j}": 2.0, f"e{j}": 2.0 if j < n_tied else 1.0, f"f{j}": 0.5}
            | ({f"g{j}": 3.0} if j < n_tied and not at_top else {})
            for j in range(40)
        }
        task = SourceTask.from_run(qrels, run, n_classes=200)
        check = next(check for check in diagnose(task) if check.name == "ties")
        assert (check.value > check.limit) is (kind == "warning")
        sentences = {"warning": task.warnings, "note": set(task.notes) - set(task.warnings)}
        for name, texts in sentences.items():
            tied = f"tied with others for {n_tied} of 40 queries"
            assert any(tied in text for text in texts) == (name == kind)


def test_several_relevant_documents_are_said_to_be_counted():
    qrels = {"a": {"d1": 1, "d2": 1}, "b": {"d3": 1}, "c": {"d4": 1}}
    run = {"a": {"d1": 9.0, "d5": 8.0}, "b": {"d3": 5.0}, "c": {"d6": 7.0}}
    task = SourceTask.from_run(qrels, run, n_classes=10)
    assert any("1 of 3 queries have several relevant documents" in note for note in task.notes)
    for metric in ("map@5", "MAP"):
        with pytest.raises(DataError, match=r"'map.* several relevant .*'success@10'"):
            task.metric(metric, 10)
    alone = SourceTask.from_run({**qrels, "a": {"d1": 1}}, run, n_classes=10)
    assert not any("several relevant" in note for note in alone.notes)
    assert alone.metric("map@1", 10) == alone.metric("P@1", 10)


def test_checks_of_runs_speak_of_documents():
    scores = np.random.default_rng(1).normal(size=(60, 60))
    run = {f"q{i}": {f"d{j}": float(s) for j, s in enumerate(row)} for i, row in enumerate(scores)}
    task = SourceTask.from_run({f"q{i}": {f"d{i}": 1} for i in range(60)}, run, n_classes=60)
    (chance,) = task.warnings
    assert "among 2 documents" in chance and "run and qrels name" in chance and "y is" not in chance
    assert task.checks[0].name == "number of documents"


@pytest.mark.parametrize("worse", ["ranks", "distances"])
def test_runs_whose_lowest_number_is_best(worse):
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(60, 200))
    scores[np.arange(60), np.arange(60)] += 2.5
    best = np.argsort(-scores, axis=1)[:, :50]
    run = {
        f"q{i}": {
            f"d{j}": rank + 1.0 if worse == "ranks" else 10 - scores[i, j]
            for rank, j in enumerate(best[i])
        }
        for i in range(60)
    }
    task = SourceTask.from_run({f"q{i}": {f"d{i}": 1} for i in range(60)}, run, n_classes=200)
    assert any("ranks or distances, of which the lowest" in text for text in task.warnings)


def test_notes_of_runs_speak_of_queries_and_documents():
    rng = np.random.default_rng(3)
    documents = rng.normal(size=(60, 6))
    scores = (documents + 0.9 * rng.normal(size=documents.shape)) @ documents.T
    run = {
        f"q{i}": {f"d{j}": float(scores[i, j]) for j in np.argsort(-scores[i])[:20]}
        for i in range(60)
    }
    qrels = {f"q{i}": {f"d{i}": 1} for i in range(60)}
    task = SourceTask.from_run(qrels, run, n_classes=60)
    few = {"sampler": {"draws": 200, "tune": 200, "chains": 2}, "progressbar": False}
    with pytest.warns(ExtrapolationWarning, match="60 documents"):
        model = BayesianExtrapolator().fit(task, random_seed=1, **few)
        prediction = model.predict([10_000])
    assert "documents" in model.classes_until(0.5, metric="mrr").describe()
    text = " ".join(prediction.notes)
    assert "best relevant documents of " in text and " of 60 queries are not in" in text
    assert "all queries meet the same wrong documents" in text
    assert "times the 60 documents" in text and "class" not in text
    assert "among 60 documents" in repr(prediction)
