"""Damaged files of every format: a task, or one error that names the file, and nothing else."""

import warnings

import h5py
import numpy as np
import pandas as pd
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from classex_bayes.exceptions import DataError
from classex_bayes.io import read_task
from classex_bayes.task.source_task import SourceTask

ENDINGS = ["npz", "npy", "csv", "parquet", "h5", "zip", "txt"]


class Whole:
    """Bytes of a good file of each format, and their folder."""

    def __init__(self, folder):
        self.folder = folder
        self.files = {ending: (folder / f"a.{ending}").read_bytes() for ending in ENDINGS}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    rng = np.random.default_rng(1)
    y = np.arange(24) % 8
    scores = rng.normal(size=(24, 8)) + 2 * np.eye(8)[y]
    names = [f"class {j}" for j in range(8)]
    np.savez(folder / "a.npz", scores=scores, y=y)
    np.save(folder / "a.npy", scores)
    np.save(folder / "labels.npy", y)
    (folder / "a.txt").write_text("\n".join(map(str, y)))
    frame = pd.DataFrame(scores, columns=names).assign(y=[names[j] for j in y])
    frame.to_csv(folder / "a.csv", index=False)
    frame.to_parquet(folder / "a.parquet")
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("scores", data=scores, chunks=(6, 8), compression="gzip")
        file["y"] = y
    with zarr.storage.ZipStore(folder / "a.zip", mode="w") as store:
        group = zarr.create_group(store)
        group.create_array("scores", data=scores, chunks=(6, 8))
        group.create_array("y", data=y)
    return Whole(folder)


@st.composite
def damages(draw):
    """Changes of bytes, cuts and repetitions, at relative places."""
    kind = draw(st.sampled_from(["flip", "cut", "drop", "repeat", "insert", "zero"]))
    place, length = draw(st.floats(0, 1)), draw(st.integers(1, 40))
    return kind, place, length, draw(st.binary(min_size=1, max_size=8))


def damaged(content, damage):
    kind, place, length, inserted = damage
    at = int(place * max(len(content) - 1, 0))
    match kind:
        case "flip":
            return content[:at] + bytes([content[at] ^ inserted[0]]) + content[at + 1 :]
        case "cut":
            return content[:at]
        case "drop":
            return content[:at] + content[at + length :]
        case "repeat":
            return content[: at + length] + content[at:]
        case "insert":
            return content[:at] + inserted + content[at:]
        case _:
            return content[:at] + bytes(length) + content[at + length :]


def read(whole, ending, changes, tmp_path):
    folder, content = whole.folder, whole.files[ending]
    for damage in changes:
        content = damaged(content, damage) if content else content
    path = tmp_path / f"a.{ending}"
    path.write_bytes(content)
    arguments = {
        "npy": (path, folder / "labels.npy"),
        "txt": (folder / "a.npy", path),
    }.get(ending, (path,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            task = read_task(*arguments)
        except DataError as error:
            assert str(folder.name) in str(error) or str(path) in str(error)
        else:
            assert isinstance(task, SourceTask) and 0 <= task.accuracy(2)[0] <= 1


@pytest.mark.parametrize("ending", ENDINGS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(damages(), min_size=1, max_size=4))
def test_damaged_files(whole, tmp_path, ending, changes):
    read(whole, ending, changes, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=5000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(damages(), min_size=1, max_size=8))
def test_thousands_of_damaged_files(whole, tmp_path, ending, changes):
    read(whole, ending, changes, tmp_path)
