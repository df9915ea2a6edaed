"""Files that are damaged, dangerous or no such files: a task, or one error that names the file."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from classex_bayes import DataError, SourceTask, load, read_task, save

RNG = np.random.default_rng(1)
Y = np.arange(24) % 8
SCORES = RNG.normal(size=(24, 8)) + 2 * np.eye(8)[Y]
ENDINGS = ["npz", "npy", "csv", "parquet", "txt"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder with a good file of each format."""
    folder = tmp_path_factory.mktemp("whole")
    names = [f"class {j}" for j in range(8)]
    np.savez(folder / "a.npz", scores=SCORES, y=Y)
    np.save(folder / "a.npy", SCORES)
    np.save(folder / "labels.npy", Y)
    (folder / "a.txt").write_text("\n".join(map(str, Y)))
    frame = pd.DataFrame(SCORES, columns=names).assign(y=[names[j] for j in Y])
    frame.to_csv(folder / "a.csv", index=False)
    frame.to_parquet(folder / "a.parquet")
    return folder


def files_of(whole, path):
    """Arguments of `read_task` for one file of the format and whole ones beside it."""
    beside = {".npy": (path, whole / "labels.npy"), ".txt": (whole / "a.npy", path)}
    return beside.get(path.suffix, (path,))


def refused(name, *files):
    """The error, which names the file."""
    with pytest.raises(DataError) as caught:
        read_task(*files)
    assert name in str(caught.value)
    return str(caught.value)


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
    content, path = (whole / f"a.{ending}").read_bytes(), tmp_path / f"a.{ending}"
    for damage in changes:
        content = damaged(content, damage) if content else content
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            task = read_task(*files_of(whole, path))
        except DataError as error:
            assert whole.name in str(error) or str(path) in str(error)
        else:
            assert isinstance(task, SourceTask) and 0 <= task.accuracy(2) <= 1


@pytest.mark.parametrize("ending", ENDINGS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(damages(), min_size=1, max_size=4))
def test_damaged_files(whole, tmp_path, ending, changes):
    read(whole, ending, changes, tmp_path)


@pytest.mark.parametrize("ending", ["npz", "npy", "parquet"])
@pytest.mark.parametrize("how", ["empty", "cut", "zeros", "text", "other"])
def test_a_damaged_file_is_named(whole, tmp_path, ending, how):
    content = (whole / f"a.{ending}").read_bytes()
    path = tmp_path / f"a.{ending}"
    path.write_bytes(
        {
            "empty": b"",
            "cut": content[: len(content) // 2],
            "zeros": bytes(len(content)),
            "text": b"k,accuracy\n2,0.9\n" * 9,
            "other": (whole / ("a.csv" if ending == "parquet" else "a.parquet")).read_bytes(),
        }[how]
    )
    refused(f"a.{ending}", *files_of(whole, path))


class Bomb:
    """An object that writes a file when it is unpickled."""

    def __init__(self, harm):
        self.harm = str(harm)

    def __reduce__(self):
        return open, (self.harm, "w")


def test_pickles_are_never_run(tmp_path):
    objects = np.array([Bomb(tmp_path / "harm")], dtype=object)
    np.savez(tmp_path / "task.npz", scores=objects, y=objects)
    np.save(tmp_path / "scores.npy", objects)
    np.save(tmp_path / "labels.npy", np.zeros(3))
    (tmp_path / "raw.npy").write_bytes(objects.dumps())
    for names in (
        ["task.npz"],
        ["scores.npy", "labels.npy"],
        ["labels.npy", "scores.npy"],
        ["raw.npy", "labels.npy"],
    ):
        with pytest.raises(DataError):
            read_task(*(tmp_path / name for name in names))
    assert not (tmp_path / "harm").exists()


def test_places(whole, tmp_path):
    for name in ("a.npz", "a.parquet"):
        (tmp_path / name).mkdir()
        refused(name, tmp_path / name)
    (tmp_path / "task.mat").write_text("")
    refused("task.mat", tmp_path / "task.mat")
    scores = whole / "a.npy"
    assert "labels=" in refused("a.npy", scores)
    assert "labels=" in refused("a.npz", whole / "a.npz", whole / "labels.npy")
    for name in ("no.npy", "y.csv"):
        refused(name, scores, tmp_path / name)


@pytest.mark.parametrize("name", ["a.npz", "a.csv"])
def test_folders_that_may_not_be_entered(name, tmp_path, monkeypatch):
    def refuse(self, **_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", refuse)
    assert "Permission denied" in refused(name, tmp_path / name)


def test_missing_extras_say_what_to_install(tmp_path, monkeypatch, fitted):
    (tmp_path / "a.parquet").write_text("")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=install("parquet")):
        read_task(tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "h5py", None)
    path = tmp_path / "b.nc"
    with pytest.raises(ImportError, match=install("files")):
        save(fitted, path)
    assert not path.exists()
    path.touch()
    with pytest.raises(ImportError, match=install("files")):
        load(path)


def install(extra):
    return rf'pip install "classex-bayes\[{extra}\]"'
