"""Recalls of a printed table: bounds of ranks, design effect, and what they lack."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.stats import hypergeom

from classex_bayes import MomentBounds, SourceTask
from classex_bayes.task.rank_bins import bin_counts, bin_ends
from classex_bayes.task.rank_table import RankTable

RANKS = np.repeat([1, 2, 4, 7, 30], [52, 20, 10, 8, 10])
TABLE = {m: float((m >= RANKS).mean()) for m in (1, 5, 10)}


def recalls(table=TABLE, n_test=100, **values):
    values = values or {"n_classes": 40}
    return SourceTask.from_recalls(table, n_test=n_test, **values)


def test_recalls_are_counts_between_two_m():
    task = recalls()
    assert (bin_ends(task.table) + 1).tolist() == [1, 5, 10, 40]
    np.testing.assert_allclose(bin_counts(task.table), [52, 30, 8, 10])
    np.testing.assert_allclose([task.metric(f"recall@{m}", 40) for m in TABLE], [*TABLE.values()])
    assert task.table.made_from == "recalls" and task.classes is None
    assert task.grid().tolist() == [40] and task.accuracy(40) == pytest.approx(0.52)


def test_bounds_are_those_of_the_ranks_at_the_ends():
    k, n_better = np.arange(2, 41), np.repeat([0, 1, 5, 10], [52, 30, 8, 10])
    worst = np.repeat([0, 4, 9, 39], [52, 30, 8, 10])
    lower, upper = recalls().accuracy_bounds(k)
    for bound, of_rows in ((upper, n_better), (lower, worst)):
        expected = [hypergeom.pmf(0, 39, of_rows, size - 1).mean() for size in k]
        np.testing.assert_allclose(bound, expected, atol=1e-12)


def test_shares_that_are_no_whole_numbers_of_instances_are_kept():
    task = recalls({1: 0.517, 3: 0.5555}, n_test=9)
    assert task.n_test == 9
    assert task.accuracy(40) == pytest.approx(0.517, abs=0.06)  # of 9 instances, 5 are 0.556
    task = recalls({1: 0.517, 3: 0.5555}, n_test=1009)
    np.testing.assert_allclose(
        [task.metric(f"recall@{m}", 40) for m in (1, 3)], [0.517, 0.5555], atol=1e-9
    )


def test_ends_of_recalls():
    none, every = recalls({1: 0.0}), recalls({1: 1.0, 5: 1.0})
    assert none.accuracy(40) == 0 and every.accuracy(40) == 1
    with pytest.raises(ValueError, match="recalls alone, but exact ranks"):
        _ = every.ranks
    assert recalls({5: 0.8}).grid().size == 0


def test_the_design_effect_is_that_of_a_curve_and_of_rounding():
    sizes = {"n_test": 25_000, "n_classes": 1000}
    curve = SourceTask.from_accuracies([1000], [0.52], **sizes)
    assert curve.design_effect() == pytest.approx(1 + 0.2 * 24 + 0.08 * 25)
    exact = SourceTask.from_recalls({1: 0.52123456789, 5: 0.843}, **sizes)
    assert exact.design_effect() == pytest.approx(curve.design_effect(), abs=1e-6)
    np.testing.assert_allclose(exact.accuracy_cov([1000]), curve.accuracy_cov([1000]), rtol=0.01)
    # The error of rounding to 2 decimals is uniform on [-0.005, 0.005].
    rounded = SourceTask.from_recalls({1: 0.52, 5: 0.9}, **sizes, decimals=2, design_effect=3)
    uniform = np.random.default_rng(1).uniform(-0.005, 0.005, 10**6).var()
    assert rounded.design_effect() == pytest.approx(3 + uniform / (0.09 / 25_000), rel=0.01)


def test_negatives_of_each_instance():
    task = recalls({10: 0.6}, n_negatives=99)
    assert task.n_classes == 100 and not task.table.competitors_shared
    assert task.design_effect() == pytest.approx(1, abs=0.01)
    assert task.metric("hit_rate@10", 100) == pytest.approx(0.6)
    assert any("by popularity" in note for note in task.notes)


def better_units(spread, rng, n_units=400, size=5, dim=16):
    """Numbers of wrong candidates, and of their classes, that are nearer than the best true one."""
    unit = rng.normal(size=(n_units, 1, dim))
    candidates = (unit + spread * rng.normal(size=(n_units, size, dim))).reshape(-1, dim)
    probes = unit[:, 0] + 1.2 * rng.normal(size=(n_units, dim))
    square = ((probes[:, None] - candidates) ** 2).sum(-1).reshape(n_units, n_units, size)
    is_true = np.eye(n_units, dtype=bool)
    better = (square < square[is_true].min(1)[:, None, None]) & ~is_true[:, :, None]
    return better.sum((1, 2)), better.any(2).sum(1)


@pytest.mark.parametrize("spread", [0.3, 0.5, 0.8])
def test_classes_with_several_candidates(spread):
    """Ranks among classes agree with the bounds, up to the uncertainty that the task states."""
    n_candidates, n_units = better_units(spread, np.random.default_rng(1))
    table = {m: float((n_candidates < m).mean()) for m in (1, 5, 10)}
    sizes = {"n_test": 400, "n_classes": 400, "design_effect": 2}
    task = SourceTask.from_recalls(table, **sizes, per_unit=5)
    ends = bin_ends(task.table)[:-1]
    assert ends.tolist() == [0, 3, 6]
    shares = np.cumsum(bin_counts(task.table))[:-1] / 400
    assert shares[0] == pytest.approx((n_units == 0).mean())
    assert np.all(np.abs(shares - [(n_units <= end).mean() for end in ends]) < 0.07)
    alone = SourceTask.from_recalls(table, **sizes)
    ratio = task.design_effect() / alone.design_effect()
    assert ratio == pytest.approx(5**0.5, rel=0.01)
    assert any("l / 1.5 classes" in note for note in task.notes)


def test_several_candidates_whose_ends_coincide():
    task = recalls({1: 0.5, 3: 0.6, 4: 0.7}, n_classes=40, per_unit=5)
    assert bin_counts(task.table).sum() == pytest.approx(100)
    assert task.accuracy(40) == pytest.approx(0.5)
    far = recalls({1: 0.5, 150: 0.9}, n_classes=40, per_unit=5)
    assert far.table.min_better.max() == far.table.max_better.max() == 39


def test_names_of_recalls():
    for names in (
        ["recall@1", "recall@5", "recall@10"],
        ["R@1", "R@5", "R@10"],
        ["Rank-1", "Rank-5", "Rank-10"],
        ["Hits@1", "hit_rate@5", "top 10"],
        ["recall_at_1", "hits_at_5", "CMC 10"],
        ["Recall at 1", "Top-5 acc", "success_10"],
        ["1", "5", "10"],
    ):
        table = dict(zip(names, TABLE.values(), strict=True))
        np.testing.assert_array_equal(recalls(table).table.min_better, recalls().table.min_better)


def test_a_frame_has_the_columns_of_a_file():
    table = pd.DataFrame({"recall": [*TABLE.values()], "m": [*TABLE], "note": "printed"})
    np.testing.assert_array_equal(recalls(table).table.min_better, recalls().table.min_better)


def test_percentages_are_shares():
    """As text, and divided by 100, which moves some of them by a rounding error."""
    table = {1: 0.007, 5: 0.579, 10: 0.843}
    exact = recalls(table).design_effect()
    for percentages in (
        {1: "0.7%", 5: "57.9 %", 10: "0.843"},
        {m: round(100 * value, 1) / 100 for m, value in table.items()},
    ):
        assert recalls(percentages).design_effect() == exact
    curve = SourceTask.from_accuracies([2, 9], ["95%", "0.8"], n_test=50, n_classes=9)
    np.testing.assert_array_equal(curve.accuracy([2, 9]), [0.95, 0.8])
    with pytest.raises(ValueError, match="found '-', expected a number or percentage"):
        recalls({1: "50%", 5: "-"})
    with pytest.raises(ValueError, match=r"dict\(enumerate\(cmc, 1\)\)"):
        recalls([0.5, 0.6])


def test_bounds_without_a_prior():
    """Those of the ranks are within those of the recalls, and one recall allows the most."""
    task = SourceTask.from_ranks(RANKS, np.arange(100) % 40, n_classes=40)
    widths = [
        np.ptp(MomentBounds().fit(source).predict(400).interval().to_numpy())
        for source in (task, recalls(design_effect=1, n_classes=40), recalls({1: 0.52}))
    ]
    assert widths[0] <= widths[1] + 0.02 and widths[1] < widths[2]


def test_recalls_lack_true_classes():
    task = pickle.loads(pickle.dumps(recalls()))
    assert isinstance(task.table, RankTable) and not task.table.is_labelled
    for need in ("true classes", "exact ranks", "ranks among all classes", "scores"):
        with pytest.raises(ValueError, match=f"recalls alone, but {need}"):
            task.require(need)
    assert "100 test instances from recalls" in repr(recalls())


def test_accuracies_of_separate_tests():
    k, accuracy, n = [50, 5, 20], [0.6, 0.9, 0.8], [100, 400, 300]
    curve = SourceTask.from_accuracies(k, accuracy, n_test=n, n_classes=80, design_effect=2)
    covariance = curve.accuracy_cov([5, 20, 50])
    a, n = np.array([0.9, 0.8, 0.6]), np.array([400, 300, 100])
    np.testing.assert_allclose(covariance, np.diag(2 * a * (1 - a) / n), rtol=0.03)
    assert curve.n_test == 800
    # Of separate tests with few instances a rise may be noise.
    with pytest.raises(ValueError, match="increases"):
        SourceTask.from_accuracies([2, 9], [0.5, 0.7], n_test=800, n_classes=9, design_effect=1)
    SourceTask.from_accuracies([2, 9], [0.5, 0.7], n_test=[780, 20], n_classes=9, design_effect=1)
