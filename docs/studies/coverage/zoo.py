"""The zoo of favorability laws: coverage and error of the estimators under each law."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from classex_bayes.arguments import class_counts
from classex_bayes.estimators.estimator import Estimator
from classex_bayes.evaluate.scoring import score_trials
from classex_bayes.evaluate.trials import SAMPLER, Trial, run_trials
from classex_bayes.simulate import identifiable, zoo
from studies.papers.published import CI_PROB, FACTORS
from classex_bayes.task.source_task import SourceTask

REPEATS_PER_CLASS = 3


@dataclass(frozen=True)
class ZooTrials:
    """Draws tasks of independent instances from a law of the zoo, three for each of `n_classes`.

    The truth is the accuracy of the law at the numbers of classes `k`.
    """

    n_classes: int
    k: tuple[int, ...]

    def __call__(self, law: str, seed: np.random.SeedSequence) -> Trial:
        """Draw a task of the law with this name."""
        drawn = zoo()[law]
        ranks, y, n_classes = drawn.sample(
            self.n_classes, n_test=REPEATS_PER_CLASS * self.n_classes, random_seed=seed
        )
        task = SourceTask.from_ranks(ranks, y, n_classes=n_classes)
        return Trial(task, drawn.accuracy(self.k))


def zoo_trials(
    estimators: Sequence[Estimator] | Mapping[str, Estimator],
    *,
    n_classes: int = 200,
    factors: Sequence[int] = FACTORS,
    laws: Sequence[str] | None = None,
    n_simulations: int = 20,
    random_seed: int = 0,
    sampler: Mapping[str, Any] = SAMPLER,
    n_jobs: int | None = None,
    store: str | Path | None = None,
    progressbar: bool = True,
) -> pd.DataFrame:
    """Extrapolate from `n_simulations` tasks of every law of `classex_bayes.simulate.zoo`.

    Each of the k1 classes has three test instances. Predictions are on `factors` times k1 classes.
    Other arguments and the returned table are those of `classex_bayes.evaluate.trials.run_trials`.
    A cell is a law.
    """
    k = class_counts([n_classes * factor for factor in factors]).tolist()
    return run_trials(
        estimators,
        ZooTrials(int(n_classes), tuple(k)),
        list(zoo()) if laws is None else list(laws),
        k,
        n_simulations=n_simulations,
        ci_prob=CI_PROB,
        random_seed=random_seed,
        sampler=sampler,
        n_jobs=n_jobs,
        store=store,
        progressbar=progressbar,
    )


def zoo_table(trials: pd.DataFrame, n_classes: int) -> pd.DataFrame:
    """Return the scores of `zoo_trials` for a single k1.

    The table is indexed by (law, estimator, factor). It has the columns of
    `classex_bayes.evaluate.scoring.score_trials`, and "identifiable", whether a pilot of k1 classes
    shows the shape of the law.
    """
    table = score_trials(trials, CI_PROB).reset_index()
    table["factor"] = table.pop("k") // n_classes
    table["identifiable"] = table["cell"].isin(identifiable(n_classes))
    return table.rename(columns={"cell": "law"}).set_index(["law", "estimator", "factor"])
