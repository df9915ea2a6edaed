"""The Gaussian simulation of jmlr2018, section 4: Table 1 and Figures 7 and 8."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist

from classex_bayes import SourceTask
from classex_bayes.evaluate.trials import Trial, run_trials
from classex_bayes.simulate import GaussianNearestNeighbor
from classex_bayes.typing import FloatArray
from studies.papers.published import FACTORS
from studies.shared import CI_PROB

NOISE_VARIANCES = (0.02, 0.06, 0.1, 0.14, 0.18, 0.22, 0.26, 0.3, 0.34, 0.38, 0.42, 0.46, 0.5)
_N_BOOTSTRAP = 500


@dataclass(frozen=True)
class NearestNeighborTrials:
    """Draws tasks of one-nearest-neighbour recognition among Gaussian classes.

    Scores are Euclidean distances, as in the paper. Their scale matters for KDE, and it does not
    matter for estimators from ranks. Each of `n_classes` has one template and one test instance.
    The truth is AGA_k at the numbers of classes `k`.
    """

    n_classes: int
    k: tuple[int, ...]
    dim: int = 10

    def __call__(self, noise_variance: float, seed: np.random.SeedSequence) -> Trial:
        """Draw a task with this noise variance."""
        law = GaussianNearestNeighbor(self.dim, noise_variance)
        probes, gallery, y = law.sample(self.n_classes, random_seed=seed)
        task = SourceTask.from_scores(
            cdist(probes, gallery), y, higher_is_better=False, random_seed=seed
        )
        return Trial(task, law.accuracy(self.k))


def gaussian_trials(
    estimators: Sequence[Any],
    n_classes: int,
    noise_variances: Sequence[float] = NOISE_VARIANCES,
    **options: Any,
) -> pd.DataFrame:
    """Extrapolate from tasks of each noise variance of the paper's Table 1.

    Class centres are N(0, I) in 10 dimensions. Each class has one template and one probe, both
    N(centre, s2 I), and the nearest template wins (Zheng, Achanta and Benjamini, JMLR 19(65), 2018,
    section 4). The paper has 500 and 5000 classes and 50 values of s2 up to 0.5. Predictions are on
    `FACTORS` times k1 classes. Options and the returned table are those of
    `classex_bayes.evaluate.trials.run_trials`. A cell is a noise variance.
    """
    k = tuple(n_classes * factor for factor in FACTORS)
    draw = NearestNeighborTrials(n_classes, k)
    return run_trials(estimators, draw, noise_variances, k, ci_prob=CI_PROB, **options)


def rmse_by_cell(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the root mean square error and bias in every cell: Figures 7 and 8 of jmlr2018.

    The table is indexed by (estimator, k, cell). Its columns are "truth", "rmse", "bias" and "n",
    the number of trials.
    """
    fitted = trials.dropna(subset="mean")
    errors = fitted.assign(error=fitted["mean"] - fitted["truth"])
    groups = errors.groupby(["estimator", "k", "cell"], sort=False)
    return pd.DataFrame(
        {
            "truth": groups["truth"].first(),
            "rmse": groups["error"].agg(lambda error: np.sqrt(np.mean(error**2))),
            "bias": groups["error"].mean(),
            "n": groups["error"].size(),
        }
    )


def rmse_table(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the largest root mean square error over the cells, as in Table 1 of jmlr2018.

    The table is indexed by (estimator, k) and has these columns:

    - "rmse": the largest root mean square error of a cell.
    - "se": its standard error. The bootstrap resamples trials within cells and takes the maximum.
    - "bias": the mean error in the cell where it is largest.
    - "coverage": the share of intervals with the true accuracy; missing for point estimates.
    - "seconds": the median time of fit and prediction.
    - "failed": the share of trials that the estimator failed on. Errors and coverage exclude them.
    """
    rng = np.random.default_rng(0)
    rows = {}
    for place, group in trials.groupby(["estimator", "k"], sort=False):
        fitted = group.dropna(subset="mean")
        by_cell = [(cell["mean"] - cell["truth"]).to_numpy() for _, cell in fitted.groupby("cell")]
        if not by_cell:
            continue
        biases = [errors.mean() for errors in by_cell]
        draws = [_largest_rmse(_resampled(by_cell, rng)) for _ in range(_N_BOOTSTRAP)]
        bounded = fitted.dropna(subset="lower")
        held = bounded["truth"].between(bounded["lower"], bounded["upper"])
        rows[place] = (
            _largest_rmse(by_cell),
            np.std(draws, ddof=1),
            max(biases, key=abs),
            held.mean() if len(bounded) else np.nan,
            group["seconds"].median(),
            1 - len(fitted) / len(group),
        )
    index = pd.MultiIndex.from_tuples(rows, names=["estimator", "k"])
    columns = ["rmse", "se", "bias", "coverage", "seconds", "failed"]
    return pd.DataFrame(list(rows.values()), index=index, columns=columns)


def _largest_rmse(by_cell: Sequence[FloatArray]) -> float:
    return max(float(np.sqrt(np.mean(errors**2))) for errors in by_cell)


def _resampled(by_cell: Sequence[FloatArray], rng: np.random.Generator) -> list[FloatArray]:
    return [rng.choice(errors, errors.size) for errors in by_cell]
