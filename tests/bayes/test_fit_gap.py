"""How far the posterior lies below the best law: the bound, its p-value, and where it is told."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from classex_bayes import (
    BayesianExtrapolator,
    MixturePrior,
    SourceTask,
    load,
    posterior_checks,
    save,
)
from classex_bayes.bayes.checks.fit_checks import fit_gap, largest_log_likelihood
from classex_bayes.bayes.model.likelihoods import BernsteinData
from classex_bayes.simulate import GaussianNearestNeighbor
from studies.laws import FavorabilityLaw, zoo

# Few knots: the search for the best law takes most of the time of these tests.
BASIS = MixturePrior(bandwidth=0.5).basis
FAMILY, WIDE = MixturePrior(deviation=0, bandwidth=0.3), MixturePrior(bandwidth=0.3)
FEW = {"sampler": {"draws": 300, "tune": 300, "chains": 2}, "progressbar": False}


def task_of(law, n_classes=200, seed=1):
    ranks, y, n_classes = law.sample(n_classes, n_test=3 * n_classes, random_seed=seed)
    return SourceTask.from_ranks(ranks, y, n_classes=n_classes)


@pytest.mark.parametrize("law", ["normal", "two narrow groups", "atom at 0"])
def test_the_bound_is_that_of_another_optimiser(law):
    data = BernsteinData.of(task_of(zoo()[law]), BASIS)

    def falling(weights):
        shares = np.maximum(data.matrix @ weights, 1e-300)
        slope = data.matrix.T @ (data.counts / shares)
        return -data.counts @ np.log(shares) / data.counts.sum(), -slope / data.counts.sum()

    m = BASIS.knots.size
    simplex = {"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like}
    other = minimize(
        falling, np.full(m, 1 / m), jac=True, method="SLSQP", bounds=[(0, 1)] * m,
        constraints=simplex, options={"maxiter": 1000, "ftol": 1e-13},
    )  # fmt: skip
    reached = data.log_likelihood(np.maximum(other.x, 0) / np.maximum(other.x, 0).sum())
    bound = largest_log_likelihood(data)
    assert bound == pytest.approx(reached, abs=0.01) and bound >= reached - 1e-6
    # No law on the knots does better.
    laws = np.random.default_rng(0).dirichlet(np.full(BASIS.knots.size, 0.1), 1000)
    assert data.log_likelihood(laws).max() < bound


def test_the_bound_of_a_pool():
    task = BernsteinData.of(task_of(zoo()["beta"]), BASIS)
    alone = largest_log_likelihood(task)
    for weight in (0.5, 1.0):
        part = replace(task, precision=weight * task.precision)
        pool = BernsteinData.joined([part, part])
        found = largest_log_likelihood(pool)
        assert found == pytest.approx(2 * weight * alone, rel=1e-9)


@pytest.mark.nightly
def test_p_values_of_the_true_law_are_uniform():
    rng = np.random.default_rng(4)
    weights = np.exp(-0.5 * ((BASIS.knots - 2) / 0.8) ** 2)
    weights /= weights.sum()
    data = BernsteinData.of(task_of(zoo()["normal"], 100), BASIS)
    draws, p_values = np.tile(weights, (1, 60, 1)), []
    for _ in range(20):
        counts = data.replicates(weights, rng)
        gap = fit_gap(BernsteinData(data.matrix, counts, 1.0), draws, rng)
        p_values.append(gap.p_value)
        # Replicates go on until ten are as large, so that p is known to a third of itself.
        assert gap.replicated.size == 60 or np.sum(gap.replicated >= gap.observed) >= 10
    assert abs(np.mean(p_values) - 0.5) < 4 / np.sqrt(12 * 20)
    assert np.mean(np.array(p_values) < 0.2) < 0.2 + 4 * np.sqrt(0.16 / 20)


def is_noted(model):
    return any("misses the shape of the data" in note for note in model.predict(1000).notes)


def test_a_posterior_that_reaches_the_data():
    sample = GaussianNearestNeighbor(dim=10, noise_variance=0.2).sample(200, random_seed=2)
    model = BayesianExtrapolator(WIDE).fit(
        SourceTask.from_embeddings(*sample), random_seed=1, **FEW
    )
    assert not is_noted(model)
    check = posterior_checks(model)["best law"]
    assert check.passed and check.value == model.fit_gap_.p_value >= check.limit == 0.01


@pytest.mark.filterwarnings("ignore:the model contradicts")
def test_a_posterior_that_misses_the_data_says_so(tmp_path):
    law = FavorabilityLaw((1.0, 4.0), (0.4, 0.4))
    model = BayesianExtrapolator(FAMILY).fit(task_of(law), random_seed=1, **FEW)
    first = model.predict(1000)
    assert is_noted(model) and not posterior_checks(model)["best law"].passed
    assert is_noted(load(save(model, tmp_path / "model.nc")))
    # Notes are those of the fit that predicted.
    model.fit(task_of(zoo()["normal"]), random_seed=1, **FEW)
    assert pickle.loads(pickle.dumps(first)).notes == first.notes
    assert not is_noted(model)


def test_accuracies_alone_have_no_bound():
    task = SourceTask.from_accuracies([2, 10, 50], [0.98, 0.9, 0.8], n_test=200, n_classes=50)
    model = BayesianExtrapolator().fit(task, random_seed=1, **FEW)
    assert "best law" not in posterior_checks(model).table.index
