"""Tasks on shards of the probes, merged, equal the task on all of them."""

import pickle

import dask.array as da
import numpy as np
import pytest
from helpers import verdict
from hypothesis import assume, given
from hypothesis import strategies as st

from classex_bayes import KDE, SourceTask, read_task
from classex_bayes.exceptions import DataWarning
from classex_bayes.simulate import GaussianNearestNeighbor

pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")

ATOL = 1e-10
SEEDS = st.integers(0, 2**32 - 1)


def random_test(rng, n_classes, ties):
    """Scores of random layouts of classes, with or without ties."""
    repeats = rng.integers(0, 5, n_classes)
    repeats[rng.choice(n_classes, 3, replace=False)] += 1
    y = rng.permutation(np.repeat(np.arange(n_classes), repeats))
    scores = rng.normal(size=(y.size, n_classes))
    scores[np.arange(y.size), y] += 1
    return (np.rint(2 * scores) if ties else scores), y


def whole_classes(rng, y, n_parts):
    """Uneven shards of at least two classes that hold all instances of these."""
    tested = rng.permutation(np.unique(y))
    possible = np.arange(2, tested.size - 1, 2)
    cuts = np.sort(rng.choice(possible, min(n_parts - 1, possible.size), replace=False))
    return [np.flatnonzero(np.isin(y, classes)) for classes in np.split(tested, cuts)]


def any_rows(rng, y, n_parts):
    """Uneven shards of at least two classes that tear classes apart."""
    cuts = np.sort(rng.choice(np.arange(1, y.size), min(n_parts, y.size) - 1, replace=False))
    parts = np.split(np.arange(y.size), cuts)
    assume(all(np.unique(y[rows]).size > 1 for rows in parts))
    return parts


def assert_equal(merged, whole, order):
    np.testing.assert_array_equal(merged.ranks, whole.ranks[order])
    np.testing.assert_array_equal(merged.y, whole.y[order])
    for k in (whole.grid(), [2, whole.n_classes]):
        np.testing.assert_allclose(merged.accuracy_cov(k), whole.accuracy_cov(k), atol=ATOL)
    assert merged.design_effect() == pytest.approx(whole.design_effect(), rel=1e-4)


@given(
    seed=SEEDS,
    n_classes=st.integers(5, 30),
    n_parts=st.integers(1, 4),
    ties=st.sampled_from([None, "pessimistic", "optimistic"]),
    weighted=st.booleans(),
    shards=st.sampled_from([whole_classes, any_rows]),
)
def test_merged_shards_are_the_whole(seed, n_classes, n_parts, ties, weighted, shards):
    rng = np.random.default_rng(seed)
    scores, y = random_test(rng, n_classes, ties)
    weight = rng.uniform(0.1, 1, n_classes)
    options = {"untested": "competitors", "ties": ties or "random", "random_seed": 1}
    rows = shards(rng, y, n_parts)
    options |= {"class_weight": weight if weighted else None, "classes": range(n_classes)}
    whole = SourceTask.from_scores(scores, y, **options)
    parts = [SourceTask.from_scores(scores[part], y[part], **options) for part in rows]
    merged = SourceTask.merge(parts, options["class_weight"])
    assert_equal(merged, whole, np.concatenate(rows))
    if shards is whole_classes:
        light = SourceTask.merge([p.without_scores() for p in parts], options["class_weight"])
        grid = whole.grid()
        np.testing.assert_allclose(light.accuracy_cov(grid), merged.accuracy_cov(grid), atol=1e-14)


@given(seed=SEEDS, shards=st.sampled_from([whole_classes, any_rows]))
def test_merging_is_associative(seed, shards):
    rng = np.random.default_rng(seed)
    scores, y = random_test(rng, 12, ties=True)
    options = {"untested": "competitors", "ties": "pessimistic"}
    parts = [
        SourceTask.from_scores(scores[rows], y[rows], random_seed=i, **options)
        for i, rows in enumerate(shards(rng, y, 3))
    ]
    flat = SourceTask.merge(parts)
    nested = SourceTask.merge([SourceTask.merge(parts[:2]), *parts[2:]])
    np.testing.assert_array_equal(flat.ranks, nested.ranks)
    for k in (flat.grid(), [3, 7]):
        np.testing.assert_allclose(flat.accuracy_cov(k), nested.accuracy_cov(k), atol=ATOL)


@pytest.fixture(scope="module")
def halves():
    """Embeddings with two probes a class, as a whole and as files of half the classes each."""
    law = GaussianNearestNeighbor(dim=8, noise_variance=0.3)
    probes, gallery, y = law.sample(60, repeats=2, random_seed=3)
    whole = SourceTask.from_embeddings(probes, gallery, y)
    parts = [
        SourceTask.from_embeddings(probes[rows], gallery, y[rows], untested="competitors")
        for rows in (y < 20, y >= 20)
    ]
    return whole, parts, np.concatenate([np.flatnonzero(y < 20), np.flatnonzero(y >= 20)])


def test_scores_stay_together(halves):
    whole, parts, order = halves
    merged = SourceTask.merge(parts)
    assert_equal(merged, whole, order)
    np.testing.assert_allclose(
        KDE("ucv").fit(merged).predict(100).mean, KDE("ucv").fit(whole).predict(100).mean
    )
    kept = np.array([1, 5, 18, 22, 40, 59])
    some, of_whole = merged.select(kept), whole.select(kept)
    rank = np.argsort(order[np.isin(merged.y, kept)])
    np.testing.assert_array_equal(some.ranks[rank], of_whole.ranks)
    np.testing.assert_allclose(some.accuracy_cov([2, 6]), of_whole.accuracy_cov([2, 6]), atol=ATOL)
    pickled = pickle.loads(pickle.dumps([part.without_scores() for part in parts]))
    light = SourceTask.merge(pickled)
    grid = whole.grid()
    np.testing.assert_allclose(light.accuracy_cov(grid), whole.accuracy_cov(grid), atol=ATOL)


def test_covariance_between_the_grid_is_interpolated(halves):
    whole, _, _ = halves
    k = [3, 9, 24, 50]
    exact = np.sqrt(np.diag(whole.accuracy_cov(k)))
    near = np.sqrt(np.diag(whole.without_scores().accuracy_cov(k)))
    np.testing.assert_allclose(near, exact, rtol=0.02)


def test_ranks_alone():
    rng = np.random.default_rng(5)
    ranks, y = rng.integers(1, 11, 40), np.repeat(np.arange(10), 4)
    whole = SourceTask.from_ranks(ranks, y, n_classes=10)
    parts = [
        SourceTask.from_ranks(
            ranks[rows], y[rows], n_classes=10, classes=range(10), untested="competitors"
        )
        for rows in (slice(0, 18), slice(18, 40))
    ]
    merged = SourceTask.merge(parts)
    np.testing.assert_array_equal(merged.ranks, ranks)
    np.testing.assert_allclose(merged.accuracy_cov([2, 9]), whole.accuracy_cov([2, 9]), rtol=1e-12)
    with_scores = SourceTask.from_scores(np.eye(10), np.arange(10), classes=range(10))
    assert SourceTask.merge([merged, with_scores]).n_test == 50


def test_the_order_of_parts_with_and_without_ties_does_not_matter():
    rng = np.random.default_rng(4)
    y = np.arange(20)
    fine, coarse = rng.normal(size=(20, 40)), rng.integers(0, 4, (20, 40)).astype(float)
    parts = [
        SourceTask.from_scores(fine, y, untested="competitors", ties="pessimistic"),
        SourceTask.from_scores(coarse, y + 20, untested="competitors", ties="pessimistic"),
    ]
    for merged in (SourceTask.merge(parts), SourceTask.merge(parts[::-1])):
        again = merged.select(np.arange(40))
        np.testing.assert_array_equal(again.ranks, merged.ranks)


@pytest.mark.parametrize("first_is_bad", [True, False])
def test_a_fault_of_one_part_is_a_fault_of_the_whole(first_is_bad):
    rng, y = np.random.default_rng(1), np.arange(60) % 20
    good = rng.normal(size=(60, 20)) + 2 * np.eye(20)[y]
    failed = good - 99 * np.eye(20)[y] * (np.arange(60) < 12)[:, None]
    parts = [SourceTask.from_scores(part, y, classes=range(20)) for part in (failed, good)]
    merged = SourceTask.merge(parts if first_is_bad else parts[::-1])
    assert verdict(merged, "last ranks") is False


def test_folds_with_other_classes_are_asked_about(tmp_path):
    """Each fold numbers its own classes from 0, and nothing shows that they are others."""
    rng, y = np.random.default_rng(1), np.arange(20) % 10
    scores = rng.normal(size=(2, 20, 10)) + 2 * np.eye(10)[y]
    folds = [SourceTask.from_scores(part, y) for part in scores]
    with pytest.warns(DataWarning, match="fit all tasks"):
        SourceTask.merge(folds)
    paths = [tmp_path / "first.npz", tmp_path / "second.npz"]
    for path, part in zip(paths, scores, strict=True):
        np.savez(path, scores=part, y=y)
    with pytest.warns(DataWarning, match="all 10 classes"):
        read_task(paths)
    assert SourceTask.merge(folds[:1]).n_test == 20
    read_task(paths, classes=range(10))
    names = [[f"{fold}{j}" for j in range(10)] for fold in "ab"]
    same = [SourceTask.from_scores(part, y, classes=names[0]) for part in scores]
    assert SourceTask.merge(same).n_test == 40


# Lists of the nearest classes outlive the scores

RNG = np.random.default_rng(1)
SCORES, Y = RNG.normal(size=(80, 40)).round(1), np.arange(80) // 2
SHARDS = [slice(0, 20), slice(20, 50), slice(50, 80)]


def same_lists(lists, expected):
    for name in ("classes", "scores", "true"):
        np.testing.assert_array_equal(getattr(lists, name), getattr(expected, name))
    assert lists.perfect == expected.perfect


def of_scores(rows=slice(None), **options):
    return SourceTask.from_scores(SCORES[rows], Y[rows], untested="competitors", **options)


@pytest.mark.parametrize("ties", ["random", "unknown"])
@pytest.mark.parametrize("kept", [(0, 1, 2), (0, 2), ()])
def test_shards_with_and_without_scores(ties, kept):
    whole = of_scores(ties=ties, higher_is_better=False)
    parts = [of_scores(rows, ties=ties, higher_is_better=False) for rows in SHARDS]
    parts = [p if i in kept else p.without_scores() for i, p in enumerate(parts)]
    merged = SourceTask.merge(pickle.loads(pickle.dumps(parts)))
    same_lists(merged.nearest_classes, whole.nearest_classes)
    assert merged.nearest_classes.perfect == 0.0


def test_shards_in_dask_arrays_are_merged():
    parts = [
        SourceTask.from_scores(da.from_array(SCORES[i], chunks=7), Y[i], untested="competitors")
        for i in SHARDS
    ]
    same_lists(SourceTask.merge(parts).nearest_classes, of_scores().nearest_classes)


def test_lists_let_go_of_scores():
    task, asked = of_scores(), of_scores()
    same_lists(asked.nearest_classes, task.without_scores().nearest_classes)


def test_decisions_have_lists():
    task = SourceTask.from_scores(np.eye(6)[np.arange(6)[::-1]], range(6))
    assert task.nearest_classes.classes.shape == (6, 5)
