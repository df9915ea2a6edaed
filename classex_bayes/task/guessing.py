"""Whether a task is more accurate than guessing; if not, something is wrong with its scores."""

from typing import Literal

from classex_bayes.task.source_task import SourceTask

_STANDARD_ERRORS = 3

WARNINGS = {
    "below": "right answers score below most wrong ones: is the sign of the scores reversed?",
    "at": "right answers score no better than wrong ones: is y in another order?",
}


def compared_with_guessing(task: SourceTask) -> Literal["below", "at", "above"]:
    """Whether the accuracy among two classes is below, at or above the 1/2 that guessing reaches.

    "at" is within 3 standard errors of 1/2. A bare accuracy curve counts as above.
    """
    if task.kind == "accuracies":
        return "above"
    accuracy = float(task.accuracy(2)[0])
    margin = _STANDARD_ERRORS * 0.5 * (task.design_effect() / task.n_test) ** 0.5
    if accuracy < 0.5 - margin:
        return "below"
    return "at" if accuracy < 0.5 + margin and accuracy < 1 else "above"
