"""Face recognition from embeddings: Table 2 and Figure 10 of jmlr2018, on data of the user."""

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
from classex_bayes.studies.published import CI_PROB
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import FEWEST_CLASSES
from classex_bayes.typing import ClassCounts, FloatArray, RandomSeed

_PRINTED_SIZES = (100, 200, 400)
_SHARES = (16, 8, 4)  # 1672 is about so many times as many
_N_CURVE = 16


def read_faces(path: str | Path, labels: str | Path | None = None) -> tuple[FloatArray, Any]:
    """Embeddings (n, d) and the person (n,) of every picture.

    The file is an .npz with arrays ``embeddings`` and ``labels``, or an .npy with embeddings and
    `labels` a second .npy.
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
    """Recognition with one template and one probe of every class.

    Two pictures of each person are drawn at random, as in jmlr2018, section 5: one is the template,
    the other the probe. The score of a class is minus the squared Euclidean distance.

    Parameters
    ----------
    embeddings : array-like of shape (n, d)
        One row a picture.
    labels : array-like of shape (n,)
        Its class. Classes with a single picture are left out.
    random_seed : int, SeedSequence or None
        Seed of the draw.

    Raises
    ------
    DataError
        Fewer than four classes with two pictures, or labels of another length.
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
    """Sizes of pilots: 100, 200 and 400, or the same shares (1/16, 1/8, 1/4) of fewer classes."""
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

    Numbers of classes predicted for are the same for all sizes, so that curves can be drawn: 2 to
    all classes, log-spaced. `k1` are the sizes, by default `pilot_sizes`. The truth is the average
    test accuracy of the whole task. Other arguments and the table are those of
    `classex_bayes.evaluate.trials.run_trials`; a cell is the size of the pilots.
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
    """Errors and coverage at all classes: Table 2 of jmlr2018.

    Indexed by (k1, estimator); columns of `classex_bayes.evaluate.scoring.score_trials`, with
    intervals at 90%.
    """
    at_all = trials[trials["k"] == trials["k"].max()]
    scores = score_trials(at_all.assign(cell=at_all["cell"].astype(int)), CI_PROB, (CI_PROB,))
    return scores.droplevel("k").rename_axis(["k1", "estimator"])
