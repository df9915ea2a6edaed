"""Which classes carry the errors."""

from typing import Unpack

import numpy as np

from classex_bayes.assumptions.task_report import TaskReport
from classex_bayes.exceptions import DataError
from classex_bayes.plots.chart import MUTED, Chart, require_type
from classex_bayes.plots.drawing import Drawing, plot_function
from classex_bayes.typing import FloatArray


@plot_function("curve", "ref_line")
def plot_diagnosis(report: TaskReport, **drawing: Unpack[Drawing]) -> Chart:
    """Draw which share of the errors how many of the classes carry.

    Lorenz curves, worst classes first: of the errors of test classes, of the defeats that
    competitors inflict (hubs stand out as a steep start), and of the squared influences on
    ATA at k = k1, which make up its sampling error. The title counts the warnings.

    Parameters
    ----------
    report : TaskReport
        Of `classex_bayes.assumptions.diagnosis`, for a task with scores.

    Raises
    ------
    DataError
        No report, or one without the parts of the classes.
    """
    require_type(report, TaskReport, "report")
    errors = report.class_errors
    if errors is None:
        raise DataError(
            "report: it has no errors by class; use diagnose on a task with scores or embeddings"
        )
    effective = f"sampling error (effective number of classes {errors.n_classes_effective:.0f})"
    curves = {
        "errors, by true class": errors.missed,
        "defeats, by the class that wins": errors.beaten,
        effective: errors.influence,
    }
    drawn = {name: values for name, values in curves.items() if values.sum() > 0}
    chart = Chart(log_x=False)
    for name, values in drawn.items():
        chart.line(name, *_lorenz(values), visual="curve")
    ends = np.array([0.0, 1.0])
    chart.line("equal shares", ends, ends, visual="ref_line", color=MUTED)
    n = len(report.warnings)
    title = f"Who carries the errors: {errors.missed.size} classes, {n} warning{'s' * (n != 1)}"
    return chart.labelled(title, "share of the classes, worst first", "share carried")


def _lorenz(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Share of the classes, and the share of the sum that the largest of them have."""
    carried = np.concatenate([[0.0], np.cumsum(np.sort(values)[::-1])])
    return np.linspace(0, 1, carried.size), carried / carried[-1]
