"""What scores, ranks and tasks must be."""

from types import SimpleNamespace

import pytest

from classex_bayes.exceptions import DataError
from classex_bayes.task.score_arguments import read_ranks
from classex_bayes.task.validation import source_task

NAN = float("nan")


def test_a_law_is_no_task():
    law = SimpleNamespace(accuracy=lambda k: 1.0)  # as laws have it, and no instances
    with pytest.raises(DataError, match="task: expected a SourceTask, found SimpleNamespace"):
        source_task(law)


def test_ranks_are_positions_from_one():
    assert read_ranks([1, 4.0], [0, 1], 4).tolist() == [1, 4]
    for bad in (0, 5, 1.5, NAN):
        with pytest.raises(DataError, match=r"at row 1; expected .* in 1..4, .* 1 is best"):
            read_ranks([1, bad], [0, 1], 4)
