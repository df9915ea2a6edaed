"""One table over estimators."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from classex_bayes.data.task import SourceTask
from classex_bayes.data.validation import class_counts
from classex_bayes.estimators.base import Estimator
from classex_bayes.exceptions import DataError
from classex_bayes.results import Extrapolation, interval_settings, known_accuracy
from classex_bayes.typing import ClassCounts


@dataclass(frozen=True, repr=False)
class Comparison:
    """Predictions of several estimators from one task.

    Attributes
    ----------
    table : DataFrame
        Indexed by estimator and k: "mean", interval limits (missing for point estimates),
        "interval_type" and, where the truth is known, "truth", "error" and "covered".
    predictions : list of Extrapolation
        One for each estimator that could be fitted.
    skipped : dict
        Reasons of the estimators that could not, by name.
    """

    table: pd.DataFrame
    predictions: list[Extrapolation]
    skipped: dict[str, str]

    def __repr__(self) -> str:
        """Table, notes and what was left out."""
        lines = [self.table.to_string(float_format=lambda value: f"{value:.4f}", na_rep="-")]
        for prediction in self.predictions:
            lines.extend(f"note ({prediction.estimator}): {note}" for note in prediction.notes)
        lines.extend(f"left out: {name}: {reason}" for name, reason in self.skipped.items())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return self.table.to_html(float_format=lambda value: f"{value:.4f}", na_rep="-")


def compare(
    estimators: Sequence[Estimator],
    task: SourceTask,
    k: ClassCounts,
    *,
    truth: Any = None,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
) -> Comparison:
    """Fit estimators to one task and put their predictions into one table.

    Parameters
    ----------
    estimators : sequence of estimators
        Fitted in place; a `BayesianExtrapolator` that was fitted to this very task is not fitted
        again.
    task : SourceTask
        The tested classes.
    k : int or array-like of int
        Numbers of classes to predict for.
    truth : SourceTask or mapping from k to accuracy, optional
        Known accuracy, for instance of the task on all classes.
    ci_prob, ci_kind : optional
        Level and kind of the intervals; ArviZ's rcParams by default.

    Returns
    -------
    Comparison

    Raises
    ------
    DataError
        No estimator could be fitted; one that cannot be (KDE without scores) is otherwise left
        out, with its reason in `skipped`.

    Examples
    --------
    >>> from classex_bayes.data.simulate import GaussianNearestNeighbor
    >>> from classex_bayes.estimators.kde import KDE
    >>> law = GaussianNearestNeighbor(dim=10, noise_variance=0.2)
    >>> task = SourceTask.from_embeddings(*law.sample(100, random_seed=1))
    >>> compare([KDE("ucv"), KDE("bcv")], task, [100, 1000]).table.shape
    (4, 2)
    """
    counts = class_counts(k)
    prob, kind = interval_settings(ci_prob, ci_kind)
    limits = [f"{kind}{100 * prob:g}_lb", f"{kind}{100 * prob:g}_ub"]
    predictions, skipped, parts = [], {}, []
    for estimator in estimators:
        try:
            if getattr(estimator, "task", None) is not task:
                estimator.fit(task)
            prediction = estimator.predict(counts)
        except DataError as error:
            skipped[estimator.name] = str(error)
            continue
        predictions.append(prediction)
        summary = prediction.summary(prob, kind).drop(columns="sd", errors="ignore")
        summary["interval_type"] = prediction.interval_type
        if truth is not None:
            summary["truth"] = known_accuracy(truth, counts)
            summary["error"] = summary["mean"] - summary["truth"]
            if prediction.interval_type != "none":
                inside = summary["truth"].between(summary[limits[0]], summary[limits[1]])
                summary["covered"] = inside.astype(object).where(summary["truth"].notna())
        parts.append(summary)
    if not parts:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
        raise DataError(f"estimators: none could be fitted ({reasons or 'none given'})")
    names = [prediction.estimator for prediction in predictions]
    table = pd.concat(parts, keys=names, names=["estimator", "k"])
    order = ["mean", *limits, "interval_type", "truth", "error", "covered"]
    return Comparison(table[[c for c in order if c in table]], predictions, skipped)
