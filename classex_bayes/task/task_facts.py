"""Short description of a task: size, accuracy, and warnings about its data."""

from typing import Any

import numpy as np

from classex_bayes.formatting import folded, with_error
from classex_bayes.task.accuracy_curve import AccuracyCurve
from classex_bayes.task.rank_table import RankTable


def task_facts(task: Any) -> dict[str, str]:
    """Size of a task, its accuracy with standard error, its design effect, ties and warnings."""
    grid, k1 = task.grid(), task.n_classes
    if grid.size:
        error = float(np.sqrt(task.accuracy_cov(grid)[-1, -1]))
        accuracy = with_error(float(task.accuracy(grid)[-1]), error)
        accuracy += "" if grid[-1] == k1 else f" at k = {grid[-1]}"
    else:
        lower, upper = task.accuracy_bounds(k1)
        accuracy = f"between {lower[0]:.3g} and {upper[0]:.3g}"
    table = task.table
    facts = {
        "classes": f"{task.n_classes:,}",
        "test instances": f"{task.n_test:,}",
        "made from": f"{table.kind}{_kept_scores(table)}",
        "accuracy": accuracy,
        "design effect": f"{task.design_effect():.3g}",
    }
    if ties := _ties(table):
        facts["ties"] = ties
    if task.warnings:
        facts["warnings"] = "; ".join(task.warnings)
    return facts


def task_line(task: Any) -> str:
    """Size, accuracy with its standard error and ties, in one line if it is short."""
    facts = task_facts(task)
    ties = f", ties: {facts['ties']}" if "ties" in facts else ""
    return folded(
        f"<SourceTask: {facts['classes']} classes, {facts['test instances']} test instances "
        f"from {facts['made from']}, accuracy {facts['accuracy']}{ties}>"
    )


def _ties(table: RankTable | AccuracyCurve) -> str:
    """Number of tied pairs and the rule for them; empty if there are none."""
    if isinstance(table, AccuracyCurve) or not table.n_tied:
        return ""
    return f"{table.n_tied:,} ({table.ties})"


def _kept_scores(table: RankTable | AccuracyCurve) -> str:
    """Which scores a task has, if it has not all of them."""
    nearest = getattr(table, "nearest", None)
    if nearest is None:
        return ""
    return f" with the scores of the {nearest.classes.shape[1]} nearest classes"
