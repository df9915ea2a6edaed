"""BinomialModel: its formula pair by pair, a law with an exact answer, and its limits."""

import mpmath
import numpy as np
import pytest
from helpers import random_scores, unsound_data, weighted_scores
from scipy.integrate import quad
from scipy.stats import norm

from classex_bayes import SourceTask
from classex_bayes.estimators import BinomialModel

# Predictions far beyond the data are part of what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.ExtrapolationWarning")


def pooled_shares(scores, y, weight):
    """Share of the wrong scores of all rows below each true score, pair by pair."""
    shares = []
    for own in scores[np.arange(y.size), y]:
        beaten = [
            np.mean([(s < own) + (s == own) / 2 for s in np.delete(row, label)])
            for row, label in zip(scores, y, strict=True)
        ]
        shares.append(weight @ beaten)
    return np.array(shares)


def instance_weight(y, class_weight):
    return class_weight[y] / np.bincount(y, minlength=class_weight.size)[y]


@unsound_data
@pytest.mark.parametrize("seed", range(4))
def test_formula_pair_by_pair(seed):
    """Weights, repeats and untested classes; every second task has ties and ruled-out classes."""
    rng = np.random.default_rng(seed)
    scores, y, class_weight = weighted_scores(rng, 9, 3, untested=seed % 3)
    if seed % 2:
        scores = np.round(scores)
        scores[rng.random(scores.shape) < 0.2] = -np.inf
    task = SourceTask.from_scores(
        scores, y, class_weight=class_weight, untested="competitors", ties="random"
    )
    model, weight = BinomialModel().fit(task), instance_weight(y, class_weight)
    shares = pooled_shares(scores, y, weight)
    np.testing.assert_allclose(model.favorability_, shares, rtol=1e-13, atol=1e-15)
    k = np.array([2, 9, 40])
    expected = weight @ shares[:, None] ** (k - 1)
    np.testing.assert_allclose(model.predict(k).mean, expected, rtol=1e-12)
    u = np.array([0.123, 0.456, 0.789])
    np.testing.assert_allclose(model.discriminability(u), weight @ (shares[:, None] <= u))


def expected_accuracy(lead, k):
    """Accuracy if true scores are N(lead, 1) and wrong ones N(0, 1), all independent."""
    return quad(lambda z: norm.pdf(z) * norm.cdf(z + lead) ** (k - 1), -9, 9)[0]


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_normal_scores_with_an_offset_of_each_instance(spread):
    """Without offsets the estimate is the accuracy.

    With them the pooled laws have the lead of true scores in units of a larger deviation. Ranks
    compare the scores of one instance, where the offset cancels.
    """
    k, lead = np.array([2, 30, 300, 3000]), 3.0
    rng, y = np.random.default_rng(1), np.arange(300)
    estimates, accuracies = [], []
    for _ in range(20):
        scores = rng.normal(size=(300, 300)) + lead * np.eye(300)
        offset = spread * rng.normal(size=(300, 1))
        task = SourceTask.from_scores(scores + offset, y)
        plain = SourceTask.from_scores(scores, y)
        np.testing.assert_array_equal(task.ranks, plain.ranks)
        estimates.append(BinomialModel().fit(task).predict(k).mean)
        accuracies.append(task.accuracy(300))
    standard_error = np.std(estimates, axis=0, ddof=1) / np.sqrt(20)
    limit = [expected_accuracy(lead / np.hypot(1, spread), size) for size in k]
    assert np.all(np.abs(np.mean(estimates, axis=0) - limit) < 4 * standard_error)
    assert standard_error.max() < 0.01
    truth = expected_accuracy(lead, 300)
    assert np.mean(accuracies) == pytest.approx(truth, abs=0.02)
    assert (truth - limit[2] > 0.2) == bool(spread)


@pytest.mark.parametrize("transform", [np.exp, np.arctan, lambda s: s**3, lambda s: 2.0 * s + 5])
def test_increasing_transforms_of_all_scores(transform):
    scores, y = random_scores(repeats=3)
    first, second = (
        BinomialModel().fit(SourceTask.from_scores(values, y)).favorability_
        for values in (scores, transform(scores))
    )
    np.testing.assert_array_equal(first, second)


def test_other_weights_change_the_pooled_law():
    scores, y = random_scores(repeats=2)
    weight = np.random.default_rng(1).multinomial(12, np.full(12, 1 / 12))
    assert np.any(weight == 0)  # a class that is not drawn
    task, other = (SourceTask.from_scores(scores, y, class_weight=w) for w in (None, weight))
    found, expected = BinomialModel().fit(task).reweigh(other), BinomialModel().fit(other)
    np.testing.assert_allclose(found.favorability_, expected.favorability_, rtol=1e-13)
    assert found.predict(50).mean[50] == pytest.approx(expected.predict(50).mean[50], rel=1e-12)


def test_instances_above_all_wrong_scores():
    scores, y = np.random.default_rng(1).uniform(size=(11, 11)), np.arange(11)
    own = scores[y, y] = np.r_[np.full(4, 2.0), np.full(7, 0.9)]
    # The last class has no weight, so its wrong scores do not count.
    task = SourceTask.from_scores(scores, y, class_weight=np.r_[np.ones(10), 0])
    model = BinomialModel().fit(task)
    prediction = model.predict([2, 1000, 10**12])
    assert prediction.mean[10**12] == pytest.approx(0.4, rel=1e-15)
    assert np.all(model.favorability_[own == 2] == 1)
    assert any("0.40" in note for note in prediction.notes)
    # 0.4 (1 - (1 - 1/100)^(k - 1)) is above 0.01 from k = 4.
    noted = [any("flattened" in n for n in model.predict([2, k]).notes) for k in (3, 4)]
    assert noted == [False, True]


@unsound_data
def test_powers_of_the_favorability_in_arbitrary_precision():
    """The wrong scores above the true ones have a weight of 3e-11."""
    scores = np.random.default_rng(1).uniform(size=(4, 4)) + 2 * np.eye(4)
    scores[0, 1:] = 3
    class_weight = np.array([1e-10, 1, 1, 1])
    task = SourceTask.from_scores(scores, np.arange(4), class_weight=class_weight)
    found = BinomialModel().fit(task).predict([2, 10**9, 10**12]).mean
    with mpmath.workdps(40):
        light = mpmath.mpf(1e-10) / (3 + mpmath.mpf(1e-10))
        for size, value in found.items():
            # The wrong scores of the light class beat every true score, and no others do.
            assert value == pytest.approx(float((1 - light) ** (size - 1)), rel=0, abs=1e-13)
