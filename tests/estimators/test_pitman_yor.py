"""PitmanYor: its formula by three other ways, the numbers of pydataless, and degenerate tasks."""

import json
from pathlib import Path

import mpmath
import numpy as np
import pytest
from helpers import few_examples, ranked_task, unsound_data
from hypothesis import example, given
from hypothesis import strategies as st

from classex_bayes import SourceTask
from classex_bayes.estimators import PitmanYor
from classex_bayes.estimators.pitman_yor import expected_share

pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.ExtrapolationWarning")

SIZES = np.array([2, 3, 5, 10, 20, 50, 100, 200, 500, 1000])
# Made by reference/make_pydataless.py, which says how.
PYDATALESS = json.loads(
    (Path(__file__).parents[1] / "reference" / "pydataless.json").read_text(encoding="utf-8")
)


def curve(accuracy, k=SIZES, n_test=10**6):
    return SourceTask.from_accuracies(k, accuracy, n_test=n_test, n_classes=int(np.max(k)))


def place(discount, concentration):
    """Discount and concentration as a point of the search."""
    total = np.log1p(concentration) - np.log1p(-discount)
    return total, -np.log1p(-discount) / total


def squares(model_curve, accuracy, k):
    return np.sum(np.log(k) * (model_curve - accuracy) ** 2)


# The formula


@pytest.mark.parametrize("share", [0, 1e-12, 1e-5, 0.1, 0.5, 0.9, 1 - 1e-9, 1])
@pytest.mark.parametrize("total", [1e-6, 0.1, 1, 5, 12, 25, 60])
def test_formula_in_arbitrary_precision(total, share):
    k = np.array([2, 3, 50, 51, 52, 200, 10**5, 10**12])
    with mpmath.workdps(120):
        total, share = mpmath.mpf(total), mpmath.mpf(share)
        d, alpha = -mpmath.expm1(-share * total), mpmath.expm1((1 - share) * total)
        expected = []
        for n in map(int, k):
            if d == 0:
                different = alpha * (mpmath.digamma(alpha + n) - mpmath.digamma(alpha))
            else:
                rising = mpmath.gammaprod([alpha + 1, n + alpha + d], [alpha + d, n + alpha])
                different = (rising - alpha) / d
            expected.append(float(different / n))
    found = expected_share(float(total), float(share), k)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize(("d", "alpha"), [(0.2, 3.0), (0.7, 0.5), (0.9, 100.0)])
def test_law_of_the_favorability(d, alpha):
    rng = np.random.default_rng(1)
    lost = rng.beta(1 - d, alpha + d, 400_000) * rng.uniform(size=400_000)
    for k in (2, 10, 300):
        won = np.exp((k - 1) * np.log1p(-lost))
        error = won.std() / np.sqrt(won.size)
        found = expected_share(*place(d, alpha), np.array([k])).item()
        assert found == pytest.approx(won.mean(), abs=4 * error)


# The fit


@pytest.mark.parametrize("name", PYDATALESS["fits"])
def test_fits_of_pydataless(name):
    """Its search stops at a relative 1e-4 of the parameters, and never nearer than ours."""
    theirs = PYDATALESS["fits"][name]
    k, accuracy = np.array(theirs["k"]), np.array(theirs["accuracy"])
    model = PitmanYor().fit(curve(accuracy, k))
    far = model.predict(PYDATALESS["far"]).mean
    np.testing.assert_allclose(far, theirs["predicted"], atol=1e-5)
    assert model.entropy_ == pytest.approx(theirs["entropy"], rel=1e-4)
    ours = squares(model.predict(k).mean.to_numpy(), accuracy, k)
    assert ours <= squares(np.array(theirs["fitted"]), accuracy, k) + 1e-12
    assert (model.concentration_ < 1e-6) == (theirs["gamma"] > 1 - 1e-6)


@unsound_data
@few_examples(6)
@given(
    total=st.floats(0.5, 12),
    share=st.floats(0.02, 0.98),
    k=st.sampled_from([SIZES, np.array([2, 12]), np.array([5, 50, 400])]),
)
@example(total=11.0, share=0.125, k=np.array([2, 12]))  # errors of 1e-5
def test_exact_curves_are_recovered(total, share, k):
    model = PitmanYor().fit(curve(expected_share(total, share, k), k))
    far = np.array([30, 900, 10_000])
    np.testing.assert_allclose(
        model.predict(far).mean, expected_share(total, share, far), atol=1e-5
    )
    if k.size == SIZES.size and total < 8:
        assert place(model.discount_, model.concentration_) == pytest.approx(
            (total, share), abs=1e-3
        )


@unsound_data
@few_examples(4)
@given(seed=st.integers(0, 10**6), noise=st.floats(0, 0.1))
def test_least_squares_are_the_least_of_a_grid(seed, noise):
    rng = np.random.default_rng(seed)
    noisy = expected_share(rng.uniform(0.5, 9), rng.uniform(), SIZES)
    noisy = np.clip(noisy + noise * rng.normal(size=SIZES.size), 0.01, 0.999)
    task = curve(-np.sort(-noisy))
    accuracy = task.accuracy(SIZES)
    found = squares(PitmanYor().fit(task).predict(SIZES).mean.to_numpy(), accuracy, SIZES)
    for total in np.geomspace(0.01, 50, 40):
        for share in np.linspace(0, 1, 21):
            others = squares(expected_share(total, share, SIZES), accuracy, SIZES)
            assert others >= found - 1e-12


def test_the_law_is_found_again_in_ranks():
    rng, k1, d, alpha = np.random.default_rng(2), 2000, 0.6, 60.0
    lost = rng.beta(1 - d, alpha + d, 12_000) * rng.uniform(size=12_000)
    ranks = 1 + rng.binomial(k1 - 1, lost)
    task = SourceTask.from_ranks(ranks, np.arange(12_000) % k1, n_classes=k1)
    far = np.array([100, 2000, 20_000])
    predicted = PitmanYor().fit(task).predict(far).mean
    # Standard errors of an accuracy of 12,000 instances are 0.0045 at most.
    np.testing.assert_allclose(predicted, expected_share(*place(d, alpha), far), atol=0.02)


# Degenerate tasks


def test_an_accuracy_just_above_guessing():
    pred = PitmanYor().fit(curve([0.51, 0.35], np.array([2, 3]))).predict([2, 3])
    np.testing.assert_allclose(pred.mean, [0.51, 0.35], atol=0.005)


@pytest.mark.parametrize(
    ("accuracy", "limit"),
    [([0.9, 0.8, 0.79, 0.785], "concentration"), ([0.999, 0.99, 0.9, 0.4], "discount")],
)
def test_a_limit_is_told(accuracy, limit):
    model = PitmanYor().fit(curve(accuracy, np.array([2, 20, 200, 2000])))
    assert getattr(model, f"{limit}_") == pytest.approx(0, abs=1e-5)
    assert limit in model.predict(100).notes[0]


def test_a_single_error_among_many_classes():
    n_better = np.append(np.zeros(9999, int), 1)
    pred = PitmanYor().fit(ranked_task(n_better, 10_000)).predict([10_000, 10**6])
    assert pred.mean[10_000] == pytest.approx(0.9999, abs=1e-5)
    assert 0.98 < pred.mean[10**6] < 0.9999
