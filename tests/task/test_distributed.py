"""Dask arrays give the task that NumPy arrays give, whatever the chunks and whoever dies."""

import os
import signal
import threading
import time
from collections import Counter

import array_api_strict
import dask
import dask.array as da
import numpy as np
import pytest
from dask.callbacks import Callback
from dask.utils import key_split
from distributed import Client, LocalCluster
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes import KDE, SourceTask
from classex_bayes.exceptions import DataError
from classex_bayes.simulate import GaussianNearestNeighbor

SEEDS = st.integers(0, 2**32 - 1)
ATOL = 1e-10


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def random_labels(rng, n_classes, order):
    """Labels of uneven classes, two of them without instances, in order or not."""
    repeats = rng.integers(0, 6, n_classes)
    repeats[:3], repeats[-1] = 2, 0
    y = np.repeat(np.arange(n_classes), repeats)
    if order == "grouped":
        y = rng.permutation(n_classes)[y]
    return rng.permutation(y) if order == "random" else y


def cut(rng, array, n_chunks):
    """Dask array with uneven chunks of rows."""
    n_chunks = min(n_chunks, array.shape[0])
    ends = np.sort(rng.choice(np.arange(1, array.shape[0]), n_chunks - 1, replace=False))
    sizes = np.diff([0, *ends, array.shape[0]])
    return da.from_array(array, chunks=(tuple(sizes.tolist()), -1))


def assert_same(task, whole):
    np.testing.assert_array_equal(task.ranks, whole.ranks)
    for k in (whole.grid(), [2, whole.n_classes // 2]):
        np.testing.assert_allclose(task.accuracy_cov(k), whole.accuracy_cov(k), atol=ATOL)


@given(
    seed=SEEDS,
    n_chunks=st.integers(1, 6),
    order=st.sampled_from(["sorted", "grouped", "random"]),
    ties=st.sampled_from(["random", "pessimistic", "optimistic"]),
    higher_is_better=st.booleans(),
)
def test_scores(seed, n_chunks, order, ties, higher_is_better):
    rng = np.random.default_rng(seed)
    y = random_labels(rng, 15, order)
    scores = rng.integers(0, 6, size=(y.size, 15)).astype(np.float32)
    options = {
        "ties": ties,
        "higher_is_better": higher_is_better,
        "untested": "competitors",
        "class_weight": rng.uniform(0.1, 1, 15),
        "random_seed": 2,
    }
    columns = cut(rng, scores, n_chunks).rechunk({1: 4})
    assert_same(
        SourceTask.from_scores(columns, y, **options), SourceTask.from_scores(scores, y, **options)
    )


def test_masks_do_not_depend_on_the_chunks():
    rng = np.random.default_rng(3)
    y = np.repeat(np.arange(40), 2)
    scores = rng.normal(size=(80, 40)) + 2 * np.eye(40)[y]
    scores[rng.random(scores.shape) < 0.3] = -90
    scores[np.arange(80), (y + 1) % 40] = -1e9
    scores[np.arange(80), y] = 3
    found, whole = (
        SourceTask.from_scores(values, y).nearest_classes
        for values in (cut(rng, scores, 6), scores)
    )
    for name in ("scores", "true", "moments", "log_moments"):
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name))


@given(
    seed=SEEDS,
    n_chunks=st.integers(1, 5),
    n_ranges=st.integers(1, 5),
    order=st.sampled_from(["sorted", "grouped", "random"]),
    distance=st.sampled_from(["sqeuclidean", "cosine", "dot"]),
    templates=st.sampled_from(["one", "max", "mean"]),
    lattice=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_embeddings(seed, n_chunks, n_ranges, order, distance, templates, lattice, dtype):
    rng = np.random.default_rng(seed)
    y = random_labels(rng, 13, order)
    options = {"distance": distance, "untested": "competitors", "random_seed": 3}
    template_class = np.arange(13)
    if templates != "one":
        template_class = rng.permutation(np.concatenate([template_class, rng.integers(0, 13, 20)]))
        options |= {"gallery_y": template_class, "reduce": templates}
    probes, gallery = rng.normal(size=(y.size, 4)), rng.normal(size=(template_class.size, 4))
    if lattice:
        # Equal scores, and some that differ by the last bits alone.
        probes, gallery = np.rint(probes) + 0.5, np.rint(gallery) + 0.5
        gallery *= 1 + rng.integers(0, 2, gallery.shape) * np.finfo(dtype).eps
    probes, gallery = probes.astype(dtype), gallery.astype(dtype)
    assert_same(
        SourceTask.from_embeddings(
            cut(rng, probes, n_chunks), cut(rng, gallery, n_ranges), y, **options
        ),
        SourceTask.from_embeddings(probes, gallery, y, **options),
    )


@pytest.fixture(scope="module")
def sample():
    """Probes, gallery and labels of 96 classes with three probes each, and their task."""
    probes, gallery, y = GaussianNearestNeighbor(dim=6, noise_variance=0.3).sample(
        96, repeats=3, random_seed=1
    )
    return probes, gallery, y, SourceTask.from_embeddings(probes, gallery, y)


def test_subsample_is_in_memory(sample):
    probes, gallery, y, whole = sample
    probes, gallery = da.from_array(probes, chunks=(50, 3)), da.from_array(gallery, chunks=(40, 3))
    task = SourceTask.from_embeddings(probes, gallery, y)
    some, same = task.subsample(30, random_seed=1), whole.subsample(30, random_seed=1)
    np.testing.assert_array_equal(some.ranks, same.ranks)
    np.testing.assert_allclose(
        KDE("ucv").fit(some).predict(50).mean, KDE("ucv").fit(same).predict(50).mean
    )
    with pytest.raises(DataError):
        KDE("ucv").fit(task)


def test_a_dask_part_merges(sample):
    probes, gallery, y, whole = sample

    def merged(first):
        parts = [
            SourceTask.from_embeddings(
                da.from_array(probes[rows], chunks=(50, -1)),
                gallery,
                y[rows],
                untested="competitors",
            )
            for rows in (slice(0, first), slice(first, None))
        ]
        return SourceTask.merge(parts)

    task, grid = merged(99), whole.grid()
    np.testing.assert_array_equal(task.ranks, whole.ranks)
    np.testing.assert_allclose(task.accuracy_cov(grid), whole.accuracy_cov(grid), atol=ATOL)
    with pytest.raises(DataError):  # the parts share a class
        merged(100)


# What the graph looks like


class Read:
    """Array that counts how often its elements are read."""

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.ndim = array, array.shape, array.dtype, 2
        self.times = np.zeros(array.shape[0], dtype=int)

    def __getitem__(self, place):
        self.times[place[0]] += 1
        return self.array[place]


def test_tasks_grow_linearly_with_rows_and_each_chunk_is_read_once():
    totals = []
    for n_blocks in (8, 16, 32):
        y = np.repeat(np.arange(12 * n_blocks), 2)
        rng = np.random.default_rng(n_blocks)
        probes = Read(rng.normal(size=(y.size, 4)))
        gallery = Read(rng.normal(size=(y.size // 2, 4)))
        names = Counter()
        with Callback(pretask=lambda key, *_, names=names: names.update([key_split(key)])):
            SourceTask.from_embeddings(
                da.from_array(probes, chunks=(23, -1)),  # chunks end within classes
                da.from_array(gallery, chunks=(-(-y.size // 6), -1)),
                y,
            )
        assert set(probes.times) == set(gallery.times) == {1}
        n_rows = -(-y.size // 23)
        totals.append(sum(names.values()) / n_rows)
    assert max(totals) < 1.1 * min(totals)


# On a cluster


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:
        yield cluster


def slowly(chunk):
    time.sleep(0.15)
    return chunk


@pytest.mark.nightly
def test_lost_workers_are_made_up_for(cluster, sample):
    probes, gallery, y, whole = sample
    slow = da.from_array(probes, chunks=(12, -1)).map_blocks(slowly, dtype=float)
    with dask.config.set(scheduler=None), Client(cluster) as client:
        victim = min(client.run(os.getpid).values())
        killer = threading.Timer(1.2, os.kill, (victim, signal.SIGKILL))
        killer.start()
        task = SourceTask.from_embeddings(slow, da.from_array(gallery, chunks=(40, -1)), y)
        assert killer.finished.is_set()
        client.wait_for_workers(2)
        assert victim not in client.run(os.getpid).values()
    np.testing.assert_array_equal(task.ranks, whole.ranks)
    grid = whole.grid()
    np.testing.assert_allclose(task.accuracy_cov(grid), whole.accuracy_cov(grid), atol=ATOL)


def test_a_dask_array_meets_an_array_of_another_kind():
    rng = np.random.default_rng(7)
    gallery, y = rng.normal(size=(8, 3)), np.arange(24) % 8
    probes = gallery[y] + rng.normal(size=(24, 3))
    expected = SourceTask.from_embeddings(probes, gallery, y)
    for pair in (
        (da.from_array(probes, chunks=(7, 3)), array_api_strict.asarray(gallery)),
        (array_api_strict.asarray(probes), da.from_array(gallery, chunks=(3, 3))),
    ):
        assert SourceTask.from_embeddings(*pair, y).ranks.tolist() == expected.ranks.tolist()
