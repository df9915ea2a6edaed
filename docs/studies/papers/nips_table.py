"""From 20 to 400 Telugu characters: the table of nips2016, section 5. Data are not included."""

from pathlib import Path

import numpy as np
import pandas as pd

from classex_bayes import SourceTask
from classex_bayes.core import signal_accuracy
from classex_bayes.core.normal_law import signal_from_accuracy
from classex_bayes.estimators import HighDimensional, MixedExponential, PseudoLikelihood
from studies.papers.published import telugu2016
from studies.papers.telugu import load_telugu

_FROM, _TO = 20, 400
_N_TEST = 2000  # 100 instances of each class
NEAR = 0.01  # largest difference of a kept subset's accuracy from the paper's
_MOST_DRAWS = 200  # for each kept subset, on average
_ESTIMATORS = {"EXP": MixedExponential(), "CON": PseudoLikelihood()}


def nips_trials(path: Path, n_subsets: int) -> pd.DataFrame:
    """Predict the accuracy on 400 Telugu characters from subsets of 20 of the 100 published ones.

    The scores of the paper's table are not published. Their accuracies on 20 characters differ from
    those of the files of `load_telugu`. Subsets of 20 of the 100 characters are therefore drawn,
    until `n_subsets` have an accuracy within 0.01 of the paper's.

    The table has one row for each classifier, subset and estimator (EXP and CON, as in
    `studies.papers.published.telugu2016`), with the columns "at 20" and "predicted".
    """
    tasks = load_telugu(path)
    rng = np.random.default_rng(0)
    printed = telugu2016()
    rows = []
    for classifier in [name for name in printed.index if (name, 100) in tasks]:
        whole, kept = tasks[classifier, 100], 0
        for _ in range(n_subsets * _MOST_DRAWS):
            task = whole.select(np.sort(rng.choice(whole.n_classes, _FROM, replace=False)))
            at_20 = task.accuracy(_FROM).item()
            if abs(at_20 - printed.loc[classifier, "at 20"]) > NEAR:
                continue
            for name, estimator in _ESTIMATORS.items():
                predicted = estimator.fit(task).predict(_TO).mean.item()
                rows.append((classifier, kept, name, at_20, predicted))
            kept += 1
            if kept == n_subsets:
                break
        assert kept == n_subsets, f"few subsets of {classifier} are as accurate as in the paper"
    columns = ["classifier", "subset", "estimator", "at 20", "predicted"]
    return pd.DataFrame(rows, columns=columns)


def hd_from_accuracy(accuracy: float) -> dict[str, float]:
    """Return the predictions of HD from an accuracy on 20 classes.

    The first has the corrected formula, the second the powers k and K of the text instead of k - 1
    and K - 1.
    """
    task = SourceTask.from_accuracies(_FROM, accuracy, n_test=_N_TEST, n_classes=_FROM)
    # Phi^k is the probability to beat k competitors, so it belongs to k + 1 classes.
    shifted = signal_from_accuracy(np.array([accuracy]), _FROM + 1)
    return {
        "corrected": HighDimensional().fit(task).predict(_TO).mean.item(),
        "as in the text": float(signal_accuracy(shifted, np.array([_TO + 1]))[0, 0]),
    }
