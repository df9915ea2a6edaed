"""The discriminability function D(u) on the scale where its tails can be seen."""

import numpy as np
from arviz_plots import PlotCollection
from scipy.special import ndtr, ndtri

from classex_bayes.bayes.extrapolator import BayesianExtrapolator, checked_model
from classex_bayes.plots._panels import MUTED, Panels
from classex_bayes.results import SAMPLE_DIMS, interval_label, interval_of, interval_settings

_Z = np.linspace(-3.0, 6.0, 181)


def plot_discriminability(
    model: BayesianExtrapolator,
    *,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    backend: str | None = None,
) -> PlotCollection:
    """Draw the posterior of D(u) = P(U* <= u) against z = Phi^-1(u).

    Accuracy on many classes rests on u close to 1, which the normal scale spreads out: z = 3 is a
    competitor in 740 scoring above the true class, z = 5 one in 3.5 million. The dotted line marks
    z = Phi^-1(1 - 1/k1), beyond which k1 classes say little.

    Parameters
    ----------
    model : BayesianExtrapolator
        A fitted model.
    ci_prob, ci_kind : optional
        Level and kind of the ribbon; ArviZ's rcParams by default.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Plotting library; ArviZ's rcParams by default.

    Returns
    -------
    PlotCollection
    """
    checked_model(model)
    prob, kind = interval_settings(ci_prob, ci_kind)
    draws = model.discriminability(ndtr(_Z))
    bounds = interval_of(draws, prob, kind)
    label, resolved = f"D(u), {interval_label(prob, kind)}", "resolved by k1 classes"
    panel = Panels({label: None, resolved: MUTED}, backend, log_x=False)
    lower, upper = (bounds.sel(ci_bound=side).values for side in ("lower", "upper"))
    panel.band(label, _Z, lower, upper)
    panel.line(label, _Z, draws.mean(SAMPLE_DIMS).values)
    limit = -ndtri(1 / model.idata.attrs["n_classes"])
    panel.line(resolved, np.array([limit, limit]), np.array([0.0, 1.0]), linestyle="C2")
    return panel.finish("Discriminability function", "z, where u = Phi(z)", "D(u) = P(U* <= u)")
