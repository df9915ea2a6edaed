"""Runs and judgements of retrieval against pytrec_eval and a count of documents one by one."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import better_classes, verdict

import classex_bayes as cb
from classex_bayes import DataError, SourceTask
from classex_bayes.exceptions import DataWarning
from classex_bayes.task.rank_bins import bin_ends

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
            name = f"{metric}@{depth}" if metric in ("mrr", "map") else metric
            found = task.metric(name, N_DOCUMENTS)
            # pytrec_eval adds in double precision as well.
            np.testing.assert_allclose(found, sum(values) / n, rtol=1e-12)


def test_mean_reciprocal_rank_of_whole_lists():
    case = CASES["lists of the corpus"]
    task = task_of(case, "unsearched")
    values = case["expected"]["mrr"]
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
    size, (min_better, max_better) = lists.classes.shape[1], better_classes(task)
    assert size >= 3
    for row, (query, listed) in enumerate(run.items()):
        relevant = [document for document, r in qrels[query].items() if r >= level]
        best, n_better, wrong = counted(relevant, listed)
        bounds = (longest, 99) if n_better is None else (n_better, n_better)
        assert names[task.y[row]] == relevant[0]
        assert (min_better[row], max_better[row]) == bounds
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
    assert bin_ends(task.table).tolist() == bin_ends(searched.table).tolist()
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
    np.testing.assert_array_equal(better_classes(other), better_classes(task))


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
        names = {"query_id": "user_id", "doc_id": "doc", "relevance": "label"}
        qrels, run = qrels.rename(columns=names), run.rename(columns=names)
    elif kind == "ranx":
        qrels, run = SimpleNamespace(qrels=qrels), SimpleNamespace(run=run)
    else:
        run = {q: list(listed.items()) for q, listed in run.items()}
    task = SourceTask.from_run(qrels, run, n_classes=50)
    np.testing.assert_array_equal(better_classes(task), better_classes(expected))
    assert task.y.tolist() == expected.y.tolist()


@pytest.mark.parametrize("labels", [(0, 1), (False, True), ("impostor", "genuine")])
def test_scored_pairs_are_a_run_and_its_judgements(rng, labels, tmp_path):
    """Entity resolution and trials of verification have one table with scores and labels."""
    pairs = pd.DataFrame(
        [
            (f"a{i}", f"b{j}", rng.normal() + 2 * (i == j), labels[int(i == j)])
            for i in range(8)
            for j in range(8)
        ],
        columns=["left_id", "right_id", "score", "label"],
    )
    ranks = [
        int((rows["score"] >= rows["score"][rows["label"] == labels[1]].item()).sum())
        for _, rows in pairs.groupby("left_id")
    ]
    task = SourceTask.from_run(pairs, pairs, n_classes=8)
    assert task.ranks.tolist() == ranks
    file = tmp_path / "pairs.csv"
    pairs.to_csv(file, index=False)
    assert cb.read_task(file, qrels=file, n_classes=8).ranks.tolist() == ranks


@pytest.mark.parametrize("score", [None, lambda place: 1 / (1 + place), lambda place: 99 - place])
def test_scores_of_the_place_alone_are_ranks(rng, score):
    """Their tail is that of the places, which says nothing of wrong documents that are better."""
    qrels, run = random_run(rng)
    lists = {query: sorted(listed, key=listed.get, reverse=True) for query, listed in run.items()}
    if score is not None:
        lists = {
            query: {name: score(place) for place, name in enumerate(names)}
            for query, names in lists.items()
        }
    task = SourceTask.from_run(qrels, lists, n_classes=50)
    assert task.table.nearest is None
    assert SourceTask.from_run(qrels, run, n_classes=50).table.nearest is not None


def nearest(vectors, queries, n):
    """Names of the nearest vectors of each query."""
    order = ((queries[:, None] - vectors) ** 2).sum(axis=2).argsort(axis=1)[:, :n]
    return {f"q{i}": [f"d{j}" for j in row] for i, row in enumerate(order)}


def test_judgements_that_are_nearest_neighbours_are_noted(rng):
    """More documents displace them, unlike the relevant ones of a class or of captions."""
    vectors, queries = rng.normal(size=(400, 6)), rng.normal(size=(60, 6))
    run = nearest(vectors.round(1), queries, 40)
    of_search = nearest(vectors, queries, 5)
    captions = {f"q{i}": [f"d{5 * i + j}" for j in range(5)] for i in range(60)}
    classes = {f"q{i}": [f"d{5 * (i // 4) + j}" for j in range(5)] for i in range(60)}
    numbers = {q: found[: 3 + i % 3] for i, (q, found) in enumerate(of_search.items())}
    graded = {q: dict(zip(found, (2, 1, 1, 1, 1), strict=True)) for q, found in of_search.items()}
    found = {q: captions[q] + run[q] for q in run}
    of_classes = {q: classes[q] + run[q] for q in run}
    for qrels, lists, expected in (
        (of_search, run, True),
        (captions, found, False),
        (classes, of_classes, False),
        (numbers, run, False),
        (graded, run, False),
        (of_search, {q: row[::-1] for q, row in run.items()}, False),
    ):
        lists = {q: list(dict.fromkeys(row)) for q, row in lists.items()}
        task = SourceTask.from_run(qrels, lists, n_classes=400)
        assert any("exact search" in note for note in task.notes) == expected


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
    np.testing.assert_array_equal(better_classes(task), better_classes(expected))


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
    np.testing.assert_array_equal(better_classes(task), better_classes(plain))


def test_two_runs_have_the_same_classes_in_the_same_rows(rng):
    """Whatever they list, and whichever of several relevant documents they find."""
    qrels, run = random_run(rng)
    other = {
        query: {f"z{d}" if d[-1] == "1" else d: -score for d, score in listed.items()}
        for query, listed in reversed(run.items())
    }
    first, second = (SourceTask.from_run(qrels, lists, n_classes=200) for lists in (run, other))
    assert not np.array_equal(better_classes(first), better_classes(second))
    assert first.y.tolist() == second.y.tolist()


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
    assert task.accuracy(3) == 0.75


def test_queries_without_relevant_documents_are_left_out():
    qrels = {"a": {"x": 1}, "b": {"y": 1}, "c": {"x": 0}}
    run = {q: {"x": 2.0, "y": 1.0} for q in "abcd"}
    with pytest.warns(DataWarning, match="2 of 4"):
        task = SourceTask.from_run(qrels, run, n_classes=9)
    assert task.ranks.tolist() == [1, 2]


def test_relevant_documents_that_are_tied():
    """Names decide, as in trec_eval; a warning says so if they decide the accuracy.

    Of 40 queries 37 are right at once. Three ties at the top move the accuracy by .075, which is
    less than two standard errors, .083. If the tied documents are not at the top, they do not
    move it.
    """
    qrels = {f"q{j}": {f"d{j}": 1} for j in range(40)}
    cases = (0, True, True), (3, True, True), (8, True, False), (8, False, True)
    for n_tied, at_top, passed in (*cases, (30, False, False)):
        run = {
            f"q{j}": {f"d{j}": 2.0, f"e{j}": 2.0 if j < n_tied else 1.0, f"f{j}": 0.5}
            | ({f"g{j}": 3.0} if j < n_tied and not at_top else {})
            for j in range(40)
        }
        task = SourceTask.from_run(qrels, run, n_classes=200)
        (check,) = (check for check in task.checks if check.name == "ties")
        assert check.passed is passed


def test_several_relevant_documents_are_said_to_be_counted():
    qrels = {"a": {"d1": 1, "d2": 1}, "b": {"d3": 1}, "c": {"d4": 1}}
    run = {"a": {"d1": 9.0, "d5": 8.0}, "b": {"d3": 5.0}, "c": {"d6": 7.0}}
    task = SourceTask.from_run(qrels, run, n_classes=10)
    assert task.several_relevant and any("1 of 3 queries" in note for note in task.notes)
    for metric in ("map@5", "MAP"):
        with pytest.raises(DataError):
            task.metric(metric, 10)
    alone = SourceTask.from_run({**qrels, "a": {"d1": 1}}, run, n_classes=10)
    assert alone.metric("map@1", 10) == alone.metric("P@1", 10)


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
    assert verdict(task, "order of lists") is False


@pytest.mark.parametrize("as_places", [False, True])
def test_the_smallest_may_be_the_best(as_places):
    rng, n = np.random.default_rng(0), 60
    found = rng.normal(size=(n, 8))
    distance = (((found + 0.7 * rng.normal(size=(n, 8)))[:, None] - found) ** 2).sum(axis=2)
    order = np.argsort(distance, axis=1)[:, :10]
    numbers = np.tile(np.arange(10.0), (n, 1)) if as_places else np.sort(distance, axis=1)
    run = {
        f"q{i}": {f"d{j}": float(value) for j, value in zip(row, numbers[i], strict=False)}
        for i, row in enumerate(order)
    }
    given = {f"q{i}": {f"d{i}": 1} for i in range(n)}, run
    options = {"n_classes": n, "higher_is_better": False}
    right = pytest.approx(np.mean(order[:, 0] == np.arange(n)))
    assert SourceTask.from_run(*given, **options).metric("recall@1", n) == right
    assert SourceTask.from_run(*given, **options).metric("recall@1") == right
