"""Note on predictions that rest on the prior: what the ranks alone allow."""

import numpy as np
import xarray as xr

from classex_bayes.arguments import LARGEST_K
from classex_bayes.bayes.idata import DESIGNED, data_of
from classex_bayes.bayes.model.likelihoods import BernsteinData
from classex_bayes.core.metrics import MeanMetric, named_metric
from classex_bayes.core.rank_limits import POINTS, RankLimits
from classex_bayes.estimators.moment_bounds import REACHED
from classex_bayes.results import Estimand, interval_name, interval_settings
from classex_bayes.typing import IntArray


def rank_limits_of(tree: xr.DataTree) -> RankLimits | None:
    """Limits from the ranks of a fit.

    None without ranks, for several tasks, and for classes that were drawn by a design, whose
    probabilities of ranks the tree does not hold.
    """
    data = data_of(tree)
    if not isinstance(data, BernsteinData) or tree.attrs[DESIGNED]:
        return None
    bins = tree["observed_data"].to_dataset()[data.rows].values - 1
    chance = POINTS.bin_probabilities(bins, int(tree.attrs["n_classes"]))
    return RankLimits.of(chance, data.counts, data.design_effect)


def data_alone(limits: RankLimits, n_classes: int, k: IntArray, estimand: Estimand) -> list[str]:
    """Sentence with the limits of the ranks at the largest k, if they are far apart there.

    The pilot has `n_classes`.
    """
    metric = named_metric(estimand.metric)
    if metric.is_rank or not isinstance(metric, MeanMetric):
        return []
    largest, (level, _) = int(k.max()), interval_settings(None, None)
    lower, upper = limits.at(metric, np.array([largest]), level)[:, 0]
    if upper - lower <= REACHED:
        return []
    note = (
        f"on {largest:,} classes the ranks alone allow {estimand.numerals.span(lower, upper)} "
        f"({interval_name(level)})"
    )
    reach = limits.reach(REACHED, level, n_classes, LARGEST_K)
    if 1 < reach < np.inf and metric.name == "accuracy":
        note += f"; they determine the accuracy to within {REACHED:g} up to {reach:,} classes"
    return [note]
