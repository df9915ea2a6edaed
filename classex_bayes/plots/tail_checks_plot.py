"""Predictive check of local tails: losses in held-out halves of the classes by predicted p."""

from typing import Unpack

from classex_bayes.bayes.checks.tail_checks import TailReport
from classex_bayes.plots.chart import INK, Chart, require_type
from classex_bayes.plots.drawing import Drawing, plot_function


@plot_function("ci_band", "mean", "observed")
def plot_tail_checks(
    checks: TailReport,
    *,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    **drawing: Unpack[Drawing],
) -> Chart:
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

    Raises
    ------
    DataError
        Not what `tail_checks` returns.
    """
    require_type(checks, TailReport, "checks", "tail_checks")
    chart = Chart(ci_prob, ci_kind)
    x = 1 / checks.table["p"].to_numpy()
    chart.draws("replicated", x, checks.replicated, "posterior predictive")
    chart.points("observed", x, checks.table["lost"].to_numpy(), color=INK)
    title = f"Local tails against held-out classes: p-value {checks.p_value:.2f}"
    x_label = "predicted: one class in so many is nearer than the true one"
    return chart.labelled(title, x_label, "share that lost in the other half")
