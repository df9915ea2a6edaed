"""Short description of a task: size, accuracy, and doubts about its data."""

from typing import Any

import numpy as np

from classex_bayes.formatting import folded, with_error


def task_facts(task: Any) -> dict[str, str]:
    """Size of a task, its accuracy with standard error, its design effect, ties and doubts."""
    grid, k1 = task.grid(), task.n_classes
    if grid.size:
        error = float(np.sqrt(task.accuracy_cov(grid)[-1, -1]))
        accuracy = with_error(float(task.accuracy(grid)[-1]), error)
        accuracy += "" if grid[-1] == k1 else f" at k = {grid[-1]}"
    else:
        lower, upper = task.accuracy_bounds(k1)
        accuracy = f"between {lower[0]:.3g} and {upper[0]:.3g}"
    facts = {
        "classes": f"{task.n_classes:,}",
        "test instances": f"{task.n_test:,}",
        "made from": task.kind + _kept_scores(task),
        "accuracy": accuracy,
        "design effect": f"{task.design_effect():.3g}",
    }
    if task.n_tied:
        facts["ties"] = f"{task.n_tied:,} ({task.ties})"
    if task.doubts:
        facts["doubts"] = "; ".join(task.doubts)
    return facts


def task_line(task: Any) -> str:
    """Size, accuracy with its standard error and ties, in one line if it is short."""
    facts = task_facts(task)
    ties = f", {task.n_tied:,} ties ({task.ties})" if task.n_tied else ""
    return folded(
        f"<SourceTask: {facts['classes']} classes, {facts['test instances']} test instances "
        f"from {facts['made from']}, accuracy {facts['accuracy']}{ties}>"
    )


def _kept_scores(task: Any) -> str:
    """Which scores a task has, if it has not all of them."""
    tested = task.intervals or (task.evidence if task.has_ranks else None)
    if tested is None or tested.nearest is None:
        return ""
    return f" with the scores of the {tested.nearest.classes.shape[1]} nearest classes"
