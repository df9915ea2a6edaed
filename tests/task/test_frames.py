"""Frames of pandas and polars give the tasks of the arrays they hold."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import assert_same_task
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes import SourceTask
from classex_bayes.exceptions import DataError

NAMES = np.array(["ant", "bee", "cat", "dog"])
Y = np.array([0, 1, 2, 3, 3, 1])
SCORES = np.random.default_rng(0).normal(size=(6, 4)) + np.eye(4)[Y]
COLUMNS = {
    "pandas": pd.Series,
    "polars": pl.Series,
    "categories": lambda x: pd.Series(x, dtype="category"),
    "enum": lambda x: pl.Series(x).cast(pl.Categorical),
    "string": lambda x: pd.Series(x, dtype="string"),
    "arrow": lambda x: pd.Series(x, dtype="string[pyarrow]"),
    "index": pd.Index,
    "pandas frame": lambda x: pd.DataFrame({"label": x}),
    "polars frame": lambda x: pl.DataFrame({"label": x}),
}
NUMBERS = {
    "pandas": pd.Series,
    "polars": pl.Series,
    "nullable": lambda x: pd.Series(x).convert_dtypes(),
    "arrow": lambda x: pd.Series(x).convert_dtypes(dtype_backend="pyarrow"),
    "categories": lambda x: pd.Series(x, dtype="category"),
    "extension array": pd.array,
    "polars frame": lambda x: pl.DataFrame({"number": x}),
}


@given(
    seed=st.integers(0, 2**32 - 1),
    library=st.sampled_from(["pandas", "polars", "nullable", "arrow"]),
    dtypes=st.lists(st.sampled_from(["f4", "f8", "i2", "i8", "u1"]), min_size=4, max_size=4),
)
def test_any_numbers(seed, library, dtypes):
    # Whole numbers below 100 are the same in every type; ties break by the seed.
    scores = np.random.default_rng(seed).integers(0, 100, (6, 4))
    columns = {n: scores[:, j].astype(dtypes[j]) for j, n in enumerate(NAMES)}
    frame = pl.DataFrame(columns) if library == "polars" else pd.DataFrame(columns)
    if library in ("nullable", "arrow"):
        backend = {"nullable": "numpy_nullable", "arrow": "pyarrow"}[library]
        frame = frame.convert_dtypes(dtype_backend=backend)
    expected = SourceTask.from_scores(scores, Y, random_seed=1)
    assert_same_task(SourceTask.from_scores(frame, Y, random_seed=1), expected)
    named = SourceTask.from_scores(frame, pd.Series(NAMES[Y]), random_seed=1)
    assert_same_task(named, expected, NAMES.tolist())


def test_numbers_beyond_double_precision_keep_their_order():
    scores = 2**60 + np.random.default_rng(1).integers(0, 9, (6, 4))
    for frame in (pl.DataFrame(scores), pd.DataFrame(scores).convert_dtypes()):
        found = SourceTask.from_scores(frame, Y, random_seed=1)
        assert_same_task(found, SourceTask.from_scores(scores, Y, random_seed=1))


@pytest.mark.parametrize("labels", COLUMNS)
def test_names(labels):
    expected = SourceTask.from_scores(SCORES, Y)
    y = COLUMNS[labels](NAMES[Y].tolist())
    frames = (pd.DataFrame(SCORES, columns=NAMES), pl.DataFrame(SCORES, schema=NAMES.tolist()))
    for frame in frames:
        assert_same_task(SourceTask.from_scores(frame, y), expected, NAMES.tolist())
    found = SourceTask.from_scores(SCORES, y, classes=pl.Series(NAMES))
    assert_same_task(found, expected, NAMES.tolist())


@pytest.mark.parametrize("numbers", NUMBERS)
def test_positions_and_every_argument(numbers):
    make = NUMBERS[numbers]
    expected = SourceTask.from_scores(SCORES, Y)
    for frame in (pd.DataFrame(SCORES), pl.DataFrame(SCORES), pd.DataFrame(SCORES, columns=NAMES)):
        assert_same_task(SourceTask.from_scores(frame, make(Y)), expected)
    ranks = SourceTask.from_ranks(expected.ranks, Y, n_classes=4)
    assert_same_task(SourceTask.from_ranks(make(expected.ranks), make(Y), n_classes=4), ranks)
    curve = {"k": [2, 3, 4], "accuracy": [0.9, 0.8, 0.7]}
    found = SourceTask.from_accuracies(
        **{name: make(np.array(value)) for name, value in curve.items()}, n_test=9, n_classes=4
    )
    assert_same_task(found, SourceTask.from_accuracies(**curve, n_test=9, n_classes=4))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_embeddings(frame):
    rng = np.random.default_rng(2)
    probes, gallery, gallery_y = rng.normal(size=(6, 3)), rng.normal(size=(8, 3)), np.arange(8) % 4
    expected = SourceTask.from_embeddings(probes, gallery, Y, gallery_y=gallery_y)
    found = SourceTask.from_embeddings(
        frame(probes), frame(gallery), frame({"y": Y}), gallery_y=pl.Series(gallery_y)
    )
    assert_same_task(found, expected, [0, 1, 2, 3])


def test_weights():
    weight = np.array([1.0, 2, 3, 4])
    expected = SourceTask.from_scores(SCORES, Y, class_weight=weight)
    for given_weight in (pl.Series(weight), pd.array(weight), pd.Series(weight, dtype="Float64")):
        assert_same_task(SourceTask.from_scores(SCORES, Y, class_weight=given_weight), expected)


FRAME = pd.DataFrame(SCORES, columns=NAMES)
ORDER = [1, 0, 2, 3, 4, 5]


def test_rows_in_the_same_order():
    shuffled = FRAME.iloc[ORDER]
    expected = SourceTask.from_scores(SCORES[ORDER], Y[ORDER])
    assert_same_task(SourceTask.from_scores(shuffled, pd.Series(Y).iloc[ORDER]), expected)
    # Another index is no order.
    assert_same_task(
        SourceTask.from_scores(shuffled, pd.Series(Y[ORDER], list("uvwxyz"))), expected
    )
    for missing in (np.nan, pd.NA, pd.NaT):
        index = pd.Index(["a", missing, *"cdef"], dtype=object)
        named = pd.DataFrame(SCORES, index), pd.Series(Y, index)
        assert_same_task(SourceTask.from_scores(*named), SourceTask.from_scores(SCORES, Y))
    with pytest.raises(DataError):
        SourceTask.from_embeddings(
            SCORES, pd.DataFrame(np.eye(4)), Y, gallery_y=pd.Series(range(4), [3, 2, 1, 0])
        )


# Names and positions

PROBES = np.random.default_rng(3).normal(size=(6, 3))
GALLERY = np.random.default_rng(4).normal(size=(4, 3))
FEATURES = ["a", "b", "c"]
OTHER_NUMBERS = {
    "floats": ["0.0", "2.0", "1.0", "3.0"],
    "spaces": ["0", " 2", "1", "3"],
    "signs": ["0", "1", "+3", "2"],
}
PLAIN = {
    "floats": ["0.0", "1.0", "2.0", "3.0"],
    "numbered from 1": ["c1", "c2", "c3", "c4"],
    "keys": ["id77", "id9", "id12", "id5"],
    "different": ["c2", "d1", "c0", "d3"],
    "no numbers": ["nan", "inf", "cat", "dog"],
}


@pytest.mark.parametrize("names", OTHER_NUMBERS.values(), ids=OTHER_NUMBERS)
def test_names_that_look_like_other_numbers(names):
    k1 = len(names)
    scores, y = np.random.default_rng(5).normal(size=(k1, k1)), np.arange(k1)
    for frame in (pd.DataFrame(scores, columns=names), pl.DataFrame(scores, schema=names)):
        with pytest.raises(DataError):
            SourceTask.from_scores(frame, y)
    with pytest.raises(DataError):
        SourceTask.from_scores(scores, y, classes=names)
    with pytest.raises(DataError):
        SourceTask.from_ranks(y * 0 + 1, y, n_classes=k1, classes=names)
    with pytest.raises(DataError):
        SourceTask.from_embeddings(scores, pd.DataFrame(scores, names), y)
    # As text they are names.
    text = np.array(names)[y]
    expected = SourceTask.from_scores(scores, y)
    assert_same_task(SourceTask.from_scores(scores, text, classes=names), expected, names)


@pytest.mark.parametrize("names", PLAIN.values(), ids=PLAIN)
def test_numbers_beside_names_of_text_are_positions(names):
    expected = SourceTask.from_scores(SCORES, Y)
    assert_same_task(SourceTask.from_scores(pd.DataFrame(SCORES, columns=names), Y), expected)
    assert_same_task(SourceTask.from_scores(SCORES, Y, classes=names), expected, names)
    ranks = SourceTask.from_ranks(expected.ranks, Y, n_classes=4)
    found = SourceTask.from_ranks(expected.ranks, Y, n_classes=4, classes=names)
    assert_same_task(found, ranks, names)
    plain = SourceTask.from_embeddings(PROBES, GALLERY, Y)
    assert_same_task(SourceTask.from_embeddings(PROBES, GALLERY, Y, classes=names), plain, names)
    assert_same_task(SourceTask.from_embeddings(PROBES, pd.DataFrame(GALLERY, names), Y), plain)


@given(
    order=st.permutations(range(4)),
    names=st.sampled_from(
        [NAMES.tolist(), [101, 102, 105, 103], [7.5, 0, 9, 1], ["3", "1", "", "x"]]
    ),
)
def test_the_index_of_a_gallery_names_the_classes(order, names):
    gallery = pd.DataFrame(GALLERY, index=names).iloc[order]
    y = [names[j] for j in Y]
    own = gallery.index.tolist()
    expected = SourceTask.from_embeddings(PROBES, GALLERY[order], np.argsort(order)[Y])
    assert_same_task(SourceTask.from_embeddings(PROBES, gallery, y), expected, own)
    assert_same_task(
        SourceTask.from_embeddings(PROBES, gallery, y, classes=gallery.index), expected, own
    )
    # Rows go by position where y cannot be names.
    if names[0] in ("ant", 101):
        assert_same_task(
            SourceTask.from_embeddings(PROBES, gallery, np.argsort(order)[Y]), expected
        )


def test_an_index_of_positions_in_disorder():
    gallery = pd.DataFrame(GALLERY)
    expected = SourceTask.from_embeddings(PROBES, GALLERY, Y)
    assert_same_task(SourceTask.from_embeddings(PROBES, gallery, Y), expected)
    shuffled = gallery.iloc[[2, 0, 1, 3]]
    with pytest.raises(DataError):
        SourceTask.from_embeddings(PROBES, shuffled, Y)
    named = SourceTask.from_embeddings(PROBES, shuffled, Y, classes=shuffled.index)
    assert named.ranks.tolist() == expected.ranks.tolist()
    with pytest.raises(DataError):
        SourceTask.from_embeddings(PROBES, shuffled, Y, classes=range(4))
    with pytest.raises(DataError):
        SourceTask.from_embeddings(PROBES, pd.DataFrame(GALLERY, list("abca")), list("abcabc"))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_embeddings(library):
    def frame(values, names):
        wanted = pd.DataFrame(values, columns=names)
        return wanted if library == "pandas" else pl.DataFrame(wanted.to_dict("list"))

    expected = SourceTask.from_embeddings(PROBES, GALLERY, Y)
    for names in (FEATURES, ["x", "y", "z"]):
        found = SourceTask.from_embeddings(frame(PROBES, FEATURES), frame(GALLERY, names), Y)
        assert_same_task(found, expected)
    other = frame(GALLERY, ["a", "c", "b"])
    with pytest.raises(DataError):
        SourceTask.from_embeddings(frame(PROBES, FEATURES), other, Y)
