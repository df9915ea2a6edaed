"""Groups of instances: a curve for each, and their mix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from classex_bayes.evaluate.groups import GroupedExtrapolation, extrapolate_groups
from classex_bayes.exceptions import DataError
from classex_bayes.simulate import GaussianNearestNeighbor
from classex_bayes.task.glyphs import FONTS, load_glyphs
from classex_bayes.task.source_task import SourceTask

K = [60, 600]
SAMPLER = {"draws": 200, "tune": 300, "chains": 2, "cores": 1}
EASY, HARD = 0.2, 0.6


def quietly(task, groups, k=K, **arguments):
    settings = {"sampler": SAMPLER, "random_seed": 3, "progressbar": False, **arguments}
    return extrapolate_groups(task, groups, k, **settings)


def two_cameras(n_classes, seed=1):
    """Task in which camera "b" adds noise, and the camera of each instance."""
    law = GaussianNearestNeighbor(10, EASY)
    probes, gallery, y = law.sample(n_classes, repeats=3, random_seed=seed)
    camera = np.tile(["b", "a", "b"], n_classes)
    noise = np.random.default_rng(seed).normal(size=probes.shape) * np.sqrt(HARD - EASY)
    probes = probes + noise * (camera == "b")[:, None]
    return SourceTask.from_embeddings(probes, gallery, y), camera


@pytest.fixture(scope="module")
def cameras():
    return two_cameras(60)


@pytest.fixture(scope="module")
def found(cameras):
    return quietly(*cameras)


def test_each_group_is_fitted_to_its_instances(cameras, found):
    task, camera = cameras
    assert list(found.by_group) == ["b", "a"]
    assert found.n_test.to_dict() == {"b": 120, "a": 60}
    assert found.n_tested.to_dict() == {"b": 60, "a": 60}
    weight = task.instance_weight
    for name, prediction in found.by_group.items():
        own = camera == name
        measured = weight[own] @ (task.ranks[own] == 1) / weight[own].sum()
        assert prediction.mean[60] == pytest.approx(measured, abs=0.05)
        assert prediction.estimator == name and prediction.n_classes == 60
    assert found.by_group["a"].mean[600] > found.by_group["b"].mean[600]


def test_the_default_mix_is_that_of_the_pilot(cameras, found):
    assert_allclose(found.mix[["b", "a"]], [2 / 3, 1 / 3])
    assert found.overall.mean[60] == pytest.approx(cameras[0].accuracy(60)[0], abs=0.03)


def test_another_mix_needs_no_other_fit(found):
    other = found.with_mix({"a": 30, "b": 10})
    assert other.by_group is found.by_group
    a, b = (found.by_group[name].accuracy.values for name in ("a", "b"))
    assert_allclose(other.overall.accuracy.values, 0.75 * a + 0.25 * b)
    alone = found.with_mix({"a": 1.0})
    assert_allclose(alone.overall.accuracy.values, a)
    assert_allclose(found.with_mix({"a": 1e308, "b": 1e308}).mix, 0.5)


def test_shared_classes_make_the_mix_less_certain(found):
    rho = found.posterior.correlation.loc["a", "b"]
    assert 0 < rho < 1
    a, b = (found.by_group[name].accuracy.sel(k=60).values.ravel() for name in ("a", "b"))
    assert np.corrcoef(a, b)[0, 1] == pytest.approx(rho, abs=0.1)
    independent = np.hypot(found.mix["a"] * a.std(), found.mix["b"] * b.std())
    assert found.overall.accuracy.sel(k=60).values.std() > independent


def test_summary(found):
    table = found.summary(0.9, "eti")
    assert table.columns.tolist() == ["share", "mean", "sd", "eti90_lb", "eti90_ub"]
    assert table.index.unique("group").tolist() == ["b", "a", "overall"]
    assert table.loc["overall", "share"].tolist() == [1, 1]
    assert "2 groups, from 60 source classes" in repr(found)
    assert "<table" in found._repr_html_()


def test_groups_that_are_alike_have_draws_of_their_own():
    """Equal ranks give equal posteriors, but not the same draws."""
    ranks = np.repeat(np.random.default_rng(1).binomial(39, 0.03, 40) + 1, 2)
    task = SourceTask.from_ranks(ranks, np.repeat(np.arange(40), 2), n_classes=40)
    found = quietly(task, ["a", "b"] * 40)
    a, b = (np.sort(found.by_group[name].accuracy.sel(k=60).values.ravel()) for name in "ab")
    assert not np.isin(a, b).any()
    assert a.mean() == pytest.approx(b.mean(), abs=0.5 * a.std())


def test_groups_that_lack_classes():
    """Ranks alone, class weights, labels that are numbers, instances of few classes."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(40), 2)
    ranks = rng.binomial(39, rng.beta(1, 9, size=80)) + 1
    groups = np.where(y < 25, 1, 2)
    weight = np.where(np.arange(40) < 25, 1.0, 3.0)
    task = SourceTask.from_ranks(ranks, y, n_classes=40, class_weight=weight)
    found = quietly(task, groups)
    assert found.n_tested.to_dict() == {1: 25, 2: 15}
    assert_allclose(found.mix[[1, 2]], [25 / 70, 45 / 70])
    for name in (1, 2):
        measured = np.mean(ranks[groups == name] == 1)
        assert found.by_group[name].mean[60] < measured + 0.05
    assert found.with_mix({2: 1}).overall.n_classes == 40


def test_bad_groups(cameras):
    task, camera = cameras
    with_none = camera.astype(object)
    with_none[7] = None
    with_nan = np.ones(180)
    with_nan[3] = np.nan
    rare = np.where(task.y < 2, "rare", "usual")
    for groups, message in (
        (camera[:-1], "groups: found 179 labels for 180 instances"),
        (with_none, "found no label at row 7"),
        (with_nan, "found no label at row 3"),
        (np.full(180, "a"), "at least two groups, found only 'a'"),
        (["a", np.nan] * 90, "found no label at row 1"),
        (["overall", "b"] * 90, "'overall', which is the name of the mix"),
        (camera[:, None], r"one label per instance, found shape \(180, 1\)"),
        ("camera", "expected one label per instance"),
        (rare, "'rare' has instances of 2 of the 60 classes, expected at least 3"),
    ):
        with pytest.raises(DataError, match=message):
            extrapolate_groups(task, groups, 100)
    curve = SourceTask.from_accuracies([2, 12], [0.9, 0.5], n_test=24, n_classes=12)
    with pytest.raises(DataError, match="task: it was made from accuracies alone"):
        extrapolate_groups(curve, ["a", "b"] * 12, 100)
    with pytest.raises(DataError, match="model: expected a BayesianExtrapolator"):
        extrapolate_groups(task, camera, 100, model="x")


def test_bad_mixes(cameras, found):
    task, camera = cameras
    for mix, message in (
        ({"c": 1.0}, r"mix: unknown group 'c'; the groups are \['b', 'a'\]"),
        ({"a": -1.0}, r"mix\['a'\]: expected a number >= 0, found -1"),
        ({"a": np.nan}, r"mix\['a'\]: expected a number >= 0, found nan"),
        ({"a": 0, "b": 0}, "expected a share above 0"),
        ({}, "expected a share above 0"),
        (
            {"a": 0.5},
            "mix: found no share of 'b', and the other shares sum to 0.5; write the share",
        ),
        ([0.5, 0.5], "expected a mapping from group to share, found list"),
    ):
        with pytest.raises(DataError, match=message):
            found.with_mix(mix)
        with pytest.raises(DataError, match=message):
            extrapolate_groups(task, camera, 100, mix=mix)


@pytest.mark.slow
def test_coverage_on_the_glyphs():
    """Each font and a mix, from pilots of 100 characters, against the accuracy on all of them."""
    glyphs, k = load_glyphs(), [100, 300, 1000, 2965]
    task, mix = glyphs.task(), dict(zip(FONTS, (0.6, 0.3, 0.1), strict=True))
    truth = {font: glyphs.task(font).accuracy(k) for font in FONTS}
    truth["overall"] = sum(mix[font] * truth[font] for font in FONTS)
    position = {name: place for place, name in enumerate(glyphs.classes)}
    row_class = np.array([position[name] for name in glyphs.y])
    inside = {name: [] for name in truth}
    for seed in range(40):
        kept = np.sort(np.random.default_rng(seed).choice(2965, 100, replace=False))
        font = glyphs.font[np.isin(row_class, kept)]
        found: GroupedExtrapolation = quietly(task.select(kept), font, k, mix=mix)
        for name, prediction in {**found.by_group, "overall": found.overall}.items():
            limits = prediction.interval(0.9).to_numpy()
            inside[name].append((limits[:, 0] <= truth[name]) & (truth[name] <= limits[:, 1]))
    for name, held in inside.items():
        assert np.mean(held) >= 0.87, name
        assert np.all(np.mean(held, axis=0) >= 0.78), name
