"""Whether the right answers of a task beat the wrong ones at all."""

from typing import Literal

from classex_bayes.task.source_task import SourceTask

_SURE = 3  # standard errors

Doubt = Literal["reversed", "disordered", ""]
DOUBTS = {
    "reversed": "right answers score below most wrong ones: is the sign of the scores reversed?",
    "disordered": "right answers score no better than wrong ones: is y in another order?",
}


def doubt_of_answers(task: SourceTask) -> Doubt:
    """What the accuracy among two classes, which guessing makes 1/2, suggests.

    Parameters
    ----------
    task : SourceTask
        The task; a bare accuracy curve is never doubted.

    Returns
    -------
    {"reversed", "disordered", ""}
        Surely below 1/2, not surely above it, or above.

    Examples
    --------
    >>> doubt_of_answers(SourceTask.from_ranks([40] * 40, range(40), n_classes=40))
    'reversed'
    """
    if task.kind == "accuracies":
        return ""
    accuracy = float(task.accuracy(2)[0])
    reach = _SURE * 0.5 * (task.design_effect() / task.n_test) ** 0.5
    if accuracy < 0.5 - reach:
        return "reversed"
    return "disordered" if accuracy < 0.5 + reach and accuracy < 1 else ""
