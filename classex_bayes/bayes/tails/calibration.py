"""The calibration of the tails, by better classes in held-out halves of the classes.

The classes are split into halves. One half gives the depth q of an instance. The number of better
classes among the n of the other half is Binomial(n, p), with the law of p given q of
`classex_bayes.bayes.tails.tail_model`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import softmax

from classex_bayes.bayes.tails.depths import PartLists, ScoreForm, score_forms, tail_scores
from classex_bayes.bayes.tails.importance_sample import N_PROPOSALS, ImportanceSample, LogDensity
from classex_bayes.bayes.tails.tail_model import (
    DEPTHS,
    N_NODES,
    TailParameters,
    TailPrior,
    symbolic_tail_law,
    tail_law,
)
from classex_bayes.core.linear_split import on_grid_by_row
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import BoolArray, FloatArray, IntArray

_N_SPLITS = 4
_MOST_TERMS = 200_000  # of the likelihood at once: 1.6 MB, which a cache holds
# Random instances for each half. With more, the discrepancy of tails is by far the larger error.
_MOST_INSTANCES = 25_000
_USABLE = 0.9  # of the held-out instances that have a depth in some form


@dataclass(frozen=True, eq=False)
class HeldOutTable:
    """Weight of instances by better classes in the other half and by depth; at most n in all.

    Classes that are tied with the true one are better in one half of the weight.
    """

    n_better: IntArray  # (n_counts,): numbers of better classes that occur
    weight: FloatArray  # (n_counts, 151): split linearly between the two nearest of `DEPTHS`
    n_wrong: float  # mean number of wrong classes in a half

    @classmethod
    def of(cls, lists: Sequence[PartLists], form: ScoreForm, n_classes: int) -> "HeldOutTable":
        """Count instances by depth in a half of the classes and better ones in the other half."""
        largest = max(int(half.n_better.max()) for half in lists)
        table = np.zeros((largest + 1, DEPTHS.size))
        for half in lists:
            depth = half.depths(form)
            inside = depth > 0
            at, weight = depth[inside], half.weight[inside] / 2
            for n_better in half.n_better[:, inside]:
                table += on_grid_by_row(n_better, largest + 1, at, weight, DEPTHS)
        occurs = table.any(axis=1)
        return cls(np.flatnonzero(occurs), table[occurs], (n_classes - 1) / 2)

    def group(self) -> xr.Dataset:
        """The table as a group of `idata`."""
        coords = {"n_better": self.n_better, "depth": DEPTHS}
        values = {"weight": (("n_better", "depth"), self.weight), "n_wrong": self.n_wrong}
        return xr.Dataset(values, coords)

    @classmethod
    def of_group(cls, group: xr.Dataset) -> "HeldOutTable":
        """Inverse of `group`."""
        return cls(group["n_better"].values, group["weight"].values, float(group["n_wrong"]))

    def log_likelihood(self, points: FloatArray) -> FloatArray:
        """Log-likelihoods (n,) of points (n, 5) of a `TailPrior`."""
        row, column = self._filled
        better, weight = self.n_better[row, None], self.weight[row, column]
        at_once = max(_MOST_TERMS // max(row.size * N_NODES, 1), 1)
        values = np.empty(len(points))
        for first in range(0, len(points), at_once):
            part = slice(first, first + at_once)
            log_p, chance = tail_law(TailParameters.of_points(points[part]), self.n_wrong)
            log_wins = np.log1p(-np.exp(log_p))
            terms = better * log_p[:, column] + (self.n_wrong - better) * log_wins[:, column]
            # Without the checks of `logsumexp`, which take longer than the sum.
            top = terms.max(axis=2, keepdims=True)
            terms -= top
            mean = (np.exp(terms, out=terms) @ chance[:, :, None])[..., 0]
            values[part] = (np.log(mean) + top[..., 0]) @ weight
        return values

    def symbolic_log_likelihood(self, parameters: Mapping[str, Any]) -> Any:
        """`log_likelihood` as a tensor, of the parameters that `TailPrior.register` returns."""
        import pytensor.tensor as pt

        row, column = self._filled
        log_p, log_chance = symbolic_tail_law(parameters, DEPTHS[column], self.n_wrong)
        better, weight = self.n_better[row, None], self.weight[row, column]
        log_wins = pt.log1p(-pt.exp(log_p))
        terms = better * log_p + (self.n_wrong - better) * log_wins + log_chance
        return pt.dot(pt.logsumexp(terms, axis=1), weight)

    @cached_property
    def _filled(self) -> tuple[IntArray, IntArray]:
        row, column = np.nonzero(self.weight)
        return row, column


@dataclass(frozen=True, eq=False)
class FormFit:
    """The calibration with one form of the scores."""

    form: ScoreForm
    table: HeldOutTable
    sample: ImportanceSample
    prob: float = 1.0  # posterior probability of the form among those that were tried


def held_out_tables(
    task: SourceTask, rng: np.random.Generator, forms: Sequence[ScoreForm] = ()
) -> list[tuple[ScoreForm, HeldOutTable]]:
    """Forms of the scores of a task, with the held-out numbers of better classes by depth.

    By default there is every form that the scores allow. All forms have the same instances, whose
    scores can be standardised if one is. A form in which rounding leaves no distances,
    because one score is far beyond all others, has fewer and is left out.
    """
    nearest = tail_scores(task)
    forms = forms or score_forms(nearest)
    # Instances of a class are dependent, and so are instances that share competitors.
    n_effective = task.n_test / max(task.design_effect(), 1.0)
    of_all = task.require("ranks").weight
    for form in forms:
        of_all = np.where(form.is_known(nearest.moments), of_all, 0.0)
    lists: list[PartLists] = []
    (chooser,) = rng.spawn(1)  # so that proposals do not depend on the number of instances
    halves = random_halves(task.n_classes, rng)
    for half in halves:
        rows, weight = _priority_sample(of_all, _MOST_INSTANCES, chooser)
        total = min(n_effective, rows.size) / len(halves)
        lists.append(PartLists.of(nearest.of_instances(rows), half, weight * total / weight.sum()))
    tables = [(form, HeldOutTable.of(lists, form, task.n_classes)) for form in forms]
    least = _USABLE * max(float(table.weight.sum()) for _, table in tables)
    return [(form, table) for form, table in tables if table.weight.sum() >= least]


def form_fits(
    task: SourceTask,
    prior: TailPrior,
    rng: np.random.Generator,
    forms: Sequence[ScoreForm] = (),
) -> list[FormFit]:
    """Calibrations with forms of the scores of a task, the most probable one first.

    By default there is every form that the scores allow. All are equally probable a priori.
    """
    forms, tables = zip(*held_out_tables(task, rng, forms), strict=True)
    *to_find, to_draw = N_PROPOSALS
    densities = [posterior_density(prior, table) for table in tables]
    samples = [
        ImportanceSample.of(density, prior.mean, prior.scale, rng, to_find) for density in densities
    ]
    shares = softmax([sample.log_evidence for sample in samples])
    numbers = np.maximum(np.rint(to_draw * shares), to_find[-1]).astype(int).tolist()
    settled = [
        sample.settled(density, number, rng)
        for sample, density, number in zip(samples, densities, numbers, strict=True)
    ]
    probs = softmax([sample.log_evidence for sample in settled]).tolist()
    fits = [FormFit(*values) for values in zip(forms, tables, settled, probs, strict=True)]
    return sorted(fits, key=lambda fit: fit.prob, reverse=True)


def posterior_density(prior: TailPrior, table: HeldOutTable) -> LogDensity:
    """Log density, up to a constant, of points (n, 5) given held-out classes."""
    return lambda points: table.log_likelihood(points) + prior.log_density(points)


def random_halves(n_classes: int, rng: np.random.Generator) -> list[BoolArray]:
    """Random halves (k1,) of the classes, each followed by its complement."""
    half = np.zeros(n_classes, dtype=bool)
    half[: n_classes // 2] = True
    halves = [rng.permutation(half) for _ in range(_N_SPLITS)]
    return [side for half in halves for side in (half, ~half)]


def numbers_of_draws(fits: Sequence[FormFit], size: int) -> list[int]:
    """Number of the `size` draws with each form, in proportion to its probability."""
    ends = np.cumsum([0.0, *(fit.prob for fit in fits)])
    return np.diff(np.rint(ends / ends[-1] * size).astype(int)).tolist()


def _priority_sample(
    weight: FloatArray, size: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Places of at most `size` of the weights, and weights whose sums estimate those of all.

    Heavy instances are drawn for certain, others in proportion to their weights. Source: Duffield,
    Lund and Thorup (2007), "Priority sampling for estimation of arbitrary subset sums".
    """
    if weight.size <= size:
        return np.arange(weight.size), weight
    with np.errstate(divide="ignore"):
        key = rng.random(weight.size) / weight
    order = np.argpartition(key, size)
    return order[:size], np.maximum(weight[order[:size]], 1 / key[order[size]])
