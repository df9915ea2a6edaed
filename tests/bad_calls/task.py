"""Bad calls of the constructors and methods of a task, but for files."""

from functools import partial

import array_api_strict as strict
import dask
import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import xarray as xr
from scipy.sparse import csr_array
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from bad_calls import Bad, bad_values
from classex_bayes import KDE, Sampling, SourceTask
from classex_bayes.task import accuracy_under_priors

NAN, INF, FAR = float("nan"), float("inf"), 10**13
Y = [0, 1, 2, 3, 0]
SCORES = np.eye(4)[Y] + np.arange(4) / 10
NAMES = np.array(list("abcd"))
LABELS = list("abcda")
CURVE = {"k": [2, 3, 4], "accuracy": [0.9, 0.8, 0.7], "n_test": 50, "n_classes": 4}
RECALLS = {"recalls": {1: 0.5, 3: 0.8}, "n_test": 50, "n_classes": 9}
RANKS = {"ranks": [1, 2, 1, 3, 1], "y": Y, "n_classes": 4}
EMBEDDINGS = {"probes": SCORES, "gallery": SCORES[:4], "y": Y}
IDS = np.argsort(-SCORES, axis=1)[:, :3]
SEARCH = {
    "ids": IDS,
    "y": Y,
    "n_classes": 4,
    "distances": np.take_along_axis(10 - SCORES, IDS, axis=1),
}
QRELS = {f"q{i}": {f"d{j}": 1} for i, j in enumerate(Y)}
RUN = {f"q{i}": {f"d{j}": float(s) for j, s in enumerate(row)} for i, row in enumerate(SCORES)}
COUNTS = pd.DataFrame([[5, 1, 1], [1, 6, 1], [0, 0, 0]])


def scores(**values):
    return SourceTask.from_scores(**{"scores": SCORES, "y": Y} | values)


def named_scores(**values):
    return scores(**{"y": LABELS, "classes": NAMES} | values)


def embeddings(**values):
    return SourceTask.from_embeddings(**EMBEDDINGS | values)


def named_embeddings(**values):
    return embeddings(classes=NAMES, y=LABELS, **values)


def ranks(**values):
    return SourceTask.from_ranks(**RANKS | values)


def own_ranks(**values):
    return SourceTask.from_ranks(**{"ranks": RANKS["ranks"], "y": Y} | values)


def curve(**values):
    return SourceTask.from_accuracies(**CURVE | values)


def recalls(**values):
    return SourceTask.from_recalls(**RECALLS | values)


def search(**values):
    return SourceTask.from_search(**SEARCH | values)


def own_lists(length=3):
    ids = np.array([[0, 1, 2], [1, 0, 2], [2, 0, 1], [0, 1, 2], [0, 2, 3]])
    if length == 2:
        ids[3, 0] = 3
    lists = {"ids": NAMES[ids[:, :length]], "y": LABELS, "classes": NAMES}
    return SourceTask.from_search(**lists, own_candidates=True)


def run(**values):
    return SourceTask.from_run(**{"qrels": QRELS, "run": RUN, "n_classes": 4} | values)


def confusion(counts=COUNTS, **options):
    return SourceTask.from_confusion(counts, **options)


def method(name, **fixed):
    """A method of a task of scores."""
    return lambda **values: getattr(scores(), name)(**fixed | values)


def masked(values):
    """An array whose first entry is missing, with a value below the mask that would do."""
    array = np.ma.array(values)
    array[(0,) * array.ndim] = np.ma.masked
    return array


def put(place, value, array=SCORES):
    changed = np.array(array, dtype=float)
    changed[place] = value
    return changed


OUTPUTS = [  # as of pipelines of transformers
    [{"label": name, "score": score} for name, score in zip(NAMES, row, strict=True)]
    for row in SCORES
]
WIDE = np.c_[SCORES, SCORES]
CHUNKED = da.from_array(SCORES, (2, 4))
DECISIONS = np.eye(4)[[1, 1, 2, 3, 0]]
RESET = pd.DataFrame(SCORES[:4], index=[2, 0, 1, 3])
BAD_BLOCKS = da.from_array(put((3, 2), NAN), (2, 4))
TREE = DecisionTreeClassifier().fit(SCORES, np.c_[Y, Y])
FRAMES = {names: pd.DataFrame(SCORES, columns=list(names)) for names in ("abca", "abcd")}
UNNAMED = [pd.DataFrame(np.c_[range(5), SCORES], columns=[n, *NAMES]) for n in ("Unnamed: 0", " ")]
ROWS_OF_FRAME = pd.DataFrame(SCORES, columns=NAMES, index=list("vwxyz"))
REVERSED = pd.Series(LABELS, index=ROWS_OF_FRAME.index)[::-1]
LAZY = pl.DataFrame(SCORES).lazy()
SOUND = np.arange(5) != 3
FAILED = np.where(SOUND[:, None], SCORES, NAN)
ZERO = {"probes": put(2, 0), "distance": "cosine"}
PART = {q: RUN[q] for q in list(RUN)[1:]}

MATRIX = [
    *bad_values(
        scores,
        "scores",
        {
            "NaN row 2 column 1": put((2, 1), NAN),
            "inf row 0 column 3": put((0, 3), INF),
            "two axes": SCORES[:, 0],
            "one column": SCORES[:, :0],
            "None row 0": [[1, 2, None]] * 5,
            "real numbers": "scores.csv",
            "True and False": SCORES > 0,
            "masked (0, 0)": masked(SCORES),
            "real numbers name": pd.DataFrame(SCORES).assign(name="a"),
            "xarray.Dataset": xr.Dataset({"scores": (("test", "class"), SCORES)}),
        },
    ),
    Bad(scores, "scores", "-inf row 4", {"scores": put((4, 2), -INF), "higher_is_better": False}),
    Bad(scores, "scores", "two axes", {"scores": Y, "y": SCORES}),
    Bad(scores, "scores", "at least one row", {"scores": SCORES[:0], "y": []}),
    Bad(scores, "scores", "found 1 class", {"scores": SCORES[:, :1], "y": [0] * 5}),
    Bad(scores, "scores", "shape", {"scores": [[1.0, 2, 3, 4], [1.0, 2, 3]], "y": [0, 1]}),
    Bad(scores, "", "masked", {"scores": da.from_array(masked(SCORES), (5, 4), asarray=False)}),
    Bad(scores, "classes", "'a' 0 3", {"scores": FRAMES["abca"], "y": LABELS}),
    *[
        Bad(scores, "scores", "column 0 no name index", {"scores": frame, "y": LABELS})
        for frame in UNNAMED
    ],
    Bad(
        scores,
        "scores",
        "equal lengths several outputs scores[0]",
        {"scores": (SCORES, SCORES[:, :3])},
        lambda: scores(scores=(SCORES, SCORES[:, :3])[0]),
    ),
    Bad(
        scores,
        "scores",
        "'label' row for row in scores pd.DataFrame",
        {"scores": OUTPUTS, "y": LABELS},
        lambda: scores(
            scores=pd.DataFrame([{e["label"]: e["score"] for e in row} for row in OUTPUTS]),
            y=LABELS,
        ),
    ),
    Bad(
        scores,
        "scores",
        "scores.toarray() not stored are 0 best of distances",
        {"scores": csr_array(SCORES)},
        lambda: scores(scores=csr_array(SCORES).toarray()),
    ),
    Bad(
        scores,
        "scores",
        "scores.collect()",
        {"scores": LAZY},
        lambda: scores(scores=LAZY.collect()),
    ),
    Bad(
        scores,
        "scores",
        "np.asarray(..., dtype=float)",
        {"scores": SCORES.astype(str)},
        lambda: scores(scores=np.asarray(SCORES.astype(str), dtype=float)),
    ),
    Bad(
        scores,
        "scores",
        "row 3 leave the row out and pass its class in unanswered=",
        {"scores": FAILED},
        lambda: scores(scores=SCORES[SOUND], y=np.array(Y)[SOUND], unanswered=[3]),
    ),
]
OF_LABELS = [
    *bad_values(
        scores,
        "y",
        {
            "found 4 row 2": [0, 1, 4, 3, 2],
            "found -1 row 3": [0, 1, 2, -1, 3],
            "found 2.5 row 3": [0, 1, 2, 2.5, 3],
            "found nan row 3": [0, 1, 2, NAN, 3],
            "4 labels for 5 rows": Y[:4],
            "shape": np.eye(5),
            "0 labels for 5 rows": [],
            "no test class 2": [0, 1, 3, 3, 0],
        },
    ),
    Bad(
        scores,
        "y",
        "y.argmax(axis=1)",
        {"y": np.eye(4)[Y]},
        lambda: scores(y=np.eye(4)[Y].argmax(axis=1)),
    ),
    Bad(scores, "y", "pass list(y)", {"y": iter(Y)}, lambda: scores(y=list(iter(Y)))),
    Bad(
        scores,
        "y",
        "text pass classes=",
        {"y": LABELS},
        lambda: scores(y=LABELS, classes=NAMES),
    ),
    Bad(scores, "y", "found 4 pass y - 1", {"y": np.add(Y, 1)}, lambda: scores(y=np.add(Y, 1) - 1)),
    Bad(
        scores,
        "y",
        "1 of 5 class 0 leave them out",
        {"scores": np.c_[range(5), SCORES], "y": np.add(Y, 1)},
    ),
    Bad(
        scores,
        "y",
        "4 of 8 class 4 gallery_y from_run untested='competitors' class_weight leave them out",
        {"scores": WIDE},
        lambda: scores(scores=WIDE, untested="competitors"),
    ),
    Bad(scores, "y", "2 classes", {"y": [2] * 5, "untested": "competitors"}),
    Bad(named_scores, "y", "'x' row 2", {"y": list("abxda")}),
    Bad(named_scores, "y", "class 'c'", {"y": list("abdda")}),
    Bad(
        scores,
        "y",
        "y.loc[scores.index], or y.to_numpy()",
        {"scores": ROWS_OF_FRAME, "y": REVERSED},
        lambda: scores(scores=ROWS_OF_FRAME, y=REVERSED.loc[ROWS_OF_FRAME.index]),
    ),
]
OF_NAMES = [
    *bad_values(
        scores,
        "classes",
        {
            "3 names for 4": list("abc"),
            "no name position 2": ["a", "b", NAN, NAN],
            "no name position 3": ["a", "b", "c", None],
            "list": {"a": 0, "b": 1, "c": 2, "d": 3},
        },
    ),
    Bad(scores, "classes", "'b' 1 3", {"y": list("abcba"), "classes": list("abcb")}),
    Bad(
        scores,
        "classes",
        "another order column 1 'b' 'c' leave classes out",
        {"scores": FRAMES["abcd"], "y": LABELS, "classes": list("acbd")},
        lambda: scores(scores=FRAMES["abcd"], y=LABELS),
    ),
]
OPTIONS = [
    *bad_values(
        scores,
        "class_weight",
        {
            "shape": [1, 1, 1],
            "-1": [1, -1, 1, 1],
            "nan": [1, NAN, 1, 1],
            "at least 2": [0, 0, 3, 0],
            "twice": pd.Series([1, 1, 1, 1], [0, 1, 2, 2]),
            "'instances' by default classes weigh alike": "balanced",
            "class 2": {0: 1, 1: 1, 3: 1},
        },
    ),
    Bad(scores, "ties", "'half'", {"ties": "half"}),
    Bad(scores, "untested", "'drop'", {"untested": "drop"}),
    Bad(scores, "higher_is_better", "True or False", {"higher_is_better": "False"}),
    Bad(scores, "random_seed", "-1", {"random_seed": -1}),
]
OF_EMBEDDINGS = [
    Bad(embeddings, "distance", "'euclidean'", {"distance": "euclidean"}),
    Bad(
        embeddings,
        "distance",
        "from_scores(D, y, higher_is_better=False)",
        {"distance": "mahalanobis"},
    ),
    Bad(embeddings, "reduce", "'min'", {"reduce": "min"}),
    Bad(embeddings, "probes", "nan row 3", {"probes": put((3, 0), NAN)}),
    Bad(embeddings, "gallery", "-inf row 1 column 2", {"gallery": put((1, 2), -INF, SCORES[:4])}),
    Bad(embeddings, "probes", "row 0", {"probes": 1e200 * SCORES}),
    Bad(
        embeddings,
        "probes",
        "row 2 zero vector leave it out and pass its class in unanswered=,",
        ZERO,
        lambda: embeddings(
            probes=np.delete(SCORES, 2, 0), y=np.delete(Y, 2), distance="cosine", unanswered=[2]
        ),
    ),
    Bad(embeddings, "gallery", "row 1 zero", {"gallery": put(1, 0)[:4], "distance": "cosine"}),
    Bad(embeddings, "probes", "row 3 1e-152", {"probes": put(3, 1e-170), "distance": "dot"}),
    Bad(embeddings, "gallery", "difference", {"gallery": 1e-160 * SCORES[:4] + [1, 0, 0, 0]}),
    Bad(embeddings, "probes, gallery", "4 and 3", {"gallery": SCORES[:4, :3]}),
    Bad(embeddings, "probes", "two axes", {"probes": SCORES[0]}),
    Bad(embeddings, "gallery", "2 classes", {"gallery": SCORES[:2], "y": [0, 1, 0, 1, 0]}),
    Bad(embeddings, "y", "found 4 row 4", {"y": [0, 1, 2, 3, 4]}),
    Bad(embeddings, "gallery_y", "3 labels for 4 rows", {"gallery_y": [0, 1, 2]}),
    Bad(named_embeddings, "gallery_y", "class 'd'", {"gallery_y": list("abca")}),
    Bad(named_embeddings, "gallery_y", "'x' row 3", {"gallery_y": list("abcx")}),
]
OF_RANKS = [
    *bad_values(
        ranks,
        "ranks",
        {
            "found 5 row 4": [1, 2, 1, 3, 5],
            "found 1.2 row 1": [1, 1.2, 1, 3, 1],
            "found nan row 0": [NAN, 2, 1, 3, 1],
        },
    ),
    Bad(
        ranks,
        "ranks",
        "found 0 row 1 1 is best add 1 if 0 is best",
        {"ranks": [1, 0, 1, 2, 1]},
        lambda: ranks(ranks=np.add([1, 0, 1, 2, 1], 1)),
    ),
    Bad(ranks, "y", "4 labels for 5", {"y": [0, 1, 2, 3]}),
    Bad(ranks, "n_classes", "2 classes", {"ranks": [1, 2], "y": [0, 1], "n_classes": 2}),
    Bad(ranks, "n_classes", "4.5", {"n_classes": 4.5}),
    Bad(ranks, "n_classes", "equal lengths", {"n_classes": [[1, 2], [3]]}),
    Bad(ranks, "n_classes", "at most", {"n_classes": 10**12, "untested": "competitors"}),
    Bad(own_ranks, "n_negatives", "at most 1e+08", {"n_negatives": 10**9}),
    Bad(own_ranks, "n_classes", "pass n_negatives", {}, lambda: own_ranks(n_negatives=3)),
]
OF_LISTS = [
    Bad(
        search,
        "distances",
        "pass higher_is_better=False",
        {"higher_is_better": True},
        lambda: search(higher_is_better=False),
    ),
    Bad(
        search,
        "ids",
        "pass classes=",
        {"ids": NAMES[IDS]},
        lambda: search(ids=NAMES[IDS], classes=NAMES),
    ),
    Bad(
        search,
        "ids",
        "leave the row out and pass its class in unanswered=",
        {"ids": np.where(SOUND[:, None], IDS, -1), "distances": None},
        lambda: search(ids=IDS[SOUND], y=np.array(Y)[SOUND], distances=None, unanswered=[3]),
    ),
    *[
        Bad(
            run,
            "run",
            "missing='unanswered' missing='unsearched'",
            {"run": PART},
            partial(run, run=PART, missing=missing),
        )
        for missing in ("unanswered", "unsearched")
    ],
    Bad(
        run,
        "qrels",
        "relevances [1] at least 2",
        {"relevance_level": 2},
        lambda: run(relevance_level=1),
    ),
]
OF_COUNTS = [
    Bad(
        confusion,
        "counts",
        "class 2 untested='competitors'",
        {},
        lambda: confusion(untested="competitors"),
    ),
    Bad(
        confusion,
        "counts",
        "counts.loc[counts.columns]",
        {"counts": COUNTS.iloc[[2, 0, 1]], "untested": "competitors"},
        lambda: confusion(COUNTS.iloc[[2, 0, 1]].loc[COUNTS.columns], untested="competitors"),
    ),
]
OF_CURVES = [
    *bad_values(
        curve,
        "accuracy",
        {
            "found 1.1": [1.1, 0.8, 0.7],
            "found 90 divide percentages by 100": [90, 80, 70],
            "k = 4": [0.9, 0.8, -0.1],
            "nan k = 3": [0.9, NAN, 0.7],
            "3 values": [0.9, 0.8],
        },
    ),
    Bad(
        curve,
        "accuracy",
        "increases 0.1 k = 2",
        {"accuracy": [0.1, 0.8, 0.9], "n_test": 1000},
    ),
    Bad(curve, "k", "2..3 found 4", {"n_classes": 3}),
    Bad(curve, "k", "found 1", {"k": [1, 2, 3]}),
    Bad(curve, "k", "3 more than once", {"k": [2, 3, 3]}),
    Bad(curve, "k", "0.9", {"k": [0.9, 0.8, 0.7], "accuracy": [2, 3, 4]}),
    *bad_values(curve, "n_test", {"0": 0, "many": "many", "timedelta": np.timedelta64(50, "s")}),
    Bad(curve, "n_test", "3", {"n_test": [50, 50]}),
    Bad(curve, "design_effect", "", {"design_effect": 0.5}),
]
OF_RECALLS = [
    *bad_values(
        recalls,
        "recalls",
        {
            "found 50 m = 1 divide percentages by 100": {1: 50.0, 3: 80.0},
            "found -0.1 m = 3": {1: 0.5, 3: -0.1},
            "nan": {1: NAN, 3: 0.8},
            "0.6 at m = 1 0.5 at m = 3": {1: 0.6, 3: 0.5},
            "m = 9 of 9": {1: 0.5, 9: 1.0},
            "found 0.1 at m = 3 guesses": {1: 0.05, 3: 0.1},
            "ndcg@10": {"recall@1": 0.5, "ndcg@10": 0.6},
            "MRR": {1: 0.5, "MRR": 0.6},
            "map@3": {"map@3": 0.6},
            ">= 1 found 0": {0: 0.1},
            "1.5": {1.5: 0.5},
            "none": {},
            "the same m twice": {1: 0.5, "R@1": 0.5},
            "mapping {1: 0.52": [0.5, 0.8],
        },
    ),
    Bad(recalls, "n_classes, n_negatives", "both", {"n_negatives": 8}),
    Bad(recalls, "n_classes, n_negatives", "neither", {"n_classes": None}),
    Bad(recalls, "n_negatives", "1 from_accuracies", {"n_classes": None, "n_negatives": 1}),
    Bad(recalls, "n_test", "0", {"n_test": 0}),
    Bad(recalls, "per_unit", "0", {"per_unit": 0}),
    Bad(recalls, "decimals", "-1", {"decimals": -1}),
    Bad(recalls, "design_effect", "", {"design_effect": 0.5}),
    Bad(lambda: recalls().ranks, "task", "recalls alone exact ranks from_scores"),
    Bad(lambda: recalls().y, "task", "recalls alone true classes"),
    Bad(lambda: recalls().subsample(4), "task", "recalls alone true classes"),
    Bad(lambda: recalls().metric("mrr", 9), "k", "recalls show only between which m"),
    Bad(recalls().accuracy, "k", "between", {"k": 5}, lambda: recalls().accuracy(9)),
]
BAD_K = {"found 5": [2, 5], "nan": [2, NAN], "'2'": "2", "": [[2, 3]]}
METHODS = [
    *bad_values(method("accuracy"), "k", BAD_K),
    Bad(method("accuracy_cov"), "k", "3 more than once", {"k": [3, 3]}),
    *bad_values(
        method("subsample"),
        "n_classes",
        {"found 2": 2, "found 5": 5, "equal lengths": [[1, 2], [3]]},
    ),
    *[Bad(method("grid"), "number", "expected", {"number": n}) for n in ("two", 0, FAR)],
    *bad_values(
        method("metric", k=3),
        "metric",
        {
            "": f"accuracy@{10**20}",
            "f1": "f1",
            "accuracy@0": "accuracy@0",
            "accuracy@1.5": "accuracy@1.5",
            "mrr@1001 at most 1000": "mrr@1001",
            "'mean_rank@5', expected 'mean_rank'": "mean_rank@5",
            "'precision', expected 'precision@1'": "precision",
            "'r_precision', which has no m": "r_precision@5",
            "5": 5,
        },
    ),
    Bad(
        lambda kept: named_scores().select(kept),
        "kept",
        "label 'x'",
        {"kept": ["b", "c", "x"]},
        lambda: named_scores().select(["b", "c", "d"]),
    ),
    Bad(SourceTask.from_batches, "batches", "iterable", {"batches": np.array(3.0)}),
    Bad(SourceTask.merge, "parts", "sequence of tasks", {"parts": np.array(3.0)}),
]


def parts(**changes):
    """Two halves of one test, the second of which is changed."""
    options = {"classes": NAMES, "untested": "competitors"}
    first = SourceTask.from_scores(SCORES[:3], LABELS[:3], **options)
    second = {"scores": SCORES[2:], "y": LABELS[2:]} | options | changes
    return SourceTask.merge([first, SourceTask.from_scores(**second)])


def negatives(**values):
    given = {"scores": SCORES, "y": LABELS} | values
    return SourceTask.from_negatives(**given)


def batches(batches, **options):
    return SourceTask.from_batches(batches, **options)


def sampled(**design):
    return scores(sampling=Sampling(**design))


def classifier(clf=None, X=None, y=LABELS):
    train = np.repeat(SCORES[:4], 2, axis=0) + np.random.default_rng(1).normal(size=(8, 4)) / 9
    clf = clf or GaussianNB().fit(train, np.repeat(NAMES, 2))
    return SourceTask.from_classifier(clf, SCORES if X is None else X, y)


GOOD = (SCORES[:3], Y[:3])
LETTERS = pd.DataFrame(SCORES, columns=NAMES)
LABELLED = pd.Series(LABELS)
NO_LABELS = {
    "list or an array, found a set": set(Y),
    "list or an array, found a dict": {0: 1, 1: 2},
    "shape (2, 2, 2)": np.zeros((2, 2, 2)),
    "[1, 2] at row 1": [[0], [1, 2]],
    "one column": pd.DataFrame({"a": Y, "b": Y}),
    "masked (3,)": np.ma.array(Y, mask=np.equal(Y, 3)),
}
UNREADABLE = [
    *bad_values(scores, "y", NO_LABELS | {"found none": None, "shape ()": 10**30}),
    *bad_values(scores, "unanswered", NO_LABELS | {"found 60 at row 0": [60]}),
    Bad(scores, "unanswered", "expected positions", {"unanswered": ["ann"]}),
    *[
        Bad(make, "y", "found a set", {"y": set(Y)})
        for make in (embeddings, ranks, search, negatives)
    ],
    Bad(scores, "y", "one label row 1 from_run", {"y": [[0], [1, 2], [3], [1], [0]]}),
    Bad(
        scores, "y", "leave out instances without a class", {"scores": np.eye(3), "y": [0, -100, 2]}
    ),
    Bad(
        scores,
        "y",
        "if the labels are names, pass classes=",
        {"scores": np.eye(3), "y": [0, 255, 2]},
    ),
    Bad(scores, "y", "transposed", {"scores": SCORES.T}),
    Bad(named_scores, "y", "label 0 at row 0 names", {"y": np.array(Y, dtype=object)}),
    Bad(scores, "y", "found 33 at row 1 names", {"y": [0, 33, 1, 2, 3], "classes": NAMES}),
    Bad(named_scores, "y", "label None at row 2", {"y": ["a", "b", None, "c", "d"]}),
    Bad(
        scores,
        "y",
        "found numbers, column 0 of scores '1'",
        {"scores": pl.DataFrame(SCORES, schema=list("1234"))},
    ),
    Bad(scores, "scores", "'x' row 0, column 'id'", {"scores": LETTERS.assign(id="x")}),
    Bad(scores, "scores", "True row 0, column 'ok'", {"scores": LETTERS.assign(ok=True)}),
    Bad(scores, "scores", "NaN row 2, column 1", {"scores": pd.DataFrame(put((2, 1), NAN))}),
    Bad(scores, "scores", "NaN row 2, column 1", {"scores": strict.asarray(put((2, 1), NAN))}),
    *[
        Bad(
            scores,
            "scores",
            "row 2, column 1",
            {"scores": put((2, 1), bad).astype(dtype), "higher_is_better": bad != -INF},
        )
        for dtype in ("f2", "f4", "f8")
        for bad in (NAN, INF, -INF)
    ],
    Bad(
        lambda **values: embeddings(classes=None, **values),
        "gallery",
        "another order; column 1 is 'c'",
        {
            "probes": pd.DataFrame(SCORES, columns=NAMES),
            "gallery": pd.DataFrame(SCORES[:4], columns=list("acbd")),
        },
    ),
    Bad(
        embeddings,
        "gallery",
        "'a' more than once gallery_y=gallery.index",
        {"gallery": pd.DataFrame(SCORES[:4], index=list("abca")), "y": list("abcab")},
    ),
    Bad(
        embeddings,
        "y",
        "gallery.reset_index(drop=True) classes=gallery.index",
        {"gallery": RESET},
        lambda: embeddings(gallery=RESET.reset_index(drop=True)),
    ),
]
OF_DASK = [
    Bad(scores, "scores", "chunks are unknown", {"scores": CHUNKED[CHUNKED[:, 0] > 0]}),
    Bad(scores, "scores", "two axes", {"scores": CHUNKED[:, 0]}),
    Bad(scores, "scores", "real numbers", {"scores": CHUNKED > 0}),
    Bad(scores, "scores", "Dask array, Delayed", {"scores": dask.delayed(np.eye)(5)}),
    Bad(scores, "scores", "NaN row 3, column 2", {"scores": BAD_BLOCKS}),
    Bad(
        embeddings,
        "probes",
        "row 3, column 2",
        {"probes": BAD_BLOCKS},
    ),
    Bad(
        lambda: scores(scores=CHUNKED, sampling=Sampling(groups=[0, 0, 1, 1])),
        "sampling",
        "Dask array scores.compute()",
        {},
        lambda: scores(scores=CHUNKED.compute(), sampling=Sampling(groups=[0, 0, 1, 1])),
    ),
]
OF_BATCHES = [
    *bad_values(
        batches,
        "batches",
        {
            "found none": [],
            "iterable of pairs": 7,
            "in batch 0: pair found ndarray": SCORES,
            "in batch 1: pair found 1 entries": [GOOD, (SCORES[3:],)],
            "in batch 1: found 3 classes, and 4 in": [GOOD, (SCORES[3:, :3], [0, 1])],
            "in batch 1: scores: NaN row 0, column 2": [GOOD, (put((3, 2), NAN)[3:], Y[3:])],
            "in batch 1: y: found 60 at row 1": [GOOD, (SCORES[3:], [1, 60])],
            "in batch 1: y: 1 labels for 2": [GOOD, (SCORES[3:], [1])],
            "in batch 1: in one order": [
                (LETTERS[:3], LABELLED[:3]),
                (LETTERS[3:][list("dcba")], LABELLED[3:]),
            ],
        },
    ),
    Bad(batches, "gallery", "found none gallery_y", {"batches": [GOOD], "gallery_y": range(4)}),
    Bad(
        batches,
        "batches",
        "batch 1 columns one order",
        {"batches": [(FRAMES["abcd"], Y), (FRAMES["abcd"][list("dcba")], Y)]},
    ),
    Bad(  # of which only some numbers are labels of columns
        scores,
        "y",
        "names or positions",
        {"scores": pd.DataFrame(SCORES, columns=range(1, 5)), "y": [4, 0, 1, 2, 3]},
    ),
    Bad(
        batches,
        "batches",
        "in batch 0: probes, gallery: 3 4",
        {"batches": [(SCORES[:, :3], Y)], "gallery": SCORES[:4]},
    ),
    Bad(lambda: KDE("ucv").fit(batches([(SCORES, Y)])), "task", "batches not kept"),
]
OF_PARTS = [
    Bad(parts, "parts", "classes of part 1", {"classes": list("dabc")}),
    Bad(
        parts, "parts", "n_classes of part 1", {"scores": np.eye(5), "y": range(5), "classes": None}
    ),
    Bad(parts, "parts", "score of part 1 'the smallest'", {"higher_is_better": False}),
    Bad(
        lambda: SourceTask.merge([scores(), scores(class_weight=[2, 1, 1, 1])]),
        "class_weight",
        "in part 1, class 0 0.4 expected 0.25",
    ),
    Bad(
        lambda: SourceTask.merge([scores(), scores().without_scores()]),
        "parts",
        "class 0 several parts",
    ),
    Bad(lambda: SourceTask.merge([scores(), curve()]), "parts[1]", "accuracies alone"),
    Bad(lambda: SourceTask.merge([scores()] * 2), "parts", "part 1 is part 0 once more"),
    *bad_values(
        SourceTask.merge,
        "parts",
        {"found none": [], "a sequence of tasks": scores(), "found None": None},
    ),
]
OF_NEGATIVES = [
    Bad(own_ranks, "n_negatives", "found 1", {"n_negatives": 1}),
    Bad(own_ranks, "ranks", "found 4 at row 3; 1..3", {"ranks": [1, 2, 1, 4, 1], "n_negatives": 2}),
    Bad(own_ranks, "n_negatives", "expected 5 whole numbers", {"n_negatives": [9, 9]}),
    Bad(own_ranks, "n_negatives", "shared classes", {"n_negatives": 9, "n_classes": 10}),
    *bad_values(
        partial(own_ranks, n_negatives=9), "pool", {"found 9": 9, "0.5": 20.5, "found 'a'": "a"}
    ),
    Bad(partial(own_ranks, n_negatives=2), "y", "4 labels pool of 3 episode", {"pool": 3}),
    Bad(own_ranks, "pool", "without n_negatives", {"pool": 20, "n_classes": 4}),
    Bad(lambda: negatives(y=["a"] * 5), "y", "'a' alone"),
    Bad(lambda: negatives(scores=SCORES[:, :2]), "scores", "found 1 negatives in row 0"),
    Bad(lambda: own_lists(), "own_candidates", "of row 3 of 'd' lacks its true class"),
    Bad(lambda: own_lists(length=2), "own_candidates", "found 1 negatives in row 0"),
    Bad(lambda: negatives(y=["a", None, "b", "c", "d"]), "y", "no label at row 1"),
    Bad(
        lambda: own_ranks(n_negatives=9).subsample(6, random_seed=1),
        "task",
        "negatives of their own",
    ),
    Bad(lambda: own_ranks(n_negatives=9).accuracy(11), "k", "2..10"),
    Bad(lambda: KDE().fit(own_ranks(n_negatives=9)), "task", "negatives of their own"),
]
ROWS_OF_LISTS = [
    *bad_values(
        partial(search, distances=None),
        "ids",
        {
            "found 4 at row 0, position 2": np.where(IDS[0, 2] == IDS, 4, IDS),
            "shape (3,)": [0, 1, 2],
            "shape (5, 0)": np.empty((5, 0)),
            "equal lengths short lists -1": [[0, 2], [2], [1, 0], [3, 1], [0, 1]],
            "'label' entry['label'] in ids": OUTPUTS,
            "found 0.5": IDS + 0.5,
        },
    ),
    Bad(
        search,
        "distances",
        "nan row 0, position 0",
        {"distances": put((0, 0), NAN, SEARCH["distances"])},
    ),
    Bad(search, "distances", "expected (5, 2)", {"ids": IDS[:, :2]}),
    Bad(search, "y", "4 labels for 5", {"y": Y[:4]}),
    Bad(search, "n_classes", "100000000", {"n_classes": 10**9}),
    Bad(search, "classes", "2 names for 4", {"classes": ["a", "b"]}),
    Bad(
        search,
        "classes",
        "found -1",
        {"classes": [-1, 1, 2, 3], "y": [-1, 1, 2, 3, 1]},
    ),
    Bad(search, "y", "one label from_run", {"y": [[0, 1], [1], [2], [3], [0]]}),
    Bad(
        search,
        "ignore_identical",
        "found nothing but",
        {"ids": IDS[:, :1], "distances": None, "ignore_identical": True},
    ),
    *bad_values(
        run,
        "run",
        {
            "{query: {document: score}} read_": "my.run",
            "dict a list": {"q0": {"d0"}, "q1": {"d1"}},
            "found score nan of document 'd0' of query 'q1": RUN | {"q1": {"d0": NAN}},
            "found score 1e+39": RUN | {"q1": {"d0": 1e39}},
            "real numbers": RUN | {"q1": {"d0": "3"}},
            "found None": RUN | {"q1": {None: 3.0}},
            "names of text": RUN | {"q1": {"\ud800": 3.0}},
            "'1' of query 'q1' twice": RUN | {"q1": {1: 3.0, "1": 2.0}},
            "found no query 'q0' in qrels and 'x'": {"x": {"d0": 1.0}},
            "no document for any query": {q: {} for q in RUN},
            "where, docno, score": pd.DataFrame({"where": ["a"], "docno": ["x"], "score": [1.0]}),
        },
    ),
    Bad(run, "qrels", "relevance 2.5 qrels and run", {"qrels": {"q0": {"d0": 2.5}}}),
    Bad(run, "qrels", "all queries document 'd0'", {"qrels": {q: {"d0": 1} for q in RUN}}),
    Bad(run, "relevance_level", ">= 1, found 0", {"relevance_level": 0}),
    Bad(run, "missing", "'zero' 'error', 'unanswered'", {"missing": "zero"}),
    Bad(run, "n_classes", "found 3, 4 documents", {"n_classes": 3}),
    Bad(run, "n_classes", "together", {"own_candidates": True}),
    Bad(partial(run, n_classes=None), "n_classes", "none"),
]
KNOWN_IN_PART = [
    Bad(ranks, "ranks", "3 not in the list", {"ranks": [1, 2, 0, 1, 1], "truncated_at": 2}),
    Bad(ranks, "truncated_at", "", {"truncated_at": 4}),
    Bad(ranks, "ranks", "1.25 at row 1 halves", {"ranks": [1, 1.25, 1, 2, 1]}),
    Bad(lambda: scores(scores=DECISIONS).ranks, "task", "decisions pass scores"),
    Bad(lambda: curve().ranks, "task", "accuracies alone"),
    Bad(lambda: curve().accuracy(2.5), "k", "2.5"),
    Bad(lambda: curve().metric("mrr", 3), "metric", "mrr accuracies alone"),
    Bad(lambda: ranks().nearest_classes, "task", "made from ranks from_scores"),
    Bad(
        lambda: scores(unanswered=[1]).scores,
        "task",
        "unanswered=",
        {},
        lambda: scores().scores,
    ),
]
DESIGNS = [
    Bad(sampled, "inclusion", "found 0 for class 0", {"inclusion": [0, 0.1, 0.5, 1]}),
    Bad(sampled, "inclusion", "(0, 1]", {"inclusion": [2, 2, 2, 2]}),
    Bad(sampled, "inclusion", "1e-13", {"inclusion": [1e-13, 1, 1, 1]}),
    Bad(sampled, "inclusion", "shape (4,), found (5,)", {"inclusion": [1] * 5}),
    Bad(sampled, "inclusion", "class 1", {"inclusion": {0: 0.5}}),
    Bad(sampled, "groups", "one group", {"groups": ["a"] * 4}),
    Bad(sampled, "groups", "each of 4", {"groups": ["a"] * 3}),
    Bad(sampled, "groups", "class 3 has no group", {"groups": ["a", "b", "c", None]}),
    Bad(sampled, "groups", "shape (4, 1)", {"groups": [[1]] * 4}),
    Bad(lambda: KDE("ucv").fit(sampled(groups=[0, 0, 1, 1])), "", "one by one"),
]
OF_CLASSIFIERS = [
    Bad(classifier, "clf", "found GaussianNB call clf.fit", {"clf": GaussianNB()}),
    Bad(classifier, "clf", "found GaussianNB", {"clf": GaussianNB}),
    Bad(classifier, "clf", "LinearRegression", {"clf": LinearRegression().fit(SCORES, SCORES)}),
    Bad(classifier, "clf", "several outputs", {"clf": TREE}),
    Bad(classifier, "clf.classes_", "2 classes", {"clf": GaussianNB().fit(WIDE, [0, 0, 0, 1, 1])}),
    Bad(classifier, "y", "label 'x' at row 0 4 classes", {"y": list("xbcda")}),
    Bad(classifier, "y", "4 labels for 5 rows", {"y": LABELS[:4]}),
    Bad(classifier, "y", "found numbers, clf.classes_ names", {"y": Y}),
]
MORE_COUNTS = [
    Bad(confusion, "counts", "shape (3, 4), expected a square", {"counts": np.eye(4)[:3]}),
    Bad(confusion, "counts", "0.25 at row 0, column 0", {"counts": np.full((4, 4), 0.25)}),
    Bad(confusion, "counts", "found -1.0 at row 0", {"counts": -np.eye(4)}),
    Bad(confusion, "counts", "2 classes", {"counts": np.eye(2)}),
    Bad(partial(confusion, COUNTS + 1), "classes", "column 0 is 0 leave", {"classes": [2, 0, 1]}),
]
within_subsets = partial(accuracy_under_priors, k=3, normalized="within_subsets")
PRIORS = [
    Bad(lambda: within_subsets(scores(class_weight=[1, 2, 0, 1])), "", "class 2 has weight zero"),
    Bad(lambda: within_subsets(ranks(class_weight=[1, 2, 1, 1])), "task", "ranks no scores"),
    Bad(lambda: accuracy_under_priors(scores(), 3, normalized="twice"), "normalized", ""),
]
ROWS = [
    *MATRIX,
    *OF_LABELS,
    *OF_NAMES,
    *OPTIONS,
    *OF_EMBEDDINGS,
    *OF_RANKS,
    *OF_LISTS,
    *OF_COUNTS,
    *OF_CURVES,
    *OF_RECALLS,
    *METHODS,
    *UNREADABLE,
    *OF_DASK,
    *OF_BATCHES,
    *OF_PARTS,
    *OF_NEGATIVES,
    *ROWS_OF_LISTS,
    *KNOWN_IN_PART,
    *DESIGNS,
    *OF_CLASSIFIERS,
    *MORE_COUNTS,
    *PRIORS,
]
