"""A task in a few words: size, accuracy and what must be known of its scores."""

from typing import Any

import numpy as np

from classex_bayes.formatting import with_error


def task_facts(task: Any) -> dict[str, str]:
    """Size of a task, its accuracy with standard error, its design effect and ties, as text."""
    grid = task.grid()
    error = float(np.sqrt(task.accuracy_cov(grid)[-1, -1]))
    accuracy = with_error(float(task.accuracy(grid)[-1]), error)
    facts = {
        "classes": f"{task.n_classes:,}",
        "test instances": f"{task.n_test:,}",
        "made from": task.kind,
        "accuracy": accuracy + ("" if grid[-1] == task.n_classes else f" at k = {grid[-1]}"),
        "design effect": f"{task.design_effect():.3g}",
    }
    return facts | ({"ties": f"{task.n_tied:,} ({task.ties})"} if task.n_tied else {})
