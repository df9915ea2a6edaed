"""Unusual input that is sound, or that NumPy would take in another sense than it is meant."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from bad_calls.general import animals, shards
from bad_calls.task import LABELS, NAMES, RANKS, SCORES, Y, curve, embeddings, put, ranks, scores
from numpy.testing import assert_allclose, assert_array_equal

import classex_bayes as cb
from classex_bayes.exceptions import ExtrapolationWarning

INF = float("inf")


def test_the_sound_input_is_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for make in (scores, embeddings, ranks, curve):
        assert make().n_classes == 4
    assert animals("").n_classes == 3 and shards().n_test == 8


def test_odd_but_valid_arguments():
    for seed in (0, np.int64(3), 2**70, np.random.SeedSequence(5), None):
        scores(random_seed=seed)
    scores(scores=np.ones((5, 4)))
    scores(scores=np.ma.array(SCORES), y=np.ma.array(Y))
    scores(scores=put((0, 1), -INF))
    scores(scores=pd.DataFrame(SCORES), y=pd.Series(Y, index=list("vwxyz")))
    scores(y=np.array(Y, dtype=float), higher_is_better=np.True_)
    scores(y=LABELS, classes=iter(NAMES))
    scores(y=LABELS, classes=pd.Index(NAMES))
    assert scores(y=LABELS, classes=dict.fromkeys("abcd").keys()).classes == list("abcd")
    embeddings(probes=put(2, 0), distance="dot")
    embeddings(probes=put(3, 1e-170))  # near the origin it is a vector like others
    ranks(ranks=np.array([1.0, 2, 1, 3, 1]), n_classes=np.float64(4))
    curve(n_test=50.0, n_classes=np.int32(4), design_effect=1)
    assert_allclose(scores(class_weight=[1e308] * 4).accuracy([2, 4]), scores().accuracy([2, 4]))
    assert scores().accuracy(range(2, 5)).shape == (3,)
    assert isinstance(scores().accuracy(np.float64(3)), float)
    small = np.arange(20).reshape(5, 4).tolist()
    scores(scores=[[*row[:-1], 0.5] for row in small])


def labelled(values, **coords):
    return xr.DataArray(values, dims=("test", "class")[: np.ndim(values)], coords=coords)


def test_coordinates_name_the_classes():
    names = list("dcba")
    named, y = labelled(SCORES, **{"class": names}), [names[j] for j in Y]
    weight = xr.DataArray(np.arange(1, 5), dims="class", coords={"class": sorted(names)})
    task = scores(scores=named, y=y, class_weight=weight)
    assert task.classes == names
    assert_array_equal(task.ranks, scores().ranks)
    same = scores(class_weight=np.arange(4, 0, -1))
    assert_array_equal(task.accuracy([2, 3, 4]), same.accuracy([2, 3, 4]))
    assert_array_equal(scores(scores=labelled(SCORES), y=labelled(Y)).ranks, scores().ranks)
    rows = [pd.Series(row, index=names) for row in SCORES]
    assert_array_equal(scores(scores=rows).ranks, scores().ranks)


@pytest.mark.parametrize(
    ("make", "name"), [(scores, "scores"), (embeddings, "probes"), (ranks, "ranks")]
)
def test_coordinates_that_disagree(make, name):
    values = np.asarray(RANKS["ranks"] if name == "ranks" else SCORES)
    y = labelled(Y, test=np.arange(5))
    make(**{name: labelled(values, test=np.arange(5)), "y": y})
    with pytest.raises(cb.DataError):
        make(**{name: labelled(values, test=np.arange(5)[::-1]), "y": y})


@pytest.mark.parametrize("distance", ["cosine", "sqeuclidean", "dot"])
@pytest.mark.parametrize("power", [-310, -170, -160, -157, -154, -151, -130, -20, 130, 145, 160])
def test_the_unit_of_embeddings_is_refused_or_does_not_matter(distance, power):
    rng = np.random.default_rng(2)
    probes, gallery = rng.normal(size=(30, 6)), rng.normal(size=(10, 6))
    y, scale = np.arange(30) % 10, 10.0**power
    wide = np.longdouble  # of more exponents than the code under test has
    left, right = (values.astype(wide) * wide(scale) for values in (probes, gallery))
    products, squares = left @ right.T, [(v**2).sum(axis=1) for v in (left, right)]
    exact = {
        "dot": products,
        "cosine": products / np.sqrt(np.outer(*squares)),
        "sqeuclidean": 2 * products - squares[1] - squares[0][:, None],
    }[distance]
    arguments = {"probes": probes * scale, "gallery": gallery * scale, "y": y, "distance": distance}
    if -152 < power < 140:
        expected = (exact > exact[np.arange(30), y][:, None]).sum(axis=1) + 1
        assert_array_equal(embeddings(**arguments).ranks, expected)
    else:
        with pytest.raises(cb.DataError):
            embeddings(**arguments)


def test_whole_numbers_beyond_doubles():
    large = 2**60 + np.arange(20).reshape(5, 4)  # equal in double precision
    expected = (large[np.arange(5), Y][:, None] < large).sum(axis=1) + 1
    for values in (large, large.tolist(), pd.DataFrame(large)):
        assert_array_equal(scores(scores=values).ranks, expected)
    named = scores(y=np.add(Y, 2**53), classes=[2**53 + j for j in range(4)])
    assert_array_equal(named.ranks, scores().ranks)


def test_small_rises_add_up():
    k, rising = np.arange(2, 11), np.linspace(0.5, 0.9, 9)
    rest = {"k": k, "n_classes": 10, "design_effect": 2}
    with pytest.warns(ExtrapolationWarning, match="increases from 0.5"):
        curve(accuracy=rising, n_test=40, **rest)
    with pytest.raises(cb.DataError):
        curve(accuracy=rising, n_test=400, **rest)
    curve(accuracy=rising[::-1], n_test=400, **rest)


def test_one_class_alone_has_no_remedy_that_fails():
    with pytest.raises(cb.DataError) as caught:
        scores(y=[0] * 5)
    assert "untested" not in str(caught.value)
