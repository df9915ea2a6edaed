"""Every documented format of file, one or many, gives the task of the arrays in it."""

import csv
import gzip
import io
import json
import tracemalloc
import warnings
from functools import partial
from string import ascii_lowercase

import numpy as np
import pandas as pd
import pytest
from helpers import assert_same_task
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from classex_bayes import DataError, Sampling, SourceTask, read_task

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
    np.savez_compressed(stem.with_suffix(".npz"), **arrays)
    return stem.with_suffix(".npz")


def write_table(stem, ending, scores, y, names):
    table = pd.DataFrame(scores, columns=names)
    table.insert(1, "y", names[y])
    path = stem.with_suffix(ending)
    table.to_csv(path, index=False) if ending == ".csv" else table.to_parquet(path)
    return path


TWICE, TWICE_Y = np.vstack([GALLERY, GALLERY + 1]), NAMES[np.tile(np.arange(5), 2)]
TIED = SCORES.round()
RANKS = SourceTask.from_scores(SCORES, Y).ranks
IDS = np.argsort(-SCORES, axis=1)
DISTANCES = np.take_along_axis(5 - SCORES, IDS, axis=1)
LAYOUTS = [
    (SourceTask.from_scores, {"scores": SCORES, "y": Y}),
    (SourceTask.from_scores, {"scores": SCORES, "y": NAMES[Y], "classes": NAMES}),
    (SourceTask.from_scores, {"scores": -SCORES, "y": Y, "higher_is_better": False}),
    (SourceTask.from_scores, {"scores": TIED, "y": Y, "class_weight": np.arange(1, 6)}),
    (SourceTask.from_embeddings, {"probes": PROBES, "gallery": GALLERY, "y": Y, "distance": "dot"}),
    (
        SourceTask.from_embeddings,
        {"probes": PROBES, "gallery": TWICE, "gallery_y": TWICE_Y, "y": NAMES[Y]}
        | {"distance": "sqeuclidean"},
    ),
    (SourceTask.from_ranks, {"ranks": RANKS, "y": Y, "n_classes": 5}),
    (SourceTask.from_search, {"ids": IDS, "y": Y, "n_classes": 5}),
    (SourceTask.from_search, {"ids": IDS, "y": Y, "n_classes": 5, "distances": DISTANCES}),
    (SourceTask.from_accuracies, CURVE | SIZES | {"design_effect": 3.0}),
]


def test_layouts(tmp_path):
    for number, (make, arrays) in enumerate(LAYOUTS):
        task = read_task(write_npz(tmp_path / f"task{number}", arrays))
        assert_same(task, make(**arrays))
        assert task.design_effect() == pytest.approx(make(**arrays).design_effect())
    # Numbers may be matrices, and whole ones of another type.
    arrays = {"ranks": RANKS, "y": Y, "n_classes": np.array([[5.0]])}
    assert read_task(write_npz(tmp_path / "number", arrays)).n_classes == 5


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_tables(ending, tmp_path):
    def write(names, y, path=tmp_path / f"a{ending}"):
        table = pd.DataFrame(SCORES, columns=names).assign(y=y)
        table.to_csv(path, index=False) if ending == ".csv" else table.to_parquet(path)
        return path

    for names in (NAMES, np.array(["01", "02", "3.50", "NA", "x"])):
        expected = SourceTask.from_scores(SCORES, names[Y], classes=names)
        assert_same(read_task(write(names, names[Y])), expected)
    assert read_task(write(list("abcde"), Y)).y.tolist() == Y.tolist()  # positions
    # Numbers that are names are names.
    assert read_task(write(list("43210"), Y)).y.tolist() == (4 - Y).tolist()
    for names, y in ((["01", "02", "03", "04", "05"], Y), (list("abcde"), [*Y[:-1], 7])):
        with pytest.raises(DataError):
            read_task(write(names, y))
    table, path = pd.DataFrame(CURVE).assign(comment="x"), tmp_path / f"curve{ending}"
    table.to_csv(path, index=False) if ending == ".csv" else table.to_parquet(path)
    assert_same(read_task(path, **SIZES), SourceTask.from_accuracies(**CURVE, **SIZES))
    table = pd.DataFrame({"m": [1, 3], "recall": [0.5, 0.75]})
    table.to_csv(path, index=False) if ending == ".csv" else table.to_parquet(path)
    for sizes in ({"n_test": 90, "n_classes": 9}, {"n_test": 90, "n_negatives": 8}):
        expected = SourceTask.from_recalls({1: 0.5, 3: 0.75}, **sizes)
        assert_same(read_task(path, **sizes), expected)
        assert_same(read_task((), recalls={"1": 0.5, "3": 0.75}, **sizes), expected)


@pytest.mark.parametrize("place", ["replaced", "first", "last", "parquet"])
def test_a_class_named_like_the_column_of_labels(place, tmp_path):
    letters, path = list(ascii_lowercase), tmp_path / "a.csv"
    scores, y = pd.DataFrame(np.eye(26), columns=letters), pd.Series(letters, name="y")
    if place == "parquet":
        scores.assign(y=y).to_parquet(path := tmp_path / "a.parquet")
    else:
        parts = [y, scores] if place == "first" else [scores, y]
        table = scores.assign(y=y) if place == "replaced" else pd.concat(parts, axis=1)
        table.to_csv(path, index=False)
    with pytest.raises(DataError):
        read_task(path)


CANDIDATES = RNG.normal(size=(30, 20))
USERS = np.array([f"u{j}" for j in range(30)])
OWN_RANKS = SourceTask.from_negatives(CANDIDATES, USERS).ranks


def test_candidates_of_each_user(tmp_path):
    task = read_task(write_npz(tmp_path / "a", {"candidates": CANDIDATES, "y": USERS}))
    assert_same(task, SourceTask.from_negatives(CANDIDATES, USERS))
    halves = [
        write_npz(tmp_path / f"half{n}", {"candidates": CANDIDATES[n::2], "y": USERS[n::2]})
        for n in (0, 1)
    ]
    assert sorted(read_task(halves).ranks) == sorted(task.ranks)


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz", ".parquet"])
def test_ranks_in_tables(ending, tmp_path):
    def write(**columns):
        table, path = pd.DataFrame(columns), tmp_path / f"a{ending}"
        mark = "\t" if ending == ".tsv" else ","
        table.to_parquet(path) if ending == ".parquet" else table.to_csv(
            path, sep=mark, index=False
        )
        return path

    expected = SourceTask.from_ranks(OWN_RANKS, USERS, n_negatives=19)
    assert_same(read_task(write(y=USERS, ranks=OWN_RANKS, n_negatives=19)), expected)
    assert_same(read_task(write(y=USERS, ranks=OWN_RANKS), n_negatives=19), expected)
    expected = SourceTask.from_ranks(RANKS, Y, n_classes=5)
    assert_same(read_task(write(y=Y, ranks=RANKS, n_classes=5)), expected)
    cut = SourceTask.from_ranks(np.minimum(RANKS, 3), Y, n_classes=5, truncated_at=2)
    read = read_task(write(y=Y, ranks=np.minimum(RANKS, 3), n_classes=5, truncated_at=2))
    assert read.accuracy_bounds([5])[0] == cut.accuracy_bounds([5])[0]
    with pytest.raises(DataError):
        read_task(write(y=Y, ranks=RANKS, n_classes=np.arange(8)))


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz", ".tsv.gz"])
def test_tables_of_text(ending, tmp_path):
    frame = pd.DataFrame(SCORES, columns=NAMES).assign(y=NAMES[Y])
    path = tmp_path / f"A{ending.upper() if ending == '.tsv' else ending}"
    frame.to_csv(path, index=False, sep="\t" if "tsv" in ending else ",")
    assert_same(read_task(path), SourceTask.from_scores(SCORES, NAMES[Y], classes=NAMES))
    np.save(tmp_path / "scores.npy", SCORES)
    (tmp_path / "y.txt.gz").write_bytes(gzip.compress("\r\n".join(map(str, Y)).encode()))
    task = read_task(tmp_path / "scores.npy", tmp_path / "y.txt.gz")
    assert task.y.tolist() == Y.tolist()


@pytest.mark.parametrize("packed", [bytes, gzip.compress])
def test_standard_input(packed, monkeypatch):
    frame = pd.DataFrame(SCORES, columns=NAMES).assign(y=NAMES[Y])
    stream = io.TextIOWrapper(io.BytesIO(packed(frame.to_csv(index=False).encode())))
    monkeypatch.setattr("sys.stdin", stream)
    assert_same(read_task("-"), SourceTask.from_scores(SCORES, NAMES[Y], classes=NAMES))


def test_numbers_of_instances_in_the_table_of_a_curve(tmp_path):
    n_test = [40, 30, 20]
    pd.DataFrame(CURVE).assign(n_test=n_test).to_csv(tmp_path / "a.csv", index=False)
    expected = SourceTask.from_accuracies(**CURVE, n_test=n_test, n_classes=5)
    task = read_task(tmp_path / "a.csv", n_classes=5)
    np.testing.assert_array_equal(task.accuracy_cov([2, 3, 5]), expected.accuracy_cov([2, 3, 5]))


def test_confusion_matrices_in_tables(tmp_path):
    y, predicted = np.array(list("aaabbbccc")), np.array(list("aabbbcccc"))
    expected = SourceTask.from_confusion(pd.crosstab(y, predicted))
    for margins in (False, True):
        pd.crosstab(y, predicted, margins=margins).to_csv(tmp_path / "a.csv")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "counts: left out the last row")
            task = read_task(tmp_path / "a.csv")
        assert task.classes == list("abc")
        assert task.accuracy([3]) == expected.accuracy([3])


def test_parquet_of_other_types(tmp_path):
    # Whole numbers as names, categories, an index, single precision.
    table = pd.DataFrame(SCORES.astype("f4"), columns=list("01234")).assign(y=Y)
    expected = SourceTask.from_scores(SCORES.astype("f4"), Y.astype(str), classes=list("01234"))
    for labels in (Y, Y.astype(str), pd.Categorical(Y.astype(str)), pd.array(Y)):
        table.assign(y=labels).rename_axis("id").to_parquet(tmp_path / "a.parquet")
        assert_same(read_task(tmp_path / "a.parquet"), expected)


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_csv_of_other_systems(tmp_path, encoding, end):
    rows = [",".join(map(str, row)) + f",{NAMES[j]}" for row, j in zip(SCORES, Y, strict=True)]
    (tmp_path / "a.csv").write_bytes(end.join([",".join([*NAMES, "y"]), *rows]).encode(encoding))
    expected = SourceTask.from_scores(SCORES, NAMES[Y], classes=NAMES)
    assert_same(read_task(tmp_path / "a.csv"), expected)


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


def test_matrices_stay_on_the_disk(tmp_path):
    files = tmp_path / "a.npy", tmp_path / "y.npy"
    for n_test in (1000, 40_000):  # the first compiles
        np.save(files[0], np.random.default_rng(1).random((n_test, 500), np.float32))
        np.save(files[1], np.arange(n_test) % 500)
        if n_test > 1000:
            tracemalloc.start()
        task = read_task(*files)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert task.n_test == 40_000 and peak < 0.5 * files[0].stat().st_size


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_labels_in_files_of_their_own(start, tmp_path):
    np.save(tmp_path / "scores.npy", SCORES)
    np.save(tmp_path / "y.npy", Y)
    path = tmp_path / "y.txt"
    path.write_bytes(start + ("\n".join(map(str, Y)) + "\n").encode())
    for labels in ("y.npy", "y.txt"):
        task = read_task(str(tmp_path / "scores.npy"), tmp_path / labels)
        assert_same(task, SourceTask.from_scores(SCORES, Y))
    assert read_task(tmp_path / "scores.npy", path, classes=list("abcde")).y.tolist() == Y.tolist()
    with pytest.raises(DataError):
        read_task(tmp_path / "scores.npy", path, classes=list("78912"))
    # Beyond 64 bits, with zeros before, and like numbers: names all the same.
    for names in (
        NAMES,
        [f"{10**20 + j}" for j in range(5)],
        [f"0{j + 1}" for j in range(5)],
        [f"{4 - j}_0" for j in range(5)],
    ):
        path.write_bytes(start + "\r\n".join(names[j] for j in Y).encode())
        task = read_task(tmp_path / "scores.npy", path, classes=names)
        assert task.y.tolist() == Y.tolist() and task.classes == list(names)
    path.write_text("1\n\n2\n")
    with pytest.raises(DataError, match="line 2"):
        read_task(tmp_path / "scores.npy", path)


@pytest.mark.parametrize("form", ["%.18e", "%d", "%.1f"])
def test_labels_of_savetxt(form, tmp_path):
    np.save(tmp_path / "scores.npy", SCORES)
    np.savetxt(tmp_path / "y.txt", Y.astype(float), fmt=form)
    assert read_task(tmp_path / "scores.npy", tmp_path / "y.txt").y.tolist() == Y.tolist()
    np.savetxt(tmp_path / "half.txt", Y + 0.5)
    with pytest.raises(DataError):
        read_task(tmp_path / "scores.npy", tmp_path / "half.txt")


@pytest.mark.parametrize("shape", [(-1, 1), (1, -1)])
def test_labels_in_a_column_or_a_row(shape, tmp_path):
    for number, (make, arrays) in enumerate(LAYOUTS[:-1]):
        expected = make(**arrays)
        arrays = {**arrays, "y": arrays["y"].reshape(shape)}
        assert_same(make(**arrays), expected)
        assert_same(read_task(write_npz(tmp_path / f"{number}", arrays)), expected)


@pytest.mark.parametrize("given", ["nowhere", "file", "argument"])
def test_a_default_distance_is_noted(given, tmp_path):
    arrays = {"probes": PROBES, "gallery": GALLERY, "y": Y}
    arrays |= {"distance": "sqeuclidean"} if given == "file" else {}
    arguments = {"distance": "sqeuclidean"} if given == "argument" else {}
    path = write_npz(tmp_path / "a", arrays)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_task(path, **arguments)
    assert len(caught) == (given == "nowhere")
    assert all("squared Euclidean" in str(one.message) for one in caught)


def test_arguments_override_the_file(tmp_path):
    arrays = {"probes": PROBES, "gallery": GALLERY, "y": Y, "distance": "dot"}
    expected = SourceTask.from_embeddings(PROBES, GALLERY, Y, distance="cosine")
    assert_same(read_task(write_npz(tmp_path / "a", arrays), distance="cosine"), expected)
    # A design is in the file, or an argument in its place.
    path = write_npz(tmp_path / "b", {"scores": SCORES, "y": Y, "groups": [0, 0, 1, 1, 2]})
    drawn = Sampling(groups=[0, 0, 1, 1, 2])
    assert_same(read_task(path), SourceTask.from_scores(SCORES, Y, sampling=drawn))
    assert_same(read_task(path, sampling=Sampling()), SourceTask.from_scores(SCORES, Y))
    with pytest.raises(DataError):
        read_task(path, sampling=Sampling(), groups=[0, 0, 1, 1, 2])


def test_ties_of_a_file_are_broken_like_those_of_arrays(tmp_path):
    scores, y = np.zeros((40, 10)), np.arange(40) % 10
    path = write_npz(tmp_path / "a", {"scores": scores, "y": y})
    for options in ({}, {"random_seed": 0}, {"random_seed": 5}, {"ties": "pessimistic"}):
        expected = SourceTask.from_scores(scores, y, **options).ranks
        assert np.array_equal(read_task(path, **options).ranks, expected)
    drawn = [read_task(path, random_seed=None).ranks for _ in range(2)]
    assert not np.array_equal(*drawn)


# Many files


@pytest.mark.filterwarnings("ignore:each of .* parts tests all")  # some splits do
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["npz", "npy", ".csv", ".parquet"]),
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
    is_table, names = kind in (".csv", ".parquet"), NAMES[:k1]
    labels, options = (names[y], {"classes": names}) if named or is_table else (y, {})
    if kind == "npy" or is_table:
        layout = "scores"
    arrays, same, make = {
        "scores": ({"scores": scores}, {}, SourceTask.from_scores),
        "probes": (
            {"probes": probes},
            {"gallery": gallery, "distance": "sqeuclidean"},
            SourceTask.from_embeddings,
        ),
        "ranks": ({"ranks": rng.integers(1, k1 + 1, n)}, {"n_classes": k1}, SourceTask.from_ranks),
    }[layout]
    seeded = {} if layout == "ranks" else {"random_seed": 3}
    expected = make(**arrays, y=labels, **same, **options, **seeded)
    ends = np.sort(rng.choice(np.arange(1, n), n_files - 1, replace=False))
    files, label_files = [], []
    for number, rows in enumerate(np.split(np.arange(n), ends)):
        stem = folder / f"part{number}"
        if kind == "npy":
            np.save(stem.with_suffix(".npy"), scores[rows])
            np.save(folder / f"y{number}.npy", labels[rows])
            files.append(stem.with_suffix(".npy"))
            label_files.append(folder / f"y{number}.npy")
        elif is_table:
            files.append(write_table(stem, kind, scores[rows], y[rows], names))
        else:
            own = {name: array[rows] for name, array in (arrays | {"y": labels}).items()}
            files.append(write_npz(stem, own | same | options))
    given_here = options if kind == "npy" else {}
    assert_same(read_task(files, label_files, **given_here, random_seed=3), expected)


def test_a_file_for_each_class(tmp_path):
    # With arrays of other names beside those that are known.
    files = []
    for number in range(5):
        rows = np.flatnonzero(np.equal(Y, number))
        arrays = {"scores": SCORES[rows], "y": Y[rows], "id": rows, f"only{number}": rows}
        arrays["accuracy"] = np.array([0.5, number])
        files.append(write_npz(tmp_path / f"class{number}", arrays))
    order = np.argsort(Y, kind="stable")
    with pytest.warns(UserWarning, match="only4"):
        task = read_task(files)
    assert_same(task, SourceTask.from_scores(SCORES[order], Y[order]))


def test_templates_and_tested_classes_of_many_files(tmp_path):
    arrays = {"probes": PROBES, "y": Y}
    files = [
        write_npz(tmp_path / f"part{number}", arrays | {"gallery": gallery})
        for number, gallery in enumerate([GALLERY, GALLERY + np.eye(5, 3, -1)])
    ]
    with pytest.raises(DataError, match="part1"):
        read_task(files)
    files = [
        write_npz(tmp_path / f"part{rows[0]}", {"scores": SCORES[rows], "y": Y[rows] % 4})
        for rows in ([0, 1], [2, 5])
    ]
    with pytest.raises(DataError):
        read_task(files)
    assert read_task(files, untested="competitors").n_classes == 5


# Runs of TREC

QRELS = {f"q{i}": {f"d{i}": 1, f"d{i + 1}": 0, f'"{i % 3}': 2 * (i % 2)} for i in range(8)}
# Queries 2 and 6 find no relevant document.
RUN = {
    f"q{i}": {f"d{(i + 2 * j) % 12}": 0.1 * j for j in range(i % 4 // 2, 5)}
    | ({f'"{i % 3}': 0.15} if i % 4 else {})
    for i in range(8)
}


def write_trec(path, values, blank=" ", end="\n", part=slice(None)):
    """Write judgements or a run, packed if the name says so."""
    middle = ["0", "{d}", "{x}"] if values is QRELS else ["Q0", "{d}", "7", "{x}", "tag"]
    form = blank.join(["{q}", *middle]) + end
    lines = [form.format(q=q, d=d, x=x) for q, found in values.items() for d, x in found.items()]
    content = "".join(lines[part]).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def same_run(task, other):
    assert task.y.tolist() == other.y.tolist() and task.n_classes == other.n_classes
    k = range(2, other.n_classes + 1)
    np.testing.assert_array_equal(task.accuracy_bounds(k), other.accuracy_bounds(k))


@pytest.mark.parametrize("name", ["my.run", "my.run.gz", "run", "my.txt"])
@pytest.mark.parametrize(("blank", "end"), [(" ", "\n"), ("\t", "\r\n"), ("  ", " \n\n")])
def test_a_run(tmp_path, name, blank, end):
    run = write_trec(tmp_path / name, RUN, blank, end)
    judged = write_trec(tmp_path / "qrels.gz", QRELS, blank, end)
    task = read_task(run, qrels=judged, n_classes=50)
    same_run(task, SourceTask.from_run(QRELS, RUN, n_classes=50))


def test_parts_of_a_run(tmp_path):
    qrels = write_trec(tmp_path / "qrels", QRELS)
    files = [write_trec(tmp_path / f"{i}", RUN, part=slice(i, None, 3)) for i in range(3)]
    expected = SourceTask.from_run(QRELS, RUN, n_classes=50)
    same_run(read_task(files, qrels=qrels, n_classes=50), expected)
    (tmp_path / "more").write_text("q1 Q0 d1 1 0.5 tag")
    with pytest.raises(DataError):
        read_task([*files, tmp_path / "more"], qrels=qrels, n_classes=50)


def test_comments_and_text_after_the_tag(tmp_path):
    """As trec_eval reads them; names of documents may contain the sign of comments."""
    qrels = {"q1": {"d#7": 1, "#d": 0}, "q2": {"d3": 1}}
    run = {"q1": {"d4": 9.0, "d#7": 8.5}, "q2": {"d3": 0.5}}
    (tmp_path / "qrels").write_text(
        "# of four words\nq1 0 d#7 1\n  # more\nq1 0 #d 0\n# a b c d e f\nq2 0 d3 1\n#end"
    )
    (tmp_path / "run").write_text(
        "# six words make no entry\nq1 Q0 d4 1 9 my run\n#\n"
        "q1 Q0 d#7 2 8.5 my\nq2 Q0 d3 1 0.5 my best run of 9\n"
    )
    expected = SourceTask.from_run(qrels, run, n_classes=9)
    same_run(read_task(tmp_path / "run", qrels=tmp_path / "qrels", n_classes=9), expected)
    (tmp_path / "qrels").write_text("q1 0 d#7 1 more\nq2 0 d3 1\n")  # trec_eval refuses it too
    with pytest.raises(DataError):
        read_task(tmp_path / "run", qrels=tmp_path / "qrels", n_classes=9)


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_files_of_ranx(ending, tmp_path):
    paths = {}
    for name, values in {"run": RUN, "qrels": QRELS}.items():
        paths[name] = tmp_path / f"{name}.{ending}"
        rows = [(q, d, x) for q, listed in values.items() for d, x in listed.items()]
        if ending == "json":
            paths[name].write_text(json.dumps(values))
        else:
            pd.DataFrame(rows, columns=["q_id", "doc_id", "score"]).to_parquet(paths[name])
    expected = SourceTask.from_run(QRELS, RUN, n_classes=50)
    same_run(read_task(paths["run"], qrels=paths["qrels"], n_classes=50), expected)
    trec = write_trec(tmp_path / "trec", RUN)  # in any combination
    same_run(read_task(trec, qrels=paths["qrels"], n_classes=50), expected)


BEIR = {"q": "query-id", "d": "corpus-id", "x": "score"}
BENCHMARKS = [
    ("a.tsv", True, BEIR, BEIR),
    ("a.csv", True, BEIR, BEIR),
    ("a.tsv.gz", True, BEIR, BEIR),
    (
        "a.csv",
        True,
        {"q": "qid", "d": "docno", "x": "label"},
        {"q": "qid", "d": "docno", "x": "score"},
    ),
    ("a.parquet", True, {"q": "q_id", "d": "doc_id", "x": "score"}, BEIR),
    # MS MARCO
    (
        "a.tsv",
        False,
        dict.fromkeys(["q", "0", "d", "x"], ""),
        dict.fromkeys(["q", "d", "rank"], ""),
    ),
]


@pytest.mark.parametrize(("name", "has_header", "of_qrels", "of_run"), BENCHMARKS)
def test_files_of_benchmarks(name, has_header, of_qrels, of_run, tmp_path):
    paths = {}
    for values, columns, kind in ((QRELS, of_qrels, "qrels"), (RUN, of_run, "run")):
        rows = [(q, 0, d, x) for q, listed in values.items() for d, x in listed.items()]
        table = pd.DataFrame(rows, columns=["q", "0", "d", "x"])
        if kind == "run":
            table = table.sort_values(["q", "x", "d"], ascending=[True, False, False])
        table["rank"] = table.groupby("q").cumcount() + 1
        table = table[[*columns]].rename(columns=columns)
        paths[kind] = tmp_path / f"{kind}-{name}"
        if name.endswith("parquet"):
            table.to_parquet(paths[kind])
        else:
            written = {"sep": "," if "csv" in name else "\t", "header": has_header}
            table.to_csv(paths[kind], index=False, quoting=csv.QUOTE_NONE, **written)
    task = read_task(paths["run"], qrels=paths["qrels"], n_classes=50)
    same_run(task, SourceTask.from_run(QRELS, RUN, n_classes=50))


def test_a_query_without_documents_is_unanswered_and_not_missing(tmp_path):
    run, few = tmp_path / "a.json", tmp_path / "few.json"
    run.write_text(json.dumps({"q1": {"d1": 1.0}, "q3": {}}))
    few.write_text(json.dumps({query: QRELS[query] for query in ("q1", "q3")}))
    assert read_task(run, qrels=few, n_classes=50).n_test == 2


def test_settings_reach_the_run(tmp_path):
    few = {query: RUN[query] for query in ("q1", "q3", "q5")}
    run, qrels = write_trec(tmp_path / "run", few), write_trec(tmp_path / "qrels", QRELS)
    for level, missing, n in ((1, "unanswered", 8), (1, "unsearched", 3), (2, "unanswered", 4)):
        options = {"n_classes": 50, "relevance_level": level, "missing": missing}
        task = read_task(run, qrels=qrels, **options)
        same_run(task, SourceTask.from_run(QRELS, few, **options))
        assert task.n_test == n
