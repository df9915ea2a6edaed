"""Scores that no worker can hold give the task of one process that holds them all."""

import os

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from classex_bayes import SourceTask

N_CLASSES, HEIGHT, LIMIT = 10_500, 500, 800_000_000  # bytes of a worker


def block_of_scores(block_info=None):
    """Some rows of scores, which are made where they are compared."""
    (first, last), _ = block_info[None]["array-location"]
    rng = np.random.default_rng(first)
    scores = rng.normal(size=(last - first, N_CLASSES)).astype(np.float32)
    scores[np.arange(last - first), np.arange(first, last) // 2] += 3
    return scores.round(2)  # with ties


@pytest.mark.nightly
def test_scores_beyond_the_memory_of_each_worker():
    y = np.repeat(np.arange(N_CLASSES), 2)
    # Blocks end within classes.
    heights = (HEIGHT + 1, *[HEIGHT] * (y.size // HEIGHT - 2), HEIGHT - 1)
    scores = da.map_blocks(block_of_scores, chunks=(heights, N_CLASSES), dtype=np.float32)
    assert scores.nbytes > LIMIT
    processes = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with (
        LocalCluster(**processes, memory_limit=LIMIT, dashboard_address=":0") as cluster,
        dask.config.set(scheduler=None),
        Client(cluster) as client,
    ):
        workers = client.run(os.getpid)
        task = SourceTask.from_scores(scores, y)
        lists = task.nearest_classes
        assert client.run(os.getpid) == workers  # none ran out of memory
    whole = SourceTask.from_scores(scores.compute(scheduler="threads"), y)
    np.testing.assert_array_equal(task.ranks, whole.ranks)
    grid = whole.grid()
    np.testing.assert_allclose(task.accuracy(grid), whole.accuracy(grid), rtol=1e-12)
    np.testing.assert_allclose(task.accuracy_cov(grid), whole.accuracy_cov(grid), rtol=1e-9)
    np.testing.assert_array_equal(lists.classes, whole.nearest_classes.classes)
