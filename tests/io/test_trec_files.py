"""Files of TREC, packed or not, one run or several, give the task of what is in them."""

import gzip

import numpy as np
import pytest

from classex_bayes import DataError, SourceTask, read_task

QRELS = {f"q{i}": {f"d{i}": 1, f"d{i + 1}": 0, f'"{i % 3}': 2 * (i % 2)} for i in range(8)}
# Queries 2 and 6 find no relevant document.
RUN = {
    f"q{i}": {f"d{(i + 2 * j) % 12}": 0.1 * j for j in range(i % 4 // 2, 5)}
    | ({f'"{i % 3}': 0.15} if i % 4 else {})
    for i in range(8)
}


def lines(values, form):
    return [form.format(q=q, d=d, x=x) for q, found in values.items() for d, x in found.items()]


@pytest.fixture
def written(tmp_path):
    """Write lines to a file, packed if its name says so."""

    def written(name, content, end="\n"):
        path = tmp_path / name
        text = "".join(line + end for line in content)
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
        return path

    return written


@pytest.fixture
def qrels(written):
    return written("qrels", lines(QRELS, "{q} 0 {d} {x}"))


def same(task, other):
    assert task.y.tolist() == other.y.tolist() and task.n_classes == other.n_classes
    k = range(2, other.n_classes + 1)
    np.testing.assert_array_equal(task.accuracy_bounds(k), other.accuracy_bounds(k))


@pytest.mark.parametrize("name", ["my.run", "my.run.gz", "run", "my.txt"])
@pytest.mark.parametrize(("blank", "end"), [(" ", "\n"), ("\t", "\r\n"), ("  ", " \n\n")])
def test_a_run(written, name, blank, end):
    form = blank.join(["{q}", "Q0", "{d}", "7", "{x}", "tag"])
    run = written(name, lines(RUN, form), end)
    judged = written("qrels.gz", lines(QRELS, blank.join(["{q}", "0", "{d}", "{x}"])), end)
    task = read_task(run, qrels=judged, n_classes=50)
    same(task, SourceTask.from_run(QRELS, RUN, n_classes=50))
    expected = SourceTask.from_run(QRELS, RUN, n_classes=50).nearest_classes
    np.testing.assert_array_equal(task.nearest_classes.scores, expected.scores)


def test_parts_of_a_run(written, qrels):
    entries = lines(RUN, "{q} Q0 {d} 7 {x} tag")
    files = [written(f"part{i}", entries[i::3]) for i in range(3)]
    same(read_task(files, qrels=qrels, n_classes=50), SourceTask.from_run(QRELS, RUN, n_classes=50))
    with pytest.raises(DataError, match=r"run: .*'d1' of query 'q1'"):
        read_task([*files, written("more", ["q1 Q0 d1 1 0.5 tag"])], qrels=qrels, n_classes=50)


def test_settings_reach_the_task(written, qrels):
    few = {query: RUN[query] for query in ("q1", "q3", "q5")}
    run = written("run", lines(few, "{q} Q0 {d} 7 {x} tag"))
    for level, missing, n in ((1, "unanswered", 8), (1, "unsearched", 3), (2, "unanswered", 4)):
        options = {"n_classes": 50, "relevance_level": level, "missing": missing}
        task = read_task(run, qrels=qrels, **options)
        same(task, SourceTask.from_run(QRELS, few, **options))
        assert task.n_test == n
    with pytest.raises(DataError, match="run: 5 of 8 queries"):
        read_task(run, qrels=qrels, n_classes=50)


WRONG = {
    "five columns": (["q1 Q0 d1 1 0.5"], "run: .*'q1 Q0 d1 1 0.5' in row 0"),
    "a short line": (["q1 Q0 d1 1 0.5 t", "q1 Q0 d2 2 0.4"], "run: .*'q1 Q0 d2 2 0.4' in row 1"),
    "a long line": (["q1 Q0 d1 1 0.5 t", "q1 Q0 d2 2 0.4 t t"], ".*line 2"),
    "no number": (["q1 Q0 d1 1 high t"], ".*'high'"),
    "nothing": ([], "not a readable"),
}


@pytest.mark.parametrize(("content", "message"), WRONG.values(), ids=WRONG)
def test_damaged_runs(written, qrels, content, message):
    run = written("my.run", content)
    with pytest.raises(DataError, match=f"my.run: {message}"):
        read_task(run, qrels=qrels, n_classes=50)


def test_what_belongs_together(written, qrels, tmp_path):
    run = written("my.run", lines(RUN, "{q} Q0 {d} 7 {x} tag"))
    for arguments, name in (
        ({"qrels": qrels}, "my.run: .*n_classes"),
        ({"n_classes": 50}, "my.run: .*qrels="),
        ({"qrels": run, "n_classes": 50}, "my.run: qrels"),
        ({"qrels": 3, "n_classes": 50}, "^qrels"),
        ({"qrels": tmp_path / "no", "n_classes": 50}, "no: there is no such file"),
        ({"qrels": qrels, "n_classes": 50, "distance": "dot"}, "^distance"),
        ({"qrels": qrels, "n_classes": 50, "labels": run}, "^labels, qrels"),
    ):
        with pytest.raises(DataError, match=name):
            read_task(run, **arguments)
