"""Classifiers tested on the same instances: differences, and which is the best."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from classex_bayes import BayesianExtrapolator, Extrapolation, SourceTask, compare_classifiers
from classex_bayes.evaluate import AccuracyDifference, ClassifierComparison
from classex_bayes.simulate import GaussianNearestNeighbor

K = [50, 500, 2000]
SAMPLER = {"draws": 200, "tune": 150, "chains": 2, "cores": 1}


def views(n_classes, repeats=2, seed=1, dims=(10, 6)):
    """Classifiers of the same instances, which see some of the coordinates each."""
    law = GaussianNearestNeighbor(10, 0.3)
    probes, gallery, y = law.sample(n_classes, repeats=repeats, random_seed=seed)
    return {f"d{d}": SourceTask.from_embeddings(probes[:, :d], gallery[:, :d], y) for d in dims}


def quietly(tasks, k=K, **arguments):
    return compare_classifiers(
        tasks, k, sampler=SAMPLER, random_seed=3, progressbar=False, **arguments
    )


@pytest.fixture(scope="module")
def compared():
    """The same tasks, paired and not."""
    tasks = views(50)
    return SimpleNamespace(tasks=tasks, paired=quietly(tasks), apart=quietly(tasks, paired=False))


def test_marginals_are_those_of_each_model(compared):
    paired, apart = compared.paired.draws, compared.apart.draws
    assert paired.dims == ("classifier", "chain", "draw", "k")
    assert_allclose(
        np.sort(paired.values.reshape(2, -1, 3), axis=1),
        np.sort(apart.values.reshape(2, -1, 3), axis=1),
    )


def test_pairing_narrows_the_difference(compared):
    paired, apart = (found.difference("d10", "d6") for found in (compared.paired, compared.apart))
    rho = compared.paired.posterior.correlation.loc["d10", "d6"]
    assert 0.2 < rho < 0.95
    ratio = paired.draws.std(["chain", "draw"]) / apart.draws.std(["chain", "draw"])
    assert ratio[0] == pytest.approx(np.sqrt(1 - rho), abs=0.1)
    assert np.all(ratio < 1)
    assert_allclose(paired.mean, apart.mean)
    assert compared.apart.posterior.correlation.loc["d10", "d6"] == 0
    assert f"{rho:.2f}" in repr(compared.paired)
    assert all("tested on 50 classes" in repr(part) for part in (compared.paired, compared.apart))


def test_monte_carlo_error_that_decides_is_noted(compared):
    """Fits of one task differ by their Monte Carlo error alone."""
    task, model = compared.tasks["d10"], BayesianExtrapolator(evidence="ranks")
    same = quietly({"a": task, "b": task}, model=model)
    assert same.posterior.correlation.loc["a", "b"] == pytest.approx(1)
    assert any("too few" in note for note in same.notes)
    assert not any("too few" in note for note in compared.paired.notes)


def test_difference_is_a_summary(compared):
    found = compared.paired.difference("d10", "d6")
    mean = {name: p.mean for name, p in compared.paired.predictions.items()}
    assert_allclose(found.mean, mean["d10"] - mean["d6"])
    assert_allclose(found.prob_above(), compared.paired.prob_best()["d10"])
    assert np.all(found.prob_above(0.1) <= found.prob_above())
    table = found.summary(0.9, "eti")
    assert table.columns.tolist() == ["mean", "sd", "eti90_lb", "eti90_ub", "prob_above"]
    assert table["mean"].between(table["eti90_lb"], table["eti90_ub"]).all()


def test_summary(compared):
    table = compared.paired.summary(0.9)
    assert table.index.names == ["classifier", "k"] and table.shape == (6, 5)
    exact = compared.paired.summary(0.9, round_to="none")["prob_best"].unstack("classifier")
    assert_allclose(exact, compared.paired.prob_best())


def synthetic(*curves):
    """Comparison of given draws at two k."""
    predictions = {
        f"c{place}": Extrapolation.from_draws(
            [10, 100], np.array(draws, dtype=float)[None], f"c{place}", "credible", 10
        )
        for place, draws in enumerate(curves)
    }
    return ClassifierComparison(predictions, None, True)


def test_equal_draws_share_the_first_place():
    best = synthetic([[1, 0.5], [1, 0.2]], [[1, 0.4], [0.9, 0.6]], [[1, 0.1], [1, 0.1]]).prob_best()
    assert_allclose(best.loc[10], [(1 / 3 + 1 / 2) / 2, 1 / 6, (1 / 3 + 1 / 2) / 2])
    assert_allclose(best.loc[100], [0.5, 0.5, 0])


def test_the_same_seed_gives_the_same_numbers(compared):
    again = quietly(compared.tasks)
    assert_array_equal(again.draws.values, compared.paired.draws.values)


# Cut lists, and metrics of retrieval


def cut(task, length):
    """The task as its lists of the best classes tell it."""
    ranks = np.minimum(task.ranks, length + 1)
    return SourceTask.from_ranks(ranks, task.y, n_classes=task.n_classes, truncated_at=length)


@pytest.fixture(scope="module")
def listed():
    """Lists of five, compared by recall@5."""
    full = views(50)
    return full, quietly({name: cut(task, 5) for name, task in full.items()}, metric="recall@5")


def test_cut_lists_are_paired(listed):
    """The correlation is that of the hits of each class, in the lists or not."""
    full, found = listed
    hits = [pd.Series(task.ranks <= 5).groupby(task.y).mean() for task in full.values()]
    expected = np.corrcoef(hits)[0, 1]
    assert expected > 0.2
    assert found.posterior.correlation.loc["d10", "d6"] == pytest.approx(expected)
    draws = [prediction.draws.sel(k=50).values.ravel() for prediction in found.predictions.values()]
    assert np.corrcoef(draws)[0, 1] == pytest.approx(expected, abs=0.1)


def test_the_metric_is_named_everywhere(listed):
    full, found = listed
    assert all("recall@5" in repr(part) for part in (found, found.difference("d10", "d6")))
    assert "tested on 50 documents with the same instances" in repr(found)
    assert found.plot()[0].get_ylabel() == "recall@5"
    for name, prediction in found.predictions.items():
        assert prediction.estimand.metric == "recall@5"
        assert prediction.mean[50] == pytest.approx(full[name].metric("recall@5", 50), abs=0.05)


def test_no_classifier_leads_where_every_answer_is_among_the_best(listed):
    k = [2, 5, 50]
    found = replace(listed[1], predictions=listed[1].posterior.predictions(np.array(k)))
    assert np.all(found.draws.sel(k=[2, 5]) == 1)
    assert_array_equal(found.prob_best().loc[[2, 5]], 0.5)
    assert_array_equal(found.difference("d10", "d6").prob_above().loc[[2, 5]], 0.0)
    assert found.prob_best().loc[50, "d10"] > 0.5
    found.plot(k=[2, 5])


@pytest.mark.slow
def test_coverage_of_paired_tasks():
    """Intervals of the difference hold the truth, and are shorter than those of unpaired tasks."""
    laws = GaussianNearestNeighbor(10, 0.3), GaussianNearestNeighbor(6, 0.3)
    k = np.array([60, 240, 1200])
    truth = laws[0].accuracy(k) - laws[1].accuracy(k)
    inside, widths = [], []
    for seed in range(100):
        tasks = views(60, seed=seed)
        for paired in (True, False):
            found: AccuracyDifference = quietly(tasks, k, paired=paired).difference("d10", "d6")
            limits = found.interval(0.9)
            inside.append((limits["lower"] <= truth) & (truth <= limits["upper"]))
            widths.append(limits["upper"] - limits["lower"])
    assert np.all(np.mean(inside[::2], axis=0) >= 0.84)
    ratio = np.mean(widths[::2], axis=0) / np.mean(widths[1::2], axis=0)
    assert ratio[0] < 0.85 and np.all(ratio < 1)
