"""Test instances that are among their own templates, and columns that are no classes."""

import numpy as np
import pytest
from helpers import better_classes, verdict

import classex_bayes as cb

pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")

N_CLASSES, REPEATS = 60, 3


def made(seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(N_CLASSES), REPEATS)
    vectors = rng.normal(size=(N_CLASSES, 10))[y] + 0.5 * rng.normal(size=(y.size, 10))
    return vectors, y


def distances_between(vectors):
    return ((vectors[:, None] - vectors) ** 2).sum(axis=2)


def nearest_classes_of_others(distance, y):
    """Distance of each instance to each class, by its nearest instance other than itself."""
    others = distance + np.diag(np.full(len(distance), np.inf))
    return np.stack([others[:, y == c].min(axis=1) for c in range(N_CLASSES)], axis=1)


def test_lists_that_begin_with_the_query():
    vectors, y = made()
    distance = distances_between(vectors)
    order = np.argsort(distance, axis=1)[:, :120]
    ids, of_ids = y[order], np.take_along_axis(distance, order, axis=1)
    right = cb.SourceTask.from_scores(
        nearest_classes_of_others(distance, y), y, higher_is_better=False
    )
    wrong = cb.SourceTask.from_search(ids, y, n_classes=N_CLASSES, distances=of_ids)
    assert wrong.accuracy(N_CLASSES) == 1
    assert verdict(wrong, "self matches") is False
    for given in ({"distances": of_ids}, {}):
        task = cb.SourceTask.from_search(
            ids, y, n_classes=N_CLASSES, ignore_identical=True, **given
        )
        assert task.warnings == ()
        assert task.accuracy(N_CLASSES) == pytest.approx(right.accuracy(N_CLASSES))
    similar = 1 / (1 + of_ids)
    given = {"n_classes": N_CLASSES, "distances": similar, "higher_is_better": True}
    task = cb.SourceTask.from_search(ids, y, **given)
    assert verdict(task, "self matches") is False
    task = cb.SourceTask.from_search(ids, y, **given, ignore_identical=True)
    assert task.accuracy(N_CLASSES) == pytest.approx(right.accuracy(N_CLASSES))
    with pytest.raises(cb.exceptions.DataError):
        cb.SourceTask.from_search(ids[:, :1], y, n_classes=N_CLASSES, ignore_identical=True)


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
    assert task.accuracy(N_CLASSES)[0] == pytest.approx((y[others[:, 0]] == y).mean())


def test_classes_with_one_entry_cannot_be_found_without_it():
    """Half of the classes have one vector, as in a data set whose own vectors are the queries."""
    vectors, y = made()
    kept = (y % 2 == 0) | (np.arange(y.size) % REPEATS == 0)
    vectors, y = vectors[kept], y[kept]
    distance = distances_between(vectors)
    paired = y % 2 == 0
    nearest = np.argsort(distance + np.diag(np.full(y.size, np.inf)), axis=1)[:, 0]
    right = (y[nearest] == y)[paired].mean()
    ids = np.argsort(distance, axis=1)[:, :60]
    given = y[ids], np.take_along_axis(distance, ids, axis=1)

    def searched(rows, **options):
        return cb.SourceTask.from_search(
            given[0][rows],
            y[rows],
            n_classes=N_CLASSES,
            distances=given[1][rows],
            ignore_identical=True,
            **options,
        )

    assert verdict(searched(y >= 0), "classes with one entry") is False
    task = searched(paired, untested="competitors")
    assert task.accuracy(N_CLASSES)[0] == pytest.approx(right)
    assert task.warnings == ()
    # One query of each class, which the index has three of, is not alone.
    vectors, y = made()
    distance = distances_between(vectors)
    ids = np.argsort(distance, axis=1)[:, :60]
    given = y[ids], np.take_along_axis(distance, ids, axis=1)
    assert searched(np.arange(y.size) % REPEATS == 0).warnings == ()


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
    assert verdict(task, "names of queries") is False
    without = cb.SourceTask.from_run(qrels, run, n_classes=40, ignore_identical=True)
    assert without.metric("recall@1", 40) == 1
    assert without.warnings == ()
    # Where the judgements name the query, too, it is no relevant document either.
    judged = {name: {name: 1, **relevant} for name, relevant in qrels.items()}
    options = {"n_classes": 40, "ignore_identical": True}
    documents = cb.RelevantDocuments.from_run(judged, run, **options)
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


def test_distances_to_templates_that_contain_the_instance():
    vectors, y = made()
    distance = distances_between(vectors)
    with_self = np.stack([distance[:, y == c].min(axis=1) for c in range(N_CLASSES)], axis=1)
    others = nearest_classes_of_others(distance, y)
    rounding = 2e-7 * np.random.default_rng(1).normal(size=with_self.shape)
    for scores, found in ((with_self, True), (with_self + rounding, True), (others, False)):
        task = cb.SourceTask.from_scores(scores, y, higher_is_better=False)
        assert verdict(task, "self matches") is not found


def test_cosines_with_templates_that_contain_the_instance():
    vectors, y = made()
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit.T
    for values, found in ((cosines, True), (cosines - 3 * np.eye(y.size), False)):
        scores = np.stack([values[:, y == c].max(axis=1) for c in range(N_CLASSES)], axis=1)
        task = cb.SourceTask.from_scores(scores, y)
        assert verdict(task, "self matches") is not found


def sound_tasks():
    """Scores of sound tasks that resemble faulty ones, and whether higher ones are better."""
    rng, y = np.random.default_rng(2), np.arange(120) % 40
    true = np.eye(40, dtype=bool)[y]
    logits = np.where(true, rng.normal(17, 2, (120, 40)), rng.normal(-9, 2, (120, 40)))
    yield "saturated sigmoids", 1 / (1 + np.exp(-logits.astype(np.float32))), True
    gallery = rng.normal(size=(40, 64))
    probes = gallery[y] + 0.1 * rng.normal(size=(120, 64))
    squares = ((probes[:, None] - gallery) ** 2).sum(axis=2)
    yield "small distances of true classes", squares, False
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (probes, gallery)]
    yield "cosines in half precision", (unit[0] @ unit[1].T).astype(np.float16), True
    yield "kernels", np.exp(-squares), True
    yield "distances with a long tail", np.exp(rng.normal(size=(120, 40)) * 5 + 8 * ~true), False


@pytest.mark.parametrize(
    ("scores", "higher"), [case[1:] for case in sound_tasks()], ids=[c[0] for c in sound_tasks()]
)
def test_no_false_alarms(scores, higher):
    task = cb.SourceTask.from_scores(scores, np.arange(120) % 40, higher_is_better=higher)
    assert verdict(task, "self matches") is True
    lists = task.nearest_classes.scores
    assert np.isfinite(lists).all()


@pytest.mark.parametrize("value", [0.0, -np.inf])
def test_untested_columns_of_one_value_may_be_classes(value):
    """Such as a document that no query matches, or a class that is ruled out."""
    rng, y = np.random.default_rng(0), np.arange(90) % 30
    scores = np.column_stack([rng.normal(size=(90, 30)), np.full(90, value)])
    scores[np.arange(90), y] += 3
    task = cb.SourceTask.from_scores(scores, y, untested="competitors")
    assert verdict(task, "columns") is True


def test_templates_that_are_means_of_the_probes():
    vectors, y = made()
    means = np.stack([vectors[y == c].mean(axis=0) for c in range(N_CLASSES)])
    task = cb.SourceTask.from_embeddings(vectors, means, y)
    assert verdict(task, "embeddings") is False
    other = cb.SourceTask.from_embeddings(vectors, means + 0.05, y)
    assert verdict(other, "embeddings") is True


@pytest.mark.parametrize(
    "column",
    [np.arange(90) % 30 % 5, np.arange(90), np.full(90, 224)],
    ids=["fold", "row", "width"],
)
def test_columns_that_are_no_classes(column):
    rng, y = np.random.default_rng(0), np.arange(90) % 30
    scores = rng.normal(size=(90, 30))
    scores[np.arange(90), y] += 3
    given = np.column_stack([scores, column])
    task = cb.SourceTask.from_scores(given, y, untested="competitors")
    assert verdict(task, "columns") is False
    more = np.column_stack([scores, rng.normal(size=90)])
    assert cb.SourceTask.from_scores(more, y, untested="competitors").warnings == ()


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


def test_an_atom_of_last_ranks_is_a_fault():
    rng = np.random.default_rng(5)
    ranks = 1 + rng.binomial(199, rng.beta(0.3, 8, size=400))
    y = np.arange(400) % 200
    assert cb.SourceTask.from_ranks(ranks, y, n_classes=200).warnings == ()
    ranks[rng.random(400) < 0.12] = 200
    assert verdict(cb.SourceTask.from_ranks(ranks, y, n_classes=200), "last ranks") is False


@pytest.mark.parametrize("fill", [0, -np.inf, np.finfo(float).min])
@pytest.mark.parametrize("is_shuffled", [True, False])
def test_classes_that_a_fold_was_not_trained_on(fill, is_shuffled):
    """Cross-validation without strata fills the scores of classes that a fold lacks."""
    rng, y = np.random.default_rng(1), np.arange(80) // 2
    scores = np.exp(rng.normal(size=(80, 40)) + 3 * np.eye(40)[y])
    folds = rng.permutation(80) % 4 if is_shuffled else np.arange(80) // 20
    lost = np.zeros(80, dtype=bool)
    for fold in range(4):
        absent = np.setdiff1d(y, y[folds != fold])
        scores[np.ix_(folds == fold, absent)] = fill
        lost |= (folds == fold) & np.isin(y, absent)
    task = cb.SourceTask.from_scores(scores, y)
    assert any(f"{lost.sum()} instances" in text for text in task.warnings)
    if is_shuffled:
        task = cb.SourceTask.from_scores(scores[~lost], y[~lost], untested="competitors")
        assert task.warnings == ()


@pytest.mark.parametrize("scored", [True, False])
def test_classes_without_another_entry(scored):
    """The index lacks the instances themselves, and with them the only entries of some classes."""
    rng = np.random.default_rng(6)
    y = np.append(np.repeat(np.arange(50), 3), np.arange(50, 90))
    vectors = rng.normal(size=(90, 10))[y] + 0.5 * rng.normal(size=(y.size, 10))
    squares = ((vectors[:, None] - vectors) ** 2).sum(axis=2)
    np.fill_diagonal(squares, np.inf)
    ids = np.argsort(squares, axis=1)[:, :60]
    distances = np.take_along_axis(squares, ids, axis=1) if scored else None
    task = cb.SourceTask.from_search(y[ids], y, n_classes=90, distances=distances)
    assert verdict(task, "classes with one entry") is False
    kept = np.arange(150)
    task = cb.SourceTask.from_search(
        y[ids][kept],
        y[kept],
        n_classes=90,
        distances=None if distances is None else distances[kept],
        untested="competitors",
    )
    assert task.warnings == ()
    assert task.accuracy(90)[0] == pytest.approx((y[ids[:, 0]] == y)[kept].mean())


def test_a_gallery_of_other_lengths_than_the_probes():
    rng, y = np.random.default_rng(10), np.repeat(np.arange(120), 2)
    gallery = rng.normal(size=(120, 24))
    probes = gallery[y] + 1.2 * rng.normal(size=(240, 24))
    probes, unit = (
        rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (probes, gallery)
    )
    right = cb.SourceTask.from_embeddings(probes, unit, y, distance="cosine").accuracy(120)
    long = unit * np.exp(0.3 * rng.normal(size=(120, 1)))
    means = unit * rng.uniform(0.5, 1, size=(120, 1))  # of vectors of length 1
    for distance in ("sqeuclidean", "dot"):
        task = cb.SourceTask.from_embeddings(probes, long, y, distance=distance)
        assert task.accuracy(120) < right - 0.05
        assert verdict(task, "embeddings") is False
        task = cb.SourceTask.from_embeddings(probes, means, y, distance=distance)
        assert verdict(task, "embeddings") is True
    task = cb.SourceTask.from_embeddings(probes, long, y, distance="cosine")
    assert task.accuracy(120) == right and task.warnings == ()


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
    worth = 0.6 * 0.4 / many.accuracy_cov(20)[0, 0]
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
    assert verdict(task, "names of queries") is True
