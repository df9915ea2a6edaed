"""Note on predictions that rest on the prior: what the ranks alone allow."""

import numpy as np
import xarray as xr

from classex_bayes.core.metrics import MeanMetric, named_metric
from classex_bayes.estimators.moment_bounds import REACHED, MomentBounds
from classex_bayes.results import SAMPLE_DIMS, Estimand, interval_name, interval_of
from classex_bayes.results.draws import interval_settings
from classex_bayes.typing import FloatArray, IntArray


def data_alone(
    bounds: MomentBounds, k: IntArray, draws: FloatArray, estimand: Estimand
) -> list[str]:
    """Sentence with the limits of the ranks at the largest k, if they are far apart there.

    `draws` (chain, draw, n_k) are those of the prediction.
    """
    if estimand.is_rank or not isinstance(named_metric(estimand.metric), MeanMetric):
        return []
    place = int(k.argmax())
    lower, upper = bounds.predict(k[place], metric=estimand.metric).interval().to_numpy()[0]
    if upper - lower <= REACHED:
        return []
    of_model = interval_of(xr.DataArray(draws[..., place], dims=SAMPLE_DIMS)).values
    span, level = estimand.numerals.span, interval_settings(None, None)[0]
    note = (
        f"on {k[place]:,} classes the ranks alone allow {span(lower, upper)}, the model gives "
        f"{span(*of_model)} ({interval_name(level)}s)"
    )
    reach = bounds.reach()
    if np.isfinite(reach) and estimand.metric == "accuracy":
        note += (
            f"; the ranks alone determine the accuracy to within {REACHED:g} up to "
            f"{reach:,} classes"
        )
    return [note]
