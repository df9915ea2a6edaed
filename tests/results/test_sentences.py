"""Numbers in sentences about pilots, against counts by hand."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes import SourceTask
from classex_bayes.results.sentences import errors_sentence, pilot_sentence


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(1, 4)), max_size=40))
def test_the_classes_that_carry_the_errors_are_fewest(instances):
    # Two right answers, since a task has two tested classes.
    y, ranks = ([pair[place] for pair in [(0, 1), (1, 1), *instances]] for place in (0, 1))
    task = SourceTask.from_ranks(ranks, y, n_classes=8, untested="competitors")
    of_class = [sum(c == j and r > 1 for c, r in zip(y, ranks, strict=True)) for j in range(8)]
    errors, total = sorted(of_class, reverse=True), sum(of_class)
    numbers = [int(number) for number in re.findall(r"\d+", errors_sentence(task))]
    if total == 1:
        assert "for the only error" in errors_sentence(task) and numbers == [of_class.index(1)]
        return
    if total == 0:
        assert numbers[:1] == [len(y)]
        return
    few = next(n for n in range(1, 9) if sum(errors[:n]) >= 0.4 * total)
    if errors[few - 1] == errors[few]:  # which classes are the fewest is arbitrary
        assert numbers == [total, sum(number > 0 for number in errors)]
    else:
        assert numbers[:2] == [round(100 * sum(errors[:few]) / total), total]


OPEN = {"n_classes": 3, "untested": "competitors"}


@pytest.mark.parametrize(
    ("task", "percent"),
    [
        (SourceTask.from_ranks([1, 1, 2, 3], [0, 1, 0, 1], **OPEN), 50.0),
        # Three of four right in one class, one of one in the other.
        (SourceTask.from_ranks([1, 1, 1, 2, 1], [0, 0, 0, 0, 1], **OPEN), 87.5),
        (SourceTask.from_ranks([1, 2], [0, 1], **OPEN, class_weight=[3, 1, 1]), 75.0),
        (SourceTask.from_ranks([1, 4, 2, 1], list("abca"), n_negatives=[9, 12, 9, 9]), 33.5),
        (SourceTask.from_accuracies([2, 20], [0.9, 0.8], n_test=100, n_classes=50), 80.0),
    ],
)
def test_accuracy_of_the_pilot(task, percent):
    assert f"{percent}%" in pilot_sentence(task)
