"""Telugu characters: Table 3 of jmlr2018. Its data are not included."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from classex_bayes import SourceTask
from classex_bayes.evaluate.trials import Trial, run_trials
from studies.papers.published import table3
from studies.shared import CI_PROB

# The published text files have four decimals.
_DECIMALS = 4


def load_telugu(path: Path) -> dict[tuple[str, int], SourceTask]:
    """Read the tasks of the Telugu classifiers, by classifier and number of classes.

    The file is an .npz with arrays ``NAME_K_scores`` (n, K) and ``NAME_K_labels`` (n,).
    """
    tasks = {}
    with np.load(path, allow_pickle=False) as arrays:
        for name in arrays:
            if name.endswith("_scores"):
                classifier, k = name.removesuffix("_scores").rsplit("_", 1)
                scores = np.round(arrays[name].astype(float), _DECIMALS)
                labels = arrays[f"{classifier}_{k}_labels"]
                tasks[classifier, int(k)] = SourceTask.from_scores(scores, labels, random_seed=0)
    return tasks


def telugu_table(path: Path, estimators: Sequence[Any], **options: Any) -> pd.DataFrame:
    """Extrapolate the Telugu classifiers, as in Table 3 of jmlr2018.

    The classifiers were retrained for every number of classes, and their scores are normalised over
    the classes. So they are not marginal, and the assumptions of all methods are violated.

    The file is that of `load_telugu`, options are those of `run_trials`. The table is indexed by
    (classifier, k1, k2, estimator) and contains the classifiers of the file. Its columns are
    "predicted", "lower" and "upper" (90%).
    """
    tasks = load_telugu(path)
    pieces = []
    truths: Any = table3()["truth"]
    for (classifier, k1, k2), truth in truths.items():
        if (classifier, k1) in tasks:
            draw = partial(_same, Trial(tasks[classifier, k1], np.array([truth])))
            trials = run_trials(
                estimators, draw, [classifier], k2, n_simulations=1, ci_prob=CI_PROB, **options
            )
            trials = trials.rename(columns={"mean": "predicted"})
            pieces.append(trials.assign(classifier=classifier, k1=k1, k2=k2))
    index = ["classifier", "k1", "k2", "estimator"]
    return pd.concat(pieces).set_index(index)[["predicted", "lower", "upper"]]


def _same(trial: Trial, cell: str, seed: np.random.SeedSequence) -> Trial:
    """Return the only trial."""
    return trial
