"""Back-tests of estimators on the populations of the corpus, and their ranking."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from classex_bayes import backtest
from classex_bayes.estimators.base import Estimator
from classex_bayes.evaluate.scoring import interval_score
from classex_bayes.typing import FloatArray, IntArray
from studies.corpus.catalogue import population, recipes
from studies.shared import CI_PROB

N_SOURCE = (50, 100, 300, 1000)
FACTORS = (1, 3, 10, 30, 100)
_N_BOOTSTRAP = 500
_SHOWN = ("10", "100", "1000", "10000")


def corpus_trials(
    estimators: Sequence[Estimator] | Mapping[str, Estimator],
    names: Iterable[str],
    folder: Path,
    *,
    n_source: Sequence[int] = N_SOURCE,
    **options: Any,
) -> pd.DataFrame:
    """Draw pilots from populations and predict the accuracy on `FACTORS` times as many classes.

    Populations and finished pilots are kept in `folder`, and the same call continues from there.
    Targets larger than the population are left out. The options are those of
    `classex_bayes.backtest`. The table has its columns and "population", "n_source" and "factor".
    """
    parts = []
    sizes = np.array(n_source)
    for name in names:
        task = population(name, folder).task()
        fitting = sizes[sizes * FACTORS[1] <= task.n_classes]
        if not fitting.size:
            continue
        k = np.unique(np.outer(fitting, FACTORS))
        table = backtest(
            estimators,
            task,
            fitting.tolist(),
            k[k <= task.n_classes],
            ci_prob=CI_PROB,
            store=folder / f"{name}-pilots",
            **options,
        ).trials
        parts.append(table.assign(population=name, n_source=table["cell"].astype(int)))
    trials = pd.concat(parts, ignore_index=True)
    trials["factor"] = trials["k"] / trials["n_source"]
    return trials[trials["factor"].isin(FACTORS)].astype({"factor": int}).reset_index(drop=True)


def population_facts(laws: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """Return kinds, size and exact accuracies of the populations of `population_laws`.

    The table is indexed by population. Its columns are "kind" (of the classes), "scores" (kind of
    the scores), "classes", "instances" and the accuracies on 10, 100, 1,000, 10,000 and all
    classes; missing if the population is smaller.
    """
    rows = {}
    for law in laws.itertuples():
        instances = population(law.name, folder).y.size
        row = {"kind": law.kind, "scores": recipes()[law.name].scores}
        row |= {"classes": law.n_classes, "instances": instances}
        accuracy = dict(zip(map(str, law.k), law.accuracy, strict=True))
        rows[law.name] = row | accuracy | {"all": law.accuracy[-1]}
    columns = ["kind", "scores", "classes", "instances", *_SHOWN, "all"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    return table.rename_axis("population")


def cell_scores(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of every cell of `corpus_trials`.

    The table is indexed by (estimator, population, n_source, factor). Its columns are "rmse",
    "bias", "crps", and "coverage", "interval_score" and "width" of the 90% intervals. The last
    three are missing for point estimates.
    """
    fitted = trials.dropna(subset="mean")
    error = fitted["mean"] - fitted["truth"]
    lower, upper, truth = (fitted[name].to_numpy() for name in ("lower", "upper", "truth"))
    held = np.where(np.isnan(lower), np.nan, (lower <= truth) & (truth <= upper))
    scored = fitted.assign(
        square=error**2,
        bias=error,
        coverage=held,
        interval_score=interval_score(lower, upper, truth, CI_PROB),
        width=upper - lower,
    )
    cells = scored.groupby(["estimator", "population", "n_source", "factor"], sort=False)
    columns = ["square", "bias", "crps", "coverage", "interval_score", "width"]
    table = cells[columns].mean()
    table.insert(0, "rmse", np.sqrt(table.pop("square")))
    return table


def ranking(trials: pd.DataFrame) -> pd.DataFrame:
    """Rank estimators by their errors, over all cells for which every estimator has a prediction.

    The table is indexed by estimator and sorted by "rmse". It has these columns:

    - "rmse" and "crps": geometric means over the cells.
    - "rmse_farthest": the geometric mean over the largest target of every pilot size.
    - "bias", "coverage", "interval_score" and "width": means over the cells.
    - "rmse_se" and "coverage_se": standard errors from a bootstrap of the populations. They concern
      other populations of this kind, and are missing for a single population.
    """
    scores = cell_scores(trials)
    cells = scores.reset_index("estimator").groupby(level=[0, 1, 2])["estimator"].nunique()
    common = cells.index[cells == trials["estimator"].nunique()]
    kept = scores[scores.index.droplevel("estimator").isin(common)].sort_index(level="factor")
    rng = np.random.default_rng(0)
    names = kept.index.unique("population")
    draws = rng.integers(names.size, size=(_N_BOOTSTRAP, names.size))
    rows = {}
    for estimator, of_it in kept.groupby("estimator", sort=False):
        resampled = of_it.assign(log_rmse=np.log(of_it["rmse"])).groupby("population", sort=False)
        log_rmse = resampled["log_rmse"].mean().reindex(names).to_numpy()
        coverage = resampled["coverage"].mean().reindex(names).to_numpy()
        rmse = _geometric_mean(of_it["rmse"])
        farthest = of_it["rmse"].groupby(["population", "n_source"], sort=False).tail(1)
        rows[estimator] = {
            "rmse": rmse,
            "rmse_se": rmse * _standard_error(log_rmse, draws),
            "rmse_farthest": _geometric_mean(farthest),
            "crps": _geometric_mean(of_it["crps"]),
            "bias": of_it["bias"].mean(),
            "coverage": of_it["coverage"].mean(),
            "coverage_se": _standard_error(coverage, draws),
            "interval_score": of_it["interval_score"].mean(),
            "width": of_it["width"].mean(),
        }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("estimator")
    return table.sort_values("rmse")


def _standard_error(values: FloatArray, draws: IntArray) -> float:
    """Standard deviation of the mean over resampled populations; NaN for a single population."""
    return float(values[draws].mean(axis=1).std(ddof=1)) if values.size > 1 else np.nan


def _geometric_mean(values: "pd.Series[float] | FloatArray") -> float:
    return float(np.exp(np.mean(np.log(values))))
