"""Face recognition from the user's embeddings: Table 2 and Figure 10 of jmlr2018."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from classex_bayes.arguments import as_vector, class_counts, finite_matrix, seed_sequence
from classex_bayes.estimators.estimator import Estimator
from classex_bayes.evaluate.backtest import Pilots
from classex_bayes.evaluate.scoring import score_trials
from classex_bayes.evaluate.trials import SAMPLER, run_trials
from classex_bayes.exceptions import DataError
from classex_bayes.io.arrays import read_npy, read_npz
from studies.papers.published import CI_PROB
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import FEWEST_CLASSES
from classex_bayes.typing import ClassCounts, FloatArray, RandomSeed

_PRINTED_SIZES = (100, 200, 400)
_SHARES = (16, 8, 4)  # about 1672, the classes of the paper, divided by its sizes
_N_CURVE = 16


def read_faces(path: str | Path, labels: str | Path | None = None) -> tuple[FloatArray, Any]:
    """Read the embeddings (n, d) and the persons (n,) of pictures.

    The file is an .npz with the arrays ``embeddings`` and ``labels``. It may also be an .npy of
    embeddings; then `labels` is an .npy of labels. Another file raises `DataError`.
    """
    file = Path(path)
    if labels is not None:
        return finite_matrix(read_npy(file, False), "embeddings"), read_npy(Path(labels), False)
    arrays = read_npz(file, {"embeddings", "labels"})
    missing = [name for name in ("embeddings", "labels") if name not in arrays]
    if missing:
        raise DataError(
            f"embeddings: {file} has no array {' and '.join(missing)}, only "
            f"{', '.join(sorted(arrays))}; write np.savez(path, embeddings=X, labels=y)"
        )
    return finite_matrix(arrays["embeddings"], "embeddings"), arrays["labels"]


def face_task(embeddings: Any, labels: Any, random_seed: RandomSeed = 0) -> SourceTask:
    """Make a recognition task with one template and one probe for every class.

    Two pictures of each person are drawn at random, as in jmlr2018, section 5. One is the template,
    the other is the probe. The score of a class is minus the squared Euclidean distance.

    Parameters
    ----------
    embeddings : array-like of shape (n, d)
        One row for each picture.
    labels : array-like of shape (n,)
        Class of each picture. Classes with a single picture are left out.
    random_seed : int, SeedSequence or None
        Seed of the draw.

    Returns
    -------
    SourceTask

    Raises
    ------
    DataError
        If fewer than four classes have two pictures, or `labels` has another length.
    """
    points, names = finite_matrix(embeddings, "embeddings"), as_vector(labels, "labels")
    if len(names) != len(points):
        raise DataError(
            f"labels: found {len(names)}, expected one for each of {len(points)} embeddings"
        )
    rng = np.random.default_rng(seed_sequence(random_seed))
    order = rng.permutation(len(points))
    by_class = order[np.argsort(names[order], kind="stable")]
    classes, first, n = np.unique(names[by_class], return_index=True, return_counts=True)
    if (n > 1).sum() <= FEWEST_CLASSES:
        raise DataError(
            f"labels: found {(n > 1).sum()} classes with two embeddings or more, expected at "
            f"least {FEWEST_CLASSES + 1}: one is the template, another the probe"
        )
    templates, kept = first[n > 1], classes[n > 1]
    return SourceTask.from_embeddings(
        points[by_class[templates + 1]],
        points[by_class[templates]],
        np.arange(kept.size),
        classes=[str(name) for name in kept],
        random_seed=0,
    )


def pilot_sizes(n_classes: int) -> tuple[int, ...]:
    """Return 100, 200 and 400 for 800 classes or more, else 1/16, 1/8 and 1/4 of the classes."""
    if n_classes >= 2 * max(_PRINTED_SIZES):
        return _PRINTED_SIZES
    return tuple(sorted({max(n_classes // share, FEWEST_CLASSES) for share in _SHARES}))


def face_trials(
    estimators: Sequence[Estimator] | Mapping[str, Estimator],
    task: SourceTask,
    k1: ClassCounts | None = None,
    *,
    n_pilots: int = 100,
    random_seed: int = 0,
    sampler: Mapping[str, Any] = SAMPLER,
    n_jobs: int | None = None,
    store: str | Path | None = None,
    progressbar: bool = True,
) -> pd.DataFrame:
    """Extrapolate from `n_pilots` pilots of each size to all classes of a task.

    Predictions are on log-spaced numbers of classes from 2 to all, the same for all sizes. `k1` are
    the sizes, by default `pilot_sizes`. The truth is the average test accuracy of the whole task.
    Other arguments and the returned table are those of `classex_bayes.evaluate.trials.run_trials`.
    A cell is the size of the pilots.
    """
    many = task.n_classes
    sizes = class_counts(pilot_sizes(many) if k1 is None else k1, "k1", many - 1, FEWEST_CLASSES)
    k = np.unique(np.rint(np.geomspace(2, many, _N_CURVE)).astype(int)).tolist()
    return run_trials(
        estimators,
        Pilots(task, tuple(k)),
        sizes.tolist(),
        k,
        n_simulations=n_pilots,
        ci_prob=CI_PROB,
        random_seed=random_seed,
        sampler=sampler,
        n_jobs=n_jobs,
        store=store,
        progressbar=progressbar,
    )


def face_table(trials: pd.DataFrame) -> pd.DataFrame:
    """Return errors and coverage on all classes: Table 2 of jmlr2018.

    The table is indexed by (k1, estimator). It has the columns of
    `classex_bayes.evaluate.scoring.score_trials`, with intervals at 90%.
    """
    at_all = trials[trials["k"] == trials["k"].max()]
    scores = score_trials(at_all.assign(cell=at_all["cell"].astype(int)), CI_PROB, (CI_PROB,))
    return scores.droplevel("k").rename_axis(["k1", "estimator"])
