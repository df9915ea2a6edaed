"""Files of scores: every documented format is its constructor, and bad ones are one clear error."""

import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers import assert_same_task

from classex_bayes.exceptions import DataError
from classex_bayes.io import read_task, read_tree, write_tree
from classex_bayes.task.sampling_design import Sampling
from classex_bayes.task.source_task import SourceTask

RNG = np.random.default_rng(0)
Y = np.array([0, 1, 2, 3, 4, 0, 2, 4])
SCORES = RNG.normal(size=(8, 5)) + 2 * np.eye(5)[Y]
PROBES, GALLERY = RNG.normal(size=(8, 3)), RNG.normal(size=(5, 3))
NAMES = np.array(["ant", "bee", "cat", "dog", "7"])
CURVE = {"k": [2, 3, 5], "accuracy": [0.9, 0.8, 0.7]}


@pytest.fixture
def npz(tmp_path):
    def write(**arrays):
        np.savez(tmp_path / "task.npz", **arrays)
        return tmp_path / "task.npz"

    return write


@pytest.fixture
def csv(tmp_path):
    def write(content):
        path = tmp_path / "task.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


# Formats


def test_npz_of_scores(tmp_path):
    np.savez_compressed(tmp_path / "task.npz", scores=SCORES, y=Y)
    assert_same_task(read_task(tmp_path / "task.npz"), SourceTask.from_scores(SCORES, Y))


def test_npz_of_embeddings(npz):
    path = npz(probes=PROBES, gallery=GALLERY, y=Y)
    assert_same_task(read_task(path), SourceTask.from_embeddings(PROBES, GALLERY, Y))
    for metric in ("cosine", "dot"):
        expected = SourceTask.from_embeddings(PROBES, GALLERY, Y, distance=metric)
        assert_same_task(read_task(path, distance=metric), expected)
    gallery, gallery_y = np.vstack([GALLERY, GALLERY + 1]), np.tile(np.arange(5), 2)
    path = npz(probes=PROBES, gallery=gallery, gallery_y=gallery_y, y=Y)
    expected = SourceTask.from_embeddings(PROBES, gallery, Y, gallery_y=gallery_y)
    assert_same_task(read_task(path), expected)


@pytest.mark.parametrize("n_classes", [5, np.int32(5), np.array(5.0)])
def test_npz_of_ranks(npz, n_classes):
    ranks = SourceTask.from_scores(SCORES, Y).ranks
    expected = SourceTask.from_ranks(ranks, Y, n_classes=5)
    assert_same_task(read_task(npz(ranks=ranks, y=Y, n_classes=n_classes)), expected)


def test_what_a_file_says_of_itself(npz):
    # Any argument of the constructor may be in the file.
    curve = {**CURVE, "n_test": 50, "n_classes": 5}
    assert read_task(npz(**curve, design_effect=3.0)).design_effect() == 3
    weighted = read_task(npz(scores=SCORES, y=Y, class_weight=[1, 2, 3, 4, 5]))
    np.testing.assert_allclose(weighted.table.class_weight, np.arange(1, 6) / 15)
    distances = read_task(npz(scores=-SCORES, y=Y, higher_is_better=False))
    assert distances.ranks.tolist() == SourceTask.from_scores(SCORES, Y).ranks.tolist()


def test_npy_of_scores(tmp_path):
    np.save(tmp_path / "scores.npy", SCORES)
    np.save(tmp_path / "labels.npy", Y)
    task = read_task(tmp_path / "scores.npy", tmp_path / "labels.npy")
    assert_same_task(task, SourceTask.from_scores(SCORES, Y))
    assert isinstance(task.table.source.matrix.base, np.memmap)


@pytest.mark.parametrize("names", [NAMES, np.arange(5), np.array(["01", "02", "3.50", "NA", "x"])])
def test_csv_of_scores(csv, names):
    frame = pd.DataFrame(SCORES, columns=names)
    frame.insert(2, "y", names[Y])
    text = [str(name) for name in names]
    expected = SourceTask.from_scores(SCORES, np.array(text)[Y], classes=text)
    assert_same_task(read_task(csv(frame.to_csv(index=False))), expected)


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_csv_of_other_systems(csv, encoding, end):
    names = np.array(["ä", "bee", "cat", "dog", "eel"])
    rows = [",".join(map(str, row)) + f",{names[j]}" for row, j in zip(SCORES, Y, strict=True)]
    text = end.join([",".join([*names, "y"]), *rows])
    expected = SourceTask.from_scores(SCORES, names[Y], classes=names)
    assert_same_task(read_task(csv(text.encode(encoding))), expected)


def test_csv_of_accuracies(csv):
    path = csv(pd.DataFrame(CURVE).assign(comment="x").to_csv(index=False))
    expected = SourceTask.from_accuracies(**CURVE, n_test=50, n_classes=5)
    assert_same_task(read_task(path, n_test=50, n_classes=5), expected)


def test_options(npz):
    path = npz(scores=-SCORES, y=Y)
    expected = SourceTask.from_scores(-SCORES, Y, higher_is_better=False)
    assert_same_task(read_task(path, higher_is_better=False), expected)
    tied = npz(scores=np.round(SCORES), y=Y)
    for options in ({"ties": "pessimistic"}, {"random_seed": 7}):
        expected = SourceTask.from_scores(np.round(SCORES), Y, **options)
        assert_same_task(read_task(tied, **options), expected)


@pytest.mark.parametrize("option", [{"distance": "dot"}, {"n_test": 3}, {"tie": "random"}])
def test_options_that_do_not_apply(npz, option):
    with pytest.raises(DataError, match=f"^{next(iter(option))}"):
        read_task(npz(scores=SCORES, y=Y), **option)
    ranks = npz(ranks=[1, 2, 1], y=[0, 1, 2], n_classes=3)
    assert read_task(ranks, random_seed=1).n_classes == 3


def test_a_design_is_said_once(npz):
    groups = [0, 0, 1, 1, 2]
    path = npz(scores=SCORES, y=Y)
    with pytest.raises(DataError, match=r"^sampling:"):
        read_task(path, sampling=Sampling(inclusion=[0.5, 1, 1, 1, 1]), groups=groups)
    once = read_task(npz(scores=SCORES, y=Y, groups=groups), sampling=Sampling())
    assert_same_task(once, SourceTask.from_scores(SCORES, Y))


# Bad files

ROWS = "ant,1,0,0\nbee,0,1,0\ncat,0,0,1\n"
# Contents with what the error names beside the file.
BAD_CSV = {
    "nothing": ("", "not a readable"),
    "no rows": ("y,ant,bee,cat\n", "scores"),
    "no scores": ("y\nant\nbee\n", "scores"),
    "two classes": ("y,ant,bee\nant,1,0\nbee,0,1\n", "scores"),
    "no labels": ("ant,bee,cat\n1,0,0\n", "column y"),
    "semicolons": ("y;ant;bee;cat\nant;1;0;0\n", "commas"),
    "decimal commas": ("y;ant;bee;cat\nant;1,5;0,2;0,1\n", "commas"),
    "tabs": ("y\tant\tbee\tcat\nant\t1\t0\t0\n", "commas"),
    "quoted commas": ('y,ant,bee,cat\nant,"1,5",0,0\n', "'1,5' in column 'ant', row 0"),
    "bytes": (b"\xff\xfe\x00\x80" * 9, "not a readable"),
    "utf-16": (f"y,ant,bee,cat\n{ROWS}".encode("utf-16"), "UTF-8"),
    "latin-1": (f"y,ant,bé,cat\n{ROWS}".encode("latin-1"), "UTF-8"),
    "end of a text of DOS": (f"y,ant,bee,cat\n{ROWS}\x1a", "y: .*row 3"),
    "open quote": ('y,ant,bee,cat\n"ant,1,0,0\n', "(not a readable|scores)"),
    "a word": ("y,ant,bee,cat\nant,1,0,0\nbee,0,high,0\n", "'high' in column 'bee', row 1"),
    "a NUL": (b"a,b,c,y\n1,2,3,a\n1,2\x00,3,b\n1,2,3,c\n", "column 'b', row 1"),
    "a gap": ("y,ant,bee,cat\nant,1,0,\nbee,0,1,0\ncat,0,0,1\n", "scores: .*row 0, column 2"),
    "short row": ("y,ant,bee,cat\nant,1,0\nbee,0,1,0\ncat,0,0,1\n", "scores: .*row 0, column 2"),
    "long row": (f"y,ant,bee,cat\n{ROWS}ant,1,0,0,5\n", "not a readable"),
    "long rows": ("y,ant,bee,cat\nant,1,0,0,5\nbee,0,1,0,5\n", "header"),
    "infinite": ("y,ant,bee,cat\nant,inf,0,0\nbee,0,1,0\ncat,0,0,1\n", "scores: .*row 0"),
    "unknown label": (f"y,ant,bee,cat\n{ROWS}dog,0,0,1\n", "y: .*'dog' at row 3"),
    "label missing": (f"y,ant,bee,cat\n{ROWS},0,0,1\n", "column y, row 3"),
    "class untested": ("y,ant,bee,cat\nant,1,0,0\nbee,0,1,0\n", "y: class 'cat'"),
    "class twice": ("y,ant,ant,cat\nant,1,0,0\ncat,0,0,1\n", "y: class 'ant.1'"),
    "numbered rows": (",y,ant,bee,cat\n0,ant,1,0,0\n1,bee,0,1,0\n2,cat,0,0,1\n", "scores"),
    "ranks": ("rank,y\n1,0\n3,1\n2,2\n", "scores"),
    "curve without size": ("k,accuracy\n2,0.9\n", "k, accuracy, n_test, n_classes"),
}
BAD_CURVE = {
    "k is text": ("k,accuracy\ntwo,0.9\n5,0.8\n", "k"),
    "k is missing": ("k,accuracy\n,0.9\n5,0.8\n", "k"),
    "k is broken": ("k,accuracy\n2.5,0.9\n5,0.8\n", "k"),
    "k too large": ("k,accuracy\n2,0.9\n6,0.8\n", "k"),
    "k twice": ("k,accuracy\n2,0.9\n2,0.8\n", "k"),
    "accuracy is text": ("k,accuracy\n2,high\n5,0.8\n", "accuracy"),
    "accuracy is missing": ("k,accuracy\n2,\n5,0.8\n", "accuracy"),
    "accuracy in percent": ("k,accuracy\n2,90\n5,80\n", "accuracy"),
    "accuracy rises": ("k,accuracy\n2,0.1\n5,0.9\n", "accuracy"),
    "no rows": ("k,accuracy\n", "k"),
}
RANKS = {"ranks": [1, 2, 1], "y": [0, 1, 2]}
BAD_NPZ = {
    "nothing": ({}, "found nothing"),
    "scores alone": ({"scores": SCORES}, r"found scores \(8, 5\)"),
    "other names": ({"x": SCORES, "labels": Y}, "found x, labels"),
    "probes without gallery": ({"probes": PROBES, "y": Y}, r"found probes \(8, 3\), y \(8,\)"),
    "ranks without size": (RANKS, r"found ranks \(3,\), y"),
    "two sizes": ({**RANKS, "n_classes": [3, 4]}, "n_classes"),
    "size is text": ({**RANKS, "n_classes": "three"}, "n_classes"),
    "size is broken": ({**RANKS, "n_classes": 3.5}, "n_classes"),
    "size is not a number": ({**RANKS, "n_classes": np.nan}, "n_classes"),
    "rank too large": ({**RANKS, "ranks": [1, 4, 1], "n_classes": 3}, "ranks: found 4 at row 1"),
    "n_test is text": ({**CURVE, "n_classes": 5, "n_test": "many"}, "n_test"),
    "n_test is infinite": ({**CURVE, "n_classes": 5, "n_test": np.inf}, "n_test"),
    "n_test is complex": ({**CURVE, "n_classes": 5, "n_test": 1j}, "n_test"),
    "text scores": ({"scores": SCORES.astype(str), "y": Y}, "scores"),
    "objects": ({"scores": SCORES.astype(object), "y": Y}, "not a readable .npz"),
    "object labels": (
        {"scores": SCORES, "y": Y.astype(object)},
        r"not a readable .npz.*store text with \.astype\(str\)",
    ),
    "swapped": ({"scores": Y, "y": SCORES}, "scores, y"),
    "labels too few": ({"scores": SCORES, "y": Y[:5]}, "y"),
    "names too few": ({"scores": SCORES, "y": Y, "classes": NAMES[:4]}, "classes"),
    "different spaces": ({"probes": PROBES, "gallery": GALLERY[:, :2], "y": Y}, "probes, gallery"),
    "unknown metric": (
        {"probes": PROBES, "gallery": GALLERY, "y": Y, "distance": "manhattan"},
        "distance",
    ),
}


@pytest.mark.parametrize(("content", "name"), BAD_CSV.values(), ids=BAD_CSV)
def test_bad_csv(csv, content, name):
    with pytest.raises(DataError, match=f"task.csv: .*{name}"):
        read_task(csv(content))


@pytest.mark.parametrize(("content", "name"), BAD_CURVE.values(), ids=BAD_CURVE)
def test_bad_curve(csv, content, name):
    with pytest.raises(DataError, match=f"task.csv: {name}: "):
        read_task(csv(content), n_test=50, n_classes=5)


@pytest.mark.parametrize(("arrays", "name"), BAD_NPZ.values(), ids=BAD_NPZ)
def test_bad_npz(npz, arrays, name):
    with pytest.raises(DataError, match=f"task.npz: {name}"):
        read_task(npz(**arrays))


def test_pickles_are_never_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "harm"), "w"))

    objects = np.array([Bomb()], dtype=object)
    np.savez(tmp_path / "task.npz", scores=objects, y=objects)
    np.save(tmp_path / "scores.npy", objects)
    np.save(tmp_path / "labels.npy", np.zeros(3))
    (tmp_path / "raw.npy").write_bytes(objects.dumps())
    for scores, labels in (
        ("task.npz", None),
        ("scores.npy", "labels.npy"),
        ("labels.npy", "scores.npy"),
        ("raw.npy", "labels.npy"),
    ):
        with pytest.raises(DataError, match="not a readable"):
            read_task(tmp_path / scores, labels and tmp_path / labels)
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("ending", [".npz", ".npy"])
@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "text", "other"])
def test_damaged_arrays(tmp_path, ending, damage):
    path, labels = tmp_path / f"task{ending}", tmp_path / "labels.npy"
    np.save(labels, Y)
    np.save(tmp_path / "scores.npy", SCORES)
    np.savez(tmp_path / "task.npz", scores=SCORES, y=Y)
    sources = {".npz": "task.npz", ".npy": "scores.npy"}
    source = sources[ending if damage != "other" else {".npz": ".npy", ".npy": ".npz"}[ending]]
    content = bytearray((tmp_path / source).read_bytes())
    if damage == "empty":
        content = b""
    elif damage == "cut":
        content = content[: len(content) // 2]
    elif damage == "flipped":
        content[:200] = bytes(200)
    elif damage == "text":
        content = b"k,accuracy\n2,0.9\n"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"not a readable|scores: "):
        read_task(path, labels if ending == ".npy" else None)


def test_archive_of_other_things(tmp_path):
    path = tmp_path / "task.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("k", "accuracy", "n_test", "n_classes"):
            archive.writestr(name, "words")
    with pytest.raises(DataError):
        read_task(path)


def test_places(tmp_path):
    scores, both = tmp_path / "scores.npy", tmp_path / "both.npz"
    np.save(scores, SCORES)
    np.savez(both, scores=SCORES, y=Y)
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "task.mat").write_text("")
    for paths, name in (
        ([tmp_path / "task.npz"], "task.npz"),
        ([tmp_path / "folder.npz"], "folder.npz"),
        ([tmp_path / "task.mat"], "task.mat"),
        ([scores], "scores.npy: .*labels="),
        ([both, scores], "both.npz: .*labels="),
        ([scores, tmp_path / "labels.npy"], "labels.npy"),
        ([scores, scores], "y: "),
    ):
        with pytest.raises(DataError, match=name):
            read_task(*paths)


def test_csv_is_read_to_the_last_bit(tmp_path):
    rng = np.random.default_rng(1)
    low = np.exp(8 * rng.normal(size=(400, 1)))
    scores = np.hstack([low, np.nextafter(low, rng.choice([-np.inf, np.inf], (400, 7)))])
    y = np.arange(400) % 8
    expected = SourceTask.from_scores(scores, y).ranks
    frame = pd.DataFrame(scores, columns=list("abcdefgh")).assign(y=y)
    frame.to_csv(tmp_path / "a.csv", index=False)
    # Numbers in a column that pandas takes for text.
    frame.map(lambda value: f" {value!r} ").assign(y=y).to_csv(tmp_path / "b.csv", index=False)
    for name in ("a.csv", "b.csv"):
        assert np.array_equal(read_task(tmp_path / name).ranks, expected), name


def test_ties_of_a_file_are_broken_like_those_of_arrays(tmp_path):
    scores, y = np.zeros((40, 10)), np.arange(40) % 10
    np.savez(tmp_path / "a.npz", scores=scores, y=y)
    for seed in (0, 5):
        found = read_task(tmp_path / "a.npz", random_seed=seed).ranks
        assert np.array_equal(found, SourceTask.from_scores(scores, y, random_seed=seed).ranks)
    drawn = [read_task(tmp_path / "a.npz", random_seed=None).ranks for _ in range(2)]
    assert not np.array_equal(*drawn)


@pytest.mark.parametrize("ending", ["nc", "zarr"])
def test_files_of_results_say_what_to_install(ending, tmp_path, monkeypatch):
    path, extra = tmp_path / f"a.{ending}", {"nc": "files", "zarr": "zarr"}[ending]
    tree = xr.DataTree(xr.Dataset({"a": 1.0}))
    monkeypatch.setitem(sys.modules, {"nc": "h5netcdf", "zarr": "zarr"}[ending], None)
    message = rf'pip install "classex-bayes\[{extra}\]"'
    with pytest.raises(ImportError, match=message):
        write_tree(tree, path)
    assert not path.exists()
    path.touch()
    with pytest.raises(ImportError, match=message):
        read_tree(path)
