"""KDE against the R package ClassEx 0.0.0.9000 on simulated Gaussian tasks, and its properties."""

from pathlib import Path

import mpmath
import numpy as np
import pytest
from helpers import random_scores, score_task, unsound_data
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from classex_bayes.estimators import kde
from classex_bayes.estimators.kde import KDE, RULES, select_bandwidths
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask

# Predictions far beyond the data are part of what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.ExtrapolationWarning")

REFERENCE = Path(__file__).parents[1] / "reference" / "classexreg_kde.npz"


@pytest.fixture(scope="module")
def stored():
    with np.load(REFERENCE) as file:
        return dict(file)


def gaussian_scores(stored, name, kind):
    difference = stored[f"{name}_y"][:, None] - stored[f"{name}_train"]
    squared = (difference**2).sum(axis=2)
    return -squared if kind == "negsq" else -np.sqrt(squared)


@pytest.mark.parametrize("kind", ["negsq", "negdist"])
@pytest.mark.parametrize("name", ["gauss2", "gauss3"])
def test_equals_r(stored, name, kind):
    scores = gaussian_scores(stored, name, kind)
    task = SourceTask.from_scores(scores, np.arange(60))
    data = f"{name}_{kind}"
    r_nrd0, r_ucv, r_bcv, r_sj = stored[f"{data}_bandwidths"]
    by_name = {rule: KDE(rule).fit(task) for rule in RULES}
    for rule, expected in (("nrd0", r_nrd0), ("ucv", r_ucv), ("bcv", r_bcv)):
        np.testing.assert_allclose(by_name[rule].bandwidths_, expected, rtol=1e-9)
    np.testing.assert_allclose(by_name["sj"].bandwidths_, r_sj, rtol=0.01)
    for rule, expected in zip(("ucv", "bcv"), stored[f"{data}_favorability"], strict=True):
        np.testing.assert_allclose(by_name[rule].favorability_, expected, atol=1e-10)
    for rule, expected in zip(("nrd0", "ucv", "bcv"), stored[f"{data}_kde"], strict=True):
        predicted = by_name[rule].predict(stored[f"{name}_k"]).mean
        np.testing.assert_allclose(predicted, expected, atol=1e-9)


def test_embeddings_give_the_same(stored):
    task = SourceTask.from_embeddings(
        stored["gauss2_y"], stored["gauss2_train"], np.arange(60), distance="sqeuclidean"
    )
    _, expected, _ = stored["gauss2_negsq_kde"]
    predicted = KDE("ucv").fit(task).predict(stored["gauss2_k"]).mean
    # Scores from a matrix product differ in the last digits, and a bin may hold one point more.
    np.testing.assert_allclose(predicted, expected, atol=1e-3)


def test_blocks_of_rows_do_not_matter(constants):
    task = score_task(k1=12, repeats=3)
    whole = KDE().fit(task)
    with constants(kde, _BLOCK_ELEMENTS=60):
        np.testing.assert_array_equal(KDE().fit(task).favorability_, whole.favorability_)


def test_ruled_out_competitors_count_as_beaten():
    scores, y = random_scores(k1=12)
    scores[3, [5, 6, 7]] = -np.inf
    model = KDE("ucv").fit(SourceTask.from_scores(scores, y))
    finite = np.delete(scores[3], [3, 5, 6, 7])
    h = select_bandwidths("ucv", finite)
    assert model.bandwidths_[3] == h
    expected = (ndtr((scores[3, 3] - finite) / h).sum() + 3) / 11
    assert model.favorability_[3] == pytest.approx(expected, rel=1e-14)


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


@pytest.mark.parametrize(("row", "wrong"), [(4, 0.25), (7, -np.inf)])
@pytest.mark.parametrize("rule", RULES)
def test_names_the_row_without_a_bandwidth(rule, row, wrong):
    scores, y = random_scores()
    scores[row] = np.where(np.arange(12) == row, 1.0, wrong)
    task = SourceTask.from_scores(scores, y)
    with pytest.raises(DataError, match=rf"^scores: .* row {row},"):
        KDE(rule).fit(task)
    assert KDE(0.5).fit(task).favorability_[row] > 0.5


@pytest.mark.parametrize("bad", ["silverman", "1", 0, -1.0, np.nan, np.inf, None, True, [1.0]])
def test_refuses_bandwidth(bad):
    task = score_task()
    with pytest.raises(DataError, match=r"^bandwidth: "):
        KDE(bad).fit(task)


@unsound_data
@given(seed=st.integers(0, 10**6), exponent=st.integers(-30, 30), shift=st.floats(-5, 5))
def test_unit_and_location_of_the_scores(seed, exponent, shift):
    scores, y = random_scores(seed)
    task = SourceTask.from_scores(scores, y)
    rescaled = SourceTask.from_scores(np.ldexp(scores, exponent), y)
    shifted = SourceTask.from_scores(scores + shift, y)
    for rule in ("ucv", "nrd0"):
        expected = KDE(rule).fit(task).favorability_
        np.testing.assert_array_equal(KDE(rule).fit(rescaled).favorability_, expected)
        found = KDE(rule).fit(shifted).favorability_
        if rule == "nrd0":
            np.testing.assert_allclose(found, expected, atol=1e-9)
        else:
            # The cells of the cross-validation stay where they are when the sample moves, and a
            # few bandwidths may jump to another local minimum.
            assert found.mean() == pytest.approx(expected.mean(), abs=0.05)


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
