"""Scores against their definitions, closed forms and calibrated forecasts."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm, sem

from classex_bayes.evaluate.scoring import (
    crps,
    interval_score,
    probability_transform,
    score_trials,
)
from classex_bayes.exceptions import DataError

SHARES = st.floats(0, 1, width=32)


@given(arrays(float, st.tuples(st.integers(1, 7), st.just(3)), elements=SHARES), SHARES)
def test_crps_is_its_definition(draws, truth):
    pairs = np.abs(draws[:, None] - draws[None]).mean(axis=(0, 1)) / 2
    expected = np.abs(draws - truth).mean(axis=0) - pairs
    np.testing.assert_allclose(crps(draws, np.full(3, truth)), expected, atol=1e-12)


def test_crps_of_a_normal_law():
    draws = norm.ppf((np.arange(20_000) + 0.5) / 20_000)[:, None]
    for x in (0.0, 0.7, -2.0):
        exact = x * (2 * norm.cdf(x) - 1) + 2 * norm.pdf(x) - 1 / np.sqrt(np.pi)
        assert crps(draws, np.array([x]))[0] == pytest.approx(exact, abs=2e-4)


def test_interval_score_by_hand():
    # Width, and 2 / alpha times what is missed below and above; alpha = 0.2.
    found = interval_score(np.full(3, 0.2), np.full(3, 0.5), np.array([0.3, 0.1, 0.6]), 0.8)
    np.testing.assert_allclose(found, [0.3, 0.3 + 10 * 0.1, 0.3 + 10 * 0.1])


def test_crps_and_interval_score_are_best_at_the_truth():
    """Proper scores: on average no other forecast does better than the law itself."""
    truth = np.random.default_rng(1).normal(size=4000)
    scores = {}
    for sd in (0.5, 1.0, 2.0):
        draws = sd * norm.ppf((np.arange(100) + 0.5) / 100)[:, None]
        limits = [np.full(truth.size, sd * norm.ppf(q)) for q in (0.05, 0.95)]
        both = crps(draws, truth).mean(), interval_score(*limits, truth, 0.9).mean()
        scores[sd] = np.array(both)
    assert np.all(scores[1.0] < scores[0.5]) and np.all(scores[1.0] < scores[2.0])


@given(arrays(float, 9, elements=SHARES), SHARES)
def test_transform_is_a_share_and_symmetric(draws, truth):
    one = probability_transform(draws[:, None], np.array([truth]))[0]
    other = probability_transform(1 - draws[:, None], 1 - np.array([truth]))[0]
    assert 0 <= one <= 1
    if not np.any((draws != truth) & (np.abs(draws - truth) < 1e-7)):
        assert one + other == pytest.approx(1)


def forecasts(n, sd=1.0, seed=0):
    """Normal forecasts of standard normal quantities, wrong by their spread."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n)
    quantiles = sd * norm.ppf((np.arange(200) + 0.5) / 200)[:, None]
    return pd.DataFrame(
        {
            "cell": "a", "estimator": "e", "k": 5, "truth": truth, "mean": 0.0,
            "lower": sd * norm.ppf(0.05), "upper": sd * norm.ppf(0.95),
            "crps": crps(quantiles, truth), "pit": probability_transform(quantiles, truth),
        }
    )  # fmt: skip


@pytest.mark.parametrize("sd", [0.5, 1.0])
def test_coverage_and_errors(sd):
    row = score_trials(forecasts(4000, sd)).loc[("a", "e", 5)]
    for level in (50, 80, 90, 95):
        exact = 2 * norm.cdf(sd * norm.ppf((1 + level / 100) / 2)) - 1
        assert row[f"coverage{level}"] == pytest.approx(exact, abs=5 * row[f"coverage{level}_se"])
        assert row[f"coverage{level}_se"] == pytest.approx(
            np.sqrt(exact * (1 - exact) / 4000), rel=0.1
        )
    assert row["rmse"] == pytest.approx(1, abs=5 * row["rmse_se"])
    assert row["rmse_se"] == pytest.approx(1 / np.sqrt(2 * 4000), rel=0.1)
    assert row["bias"] == pytest.approx(0, abs=5 / np.sqrt(4000))
    assert row["width"] == pytest.approx(2 * sd * norm.ppf(0.95))
    assert row["n"] == 4000 and row["failed"] == 0


@pytest.mark.nightly
def test_standard_errors_are_those_of_repeated_studies():
    studies = pd.DataFrame([score_trials(forecasts(60, seed=s)).iloc[0] for s in range(200)])
    for name in ("bias", "rmse", "crps", "interval_score", "coverage80"):
        assert studies[f"{name}_se"].mean() == pytest.approx(studies[name].std(), rel=0.25)


def test_errors_of_few_trials_are_unbiased():
    table = forecasts(5)
    row = score_trials(table).iloc[0]
    error = table["mean"] - table["truth"]
    assert row["bias_se"] == pytest.approx(sem(error))
    assert row["rmse_se"] == pytest.approx(sem(error**2) / (2 * row["rmse"]))
    assert row["crps_se"] == pytest.approx(sem(table["crps"]))


def test_coverage_is_uncertain_where_all_intervals_held():
    """The error is that of the share with one more trial of each kind."""
    row = score_trials(forecasts(8).assign(pit=0.5)).iloc[0]
    assert row["coverage90"] == 1
    assert row["coverage90_se"] == pytest.approx(np.sqrt(0.9 * 0.1 / 10))


def test_point_estimates_and_failures():
    table = forecasts(10).assign(lower=np.nan, upper=np.nan, pit=np.nan, note="none")
    table["crps"] = (table["mean"] - table["truth"]).abs()
    table.loc[0, ["mean", "crps"]] = np.nan
    row = score_trials(table).iloc[0]
    assert row["n"] == 9 and row["failed"] == 1
    assert row["crps"] == pytest.approx((table["truth"][1:]).abs().mean())
    assert np.isnan(row[["coverage90", "coverage90_se", "interval_score", "width"]]).all()
    for faulty, levels in ((table.assign(mean=np.nan), (0.9,)), (table, (90,))):
        with pytest.raises(DataError):
            score_trials(faulty, levels=levels)
