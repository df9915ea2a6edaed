"""Plots of a posterior other than accuracies: probabilities, numbers of classes, and D(u)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

import numpy as np
from arviz_stats.base import array_stats
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from classex_bayes.arguments import truth_value
from classex_bayes.bayes.extrapolator import BayesianExtrapolator, checked_model
from classex_bayes.estimators.base import Estimator
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import capitalized, count
from classex_bayes.plots.accuracy_plot import predictions_at
from classex_bayes.plots.drawing import Drawing, number_of, plot_function
from classex_bayes.results.extrapolation import ClassesUntil, Extrapolation
from classex_bayes.typing import ClassCounts, FloatArray

if TYPE_CHECKING:
    from classex_bayes.plots.panels import Panel

_Z = np.linspace(-3.0, 6.0, 181)
_N_GRID = 200
_BAR = 0.25  # decades of the bar of draws beyond the search, whose area is their share


@plot_function("probability")
def plot_prob_at_least(
    panel: "Panel",
    prediction: Extrapolation | Estimator,
    level: float | Sequence[float] | FloatArray,
    *,
    k: ClassCounts | None = None,
    metric: str = "accuracy",
    **drawing: Unpack[Drawing],
) -> None:
    """Draw the posterior probability that an accuracy or another metric reaches a level, against k.

    Parameters
    ----------
    prediction : Extrapolation or fitted estimator
        With draws, at several k; an estimator predicts from 2 classes to ten times its source
        classes.
    level : float or array-like of float
        Levels in (0, 1), of ranks in 1..k; one line each. Ranks and risks are at most the level.
    k : int or array-like of int, optional
        Largest number of classes that is drawn, or all numbers; all of the prediction by default.
    metric : str
        As of `BayesianExtrapolator.predict`, for a fitted estimator; a prediction has its own.
    {shared}

    Raises
    ------
    DataError
        No level, one twice or outside its limits; a point estimate.

    Examples
    --------
    >>> draws = np.random.default_rng(1).uniform(0.7, 0.9, (1, 500, 3)) / [1, 1.2, 1.5]
    >>> pred = Extrapolation.from_draws([10, 100, 1000], draws, "example", "credible", 10)
    >>> plot_prob_at_least(pred, [0.6, 0.8]).get_ylabel()
    'posterior probability'
    """
    (prediction,) = predictions_at([prediction], k, metric=metric, name="prediction")
    levels = list(level) if isinstance(level, Sequence | np.ndarray) else [level]
    side = "most" if prediction.estimand.less_is_better else "least"
    probabilities = {f"at {side} {value:g}": prediction.prob_reached(value) for value in levels}
    if not levels or len(probabilities) < len(levels):
        raise DataError(f"level: expected one or more different levels, found {level!r}")
    for name, probability in probabilities.items():
        ordered = probability.sort_index()
        panel.line(name, ordered.index, ordered, "probability")
    title = f"{prediction.estimator}: {prediction.description}"
    panel.label(title, number_of(prediction.estimand.units), "posterior probability")


@plot_function("density", "ci_band", "median", "beyond")
def plot_classes_until(
    panel: "Panel",
    result: ClassesUntil,
    *,
    ci_prob: float | None = None,
    **drawing: Unpack[Drawing],
) -> None:
    r"""Draw the posterior of the number of classes at which accuracy falls to a level.

    A kernel estimate of the density of :math:`\log_{10} k`, the equal-tailed interval filled, the
    median as a line. Draws beyond the largest k searched are a bar at the right edge, whose area is
    their share.

    Parameters
    ----------
    result : ClassesUntil
        Of `BayesianExtrapolator.classes_until`.
    ci_prob : float, optional
        Level of the interval; by default 0.9, or ArviZ's changed rcParams.
    {shared}

    Examples
    --------
    >>> import xarray as xr
    >>> draws = xr.DataArray([[900.0, 1100.0, np.inf]], dims=("chain", "draw"))
    >>> plot_classes_until(ClassesUntil(0.8, draws, 10**12, 50)).get_xlabel()
    'number of classes k'
    """
    prob, _ = panel.interval
    k = result.k.values.ravel()
    finite, beyond = k[np.isfinite(k)], float(np.isinf(k).mean())
    top = 1.0
    if np.unique(finite).size > 1:
        log_k, density = _density(np.log10(finite))
        density = density * (1 - beyond)
        lower, upper = np.log10(result.interval(prob))
        inside = np.linspace(max(lower, log_k[0]), min(upper, log_k[-1]), log_k.size)
        height = np.interp(inside, log_k, density)
        name = f"posterior, {result.describe_interval(prob)}"
        curve = panel.line(name, 10**log_k, density, "density")
        zero = np.zeros(inside.size)
        panel.band(name, 10**inside, zero, height, color=curve.get_color())
        top = float(np.interp(np.log10(result.median), log_k, density))
    if np.isfinite(result.median):
        line = [result.median] * 2, [0.0, top]
        panel.reference("median", *line, "median")
    if beyond:
        name = f"{count(np.inf, result.largest)}: {beyond:.0%} of the draws"
        bar = result.largest * np.array([1.0, 10**_BAR])
        panel.band(name, bar, [0, 0], [beyond / _BAR] * 2, "beyond", color="C1")
    title, units = capitalized(result.describe_median()), result.estimand.units
    panel.label(title, number_of(units), "posterior density of log₁₀ k")


def _density(log_k: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Kernel estimate of the density of log10 k."""
    *_, width = array_stats.kde(log_k, bw="silverman")
    # At few classes as wide as the distance of whole numbers, so that they make no comb.
    width = max(float(width), np.log10(1 + 10 ** -np.median(log_k)))
    grid, density, _ = array_stats.kde(log_k, bw=width, grid_len=_N_GRID)
    return grid, density


@plot_function("ci_band", "mean", "ref_line")
def plot_discriminability(
    panel: "Panel",
    model: BayesianExtrapolator | Sequence[BayesianExtrapolator],
    *,
    z: ArrayLike | None = None,
    prior: bool = False,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    **drawing: Unpack[Drawing],
) -> None:
    r"""Draw the posterior of :math:`D(u) = P(U^* \le u)` against :math:`z = \Phi^{-1}(u)`.

    Accuracy on many classes depends on u close to 1, which the normal scale spreads out: z = 3 is a
    competitor in 740 scoring above the true class, z = 5 one in 3.5 million. The dotted line marks
    :math:`z = \Phi^{-1}(1 - 1/k_1)`, beyond which k1 classes say little.

    Parameters
    ----------
    model : BayesianExtrapolator or sequence of them
        Fitted models.
    z : array-like of float, optional
        Places at which D is drawn, rising; from -3 to 6 by default.
    prior : bool
        Whether the prior is drawn, in gray. Where both bands are alike, the data say nothing.
    {shared}
    """
    with_prior = truth_value(prior, "prior")
    z = _Z if z is None else np.asarray(z, dtype=float)
    several = model if isinstance(model, Sequence) else [model]
    models = [checked_model(fitted) for fitted in several]
    if not models or len({fitted.name for fitted in models}) < len(models):
        raise DataError("model: expected one or more fitted models of different names")
    for fitted in models:
        panel.draws(fitted.name, z, fitted.discriminability(ndtr(z)))
    for fitted in models if with_prior else []:
        law = fitted.prior_discriminability(ndtr(z))
        panel.draws(f"prior of {fitted.name}", z, law, color=panel.muted)
    for size in sorted({fitted.attributes_.n_classes for fitted in models}):
        panel.vertical("resolved by the source classes", -ndtri(1 / size), "ref_line")
    labels = "Discriminability function", "z = Φ⁻¹(u)", "D(u) = P(U* ≤ u)"
    panel.label(*labels, log_x=False)
