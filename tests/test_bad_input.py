"""Bad input of the whole package: one error that names the argument and says what was found.

A row of the table has a call, the argument or file with which the message begins, words that follow
in this order, and the bad values: a dictionary of arguments, or the value of the one that is named.
"""

import re
import warnings
from functools import partial
from pathlib import Path

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import classex_bayes as cb
from classex_bayes.exceptions import ExtrapolationWarning

NAN, INF, FAR = float("nan"), float("inf"), 10**13
Y = [0, 1, 2, 3, 0]
SCORES = np.eye(4)[Y] + np.arange(4) / 10
NAMES = np.array(list("abcd"))
LABELS = list("abcda")
RAGGED = [[1.0, 2, 3, 4], [1.0, 2, 3]]
CURVE = {"k": [2, 3, 4], "accuracy": [0.9, 0.8, 0.7], "n_test": 50, "n_classes": 4}
RANKS = {"ranks": [1, 2, 1, 3, 1], "y": Y, "n_classes": 4}
EMBEDDINGS = {"probes": SCORES, "gallery": SCORES[:4], "y": Y}
TASK = cb.SourceTask.from_ranks([1, 1, 2, 3], range(4), n_classes=4)
POINT, LAW = [cb.ClassExReg(0.5)], cb.simulate.VonMisesFisher(dim=4, concentration=3)


def scores(**values):
    return cb.SourceTask.from_scores(**{"scores": SCORES, "y": Y} | values)


def embeddings(**values):
    return cb.SourceTask.from_embeddings(**EMBEDDINGS | values)


def named_embeddings(**values):
    return embeddings(classes=NAMES, y=LABELS, **values)


def ranks(**values):
    return cb.SourceTask.from_ranks(**RANKS | values)


def own_ranks(**values):
    return cb.SourceTask.from_ranks(RANKS["ranks"], Y, **values)


def curve(**values):
    return cb.SourceTask.from_accuracies(**CURVE | values)


def method(name, **fixed):
    """A method of a task of scores."""
    return lambda **values: getattr(scores(), name)(**fixed | values)


def fit(task=TASK, prior=None, progressbar=False, **sampler):
    model = cb.BayesianExtrapolator(prior or cb.MixturePrior())
    sampler = {"draws": 5, "tune": 20, "chains": 1, **sampler}
    return model.fit(task, sampler=sampler, random_seed=1, progressbar=progressbar)


def OpenSet(drift):
    return cb.OpenSetExtrapolator(drift).fit(TASK)


def npz(name="task.npz", **arrays):
    np.savez(name, **arrays)
    return cb.read_task(name)


def csv(text, **options):
    Path("task.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return cb.read_task("task.csv", **options)


def animals(rows):
    """A table of scores whose sound rows are followed by others."""
    return csv("y,ant,bee,cat\nant,1,0,0\nbee,0,1,0\ncat,0,0,1\n" + rows)


def shards(**changes):
    """Two files of one test, the second of which is changed."""
    for number in range(2):
        part = {"scores": SCORES[:4], "y": NAMES, "classes": NAMES} | (changes if number else {})
        np.savez(f"{number}.npz", **{k: v for k, v in part.items() if v is not None})
    return cb.read_task(["0.npz", "1.npz"])


def trec(lines, **options):
    Path("my.run").write_text("".join(f"{line}\n" for line in lines))
    Path("qrels").write_text("q1 0 d1 1\nq2 0 d2 1\n")
    return cb.read_task("my.run", **{"qrels": "qrels", "n_classes": 9} | options)


def masked(values):
    """An array whose first entry is missing, with a value below the mask that would do."""
    array = np.ma.array(values)
    array[(0,) * array.ndim] = np.ma.masked
    return array


def put(place, value, array=SCORES):
    changed = np.array(array, dtype=float)
    changed[place] = value
    return changed


BAD_K = [([2, 5], "found 5"), ([2, NAN], "nan"), ("2", "'2'"), ([[2, 3]], "")]
BAD_CURVES = [
    ("k", "two,0.9\n5,0.8\n"), ("k", ",0.9\n5,0.8\n"), ("k", "2,0.9\n6,0.8\n"), ("k", ""),
    ("accuracy", "2,high\n5,0.8\n"), ("accuracy", "2,\n5,0.8\n"), ("accuracy", "2,90\n5,80\n"),
]  # fmt: skip
BAD_BACKTESTS = [
    ("store", "expected a path found 2", 2),
    ("store", "expected a path", "a\0"),
    ("n_jobs", "'two'", "two"),
    ("sampler", "'drawings' 'draws'", {"sampler": {"drawings": 5}}),
    ("n_pilots", "at most", FAR),
    ("estimators", "accuracy alone", {"metric": "mrr", "n_pilots": 2, "n_jobs": 1}),
]
BAD_TASKS = [([1], "task 0"), ([TASK], "fewer"), (2.5, "2.5"), (np.array(3.0), "3.")]
BAD_DRIFTS = [
    ("smaller_tasks", {"smaller_tasks": {4: 0.5}}),
    ("smaller_tasks", {"smaller_tasks": [3]}),
    ("smaller_tasks", {"smaller_tasks": {3: 0.5}, "nested": True}),
    ("accuracy", {"smaller_tasks": {3: 1.5}}),
    ("nested", 1),
]
ABC = "y,a,b,c\na,1,0,0\n"
NO_NAMES = "Unnamed: 0", " "
FRAMES = {names: pd.DataFrame(SCORES, columns=list(names)) for names in ("abca", "abcd")}
BAD = [
    # The matrix of scores
    (scores, "scores", "NaN row 2 column 1", put((2, 1), NAN)),
    (scores, "scores", "inf row 0 column 3", put((0, 3), INF)),
    (scores, "scores", "-inf row 4", {"scores": put((4, 2), -INF), "higher_is_better": False}),
    (scores, "scores", "two axes", SCORES[:, 0]),
    (scores, "scores, y", "swapped", {"scores": Y, "y": SCORES}),
    (scores, "scores", "at least one row", {"scores": SCORES[:0], "y": []}),
    (scores, "scores", "one column", SCORES[:, :0]),
    (scores, "scores", "found 1 class", {"scores": SCORES[:, :1], "y": [0] * 5}),
    (scores, "scores", "objects", [[1, 2, None]] * 5),
    (scores, "scores", "real numbers", "scores.csv"),
    (scores, "scores", "True and False", SCORES > 0),
    (scores, "scores", "precision", SCORES.astype(np.longdouble)),
    (scores, "scores", "shape", {"scores": RAGGED, "y": [0, 1]}),
    (scores, "scores", "masked (0, 0)", masked(SCORES)),
    (scores, "", "masked", {"scores": da.from_array(masked(SCORES), (5, 4), asarray=False)}),
    (scores, "scores", "real numbers name", pd.DataFrame(SCORES).assign(name="a")),
    (scores, "scores", "xarray.Dataset", xr.Dataset({"scores": (("test", "class"), SCORES)})),
    (scores, "classes", "'a' 0 3", {"scores": FRAMES["abca"], "y": LABELS}),
    # Labels
    (scores, "y", "found 4 row 2", [0, 1, 4, 3, 2]),
    (scores, "y", "found -1 row 3", [0, 1, 2, -1, 3]),
    (scores, "y", "found 2.5 row 3", [0, 1, 2, 2.5, 3]),
    (scores, "y", "found nan row 3", [0, 1, 2, NAN, 3]),
    (scores, "y", "4 labels for 5 rows", Y[:4]),
    (scores, "y", "shape", np.eye(5)),
    (scores, "y", "at least one label", []),
    (scores, "y", "text classes=", LABELS),
    (scores, "y", "found 4 y - 1", [1, 2, 3, 4, 1]),
    (
        scores,
        "y",
        "1 of 5 class 0 leave them out",
        {"scores": np.c_[range(5), SCORES], "y": np.add(Y, 1)},
    ),
    (scores, "y", "4 of 8 class 4 competitors leave them out", {"scores": np.c_[SCORES, SCORES]}),
    (scores, "y", "'x' row 2", {"y": list("abxda"), "classes": NAMES}),
    (scores, "y", "no test class 2", [0, 1, 3, 3, 0]),
    (scores, "y", "class 'c'", {"y": list("abdda"), "classes": NAMES}),
    (scores, "y", "2 classes", {"y": [2] * 5, "untested": "competitors"}),
    # Names
    (scores, "classes", "3 names for 4", list("abc")),
    (scores, "classes", "no name position 2", ["a", "b", float("nan"), float("nan")]),
    (scores, "classes", "'b' 1 3", {"y": list("abcba"), "classes": list("abcb")}),
    (scores, "classes", "list", {"classes": {"a": 0, "b": 1, "c": 2, "d": 3}}),
    (
        scores,
        "classes",
        "another order column 1 'b' 'c'",
        {"scores": FRAMES["abcd"], "y": LABELS, "classes": list("acbd")},
    ),
    *[
        (scores, "scores", "column 0 no name index", {"scores": frame, "y": LABELS})
        for frame in (pd.DataFrame(np.c_[range(5), SCORES], columns=[n, *NAMES]) for n in NO_NAMES)
    ],
    # Weights
    (scores, "class_weight", "shape", [1, 1, 1]),
    (scores, "class_weight", "-1", [1, -1, 1, 1]),
    (scores, "class_weight", "nan", [1, NAN, 1, 1]),
    (scores, "class_weight", "at least 2", [0, 0, 3, 0]),
    (scores, "class_weight", "twice", pd.Series([1, 1, 1, 1], [0, 1, 2, 2])),
    (scores, "class_weight", "", "balanced"),
    (scores, "class_weight", "class 2", {"class_weight": {0: 1, 1: 1, 3: 1}}),
    # Options
    (scores, "ties", "'half'", "half"),
    (scores, "untested", "'drop'", "drop"),
    (scores, "higher_is_better", "True or False", "False"),
    (scores, "random_seed", "-1", -1),
    (embeddings, "distance", "'euclidean'", "euclidean"),
    (embeddings, "distance", "from_scores(D, y, higher_is_better=False)", "mahalanobis"),
    (embeddings, "reduce", "'min'", "min"),
    # Embeddings
    (embeddings, "probes", "nan row 3", put((3, 0), NAN)),
    (embeddings, "gallery", "-inf row 1 column 2", put((1, 2), -INF, SCORES[:4])),
    (embeddings, "probes", "row 0", 1e200 * SCORES),
    (embeddings, "probes", "row 2 zero vector", {"probes": put(2, 0), "distance": "cosine"}),
    (embeddings, "gallery", "row 1 zero", {"gallery": put(1, 0)[:4], "distance": "cosine"}),
    (embeddings, "probes", "row 3 1e-152", {"probes": put(3, 1e-170), "distance": "dot"}),
    (embeddings, "gallery", "difference", {"gallery": 1e-160 * SCORES[:4] + [1, 0, 0, 0]}),
    (embeddings, "probes, gallery", "4 and 3", {"gallery": SCORES[:4, :3]}),
    (embeddings, "probes", "two axes", SCORES[0]),
    (embeddings, "gallery", "2 classes", {"gallery": SCORES[:2], "y": [0, 1, 0, 1, 0]}),
    (embeddings, "y", "found 4 row 4", [0, 1, 2, 3, 4]),
    (embeddings, "gallery_y", "3 labels for 4 rows", [0, 1, 2]),
    (named_embeddings, "gallery_y", "class 'd'", list("abca")),
    (named_embeddings, "gallery_y", "'x' row 3", list("abcx")),
    # Ranks
    (ranks, "ranks", "found 0 row 1 1 is best", [1, 0, 1, 3, 1]),
    (ranks, "ranks", "found 5 row 4", [1, 2, 1, 3, 5]),
    (ranks, "ranks", "found 1.2 row 1", [1, 1.2, 1, 3, 1]),
    (ranks, "ranks", "found nan row 0", [NAN, 2, 1, 3, 1]),
    (ranks, "y", "4 labels for 5", [0, 1, 2, 3]),
    (ranks, "n_classes", "2 classes", {"ranks": [1, 2], "y": [0, 1], "n_classes": 2}),
    (ranks, "n_classes", "4.5", 4.5),
    (ranks, "n_classes", "equal lengths", [[1, 2], [3]]),
    (own_ranks, "n_negatives", "at most 1e+08", 10**9),
    (ranks, "n_classes", "at most", {"n_classes": 10**12, "untested": "competitors"}),
    # Curves
    (curve, "accuracy", "found 1.1", [1.1, 0.8, 0.7]),
    (curve, "accuracy", "found 90", [90, 80, 70]),
    (curve, "accuracy", "k = 4", [0.9, 0.8, -0.1]),
    (curve, "accuracy", "nan k = 3", [0.9, NAN, 0.7]),
    (curve, "accuracy", "increases 0.1 k = 2", {"accuracy": [0.1, 0.8, 0.9], "n_test": 1000}),
    (curve, "accuracy", "3 values", [0.9, 0.8]),
    (curve, "k", "2..3 found 4", {"n_classes": 3}),
    (curve, "k", "found 1", [1, 2, 3]),
    (curve, "k", "3 more than once", [2, 3, 3]),
    (curve, "k", "0.9", {"k": [0.9, 0.8, 0.7], "accuracy": [2, 3, 4]}),
    *[(curve, "n_test", str(n), {"n_test": n}) for n in (0, "many")],
    (curve, "n_test", "timedelta", {"n_test": np.timedelta64(50, "s")}),
    (curve, "design_effect", "", 0.5),
    # Numbers of classes
    *[(method("accuracy"), "k", words, {"k": k}) for k, words in BAD_K],
    (method("accuracy_cov"), "k", "3 more than once", [3, 3]),
    (method("subsample"), "n_classes", "found 2", 2),
    (method("subsample"), "n_classes", "found 5", 5),
    (method("subsample"), "n_classes", "equal lengths", [[1, 2], [3]]),
    *[(method("grid"), "number", "expected", {"number": value}) for value in ("two", 0, FAR)],
    (method("metric", k=3), "metric", "", {"metric": f"accuracy@{10**20}"}),
    # Fits, comparisons and plans
    (fit, "progressbar", "True or False", "no"),
    *[(cb.load, "path", "expected a path", path) for path in ("\ud800.nc", "a" * 5000 + ".nc")],
    *[(cb.read_task, "paths", "expected a path", path) for path in ("a\0.npz", "a" * 5000, 3.5)],
    (partial(cb.SourceTask.from_batches), "batches", "iterable", np.array(3.0)),
    (cb.SourceTask.merge, "parts", "sequence of tasks", np.array(3.0)),
    (partial(LAW.sample, 10), "repeats", "at most 1e+08", 10**18),
    (partial(cb.backtest, POINT, TASK, 3, 4), "n_jobs", "number of processes", 10**30),
    (OpenSet, "drift", "<= 100", 1e300),
    (fit, "draws", "at most", FAR),
    (cb.MixturePrior, "lower", "", -(10**30)),
    (cb.MixturePrior, "bandwidth", "", 1e-30),
    (cb.load, "path", "expected a path", {"path": {1: [2]}}),
    (partial(cb.write_report, None, 3.5), "", "", {"path": 9}),
    *[(partial(cb.backtest, POINT, TASK, 3), *row) for row in BAD_BACKTESTS],
    (partial(cb.compare_classifiers, k=9), "tasks['b']", "", {"tasks": {"a": TASK, "b": 3}}),
    (partial(cb.compare_classifiers, {"a": TASK, "b": TASK}, 9), "sampler", "5", 5),
    (partial(cb.estimators.bootstrap, POINT[0], TASK, 9), "n_resamples", "at most", FAR),
    # Assumptions
    (cb.diagnose, "task", "int", 3),
    (cb.ClassExReg().fit, "task", "list", {"task": []}),
    (cb.KDE("ucv").fit, "task", "from_scores or from_embeddings", {"task": curve()}),
    *[(partial(cb.extrapolate_groups, TASK, k=9), "groups", "", {"groups": g}) for g in (None, 3)],
    (partial(cb.diagnose, scores()), "random_seed", "-1", -1),
    *[
        (partial(cb.measure_drift, TASK), "smaller_tasks", words, {"smaller_tasks": tasks})
        for tasks, words in BAD_TASKS
    ],
    *[(partial(cb.measure_drift, scores()), name, "", values) for name, values in BAD_DRIFTS],
    (cb.measure_drift(TASK).apply, "prediction", "what predict returns", cb.BayesianExtrapolator()),
    # Files
    (npz, "task.npz", "found nothing", {}),
    (npz, "task.npz", "found scores (5, 4)", {"scores": SCORES}),
    (npz, "task.npz", "found x, y", {"x": SCORES, "labels": Y}),
    (npz, "task.npz", "found probes, y, expected gallery", {"probes": SCORES, "y": Y}),
    (
        npz,
        "task.npz",
        "found ranks, y, expected n_classes or n_negatives",
        {"ranks": RANKS["ranks"], "y": Y},
    ),
    *[(npz, "task.npz: n_classes", "", RANKS | {"n_classes": n}) for n in ([3, 4], 3.5)],
    (npz, "task.npz: n_test", "", CURVE | {"n_test": "many"}),
    (npz, "task.npz: ranks", "found 9 row 1", RANKS | {"ranks": [1, 9, 1, 3, 1]}),
    (npz, "task.npz", "not a readable .astype(str)", {"scores": SCORES, "y": np.array(Y, object)}),
    (npz, "task.npz: scores, y", "", {"scores": Y, "y": SCORES}),
    (npz, "task.npz: distance", "", EMBEDDINGS | {"distance": "manhattan"}),
    (csv, "task.csv", "not a readable", ""),
    (csv, "task.csv: scores", "", "y,ant,bee,cat\n"),
    (csv, "task.csv", "column y", "ant,bee,cat\n1,0,0\n"),
    (csv, "task.csv", "commas", "y;ant;bee;cat\nant;1,5;0,2;0,1\n"),
    (csv, "task.csv", "'1,5' column 'ant', row 0", 'y,ant,bee,cat\nant,"1,5",0,0\n'),
    (csv, "task.csv", "not a readable", b"\xff\xfe\x00\x80" * 9),
    (csv, "task.csv", "UTF-8", "y,ant,bé,cat\n".encode("latin-1")),
    (animals, "task.csv: y", "row 3", "\x1a"),
    (csv, "task.csv", "", 'y,ant,bee,cat\n"ant,1,0,0\n'),
    (animals, "task.csv", "'high' column 'bee', row 3", "bee,0,high,0\n"),
    (animals, "task.csv: scores", "row 3, column 2", "ant,1,0\n"),
    (animals, "task.csv", "not a readable", "ant,1,0,0,5\n"),
    (csv, "task.csv", "header", "y,ant,bee,cat\nant,1,0,0,5\nbee,0,1,0,5\n"),
    (animals, "task.csv: y", "'dog' row 3", "dog,0,0,1\n"),
    (animals, "task.csv", "column y, row 3", ",0,0,1\n"),
    (csv, "task.csv: y", "class 'cat'", "y,ant,bee,cat\nant,1,0,0\nbee,0,1,0\n"),
    (csv, "task.csv: y", "class 'ant.1'", "y,ant,ant,cat\nant,1,0,0\ncat,0,0,1\n"),
    (csv, "task.csv: scores", "no name", ",y,ant,bee,cat\n0,ant,1,0,0\n1,bee,0,1,0\n2,cat,0,0,1\n"),
    (csv, "task.csv: scores", "", "size,y\n1,0\n3,1\n2,2\n"),
    (csv, "task.csv", "k, accuracy, n_test, n_classes", "k,accuracy\n2,0.9\n"),
    *[
        (partial(csv, n_test=50, n_classes=5), f"task.csv: {name}", "", f"k,accuracy\n{rows}")
        for name, rows in BAD_CURVES
    ],
    (shards, "0.npz, 1.npz", "classes", {"classes": NAMES[[0, 2, 1, 3]]}),
    (shards, "0.npz, 1.npz", "found scores, y, classes", {"classes": None}),
    (shards, "0.npz, 1.npz", "scores", {"scores": SCORES[:4, :3]}),
    (shards, "0.npz, 1.npz", "found", {"ranks": [1] * 4, "scores": None, "n_classes": 4}),
    (shards, "1.npz", "rows", {"y": NAMES[:3]}),
    (shards, "0.npz and 1 more: scores", "row 5 row 1 of 1.npz", {"scores": put((1, 2), NAN)[:4]}),
    (shards, "0.npz and 1 more: y", "row 5 row 1 of 1.npz", {"y": np.array(list("axab"))}),
    (cb.read_task, "paths", "none", {"paths": []}),
    (cb.read_task, "paths", "", {"paths": ["a.npz", 3]}),
    (cb.read_task, "paths", "more than once", {"paths": ["a.npz", "a.npz"]}),
    (cb.read_task, "no.npz", "no such file", {"paths": "no.npz"}),
    (cb.read_task, ".", "folder", {"paths": "."}),
    (partial(csv, ABC), "distance", "does not apply", "dot"),
    (partial(csv, ABC), "tie", "does not apply", "random"),
    (trec, "my.run", "'q1 Q0 d2 2 0.4' row 1", ["q1 Q0 d1 1 0.5 t", "q1 Q0 d2 2 0.4"]),
    (trec, "my.run", "'high'", ["q1 Q0 d1 1 high t"]),
]


@pytest.fixture(autouse=True)
def folder_of_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def name(row):
    """A call, an argument and words, for the list of tests."""
    call, begins, words, _ = row
    call = getattr(call, "func", call)
    return f"{getattr(call, '__name__', type(call).__name__)} {begins} {words}"[:70]


@pytest.mark.parametrize(("call", "begins", "words", "values"), BAD, ids=map(name, BAD))
def test_bad_input_is_one_error_that_names_it(call, begins, words, values):
    with pytest.raises(cb.DataError) as caught:
        if isinstance(values, dict):
            call(**values)
        elif begins.isidentifier():
            call(**{begins: values})
        else:
            call(values)
    message = str(caught.value)
    assert type(caught.value) is cb.DataError
    assert message.startswith(f"{begins}: " if begins else "")
    assert re.search(".*".join(map(re.escape, words.split())), message.removeprefix(begins))
    assert "\n" not in message and len(message) < 350


def test_the_sound_input_is_taken():
    for make in (scores, embeddings, ranks, curve):
        assert make().n_classes == 4
    assert animals("").n_classes == 3 and shards().n_test == 8


def test_odd_but_valid_arguments():
    for seed in (0, np.int64(3), 2**70, np.random.SeedSequence(5), None):
        scores(random_seed=seed)
    scores(scores=np.ones((5, 4)))
    scores(scores=np.ma.array(SCORES), y=np.ma.array(Y))
    scores(scores=put((0, 1), -INF))
    scores(scores=pd.DataFrame(SCORES), y=pd.Series(Y, index=list("vwxyz")))
    scores(y=np.array(Y, dtype=float), higher_is_better=np.True_)
    scores(y=LABELS, classes=iter(NAMES))
    scores(y=LABELS, classes=pd.Index(NAMES))
    assert scores(y=LABELS, classes=dict.fromkeys("abcd").keys()).classes == list("abcd")
    embeddings(probes=put(2, 0), distance="dot")
    embeddings(probes=put(3, 1e-170))  # near the origin it is a vector like others
    ranks(ranks=np.array([1.0, 2, 1, 3, 1]), n_classes=np.float64(4))
    curve(n_test=50.0, n_classes=np.int32(4), design_effect=1)
    assert scores(class_weight=[1e308] * 4).table.class_weight.tolist() == [0.25] * 4
    assert scores().accuracy(range(2, 5)).shape == (3,)
    assert scores().accuracy(np.float64(3)).shape == (1,)
    small = np.arange(20).reshape(5, 4).tolist()
    scores(scores=[[*row[:-1], 0.5] for row in small])


# Input that NumPy takes in another sense than it is meant


def labelled(values, **coords):
    return xr.DataArray(values, dims=("test", "class")[: np.ndim(values)], coords=coords)


def test_coordinates_name_the_classes():
    names = list("dcba")
    named, y = labelled(SCORES, **{"class": names}), [names[j] for j in Y]
    weight = xr.DataArray(np.arange(1, 5), dims="class", coords={"class": sorted(names)})
    task = scores(scores=named, y=y, class_weight=weight)
    assert task.classes == names
    assert_array_equal(task.ranks, scores().ranks)
    assert_allclose(task.table.class_weight * 10, np.arange(4, 0, -1))
    assert_array_equal(scores(scores=labelled(SCORES), y=labelled(Y)).ranks, scores().ranks)
    rows = [pd.Series(row, index=names) for row in SCORES]
    assert_array_equal(scores(scores=rows).ranks, scores().ranks)


@pytest.mark.parametrize(
    ("make", "name"), [(scores, "scores"), (embeddings, "probes"), (ranks, "ranks")]
)
def test_coordinates_that_disagree(make, name):
    values = np.asarray(RANKS["ranks"] if name == "ranks" else SCORES)
    y = labelled(Y, test=np.arange(5))
    make(**{name: labelled(values, test=np.arange(5)), "y": y})
    with pytest.raises(cb.DataError, match=r"y: the index has the entries .* in another"):
        make(**{name: labelled(values, test=np.arange(5)[::-1]), "y": y})


@pytest.mark.parametrize("distance", ["cosine", "sqeuclidean", "dot"])
@pytest.mark.parametrize("power", [-310, -170, -160, -157, -154, -151, -130, -20, 130, 145, 160])
def test_the_unit_of_embeddings_is_refused_or_does_not_matter(distance, power):
    rng = np.random.default_rng(2)
    probes, gallery = rng.normal(size=(30, 6)), rng.normal(size=(10, 6))
    y, scale = np.arange(30) % 10, 10.0**power
    wide = np.longdouble  # of more exponents than the code under test has
    left, right = (values.astype(wide) * wide(scale) for values in (probes, gallery))
    products, squares = left @ right.T, [(v**2).sum(axis=1) for v in (left, right)]
    exact = {
        "dot": products,
        "cosine": products / np.sqrt(np.outer(*squares)),
        "sqeuclidean": 2 * products - squares[1] - squares[0][:, None],
    }[distance]
    arguments = {"probes": probes * scale, "gallery": gallery * scale, "y": y, "distance": distance}
    if -152 < power < 140:
        expected = (exact > exact[np.arange(30), y][:, None]).sum(axis=1) + 1
        assert_array_equal(embeddings(**arguments).ranks, expected)
    else:
        with pytest.raises(cb.DataError, match=r"at (least 1e-152|most 1e\+140)"):
            embeddings(**arguments)


def test_whole_numbers_beyond_doubles():
    large = 2**60 + np.arange(20).reshape(5, 4)  # equal in double precision
    expected = (large[np.arange(5), Y][:, None] < large).sum(axis=1) + 1
    for values in (large, large.tolist(), pd.DataFrame(large)):
        assert_array_equal(scores(scores=values).ranks, expected)
    named = scores(y=np.add(Y, 2**53), classes=[2**53 + j for j in range(4)])
    assert_array_equal(named.ranks, scores().ranks)


def test_small_rises_add_up():
    k, rising = np.arange(2, 11), np.linspace(0.5, 0.9, 9)
    rest = {"k": k, "n_classes": 10, "design_effect": 2}
    with pytest.warns(ExtrapolationWarning, match=r"increases from 0.5 at k = 2 to 0.9 at k = 10"):
        curve(accuracy=rising, n_test=40, **rest)
    with pytest.raises(cb.DataError, match=r"increases from 0.5 at k = 2 to 0.9 at k = 10"):
        curve(accuracy=rising, n_test=400, **rest)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curve(accuracy=rising[::-1], n_test=400, **rest)


REPORTS = {
    "date": ["2026-01-02", 5],
    "references": [cb.KDE(), "KDE", [5], np.zeros(2)],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, bad in REPORTS.items() for v in bad])
def test_arguments_of_a_report(fitted, name, value, tmp_path):
    with pytest.raises(cb.DataError, match=f"^{name}: expected"):
        cb.write_report(fitted, 300, tmp_path / "a.html", **{name: value})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("chains", "draws", "enough"), [(2, 3, False), (2, 12, False), (1, 25, True)]
)
def test_the_fewest_draws_that_are_weighed(chains, draws, enough):
    model = fit(chains=chains, draws=draws)
    if enough:
        assert np.isfinite(cb.sensitivity(model, 9).table["prior"]).all()
    else:
        with pytest.raises(cb.DataError, match=r"^draws: found \d+ x \d+, too few"):
            cb.sensitivity(model, 9)


@pytest.mark.skipif(pd.__version__ < "3.1", reason="older versions drop bytes of 0")
def test_a_byte_of_zero_is_no_digit(tmp_path):
    (tmp_path / "task.csv").write_bytes(b"a,b,c,y\n1,2,3,a\n1,2\x00,3,b\n1,2,3,c\n")
    with pytest.raises(cb.DataError, match=r"task\.csv: .*column 'b', row 1"):
        cb.read_task(tmp_path / "task.csv")
