"""Tasks whose costs by rank are given."""

import numpy as np
import pytest

from classex_bayes.task.source_task import SourceTask


@pytest.fixture(scope="session")
def task_with_costs_by_rank():
    """One instance a class, weighted so that 0-1 costs by rank are the given, falling numbers."""

    def task(by_rank):
        n_classes = by_rank.size + 1
        weight = -np.diff(np.concatenate([[1.0], by_rank, [0.0]]))
        scores = np.empty((n_classes, n_classes))
        for i in range(n_classes):
            scores[i, np.arange(n_classes) != i] = np.arange(n_classes - 1, 0, -1)
            scores[i, i] = n_classes - 0.5 - i
        return SourceTask.from_scores(scores, np.arange(n_classes), class_weight=weight)

    return task
