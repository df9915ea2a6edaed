"""The discriminability function D(u) on the scale where its tails can be seen."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from arviz_plots import PlotCollection
from scipy.special import ndtr, ndtri

from classex_bayes.bayes.law_model import LawModel, checked_model
from classex_bayes.exceptions import DataError
from classex_bayes.plots.chart import MUTED, Chart, Ribbon, Visuals
from classex_bayes.results import interval_label, interval_settings
from classex_bayes.typing import FloatArray

RESOLVED = "resolved by the source classes"
_Z = np.linspace(-3.0, 6.0, 181)


def plot_discriminability(
    model: LawModel | Sequence[LawModel],
    *,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    visuals: Visuals | None = None,
    plot_collection: PlotCollection | None = None,
    ax: Any = None,
    backend: str | None = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    r"""Draw the posterior of :math:`D(u) = P(U^* \le u)` against :math:`z = \Phi^{-1}(u)`.

    Accuracy on many classes rests on u close to 1, which the normal scale spreads out: z = 3 is a
    competitor in 740 scoring above the true class, z = 5 one in 3.5 million. The dotted line marks
    :math:`z = \Phi^{-1}(1 - 1/k_1)`, beyond which k1 classes say little.

    Parameters
    ----------
    model : LawModel or sequence of them
        Fitted models, such as a `BayesianExtrapolator`.
    ci_prob, ci_kind : optional
        Level and kind of the ribbon; ArviZ's rcParams by default.
    visuals : mapping, optional
        Removes (False) or styles (a mapping of arguments) what has this name: "ci_band", "mean",
        "ref_line", "title", "xlabel", "ylabel" or "legend".
    plot_collection, ax, backend : optional
        A collection or axes of matplotlib to draw in, and the plotting library ("matplotlib",
        "plotly", "bokeh" or "none"); see `classex_bayes.plots.chart.Chart.draw`.
    **pc_kwargs
        `figure_kwargs` and `col_wrap`, as of `arviz_plots.PlotCollection.wrap`.

    Returns
    -------
    PlotCollection
    """
    return discriminability_chart(model, ci_prob, ci_kind).draw(
        visuals, plot_collection, ax, backend, **pc_kwargs
    )


def discriminability_chart(
    model: LawModel | Sequence[LawModel],
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    z: FloatArray = _Z,
) -> Chart:
    """Return the chart of `plot_discriminability`, at the places `z`."""
    models = [checked_model(one) for one in (model if isinstance(model, Sequence) else [model])]
    prob, kind = interval_settings(ci_prob, ci_kind)
    labels = [f"{one.name}, {interval_label(prob, kind)}" for one in models]
    if not models or len(set(labels)) < len(models):
        raise DataError("model: expected one or more fitted models of different names")
    chart = Chart(
        {**dict.fromkeys(labels), RESOLVED: MUTED},
        visuals=("ci_band", "mean", "ref_line"),
        log_x=False,
    )
    for label, one in zip(labels, models, strict=True):
        ribbon = Ribbon.of_draws(z, one.discriminability(ndtr(z)), prob, kind)
        chart.ribbon(label, ribbon)
    for size in sorted({one.idata.attrs["n_classes"] for one in models}):
        limit = np.full(2, -ndtri(1 / size))
        chart.line(RESOLVED, limit, np.array([0.0, 1.0]), visual="ref_line", linestyle="C2")
    title, x_label = "Discriminability function", r"$z = \Phi^{-1}(u)$"
    return chart.labelled(title, x_label, r"$D(u) = P(U^* \leq u)$")
