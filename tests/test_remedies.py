"""Remedies that messages name are tried: a call that fails, the words, and the call as they say."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from jax.experimental import sparse as jax_sparse
from scipy import sparse

import classex_bayes as cb
from classex_bayes import SourceTask

RNG = np.random.default_rng(0)
Y = np.arange(60) % 20
NAMES = np.array([f"c{j}" for j in range(20)])
SCORES = RNG.normal(size=(60, 20)) + 3 * np.eye(20)[Y]
FRAME = pd.DataFrame(SCORES, columns=NAMES, index=[f"r{i}" for i in range(60)])
LABELS = pd.Series(NAMES[Y], index=FRAME.index)
ZERO = np.where(np.arange(60)[:, None] == 7, 0, SCORES)
COUNTS = pd.DataFrame([[5, 1, 1], [1, 6, 1], [0, 0, 0]])
IDS = np.argsort(-SCORES, axis=1)[:, :18]
DISTANCES = np.take_along_axis(10 - SCORES, IDS, axis=1)
QRELS = {f"q{i}": {f"d{i}": 1} for i in range(20)}
RUN = {f"q{i}": {f"d{j}": float(SCORES[i, j]) for j in range(20)} for i in range(20)}
SEVERAL = QRELS | {"q0": {"d0": 1, "d1": 1}}
RANKS = SourceTask.from_scores(SCORES, Y).ranks


def scores(values=SCORES, y=Y, **options):
    return SourceTask.from_scores(values, y, **options)


def probes(rows=slice(None), **options):
    return SourceTask.from_embeddings(
        ZERO[rows], SCORES[:20], Y[rows], distance="cosine", **options
    )


def search(ids=IDS, distances=DISTANCES, **options):
    return SourceTask.from_search(ids, Y, n_classes=20, distances=distances, **options)


def run(qrels=QRELS, listed=RUN, **options):
    return SourceTask.from_run(qrels, listed, **{"n_classes": 20} | options)


def confusion(counts=COUNTS, **options):
    return SourceTask.from_confusion(counts, **options)


def own(ranks=RANKS, **options):
    return SourceTask.from_ranks(ranks, Y, **options)


SPARSE, LAZY = sparse.csr_array(SCORES), pl.DataFrame(SCORES).lazy()
STRANGERS = RNG.normal(size=(100, 20))
TASK = scores(FRAME, LABELS)


def open_set(strangers):
    few = {"draws": 50, "chains": 2}
    return cb.OpenSetExtrapolator().fit(TASK, nonmated=strangers, sampler=few, random_seed=1)


ROWS = np.arange(60) != 7
REMEDIES = {
    "sparse": (lambda: scores(SPARSE), r"scores\.toarray\(\)", lambda: scores(SPARSE.toarray())),
    "jax": (
        lambda: scores(jax_sparse.BCOO.fromdense(SCORES)),
        r"scores\.todense\(\)",
        lambda: scores(jax_sparse.BCOO.fromdense(SCORES).todense()),
    ),
    "lazy": (lambda: scores(LAZY), r"scores\.collect\(\)", lambda: scores(LAZY.collect())),
    "objects": (
        lambda: scores(SCORES.astype(str)),
        r"np\.asarray\(\.\.\., dtype=float\)",
        lambda: scores(np.asarray(SCORES.astype(str), dtype=float)),
    ),
    "generator": (lambda: scores(y=iter(Y)), r"pass list\(y\)", lambda: scores(y=list(iter(Y)))),
    "one-hot": (
        lambda: scores(y=np.eye(20)[Y]),
        r"y\.argmax\(axis=1\)",
        lambda: scores(y=np.eye(20)[Y].argmax(axis=1)),
    ),
    "from 1": (lambda: scores(y=Y + 1), "pass y - 1", lambda: scores(y=Y + 1 - 1)),
    "names": (
        lambda: scores(y=NAMES[Y]),
        "pass classes=",
        lambda: scores(y=NAMES[Y], classes=NAMES),
    ),
    "disorder": (
        lambda: scores(FRAME, LABELS[::-1]),
        r"y\.loc\[scores\.index\], or y\.to_numpy\(\)",
        lambda: scores(FRAME, LABELS[::-1].loc[FRAME.index]),
    ),
    "untested": (
        lambda: scores(np.c_[SCORES, SCORES[:, :5]]),
        "untested='competitors'",
        lambda: scores(np.c_[SCORES, SCORES[:, :5]], untested="competitors"),
    ),
    "no face": (
        lambda: scores(np.where(ROWS[:, None], SCORES, np.nan)),
        r"leave the row out and pass its class in unanswered=",
        lambda: scores(SCORES[ROWS], Y[ROWS], unanswered=Y[~ROWS]),
    ),
    "zero vector": (
        lambda: probes(),
        "leave it out and pass its class in unanswered=,",
        lambda: probes(ROWS, unanswered=Y[~ROWS]),
    ),
    "empty row": (
        lambda: confusion(),
        "counts: .*class 2 .* untested='competitors'",
        lambda: confusion(untested="competitors"),
    ),
    "rows in disorder": (
        lambda: confusion(COUNTS.iloc[[2, 0, 1]], untested="competitors"),
        r"counts\.loc\[counts\.columns\]",
        lambda: confusion(COUNTS.iloc[[2, 0, 1]].loc[COUNTS.columns], untested="competitors"),
    ),
    "classes in disorder": (
        lambda: scores(FRAME, LABELS, classes=NAMES[::-1]),
        "leave classes out",
        lambda: scores(FRAME, LABELS),
    ),
    "higher": (
        lambda: search(higher_is_better=True),
        "pass higher_is_better=False",
        lambda: search(higher_is_better=False),
    ),
    "names of lists": (
        lambda: search(NAMES[IDS]),
        "ids: .* pass classes=",
        lambda: search(NAMES[IDS], classes=NAMES),
    ),
    "failed search": (
        lambda: SourceTask.from_search(np.where(ROWS[:, None], IDS, -1), Y, n_classes=20),
        r"leave the row out and pass its class in unanswered=",
        lambda: SourceTask.from_search(IDS[ROWS], Y[ROWS], n_classes=20, unanswered=Y[~ROWS]),
    ),
    "missing queries": (
        lambda: run(listed={q: RUN[q] for q in list(RUN)[1:]}),
        "missing='unanswered' .* missing='unsearched'",
        lambda: [
            run(listed={q: RUN[q] for q in list(RUN)[1:]}, missing=rule)
            for rule in ("unanswered", "unsearched")
        ],
    ),
    "several documents": (
        lambda: run(SEVERAL).metric("map@5", 20),
        "pass metric='success@10' or 'mrr'",
        lambda: (run(SEVERAL).metric("success@5", 20), run(SEVERAL).metric("mrr", 20)),
    ),
    "relevance": (
        lambda: run(relevance_level=2),
        "lower relevance_level",
        lambda: run(relevance_level=1),
    ),
    "ranks from 0": (
        lambda: own(RANKS - 1, n_classes=20),
        "add 1 if 0 is best",
        lambda: own(RANKS - 1 + 1, n_classes=20),
    ),
    "no number": (lambda: own(), "pass n_negatives", lambda: own(n_negatives=19)),
    "kept": (
        lambda: TASK.select(["c1", "c2", "x"]),
        "kept: label 'x'",
        lambda: TASK.select(["c1", "c2", "c3"]),
    ),
    "precision": (
        lambda: run().metric("P@5", 20),
        "'recall@5'",
        lambda: run().metric("recall@5", 20),
    ),
    "nonmated columns": (
        lambda: open_set(pd.DataFrame(STRANGERS, columns=NAMES[::-1])),
        r"nonmated\[task\.classes\]",
        lambda: open_set(pd.DataFrame(STRANGERS, columns=NAMES[::-1])[TASK.classes]),
    ),
}


@pytest.mark.parametrize(("fails", "words", "remedied"), REMEDIES.values(), ids=REMEDIES)
def test_remedies_work_where_they_are_named(fails, words, remedied):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(cb.DataError, match=words):
            fails()
        remedied()


def test_one_class_alone_has_no_remedy_that_fails():
    with pytest.raises(cb.DataError) as caught:
        scores(y=np.zeros(60, dtype=int))
    assert "untested" not in str(caught.value)
