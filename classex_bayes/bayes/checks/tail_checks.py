"""Posterior predictive check of the calibration: ranks in held-out halves by predicted p."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from classex_bayes.bayes.score_evidence import HELD_OUT, TAILS
from classex_bayes.bayes.tails.calibration import HeldOutTable
from classex_bayes.bayes.tails.tail_model import TAIL_PARAMETERS, TailParameters, tail_law
from classex_bayes.formatting import Display, Shown
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results.draws import (
    SAMPLE_DIMS,
    interval_columns,
    interval_of,
    interval_settings,
)
from classex_bayes.task.rules import Finding
from classex_bayes.typing import FloatArray, IntArray

_N_GROUPS, _MOST_DRAWS = 8, 1000
_LEVEL = 0.05


@dataclass(frozen=True, repr=False, eq=False)
class TailReport(Shown):
    r"""Ranks in held-out halves compared with replicates from the calibration of the tails.

    Instances are grouped by their depth in the tail of one half. A replicate draws, for each
    group, how many of its instances have a better class among the n of the other half, with
    probability :math:`1 - E[(1 - p)^n]`. The distance is Pearson's. The check is of the most
    probable form of the scores. Every fit that uses scores makes it: it is ``model.tails_``, and
    its `finding` is among those of `posterior_checks`.

    Attributes
    ----------
    table : DataFrame
        One row for each group of instances, from shallow to deep: "p" (mean predicted probability
        that a class is nearer than the true one), "instances" (their effective number by the design
        effect), "observed" (share with a better class in the other half), and mean and limits of
        this share over replicates.
    distance : tuple of two arrays
        Distance of the data, and of a replicate, from the expectation of the same draws.
    replicated : DataArray
        Share with a better class in each group of each replicate, with dimensions chain, draw and
        group.
    """

    plot = PlotMethod("plot_tail_checks")

    table: pd.DataFrame
    distance: tuple[FloatArray, FloatArray]
    replicated: xr.DataArray

    @property
    def p_value(self) -> float:
        """Share of replicates whose distance is above that of the data.

        It is mostly above 0.6 if the model is correct, because the same halves were fitted, and
        their means scatter less than replicates. Values below 0.05 are faults.
        """
        above = self.distance[1] - self.distance[0]
        return float(np.mean(above > 0) + 0.5 * np.mean(above == 0))

    @property
    def finding(self) -> Finding:
        """Whether the distance is within the range of the replicates."""
        passed = self.p_value > _LEVEL
        sentence = (
            f"the scores {'' if passed else 'do not '}predict how many held-out classes of the "
            f"pilot score better (p-value {self.p_value:.3f})"
        )
        if not passed:
            sentence += (
                ", so they mislead beyond it. Pass scores with all their digits, such as logits "
                "or distances, or use BayesianExtrapolator(evidence='ranks')"
            )
        return Finding("tails of the scores", passed, sentence, self.p_value, _LEVEL)

    def _display(self) -> Display:
        title = f"Ranks in held-out halves by predicted p: {self.finding.verdict}"
        return Display(title, self.table, (), decimals=4)


def tail_report(tree: xr.DataTree, rng: np.random.Generator) -> TailReport | None:
    """Check from the groups of a fit; None if no scores were used, or no instance is in a tail."""
    if HELD_OUT not in tree.children or not tree[HELD_OUT]["weight"].any():
        return None
    table = HeldOutTable.of_group(tree[HELD_OUT].to_dataset().isel(form=0))
    drawn = tree[TAILS].to_dataset()
    likeliest = np.flatnonzero(drawn["form_place"].values == 0)
    places = rng.permutation(likeliest)[:_MOST_DRAWS]
    parameters = TailParameters(*(drawn[name].values.ravel()[places] for name in TAIL_PARAMETERS))
    by_depth = table.weight.sum(axis=0)
    group = _groups(by_depth)
    membership = group[:, None] == np.unique(group[by_depth > 0])
    size = by_depth @ membership
    log_p, chance = tail_law(parameters, table.n_wrong)
    none_better = _mean(np.exp(table.n_wrong * np.log1p(-np.exp(log_p))), chance)
    expected = by_depth * (1 - none_better) @ membership / size
    p = (by_depth * _mean(np.exp(log_p), chance)).mean(axis=0) @ membership / size
    number = np.maximum(np.rint(size), 1).astype(int)
    replicated = rng.binomial(number, expected) / number
    observed = table.weight[table.n_better > 0].sum(axis=0) @ membership / size

    def distance(share: FloatArray) -> FloatArray:
        variance = np.maximum(expected * (1 - expected), 0.5 / number) / number
        return ((share - expected) ** 2 / variance).sum(axis=1)

    draws = xr.DataArray(replicated[None], dims=(*SAMPLE_DIMS, "group"))
    rows = pd.DataFrame(
        {"p": p, "instances": size, "observed": observed, "mean": replicated.mean(axis=0)},
        index=pd.RangeIndex(size.size, name="group"),
    )
    settings = interval_settings(None, None)
    rows[list(interval_columns(*settings))] = interval_of(draws, *settings).values
    return TailReport(rows, (distance(observed), distance(replicated)), draws)


def _mean(values: FloatArray, chance: FloatArray) -> FloatArray:
    """Means (n, 151) of values (n, 151, m) with probabilities (n, m)."""
    return np.einsum("nlm,nm->nl", values, chance)


def _groups(by_depth: FloatArray) -> IntArray:
    """Group (151,) of each depth: about as many instances in each."""
    below = np.cumsum(by_depth) - by_depth / 2
    numbers = np.minimum(below / by_depth.sum() * _N_GROUPS, _N_GROUPS - 1).astype(int)
    return np.unique(numbers, return_inverse=True)[1]
