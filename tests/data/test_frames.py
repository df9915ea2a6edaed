"""Frames of pandas and polars give the tasks of the arrays they hold."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
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


def assert_same(task, other, names=None):
    assert (task.kind, task.classes, task.n_tied) == (other.kind, names, other.n_tied)
    k = other.grid()
    np.testing.assert_array_equal(task.accuracy(k), other.accuracy(k))
    np.testing.assert_array_equal(task.accuracy_cov(k), other.accuracy_cov(k))
    if other.kind != "accuracies":
        assert task.losses.tolist() == other.losses.tolist() and task.y.tolist() == other.y.tolist()


@settings(max_examples=40, deadline=None)
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
    assert_same(SourceTask.from_scores(frame, Y, random_seed=1), expected)
    named = SourceTask.from_scores(frame, pd.Series(NAMES[Y]), random_seed=1)
    assert_same(named, expected, NAMES.tolist())


def test_numbers_beyond_double_precision_keep_their_order():
    scores = 2**60 + np.random.default_rng(1).integers(0, 9, (6, 4))
    for frame in (pl.DataFrame(scores), pd.DataFrame(scores).convert_dtypes()):
        found = SourceTask.from_scores(frame, Y, random_seed=1)
        assert_same(found, SourceTask.from_scores(scores, Y, random_seed=1))


@pytest.mark.parametrize("labels", COLUMNS)
def test_names(labels):
    expected = SourceTask.from_scores(SCORES, Y)
    y = COLUMNS[labels](NAMES[Y].tolist())
    frames = (pd.DataFrame(SCORES, columns=NAMES), pl.DataFrame(SCORES, schema=NAMES.tolist()))
    for frame in frames:
        assert_same(SourceTask.from_scores(frame, y), expected, NAMES.tolist())
    found = SourceTask.from_scores(SCORES, y, classes=pl.Series(NAMES))
    assert_same(found, expected, NAMES.tolist())


@pytest.mark.parametrize("numbers", NUMBERS)
def test_positions_and_every_argument(numbers):
    make = NUMBERS[numbers]
    expected = SourceTask.from_scores(SCORES, Y)
    for frame in (pd.DataFrame(SCORES), pl.DataFrame(SCORES), pd.DataFrame(SCORES, columns=NAMES)):
        assert_same(SourceTask.from_scores(frame, make(Y)), expected)
    losses = SourceTask.from_losses(expected.losses, Y, n_classes=4)
    assert_same(SourceTask.from_losses(make(expected.losses), make(Y), n_classes=4), losses)
    curve = {"k": [2, 3, 4], "accuracy": [0.9, 0.8, 0.7]}
    found = SourceTask.from_accuracies(
        **{name: make(np.array(value)) for name, value in curve.items()}, n_test=9, n_classes=4
    )
    assert_same(found, SourceTask.from_accuracies(**curve, n_test=9, n_classes=4))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_embeddings(frame):
    rng = np.random.default_rng(2)
    probes, gallery, gallery_y = rng.normal(size=(6, 3)), rng.normal(size=(8, 3)), np.arange(8) % 4
    expected = SourceTask.from_embeddings(probes, gallery, Y, gallery_y=gallery_y)
    found = SourceTask.from_embeddings(
        frame(probes), frame(gallery), frame({"y": Y}), gallery_y=pl.Series(gallery_y)
    )
    assert_same(found, expected, [0, 1, 2, 3])


def test_weights():
    weight = np.array([1.0, 2, 3, 4])
    expected = SourceTask.from_scores(SCORES, Y, class_weight=weight)
    for given_weight in (pl.Series(weight), pd.array(weight), pd.Series(weight, dtype="Float64")):
        assert_same(SourceTask.from_scores(SCORES, Y, class_weight=given_weight), expected)


FRAME = pd.DataFrame(SCORES, columns=NAMES)
GAP = FRAME.where(np.arange(24).reshape(6, 4) != 18)
ORDER = [1, 0, 2, 3, 4, 5]
BAD = {
    "gap": (GAP, Y, "scores: found NaN at row 4, column 2"),
    "nullable gap": (GAP.convert_dtypes(), Y, "scores: found NaN at row 4, column 2"),
    "arrow gap": (
        GAP.convert_dtypes(dtype_backend="pyarrow"),
        Y,
        "scores: found NaN at row 4, column 2",
    ),
    "null": (
        pl.DataFrame(SCORES.round())
        .cast(pl.Int64)
        .with_row_index("n")
        .select(pl.when(pl.col("n") != 4).then(pl.col(f"column_{j}")) for j in range(4)),
        Y,
        "scores: found NaN at row 4, column 0",
    ),
    "text": (FRAME.assign(id="x"), Y, "scores: .*column 'id' of type object"),
    "text in polars": (pl.DataFrame(SCORES).with_columns(id=pl.lit("x")), Y, "column 'id' of type"),
    "truth": (FRAME.assign(ok=True), Y, "column 'ok' of type bool"),
    "no columns": (pd.DataFrame(index=range(6)), Y, "scores: "),
    "a series": (pd.Series(SCORES[:, 0]), Y, "scores: expected a matrix"),
    "plan": (pl.DataFrame(SCORES).lazy(), Y, r"scores: .*LazyFrame; pass scores.collect\(\)"),
    "missing label": (FRAME, pd.Series([*NAMES, None, "ant"]), "y: label (None|nan) at row 4"),
    "missing position": (FRAME, pd.array([0, 1, 2, 3, None, 0]), "y: found nan at row 4"),
    "null label": (FRAME, pl.Series([*NAMES.tolist(), None, "ant"]), "y: label None at row 4"),
    "unknown label": (FRAME, pl.Series([*NAMES.tolist(), "eel", "ant"]), "y: label 'eel' at row 4"),
    "two columns of labels": (FRAME, pd.DataFrame({"a": Y, "b": Y}), "y: expected one column"),
    "numbers as names": (
        pl.DataFrame(SCORES, schema=list("1234")),
        Y,
        "y: found numbers, and column 0 of scores is named '1'",
    ),
    "another order": (FRAME, pd.Series(Y).iloc[ORDER], "y: the index .* row 0 is 1, in scores 0"),
    "swapped": (pl.Series(Y), pl.DataFrame(SCORES), "scores, y: .*swapped"),
}


@pytest.mark.parametrize(("scores", "y", "message"), BAD.values(), ids=BAD)
def test_bad_frames(scores, y, message):
    with pytest.raises(DataError, match=message):
        SourceTask.from_scores(scores, y)


def test_rows_in_the_same_order():
    shuffled = FRAME.iloc[ORDER]
    expected = SourceTask.from_scores(SCORES[ORDER], Y[ORDER])
    assert_same(SourceTask.from_scores(shuffled, pd.Series(Y).iloc[ORDER]), expected)
    # Another index is no order.
    assert_same(SourceTask.from_scores(shuffled, pd.Series(Y[ORDER], list("uvwxyz"))), expected)
    with pytest.raises(DataError, match="gallery_y: the index"):
        SourceTask.from_embeddings(
            SCORES, pd.DataFrame(np.eye(4)), Y, gallery_y=pd.Series(range(4), [3, 2, 1, 0])
        )
