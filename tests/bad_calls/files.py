"""Bad calls of files and of the command line."""

import json
from pathlib import Path

import numpy as np

import classex_bayes as cb
from bad_calls import Bad

Y = np.arange(12) % 4
SCORES = np.random.default_rng(1).normal(size=(12, 4)) + 2 * np.eye(4)[Y]
QRELS = {f"q{i}": {f"d{i}": 1} for i in range(8)}
RUN = {f"q{i}": {f"d{j}": float(-abs(i - j)) for j in range(9)} for i in range(8)}
CLASS_Y = "y,a,b\ny,1,0,0\na,0,1,0\nb,0,0,1\n"


def npz(**arrays):
    np.savez("a.npz", **arrays)
    return cb.read_task("a.npz")


def npy(labels=None, y=Y, scores=SCORES):
    np.save("a.npy", scores)
    np.save("y.npy", y)
    return cb.read_task("a.npy", labels)


def text_labels(text):
    Path("y.txt").write_text(text)
    return npy("y.txt")


def csv(text):
    Path("a.csv").write_text(text)
    return cb.read_task("a.csv")


def one_nan(place=(59_999, 49)):
    scores = np.zeros((60_000, 50), np.float32)
    scores[place] = np.nan
    return npy("y.npy", np.arange(60_000) % 50, scores)


def shards(**second):
    """Two files, the second of which differs."""
    for number in range(2):
        np.savez(f"{number}.npz", **{"scores": SCORES, "y": Y} | (second if number else {}))
    return cb.read_task(["0.npz", "1.npz"])


def trec(path, lines):
    Path(path).write_text("".join(f"{line}\n" for line in lines))
    return path


def run(listed=RUN, judged=QRELS, **options):
    lines = [f"{q} Q0 {d} 1 {s} tag" for q, found in listed.items() for d, s in found.items()]
    trec("qrels", [f"{q} 0 {d} {x}" for q, found in judged.items() for d, x in found.items()])
    return cb.read_task(trec("run", lines), **{"qrels": "qrels", "n_classes": 50} | options)


def document_twice():
    run()
    trec("more", ["q1 Q0 d1 1 0.5 tag"])
    return cb.read_task(["run", "more"], qrels="qrels", n_classes=50)


def qrels(line):
    run()
    return cb.read_task("run", qrels=trec("bad", [line]), n_classes=50)


def run_json(text, more=()):
    Path("a.json").write_text(text)
    trec("qrels", ["q1 0 d1 1"])
    Path("b.json").write_text(text)
    return cb.read_task(["a.json", *more] if more else "a.json", qrels="qrels", n_classes=50)


def embeddings(**options):
    np.savez("a.npz", probes=SCORES, gallery=np.eye(4), y=Y, groups=[0, 0, 1, 1])
    return cb.read_task("a.npz", **options)


FEW = {query: RUN[query] for query in ("q1", "q3")}
DOCUMENTS = "{query: {document: score}}"
ROWS = [
    # Labels and paths
    Bad(npy, "a.npy", "labels=", remedy=lambda: npy(labels="y.npy")),
    Bad(npy, "no.npy", "", {"labels": "no.npy"}),
    Bad(npy, "y.csv", "labels", {"labels": "y.csv"}),
    Bad(npy, "", "y: ", {"labels": "a.npy"}),
    Bad(text_labels, "", "y.txt line 2", {"text": "0\n\n1\n"}),
    Bad(text_labels, "", "y: text", {"text": "".join(f"{j + 0.5}\n" for j in Y)}),
    Bad(csv, "a.csv", "'y'", {"text": CLASS_Y.replace("y,a,b", "y,y,a,b", 1)}),
    Bad(one_nan, "", "scores row 59999, column 49"),
    # Parts of a test
    Bad(shards, "", "scores", {"scores": SCORES[:, :3]}),
    Bad(embeddings, "groups", "apply", {"sampling": cb.Sampling(), "groups": [0, 0, 1, 1]}),
    # Runs
    Bad(
        run,
        "",
        "6 of 8 queries missing=",
        {"listed": FEW},
        remedy=lambda: run(FEW, missing="unanswered"),
    ),
    Bad(run, "", "n_classes", {"n_classes": None}),
    Bad(run, "", "qrels=", {"qrels": None}),
    Bad(run, "", "qrels", {"qrels": "run"}),
    Bad(run, "qrels", "3", {"qrels": 3}),
    Bad(run, "no", "no such file", {"qrels": "no"}),
    Bad(run, "distance", "", {"distance": "dot"}),
    Bad(run, "labels, qrels", "", {"labels": "run"}),
    Bad(document_twice, "", "'d1' 'q1' twice best score"),
    Bad(qrels, "", "'q1 0 d1 1 more' row 0", {"line": "q1 0 d1 1 more"}),
    *[Bad(run_json, "", DOCUMENTS, {"text": text}) for text in ("[1, 2]", '{"q1": 3}')],
    Bad(run_json, "a.json", "not a readable", {"text": '{"q1": {'}),
    Bad(run_json, "paths", "2 files", {"text": json.dumps(RUN), "more": ["b.json"]}),
]
