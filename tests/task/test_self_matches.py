"""Test instances that are among their own templates, and numbers that are no scores."""

import numpy as np
import pytest
from helpers import better_classes, verdict

import classex_bayes as cb

pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")

N_CLASSES, REPEATS = 60, 3
NOISE = 1e-4 * np.abs(np.random.default_rng(1).normal(size=(180, 180)))


def made(seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(N_CLASSES), REPEATS)
    vectors = rng.normal(size=(N_CLASSES, 10))[y] + 0.5 * rng.normal(size=(y.size, 10))
    return vectors, y


def distances_between(vectors):
    return ((vectors[:, None] - vectors) ** 2).sum(axis=2)


@pytest.mark.parametrize(
    ("transform", "higher"),
    [
        (lambda d: d, False),
        (lambda d: d.astype("f2"), False),
        (lambda d: d + NOISE, False),
        (lambda d: 1 / (1 + d), True),
        (lambda d: np.exp(-np.sqrt(d)) + NOISE, True),
        (lambda d: 1000 - d, True),
    ],
    ids=["squares", "half precision", "noisy", "similarities", "noisy kernels", "falling"],
)
def test_lists_that_begin_with_the_query(transform, higher):
    vectors, y = made()
    values = transform(distances_between(vectors))
    order = np.argsort(-values if higher else values, axis=1, kind="stable")[:, :120]
    ids, of_ids = y[order], np.take_along_axis(values, order, axis=1)
    others = values.astype(float)
    np.fill_diagonal(others, -np.inf if higher else np.inf)
    right = y[others.argmax(axis=1) if higher else others.argmin(axis=1)] == y
    scored = {"distances": of_ids, "higher_is_better": higher}
    wrong = cb.SourceTask.from_search(ids, y, n_classes=N_CLASSES, **scored)
    assert wrong.accuracy(N_CLASSES) == 1
    assert verdict(wrong, "self matches") is False
    for given in (scored, {}):
        task = cb.SourceTask.from_search(
            ids, y, n_classes=N_CLASSES, ignore_identical=True, **given
        )
        assert task.warnings == ()
        assert task.accuracy(N_CLASSES) == pytest.approx(right.mean())
    with pytest.raises(cb.DataError):
        cb.SourceTask.from_search(ids[:, :1], y, n_classes=N_CLASSES, ignore_identical=True)


def test_lists_that_lack_the_queries_are_noted():
    vectors, y = made()
    values = distances_between(vectors) + 1e3 * np.eye(y.size)
    order = np.argsort(values, axis=1)[:, :40]
    task = cb.SourceTask.from_search(
        y[order],
        y,
        n_classes=N_CLASSES,
        distances=np.take_along_axis(values, order, axis=1),
        ignore_identical=True,
    )
    assert any("ignore_identical" in note for note in task.notes)


def test_masked_entries_do_not_make_all_others_equal():
    """Items that a user has seen come last, with the lowest number of single precision."""
    rng, y = np.random.default_rng(0), np.arange(200) % 50
    scores = rng.normal(size=(200, 50)).astype(np.float32)
    scores[np.arange(200), y] += 2
    seen = (rng.random((200, 50)) < 0.3) & (np.arange(50) != y[:, None])
    scores[seen] = np.finfo(np.float32).min
    ids = np.argsort(-scores, axis=1)
    task = cb.SourceTask.from_search(
        ids, y, n_classes=50, distances=np.take_along_axis(scores, ids, 1), higher_is_better=True
    )
    assert task.warnings == ()


def test_cosines_of_single_precision():
    """Most cosines are near 0, where rounding errors of 1 are not small."""
    rng, y = np.random.default_rng(1), np.repeat(np.arange(500), 2)
    vectors = 0.5 * rng.normal(size=(500, 512))[y] + rng.normal(size=(1000, 512))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    cosine = vectors @ vectors.T
    cosine[np.diag_indices(1000)] += rng.choice([-6e-7, 6e-7], 1000).astype(np.float32)
    ids = np.argsort(-cosine, axis=1)
    found = y[ids], y
    distances = np.take_along_axis(cosine, ids, axis=1)
    task = cb.SourceTask.from_search(
        *found, n_classes=500, distances=distances, higher_is_better=True
    )
    assert verdict(task, "self matches") is False


def test_a_wrong_distance_does_not_make_all_others_0():
    vectors, y = made()
    distance = distances_between(vectors)
    distance[:, 0] = 3.4e21
    ids = np.argsort(distance, axis=1)
    others = np.argsort(distance + np.diag(np.full(y.size, 1e30)), axis=1)
    task = cb.SourceTask.from_search(
        y[ids],
        y,
        n_classes=N_CLASSES,
        distances=np.take_along_axis(distance, ids, 1),
        ignore_identical=True,
    )
    assert task.warnings == ()
    assert task.accuracy(N_CLASSES) == pytest.approx((y[others[:, 0]] == y).mean())


def test_a_copy_at_distance_0_may_be_listed_before_the_instance():
    ids, distances = [[1, 0, 2, 0], [1, 2, 0, 1], [2, 1, 0, 2]], [[0, 0, 1, 2], [0, 1, 2, 3]]
    distances.append([0, 1, 2, 3])
    task = cb.SourceTask.from_search(
        ids, [0, 1, 2], n_classes=3, distances=distances, ignore_identical=True
    )
    assert task.ranks.tolist() == [3, 3, 3]


def test_documents_that_are_queries():
    names = [f"d{i}" for i in range(40)]
    qrels = {name: {f"d{i ^ 1}": 1} for i, name in enumerate(names)}
    run = {
        name: {name: 9.0, f"d{i ^ 1}": 8.0, f"d{(i + 7) % 40}": 1.0} for i, name in enumerate(names)
    }
    task = cb.SourceTask.from_run(qrels, run, n_classes=40)
    assert any("the document of their name" in note for note in task.notes)
    without = cb.SourceTask.from_run(qrels, run, n_classes=40, ignore_identical=True)
    assert without.metric("recall@1", 40) == 1
    assert without.warnings == ()
    # Where the judgements name the query, too, it is no relevant document either.
    judged = {name: {name: 1, **relevant} for name, relevant in qrels.items()}
    options = {"n_classes": 40, "ignore_identical": True}
    documents = cb.SourceTask.from_run(judged, run, **options)
    assert documents.metric("recall@1") == pytest.approx(1)
    assert cb.SourceTask.from_run(judged, run, **options).metric("recall@1", 40) == 1


@pytest.mark.parametrize("filler", [np.nan, 99.0, -99.0])
@pytest.mark.parametrize("higher", [False, True])
def test_what_fills_lists_is_no_match(higher, filler):
    """A first entry of -1 hides neither the instance itself nor the warning."""
    vectors, y = made()
    distance = distances_between(vectors)
    order = np.argsort(distance, axis=1)[:, :60]
    of_ids = np.take_along_axis(distance, order, axis=1)
    values = 1 / (1 + of_ids) if higher else of_ids
    ids = np.insert(y[order], 0, -1, axis=1)
    values = np.insert(values, 0, filler, axis=1)
    options = {"n_classes": N_CLASSES, "distances": values, "higher_is_better": higher}
    assert verdict(cb.SourceTask.from_search(ids, y, **options), "self matches") is False
    for given in (options, {"n_classes": N_CLASSES}):
        padded = cb.SourceTask.from_search(ids, y, ignore_identical=True, **given)
        if "distances" in given:
            given = given | {"distances": values[:, 1:]}
        plain = cb.SourceTask.from_search(ids[:, 1:], y, ignore_identical=True, **given)
        assert padded.warnings == plain.warnings == ()
        np.testing.assert_array_equal(better_classes(padded), better_classes(plain))


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_numbers_that_mask_a_class_are_no_scores(share):
    rng, y = np.random.default_rng(0), np.arange(120) % 30
    scores = rng.normal(size=(120, 30))
    scores[np.arange(120), y] += 4.5
    masked = rng.random(scores.shape) < share
    lists, thresholds = [], []
    for value in (-np.inf, -65504, -1e9, np.finfo(np.float32).min, np.finfo(float).min):
        scores[0, 5], scores[masked] = value, value
        task = cb.SourceTask.from_scores(scores, y)
        lists.append(task.nearest_classes.scores)
        few = {"draws": 50, "chains": 1}
        model = cb.OpenSetExtrapolator().fit(task, sampler=few, random_seed=1)
        thresholds.append(float(model.predict([30], fpir=0.1).threshold.values[0]))
    for other in lists[1:]:
        assert np.array_equal(other, lists[0])
    assert len(set(thresholds)) == 1


def test_classes_without_another_entry_only_compete():
    """The index lacks the instances themselves, and with them the only entries of some classes."""
    rng = np.random.default_rng(6)
    y = np.append(np.repeat(np.arange(50), 3), np.arange(50, 90))
    vectors = rng.normal(size=(90, 10))[y] + 0.5 * rng.normal(size=(y.size, 10))
    squares = distances_between(vectors)
    np.fill_diagonal(squares, np.inf)
    ids = np.argsort(squares, axis=1)[:150, :60]
    task = cb.SourceTask.from_search(
        y[ids],
        y[:150],
        n_classes=90,
        distances=np.take_along_axis(squares[:150], ids, axis=1),
        untested="competitors",
    )
    assert task.warnings == ()
    assert task.accuracy(90) == pytest.approx((y[ids[:, 0]] == y[:150]).mean())


def test_a_test_without_errors_is_asked_about_copies():
    """Without distances nothing else shows that the first entry is the instance itself."""
    ids = [[i, (i + 1) % 30, (i + 2) % 30] for i in range(30)]
    task = cb.SourceTask.from_search(ids, np.arange(30), n_classes=30)
    assert any("copies" in note for note in task.notes)


def test_curves_of_many_instances_are_uncertain():
    """Answers of one class are alike, so 20 classes are never worth 45,000 instances."""
    few, many = (
        cb.SourceTask.from_accuracies([5, 20], [0.829, 0.6], n_test=n, n_classes=20)
        for n in (20, 45_000)
    )
    assert few.design_effect() == 2
    # 20 classes with a correlation of 0.2 + 0.08 are worth about 20 / 0.28 instances.
    worth = 0.6 * 0.4 / many.accuracy_cov(20)
    assert worth == pytest.approx(20 / 0.28, rel=0.01)


def test_losses_to_siblings_are_no_atom_of_last_ranks():
    """Instances that only siblings beat have no competitor ahead."""
    rng, y = np.random.default_rng(1), np.repeat(np.arange(80), 3)
    groups = np.append(np.zeros(60, dtype=int), np.arange(1, 21))
    scores = rng.normal(size=(y.size, 80)) + 30 * (groups[y][:, None] == groups)
    task = cb.SourceTask.from_scores(scores, y, sampling=cb.Sampling(groups=groups))
    assert verdict(task, "last ranks") is not False


@pytest.mark.filterwarnings("ignore:run. left out")
def test_queries_without_judgements_are_not_counted():
    names = [f"d{i}" for i in range(60)]
    qrels = {name: {f"d{i + 20}": 1} for i, name in enumerate(names[:20])}
    run = {name: {f"d{i + 20}": 8.0, "d59": 1.0} for i, name in enumerate(names[:20])}
    run |= {name: {name: 9.0} for name in names[20:]}
    task = cb.SourceTask.from_run(qrels, run, n_classes=100)
    assert not any("of their name" in note for note in task.notes)
