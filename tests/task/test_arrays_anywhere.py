"""Scores and embeddings on disks and devices give the losses of NumPy arrays."""

import os
import subprocess
import sys
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import array_api_strict
import h5py
import jax.numpy as jnp
import numpy as np
import pytest
import zarr
from helpers import assert_same_task, few_examples, unsound_data
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes import SourceTask
from classex_bayes import array_access as arrays_module
from classex_bayes.core.ranks import device as device_module
from classex_bayes.core.ranks import embeddings as embeddings_module
from classex_bayes.exceptions import DataError

METRICS = ["sqeuclidean", "dot", "cosine"]
assert_same = partial(assert_same_task, rtol=1e-9)
# Ranks are the same bit for bit. Sums over them are in single precision on a device.
assert_as_on_the_processor = partial(assert_same_task, rtol=1e-5)
NAMESPACES = {"strict": array_api_strict.asarray, "jax": jnp.asarray}
if find_spec("torch"):  # too large for the packages that tests need
    NAMESPACES["torch"] = import_module("torch").asarray


def random_scores(rng, n=90, n_classes=70):
    y = rng.permutation(np.arange(n) % n_classes)
    return rng.integers(0, 30, (n, n_classes)).astype("f4"), y


def near_ties(rng, distance, n_classes=70, dim=6):
    """Embeddings with duplicates and templates a unit in the last place apart."""
    base = rng.normal(size=(n_classes // 2, dim)).astype("f4") + np.float32(rng.choice([0, 100]))
    moved = np.where(rng.random(base.shape) < 0.2, np.nextafter(base, np.float32(9e9)), base)
    gallery = np.vstack([base, moved])[rng.permutation(2 * (n_classes // 2))]
    y = rng.permutation(np.arange(90) % n_classes)
    noise = rng.choice([0, 1], (90, 1)) * rng.normal(size=(90, dim))
    return gallery[y] + noise.astype("f4"), gallery, y


# Disks


@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize("kind", ["memory map", "HDF5", "Zarr"])
def test_scores_from_disk(kind, grouped, tmp_path):
    scores, y = random_scores(np.random.default_rng(0))
    if grouped:
        y = np.sort(y)
    expected = SourceTask.from_scores(scores, y, random_seed=1)
    if kind == "memory map":
        np.save(tmp_path / "scores.npy", scores)
        stored = np.load(tmp_path / "scores.npy", mmap_mode="r")
    elif kind == "Zarr":
        stored = zarr.create_array(tmp_path / "scores.zarr", data=scores, chunks=(7, 9))
    else:
        stored = h5py.File(tmp_path / "scores.h5", "w").create_dataset("scores", data=scores)
    found = SourceTask.from_scores(stored, y, random_seed=1)
    assert_same(found, expected)
    some, whole = (task.subsample(30, random_seed=2) for task in (found, expected))
    assert_same(some, whole)


@pytest.mark.parametrize("distance", METRICS)
def test_embeddings_from_disk(distance, tmp_path):
    probes, gallery, y = near_ties(np.random.default_rng(1), distance)
    expected = SourceTask.from_embeddings(probes, gallery, y, distance=distance, random_seed=1)
    with h5py.File(tmp_path / "embeddings.h5", "w") as file:
        arrays = {"probes": probes, "gallery": gallery}
        stored = [file.create_dataset(name, data=array) for name, array in arrays.items()]
        found = SourceTask.from_embeddings(*stored, y, distance=distance, random_seed=1)
        assert_same(found, expected)


class Recorder:
    """A matrix that is read by slices alone, and notes which."""

    def __init__(self, values):
        self._values, self.reads = values, []
        self.shape, self.dtype, self.ndim = values.shape, values.dtype, 2

    def __getitem__(self, key):
        rows = key[0] if isinstance(key, tuple) else key
        assert isinstance(rows, slice)
        self.reads.append((rows.start, rows.stop))
        return self._values[key]


@pytest.mark.parametrize("grouped", [True, False])
def test_stored_scores_are_read_once_in_order(grouped):
    """But for a first look at no more than a thousand rows."""
    scores, y = random_scores(np.random.default_rng(2), n=40_000)
    y = np.sort(y) if grouped else y
    stored = Recorder(scores)
    task, whole = (SourceTask.from_scores(array, y, random_seed=0) for array in (stored, scores))
    grid = whole.grid()
    # Classes that blocks in order cut in two are put together again.
    np.testing.assert_allclose(task.accuracy_cov(grid), whole.accuracy_cov(grid), rtol=1e-9)
    reads = stored.reads
    while reads[0][1] <= 1000 or reads[1][0] == 0:
        reads = reads[1:]
    assert [start for start, _ in reads] == [0, *[stop for _, stop in reads[:-1]]]
    assert reads[-1][1] == len(scores)


def test_masked_rows_of_a_stored_array_are_refused():
    scores = np.ma.array(np.eye(5) + np.arange(5))
    scores[3, 1] = np.ma.masked
    with pytest.raises(DataError):
        SourceTask.from_scores(Recorder(scores), range(5))


# Devices


@pytest.fixture(scope="module", autouse=True)
def as_on_a_device():
    """Arrays of PyTorch and JAX in memory are treated like those on a device."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays_module, "numpy_if_in_memory", lambda array: array)
        yield


@pytest.mark.nightly
@given(
    seed=st.integers(0, 2**32 - 1),
    name=st.sampled_from(list(NAMESPACES)),
    higher_is_better=st.booleans(),
    dtype=st.sampled_from(["f2", "f4", "i4"]),
)
@few_examples(10)
def test_scores_on_a_device(seed, name, higher_is_better, dtype):
    scores, y = random_scores(np.random.default_rng(seed))
    scores = scores.astype("f4" if name == "strict" and dtype == "f2" else dtype)
    options = {"higher_is_better": higher_is_better, "random_seed": 3}
    found = SourceTask.from_scores(NAMESPACES[name](scores), y, **options)
    assert_as_on_the_processor(found, SourceTask.from_scores(scores, y, **options))


@unsound_data
@pytest.mark.nightly
@given(
    seed=st.integers(0, 2**32 - 1),
    name=st.sampled_from(list(NAMESPACES)),
    distance=st.sampled_from(METRICS),
    reduce=st.sampled_from(["max", "mean"]),
    several=st.booleans(),
    scale=st.sampled_from([1.0, 1e-30, 1e30]),
)
@few_examples(10)
def test_embeddings_on_a_device(seed, name, distance, reduce, several, scale):
    rng = np.random.default_rng(seed)
    probes, gallery, y = near_ties(rng, distance)
    if scale < 1 and distance == "dot":
        scale = 1.0  # products of numbers so small are not normal in single precision
    probes, gallery = (np.float32(scale) * array for array in (probes, gallery))
    options = {"distance": distance, "random_seed": 3}
    if several:
        options |= {"gallery_y": np.arange(len(gallery)) // 2, "reduce": reduce}
        y = y // 2
    expected = SourceTask.from_embeddings(probes, gallery, y, **options)
    there = NAMESPACES[name]
    assert_as_on_the_processor(
        SourceTask.from_embeddings(there(probes), there(gallery), y, **options), expected
    )


@pytest.mark.parametrize("distance", METRICS)
def test_coarse_products_of_a_device_change_nothing(distance, constants):
    """As under a setting of half precision: lists are uncertain and most pairs are close."""
    rng = np.random.default_rng(9)
    gallery = rng.normal(size=(90, 6)).astype("f4")
    y = rng.permutation(90)
    probes = gallery[y] + rng.normal(size=(90, 6)).astype("f4")
    there = array_api_strict.asarray

    def coarse(left, right):
        rounded = [(np.asarray(x).view(np.uint32) & 0xFFFF0000).view("f4") for x in (left, right)]
        return there(np.matmul(*rounded))

    expected = SourceTask.from_embeddings(probes, gallery, y, distance=distance)
    with (
        constants(device_module, matmul=coarse, matmul_roundoff=lambda array: 2.0**-7),
        constants(embeddings_module, _SPARE=0),
    ):
        found = SourceTask.from_embeddings(there(probes), there(gallery), y, distance=distance)
        lists, known = found.nearest_classes, expected.nearest_classes
    assert found.ranks.tolist() == expected.ranks.tolist()
    assert lists.classes.tolist() == known.classes.tolist()
    np.testing.assert_allclose(lists.scores, known.scores, rtol=1e-9, atol=1e-9)


def test_shards_on_a_device_and_in_memory_merge():
    scores, y = random_scores(np.random.default_rng(9))
    there = array_api_strict.asarray
    parts = [
        SourceTask.from_scores(kind(scores[rows]), y[rows], untested="competitors")
        for kind, rows in (
            (there, slice(0, 40)),
            (np.asarray, slice(40, 70)),
            (there, slice(70, 90)),
        )
    ]
    assert_as_on_the_processor(SourceTask.merge(parts), SourceTask.from_scores(scores, y))


@pytest.mark.skipif("torch" not in NAMESPACES, reason="PyTorch is not installed")
def test_a_loop_with_half_precision_changes_no_rank():
    torch = import_module("torch")
    rng = np.random.default_rng(10)
    gallery = rng.normal(size=(200, 40)).astype("f4")
    y = np.arange(600) % 200
    probes = gallery[y] + rng.normal(size=(600, 40)).astype("f4")
    expected = SourceTask.from_embeddings(probes, gallery, y)
    there = [torch.asarray(x).requires_grad_() for x in (probes, gallery)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_as_on_the_processor(SourceTask.from_embeddings(*there, y), expected)
    # What bfloat16 has stored is compared exactly.
    stored = [x.detach().to(torch.bfloat16) for x in there]
    exact = [x.float().numpy() for x in stored]
    found = SourceTask.from_embeddings(*stored, torch.asarray(y))
    assert_as_on_the_processor(found, SourceTask.from_embeddings(*exact, y))


@pytest.mark.parametrize("higher_is_better", [True, False])
@pytest.mark.parametrize("where", NAMESPACES)
def test_scores_below_the_normal_range_keep_their_order_on_a_device(where, higher_is_better):
    rng = np.random.default_rng(4)
    sizes = rng.choice([1e-41, -1e-41, 1e-38, 0.0, 1.0], (40, 30))
    scores = (sizes * rng.integers(0, 9, sizes.shape)).astype("f4")
    y = rng.permutation(np.arange(40) % 30)
    how = {"higher_is_better": higher_is_better, "random_seed": 2}
    expected = SourceTask.from_scores(scores, y, **how)
    assert_as_on_the_processor(
        SourceTask.from_scores(NAMESPACES[where](scores), y, **how), expected
    )


@pytest.mark.nightly
def test_ranks_without_the_compiler_are_the_same():
    code = (
        "import numpy as np; from classex_bayes import SourceTask\n"
        "rng = np.random.default_rng(0)\n"
        "gallery = rng.integers(0, 3, (70, 4))\n"
        "probes = gallery + rng.integers(0, 2, gallery.shape)\n"
        "task = SourceTask.from_embeddings(probes, gallery, np.arange(70), random_seed=1)\n"
        "print(task.ranks.tolist(), task.design_effect())"
    )
    compiled, plain = (
        subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            env={**os.environ, "NUMBA_DISABLE_JIT": off},
            capture_output=True,
            text=True,
        )
        for off in ("0", "1")
    )
    assert compiled.stdout == plain.stdout != ""
