"""Predictive check of local tails: losses in held-out halves of the classes by predicted p."""

from typing import Any

from arviz_plots import PlotCollection

from classex_bayes.plots.chart import INK, Chart, Ribbon, Visuals, require_type
from classex_bayes.results import interval_label, interval_settings
from classex_bayes.score_informed.tail_checks import TailReport

_OBSERVED = "observed"


def plot_tail_checks(
    checks: TailReport,
    *,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    visuals: Visuals | None = None,
    plot_collection: PlotCollection | None = None,
    ax: Any = None,
    backend: str | None = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    """Draw which share of the instances lost in held-out halves, by predicted p.

    A group of instances stands at 1 / p: one class in so many is predicted to be nearer than the
    true one. Instances deep in the tail of their distances are on the right. Mean and limits of
    the replicates are beside the observed shares, and the title has the p-value.

    Parameters
    ----------
    checks : TailReport
        Of `classex_bayes.tail_checks`.
    ci_prob, ci_kind : optional
        Level and kind of the ribbon; ArviZ's rcParams by default.
    visuals : mapping, optional
        Removes (False) or styles (a mapping of arguments) what has this name: "ci_band", "mean",
        "observed", "title", "xlabel", "ylabel" or "legend".
    plot_collection, ax, backend : optional
        A collection or axes of matplotlib to draw in, and the plotting library ("matplotlib",
        "plotly", "bokeh" or "none"); see `classex_bayes.plots.chart.Chart.draw`.
    **pc_kwargs
        `figure_kwargs` and `col_wrap`, as of `arviz_plots.PlotCollection.wrap`.

    Returns
    -------
    PlotCollection

    Raises
    ------
    DataError
        Not what `tail_checks` returns.
    """
    require_type(checks, TailReport, "checks", "tail_checks")
    prob, kind = interval_settings(ci_prob, ci_kind)
    label = f"replicated, {interval_label(prob, kind, 'posterior predictive')}"
    chart = Chart({label: None, _OBSERVED: INK})
    x = 1 / checks.table["p"].to_numpy()
    chart.ribbon(label, Ribbon.of_draws(x, checks.replicated, prob, kind))
    chart.points(_OBSERVED, x, checks.table["lost"].to_numpy())
    title = f"Local tails against held-out classes: p-value {checks.p_value:.2f}"
    x_label = "predicted: one class in so many is nearer than the true one"
    return chart.labelled(title, x_label, "share that lost in the other half").draw(
        visuals, plot_collection, ax, backend, **pc_kwargs
    )
