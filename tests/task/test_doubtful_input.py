"""Input that NumPy takes in another sense than it is meant: refused, or read as it is meant."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

from classex_bayes.exceptions import DataError, ExtrapolationWarning
from classex_bayes.task.source_task import SourceTask

RNG = np.random.default_rng(1)
Y = np.arange(20) % 10
SCORES = RNG.normal(size=(20, 10)) + np.eye(10)[Y]
NAMES = list("jihgfedcba")
MASKED = np.ma.array(SCORES, mask=np.arange(200).reshape(20, 10) == 34)
LARGE = 2**60 + np.arange(200).reshape(20, 10)  # equal in double precision
SCORED = SourceTask.from_scores(SCORES, Y)


@pytest.mark.parametrize(
    "scores",
    [list(MASKED), da.from_array(MASKED, chunks=(5, 10), asarray=False)],
    ids=["rows", "dask"],
)
def test_masks_of_rows_and_chunks(scores):
    with pytest.raises(DataError, match=r"found (a masked value|masked values)"):
        SourceTask.from_scores(scores, Y)


@pytest.mark.parametrize("kind", [set, frozenset, dict.fromkeys])
def test_names_without_an_order(kind):
    with pytest.raises(DataError, match=r"classes: .* pass a list"):
        SourceTask.from_scores(SCORES, Y, classes=kind(NAMES))
    assert SourceTask.from_scores(SCORES, Y, classes=dict.fromkeys(NAMES).keys()).classes == NAMES


def labelled(values, **coords):
    return xr.DataArray(values, dims=("test", "class")[: np.ndim(values)], coords=coords)


def test_coordinates_name_the_classes():
    scores, y = labelled(SCORES, **{"class": NAMES}), [NAMES[j] for j in Y]
    weight = xr.DataArray(np.arange(1, 11), dims="class", coords={"class": sorted(NAMES)})
    task = SourceTask.from_scores(scores, y, class_weight=weight)
    assert task.classes == NAMES
    assert_array_equal(task.ranks, SCORED.ranks)
    assert_allclose(task.table.class_weight * 55, np.arange(10, 0, -1))
    assert_array_equal(SourceTask.from_scores(labelled(SCORES), labelled(Y)).ranks, SCORED.ranks)
    with pytest.raises(DataError, match="same names in another order; column 0 is 'j'"):
        SourceTask.from_scores(scores, y, classes=sorted(NAMES))


@pytest.mark.parametrize(
    "make",
    [
        lambda first, y: SourceTask.from_scores(labelled(SCORES, test=first), y),
        lambda first, y: SourceTask.from_embeddings(labelled(SCORES, test=first), SCORES[:10], y),
        lambda first, y: SourceTask.from_ranks(labelled(Y + 1, test=first), y, n_classes=10),
    ],
    ids=["scores", "embeddings", "ranks"],
)
def test_coordinates_that_disagree(make):
    y = labelled(Y, test=np.arange(20))
    make(np.arange(20), y)
    with pytest.raises(DataError, match=r"y: the index has the entries of that of \w+ in another"):
        make(np.arange(20)[::-1], y)


@pytest.mark.parametrize("metric", ["cosine", "sqeuclidean", "dot"])
@pytest.mark.parametrize("power", [-310, -170, -160, -157, -154, -151, -130, -20, 130, 145, 160])
def test_the_unit_of_embeddings_is_refused_or_does_not_matter(metric, power):
    rng = np.random.default_rng(2)
    probes, gallery = rng.normal(size=(30, 6)), rng.normal(size=(10, 6))
    y, scale = np.arange(30) % 10, 10.0**power
    wide = np.longdouble  # of more exponents than the code under test has
    left, right = (values.astype(wide) * wide(scale) for values in (probes, gallery))
    products, squares = left @ right.T, [(v**2).sum(axis=1) for v in (left, right)]
    scores = {
        "dot": products,
        "cosine": products / np.sqrt(np.outer(*squares)),
        "sqeuclidean": 2 * products - squares[1] - squares[0][:, None],
    }[metric]
    expected = (scores > scores[np.arange(30), y][:, None]).sum(axis=1) + 1
    if -152 < power < 140:
        task = SourceTask.from_embeddings(probes * scale, gallery * scale, y, distance=metric)
        assert_array_equal(task.ranks, expected)
    else:
        with pytest.raises(DataError, match=r"at (least 1e-152|most 1e\+140)"):
            SourceTask.from_embeddings(probes * scale, gallery * scale, y, distance=metric)


def test_templates_that_differ_by_less_than_squares_can_hold():
    gallery = np.random.default_rng(3).normal(size=(10, 6)) * 1e-160
    gallery[:, 0] = 1
    with pytest.raises(DataError, match=r"gallery: the largest difference of a template"):
        SourceTask.from_embeddings(SCORES[:, :6], gallery, Y)


def test_one_tiny_vector():
    probes = SCORES[:, :6].copy()
    probes[3] *= 1e-170
    for metric in ("cosine", "dot"):
        with pytest.raises(DataError, match="probes: the largest number of row 3 is"):
            SourceTask.from_embeddings(probes, SCORES[:10, :6], Y, distance=metric)
    # Near the origin it is a vector like others.
    SourceTask.from_embeddings(probes, SCORES[:10, :6], Y)


def test_whole_numbers_beyond_doubles_alone():
    expected = (LARGE[np.arange(20), Y][:, None] < LARGE).sum(axis=1) + 1
    for scores in (LARGE, LARGE.tolist(), pd.DataFrame(LARGE)):
        assert_array_equal(SourceTask.from_scores(scores, Y).ranks, expected)
    small = np.arange(200).reshape(20, 10).tolist()
    SourceTask.from_scores([[*row[:-1], 0.5] for row in small], Y)


def test_labels_that_doubles_do_not_tell_apart():
    classes = [2**53 + j for j in range(10)]
    with pytest.raises(DataError, match=r"y: found 9007199254740992.0; double precision does not"):
        SourceTask.from_scores(SCORES, Y + 2.0**53, classes=classes)
    assert_array_equal(
        SourceTask.from_scores(SCORES, Y + 2**53, classes=classes).ranks, SCORED.ranks
    )


def test_rows_with_labels_of_their_own():
    rows = [pd.Series(row, index=NAMES) for row in SCORES]
    assert_array_equal(SourceTask.from_scores(rows, Y).ranks, SCORED.ranks)
    with pytest.raises(DataError, match="scores: expected an array, found an xarray Dataset"):
        SourceTask.from_scores(labelled(SCORES).to_dataset(name="scores"), Y)


def test_an_index_is_no_competitor():
    frame = pd.DataFrame(SCORES).add_prefix("c")
    for name in ("Unnamed: 0", "", " "):
        with pytest.raises(DataError, match=r"scores: column 0 has no name .* is an index"):
            SourceTask.from_scores(
                pd.concat([pd.Series(range(20), name=name), frame], axis=1),
                [f"c{j}" for j in Y],
                untested="competitors",
            )


def test_more_classes_than_fit_into_memory():
    with pytest.raises(DataError, match="n_classes: found 1000000000000, expected at most"):
        SourceTask.from_ranks([1, 2], [0, 1], n_classes=10**12, untested="competitors")


def test_small_rises_add_up():
    k, accuracy = np.arange(2, 11), np.linspace(0.5, 0.9, 9)
    with pytest.warns(ExtrapolationWarning, match=r"increases from 0.5 at k = 2 to 0.9 at k = 10"):
        SourceTask.from_accuracies(k, accuracy, n_test=40, n_classes=10)
    with pytest.raises(DataError, match=r"increases from 0.5 at k = 2 to 0.9 at k = 10"):
        SourceTask.from_accuracies(k, accuracy, n_test=400, n_classes=10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SourceTask.from_accuracies(k, accuracy[::-1], n_test=400, n_classes=10)
