"""Doubts about data: one warning a fit, a note on every prediction, and counts of their values."""

import warnings

import numpy as np
import pytest

import classex_bayes as cb
from classex_bayes import SourceTask
from classex_bayes.exceptions import DataWarning

pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")

FEW = {"sampler": {"draws": 50, "tune": 100, "chains": 2}, "random_seed": 1, "progressbar": False}
WRONG_SIGN = "the sign of the scores is reversed"


def matrix(k1, repeats=1, seed=0):
    y = np.repeat(np.arange(k1), repeats)
    noise = np.random.default_rng(seed).normal(size=(k1 * repeats, k1))
    return noise + 2.5 * np.eye(k1)[y], y


@pytest.fixture(scope="module")
def reversed_task():
    scores, y = matrix(60)
    return SourceTask.from_scores(scores, y, higher_is_better=False)


ESTIMATORS = {
    "point": lambda task: cb.ClassExReg(0.5).fit(task),
    "points of scores": lambda task: cb.KDE("nrd0").fit(task),
    "posterior": lambda task: cb.BayesianExtrapolator().fit(task, **FEW),
}


@pytest.mark.parametrize("fit", ESTIMATORS.values(), ids=ESTIMATORS)
def test_every_fit_warns_once_and_every_prediction_says_so(reversed_task, fit):
    (doubt,) = reversed_task.warnings
    assert WRONG_SIGN in doubt
    with pytest.warns(DataWarning) as caught:
        fitted = fit(reversed_task)
    told = [warning for warning in caught if warning.category is DataWarning]
    assert [str(warning.message) for warning in told] == [doubt]
    assert told[0].filename == __file__
    assert fitted.predict([60, 100]).notes.count(doubt) == 1


def test_the_bootstrap_warns_once(reversed_task):
    with pytest.warns(DataWarning) as caught:
        found = cb.estimators.bootstrap(
            cb.ClassExReg(0.5), reversed_task, 100, n_resamples=3, progressbar=False
        )
    assert len(caught) == 1 and any(WRONG_SIGN in note for note in found.notes)


def test_a_comparison_warns_once_and_tells_it_once(reversed_task):
    estimators = [cb.ClassExReg(0.5), cb.ClassExReg(0.7), cb.KDE("nrd0")]
    with pytest.warns(DataWarning) as caught:
        found = cb.compare(estimators, reversed_task, [60, 100])
    assert len(caught) == 1
    assert sum(WRONG_SIGN in note for note in found.notes) == 1


@pytest.mark.parametrize("share", [0.0, 0.95])
def test_a_heavy_class_is_no_fault_of_the_data(share):
    scores, y = matrix(60, repeats=4)
    weight = np.full(60, (1 - share) / 60) + share * (np.arange(60) == 9)
    task = SourceTask.from_scores(scores, y, class_weight=weight)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        notes = cb.ClassExReg(0.5).fit(task).predict(100).notes
    effective = 1 / (weight**2).sum()
    assert any(f"{effective:.1f}" in note for note in notes) == (share > 0)


def test_pooled_tasks_tell_every_doubt_once(reversed_task):
    scores, y = matrix(60, seed=1)
    other = SourceTask.from_scores(scores, y)
    with pytest.warns(DataWarning) as caught:
        model = cb.BayesianExtrapolator().fit([other, reversed_task], **FEW)
    said = [str(warning.message) for warning in caught if warning.category is DataWarning]
    assert len(said) == 2 and sum(WRONG_SIGN in sentence for sentence in said) == 1
    assert model.checks_[0].sentence in said  # the tasks are not tests of one classifier
    assert sum(WRONG_SIGN in note for note in model.predict(100).notes) == 1


def test_guessing_is_told_at_the_smallest_known_number_of_classes():
    # Of decisions it is k1, where right answers by chance have the variance (1 - 1 / k) / k.
    k1, n = 20, 400
    y, rng = np.arange(n) % k1, np.random.default_rng(1)
    answer = np.where(rng.random(n) < 0.09, y, (y + rng.integers(1, k1, n)) % k1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        task = SourceTask.from_scores(np.eye(k1)[answer], y)
    check = cb.diagnose(task)["accuracy on few classes"]
    sd = np.sqrt(0.05 * 0.95 * task.design_effect() / n)
    assert check.limit == pytest.approx(0.05 + 2 * sd)
    assert check.passed == (np.mean(answer == y) >= check.limit)


def test_small_samples_are_notes_without_a_warning():
    task = SourceTask.from_ranks([1, 1, 1, 1, 2, 1], np.arange(6), n_classes=6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        notes = cb.ClassExReg(0.5).fit(task).predict([6, 12]).notes
    assert any(note.startswith("6 classes are few") for note in notes)
    assert any(note.startswith("1 of 6 instances lost") for note in notes)


@pytest.mark.parametrize("k1", [20, 21, 49])
def test_equal_weights_cost_nothing(k1):
    task = SourceTask.from_ranks(np.arange(k1) % 3 + 1, np.arange(k1), n_classes=k1)
    notes = cb.ClassExReg(random_seed=0).fit(task).predict(2 * k1).notes
    assert not any("weight" in note for note in notes)
