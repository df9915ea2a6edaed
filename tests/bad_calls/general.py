"""Bad calls of fits, comparisons, plans and checks, and of files of a task."""

from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd

import classex_bayes as cb
from bad_calls import Bad, bad_values
from bad_calls.task import CURVE, EMBEDDINGS, FAR, NAMES, NAN, RANKS, SCORES, Y, curve, put, scores

TASK = cb.SourceTask.from_ranks([1, 1, 2, 3], range(4), n_classes=4)
POINT, LAW = [cb.ClassExReg(0.5)], cb.simulate.VonMisesFisher(dim=4, concentration=3)
RNG = np.random.default_rng(0)
STRANGERS = pd.DataFrame(RNG.normal(size=(100, 20)), columns=[f"c{j}" for j in range(20)])


def fit(task=TASK, prior=None, progressbar=False, **sampler):
    model = cb.BayesianExtrapolator(prior or cb.MixturePrior())
    sampler = {"draws": 5, "tune": 20, "chains": 1, **sampler}
    return model.fit(task, sampler=sampler, random_seed=1, progressbar=progressbar)


def open_set(nonmated):
    y = np.arange(60) % 20
    values = np.random.default_rng(0).normal(size=(60, 20)) + 3 * np.eye(20)[y]
    task = cb.SourceTask.from_scores(values, y, classes=[f"c{j}" for j in range(20)])
    few = {"draws": 50, "chains": 2}
    return cb.OpenSetExtrapolator().fit(task, nonmated=nonmated, sampler=few, random_seed=1)


@cache
def fitted():
    return fit(chains=1, draws=25)


def report(**values):
    try:
        cb.write_report(fitted(), 300, "a.html", **values)
    finally:
        assert not Path("a.html").exists()


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


backtest = partial(cb.backtest, POINT, TASK, 3)
measure_drift = partial(cb.measure_drift, scores())

QUESTIONS = [
    Bad(fit, "progressbar", "True or False", {"progressbar": "no"}),
    Bad(fit, "draws", "at most", {"draws": FAR}),
    Bad(cb.MixturePrior, "lower", "", {"lower": -(10**30)}),
    Bad(cb.MixturePrior, "bandwidth", "", {"bandwidth": 1e-30}),
    Bad(partial(LAW.sample, 10), "repeats", "at most 1e+08", {"repeats": 10**18}),
    Bad(lambda: cb.OpenSetExtrapolator(1e300).fit(TASK), "drift", "<= 100"),
    Bad(
        open_set,
        "nonmated",
        "nonmated[task.classes]",
        {"nonmated": STRANGERS[STRANGERS.columns[::-1]]},
        lambda: open_set(STRANGERS),
    ),
    Bad(partial(backtest, 4), "n_jobs", "number of processes", {"n_jobs": 10**30}),
    Bad(backtest, "store", "expected a path found 2", {"store": 2}),
    *[Bad(backtest, "store", "expected a path", {"store": path}) for path in ("", "a\0")],
    Bad(backtest, "n_jobs", "'two'", {"n_jobs": "two"}),
    Bad(backtest, "sampler", "'drawings' 'draws'", {"sampler": {"drawings": 5}}),
    Bad(backtest, "n_pilots", "at most", {"n_pilots": FAR}),
    Bad(backtest, "estimators", "accuracy alone", {"metric": "mrr", "n_pilots": 2, "n_jobs": 1}),
    Bad(partial(cb.compare_classifiers, k=9), "tasks['b']", "", {"tasks": {"a": TASK, "b": 3}}),
    Bad(partial(cb.compare_classifiers, {"a": TASK, "b": TASK}, 9), "sampler", "5", {"sampler": 5}),
    Bad(
        partial(cb.estimators.bootstrap, POINT[0], TASK, 9),
        "n_resamples",
        "at most",
        {"n_resamples": FAR},
    ),
    Bad(cb.diagnose, "task", "int", {"task": 3}),
    Bad(partial(cb.diagnose, scores()), "random_seed", "-1", {"random_seed": -1}),
    Bad(cb.ClassExReg().fit, "task", "list", {"task": []}),
    *[
        Bad(e.fit, "task", "from_scores, from_embeddings or, where", {"task": curve()})
        for e in (cb.KDE("ucv"), cb.OpenSetExtrapolator())
    ],
    *[
        Bad(partial(cb.extrapolate_groups, TASK, k=9), "groups", "", {"groups": g})
        for g in (None, 3)
    ],
    *bad_values(
        partial(cb.measure_drift, TASK),
        "smaller_tasks",
        {"task 0": [1], "fewer": [TASK], "2.5": 2.5, "3.": np.array(3.0)},
    ),
    Bad(measure_drift, "smaller_tasks", "", {"smaller_tasks": {4: 0.5}}),
    Bad(measure_drift, "smaller_tasks", "", {"smaller_tasks": [3]}),
    Bad(measure_drift, "smaller_tasks", "", {"smaller_tasks": {3: 0.5}, "nested": True}),
    Bad(measure_drift, "accuracy", "", {"smaller_tasks": {3: 1.5}}),
    Bad(measure_drift, "nested", "", {"nested": 1}),
    Bad(
        cb.measure_drift(TASK).apply,
        "prediction",
        "what predict returns",
        {"prediction": cb.BayesianExtrapolator()},
    ),
    *[
        Bad(
            lambda chains, draws: cb.sensitivity(fit(chains=chains, draws=draws), 9),
            "draws",
            "found x too few",
            {"chains": 2, "draws": draws},
            lambda: cb.sensitivity(fitted(), 9),
        )
        for draws in (3, 12)
    ],
    *[Bad(report, "date", "expected", {"date": date}) for date in ("2026-01-02", 5)],
    *[
        Bad(report, "references", "expected", {"references": references})
        for references in (cb.KDE(), "KDE", [5], np.zeros(2))
    ],
    Bad(partial(cb.write_report, None, 3.5), "path", "found 9", {"path": 9}),
]

ABC = "y,a,b,c\na,1,0,0\n"
PATHS = [
    *[
        Bad(cb.load, "path", "expected a path", {"path": path})
        for path in ("\ud800.nc", "a" * 5000 + ".nc", {1: [2]})
    ],
    *[
        Bad(cb.read_task, "paths", "expected a path", {"paths": path})
        for path in ("a\0.npz", "a" * 5000, 3.5)
    ],
    Bad(cb.read_task, "paths", "none", {"paths": []}),
    Bad(cb.read_task, "paths", "", {"paths": ["a.npz", 3]}),
    Bad(cb.read_task, "paths", "more than once", {"paths": ["a.npz", "a.npz"]}),
    Bad(cb.read_task, "no.npz", "no such file", {"paths": "no.npz"}),
    Bad(cb.read_task, ".", "folder", {"paths": "."}),
    Bad(partial(csv, ABC), "distance", "does not apply", {"distance": "dot"}),
    Bad(partial(csv, ABC), "tie", "does not apply", {"tie": "random"}),
]
ARRAYS = [
    Bad(npz, "task.npz", "found nothing"),
    Bad(npz, "task.npz", "found scores (5, 4)", {"scores": SCORES}),
    Bad(npz, "task.npz", "found x, y", {"x": SCORES, "labels": Y}),
    Bad(npz, "task.npz", "found probes, y, expected gallery", {"probes": SCORES, "y": Y}),
    Bad(
        npz,
        "task.npz",
        "found ranks, y, expected n_classes or n_negatives",
        {"ranks": RANKS["ranks"], "y": Y},
    ),
    *[Bad(npz, "task.npz: n_classes", "", RANKS | {"n_classes": n}) for n in ([3, 4], 3.5)],
    Bad(npz, "task.npz: n_test", "", CURVE | {"n_test": "many"}),
    Bad(npz, "task.npz: ranks", "found 9 row 1", RANKS | {"ranks": [1, 9, 1, 3, 1]}),
    Bad(
        npz,
        "task.npz",
        "not a readable .astype(str)",
        {"scores": SCORES, "y": np.array(Y, object)},
        lambda: npz(scores=SCORES, y=np.array(Y, object).astype(str), classes=list("0123")),
    ),
    Bad(npz, "task.npz: scores", "two axes", {"scores": Y, "y": SCORES}),
    Bad(npz, "task.npz: distance", "", EMBEDDINGS | {"distance": "manhattan"}),
    Bad(shards, "0.npz, 1.npz", "classes", {"classes": NAMES[[0, 2, 1, 3]]}),
    Bad(shards, "0.npz, 1.npz", "found scores, y, classes", {"classes": None}),
    Bad(shards, "0.npz, 1.npz", "scores", {"scores": SCORES[:4, :3]}),
    Bad(shards, "0.npz, 1.npz", "found", {"ranks": [1] * 4, "scores": None, "n_classes": 4}),
    Bad(shards, "1.npz", "rows", {"y": NAMES[:3]}),
    Bad(
        shards,
        "0.npz and 1 more: scores",
        "row 5 4 of 1.npz",
        {"scores": put((1, 2), NAN)[:4]},
    ),
    Bad(shards, "0.npz and 1 more: y", "row 5 4 of 1.npz", {"y": np.array(list("axab"))}),
]


def of_text(call, *rows):
    """Rows of a table of text: the beginning of the message, its words and the text."""
    return [Bad(partial(call, text), begins, words) for begins, words, text in rows]


CSV = of_text(
    csv,
    ("task.csv", "not a readable", ""),
    ("task.csv: scores", "", "y,ant,bee,cat\n"),
    ("task.csv", "column y", "ant,bee,cat\n1,0,0\n"),
    ("task.csv", "commas", "y;ant;bee;cat\nant;1,5;0,2;0,1\n"),
    ("task.csv", "'1,5' column 'ant', row 0", 'y,ant,bee,cat\nant,"1,5",0,0\n'),
    ("task.csv", "not a readable", b"\xff\xfe\x00\x80" * 9),
    ("task.csv", "UTF-8", "y,ant,bé,cat\n".encode("latin-1")),
    ("task.csv", "", 'y,ant,bee,cat\n"ant,1,0,0\n'),
    ("task.csv", "header", "y,ant,bee,cat\nant,1,0,0,5\nbee,0,1,0,5\n"),
    ("task.csv: y", "class 'cat'", "y,ant,bee,cat\nant,1,0,0\nbee,0,1,0\n"),
    ("task.csv: y", "class 'ant.1'", "y,ant,ant,cat\nant,1,0,0\ncat,0,0,1\n"),
    ("task.csv: scores", "no name", ",y,ant,bee,cat\n0,ant,1,0,0\n1,bee,0,1,0\n2,cat,0,0,1\n"),
    ("task.csv: scores", "", "size,y\n1,0\n3,1\n2,2\n"),
    ("task.csv", "k, accuracy, n_test, n_classes", "k,accuracy\n2,0.9\n"),
)
# pandas before 3.1 drops a byte of zero.
ZERO_BYTE = [("task.csv", "column 'b', row 1", b"a,b,c,y\n1,2,3,a\n1,2\x00,3,b\n1,2,3,c\n")]
CSV_OF_ANIMALS = of_text(
    animals,
    ("task.csv: y", "row 3", "\x1a"),
    ("task.csv", "'high' column 'bee', row 3", "bee,0,high,0\n"),
    ("task.csv: scores", "row 3, column 2", "ant,1,0\n"),
    ("task.csv", "not a readable", "ant,1,0,0,5\n"),
    ("task.csv: y", "'dog' row 3", "dog,0,0,1\n"),
    ("task.csv", "column y, row 3", ",0,0,1\n"),
)
CSV_OF_CURVES = of_text(
    lambda rows: csv(f"k,accuracy\n{rows}", n_test=50, n_classes=5),
    ("task.csv: k", "", "two,0.9\n5,0.8\n"),
    ("task.csv: k", "", ",0.9\n5,0.8\n"),
    ("task.csv: k", "", "2,0.9\n6,0.8\n"),
    ("task.csv: k", "", ""),
    ("task.csv: accuracy", "", "2,high\n5,0.8\n"),
    ("task.csv: accuracy", "", "2,\n5,0.8\n"),
    ("task.csv: accuracy", "", "2,90\n5,80\n"),
)
TREC = of_text(
    trec,
    ("my.run", "'q1 Q0 d2 2 0.4' row 1", ["q1 Q0 d1 1 0.5 t", "q1 Q0 d2 2 0.4"]),
    ("my.run", "'high'", ["q1 Q0 d1 1 high t"]),
)
ROWS = [
    *QUESTIONS,
    *PATHS,
    *ARRAYS,
    *CSV,
    *(of_text(csv, *ZERO_BYTE) if pd.__version__ >= "3.1" else []),
    *CSV_OF_ANIMALS,
    *CSV_OF_CURVES,
    *TREC,
]
