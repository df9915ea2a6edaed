"""Every rule finds its fault, and none finds one in sound data."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

import classex_bayes as cb
from classex_bayes.task.rules import RULES

N, REPEATS = 60, 3
RNG = np.random.default_rng(5)
Y = np.arange(REPEATS * N) % N
CENTRES = RNG.normal(size=(N, 12))
PROBES = CENTRES[Y] + 0.9 * RNG.normal(size=(Y.size, 12))
D = ((PROBES[:, None] - CENTRES) ** 2).sum(axis=2)
IDS = np.argsort(D, axis=1)[:, :15]
LISTED = np.take_along_axis(D, IDS, axis=1)
AMONG = ((PROBES[:, None] - PROBES) ** 2).sum(axis=2)
NEAREST = np.stack([AMONG[:, j == Y].min(axis=1) for j in range(N)], axis=1)
TWINS = np.repeat(CENTRES[::2], 2, axis=0)
ODD = np.arange(Y.size) % 8 == 0
FOUND = np.where(Y < 40, 1 + Y % 4, 21)


def scores(values, y=Y, **more):
    return cb.SourceTask.from_scores(values, y, **more)


def ranks(y):
    return cb.SourceTask.from_ranks(np.ones(y.size), y, n_classes=N)


def run_of_own_candidates(n=150):
    own, others = 2.9 + 0.8 * RNG.normal(size=n), RNG.normal(size=(n, 30))
    run = {
        f"q{i}": {f"r{i}": own[i], **{f"n{i}_{j}": s for j, s in enumerate(others[i])}}
        for i in range(n)
    }
    return cb.SourceTask.from_run({q: {f"r{q[1:]}": 1} for q in run}, run, n_classes=6000)


def reranked(n=300, k=1500):
    first, second = RNG.normal(size=(n, k)), RNG.normal(size=(n, k))
    first[np.arange(n), np.arange(n)] += 3
    second[np.arange(n), np.arange(n)] += 9
    ids = np.argsort(-first, axis=1)[:, :40]
    listed = np.take_along_axis(second, ids, axis=1)
    order = np.argsort(-listed, axis=1)
    ids, listed = (np.take_along_axis(values, order, axis=1) for values in (ids, listed))
    return cb.SourceTask.from_search(
        ids, np.arange(n), n_classes=k, distances=-listed, untested="competitors"
    )


def column(values, sound=-D):
    return scores(np.column_stack([sound, values]), untested="competitors")


FAULTS = {
    "number of classes": (lambda: scores(-D[:10, :10], Y[:10])),
    "number of errors": (lambda: scores(-0.001 * D + 100 * np.eye(N)[Y])),
    "accuracy on few classes": (lambda: scores(D)),
    "order of lists": (lambda: cb.SourceTask.from_search(IDS[:, ::-1], Y, n_classes=N)),
    "labels": (lambda: scores(-D, (Y + 1) % N)),
    "columns": (lambda: column(np.arange(Y.size))),
    "ties": (lambda: scores(np.round(-D / D.max() * 6))),
    "last ranks": (lambda: scores(-D - 9 * D.max() * ODD[:, None] * np.eye(N)[Y])),
    "own candidates": run_of_own_candidates,
    "reranked lists": reranked,
    "reordered ranks": (
        lambda: cb.SourceTask.from_ranks(
            FOUND, Y, n_classes=1000, truncated_at=20, untested="competitors"
        )
    ),
    "gaps between ranks": (
        lambda: cb.SourceTask.from_embeddings(
            TWINS[Y] + 0.5 * RNG.normal(size=PROBES.shape),
            TWINS + 0.02 * RNG.normal(size=TWINS.shape),
            Y,
        )
    ),
    "concentration of errors": (lambda: scores(np.where(np.arange(N) < 2, 22, 0) - D)),
    "self matches": (lambda: scores(NEAREST, higher_is_better=False)),
    "order alone": (lambda: scores((-D).argsort(axis=1).argsort(axis=1) + 1.0)),
    "distances": (lambda: scores(1 - softmax(-D / 4, axis=1), higher_is_better=False)),
    "rounded probabilities": (lambda: scores(softmax(-1.2 * D, axis=1).astype("f4").round(6))),
    "scores that rank the classes": (lambda: scores(np.eye(N)[D.argmin(axis=1)])),
    "counts": (lambda: scores(9 * np.eye(N) + (RNG.random((N, N)) < 0.1), range(N))),
    "templates": (
        lambda: cb.SourceTask.from_embeddings(
            PROBES, np.stack([PROBES[j == Y].mean(axis=0) for j in range(N)]), Y
        )
    ),
}
SOUND = {
    "distances": lambda: scores(D, higher_is_better=False),
    "logits": lambda: scores(-D),
    "probabilities": lambda: scores(softmax(-D / 4, axis=1)),
    "logarithms": lambda: scores(log_softmax(-9 * D, axis=1)),
    "embeddings": lambda: cb.SourceTask.from_embeddings(PROBES, CENTRES, Y, distance="cosine"),
    "lists": lambda: cb.SourceTask.from_search(IDS, Y, n_classes=N, distances=LISTED),
    "ranks of ties": lambda: cb.SourceTask.from_ranks(1 + (Y % 4) / 2, Y, n_classes=N),
    "lists without wrong classes": lambda: cb.SourceTask.from_search(
        [[0, -1, -1], [1, -1, -1], [2, 0, 1]] * 2,
        [0, 1, 2] * 2,
        n_classes=3,
        distances=[[0, 9, 9], [0, 9, 9], [1, 2, 3]] * 2,
        ignore_identical=True,
    ),
    "an untested class": lambda: scores(-D[Y > 0], Y[Y > 0], untested="competitors"),
}
pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")


@pytest.mark.parametrize("name", [rule.name for rule in RULES])
def test_a_rule_finds_its_fault(name):
    finding = next(finding for finding in FAULTS[name]().checks if finding.name == name)
    assert finding.passed is False or finding.is_note


@pytest.mark.parametrize("kind", SOUND)
def test_sound_data_pass(kind):
    assert [finding for finding in SOUND[kind]().checks if finding.passed is False] == []


@pytest.mark.parametrize("extra", [Y % 5, np.full(Y.size, 224), 20 * RNG.random(Y.size)])
def test_columns_that_are_no_class(extra):
    sound = RNG.normal(size=(Y.size, N)) + 3 * np.eye(N)[Y]
    task = column(extra, sound)
    assert f"column {N} of scores" in " ".join(task.warnings)
    with pytest.raises(cb.DataError, match=f"class {N} .*leave them out"):
        scores(np.column_stack([sound, extra]))


@pytest.mark.parametrize("read", ["at once", "batches", "parts", "dask"])
def test_samples_of_scores_that_come_in_parts(read):
    if read == "batches":
        batches = [(NEAREST[rows], Y[rows]) for rows in np.split(np.arange(Y.size), 6)]
        task = cb.SourceTask.from_batches(batches, higher_is_better=False)
    elif read == "parts":
        parts = [
            scores(
                NEAREST[rows], Y[rows], higher_is_better=False, untested="competitors"
            ).without_scores()
            for rows in (Y < 30, Y >= 30)
        ]
        task = cb.SourceTask.merge(parts)
    elif read == "dask":
        array = pytest.importorskip("dask.array").from_array(NEAREST, chunks=(60, 20))
        task = scores(array, higher_is_better=False)
    else:
        task = scores(NEAREST, higher_is_better=False)
    assert any("compared with itself" in warning for warning in task.warnings)
