"""What takes pilots drawn by a design, what refuses them, and how a design is told."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from helpers import embedded, short_fit

import classex_bayes as cb
from studies.laws import HierarchicalNormal

K = np.array([2, 3, 5])


@pytest.fixture(scope="module")
def small():
    probes, gallery, y = embedded(24, 2, 12, groups=3, noise=0.3)
    inclusion = np.linspace(0.2, 1, 24)
    design = {"groups": np.arange(24) // 3, "inclusion": inclusion}
    return (probes, gallery, y), design


@pytest.fixture(scope="module")
def small_task(small):
    arrays, design = small
    return cb.SourceTask.from_embeddings(*arrays, sampling=cb.Sampling(**design))


@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.ConvergenceWarning")
def test_predictions_say_what_is_taken_for_granted(small_task, tmp_path):
    model = cb.BayesianExtrapolator().fit(small_task, **short_fit(100))
    prediction = model.predict([24, 240])
    path = tmp_path / "model.nc"
    cb.save(model, path)
    np.testing.assert_array_equal(cb.load(path).predict([24, 240]).mean, prediction.mean)
    assert model.is_fitted_to(small_task)


@pytest.mark.nightly
def test_bootstrap_has_the_spread_of_the_covariance(small_task):
    draws = cb.estimators.bootstrap(
        cb.estimators.LogLinear(), small_task, 12, n_resamples=400, random_seed=1, progressbar=False
    )
    k = small_task.grid()
    gradient = np.linalg.pinv(np.stack([np.log(k), np.ones(k.size)], axis=1))
    at = np.array([np.log(12), 1.0]) @ gradient
    expected = np.sqrt(at @ small_task.accuracy_cov(k) @ at)
    assert float(draws.draws.std()) == pytest.approx(expected, rel=0.35)


def test_backtests_and_bandwidths_keep_the_design(small_task):
    table = cb.backtest(
        [cb.ClassExReg(random_seed=1)], small_task, 9, n_pilots=4, random_seed=1, progressbar=False
    )
    assert table.scores["truth"].iloc[-1] == pytest.approx(
        small_task.accuracy(small_task.grid()[-1])
    )
    assert table.scores["rmse"].notna().all()


def test_a_design_is_read_by_the_names_of_the_classes(small):
    (probes, gallery, y), design = small
    names = [f"c{j:02d}" for j in range(24)]
    by_name = {
        "inclusion": pd.Series(design["inclusion"], names).sample(frac=1, random_state=1),
        "groups": dict(zip(names, design["groups"], strict=True)),
    }
    sampling = cb.Sampling(**by_name)
    named = cb.SourceTask.from_embeddings(probes, gallery, y, classes=names, sampling=sampling)
    plain = cb.SourceTask.from_embeddings(probes, gallery, y, sampling=cb.Sampling(**design))
    np.testing.assert_array_equal(named.accuracy(K), plain.accuracy(K))


def test_files_tell_the_design(small, small_task, tmp_path):
    (probes, gallery, y), design = small
    scores = -((probes[:, None] - gallery) ** 2).sum(axis=2)
    np.savez(tmp_path / "task.npz", scores=scores, y=y)
    table = pd.DataFrame({"class": range(24), "inclusion": design["inclusion"]})
    table["group"] = [f"group {number}" for number in design["groups"]]
    table.sample(frac=1, random_state=1).to_csv(tmp_path / "design.csv", index=False)
    task = cb.read_task(tmp_path / "task.npz", sampling=tmp_path / "design.csv")
    np.testing.assert_allclose(task.accuracy(K), small_task.accuracy(K), rtol=1e-12)
    np.savez(tmp_path / "whole.npz", scores=scores, y=y, **design)
    task = cb.read_task(tmp_path / "whole.npz")
    np.testing.assert_allclose(task.accuracy(K), small_task.accuracy(K), rtol=1e-12)


def test_a_task_without_scores_keeps_the_design(small_task):
    kept = small_task.without_scores()
    np.testing.assert_array_equal(kept.accuracy(K), small_task.accuracy(K))
    k = small_task.grid()
    np.testing.assert_allclose(kept.accuracy_cov(k), small_task.accuracy_cov(k))


def test_diagnosis_says_what_to_pass():
    law = HierarchicalNormal(5, class_variance=0.1, noise_variance=0.05)
    sample = law.sample(200, repeats=2, random_seed=1)
    found = cb.diagnose(cb.SourceTask.from_embeddings(*sample), random_seed=1)
    assert not found["groups of classes"].passed
    group = ((sample.gallery[:, None] - law.group_centres) ** 2).sum(axis=2).argmin(axis=1)
    told = cb.SourceTask.from_embeddings(*sample, sampling=cb.Sampling(groups=group))
    assert cb.diagnose(told, random_seed=1)["groups of classes"].passed is None


@pytest.mark.parametrize("metric", ["accuracy", "recall@2", "mrr", "ndcg@3", "mean_rank"])
def test_metrics_in_groups_are_means_over_sets_of_classes(metric):
    """The siblings are in the set; the others are any that fill it."""
    scores = np.random.default_rng(3).normal(size=(9, 9)) + 1.5 * np.eye(9)
    group, k = np.arange(9) // 3, 5
    task = cb.SourceTask.from_scores(scores, range(9), sampling=cb.Sampling(groups=group))
    values = {
        "accuracy": lambda rank: rank == 1,
        "recall@2": lambda rank: rank <= 2,
        "mrr": lambda rank: 1 / rank,
        "ndcg@3": lambda rank: (rank <= 3) / np.log2(1 + rank),
        "mean_rank": lambda rank: rank,
    }
    expected = []
    for true in range(9):
        siblings = [j for j in range(9) if group[j] == group[true] and j != true]
        others = [j for j in range(9) if group[j] != group[true]]
        sets = list(combinations(others, k - 3))
        for kept in sets:
            rank = 1 + np.sum(scores[true, [*kept, *siblings]] > scores[true, true])
            expected.append(values[metric](rank) / len(sets))
    assert task.metric(metric, k) == pytest.approx(np.sum(expected) / 9)
