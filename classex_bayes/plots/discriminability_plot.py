"""The discriminability function D(u) on the scale where its tails can be seen."""

import numpy as np
from arviz_plots import PlotCollection
from scipy.special import ndtr, ndtri

from classex_bayes.bayes.law_model import LawModel, checked_model
from classex_bayes.plots.chart import MUTED, Chart, Ribbon
from classex_bayes.results import interval_label, interval_settings
from classex_bayes.typing import FloatArray

RESOLVED = "resolved by k1 classes"
_Z = np.linspace(-3.0, 6.0, 181)


def plot_discriminability(
    model: LawModel,
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
    model : LawModel
        A fitted model, such as a `BayesianExtrapolator`.
    ci_prob, ci_kind : optional
        Level and kind of the ribbon; ArviZ's rcParams by default.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Plotting library; ArviZ's rcParams by default.

    Returns
    -------
    PlotCollection
    """
    return discriminability_chart(model, ci_prob, ci_kind).draw(backend)


def discriminability_chart(
    model: LawModel,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    z: FloatArray = _Z,
) -> Chart:
    """Return the chart of `plot_discriminability`, at the places `z`."""
    checked_model(model)
    prob, kind = interval_settings(ci_prob, ci_kind)
    label = f"D(u), {interval_label(prob, kind)}"
    chart = Chart({label: None, RESOLVED: MUTED}, log_x=False)
    chart.ribbon(label, Ribbon.of_draws(z, model.discriminability(ndtr(z)), prob, kind))
    limit = -ndtri(1 / model.idata.attrs["n_classes"])
    chart.line(RESOLVED, np.array([limit, limit]), np.array([0.0, 1.0]), linestyle="C2")
    title = "Discriminability function"
    return chart.labelled(title, "z, where u = Phi(z)", "D(u) = P(U* <= u)")
