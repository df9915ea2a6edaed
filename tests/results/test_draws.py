"""Rounding by Monte Carlo error, against the errors of independent draws of a known law."""

import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from classex_bayes import Extrapolation
from classex_bayes.evaluate import AccuracyDifference
from classex_bayes.results import Estimand
from classex_bayes.results.draws import DrawsTable

N = 40_000
SDS = np.array([0.1, 0.003, 0.03])


@pytest.fixture(scope="module")
def table():
    """Independent normal draws with a mean of 0.5 and these sds, in 4 chains."""
    draws = 0.5 + SDS * np.random.default_rng(0).standard_normal((4, N // 4, SDS.size))
    return DrawsTable.of_draws(
        xr.DataArray(draws, dims=("chain", "draw", "k"), coords={"k": [10, 20, 30]}), 0.9, "eti"
    )


def test_errors_are_those_of_independent_draws(table):
    tail = norm.ppf(0.05)
    of_quantile = SDS * np.sqrt(0.05 * 0.95 / N) / norm.pdf(tail)
    exact = [SDS / np.sqrt(N), SDS / np.sqrt(2 * N), of_quantile, of_quantile]
    np.testing.assert_allclose(table.errors.T, exact, rtol=0.2)


def test_errors_of_dependent_draws_are_larger():
    rng, n = np.random.default_rng(1), 5000
    noise = rng.standard_normal((4, n, 1))
    walk = np.empty_like(noise)
    walk[:, 0] = noise[:, 0]
    for place in range(1, n):
        walk[:, place] = 0.9 * walk[:, place - 1] + np.sqrt(1 - 0.81) * noise[:, place]
    draws = xr.DataArray(walk, dims=("chain", "draw", "k"), coords={"k": [10]})
    error = DrawsTable.of_draws(draws).errors["mean"].item()
    # The variance of the mean of such draws is (1 + 0.9) / (1 - 0.9) = 19 times as large.
    assert error == pytest.approx(np.sqrt(19 / (4 * n)), rel=0.25)


def test_limits_of_either_kind_have_errors(table):
    draws = np.random.default_rng(2).gamma(2.0, size=(2, 2000, 1))
    array = xr.DataArray(draws, dims=("chain", "draw", "k"), coords={"k": [10]})
    errors = DrawsTable.of_draws(array, 0.9, "hdi").errors
    assert np.all(errors > 0) and errors.columns.tolist()[2:] == ["hdi90_lb", "hdi90_ub"]
    # The upper limit, far out in the tail, is known less well than the lower one.
    assert errors["hdi90_ub"].item() > 2 * errors["hdi90_lb"].item()


LAWS = {
    "beta(20, 5)": lambda rng, shape: rng.beta(20, 5, shape),
    "flat": lambda rng, shape: rng.uniform(size=shape),
    "beta(1/2, 1/2)": lambda rng, shape: rng.beta(0.5, 0.5, shape),
    "normal": lambda rng, shape: rng.normal(size=shape),
}


@pytest.mark.parametrize("law", LAWS)
def test_highest_density_limits_claim_no_more_than_they_know(law):
    repeats = 100
    draws = LAWS[law](np.random.default_rng(6), (4, 1000, repeats))
    array = xr.DataArray(
        draws, dims=("chain", "draw", "k"), coords={"k": np.arange(2, repeats + 2)}
    )
    table = DrawsTable.of_draws(array, 0.89, "hdi")
    true = table.numbers.iloc[:, 2:].std(ddof=1)
    ratio = table.errors.iloc[:, 2:] / true
    # An sd of normal numbers is found to 1 / sqrt(2 x 100) = 7%, from 8 parts to 27% in each fit.
    slack = 3 * np.sqrt(1 / (2 * repeats) + 1 / (14 * repeats))
    claimed = np.sqrt((ratio**2).mean())
    assert np.all(claimed > 1 - slack), claimed
    # Where the error falls as it should, with the cube root of the draws, it is 8^(1/3) = 2 here.
    assert np.all(claimed < 2 * (1 + slack)), claimed
    assert np.all(ratio.quantile(0.05) > 0.6), ratio.quantile(0.05)


@given(st.floats(-1, 1), st.floats(1e-11, 0.5))
def test_what_rounding_takes_is_below_the_error(number, error):
    one = DrawsTable(pd.DataFrame({"a": [number]}), pd.DataFrame({"a": [error]}))
    rounded, text = one.frame("auto")["a"].item(), one.text()["a"].item()
    assert abs(rounded - number) <= error * (1 + 1e-9)
    decimals = len(text.partition(".")[2])
    shown = round(number, decimals)
    if text.startswith("<"):  # the bound in place of 0
        assert shown == 0 and 0 < number < float(text[1:])
    elif text.startswith(">"):  # the bound in place of 1
        assert shown == 1 and float(text[1:]) < number < 1
    else:
        assert float(text) == shown and (shown != 0 or number <= 0)
        assert shown == rounded or decimals == 6
    # One digit less would take more than the error from some number.
    last_place = 10.0**-decimals
    assert 10 * last_place > 2 * error * (1 - 1e-9) or last_place == 1 or decimals == 6


def test_limits_below_a_skewed_mean_are_printed_as_they_are():
    """A twentieth of the draws has all the mass, so the mean lies above the upper limit."""
    draws = np.full((1, 2000, 1), 1e-9)
    draws[0, :80, 0] = np.random.default_rng(1).uniform(1e-4, 2e-4, 80)
    skewed = Extrapolation.from_draws([100], draws, "skewed", "credible", 50)
    assert skewed.interval().loc[100, "upper"] < 1e-8 < skewed.mean[100]
    *_, row = [line for line in repr(skewed).splitlines() if line.startswith("100")]
    mean, _, lower, upper = row.split()[1:]
    assert lower == upper and upper.startswith("<")
    assert 1e-8 < float(upper.removeprefix("<")) <= float(mean)


def test_numbers_without_an_error_keep_all_digits():
    draws = np.full((2, 50, 1), 1 / 3)
    for found in (
        Extrapolation.from_point([10], [1 / 3], "point", 5),
        Extrapolation.from_draws([10], draws, "constant", "credible", 5),
        Extrapolation.from_draws([10], np.full((1, 2, 1), 1 / 3), "few", "credible", 5),
    ):
        assert found.summary()["mean"].item() == pytest.approx(1 / 3, abs=1e-15)
        assert re.search(r"\b0\.3333\b", repr(found))
        assert "0.33333" not in repr(found) and "0.33333" not in found._repr_html_()


def test_full_precision_is_asked_for(table):
    draws = np.random.default_rng(3).beta(20, 5, (1, 400, 2))
    found = Extrapolation.from_draws([10, 20], draws, "bootstrapped", "bootstrap", 5)
    for none in ("none", None):
        full = found.summary(0.9, "eti", none)
        np.testing.assert_array_equal(full["mean"], found.mean)
        np.testing.assert_array_equal(full.iloc[:, 2:], found.interval(0.9, "eti"))
    rounded = found.summary(0.9, "eti")
    assert rounded["mean"].tolist() != found.mean.tolist()
    assert abs(rounded - full).max(axis=None) < 0.02
    assert rounded.index.equals(full.index) and rounded.columns.equals(full.columns)


def test_probabilities_are_rounded_too():
    draws = np.random.default_rng(4).normal(size=(4, 1000, 1))
    array = xr.DataArray(draws, dims=("chain", "draw", "k"), coords={"k": [10]})
    found = DrawsTable.of_draws(array).with_shares("positive", array > 0)
    assert found.errors["positive"].item() == pytest.approx(np.sqrt(0.25 / 4000), rel=0.2)
    assert found.text()["positive"].item() == f"{(draws > 0).mean():.2f}"
    first = found.with_constants("share", [0.125]).text()
    assert first.columns[0] == "share" and first["share"].item() == "0.1250"


# Descriptions


@pytest.mark.parametrize(
    ("estimand", "label"),
    [
        (Estimand(), "accuracy"),
        (Estimand(metric="accuracy@3"), "top-3 accuracy"),
        (Estimand(metric="hit_rate@5"), "hit rate@5"),
        (Estimand(metric="mrr@10"), "MRR@10"),
        (Estimand(population=400), "accuracy"),
        (Estimand(repeats=5), "measured accuracy"),
    ],
)
def test_the_text_names_the_estimand(estimand, label):
    draws = np.random.default_rng(5).uniform(size=(2, 100, 1))
    found = Extrapolation.from_draws([10], draws, "model", "credible", 5, estimand=estimand)
    assert found.estimand.label == label and found.description in repr(found)


# Methods that results share


def test_differences_have_the_methods_of_predictions():
    rng = np.random.default_rng(8)
    draws = xr.DataArray(
        rng.normal(0.05, 0.1, (2, 500, 2)),
        dims=("chain", "draw", "k"),
        coords={"k": [10, 20]},
        name="difference",
    )
    difference = AccuracyDifference("a", "b", draws)
    flat = draws.values.reshape(-1, 2)
    np.testing.assert_allclose(difference.mean, flat.mean(0))
    np.testing.assert_allclose(difference.median, np.median(flat, 0))
    np.testing.assert_allclose(difference.prob_above(0.1), (flat > 0.1).mean(0))
    tails = np.quantile(flat, [0.1, 0.9], axis=0)
    np.testing.assert_allclose(difference.interval(0.8, "eti").T, tails, atol=0.01)
    assert difference.to_dataframe()["difference"].size == flat.size
    assert difference.summary(0.8, "eti").columns[-1] == "prob_above"
