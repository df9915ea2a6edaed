"""Probability of an accuracy against the number of classes."""

from collections.abc import Sequence
from typing import Unpack

import numpy as np

from classex_bayes.estimators.estimator import Estimator
from classex_bayes.exceptions import DataError
from classex_bayes.plots.accuracy_plot import predictions_at
from classex_bayes.plots.chart import Chart, number_of
from classex_bayes.plots.drawing import Drawing, plot_function
from classex_bayes.results import Extrapolation
from classex_bayes.typing import ClassCounts, FloatArray


@plot_function("probability")
def plot_prob_at_least(
    prediction: Extrapolation | Estimator,
    level: float | Sequence[float] | FloatArray,
    *,
    k: ClassCounts | None = None,
    **drawing: Unpack[Drawing],
) -> Chart:
    """Draw the posterior probability of an accuracy or another metric, or more, against k.

    Parameters
    ----------
    prediction : Extrapolation or fitted estimator
        With draws, at several k; an estimator predicts the accuracy from 2 classes to the k of its
        latest prediction, or to ten times its source classes.
    level : float or array-like of float
        Levels in (0, 1), of ranks in 1..k; one line each.
    k : int or array-like of int, optional
        Largest number of classes that is drawn, or all numbers; all of the prediction by default.

    Raises
    ------
    DataError
        No level, one twice or outside its limits; a point estimate or a risk.

    Examples
    --------
    >>> draws = np.random.default_rng(1).uniform(0.7, 0.9, (1, 500, 3)) / [1, 1.2, 1.5]
    >>> pred = Extrapolation.from_draws([10, 100, 1000], draws, "example", "credible", 10)
    >>> plot_prob_at_least(pred, [0.6, 0.8], backend="none").backend
    'none'
    """
    (prediction,) = predictions_at([prediction], k, name="prediction")
    levels = list(level) if isinstance(level, Sequence | np.ndarray) else [level]
    probabilities = {f"at least {one:g}": prediction.prob_at_least(one) for one in levels}
    if not levels or len(probabilities) < len(levels):
        raise DataError(f"level: expected one or more different levels, found {level!r}")
    chart = Chart()
    for name, probability in probabilities.items():
        ordered = probability.sort_index()
        chart.curve(name, ordered.index.to_numpy(), ordered.to_numpy(), visual="probability")
    title = f"{prediction.estimator}: {prediction.description}"
    return chart.labelled(title, number_of(prediction.estimand.units), "posterior probability")
