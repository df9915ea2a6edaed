"""Bad calls of the constructors and methods of a task, but for files."""

from functools import partial

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import xarray as xr
from jax.experimental.sparse import BCOO
from scipy.sparse import csr_array

from bad_calls import Bad, bad_values
from classex_bayes import SourceTask

NAN, INF, FAR = float("nan"), float("inf"), 10**13
Y = [0, 1, 2, 3, 0]
SCORES = np.eye(4)[Y] + np.arange(4) / 10
NAMES = np.array(list("abcd"))
LABELS = list("abcda")
CURVE = {"k": [2, 3, 4], "accuracy": [0.9, 0.8, 0.7], "n_test": 50, "n_classes": 4}
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
    return SourceTask.from_ranks(RANKS["ranks"], Y, **values)


def curve(**values):
    return SourceTask.from_accuracies(**CURVE | values)


def search(**values):
    return SourceTask.from_search(**SEARCH | values)


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


WIDE = np.c_[SCORES, SCORES]
FRAMES = {names: pd.DataFrame(SCORES, columns=list(names)) for names in ("abca", "abcd")}
UNNAMED = [pd.DataFrame(np.c_[range(5), SCORES], columns=[n, *NAMES]) for n in ("Unnamed: 0", " ")]
ROWS_OF_FRAME = pd.DataFrame(SCORES, columns=NAMES, index=list("vwxyz"))
REVERSED = pd.Series(LABELS, index=ROWS_OF_FRAME.index)[::-1]
LAZY = pl.DataFrame(SCORES).lazy()
SOUND = np.arange(5) != 3
FAILED = np.where(SOUND[:, None], SCORES, NAN)
ZERO = {"probes": put(2, 0), "distance": "cosine"}
PART = {q: RUN[q] for q in list(RUN)[1:]}
SEVERAL = QRELS | {"q0": {"d0": 1, "d1": 1}}

MATRIX = [
    *bad_values(
        scores,
        "scores",
        {
            "NaN row 2 column 1": put((2, 1), NAN),
            "inf row 0 column 3": put((0, 3), INF),
            "two axes": SCORES[:, 0],
            "one column": SCORES[:, :0],
            "objects": [[1, 2, None]] * 5,
            "real numbers": "scores.csv",
            "True and False": SCORES > 0,
            "precision": SCORES.astype(np.longdouble),
            "masked (0, 0)": masked(SCORES),
            "real numbers name": pd.DataFrame(SCORES).assign(name="a"),
            "xarray.Dataset": xr.Dataset({"scores": (("test", "class"), SCORES)}),
        },
    ),
    Bad(scores, "scores", "-inf row 4", {"scores": put((4, 2), -INF), "higher_is_better": False}),
    Bad(scores, "scores, y", "swapped", {"scores": Y, "y": SCORES}),
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
        "scores.toarray()",
        {"scores": csr_array(SCORES)},
        lambda: scores(scores=csr_array(SCORES).toarray()),
    ),
    Bad(
        scores,
        "scores",
        "scores.todense()",
        {"scores": BCOO.fromdense(SCORES)},
        lambda: scores(scores=BCOO.fromdense(SCORES).todense()),
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
            "at least one label": [],
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
        "4 of 8 class 4 untested='competitors' leave them out",
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
            "": "balanced",
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
    *[
        Bad(
            lambda: run(qrels=SEVERAL).metric("map@2", 4),
            "metric",
            "pass metric='success@10' or 'mrr'",
            {},
            lambda metric=metric: run(qrels=SEVERAL).metric(metric, 4),
        )
        for metric in ("success@2", "mrr")
    ],
    Bad(
        run,
        "qrels",
        "lower relevance_level",
        {"relevance_level": 2},
        lambda: run(relevance_level=1),
    ),
    Bad(
        lambda: run().metric("P@2", 4),
        "metric",
        "'recall@2'",
        {},
        lambda: run().metric("recall@2", 4),
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
            "found 90": [90, 80, 70],
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
    Bad(curve, "design_effect", "", {"design_effect": 0.5}),
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
    Bad(method("metric", k=3), "metric", "", {"metric": f"accuracy@{10**20}"}),
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
    *METHODS,
]
