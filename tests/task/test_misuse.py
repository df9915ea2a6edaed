"""Kinds of misuse on every scale and at every door, and sound data that look like them."""

import h5py
import numpy as np
import pandas as pd
import pytest
from helpers import verdict
from scipy.special import expit, log_softmax, softmax

import classex_bayes as cb

pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
N_CLASSES, REPEATS = 70, 3
Y = np.repeat(np.arange(N_CLASSES), REPEATS)


# Self matches


def distances_of_library(seed=0):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(N_CLASSES, 12))[Y] + 0.75 * rng.normal(size=(Y.size, 12))
    return np.sqrt(((vectors[:, None] - vectors) ** 2).sum(axis=2))


def by_class(matrix, higher):
    """Best score of each instance for each class, over the instances of the class."""
    order = np.max if higher else np.min
    return np.stack([order(matrix[:, c == Y], axis=1) for c in range(N_CLASSES)], axis=1)


def noise(size):
    return 1e-4 * np.abs(np.random.default_rng(1).normal(size=size))


SCALES = {
    "distances": (lambda d: d, False),
    "squares": (lambda d: d**2, False),
    "noisy distances": (lambda d: d + noise(d.shape), False),
    "half precision": (lambda d: d.astype("f2"), False),
    "percentages": (lambda d: 100 * np.exp(-d), True),
    "exp(-d)": (lambda d: np.exp(-d), True),
    "noisy exp(-d)": (lambda d: np.exp(-d) + noise(d.shape), True),
    "1 / (1 + d)": (lambda d: 1 / (1 + d), True),
    "1 / (0.001 + d)": (lambda d: 1 / (0.001 + d), True),
    "exp(-d**2)": (lambda d: np.exp(-(d**2)), True),
    "1 - d / 20": (lambda d: 1 - d / 20, True),
    "1000 - d": (lambda d: 1000 - d, True),
    "in half precision": (lambda d: (1 / (1 + d)).astype("f2"), True),
}


@pytest.mark.parametrize("scale", SCALES)
def test_instances_among_their_own_templates(scale, tmp_path):
    transform, higher = SCALES[scale]
    distance = distances_of_library()
    with_self = transform(distance)
    without = with_self.astype(float)
    np.fill_diagonal(without, -np.inf if higher else np.inf)
    for matrix, sound in ((with_self, False), (without, True)):
        scores = by_class(matrix, higher)
        task = cb.SourceTask.from_scores(scores, Y, higher_is_better=higher)
        assert verdict(task, "self matches") is sound
        batches = [(scores[i : i + 1], Y[i : i + 1]) for i in range(Y.size)]
        task = cb.SourceTask.from_batches(batches, higher_is_better=higher)
        assert verdict(task, "self matches") is sound
    with h5py.File(tmp_path / "scores.h5", "w") as file:
        stored = file.create_dataset("scores", data=by_class(with_self, higher))
        task = cb.SourceTask.from_scores(stored, Y, higher_is_better=higher)
    assert verdict(task, "self matches") is False


@pytest.mark.parametrize("scale", SCALES)
def test_lists_without_the_instances_themselves(scale):
    """Right accuracies, by leaving out the diagonal, where an index returns near zeros for it."""
    transform, higher = SCALES[scale]
    values = transform(distances_of_library()).astype(float)
    others = values.copy()
    np.fill_diagonal(others, -np.inf if higher else np.inf)
    best = others.argmax(axis=1) if higher else others.argmin(axis=1)
    order = np.argsort(-values if higher else values, axis=1, kind="stable")[:, :40]
    given = Y[order], Y
    options = {
        "n_classes": N_CLASSES,
        "distances": np.take_along_axis(values, order, axis=1),
        "higher_is_better": higher,
    }
    assert verdict(cb.SourceTask.from_search(*given, **options), "self matches") is False
    task = cb.SourceTask.from_search(*given, **options, ignore_identical=True)
    assert task.warnings == ()
    assert task.accuracy(N_CLASSES)[0] == pytest.approx(np.mean(Y[best] == Y))


def test_texts_among_their_own_templates():
    """Most cosines of their words are 0, like the lower end of scores that saturate."""
    rng = np.random.default_rng(8)
    topics = rng.dirichlet(np.full(2000, 0.01), size=N_CLASSES)
    words = np.stack([rng.multinomial(7, 0.3 * topics[c] + 0.7 * topics.mean(axis=0)) for c in Y])
    texts = words / np.linalg.norm(words, axis=1, keepdims=True)
    for cosines, sound in ((texts @ texts.T, False), (texts @ texts.T - np.eye(Y.size), True)):
        task = cb.SourceTask.from_scores(by_class(cosines, higher=True), Y)
        assert verdict(task, "self matches") is sound


def test_runs_that_list_the_queries_by_other_names():
    distance = distances_of_library()
    for own, sound in ((0.0, False), (np.inf, True)):
        scores = np.exp(-distance - np.where(np.eye(Y.size), own, 0))
        order = np.argsort(-scores, axis=1)[:, :30]
        run = {f"q{i}": {f"d{j}": scores[i, j] for j in order[i]} for i in range(Y.size)}
        qrels = {f"q{i}": {f"d{j}": 1 for j in np.flatnonzero(c == Y)} for i, c in enumerate(Y)}
        task = cb.SourceTask.from_run(qrels, run, n_classes=Y.size)
        assert any("compared with itself" in text for text in task.warnings) is not sound


def test_lists_that_lack_the_instances_themselves():
    distance = distances_of_library() + 1e3 * np.eye(Y.size)
    order = np.argsort(distance, axis=1)[:, :40]
    task = cb.SourceTask.from_search(
        Y[order],
        Y,
        n_classes=N_CLASSES,
        distances=np.take_along_axis(distance, order, axis=1),
        ignore_identical=True,
    )
    assert verdict(task, "ignored entries") is False


def test_probes_that_are_templates_but_for_rounding():
    rng = np.random.default_rng(2)
    gallery = rng.normal(size=(N_CLASSES, 8))
    copies = gallery[Y].astype("f4").astype(float)
    near = gallery[Y] + 0.02 * rng.normal(size=(Y.size, 8))
    for distance in ("sqeuclidean", "cosine"):
        for probes, sound in ((copies, False), (near, True)):
            task = cb.SourceTask.from_embeddings(probes, gallery, Y, distance=distance)
            assert verdict(task, "self matches") is sound


# Order of lists


def run_of_places(length, n=60, seed=0):
    """Judgements, and distances of the `length` nearest documents; the shares found first."""
    rng = np.random.default_rng(seed)
    documents = rng.normal(size=(n, 8))
    queries = documents + 0.7 * rng.normal(size=(n, 8))
    distance = ((queries[:, None] - documents) ** 2).sum(axis=2)
    order = np.argsort(distance, axis=1)[:, :length]
    run = {f"q{i}": {f"d{j}": float(distance[i, j]) for j in order[i]} for i in range(n)}
    places = {f"q{i}": {f"d{j}": p for p, j in enumerate(order[i].tolist(), 1)} for i in range(n)}
    qrels = {f"q{i}": {f"d{i}": 1} for i in range(n)}
    return qrels, run, places, np.mean(order[:, 0] == np.arange(n))


@pytest.mark.parametrize("length", [10, 30, 60])
def test_runs_of_distances_and_of_places(length):
    qrels, *runs, right = run_of_places(length)
    for run in runs:
        task = cb.SourceTask.from_run(qrels, run, n_classes=60)
        assert verdict(task, "order of lists") is False
        assert any("pass higher_is_better=False" in text for text in task.warnings)
        task = cb.SourceTask.from_run(qrels, run, n_classes=60, higher_is_better=False)
        assert verdict(task, "order of lists") is True
        assert task.metric("recall@1", 60)[0] == pytest.approx(right)
        documents = cb.RelevantDocuments.from_run(qrels, run, n_classes=60, higher_is_better=False)
        assert documents.metric("recall@1") == pytest.approx(right)


def test_lists_with_the_worst_class_first():
    distance = distances_of_library() + 1e3 * np.eye(Y.size)
    order = np.argsort(distance, axis=1)[:, :40]
    for ids, sound in ((Y[order], True), (Y[order[:, ::-1]], False)):
        task = cb.SourceTask.from_search(ids, Y, n_classes=N_CLASSES)
        assert verdict(task, "order of lists") is sound


# Candidates of each query's own


def candidates(n_negatives, n=150, size=4000, seed=0):
    """Judgements, a run with negatives of each query's own, ranks, and the accuracy among all."""
    rng = np.random.default_rng(seed)
    true = 2.9 + 0.8 * rng.normal(size=n)
    others = rng.normal(size=(n, size))
    negatives = others[:, :n_negatives]
    run = {
        f"q{i}": {f"r{i}": true[i], **{f"n{i}_{j}": s for j, s in enumerate(negatives[i])}}
        for i in range(n)
    }
    qrels = {f"q{i}": {f"r{i}": 1} for i in range(n)}
    ranks = 1 + (negatives > true[:, None]).sum(axis=1)
    return qrels, run, ranks, np.mean(true > others.max(axis=1))


@pytest.mark.parametrize("n_negatives", [19, 99])
def test_lists_of_own_candidates_are_ranks_among_negatives(n_negatives, tmp_path):
    qrels, run, ranks, _ = candidates(n_negatives)
    task = cb.SourceTask.from_run(qrels, run, n_classes=20_000)
    assert verdict(task, "own candidates") is False
    assert any("own_candidates=True" in text for text in task.warnings)
    with pytest.warns(cb.exceptions.DataWarning, match="own_candidates=True"):
        cb.RelevantDocuments.from_run(qrels, run, n_classes=20_000)
    expected = cb.SourceTask.from_ranks(ranks, [*run], n_negatives=n_negatives)
    task = cb.SourceTask.from_run(qrels, run, own_candidates=True)
    for metric in ("hit_rate@1", "hit_rate@5", "mrr"):
        sizes = [2, 10, n_negatives + 1]
        np.testing.assert_allclose(task.metric(metric, sizes), expected.metric(metric, sizes))
    lists = [sorted(listed, key=listed.get, reverse=True) for listed in run.values()]
    names = np.array(lists)
    true = [next(iter(qrels[query])) for query in run]
    searched = cb.SourceTask.from_search(
        names, true, classes=sorted({*names.ravel()}), own_candidates=True
    )
    assert np.array_equal(np.sort(searched.ranks), np.sort(ranks))
    lines = [
        f"{q} Q0 {d} {place} {run[q][d]:.17g} x"
        for q, listed in zip(run, lists, strict=True)
        for place, d in enumerate(listed, 1)
    ]
    (tmp_path / "a.run").write_text("\n".join(lines))
    (tmp_path / "a.qrels").write_text("\n".join(f"q{i} 0 r{i} 1" for i in range(len(run))))
    read = cb.read_task(tmp_path / "a.run", qrels=tmp_path / "a.qrels", own_candidates=True)
    assert read.metric("mrr", 20) == pytest.approx(expected.metric("mrr", 20), abs=1e-6)


def test_few_lists_of_own_candidates():
    for n, size, sound in ((30, 10_000, False), (20, 5_000, False), (20, 100_000, True)):
        qrels, run, *_ = candidates(19, n=n)
        task = cb.SourceTask.from_run(qrels, run, n_classes=size)
        assert verdict(task, "own candidates") is sound


def test_own_candidates_that_are_tied():
    """The lists are whole, so ties at their ends hide no further candidates."""
    ids, y = np.arange(400).reshape(40, 10), np.arange(0, 400, 10)
    distances = np.tile([1.0, 2, 3, 4, 5, 6, 7, 9, 9, 9], (40, 1))
    options = {"own_candidates": True, "distances": distances}
    first = cb.SourceTask.from_search(ids, y, **options)
    last = cb.SourceTask.from_search(ids[:, ::-1], y, **options)
    assert (first.ranks == 1).all() and set(last.ranks) == {8, 9, 10}
    with pytest.raises(cb.DataError):
        cb.SourceTask.from_search(ids, y, **options, class_weight=np.ones(400))


# Labels, columns, counts and floors


@pytest.mark.parametrize("by", [1, -1, 5])
def test_labels_that_are_off(by):
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(Y.size, N_CLASSES)) + 3 * np.eye(N_CLASSES)[Y]
    task = cb.SourceTask.from_scores(scores, (Y + by) % N_CLASSES)
    assert verdict(task, "labels") is False
    sign = "-" if by > 0 else "+"
    assert any(f"pass (y {sign} {abs(by)}) % {N_CLASSES}" in text for text in task.warnings)
    ids = np.argsort(-scores, axis=1)[:, :20]
    task = cb.SourceTask.from_search(ids, (Y + by) % N_CLASSES, n_classes=N_CLASSES)
    assert verdict(task, "labels") is False
    names = [f"c{i}" for i in range(N_CLASSES)]
    named = cb.SourceTask.from_scores(
        pd.DataFrame(scores, columns=names), [names[c] for c in (Y + by) % N_CLASSES]
    )
    assert any("check the order of the names" in text for text in named.warnings)


@pytest.mark.parametrize("absent", [10, 35, 45])
def test_labels_without_a_class(absent):
    """Labels that number the classes that occur, as those of folders do (all else is sound)."""
    rng = np.random.default_rng(3)
    scores, y = rng.normal(size=(Y.size, N_CLASSES)) + 3 * np.eye(N_CLASSES)[Y], Y[absent != Y]
    scores = scores[absent != Y]
    task = cb.SourceTask.from_scores(scores, y - (y > absent), untested="competitors")
    assert verdict(task, "labels") is False
    (text,) = (text for text in task.warnings if "y + 1" in text)
    assert abs(int(text.split()[2]) - absent) < 5
    assert "pass the numbers of their columns" in text
    task = cb.SourceTask.from_scores(scores, y, untested="competitors")
    assert task.accuracy(N_CLASSES)[0] == np.mean(scores.argmax(axis=1) == y)
    assert verdict(task, "labels") is True


# Ties that rounding hides


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("door", ["scores", "distances", "lists", "negatives"])
def test_true_scores_that_are_computed_in_another_way(sign, door):
    """Entities have the scores of their types. Rounding must not decide who is first."""
    rng = np.random.default_rng(2)
    n, kind, y = 200, rng.integers(0, 12, 200), np.arange(200)
    of_kind = rng.normal(size=(n, 12))
    of_kind[y, kind] += 2
    scores = of_kind[:, kind]
    best = scores.max(axis=1)
    expected = np.mean((scores[y, y] == best) / (scores == best[:, None]).sum(axis=1))
    scores[y, y] += sign * 2e-6 * np.abs(scores[y, y])

    def task_of(scores):
        if door == "negatives":
            wrong = scores[~np.eye(n, dtype=bool)].reshape(n, n - 1)
            return cb.SourceTask.from_negatives(np.column_stack([scores[y, y], wrong]), y)
        if door == "lists":
            ids = np.argsort(-scores, axis=1)
            values = np.take_along_axis(scores, ids, axis=1)
            return cb.SourceTask.from_search(
                ids, y, n_classes=n, distances=values, higher_is_better=True
            )
        low = door == "distances"
        return cb.SourceTask.from_scores(-scores if low else scores, y, higher_is_better=not low)

    task = task_of(scores)
    assert verdict(task, "rounding") is False
    (digits,) = (
        int(text.split("np.round(scores, ")[1].split(")")[0])
        for text in task.warnings
        if "np.round" in text
    )
    task = task_of(np.round(scores, digits))
    assert verdict(task, "rounding") is True
    assert task.metric("hit_rate@1", n)[0] == pytest.approx(expected, abs=0.04)


def test_one_score_within_rounding_of_another_may_be_chance():
    scores = np.random.default_rng(4).normal(size=(15, 6))
    scores[0, 1] = scores[0, 0] * (1 + 1e-6)
    assert verdict(cb.SourceTask.from_scores(scores, np.arange(15) % 6), "rounding") is True


@pytest.mark.parametrize(
    "column",
    [
        lambda rng, n: 20 * rng.random(n),
        lambda rng, n: -np.log(rng.random(n)) * 5,
        lambda rng, n: rng.uniform(-90, 90, n),
        lambda rng, n: 1.7e9 + 1e5 * rng.random(n),
        lambda rng, n: np.full(n, 224),
    ],
    ids=["seconds", "loss", "latitude", "time", "width"],
)
def test_columns_of_another_law(column):
    rng = np.random.default_rng(4)
    scores = softmax(rng.normal(size=(150, 40)) + 4 * np.eye(40)[np.arange(150) % 40], axis=1)
    y = np.arange(150) % 40
    given = np.column_stack([scores[:, :30], column(rng, 150), scores[:, 30:]])
    names = [f"c{j}" for j in range(30)] + ["extra"] + [f"c{j}" for j in range(30, 40)]
    with pytest.raises(cb.DataError):
        cb.SourceTask.from_scores(given, [f"c{j}" for j in y], classes=names)
    given = np.column_stack([scores, column(rng, 150)])
    task = cb.SourceTask.from_scores(given, y, untested="competitors")
    assert verdict(task, "columns") is False
    logits = np.column_stack([np.log(scores), column(rng, 150)])
    task = cb.SourceTask.from_scores(logits, y, untested="competitors")
    assert verdict(task, "columns") is False
    share = np.column_stack([np.log(scores), rng.random(150)])  # above all logarithms
    task = cb.SourceTask.from_scores(share, y, untested="competitors")
    assert verdict(task, "columns") is False
    background = np.column_stack([scores, rng.uniform(0, 0.9, 150)])
    task = cb.SourceTask.from_scores(background, y, untested="competitors")
    assert verdict(task, "columns") is True


def confusions(n_classes, per_class, seed=0):
    rng = np.random.default_rng(seed)
    chance = np.full((n_classes, n_classes), 0.3 / (n_classes - 1))
    np.fill_diagonal(chance, 0.7)
    return np.stack([rng.multinomial(n, p) for n, p in zip(per_class, chance, strict=True)])


@pytest.mark.parametrize("n_classes", [3, 8, 50])
@pytest.mark.parametrize(
    "form",
    [
        lambda c: c,
        lambda c: c.astype(float),
        lambda c: c / c.sum(axis=1, keepdims=True),
        lambda c: 100 * (c / c.sum(axis=1, keepdims=True)).astype("f4"),
        lambda c: (11 * c + 1) / (11 * c + 1).sum(axis=1, keepdims=True),
        lambda c: c / c.sum(axis=0),
        lambda c: c / c.sum(),
    ],
    ids=["whole", "floats", "shares", "percentages", "thousands", "columns", "all"],
)
def test_confusion_matrices_as_scores(n_classes, form):
    per_class = np.random.default_rng(5).integers(20, 90, n_classes)
    for rows in (per_class, np.full(n_classes, 30)):
        scores = form(confusions(n_classes, rows))
        task = cb.SourceTask.from_scores(scores, np.arange(n_classes))
        assert verdict(task, "counts") is False


def test_a_floor_is_noted():
    rng = np.random.default_rng(6)
    logits = 5 * (rng.normal(size=(Y.size, N_CLASSES)) + 3 * np.eye(N_CLASSES)[Y])
    probabilities = softmax(logits, axis=1)
    for scores, floored in (
        (np.log(probabilities + 1e-4), True),
        (np.log(np.maximum(probabilities, 1e-3)), True),
        (np.log(probabilities), False),
        (logits, False),
    ):
        task = cb.SourceTask.from_scores(scores, Y)
        (check,) = (c for c in task.checks if c.name == "floor")
        assert check.passed and check.is_note == floored


# Sound data that look alike


def sound(rng):
    """Scores (n, k1), larger is better, of sound tests."""
    n_classes, repeats = int(rng.choice([20, 40, 80])), int(rng.choice([1, 2, 3]))
    y = np.repeat(np.arange(n_classes), repeats)
    true = np.eye(n_classes, dtype=bool)[y]
    lead, sharp = rng.choice([2, 4, 8]), rng.choice([1, 2, 4])
    logits = rng.normal(size=true.shape) + lead * true
    yield y, logits
    yield y, expit((sharp * (logits - lead / 2)).astype("f4"))
    far = rng.choice([8, 12, 17])
    yield y, expit(rng.normal(np.where(true, far, -far / 2), np.where(true, far / 6, 2)))
    yield y, softmax(sharp * logits, axis=1)
    yield y, np.round(softmax(sharp * logits, axis=1), 3)
    yield y, softmax((sharp * logits).astype("f4"), axis=1)
    yield y, log_softmax(sharp * logits, axis=1)
    yield y, np.eye(n_classes)[logits.argmax(axis=1)]
    ages = np.arange(n_classes) + rng.choice([0.3, 1, 3]) * rng.normal(size=(n_classes, 1))
    yield y, -np.abs(ages[y] - np.arange(n_classes))
    dim, spread = int(rng.choice([4, 12, 64])), rng.choice([0.1, 0.3, 1])
    gallery = rng.normal(size=(n_classes, dim))
    probes = gallery[y] + spread * rng.normal(size=(y.size, dim))
    squares = ((probes[:, None] - gallery) ** 2).sum(axis=2)
    yield y, -squares
    yield y, np.exp(-np.sqrt(squares))
    topics = rng.dirichlet(np.full(600, 0.02), size=n_classes)
    documents = rng.poisson(40 * topics)
    queries = np.stack([rng.multinomial(6, topics[c]) for c in y])
    idf = np.log((n_classes + 1) / ((documents > 0).sum(axis=0) + 0.5))
    yield y, (queries * idf) @ (documents * 2.2 / (documents + 1.2)).T
    yield y, logits + 2 * (~true & (np.arange(n_classes) == 0))
    bits = rng.random((n_classes, 64)) < 0.5
    yield y, 64.0 - ((bits[y] ^ (rng.random((y.size, 64)) < 0.12))[:, None] ^ bits).sum(axis=2)


NAMES = (
    "self matches",
    "order of lists",
    "own candidates",
    "last ranks",
    "labels",
    "rounding",
    "columns",
    "counts",
    "floor",
    "classes with one entry",
)


def test_sound_data_are_silent():
    """840 pilots of fourteen kinds, as matrices and as lists: fewer than 1 in 200 are noted."""
    alarms, n = 0, 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        for y, scores in sound(rng):
            tested = y < y.max() - 1
            order = np.argsort(-scores, axis=1, kind="stable")[:, :19]
            tasks = (
                cb.SourceTask.from_scores(scores[tested], y[tested], untested="competitors"),
                cb.SourceTask.from_search(
                    order,
                    y,
                    n_classes=int(y.max()) + 1,
                    distances=np.take_along_axis(scores, order, axis=1),
                    higher_is_better=True,
                ),
            )
            n += len(tasks)
            alarms += sum(
                any((c.passed is False or c.is_note) and c.name in NAMES for c in task.checks)
                for task in tasks
            )
    assert n == 840 and alarms < n / 200


@pytest.mark.parametrize("size", [6000, 10**6])
def test_lists_of_large_corpora_are_shared(size):
    rng = np.random.default_rng(7)
    ids = np.stack([rng.choice(size, 19, replace=False) for _ in range(200)])
    task = cb.SourceTask.from_search(ids, np.arange(200), n_classes=size, untested="competitors")
    assert verdict(task, "own candidates") is True
