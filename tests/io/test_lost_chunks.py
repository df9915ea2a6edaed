"""What files lack or hide is one clear error, never a task of other numbers."""

import warnings
import zipfile

import h5py
import numpy as np
import pandas as pd
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from classex_bayes import SourceTask, read_task
from classex_bayes.exceptions import DataError

RNG = np.random.default_rng(0)
Y = np.array([0, 1, 2, 3, 4, 0, 2, 4])
SCORES = RNG.normal(size=(8, 5)) + 2 * np.eye(5)[Y]
NAMES = np.array(["ant", "bee", "cat", "dog", "eel"])
EXPECTED = SourceTask.from_scores(SCORES, Y)


def zipped(folder):
    with zipfile.ZipFile(folder.with_suffix(".zip"), "w") as archive:
        for file in filter(lambda file: file.is_file(), folder.rglob("*")):
            archive.write(file, file.relative_to(folder))
    return folder.with_suffix(".zip")


# Data that are not there


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    kind=st.sampled_from(["hdf5", "zarr", "zarr 2", "shards", "zip"]),
    chunks=st.tuples(st.integers(1, 8), st.integers(1, 5)),
    data=st.data(),
)
def test_a_lost_chunk(kind, chunks, data, tmp_path_factory):
    """All chunks are read, and all but one are an error, however the matrix is cut."""
    folder = tmp_path_factory.mktemp("chunks")
    rows, columns = -(-8 // chunks[0]), -(-5 // chunks[1])
    lost = data.draw(st.integers(0, rows * columns - 1))
    if kind == "hdf5":
        for name, skip in (("whole.h5", None), ("part.h5", lost)):
            with h5py.File(folder / name, "w") as file:
                file["y"] = Y
                scores = file.create_dataset("scores", (8, 5), chunks=chunks, dtype=float)
                for number, key in enumerate(np.ndindex(rows, columns)):
                    if number != skip:
                        a, b = np.multiply(key, chunks)
                        place = slice(a, a + chunks[0]), slice(b, b + chunks[1])
                        scores[place] = SCORES[place]
        whole, part = folder / "whole.h5", folder / "part.h5"
    else:
        whole, part = folder / "whole.zarr", folder / "part.zarr"
        for path in (whole, part):
            group = zarr.open_group(path, mode="w", zarr_format=2 if kind == "zarr 2" else 3)
            group.create_array("y", data=Y)
            inner = {"chunks": (1, 1), "shards": chunks} if kind == "shards" else {"chunks": chunks}
            group.create_array("scores", data=SCORES, **inner)
        stored = (file for file in (part / "scores").rglob("[0-9]*") if file.is_file())
        sorted(stored)[lost].unlink()
        if kind == "zip":
            whole, part = zipped(whole), zipped(part)
    assert read_task(whole).ranks.tolist() == EXPECTED.ranks.tolist()
    words = "never written" if kind == "hdf5" else "not stored.*write_empty_chunks"
    with pytest.raises(DataError, match=rf"part.* scores: 1 of {rows * columns} chunks .*{words}"):
        read_task(part)


@pytest.mark.parametrize("kind", ["zarr", "zarr 2", "zip"])
@pytest.mark.parametrize("lost", ["ranks", "y", "class_weight", "classes", "n_classes"])
def test_a_lost_chunk_of_labels_and_the_like(kind, lost, tmp_path):
    """Of every array that is read, text and single numbers included; else it would be zeros."""
    arrays = {
        "ranks": EXPECTED.ranks,
        "y": NAMES[Y],
        "classes": NAMES,
        "class_weight": np.arange(1.0, 6),
        "n_classes": np.array(5),
    }
    path = tmp_path / "a.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=2 if kind == "zarr 2" else 3)
    with warnings.catch_warnings():
        # zarr says that its text is not in the specification yet.
        warnings.simplefilter("ignore")
        for name, array in arrays.items():
            cut = {"chunks": (2,)} if array.ndim else {}
            group.create_array(name, data=array, config={"write_empty_chunks": True}, **cut)

    def stored():
        return zipped(path) if kind == "zip" else path

    assert read_task(stored()).ranks.tolist() == EXPECTED.ranks.tolist()
    next(file for file in (path / lost).rglob("[0-9c]*") if file.is_file()).unlink()
    with pytest.raises(DataError, match=f"a.z.* {lost}: 1 of . chunks are not stored: lost, or"):
        read_task(stored())


def test_zeros_of_zarr(tmp_path):
    """Zeros are read where they were written, and zarr is asked to write them."""
    arrays = {"y": np.sort(Y), "ranks": np.ones(8, int)}
    for written in (True, False):
        group = zarr.open_group(tmp_path / "a.zarr", mode="w")
        for name, array in arrays.items():
            own = {"config": {"write_empty_chunks": written}}
            group.create_array(name, data=array, chunks=(1,), **own)
        group.attrs["n_classes"] = 5
        if written:
            assert read_task(tmp_path / "a.zarr").ranks.tolist() == [1] * 8
        else:
            with pytest.raises(DataError, match=r"[28] of 8 chunks .*write_empty_chunks"):
                read_task(tmp_path / "a.zarr")


def virtual(folder, *sources, shape=(8, 5)):
    """Write a virtual dataset of scores, four rows from each source."""
    layout = h5py.VirtualLayout(shape, float)
    for number, source in enumerate(sources):
        part = h5py.VirtualSource(source, "scores", (4, 5))
        layout[4 * number : 4 * number + 4] = part
    with h5py.File(folder / "all.h5", "w") as file:
        file.create_virtual_dataset("scores", layout)
        file["y"] = Y
    return folder / "all.h5"


def test_virtual_datasets(tmp_path, monkeypatch):
    for number in range(2):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file["scores"] = SCORES[4 * number : 4 * number + 4]
    for names in (["0.h5", "1.h5"], [tmp_path / "0.h5", tmp_path / "1.h5"]):
        path = virtual(tmp_path, *names)
        assert read_task(path).ranks.tolist() == EXPECTED.ranks.tolist()
    with pytest.raises(DataError, match=r"scores: .* do not cover it"):
        read_task(virtual(tmp_path, "0.h5"))
    with pytest.raises(DataError, match=r"scores: scores in 2.h5, a source .*, is missing"):
        read_task(virtual(tmp_path, "0.h5", "2.h5"))
    for content, message in (
        (None, "is missing"),
        (SCORES[:3], "holds 15 numbers, expected at least 20"),
        ("unwritten", "nothing was ever written"),
    ):
        with h5py.File(tmp_path / "2.h5", "w") as file:
            if isinstance(content, str):
                file.create_dataset("scores", (4, 5), dtype=float)
            elif content is not None:
                file["scores"] = content
        with pytest.raises(DataError, match=f"scores in 2.h5, a source .*{message}"):
            read_task(virtual(tmp_path, "0.h5", "2.h5"))
    # A prefix of the environment goes first, as in HDF5.
    (tmp_path / "inside").mkdir()
    (tmp_path / "1.h5").rename(tmp_path / "inside" / "1.h5")
    path = virtual(tmp_path, "0.h5", "1.h5")
    with pytest.raises(DataError, match=r"1.h5, a source .* is missing"):
        read_task(path)
    monkeypatch.setenv("HDF5_VDS_PREFIX", "${ORIGIN}/inside")
    assert read_task(path).n_test == 8


def test_sources_in_the_same_file(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["parts"], file["y"] = SCORES, Y
        layout = h5py.VirtualLayout((8, 5), float)
        layout[:] = h5py.VirtualSource(file["parts"])
        file.create_virtual_dataset("scores", layout)
    with pytest.warns(UserWarning, match="ignored arrays of other names: parts"):
        task = read_task(tmp_path / "a.h5")
    assert task.ranks.tolist() == EXPECTED.ranks.tolist()


def test_values_outside_the_file_are_refused(tmp_path):
    # Of any file of the machine, and zeros beyond its end.
    (tmp_path / "raw").write_bytes(np.arange(6.0).tobytes())
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("scores", (3, 3), "f8", external=[(str(tmp_path / "raw"), 0, 72)])
        file["y"] = np.arange(3)
    with pytest.raises(DataError, match=r"a.h5: scores: its values are stored outside, in .*raw"):
        read_task(tmp_path / "a.h5")


def test_nothing_written(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["scores"] = SCORES
        file.create_dataset("y", (8,), dtype=int)
    with pytest.raises(DataError, match="y: nothing was ever written to it"):
        read_task(tmp_path / "a.h5")


def test_things_that_are_no_datasets(tmp_path):
    links = {"a soft": h5py.SoftLink("/no"), "an outer": h5py.ExternalLink("no.h5", "scores")}
    for link in links.values():
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file["scores"], file["y"] = link, Y
        with pytest.raises(DataError, match=r"scores: expected a dataset, found a broken link"):
            read_task(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["scores/inside"], file["y"] = SCORES, Y
    with pytest.raises(DataError, match=r"scores: expected a dataset, found a group"):
        read_task(tmp_path / "a.h5")
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    group.create_array("y", data=Y)
    group.create_array("scores/inside", data=SCORES)
    with pytest.raises(DataError, match=r"scores: expected an array, found a group"):
        read_task(tmp_path / "a.zarr")


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
    with pytest.raises(DataError, match=r"bad.zip: not readable to its end .*CRC") as error:
        read_task(files if many else files[1])
    assert str(error.value).count("bad.zip") == 1


# The same in other words


@pytest.mark.parametrize("kind", ["npz", "h5", "zarr"])
def test_numbers_as_matrices(kind, tmp_path):
    path = tmp_path / f"a.{kind}"
    arrays = {"ranks": EXPECTED.ranks, "y": Y, "n_classes": np.array([[5]])}
    if kind == "npz":
        np.savez(path, **arrays)
    elif kind == "h5":
        with h5py.File(path, "w") as file:
            file.update(arrays)
    else:
        group = zarr.open_group(path, mode="w")
        for name, array in arrays.items():
            group.create_array(name, data=array)
    assert read_task(path).n_classes == 5


def write_shard(path, **changes):
    np.savez(path, **({"scores": SCORES, "y": Y} | changes))
    return path


def test_one_file_by_two_names(tmp_path):
    one = write_shard(tmp_path / "a.npz")
    (tmp_path / "b.npz").symlink_to(one)
    for other in (tmp_path / "b.npz", tmp_path / "." / ".." / tmp_path.name / "a.npz"):
        with pytest.raises(
            DataError, match=r"found more than once among the files \(it is .*a.npz"
        ):
            read_task([one, other])


def test_missing_weights_in_many_files(tmp_path):
    files = [
        write_shard(tmp_path / f"{name}.npz", class_weight=[1, np.nan, 1, 1, 1]) for name in "ab"
    ]
    with pytest.raises(DataError, match="class_weight: found nan for class 1"):
        read_task(files)


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
    for names in (None, NAMES):
        assert read_task(tmp_path / "scores.npy", path, classes=names).y.tolist() == Y.tolist()
    with pytest.raises(DataError, match="y: found numbers, but class 0 is named '7'"):
        read_task(tmp_path / "scores.npy", path, classes=list("78912"))


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_positions_in_tables(ending, tmp_path):
    def write(names, y):
        table = pd.DataFrame(SCORES, columns=names).assign(y=y)
        path = tmp_path / f"a{ending}"
        table.to_csv(path, index=False) if ending == ".csv" else table.to_parquet(path)
        return path

    task = read_task(write(NAMES, Y))
    assert task.y.tolist() == Y.tolist() and task.classes == NAMES.tolist()
    # Numbers that are names are names.
    assert read_task(write(list("43210"), Y)).y.tolist() == (4 - Y).tolist()
    with pytest.raises(DataError, match="y: found numbers, but class 0 is named '01'"):
        read_task(write(["01", "02", "03", "04", "05"], Y))
    with pytest.raises(DataError, match=r"y: found 7 at row 7.*y must hold these names"):
        read_task(write(NAMES, [*Y[:-1], 7]))


def test_untested_classes_are_told_first(tmp_path):
    message = "pass untested='competitors' .*--untested competitors.*; drop the column of scores"
    with pytest.raises(DataError, match=message):
        read_task(write_shard(tmp_path / "a.npz", y=np.minimum(Y, 3)))
