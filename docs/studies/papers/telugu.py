"""Telugu characters: Table 3 of jmlr2018. Its data are not included."""

import zipfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from classex_bayes.estimators.estimator import Estimator
from classex_bayes.evaluate.trials import SAMPLER, Trial, run_trials
from classex_bayes.exceptions import DataError
from studies.papers.published import CI_PROB, table3
from classex_bayes.task.source_task import SourceTask

# The published text files have four decimals.
_DECIMALS = 4


def load_telugu(path: str | Path) -> dict[tuple[str, int], SourceTask]:
    """Read the tasks of the Telugu classifiers, by classifier and number of classes.

    The file is an .npz with arrays ``NAME_K_scores`` (n, K) and ``NAME_K_labels`` (n,), or a folder
    with the file telugu_scores.npz. Another file raises `DataError`.
    """
    file = Path(path)
    file = file / "telugu_scores.npz" if file.is_dir() else file
    try:
        with np.load(file, allow_pickle=False) as archive:
            arrays = dict(archive)
    except (OSError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(f"path: {file} cannot be read as .npz ({error})") from None
    tasks = {}
    for name in arrays:
        parts = name.removesuffix("_scores").rsplit("_", 1)
        if not name.endswith("_scores") or len(parts) < 2 or not parts[1].isdigit():
            continue
        labels = arrays.get(name.replace("_scores", "_labels"))
        if labels is None:
            raise DataError(f"path: {file} has {name} without labels")
        scores = np.round(arrays[name].astype(float), _DECIMALS)
        tasks[parts[0], int(parts[1])] = SourceTask.from_scores(scores, labels, random_seed=0)
    if not tasks:
        raise DataError(f"path: {file} has no arrays NAME_K_scores")
    return tasks


def telugu_table(
    path: str | Path,
    estimators: Sequence[Estimator] | Mapping[str, Estimator],
    *,
    random_seed: int = 0,
    sampler: Mapping[str, Any] = SAMPLER,
    progressbar: bool = True,
) -> pd.DataFrame:
    """Extrapolate the Telugu classifiers, and compare with Table 3 of jmlr2018.

    The classifiers were retrained for every number of classes, and their scores are normalised over
    the classes. So they are not marginal, and the assumptions of all methods are violated.

    Arguments are those of `load_telugu` and `run_trials`. The table is indexed by (classifier, k1,
    k2, estimator) and contains the classifiers of the file. Its columns are "predicted", "lower",
    "upper" (90%), "truth", "printed", "recomputed" and "note". If the file has no classifier of
    Table 3, a `DataError` is raised.
    """
    tasks = load_telugu(path)
    reference = table3()
    pieces = []
    truths: Any = reference["truth"].groupby(level=[0, 1, 2], sort=False).first()
    for (classifier, k1, k2), truth in truths.items():
        if (classifier, k1) not in tasks:
            continue
        trials = run_trials(
            estimators,
            partial(_same, Trial(tasks[classifier, k1], np.array([truth]))),
            [classifier],
            k2,
            n_simulations=1,
            ci_prob=CI_PROB,
            random_seed=random_seed,
            sampler=sampler,
            progressbar=progressbar,
        )
        trials = trials.rename(columns={"mean": "predicted"})
        pieces.append(trials.assign(classifier=classifier, k1=k1, k2=k2))
    if not pieces:
        raise DataError(f"path: {path} has none of the classifiers of Table 3")
    index = ["classifier", "k1", "k2", "estimator"]
    table = pd.concat(pieces).set_index(index)
    printed = reference[["printed", "recomputed"]].reindex(table.index)
    columns = ["predicted", "lower", "upper", "truth", "printed", "recomputed", "note"]
    return table.join(printed)[columns]


def side_by_side(table: pd.DataFrame) -> pd.DataFrame:
    """Return the predictions of `telugu_table` with one column for each extrapolation.

    The rows are "truth", the estimators, and the printed and recomputed numbers of Table 3.
    """
    places = ["classifier", "k1", "k2"]
    truth = table["truth"].groupby(level=places, sort=False).first()
    rows = {"truth": truth}
    for estimator in table.index.unique("estimator"):
        rows[estimator] = table["predicted"].xs(estimator, level="estimator")
    for column in ("printed", "recomputed"):
        published = table[column].dropna()
        for estimator in published.index.unique("estimator"):
            rows[f"{estimator}, {column}"] = published.xs(estimator, level="estimator")
    wide = pd.DataFrame(rows).reindex(truth.index).T
    wide.columns = ["{} {}-{}".format(*place) for place in wide.columns]
    return wide.rename_axis("estimator")


def _same(trial: Trial, cell: str, seed: np.random.SeedSequence) -> Trial:
    """Return the only trial."""
    return trial
