"""Groups of instances: a curve for each group, and one for any mix of the groups."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from classex_bayes.arguments import FEWEST_CLASSES, class_counts, number, source_task
from classex_bayes.bayes.extrapolator import BayesianExtrapolator, checked_model
from classex_bayes.bayes.joint_posterior import (
    JointPosterior,
    fit_jointly,
    notes_of_predictions,
)
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import Display
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results.draws import DrawsTable, Tabulated
from classex_bayes.results.extrapolation import Extrapolation
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.table_parts import take
from classex_bayes.typing import ClassCounts, IntArray, RandomSeed

_MODEL = BayesianExtrapolator()
_WHOLE, _ROUNDED = (1.0, 100.0), 0.01  # sums of shares that account for the whole deployment
OVERALL = "overall"  # name of the mix in tables and plots


@dataclass(frozen=True, repr=False, eq=False)
class GroupedExtrapolation(Tabulated):
    r"""Accuracy of every group of instances, and of a mix of them.

    `summary` is indexed by group and k. The mix is the last row, "overall", and "share" is the
    first column.

    Attributes
    ----------
    by_group : dict from name to Extrapolation
        Expected accuracy of the instances of each group. Draws with the same number are paired.
    mix : Series
        Share :math:`\pi_g` of each group in the deployment. Shares sum to 1.
    n_test : Series
        Number of test instances of each group.
    posterior : JointPosterior
        Draws of the models that made the predictions, with the correlation that couples them.
    """

    plot = PlotMethod("plot_groups")

    by_group: dict[Any, Extrapolation]
    mix: pd.Series
    n_test: pd.Series
    posterior: JointPosterior

    @property
    def overall(self) -> Extrapolation:
        r"""Accuracy in the deployment, :math:`\sum_g \pi_g AGA^g_k`, draw by draw."""
        parts = [self.mix[name] * part.draws for name, part in self.by_group.items()]
        first = next(iter(self.by_group.values()))
        values = sum(parts[1:], parts[0]).rename("accuracy")
        notes = notes_of_predictions(self.by_group)
        mixed = replace(first, draws=values, base_notes=notes, rank_limits=None)
        return replace(mixed, estimator="post-stratified")

    def with_mix(self, mix: Mapping[Any, float]) -> "GroupedExtrapolation":
        """The same draws for a deployment with another mix.

        Parameters
        ----------
        mix : mapping from group to share
            Shares in any unit. Groups may be omitted if the others' shares sum to 1 (or 100);
            their share is then 0.
        """
        return replace(self, mix=_shares(mix, list(self.by_group)))

    def _table(self, ci_prob: float | None = None, ci_kind: str | None = None) -> DrawsTable:
        predictions = {**self.by_group, OVERALL: self.overall}
        names = pd.Index(list(predictions), name="group")
        draws = xr.concat([prediction.draws for prediction in predictions.values()], names)
        table = DrawsTable.of_draws(draws, ci_prob, ci_kind)
        shares = {**self.mix.to_dict(), OVERALL: 1.0}
        groups = table.numbers.index.get_level_values("group")
        return table.with_constants("share", groups.map(shares))

    def _display(self) -> Display:
        whole = self.overall
        return Display(
            f"{whole.description} of {len(self.by_group)} groups, "
            f"from {whole.n_classes:,} {whole.estimand.source}",
            self._table().text(),
            tuple(f"note: {note}" for note in whole.notes),
        )


def extrapolate_groups(
    task: SourceTask,
    groups: Any,
    k: ClassCounts,
    *,
    mix: Mapping[Any, float] | None = None,
    model: BayesianExtrapolator = _MODEL,
    sampler: Mapping[str, Any] | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> GroupedExtrapolation:
    r"""Accuracy on more classes for every group of instances and for a mix of the groups.

    Each group is fitted to its own instances, with all k1 classes as competitors. In a
    deployment where group g has the share :math:`\pi_g`,

    .. math:: AGA_k = \sum_g \pi_g AGA^g_k.

    The groups share classes and competitors, so their errors are correlated, and their sum is less
    certain than with independent posteriors. The draws are coupled like those of
    `classex_bayes.compare_classifiers`.

    Parameters
    ----------
    task : SourceTask
        The tested classes, with all instances.
    groups : array-like of shape (n_test,)
        Group of each instance, such as a camera, a font or a language. Each needs instances of 3
        classes.
    k : int or array-like of int
        Numbers of classes, 2..10^12.
    mix : mapping from group to share, optional
        Shares of the groups in the deployment, as for `GroupedExtrapolation.with_mix`. By default
        those in the pilot, with the class weights of the task.
    model, sampler, random_seed, progressbar
        As for `classex_bayes.compare_classifiers`. A copy of the model is fitted to each group.

    Notes
    -----
    If a group tests only some of the classes, these are assumed to be a random sample of the
    population, like the k1 classes themselves. docs/open_set.md has a recipe for FNIR and FPIR of
    a group.

    References
    ----------
    Gelman et al., Bayesian Data Analysis (2013), section 8.3 (post-stratification); Zheng,
    Achanta and Benjamini, JMLR 19(65), 2018 (extrapolation).

    Examples
    --------
    >>> from classex_bayes.simulate import GaussianNearestNeighbor
    >>> probes, gallery, y = GaussianNearestNeighbor(dim=10).sample(60, repeats=3, random_seed=1)
    >>> task, camera = SourceTask.from_embeddings(probes, gallery, y), ["old", "new", "new"] * 60
    >>> grouped = extrapolate_groups(
    ...     task, camera, [60, 600], sampler={"draws": 200, "tune": 200, "chains": 2},
    ...     random_seed=1, progressbar=False,
    ... )
    >>> grouped.with_mix({"old": 0.1, "new": 0.9}).summary().shape
    (6, 5)
    """
    counts = class_counts(k)
    source_task(task)
    checked_model(model)
    evidence = task.require("exact ranks")
    rows = _rows_of_groups(groups, task.n_test)
    if mix is None:
        mix = {name: float(evidence.weight[place].sum()) for name, place in rows.items()}
    tasks = {name: _group_task(task, name, place) for name, place in rows.items()}
    shares = _shares(mix, list(tasks))
    posterior = fit_jointly(
        tasks,
        model,
        paired=True,
        sampler=sampler,
        random_seed=random_seed,
        progressbar=progressbar,
    )
    n_test = pd.Series({name: part.n_test for name, part in tasks.items()})
    return GroupedExtrapolation(posterior.predictions(counts), shares, n_test, posterior)


def _rows_of_groups(groups: Any, n_test: int) -> dict[Any, IntArray]:
    """Instances of each group, in order of first appearance."""
    if not np.iterable(groups):
        raise DataError(f"groups: expected one label for each instance, found {groups!r}")
    # Labels are kept as they are. In an array of text, a missing label would be a group "nan".
    labels = pd.Series(groups.tolist() if hasattr(groups, "tolist") else list(groups), dtype=object)
    if labels.size != n_test:
        raise DataError(f"groups: found {labels.size} labels for {n_test} instances")
    if labels.isna().any():
        row = int(np.argmax(labels.isna()))
        raise DataError(
            f"groups: found no label at row {row}, expected one for each instance; leave such "
            "instances out"
        )
    codes, names = pd.factorize(labels)
    if len(names) < 2:
        raise DataError(f"groups: expected at least two groups, found only {names[0]!r}")
    if OVERALL in names:
        raise DataError(
            f"groups: found a group {OVERALL!r}, which is the name of the mix; rename the group"
        )
    return {name: np.flatnonzero(codes == code) for code, name in enumerate(names)}


def _group_task(task: SourceTask, name: Any, rows: IntArray) -> SourceTask:
    """Task on the instances of a group; all classes remain competitors."""
    evidence = task.require("exact ranks")
    weight = np.where(np.isin(np.arange(task.n_classes), task.y[rows]), evidence.class_weight, 0.0)
    n_tested = np.count_nonzero(weight)
    if n_tested < FEWEST_CLASSES:
        raise DataError(
            f"groups: {name!r} has instances of {n_tested} of the {task.n_classes} classes, "
            f"expected at least {FEWEST_CLASSES}; merge it with another group"
        )
    if evidence.unanswered[rows].all():
        raise DataError(f"groups: found no answer of {name!r}, expected at least one")
    return SourceTask(take(evidence, rows, weight / weight.sum()), task.classes)


def _shares(mix: Mapping[Any, float], names: list[Any]) -> pd.Series:
    """Shares of the groups, which sum to 1."""
    if not isinstance(mix, Mapping):
        raise DataError(f"mix: expected a mapping from group to share, found {type(mix).__name__}")
    unknown = [name for name in mix if name not in names]
    if unknown:
        raise DataError(f"mix: unknown group {unknown[0]!r}; the groups are {names!r}")
    shares = pd.Series(
        [number(mix.get(name, 0), f"mix[{name!r}]", 0) for name in names],
        index=pd.Index(names, name="group"),
    )
    total, omitted = shares.sum(), [name for name in names if name not in mix]
    if total == 0:
        raise DataError("mix: expected a share above 0, found none")
    if omitted and not np.isclose(total, _WHOLE, rtol=_ROUNDED).any():
        raise DataError(
            f"mix: found no share of {', '.join(map(repr, omitted))}, and the other shares sum to "
            f"{total:g}; write the share of every group (0 if it does not occur), or shares that "
            "sum to 1"
        )
    return shares / total
