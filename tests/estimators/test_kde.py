"""KDE and its bandwidths against R and the package ClassEx 0.0.0.9000, and its properties."""

from pathlib import Path

import mpmath
import numpy as np
import pytest
from helpers import few_examples, random_scores, unsound_data
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from classex_bayes import KDE, SourceTask
from classex_bayes.estimators.kde import RULES, select_bandwidths

# Predictions far beyond the data are part of what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.ExtrapolationWarning")

REFERENCE = Path(__file__).parents[1] / "reference" / "classexreg_kde.npz"


with np.load(REFERENCE) as archive:
    STORED = dict(archive)
VECTORS = {str(name): STORED[f"vec_{name}"] for name in STORED["vec_names"]}
EXPECTED = dict(zip(VECTORS, STORED["vec_bandwidths"], strict=True))
ALL = pytest.mark.parametrize("rule", RULES)


# Bandwidths, against R 4.2.2 (`bw.nrd0`, `bw.ucv`, `bw.bcv`)


@pytest.mark.parametrize("name", VECTORS)
def test_bandwidths_equal_r(name):
    x = VECTORS[name]
    selected = [select_bandwidths(rule, x) for rule in ("nrd0", "ucv", "bcv")]
    np.testing.assert_allclose(selected, EXPECTED[name][:3], rtol=1e-9)


@ALL
def test_samples_do_not_disturb_each_other(rule):
    """Rows of a matrix, of all scales, get the bandwidth that each has alone."""
    rng = np.random.default_rng(3)
    samples = rng.normal(size=(20, 150)) ** 3 * np.exp(rng.normal(0, 20, size=(20, 1)))
    expected = [select_bandwidths(rule, row) for row in samples]
    np.testing.assert_allclose(select_bandwidths(rule, samples), expected, rtol=1e-9)


@ALL
@few_examples(15)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 200), exponent=st.integers(-900, 900))
def test_order_sign_and_unit_do_not_matter(rule, seed, n, exponent):
    x = np.random.default_rng(seed).normal(size=n)
    expected = select_bandwidths(rule, x)
    shuffled = np.random.default_rng(seed).permutation(x)
    np.testing.assert_allclose(select_bandwidths(rule, -shuffled), expected, rtol=1e-6)
    # Powers of two are exact, down to numbers whose squares vanish or overflow.
    assert select_bandwidths(rule, np.ldexp(x, exponent)) == np.ldexp(expected, exponent)


@ALL
def test_many_equal_points(rule):
    """With an interquartile range of 0 the standard deviation stands in."""
    assert 0 < select_bandwidths(rule, [0.0] * 30 + [1.0, 2.0, 3.0]) < 1


@ALL
def test_range_of_one_rounding_unit(rule):
    assert select_bandwidths(rule, [1.0, np.nextafter(1.0, 2.0)] * 10) > 0


# The estimator, against the R package ClassEx


def gaussian_scores(name, kind):
    difference = STORED[f"{name}_y"][:, None] - STORED[f"{name}_train"]
    squared = (difference**2).sum(axis=2)
    return -squared if kind == "negsq" else -np.sqrt(squared)


@pytest.mark.parametrize("kind", ["negsq", "negdist"])
@pytest.mark.parametrize("name", ["gauss2", "gauss3"])
def test_equals_r(name, kind):
    scores = gaussian_scores(name, kind)
    task = SourceTask.from_scores(scores, np.arange(60))
    data = f"{name}_{kind}"
    by_name = {rule: KDE(rule).fit(task) for rule in RULES}
    bandwidths = STORED[f"{data}_bandwidths"][:3]
    for rule, expected in zip(("nrd0", "ucv", "bcv"), bandwidths, strict=True):
        np.testing.assert_allclose(by_name[rule].bandwidths_, expected, rtol=1e-9)
    for rule, expected in zip(("ucv", "bcv"), STORED[f"{data}_favorability"], strict=True):
        np.testing.assert_allclose(by_name[rule].favorability_, expected, atol=1e-10)
    for rule, expected in zip(("nrd0", "ucv", "bcv"), STORED[f"{data}_kde"], strict=True):
        predicted = by_name[rule].predict(STORED[f"{name}_k"]).mean
        np.testing.assert_allclose(predicted, expected, atol=1e-9)


def test_many_rows_have_the_numbers_of_each():
    """So many rows that they are handled in parts."""
    scores, y = random_scores(k1=100, repeats=120)
    model, some = KDE("nrd0").fit(SourceTask.from_scores(scores, y)), np.arange(0, y.size, 997)
    wrong = np.array([np.delete(scores[row], y[row]) for row in some])
    h = select_bandwidths("nrd0", wrong)
    np.testing.assert_allclose(model.bandwidths_[some], h, rtol=1e-9)
    expected = ndtr((scores[some, y[some], None] - wrong) / h[:, None]).mean(axis=1)
    np.testing.assert_allclose(model.favorability_[some], expected, rtol=1e-9)


def test_shares_far_below_one_half_keep_their_digits():
    scores = np.random.default_rng(1).normal(size=(6, 6))
    scores[2, 2] = scores[2].min() - 9
    model = KDE(1.0).fit(SourceTask.from_scores(scores, np.arange(6)))
    expected = ndtr(scores[2, 2] - np.delete(scores[2], 2)).mean()
    assert expected < 1e-18 and model.favorability_[2] == pytest.approx(expected, rel=1e-9, abs=0)


@pytest.mark.parametrize("rule", RULES)
def test_rows_with_different_numbers_of_finite_scores(rule):
    scores, y = random_scores(k1=15, repeats=4)
    rng = np.random.default_rng(0)
    ruled_out = rng.random(scores.shape) < rng.uniform(0, 0.7, size=(y.size, 1))
    ruled_out[np.arange(y.size), y] = False
    ruled_out[:, :3] = False
    scores[ruled_out] = -np.inf
    model = KDE(rule).fit(SourceTask.from_scores(scores, y))
    for row, label in enumerate(y):
        wrong = np.delete(scores[row], label)
        h = select_bandwidths(rule, wrong[wrong > -np.inf])
        assert model.bandwidths_[row] == pytest.approx(h, rel=1e-9)
        expected = ndtr((scores[row, label] - wrong) / h).mean()
        assert model.favorability_[row] == pytest.approx(expected, rel=1e-9)


def test_scores_stay_as_they_are():
    scores, y = random_scores()
    task = SourceTask.from_scores(scores, y)
    before = scores.copy()
    KDE().fit(task)
    np.testing.assert_array_equal(scores, before)


@unsound_data
def test_ruled_out_true_class_ties_with_the_ruled_out():
    scores, y = random_scores(k1=12)
    scores[3, [3, 5, 6]] = -np.inf
    model = KDE().fit(SourceTask.from_scores(scores, y, random_seed=0))
    assert model.favorability_[3] == pytest.approx(1 / 11)


@pytest.mark.parametrize("lead", [-2.0, 3.0, 7.0])
def test_powers_of_the_favorability_in_arbitrary_precision(lead):
    scores, k = np.random.default_rng(2).normal(size=(8, 8)), [2, 1000, 10**9, 10**12]
    own = scores[np.arange(8), np.arange(8)] = lead + np.arange(8) / 8
    found = KDE(0.5).fit(SourceTask.from_scores(scores, np.arange(8))).predict(k).mean
    with mpmath.workdps(40):
        above = [
            sum(mpmath.ncdf((scores[i, j] - own[i]) * 2) for j in range(8) if j != i) / 7
            for i in range(8)
        ]
        for size, value in found.items():
            expected = sum((1 - miss) ** (size - 1) for miss in above) / 8
            assert value == pytest.approx(float(expected), rel=0, abs=1e-13)
