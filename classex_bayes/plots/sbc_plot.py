"""Ranks of simulation-based calibration."""

from collections.abc import Mapping
from typing import Any

import xarray as xr
from arviz_plots import PlotCollection, plot_ecdf_pit

from classex_bayes.arguments import probability
from classex_bayes.evaluate.calibration import group_of_ranks
from classex_bayes.plots.chart import Chart
from classex_bayes.plots.drawing import BackendName, Visuals, visual_styles
from classex_bayes.plots.plot_targets import plot_target

_VISUALS = (
    "ecdf_lines", "suspicious_points", "p_value_text", "title", "xlabel", "ylabel",
)  # fmt: skip


def plot_sbc(
    ranks: xr.DataTree,
    *,
    ci_prob: float = 0.99,
    coverage: bool = False,
    visuals: Visuals | None = None,
    plot_collection: PlotCollection | None = None,
    ax: Any = None,
    backend: BackendName | None = None,
    figure_kwargs: Mapping[str, Any] | None = None,
    col_wrap: int | None = None,
) -> PlotCollection:
    """Draw the ECDF of the ranks less the uniform one, with a test of uniformity.

    Parameters
    ----------
    ranks : DataTree
        Of `classex_bayes.evaluate.calibration.sbc` or `posterior_sbc`.
    ci_prob : float
        Ranks that deviate are marked where uniform ones would show none with this chance.
    coverage : bool
        Draw the coverage of central intervals in place of the ranks.
    visuals : mapping, optional
        Removes (False) or styles (a mapping of arguments) what has this name: "ecdf_lines",
        "suspicious_points", "p_value_text", "title", "xlabel" or "ylabel".
    plot_collection, ax, backend, figure_kwargs, col_wrap : optional
        As of every plot, with axes for each parameter.

    Returns
    -------
    PlotCollection

    Raises
    ------
    DataError
        `ranks` has no group of ranks; a visual that the plot has not; wrong axes.

    See Also
    --------
    classex_bayes.evaluate.calibration.uniformity : The simultaneous band in numbers.
    """
    group = group_of_ranks(ranks)
    probability(ci_prob, "ci_prob")
    styles = visual_styles(visuals, _VISUALS)
    panels = Chart(panels=[str(name) for name in ranks[group].data_vars], log_x=False)
    collection = plot_target(panels, plot_collection, ax, backend, figure_kwargs, col_wrap)
    return plot_ecdf_pit(
        ranks,
        group=group,
        envelope_prob=ci_prob,
        coverage=coverage,
        visuals={name: False if style is None else style for name, style in styles.items()},
        plot_collection=collection,
        backend=collection.backend,
    )
