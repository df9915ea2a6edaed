"""Face recognition from embeddings: Table 2 and Figure 10 of jmlr2018."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import classex_bayes as cb
from classex_bayes.evaluate.backtest import Pilots
from classex_bayes.evaluate.scoring import score_trials
from classex_bayes.evaluate.trials import run_trials
from classex_bayes.typing import FloatArray
from studies.shared import CI_PROB

_PRINTED_SIZES = (100, 200, 400)
_SHARES = (16, 8, 4)  # about 1672, the classes of the paper, divided by its sizes
_FEWEST_CLASSES = 3
_N_CURVE = 16
_N_STAND_IN = 1672


def read_faces(path: Path) -> tuple[FloatArray, Any]:
    """Read the embeddings (n, d) and the persons (n,) of pictures.

    The file is an .npz with the arrays ``embeddings`` and ``labels``.
    """
    with np.load(path) as arrays:
        return arrays["embeddings"], arrays["labels"]


def stand_in() -> tuple[FloatArray, Any]:
    """Return 1,672 of the packaged characters in four fonts, in place of the paper's faces."""
    glyphs = cb.load_glyphs()
    some = np.random.default_rng(0).choice(glyphs.classes, _N_STAND_IN, replace=False)
    pictures = np.concatenate([glyphs.gallery, glyphs.probes]).astype(float)
    names = np.concatenate([glyphs.classes, glyphs.y])
    kept = np.isin(names, some)
    return pictures[kept], names[kept]


def face_task(embeddings: FloatArray, labels: Any, random_seed: int = 0) -> cb.SourceTask:
    """Make a recognition task with one template and one probe for every class.

    Two pictures of each person are drawn at random, as in jmlr2018, section 5. One is the template,
    the other is the probe. The score of a class is minus the squared Euclidean distance. Classes
    with a single picture are left out.
    """
    points, names = np.asarray(embeddings), np.asarray(labels)
    rng = np.random.default_rng(random_seed)
    order = rng.permutation(len(points))
    by_class = order[np.argsort(names[order], kind="stable")]
    classes, first, n = np.unique(names[by_class], return_index=True, return_counts=True)
    templates, kept = first[n > 1], classes[n > 1]
    return cb.SourceTask.from_embeddings(
        points[by_class[templates + 1]],
        points[by_class[templates]],
        np.arange(kept.size),
        classes=[str(name) for name in kept],
        random_seed=0,
    )


def pilot_sizes(n_classes: int) -> list[int]:
    """Return 100, 200 and 400 for 800 classes or more, else 1/16, 1/8 and 1/4 of the classes."""
    if n_classes >= 2 * max(_PRINTED_SIZES):
        return list(_PRINTED_SIZES)
    return sorted({max(n_classes // share, _FEWEST_CLASSES) for share in _SHARES})


def face_trials(
    estimators: Sequence[Any], task: cb.SourceTask, k1: Sequence[int], **options: Any
) -> pd.DataFrame:
    """Extrapolate from pilots of each size `k1` to all classes of a task.

    Predictions are on log-spaced numbers of classes from 2 to all, the same for all sizes. The
    truth is the average test accuracy of the whole task. Options and the returned table are those
    of `classex_bayes.evaluate.trials.run_trials`. A cell is the size of the pilots.
    """
    k = np.unique(np.rint(np.geomspace(2, task.n_classes, _N_CURVE)).astype(int)).tolist()
    draw = Pilots(task, tuple(k))
    return run_trials(estimators, draw, list(k1), k, ci_prob=CI_PROB, **options)


def face_table(trials: pd.DataFrame) -> pd.DataFrame:
    """Return errors and coverage on all classes: Table 2 of jmlr2018.

    The table is indexed by (k1, estimator). It has the columns of
    `classex_bayes.evaluate.scoring.score_trials`, with intervals at 90%.
    """
    at_all = trials[trials["k"] == trials["k"].max()]
    scores = score_trials(at_all.assign(cell=at_all["cell"].astype(int)), CI_PROB, (CI_PROB,))
    return scores.droplevel("k").rename_axis(["k1", "estimator"])
