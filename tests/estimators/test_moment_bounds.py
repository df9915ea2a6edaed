"""Bounds without a prior: coverage over data sets, exact limits, metrics, designs, results."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import beta, binom

import classex_bayes as cb
from classex_bayes import SourceTask
from classex_bayes.exceptions import NotFittedError
from classex_bayes.simulate import GaussianNearestNeighbor
from studies.laws import FavorabilityLaw

RANKS = [1] * 90 + [2] * 6 + [3, 5, 9, 40]
TASK = SourceTask.from_ranks(RANKS, range(100), n_classes=100)

# Decisions, and pilots without a correct answer, look like mistakes.
FAULTY = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")


def limits(task, k, ci_prob=0.9, **settings):
    return cb.MomentBounds().fit(task).predict(k, **settings).interval(ci_prob).to_numpy().T


def independent(ranks, n_classes, repeats=1):
    y = np.arange(len(ranks)) // repeats
    return SourceTask.from_ranks(ranks, y, n_classes=n_classes)


# Coverage: over data sets, with the Monte Carlo error of the share


LAWS = [
    FavorabilityLaw((2.0, 4.0), (1e-3, 1e-3)),
    FavorabilityLaw((3.3,), (0.5,), atom_at_zero=0.05, atom_at_one=0.6),
    GaussianNearestNeighbor(dim=4, noise_variance=0.01),
]


@pytest.mark.parametrize("law", LAWS, ids=["points", "atoms", "shared competitors"])
def test_limits_hold_the_truth(law):
    k, n_pilots, held = np.array([50, 150]), 14, []
    truth = law.accuracy(k)
    for seed in range(n_pilots):
        sample = law.sample(50, random_seed=seed)
        if isinstance(law, FavorabilityLaw):
            task = SourceTask.from_ranks(*sample[:2], n_classes=50)
        else:
            task = SourceTask.from_embeddings(*sample)
        lower, upper = limits(task, k)
        held.append((lower <= truth) & (truth <= upper))
    fewest = binom.ppf(0.001, n_pilots, 0.9)
    assert (np.sum(held, axis=0) >= fewest).all()


# Exact cases


def test_without_errors_the_lower_limit_is_that_of_a_corrected_binomial():
    task = independent([1] * 80, 80)
    n = task.n_test / task.design_effect()
    lower, upper = limits(task, [80])
    won = n - 0.5

    def excess(p):
        fall = won * np.log(won / n / p) + 0.5 * np.log(0.5 / n / (1 - p))
        return fall - 2.705543 / 2

    assert lower[0] == pytest.approx(brentq(excess, 0.5, won / n), abs=1e-4)
    assert upper[0] == 1
    # Clopper and Pearson's lower limit is close.
    assert lower[0] == pytest.approx(beta.ppf(0.05, n, 1), abs=0.01)


@FAULTY
def test_without_a_correct_answer_the_upper_limit_leaves_doubt():
    lower, upper = limits(independent([80] * 80, 80), [80, 800])
    np.testing.assert_allclose(lower, 0, atol=1e-6)
    assert (upper > 0.01).all() and (upper < 0.2).all()


def test_the_data_alone_cannot_say_that_winners_win_or_lose_far_out():
    lower, upper = limits(TASK, [100, 10**9])
    assert lower[1] < 1e-6
    assert upper[0] - 0.1 < upper[1] <= upper[0]


def test_limits_grow_with_the_level_and_contain_the_pilot():
    bounds = cb.MomentBounds().fit(TASK).predict([10, 100])
    inner, outer = bounds.interval(0.5), bounds.interval(0.99)
    assert (outer["lower"] < inner["lower"]).all() and (inner["upper"] < outer["upper"]).all()
    measured = TASK.accuracy([10, 100])
    assert (inner["lower"] < measured).all() and (measured < inner["upper"]).all()


# Metrics


@pytest.mark.parametrize("metric", ["accuracy@5", "mrr", "ndcg@10", "mean_rank", "recall@3"])
def test_metrics_that_are_means(metric):
    bounds = cb.MomentBounds().fit(TASK).predict([10, 100, 1000], metric=metric)
    table = bounds.interval(0.9)
    measured = TASK.metric(metric, [10, 100])
    assert (table["lower"].iloc[:2] <= measured).all()
    assert (measured <= table["upper"].iloc[:2]).all()
    assert bounds.estimand.metric == metric
    assert (np.diff(table["upper"] - table["lower"]) > 0).all()


def test_top_m_accuracy_is_one_on_m_classes():
    lower, upper = limits(TASK, [3, 5], metric="accuracy@5")
    assert lower.tolist() == upper.tolist() == [1, 1]


def test_mrr_is_the_mean_of_the_accuracies():
    """One law gives both extremes of U*^0 + ... + U*^(k-1), so MRR lies within mean limits."""
    k = 8
    lower, upper = limits(TASK, [k], metric="mrr")
    of_accuracy = limits(TASK, np.arange(2, k + 1))
    assert lower[0] >= (1 + of_accuracy[0].sum()) / k - 1e-6
    assert upper[0] <= (1 + of_accuracy[1].sum()) / k + 1e-6


# What is known of ranks


@FAULTY
def test_decisions_know_the_accuracy_on_their_classes_alone():
    answer = np.where(np.arange(100) >= 10, np.arange(100), (np.arange(100) + 1) % 100)
    decisions = SourceTask.from_scores(np.eye(100)[answer], np.arange(100))
    exact, of_decisions = limits(TASK, [100, 300]), limits(decisions, [2, 100, 300])
    np.testing.assert_allclose(of_decisions[:, 1], exact[:, 0], atol=0.03)
    assert of_decisions[1, 0] == pytest.approx(1, abs=1e-3)  # losers may lose to one class alone
    assert of_decisions[0, 2] <= exact[0, 1] + 1e-3


def test_clusters_and_unequal_weights_widen_the_limits():
    rng = np.random.default_rng(2)
    ranks = 1 + rng.binomial(59, ndtr(-np.repeat(rng.normal(2.0, 1.0, 60), 5)))
    y = np.repeat(np.arange(60), 5)
    mixed = SourceTask.from_ranks(ranks, rng.permutation(y), n_classes=60)
    clustered = SourceTask.from_ranks(ranks, y, n_classes=60)
    weight = np.where(np.arange(60) < 5, 30.0, 1.0)
    weighted = SourceTask.from_ranks(ranks, y, n_classes=60, class_weight=weight)
    widths = [np.ptp(limits(task, [60])) for task in (mixed, clustered, weighted)]
    assert (np.diff(widths) > 0).all()


def test_classes_drawn_in_groups():
    """Accuracy on the pilot's own classes, whose siblings are among them."""
    rng = np.random.default_rng(4)
    group = np.repeat(np.arange(30), 3)
    centres = rng.normal(size=(30, 6))[group] + 0.3 * rng.normal(size=(90, 6))
    scores = -(((centres + 0.3 * rng.normal(size=(90, 6)))[:, None] - centres) ** 2)
    sampling = cb.Sampling(groups=group)
    task = SourceTask.from_scores(scores.sum(axis=2), np.arange(90), sampling=sampling)
    k = task.grid()
    lower, upper = limits(task, k)
    measured = task.accuracy(k)
    assert ((lower < measured) & (measured < upper)).all()


# Results


def test_bounds_are_a_result_like_others():
    bounds = cb.MomentBounds().fit(TASK).predict([100, 300])
    assert isinstance(bounds, cb.Extrapolation)
    assert bounds.interval_type == "confidence"
    again = pickle.loads(pickle.dumps(bounds))
    pd.testing.assert_frame_equal(again.interval(0.7), bounds.interval(0.7))
    columns = ["hdi70_lb", "hdi70_ub"]
    assert bounds.summary(0.7, "hdi").columns.tolist() == columns
    np.testing.assert_allclose(bounds.mean, bounds.interval().mean(axis=1))
    for ask in (lambda: cb.MomentBounds().predict(10), cb.MomentBounds().reach):
        with pytest.raises(NotFittedError):
            ask()


def test_reach_is_where_the_limits_part():
    bounds = cb.MomentBounds().fit(TASK)
    reach = bounds.reach(0.2, ci_prob=0.9)
    k = np.array([reach, round(1.02 * reach)])
    width = bounds.predict(k).interval(0.9).diff(axis=1)["upper"].to_numpy()
    assert width[0] <= 0.2 < width[1]
    assert bounds.reach(0.1, ci_prob=0.9) < reach < bounds.reach(0.3, ci_prob=0.9)


def test_the_reach_counts_from_the_classes_of_the_pilot():
    """The limits are close on its classes and beyond, and apart on fewer."""
    task = SourceTask.from_ranks(np.repeat([2, 3, 15], 10), range(30), n_classes=30)
    bounds = cb.MomentBounds().fit(task)
    lower, upper = bounds.predict([6, 30, 10**12]).interval(0.9).to_numpy().T
    assert (upper - lower > 0.2).tolist() == [True, False, False]
    assert bounds.reach(0.2, ci_prob=0.9) == np.inf


def test_cut_lists_say_more_of_many_classes_than_of_few():
    """Of two classes, an instance whose class is not listed may have won or lost."""
    ranks = np.r_[np.ones(200), np.full(100, 31)]
    task = SourceTask.from_ranks(ranks, range(300), n_classes=300, truncated_at=30)
    bounds = cb.MomentBounds().fit(task)
    lower, upper = bounds.predict([2, 300, 30_000]).interval(0.9).to_numpy().T
    assert (upper - lower > 0.2).tolist() == [True, False, True]
    assert 300 <= bounds.reach(0.2, ci_prob=0.9) < 30_000


@FAULTY
def test_reach_of_extreme_pilots():
    hopeless = cb.MomentBounds().fit(independent([80] * 80, 80))
    assert hopeless.reach(0.5) == np.inf
    assert cb.MomentBounds().fit(independent([1, 2, 3, 3], 4)).reach(0.01) == 1


@FAULTY
@pytest.mark.parametrize(("n_classes", "n_test"), [(20, 10**5), (10**5, 300)])
def test_large_pilots_have_limits(n_classes, n_test):
    rng = np.random.default_rng(3)
    ranks = 1 + rng.binomial(n_classes - 1, ndtr(-(2 + 0.7 * rng.normal(size=n_test))))
    y = rng.integers(n_classes, size=n_test)
    settings = {"n_classes": n_classes, "untested": "competitors"}
    for values in (ranks, np.full(n_test, 10)):
        task = SourceTask.from_ranks(values, y, **settings)
        lower, upper = limits(task, [n_classes, 30 * n_classes])
        assert (lower <= upper).all()
    assert lower[0] < 0.05
