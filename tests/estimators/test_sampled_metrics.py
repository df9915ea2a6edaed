"""SampledMetrics against dense solutions, convex solvers and known distributions of the rank."""

from dataclasses import replace
from functools import lru_cache

import cvxpy
import numpy as np
import pytest
from helpers import unsound_data
from scipy.optimize import minimize
from scipy.stats import hypergeom

from classex_bayes import SourceTask, compare
from classex_bayes.estimators import SampledMetrics
from classex_bayes.task.rank_table import RankTable

# Predictions far beyond the data, from a few users, are what is tested here.
pytestmark = [
    pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.ExtrapolationWarning"),
    unsound_data,
]

N, NEGATIVES = 30, 6
RANKS = np.arange(1, N + 1)
METRICS = {
    "accuracy": 1.0 * (RANKS == 1),
    "hit_rate@5": 1.0 * (RANKS <= 5),
    "mrr": 1 / RANKS,
    "ndcg@10": np.where(RANKS <= 10, 1 / np.log2(1 + RANKS), 0),
    "mean_rank": 1.0 * RANKS,
}
every_metric = pytest.mark.parametrize("metric", METRICS)
every_method = pytest.mark.parametrize(
    "method", ["least_squares", "bias_variance", "maximum_likelihood", "maximum_entropy"]
)


def own_negatives(n_better, n_negatives=NEGATIVES, weight=None):
    """Task of items with `n_better` (n,) better negatives of their own."""
    n = len(n_better)
    weight = np.full(n, 1 / n) if weight is None else np.asarray(weight)
    options = {"n_competitors": n_negatives, "competitors_shared": False}
    size = int(np.min(n_negatives)) + 1
    return SourceTask(RankTable(np.arange(n), size, weight, np.asarray(n_better), **options))


@lru_cache
def chance_of(n_items, n_negatives):
    """P(L | R) of shape (N, n + 1)."""
    rank = np.arange(1, n_items + 1)[:, None]
    return hypergeom.pmf(np.arange(n_negatives + 1), n_items - 1, rank - 1, n_negatives)


CHANCE = chance_of(N, NEGATIVES)
SHARE = np.array([0.4, 0.2, 0.1, 0.15, 0.05, 0.0, 0.1])  # of instances by L
TASK = own_negatives(np.arange(NEGATIVES + 1), weight=SHARE)


def value(method, metric, task=TASK, k=N, **settings):
    return SampledMetrics(method, **settings).fit(task).predict(k, metric=metric).mean.iloc[0]


def law_of(method, **settings):
    """Estimated distribution of R: differences of its hit rates."""
    rates = [value(method, f"hit_rate@{m}", **settings) for m in RANKS]
    return np.diff(rates, prepend=0)


# Values for each number of better negatives


@every_metric
def test_least_squares_without_constraint_are_those_of_a_dense_solver(metric):
    values = np.linalg.lstsq(CHANCE, METRICS[metric], rcond=None)[0]
    assert value("bias_variance", metric, gamma=0) == pytest.approx(SHARE @ values, rel=1e-9)


@every_metric
def test_monotone_least_squares_are_those_of_a_convex_solver(metric):
    gain, values = METRICS[metric], cvxpy.Variable(NEGATIVES + 1)
    sign = 1 if gain[0] > gain[-1] else -1
    falling = [sign * cvxpy.diff(values) <= 0, sign * (values - gain[-1]) >= 0]
    error = cvxpy.sum_squares(CHANCE @ values - gain)
    cvxpy.Problem(cvxpy.Minimize(error), falling).solve(solver="CLARABEL")
    assert value("least_squares", metric) == pytest.approx(SHARE @ values.value, rel=1e-5)


@every_metric
@pytest.mark.parametrize("gamma", [0.1, 0.7, 1.0])
def test_bias_and_variance_are_minimal(metric, gamma):
    gain = METRICS[metric]

    def loss(values):
        mean = CHANCE @ values
        variance = (CHANCE * (values - mean[:, None]) ** 2).sum(axis=1)
        return np.mean((mean - gain) ** 2 + gamma * variance) / gain.var()

    best = minimize(loss, np.zeros(NEGATIVES + 1), tol=1e-12).x
    assert value("bias_variance", metric, gamma=gamma) == pytest.approx(SHARE @ best, rel=1e-4)


@pytest.mark.parametrize("n_items", [1000, 10_000])
def test_least_squares_of_the_mean_rank_are_unbiased(n_items):
    """1 + L (N - 1) / n has the mean R given R, and is monotone."""
    for rank in (2, 37, 500, n_items - 10):
        law = hypergeom.pmf(np.arange(100), n_items - 1, rank - 1, 99)
        task = own_negatives(np.arange(100), 99, law / law.sum())
        found = value("least_squares", "mean_rank", task, n_items)
        assert found == pytest.approx(rank, rel=1e-6)


# Distributions of the rank


@pytest.mark.parametrize("em_steps", [1, 20, 3000])
def test_em_is_near_the_maximum_of_the_likelihood(em_steps):
    """n steps end at most log(N) / n below it, by the convergence theorem of EM for mixtures."""
    seen, law = SHARE > 0, cvxpy.Variable(N, nonneg=True)
    log_likelihood = SHARE[seen] @ cvxpy.log(CHANCE.T[seen] @ law)
    problem = cvxpy.Problem(cvxpy.Maximize(log_likelihood), [cvxpy.sum(law) == 1])
    largest = problem.solve(solver="CLARABEL")
    found = law_of("maximum_likelihood", em_steps=em_steps)
    assert found.sum() == pytest.approx(1) and found.min() >= 0
    reached = SHARE[seen] @ np.log(CHANCE.T[seen] @ found)
    assert -1e-7 <= largest - reached <= np.log(N) / em_steps
    if em_steps == 1:
        expected = CHANCE[:, seen] @ (SHARE[seen] / CHANCE.mean(axis=0)[seen]) / N
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("eta", [1.0, 100.0, 1e4])
def test_the_entropy_is_maximal(eta):
    law = cvxpy.Variable(N)
    distance = cvxpy.sum_squares(SHARE - CHANCE.T @ law)
    objective = cvxpy.Maximize(cvxpy.sum(cvxpy.entr(law)) - eta * distance)
    cvxpy.Problem(objective, [cvxpy.sum(law) == 1]).solve(solver="CLARABEL")
    np.testing.assert_allclose(law_of("maximum_entropy", eta=eta), law.value, atol=1e-5)


# Known distributions, simulated


def test_methods_without_bias_are_near_the_truth():
    """With N = 12 and n = 10, least squares are nearly unbiased; EM finds a law of few ranks."""
    n_items, n, n_users = 12, 10, 200_000
    rng = np.random.default_rng(1)
    ranks = rng.choice([1, 2, 5, 11], n_users, p=[0.5, 0.2, 0.2, 0.1])
    task = own_negatives(rng.hypergeometric(ranks - 1, n_items - ranks, n), n)
    for metric, gain in (("mrr", 1 / ranks), ("hit_rate@3", ranks <= 3)):
        truth, se = gain.mean(), gain.std() / np.sqrt(n_users)
        assert value("bias_variance", metric, task, n_items, gamma=0) == pytest.approx(
            truth, abs=10 * se
        )
        found = value("maximum_likelihood", metric, task, n_items, em_steps=20_000)
        assert found == pytest.approx(truth, abs=10 * se)


@every_method
def test_large_numbers_of_negatives_give_the_truth(method):
    """99 of 119 other items are drawn, and the sampled metric is still far from the truth."""
    n_items, n, n_users = 120, 99, 20_000
    rng = np.random.default_rng(2)
    ranks = np.ceil(n_items * rng.beta(0.5, 4, n_users)).astype(int)
    task = own_negatives(rng.hypergeometric(ranks - 1, n_items - ranks, n), n)
    truth = np.mean(ranks <= 10)
    sampled = task.metric("hit_rate@10", [n + 1])[0]
    found = value(method, "hit_rate@10", task, n_items)
    assert abs(found - truth) < 0.015 < sampled - truth


# Properties


@every_metric
@every_method
def test_up_to_the_negatives_the_subsets_are_averaged(method, metric):
    sizes = [2, 4, NEGATIVES + 1]
    found = SampledMetrics(method).fit(TASK).predict(sizes, metric=metric).mean
    np.testing.assert_allclose(found, TASK.metric(metric, sizes))
    # One more item changes little.
    settings = {"em_steps": 10**4, "eta": 1e6, "gamma": 0.0}
    expected = METRICS[metric][: NEGATIVES + 1] @ SHARE
    assert value(method, metric, k=NEGATIVES + 2, **settings) == pytest.approx(expected, rel=0.3)


@every_method
def test_shared_competitors_are_negatives_too(method):
    n_better = np.arange(12) % 7
    shared = SourceTask.from_ranks(n_better + 1, np.arange(12) % 7, n_classes=7)
    weight = shared.table.weight
    for metric in ("accuracy", "mrr", "mean_rank"):
        own = value(method, metric, own_negatives(n_better, weight=weight), 100)
        assert value(method, metric, shared, 100) == pytest.approx(own, rel=1e-9)


@pytest.mark.parametrize("metric", ["hit_rate@700", "mrr", "ndcg@10"])
def test_cells_of_ranks_lose_nothing(metric):
    """Cells contain several ranks above 1000 items; the dense solution has every rank."""
    n_items, n, gamma = 3000, 40, 0.1
    ranks, chance = np.arange(1, n_items + 1), chance_of(n_items, n)
    gain = {
        "hit_rate@700": ranks <= 700,
        "mrr": 1 / ranks,
        "ndcg@10": (ranks <= 10) / np.log2(1 + ranks),
    }[metric]
    matrix = (1 - gamma) * chance.T @ chance + gamma * np.diag(chance.sum(axis=0))
    values = np.linalg.solve(matrix, chance.T @ gain)
    for n_better in (0, 9):
        found = value("bias_variance", metric, own_negatives([n_better], n), n_items)
        assert found == pytest.approx(values[n_better], rel=4e-3)


@every_method
def test_many_items(method):
    task = own_negatives(np.array([0] * 50 + [1, 1, 4, 30]), 99)
    found = SampledMetrics(method).fit(task).predict([10**6, 10**9, 10**12], metric="recall@100")
    assert (np.diff(found.mean) < 0).all() and found.mean.between(-1e-6, 0.5).all()
    assert abs(found.mean.iloc[2]) < 1e-6 and found.estimand.metric == "recall@100"


def test_predictions_outside_the_limits_have_a_note():
    model = SampledMetrics(gamma=0).fit(own_negatives([0, 1, 1, 1]))
    prediction = model.predict([5, 40], metric="hit_rate@1")
    assert prediction.mean.iloc[1] < 0
    assert any("outside [0, 1]" in note for note in prediction.notes)


def test_compare_shows_every_metric():
    methods = ["least_squares", "bias_variance", "maximum_likelihood", "maximum_entropy"]
    estimators = [SampledMetrics(method) for method in methods]
    for metric in METRICS:
        table = compare(estimators, TASK, [7, N], metric=metric, truth={N: 1.0}).table
        assert len(table) == 8 and table["mean"].notna().all()


def test_all_the_weight_on_the_variance():
    """Then one value serves every L: the mean of the metric over equally likely ranks."""
    task = own_negatives(np.arange(30) % 10, np.full(30, 99))
    found = SampledMetrics(gamma=1.0).fit(task).predict(1000, metric="recall@10")
    assert np.isfinite(found.mean).all()


@every_method
@pytest.mark.parametrize("metric", [*METRICS, "hit_rate@3"])
def test_instances_without_an_answer_are_last(method, metric):
    """Up to n + 1 items as in the task, beyond as shares of the others and of the last rank."""
    ranks = [1, 2, 3, 1, 5]
    task = SourceTask.from_ranks(ranks, range(5), n_negatives=NEGATIVES, unanswered=[0, 7])
    for k in (2, 5, NEGATIVES + 1):
        assert value(method, metric, task, k) == pytest.approx(task.metric(metric, k).item())
    answered = SourceTask.from_ranks(ranks, range(5), n_negatives=NEGATIVES)
    weight = np.array([1 / 2, 1, 1, 1, 1]) / 6  # of six users, one of whom has half an answer
    answered = SourceTask(replace(answered.table, weight=weight / weight.sum()))
    last = METRICS.get(metric, np.zeros(N))[-1]
    expected = weight.sum() * value(method, metric, answered) + (1 - weight.sum()) * last
    assert value(method, metric, task) == pytest.approx(expected)
