"""The choice of the bandwidth: halves and what is learnt from them."""

import numpy as np
import pytest
from helpers import few_errors, score_task

from classex_bayes.estimators.classexreg import halves as module
from classex_bayes.estimators.classexreg.halves import (
    BANDWIDTHS,
    choose_bandwidth,
    extrapolate_halves,
    halve,
)
from classex_bayes.exceptions import DataError
from classex_bayes.simulate import FavorabilityLaw
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.table_reading import select

TASK = score_task(k1=15, repeats=2)


def test_sizes():
    assert [half.n_classes for half in halve(TASK, 3, random_seed=0)] == [7, 7, 7]
    assert [half.n_classes for half in halve(few_errors(4), 2)] == [3, 3]


@pytest.mark.parametrize("task", [TASK, few_errors()], ids=["scores", "n_better"])
def test_halves_are_subsamples(task):
    """The draws are those of one generator that draws the classes, then thins the losses."""
    rng = np.random.default_rng(np.random.SeedSequence(5))
    for half in halve(task, 4, random_seed=5):
        kept = np.sort(rng.choice(task.n_classes, task.n_classes // 2, replace=False))
        np.testing.assert_array_equal(half.ranks, 1 + select(task.table, kept, rng).n_better)


def test_halves_without_tested_classes_are_drawn_again():
    task = SourceTask.from_ranks([1, 6], [3, 70], n_classes=80, untested="competitors")
    assert all(half.n_test == 2 for half in halve(task, 20, random_seed=0))


def test_halves_with_replacement_hold_copies():
    """Of draws as many as half of the classes, 1 - e^(-1/2) of the classes are different ones."""
    task = SourceTask.from_ranks(np.ones(400, int), np.arange(400), n_classes=400)
    halves = halve(task, 100, random_seed=1, replace=True)
    share = [half.accuracy(200)[0] for half in halves]
    expected = 400 * (1 - (1 - 1 / 400) ** 200) / 200
    assert expected == pytest.approx(2 * (1 - np.exp(-0.5)), abs=1e-3)
    assert np.mean(share) == pytest.approx(expected, abs=4 * np.std(share) / 10)


def test_bare_curves_have_no_halves():
    task = SourceTask.from_accuracies([2, 10, 30], [0.99, 0.9, 0.8], n_test=300, n_classes=30)
    with pytest.raises(DataError, match=r"^task: "):
        halve(task)


def test_the_choice_follows_the_errors(monkeypatch):
    truth = TASK.accuracy(15)[0]
    # The second candidate is worse on average but nearer by root mean square.
    made_up = truth + np.array([[0.3, 0.11, 0.2], [-0.3, 0.11, -0.2]])
    monkeypatch.setattr(module, "extrapolate_halves", lambda *arguments: made_up)
    assert choose_bandwidth(TASK, [], (0.2, 0.5, 0.7)).value == 0.5


def test_a_half_of_everything_predicts_what_it_saw():
    """Without extrapolation the fits return the accuracy they were trained on."""
    ranks, y, _ = FavorabilityLaw((1.5,), (1.2,)).sample(200, random_seed=1)
    task = SourceTask.from_ranks(ranks, y, n_classes=200)
    predicted = extrapolate_halves(task, [task], BANDWIDTHS)
    np.testing.assert_allclose(predicted, np.tile(task.accuracy(200), (1, 10)), atol=0.02)
