"""Ten laws of the favorability from easy to hostile, the zoo: docs/calibration.md."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import classex_bayes as cb
from classex_bayes.evaluate.scoring import score_trials
from classex_bayes.evaluate.trials import Trial, run_trials
from studies.laws import zoo
from studies.pages import markdown, paragraph, version
from studies.shared import CI_PROB, Options

OURS, OTHER = "BayesianExtrapolator", "ClassExReg"
FACTORS = (2, 4, 10, 20)
SHOWN = (4, 20)  # on the page
MEAN = "**mean over the identifiable**"
SOUND = 0.84  # least coverage of a law that has no row
REPEATS_PER_CLASS = 3
DUPLICATES = 1e-3  # share of the classes that duplicate one, in the law of that name
N_TASKS = {50: 20, 200: 20, 1000: 10}  # of each law, by the classes of a pilot


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
        task = cb.SourceTask.from_ranks(ranks, y, n_classes=n_classes)
        return Trial(task, drawn.accuracy(self.k))


def zoo_trials(
    estimators: Sequence[Any], n_classes: int, laws: Sequence[str] | None = None, **options: Any
) -> pd.DataFrame:
    """Extrapolate from tasks of laws of `studies.laws.zoo`, all by default.

    Each of the k1 classes has three test instances. Predictions are on `FACTORS` times k1 classes.
    Options and the returned table are those of `classex_bayes.evaluate.trials.run_trials`. A cell
    is a law.
    """
    k = tuple(n_classes * factor for factor in FACTORS)
    draw = ZooTrials(n_classes, k)
    return run_trials(estimators, draw, list(laws or zoo()), k, ci_prob=CI_PROB, **options)


def zoo_table(trials: pd.DataFrame, n_classes: int) -> pd.DataFrame:
    """Return the scores of `zoo_trials` for a single k1.

    The table is indexed by (law, estimator, factor). It has the columns of
    `classex_bayes.evaluate.scoring.score_trials`, and "identifiable", whether a pilot of k1 classes
    shows the shape of the law. If near-duplicates are less than one of its classes, it does not.
    """
    table = score_trials(trials, CI_PROB).reset_index()
    table["factor"] = table.pop("k") // n_classes
    unseen = (table["cell"] == "near-duplicates") & (n_classes * DUPLICATES < 1)
    table["identifiable"] = ~unseen
    return table.rename(columns={"cell": "law"}).set_index(["law", "estimator", "factor"])


def page_table(tables: Mapping[int, pd.DataFrame]) -> str:
    """Coverage and RMSE of laws, by k1 and factor, and means over the identifiable ones.

    `tables` are those of `zoo_table` by k1. Cells that are not identifiable have a mark. A sentence
    has the laws whose intervals are sound in all cells.
    """
    columns: dict[str, dict[str, str]] = {}
    coverage = []
    for k1, table in tables.items():
        for factor in SHOWN:
            of_it = table.xs(factor, level="factor")
            ours, other = (of_it.xs(name, level="estimator") for name in (OURS, OTHER))
            cells = {row.Index: _shown(row) + " (*)" * (not row.identifiable)
                     for row in ours.itertuples()}  # fmt: skip
            coverage.append(ours["coverage90"])
            mean = ours[ours["identifiable"]].mean(numeric_only=True)
            theirs = other.loc[other["identifiable"], "rmse"].mean()
            means = {MEAN: f"**{_shown(mean)}**", f"RMSE of {OTHER}, mean": f"{theirs:.3f}"}
            columns[f"{k1}, x{factor}"] = cells | means
    covered = pd.concat(coverage, axis="columns")
    covered = covered[covered.min(axis="columns") >= SOUND]
    rows = pd.DataFrame(columns).rename_axis("law").drop(index=covered.index).reset_index()
    others = (
        f"The coverage of the other laws ({', '.join(covered.index)}) is "
        f"{covered.min(axis=None):.2f} to {covered.max(axis=None):.2f} in all cells. {version()}"
    )
    return f"{markdown(rows)}\n\n{paragraph(others)}"


def _shown(row: Any) -> str:
    """Coverage and error as text."""
    return f"{row.coverage90:.2f} / {row.rmse:.3f}"


def tables(options: Options) -> dict[str, dict[str, str]]:
    """One table of all laws and sizes of pilots."""
    by_size = {}
    for k1, n_tasks in N_TASKS.items():
        trials = zoo_trials(
            [cb.BayesianExtrapolator(), cb.ClassExReg()], k1,
            n_simulations=options.repeats(n_tasks), n_jobs=options.jobs,
            store=options.out / f"zoo-{k1}",
        )  # fmt: skip
        by_size[k1] = zoo_table(trials, k1)
    return {"calibration.md": {"zoo": page_table(by_size)}}
