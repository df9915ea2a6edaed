"""Results of a vector index against the same distances among all classes."""

import numpy as np
import pandas as pd
import pytest
from helpers import better_classes

from classex_bayes import DataError, SourceTask, read_task
from classex_bayes.exceptions import DataWarning
from classex_bayes.task.rank_bins import bin_ends

pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")

N_CLASSES = 60
NAMES = [f"class {j}" for j in range(N_CLASSES)]
SCORED = {"n_classes": N_CLASSES, "untested": "competitors"}


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def matrix(rng):
    """Distances of 300 queries to 60 classes, of which 40 are tested."""
    distances, y = rng.gamma(4.0, size=(300, N_CLASSES)), rng.permutation(np.arange(300) % 40)
    distances[np.arange(300), y] *= 0.3
    return distances, y


def listed(distances, length):
    """What an index returns for these distances."""
    ids = np.argsort(distances, axis=1)[:, :length]
    return ids, np.take_along_axis(distances, ids, axis=1)


def same_lists(lists, expected, length):
    assert lists.classes.tolist() == expected.classes[:, :length].tolist()
    np.testing.assert_array_equal(lists.scores, expected.scores[:, :length])
    assert lists.perfect == expected.perfect


def test_long_lists_are_as_good_as_scores(matrix):
    distances, y = matrix
    ids, near = listed(distances, N_CLASSES)
    task = SourceTask.from_search(ids, y, distances=near, **SCORED)
    whole = SourceTask.from_scores(distances, y, higher_is_better=False, untested="competitors")
    assert task.ranks.tolist() == whole.ranks.tolist()
    same_lists(task.nearest_classes, whole.nearest_classes, 32)
    np.testing.assert_array_equal(task.nearest_classes.true, -distances[np.arange(y.size), y])


@pytest.mark.parametrize("length", [2, 5, 20])
def test_cut_lists_are_cut_ranks(matrix, length):
    distances, y = matrix
    ids, near = listed(distances, length)
    whole = SourceTask.from_scores(distances, y, higher_is_better=False, untested="competitors")
    task = SourceTask.from_search(ids, y, distances=near, **SCORED)
    cut = SourceTask.from_ranks(whole.ranks, y, truncated_at=length, **SCORED)
    k = np.arange(2, N_CLASSES + 1)
    for bound, expected in zip(task.accuracy_bounds(k), cut.accuracy_bounds(k), strict=True):
        np.testing.assert_array_equal(bound, expected)
    assert bin_ends(task.table).tolist() == bin_ends(cut.table).tolist()
    same_lists(task.nearest_classes, whole.nearest_classes, length - 1)
    true = np.where(whole.ranks <= length, -distances[np.arange(y.size), y], -np.inf)
    np.testing.assert_array_equal(task.nearest_classes.true, true)


def test_similarities(matrix):
    distances, y = matrix
    ids, near = listed(distances, 20)
    task = SourceTask.from_search(ids, y, distances=near, **SCORED)
    similar = SourceTask.from_search(ids, y, distances=5 - near, higher_is_better=True, **SCORED)
    shifted = SourceTask.from_search(ids, y, distances=near - 5, **SCORED)
    assert task.nearest_classes.perfect == 0.0
    # Neither inner products nor one less them have an origin.
    assert similar.nearest_classes.perfect is None and shifted.nearest_classes.perfect is None
    for other in (similar, shifted):
        np.testing.assert_allclose(other.nearest_classes.scores, task.nearest_classes.scores + 5)


@pytest.mark.parametrize("length", [3, 40])
def test_several_entries_of_a_class(rng, length):
    labels, y = rng.permutation(np.arange(120) % N_CLASSES), np.arange(200) % N_CLASSES
    entries = rng.gamma(2.0, size=(200, 120))
    entries[labels == y[:, None]] *= 0.5
    places, near = listed(entries, length)
    task = SourceTask.from_search(labels[places], y, n_classes=N_CLASSES, distances=near)
    min_better, max_better = [], []
    for row, true in zip(labels[places].tolist(), y.tolist(), strict=True):
        different = list(dict.fromkeys(row))
        found = true in different
        min_better.append(different.index(true) if found else len(different))
        max_better.append(different.index(true) if found else N_CLASSES - 1)
    np.testing.assert_array_equal(better_classes(task), [min_better, max_better])
    by_class = np.array([entries[:, labels == j].min(axis=1) for j in range(N_CLASSES)]).T
    whole = SourceTask.from_scores(by_class, y, higher_is_better=False)
    same_lists(task.nearest_classes, whole.nearest_classes, task.nearest_classes.classes.shape[1])


def test_lists_that_end_early(matrix):
    distances, y = matrix
    ids, near = listed(distances, 12)
    ids[:2, 3:], near[:2, 3:] = -1, np.finfo(np.float32).max
    task = SourceTask.from_search(ids, y, distances=near, **SCORED)
    lists = task.nearest_classes
    assert lists.classes.shape == (300, 11)
    for row in range(2):
        wrong = [(j, d) for j, d in zip(ids[row, :3], near[row, :3], strict=True) if j != y[row]]
        n = len(wrong)
        assert lists.classes[row].tolist() == [*(j for j, _ in wrong), *[-1] * (11 - n)]
        assert lists.scores[row].tolist() == [*(-d for _, d in wrong), *[-np.inf] * (11 - n)]
    # If they are more than a few, all lists are cut to their length.
    ids[:10, 3:] = -1
    lists = SourceTask.from_search(ids, y, distances=near, **SCORED).nearest_classes
    assert lists.classes.shape[1] in (2, 3) and lists.classes.min() >= 0


def test_entries_of_no_class_may_stand_anywhere(matrix):
    distances, y = matrix
    ids, near = listed(distances, 10)
    task = SourceTask.from_search(ids, y, distances=near, **SCORED)
    gaps = np.insert(ids, [0, 4], -1, axis=1), np.insert(near, [0, 4], [[99.0, -99.0]], axis=1)
    other = SourceTask.from_search(gaps[0], y, distances=gaps[1], **SCORED)
    same_lists(other.nearest_classes, task.nearest_classes, 9)
    np.testing.assert_array_equal(better_classes(other), better_classes(task))


@pytest.mark.parametrize("several", [False, True])
def test_tied_distances_of_whole_lists_are_those_of_scores(rng, matrix, several):
    """Whatever the order in which the index keeps its entries."""
    distances, y = np.rint(matrix[0]), matrix[1]
    whole = SourceTask.from_scores(distances, y, higher_is_better=False, untested="competitors")
    labels = np.repeat(np.arange(N_CLASSES), 1 + several)
    for _ in range(2):
        kept = rng.permutation(labels.size)
        ids = kept[np.argsort(distances[:, labels[kept]], axis=1, kind="stable")]
        near = np.take_along_axis(distances[:, labels], ids, axis=1)
        task = SourceTask.from_search(labels[ids], y, distances=near, **SCORED)
        assert task.ranks.tolist() == whole.ranks.tolist()


@pytest.mark.parametrize("length", [4, 25])
def test_lists_end_before_ties_that_an_index_cut(rng, matrix, length):
    distances, y = np.rint(4 * matrix[0]), matrix[1]
    own = distances[np.arange(y.size), y][:, None]
    better, equal = (distances < own).sum(axis=1), (distances == own).sum(axis=1) - 1
    for _ in range(3):  # orders of the entries of the index
        kept = rng.permutation(N_CLASSES)
        ids = kept[np.argsort(distances[:, kept], axis=1, kind="stable")[:, :length]]
        near = np.take_along_axis(distances, ids, axis=1)
        task = SourceTask.from_search(ids, y, distances=near, **SCORED)
        before = (near < near[:, -1:]).sum(axis=1)
        before = np.where(before == length - 1, length, np.maximum(before, 1))
        min_better, max_better = better_classes(task)
        found = min_better == max_better
        assert min_better[~found].tolist() == before[~found].tolist()
        assert (max_better[~found] == N_CLASSES - 1).all()
        assert (found <= (better < before)).all()
        assert ((better <= min_better) & (min_better <= better + equal))[found].all()


def test_an_index_that_returns_its_first_entries_finds_nothing():
    """All distances are equal: accuracy is that of guessing, not that of the order of the index."""
    ids = np.tile(np.arange(100), (100, 1))
    options = {"n_classes": 1000, "untested": "competitors"}
    with pytest.warns(DataWarning, match="end in equal distances"):
        task = SourceTask.from_search(ids, np.arange(100), distances=np.zeros(ids.shape), **options)
    lower, upper = task.accuracy_bounds([10, 1000])
    assert lower[0] < 0.1 < upper[0] and upper[1] <= 0.05
    with pytest.raises(DataError):
        task.metric("recall@10", 1000)


def test_a_few_ties_are_no_fault(matrix):
    distances, y = matrix
    ids, near = listed(distances, 10)
    assert not SourceTask.from_search(ids, y, distances=near, **SCORED).warnings
    known = bin_ends(SourceTask.from_search(ids, y, distances=near, **SCORED).table)
    near[:2, 1:] = near[:2, 1:2]
    task = SourceTask.from_search(ids, y, distances=near, **SCORED)
    assert not task.warnings
    assert bin_ends(task.table).tolist() == known.tolist()
    near[:60, -2:] = near[:60, -2:-1]
    task = SourceTask.from_search(ids, y, distances=near, **SCORED)
    assert not task.warnings
    assert any("equal" in note for note in task.notes)


def test_lists_of_the_true_class_alone_list_no_other():
    task = SourceTask.from_search([[0], [1], [2]], [0, 1, 2], n_classes=3, distances=[[0.1]] * 3)
    assert task.ranks.tolist() == [1, 1, 1]
    with pytest.raises(DataError):
        _ = task.nearest_classes


@pytest.mark.parametrize(
    "kind", ["names", "text", "frame", "missing", "empty", "numbers", "positions", "named y"]
)
def test_names(matrix, kind):
    distances, y = matrix
    ids, _ = listed(distances, 10)
    ids[5, 7:] = -1
    expected = SourceTask.from_search(ids, y, **SCORED)
    classes, names = NAMES, np.array([*NAMES, "-1"], dtype=object)
    if kind == "numbers":
        classes = list(range(1000, 1000 + N_CLASSES))
        names = np.array([*classes, -1])
    names[-1] = {"missing": None, "empty": ""}.get(kind, -1)
    given, labels = names[ids], names[y]
    if kind == "text":
        given = given.astype(str)
    if kind == "frame":
        given = pd.DataFrame(given)
    if kind in ("positions", "named y"):
        given = ids
    if kind == "positions":
        labels = y
    task = SourceTask.from_search(given, labels, classes=classes, **SCORED)
    np.testing.assert_array_equal(better_classes(task), better_classes(expected))
    assert task.y.tolist() == y.tolist() and task.classes == classes


def test_rounding_does_not_put_lists_in_disorder(matrix):
    distances, y = matrix
    ids, near = listed(distances, 10)
    noisy = near * (1 + 1e-7 * (-1.0) ** np.arange(10))
    noisy[:, 4] = noisy[:, 3] * (1 - 1e-7)
    noisy[:, 5:] += 1
    scores = SourceTask.from_search(ids, y, distances=noisy, **SCORED).nearest_classes.scores
    assert np.all(np.diff(scores, axis=1) <= 0)


def test_shards(matrix):
    distances, y = matrix
    y = np.sort(y)
    ids, near = listed(distances, 10)
    # The true classes of the first part are all in its lists.
    ids[:100, 9] = np.where((ids[:100] == y[:100, None]).any(axis=1), ids[:100, 9], y[:100])
    whole = SourceTask.from_search(ids, y, distances=near, **SCORED)
    parts = [
        SourceTask.from_search(ids[rows], y[rows], distances=near[rows], **SCORED)
        for rows in (slice(100), slice(100, 300))
    ]
    merged = SourceTask.merge([part.without_scores() for part in parts])
    same_lists(merged.nearest_classes, whole.nearest_classes, 9)
    np.testing.assert_array_equal(better_classes(merged), better_classes(whole))


def test_files_of_names(tmp_path, matrix):
    distances, y = matrix
    ids, _ = listed(distances, 10)
    names = np.array(NAMES)
    np.savez(tmp_path / "0.npz", ids=names[ids], y=names[y], n_classes=N_CLASSES, classes=names)
    task = read_task(tmp_path / "0.npz", untested="competitors")
    expected = SourceTask.from_search(ids, y, **SCORED)
    np.testing.assert_array_equal(better_classes(task), better_classes(expected))


def test_junk_of_the_same_camera_is_skipped_anywhere_in_a_list():
    """Images of the person by the camera of the query are neither right nor wrong."""
    rng = np.random.default_rng(11)
    person, camera = np.divmod(np.arange(360), 6)
    vectors = rng.normal(size=(60, 24))[person] + 0.9 * rng.normal(size=(6, 24))[camera]
    vectors = np.vstack([vectors, vectors]) + 0.4 * rng.normal(size=(720, 24))
    person, camera = np.tile(person, 2), np.tile(camera, 2)
    queries = np.arange(60) * 6 + np.arange(60) % 6  # one of each person
    distance = ((vectors[queries][:, None] - vectors) ** 2).sum(axis=2)
    junk = (person[queries][:, None] == person) & (camera[queries][:, None] == camera)
    right = person[np.where(junk, np.inf, distance).argmin(axis=1)] == person[queries]
    ids = np.argsort(distance, axis=1)
    task = SourceTask.from_search(
        np.where(np.take_along_axis(junk, ids, 1), -1, person[ids]),
        person[queries],
        n_classes=60,
        distances=np.take_along_axis(distance, ids, 1),
    )
    assert task.accuracy(60) == pytest.approx(right.mean())
    assert 0.1 < right.mean() < 0.9


def test_whole_lists_of_ties_are_ranks_of_scores():
    """A list of all classes lacks none, so its last ties are broken like those of scores."""
    y, scores = np.arange(8), np.tile([3.0, 2, 1, 1, 1, 0, 0, 0], (8, 1))
    ids = np.argsort(-scores, axis=1, kind="stable")
    whole = SourceTask.from_search(
        ids, y, n_classes=8, distances=np.take_along_axis(-scores, ids, axis=1)
    )
    np.testing.assert_array_equal(whole.ranks, SourceTask.from_scores(scores, y).ranks)
    counts = whole.table.counts  # 0, 1, 2 and 5 classes are better, and 2 are tied with the last
    assert counts.min_better.tolist() == [0, 1, 2, 2, 2, 5, 5, 5]
    assert counts.max_better.tolist() == [0, 1, 4, 4, 4, 7, 7, 7]
