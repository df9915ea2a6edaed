"""Groups of instances: a curve for each, and their mix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from classex_bayes import SourceTask, extrapolate_groups, load_glyphs
from classex_bayes.evaluate import GroupedExtrapolation
from classex_bayes.simulate import GaussianNearestNeighbor
from classex_bayes.task.glyphs import FONTS

K = [60, 600]
SAMPLER = {"draws": 200, "tune": 150, "chains": 2, "cores": 1}
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
def grouped(cameras):
    return quietly(*cameras)


def test_each_group_is_fitted_to_its_instances(cameras, grouped):
    task, camera = cameras
    assert list(grouped.by_group) == ["b", "a"]
    assert grouped.n_test.to_dict() == {"b": 120, "a": 60}
    weight = task.table.weight
    for name, prediction in grouped.by_group.items():
        rows = camera == name
        observed = weight[rows] @ (task.ranks[rows] == 1) / weight[rows].sum()
        assert prediction.mean[60] == pytest.approx(observed, abs=0.05)
        assert prediction.estimator == name and prediction.n_classes == 60
    assert grouped.by_group["a"].mean[600] > grouped.by_group["b"].mean[600]


def test_the_default_mix_is_that_of_the_pilot(cameras, grouped):
    assert_allclose(grouped.mix[["b", "a"]], [2 / 3, 1 / 3])
    assert grouped.overall.mean[60] == pytest.approx(cameras[0].accuracy(60), abs=0.03)


def test_another_mix_needs_no_other_fit(grouped):
    other = grouped.with_mix({"a": 30, "b": 10})
    assert other.by_group is grouped.by_group
    a, b = (grouped.by_group[name].accuracy.values for name in ("a", "b"))
    assert_allclose(other.overall.accuracy.values, 0.75 * a + 0.25 * b)
    alone = grouped.with_mix({"a": 1.0})
    assert_allclose(alone.overall.accuracy.values, a)


def test_shared_classes_make_the_mix_less_certain(grouped):
    rho = grouped.posterior.correlation.loc["a", "b"]
    assert 0 < rho < 1
    a, b = (grouped.by_group[name].accuracy.sel(k=60).values.ravel() for name in ("a", "b"))
    assert np.corrcoef(a, b)[0, 1] == pytest.approx(rho, abs=0.1)
    independent = np.hypot(grouped.mix["a"] * a.std(), grouped.mix["b"] * b.std())
    assert grouped.overall.accuracy.sel(k=60).values.std() > independent


def test_summary(grouped):
    table = grouped.summary(0.9, "eti")
    assert table.columns.tolist() == ["share", "mean", "sd", "eti90_lb", "eti90_ub"]
    assert table.index.unique("group").tolist() == ["b", "a", "overall"]
    assert table.loc["overall", "share"].tolist() == [1, 1]


def test_groups_that_are_alike_have_draws_of_their_own():
    """Equal ranks give equal posteriors, but not the same draws."""
    ranks = np.repeat(np.random.default_rng(1).binomial(59, 0.02, 60) + 1, 2)
    task = SourceTask.from_ranks(ranks, np.repeat(np.arange(60), 2), n_classes=60)
    grouped = quietly(task, ["a", "b"] * 60)
    a, b = (np.sort(grouped.by_group[name].accuracy.sel(k=60).values.ravel()) for name in "ab")
    assert not np.isin(a, b).any()
    assert a.mean() == pytest.approx(b.mean(), abs=0.5 * a.std())


def test_groups_that_lack_classes():
    """Ranks alone, class weights, labels that are numbers, instances of few classes."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(60), 2)
    ranks = rng.binomial(59, rng.beta(1, 9, size=120)) + 1
    groups = np.where(y < 45, 1, 2)
    weight = np.where(np.arange(60) < 45, 1.0, 3.0)
    task = SourceTask.from_ranks(ranks, y, n_classes=60, class_weight=weight)
    grouped = quietly(task, groups)
    assert grouped.n_test.to_dict() == {1: 90, 2: 30}
    assert_allclose(grouped.mix, [0.5, 0.5])
    for name in (1, 2):
        observed = np.mean(ranks[groups == name] == 1)
        assert grouped.by_group[name].mean[60] < observed + 0.05
    assert grouped.with_mix({2: 1}).overall.n_classes == 60


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
        grouped: GroupedExtrapolation = quietly(task.select(kept), font, k, mix=mix)
        for name, prediction in {**grouped.by_group, "overall": grouped.overall}.items():
            limits = prediction.interval(0.9).to_numpy()
            inside[name].append((limits[:, 0] <= truth[name]) & (truth[name] <= limits[:, 1]))
    for name, covered in inside.items():
        assert np.mean(covered) >= 0.87, name
        assert np.all(np.mean(covered, axis=0) >= 0.78), name
