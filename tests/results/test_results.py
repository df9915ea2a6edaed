"""Results: intervals against exact quantiles, tables that say what they hold, warnings."""

import pickle
import warnings

import arviz_base
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.stats import beta

from classex_bayes import Extrapolation, SourceTask, compare
from classex_bayes.estimators import LogLinear
from classex_bayes.exceptions import ExtrapolationWarning
from classex_bayes.results import ClassesUntil, Estimand

LAWS = {20: beta(60, 20), 100: beta(8, 6), 500: beta(2, 12)}


@pytest.fixture(scope="module")
def drawn():
    """Draws of laws whose quantiles are known."""
    rng = np.random.default_rng(0)
    draws = np.stack([law.rvs((4, 5000), random_state=rng) for law in LAWS.values()], axis=-1)
    return Extrapolation.from_draws(list(LAWS), draws, "drawn", "credible", n_classes=10)


@pytest.fixture
def point():
    return Extrapolation.from_point([20, 100], [0.9, 0.8], "point", n_classes=10)


def from_draws(k, n_classes, accuracy=0.5):
    draws = np.full((2, 3, np.size(k)), accuracy)
    return Extrapolation.from_draws(k, draws, "constant", "credible", n_classes)


# Draws


def test_dimensions(drawn, point):
    assert drawn.accuracy.dims == ("chain", "draw", "k") and drawn.accuracy.name == "accuracy"
    assert drawn.accuracy.shape == (4, 5000, 3) and drawn.k.tolist() == list(LAWS)
    assert point.accuracy.shape == (1, 1, 2)
    assert point.mean.to_dict() == {20: 0.9, 100: 0.8}
    table = drawn.to_dataframe()
    assert table.columns.tolist() == ["chain", "draw", "k", "accuracy"] and len(table) == 60_000
    row = table.query("chain == 3 and draw == 7 and k == 100")["accuracy"].item()
    assert row == drawn.accuracy.values[3, 7, 1]


def test_moments_and_probabilities_are_those_of_the_law(drawn):
    table = drawn.summary()
    for k, law in LAWS.items():
        error = 4 / np.sqrt(20_000)
        assert drawn.mean[k] == pytest.approx(law.mean(), abs=law.std() * error)
        assert table.loc[k, "sd"] == pytest.approx(law.std(), rel=error)
        for level in (0.2, 0.6, 0.75):
            assert drawn.prob_at_least(level)[k] == pytest.approx(law.sf(level), abs=error / 2)


@pytest.mark.parametrize("prob", [0.5, 0.9])
def test_equal_tailed_interval(drawn, prob):
    interval = drawn.interval(prob, "eti")
    for k, law in LAWS.items():
        tails = np.array([(1 - prob) / 2, (1 + prob) / 2])
        exact = law.ppf(tails)
        error = np.sqrt(tails * (1 - tails) / 20_000) / law.pdf(exact)
        assert np.all(np.abs(interval.loc[k, ["lower", "upper"]] - exact) < 4 * error)


def test_highest_density_interval_is_the_shortest(drawn):
    narrow, equal = drawn.interval(0.8, "hdi"), drawn.interval(0.8, "eti")
    for k, law in LAWS.items():
        lower, upper = narrow.loc[k]
        assert upper - lower < equal.loc[k, "upper"] - equal.loc[k, "lower"]
        start = np.linspace(0, 0.2, 1001)[1:-1]
        shortest = (law.ppf(start + 0.8) - law.ppf(start)).min()
        assert upper - lower == pytest.approx(shortest, rel=0.03)
        assert law.cdf(upper) - law.cdf(lower) == pytest.approx(0.8, abs=0.02)


def test_numbers_that_are_not_finite_are_refused():
    with pytest.raises(FloatingPointError):
        from_draws([20], 10, np.nan)
    with pytest.raises(FloatingPointError):
        Extrapolation.from_point([20], [np.inf], "point", 10, estimand=Estimand(metric="risk"))


# Tables


def test_columns_carry_level_and_kind(drawn):
    assert drawn.summary(0.95, "hdi").columns.tolist() == ["mean", "sd", "hdi95_lb", "hdi95_ub"]
    assert drawn.summary(0.925, "eti").columns.tolist()[2:] == ["eti92.5_lb", "eti92.5_ub"]
    table, interval = drawn.summary(0.6, "hdi", "none"), drawn.interval(0.6, "hdi")
    assert table.index.name == "k"
    np.testing.assert_array_equal(table[["hdi60_lb", "hdi60_ub"]], interval)


def test_intervals_have_the_level_90_unless_settings_of_arviz_were_changed(drawn):
    assert arviz_base.rcParams["stats.ci_prob"] != 0.9
    assert "eti90_lb" in drawn.summary()
    with arviz_base.rc_context({"stats.ci_prob": 0.5, "stats.ci_kind": "hdi"}):
        assert drawn.summary().columns.tolist()[2:] == ["hdi50_lb", "hdi50_ub"]
        pd.testing.assert_frame_equal(drawn.interval(), drawn.interval(0.5, "hdi"))
        assert "eti50_lb" in drawn.summary(ci_kind="eti")
        assert "hdi90_lb" in drawn.summary(ci_prob=0.9)


@pytest.mark.parametrize("evidence", ["ranks", "ranks and scores"])
def test_the_text_says_what_was_used(drawn, evidence):
    found = Extrapolation.from_draws(
        list(LAWS), drawn.accuracy.values, "drawn", "credible", 10, ("noted",), evidence=evidence
    )
    assert found.evidence == evidence and drawn.evidence == ""
    text = repr(found)
    assert evidence in text and f"{drawn.mean[100]:.3f}" in text and "note: noted" in text
    assert repr(pickle.loads(pickle.dumps(found))) == text


def test_html_is_escaped():
    named = Extrapolation.from_point([20], [0.5], "<b>KDE & co</b>", 10, notes=("1 < 2 <script>",))
    html = named._repr_html_()
    assert "<script" not in html and "<b>KDE" not in html and "<table" in html


# Risks


@pytest.fixture(scope="module")
def risky(drawn):
    return Extrapolation.from_draws(
        list(LAWS),
        1 - drawn.accuracy.values,
        "risky",
        "credible",
        10,
        estimand=Estimand(metric="risk"),
    )


def test_risks_are_named_so(risky, drawn):
    assert drawn.quantity == "accuracy" and drawn.mean.name == "accuracy"
    assert risky.quantity == "risk" and risky.risk.name == "risk" and risky.mean.name == "risk"
    assert risky.to_dataframe().columns.tolist() == ["chain", "draw", "k", "risk"]
    assert "expected risk" in repr(risky)
    np.testing.assert_array_equal(risky.k, drawn.k)
    np.testing.assert_allclose(risky.mean, 1 - drawn.mean)
    point = Extrapolation.from_point([20], [0.3], "point", 10, estimand=Estimand(metric="risk"))
    assert point.risk.item() == 0.3 and point.summary().columns.tolist() == ["mean"]


def test_tables_of_risks_mirror_those_of_accuracies(risky, drawn):
    found, expected = risky.interval(0.8, "eti"), 1 - drawn.interval(0.8, "eti")
    np.testing.assert_allclose(found["lower"], expected["upper"])
    np.testing.assert_allclose(risky.summary(0.8)["sd"], drawn.summary(0.8)["sd"], rtol=1e-12)
    np.testing.assert_allclose(risky.prob_at_most(0.4), drawn.prob_at_least(0.6), atol=1e-3)


def test_probabilities_of_either_side_add_up(drawn):
    np.testing.assert_allclose(drawn.prob_at_most(0.4), 1 - drawn.prob_at_least(0.4))


# Warnings


def test_far_extrapolation_warns_once_where_it_was_asked_for():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        prediction = from_draws([100, 2000, 5000], 10)
    assert [(w.category, w.filename) for w in caught] == [(ExtrapolationWarning, __file__)]
    (note,) = prediction.notes
    assert note == str(caught[0].message) and "500 times" in note


def test_up_to_a_hundred_times_is_not_far():
    assert from_draws([20, 1000], 10).notes == ()
    with pytest.warns(ExtrapolationWarning):
        from_draws([1001], 10)


# Number of classes until


def test_classes_until_may_be_infinite():
    draws = xr.DataArray([[1, 10, 20, np.inf, np.inf]], dims=("chain", "draw"))
    until = ClassesUntil(0.9, draws, 10**12, 10**10)
    assert until.median == 20
    assert until.interval(0.5) == (10, np.inf)
    assert [until.prob_at_least(k) for k in (1, 15, 21, np.inf)] == [1, 0.6, 0.4, 0.4]
    with arviz_base.rc_context({"stats.ci_prob": 0.5}):
        assert until.interval() == (10, np.inf) and "20 classes" in repr(until)
    far = ClassesUntil(0.5, xr.full_like(draws, np.inf), 10**12, 10**10)
    assert far.median == np.inf and far.interval() == (np.inf, np.inf)
    assert "probably stays above 50%" in repr(far)
    few = ClassesUntil(0.99, xr.full_like(draws, 1.0), 10**12, 10**10)
    assert "below 99%" in repr(few)
    # Numbers far beyond the pilot are not printed.
    assert "1,000 classes" in ClassesUntil(0.5, far.k, 10**12, 10).describe()


def test_classes_until_has_quantiles_of_the_draws():
    k = np.random.default_rng(1).lognormal(6, 1, (2, 4001))
    until = ClassesUntil(0.9, xr.DataArray(k, dims=("chain", "draw")), 10**12, 10**10)
    lower, upper = until.interval(0.8)
    assert until.median == np.sort(k, axis=None)[4000]
    assert np.mean(k < lower) == pytest.approx(0.1, abs=1e-3)
    assert np.mean(k > upper) == pytest.approx(0.1, abs=1e-3)


# Known accuracies


@pytest.mark.parametrize("kind", [dict, pd.Series, "task", "curve"])
def test_truth_is_put_beside_predictions(kind):
    task = SourceTask.from_ranks([1, 1, 2, 4, 3, 1], range(6), n_classes=6)
    k, truth = np.array([5, 2, 6, 7, 100]), task
    expected = dict(zip([2, 5, 6], task.accuracy([2, 5, 6]), strict=True))
    if kind == "curve":
        truth = SourceTask.from_accuracies([2, 6], [0.9, 0.5], n_test=30, n_classes=6)
        expected = {2: 0.9, 6: 0.5}
    elif kind != "task":
        truth = kind({300: 0.4, 100: 0.2, 7: 1})
        expected = {7: 1.0, 100: 0.2}
    table = compare([LogLinear()], task, k, truth=truth, progressbar=False).table
    found = table.reset_index().set_index("k")["truth"].dropna()
    assert found.to_dict() == expected
