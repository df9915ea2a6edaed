"""Every format of file, one or many, gives the task of the arrays in it."""

import json
import pickle
import sys
import warnings
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import zarr
from helpers import assert_same_task
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import classex_bayes as cb
from classex_bayes import SourceTask, read_task
from classex_bayes.exceptions import DataError
from classex_bayes.io import read_nonmated
from classex_bayes.io.arrays import FileMatrix
from classex_bayes.io.many_files import StackedRows

assert_same = partial(assert_same_task, rtol=1e-9)
RNG = np.random.default_rng(0)
Y = np.array([0, 1, 2, 3, 4, 0, 2, 4])
SCORES = RNG.normal(size=(8, 5)) + 2 * np.eye(5)[Y]
PROBES, GALLERY = RNG.normal(size=(8, 3)), RNG.normal(size=(5, 3))
NAMES = np.array(["ant", "bee", "çat", "dog", "7"])
CURVE = {"k": np.array([2, 3, 5]), "accuracy": np.array([0.9, 0.8, 0.7])}
SIZES = {"n_test": 50, "n_classes": 5}


# Writers: arrays by name to a file, without its ending.


def write_npz(stem, arrays):
    np.savez(stem.with_suffix(".npz"), **arrays)
    return stem.with_suffix(".npz")


def write_hdf5(stem, arrays):
    with h5py.File(stem.with_suffix(".h5"), "w") as file:
        for name, array in arrays.items():
            text = np.asarray(array).dtype.kind == "U"
            file.create_dataset(name, data=np.asarray(array).astype("T") if text else array)
    return stem.with_suffix(".h5")


def write_hdf5_otherwise(stem, arrays):
    """Chunks, numbers as attributes, text in bytes of fixed length."""
    with h5py.File(stem.with_suffix(".hdf5"), "w") as file:
        for name, array in arrays.items():
            array = np.asarray(array)
            if array.ndim == 0:
                file.attrs[name] = array.item()
            elif array.dtype.kind == "U":
                file[name] = np.char.encode(array, "utf-8")
            else:
                file.create_dataset(name, data=array, chunks=True, compression="gzip")
    return stem.with_suffix(".hdf5")


def write_zarr(stem, arrays, store=None, zarr_format=3):
    path = store or stem.with_suffix(".zarr")
    with warnings.catch_warnings():
        # zarr says that its text is not in the specification yet.
        warnings.simplefilter("ignore")
        group = zarr.open_group(path, mode="w", zarr_format=zarr_format)
        for name, array in arrays.items():
            if np.ndim(array):
                whole = {"config": {"write_empty_chunks": True}}
                group.create_array(name, data=np.asarray(array), **whole)
            else:
                group.attrs[name] = np.asarray(array).item()
    return path


def write_zarr_zip(stem, arrays):
    path = stem.with_suffix(".zarr.zip")
    store = zarr.storage.ZipStore(path, mode="w")
    write_zarr(stem, arrays, store)
    store.close()
    return path


WRITERS = {
    "npz": write_npz,
    "hdf5": write_hdf5,
    "hdf5 otherwise": write_hdf5_otherwise,
    "zarr": write_zarr,
    "zarr 2": lambda stem, arrays: write_zarr(stem, arrays, zarr_format=2),
    "zarr.zip": write_zarr_zip,
}


def write_table(stem, ending, scores, y, names):
    table = pd.DataFrame(scores, columns=names)
    table.insert(1, "y", names[y])
    path = stem.with_suffix(ending)
    table.to_csv(path, index=False) if ending == ".csv" else table.to_parquet(path)
    return path


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_layouts(write, tmp_path):
    ranks = SourceTask.from_scores(SCORES, Y).ranks
    twice, twice_y = np.vstack([GALLERY, GALLERY + 1]), NAMES[np.tile(np.arange(5), 2)]
    cases = [
        ({"scores": SCORES, "y": Y}, SourceTask.from_scores(SCORES, Y)),
        (
            {"scores": SCORES, "y": NAMES[Y], "classes": NAMES},
            SourceTask.from_scores(SCORES, NAMES[Y], classes=NAMES),
        ),
        (
            {"scores": -SCORES, "y": Y, "higher_is_better": False},
            SourceTask.from_scores(-SCORES, Y, higher_is_better=False),
        ),
        (
            {"probes": PROBES, "gallery": twice, "gallery_y": twice_y, "y": NAMES[Y]},
            SourceTask.from_embeddings(PROBES, twice, NAMES[Y], gallery_y=twice_y),
        ),
        (
            {"probes": PROBES, "gallery": GALLERY, "y": Y, "distance": "cosine"},
            SourceTask.from_embeddings(PROBES, GALLERY, Y, distance="cosine"),
        ),
        (
            {"ranks": ranks, "y": Y, "n_classes": 5},
            SourceTask.from_ranks(ranks, Y, n_classes=5),
        ),
        (CURVE | SIZES, SourceTask.from_accuracies(**CURVE, **SIZES)),
    ]
    for number, (arrays, expected) in enumerate(cases):
        assert_same(read_task(write(tmp_path / f"task{number}", arrays)), expected)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_tables(ending, tmp_path):
    expected = SourceTask.from_scores(SCORES, NAMES[Y], classes=NAMES)
    assert_same(read_task(write_table(tmp_path / "a", ending, SCORES, Y, NAMES)), expected)
    path = tmp_path / f"curve{ending}"
    table = pd.DataFrame(CURVE)
    table.to_csv(path, index=False) if ending == ".csv" else table.to_parquet(path)
    assert_same(read_task(path, **SIZES), SourceTask.from_accuracies(**CURVE, **SIZES))


def test_parquet_of_other_types(tmp_path):
    # Whole numbers as names, categories, an index, single precision.
    table = pd.DataFrame(SCORES.astype("f4"), columns=list("01234")).assign(y=Y)
    expected = SourceTask.from_scores(SCORES.astype("f4"), Y.astype(str), classes=list("01234"))
    for labels in (Y, Y.astype(str), pd.Categorical(Y.astype(str)), pd.array(Y)):
        table.assign(y=labels).rename_axis("id").to_parquet(tmp_path / "a.parquet")
        assert_same(read_task(tmp_path / "a.parquet"), expected)


@pytest.mark.parametrize("write", list(WRITERS.values())[1:], ids=list(WRITERS)[1:])
def test_matrices_stay_on_the_disk(write, tmp_path):
    path = write(tmp_path / "a", {"scores": SCORES, "y": Y})
    task = read_task(path)
    assert isinstance(task.table.source.matrix, FileMatrix)
    # And can still be read.
    np.testing.assert_array_equal(task.table.source.scores(np.array([5, 2])), SCORES[[5, 2]])


def test_labels_in_files_of_their_own(tmp_path):
    np.save(tmp_path / "scores.npy", SCORES)
    np.save(tmp_path / "y.npy", Y)
    (tmp_path / "y.txt").write_text("\n".join(map(str, Y)) + "\n")
    (tmp_path / "names.txt").write_bytes("\r\n".join(NAMES[Y]).encode())
    for labels in ("y.npy", "y.txt"):
        task = read_task(str(tmp_path / "scores.npy"), tmp_path / labels)
        assert_same(task, SourceTask.from_scores(SCORES, Y))
    named = read_task(tmp_path / "scores.npy", tmp_path / "names.txt", classes=NAMES)
    assert_same(named, SourceTask.from_scores(SCORES, NAMES[Y], classes=NAMES))
    with pytest.raises(DataError, match=r"y\.csv"):
        read_task(tmp_path / "scores.npy", tmp_path / "y.csv")
    (tmp_path / "y.txt").write_text("1\n\n2\n")
    with pytest.raises(DataError, match=r"y\.txt: .*line 2"):
        read_task(tmp_path / "scores.npy", tmp_path / "y.txt")


def test_arguments_go_before_the_file(tmp_path):
    path = write_npz(
        tmp_path / "a", {"probes": PROBES, "gallery": GALLERY, "y": Y, "distance": "dot"}
    )
    expected = SourceTask.from_embeddings(PROBES, GALLERY, Y, distance="cosine")
    assert_same(read_task(path, distance="cosine"), expected)
    assert cb.read_task is read_task


# Many files


@pytest.mark.filterwarnings("ignore:each of .* parts tests all")  # some splits do
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from([*WRITERS, "npy", ".csv", ".parquet"]),
    layout=st.sampled_from(["scores", "probes", "ranks"]),
    named=st.booleans(),
    n_files=st.integers(2, 5),
)
def test_many_files_are_one(seed, kind, layout, named, n_files, tmp_path_factory):
    """Any split, of a class in one file or all, ties included."""
    folder = tmp_path_factory.mktemp("shards")
    rng = np.random.default_rng(seed)
    n, k1 = 12, 4
    y = np.concatenate([np.arange(k1), rng.integers(0, k1, n - k1)])
    y = np.sort(y) if rng.random() < 0.5 else rng.permutation(y)
    scores, gallery = rng.integers(1, 5, (n, k1)), rng.normal(size=(k1, 3)).round(1)
    probes = gallery[y] + rng.normal(size=(n, 3)).round(1)
    names = NAMES[:k1]
    labels = names[y] if named else y
    options = {"classes": names} if named else {}
    if kind in ("npy", ".csv", ".parquet"):
        layout = "scores"
    if layout == "scores":
        arrays, same = {"scores": scores}, options
        expected = SourceTask.from_scores(scores, labels, **options, random_seed=3)
    elif layout == "probes":
        arrays, same = {"probes": probes}, options | {"gallery": gallery}
        expected = SourceTask.from_embeddings(probes, gallery, labels, **options, random_seed=3)
    else:
        ranks = rng.integers(1, k1 + 1, n)
        arrays, same = {"ranks": ranks}, options | {"n_classes": k1}
        expected = SourceTask.from_ranks(ranks, labels, n_classes=k1, **options)
    ends = np.sort(rng.choice(np.arange(1, n), n_files - 1, replace=False))
    files, label_files = [], []
    for number, rows in enumerate(np.split(np.arange(n), ends)):
        stem = folder / f"part{number}"
        if kind == "npy":
            np.save(stem.with_suffix(".npy"), scores[rows])
            np.save(folder / f"y{number}.npy", labels[rows])
            files.append(stem.with_suffix(".npy"))
            label_files.append(folder / f"y{number}.npy")
        elif kind in (".csv", ".parquet"):
            files.append(write_table(stem, kind, scores[rows], y[rows], names))
        else:
            own = {name: array[rows] for name, array in (arrays | {"y": labels}).items()}
            files.append(WRITERS[kind](stem, own | same))
    if kind == "npy":
        found = read_task(files, label_files, **options, random_seed=3)
    else:
        found = read_task(files, random_seed=3)
        if kind in (".csv", ".parquet"):
            expected = SourceTask.from_scores(scores, names[y], classes=names, random_seed=3)
    assert_same(found, expected)


@given(seed=st.integers(0, 2**32 - 1), n_parts=st.integers(1, 5))
def test_stacked_rows_are_those_of_one_matrix(seed, n_parts):
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(rng.integers(1, 4), 3)).astype("f4") for _ in range(n_parts)]
    parts[-1] = parts[-1].astype("f8")
    whole, stacked = np.concatenate(parts), StackedRows(parts)
    assert (stacked.shape, stacked.dtype, stacked.ndim) == (whole.shape, whole.dtype, 2)
    for first in range(len(whole) + 1):
        for last in range(first, len(whole) + 2):
            for key in (slice(first, last), (slice(first, last), slice(None))):
                np.testing.assert_array_equal(stacked[key], whole[key])
                assert stacked[key].dtype == whole.dtype


def shards(tmp_path, *parts):
    """Write .npz files whose arrays differ from those of the scores as said."""
    files = []
    for number, changes in enumerate(parts):
        rows = slice(4 * number, 4 * number + 4)
        arrays = {"scores": SCORES[rows], "y": NAMES[Y][rows], "classes": NAMES} | changes
        arrays = {name: array for name, array in arrays.items() if array is not None}
        files.append(write_npz(tmp_path / f"part{number}", arrays))
    return files


@pytest.mark.parametrize("write", [write_npz, write_hdf5])
def test_a_file_for_each_class(write, tmp_path):
    # With arrays of other names beside those that are known.
    files = []
    for number in range(5):
        rows = np.flatnonzero(np.equal(Y, number))
        arrays = {"scores": SCORES[rows], "y": Y[rows], "id": rows, f"only{number}": rows}
        arrays["accuracy"] = np.array([0.5, number])
        files.append(write(tmp_path / f"class{number}", arrays))
    order = np.argsort(Y, kind="stable")
    with pytest.warns(UserWarning, match="class0.* and 4 more: ignored .*: .*id, .*only4"):
        task = read_task(files)
    assert_same(task, SourceTask.from_scores(SCORES[order], Y[order]))


STRANGERS = np.random.default_rng(8).normal(size=(7, 3))


@pytest.mark.parametrize("write", [write_npz, write_hdf5])
@pytest.mark.parametrize("metric", ["sqeuclidean", "cosine", "dot"])
def test_embeddings_of_nonmated_probes_are_scored_like_the_others(write, metric, tmp_path):
    arrays = {"probes": PROBES, "gallery": GALLERY, "y": Y, "distance": metric}
    file = write(tmp_path / "pilot", arrays | {"nonmated": STRANGERS})
    product = STRANGERS @ GALLERY.T
    norms = np.outer(*(np.linalg.norm(x, axis=1) for x in (STRANGERS, GALLERY)))
    expected = {
        "sqeuclidean": ((STRANGERS[:, None] - GALLERY) ** 2).sum(axis=-1),
        "cosine": product / norms,
        "dot": product,
    }[metric]
    np.testing.assert_allclose(read_nonmated(file, read_task(file)), expected, atol=1e-12)
    # Scores stay as they are.
    file = write(tmp_path / "scored", arrays | {"nonmated": expected})
    np.testing.assert_array_equal(read_nonmated(file, read_task(file)), expected)


def test_nonmated_probes_of_many_files(tmp_path):
    scores = np.random.default_rng(9).normal(size=(6, 5))
    files = shards(tmp_path, {"nonmated": scores}, {})
    task = read_task(files)
    np.testing.assert_array_equal(read_nonmated(files, task), scores)
    assert read_nonmated(files[1:], task) is None and read_nonmated("scores.csv", task) is None
    files = shards(tmp_path, {"nonmated": scores}, {"nonmated": -scores})
    with pytest.raises(DataError, match=r"part1\.npz: nonmated"):
        read_nonmated(files, task)


def test_bad_nonmated_probes(tmp_path):
    square = {"probes": PROBES, "gallery": GALLERY[:3], "y": Y % 3}
    embeddings = {"probes": PROBES, "gallery": GALLERY, "y": Y, "distance": "cosine"}
    for arrays, nonmated in (
        (square, STRANGERS),
        (embeddings, 0 * STRANGERS),
        (embeddings, STRANGERS[0]),
    ):
        file = write_npz(tmp_path / "bad", arrays | {"nonmated": nonmated})
        with pytest.raises(DataError, match=r"^nonmated"):
            read_nonmated(file, read_task(file))


def test_untested_classes(tmp_path):
    files = shards(tmp_path, {"y": NAMES[[0, 1, 2, 0]]}, {"y": NAMES[[0, 2, 1, 1]]})
    with pytest.raises(DataError, match=r"y: class 'dog'"):
        read_task(files)
    assert read_task(files, untested="competitors").n_classes == 5


HALF = slice(0, 4)
OTHER = NAMES[[0, 1, 3, 2, 4]]
BAD_SHARDS = {
    "another order": ({"classes": OTHER}, "part0.npz, .*part1.npz: classes"),
    "more classes": ({"classes": np.append(NAMES, "x")}, "part0.npz, .*part1.npz: classes"),
    "no classes": ({"classes": None}, "part0.npz, .*part1.npz: found scores, y, classes"),
    "another kind": (
        {"ranks": np.ones(4, int), "scores": None, "n_classes": 5},
        "part0.npz, .*part1.npz: found scores, y, classes",
    ),
    "columns": ({"scores": SCORES[HALF, :4]}, "part0.npz, .*part1.npz: scores"),
    "one axis": ({"scores": SCORES[HALF, 0]}, "part0.npz, .*part1.npz: scores"),
    "labels too few": ({"y": NAMES[:3]}, "part1.npz: "),
    "text": ({"scores": SCORES[HALF].astype(str)}, "scores: "),
    "positions": ({"y": Y[4:]}, "y: "),
    "gap": (
        {"scores": np.where(np.arange(20).reshape(4, 5) == 7, np.nan, SCORES[HALF])},
        r"scores: .*row 5, column 2.*\[this is row 1 of .*part1.npz\]",
    ),
    "unknown label": (
        {"y": np.array(["ant", "x", "ant", "bee"])},
        "y: .*row 5 .*row 1 of .*part1.npz",
    ),
}


@pytest.mark.parametrize(("change", "name"), BAD_SHARDS.values(), ids=BAD_SHARDS)
def test_shards_that_do_not_fit(change, name, tmp_path):
    with pytest.raises(DataError, match=name):
        read_task(shards(tmp_path, {}, change))


def test_shards_with_other_templates(tmp_path):
    files = []
    for number, gallery in enumerate([GALLERY, GALLERY + np.eye(5, 3, -1)]):
        arrays = {"probes": PROBES, "gallery": gallery, "y": Y}
        files.append(write_hdf5(tmp_path / f"part{number}", arrays))
    with pytest.raises(DataError, match=r"part1.h5: gallery"):
        read_task(files)


def test_what_makes_no_test(tmp_path):
    curves = [write_npz(tmp_path / name, CURVE | SIZES) for name in "ab"]
    with pytest.raises(DataError, match=r"accuracy curve"):
        read_task(curves)
    file = shards(tmp_path, {})[0]
    (tmp_path / "link.npz").symlink_to(file)
    for paths in ([], 3, [file, 3], [file, file], [file, tmp_path / "link.npz"]):
        with pytest.raises(DataError, match=r"^paths"):
            read_task(paths)
    np.save(tmp_path / "a.npy", SCORES)
    with pytest.raises(DataError, match=r"^labels"):
        read_task([tmp_path / "a.npy", file], tmp_path / "a.npy")


# Files that are no such files


def damage(path, how):
    content = path.read_bytes()
    cut = {"empty": b"", "cut": content[: len(content) // 2], "other": b"y,a,b\n" * 99}
    path.write_bytes(cut[how])
    return path


@pytest.mark.parametrize("how", ["empty", "cut", "other"])
@pytest.mark.parametrize("ending", [".h5", ".parquet", ".zarr.zip", ".zip"])
def test_damaged_files(ending, how, tmp_path):
    if ending == ".parquet":
        path = write_table(tmp_path / "a", ending, SCORES, Y, NAMES)
    else:
        write = write_hdf5 if ending == ".h5" else write_zarr_zip
        path = write(tmp_path / "a", {"scores": SCORES, "y": Y})
    with pytest.raises(DataError, match="not a readable"):
        read_task(damage(path, how))


@pytest.mark.parametrize("write", [write_hdf5_otherwise, write_zarr])
def test_damaged_chunks(write, tmp_path):
    # The file opens, and the scores turn out unreadable when their turn comes.
    many = np.random.default_rng(1).normal(size=(200, 5))
    path = write(tmp_path / "a", {"scores": many, "y": np.arange(200) % 5})
    chunks = [path] if path.is_file() else list((path / "scores" / "c").rglob("*"))
    for chunk in (chunk for chunk in chunks if chunk.is_file()):
        content = bytearray(chunk.read_bytes())
        middle = len(content) // 2
        content[middle : middle + 400] = bytes(400)
        chunk.write_bytes(content[: max(len(content), 400)] if path.is_file() else content[:60])
    with pytest.raises(DataError, match=r"a\.(hdf5|zarr): not a readable"):
        read_task(path)


@pytest.mark.parametrize("write", list(WRITERS.values()), ids=list(WRITERS))
def test_other_names(write, tmp_path):
    files = [write(tmp_path / name, {"scores": SCORES, label: Y}) for name, label in ("ay", "bx")]
    for paths in (files, files[1]):
        with pytest.raises(DataError, match=r"b\..*: found .*x.*; expected scores, y; or prob"):
            read_task(paths)


class Bomb:
    def __init__(self, harm):
        self.harm = str(harm)

    def __reduce__(self):
        return open, (self.harm, "w")


@pytest.mark.parametrize("codec", ["compressor", "filters"])
@pytest.mark.parametrize("name", ["scores", "y"])
def test_pickled_zarr_is_never_loaded(codec, name, tmp_path):
    path = write_zarr(tmp_path / "a", {"scores": SCORES, "y": Y}, zarr_format=2)
    for old in (path / ".zmetadata", *(path / name).glob("[0-9]*")):
        old.unlink(missing_ok=True)
    metadata = json.loads((path / name / ".zarray").read_text())
    metadata |= {"compressor": None, "filters": None}
    pickled = {"id": "pickle"}
    metadata[codec] = (
        pickled if codec == "compressor" else [{"id": "delta", "dtype": "<i8"}, pickled]
    )
    (path / name / ".zarray").write_text(json.dumps(metadata))
    chunk = "0.0" if name == "scores" else "0"
    (path / name / chunk).write_bytes(pickle.dumps(Bomb(tmp_path / "harm")))
    with pytest.raises(DataError, match="pickle"):
        read_task(path)
    assert not (tmp_path / "harm").exists()


def test_references_in_hdf5(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["scores"] = SCORES
        file.create_dataset("y", data=[file["scores"].ref] * 8, dtype=h5py.ref_dtype)
    with pytest.raises(DataError, match=r"a\.h5: "):
        read_task(tmp_path / "a.h5")


def test_places_of_new_formats(tmp_path):
    for name in ("a.h5", "a.parquet", "a.zarr.zip"):
        (tmp_path / name).mkdir()
        with pytest.raises(DataError, match="this is a folder"):
            read_task(tmp_path / name)
    (tmp_path / "empty.zarr").mkdir()
    (tmp_path / "file.zarr").write_text("")
    zarr.create_array(tmp_path / "array.zarr", data=SCORES)
    for name in ("empty.zarr", "file.zarr", "array.zarr"):
        with pytest.raises(DataError, match=r"not a readable \.zarr"):
            read_task(tmp_path / name)
    with h5py.File(tmp_path / "group.h5", "w") as file:
        file["inside/scores"] = SCORES
    with pytest.raises(DataError, match=r"group\.h5: found nothing"):
        read_task(tmp_path / "group.h5")


@pytest.mark.parametrize("name", ["a.h5", "a.npz", "a.zarr", "a.csv"])
def test_folders_that_may_not_be_entered(name, tmp_path, monkeypatch):
    def refuse(self, **_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(DataError, match=rf"{name}: not a readable .* file .*Permission denied"):
        read_task(tmp_path / name)


def test_one_nan_at_the_end_of_a_long_file(tmp_path):
    scores = np.lib.format.open_memmap(tmp_path / "a.npy", "w+", np.float32, (60_000, 50))
    scores[-1, 49] = np.nan
    scores.flush()
    np.save(tmp_path / "y.npy", np.arange(60_000) % 50)
    with pytest.raises(DataError, match=r"scores: .*row 59999, column 49"):
        read_task(tmp_path / "a.npy", tmp_path / "y.npy")


@pytest.mark.parametrize("many", [False, True])
def test_a_sum_that_does_not_fit(many, tmp_path):
    """Changed bytes of an archive are found when their turn comes, and the file is named."""
    files = []
    for name in ("good.zip", "bad.zip"):
        store = zarr.storage.ZipStore(tmp_path / name, mode="w")
        group = zarr.open_group(store, mode="w")
        group.create_array("y", data=Y)
        group.create_array("scores", data=SCORES, compressors=None)
        store.close()
        files.append(tmp_path / name)
    content = files[1].read_bytes()
    place = content.index(SCORES.tobytes())
    files[1].write_bytes(content[:place] + bytes(8) + content[place + 8 :])
    with pytest.raises(DataError, match=r"bad.zip: not a readable") as error:
        read_task(files if many else files[1])
    assert str(error.value).count("bad.zip") == 1


# Labels and numbers in other words


@pytest.mark.parametrize("kind", ["npz", "hdf5", "zarr"])
def test_numbers_as_matrices(kind, tmp_path):
    ranks = SourceTask.from_scores(SCORES, Y).ranks
    arrays = {"ranks": ranks, "y": Y, "n_classes": np.array([[5]])}
    assert read_task(WRITERS[kind](tmp_path / "a", arrays)).n_classes == 5


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_labels_of_text(start, tmp_path):
    np.save(tmp_path / "scores.npy", SCORES)
    path = tmp_path / "y.txt"
    # Beyond 64 bits, with zeros before, and like numbers: names all the same.
    for names in (
        [f"{10**20 + j}" for j in range(5)],
        [f"0{j + 1}" for j in range(5)],
        [f"{4 - j}_0" for j in range(5)],
    ):
        path.write_bytes(start + "\n".join(names[j] for j in Y).encode())
        task = read_task(tmp_path / "scores.npy", path, classes=names)
        assert task.y.tolist() == Y.tolist() and task.classes == names
    path.write_bytes(start + "\n".join(map(str, Y)).encode())
    assert read_task(tmp_path / "scores.npy", path, classes=list("abcde")).y.tolist() == Y.tolist()
    with pytest.raises(DataError, match=r"y: "):
        read_task(tmp_path / "scores.npy", path, classes=list("78912"))


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_positions_in_tables(ending, tmp_path):
    def write(names, y):
        table = pd.DataFrame(SCORES, columns=names).assign(y=y)
        path = tmp_path / f"a{ending}"
        table.to_csv(path, index=False) if ending == ".csv" else table.to_parquet(path)
        return path

    task = read_task(write(list("abcde"), Y))
    assert task.y.tolist() == Y.tolist() and task.classes == list("abcde")
    # Numbers that are names are names.
    assert read_task(write(list("43210"), Y)).y.tolist() == (4 - Y).tolist()
    for names, y in ((["01", "02", "03", "04", "05"], Y), (list("abcde"), [*Y[:-1], 7])):
        with pytest.raises(DataError, match=r"y: "):
            read_task(write(names, y))


@pytest.mark.parametrize(
    ("module", "extra", "ending"),
    [("zarr", "zarr", "zarr"), ("pyarrow", "parquet", "parquet"), ("h5py", "files", "h5")],
)
def test_missing_extras_say_what_to_install(module, extra, ending, tmp_path, monkeypatch):
    (tmp_path / f"a.{ending}").write_text("")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf'{module}: pip install "classex-bayes\[{extra}\]"'):
        read_task(tmp_path / f"a.{ending}")
