"""Large pilots: the likelihood counts as that of fewer instances, everywhere in the same way."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from classex_bayes import BayesianExtrapolator, MixturePrior, SourceTask, posterior_checks
from classex_bayes.bayes.model.likelihoods import LARGEST_SAMPLE
from studies.laws import FavorabilityLaw

FAMILY = MixturePrior(deviation=0, bandwidth=0.3)
SETTINGS = {"sampler": {"draws": 500, "tune": 500, "chains": 2}, "random_seed": 1}
K1 = 200


def task_of(n_test, law=None):
    """Ranks of each class; the shares of ranks hardly depend on the number of instances."""
    law = FavorabilityLaw(means=(2.0,), sds=(1.0,)) if law is None else law
    ranks, y, _ = law.sample(K1, n_test=n_test, random_seed=3)
    return SourceTask.from_ranks(ranks, np.random.default_rng(0).permutation(y), n_classes=K1)


def fit(task):
    return BayesianExtrapolator(FAMILY).fit(task, progressbar=False, **SETTINGS)


def sd_at_k1(model):
    return float(model.predict(K1).draws.std())


@pytest.fixture(scope="module")
def large():
    return fit(task_of(500_000))


def test_a_large_pilot_counts_as_one_of_the_largest_size(large):
    task = large.task
    independent = task.n_test / task.design_effect()
    assert independent > 50 * LARGEST_SAMPLE
    # Without the power the standard deviation would fall with the root of the number of instances.
    expected = sd_at_k1(fit(task_of(400))) * np.sqrt(400 / LARGEST_SAMPLE)
    assert sd_at_k1(large) == pytest.approx(expected, rel=0.25)
    mean = float(large.predict(K1).mean[K1])
    assert mean == pytest.approx(float(task.accuracy([K1])[0]), abs=3 * expected)


def test_small_pilots_are_counted_in_full():
    model = fit(task_of(400))
    precision = float(model.idata["constant_data"]["precision"][0])
    assert precision == pytest.approx(1 / model.task.design_effect(), rel=0.005)
    assert not any("independent ones" in note for note in model.predict(K1).notes)


def test_readers_are_told(large):
    precision = float(large.idata["constant_data"]["precision"][0])
    counted = 500_000 * precision
    assert counted == pytest.approx(LARGEST_SAMPLE, rel=0.01)
    assert any(f"{counted:,.0f}" in note for note in large.predict(K1).notes)
    assert f"counted as {counted:.0f} independent ones" in " ".join(repr(large).split())


def test_the_pymc_model_the_sum_over_classes_and_the_replicates_agree(large):
    model, weights = large.model, large.weights_.values[0, :3]
    by_class = large.compute_log_likelihood()["log_likelihood"]["rank_histogram"]
    constant, counts = large.idata["constant_data"], large.idata["observed_data"]["rank_histogram"]
    matrix, precision = constant["matrix"].values, constant["precision"].values[0]
    expected = precision * np.log(weights @ matrix.T) @ counts.values
    assert_allclose(by_class.values[0, :3].sum(axis=-1), expected, rtol=1e-10)
    density = model.compile_fn(
        model.logp(vars=model.observed_RVs, sum=True),
        inputs=model.value_vars,
        mode="FAST_COMPILE",
        on_unused_input="ignore",
    )
    draws = large.idata["posterior"].to_dataset()
    for place in range(3):
        at = draws.isel(chain=0, draw=place)
        point = {"mu": at["mu"].values, "tau_log__": np.log(at["tau"].values)}
        assert float(density(point)) == pytest.approx(expected[place], rel=1e-9)
    large.sample_posterior_predictive(random_seed=1)
    first = large.idata["posterior_predictive"]["rank_histogram"].values[..., 0] / 500_000
    share = float((matrix @ weights[0])[0])
    assert first.std() == pytest.approx(np.sqrt(2 * share * (1 - share) / LARGEST_SAMPLE), rel=0.15)


def test_differences_that_the_posterior_allows_are_not_unusual():
    # The family lacks the second group, by less than 5,000 ranks show.
    law = FavorabilityLaw(means=(1.85, 2.15), sds=(1.0, 0.85))
    assert posterior_checks(fit(task_of(500_000, law))).passed


def test_pilots_are_counted_together(large):
    halves = [task_of(250_000), task_of(250_001)]
    assert sd_at_k1(fit(halves)) == pytest.approx(sd_at_k1(large), rel=0.15)
